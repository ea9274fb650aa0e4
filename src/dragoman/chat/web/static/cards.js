// One answer: text, reasoning folded, a card per tool call, and how it ended.

import { element, markdown } from "./markdown.js";

const HUES = ["#0f766e", "#7c3aed", "#c2410c", "#2563eb", "#be185d", "#4d7c0f"];
const WORDS = { error: "Failed", refused: "Declined", empty: "No answer", stopped: "Stopped", cut: "Cut short", interrupted: "Interrupted" };

export class Card {
  constructor(key, model, models, actions) {
    this.key = key;
    this.model = model;
    this.actions = actions;
    this.parts = [];
    this.tools = new Map();
    this.running = false;
    const index = Math.max(0, models.findIndex((one) => one.name === model));
    const known = models[index]?.name === model ? models[index].model : "";
    this.about = element("span", { class: "about" }, known);
    this.body = element("div", { class: "body" });
    this.foot = element("div", { class: "foot" });
    const name = element("span", { class: "name" }, model);
    name.style.setProperty("--hue", HUES[index % HUES.length]);
    this.stopper = element("button", { type: "button", class: "small", onclick: () => actions.stop(key) }, "Stop");
    this.head = element("div", { class: "head" }, name, this.about, this.stopper);
    this.node = element("section", { class: "answer", "aria-label": `Answer of ${model}`, "data-model": model, "data-answer": key }, this.head, this.body, this.foot);
  }

  begin(entries) {
    this.running = true;
    this.node.classList.add("busy");
    this.fill(entries);
  }

  finished(entries) {
    const last = entries.at(-1) ?? {};
    this.running = false;
    this.node.classList.remove("busy");
    this.stopper.hidden = true;
    this.fill(entries);
    this.ended(last);
    if (last.model) this.about.textContent = usageOf(last);
    if (entries.some((entry) => entry.replaced)) this.replaced();
    const text = this.parts.filter((part) => part.type === "text").map((part) => part.content).join("\n\n");
    const button = (label, run) => element("button", { type: "button", class: "small", onclick: run }, label);
    this.foot.replaceChildren(
      button("Copy", () => this.actions.copy(text)),
      ...(last.answer ? [button("Retry", () => this.actions.retry(last.answer))] : []),
      button("Branch", () => this.actions.branch(last.id)),
      button("Show as…", () => this.actions.showAs(last.answer || last.id)),
    );
  }

  ended(last) {
    if ((last.status ?? "ok") === "ok") return;
    const word = WORDS[last.status] ?? last.status;
    this.body.append(element("div", { class: "problem", role: "alert" }, element("b", {}, word), `: ${last.error || "no reason was given"}`));
  }

  replaced() {
    this.node.classList.add("replaced");
    this.about.textContent = "an earlier answer, replaced";
  }

  // ── content ─────────────────────────────────────────────────────────────────────────────────────────────────

  fill(entries) {
    this.parts = [];
    this.tools.clear();
    this.body.replaceChildren();
    for (const entry of entries) for (const part of entry.content ?? []) this.add(part);
  }

  add(part) {
    if (part.type === "tool_result") {
      this.result(part.tool_call_id, part.name, part.content, part.is_error, part.media);
      return;
    }
    const kept = { ...part };
    this.parts.push(kept);
    if (part.type === "tool_call") this.call(part.content ?? part);
    else this.body.append((kept.node = element("div")));
    this.paint(kept);
  }

  paint(part) {
    if (part.type === "text") part.node.replaceChildren(...markdown(part.content));
    else if (part.type === "reasoning") {
      if (!part.fold) {
        part.inner = element("div");
        part.fold = element("details", { class: "reasoning" }, element("summary", {}, "Reasoning"), part.inner);
        part.node.replaceChildren(part.fold);
      }
      part.inner.textContent = part.content;
      part.node.hidden = !part.content;
    } else if (part.type !== "tool_call") part.node.replaceChildren(element("span", { class: "chip" }, part.type));
  }

  delta(type, text) {
    let last = this.parts.at(-1);
    if (last?.type !== type) {
      this.add({ type, content: "" });
      last = this.parts.at(-1);
    }
    last.content += text;
    // Painted once a frame, however fast the pieces come.
    if (!last.waiting) {
      last.waiting = true;
      requestAnimationFrame(() => {
        last.waiting = false;
        this.paint(last);
      });
    }
  }

  call({ name, arguments: given, tool_call_id: id }) {
    const told = element("span", { class: "state" }, "running…");
    const shown = typeof given === "string" ? given : JSON.stringify(given ?? {}, null, 2);
    const short = typeof given === "string" ? given : JSON.stringify(given ?? {});
    const output = element("div");
    const node = element(
      "details",
      { class: "tool", "data-tool": name },
      element("summary", {}, told, "⚙ ", element("b", {}, name), ` ${short.length > 60 ? `${short.slice(0, 60)}…` : short}`),
      element("pre", { "aria-label": "Arguments", tabindex: "0" }, shown),
      output,
    );
    this.tools.set(id, { node, told, output });
    this.body.append(node);
  }

  result(id, name, content, failed, media) {
    if (!this.tools.has(id)) this.call({ name, arguments: "", tool_call_id: id });
    const tool = this.tools.get(id);
    const text = typeof content === "string" ? content : JSON.stringify(content, null, 2);
    tool.told.textContent = failed ? "error" : "done";
    tool.node.classList.toggle("failed", Boolean(failed));
    const pictures = (media ?? []).filter((one) => one.type === "image" && one.data).map((one) => element("img", { class: "picture", alt: "result", src: `data:${one.media_type};base64,${one.data}` }));
    tool.output.replaceChildren(element("pre", { "aria-label": "Result", tabindex: "0" }, text), ...pictures);
  }

  // ── while it runs ───────────────────────────────────────────────────────────────────────────────────────────

  activity(event) {
    const handle = {
      text_delta: () => this.delta("text", event.content),
      reasoning_delta: () => this.delta("reasoning", event.content),
      tool_call: () => this.add({ type: "tool_call", content: { name: event.tool, arguments: event.args, tool_call_id: event.tool_call_id } }),
      tool_result: () => this.result(event.tool_call_id, event.tool, event.result, event.is_error),
      step_complete: () => {
        const tool = this.tools.get(event.step_id);
        if (tool) tool.told.textContent += ` (${event.duration_ms < 1000 ? `${Math.round(event.duration_ms)} ms` : `${(event.duration_ms / 1000).toFixed(1)} s`})`;
      },
      retry: () => this.body.append(element("div", { class: "reasoning" }, `${event.reason}; again in ${event.delay.toFixed(1)} s`)),
    }[event.type];
    handle?.();
  }

  ask(question, permit) {
    const button = (label, kind, answer) => element("button", { type: "button", class: kind, onclick: () => permit(question.id, answer) }, label);
    const box = element(
      "div",
      { class: "ask", role: "alert", "aria-label": "Permission", "data-question": question.id },
      element("p", {}, element("b", {}, this.model), " wants to run ", element("code", {}, question.tool), " with"),
      element("pre", {}, JSON.stringify(question.arguments, null, 2)),
      element("div", { class: "row" }, button("Allow", "primary", { allow: true }), button("Always allow", "", { allow: true, always: true }), button("Deny", "danger", { allow: false })),
    );
    // Not focused: whoever is typing must not allow something by accident. Screen readers are told.
    this.body.append(box);
  }

  settled(id) {
    this.body.querySelector(`[data-question="${CSS.escape(id)}"]`)?.remove();
  }
}

function usageOf(entry) {
  const usage = entry.usage;
  return usage?.input === undefined ? entry.model : `${entry.model} · ${usage.input.toLocaleString()} + ${(usage.output ?? 0).toLocaleString()} tokens`;
}
