"""AWS event-stream frames, as they come and go by the thousand.

Reading them in full is the business of `AwsEventStream`, in the framing of all formats. What stands before the payload,
lengths and their CRC and headers, is the same for all frames of a type and a length: it is looked at once for each.
"""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

from dragoman.codecs.framing import aws_frame, aws_headers

_PRELUDE_BYTES = 12
_CRC_BYTES = 4
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
