"""Shared by the readers of all APIs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from dragoman.sim.conversation_view import JsonObject, Result, Tool, Turn
from dragoman.sim.rules.common import object_at, text_at

_FAILED = re.compile(r"\s*(?:error|exception|traceback|failed)\b", re.IGNORECASE)


def is_failure(text: str) -> bool:
    """Without an error flag, a result is a failure if it is `{"error": ...}` or starts with "error"."""
    try:
        value = json.loads(text)
    except ValueError:
        return _FAILED.match(text) is not None
    return isinstance(value, dict) and "error" in value


def failure_text(text: str) -> str:
    """The text inside `{"error": ...}`."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    inner = value.get("error") if isinstance(value, dict) else None
    return inner if isinstance(inner, str) else text


def read_result(name: str, text: str, *, call_id: str = "", media: int = 0) -> Result:
    """Reads a result of a format without an error flag."""
    wrong = is_failure(text)
    return Result(name, failure_text(text) if wrong else text, failed=wrong, media=media, call_id=call_id)


def read_tool(spec: JsonObject, *, free_text: bool = False) -> Tool:
    return Tool(text_at(spec, "name"), text_at(spec, "description"), object_at(spec, "parameters"), free_text)


def parse_arguments(text: str) -> object:
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return value


def merge_turns(turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """Merges adjacent turns that are one turn in other formats: results of one step, text and calls of one step."""
    joined: list[Turn] = []
    for turn in turns:
        previous = joined[-1] if joined else None
        if previous is not None and _belong_together(previous, turn):
            text = "\n".join(text for text in (previous.text, turn.text) if text)
            calls, results = previous.calls + turn.calls, previous.results + turn.results
            joined[-1] = Turn(turn.role, text, calls=calls, results=results, media=previous.media + turn.media)
        else:
            joined.append(turn)
    return tuple(joined)


def _belong_together(first: Turn, second: Turn) -> bool:
    if first.role == second.role == "assistant":
        return True
    return bool(first.results and second.results) and not first.text and not second.text


def without_empty(mapping: Mapping[str, object]) -> dict[str, object]:
    """Google omits fields that are zero or empty."""
    return {key: value for key, value in mapping.items() if value not in (0, None, "", [], {})}
