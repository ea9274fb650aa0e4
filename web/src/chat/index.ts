// Several models in one conversation.

import { element } from "../dom.ts";
import type { Place } from "../router.ts";

export const chat: Place = {
  name: "chat",
  label: "Chat",
  mount(root) {
    root.append(element("h1", {}, "Chat"));
  },
  enter() {},
  leave() {},
};
