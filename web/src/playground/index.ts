// A body, in every format.

import { element } from "../dom.ts";
import type { Place } from "../router.ts";

export const playground: Place = {
  name: "playground",
  label: "Playground",
  mount(root) {
    root.append(element("h1", {}, "Playground"));
  },
  enter() {},
  leave() {},
};
