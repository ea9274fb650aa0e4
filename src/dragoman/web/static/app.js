// src/api.ts
var HEADERS = {
	"x-dragoman-page": "1",
	"content-type": "application/json"
};
/** The server's own words, and its status. */
var Problem = class extends Error {
	status;
	constructor(message, status) {
		super(message);
		this.status = status;
	}
};
async function call(method, path, body) {
	const sent = body === void 0 ? {} : { body: JSON.stringify(body) };
	const answer = await fetch(`/_/api${path}`, {
		method,
		headers: HEADERS,
		...sent
	});
	if (answer.status === 401) location.href = "/_/login";
	const told = await answer.json().catch(() => null);
	if (!answer.ok) throw new Problem(wordsOf(told) ?? `the server answered ${answer.status}`, answer.status);
	return told;
}
function wordsOf(told) {
	const error = typeof told === "object" && told !== null && "error" in told ? told.error : null;
	return typeof error === "string" ? error : null;
}
// src/dom.ts
/** `on…` listens, `true` is an attribute without a value, `false`, `null` and `undefined` leave it out. */
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
/** What the page certainly has. */
function byId(id) {
	const found = document.getElementById(id);
	if (found === null) throw new Error(`the page has no #${id}`);
	return found;
}
function isTyping(target) {
	return target instanceof HTMLElement && (target.isContentEditable || target.matches("input, textarea, select"));
}
// src/chat/index.ts
var chat = {
	name: "chat",
	label: "Chat",
	mount(root) {
		root.append(element("h1", {}, "Chat"));
	},
	enter() {},
	leave() {}
};
// src/dialogs.ts
function opened(title, body, choices) {
	const dialog = byId("dialog");
	return new Promise((done) => {
		let answer = null;
		const row = choices.map(([label, kind, give]) => {
			const choose = () => {
				answer = give();
				dialog.close();
			};
			return element("button", {
				type: "button",
				class: kind,
				onclick: choose
			}, label);
		});
		const heading = element("h2", { id: "dialog-title" }, title);
		dialog.replaceChildren(heading, ...body, element("div", { class: "row end" }, ...row));
		const closed = () => {
			if (dialog.open) return;
			dialog.removeEventListener("close", closed);
			done(answer);
		};
		dialog.addEventListener("close", closed);
		dialog.showModal();
		(dialog.querySelector("textarea, input, select") ?? row[0])?.focus();
	});
}
var isOpen = () => byId("dialog").open;
async function show(title, ...body) {
	await opened(title, body, [[
		"Close",
		"primary",
		() => null
	]]);
}
// src/live/index.ts
var live = {
	name: "live",
	label: "Live",
	mount(root) {
		root.append(element("h1", {}, "Live"));
	},
	enter() {},
	leave() {}
};
// src/notices.ts
var SHOWN_FOR = 6e3;
function notice(text, kind = "info") {
	const line = element("div", { class: kind }, element("span", {}, text));
	line.append(element("button", {
		type: "button",
		class: "small",
		"aria-label": "Close",
		onclick: () => line.remove()
	}, "×"));
	byId("status").append(line);
	if (kind === "info") setTimeout(() => line.remove(), SHOWN_FOR);
}
/** The same work, with what goes wrong told instead of thrown. */
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
// src/playground/index.ts
var playground = {
	name: "playground",
	label: "Playground",
	mount(root) {
		root.append(element("h1", {}, "Playground"));
	},
	enter() {},
	leave() {}
};
// src/router.ts
function parse(hash) {
	const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s, 2);
	const [place = "", ...rest] = path.split("/").map(decoded);
	return {
		place,
		rest: rest.filter((step) => step !== ""),
		query: new URLSearchParams(query)
	};
}
function decoded(step) {
	try {
		return decodeURIComponent(step);
	} catch {
		return step;
	}
}
function address(place, rest = [], query = {}) {
	const path = [place, ...rest].map(encodeURIComponent).join("/");
	const words = new URLSearchParams(query).toString();
	return `#/${path}${words ? `?${words}` : ""}`;
}
/** Another address for what is shown already: no new step in the history, and nobody is told. */
function rewrite(hash) {
	history.replaceState(null, "", hash);
}
var Router = class {
	#places;
	#host;
	#changed;
	#roots = /* @__PURE__ */ new Map();
	#shown = null;
	constructor(places, host, changed) {
		this.#places = places;
		this.#host = host;
		this.#changed = changed;
	}
	start() {
		addEventListener("hashchange", () => void this.#follow());
		this.#follow();
	}
	go(place) {
		location.hash = address(place);
	}
	async #follow() {
		const route = parse(location.hash);
		const place = this.#places.find((one) => one.name === route.place);
		if (place === void 0) {
			const [first] = this.#places;
			if (first !== void 0) rewrite(address(first.name));
			if (first !== void 0) await this.#show(first, parse(location.hash));
			return;
		}
		await this.#show(place, route);
	}
	async #show(place, route) {
		if (this.#shown !== place) {
			this.#shown?.leave();
			this.#shown = place;
			this.#changed(place);
		}
		const { root, ready } = this.#rootOf(place);
		for (const other of this.#host.children) other.toggleAttribute("hidden", other !== root);
		await ready;
		if (this.#shown === place) place.enter(route);
	}
	#rootOf(place) {
		let found = this.#roots.get(place);
		if (found === void 0) {
			const root = document.createElement("div");
			root.className = `place ${place.name}`;
			this.#host.append(root);
			found = {
				root,
				ready: Promise.resolve(place.mount(root))
			};
			this.#roots.set(place, found);
		}
		return found;
	}
};
// src/theme.ts
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
// src/main.ts
var EVERY = [
	live,
	chat,
	playground
];
var CHORD = 1200;
function navigation(places) {
	const links = places.map((place) => {
		const key = `g ${place.name[0]}`;
		return element("a", {
			href: address(place.name),
			title: `${place.label} (${key})`
		}, place.label);
	});
	byId("places").replaceChildren(...links);
	return (shown) => {
		document.title = `${shown.label} - dragoman`;
		places.forEach((place, index) => {
			if (place === shown) links[index]?.setAttribute("aria-current", "page");
			else links[index]?.removeAttribute("aria-current");
		});
	};
}
/** g and then a letter goes to a place; not while one is writing. */
function chords(places, router) {
	let begun = 0;
	document.addEventListener("keydown", (event) => {
		if (isTyping(event.target) || isOpen() || event.ctrlKey || event.metaKey || event.altKey) return;
		const place = places.find((one) => one.name.startsWith(event.key));
		if (event.timeStamp - begun < CHORD && place !== void 0) router.go(place.name);
		begun = event.key === "g" ? event.timeStamp : 0;
		if (event.key === "?") shortcuts(places);
	});
}
function shortcuts(places) {
	return show("Keyboard", element("table", { class: "keys" }, element("tbody", {}, ...[
		...places.map((place) => [`g ${place.name[0]}`, place.label]),
		["?", "This list"],
		["Esc", "Close a window, stop answers"]
	].map(([keys, what]) => element("tr", {}, element("th", {}, element("kbd", {}, keys)), element("td", {}, what))))));
}
async function begin() {
	restore();
	byId("theme").addEventListener("click", toggle);
	byId("skip").addEventListener("click", (event) => {
		event.preventDefault();
		byId("place").focus();
	});
	const about = await call("GET", "/site");
	const places = EVERY.filter((place) => about.places.includes(place.name));
	const router = new Router(places, byId("place"), navigation(places));
	byId("keys").addEventListener("click", () => void shortcuts(places));
	chords(places, router);
	router.start();
}
attempt(begin)();
