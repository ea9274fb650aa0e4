"""The error body of OpenAI's APIs and of compatible servers, both ways.

One shape for several formats; each keeps its further keys under the name of its own family.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType, structs

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.failures import code_of, kind_of_status, retry_after_of, retry_headers, status_of_kind
from dragoman.codecs.reading import MALFORMED, WireReader, check_text, keep, spliced
from dragoman.codecs.wire_values import Wire
from dragoman.errors import DecodeError
from dragoman.ir import Failure, FailureKind
from dragoman.ir.notes import Extra, family_notes, inner_extra
from dragoman.ir.values import compact_text, encode_json, exact_object, parse_json


class ErrorBody(Wire, frozen=True):
    message: str | UnsetType = UNSET
    type: str | None | UnsetType = UNSET
    param: str | None | UnsetType = UNSET
    # Groq, OpenRouter and vLLM send a number.
    code: str | int | None | UnsetType = UNSET


class ErrorResponse(Wire, frozen=True):
    # Mistral and some gateways omit the envelope.
    error: ErrorBody | str | UnsetType = UNSET


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
    "usage_limit_reached": "rate_limit",  # of a ChatGPT plan
    "tokens": "rate_limit",
    "requests": "rate_limit",
    "model_not_found": "not_found",
    "invalid_api_key": "authentication",
    "authentication_error": "authentication",
    "server_error": "server",
}


_KIND_OF_BASE_RESP: dict[int, FailureKind] = {
    1001: "timeout",
    1002: "rate_limit",
    1004: "authentication",
    1008: "billing",
    1026: "invalid_request",
    1027: "invalid_request",
    1039: "rate_limit",
    1041: "rate_limit",
    1042: "invalid_request",
    2013: "invalid_request",
    2045: "rate_limit",
    2049: "authentication",
    2056: "rate_limit",
}
"""MiniMax's codes; all others are faults of its servers."""
BASE_RESP = "base_resp"


def base_resp_code(value: Any) -> int:
    """Return the code of MiniMax's `base_resp`: its errors have status 200. 0 is success."""
    code = value.get("status_code") if isinstance(value, Mapping) else None
    return code if type(code) is int else 0


def holds_error(answer: Mapping[str, Any]) -> bool:
    """Whether an answer with a success status states an error (`"error": null` is none)."""
    return bool(answer.get("error")) or base_resp_code(answer.get(BASE_RESP)) != 0


class ErrorBodies:
    """The error bodies of one format."""

    def __init__(self, family: str, source: str) -> None:
        self._family = family
        self._source = source
        self._reader = WireReader(ErrorResponse, source)
        self._bare_reader = WireReader(ErrorBody, source)

    def decode(self, body: bytes, status: int | None = None, headers: Mapping[str, str] | None = None) -> Failure:
        check_text(body, self._source)
        if body[:1] == b"[" and (only := _only_item(body)) is not None:
            failure = self.decode(bytes(only), status, headers)
            notes = family_notes(self._family, failure.metadata)
            return structs.replace(failure, metadata={self._family: {**notes, _LISTED: Raw(b"true")}})
        try:
            wire = self._reader.read(body)
            if wire.error is UNSET:
                bare = self._bare_reader.read(body)
                extra = (keep(self._family, bare.extra) or {self._family: {}})[self._family]
                return self._failure(bare, extra | {"~bare": Raw(b"true")}, status, headers or {})
        except DecodeError:
            parsed = exact_object(body)
            if parsed is None:
                raise
            return self._unknown_failure(parsed, status, headers or {})
        error = wire.error if isinstance(wire.error, ErrorBody) else ErrorBody(wire.error)
        extra = (keep(self._family, wire.extra, error=error.extra) or {self._family: {}})[self._family]
        if isinstance(wire.error, str):
            extra["~string"] = Raw(b"true")
        return self._failure(error, extra, status, headers or {})

    def _failure(self, error: ErrorBody, extra: Extra, status: int | None, headers: Mapping[str, str]) -> Failure:
        code = None if error.code is UNSET or error.code is None else str(error.code)
        kind: FailureKind | None = None
        if BASE_RESP in extra and (number := base_resp_code(parse_json(extra[BASE_RESP]))):
            code, kind = code or str(number), _KIND_OF_BASE_RESP.get(number, "server")
        raw_type = error.type if isinstance(error.type, str) else None
        notes: Extra = {"~code": Raw(encode_json(error.code))} if isinstance(error.code, int) else {}
        for key in ("message", "type", "param", "code"):
            if getattr(error, key) is UNSET:
                notes["~absent:" + key] = Raw(b"true")
        return Failure(
            kind
            or _KIND_OF_WORD.get(code or "")
            or _KIND_OF_WORD.get(raw_type or "")
            or kind_of_status(_status(status, error)),
            _message_elsewhere(extra) if error.message is UNSET else error.message,
            _status(status, error),
            code,
            error.param if isinstance(error.param, str) else None,
            retry_after_of(headers),
            headers.get("x-request-id"),
            raw_type,
            metadata={self._family: notes | extra},
        )

    def _unknown_failure(self, raw: Raw, status: int | None, headers: Mapping[str, str]) -> Failure:
        """Return the failure for an object of unknown shape: its text is the message."""
        return Failure(
            kind_of_status(status),
            _message_text(raw),
            status,
            retry_after=retry_after_of(headers),
            request_id=headers.get("x-request-id"),
            metadata={self._family: {"~body": raw}},
        )

    def encode(self, failure: Failure) -> Encoded:
        notes = family_notes(self._family, failure.metadata)
        if _LISTED in notes:
            notes = {key: value for key, value in notes.items() if key != _LISTED}
            alone = self.encode(structs.replace(failure, metadata={self._family: notes}))
            return Encoded(b"[" + alone.content + b"]", (), "", alone.headers, alone.status)
        status = failure.status or status_of_kind(failure.kind)
        headers = {} if failure.request_id is None else {"x-request-id": failure.request_id}
        headers |= retry_headers(failure.retry_after)
        if "~body" in notes:
            return Encoded(bytes(notes["~body"]), (), "", headers, status)
        if "~string" in notes:
            return Encoded(bytes(spliced(ErrorResponse(failure.message), notes)), (), "", headers, status)
        native = self._family in (failure.metadata or {})
        body: dict[str, Any] = {
            "message": failure.message,
            "type": failure.raw_type if native else _TYPE_OF[failure.kind],
            "param": failure.parameter,
            "code": notes.get("~code", failure.code) if native else code_of(failure),
        }
        for key in list(body):
            if "~absent:" + key in notes:
                del body[key]
        if "~bare" in notes:
            return Encoded(bytes(spliced(Raw(encode_json(body)), notes)), (), "", headers, status)
        inner = spliced(Raw(encode_json(body)), inner_extra(notes, "error") or {})
        return Encoded(bytes(spliced(ErrorResponse(inner), notes)), (), "", headers, status)  # type: ignore[arg-type]


_LISTED = "~listed"
"""Note: the body was a list with one object, as Gemini's endpoint of this format answers."""
_items = msgspec.json.Decoder(list[Raw]).decode


def _only_item(body: bytes) -> Raw | None:
    try:
        items = _items(body)
    except MALFORMED:
        return None
    return items[0] if len(items) == 1 and bytes(items[0])[:1] == b"{" else None


def _message_elsewhere(extra: Extra) -> str:
    """Return the message of a body of another shape: FastAPI's, Baidu's, MiniMax's, Cloudflare's."""
    for key in ("detail", "msg", "error_msg"):
        if key in extra:
            return _message_text(extra[key])
    answer, errors = (parse_json(extra[key]) if key in extra else None for key in (BASE_RESP, "errors"))
    message = answer.get("status_msg") or f"status code {base_resp_code(answer)}" if isinstance(answer, dict) else None
    if isinstance(errors, list) and errors and isinstance(errors[0], dict):
        message = errors[0].get("message")
    return message if isinstance(message, str) else ""


def _message_text(raw: Raw) -> str:
    value = parse_json(raw)
    return value if isinstance(value, str) else compact_text(raw)


def _status(status: int | None, error: ErrorBody) -> int | None:
    # OpenRouter and vLLM repeat the HTTP status as the code.
    if status is None and isinstance(error.code, int) and 400 <= error.code <= 599:  # noqa: PLR2004
        return error.code
    return status
