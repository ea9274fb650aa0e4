"""Collects the traits of a request that was not decoded, in one walk."""

from __future__ import annotations

from msgspec import structs

from dragoman.ir import AnyPart, Message, Request, ToolCall, ToolResult
from dragoman.ir.traits import (
    BLANK_TEXT,
    EMPTY_MESSAGE,
    MISPLACED_PART,
    NAMED_SPEAKER,
    UNKNOWN_PART,
    TraitNotes,
    Traits,
    tool_traits,
)


def survey(request: Request) -> Traits:
    """The traits of a request, as decoders note them while they read."""
    notes = TraitNotes()
    for message in request.messages:
        _note_message(message, notes)
    copy = structs.replace(request)  # do not change the caller's request
    names = {tool.name for tool in request.tools}
    return notes.noted_on(copy, names, tool_traits(request.tools))._traits  # type: ignore[attr-defined, no-any-return]  # noqa: SLF001


def _note_message(message: Message, notes: TraitNotes) -> None:
    role, content = message.role, message.content_held
    if message.metadata is not None:
        notes.metadata(message.metadata)
    if message.name is not None:
        notes.bits |= NAMED_SPEAKER
    if role != "tool":
        notes.turn(role)
    elif type(content) is str:
        notes.bits |= MISPLACED_PART
    elif not content:
        notes.end_results()  # results that follow are not right behind their calls
    if type(content) is str:
        notes.text(content)
        return
    if not content:
        notes.bits |= EMPTY_MESSAGE
    for part in content:
        _note_part(part, role, notes)  # type: ignore[arg-type]


def _note_part(part: AnyPart, role: str, notes: TraitNotes) -> None:
    kind = type(part)
    if (kind is ToolResult) != (role == "tool") or (kind is ToolCall and role != "assistant"):
        notes.bits |= MISPLACED_PART
    if type(part) is ToolCall:
        notes.call(part.id, part.name)
    elif type(part) is ToolResult:
        if role == "tool":
            notes.result(part.tool_call_id, part.name)
        for piece in part.parts:
            _note_piece(piece, notes)
    notes.part(part)


def _note_piece(piece: AnyPart, notes: TraitNotes) -> None:
    """Blank text and unknown parts inside a result are not noted: the encoder handles them."""
    bits = notes.bits
    notes.part(piece)
    notes.bits = bits | (notes.bits & ~(BLANK_TEXT | UNKNOWN_PART))
