// Prompts and windows, in the one <dialog> of the page.

import { byId, element } from "./dom.ts";
import { notice } from "./notices.ts";

type Choice<Answer> = readonly [label: string, kind: string, give: () => Answer];

const CANCEL: Choice<null> = ["Cancel", "", () => null];

/** Opens the dialog, and calls `done` when the user has closed it. */
function showModal(dialog: HTMLDialogElement, done: () => void): void {
  const closed = (): void => {
    if (dialog.open) return; // a late close event of the previous window
    dialog.removeEventListener("close", closed);
    done();
  };
  dialog.addEventListener("close", closed);
  dialog.showModal();
}

/** Focuses the first field, or else the button, without scrolling a long window to its end. */
function focusFirst(dialog: HTMLDialogElement, fields: string, otherwise?: HTMLElement): void {
  (dialog.querySelector<HTMLElement>(fields) ?? otherwise)?.focus({ preventScroll: true });
  dialog.scrollTop = 0;
}

// Back and Forward leave the section that the window belongs to.
addEventListener("hashchange", () => byId<HTMLDialogElement>("dialog").close());

function choose<Answer>(
  title: string,
  body: readonly Node[],
  choices: readonly Choice<Answer>[],
): Promise<Answer | null> {
  const dialog = byId<HTMLDialogElement>("dialog");
  return new Promise((done) => {
    let answer: Answer | null = null;
    const row = choices.map(([label, kind, give]) => {
      const onclick = (): void => {
        answer = give();
        dialog.close();
      };
      return element("button", { type: "button", class: kind, onclick }, label);
    });
    const heading = element("h2", { id: "dialog-title" }, title);
    dialog.replaceChildren(heading, ...body, element("div", { class: "row end" }, ...row));
    showModal(dialog, () => done(answer));
    focusFirst(dialog, "textarea, input, select", row[0]);
  });
}

/** Asks for input; if the server refuses it, the window stays open with the reason. */
export function form<Answer>(title: string, body: readonly Node[], word: string, submit: () => Promise<Answer>): Promise<Answer | null> {
  const dialog = byId<HTMLDialogElement>("dialog");
  return new Promise((done) => {
    let answer: Answer | null = null;
    const problem = element("p", { class: "problem", role: "alert", hidden: true });
    const send = element("button", { class: "primary" }, word);
    const cancel = element("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
    const onsubmit = async (event: Event): Promise<void> => {
      event.preventDefault();
      send.disabled = true;
      try {
        answer = await submit();
        dialog.close();
      } catch (error) {
        problem.hidden = false;
        problem.textContent = error instanceof Error ? error.message : String(error);
      } finally {
        send.disabled = false;
      }
    };
    const inner = element("form", { onsubmit }, ...body, problem, element("div", { class: "row end" }, cancel, send));
    dialog.replaceChildren(element("h2", { id: "dialog-title" }, title), inner);
    showModal(dialog, () => done(answer));
    focusFirst(dialog, "input");
  });
}

export const isOpen = (): boolean => byId<HTMLDialogElement>("dialog").open;

export async function show(title: string, ...body: Node[]): Promise<void> {
  await choose(title, body, [["Close", "primary", () => null]]);
}

export async function confirmAction(title: string, text: string, word: string): Promise<boolean> {
  const choices: Choice<boolean>[] = [["Cancel", "", () => false], [word, "danger", () => true]];
  return (await choose(title, [element("p", {}, text)], choices)) === true;
}

export function ask(title: string, label: string, value: string): Promise<string | null> {
  const input = element("input", { value, "aria-label": label });
  return choose<string | null>(title, [input], [CANCEL, ["OK", "primary", () => input.value.trim()]]);
}

const unsent = new Map<string, string>();

/** Keeps unsaved input for the next time. */
export async function askText(title: string, about: string, value: string): Promise<string | null> {
  const area = element("textarea", { rows: 8, "aria-label": title });
  const key = `${title}\n${value}`;
  area.value = unsent.get(key) ?? value;
  const body = [element("p", {}, about), area];
  const text = await choose<string | null>(title, body, [CANCEL, ["OK", "primary", () => area.value]]);
  if (text === null && area.value !== value) {
    unsent.set(key, area.value);
    notice("Your text is kept and will be here when you open this again.");
  } else unsent.delete(key);
  return text;
}
