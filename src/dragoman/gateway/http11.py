"""HTTP/1.1 requests, read strictly and without a socket.

Whatever two machines could read in two ways (two lengths, a length and chunks, a bare line feed, a folded line, a space
before a colon) is refused: nothing can be smuggled past whoever stands before or behind us. A header that is only told
twice, such as a doubled `User-Agent`, harms nobody and is taken.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl

from msgspec import Struct

MAX_HEAD = 64 << 10
MAX_HEADERS = 200
_MAX_CHUNK_LINE = 256
_MAX_TRAILERS = 8 << 10
HEAD_END = b"\r\n\r\n"

_REQUEST_LINE = re.compile(rb"([A-Z]{1,16}) ([\x21-\x7e]+) HTTP/1\.([01])")
_HEADER = re.compile(rb"([!#-'*+\-.0-9A-Z^_`a-z|~]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_ABSOLUTE = re.compile(r"https?://[^/?#]*", re.IGNORECASE)
_DIGITS = re.compile(r"[0-9]{1,15}")
_CHUNK_SIZE = re.compile(rb"([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n\0]*)?")
# Told twice they have two meanings, and who stands before us may have taken the other one.
_ONCE = frozenset(
    {"content-length", "transfer-encoding", "host", "content-type", "content-encoding", "expect"}
    | {"authorization", "x-api-key", "x-goog-api-key", "api-key"}
)
_FIRST_COUNTS = frozenset({"user-agent"})
_NO_HEADERS: Mapping[str, str] = {}


class BadRequest(Exception):
    """A request that is not HTTP as we agree to read it."""

    def __init__(self, message: str, status: int = 400) -> None:
        self.status = status
        super().__init__(message)


class Head(Struct, frozen=True):
    method: str
    path: str
    """As it came, escapes included."""
    query: str
    headers: Mapping[str, str]
    """By names in lower case."""
    length: int | None
    """Of the body; None: it comes in chunks."""
    keep_alive: bool
    chunks: bool
    """Whether the client reads an answer that comes in chunks (HTTP/1.1)."""

    @property
    def parameters(self) -> dict[str, str]:
        return dict(parse_qsl(self.query, keep_blank_values=True)) if self.query else {}


def parse_head(data: bytes) -> Head:
    """The head of a request, without the blank line that ends it."""
    first, *lines = data.split(b"\r\n")
    matched = _REQUEST_LINE.fullmatch(first)
    if matched is None:
        raise BadRequest("the request line is not HTTP/1.1")
    headers = _headers(lines)
    newer = matched[3] == b"1"
    if newer and "host" not in headers:
        raise BadRequest("a request names its host")
    path, _, query = _target(matched[2].decode("ascii")).partition("?")
    connection = headers.get("connection", "").lower()
    keep_alive = "close" not in connection if newer else "keep-alive" in connection
    length = _length(headers, newer=newer)
    return Head(matched[1].decode("ascii"), path, query, headers, length, keep_alive, newer)


def _target(target: str) -> str:
    if target.startswith("/"):
        return target.partition("#")[0]
    absolute = _ABSOLUTE.match(target)
    if absolute is None:
        raise BadRequest("the request line names no path")
    return target[absolute.end() :].partition("#")[0] or "/"


def _headers(lines: list[bytes]) -> dict[str, str]:
    if len(lines) > MAX_HEADERS:
        raise BadRequest(f"more than {MAX_HEADERS} headers", 431)
    headers: dict[str, str] = {}
    for line in lines:
        matched = _HEADER.fullmatch(line)
        if matched is None:
            raise BadRequest("a header is not `name: value`")
        name = matched[1].decode("ascii").lower()
        value = matched[2].decode("latin-1").rstrip(" \t")
        if name not in headers:
            headers[name] = value
        elif name in _ONCE:
            raise BadRequest(f"{name} is given twice")
        elif name not in _FIRST_COUNTS:
            headers[name] += f", {value}"
    return headers


def _length(headers: Mapping[str, str], *, newer: bool) -> int | None:
    length, coding = headers.get("content-length"), headers.get("transfer-encoding")
    if coding is not None:
        if length is not None:
            raise BadRequest("both content-length and transfer-encoding")
        if not newer or coding.lower() != "chunked":
            raise BadRequest("transfer-encoding is not chunked", 501)
        return None
    if length is None:
        return 0
    if _DIGITS.fullmatch(length) is None:
        raise BadRequest("content-length is no number")
    return int(length)


_USUAL_CHUNK = 4096
_SIZES: dict[bytes, int] = {}
"""The sizes of small chunks, as they were written: those of a stream come again and again."""


def _whole_chunks(data: bytes, pieces: list[bytes]) -> int:
    """The chunks at the beginning that are whole, and of sizes that are known; where they end."""
    if len(data) > _USUAL_CHUNK // 4:
        lines = data.split(b"\r\n")
        if not lines[-1] and [_SIZES.get(line) for line in lines[:-1:2]] == [len(body) for body in lines[1::2]]:
            pieces += lines[1::2]  # no chunk is cut, and no line ends within one
            return len(data)
    at, size = 0, len(data)
    while at < size:
        line = data.find(b"\r\n", at, at + _MAX_CHUNK_LINE)
        count = None if line < 0 else _SIZES.get(data[at:line])
        if count is None:
            break
        end = line + 2 + count
        if data[end : end + 2] != b"\r\n":
            break
        pieces.append(data[line + 2 : end])
        at = end + 2
    return at


class Chunks:
    """A body that comes in chunks. `feed` gives what it has of the body; `rest` is what came behind its end."""

    __slots__ = ("_buffer", "_left", "_trailers", "done", "rest")

    def __init__(self) -> None:
        self._buffer = b""
        self._left = 0
        """Of the current chunk, with the line end behind it; 0: a size line comes next."""
        self._trailers = False
        self.done = False
        self.rest = b""

    def feed(self, data: bytes) -> bytes:
        pieces: list[bytes] = []
        at = 0
        if self._buffer or self._left or self._trailers:
            data = self._buffer + data
        else:
            at = _whole_chunks(data, pieces)
        while at < len(data) and not self.done:
            if self._left:
                at, whole = self._chunk(data, at, pieces)
            else:
                at, whole = self._line(data, at)
            if not whole:
                break
        self._buffer = b"" if self.done else data[at:]
        self.rest = data[at:] if self.done else b""
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _chunk(self, data: bytes, at: int, pieces: list[bytes]) -> tuple[int, bool]:
        body = data[at : at + max(self._left - 2, 0)]
        if body:
            pieces.append(body)
            at += len(body)
            self._left -= len(body)
        if self._left > 2 or len(data) - at < self._left:  # noqa: PLR2004 - the line end
            return at, False
        if data[at : at + 2] != b"\r\n":
            raise BadRequest("a chunk is longer than it says")
        self._left = 0
        return at + 2, True

    def _line(self, data: bytes, at: int) -> tuple[int, bool]:
        limit = _MAX_TRAILERS if self._trailers else _MAX_CHUNK_LINE
        end = data.find(b"\r\n", at, at + limit)
        if end < 0:
            if len(data) - at >= limit:
                raise BadRequest("a line between chunks is too long")
            return at, False
        line = data[at:end]
        if self._trailers:
            self.done = not line
            return end + 2, True
        size = _CHUNK_SIZE.fullmatch(line)
        if size is None:
            raise BadRequest("a chunk has no size")
        count = int(size[1], 16)
        if 0 < count <= _USUAL_CHUNK and line == b"%x" % count:
            _SIZES[line] = count
        self._trailers = count == 0
        self._left = count + 2 if count else 0
        return end + 2, True
