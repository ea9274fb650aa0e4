"""Chunks of a Chat Completions stream: these objects are read but never written.

Choices and fragments of calls forbid unknown keys, which are kept with the answer (codecs/unknown_keys.py). Those of
a chunk are skipped: the decoder reads them where an answer begins and ends.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.codecs.openai_chat.wire import ReasoningDetail, UsageWire


class FunctionFragment(Struct, gc=False, forbid_unknown_fields=True):
    name: str | None = None
    arguments: str | dict[str, Raw] | None = None


class CustomFragment(Struct, gc=False, forbid_unknown_fields=True):
    name: str | None = None
    input: str | None = None


class CallFragment(Struct, gc=False, forbid_unknown_fields=True):
    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: FunctionFragment | None = None
    custom: CustomFragment | None = None
    extra_content: Raw | UnsetType = UNSET
    # Without an object around them.
    name: str | None = None
    arguments: str | dict[str, Raw] | None = None


class SoundFragment(Struct, gc=False, forbid_unknown_fields=True):
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
    # Copilot
    reasoning_text: str | None = None
    reasoning_opaque: str | None = None
    reasoning_details: list[ReasoningDetail] | None = None
    # LiteLLM
    thinking_blocks: Raw | UnsetType = UNSET
    function_call: FunctionFragment | None = None
    annotations: Raw | UnsetType = UNSET
    extra_content: Raw | UnsetType = UNSET
    audio: SoundFragment | None = None
    images: Raw | UnsetType = UNSET


class OpenDelta(VendorDelta, gc=False, forbid_unknown_fields=False):
    """The same, with any further keys, which the decoder notes."""


D = TypeVar("D")


class ChunkChoice(Struct, Generic[D], gc=False, forbid_unknown_fields=True):
    index: int | None = None
    delta: D | None = None
    finish_reason: str | None = None
    logprobs: Any = None
    # Keys of other servers that come with every choice: the decoder reads those of the last one.
    native_finish_reason: Raw | UnsetType = UNSET
    content_filter_results: Raw | UnsetType = UNSET
    matched_stop: Raw | UnsetType = UNSET
    stop_reason: Raw | UnsetType = UNSET
    token_ids: Raw | UnsetType = UNSET
    # Kimi counts here.
    usage: Raw | UnsetType = UNSET
    # These repeat the answer so far.
    message: Raw | UnsetType = UNSET
    text: Raw | UnsetType = UNSET


class Chunk(Struct, Generic[D], gc=False):
    choices: list[ChunkChoice[D]] | None = None
    usage: UsageWire | None = None
    error: Raw | UnsetType = UNSET
    # Groq counts here, also without `stream_options`.
    x_groq: Raw | UnsetType = UNSET
    # Perplexity, xAI: pages, in any chunk.
    citations: Raw | UnsetType = UNSET
    search_results: Raw | UnsetType = UNSET
    # MiniMax: the error of an answer with status 200.
    base_resp: Raw | UnsetType = UNSET


class OpenChoice(ChunkChoice[OpenDelta], gc=False):
    delta: OpenDelta | None = None


class OpenChunk(Chunk[OpenDelta], gc=False):
    """The widest type: only keys of choices and of fragments do not fit it."""

    choices: list[OpenChoice] | None = None  # type: ignore[assignment]


class Opening(Struct, gc=False):
    """The first chunk's fields that describe the whole answer."""

    id: str | None = None
    model: str | None = None
    created: int | float | None = None
