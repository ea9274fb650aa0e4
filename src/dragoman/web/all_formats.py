"""Converts a body to every format, with losses and a description. Uses no network."""

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
from dragoman.inspection.byte_positions import error_offset
from dragoman.inspection.input_errors import InputProblem
from dragoman.inspection.recordings import describe_end, read_recording
from dragoman.inspection.rereadable_lines import Input
from dragoman.inspection.streams import describe_stream
from dragoman.inspection.tree import Node
from dragoman.streams import StreamTranslator
from dragoman.web.body_views import (
    Interpretation,
    LossRow,
    Meaning,
    Problem,
    interpret_stream,
    interpret_value,
    loss_rows,
    problem_of,
    text_of,
)

LONGEST = 1 << 20
"""Limit in bytes: one input becomes about twenty bodies, and other requests share the processor."""
_LONGEST_TEXT = 2_000
Kind: TypeAlias = Literal["request", "response", "error", "stream"]
Group: TypeAlias = Literal["wire", "compatible", "record"]
_GROUPS: Mapping[Kind, tuple[Group, ...]] = {
    "request": ("wire", "record", "compatible"),
    "response": ("wire", "record", "compatible"),
    "error": ("wire",),
    "stream": ("wire",),
}
"""Record formats have no streams or errors; compatible servers share those of the API they imitate."""


class UnreadableInput(Exception):
    """Input of no known format. `place` is the offset of the offending character, if known."""

    def __init__(self, problem: Problem, place: int | None = None, *, status: int = 422) -> None:
        self.problem = problem
        self.place = place
        self.status = status
        super().__init__(problem.message)


class PlaygroundInput(Struct, frozen=True):
    text: str
    format: str = "auto"
    kind: Kind | Literal["auto"] = "auto"


class ConvertedBody(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body in one format."""

    format: str
    group: Group
    text: str = ""
    losses: list[LossRow] = []
    path: str = ""
    headers: dict[str, str] = {}
    note: str = ""
    problem: Problem | None = None


class DescriptionLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of `dragoman inspect`."""

    head: str
    text: str = ""
    remark: str = ""
    warning: str = ""
    style: str | None = None
    children: list[DescriptionLine] = []


class Conversions(Struct, frozen=True, kw_only=True):
    format: str
    kind: Kind
    is_detected: bool
    meant: Interpretation
    description: DescriptionLine
    crossed: list[ConvertedBody]


def convert_to_all(given: PlaygroundInput) -> Conversions:
    """The input in every format. Raises `UnreadableInput`."""
    content = given.text.encode("utf-8", "surrogatepass")
    if len(content) > LONGEST:
        words = f"expected at most {LONGEST} bytes, got {len(content)}"
        raise UnreadableInput(Problem(type="LimitExceeded", message=words), status=413)
    if not content.strip():
        raise UnreadableInput(Problem(type="Empty", message="there is nothing to read"))
    if given.format != "auto" and given.format not in formats(None):
        raise UnreadableInput(Problem(type="UnknownFormat", message=f"there is no format named {given.format!r}"))
    try:
        is_stream = given.kind == "stream" or (given.kind == "auto" and looks_streamed(content))
        return _convert_stream(content, given) if is_stream else _convert_body(content, given)
    except InputProblem as error:
        raise UnreadableInput(Problem(type="DecodeError", message=str(error))) from error
    except DragomanError as error:
        place = len(content[: error_offset(content, error)].decode("utf-8", "ignore"))
        raise UnreadableInput(problem_of(error), place) from error


# ── bodies ────────────────────────────────────────────────────────────────────────────────────────────────────


class _KindFunctions(NamedTuple):
    decode: Callable[[bytes, str], Meaning]
    describe: Callable[..., Node]
    translate: Callable[..., Encoded]


_WAYS: Mapping[Kind, _KindFunctions] = {
    "request": _KindFunctions(translate.decode_request, describe_request, translate.translate_request),
    "response": _KindFunctions(translate.decode_response, describe_completion, translate.translate_response),
    "error": _KindFunctions(translate.decode_error, describe_failure, translate.translate_error),
}


def _convert_body(content: bytes, given: PlaygroundInput) -> Conversions:
    format, kind = _detect(content, given)
    way = _WAYS[kind]
    value = way.decode(content, format)

    def into(target: str, group: Group) -> ConvertedBody:
        encoded = way.translate(content, source=format, target=target)
        return ConvertedBody(
            format=target,
            group=group,
            text=text_of(encoded.content),
            losses=loss_rows(encoded.losses),
            path=encoded.path,
            headers=encoded.headers,
        )

    return Conversions(
        format=format,
        kind=kind,
        is_detected=given.format == "auto",
        meant=interpret_value(value),
        description=_describe(way.describe(value, format)),
        crossed=_convert_to_each(kind, into),
    )


def _detect(content: bytes, given: PlaygroundInput) -> tuple[str, Kind]:
    if given.format != "auto" and given.kind != "auto":
        return given.format, given.kind
    found = detect(content)
    if found is None:
        missing = "format" if given.format == "auto" else "kind"
        words = f"the format cannot be detected from these keys: choose its {missing}"
        raise UnreadableInput(Problem(type="Undetected", message=words))
    format = found.format if given.format == "auto" else given.format
    return format, found.kind if given.kind == "auto" else given.kind


def _convert_to_each(kind: Kind, into: Callable[[str, Group], ConvertedBody]) -> list[ConvertedBody]:
    crossed = []
    for group in _GROUPS[kind]:
        for target in formats(group):
            try:
                crossed.append(into(target, group))
            except DragomanError as error:  # this format cannot express it; others may
                crossed.append(ConvertedBody(format=target, group=group, problem=problem_of(error)))
    return crossed


# ── streams ───────────────────────────────────────────────────────────────────────────────────────────────────


def _convert_stream(content: bytes, given: PlaygroundInput) -> Conversions:
    source = None if given.format == "auto" else given.format
    if source is None and detect_stream(content) is None:
        message = "the format of this stream cannot be detected: choose it"
        raise UnreadableInput(Problem(type="Undetected", message=message))
    if source in formats("record"):
        raise UnsupportedFormat(source, "streams")
    recording = read_recording(Input(BytesIO(content), "the stream"), source)
    format = recording.format
    pieces = list(recording.pieces)

    def into(target: str, group: Group) -> ConvertedBody:
        return _convert_pieces([piece.content for piece in pieces], format, target, group)

    return Conversions(
        format=format,
        kind="stream",
        is_detected=source is None,
        meant=interpret_stream((piece.content for piece in pieces), format),
        description=_describe(describe_stream(recording._replace(pieces=iter(pieces)))),
        crossed=_convert_to_each("stream", into),
    )


def _convert_pieces(pieces: Sequence[bytes], source: str, target: str, group: Group) -> ConvertedBody:
    """Goes through the intermediate format even if source and target are two names of one wire format."""
    translator = StreamTranslator(source=source, target=target)
    out = [translator.feed(piece) for piece in pieces]
    out.append(translator.close())
    failure = translator.failure
    return ConvertedBody(
        format=target,
        group=group,
        text=text_of(b"".join(out)),
        losses=loss_rows(translator.losses),
        note="" if failure is None else describe_end(failure),
    )


# ── words ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _describe(node: Node) -> DescriptionLine:
    return DescriptionLine(
        head=node.head,
        text=node.text[:_LONGEST_TEXT],
        remark=node.remark,
        warning=node.warning,
        style=node.style,
        children=[_describe(child) for child in node.children],
    )
