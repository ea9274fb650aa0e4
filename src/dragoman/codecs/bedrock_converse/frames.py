"""AWS event-stream frames, the fast path.

`AwsEventStream`, in the framing of all formats, reads them in full. Everything before the payload (lengths, their
CRC, headers) is the same for all frames of one type and length, so it is computed once for each.
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
    """Return the bytes before and after a fragment of a block of this kind."""
    head, tail = _AROUND[kind]
    return b'{"contentBlockIndex":%d,"delta":%b' % (block, head), tail


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


def frame_writer(headers: bytes) -> Callable[[bytes], bytes]:
    """Return a function that puts payloads into frames with these headers."""
    known: dict[int, tuple[bytes, int]] = {}  # payload length -> the bytes before it, and their CRC

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
