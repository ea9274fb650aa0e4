"""Messages errors, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.anthropic_messages.caching import FAMILY, NULL
from dragoman.codecs.anthropic_messages.wire import ErrorBody, ErrorResponse
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.failures import kind_of_status, message_of, retry_after_of, retry_headers
from dragoman.codecs.reading import WireReader, keep, spliced
from dragoman.ir import Failure, FailureKind
from dragoman.ir.notes import Extra, inner_extra
from dragoman.ir.values import encode_json

_reader = WireReader(ErrorResponse, "anthropic-messages error")
_details = msgspec.json.Decoder(dict[str, Any]).decode

_FIRST_ERROR_STATUS = 400

_TYPES: tuple[tuple[FailureKind, str, int], ...] = (
    ("invalid_request", "invalid_request_error", 400),
    ("authentication", "authentication_error", 401),
    ("billing", "billing_error", 402),
    ("permission", "permission_error", 403),
    ("not_found", "not_found_error", 404),
    ("conflict", "conflict_error", 409),
    ("too_large", "request_too_large", 413),
    ("rate_limit", "rate_limit_error", 429),
    ("server", "api_error", 500),
    ("timeout", "timeout_error", 504),
    ("overloaded", "overloaded_error", 529),
)
_KIND_OF_TYPE: dict[str, FailureKind] = {word: kind for kind, word, _ in _TYPES}
_TYPE_OF_KIND: dict[FailureKind, str] = {kind: word for kind, word, _ in _TYPES} | {
    "cancelled": "api_error",
    "truncated": "api_error",
}
_STATUS_OF_KIND: dict[FailureKind, int] = {kind: status for kind, _, status in _TYPES} | {
    "cancelled": 499,
    "truncated": 502,
}
# The vendor's own SDK turns exceptions that Bedrock sends in the middle of a stream into errors of these types.
_KIND_OF_EXCEPTION: dict[str, FailureKind] = {
    "throttlingException": "rate_limit",
    "validationException": "invalid_request",
    "internalServerException": "server",
    "modelStreamErrorException": "server",
    "modelTimeoutException": "timeout",
    "serviceUnavailableException": "overloaded",
}


def decode_error(body: bytes, status: int | None = None, headers: Mapping[str, str] | None = None) -> Failure:
    wire = _reader.read(body)
    error = wire.error if isinstance(wire.error, ErrorBody) else ErrorBody(message=_bare_message(wire))
    # An error in the middle of a stream arrives under HTTP 200: its type decides.
    known = status if status is not None and status >= _FIRST_ERROR_STATUS else None
    raw_type = None if error.type is UNSET else error.type
    kind = _KIND_OF_TYPE.get(raw_type or "") or _KIND_OF_EXCEPTION.get(raw_type or "") or kind_of_status(known)
    given = headers or {}
    request_id = wire.request_id if isinstance(wire.request_id, str) else given.get("request-id")
    return Failure(
        kind,
        "" if error.message is UNSET else error.message,
        known if known is not None or raw_type is None else _STATUS_OF_KIND[kind],
        _error_code(error.details),
        None,
        retry_after_of(given),
        request_id,
        raw_type,
        None if error.details is UNSET else error.details,
        {FAMILY: _spelling(wire, error)},
    )


def _bare_message(wire: ErrorResponse) -> str | UnsetType:
    return wire.error if isinstance(wire.error, str) else wire.message


def _error_code(details: Raw | UnsetType) -> str | None:
    try:
        code = None if details is UNSET else _details(details).get("error_code")
    except msgspec.ValidationError:
        return None
    return code if isinstance(code, str) else None


def _spelling(wire: ErrorResponse, error: ErrorBody) -> Extra:
    notes = (keep(FAMILY, wire.extra, error=error.extra) or {FAMILY: {}})[FAMILY]
    if not isinstance(wire.error, ErrorBody):
        notes["~shape"] = Raw(b'"message"') if wire.error is UNSET else Raw(b'"string"')
    elif wire.message is not UNSET:
        notes["message"] = Raw(encode_json(wire.message))
    if wire.type is not UNSET and wire.type != "error":
        notes["~type"] = Raw(encode_json(wire.type))
    for key, value in (("type", wire.type), ("request_id", wire.request_id), ("error.message", error.message)):
        if value is UNSET:
            notes["~absent:" + key] = Raw(b"true")
    if wire.request_id is None:
        notes["~request_id"] = NULL
    return notes


def encode_error(failure: Failure) -> Encoded:
    notes = (failure.metadata or {}).get(FAMILY)
    headers = {} if failure.request_id is None else {"request-id": failure.request_id}
    headers |= retry_headers(failure.retry_after)
    if notes is not None:
        status = failure.status or _STATUS_OF_KIND[failure.kind]
        return Encoded(_encode_native(failure, notes), (), "", headers, status)
    # This API has a field for the stable code, inside the details.
    details: Any = UNSET if failure.code is None else {"error_code": failure.code}
    error = ErrorBody(_TYPE_OF_KIND[failure.kind], message_of(failure, "prompt is too long"), details)
    wire = ErrorResponse(error, "error", failure.request_id)
    return Encoded(encode_json(wire), (), "", headers, _STATUS_OF_KIND[failure.kind])


def _encode_native(failure: Failure, notes: Extra) -> bytes:
    message: Any = UNSET if "~absent:error.message" in notes else failure.message
    request_id: Any = None if "~request_id" in notes else failure.request_id
    wire_type: Any = notes.get("~type", "error")
    error: Any = ErrorBody(
        UNSET if failure.raw_type is None else failure.raw_type,
        message,
        UNSET if failure.details is None else failure.details,
    )
    inner = inner_extra(notes, "error")
    shape = bytes(notes["~shape"]) if "~shape" in notes else b""
    wire = ErrorResponse(
        UNSET if shape == b'"message"' else message if shape else error if inner is None else spliced(error, inner),  # type: ignore[arg-type]
        UNSET if "~absent:type" in notes else wire_type,
        UNSET if "~absent:request_id" in notes else request_id,
        message if shape == b'"message"' else UNSET,
    )
    return bytes(spliced(wire, notes))
