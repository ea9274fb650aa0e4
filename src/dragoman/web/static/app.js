//#region src/dom.ts
/** `on…` adds a listener, `true` an attribute without a value; `false`, `null` and `undefined` are skipped. */
function element(tag, attributes = {}, ...children) {
	const made = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes)) {
		if (value === false || value === null || value === void 0) continue;
		if (typeof value === "function") made.addEventListener(name.slice(2), value);
		else made.setAttribute(name, value === true ? "" : String(value));
	}
	made.append(...children.filter((child) => child !== null && child !== void 0));
	return made;
}
function button(label, run, attributes = {}) {
	return element("button", {
		type: "button",
		onclick: run,
		...attributes
	}, label);
}
/** An element that the page must have. */
function byId(id) {
	const found = document.getElementById(id);
	if (found === null) throw new Error(`the page has no #${id}`);
	return found;
}
function isTyping(target) {
	return target instanceof HTMLElement && (target.isContentEditable || target.matches("input, textarea, select"));
}
//#endregion
//#region src/notices.ts
var SHOWN_FOR = 6e3;
function notice(text, kind = "info") {
	withdraw(text);
	const close = button("×", () => line.remove(), {
		class: "small",
		"aria-label": "Close"
	});
	const line = element("div", { class: kind }, element("span", {}, text), close);
	byId("status").append(line);
	if (kind === "info") setTimeout(() => line.remove(), SHOWN_FOR);
}
/** Removes a notice that is no longer true. */
function withdraw(text) {
	withdrawIf((line) => line.firstChild?.textContent === text);
}
/** Removes errors, such as those of a section that the user has left. */
function withdrawProblems() {
	withdrawIf((line) => line.matches(".problem"));
}
function withdrawIf(isOver) {
	for (const line of [...byId("status").children]) if (isOver(line)) line.remove();
}
/** Runs the work and shows errors as notices instead of throwing. */
function attempt(work) {
	return async (...given) => {
		try {
			return await work(...given);
		} catch (problem) {
			notice(problem instanceof Error ? problem.message : String(problem), "problem");
			return;
		}
	};
}
//#endregion
//#region src/api.ts
var HEADERS = {
	"x-dragoman-page": "1",
	"content-type": "application/json"
};
var UNREACHABLE = "The server does not answer. Is it still running?";
/** An error of the server: message, status and body; status 0 if it cannot be reached. */
var Problem = class extends Error {
	status;
	body;
	constructor(message, status, body = null) {
		super(message);
		this.status = status;
		this.body = body;
	}
};
async function call(method, path, body) {
	const sent = body === void 0 ? {} : { body: JSON.stringify(body) };
	const answer = await fetch(`/_/api${path}`, {
		method,
		headers: HEADERS,
		...sent
	}).catch(() => {
		throw new Problem(UNREACHABLE, 0);
	});
	withdraw(UNREACHABLE);
	if (answer.status === 401) location.href = "/_/login";
	const received = await answer.json().catch(() => null);
	if (!answer.ok) throw new Problem(wordsOf(received) ?? `the server answered ${answer.status}`, answer.status, received);
	return received;
}
function wordsOf(body) {
	const error = typeof body === "object" && body !== null && "error" in body ? body.error : null;
	return typeof error === "string" ? error : null;
}
/** Events of the server by kind, until closed. The browser reconnects by itself. */
function listen(path, handlers) {
	const source = new EventSource(`/_/api${path}`);
	for (const [kind, handle] of Object.entries(handlers)) source.addEventListener(kind, (event) => handle(JSON.parse(event.data)));
	return source;
}
//#endregion
//#region src/clipboard.ts
async function copy(text, what) {
	try {
		await navigator.clipboard.writeText(text);
		notice(`${what} copied`);
	} catch {
		notice("The browser does not allow copying here.", "problem");
	}
}
//#endregion
//#region src/dialogs.ts
var CANCEL = [
	"Cancel",
	"",
	() => null
];
/** Opens the dialog, and calls `done` when the user has closed it. */
function showModal(dialog, done) {
	const closed = () => {
		if (dialog.open) return;
		dialog.removeEventListener("close", closed);
		done();
	};
	dialog.addEventListener("close", closed);
	dialog.showModal();
}
/** Focuses the first field, or else the button, without scrolling a long window to its end. */
function focusFirst(dialog, fields, otherwise) {
	(dialog.querySelector(fields) ?? otherwise)?.focus({ preventScroll: true });
	dialog.scrollTop = 0;
}
addEventListener("hashchange", () => byId("dialog").close());
function choose(title, body, choices) {
	const dialog = byId("dialog");
	return new Promise((done) => {
		let answer = null;
		const row = choices.map(([label, kind, give]) => {
			const onclick = () => {
				answer = give();
				dialog.close();
			};
			return element("button", {
				type: "button",
				class: kind,
				onclick
			}, label);
		});
		const heading = element("h2", { id: "dialog-title" }, title);
		dialog.replaceChildren(heading, ...body, element("div", { class: "row end" }, ...row));
		showModal(dialog, () => done(answer));
		focusFirst(dialog, "textarea, input, select", row[0]);
	});
}
/** Asks for input; if the server refuses it, the window stays open with the reason. */
function form(title, body, word, submit) {
	const dialog = byId("dialog");
	return new Promise((done) => {
		let answer = null;
		const problem = element("p", {
			class: "problem",
			role: "alert",
			hidden: true
		});
		const send = element("button", { class: "primary" }, word);
		const cancel = element("button", {
			type: "button",
			onclick: () => dialog.close()
		}, "Cancel");
		const onsubmit = async (event) => {
			event.preventDefault();
			send.disabled = true;
			try {
				answer = await submit();
				dialog.close();
			} catch (error) {
				problem.hidden = false;
				problem.textContent = error instanceof Error ? error.message : String(error);
			} finally {
				send.disabled = false;
			}
		};
		const inner = element("form", { onsubmit }, ...body, problem, element("div", { class: "row end" }, cancel, send));
		dialog.replaceChildren(element("h2", { id: "dialog-title" }, title), inner);
		showModal(dialog, () => done(answer));
		focusFirst(dialog, "input");
	});
}
var isOpen = () => byId("dialog").open;
async function show(title, ...body) {
	await choose(title, body, [[
		"Close",
		"primary",
		() => null
	]]);
}
async function confirmAction(title, text, word) {
	const choices = [[
		"Cancel",
		"",
		() => false
	], [
		word,
		"danger",
		() => true
	]];
	return await choose(title, [element("p", {}, text)], choices) === true;
}
function ask(title, label, value) {
	const input = element("input", {
		value,
		"aria-label": label
	});
	return choose(title, [input], [CANCEL, [
		"OK",
		"primary",
		() => input.value.trim()
	]]);
}
var unsent = /* @__PURE__ */ new Map();
/** Keeps unsaved input for the next time. */
async function askText(title, about, value) {
	const area = element("textarea", {
		rows: 8,
		"aria-label": title
	});
	const key = `${title}\n${value}`;
	area.value = unsent.get(key) ?? value;
	const text = await choose(title, [element("p", {}, about), area], [CANCEL, [
		"OK",
		"primary",
		() => area.value
	]]);
	if (text === null && area.value !== value) {
		unsent.set(key, area.value);
		notice("Your text is kept and will be here when you open this again.");
	} else unsent.delete(key);
	return text;
}
//#endregion
//#region src/live/display.ts
var FORMATS = {
	"openai-chat": "OpenAI Chat",
	"openai-responses": "OpenAI Responses",
	"anthropic-messages": "Anthropic Messages",
	gemini: "Gemini",
	vertex: "Vertex AI",
	"gemini-interactions": "Gemini Interactions",
	"ollama-chat": "Ollama",
	"cohere-chat": "Cohere",
	"bedrock-converse": "Bedrock Converse"
};
var formatName = (format) => FORMATS[format] ?? format;
/** The name of a format behind a dot in the colour of its family. */
function formatChip(format) {
	return element("span", {
		class: "format",
		"data-format": format
	}, formatName(format));
}
function duration(milliseconds) {
	if (milliseconds === void 0) return "";
	if (milliseconds < 10) return `${milliseconds.toFixed(1)} ms`;
	if (milliseconds < 1e3) return `${Math.round(milliseconds)} ms`;
	return milliseconds < 6e4 ? `${(milliseconds / 1e3).toFixed(2)} s` : `${(milliseconds / 6e4).toFixed(1)} min`;
}
function bytes(size) {
	if (size < 1e3) return `${size} B`;
	return size < 1e6 ? `${(size / 1e3).toFixed(1)} kB` : `${(size / 1e6).toFixed(1)} MB`;
}
var CLOCK = new Intl.DateTimeFormat("en-GB", {
	hour: "2-digit",
	minute: "2-digit",
	second: "2-digit"
});
var clock = (at) => CLOCK.format(at);
var CENT = .01;
/** In dollars, with as many digits as the amount needs. */
function money(amount) {
	if (amount === void 0) return "";
	if (amount === 0) return "$0";
	if (Math.abs(amount) >= CENT) return `$${amount.toLocaleString("en", {
		minimumFractionDigits: 2,
		maximumFractionDigits: 2
	})}`;
	return Math.abs(amount) < 1e-6 ? "<$0.000001" : `$${Number(amount.toPrecision(2)).toFixed(6).replace(/0+$/, "")}`;
}
function percent(part, whole) {
	if (whole === 0) return "–";
	const share = 100 * part / whole;
	return `${share !== 0 && share < 10 ? share.toFixed(1) : Math.round(share)} %`;
}
/** 12,345 or 1.2 M: short enough for a column. */
function amount(number) {
	if (number < 1e5) return number.toLocaleString("en");
	return number < 1e6 ? `${Math.round(number / 1e3)} k` : `${(number / 1e6).toFixed(1)} M`;
}
//#endregion
//#region src/chat/mentions.ts
var MENTION = /\s*@([A-Za-z0-9_][A-Za-z0-9_.-]*)/y;
var ALL = "all";
/** Mentioned names at the start, as whole words; `@allies` is text. Without any, the default models. */
function resolveMentions(text, known) {
	const names = known.models.map((one) => one.name);
	const chosen = new Set(leadingMentions(text, names).words);
	const wanted = chosen.size ? chosen : new Set(known.default);
	return names.filter((name) => wanted.has(name) || wanted.has(ALL));
}
/** An unknown name at the start, most likely a typo. */
function unknownMention(text, names) {
	MENTION.lastIndex = 0;
	const word = MENTION.exec(text)?.[1]?.replace(/[.-]+$/, "") ?? null;
	return word === null || [ALL, ...names].some((name) => name.toLowerCase() === word.toLowerCase()) ? null : word;
}
function leadingMentions(text, names) {
	const words = [];
	let end = 0;
	MENTION.lastIndex = 0;
	for (let found; found = MENTION.exec(text);) {
		const word = (found[1] ?? "").replace(/[.-]+$/, "").toLowerCase();
		const name = word === ALL ? ALL : names.find((one) => one.toLowerCase() === word);
		if (name === void 0) break;
		words.push(name);
		end = MENTION.lastIndex;
	}
	return {
		words,
		end
	};
}
/** The message with one more mention, or one less. */
function toggleMention(text, name, names) {
	const { words, end } = leadingMentions(text, names);
	const rest = text.slice(end).trimStart();
	const others = name === ALL ? [] : words.filter((word) => word !== ALL && word !== name);
	return (words.includes(name) ? others : [...others, name]).map((word) => `@${word} `).join("") + rest;
}
/** Completions of the mention before the cursor. */
function completions(before, models) {
	const begun = /^\s*(?:@[\w.-]+\s+)*@([\w.-]*)$/.exec(before)?.[1];
	if (begun === void 0) return [];
	return [...models.map((one) => ({
		name: one.name,
		about: one.model
	})), {
		name: ALL,
		about: "everyone"
	}].filter((one) => one.name.toLowerCase().startsWith(begun.toLowerCase()) && one.name !== begun);
}
//#endregion
//#region src/chat/completion.ts
var Completion = class {
	node = element("ul", {
		id: "mentions",
		role: "listbox",
		"aria-label": "Models",
		hidden: true
	});
	#box;
	#models;
	#completed;
	#picked = 0;
	constructor(box, models, completed) {
		this.#box = box;
		this.#models = models;
		this.#completed = completed;
		box.addEventListener("blur", () => this.#hide());
	}
	#offered() {
		return completions(this.#box.value.slice(0, this.#box.selectionStart), this.#models());
	}
	show() {
		const offered = this.#offered();
		this.#picked = Math.min(this.#picked, Math.max(0, offered.length - 1));
		this.node.replaceChildren(...offered.map(({ name, about }, index) => this.#row(name, about, index)));
		this.node.hidden = offered.length === 0;
		if (offered.length) this.#box.setAttribute("aria-activedescendant", `mention-${this.#picked}`);
		else this.#box.removeAttribute("aria-activedescendant");
	}
	#row(name, about, index) {
		const choose = (event) => {
			event.preventDefault();
			this.#complete(name);
		};
		const selected = String(index === this.#picked);
		return element("li", {
			role: "option",
			id: `mention-${index}`,
			"aria-selected": selected,
			onmousedown: choose
		}, `@${name} `, element("small", {}, about));
	}
	#hide() {
		this.node.hidden = true;
		this.#box.removeAttribute("aria-activedescendant");
	}
	#complete(name) {
		const start = this.#box.value.lastIndexOf("@", this.#box.selectionStart - 1);
		this.#box.setRangeText(`@${name} `, start, this.#box.selectionStart, "end");
		this.#completed();
	}
	#pick(step, count) {
		this.#picked = (this.#picked + step + count) % count;
		this.show();
	}
	/** Whether the list handled the key: then Esc does not stop answers. */
	pressed(event) {
		const offered = this.node.hidden ? [] : this.#offered();
		const chosen = offered[this.#picked];
		if (chosen === void 0) return false;
		const work = {
			ArrowDown: () => this.#pick(1, offered.length),
			ArrowUp: () => this.#pick(-1, offered.length),
			Tab: () => this.#complete(chosen.name),
			Enter: () => this.#complete(chosen.name),
			Escape: () => this.#hide()
		}[event.key];
		if (work === void 0) return false;
		event.preventDefault();
		event.stopPropagation();
		work();
		return true;
	}
};
//#endregion
//#region src/chat/files.ts
var Files = class {
	node = element("div", { id: "files" });
	input;
	#attached = [];
	constructor() {
		const chosen = attempt(async () => {
			await this.add(this.input.files ?? []);
			this.input.value = "";
		});
		const hidden = {
			id: "file",
			type: "file",
			multiple: true,
			hidden: true,
			"aria-label": "Files to attach"
		};
		this.input = element("input", {
			...hidden,
			onchange: chosen
		});
		addEventListener("beforeunload", (event) => this.#attached.length && event.preventDefault());
	}
	get attached() {
		return this.#attached;
	}
	clear() {
		this.#attached = [];
		this.#show();
	}
	async add(files) {
		for (const file of files) {
			this.#attached.push({
				name: file.name,
				media_type: file.type,
				data: await base64$1(file)
			});
			this.#show();
		}
	}
	#show() {
		const chips = this.#attached.map((file) => {
			const drop = () => {
				this.#attached = this.#attached.filter((one) => one !== file);
				this.#show();
			};
			const label = {
				class: "small",
				"aria-label": `Remove ${file.name}`
			};
			return element("span", { class: "chip" }, file.name, button("×", drop, label));
		});
		this.node.replaceChildren(...chips);
	}
	/** `target` is highlighted while a file is dragged over the page. */
	listen(root, target) {
		const carriesFiles = (event) => event.dataTransfer?.types.includes("Files") ?? false;
		for (const kind of [
			"dragenter",
			"dragover",
			"dragleave",
			"drop"
		]) root.addEventListener(kind, (event) => {
			if (!carriesFiles(event)) return;
			event.preventDefault();
			target.classList.toggle("drop", kind === "dragenter" || kind === "dragover");
			if (kind === "drop") attempt(() => this.add(event.dataTransfer?.files ?? []))();
		});
	}
};
function base64$1(file) {
	return new Promise((done, failed) => {
		const reader = new FileReader();
		reader.onload = () => done(String(reader.result).replace(/^[^,]*,/, ""));
		reader.onerror = () => failed(reader.error ?? /* @__PURE__ */ new Error(`${file.name} cannot be read`));
		reader.readAsDataURL(file);
	});
}
//#endregion
//#region src/chat/composer.ts
var COUNTED_AFTER = 500;
var KEPT$1 = "unsent";
var NEARLY_FULL = .8;
var Composer = class {
	node;
	files = new Files();
	#state;
	#actions;
	#text = element("textarea", {
		id: "text",
		rows: 2,
		placeholder: "Write a message; @name asks another model, @all asks all",
		"aria-label": "Message",
		"aria-describedby": "hint",
		autocomplete: "off"
	});
	#models = element("div", {
		id: "gauges",
		role: "group",
		"aria-label": "Models, and how full they are"
	});
	#completion;
	#target = element("span", { id: "target" });
	#default = element("select", {
		class: "default",
		"aria-label": "Model for text without a mention"
	});
	#format = element("select", {
		class: "as-format",
		"aria-label": "Format that the message is sent in"
	});
	#memo;
	#send = element("button", {
		id: "send",
		class: "primary"
	}, "Send");
	#stop;
	#gauges = [];
	#counting = 0;
	constructor(state, actions) {
		this.#state = state;
		this.#actions = actions;
		this.#stop = button("Stop", () => actions.stop(), {
			id: "stop",
			class: "danger",
			hidden: true
		});
		this.#memo = button("Memo", () => void this.#submit(true), {
			id: "memo",
			title: "Store it as a note; no model answers"
		});
		this.#default.addEventListener("change", () => actions.choose(this.#default.value));
		this.#completion = new Completion(this.#text, () => state().models, () => this.typed());
		this.node = this.#built();
		this.#text.value = sessionStorage.getItem(KEPT$1) ?? "";
		this.#text.addEventListener("input", () => this.typed());
		this.#text.addEventListener("keydown", (event) => this.#pressed(event));
		this.#text.addEventListener("paste", (event) => void this.files.add(event.clipboardData?.files ?? []));
	}
	#built() {
		const attach = button("Attach", () => this.files.input.click(), {
			id: "attach",
			title: "Add images or files"
		});
		const buttons = element("div", { class: "buttons" }, this.#send, this.#stop, this.#memo, attach);
		const choices = element("div", { class: "sending" }, element("label", {}, "Goes to ", this.#default), element("label", { class: "as" }, "sent as ", this.#format), this.#target);
		const hint = element("div", { id: "hint" }, "Enter sends, Shift+Enter makes a new line, Esc stops.");
		const submit = (event) => {
			event.preventDefault();
			this.#submit();
		};
		return element("form", {
			id: "composer",
			onsubmit: submit
		}, this.#models, this.#completion.node, this.files.node, choices, element("div", { class: "row" }, this.#text, buttons), hint, this.files.input);
	}
	#pressed(event) {
		if (this.#completion.pressed(event)) return;
		if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
		event.preventDefault();
		this.#submit();
	}
	focus() {
		this.#text.focus();
	}
	write(text) {
		this.#text.value = text;
		this.#text.focus();
		this.typed();
	}
	typed() {
		sessionStorage.setItem(KEPT$1, this.#text.value);
		this.#grow();
		this.showTarget();
		this.#completion.show();
		this.#count();
	}
	#grow() {
		this.#text.style.height = "auto";
		this.#text.style.height = `${this.#text.scrollHeight + 2}px`;
	}
	async #submit(memo = false) {
		const text = this.#text.value.trim();
		if (!text && !this.files.attached.length) return;
		clearTimeout(this.#counting);
		const format = this.#format.value;
		if (!await this.#actions.send(text, this.files.attached, {
			...memo ? { memo } : {},
			...format && !memo ? { format } : {}
		})) return;
		this.#text.value = "";
		this.files.clear();
		this.typed();
	}
	busy(running) {
		this.#stop.hidden = !running;
		this.#send.hidden = running;
	}
	get isBusy() {
		return !this.#stop.hidden;
	}
	showTarget() {
		const text = this.#text.value;
		const models = unknownIn(text, this.#state()) === null ? resolveMentions(text, this.#state()) : [];
		this.#target.textContent = text.trim() ? this.#destination(text, models) : "";
		this.#target.classList.toggle("unknown", unknownIn(text, this.#state()) !== null);
		for (const chip of this.#models.querySelectorAll("button")) {
			const name = chip.dataset["name"] ?? "";
			const all = models.length === this.#state().models.length;
			chip.setAttribute("aria-pressed", String(name === "all" ? all : models.includes(name)));
		}
	}
	#destination(text, models) {
		const unknown = unknownIn(text, this.#state());
		if (unknown !== null) return `There is no model named @${unknown}.`;
		return models.length ? `→ ${models.map((one) => `@${one}`).join(", ")}` : "A memo: stored, not sent to any model.";
	}
	/** A button per model: shows how full its window is, and mentions the model when pressed. */
	showModels(gauges = this.#gauges) {
		this.#gauges = gauges;
		const { models } = this.#state();
		const chips = models.map(({ name, window }) => {
			const gauge = gauges.find((one) => one.model === name) ?? {
				used: 0,
				window,
				exact: false,
				dropped_turns: 0
			};
			const share = Math.min(1, gauge.used / gauge.window);
			const counted = `${gauge.used.toLocaleString()} of ${gauge.window.toLocaleString()} tokens`;
			const left = gauge.dropped_turns ? `; the ${gauge.dropped_turns} oldest turns would be left out` : "";
			const described = `${gauge.exact ? "" : "about "}${counted}${left}`;
			return this.#chip(name, described, bar(share), element("span", {}, `${Math.round(share * 100)}%`));
		});
		this.#showChoices();
		this.#models.replaceChildren(...models.length > 1 ? [this.#chip("all", "Ask all models")] : [], ...chips);
		this.showTarget();
	}
	#showChoices() {
		const { models, default: chosen, foreign = [] } = this.#state();
		const [first = ""] = chosen;
		const option = (value, label, selected) => element("option", {
			value,
			selected
		}, label);
		const named = models.map((one) => option(one.name, `@${one.name}${one.simulated ? " (simulated)" : ""}`, one.name === first));
		const all = models.length > 1 ? [option("all", "@all", first === "all")] : [];
		this.#default.replaceChildren(...named, ...all, option("", "no model: memos", first === ""));
		const format = this.#format.value;
		this.#format.replaceChildren(option("", "the model's own format", format === ""), ...foreign.map((one) => option(one, formatName(one), one === format)));
		this.#format.closest("label")?.toggleAttribute("hidden", foreign.length === 0);
	}
	#chip(name, described, ...more) {
		const names = this.#state().models.map((one) => one.name);
		const choose = () => this.write(toggleMention(this.#text.value, name, names));
		return element("button", {
			type: "button",
			class: "model",
			"data-name": name,
			title: described,
			onclick: choose
		}, element("span", {}, `@${name}`), ...more);
	}
	#count() {
		clearTimeout(this.#counting);
		this.#counting = window.setTimeout(() => {
			this.#actions.count(this.#text.value).then((gauges) => this.showModels(gauges), () => void 0);
		}, COUNTED_AFTER);
	}
	/** Cancels a pending count. */
	forget() {
		clearTimeout(this.#counting);
	}
};
/** A name at the start that no model has. */
var unknownIn = (text, state) => unknownMention(text, state.models.map((one) => one.name));
/** A bar that shows how full the window is; the text says it too. */
function bar(share) {
	const inner = element("span", { class: share > NEARLY_FULL ? "full" : null });
	inner.style.width = `${share * 100}%`;
	return element("span", {
		class: "gauge",
		"aria-hidden": "true"
	}, inner);
}
//#endregion
//#region src/chat/groups.ts
var NO_MODELS = /* @__PURE__ */ new Set(["user", "system"]);
/** Old files have no answer ids: their entries are grouped by speaker. */
function groupAnswers(entries) {
	const groups = [];
	for (const entry of entries) {
		const speaker = entry.role === "tool" ? entry.owner ?? "" : entry.role;
		const key = NO_MODELS.has(entry.role) ? entry.id : entry.answer || `${entry.turn ?? ""}/${speaker}`;
		const last = groups.at(-1);
		if (last?.key === key) last.entries.push(entry);
		else groups.push({
			key,
			speaker,
			turn: entry.turn || entry.id,
			entries: [entry]
		});
	}
	return groups;
}
function textOf(entry) {
	return (entry.content ?? []).flatMap((part) => part.type === "text" ? [part.content] : []).join("\n");
}
//#endregion
//#region src/router.ts
function parse$1(hash) {
	const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s, 2);
	const [section = "", ...rest] = path.split("/").map(decodeStep);
	return {
		section,
		rest: rest.filter((step) => step !== ""),
		query: new URLSearchParams(query)
	};
}
function decodeStep(step) {
	try {
		return decodeURIComponent(step);
	} catch {
		return step;
	}
}
function address(section, rest = [], query = {}) {
	const path = [section, ...rest].map(encodeURIComponent).join("/");
	const words = new URLSearchParams(query).toString();
	return `#/${path}${words ? `?${words}` : ""}`;
}
/** Replaces the URL of the current view, without a history entry or an event. */
function rewrite(hash) {
	history.replaceState(null, "", hash);
}
var Router = class {
	#sections;
	#host;
	#changed;
	#roots = /* @__PURE__ */ new Map();
	#shown = null;
	constructor(sections, host, changed) {
		this.#sections = sections;
		this.#host = host;
		this.#changed = changed;
	}
	start() {
		addEventListener("hashchange", () => void this.#follow());
		this.#follow();
	}
	go(section) {
		location.hash = address(section);
	}
	async #follow() {
		const route = parse$1(location.hash);
		const section = this.#sections.find((one) => one.name === route.section);
		if (section === void 0) {
			const [first] = this.#sections;
			if (first !== void 0) rewrite(address(first.name));
			if (first !== void 0) await this.#show(first, parse$1(location.hash));
			return;
		}
		await this.#show(section, route);
	}
	async #show(section, route) {
		if (this.#shown !== section) {
			this.#shown?.leave();
			this.#shown = section;
			this.#changed(section);
		}
		const { root, ready } = this.#rootOf(section);
		for (const other of this.#host.children) other.toggleAttribute("hidden", other !== root);
		await ready;
		if (this.#shown === section) section.enter(route);
	}
	#rootOf(section) {
		let found = this.#roots.get(section);
		if (found === void 0) {
			const root = document.createElement("div");
			root.className = `section ${section.name}`;
			this.#host.append(root);
			found = {
				root,
				ready: Promise.resolve(section.mount(root))
			};
			this.#roots.set(section, found);
		}
		return found;
	}
};
//#endregion
//#region src/chat/session.ts
var AGAIN$1 = 1e3;
var UNSEEN = 6e4;
var NOTHING = {
	id: null,
	name: "",
	title: "New conversation",
	system_prompt: "",
	entries: [],
	running: [],
	questions: [],
	gauges: []
};
var Session = class {
	snapshot = NOTHING;
	#id = null;
	#source = null;
	#hiding = 0;
	#handlers;
	#taken;
	#failed;
	constructor(handlers, failed) {
		this.#handlers = {
			...handlers,
			snapshot: (data) => this.#take(data)
		};
		this.#taken = handlers.snapshot;
		this.#failed = failed;
		document.addEventListener("visibilitychange", () => this.#seen(!document.hidden));
	}
	get id() {
		return this.#id;
	}
	/** The open conversation changed. */
	call(method, rest = "", body) {
		return call(method, this.path(rest), body);
	}
	path(rest = "") {
		return `/chat/conversations/${encodeURIComponent(this.#id ?? "")}${rest}`;
	}
	/** An empty id starts a new conversation. */
	open(id) {
		this.#rename(id);
		if (id === null) {
			this.suspend();
			this.#take(NOTHING);
		} else this.resume();
	}
	#rename(id) {
		this.#id = id;
		rewrite(address("chat", id === null ? [] : [id]));
	}
	#take(snapshot) {
		if (snapshot.id !== this.#id) this.#rename(snapshot.id);
		this.snapshot = snapshot;
		this.#taken(snapshot);
	}
	/** A new conversation is created with its first message. */
	async ensure() {
		if (this.#id !== null) return;
		const { id } = await call("POST", "/chat/conversations", {});
		this.#rename(id);
		await this.resume();
	}
	/** Resolves with the first snapshot. */
	resume() {
		this.suspend();
		if (this.#id === null) return Promise.resolve();
		const source = listen(`${this.path()}/events`, this.#handlers);
		this.#source = source;
		source.addEventListener("error", () => {
			if (source.readyState === EventSource.CLOSED && this.#source === source) this.#lost(source);
		});
		return new Promise((ready) => source.addEventListener("snapshot", () => ready(), { once: true }));
	}
	suspend() {
		this.#source?.close();
		this.#source = null;
	}
	async #lost(source) {
		try {
			await this.call("GET");
			if (this.#source === source) setTimeout(() => this.#source === source && void this.resume(), AGAIN$1);
		} catch (problem) {
			if (this.#source !== source) return;
			this.#failed(problem);
			this.open(null);
		}
	}
	#seen(visible) {
		clearTimeout(this.#hiding);
		if (visible && this.#source?.readyState === EventSource.CLOSED) this.resume();
		else if (!visible) this.#hiding = window.setTimeout(() => this.#source?.close(), UNSEEN);
	}
};
//#endregion
//#region src/chat/sidebar.ts
var Sidebar = class {
	node;
	/** For small screens, where the list is out of sight. */
	menu;
	#actions;
	#list = element("ul", { id: "list" });
	#search;
	#file;
	constructor(actions) {
		this.#actions = actions;
		const search = {
			id: "search",
			type: "search",
			placeholder: "Search",
			"aria-label": "Search conversations"
		};
		this.#search = element("input", {
			...search,
			oninput: () => this.refresh()
		});
		this.#file = element("input", {
			id: "import-file",
			type: "file",
			accept: ".json,application/json",
			hidden: true,
			"aria-label": "Conversation to import",
			onchange: attempt(() => this.#import())
		});
		const begin = {
			id: "new",
			class: "primary",
			title: "New conversation (Alt+N)"
		};
		this.node = element("nav", {
			id: "sidebar",
			"aria-label": "Conversations"
		}, element("div", { class: "row" }, this.#search, button("New", () => actions.open(null), begin)), this.#list, button("Import…", () => this.#file.click(), { id: "import" }), this.#file);
		const labels = {
			"aria-label": "Show conversations",
			"aria-controls": "sidebar",
			"aria-expanded": "false"
		};
		this.menu = button("☰", () => this.#toggle(), {
			id: "menu",
			...labels
		});
	}
	#toggle() {
		this.menu.setAttribute("aria-expanded", String(this.node.classList.toggle("open")));
	}
	close() {
		this.node.classList.remove("open");
		this.menu.setAttribute("aria-expanded", "false");
	}
	refresh = attempt(async () => {
		const words = this.#search.value.trim();
		const rows = await call("GET", `/chat/conversations?q=${encodeURIComponent(words)}`);
		this.#list.replaceChildren(...rows.map((row) => element("li", {}, this.#row(row))));
		const shown = rows.find((row) => row.id === this.#actions.shown());
		if (shown !== void 0) this.#actions.named(shown.name);
	});
	#row(row) {
		const about = row.excerpt || [row.updated.slice(0, 16).replace("T", " "), row.models.join(", ")].filter((one) => one).join(" · ");
		const current = row.id === this.#actions.shown() ? "true" : null;
		const open = () => this.#actions.open(row.id);
		return element("button", {
			type: "button",
			"aria-current": current,
			title: row.name,
			onclick: open
		}, element("span", { class: row.running ? "busy" : null }, row.name), element("span", { class: "about" }, about));
	}
	async #import() {
		const [file] = this.#file.files ?? [];
		if (file === void 0) return;
		const document = JSON.parse(await file.text());
		this.#file.value = "";
		const { id } = await call("POST", "/chat/conversations", {
			document,
			name: file.name.replace(/\.json$/, "")
		});
		this.#actions.open(id);
	}
};
//#endregion
//#region src/losses.ts
var WORDS$2 = {
	dropped: "the target does not get it",
	degraded: "it arrives in a reduced form",
	invented: "added, because the target requires it",
	noted: "bookkeeping about the answer; its content is the same"
};
/** Number of losses, without notes. */
var lossCount = (losses) => losses.filter((loss) => loss.severity !== "noted").length;
/** `choose` shows the place and returns whether it exists exactly. `failure` is shown instead if the request failed. */
function lossList(losses, choose, failure = "") {
	if (losses.length === 0 && failure !== "") return element("p", { class: "lost-all" }, failure);
	if (losses.length === 0) return element("p", { class: "nothing-lost" }, "Nothing was lost.");
	const list = element("ul", { class: "loss-list" });
	for (const loss of losses) {
		const about = element("span", {
			class: "soft nearest",
			hidden: true
		}, "Not in this body: this is the nearest place.");
		const pick = () => {
			for (const other of list.querySelectorAll("[aria-pressed]")) other.setAttribute("aria-pressed", "false");
			button.setAttribute("aria-pressed", "true");
			about.hidden = choose(loss);
		};
		const button = element("button", {
			type: "button",
			class: "loss",
			"aria-pressed": "false",
			onclick: pick
		}, element("span", {
			class: `severity ${loss.severity}`,
			title: WORDS$2[loss.severity]
		}, loss.severity), element("code", {}, loss.path), element("span", { class: "what" }, loss.what), element("span", { class: "why" }, loss.why), about);
		list.append(element("li", {}, button));
	}
	return list;
}
//#endregion
//#region src/markdown.ts
var INLINE = new RegExp([
	"(?<ticks>`+)(?<code>[^`]|[^`][\\s\\S]*?[^`])\\k<ticks>(?!`)",
	"\\*\\*(?<bold>[^*\\n]+(?:\\*[^*\\n]+\\*?)*)\\*\\*(?!\\*)",
	"(?<![\\w*])[*_](?<italic>[^*_\\s](?:[^*_\\n]*[^*_\\s])?)[*_](?![\\w*])",
	"~~(?<struck>[^~\\n]+)~~",
	"\\[(?<label>[^\\[\\]\\n]+)\\]\\((?<address>[^()\\s]+)\\)",
	"(?<bare>https?:\\/\\/[^\\s<>()]+[^\\s<>().,;:!?'\"])"
].join("|"), "g");
var SAFE = /^(https?:|mailto:)/i;
function link(text, address) {
	if (!SAFE.test(address)) return text;
	return element("a", {
		href: address,
		rel: "noopener noreferrer nofollow",
		target: "_blank"
	}, text);
}
function inlinePiece(found) {
	const { code, bold, italic, struck, label, address, bare } = found;
	if (code !== void 0) return element("code", {}, code);
	if (bold !== void 0) return element("strong", {}, ...inline$1(bold));
	if (italic !== void 0) return element("em", {}, ...inline$1(italic));
	if (struck !== void 0) return element("del", {}, struck);
	if (label !== void 0) return link(label, address ?? "");
	return link(bare ?? "", bare ?? "");
}
function inline$1(text) {
	const out = [];
	let last = 0;
	for (const found of text.matchAll(INLINE)) {
		out.push(text.slice(last, found.index), inlinePiece(found.groups ?? {}));
		last = found.index + found[0].length;
	}
	out.push(text.slice(last));
	return out.filter((piece) => piece !== "");
}
var FENCE = /^\s*(`{3,}|~{3,})\s*([\w+-]*)/;
var HEADING = /^(#{1,6})\s+(.*)/;
var ITEM = /^(\s*)([-*+]|\d+[.)])\s+(.*)/;
var RULE = /^\s*([-*_])(\s*\1){2,}\s*$/;
var QUOTE$1 = /^\s*>\s?(.*)/;
var ROW$1 = /^\s*\|(.*)\|\s*$/;
var DELIMITERS = /^\s*\|[\s:|-]+\|\s*$/;
var DEEPEST$1 = 20;
var HEADINGS = [
	"h3",
	"h4",
	"h5",
	"h6"
];
function codeBlock(code, language) {
	return element("div", { class: "code" }, button("Copy", () => copy(code, "Code"), { class: "copy-code" }), element("pre", { tabindex: 0 }, element("code", { "data-language": language || null }, code)));
}
function cells(line, tag) {
	return (ROW$1.exec(line)?.[1] ?? "").split("|").map((cell) => element(tag, {}, ...inline$1(cell.trim())));
}
function fence(lines, at) {
	const [, open = "", language = ""] = FENCE.exec(lines[at] ?? "") ?? [];
	if (!open) return null;
	let end = at + 1;
	while (end < lines.length && !lines[end]?.trim().startsWith(open)) end += 1;
	return [codeBlock(lines.slice(at + 1, end).join("\n"), language), end + 1];
}
function heading(lines, at) {
	const [, marks = "", text = ""] = HEADING.exec(lines[at] ?? "") ?? [];
	return marks ? [element(HEADINGS[marks.length - 1] ?? "h6", {}, ...inline$1(text)), at + 1] : null;
}
function rule(lines, at) {
	return RULE.test(lines[at] ?? "") ? [element("hr"), at + 1] : null;
}
function quote(lines, at, depth) {
	if (depth >= DEEPEST$1) return null;
	const inner = [];
	for (let found; found = QUOTE$1.exec(lines[at] ?? ""); at += 1) inner.push(found[1] ?? "");
	return inner.length ? [element("blockquote", {}, ...blocks(inner, depth + 1)), at] : null;
}
function table$2(lines, at) {
	const first = lines[at] ?? "";
	if (!ROW$1.test(first) || !DELIMITERS.test(lines[at + 1] ?? "")) return null;
	const rows = [];
	for (at += 2; ROW$1.test(lines[at] ?? ""); at += 1) rows.push(element("tr", {}, ...cells(lines[at] ?? "", "td")));
	return [element("div", {
		class: "table",
		tabindex: 0,
		role: "group",
		"aria-label": "Table"
	}, element("table", {}, element("thead", {}, element("tr", {}, ...cells(first, "th"))), element("tbody", {}, ...rows))), at];
}
var indentOf = (line) => line.length - line.trimStart().length;
var isBlank = (line) => line !== void 0 && line.trim() === "";
function list(lines, at, depth) {
	const first = ITEM.exec(lines[at] ?? "");
	if (first === null || depth >= DEEPEST$1) return null;
	const indent = first[1]?.length ?? 0;
	const made = element(/\d/.test(first[2] ?? "") ? "ol" : "ul");
	while (at < lines.length) {
		const item = ITEM.exec(lines[at] ?? "");
		if (item === null || (item[1]?.length ?? 0) < indent) break;
		const [own, next] = itemLines(lines, at, item, indent);
		made.append(element("li", {}, ...own.length > 1 ? blocks(own, depth + 1) : inline$1(own[0] ?? "")));
		at = next;
		while (isBlank(lines[at]) && ITEM.test(lines[at + 1] ?? "")) at += 1;
	}
	return [made, at];
}
/** What belongs to one item: its own line, and all that is deeper. */
function itemLines(lines, at, item, indent) {
	const own = [item[3] ?? ""];
	for (at += 1; at < lines.length; at += 1) {
		const line = lines[at] ?? "";
		if (isBlank(line) ? !/^\s+\S/.test(lines[at + 1] ?? "") : indentOf(line) <= indent) break;
		own.push(line.slice(Math.min(indentOf(line), (item[1]?.length ?? 0) + 2)));
	}
	return [own, at];
}
var BLOCKS = [
	fence,
	heading,
	rule,
	quote,
	table$2,
	list
];
function block(lines, at, depth) {
	for (const read of BLOCKS) {
		const found = read(lines, at, depth);
		if (found) return found;
	}
	return null;
}
/** Whether a block begins here. Without reading it: a paragraph before a nested list would read each level twice. */
function begins(lines, at, depth) {
	const line = lines[at] ?? "";
	if ([
		FENCE,
		HEADING,
		RULE
	].some((start) => start.test(line))) return true;
	if (depth < DEEPEST$1 && (QUOTE$1.test(line) || ITEM.test(line))) return true;
	return ROW$1.test(line) && DELIMITERS.test(lines[at + 1] ?? "");
}
function paragraph(lines, at, depth) {
	const own = [lines[at] ?? ""];
	for (at += 1; at < lines.length && !isBlank(lines[at]) && !begins(lines, at, depth); at += 1) own.push(lines[at] ?? "");
	return [element("p", {}, ...own.flatMap((line, index) => index ? [element("br"), ...inline$1(line)] : inline$1(line))), at];
}
function blocks(lines, depth = 0) {
	const out = [];
	for (let at = 0; at < lines.length;) {
		if (isBlank(lines[at])) {
			at += 1;
			continue;
		}
		const [made, next] = block(lines, at, depth) ?? paragraph(lines, at, depth);
		out.push(made);
		at = next;
	}
	return out;
}
function markdown(text) {
	return blocks(text.split("\n"));
}
//#endregion
//#region src/chat/toolcard.ts
var SHORT = 60;
var ToolCard = class {
	node;
	#state = element("span", { class: "state" });
	#output = element("div");
	#ticking = 0;
	#waiting = false;
	#tell = () => void 0;
	constructor({ name, arguments: given }, running) {
		const line = typeof given === "string" ? given : JSON.stringify(given ?? {});
		const whole = typeof given === "string" ? given : JSON.stringify(given ?? {}, null, 2);
		const short = line.length > SHORT ? `${line.slice(0, SHORT)}…` : line;
		this.node = element("details", {
			class: "tool",
			"data-tool": name
		}, element("summary", {}, element("b", {}, name), element("span", { class: "given" }, short), this.#state), element("pre", {
			"aria-label": "Arguments",
			tabindex: 0,
			role: "group"
		}, whole), this.#output);
		if (running) this.#tick();
	}
	#tick() {
		const begun = performance.now();
		const tell = () => {
			const seconds = Math.round((performance.now() - begun) / 1e3);
			const word = this.#waiting ? "waiting for you" : "running";
			this.#state.textContent = seconds ? `${word}, ${seconds} s` : `${word}…`;
			if (!this.node.isConnected && seconds) clearInterval(this.#ticking);
		};
		this.#tell = tell;
		tell();
		this.#ticking = window.setInterval(tell, 1e3);
		this.node.classList.add("running");
	}
	/** The call waits for the user's permission. */
	wait(waiting) {
		this.#waiting = waiting;
		if (this.node.classList.contains("running")) this.#tell();
	}
	#settle(word) {
		clearInterval(this.#ticking);
		this.node.classList.remove("running");
		this.#state.textContent = word;
	}
	result(result) {
		const text = typeof result.content === "string" ? result.content : JSON.stringify(result.content, null, 2);
		this.#settle(result.is_error ? "error" : "done");
		this.node.classList.toggle("failed", Boolean(result.is_error));
		const shown = element("pre", {
			"aria-label": result.is_error ? "Error" : "Result",
			tabindex: 0,
			role: "group"
		}, text);
		this.#output.replaceChildren(shown, ...(result.media ?? []).flatMap(picture));
	}
	took(milliseconds) {
		const time = milliseconds < 1e3 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1e3).toFixed(1)} s`;
		this.#state.textContent += ` (${time})`;
	}
	/** The answer ended without a result. */
	abandoned() {
		if (this.node.classList.contains("running")) this.#settle("no result");
	}
};
function picture(one) {
	if (one.type !== "image" || !one.data) return [];
	const source = `data:${one.media_type ?? "image/png"};base64,${one.data}`;
	return [element("img", {
		class: "picture",
		alt: one.title || "picture",
		src: source
	})];
}
//#endregion
//#region src/chat/card.ts
var HUES = 6;
var WORDS$1 = {
	error: "Failed",
	refused: "Declined",
	empty: "No answer",
	stopped: "Stopped",
	cut: "Cut short",
	interrupted: "Interrupted"
};
/** Growing text, painted at most once per frame. */
var Growing = class {
	node;
	type;
	content = "";
	#target;
	#waiting = false;
	constructor(type) {
		this.type = type;
		this.#target = element("div");
		this.node = type === "text" ? this.#target : element("details", {
			class: "reasoning",
			hidden: true
		}, element("summary", {}, "Reasoning"), this.#target);
	}
	append(text) {
		this.content += text;
		if (this.#waiting) return;
		this.#waiting = true;
		requestAnimationFrame(() => {
			this.#waiting = false;
			this.paint();
		});
	}
	paint() {
		if (this.type === "text") this.#target.replaceChildren(...markdown(this.content));
		else this.#target.textContent = this.content;
		this.node.hidden = this.content === "";
	}
};
var Card = class {
	node;
	running = false;
	#key;
	#model;
	#actions;
	#about = element("span", { class: "about" });
	#body = element("div", { class: "body" });
	#foot = element("div", { class: "foot" });
	#stopper;
	#tools = /* @__PURE__ */ new Map();
	#texts = [];
	#last = null;
	#retry = null;
	constructor(key, model, models, actions) {
		this.#key = key;
		this.#model = model;
		this.#actions = actions;
		const index = models.findIndex((one) => one.name === model);
		this.#tellAbout(models[index]?.model ?? "");
		this.#stopper = button("Stop", () => actions.stop(key), { class: "small" });
		const head = element("div", { class: "head" }, element("h2", { class: `name hue-${Math.max(0, index) % HUES}` }, model), models[index]?.simulated ? element("span", {
			class: "simulated",
			title: "A simulator on this machine answers instead of a model"
		}, "simulated") : null, this.#about, this.#stopper);
		const attributes = {
			class: "answer",
			"aria-label": `Answer of ${model}`,
			"data-model": model,
			"data-answer": key
		};
		this.node = element("section", attributes, head, this.#body, this.#foot);
	}
	begin(entries) {
		this.running = true;
		this.node.classList.add("busy");
		this.#fill(entries);
	}
	finished(entries) {
		const last = entries.at(-1);
		this.running = false;
		this.node.classList.remove("busy");
		this.#stopper.hidden = true;
		this.#fill(entries);
		for (const tool of this.#tools.values()) tool.abandoned();
		if (last === void 0) return;
		this.#tellEnd(last);
		if (last.model) this.#tellAbout(usageOf(last));
		if (entries.some((entry) => entry.replaced)) this.replaced();
		this.#offer(last);
	}
	#tellEnd({ status = "ok", error }) {
		if (status === "ok") return;
		const words = `: ${error || "no reason given"}`;
		this.#body.append(element("div", {
			class: "problem",
			role: "alert"
		}, element("b", {}, WORDS$1[status]), words));
	}
	#offer(last) {
		const { copy, retry, branch, showAs } = this.#actions;
		const text = this.#texts.filter((one) => one.type === "text").map((one) => one.content).join("\n\n");
		const { answer } = last;
		const small = { class: "small" };
		this.#foot.replaceChildren(button("Copy", () => copy(text), small), ...answer ? [button("Retry", () => retry(answer), small)] : [], button("Branch", () => branch(last.id), small), button("Show as…", () => showAs(answer || last.id), small));
	}
	replaced() {
		this.node.classList.add("replaced");
		this.#tellAbout("an earlier answer, replaced");
	}
	#tellAbout(words) {
		this.#about.textContent = words;
		this.#about.title = words;
	}
	#fill(entries) {
		this.#texts = [];
		this.#last = null;
		this.#tools.clear();
		this.#body.replaceChildren();
		for (const entry of entries) for (const part of entry.content ?? []) this.#add(part);
	}
	#add(part) {
		if (part.type === "text" || part.type === "reasoning") {
			const made = this.#grow(part.type);
			made.content = String(part.content);
			made.paint();
		} else if (part.type === "tool_call") this.#call(part.content.tool_call_id, part.content);
		else if (part.type === "tool_result") this.#result(part);
		else this.#put(element("span", { class: "chip" }, part.type));
	}
	#put(node) {
		this.#last = null;
		this.#body.append(node);
	}
	#grow(type) {
		const made = new Growing(type);
		this.#put(made.node);
		this.#texts.push(made);
		this.#last = made;
		return made;
	}
	#delta(type, text) {
		(this.#last?.type === type ? this.#last : this.#grow(type)).append(text);
	}
	#call(id, call) {
		const made = new ToolCard(call, this.running);
		this.#tools.set(id, made);
		this.#put(made.node);
		return made;
	}
	#result(result) {
		const { tool_call_id: id, name } = result;
		(this.#tools.get(id) ?? this.#call(id, {
			name,
			arguments: ""
		})).result(result);
	}
	activity(event) {
		this.#retry?.remove();
		this.#retry = null;
		switch (event.type) {
			case "text_delta": return this.#delta("text", event.content);
			case "reasoning_delta": return this.#delta("reasoning", event.content);
			case "tool_call":
				this.#call(event.tool_call_id, {
					name: event.tool,
					arguments: event.args
				});
				return;
			case "tool_result": {
				const failed = event.is_error ?? false;
				return this.#result({
					...event,
					name: event.tool,
					content: event.result,
					is_error: failed
				});
			}
			case "step_complete": return this.#tools.get(event.step_id)?.took(event.duration_ms);
			case "retry": {
				const words = `${event.reason}; again in ${event.delay.toFixed(1)} s`;
				this.#retry = element("p", { class: "aside" }, words);
				return this.#put(this.#retry);
			}
			default: return;
		}
	}
	/** Not focused, so that typing cannot allow a call by accident. Announced to screen readers. */
	ask(question) {
		const answer = (label, kind, given) => button(label, () => this.#actions.permit(question.id, given), { class: kind });
		this.#tools.get(question.tool_call_id ?? "")?.wait(true);
		this.#put(element("div", {
			class: "ask",
			role: "alert",
			"aria-label": "Permission",
			"data-question": question.id
		}, element("p", {}, element("b", {}, this.#model), " wants to run ", element("code", {}, question.tool), " with"), element("pre", {}, JSON.stringify(question.arguments, null, 2)), element("div", { class: "row" }, answer("Allow", "primary", { allow: true }), answer("Always allow", "", {
			allow: true,
			always: true
		}), answer("Deny", "danger", { allow: false }))));
	}
	settled(question) {
		const box = this.#body.querySelector(`[data-question="${CSS.escape(question)}"]`);
		if (box === null) return;
		box.remove();
		for (const tool of this.#tools.values()) tool.wait(false);
	}
	get key() {
		return this.#key;
	}
};
function usageOf({ model = "", usage }) {
	if (usage?.input === void 0) return model;
	return `${model} · ${usage.input.toLocaleString()} + ${(usage.output ?? 0).toLocaleString()} tokens`;
}
//#endregion
//#region src/chat/timeline.ts
var NEAR = 120;
var Timeline$1 = class {
	node = element("section", {
		id: "timeline",
		"aria-label": "Conversation",
		tabindex: 0
	});
	#state;
	#actions;
	#welcome;
	#turns = /* @__PURE__ */ new Map();
	#cards = /* @__PURE__ */ new Map();
	constructor(state, actions, welcome) {
		this.#state = state;
		this.#actions = actions;
		this.#welcome = welcome;
	}
	get busy() {
		return [...this.#cards.values()].some((card) => card.running);
	}
	show(snapshot) {
		this.#turns.clear();
		this.#cards.clear();
		const page = document.createDocumentFragment();
		const groups = groupAnswers(snapshot.entries);
		const answered = /* @__PURE__ */ new Set([...groups.filter((one) => one.speaker !== "user").map((one) => one.turn), ...snapshot.running.map((one) => one.turn)]);
		for (const group of groups) this.#draw(group, answered, page);
		this.node.replaceChildren(...snapshot.entries.length ? [] : [this.#welcome()], page);
		for (const one of snapshot.running) this.started(one, one.entries);
		for (const question of snapshot.questions) this.addQuestion(question);
		requestAnimationFrame(() => this.toEnd());
	}
	#draw(group, answered, page) {
		const [first] = group.entries;
		if (first === void 0) return;
		if (group.speaker === "user") this.#say(first, !answered.has(group.turn), page);
		else if (group.speaker === "system") {
			const problem = element("div", { class: "problem" }, first.error || "unreadable entry");
			this.#turn(group.turn, page).answers.append(problem);
		} else this.#place(group.key, group.turn, group.speaker, page).finished(group.entries);
	}
	#turn(id, page = this.node) {
		let turn = this.#turns.get(id);
		if (turn === void 0) {
			const answers = element("div", { class: "answers" });
			turn = {
				node: element("article", { class: "turn" }, answers),
				answers
			};
			this.#turns.set(id, turn);
			page.append(turn.node);
		}
		return turn;
	}
	/** Columns are in the order of the models, not of arrival. */
	#place(key, turn, model, page) {
		const { models } = this.#state();
		const card = new Card(key, model, models, this.#actions);
		this.#cards.set(key, card);
		const { answers } = this.#turn(turn, page);
		const rank = (name) => models.findIndex((one) => one.name === name);
		const after = [...answers.children].filter((node) => node instanceof HTMLElement).find((node) => rank(node.dataset["model"]) > rank(model));
		answers.insertBefore(card.node, after ?? null);
		return card;
	}
	#say(entry, isMemo, page) {
		this.node.querySelector(".empty")?.remove();
		const { node, answers } = this.#turn(entry.turn || entry.id, page);
		const text = textOf(entry);
		const { copy, edit, branch, showAs } = this.#actions;
		const small = { class: "small" };
		const foot = element("div", { class: "foot" }, button("Copy", () => copy(text), small), button("Edit and resend", attempt(() => edit(entry)), small), button("Branch", () => branch(entry.id), small), button("Show as…", () => showAs(entry.id), small));
		const bubble = element("div", { class: "bubble" }, ...(entry.content ?? []).flatMap(userPart));
		const [kind, label] = isMemo ? ["mine memo", "Your memo"] : ["mine", "You"];
		node.insertBefore(element("div", {
			class: kind,
			role: "group",
			"aria-label": label
		}, bubble, foot), answers);
	}
	addEntry(entry, models) {
		this.#following(() => this.#say(entry, models.length === 0));
	}
	/** The gateway's translations of a message sent in another format. */
	translated(turn, translations, open) {
		const found = this.#turns.get(turn);
		if (found === void 0 || translations.length === 0) return;
		const chips = translations.map((one) => {
			const lost = lossCount(one.losses);
			const words = one.problem || `${formatName(one.source)} → ${formatName(one.target)}`;
			const tally = one.problem ? null : element("span", { class: lost ? "tally" : "whole" }, lost ? `${lost} lost` : "nothing lost");
			return element("button", {
				type: "button",
				class: "translation",
				onclick: () => open(one)
			}, element("b", {}, `@${one.model}`), ` ${words} `, tally);
		});
		this.#following(() => found.node.insertBefore(element("div", {
			class: "translations",
			role: "group",
			"aria-label": "Translations"
		}, ...chips), found.answers));
	}
	started({ answer, turn, model, replaces }, entries = []) {
		this.#following(() => {
			if (replaces) this.#cards.get(replaces)?.replaced();
			this.#place(answer, turn, model).begin(entries);
		});
	}
	with(answer, work) {
		const card = this.#cards.get(answer);
		if (card !== void 0) this.#following(() => work(card));
	}
	addQuestion(question) {
		this.with(question.answer, (card) => card.ask(question));
	}
	settled(question) {
		for (const card of this.#cards.values()) card.settled(question);
	}
	#following(work) {
		const { scrollHeight, scrollTop, clientHeight } = this.node;
		const follows = scrollHeight - scrollTop - clientHeight < NEAR;
		work();
		if (follows) this.toEnd();
	}
	/** Unseen content has no exact height yet, so the end moves while scrolling there. */
	toEnd(frames = 30) {
		const before = this.node.scrollTop;
		this.node.scrollTop = this.node.scrollHeight;
		if (frames > 0 && this.node.scrollTop !== before) requestAnimationFrame(() => this.toEnd(frames - 1));
	}
};
function userPart(part) {
	if (part.type === "text") return markdown(part.content);
	if (part.type === "image") return picture(part);
	const title = "title" in part ? part.title ?? "" : "";
	return [element("span", { class: "chip" }, `${part.type} ${title}`)];
}
//#endregion
//#region src/json/parse.ts
/** Why a text is not JSON, and where. */
var NotJson = class extends Error {
	place;
	constructor(place) {
		super(`invalid JSON at character ${place}`);
		this.place = place;
	}
};
var DEEPEST = 2e3;
var NONE = [];
var SPACE = /[ \t\r\n]*/y;
var QUOTE = 34;
var BACKSLASH = 92;
var FIRST_PRINTABLE = 32;
var NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
var WORD = /true|false|null/y;
function parse(text) {
	const reader = new Reader(text);
	const item = reader.value(0);
	reader.space();
	if (reader.place < text.length) throw new NotJson(reader.place);
	return item;
}
/** The tree, or null if the text is not JSON. */
function tryParse(text) {
	try {
		return parse(text);
	} catch (problem) {
		if (problem instanceof NotJson) return null;
		throw problem;
	}
}
var Reader = class {
	place = 0;
	#text;
	constructor(text) {
		this.#text = text;
	}
	value(depth) {
		this.space();
		const start = this.place;
		const first = this.#text[start];
		if (depth > DEEPEST) throw new NotJson(start);
		if (first === "{") return this.#many("object", "}", start, depth);
		if (first === "[") return this.#many("array", "]", start, depth);
		if (first === "\"") return {
			kind: "string",
			start,
			end: this.#string(),
			entries: NONE
		};
		if (first === "t" || first === "f" || first === "n") return this.#leaf("word", WORD, start);
		return this.#leaf("number", NUMBER, start);
	}
	space() {
		this.#take(SPACE);
	}
	#many(kind, close, start, depth) {
		const entries = [];
		this.place += 1;
		this.space();
		if (this.#text[this.place] === close) this.place += 1;
		else do
			entries.push(this.#entry(kind, entries.length, depth));
		while (this.#separated(close));
		return {
			kind,
			start,
			end: this.place,
			entries
		};
	}
	#entry(kind, number, depth) {
		this.space();
		const start = this.place;
		if (kind === "array") return {
			key: String(number),
			start,
			item: this.value(depth + 1)
		};
		const name = this.#text.slice(start, this.#string());
		this.space();
		if (this.#text[this.place] !== ":") throw new NotJson(this.place);
		this.place += 1;
		return {
			key: unquote(name),
			start,
			item: this.value(depth + 1)
		};
	}
	/** Whether another one follows. */
	#separated(close) {
		this.space();
		const next = this.#text[this.place];
		if (next !== "," && next !== close) throw new NotJson(this.place);
		this.place += 1;
		return next === ",";
	}
	/** The end of a string. Character by character: a regular expression over megabytes exhausts the stack. */
	#string() {
		if (this.#text.charCodeAt(this.place) !== QUOTE) throw new NotJson(this.place);
		let place = this.place + 1;
		for (;;) {
			const letter = this.#text.charCodeAt(place);
			if (letter === QUOTE) break;
			if (!(letter >= FIRST_PRINTABLE)) throw new NotJson(place);
			place += letter === BACKSLASH ? 2 : 1;
		}
		this.place = place + 1;
		return this.place;
	}
	#leaf(kind, pattern, start) {
		if (this.#take(pattern) === null) throw new NotJson(start);
		return {
			kind,
			start,
			end: this.place,
			entries: NONE
		};
	}
	#take(pattern) {
		pattern.lastIndex = this.place;
		const found = pattern.exec(this.#text);
		if (found === null) return null;
		this.place = pattern.lastIndex;
		return found[0];
	}
};
function unquote(text) {
	try {
		return JSON.parse(text);
	} catch {
		return text.slice(1, -1);
	}
}
var STEP = /\.([^.[]+)|\[(\d+)\]/g;
/** The steps of a path such as `$.messages[2].content`. */
function steps(path) {
	return [...path.matchAll(STEP)].map((found) => found[1] ?? found[2] ?? "");
}
/** The item at a path, or the nearest enclosing one. */
function find(root, path) {
	const way = [];
	let item = root;
	let { start } = root;
	for (const step of steps(path)) {
		const entry = item.entries.findLast((one) => one.key === step);
		if (entry === void 0) return {
			item,
			start,
			way,
			isExact: false
		};
		way.push(step);
		({item, start} = entry);
	}
	return {
		item,
		start,
		way,
		isExact: true
	};
}
//#endregion
//#region src/json/view.ts
var LONG = 240;
var MANY = 100;
var BUDGET = 700;
var MORE = 5e3;
/** Shows any body: JSON as a tree, a stream by lines, anything else as text. */
function view(text, label) {
	const root = tryParse(text);
	if (root !== null) return new Tree(text, root, label);
	return new Plain(text, label);
}
var number = new Intl.NumberFormat("en");
var counted = (count, noun) => `${number.format(count)} ${noun}${count === 1 ? "" : "s"}`;
var Tree = class {
	element;
	#text;
	#root;
	#lines = /* @__PURE__ */ new Map();
	#budget = BUDGET;
	#marked = null;
	constructor(text, root, label) {
		this.#text = text;
		this.#root = root;
		this.element = element("div", {
			class: "json",
			role: "group",
			"aria-label": label,
			tabindex: 0
		});
		this.element.append(this.#line(root, null));
		this.#budget = 0;
	}
	reveal(path) {
		this.unmark();
		const found = find(this.#root, path);
		let item = this.#root;
		for (const step of found.way) {
			const place = item.entries.findLastIndex((entry) => entry.key === step);
			this.#lines.get(item)?.show(place);
			item = item.entries[place]?.item ?? item;
		}
		const line = this.#lines.get(item);
		if (line !== void 0) {
			this.#marked = line.element;
			line.element.classList.add("marked");
			line.element.scrollIntoView({ block: "center" });
		}
		return found.isExact;
	}
	unmark() {
		this.#marked?.classList.remove("marked");
		this.#marked = null;
	}
	#line(item, key) {
		this.#budget -= 1;
		const name = key === null ? [] : [element("span", { class: "key" }, JSON.stringify(key)), ": "];
		if (item.kind !== "object" && item.kind !== "array") {
			const line = element("div", { class: "line" }, ...name, this.#leaf(item));
			this.#lines.set(item, {
				element: line,
				show: () => void 0
			});
			return line;
		}
		const line = new Branch(item, name, this.#budget > 0, (entry) => this.#line(entry.item, item.kind === "object" ? entry.key : null));
		this.#lines.set(item, line);
		return line.element;
	}
	#leaf(item) {
		const text = this.#text.slice(item.start, item.end);
		return item.kind === "string" ? string(text) : element("span", { class: item.kind }, text);
	}
};
/** An object or an array, whose entries are made when they are first shown. */
var Branch = class {
	element;
	#item;
	#make;
	#inside = element("div", { class: "inside" });
	#fold;
	#shown = 0;
	constructor(item, name, isOpen, make) {
		this.#item = item;
		this.#make = make;
		const [open, close] = item.kind === "object" ? ["{", "}"] : ["[", "]"];
		if (item.entries.length === 0) {
			this.#fold = null;
			this.element = element("div", { class: "line" }, ...name, `${open}${close}`);
			return;
		}
		const count = counted(item.entries.length, item.kind === "object" ? "entry" : "item").replace("entrys", "entries");
		this.#fold = element("button", {
			type: "button",
			class: "fold",
			"aria-label": `Fold or unfold ${count}`,
			onclick: () => this.#toggle()
		});
		const head = element("div", { class: "line head" }, this.#fold, ...name, open, element("span", { class: "count" }, `${count} ${close}`));
		this.element = element("div", { class: "branch" }, head, this.#inside, element("div", { class: "line close" }, close));
		this.#open(isOpen);
	}
	show(place) {
		if (this.#inside.hidden) this.#open(true);
		while (this.#shown <= place && this.#shown < this.#item.entries.length) this.#more();
	}
	#toggle() {
		this.#open(this.#inside.hidden === true);
	}
	#open(isOpen) {
		this.#inside.hidden = !isOpen;
		this.element.classList.toggle("folded", !isOpen);
		this.#fold?.setAttribute("aria-expanded", String(isOpen));
		if (isOpen && this.#shown === 0) this.#more();
	}
	#more() {
		this.#inside.querySelector(":scope > .more")?.remove();
		const next = this.#item.entries.slice(this.#shown, this.#shown + MANY);
		this.#inside.append(...next.map(this.#make));
		this.#shown += next.length;
		const left = this.#item.entries.length - this.#shown;
		if (left > 0) this.#inside.append(more(`${counted(left, "more item")}`, () => this.#more()));
	}
};
function more(label, run) {
	return element("button", {
		type: "button",
		class: "more",
		onclick: run
	}, `… ${label}`);
}
/** A string as written; a button shows what exceeds a certain length. */
function string(text) {
	const shown = element("span", { class: "string" }, text.slice(0, LONG));
	let end = LONG;
	const unfold = () => {
		shown.append(text.slice(end, end + MORE));
		end += MORE;
		offer();
	};
	const offer = () => {
		shown.querySelector(".more")?.remove();
		if (end < text.length) shown.append(more(counted(text.length - end, "more character"), unfold));
	};
	offer();
	return shown;
}
var STREAMED = /^(data|event|id|retry):\s?/;
var FIRST_LINES = 400;
var LONGEST_LINE = 2e5;
/** Events or lines of JSON, each coloured by itself. */
var Plain = class {
	element;
	#lines;
	#shown = 0;
	constructor(text, label) {
		this.#lines = text.split("\n");
		this.element = element("div", {
			class: "json plain",
			role: "group",
			"aria-label": label,
			tabindex: 0
		});
		this.#more();
	}
	reveal() {
		return false;
	}
	unmark() {}
	#more() {
		this.element.querySelector(":scope > .more")?.remove();
		const next = this.#lines.slice(this.#shown, this.#shown + FIRST_LINES);
		this.element.append(...next.map(inlineLine));
		this.#shown += next.length;
		const left = this.#lines.length - this.#shown;
		if (left > 0) this.element.append(more(counted(left, "more line"), () => this.#more()));
	}
};
function inlineLine(line) {
	const field = STREAMED.exec(line)?.[0] ?? "";
	const rest = line.slice(field.length);
	const made = element("div", { class: "line" }, field && element("span", { class: "field" }, field));
	made.append(...inline(rest));
	return made;
}
var TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d[\d.eE+-]*)|\b(true|false|null)\b/g;
/** One line of JSON, coloured; any other line as it is. */
function inline(text) {
	if (text.length > LONGEST_LINE) return [string(text)];
	if (!/^\s*[[{]/.test(text)) return [text];
	const pieces = [];
	let place = 0;
	for (const found of text.matchAll(TOKEN)) {
		pieces.push(text.slice(place, found.index));
		place = found.index + found[0].length;
		const [, quoted, colon, digits, word] = found;
		if (quoted !== void 0 && colon !== void 0) pieces.push(element("span", { class: "key" }, quoted), colon);
		else if (quoted !== void 0) pieces.push(string(quoted));
		else if (digits !== void 0) pieces.push(element("span", { class: "number" }, digits));
		else if (word !== void 0) pieces.push(element("span", { class: "word" }, word));
	}
	pieces.push(text.slice(place));
	return pieces;
}
//#endregion
//#region src/chat/windows.ts
var OWN = /* @__PURE__ */ new Set(["markdown", "json"]);
/** A message in the format of a provider's API, with its losses. */
async function showAs(path, part, state) {
	const body = element("pre", { tabindex: 0 });
	const losses = element("ul", { class: "losses" });
	const pick = element("select", {}, ...state.formats.filter((name) => !OWN.has(name)).map((name) => element("option", {}, name)));
	const load = attempt(async () => {
		const shown = await call("GET", `${path}/show?${new URLSearchParams({
			part,
			format: pick.value
		})}`);
		body.textContent = shown.content;
		const rows = shown.losses.map((one) => element("li", {}, element("b", {}, one.severity), ` ${one.path}: ${one.what} (${one.why})`));
		losses.replaceChildren(...rows.length ? rows : [element("li", {}, "nothing is lost")]);
	});
	pick.addEventListener("change", () => void load());
	const heading = element("h3", {}, "Losses in this format");
	await Promise.all([load(), show("Show as…", element("label", {}, "Format ", pick), body, heading, losses)]);
}
/** A message as sent, as the model's provider got it, and the losses in between. */
async function showTranslation(one) {
	if (one.problem) {
		await show(`@${one.model}`, element("p", { class: "problem" }, one.problem));
		return;
	}
	const side = (title, text) => element("section", {
		class: "side",
		"aria-label": title
	}, element("h3", {}, title), view(text, title).element);
	const sides = element("div", { class: "translation-sides" }, side(`Sent: ${formatName(one.source)}`, one.sent), side(`@${one.model} got: ${formatName(one.target)}`, one.received));
	await show(`@${one.model}: ${formatName(one.source)} → ${formatName(one.target)}`, sides, element("h3", {}, "Losses"), lossList(one.losses, () => true));
}
async function exportAs(path, state) {
	const pick = element("select", {}, ...state.formats.map((name) => element("option", {}, name)));
	const address = () => `/_/api${path}/export?format=${encodeURIComponent(pick.value)}`;
	const save = element("a", {
		class: "button primary",
		download: "",
		href: address()
	}, "Download");
	pick.addEventListener("change", () => save.setAttribute("href", address()));
	await show("Export", element("label", {}, "Format ", pick), element("p", {}, save));
}
/** The model of each name, and options of all of them. */
async function chooseModels(state, changed) {
	const change = (path, body) => attempt(async () => changed(await call("PATCH", path, body())));
	const offered = element("datalist", { id: "offered" });
	await Promise.all([offer(offered), show("Models and options", ...state.models.map((one) => modelRow(one.name, one.model, one.window, change)), addRow(change), offered, ...options(state, change), element("h3", {}, "Tools"), toolList(state))]);
}
async function offer(list) {
	const names = await call("GET", "/chat/models").catch(() => []);
	list.replaceChildren(...names.map((name) => element("option", { value: name })));
}
function modelRow(name, model, window, change) {
	const box = element("input", {
		value: model,
		list: "offered",
		"aria-label": `Model of @${name}`
	});
	box.addEventListener("change", change(`/chat/models/${encodeURIComponent(name)}`, () => ({ model: box.value })));
	const about = element("span", { class: "about" }, `${window.toLocaleString()} tokens`);
	return element("label", { class: "model-row" }, element("b", {}, `@${name}`), box, about);
}
function addRow(change) {
	const name = element("input", {
		placeholder: "name",
		"aria-label": "Name of another model"
	});
	const model = element("input", {
		placeholder: "provider/model",
		list: "offered",
		"aria-label": "Another model"
	});
	const add = () => {
		if (!name.value || !model.value) return;
		change(`/chat/models/${encodeURIComponent(name.value.replace(/^@/, ""))}`, () => ({ model: model.value }))();
	};
	name.addEventListener("change", add);
	model.addEventListener("change", add);
	return element("div", { class: "model-row" }, name, model, element("span", { class: "about" }, "add a model"));
}
function options(state, change) {
	const share = element("input", {
		type: "checkbox",
		checked: state.share
	});
	share.addEventListener("change", change("/chat/options", () => ({ share: share.checked })));
	const names = [
		"",
		"all",
		...state.models.map((one) => one.name)
	];
	const label = (name) => name ? `@${name}` : "no model: stored as a memo";
	const [chosen = ""] = state.default;
	const row = (name) => element("option", {
		value: name,
		selected: name === chosen
	}, label(name));
	const pick = element("select", {}, ...names.map(row));
	pick.addEventListener("change", change("/chat/options", () => ({ default: pick.value ? [pick.value] : [] })));
	return [element("label", { class: "row" }, share, element("span", {}, "Models see each other’s answers")), element("label", {}, "A message without a mention goes to ", pick)];
}
function toolList(state) {
	const rows = state.tools.map((one) => {
		const about = ` ${one.description.split("\n")[0]} ${one.read_only ? "" : "(asks first)"}`;
		return element("li", {}, element("b", {}, one.name), about);
	});
	return element("ul", {}, ...rows.length ? rows : [element("li", {}, "none")]);
}
//#endregion
//#region src/chat/index.ts
var TRIES = [
	"@all What is the weather in Paris?",
	"6 * 7",
	"@all Save a note: tea at five"
];
var Chat = class {
	name = "chat";
	label = "Chat";
	keys = [
		["Alt+N", "New conversation"],
		["Enter", "Send"],
		["Tab", "Complete a mention"]
	];
	#state = {
		models: [],
		tools: [],
		share: false,
		default: [],
		formats: [],
		warning: ""
	};
	#shown = false;
	#session = new Session({
		snapshot: (snapshot) => this.#take(snapshot),
		said: ({ entry, models = [] }) => {
			this.#timeline.addEntry(entry, models);
			this.#sidebar.refresh();
		},
		answer_started: (answer) => this.#working(() => this.#timeline.started(answer)),
		activity: ({ answer, event }) => this.#timeline.with(answer, (card) => card.activity(event)),
		permission_asked: (question) => this.#timeline.addQuestion(question),
		permission_settled: ({ id }) => this.#timeline.settled(id),
		answer_ended: ({ answer, model, status, entries }) => {
			this.#working(() => this.#timeline.with(answer, (card) => card.finished(entries)));
			this.#announcer.textContent = `${model} ${status === "ok" ? "has answered" : "has not completed its answer"}.`;
		},
		turn_ended: () => this.#working(() => void this.#sidebar.refresh()),
		gauges: ({ gauges, title }) => {
			this.#composer.showModels(gauges);
			this.#entitle(title);
		},
		notice: ({ text, level }) => notice(text, level === "warning" ? "problem" : "info")
	}, (problem) => notice(problem.message, "problem"));
	#sidebar = new Sidebar({
		open: (id) => this.#open(id),
		shown: () => this.#session.id,
		named: (name) => this.#entitle(name)
	});
	#timeline = new Timeline$1(() => this.#state, {
		copy: (text) => copy(text, "Text"),
		retry: attempt((answer) => this.#session.call("POST", "/retry", { answer })),
		branch: attempt((entry) => this.#branch(entry)),
		showAs: attempt((part) => showAs(this.#session.path(), part, this.#state)),
		stop: (answer) => this.#stop(answer),
		permit: attempt((id, given) => this.#session.call("POST", `/permissions/${encodeURIComponent(id)}`, given)),
		edit: (entry) => this.#edit(entry)
	}, () => this.#welcome());
	#composer = new Composer(() => this.#state, {
		send: async (text, attachments, how) => await this.#send(text, attachments, how) ?? false,
		choose: attempt(async (model) => {
			this.#state = await call("PATCH", "/chat/options", { default: model ? [model] : [] });
			this.#composer.showModels();
		}),
		stop: () => this.#stop(),
		count: async (text) => this.#session.id ? this.#session.call("POST", "/gauges", { text }) : []
	});
	#announcer = element("div", {
		class: "sr",
		role: "log",
		"aria-live": "polite"
	});
	#title = element("h1", { id: "title" }, "New conversation");
	#ofConversation = [];
	async mount(root) {
		const talk = element("div", { class: "talk" }, element("header", { class: "bar" }, this.#sidebar.menu, this.#title, ...this.#actions()), this.#timeline.node, this.#composer.node, this.#announcer);
		root.append(this.#sidebar.node, talk);
		this.#timeline.node.addEventListener("click", () => this.#sidebar.close());
		this.#composer.files.listen(root, this.#composer.node);
		document.addEventListener("keydown", (event) => this.#pressed(event));
		this.#state = await call("GET", "/chat/state");
		if (this.#state.warning) notice(this.#state.warning, "problem");
	}
	/** Actions on the conversation; behind one button on a phone. */
	#actions() {
		const all = {
			rename: button("Rename", attempt(() => this.#rename()), { id: "rename" }),
			system: button("System", attempt(() => this.#system()), {
				id: "system",
				title: "System prompt"
			}),
			models: button("Models", () => void this.#models(), {
				id: "models",
				title: "Models and options"
			}),
			export: button("Export", attempt(() => exportAs(this.#session.path(), this.#state)), { id: "export" }),
			delete: button("Delete", attempt(() => this.#delete()), {
				id: "delete",
				class: "danger"
			})
		};
		this.#ofConversation = [
			all.rename,
			all.export,
			all.delete
		];
		const row = element("div", {
			class: "actions",
			id: "actions"
		}, ...Object.values(all));
		const attributes = {
			id: "more",
			"aria-label": "More",
			"aria-controls": "actions",
			"aria-expanded": "false"
		};
		const toggle = () => more.setAttribute("aria-expanded", String(row.classList.toggle("open")));
		const more = button("⋯", toggle, attributes);
		document.addEventListener("click", (event) => {
			if (event.target === more) return;
			row.classList.remove("open");
			more.setAttribute("aria-expanded", "false");
		});
		return [row, more];
	}
	enter(route) {
		this.#shown = true;
		const id = route.rest[0] ?? null;
		if (id === null && this.#session.id !== null) this.#open(this.#session.id);
		else this.#open(id);
	}
	leave() {
		this.#shown = false;
		this.#session.suspend();
		this.#composer.forget();
	}
	#pressed(event) {
		if (!this.#shown || isOpen()) return;
		if (event.key === "Escape" && this.#composer.isBusy) this.#stop();
		if (event.altKey && event.code === "KeyN") {
			event.preventDefault();
			this.#open(null);
		}
	}
	#open(id) {
		this.#composer.forget();
		this.#sidebar.close();
		this.#session.open(id);
		if (id === null) this.#composer.focus();
	}
	#take(snapshot) {
		this.#timeline.show(snapshot);
		this.#composer.showModels(snapshot.gauges);
		this.#entitle(snapshot.title);
		this.#working(() => void this.#sidebar.refresh());
	}
	#entitle(title) {
		this.#title.textContent = title;
		document.title = `${title} - dragoman`;
		for (const one of this.#ofConversation) one.disabled = this.#session.id === null;
	}
	#working(work) {
		work();
		const { busy } = this.#timeline;
		this.#composer.busy(busy);
		this.#timeline.node.setAttribute("aria-busy", String(busy));
	}
	#welcome() {
		const tries = TRIES.map((text) => button(text, () => this.#composer.write(text)));
		const names = this.#state.models.map((one) => `@${one.name}`).join(", ");
		const simulated = this.#state.models.some((one) => one.simulated) ? element("p", { class: "soft" }, element("span", { class: "simulated" }, "simulated"), " Simulators answer: no keys, no cost. Conversations with them are kept apart from real ones.") : null;
		return element("div", { class: "empty" }, element("p", {}, `Ask ${names}, or @all of them at once.`), simulated, ...tries);
	}
	#send = attempt(async (text, attachments, how) => {
		const unknown = how.memo ? null : unknownMention(text, this.#state.models.map((one) => one.name));
		if (unknown !== null) throw new Error(`There is no model named @${unknown}. Nothing was sent; there are ${this.#state.models.map((one) => `@${one.name}`).join(", ")} and @all.`);
		await this.#session.ensure();
		const { turn, translations = [] } = await this.#session.call("POST", "/messages", {
			text,
			attachments,
			...how
		});
		this.#timeline.translated(turn, translations, (one) => void showTranslation(one));
		this.#timeline.toEnd();
		return true;
	});
	#stop = attempt((answer) => this.#session.call("POST", "/stop", answer ? { answer } : {}));
	async #branch(entry) {
		const { id } = await call("POST", "/chat/conversations", {
			branch: this.#session.id,
			entry
		});
		this.#open(id);
		notice("This is a branch: the original conversation is unchanged.");
	}
	async #edit(entry) {
		const text = await askText("Edit and resend", "The conversation continues in a branch; this one stays unchanged.", textOf(entry));
		if (text === null) return;
		const { id } = await call("POST", "/chat/conversations", {
			branch: this.#session.id,
			entry: entry.id,
			before: true
		});
		this.#open(id);
		await this.#session.call("POST", "/messages", {
			text,
			attachments: attachmentsOf(entry)
		});
	}
	async #rename() {
		const name = await ask("Rename", "Name", this.#session.snapshot.name);
		if (name) await this.#session.call("PATCH", "", { name });
		await this.#sidebar.refresh();
	}
	async #system() {
		const text = await askText("System prompt", "Sent to every model before all messages.", this.#session.snapshot.system_prompt);
		if (text === null) return;
		await this.#session.ensure();
		await this.#session.call("PATCH", "", { system_prompt: text });
	}
	async #delete() {
		if (!await confirmAction(`Delete “${this.#title.textContent}”?`, "This cannot be undone.", "Delete")) return;
		const path = this.#session.path();
		this.#session.suspend();
		this.#composer.forget();
		await call("DELETE", path);
		this.#open(null);
	}
	async #models() {
		await chooseModels(this.#state, (state) => {
			this.#state = state;
			this.#composer.showModels();
		});
	}
};
function attachmentsOf(entry) {
	return (entry.content ?? []).flatMap((part) => {
		if (part.type !== "image" && part.type !== "document" && part.type !== "audio") return [];
		const data = part.data ?? base64(part.text ?? "");
		return [{
			name: part.title ?? "",
			media_type: part.media_type ?? "",
			data
		}];
	});
}
function base64(text) {
	return btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(""));
}
var chat = new Chat();
//#endregion
//#region src/keys/index.ts
var FIELDS = [
	[
		"name",
		"Name",
		"text",
		"who or what it is for"
	],
	[
		"models",
		"Models",
		"text",
		"all; or patterns, such as anthropic/* openai/gpt-5.6"
	],
	[
		"budget",
		"Budget in USD",
		"number",
		"no limit"
	],
	[
		"token_budget",
		"Budget in tokens",
		"number",
		"no limit"
	],
	[
		"requests_per_minute",
		"Requests per minute",
		"number",
		"no limit"
	],
	[
		"tokens_per_minute",
		"Tokens per minute",
		"number",
		"no limit"
	],
	[
		"concurrent",
		"Requests at a time",
		"number",
		"no limit"
	],
	[
		"days",
		"Days until it expires",
		"number",
		"never"
	]
];
var STATES$1 = {
	good: "active",
	revoked: "revoked",
	expired: "expired"
};
var KeysSection = class {
	name = "keys";
	label = "Keys";
	keys = [["n", "New key"]];
	#note = element("p", {
		class: "note",
		hidden: true
	});
	#create = button("New key", attempt(() => this.#new()), { class: "primary" });
	#list = element("div", {
		class: "facts-table",
		tabindex: 0,
		role: "region",
		"aria-label": "Keys"
	});
	#answer = null;
	#isShown = false;
	mount(root) {
		const head = element("div", { class: "row usage-tools" }, element("h1", {}, "Keys"), element("span", { class: "space" }), this.#create);
		const about = element("p", { class: "soft" }, "Clients log in to this gateway with a key. Each key has its own models, limits and budget, and sees its own requests and usage.");
		this.#create.disabled = true;
		root.append(element("div", { class: "keys-page" }, head, about, this.#note, this.#list));
		document.addEventListener("keydown", (event) => {
			if (this.#isShown && event.key === "n" && event.target === document.body && !this.#create.disabled) this.#create.click();
		});
	}
	enter() {
		this.#isShown = true;
		this.#load();
	}
	leave() {
		this.#isShown = false;
	}
	#load = attempt(async () => {
		const answer = await call("GET", "/keys");
		this.#answer = answer;
		this.#create.disabled = answer.refusal !== "";
		this.#note.hidden = answer.refusal === "";
		this.#note.textContent = answer.refusal;
		const none = element("p", { class: "soft" }, "There are no keys: everyone who can reach this gateway may use it.");
		this.#list.replaceChildren(...answer.keys.length > 0 ? [this.#table(answer.keys)] : answer.refusal ? [] : [none]);
	});
	#table(keys) {
		const head = element("tr", {}, ...[
			"Name",
			"State",
			"Models",
			"Limits",
			"Spent",
			"Expires",
			""
		].map((name) => element("th", { scope: "col" }, name || element("span", { class: "sr" }, "Actions"))));
		const rank = (one) => one.state === "good" ? 0 : 1;
		const rows = keys.toSorted((one, other) => rank(one) - rank(other) || one.name.localeCompare(other.name)).map((one) => this.#row(one));
		return element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
	}
	#row(key) {
		const actions = key.state !== "good" ? [] : [button("Replace", attempt(() => this.#rotate(key.name)), {
			class: "small",
			"aria-label": `Replace the key ${key.name}`
		}), button("Revoke", attempt(() => this.#revoke(key.name)), {
			class: "small danger",
			"aria-label": `Revoke the key ${key.name}`
		})];
		return element("tr", { class: `key-${key.state}` }, element("th", { scope: "row" }, key.name), element("td", {}, element("span", { class: `status ${key.state === "good" ? "good" : "bad"}` }, STATES$1[key.state])), element("td", {}, key.models.join(", ") || "all"), element("td", {}, limits(key) || "none"), element("td", {}, spent(key)), element("td", {}, key.expires === null ? "never" : (/* @__PURE__ */ new Date(key.expires * 1e3)).toISOString().slice(0, 10)), element("td", { class: "number" }, ...actions));
	}
	async #new() {
		const warning = this.#answer?.locks ? "This is the first key. From now on clients need one, and so does this page; a key sees its own requests only. To stay administrator, restart the gateway with DRAGOMAN_PAGE_PASSWORD set." : "";
		const inputs = FIELDS.map(([name, label, kind, hint]) => {
			return [
				name,
				kind,
				element("input", {
					...kind === "number" ? {
						type: "number",
						min: 0,
						step: "any"
					} : { type: "text" },
					name,
					placeholder: hint,
					autocomplete: "off"
				}),
				label
			];
		});
		const body = inputs.map(([, , input, label]) => element("label", {}, label, input));
		const made = await form("New key", [...warning ? [element("p", { class: "problem" }, warning)] : [], element("div", { class: "key-form" }, ...body)], "Create", async () => {
			const wanted = {};
			for (const [name, kind, input] of inputs) {
				const value = input.value.trim();
				if (name === "models") wanted[name] = value.split(/[\s,]+/).filter((one) => one !== "");
				else if (value !== "") wanted[name] = kind === "number" ? Number(value) : value;
			}
			if (wanted["name"] === void 0) throw new Error("A key needs a name.");
			return call("POST", "/keys", wanted);
		});
		if (made === null) return;
		await this.#once(made);
		await this.#load();
	}
	/** Shows the key once: the gateway keeps only a digest. */
	async #once({ name, key }) {
		const box = element("div", { class: "client" }, element("code", { class: "the-key" }, key), button("Copy", () => void copy(key, "Key"), { class: "small" }));
		const words = element("p", {}, "Copy it now: it is not shown again. The gateway keeps only a digest of it.");
		await show(`The key “${name}”`, words, box);
	}
	async #rotate(name) {
		if (!await confirmAction(`Replace the key “${name}”?`, "The old one stops working at once. Limits, budget and usage stay.", "Replace")) return;
		await this.#once(await call("POST", `/keys/${encodeURIComponent(name)}/rotate`));
		await this.#load();
	}
	async #revoke(name) {
		if (!await confirmAction(`Revoke the key “${name}”?`, "Clients that use it are refused at once. This cannot be undone.", "Revoke")) return;
		await call("POST", `/keys/${encodeURIComponent(name)}/revoke`);
		await this.#load();
	}
};
function limits(key) {
	return [
		[key.requests_per_minute, "requests/min"],
		[key.tokens_per_minute, "tokens/min"],
		[key.concurrent, "at a time"]
	].flatMap(([limit, words]) => limit === null ? [] : [`${amount(limit)} ${words}`]).join(", ");
}
function spent(key) {
	const cost = key.budget === null ? money(key.spent) : `${money(key.spent)} of ${money(key.budget)} (${percent(key.spent, key.budget)})`;
	return key.token_budget == null ? cost : `${cost}, ${amount(key.spent_tokens ?? 0)} of ${amount(key.token_budget)} tokens`;
}
var keys = new KeysSection();
//#endregion
//#region src/charts.ts
var SVG$1 = "http://www.w3.org/2000/svg";
var WIDTH$1 = 100;
var HEIGHT = 40;
function shape(name, attributes) {
	const made = document.createElementNS(SVG$1, name);
	for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
	return made;
}
var Chart = class {
	element;
	#label;
	#value = element("span", { class: "value" });
	#about = element("span", { class: "about" });
	#plot;
	#tip = element("span", {
		class: "tip",
		role: "status"
	});
	#cursor = element("span", {
		class: "cursor",
		hidden: true
	});
	#drawn = null;
	#place = null;
	constructor(label, look = "") {
		this.#label = label;
		this.#plot = element("div", {
			class: "plot",
			tabindex: 0,
			role: "img"
		});
		const head = element("figcaption", {}, element("span", { class: "label" }, label), this.#value, this.#about);
		this.element = element("figure", { class: `small-chart ${look}` }, head, this.#plot, this.#tip);
		this.#plot.addEventListener("pointermove", (event) => this.#point(this.#placeAt(event)));
		this.#plot.addEventListener("pointerleave", () => this.#point(null));
		this.#plot.addEventListener("blur", () => this.#point(null));
		this.#plot.addEventListener("keydown", (event) => this.#pressed(event));
	}
	get #length() {
		return Math.max(0, ...(this.#drawn?.series ?? []).map((one) => one.values.length));
	}
	#placeAt(event) {
		const { left, width } = this.#plot.getBoundingClientRect();
		return Math.max(0, Math.min(this.#length - 1, Math.floor((event.clientX - left) / Math.max(1, width) * this.#length)));
	}
	#pressed(event) {
		const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
		if (step === 0 || this.#length === 0) return;
		event.preventDefault();
		event.stopPropagation();
		this.#point(Math.max(0, Math.min(this.#length - 1, (this.#place ?? this.#length - (step < 0 ? 0 : 1)) + step)));
	}
	#point(place) {
		const drawn = this.#drawn;
		this.#place = drawn === null || drawn.none !== void 0 || this.#length === 0 ? null : place;
		this.#cursor.hidden = this.#place === null;
		this.#tip.textContent = this.#place === null || drawn === null ? "" : drawn.tip(this.#place);
		if (this.#place === null) return;
		const share = (this.#place + .5) / this.#length;
		this.#cursor.style.left = `${share * 100}%`;
		this.#tip.classList.toggle("right", share > .5);
	}
	show(drawn) {
		this.#drawn = drawn;
		this.#value.textContent = drawn.value;
		this.#about.textContent = drawn.about ?? "";
		this.#plot.setAttribute("aria-label", `${this.#label}: ${drawn.value}${drawn.about ? `, ${drawn.about}` : ""}. Arrow keys read the chart.`);
		if (drawn.none !== void 0) this.#plot.replaceChildren(element("span", { class: "none" }, drawn.none));
		else this.#plot.replaceChildren(draw(drawn.series), this.#cursor);
		this.#point(this.#place);
	}
};
function draw(series) {
	const svg = shape("svg", {
		viewBox: `0 0 ${WIDTH$1} ${HEIGHT}`,
		preserveAspectRatio: "none",
		"aria-hidden": "true"
	});
	const stacks = [];
	for (const one of series) if (one.kind === "bar") one.values.forEach((value, place) => stacks[place] = (stacks[place] ?? 0) + (value ?? 0));
	const lines = series.filter((one) => one.kind === "line").flatMap((one) => one.values.filter((value) => value !== null));
	const most = Math.max(...stacks, ...lines, Number.MIN_VALUE);
	svg.append(shape("line", {
		class: "base",
		x1: 0,
		x2: WIDTH$1,
		y1: 39.5,
		y2: 39.5
	}));
	const below = stacks.map(() => 0);
	for (const one of series) if (one.kind === "bar") bars(svg, one, below, most);
	else line(svg, one, most);
	return svg;
}
function bars(svg, one, below, most) {
	const width = WIDTH$1 / one.values.length;
	one.values.forEach((value, place) => {
		if (!value) return;
		const height = Math.max(1.5, value / most * 38);
		const floor = below[place] ?? 0;
		below[place] = floor + height;
		svg.append(shape("rect", {
			class: one.look,
			x: place * width + width * .12,
			width: width * .76,
			y: HEIGHT - floor - height,
			height,
			rx: .5
		}));
	});
}
/** A point alone is a dash: a line needs two. */
function line(svg, one, most) {
	const width = WIDTH$1 / one.values.length;
	const at = (place, value) => `${((place + .5) * width).toFixed(2)},${(38.5 - value / most * 36).toFixed(2)}`;
	const known = one.values.flatMap((value, place) => value === null ? [] : [[place, value]]);
	const [first] = known;
	if (first === void 0) return;
	if (known.length > 1) {
		svg.append(shape("polyline", {
			class: one.look,
			points: known.map(([place, value]) => at(place, value)).join(" ")
		}));
		return;
	}
	const [x, y] = at(...first).split(",").map(Number);
	svg.append(shape("polyline", {
		class: one.look,
		points: `${x - width / 2},${y} ${x + width / 2},${y}`
	}));
}
//#endregion
//#region src/live/feed.ts
var MOST$2 = 1e3;
var Feed = class {
	#known = /* @__PURE__ */ new Map();
	#waiting = /* @__PURE__ */ new Map();
	#words = [];
	#only = {};
	#order = NEWEST;
	#isPaused = false;
	#rows = null;
	/** The server's full list, also after reconnecting. */
	replace(summaries) {
		this.#waiting.clear();
		this.#known = new Map(summaries.toReversed().map((one) => [one.id, one]));
		this.#rows = null;
	}
	change(summaries) {
		for (const one of summaries) (this.#isPaused && !this.#known.has(one.id) ? this.#waiting : this.#known).set(one.id, one);
		trim(this.#known);
		trim(this.#waiting);
		this.#rows = null;
	}
	get isPaused() {
		return this.#isPaused;
	}
	pause(isPaused) {
		this.#isPaused = isPaused;
		if (isPaused) return;
		for (const [id, one] of this.#waiting) this.#known.set(id, one);
		this.#waiting.clear();
		trim(this.#known);
		this.#rows = null;
	}
	get waiting() {
		return this.#waiting.size;
	}
	filter(text) {
		this.#words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
		this.#rows = null;
	}
	/** Requests of one model, key or outcome; omitted fields match all. */
	only(only) {
		this.#only = only;
		this.#rows = null;
	}
	sort(order) {
		this.#order = order;
		this.#rows = null;
	}
	get order() {
		return this.#order;
	}
	get rows() {
		this.#rows ??= sorted([...this.#known.values()].reverse().filter((one) => fits(one, this.#words) && isAmong(one, this.#only)), this.#order);
		return this.#rows;
	}
	/** The available choices. */
	get choices() {
		const models = /* @__PURE__ */ new Set();
		const keys = /* @__PURE__ */ new Set();
		for (const one of this.#known.values()) {
			if (one.model) models.add(one.model);
			if (one.key) keys.add(one.key);
		}
		return {
			models: [...models].sort(),
			keys: [...keys].sort()
		};
	}
	get size() {
		return this.#known.size;
	}
	find(id) {
		return this.#known.get(id);
	}
	get counts() {
		let underWay = 0;
		let failed = 0;
		for (const one of this.#known.values()) {
			if (one.phase !== "ended") underWay += 1;
			if (hasFailed(one)) failed += 1;
		}
		return {
			all: this.#known.size,
			underWay,
			failed
		};
	}
};
var NEWEST = {
	by: "at",
	isDescending: true
};
var VALUES = {
	at: (one) => one.at,
	status: (one) => one.phase === "ended" ? one.status : 0,
	pair: (one) => `${one.client} ${one.format ?? ""}`,
	model: (one) => one.model,
	key: (one) => one.key,
	tokens: (one) => one.tokens && one.tokens.input + one.tokens.output,
	cost: (one) => one.cost,
	first: (one) => one.first_byte,
	duration: (one) => one.duration,
	lost: (one) => one.losses ?? 0
};
/** Missing values are last in either direction; equal ones are sorted newest first. */
function sorted(rows, { by, isDescending }) {
	const value = VALUES[by];
	const sign = isDescending ? -1 : 1;
	return rows.toSorted((one, other) => {
		const [left, right] = [value(one), value(other)];
		if (left === right) return other.at - one.at;
		if (left === void 0 || left === "") return 1;
		if (right === void 0 || right === "") return -1;
		return left < right ? -sign : sign;
	});
}
var OUTCOMES$1 = {
	good: (one) => one.phase === "ended" && !hasFailed(one),
	failed: (one) => hasFailed(one),
	running: (one) => one.phase !== "ended",
	lossy: (one) => Boolean(one.losses)
};
function isAmong(one, { outcome, model, key }) {
	return (outcome === void 0 || OUTCOMES$1[outcome](one)) && (model === void 0 || one.model === model) && (key === void 0 || one.key === key);
}
var hasFailed = (one) => one.failure !== void 0 && one.failure !== "";
function trim(known) {
	for (const id of known.keys()) {
		if (known.size <= MOST$2) break;
		known.delete(id);
	}
}
/** All words must match; `error`, `loss` and `stream` match requests that have one. */
function fits(one, words) {
	if (words.length === 0) return true;
	const text = [
		one.id,
		one.client,
		one.format,
		formatName(one.client),
		formatName(one.format ?? ""),
		one.model,
		one.target,
		one.upstream,
		one.key,
		one.status,
		one.failure,
		one.error,
		one.operation,
		hasFailed(one) ? "error failed" : "",
		one.losses ? "loss losses" : "",
		one.stream ? "stream" : "",
		one.phase
	].join(" ").toLowerCase();
	return words.every((word) => text.includes(word));
}
//#endregion
//#region src/live/measures.ts
var STEPS = [
	1,
	2,
	5,
	10,
	30,
	60,
	120,
	300,
	600,
	1800,
	3600,
	7200,
	21600
].map((seconds) => seconds * 1e3);
var MOST$1 = 36;
var LEAST$1 = 24;
/** The value below which this share of the numbers is; they need not be sorted. */
function percentile(numbers, share) {
	if (numbers.length === 0) return null;
	const sorted = numbers.toSorted((one, other) => one - other);
	return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? null;
}
function bucket(at, rows) {
	const durations = rows.flatMap((one) => one.phase === "ended" && one.duration !== void 0 && !hasFailed(one) ? [one.duration] : []);
	const looked = rows.filter((one) => one.cache === "hit" || one.cache === "miss");
	return {
		at,
		requests: rows.length,
		failed: rows.filter(hasFailed).length,
		p50: percentile(durations, .5),
		p95: percentile(durations, .95),
		cost: rows.reduce((sum, one) => sum + (one.cost ?? 0), 0),
		hits: looked.filter((one) => one.cache === "hit").length,
		looked: looked.length
	};
}
/** In as many equal steps as a small chart can show, the last of which is now. */
function measures(rows, now) {
	const oldest = rows.reduce((least, one) => Math.min(least, one.at), now);
	const step = STEPS.find((one) => (now - oldest) / one <= 35) ?? Math.ceil((now - oldest) / 35);
	const last = Math.floor(now / step);
	const first = Math.max(last - MOST$1 + 1, Math.min(Math.floor(oldest / step) - 1, last - LEAST$1 + 1));
	const sorted = /* @__PURE__ */ new Map();
	for (const one of rows) {
		const place = Math.min(last, Math.floor(one.at / step));
		const group = sorted.get(place);
		if (group === void 0) sorted.set(place, [one]);
		else group.push(one);
	}
	return {
		step,
		buckets: Array.from({ length: last - first + 1 }, (_, place) => bucket((first + place) * step, sorted.get(first + place) ?? [])),
		whole: bucket(oldest, rows)
	};
}
//#endregion
//#region src/live/charts.ts
var EVERY$3 = 1e3;
var Charts = class {
	element;
	#charts = {
		requests: new Chart("Requests"),
		errors: new Chart("Errors"),
		latency: new Chart("Latency"),
		cost: new Chart("Cost"),
		cache: new Chart("Cache hits")
	};
	#rows;
	#timer;
	constructor(rows) {
		this.#rows = rows;
		const all = Object.values(this.#charts).map((one) => one.element);
		this.element = element("section", {
			class: "charts",
			"aria-label": "Charts"
		}, ...all);
	}
	start() {
		this.stop();
		this.draw();
		this.#timer = setInterval(() => this.draw(), EVERY$3);
	}
	stop() {
		clearInterval(this.#timer);
	}
	draw() {
		const rows = this.#rows();
		this.element.hidden = rows.length === 0;
		if (rows.length === 0) return;
		const found = measures(rows, Date.now());
		this.#charts.requests.show(requests(found));
		this.#charts.errors.show(errors(found));
		this.#charts.latency.show(latency(found));
		this.#charts.cost.show(cost(found));
		this.#charts.cache.show(cache(found));
	}
};
function tip({ buckets }, words) {
	return (place) => {
		const found = buckets[place];
		return found === void 0 ? "" : `${clock(found.at)}  ${words(found)}`;
	};
}
/** The time of each bar, such as `10 s`. */
var each = ({ step }) => `each bar ${step < 6e4 ? `${step / 1e3} s` : step < 36e5 ? `${step / 6e4} min` : `${step / 36e5} h`}`;
function requests(found) {
	return {
		value: found.whole.requests.toLocaleString("en"),
		about: each(found),
		series: [{
			kind: "bar",
			look: "good",
			values: found.buckets.map((one) => one.requests - one.failed)
		}, {
			kind: "bar",
			look: "bad",
			values: found.buckets.map((one) => one.failed)
		}],
		tip: tip(found, (one) => `${counted(one.requests, "request")}${one.failed ? `, ${one.failed} failed` : ""}`)
	};
}
function errors(found) {
	const { failed, requests: all } = found.whole;
	return {
		value: percent(failed, all),
		about: failed ? `${failed} of ${all}` : "none failed",
		series: [{
			kind: "bar",
			look: "bad",
			values: found.buckets.map((one) => one.requests ? one.failed / one.requests : 0)
		}],
		tip: tip(found, (one) => `${percent(one.failed, one.requests)} (${one.failed} of ${one.requests})`)
	};
}
function latency(found) {
	const { p50, p95 } = found.whole;
	return {
		value: p50 === null ? "–" : duration(p50),
		about: p95 === null ? "" : `median · p95 ${duration(p95)}`,
		series: [{
			kind: "line",
			look: "p95",
			values: found.buckets.map((one) => one.p95)
		}, {
			kind: "line",
			look: "p50",
			values: found.buckets.map((one) => one.p50)
		}],
		tip: tip(found, (one) => one.p50 === null ? "nothing answered" : `median ${duration(one.p50)}, p95 ${duration(one.p95 ?? 0)}`),
		none: p50 === null ? "nothing answered yet" : void 0
	};
}
function cost(found) {
	return {
		value: money(found.whole.cost),
		about: found.whole.requests ? `${money(found.whole.cost / found.whole.requests)} each` : "",
		series: [{
			kind: "bar",
			look: "spent",
			values: found.buckets.map((one) => one.cost)
		}],
		tip: tip(found, (one) => money(one.cost)),
		none: found.whole.cost === 0 ? "no prices known" : void 0
	};
}
function cache(found) {
	const { hits, looked } = found.whole;
	return {
		value: looked ? percent(hits, looked) : "–",
		about: looked ? `${hits} of ${looked}` : "",
		series: [{
			kind: "bar",
			look: "hit",
			values: found.buckets.map((one) => one.looked ? one.hits / one.looked : 0)
		}],
		tip: tip(found, (one) => `${percent(one.hits, one.looked)} (${one.hits} of ${one.looked})`),
		none: looked ? void 0 : "the cache is off"
	};
}
//#endregion
//#region src/live/connections.ts
var EVERY$2 = 5e3;
var SOON = 400;
var Connections = class {
	element = element("div", {
		class: "connected",
		role: "group",
		"aria-label": "Connections"
	});
	#known = null;
	#found;
	#timer;
	#waiting;
	/** `found` is called with the client settings when they change. */
	constructor(found) {
		this.#found = found;
	}
	start() {
		clearInterval(this.#timer);
		this.#ask();
		this.#timer = setInterval(() => void this.#ask(), EVERY$2);
	}
	stop() {
		clearInterval(this.#timer);
	}
	/** Called after events that may change the state. */
	soon() {
		this.#waiting ??= setTimeout(() => {
			this.#waiting = void 0;
			this.#ask();
		}, SOON);
	}
	async #ask() {
		try {
			const connected = await call("GET", "/live/connected");
			const before = this.#known;
			if (isSame(connected, before)) return;
			this.#known = connected;
			this.#draw(connected);
			if (!isSame(connected.clients, before?.clients)) this.#found(connected.clients);
		} catch {}
	}
	#draw(connected) {
		const chips = connected.connections.map(chip);
		const none = chips.length === 0 ? element("span", { class: "soft" }, "No provider is connected. Store a key: dragoman keys set PROVIDER, or set a variable such as ANTHROPIC_API_KEY") : null;
		const simulated = connected.connections.filter((one) => one.is_simulated).length;
		const label = `${simulated === connected.connections.length ? "simulated" : `${simulated} simulated`}, free`;
		const note = simulated ? element("span", {
			class: "simulated",
			title: "Simulators on this machine answer without keys. Costs are what the real models would cost. To use those, store a key: dragoman keys set PROVIDER"
		}, label) : null;
		const details = button("Details", () => void this.#details(), { class: "small" });
		const providers = element("span", {
			class: "chips",
			tabindex: 0,
			role: "group",
			"aria-label": "Providers"
		}, none, ...chips);
		this.element.replaceChildren(providers, element("span", { class: "row" }, note, details));
	}
	async #details() {
		const connected = this.#known;
		if (connected === null) return;
		await show("Connections", connectionTable(connected.connections), ...routeTable(connected), clients(connected.clients));
	}
};
var isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);
/** The worst of all its keys. */
function state(connection) {
	const states = (connection.upstreams ?? []).map((one) => one.breaker);
	return [
		"open",
		"half-open",
		"closed"
	].find((one) => states.includes(one)) ?? "unused";
}
var STATES = {
	open: "paused after failures",
	"half-open": "being tried again",
	closed: "available",
	unused: "not used yet"
};
function chip(connection) {
	const found = state(connection);
	const busy = (connection.upstreams ?? []).reduce((sum, one) => sum + one.in_flight, 0);
	return element("span", {
		class: "upstream",
		"data-state": found,
		title: `${connection.name}: ${formatName(connection.format)}, ${STATES[found]}${connection.is_simulated ? ", simulated" : ""}`
	}, element("span", { class: "sr" }, `${STATES[found]}: `), connection.name, busy ? element("span", { class: "busy" }, String(busy)) : null);
}
function connectionTable(connections) {
	return table$1([
		"Provider",
		"Format",
		"Key",
		"Health",
		"Models"
	], connections.map((one) => [
		one.name,
		formatChip(one.format),
		one.is_simulated ? "simulated" : (one.keys ?? []).join(", ") || "none",
		STATES[state(one)] ?? "",
		(one.models ?? []).join(", ")
	]));
}
function routeTable({ routes }) {
	if (routes.length === 0) return [];
	const settings = (route) => Object.entries(route.settings ?? {}).map(([name, value]) => `${name} ${JSON.stringify(value)}`).join(", ");
	const rows = routes.map((one) => [
		one.name,
		one.to.join(", "),
		(one.fallback ?? []).join(", "),
		settings(one)
	]);
	return [element("h3", {}, "Routes"), table$1([
		"Route",
		"To",
		"Fallback",
		"Settings"
	], rows)];
}
/** The first cell of a row is its name. */
function table$1(columns, rows) {
	const head = element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name)));
	const body = rows.map(([name = "", ...rest]) => element("tr", {}, element("th", { scope: "row" }, name), ...rest.map((cell) => element("td", {}, cell))));
	return element("div", { class: "facts-table" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...body)));
}
/** Settings for clients, one client at a time. */
function clients(known) {
	const shown = element("div", {
		class: "client",
		"aria-live": "polite"
	});
	const names = known.map((one) => button(one.name, () => choose(one), { class: "pick" }));
	const choose = (one) => {
		names.forEach((name, place) => name.setAttribute("aria-pressed", String(known[place] === one)));
		const again = button("Copy", () => void copy(one.lines, one.name), {
			class: "small",
			"aria-label": `Copy: ${one.name}`
		});
		shown.replaceChildren(element("code", {}, one.lines), again);
	};
	const [first] = known;
	if (first !== void 0) choose(first);
	return element("div", { class: "clients" }, element("h3", {}, "Point a client here"), element("div", { class: "picks" }, ...names), shown);
}
//#endregion
//#region src/live/filters.ts
var COLUMNS = [
	[
		"at",
		"time",
		"Time"
	],
	[
		"status",
		"status-column",
		"Status"
	],
	[
		"pair",
		"pair",
		"Client → upstream"
	],
	[
		"model",
		"model",
		"Model"
	],
	[
		"key",
		"key",
		"Key"
	],
	[
		"tokens",
		"tokens",
		"Tokens"
	],
	[
		"cost",
		"cost",
		"Cost"
	],
	[
		"first",
		"first",
		"First byte"
	],
	[
		"duration",
		"duration",
		"Latency"
	],
	[
		"lost",
		"lost",
		"Lost"
	]
];
var UPWARDS = /* @__PURE__ */ new Set([
	"pair",
	"model",
	"key"
]);
var OUTCOMES = [
	["good", "Answered"],
	["failed", "Failed"],
	["running", "In progress"],
	["lossy", "With losses"]
];
var direction = ({ by, isDescending }) => {
	if (by === "at") return isDescending ? "newest first" : "oldest first";
	if (UPWARDS.has(by)) return isDescending ? "from Z to A" : "from A to Z";
	return isDescending ? "largest first" : "smallest first";
};
/** The heads of the columns: pressing one sorts by it, pressing it again the other way. */
var Headings = class {
	element = element("div", {
		class: "columns",
		role: "group",
		"aria-label": "Sort by"
	});
	#feed;
	#buttons;
	constructor(feed, changed) {
		this.#feed = feed;
		this.#buttons = COLUMNS.map(([by, name, label]) => {
			const press = () => {
				const { order } = feed;
				feed.sort({
					by,
					isDescending: order.by === by ? !order.isDescending : !UPWARDS.has(by)
				});
				changed();
			};
			return button(label, press, { class: name });
		});
		this.element.append(...this.#buttons);
		this.show();
	}
	show() {
		const { order } = this.#feed;
		COLUMNS.forEach(([by, , label], place) => {
			const found = this.#buttons[place];
			const isIt = order.by === by;
			found?.setAttribute("aria-pressed", String(isIt));
			found?.setAttribute("title", isIt ? `Sorted by ${label.toLowerCase()}, ${direction(order)}` : `Sort by ${label.toLowerCase()}`);
			if (found !== void 0) found.dataset["order"] = isIt ? order.isDescending ? "down" : "up" : "";
		});
	}
};
/** Filters by outcome, model and key; and on a phone, without column headers, the sort order. */
var Filters = class {
	elements;
	#feed;
	#outcome = choice$1("Outcome", "Any outcome", OUTCOMES);
	#model = choice$1("Model", "Any model");
	#key = choice$1("Key", "Any key");
	#order = choice$1("Order", "", COLUMNS.map(([by, , label]) => [by, `By ${label.toLowerCase()}`]));
	#offered = "";
	constructor(feed, changed) {
		this.#feed = feed;
		this.elements = [
			this.#outcome,
			this.#model,
			this.#key,
			this.#order
		];
		this.#order.classList.add("order");
		const apply = () => {
			feed.only({
				outcome: this.#outcome.value || void 0,
				model: this.#model.value || void 0,
				key: this.#key.value || void 0
			});
			changed();
		};
		for (const one of [
			this.#outcome,
			this.#model,
			this.#key
		]) one.addEventListener("change", apply);
		this.#order.addEventListener("change", () => {
			const by = this.#order.value;
			feed.sort({
				by,
				isDescending: !UPWARDS.has(by)
			});
			changed();
		});
	}
	/** Offers the values seen so far. */
	offer() {
		const { models, keys } = this.#feed.choices;
		const offered = JSON.stringify([models, keys]);
		this.#order.value = this.#feed.order.by;
		if (offered === this.#offered) return;
		this.#offered = offered;
		refill(this.#model, models);
		refill(this.#key, keys);
		this.#model.hidden = models.length < 2;
		this.#key.hidden = keys.length === 0;
	}
	reset() {
		for (const one of [
			this.#outcome,
			this.#model,
			this.#key
		]) one.value = "";
		this.#feed.only({});
		this.#feed.sort(NEWEST);
	}
};
function choice$1(label, any, options = []) {
	const first = any === "" ? [] : [element("option", { value: "" }, any)];
	return element("select", {
		class: "choice",
		"aria-label": label
	}, ...first, ...options.map(([value, words]) => element("option", { value }, words)));
}
function refill(select, values) {
	const chosen = select.value;
	const [first] = select.options;
	select.replaceChildren(...first === void 0 ? [] : [first], ...values.map((value) => element("option", { value }, value)));
	select.value = values.includes(chosen) ? chosen : "";
}
//#endregion
//#region src/live/list.ts
var ROW = 38;
var TALL = 58;
var NARROW = 672;
var AROUND = 8;
var List = class {
	element;
	#inner = element("div", {
		class: "inner",
		role: "presentation"
	});
	#open;
	#rows = [];
	#shown = /* @__PURE__ */ new Map();
	#cursor = null;
	#isDue = false;
	#height = ROW;
	constructor(open) {
		this.#open = open;
		this.element = element("div", {
			class: "rows",
			role: "listbox",
			tabindex: 0,
			"aria-label": "Requests, newest first"
		}, this.#inner);
		this.element.addEventListener("scroll", () => this.#soon());
		this.element.addEventListener("click", (event) => this.#clicked(event));
		new ResizeObserver(() => this.#resized()).observe(this.element);
	}
	show(rows) {
		const before = this.#rows;
		this.#rows = rows;
		const first = before[Math.floor(this.element.scrollTop / this.#height)];
		if (this.element.scrollTop >= this.#height && first !== void 0) {
			const moved = rows.findIndex((one) => one.id === first.id) - before.indexOf(first);
			if (moved > 0) this.element.scrollTop += moved * this.#height;
		}
		this.#soon();
	}
	#resized() {
		const height = this.element.clientWidth <= NARROW ? TALL : ROW;
		if (height !== this.#height) {
			const first = this.element.scrollTop / this.#height;
			this.#height = height;
			for (const row of this.#shown.values()) row.place = -1;
			this.element.scrollTop = first * height;
		}
		this.#soon();
	}
	get cursor() {
		return this.#cursor;
	}
	point(id) {
		this.#cursor = id;
		const place = this.#rows.findIndex((one) => one.id === id);
		if (place >= 0) {
			const top = place * this.#height;
			if (top < this.element.scrollTop) this.element.scrollTop = top;
			else if (top + this.#height > this.element.scrollTop + this.element.clientHeight) this.element.scrollTop = top + this.#height - this.element.clientHeight;
		}
		this.#soon();
	}
	/** The id so many rows further, or the end of the list. */
	neighbour(steps) {
		const place = this.#rows.findIndex((one) => one.id === this.#cursor);
		const next = place < 0 ? 0 : Math.max(0, Math.min(this.#rows.length - 1, place + steps));
		return this.#rows[next]?.id ?? null;
	}
	#clicked(event) {
		const id = (event.target instanceof Element ? event.target.closest(".request") : null)?.dataset["id"];
		if (id !== void 0) this.#open(id);
	}
	#soon() {
		if (this.#isDue) return;
		this.#isDue = true;
		requestAnimationFrame(() => {
			this.#isDue = false;
			this.#draw();
		});
	}
	#made(summary) {
		const { id } = summary;
		const row = element("div", {
			class: "request",
			role: "option",
			id: `row-${id}`,
			"data-id": id,
			"aria-selected": "false"
		});
		fill(row, summary);
		this.#inner.append(row);
		return {
			element: row,
			summary,
			place: -1,
			total: -1,
			isChosen: false
		};
	}
	/** Updates only what changed. */
	#put(row, place) {
		const [total, isChosen] = [this.#rows.length, row.summary.id === this.#cursor];
		if (row.place !== place) {
			row.element.style.transform = `translateY(${place * this.#height}px)`;
			row.element.setAttribute("aria-posinset", String(place + 1));
		}
		if (row.total !== total) row.element.setAttribute("aria-setsize", String(total));
		if (row.isChosen !== isChosen) row.element.setAttribute("aria-selected", String(isChosen));
		Object.assign(row, {
			place,
			total,
			isChosen
		});
	}
	#draw() {
		const first = Math.max(0, Math.floor(this.element.scrollTop / this.#height) - AROUND);
		const last = Math.min(this.#rows.length, Math.ceil((this.element.scrollTop + this.element.clientHeight) / this.#height) + AROUND);
		const shown = /* @__PURE__ */ new Map();
		for (let place = first; place < last; place += 1) {
			const summary = this.#rows[place];
			if (summary === void 0) continue;
			const row = this.#shown.get(summary.id) ?? this.#made(summary);
			if (row.summary !== summary) fill(row.element, row.summary = summary);
			this.#put(row, place);
			shown.set(summary.id, row);
		}
		for (const [id, row] of this.#shown) if (!shown.has(id)) row.element.remove();
		this.#shown = shown;
		this.#inner.style.height = `${this.#rows.length * this.#height}px`;
		if (this.#cursor !== null && shown.has(this.#cursor)) this.element.setAttribute("aria-activedescendant", `row-${this.#cursor}`);
		else this.element.removeAttribute("aria-activedescendant");
	}
};
/** Reuses the row's element, so that a click in progress is not lost. */
function fill(row, summary) {
	const { tokens } = summary;
	row.dataset["phase"] = summary.phase;
	row.dataset["new"] = String(Date.now() - summary.at < 2e3);
	row.classList.toggle("has-failed", hasFailed(summary));
	row.replaceChildren(element("span", { class: "time" }, clock(summary.at)), badge(summary), element("span", { class: "pair" }, ...pair(summary)), element("span", { class: "model" }, element("span", { class: "name" }, summary.model ?? ""), ...marks(summary), errorOf(summary)), cell("key", summary.key ?? "", " key"), cell("tokens", tokens ? `${amount(tokens.input)} → ${amount(tokens.output)}` : "", " tokens"), cell("cost", money(summary.cost), " cost"), cell("first", duration(summary.first_byte), " to the first byte"), cell("duration", duration(summary.duration), " in all"), cell("lost", summary.losses ? element("span", { class: "tally" }, String(summary.losses)) : "", " lost"));
}
/** The reason of a failure, in the most visible column. */
function errorOf(summary) {
	if (!hasFailed(summary)) return null;
	const words = summary.error || summary.failure?.replaceAll("_", " ") || "";
	return element("span", {
		class: "error",
		title: words
	}, words);
}
/** The column header as text in the row, for screen readers. */
function cell(name, shown, meaning) {
	return element("span", { class: name }, shown, shown === "" ? null : element("span", { class: "sr" }, meaning));
}
/** Badges after the model. */
function marks({ stream, operation, attempts = 0, cache }) {
	return [
		stream === true && element("span", {
			class: "streams",
			title: "streamed"
		}, "≋"),
		operation === "count" && element("span", { class: "mark" }, "counts tokens"),
		attempts > 1 && element("span", { class: "mark" }, `${attempts} attempts`),
		cache === "hit" && element("span", { class: "mark cached" }, "cached")
	].filter((one) => one !== false);
}
/** The client's format, and the upstream's if there was one. */
function pair({ client, format }) {
	const upstream = format ? [element("span", { class: "arrow" }, "→"), formatChip(format)] : [];
	return [formatChip(client), ...upstream];
}
function badge(summary) {
	if (summary.phase !== "ended") return element("span", { class: "status busy" }, summary.phase === "begun" ? "asking" : "answering");
	return element("span", {
		class: `status ${hasFailed(summary) ? "bad" : "good"}`,
		title: summary.failure ?? ""
	}, String(summary.status ?? ""));
}
//#endregion
//#region src/playground/handoff.ts
var handed = null;
function openInPlayground(given) {
	handed = given;
	location.hash = address("playground");
}
/** Returns the body that was passed, once. */
function takeBody() {
	const given = handed;
	handed = null;
	return given;
}
//#endregion
//#region src/live/curl.ts
var HIDDEN = "[hidden]";
var LEFT_OUT = /* @__PURE__ */ new Set([
	"host",
	"content-length",
	"connection",
	"accept-encoding",
	"transfer-encoding",
	"user-agent",
	"accept",
	"content-encoding"
]);
var quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
function curl(opened, origin) {
	const { method, path, headers, body } = opened.client;
	const lines = [`curl -N -X ${method} ${quoted(origin + path.replaceAll(HIDDEN, "YOUR_KEY"))}`];
	for (const [name, value] of Object.entries(headers)) {
		if (LEFT_OUT.has(name) || name.startsWith("x-stainless-")) continue;
		const key = name === "authorization" ? "Bearer YOUR_KEY" : "YOUR_KEY";
		lines.push(`-H ${quoted(`${name}: ${value === HIDDEN ? key : value}`)}`);
	}
	if (body !== null) lines.push(`--data-binary ${quoted(body.text)}`);
	return lines.join(" \\\n  ");
}
//#endregion
//#region src/live/panes.ts
function pane(caption, text, notes = []) {
	const body = text === null || text === "" ? null : view(text, caption.title);
	const head = element("div", { class: "pane-head" }, element("h3", {}, caption.title), element("span", { class: "space" }), text ? button("Copy", () => void copy(text, caption.title), {
		class: "small",
		"aria-label": `Copy: ${caption.title}`
	}) : null);
	const format = caption.format ? formatChip(caption.format) : null;
	const about = caption.about || format ? element("p", { class: "about" }, format, caption.about) : null;
	const shown = body?.element ?? element("p", { class: "soft none" }, caption.none);
	return {
		element: element("section", {
			class: "pane",
			"aria-label": caption.title
		}, head, about, headerTable(caption.headers), ...notes, shown),
		view: body
	};
}
function bodyPane(caption, shown) {
	const words = shown?.is_cut ? `Truncated: only the first ${bytes(shown.text.length)} of ${bytes(shown.size)} were kept.` : null;
	const cut = words === null ? null : element("p", { class: "note" }, words);
	return pane({
		...caption,
		about: caption.about ?? (shown ? bytes(shown.size) : null)
	}, shown?.text ?? null, [cut]);
}
function meantPane(meant, title = "Intermediate format") {
	const problem = meant?.problem;
	const note = problem ? element("p", { class: "problem" }, problem.message) : null;
	return pane({
		title,
		about: "the same for all formats",
		none: problem ? "" : "nothing to decode"
	}, meant?.text ?? null, [note]);
}
function lossPane(losses, choose, failure = "") {
	const number = lossCount(losses);
	const count = number ? element("span", { class: "tally" }, String(number)) : null;
	return element("section", {
		class: "pane losses-pane",
		"aria-label": "Losses"
	}, element("div", { class: "pane-head" }, element("h3", {}, "Losses"), count), lossList(losses, choose, failure));
}
/** Side by side; on narrow screens one at a time, selected above. */
var Panes = class {
	element;
	#panes;
	#picks;
	constructor(panes) {
		this.#panes = panes.map(([, pane]) => pane);
		this.#picks = panes.map(([label], place) => button(label, () => this.show(place), { "aria-pressed": "false" }));
		const picks = element("div", {
			class: "pane-picks",
			role: "group",
			"aria-label": "Views"
		}, ...this.#picks);
		this.element = element("div", { class: "panes" }, picks, ...this.#panes);
		this.show(0);
	}
	show(place) {
		this.#panes.forEach((pane, index) => pane.classList.toggle("picked", index === place));
		this.#picks.forEach((pick, index) => pick.setAttribute("aria-pressed", String(index === place)));
	}
};
function headerTable(headers) {
	const entries = Object.entries(headers ?? {});
	if (entries.length === 0) return null;
	const table = element("table", {}, element("tbody", {}, ...entries.map(([name, value]) => element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, value)))));
	return element("details", { class: "headers" }, element("summary", {}, counted(entries.length, "header")), table);
}
//#endregion
//#region src/live/timeline.ts
var WIDTH = 1e3;
var HALF = 60;
var LEAST = 3;
var SVG = "http://www.w3.org/2000/svg";
function svgElement(tag, attributes, ...children) {
	const made = document.createElementNS(SVG, tag);
	for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
	made.append(...children);
	return made;
}
var Timeline = class {
	element;
	#steps;
	#end;
	#most;
	#chart;
	#needle = svgElement("rect", {
		class: "needle",
		y: 0,
		height: 120,
		width: 2
	});
	#about = element("p", {
		class: "about",
		"aria-live": "polite"
	});
	#sides = element("div", { class: "sides" });
	#chosen = 0;
	constructor(opened, chosen) {
		this.#steps = opened.timeline;
		this.#end = Math.max(opened.summary.duration ?? 0, this.#steps.at(-1)?.at ?? 0, 1);
		this.#most = Math.max(...this.#steps.map((step) => Math.max(step.received_size ?? 0, step.sent_size ?? 0)), 1);
		this.#chart = this.#drawChart();
		this.element = element("div", { class: "timeline" }, this.#legend(opened), this.#chart, this.#scale(), this.#about, this.#sides);
		this.choose(chosen);
	}
	choose(place) {
		this.#chosen = Math.max(0, Math.min(this.#steps.length - 1, place));
		const step = this.#steps[this.#chosen];
		if (step === void 0) return;
		this.#needle.setAttribute("x", String(this.#x(step)));
		const [received, sent] = [bytes(step.received_size ?? 0), bytes(step.sent_size ?? 0)];
		const described = `chunk ${this.#chosen + 1} of ${this.#steps.length}, after ${duration(step.at)}: ${received} received, ${sent} sent`;
		this.#chart.setAttribute("aria-valuenow", String(this.#chosen + 1));
		this.#chart.setAttribute("aria-valuetext", described);
		this.#about.textContent = described;
		this.#sides.replaceChildren(side("From the upstream", step.received ?? ""), side("To the client", step.sent ?? ""));
	}
	get chosen() {
		return this.#chosen;
	}
	#x(step) {
		return step.at / this.#end * 996;
	}
	/** Logarithmic, so that small chunks stay visible beside large ones. */
	#height(size) {
		return size === 0 ? 0 : Math.max(LEAST, Math.log1p(size) / Math.log1p(this.#most) * 56);
	}
	#drawChart() {
		const width = Math.max(1.5, Math.min(8, WIDTH / Math.max(this.#steps.length, 1) * .6));
		const bars = this.#steps.flatMap((step) => {
			const [up, down] = [this.#height(step.received_size ?? 0), this.#height(step.sent_size ?? 0)];
			const x = this.#x(step);
			return [svgElement("rect", {
				class: "came",
				x,
				width,
				y: 59 - up,
				height: up,
				rx: 1
			}), svgElement("rect", {
				class: "left",
				x,
				width,
				y: 61,
				height: down,
				rx: 1
			})];
		});
		const line = svgElement("line", {
			class: "axis",
			x1: 0,
			x2: WIDTH,
			y1: HALF,
			y2: HALF
		});
		const picture = svgElement("svg", {
			viewBox: `0 0 ${WIDTH} 120`,
			preserveAspectRatio: "none",
			"aria-hidden": "true"
		}, this.#needle, line, ...bars);
		const chart = element("div", {
			class: "chart",
			role: "slider",
			tabindex: 0,
			"aria-label": "Chunk of the stream",
			"aria-orientation": "horizontal",
			"aria-valuemin": 1,
			"aria-valuemax": this.#steps.length,
			onpointerdown: (event) => this.#at(event),
			onpointermove: (event) => event.buttons === 1 && this.#at(event),
			onkeydown: (event) => this.#pressed(event)
		});
		chart.append(picture);
		return chart;
	}
	#at(event) {
		const box = this.#chart.getBoundingClientRect();
		const at = (event.clientX - box.left) / box.width * this.#end;
		let nearest = 0;
		this.#steps.forEach((step, place) => {
			if (Math.abs(step.at - at) < Math.abs((this.#steps[nearest]?.at ?? 0) - at)) nearest = place;
		});
		this.choose(nearest);
	}
	#pressed(event) {
		const last = this.#steps.length - 1;
		const place = {
			ArrowRight: this.#chosen + 1,
			ArrowUp: this.#chosen + 1,
			ArrowLeft: this.#chosen - 1,
			ArrowDown: this.#chosen - 1,
			PageUp: this.#chosen + 10,
			PageDown: this.#chosen - 10,
			Home: 0,
			End: last
		}[event.key];
		if (place === void 0) return;
		event.preventDefault();
		event.stopPropagation();
		this.choose(place);
	}
	#legend(opened) {
		const sum = (of) => bytes(this.#steps.reduce((total, step) => total + of(step), 0));
		const unheld = opened.unheld ? ` · ${counted(opened.unheld, "more chunk")} (${bytes(opened.unheld_size ?? 0)}) not kept` : "";
		return element("p", { class: "legend" }, element("span", { class: "swatch came" }), ` received from the upstream: ${sum((step) => step.received_size ?? 0)}`, element("span", { class: "swatch left" }), ` sent to the client: ${sum((step) => step.sent_size ?? 0)}`, element("span", { class: "soft" }, `${counted(this.#steps.length, "chunk")}${unheld} · ← → to move`));
	}
	#scale() {
		return element("div", {
			class: "scale",
			"aria-hidden": "true"
		}, ...[
			0,
			.25,
			.5,
			.75,
			1
		].map((part) => element("span", {}, duration(part * this.#end))));
	}
};
function side(title, text) {
	const body = text === "" ? element("p", { class: "soft none" }, "nothing") : view(text, `${title}, raw`).element;
	return element("section", { class: "pane" }, element("div", { class: "pane-head" }, element("h3", {}, title)), body);
}
//#endregion
//#region src/live/request.ts
var SAME = "Client and upstream use the same format: bytes pass unchanged";
var LABELS = {
	request: "Request",
	answer: "Answer",
	stream: "Stream"
};
var Detail = class {
	element = element("article", {
		class: "detail",
		"aria-label": "Request"
	});
	#close;
	#opened = null;
	#tab = "request";
	#attempt = 0;
	#timeline = null;
	constructor(close) {
		this.#close = close;
	}
	show(opened) {
		const before = this.#opened;
		const isSame = opened.summary.id === before?.summary.id;
		this.#opened = opened;
		if (!isSame || opened.attempts.length !== before?.attempts.length) this.#attempt = Math.max(0, opened.attempts.length - 1);
		if (this.#tab === "stream" && opened.timeline.length === 0) this.#tab = "answer";
		if (isSame && looksSame(before, opened, this.#tab)) this.#refresh(opened);
		else this.#draw(isSame ? this.#timeline?.chosen : void 0);
	}
	#refresh(opened) {
		const parts = [[".detail-head", this.#head(opened)], [".tabs", this.#tabs(opened)]];
		for (const [name, part] of parts) {
			const old = this.element.querySelector(name);
			if (!old?.contains(document.activeElement)) old?.replaceWith(part);
		}
	}
	/** Shows why there is no such request. */
	miss(words) {
		this.#opened = null;
		const row = element("div", { class: "row end" }, this.#closing());
		this.element.replaceChildren(row, element("p", { class: "none" }, words));
	}
	choose(tab) {
		if (this.#opened === null || tab === "stream" && this.#opened.timeline.length === 0) return;
		this.#tab = tab;
		this.#draw();
	}
	copyCurl() {
		if (this.#opened !== null) copy(curl(this.#opened, location.origin), "curl command");
	}
	toPlayground() {
		const opened = this.#opened;
		if (opened === null) return;
		const { received } = opened.answer;
		const format = opened.attempts.at(-1)?.format;
		if (this.#tab === "request" || received === void 0 || format === void 0) {
			openInPlayground({
				text: opened.client.body?.text ?? "",
				format: opened.summary.client,
				kind: "request"
			});
			return;
		}
		const kind = opened.timeline.length > 0 ? "stream" : (opened.attempts.at(-1)?.status ?? 200) >= 400 ? "error" : "response";
		openInPlayground({
			text: received.text,
			format,
			kind
		});
	}
	#draw(chosen = 0) {
		const opened = this.#opened;
		if (opened === null) return;
		this.#timeline = this.#tab === "stream" ? new Timeline(opened, chosen) : null;
		const panel = element("div", {
			class: "panel",
			role: "tabpanel",
			"aria-label": LABELS[this.#tab]
		}, {
			request: () => this.#there(opened),
			answer: () => back(opened),
			stream: () => this.#timeline?.element ?? element("p", {})
		}[this.#tab]());
		const hadFocus = this.element.contains(document.activeElement);
		this.element.replaceChildren(this.#head(opened), this.#tabs(opened), panel);
		if (hadFocus) this.element.querySelector("[role=tab][aria-selected=true]")?.focus();
	}
	#head(opened) {
		const { summary, client } = opened;
		const title = element("h2", {}, badge(summary), ...pair(summary), element("span", { class: "name" }, summary.model ?? ""));
		const facts = [
			clock(summary.at),
			`${client.method} ${client.path}`,
			summary.upstream ? `${hasFailed(summary) ? "asked" : "answered by"} ${summary.upstream}/${summary.target}` : "",
			summary.first_byte === void 0 ? "" : `first byte ${duration(summary.first_byte)}`,
			summary.duration === void 0 ? "" : `total ${duration(summary.duration)}`,
			summary.tokens ? `${summary.tokens.input} tokens in, ${summary.tokens.output} out` : "",
			summary.cost === void 0 ? "" : `cost ${money(summary.cost)}`,
			summary.cache === void 0 ? "" : `cache ${summary.cache}`,
			summary.key ? `key ${summary.key}` : ""
		];
		const buttons = element("div", { class: "row detail-actions" }, button("Copy as curl", () => this.copyCurl()), button("Open in playground", () => this.toPlayground()), this.#closing());
		const error = summary.error ? element("p", { class: "problem" }, `${summary.failure}: ${summary.error}`) : null;
		return element("div", { class: "detail-head" }, title, buttons, element("p", { class: "facts" }, ...facts.filter((one) => one).map((one) => element("span", {}, one))), error);
	}
	#closing() {
		return button("✕", () => this.#close(), {
			class: "quiet",
			"aria-label": "Close this request",
			title: "Close (Esc)"
		});
	}
	#tabs(opened) {
		const counts = {
			request: "",
			answer: "",
			stream: opened.timeline.length ? ` ${opened.timeline.length}` : ""
		};
		const tabs = Object.keys(LABELS).filter((tab) => tab !== "stream" || opened.timeline.length > 0);
		const along = (event) => this.#along(event, tabs);
		return element("div", {
			class: "tabs",
			role: "tablist",
			"aria-label": "Views",
			onkeydown: along
		}, ...tabs.map((tab) => {
			const isChosen = tab === this.#tab;
			const state = {
				role: "tab",
				"aria-selected": String(isChosen),
				tabindex: isChosen ? 0 : -1
			};
			const count = counts[tab] ? element("span", { class: "soft" }, counts[tab]) : null;
			return element("button", {
				type: "button",
				onclick: () => this.choose(tab),
				...state
			}, LABELS[tab], count);
		}));
	}
	#along(event, tabs) {
		const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
		const next = tabs[tabs.indexOf(this.#tab) + step];
		if (step !== 0 && next !== void 0) this.choose(next);
	}
	#there(opened) {
		const attempt = opened.attempts[this.#attempt];
		const client = bodyPane({
			title: "Client sent",
			format: opened.summary.client,
			headers: opened.client.headers,
			none: "its body was not kept"
		}, opened.client.body);
		const reveal = (loss) => {
			panes.show(0);
			return client.view?.reveal(loss.path) ?? false;
		};
		const losses = lossPane(opened.losses, reveal, failureThere(opened));
		const panes = new Panes([
			["Client", client.element],
			["Meaning", meantPane(opened.meant).element],
			["Upstream", upstreamPane(attempt)],
			[lossLabel(opened.losses), losses]
		]);
		return element("div", { class: "way" }, this.#attempts(opened), panes.element);
	}
	/** Selects one of several attempts; a single successful one is not listed. */
	#attempts(opened) {
		if (opened.attempts.length < 2) return null;
		return element("ol", {
			class: "attempts",
			"aria-label": "Attempts"
		}, ...opened.attempts.map((attempt, place) => {
			const end = attempt.failure ? `${attempt.status ?? ""} ${attempt.failure}: ${attempt.error}` : `${attempt.status ?? ""} answered`;
			const pick = () => {
				this.#attempt = place;
				this.#draw();
			};
			return element("li", {}, button(`${place + 1}. ${attempt.upstream}/${attempt.model}`, pick, { "aria-pressed": String(place === this.#attempt) }), element("span", { class: attempt.failure ? "bad" : "good" }, `after ${duration(attempt.began)}: ${end}`));
		}));
	}
};
/** Whether the view would be unchanged. */
function looksSame(before, now, tab) {
	const sum = {
		request: ({ attempts, losses, client }) => [
			client.body?.size,
			losses.length,
			...attempts.map((one) => one.status)
		],
		answer: ({ answer, losses_back, summary }) => [
			answer.received?.size,
			answer.sent?.size,
			losses_back.length,
			summary.phase
		],
		stream: ({ timeline, unheld, summary }) => [
			timeline.length,
			unheld,
			summary.phase
		]
	};
	return JSON.stringify(sum[tab](before)) === JSON.stringify(sum[tab](now));
}
var lossLabel = (losses) => lossCount(losses) ? `Losses (${lossCount(losses)})` : "Losses";
var reasonOf = ({ error, failure }) => error || failure?.replaceAll("_", " ") || "unknown reason";
/** Losses of a failed request are not shown as "nothing lost". */
function failureThere({ summary, attempts }) {
	if (!hasFailed(summary)) return "";
	if (attempts.length === 0) return "The request was not translated. No upstream was contacted.";
	return `Nothing was lost in translation, but the request failed: ${reasonOf(summary)}`;
}
function upstreamPane(attempt) {
	if (attempt === void 0) return bodyPane({
		title: "Upstream received",
		none: "No upstream was contacted."
	}, null).element;
	const about = element("span", {}, attempt.is_same ? element("span", {
		class: "same",
		title: SAME
	}, "same format") : null, ` ${attempt.method} ${attempt.url}`);
	return bodyPane({
		title: "Upstream received",
		format: attempt.format,
		about,
		headers: attempt.headers,
		none: "no body"
	}, attempt.body).element;
}
function back(opened) {
	const { answer, summary } = opened;
	const last = opened.attempts.at(-1);
	const none = summary.phase === "ended" ? "nothing received" : "nothing received yet";
	const received = bodyPane({
		title: "Upstream answered",
		format: last?.format,
		none
	}, answer.received);
	const meant = meantPane(answer.meant);
	const sent = bodyPane({
		title: "Client received",
		format: summary.client,
		none: "nothing yet"
	}, answer.sent);
	const reveal = (loss) => {
		panes.show(1);
		return meant.view?.reveal(loss.path) ?? false;
	};
	const failure = hasFailed(summary) ? `The request failed, so there is no answer: ${reasonOf(summary)}` : "";
	const losses = lossPane(opened.losses_back, reveal, failure);
	const panes = new Panes([
		["Upstream", received.element],
		["Meaning", meant.element],
		["Client", sent.element],
		[lossLabel(opened.losses_back), losses]
	]);
	return element("div", { class: "way" }, panes.element);
}
//#endregion
//#region src/live/index.ts
var AGAIN = 1e3;
var FIRST_WORDS = "Any SDK or coding agent for OpenAI, Anthropic, Gemini, Ollama or Bedrock can use this gateway; the model name selects the provider. Requests appear on this page as they happen.";
var CHORD$1 = 1200;
var Live = class {
	name = "live";
	label = "Live";
	keys = [
		["j k", "Next, previous request"],
		["Enter", "Open the request"],
		["Esc", "Close the request"],
		["1 2 3", "Request, answer, stream"],
		["/", "Filter"],
		["p", "Pause the list"],
		["c", "Copy as curl"],
		["o", "Open in the playground"]
	];
	#feed = new Feed();
	#list = new List((id) => this.#go(id));
	#charts = new Charts(() => this.#feed.rows);
	#headings = new Headings(this.#feed, () => this.#draw());
	#filters = new Filters(this.#feed, () => this.#draw());
	#detail = new Detail(() => this.#go(null));
	#connections = new Connections((found) => this.#clients.replaceChildren(clients(found)));
	#clients = element("div", {});
	#filter = element("input", {
		type: "search",
		class: "filter",
		placeholder: "Filter: model, format, status, error, loss …",
		"aria-label": "Filter requests",
		"aria-keyshortcuts": "/"
	});
	#pause = button("Pause", () => this.#hold(), {
		"aria-pressed": "false",
		class: "pause",
		title: "Pause the list (p)"
	});
	#counts = element("span", { class: "counts soft" });
	#empty = element("div", { class: "nothing" });
	#root = null;
	#source = null;
	#opened = null;
	#isShown = false;
	#timer;
	#chord = -Infinity;
	mount(root) {
		this.#root = root;
		this.#filter.addEventListener("input", () => {
			this.#feed.filter(this.#filter.value);
			this.#draw();
		});
		const tools = element("div", { class: "tools" }, this.#filter, ...this.#filters.elements, this.#pause, this.#counts);
		const both = element("div", { class: "both" }, element("section", {
			class: "feed",
			"aria-label": "Requests"
		}, this.#headings.element, this.#list.element, this.#empty), this.#detail.element);
		root.append(element("h1", { class: "sr" }, "Live"), this.#connections.element, this.#charts.element, tools, both);
		document.addEventListener("keydown", (event) => this.#pressed(event));
	}
	enter(route) {
		this.#isShown = true;
		if (this.#source === null) this.#listen();
		this.#connections.start();
		this.#charts.start();
		this.#open(route.rest[0] ?? null);
	}
	leave() {
		this.#isShown = false;
		this.#source?.close();
		this.#source = null;
		this.#connections.stop();
		this.#charts.stop();
	}
	#listen() {
		this.#source = listen("/live/feed", {
			snapshot: (summaries) => {
				this.#feed.replace(summaries);
				this.#draw();
			},
			changes: (summaries) => {
				this.#feed.change(summaries);
				this.#draw();
				this.#connections.soon();
				if (summaries.some((one) => one.id === this.#opened)) this.#load();
			}
		});
		this.#source.addEventListener("open", () => this.#root?.classList.remove("away"));
		this.#source.addEventListener("error", () => this.#root?.classList.add("away"));
	}
	#draw() {
		const { rows, waiting } = this.#feed;
		const { all, underWay, failed } = this.#feed.counts;
		this.#list.show(rows);
		if (this.#charts.element.hidden !== (rows.length === 0)) this.#charts.draw();
		this.#filters.offer();
		this.#headings.show();
		this.#root?.classList.toggle("keyed", this.#feed.choices.keys.length > 0);
		this.#root?.classList.toggle("used", all > 0);
		const words = [
			`${rows.length === all ? "" : `${rows.length} of `}${counted(all, "request")}`,
			underWay ? `${underWay} in progress` : "",
			failed ? `${failed} failed` : ""
		];
		this.#counts.textContent = words.filter((word) => word).join(" · ");
		this.#pause.textContent = this.#feed.isPaused ? `Resume${waiting ? ` (${waiting} new)` : ""}` : "Pause";
		this.#pause.setAttribute("aria-pressed", String(this.#feed.isPaused));
		this.#empty.hidden = rows.length > 0;
		this.#list.element.hidden = rows.length === 0;
		if (rows.length === 0) this.#drawEmpty(all);
	}
	#drawEmpty(all) {
		const shown = all > 0 ? "filtered" : "first";
		if (this.#empty.dataset["shown"] === shown) return;
		this.#empty.dataset["shown"] = shown;
		if (all > 0) this.#empty.replaceChildren(element("p", { class: "soft" }, "No request matches the filter. "), button("Show all", () => this.#reset()));
		else this.#empty.replaceChildren(element("h2", {}, "No requests yet"), element("p", { class: "soft" }, FIRST_WORDS), element("p", {}, "Or ask from here: ", element("a", { href: address("chat") }, "the chat"), " asks several models at once, through this gateway."), this.#clients);
	}
	#reset() {
		this.#filter.value = "";
		this.#feed.filter("");
		this.#filters.reset();
		this.#draw();
	}
	#hold() {
		this.#feed.pause(!this.#feed.isPaused);
		this.#draw();
	}
	#go(id) {
		location.hash = address("live", id === null ? [] : [id]);
	}
	async #open(id) {
		this.#opened = id;
		this.#root?.classList.toggle("opened", id !== null);
		if (id !== null) {
			this.#list.point(id);
			await this.#load();
		} else this.#list.element.focus({ preventScroll: true });
	}
	async #load() {
		const id = this.#opened;
		if (id === null) return;
		try {
			const opened = await call("GET", `/live/requests/${encodeURIComponent(id)}`);
			if (this.#opened === id) this.#detail.show(opened);
			if (opened.summary.phase !== "ended") this.#again();
		} catch (problem) {
			if (this.#opened === id) this.#detail.miss(problem instanceof Problem ? problem.message : String(problem));
		}
	}
	/** Refreshes an open stream at intervals: the feed reports only its start and end. */
	#again() {
		clearTimeout(this.#timer);
		this.#timer = setTimeout(() => {
			if (this.#isShown) this.#load();
		}, AGAIN);
	}
	#pressed(event) {
		if (!this.#isShown || isOpen() || event.ctrlKey || event.metaKey || event.altKey) return;
		if (event.target === this.#filter && (event.key === "Escape" || event.key === "Enter")) {
			this.#list.element.focus();
			return;
		}
		if (isTyping(event.target)) return;
		const isName = event.timeStamp - this.#chord < CHORD$1;
		this.#chord = event.key === "g" ? event.timeStamp : -Infinity;
		const run = isName ? void 0 : this.#commands(event)[event.key];
		if (run === void 0) return;
		event.preventDefault();
		run();
	}
	#commands(event) {
		return {
			j: () => this.#move(1),
			k: () => this.#move(-1),
			...event.target === this.#list.element || event.target === document.body ? {
				ArrowDown: () => this.#move(1),
				ArrowUp: () => this.#move(-1),
				Enter: () => this.#go(this.#list.cursor)
			} : {},
			"/": () => this.#filter.focus(),
			p: () => this.#hold(),
			c: () => this.#detail.copyCurl(),
			o: () => this.#detail.toPlayground(),
			1: () => this.#detail.choose("request"),
			2: () => this.#detail.choose("answer"),
			3: () => this.#detail.choose("stream"),
			...this.#opened === null ? {} : { Escape: () => this.#go(null) }
		};
	}
	#move(steps) {
		const next = this.#list.neighbour(steps);
		if (next === null) return;
		if (this.#opened === null) this.#list.point(next);
		else this.#go(next);
	}
};
var live = new Live();
//#endregion
//#region src/playground/description.ts
function descriptionTree(node) {
	return element("div", {
		class: "described",
		role: "group",
		"aria-label": "Description",
		tabindex: 0
	}, element("ul", {}, branch(node)));
}
function branch(node) {
	const line = element("div", {}, element("span", { class: `head ${node.style ?? ""}` }, node.head), node.text ? element("span", { class: "text" }, ` ${node.text}`) : null, node.remark ? element("span", { class: "remark" }, `  ${node.remark}`) : null, node.warning ? element("span", { class: "warning" }, `  ${node.warning}`) : null);
	const children = node.children ?? [];
	return element("li", {}, line, children.length ? element("ul", {}, ...children.map(branch)) : null);
}
//#endregion
//#region src/playground/examples.ts
var pretty = (value) => JSON.stringify(value, null, 2);
var TOOL_CALL = {
	model: "gpt-5.6",
	messages: [
		{
			role: "system",
			content: "Answer in one sentence."
		},
		{
			role: "user",
			content: "What is the weather in Paris and in Rome?"
		},
		{
			role: "assistant",
			content: null,
			tool_calls: [{
				id: "call_paris",
				type: "function",
				function: {
					name: "get_weather",
					arguments: "{\"city\": \"Paris\"}"
				}
			}, {
				id: "call_rome",
				type: "function",
				function: {
					name: "get_weather",
					arguments: "{\"city\": \"Rome\"}"
				}
			}]
		},
		{
			role: "tool",
			tool_call_id: "call_paris",
			content: "{\"temperature\": 18, \"sky\": \"clear\"}"
		},
		{
			role: "tool",
			tool_call_id: "call_rome",
			content: "the station does not answer"
		}
	],
	tools: [{
		type: "function",
		function: {
			name: "get_weather",
			description: "The weather of a city",
			parameters: {
				type: "object",
				properties: {
					city: {
						type: "string",
						description: "A city, such as Paris"
					},
					unit: { enum: ["celsius", "fahrenheit"] }
				},
				required: ["city"],
				additionalProperties: false
			},
			strict: true
		}
	}],
	parallel_tool_calls: true,
	seed: 7,
	logit_bias: { "50256": -100 }
};
var PICTURE = {
	model: "claude-sonnet-5",
	max_tokens: 500,
	system: [{
		type: "text",
		text: "You describe pictures.",
		cache_control: { type: "ephemeral" }
	}],
	messages: [{
		role: "user",
		content: [
			{
				type: "image",
				source: {
					type: "base64",
					media_type: "image/png",
					data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
				}
			},
			{
				type: "image",
				source: {
					type: "url",
					url: "https://example.com/harbour.jpg"
				}
			},
			{
				type: "text",
				text: "What is on these two pictures?"
			}
		]
	}],
	top_k: 40
};
var REASONING = {
	contents: [
		{
			role: "user",
			parts: [{ text: "Is 221 prime? Use the tool." }]
		},
		{
			role: "model",
			parts: [{
				text: "221 = 13 · 17, but I shall ask.",
				thought: true
			}, {
				functionCall: {
					id: "call_1",
					name: "factorise",
					args: { number: 221 }
				},
				thoughtSignature: "c2lnbmVkIGJ5IHRoZSBtb2RlbA=="
			}]
		},
		{
			role: "user",
			parts: [{ functionResponse: {
				id: "call_1",
				name: "factorise",
				response: { factors: [13, 17] }
			} }]
		}
	],
	tools: [{ functionDeclarations: [{
		name: "factorise",
		description: "Prime factors of a number",
		parameters: {
			type: "OBJECT",
			properties: { number: { type: "INTEGER" } },
			required: ["number"]
		}
	}] }],
	generationConfig: {
		maxOutputTokens: 2e3,
		thinkingConfig: {
			includeThoughts: true,
			thinkingBudget: 1024
		}
	},
	safetySettings: [{
		category: "HARM_CATEGORY_HARASSMENT",
		threshold: "BLOCK_ONLY_HIGH"
	}]
};
function chunk(delta, finish = null) {
	return `data: ${JSON.stringify({
		id: "chatcmpl-1",
		object: "chat.completion.chunk",
		created: 176e7,
		model: "gpt-5.6",
		choices: [{
			index: 0,
			delta,
			finish_reason: finish
		}]
	})}\n\n`;
}
var STREAM = [
	chunk({
		role: "assistant",
		content: "Let me "
	}),
	chunk({ content: "look." }),
	chunk({ tool_calls: [{
		index: 0,
		id: "call_1",
		type: "function",
		function: {
			name: "get_weather",
			arguments: ""
		}
	}] }),
	chunk({ tool_calls: [{
		index: 0,
		function: { arguments: "{\"city\": " }
	}] }),
	chunk({ tool_calls: [{
		index: 0,
		function: { arguments: "\"Paris\"}" }
	}] }),
	chunk({}, "tool_calls"),
	"data: [DONE]\n\n"
].join("");
var EXAMPLES = [
	{
		label: "Tool calls (OpenAI Chat)",
		about: "Two parallel calls, one of which failed, and settings that others lack",
		text: pretty(TOOL_CALL)
	},
	{
		label: "Pictures (Anthropic Messages)",
		about: "One inline, one by address, and a cache mark",
		text: pretty(PICTURE)
	},
	{
		label: "Reasoning with a signature (Gemini)",
		about: "A thought, a signed call and its result",
		text: pretty(REASONING)
	},
	{
		label: "A stream (OpenAI Chat)",
		about: "Recorded events become those of another API",
		text: STREAM
	},
	{
		label: "An answer (Anthropic Messages)",
		about: "Thinking, text, and how tokens are counted",
		text: pretty({
			id: "msg_1",
			type: "message",
			role: "assistant",
			model: "claude-sonnet-5",
			content: [{
				type: "thinking",
				thinking: "They greet me, so I greet them.",
				signature: "c2lnbmVkIGJ5IHRoZSBtb2RlbA=="
			}, {
				type: "text",
				text: "Hello! What can I do for you?"
			}],
			stop_reason: "end_turn",
			stop_sequence: null,
			usage: {
				input_tokens: 12,
				output_tokens: 25,
				cache_read_input_tokens: 4,
				cache_creation_input_tokens: 0
			}
		})
	},
	{
		label: "An error (Anthropic Messages)",
		about: "A rate limit, in each API's own format",
		text: pretty({
			type: "error",
			error: {
				type: "rate_limit_error",
				message: "This request exceeds the limit of tokens per minute"
			}
		})
	},
	{
		label: "A stored history (multi-llm-chat)",
		about: "A conversation of a chat program becomes a request",
		text: pretty([{
			role: "user",
			content: [{
				type: "text",
				content: "What is the weather in Paris?"
			}]
		}, {
			role: "gemini",
			content: [{
				type: "text",
				content: "It is clear, 18 °C."
			}]
		}])
	}
];
//#endregion
//#region src/playground/editor.ts
var GROUPS$2 = {
	wire: "APIs",
	record: "Stored histories",
	compatible: "Compatible servers"
};
var KINDS = [
	"request",
	"response",
	"stream",
	"error"
];
var Editor = class {
	element;
	area = element("textarea", {
		class: "given",
		spellcheck: "false",
		autocapitalize: "off",
		autocomplete: "off",
		"aria-label": "Body to convert",
		placeholder: "Paste a request, an answer, an error, a recorded stream or a stored history"
	});
	#format = element("select", { "aria-label": "Format" }, element("option", { value: "auto" }, "Any format"));
	#kind = element("select", { "aria-label": "Kind" }, element("option", { value: "auto" }, "Any kind"), ...KINDS.map((kind) => element("option", { value: kind }, kind)));
	#examples = element("select", { "aria-label": "Examples" }, element("option", { value: "" }, "Examples …"), ...EXAMPLES.map((example, place) => element("option", { value: place }, example.label)));
	#changed;
	constructor(changed) {
		this.#changed = changed;
		const chosen = () => changed(true);
		this.#format.addEventListener("change", chosen);
		this.#kind.addEventListener("change", chosen);
		this.#examples.addEventListener("change", () => this.#load());
		this.area.addEventListener("input", () => changed(false));
		this.element = element("div", { class: "editor" }, element("div", { class: "row" }, this.#examples, this.#format, this.#kind), this.area);
	}
	offer(formats) {
		for (const group of Object.keys(GROUPS$2)) {
			const options = formats[group].map((name) => element("option", { value: name }, group === "wire" ? formatName(name) : name));
			this.#format.append(element("optgroup", { label: GROUPS$2[group] }, ...options));
		}
	}
	get given() {
		return {
			text: this.area.value,
			format: this.#format.value,
			kind: this.#kind.value
		};
	}
	give(text, format = "auto", kind = "auto") {
		this.area.value = text;
		this.#format.value = format;
		this.#kind.value = kind;
		this.#changed(true);
	}
	#load() {
		const example = EXAMPLES[Number(this.#examples.value)];
		const isOne = this.#examples.value !== "" && example !== void 0;
		this.#examples.value = "";
		if (isOne) this.give(example.text);
	}
	/** Selects the value at a path; returns whether the whole path exists. */
	reveal(path) {
		const root = tryParse(this.area.value);
		if (root === null) return false;
		const found = find(root, path);
		this.select(found.start, found.item.end);
		return found.isExact;
	}
	select(start, end) {
		const { area } = this;
		area.focus();
		const text = area.value;
		area.value = text.slice(0, end);
		area.scrollTop = area.scrollHeight;
		const below = area.scrollTop;
		area.value = text;
		area.scrollTop = below === 0 ? 0 : below + area.clientHeight / 2;
		area.setSelectionRange(start, end);
	}
};
//#endregion
//#region src/playground/trial.ts
var CHOSEN = "playground-model";
var Trial = class {
	element;
	#actions;
	#model = element("input", {
		list: "trial-models",
		placeholder: "provider/model",
		"aria-label": "Model to send it to",
		autocomplete: "off",
		spellcheck: "false"
	});
	#offered = element("datalist", { id: "trial-models" });
	#run;
	#canSend = false;
	constructor(actions) {
		this.#actions = actions;
		this.#run = button("Run", () => void this.run(), {
			class: "primary",
			title: "Send it to the model (Ctrl+Enter)",
			disabled: true
		});
		this.element = element("div", {
			class: "trial",
			hidden: true
		}, this.#model, this.#offered, this.#run);
		this.#model.value = localStorage.getItem(CHOSEN) ?? "";
		this.#model.addEventListener("input", () => this.#show());
		this.#model.addEventListener("keydown", (event) => {
			if (event.key === "Enter") this.run();
		});
	}
	async offer() {
		const names = await call("GET", "/playground/models").catch(() => []);
		this.element.hidden = names.length === 0;
		this.#offered.replaceChildren(...names.map((value) => element("option", { value })));
		if (this.#model.value === "") this.#model.value = names.find((one) => one.startsWith("anthropic/")) ?? names[0] ?? "";
		this.#show();
	}
	/** Only a request can be sent. */
	allow(canSend) {
		this.#canSend = canSend;
		this.#show();
	}
	#show() {
		this.#run.disabled = !this.#canSend || this.#model.value.trim() === "" || this.#run.dataset["busy"] === "true";
	}
	async run() {
		if (this.#run.disabled || this.element.hidden) return;
		const model = this.#model.value.trim();
		localStorage.setItem(CHOSEN, model);
		this.#busy(true);
		try {
			const { text, format } = this.#actions.given();
			this.#actions.ended(await call("POST", "/playground/run", {
				text,
				format,
				model
			}));
		} catch (problem) {
			this.#actions.ended(problem instanceof Problem ? problem.message : String(problem));
		} finally {
			this.#busy(false);
		}
	}
	#busy(isBusy) {
		this.#run.dataset["busy"] = String(isBusy);
		this.#run.textContent = isBusy ? "Running …" : "Run";
		this.#show();
	}
};
/** A model's answer, with its tokens and losses. */
function answerView(tried, reveal) {
	if (typeof tried === "string") return [element("p", {
		class: "problem",
		role: "alert"
	}, tried)];
	const facts = [
		`${formatName(tried.source)} → ${formatName(tried.format)}`,
		duration(tried.milliseconds),
		tried.input === void 0 ? "" : `${tried.input} tokens in, ${tried.output ?? 0} out`,
		money(tried.cost),
		tried.finish ? `ended: ${tried.finish.replaceAll("_", " ")}` : ""
	].filter((one) => one !== "");
	const badge = tried.is_simulated ? element("span", { class: "simulated" }, "simulated") : null;
	const link = tried.request ? element("a", { href: address("live", [tried.request]) }, "See the request") : null;
	const head = element("div", { class: "about answered" }, element("b", {}, tried.model), badge, element("span", {}, facts.join(" · ")), element("span", { class: "space" }), link);
	if (tried.error) return [head, element("p", {
		class: "problem",
		role: "alert"
	}, tried.error)];
	return [
		head,
		element("div", {
			class: "trial-answer",
			tabindex: 0,
			role: "group",
			"aria-label": "Answer"
		}, tried.reasoning ? element("details", {}, element("summary", {}, "Reasoning"), element("p", {}, tried.reasoning)) : null, element("p", { class: "words" }, tried.text || (tried.calls?.length ? "" : "The answer is empty.")), ...(tried.calls ?? []).map((one) => element("p", { class: "call" }, element("b", {}, `→ ${one.name}`), " ", element("code", {}, JSON.stringify(one.arguments)))), tried.body ? element("details", {}, element("summary", {}, "As the provider wrote it"), view(tried.body, "Answer").element) : null),
		element("div", { class: "lost" }, lossList(tried.losses ?? [], reveal))
	];
}
//#endregion
//#region src/playground/index.ts
var PAUSE = 250;
var GROUPS$1 = [
	["wire", "APIs"],
	["record", "Stored histories"],
	["compatible", "Compatible servers"]
];
var WORDS = "description";
var MEANT = "intermediate format";
var ANSWER = "answer";
var Playground = class {
	name = "playground";
	label = "Playground";
	keys = [
		["j k", "Next, previous format"],
		["e", "Write in the editor"],
		["Esc", "Leave the editor"],
		["Ctrl Enter", "Send it to the model"]
	];
	#editor = new Editor((isNow) => this.#soon(isNow ? 0 : PAUSE));
	#status = element("p", {
		class: "detected",
		role: "status"
	});
	#choices = element("div", {
		class: "choices",
		role: "tablist",
		"aria-label": "Formats",
		"aria-orientation": "vertical"
	});
	#panel = element("div", {
		class: "result",
		role: "tabpanel"
	});
	#stale = element("p", {
		class: "stale",
		role: "status",
		hidden: true
	});
	#samples = element("div", {
		class: "samples",
		hidden: true
	});
	#right = element("section", {
		class: "right",
		"aria-label": "In every format"
	}, this.#choices, this.#panel, this.#stale, this.#samples);
	#trial = new Trial({
		given: () => this.#editor.given,
		ended: (tried) => {
			this.#tried = tried;
			this.#chosen = ANSWER;
			this.#draw();
		}
	});
	#tried = null;
	#understood = null;
	#chosen = "anthropic-messages";
	#timer;
	#latest = 0;
	#isShown = false;
	async mount(root) {
		const left = element("section", {
			class: "left",
			"aria-label": "Input"
		}, this.#editor.element, this.#status, this.#trial.element);
		this.#samples.append(...samples((text) => this.#editor.give(text)));
		root.append(element("h1", { class: "sr" }, "Playground"), left, this.#right);
		this.#empty();
		this.#trial.offer();
		document.addEventListener("keydown", (event) => this.#pressed(event));
		await attempt(async () => this.#editor.offer(await call("GET", "/playground/formats")))();
	}
	enter() {
		this.#isShown = true;
		const handed = takeBody();
		if (handed !== null) this.#editor.give(handed.text, handed.format, handed.kind);
	}
	leave() {
		this.#isShown = false;
	}
	#soon(pause) {
		clearTimeout(this.#timer);
		this.#timer = setTimeout(() => void this.#convert(), pause);
	}
	async #convert() {
		this.#latest += 1;
		const number = this.#latest;
		if (this.#editor.given.text.trim() === "") {
			this.#empty();
			return;
		}
		try {
			const understood = await call("POST", "/playground/crossings", this.#editor.given);
			if (number === this.#latest) this.#show(understood);
		} catch (problem) {
			if (number === this.#latest) this.#refuse(problem);
		}
	}
	/** Nothing to convert: shows examples. */
	#empty() {
		this.#understood = null;
		this.#tried = null;
		this.#trial.allow(false);
		this.#status.className = "detected";
		this.#status.replaceChildren("Paste something, or choose an example.");
		this.#mark("empty");
	}
	/** What the right side shows: the input, an earlier input, or nothing yet. */
	#mark(state) {
		this.#samples.hidden = state !== "empty";
		this.#choices.hidden = this.#panel.hidden = state === "empty";
		this.#stale.hidden = state !== "stale";
		this.#right.classList.toggle("is-stale", state === "stale");
		this.#stale.textContent = "The input cannot be read. This is the result of the last readable one.";
	}
	#show(understood) {
		this.#understood = understood;
		this.#trial.allow(understood.kind === "request");
		this.#mark("fresh");
		const how = understood.is_detected ? "detected" : "as chosen";
		this.#status.replaceChildren(element("b", {}, `${formatName(understood.format)} ${understood.kind}`), ` · ${how}`);
		this.#status.className = "detected";
		this.#draw();
	}
	#refuse(problem) {
		this.#trial.allow(false);
		this.#mark(this.#understood === null ? "empty" : "stale");
		const message = problem instanceof Error ? problem.message : String(problem);
		const refused = problem instanceof Problem ? problem.body : null;
		const place = refused?.place ?? null;
		const path = refused?.problem?.path;
		const words = path ? message.replace(` - at ${path}`, "") : message;
		this.#status.className = "detected problem";
		this.#status.replaceChildren(path ? element("code", {}, path) : "", path ? " " : "", words, " ", place === null ? "" : button("Show where", () => this.#editor.select(place, this.#endOf(place)), { class: "small" }));
	}
	/** The end of the token at a position; at least one character. */
	#endOf(place) {
		const rest = this.#editor.area.value.slice(place);
		return place + Math.max(1, rest.search(/[\n,}\]]|$/));
	}
	#draw() {
		const understood = this.#understood;
		if (understood === null) return;
		const known = [
			...this.#tried === null ? [] : [ANSWER],
			WORDS,
			MEANT,
			...understood.crossed.map((one) => one.format)
		];
		if (!known.includes(this.#chosen)) this.#chosen = known.find((one) => one === "anthropic-messages") ?? known[2] ?? WORDS;
		const groups = GROUPS$1.map(([group, label]) => [label, understood.crossed.filter((one) => one.group === group)]);
		this.#choices.replaceChildren(...this.#tried === null ? [] : [this.#choice(ANSWER, "Answer", null)], this.#choice(WORDS, "Description", null), this.#choice(MEANT, "Intermediate format", null), ...groups.flatMap(([label, crossed]) => crossed.length === 0 ? [] : [element("p", {
			class: "group",
			role: "presentation"
		}, label), ...crossed.map((one) => this.#choice(one.format, formatName(one.format), mark(one)))]));
		this.#panel.setAttribute("aria-label", this.#chosen);
		this.#panel.replaceChildren(...this.#result(understood));
	}
	#choice(name, label, badge) {
		const isChosen = name === this.#chosen;
		return element("button", {
			type: "button",
			role: "tab",
			class: "choice",
			"data-name": name,
			"aria-selected": String(isChosen),
			tabindex: isChosen ? 0 : -1,
			onclick: () => this.#choose(name)
		}, element("span", {}, label), badge);
	}
	#choose(name) {
		const hadFocus = this.#choices.contains(document.activeElement);
		this.#chosen = name;
		this.#draw();
		const tab = this.#choices.querySelector("[aria-selected=true]");
		if (hadFocus) tab?.focus();
		tab?.scrollIntoView({ block: "nearest" });
	}
	#result(understood) {
		if (this.#chosen === ANSWER) return this.#tried === null ? [] : answerView(this.#tried, (loss) => this.#editor.reveal(loss.path));
		if (this.#chosen === WORDS) return [descriptionTree(understood.description)];
		if (this.#chosen === MEANT) {
			const { text, problem } = understood.meant;
			return [text ? view(text, "Intermediate format").element : element("p", { class: "problem" }, problem?.message ?? "")];
		}
		const crossed = understood.crossed.find((one) => one.format === this.#chosen);
		return crossed === void 0 ? [] : this.#crossing(crossed);
	}
	#crossing(crossed) {
		if (crossed.problem !== void 0) return [element("p", { class: "problem" }, crossed.problem.message)];
		const text = crossed.text ?? "";
		const losses = crossed.losses ?? [];
		const about = element("div", { class: "about" }, element("code", {}, crossed.path ?? ""), element("span", { class: "space" }), button("Copy", () => void copy(text, formatName(crossed.format)), { class: "small" }));
		const note = crossed.note ? element("p", { class: "note" }, crossed.note) : null;
		const lost = element("div", { class: "lost" }, lossList(losses, (loss) => this.#editor.reveal(loss.path)));
		return [
			about,
			note,
			view(text, formatName(crossed.format)).element,
			lost
		].filter((one) => one !== null);
	}
	#pressed(event) {
		if (!this.#isShown || isOpen()) return;
		if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.#trial.run();
		if (event.key === "Escape" && event.target === this.#editor.area) this.#choices.querySelector("[aria-selected=true]")?.focus();
		if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
		const step = {
			j: 1,
			k: -1,
			...event.target instanceof Node && this.#choices.contains(event.target) ? {
				ArrowDown: 1,
				ArrowUp: -1
			} : {}
		}[event.key];
		if (step === void 0 && event.key !== "e") return;
		event.preventDefault();
		if (step === void 0) this.#editor.area.focus();
		else this.#move(step);
	}
	#move(step) {
		const names = [...this.#choices.querySelectorAll(".choice")].map((one) => one.dataset["name"] ?? "");
		const next = names[names.indexOf(this.#chosen) + step];
		if (next !== void 0) this.#choose(next);
	}
};
/** Samples, each with a description. */
function samples(take) {
	const cards = EXAMPLES.map((example) => element("button", {
		type: "button",
		class: "sample",
		onclick: () => take(example.text)
	}, element("b", {}, example.label), element("span", { class: "soft" }, example.about)));
	return [
		element("h2", {}, "Convert any body to every format"),
		element("p", { class: "soft" }, "Paste a request, an answer, an error, a stream or a stored conversation to see it in every format, with what would be lost. Requests can also be sent to a model."),
		element("div", { class: "sample-grid" }, ...cards)
	];
}
/** How much is lost, at a glance. */
function mark(crossed) {
	if (crossed.problem !== void 0) return element("span", {
		class: "refused",
		title: crossed.problem.message
	}, "refused");
	const count = lossCount(crossed.losses ?? []);
	if (count === 0) return element("span", {
		class: "whole",
		title: "nothing is lost"
	}, element("span", { class: "sr" }, "nothing lost"), "✓");
	return element("span", { class: "tally" }, String(count), element("span", { class: "sr" }, " lost"));
}
var playground = new Playground();
//#endregion
//#region src/theme.ts
var KEPT = "theme";
var root = document.documentElement;
function isDark() {
	return root.dataset["theme"] ? root.dataset["theme"] === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
function restore() {
	const kept = localStorage.getItem(KEPT);
	if (kept === "dark" || kept === "light") root.dataset["theme"] = kept;
}
function toggle() {
	root.dataset["theme"] = isDark() ? "light" : "dark";
	localStorage.setItem(KEPT, root.dataset["theme"]);
}
var DAY = 864e5;
var nameOf = (row, by) => by === "key" ? row.key || "no key" : row.model ? `${row.upstream}/${row.model}` : "not routed";
var valueOf = (row, measure) => measure === "tokens" ? row.input + row.output : measure === "cost" ? row.cost : row.requests;
/** Every day of the span, also those without any requests. */
function days(count, now) {
	return Array.from({ length: count }, (_, place) => (/* @__PURE__ */ new Date(now - (count - 1 - place) * DAY)).toISOString().slice(0, 10));
}
function course(rows, by, measure, span, most) {
	const sums = /* @__PURE__ */ new Map();
	for (const row of rows) {
		const name = nameOf(row, by);
		const days = sums.get(name) ?? /* @__PURE__ */ new Map();
		days.set(row.day, (days.get(row.day) ?? 0) + valueOf(row, measure));
		sums.set(name, days);
	}
	const all = [...sums].map(([name, days]) => ({
		name,
		values: span.map((day) => days.get(day) ?? 0),
		total: [...days.values()].reduce((sum, one) => sum + one, 0)
	}));
	all.sort((one, other) => other.total - one.total || one.name.localeCompare(other.name));
	if (all.length <= most) return {
		days: span,
		groups: all
	};
	const rest = all.slice(most - 1);
	const others = {
		name: `${rest.length} others`,
		values: span.map((_, place) => rest.reduce((sum, one) => sum + (one.values[place] ?? 0), 0)),
		total: rest.reduce((sum, one) => sum + one.total, 0)
	};
	return {
		days: span,
		groups: [...all.slice(0, most - 1), others]
	};
}
/** One row per key and model, the most expensive first. */
function table(rows) {
	const sums = /* @__PURE__ */ new Map();
	for (const row of rows) {
		const name = `${row.key}\n${row.upstream}/${row.model}`;
		const known = sums.get(name);
		sums.set(name, known === void 0 ? {
			...row,
			day: ""
		} : {
			...known,
			requests: known.requests + row.requests,
			failed: known.failed + row.failed,
			input: known.input + row.input,
			output: known.output + row.output,
			cost: known.cost + row.cost
		});
	}
	return [...sums.values()].sort((one, other) => other.cost - one.cost || other.requests - one.requests);
}
function total(rows) {
	const sum = (value) => rows.reduce((so, row) => so + value(row), 0);
	return {
		requests: sum((row) => row.requests),
		failed: sum((row) => row.failed),
		input: sum((row) => row.input),
		output: sum((row) => row.output),
		cost: sum((row) => row.cost)
	};
}
//#endregion
//#region src/usage/index.ts
var EVERY$1 = 1e4;
var MOST = 6;
var SPANS = [
	["1", "Today"],
	["7", "7 days"],
	["30", "30 days"],
	["90", "90 days"]
];
var GROUPS = [["model", "By model"], ["key", "By key"]];
var MEASURES = [
	["cost", "Cost"],
	["requests", "Requests"],
	["tokens", "Tokens"]
];
var SHOWN = {
	cost: (value) => money(value),
	requests: (value) => amount(value),
	tokens: (value) => `${amount(value)} tokens`
};
var UsageSection = class {
	name = "usage";
	label = "Usage";
	keys = [];
	#span = choice("Time", SPANS, "7");
	#group = choice("Group", GROUPS, "model");
	#measure = choice("Measure", MEASURES, "cost");
	#totals = element("div", { class: "totals" });
	#chart = new Chart("Over time", "large");
	#legend = element("ul", { class: "legend" });
	#table = element("div", {
		class: "facts-table",
		tabindex: 0,
		role: "region",
		"aria-label": "By key and model"
	});
	#note = element("p", {
		class: "soft note",
		hidden: true
	});
	#usage = null;
	#timer;
	mount(root) {
		const tools = element("div", { class: "row usage-tools" }, element("h1", {}, "Usage"), element("span", { class: "space" }), this.#span, this.#group, this.#measure);
		root.append(element("div", { class: "usage-page" }, tools, this.#note, this.#totals, this.#chart.element, this.#legend, this.#table));
		this.#span.addEventListener("change", () => void this.#load());
		for (const one of [this.#group, this.#measure]) one.addEventListener("change", () => this.#draw());
	}
	enter() {
		clearInterval(this.#timer);
		this.#load();
		this.#timer = setInterval(() => void this.#load(), EVERY$1);
	}
	leave() {
		clearInterval(this.#timer);
	}
	#load = attempt(async () => {
		this.#usage = await call("GET", `/live/usage?by=key,model,day&days=${this.#span.value}`);
		this.#draw();
	});
	#draw() {
		const usage = this.#usage;
		if (usage === null) return;
		const measure = this.#measure.value;
		const found = course(usage.rows, this.#group.value, measure, days(Number(this.#span.value), Date.now()), MOST);
		this.#note.hidden = usage.kept;
		this.#note.textContent = "Only the last requests are counted: this gateway has no database. Set database under [server] in dragoman.toml to keep usage.";
		this.#totals.replaceChildren(...totals(usage.rows));
		this.#drawChart(found, measure);
		this.#table.replaceChildren(...usage.rows.length === 0 ? [element("p", { class: "soft" }, "No usage in this period.")] : [tableOf(usage.rows)]);
	}
	#drawChart({ days: span, groups }, measure) {
		const shown = SHOWN[measure];
		const sum = groups.reduce((so, one) => so + one.total, 0);
		const named = (place) => groups.flatMap((one) => one.values[place] ? [`${one.name} ${shown(one.values[place] ?? 0)}`] : []).join("\n");
		this.#chart.show({
			value: shown(sum),
			about: span.length === 1 ? span[0] ?? "" : `${span[0]} to ${span.at(-1)}`,
			series: groups.map((one, place) => ({
				kind: "bar",
				look: `series-${place + 1}`,
				values: one.values
			})),
			tip: (place) => `${span[place]}\n${named(place) || "nothing"}`,
			none: sum === 0 ? measure === "cost" ? "no costs are known" : "nothing yet" : void 0
		});
		this.#legend.replaceChildren(...groups.map((one, place) => element("li", {}, element("span", {
			class: `swatch series-${place + 1}`,
			"aria-hidden": "true"
		}), one.name, element("b", {}, shown(one.total)))));
	}
};
function choice(label, options, chosen) {
	return element("select", {
		class: "choice",
		"aria-label": label
	}, ...options.map(([value, words]) => element("option", {
		value,
		selected: value === chosen
	}, words)));
}
function totals(rows) {
	const sum = total(rows);
	const tile = (label, value, about = "") => element("div", { class: "total" }, element("span", { class: "label" }, label), element("b", {}, value), element("span", { class: "about" }, about));
	return [
		tile("Cost", money(sum.cost), sum.requests ? `${money(sum.cost / sum.requests)} each` : ""),
		tile("Requests", amount(sum.requests)),
		tile("Failed", percent(sum.failed, sum.requests), sum.failed ? `${amount(sum.failed)} ${sum.failed === 1 ? "request" : "requests"}` : ""),
		tile("Tokens in", amount(sum.input)),
		tile("Tokens out", amount(sum.output))
	];
}
function tableOf(rows) {
	const head = element("tr", {}, ...[
		"Key",
		"Model",
		"Requests",
		"Failed",
		"Tokens in",
		"Tokens out",
		"Cost"
	].map((name, place) => element("th", {
		scope: "col",
		class: place > 1 ? "number" : null
	}, name)));
	const body = table(rows).map((row) => element("tr", {}, element("th", { scope: "row" }, nameOf(row, "key")), element("td", {}, nameOf(row, "model")), ...[
		amount(row.requests),
		row.failed ? `${amount(row.failed)} (${percent(row.failed, row.requests)})` : "0",
		amount(row.input),
		amount(row.output),
		money(row.cost)
	].map((cell) => element("td", { class: "number" }, cell))));
	return element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
}
//#endregion
//#region src/main.ts
var EVERY = [
	live,
	chat,
	playground,
	new UsageSection(),
	keys
];
var CHORD = 1200;
function navigation(sections) {
	const links = sections.map((section) => {
		const key = `g ${section.name[0]}`;
		return element("a", {
			href: address(section.name),
			title: `${section.label} (${key})`
		}, section.label);
	});
	byId("sections").replaceChildren(...links);
	return (shown) => {
		withdrawProblems();
		document.title = `${shown.label} - dragoman`;
		sections.forEach((section, index) => {
			if (section === shown) links[index]?.setAttribute("aria-current", "page");
			else links[index]?.removeAttribute("aria-current");
		});
	};
}
/** g and then a letter goes to a section, unless the user is typing. */
function chords(sections, router) {
	let begun = -Infinity;
	document.addEventListener("keydown", (event) => {
		if (isTyping(event.target) || isOpen() || event.ctrlKey || event.metaKey || event.altKey) return;
		const section = sections.find((one) => one.name.startsWith(event.key));
		if (event.timeStamp - begun < CHORD && section !== void 0) router.go(section.name);
		begun = event.key === "g" ? event.timeStamp : -Infinity;
		if (event.key === "?") shortcuts(sections);
	});
}
function shortcuts(sections) {
	const rows = [
		...(sections.find((section) => section.name === parse$1(location.hash).section)?.keys ?? []).map(([keys, what]) => [keys, what]),
		...sections.map((section) => [`g ${section.name[0]}`, section.label]),
		["?", "This list"],
		["Esc", "Close a window, stop answers"]
	];
	const row = ([keys, what]) => element("tr", {}, element("th", { scope: "row" }, element("kbd", {}, keys)), element("td", {}, what));
	return show("Keyboard", element("table", { class: "keys" }, element("tbody", {}, ...rows.map(row))));
}
async function logOut() {
	await call("POST", "/logout");
	location.href = "/_/login";
}
async function begin() {
	restore();
	byId("theme").addEventListener("click", toggle);
	byId("skip").addEventListener("click", (event) => {
		event.preventDefault();
		byId("section").focus();
	});
	const about = await call("GET", "/site");
	const sections = EVERY.filter((section) => about.sections.includes(section.name));
	const router = new Router(sections, byId("section"), navigation(sections));
	if (about.login) byId("shortcuts").before(button("Log out", attempt(logOut), {
		id: "logout",
		class: "quiet"
	}));
	byId("shortcuts").addEventListener("click", () => void shortcuts(sections));
	chords(sections, router);
	router.start();
}
attempt(begin)();
//#endregion
