// Parses JSON into a tree over the text itself, so that numbers, escapes and duplicate keys stay unchanged.

export type Leaf = "string" | "number" | "word";

export interface Item {
  readonly kind: Leaf | "object" | "array";
  /** Its position in the text. */
  readonly start: number;
  readonly end: number;
  readonly entries: readonly Entry[];
}

export interface Entry {
  /** The name within an object, without quotes and escapes; of an array, the number. */
  readonly key: string;
  /** Where it begins: with its name. */
  readonly start: number;
  readonly item: Item;
}

/** Why a text is not JSON, and where. */
export class NotJson extends Error {
  readonly place: number;

  constructor(place: number) {
    super(`invalid JSON at character ${place}`);
    this.place = place;
  }
}

const DEEPEST = 2000;
const NONE: readonly Entry[] = [];
const SPACE = /[ \t\r\n]*/y;
const QUOTE = 34;
const BACKSLASH = 92;
const FIRST_PRINTABLE = 32;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;

export function parse(text: string): Item {
  const reader = new Reader(text);
  const item = reader.value(0);
  reader.space();
  if (reader.place < text.length) throw new NotJson(reader.place);
  return item;
}

/** The tree, or null if the text is not JSON. */
export function tryParse(text: string): Item | null {
  try {
    return parse(text);
  } catch (problem) {
    if (problem instanceof NotJson) return null;
    throw problem;
  }
}

class Reader {
  place = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  value(depth: number): Item {
    this.space();
    const start = this.place;
    const first = this.#text[start];
    if (depth > DEEPEST) throw new NotJson(start);
    if (first === "{") return this.#many("object", "}", start, depth);
    if (first === "[") return this.#many("array", "]", start, depth);
    if (first === '"') return { kind: "string", start, end: this.#string(), entries: NONE };
    if (first === "t" || first === "f" || first === "n") return this.#leaf("word", WORD, start);
    return this.#leaf("number", NUMBER, start);
  }

  space(): void {
    this.#take(SPACE);
  }

  #many(kind: "object" | "array", close: string, start: number, depth: number): Item {
    const entries: Entry[] = [];
    this.place += 1;
    this.space();
    if (this.#text[this.place] === close) this.place += 1;
    else {
      do entries.push(this.#entry(kind, entries.length, depth));
      while (this.#separated(close));
    }
    return { kind, start, end: this.place, entries };
  }

  #entry(kind: "object" | "array", number: number, depth: number): Entry {
    this.space();
    const start = this.place;
    if (kind === "array") return { key: String(number), start, item: this.value(depth + 1) };
    const name = this.#text.slice(start, this.#string());
    this.space();
    if (this.#text[this.place] !== ":") throw new NotJson(this.place);
    this.place += 1;
    return { key: unquote(name), start, item: this.value(depth + 1) };
  }

  /** Whether another one follows. */
  #separated(close: string): boolean {
    this.space();
    const next = this.#text[this.place];
    if (next !== "," && next !== close) throw new NotJson(this.place);
    this.place += 1;
    return next === ",";
  }

  /** The end of a string. Character by character: a regular expression over megabytes exhausts the stack. */
  #string(): number {
    if (this.#text.charCodeAt(this.place) !== QUOTE) throw new NotJson(this.place);
    let place = this.place + 1;
    for (;;) {
      const letter = this.#text.charCodeAt(place);
      if (letter === QUOTE) break;
      if (!(letter >= FIRST_PRINTABLE)) throw new NotJson(place); // also NaN, at the end
      place += letter === BACKSLASH ? 2 : 1;
    }
    this.place = place + 1;
    return this.place;
  }

  #leaf(kind: Leaf, pattern: RegExp, start: number): Item {
    if (this.#take(pattern) === null) throw new NotJson(start);
    return { kind, start, end: this.place, entries: NONE };
  }

  #take(pattern: RegExp): string | null {
    pattern.lastIndex = this.place;
    const found = pattern.exec(this.#text);
    if (found === null) return null;
    this.place = pattern.lastIndex;
    return found[0];
  }
}

export function unquote(text: string): string {
  try {
    return JSON.parse(text) as string;
  } catch {
    return text.slice(1, -1);
  }
}

// ── paths ──

const STEP = /\.([^.[]+)|\[(\d+)\]/g;

/** The steps of a path such as `$.messages[2].content`. */
export function steps(path: string): string[] {
  return [...path.matchAll(STEP)].map((found) => found[1] ?? found[2] ?? "");
}

export interface Found {
  readonly item: Item;
  /** Where it begins, its name included. */
  readonly start: number;
  /** Keys from the root to the item. */
  readonly way: readonly string[];
  /** Whether the whole path exists; otherwise this is its longest existing part. */
  readonly isExact: boolean;
}

/** The item at a path, or the nearest enclosing one. */
export function find(root: Item, path: string): Found {
  const way: string[] = [];
  let item = root;
  let { start } = root;
  for (const step of steps(path)) {
    // Of duplicate keys, the last one counts.
    const entry = item.entries.findLast((one) => one.key === step);
    if (entry === undefined) return { item, start, way, isExact: false };
    way.push(step);
    ({ item, start } = entry);
  }
  return { item, start, way, isExact: true };
}
