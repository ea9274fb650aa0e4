"""What the parts of one run share: setup, conversation, tools, counts, and the channel to its reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.agent.conversation import Conversation
from dragoman.agent.event_channel import Channel
from dragoman.agent.events import AnyAgentEvent
from dragoman.agent.limits import Spending
from dragoman.agent.setup import Setup
from dragoman.agent.tools import Tool
from dragoman.drivers.typed_output import OutputMode, choose_mode
from dragoman.ir import Usage


class RunState:
    def __init__(
        self,
        setup: Setup,
        conversation: Conversation,
        tools: Mapping[str, Tool],
        channel: Channel[AnyAgentEvent],
        *,
        partials: bool = False,
    ) -> None:
        self.setup = setup
        self.conversation = conversation
        self.tools = tools
        self.channel = channel
        self.partials = partials and setup.output is not None
        self.turns = 0
        self.steps = 0
        self.spent = Spending(setup.clock.monotonic)
        if setup.limits is not None and setup.limits.seconds is not None:
            self.spent.start_clock()
        self.mode: OutputMode | None = None
        """How the model is asked for typed output; decided again when the driver changes."""
        self._mode_of: Any = None

    async def emit(self, event: AnyAgentEvent) -> None:
        self.conversation.log_event(event)
        await self.channel.send(event)

    def list_tools(self) -> tuple[Tool, ...]:
        """The agent's tools, those that read long outputs, and the one that takes the answer."""
        cache, output_tool = self.setup.output_cache, self.setup.output_tool
        if cache is None and output_tool is None:
            return tuple(self.tools.values())
        extra = () if cache is None else tuple(tool for tool in cache.tools if tool.name not in self.tools)
        last = (output_tool,) if output_tool is not None and self.output_mode() == "tool" else ()
        return (*self.tools.values(), *extra, *last)

    def tool(self, name: str) -> Tool | None:
        return self.tools.get(name) or next((tool for tool in self.list_tools() if tool.name == name), None)

    def output_mode(self) -> OutputMode | None:
        driver = self.conversation.driver
        if self.setup.output is not None and self._mode_of is not driver:
            beside_tools = bool(self.tools or self.setup.hosted)
            self.mode = choose_mode(driver, self.setup.output_mode, beside_tools=beside_tools)
            self._mode_of = driver
        return self.mode

    def count(self, model: str, usage: Usage) -> None:
        """Count tokens of this run's own model."""
        self.conversation.count(model, usage)
        self.spent.count(model, usage)

    def count_nested(self, model: str, usage: Usage) -> None:
        """Count tokens of an agent that this one called: they cost, but use none of this context window."""
        self.conversation.count_nested(model, usage)
        self.spent.count(model, usage)
