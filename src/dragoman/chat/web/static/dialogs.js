// Questions and windows, all in the one <dialog> of the page.

import { element } from "./markdown.js";

const box = () => document.getElementById("dialog");

function opened(title, body, buttons) {
  const dialog = box();
  return new Promise((done) => {
    let answer = null;
    const row = buttons.map(([label, kind, give]) =>
      element("button", { type: "button", class: kind, onclick: () => { answer = give(); dialog.close(); } }, label),
    );
    dialog.replaceChildren(element("h2", { id: "dialog-title" }, title), ...body, element("div", { class: "row end" }, ...row));
    // The event of a window before this one may come late: it is not ours while this one is open.
    const closed = () => {
      if (dialog.open) return;
      dialog.removeEventListener("close", closed);
      done(answer);
    };
    dialog.addEventListener("close", closed);
    dialog.showModal();
    (dialog.querySelector("textarea, input, select") ?? row[0]).focus();
  });
}

export const show = (title, ...body) => opened(title, body, [["Close", "primary", () => null]]);

export const confirmed = async (title, text, word) =>
  (await opened(title, [element("p", {}, text)], [["Cancel", "", () => false], [word, "danger", () => true]])) === true;

export function ask(title, label, value) {
  const input = element("input", { value, "aria-label": label });
  return opened(title, [input], [["Cancel", "", () => null], ["OK", "primary", () => input.value.trim()]]);
}

export function askText(title, about, value) {
  const area = element("textarea", { rows: "8", "aria-label": title });
  area.value = value;
  return opened(title, [element("p", {}, about), area], [["Cancel", "", () => null], ["OK", "primary", () => area.value]]);
}
