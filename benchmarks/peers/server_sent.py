"""Server-sent events for libraries whose chunks are JSON values: one `data:` line each, parsed with orjson."""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

Json = dict[str, Any]


def read(chunks: Iterable[bytes]) -> Iterator[Json]:
    for chunk in chunks:
        _, _, payload = chunk.partition(b"data: ")
        if not payload.startswith(b"[DONE]"):
            yield orjson.loads(payload)


def event(payload: bytes, name: str | None = None) -> bytes:
    """One event; only Anthropic names its events."""
    named = b"" if name is None else b"event: " + name.encode() + b"\n"
    return named + b"data: " + payload + b"\n\n"
