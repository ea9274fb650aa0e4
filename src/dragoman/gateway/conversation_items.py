"""Items of the Responses API as a conversation stores them: each with an id, in the shape that item lists return."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from dragoman.gateway.state_errors import invalid_items, no_item

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


def with_ids(items: Sequence[Raw], seed: str = "") -> list[tuple[str, bytes]]:
    """Return each item with its id, and add missing ids: random ones, or from `seed` and the item's place."""
    return [_with_id(item, f"{seed}_{place}" if seed else secrets.token_hex(16)) for place, item in enumerate(items)]


def _with_id(item: Raw, new_id: str) -> tuple[str, bytes]:
    fields: dict[str, Any] = _object(item)
    kind = msgspec.json.decode(fields.get("type", b"null")) or "message"
    id = msgspec.json.decode(fields["id"]) if "id" in fields else None
    if not isinstance(id, str) or not id:
        id = f"{_PREFIXES.get(kind, 'item')}_{new_id}"
    if kind == "message":
        fields = {"status": "completed", **fields, "content": _parts(fields)}
    return id, _encode({**fields, "id": id, "type": kind})


_PAGE, _LONGEST_PAGE = 20, 100


def page(items: list[tuple[str, bytes]], parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return a page of items, newest first by default; `after` is the last item of the previous page."""
    items = items if parameters.get("order") == "asc" else items[::-1]
    ids = [id for id, _ in items]
    after = parameters.get("after", "")
    if after and after not in ids:
        raise no_item(after)  # returning the first page again would make clients page forever
    begin = ids.index(after) + 1 if after else 0
    limit = parameters.get("limit", "")
    size = min(int(limit), _LONGEST_PAGE) if limit.isdecimal() and int(limit) else _PAGE
    shown = items[begin : begin + size]
    return {
        "object": "list",
        "data": [Raw(item) for _, item in shown],
        "first_id": shown[0][0] if shown else None,
        "last_id": shown[-1][0] if shown else None,
        "has_more": begin + size < len(items),
    }


def _parts(message: Mapping[str, Any]) -> Any:
    """Return the content as parts; a bare string becomes one part."""
    content = message.get("content", Raw(b"[]"))
    if bytes(content)[:1] != b'"':
        return content
    if bytes(message.get("role", b"")) == b'"assistant"':
        return [{"type": "output_text", "text": content, "annotations": [], "logprobs": []}]
    return [{"type": "input_text", "text": content}]
