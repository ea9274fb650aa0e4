// One page with several sections, listed by the server: a chat alone has no live view.

import "./style.css";
import { call } from "./api.ts";
import { chat } from "./chat/index.ts";
import { isOpen, show } from "./dialogs.ts";
import { button, byId, element, isTyping } from "./dom.ts";
import { keys } from "./keys/index.ts";
import { live } from "./live/index.ts";
import { attempt, withdrawProblems } from "./notices.ts";
import { playground } from "./playground/index.ts";
import { type Section, Router, address, parse } from "./router.ts";
import { restore, toggle } from "./theme.ts";
import { usage } from "./usage/index.ts";

const EVERY: readonly Section[] = [live, chat, playground, usage, keys];
const CHORD = 1200; // milliseconds between g and the letter of a section

interface About {
  version: string;
  sections: string[];
  login: boolean;
  person: string | null;
}

function navigation(sections: readonly Section[]): (shown: Section) => void {
  const links = sections.map((section) => {
    const key = `g ${section.name[0]}`;
    return element("a", { href: address(section.name), title: `${section.label} (${key})` }, section.label);
  });
  byId("sections").replaceChildren(...links);
  return (shown) => {
    withdrawProblems();
    document.title = `${shown.label} - dragoman`;
    sections.forEach((section, index) => {
      if (section === shown) links[index]?.setAttribute("aria-current", "page");
      else links[index]?.removeAttribute("aria-current");
    });
  };
}

/** g and then a letter goes to a section, unless the user is typing. */
function chords(sections: readonly Section[], router: Router): void {
  let begun = -Infinity;
  document.addEventListener("keydown", (event) => {
    if (isTyping(event.target) || isOpen() || event.ctrlKey || event.metaKey || event.altKey) return;
    const section = sections.find((one) => one.name.startsWith(event.key));
    if (event.timeStamp - begun < CHORD && section !== undefined) router.go(section.name);
    begun = event.key === "g" ? event.timeStamp : -Infinity;
    if (event.key === "?") void shortcuts(sections);
  });
}

function shortcuts(sections: readonly Section[]): Promise<void> {
  const shown = sections.find((section) => section.name === parse(location.hash).section);
  const rows: [string, string][] = [
    ...(shown?.keys ?? []).map(([keys, what]): [string, string] => [keys, what]),
    ...sections.map((section): [string, string] => [`g ${section.name[0]}`, section.label]),
    ["?", "This list"],
    ["Esc", "Close a window, stop answers"],
  ];
  const row = ([keys, what]: readonly [string, string]): HTMLElement =>
    element("tr", {}, element("th", { scope: "row" }, element("kbd", {}, keys)), element("td", {}, what));
  return show("Keyboard", element("table", { class: "keys" }, element("tbody", {}, ...rows.map(row))));
}

async function logOut(): Promise<void> {
  await call("POST", "/logout");
  location.href = "/_/login";
}

async function begin(): Promise<void> {
  restore();
  byId("theme").addEventListener("click", toggle);
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the router owns the URL
    byId("section").focus();
  });
  const about = await call<About>("GET", "/site");
  const sections = EVERY.filter((section) => about.sections.includes(section.name));
  const router = new Router(sections, byId("section"), navigation(sections));
  if (about.login) byId("shortcuts").before(button("Log out", attempt(logOut), { id: "logout", class: "quiet" }));
  byId("shortcuts").addEventListener("click", () => void shortcuts(sections));
  chords(sections, router);
  router.start();
}

void attempt(begin)();
