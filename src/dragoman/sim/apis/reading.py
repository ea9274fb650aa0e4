"""What the readers of all APIs need."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from dragoman.sim.conversation_view import Result, Turn

_FAILED = re.compile(r"\s*(?:error|exception|traceback|failed)\b", re.IGNORECASE)


def failed(text: str) -> bool:
    """Formats without a flag for errors leave it to the words: `{"error": ...}`, or a text that begins so."""
    try:
        value = json.loads(text)
    except ValueError:
        return _FAILED.match(text) is not None
    return isinstance(value, dict) and "error" in value


def failure_text(text: str) -> str:
    """The words inside `{"error": ...}`."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    inner = value.get("error") if isinstance(value, dict) else None
    return inner if isinstance(inner, str) else text


def told(name: str, text: str, *, call_id: str = "", media: int = 0) -> Result:
    """A result in a format that has no flag for errors."""
    wrong = failed(text)
    return Result(name, failure_text(text) if wrong else text, failed=wrong, media=media, call_id=call_id)


def parsed_arguments(text: str) -> object:
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return value


def gathered(turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """Neighbouring turns that other formats would say in one: results of one step, words and calls of it."""
    joined: list[Turn] = []
    for turn in turns:
        previous = joined[-1] if joined else None
        if previous is not None and _are_one(previous, turn):
            text = "\n".join(text for text in (previous.text, turn.text) if text)
            calls, results = previous.calls + turn.calls, previous.results + turn.results
            joined[-1] = Turn(turn.role, text, calls=calls, results=results, media=previous.media + turn.media)
        else:
            joined.append(turn)
    return tuple(joined)


def _are_one(first: Turn, second: Turn) -> bool:
    if first.role == second.role == "assistant":
        return True
    return bool(first.results and second.results) and not first.text and not second.text


def without_empty(mapping: Mapping[str, object]) -> dict[str, object]:
    """Google leaves out what is zero or empty."""
    return {key: value for key, value in mapping.items() if value not in (0, None, "", [], {})}
