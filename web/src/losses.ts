// Lists losses. Choosing one shows its place.

import { element } from "./dom.ts";
import type { Loss } from "./live/types.ts";

const WORDS: Record<Loss["severity"], string> = {
  dropped: "the target does not get it",
  degraded: "it arrives in a reduced form",
  invented: "added, because the target requires it",
  noted: "bookkeeping about the answer; its content is the same",
};

/** Number of losses, without notes. */
export const lossCount = (losses: readonly Loss[]): number => losses.filter((loss) => loss.severity !== "noted").length;

/** `choose` shows the place and returns whether it exists exactly. `failure` is shown instead if the request failed. */
export function lossList(losses: readonly Loss[], choose: (loss: Loss) => boolean, failure = ""): HTMLElement {
  // A failed request has lost everything, whatever its translation dropped.
  if (losses.length === 0 && failure !== "") return element("p", { class: "lost-all" }, failure);
  if (losses.length === 0) return element("p", { class: "nothing-lost" }, "Nothing was lost.");
  const list = element("ul", { class: "loss-list" });
  for (const loss of losses) {
    const about = element("span", { class: "soft nearest", hidden: true }, "Not in this body: this is the nearest place.");
    const pick = (): void => {
      for (const other of list.querySelectorAll("[aria-pressed]")) other.setAttribute("aria-pressed", "false");
      button.setAttribute("aria-pressed", "true");
      about.hidden = choose(loss);
    };
    const button = element("button", { type: "button", class: "loss", "aria-pressed": "false", onclick: pick },
      element("span", { class: `severity ${loss.severity}`, title: WORDS[loss.severity] }, loss.severity),
      element("code", {}, loss.path),
      element("span", { class: "what" }, loss.what),
      element("span", { class: "why" }, loss.why),
      about,
    );
    list.append(element("li", {}, button));
  }
  return list;
}
