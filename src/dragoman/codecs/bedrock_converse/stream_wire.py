"""Events of a ConverseStream. Unknown keys, the padding `p` among them, are skipped: nothing here is written back."""

from __future__ import annotations

from msgspec import UNSET, Raw, Struct, UnsetType


class InputDelta(Struct, gc=False):
    input: str


class ReasoningDelta(Struct, gc=False, rename="camel"):
    text: str | None = None
    signature: str | None = None
    redacted_content: str | None = None


class Delta(Struct, gc=False, rename="camel"):
    text: str | None = None
    tool_use: InputDelta | None = None
    reasoning_content: ReasoningDelta | None = None
    citation: Raw | UnsetType = UNSET


class BlockDelta(Struct, gc=False, rename="camel"):
    content_block_index: int
    delta: Delta


class BlockStart(Struct, gc=False, rename="camel"):
    content_block_index: int
    start: dict[str, Raw]


class BlockStop(Struct, gc=False, rename="camel"):
    content_block_index: int


class MessageStop(Struct, gc=False, frozen=True, rename="camel"):
    stop_reason: str | UnsetType = UNSET
    additional_model_response_fields: Raw | UnsetType = UNSET


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
