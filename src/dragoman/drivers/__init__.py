"""Drivers: one request, one answer, from any provider. Agents run tools and call drivers in a loop.

- `base`: the interface; `remote` implements it for all providers, `scripted` for tests, `sync` without an event loop.
- `connect`, `providers`, `credentials`, `key_store`: from a name to a driver.
- `query`, `message_dicts`, `tool_dicts`: from what callers give to a request.
- `typed_queries`, `typed_output`, `partial_output`, `python_types`: answers as values of a Python type.
- `transport`, `http`, `retries`, `deadlines`: HTTP; `replay` replaces it in tests.
"""

from dragoman.drivers.base import (
    CallMetadata,
    Defaults,
    Driver,
    FinishReason,
    QueryResult,
    RawExchange,
    Settings,
    StreamResult,
    result_of,
)
from dragoman.drivers.embed import EmbeddingResult
from dragoman.drivers.replay import Replayed, ReplayTransport
from dragoman.drivers.retries import RetryNotice, RetryPolicy
from dragoman.drivers.scripted import EchoDriver, Scripted, ScriptedDriver
from dragoman.drivers.transport import SizeLimits, Timeouts, Tls

__all__ = [
    "CallMetadata",
    "Defaults",
    "Driver",
    "EchoDriver",
    "EmbeddingResult",
    "FinishReason",
    "QueryResult",
    "RawExchange",
    "ReplayTransport",
    "Replayed",
    "RetryNotice",
    "RetryPolicy",
    "Scripted",
    "ScriptedDriver",
    "Settings",
    "SizeLimits",
    "StreamResult",
    "Timeouts",
    "Tls",
    "result_of",
]
