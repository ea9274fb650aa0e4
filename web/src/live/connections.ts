// What the gateway is connected to: one line, with details on click.

import { call } from "../api.ts";
import { copy } from "../clipboard.ts";
import { show } from "../dialogs.ts";
import { button, element } from "../dom.ts";
import type { Client, Connected, Connection, Route } from "./types.ts";
import { formatChip, formatName } from "./display.ts";

const EVERY = 5000; // milliseconds
const SOON = 400;

export class Connections {
  readonly element = element("div", { class: "connected", role: "group", "aria-label": "Connections" });
  #known: Connected | null = null;
  readonly #found: (clients: readonly Client[]) => void;
  #timer: ReturnType<typeof setInterval> | undefined;
  #waiting: ReturnType<typeof setTimeout> | undefined;

  /** `found` is called with the client settings when they change. */
  constructor(found: (clients: readonly Client[]) => void) {
    this.#found = found;
  }

  start(): void {
    clearInterval(this.#timer);
    void this.#ask();
    this.#timer = setInterval(() => void this.#ask(), EVERY);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Called after events that may change the state. */
  soon(): void {
    this.#waiting ??= setTimeout(() => {
      this.#waiting = undefined;
      void this.#ask();
    }, SOON);
  }

  async #ask(): Promise<void> {
    try {
      const connected = await call<Connected>("GET", "/live/connected");
      const before = this.#known;
      if (isSame(connected, before)) return;
      this.#known = connected;
      this.#draw(connected);
      if (!isSame(connected.clients, before?.clients)) this.#found(connected.clients);
    } catch {
      // The feed reports an unreachable gateway.
    }
  }

  #draw(connected: Connected): void {
    const chips = connected.connections.map(chip);
    const words = "No provider is connected. Store a key: dragoman keys set PROVIDER, or set a variable such as ANTHROPIC_API_KEY";
    const none = chips.length === 0 ? element("span", { class: "soft" }, words) : null;
    const simulated = connected.connections.filter((one) => one.is_simulated).length;
    const label = `${simulated === connected.connections.length ? "simulated" : `${simulated} simulated`}, free`;
    const why = "Simulators on this machine answer without keys. Costs are what the real models would cost. To use those, store a key: dragoman keys set PROVIDER";
    const note = simulated ? element("span", { class: "simulated", title: why }, label) : null;
    const details = button("Details", () => void this.#details(), { class: "small" });
    const providers = element("span", { class: "chips", tabindex: 0, role: "group", "aria-label": "Providers" }, none, ...chips);
    this.element.replaceChildren(providers, element("span", { class: "row" }, note, details));
  }

  async #details(): Promise<void> {
    const connected = this.#known;
    if (connected === null) return;
    await show("Connections", connectionTable(connected.connections), ...routeTable(connected), clients(connected.clients));
  }
}

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** The worst of all its keys. */
function state(connection: Connection): string {
  const states = (connection.upstreams ?? []).map((one) => one.breaker);
  return ["open", "half-open", "closed"].find((one) => states.includes(one)) ?? "unused";
}

const STATES: Record<string, string> = {
  open: "paused after failures", "half-open": "being tried again", closed: "available", unused: "not used yet",
};

function chip(connection: Connection): HTMLElement {
  const found = state(connection);
  const busy = (connection.upstreams ?? []).reduce((sum, one) => sum + one.in_flight, 0);
  const title = `${connection.name}: ${formatName(connection.format)}, ${STATES[found]}${connection.is_simulated ? ", simulated" : ""}`;
  return element("span", { class: "upstream", "data-state": found, title },
    element("span", { class: "sr" }, `${STATES[found]}: `), connection.name, busy ? element("span", { class: "busy" }, String(busy)) : null);
}

function connectionTable(connections: readonly Connection[]): HTMLElement {
  return table(["Provider", "Format", "Key", "Health", "Models"], connections.map((one) => [
    one.name,
    formatChip(one.format),
    one.is_simulated ? "simulated" : (one.keys ?? []).join(", ") || "none",
    STATES[state(one)] ?? "",
    (one.models ?? []).join(", "),
  ]));
}

function routeTable({ routes }: Connected): HTMLElement[] {
  if (routes.length === 0) return [];
  const settings = (route: Route): string =>
    Object.entries(route.settings ?? {}).map(([name, value]) => `${name} ${JSON.stringify(value)}`).join(", ");
  const rows = routes.map((one) => [one.name, one.to.join(", "), (one.fallback ?? []).join(", "), settings(one)]);
  return [element("h3", {}, "Routes"), table(["Route", "To", "Fallback", "Settings"], rows)];
}

/** The first cell of a row is its name. */
function table(columns: readonly string[], rows: readonly (readonly (Node | string)[])[]): HTMLElement {
  const head = element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name)));
  const body = rows.map(([name = "", ...rest]) =>
    element("tr", {}, element("th", { scope: "row" }, name), ...rest.map((cell) => element("td", {}, cell))));
  return element("div", { class: "facts-table" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...body)));
}

/** Settings for clients, one client at a time. */
export function clients(known: readonly Client[]): HTMLElement {
  const shown = element("div", { class: "client", "aria-live": "polite" });
  const names = known.map((one) => button(one.name, () => choose(one), { class: "pick" }));
  const choose = (one: Client): void => {
    names.forEach((name, place) => name.setAttribute("aria-pressed", String(known[place] === one)));
    const again = button("Copy", () => void copy(one.lines, one.name), { class: "small", "aria-label": `Copy: ${one.name}` });
    shown.replaceChildren(element("code", {}, one.lines), again);
  };
  const [first] = known;
  if (first !== undefined) choose(first);
  return element("div", { class: "clients" },
    element("h3", {}, "Point a client here"), element("div", { class: "picks" }, ...names), shown);
}
