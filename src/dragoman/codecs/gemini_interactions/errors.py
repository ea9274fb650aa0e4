"""Interactions errors, both ways.

A refused request is answered with google.rpc.Status, where the request asked for a stream perhaps as one SSE event.
Inside streams and answers an error is `{code, message}` with a word for its code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Raw
from msgspec.structs import replace

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.gemini_interactions.profile import FAMILY
from dragoman.codecs.google_errors import StatusErrors
from dragoman.ir import Failure
from dragoman.ir.notes import Extra

_errors = StatusErrors(FAMILY, "gemini-interactions error")
_FRAMED = re.compile(rb"\s*(?:event:[^\n]*\r?\n)?data:[ ]?(?P<body>\{[^\n]*\})\s*")
FRAMED = "~framed"
"""Note: the body was an SSE event."""


def decode_error(body: bytes, status: int | None = None, headers: Mapping[str, str] | None = None) -> Failure:
    framed = None if body.lstrip()[:1] == b"{" else _FRAMED.fullmatch(body)
    if framed is None:
        return _errors.decode(body, status, headers)
    failure = _errors.decode(framed["body"], status, headers)
    notes: Extra = {**(failure.metadata or {}).get(FAMILY, {}), FRAMED: Raw(b"true")}
    return replace(failure, metadata={FAMILY: notes})


def encode_error(failure: Failure) -> Encoded:
    encoded = _errors.encode(failure)
    if FRAMED not in (failure.metadata or {}).get(FAMILY, {}):
        return encoded
    return Encoded(b"event: error\ndata: " + encoded.content + b"\n\n", status=encoded.status)
