"""Amazon's event stream: binary frames with two checksums."""

from __future__ import annotations

import binascii
import struct
from collections.abc import Mapping

CONTENT_TYPE = "application/vnd.amazon.eventstream"
_TEXT = 7


def _header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return bytes([len(key)]) + key + bytes([_TEXT]) + struct.pack(">H", len(text)) + text


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Lengths, a checksum over them, headers, payload, a checksum over everything."""
    encoded = b"".join(_header(name, value) for name, value in headers.items())
    prelude = struct.pack(">II", len(encoded) + len(payload) + 16, len(encoded))
    head = prelude + struct.pack(">I", binascii.crc32(prelude))
    message = head + encoded + payload
    return message + struct.pack(">I", binascii.crc32(message))


def event(kind: str, payload: bytes) -> bytes:
    return frame({":event-type": kind, ":content-type": "application/json", ":message-type": "event"}, payload)


def exception(kind: str, payload: bytes) -> bytes:
    return frame({":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}, payload)


def broken_event(kind: str) -> bytes:
    """A frame whose last checksum is wrong."""
    frame = event(kind, b"{}")
    return frame[:-4] + bytes(byte ^ 0xFF for byte in frame[-4:])
