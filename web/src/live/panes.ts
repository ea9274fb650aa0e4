// The views of a request, side by side.

import { copy } from "../clipboard.ts";
import { type Child, button, element } from "../dom.ts";
import { type View, counted, view } from "../json/view.ts";
import { lossCount, lossList } from "../losses.ts";
import type { Loss, Meant, Shown } from "./types.ts";
import { bytes, formatChip } from "./display.ts";

export interface Pane {
  readonly element: HTMLElement;
  readonly view: View | null;
}

interface Caption {
  readonly title: string;
  readonly format?: string | undefined;
  readonly about?: Child;
  readonly headers?: Record<string, string>;
  /** Text shown if there is nothing else. */
  readonly none: string;
}

function pane(caption: Caption, text: string | null, notes: Child[] = []): Pane {
  const body = text === null || text === "" ? null : view(text, caption.title);
  const head = element("div", { class: "pane-head" },
    element("h3", {}, caption.title),
    element("span", { class: "space" }),
    text ? button("Copy", () => void copy(text, caption.title), { class: "small", "aria-label": `Copy: ${caption.title}` }) : null,
  );
  const format = caption.format ? formatChip(caption.format) : null;
  const about = caption.about || format ? element("p", { class: "about" }, format, caption.about) : null;
  const shown = body?.element ?? element("p", { class: "soft none" }, caption.none);
  const made = element("section", { class: "pane", "aria-label": caption.title }, head, about, headerTable(caption.headers), ...notes, shown);
  return { element: made, view: body };
}

export function bodyPane(caption: Caption, shown: Shown | null | undefined): Pane {
  const words = shown?.is_cut ? `Truncated: only the first ${bytes(shown.text.length)} of ${bytes(shown.size)} were kept.` : null;
  const cut = words === null ? null : element("p", { class: "note" }, words);
  return pane({ ...caption, about: caption.about ?? (shown ? bytes(shown.size) : null) }, shown?.text ?? null, [cut]);
}

export function meantPane(meant: Meant | null | undefined, title = "Intermediate format"): Pane {
  const problem = meant?.problem;
  const note = problem ? element("p", { class: "problem" }, problem.message) : null;
  return pane({ title, about: "the same for all formats", none: problem ? "" : "nothing to decode" }, meant?.text ?? null, [note]);
}

export function lossPane(losses: readonly Loss[], choose: (loss: Loss) => boolean, failure = ""): HTMLElement {
  const number = lossCount(losses);
  const count = number ? element("span", { class: "tally" }, String(number)) : null;
  const head = element("div", { class: "pane-head" }, element("h3", {}, "Losses"), count);
  return element("section", { class: "pane losses-pane", "aria-label": "Losses" }, head, lossList(losses, choose, failure));
}

/** Side by side; on narrow screens one at a time, selected above. */
export class Panes {
  readonly element: HTMLElement;
  readonly #panes: readonly HTMLElement[];
  readonly #picks: readonly HTMLButtonElement[];

  constructor(panes: readonly (readonly [label: string, pane: HTMLElement])[]) {
    this.#panes = panes.map(([, pane]) => pane);
    this.#picks = panes.map(([label], place) => button(label, () => this.show(place), { "aria-pressed": "false" }));
    const picks = element("div", { class: "pane-picks", role: "group", "aria-label": "Views" }, ...this.#picks);
    this.element = element("div", { class: "panes" }, picks, ...this.#panes);
    this.show(0);
  }

  show(place: number): void {
    this.#panes.forEach((pane, index) => pane.classList.toggle("picked", index === place));
    this.#picks.forEach((pick, index) => pick.setAttribute("aria-pressed", String(index === place)));
  }
}


function headerTable(headers: Record<string, string> | undefined): HTMLElement | null {
  const entries = Object.entries(headers ?? {});
  if (entries.length === 0) return null;
  const rows = entries.map(([name, value]) => element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, value)));
  const table = element("table", {}, element("tbody", {}, ...rows));
  return element("details", { class: "headers" }, element("summary", {}, counted(entries.length, "header")), table);
}
