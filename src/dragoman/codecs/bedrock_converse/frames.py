"""AWS event-stream frames: lengths and their CRC, headers, payload, the CRC of it all.

Reading them is the business of `AwsEventStream`, in the framing of all formats; here is a shorter way for usual ones.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

from dragoman.codecs.framing import AwsEventStream, Limits

_LENGTHS = struct.Struct(">II")
_CRC = struct.Struct(">I")
_STRING = struct.Struct(">BH")
_STRING_TYPE = 7
_BESIDE = 16
"""Bytes of a frame beside its headers and its payload."""


def header_bytes(entries: Mapping[str, str]) -> bytes:
    """The headers of a frame, all of them strings."""
    data = []
    for name, value in entries.items():
        told, said = name.encode(), value.encode()
        data.append(bytes([len(told)]) + told + _STRING.pack(_STRING_TYPE, len(said)) + said)
    return b"".join(data)


def event_headers(name: str) -> bytes:
    return header_bytes({":event-type": name, ":content-type": "application/json", ":message-type": "event"})


def exception_headers(name: str) -> bytes:
    return header_bytes({":exception-type": name, ":content-type": "application/json", ":message-type": "exception"})


def frame(headers: bytes, payload: bytes) -> bytes:
    lengths = _LENGTHS.pack(_BESIDE + len(headers) + len(payload), len(headers))
    prelude = lengths + _CRC.pack(zlib.crc32(lengths))
    message = prelude + headers + payload
    return message + _CRC.pack(zlib.crc32(message))


_PRELUDE = struct.Struct(">III")
_PRELUDE_BYTES = 12
_MOST_HEADS = 64


class EventFrames(AwsEventStream):
    """The frames of one stream. Their headers are the same for all events of a type, and are read once for each."""

    def __init__(self, limits: Limits, source: str) -> None:
        super().__init__(limits, source)
        self._heads: dict[bytes, bytes] = {}
        # As long as the whole stream is smaller than one event may be, nothing else needs to be counted.
        self._small = min(limits.event_bytes, limits.stream_bytes)

    def feed(self, chunk: bytes) -> list[bytes]:
        size = len(chunk)
        if size > _BESIDE and not self._pieces and self._fault is None and self.total + size <= self._small:
            # The usual case: one chunk is one frame.
            length, headers, crc = _PRELUDE.unpack_from(chunk)
            if length == size and zlib.crc32(chunk[:8]) == crc:
                start = _PRELUDE_BYTES + headers
                head = self._heads.get(chunk[_PRELUDE_BYTES:start])
                if head is not None and _CRC.pack(zlib.crc32(chunk[:-4])) == chunk[-4:] and start < size - 4:
                    self.total += size
                    return [head + chunk[start:-4] + b"}"]
        return super().feed(chunk)

    def _frame(self, frame: bytes, header_bytes: int) -> bytes:
        payload = super()._frame(frame, header_bytes)
        start = _PRELUDE_BYTES + header_bytes
        tail = frame[start:-4] + b"}"
        if len(tail) > 1 and payload.endswith(tail) and len(self._heads) < _MOST_HEADS:
            self._heads[frame[_PRELUDE_BYTES:start]] = payload[: -len(tail)]
        return payload
