// Usage by key and model over time.

import "./usage.css";
import { call } from "../api.ts";
import { Chart } from "../charts.ts";
import { element } from "../dom.ts";
import { amount, money, percent } from "../live/display.ts";
import { attempt } from "../notices.ts";
import type { Section } from "../router.ts";
import { type Course, type Group, type Measure, course, days, nameOf, table, total } from "./sums.ts";
import type { Usage, UsageRow } from "./types.ts";

const EVERY = 10_000; // milliseconds
const MOST = 6; // distinguishable colours
const SPANS: readonly (readonly [string, string])[] = [["1", "Today"], ["7", "7 days"], ["30", "30 days"], ["90", "90 days"]];
const GROUPS: readonly (readonly [Group, string])[] = [["model", "By model"], ["key", "By key"]];
const MEASURES: readonly (readonly [Measure, string])[] = [["cost", "Cost"], ["requests", "Requests"], ["tokens", "Tokens"]];
const SHOWN: Record<Measure, (value: number) => string> = { cost: (value) => money(value), requests: (value) => amount(value), tokens: (value) => `${amount(value)} tokens` };

class UsageSection implements Section {
  readonly name = "usage";
  readonly label = "Usage";
  readonly keys: readonly [string, string][] = [];
  readonly #span = choice("Time", SPANS, "7");
  readonly #group = choice("Group", GROUPS, "model");
  readonly #measure = choice("Measure", MEASURES, "cost");
  readonly #totals = element("div", { class: "totals" });
  readonly #chart = new Chart("Over time", "large");
  readonly #legend = element("ul", { class: "legend" });
  readonly #table = element("div", { class: "facts-table", tabindex: 0, role: "region", "aria-label": "By key and model" });
  readonly #note = element("p", { class: "soft note", hidden: true });
  #usage: Usage | null = null;
  #timer: ReturnType<typeof setInterval> | undefined;

  mount(root: HTMLElement): void {
    const tools = element("div", { class: "row usage-tools" }, element("h1", {}, "Usage"), element("span", { class: "space" }), this.#span, this.#group, this.#measure);
    root.append(element("div", { class: "usage-page" }, tools, this.#note, this.#totals, this.#chart.element, this.#legend, this.#table));
    this.#span.addEventListener("change", () => void this.#load());
    for (const one of [this.#group, this.#measure]) one.addEventListener("change", () => this.#draw());
  }

  enter(): void {
    clearInterval(this.#timer);
    void this.#load();
    this.#timer = setInterval(() => void this.#load(), EVERY);
  }

  leave(): void {
    clearInterval(this.#timer);
  }

  readonly #load = attempt(async (): Promise<void> => {
    this.#usage = await call<Usage>("GET", `/live/usage?by=key,model,day&days=${this.#span.value}`);
    this.#draw();
  });

  #draw(): void {
    const usage = this.#usage;
    if (usage === null) return;
    const measure = this.#measure.value as Measure;
    const found = course(usage.rows, this.#group.value as Group, measure, days(Number(this.#span.value), Date.now()), MOST);
    this.#note.hidden = usage.kept;
    this.#note.textContent = "Only the last requests are counted: this gateway has no database. Set database under [server] in dragoman.toml to keep usage.";
    this.#totals.replaceChildren(...totals(usage.rows));
    this.#drawChart(found, measure);
    this.#table.replaceChildren(...(usage.rows.length === 0 ? [element("p", { class: "soft" }, "No usage in this period.")] : [tableOf(usage.rows)]));
  }

  #drawChart({ days: span, groups }: Course, measure: Measure): void {
    const shown = SHOWN[measure];
    const sum = groups.reduce((so, one) => so + one.total, 0);
    const named = (place: number): string => groups.flatMap((one) => (one.values[place] ? [`${one.name} ${shown(one.values[place] ?? 0)}`] : [])).join("\n");
    this.#chart.show({
      value: shown(sum),
      about: span.length === 1 ? (span[0] ?? "") : `${span[0]} to ${span.at(-1)}`,
      series: groups.map((one, place) => ({ kind: "bar", look: `series-${place + 1}`, values: one.values })),
      tip: (place) => `${span[place]}\n${named(place) || "nothing"}`,
      none: sum === 0 ? (measure === "cost" ? "no costs are known" : "nothing yet") : undefined,
    });
    this.#legend.replaceChildren(...groups.map((one, place) =>
      element("li", {}, element("span", { class: `swatch series-${place + 1}`, "aria-hidden": "true" }), one.name, element("b", {}, shown(one.total)))));
  }
}

function choice(label: string, options: readonly (readonly [string, string])[], chosen: string): HTMLSelectElement {
  return element("select", { class: "choice", "aria-label": label },
    ...options.map(([value, words]) => element("option", { value, selected: value === chosen }, words)));
}

function totals(rows: readonly UsageRow[]): HTMLElement[] {
  const sum = total(rows);
  const tile = (label: string, value: string, about = ""): HTMLElement =>
    element("div", { class: "total" }, element("span", { class: "label" }, label), element("b", {}, value), element("span", { class: "about" }, about));
  return [
    tile("Cost", money(sum.cost), sum.requests ? `${money(sum.cost / sum.requests)} each` : ""),
    tile("Requests", amount(sum.requests)),
    tile("Failed", percent(sum.failed, sum.requests), sum.failed ? `${amount(sum.failed)} ${sum.failed === 1 ? "request" : "requests"}` : ""),
    tile("Tokens in", amount(sum.input)),
    tile("Tokens out", amount(sum.output)),
  ];
}

function tableOf(rows: readonly UsageRow[]): HTMLElement {
  const heads = ["Key", "Model", "Requests", "Failed", "Tokens in", "Tokens out", "Cost"];
  const head = element("tr", {}, ...heads.map((name, place) => element("th", { scope: "col", class: place > 1 ? "number" : null }, name)));
  const body = table(rows).map((row) => element("tr", {},
    element("th", { scope: "row" }, nameOf(row, "key")), element("td", {}, nameOf(row, "model")),
    ...[amount(row.requests), row.failed ? `${amount(row.failed)} (${percent(row.failed, row.requests)})` : "0", amount(row.input), amount(row.output), money(row.cost)]
      .map((cell) => element("td", { class: "number" }, cell))));
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
}

export const usage: Section = new UsageSection();
