"""What is held of captured requests: values apart from the code that fills them in, which is compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from dragoman.drivers.transport import HttpRequest
from dragoman.loss import Loss

Content: TypeAlias = "bytes | Body"
"""A body as it is; or its beginning without keys, if it is too long to be held."""


class CaptureLimits(Struct, frozen=True, kw_only=True):
    requests: int = 200
    total: int = 32 << 20
    """Bytes of everything that is held."""
    body: int = 2 << 20
    """Bytes of one body, and of each side of a stream. The rest is dropped, and shown as truncated."""
    pieces: int = 4_000
    """Pieces of one stream; further ones are only counted."""


class Body(Struct, frozen=True, gc=False):
    content: bytes
    size: int
    """The original size in bytes."""

    @property
    def is_cut(self) -> bool:
        return self.size > len(self.content)


class Attempt(Struct, frozen=True, kw_only=True, gc=False):
    """One call to one upstream."""

    upstream: str
    model: str
    format: str
    is_same: bool
    """Client and upstream use the same format: bytes pass unchanged."""
    method: str
    url: str
    headers: Mapping[str, str]
    body: Body
    losses: tuple[Loss, ...]
    began: float
    """Seconds since the request came, as are all times here."""
    ended: float | None
    status: int | None
    answer: Body | None
    """The body of an answer that did not stream."""
    failure: str
    error: str


class HeldCall(Struct, gc=False):
    """What is held of one attempt: references to what the call consists of. Times are those of `perf_counter`."""

    upstream: str
    model: str
    format: str
    is_same: bool
    http: HttpRequest
    """The request before it is signed."""
    sent: Content
    losses: tuple[Loss, ...]
    began: float
    ended: float | None = None
    status: int | None = None
    answer: Content | None = None
    failure: str = ""
    error: str = ""
