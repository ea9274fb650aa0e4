"""Finds ids that occur twice among many, in eight bytes of memory per id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b

from msgspec import Struct

_BYTES = 8


class RepeatedIds(Struct, frozen=True):
    """How many ids occurred before, and the position (from 1) of the first of them."""

    count: int = 0
    first: int = 0


def id_digest(item_id: str) -> bytes:
    return blake2b(item_id.encode(errors="surrogatepass"), digest_size=_BYTES).digest()


def repeated_ids(digests: Iterable[bytes]) -> RepeatedIds:
    """Return which ids occurred before, given pieces of digests in the order of the ids."""
    held = b"".join(digests)
    buckets = [bytearray() for _ in range(256)]  # one set of all digests would take ten times the memory
    for digest in _split(held):
        buckets[digest[0]] += digest
    count = sum(len(bucket) // _BYTES - len(set(_split(bytes(bucket)))) for bucket in buckets)
    return RepeatedIds(count, _first_repeated(held)) if count else RepeatedIds()


def _first_repeated(held: bytes) -> int:
    seen = set[bytes]()
    for position, digest in enumerate(_split(held), 1):
        if digest in seen:
            return position
        seen.add(digest)
    return 0


def _split(held: bytes) -> Iterator[bytes]:
    return (held[start : start + _BYTES] for start in range(0, len(held), _BYTES))
