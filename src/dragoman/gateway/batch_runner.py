"""Runs batch jobs for providers without a batch API: each request as if the client had sent it, a few at a time.

A request of a batch takes the same path as one that came over HTTP: key, limits, budget, route, records. Results are
in the database, so after a restart the gateway, or another one on the same database, continues with the rest.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct

from dragoman.codecs.failures import retry_after_of
from dragoman.gateway.batch_formats import (
    BATCH_FORMATS,
    BatchAbout,
    BatchItem,
    FileAbout,
    about_batch,
    items_of,
    result_line,
)
from dragoman.gateway.config import Server
from dragoman.gateway.exchange import Exchange
from dragoman.gateway.http_request import Head
from dragoman.gateway.request_log import Log
from dragoman.gateway.state.base import Unavailable
from dragoman.gateway.state.objects import ObjectStore, Stored
from dragoman.ir import Failure
from dragoman.translate import encode_error

KEPT_SECONDS = 30 * 86_400.0
"""How long files and finished batches can be fetched."""
_CLAIM_SECONDS = 15.0
_LOOK_SECONDS = 1.0
_PRUNE_SECONDS = 3600.0
_MOST_BATCHES = 4
"""Maximum number of batches that one worker runs at a time."""
_MOST_BEGUN = 200
"""Maximum number of requests of one batch that are running or waiting to be retried."""
_AGAIN = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_MOST_ATTEMPTS = 6
_LONGEST_PAUSE = 60.0
_FAILED_FROM = 400
_encode = msgspec.json.encode
Serve = Callable[[Exchange], Awaitable[None]]


class _Request(Exchange):
    """One request of a batch, served as any other; its answer is kept here."""

    __slots__ = ("answer", "retry_after", "status")

    def __init__(self, about: BatchAbout, item: BatchItem) -> None:
        super().__init__(Head("POST", about.path, "", {"content-type": "application/json", **about.headers}))
        self.body = bytes(item.body)
        self.digest = about.digest
        self.status = 0
        self.answer = b""
        self.retry_after = 0.0

    async def receive(self, limit: int | None = None) -> bytes:  # noqa: ARG002 - limited when the batch was created
        return self.body

    def send(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        self.start(status, headers, body)
        self.finish()
        if self.on_sent is not None:
            self.on_sent(status, body)

    def start(self, status: int, headers: Mapping[str, str], first: bytes = b"") -> None:
        self.started = True
        self.status, self.answer = status, first
        self.retry_after = retry_after_of(headers) or 0.0

    def write(self, data: bytes) -> bool:
        self.answer += data
        return False

    async def drain(self) -> None:
        pass

    def finish(self, last: bytes = b"") -> None:
        self.answer += last
        self.whole = True


class _Running:
    """A batch that this worker has claimed."""

    __slots__ = ("about", "is_canceled", "stored", "task")

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self.about = about_batch(stored.about)
        self.is_canceled = stored.state == "canceling"
        self.task: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        """Whether no further requests are started."""
        return self.is_canceled or time.time() >= self.about.expires_at


class _Modes(Struct):
    stream: bool | None = None
    background: bool | None = None


class BatchRunner:
    """The batches of one gateway process."""

    def __init__(self, store: ObjectStore, serve: Serve, server: Callable[[], Server], log: Log) -> None:
        self.store = store
        self._log = log
        self._serve = serve
        self._server = server
        self._worker = secrets.token_hex(8)
        self._places = asyncio.Semaphore(max(1, server().batch_concurrency))
        self._running: dict[str, _Running] = {}
        self._news = asyncio.Event()
        self._is_closing = False
        self._tending: asyncio.Task[None] | None = None
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def turn(self, owner: str) -> asyncio.Lock:
        """Return the lock of an owner: requests at the same time must not all find the same room for their files."""
        return self._turns.setdefault(owner, asyncio.Lock())

    @property
    def is_enabled(self) -> bool:
        return self._server().batch_concurrency > 0

    @property
    def window(self) -> float:
        """Seconds after which requests that have not started expire."""
        return self._server().batch_seconds

    @property
    def most_bytes(self) -> int:
        """Maximum size of the files and batches of one key."""
        return self._server().batch_bytes

    def start(self) -> None:
        if self.is_enabled:
            self._tending = asyncio.ensure_future(self._tend())

    def wake(self) -> None:
        """Look for batches now, because one was created or cancelled."""
        self._news.set()

    def cancel(self, id: str) -> None:
        """Cancel the batch immediately if this worker runs it; other workers see it in the database."""
        if id in self._running:
            self._running[id].is_canceled = True

    async def close(self, seconds: float) -> None:
        """Wait for running requests; those that have not started are left to the next gateway."""
        self._is_closing = True
        if self._tending is None:
            return
        self._tending.cancel()
        tasks = [one.task for one in self._running.values() if one.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(self._tending, *tasks, return_exceptions=True)
        with suppress(Unavailable):
            await self.store.release(list(self._running), self._worker)

    # ── claiming ──

    async def _tend(self) -> None:
        pruned = 0.0
        while True:
            with suppress(Unavailable):  # the database will return; expired claims are claimed again
                await self._look()
                if time.monotonic() - pruned > _PRUNE_SECONDS:
                    pruned = time.monotonic()
                    await self.store.prune()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), _LOOK_SECONDS)
            self._news.clear()

    async def _look(self) -> None:
        claimed = await self.store.renew(list(self._running), self._worker, _CLAIM_SECONDS)
        for id, running in list(self._running.items()):
            if id not in claimed and running.task is not None:  # deleted, or claimed by another worker meanwhile
                running.task.cancel()
            elif id in claimed and claimed[id].state == "canceling":
                running.is_canceled = True
        free = _MOST_BATCHES - len(self._running)
        for stored in await self.store.claim(self._worker, _CLAIM_SECONDS, free) if free > 0 else ():
            running = self._running[stored.id] = _Running(stored)
            running.task = asyncio.ensure_future(self._run(running))

    # ── one batch ──

    async def _run(self, running: _Running) -> None:
        id = running.stored.id
        try:
            await self._run_items(running)
            if not self._is_closing:
                await self._end(running)
        except Unavailable as error:  # the claim expires, and the missing requests are run then
            self._log.event("database_away", id=id, error=str(error))
        except Exception as error:  # noqa: BLE001 - a bug of ours must fail only this batch
            self._log.event("error", id=id, error=type(error).__name__)
        finally:
            if not self._is_closing:
                self._running.pop(id, None)

    async def _run_items(self, running: _Running) -> None:
        id = running.stored.id
        content = await self.store.content(id)
        finished = await self.store.finished_places(id)
        working: set[asyncio.Task[None]] = set()
        try:
            for item in items_of(content):
                if item.place in finished:
                    continue
                while len(working) >= _MOST_BEGUN:  # requests that wait for a retry do not hold the semaphore
                    await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
                await self._places.acquire()
                if running.is_over or self._is_closing:
                    self._places.release()
                    break
                task = asyncio.ensure_future(self._run_item(running, item))
                working.add(task)
                task.add_done_callback(working.discard)
            if working:
                await asyncio.gather(*working)
        finally:
            for task in working:
                task.cancel()

    async def _run_item(self, running: _Running, item: BatchItem) -> None:
        about, stored = running.about, running.stored
        format = stored.kind.partition(" ")[0]
        try:
            status, body = _unsupported_mode(format, item) or await self._answer(running, item)
        finally:
            self._places.release()
        outcome = "errored" if status >= _FAILED_FROM else "succeeded"
        line = result_line(format, item, outcome, status, body, inline=about.inline)
        await self.store.add_result(stored.id, item.place, outcome, line)

    async def _answer(self, running: _Running, item: BatchItem) -> tuple[int, bytes]:
        """Return the answer. Retries with back-off while a limit of the key or an upstream rejects the request."""
        pause, attempt = 0.5, 0
        while True:
            attempt += 1
            request = _Request(running.about, item)
            await self._serve(request)
            if request.status not in _AGAIN or attempt == _MOST_ATTEMPTS or running.is_over or self._is_closing:
                return request.status, request.answer
            self._places.release()  # other requests may run meanwhile
            try:
                await asyncio.sleep(min(max(request.retry_after, pause), _LONGEST_PAUSE))
            finally:
                await self._places.acquire()
            pause *= 2

    async def _end(self, running: _Running) -> None:
        """End the batch, and add a result for each request that never ran."""
        about, stored = running.about, running.stored
        format = stored.kind.partition(" ")[0]
        finished = await self.store.finished_places(stored.id)
        ending = "canceled" if running.is_canceled else "expired"
        if len(finished) < about.total:
            for item in items_of(await self.store.content(stored.id)):
                if item.place not in finished:
                    line = result_line(format, item, ending, 0, b"", inline=about.inline)
                    await self.store.add_result(stored.id, item.place, ending, line)
        now = time.time()
        about.ending = "completed" if len(finished) >= about.total and not running.is_canceled else ending  # type: ignore[assignment]
        about.ended_at = now
        about.counts = await self.store.counts(stored.id)
        about.canceled_at = about.canceled_at or (now if running.is_canceled else None)
        await self._write_files(stored, about, now)
        await self.store.end(stored.id, self._worker, _encode(about), now + KEPT_SECONDS)

    async def _write_files(self, stored: Stored, about: BatchAbout, now: float) -> None:
        """Create the result files. They refer to the stored results, so that nothing is stored twice."""
        format = stored.kind.partition(" ")[0]
        shape = BATCH_FORMATS[format]
        for name, outcomes in {} if about.inline else shape.result_files.items():
            if not any(about.counts.get(outcome) for outcome in outcomes):
                continue
            id = shape.file_prefix + secrets.token_hex(12)
            written = FileAbout(
                name=f"{stored.id.rpartition('/')[2]}_{name}.jsonl",
                purpose="batch_output",
                content_type="application/jsonl",
                size=await self.store.result_size(stored.id, outcomes),
                batch=stored.id,
                outcomes=outcomes,
            )
            file = Stored(
                id=id,
                owner=stored.owner,
                kind=f"{format} file",
                created=now,
                expires=now + KEPT_SECONDS,
                about=_encode(written),
            )
            await self.store.put(file, b"")
            about.files = {**about.files, name: id}


def _unsupported_mode(format: str, item: BatchItem) -> tuple[int, bytes] | None:
    """Return an error for requests that ask for a stream or for background work, which batches do not support."""
    try:
        modes = msgspec.json.decode(item.body, type=_Modes)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # the gateway reports the error
    if not modes.stream and not modes.background:
        return None
    name = "stream" if modes.stream else "background"
    words = f"Requests of a batch cannot have `{name}`."
    encoded = encode_error(Failure("invalid_request", words, 400, parameter=name), format)
    return 400, encoded.content
