"""Chat Completions errors, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Raw

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.failures import kind_of_status, retry_after_of, status_of_kind
from dragoman.codecs.openai_chat.wire import ErrorBody, ErrorResponse
from dragoman.codecs.reading import WireReader, keep, spliced
from dragoman.ir import Failure, FailureKind
from dragoman.ir.notes import Extra, inner_extra
from dragoman.ir.values import encode_json

FAMILY = "openai"

_reader = WireReader(ErrorResponse, "openai-chat error")

_TYPE_OF: dict[FailureKind, str] = {
    "invalid_request": "invalid_request_error",
    "authentication": "invalid_request_error",
    "billing": "insufficient_quota",
    "permission": "invalid_request_error",
    "not_found": "invalid_request_error",
    "conflict": "invalid_request_error",
    "too_large": "invalid_request_error",
    "rate_limit": "rate_limit_error",
    "server": "server_error",
    "overloaded": "server_error",
    "timeout": "server_error",
    "cancelled": "invalid_request_error",
    "truncated": "server_error",
}
_KIND_OF_WORD: dict[str, FailureKind] = {
    "insufficient_quota": "billing",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "tokens": "rate_limit",
    "requests": "rate_limit",
    "model_not_found": "not_found",
    "invalid_api_key": "authentication",
    "authentication_error": "authentication",
    "server_error": "server",
}


def decode_error(body: bytes, status: int | None = None, headers: Mapping[str, str] | None = None) -> Failure:
    wire = _reader.read(body)
    error = wire.error if isinstance(wire.error, ErrorBody) else ErrorBody(wire.error)
    code = None if error.code is UNSET or error.code is None else str(error.code)
    raw_type = error.type if isinstance(error.type, str) else None
    extra: Extra = {"~code": Raw(encode_json(error.code))} if isinstance(error.code, int) else {}
    for key in ("message", "type", "param", "code"):
        if getattr(error, key) is UNSET:
            extra["~absent:" + key] = Raw(b"true")
    if isinstance(wire.error, str):
        extra["~string"] = Raw(b"true")
    extra |= (keep(FAMILY, wire.extra, error=error.extra) or {FAMILY: {}})[FAMILY]
    given = headers or {}
    return Failure(
        _KIND_OF_WORD.get(code or "") or _KIND_OF_WORD.get(raw_type or "") or kind_of_status(_status(status, error)),
        "" if error.message is UNSET else error.message,
        _status(status, error),
        code,
        error.param if isinstance(error.param, str) else None,
        retry_after_of(given),
        given.get("x-request-id"),
        raw_type,
        metadata={FAMILY: extra},
    )


def _status(status: int | None, error: ErrorBody) -> int | None:
    # OpenRouter and vLLM repeat the HTTP status as the code.
    if status is None and isinstance(error.code, int) and 400 <= error.code <= 599:  # noqa: PLR2004
        return error.code
    return status


def encode_error(failure: Failure) -> Encoded:
    notes = (failure.metadata or {}).get(FAMILY, {})
    status = failure.status or status_of_kind(failure.kind)
    headers = {} if failure.request_id is None else {"x-request-id": failure.request_id}
    if failure.retry_after is not None:
        headers["retry-after"] = f"{failure.retry_after:g}"
    if "~string" in notes:
        return Encoded(bytes(spliced(ErrorResponse(failure.message), notes)), (), "", headers, status)
    native = FAMILY in (failure.metadata or {})
    body: dict[str, Any] = {
        "message": failure.message,
        "type": failure.raw_type if native else _TYPE_OF[failure.kind],
        "param": failure.parameter,
        "code": notes.get("~code", failure.code),
    }
    for key in list(body):
        if "~absent:" + key in notes:
            del body[key]
    inner = spliced(Raw(encode_json(body)), inner_extra(notes, "error") or {})
    return Encoded(bytes(spliced(ErrorResponse(inner), notes)), (), "", headers, status)  # type: ignore[arg-type]
