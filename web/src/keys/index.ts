// Keys of the gateway's clients: created, rotated and revoked by the administrator. A key is shown once.

import "../usage/usage.css";
import "./keys.css";
import { call } from "../api.ts";
import { copy } from "../clipboard.ts";
import { confirmAction, form, show } from "../dialogs.ts";
import { button, element } from "../dom.ts";
import { amount, money, percent } from "../live/display.ts";
import { attempt } from "../notices.ts";
import type { Section } from "../router.ts";

interface Key {
  readonly name: string;
  readonly models: readonly string[];
  readonly created: number;
  readonly expires: number | null;
  readonly requests_per_minute: number | null;
  readonly concurrent: number | null;
  readonly tokens_per_minute: number | null;
  readonly budget: number | null;
  readonly spent: number;
  readonly token_budget?: number | null;
  readonly spent_tokens?: number;
  readonly state: "good" | "revoked" | "expired";
}

interface Keys {
  /** Why keys cannot be managed here; empty if they can. */
  readonly refusal: string;
  /** With the first key, this page requires login. */
  readonly locks: boolean;
  readonly keys: readonly Key[];
}

const FIELDS: readonly (readonly [name: string, label: string, kind: "text" | "number", hint: string])[] = [
  ["name", "Name", "text", "who or what it is for"],
  ["models", "Models", "text", "all; or patterns, such as anthropic/* openai/gpt-5.6"],
  ["budget", "Budget in USD", "number", "no limit"],
  ["token_budget", "Budget in tokens", "number", "no limit"],
  ["requests_per_minute", "Requests per minute", "number", "no limit"],
  ["tokens_per_minute", "Tokens per minute", "number", "no limit"],
  ["concurrent", "Requests at a time", "number", "no limit"],
  ["days", "Days until it expires", "number", "never"],
];
const STATES: Record<Key["state"], string> = { good: "active", revoked: "revoked", expired: "expired" };

class KeysSection implements Section {
  readonly name = "keys";
  readonly label = "Keys";
  readonly keys: readonly [string, string][] = [["n", "New key"]];
  readonly #note = element("p", { class: "note", hidden: true });
  readonly #create = button("New key", attempt(() => this.#new()), { class: "primary" });
  readonly #list = element("div", { class: "facts-table", tabindex: 0, role: "region", "aria-label": "Keys" });
  #answer: Keys | null = null;
  #isShown = false;

  mount(root: HTMLElement): void {
    const head = element("div", { class: "row usage-tools" }, element("h1", {}, "Keys"), element("span", { class: "space" }), this.#create);
    const about = element("p", { class: "soft" }, "Clients log in to this gateway with a key. Each key has its own models, limits and budget, and sees its own requests and usage.");
    this.#create.disabled = true; // until it is known whether this would be the first key, and what that changes
    root.append(element("div", { class: "keys-page" }, head, about, this.#note, this.#list));
    document.addEventListener("keydown", (event) => {
      if (this.#isShown && event.key === "n" && event.target === document.body && !this.#create.disabled) this.#create.click();
    });
  }

  enter(): void {
    this.#isShown = true;
    void this.#load();
  }

  leave(): void {
    this.#isShown = false;
  }

  readonly #load = attempt(async (): Promise<void> => {
    const answer = await call<Keys>("GET", "/keys");
    this.#answer = answer;
    this.#create.disabled = answer.refusal !== "";
    this.#note.hidden = answer.refusal === "";
    this.#note.textContent = answer.refusal;
    const none = element("p", { class: "soft" }, "There are no keys: everyone who can reach this gateway may use it.");
    this.#list.replaceChildren(...(answer.keys.length > 0 ? [this.#table(answer.keys)] : answer.refusal ? [] : [none]));
  });

  #table(keys: readonly Key[]): HTMLElement {
    const heads = ["Name", "State", "Models", "Limits", "Spent", "Expires", ""];
    const head = element("tr", {}, ...heads.map((name) => element("th", { scope: "col" }, name || element("span", { class: "sr" }, "Actions"))));
    const rank = (one: Key): number => (one.state === "good" ? 0 : 1);
    const rows = keys.toSorted((one, other) => rank(one) - rank(other) || one.name.localeCompare(other.name)).map((one) => this.#row(one));
    return element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
  }

  #row(key: Key): HTMLElement {
    const actions = key.state !== "good" ? [] : [
      button("Replace", attempt(() => this.#rotate(key.name)), { class: "small", "aria-label": `Replace the key ${key.name}` }),
      button("Revoke", attempt(() => this.#revoke(key.name)), { class: "small danger", "aria-label": `Revoke the key ${key.name}` }),
    ];
    return element("tr", { class: `key-${key.state}` },
      element("th", { scope: "row" }, key.name),
      element("td", {}, element("span", { class: `status ${key.state === "good" ? "good" : "bad"}` }, STATES[key.state])),
      element("td", {}, key.models.join(", ") || "all"),
      element("td", {}, limits(key) || "none"),
      element("td", {}, spent(key)),
      element("td", {}, key.expires === null ? "never" : new Date(key.expires * 1000).toISOString().slice(0, 10)),
      element("td", { class: "number" }, ...actions));
  }

  async #new(): Promise<void> {
    const warning = this.#answer?.locks
      ? "This is the first key. From now on clients need one, and so does this page; a key sees its own requests only. To stay administrator, restart the gateway with DRAGOMAN_PAGE_PASSWORD set."
      : "";
    const inputs = FIELDS.map(([name, label, kind, hint]) => {
      const attributes = kind === "number" ? { type: "number", min: 0, step: "any" } : { type: "text" };
      return [name, kind, element("input", { ...attributes, name, placeholder: hint, autocomplete: "off" }), label] as const;
    });
    const body = inputs.map(([, , input, label]) => element("label", {}, label, input));
    const note = warning ? [element("p", { class: "problem" }, warning)] : [];
    const made = await form("New key", [...note, element("div", { class: "key-form" }, ...body)], "Create", async () => {
      const wanted: Record<string, unknown> = {};
      for (const [name, kind, input] of inputs) {
        const value = input.value.trim();
        if (name === "models") wanted[name] = value.split(/[\s,]+/).filter((one) => one !== "");
        else if (value !== "") wanted[name] = kind === "number" ? Number(value) : value;
      }
      if (wanted["name"] === undefined) throw new Error("A key needs a name.");
      return call<{ name: string; key: string }>("POST", "/keys", wanted);
    });
    if (made === null) return;
    await this.#once(made);
    await this.#load();
  }

  /** Shows the key once: the gateway keeps only a digest. */
  async #once({ name, key }: { name: string; key: string }): Promise<void> {
    const box = element("div", { class: "client" }, element("code", { class: "the-key" }, key), button("Copy", () => void copy(key, "Key"), { class: "small" }));
    const words = element("p", {}, "Copy it now: it is not shown again. The gateway keeps only a digest of it.");
    await show(`The key “${name}”`, words, box);
  }

  async #rotate(name: string): Promise<void> {
    if (!(await confirmAction(`Replace the key “${name}”?`, "The old one stops working at once. Limits, budget and usage stay.", "Replace"))) return;
    await this.#once(await call("POST", `/keys/${encodeURIComponent(name)}/rotate`));
    await this.#load();
  }

  async #revoke(name: string): Promise<void> {
    if (!(await confirmAction(`Revoke the key “${name}”?`, "Clients that use it are refused at once. This cannot be undone.", "Revoke"))) return;
    await call("POST", `/keys/${encodeURIComponent(name)}/revoke`);
    await this.#load();
  }
}

function limits(key: Key): string {
  const limits: (readonly [number | null, string])[] = [
    [key.requests_per_minute, "requests/min"], [key.tokens_per_minute, "tokens/min"], [key.concurrent, "at a time"],
  ];
  return limits.flatMap(([limit, words]) => (limit === null ? [] : [`${amount(limit)} ${words}`])).join(", ");
}

function spent(key: Key): string {
  const cost = key.budget === null ? money(key.spent) : `${money(key.spent)} of ${money(key.budget)} (${percent(key.spent, key.budget)})`;
  return key.token_budget == null ? cost : `${cost}, ${amount(key.spent_tokens ?? 0)} of ${amount(key.token_budget)} tokens`;
}

export const keys: Section = new KeysSection();
