"""Responses errors, both ways.

A refused request is answered with the error body of all OpenAI APIs. Only the error within an answer or a stream is
different here: `response.error`, with its own codes.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from dragoman.codecs.error_bodies import ErrorBodies
from dragoman.codecs.failures import CONTEXT_LENGTH_EXCEEDED, exceeds_context, kind_of_status
from dragoman.codecs.openai_responses.profile import FAMILY
from dragoman.ir import Failure, FailureKind
from dragoman.ir.values import compact_text, parse_json

_bodies = ErrorBodies(FAMILY, "openai-responses error")

_KIND_OF_CODE: dict[str, FailureKind] = {
    "server_error": "server",
    "rate_limit_exceeded": "rate_limit",
    "usage_limit_reached": "rate_limit",  # of a ChatGPT plan
    "insufficient_quota": "billing",
    "invalid_prompt": "invalid_request",
    CONTEXT_LENGTH_EXCEEDED: "invalid_request",
    "model_not_found": "not_found",
    "previous_response_not_found": "not_found",
    "vector_store_timeout": "timeout",
    "data_residency_mismatch": "permission",
    "bio_policy": "permission",
    "misalignment_policy_violation": "permission",
    "image_file_not_found": "not_found",
    "image_file_too_large": "too_large",
    "image_too_large": "too_large",
    "invalid_request_error": "invalid_request",
    "rate_limit_error": "rate_limit",
    "authentication_error": "authentication",
}
_CODE_OF_KIND: dict[FailureKind, str] = {
    "rate_limit": "rate_limit_exceeded",
    "billing": "insufficient_quota",
    "invalid_request": "invalid_prompt",
    "too_large": "invalid_prompt",
    "not_found": "invalid_prompt",
}


class _ErrorWire(Struct, frozen=True, gc=False):
    code: str | int | None = None
    message: str | None = None
    param: str | None = None
    type: str | None = None
    status: int | None = None


_errors = msgspec.json.Decoder(_ErrorWire)


decode_error = _bodies.decode
encode_error = _bodies.encode


def decode_failure(raw: Raw, status: int | None = None) -> Failure:
    """Decode the error of a failed answer or of an `error` event: one shape, flat or nested."""
    try:
        wire = _errors.decode(raw)
    except msgspec.ValidationError:
        found = parse_json(raw)
        message = found if isinstance(found, str) else compact_text(raw)
        return Failure("server", message, status, metadata={FAMILY: {"~error": raw}})
    code = None if wire.code is None else str(wire.code)
    raw_type = None if wire.type in {None, "error"} else wire.type
    status = wire.status or status or _status_in(code)
    kind = _KIND_OF_CODE.get(code or "") or _KIND_OF_CODE.get(raw_type or "") or _by_word(code, status)
    return Failure(
        kind,
        wire.message or "",
        status,
        code,
        wire.param,
        raw_type=raw_type,
        metadata={FAMILY: {"~error": raw}},
    )


def _status_in(code: str | None) -> int | None:
    """Return the HTTP status that compatible servers give as the code of an error in a stream."""
    return int(code) if code is not None and code in _STATUSES else None


_STATUSES = frozenset(map(str, range(400, 600)))


def _by_word(code: str | None, status: int | None) -> FailureKind:
    if status is None and code is not None and ("image" in code or code.startswith("invalid")):
        return "invalid_request"
    return kind_of_status(status)


def encode_failure(failure: Failure) -> dict[str, Any]:
    """Return `response.error`: one of this API's codes, and the message."""
    native = FAMILY in (failure.metadata or {})
    code = failure.code if native else CONTEXT_LENGTH_EXCEEDED if exceeds_context(failure) else None
    code = code or _CODE_OF_KIND.get(failure.kind, "server_error")
    return {"code": code, "message": failure.message}
