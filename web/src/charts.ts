// Small charts: a large number, its history below, and values at any time by pointer or arrow keys.

import { element } from "./dom.ts";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 100; // units of the drawing, which is stretched to fit
const HEIGHT = 40;

/** One row of bars or one line; null is a gap. */
export interface Series {
  readonly kind: "bar" | "line";
  /** The class with its colour and its pattern. */
  readonly look: string;
  readonly values: readonly (number | null)[];
}

export interface Drawn {
  readonly value: string;
  readonly about?: string;
  readonly series: readonly Series[];
  /** The text for a position. */
  readonly tip: (place: number) => string;
  /** Text shown instead of an empty chart. */
  readonly none?: string | undefined;
}

function shape(name: string, attributes: Record<string, string | number>): SVGElement {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

export class Chart {
  readonly element: HTMLElement;
  readonly #label: string;
  readonly #value = element("span", { class: "value" });
  readonly #about = element("span", { class: "about" });
  readonly #plot: HTMLElement;
  readonly #tip = element("span", { class: "tip", role: "status" });
  readonly #cursor = element("span", { class: "cursor", hidden: true });
  #drawn: Drawn | null = null;
  #place: number | null = null;

  constructor(label: string, look = "") {
    this.#label = label;
    this.#plot = element("div", { class: "plot", tabindex: 0, role: "img" });
    const head = element("figcaption", {}, element("span", { class: "label" }, label), this.#value, this.#about);
    this.element = element("figure", { class: `small-chart ${look}` }, head, this.#plot, this.#tip);
    this.#plot.addEventListener("pointermove", (event) => this.#point(this.#placeAt(event)));
    this.#plot.addEventListener("pointerleave", () => this.#point(null));
    this.#plot.addEventListener("blur", () => this.#point(null));
    this.#plot.addEventListener("keydown", (event) => this.#pressed(event));
  }

  get #length(): number {
    return Math.max(0, ...(this.#drawn?.series ?? []).map((one) => one.values.length));
  }

  #placeAt(event: PointerEvent): number {
    const { left, width } = this.#plot.getBoundingClientRect();
    return Math.max(0, Math.min(this.#length - 1, Math.floor(((event.clientX - left) / Math.max(1, width)) * this.#length)));
  }

  #pressed(event: KeyboardEvent): void {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0 || this.#length === 0) return;
    event.preventDefault();
    event.stopPropagation();
    this.#point(Math.max(0, Math.min(this.#length - 1, (this.#place ?? this.#length - (step < 0 ? 0 : 1)) + step)));
  }

  #point(place: number | null): void {
    const drawn = this.#drawn;
    this.#place = drawn === null || drawn.none !== undefined || this.#length === 0 ? null : place;
    this.#cursor.hidden = this.#place === null;
    this.#tip.textContent = this.#place === null || drawn === null ? "" : drawn.tip(this.#place);
    if (this.#place === null) return;
    const share = (this.#place + 0.5) / this.#length;
    this.#cursor.style.left = `${share * 100}%`;
    this.#tip.classList.toggle("right", share > 0.5);
  }

  show(drawn: Drawn): void {
    this.#drawn = drawn;
    this.#value.textContent = drawn.value;
    this.#about.textContent = drawn.about ?? "";
    this.#plot.setAttribute("aria-label", `${this.#label}: ${drawn.value}${drawn.about ? `, ${drawn.about}` : ""}. Arrow keys read the chart.`);
    if (drawn.none !== undefined) this.#plot.replaceChildren(element("span", { class: "none" }, drawn.none));
    else this.#plot.replaceChildren(draw(drawn.series), this.#cursor);
    this.#point(this.#place);
  }
}

function draw(series: readonly Series[]): SVGElement {
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  const stacks: number[] = [];
  for (const one of series) if (one.kind === "bar") one.values.forEach((value, place) => (stacks[place] = (stacks[place] ?? 0) + (value ?? 0)));
  const lines = series.filter((one) => one.kind === "line").flatMap((one) => one.values.filter((value) => value !== null));
  const most = Math.max(...stacks, ...lines, Number.MIN_VALUE);
  svg.append(shape("line", { class: "base", x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5 }));
  const below = stacks.map(() => 0);
  for (const one of series) {
    if (one.kind === "bar") bars(svg, one, below, most);
    else line(svg, one, most);
  }
  return svg;
}

function bars(svg: SVGElement, one: Series, below: number[], most: number): void {
  const width = WIDTH / one.values.length;
  one.values.forEach((value, place) => {
    if (!value) return;
    const height = Math.max(1.5, (value / most) * (HEIGHT - 2));
    const floor = below[place] ?? 0;
    below[place] = floor + height;
    svg.append(shape("rect", { class: one.look, x: place * width + width * 0.12, width: width * 0.76, y: HEIGHT - floor - height, height, rx: 0.5 }));
  });
}

/** A point alone is a dash: a line needs two. */
function line(svg: SVGElement, one: Series, most: number): void {
  const width = WIDTH / one.values.length;
  const at = (place: number, value: number): string => `${((place + 0.5) * width).toFixed(2)},${(HEIGHT - 1.5 - (value / most) * (HEIGHT - 4)).toFixed(2)}`;
  const known = one.values.flatMap((value, place) => (value === null ? [] : [[place, value] as const]));
  const [first] = known;
  if (first === undefined) return;
  if (known.length > 1) {
    svg.append(shape("polyline", { class: one.look, points: known.map(([place, value]) => at(place, value)).join(" ") }));
    return;
  }
  const [x, y] = at(...first).split(",").map(Number) as [number, number];
  svg.append(shape("polyline", { class: one.look, points: `${x - width / 2},${y} ${x + width / 2},${y}` }));
}
