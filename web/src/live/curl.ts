// A request as a command that can be run again. Keys were never told to the page: whoever runs it puts one in.

import type { Opened } from "./types.ts";

const HIDDEN = "[hidden]";
// curl says these by itself, or they belong to the connection that was.
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
