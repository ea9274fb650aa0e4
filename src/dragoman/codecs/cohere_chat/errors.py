"""Errors of chat v2, both ways: {"id", "message", "error_type"}, flat, and a status."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, Raw

from dragoman.codecs.cohere_chat.profile import FAMILY
from dragoman.codecs.cohere_chat.wire import ErrorResponse
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.failures import (
    CONTEXT_LENGTH_EXCEEDED,
    exceeds_context,
    kind_of_status,
    retry_after_of,
    retry_headers,
    status_of_kind,
)
from dragoman.codecs.reading import WireReader, check_text, spliced
from dragoman.errors import DecodeError
from dragoman.ir import Failure
from dragoman.ir.notes import Extra
from dragoman.ir.values import compact_text, exact_object, parse_json

SOURCE = "cohere-chat error"

_reader = WireReader(ErrorResponse, SOURCE)

TOO_MANY_TOKENS = "TOO_MANY_TOKENS"
_TOO_LONG = "too many tokens:"
_BLOCKED = 498


def decode_error(body: bytes, status: int | None = None, headers: Mapping[str, str] | None = None) -> Failure:
    check_text(body, SOURCE)
    notes: Extra
    error_type = error_id = None
    try:
        wire = _reader.read(body)
        message, error_id, error_type = wire.message, wire.id, wire.error_type
        notes = {} if wire.extra is UNSET else wire.extra
    except DecodeError:
        parsed = exact_object(body)
        if parsed is None:
            raise
        message, notes = _message_in(parsed), {"~body": parsed}
    return Failure(
        # 498 means a blocked word, not an expired token.
        "invalid_request" if status == _BLOCKED else kind_of_status(status),
        message,
        status,
        CONTEXT_LENGTH_EXCEEDED if error_type == TOO_MANY_TOKENS or message.startswith(_TOO_LONG) else None,
        retry_after=retry_after_of(headers or {}),
        request_id=error_id,
        raw_type=error_type,
        metadata={FAMILY: notes},
    )


def _message_in(raw: Raw) -> str:
    """Return the message in an error object: proxies nest it."""
    body = parse_json(raw)
    error = body.get("error", body)
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else compact_text(raw)


def encode_error(failure: Failure) -> Encoded:
    notes: Extra | None = (failure.metadata or {}).get(FAMILY)
    headers = retry_headers(failure.retry_after)
    error_type = TOO_MANY_TOKENS if exceeds_context(failure) else None
    if notes is not None:
        error_type = failure.raw_type
    status = failure.status or status_of_kind(failure.kind)
    if notes is not None and "~body" in notes:
        return Encoded(bytes(notes["~body"]), (), "", headers, status)
    body = spliced(ErrorResponse(failure.message, failure.request_id, error_type), notes or {})
    return Encoded(bytes(body), (), "", headers, status)
