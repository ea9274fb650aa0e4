// The feed as a virtual list: only visible rows are in the document.

import { element } from "../dom.ts";
import { hasFailed } from "./feed.ts";
import type { Summary } from "./types.ts";
import { amount, clock, duration, formatChip, money } from "./display.ts";

const ROW = 38; // pixels, as in live.css
const TALL = 58; // where a row has two lines: on a phone
const NARROW = 672; // pixels of the list, as in live.css
const AROUND = 8; // rows beyond the edges

/** A row in the document. */
interface Row {
  readonly element: HTMLElement;
  summary: Summary;
  place: number;
  total: number;
  isChosen: boolean;
}

export class List {
  readonly element: HTMLElement;
  readonly #inner = element("div", { class: "inner", role: "presentation" });
  readonly #open: (id: string) => void;
  #rows: readonly Summary[] = [];
  #shown = new Map<string, Row>();
  #cursor: string | null = null;
  #isDue = false;
  #height = ROW;

  constructor(open: (id: string) => void) {
    this.#open = open;
    this.element = element("div", { class: "rows", role: "listbox", tabindex: 0, "aria-label": "Requests, newest first" }, this.#inner);
    this.element.addEventListener("scroll", () => this.#soon());
    this.element.addEventListener("click", (event) => this.#clicked(event));
    new ResizeObserver(() => this.#resized()).observe(this.element);
  }

  show(rows: readonly Summary[]): void {
    const before = this.#rows;
    this.#rows = rows;
    // Keep the same requests in view while new ones are added above.
    const first = before[Math.floor(this.element.scrollTop / this.#height)];
    if (this.element.scrollTop >= this.#height && first !== undefined) {
      const moved = rows.findIndex((one) => one.id === first.id) - before.indexOf(first);
      if (moved > 0) this.element.scrollTop += moved * this.#height;
    }
    this.#soon();
  }

  #resized(): void {
    const height = this.element.clientWidth <= NARROW ? TALL : ROW;
    if (height !== this.#height) {
      const first = this.element.scrollTop / this.#height;
      this.#height = height;
      for (const row of this.#shown.values()) row.place = -1;
      this.element.scrollTop = first * height;
    }
    this.#soon();
  }

  get cursor(): string | null {
    return this.#cursor;
  }

  point(id: string | null): void {
    this.#cursor = id;
    const place = this.#rows.findIndex((one) => one.id === id);
    if (place >= 0) {
      const top = place * this.#height;
      if (top < this.element.scrollTop) this.element.scrollTop = top;
      else if (top + this.#height > this.element.scrollTop + this.element.clientHeight) this.element.scrollTop = top + this.#height - this.element.clientHeight;
    }
    this.#soon();
  }

  /** The id so many rows further, or the end of the list. */
  neighbour(steps: number): string | null {
    const place = this.#rows.findIndex((one) => one.id === this.#cursor);
    const next = place < 0 ? 0 : Math.max(0, Math.min(this.#rows.length - 1, place + steps));
    return this.#rows[next]?.id ?? null;
  }

  #clicked(event: MouseEvent): void {
    const row = event.target instanceof Element ? event.target.closest<HTMLElement>(".request") : null;
    const id = row?.dataset["id"];
    if (id !== undefined) this.#open(id);
  }

  #soon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    requestAnimationFrame(() => {
      this.#isDue = false;
      this.#draw();
    });
  }

  #made(summary: Summary): Row {
    const { id } = summary;
    const row = element("div", { class: "request", role: "option", id: `row-${id}`, "data-id": id, "aria-selected": "false" });
    fill(row, summary);
    this.#inner.append(row);
    return { element: row, summary, place: -1, total: -1, isChosen: false };
  }

  /** Updates only what changed. */
  #put(row: Row, place: number): void {
    const [total, isChosen] = [this.#rows.length, row.summary.id === this.#cursor];
    if (row.place !== place) {
      row.element.style.transform = `translateY(${place * this.#height}px)`;
      row.element.setAttribute("aria-posinset", String(place + 1));
    }
    if (row.total !== total) row.element.setAttribute("aria-setsize", String(total));
    if (row.isChosen !== isChosen) row.element.setAttribute("aria-selected", String(isChosen));
    Object.assign(row, { place, total, isChosen });
  }

  #draw(): void {
    const first = Math.max(0, Math.floor(this.element.scrollTop / this.#height) - AROUND);
    const last = Math.min(this.#rows.length, Math.ceil((this.element.scrollTop + this.element.clientHeight) / this.#height) + AROUND);
    const shown = new Map<string, Row>();
    for (let place = first; place < last; place += 1) {
      const summary = this.#rows[place];
      if (summary === undefined) continue;
      const row = this.#shown.get(summary.id) ?? this.#made(summary);
      if (row.summary !== summary) fill(row.element, (row.summary = summary));
      this.#put(row, place);
      shown.set(summary.id, row);
    }
    for (const [id, row] of this.#shown) if (!shown.has(id)) row.element.remove();
    this.#shown = shown;
    this.#inner.style.height = `${this.#rows.length * this.#height}px`;
    if (this.#cursor !== null && shown.has(this.#cursor)) this.element.setAttribute("aria-activedescendant", `row-${this.#cursor}`);
    else this.element.removeAttribute("aria-activedescendant");
  }
}

/** Reuses the row's element, so that a click in progress is not lost. */
function fill(row: HTMLElement, summary: Summary): void {
  const { tokens } = summary;
  row.dataset["phase"] = summary.phase;
  row.dataset["new"] = String(Date.now() - summary.at < 2000);
  row.classList.toggle("has-failed", hasFailed(summary));
  row.replaceChildren(
    element("span", { class: "time" }, clock(summary.at)),
    badge(summary),
    element("span", { class: "pair" }, ...pair(summary)),
    element("span", { class: "model" }, element("span", { class: "name" }, summary.model ?? ""), ...marks(summary), errorOf(summary)),
    cell("key", summary.key ?? "", " key"),
    cell("tokens", tokens ? `${amount(tokens.input)} → ${amount(tokens.output)}` : "", " tokens"),
    cell("cost", money(summary.cost), " cost"),
    cell("first", duration(summary.first_byte), " to the first byte"),
    cell("duration", duration(summary.duration), " in all"),
    cell("lost", summary.losses ? element("span", { class: "tally" }, String(summary.losses)) : "", " lost"),
  );
}

/** The reason of a failure, in the most visible column. */
function errorOf(summary: Summary): HTMLElement | null {
  if (!hasFailed(summary)) return null;
  const words = summary.error || summary.failure?.replaceAll("_", " ") || "";
  return element("span", { class: "error", title: words }, words);
}

/** The column header as text in the row, for screen readers. */
function cell(name: string, shown: HTMLElement | string, meaning: string): HTMLElement {
  return element("span", { class: name }, shown, shown === "" ? null : element("span", { class: "sr" }, meaning));
}

/** Badges after the model. */
function marks({ stream, operation, attempts = 0, cache }: Summary): HTMLElement[] {
  const parts: (false | HTMLElement)[] = [
    stream === true && element("span", { class: "streams", title: "streamed" }, "≋"),
    operation === "count" && element("span", { class: "mark" }, "counts tokens"),
    attempts > 1 && element("span", { class: "mark" }, `${attempts} attempts`),
    cache === "hit" && element("span", { class: "mark cached" }, "cached"),
  ];
  return parts.filter((one) => one !== false);
}

/** The client's format, and the upstream's if there was one. */
export function pair({ client, format }: Summary): HTMLElement[] {
  const upstream = format ? [element("span", { class: "arrow" }, "→"), formatChip(format)] : [];
  return [formatChip(client), ...upstream];
}

export function badge(summary: Summary): HTMLElement {
  if (summary.phase !== "ended") return element("span", { class: "status busy" }, summary.phase === "begun" ? "asking" : "answering");
  const kind = hasFailed(summary) ? "bad" : "good";
  return element("span", { class: `status ${kind}`, title: summary.failure ?? "" }, String(summary.status ?? ""));
}
