"""Agents: a model, tools, and the loop between them, reported as events and testable without a network.

- `agent`, `setup`, `run_state`: the public class, its configuration, and the state of one run.
- `loop`, `model_turns`, `steps`, `execution`: the loop, its requests to the model, the calls of a turn, one call.
- `conversation`, `history_repair`, `compaction`, `sessions`: the history, and how it is stored.
- `tools`, `toolsets`, `sub_agents`, `mcp`: where tools come from; `validation` checks their arguments.
- `permissions`, `pending`, `paused_runs`: calls that wait for a decision.
- `output_cache`, `output_stores`, `output_tools`: long outputs of tools.
- `events`, `front_ends`, `as_model`: a run as events, for user interfaces, and as the answer of a model.
- `evaluation`, `testing`: for tests of agents.
"""

from dragoman.agent.agent import Agent, AgentOptions, AlreadyRunning, RunResult
from dragoman.agent.clock import Clock
from dragoman.agent.compaction import Compaction
from dragoman.agent.events import (
    AgentEvent,
    AnyAgentEvent,
    CompactionCompleteEvent,
    CompactionStartEvent,
    FinalEvent,
    FinalResponseEvent,
    HandOffEvent,
    HiddenUserMessageEvent,
    HostedCallEvent,
    LimitEvent,
    NestedEvent,
    PartialOutputEvent,
    PendingEvent,
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
from dragoman.agent.limits import LimitReached, Limits
from dragoman.agent.output_cache import (
    OutputCache,
    OutputRef,
    UnknownOutput,
    expand_output,
    is_trimmed,
    output_ref,
)
from dragoman.agent.output_stores import MemoryStore, OutputStore, SqliteStore
from dragoman.agent.pending import BadDecisions, Decision, PendingCall
from dragoman.agent.permissions import Allow, Ask, Defer, Deny, PermissionRequest, Rule, Rules, pause
from dragoman.agent.sessions import LogLine, Session, SessionInfo, SessionStore, UnknownSession
from dragoman.agent.sub_agents import agent_tool, hand_off_tool
from dragoman.agent.token_totals import Account
from dragoman.agent.tools import (
    Deferred,
    Depends,
    Done,
    HandOff,
    Output,
    Retry,
    Tool,
    ToolContext,
    done,
    tool,
    tool_from_schema,
)
from dragoman.agent.toolsets import Toolset, toolset
from dragoman.drivers.typed_output import NoOutput, SchemaRefused

__all__ = [
    "Account",
    "Agent",
    "AgentEvent",
    "AgentOptions",
    "Allow",
    "AlreadyRunning",
    "AnyAgentEvent",
    "Ask",
    "BadDecisions",
    "Clock",
    "Compaction",
    "CompactionCompleteEvent",
    "CompactionStartEvent",
    "Decision",
    "Defer",
    "Deferred",
    "Deny",
    "Depends",
    "Done",
    "FinalEvent",
    "FinalResponseEvent",
    "HandOff",
    "HandOffEvent",
    "HiddenUserMessageEvent",
    "HostedCallEvent",
    "LimitEvent",
    "LimitReached",
    "Limits",
    "LogLine",
    "MemoryStore",
    "NestedEvent",
    "NoOutput",
    "Output",
    "OutputCache",
    "OutputRef",
    "OutputStore",
    "PartialOutputEvent",
    "PendingCall",
    "PendingEvent",
    "PermissionRequest",
    "ReasoningDeltaEvent",
    "ReasoningEvent",
    "Retry",
    "RetryEvent",
    "Rule",
    "Rules",
    "RunResult",
    "SchemaRefused",
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
    "Toolset",
    "UnknownOutput",
    "UnknownSession",
    "UsageEvent",
    "agent_tool",
    "decode_event",
    "done",
    "encode_event",
    "expand_output",
    "hand_off_tool",
    "is_trimmed",
    "output_ref",
    "pause",
    "tool",
    "tool_from_schema",
    "toolset",
]
