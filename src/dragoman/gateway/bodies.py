"""Bodies as clients send them: some are compressed."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

from dragoman.gateway.http11 import Head
from dragoman.ir import Failure


class BadBody(Exception):
    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.message)


def _inflated(window: int) -> Callable[[bytes, int], bytes]:
    def inflate(data: bytes, limit: int) -> bytes:
        machine = zlib.decompressobj(window)
        body = machine.decompress(data, limit + 1)
        if len(body) > limit:
            raise BadBody(Failure("too_large", f"the body is larger than {limit} bytes once it is unpacked", 413))
        if not machine.eof:
            raise zlib.error("cut short")
        return body

    return inflate


_UNPACKED: Mapping[str, Callable[[bytes, int], bytes]] = {
    "gzip": _inflated(16 + zlib.MAX_WBITS),
    "x-gzip": _inflated(16 + zlib.MAX_WBITS),
    "deflate": _inflated(zlib.MAX_WBITS),
    "identity": lambda data, _limit: data,
}


def plain_body(head: Head, body: bytes, limit: int) -> bytes:
    coding = head.headers.get("content-encoding", "").lower()
    if coding:
        unpack = _UNPACKED.get(coding)
        if unpack is None:
            raise BadBody(Failure("invalid_request", f"content-encoding {coding!r} is not understood here", 415))
        try:
            body = unpack(body, limit)
        except zlib.error as error:
            raise BadBody(Failure("invalid_request", f"the body is not {coding}: {error}", 400)) from None
    kind = head.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind in _FORMS:
        raise BadBody(Failure("invalid_request", f"expected application/json, got {kind}", 415))
    return body


# What a page of a stranger may send without asking first (CORS): nothing of ours is taken that way.
_FORMS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"})
