// Several models in one conversation: a list of conversations, a timeline with a column per model, a composer.

import "./chat.css";
import { call } from "../api.ts";
import { copy } from "../clipboard.ts";
import { ask, askText, confirmAction, isOpen } from "../dialogs.ts";
import { button, element } from "../dom.ts";
import { attempt, notice } from "../notices.ts";
import type { Section, Route } from "../router.ts";
import { Composer } from "./composer.ts";
import { textOf } from "./groups.ts";
import { Session } from "./session.ts";
import { Sidebar } from "./sidebar.ts";
import { Timeline } from "./timeline.ts";
import { unknownMention } from "./mentions.ts";
import type { Attachment, Entry, Gauge, Snapshot, State, Translation } from "./types.ts";
import { chooseModels, exportAs, showAs, showTranslation } from "./windows.ts";

const TRIES = ["@all What is the weather in Paris?", "6 * 7", "@all Save a note: tea at five"];

class Chat implements Section {
  readonly name = "chat";
  readonly label = "Chat";
  readonly keys = [["Alt+N", "New conversation"], ["Enter", "Send"], ["Tab", "Complete a mention"]] as const;
  #state: State = { models: [], tools: [], share: false, default: [], formats: [], warning: "" };
  #shown = false;
  readonly #session = new Session(
    {
      snapshot: (snapshot) => this.#take(snapshot),
      said: ({ entry, models = [] }) => {
        this.#timeline.addEntry(entry, models);
        void this.#sidebar.refresh();
      },
      answer_started: (answer) => this.#working(() => this.#timeline.started(answer)),
      activity: ({ answer, event }) => this.#timeline.with(answer, (card) => card.activity(event)),
      permission_asked: (question) => this.#timeline.addQuestion(question),
      permission_settled: ({ id }) => this.#timeline.settled(id),
      answer_ended: ({ answer, model, status, entries }) => {
        this.#working(() => this.#timeline.with(answer, (card) => card.finished(entries)));
        // Announced once, not word by word, so that screen readers can follow several answers.
        this.#announcer.textContent = `${model} ${status === "ok" ? "has answered" : "has not completed its answer"}.`;
      },
      turn_ended: () => this.#working(() => void this.#sidebar.refresh()),
      gauges: ({ gauges, title }) => {
        this.#composer.showModels(gauges);
        this.#entitle(title);
      },
      notice: ({ text, level }) => notice(text, level === "warning" ? "problem" : "info"),
    },
    (problem) => notice(problem.message, "problem"),
  );
  readonly #sidebar = new Sidebar({
    open: (id) => this.#open(id),
    shown: () => this.#session.id,
    named: (name) => this.#entitle(name),
  });
  readonly #timeline = new Timeline(
    () => this.#state,
    {
      copy: (text: string) => copy(text, "Text"),
      retry: attempt((answer: string) => this.#session.call("POST", "/retry", { answer })),
      branch: attempt((entry: string) => this.#branch(entry)),
      showAs: attempt((part: string) => showAs(this.#session.path(), part, this.#state)),
      stop: (answer: string) => this.#stop(answer),
      permit: attempt((id: string, given: unknown) =>
        this.#session.call("POST", `/permissions/${encodeURIComponent(id)}`, given),
      ),
      edit: (entry: Entry) => this.#edit(entry),
    },
    () => this.#welcome(),
  );
  readonly #composer = new Composer(() => this.#state, {
    send: async (text, attachments, how) => (await this.#send(text, attachments, how)) ?? false,
    choose: attempt(async (model: string) => {
      this.#state = await call<State>("PATCH", "/chat/options", { default: model ? [model] : [] });
      this.#composer.showModels();
    }),
    stop: () => this.#stop(),
    count: async (text) => (this.#session.id ? this.#session.call<Gauge[]>("POST", "/gauges", { text }) : []),
  });
  readonly #announcer = element("div", { class: "sr", role: "log", "aria-live": "polite" });
  readonly #title = element("h1", { id: "title" }, "New conversation");
  #ofConversation: HTMLButtonElement[] = [];

  // ── the section ──

  async mount(root: HTMLElement): Promise<void> {
    const bar = element("header", { class: "bar" }, this.#sidebar.menu, this.#title, ...this.#actions());
    const talk = element("div", { class: "talk" }, bar, this.#timeline.node, this.#composer.node, this.#announcer);
    root.append(this.#sidebar.node, talk);
    this.#timeline.node.addEventListener("click", () => this.#sidebar.close());
    this.#composer.files.listen(root, this.#composer.node);
    document.addEventListener("keydown", (event) => this.#pressed(event));
    this.#state = await call<State>("GET", "/chat/state");
    if (this.#state.warning) notice(this.#state.warning, "problem");
  }

  /** Actions on the conversation; behind one button on a phone. */
  #actions(): HTMLElement[] {
    const all = {
      rename: button("Rename", attempt(() => this.#rename()), { id: "rename" }),
      system: button("System", attempt(() => this.#system()), { id: "system", title: "System prompt" }),
      models: button("Models", () => void this.#models(), { id: "models", title: "Models and options" }),
      export: button("Export", attempt(() => exportAs(this.#session.path(), this.#state)), { id: "export" }),
      delete: button("Delete", attempt(() => this.#delete()), { id: "delete", class: "danger" }),
    };
    this.#ofConversation = [all.rename, all.export, all.delete];
    const row = element("div", { class: "actions", id: "actions" }, ...Object.values(all));
    const attributes = { id: "more", "aria-label": "More", "aria-controls": "actions", "aria-expanded": "false" };
    const toggle = (): void => more.setAttribute("aria-expanded", String(row.classList.toggle("open")));
    const more = button("⋯", toggle, attributes);
    document.addEventListener("click", (event) => {
      if (event.target === more) return;
      row.classList.remove("open");
      more.setAttribute("aria-expanded", "false");
    });
    return [row, more];
  }

  enter(route: Route): void {
    this.#shown = true;
    const id = route.rest[0] ?? null;
    if (id === null && this.#session.id !== null) this.#open(this.#session.id); // back from another section
    else this.#open(id);
  }

  leave(): void {
    this.#shown = false;
    this.#session.suspend();
    this.#composer.forget();
  }

  #pressed(event: KeyboardEvent): void {
    if (!this.#shown || isOpen()) return;
    if (event.key === "Escape" && this.#composer.isBusy) this.#stop();
    if (event.altKey && event.code === "KeyN") {
      event.preventDefault();
      this.#open(null);
    }
  }

  // ── one conversation ──

  #open(id: string | null): void {
    this.#composer.forget();
    this.#sidebar.close();
    this.#session.open(id);
    if (id === null) this.#composer.focus();
  }

  #take(snapshot: Snapshot): void {
    this.#timeline.show(snapshot);
    this.#composer.showModels(snapshot.gauges);
    this.#entitle(snapshot.title);
    this.#working(() => void this.#sidebar.refresh());
  }

  #entitle(title: string): void {
    this.#title.textContent = title;
    document.title = `${title} - dragoman`;
    for (const one of this.#ofConversation) one.disabled = this.#session.id === null;
  }

  #working(work: () => void): void {
    work();
    const { busy } = this.#timeline;
    this.#composer.busy(busy);
    this.#timeline.node.setAttribute("aria-busy", String(busy));
  }

  #welcome(): HTMLElement {
    const tries = TRIES.map((text) => button(text, () => this.#composer.write(text)));
    const names = this.#state.models.map((one) => `@${one.name}`).join(", ");
    const simulated = this.#state.models.some((one) => one.simulated)
      ? element("p", { class: "soft" }, element("span", { class: "simulated" }, "simulated"), " Simulators answer: no keys, no cost. Conversations with them are kept apart from real ones.")
      : null;
    const words = element("p", {}, `Ask ${names}, or @all of them at once.`);
    return element("div", { class: "empty" }, words, simulated, ...tries);
  }

  // ── talking ──

  readonly #send = attempt(async (text: string, attachments: readonly Attachment[], how: { memo?: boolean; format?: string }): Promise<boolean> => {
    const unknown = how.memo ? null : unknownMention(text, this.#state.models.map((one) => one.name));
    if (unknown !== null) throw new Error(`There is no model named @${unknown}. Nothing was sent; there are ${this.#state.models.map((one) => `@${one.name}`).join(", ")} and @all.`);
    await this.#session.ensure();
    const { turn, translations = [] } = await this.#session.call<{ turn: string; translations?: Translation[] }>("POST", "/messages", { text, attachments, ...how });
    this.#timeline.translated(turn, translations, (one) => void showTranslation(one));
    this.#timeline.toEnd();
    return true;
  });

  readonly #stop = attempt((answer?: string) => this.#session.call("POST", "/stop", answer ? { answer } : {}));

  async #branch(entry: string): Promise<void> {
    const given = { branch: this.#session.id, entry };
    const { id } = await call<{ id: string }>("POST", "/chat/conversations", given);
    this.#open(id);
    notice("This is a branch: the original conversation is unchanged.");
  }

  async #edit(entry: Entry): Promise<void> {
    const about = "The conversation continues in a branch; this one stays unchanged.";
    const text = await askText("Edit and resend", about, textOf(entry));
    if (text === null) return;
    const given = { branch: this.#session.id, entry: entry.id, before: true };
    const { id } = await call<{ id: string }>("POST", "/chat/conversations", given);
    this.#open(id);
    await this.#session.call("POST", "/messages", { text, attachments: attachmentsOf(entry) });
  }

  // ── its settings ──

  async #rename(): Promise<void> {
    const name = await ask("Rename", "Name", this.#session.snapshot.name);
    if (name) await this.#session.call("PATCH", "", { name });
    await this.#sidebar.refresh();
  }

  async #system(): Promise<void> {
    const about = "Sent to every model before all messages.";
    const text = await askText("System prompt", about, this.#session.snapshot.system_prompt);
    if (text === null) return;
    await this.#session.ensure();
    await this.#session.call("PATCH", "", { system_prompt: text });
  }

  async #delete(): Promise<void> {
    const sure = await confirmAction(`Delete “${this.#title.textContent}”?`, "This cannot be undone.", "Delete");
    if (!sure) return;
    const path = this.#session.path();
    this.#session.suspend(); // its stream would report an error
    this.#composer.forget();
    await call("DELETE", path);
    this.#open(null);
  }

  async #models(): Promise<void> {
    await chooseModels(this.#state, (state) => {
      this.#state = state;
      this.#composer.showModels();
    });
  }
}

function attachmentsOf(entry: Entry): Attachment[] {
  return (entry.content ?? []).flatMap((part) => {
    if (part.type !== "image" && part.type !== "document" && part.type !== "audio") return [];
    const data = part.data ?? base64(part.text ?? "");
    return [{ name: part.title ?? "", media_type: part.media_type ?? "", data }];
  });
}

function base64(text: string): string {
  return btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(""));
}

export const chat: Section = new Chat();
