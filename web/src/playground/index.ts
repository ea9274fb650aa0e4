// Shows a body in every format. The gateway converts it; only Run sends it to a model.

import "./playground.css";
import { Problem, call } from "../api.ts";
import { copy } from "../clipboard.ts";
import { isOpen } from "../dialogs.ts";
import { button, element, isTyping } from "../dom.ts";
import { view } from "../json/view.ts";
import { formatName } from "../live/display.ts";
import { lossCount, lossList } from "../losses.ts";
import { attempt } from "../notices.ts";
import type { Section } from "../router.ts";
import { descriptionTree } from "./description.ts";
import { Editor, type Formats } from "./editor.ts";
import { EXAMPLES } from "./examples.ts";
import { takeBody } from "./handoff.ts";
import { Trial, type Tried, answerView } from "./trial.ts";
import type { Crossed, Group, Refused, Understood } from "./types.ts";

const PAUSE = 250; // milliseconds after the last letter
const GROUPS: readonly (readonly [Group, string])[] = [["wire", "APIs"], ["record", "Stored histories"], ["compatible", "Compatible servers"]];
const WORDS = "description";
const MEANT = "intermediate format";
const ANSWER = "answer";

class Playground implements Section {
  readonly name = "playground";
  readonly label = "Playground";
  readonly keys: readonly [string, string][] = [
    ["j k", "Next, previous format"],
    ["e", "Write in the editor"],
    ["Esc", "Leave the editor"],
    ["Ctrl Enter", "Send it to the model"],
  ];
  readonly #editor = new Editor((isNow) => this.#soon(isNow ? 0 : PAUSE));
  readonly #status = element("p", { class: "detected", role: "status" });
  readonly #choices = element("div", { class: "choices", role: "tablist", "aria-label": "Formats", "aria-orientation": "vertical" });
  readonly #panel = element("div", { class: "result", role: "tabpanel" });
  readonly #stale = element("p", { class: "stale", role: "status", hidden: true });
  readonly #samples = element("div", { class: "samples", hidden: true });
  readonly #right = element("section", { class: "right", "aria-label": "In every format" }, this.#choices, this.#panel, this.#stale, this.#samples);
  readonly #trial = new Trial({
    given: () => this.#editor.given,
    ended: (tried) => {
      this.#tried = tried;
      this.#chosen = ANSWER;
      this.#draw();
    },
  });
  #tried: Tried | string | null = null;
  #understood: Understood | null = null;
  #chosen = "anthropic-messages";
  #timer: ReturnType<typeof setTimeout> | undefined;
  #latest = 0;
  #isShown = false;

  async mount(root: HTMLElement): Promise<void> {
    const left = element("section", { class: "left", "aria-label": "Input" }, this.#editor.element, this.#status, this.#trial.element);
    this.#samples.append(...samples((text) => this.#editor.give(text)));
    root.append(element("h1", { class: "sr" }, "Playground"), left, this.#right);
    this.#empty();
    void this.#trial.offer();
    document.addEventListener("keydown", (event) => this.#pressed(event));
    await attempt(async () => this.#editor.offer(await call<Formats>("GET", "/playground/formats")))();
  }

  enter(): void {
    this.#isShown = true;
    const handed = takeBody();
    if (handed !== null) this.#editor.give(handed.text, handed.format, handed.kind);
  }

  leave(): void {
    this.#isShown = false;
  }

  // ── converting ──

  #soon(pause: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#convert(), pause);
  }

  async #convert(): Promise<void> {
    this.#latest += 1;
    const number = this.#latest;
    if (this.#editor.given.text.trim() === "") {
      this.#empty();
      return;
    }
    try {
      const understood = await call<Understood>("POST", "/playground/crossings", this.#editor.given);
      if (number === this.#latest) this.#show(understood);
    } catch (problem) {
      if (number === this.#latest) this.#refuse(problem);
    }
  }

  /** Nothing to convert: shows examples. */
  #empty(): void {
    this.#understood = null;
    this.#tried = null;
    this.#trial.allow(false);
    this.#status.className = "detected";
    this.#status.replaceChildren("Paste something, or choose an example.");
    this.#mark("empty");
  }

  /** What the right side shows: the input, an earlier input, or nothing yet. */
  #mark(state: "empty" | "stale" | "fresh"): void {
    this.#samples.hidden = state !== "empty";
    this.#choices.hidden = this.#panel.hidden = state === "empty";
    this.#stale.hidden = state !== "stale";
    this.#right.classList.toggle("is-stale", state === "stale");
    this.#stale.textContent = "The input cannot be read. This is the result of the last readable one.";
  }

  #show(understood: Understood): void {
    this.#understood = understood;
    this.#trial.allow(understood.kind === "request");
    this.#mark("fresh");
    const how = understood.is_detected ? "detected" : "as chosen";
    this.#status.replaceChildren(element("b", {}, `${formatName(understood.format)} ${understood.kind}`), ` · ${how}`);
    this.#status.className = "detected";
    this.#draw();
  }

  #refuse(problem: unknown): void {
    this.#trial.allow(false);
    this.#mark(this.#understood === null ? "empty" : "stale");
    const message = problem instanceof Error ? problem.message : String(problem);
    const refused = problem instanceof Problem ? (problem.body as Partial<Refused> | null) : null;
    const place = refused?.place ?? null;
    const path = refused?.problem?.path;
    const words = path ? message.replace(` - at ${path}`, "") : message; // the path is shown before it
    this.#status.className = "detected problem";
    this.#status.replaceChildren(
      path ? element("code", {}, path) : "", path ? " " : "", words, " ",
      place === null ? "" : button("Show where", () => this.#editor.select(place, this.#endOf(place)), { class: "small" }),
    );
  }

  /** The end of the token at a position; at least one character. */
  #endOf(place: number): number {
    const rest = this.#editor.area.value.slice(place);
    return place + Math.max(1, rest.search(/[\n,}\]]|$/));
  }

  // ── showing ──

  #draw(): void {
    const understood = this.#understood;
    if (understood === null) return;
    const known = [...(this.#tried === null ? [] : [ANSWER]), WORDS, MEANT, ...understood.crossed.map((one) => one.format)];
    if (!known.includes(this.#chosen)) this.#chosen = known.find((one) => one === "anthropic-messages") ?? known[2] ?? WORDS;
    const groups = GROUPS.map(([group, label]) => [label, understood.crossed.filter((one) => one.group === group)] as const);
    this.#choices.replaceChildren(
      ...(this.#tried === null ? [] : [this.#choice(ANSWER, "Answer", null)]),
      this.#choice(WORDS, "Description", null), this.#choice(MEANT, "Intermediate format", null),
      ...groups.flatMap(([label, crossed]) => crossed.length === 0 ? [] : [
        element("p", { class: "group", role: "presentation" }, label),
        ...crossed.map((one) => this.#choice(one.format, formatName(one.format), mark(one))),
      ]),
    );
    this.#panel.setAttribute("aria-label", this.#chosen);
    this.#panel.replaceChildren(...this.#result(understood));
  }

  #choice(name: string, label: string, badge: HTMLElement | null): HTMLElement {
    const isChosen = name === this.#chosen;
    return element("button", {
      type: "button", role: "tab", class: "choice", "data-name": name, "aria-selected": String(isChosen), tabindex: isChosen ? 0 : -1,
      onclick: () => this.#choose(name),
    }, element("span", {}, label), badge);
  }

  #choose(name: string): void {
    const hadFocus = this.#choices.contains(document.activeElement);
    this.#chosen = name;
    this.#draw();
    const tab = this.#choices.querySelector<HTMLElement>("[aria-selected=true]");
    if (hadFocus) tab?.focus();
    tab?.scrollIntoView({ block: "nearest" });
  }

  #result(understood: Understood): Node[] {
    if (this.#chosen === ANSWER) return this.#tried === null ? [] : answerView(this.#tried, (loss) => this.#editor.reveal(loss.path));
    if (this.#chosen === WORDS) return [descriptionTree(understood.description)];
    if (this.#chosen === MEANT) {
      const { text, problem } = understood.meant;
      return [text ? view(text, "Intermediate format").element : element("p", { class: "problem" }, problem?.message ?? "")];
    }
    const crossed = understood.crossed.find((one) => one.format === this.#chosen);
    return crossed === undefined ? [] : this.#crossing(crossed);
  }

  #crossing(crossed: Crossed): Node[] {
    if (crossed.problem !== undefined) return [element("p", { class: "problem" }, crossed.problem.message)];
    const text = crossed.text ?? "";
    const losses = crossed.losses ?? [];
    const about = element("div", { class: "about" }, element("code", {}, crossed.path ?? ""), element("span", { class: "space" }),
      button("Copy", () => void copy(text, formatName(crossed.format)), { class: "small" }));
    const note = crossed.note ? element("p", { class: "note" }, crossed.note) : null;
    const lost = element("div", { class: "lost" }, lossList(losses, (loss) => this.#editor.reveal(loss.path)));
    return [about, note, view(text, formatName(crossed.format)).element, lost].filter((one) => one !== null);
  }

  // ── keys ──

  #pressed(event: KeyboardEvent): void {
    if (!this.#isShown || isOpen()) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void this.#trial.run();
    if (event.key === "Escape" && event.target === this.#editor.area) this.#choices.querySelector<HTMLElement>("[aria-selected=true]")?.focus();
    if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
    const onTabs = event.target instanceof Node && this.#choices.contains(event.target);
    const steps: Record<string, number> = { j: 1, k: -1, ...(onTabs ? { ArrowDown: 1, ArrowUp: -1 } : {}) };
    const step = steps[event.key];
    if (step === undefined && event.key !== "e") return;
    event.preventDefault();
    if (step === undefined) this.#editor.area.focus();
    else this.#move(step);
  }

  #move(step: number): void {
    const names = [...this.#choices.querySelectorAll<HTMLElement>(".choice")].map((one) => one.dataset["name"] ?? "");
    const next = names[names.indexOf(this.#chosen) + step];
    if (next !== undefined) this.#choose(next);
  }
}

/** Samples, each with a description. */
function samples(take: (text: string) => void): HTMLElement[] {
  const cards = EXAMPLES.map((example) => element("button", { type: "button", class: "sample", onclick: () => take(example.text) },
    element("b", {}, example.label), element("span", { class: "soft" }, example.about)));
  return [
    element("h2", {}, "Convert any body to every format"),
    element("p", { class: "soft" }, "Paste a request, an answer, an error, a stream or a stored conversation to see it in every format, with what would be lost. Requests can also be sent to a model."),
    element("div", { class: "sample-grid" }, ...cards),
  ];
}

/** How much is lost, at a glance. */
function mark(crossed: Crossed): HTMLElement {
  if (crossed.problem !== undefined) return element("span", { class: "refused", title: crossed.problem.message }, "refused");
  const count = lossCount(crossed.losses ?? []);
  if (count === 0) return element("span", { class: "whole", title: "nothing is lost" }, element("span", { class: "sr" }, "nothing lost"), "✓");
  return element("span", { class: "tally" }, String(count), element("span", { class: "sr" }, " lost"));
}

export const playground: Section = new Playground();
