// Elements without a framework. Text only ever becomes text nodes, so nothing that is shown can be markup or script.

type Handler = (event: never) => unknown;
export type Attributes = Record<string, string | number | boolean | null | undefined | Handler>;
export type Child = Node | string | null | undefined;

/** `on…` adds a listener, `true` an attribute without a value; `false`, `null` and `undefined` are skipped. */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function") made.addEventListener(name.slice(2), value as EventListener);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function button(
  label: string,
  run: (event: MouseEvent) => unknown,
  attributes: Attributes = {},
): HTMLButtonElement {
  return element("button", { type: "button", onclick: run, ...attributes }, label);
}

/** An element that the page must have. */
export function byId<Kind extends HTMLElement = HTMLElement>(id: string): Kind {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found as Kind;
}

export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches("input, textarea, select"));
}
