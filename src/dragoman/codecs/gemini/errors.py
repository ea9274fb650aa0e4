"""generateContent errors, both ways: all Google APIs share one error format."""

from __future__ import annotations

from dragoman.codecs.gemini.profile import FAMILY
from dragoman.codecs.google_errors import StatusErrors

_errors = StatusErrors(FAMILY, "gemini/vertex error")


decode_error = _errors.decode
encode_error = _errors.encode
