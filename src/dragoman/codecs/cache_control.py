"""Anthropic's cache marks in chat requests: relays take `cache_control` on parts, messages, calls and tools.

OpenRouter, LiteLLM and other relays pass the marks on to Claude and Gemini. A mark on a message is one on its last text
or call.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, structs

from dragoman.codecs.claude_models import CACHE_LIFETIMES
from dragoman.codecs.common_losses import CACHED
from dragoman.ir import AnyPart, Audio, Cache, Document, Image, Request, Text, ToolCall, ToolDefinition, ToolResult
from dragoman.ir.notes import MODELLED, Extra, family_notes
from dragoman.ir.values import Value, encode_json
from dragoman.losses import LossLog

FAMILY = "openai"
KEY: Final = "cache_control"
NOTED: Final = MODELLED + KEY
"""Note: the mark as it was written."""
OF_THE_MESSAGE: Final = "~message_mark"
"""Note on a part: its mark is a key of its message."""
_AS_TEXT: Extra = {"~content": Raw(b'"string"')}
"""Note on a message: its content is a text, though it is decoded as a marked part."""

_MARKED = (Text, Image, Document, Audio)
M = TypeVar("M", Text, Image, Document, Audio, ToolCall, ToolResult, ToolDefinition)


class _Mark(Struct, frozen=True, forbid_unknown_fields=True):
    type: Literal["ephemeral"]
    ttl: str | UnsetType = UNSET


_mark = msgspec.json.Decoder(_Mark).decode


def read_mark(extra: Extra) -> Cache | None:
    """Take the mark out of the keys of an object, and note how it was written; None if there is none we understand."""
    raw = extra.get(KEY)
    cache = None if raw is None else _read(raw)
    if cache is not None:
        extra[NOTED] = extra.pop(KEY)
    return cache


def _read(raw: Raw) -> Cache | None:
    try:
        wire = _mark(raw)
    except msgspec.ValidationError:
        return None
    return Cache(None if wire.ttl is UNSET else wire.ttl)


def read_setting(value: Any) -> Cache | None:
    """Return the mark of a whole request; None for one that we do not understand."""
    return _read(Raw(encode_json(value)))


def write_setting(cache: Cache, request: Request, log: LossLog) -> Any:
    """Return the mark of a whole request for servers of this format that the client knows; OpenAI has none."""
    if request.origin == FAMILY:
        return _spell(cache.ttl)
    log.drop(request, "cache", "automatic cache mark", CACHED)
    return UNSET


def is_written(node: Value) -> bool:
    """Whether the mark of a node stands in its own keys, or in those of its message."""
    notes = family_notes(FAMILY, getattr(node, "metadata", None))
    return NOTED in notes or OF_THE_MESSAGE in notes


def mark_message(content: Any, extra: Extra, role: str) -> Any:
    """Return the content of a message, text or parts, with the mark that is a key of the message on its last part.

    The key stays one that is passed on if the message has no part for it, or that part has a mark of its own.
    """
    if KEY not in extra:
        return content
    parts: tuple[AnyPart, ...] = (Text(content),) if isinstance(content, str) else tuple(content)
    kinds = (Text, ToolCall) if role == "assistant" else _MARKED
    index = next((at for at in range(len(parts) - 1, -1, -1) if isinstance(parts[at], kinds)), None)
    if index is None:
        return content
    last: Any = parts[index]
    if last.cache is not None or (isinstance(last, Text) and not last.text.strip()):
        return content
    cache = read_mark(extra)
    if cache is None:
        return content
    if isinstance(content, str) and role != "assistant":
        extra.update(_AS_TEXT)
    notes = {**family_notes(FAMILY, last.metadata), OF_THE_MESSAGE: Raw(b"true")}
    marked = structs.replace(last, cache=cache, metadata={**(last.metadata or {}), FAMILY: notes})
    return (*parts[:index], marked, *parts[index + 1 :])


def is_text(content: tuple[AnyPart, ...], extra: Extra) -> bool:
    """Whether the content of a message is one text that was written without a list around it."""
    return extra.get("~content") == _AS_TEXT["~content"] and len(content) == 1 and type(content[0]) is Text


def path_key(node: Any, field: str) -> str | None:
    """Return the key of a field of a marked node; None for other fields, and marks in another spelling."""
    if field not in {"cache", "cache.ttl"} or NOTED not in family_notes(FAMILY, node.metadata):
        return None
    return KEY + field.removeprefix("cache")


# ── for relays, from other formats ────────────────────────────────────────────────────────────────────────────


def mark_for_relay(node: Value, cache: Cache, log: LossLog) -> Extra:
    """Return the key of a mark for a relay of Claude."""
    ttl = cache.ttl
    if ttl is not None and ttl not in CACHE_LIFETIMES:
        log.degrade(node, "cache.ttl", f"cache lifetime {ttl!r}", "sent as 5m: this server has only 5m and 1h")
        ttl = None
    return {KEY: Raw(encode_json(_spell(ttl)))}


def _spell(ttl: str | None) -> dict[str, str]:
    return {"type": "ephemeral"} if ttl is None else {"type": "ephemeral", "ttl": ttl}


def with_mark(part: M, log: LossLog) -> M:
    """Return the part with its mark noted as a key, which its encoder writes."""
    if part.cache is None or is_written(part):
        return part
    notes = {**family_notes(FAMILY, part.metadata), NOTED: mark_for_relay(part, part.cache, log)[KEY]}
    return log.replace(part, metadata={**(part.metadata or {}), FAMILY: notes})
