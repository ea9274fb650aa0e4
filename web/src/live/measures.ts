// Sums of the known requests over time, for the charts above the list.

import { hasFailed } from "./feed.ts";
import type { Summary } from "./types.ts";

const STEPS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600].map((seconds) => seconds * 1000);
const MOST = 36;
const LEAST = 24; // bars: a few would be as wide as a finger

export interface Bucket {
  readonly at: number;
  readonly requests: number;
  readonly failed: number;
  /** Milliseconds until the complete answer; null if none has ended. */
  readonly p50: number | null;
  readonly p95: number | null;
  readonly cost: number;
  readonly hits: number;
  /** Requests with a known cache result. */
  readonly looked: number;
}

export interface Measures {
  readonly step: number;
  readonly buckets: readonly Bucket[];
  readonly whole: Bucket;
}

/** The value below which this share of the numbers is; they need not be sorted. */
export function percentile(numbers: readonly number[], share: number): number | null {
  if (numbers.length === 0) return null;
  const sorted = numbers.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? null;
}

function bucket(at: number, rows: readonly Summary[]): Bucket {
  const durations = rows.flatMap((one) => one.phase === "ended" && one.duration !== undefined && !hasFailed(one) ? [one.duration] : []);
  const looked = rows.filter((one) => one.cache === "hit" || one.cache === "miss");
  return {
    at,
    requests: rows.length,
    failed: rows.filter(hasFailed).length,
    p50: percentile(durations, 0.5),
    p95: percentile(durations, 0.95),
    cost: rows.reduce((sum, one) => sum + (one.cost ?? 0), 0),
    hits: looked.filter((one) => one.cache === "hit").length,
    looked: looked.length,
  };
}

/** In as many equal steps as a small chart can show, the last of which is now. */
export function measures(rows: readonly Summary[], now: number): Measures {
  const oldest = rows.reduce((least, one) => Math.min(least, one.at), now);
  const step = STEPS.find((one) => (now - oldest) / one <= MOST - 1) ?? Math.ceil((now - oldest) / (MOST - 1));
  const last = Math.floor(now / step);
  const first = Math.max(last - MOST + 1, Math.min(Math.floor(oldest / step) - 1, last - LEAST + 1));
  const sorted = new Map<number, Summary[]>();
  for (const one of rows) {
    const place = Math.min(last, Math.floor(one.at / step));
    const group = sorted.get(place);
    if (group === undefined) sorted.set(place, [one]);
    else group.push(one);
  }
  const buckets = Array.from({ length: last - first + 1 }, (_, place) => bucket((first + place) * step, sorted.get(first + place) ?? []));
  return { step, buckets, whole: bucket(oldest, rows) };
}
