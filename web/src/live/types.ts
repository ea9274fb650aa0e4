// Data of the server about requests (src/dragoman/web/request_detail.py, connections.py). Omitted fields have defaults.

export type Phase = "begun" | "answering" | "ended";

export interface Summary {
  readonly id: string;
  readonly at: number;
  readonly phase: Phase;
  readonly operation: string;
  readonly client: string;
  readonly format?: string;
  readonly model?: string;
  readonly route?: string;
  readonly upstream?: string;
  readonly target?: string;
  readonly key?: string;
  readonly stream?: boolean;
  readonly status?: number;
  readonly attempts?: number;
  readonly first_byte?: number;
  readonly duration?: number;
  readonly tokens?: { readonly input: number; readonly output: number; readonly cached?: number };
  readonly cost?: number;
  /** Whether the answer came from the cache, where there is one. */
  readonly cache?: "hit" | "miss" | "bypass";
  readonly losses?: number;
  readonly failure?: string;
  readonly error?: string;
}

export interface Shown {
  readonly text: string;
  readonly size: number;
  readonly is_cut?: boolean;
}

export interface Trouble {
  readonly type: string;
  readonly message: string;
  readonly path?: string;
  readonly expected?: string;
  readonly got?: string;
}

export interface Meant {
  readonly text?: string;
  readonly problem?: Trouble;
}

export interface Loss {
  readonly path: string;
  readonly what: string;
  readonly severity: "dropped" | "degraded" | "invented" | "noted";
  readonly why: string;
}

export interface Attempt {
  readonly upstream: string;
  readonly model: string;
  readonly format: string;
  readonly is_same: boolean;
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: Shown | null;
  readonly began: number;
  readonly ended?: number;
  readonly status?: number;
  readonly failure?: string;
  readonly error?: string;
  readonly answer?: Shown;
}

export interface Step {
  readonly at: number;
  readonly received?: string;
  readonly sent?: string;
  readonly received_size?: number;
  readonly sent_size?: number;
}

export interface Opened {
  readonly summary: Summary;
  readonly client: { readonly method: string; readonly path: string; readonly headers: Record<string, string>; readonly body: Shown | null };
  readonly meant: Meant | null;
  readonly attempts: readonly Attempt[];
  readonly losses: readonly Loss[];
  readonly losses_back: readonly Loss[];
  readonly answer: { readonly received?: Shown; readonly meant?: Meant; readonly sent?: Shown };
  readonly timeline: readonly Step[];
  readonly unheld?: number;
  readonly unheld_size?: number;
}

export interface Connection {
  readonly name: string;
  readonly provider: string;
  readonly format: string;
  readonly is_simulated?: boolean;
  readonly keys?: readonly string[];
  readonly models?: readonly string[];
  readonly upstreams?: readonly { readonly name: string; readonly breaker: string; readonly in_flight: number }[];
}

export interface Route {
  readonly name: string;
  readonly to: readonly string[];
  readonly fallback?: readonly string[];
  readonly settings?: Record<string, unknown>;
}

/** Shell commands that point a client to this gateway. */
export interface Client {
  readonly name: string;
  readonly lines: string;
}

export interface Connected {
  readonly connections: readonly Connection[];
  readonly routes: readonly Route[];
  readonly clients: readonly Client[];
}
