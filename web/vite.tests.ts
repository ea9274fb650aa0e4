// Tests as plain modules for Node's own test runner.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vite";

const root = import.meta.dirname;
const tests = readdirSync(join(root, "tests")).filter((name) => name.endsWith(".test.ts"));

export default defineConfig({
  root,
  publicDir: false,
  build: {
    ssr: true,
    outDir: "build/tests",
    emptyOutDir: true,
    minify: false,
    rolldownOptions: {
      input: tests.map((name) => join(root, "tests", name)),
      output: { entryFileNames: "[name].mjs", chunkFileNames: "parts/[name].mjs" },
    },
  },
});
