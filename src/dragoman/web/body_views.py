"""Bodies as the page shows them: as text, and in the intermediate format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec
from msgspec import Struct

from dragoman.codecs.accumulate import Accumulator
from dragoman.codecs.framing import AwsEventStream, begins_with_frame
from dragoman.codecs.registry import codec
from dragoman.codecs.stream_limits import Limits
from dragoman.errors import DecodeError, DragomanError
from dragoman.gateway.captured_values import Body
from dragoman.ir import Completion, Failure, Request, StreamFailed
from dragoman.loss import SEVERITIES, Loss
from dragoman.streams import StreamDecoder

Meaning: TypeAlias = Request | Completion | Failure


class BodyView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A body as text; `is_cut` if only its beginning was kept."""

    text: str
    size: int
    is_cut: bool = False


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why something cannot be shown. `path` is the offending place in the body."""

    type: str
    message: str
    path: str = ""
    expected: str = ""
    got: str = ""


class Interpretation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A body in the intermediate format."""

    text: str = ""
    problem: Problem | None = None


class LossRow(Struct, frozen=True, kw_only=True):
    """A loss."""

    path: str
    what: str
    severity: str
    why: str


def view_body(body: Body | None) -> BodyView | None:
    if body is None:
        return None
    return BodyView(text=text_of(body.content), size=body.size, is_cut=body.is_cut)


def text_of(content: bytes) -> str:
    """Decodes bytes to text. Bedrock's binary frames become one line of JSON each."""
    if not begins_with_frame(content):
        return content.decode("utf-8", "replace")
    return Frames().text(content)


class Frames:
    """Converts a binary stream to text, piece by piece."""

    def __init__(self) -> None:
        self._framing = AwsEventStream(Limits(), "stream")

    def text(self, piece: bytes) -> str:
        try:
            return "".join(f"{payload.decode('utf-8', 'replace')}\n" for payload in self._framing.feed(piece))
        except DecodeError as error:
            return f"{error}\n"


def loss_rows(losses: Iterable[Loss]) -> list[LossRow]:
    """Rows of losses, the worst first."""
    ordered = sorted(losses, key=lambda loss: SEVERITIES.index(loss.severity))
    return [LossRow(path=loss.path, what=loss.what, severity=loss.severity, why=loss.why) for loss in ordered]


def problem_of(error: Exception) -> Problem:
    return Problem(
        type=type(error).__name__,
        message=str(error),
        path=getattr(error, "path", ""),
        expected=getattr(error, "expected", ""),
        got=getattr(error, "got", "") or getattr(error, "reason", ""),
    )


# ── the intermediate format ───────────────────────────────────────────────────────────────────────────────────


def interpret_value(value: Meaning) -> Interpretation:
    try:
        return Interpretation(text=msgspec.json.encode(value).decode())
    except (RecursionError, ValueError) as error:  # nested too deeply, or a lone surrogate
        return Interpretation(problem=Problem(type=type(error).__name__, message="it cannot be shown as JSON"))


def interpret_request(body: Body, format: str) -> Interpretation:
    return _interpret(body, lambda: codec(format).decode_request(body.content))


def interpret_answer(body: Body, format: str, status: int) -> Interpretation:
    if status >= _FIRST_ERROR:
        return _interpret(body, lambda: codec(format).decode_error(body.content, status, {}))
    return _interpret(body, lambda: codec(format).decode_response(body.content))


_FIRST_ERROR = 400


def interpret_stream(pieces: Iterable[bytes], format: str) -> Interpretation:
    """The answer in the pieces received so far."""
    answer, failures = complete_stream(pieces, format)
    if failures and not answer.messages:
        return interpret_value(failures[0])
    return interpret_value(answer)


def complete_stream(pieces: Iterable[bytes], format: str) -> tuple[Completion, list[Failure]]:
    account = Accumulator()
    failures = [
        event.failure
        for event in _events(pieces, StreamDecoder(format, account=account))
        if type(event) is StreamFailed
    ]
    return account.completion(), failures


def _events(pieces: Iterable[bytes], decoder: StreamDecoder) -> Iterator[object]:
    for piece in pieces:
        yield from decoder.feed(piece)
    yield from decoder.close()


def _interpret(body: Body, decode: Callable[[], Meaning]) -> Interpretation:
    if body.is_cut:
        kept_size, size = len(body.content), body.size
        return Interpretation(
            problem=Problem(type="Cut", message=f"only {kept_size} of {size} bytes were kept: not enough to read it")
        )
    try:
        return interpret_value(decode())
    except DragomanError as error:
        return Interpretation(problem=problem_of(error))
