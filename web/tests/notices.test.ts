import "./document.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, Problem, UNREACHABLE } from "../src/api.ts";
import { attempt, notice, withdrawProblems } from "../src/notices.ts";

const shown = (): string[] => [...document.querySelectorAll("#status > div > span")].map((line) => line.textContent);

function answering(answer: () => Promise<Response>): void {
  globalThis.fetch = answer as typeof fetch;
}

test("a server that does not answer is reported once, in our words, until it answers again", async () => {
  answering(() => Promise.reject(new TypeError("Failed to fetch")));
  const ask = attempt(() => call("GET", "/site"));
  await ask();
  await ask();
  assert.deepEqual(shown(), [UNREACHABLE]);
  await assert.rejects(call("GET", "/site"), (problem: Problem) => problem.status === 0);
  answering(() => Promise.resolve(new Response("{}", { status: 200 })));
  await ask();
  assert.deepEqual(shown(), []);
});

test("errors go with the section that they belong to; other notices stay", () => {
  notice("There is no model named @nobody.", "problem");
  notice("Copied");
  withdrawProblems();
  assert.deepEqual(shown(), ["Copied"]);
});
