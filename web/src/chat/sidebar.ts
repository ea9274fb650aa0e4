// The list of conversations.

import { call } from "../api.ts";
import { button, element } from "../dom.ts";
import { attempt } from "../notices.ts";
import type { Row } from "./types.ts";

export interface SidebarActions {
  open(id: string | null): void;
  shown(): string | null;
  /** The name of the open conversation, which the server may have chosen. */
  named(name: string): void;
}

export class Sidebar {
  readonly node: HTMLElement;
  /** For small screens, where the list is out of sight. */
  readonly menu: HTMLButtonElement;
  readonly #actions: SidebarActions;
  readonly #list = element("ul", { id: "list" });
  readonly #search: HTMLInputElement;
  readonly #file: HTMLInputElement;

  constructor(actions: SidebarActions) {
    this.#actions = actions;
    const search = { id: "search", type: "search", placeholder: "Search", "aria-label": "Search conversations" };
    this.#search = element("input", { ...search, oninput: () => this.refresh() });
    this.#file = element("input", {
      id: "import-file",
      type: "file",
      accept: ".json,application/json",
      hidden: true,
      "aria-label": "Conversation to import",
      onchange: attempt(() => this.#import()),
    });
    const begin = { id: "new", class: "primary", title: "New conversation (Alt+N)" };
    this.node = element(
      "nav",
      { id: "sidebar", "aria-label": "Conversations" },
      element("div", { class: "row" }, this.#search, button("New", () => actions.open(null), begin)),
      this.#list,
      button("Import…", () => this.#file.click(), { id: "import" }),
      this.#file,
    );
    const labels = { "aria-label": "Show conversations", "aria-controls": "sidebar", "aria-expanded": "false" };
    this.menu = button("☰", () => this.#toggle(), { id: "menu", ...labels });
  }

  #toggle(): void {
    this.menu.setAttribute("aria-expanded", String(this.node.classList.toggle("open")));
  }

  close(): void {
    this.node.classList.remove("open");
    this.menu.setAttribute("aria-expanded", "false");
  }

  readonly refresh = attempt(async (): Promise<void> => {
    const words = this.#search.value.trim();
    const rows = await call<Row[]>("GET", `/chat/conversations?q=${encodeURIComponent(words)}`);
    this.#list.replaceChildren(...rows.map((row) => element("li", {}, this.#row(row))));
    const shown = rows.find((row) => row.id === this.#actions.shown());
    if (shown !== undefined) this.#actions.named(shown.name);
  });

  #row(row: Row): HTMLElement {
    const about = row.excerpt || [row.updated.slice(0, 16).replace("T", " "), row.models.join(", ")].filter((one) => one).join(" · ");
    const current = row.id === this.#actions.shown() ? "true" : null;
    const open = (): void => this.#actions.open(row.id);
    return element(
      "button",
      { type: "button", "aria-current": current, title: row.name, onclick: open },
      element("span", { class: row.running ? "busy" : null }, row.name),
      element("span", { class: "about" }, about),
    );
  }

  async #import(): Promise<void> {
    const [file] = this.#file.files ?? [];
    if (file === undefined) return;
    const document: unknown = JSON.parse(await file.text());
    this.#file.value = "";
    const given = { document, name: file.name.replace(/\.json$/, "") };
    const { id } = await call<{ id: string }>("POST", "/chat/conversations", given);
    this.#actions.open(id);
  }
}
