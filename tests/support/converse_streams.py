"""ConverseStream as tests write it: frames from events, written with the standard library alone.

What we frame is also judged by the vendor's own parser and by `AwsEventStream`; this is a third implementation.
"""

import json
import struct
import zlib
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]


def frame(name: str, payload: bytes, kind: str = "event") -> bytes:
    headers = b""
    for key, value in ((f":{kind}-type", name), (":content-type", "application/json"), (":message-type", kind)):
        headers += bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack(">I", zlib.crc32(message))


def recorded(events: Iterable[str]) -> bytes:
    """The frames whose type and payload a recording has as `event:` and `data:`."""
    data = b""
    for event in events:
        name, _, payload = event.removeprefix("event: ").partition("\ndata: ")
        kind = "exception" if name.endswith("Exception") else "event"
        data += frame(name, payload.removesuffix("\n\n").encode(), kind)
    return data


def stream(*events: tuple[str, Json]) -> bytes:
    return b"".join(
        frame(name, json.dumps(payload).encode(), "exception" if name.endswith("Exception") else "event")
        for name, payload in events
    )


def split(data: bytes) -> list[bytes]:
    """The frames one by one."""
    frames, start = [], 0
    while start < len(data):
        (length,) = struct.unpack_from(">I", data, start)
        frames.append(data[start : start + length])
        start += length
    return frames


def payloads(data: bytes) -> list[tuple[str, Json]]:
    """Type and payload of each frame."""
    found = []
    for one in split(data):
        (headers,) = struct.unpack_from(">I", one, 4)
        start = one[12 : 12 + headers]
        name_length = start[0]
        (length,) = struct.unpack_from(">H", start, name_length + 2)
        name = start[name_length + 4 : name_length + 4 + length].decode()
        found.append((name, json.loads(one[12 + headers : -4])))
    return found


def delta(index: int, **content: Any) -> tuple[str, Json]:
    return "contentBlockDelta", {"contentBlockIndex": index, "delta": content, "p": "abc"}


def start(index: int, **content: Any) -> tuple[str, Json]:
    return "contentBlockStart", {"contentBlockIndex": index, "start": content}


def stop(index: int) -> tuple[str, Json]:
    return "contentBlockStop", {"contentBlockIndex": index}


STARTED: tuple[str, Json] = ("messageStart", {"role": "assistant", "p": "ab"})
USAGE = {"inputTokens": 2, "outputTokens": 5, "totalTokens": 7}


def ended(reason: str = "end_turn", **further: Any) -> list[tuple[str, Json]]:
    metadata = {"usage": USAGE, "metrics": {"latencyMs": 3}, "p": "a", **further}
    return [("messageStop", {"stopReason": reason, "p": "abcd"}), ("metadata", metadata)]
