"""The usual chunks of a generateContent stream; others are read with the types of whole answers."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.codecs.gemini.partial_arguments import PartialArgument
from dragoman.codecs.gemini.wire import (
    Enum,
)


class CallPiece(Struct, gc=False, rename="camel", forbid_unknown_fields=True):
    """A whole call, or the piece of one in this chunk."""

    name: str | UnsetType = UNSET
    args: Raw | UnsetType = UNSET
    id: str | UnsetType = UNSET
    partial_args: list[PartialArgument] | UnsetType = UNSET
    will_continue: bool = False


class PlainPart(Struct, gc=False, rename="camel", forbid_unknown_fields=True):
    text: str | UnsetType = UNSET
    thought: bool | UnsetType = UNSET
    thought_signature: str | UnsetType = UNSET
    function_call: CallPiece | UnsetType = UNSET


class PlainContent(Struct, gc=False, forbid_unknown_fields=True):
    parts: list[PlainPart] | UnsetType = UNSET
    role: Literal["model"] | UnsetType = UNSET


class PlainCandidate(Struct, gc=False, rename="camel", forbid_unknown_fields=True):
    """Only the fields of nearly every chunk. Most streams are read with this type alone."""

    content: PlainContent | UnsetType = UNSET
    index: int | UnsetType = UNSET
    finish_reason: Enum | UnsetType = UNSET


class FullCandidate(PlainCandidate):
    """All fields the service may send beside the content. A stream with one of them usually has it in every chunk."""

    safety_ratings: Raw | UnsetType = UNSET
    grounding_metadata: Raw | UnsetType = UNSET
    citation_metadata: Raw | UnsetType = UNSET
    url_context_metadata: Raw | UnsetType = UNSET
    finish_message: Raw | UnsetType = UNSET
    avg_logprobs: Raw | UnsetType = UNSET
    logprobs_result: Raw | UnsetType = UNSET
    token_count: Raw | UnsetType = UNSET
    continuation_token: Raw | UnsetType = UNSET


C = TypeVar("C")


class FirstChunk(Struct, Generic[C], gc=False, rename="camel", forbid_unknown_fields=True):
    """The first chunk, which also has the fields of the whole answer."""

    candidates: list[C]
    usage_metadata: Raw | UnsetType = UNSET
    model_version: str | UnsetType = UNSET
    response_id: str | UnsetType = UNSET
    create_time: Raw | UnsetType = UNSET
    turn_token: Raw | UnsetType = UNSET


class Chunk(Struct, Generic[C], gc=False, rename="camel", forbid_unknown_fields=True):
    """A later chunk. It repeats the fields of the whole answer; other keys are read with the wider type."""

    candidates: list[C] | UnsetType = UNSET
    usage_metadata: Raw | UnsetType = UNSET
    model_version: str | UnsetType = UNSET
    response_id: str | UnsetType = UNSET
    create_time: Raw | UnsetType = UNSET
    turn_token: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
