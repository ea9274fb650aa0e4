"""Bytes in, payloads out: how each wire marks where one event ends.

Incremental and linear: a chunk is looked at once, and an unfinished event is kept as a list of pieces, so feeding a
10 MB event byte by byte costs what feeding it whole costs. Bounded: an event or a stream beyond its limit is an error.
"""

from __future__ import annotations

import re
import struct
import zlib
from typing import Protocol

from msgspec import Struct

from dragoman.errors import DecodeError, LimitExceeded

# As numbers: looking for one byte is nine times as fast as looking for a string of length one.
LF, CR = 10, 13


class Limits(Struct, frozen=True):
    """Bytes of one event and of a whole stream. The largest recorded event has 212 KiB; a 10 MB argument is legal."""

    event_bytes: int = 64 << 20
    stream_bytes: int = 1 << 30


class Framing(Protocol):
    """A way of cutting bytes into payloads."""

    def feed(self, chunk: bytes) -> list[bytes]: ...

    def close(self) -> list[bytes]: ...


class _Bounded:
    """Counts what came in; keeps the unfinished rest in pieces."""

    def __init__(self, limits: Limits, source: str) -> None:
        self._limits = limits
        self._source = source
        self._total = 0
        self._pieces: list[bytes] = []
        self._held = 0

    def _count(self, chunk: bytes) -> None:
        self._total += len(chunk)
        if self._total > self._limits.stream_bytes:
            raise self._exceeded("stream", self._limits.stream_bytes)

    def _hold(self, piece: bytes) -> None:
        self._held += len(piece)
        if self._held > self._limits.event_bytes:
            raise self._exceeded("event", self._limits.event_bytes)
        self._pieces.append(piece)

    def _take(self, chunk: bytes) -> bytes:
        if not self._pieces:
            return chunk
        self._pieces.append(chunk)
        joined = b"".join(self._pieces)
        self._pieces = []
        self._held = 0
        return joined

    def _exceeded(self, what: str, limit: int) -> LimitExceeded:
        return LimitExceeded(path="$", expected=f"{what} of at most {limit} bytes", got="more", source=self._source)


class ServerSentEvents(_Bounded):
    """`data:` lines until a blank line. CR, LF and CRLF end a line; comments and other fields say nothing to us."""

    def __init__(self, limits: Limits, source: str) -> None:
        super().__init__(limits, source)
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._after_return = False
        self._first = True
        self._clean = True  # nothing is held back

    def feed(self, chunk: bytes) -> list[bytes]:
        if self._clean and chunk[:6] == b"data: " and chunk[-2:] == b"\n\n":
            # The usual case: one chunk is one event of one line.
            payload = chunk[6:-2]
            if LF not in payload and CR not in payload and len(payload) < self._limits.event_bytes:
                self._total += len(chunk)
                if self._total <= self._limits.stream_bytes:
                    return [payload]
        return self._feed(chunk)

    def _feed(self, chunk: bytes) -> list[bytes]:
        self._count(chunk)
        self._clean = False
        if self._after_return and chunk:
            # A CR ended the line; the LF that may follow it belongs to the same end.
            self._after_return = False
            chunk = chunk.removeprefix(b"\n")
        if LF not in chunk and CR not in chunk:
            if chunk:
                self._hold(chunk)
            return []
        text = self._take(chunk)
        if CR in text:
            self._after_return = text.endswith(b"\r")
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = text.split(b"\n")
        rest = lines.pop()
        if rest:
            self._hold(rest)
        payloads = self._read(lines)
        self._clean = not (rest or self._data or self._after_return)
        return payloads

    def _read(self, lines: list[bytes]) -> list[bytes]:
        payloads: list[bytes] = []
        data = self._data
        if self._first and lines:
            self._first = False
            lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
        for line in lines:
            if line[:5] == b"data:":
                data.append(line[6:] if line[5:6] == b" " else line[5:])
                self._data_bytes += len(line)
                if self._data_bytes > self._limits.event_bytes:
                    raise self._exceeded("event", self._limits.event_bytes)
            elif not line and data:
                payloads.append(data[0] if len(data) == 1 else b"\n".join(data))
                data.clear()
                self._data_bytes = 0
        return payloads

    def close(self) -> list[bytes]:
        """The last event counts even when its blank line is missing."""
        return self._read([self._take(b""), b""])


class Lines(_Bounded):
    """One JSON document per line (NDJSON)."""

    def feed(self, chunk: bytes) -> list[bytes]:
        self._count(chunk)
        if LF not in chunk:
            if chunk:
                self._hold(chunk)
            return []
        lines = self._take(chunk).split(b"\n")
        rest = lines.pop()
        if rest:
            self._hold(rest)
        return [line for line in lines if line and not line.isspace()]

    def close(self) -> list[bytes]:
        rest = self._take(b"").strip()
        return [rest] if rest else []


_STRUCTURE = re.compile(rb'["\\{}\[\],]')


class JsonArray(_Bounded):
    """One streamed JSON array; each element is a payload. What Gemini sends without `alt=sse`."""

    def __init__(self, limits: Limits, source: str) -> None:
        super().__init__(limits, source)
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def feed(self, chunk: bytes) -> list[bytes]:
        self._count(chunk)
        payloads: list[bytes] = []
        start = 0
        for place, mark in self._marks(chunk):
            if mark in b"{[":
                self._depth += 1
                if self._depth == 1 and mark == ord("["):
                    start = place + 1
            elif mark in b"}]":
                self._depth -= 1
            if (self._depth == 1 and mark == ord(",")) or (self._depth == 0 and mark == ord("]")):
                payloads += self._element(chunk[start:place])
                start = place + 1
        if chunk[start:].strip() or self._pieces:
            self._hold(chunk[start:])
        return payloads

    def _marks(self, chunk: bytes) -> list[tuple[int, int]]:
        """Structural characters outside strings. A backslash escapes the next byte, also across chunks."""
        marks = []
        skip = -1
        if self._escaped and chunk:
            self._escaped, skip = False, 0
        for found in _STRUCTURE.finditer(chunk):
            place, mark = found.start(), chunk[found.start()]
            if place == skip:
                continue
            if self._in_string:
                if mark == ord("\\"):
                    skip = place + 1
                    self._escaped = skip >= len(chunk)
                elif mark == ord('"'):
                    self._in_string = False
            elif mark == ord('"'):
                self._in_string = True
            else:
                marks.append((place, mark))
        return marks

    def _element(self, piece: bytes) -> list[bytes]:
        element = self._take(piece).strip()
        return [element] if element else []

    def close(self) -> list[bytes]:
        rest = self._take(b"").strip()
        return [rest] if rest else []


class SniffedJson(_Bounded):
    """Server-sent events or a JSON array, told by the first byte: one Gemini method answers in both."""

    def __init__(self, limits: Limits, source: str) -> None:
        super().__init__(limits, source)
        self._chosen: Framing | None = None

    def feed(self, chunk: bytes) -> list[bytes]:
        if self._chosen is not None:
            return self._chosen.feed(chunk)
        start = self._take(chunk)
        seen = start.removeprefix(b"\xef\xbb\xbf").lstrip()
        if not seen:
            self._hold(start)
            return []
        kind = JsonArray if seen[:1] in b"[{" else ServerSentEvents
        self._chosen = kind(self._limits, self._source)
        return self._chosen.feed(start.removeprefix(b"\xef\xbb\xbf") if kind is JsonArray else start)

    def close(self) -> list[bytes]:
        return [] if self._chosen is None else self._chosen.close()


_PRELUDE = struct.Struct(">III")
_PRELUDE_BYTES = 12
_CRC_BYTES = 4


class AwsEventStream(_Bounded):
    """AWS event-stream frames: prelude with lengths and CRC, headers, payload, CRC. Payloads come as `(type)json`."""

    def feed(self, chunk: bytes) -> list[bytes]:
        self._count(chunk)
        buffer = self._take(chunk)
        payloads: list[bytes] = []
        start = 0
        while len(buffer) - start >= _PRELUDE_BYTES:
            total, header_bytes, crc = _PRELUDE.unpack_from(buffer, start)
            if zlib.crc32(buffer[start : start + 8]) != crc:
                raise self._broken("prelude")
            if total > self._limits.event_bytes:
                raise self._exceeded("event", self._limits.event_bytes)
            if len(buffer) - start < total:
                break
            payloads.append(self._frame(buffer[start : start + total], header_bytes))
            start += total
        if start < len(buffer):
            self._hold(buffer[start:])
        return payloads

    def _frame(self, frame: bytes, header_bytes: int) -> bytes:
        (crc,) = struct.unpack_from(">I", frame, len(frame) - _CRC_BYTES)
        if zlib.crc32(frame[:-_CRC_BYTES]) != crc:
            raise self._broken("message")
        headers = _aws_headers(frame[_PRELUDE_BYTES : _PRELUDE_BYTES + header_bytes])
        name = headers.get(":event-type") or headers.get(":exception-type") or ""
        payload = frame[_PRELUDE_BYTES + header_bytes : -_CRC_BYTES] or b"{}"
        return b'{"' + name.encode() + b'":' + payload + b"}"

    def _broken(self, where: str) -> DecodeError:
        return DecodeError(path="$", expected=f"a {where} that fits its CRC", got="another CRC", source=self._source)

    def close(self) -> list[bytes]:
        if self._pieces:
            raise DecodeError(path="$", expected="a whole frame", got="end of bytes inside one", source=self._source)
        return []


_AWS_STRING = 7


def _aws_headers(data: bytes) -> dict[str, str]:
    """String headers; the other types carry nothing we read, and no stream we know sends them."""
    headers = {}
    place = 0
    while place < len(data):
        name_end = place + 1 + data[place]
        name = data[place + 1 : name_end].decode()
        if data[name_end] != _AWS_STRING:
            break
        (length,) = struct.unpack_from(">H", data, name_end + 1)
        value_start = name_end + 3
        headers[name] = data[value_start : value_start + length].decode()
        place = value_start + length
    return headers
