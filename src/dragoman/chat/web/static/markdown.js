// Markdown as elements. Text only ever becomes text nodes, so nothing a model says can be markup or script.

const INLINE = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*([^*\n]+(?:\*[^*\n]+)*)\*\*|(?<![\w*])[*_]([^*_\n]+)[*_](?![\w*])|~~([^~\n]+)~~|\[([^\]\n]+)\]\(([^()\s]+)\)|(https?:\/\/[^\s<>()]+[^\s<>().,;:!?'"])/g;
const SAFE = /^(https?:|mailto:)/i;

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function link(text, address) {
  if (!SAFE.test(address)) return document.createTextNode(text);
  return element("a", { href: address, rel: "noopener noreferrer nofollow", target: "_blank" }, text);
}

function inline(text) {
  const out = [];
  let last = 0;
  for (const found of text.matchAll(INLINE)) {
    out.push(text.slice(last, found.index));
    const [whole, , code, bold, italic, struck, label, address, bare] = found;
    if (code !== undefined) out.push(element("code", {}, code));
    else if (bold !== undefined) out.push(element("strong", {}, ...inline(bold)));
    else if (italic !== undefined) out.push(element("em", {}, ...inline(italic)));
    else if (struck !== undefined) out.push(element("del", {}, struck));
    else if (label !== undefined) out.push(link(label, address));
    else out.push(link(bare, bare));
    last = found.index + whole.length;
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

function codeBlock(code, language) {
  const copy = element("button", { type: "button", class: "copy-code" }, "Copy");
  copy.addEventListener("click", () => navigator.clipboard.writeText(code));
  return element("div", { class: "code" }, copy, element("pre", { tabindex: "0" }, element("code", { "data-language": language }, code)));
}

function cells(line, tag) {
  return ROW.exec(line)[1].split("|").map((cell) => element(tag, {}, ...inline(cell.trim())));
}

// One reader per kind of block: (lines, place) -> [element, next place], or null.
const BLOCKS = [
  function fence(lines, at) {
    const open = FENCE.exec(lines[at]);
    if (!open) return null;
    let end = at + 1;
    while (end < lines.length && !lines[end].trim().startsWith(open[1])) end += 1;
    return [codeBlock(lines.slice(at + 1, end).join("\n"), open[2]), end + 1];
  },
  function heading(lines, at) {
    const found = HEADING.exec(lines[at]);
    return found && [element(`h${Math.min(6, found[1].length + 2)}`, {}, ...inline(found[2])), at + 1];
  },
  function rule(lines, at) {
    return RULE.test(lines[at]) ? [element("hr"), at + 1] : null;
  },
  function quote(lines, at) {
    if (!QUOTE.test(lines[at])) return null;
    const inner = [];
    while (at < lines.length && QUOTE.test(lines[at])) inner.push(QUOTE.exec(lines[at++])[1]);
    return [element("blockquote", {}, ...blocks(inner)), at];
  },
  function table(lines, at) {
    if (!ROW.test(lines[at]) || !/^\s*\|[\s:|-]+\|\s*$/.test(lines[at + 1] ?? "")) return null;
    const head = element("tr", {}, ...cells(lines[at], "th"));
    const rows = [];
    for (at += 2; at < lines.length && ROW.test(lines[at]); at += 1) rows.push(element("tr", {}, ...cells(lines[at], "td")));
    return [element("div", { class: "table", tabindex: "0" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows))), at];
  },
  function list(lines, at) {
    const first = ITEM.exec(lines[at]);
    if (!first) return null;
    const made = element(/\d/.test(first[2]) ? "ol" : "ul");
    while (at < lines.length) {
      const item = ITEM.exec(lines[at]);
      if (!item || item[1].length < first[1].length) break;
      const own = [item[3]];
      const deeper = first[1].length + 1;
      for (at += 1; at < lines.length; at += 1) {
        const indent = lines[at].length - lines[at].trimStart().length;
        if (lines[at].trim() === "" ? !/^\s+\S/.test(lines[at + 1] ?? "") : indent < deeper) break;
        own.push(lines[at].slice(Math.min(indent, item[1].length + 2)));
      }
      made.append(element("li", {}, ...(own.length > 1 ? blocks(own) : inline(own[0]))));
      while (at < lines.length && lines[at].trim() === "" && ITEM.test(lines[at + 1] ?? "")) at += 1;
    }
    return [made, at];
  },
];

function paragraph(lines, at) {
  const own = [lines[at]];
  for (at += 1; at < lines.length && lines[at].trim() !== "" && !BLOCKS.some((read) => read(lines, at)); at += 1) own.push(lines[at]);
  const pieces = own.flatMap((line, index) => (index ? [element("br"), ...inline(line)] : inline(line)));
  return [element("p", {}, ...pieces), at];
}

function blocks(lines) {
  const out = [];
  let at = 0;
  while (at < lines.length) {
    if (lines[at].trim() === "") {
      at += 1;
      continue;
    }
    let found = null;
    for (const read of BLOCKS) if ((found = read(lines, at))) break;
    const [made, next] = found ?? paragraph(lines, at);
    out.push(made);
    at = next;
  }
  return out;
}

export function markdown(text) {
  return blocks(String(text).split("\n"));
}
