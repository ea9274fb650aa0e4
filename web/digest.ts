// The digest of the sources of the page. A test compares it with the sources, so a forgotten build is found even without
// Node.js. `tests/web/test_build.py` computes it in the same way.

import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { join, relative, sep } from "node:path";

const SOURCES = ["src", "public", "index.html", "package.json", "package-lock.json", "vite.config.ts"];

function* filesUnder(path: string): Generator<string> {
  let entries;
  try {
    entries = readdirSync(path, { withFileTypes: true });
  } catch {
    yield path;
    return;
  }
  for (const entry of entries) yield* filesUnder(join(path, entry.name));
}

export function digest(root: string): string {
  const files = SOURCES.flatMap((name) => [...filesUnder(join(root, name))]);
  const named = files.map((path) => [relative(root, path).split(sep).join("/"), path] as const);
  const sum = createHash("sha256");
  for (const [name, path] of named.sort(([a], [b]) => (a < b ? -1 : 1))) {
    sum.update(`${name}\n`).update(createHash("sha256").update(readFileSync(path)).digest("hex")).update("\n");
  }
  return sum.digest("hex");
}
