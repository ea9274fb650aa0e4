"""Queries whose answers are values of a Python type, whole or streamed, and corrected by the model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Self, TypeVar, Unpack, overload

from msgspec import UNSET, Struct, UnsetType, structs

from dragoman.codecs.unified_chunks import Chunk
from dragoman.drivers.base import Choice, Driver, Later, Prompt, QueryResult, Settings, StreamResult, Tool
from dragoman.drivers.message_dicts import MessageLike
from dragoman.drivers.partial_output import PartialValues
from dragoman.drivers.query import read_choice
from dragoman.drivers.typed_output import (
    CALL_NEEDED,
    CORRECTION,
    RETRIES,
    TOOL_NAME,
    BadOutput,
    NoOutput,
    Output,
    OutputMode,
    TypedResult,
    choose_mode,
    output_of,
    schema_refusal,
)
from dragoman.errors import InvalidRequest
from dragoman.ir import AnyEvent, Message, ToolChoice, ToolResult

T = TypeVar("T")


class Ask(Struct, frozen=True, kw_only=True):
    """What a typed query asks, whatever the mode."""

    prompt: Prompt = None
    messages: Sequence[MessageLike] = ()
    tools: Sequence[Tool] | None = None
    tool_choice: Choice = None
    settings: Settings = {}


class TypedQuery:
    """One question for a value: how it is asked in the chosen mode, and how answers are read and corrected."""

    def __init__(
        self, driver: Driver, kind: Any, ask: Ask, *, mode: OutputMode | None = None, retries: int = RETRIES
    ) -> None:
        self.output = output_of(kind)
        self.mode = choose_mode(driver, mode, beside_tools=bool(ask.tools))
        self._driver = driver
        self._arranged = _ARRANGE[self.mode](ask, self.output)
        self._messages = list(ask.messages)
        self._own_tools = bool(ask.tools)
        self._retries = retries

    async def ask(self) -> QueryResult:
        arranged = self._arranged
        with self.explaining_refusals():
            return await self._driver.query(
                arranged.prompt,
                messages=self._messages,
                tools=arranged.tools,
                tool_choice=arranged.tool_choice,
                **arranged.settings,
            )

    def stream(self) -> StreamResult:
        arranged = self._arranged
        return self._driver.stream_query(
            arranged.prompt,
            messages=self._messages,
            tools=arranged.tools,
            tool_choice=arranged.tool_choice,
            **arranged.settings,
        )

    @contextmanager
    def explaining_refusals(self) -> Iterator[None]:
        """Raise `SchemaRefused`, with what to try, if the provider refuses the schema."""
        try:
            yield
        except InvalidRequest as error:
            refusal = schema_refusal(error, self.output)
            if refusal is None:
                raise
            raise refusal from error

    async def settle(self, answer: QueryResult) -> TypedResult[Any]:
        """The value of the answer, or of one that the model has corrected. Raises `NoOutput` when it cannot."""
        corrections = 0
        while answer.failure is None:
            if answer.message.refusal:
                raise NoOutput(f"the model refused: {answer.message.refusal}", answer.content)
            try:
                value = _value_in(answer, self.output, self.mode, own_tools=self._own_tools)
            except BadOutput as error:
                if corrections >= self._retries:
                    problem = f"after {corrections} corrections the answer is still not a {self.output.name}: {error}"
                    raise NoOutput(problem, answer.content) from None
                self._messages += [answer.message, *correction_messages(answer.message, str(error), self.mode)]
                corrections += 1
                answer = await self.ask()
            else:
                return _typed_result(answer, value, corrections)
        return _typed_result(answer, UNSET, corrections)


def _typed_result(answer: QueryResult, value: Any, corrections: int) -> TypedResult[Any]:
    parts = {name: getattr(answer, name) for name in QueryResult.__struct_fields__}
    return TypedResult(**parts, value=value, corrections=corrections)


async def query_typed(
    driver: Driver, kind: Any, ask: Ask, *, mode: OutputMode | None = None, retries: int = RETRIES
) -> TypedResult[Any]:
    """The answer as a value of the type. Raises `NoOutput` when the model has used up its corrections."""
    query = TypedQuery(driver, kind, ask, mode=mode, retries=retries)
    return await query.settle(await query.ask())


class TypedStream(Generic[T]):
    """A streamed answer that is a value. Its views are those of a `StreamResult`, and `partials()`.

    `await answer.result` has the whole value as `output`. If the answer does not fit the type, the model has corrected
    it by then, without a stream. If the answer is the call of a tool (`output_mode="tool"`), it has no text.
    """

    def __init__(self, query: TypedQuery) -> None:
        self._query = query
        self._answer = query.stream()
        self._result: TypedResult[T] | None = None

    def __aiter__(self) -> AsyncIterator[str]:
        return aiter(self._answer)

    @property
    def stream(self) -> AsyncIterable[str]:
        return self._answer

    def events(self) -> AsyncIterator[AnyEvent]:
        return self._answer.events()

    def chunks(self) -> AsyncIterator[Chunk]:
        return self._answer.chunks()

    async def partials(self) -> AsyncIterator[T]:
        """Values of the type so far, each different from the one before; strings and lists may still grow."""
        values = PartialValues(self._query.output, self._query.mode)
        async for event in self._answer.events():
            value = values.feed(event)
            if value is not UNSET:
                yield value
        with self._query.explaining_refusals():
            await self._answer.result  # a failure is an event of the stream: only the result raises it

    @property
    def result(self) -> Awaitable[TypedResult[T]]:
        return Later(self._settle)

    async def _settle(self) -> TypedResult[T]:
        if self._result is None:
            with self._query.explaining_refusals():
                answer = await self._answer.result
            self._result = await self._query.settle(answer)
        return self._result

    async def close(self) -> None:
        await self._answer.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()


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
    """What follows an answer that was not accepted: results for its calls, or a message of the user."""
    calls = message.tool_calls
    if not calls:
        return [Message("user", CALL_NEEDED if mode == "tool" else CORRECTION.format(problem=problem))]
    rejection = f"the answer was not accepted: {problem}"
    return [Message("tool", tuple(ToolResult(call.id, call.name, "error", rejection) for call in calls))]


def _native(ask: Ask, output: Output[Any]) -> Ask:
    return structs.replace(ask, settings={**ask.settings, "output": output.structured})


def _tool(ask: Ask, output: Output[Any]) -> Ask:
    own = tuple(ask.tools or ())
    forced = ToolChoice("required") if own else ToolChoice("required", (TOOL_NAME,))
    choice = forced if ask.tool_choice is None else read_choice(ask.tool_choice)
    return structs.replace(ask, tools=(*own, output.definition), tool_choice=choice)


def _add_instruction(ask: Ask, output: Output[Any]) -> Ask:
    system = "\n\n".join(text for text in (ask.settings.get("system"), output.instruction) if text)
    return structs.replace(ask, settings={**ask.settings, "system": system})


_ARRANGE: Mapping[OutputMode, Callable[[Ask, Output[Any]], Ask]] = {
    "native": _native,
    "tool": _tool,
    "prompted": _add_instruction,
}


class TypedQueries:
    """`query` and `stream_query` of our drivers: with an `output_type`, the result has an `output` of that type."""

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

    @overload
    def stream_query(
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
    ) -> TypedStream[T]: ...
    @overload
    def stream_query(
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
    ) -> TypedStream[Any]: ...
    @overload
    def stream_query(
        self,
        prompt: Prompt = None,
        *,
        tools: Sequence[Tool] | None = None,
        tool_choice: Choice = None,
        messages: Sequence[MessageLike] = (),
        **settings: Unpack[Settings],
    ) -> StreamResult: ...
    def stream_query(  # noqa: PLR0913 - all by name
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
    ) -> StreamResult | TypedStream[Any]:
        if output_type is None:
            return self._stream_query(prompt, tools, tool_choice, messages, settings)
        ask = Ask(prompt=prompt, messages=messages, tools=tools, tool_choice=tool_choice, settings=settings)
        driver: Any = self
        return TypedStream(TypedQuery(driver, output_type, ask, mode=output_mode, retries=output_retries))

    @abstractmethod
    async def _query(
        self,
        prompt: Prompt,
        tools: Sequence[Tool] | None,
        tool_choice: Choice,
        messages: Sequence[MessageLike],
        settings: Settings,
    ) -> QueryResult: ...

    @abstractmethod
    def _stream_query(
        self,
        prompt: Prompt,
        tools: Sequence[Tool] | None,
        tool_choice: Choice,
        messages: Sequence[MessageLike],
        settings: Settings,
    ) -> StreamResult: ...
