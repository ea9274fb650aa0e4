// The conversation, turn by turn, with a column for each answer.

import { button, element } from "../dom.ts";
import { formatName } from "../live/display.ts";
import { lossCount } from "../losses.ts";
import { markdown } from "../markdown.ts";
import { attempt } from "../notices.ts";
import { Card, type CardActions } from "./card.ts";
import { type Group, groupAnswers, textOf } from "./groups.ts";
import { picture } from "./toolcard.ts";
import type { Entry, Part, Question, Snapshot, Started, State, Translation } from "./types.ts";

const NEAR = 120; // pixels from the end within which new content scrolls into view

export interface TimelineActions extends CardActions {
  edit(entry: Entry): unknown;
}

interface Turn {
  readonly node: HTMLElement;
  readonly answers: HTMLElement;
}

export class Timeline {
  readonly node = element("section", { id: "timeline", "aria-label": "Conversation", tabindex: 0 });
  readonly #state: () => State;
  readonly #actions: TimelineActions;
  readonly #welcome: () => HTMLElement;
  readonly #turns = new Map<string, Turn>();
  readonly #cards = new Map<string, Card>();

  constructor(state: () => State, actions: TimelineActions, welcome: () => HTMLElement) {
    this.#state = state;
    this.#actions = actions;
    this.#welcome = welcome;
  }

  get busy(): boolean {
    return [...this.#cards.values()].some((card) => card.running);
  }

  show(snapshot: Snapshot): void {
    this.#turns.clear();
    this.#cards.clear();
    const page = document.createDocumentFragment();
    const groups = groupAnswers(snapshot.entries);
    const answered = new Set([...groups.filter((one) => one.speaker !== "user").map((one) => one.turn), ...snapshot.running.map((one) => one.turn)]);
    for (const group of groups) this.#draw(group, answered, page);
    this.node.replaceChildren(...(snapshot.entries.length ? [] : [this.#welcome()]), page);
    for (const one of snapshot.running) this.started(one, one.entries);
    for (const question of snapshot.questions) this.addQuestion(question);
    requestAnimationFrame(() => this.toEnd());
  }

  #draw(group: Group, answered: ReadonlySet<string>, page: ParentNode): void {
    const [first] = group.entries;
    if (first === undefined) return;
    if (group.speaker === "user") this.#say(first, !answered.has(group.turn), page);
    else if (group.speaker === "system") {
      const problem = element("div", { class: "problem" }, first.error || "unreadable entry");
      this.#turn(group.turn, page).answers.append(problem);
    } else this.#place(group.key, group.turn, group.speaker, page).finished(group.entries);
  }

  #turn(id: string, page: ParentNode = this.node): Turn {
    let turn = this.#turns.get(id);
    if (turn === undefined) {
      const answers = element("div", { class: "answers" });
      turn = { node: element("article", { class: "turn" }, answers), answers };
      this.#turns.set(id, turn);
      page.append(turn.node);
    }
    return turn;
  }

  /** Columns are in the order of the models, not of arrival. */
  #place(key: string, turn: string, model: string, page?: ParentNode): Card {
    const { models } = this.#state();
    const card = new Card(key, model, models, this.#actions);
    this.#cards.set(key, card);
    const { answers } = this.#turn(turn, page);
    const rank = (name: string | undefined): number => models.findIndex((one) => one.name === name);
    const columns = [...answers.children].filter((node) => node instanceof HTMLElement);
    const after = columns.find((node) => rank(node.dataset["model"]) > rank(model));
    answers.insertBefore(card.node, after ?? null);
    return card;
  }

  #say(entry: Entry, isMemo: boolean, page?: ParentNode): void {
    this.node.querySelector(".empty")?.remove();
    const { node, answers } = this.#turn(entry.turn || entry.id, page);
    const text = textOf(entry);
    const { copy, edit, branch, showAs } = this.#actions;
    const small = { class: "small" };
    const foot = element(
      "div",
      { class: "foot" },
      button("Copy", () => copy(text), small),
      button("Edit and resend", attempt(() => edit(entry)), small),
      button("Branch", () => branch(entry.id), small),
      button("Show as…", () => showAs(entry.id), small),
    );
    const bubble = element("div", { class: "bubble" }, ...(entry.content ?? []).flatMap(userPart));
    const [kind, label] = isMemo ? ["mine memo", "Your memo"] : ["mine", "You"];
    node.insertBefore(element("div", { class: kind, role: "group", "aria-label": label }, bubble, foot), answers);
  }

  // ── what happens ──

  addEntry(entry: Entry, models: readonly string[]): void {
    this.#following(() => this.#say(entry, models.length === 0));
  }

  /** The gateway's translations of a message sent in another format. */
  translated(turn: string, translations: readonly Translation[], open: (one: Translation) => void): void {
    const found = this.#turns.get(turn);
    if (found === undefined || translations.length === 0) return;
    const chips = translations.map((one) => {
      const lost = lossCount(one.losses);
      const words = one.problem || `${formatName(one.source)} → ${formatName(one.target)}`;
      const tally = one.problem ? null : element("span", { class: lost ? "tally" : "whole" }, lost ? `${lost} lost` : "nothing lost");
      return element("button", { type: "button", class: "translation", onclick: () => open(one) }, element("b", {}, `@${one.model}`), ` ${words} `, tally);
    });
    this.#following(() => found.node.insertBefore(element("div", { class: "translations", role: "group", "aria-label": "Translations" }, ...chips), found.answers));
  }

  started({ answer, turn, model, replaces }: Started, entries: readonly Entry[] = []): void {
    this.#following(() => {
      if (replaces) this.#cards.get(replaces)?.replaced();
      this.#place(answer, turn, model).begin(entries);
    });
  }

  with(answer: string, work: (card: Card) => void): void {
    const card = this.#cards.get(answer);
    if (card !== undefined) this.#following(() => work(card));
  }

  addQuestion(question: Question): void {
    this.with(question.answer, (card) => card.ask(question));
  }

  settled(question: string): void {
    for (const card of this.#cards.values()) card.settled(question);
  }

  // ── the end ──

  #following(work: () => void): void {
    const { scrollHeight, scrollTop, clientHeight } = this.node;
    const follows = scrollHeight - scrollTop - clientHeight < NEAR;
    work();
    if (follows) this.toEnd();
  }

  /** Unseen content has no exact height yet, so the end moves while scrolling there. */
  toEnd(frames = 30): void {
    const before = this.node.scrollTop;
    this.node.scrollTop = this.node.scrollHeight;
    if (frames > 0 && this.node.scrollTop !== before) requestAnimationFrame(() => this.toEnd(frames - 1));
  }
}

function userPart(part: Part): Node[] {
  if (part.type === "text") return markdown(part.content);
  if (part.type === "image") return picture(part);
  const title = "title" in part ? (part.title ?? "") : "";
  return [element("span", { class: "chip" }, `${part.type} ${title}`)];
}
