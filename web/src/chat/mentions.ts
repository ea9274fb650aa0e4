// Shows the recipients while a message is written. The server applies the same rules (dragoman.chat.mentions).

import type { Model } from "./types.ts";

const MENTION = /\s*@([A-Za-z0-9_][A-Za-z0-9_.-]*)/y;
const ALL = "all";

interface Known {
  readonly models: readonly Pick<Model, "name">[];
  readonly default: readonly string[];
}

/** Mentioned names at the start, as whole words; `@allies` is text. Without any, the default models. */
export function resolveMentions(text: string, known: Known): string[] {
  const names = known.models.map((one) => one.name);
  const chosen = new Set(leadingMentions(text, names).words);
  const wanted = chosen.size ? chosen : new Set(known.default);
  return names.filter((name) => wanted.has(name) || wanted.has(ALL));
}

/** An unknown name at the start, most likely a typo. */
export function unknownMention(text: string, names: readonly string[]): string | null {
  MENTION.lastIndex = 0;
  const word = MENTION.exec(text)?.[1]?.replace(/[.-]+$/, "") ?? null;
  const isKnown = word === null || [ALL, ...names].some((name) => name.toLowerCase() === word.toLowerCase());
  return isKnown ? null : word;
}

function leadingMentions(text: string, names: readonly string[]): { words: string[]; end: number } {
  const words: string[] = [];
  let end = 0;
  MENTION.lastIndex = 0;
  for (let found; (found = MENTION.exec(text)); ) {
    const word = (found[1] ?? "").replace(/[.-]+$/, "").toLowerCase();
    const name = word === ALL ? ALL : names.find((one) => one.toLowerCase() === word);
    if (name === undefined) break;
    words.push(name);
    end = MENTION.lastIndex;
  }
  return { words, end };
}

/** The message with one more mention, or one less. */
export function toggleMention(text: string, name: string, names: readonly string[]): string {
  const { words, end } = leadingMentions(text, names);
  const rest = text.slice(end).trimStart();
  const others = name === ALL ? [] : words.filter((word) => word !== ALL && word !== name);
  const chosen = words.includes(name) ? others : [...others, name];
  const mentions = chosen.map((word) => `@${word} `).join("");
  return mentions + rest;
}

/** Completions of the mention before the cursor. */
export function completions(before: string, models: readonly Model[]): { name: string; about: string }[] {
  const begun = /^\s*(?:@[\w.-]+\s+)*@([\w.-]*)$/.exec(before)?.[1];
  if (begun === undefined) return [];
  const every = [...models.map((one) => ({ name: one.name, about: one.model })), { name: ALL, about: "everyone" }];
  return every.filter((one) => one.name.toLowerCase().startsWith(begun.toLowerCase()) && one.name !== begun);
}
