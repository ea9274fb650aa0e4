import assert from "node:assert/strict";
import { test } from "node:test";
import { NotJson, find, parse, tryParse, steps } from "../src/json/parse.ts";

test("the tree keeps the text as it was written", () => {
  const text = ' {"a": [1.50, -2e+7, "x\\u00e9\\"", true], "a\\n": {}, "": null} ';
  const root = parse(text);
  const list = root.entries[0]?.item;
  assert.deepEqual(root.entries.map((one) => one.key), ["a", "a\n", ""]);
  assert.deepEqual(list?.entries.map((one) => text.slice(one.item.start, one.item.end)), ["1.50", "-2e+7", '"x\\u00e9\\""', "true"]);
  assert.equal(text.slice(root.start, root.end), text.trim());
});

test("invalid JSON is reported with its position", () => {
  const wrong: [string, number][] = [["", 0], ["{", 1], ['{"a" 1}', 5], ["[1,]", 3], ["[1 2]", 3], ['"a', 2], ["01", 1], ["{} x", 3], ["nul", 0]];
  for (const [text, place] of wrong) {
    assert.throws(() => parse(text), (problem) => problem instanceof NotJson && problem.place === place, text);
  }
  assert.equal(tryParse("data: {}"), null);
});

test("the parser accepts what JSON.parse accepts, and nothing else", () => {
  const texts = ['"\\ud83d\\ude00"', "[[[]]]", "-0", "1e5", "-", "+1", ".5", '{"a":1,"a":2}', "\u00a0{}", '["\n"]', "tru", "[]]"];
  for (const text of texts) {
    let taken = true;
    try { JSON.parse(text); } catch { taken = false; }
    assert.equal(tryParse(text) !== null, taken, text);
  }
});

test("a string of megabytes and a thousand levels are parsed", () => {
  assert.equal(parse(`["${"A".repeat(5_000_000)}"]`).entries.length, 1);
  assert.notEqual(tryParse("[".repeat(1000) + "]".repeat(1000)), null);
  assert.equal(tryParse("[".repeat(100_000)), null);
});

test("a path leads to its item, or to the nearest enclosing one", () => {
  const text = '{"messages": [{"role": "user"}, {"content": [{"text": "hi"}]}]}';
  const root = parse(text);
  const exact = find(root, "$.messages[1].content[0].text");
  assert.equal(text.slice(exact.item.start, exact.item.end), '"hi"');
  assert.ok(exact.isExact);
  const near = find(root, "$.messages[0].name");
  assert.deepEqual([near.isExact, near.way], [false, ["messages", "0"]]);
  assert.deepEqual(steps("$.a-b.c[12].d"), ["a-b", "c", "12", "d"]);
});
