"""The record of one request. It holds neither keys nor bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from dragoman.gateway.capture import CapturedRequest
from dragoman.ir import Usage
from dragoman.loss import Loss

if TYPE_CHECKING:
    from dragoman.gateway.tracing import Trace


_ID_HEADERS: Mapping[str, str] = {"anthropic-messages": "request-id", "bedrock-converse": "x-amzn-requestid"}
"""Where the SDKs of these formats look for the id of a request."""


class Record(Struct, kw_only=True):
    """One request, filled in while it is served."""

    id: str
    client: str
    operation: str
    model: str = ""
    route: str = ""
    key: str = ""
    """The name of the client's key."""
    key_id: str = ""
    stream: bool = False
    started: float
    upstream: str = ""
    target: str = ""
    """The upstream's name for the model."""
    format: str = ""
    """The upstream's format."""
    status: int = 0
    complete: bool = False
    """The model's answer has ended: a client that disconnects then has missed nothing."""
    attempts: int = 0
    first_byte: float | None = None
    usage: Usage | None = None
    expected: Usage | None = None
    """What its key is charged, if that has a budget, should the upstream not report the usage of what it was sent."""
    losses: tuple[Loss, ...] = ()
    failure: str = ""
    error: str = ""
    seconds: float = 0.0
    cost: float | None = None
    capture: CapturedRequest | None = None
    """The capture of this request, for the page and the log."""
    trace: Trace | None = None
    """The OpenTelemetry span of this request."""
    cache: str = ""
    """The result of the response cache: hit, miss or bypass; empty if there is no cache."""
    mcp_calls: int = 0
    """Calls of MCP tools that the gateway ran for this request."""
    settled: bool = False
    """Whether its usage was passed to the ledger."""

    @property
    def id_headers(self) -> dict[str, str]:
        """The headers with the id of this request. An upstream's own id, in a later header, replaces the second."""
        own = _ID_HEADERS.get(self.client)
        return {"x-request-id": self.id} if own is None else {"x-request-id": self.id, own: self.id}

    @property
    def body_id(self) -> str | None:
        """The id for the body of an error, if clients of this format expect one beside that of the headers."""
        return self.id if self.client in _ID_HEADERS else None
