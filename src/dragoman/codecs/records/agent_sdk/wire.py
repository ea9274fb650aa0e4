"""Messages of the agent SDK: five roles, JSON-text arguments, results with a reference to the whole output."""

from __future__ import annotations

from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.reading import MaybeInt, MaybeStr, Wire
from dragoman.codecs.records.calls import CallRecord
from dragoman.codecs.records.parts import Content


class MessageRecord(Wire, frozen=True):
    role: str
    content: Content = UNSET
    name: MaybeStr = None
    tool_calls: list[CallRecord] | UnsetType = UNSET
    refusal: str | UnsetType = UNSET
    cache: bool | UnsetType = UNSET


class ReasoningRecord(Wire, frozen=True):
    """`raw_item` is the provider's own item: what must go back to it."""

    role: str
    content: str | None | UnsetType = UNSET
    raw_item: Raw | UnsetType = UNSET


class ResultRecord(Wire, frozen=True):
    """`output_ref` and `trimmed` are the agent's own business: they stay with the record."""

    role: str
    tool_call_id: str | None | UnsetType = UNSET
    tool_name: MaybeStr = None
    content: Content = UNSET
    is_error: bool | UnsetType = UNSET
    kind: str | UnsetType = UNSET


class UsageRecord(Wire, frozen=True):
    model: MaybeStr = None
    input_tokens: int = 0
    input_cached_tokens: MaybeInt = None
    input_cache_creation_tokens: MaybeInt = None
    input_image_tokens: MaybeInt = None
    output_tokens: int = 0
    total_tokens: MaybeInt = None


class CompletionRecord(Wire, frozen=True):
    messages: list[Raw]
    usage: UsageRecord | UnsetType = UNSET
    stop_reason: str | UnsetType = UNSET
