"""Every error dragoman raises.

DragomanError
├── DecodeError          the body that came in is not what its format says: the sender's fault
│   └── LimitExceeded    it is larger or deeper than we agree to read
├── EncodeError          this conversation cannot be said in the target's format
│   └── LossRefused      it could, with losses, and the caller asked for strict
├── UnparsedArguments    somebody asked for the arguments of a call whose text is not a JSON object
├── UnsupportedFormat    the format has no such thing: a history has no streams and no errors
└── UnknownFormat        no codec of that name
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.ir import Completion, Failure
    from dragoman.losses import Loss


class DragomanError(Exception):
    """Base of all errors raised on purpose."""


class DecodeError(DragomanError, ValueError):
    """A body that does not follow its wire format."""

    def __init__(self, *, path: str, expected: str, got: str, source: str) -> None:
        self.path = path
        self.expected = expected
        self.got = got
        self.source = source
        super().__init__(f"{source}: expected {expected}, got {got} - at {path}")


class LimitExceeded(DecodeError):
    """A body beyond the size or nesting we agree to read."""


class IllegalEvent(DecodeError):
    """A stream event that cannot come in the state the stream is in."""

    def __init__(self, *, event: str, state: str, source: str) -> None:
        self.event = event
        self.state = state
        super().__init__(path="$", expected=f"an event that may follow in state {state}", got=event, source=source)


class StreamError(DragomanError):
    """A stream that failed. `failure` says why, `partial` is the answer up to there (its open calls are incomplete)."""

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


class LossRefused(EncodeError):
    """Raised instead of returning losses when ``strict=True``."""

    def __init__(self, losses: Sequence[Loss], *, target: str) -> None:
        self.losses = tuple(losses)
        first = self.losses[0]
        rest = f" (and {len(self.losses) - 1} more)" if len(self.losses) > 1 else ""
        super().__init__(
            path=first.path, reason=f"strict: {first.what} {first.severity}: {first.why}{rest}", target=target
        )


class UnparsedArguments(DragomanError, ValueError):
    """The model wrote argument text that is not a JSON object; running the tool would be guessing."""

    def __init__(self, *, call_id: str, name: str, text: str) -> None:
        self.call_id = call_id
        self.name = name
        self.text = text
        super().__init__(f"arguments of call {call_id!r} to {name!r} are not a JSON object: {text[:80]!r}")


class UnsupportedFormat(DragomanError, ValueError):
    """The format is known, and has nothing of this kind."""

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self.kind = kind
        super().__init__(f"{name} is a format of stored histories: it has no {kind}")


class UnknownFormat(DragomanError, LookupError):
    """No codec is registered under that name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        self.known = tuple(known)
        super().__init__(f"unknown format {name!r}; known formats: {', '.join(known)}")
