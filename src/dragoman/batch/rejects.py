"""Records that were not converted, as they are listed in the reject file."""

from __future__ import annotations

import msgspec
from msgspec import Struct


class Reject(Struct, frozen=True, omit_defaults=True):
    """A record that was not converted: its position and the problem. Never its contents, unless requested."""

    source: str
    line: int
    path: str
    reason: str
    error: str
    record: str | None = None


def encode_rejects(rejects: list[Reject]) -> bytes:
    """Return the rejects as JSON Lines."""
    return b"".join(msgspec.json.encode(reject) + b"\n" for reject in rejects)
