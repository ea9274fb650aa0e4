"""AWS event-stream frames, the way out: lengths and their CRC, headers, payload, the CRC of it all.

The way in is `AwsEventStream`, in the framing of all formats.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

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
