"""Builds a `Request` from the prompts, tools and choices that drivers accept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Real
from typing import Any

from msgspec import Struct

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
        raise _unknown_settings(sorted(settings.keys() - _KNOWN))
    tools = settings.get("tools") if tools is None else tools
    tool_choice = settings.get("tool_choice") if tool_choice is None else tool_choice
    system = settings.get("system")
    format = settings.get("message_format")
    turns = (*_read_prompt(prompt, format), *read_messages(messages, format))
    if not turns:
        raise InvalidValue(path="$", expected="a prompt or messages", found="nothing to ask")
    definitions = read_tools(tools) if tools else ()
    fields: dict[str, Any] = {name: value for name, value in settings.items() if name in _REQUEST_SETTINGS}
    for name in fields.keys() & _NUMBERS:
        if fields[name] is not None and (isinstance(fields[name], bool) or not isinstance(fields[name], Real)):
            raise InvalidType(path=f"$.{name}", expected="a number", found=f"{fields[name]!r:.80}")
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


def _read_prompt(prompt: Prompt, format: str | None) -> Sequence[Message]:
    if prompt is None:
        return ()
    if isinstance(prompt, str):
        return (Message("user", prompt),)
    given = (prompt,) if isinstance(prompt, Message | Mapping) else prompt
    if not isinstance(given, Iterable):
        raise InvalidType(path="$.prompt", expected="text, a message or messages", found=type(prompt).__name__)
    return read_messages(given, format, place="$.prompt")


_NUMBERS = frozenset(
    {
        "max_output_tokens",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "seed",
        "presence_penalty",
        "frequency_penalty",
        "repetition_penalty",
    }
)
_OTHER_NAMES = {
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "stop_sequences": "stop",
    "instructions": "system",
    "reasoning_effort": "reasoning",
    "thinking": "reasoning",
    "response_format": "output",
}
"""Names of settings in the vendors' APIs."""


def _unknown_settings(names: Sequence[str]) -> InvalidType:
    known = tuple(Settings.__annotations__)
    meant = {name: _OTHER_NAMES.get(name) or next(iter(get_close_matches(name, known, n=1)), None) for name in names}
    hint = ", ".join(f"for {name} use {better}" for name, better in meant.items() if better)
    found = f"unknown settings: {', '.join(names)}"
    # The list would hide the hint, which is what matters.
    expected = "known settings" if all(meant.values()) else f"settings among {', '.join(known)}"
    return InvalidType(path="$", expected=expected, found=found, hint=hint)


def read_tools(tools: Sequence[Tool]) -> tuple[AnyTool, ...]:
    if isinstance(tools, str | bytes | Mapping | Struct) or not isinstance(tools, Iterable):
        raise InvalidType(path="$.tools", expected="a list", found=type(tools).__name__, hint="put it into a list")
    return tuple(found for index, tool in enumerate(tools) for found in _read_tool(tool, f"$.tools[{index}]"))


def _read_tool(tool: Any, place: str) -> Sequence[AnyTool]:
    if isinstance(tool, ToolDefinition | CustomTool | ProviderTool):
        return (tool,)
    if isinstance(tool, Mapping):
        return read_mapping(tool, place)
    if isinstance(tool, HasDefinition):
        return (tool.definition,)
    expected = "a tool definition, a mapping, or an object with a `definition`"
    hint = "make a tool of it with @dragoman.tool" if callable(tool) else ""
    raise InvalidType(path=place, expected=expected, found=type(tool).__name__, hint=hint)


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


def _output(given: object) -> StructuredOutput | None:
    if given is None or isinstance(given, StructuredOutput):
        return given
    if not isinstance(given, Mapping):
        hint = "for a Python type, use output_type"
        raise InvalidType(path="$.output", expected="a JSON Schema", found=type(given).__name__, hint=hint)
    return StructuredOutput("schema", dict(given), name="answer", strict=True)


def _stop(given: str | Iterable[str] | None) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


_READERS: Mapping[str, Any] = {"reasoning": _reasoning, "output": _output, "stop": _stop}
