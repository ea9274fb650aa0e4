"""Decompresses bodies (`content-encoding`) of clients and upstreams as they arrive, within a limit."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from zstandard import ZstdDecompressionObj

_ZSTD_WINDOW = 8 << 20
"""The maximum of RFC 9659 for HTTP: with a larger window a few bytes could take much memory."""
_ZSTD_SLICE = 256
"""Compressed bytes that are decoded between checks of the limit; they hold 64 blocks of 128 KiB at most."""
_ZLIB_METHOD = 8
_GZIP_MAGIC = b"\x1f\x8b"
_MOST_MEMBERS = 10_000
"""gzip members of one body. After each, zlib copies what is left of the chunk, so empty members would be costly."""


class CodingError(Exception):
    """The body is not compressed as `content-encoding` states, or is truncated."""


class TooLarge(Exception):
    """The decompressed body is larger than the limit."""


class UnknownCoding(Exception):
    """No decoder for this `content-encoding`; the message names the package that has one, if there is one."""


class Decoder(Protocol):
    def feed(self, data: bytes, limit: int) -> bytes:
        """Return the decompressed bytes. Raises `TooLarge` if they are more than `limit`."""
        ...

    def end(self) -> None:
        """Raise `CodingError` if the compressed body is incomplete."""
        ...


class _Zlib:
    """gzip (RFC 1952, several members allowed) and deflate (zlib, or raw as some clients send it)."""

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._machine: zlib._Decompress | None = None
        self._members_left = _MOST_MEMBERS

    def feed(self, data: bytes, limit: int) -> bytes:
        pieces: list[bytes] = []
        while data:
            if self._machine is None:
                self._machine = zlib.decompressobj(self._window(data))
            try:
                piece = self._machine.decompress(data, limit + 1)
            except zlib.error as error:
                raise CodingError(str(error)) from None
            limit -= len(piece)
            if limit < 0:
                raise TooLarge
            pieces.append(piece)
            data = self._next_member() if self._machine.eof else b""
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _window(self, data: bytes) -> int:
        if self._gzip:
            return 16 + zlib.MAX_WBITS
        return zlib.MAX_WBITS if data[0] & 15 == _ZLIB_METHOD else -zlib.MAX_WBITS

    def _next_member(self) -> bytes:
        """Return what follows the end of a gzip member: another one, or nothing."""
        assert self._machine is not None  # noqa: S101 - it has just reached its end
        rest = self._machine.unused_data
        if rest and not (self._gzip and _GZIP_MAGIC.startswith(rest[:2])):
            raise CodingError("more bytes after its end")
        if rest:
            self._machine = None
            self._members_left -= 1
            if not self._members_left:
                raise CodingError(f"more than {_MOST_MEMBERS} members")
        return rest

    def end(self) -> None:
        if self._machine is None or not self._machine.eof:
            raise CodingError("cut short")


class _Zstd:
    def __init__(self) -> None:
        try:
            from zstandard import ZstdDecompressor  # noqa: PLC0415 - Python has its own only from 3.14 on
        except ImportError:
            raise UnknownCoding("'zstd' needs the package zstandard (extra gateway) on the gateway's side") from None
        self._machine: ZstdDecompressionObj = ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()

    def feed(self, data: bytes, limit: int) -> bytes:
        from zstandard import ZstdError  # noqa: PLC0415 - see above

        pieces: list[bytes] = []
        try:
            for start in range(0, len(data), _ZSTD_SLICE):
                if self._machine.eof:
                    raise CodingError("more bytes after its end")
                piece = self._machine.decompress(data[start : start + _ZSTD_SLICE])
                limit -= len(piece)
                if limit < 0:
                    raise TooLarge
                pieces.append(piece)
        except ZstdError as error:
            raise CodingError(str(error)) from None
        return b"".join(pieces)

    def end(self) -> None:
        if not self._machine.eof or self._machine.unused_data:
            raise CodingError("more bytes after its end" if self._machine.eof else "cut short")


_DECODERS: Mapping[str, Callable[[], Decoder]] = {
    "gzip": lambda: _Zlib(gzip=True),
    "x-gzip": lambda: _Zlib(gzip=True),
    "deflate": lambda: _Zlib(gzip=False),
    "zstd": _Zstd,
}


def decoder_for(coding: str) -> Decoder | None:
    """Return a decoder, or None if the body is not compressed. Raises `UnknownCoding`."""
    name = coding.strip().lower()
    if name in {"", "identity"}:
        return None
    made = _DECODERS.get(name)
    if made is None:
        raise UnknownCoding(f"{coding!r} is not supported")
    return made()
