"""Drivers for programs without an event loop: one background loop runs all of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, Generic, Self, TypeVar, Unpack, overload

from dragoman.codecs.unified_chunks import Chunk
from dragoman.drivers.base import Choice, Driver, Prompt, QueryResult, Settings, StreamResult, Tool
from dragoman.drivers.embed import EmbeddingResult, EmbeddingSettings
from dragoman.drivers.message_dicts import MessageLike
from dragoman.drivers.typed_output import RETRIES, OutputMode, TypedResult
from dragoman.drivers.typed_queries import Ask, TypedQuery, TypedStream, query_typed
from dragoman.ir import AnyEvent

T = TypeVar("T")


class _Background:
    """An event loop in a thread, started on first use and stopped with the program."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: int | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is not None and threading.get_ident() == self._thread:
            work.close()
            raise RuntimeError("this would deadlock: inside a coroutine, await the async variant instead")
        future = asyncio.run_coroutine_threadsafe(work, self._start())
        try:
            return future.result()
        except BaseException:
            # Ctrl-C arrives in this waiting thread: cancel the call.
            future.cancel()
            raise

    def _start(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                thread = threading.Thread(target=self._loop.run_forever, name="dragoman-drivers", daemon=True)
                thread.start()
                self._thread = thread.ident
            return self._loop


_background = _Background()
in_background = _background.run
"""Runs a coroutine in the background loop and waits for it."""


class _SyncViews:
    """What streams of both kinds have in common."""

    def __init__(self, stream: StreamResult | TypedStream[Any]) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[str]:
        return _iterate_blocking(aiter(self._stream))

    @property
    def stream(self) -> Iterable[str]:
        """Only the text, from the start each time."""
        return self

    def chunks(self) -> Iterator[Chunk]:
        return _iterate_blocking(self._stream.chunks())

    def events(self) -> Iterator[AnyEvent]:
        return _iterate_blocking(self._stream.events())

    def close(self) -> None:
        _background.run(self._stream.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class SyncStream(_SyncViews):
    """A `StreamResult` that is read by waiting."""

    def __init__(self, stream: StreamResult) -> None:
        super().__init__(stream)
        self._answer = stream

    @property
    def result(self) -> QueryResult:
        return _background.run(_await(self._answer.result))


class SyncTypedStream(_SyncViews, Generic[T]):
    """A `TypedStream` that is read by waiting."""

    def __init__(self, stream: TypedStream[T]) -> None:
        super().__init__(stream)
        self._answer = stream

    def partials(self) -> Iterator[T]:
        return _iterate_blocking(self._answer.partials())

    @property
    def result(self) -> TypedResult[T]:
        return _background.run(_await(self._answer.result))


async def _await(result: Awaitable[T]) -> T:
    return await result


def _iterate_blocking(pieces: AsyncIterator[T]) -> Iterator[T]:
    async def step() -> tuple[T, ...]:
        async for piece in pieces:
            return (piece,)
        return ()

    while found := _background.run(step()):
        yield found[0]


class SyncDriver:
    """A blocking driver. Made by `dragoman.connect_sync`."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    def __repr__(self) -> str:
        return repr(self.driver)

    @property
    def name(self) -> str:
        return self.driver.name

    @overload
    def query(
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
    def query(
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
    def query(
        self,
        prompt: Prompt = None,
        *,
        tools: Sequence[Tool] | None = None,
        tool_choice: Choice = None,
        messages: Sequence[MessageLike] = (),
        **settings: Unpack[Settings],
    ) -> QueryResult: ...
    def query(  # noqa: PLR0913 - all by name
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
        if output_type is not None:
            ask = Ask(prompt=prompt, messages=messages, tools=tools, tool_choice=tool_choice, settings=settings)
            return _background.run(query_typed(self.driver, output_type, ask, mode=output_mode, retries=output_retries))
        result = self.driver.query(prompt, tools=tools, tool_choice=tool_choice, messages=messages, **settings)
        # The protocol returns an awaitable; the loop needs a coroutine.
        return _background.run(result)

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
    ) -> SyncTypedStream[T]: ...
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
    ) -> SyncTypedStream[Any]: ...
    @overload
    def stream_query(
        self,
        prompt: Prompt = None,
        *,
        tools: Sequence[Tool] | None = None,
        tool_choice: Choice = None,
        messages: Sequence[MessageLike] = (),
        **settings: Unpack[Settings],
    ) -> SyncStream: ...
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
    ) -> SyncStream | SyncTypedStream[Any]:
        ask = Ask(prompt=prompt, messages=messages, tools=tools, tool_choice=tool_choice, settings=settings)

        async def start_typed() -> TypedStream[Any]:
            return TypedStream(TypedQuery(self.driver, output_type, ask, mode=output_mode, retries=output_retries))

        async def start() -> StreamResult:
            return self.driver.stream_query(prompt, tools=tools, tool_choice=tool_choice, messages=messages, **settings)

        if output_type is not None:
            return SyncTypedStream(_background.run(start_typed()))
        return SyncStream(_background.run(start()))

    def embed(self, inputs: str | Sequence[str], **settings: Unpack[EmbeddingSettings]) -> EmbeddingResult:
        """Vectors of texts, in order. Raises `AttributeError` for a driver without embeddings."""
        work: Coroutine[Any, Any, EmbeddingResult] = self.driver.embed(inputs, **settings)  # type: ignore[attr-defined]
        return _background.run(work)

    def close(self) -> None:
        _background.run(self.driver.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
