"""Tools: functions that a model may call, and what becomes of the things they return."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias, TypeVar, get_args, get_origin, overload

import msgspec
from msgspec import Struct, structs

from dragoman.agent.docstrings import read_docstring
from dragoman.agent.threads import in_thread
from dragoman.agent.validation import problems_of
from dragoman.drivers.base import Driver
from dragoman.drivers.python_types import Parameter, arguments_of, parameters_of
from dragoman.ir import (
    Audio,
    Document,
    Image,
    Message,
    Opaque,
    ResultKind,
    SearchResult,
    Text,
    ToolCall,
    ToolDefinition,
    ToolResult,
    Usage,
)
from dragoman.ir.values import to_raw

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
RESERVED = frozenset({"auto", "none", "required"})
"""As a tool choice they mean a way of choosing."""

Content: TypeAlias = Text | Image | Document | Audio | SearchResult | Opaque
F = TypeVar("F", bound=Callable[..., Any])


class BadArguments(ValueError):
    """Arguments that are not what the tool's schema says. The tool did not run."""


class Done(Exception):
    """Raised by a tool: the run is finished, and this is its answer."""

    def __init__(self, message: str = "") -> None:
        self.message = message
        super().__init__(message)


class Retry(Exception):
    """Raised by a tool or an output validator: what the model did was wrong, and it may try again. Say why."""

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)


class Deferred(Exception):
    """Raised by a tool: the result comes later, from outside. The run pauses, and `Agent.resume` takes the result."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason
        super().__init__(reason)


class Suspended(Exception):
    """Raised by a tool that runs an agent: calls of that agent wait, and this is its history (`agent_tool`)."""

    def __init__(self, history: Sequence[Message]) -> None:
        self.history = history
        super().__init__("calls of an agent wait for decisions")


class Resumed(Struct, frozen=True):
    """How an agent that waited behind a tool goes on."""

    history: tuple[Message, ...]
    decisions: Mapping[str, Any]


class HandOff(Struct, frozen=True):
    """Returned by a tool: from the next request on, this model answers. A driver, or a name for `connect`."""

    driver: Driver | str
    reason: str = ""


class Output(Struct, frozen=True):
    """What a tool gives back when it wants to say the kind itself."""

    kind: ResultKind
    value: Any = None
    parts: tuple[Content, ...] = ()


class ToolContext(Struct, frozen=True):
    """What a tool is told about the call, if one of its parameters has this type."""

    call: ToolCall
    history: tuple[Message, ...] = ()
    overrides: Mapping[Callable[..., Any], Callable[..., Any]] = {}
    emit: Callable[[Any], Awaitable[None]] | None = None
    """Reports an event of the tool's own to the reader of the run."""
    count: Callable[[str, Usage], None] | None = None
    """Adds tokens that the tool used, by the name of the model, to those of the run."""
    resumed: Resumed | None = None
    """Of a tool that runs an agent: set when that agent waited for decisions, and they are there."""

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at this call, also after a restart; unique within its conversation."""
        return self.call.id


class Depends:
    """A parameter that the model does not give: a function, sync or async, makes it for each call.

    `def search(query: str, index: Annotated[Index, Depends(open_index)]) -> str`, or as its default value. The function
    may have such parameters itself. `Agent(overrides={open_index: fake_index})` puts another one in its place.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


Runner: TypeAlias = Callable[[dict[str, Any], ToolContext], Awaitable[Any]]
Decoder: TypeAlias = Callable[[Any], dict[str, Any]]


class Tool(Struct, frozen=True, kw_only=True):
    """One tool. Made by `tool`, by `tool_from_schema`, or by a source of tools such as an MCP server."""

    definition: ToolDefinition
    run: Runner
    decode: Decoder
    """Arguments as the model gave them -> as the function takes them; raises `BadArguments`."""
    function: Callable[..., Any] | None = None
    title: str | None = None
    """For people, where the name is not enough: the title of its steps."""
    display_name: str | None = None
    """What events show of it beside its name; the title where there is none."""
    read_only: bool = False
    """Changes nothing: permission rules may allow it beforehand."""
    ends_run: bool = False
    """A done tool: calls after it in the same turn are not run."""
    keeps_output: bool = True
    """Whether the output cache may store and cut what it returns."""
    timeout: float | None = None
    """Seconds."""
    max_retries: int | None = None
    """How often the model may try again after `Retry`, one after the other; None: as the agent says."""
    idempotent: bool = False
    """Calling it twice does what calling it once does: after a time-out or an error it is tried again by itself."""
    needs_approval: bool = False
    """A person decides about each call; without one to ask, the run pauses."""
    sequential: bool = False
    """Runs alone, never at the same time as another call."""
    agent: Callable[[Sequence[Message]], Awaitable[Any]] | None = None
    """Makes the agent behind the tool, with a history, if it is one (`agent_tool`)."""

    @property
    def name(self) -> str:
        return self.definition.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself, as if it were no tool."""
        if self.function is None:
            raise TypeError(f"{self.name} has no function of its own")
        return self.function(*args, **kwargs)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What may be said about a tool beyond its function."""

    name: str | None = None
    description: str | None = None
    strict: bool | None = None
    title: str | None = None
    display_name: str | None = None
    read_only: bool = False
    ends_run: bool = False
    keeps_output: bool = True
    timeout: float | None = None
    max_retries: int | None = None
    idempotent: bool = False
    needs_approval: bool = False
    sequential: bool = False


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(**options: Any) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function, sync or async; the schema comes from its type hints and docstring.

    Options: name, description, strict, title, display_name, read_only, ends_run, keeps_output, timeout, max_retries,
    idempotent, needs_approval, sequential.

    >>> @tool
    ... def add(a: int, b: int = 1) -> int:
    ...     '''Add two numbers.'''
    ...     return a + b
    >>> add.definition.parameters["required"], add(2)
    (['a'], 3)
    """
    chosen = Options(**options)
    if function is None:
        return lambda given: _from_function(given, chosen)
    return _from_function(function, chosen)


def tool_from_schema(
    function: Callable[[dict[str, Any]], Any], *, name: str, parameters: Mapping[str, Any], **options: Any
) -> Tool:
    """A tool with a schema written by hand. The function takes the arguments as one mapping, checked against it."""
    chosen = Options(name=name, **options)
    schema = dict(parameters)

    async def run(arguments: dict[str, Any], _context: ToolContext) -> Any:
        return await called(function, arguments)

    return _made(chosen, name, schema, run=run, decode=checking(schema), function=function)


def client_tool(definition: ToolDefinition) -> Tool:
    """A tool that the caller of the agent runs: a call of it pauses the run until its result is there."""

    async def run(_arguments: dict[str, Any], _context: ToolContext) -> Any:
        raise Deferred("the client runs it")

    return Tool(definition=definition, run=run, decode=dict, read_only=True)


def checking(schema: Mapping[str, Any]) -> Decoder:
    """Arguments as they are, if the schema accepts them."""

    def decode(given: Any) -> dict[str, Any]:
        problems = problems_of(schema, given)
        if problems:
            raise BadArguments("; ".join(problems))
        arguments: dict[str, Any] = given
        return arguments

    return decode


def _from_function(function: Callable[..., Any], options: Options) -> Tool:
    if isinstance(function, Tool):
        raise TypeError(f"{function.name} is a tool already")
    name = options.name or str(getattr(function, "__name__", ""))
    summary, descriptions = read_docstring(function.__doc__)
    parameters = parameters_of(function)
    injected = _injected(parameters)
    given = arguments_of(name, [one for one in parameters if one.name not in injected], descriptions)

    async def run(arguments: dict[str, Any], context: ToolContext) -> Any:
        if not injected:
            return await called(function, **arguments)
        found = await _resolved(injected, context, {})
        return await called(function, **arguments, **found)

    def decode(arguments: Any) -> dict[str, Any]:
        try:
            return given.decode(arguments)
        except ValueError as error:
            raise BadArguments(str(error)) from None

    described = msgspec.structs.replace(options, description=options.description or summary)
    return _made(described, name, given.schema, run=run, decode=decode, function=function)


def _made(options: Options, name: str, schema: dict[str, Any], **rest: Any) -> Tool:
    check_name(name)
    return Tool(
        definition=ToolDefinition(name, options.description or "", schema, options.strict),
        title=options.title,
        display_name=options.display_name,
        read_only=options.read_only,
        ends_run=options.ends_run,
        keeps_output=options.keeps_output,
        timeout=options.timeout,
        max_retries=options.max_retries,
        idempotent=options.idempotent,
        needs_approval=options.needs_approval,
        sequential=options.sequential,
        **rest,
    )


def check_name(name: str) -> None:
    if NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} is no name for a tool: 1 to 64 letters, digits, _ and - of ASCII")
    if name in RESERVED:
        raise ValueError(f"a tool called {name!r} could not be chosen: the word means a way of choosing")


# ── what is not given by the model ────────────────────────────────────────────────────────────────────────────

Injected: TypeAlias = dict[str, Depends | type[ToolContext]]


def _injected(parameters: Sequence[Parameter]) -> Injected:
    found: Injected = {}
    for one in parameters:
        hints = get_args(one.hint) if get_origin(one.hint) is Annotated else (one.hint,)
        asked = next((extra for extra in (*hints, one.default) if isinstance(extra, Depends)), None)
        if asked is not None:
            found[one.name] = asked
        elif hints[0] is ToolContext:
            found[one.name] = ToolContext
    return found


async def _resolved(injected: Injected, context: ToolContext, made: dict[Callable[..., Any], Any]) -> dict[str, Any]:
    """One value per function and call, however many parameters ask for it."""
    return {
        name: await _made_by(one, context, made) if isinstance(one, Depends) else context
        for name, one in injected.items()
    }


async def call_with_dependencies(function: Callable[..., Any], context: ToolContext) -> Any:
    """The answer of a function all of whose parameters are dependencies."""
    value = function(**await _resolved(_injected(parameters_of(function)), context, {}))
    return await value if inspect.isawaitable(value) else value


async def _made_by(asked: Depends, context: ToolContext, made: dict[Callable[..., Any], Any]) -> Any:
    if asked.function not in made:
        function = context.overrides.get(asked.function, asked.function)
        inner = _injected(parameters_of(function))
        value = function(**await _resolved(inner, context, made))
        made[asked.function] = await value if inspect.isawaitable(value) else value
    return made[asked.function]


async def called(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The function's answer. One that is not async runs in a thread, so that it does not block the event loop."""
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    value = await in_thread(function, *args, **kwargs)
    return await value if inspect.isawaitable(value) else value


# ── what a tool returns ───────────────────────────────────────────────────────────────────────────────────────


def result_of(call: ToolCall, value: Any) -> ToolResult:
    """Text is text, parts are multimodal (also with text beside them), a result is itself, anything else is data.

    Raises `TypeError` when it cannot be said in JSON.
    """
    if isinstance(value, ToolResult):  # of whatever kind the tool says, for the call that it answers
        return structs.replace(value, tool_call_id=call.id, name=call.name)
    if isinstance(value, Output):
        spoken = tuple(map(_speakable_part, value.parts))
        return ToolResult(call.id, call.name, value.kind, _json(value.value), spoken)
    if isinstance(value, str):
        return ToolResult(call.id, call.name, "text", speakable(value))
    given = value if isinstance(value, list | tuple) else (value,)
    if any(isinstance(one, Content) for one in given) and all(isinstance(one, str | Content) for one in given):
        parts = tuple(Text(one) if isinstance(one, str) else one for one in given)
        return ToolResult(call.id, call.name, "multimodal", parts=tuple(map(_speakable_part, parts)))
    return ToolResult(call.id, call.name, "data", _json(value))


def error_of(call: ToolCall, message: str) -> ToolResult:
    return ToolResult(call.id, call.name, "error", speakable(message))


def speakable(text: str) -> str:
    """Text that can be written as UTF-8: half a surrogate pair, as in odd file names, becomes a question mark."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _speakable_part(part: Content) -> Content:
    return structs.replace(part, text=speakable(part.text)) if isinstance(part, Text) else part


def _json(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return speakable(value) if value else value
    return to_raw(msgspec.to_builtins(value, str_keys=True, enc_hook=_foreign))


def _foreign(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise NotImplementedError(f"{type(value).__name__} cannot be said in JSON")


# ── the tool that ends a run ──────────────────────────────────────────────────────────────────────────────────


@tool(ends_run=True, read_only=True)
def done(message: str) -> str:
    """Finish: the task is complete. Nothing is called after this.

    Args:
        message: the final answer for the user

    """
    raise Done(message)
