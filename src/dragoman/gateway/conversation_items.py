"""Items of the Responses API as a conversation stores them: each with an id, in the shape that item lists return."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from dragoman.gateway.state_errors import invalid_items

_object = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.encode
_PREFIXES: Mapping[str, str] = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "compaction": "cmp",
}


def conversation_id(given: str | Mapping[str, Any] | None) -> str | None:
    """Return the id in `conversation` of a request, which is an id or an object with one."""
    id = given.get("id") if isinstance(given, Mapping) else given
    return id if isinstance(id, str) else None


class _Head(Struct):
    type: str | None = None
    call_id: str | None = None


_head = msgspec.json.Decoder(_Head).decode


def check_results(before: Sequence[Raw], own: Sequence[Raw]) -> None:
    """Raise an error, as OpenAI does, if a tool result among the request's own items has no matching call.

    The conversation is stored here, so the client cannot have truncated it.
    """
    called: set[str | None] = set()
    for index, item in enumerate((*before, *own)):
        head = _head(item)
        kind = head.type or "message"
        if kind.endswith("_call"):
            called.add(head.call_id)
        elif index >= len(before) and kind in _RESULTS and head.call_id not in called:
            words = f"No tool call found for function call output with call_id {head.call_id}."
            raise invalid_items(words, "input")


_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})


def with_ids(items: Sequence[Raw]) -> list[tuple[str, bytes]]:
    """Return each item with its id, and add missing ids."""
    return [_with_id(item) for item in items]


def _with_id(item: Raw) -> tuple[str, bytes]:
    fields: dict[str, Any] = _object(item)
    kind = msgspec.json.decode(fields.get("type", b'"message"'))
    id = msgspec.json.decode(fields["id"]) if "id" in fields else None
    if not isinstance(id, str) or not id:
        id = f"{_PREFIXES.get(kind, 'item')}_{secrets.token_hex(16)}"
    if kind == "message":
        fields = {"status": "completed", **fields, "content": _parts(fields)}
    return id, _encode({**fields, "id": id, "type": kind})


def _parts(message: Mapping[str, Any]) -> Any:
    """Return the content as parts; a bare string becomes one part."""
    content = message.get("content", Raw(b"[]"))
    if bytes(content)[:1] != b'"':
        return content
    if bytes(message.get("role", b"")) == b'"assistant"':
        return [{"type": "output_text", "text": content, "annotations": [], "logprobs": []}]
    return [{"type": "input_text", "text": content}]
