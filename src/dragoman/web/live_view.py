"""Bytes as the page shows them: text, and what the intermediate format makes of it."""

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
from dragoman.gateway.capture import Body
from dragoman.ir import Completion, Failure, Request, StreamFailed
from dragoman.loss import SEVERITIES, Loss
from dragoman.streams import StreamDecoder

Meaning: TypeAlias = Request | Completion | Failure


class Shown(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A body. `text` is all there is of it, unless it is cut."""

    text: str
    size: int
    is_cut: bool = False


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why something is not there. `path` leads to the place in the body that is at fault."""

    type: str
    message: str
    path: str = ""
    expected: str = ""
    got: str = ""


class Meant(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a body says, in the intermediate format."""

    text: str = ""
    problem: Problem | None = None


class Told(Struct, frozen=True, kw_only=True):
    """A loss."""

    path: str
    what: str
    severity: str
    why: str


def shown(body: Body | None) -> Shown | None:
    if body is None:
        return None
    return Shown(text=text_of(body.content), size=body.size, is_cut=body.is_cut)


def text_of(content: bytes) -> str:
    """As text. Bedrock's binary frames are shown by their content: one line of JSON for each."""
    if not begins_with_frame(content):
        return content.decode("utf-8", "replace")
    return Frames().text(content)


class Frames:
    """A binary stream, in pieces, as text."""

    def __init__(self) -> None:
        self._framing = AwsEventStream(Limits(), "stream")

    def text(self, piece: bytes) -> str:
        try:
            return "".join(f"{payload.decode('utf-8', 'replace')}\n" for payload in self._framing.feed(piece))
        except DecodeError as error:
            return f"{error}\n"


def told(losses: Iterable[Loss]) -> list[Told]:
    """The worst first."""
    ordered = sorted(losses, key=lambda loss: SEVERITIES.index(loss.severity))
    return [Told(path=loss.path, what=loss.what, severity=loss.severity, why=loss.why) for loss in ordered]


def problem_of(error: Exception) -> Problem:
    return Problem(
        type=type(error).__name__,
        message=str(error),
        path=getattr(error, "path", ""),
        expected=getattr(error, "expected", ""),
        got=getattr(error, "got", "") or getattr(error, "reason", ""),
    )


# ── the intermediate format ───────────────────────────────────────────────────────────────────────────────────


def meant(value: Meaning) -> Meant:
    try:
        return Meant(text=msgspec.json.encode(value).decode())
    except (RecursionError, ValueError) as error:  # nested too deeply, or half a surrogate pair
        return Meant(problem=Problem(type=type(error).__name__, message="it cannot be shown as JSON"))


def meant_by_request(body: Body, format: str) -> Meant:
    return _meant(body, lambda: codec(format).decode_request(body.content))


def meant_by_answer(body: Body, format: str, status: int) -> Meant:
    if status >= _FIRST_ERROR:
        return _meant(body, lambda: codec(format).decode_error(body.content, status, {}))
    return _meant(body, lambda: codec(format).decode_response(body.content))


_FIRST_ERROR = 400


def meant_by_stream(pieces: Iterable[bytes], format: str) -> Meant:
    """The answer that the pieces make, as far as they came."""
    answer, failures = completed(pieces, format)
    if failures and not answer.messages:
        return meant(failures[0])
    return meant(answer)


def completed(pieces: Iterable[bytes], format: str) -> tuple[Completion, list[Failure]]:
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


def _meant(body: Body, decode: Callable[[], Meaning]) -> Meant:
    if body.is_cut:
        kept, whole = len(body.content), body.size
        return Meant(problem=Problem(type="Cut", message=f"only {kept} of {whole} bytes are held: too few to read it"))
    try:
        return meant(decode())
    except DragomanError as error:
        return Meant(problem=problem_of(error))
