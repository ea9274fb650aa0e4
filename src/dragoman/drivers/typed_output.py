"""Answers as values of a Python type: requesting, reading and correcting them.

Three modes. `native`: the API takes a JSON Schema for the answer. `tool`: the model has to call one tool whose
arguments are the answer. `prompted`: the schema is part of the instructions. The profile of the API decides which one;
callers may overrule it.
"""

from __future__ import annotations

import inspect
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, Literal, TypeAlias, TypeVar, Unpack, overload

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs

from dragoman.catalogue import lookup
from dragoman.codecs.shared_settings import json_instruction
from dragoman.drivers.base import Choice, Driver, Prompt, QueryResult, Settings, Tool
from dragoman.drivers.message_dicts import MessageLike
from dragoman.drivers.python_types import Parameter, arguments_of, schema_of, value_decoder
from dragoman.drivers.query import read_choice
from dragoman.errors import DragomanError, InvalidRequest, InvalidType, InvalidValue
from dragoman.ir import Message, StructuredOutput, ToolChoice, ToolDefinition, ToolResult
from dragoman.profile import Profile

T = TypeVar("T")
OutputMode: TypeAlias = Literal["native", "tool", "prompted"]
MODES: frozenset[str] = frozenset({"native", "tool", "prompted"})
TOOL_NAME = "final_answer"
RETRIES = 2
"""Default number of corrections."""
FENCE = re.compile(r"\s*```[\w-]*\n(.*?)\n?```\s*", re.DOTALL)
_ABOUT_SCHEMA = re.compile(
    r"schema|response_format|output_config|output_format|text\.format|outputconfig", re.IGNORECASE
)
_DESCRIPTION = "Give the final answer. Call this exactly once, when the answer is complete."
CORRECTION = "The answer was not accepted: {problem}. Answer again, with JSON that follows the schema and nothing else."
CALL_NEEDED = f"The answer was not accepted: call `{TOOL_NAME}` with the final answer."


class NoOutput(DragomanError):
    """The model gave no value of the output type. `problem` says why, `text` is its last answer."""

    def __init__(self, problem: str, text: str = "") -> None:
        self.problem = problem
        self.text = text
        super().__init__(f"no output: {problem}")


class SchemaRefused(DragomanError):
    """The provider refused the JSON Schema of the output type; its own error is the cause."""


class BadOutput(ValueError):
    """The answer is not of the output type; the message is for the model."""


class Output(Struct, Generic[T], frozen=True):
    """One output type: its JSON Schema, with an object at the root, and the decoder of answers."""

    name: str
    schema: dict[str, Any]
    decode: Callable[[Any], T]
    """From parsed JSON; raises `BadOutput`."""

    @property
    def structured(self) -> StructuredOutput:
        return StructuredOutput("schema", self.schema, name=self.name, strict=True)

    @property
    def definition(self) -> ToolDefinition:
        return ToolDefinition(TOOL_NAME, _DESCRIPTION, self.schema)

    @property
    def instruction(self) -> str:
        return json_instruction(self.structured)

    def read(self, text: str) -> T:
        """Reads the value from an answer's text, which may be in a Markdown fence."""
        fenced = FENCE.fullmatch(text)
        try:
            found = msgspec.json.decode(fenced[1] if fenced else text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadOutput(f"it is not JSON: {error}") from None
        return self.decode(found)


class TypedResult(QueryResult, Generic[T], frozen=True, kw_only=True):
    """An answer and its value."""

    value: T | UnsetType = UNSET
    corrections: int = 0
    """Number of corrections."""

    @property
    def output(self) -> T:
        """The value. Raises `NoOutput` if the model called tools of the caller instead of answering."""
        if isinstance(self.value, UnsetType):
            raise NoOutput("the model called tools instead of answering; see `tool_calls`", self.content)
        return self.value


def output_of(kind: Any) -> Output[Any]:
    """Schema and decoder of a type. Raises `InvalidType` for a type without a JSON Schema."""
    try:
        return _output_of(kind)
    except TypeError:
        return _output_of.__wrapped__(kind)  # an unhashable hint, such as Annotated with a list


@lru_cache(maxsize=256)
def _output_of(kind: Any) -> Output[Any]:
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", getattr(kind, "__name__", None) or "answer")[:64]
    try:
        schema = schema_of(kind)
        if schema.get("type") == "object":
            return Output(name, schema, _guard_decoder(value_decoder(kind)))
    except (TypeError, NotImplementedError):
        pass  # perhaps a union that must be decoded member by member; the attempt below reports errors
    try:
        wrapped = arguments_of("answer", [Parameter("value", kind, inspect.Parameter.empty)], {})
    except (TypeError, NotImplementedError) as error:
        expected = "a type with a JSON Schema: Struct, dataclass, TypedDict, Literal, union, enum, builtin, or pydantic"
        raise InvalidType(path="output_type", expected=expected, found=f"{kind!r} ({error})") from None
    return Output(name, wrapped.schema, _guard_decoder(lambda given: wrapped.decode(given)["value"]))


def _guard_decoder(decode: Callable[[Any], T]) -> Callable[[Any], T]:
    def read(given: Any) -> T:
        try:
            return decode(given)
        except (ValueError, TypeError) as error:  # msgspec's and pydantic's are both ValueErrors
            raise BadOutput(str(error)) from None
        except RecursionError:
            raise BadOutput("it is nested too deeply") from None

    return read


# ── which mode ────────────────────────────────────────────────────────────────────────────────────────────────


def mode_for(profile: Profile, name: str, *, beside_tools: bool) -> OutputMode:
    """The mode for a model of this API. `name` is `provider/model`."""
    provider, _, model = name.partition("/")
    row = lookup(provider, model)
    rules = [profile.no_output_schema_models]
    if beside_tools:
        rules.append(profile.no_output_schema_beside_tools_models)
    known_not = row is not None and row.can("structured_output") is False
    if not known_not and not any(rule.search(model) for rule in rules):
        return "native"
    has_no_tools = row is not None and row.can("tools") is False
    return "prompted" if has_no_tools or profile.no_forced_choice_models.search(model) else "tool"


def choose_mode(driver: Driver, mode: OutputMode | None, *, beside_tools: bool) -> OutputMode:
    if mode is not None:
        if mode not in MODES:
            raise InvalidValue(path="output_mode", expected="native, tool or prompted", found=repr(mode))
        return mode
    choose = getattr(driver, "output_mode", None)
    return choose(beside_tools=beside_tools) if callable(choose) else "native"


def schema_refusal(error: InvalidRequest, output: Output[Any]) -> SchemaRefused | None:
    """The error with advice, if the provider refused the schema."""
    if _ABOUT_SCHEMA.search(str(error)) is None:
        return None
    advice = 'try output_mode="tool" or output_mode="prompted", or a simpler type'
    return SchemaRefused(f"the provider refused the JSON Schema of {output.name}: {error}; {advice}")


# ── one query ─────────────────────────────────────────────────────────────────────────────────────────────────


class Ask(Struct, frozen=True, kw_only=True):
    """Arguments of a typed query in any mode."""

    prompt: Prompt = None
    messages: Sequence[MessageLike] = ()
    tools: Sequence[Tool] | None = None
    tool_choice: Choice = None
    settings: Settings = {}


async def query_typed(
    driver: Driver, kind: Any, ask: Ask, *, mode: OutputMode | None = None, retries: int = RETRIES
) -> TypedResult[Any]:
    """Asks for a value of the type. Raises `NoOutput` after too many corrections."""
    output = output_of(kind)
    chosen = choose_mode(driver, mode, beside_tools=bool(ask.tools))
    asked = _ARRANGE[chosen](ask, output)
    messages = list(asked.messages)
    corrections = 0
    while True:
        answer = await _ask(driver, asked, messages, output)
        if answer.message.refusal:
            raise NoOutput(f"the model refused: {answer.message.refusal}", answer.content)
        try:
            value = _value_in(answer, output, chosen, own_tools=bool(ask.tools))
        except BadOutput as error:
            if corrections >= retries:
                problem = f"after {corrections} corrections the answer is still not a {output.name}: {error}"
                raise NoOutput(problem, answer.content) from None
            messages += [answer.message, *correction_messages(answer.message, str(error), chosen)]
            corrections += 1
            continue
        parts = {name: getattr(answer, name) for name in QueryResult.__struct_fields__}
        return TypedResult(**parts, value=value, corrections=corrections)


async def _ask(driver: Driver, asked: Ask, messages: Sequence[MessageLike], output: Output[Any]) -> QueryResult:
    try:
        return await driver.query(
            asked.prompt, messages=messages, tools=asked.tools, tool_choice=asked.tool_choice, **asked.settings
        )
    except InvalidRequest as error:
        raise schema_refusal(error, output) or error from error


def _value_in(answer: QueryResult, output: Output[T], mode: OutputMode, *, own_tools: bool) -> T | UnsetType:
    calls = answer.tool_calls or ()
    given = next((call for call in calls if call.name == TOOL_NAME), None) if mode == "tool" else None
    if given is not None:
        if not given.parsed:
            raise BadOutput("the arguments are not a JSON object")
        return output.decode(given.arguments)
    if calls and own_tools:
        return UNSET
    if mode == "tool":
        raise BadOutput(f"call `{TOOL_NAME}` with the final answer")
    return output.read(answer.content)


def correction_messages(message: Message, problem: str, mode: OutputMode) -> list[Message]:
    """Messages that reject an answer: error results for its calls, or a user message."""
    calls = message.tool_calls
    if not calls:
        return [Message("user", CALL_NEEDED if mode == "tool" else CORRECTION.format(problem=problem))]
    return [
        Message(
            "tool",
            tuple(ToolResult(call.id, call.name, "error", f"the answer was not accepted: {problem}") for call in calls),
        )
    ]


def _native(ask: Ask, output: Output[Any]) -> Ask:
    return structs.replace(ask, settings={**ask.settings, "output": output.structured})


def _tool(ask: Ask, output: Output[Any]) -> Ask:
    own = tuple(ask.tools or ())
    forced = ToolChoice("required") if own else ToolChoice("required", (TOOL_NAME,))
    choice = forced if ask.tool_choice is None else read_choice(ask.tool_choice)
    return structs.replace(ask, tools=(*own, output.definition), tool_choice=choice)


def _prompted(ask: Ask, output: Output[Any]) -> Ask:
    system = "\n\n".join(text for text in (ask.settings.get("system"), output.instruction) if text)
    return structs.replace(ask, settings={**ask.settings, "system": system})


_ARRANGE: Mapping[OutputMode, Callable[[Ask, Output[Any]], Ask]] = {
    "native": _native,
    "tool": _tool,
    "prompted": _prompted,
}


class TypedQueries:
    """`query` of all drivers: with an `output_type`, the result has an `output` of that type."""

    @overload
    async def query(
        self,
        prompt: Prompt = None,
        *,
        output_type: type[T],
        output_mode: OutputMode | None = None,
        output_retries: int = RETRIES,
        tools: Sequence[Tool] | None = None,
        tool_choice: Choice = None,
        messages: Sequence[MessageLike] = (),
        **settings: Unpack[Settings],
    ) -> TypedResult[T]: ...
    @overload
    async def query(
        self,
        prompt: Prompt = None,
        *,
        output_type: Any,
        output_mode: OutputMode | None = None,
        output_retries: int = RETRIES,
        tools: Sequence[Tool] | None = None,
        tool_choice: Choice = None,
        messages: Sequence[MessageLike] = (),
        **settings: Unpack[Settings],
    ) -> TypedResult[Any]: ...
    @overload
    async def query(
        self,
        prompt: Prompt = None,
        *,
        tools: Sequence[Tool] | None = None,
        tool_choice: Choice = None,
        messages: Sequence[MessageLike] = (),
        **settings: Unpack[Settings],
    ) -> QueryResult: ...
    async def query(  # noqa: PLR0913 - all by name
        self,
        prompt: Prompt = None,
        *,
        output_type: Any = None,
        output_mode: OutputMode | None = None,
        output_retries: int = RETRIES,
        tools: Sequence[Tool] | None = None,
        tool_choice: Choice = None,
        messages: Sequence[MessageLike] = (),
        **settings: Unpack[Settings],
    ) -> QueryResult:
        if output_type is None:
            return await self._query(prompt, tools, tool_choice, messages, settings)
        ask = Ask(prompt=prompt, messages=messages, tools=tools, tool_choice=tool_choice, settings=settings)
        driver: Any = self
        return await query_typed(driver, output_type, ask, mode=output_mode, retries=output_retries)

    @abstractmethod
    async def _query(
        self,
        prompt: Prompt,
        tools: Sequence[Tool] | None,
        tool_choice: Choice,
        messages: Sequence[MessageLike],
        settings: Settings,
    ) -> QueryResult: ...
