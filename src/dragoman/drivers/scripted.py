"""Drivers for tests, without a network: one gives scripted answers, one echoes the user."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from dragoman.codecs.unified_chunks import Chunk
from dragoman.drivers.base import (
    CallMetadata,
    Choice,
    Defaults,
    FinishReason,
    Prompt,
    QueryResult,
    Settings,
    StreamResult,
    Tool,
    result_of,
)
from dragoman.drivers.message_dicts import MessageLike
from dragoman.drivers.query import build_request
from dragoman.drivers.typed_queries import TypedQueries
from dragoman.errors import DecodeError, ProviderError, ScriptExhausted
from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Completion,
    Failure,
    Finish,
    Finished,
    Message,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
    Request,
    StreamFailed,
    StreamStart,
    Text,
    ToolCall,
    Usage,
    UsageUpdate,
)


class Scripted(Struct, frozen=True, kw_only=True):
    """One scripted answer: text, calls, finish reason and delay. Calls imply the finish reason `tool_calls`."""

    text: str = ""
    calls: Sequence[ToolCall | tuple[str, Mapping[str, Any]]] = ()
    """Calls, or pairs of name and arguments, which get numbered ids."""
    reasoning: str = ""
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    failure: Failure | None = None
    """The failure after the text."""
    delay: float = 0.0


Line: TypeAlias = Scripted | str | Message | Completion | QueryResult | ProviderError | Sequence[Chunk]
"""One line of a script: a string is text, a list of unified dicts is the answer they make."""
Script: TypeAlias = Iterable[Line | Chunk] | Callable[[Request], Line | Awaitable[Line]]
"""Lines, one per request, or a function of the request. Adjacent unified dicts are one line."""


class ScriptedDriver(TypedQueries):
    """Answers from a queue or a function. `requests` holds the requests, in order.

    >>> import asyncio
    >>> driver = ScriptedDriver([Scripted(calls=[("get_weather", {"city": "Tokyo"})]), "18 degrees."])
    >>> asyncio.run(driver.query("Weather?")).finish_reason
    'tool_calls'
    """

    def __init__(self, script: Script, *, name: str = "scripted/test", defaults: Defaults | None = None) -> None:
        self.name = name
        self.requests: list[Request] = []
        self.closed = False
        self._ask = script if callable(script) else None
        self._queue: deque[Line] = deque() if callable(script) else deque(_lines(script))
        self._defaults: Defaults = defaults or {}
        self._calls = 0

    async def _query(
        self,
        prompt: Prompt,
        tools: Sequence[Tool] | None,
        tool_choice: Choice,
        messages: Sequence[MessageLike],
        settings: Settings,
    ) -> QueryResult:
        return await self._stream_query(prompt, tools, tool_choice, messages, settings).result

    def _stream_query(
        self,
        prompt: Prompt,
        tools: Sequence[Tool] | None,
        tool_choice: Choice,
        messages: Sequence[MessageLike],
        settings: Settings,
    ) -> StreamResult:
        merged: Defaults = {**self._defaults, **settings}
        request = build_request(prompt, tools=tools, tool_choice=tool_choice, messages=messages, settings=merged)
        source = _ScriptedSource(lambda: self._next(request))

        def conclude(completion: Completion, failure: Failure | None) -> QueryResult:
            metadata = CallMetadata(provider=self.name.partition("/")[0], model=request.model)
            return result_of(completion, failure=failure, metadata=metadata)

        return StreamResult(source, conclude, provider=self.name, errors=merged.get("errors", "raise"))

    async def close(self) -> None:
        self.closed = True

    @property
    def left(self) -> int:
        """Scripted answers that were not used."""
        return len(self._queue)

    async def _next(self, request: Request) -> Scripted | Completion:
        self.requests.append(request)
        if self._ask is not None:
            answered = self._ask(request)
            line: Line = await answered if inspect.isawaitable(answered) else answered
        elif self._queue:
            line = self._queue.popleft()
        else:
            raise ScriptExhausted(f"{self.name} has no answer left; it was asked {len(self.requests)} times")
        return self._read(line)

    def _read(self, line: Line) -> Scripted | Completion:
        if isinstance(line, ProviderError):
            raise line
        if isinstance(line, str):
            return Scripted(text=line)
        if isinstance(line, QueryResult):
            return line.completion
        if isinstance(line, Message):
            return Completion((line,), Finish("tool_calls" if line.tool_calls else "stop"))
        if isinstance(line, Completion):
            return line
        return self._with_ids(line if isinstance(line, Scripted) else _join_chunks(line))

    def _with_ids(self, line: Scripted) -> Scripted:
        calls = [call if isinstance(call, ToolCall) else self._call(*call) for call in line.calls]
        return Scripted(**{name: getattr(line, name) for name in line.__struct_fields__} | {"calls": tuple(calls)})

    def _call(self, name: str, arguments: Mapping[str, Any]) -> ToolCall:
        self._calls += 1
        return ToolCall(f"call_{self._calls}", name, dict(arguments))


def _lines(script: Iterable[Line | Chunk]) -> Iterator[Line]:
    """Groups adjacent unified dicts into one answer."""
    chunks: list[Chunk] = []
    for line in script:
        if isinstance(line, Mapping):
            chunks.append(dict(line))
            continue
        if chunks:
            yield _join_chunks(chunks)
            chunks = []
        yield _join_chunks(line) if isinstance(line, list | tuple) else line
    if chunks:
        yield _join_chunks(chunks)


def _join_chunks(chunks: Sequence[Chunk]) -> Scripted:
    texts: dict[str, list[str]] = {"text": [], "reasoning": []}
    calls: list[ToolCall | tuple[str, Mapping[str, Any]]] = []
    failure: Failure | None = None
    for index, chunk in enumerate(chunks):
        kind, content = chunk.get("type"), chunk.get("content")
        if kind in texts and isinstance(content, str):
            texts[kind].append(content)
        elif kind == "error" and isinstance(content, str):
            failure = Failure("server", content)
        elif kind == "tool_call":
            calls.append(_chunk_call(content, f"$[{index}].content"))
        else:
            got = f"type {kind!r} with content of type {type(content).__name__}"
            raise DecodeError(path=f"$[{index}]", expected=_CHUNK, got=got, source="chunks")
    return Scripted(text="".join(texts["text"]), reasoning="".join(texts["reasoning"]), calls=calls, failure=failure)


_CHUNK = "a chunk: text, reasoning and error with a string, tool_call with name and arguments"


def _chunk_call(content: Any, place: str) -> ToolCall | tuple[str, Mapping[str, Any]]:
    if not isinstance(content, Mapping) or not isinstance(content.get("name"), str):
        raise DecodeError(path=place, expected="a call with name and arguments", got=repr(content), source="chunks")
    arguments, call_id = content.get("arguments", {}), content.get("tool_call_id")
    if not isinstance(arguments, Mapping):
        raise DecodeError(path=f"{place}.arguments", expected="a mapping", got=repr(arguments), source="chunks")
    if call_id is None:
        return content["name"], arguments
    return ToolCall(str(call_id), content["name"], dict(arguments))


class EchoDriver(ScriptedDriver):
    """A driver that answers with the user's newest text."""

    def __init__(self, *, name: str = "echo/test", defaults: Defaults | None = None) -> None:
        super().__init__(_echo, name=name, defaults=defaults)


def _echo(request: Request) -> str:
    return next((message.text for message in reversed(request.messages) if message.role == "user"), "")


class _ScriptedSource:
    """The events of one line, in pieces, as from a network."""

    def __init__(self, ask: Callable[[], Awaitable[Scripted | Completion]]) -> None:
        self._ask = ask
        self._events: Iterator[Sequence[AnyEvent]] | None = None
        self._aborted = asyncio.Event()

    async def read(self) -> Sequence[AnyEvent]:
        if self._events is None:
            # Like a real driver, a cancelled task sends nothing.
            await asyncio.sleep(0)
            line = await self._ask()
            self._events = iter([*events_of(line)])
            await self._wait(line.delay if isinstance(line, Scripted) else 0.0)
        return () if self._aborted.is_set() else next(self._events, ())

    def abort(self) -> None:
        self._aborted.set()

    async def _wait(self, seconds: float) -> None:
        if seconds:
            try:
                await asyncio.wait_for(self._aborted.wait(), seconds)
            except TimeoutError:
                return


def events_of(line: Scripted | Completion) -> Iterator[Sequence[AnyEvent]]:
    """The answer as stream events."""
    completion = _completion(line) if isinstance(line, Scripted) else line
    yield [StreamStart(completion.id, completion.model, completion.created)]
    parts = completion.messages[0].parts if completion.messages else ()
    for index, part in enumerate(parts):
        yield from _pieces(index, part)
    if completion.usage is not None:
        yield [UsageUpdate(completion.usage)]
    failure = line.failure if isinstance(line, Scripted) else None
    yield [StreamFailed(failure)] if failure is not None else [Finished(completion.finish or Finish("stop"))]


def _completion(line: Scripted) -> Completion:
    calls = tuple(call for call in line.calls if isinstance(call, ToolCall))
    parts: list[AnyPart] = [Reasoning(line.reasoning)] if line.reasoning else []
    parts += [Text(line.text)] if line.text else []
    reason = line.finish_reason or ("tool_calls" if calls else "stop")
    return Completion((Message("assistant", (*parts, *calls)),), Finish(reason), line.usage)


def _pieces(index: int, part: AnyPart) -> Iterator[Sequence[AnyEvent]]:
    if not isinstance(part, Text | Reasoning) or not part.text:
        yield [PartStart(index, part), PartEnd(index, incomplete=isinstance(part, ToolCall) and part.incomplete)]
        return
    words = part.text.split(" ")
    yield [PartStart(index, type(part)(""))]
    yield from ([PartDelta(index, word if place == 0 else f" {word}")] for place, word in enumerate(words))
    yield [PartEnd(index, part.signature)]
