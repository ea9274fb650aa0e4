"""The driver interface: settings, results and streams, shared by agents, test doubles and providers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from typing import Any, Generic, Literal, Protocol, Self, TypeAlias, TypedDict, TypeVar, Unpack, runtime_checkable

from msgspec import Struct

from dragoman.codecs.accumulate import Accumulator
from dragoman.codecs.unified_chunks import Chunk, ChunkWriter
from dragoman.drivers.message_dicts import MessageLike
from dragoman.errors import ProviderError, provider_error
from dragoman.ir import (
    AnyEvent,
    AnyTool,
    Cache,
    Completion,
    Failure,
    Message,
    Metadata,
    PartDelta,
    PartStart,
    ReasoningSettings,
    StreamFailed,
    StructuredOutput,
    Text,
    ToolCall,
    ToolChoice,
    Usage,
    WithheldCall,
)
from dragoman.ir import FinishReason as WireReason
from dragoman.loss import Loss

T = TypeVar("T")
ErrorsAs: TypeAlias = Literal["raise", "result"]
FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "error"]

# What callers branch on. The exact reason is in `completion.finish.reason`, the wire's own in `finish_raw`.
_REASONS: Mapping[WireReason | None, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "content_filter",
    "pause": "stop",
    "error": "error",
    "unknown": "stop",
    None: "stop",
}


@runtime_checkable
class HasDefinition(Protocol):
    """Anything with a tool definition, such as a tool of an agent."""

    @property
    def definition(self) -> AnyTool: ...


Prompt: TypeAlias = str | MessageLike | Sequence[MessageLike] | None
Tool: TypeAlias = AnyTool | HasDefinition | Mapping[str, Any]
"""Mappings have name, description, parameters and strict, bare or within `{"type": "function", "function": ...}`; or
they are the entry of a vendor, such as `{"type": "web_search_20250305", ...}`, and stay hosted."""
Choice: TypeAlias = ToolChoice | str | Mapping[str, Any] | None
"""auto, none, required, or the one tool to call: its name, `{"name": ...}` or `{"function": {"name": ...}}`."""


class Settings(TypedDict, total=False):
    """Settings of one call; they override the driver's defaults of the same names."""

    model: str
    system: str
    """System prompt before all messages."""
    max_output_tokens: int | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    stop: Sequence[str]
    seed: int | None
    presence_penalty: float | None
    frequency_penalty: float | None
    min_p: float | None
    repetition_penalty: float | None
    parallel_tool_calls: bool | None
    reasoning: ReasoningSettings | str | int | bool | None
    """`ReasoningSettings`, an effort ("low"), a budget in tokens, on or off."""
    output: StructuredOutput | Mapping[str, Any] | None
    """Structured output, or only its JSON Schema."""
    user: str | None
    cache: Cache | None
    """Cache mark on the whole request, for the prompt caches of Anthropic and Bedrock."""
    verbosity: str | None
    labels: dict[str, str] | None
    safety_identifier: str | None
    service_tier: str | None
    store: bool | None
    prompt_cache_key: str | None
    prompt_cache_retention: str | None
    prompt_cache_options: dict[str, Any] | None
    moderation: dict[str, Any] | None
    logprobs: bool | None
    top_logprobs: int | None
    modalities: Sequence[str]
    metadata: Metadata | None
    """Format family -> extra wire keys, sent only to that family."""
    headers: Mapping[str, str]
    timeout: float | None
    """Seconds for the whole call, retries included."""
    errors: ErrorsAs
    """How failures are reported: as an exception, or as a result with finish reason `error` and the text so far."""
    raw: bool
    """Keep the bytes of request and response in the result."""
    message_format: str
    """The format of messages that are given as mappings; without it they are recognised by their keys."""


class Defaults(Settings, total=False):
    """Defaults of a driver for all its calls."""

    tools: Sequence[Tool]
    tool_choice: Choice


class CallMetadata(Struct, frozen=True, kw_only=True):
    """How a call went."""

    provider: str = ""
    model: str | None = None
    request_id: str | None = None
    attempts: int = 1
    seconds: float = 0.0
    first_byte_seconds: float | None = None


class RawExchange(Struct, frozen=True, kw_only=True):
    """The bytes of request and response, without keys."""

    method: str
    url: str
    request_headers: dict[str, str]
    request_body: bytes
    status: int | None
    response_headers: dict[str, str]
    response_body: bytes


class QueryResult(Struct, frozen=True, kw_only=True):
    """One answer. `str(result)` is its text, `result.message` all of it."""

    completion: Completion
    finish_reason: FinishReason
    failure: Failure | None = None
    """Why it failed, if failures are returned as results."""
    losses: tuple[Loss, ...] = ()
    """Losses of the request: what the provider's API cannot express."""
    metadata: CallMetadata = CallMetadata()
    raw: RawExchange | None = None

    def __str__(self) -> str:
        return self.content

    @property
    def content(self) -> str:
        return self.completion.text

    @property
    def reasoning(self) -> str:
        return self.completion.reasoning

    @property
    def tool_calls(self) -> tuple[ToolCall, ...] | None:
        """The calls that may be run; None when there are none. `withheld_calls` has those that must not be."""
        return self.completion.tool_calls or None

    @property
    def withheld_calls(self) -> tuple[WithheldCall, ...]:
        """The calls that must not be run, and why: the answer was blocked, failed, or cut inside the call."""
        return self.completion.withheld_calls

    @property
    def finish_raw(self) -> str | None:
        finish = self.completion.finish
        return None if finish is None else finish.raw

    @property
    def usage(self) -> Usage | None:
        return self.completion.usage

    @property
    def message(self) -> Message:
        """The answer as a message for the history, with everything that its provider requires back."""
        messages = self.completion.messages
        return messages[0] if messages else Message("assistant", ())


def result_of(completion: Completion, *, failure: Failure | None = None, **more: Any) -> QueryResult:
    """A completion as a result. Calls with a clean end mean `tool_calls`, even if the wire says `STOP` (Gemini)."""
    reason = "error" if failure is not None else _REASONS[completion.finish_reason]
    if reason == "stop" and completion.tool_calls:
        reason = "tool_calls"
    return QueryResult(completion=completion, finish_reason=reason, failure=failure, **more)


def failure_in(completion: Completion) -> Failure | None:
    """The failure of an answer that ended cleanly but reports an error."""
    if completion.finish_reason != "error":
        return None
    raw = completion.finish.raw if completion.finish is not None else None
    return Failure("server", "the provider ended the answer in an error", raw_type=raw)


class EventSource(Protocol):
    """The source of a stream's events."""

    async def read(self) -> Sequence[AnyEvent]:
        """The next events; none at the end. The last one is `Finished` or `StreamFailed`. Raises `ProviderError`."""
        ...

    def abort(self) -> None:
        """Closes the connection at once. A pending `read` in another task returns or raises."""
        ...


Conclude: TypeAlias = Callable[[Completion, Failure | None], QueryResult]


class StreamResult:
    """A streamed answer. Its views are independent, and can be used in any order and more than once.

    `async for text in answer` or `answer.stream` is the text alone and raises when the answer fails; `answer.events()`
    is everything, and `answer.chunks()` the same as unified dicts, with a failure at the end; `await answer.result` is
    the whole answer.

    Nothing is sent before the first read, and nothing is read ahead of the fastest reader. Cancelling the reader
    closes the connection, and so do `close()` and leaving `async with`.
    """

    def __init__(
        self, source: EventSource, conclude: Conclude, *, provider: str = "", errors: ErrorsAs = "raise"
    ) -> None:
        self._source = source
        self._conclude = conclude
        self._provider = provider
        self._raises = errors == "raise"
        self._account = Accumulator()
        self._events: list[AnyEvent] = []
        self._turn = asyncio.Lock()
        self._ended = False
        self._completion: Completion | None = None
        self._error: ProviderError | None = None
        self._result: QueryResult | None = None

    def __aiter__(self) -> AsyncIterator[str]:
        return self._texts()

    async def _texts(self) -> AsyncIterator[str]:
        texts: set[int] = set()
        async for event in self.events():
            if type(event) is PartDelta:
                if event.index in texts and event.text:
                    yield event.text
            elif type(event) is PartStart and isinstance(event.part, Text) and not event.candidate:
                texts.add(event.index)
                if event.part.text:
                    yield event.part.text
        self._raise()

    @property
    def stream(self) -> AsyncIterable[str]:
        """The text only, from its beginning each time. `result` works whether or not the text is read."""
        return self

    async def chunks(self) -> AsyncIterator[Chunk]:
        """Unified dicts: `text` and `reasoning` as they come, and at the end each `tool_call` that may be run.

        A failure is a last chunk of type `error`, as it is the last event of `events()`.
        """
        writer = ChunkWriter()
        async for event in self.events():
            for chunk in writer.write([event]):
                yield chunk

    async def events(self) -> AsyncIterator[AnyEvent]:
        seen = 0
        while await self._more(seen):
            batch = self._events[seen:]
            seen += len(batch)
            for event in batch:
                yield event

    @property
    def result(self) -> Awaitable[QueryResult]:
        return Later(self._await_result)

    @property
    def partial(self) -> Completion:
        """The answer so far."""
        return self._account.so_far() if self._completion is None else self._completion

    async def close(self) -> None:
        """Stops the stream.

        What has arrived stays readable; `result` of an unfinished answer raises `CallCancelled`.
        """
        if not self._ended:
            self._fail(Failure("cancelled", "the stream was closed before its end"))
            self._source.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def _await_result(self) -> QueryResult:
        while not self._ended:
            await self._more(len(self._events))
        self._raise()
        if self._result is None:
            failure = None if self._error is None else self._error.failure
            self._result = self._conclude(self.partial, failure)
        return self._result

    def _raise(self) -> None:
        if self._raises and self._error is not None:
            raise self._error

    async def _more(self, seen: int) -> bool:
        """Whether there are events beyond the first `seen`. One reader at a time reads the source, for all of them."""
        while len(self._events) <= seen and not self._ended:
            async with self._turn:
                if len(self._events) <= seen and not self._ended:
                    await self._read()
        return len(self._events) > seen

    async def _read(self) -> None:
        try:
            events = await self._source.read()
        except ProviderError as error:
            self._fail(error.failure)
        except BaseException as error:
            self._fail(Failure("cancelled", "the reader of the stream was stopped", raw_type=type(error).__name__))
            self._source.abort()
            raise
        else:
            if not self._ended:
                self._add(events)

    def _add(self, events: Sequence[AnyEvent]) -> None:
        self._events += events
        self._account.add(events)
        if not events or self._account.failed is not None:
            self._settle()

    def _settle(self) -> None:
        self._ended = True
        completion = self._completion = self._account.completion()
        failed = self._account.failed
        failure = failure_in(completion) if failed is None else failed.failure
        if failure is not None:
            self._error = provider_error(failure, provider=self._provider, partial=completion)

    def _fail(self, failure: Failure) -> None:
        if not self._ended:
            self._add([StreamFailed(failure)])


class Later(Generic[T]):
    """An awaitable that need not be awaited."""

    def __init__(self, start: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._start = start

    def __await__(self) -> Generator[Any, None, T]:
        return self._start().__await__()


class Driver(Protocol):
    """One model of one provider. `messages` follow the prompt; neither is required if the other is given."""

    @property
    def name(self) -> str:
        """`provider/model`."""
        ...

    async def query(
        self,
        prompt: Prompt = None,
        *,
        tools: Sequence[Tool] | None = None,
        tool_choice: Choice = None,
        messages: Sequence[MessageLike] = (),
        **settings: Unpack[Settings],
    ) -> QueryResult: ...

    def stream_query(
        self,
        prompt: Prompt = None,
        *,
        tools: Sequence[Tool] | None = None,
        tool_choice: Choice = None,
        messages: Sequence[MessageLike] = (),
        **settings: Unpack[Settings],
    ) -> StreamResult: ...

    async def close(self) -> None: ...
