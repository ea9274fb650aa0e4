// One page with several sections, listed by the server: a chat alone has no live view.

import "./style.css";
import { call } from "./api.ts";
import { chat } from "./chat/index.ts";
import { isOpen, show } from "./dialogs.ts";
import { button, byId, element, isTyping } from "./dom.ts";
import { keys } from "./keys/index.ts";
import { live } from "./live/index.ts";
import { attempt } from "./notices.ts";
import { playground } from "./playground/index.ts";
import { type Place, Router, address, parse } from "./router.ts";
import { restore, toggle } from "./theme.ts";
import { usage } from "./usage/index.ts";

const EVERY: readonly Place[] = [live, chat, playground, usage, keys];
const CHORD = 1200; // milliseconds between g and the letter of a section

interface About {
  version: string;
  places: string[];
  login: boolean;
  person: string | null;
}

function navigation(places: readonly Place[]): (shown: Place) => void {
  const links = places.map((place) => {
    const key = `g ${place.name[0]}`;
    return element("a", { href: address(place.name), title: `${place.label} (${key})` }, place.label);
  });
  byId("places").replaceChildren(...links);
  return (shown) => {
    document.title = `${shown.label} - dragoman`;
    places.forEach((place, index) => {
      if (place === shown) links[index]?.setAttribute("aria-current", "page");
      else links[index]?.removeAttribute("aria-current");
    });
  };
}

/** g and then a letter goes to a section, unless the user is typing. */
function chords(places: readonly Place[], router: Router): void {
  let begun = -Infinity;
  document.addEventListener("keydown", (event) => {
    if (isTyping(event.target) || isOpen() || event.ctrlKey || event.metaKey || event.altKey) return;
    const place = places.find((one) => one.name.startsWith(event.key));
    if (event.timeStamp - begun < CHORD && place !== undefined) router.go(place.name);
    begun = event.key === "g" ? event.timeStamp : -Infinity;
    if (event.key === "?") void shortcuts(places);
  });
}

function shortcuts(places: readonly Place[]): Promise<void> {
  const shown = places.find((place) => place.name === parse(location.hash).place);
  const rows: [string, string][] = [
    ...(shown?.keys ?? []).map(([keys, what]): [string, string] => [keys, what]),
    ...places.map((place): [string, string] => [`g ${place.name[0]}`, place.label]),
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
    byId("place").focus();
  });
  const about = await call<About>("GET", "/site");
  const places = EVERY.filter((place) => about.places.includes(place.name));
  const router = new Router(places, byId("place"), navigation(places));
  if (about.login) byId("keys").before(button("Log out", attempt(logOut), { id: "logout", class: "quiet" }));
  byId("keys").addEventListener("click", () => void shortcuts(places));
  chords(places, router);
  router.start();
}

void attempt(begin)();
