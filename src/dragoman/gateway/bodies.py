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


class _Unreadable(Exception):
    """Not packed as it says."""


def _too_large(limit: int) -> BadBody:
    return BadBody(Failure("too_large", f"the body is larger than {limit} bytes once it is unpacked", 413))


def _not_understood(coding: str, hint: str = "") -> BadBody:
    return BadBody(Failure("invalid_request", f"content-encoding {coding!r} is not understood here{hint}", 415))


def _inflated(window: int) -> Callable[[bytes, int], bytes]:
    def inflate(data: bytes, limit: int) -> bytes:
        machine = zlib.decompressobj(window)
        try:
            body = machine.decompress(data, limit + 1)
        except zlib.error as error:
            raise _Unreadable(str(error)) from None
        if len(body) > limit:
            raise _too_large(limit)
        if not machine.eof:
            raise _Unreadable("cut short")
        return body

    return inflate


_ZSTD_WINDOW = 8 << 20
"""What RFC 9659 allows over HTTP: a larger one would let a few bytes take much memory."""
_ZSTD_SLICE = 256
"""Bytes that are unpacked before the limit is looked at; they hold 64 blocks of 128 KiB at most."""


def _unzstd(data: bytes, limit: int) -> bytes:
    try:
        from zstandard import ZstdDecompressor, ZstdError  # noqa: PLC0415 - Python has its own only from 3.14 on
    except ImportError:
        raise _not_understood("zstd", ": pip install 'dragoman[gateway]'") from None
    machine = ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
    pieces, size = [], 0
    try:
        for start in range(0, len(data), _ZSTD_SLICE):
            pieces.append(machine.decompress(data[start : start + _ZSTD_SLICE]))
            size += len(pieces[-1])
            if size > limit:
                raise _too_large(limit)
    except ZstdError as error:
        raise _Unreadable(str(error)) from None
    if not machine.eof or machine.unused_data:
        raise _Unreadable("more behind its end" if machine.eof else "cut short")
    return b"".join(pieces)


_UNPACKED: Mapping[str, Callable[[bytes, int], bytes]] = {
    "gzip": _inflated(16 + zlib.MAX_WBITS),
    "x-gzip": _inflated(16 + zlib.MAX_WBITS),
    "deflate": _inflated(zlib.MAX_WBITS),
    "zstd": _unzstd,
    "identity": lambda data, _limit: data,
}


def plain_body(head: Head, body: bytes, limit: int) -> bytes:
    coding = head.headers.get("content-encoding", "").lower()
    if coding:
        unpack = _UNPACKED.get(coding)
        if unpack is None:
            raise _not_understood(coding)
        try:
            body = unpack(body, limit)
        except _Unreadable as error:
            raise BadBody(Failure("invalid_request", f"the body is not {coding}: {error}", 400)) from None
    kind = head.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind in _FORMS:
        raise BadBody(Failure("invalid_request", f"expected application/json, got {kind}", 415))
    return body


# What a page of a stranger may send without asking first (CORS): nothing of ours is taken that way.
_FORMS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"})
