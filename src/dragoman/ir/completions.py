"""Completions (answers), usage in one form for all providers, and failures (errors as values)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias

from dragoman.ir.messages import Message
from dragoman.ir.parts import Text, ToolCall
from dragoman.ir.values import Held, Items, Json, Metadata, Nodes, Value, holds_json

FinishReason: TypeAlias = Literal[
    "stop", "length", "tool_calls", "content_filter", "refusal", "pause", "error", "unknown"
]


class Usage(Value, frozen=True):
    """Token counts, converted from each provider's own way of counting.

    `input` is everything the model read, cached tokens included; `cached` and `cache_written` are parts of it.
    `output` is everything it wrote, `reasoning` included. `total` is the provider's own total, or input + output.
    """

    input: int = 0
    output: int = 0
    cached: int | None = None
    cache_written: int | None = None
    reasoning: int | None = None
    image: int | None = None
    total: int | None = None
    metadata: Metadata | None = None
    searches: int | None = None
    """Number of web searches, which are billed separately from tokens."""
    details: dict[str, int] | None = None
    """Further counts that some providers keep apart, by our names (`USAGE_DETAILS`); only those above zero."""
    service_tier: str | None = None
    """The tier at which the request was served and is billed: a value of `Request.service_tier`, or `batch`."""

    @property
    def uncached_input(self) -> int:
        """Input tokens neither read from a cache nor written to one."""
        return self.input - (self.cached or 0) - (self.cache_written or 0)


USAGE_DETAILS: Mapping[str, str] = {
    "audio_input": "audio tokens of the input",
    "audio_output": "audio tokens of the output",
    "accepted_prediction": "accepted tokens of a prediction",
    "rejected_prediction": "rejected tokens of a prediction",
    "cache_written_1h": "tokens written to a cache with a lifetime of an hour",
    "web_fetches": "pages that the provider fetched",
}


class Finish(Value, frozen=True):
    """Why the answer ended: our reason, the wire's own value, and its details."""

    reason: FinishReason
    raw: str | None = None
    stop_sequence: str | None = None
    metadata: Metadata | None = None
    explanation: str | None = None
    """The provider's message about a failed answer."""


WithheldReason: TypeAlias = Literal["blocked", "cut", "failed", "unknown"]

# Law 7: no call of such an answer is run, even if the call itself is complete. An unknown value may be a vendor's new
# value for a blocked answer, so its calls are withheld until a codec maps it. An answer without a reason (some servers
# leave it out) is not known to be blocked or cut: its calls are offered.
_WITHHELD_BY: Mapping[FinishReason, WithheldReason] = {
    "content_filter": "blocked",
    "refusal": "blocked",
    "error": "failed",
    "unknown": "unknown",
}
_EXPLAINED: Mapping[WithheldReason, str] = {
    "blocked": "the provider blocked the answer",
    "cut": "the answer was cut off inside the call",
    "failed": "the answer ended in an error",
    "unknown": "the answer ended for a reason that is not known",
}


class WithheldCall(Value, frozen=True):
    """A call that must not be run, and why. `word` is the finish reason as the wire spells it, if any."""

    call: ToolCall
    reason: WithheldReason
    word: str | None = None

    @property
    def explanation(self) -> str:
        """The reason in a clause, for users and models: "the provider blocked the answer (SAFETY)"."""
        text = _EXPLAINED[self.reason]
        return text if self.word is None else f"{text} ({self.word})"


def withholds_calls(finish: Finish | None) -> bool:
    """Whether calls of an answer with this finish must not be run."""
    return finish is not None and finish.reason in _WITHHELD_BY


def split_calls(message: Message, finish: Finish | None) -> tuple[tuple[ToolCall, ...], tuple[WithheldCall, ...]]:
    """The calls of an answer that may be run, and those that must not be (law 7). Nothing else decides this.

    In an answer that ran into its token limit, the call that ends it is cut, even if its arguments parse or are `{}`:
    every wire closes a cut block as it closes a whole one (Anthropic sends `content_block_stop`), so only a part that
    follows proves that a call was complete.
    """
    word = None if finish is None else finish.raw
    general = None if finish is None else _WITHHELD_BY.get(finish.reason)
    last = _last_call(message) if finish is not None and finish.reason == "length" else None
    offered: list[ToolCall] = []
    withheld: list[WithheldCall] = []
    for call in message.tool_calls:
        reason = general or ("cut" if call.incomplete or call is last else None)
        if reason is None:
            offered.append(call)
        else:
            withheld.append(WithheldCall(call, reason, word))
    return tuple(offered), tuple(withheld)


def _last_call(message: Message) -> ToolCall | None:
    """The call at the end of the message, ignoring the empty text with which Gemini ends its streams."""
    for part in reversed(message.parts):
        if not (isinstance(part, Text) and not part.text):
            return part if isinstance(part, ToolCall) else None
    return None


class TokenLogprob(Value, frozen=True):
    """A token, and the natural logarithm of its probability."""

    token: str
    logprob: float
    bytes: tuple[int, ...] | None = None
    """Its UTF-8 bytes, if the provider gives them: a character may span several tokens."""
    top_logprobs: Nodes[TokenLogprob] = ()  # type: ignore[assignment]
    """The most likely tokens at this position."""
    id: int | None = None


class Logprobs(Value, frozen=True):
    """How likely the tokens of an answer's text were, in order."""

    tokens: Nodes[TokenLogprob]
    candidate: int = 0


class Completion(Value, frozen=True):
    """One answer. `messages` are in order; usually one, more when the client asked for several candidates."""

    messages: Nodes[Message]
    finish: Finish | None = None
    usage: Usage | None = None
    id: str | None = None
    model: str | None = None
    created: int | None = None
    finishes: Items[Finish | None] = ()  # type: ignore[assignment]
    """With several candidates, the finish of each; `finish` is the first."""
    metadata: Metadata | None = None
    logprobs: Nodes[Logprobs] = ()  # type: ignore[assignment]
    """Log probabilities, of each candidate that has them."""

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
        """The calls that may be run. `withheld_calls` has the others; `messages[0].tool_calls` has all of them."""
        return split_calls(self.messages[0], self.finish)[0] if self.messages else ()

    @property
    def withheld_calls(self) -> tuple[WithheldCall, ...]:
        """The calls that must not be run, each with the reason: the answer was blocked, failed, or cut inside it."""
        return split_calls(self.messages[0], self.finish)[1] if self.messages else ()

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
    """An error reported by a provider."""

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

    details_held: ClassVar[Held[Any]]
