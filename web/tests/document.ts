// A document for tests that need one, without a browser.

import { Window } from "happy-dom";

const window = new Window({ url: "http://127.0.0.1/" });

Object.assign(globalThis, {
  window,
  document: window.document,
  CSS: window.CSS,
  HTMLElement: window.HTMLElement,
  requestAnimationFrame: (run: () => void) => setTimeout(run, 0),
});
window.document.body.innerHTML = '<div id="status"></div>';

/** Resolves after the next frame was painted. */
export const painted = (): Promise<void> => new Promise((done) => setTimeout(done, 5));
