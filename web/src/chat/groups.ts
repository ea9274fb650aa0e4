// Groups the entries of one answer: text, calls, results, text again.

import type { Entry } from "./types.ts";

export interface Group {
  readonly key: string;
  readonly speaker: string;
  readonly turn: string;
  readonly entries: Entry[];
}

const NO_MODELS = new Set(["user", "system"]);

/** Old files have no answer ids: their entries are grouped by speaker. */
export function groupAnswers(entries: readonly Entry[]): Group[] {
  const groups: Group[] = [];
  for (const entry of entries) {
    const speaker = entry.role === "tool" ? (entry.owner ?? "") : entry.role;
    const key = NO_MODELS.has(entry.role) ? entry.id : entry.answer || `${entry.turn ?? ""}/${speaker}`;
    const last = groups.at(-1);
    if (last?.key === key) last.entries.push(entry);
    else groups.push({ key, speaker, turn: entry.turn || entry.id, entries: [entry] });
  }
  return groups;
}

export function textOf(entry: Entry): string {
  const texts = (entry.content ?? []).flatMap((part) => (part.type === "text" ? [part.content] : []));
  return texts.join("\n");
}
