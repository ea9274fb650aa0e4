"""Provider errors: status codes, kinds and retry hints, for all formats."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from math import ceil, inf

from dragoman.codecs.part_handlers import name_of_part
from dragoman.ir import (
    AnyPart,
    Completion,
    Failure,
    FailureKind,
    Finish,
    FinishReason,
    Message,
    Opaque,
    Refusal,
    StreamFailed,
    Text,
    ToolCall,
)
from dragoman.losses import LossLog

_KIND_OF_STATUS: dict[int, FailureKind] = {
    400: "invalid_request",
    401: "authentication",
    402: "billing",
    403: "permission",
    404: "not_found",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    422: "invalid_request",
    429: "rate_limit",
    499: "cancelled",
    500: "server",
    502: "server",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}
_STATUS_OF_KIND: dict[FailureKind, int] = {
    "invalid_request": 400,
    "authentication": 401,
    "billing": 402,
    "permission": 403,
    "not_found": 404,
    "conflict": 409,
    "too_large": 413,
    "rate_limit": 429,
    "server": 500,
    "overloaded": 503,
    "timeout": 504,
    "cancelled": 499,
    "truncated": 502,
}
_FIRST_SERVER_ERROR = 500


def kind_of_status(status: int | None) -> FailureKind:
    if status is None:
        return "server"
    known = _KIND_OF_STATUS.get(status)
    if known is not None:
        return known
    return "server" if status >= _FIRST_SERVER_ERROR else "invalid_request"


def status_of_kind(kind: FailureKind) -> int:
    return _STATUS_OF_KIND[kind]


def report_lost_kind(failure: Failure, arrives: FailureKind, log: LossLog) -> None:
    """Report a kind of error that a stream loses: an error there has no status, and its body may not state it."""
    if failure.kind not in {arrives, "truncated"}:  # only dragoman uses the kind "truncated"
        why = f"an error in a stream of this API reads as {arrives!r}"
        log.degrade(failure, "kind", f"kind of the error, {failure.kind!r}", why)


def failure_of(finish: Finish) -> Failure:
    """Return the error that represents a failed answer in APIs whose answers cannot fail."""
    word = finish.raw or finish.reason
    kind: FailureKind = "cancelled" if word == "cancelled" else "server"
    return Failure(kind, finish.explanation or f"the answer did not succeed: {word}")


def failed_stream(finish: Finish, log: LossLog) -> StreamFailed:
    """Return the event that replaces the end of a failed answer."""
    what = f"finish reason {finish.raw or finish.reason!r}"
    log.degrade(finish, "", what, "sent as an error: an answer of this API cannot say that it failed")
    return StreamFailed(failure_of(finish))


def _completion_of(*parts: Refusal | ToolCall) -> Completion:
    return Completion((Message("assistant", parts),))


_CALL, _REFUSAL = ToolCall("call", "f"), Refusal("")
_ENDED_WITH: dict[tuple[bool, bool], Completion] = {
    (False, False): Completion(()),
    (True, False): _completion_of(_CALL),
    (False, True): _completion_of(_REFUSAL),
    (True, True): _completion_of(_REFUSAL, _CALL),
}


def streamed_answer(*, calls: bool, refused: bool) -> Completion:
    """Return a stand-in for a streamed answer whose parts were not kept, with those that affect the finish reason."""
    return _ENDED_WITH[calls, refused]


_FAILED: frozenset[FinishReason] = frozenset({"error"})


def failed_answer(completion: Completion, log: LossLog, reasons: AbstractSet[FinishReason] = _FAILED) -> Failure | None:
    """Return the error to send in place of a failed answer without content; None for any other answer.

    `reasons` are those that an answer of the API cannot state.
    """
    finish = completion.finish
    if finish is None and not completion.messages:
        finish = Finish("error", "no answer")
    if finish is None or finish.reason not in reasons:
        return None
    hidden = [part for message in completion.messages for part in message.parts if not _is_shown(part)]
    if len(hidden) < sum(len(message.parts) for message in completion.messages):
        return None
    for part in hidden:
        if type(part) is Opaque:
            log.drop(part, "", name_of_part(part), "an error of this API has no content")
    what = f"finish reason {finish.raw or finish.reason!r}"
    log.degrade(completion, "finish", what, "sent as an error: an answer of this API cannot say that it failed")
    if completion.usage is not None:
        log.drop(completion, "usage", "usage", "an error of this API has none")
    for name, what in _HEAD.items():
        if getattr(completion, name) is not None:
            log.note(completion, name, what, "an error of this API does not include it")
    return failure_of(finish)


def _is_shown(part: AnyPart) -> bool:
    """Whether a client can read the part: neither a block of another provider nor an empty text."""
    return type(part) is not Opaque and (type(part) is not Text or bool(part.text) or part.signature is not None)


_HEAD = {"id": "id of the answer", "model": "name of the model", "created": "time of creation"}


def last_text_as_refusal(parts: Sequence[AnyPart], words: object) -> tuple[AnyPart, ...] | None:
    """Return the parts with the last text as a refusal; None unless the explanation of the end repeats that text.

    A refusal with text is sent this way to APIs that have no refusal part, and read back this way.
    """
    if not isinstance(words, str) or not words or not parts:
        return None
    last = parts[-1]
    if type(last) is not Text or last.text != words or last.citations or last.signature is not None:
        return None
    return (*parts[:-1], Refusal(words))


def words_of_refusal(message: Message) -> str | None:
    """Return the text to repeat as the explanation of the end; None unless the message ends with its only refusal."""
    parts = message.parts
    ends_so = len(parts) > 0 and type(parts[-1]) is Refusal and parts[-1].text == message.refusal
    return message.refusal or None if ends_so else None


def refusal_explained(completion: Completion, finish: Finish | None) -> str | None:
    """Return the explanation of a refusal: the text with which the answer ends, or what the finish says."""
    words = words_of_refusal(completion.messages[0]) if completion.messages else None
    return words or (None if finish is None else finish.explanation)


CONTEXT_LENGTH_EXCEEDED = "context_length_exceeded"
"""OpenAI's code of the error that makes clients compact a conversation."""
_TOO_LONG = re.compile(
    # Anthropic, Bedrock
    r"prompt is too long|input is too long|exceed context limit|too many total text bytes"
    # OpenAI and servers like it, llama.cpp, Ollama
    r"|(?:maximum|exceeds? the|available|model's) context (?:length|window|size)"
    # Google, Cohere
    r"|input token count[^.]{0,60}exceeds|too many tokens: size limit",
    re.IGNORECASE,
)
_SEARCHED = 2_000
"""How much of a message is searched."""


def exceeds_context(failure: Failure) -> bool:
    """Whether the provider refused because the request does not fit into the context of the model."""
    if failure.code is not None:
        return failure.code == CONTEXT_LENGTH_EXCEEDED
    return failure.kind == "invalid_request" and _TOO_LONG.search(failure.message[:_SEARCHED]) is not None


def code_of(failure: Failure) -> str | None:
    """Return the code of a failure in OpenAI's words."""
    return CONTEXT_LENGTH_EXCEEDED if exceeds_context(failure) else failure.code


def message_of(failure: Failure, too_long: str) -> str:
    """Return the message; if the context was exceeded, it begins with `too_long`, by which clients recognise it."""
    message = failure.message
    if too_long.lower() in message.lower() or not exceeds_context(failure):
        return message
    return f"{too_long}: {message}"


def retry_after_of(headers: Mapping[str, str]) -> float | None:
    """Return seconds to wait, from `retry-after-ms` or `retry-after`; None for a date, which would need a clock."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = seconds_of(headers.get(name, ""))
        if seconds is not None:
            return seconds * unit
    return None


def seconds_of(text: str) -> float | None:
    """Return a waiting time; None if it is not a number, negative, or not finite (`float` also reads `nan`, `inf`)."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds < inf else None


def retry_headers(seconds: float | None) -> dict[str, str]:
    """Return the headers of a waiting time. `retry-after` has whole seconds (RFC 9110), or some clients fail.

    For a fraction, milliseconds are added, which OpenAI's and Anthropic's SDKs read first.
    """
    if seconds is None:
        return {}
    whole = {"retry-after": f"{ceil(seconds):d}"}
    return whole if seconds == int(seconds) else {**whole, "retry-after-ms": f"{seconds * 1000:.0f}"}


def write_seconds(seconds: float) -> str:
    """Return a waiting time in seconds, without an exponent, which clients could not read."""
    text = f"{seconds:g}"
    return f"{seconds:.0f}" if "e" in text else text
