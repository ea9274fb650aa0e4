"""Chunks of a Chat Completions stream. Unknown keys are skipped: these objects are read but never written."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.codecs.openai_chat.wire import ReasoningDetail, UsageWire


class FunctionFragment(Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Raw] | None = None


class CustomFragment(Struct, gc=False):
    name: str | None = None
    input: str | None = None


class CallFragment(Struct, gc=False):
    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: FunctionFragment | None = None
    custom: CustomFragment | None = None
    extra_content: Raw | UnsetType = UNSET


class SoundFragment(Struct, gc=False):
    id: str | None = None
    data: str | None = None
    transcript: str | None = None
    expires_at: int | None = None


class PlainDelta(Struct, gc=False, forbid_unknown_fields=True):
    """The specification's fields. Most streams have no others, and are read with this type alone."""

    role: str | None = None
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[CallFragment] | None = None


class VendorDelta(Struct, gc=False, forbid_unknown_fields=True):
    """Every field of a delta that the intermediate format models."""

    role: str | None = None
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[CallFragment] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[ReasoningDetail] | None = None
    function_call: FunctionFragment | None = None
    annotations: Raw | UnsetType = UNSET
    extra_content: Raw | UnsetType = UNSET
    audio: SoundFragment | None = None


class OpenDelta(VendorDelta, gc=False, forbid_unknown_fields=False):
    """The same, with any further keys, which the decoder notes."""


D = TypeVar("D")


class ChunkChoice(Struct, Generic[D], gc=False):
    index: int | None = None
    delta: D | None = None
    finish_reason: str | None = None
    logprobs: Any = None


class Chunk(Struct, Generic[D], gc=False):
    choices: list[ChunkChoice[D]] | None = None
    usage: UsageWire | None = None
    error: Raw | UnsetType = UNSET


class Opening(Struct, gc=False):
    """The first chunk's fields that describe the whole answer."""

    id: str | None = None
    model: str | None = None
    created: int | None = None
