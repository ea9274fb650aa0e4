// One request in detail: request, answer and stream.

import { copy } from "../clipboard.ts";
import { button, element } from "../dom.ts";
import { openInPlayground } from "../playground/handoff.ts";
import { curl } from "./curl.ts";
import { hasFailed } from "./feed.ts";
import { badge, pair } from "./list.ts";
import { Panes, bodyPane, lossPane, meantPane } from "./panes.ts";
import { Timeline } from "./timeline.ts";
import { lossCount } from "../losses.ts";
import type { Attempt, Loss, Opened, Summary } from "./types.ts";
import { clock, duration, money } from "./display.ts";

export type Tab = "request" | "answer" | "stream";
const SAME = "Client and upstream use the same format: bytes pass unchanged";
const LABELS: Record<Tab, string> = { request: "Request", answer: "Answer", stream: "Stream" };

export class Detail {
  readonly element = element("article", { class: "detail", "aria-label": "Request" });
  readonly #close: () => void;
  #opened: Opened | null = null;
  #tab: Tab = "request";
  #attempt = 0;
  #timeline: Timeline | null = null;

  constructor(close: () => void) {
    this.#close = close;
  }

  show(opened: Opened): void {
    const before = this.#opened;
    const isSame = opened.summary.id === before?.summary.id;
    this.#opened = opened;
    if (!isSame || opened.attempts.length !== before?.attempts.length) this.#attempt = Math.max(0, opened.attempts.length - 1);
    if (this.#tab === "stream" && opened.timeline.length === 0) this.#tab = "answer";
    // Keep the scroll position while the request is updated.
    if (isSame && looksSame(before, opened, this.#tab)) this.#refresh(opened);
    else this.#draw(isSame ? this.#timeline?.chosen : undefined);
  }

  #refresh(opened: Opened): void {
    const parts = [[".detail-head", this.#head(opened)], [".tabs", this.#tabs(opened)]] as const;
    for (const [name, part] of parts) {
      const old = this.element.querySelector(name);
      if (!old?.contains(document.activeElement)) old?.replaceWith(part);
    }
  }

  /** Shows why there is no such request. */
  miss(words: string): void {
    this.#opened = null;
    const row = element("div", { class: "row end" }, this.#closing());
    this.element.replaceChildren(row, element("p", { class: "none" }, words));
  }

  choose(tab: Tab): void {
    if (this.#opened === null || (tab === "stream" && this.#opened.timeline.length === 0)) return;
    this.#tab = tab;
    this.#draw();
  }

  copyCurl(): void {
    if (this.#opened !== null) void copy(curl(this.#opened, location.origin), "curl command");
  }

  toPlayground(): void {
    const opened = this.#opened;
    if (opened === null) return;
    const { received } = opened.answer;
    const format = opened.attempts.at(-1)?.format;
    if (this.#tab === "request" || received === undefined || format === undefined) {
      openInPlayground({ text: opened.client.body?.text ?? "", format: opened.summary.client, kind: "request" });
      return;
    }
    const kind = opened.timeline.length > 0 ? "stream" : (opened.attempts.at(-1)?.status ?? 200) >= 400 ? "error" : "response";
    openInPlayground({ text: received.text, format, kind });
  }

  #draw(chosen = 0): void {
    const opened = this.#opened;
    if (opened === null) return;
    this.#timeline = this.#tab === "stream" ? new Timeline(opened, chosen) : null;
    const draw: Record<Tab, () => HTMLElement> = {
      request: () => this.#there(opened),
      answer: () => back(opened),
      stream: () => this.#timeline?.element ?? element("p", {}),
    };
    const panel = element("div", { class: "panel", role: "tabpanel", "aria-label": LABELS[this.#tab] }, draw[this.#tab]());
    const hadFocus = this.element.contains(document.activeElement);
    this.element.replaceChildren(this.#head(opened), this.#tabs(opened), panel);
    if (hadFocus) this.element.querySelector<HTMLElement>("[role=tab][aria-selected=true]")?.focus();
  }

  #head(opened: Opened): HTMLElement {
    const { summary, client } = opened;
    const title = element("h2", {}, badge(summary), ...pair(summary), element("span", { class: "name" }, summary.model ?? ""));
    const facts = [
      clock(summary.at),
      `${client.method} ${client.path}`,
      summary.upstream ? `${hasFailed(summary) ? "asked" : "answered by"} ${summary.upstream}/${summary.target}` : "",
      summary.first_byte === undefined ? "" : `first byte ${duration(summary.first_byte)}`,
      summary.duration === undefined ? "" : `total ${duration(summary.duration)}`,
      summary.tokens ? `${summary.tokens.input} tokens in, ${summary.tokens.output} out` : "",
      summary.cost === undefined ? "" : `cost ${money(summary.cost)}`,
      summary.cache === undefined ? "" : `cache ${summary.cache}`,
      summary.key ? `key ${summary.key}` : "",
    ];
    const buttons = element("div", { class: "row detail-actions" },
      button("Copy as curl", () => this.copyCurl()), button("Open in playground", () => this.toPlayground()), this.#closing());
    const error = summary.error ? element("p", { class: "problem" }, `${summary.failure}: ${summary.error}`) : null;
    const shown = facts.filter((one) => one).map((one) => element("span", {}, one));
    return element("div", { class: "detail-head" }, title, buttons, element("p", { class: "facts" }, ...shown), error);
  }

  #closing(): HTMLElement {
    return button("✕", () => this.#close(), { class: "quiet", "aria-label": "Close this request", title: "Close (Esc)" });
  }

  #tabs(opened: Opened): HTMLElement {
    const counts: Record<Tab, string> = {
      request: "", answer: "", stream: opened.timeline.length ? ` ${opened.timeline.length}` : "",
    };
    const tabs = (Object.keys(LABELS) as Tab[]).filter((tab) => tab !== "stream" || opened.timeline.length > 0);
    const along = (event: KeyboardEvent): void => this.#along(event, tabs);
    return element("div", { class: "tabs", role: "tablist", "aria-label": "Views", onkeydown: along }, ...tabs.map((tab) => {
      const isChosen = tab === this.#tab;
      const state = { role: "tab", "aria-selected": String(isChosen), tabindex: isChosen ? 0 : -1 };
      const count = counts[tab] ? element("span", { class: "soft" }, counts[tab]) : null;
      return element("button", { type: "button", onclick: () => this.choose(tab), ...state }, LABELS[tab], count);
    }));
  }

  #along(event: KeyboardEvent, tabs: readonly Tab[]): void {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const next = tabs[tabs.indexOf(this.#tab) + step];
    if (step !== 0 && next !== undefined) this.choose(next);
  }

  // ── to the upstream ──

  #there(opened: Opened): HTMLElement {
    const attempt = opened.attempts[this.#attempt];
    const client = bodyPane({
      title: "Client sent", format: opened.summary.client, headers: opened.client.headers, none: "its body was not kept",
    }, opened.client.body);
    const reveal = (loss: Loss): boolean => {
      panes.show(0);
      return client.view?.reveal(loss.path) ?? false;
    };
    const losses = lossPane(opened.losses, reveal, failureThere(opened));
    const panes = new Panes([
      ["Client", client.element], ["Meaning", meantPane(opened.meant).element], ["Upstream", upstreamPane(attempt)],
      [lossLabel(opened.losses), losses],
    ]);
    return element("div", { class: "way" }, this.#attempts(opened), panes.element);
  }

  /** Selects one of several attempts; a single successful one is not listed. */
  #attempts(opened: Opened): HTMLElement | null {
    if (opened.attempts.length < 2) return null;
    const rows = opened.attempts.map((attempt, place) => {
      const end = attempt.failure ? `${attempt.status ?? ""} ${attempt.failure}: ${attempt.error}` : `${attempt.status ?? ""} answered`;
      const pick = (): void => {
        this.#attempt = place;
        this.#draw();
      };
      const name = `${place + 1}. ${attempt.upstream}/${attempt.model}`;
      return element("li", {}, button(name, pick, { "aria-pressed": String(place === this.#attempt) }),
        element("span", { class: attempt.failure ? "bad" : "good" }, `after ${duration(attempt.began)}: ${end}`));
    });
    return element("ol", { class: "attempts", "aria-label": "Attempts" }, ...rows);
  }
}

/** Whether the view would be unchanged. */
function looksSame(before: Opened, now: Opened, tab: Tab): boolean {
  const sum: Record<Tab, (opened: Opened) => unknown[]> = {
    request: ({ attempts, losses, client }) => [client.body?.size, losses.length, ...attempts.map((one) => one.status)],
    answer: ({ answer, losses_back, summary }) => [answer.received?.size, answer.sent?.size, losses_back.length, summary.phase],
    stream: ({ timeline, unheld, summary }) => [timeline.length, unheld, summary.phase],
  };
  return JSON.stringify(sum[tab](before)) === JSON.stringify(sum[tab](now));
}

const lossLabel = (losses: readonly Loss[]): string => (lossCount(losses) ? `Losses (${lossCount(losses)})` : "Losses");

const reasonOf = ({ error, failure }: Summary): string => error || failure?.replaceAll("_", " ") || "unknown reason";

/** Losses of a failed request are not shown as "nothing lost". */
function failureThere({ summary, attempts }: Opened): string {
  if (!hasFailed(summary)) return "";
  if (attempts.length === 0) return "The request was not translated. No upstream was contacted.";
  return `Nothing was lost in translation, but the request failed: ${reasonOf(summary)}`;
}

function upstreamPane(attempt: Attempt | undefined): HTMLElement {
  if (attempt === undefined) return bodyPane({ title: "Upstream received", none: "No upstream was contacted." }, null).element;
  const same = attempt.is_same ? element("span", { class: "same", title: SAME }, "same format") : null;
  const about = element("span", {}, same, ` ${attempt.method} ${attempt.url}`);
  const caption = { title: "Upstream received", format: attempt.format, about, headers: attempt.headers, none: "no body" };
  return bodyPane(caption, attempt.body).element;
}

// ── back to the client ──

function back(opened: Opened): HTMLElement {
  const { answer, summary } = opened;
  const last = opened.attempts.at(-1);
  const none = summary.phase === "ended" ? "nothing received" : "nothing received yet";
  const received = bodyPane({ title: "Upstream answered", format: last?.format, none }, answer.received);
  const meant = meantPane(answer.meant);
  const sent = bodyPane({ title: "Client received", format: summary.client, none: "nothing yet" }, answer.sent);
  const reveal = (loss: Loss): boolean => {
    panes.show(1);
    return meant.view?.reveal(loss.path) ?? false;
  };
  const failure = hasFailed(summary) ? `The request failed, so there is no answer: ${reasonOf(summary)}` : "";
  const losses = lossPane(opened.losses_back, reveal, failure);
  const panes = new Panes([
    ["Upstream", received.element], ["Meaning", meant.element], ["Client", sent.element], [lossLabel(opened.losses_back), losses],
  ]);
  return element("div", { class: "way" }, panes.element);
}
