// Sums of usage that the server does not provide.

import type { UsageRow } from "./types.ts";

export type Group = "model" | "key";
export type Measure = "cost" | "requests" | "tokens";

export const NO_KEY = "no key";
const DAY = 86_400_000;

export const nameOf = (row: UsageRow, by: Group): string => (by === "key" ? row.key || NO_KEY : row.model ? `${row.upstream}/${row.model}` : "not routed");

export const valueOf = (row: UsageRow, measure: Measure): number =>
  measure === "tokens" ? row.input + row.output : measure === "cost" ? row.cost : row.requests;

export interface Course {
  readonly days: readonly string[];
  /** The largest first; the rest is summed up in a last one. */
  readonly groups: readonly { readonly name: string; readonly values: readonly number[]; readonly total: number }[];
}

/** Every day of the span, also those without any requests. */
export function days(count: number, now: number): string[] {
  return Array.from({ length: count }, (_, place) => new Date(now - (count - 1 - place) * DAY).toISOString().slice(0, 10));
}

export function course(rows: readonly UsageRow[], by: Group, measure: Measure, span: readonly string[], most: number): Course {
  const sums = new Map<string, Map<string, number>>();
  for (const row of rows) {
    const name = nameOf(row, by);
    const days = sums.get(name) ?? new Map<string, number>();
    days.set(row.day, (days.get(row.day) ?? 0) + valueOf(row, measure));
    sums.set(name, days);
  }
  const all = [...sums].map(([name, days]) => ({ name, values: span.map((day) => days.get(day) ?? 0), total: [...days.values()].reduce((sum, one) => sum + one, 0) }));
  all.sort((one, other) => other.total - one.total || one.name.localeCompare(other.name));
  if (all.length <= most) return { days: span, groups: all };
  const rest = all.slice(most - 1);
  const others = {
    name: `${rest.length} others`,
    values: span.map((_, place) => rest.reduce((sum, one) => sum + (one.values[place] ?? 0), 0)),
    total: rest.reduce((sum, one) => sum + one.total, 0),
  };
  return { days: span, groups: [...all.slice(0, most - 1), others] };
}

/** One row per key and model, the most expensive first. */
export function table(rows: readonly UsageRow[]): UsageRow[] {
  const sums = new Map<string, UsageRow>();
  for (const row of rows) {
    const name = `${row.key}\n${row.upstream}/${row.model}`;
    const known = sums.get(name);
    sums.set(name, known === undefined ? { ...row, day: "" } : {
      ...known, requests: known.requests + row.requests, failed: known.failed + row.failed, input: known.input + row.input,
      output: known.output + row.output, cost: known.cost + row.cost,
    });
  }
  return [...sums.values()].sort((one, other) => other.cost - one.cost || other.requests - one.requests);
}

export function total(rows: readonly UsageRow[]): Omit<UsageRow, "key" | "upstream" | "model" | "day"> {
  const sum = (value: (row: UsageRow) => number): number => rows.reduce((so, row) => so + value(row), 0);
  return {
    requests: sum((row) => row.requests), failed: sum((row) => row.failed), input: sum((row) => row.input),
    output: sum((row) => row.output), cost: sum((row) => row.cost),
  };
}
