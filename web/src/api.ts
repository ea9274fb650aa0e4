// Requests to the server. Changes have a header that no form and no script of another site can send.

const HEADERS = { "x-dragoman-page": "1", "content-type": "application/json" };

/** An error of the server: message, status and body. */
export class Problem extends Error {
  readonly status: number;
  readonly told: unknown;

  constructor(message: string, status: number, told: unknown = null) {
    super(message);
    this.status = status;
    this.told = told;
  }
}

export type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";

export async function call<Told>(method: Method, path: string, body?: unknown): Promise<Told> {
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const answer = await fetch(`/_/api${path}`, { method, headers: HEADERS, ...sent });
  if (answer.status === 401) location.href = "/_/login";
  const told: unknown = await answer.json().catch(() => null);
  if (!answer.ok) throw new Problem(wordsOf(told) ?? `the server answered ${answer.status}`, answer.status, told);
  return told as Told;
}

function wordsOf(told: unknown): string | null {
  const error = typeof told === "object" && told !== null && "error" in told ? told.error : null;
  return typeof error === "string" ? error : null;
}

/** Events of the server by kind, until closed. The browser reconnects by itself. */
export function listen(path: string, handlers: Record<string, (told: never) => void>): EventSource {
  const source = new EventSource(`/_/api${path}`);
  for (const [kind, handle] of Object.entries(handlers)) {
    source.addEventListener(kind, (event: MessageEvent<string>) => handle(JSON.parse(event.data) as never));
  }
  return source;
}
