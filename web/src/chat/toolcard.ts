// One tool call: name, arguments, duration and result.

import { element } from "../dom.ts";
import type { Media, ToolCall, ToolResult } from "./types.ts";

const SHORT = 60;

export class ToolCard {
  readonly node: HTMLDetailsElement;
  readonly #state = element("span", { class: "state" });
  readonly #output = element("div");
  #ticking = 0;
  #waiting = false;
  #tell: () => void = () => undefined;

  constructor({ name, arguments: given }: Pick<ToolCall, "name" | "arguments">, running: boolean) {
    const line = typeof given === "string" ? given : JSON.stringify(given ?? {});
    const whole = typeof given === "string" ? given : JSON.stringify(given ?? {}, null, 2);
    const short = line.length > SHORT ? `${line.slice(0, SHORT)}…` : line;
    this.node = element(
      "details",
      { class: "tool", "data-tool": name },
      element("summary", {}, element("b", {}, name), element("span", { class: "given" }, short), this.#state),
      element("pre", { "aria-label": "Arguments", tabindex: 0, role: "group" }, whole),
      this.#output,
    );
    if (running) this.#tick();
  }

  #tick(): void {
    const begun = performance.now();
    const tell = (): void => {
      const seconds = Math.round((performance.now() - begun) / 1000);
      const word = this.#waiting ? "waiting for you" : "running";
      this.#state.textContent = seconds ? `${word}, ${seconds} s` : `${word}…`;
      if (!this.node.isConnected && seconds) clearInterval(this.#ticking);
    };
    this.#tell = tell;
    tell();
    this.#ticking = window.setInterval(tell, 1000);
    this.node.classList.add("running");
  }

  /** The call waits for the user's permission. */
  wait(waiting: boolean): void {
    this.#waiting = waiting;
    if (this.node.classList.contains("running")) this.#tell();
  }

  #settle(word: string): void {
    clearInterval(this.#ticking);
    this.node.classList.remove("running");
    this.#state.textContent = word;
  }

  result(result: Pick<ToolResult, "content" | "is_error" | "media">): void {
    const text = typeof result.content === "string" ? result.content : JSON.stringify(result.content, null, 2);
    this.#settle(result.is_error ? "error" : "done");
    this.node.classList.toggle("failed", Boolean(result.is_error));
    const label = result.is_error ? "Error" : "Result";
    const shown = element("pre", { "aria-label": label, tabindex: 0, role: "group" }, text);
    this.#output.replaceChildren(shown, ...(result.media ?? []).flatMap(picture));
  }

  took(milliseconds: number): void {
    const time = milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
    this.#state.textContent += ` (${time})`;
  }

  /** The answer ended without a result. */
  abandoned(): void {
    if (this.node.classList.contains("running")) this.#settle("no result");
  }
}

export function picture(one: Media): HTMLElement[] {
  if (one.type !== "image" || !one.data) return [];
  const source = `data:${one.media_type ?? "image/png"};base64,${one.data}`;
  return [element("img", { class: "picture", alt: one.title || "picture", src: source })];
}
