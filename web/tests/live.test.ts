import assert from "node:assert/strict";
import { test } from "node:test";
import { curl } from "../src/live/curl.ts";
import { Feed, fits } from "../src/live/feed.ts";
import type { Opened, Summary } from "../src/live/types.ts";

function request(id: string, more: Partial<Summary> = {}): Summary {
  return { id, at: 0, phase: "ended", operation: "generate", client: "openai-chat", ...more };
}

test("the newest is first, and what goes on stays in its place", () => {
  const feed = new Feed();
  feed.replace([request("b"), request("a")]);
  feed.change([request("c", { phase: "begun" })]);
  feed.change([request("a", { status: 200 })]);
  assert.deepEqual(feed.rows.map((one) => one.id), ["c", "b", "a"]);
  assert.equal(feed.find("a")?.status, 200);
  assert.deepEqual(feed.counts, { all: 3, underWay: 1, failed: 0 });
});

test("at most a thousand are known", () => {
  const feed = new Feed();
  for (let number = 0; number < 1500; number += 1) feed.change([request(`r${number}`)]);
  assert.equal(feed.rows.length, 1000);
  assert.equal(feed.rows[0]?.id, "r1499");
});

test("held still, new ones wait and known ones go on", () => {
  const feed = new Feed();
  feed.replace([request("a", { phase: "begun" })]);
  feed.pause(true);
  feed.change([request("b"), request("a", { status: 200 })]);
  assert.deepEqual([feed.rows.map((one) => one.id), feed.waiting, feed.find("a")?.status], [["a"], 1, 200]);
  feed.pause(false);
  assert.deepEqual(feed.rows.map((one) => one.id), ["b", "a"]);
});

test("all words of a filter have to fit", () => {
  const one = request("a", { model: "gemini/gemini-3.8-flash", format: "gemini", status: 429, failure: "rate_limit", losses: 2, stream: true });
  for (const text of ["gemini", "openai 429", "error", "loss stream", "OpenAI Chat flash"]) {
    assert.ok(fits(one, text.toLowerCase().split(" ")), text);
  }
  for (const text of ["claude", "gemini 200"]) assert.ok(!fits(one, text.split(" ")), text);
});

test("a command for the shell quotes what it has to, and has no key", () => {
  const opened = {
    summary: request("a"),
    client: {
      method: "POST", path: "/v1/x?key=[hidden]",
      headers: { host: "h", "content-type": "application/json", authorization: "[hidden]", "x-api-key": "[hidden]" },
      body: { text: `{"a": "it's"}`, size: 13 },
    },
  } as unknown as Opened;
  assert.equal(curl(opened, "http://here"), [
    "curl -N -X POST 'http://here/v1/x?key=YOUR_KEY'", "-H 'content-type: application/json'", "-H 'authorization: Bearer YOUR_KEY'",
    "-H 'x-api-key: YOUR_KEY'", `--data-binary '{"a": "it'\\''s"}'`,
  ].join(" \\\n  "));
});
