// Shows JSON indented, coloured and folded. Only unfolded nodes are in the document.

import { type Child, element } from "../dom.ts";
import { type Entry, type Item, find, tryParse } from "./parse.ts";

const LONG = 240; // characters of a string that are shown at once
const MANY = 100; // entries that are shown at once
const BUDGET = 700; // lines that are unfolded from the beginning
const MORE = 5000; // characters that one step unfolds of a very long string

export interface View {
  readonly element: HTMLElement;
  /** Unfolds and marks the value at a path; returns whether the whole path exists. */
  reveal(path: string): boolean;
  unmark(): void;
}

/** Shows any body: JSON as a tree, a stream by lines, anything else as text. */
export function view(text: string, label: string): View {
  const root = tryParse(text);
  if (root !== null) return new Tree(text, root, label);
  return new Plain(text, label);
}

const number = new Intl.NumberFormat("en");
export const counted = (count: number, noun: string): string => `${number.format(count)} ${noun}${count === 1 ? "" : "s"}`;

// ── trees ──

class Tree implements View {
  readonly element: HTMLElement;
  readonly #text: string;
  readonly #root: Item;
  readonly #lines = new Map<Item, Line>();
  #budget = BUDGET;
  #marked: HTMLElement | null = null;

  constructor(text: string, root: Item, label: string) {
    this.#text = text;
    this.#root = root;
    this.element = element("div", { class: "json", role: "group", "aria-label": label, tabindex: 0 });
    this.element.append(this.#line(root, null));
    this.#budget = 0;
  }

  reveal(path: string): boolean {
    this.unmark();
    const found = find(this.#root, path);
    let item = this.#root;
    for (const step of found.way) {
      const place = item.entries.findLastIndex((entry) => entry.key === step);
      this.#lines.get(item)?.show(place);
      item = item.entries[place]?.item ?? item;
    }
    const line = this.#lines.get(item);
    if (line !== undefined) {
      this.#marked = line.element;
      line.element.classList.add("marked");
      line.element.scrollIntoView({ block: "center" });
    }
    return found.isExact;
  }

  unmark(): void {
    this.#marked?.classList.remove("marked");
    this.#marked = null;
  }

  #line(item: Item, key: string | null): HTMLElement {
    this.#budget -= 1;
    const name = key === null ? [] : [element("span", { class: "key" }, JSON.stringify(key)), ": "];
    if (item.kind !== "object" && item.kind !== "array") {
      const line = element("div", { class: "line" }, ...name, this.#leaf(item));
      this.#lines.set(item, { element: line, show: () => undefined });
      return line;
    }
    const line = new Branch(item, name, this.#budget > 0, (entry) => this.#line(entry.item, item.kind === "object" ? entry.key : null));
    this.#lines.set(item, line);
    return line.element;
  }

  #leaf(item: Item): HTMLElement {
    const text = this.#text.slice(item.start, item.end);
    return item.kind === "string" ? string(text) : element("span", { class: item.kind }, text);
  }
}

interface Line {
  readonly element: HTMLElement;
  /** Unfolds far enough to include the entry of that index. */
  show(place: number): void;
}

/** An object or an array, whose entries are made when they are first shown. */
class Branch implements Line {
  readonly element: HTMLElement;
  readonly #item: Item;
  readonly #make: (entry: Entry) => HTMLElement;
  readonly #inside = element("div", { class: "inside" });
  readonly #fold: HTMLButtonElement | null;
  #shown = 0;

  constructor(item: Item, name: Child[], isOpen: boolean, make: (entry: Entry) => HTMLElement) {
    this.#item = item;
    this.#make = make;
    const [open, close] = item.kind === "object" ? ["{", "}"] : ["[", "]"];
    if (item.entries.length === 0) {
      this.#fold = null;
      this.element = element("div", { class: "line" }, ...name, `${open}${close}`);
      return;
    }
    const count = counted(item.entries.length, item.kind === "object" ? "entry" : "item").replace("entrys", "entries");
    this.#fold = element("button", { type: "button", class: "fold", "aria-label": `Fold or unfold ${count}`, onclick: () => this.#toggle() });
    const head = element("div", { class: "line head" }, this.#fold, ...name, open, element("span", { class: "count" }, `${count} ${close}`));
    this.element = element("div", { class: "branch" }, head, this.#inside, element("div", { class: "line close" }, close));
    this.#open(isOpen);
  }

  show(place: number): void {
    if (this.#inside.hidden) this.#open(true);
    while (this.#shown <= place && this.#shown < this.#item.entries.length) this.#more();
  }

  #toggle(): void {
    this.#open(this.#inside.hidden === true);
  }

  #open(isOpen: boolean): void {
    this.#inside.hidden = !isOpen;
    this.element.classList.toggle("folded", !isOpen);
    this.#fold?.setAttribute("aria-expanded", String(isOpen));
    if (isOpen && this.#shown === 0) this.#more();
  }

  #more(): void {
    this.#inside.querySelector(":scope > .more")?.remove();
    const next = this.#item.entries.slice(this.#shown, this.#shown + MANY);
    this.#inside.append(...next.map(this.#make));
    this.#shown += next.length;
    const left = this.#item.entries.length - this.#shown;
    if (left > 0) this.#inside.append(more(`${counted(left, "more item")}`, () => this.#more()));
  }
}

function more(label: string, run: () => void): HTMLButtonElement {
  return element("button", { type: "button", class: "more", onclick: run }, `… ${label}`);
}

/** A string as written; a button shows what exceeds a certain length. */
function string(text: string): HTMLElement {
  const shown = element("span", { class: "string" }, text.slice(0, LONG));
  let end = LONG;
  const unfold = (): void => {
    shown.append(text.slice(end, end + MORE));
    end += MORE;
    offer();
  };
  const offer = (): void => {
    shown.querySelector(".more")?.remove();
    if (end < text.length) shown.append(more(counted(text.length - end, "more character"), unfold));
  };
  offer();
  return shown;
}

// ── text that is not one JSON value ──

const STREAMED = /^(data|event|id|retry):\s?/;
const FIRST_LINES = 400;
const LONGEST_LINE = 200_000; // beyond it colours are not worth their time

/** Events or lines of JSON, each coloured by itself. */
class Plain implements View {
  readonly element: HTMLElement;
  readonly #lines: readonly string[];
  #shown = 0;

  constructor(text: string, label: string) {
    this.#lines = text.split("\n");
    this.element = element("div", { class: "json plain", role: "group", "aria-label": label, tabindex: 0 });
    this.#more();
  }

  reveal(): boolean {
    return false;
  }

  unmark(): void {}

  #more(): void {
    this.element.querySelector(":scope > .more")?.remove();
    const next = this.#lines.slice(this.#shown, this.#shown + FIRST_LINES);
    this.element.append(...next.map(inlineLine));
    this.#shown += next.length;
    const left = this.#lines.length - this.#shown;
    if (left > 0) this.element.append(more(counted(left, "more line"), () => this.#more()));
  }
}

function inlineLine(line: string): HTMLElement {
  const field = STREAMED.exec(line)?.[0] ?? "";
  const rest = line.slice(field.length);
  const made = element("div", { class: "line" }, field && element("span", { class: "field" }, field));
  made.append(...inline(rest));
  return made;
}

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d[\d.eE+-]*)|\b(true|false|null)\b/g;

/** One line of JSON, coloured; any other line as it is. */
function inline(text: string): (Node | string)[] {
  if (text.length > LONGEST_LINE) return [string(text)];
  if (!/^\s*[[{]/.test(text)) return [text];
  const pieces: (Node | string)[] = [];
  let place = 0;
  for (const found of text.matchAll(TOKEN)) {
    pieces.push(text.slice(place, found.index));
    place = found.index + found[0].length;
    const [, quoted, colon, digits, word] = found;
    if (quoted !== undefined && colon !== undefined) pieces.push(element("span", { class: "key" }, quoted), colon);
    else if (quoted !== undefined) pieces.push(string(quoted));
    else if (digits !== undefined) pieces.push(element("span", { class: "number" }, digits));
    else if (word !== undefined) pieces.push(element("span", { class: "word" }, word));
  }
  pieces.push(text.slice(place));
  return pieces;
}
