"""Builds a `Request` from the prompts, tools and choices that drivers accept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.drivers.base import Choice, Defaults, HasDefinition, Prompt, Settings, Tool
from dragoman.drivers.message_dicts import MessageLike, read_messages
from dragoman.drivers.tool_dicts import read_mapping
from dragoman.errors import InvalidType, InvalidValue
from dragoman.ir import (
    AnyTool,
    CustomTool,
    Message,
    ProviderTool,
    ReasoningSettings,
    Request,
    StructuredOutput,
    ToolChoice,
    ToolDefinition,
)

# Settings of the call that are not part of the request.
_KNOWN = frozenset(Defaults.__annotations__)
CALLING = frozenset({"headers", "timeout", "errors", "raw", "message_format"})
_REQUEST_SETTINGS = frozenset(Settings.__annotations__) - CALLING - {"system"}


def build_request(
    prompt: Prompt,
    *,
    tools: Sequence[Tool] | None = None,
    tool_choice: Choice = None,
    messages: Sequence[MessageLike] = (),
    settings: Defaults,
) -> Request:
    """The request of one call. `settings` are the driver's defaults merged with those of the call."""
    if not settings.keys() <= _KNOWN:
        unknown = ", ".join(sorted(settings.keys() - _KNOWN))
        known = ", ".join(Settings.__annotations__)
        raise InvalidType(path="$", expected=f"settings among {known}", found=f"unknown settings: {unknown}")
    tools = settings.get("tools") if tools is None else tools
    tool_choice = settings.get("tool_choice") if tool_choice is None else tool_choice
    system = settings.get("system")
    format = settings.get("message_format")
    turns = (*_opening(prompt, format), *read_messages(messages, format))
    if not turns:
        raise InvalidValue(path="$", expected="a prompt or messages", found="nothing to ask")
    definitions = read_tools(tools) if tools else ()
    fields: dict[str, Any] = {name: value for name, value in settings.items() if name in _REQUEST_SETTINGS}
    if not fields.keys().isdisjoint(_READERS):
        fields |= {name: read(fields[name]) for name, read in _READERS.items() if name in fields}
    return Request(
        fields.pop("model", None),
        (Message("system", system), *turns) if system else turns,
        tools=definitions,
        # Every API refuses a choice without tools.
        tool_choice=read_choice(tool_choice) if definitions else None,
        **fields,
    )


def _opening(prompt: Prompt, format: str | None) -> Sequence[Message]:
    if prompt is None:
        return ()
    if isinstance(prompt, str):
        return (Message("user", prompt),)
    given = (prompt,) if isinstance(prompt, Message | Mapping) else prompt
    return read_messages(given, format, place="$.prompt")


def read_tools(tools: Sequence[Tool]) -> tuple[AnyTool, ...]:
    return tuple(found for index, tool in enumerate(tools) for found in _read_tool(tool, f"$.tools[{index}]"))


def _read_tool(tool: Any, place: str) -> Sequence[AnyTool]:
    if isinstance(tool, ToolDefinition | CustomTool | ProviderTool):
        return (tool,)
    if isinstance(tool, Mapping):
        return read_mapping(tool, place)
    if isinstance(tool, HasDefinition):
        return (tool.definition,)
    expected = "a tool definition, a mapping, or an object with a `definition`"
    raise InvalidType(path=place, expected=expected, found=type(tool).__name__)


def read_choice(choice: Choice) -> ToolChoice | None:
    return None if choice is None else ToolChoice.of(choice)


def _reasoning(given: ReasoningSettings | str | int | bool | None) -> ReasoningSettings | None:  # noqa: FBT001
    if given is None or isinstance(given, ReasoningSettings):
        return given
    if isinstance(given, bool):
        return ReasoningSettings("on" if given else "off")
    if isinstance(given, str):
        return ReasoningSettings(effort=given)
    return ReasoningSettings("on", budget_tokens=given)


def _output(given: StructuredOutput | Mapping[str, Any] | None) -> StructuredOutput | None:
    if given is None or isinstance(given, StructuredOutput):
        return given
    return StructuredOutput("schema", dict(given), name="answer", strict=True)


_READERS: Mapping[str, Any] = {"reasoning": _reasoning, "output": _output, "stop": tuple}
