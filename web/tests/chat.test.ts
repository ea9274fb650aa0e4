import { painted } from "./document.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { Card, type CardActions } from "../src/chat/card.ts";
import { groupAnswers, textOf } from "../src/chat/groups.ts";
import { resolveMentions, completions, unknownMention, toggleMention } from "../src/chat/mentions.ts";
import type { Entry, Model } from "../src/chat/types.ts";
import table from "./mentions.json" with { type: "json" };

const NAMES = table.models;
const MODELS: Model[] = NAMES.map((name) => ({ name, model: `x/${name}`, window: 1000 }));
const known = { models: MODELS, default: [] as string[] };

test("a message goes to the models named at its start, by the rules of the server", () => {
  for (const [text, expected] of table.cases as [string, string[]][]) {
    assert.deepEqual(resolveMentions(text, known), expected, text);
  }
});

test("an unknown name is reported", () => {
  assert.equal(unknownMention("@gemni hi", NAMES), "gemni");
  for (const text of ["@gemini hi", "@all", "hi @gemni", ""]) assert.equal(unknownMention(text, NAMES), null, text);
});

test("a message without a mention goes to the default models", () => {
  assert.deepEqual(resolveMentions("hi", { ...known, default: ["gemini"] }), ["gemini"]);
  assert.deepEqual(resolveMentions("hi", { ...known, default: ["all"] }), NAMES);
});

test("a button adds and removes a mention", () => {
  assert.equal(toggleMention("hi", "gemini", NAMES), "@gemini hi");
  assert.equal(toggleMention("@gemini hi", "Claude", NAMES), "@gemini @Claude hi");
  assert.equal(toggleMention("@gemini @claude hi", "gemini", NAMES), "@Claude hi");
  assert.equal(toggleMention("@gemini hi", "all", NAMES), "@all hi");
  assert.equal(toggleMention("@all hi", "gemini", NAMES), "@gemini hi");
  assert.equal(toggleMention("@all hi", "all", NAMES), "hi");
});

test("mentions are completed at the start only", () => {
  assert.deepEqual(completions("@g", MODELS).map((one) => one.name), ["gemini", "gpt-5.6"]);
  assert.deepEqual(completions("@gemini @", MODELS).map((one) => one.name), ["gemini", "Claude", "gpt-5.6", "all"]);
  assert.deepEqual(completions("hi @g", MODELS), []);
  assert.deepEqual(completions("@gemini", MODELS), []);
});

test("entries are grouped by answer, those of old files by speaker", () => {
  const entries: Entry[] = [
    { role: "user", id: "1", turn: "1", content: [{ type: "text", content: "hi" }] },
    { role: "gemini", id: "2", turn: "1", answer: "a" },
    { role: "tool", id: "3", turn: "1", answer: "a", owner: "gemini" },
    { role: "gemini", id: "4", turn: "1", answer: "b" },
    { role: "claude", id: "5", turn: "1" },
    { role: "tool", id: "6", turn: "1", owner: "claude" },
    { role: "system", id: "7" },
  ];
  const told = groupAnswers(entries).map((one) => [one.speaker, one.entries.map((entry) => entry.id).join()]);
  assert.deepEqual(told, [["user", "1"], ["gemini", "2,3"], ["gemini", "4"], ["claude", "5,6"], ["system", "7"]]);
  assert.equal(textOf(entries[0] as Entry), "hi");
});

function card(): { card: Card; done: string[] } {
  const done: string[] = [];
  const note = (word: string) => (...given: unknown[]): unknown =>
    done.push([word, ...given.map((one) => JSON.stringify(one))].join(" "));
  const words = ["copy", "retry", "branch", "showAs", "stop", "permit"] as const;
  const actions = Object.fromEntries(words.map((word) => [word, note(word)])) as unknown as CardActions;
  return { card: new Card("a1", "gemini", MODELS, actions), done };
}

const click = (node: HTMLElement, label: string): void =>
  [...node.querySelectorAll("button")].find((one) => one.textContent === label)?.click();

test("an answer grows with its events, and in the end equals the stored one", async () => {
  const { card: shown, done } = card();
  shown.begin([]);
  shown.activity({ type: "reasoning_delta", content: "Hm." });
  shown.activity({ type: "text_delta", content: "I **lo" });
  shown.activity({ type: "text_delta", content: "ok**." });
  shown.activity({ type: "tool_call", tool: "weather", args: { city: "Oslo" }, tool_call_id: "c1" });
  shown.ask({ id: "q1", answer: "a1", tool: "weather", arguments: {}, tool_call_id: "c1" });
  await painted();
  const body = shown.node.querySelector(".body");
  assert.deepEqual([...(body?.children ?? [])].map((one) => one.className), ["reasoning", "", "tool running", "ask"]);
  assert.equal(body?.querySelector("strong")?.textContent, "look");
  assert.match(body?.querySelector(".state")?.textContent ?? "", /waiting for you/);
  click(shown.node, "Allow");
  shown.settled("q1");
  assert.match(body?.querySelector(".state")?.textContent ?? "", /running/);
  shown.activity({ type: "tool_result", tool: "weather", result: "snow", tool_call_id: "c1" });
  shown.activity({ type: "step_complete", step_id: "c1", duration_ms: 1500 });
  assert.equal(body?.querySelector(".state")?.textContent, "done (1.5 s)");
  const content = [{ type: "text" as const, content: "It" }];
  shown.finished([{ role: "gemini", id: "e1", answer: "a1", status: "cut", content }]);
  assert.equal(shown.running, false);
  assert.match(body?.textContent ?? "", /^ItCut short: no reason given$/);
  for (const label of ["Copy", "Retry", "Branch", "Show as…"]) click(shown.node, label);
  assert.deepEqual(done, ['permit "q1" {"allow":true}', 'copy "It"', 'retry "a1"', 'branch "e1"', 'showAs "a1"']);
});

test("a call without a result is shown as such, and a failed one is marked", () => {
  const { card: shown } = card();
  const call = (id: string): Entry["content"] => [{ type: "tool_call", content: { name: "t", tool_call_id: id } }];
  const result = { type: "tool_result" as const, name: "t", tool_call_id: "2", content: { why: "no" }, is_error: true };
  shown.begin([{ role: "gemini", id: "1", content: [...(call("1") ?? []), ...(call("2") ?? []), result] }]);
  const states = (): (string | null)[] => [...shown.node.querySelectorAll(".state")].map((one) => one.textContent);
  assert.deepEqual(states(), ["running…", "error"]);
  assert.equal(shown.node.querySelector(".failed pre[aria-label=Error]")?.textContent, '{\n  "why": "no"\n}');
});
