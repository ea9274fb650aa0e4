"""Histories of multi-llm-chat as Python values: repair, check, read as text, and show to one model.

An entry is {"role", "content"}. The role is user, system, tool, or the name of a model.
Content is a list of typed parts; older programs stored a string. Functions here never modify their arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, TypeAlias

from dragoman.chat.formatting import FORMATTERS, gather_results, visible_entries
from dragoman.chat.payloads import as_text, call_of, parse_tool_response_payload

Entry: TypeAlias = dict[str, Any]
Part: TypeAlias = dict[str, Any]

MODELS = frozenset({"gemini", "chatgpt", "claude", "assistant"})
ROLES = MODELS | {"user", "tool", "system"}
INVALID = "invalid"
"""Key of placeholder entries."""
PLACEHOLDER = "[unreadable history entry]"

__all__ = [
    "content_to_text",
    "format_history",
    "normalize_history_turns",
    "parse_tool_response_payload",
    "validate_history_entry",
]


# ── repair ────────────────────────────────────────────────────────────────────────────────────────────────────


def normalize_history_turns(history: Iterable[Any] | None) -> list[Entry]:
    """Rewrites old spellings so that the content of every entry is a list of parts; keeps the number of entries.

    >>> normalize_history_turns([{"role": "user", "content": "Hello"}])
    [{'role': 'user', 'content': [{'type': 'text', 'content': 'Hello'}]}]
    """
    return [normalize_entry(deepcopy(entry)) for entry in history or ()]


def normalize_entry(entry: Any) -> Entry:
    """Normalizes one entry; valid parts are returned unchanged."""
    if not isinstance(entry, Mapping):
        # Callers refer to entries by index, so an unreadable one becomes a placeholder instead of being dropped.
        return {"role": "system", "content": [text_part(PLACEHOLDER)], INVALID: True}
    return {**entry, "content": _parts(entry)}


def _parts(entry: Mapping[str, Any]) -> list[Part]:
    content = entry.get("content")
    if content is None:
        return []
    if isinstance(content, list | tuple):
        return [dict(part) if isinstance(part, Mapping) else text_part(as_text(part)) for part in content]
    if isinstance(content, str) and entry.get("role") == "tool":
        part = {"type": "tool_result", "name": entry.get("name"), "content": content}
        return [part | {key: entry[key] for key in ("tool_call_id", "is_error") if key in entry}]
    return [text_part(as_text(content))]


def text_part(text: str) -> Part:
    return {"type": "text", "content": text}


# ── check ─────────────────────────────────────────────────────────────────────────────────────────────────────


def validate_history_entry(entry: Any, *, models: Iterable[str] = MODELS) -> None:
    """Raises ValueError if an entry may not be stored. A string as content is an old form, and allowed."""
    if not isinstance(entry, Mapping):
        raise ValueError(f"History entry must be a mapping (actual type: {type(entry).__name__})")  # noqa: TRY004
    role = entry.get("role")
    known = {*models, "user", "tool", "system"}
    if not isinstance(role, str) or role not in known:
        raise ValueError(f"History entry has the unknown role {role!r} (known roles: {', '.join(sorted(known))})")
    content = entry.get("content")
    if content is None:
        raise ValueError("History entry has no content")
    if isinstance(content, str):
        return
    _require_list(content)
    if role == "tool":
        _validate_results(content)


def _require_list(content: Any) -> None:
    if not isinstance(content, list):
        raise ValueError(f"History content must be a list or string (actual type: {type(content).__name__})")  # noqa: TRY004


def _validate_results(content: list[Any]) -> None:
    if not content:
        raise ValueError("History entry of role tool holds no result")
    for index, part in enumerate(content):
        kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
        if kind != "tool_result":
            raise ValueError(f"History entry of role tool holds results only (content[{index}] is {kind})")
        if not part.get("tool_call_id"):
            raise ValueError(f"History entry of role tool names no call (content[{index}] has no tool_call_id)")


# ── text ──────────────────────────────────────────────────────────────────────────────────────────────────────


def content_to_text(content: Any, include_tool_data: bool = False) -> str:  # noqa: FBT001, FBT002
    """Returns the parts as plain text joined by spaces; calls and results only with `include_tool_data`.

    >>> content_to_text([{"type": "text", "content": "Let me search."}])
    'Let me search.'
    """
    if content is None:
        return ""
    if not isinstance(content, list | tuple):
        return content if isinstance(content, str) else str(content)
    return " ".join(text for part in content if (text := _part_as_text(part, tools=include_tool_data)))


def _part_as_text(part: Any, *, tools: bool) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    kind = part.get("type")
    if kind == "text":
        return as_text(part.get("content", ""))
    if not tools or kind not in {"tool_call", "tool_result"}:
        return ""
    call = call_of(part) if kind == "tool_call" else part
    payload = call.get("arguments" if kind == "tool_call" else "content")
    described = (call.get("name"), None if payload is None else as_text(payload))
    return " ".join(str(word) for word in described if word)


# ── for one model ─────────────────────────────────────────────────────────────────────────────────────────────


def format_history(history: Iterable[Any], provider: str) -> list[dict[str, Any]]:
    """Returns the history as one model sees it, as messages of its API: the user's turns and its own.

    Turns of other models are left out, and so are the results of their calls. `provider` is the model's role in the
    history: gemini, chatgpt or claude.
    """
    formatter = FORMATTERS.get(provider)
    if formatter is None:
        raise ValueError(f"unknown provider {provider!r} (known: {', '.join(FORMATTERS)})")
    entries: Sequence[Any] = list(history)
    for entry in entries:
        if not isinstance(entry, Mapping):
            raise ValueError(f"History entry must be a mapping (actual type: {type(entry).__name__})")  # noqa: TRY004
        if not isinstance(entry.get("content"), str):
            _require_list(entry.get("content"))
    visible = gather_results(visible_entries(normalize_history_turns(entries), provider))
    return [message for entry in visible for message in formatter(entry)]
