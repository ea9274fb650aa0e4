// The output of `dragoman inspect` as a tree.

import { element } from "../dom.ts";
import type { Described } from "./types.ts";

export function descriptionTree(node: Described): HTMLElement {
  return element("div", { class: "described", role: "group", "aria-label": "Description", tabindex: 0 }, element("ul", {}, branch(node)));
}

function branch(node: Described): HTMLElement {
  const line = element("div", {},
    element("span", { class: `head ${node.style ?? ""}` }, node.head),
    node.text ? element("span", { class: "text" }, ` ${node.text}`) : null,
    node.remark ? element("span", { class: "remark" }, `  ${node.remark}`) : null,
    node.warning ? element("span", { class: "warning" }, `  ${node.warning}`) : null,
  );
  const children = node.children ?? [];
  return element("li", {}, line, children.length ? element("ul", {}, ...children.map(branch)) : null);
}
