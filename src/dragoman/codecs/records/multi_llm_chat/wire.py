"""Entries of multi-llm-chat: {role, content}, content a string (old) or a list of typed parts."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.reading import MaybeStr, Unmodelled, Wire
from dragoman.codecs.records.history import Document


class TextPart(Wire, frozen=True, tag="text"):
    content: str


class CallContent(Wire, frozen=True):
    name: str
    arguments: Raw | UnsetType = UNSET
    tool_call_id: str | None | UnsetType = UNSET


class CallPart(Wire, frozen=True, tag="tool_call"):
    """Nested by the specification; the loop of the old program wrote the same keys flat, beside the type."""

    content: CallContent | UnsetType = UNSET
    name: str | UnsetType = UNSET
    arguments: Raw | UnsetType = UNSET
    tool_call_id: str | None | UnsetType = UNSET


class ResultPart(Wire, frozen=True, tag="tool_result"):
    content: Raw | UnsetType = UNSET
    name: MaybeStr = None
    tool_call_id: str | None | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET
    kind: str | UnsetType = UNSET


class ReasoningPart(Wire, frozen=True, tag="reasoning"):
    content: str
    redacted: bool | UnsetType = UNSET


AnyPartWire: TypeAlias = TextPart | CallPart | ResultPart | ReasoningPart | Unmodelled


class Entry(Wire, frozen=True):
    role: str
    content: str | list[AnyPartWire | str] | None | UnsetType = UNSET
    name: MaybeStr = None
    tool_call_id: str | None | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET


class StoredChat(Document, frozen=True, omit_defaults=True):
    """A saved conversation: the turns, and the system prompt beside them."""

    system_prompt: MaybeStr = None
