// Requests to the server. Changes have a header that no form and no script of another site can send.

import { withdraw } from "./notices.ts";

const HEADERS = { "x-dragoman-page": "1", "content-type": "application/json" };

export const UNREACHABLE = "The server does not answer. Is it still running?";

/** An error of the server: message, status and body; status 0 if it cannot be reached. */
export class Problem extends Error {
  readonly status: number;
  readonly body: unknown;

  constructor(message: string, status: number, body: unknown = null) {
    super(message);
    this.status = status;
    this.body = body;
  }
}

export type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";

export async function call<Result>(method: Method, path: string, body?: unknown): Promise<Result> {
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const answer = await fetch(`/_/api${path}`, { method, headers: HEADERS, ...sent }).catch(() => {
    throw new Problem(UNREACHABLE, 0); // the browser's own words differ and do not help: "Failed to fetch"
  });
  withdraw(UNREACHABLE);
  if (answer.status === 401) location.href = "/_/login";
  const received: unknown = await answer.json().catch(() => null);
  if (!answer.ok) throw new Problem(wordsOf(received) ?? `the server answered ${answer.status}`, answer.status, received);
  return received as Result;
}

function wordsOf(body: unknown): string | null {
  const error = typeof body === "object" && body !== null && "error" in body ? body.error : null;
  return typeof error === "string" ? error : null;
}

/** Events of the server by kind, until closed. The browser reconnects by itself. */
export function listen(path: string, handlers: Record<string, (data: never) => void>): EventSource {
  const source = new EventSource(`/_/api${path}`);
  for (const [kind, handle] of Object.entries(handlers)) {
    source.addEventListener(kind, (event: MessageEvent<string>) => handle(JSON.parse(event.data) as never));
  }
  return source;
}
