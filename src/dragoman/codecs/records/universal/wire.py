"""Universal records: messages, calls {id, name, arguments, raw_context?}, results {tool_call_id, name, result, …}."""

from __future__ import annotations

from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.reading import MaybeStr, Wire
from dragoman.codecs.records.calls import CallRecord
from dragoman.codecs.records.parts import Content, ContentPart


class MessageRecord(Wire, frozen=True):
    role: str
    content: Content = UNSET
    name: MaybeStr = None
    tool_calls: list[CallRecord] | UnsetType = UNSET


class ResultRecord(Wire, frozen=True):
    tool_call_id: str | None | UnsetType = UNSET
    name: MaybeStr = None
    result: Raw | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET
    multimodal_parts: list[ContentPart] | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    role: str | UnsetType = UNSET
