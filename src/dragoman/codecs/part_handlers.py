"""One handler per part type: a table that is complete by its type.

A new part type is a new field here. Until each codec has a handler for it, mypy refuses the call that builds the table
of that codec, and Python refuses to import it.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from msgspec import Struct

from dragoman.ir import (
    AnyPart,
    Audio,
    Document,
    Image,
    Opaque,
    Reasoning,
    Refusal,
    SearchResult,
    ServerToolCall,
    ServerToolResult,
    Text,
    ToolCall,
    ToolResult,
)

H = TypeVar("H")


class PartHandlers(Struct, Generic[H], frozen=True, kw_only=True):
    """A codec's handler for each type of part."""

    text: H
    reasoning: H
    refusal: H
    image: H
    document: H
    audio: H
    tool_call: H
    tool_result: H
    server_tool_call: H
    server_tool_result: H
    search_result: H
    opaque: H

    def by_type(self) -> dict[type[AnyPart], H]:
        """Return the handlers by the exact type of a part."""
        return {kind: getattr(self, field) for field, kind in PART_TYPES.items()}


PART_TYPES: dict[str, type[Any]] = {
    "text": Text,
    "reasoning": Reasoning,
    "refusal": Refusal,
    "image": Image,
    "document": Document,
    "audio": Audio,
    "tool_call": ToolCall,
    "tool_result": ToolResult,
    "server_tool_call": ServerToolCall,
    "server_tool_result": ServerToolResult,
    "search_result": SearchResult,
    "opaque": Opaque,
}
"""Part types by their tag in the intermediate format; a test compares both with `AnyPart`."""

_NAMES: dict[type[AnyPart], str] = PartHandlers(
    text="text", reasoning="reasoning", refusal="refusal", image="image", document="document", audio="audio",
    tool_call="tool call", tool_result="tool result", server_tool_call="call run by the provider",
    server_tool_result="result of a call run by the provider", search_result="search result", opaque="block",
).by_type()  # fmt: skip


def name_of_part(part: AnyPart) -> str:
    """Return the name of a part in losses."""
    return f"{part.origin} block {part.kind!r}" if isinstance(part, Opaque) else _NAMES[type(part)]
