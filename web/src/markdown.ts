// Markdown as elements. Text only ever becomes text nodes, so nothing a model says can be markup or script.

import { copy } from "./clipboard.ts";
import { button, element } from "./dom.ts";

type Piece = Node | string;
type Read = readonly [made: HTMLElement, next: number];

const INLINE = new RegExp(
  [
    "(?<ticks>`+)(?<code>[^`]|[^`][\\s\\S]*?[^`])\\k<ticks>(?!`)",
    "\\*\\*(?<bold>[^*\\n]+(?:\\*[^*\\n]+\\*?)*)\\*\\*(?!\\*)",
    "(?<![\\w*])[*_](?<italic>[^*_\\s](?:[^*_\\n]*[^*_\\s])?)[*_](?![\\w*])",
    "~~(?<struck>[^~\\n]+)~~",
    "\\[(?<label>[^\\[\\]\\n]+)\\]\\((?<address>[^()\\s]+)\\)",
    "(?<bare>https?:\\/\\/[^\\s<>()]+[^\\s<>().,;:!?'\"])",
  ].join("|"),
  "g",
);
const SAFE = /^(https?:|mailto:)/i;

function link(text: string, address: string): Piece {
  if (!SAFE.test(address)) return text;
  return element("a", { href: address, rel: "noopener noreferrer nofollow", target: "_blank" }, text);
}

function inlinePiece(found: Record<string, string | undefined>): Piece {
  const { code, bold, italic, struck, label, address, bare } = found;
  if (code !== undefined) return element("code", {}, code);
  if (bold !== undefined) return element("strong", {}, ...inline(bold));
  if (italic !== undefined) return element("em", {}, ...inline(italic));
  if (struck !== undefined) return element("del", {}, struck);
  if (label !== undefined) return link(label, address ?? "");
  return link(bare ?? "", bare ?? "");
}

function inline(text: string): Piece[] {
  const out: Piece[] = [];
  let last = 0;
  for (const found of text.matchAll(INLINE)) {
    out.push(text.slice(last, found.index), inlinePiece(found.groups ?? {}));
    last = found.index + found[0].length;
  }
  out.push(text.slice(last));
  return out.filter((piece) => piece !== "");
}

const FENCE = /^\s*(`{3,}|~{3,})\s*([\w+-]*)/;
const HEADING = /^(#{1,6})\s+(.*)/;
const ITEM = /^(\s*)([-*+]|\d+[.)])\s+(.*)/;
const RULE = /^\s*([-*_])(\s*\1){2,}\s*$/;
const QUOTE = /^\s*>\s?(.*)/;
const ROW = /^\s*\|(.*)\|\s*$/;
const DELIMITERS = /^\s*\|[\s:|-]+\|\s*$/;
const DEEPEST = 20; // levels of quotes and lists; what is deeper is shown as text, because a model may answer anything
const HEADINGS = ["h3", "h4", "h5", "h6"] as const; // the page itself has the first two

function codeBlock(code: string, language: string): HTMLElement {
  const copier = button("Copy", () => copy(code, "Code"), { class: "copy-code" });
  const inner = element("code", { "data-language": language || null }, code);
  return element("div", { class: "code" }, copier, element("pre", { tabindex: 0 }, inner));
}

function cells(line: string, tag: "th" | "td"): HTMLElement[] {
  const row = ROW.exec(line)?.[1] ?? "";
  return row.split("|").map((cell) => element(tag, {}, ...inline(cell.trim())));
}

// One parser per kind of block: returns its element and the next line, or nothing.

function fence(lines: readonly string[], at: number): Read | null {
  const [, open = "", language = ""] = FENCE.exec(lines[at] ?? "") ?? [];
  if (!open) return null;
  let end = at + 1;
  while (end < lines.length && !lines[end]?.trim().startsWith(open)) end += 1;
  return [codeBlock(lines.slice(at + 1, end).join("\n"), language), end + 1];
}

function heading(lines: readonly string[], at: number): Read | null {
  const [, marks = "", text = ""] = HEADING.exec(lines[at] ?? "") ?? [];
  return marks ? [element(HEADINGS[marks.length - 1] ?? "h6", {}, ...inline(text)), at + 1] : null;
}

function rule(lines: readonly string[], at: number): Read | null {
  return RULE.test(lines[at] ?? "") ? [element("hr"), at + 1] : null;
}

function quote(lines: readonly string[], at: number, depth: number): Read | null {
  if (depth >= DEEPEST) return null;
  const inner: string[] = [];
  for (let found; (found = QUOTE.exec(lines[at] ?? "")); at += 1) inner.push(found[1] ?? "");
  return inner.length ? [element("blockquote", {}, ...blocks(inner, depth + 1)), at] : null;
}

function table(lines: readonly string[], at: number): Read | null {
  const first = lines[at] ?? "";
  if (!ROW.test(first) || !DELIMITERS.test(lines[at + 1] ?? "")) return null;
  const rows: HTMLElement[] = [];
  for (at += 2; ROW.test(lines[at] ?? ""); at += 1) rows.push(element("tr", {}, ...cells(lines[at] ?? "", "td")));
  const head = element("thead", {}, element("tr", {}, ...cells(first, "th")));
  const made = element("table", {}, head, element("tbody", {}, ...rows));
  return [element("div", { class: "table", tabindex: 0, role: "group", "aria-label": "Table" }, made), at];
}

const indentOf = (line: string): number => line.length - line.trimStart().length;
const isBlank = (line: string | undefined): boolean => line !== undefined && line.trim() === "";

function list(lines: readonly string[], at: number, depth: number): Read | null {
  const first = ITEM.exec(lines[at] ?? "");
  if (first === null || depth >= DEEPEST) return null;
  const indent = first[1]?.length ?? 0;
  const made = element(/\d/.test(first[2] ?? "") ? "ol" : "ul");
  while (at < lines.length) {
    const item = ITEM.exec(lines[at] ?? "");
    if (item === null || (item[1]?.length ?? 0) < indent) break;
    const [own, next] = itemLines(lines, at, item, indent);
    made.append(element("li", {}, ...(own.length > 1 ? blocks(own, depth + 1) : inline(own[0] ?? ""))));
    at = next;
    while (isBlank(lines[at]) && ITEM.test(lines[at + 1] ?? "")) at += 1;
  }
  return [made, at];
}

/** What belongs to one item: its own line, and all that is deeper. */
function itemLines(lines: readonly string[], at: number, item: RegExpExecArray, indent: number): [string[], number] {
  const own = [item[3] ?? ""];
  for (at += 1; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    const ends = isBlank(line) ? !/^\s+\S/.test(lines[at + 1] ?? "") : indentOf(line) <= indent;
    if (ends) break;
    own.push(line.slice(Math.min(indentOf(line), (item[1]?.length ?? 0) + 2)));
  }
  return [own, at];
}

const BLOCKS = [fence, heading, rule, quote, table, list];

function block(lines: readonly string[], at: number, depth: number): Read | null {
  for (const read of BLOCKS) {
    const found = read(lines, at, depth);
    if (found) return found;
  }
  return null;
}

/** Whether a block begins here. Without reading it: a paragraph before a nested list would read each level twice. */
function begins(lines: readonly string[], at: number, depth: number): boolean {
  const line = lines[at] ?? "";
  if ([FENCE, HEADING, RULE].some((start) => start.test(line))) return true;
  if (depth < DEEPEST && (QUOTE.test(line) || ITEM.test(line))) return true;
  return ROW.test(line) && DELIMITERS.test(lines[at + 1] ?? "");
}

function paragraph(lines: readonly string[], at: number, depth: number): Read {
  const own = [lines[at] ?? ""];
  for (at += 1; at < lines.length && !isBlank(lines[at]) && !begins(lines, at, depth); at += 1) own.push(lines[at] ?? "");
  const pieces = own.flatMap((line, index) => (index ? [element("br"), ...inline(line)] : inline(line)));
  return [element("p", {}, ...pieces), at];
}

function blocks(lines: readonly string[], depth = 0): HTMLElement[] {
  const out: HTMLElement[] = [];
  for (let at = 0; at < lines.length; ) {
    if (isBlank(lines[at])) {
      at += 1;
      continue;
    }
    const [made, next] = block(lines, at, depth) ?? paragraph(lines, at, depth);
    out.push(made);
    at = next;
  }
  return out;
}

export function markdown(text: string): HTMLElement[] {
  return blocks(text.split("\n"));
}
