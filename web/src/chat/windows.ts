// Windows of the chat: formats, models and options.

import { call } from "../api.ts";
import { show } from "../dialogs.ts";
import { element } from "../dom.ts";
import { attempt } from "../notices.ts";
import { view } from "../json/view.ts";
import { formatName } from "../live/display.ts";
import { lossList } from "../losses.ts";
import type { State, Translation } from "./types.ts";

interface Shown {
  content: string;
  losses: { path: string; what: string; severity: string; why: string }[];
}

const OWN = new Set(["markdown", "json"]);

/** A message in the format of a provider's API, with its losses. */
export async function showAs(path: string, part: string, state: State): Promise<void> {
  const body = element("pre", { tabindex: 0 });
  const losses = element("ul", { class: "losses" });
  const formats = state.formats.filter((name) => !OWN.has(name));
  const pick = element("select", {}, ...formats.map((name) => element("option", {}, name)));
  const load = attempt(async () => {
    const query = new URLSearchParams({ part, format: pick.value });
    const shown = await call<Shown>("GET", `${path}/show?${query}`);
    body.textContent = shown.content;
    const rows = shown.losses.map((one) =>
      element("li", {}, element("b", {}, one.severity), ` ${one.path}: ${one.what} (${one.why})`),
    );
    losses.replaceChildren(...(rows.length ? rows : [element("li", {}, "nothing is lost")]));
  });
  pick.addEventListener("change", () => void load());
  const heading = element("h3", {}, "Losses in this format");
  await Promise.all([load(), show("Show as…", element("label", {}, "Format ", pick), body, heading, losses)]);
}

/** A message as sent, as the model's provider got it, and the losses in between. */
export async function showTranslation(one: Translation): Promise<void> {
  if (one.problem) {
    await show(`@${one.model}`, element("p", { class: "problem" }, one.problem));
    return;
  }
  const side = (title: string, text: string): HTMLElement =>
    element("section", { class: "side", "aria-label": title }, element("h3", {}, title), view(text, title).element);
  const sides = element("div", { class: "translation-sides" }, side(`Sent: ${formatName(one.source)}`, one.sent), side(`@${one.model} got: ${formatName(one.target)}`, one.received));
  await show(`@${one.model}: ${formatName(one.source)} → ${formatName(one.target)}`, sides, element("h3", {}, "Losses"), lossList(one.losses, () => true));
}

export async function exportAs(path: string, state: State): Promise<void> {
  const pick = element("select", {}, ...state.formats.map((name) => element("option", {}, name)));
  const address = (): string => `/_/api${path}/export?format=${encodeURIComponent(pick.value)}`;
  const save = element("a", { class: "button primary", download: "", href: address() }, "Download");
  pick.addEventListener("change", () => save.setAttribute("href", address()));
  await show("Export", element("label", {}, "Format ", pick), element("p", {}, save));
}

/** The model of each name, and options of all of them. */
export async function chooseModels(state: State, changed: (state: State) => void): Promise<void> {
  const change = (path: string, body: () => unknown): (() => unknown) =>
    attempt(async () => changed(await call<State>("PATCH", path, body())));
  const offered = element("datalist", { id: "offered" });
  await Promise.all([
    offer(offered),
    show(
      "Models and options",
      ...state.models.map((one) => modelRow(one.name, one.model, one.window, change)),
      addRow(change),
      offered,
      ...options(state, change),
      element("h3", {}, "Tools"),
      toolList(state),
    ),
  ]);
}

type Change = (path: string, body: () => unknown) => () => unknown;

async function offer(list: HTMLDataListElement): Promise<void> {
  const names = await call<string[]>("GET", "/chat/models").catch(() => []);
  list.replaceChildren(...names.map((name) => element("option", { value: name })));
}

function modelRow(name: string, model: string, window: number, change: Change): HTMLElement {
  const box = element("input", { value: model, list: "offered", "aria-label": `Model of @${name}` });
  box.addEventListener("change", change(`/chat/models/${encodeURIComponent(name)}`, () => ({ model: box.value })));
  const about = element("span", { class: "about" }, `${window.toLocaleString()} tokens`);
  return element("label", { class: "model-row" }, element("b", {}, `@${name}`), box, about);
}

function addRow(change: Change): HTMLElement {
  const name = element("input", { placeholder: "name", "aria-label": "Name of another model" });
  const model = element("input", { placeholder: "provider/model", list: "offered", "aria-label": "Another model" });
  const add = (): void => {
    if (!name.value || !model.value) return;
    change(`/chat/models/${encodeURIComponent(name.value.replace(/^@/, ""))}`, () => ({ model: model.value }))();
  };
  name.addEventListener("change", add);
  model.addEventListener("change", add);
  return element("div", { class: "model-row" }, name, model, element("span", { class: "about" }, "add a model"));
}

function options(state: State, change: Change): HTMLElement[] {
  const share = element("input", { type: "checkbox", checked: state.share });
  share.addEventListener("change", change("/chat/options", () => ({ share: share.checked })));
  const names = ["", "all", ...state.models.map((one) => one.name)];
  const label = (name: string): string => (name ? `@${name}` : "no model: stored as a memo");
  const [chosen = ""] = state.default;
  const row = (name: string): HTMLElement => element("option", { value: name, selected: name === chosen }, label(name));
  const pick = element("select", {}, ...names.map(row));
  pick.addEventListener("change", change("/chat/options", () => ({ default: pick.value ? [pick.value] : [] })));
  return [
    element("label", { class: "row" }, share, element("span", {}, "Models see each other’s answers")),
    element("label", {}, "A message without a mention goes to ", pick),
  ];
}

function toolList(state: State): HTMLElement {
  const rows = state.tools.map((one) => {
    const about = ` ${one.description.split("\n")[0]} ${one.read_only ? "" : "(asks first)"}`;
    return element("li", {}, element("b", {}, one.name), about);
  });
  return element("ul", {}, ...(rows.length ? rows : [element("li", {}, "none")]));
}
