"""Cohere's chat v2 on the wire: every documented field.

Fields that we interpret are typed, other keys are exact JSON. Only future fields come as extras (codecs/reading.py).
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.codecs.reading import fields_beyond
from dragoman.codecs.wire_values import UNKNOWN, MaybeBool, MaybeInt, MaybeNumber, MaybeRaw, MaybeStr, Unmodelled, Wire


class TextPart(Wire, frozen=True, tag="text"):
    text: str
    # Ours, in answers: see codecs/carried_signatures.py. The API itself refuses unknown keys.
    signature: Raw | UnsetType = UNSET


class ThinkingPart(Wire, frozen=True, tag="thinking"):
    thinking: str
    signature: Raw | UnsetType = UNSET


class ImageUrl(Wire, frozen=True):
    url: str
    detail: str | UnsetType = UNSET


class ImagePart(Wire, frozen=True, tag="image_url"):
    image_url: ImageUrl


class DocumentWire(Wire, frozen=True):
    # An object by the schema; the documentation also shows a string.
    data: Raw
    id: str | UnsetType = UNSET


class DocumentPart(Wire, frozen=True, tag="document"):
    document: DocumentWire


ContentPart: TypeAlias = TextPart | ThinkingPart | ImagePart | DocumentPart | Unmodelled


class Function(Wire, frozen=True):
    name: str
    arguments: str | None | UnsetType = UNSET


class Call(Wire, frozen=True):
    id: str
    function: Function
    type: str | UnsetType = UNSET
    signature: Raw | UnsetType = UNSET


class ChatMessage(Wire, frozen=True, tag_field="role"):
    pass


class SystemMessage(ChatMessage, frozen=True, tag="system"):
    content: str | list[ContentPart]


class UserMessage(ChatMessage, frozen=True, tag="user"):
    content: str | list[ContentPart]


class AssistantMessage(ChatMessage, frozen=True, tag="assistant"):
    content: str | list[ContentPart] | None | UnsetType = UNSET
    tool_plan: str | None | UnsetType = UNSET
    tool_calls: list[Call] | None | UnsetType = UNSET
    citations: Raw | UnsetType = UNSET


class ToolMessage(ChatMessage, frozen=True, tag="tool"):
    tool_call_id: str
    content: str | list[ContentPart]


class UnknownMessage(ChatMessage, frozen=True, tag=UNKNOWN):
    raw: Raw


AnyMessage: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage | UnknownMessage


class FunctionDefinition(Wire, frozen=True):
    name: str
    description: str | UnsetType = UNSET
    parameters: Raw | UnsetType = UNSET


class FunctionTool(Wire, frozen=True, tag="function"):
    function: FunctionDefinition


AnyTool: TypeAlias = FunctionTool | Unmodelled


class Thinking(Wire, frozen=True, omit_defaults=True):
    # Required by the schema; an example of the documentation omits it.
    type: MaybeStr = None
    token_budget: MaybeInt = None


class ResponseFormat(Wire, frozen=True):
    type: str
    json_schema: Raw | UnsetType = UNSET


class ChatRequest(Wire, frozen=True, omit_defaults=True):
    """A request as we write it."""

    messages: list[AnyMessage]
    model: MaybeStr = None
    documents: Raw | UnsetType = UNSET
    tools: Raw | UnsetType = UNSET
    strict_tools: bool | UnsetType = UNSET
    tool_choice: str | UnsetType = UNSET
    response_format: ResponseFormat | UnsetType = UNSET
    max_tokens: MaybeInt = None
    stop_sequences: list[str] | UnsetType = UNSET
    temperature: MaybeNumber = None
    p: MaybeNumber = None
    k: MaybeInt = None
    seed: MaybeInt = None
    frequency_penalty: MaybeNumber = None
    presence_penalty: MaybeNumber = None
    thinking: Thinking | UnsetType = UNSET
    stream: bool | UnsetType = UNSET
    logprobs: MaybeBool = None


class ChatBody(ChatRequest, frozen=True, omit_defaults=True):
    """A request as it is read, with the keys that no field of the intermediate format models."""

    citation_options: MaybeRaw = None
    safety_mode: MaybeRaw = None
    priority: MaybeRaw = None


PASSED_ON = fields_beyond(ChatBody, ChatRequest)
"""Keys that are sent back to this API unchanged, and to no other."""


class TokenCounts(Struct, frozen=True, gc=False):
    """Numbers are integers, or have a fraction of zero after some other program rewrote them."""

    input_tokens: int | float | None = None
    output_tokens: int | float | None = None
    reasoning_tokens: int | float | None = None
    image_tokens: int | float | None = None


class UsageWire(Struct, frozen=True, gc=False):
    """The counts we read. The whole object is kept beside them, byte for byte."""

    tokens: TokenCounts | None = None
    billed_units: TokenCounts | None = None
    cached_tokens: int | float | None = None


class ChatResponse(Wire, frozen=True, omit_defaults=True):
    id: MaybeStr = None
    message: AssistantMessage | UnsetType = UNSET
    finish_reason: MaybeStr = None
    usage: Raw | UnsetType = UNSET
    logprobs: MaybeRaw = None
    # Early servers of v2 counted here.
    meta: MaybeRaw = None


class ErrorResponse(Wire, frozen=True, omit_defaults=True):
    message: str
    id: MaybeStr = None
    error_type: MaybeStr = None


# ── citations ─────────────────────────────────────────────────────────────────────────────────────────────────


class SourceHead(Struct, frozen=True, gc=False):
    """The fields of a source that we read. The whole citation is kept beside it, byte for byte."""

    type: str | None = None
    id: str | None = None
    document: Raw | UnsetType = UNSET
    tool_output: Raw | UnsetType = UNSET


class CitationHead(Struct, frozen=True, gc=False):
    start: int | None = None
    end: int | None = None
    text: str | None = None
    type: str | None = None
    content_index: int | None = None
    sources: list[SourceHead] | None = None


class SourceOut(Struct, frozen=True, gc=False, omit_defaults=True):
    """A page or document that another provider cited."""

    type: str
    id: str | None = None
    document: dict[str, str] | None = None


class CitationOut(Struct, frozen=True, gc=False, omit_defaults=True):
    start: int | None = None
    end: int | None = None
    text: str | None = None
    sources: tuple[SourceOut, ...] = ()
    content_index: int | None = None
    type: str | None = None
