// A request as a curl command. The page never has keys: the user adds one.

import type { Opened } from "./types.ts";

const HIDDEN = "[hidden]";
// Set by curl itself, or specific to the old connection.
const LEFT_OUT = new Set([
  "host", "content-length", "connection", "accept-encoding", "transfer-encoding", "user-agent", "accept", "content-encoding",
]);

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

export function curl(opened: Opened, origin: string): string {
  const { method, path, headers, body } = opened.client;
  const lines = [`curl -N -X ${method} ${quoted(origin + path.replaceAll(HIDDEN, "YOUR_KEY"))}`];
  for (const [name, value] of Object.entries(headers)) {
    if (LEFT_OUT.has(name) || name.startsWith("x-stainless-")) continue;
    const key = name === "authorization" ? "Bearer YOUR_KEY" : "YOUR_KEY";
    lines.push(`-H ${quoted(`${name}: ${value === HIDDEN ? key : value}`)}`);
  }
  if (body !== null) lines.push(`--data-binary ${quoted(body.text)}`);
  return lines.join(" \\\n  ");
}
