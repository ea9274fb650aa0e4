"""The HTTP client for MCP servers (extra `mcp`): the SDK reads an answer whole, so its size is limited here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import httpx2

MOST = 64 << 20
"""Maximum bytes of one answer, or of one stream of events, which the SDK then opens again."""


MOST_VALUES = 300_000
"""Maximum JSON values of one answer, or of one stream: the SDK makes an object of each, on the event loop, of up to a
hundred times the size of its text."""


class AnswerTooLarge(httpx2.ReadError):
    """An answer that exceeds the limit, or that is compressed and could."""


class JsonValues:
    """Counts the values of JSON that arrives in pieces, by what separates them outside of strings."""

    def __init__(self) -> None:
        self.count = 0
        self._in_string = False
        self._rest = b""

    def feed(self, data: bytes) -> int:
        """Return the count so far."""
        data = self._rest + data
        whole = data.rstrip(b"\\")
        self._rest = b"\\" * ((len(data) - len(whole)) % 2)  # what it escapes is in the next piece
        parts = whole.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(parts[self._in_string :: 2])
        self.count += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        self._in_string ^= len(parts) % 2 == 0
        return self.count


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, values = 0, JsonValues()
        async for data in self._stream:
            size += len(data)
            if size > MOST:
                raise AnswerTooLarge(f"the answer is larger than {MOST} bytes")
            if values.feed(data) > MOST_VALUES:
                raise AnswerTooLarge(f"the answer has more than {MOST_VALUES} values")
            yield data

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _limit_size(response: httpx2.Response) -> None:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise AnswerTooLarge("the answer is compressed, although that was not asked for")
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream)


def make_bounded_client(headers: Mapping[str, str]) -> httpx2.AsyncClient:
    """Return a client. Redirects are left to the SDK, which follows them only within the server's origin."""
    return httpx2.AsyncClient(
        headers={"accept-encoding": "identity", **headers},
        timeout=httpx2.Timeout(30, read=300),
        event_hooks={"response": [_limit_size]},
    )
