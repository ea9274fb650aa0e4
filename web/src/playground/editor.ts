// The editor for a body.

import { element } from "../dom.ts";
import { find, tryParse } from "../json/parse.ts";
import { formatName } from "../live/display.ts";
import { EXAMPLES } from "./examples.ts";
import type { Group, Kind } from "./types.ts";

const GROUPS: Record<Group, string> = { wire: "APIs", record: "Stored histories", compatible: "Compatible servers" };
const KINDS: readonly Kind[] = ["request", "response", "stream", "error"];

export type Formats = Readonly<Record<Group, readonly string[]>>;

export class Editor {
  readonly element: HTMLElement;
  readonly area = element("textarea", {
    class: "given", spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-label": "Body to convert",
    placeholder: "Paste a request, an answer, an error, a recorded stream or a stored history",
  });
  readonly #format = element("select", { "aria-label": "Format" }, element("option", { value: "auto" }, "Any format"));
  readonly #kind = element("select", { "aria-label": "Kind" }, element("option", { value: "auto" }, "Any kind"),
    ...KINDS.map((kind) => element("option", { value: kind }, kind)));
  readonly #examples = element("select", { "aria-label": "Examples" }, element("option", { value: "" }, "Examples …"),
    ...EXAMPLES.map((example, place) => element("option", { value: place }, example.label)));
  readonly #changed: (isNow: boolean) => void;

  constructor(changed: (isNow: boolean) => void) {
    this.#changed = changed;
    const chosen = (): void => changed(true);
    this.#format.addEventListener("change", chosen);
    this.#kind.addEventListener("change", chosen);
    this.#examples.addEventListener("change", () => this.#load());
    this.area.addEventListener("input", () => changed(false));
    this.element = element("div", { class: "editor" }, element("div", { class: "row" }, this.#examples, this.#format, this.#kind), this.area);
  }

  offer(formats: Formats): void {
    for (const group of Object.keys(GROUPS) as Group[]) {
      const options = formats[group].map((name) => element("option", { value: name }, group === "wire" ? formatName(name) : name));
      this.#format.append(element("optgroup", { label: GROUPS[group] }, ...options));
    }
  }

  get given(): { text: string; format: string; kind: string } {
    return { text: this.area.value, format: this.#format.value, kind: this.#kind.value };
  }

  give(text: string, format = "auto", kind = "auto"): void {
    this.area.value = text;
    this.#format.value = format;
    this.#kind.value = kind;
    this.#changed(true);
  }

  #load(): void {
    const example = EXAMPLES[Number(this.#examples.value)];
    const isOne = this.#examples.value !== "" && example !== undefined;
    this.#examples.value = "";
    if (isOne) this.give(example.text);
  }

  /** Selects the value at a path; returns whether the whole path exists. */
  reveal(path: string): boolean {
    const root = tryParse(this.area.value);
    if (root === null) return false;
    const found = find(root, path);
    this.select(found.start, found.item.end);
    return found.isExact;
  }

  select(start: number, end: number): void {
    const { area } = this;
    area.focus();
    // A textarea scrolls to the caret only if there was no text after it when it was set.
    const text = area.value;
    area.value = text.slice(0, end);
    area.scrollTop = area.scrollHeight;
    const below = area.scrollTop;
    area.value = text;
    area.scrollTop = below === 0 ? 0 : below + area.clientHeight / 2;
    area.setSelectionRange(start, end);
  }
}
