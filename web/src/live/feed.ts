// The requests that are known, newest first: at most so many, filtered, and held still while one looks closely.

import type { Summary } from "./types.ts";
import { formatName } from "./words.ts";

const MOST = 1000;

export class Feed {
  #known = new Map<string, Summary>(); // oldest first
  #waiting = new Map<string, Summary>();
  #words: readonly string[] = [];
  #isPaused = false;
  #rows: readonly Summary[] | null = null;

  /** Everything there is, from the server's side: after a break in the connection too. */
  replace(summaries: readonly Summary[]): void {
    this.#waiting.clear();
    this.#known = new Map(summaries.toReversed().map((one) => [one.id, one]));
    this.#rows = null;
  }

  change(summaries: readonly Summary[]): void {
    for (const one of summaries) {
      // What is shown goes on while it is held still; only new ones wait.
      (this.#isPaused && !this.#known.has(one.id) ? this.#waiting : this.#known).set(one.id, one);
    }
    trim(this.#known);
    trim(this.#waiting);
    this.#rows = null;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  pause(isPaused: boolean): void {
    this.#isPaused = isPaused;
    if (isPaused) return;
    for (const [id, one] of this.#waiting) this.#known.set(id, one);
    this.#waiting.clear();
    trim(this.#known);
    this.#rows = null;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  filter(text: string): void {
    this.#words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
    this.#rows = null;
  }

  get rows(): readonly Summary[] {
    // Several workers tell of theirs one after the other.
    this.#rows ??= [...this.#known.values()].filter((one) => fits(one, this.#words)).reverse().sort((one, other) => other.at - one.at);
    return this.#rows;
  }

  get size(): number {
    return this.#known.size;
  }

  find(id: string): Summary | undefined {
    return this.#known.get(id);
  }

  get counts(): { all: number; underWay: number; failed: number } {
    let underWay = 0;
    let failed = 0;
    for (const one of this.#known.values()) {
      if (one.phase !== "ended") underWay += 1;
      if (hasFailed(one)) failed += 1;
    }
    return { all: this.#known.size, underWay, failed };
  }
}

export const hasFailed = (one: Summary): boolean => one.failure !== undefined && one.failure !== "";

function trim(known: Map<string, Summary>): void {
  for (const id of known.keys()) {
    if (known.size <= MOST) break;
    known.delete(id);
  }
}

/** All words have to be in it somewhere; `error`, `loss` and `stream` are found where there is one. */
export function fits(one: Summary, words: readonly string[]): boolean {
  if (words.length === 0) return true;
  const text = [
    one.id, one.client, one.format, formatName(one.client), formatName(one.format ?? ""), one.model, one.target, one.upstream,
    one.key, one.status, one.failure, one.error, one.operation,
    hasFailed(one) ? "error failed" : "", one.losses ? "loss losses" : "", one.stream ? "stream" : "", one.phase,
  ].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}
