import assert from "node:assert/strict";
import { test } from "node:test";
import { address, parse } from "../src/router.ts";

test("an address has a section, a rest and a query", () => {
  const route = parse("#/chat/a%2Fb/c?format=gemini&x=1");
  assert.equal(route.section, "chat");
  assert.deepEqual(route.rest, ["a/b", "c"]);
  assert.deepEqual([...route.query], [["format", "gemini"], ["x", "1"]]);
});

test("an empty address, a slash and a broken escape are read too", () => {
  assert.deepEqual(["", "#", "#/"].map((hash) => parse(hash).section), ["", "", ""]);
  assert.deepEqual(parse("#/chat/%E0%A4").rest, ["%E0%A4"]);
});

test("a written address reads the same", () => {
  const route = parse(address("live", ["req_1", "a/b?"], { view: "upstream bytes" }));
  assert.deepEqual([route.section, route.rest, route.query.get("view")], ["live", ["req_1", "a/b?"], "upstream bytes"]);
});
