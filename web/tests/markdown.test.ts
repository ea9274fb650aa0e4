import "./document.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { markdown } from "../src/markdown.ts";

const html = (text: string): string => markdown(text).map((one) => one.outerHTML).join("");

test("inline markup becomes elements", () => {
  const marked = "<p>a <strong>b <em>c</em></strong> <code>d*e*</code> <del>f</del></p>";
  assert.equal(html("a **b *c*** `d*e*` ~~f~~"), marked);
  assert.equal(html("2 * 3 * 4 and snake_case_name"), "<p>2 * 3 * 4 and snake_case_name</p>");
  assert.equal(html("one\ntwo"), "<p>one<br>two</p>");
});

test("headings begin below those of the page", () => {
  assert.equal(html("# a\n###### b"), "<h3>a</h3><h6>b</h6>");
});

test("code stays as it is, also before the stream has closed its fence", () => {
  const [block] = markdown("```py\nx = '<b>'\n");
  assert.equal(block?.querySelector("code")?.textContent, "x = '<b>'\n");
  assert.equal(block?.querySelector("code")?.getAttribute("data-language"), "py");
  const [longer] = markdown("````\n```\n````");
  assert.equal(longer?.querySelector("code")?.textContent, "```");
});

test("lists nest, and keep their numbering", () => {
  assert.equal(html("- a\n  - b\n- c"), "<ul><li><p>a</p><ul><li>b</li></ul></li><li>c</li></ul>");
  assert.equal(html("1. a\n2. b"), "<ol><li>a</li><li>b</li></ol>");
});

test("tables, quotes and rules become elements", () => {
  const [table] = markdown("| a | b |\n|---|---|\n| 1 | **2** |");
  assert.equal(table?.querySelectorAll("td strong").length, 1);
  assert.equal(html("> a\n> b"), "<blockquote><p>a<br>b</p></blockquote>");
  assert.equal(html("a\n\n---\n\nb"), "<p>a</p><hr><p>b</p>");
});

test("only web addresses become links", () => {
  assert.equal(html("[x](javascript:alert(1))").includes("<a"), false);
  assert.equal(html("[x](data:text/html,y)"), "<p>x</p>");
  const [made] = markdown("see https://a.example/b.");
  const link = made?.querySelector("a");
  assert.equal(link?.getAttribute("href"), "https://a.example/b");
  assert.equal(link?.getAttribute("rel"), "noopener noreferrer nofollow");
});

test("HTML in a text does not become markup", () => {
  const text = "<script>x</script> <img src=x onerror=y> **<b onclick=z>**\n\n| <i> |\n|---|\n| <iframe> |\n\n- <svg>";
  const tags = markdown(text).flatMap((one) => [one, ...one.querySelectorAll("*")]).map((one) => one.localName);
  const ours = new Set(["p", "strong", "div", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"]);
  assert.deepEqual(tags.filter((tag) => !ours.has(tag)), []);
});

test("parsing ends for unusual input", () => {
  const begun = performance.now();
  const pieces: [string, number][] = [
    ["*", 5000], ["[", 100_000], ["[a", 50_000], ["`", 4999], ["> ", 20_000], ["- ", 1000], ["|", 3000],
    ["**a*", 800], ["*a", 2000],
  ];
  for (const [piece, times] of pieces) markdown(piece.repeat(times));
  markdown(Array.from({ length: 300 }, (_, level) => `${" ".repeat(2 * level)}- a`).join("\n"));
  assert.ok(performance.now() - begun < 3000);
});
