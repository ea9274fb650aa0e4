"""Chat Completions errors, both ways."""

from __future__ import annotations

from dragoman.codecs.error_bodies import ErrorBodies

FAMILY = "openai"

_bodies = ErrorBodies(FAMILY, "openai-chat error")


decode_error = _bodies.decode
encode_error = _bodies.encode
