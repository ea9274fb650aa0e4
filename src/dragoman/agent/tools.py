"""Tools: functions that a model may call, and how their return values become results."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import (
    Annotated,
    Any,
    Generic,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    get_args,
    get_origin,
    overload,
)

import msgspec
from msgspec import Struct, structs

from dragoman.agent.docstrings import read_docstring
from dragoman.agent.threads import in_thread
from dragoman.agent.validation import problems_of
from dragoman.drivers.base import Driver
from dragoman.drivers.python_types import Parameter, arguments_of, function_behind, json_form, parameters_of
from dragoman.errors import InvalidType, unknown_options
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
"""Names that would be read as a mode in a tool choice."""

Content: TypeAlias = Text | Image | Document | Audio | SearchResult | Opaque
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class BadArguments(ValueError):
    """Arguments that do not match the tool's schema. The tool did not run."""


class Done(Exception):
    """Raised by a tool: the run is finished, and this is its answer."""

    def __init__(self, message: str = "") -> None:
        self.message = message
        super().__init__(message)


class Retry(Exception):
    """Raised by a tool or an output validator: the model made a mistake and may try again. The message says why."""

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)


class Deferred(Exception):
    """Raised by a tool: the result comes later, from outside. The run pauses until `Agent.resume` gets the result."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason
        super().__init__(reason)


class Suspended(Exception):
    """Raised by a tool that runs an agent: calls of that agent wait, and this is its history (`agent_tool`)."""

    def __init__(self, history: Sequence[Message]) -> None:
        self.history = history
        super().__init__("calls of an agent wait for decisions")


class Resumed(Struct, frozen=True):
    """How to resume an agent that waited behind a tool."""

    history: tuple[Message, ...]
    decisions: Mapping[str, Any]


class HandOff(Struct, frozen=True):
    """Returned by a tool: from the next request on, this model answers. A driver, or a name for `connect`."""

    driver: Driver | str
    reason: str = ""


class Output(Struct, frozen=True):
    """Returned by a tool that sets the kind of its result itself."""

    kind: ResultKind
    value: Any = None
    parts: tuple[Content, ...] = ()


class ToolContext(Struct, frozen=True):
    """Information about the call, for a tool that has a parameter of this type."""

    call: ToolCall
    history: tuple[Message, ...] = ()
    overrides: Mapping[Callable[..., Any], Callable[..., Any]] = {}
    emit: Callable[[Any], Awaitable[None]] | None = None
    """Reports an event of the tool to the reader of the run."""
    count: Callable[[str, Usage], None] | None = None
    """Adds tokens that the tool used, by model name, to those of the run."""
    resumed: Resumed | None = None
    """For a tool that runs an agent: set when that agent waited for decisions, and they have arrived."""

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at this call, also after a restart; unique within its conversation."""
        return self.call.id


class Depends:
    """A parameter that the model does not supply: a function, sync or async, makes it for each call.

    `def search(query: str, index: Annotated[Index, Depends(open_index)]) -> str`, or as its default value. The function
    may have such parameters itself. `Agent(overrides={open_index: fake_index})` replaces the function.
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
    """Converts the model's arguments to those of the function; raises `BadArguments`."""
    function: Callable[..., Any] | None = None
    title: str | None = None
    """For people, if the name is not enough: the title of its steps."""
    display_name: str | None = None
    """What events show beside its name; defaults to the title."""
    read_only: bool = False
    """Changes nothing: permission rules may allow it in advance."""
    ends_run: bool = False
    """A done tool: calls after it in the same turn are not run."""
    keeps_output: bool = True
    """Whether the output cache may store and cut what it returns."""
    timeout: float | None = None
    """Seconds."""
    max_retries: int | None = None
    """How often in a row the model may try again after `Retry`; None: the agent's setting."""
    idempotent: bool = False
    """Calling it twice has the effect of calling it once: it is retried automatically after a time-out or an error."""
    needs_approval: bool = False
    """A person decides about each call; without an interactive user, the run pauses."""
    sequential: bool = False
    """Runs alone, never at the same time as another call."""
    agent: Callable[[Sequence[Message]], Awaitable[Any]] | None = None
    """Makes the agent behind the tool, with a history, if there is one (`agent_tool`)."""

    @property
    def name(self) -> str:
        return self.definition.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, as if it were not a tool."""
        if self.function is None:
            raise TypeError(f"{self.name} has no function of its own")
        return self.function(*args, **kwargs)


class FunctionTool(Tool, Generic[R_co], frozen=True, kw_only=True):
    """A tool made of a function. Type checkers know the result of a call.

    They do not know its parameters: with these in the type, mypy would infer `list[object]` for a list of two tools.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> R_co:
        result: R_co = super().__call__(*args, **kwargs)
        return result


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a tool besides its function."""

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


class ToolOptions(TypedDict, total=False):
    """The options of `@tool`, for editors and type checkers: the fields of `Options`."""

    name: str | None
    description: str | None
    strict: bool | None
    title: str | None
    display_name: str | None
    read_only: bool
    ends_run: bool
    keeps_output: bool
    timeout: float | None
    max_retries: int | None
    idempotent: bool
    needs_approval: bool
    sequential: bool


@overload
def tool(function: Callable[..., R], /, **options: Unpack[ToolOptions]) -> FunctionTool[R]: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[..., R]], FunctionTool[R]]: ...
def tool(function: Any = None, /, **options: Any) -> Tool | Callable[[Callable[..., Any]], Tool]:
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
    unknown = options.keys() - set(Options.__struct_fields__)
    if unknown:
        raise unknown_options(unknown, Options.__struct_fields__)
    chosen = Options(**options)
    if function is None:
        return lambda given: _from_function(given, chosen)
    if not callable(function):
        hint = "options have names: @tool(name=...)"
        raise InvalidType(path="tool", expected="a function", found=type(function).__name__, hint=hint)
    return _from_function(function, chosen)


def tool_from_schema(
    function: Callable[[dict[str, Any]], Any], *, name: str, parameters: Mapping[str, Any], **options: Any
) -> Tool:
    """Return a tool with a hand-written schema. The function takes the arguments as one mapping, checked against it."""
    chosen = Options(name=name, **options)
    schema = dict(parameters)

    async def run(arguments: dict[str, Any], _context: ToolContext) -> Any:
        return await call_function(function, arguments)

    return _make_tool(chosen, name, schema, run=run, decode=schema_decoder(schema), function=function)


def client_tool(definition: ToolDefinition) -> Tool:
    """Return a tool that the caller of the agent runs: a call pauses the run until its result arrives."""

    async def run(_arguments: dict[str, Any], _context: ToolContext) -> Any:
        raise Deferred("the client runs it")

    return Tool(definition=definition, run=run, decode=dict, read_only=True)


def schema_decoder(schema: Mapping[str, Any]) -> Decoder:
    """Return a decoder that passes arguments through unchanged if the schema accepts them."""

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
    behind = function_behind(function)
    name = options.name or _name_of(function, behind)
    summary, descriptions = read_docstring(behind.__doc__)
    parameters = parameters_of(function)
    _check_call(behind, parameters)
    injected = _find_injected(parameters)
    given = arguments_of(name, [one for one in parameters if one.name not in injected], descriptions)

    async def run(arguments: dict[str, Any], context: ToolContext) -> Any:
        if not injected:
            return await call_function(function, **arguments)
        found = await _resolve_injected(injected, context, {})
        return await call_function(function, **arguments, **found)

    def decode(arguments: Any) -> dict[str, Any]:
        try:
            return given.decode(arguments)
        except ValueError as error:
            raise BadArguments(str(error)) from None

    described = msgspec.structs.replace(options, description=options.description or summary)
    return _make_tool(described, name, given.schema, FunctionTool, run=run, decode=decode, function=function)


def _name_of(function: Callable[..., Any], behind: Callable[..., Any]) -> str:
    name = str(getattr(behind, "__name__", ""))
    if name in {"<lambda>", "__call__"}:
        found = "a lambda" if name == "<lambda>" else f"an object of {type(function).__name__}"
        hint = "give it one: tool(name=...)(function)"
        raise InvalidType(path="tool", expected="a function with a name", found=found, hint=hint)
    return name


def _check_call(behind: Callable[..., Any], parameters: Sequence[Parameter]) -> None:
    """Refuse what could be a tool but no call of it could succeed."""
    name = getattr(behind, "__name__", "")
    if inspect.isfunction(behind) and parameters and parameters[0].name == "self" and parameters[0].hint is Any:
        hint = f"make a tool of the method of an object: tool(thing.{name})"
        raise InvalidType(path="tool", expected="a function", found=f"the method {name} without its object", hint=hint)
    if inspect.isgeneratorfunction(behind) or inspect.isasyncgenfunction(behind):
        expected = "a function that returns its result"
        hint = "return a list instead of yielding"
        raise InvalidType(path="tool", expected=expected, found=f"{name}, which is a generator", hint=hint)


def _make_tool(options: Options, name: str, schema: dict[str, Any], kind: type[Tool] = Tool, **rest: Any) -> Tool:
    check_name(name)
    return kind(
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
        raise ValueError(f"{name!r} is not a valid tool name: 1 to 64 ASCII letters, digits, _ and -")
    if name in RESERVED:
        raise ValueError(f"a tool called {name!r} could not be chosen: the word is a mode of tool_choice")


# ── dependency injection ──────────────────────────────────────────────────────────────────────────────────────

Injected: TypeAlias = dict[str, Depends | type[ToolContext]]


def _find_injected(parameters: Sequence[Parameter]) -> Injected:
    found: Injected = {}
    for one in parameters:
        hints = get_args(one.hint) if get_origin(one.hint) is Annotated else (one.hint,)
        dependency = next((extra for extra in (*hints, one.default) if isinstance(extra, Depends)), None)
        if dependency is not None:
            found[one.name] = dependency
        elif hints[0] is ToolContext:
            found[one.name] = ToolContext
    return found


async def _resolve_injected(
    injected: Injected, context: ToolContext, made: dict[Callable[..., Any], Any]
) -> dict[str, Any]:
    """Return the injected arguments: one value per function and call, however many parameters ask for it."""
    return {
        name: await _make_dependency(one, context, made) if isinstance(one, Depends) else context
        for name, one in injected.items()
    }


async def call_with_dependencies(function: Callable[..., Any], context: ToolContext) -> Any:
    """Return the result of a function all of whose parameters are dependencies."""
    value = function(**await _resolve_injected(_find_injected(parameters_of(function)), context, {}))
    return await value if inspect.isawaitable(value) else value


async def _make_dependency(dependency: Depends, context: ToolContext, made: dict[Callable[..., Any], Any]) -> Any:
    """Return the value of a dependency, made at most once per call of the tool."""
    if dependency.function not in made:
        function = context.overrides.get(dependency.function, dependency.function)
        inner = _find_injected(parameters_of(function))
        value = function(**await _resolve_injected(inner, context, made))
        made[dependency.function] = await value if inspect.isawaitable(value) else value
    return made[dependency.function]


async def call_function(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the function's result. A sync function runs in a thread, so that it does not block the event loop."""
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    value = await in_thread(function, *args, **kwargs)
    return await value if inspect.isawaitable(value) else value


# ── return values ─────────────────────────────────────────────────────────────────────────────────────────────


def result_of(call: ToolCall, value: Any) -> ToolResult:
    """Convert a return value: text is text, parts are multimodal, a result is itself, anything else is data.

    Parts may have text beside them. Raises `TypeError` if the value cannot be expressed in JSON.
    """
    if isinstance(value, ToolResult):  # the tool's own kind, for the call that it answers
        return structs.replace(value, tool_call_id=call.id, name=call.name)
    if isinstance(value, Output):
        multimodal = tuple(map(_encodable_part, value.parts))
        return ToolResult(call.id, call.name, value.kind, _json(value.value), multimodal)
    if isinstance(value, str):
        return ToolResult(call.id, call.name, "text", encodable_text(value))
    given = value if isinstance(value, list | tuple) else (value,)
    if any(isinstance(one, Content) for one in given) and all(isinstance(one, str | Content) for one in given):
        parts = tuple(Text(one) if isinstance(one, str) else one for one in given)
        return ToolResult(call.id, call.name, "multimodal", parts=tuple(map(_encodable_part, parts)))
    return ToolResult(call.id, call.name, "data", _json(value))


def error_of(call: ToolCall, message: str) -> ToolResult:
    return ToolResult(call.id, call.name, "error", encodable_text(message))


def encodable_text(text: str) -> str:
    """Return text that can be written as UTF-8: a lone surrogate, as in odd file names, becomes a question mark."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _encodable_part(part: Content) -> Content:
    return structs.replace(part, text=encodable_text(part.text)) if isinstance(part, Text) else part


def _json(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return encodable_text(value) if value else value
    return to_raw(msgspec.to_builtins(value, str_keys=True, enc_hook=json_form))


# ── the tool that ends a run ──────────────────────────────────────────────────────────────────────────────────


@tool(ends_run=True, read_only=True)
def done(message: str) -> str:
    """Finish: the task is complete. Nothing is called after this.

    Args:
        message: the final answer for the user

    """
    raise Done(message)
