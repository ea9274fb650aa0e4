"""The simulated model: deterministic, with plausible answers.

It reads the user's newest request, selects the tools that the request mentions, calls them with arguments that fit
their schemas, and answers from the results. The same question and seed give the same answer.
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
    Call,
    CallPart,
    Counts,
    Finish,
    JsonObject,
    Part,
    Prompt,
    Result,
    TextPart,
    ThoughtPart,
    Tool,
    Turn,
    call_of,
    compact,
)
from dragoman.sim.schema_examples import Hints, arguments_for, instance_of

# A tool is selected if its name shares one significant word with the request, or its description two.
NAME_WEIGHT = 3
MEANT = 3
LONGEST_QUOTE = 400
LONGEST_SUMMARY = 300
LONGEST_COUNT = 20_000
RAMBLE = "a river carries words between two towns that share no language and nobody loses one"


def respond(prompt: Prompt) -> Answer:
    """Thoughts, text and calls, within the limits of the request."""
    return apply_limits(prompt, list(_parts(prompt)), counts=Counts(input=tokens.count_prompt(prompt)))


# --- where the conversation stands ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Situation:
    prompt: Prompt
    question: str
    media: tuple[str, ...]
    # Rounds of calls since the question, and their results.
    rounds: int
    results: tuple[Result, ...]
    # Text of the user beside or right after unanswered results.
    remark: str = ""


def situation_of(prompt: Prompt) -> Situation:
    turns = prompt.turns
    texts = [prompt_reading.without_context(turn.text) for turn in turns]
    if not any(text.strip() for turn, text in zip(turns, texts, strict=True) if turn.role == "user"):
        texts = [turn.text for turn in turns]
    asking = [index for index, turn in enumerate(turns) if turn.role == "user" and (texts[index].strip() or turn.media)]
    questions = [index for index in asking if not _is_comment(turns, index)]
    start = questions[-1] if questions else -1
    after = turns[start + 1 :]
    remarks = [index for index in asking if index > start]
    return Situation(
        prompt,
        question=texts[start] if questions else "\n".join(texts[index] for index in remarks),
        media=tuple(kind for index in (*range(max(start, 0), start + 1), *remarks) for kind in turns[index].media),
        rounds=sum(1 for turn in after if turn.calls),
        results=tuple(result for turn in after for result in turn.results),
        remark="\n".join(texts[index] for index in remarks),
    )


def _is_comment(turns: Sequence[Turn], index: int) -> bool:
    """Text beside results, or right after them, is not a new question: some clients put images there."""
    before = turns[index - 1] if index else None
    return bool(turns[index].results or (before and before.role == "user" and before.results))


# --- what to say ----------------------------------------------------------------------------------------------------


def _parts(prompt: Prompt) -> Iterator[Part]:
    situation = situation_of(prompt)
    calls = calls_for(situation)
    if prompt.thinks:
        yield ThoughtPart(_thought_text(situation, calls))
    if calls:
        if prompt.narrates and not prompt.choice.must:
            yield TextPart(f"I'll use {_enumerate_words(list(dict.fromkeys(call.name for call in calls)))} for that.")
        yield from calls
    else:
        yield TextPart(_answer_text(situation))


def _thought_text(situation: Situation, calls: Sequence[CallPart]) -> str:
    about = _shorten(" ".join(situation.question.split()), 120)
    opening = f'The user asks: "{about}".' if about else "There is no question to answer."
    if calls:
        plan = f"I should call {_enumerate_words([f'{call.name} with {call.text}' for call in calls])}."
    elif situation.results:
        count, failed = len(situation.results), sum(result.failed for result in situation.results)
        errors = f", {failed} of them an error" if failed == 1 else f", {failed} of them errors" if failed else ""
        plan = f"I have {count} result{'s' if count > 1 else ''}{errors}, and can answer now."
    else:
        plan = "No tool is needed; I can answer directly."
    return f"{opening} {plan}"


def _answer_text(situation: Situation) -> str:
    prompt = situation.prompt
    prose = _prose(situation)
    if prompt.schema is not None:
        return compact(instance_of(prompt.schema, Hints(_with_results(situation), prose=prose)))
    if prompt.any_json:
        return compact({"answer": prose})
    return prose


def _with_results(situation: Situation) -> str:
    return " ".join([situation.question, *(result.text for result in situation.results)])


def _prose(situation: Situation) -> str:
    if not situation.results:
        return _by_skill(situation, situation.question) or _small_talk(situation)
    return " ".join(filter(None, (_describe_results(situation), _by_skill(situation, situation.remark))))


def _by_skill(situation: Situation, text: str) -> str:
    for pattern, skill in SKILLS:
        if found := pattern.search(text):
            return skill(found, situation)
    return ""


def _describe_results(situation: Situation) -> str:
    """One sentence per result. Results of several calls of one tool are labelled with their subject."""
    made = [call for turn in situation.prompt.turns for call in turn.calls]
    sentences: list[str] = []
    for result in situation.results:
        answered = next((call for call in made if _is_answer_to(result, call)), None)
        if answered is not None:
            made.remove(answered)
        sentences.append(_describe_result(result, _about(answered)))
    return " ".join(sentences)


def _is_answer_to(result: Result, call: Call) -> bool:
    return call.id == result.call_id if result.call_id and call.id else call.name == result.name


def _about(call: Call | None) -> str:
    arguments = call.arguments if call else None
    values = arguments.values() if isinstance(arguments, dict) else ()
    return next((_shorten(value, 40) for value in values if isinstance(value, str) and value), "")


def _describe_result(result: Result, about: str) -> str:
    text = _shorten(_plain(result.text), LONGEST_QUOTE)
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


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _enumerate_words(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


# --- skills without tools --------------------------------------------------------------------------------------------


def _repeat(found: re.Match[str], _: Situation) -> str:
    quoted = prompt_reading.quotations(found[1])
    return quoted[0] if quoted else found[1].strip().rstrip(".")


def _count(found: re.Match[str], _: Situation) -> str:
    first, last = int(found[1] or 1), int(found[2])
    return " ".join(str(number) for number in range(first, min(last, first + LONGEST_COUNT) + 1))


def _calculate(found: re.Match[str], _: Situation) -> str:
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
    for turn in reversed(situation.prompt.turns):
        if turn.role == "user" and (introduction := re.search(r"[Mm]y name is (\w[\w'-]*)", turn.text)):
            return f"Your name is {introduction[1]}."
    return "You have not told me your name."


def _greet(_: re.Match[str], situation: Situation) -> str:
    return _variant(situation, ("Hello! How can I help?", "Hi there. What can I do for you?", "Good to see you!"))


def _write_at_length(found: re.Match[str], _: Situation) -> str:
    wanted = min(int(found[1]), LONGEST_COUNT)
    vocabulary = RAMBLE.split()
    return " ".join(vocabulary[index % len(vocabulary)] for index in range(wanted))


SKILLS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Situation], str]], ...] = (
    (
        re.compile(r"(?is)\b(?:say|repeat|(?:reply|respond|answer) with)\b(?: exactly| only| just)*[: ]\s*(.+)"),
        _repeat,
    ),
    (re.compile(r"\bcount(?: from (\d{1,9}))?(?: up)? to (\d{1,9})", re.IGNORECASE), _count),
    (re.compile(r"\b(\d{1,5}) words\b", re.IGNORECASE), _write_at_length),
    (re.compile(r"(-?\d+(?:\.\d+)?)\s*([+*/x-])\s*(-?\d+(?:\.\d+)?)"), _calculate),
    (re.compile(r"\bwhat(?:'s| is) my name\b", re.IGNORECASE), _recall_name),
    (re.compile(r"^\s*(?:hi|hello|hey|good (?:morning|evening))\b", re.IGNORECASE), _greet),
)


def _small_talk(situation: Situation) -> str:
    seen = f" I can see {_enumerate_words([f'one {kind}' for kind in situation.media])}." if situation.media else ""
    about = _shorten(" ".join(situation.question.split()), LONGEST_QUOTE)
    openings = ("You said", "I understand", "Noted")
    return f'{_variant(situation, openings)}: "{about}".{seen}' if about else f"I am listening.{seen}"


def _variant(situation: Situation, choices: Sequence[str]) -> str:
    """Selects one of several equivalent answers by the seed."""
    digest = hashlib.sha256(f"{situation.prompt.seed}\0{situation.question}".encode()).digest()
    return choices[digest[0] % len(choices)]


# --- which tools ----------------------------------------------------------------------------------------------------


def calls_for(situation: Situation) -> list[CallPart]:
    prompt = situation.prompt
    tools = [tool for tool in prompt.tools if prompt.choice.names is None or tool.name in prompt.choice.names]
    if not tools or not prompt.choice.may or _forbids_tools(situation):
        return []
    steps = prompt_reading.steps_of(situation.question)
    wanted = _plan_calls(steps, situation.rounds, tools)
    if not wanted and prompt.choice.must:
        step = steps[min(situation.rounds, len(steps) - 1)]
        wanted = [(_best(step, tools), step, ())]
    context = _with_results(situation)
    calls = [
        _explicit_call(tool, situation.question) or _call(tool, Hints(_without_names(text, [tool]), subjects, context))
        for tool, text, subjects in wanted
    ]
    unique = list({(call.name, call.text): call for call in calls}.values())
    return unique if prompt.parallel else unique[:1]


Wanted = tuple[Tool, str, tuple[str, ...]]


def _forbids_tools(situation: Situation) -> bool:
    pattern = r"\b(?:without|don't|do not|no)\b(?: \w+){0,2} (?:tools?|functions?)\b"
    return not situation.prompt.choice.must and re.search(pattern, situation.question, re.IGNORECASE) is not None


def _plan_calls(steps: Sequence[str], rounds: int, tools: Sequence[Tool]) -> list[Wanted]:
    """Calls of this round: one step that mentions tools per round; none after the last step."""
    planned = [wanted for step in steps if (wanted := _find_wanted(step, tools))]
    return planned[rounds] if rounds < len(planned) else []


def _find_wanted(step: str, tools: Sequence[Tool]) -> list[Wanted]:
    named = [tool for tool in tools if prompt_reading.is_mentioned(tool.name, step)]
    if named:
        tools = sorted(named, key=lambda tool: step.find(tool.name))
    wanted: list[Wanted] = []
    latest: list[Tool] = []
    for fragment in prompt_reading.fragments_of(step):
        matching = [tool for tool in tools if _score(tool, fragment) >= MEANT]
        subjects = _subjects(fragment, tools)
        if matching:
            wanted.extend((tool, fragment, subjects) for tool in matching)
            latest = matching
        elif subjects and latest:
            wanted.extend((tool, fragment, subjects) for tool in latest)
    if not wanted and (named or _score(_best(step, tools), step) >= MEANT):
        wanted = [(tool, step, ()) for tool in (named or [_best(step, tools)])]
    return list(_one_call_per_subject(wanted, step, tools))


def _one_call_per_subject(wanted: Sequence[Wanted], step: str, tools: Sequence[Tool]) -> Iterator[Wanted]:
    """One call per subject if the tool takes one subject at a time; otherwise one call for the whole step."""
    step_subjects = _subjects(step, tools)
    once: set[str] = set()
    for tool, fragment, subjects in wanted:
        if _takes_one_subject(tool):
            # A fragment without a subject uses that of the step.
            yield from ((tool, fragment, (subject,)) for subject in subjects)
            if not subjects:
                yield tool, step if step_subjects else fragment, step_subjects[:1]
        elif tool.name not in once:
            once.add(tool.name)
            yield tool, step, step_subjects


def _subjects(text: str, tools: Sequence[Tool]) -> tuple[str, ...]:
    """Subjects of the text, without names of tools and their options."""
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
    if prompt_reading.is_mentioned(tool.name, text):
        return 100
    stems = prompt_reading.significant_stems(text)
    name = prompt_reading.overlap(prompt_reading.significant_stems(tool.name), stems)
    # Coding agents describe their tools on pages: any request would share words with all of them.
    summary = tool.description.strip().partition("\n")[0][:LONGEST_SUMMARY]
    return NAME_WEIGHT * name + prompt_reading.overlap(prompt_reading.significant_stems(summary), stems)


def _best(text: str, tools: Sequence[Tool]) -> Tool:
    return max(tools, key=lambda tool: _score(tool, text))


def _call(tool: Tool, hints: Hints) -> CallPart:
    if tool.free_text:
        return call_of(
            tool.name, {"input": (prompt_reading.quotations(hints.text) or [hints.text.strip()])[0]}, free_text=True
        )
    return call_of(tool.name, arguments_for(tool.parameters, hints))


def _explicit_call(tool: Tool, question: str) -> CallPart | None:
    """The call of `call f with {"x": 1}`, with exactly these arguments."""
    found = re.search(rf"(?<!\w){re.escape(tool.name)}\b[^{{}}]{{0,40}}(?=\{{)", question)
    if not found or tool.free_text:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(question, found.end())
    except ValueError:
        return None
    return call_of(tool.name, value) if isinstance(value, dict) else None


# --- limits ---------------------------------------------------------------------------------------------------------


def apply_limits(prompt: Prompt, parts: Sequence[Part], *, counts: Counts, finish: Finish | None = None) -> Answer:
    """The parts cut at stop sequences and the token limit, with token counts."""
    cut, stopped = _cut_at_stop(parts, prompt.stop)
    cut, exhausted = _cut_at_limit(cut, prompt.max_tokens)
    counts = replace(
        counts,
        output=sum(tokens.count_part(part) for part in cut),
        thought=sum(tokens.count_part(part) for part in cut if isinstance(part, ThoughtPart)),
    )
    called = any(isinstance(part, CallPart) for part in cut)
    reached: Finish = "length" if exhausted else "stop_sequence" if stopped else "calls" if called else "stop"
    ended = reached if finish is None or exhausted else finish
    return Answer(tuple(cut), ended, counts, stopped if ended == "stop_sequence" else None)


def _cut_at_stop(parts: Sequence[Part], stops: Sequence[str]) -> tuple[list[Part], str | None]:
    before: list[Part] = []
    for part in parts:
        if isinstance(part, TextPart):
            found = [(part.text.find(stop), stop) for stop in stops if stop and stop in part.text]
            if found:
                position, stop = min(found)
                before.append(TextPart(part.text[:position]))
                return before, stop
        before.append(part)
    return before, None


def _cut_at_limit(parts: Sequence[Part], budget: int | None) -> tuple[list[Part], bool]:
    before: list[Part] = []
    left = budget
    for part in parts:
        cost = tokens.count_part(part)
        if left is not None and cost > left:
            if left > 0:
                before.append(_cut(part, left))
            return [one for one in before if one != TextPart("")], True
        left = None if left is None else left - cost
        before.append(part)
    return before, False


def _cut(part: Part, budget: int) -> Part:
    if isinstance(part, CallPart):
        spent = tokens.PER_CALL + tokens.count(part.name)
        text = "".join(tokens.pieces(part.text)[: max(budget - spent, 0)])
        return replace(part, text=text, complete=False)
    return replace(part, text="".join(tokens.pieces(part.text)[:budget]))
