"""Runs several processes that share a port: forks them, passes on signals, and replaces those that die."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeAlias

Work: TypeAlias = Callable[[int, bool], Coroutine[Any, Any, None]]
"""Runs a worker, given its place and whether it is the first one in that place."""
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SIGNALS = (*_PASSED_ON, signal.SIGCHLD)
_FIRST_DELAY = 0.2
_LONGEST_DELAY = 10.0
_STABLE = 10.0
"""Seconds after which a worker counts as stable."""


def run_loop(work: Coroutine[Any, Any, None]) -> None:
    """Do what `asyncio.run` does, on uvloop if it is installed (extra `gateway`; not on Windows)."""
    try:
        from uvloop import new_event_loop  # noqa: PLC0415 - only where a gateway runs
    except ImportError:
        asyncio.run(work)
        return
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(work)


def _ignore_signal(_number: int, _frame: object) -> None:
    """Do nothing: the signal has already written its number to the wakeup pipe."""


class RestartDelay:
    """Back-off for replacing a worker: immediately at first, then ever later if workers keep dying early."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._started = 0.0

    def record_start(self, now: float) -> None:
        self._started = now

    def next_delay(self, now: float) -> float:
        if now - self._started >= _STABLE:
            self._seconds = 0.0
        waited, self._seconds = self._seconds, min(max(self._seconds * 2, _FIRST_DELAY), _LONGEST_DELAY)
        return waited


class WorkerPool:
    """Worker processes, forked before any event loop exists. They end when their parent dies."""

    def __init__(self, count: int, work: Work) -> None:
        self._work = work
        self._places = range(count)
        self._children: dict[int, int] = {}
        self._due: dict[int, float] = dict.fromkeys(self._places, 0.0)
        self._delays = [RestartDelay() for _ in self._places]
        self._started: set[int] = set()
        self._ending = False
        self._alive = os.pipe()
        self._signal_pipe = os.pipe()

    def run(self) -> int:
        # Signals become bytes in a pipe, so that none is lost between a fork and the registration of the child.
        os.set_blocking(self._signal_pipe[1], False)
        signal.set_wakeup_fd(self._signal_pipe[1], warn_on_full_buffer=False)
        for number in _SIGNALS:
            signal.signal(number, _ignore_signal)
        while self._children or (self._due and not self._ending):
            now = time.monotonic()
            for place in [place for place, due in self._due.items() if due <= now and not self._ending]:
                self._start(place, now)
            self._wait(min(self._due.values(), default=None) if not self._ending else None)
            self._reap()
        return 0

    def _start(self, place: int, now: float) -> None:
        del self._due[place]
        self._delays[place].record_start(now)
        child = os.fork()
        if child == 0:
            self._run_child(place)
        self._started.add(place)
        self._children[child] = place

    def _run_child(self, place: int) -> NoReturn:
        """Run the child process. Never returns, because the callers' cleanup belongs to the parent."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in _SIGNALS:  # until the worker installs its own
                signal.signal(number, signal.SIG_DFL)
            os.close(self._alive[1])
            run_loop(self._run_worker(place))
            status = 0
        except BaseException:  # noqa: BLE001 - a worker that fails prints why, and is replaced
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)

    async def _run_worker(self, place: int) -> None:
        loop = asyncio.get_running_loop()

        def orphaned() -> None:
            loop.remove_reader(self._alive[0])
            os.kill(os.getpid(), signal.SIGTERM)

        loop.add_reader(self._alive[0], orphaned)
        await self._work(place, place not in self._started)

    def _wait(self, until: float | None) -> None:
        patience = None if until is None else max(until - time.monotonic(), 0.0)
        if not select.select([self._signal_pipe[0]], [], [], patience)[0]:
            return
        for number in os.read(self._signal_pipe[0], 256):
            if number not in _PASSED_ON:
                continue
            self._ending = self._ending or number != signal.SIGHUP
            for child in self._children:
                os.kill(child, number)

    def _reap(self) -> None:
        while self._children:
            child, _ = os.waitpid(-1, os.WNOHANG)
            if child == 0:
                return
            place = self._children.pop(child)
            now = time.monotonic()
            self._due[place] = now + self._delays[place].next_delay(now)
