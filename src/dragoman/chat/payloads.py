"""Arguments of calls and values of results in a history, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def call_of(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of a call: within `content`, or, as some programs wrote them, next to `type`."""
    content = part.get("content")
    return content if isinstance(content, Mapping) else part


def as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return str(value)


def parse_tool_response_payload(payload: Any) -> dict[str, Any]:
    """Returns a tool's result as the object that Gemini expects.

    >>> parse_tool_response_payload("sunny")
    {'result': 'sunny'}
    """
    if payload is None:
        return {}
    if isinstance(payload, Mapping):
        return payload if isinstance(payload, dict) else dict(payload)
    if not isinstance(payload, str):
        return {"result": payload}
    try:
        value = json.loads(payload, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return {"result": payload}
    return value if isinstance(value, dict) else {"result": value}


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")
