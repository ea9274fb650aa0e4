"""The record of one request. It holds neither keys nor bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from dragoman.gateway.capture import CapturedRequest
from dragoman.ir import Usage
from dragoman.loss import Loss

if TYPE_CHECKING:
    from dragoman.gateway.tracing import Trace


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
