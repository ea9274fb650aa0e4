"""generateContent errors, both ways: all Google APIs share one error format."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.gemini.profile import FAMILY
from dragoman.codecs.google_errors import StatusErrors
from dragoman.ir import Failure

_errors = StatusErrors(FAMILY, "gemini/vertex error")


def decode_error(body: bytes, status: int | None = None, headers: Mapping[str, str] | None = None) -> Failure:
    return _errors.decode(body, status, headers)


def encode_error(failure: Failure) -> Encoded:
    return _errors.encode(failure)
