// Passes a body from another section to the playground.

import { address } from "../router.ts";

export interface Handed {
  readonly text: string;
  readonly format: string;
  readonly kind: string;
}

let handed: Handed | null = null;

export function open(given: Handed): void {
  handed = given;
  location.hash = address("playground");
}

/** Returns the body once. */
export function taken(): Handed | null {
  const given = handed;
  handed = null;
  return given;
}
