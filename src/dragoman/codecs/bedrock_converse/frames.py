"""AWS event-stream frames, as they come and go by the thousand.

Reading them in full is the business of `AwsEventStream`, in the framing of all formats. What stands before the payload,
lengths and their CRC and headers, is the same for all frames of a type and a length: it is looked at once for each.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from zlib import crc32

import msgspec

from dragoman.codecs.framing import aws_frame, aws_headers
from dragoman.codecs.templates import Ring, Template, read_string

_PRELUDE = struct.Struct(">III")
_PRELUDE_BYTES = 12
_CRC_BYTES = 4
_LAST = -_CRC_BYTES
_read_crc = struct.Struct(">I").unpack_from
_MOST = 1024


def event_headers(name: str) -> bytes:
    return aws_headers({":event-type": name, ":content-type": "application/json", ":message-type": "event"})


def exception_headers(name: str) -> bytes:
    return aws_headers({":exception-type": name, ":content-type": "application/json", ":message-type": "exception"})


TEXT, REASONING, CALL = "text", "reasoning", "call"
_AROUND = {
    TEXT: (b'{"text":', b"}}"),
    REASONING: (b'{"reasoningContent":{"text":', b"}}}"),
    CALL: (b'{"toolUse":{"input":', b"}}}"),
}


def around(block: int, kind: str) -> tuple[bytes, bytes]:
    """What stands before and after a fragment of a block of this kind."""
    head, tail = _AROUND[kind]
    return b'{"contentBlockIndex":%d,"delta":%b' % (block, head), tail


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


def frame_writer(headers: bytes) -> Callable[[bytes], bytes]:
    """Puts payloads into frames with these headers."""
    known: dict[int, tuple[bytes, int]] = {}  # length of a payload -> what stands before it, and the CRC of that

    def write(payload: bytes) -> bytes:
        found = known.get(len(payload))
        if found is None:
            start = aws_frame(headers, payload)[: _PRELUDE_BYTES + len(headers)]
            if len(known) >= _MOST:
                known.clear()
            found = known[len(payload)] = (start, crc32(start))
        start, checked = found
        return start + payload + crc32(payload, checked).to_bytes(_CRC_BYTES, "big")

    return write


# ── reading more of what flows ────────────────────────────────────────────────────────────────────────────────

_DELTA_HEADERS = event_headers("contentBlockDelta")
_ALPHABET = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_PADDINGS = frozenset(_ALPHABET[:length] + b'"}' for length in range(len(_ALPHABET) + 1))
"""The ends of payloads: each is padded with as much of the alphabet as it takes to hide how long its text is."""


_MOST_OPENINGS, _MOST_LENGTHS = 32, 256
_starts: dict[bytes, dict[int, tuple[bytes, int]]] = {}
"""What stands between the lengths and the text -> length of a frame -> all that stands before the text, and its CRC."""


class Fragments(Ring):
    """Frames that say more of the block that flows, spelled as this API spells it. All others are read in full."""

    def __init__(self) -> None:
        super().__init__()
        self._opening = b""
        self._before = self._rest = slice(0)
        self._seam = self._tail = b""
        self._known: dict[int, tuple[bytes, int]] = {}

    def flow(self, block: int, part: int, kind: str) -> None:
        head, self._tail = around(block, kind)
        self._seam = self._tail[:-1] + b',"p":"'
        self._opening = _DELTA_HEADERS + head
        before = _PRELUDE_BYTES + len(self._opening)
        self._before, self._rest = slice(before), slice(before, -_CRC_BYTES)
        if len(_starts) >= _MOST_OPENINGS:
            _starts.clear()
        self._known = _starts.setdefault(self._opening, {})
        self.last = Template(b"", b"", part)

    def clear(self) -> None:
        self._opening = b""
        self._known = {}

    def read(self, data: bytes) -> str | None:
        known = self._known.get(len(data))
        if known is None:
            known = self._learn(data)
            if known is None:
                return None
        start, checked = known
        rest = data[self._rest]
        if data[self._before] != start or crc32(rest, checked) != _read_crc(data, _LAST)[0]:
            return None
        said, seam, padding = rest.rpartition(self._seam)
        if not seam:
            said = rest.removesuffix(self._tail)  # what does not end so is no string either
        elif padding not in _PADDINGS:
            return None
        passed = self.passed + len(data)
        if passed > self.room:
            return None
        try:
            text = read_string(said)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        if not text:
            return None
        self.passed = passed
        return text

    def _learn(self, data: bytes) -> tuple[bytes, int] | None:
        """From a frame of a new length."""
        if not self._opening or not data.startswith(self._opening, _PRELUDE_BYTES):
            return None
        length, header_bytes, crc = _PRELUDE.unpack_from(data)
        start = data[self._before]
        if (
            length != len(data)
            or length < len(start) + _CRC_BYTES
            or header_bytes != len(_DELTA_HEADERS)
            or crc32(data[: _PRELUDE_BYTES - _CRC_BYTES]) != crc
        ):
            return None
        if len(self._known) >= _MOST_LENGTHS:
            self._known.clear()
        known = self._known[length] = (start, crc32(start))
        return known
