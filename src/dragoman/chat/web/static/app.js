// The page: a list of conversations, a timeline with a column per model, a composer. The server is the only truth:
// a tab begins with a snapshot and follows events, so a reload in the middle of an answer goes on with it.

import { element, markdown } from "./markdown.js";
import { ask, askText, confirmed, show } from "./dialogs.js";
import { Card } from "./cards.js";

const $ = (id) => document.getElementById(id);
const MENTION = /\s*@([A-Za-z0-9_][A-Za-z0-9_.-]*)/y;
let counting = 0;
const state = { info: { models: [], tools: [], formats: [], default: [] }, id: null, snapshot: null, turns: new Map(), cards: new Map(), files: [], source: null };

// ── the server ──────────────────────────────────────────────────────────────────────────────────────────────

export async function call(method, path, body) {
  const answer = await fetch(path, {
    method,
    headers: { "x-dragoman-chat": "1", "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const told = await answer.json().catch(() => ({}));
  if (answer.status === 401) location.href = "/login";
  if (!answer.ok) throw new Error(told.error ?? `the server answered ${answer.status}`);
  return told;
}

const here = (rest = "") => `/api/conversations/${encodeURIComponent(state.id)}${rest}`;

function attempt(work) {
  return async (...given) => {
    try {
      return await work(...given);
    } catch (problem) {
      notice(problem.message, "problem");
      return undefined;
    }
  };
}

function notice(text, kind = "info") {
  const close = element("button", { type: "button", class: "small", "aria-label": "Close" }, "×");
  const line = element("div", { class: kind }, element("span", {}, text), close);
  close.addEventListener("click", () => line.remove());
  $("status").append(line);
  if (kind === "info") setTimeout(() => line.remove(), 6000);
}

// ── the list ────────────────────────────────────────────────────────────────────────────────────────────────

async function refreshList() {
  const words = $("search").value.trim();
  const rows = await call("GET", `/api/conversations?q=${encodeURIComponent(words)}`);
  $("list").replaceChildren(
    ...rows.map((row) => {
      const about = row.excerpt || `${row.updated.slice(0, 16).replace("T", " ")} · ${row.models.join(", ")}`;
      const button = element(
        "button",
        { type: "button", "aria-current": row.id === state.id ? "true" : null, title: row.name },
        element("span", {}, `${row.running ? "● " : ""}${row.name}`),
        element("span", { class: "about" }, about),
      );
      button.addEventListener("click", () => open(row.id));
      return element("li", {}, button);
    }),
  );
}

// ── one conversation ────────────────────────────────────────────────────────────────────────────────────────

function open(id) {
  state.source?.close();
  clearTimeout(counting);
  state.id = id;
  closeMenu();
  if (id === null) {
    history.replaceState(null, "", location.pathname);
    take({ id: null, title: "New conversation", system_prompt: "", entries: [], running: [], questions: [], gauges: [] });
    $("text").focus();
    return;
  }
  history.replaceState(null, "", `#${id}`);
  follow();
}

function follow() {
  const source = new EventSource(here("/events"));
  state.source = source;
  for (const [kind, handle] of Object.entries(EVENTS)) {
    source.addEventListener(kind, (message) => handle(JSON.parse(message.data)));
  }
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED && state.source === source) lost(source);
  });
}

async function lost(source) {
  try {
    await call("GET", here());
    if (state.source === source) setTimeout(follow, 1000);
  } catch (problem) {
    notice(problem.message, "problem");
    open(null);
  }
}

function take(snapshot) {
  const changed = state.id !== snapshot.id;
  state.snapshot = snapshot;
  state.id = snapshot.id;
  if (changed && snapshot.id) history.replaceState(null, "", `#${snapshot.id}`);
  state.turns.clear();
  state.cards.clear();
  const timeline = $("timeline");
  timeline.replaceChildren();
  if (!snapshot.entries.length) timeline.append(welcome());
  const page = document.createDocumentFragment();
  for (const group of answersOf(snapshot.entries)) draw(group, page);
  timeline.append(page);
  for (const one of snapshot.running) started(one, one.entries);
  for (const question of snapshot.questions) state.cards.get(question.answer)?.ask(question, permit);
  setTitle(snapshot.title);
  showGauges(snapshot.gauges);
  showTarget();
  busy();
  requestAnimationFrame(() => toEnd());
  refreshList();
}

function* answersOf(entries) {
  // Entries of one answer together; those of old files are told apart by who speaks.
  let group = null;
  for (const entry of entries) {
    const speaker = entry.role === "tool" ? entry.owner : entry.role;
    const key = ["user", "system"].includes(entry.role) ? entry.id : entry.answer || `${entry.turn}/${speaker}`;
    if (group && group.key === key) {
      group.entries.push(entry);
      continue;
    }
    if (group) yield group;
    group = { key, speaker, turn: entry.turn || entry.id, entries: [entry] };
  }
  if (group) yield group;
}

function draw(group, page) {
  if (group.speaker === "user") said({ entry: group.entries[0], models: null }, page);
  else if (group.speaker === "system") turnOf(group.turn, page).answers.append(element("div", { class: "problem" }, group.entries[0].error || "unreadable entry"));
  else {
    const card = place(group.key, group.turn, group.speaker, page);
    card.finished(group.entries);
  }
}

function turnOf(id, page = $("timeline")) {
  if (!state.turns.has(id)) {
    const answers = element("div", { class: "answers" });
    const node = element("article", { class: "turn" }, answers);
    state.turns.set(id, { node, answers });
    page.append(node);
  }
  return state.turns.get(id);
}

function place(key, turn, model, page) {
  const card = new Card(key, model, state.info.models, { copy, retry: retryAnswer, branch, showAs, stop: stopAnswers });
  state.cards.set(key, card);
  const { answers } = turnOf(turn, page);
  const rank = (name) => state.info.models.findIndex((one) => one.name === name);
  const after = [...answers.children].find((node) => node.dataset?.model && rank(node.dataset.model) > rank(model));
  answers.insertBefore(card.node, after ?? null);
  return card;
}

// ── events ──────────────────────────────────────────────────────────────────────────────────────────────────

const nearEnd = () => $("timeline").scrollHeight - $("timeline").scrollTop - $("timeline").clientHeight < 120;

function keepEnd(work) {
  const follows = nearEnd();
  work();
  if (follows) toEnd();
}

// What is not seen has no exact height yet, so the end moves while one goes there.
function toEnd(frames = 30) {
  const timeline = $("timeline");
  const before = timeline.scrollTop;
  timeline.scrollTop = timeline.scrollHeight;
  if (frames > 0 && timeline.scrollTop !== before) requestAnimationFrame(() => toEnd(frames - 1));
}

function said({ entry }, page) {
  $("timeline").querySelector(".empty")?.remove();
  const { node, answers } = turnOf(entry.turn || entry.id, page);
  const texts = (entry.content ?? []).map(userPart);
  const text = textOf(entry);
  const isMemo = addressed(text).length === 0;
  const foot = element(
    "div",
    { class: "foot" },
    action("Copy", () => copy(text)),
    action("Edit and resend", () => edit(entry)),
    action("Branch", () => branch(entry.id)),
    action("Show as…", () => showAs(entry.id)),
  );
  const bubble = element("div", { class: isMemo ? "mine memo" : "mine", "aria-label": isMemo ? "Your memo" : "You" }, ...texts.flat(), foot);
  node.insertBefore(bubble, answers);
}

function action(label, run) {
  return element("button", { type: "button", class: "small", onclick: attempt(run) }, label);
}

function userPart(part) {
  if (part.type === "text") return markdown(part.content);
  if (part.type === "image" && part.data) {
    return [element("img", { class: "picture", alt: part.title || "picture", src: `data:${part.media_type};base64,${part.data}` })];
  }
  return [element("span", { class: "chip" }, `${part.type} ${part.title ?? ""}`)];
}

const textOf = (entry) => (entry.content ?? []).filter((part) => part.type === "text").map((part) => part.content).join("\n");

function started({ answer, turn, model, replaces }, entries = []) {
  if (replaces) state.cards.get(replaces)?.replaced();
  const card = place(answer, turn, model);
  card.begin(entries);
  busy();
}

const EVENTS = {
  snapshot: take,
  said: (event) => keepEnd(() => said(event)),
  answer_started: (event) => keepEnd(() => started(event)),
  activity: (event) => keepEnd(() => state.cards.get(event.answer)?.activity(event.event)),
  permission_asked: (event) => keepEnd(() => state.cards.get(event.answer)?.ask(event, permit)),
  permission_settled: (event) => state.cards.forEach((card) => card.settled(event.id)),
  answer_ended: (event) =>
    keepEnd(() => {
      state.cards.get(event.answer)?.finished(event.entries);
      $("hint").setAttribute("data-last", `${event.model}: ${event.status ?? "ok"}`);
      busy();
    }),
  turn_ended: () => {
    busy();
    refreshList();
  },
  gauges: (event) => {
    showGauges(event.gauges);
    setTitle(event.title);
  },
  notice: (event) => notice(event.text, event.level === "warning" ? "problem" : "info"),
};

function busy() {
  const running = [...state.cards.values()].some((card) => card.running);
  $("stop").hidden = !running;
  $("send").hidden = running;
  $("timeline").setAttribute("aria-busy", String(running));
}

function setTitle(title) {
  $("title").textContent = title;
  document.title = `${title} - dragoman chat`;
  const saved = Boolean(state.id);
  for (const id of ["rename", "export", "delete"]) $(id).disabled = !saved;
}

// ── talking ─────────────────────────────────────────────────────────────────────────────────────────────────

function addressed(text) {
  const names = state.info.models.map((one) => one.name);
  const named = new Set();
  MENTION.lastIndex = 0;
  for (let found; (found = MENTION.exec(text)); ) {
    const word = found[1].replace(/[.-]+$/, "").toLowerCase();
    const known = names.find((name) => name.toLowerCase() === word);
    if (!known && word !== "all") break;
    for (const name of known ? [known] : names) named.add(name);
  }
  if (!named.size) state.info.default.flatMap((name) => (name === "all" ? names : [name])).forEach((name) => named.add(name));
  return names.filter((name) => named.has(name));
}

function showTarget() {
  const text = $("text").value;
  const models = addressed(text);
  $("target").textContent = !text.trim() ? "" : models.length ? `Goes to ${models.join(", ")}.` : "A memo: stored, sent to nobody.";
}

async function ensure() {
  if (state.id === null) {
    const { id } = await call("POST", "/api/conversations", {});
    state.id = id;
    history.replaceState(null, "", `#${id}`);
    await new Promise((ready) => {
      follow();
      state.source.addEventListener("snapshot", ready, { once: true });
    });
  }
}

const submit = attempt(async () => {
  const text = $("text").value.trim();
  const attachments = state.files;
  if (!text && !attachments.length) return;
  await ensure();
  clearTimeout(counting);
  await call("POST", here("/messages"), { text, attachments });
  $("text").value = "";
  state.files = [];
  showFiles();
  grow();
  showTarget();
  toEnd();
});

const permit = attempt((id, answer) => call("POST", here(`/permissions/${encodeURIComponent(id)}`), answer));
const stopAnswers = attempt((answer) => call("POST", here("/stop"), answer ? { answer } : {}));
const retryAnswer = attempt((answer) => call("POST", here("/retry"), { answer }));

async function copy(text) {
  await navigator.clipboard.writeText(text);
  notice("Copied.");
}

const branch = attempt(async (entry) => {
  const { id } = await call("POST", "/api/conversations", { branch: state.id, entry });
  open(id);
  notice("This is a branch: the conversation before is unchanged.");
});

const edit = attempt(async (entry) => {
  const text = await askText("Edit and resend", "The conversation goes on in a branch; this one stays as it is.", textOf(entry));
  if (text === null) return;
  const attachments = (entry.content ?? []).filter((part) => part.type !== "text").map((part) => ({
    name: part.title ?? "",
    media_type: part.media_type ?? "",
    data: part.data ?? btoa(String.fromCharCode(...new TextEncoder().encode(part.text ?? ""))),
  }));
  const { id } = await call("POST", "/api/conversations", { branch: state.id, entry: entry.id, before: true });
  open(id);
  await call("POST", here("/messages"), { text, attachments });
});

const WIRES = (formats) => formats.filter((name) => name !== "markdown" && name !== "json");

async function showAs(part) {
  const body = element("pre", { tabindex: "0" });
  const losses = element("ul", { class: "losses" });
  const pick = element("select", {}, ...WIRES(state.info.formats).map((name) => element("option", {}, name)));
  const load = attempt(async () => {
    const told = await call("GET", here(`/show?part=${encodeURIComponent(part)}&format=${encodeURIComponent(pick.value)}`));
    body.textContent = told.content;
    const rows = told.losses.map((one) => element("li", {}, element("b", {}, one.severity), ` ${one.path}: ${one.what} (${one.why})`));
    losses.replaceChildren(...(rows.length ? rows : [element("li", {}, "nothing is lost")]));
  });
  pick.addEventListener("change", load);
  await Promise.all([load(), show("Show as…", element("label", {}, "Format ", pick), body, element("h3", {}, "What this format cannot say"), losses)]);
}

// ── the composer ────────────────────────────────────────────────────────────────────────────────────────────

function grow() {
  const box = $("text");
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + 2}px`;
}

function showGauges(gauges) {
  $("gauges").replaceChildren(
    ...(gauges ?? []).map((one) => {
      const share = Math.min(1, one.used / one.window);
      const told = `${one.model}: ${one.exact ? "" : "about "}${one.used.toLocaleString()} of ${one.window.toLocaleString()} tokens`;
      const meter = element("meter", { min: "0", max: "1", high: "0.8", value: String(share), "aria-label": told });
      return element("span", { title: told }, one.model, meter, `${Math.round(share * 100)}%`);
    }),
  );
}

function count() {
  clearTimeout(counting);
  counting = setTimeout(async () => {
    if (state.id) showGauges(await call("POST", here("/gauges"), { text: $("text").value }).catch(() => []));
  }, 500);
}

function showFiles() {
  $("files").replaceChildren(
    ...state.files.map((file, index) => {
      const remove = element("button", { type: "button", class: "small", "aria-label": `Remove ${file.name}` }, "×");
      remove.addEventListener("click", () => {
        state.files.splice(index, 1);
        showFiles();
      });
      return element("span", { class: "chip" }, file.name, remove);
    }),
  );
}

async function addFiles(list) {
  for (const file of list) {
    const address = await new Promise((done, failed) => {
      const reader = new FileReader();
      reader.onload = () => done(reader.result);
      reader.onerror = () => failed(reader.error);
      reader.readAsDataURL(file);
    });
    state.files.push({ name: file.name, media_type: file.type, data: address.slice(address.indexOf(",") + 1) });
  }
  showFiles();
}

let picked = 0;
function offered() {
  const text = $("text").value.slice(0, $("text").selectionStart);
  const found = /(?:^|\s)@([\w.-]*)$/.exec(text);
  if (!found || !/^\s*(@[\w.-]+\s+)*@[\w.-]*$/.test(text)) return [];
  return [...state.info.models, { name: "all", model: "everyone" }].filter((one) => one.name.startsWith(found[1].toLowerCase()) && one.name !== found[1]);
}

function showMentions() {
  const models = offered();
  picked = Math.min(picked, Math.max(0, models.length - 1));
  $("mentions").hidden = !models.length;
  $("mentions").replaceChildren(
    ...models.map((one, index) => {
      const row = element("li", { role: "option", id: `mention-${index}`, "aria-selected": String(index === picked) }, `@${one.name} `, element("small", {}, one.model));
      row.addEventListener("mousedown", (event) => {
        event.preventDefault();
        complete(one.name);
      });
      return row;
    }),
  );
  if (models.length) $("text").setAttribute("aria-activedescendant", `mention-${picked}`);
  else $("text").removeAttribute("aria-activedescendant");
}

function complete(name) {
  const box = $("text");
  const start = box.value.lastIndexOf("@", box.selectionStart - 1);
  box.setRangeText(`@${name} `, start, box.selectionStart, "end");
  typed();
}

function typed() {
  grow();
  showTarget();
  showMentions();
  count();
}

function pressed(event) {
  const models = $("mentions").hidden ? [] : offered();
  if (models.length && ["ArrowDown", "ArrowUp"].includes(event.key)) {
    picked = (picked + (event.key === "ArrowDown" ? 1 : models.length - 1)) % models.length;
    event.preventDefault();
    showMentions();
  } else if (models.length && (event.key === "Tab" || event.key === "Enter")) {
    event.preventDefault();
    complete(models[picked].name);
  } else if (event.key === "Escape" && models.length) {
    $("mentions").hidden = true;
    event.stopPropagation();
  } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    submit();
  }
}

// ── menus ───────────────────────────────────────────────────────────────────────────────────────────────────

function welcome() {
  const tries = ["@all What is the weather in Paris?", "@claude 6 * 7", "Anything without a mention is a memo."];
  const buttons = tries.map((text) => {
    const button = element("button", { type: "button" }, text);
    button.addEventListener("click", () => {
      $("text").value = text;
      $("text").focus();
      typed();
    });
    return button;
  });
  const names = state.info.models.map((one) => `@${one.name}`).join(", ");
  return element("div", { class: "empty" }, element("p", {}, `Ask ${names}, or @all of them at once.`), ...buttons);
}

function closeMenu() {
  $("sidebar").classList.remove("open");
  $("menu").setAttribute("aria-expanded", "false");
}

const rename = attempt(async () => {
  const name = await ask("Rename", "Name", state.snapshot?.name ?? "");
  if (name) await call("PATCH", here(), { name });
  refreshList();
});

const system = attempt(async () => {
  const text = await askText("System prompt", "Said to every model before everything else.", state.snapshot?.system_prompt ?? "");
  if (text === null) return;
  await ensure();
  await call("PATCH", here(), { system_prompt: text });
});

const remove = attempt(async () => {
  if (!(await confirmed(`Delete “${$("title").textContent}”?`, "It cannot be brought back.", "Delete"))) return;
  state.source?.close();
  clearTimeout(counting);
  await call("DELETE", here());
  open(null);
});

async function exportAs() {
  const pick = element("select", {}, ...state.info.formats.map((name) => element("option", {}, name)));
  const save = element("a", { class: "button", download: "", href: here("/export?format=markdown") }, "Download");
  pick.addEventListener("change", () => save.setAttribute("href", here(`/export?format=${encodeURIComponent(pick.value)}`)));
  await show("Export", element("label", {}, "Format ", pick), element("p", {}, save));
}

async function chooseModels() {
  const rows = state.info.models.map((one) => {
    const box = element("input", { value: one.model, "aria-label": `Model of @${one.name}` });
    box.addEventListener("change", attempt(async () => (state.info = await call("PATCH", `/api/models/${encodeURIComponent(one.name)}`, { model: box.value }))));
    return element("label", {}, `@${one.name} (${one.window.toLocaleString()} tokens)`, box);
  });
  const share = element("input", { type: "checkbox", checked: state.info.share });
  share.addEventListener("change", attempt(async () => (state.info = await call("PATCH", "/api/options", { share: share.checked }))));
  const names = ["", "all", ...state.info.models.map((one) => one.name)];
  const pick = element("select", {}, ...names.map((name) => element("option", { value: name, selected: state.info.default[0] === name }, name ? `@${name}` : "nobody: it is a memo")));
  pick.addEventListener("change", attempt(async () => {
    state.info = await call("PATCH", "/api/options", { default: pick.value ? [pick.value] : [] });
    showTarget();
  }));
  const tools = state.info.tools.map((one) => element("li", {}, element("b", {}, one.name), ` ${one.description.split("\n")[0]} ${one.read_only ? "" : "(asks first)"}`));
  await show(
    "Models and options",
    ...rows,
    element("label", { class: "row" }, share, element("span", {}, "Models see each other’s answers")),
    element("label", {}, "A message without a mention goes to ", pick),
    element("h3", {}, "Tools"),
    element("ul", {}, ...(tools.length ? tools : [element("li", {}, "none")])),
  );
}

const importFile = attempt(async () => {
  const [file] = $("import-file").files;
  if (!file) return;
  const { id } = await call("POST", "/api/conversations", { document: JSON.parse(await file.text()), name: file.name.replace(/\.json$/, "") });
  $("import-file").value = "";
  open(id);
});

function theme() {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark" || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", document.documentElement.dataset.theme);
}

// ── begin ───────────────────────────────────────────────────────────────────────────────────────────────────

function wire() {
  const clicks = { new: () => open(null), rename, system, models: chooseModels, export: exportAs, delete: remove, theme, stop: () => stopAnswers(), attach: () => $("file").click(), import: () => $("import-file").click() };
  for (const [id, run] of Object.entries(clicks)) $(id).addEventListener("click", run);
  $("menu").addEventListener("click", () => $("menu").setAttribute("aria-expanded", String($("sidebar").classList.toggle("open"))));
  $("search").addEventListener("input", attempt(refreshList));
  $("import-file").addEventListener("change", importFile);
  $("file").addEventListener("change", attempt(() => addFiles($("file").files)));
  $("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  $("text").addEventListener("input", typed);
  $("text").addEventListener("keydown", pressed);
  $("text").addEventListener("paste", (event) => event.clipboardData.files.length && addFiles(event.clipboardData.files));
  $("timeline").addEventListener("click", closeMenu);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !$("stop").hidden && !$("dialog").open) stopAnswers();
    if (event.altKey && event.key.toLowerCase() === "n") open(null);
  });
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      $("composer").classList.toggle("drop", kind === "dragover");
      if (kind === "drop") attempt(addFiles)(event.dataTransfer.files);
    });
  }
  addEventListener("hashchange", () => location.hash.slice(1) !== (state.id ?? "") && open(location.hash.slice(1) || null));
}

async function begin() {
  const kept = localStorage.getItem("theme");
  if (kept) document.documentElement.dataset.theme = kept;
  wire();
  state.info = await call("GET", "/api/state");
  open(location.hash.slice(1) || null);
}

attempt(begin)();
