"""The head of a client's request in any version of HTTP, and the checks that parsers do not make.

Framing (lengths, chunks, line ends, allowed bytes) is checked by llhttp and h2. This module refuses what a proxy in
front of us could interpret differently: two keys, two hosts, a transfer coding besides `chunked`. A harmless repeated
header, such as a doubled `User-Agent`, is accepted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import parse_qsl

from msgspec import Struct

from dragoman.ir import Failure

MAX_HEAD = 64 << 10
MAX_HEADERS = 200
_ABSOLUTE = re.compile(r"https?://[^/?#]*", re.IGNORECASE)
_TARGET = re.compile(r"[\x21-\x7e]+")
# With two values a request is ambiguous, and a proxy in front of us may have used the other one.
_ONCE = frozenset(
    {"content-length", "transfer-encoding", "host", "content-type", "content-encoding", "expect"}
    | {"authorization", "x-api-key", "x-goog-api-key", "api-key"}
)
_LOCAL_NAMES = (".localhost", ".local", ".internal", ".lan", ".home.arpa")
"""Endings that no public registry sells; containers reach their host as `host.docker.internal`."""
_FIRST_COUNTS = frozenset({"user-agent"})
_MAX_NAMES = 1_000
_SHORT = 100
_REMEMBERED_HEAD = 2 << 10
"""Maximum bytes of headers that a connection remembers of its last request."""
_targets: dict[bytes, tuple[str, str]] = {}
join_header = ": ".join
"""Joins a name and its value to a line, at half the cost of an f-string in a loop."""
known_names: dict[bytes, str] = {}
"""Header names as clients write them -> in lower case: the same few arrive with every request."""
# What a page of another site may send without a CORS preflight: none of it is accepted from a browser.
_FORMS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"})
# What `curl -d` and simple HTTP clients send for JSON. Every browser sends at least one of the headers below.
_UNTYPED = frozenset({"application/x-www-form-urlencoded", "text/plain"})
_OF_BROWSERS = ("origin", "referer", "cookie", "sec-fetch-site", "sec-fetch-mode")


# How one worker asks the one with the page whether it may read the body of a request.
ADMISSION = "/_/own/admission"
"""The path; the query has the method and the path of the request, and its headers are sent along."""
ADMITTED = "x-dragoman-admitted"
"""The header of the answer that says how many bytes may be read. An answer without it refuses the request."""


class BadRequest(Exception):
    """A request that is refused: not HTTP, too large, too slow, or too much for the memory budget."""

    def __init__(self, message: str, status: int = 400) -> None:
        self.status = status
        super().__init__(message)


class BadBody(Exception):
    """A request that is refused with an error in the client's format: what it asks for is invalid or not offered."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.message)


class Head(Struct, frozen=True):
    method: str
    """HEAD appears as GET: handlers answer it, and the connection leaves out the body."""
    path: str
    """The path as received, with its escapes."""
    query: str
    headers: Mapping[str, str]
    """Values by lower-case name."""
    secure: bool = False
    """Whether the request came over TLS."""
    size: int = 0
    """About how many characters the headers have; 0 if they were not counted."""

    @property
    def parameters(self) -> dict[str, str]:
        return dict(parse_qsl(self.query, keep_blank_values=True)) if self.query else {}


def is_websocket(head: Head) -> bool:
    """Whether the client asks to leave HTTP for a WebSocket (RFC 6455, 4.1)."""
    protocol = head.headers.get("upgrade", "").lower()
    return head.method == "GET" and protocol == "websocket" and "sec-websocket-key" in head.headers


@lru_cache(256)
def is_local_name(host: str) -> bool:
    """Whether a `Host` is an address, or a name that only the local network or machine can define."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    name = name.rstrip(".").lower()
    try:
        ip_address(name)
    except ValueError:
        return "." not in name or name.endswith(_LOCAL_NAMES)
    return True


def characters_of(headers: Mapping[str, str]) -> int:
    return sum(map(len, headers)) + sum(map(len, headers.values()))


def header_name(name: bytes) -> str:
    known = known_names.get(name)
    if known is None:
        known = name.decode("latin-1").lower()
        if len(name) <= _SHORT and len(known_names) < _MAX_NAMES:
            known_names[name] = known
    return known


class RepeatedHeaders:
    """The headers of one connection: clients repeat those of their last request, except for `content-length`."""

    __slots__ = ("_headers", "_known_size", "_length", "_pairs", "size")

    def __init__(self) -> None:
        self.size = 0
        """About how many characters the headers collected last have, not less."""
        self._known_size = 0
        """The size of `_headers`."""
        self._pairs: list[tuple[bytes, bytes]] = []
        self._headers: dict[str, str] = {}
        self._length = -1
        """The index of `content-length` in `_pairs`; -1 if it is absent."""

    def collect(self, pairs: list[tuple[bytes, bytes]]) -> Mapping[str, str]:
        """Return what `collect_headers` does, reusing the result for requests with the same headers."""
        known, place = self._pairs, self._length
        if pairs == known:
            self.size = self._known_size
            return self._headers
        if 0 <= place < len(pairs) and len(pairs) == len(known):
            name, value = pairs[place]
            rest = (*pairs[:place], known[place], *pairs[place + 1 :])
            if name == known[place][0] and rest == tuple(known):
                self.size = self._known_size + len(value)
                return {**self._headers, "content-length": value.decode("latin-1").strip(" \t")}
        headers = collect_headers(pairs)
        self.size = characters_of(headers)
        if self.size <= _REMEMBERED_HEAD:
            names = [known_names.get(raw) or header_name(raw) for raw, _ in pairs]
            self._length = names.index("content-length") if "content-length" in headers else -1
            self._pairs, self._headers, self._known_size = pairs, headers, self.size
        return headers


def collect_headers(pairs: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers by lower-case name. Raises `BadRequest` if one that must be unique is repeated."""
    headers: dict[str, str] = {}
    if len(pairs) > MAX_HEADERS:
        raise BadRequest(f"more than {MAX_HEADERS} headers", 431)
    size = 0
    for raw, value in pairs:
        size += len(raw) + len(value)
        name = known_names.get(raw) or header_name(raw)
        text = value.decode("latin-1").strip(" \t")
        if name not in headers:
            headers[name] = text
        elif name in _ONCE:
            raise BadRequest(f"{name} is given twice")
        elif name == "cookie":  # RFC 9113, 8.2.3: HTTP/2 clients may split it
            headers[name] += f"; {text}"
        elif name not in _FIRST_COUNTS:
            headers[name] += f", {text}"
    if size > MAX_HEAD:
        raise BadRequest(f"a head of more than {MAX_HEAD} bytes", 431)
    return headers


def split_target(raw: bytes) -> tuple[str, str]:
    """Return path and query of a request target in origin or absolute form (RFC 9112, 3.2)."""
    known = _targets.get(raw)
    if known is not None:
        return known
    if len(raw) > MAX_HEAD:
        raise BadRequest(f"a request target of more than {MAX_HEAD} bytes", 414)
    target = raw.decode("latin-1")
    if not target.startswith("/"):
        absolute = _ABSOLUTE.match(target)
        if absolute is None:
            raise BadRequest("the request target is not a path")
        target = target[absolute.end() :]
        target = target if target.startswith("/") else f"/{target}"
    if _TARGET.fullmatch(target) is None:
        raise BadRequest("the request target holds bytes that must be escaped")
    path, _, query = target.partition("#")[0].partition("?")
    if len(raw) <= _SHORT and len(_targets) < _MAX_NAMES:
        _targets[raw] = path, query
    return path, query


def check_content_type(head: Head) -> None:
    """Raise `BadBody` for a form that a page of another site may have sent."""
    given = head.headers.get("content-type", "application/json")
    if given == "application/json":
        return
    kind = given.partition(";")[0].strip().lower()
    if kind in _UNTYPED and not any(name in head.headers for name in _OF_BROWSERS):
        return
    if kind in _FORMS:
        raise BadBody(Failure("invalid_request", f"expected application/json, got {kind}", 415))
