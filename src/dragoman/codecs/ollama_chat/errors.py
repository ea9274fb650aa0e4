"""Errors of /api/chat, both ways: {"error": "…"}, and a status."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, Raw

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.failures import kind_of_status, retry_after_of, retry_headers, status_of_kind
from dragoman.codecs.ollama_chat.profile import FAMILY
from dragoman.codecs.ollama_chat.wire import ErrorResponse
from dragoman.codecs.reading import WireReader, check_text, spliced
from dragoman.errors import DecodeError
from dragoman.ir import Failure
from dragoman.ir.notes import Extra
from dragoman.ir.values import compact_text, exact_object, parse_json

SOURCE = "ollama-chat error"

_reader = WireReader(ErrorResponse, SOURCE)


def decode_error(body: bytes, status: int | None = None, headers: Mapping[str, str] | None = None) -> Failure:
    check_text(body, SOURCE)
    notes: Extra
    try:
        wire = _reader.read(body)
        message = wire.error
        notes = {} if wire.extra is UNSET else wire.extra
    except DecodeError:
        parsed = exact_object(body)
        if parsed is None:
            raise
        message, notes = _message_text(parsed), {"~body": parsed}
    return Failure(
        kind_of_status(status),
        message,
        status,
        retry_after=retry_after_of(headers or {}),
        metadata={FAMILY: notes},
    )


def _message_text(raw: Raw) -> str:
    """Return the message in an error object: proxies, and the server's other endpoints, nest it."""
    body = parse_json(raw)
    error = body.get("error", body)
    message = error.get("message") if isinstance(error, dict) else None
    return message if isinstance(message, str) else compact_text(raw)


def encode_error(failure: Failure) -> Encoded:
    notes: Extra = (failure.metadata or {}).get(FAMILY, {})
    headers = retry_headers(failure.retry_after)
    body = notes["~body"] if "~body" in notes else spliced(ErrorResponse(failure.message), notes)
    return Encoded(bytes(body), (), "", headers, failure.status or status_of_kind(failure.kind))
