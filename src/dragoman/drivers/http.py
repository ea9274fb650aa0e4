"""The network, by aiohttp: pooled connections, time limits for every stage of a call, proxies, TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from dragoman.drivers.secret import hidden_url
from dragoman.drivers.transport import HttpRequest, Timeouts, Tls, failed, not_connected
from dragoman.errors import ProviderError

# Some servers take a while to end the body after the end of the answer. Beyond this it is not worth waiting for.
GRACE = 0.25
KEEP_ALIVE = 30.0


def proxy_of_environment(url: str) -> str | None:
    """What HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY say about this address."""
    parts = urlsplit(url)
    if not parts.hostname or proxy_bypass(parts.netloc):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


class HttpTransport:
    """One pool of connections. It belongs to the event loop it is first used in."""

    def __init__(self, *, proxy: str | None = None, tls: Tls | None = None, connections: int = 1000) -> None:
        self._proxy = proxy
        self._tls = tls
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._limits: dict[Timeouts, aiohttp.ClientTimeout] = {}

    def __repr__(self) -> str:
        proxy = "" if self._proxy is None else f"proxy={hidden_url(self._proxy)!r}"
        return f"HttpTransport({proxy})"

    async def send(self, request: HttpRequest, *, timeouts: Timeouts) -> AiohttpResponse:
        session = self._session or self._open()
        if self._loop is not asyncio.get_running_loop():
            raise RuntimeError("a driver belongs to the event loop it was first used in; connect another one here")
        try:
            response = await session.request(
                request.method,
                # As it is: what is escaped in a path is meant to be (and signed, for some).
                URL(request.url, encoded=True),
                data=request.body or None,
                headers=request.headers,
                proxy=self._proxy,
                timeout=self._limit(timeouts),
                # A key goes where it was meant to go, and nowhere else.
                allow_redirects=False,
            )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _sending_failed(error, timeouts) from error
        return AiohttpResponse(response, timeouts)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        self._loop = asyncio.get_running_loop()
        connector = aiohttp.TCPConnector(
            limit=self._connections,
            keepalive_timeout=KEEP_ALIVE,
            ssl=True if self._tls is None else self._tls.context(),
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent",),
            raise_for_status=False,
        )
        return self._session

    def _limit(self, timeouts: Timeouts) -> aiohttp.ClientTimeout:
        limit = self._limits.get(timeouts)
        if limit is None:
            limit = aiohttp.ClientTimeout(
                total=timeouts.total, sock_connect=timeouts.connect, sock_read=timeouts.first_byte
            )
            if timeouts.total is None:  # what is left of a total differs from call to call
                self._limits[timeouts] = limit
        return limit


class AiohttpResponse:
    def __init__(self, response: aiohttp.ClientResponse, timeouts: Timeouts) -> None:
        self._response = response
        self._timeouts = timeouts
        self._read = response.content.readany
        self._begun = False
        self.status = response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return {name.lower(): value for name, value in self._response.headers.items()}

    async def chunk(self) -> bytes:
        try:
            data = await self._read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self._response.close()
            raise self._failure(error) from error
        except BaseException:
            self._response.close()
            raise
        if not self._begun:
            self._begin()
        if not data:
            self._response.release()
        return data

    def _begin(self) -> None:
        """From here on the shorter wait holds."""
        self._begun = True
        connection = self._response.connection
        if connection is not None and connection.protocol is not None:
            connection.protocol.read_timeout = self._timeouts.between_bytes

    async def drain(self) -> None:
        try:
            async with asyncio.timeout(GRACE):
                while await self._read():
                    pass
        except (aiohttp.ClientError, OSError, TimeoutError):
            self._response.close()
        else:
            self._response.release()

    def close(self) -> None:
        self._response.close()

    def _failure(self, error: Exception) -> ProviderError:
        if isinstance(error, TimeoutError):
            return _waited(error, self._timeouts, begun=self._begun)
        return failed("truncated", f"the connection broke inside the answer: {_reason(error)}")


def _sending_failed(error: Exception, timeouts: Timeouts) -> ProviderError:
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return not_connected(f"no connection within {timeouts.connect:g} s")
    if isinstance(error, TimeoutError):
        return _waited(error, timeouts, begun=False)
    return not_connected(f"no answer: {_reason(error)}")


def _waited(error: Exception, timeouts: Timeouts, *, begun: bool) -> ProviderError:
    if not isinstance(error, aiohttp.SocketTimeoutError):
        return failed("timeout", "the time for the whole call is over")
    limit = timeouts.between_bytes if begun else timeouts.first_byte
    stage = "in the middle of the answer" if begun else "before the answer began"
    return failed("timeout", f"nothing came for {limit or 0:g} s {stage}")


def _reason(error: Exception) -> str:
    """Aiohttp's errors quote the address of a proxy, password included: only their kind and the system's word pass."""
    system = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    word = system.strerror if isinstance(system, OSError) else None
    return f"{type(error).__name__}{f' ({word})' if word else ''}"
