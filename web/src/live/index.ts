// Live requests.

import "../json/json.css";
import "./live.css";
import { Problem, call, listen } from "../api.ts";
import { isOpen } from "../dialogs.ts";
import { button, element, isTyping } from "../dom.ts";
import { counted } from "../json/view.ts";
import { type Section, type Route, address } from "../router.ts";
import { Charts } from "./charts.ts";
import { Connections, clients } from "./connections.ts";
import { Feed } from "./feed.ts";
import { Filters, Headings } from "./filters.ts";
import { List } from "./list.ts";
import { Detail } from "./request.ts";
import type { Opened, Summary } from "./types.ts";

const AGAIN = 1000; // milliseconds
const FIRST_WORDS =
  "Any SDK or coding agent for OpenAI, Anthropic, Gemini, Ollama or Bedrock can use this gateway; " +
  "the model name selects the provider. Requests appear on this page as they happen.";
const CHORD = 1200; // milliseconds after g in which a letter selects a section

class Live implements Section {
  readonly name = "live";
  readonly label = "Live";
  readonly keys: readonly [string, string][] = [
    ["j k", "Next, previous request"],
    ["Enter", "Open the request"],
    ["Esc", "Close the request"],
    ["1 2 3", "Request, answer, stream"],
    ["/", "Filter"],
    ["p", "Pause the list"],
    ["c", "Copy as curl"],
    ["o", "Open in the playground"],
  ];
  readonly #feed = new Feed();
  readonly #list = new List((id) => this.#go(id));
  readonly #charts = new Charts(() => this.#feed.rows);
  readonly #headings = new Headings(this.#feed, () => this.#draw());
  readonly #filters = new Filters(this.#feed, () => this.#draw());
  readonly #detail = new Detail(() => this.#go(null));
  readonly #connections = new Connections((found) => this.#clients.replaceChildren(clients(found)));
  readonly #clients = element("div", {});
  readonly #filter = element("input", {
    type: "search", class: "filter", placeholder: "Filter: model, format, status, error, loss …",
    "aria-label": "Filter requests", "aria-keyshortcuts": "/",
  });
  readonly #pause = button("Pause", () => this.#hold(), { "aria-pressed": "false", class: "pause", title: "Pause the list (p)" });
  readonly #counts = element("span", { class: "counts soft" });
  readonly #empty = element("div", { class: "nothing" });
  #root: HTMLElement | null = null;
  #source: EventSource | null = null;
  #opened: string | null = null;
  #isShown = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #chord = -Infinity;

  mount(root: HTMLElement): void {
    this.#root = root;
    this.#filter.addEventListener("input", () => {
      this.#feed.filter(this.#filter.value);
      this.#draw();
    });
    const tools = element("div", { class: "tools" }, this.#filter, ...this.#filters.elements, this.#pause, this.#counts);
    const left = element("section", { class: "feed", "aria-label": "Requests" }, this.#headings.element, this.#list.element, this.#empty);
    const both = element("div", { class: "both" }, left, this.#detail.element);
    root.append(element("h1", { class: "sr" }, "Live"), this.#connections.element, this.#charts.element, tools, both);
    document.addEventListener("keydown", (event) => this.#pressed(event));
  }

  enter(route: Route): void {
    this.#isShown = true;
    if (this.#source === null) this.#listen();
    this.#connections.start();
    this.#charts.start();
    void this.#open(route.rest[0] ?? null);
  }

  leave(): void {
    this.#isShown = false;
    this.#source?.close();
    this.#source = null;
    this.#connections.stop();
    this.#charts.stop();
  }

  #listen(): void {
    this.#source = listen("/live/feed", {
      snapshot: (summaries: Summary[]) => {
        this.#feed.replace(summaries);
        this.#draw();
      },
      changes: (summaries: Summary[]) => {
        this.#feed.change(summaries);
        this.#draw();
        this.#connections.soon();
        // The open request may have changed.
        if (summaries.some((one) => one.id === this.#opened)) void this.#load();
      },
    });
    this.#source.addEventListener("open", () => this.#root?.classList.remove("away"));
    this.#source.addEventListener("error", () => this.#root?.classList.add("away"));
  }

  #draw(): void {
    const { rows, waiting } = this.#feed;
    const { all, underWay, failed } = this.#feed.counts;
    this.#list.show(rows);
    // At once with the first rows: otherwise the list would jump when the timer draws the charts above it.
    if (this.#charts.element.hidden !== (rows.length === 0)) this.#charts.draw();
    this.#filters.offer();
    this.#headings.show();
    this.#root?.classList.toggle("keyed", this.#feed.choices.keys.length > 0);
    this.#root?.classList.toggle("used", all > 0);
    const shown = rows.length === all ? "" : `${rows.length} of `;
    const words = [`${shown}${counted(all, "request")}`, underWay ? `${underWay} in progress` : "", failed ? `${failed} failed` : ""];
    this.#counts.textContent = words.filter((word) => word).join(" · ");
    this.#pause.textContent = this.#feed.isPaused ? `Resume${waiting ? ` (${waiting} new)` : ""}` : "Pause";
    this.#pause.setAttribute("aria-pressed", String(this.#feed.isPaused));
    this.#empty.hidden = rows.length > 0;
    this.#list.element.hidden = rows.length === 0;
    if (rows.length === 0) this.#drawEmpty(all);
  }

  #drawEmpty(all: number): void {
    const shown = all > 0 ? "filtered" : "first";
    if (this.#empty.dataset["shown"] === shown) return;
    this.#empty.dataset["shown"] = shown;
    if (all > 0) this.#empty.replaceChildren(element("p", { class: "soft" }, "No request matches the filter. "), button("Show all", () => this.#reset()));
    else this.#empty.replaceChildren(
      element("h2", {}, "No requests yet"),
      element("p", { class: "soft" }, FIRST_WORDS),
      element("p", {}, "Or ask from here: ", element("a", { href: address("chat") }, "the chat"), " asks several models at once, through this gateway."),
      this.#clients);
  }

  #reset(): void {
    this.#filter.value = "";
    this.#feed.filter("");
    this.#filters.reset();
    this.#draw();
  }

  #hold(): void {
    this.#feed.pause(!this.#feed.isPaused);
    this.#draw();
  }

  // ── one request ──

  #go(id: string | null): void {
    location.hash = address("live", id === null ? [] : [id]);
  }

  async #open(id: string | null): Promise<void> {
    this.#opened = id;
    this.#root?.classList.toggle("opened", id !== null);
    if (id !== null) {
      this.#list.point(id);
      await this.#load();
    } else this.#list.element.focus({ preventScroll: true });
  }

  async #load(): Promise<void> {
    const id = this.#opened;
    if (id === null) return;
    try {
      const opened = await call<Opened>("GET", `/live/requests/${encodeURIComponent(id)}`);
      if (this.#opened === id) this.#detail.show(opened);
      if (opened.summary.phase !== "ended") this.#again();
    } catch (problem) {
      if (this.#opened === id) this.#detail.miss(problem instanceof Problem ? problem.message : String(problem));
    }
  }

  /** Refreshes an open stream at intervals: the feed reports only its start and end. */
  #again(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (this.#isShown) void this.#load();
    }, AGAIN);
  }

  // ── keys ──

  #pressed(event: KeyboardEvent): void {
    if (!this.#isShown || isOpen() || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === this.#filter && (event.key === "Escape" || event.key === "Enter")) {
      this.#list.element.focus();
      return;
    }
    if (isTyping(event.target)) return;
    const isName = event.timeStamp - this.#chord < CHORD;
    this.#chord = event.key === "g" ? event.timeStamp : -Infinity;
    const run = isName ? undefined : this.#commands(event)[event.key];
    if (run === undefined) return;
    event.preventDefault();
    run();
  }

  #commands(event: KeyboardEvent): Record<string, () => void> {
    const onList = event.target === this.#list.element || event.target === document.body;
    return {
      j: () => this.#move(1),
      k: () => this.#move(-1),
      ...(onList ? { ArrowDown: () => this.#move(1), ArrowUp: () => this.#move(-1), Enter: () => this.#go(this.#list.cursor) } : {}),
      "/": () => this.#filter.focus(),
      p: () => this.#hold(),
      c: () => this.#detail.copyCurl(),
      o: () => this.#detail.toPlayground(),
      1: () => this.#detail.choose("request"),
      2: () => this.#detail.choose("answer"),
      3: () => this.#detail.choose("stream"),
      ...(this.#opened === null ? {} : { Escape: () => this.#go(null) }),
    };
  }

  #move(steps: number): void {
    const next = this.#list.neighbour(steps);
    if (next === null) return;
    if (this.#opened === null) this.#list.point(next);
    else this.#go(next);
  }
}

export const live: Section = new Live();
