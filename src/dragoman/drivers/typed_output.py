"""Answers as values of a Python type: requesting, reading and correcting them.

Three modes. `native`: the API takes a JSON Schema for the answer. `tool`: the model has to call one tool whose
arguments are the answer. `prompted`: the schema is part of the instructions. The profile of the API decides which one;
callers may overrule it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from dragoman.catalogue import lookup
from dragoman.codecs.shared_settings import json_instruction
from dragoman.drivers.base import Driver, QueryResult
from dragoman.drivers.python_types import Parameter, arguments_of, schema_of, value_decoder
from dragoman.errors import DragomanError, InvalidRequest, InvalidType, InvalidValue
from dragoman.ir import StructuredOutput, ToolDefinition
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
    """The model returned no value of the output type. `problem` states why, `text` is its last answer."""

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
            if self.failure is not None:
                raise NoOutput(f"the call failed: {self.failure.message}", self.content)
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
