// The message editor: text, files, recipients, and how full each model's window is.

import { button, element } from "../dom.ts";
import { formatName } from "../live/display.ts";
import { Completion } from "./completion.ts";
import { Files } from "./files.ts";
import { resolveMentions, unknownMention, toggleMention } from "./mentions.ts";
import type { Attachment, Gauge, State } from "./types.ts";

const COUNTED_AFTER = 500; // milliseconds without a key
const KEPT = "unsent";
const NEARLY_FULL = 0.8;

export interface ComposerActions {
  send(text: string, attachments: readonly Attachment[], how: { memo?: boolean; format?: string }): Promise<boolean>;
  /** Text without a mention goes to this model from now on. */
  choose(model: string): unknown;
  stop(): unknown;
  count(text: string): Promise<Gauge[]>;
}

export class Composer {
  readonly node: HTMLFormElement;
  readonly files = new Files();
  readonly #state: () => State;
  readonly #actions: ComposerActions;
  readonly #text = element("textarea", {
    id: "text",
    rows: 2,
    placeholder: "Write a message; @name asks another model, @all asks all",
    "aria-label": "Message",
    "aria-describedby": "hint",
    autocomplete: "off",
  });
  readonly #models = element("div", { id: "gauges", role: "group", "aria-label": "Models, and how full they are" });
  readonly #completion: Completion;
  readonly #target = element("span", { id: "target" });
  readonly #default = element("select", { class: "default", "aria-label": "Model for text without a mention" });
  readonly #format = element("select", { class: "as-format", "aria-label": "Format that the message is sent in" });
  readonly #memo: HTMLButtonElement;
  readonly #send = element("button", { id: "send", class: "primary" }, "Send");
  readonly #stop: HTMLButtonElement;
  #gauges: readonly Gauge[] = [];
  #counting = 0;

  constructor(state: () => State, actions: ComposerActions) {
    this.#state = state;
    this.#actions = actions;
    this.#stop = button("Stop", () => actions.stop(), { id: "stop", class: "danger", hidden: true });
    this.#memo = button("Memo", () => void this.#submit(true), { id: "memo", title: "Store it as a note; no model answers" });
    this.#default.addEventListener("change", () => actions.choose(this.#default.value));
    this.#completion = new Completion(this.#text, () => state().models, () => this.typed());
    this.node = this.#built();
    this.#text.value = sessionStorage.getItem(KEPT) ?? "";
    this.#text.addEventListener("input", () => this.typed());
    this.#text.addEventListener("keydown", (event) => this.#pressed(event));
    this.#text.addEventListener("paste", (event) => void this.files.add(event.clipboardData?.files ?? []));
  }

  #built(): HTMLFormElement {
    const attach = button("Attach", () => this.files.input.click(), { id: "attach", title: "Add images or files" });
    const buttons = element("div", { class: "buttons" }, this.#send, this.#stop, this.#memo, attach);
    const choices = element("div", { class: "sending" }, element("label", {}, "Goes to ", this.#default), element("label", { class: "as" }, "sent as ", this.#format), this.#target);
    const hint = element("div", { id: "hint" }, "Enter sends, Shift+Enter makes a new line, Esc stops.");
    const submit = (event: SubmitEvent): void => {
      event.preventDefault();
      void this.#submit();
    };
    return element(
      "form",
      { id: "composer", onsubmit: submit },
      this.#models,
      this.#completion.node,
      this.files.node,
      choices,
      element("div", { class: "row" }, this.#text, buttons),
      hint,
      this.files.input,
    );
  }

  #pressed(event: KeyboardEvent): void {
    if (this.#completion.pressed(event)) return;
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    void this.#submit();
  }

  focus(): void {
    this.#text.focus();
  }

  write(text: string): void {
    this.#text.value = text;
    this.#text.focus();
    this.typed();
  }

  typed(): void {
    sessionStorage.setItem(KEPT, this.#text.value);
    this.#grow();
    this.showTarget();
    this.#completion.show();
    this.#count();
  }

  #grow(): void {
    this.#text.style.height = "auto";
    this.#text.style.height = `${this.#text.scrollHeight + 2}px`;
  }

  async #submit(memo = false): Promise<void> {
    const text = this.#text.value.trim();
    if (!text && !this.files.attached.length) return;
    clearTimeout(this.#counting);
    const format = this.#format.value;
    if (!(await this.#actions.send(text, this.files.attached, { ...(memo ? { memo } : {}), ...(format && !memo ? { format } : {}) }))) return;
    this.#text.value = "";
    this.files.clear();
    this.typed();
  }

  busy(running: boolean): void {
    this.#stop.hidden = !running;
    this.#send.hidden = running;
  }

  get isBusy(): boolean {
    return !this.#stop.hidden;
  }

  // ── who it goes to ──

  showTarget(): void {
    const text = this.#text.value;
    const models = unknownIn(text, this.#state()) === null ? resolveMentions(text, this.#state()) : [];
    this.#target.textContent = text.trim() ? this.#destination(text, models) : "";
    this.#target.classList.toggle("unknown", unknownIn(text, this.#state()) !== null);
    for (const chip of this.#models.querySelectorAll<HTMLElement>("button")) {
      const name = chip.dataset["name"] ?? "";
      const all = models.length === this.#state().models.length;
      chip.setAttribute("aria-pressed", String(name === "all" ? all : models.includes(name)));
    }
  }

  #destination(text: string, models: readonly string[]): string {
    const unknown = unknownIn(text, this.#state());
    if (unknown !== null) return `There is no model named @${unknown}.`;
    return models.length ? `→ ${models.map((one) => `@${one}`).join(", ")}` : "A memo: stored, not sent to any model.";
  }

  /** A button per model: shows how full its window is, and mentions the model when pressed. */
  showModels(gauges: readonly Gauge[] = this.#gauges): void {
    this.#gauges = gauges;
    const { models } = this.#state();
    const chips = models.map(({ name, window }) => {
      const gauge = gauges.find((one) => one.model === name) ?? { used: 0, window, exact: false, dropped_turns: 0 };
      const share = Math.min(1, gauge.used / gauge.window);
      const counted = `${gauge.used.toLocaleString()} of ${gauge.window.toLocaleString()} tokens`;
      const left = gauge.dropped_turns ? `; the ${gauge.dropped_turns} oldest turns would be left out` : "";
      const described = `${gauge.exact ? "" : "about "}${counted}${left}`;
      return this.#chip(name, described, bar(share), element("span", {}, `${Math.round(share * 100)}%`));
    });
    this.#showChoices();
    this.#models.replaceChildren(...(models.length > 1 ? [this.#chip("all", "Ask all models")] : []), ...chips);
    this.showTarget();
  }

  #showChoices(): void {
    const { models, default: chosen, foreign = [] } = this.#state();
    const [first = ""] = chosen;
    const option = (value: string, label: string, selected: boolean): HTMLElement => element("option", { value, selected }, label);
    const named = models.map((one) => option(one.name, `@${one.name}${one.simulated ? " (simulated)" : ""}`, one.name === first));
    const all = models.length > 1 ? [option("all", "@all", first === "all")] : [];
    this.#default.replaceChildren(...named, ...all, option("", "no model: memos", first === ""));
    const format = this.#format.value;
    this.#format.replaceChildren(option("", "the model's own format", format === ""), ...foreign.map((one) => option(one, formatName(one), one === format)));
    this.#format.closest("label")?.toggleAttribute("hidden", foreign.length === 0);
  }

  #chip(name: string, described: string, ...more: Node[]): HTMLElement {
    const names = this.#state().models.map((one) => one.name);
    const choose = (): void => this.write(toggleMention(this.#text.value, name, names));
    const attributes = { type: "button", class: "model", "data-name": name, title: described, onclick: choose };
    return element("button", attributes, element("span", {}, `@${name}`), ...more);
  }

  #count(): void {
    clearTimeout(this.#counting);
    this.#counting = window.setTimeout(() => {
      void this.#actions.count(this.#text.value).then((gauges) => this.showModels(gauges), () => undefined);
    }, COUNTED_AFTER);
  }

  /** Cancels a pending count. */
  forget(): void {
    clearTimeout(this.#counting);
  }
}

/** A name at the start that no model has. */
const unknownIn = (text: string, state: State): string | null => unknownMention(text, state.models.map((one) => one.name));

/** A bar that shows how full the window is; the text says it too. */
function bar(share: number): HTMLElement {
  const inner = element("span", { class: share > NEARLY_FULL ? "full" : null });
  inner.style.width = `${share * 100}%`;
  return element("span", { class: "gauge", "aria-hidden": "true" }, inner);
}
