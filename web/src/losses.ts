// What did not cross, as a list. Choosing one shows its place.

import { element } from "./dom.ts";
import type { Loss } from "./live/types.ts";

const WORDS: Record<Loss["severity"], string> = {
  dropped: "the other side never sees it",
  degraded: "it arrives in a poorer form",
  invented: "nobody said it, and the other side demands it",
  noted: "bookkeeping about the answer; what it says is the same",
};

/** How many there are, without what is mere bookkeeping. */
export const lossCount = (losses: readonly Loss[]): number => losses.filter((loss) => loss.severity !== "noted").length;

/** `choose` shows the place; whether it is exactly there. `failure` stands where there is no answer that could have lost anything. */
export function lossList(losses: readonly Loss[], choose: (loss: Loss) => boolean, failure = ""): HTMLElement {
  // A request that failed has lost everything, whatever the translation of it dropped.
  if (losses.length === 0 && failure !== "") return element("p", { class: "lost-all" }, failure);
  if (losses.length === 0) return element("p", { class: "nothing-lost" }, "Nothing was lost.");
  const list = element("ul", { class: "loss-list" });
  for (const loss of losses) {
    const about = element("span", { class: "soft nearest", hidden: true }, "Not said in this body: this is the nearest place.");
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
