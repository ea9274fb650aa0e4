"""Cache marks: at most four, none on blank text, and none of an hour after one of five minutes (400 otherwise)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, TypeGuard

from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.anthropic_messages.profile import PROFILE
from dragoman.codecs.anthropic_messages.wire import CacheControl
from dragoman.codecs.claude_models import CACHE_LIFETIMES, fit_marks
from dragoman.codecs.reading import WireValue
from dragoman.ir import (
    Cache,
    Document,
    Image,
    ProviderTool,
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
from dragoman.ir.values import Value, encode_json, parse_json
from dragoman.losses import LossLog

FAMILY = "anthropic"
NULL = Raw(b"null")

Marked: TypeAlias = (
    Text
    | Image
    | Document
    | SearchResult
    | ToolCall
    | ToolResult
    | ServerToolCall
    | ServerToolResult
    | ToolDefinition
    | ProviderTool
)
_OUR_KINDS = Text | Image | Document | SearchResult | ToolCall | ToolResult | ToolDefinition
_OTHER_KINDS = ServerToolCall | ServerToolResult | ProviderTool

_FIVE_MINUTES = CacheControl("ephemeral")


def decode_mark(wire: CacheControl | None | UnsetType, notes: dict[str, Raw]) -> Cache | None:
    """Return a mark as a value; notes an explicit null, and keys of the mark other than its ttl."""
    if wire is UNSET:
        return None
    if wire is None:
        notes["~cache"] = NULL
        return None
    ttl = None if wire.ttl is UNSET else wire.ttl
    if wire.extra is not UNSET or wire.type != "ephemeral" or (ttl is not None and ttl not in CACHE_LIFETIMES):
        notes["~cache"] = _exact(wire)
    if wire.extra is not UNSET:
        notes[WITHIN + "cache_control"] = Raw(encode_json(wire.extra))
    return Cache(ttl)


def _exact(wire: CacheControl) -> Raw:
    known = {"type": wire.type} | ({} if wire.ttl is UNSET else {"ttl": wire.ttl})
    return Raw(encode_json(known | ({} if wire.extra is UNSET else wire.extra)))


def encode_mark(node: Marked | Request) -> WireValue:
    """Return the mark as this family spelled it, or in the ordinary spelling."""
    cache, metadata = node.cache, getattr(node, "metadata", None)
    spelled = UNSET if metadata is None else metadata.get(FAMILY, {}).get("~cache", UNSET)
    if cache is None:
        return None if spelled is not UNSET and parse_json(spelled) is None else UNSET
    if spelled is not UNSET:
        return spelled
    return CacheControl("ephemeral", UNSET if cache.ttl is None else cache.ttl)


class CacheMarks:
    """Decides which marks of another family's request are sent."""

    def __init__(self, request: Request, log: LossLog) -> None:
        self._request = request
        self._log = log
        self._plan = self._decide()

    def of(self, node: Marked) -> WireValue:
        return self._plan[id(node)] if id(node) in self._plan else encode_mark(node)

    def _decide(self) -> dict[int, WireValue]:
        plan: dict[int, WireValue] = {}
        marked = []
        for node in self._marked_nodes():
            if isinstance(node, Text) and not node.text.strip():
                plan[id(node)] = UNSET
                self._log.drop(node, "cache", "cache mark", "this API refuses a mark on blank text")
            else:
                marked.append(node)
        most = PROFILE.cache_marks
        return plan | fit_marks(marked, most, _FIVE_MINUTES, self._log, used=int(self._request.cache is not None))

    def _marked_nodes(self) -> Iterator[Marked]:
        """Yield marked nodes in the server's caching order: tools, system, messages; a result's parts before it."""
        for tool in self._request.tools:
            if _is_marked(tool):
                yield tool
        for message in sorted(self._request.messages, key=lambda message: message.role != "system"):
            for part in message.parts:
                if isinstance(part, ToolResult):
                    yield from (inner for inner in part.parts if _is_marked(inner))
                if _is_marked(part):
                    yield part


def _is_marked(node: Value) -> TypeGuard[Marked]:
    if isinstance(node, _OUR_KINDS):
        return node.cache is not None
    return isinstance(node, _OTHER_KINDS) and node.cache is not None and node.origin == FAMILY
