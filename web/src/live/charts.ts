// The strip of charts above the list: requests, errors, latency, cost, cache hits.

import { Chart, type Drawn } from "../charts.ts";
import { element } from "../dom.ts";
import { counted } from "../json/view.ts";
import { type Bucket, type Measures, measures } from "./measures.ts";
import type { Summary } from "./types.ts";
import { clock, duration, money, percent } from "./display.ts";

const EVERY = 1000; // milliseconds

export class Charts {
  readonly element: HTMLElement;
  readonly #charts = {
    requests: new Chart("Requests"), errors: new Chart("Errors"), latency: new Chart("Latency"), cost: new Chart("Cost"), cache: new Chart("Cache hits"),
  };
  readonly #rows: () => readonly Summary[];
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(rows: () => readonly Summary[]) {
    this.#rows = rows;
    const all = Object.values(this.#charts).map((one) => one.element);
    this.element = element("section", { class: "charts", "aria-label": "Charts" }, ...all);
  }

  start(): void {
    this.stop();
    this.draw();
    this.#timer = setInterval(() => this.draw(), EVERY);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  draw(): void {
    const rows = this.#rows();
    this.element.hidden = rows.length === 0;
    if (rows.length === 0) return;
    const found = measures(rows, Date.now());
    this.#charts.requests.show(requests(found));
    this.#charts.errors.show(errors(found));
    this.#charts.latency.show(latency(found));
    this.#charts.cost.show(cost(found));
    this.#charts.cache.show(cache(found));
  }
}

type Words = (bucket: Bucket) => string;

function tip({ buckets }: Measures, words: Words): (place: number) => string {
  return (place) => {
    const found = buckets[place];
    return found === undefined ? "" : `${clock(found.at)}  ${words(found)}`;
  };
}

/** The time of each bar, such as `10 s`. */
const each = ({ step }: Measures): string => `each bar ${step < 60_000 ? `${step / 1000} s` : step < 3_600_000 ? `${step / 60_000} min` : `${step / 3_600_000} h`}`;

function requests(found: Measures): Drawn {
  return {
    value: found.whole.requests.toLocaleString("en"),
    about: each(found),
    series: [
      { kind: "bar", look: "good", values: found.buckets.map((one) => one.requests - one.failed) },
      { kind: "bar", look: "bad", values: found.buckets.map((one) => one.failed) },
    ],
    tip: tip(found, (one) => `${counted(one.requests, "request")}${one.failed ? `, ${one.failed} failed` : ""}`),
  };
}

function errors(found: Measures): Drawn {
  const { failed, requests: all } = found.whole;
  return {
    value: percent(failed, all),
    about: failed ? `${failed} of ${all}` : "none failed",
    series: [{ kind: "bar", look: "bad", values: found.buckets.map((one) => (one.requests ? one.failed / one.requests : 0)) }],
    tip: tip(found, (one) => `${percent(one.failed, one.requests)} (${one.failed} of ${one.requests})`),
  };
}

function latency(found: Measures): Drawn {
  const { p50, p95 } = found.whole;
  return {
    value: p50 === null ? "–" : duration(p50),
    about: p95 === null ? "" : `median · p95 ${duration(p95)}`,
    series: [
      { kind: "line", look: "p95", values: found.buckets.map((one) => one.p95) },
      { kind: "line", look: "p50", values: found.buckets.map((one) => one.p50) },
    ],
    tip: tip(found, (one) => (one.p50 === null ? "nothing answered" : `median ${duration(one.p50)}, p95 ${duration(one.p95 ?? 0)}`)),
    none: p50 === null ? "nothing answered yet" : undefined,
  };
}

function cost(found: Measures): Drawn {
  return {
    value: money(found.whole.cost),
    about: found.whole.requests ? `${money(found.whole.cost / found.whole.requests)} each` : "",
    series: [{ kind: "bar", look: "spent", values: found.buckets.map((one) => one.cost) }],
    tip: tip(found, (one) => money(one.cost)),
    none: found.whole.cost === 0 ? "no prices known" : undefined,
  };
}

function cache(found: Measures): Drawn {
  const { hits, looked } = found.whole;
  return {
    value: looked ? percent(hits, looked) : "–",
    about: looked ? `${hits} of ${looked}` : "",
    series: [{ kind: "bar", look: "hit", values: found.buckets.map((one) => (one.looked ? one.hits / one.looked : 0)) }],
    tip: tip(found, (one) => `${percent(one.hits, one.looked)} (${one.hits} of ${one.looked})`),
    none: looked ? undefined : "the cache is off",
  };
}
