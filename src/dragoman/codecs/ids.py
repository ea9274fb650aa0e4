"""Invented call ids for wires that give none: made from the position, recognisable, legal for all targets (law 4)."""

from __future__ import annotations

import hashlib

INVENTED_PREFIX = "dgm_"


def invent_id(seed: object, index: int) -> str:
    """Return the id of the `index`-th call of what `seed` names (an answer's own id, a message's position)."""
    return f"{INVENTED_PREFIX}{hashlib.blake2s(str(seed).encode(), digest_size=6).hexdigest()}_{index}"


def seed_of_bytes(body: bytes) -> str:
    """Return a seed for an answer without an id. It is short, because every id made from it hashes it."""
    return hashlib.blake2s(body, digest_size=12).hexdigest()


def is_invented(call_id: str) -> bool:
    """Whether we made this id, now or in an earlier turn that a client echoes back."""
    return call_id.startswith(INVENTED_PREFIX)
