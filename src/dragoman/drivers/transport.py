"""The transport interface of drivers: one request, one response in chunks."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from msgspec import Struct

from dragoman.errors import CONNECTION, NO_ANSWER, LimitExceeded, ProviderError, provider_error
from dragoman.ir import Failure, FailureKind

MEBIBYTE = 1 << 20
NOTHING_LISTENS = "nothing is listening at"


class Timeouts(Struct, frozen=True, kw_only=True):
    """Time limits in seconds; None means no limit."""

    connect: float | None = 10.0
    first_byte: float | None = 600.0
    """From the request to the first byte of the answer: models may think for minutes."""
    between_bytes: float | None = 120.0
    """Between two reads of a stream. All providers send at least comments while they work."""
    total: float | None = None
    """For the whole call, including retries."""


class SizeLimits(Struct, frozen=True, kw_only=True):
    """Size limits in bytes."""

    request: int = 512 * MEBIBYTE
    response: int = 512 * MEBIBYTE
    error: int = MEBIBYTE
    """Of an error body; the rest is not read."""
    event: int = 64 * MEBIBYTE


class Tls(Struct, frozen=True, kw_only=True):
    """TLS settings: trusted certificates and our own."""

    ca_file: str | None = None
    """Certificates to trust in addition to the system's."""
    client_certificate: str | None = None
    client_key: str | None = None
    verify: bool = True

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self.ca_file is not None:
            context.load_verify_locations(self.ca_file)
        if self.client_certificate is not None:
            context.load_cert_chain(self.client_certificate, self.client_key)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


class HttpRequest(Struct, frozen=True, kw_only=True):
    method: str = "POST"
    url: str
    headers: dict[str, str] = {}
    body: bytes = b""


class HttpResponse(Protocol):
    """Header names are lower case, whatever the server sent.

    Failures are `ProviderError`s: `ConnectionFailed`, `NoAnswer`, `TimedOut`, `AnswerCut`.
    """

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def chunk(self) -> bytes:
        """Waits for the next bytes; empty at the end, where the connection is released."""
        ...

    async def drain(self) -> None:
        """The answer is complete: returns the connection to the pool if the body ends soon."""
        ...

    def close(self) -> None:
        """Closes the connection at once. Does nothing at the end."""
        ...


class Transport(Protocol):
    async def send(self, request: HttpRequest, *, timeouts: Timeouts) -> HttpResponse: ...

    async def close(self) -> None: ...


async def read_whole(
    response: HttpResponse, limit: int, *, truncate: bool = False, count: Callable[[int], None] | None = None
) -> bytes:
    """Reads the whole body, up to the limit; with `truncate`, the rest is not read.

    `count` is called with the size of each chunk before it is kept; what it raises ends the answer.
    """
    chunks: list[bytes] = []
    size = 0
    try:
        while chunk := await response.chunk():
            if count is not None:
                count(len(chunk))
            chunks.append(chunk)
            size += len(chunk)
            if size > limit:
                break
    except BaseException:
        response.close()
        raise
    if size > limit:
        response.close()
        if not truncate:
            words = f"the answer is larger than {limit} bytes"
            raise transport_error("too_large", words, raw_type=LimitExceeded.__name__)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def transport_error(kind: FailureKind, message: str, *, raw_type: str | None = None) -> ProviderError:
    """An error that was not reported by the provider."""
    return provider_error(Failure(kind, message, raw_type=raw_type))


def connection_error(message: str) -> ProviderError:
    """The error if nothing was sent, so that a retry cannot run the request twice."""
    return transport_error("server", message, raw_type=CONNECTION)


def proxy_of_environment(url: str) -> str | None:
    """The proxy for this address by HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, if there is one."""
    parts = urlsplit(url)
    if not parts.hostname or proxy_bypass(parts.netloc):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def origin_of(url: str) -> str:
    """Scheme, host and port, without path and query, which may hold secrets."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{parts.port}' if parts.port else ''}"


def describe_connection_error(error: BaseException, url: str, reason: str) -> str:
    """Describes a failed connection: the address and the likely cause."""
    where = origin_of(url)
    if isinstance(error, ConnectionRefusedError):
        return f"no connection: {NOTHING_LISTENS} {where}"
    if isinstance(error, socket.gaierror):
        return f"no connection: there is no host {urlsplit(url).hostname!r}, or this machine is offline ({where})"
    if isinstance(error, ssl.SSLError):
        return f"no connection: {where} does not offer a TLS connection that can be trusted ({reason})"
    return f"no connection to {where}: {reason}"


def no_answer_error(message: str) -> ProviderError:
    """The error if the connection broke after sending began: the server may have processed the request."""
    return transport_error("server", message, raw_type=NO_ANSWER)
