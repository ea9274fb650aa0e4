"""Call ids where a wire gives none: functions of position, recognisable, legal for every target (law 4)."""

from __future__ import annotations

import hashlib

INVENTED_PREFIX = "dgm_"


def invent_id(seed: object, index: int) -> str:
    """The id of the `index`-th call of whatever `seed` names (an answer's own id, a message's place)."""
    return f"{INVENTED_PREFIX}{hashlib.blake2s(str(seed).encode(), digest_size=6).hexdigest()}_{index}"


def seed_of_bytes(body: bytes) -> str:
    """A seed for an answer without an id of its own. Short, because every id that is made of it reads it whole."""
    return hashlib.blake2s(body, digest_size=12).hexdigest()


def is_invented(call_id: str) -> bool:
    """Whether we made this id, now or in an earlier turn that a client echoes back."""
    return call_id.startswith(INVENTED_PREFIX)
