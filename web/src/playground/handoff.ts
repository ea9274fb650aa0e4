// Passes a body from another section to the playground.

import { address } from "../router.ts";

export interface Handed {
  readonly text: string;
  readonly format: string;
  readonly kind: string;
}

let handed: Handed | null = null;

export function openInPlayground(given: Handed): void {
  handed = given;
  location.hash = address("playground");
}

/** Returns the body that was passed, once. */
export function takeBody(): Handed | null {
  const given = handed;
  handed = null;
  return given;
}
