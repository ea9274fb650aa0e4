"""A recorded stream from a file or stdin: server-sent events, JSON Lines, a JSON array or frames, found by looking."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import chain
from typing import NamedTuple

import msgspec
from msgspec import Raw

from dragoman.codecs.framing import (
    BOM,
    AwsEventStream,
    Framing,
    JsonArray,
    Lines,
    ServerSentEvents,
    aws_frame,
    aws_headers,
    begins_with_frame,
)
from dragoman.codecs.registry import folder_of
from dragoman.codecs.stream_limits import Limits
from dragoman.detection import detect_stream, first_event, is_event_stream
from dragoman.errors import DecodeError
from dragoman.inspection.input_errors import InputProblem, system_reason
from dragoman.inspection.rereadable_lines import ByLine, Input, Reread, input_lines
from dragoman.ir import Completion, Failure
from dragoman.ir.values import exact_json

_READ_BYTES = 1 << 16
_FIRST_EVENT_BYTES = 1 << 20
"""How far to look for an event in what may be no stream; in what is said to be one, it may have its full size."""
_FRAME_HEAD = 12
_OUR_FAULTS = frozenset({"DecodeError", "IllegalEvent", "LimitExceeded"})
"""How `StreamDecoder` names what it could not read; every other failure was reported by the stream itself."""


class Piece(NamedTuple):
    """Bytes of the stream, and the line of the file that they came from, or which frame of it they are."""

    content: bytes
    line: int


class Recording(NamedTuple):
    """One stream. Its pieces are framed the way its format is on the wire."""

    name: str
    format: str
    pieces: Iterator[Piece]
    unit: str = "line"
    """What is counted: lines, or frames where the file is not text."""

    def place(self, line: int) -> str:
        return f"{self.name}:{line}" if self.unit == "line" else f"{self.name}: {self.unit} {line}"


def looked_at(given: Input, *, stream: bool) -> tuple[bytes, Input]:
    """What an input begins with, up to the first event if there is one; and the input, not yet read."""
    most = Limits().event_bytes if stream else _FIRST_EVENT_BYTES
    try:
        start = _beginning(given.stream, most)
    except OSError as error:
        raise InputProblem(f"cannot read {given.name}: {system_reason(error)}") from error
    return start, Input(Reread(start, given.stream), given.name)


def _beginning(stream: ByLine, most: int) -> bytes:
    start, looked = bytearray(), 0
    while len(start) < most and (line := stream.readline(_READ_BYTES)):
        start += line
        # Looking again only at twice the length keeps the whole search linear.
        if len(start) >= 2 * looked and (line.endswith(b"\n") or begins_with_frame(start)):
            looked = len(start)
            if first_event(bytes(start)) is not None:
                break
    return bytes(start)


def read_recording(given: Input, source: str | None) -> Recording:
    """The recording in an input that is said to be one. `source` None: the format is looked for."""
    start, given = looked_at(given, stream=True)
    if not start.strip():
        raise InputProblem(f"{given.name}: empty input, expected a recorded stream")
    is_binary = begins_with_frame(start)
    pieces = _frames(given) if is_binary else _pieces(given)
    first = next(pieces)  # what is no UTF-8 says so before it is of no known format
    found = source or detect_stream(start)
    if found is None:
        raise InputProblem(
            f"{given.name}:1: cannot tell which format this stream has, say it with --from (see: dragoman formats)"
        )
    read = chain((first,), pieces)
    if is_binary:
        return Recording(given.name, found, read, "frame")
    cut = _unframed(start, found)
    return Recording(given.name, found, read if cut is None else _framed(read, *cut, given.name))


def _unframed(start: bytes, format: str) -> tuple[Framing, Callable[[bytes], bytes]] | None:
    """How to cut what is no stream on the wire, such as events saved one per line, and how the wire would say one.

    None: the format reads it itself.
    """
    framing: Framing = import_module(f"dragoman.codecs.{folder_of(format)}.stream").PayloadDecoder.framing(Limits())
    write = _WIRES.get(type(framing))
    if write is None or is_event_stream(start) or first_event(start) is None:
        return None
    head = start.removeprefix(BOM).lstrip()
    by_line = head.startswith(b"{") and exact_json(head.partition(b"\n")[0]) is not None
    if by_line and type(framing) is Lines:
        return None
    return (Lines if by_line else JsonArray)(Limits(), f"{format} stream"), write


def _pieces(given: Input) -> Iterator[Piece]:
    """An event ends at the blank line after it, and belongs to the line before."""
    filled = 1
    for number, line in input_lines(given.stream, given.name, longest=_READ_BYTES):
        if not line.isspace():
            filled = number
        yield Piece(line, filled)


def _frames(given: Input) -> Iterator[Piece]:
    """Each frame, with its number. What is no frame comes as it is, for the decoder to name what is wrong with it."""
    number, needed, held = 1, _FRAME_HEAD, bytearray()
    try:
        while data := given.stream.readline(max(_READ_BYTES, needed - len(held))):
            held += data
            while len(held) >= needed:
                if needed > _FRAME_HEAD or not begins_with_frame(held):
                    yield Piece(bytes(held[:needed]), number)
                    del held[:needed]
                    number, needed = number + 1, _FRAME_HEAD
                else:
                    needed = min(int.from_bytes(held[:4], "big"), Limits().event_bytes)
    except OSError as error:
        raise InputProblem(f"cannot read {given.name}: {system_reason(error)}") from error
    if held:
        yield Piece(bytes(held), number)


def _framed(pieces: Iterator[Piece], framing: Framing, write: Callable[[bytes], bytes], name: str) -> Iterator[Piece]:
    line = 1
    try:
        for content, line in pieces:
            yield Piece(b"".join(map(write, framing.feed(content))), line)
        yield Piece(b"".join(map(write, framing.close())), line)
    except DecodeError as error:
        raise InputProblem(f"{name}:{line}: {error}") from error


def _event(payload: bytes) -> bytes:
    """As a server-sent event. A line break in JSON stands between tokens, where a blank does as well."""
    return b"data: " + b" ".join(payload.splitlines()) + b"\n\n"


def _line(payload: bytes) -> bytes:
    return b" ".join(payload.splitlines()) + b"\n"


def _event_frames(payload: bytes) -> bytes:
    """As a frame. The SDKs give each event as an object with one key, its type."""
    try:
        entries = _entries(payload)
    except msgspec.DecodeError as error:
        raise DecodeError(path="$", expected="an event", got=str(error), source="stream") from error
    frames = []
    for name, held in entries.items():
        kind = "exception" if name.endswith("Exception") else "event"
        headers = {f":{kind}-type": name, ":content-type": "application/json", ":message-type": kind}
        frames.append(aws_frame(aws_headers(headers), bytes(held)))
    return b"".join(frames)


_entries = msgspec.json.Decoder(dict[str, Raw]).decode
_WIRES: dict[type[Framing], Callable[[bytes], bytes]] = {
    ServerSentEvents: _event,
    AwsEventStream: _event_frames,
    Lines: _line,
}


# ── how it ended ──────────────────────────────────────────────────────────────────────────────────────────────


def refuse_if_none(recording: Recording, failure: Failure, completion: Completion, line: int) -> None:
    """What never became a stream of that format is bad input, and no stream that failed."""
    if _says_anything(completion):
        return
    if failure.raw_type in _OUR_FAULTS:
        raise InputProblem(f"{recording.place(line)}: {failure.message}")
    if failure.kind == "truncated":
        raise InputProblem(f"{recording.name}: expected the events of a stream in {recording.format}, got none")


def _says_anything(completion: Completion) -> bool:
    known = (completion.id, completion.model, completion.created, completion.usage, completion.metadata)
    return any(message.parts for message in completion.messages) or any(value is not None for value in known)


def told(failure: Failure) -> str:
    """The end of a stream that has none, in one sentence."""
    if failure.kind == "truncated":
        return f"the stream ended early: {failure.message}"
    return f"the stream failed ({failure.kind}): {failure.message}"
