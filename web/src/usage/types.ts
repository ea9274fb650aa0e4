// Data of the server about usage (src/dragoman/web/live.py) and keys (src/dragoman/web/key_admin.py).

export interface UsageRow {
  readonly key: string;
  readonly upstream: string;
  readonly model: string;
  readonly day: string;
  readonly requests: number;
  readonly failed: number;
  readonly input: number;
  readonly output: number;
  readonly cost: number;
}

export interface Usage {
  readonly currency: string;
  /** Whether there is a database; if not, only the requests kept for the page count. */
  readonly kept: boolean;
  readonly rows: readonly UsageRow[];
}
