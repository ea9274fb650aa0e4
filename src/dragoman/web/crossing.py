"""A body of one format in every other, with its losses and a description in words. No network is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from dragoman import translate
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.registry import formats
from dragoman.detection import detect, detect_stream, looks_streamed
from dragoman.errors import DragomanError, UnsupportedFormat
from dragoman.inspection.bodies import describe_completion, describe_failure, describe_request
from dragoman.inspection.byte_positions import place_of
from dragoman.inspection.input_errors import InputProblem
from dragoman.inspection.recordings import Piece, Recording, read_recording
from dragoman.inspection.recordings import told as told_end
from dragoman.inspection.rereadable_lines import Input
from dragoman.inspection.streams import describe_stream
from dragoman.inspection.tree import Node
from dragoman.streams import StreamTranslator
from dragoman.web.live_view import Meaning, Meant, Problem, Told, meant, meant_by_stream, problem_of, text_of, told

LONGEST = 1 << 20
"""Bytes: it becomes some twenty bodies, and others wait for the same processor."""
_LONGEST_TEXT = 2_000
Kind: TypeAlias = Literal["request", "response", "error", "stream"]
Group: TypeAlias = Literal["wire", "compatible", "record"]
_GROUPS: Mapping[Kind, tuple[Group, ...]] = {
    "request": ("wire", "record", "compatible"),
    "response": ("wire", "record", "compatible"),
    "error": ("wire",),
    "stream": ("wire",),
}
"""Records have no streams and no errors, and those of compatible servers are those of whom they are compatible with."""


class Unclear(Exception):
    """Input that cannot be taken for anything. `place` is the character at fault, where there is one."""

    def __init__(self, problem: Problem, place: int | None = None, *, status: int = 422) -> None:
        self.problem = problem
        self.place = place
        self.status = status
        super().__init__(problem.message)


class Given(Struct, frozen=True):
    text: str
    format: str = "auto"
    kind: Kind | Literal["auto"] = "auto"


class Crossed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body in one format."""

    format: str
    group: Group
    text: str = ""
    losses: list[Told] = []
    path: str = ""
    headers: dict[str, str] = {}
    note: str = ""
    problem: Problem | None = None


class Described(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of what `dragoman inspect` tells."""

    head: str
    text: str = ""
    remark: str = ""
    warning: str = ""
    style: str | None = None
    children: list[Described] = []


class Understood(Struct, frozen=True, kw_only=True):
    format: str
    kind: Kind
    is_detected: bool
    meant: Meant
    description: Described
    crossed: list[Crossed]


def cross(given: Given) -> Understood:
    """Raises `Unclear`."""
    content = given.text.encode("utf-8", "surrogatepass")
    if len(content) > LONGEST:
        words = f"expected at most {LONGEST} bytes, got {len(content)}"
        raise Unclear(Problem(type="LimitExceeded", message=words), status=413)
    if not content.strip():
        raise Unclear(Problem(type="Empty", message="there is nothing to read"))
    if given.format != "auto" and given.format not in formats(None):
        raise Unclear(Problem(type="UnknownFormat", message=f"no format is called {given.format!r}"))
    try:
        is_stream = given.kind == "stream" or (given.kind == "auto" and looks_streamed(content))
        return _cross_stream(content, given) if is_stream else _cross_body(content, given)
    except InputProblem as error:
        raise Unclear(Problem(type="DecodeError", message=str(error))) from error
    except DragomanError as error:
        place = len(content[: place_of(content, error)].decode("utf-8", "ignore"))
        raise Unclear(problem_of(error), place) from error


# ── bodies ────────────────────────────────────────────────────────────────────────────────────────────────────


class _Way(NamedTuple):
    decode: Callable[[bytes, str], Meaning]
    describe: Callable[..., Node]
    translate: Callable[..., Encoded]


_WAYS: Mapping[Kind, _Way] = {
    "request": _Way(translate.decode_request, describe_request, translate.translate_request),
    "response": _Way(translate.decode_response, describe_completion, translate.translate_response),
    "error": _Way(translate.decode_error, describe_failure, translate.translate_error),
}


def _cross_body(content: bytes, given: Given) -> Understood:
    format, kind = _taken_for(content, given)
    way = _WAYS[kind]
    value = way.decode(content, format)

    def into(target: str, group: Group) -> Crossed:
        encoded = way.translate(content, source=format, target=target)
        return Crossed(
            format=target,
            group=group,
            text=text_of(encoded.content),
            losses=told(encoded.losses),
            path=encoded.path,
            headers=encoded.headers,
        )

    return Understood(
        format=format,
        kind=kind,
        is_detected=given.format == "auto",
        meant=meant(value),
        description=_described(way.describe(value, format)),
        crossed=_crossed(kind, into),
    )


def _taken_for(content: bytes, given: Given) -> tuple[str, Kind]:
    if given.format != "auto" and given.kind != "auto":
        return given.format, given.kind
    found = detect(content)
    if found is None:
        missing = "format" if given.format == "auto" else "kind"
        words = f"no format has a body with these keys alone: choose its {missing}"
        raise Unclear(Problem(type="Undetected", message=words))
    format = found.format if given.format == "auto" else given.format
    return format, found.kind if given.kind == "auto" else given.kind


def _crossed(kind: Kind, into: Callable[[str, Group], Crossed]) -> list[Crossed]:
    crossed = []
    for group in _GROUPS[kind]:
        for target in formats(group):
            try:
                crossed.append(into(target, group))
            except DragomanError as error:  # this one cannot say it; others may
                crossed.append(Crossed(format=target, group=group, problem=problem_of(error)))
    return crossed


# ── streams ───────────────────────────────────────────────────────────────────────────────────────────────────


def _cross_stream(content: bytes, given: Given) -> Understood:
    source = None if given.format == "auto" else given.format
    if source is None and detect_stream(content) is None:
        raise Unclear(Problem(type="Undetected", message="no format has a stream that begins so: choose its format"))
    if source in formats("record"):
        raise UnsupportedFormat(source, "streams")
    recording = read_recording(Input(BytesIO(content), "the stream"), source)
    format = recording.format
    pieces = list(recording.pieces)

    def into(target: str, group: Group) -> Crossed:
        return _cross_pieces([piece.content for piece in pieces], format, target, group)

    return Understood(
        format=format,
        kind="stream",
        is_detected=source is None,
        meant=meant_by_stream((piece.content for piece in pieces), format),
        description=_described(describe_stream(_again(recording, pieces))),
        crossed=_crossed("stream", into),
    )


def _again(recording: Recording, pieces: Sequence[Piece]) -> Recording:
    return recording._replace(pieces=iter(pieces))


def _cross_pieces(pieces: Sequence[bytes], source: str, target: str, group: Group) -> Crossed:
    """Also to its own format by way of the intermediate one where two names stand for one wire."""
    translator = StreamTranslator(source=source, target=target)
    out = [translator.feed(piece) for piece in pieces]
    out.append(translator.close())
    failure = translator.failure
    return Crossed(
        format=target,
        group=group,
        text=text_of(b"".join(out)),
        losses=told(translator.losses),
        note="" if failure is None else told_end(failure),
    )


# ── words ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _described(node: Node) -> Described:
    return Described(
        head=node.head,
        text=node.text[:_LONGEST_TEXT],
        remark=node.remark,
        warning=node.warning,
        style=node.style,
        children=[_described(child) for child in node.children],
    )
