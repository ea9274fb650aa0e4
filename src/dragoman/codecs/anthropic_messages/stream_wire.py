"""Events of a Messages stream.

All types forbid unknown keys. Those of the message at its start stay with it; those of the other objects are kept with
the answer (codecs/unknown_keys.py).
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType, field

from dragoman.codecs.anthropic_messages.wire import Block


class TextDelta(Struct, gc=False, tag="text_delta", forbid_unknown_fields=True):
    text: str


class InputDelta(Struct, gc=False, tag="input_json_delta", forbid_unknown_fields=True):
    text: str = field(name="partial_json")


class ThinkingDelta(Struct, gc=False, tag="thinking_delta", forbid_unknown_fields=True):
    text: str = field(name="thinking")
    estimated_tokens: int | None = None
    """A running estimate, which the usage at the end replaces."""


class SignatureDelta(Struct, gc=False, tag="signature_delta", forbid_unknown_fields=True):
    signature: str


class CitationDelta(Struct, gc=False, tag="citations_delta", forbid_unknown_fields=True):
    citation: Raw


class BlockDelta(Struct, gc=False, tag="content_block_delta", forbid_unknown_fields=True):
    index: int
    delta: TextDelta | InputDelta | ThinkingDelta | SignatureDelta | CitationDelta


class BlockStart(Struct, gc=False, tag="content_block_start", forbid_unknown_fields=True):
    index: int
    content_block: Block


class BlockStop(Struct, gc=False, tag="content_block_stop", forbid_unknown_fields=True):
    index: int


class Opening(Struct, gc=False, forbid_unknown_fields=True):
    """The message as given at the start: usually empty, complete if there was nothing to wait for."""

    id: str | None = None
    type: Raw | UnsetType = UNSET
    role: Raw | UnsetType = UNSET
    model: str | None = None
    content: list[Raw] | None = None
    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: Raw | UnsetType = UNSET
    usage: Raw | UnsetType = UNSET


class MessageStart(Struct, gc=False, tag="message_start", forbid_unknown_fields=True):
    message: Opening


class Ending(Struct, gc=False, frozen=True, forbid_unknown_fields=True):
    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: Raw | UnsetType = UNSET
    container: Raw | UnsetType = UNSET


class MessageDelta(Struct, gc=False, tag="message_delta", forbid_unknown_fields=True):
    delta: Ending | None = None
    usage: Raw | UnsetType = UNSET
    context_management: Raw | UnsetType = UNSET


class MessageStop(Struct, gc=False, tag="message_stop", forbid_unknown_fields=True):
    """The end of the message. Bedrock adds its metrics, which repeat the counts of the usage."""

    metrics: Raw | UnsetType = field(name="amazon-bedrock-invocationMetrics", default=UNSET)


class Ping(Struct, gc=False, tag="ping", forbid_unknown_fields=True):
    """Keeps the connection open."""


class ErrorEvent(Struct, gc=False, tag="error"):
    """An error in a stream with HTTP status 200: its type says what failed."""


class LooseEvent(Struct, gc=False):
    """An event of an unknown kind, or one with unknown keys."""

    type: str | None = None
    index: int | None = None
    delta: dict[str, Raw] | None = None
    content_block: Raw | UnsetType = UNSET
    message: dict[str, Raw] | None = None
    error: Raw | UnsetType = UNSET


WireEvent: TypeAlias = (
    BlockDelta | BlockStart | BlockStop | MessageStart | MessageDelta | MessageStop | Ping | ErrorEvent
)
