// The URL holds the location: #/chat/ID?format=gemini is the section `chat`, a rest and a query.

export interface Route {
  readonly section: string;
  readonly rest: readonly string[];
  readonly query: URLSearchParams;
}

/** One section of the page. Its elements are created once and kept, so that input is not lost when switching. */
export interface Section {
  readonly name: string;
  readonly label: string;
  /** Its keyboard shortcuts. */
  readonly keys?: readonly (readonly [keys: string, what: string])[];
  /** Builds the section in `root`. */
  mount(root: HTMLElement): void | Promise<void>;
  /** Called when it is shown, or its URL has changed. */
  enter(route: Route): void;
  /** Called when another section is shown: closes streams. */
  leave(): void;
}

export function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s, 2);
  const [section = "", ...rest] = path.split("/").map(decodeStep);
  return { section, rest: rest.filter((step) => step !== ""), query: new URLSearchParams(query) };
}

function decodeStep(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step; // typed by the user
  }
}

export function address(section: string, rest: readonly string[] = [], query: Record<string, string> = {}): string {
  const path = [section, ...rest].map(encodeURIComponent).join("/");
  const words = new URLSearchParams(query).toString();
  return `#/${path}${words ? `?${words}` : ""}`;
}

/** Replaces the URL of the current view, without a history entry or an event. */
export function rewrite(hash: string): void {
  history.replaceState(null, "", hash);
}

export class Router {
  readonly #sections: readonly Section[];
  readonly #host: HTMLElement;
  readonly #changed: (section: Section) => void;
  readonly #roots = new Map<Section, { root: HTMLElement; ready: Promise<void> }>();
  #shown: Section | null = null;

  constructor(sections: readonly Section[], host: HTMLElement, changed: (section: Section) => void) {
    this.#sections = sections;
    this.#host = host;
    this.#changed = changed;
  }

  start(): void {
    addEventListener("hashchange", () => void this.#follow());
    void this.#follow();
  }

  go(section: string): void {
    location.hash = address(section);
  }

  async #follow(): Promise<void> {
    const route = parse(location.hash);
    const section = this.#sections.find((one) => one.name === route.section);
    if (section === undefined) {
      const [first] = this.#sections;
      if (first !== undefined) rewrite(address(first.name));
      if (first !== undefined) await this.#show(first, parse(location.hash));
      return;
    }
    await this.#show(section, route);
  }

  async #show(section: Section, route: Route): Promise<void> {
    if (this.#shown !== section) {
      this.#shown?.leave();
      this.#shown = section;
      this.#changed(section);
    }
    const { root, ready } = this.#rootOf(section);
    for (const other of this.#host.children) other.toggleAttribute("hidden", other !== root);
    await ready;
    if (this.#shown === section) section.enter(route);
  }

  #rootOf(section: Section): { root: HTMLElement; ready: Promise<void> } {
    let found = this.#roots.get(section);
    if (found === undefined) {
      const root = document.createElement("div");
      root.className = `section ${section.name}`;
      this.#host.append(root);
      found = { root, ready: Promise.resolve(section.mount(root)) };
      this.#roots.set(section, found);
    }
    return found;
  }
}
