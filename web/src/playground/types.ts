// Data of the server about a body (src/dragoman/web/all_formats.py).

import type { Loss, Meant, Trouble } from "../live/types.ts";

export type Kind = "request" | "response" | "error" | "stream";
export type Group = "wire" | "record" | "compatible";

export interface Crossed {
  readonly format: string;
  readonly group: Group;
  readonly text?: string;
  readonly losses?: readonly Loss[];
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly note?: string;
  readonly problem?: Trouble;
}

export interface Described {
  readonly head: string;
  readonly text?: string;
  readonly remark?: string;
  readonly warning?: string;
  readonly style?: string;
  readonly children?: readonly Described[];
}

export interface Understood {
  readonly format: string;
  readonly kind: Kind;
  readonly is_detected: boolean;
  readonly meant: Meant;
  readonly description: Described;
  readonly crossed: readonly Crossed[];
}

/** Why the input cannot be read, and the offending character. */
export interface Refused {
  readonly problem: Trouble;
  readonly place: number | null;
}
