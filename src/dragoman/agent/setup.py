"""An agent's configuration, the same for all its runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from dragoman.agent.clock import Clock
from dragoman.agent.compaction import Compaction
from dragoman.agent.limits import Limits
from dragoman.agent.output_cache import OutputCache
from dragoman.agent.permissions import Asker, Hook
from dragoman.agent.tools import Tool
from dragoman.drivers.base import Choice, Settings
from dragoman.drivers.typed_output import RETRIES, Output, OutputMode
from dragoman.ir import Message, ProviderTool

if TYPE_CHECKING:
    from dragoman.agent.tracing import Tracer
else:
    Tracer = Any

StopHook: TypeAlias = Callable[[str], str | None | Awaitable[str | None]]
"""Called with the answer that would be the last; a returned text is sent as a user message, and the run continues."""
Instruction: TypeAlias = str | Callable[..., str | None | Awaitable[str | None]]
"""A text, or a function of dependencies (`Depends`, `ToolContext`) that is called before every request."""
HistoryProcessor: TypeAlias = Callable[[Sequence[Message]], Sequence[Message] | Awaitable[Sequence[Message]]]
"""Returns the messages to send; calls and results that do not pair are repaired, and nothing of it is stored."""
Validator: TypeAlias = Callable[[Any], Any]
"""Returns the value to use, or an awaitable of it; raises `Retry`."""


class Setup(Struct, frozen=True, kw_only=True):
    name: str = "agent"
    system_prompt: str | None = None
    instructions: tuple[Instruction, ...] = ()
    history_processors: tuple[HistoryProcessor, ...] = ()
    max_iterations: int = 200
    limits: Limits | None = None
    tool_choice: Choice = None
    require_done: bool = False
    parallel: bool | int = True
    tool_timeout: float | None = None
    tool_retries: int = 3
    hosted: tuple[ProviderTool, ...] = ()
    permissions: Hook | None = None
    ask: Asker | None = None
    output: Output[Any] | None = None
    output_tool: Tool | None = None
    """The tool whose arguments are the answer, offered in output mode `tool`."""
    output_mode: OutputMode | None = None
    output_retries: int = RETRIES
    output_validators: tuple[Validator, ...] = ()
    output_cache: OutputCache | None = None
    compaction: Compaction | None = None
    on_stop: StopHook | None = None
    overrides: Mapping[Callable[..., Any], Callable[..., Any]] = {}
    deltas: bool = False
    settings: Settings = {}
    clock: Clock = Clock()
    tracer: Tracer | None = None
