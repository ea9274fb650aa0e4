"""AWS event-stream frames, as they come and go by the thousand.

Reading them in full is the business of `AwsEventStream`, in the framing of all formats. What stands before the payload,
lengths and their CRC and headers, is the same for all frames of a type and a length: it is looked at once for each.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from zlib import crc32

import msgspec

from dragoman.codecs.event_templates import Ring, read_string
from dragoman.codecs.framing import aws_frame, aws_headers

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
"""Payloads are padded with as much of it as it takes to hide how long a text is."""
_LAST_LETTER = -3 - _CRC_BYTES
"""Where the last letter of the padding stands, before two closing marks and the CRC."""
_MOST_LENGTHS = 256


class _Flow:
    """How more of one block looks in its frame."""

    def __init__(self, block: int, kind: str) -> None:
        head, self.tail = around(block, kind)
        seam = self.tail[:-1] + b',"p":"'
        self.tails = [self.tail] * 256
        """By the last letter of a padding, which tells its length: all that stands behind the text."""
        for place, letter in enumerate(_ALPHABET):
            self.tails[letter] = seam + _ALPHABET[: place + 1] + b'"}'
        self.unpadded = seam + b'"}'
        self.opening = _DELTA_HEADERS + head
        start = _PRELUDE_BYTES + len(self.opening)
        self.before, self.rest = slice(start), slice(start, -_CRC_BYTES)
        self.known: dict[int, tuple[bytes, int]] = {}
        """Length of a frame -> all that stands before its text, and the CRC of that."""


_flow_of = lru_cache(maxsize=32)(_Flow)


class Fragments(Ring):
    """Frames that say more of the block that flows, spelled as this API spells it. All others are read in full."""

    def __init__(self) -> None:
        super().__init__()
        self._flow: _Flow | None = None

    def flow(self, block: int, part: int, kind: str) -> None:
        self._flow = _flow_of(block, kind)
        self.last.index = part

    def clear(self) -> None:
        self._flow = None

    def read(self, data: bytes) -> str | None:
        flow = self._flow
        if flow is None:
            return None
        size = len(data)
        known = flow.known.get(size)
        if known is None:
            known = _learn(flow, data)
            if known is None:
                return None
        start, checked = known
        rest = data[flow.rest]
        passed = self.passed + size
        if data[flow.before] != start or crc32(rest, checked) != _read_crc(data, _LAST)[0] or passed > self.room:
            return None
        # What does not end so is no string either.
        said = rest.removesuffix(flow.tails[data[_LAST_LETTER]])
        try:
            text: str | None = read_string(said)
        except (msgspec.DecodeError, UnicodeDecodeError):
            text = _without_letters(flow, rest)
        if not text:
            return None
        self.passed = passed
        return text


def _without_letters(flow: _Flow, rest: bytes) -> str | None:
    """The text of a payload whose padding is there, and empty."""
    try:
        return read_string(rest.removesuffix(flow.unpadded))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _learn(flow: _Flow, data: bytes) -> tuple[bytes, int] | None:
    """From a frame of a new length."""
    if not data.startswith(flow.opening, _PRELUDE_BYTES):
        return None
    length, header_bytes, crc = _PRELUDE.unpack_from(data)
    start = data[flow.before]
    if (
        length != len(data)
        or length < len(start) + _CRC_BYTES
        or header_bytes != len(_DELTA_HEADERS)
        or crc32(data[: _PRELUDE_BYTES - _CRC_BYTES]) != crc
    ):
        return None
    if len(flow.known) >= _MOST_LENGTHS:
        flow.known.clear()
    known = flow.known[length] = (start, crc32(start))
    return known
