"""Converse errors, both ways. The class is in a header; the body has little more than a message."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, Raw

from dragoman.codecs.bedrock_converse.profile import FAMILY
from dragoman.codecs.bedrock_converse.wire import ErrorResponse
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.failures import kind_of_status, message_of, retry_after_of, retry_headers
from dragoman.codecs.reading import WireReader, spliced
from dragoman.ir import Failure, FailureKind
from dragoman.ir.notes import Extra
from dragoman.ir.values import encode_json, parse_json

_reader = WireReader(ErrorResponse, "bedrock-converse error")

ERROR_TYPE = "x-amzn-errortype"
REQUEST_ID = "x-amzn-requestid"
_FIRST_ERROR_STATUS = 400
_WRAPPING = "The model returned the following errors: "
"""Prefix of an error message from the vendor behind this API."""

_EXCEPTIONS: tuple[tuple[FailureKind, str, int], ...] = (
    ("invalid_request", "ValidationException", 400),
    ("authentication", "UnrecognizedClientException", 403),
    ("billing", "ServiceQuotaExceededException", 400),
    ("permission", "AccessDeniedException", 403),
    ("not_found", "ResourceNotFoundException", 404),
    ("conflict", "ConflictException", 400),
    ("too_large", "ValidationException", 400),
    ("rate_limit", "ThrottlingException", 429),
    ("server", "InternalServerException", 500),
    ("overloaded", "ServiceUnavailableException", 503),
    ("timeout", "ModelTimeoutException", 408),
    ("cancelled", "ModelErrorException", 424),
    ("truncated", "ModelStreamErrorException", 424),
)
_OF_KIND: dict[FailureKind, tuple[str, int]] = {kind: (name, status) for kind, name, status in _EXCEPTIONS}
_KIND_OF_EXCEPTION: dict[str, FailureKind] = {
    "ValidationException": "invalid_request",
    "UnrecognizedClientException": "authentication",
    "InvalidSignatureException": "authentication",
    "ExpiredTokenException": "authentication",
    "MissingAuthenticationTokenException": "authentication",
    "AccessDeniedException": "permission",
    "ResourceNotFoundException": "not_found",
    "ConflictException": "conflict",
    "ServiceQuotaExceededException": "rate_limit",
    "ThrottlingException": "rate_limit",
    "ModelNotReadyException": "rate_limit",
    "TooManyRequestsException": "rate_limit",
    "InternalServerException": "server",
    "InternalFailure": "server",
    "ModelErrorException": "server",
    "ModelStreamErrorException": "server",
    "ModelTimeoutException": "timeout",
    "ServiceUnavailableException": "overloaded",
}
STREAM_EXCEPTIONS: dict[FailureKind, str] = {
    "invalid_request": "validationException",
    "too_large": "validationException",
    "rate_limit": "throttlingException",
    "overloaded": "serviceUnavailableException",
    "server": "internalServerException",
}
"""The five exceptions that a stream can end in; everything else is an error of the model's stream."""
STREAM_ERROR = "modelStreamErrorException"


def kind_of_exception(name: str) -> FailureKind | None:
    """Return the failure kind of an exception name, with a capital (HTTP) or without one (stream)."""
    return _KIND_OF_EXCEPTION.get(name[:1].upper() + name[1:])


def decode_error(body: bytes, status: int | None = None, headers: Mapping[str, str] | None = None) -> Failure:
    wire = _reader.read(body)
    given = headers or {}
    notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    known = status if status is not None and status >= _FIRST_ERROR_STATUS else None
    raw_type = _exception(given, notes)
    kind = (None if raw_type is None else kind_of_exception(raw_type)) or kind_of_status(known)
    if wire.original_status_code is not UNSET:
        notes["originalStatusCode"] = Raw(encode_json(wire.original_status_code))
        kind = kind_of_status(wire.original_status_code) if kind == "server" else kind
    if wire.original_message is not UNSET:
        notes["originalMessage"] = Raw(encode_json(wire.original_message))
    message = _message(wire, notes)
    retry_after, request_id = retry_after_of(given), given.get(REQUEST_ID)
    if known is None and raw_type is not None:
        known = _OF_KIND[kind][1]
    return Failure(kind, message, known, None, None, retry_after, request_id, raw_type, metadata={FAMILY: notes})


def _exception(headers: Mapping[str, str], notes: Extra) -> str | None:
    """Return the exception name from the header (without ":" and a URL) or the body (without its namespace)."""
    word: object = headers.get(ERROR_TYPE)
    for key in ("__type", "code"):
        if word is None and key in notes:
            word = parse_json(notes[key])
    return word.split(":")[0].rpartition("#")[2] if isinstance(word, str) and word else None


def _message(wire: ErrorResponse, notes: Extra) -> str:
    """Return the message without the prefix of a vendor's error; some gateways write `Message`."""
    if wire.message is UNSET:
        notes["~message"] = Raw(b'"absent"')
        capital = parse_json(notes["Message"]) if "Message" in notes else None
        text = capital if isinstance(capital, str) else ""
    else:
        text = wire.message
    if text.startswith(_WRAPPING):
        notes["~wrapped"] = Raw(b"true")
    return text.removeprefix(_WRAPPING)


def encode_error(failure: Failure) -> Encoded:
    notes = (failure.metadata or {}).get(FAMILY)
    name, status = _OF_KIND[failure.kind]
    headers = {ERROR_TYPE: failure.raw_type if notes is not None and failure.raw_type else name}
    if failure.request_id is not None:
        headers[REQUEST_ID] = failure.request_id
    headers |= retry_headers(failure.retry_after)
    if notes is None:
        message = message_of(failure, "Input is too long for requested model")
        return Encoded(encode_json(ErrorResponse(message)), (), "", headers, status)
    return Encoded(_encode_body(failure, notes), (), "", headers, failure.status or status)


def _encode_body(failure: Failure, notes: Extra) -> bytes:
    text = (_WRAPPING if "~wrapped" in notes else "") + failure.message
    return bytes(spliced(ErrorResponse(UNSET if "~message" in notes else text), notes))
