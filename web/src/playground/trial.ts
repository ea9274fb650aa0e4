// Sends the body in the editor to a model and shows the answer.

import { Problem, call } from "../api.ts";
import { button, element } from "../dom.ts";
import { view } from "../json/view.ts";
import { duration, formatName, money } from "../live/display.ts";
import type { Loss } from "../live/types.ts";
import { lossList } from "../losses.ts";
import { address } from "../router.ts";

const CHOSEN = "playground-model";

export interface Tried {
  readonly model: string;
  readonly source: string;
  readonly format: string;
  readonly milliseconds: number;
  readonly text?: string;
  readonly reasoning?: string;
  readonly calls?: readonly { readonly name: string; readonly arguments: unknown }[];
  readonly finish?: string;
  readonly input?: number;
  readonly output?: number;
  readonly cost?: number;
  readonly losses?: readonly Loss[];
  readonly body?: string;
  readonly request?: string;
  readonly is_simulated?: boolean;
  readonly error?: string;
}

export interface TrialActions {
  given(): { text: string; format: string };
  /** The result, or why there is none. */
  ended(tried: Tried | string): void;
}

export class Trial {
  readonly element: HTMLElement;
  readonly #actions: TrialActions;
  readonly #model = element("input", { list: "trial-models", placeholder: "provider/model", "aria-label": "Model to send it to", autocomplete: "off", spellcheck: "false" });
  readonly #offered = element("datalist", { id: "trial-models" });
  readonly #run: HTMLButtonElement;
  #canSend = false;

  constructor(actions: TrialActions) {
    this.#actions = actions;
    this.#run = button("Run", () => void this.run(), { class: "primary", title: "Send it to the model (Ctrl+Enter)", disabled: true });
    this.element = element("div", { class: "trial", hidden: true }, this.#model, this.#offered, this.#run);
    this.#model.value = localStorage.getItem(CHOSEN) ?? "";
    this.#model.addEventListener("input", () => this.#show());
    this.#model.addEventListener("keydown", (event) => {
      if (event.key === "Enter") void this.run();
    });
  }

  async offer(): Promise<void> {
    const names = await call<string[]>("GET", "/playground/models").catch(() => []);
    this.element.hidden = names.length === 0;
    this.#offered.replaceChildren(...names.map((value) => element("option", { value })));
    if (this.#model.value === "") this.#model.value = names.find((one) => one.startsWith("anthropic/")) ?? names[0] ?? "";
    this.#show();
  }

  /** Only a request can be sent. */
  allow(canSend: boolean): void {
    this.#canSend = canSend;
    this.#show();
  }

  #show(): void {
    this.#run.disabled = !this.#canSend || this.#model.value.trim() === "" || this.#run.dataset["busy"] === "true";
  }

  async run(): Promise<void> {
    if (this.#run.disabled || this.element.hidden) return;
    const model = this.#model.value.trim();
    localStorage.setItem(CHOSEN, model);
    this.#busy(true);
    try {
      const { text, format } = this.#actions.given();
      this.#actions.ended(await call<Tried>("POST", "/playground/run", { text, format, model }));
    } catch (problem) {
      this.#actions.ended(problem instanceof Problem ? problem.message : String(problem));
    } finally {
      this.#busy(false);
    }
  }

  #busy(isBusy: boolean): void {
    this.#run.dataset["busy"] = String(isBusy);
    this.#run.textContent = isBusy ? "Running …" : "Run";
    this.#show();
  }
}

/** A model's answer, with its tokens and losses. */
export function answerView(tried: Tried | string, reveal: (loss: Loss) => boolean): Node[] {
  if (typeof tried === "string") return [element("p", { class: "problem", role: "alert" }, tried)];
  const facts = [
    `${formatName(tried.source)} → ${formatName(tried.format)}`, duration(tried.milliseconds),
    tried.input === undefined ? "" : `${tried.input} tokens in, ${tried.output ?? 0} out`, money(tried.cost),
    tried.finish ? `ended: ${tried.finish.replaceAll("_", " ")}` : "",
  ].filter((one) => one !== "");
  const badge = tried.is_simulated ? element("span", { class: "simulated" }, "simulated") : null;
  const link = tried.request ? element("a", { href: address("live", [tried.request]) }, "See the request") : null;
  const head = element("div", { class: "about answered" }, element("b", {}, tried.model), badge,
    element("span", {}, facts.join(" · ")), element("span", { class: "space" }), link);
  if (tried.error) return [head, element("p", { class: "problem", role: "alert" }, tried.error)];
  const answer = element("div", { class: "trial-answer", tabindex: 0, role: "group", "aria-label": "Answer" },
    tried.reasoning ? element("details", {}, element("summary", {}, "Reasoning"), element("p", {}, tried.reasoning)) : null,
    element("p", { class: "words" }, tried.text || (tried.calls?.length ? "" : "The answer is empty.")),
    ...(tried.calls ?? []).map((one) => element("p", { class: "call" }, element("b", {}, `→ ${one.name}`), " ", element("code", {}, JSON.stringify(one.arguments)))),
    tried.body ? element("details", {}, element("summary", {}, "As the provider wrote it"), view(tried.body, "Answer").element) : null,
  );
  return [head, answer, element("div", { class: "lost" }, lossList(tried.losses ?? [], reveal))];
}
