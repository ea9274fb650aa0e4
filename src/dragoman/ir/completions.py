"""Completions: what came back. Usage: one algebra for all providers. Failures: errors as values."""

from __future__ import annotations

from typing import Literal, TypeAlias

from dragoman.ir.messages import Message
from dragoman.ir.parts import ToolCall
from dragoman.ir.values import Json, Metadata, Value, holds_json

FinishReason: TypeAlias = Literal[
    "stop", "length", "tool_calls", "content_filter", "refusal", "pause", "error", "unknown"
]


class Usage(Value, frozen=True):
    """Token counts, converted from each provider's own way of counting.

    `input` is everything the model read, cached tokens included; `cached` and `cache_written` are parts of it.
    `output` is everything it wrote, `reasoning` included. `total` is what the provider reported, or input + output.
    """

    input: int = 0
    output: int = 0
    cached: int | None = None
    cache_written: int | None = None
    reasoning: int | None = None
    image: int | None = None
    total: int | None = None
    metadata: Metadata | None = None

    @property
    def uncached_input(self) -> int:
        """Input tokens neither read from a cache nor written to one."""
        return self.input - (self.cached or 0) - (self.cache_written or 0)


class Finish(Value, frozen=True):
    """Why the answer ended: our word, the wire's own word, and its details."""

    reason: FinishReason
    raw: str | None = None
    stop_sequence: str | None = None
    metadata: Metadata | None = None


class Completion(Value, frozen=True):
    """One answer. `messages` are in order; usually one, more when the client asked for several candidates."""

    messages: tuple[Message, ...]
    finish: Finish | None = None
    usage: Usage | None = None
    id: str | None = None
    model: str | None = None
    created: int | None = None
    finishes: tuple[Finish | None, ...] = ()
    """With several candidates, the finish of each; `finish` is the first."""
    metadata: Metadata | None = None

    @property
    def text(self) -> str:
        return self.messages[0].text if self.messages else ""

    @property
    def reasoning(self) -> str:
        return self.messages[0].reasoning if self.messages else ""

    @property
    def refusal(self) -> str | None:
        return self.messages[0].refusal if self.messages else None

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return self.messages[0].tool_calls if self.messages else ()

    @property
    def finish_reason(self) -> FinishReason | None:
        return self.finish.reason if self.finish is not None else None


FailureKind: TypeAlias = Literal[
    "invalid_request",
    "authentication",
    "billing",
    "permission",
    "not_found",
    "conflict",
    "too_large",
    "rate_limit",
    "server",
    "overloaded",
    "timeout",
    "cancelled",
    "truncated",
]


@holds_json("details")
class Failure(Value, frozen=True):
    """An error a provider answered with."""

    kind: FailureKind
    message: str
    status: int | None = None
    code: str | None = None
    parameter: str | None = None
    retry_after: float | None = None
    """Seconds."""
    request_id: str | None = None
    raw_type: str | None = None
    details: Json = None  # type: ignore[assignment]
    metadata: Metadata | None = None
