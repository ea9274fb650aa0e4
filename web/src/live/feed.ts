// The known requests, newest first: limited, filtered, and paused on demand.

import type { Summary } from "./types.ts";
import { formatName } from "./display.ts";

const MOST = 1000;

export class Feed {
  #known = new Map<string, Summary>(); // oldest first
  #waiting = new Map<string, Summary>();
  #words: readonly string[] = [];
  #only: Only = {};
  #order: Order = NEWEST;
  #isPaused = false;
  #rows: readonly Summary[] | null = null;

  /** The server's full list, also after reconnecting. */
  replace(summaries: readonly Summary[]): void {
    this.#waiting.clear();
    this.#known = new Map(summaries.toReversed().map((one) => [one.id, one]));
    this.#rows = null;
  }

  change(summaries: readonly Summary[]): void {
    for (const one of summaries) {
      // While paused, visible requests are updated; only new ones wait.
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

  /** Requests of one model, key or outcome; omitted fields match all. */
  only(only: Only): void {
    this.#only = only;
    this.#rows = null;
  }

  sort(order: Order): void {
    this.#order = order;
    this.#rows = null;
  }

  get order(): Order {
    return this.#order;
  }

  get rows(): readonly Summary[] {
    // Several workers send their lists one after the other.
    this.#rows ??= sorted([...this.#known.values()].reverse().filter((one) => fits(one, this.#words) && isAmong(one, this.#only)), this.#order);
    return this.#rows;
  }

  /** The available choices. */
  get choices(): { models: string[]; keys: string[] } {
    const models = new Set<string>();
    const keys = new Set<string>();
    for (const one of this.#known.values()) {
      if (one.model) models.add(one.model);
      if (one.key) keys.add(one.key);
    }
    return { models: [...models].sort(), keys: [...keys].sort() };
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

export type Outcome = "good" | "failed" | "running" | "lossy";

export interface Only {
  readonly outcome?: Outcome | undefined;
  readonly model?: string | undefined;
  readonly key?: string | undefined;
}

export type Column = "at" | "status" | "pair" | "model" | "key" | "tokens" | "cost" | "first" | "duration" | "lost";

export interface Order {
  readonly by: Column;
  readonly isDescending: boolean;
}

export const NEWEST: Order = { by: "at", isDescending: true };

const VALUES: Record<Column, (one: Summary) => number | string | undefined> = {
  at: (one) => one.at,
  status: (one) => (one.phase === "ended" ? one.status : 0),
  pair: (one) => `${one.client} ${one.format ?? ""}`,
  model: (one) => one.model,
  key: (one) => one.key,
  tokens: (one) => one.tokens && one.tokens.input + one.tokens.output,
  cost: (one) => one.cost,
  first: (one) => one.first_byte,
  duration: (one) => one.duration,
  lost: (one) => one.losses ?? 0,
};

/** Missing values are last in either direction; equal ones are sorted newest first. */
export function sorted(rows: readonly Summary[], { by, isDescending }: Order): Summary[] {
  const value = VALUES[by];
  const sign = isDescending ? -1 : 1;
  return rows.toSorted((one, other) => {
    const [left, right] = [value(one), value(other)];
    if (left === right) return other.at - one.at;
    if (left === undefined || left === "") return 1;
    if (right === undefined || right === "") return -1;
    return left < right ? -sign : sign;
  });
}

const OUTCOMES: Record<Outcome, (one: Summary) => boolean> = {
  good: (one) => one.phase === "ended" && !hasFailed(one),
  failed: (one) => hasFailed(one),
  running: (one) => one.phase !== "ended",
  lossy: (one) => Boolean(one.losses),
};

export function isAmong(one: Summary, { outcome, model, key }: Only): boolean {
  return (outcome === undefined || OUTCOMES[outcome](one)) && (model === undefined || one.model === model) && (key === undefined || one.key === key);
}

export const hasFailed = (one: Summary): boolean => one.failure !== undefined && one.failure !== "";

function trim(known: Map<string, Summary>): void {
  for (const id of known.keys()) {
    if (known.size <= MOST) break;
    known.delete(id);
  }
}

/** All words must match; `error`, `loss` and `stream` match requests that have one. */
export function fits(one: Summary, words: readonly string[]): boolean {
  if (words.length === 0) return true;
  const text = [
    one.id, one.client, one.format, formatName(one.client), formatName(one.format ?? ""), one.model, one.target, one.upstream,
    one.key, one.status, one.failure, one.error, one.operation,
    hasFailed(one) ? "error failed" : "", one.losses ? "loss losses" : "", one.stream ? "stream" : "", one.phase,
  ].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}
