// The URL holds the location: #/chat/ID?format=gemini is the section `chat`, a rest and a query.

export interface Route {
  readonly place: string;
  readonly rest: readonly string[];
  readonly query: URLSearchParams;
}

/** One section of the page. Its elements are created once and kept, so that input is not lost when switching. */
export interface Place {
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
  const [place = "", ...rest] = path.split("/").map(decoded);
  return { place, rest: rest.filter((step) => step !== ""), query: new URLSearchParams(query) };
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step; // typed by the user
  }
}

export function address(place: string, rest: readonly string[] = [], query: Record<string, string> = {}): string {
  const path = [place, ...rest].map(encodeURIComponent).join("/");
  const words = new URLSearchParams(query).toString();
  return `#/${path}${words ? `?${words}` : ""}`;
}

/** Replaces the URL of the current view, without a history entry or an event. */
export function rewrite(hash: string): void {
  history.replaceState(null, "", hash);
}

export class Router {
  readonly #places: readonly Place[];
  readonly #host: HTMLElement;
  readonly #changed: (place: Place) => void;
  readonly #roots = new Map<Place, { root: HTMLElement; ready: Promise<void> }>();
  #shown: Place | null = null;

  constructor(places: readonly Place[], host: HTMLElement, changed: (place: Place) => void) {
    this.#places = places;
    this.#host = host;
    this.#changed = changed;
  }

  start(): void {
    addEventListener("hashchange", () => void this.#follow());
    void this.#follow();
  }

  go(place: string): void {
    location.hash = address(place);
  }

  async #follow(): Promise<void> {
    const route = parse(location.hash);
    const place = this.#places.find((one) => one.name === route.place);
    if (place === undefined) {
      const [first] = this.#places;
      if (first !== undefined) rewrite(address(first.name));
      if (first !== undefined) await this.#show(first, parse(location.hash));
      return;
    }
    await this.#show(place, route);
  }

  async #show(place: Place, route: Route): Promise<void> {
    if (this.#shown !== place) {
      this.#shown?.leave();
      this.#shown = place;
      this.#changed(place);
    }
    const { root, ready } = this.#rootOf(place);
    for (const other of this.#host.children) other.toggleAttribute("hidden", other !== root);
    await ready;
    if (this.#shown === place) place.enter(route);
  }

  #rootOf(place: Place): { root: HTMLElement; ready: Promise<void> } {
    let found = this.#roots.get(place);
    if (found === undefined) {
      const root = document.createElement("div");
      root.className = `place ${place.name}`;
      this.#host.append(root);
      found = { root, ready: Promise.resolve(place.mount(root)) };
      this.#roots.set(place, found);
    }
    return found;
  }
}
