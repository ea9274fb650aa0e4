"""The errors of translating bodies and of calling providers. Agents and batches add a few of their own.

DragomanError
├── DecodeError          the body does not follow its format: the sender's fault
│   ├── LimitExceeded    it is larger or more deeply nested than allowed
│   └── IllegalEvent     the event of a stream is not allowed in the current state
├── StreamError          a stream failed: failure, partial answer
│   └── TruncatedStream  the bytes ended before the end signal of the format
├── EncodeError          this conversation cannot be expressed in the target's format
│   └── LossRefused      it can be expressed with losses, but the caller passed strict=True
├── InvalidValue         a value was built with a field that no format can express: path, expected, found
│   └── InvalidType      the field has the wrong type, is missing, or is unknown
├── UnparsedArguments    arguments were read from a call whose text is not a JSON object
├── UnsupportedFormat    the format has no bodies of this kind: a stored history has no streams and no errors
├── UnknownFormat        there is no codec of that name
├── NotConfigured        a driver lacks a key, a package or a URL; the message says which and how to provide it
├── ScriptExhausted      a scripted driver has no more answers
└── ProviderError        the provider refused or failed: status, message, request id, retry time, partial answer
    ├── InvalidRequest, RequestTooLarge, NotFound, Conflict
    ├── AuthenticationFailed, PermissionRefused, BillingRefused
    ├── RateLimited, Overloaded, ServerFailed
    ├── TimedOut, AnswerCut, CallCancelled
    └── ConnectionFailed     no connection, so nothing was sent
        └── NoAnswer         the request was sent, perhaps in part, and no answer came
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.ir import Completion, Failure, FailureKind
    from dragoman.loss import Loss


class DragomanError(Exception):
    """Base class of all errors that dragoman raises on purpose."""


_MALFORMED = ("JSON is malformed: ", "malformed text: ")


class DecodeError(DragomanError, ValueError):
    """A body that does not follow its wire format."""

    def __init__(self, *, path: str, expected: str, got: str, source: str) -> None:
        self.path = path
        self.expected = expected
        # The two most frequent messages of the JSON parser (msgspec) do not read well after "got".
        self.got = "truncated text" if got == "Input data was truncated" else got.replace(*_MALFORMED)
        self.source = source
        super().__init__(f"{source}: expected {expected}, got {self.got} - at {path}")

    def within(self, place: str) -> DecodeError:
        """Return the error of a piece of a body, whose path begins at the piece, for the whole body."""
        return type(self)(path=place + self.path[1:], expected=self.expected, got=self.got, source=self.source)


class LimitExceeded(DecodeError):
    """A body beyond the limits of size or nesting."""


class IllegalEvent(DecodeError):
    """A stream event that is not allowed in the current state."""

    def __init__(self, *, event: str, state: str, source: str) -> None:
        self.event = event
        self.state = state
        super().__init__(path="$", expected=f"an event that may follow in state {state}", got=event, source=source)


class StreamError(DragomanError):
    """A stream failed. `failure` says why, `partial` is the answer so far (its open calls are incomplete)."""

    def __init__(self, failure: Failure, partial: Completion) -> None:
        self.failure = failure
        self.partial = partial
        super().__init__(f"stream failed ({failure.kind}): {failure.message}")


class TruncatedStream(StreamError):
    """The bytes ended before the wire's end signal: never a success."""


class EncodeError(DragomanError, ValueError):
    """A conversation that the target's own rules forbid and no pass can make legal."""

    def __init__(self, *, path: str, reason: str, target: str) -> None:
        self.path = path
        self.reason = reason
        self.target = target
        super().__init__(f"{target}: {reason} - at {path}")

    def move_to(self, path: str) -> None:
        """Change the path, when the place in the client's body is found out."""
        self.path = path
        self.args = (f"{self.target}: {self.reason} - at {path}",)


class LossRefused(EncodeError):
    """Raised instead of returning losses if ``strict=True``; notes alone do not raise."""

    def __init__(self, losses: Sequence[Loss], *, target: str) -> None:
        self.losses = tuple(losses)
        first = self.losses[0]
        rest = f" (and {len(self.losses) - 1} more)" if len(self.losses) > 1 else ""
        super().__init__(
            path=first.path, reason=f"strict: {first.what} {first.severity}: {first.why}{rest}", target=target
        )


class InvalidValue(DragomanError, ValueError):
    """A value of the intermediate format was built with something that no wire format can express.

    `path` names the class and the field (`ToolResult.value[1]`), `expected` and `found` say what is wrong with it.
    """

    def __init__(self, *, path: str, expected: str, found: str, hint: str = "") -> None:
        self.path = path
        self.expected = expected
        self.found = found
        self.hint = hint
        super().__init__(f"{path}: expected {expected}, found {found}{f'; {hint}' if hint else ''}")

    @property
    def field(self) -> str:
        """The path without the name of the class."""
        return self.path.partition(".")[2]

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.path, self.expected, self.found, self.hint)


class InvalidType(InvalidValue, TypeError):
    """A field has the wrong type, is missing, or does not exist."""


def _rebuild(kind: type[InvalidValue], path: str, expected: str, found: str, hint: str) -> InvalidValue:
    return kind(path=path, expected=expected, found=found, hint=hint)


def unknown_options(given: Iterable[str], known: Iterable[str]) -> TypeError:
    """The error of a call with options that do not exist. It says which ones were probably meant."""
    names = list(known)
    meant = {name: difflib.get_close_matches(name, names, n=1) for name in sorted(given)}
    listed = (f"{name} (did you mean {close[0]}?)" if close else name for name, close in meant.items())
    return TypeError(f"unknown options: {', '.join(listed)}; known: {', '.join(names)}")


class UnparsedArguments(DragomanError, ValueError):
    """The model wrote argument text that is not a JSON object; running the tool would be guessing."""

    def __init__(self, *, call_id: str, name: str, text: str) -> None:
        self.call_id = call_id
        self.name = name
        self.text = text
        super().__init__(f"arguments of call {call_id!r} to {name!r} are not a JSON object: {text[:80]!r}")


class UnsupportedFormat(DragomanError, ValueError):
    """The format has no bodies of this kind."""

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self.kind = kind
        super().__init__(f"{name} is a format of stored histories: it has no {kind}")


FORMAT_OF_VENDOR = {
    "amazon": "bedrock-converse",
    "aws": "bedrock-converse",
    "azure": "openai-chat",
    "chatgpt": "openai-chat",
    "claude": "anthropic-messages",
    "google": "gemini",
    "gpt": "openai-chat",
}
"""Vendors and models that do not name a format, and the format that is probably meant."""


class UnknownFormat(DragomanError, LookupError):
    """No codec is registered under that name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        self.known = tuple(known)
        plain = str(name).lower().replace("_", "-")
        meant = [one for one in known if plain and one.startswith(plain)]
        meant = meant or [one for one in known if one == FORMAT_OF_VENDOR.get(plain)]
        meant = meant or difflib.get_close_matches(str(name), known, n=1)
        names = f"did you mean {' or '.join(map(repr, meant))}?" if meant else f"known formats: {', '.join(known)}"
        super().__init__(f"unknown format {name!r}; {names}")


class NotConfigured(DragomanError):
    """A driver lacks something before it can connect: `missing` names it."""

    def __init__(self, message: str, *, missing: str) -> None:
        self.missing = missing
        super().__init__(message)


class ScriptExhausted(DragomanError):
    """The queue of a scripted driver is empty."""


class ProviderError(DragomanError):
    """A call failed. `failure` is the provider's report, `partial` the answer so far."""

    def __init__(self, failure: Failure, *, provider: str = "", partial: Completion | None = None) -> None:
        self.failure = failure
        self.provider = provider
        self.partial = partial
        super().__init__(_describe(failure, provider))

    @property
    def kind(self) -> FailureKind:
        return self.failure.kind

    @property
    def status(self) -> int | None:
        return self.failure.status

    @property
    def message(self) -> str:
        return self.failure.message

    @property
    def request_id(self) -> str | None:
        return self.failure.request_id

    @property
    def retry_after(self) -> float | None:
        """Seconds, if the provider gave a hint."""
        return self.failure.retry_after


def _describe(failure: Failure, provider: str) -> str:
    known: list[str] = [failure.kind]
    known += [f"status {failure.status}"] if failure.status is not None else []
    known += [f"request {failure.request_id}"] if failure.request_id is not None else []
    description = f"{failure.message} ({', '.join(known)})"
    return f"{provider}: {description}" if provider else description


class InvalidRequest(ProviderError):
    """The provider's own rules forbid the request."""


class RequestTooLarge(ProviderError):
    """The request or the answer exceeds a size limit."""


class NotFound(ProviderError):
    """No such model, path or file."""


class Conflict(ProviderError):
    """The current state at the provider does not allow it."""


class AuthenticationFailed(ProviderError):
    """The key is missing, wrong or expired."""


class PermissionRefused(ProviderError):
    """The key is valid, but does not permit this."""


class BillingRefused(ProviderError):
    """The quota or balance is used up: waiting does not help."""


class RateLimited(ProviderError):
    """Too many requests at the moment."""


class Overloaded(ProviderError):
    """The provider has no capacity at the moment."""


class ServerFailed(ProviderError):
    """The provider failed, or its answer does not follow its format."""


class ConnectionFailed(ProviderError):
    """No connection, or one that broke before the answer began."""


class NoAnswer(ConnectionFailed):
    """The request was sent, perhaps only in part, and no answer began: it may have been processed."""


class TimedOut(ProviderError):
    """A time limit was hit: the provider's, or ours."""


class AnswerCut(ProviderError):
    """The bytes ended before the wire's end signal."""


class CallCancelled(ProviderError):
    """The caller closed the stream."""


_ERROR_OF_KIND: dict[FailureKind, type[ProviderError]] = {
    "invalid_request": InvalidRequest,
    "authentication": AuthenticationFailed,
    "billing": BillingRefused,
    "permission": PermissionRefused,
    "not_found": NotFound,
    "conflict": Conflict,
    "too_large": RequestTooLarge,
    "rate_limit": RateLimited,
    "server": ServerFailed,
    "overloaded": Overloaded,
    "timeout": TimedOut,
    "cancelled": CallCancelled,
    "truncated": AnswerCut,
}
CONNECTION = "connection"
"""`raw_type` of a failure that no provider reported: there was no connection, and nothing was sent."""
NO_ANSWER = "no_answer"
"""`raw_type` of a failure that no provider reported: the request was sent and the connection broke."""
_ERROR_OF_RAW_TYPE: dict[str | None, type[ProviderError]] = {CONNECTION: ConnectionFailed, NO_ANSWER: NoAnswer}


def provider_error(failure: Failure, *, provider: str = "", partial: Completion | None = None) -> ProviderError:
    """The exception for a failure."""
    kind = _ERROR_OF_RAW_TYPE.get(failure.raw_type) or _ERROR_OF_KIND[failure.kind]
    return kind(failure, provider=provider, partial=partial)
