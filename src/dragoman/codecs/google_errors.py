"""google.rpc.Status errors, both ways, for all Google APIs: the HTTP status is the code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, structs

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.failures import kind_of_status, retry_after_of, seconds_of, status_of_kind, write_seconds
from dragoman.codecs.reading import WireReader, keep, spliced
from dragoman.codecs.wire_values import Wire
from dragoman.ir import Failure, FailureKind, Finish
from dragoman.ir.notes import Extra, inner_extra
from dragoman.ir.values import compact_text, encode_json, parse_json


class _Status(Wire, frozen=True):
    code: int | str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    details: Raw | UnsetType = UNSET


class _ErrorResponse(Wire, frozen=True):
    error: _Status | str


KIND_OF_WORD: dict[str, FailureKind] = {
    "INVALID_ARGUMENT": "invalid_request",
    "FAILED_PRECONDITION": "invalid_request",
    "OUT_OF_RANGE": "invalid_request",
    "UNIMPLEMENTED": "invalid_request",
    "UNAUTHENTICATED": "authentication",
    "PERMISSION_DENIED": "permission",
    "NOT_FOUND": "not_found",
    "ALREADY_EXISTS": "conflict",
    "ABORTED": "conflict",
    "RESOURCE_EXHAUSTED": "rate_limit",
    "CANCELLED": "cancelled",
    "INTERNAL": "server",
    "UNKNOWN": "server",
    "DATA_LOSS": "server",
    "UNAVAILABLE": "overloaded",
    "DEADLINE_EXCEEDED": "timeout",
    # Reasons of an ErrorInfo: without them, a bad key is only a 400 INVALID_ARGUMENT.
    "API_KEY_INVALID": "authentication",
    "BILLING_DISABLED": "billing",
}
WORD_OF_KIND: dict[FailureKind, str] = {
    "invalid_request": "INVALID_ARGUMENT",
    "authentication": "UNAUTHENTICATED",
    "billing": "FAILED_PRECONDITION",
    "permission": "PERMISSION_DENIED",
    "not_found": "NOT_FOUND",
    "conflict": "ABORTED",
    "too_large": "INVALID_ARGUMENT",
    "rate_limit": "RESOURCE_EXHAUSTED",
    "server": "INTERNAL",
    "overloaded": "UNAVAILABLE",
    "timeout": "DEADLINE_EXCEEDED",
    "cancelled": "CANCELLED",
    "truncated": "INTERNAL",
}

_EVENT = re.compile(rb"\s*(?:event:[^\n]*\r?\n)?data:[ ]?(?P<body>\{[^\n]*\})\s*")
_AS_EVENT = "~framed"
"""Note: the body was a server-sent event."""
_RPC = "type.googleapis.com/google.rpc."


class _Violation(Struct, frozen=True):
    field: str | None = None


class _Detail(Struct, frozen=True, rename="camel"):
    """Any google.rpc detail: their fields do not collide."""

    reason: str | None = None
    retry_delay: str | None = None
    request_id: str | None = None
    field_violations: tuple[_Violation, ...] = ()


_decode_details = msgspec.json.Decoder(tuple[_Detail, ...]).decode


def _details(raw: Any) -> tuple[_Detail, ...]:
    try:
        return () if raw is UNSET else _decode_details(raw)
    except msgspec.DecodeError:
        return ()  # a detail of another shape holds nothing that we read


class StatusErrors:
    """The errors of one family."""

    def __init__(self, family: str, source: str) -> None:
        self._family = family
        self._reader = WireReader(_ErrorResponse, source)

    def decode(self, body: bytes, status: int | None = None, headers: Mapping[str, str] | None = None) -> Failure:
        # If the request asked for a stream, the body may be one event of it.
        event = None if body.lstrip()[:1] in {b"{", b"["} else _EVENT.fullmatch(body)
        if event is not None:
            failure = self.decode(event["body"], status, headers)
            notes = (failure.metadata or {}).get(self._family, {})
            return structs.replace(failure, metadata={self._family: {**notes, _AS_EVENT: Raw(b"true")}})
        stripped = body.strip()
        # Streams without SSE, and some front ends, wrap the body in an array.
        wrapped = stripped.startswith(b"[") and stripped.endswith(b"]") and len(stripped) > len("[]")
        wire = self._reader.read(stripped[1:-1] if wrapped else body)
        error = wire.error if isinstance(wire.error, _Status) else _Status(UNSET, wire.error)
        details = _details(error.details)
        reason = next((detail.reason for detail in details if detail.reason is not None), None)
        word = None if error.status is UNSET else error.status
        code = error.code if isinstance(error.code, int) else None
        answered = code if status is None else status
        fields = [violation.field for detail in details for violation in detail.field_violations]
        waits = [seconds_of((detail.retry_delay or "").removesuffix("s")) for detail in details]
        delays = [seconds for seconds in waits if seconds is not None]
        given = headers or {}
        return Failure(
            KIND_OF_WORD.get(reason or "") or KIND_OF_WORD.get(word or "") or kind_of_status(answered),
            "" if error.message is UNSET else error.message,
            answered,
            reason,
            next((field for field in fields if field is not None), None),
            delays[0] if delays else retry_after_of(given),
            next((detail.request_id for detail in details if detail.request_id is not None), None),
            word,
            None if error.details is UNSET else error.details,
            {self._family: self._notes(wire, error, answered, wrapped=wrapped)},
        )

    def _notes(self, wire: _ErrorResponse, error: _Status, status: int | None, *, wrapped: bool) -> Extra:
        notes = (keep(self._family, wire.extra, error=error.extra) or {self._family: {}})[self._family]
        if wrapped:
            notes["~array"] = Raw(b"true")
        if isinstance(wire.error, str):
            notes["~string"] = Raw(b"true")
        if error.code != status:
            notes["~code"] = Raw(b"null") if error.code is UNSET else Raw(encode_json(error.code))
        for key in ("message", "status"):
            if getattr(error, key) is UNSET:
                notes["~absent:" + key] = Raw(b"true")
        return notes

    def encode(self, failure: Failure) -> Encoded:
        notes = (failure.metadata or {}).get(self._family)
        status = failure.status or status_of_kind(failure.kind)
        if notes is None:
            word = WORD_OF_KIND[failure.kind]
            own: Any = _own_details(failure) or UNSET
            return Encoded(encode_json(_ErrorResponse(_Status(status, failure.message, word, own))), (), "", {}, status)
        code: Any = status
        if "~code" in notes:
            code = UNSET if bytes(notes["~code"]) == b"null" else notes["~code"]
        given = failure.details_held
        error = _Status(
            code,
            UNSET if "~absent:message" in notes else failure.message,
            UNSET if "~absent:status" in notes or failure.raw_type is None else failure.raw_type,
            UNSET if given is None else given,
        )
        body: Any = failure.message if "~string" in notes else spliced(error, inner_extra(notes, "error") or {})
        content = bytes(spliced(_ErrorResponse(body), notes))
        if _AS_EVENT in notes:
            content = b"event: error\ndata: " + content + b"\n\n"
        return Encoded(b"[" + content + b"]" if "~array" in notes else content, (), "", {}, status)


def _own_details(failure: Failure) -> list[dict[str, Any]]:
    """Return what other formats state in headers and fields as Google's standard details."""
    details: list[dict[str, Any]] = []
    if failure.code is not None:
        details.append({"@type": f"{_RPC}ErrorInfo", "reason": failure.code})
    if failure.parameter is not None:
        violation = {"field": failure.parameter, "description": failure.message}
        details.append({"@type": f"{_RPC}BadRequest", "fieldViolations": [violation]})
    if failure.retry_after is not None:
        details.append({"@type": f"{_RPC}RetryInfo", "retryDelay": f"{write_seconds(failure.retry_after)}s"})
    if failure.request_id is not None:
        details.append({"@type": f"{_RPC}RequestInfo", "requestId": failure.request_id})
    return details


# ── errors inside streams and answers ─────────────────────────────────────────────────────────────────────────


class _EventError(Struct, frozen=True, gc=False):
    # A word in events; a number, as in HTTP errors, is read too.
    code: str | int | None = None
    message: str | None = None
    status: str | None = None


_event_errors = msgspec.json.Decoder(_EventError)
_INVALID = "invalid_request"


def decode_event_error(error: Raw, family: str) -> Failure:
    """Decode the `{code, message}` of an event, or of an entry of `errors`."""
    metadata = {family: {"~error": error}}
    try:
        wire = _event_errors.decode(error)
    except msgspec.ValidationError:
        return Failure("server", compact_text(error), metadata=metadata)
    status = wire.code if isinstance(wire.code, int) else None
    code = wire.code if isinstance(wire.code, str) else None
    word = wire.status or (code or "").rpartition("/")[2].upper()
    known: FailureKind | None = "invalid_request" if word == _INVALID.upper() else KIND_OF_WORD.get(word)
    return Failure(
        known or kind_of_status(status), wire.message or "", status, code, raw_type=wire.status, metadata=metadata
    )


def encode_event_error(failure: Failure, family: str) -> Any:
    noted = (failure.metadata or {}).get(family, {}).get("~error")
    if noted is not None:
        return noted
    code = _INVALID if failure.kind in {"invalid_request", "too_large"} else WORD_OF_KIND[failure.kind].lower()
    return {"code": code, "message": failure.message}


def explain_finish(errors: Raw, finish: Finish) -> Finish:
    """Return the finish reason of a failed answer with the message of an error, or of its only error."""
    if finish.reason != "error":
        return finish
    parsed = parse_json(errors)
    first = parsed[0] if isinstance(parsed, list) and len(parsed) == 1 else parsed
    message = first.get("message") if isinstance(first, dict) else None
    return structs.replace(finish, explanation=message) if isinstance(message, str) else finish
