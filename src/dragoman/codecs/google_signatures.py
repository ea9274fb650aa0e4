"""Signatures that Google mints, on parts of generateContent and on thoughts of Interactions."""

from __future__ import annotations

import binascii

from msgspec import Raw

from dragoman.ir import Metadata, Reasoning

GOOGLE = "google"
"""The family that mints and reads them."""

PLACEHOLDER = "skip_thought_signature_validator"
"""Documented placeholder for a missing signature. It happens to be valid base64, so it is sent as it is."""


def _spellings(word: str) -> set[str]:
    encoded = binascii.b2a_base64(word.encode(), newline=False).decode()
    return {word, encoded, encoded.rstrip("=")}


_DUMMIES = frozenset(_spellings(PLACEHOLDER) | _spellings("context_engineering_is_the_way_to_go"))
_LONGEST_DUMMY = max(len(word) for word in _DUMMIES)


def is_dummy(signature: str) -> bool:
    """Whether this is a placeholder for a signature that never existed."""
    return len(signature) <= _LONGEST_DUMMY and (not signature or signature in _DUMMIES)


THOUGHT = "~thought"
NATIVE_THOUGHT: Metadata = {GOOGLE: {THOUGHT: Raw(b"true")}}
"""On a thought without signature: its text alone does not show that it is Google's."""


def is_native_thought(part: Reasoning) -> bool:
    """Whether Google wrote this reasoning."""
    if part.signature is not None:
        return part.signature.family == GOOGLE
    return THOUGHT in (part.metadata or {}).get(GOOGLE, {})
