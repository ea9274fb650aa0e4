"""Drivers: one request, one answer, from any provider. The loop and the running of tools are the agent's."""

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
