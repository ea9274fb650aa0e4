"""Errors of providers: status codes, kinds and retry hints, for all formats."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.ir import Failure, FailureKind
from dragoman.losses import LossLog

_KIND_OF_STATUS: dict[int, FailureKind] = {
    400: "invalid_request",
    401: "authentication",
    402: "billing",
    403: "permission",
    404: "not_found",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    422: "invalid_request",
    429: "rate_limit",
    499: "cancelled",
    500: "server",
    502: "server",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}
_STATUS_OF_KIND: dict[FailureKind, int] = {
    "invalid_request": 400,
    "authentication": 401,
    "billing": 402,
    "permission": 403,
    "not_found": 404,
    "conflict": 409,
    "too_large": 413,
    "rate_limit": 429,
    "server": 500,
    "overloaded": 503,
    "timeout": 504,
    "cancelled": 499,
    "truncated": 502,
}
_FIRST_SERVER_ERROR = 500


def kind_of_status(status: int | None) -> FailureKind:
    if status is None:
        return "server"
    known = _KIND_OF_STATUS.get(status)
    if known is not None:
        return known
    return "server" if status >= _FIRST_SERVER_ERROR else "invalid_request"


def status_of_kind(kind: FailureKind) -> int:
    return _STATUS_OF_KIND[kind]


def tell_of_kind(failure: Failure, arrives: FailureKind, log: LossLog) -> None:
    """In a stream there is no status beside an error: what its body does not say is lost."""
    if failure.kind not in {arrives, "truncated"}:  # that a stream broke off is our own word
        why = f"an error in a stream of this API reads as {arrives!r}"
        log.degrade(failure, "kind", f"kind of the error, {failure.kind!r}", why)


def retry_after_of(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `retry-after` (in seconds; dates are not hints we can use offline)."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
    return None
