// One answer: text, reasoning folded, a card per tool call, and how it ended.

import { button, element } from "../dom.ts";
import { markdown } from "../markdown.ts";
import { ToolCard } from "./toolcard.ts";
import type { AgentEvent, Entry, Model, Part, Question, Status, ToolResult } from "./types.ts";

const HUES = 6; // as many as the style has
const WORDS: Record<Exclude<Status, "ok">, string> = {
  error: "Failed",
  refused: "Declined",
  empty: "No answer",
  stopped: "Stopped",
  cut: "Cut short",
  interrupted: "Interrupted",
};

export interface CardActions {
  copy(text: string): unknown;
  retry(answer: string): unknown;
  branch(entry: string): unknown;
  showAs(part: string): unknown;
  stop(answer: string): unknown;
  permit(question: string, answer: { allow: boolean; always?: boolean }): unknown;
}

/** Growing text, painted at most once per frame. */
class Growing {
  readonly node: HTMLElement;
  readonly type: "text" | "reasoning";
  content = "";
  readonly #target: HTMLElement;
  #waiting = false;

  constructor(type: "text" | "reasoning") {
    this.type = type;
    this.#target = element("div");
    this.node =
      type === "text"
        ? this.#target
        : element("details", { class: "reasoning", hidden: true }, element("summary", {}, "Reasoning"), this.#target);
  }

  append(text: string): void {
    this.content += text;
    if (this.#waiting) return;
    this.#waiting = true;
    requestAnimationFrame(() => {
      this.#waiting = false;
      this.paint();
    });
  }

  paint(): void {
    if (this.type === "text") this.#target.replaceChildren(...markdown(this.content));
    else this.#target.textContent = this.content;
    this.node.hidden = this.content === "";
  }
}

export class Card {
  readonly node: HTMLElement;
  running = false;
  readonly #key: string;
  readonly #model: string;
  readonly #actions: CardActions;
  readonly #about = element("span", { class: "about" });
  readonly #body = element("div", { class: "body" });
  readonly #foot = element("div", { class: "foot" });
  readonly #stopper: HTMLButtonElement;
  readonly #tools = new Map<string, ToolCard>();
  #texts: Growing[] = [];
  #last: Growing | null = null;
  #retry: HTMLElement | null = null;

  constructor(key: string, model: string, models: readonly Model[], actions: CardActions) {
    this.#key = key;
    this.#model = model;
    this.#actions = actions;
    const index = models.findIndex((one) => one.name === model);
    this.#tellAbout(models[index]?.model ?? "");
    this.#stopper = button("Stop", () => actions.stop(key), { class: "small" });
    const name = element("h2", { class: `name hue-${Math.max(0, index) % HUES}` }, model);
    const badge = models[index]?.simulated ? element("span", { class: "simulated", title: "A simulator on this machine answers instead of a model" }, "simulated") : null;
    const head = element("div", { class: "head" }, name, badge, this.#about, this.#stopper);
    const attributes = { class: "answer", "aria-label": `Answer of ${model}`, "data-model": model, "data-answer": key };
    this.node = element("section", attributes, head, this.#body, this.#foot);
  }

  begin(entries: readonly Entry[]): void {
    this.running = true;
    this.node.classList.add("busy");
    this.#fill(entries);
  }

  finished(entries: readonly Entry[]): void {
    const last = entries.at(-1);
    this.running = false;
    this.node.classList.remove("busy");
    this.#stopper.hidden = true;
    this.#fill(entries);
    for (const tool of this.#tools.values()) tool.abandoned();
    if (last === undefined) return;
    this.#tellEnd(last);
    if (last.model) this.#tellAbout(usageOf(last));
    if (entries.some((entry) => entry.replaced)) this.replaced();
    this.#offer(last);
  }

  #tellEnd({ status = "ok", error }: Entry): void {
    if (status === "ok") return;
    const words = `: ${error || "no reason given"}`;
    this.#body.append(element("div", { class: "problem", role: "alert" }, element("b", {}, WORDS[status]), words));
  }

  #offer(last: Entry): void {
    const { copy, retry, branch, showAs } = this.#actions;
    const text = this.#texts.filter((one) => one.type === "text").map((one) => one.content).join("\n\n");
    const { answer } = last;
    const small = { class: "small" };
    this.#foot.replaceChildren(
      button("Copy", () => copy(text), small),
      ...(answer ? [button("Retry", () => retry(answer), small)] : []),
      button("Branch", () => branch(last.id), small),
      button("Show as…", () => showAs(answer || last.id), small),
    );
  }

  replaced(): void {
    this.node.classList.add("replaced");
    this.#tellAbout("an earlier answer, replaced");
  }

  #tellAbout(words: string): void {
    this.#about.textContent = words;
    this.#about.title = words; // it may be cut
  }

  // ── content ──

  #fill(entries: readonly Entry[]): void {
    this.#texts = [];
    this.#last = null;
    this.#tools.clear();
    this.#body.replaceChildren();
    for (const entry of entries) for (const part of entry.content ?? []) this.#add(part);
  }

  #add(part: Part): void {
    if (part.type === "text" || part.type === "reasoning") {
      const made = this.#grow(part.type);
      made.content = String(part.content);
      made.paint();
    } else if (part.type === "tool_call") this.#call(part.content.tool_call_id, part.content);
    else if (part.type === "tool_result") this.#result(part);
    else this.#put(element("span", { class: "chip" }, part.type));
  }

  #put(node: HTMLElement): void {
    this.#last = null;
    this.#body.append(node);
  }

  #grow(type: "text" | "reasoning"): Growing {
    const made = new Growing(type);
    this.#put(made.node);
    this.#texts.push(made);
    this.#last = made;
    return made;
  }

  #delta(type: "text" | "reasoning", text: string): void {
    const last = this.#last?.type === type ? this.#last : this.#grow(type);
    last.append(text);
  }

  #call(id: string, call: { name: string; arguments?: unknown }): ToolCard {
    const made = new ToolCard(call, this.running);
    this.#tools.set(id, made);
    this.#put(made.node);
    return made;
  }

  #result(result: Pick<ToolResult, "tool_call_id" | "name" | "content" | "is_error" | "media">): void {
    const { tool_call_id: id, name } = result;
    const tool = this.#tools.get(id) ?? this.#call(id, { name, arguments: "" });
    tool.result(result);
  }

  // ── while it runs ──

  activity(event: AgentEvent): void {
    // Remove the notice about a retry as soon as anything else happens.
    this.#retry?.remove();
    this.#retry = null;
    switch (event.type) {
      case "text_delta":
        return this.#delta("text", event.content);
      case "reasoning_delta":
        return this.#delta("reasoning", event.content);
      case "tool_call":
        return void this.#call(event.tool_call_id, { name: event.tool, arguments: event.args });
      case "tool_result": {
        const failed = event.is_error ?? false;
        return this.#result({ ...event, name: event.tool, content: event.result, is_error: failed });
      }
      case "step_complete":
        return this.#tools.get(event.step_id)?.took(event.duration_ms);
      case "retry": {
        const words = `${event.reason}; again in ${event.delay.toFixed(1)} s`;
        this.#retry = element("p", { class: "aside" }, words);
        return this.#put(this.#retry);
      }
      default: // kinds that need not be shown
        return undefined;
    }
  }

  /** Not focused, so that typing cannot allow a call by accident. Announced to screen readers. */
  ask(question: Question): void {
    const answer = (label: string, kind: string, given: { allow: boolean; always?: boolean }): HTMLElement =>
      button(label, () => this.#actions.permit(question.id, given), { class: kind });
    this.#tools.get(question.tool_call_id ?? "")?.wait(true);
    this.#put(
      element(
        "div",
        { class: "ask", role: "alert", "aria-label": "Permission", "data-question": question.id },
        element("p", {}, element("b", {}, this.#model), " wants to run ", element("code", {}, question.tool), " with"),
        element("pre", {}, JSON.stringify(question.arguments, null, 2)),
        element(
          "div",
          { class: "row" },
          answer("Allow", "primary", { allow: true }),
          answer("Always allow", "", { allow: true, always: true }),
          answer("Deny", "danger", { allow: false }),
        ),
      ),
    );
  }

  settled(question: string): void {
    const box = this.#body.querySelector(`[data-question="${CSS.escape(question)}"]`);
    if (box === null) return;
    box.remove();
    for (const tool of this.#tools.values()) tool.wait(false);
  }

  get key(): string {
    return this.#key;
  }
}

function usageOf({ model = "", usage }: Entry): string {
  if (usage?.input === undefined) return model;
  return `${model} · ${usage.input.toLocaleString()} + ${(usage.output ?? 0).toLocaleString()} tokens`;
}
