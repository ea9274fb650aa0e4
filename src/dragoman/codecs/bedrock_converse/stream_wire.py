"""Events of a ConverseStream.

Types forbid unknown keys, which are kept with the answer (codecs/unknown_keys.py). Deltas accept any: those of a block
that is emitted whole belong to that block. The padding `p` is skipped.
"""

from __future__ import annotations

from msgspec import UNSET, Raw, Struct, UnsetType


class InputDelta(Struct, gc=False, forbid_unknown_fields=True):
    input: str


class ReasoningDelta(Struct, gc=False, rename="camel", forbid_unknown_fields=True):
    text: str | None = None
    signature: str | None = None
    redacted_content: str | None = None


class Delta(Struct, gc=False, rename="camel"):
    text: str | None = None
    tool_use: InputDelta | None = None
    reasoning_content: ReasoningDelta | None = None
    citation: Raw | UnsetType = UNSET


class BlockDelta(Struct, gc=False, rename="camel", forbid_unknown_fields=True):
    content_block_index: int
    delta: Delta
    p: Raw | UnsetType = UNSET


class BlockStart(Struct, gc=False, rename="camel", forbid_unknown_fields=True):
    content_block_index: int
    start: dict[str, Raw]
    p: Raw | UnsetType = UNSET


class BlockStop(Struct, gc=False, rename="camel", forbid_unknown_fields=True):
    content_block_index: int
    p: Raw | UnsetType = UNSET


class MessageStop(Struct, gc=False, frozen=True, rename="camel", forbid_unknown_fields=True):
    stop_reason: str | UnsetType = UNSET
    additional_model_response_fields: Raw | UnsetType = UNSET
    p: Raw | UnsetType = UNSET


class WireEvent(Struct, gc=False, rename="camel"):
    """A frame: its only key is its type."""

    content_block_delta: BlockDelta | None = None
    content_block_start: BlockStart | None = None
    content_block_stop: BlockStop | None = None
    message_start: dict[str, Raw] | None = None
    message_stop: MessageStop | None = None
    metadata: dict[str, Raw] | None = None


class LooseDelta(Struct, gc=False, rename="camel"):
    """A delta with all its keys."""

    delta: dict[str, Raw]


class LooseEvent(Struct, gc=False, rename="camel"):
    content_block_delta: LooseDelta | None = None
