// A stream over time: received chunks above the line, sent chunks below it. The selected chunk is shown on both sides.

import { element } from "../dom.ts";
import { counted, view } from "../json/view.ts";
import type { Opened, Step } from "./types.ts";
import { bytes, duration } from "./display.ts";

const WIDTH = 1000;
const HALF = 60; // of the height
const LEAST = 3;
const SVG = "http://www.w3.org/2000/svg";

function svgElement(tag: string, attributes: Record<string, string | number>, ...children: SVGElement[]): SVGElement {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

export class Timeline {
  readonly element: HTMLElement;
  readonly #steps: readonly Step[];
  readonly #end: number;
  readonly #most: number;
  readonly #chart: HTMLElement;
  readonly #needle = svgElement("rect", { class: "needle", y: 0, height: HALF * 2, width: 2 });
  readonly #about = element("p", { class: "about", "aria-live": "polite" });
  readonly #sides = element("div", { class: "sides" });
  #chosen = 0;

  constructor(opened: Opened, chosen: number) {
    this.#steps = opened.timeline;
    this.#end = Math.max(opened.summary.duration ?? 0, this.#steps.at(-1)?.at ?? 0, 1);
    this.#most = Math.max(...this.#steps.map((step) => Math.max(step.received_size ?? 0, step.sent_size ?? 0)), 1);
    this.#chart = this.#drawChart();
    this.element = element("div", { class: "timeline" }, this.#legend(opened), this.#chart, this.#scale(), this.#about, this.#sides);
    this.choose(chosen);
  }

  choose(place: number): void {
    this.#chosen = Math.max(0, Math.min(this.#steps.length - 1, place));
    const step = this.#steps[this.#chosen];
    if (step === undefined) return;
    this.#needle.setAttribute("x", String(this.#x(step)));
    const [received, sent] = [bytes(step.received_size ?? 0), bytes(step.sent_size ?? 0)];
    const described = `chunk ${this.#chosen + 1} of ${this.#steps.length}, after ${duration(step.at)}: ${received} received, ${sent} sent`;
    this.#chart.setAttribute("aria-valuenow", String(this.#chosen + 1));
    this.#chart.setAttribute("aria-valuetext", described);
    this.#about.textContent = described;
    this.#sides.replaceChildren(side("From the upstream", step.received ?? ""), side("To the client", step.sent ?? ""));
  }

  get chosen(): number {
    return this.#chosen;
  }

  #x(step: Step): number {
    return (step.at / this.#end) * (WIDTH - 4);
  }

  /** Logarithmic, so that small chunks stay visible beside large ones. */
  #height(size: number): number {
    return size === 0 ? 0 : Math.max(LEAST, (Math.log1p(size) / Math.log1p(this.#most)) * (HALF - 4));
  }

  #drawChart(): HTMLElement {
    const width = Math.max(1.5, Math.min(8, (WIDTH / Math.max(this.#steps.length, 1)) * 0.6));
    const bars = this.#steps.flatMap((step) => {
      const [up, down] = [this.#height(step.received_size ?? 0), this.#height(step.sent_size ?? 0)];
      const x = this.#x(step);
      return [
        svgElement("rect", { class: "came", x, width, y: HALF - 1 - up, height: up, rx: 1 }),
        svgElement("rect", { class: "left", x, width, y: HALF + 1, height: down, rx: 1 }),
      ];
    });
    const line = svgElement("line", { class: "axis", x1: 0, x2: WIDTH, y1: HALF, y2: HALF });
    const frame = { viewBox: `0 0 ${WIDTH} ${HALF * 2}`, preserveAspectRatio: "none", "aria-hidden": "true" };
    const picture = svgElement("svg", frame, this.#needle, line, ...bars);
    const chart = element("div", {
      class: "chart", role: "slider", tabindex: 0, "aria-label": "Chunk of the stream", "aria-orientation": "horizontal",
      "aria-valuemin": 1, "aria-valuemax": this.#steps.length,
      onpointerdown: (event: PointerEvent) => this.#at(event),
      onpointermove: (event: PointerEvent) => event.buttons === 1 && this.#at(event),
      onkeydown: (event: KeyboardEvent) => this.#pressed(event),
    });
    chart.append(picture);
    return chart;
  }

  #at(event: PointerEvent): void {
    const box = this.#chart.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * this.#end;
    let nearest = 0;
    this.#steps.forEach((step, place) => {
      if (Math.abs(step.at - at) < Math.abs((this.#steps[nearest]?.at ?? 0) - at)) nearest = place;
    });
    this.choose(nearest);
  }

  #pressed(event: KeyboardEvent): void {
    const last = this.#steps.length - 1;
    const places: Record<string, number> = {
      ArrowRight: this.#chosen + 1, ArrowUp: this.#chosen + 1, ArrowLeft: this.#chosen - 1, ArrowDown: this.#chosen - 1,
      PageUp: this.#chosen + 10, PageDown: this.#chosen - 10, Home: 0, End: last,
    };
    const place = places[event.key];
    if (place === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.choose(place);
  }

  #legend(opened: Opened): HTMLElement {
    const sum = (of: (step: Step) => number): string => bytes(this.#steps.reduce((total, step) => total + of(step), 0));
    const unheld = opened.unheld ? ` · ${counted(opened.unheld, "more chunk")} (${bytes(opened.unheld_size ?? 0)}) not kept` : "";
    return element("p", { class: "legend" },
      element("span", { class: "swatch came" }), ` received from the upstream: ${sum((step) => step.received_size ?? 0)}`,
      element("span", { class: "swatch left" }), ` sent to the client: ${sum((step) => step.sent_size ?? 0)}`,
      element("span", { class: "soft" }, `${counted(this.#steps.length, "chunk")}${unheld} · ← → to move`),
    );
  }

  #scale(): HTMLElement {
    const marks = [0, 0.25, 0.5, 0.75, 1].map((part) => element("span", {}, duration(part * this.#end)));
    return element("div", { class: "scale", "aria-hidden": "true" }, ...marks);
  }
}

function side(title: string, text: string): HTMLElement {
  const body = text === "" ? element("p", { class: "soft none" }, "nothing") : view(text, `${title}, raw`).element;
  return element("section", { class: "pane" }, element("div", { class: "pane-head" }, element("h3", {}, title)), body);
}
