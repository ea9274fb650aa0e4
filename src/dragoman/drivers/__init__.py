"""Drivers: one request, one answer, from any provider. No loop and no running of tools: those are the agent's."""

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
from dragoman.drivers.scripted import EchoDriver, Scripted, ScriptedDriver

__all__ = [
    "CallMetadata",
    "Defaults",
    "Driver",
    "EchoDriver",
    "FinishReason",
    "QueryResult",
    "RawExchange",
    "Scripted",
    "ScriptedDriver",
    "Settings",
    "StreamResult",
    "result_of",
]
