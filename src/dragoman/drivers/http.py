"""HTTP transport on aiohttp: connection pool, time limits for every stage of a call, proxies, TLS."""

from __future__ import annotations

import asyncio
import io
import weakref
from collections.abc import Mapping
from functools import cache
from math import inf
from typing import NamedTuple

import aiohttp
from yarl import URL

from dragoman.drivers.deadlines import Deadlines
from dragoman.drivers.secret import hide_url
from dragoman.drivers.transport import (
    HttpRequest,
    Timeouts,
    Tls,
    connection_error,
    describe_connection_error,
    no_answer_error,
    origin_of,
    transport_error,
)
from dragoman.errors import ProviderError

# Seconds to wait for the end of the body after the end of the answer; some servers are slow to end it.
GRACE = 0.25
KEEP_ALIVE = 30.0
_LARGE = 1 << 20


class HttpTransport:
    """One pool of connections. It belongs to the event loop it is first used in.

    A pool that was not closed is closed when the transport is collected.
    """

    def __init__(self, *, proxy: str | None = None, tls: Tls | None = None, connections: int = 1000) -> None:
        self._proxy = proxy
        self._tls = tls
        self._connections = connections
        self._open: _Open | None = None
        self._finalizer: weakref.finalize[..., HttpTransport] | None = None

    def __repr__(self) -> str:
        proxy = "" if self._proxy is None else f"proxy={hide_url(self._proxy)!r}"
        return f"HttpTransport({proxy})"

    async def send(self, request: HttpRequest, *, timeouts: Timeouts) -> AiohttpResponse:
        loop = asyncio.get_running_loop()
        opened = self._open or self._open_session(loop)
        if opened.loop is not loop:
            raise RuntimeError(
                "a driver belongs to the event loop it was first used in; connect a new one in this loop"
            )
        started = loop.time()
        end = inf if timeouts.total is None else started + timeouts.total
        first = inf if timeouts.first_byte is None else started + timeouts.first_byte
        sending = opened.session.request(
            request.method,
            # Send the path unchanged: its escapes are intended (and signed, for some providers).
            URL(request.url, encoded=True),
            data=_sendable(request.body),
            headers=request.headers,
            proxy=self._proxy,
            timeout=_connect_timeout(timeouts.connect),
            # No redirects: the key must not reach another host.
            allow_redirects=False,
        )
        try:
            response = await opened.deadlines.wait(sending, min(first, end))
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _sending_error(error, request.url, timeouts, over=loop.time() >= end) from error
        return AiohttpResponse(response, timeouts, opened, min(first, end), end, pool=self)

    async def close(self) -> None:
        opened, self._open = self._open, None
        if self._finalizer is not None:
            self._finalizer.detach()
        if opened is not None:
            opened.deadlines.close()
            await opened.session.close()

    @property
    def connections_in_use(self) -> int:
        connector = None if self._open is None else self._open.session.connector
        return 0 if connector is None else len(connector._acquired)  # noqa: SLF001 - aiohttp has no public count

    def _open_session(self, loop: asyncio.AbstractEventLoop) -> _Open:
        connector = aiohttp.TCPConnector(
            limit=self._connections,
            keepalive_timeout=KEEP_ALIVE,
            ssl=True if self._tls is None else self._tls.context(),
        )
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            raise_for_status=False,
        )
        self._open = _Open(loop, session, Deadlines(loop))
        self._finalizer = weakref.finalize(self, _close_forgotten, loop, session)
        return self._open


def _close_forgotten(loop: asyncio.AbstractEventLoop, session: aiohttp.ClientSession) -> None:
    """Close a pool without waiting, from any thread. Otherwise aiohttp warns about sessions that users never saw."""
    connector = session.connector
    session.detach()
    if connector is None:
        return
    close = connector._close  # noqa: SLF001 - the public one starts a task, which the end of the loop would interrupt
    try:
        loop.call_soon_threadsafe(close)
    except RuntimeError:  # the loop has ended
        close()


def _sendable(body: bytes) -> bytes | io.BytesIO | None:
    """Large bodies are sent in pieces: in one piece they would block the loop (aiohttp warns about it)."""
    return io.BytesIO(body) if len(body) >= _LARGE else body or None


class _Open(NamedTuple):
    loop: asyncio.AbstractEventLoop
    session: aiohttp.ClientSession
    deadlines: Deadlines


@cache
def _connect_timeout(seconds: float | None) -> aiohttp.ClientTimeout:
    """Aiohttp's timer, only for connecting; all other waits are limited here."""
    return aiohttp.ClientTimeout(total=None, sock_connect=seconds)


class AiohttpResponse:
    __slots__ = (
        "_at_end",
        "_deadlines",
        "_end",
        "_now",
        "_pause",
        "_pool",
        "_read",
        "_response",
        "_timeouts",
        "_until",
        "headers",
        "status",
    )

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        timeouts: Timeouts,
        opened: _Open,
        first: float,
        end: float,
        *,
        pool: HttpTransport,
    ) -> None:
        self._response = response
        # Keeps the connections open until the answer has been read, even if the driver is forgotten meanwhile.
        self._pool = pool
        self._timeouts = timeouts
        self._read = response.content.readany
        self._at_end = response.content.at_eof
        self._deadlines = opened.deadlines
        self._now = opened.loop.time
        self._pause = inf if timeouts.between_bytes is None else timeouts.between_bytes
        self._end = end
        # Until the first byte of the body, the time limit of the request applies.
        self._until = first
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def chunk(self) -> bytes:
        if self._at_end():
            # Nearly always the case after the first piece of an answer that is not streamed.
            self._response.release()
            return b""
        try:
            data = await self._deadlines.wait(self._read(), self._until)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self._response.close()
            raise self._failure(error) from error
        except BaseException:
            self._response.close()
            raise
        if data:
            until = self._now() + self._pause
            self._until = min(self._end, until)
        else:
            self._response.release()
        return data

    async def drain(self) -> None:
        try:
            while await self._deadlines.wait(self._read(), self._now() + GRACE):
                pass
        except (aiohttp.ClientError, OSError, TimeoutError):
            self._response.close()
        except BaseException:
            self._response.close()
            raise
        else:
            self._response.release()

    def close(self) -> None:
        self._response.close()

    def _failure(self, error: Exception) -> ProviderError:
        if not isinstance(error, TimeoutError):
            return transport_error("truncated", f"the connection broke inside the answer: {_reason(error)}")
        if self._now() >= self._end:
            return transport_error("timeout", _OVER)
        return transport_error("timeout", f"no data for {self._timeouts.between_bytes:g} s in the middle of the answer")


_OVER = "the time limit of the whole call was exceeded"


def _sending_error(error: Exception, url: str, timeouts: Timeouts, *, over: bool) -> ProviderError:
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return connection_error(f"no connection to {origin_of(url)} within {timeouts.connect:g} s")
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return connection_error(f"no connection to the proxy for {origin_of(url)}: {_reason(error)}")
    if isinstance(error, aiohttp.ClientConnectorError):
        return connection_error(describe_connection_error(error.os_error, url, _reason(error)))
    if not isinstance(error, TimeoutError):
        return no_answer_error(f"no answer: {_reason(error)}")
    return transport_error(
        "timeout", _OVER if over else f"no data for {timeouts.first_byte:g} s before the answer began"
    )


def _reason(error: Exception) -> str:
    """Aiohttp's errors quote proxy URLs with passwords: only the kind and the system's message are used."""
    system = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    word = system.strerror if isinstance(system, OSError) else None
    return f"{type(error).__name__}{f' ({word})' if word else ''}"
