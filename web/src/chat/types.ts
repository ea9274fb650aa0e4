// Data of the server.

export interface Model {
  name: string;
  /** provider/model. */
  model: string;
  window: number;
  /** A simulator answers instead of a model. */
  simulated?: boolean;
}

export interface ToolInfo {
  name: string;
  description: string;
  read_only: boolean;
}

export interface State {
  models: Model[];
  tools: ToolInfo[];
  share: boolean;
  default: string[];
  formats: string[];
  warning: string;
  /** Formats in which a message can be sent, for the gateway to translate. */
  foreign?: string[];
}

export interface Translation {
  model: string;
  source: string;
  target: string;
  sent: string;
  received: string;
  losses: { path: string; what: string; severity: "dropped" | "degraded" | "invented" | "noted"; why: string }[];
  problem: string;
}

export interface ToolCall {
  name: string;
  arguments?: unknown;
  tool_call_id: string;
}

export interface Media {
  type: "image" | "document" | "audio";
  media_type?: string;
  data?: string;
  text?: string;
  title?: string;
}

export interface ToolResult {
  type: "tool_result";
  name: string;
  tool_call_id: string;
  content: unknown;
  is_error?: boolean;
  media?: Media[];
}

export type Part =
  | { type: "text" | "reasoning"; content: string }
  | { type: "tool_call"; content: ToolCall }
  | ToolResult
  | Media;

export type Status = "ok" | "error" | "refused" | "empty" | "stopped" | "cut" | "interrupted";

export interface Entry {
  role: string;
  id: string;
  content?: Part[];
  turn?: string;
  answer?: string;
  owner?: string;
  model?: string;
  status?: Status;
  error?: string;
  replaced?: boolean;
  usage?: { input?: number; output?: number };
}

export interface Gauge {
  model: string;
  used: number;
  window: number;
  exact: boolean;
  dropped_turns: number;
}

export interface Question {
  id: string;
  answer: string;
  tool: string;
  arguments: Record<string, unknown>;
  tool_call_id?: string;
}

export interface Started {
  answer: string;
  turn: string;
  model: string;
  replaces?: string;
}

export interface Snapshot {
  id: string | null;
  name: string;
  title: string;
  system_prompt: string;
  entries: Entry[];
  running: (Started & { entries: Entry[] })[];
  questions: Question[];
  gauges: Gauge[];
}

export interface Row {
  id: string;
  name: string;
  updated: string;
  models: string[];
  excerpt: string;
  running: boolean;
}

export interface Attachment {
  name: string;
  media_type: string;
  data: string;
}

/** Events of an agent that the page shows. */
export type AgentEvent =
  | { type: "text_delta" | "reasoning_delta"; content: string }
  | { type: "tool_call"; tool: string; args: Record<string, unknown>; tool_call_id: string }
  | { type: "tool_result"; tool: string; result: string; tool_call_id: string; is_error?: boolean }
  | { type: "step_complete"; step_id: string; duration_ms: number }
  | { type: "retry"; reason: string; delay: number };

/** The stream of one conversation: the first event is a snapshot, also after reconnecting. */
export interface Events {
  snapshot: Snapshot;
  said: { entry: Entry; models?: string[] };
  answer_started: Started;
  activity: { answer: string; event: AgentEvent };
  permission_asked: Question;
  permission_settled: { id: string };
  answer_ended: { answer: string; model: string; status: Status; entries: Entry[] };
  turn_ended: { turn: string };
  gauges: { gauges: Gauge[]; title: string };
  notice: { text: string; level?: "info" | "warning" };
}
