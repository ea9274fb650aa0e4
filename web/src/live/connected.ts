// What the gateway is connected to, in one line; and in full when one asks.

import { call } from "../api.ts";
import { copy } from "../copying.ts";
import { show } from "../dialogs.ts";
import { button, element } from "../dom.ts";
import type { Client, Connected, Connection } from "./types.ts";
import { formatChip, formatName } from "./words.ts";

const EVERY = 5000; // milliseconds
const SOON = 400;

export class Connections {
  readonly element = element("div", { class: "connected", role: "group", "aria-label": "What is connected" });
  #known: Connected | null = null;
  readonly #changed: (told: Connected) => void;
  #timer: ReturnType<typeof setInterval> | undefined;
  #waiting: ReturnType<typeof setTimeout> | undefined;

  constructor(changed: (told: Connected) => void) {
    this.#changed = changed;
  }

  start(): void {
    clearInterval(this.#timer);
    void this.#ask();
    this.#timer = setInterval(() => void this.#ask(), EVERY);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Something has happened, so something may have changed. */
  soon(): void {
    this.#waiting ??= setTimeout(() => {
      this.#waiting = undefined;
      void this.#ask();
    }, SOON);
  }

  async #ask(): Promise<void> {
    try {
      const told = await call<Connected>("GET", "/live/connected");
      if (JSON.stringify(told) === JSON.stringify(this.#known)) return;
      this.#known = told;
      this.#draw(told);
      this.#changed(told);
    } catch {
      // The feed tells when the gateway is away.
    }
  }

  #draw(told: Connected): void {
    const chips = told.connections.map(chip);
    const none = chips.length === 0 ? element("span", { class: "soft" }, "no provider is connected: set a key, such as ANTHROPIC_API_KEY") : null;
    const simulated = told.connections.length > 0 && told.connections.every((one) => one.is_simulated);
    const note = simulated ? element("span", { class: "soft" }, "simulated: no keys of any provider were found") : null;
    const details = button("Details", () => void this.#details(), { class: "small" });
    this.element.replaceChildren(element("span", { class: "chips", tabindex: 0, role: "group", "aria-label": "Providers" }, none, ...chips), element("span", { class: "row" }, note, details));
  }

  async #details(): Promise<void> {
    const told = this.#known;
    if (told === null) return;
    await show("What is connected", table(told.connections), ...routes(told), clients(told.clients));
  }
}

/** The worst of all its keys. */
function state(connection: Connection): string {
  const states = (connection.upstreams ?? []).map((one) => one.breaker);
  return ["open", "half-open", "closed"].find((one) => states.includes(one)) ?? "unused";
}

const STATES: Record<string, string> = {
  open: "resting after failures", "half-open": "being tried again", closed: "well", unused: "not asked yet",
};

function chip(connection: Connection): HTMLElement {
  const found = state(connection);
  const busy = (connection.upstreams ?? []).reduce((sum, one) => sum + one.in_flight, 0);
  const title = `${connection.name}: ${formatName(connection.format)}, ${STATES[found]}${connection.is_simulated ? ", simulated" : ""}`;
  return element("span", { class: "upstream", "data-state": found, title },
    element("span", { class: "sr" }, `${STATES[found]}: `), connection.name, busy ? element("span", { class: "busy" }, String(busy)) : null);
}

function table(connections: readonly Connection[]): HTMLElement {
  const rows = connections.map((one) => element("tr", {},
    element("th", { scope: "row" }, one.name),
    element("td", {}, formatChip(one.format)),
    element("td", {}, one.is_simulated ? "simulated" : (one.keys ?? []).join(", ") || "none"),
    element("td", {}, STATES[state(one)] ?? ""),
    element("td", {}, (one.models ?? []).join(", ")),
  ));
  const head = ["Provider", "Speaks", "Key", "Health", "Models listed"].map((name) => element("th", { scope: "col" }, name));
  return element("div", { class: "table" }, element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)));
}

function routes(told: Connected): HTMLElement[] {
  if (told.routes.length === 0) return [];
  const rows = told.routes.map((one) => element("tr", {},
    element("th", { scope: "row" }, one.name),
    element("td", {}, one.to.join(", ")),
    element("td", {}, (one.fallback ?? []).join(", ")),
    element("td", {}, Object.entries(one.settings ?? {}).map(([name, value]) => `${name} ${JSON.stringify(value)}`).join(", ")),
  ));
  const head = ["Route", "To", "Else", "Settings"].map((name) => element("th", { scope: "col" }, name));
  return [element("h3", {}, "Routes"), element("div", { class: "table" }, element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)))];
}

const FIRST = ["curl", "claude-code", "codex", "openai"]; // the rest are behind a choice of their own

/** How clients find the gateway. */
export function clients(told: readonly Client[]): HTMLElement {
  const first = FIRST.flatMap((name) => told.find((one) => one.name === name) ?? []);
  const others = told.filter((one) => !FIRST.includes(one.name));
  const shown = element("div", {});
  const choice = element("select", { "aria-label": "Another client" }, element("option", { value: "" }, "Another client …"),
    ...others.map((one) => element("option", { value: one.name }, one.name)));
  choice.addEventListener("change", () => {
    const one = others.find(({ name }) => name === choice.value);
    shown.replaceChildren(...(one === undefined ? [] : [client(one)]));
  });
  return element("div", { class: "clients" }, element("h3", {}, "Point a client here"), ...first.map(client), choice, shown);
}

function client({ name, lines }: Client): HTMLElement {
  return element("div", { class: "client" }, element("b", {}, name), element("code", {}, lines),
    button("Copy", () => void copy(lines, name), { class: "small", "aria-label": `Copy: ${name}` }));
}
