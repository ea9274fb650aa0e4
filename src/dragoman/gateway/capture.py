"""The last requests, held in memory for the page: what was received and sent on both sides, and when.

Bytes are held unchanged, by reference, within limits of number and size; nothing is decoded before the page asks.
Keys are hidden from whatever is read. Captured data is never written to disk.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from time import perf_counter, time
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import unquote

from msgspec import structs

from dragoman.drivers.secret import HIDDEN, hide_url
from dragoman.gateway.captured_values import Attempt, Body, CaptureLimits, Content, HeldCall
from dragoman.gateway.capturing_translator import CapturingTranslator
from dragoman.gateway.http_request import Head, characters_of
from dragoman.gateway.packed_pieces import HOUSING, PIECES, PackedPieces, Piece, pack

if TYPE_CHECKING:
    from dragoman.drivers.remote import Channel
    from dragoman.errors import ProviderError
    from dragoman.gateway.client_request import UpstreamCall
    from dragoman.gateway.request_records import Record

Phase: TypeAlias = Literal["begun", "answering", "ended"]
_HOUSING = 200
"""Memory overhead of a piece that is not packed: two bytes objects, a float, a tuple of three."""
_MOST_OF_HEAD = 8 << 10
"""Maximum characters of a head that are held: clients without a key may send 64 KiB of it."""
_MOST_OF_PATH = 1 << 10
"""Maximum characters of the path, and of the query, of a head that is cut."""


class CapturedRequest:
    """One request, filled in while it is served. Nothing is added once it was released to free memory.

    References to bytes and headers are all that is stored while a request is served. They contain keys, which the
    properties hide: what is read here contains none.
    """

    # Defaults on the class: a request that is served without incident changes few of them.
    phase: Phase = "begun"
    unheld = 0
    unheld_bytes = 0
    is_gone = False
    _cut_keys = True
    """Whether a client's body that is not held whole may contain keys."""
    _whole_size = 0
    """Bytes of the bodies that are held, without those of streams."""

    def __init__(self, store: Capture, record: Record, head: Head) -> None:
        self.store = store
        self.record = record
        self.moment = time()
        self._head = head
        # Not on the class: compiled, a default of None is left out where the type is a union of more than two.
        self._body: Content | None = None
        self._answer: Content | None = None
        self._longest = store.most_of_body
        """Maximum bytes of a body that is held as it is; -1 if nothing is held any more."""
        self._calls: list[HeldCall] = []
        self._packed: list[PackedPieces] = []
        self._newest: list[Piece] = []
        """The pieces that are not packed yet."""
        self.bytes_left = 2 * self._longest
        """Bytes that may still be held of the stream, which has two sides."""

    # ── recording, while the request is served ──

    def record_request(self, body: bytes) -> None:
        """Record the body of an admitted client."""
        if len(body) > self._longest:
            self._cut_keys = may_have_keys(body, self.record.client)
        self._body = self._captured_body(body, keyed=True)
        if self.store.feeds:
            self.store.publish_change(self)

    def record_attempt(self, upstream_call: UpstreamCall, upstream: str, model: str) -> None:
        http = upstream_call.call.http
        sent: Content = http.body
        if sent is not self._body:
            sent = self._captured_body(http.body, keyed=True)
            if sent is not http.body:
                http = structs.replace(http, body=b"")
        if self.is_gone:
            return
        format, same, losses = upstream_call.channel.provider.format, upstream_call.same, upstream_call.losses
        self._calls.append(HeldCall(upstream, model, format, same, http, sent, losses, perf_counter()))

    def record_upstream_answer(self, status: int, body: bytes) -> None:
        """Record a whole answer of the last upstream called."""
        if self.is_gone:
            return
        call = self._calls[-1]
        call.status, call.answer, call.ended = status, self._captured_body(body), perf_counter()

    def listening(self, upstream_call: UpstreamCall, status: int) -> CapturingTranslator:
        """Return the translator of an answer that has begun to stream."""
        if not self.is_gone:
            self._calls[-1].status = status
        translator = upstream_call.translator(CapturingTranslator)
        translator.captured = self
        return translator

    def record_refusal(self, upstream_call: UpstreamCall, error: ProviderError) -> None:
        if self.is_gone:
            return
        call = self._calls[-1]
        call.failure, call.error, call.ended = error.kind, error.message, perf_counter()
        if isinstance(call.answer, bytes):  # an error with the status of a success
            call.answer = _without_keys_of(upstream_call.channel, call.answer)
        if call.answer is None and upstream_call.call.received:
            call.status = upstream_call.call.status
            call.answer = self._captured_body(_without_keys_of(upstream_call.channel, upstream_call.call.received[0]))
        if self._newest or self._packed:  # it had begun to stream, and failed before the first content
            whole = b"".join([received for _, received, _ in self.pieces])
            call.answer = Body(whole, len(whole))
            self._clear_pieces()

    def piece(self, received: bytes, sent: bytes) -> None:
        """Record a piece of a stream. Called for every chunk of every stream, so it does as little as possible."""
        size = len(received) if sent is received else len(received) + len(sent)
        newest, store = self._newest, self.store
        if size > self.bytes_left or len(newest) >= store.most_pieces - PIECES * len(self._packed):
            self.unheld += 1
            self.unheld_bytes += size
            return
        newest.append((perf_counter() - self.record.started, received, sent))
        size += _HOUSING
        if len(newest) >= PIECES:
            self._packed.append(pack(newest))
            newest.clear()
            size -= PIECES * (_HOUSING - HOUSING)
        self.bytes_left -= size
        store.bytes_left -= size
        if store.bytes_left < 0:
            store.release_excess()

    def began_to_answer(self) -> None:
        self.phase = "answering"
        if self.store.feeds:
            self.store.publish_change(self)

    def record_answer(self, _status: int, body: bytes) -> None:
        """Record a whole answer to the client, including those of the gateway itself."""
        calls = self._calls
        self._answer = body if calls and calls[-1].answer is body else self._captured_body(body)

    def record_end(self) -> None:
        self.phase = "ended"
        store = self.store
        if (self._newest or self._packed) and self._calls and self._calls[-1].ended is None:
            self._calls[-1].ended = perf_counter()
        if not self.is_gone:
            self._hold_head()
        # Until now the bodies were in memory anyway, to serve the request.
        store.bytes_left -= self._whole_size
        if store.bytes_left < 0:
            store.release_excess()
        if store.feeds:
            store.publish_change(self)

    # ── holding ──

    def _hold_head(self) -> None:
        size = _head_size(self._head)
        if size > _MOST_OF_HEAD:
            self._head = _cut_head(self._head)
            size = _head_size(self._head)
        self._whole_size += size

    def _captured_body(self, content: bytes, *, keyed: bool = False) -> Content:
        size = len(content)
        if size <= self._longest:
            self._whole_size += size
            return content
        if self.is_gone:
            return Body(b"", size)
        cut = content[: self._longest]
        if keyed and self._has_keys:
            cut = without_keys(cut)
        self._whole_size += len(cut)
        return Body(cut, size)

    def release(self) -> None:
        """Drop everything that is held of this request."""
        self.is_gone = True
        self.bytes_left = self._longest = -1
        self._whole_size = 0
        self._body = self._answer = None
        self._calls.clear()
        self._clear_pieces()

    def _clear_pieces(self) -> None:
        self._packed.clear()
        self._newest.clear()

    # ── reading, without keys ──

    @property
    def size(self) -> int:
        """Bytes of everything that is held of this request."""
        return 0 if self.is_gone else self._whole_size + 2 * self._longest - self.bytes_left

    @property
    def method(self) -> str:
        return self._head.method

    @property
    def path(self) -> str:
        head = self._head
        return f"{head.path}?{hidden_query(head.query)}" if head.query else head.path

    @property
    def headers(self) -> Mapping[str, str]:
        return hidden_headers(self._head.headers)

    @property
    def body(self) -> Body | None:
        """The client's body, decompressed. None if the request was refused before its body was read."""
        return None if self._body is None else self._body_of(self._body, keyed=self._has_keys)

    @property
    def answer(self) -> Body | None:
        """The answer to the client, if it did not stream."""
        return None if self._answer is None else self._body_of(self._answer, keyed=False)

    @property
    def pieces(self) -> list[Piece]:
        """The pieces of a stream."""
        return [*chain.from_iterable(self._packed), *self._newest]

    @property
    def attempts(self) -> list[Attempt]:
        keyed = self._has_keys
        return [self._attempt(call, keyed=keyed) for call in self._calls]

    @property
    def _has_keys(self) -> bool:
        """Whether the client's body may contain keys; if not, its translation contains none either."""
        return may_have_keys(self._body, self.record.client) if isinstance(self._body, bytes) else self._cut_keys

    def _body_of(self, held: Content, *, keyed: bool) -> Body:
        if isinstance(held, Body):  # its keys were removed when it was cut
            return held
        return Body(without_keys(held) if keyed else held, len(held))

    def _attempt(self, call: HeldCall, *, keyed: bool) -> Attempt:
        started = self.record.started
        return Attempt(
            upstream=call.upstream,
            model=call.model,
            format=call.format,
            is_same=call.is_same,
            method=call.http.method,
            url=_hidden_address(call.http.url),
            headers=hidden_headers(call.http.headers),
            body=self._body_of(call.sent, keyed=keyed),
            losses=call.losses,
            began=call.began - started,
            ended=None if call.ended is None else call.ended - started,
            status=call.status,
            answer=None if call.answer is None else self._body_of(call.answer, keyed=False),
            failure=call.failure,
            error=call.error,
        )


class Feed:
    """Requests that changed since the last call of `changes`; each appears once, however often it changed."""

    def __init__(self, wanted: Callable[[CapturedRequest], bool]) -> None:
        self._wanted = wanted
        self._changed: dict[str, CapturedRequest] = {}
        self._something = asyncio.Event()

    def note(self, request: CapturedRequest) -> None:
        if self._wanted(request):
            self._changed[request.record.id] = request
            self._something.set()

    def forget(self, request: CapturedRequest) -> None:
        self._changed.pop(request.record.id, None)

    async def changes(self) -> list[CapturedRequest]:
        """Wait until requests have changed, and return them."""
        while not self._changed:
            self._something.clear()
            await self._something.wait()
        changed = list(self._changed.values())
        self._changed.clear()
        return changed


class Capture:
    """The last requests of this process."""

    def __init__(self, limits: CaptureLimits | None = None) -> None:
        self.limits = limits or CaptureLimits()
        self.most_of_body = self.limits.body
        self.most_pieces = self.limits.pieces
        self.bytes_left = self.limits.total
        """Lower bound of the bytes that may still be held: what was released since `release_excess` is not added."""
        self.feeds: set[Feed] = set()
        self._most = self.limits.requests
        self._requests: deque[CapturedRequest] = deque()

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[CapturedRequest]:
        """Iterate over the requests, newest first."""
        return reversed(self._requests)

    def find(self, id: str) -> CapturedRequest | None:
        return next((request for request in self._requests if request.record.id == id), None)

    def begin(self, record: Record, head: Head) -> CapturedRequest:
        request = CapturedRequest(self, record, head)
        requests = self._requests
        requests.append(request)
        if len(requests) > self._most:
            self._release_oldest()
        if self.feeds:
            self.publish_change(request)
        return request

    def publish_change(self, request: CapturedRequest) -> None:
        for feed in self.feeds:
            feed.note(request)

    @property
    def total(self) -> int:
        """Bytes of everything that is held."""
        return sum(request.size for request in self._requests)

    def release_excess(self) -> None:
        """Release the oldest requests until the rest is within the limit."""
        self.bytes_left = self.limits.total - self.total
        while self.bytes_left < 0 and self._requests:
            self.bytes_left += self._requests[0].size
            self._release_oldest()

    def _release_oldest(self) -> None:
        request = self._requests.popleft()
        if request.phase != "ended":
            request.release()
        if self.feeds:
            for feed in self.feeds:
                feed.forget(request)


# ── heads ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _head_size(head: Head) -> int:
    return len(head.path) + len(head.query) + (head.size or characters_of(head.headers))


def _cut_head(head: Head) -> Head:
    """Return the beginning of a head, with a header that states how many are left out."""
    kept: dict[str, str] = {}
    left = _MOST_OF_HEAD - 2 * _MOST_OF_PATH
    for name, value in head.headers.items():
        left -= len(name) + len(value)
        if left < 0:
            break
        kept[name] = value
    if len(kept) < len(head.headers):
        kept["…"] = f"{len(head.headers) - len(kept)} more, too long to be held"
    return structs.replace(head, path=_cut(head.path), query=_cut(head.query), headers=kept, size=0)


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_OF_PATH else f"{text[:_MOST_OF_PATH]}…"


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────────

_FEW, _SHORT = 50, 1_000
_SECRET_NAME = re.compile(r"auth|key|token|secret|cookie|password|credential|signature", re.IGNORECASE)


def _is_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None


_names_known: dict[tuple[str, ...], tuple[str, ...]] = {}
"""Header names of a request -> those of them that are secret: a client sends the same names each time."""
_MOST_KNOWN = 256


def _secret_names(names: tuple[str, ...]) -> tuple[str, ...]:
    secret = tuple(filter(_is_secret, names))
    # Clients choose the names: bound the number and length of what is remembered.
    if len(names) <= _FEW and len("".join(names)) <= _SHORT and len(_names_known) < _MOST_KNOWN:
        _names_known[names] = secret
    return secret


def hidden_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return the headers with secrets hidden; the same object if there are none."""
    names = tuple(headers)
    secret = _names_known.get(names)
    if secret is None:
        secret = _secret_names(names)
    return {**headers, **dict.fromkeys(secret, HIDDEN)} if secret else headers


def hidden_query(query: str) -> str:
    return "&".join(_hidden_pair(*pair.partition("=")) for pair in query.split("&"))


def _hidden_pair(name: str, equals: str, value: str) -> str:
    return f"{name}{equals}{HIDDEN if value and _is_secret(unquote(name)) else value}"


def _hidden_address(url: str) -> str:
    if "@" in url:
        url = hide_url(url)
    address, mark, query = url.partition("?")
    return f"{address}?{hidden_query(query)}" if mark else url


# Bodies contain keys of servers that the provider calls itself (MCP, search, data sources). Bodies may have
# megabytes, so only those that mention such a server are searched.
_GOOGLE = (b"mcpServers", b"mcp_servers", b"apiAuth", b"api_auth")
_PLACES: Mapping[str, tuple[bytes, ...]] = {
    "openai-chat": (b'"data_sources"',),
    "openai-responses": (b'"mcp"',),
    "anthropic-messages": (b'"mcp_servers"',),
    "gemini": _GOOGLE,
    "vertex": _GOOGLE,
    "gemini-interactions": (b'"mcp_server"', b'"environment"', b'"retrieval"'),
}


def may_have_keys(body: bytes, format: str) -> bool:
    for place in _PLACES.get(format, ()):  # noqa: SIM110 - a generator costs more than the search
        if body.find(place) >= 0:  # `in` costs several times as much
            return True
    return False


_KEYED = re.compile(
    rb'"(?:(?:proxy-)?authorization(?:_?token)?|(?:x-)?(?:goog-)?api[_-]?key(?:_?string)?|access_?token'
    rb'|client_?secret|password)"\s*+:\s*+(?=")|"headers"\s*+:\s*+(?=\{)',
    re.IGNORECASE,
)
# Possessive quantifiers throughout: bodies are untrusted, and these patterns must never backtrack.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_HEADER = re.compile(rb"[\s,]*+(" + _STRING.pattern + rb')\s*+:\s*+(?:[^\s,"{}\[\]]++)?', re.DOTALL)
_SECRET_HEADER = re.compile(rb"auth|key|token|secret|cookie", re.IGNORECASE)
_HIDDEN_TEXT = f'"{HIDDEN}"'.encode()


def without_keys(body: bytes) -> bytes:
    """Return the body with its keys hidden; the same object if there are none."""
    spans: list[tuple[int, int]] = []
    found = _KEYED.search(body)
    while found is not None:
        start = found.end()
        is_object = body[start : start + 1] == b"{"
        after = _find_secret_headers(body, start + 1, spans) if is_object else _string_end(body, start)
        if not is_object:
            spans.append((start, after))
        found = _KEYED.search(body, after)
    if not spans:
        return body
    out, copied = [], 0
    for start, end in spans:
        out += [body[copied:start], _HIDDEN_TEXT]
        copied = end
    return b"".join([*out, body[copied:]])


def _find_secret_headers(body: bytes, start: int, spans: list[tuple[int, int]]) -> int:
    """Add the spans of the values of secret headers; return where reading ended."""
    while entry := _HEADER.match(body, start):
        start = entry.end()
        if body[start : start + 1] != b'"':
            continue
        end = _string_end(body, start)
        if _SECRET_HEADER.search(entry[1]) is not None:
            spans.append((start, end))
        start = end
    return start


def _string_end(body: bytes, start: int) -> int:
    """Return where the string that begins here ends; the end of the body if it is truncated within the string."""
    string = _STRING.match(body, start)
    return len(body) if string is None else string.end()


def _without_keys_of(channel: Channel, body: bytes) -> bytes:
    """Return an upstream's error body without keys: some upstreams quote them."""
    for secret in channel.credential.secrets:
        if key := secret.reveal().encode():
            body = body.replace(key, HIDDEN.encode())
    return body
