"""The interface between handlers and the HTTP server: one request in, one answer out. Handlers see no other HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from dragoman.gateway.content_coding import CodingError, Decoder, TooLarge, UnknownCoding, decoder_for
from dragoman.gateway.http_request import BadRequest, Head

if TYPE_CHECKING:
    from dragoman.gateway.stored_responses import LocalResponses

MEBIBYTE = 1 << 20
MAX_CONNECTIONS = 10_000


class ServerLimits(Struct, frozen=True, kw_only=True):
    body: int = 64 * MEBIBYTE
    """Maximum bytes of one request body, compressed and decompressed."""
    buffered: int = 256 * MEBIBYTE
    """Maximum bytes of all request bodies together, from their arrival to the end of their answers."""
    heads: int = 16 * MEBIBYTE
    """Maximum bytes of all incomplete heads together; beyond it, connections with the most are cut."""
    unread: int = 256 * MEBIBYTE
    """Maximum bytes of all answers together that clients do not read; beyond it, connections with the most are cut."""
    head_seconds: float = 15.0
    """Time limit for the head of a request, from its first byte."""
    body_rate: float = 1024.0
    """Minimum bytes per second at which a body must arrive, measured over `body_window`."""
    body_window: float = 10.0
    request_seconds: float = 300.0
    """Time limit for a whole request, from the first byte of its head to the last of its body."""
    idle_seconds: float = 75.0
    write_seconds: float = 60.0
    """Time limit for a client that does not read its answer."""
    connections: int = MAX_CONNECTIONS
    streams: int = 100
    """Maximum concurrent streams of one HTTP/2 connection."""


class Gone(Exception):
    """The client has disconnected."""


class Budget:
    """Bytes of request bodies in memory, over all connections."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    def take(self, count: int) -> bool:
        if self.used + count > self.limit:
            return False
        self.used += count
        return True


class BodyReader:
    """One request body as it arrives: decompressed, counted, refused as soon as it exceeds a limit."""

    __slots__ = ("_budget", "_data", "_decoder", "_limit", "_size", "received")

    def __init__(self, coding: str, limit: int, budget: Budget) -> None:
        self._limit = limit
        self._budget = budget
        self._size = 0
        self._data: bytes | bytearray = b""
        self.received = 0
        """Bytes received, before decompression."""
        try:
            self._decoder: Decoder | None = decoder_for(coding) if coding else None
        except UnknownCoding as error:
            raise BadRequest(f"content-encoding {error}", 415) from None

    def feed(self, data: bytes) -> None:
        self.received += len(data)
        if self._decoder is not None:
            data = self._unpack(self._decoder, data)
        count = len(data)
        if self.received > self._limit or self._size + count > self._limit:
            raise too_large(self._limit)
        if not self._budget.take(count):
            raise over_budget()
        self._size += count
        if not self._data:
            self._data = data
        elif isinstance(self._data, bytearray):
            self._data += data
        else:  # many small objects cost more than their bytes: keep one buffer
            self._data = bytearray(self._data) + data

    def whole(self, data: bytes) -> bytes:
        """Read a body that has arrived completely."""
        self.feed(data)
        return data if self._decoder is None else self.end()

    def _unpack(self, decoder: Decoder, data: bytes) -> bytes:
        try:
            return decoder.feed(data, self._limit - self._size)
        except TooLarge:
            raise too_large(self._limit, unpacked=True) from None
        except CodingError as error:
            raise BadRequest(f"the body cannot be decompressed: {error}") from None

    def end(self) -> bytes:
        if self._decoder is not None:
            try:
                self._decoder.end()
            except CodingError as error:
                raise BadRequest(f"the body cannot be decompressed: {error}") from None
        data, self._data = self._data, b""
        return bytes(data)

    def release(self) -> None:
        self._budget.used -= self._size
        self._size = 0
        self._data = b""


def too_large(limit: int, *, unpacked: bool = False) -> BadRequest:
    return BadRequest(f"the body is larger than {limit} bytes{' once decompressed' if unpacked else ''}", 413)


def over_budget() -> BadRequest:
    return BadRequest("the gateway's memory for request bodies is full; try again", 503)


class Tunnel:
    """A connection that has left HTTP: bytes in both directions. `Exchange.open_tunnel` returns it."""

    def __init__(self, budget: Budget, limits: ServerLimits) -> None:
        self.budget = budget
        self.limits = limits

    async def read(self) -> bytes:
        """Return at least one byte, or nothing if the client has disconnected or the server is shutting down."""
        raise NotImplementedError

    @property
    def is_gone(self) -> bool:
        """Whether the client has disconnected."""
        raise NotImplementedError

    def write(self, data: bytes) -> bool:
        """Send now. Returns True if the client reads more slowly than we write: then wait with `drain`."""
        raise NotImplementedError

    async def drain(self) -> None:
        raise NotImplementedError


class Exchange:
    """One request and its answer.

    The body is not read until `receive` is called: handlers check the client's key first.
    """

    # Defaults on the class: most requests change few of them, and setting them would slow every request.
    body = b""
    """The decompressed body; empty until `receive`."""
    also: Mapping[str, str] = MappingProxyType({})
    """Headers that are added to every answer."""
    on_sent: Callable[[int, bytes], None] | None = None
    """Called with an answer that is sent whole."""
    local: LocalResponses | None = None
    """The unstored responses of this request's connection, if it is a WebSocket."""
    digest = ""
    """Digest of the key, for a request that the gateway makes itself on behalf of a client, such as one of a batch."""
    started = False
    whole = False
    """Whether the answer has been sent completely."""

    def __init__(self, head: Head) -> None:
        self.head = head

    def close_after(self) -> None:
        """Close the connection after this answer, if it serves one request at a time (HTTP/1.1)."""

    def receive_arrived(self) -> bool:
        """Read the body to `body` if all of it has arrived, as `receive` does but without a coroutine.

        Return whether it was read. Raises `BadRequest`.
        """
        return False

    async def receive(self, limit: int | None = None) -> bytes:
        """Read the body to `body`: at most `limit` bytes, or the server's own limit if None. Raises `BadRequest`."""
        raise NotImplementedError

    def send(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Send a whole answer."""
        raise NotImplementedError

    def start(self, status: int, headers: Mapping[str, str], first: bytes = b"") -> None:
        """Start an answer of unknown length, with its first bytes."""
        raise NotImplementedError

    def write(self, data: bytes) -> bool:
        """Send now. Returns True if the client reads more slowly than we write: then wait with `drain`."""
        raise NotImplementedError

    async def drain(self) -> None:
        raise NotImplementedError

    def finish(self, last: bytes = b"") -> None:
        raise NotImplementedError

    def open_tunnel(self) -> Tunnel | None:
        """Leave HTTP instead of answering. Returns None if the connection cannot, or the client does not ask for it."""
        return None


class Unattended(Exchange):
    """The exchange of a background request: no client waits for the answer, so what is written is discarded."""

    def __init__(self) -> None:
        super().__init__(Head("POST", "/", "", {}))

    def start(self, status: int, headers: Mapping[str, str], first: bytes = b"") -> None:
        pass

    def write(self, data: bytes) -> bool:  # noqa: ARG002
        return False

    async def drain(self) -> None:
        pass

    def finish(self, last: bytes = b"") -> None:
        pass


Application: TypeAlias = Callable[[Exchange], Awaitable[None]]
