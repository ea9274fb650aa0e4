"""Chat Completions errors, both ways."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.error_bodies import ErrorBodies
from dragoman.ir import Failure

FAMILY = "openai"

_bodies = ErrorBodies(FAMILY, "openai-chat error")


def decode_error(body: bytes, status: int | None = None, headers: Mapping[str, str] | None = None) -> Failure:
    return _bodies.decode(body, status, headers)


def encode_error(failure: Failure) -> Encoded:
    return _bodies.encode(failure)
