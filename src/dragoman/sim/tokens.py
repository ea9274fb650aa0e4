"""Plausible tokens: pieces of words of about four letters, whose concatenation is the text."""

from __future__ import annotations

import re

from dragoman.sim.conversation_view import CallPart, Part, Prompt, Turn, compact

_PIECE = re.compile(r" ?[^\W\d_]{1,5}|\d{1,3}|[ \t]+|.", re.DOTALL)

PER_MESSAGE = 4
PER_CALL = 6
# An image of moderate size; real counts depend on its pixels.
PER_MEDIUM = 258


def pieces(text: str) -> list[str]:
    return _PIECE.findall(text)


def count(text: str) -> int:
    return len(pieces(text))


def count_part(part: Part) -> int:
    if isinstance(part, CallPart):
        return PER_CALL + count(part.name) + count(part.text)
    return count(part.text)


def count_prompt(prompt: Prompt) -> int:
    tools = sum(count(tool.name) + count(tool.description) + count(compact(tool.parameters)) for tool in prompt.tools)
    schema = count(compact(prompt.schema)) if prompt.schema is not None else 0
    return sum(count_turn(turn) for turn in prompt.turns) + tools + schema + PER_MESSAGE


def count_turn(turn: Turn) -> int:
    calls = sum(PER_CALL + count(call.name) + count(compact(call.arguments)) for call in turn.calls)
    results = sum(PER_CALL + count(result.text) + PER_MEDIUM * result.media for result in turn.results)
    return PER_MESSAGE + count(turn.text) + calls + results + PER_MEDIUM * len(turn.media)
