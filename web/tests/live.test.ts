import assert from "node:assert/strict";
import { test } from "node:test";
import { curl } from "../src/live/curl.ts";
import { Feed, fits, sorted } from "../src/live/feed.ts";
import { measures, percentile } from "../src/live/measures.ts";
import type { Opened, Summary } from "../src/live/types.ts";
import { money, percent } from "../src/live/display.ts";
import { course, days, table as usageTable } from "../src/usage/sums.ts";
import type { UsageRow } from "../src/usage/types.ts";

function request(id: string, more: Partial<Summary> = {}): Summary {
  return { id, at: 0, phase: "ended", operation: "generate", client: "openai-chat", ...more };
}

test("the newest request is first, and an update does not move a request", () => {
  const feed = new Feed();
  feed.replace([request("b"), request("a")]);
  feed.change([request("c", { phase: "begun" })]);
  feed.change([request("a", { status: 200 })]);
  assert.deepEqual(feed.rows.map((one) => one.id), ["c", "b", "a"]);
  assert.equal(feed.find("a")?.status, 200);
  assert.deepEqual(feed.counts, { all: 3, underWay: 1, failed: 0 });
});

test("at most a thousand requests are kept", () => {
  const feed = new Feed();
  for (let number = 0; number < 1500; number += 1) feed.change([request(`r${number}`)]);
  assert.equal(feed.rows.length, 1000);
  assert.equal(feed.rows[0]?.id, "r1499");
});

test("while paused, new requests wait and known ones are updated", () => {
  const feed = new Feed();
  feed.replace([request("a", { phase: "begun" })]);
  feed.pause(true);
  feed.change([request("b"), request("a", { status: 200 })]);
  assert.deepEqual([feed.rows.map((one) => one.id), feed.waiting, feed.find("a")?.status], [["a"], 1, 200]);
  feed.pause(false);
  assert.deepEqual(feed.rows.map((one) => one.id), ["b", "a"]);
});

test("all words of a filter have to match", () => {
  const one = request("a", { model: "gemini/gemini-3.8-flash", format: "gemini", status: 429, failure: "rate_limit", losses: 2, stream: true });
  for (const text of ["gemini", "openai 429", "error", "loss stream", "OpenAI Chat flash"]) {
    assert.ok(fits(one, text.toLowerCase().split(" ")), text);
  }
  for (const text of ["claude", "gemini 200"]) assert.ok(!fits(one, text.split(" ")), text);
});

test("a curl command is quoted for the shell and contains no key", () => {
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

test("rows are sorted by any column with missing values last, and filtered by outcome, model and key", () => {
  const rows: Summary[] = [
    request("a", { cost: 0.5, model: "m/one", key: "alice" }),
    request("b", { model: "m/two", failure: "server", status: 502 }),
    request("c", { cost: 0.1, model: "m/one", phase: "answering" }),
  ];
  const ids = (found: readonly Summary[]): string[] => found.map((one) => one.id);
  assert.deepEqual(ids(sorted(rows, { by: "cost", isDescending: true })), ["a", "c", "b"]);
  assert.deepEqual(ids(sorted(rows, { by: "cost", isDescending: false })), ["c", "a", "b"]);
  const feed = new Feed();
  feed.replace(rows);
  feed.only({ outcome: "failed" });
  assert.deepEqual(ids(feed.rows), ["b"]);
  feed.only({ model: "m/one", key: "alice" });
  assert.deepEqual(ids(feed.rows), ["a"]);
  feed.only({ outcome: "running" });
  assert.deepEqual(ids(feed.rows), ["c"]);
  assert.deepEqual(feed.choices, { models: ["m/one", "m/two"], keys: ["alice"] });
});

test("charts sum up the known requests in equal steps until now", () => {
  const now = 1_000_000;
  const rows: Summary[] = [
    request("a", { at: now - 9000, duration: 100, cost: 0.25, cache: "hit" }),
    request("b", { at: now - 9000, duration: 300, cache: "miss" }),
    request("c", { at: now - 500, duration: 5000, failure: "server" }),
  ];
  const { whole, buckets, step } = measures(rows, now);
  assert.equal(step, 1000);
  assert.equal(buckets.reduce((sum, one) => sum + one.requests, 0), 3);
  assert.deepEqual([whole.failed, whole.p50, whole.p95, whole.cost, whole.hits, whole.looked], [1, 100, 300, 0.25, 1, 2]);
  assert.equal(percentile([], 0.5), null);
  assert.equal(measures([], now).buckets.every((one) => one.requests === 0), true);
});

test("usage is summed up by key or model, with the smallest in one row", () => {
  const row = (key: string, model: string, day: string, cost: number): UsageRow =>
    ({ key, upstream: "p", model, day, requests: 1, failed: 0, input: 10, output: 5, cost });
  const rows = [row("alice", "one", "2026-11-16", 3), row("", "one", "2026-11-17", 1), row("", "two", "2026-11-17", 2), row("bob", "three", "2026-11-17", 0.5)];
  const span = days(2, Date.parse("2026-11-17T12:00:00Z"));
  assert.deepEqual(span, ["2026-11-16", "2026-11-17"]);
  const found = course(rows, "model", "cost", span, 2);
  assert.deepEqual(found.groups.map((one) => [one.name, one.values, one.total]), [["p/one", [3, 1], 4], ["2 others", [0, 2.5], 2.5]]);
  assert.deepEqual(course(rows, "key", "tokens", span, 6).groups.map((one) => one.name), ["no key", "alice", "bob"]);
  assert.equal(usageTable(rows).length, 4);
});

test("amounts of money have as many digits as they need", () => {
  assert.deepEqual([0, 12.5, 0.01, 0.0001234, 0.0000000001].map((one) => money(one)), ["$0", "$12.50", "$0.01", "$0.00012", "<$0.000001"]);
  assert.deepEqual([percent(1, 3), percent(0, 0), percent(1, 30)], ["33 %", "–", "3.3 %"]);
});
