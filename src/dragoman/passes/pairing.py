"""Pairs hold (law 8): every result follows its call, in call order, with all results of a turn together.

What cannot be paired is repaired and reported: an unanswered call gets an error result (except in formats of stored
conversations, where it may stay unanswered), a result without a call is dropped, of two results for one call the last
one counts, and a result that comes after other messages moves to its call. A second run changes nothing.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter, deque
from functools import partial
from operator import itemgetter
from typing import TypeAlias

from msgspec import structs

from dragoman.ir import AnyPart, Message, Request, ToolCall, ToolResult
from dragoman.losses import LossLog
from dragoman.profile import Profile

NO_RESULT = "No result was recorded for this call."

_Answers: TypeAlias = dict[str, list[tuple[int, ToolResult]]]
"""By the id of a call: its results, each with the index of its message."""


def pair_results(request: Request, profile: Profile, log: LossLog) -> Request:
    messages = _merge_call_turns(request.messages, log)
    places = _Places(messages)
    taken: set[int] = set()
    seen = _Ids(profile)
    paired: list[Message] = []
    for index, message in enumerate(messages):
        if message.role == "tool":
            _report_orphans(message, taken, log)
            continue
        calls = message.tool_calls
        if not calls:
            paired.append(message)
            continue
        answers = places.answers(index, {call.id for call in calls}, taken)
        ids = [seen.unique(call.id) for call in calls]
        paired.append(_rename_calls(message, ids, log))
        chosen = _choose_results(calls, answers, _end_of_results(messages, index), log)
        rows = [row for row in zip(calls, chosen, ids, strict=True) if row[1] or not profile.unanswered_calls]
        if rows:
            paired.append(Message("tool", tuple([_answer(*row, log) for row in rows])))
    return structs.replace(request, messages=tuple(paired))


def answer_last_calls(request: Request, profile: Profile, log: LossLog) -> Request:  # noqa: ARG001
    """Adds error results for the calls of the last message, unless `pair_results` has run and added them."""
    content = request.messages[-1].content_held
    calls = [] if isinstance(content, str) else [part for part in content if isinstance(part, ToolCall)]
    if not calls:
        return request
    results = tuple([_answer(call, None, call.id, log) for call in calls])
    return structs.replace(request, messages=(*request.messages, Message("tool", results)))


def _merge_call_turns(messages: tuple[Message, ...], log: LossLog) -> list[Message]:
    """Merges adjacent assistant messages with calls, which are one turn for every API."""
    merged: list[Message] = []
    turn: list[Message] = []
    calling = False
    for message in messages:
        if turn and not (calling and message.role == "assistant"):
            merged.append(join_turn(turn, log))
            turn = []
        if message.role == "assistant":
            calling = bool(message.tool_calls) or (calling and bool(turn))
            turn.append(message)
        else:
            merged.append(message)
    if turn:
        merged.append(join_turn(turn, log))
    return merged


def join_turn(turn: list[Message], log: LossLog) -> Message:
    """Joins messages into one with all parts; losses refer to the first."""
    if len(turn) == 1:
        return turn[0]
    return log.replace(turn[0], parts=tuple(part for message in turn for part in message.parts))


class _Places:
    """Index of calls and results by id, built in one walk."""

    def __init__(self, messages: list[Message]) -> None:
        self._calls: dict[str, list[int]] = {}
        self._results: dict[str, list[tuple[int, ToolResult]]] = {}
        for index, message in enumerate(messages):
            for call in message.tool_calls if message.role == "assistant" else ():
                self._calls.setdefault(call.id, []).append(index)
            for result in message.tool_results:
                self._results.setdefault(result.tool_call_id, []).append((index, result))

    def answers(self, start: int, wanted: set[str], taken: set[int]) -> _Answers:
        """Results for these calls, from here up to the turn that uses one of the ids again."""
        again = [places[after] for places, after in map(partial(self._after, start), wanted) if after < len(places)]
        end = min(again, default=None)
        found: _Answers = {}
        for call_id in wanted:
            results = self._results.get(call_id, [])
            for place in range(bisect_right(results, start, key=itemgetter(0)), len(results)):
                index, result = results[place]
                if end is not None and index >= end:
                    break
                if id(result) not in taken:
                    taken.add(id(result))
                    found.setdefault(call_id, []).append((index, result))
        return found

    def _after(self, start: int, call_id: str) -> tuple[list[int], int]:
        places = self._calls.get(call_id, [])
        return places, bisect_right(places, start)


def _end_of_results(messages: list[Message], index: int) -> int:
    """Return the index of the first message after this one that has no results."""
    end = index + 1
    while end < len(messages) and messages[end].role == "tool":
        end += 1
    return end


def _choose_results(calls: tuple[ToolCall, ...], answers: _Answers, end: int, log: LossLog) -> list[ToolResult | None]:
    """For each call its own result: by order where calls share an id, else the last one with its id.

    A result at `end` or later came after other messages; it moves before them.
    """
    calls_left = Counter(call.id for call in calls)
    queues = {call_id: deque(results) for call_id, results in answers.items()}
    chosen: list[ToolResult | None] = []
    for call in calls:
        calls_left[call.id] -= 1
        queue = queues.get(call.id)
        if queue and not calls_left[call.id]:
            while len(queue) > 1:
                _, earlier = queue.popleft()
                log.drop(earlier, "", "earlier result of the same call", "a call has one result; the last one counts")
        index, result = queue.popleft() if queue else (0, None)
        if result is not None and index >= end:
            log.degrade(result, "", "place of a result", "it moves to its call, before the messages between them")
        chosen.append(result)
    return chosen


def _answer(call: ToolCall, result: ToolResult | None, call_id: str, log: LossLog) -> ToolResult:
    if result is None:
        invented = ToolResult(call_id, call.name, "error", NO_RESULT)
        log.invent(call, "", f"result of call {call.id!r}", "every call must be answered, and this one was not")
        return invented
    if result.name == call.name and result.tool_call_id == call_id:
        return result
    return log.replace(result, tool_call_id=call_id, name=call.name)


def _report_orphans(message: Message, taken: set[int], log: LossLog) -> None:
    for result in message.tool_results:
        if id(result) not in taken:
            log.drop(result, "", f"result for {result.tool_call_id!r}", "no call with this id comes before it")


class _Ids:
    """Gives calls unique ids that the target accepts."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._seen: set[str] = set()
        self._repetitions: dict[str, int] = {}

    def unique(self, call_id: str) -> str:
        """The id if the target accepts it; else an alias that depends only on the id (and its repetition)."""
        profile = self._profile
        base = call_id
        if profile.call_id is not None and profile.call_id.fullmatch(call_id) is None:
            base = _alias(call_id, profile)
        chosen = base
        repetition = self._repetitions.get(base, 1)
        while chosen in self._seen:
            repetition += 1
            chosen = _alias(f"{base} {repetition}", profile)
        self._repetitions[base] = repetition
        self._seen.add(chosen)
        return chosen


def _alias(call_id: str, profile: Profile) -> str:
    digest = hashlib.blake2s(call_id.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return f"call_{digest}" if profile.call_id_length is None else digest[: profile.call_id_length]


def _rename_calls(message: Message, ids: list[str], log: LossLog) -> Message:
    if all(call.id == new for call, new in zip(message.tool_calls, ids, strict=True)):
        return message
    remaining = iter(ids)
    parts: list[AnyPart] = []
    for part in message.parts:
        new = next(remaining) if isinstance(part, ToolCall) else ""
        if isinstance(part, ToolCall) and new != part.id:
            renamed = log.replace(part, id=new)
            parts.append(renamed)
        else:
            parts.append(part)
    return log.replace(message, parts=tuple(parts))
