"""Interactions errors, both ways: google.rpc.Status for a refused request; `{code, message}` within streams."""

from __future__ import annotations

from dragoman.codecs.gemini_interactions.profile import FAMILY
from dragoman.codecs.google_errors import StatusErrors

_errors = StatusErrors(FAMILY, "gemini-interactions error")


decode_error = _errors.decode
encode_error = _errors.encode
