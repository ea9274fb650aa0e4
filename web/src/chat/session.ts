// The open conversation and its stream. The server has the state: a tab starts with a snapshot and follows
// events, so a reload in the middle of an answer continues it.

import { type Method, call, listen } from "../api.ts";
import { address, rewrite } from "../router.ts";
import type { Events, Snapshot } from "./types.ts";

const AGAIN = 1000; // milliseconds until a stream that the server ended is reopened
const UNSEEN = 60_000; // a hidden tab closes its stream: browsers allow few connections for all tabs together

export const NOTHING: Snapshot = {
  id: null,
  name: "",
  title: "New conversation",
  system_prompt: "",
  entries: [],
  running: [],
  questions: [],
  gauges: [],
};

export type Handlers = { [Kind in keyof Events]: (data: Events[Kind]) => void };

export class Session {
  snapshot: Snapshot = NOTHING;
  #id: string | null = null;
  #source: EventSource | null = null;
  #hiding = 0;
  readonly #handlers: Handlers;
  readonly #taken: (snapshot: Snapshot) => void;
  readonly #failed: (problem: Error) => void;

  constructor(handlers: Handlers, failed: (problem: Error) => void) {
    this.#handlers = { ...handlers, snapshot: (data) => this.#take(data) };
    this.#taken = handlers.snapshot;
    this.#failed = failed;
    document.addEventListener("visibilitychange", () => this.#seen(!document.hidden));
  }

  get id(): string | null {
    return this.#id;
  }

  /** The open conversation changed. */
  call<Result>(method: Method, rest = "", body?: unknown): Promise<Result> {
    return call<Result>(method, this.path(rest), body);
  }

  path(rest = ""): string {
    return `/chat/conversations/${encodeURIComponent(this.#id ?? "")}${rest}`;
  }

  /** An empty id starts a new conversation. */
  open(id: string | null): void {
    this.#rename(id);
    if (id === null) {
      this.suspend();
      this.#take(NOTHING);
    } else this.resume();
  }

  #rename(id: string | null): void {
    this.#id = id;
    rewrite(address("chat", id === null ? [] : [id]));
  }

  #take(snapshot: Snapshot): void {
    if (snapshot.id !== this.#id) this.#rename(snapshot.id); // changed elsewhere: it continues as a copy
    this.snapshot = snapshot;
    this.#taken(snapshot);
  }

  /** A new conversation is created with its first message. */
  async ensure(): Promise<void> {
    if (this.#id !== null) return;
    const { id } = await call<{ id: string }>("POST", "/chat/conversations", {});
    this.#rename(id);
    await this.resume();
  }

  // ── the stream ──

  /** Resolves with the first snapshot. */
  resume(): Promise<void> {
    this.suspend();
    if (this.#id === null) return Promise.resolve();
    const source = listen(`${this.path()}/events`, this.#handlers);
    this.#source = source;
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED && this.#source === source) void this.#lost(source);
    });
    return new Promise((ready) => source.addEventListener("snapshot", () => ready(), { once: true }));
  }

  suspend(): void {
    this.#source?.close();
    this.#source = null;
  }

  async #lost(source: EventSource): Promise<void> {
    try {
      await this.call("GET");
      if (this.#source === source) setTimeout(() => this.#source === source && void this.resume(), AGAIN);
    } catch (problem) {
      if (this.#source !== source) return;
      this.#failed(problem as Error);
      this.open(null);
    }
  }

  #seen(visible: boolean): void {
    clearTimeout(this.#hiding);
    if (visible && this.#source?.readyState === EventSource.CLOSED) void this.resume();
    else if (!visible) this.#hiding = window.setTimeout(() => this.#source?.close(), UNSEEN);
  }
}
