"""Agents: a model, tools, and a loop between them. Told by events, and testable without a network."""

from dragoman.agent.accounts import Account
from dragoman.agent.agent import Agent, AlreadyRunning, RunResult
from dragoman.agent.clock import Clock
from dragoman.agent.compaction import Compaction
from dragoman.agent.events import (
    AnyAgentEvent,
    CompactionCompleteEvent,
    CompactionStartEvent,
    FinalEvent,
    HiddenUserMessageEvent,
    ReasoningDeltaEvent,
    ReasoningEvent,
    RetryEvent,
    StepCompleteEvent,
    StepStartEvent,
    TextDeltaEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    UsageEvent,
    decode_event,
    encode_event,
)
from dragoman.agent.output_cache import OutputCache, OutputRef, is_trimmed, output_ref
from dragoman.agent.output_stores import MemoryStore, OutputStore, SqliteStore
from dragoman.agent.permissions import Allow, Ask, Deny, PermissionRequest, Rule, Rules
from dragoman.agent.sessions import LogLine, Session, SessionInfo, SessionStore, UnknownSession
from dragoman.agent.tools import Depends, Done, Output, Tool, ToolContext, done, tool, tool_from_schema

__all__ = [
    "Account",
    "Agent",
    "Allow",
    "AlreadyRunning",
    "AnyAgentEvent",
    "Ask",
    "Clock",
    "Compaction",
    "CompactionCompleteEvent",
    "CompactionStartEvent",
    "Deny",
    "Depends",
    "Done",
    "FinalEvent",
    "HiddenUserMessageEvent",
    "LogLine",
    "MemoryStore",
    "Output",
    "OutputCache",
    "OutputRef",
    "OutputStore",
    "PermissionRequest",
    "ReasoningDeltaEvent",
    "ReasoningEvent",
    "RetryEvent",
    "Rule",
    "Rules",
    "RunResult",
    "Session",
    "SessionInfo",
    "SessionStore",
    "SqliteStore",
    "StepCompleteEvent",
    "StepStartEvent",
    "TextDeltaEvent",
    "TextEvent",
    "Tool",
    "ToolCallEvent",
    "ToolContext",
    "ToolResultEvent",
    "UnknownSession",
    "UsageEvent",
    "decode_event",
    "done",
    "encode_event",
    "is_trimmed",
    "output_ref",
    "tool",
    "tool_from_schema",
]
