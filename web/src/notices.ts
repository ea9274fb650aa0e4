// Short notices above the page, for events and errors.

import { button, byId, element } from "./dom.ts";

const SHOWN_FOR = 6000;

export type Kind = "info" | "problem";

export function notice(text: string, kind: Kind = "info"): void {
  withdraw(text); // the same notice twice says nothing more
  const close = button("×", () => line.remove(), { class: "small", "aria-label": "Close" });
  const line = element("div", { class: kind }, element("span", {}, text), close);
  byId("status").append(line);
  if (kind === "info") setTimeout(() => line.remove(), SHOWN_FOR);
}

/** Removes a notice that is no longer true. */
export function withdraw(text: string): void {
  withdrawIf((line) => line.firstChild?.textContent === text);
}

/** Removes errors, such as those of a section that the user has left. */
export function withdrawProblems(): void {
  withdrawIf((line) => line.matches(".problem"));
}

function withdrawIf(isOver: (line: Element) => boolean): void {
  for (const line of [...byId("status").children]) if (isOver(line)) line.remove();
}

/** Runs the work and shows errors as notices instead of throwing. */
export function attempt<Given extends unknown[], Result>(
  work: (...given: Given) => Result | Promise<Result>,
): (...given: Given) => Promise<Result | undefined> {
  return async (...given) => {
    try {
      return await work(...given);
    } catch (problem) {
      notice(problem instanceof Error ? problem.message : String(problem), "problem");
      return undefined;
    }
  };
}
