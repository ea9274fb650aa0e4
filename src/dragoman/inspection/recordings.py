"""Recorded streams from a file or stdin: server-sent events, JSON Lines, a JSON array or frames, detected."""

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
"""Bytes to search for the first event, unless the input is known to be a stream."""
_FRAME_HEAD = 12
_OUR_FAULTS = frozenset({"DecodeError", "IllegalEvent", "LimitExceeded"})
"""Failure kind of `StreamDecoder` for unreadable events; other failures come from the stream itself."""


class Piece(NamedTuple):
    """Bytes of the stream, and the number of their line or frame in the file."""

    content: bytes
    line: int


class Recording(NamedTuple):
    """One stream. Its pieces have the framing of the wire."""

    name: str
    format: str
    pieces: Iterator[Piece]
    unit: str = "line"
    """Unit of the numbers: lines, or frames of a binary file."""

    def place(self, line: int) -> str:
        return f"{self.name}:{line}" if self.unit == "line" else f"{self.name}: {self.unit} {line}"


def peek(given: Input, *, stream: bool) -> tuple[bytes, Input]:
    """The start of an input, up to the first event if there is one; and the input, rewound."""
    most = Limits().event_bytes if stream else _FIRST_EVENT_BYTES
    try:
        start = _read_start(given.stream, most)
    except OSError as error:
        raise InputProblem(f"cannot read {given.name}: {system_reason(error)}") from error
    return start, Input(Reread(start, given.stream), given.name)


def _read_start(stream: ByLine, most: int) -> bytes:
    start, looked = bytearray(), 0
    while len(start) < most and (line := stream.readline(_READ_BYTES)):
        start += line
        # Doubling the length between attempts keeps the search linear.
        if len(start) >= 2 * looked and (line.endswith(b"\n") or begins_with_frame(start)):
            looked = len(start)
            if first_event(bytes(start)) is not None:
                break
    return bytes(start)


def read_recording(given: Input, source: str | None) -> Recording:
    """Reads a recording. If `source` is None, the format is detected."""
    start, given = peek(given, stream=True)
    if not start.strip():
        raise InputProblem(f"{given.name}: empty input, expected a recorded stream")
    is_binary = begins_with_frame(start)
    pieces = _frames(given) if is_binary else _pieces(given)
    first = next(pieces)  # report invalid UTF-8 before an unknown format
    found = source or detect_stream(start)
    if found is None:
        raise InputProblem(
            f"{given.name}:1: cannot detect the format of this stream; name it with --from (see: dragoman formats)"
        )
    read = chain((first,), pieces)
    if is_binary:
        return Recording(given.name, found, read, "frame")
    cut = _saved_framing(start, found)
    return Recording(given.name, found, read if cut is None else _reframe(read, *cut, given.name))


def _saved_framing(start: bytes, format: str) -> tuple[Framing, Callable[[bytes], bytes]] | None:
    """Framing of a recording that is not in wire form, such as one event per line, and a writer of wire events.

    None if it is in wire form.
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
    """Pieces of a text file; an event ends at a blank line and counts for the line before it."""
    filled = 1
    for number, line in input_lines(given.stream, given.name, longest=_READ_BYTES):
        if not line.isspace():
            filled = number
        yield Piece(line, filled)


def _frames(given: Input) -> Iterator[Piece]:
    """Frames with their numbers. Invalid bytes are passed on unchanged, so that the decoder reports them."""
    number, needed, buffer = 1, _FRAME_HEAD, bytearray()
    try:
        while data := given.stream.readline(max(_READ_BYTES, needed - len(buffer))):
            buffer += data
            while len(buffer) >= needed:
                if needed > _FRAME_HEAD or not begins_with_frame(buffer):
                    yield Piece(bytes(buffer[:needed]), number)
                    del buffer[:needed]
                    number, needed = number + 1, _FRAME_HEAD
                else:
                    needed = min(int.from_bytes(buffer[:4], "big"), Limits().event_bytes)
    except OSError as error:
        raise InputProblem(f"cannot read {given.name}: {system_reason(error)}") from error
    if buffer:
        yield Piece(bytes(buffer), number)


def _reframe(pieces: Iterator[Piece], framing: Framing, write: Callable[[bytes], bytes], name: str) -> Iterator[Piece]:
    line = 1
    try:
        for content, line in pieces:
            yield Piece(b"".join(map(write, framing.feed(content))), line)
        yield Piece(b"".join(map(write, framing.close())), line)
    except DecodeError as error:
        raise InputProblem(f"{name}:{line}: {error}") from error


def _event(payload: bytes) -> bytes:
    """A server-sent event. Line breaks in JSON are between tokens and become spaces."""
    return b"data: " + b" ".join(payload.splitlines()) + b"\n\n"


def _line(payload: bytes) -> bytes:
    return b" ".join(payload.splitlines()) + b"\n"


def _event_frames(payload: bytes) -> bytes:
    """Binary frames. SDKs give each event as an object with one key, its type."""
    try:
        entries = _entries(payload)
    except msgspec.DecodeError as error:
        raise DecodeError(path="$", expected="an event", got=str(error), source="stream") from error
    frames = []
    for name, entry in entries.items():
        kind = "exception" if name.endswith("Exception") else "event"
        headers = {f":{kind}-type": name, ":content-type": "application/json", ":message-type": kind}
        frames.append(aws_frame(aws_headers(headers), bytes(entry)))
    return b"".join(frames)


_entries = msgspec.json.Decoder(dict[str, Raw]).decode
_WIRES: dict[type[Framing], Callable[[bytes], bytes]] = {
    ServerSentEvents: _event,
    AwsEventStream: _event_frames,
    Lines: _line,
}


# ── how it ended ──────────────────────────────────────────────────────────────────────────────────────────────


def refuse_if_unreadable(recording: Recording, failure: Failure, completion: Completion, line: int) -> None:
    """Raises `InputProblem` if nothing could be read: that is bad input, not a failed stream."""
    if _has_content(completion):
        return
    if failure.raw_type in _OUR_FAULTS:
        raise InputProblem(f"{recording.place(line)}: {failure.message}")
    if failure.kind == "truncated":
        raise InputProblem(f"{recording.name}: expected the events of a stream in {recording.format}, got none")


def _has_content(completion: Completion) -> bool:
    known = (completion.id, completion.model, completion.created, completion.usage, completion.metadata)
    return any(message.parts for message in completion.messages) or any(value is not None for value in known)


def describe_end(failure: Failure) -> str:
    """Describes how an incomplete stream ended."""
    if failure.kind == "truncated":
        return f"the stream ended early: {failure.message}"
    return f"the stream failed ({failure.kind}): {failure.message}"
