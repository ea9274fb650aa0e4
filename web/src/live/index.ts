// Requests as they happen.

import { element } from "../dom.ts";
import type { Place } from "../router.ts";

export const live: Place = {
  name: "live",
  label: "Live",
  mount(root) {
    root.append(element("h1", {}, "Live"));
  },
  enter() {},
  leave() {},
};
