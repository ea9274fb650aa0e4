"""The simulated model: deterministic, and worth talking to.

It reads the newest request of the user's, decides which tools it speaks of, calls them with arguments that fit their
schemas, reads what came back, and answers from it. Same question, same seed: same answer.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dragoman.sim import prompt_reading, tokens
from dragoman.sim.conversation_view import (
    Answer,
    Asked,
    Call,
    Called,
    Counts,
    Finish,
    JsonObject,
    Part,
    Result,
    Said,
    Thought,
    Tool,
    Turn,
    call_of,
    compact,
)
from dragoman.sim.schema_examples import Hints, arguments_for, instance_of

# A tool is meant when its name shares a telling word with the request, or its description two.
NAME_WEIGHT = 3
MEANT = 3
LONGEST_QUOTE = 400
LONGEST_COUNT = 20_000
RAMBLE = "a river carries words between two towns that share no language and nobody loses one"


def respond(asked: Asked) -> Answer:
    """Thoughts, words and calls, within the limits that were set."""
    return limited(asked, list(_parts(asked)), counts=Counts(input=tokens.count_asked(asked)))


# --- where the conversation stands ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Situation:
    asked: Asked
    question: str
    media: tuple[str, ...]
    # How often tools were called since the question, and what the calls brought.
    rounds: int
    results: tuple[Result, ...]
    # What the user said beside or right after results that have no answer yet.
    remark: str = ""


def situation_of(asked: Asked) -> Situation:
    turns = asked.turns
    asking = [index for index, turn in enumerate(turns) if _asks(turn)]
    questions = [index for index in asking if not _comments(turns, index)]
    start = questions[-1] if questions else -1
    after = turns[start + 1 :]
    remarks = [turns[index] for index in asking if index > start]
    return Situation(
        asked,
        question=turns[start].text if questions else "\n".join(turn.text for turn in remarks),
        media=tuple(kind for turn in (*turns[max(start, 0) : start + 1], *remarks) for kind in turn.media),
        rounds=_rounds(after),
        results=_last_results(after),
        remark="\n".join(turn.text for turn in remarks),
    )


def _comments(turns: Sequence[Turn], index: int) -> bool:
    """Words beside results, or right after them, are no new question: some clients put pictures there."""
    before = turns[index - 1] if index else None
    return bool(turns[index].results or (before and before.role == "user" and before.results))


def _asks(turn: Turn) -> bool:
    return turn.role == "user" and bool(turn.text.strip() or turn.media)


def _rounds(turns: Sequence[Turn]) -> int:
    return sum(1 for turn in turns if turn.calls)


def _last_results(turns: Sequence[Turn]) -> tuple[Result, ...]:
    """Everything since the question that tools brought, oldest first."""
    return tuple(result for turn in turns for result in turn.results)


# --- what to say ----------------------------------------------------------------------------------------------------


def _parts(asked: Asked) -> Iterator[Part]:
    situation = situation_of(asked)
    calls = calls_for(situation)
    if asked.thinks:
        yield Thought(_thought(situation, calls))
    if calls:
        if asked.narrates and not asked.choice.must:
            yield Said(f"I'll use {_enumerated(list(dict.fromkeys(call.name for call in calls)))} for that.")
        yield from calls
    else:
        yield Said(_said(situation))


def _thought(situation: Situation, calls: Sequence[Called]) -> str:
    about = _shortened(" ".join(situation.question.split()), 120)
    opening = f'The user asks: "{about}".' if about else "There is no question of the user's to answer."
    if calls:
        plan = f"I should call {_enumerated([f'{call.name} with {call.text}' for call in calls])}."
    elif situation.results:
        failed = sum(result.failed for result in situation.results)
        plan = f"I have {len(situation.results)} results, {failed} of them errors, and can answer now."
    else:
        plan = "No tool is needed; I can answer directly."
    return f"{opening} {plan}"


def _said(situation: Situation) -> str:
    asked = situation.asked
    prose = _prose(situation)
    if asked.schema is not None:
        return compact(instance_of(asked.schema, Hints(_with_results(situation), prose=prose)))
    if asked.any_json:
        return compact({"answer": prose})
    return prose


def _with_results(situation: Situation) -> str:
    return " ".join([situation.question, *(result.text for result in situation.results)])


def _prose(situation: Situation) -> str:
    if not situation.results:
        return _by_skill(situation, situation.question) or _small_talk(situation)
    return " ".join(filter(None, (_told(situation), _by_skill(situation, situation.remark))))


def _by_skill(situation: Situation, text: str) -> str:
    for pattern, skill in SKILLS:
        if found := pattern.search(text):
            return skill(found, situation)
    return ""


def _told(situation: Situation) -> str:
    """One sentence per result. Of several calls of one tool, each is told with what it was about."""
    made = [call for turn in situation.asked.turns for call in turn.calls]
    told: list[str] = []
    for result in situation.results:
        answered = next((call for call in made if _answers(result, call)), None)
        if answered is not None:
            made.remove(answered)
        told.append(_told_one(result, _about(answered)))
    return " ".join(told)


def _answers(result: Result, call: Call) -> bool:
    return call.id == result.call_id if result.call_id and call.id else call.name == result.name


def _about(call: Call | None) -> str:
    arguments = call.arguments if call else None
    values = arguments.values() if isinstance(arguments, dict) else ()
    return next((_shortened(value, 40) for value in values if isinstance(value, str) and value), "")


def _told_one(result: Result, about: str) -> str:
    text = _shortened(_plain(result.text), LONGEST_QUOTE)
    name = f"{result.name} ({about})" if about else result.name
    if result.failed:
        return f"{name} failed: {text or 'no reason given'}."
    seen = f" (with {result.media} attachment{'s' if result.media > 1 else ''})" if result.media else ""
    return f"{name} says{seen}: {text or 'nothing'}."


def _plain(text: str) -> str:
    """JSON objects read better as `key value` pairs."""
    try:
        value = json.loads(text)
    except ValueError:
        return text.strip().rstrip(".")
    if isinstance(value, dict) and list(value) == ["output"]:
        value = value["output"]
    if isinstance(value, dict):
        return ", ".join(f"{key} {item if isinstance(item, str) else compact(item)}" for key, item in value.items())
    return value.strip().rstrip(".") if isinstance(value, str) else compact(value)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _enumerated(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


# --- what it can do without tools -----------------------------------------------------------------------------------


def _repeat(found: re.Match[str], _: Situation) -> str:
    quoted = prompt_reading.quoted(found[1])
    return quoted[0] if quoted else found[1].strip().rstrip(".")


def _count(found: re.Match[str], _: Situation) -> str:
    first, last = int(found[1] or 1), int(found[2])
    return " ".join(str(number) for number in range(first, min(last, first + LONGEST_COUNT) + 1))


def _reckon(found: re.Match[str], _: Situation) -> str:
    left, right = float(found[1]), float(found[3])
    operations: dict[str, Callable[[], float]] = {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "x": lambda: left * right,
        "/": lambda: left / right if right else float("nan"),
    }
    return f"{found[1]} {found[2]} {found[3]} = {operations[found[2]]():g}"


def _recall_name(_: re.Match[str], situation: Situation) -> str:
    for turn in reversed(situation.asked.turns):
        if turn.role == "user" and (told := re.search(r"[Mm]y name is (\w[\w'-]*)", turn.text)):
            return f"Your name is {told[1]}."
    return "You have not told me your name."


def _greet(_: re.Match[str], situation: Situation) -> str:
    return _variant(situation, ("Hello! How can I help?", "Hi there. What can I do for you?", "Good to see you!"))


def _ramble(found: re.Match[str], _: Situation) -> str:
    wanted = min(int(found[1]), LONGEST_COUNT)
    vocabulary = RAMBLE.split()
    return " ".join(vocabulary[index % len(vocabulary)] for index in range(wanted))


SKILLS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Situation], str]], ...] = (
    (
        re.compile(r"(?is)\b(?:say|repeat|(?:reply|respond|answer) with)\b(?: exactly| only| just)*[: ]\s*(.+)"),
        _repeat,
    ),
    (re.compile(r"\bcount(?: from (\d{1,9}))?(?: up)? to (\d{1,9})", re.IGNORECASE), _count),
    (re.compile(r"\b(\d{1,5}) words\b", re.IGNORECASE), _ramble),
    (re.compile(r"(-?\d+(?:\.\d+)?)\s*([+*/x-])\s*(-?\d+(?:\.\d+)?)"), _reckon),
    (re.compile(r"\bwhat(?:'s| is) my name\b", re.IGNORECASE), _recall_name),
    (re.compile(r"^\s*(?:hi|hello|hey|good (?:morning|evening))\b", re.IGNORECASE), _greet),
)


def _small_talk(situation: Situation) -> str:
    seen = f" I can see {_enumerated([f'one {kind}' for kind in situation.media])}." if situation.media else ""
    about = _shortened(" ".join(situation.question.split()), LONGEST_QUOTE)
    openings = ("You said", "I understand", "Noted")
    return f'{_variant(situation, openings)}: "{about}".{seen}' if about else f"I am listening.{seen}"


def _variant(situation: Situation, choices: Sequence[str]) -> str:
    """Seeds choose among answers that are equally good."""
    digest = hashlib.sha256(f"{situation.asked.seed}\0{situation.question}".encode()).digest()
    return choices[digest[0] % len(choices)]


# --- which tools ----------------------------------------------------------------------------------------------------


def calls_for(situation: Situation) -> list[Called]:
    asked = situation.asked
    tools = [tool for tool in asked.tools if asked.choice.names is None or tool.name in asked.choice.names]
    if not tools or not asked.choice.may or _forbidden(situation):
        return []
    steps = prompt_reading.steps_of(situation.question)
    wanted = _planned(steps, situation.rounds, tools)
    if not wanted and asked.choice.must:
        step = steps[min(situation.rounds, len(steps) - 1)]
        wanted = [(_best(step, tools), step, ())]
    context = _with_results(situation)
    calls = [
        _spelled_out(tool, situation.question) or _call(tool, Hints(_without_names(text, [tool]), subjects, context))
        for tool, text, subjects in wanted
    ]
    unique = list({(call.name, call.text): call for call in calls}.values())
    return unique if asked.parallel else unique[:1]


Wanted = tuple[Tool, str, tuple[str, ...]]


def _forbidden(situation: Situation) -> bool:
    pattern = r"\b(?:without|don't|do not|no)\b(?: \w+){0,2} (?:tools?|functions?)\b"
    return not situation.asked.choice.must and re.search(pattern, situation.question, re.IGNORECASE) is not None


def _planned(steps: Sequence[str], rounds: int, tools: Sequence[Tool]) -> list[Wanted]:
    """Steps that speak of tools are taken one round each; after the last one it is time to answer."""
    planned = [wanted for step in steps if (wanted := _wanted_in(step, tools))]
    return planned[rounds] if rounds < len(planned) else []


def _wanted_in(step: str, tools: Sequence[Tool]) -> list[Wanted]:
    named = [tool for tool in tools if prompt_reading.mentioned(tool.name, step)]
    if named:
        tools = sorted(named, key=lambda tool: step.find(tool.name))
    wanted: list[Wanted] = []
    latest: list[Tool] = []
    for fragment in prompt_reading.fragments_of(step):
        meant = [tool for tool in tools if _score(tool, fragment) >= MEANT]
        subjects = _subjects(fragment, tools)
        if meant:
            wanted.extend((tool, fragment, subjects) for tool in meant)
            latest = meant
        elif subjects and latest:
            wanted.extend((tool, fragment, subjects) for tool in latest)
    if not wanted and (named or _score(_best(step, tools), step) >= MEANT):
        wanted = [(tool, step, ()) for tool in (named or [_best(step, tools)])]
    return list(_spread(wanted, step, tools))


def _spread(wanted: Sequence[Wanted], step: str, tools: Sequence[Tool]) -> Iterator[Wanted]:
    """One call per subject, where a tool takes one subject at a time; any other tool gets the whole step, once."""
    whole = _subjects(step, tools)
    once: set[str] = set()
    for tool, fragment, subjects in wanted:
        if _takes_one_subject(tool):
            # A fragment that names no subject borrows the step's.
            yield from ((tool, fragment, (subject,)) for subject in subjects)
            if not subjects:
                yield tool, step if whole else fragment, whole[:1]
        elif tool.name not in once:
            once.add(tool.name)
            yield tool, step, whole


def _subjects(text: str, tools: Sequence[Tool]) -> tuple[str, ...]:
    """What the text is about, besides the tools themselves and the options they offer."""
    options = {str(option).lower() for tool in tools for option in _options(tool.parameters)}
    found = prompt_reading.subjects(_without_names(text, tools))
    return tuple(subject for subject in found if subject.lower() not in options)


def _options(schema: JsonObject) -> Iterator[object]:
    properties = schema.get("properties")
    for subschema in properties.values() if isinstance(properties, dict) else ():
        if isinstance(subschema, dict) and isinstance(subschema.get("enum"), list):
            yield from subschema["enum"]


def _without_names(text: str, tools: Sequence[Tool]) -> str:
    for tool in tools:
        text = re.sub(rf"[`\"']?(?<!\w){re.escape(tool.name)}(?!\w)[`\"']?", " ", text)
    return text


def _takes_one_subject(tool: Tool) -> bool:
    properties = tool.parameters.get("properties")
    if not isinstance(properties, dict):
        return False
    first = next((schema for schema in properties.values() if isinstance(schema, dict)), {})
    return str(first.get("type", "string")).lower() == "string" or isinstance(first.get("type"), list)


def _score(tool: Tool, text: str) -> int:
    if prompt_reading.mentioned(tool.name, text):
        return 100
    spoken = prompt_reading.telling(text)
    name = prompt_reading.overlap(prompt_reading.telling(tool.name), spoken)
    return NAME_WEIGHT * name + prompt_reading.overlap(prompt_reading.telling(tool.description), spoken)


def _best(text: str, tools: Sequence[Tool]) -> Tool:
    return max(tools, key=lambda tool: _score(tool, text))


def _call(tool: Tool, hints: Hints) -> Called:
    if tool.free_text:
        return call_of(
            tool.name, {"input": (prompt_reading.quoted(hints.text) or [hints.text.strip()])[0]}, free_text=True
        )
    return call_of(tool.name, arguments_for(tool.parameters, hints))


def _spelled_out(tool: Tool, question: str) -> Called | None:
    """`call f with {"x": 1}`: who spells the arguments out gets them."""
    found = re.search(rf"(?<!\w){re.escape(tool.name)}\b[^{{}}]{{0,40}}(?=\{{)", question)
    if not found or tool.free_text:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(question, found.end())
    except ValueError:
        return None
    return call_of(tool.name, value) if isinstance(value, dict) else None


# --- limits ---------------------------------------------------------------------------------------------------------


def limited(asked: Asked, parts: Sequence[Part], *, counts: Counts, finish: Finish | None = None) -> Answer:
    """The parts as far as stop sequences and the token limit let them come, counted."""
    kept, stopped = _until_stop(parts, asked.stop)
    kept, exhausted = _within(kept, asked.max_tokens)
    counts = replace(
        counts,
        output=sum(tokens.count_part(part) for part in kept),
        thought=sum(tokens.count_part(part) for part in kept if isinstance(part, Thought)),
    )
    called = any(isinstance(part, Called) for part in kept)
    reached: Finish = "length" if exhausted else "stop_sequence" if stopped else "calls" if called else "stop"
    ended = reached if finish is None or exhausted else finish
    return Answer(tuple(kept), ended, counts, stopped if ended == "stop_sequence" else None)


def _until_stop(parts: Sequence[Part], stops: Sequence[str]) -> tuple[list[Part], str | None]:
    kept: list[Part] = []
    for part in parts:
        if isinstance(part, Said):
            found = [(part.text.find(stop), stop) for stop in stops if stop and stop in part.text]
            if found:
                position, stop = min(found)
                kept.append(Said(part.text[:position]))
                return kept, stop
        kept.append(part)
    return kept, None


def _within(parts: Sequence[Part], budget: int | None) -> tuple[list[Part], bool]:
    kept: list[Part] = []
    left = budget
    for part in parts:
        cost = tokens.count_part(part)
        if left is not None and cost > left:
            if left > 0:
                kept.append(_cut(part, left))
            return [one for one in kept if one != Said("")], True
        left = None if left is None else left - cost
        kept.append(part)
    return kept, False


def _cut(part: Part, budget: int) -> Part:
    if isinstance(part, Called):
        spent = tokens.PER_CALL + tokens.count(part.name)
        text = "".join(tokens.pieces(part.text)[: max(budget - spent, 0)])
        return replace(part, text=text, complete=False)
    return replace(part, text="".join(tokens.pieces(part.text)[:budget]))
