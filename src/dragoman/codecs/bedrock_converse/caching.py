"""Cache points: separate blocks, each after what it caches.

«There is nothing available to cache»: none at the front. «Cache point cannot be inserted after reasoning block», seen
even when the point came later in the turn. None after a document whose text the server extracts. At most four, and an
hour never after five minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from msgspec import UNSET, Raw
from msgspec.structs import replace

from dragoman.codecs.bedrock_converse.profile import FAMILY, PROFILE, limits_of
from dragoman.codecs.bedrock_converse.wire import CachePoint
from dragoman.codecs.claude_models import CACHE_LIFETIMES, fit_marks
from dragoman.codecs.reading import WireValue, encode_with_extra
from dragoman.ir import (
    AnyPart,
    Audio,
    Cache,
    Document,
    Image,
    Message,
    Metadata,
    ProviderTool,
    Reasoning,
    Request,
    SearchResult,
    ServerToolCall,
    ServerToolResult,
    Text,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from dragoman.ir.notes import WITHIN
from dragoman.ir.values import encode_json
from dragoman.losses import LossLog

Marked: TypeAlias = (
    Text
    | Image
    | Document
    | Audio
    | SearchResult
    | ToolCall
    | ToolResult
    | ServerToolCall
    | ServerToolResult
    | ToolDefinition
    | ProviderTool
)
_MARKED = (Text, Image, Document, Audio, SearchResult, ToolCall, ToolResult, ServerToolCall, ServerToolResult)

_FIVE_MINUTES = CachePoint("default")
_PDF = "application/pdf"
_NOTE = "~cache"
"""Note: the point as it was spelled, if that is not the ordinary form."""


def mark_node(node: Any, point: CachePoint) -> Any:
    """Return the node with the cache point that follows it; None if it cannot have one or already has one."""
    if type(node) not in _MARKED and not isinstance(node, ToolDefinition | ProviderTool):
        return None
    ttl = None if point.ttl is UNSET else point.ttl
    odd = point.extra is not UNSET or point.type != "default" or (ttl is not None and ttl not in CACHE_LIFETIMES)
    if node.cache is not None or (odd and isinstance(node, ProviderTool)):
        return None
    if not odd:
        return replace(node, cache=Cache(ttl))
    metadata: Metadata = node.metadata or {}
    notes = {**metadata.get(FAMILY, {}), _NOTE: encode_with_extra(point)}
    if point.extra is not UNSET:
        notes[WITHIN + "cachePoint"] = Raw(encode_json(point.extra))
    return replace(node, cache=Cache(ttl), metadata={**metadata, FAMILY: notes})


def encode_point(node: Marked) -> WireValue:
    """Return the point as its own family spelled it, or in the ordinary form; UNSET for none."""
    cache = node.cache
    if cache is None:
        return UNSET
    metadata: Metadata | None = getattr(node, "metadata", None)
    spelled = UNSET if metadata is None else metadata.get(FAMILY, {}).get(_NOTE, UNSET)
    return CachePoint("default", UNSET if cache.ttl is None else cache.ttl) if spelled is UNSET else spelled


class CachePoints:
    """Decides which cache points of another family's request are sent."""

    def __init__(self, request: Request, log: LossLog) -> None:
        self._request = request
        self._log = log
        self._plan: dict[int, WireValue] = {}
        self._decide()

    def of(self, node: Marked) -> WireValue:
        return self._plan[id(node)] if id(node) in self._plan else encode_point(node)

    def _decide(self) -> None:
        standing = []
        caches = limits_of(self._request.model).caches
        for node, refusal in self._marked_nodes():
            why = refusal if caches else "this model caches no prompts"
            if why:
                self._plan[id(node)] = UNSET
                self._log.drop(node, "cache", "cache mark", why)
            else:
                standing.append(node)
        self._plan |= fit_marks(standing, PROFILE.cache_marks, _FIVE_MINUTES, self._log)

    def _marked_nodes(self) -> Iterator[tuple[Marked, str]]:
        """Yield each mark and why it cannot be sent, in the order in which the server caches (tools first)."""
        for tool in self._request.tools:
            if isinstance(tool, ToolDefinition | ProviderTool) and tool.cache is not None:
                yield tool, ""
        for message in sorted(self._request.messages, key=lambda message: message.role != "system"):
            yield from _marked_parts(message)


def _marked_parts(message: Message) -> Iterator[tuple[Marked, str]]:
    thinks = any(isinstance(part, Reasoning) for part in message.parts)
    for part in message.parts:
        for inner in part.parts if isinstance(part, ToolResult) else ():
            if isinstance(inner, Text | Image | Document | Audio | SearchResult) and inner.cache is not None:
                yield inner, "a result of this API holds no cache points"
        if isinstance(part, _MARKED) and part.cache is not None:
            yield part, "this API refuses a cache point in a turn with reasoning" if thinks else _refusal(part)


def _refusal(part: AnyPart) -> str:
    if isinstance(part, Text) and not part.text.strip():
        return "there is nothing to cache in blank text"
    if isinstance(part, Document) and not (part.media_type or _PDF).startswith((_PDF, "image/", "video/")):
        return "this API refuses a cache point behind a document whose text it extracts"
    if isinstance(part, Document) and part.text is not None:
        return "this API refuses a cache point behind a document whose text it extracts"
    return ""


# ── the automatic mark ────────────────────────────────────────────────────────────────────────────────────────


def with_automatic_points(request: Request, log: LossLog) -> Request:
    """Return the request with explicit points for an automatic cache mark, which this API does not have.

    One comes after the system text, one after the last message, so that the next turn finds all of this one cached.
    """
    if not limits_of(request.model).caches:
        log.drop(request, "cache", "automatic cache mark", "this model caches no prompts")
        return request
    messages = list(request.messages)
    system = [index for index, message in enumerate(messages) if message.role == "system"]
    marked_any = False
    for index in dict.fromkeys([*system[-1:], len(messages) - 1] if messages else ()):
        message = _with_point(messages[index], request.cache)
        if message is not None:
            log.replaced(message, messages[index])
            messages[index], marked_any = message, True
    if not marked_any:
        log.drop(request, "cache", "automatic cache mark", "there is nothing behind which a cache point may stand")
        return request
    return log.replace(request, messages=tuple(messages))


def _with_point(message: Message, cache: Cache | None) -> Message | None:
    """Return the message with a mark on the last part that can have one; None if none can, or one already has it."""
    parts = message.parts
    if any(getattr(part, "cache", None) is not None or isinstance(part, Reasoning) for part in parts):
        return None
    for place in range(len(parts) - 1, -1, -1):
        part = parts[place]
        if isinstance(part, _MARKED) and not _refusal(part):
            return replace(message, parts=(*parts[:place], replace(part, cache=cache), *parts[place + 1 :]))
    return None
