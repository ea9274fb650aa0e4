"""Splits bytes into payloads, by how each wire marks the end of an event.

Incremental and linear: a chunk is read once, and an unfinished event is kept as a list of pieces, so feeding a 10 MB
event byte by byte costs what feeding it whole costs. Bounded: an event or a stream beyond its limit is an error.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from typing import Protocol
from zlib import crc32

from dragoman.codecs.stream_limits import Limits
from dragoman.errors import DecodeError, LimitExceeded
from dragoman.ir.values import encode_json

# As numbers: looking for one byte is nine times as fast as looking for a string of length one.
LF, CR = 10, 13
_SPACE = 32
BOM = b"\xef\xbb\xbf"


class Framing(Protocol):
    """Splits bytes into payloads."""

    clean: bool
    """Nothing is buffered: except for the size limits, the next bytes are read as if they were the first."""

    def feed(self, chunk: bytes) -> list[bytes]: ...

    def close(self) -> list[bytes]: ...


class BoundedFraming:
    """Counts the input, keeps an unfinished event in pieces, and raises an error only after the payloads before it.

    So the payloads, and the error after them, do not depend on how the bytes are split into chunks.
    """

    _limits: Limits
    _room: int
    """The number of bytes of a stream that are within both limits, however they are split."""
    _source: str
    clean: bool
    _total: int
    _pieces: list[bytes] | None = None
    _buffered_bytes: int = 0
    _fault: DecodeError | None = None

    def __init__(self, limits: Limits, source: str) -> None:
        event, stream = limits.event_bytes, limits.stream_bytes
        self._limits = limits
        self._room = event if event < stream else stream  # noqa: FURB136 - for every stream; `min` costs more
        self._source = source
        # Read for every chunk: interpreted, a default in the class is found later than an attribute of the object.
        self.clean = True
        self._total = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the payloads that end in this chunk.

        Subclasses have a fast path, the only one of streams, for complete events in their usual form, as nearly every
        network read brings them. Everything else comes here.
        """
        if self._fault is not None:
            raise self._fault
        limit = self._limits.stream_bytes
        room = limit - self._total
        self._total += len(chunk)
        payloads: list[bytes] = []
        try:
            for payload in self._split(chunk[:room] if len(chunk) > room else chunk):
                payloads.append(payload)  # noqa: PERF402 - a compiled extend keeps nothing of what came before a fault
            if len(chunk) > room:
                raise self._limit_error("stream", limit)
        except DecodeError as error:
            if not payloads:
                raise
            self._fault = error
        return payloads

    def close(self) -> list[bytes]:
        if self._fault is not None:
            raise self._fault
        return list(self._rest())

    def _split(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the payloads that end in this chunk."""
        raise NotImplementedError

    def _rest(self) -> Iterator[bytes]:
        """Yield the payload that the end of bytes completes."""
        raise NotImplementedError

    def _hold(self, piece: bytes) -> None:
        if not piece:
            return
        self._buffered_bytes += len(piece)
        self._measure(self._buffered_bytes)
        if self._pieces is None:
            self._pieces = [piece]
        else:
            self._pieces.append(piece)

    def _take(self, chunk: bytes) -> bytes:
        if self._pieces is None:
            return chunk
        self._pieces.append(chunk)
        joined = b"".join(self._pieces)
        self._pieces = None
        self._buffered_bytes = 0
        return joined

    def _measure(self, length: int) -> None:
        if length > self._limits.event_bytes:
            raise self._limit_error("event", self._limits.event_bytes)

    def _limit_error(self, what: str, limit: int) -> LimitExceeded:
        return LimitExceeded(path="$", expected=f"{what} of at most {limit} bytes", got="more", source=self._source)

    def _malformed(self, expected: str, got: str) -> DecodeError:
        return DecodeError(path="$", expected=expected, got=got, source=self._source)


_MOST_NAMES = 64
_LONGEST_NAME = 128
_names = {b""}
"""Lines that may come before an event's data and are ignored: names of events."""


def _is_name(line: bytes) -> bool:
    if line in _names:
        return True
    if line[:6] != b"event:" or line.find(LF) != len(line) - 1:
        return False
    if len(_names) < _MOST_NAMES and len(line) <= _LONGEST_NAME:
        _names.add(line)
    return True


class ServerSentEvents(BoundedFraming):
    """`data:` lines until a blank line. CR, LF and CRLF end a line; comments and other fields are ignored.

    A line that begins with a brace is not a field, but Google and others answer a failed stream with a bare JSON error,
    even after events: such an object is a payload too, up to the next blank line.
    """

    _data: list[bytes] | None = None
    _data_bytes: int = 0
    _bare: bool = False  # in a JSON object outside of any field
    _after_return: bool = False
    _first: bool = True
    _beginning: bytes
    """What comes before the payload: the name of the event, if it has one. Most events begin as the one before."""

    def __init__(self, limits: Limits, source: str) -> None:
        super().__init__(limits, source)
        self._beginning = b"data: "

    def feed(self, chunk: bytes) -> list[bytes]:
        """Fast path: one or several events, each an optional name, one `data:` line and a blank line."""
        total = self._total + len(chunk)
        if not self.clean or total > self._room:
            return super().feed(chunk)
        rest = chunk.removeprefix(self._beginning)
        if rest is chunk:
            name, data, rest = chunk.partition(b"data: ")
            if not data or name not in _names:
                return self._several(chunk) or super().feed(chunk)
            self._beginning = name + data
        payload = rest.removesuffix(b"\n\n")
        if payload is rest:
            payload = rest.removesuffix(b"\r\n\r\n")
        if payload is rest or LF in payload or CR in payload:
            return self._several(chunk) or super().feed(chunk)
        if not payload or payload[0] <= _SPACE:  # may be white space alone, and then is no event
            return self._several(chunk) or super().feed(chunk)
        self._total = total
        self._first = False
        return [payload]

    def _several(self, chunk: bytes) -> list[bytes]:
        """Return the payloads of several such events; none if the chunk has anything else."""
        blank = b"\n\n"
        if chunk[-2:] != blank or CR in chunk:
            return []
        payloads = []
        for event in chunk[:-2].split(blank):
            name, _, payload = event.partition(b"data: ")
            if LF in payload or not payload or payload.isspace() or not _is_name(name):
                return []
            payloads.append(payload)
        self._total += len(chunk)
        self._first = False
        return payloads

    def _split(self, chunk: bytes) -> Iterator[bytes]:
        self.clean = False
        if self._after_return and chunk:
            # A CR ended the line; an LF after it belongs to the same line end.
            self._after_return = False
            chunk = chunk.removeprefix(b"\n")
        if LF not in chunk and CR not in chunk:
            self._hold(chunk)
            return
        text = self._take(chunk)
        if CR in text:
            self._after_return = text.endswith(b"\r")
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = text.split(b"\n")
        rest = lines.pop()
        yield from self._read(lines)
        self._hold(rest)
        self.clean = not (rest or self._data or self._after_return)

    def _read(self, lines: list[bytes]) -> Iterator[bytes]:
        if self._first:
            self._first = False
            lines[0] = lines[0].removeprefix(BOM)
        for line in lines:
            if not line:
                if self._data is not None:
                    yield from self._event(self._data)
                continue
            self._measure(len(line))
            if line[:5] == b"data:" and not self._bare:
                self._add(line[6:] if line[5:6] == b" " else line[5:], len(line))
            elif self._bare or (self._data is None and line[:1] == b"{"):
                self._bare = True
                self._add(line, len(line))

    def _add(self, data: bytes, length: int) -> None:
        if self._data is None:
            self._data = []
        self._data.append(data)
        self._data_bytes += length
        self._measure(self._data_bytes)

    def _event(self, data: list[bytes]) -> Iterator[bytes]:
        payload = data[0] if len(data) == 1 else b"\n".join(data)
        self._data = None
        self._data_bytes = 0
        self._bare = False
        # An event without data does not count; servers send them to keep the connection alive.
        if payload and not payload.isspace():
            yield payload

    def _rest(self) -> Iterator[bytes]:
        """Yield the last event, which counts even if its blank line is missing."""
        return self._read([self._take(b""), b""])


class Lines(BoundedFraming):
    """One JSON document per line (NDJSON)."""

    _first: bool = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """Fast path: one or several complete lines."""
        total = self._total + len(chunk)
        lines = chunk.split(b"\n")
        if lines.pop() or not lines or not self.clean or total > self._room:
            return super().feed(chunk)
        for line in lines:
            if line[:1] != b"{":
                return super().feed(chunk)
        self._total = total
        self._first = False
        return lines

    def _split(self, chunk: bytes) -> Iterator[bytes]:
        self.clean = False
        if LF not in chunk:
            self._hold(chunk)
            return
        lines = self._take(chunk).split(b"\n")
        rest = lines.pop()
        yield from self._read(lines)
        self._hold(rest)
        self.clean = not rest

    def _read(self, lines: list[bytes]) -> Iterator[bytes]:
        if self._first:
            self._first = False
            lines[0] = lines[0].removeprefix(BOM)
        for line in lines:
            self._measure(len(line))
            if line and not line.isspace():
                yield line

    def _rest(self) -> Iterator[bytes]:
        return self._read([self._take(b"")])


_OUTSIDE_STRINGS = re.compile(rb'["{}\[\],]')
_INSIDE_A_STRING = re.compile(rb'["\\]')
_QUOTE, _COMMA = b'",'
_OPENING, _CLOSING = b"[{", b"]}"
_WHITESPACE = b" \t\r\n"


class JsonArray(BoundedFraming):
    """One streamed JSON array, as Gemini sends it without `alt=sse`; each element is a payload.

    An element is complete as soon as its last bracket has arrived. Objects outside of any array are elements too.
    """

    _level: int = 0  # of the elements: 1 inside the array, 0 outside of one
    _depth: int = 0
    _in_string: bool = False
    _escaped: bool = False
    _first: bool = True

    def __init__(self, limits: Limits, source: str) -> None:
        super().__init__(limits, source)
        self.clean = False  # a comma or a bracket belongs to what came before

    @property
    def is_open(self) -> bool:
        """Whether the array, or an element, has begun and not ended yet."""
        return self._depth > 0 or self._in_string

    def _split(self, chunk: bytes) -> Iterator[bytes]:
        start = 0
        for place in self._marks(chunk):
            mark = chunk[place]
            end = place
            if mark in _OPENING:
                self._depth += 1
                if self._depth > 1 or mark != _OPENING[0]:
                    continue
                self._level = 1
            elif mark in _CLOSING:
                self._depth -= 1
                if self._depth > self._level:
                    continue
                if self._depth == self._level:
                    end += 1
                self._level = min(self._level, self._depth)
            elif self._depth > self._level:
                continue
            yield from self._element(chunk[start:end])
            start = place + 1
            if self._depth < 0:
                raise self._malformed("a JSON array", "a bracket too many")
        rest = chunk[start:]
        self._hold(rest if self._pieces else rest.lstrip(_WHITESPACE))

    def _marks(self, chunk: bytes) -> Iterator[int]:
        """Yield positions of brackets and commas outside strings. A backslash escapes the next byte across chunks."""
        place = 0
        if self._escaped and chunk:
            self._escaped, place = False, 1
        while True:
            found = (_INSIDE_A_STRING if self._in_string else _OUTSIDE_STRINGS).search(chunk, place)
            if found is None:
                return
            mark = found.start()
            place = mark + 1
            if chunk[mark] == _QUOTE:
                self._in_string = not self._in_string
            elif not self._in_string:
                yield mark
            elif place < len(chunk):
                place += 1
            else:
                self._escaped = True

    def _element(self, piece: bytes) -> Iterator[bytes]:
        element = self._take(piece) if self._pieces else piece.lstrip(_WHITESPACE)
        if self._first:
            self._first = False
            element = element.removeprefix(BOM)
        element = element.strip(_WHITESPACE)
        self._measure(len(element))
        if element:
            yield element

    def _rest(self) -> Iterator[bytes]:
        return self._element(b"")


class SniffedJson(ServerSentEvents):
    """Server-sent events or a JSON array, decided by the first byte: one Gemini method answers in either."""

    _array: JsonArray | None = None

    def _split(self, chunk: bytes) -> Iterator[bytes]:
        self.clean = False
        if self._first:
            start = self._take(chunk)
            seen = start.removeprefix(BOM).lstrip(_WHITESPACE)
            if not seen or BOM.startswith(start):
                # Leading white space is skipped; a byte order mark may still be incomplete.
                self._hold(start if BOM.startswith(start) else b"")
                return
            chunk = seen
            self._first = False
            if seen[:1] in {b"[", b"{"}:
                self._array = JsonArray(self._limits, self._source)
        yield from super()._split(chunk) if self._array is None else self._array._split(chunk)

    def _rest(self) -> Iterator[bytes]:
        return super()._rest() if self._array is None else self._array._rest()


_PRELUDE = struct.Struct(">III")
_PRELUDE_BYTES = 12
_CRC_BYTES = 4
_MOST_HEADS = 64
_LONGEST_HEAD = 255
_heads: dict[bytes, bytes] = {}
"""Headers of a frame -> the bytes to put before its payload. Each type of event always has the same headers."""


_HEADERS_LENGTH = 7
"""The position of the last byte of the headers' length. Headers of events are shorter than 256 bytes."""
_MOST_BEGINNINGS = 1024
_UNKNOWN = (0, b"", 0)
_beginnings: dict[bytes, tuple[int, bytes, int]] = {}
"""Prelude and headers of a valid frame -> its length, the bytes to put before its payload, and their CRC.

They are the same for all frames of one type and length."""


class AwsEventStream(BoundedFraming):
    """AWS event-stream frames: prelude with lengths and CRC, headers, payload, CRC.

    A payload is returned as {type of the event: its JSON}, an exception likewise, under its type.
    """

    _needed: int = _PRELUDE_BYTES  # bytes to buffer before anything can be read

    def feed(self, chunk: bytes) -> list[bytes]:
        """Fast path: one frame with known headers."""
        size = len(chunk)
        total = self._total + size
        if size <= _PRELUDE_BYTES + _CRC_BYTES or not self.clean or total > self._room:
            return super().feed(chunk)
        start = _PRELUDE_BYTES + chunk[_HEADERS_LENGTH]
        length, head, checked = _beginnings.get(chunk[:start], _UNKNOWN)
        if length != size:
            return super().feed(chunk)
        # Not earlier: compiled, a slice that ends before it starts is an error, and a frame may state a wrong length.
        payload = chunk[start:-_CRC_BYTES]
        if crc32(payload, checked).to_bytes(_CRC_BYTES, "big") != chunk[-_CRC_BYTES:]:
            return super().feed(chunk)
        self._total = total
        return [head + payload + b"}"]

    def _split(self, chunk: bytes) -> Iterator[bytes]:
        self.clean = False
        if self._buffered_bytes + len(chunk) < self._needed:
            self._hold(chunk)
            return
        buffer = self._take(chunk)
        start = 0
        self._needed = _PRELUDE_BYTES
        while len(buffer) - start >= _PRELUDE_BYTES:
            total, header_bytes = self._prelude(buffer, start)
            if len(buffer) - start < total:
                self._needed = total
                break
            yield self._frame(buffer[start : start + total], header_bytes)
            start += total
        self._hold(buffer[start:])
        self.clean = not self._pieces

    def _prelude(self, buffer: bytes, start: int) -> tuple[int, int]:
        total, header_bytes, crc = _PRELUDE.unpack_from(buffer, start)
        if crc32(buffer[start : start + 8]) != crc:
            raise self._malformed("a prelude that fits its CRC", "another CRC")
        self._measure(total)
        if total < _PRELUDE_BYTES + header_bytes + _CRC_BYTES:
            raise self._malformed("a frame as long as its parts", f"{total} bytes, of which {header_bytes} of headers")
        return total, header_bytes

    def _frame(self, frame: bytes, header_bytes: int) -> bytes:
        (crc,) = struct.unpack_from(">I", frame, len(frame) - _CRC_BYTES)
        if crc32(frame[:-_CRC_BYTES]) != crc:
            raise self._malformed("a message that fits its CRC", "another CRC")
        start = _PRELUDE_BYTES + header_bytes
        encoded_headers, payload = frame[_PRELUDE_BYTES:start], frame[start:-_CRC_BYTES]
        head = _heads.get(encoded_headers)
        if head is not None and payload and header_bytes <= _LONGEST_HEAD:
            if len(_beginnings) >= _MOST_BEGINNINGS:
                _beginnings.clear()
            _beginnings[frame[:start]] = (len(frame), head, crc32(frame[:start]))
        if head is None:
            try:
                headers = read_aws_headers(encoded_headers)
            except (IndexError, KeyError, struct.error, UnicodeDecodeError) as error:
                raise self._malformed("headers of an event-stream frame", repr(error)) from error
            name = headers.get(":event-type") or headers.get(":exception-type") or ""
            if not name and ":error-code" in headers:
                # A frame of type "error" has no payload; its headers hold everything.
                return encode_json({headers[":error-code"]: {"message": headers.get(":error-message", "")}})
            head = b"{" + encode_json(name) + b":"
            if len(encoded_headers) <= _LONGEST_HEAD:
                if len(_heads) >= _MOST_HEADS:
                    _heads.clear()
                _heads[encoded_headers] = head
        return head + (payload or b"{}") + b"}"

    def _rest(self) -> Iterator[bytes]:
        # Part of a frame cannot be read, which is how its decoder learns that the stream was cut.
        if self._pieces:
            yield self._take(b"")


_AWS_BYTES, _AWS_STRING = 6, 7
_AWS_FIXED = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header's value by its type: true, false, byte, short, integer, long, timestamp, UUID."""


def begins_with_frame(data: bytes | bytearray) -> bool:
    """Whether these are event-stream frames: only they begin with two lengths and their CRC."""
    if len(data) < _PRELUDE_BYTES:
        return False
    crc: int
    total, header_bytes, crc = _PRELUDE.unpack_from(data)
    if total < _PRELUDE_BYTES + header_bytes + _CRC_BYTES:
        return False
    return crc32(data[: _PRELUDE_BYTES - _CRC_BYTES]) == crc


def read_aws_headers(data: bytes) -> dict[str, str]:
    """Return the headers that are strings; no others are needed."""
    headers = {}
    place = 0
    while place < len(data):
        name_end = place + 1 + data[place]
        name = data[place + 1 : name_end].decode()
        kind = data[name_end]
        place = name_end + 1
        if kind not in {_AWS_BYTES, _AWS_STRING}:
            place += _AWS_FIXED[kind]
            continue
        (length,) = struct.unpack_from(">H", data, place)
        value = data[place + 2 : place + 2 + length]
        place += 2 + length
        if kind == _AWS_STRING:
            headers[name] = value.decode()
    return headers


def aws_headers(entries: Mapping[str, str]) -> bytes:
    """Return the headers of a frame, all of them strings."""
    data = []
    for name, value in entries.items():
        key, text = name.encode(), value.encode()
        data.append(bytes([len(key)]) + key + struct.pack(">BH", _AWS_STRING, len(text)) + text)
    return b"".join(data)


def aws_frame(headers: bytes, payload: bytes) -> bytes:
    """Return one event-stream frame, with the CRC of its prelude and that of the whole."""
    lengths = struct.pack(">II", _PRELUDE_BYTES + len(headers) + len(payload) + _CRC_BYTES, len(headers))
    message = lengths + struct.pack(">I", crc32(lengths)) + headers + payload
    return message + struct.pack(">I", crc32(message))
