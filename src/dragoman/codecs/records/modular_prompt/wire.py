"""Records of modular-prompt: messages with `toolCalls`, results {toolCallId, name, kind, value}, and the older ones."""

from __future__ import annotations

from msgspec import UNSET, Raw, UnsetType, field

from dragoman.codecs.reading import MaybeStr, Wire
from dragoman.codecs.records.calls import CallRecord
from dragoman.codecs.records.history import Document
from dragoman.codecs.records.parts import Content
from dragoman.codecs.records.tools import ChoiceRecord


class MessageRecord(Wire, frozen=True):
    role: str
    content: Content = UNSET
    name: MaybeStr = None
    tool_calls: list[CallRecord] | UnsetType = field(default=UNSET, name="toolCalls")


class ResultRecord(Wire, frozen=True):
    """`kind` and `value` by the newer specification, `content` by the older one."""

    tool_call_id: str | None | UnsetType = field(default=UNSET, name="toolCallId")
    name: MaybeStr = None
    kind: str | UnsetType = UNSET
    value: Raw | UnsetType = UNSET
    content: Content = UNSET
    role: str | UnsetType = UNSET


class Prompt(Document, frozen=True, omit_defaults=True):
    """Messages with the options of a query."""

    tool_choice: str | ChoiceRecord | UnsetType = field(default=UNSET, name="toolChoice")


class TokenCounts(Wire, frozen=True):
    prompt_tokens: int = field(default=0, name="promptTokens")
    completion_tokens: int = field(default=0, name="completionTokens")
    total_tokens: int | UnsetType = field(default=UNSET, name="totalTokens")


class QueryResult(Wire, frozen=True):
    """What the result of a query says beside the message."""

    finish_reason: str | UnsetType = field(default=UNSET, name="finishReason")
    usage: TokenCounts | UnsetType = UNSET
