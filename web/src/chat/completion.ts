// Completions of a mention: a list above the box, chosen by keyboard or mouse.

import { element } from "../dom.ts";
import { completions } from "./mentions.ts";
import type { Model } from "./types.ts";

export class Completion {
  readonly node = element("ul", { id: "mentions", role: "listbox", "aria-label": "Models", hidden: true });
  readonly #box: HTMLTextAreaElement;
  readonly #models: () => readonly Model[];
  readonly #completed: () => void;
  #picked = 0;

  constructor(box: HTMLTextAreaElement, models: () => readonly Model[], completed: () => void) {
    this.#box = box;
    this.#models = models;
    this.#completed = completed;
    box.addEventListener("blur", () => this.#hide());
  }

  #offered(): { name: string; about: string }[] {
    return completions(this.#box.value.slice(0, this.#box.selectionStart), this.#models());
  }

  show(): void {
    const offered = this.#offered();
    this.#picked = Math.min(this.#picked, Math.max(0, offered.length - 1));
    this.node.replaceChildren(...offered.map(({ name, about }, index) => this.#row(name, about, index)));
    this.node.hidden = offered.length === 0;
    if (offered.length) this.#box.setAttribute("aria-activedescendant", `mention-${this.#picked}`);
    else this.#box.removeAttribute("aria-activedescendant");
  }

  #row(name: string, about: string, index: number): HTMLElement {
    const choose = (event: Event): void => {
      event.preventDefault(); // the box keeps the focus
      this.#complete(name);
    };
    const selected = String(index === this.#picked);
    const attributes = { role: "option", id: `mention-${index}`, "aria-selected": selected, onmousedown: choose };
    return element("li", attributes, `@${name} `, element("small", {}, about));
  }

  #hide(): void {
    this.node.hidden = true;
    this.#box.removeAttribute("aria-activedescendant");
  }

  #complete(name: string): void {
    const start = this.#box.value.lastIndexOf("@", this.#box.selectionStart - 1);
    this.#box.setRangeText(`@${name} `, start, this.#box.selectionStart, "end");
    this.#completed();
  }

  #pick(step: number, count: number): void {
    this.#picked = (this.#picked + step + count) % count;
    this.show();
  }

  /** Whether the list handled the key: then Esc does not stop answers. */
  pressed(event: KeyboardEvent): boolean {
    const offered = this.node.hidden ? [] : this.#offered();
    const chosen = offered[this.#picked];
    if (chosen === undefined) return false;
    const keys: Record<string, () => void> = {
      ArrowDown: () => this.#pick(1, offered.length),
      ArrowUp: () => this.#pick(-1, offered.length),
      Tab: () => this.#complete(chosen.name),
      Enter: () => this.#complete(chosen.name),
      Escape: () => this.#hide(),
    };
    const work = keys[event.key];
    if (work === undefined) return false;
    event.preventDefault();
    event.stopPropagation();
    work();
    return true;
  }
}
