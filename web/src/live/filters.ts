// Which requests are listed, and in which order.

import { button, element } from "../dom.ts";
import { type Column, type Feed, NEWEST, type Order, type Outcome } from "./feed.ts";

const COLUMNS: readonly (readonly [Column, string, string])[] = [
  ["at", "time", "Time"], ["status", "status-column", "Status"], ["pair", "pair", "Client → upstream"], ["model", "model", "Model"],
  ["key", "key", "Key"], ["tokens", "tokens", "Tokens"], ["cost", "cost", "Cost"], ["first", "first", "First byte"],
  ["duration", "duration", "Latency"], ["lost", "lost", "Lost"],
];
const UPWARDS: ReadonlySet<Column> = new Set(["pair", "model", "key"]);
const OUTCOMES: readonly (readonly [Outcome, string])[] = [["good", "Answered"], ["failed", "Failed"], ["running", "In progress"], ["lossy", "With losses"]];

const direction = ({ by, isDescending }: Order): string => {
  if (by === "at") return isDescending ? "newest first" : "oldest first";
  if (UPWARDS.has(by)) return isDescending ? "from Z to A" : "from A to Z";
  return isDescending ? "largest first" : "smallest first";
};

/** The heads of the columns: pressing one sorts by it, pressing it again the other way. */
export class Headings {
  readonly element = element("div", { class: "columns", role: "group", "aria-label": "Sort by" });
  readonly #feed: Feed;
  readonly #buttons: readonly HTMLButtonElement[];

  constructor(feed: Feed, changed: () => void) {
    this.#feed = feed;
    this.#buttons = COLUMNS.map(([by, name, label]) => {
      const press = (): void => {
        const { order } = feed;
        feed.sort({ by, isDescending: order.by === by ? !order.isDescending : !UPWARDS.has(by) });
        changed();
      };
      return button(label, press, { class: name });
    });
    this.element.append(...this.#buttons);
    this.show();
  }

  show(): void {
    const { order } = this.#feed;
    COLUMNS.forEach(([by, , label], place) => {
      const found = this.#buttons[place];
      const isIt = order.by === by;
      found?.setAttribute("aria-pressed", String(isIt));
      found?.setAttribute("title", isIt ? `Sorted by ${label.toLowerCase()}, ${direction(order)}` : `Sort by ${label.toLowerCase()}`);
      if (found !== undefined) found.dataset["order"] = isIt ? (order.isDescending ? "down" : "up") : "";
    });
  }
}

/** Filters by outcome, model and key; and on a phone, without column headers, the sort order. */
export class Filters {
  readonly elements: readonly HTMLElement[];
  readonly #feed: Feed;
  readonly #outcome = choice("Outcome", "Any outcome", OUTCOMES);
  readonly #model = choice("Model", "Any model");
  readonly #key = choice("Key", "Any key");
  readonly #order = choice("Order", "", COLUMNS.map(([by, , label]) => [by, `By ${label.toLowerCase()}`] as const));
  #offered = "";

  constructor(feed: Feed, changed: () => void) {
    this.#feed = feed;
    this.elements = [this.#outcome, this.#model, this.#key, this.#order];
    this.#order.classList.add("order");
    const apply = (): void => {
      feed.only({
        outcome: (this.#outcome.value || undefined) as Outcome | undefined,
        model: this.#model.value || undefined,
        key: this.#key.value || undefined,
      });
      changed();
    };
    for (const one of [this.#outcome, this.#model, this.#key]) one.addEventListener("change", apply);
    this.#order.addEventListener("change", () => {
      const by = this.#order.value as Column;
      feed.sort({ by, isDescending: !UPWARDS.has(by) });
      changed();
    });
  }

  /** Offers the values seen so far. */
  offer(): void {
    const { models, keys } = this.#feed.choices;
    const offered = JSON.stringify([models, keys]);
    this.#order.value = this.#feed.order.by;
    if (offered === this.#offered) return;
    this.#offered = offered;
    refill(this.#model, models);
    refill(this.#key, keys);
    this.#model.hidden = models.length < 2;
    this.#key.hidden = keys.length === 0;
  }

  reset(): void {
    for (const one of [this.#outcome, this.#model, this.#key]) one.value = "";
    this.#feed.only({});
    this.#feed.sort(NEWEST);
  }
}

function choice(label: string, any: string, options: readonly (readonly [string, string])[] = []): HTMLSelectElement {
  const first = any === "" ? [] : [element("option", { value: "" }, any)];
  return element("select", { class: "choice", "aria-label": label }, ...first, ...options.map(([value, words]) => element("option", { value }, words)));
}

function refill(select: HTMLSelectElement, values: readonly string[]): void {
  const chosen = select.value;
  const [first] = select.options;
  select.replaceChildren(...(first === undefined ? [] : [first]), ...values.map((value) => element("option", { value }, value)));
  select.value = values.includes(chosen) ? chosen : "";
}
