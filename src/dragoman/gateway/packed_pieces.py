"""Pieces of captured streams, many in one object.

A model sends its answer in hundreds of small pieces. Held one by one, their objects take as much memory as their bytes,
and leave gaps in it when they are freed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from operator import is_
from typing import TypeAlias

from msgspec import Struct

Piece: TypeAlias = tuple[float, bytes, bytes]
"""Seconds since the request came, what the upstream sent then, and what the client was sent because of it."""
PIECES = 64
"""How many pieces are packed at a time."""
HOUSING = 16
"""Bytes that each packed piece takes besides its content: a time, two sizes."""


class PackedPieces(Struct, frozen=True, gc=False):
    """Consecutive pieces: their times, and their bytes and sizes on each side."""

    times: array[float]
    received: bytes
    received_sizes: array[int]
    sent: bytes
    sent_sizes: array[int]

    def __iter__(self) -> Iterator[Piece]:
        received_end = sent_end = 0
        is_same = self.sent is self.received
        for time, received_size, sent_size in zip(self.times, self.received_sizes, self.sent_sizes, strict=True):
            received_start, received_end = received_end, received_end + received_size
            received = self.received[received_start:received_end]
            sent_start, sent_end = sent_end, sent_end + sent_size
            yield time, received, received if is_same else self.sent[sent_start:sent_end]


def pack(pieces: Sequence[Piece]) -> PackedPieces:
    """Pack at least one piece. Each step handles all pieces in one call: this runs while streams are served."""
    times, received, sent = zip(*pieces, strict=True)
    whole, sizes = b"".join(received), array("I", map(len, received))
    if all(map(is_, received, sent)):  # the bytes pass unchanged
        return PackedPieces(array("d", times), whole, sizes, whole, sizes)
    return PackedPieces(array("d", times), whole, sizes, b"".join(sent), array("I", map(len, sent)))
