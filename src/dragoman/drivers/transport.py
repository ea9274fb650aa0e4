"""What drivers need of a network: one request out, one response in, in chunks. Implementations live elsewhere."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from dragoman.errors import CONNECTION, NO_ANSWER, ProviderError, provider_error
from dragoman.ir import Failure, FailureKind

MEBIBYTE = 1 << 20
NOBODY_LISTENS = "nothing is listening at"


class Timeouts(Struct, frozen=True, kw_only=True):
    """Seconds; None waits for ever."""

    connect: float | None = 10.0
    first_byte: float | None = 600.0
    """From the request to the first byte of its answer: a model may think for minutes before it speaks."""
    between_bytes: float | None = 120.0
    """Of a stream. All providers send something while they work, if only comments."""
    total: float | None = None
    """For everything, retries included."""


class SizeLimits(Struct, frozen=True, kw_only=True):
    """Bytes."""

    request: int = 512 * MEBIBYTE
    response: int = 512 * MEBIBYTE
    error: int = MEBIBYTE
    """Of a refusal. What is beyond it is not read."""
    event: int = 64 * MEBIBYTE


class Tls(Struct, frozen=True, kw_only=True):
    """How servers prove who they are, and we who we are."""

    ca_file: str | None = None
    """Certificates to trust besides those of the system."""
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
    """Headers are found by their names in lower case, whatever the server wrote.

    Failures are `ProviderError`s: `ConnectionFailed`, `NoAnswer`, `TimedOut`, `AnswerCut`.
    """

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def chunk(self) -> bytes:
        """What has come since the last time, waiting for something; empty at the end, where it lets go by itself."""
        ...

    async def drain(self) -> None:
        """The answer is complete: give the connection back, if its end comes right away."""
        ...

    def close(self) -> None:
        """Close the connection, now. Harmless at the end."""
        ...


class Transport(Protocol):
    async def send(self, request: HttpRequest, *, timeouts: Timeouts) -> HttpResponse: ...

    async def close(self) -> None: ...


async def read_whole(response: HttpResponse, limit: int, *, truncate: bool = False) -> bytes:
    """The whole body, within the limit; with `truncate`, what is beyond it is left on the wire."""
    chunks: list[bytes] = []
    size = 0
    try:
        while chunk := await response.chunk():
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
            raise failed("too_large", f"the answer is larger than {limit} bytes")
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def failed(kind: FailureKind, message: str, *, raw_type: str | None = None) -> ProviderError:
    """A failure that no provider told."""
    return provider_error(Failure(kind, message, raw_type=raw_type))


def not_connected(message: str) -> ProviderError:
    """Nothing of the request was sent: sending it again cannot process it twice."""
    return failed("server", message, raw_type=CONNECTION)


def origin_of(url: str) -> str:
    """Scheme, host and port: a path or a query may have what should not be shown."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{parts.port}' if parts.port else ''}"


def no_connection(error: BaseException, url: str, reason: str) -> str:
    """Which address does not take a connection, and the likely cause."""
    where = origin_of(url)
    if isinstance(error, ConnectionRefusedError):
        return f"no connection: {NOBODY_LISTENS} {where}"
    if isinstance(error, socket.gaierror):
        return f"no connection: there is no host {urlsplit(url).hostname!r}, or this machine is offline ({where})"
    if isinstance(error, ssl.SSLError):
        return f"no connection: {where} does not offer a TLS connection that can be trusted ({reason})"
    return f"no connection to {where}: {reason}"


def not_answered(message: str) -> ProviderError:
    """The request was sent, perhaps in part, and the connection broke: the server may have processed it."""
    return failed("server", message, raw_type=NO_ANSWER)
