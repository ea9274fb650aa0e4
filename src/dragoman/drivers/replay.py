"""A transport that replays given bytes, for tests: `ReplayTransport([Replayed(chunks=[b'data: {"a', b'":1}'])])`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from dragoman.drivers.transport import HttpRequest, Timeouts, transport_error
from dragoman.errors import ProviderError, ScriptExhausted


class Replayed(Struct, frozen=True, kw_only=True):
    """One response, in these chunks. `breaks`: the connection is lost after the last one."""

    status: int = 200
    headers: Mapping[str, str] = {}
    chunks: Sequence[bytes] = ()
    breaks: bool = False


Replay: TypeAlias = Iterable[Replayed | ProviderError] | Callable[[HttpRequest], Replayed | ProviderError]


class ReplayTransport:
    """Replays responses in order, or from a function.

    `requests` holds what was sent, including keys, for assertions.
    """

    def __init__(self, replay: Replay) -> None:
        self.requests: list[HttpRequest] = []
        self.closed = False
        self._ask = replay if callable(replay) else None
        self._queue = deque[Replayed | ProviderError]() if callable(replay) else deque(replay)

    async def send(self, request: HttpRequest, *, timeouts: Timeouts) -> ReplayedResponse:  # noqa: ARG002
        self.requests.append(request)
        if self._ask is None and not self._queue:
            raise ScriptExhausted(f"nothing left to replay for request {len(self.requests)}")
        answer = self._queue.popleft() if self._ask is None else self._ask(request)
        if isinstance(answer, ProviderError):
            raise answer
        return ReplayedResponse(answer)

    async def close(self) -> None:
        self.closed = True


class ReplayedResponse:
    def __init__(self, replayed: Replayed) -> None:
        self.status = replayed.status
        self.headers = {name.lower(): value for name, value in replayed.headers.items()}
        self.closed = False
        self._breaks = replayed.breaks
        self._chunks = deque(chunk for chunk in replayed.chunks if chunk)

    async def chunk(self) -> bytes:
        if self._chunks:
            return self._chunks.popleft()
        if self._breaks:
            raise transport_error("truncated", "the connection broke inside the answer: replayed")
        return b""

    async def drain(self) -> None:
        self._chunks.clear()

    def close(self) -> None:
        self.closed = True
