"""Load generator: answers per second, CPU time of the serving process, and latency.

The generator shares the machine with the measured process, so it does as little as possible: answers are not parsed,
and streams are polled twice per millisecond instead of at every piece.
"""

from __future__ import annotations

import os
import re
import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Final

TICKS: Final = os.sysconf("SC_CLK_TCK")
PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_BLANK: Final = b"\r\n\r\n"
_LAST: Final = b"0\r\n\r\n"
_PATIENCE: Final = 20.0
_STAMP: Final = re.compile(rb"<(\d+\.\d{6})>")


@dataclass(frozen=True)
class Result:
    rate: float
    cpu: float
    """CPU seconds of the process per answer."""


def measure(port: int, pid: int, sent: bytes, seconds: float, concurrency: int, *, stream: bool) -> Result:
    ask = stream_load if stream else json_load
    ask(port, sent, seconds / 4, concurrency)
    before, started = cpu_seconds(pid), time.perf_counter()
    count = ask(port, sent, seconds, concurrency)
    return Result(count / (time.perf_counter() - started), (cpu_seconds(pid) - before) / max(count, 1))


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads, in nanoseconds if the kernel has them: ticks are too coarse for half a second."""
    try:
        counts = [int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    except OSError:
        counts = []
    if counts:
        return sum(counts) / 1e9
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def megabytes(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / (1 << 20)


class Asker:
    """One client connection, reopened if the server closes it."""

    def __init__(self, port: int, sent: bytes) -> None:
        self._port = port
        self._sent = sent
        self._line: socket.socket | None = None
        self._head = b""
        self._left: int | None = None
        self._last = b""
        self._closes = False

    def ask(self, timeout: float = 0.0) -> socket.socket:
        if self._line is None:
            self._line = socket.create_connection(("127.0.0.1", self._port))
            self._line.settimeout(timeout)
        self._head, self._left, self._last = b"", None, b""
        self._line.send(self._sent)
        return self._line

    def received(self) -> bytes:
        """The body received so far."""
        assert self._line is not None  # noqa: S101 - set by the first request
        data = self._line.recv(1 << 18)
        if not data:
            raise RuntimeError("the connection was closed")
        if not self._head.endswith(_BLANK):
            head, blank, data = (self._head + data).partition(_BLANK)
            self._head = head + blank
            if blank:
                self._open(head)
        if self._left is not None:
            self._left -= len(data)
        self._last = (self._last + data)[-len(_LAST) :]
        return data

    def _open(self, head: bytes) -> None:
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head)
        lower = head.lower()
        _, sized, length = lower.partition(b"content-length: ")
        self._left = int(length.split(b"\r\n", 1)[0]) if sized else None
        self._closes = b"connection: close" in lower

    def is_answered(self) -> bool:
        whole = self._left == 0 or (self._left is None and self._last == _LAST)
        if whole and self._closes:
            self.close()
        return whole

    @property
    def is_closed(self) -> bool:
        return self._line is None

    def close(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()


@contextmanager
def askers(port: int, sent: bytes, count: int) -> Iterator[list[Asker]]:
    made = [Asker(port, sent) for _ in range(count)]
    try:
        yield made
    finally:
        for one in made:
            one.close()


def is_over(started: float, seconds: float, count: int, concurrency: int) -> bool:
    """Whether time is up and every client has been answered at least once."""
    passed = time.perf_counter() - started
    return passed >= (seconds if count >= concurrency else seconds + _PATIENCE)


def json_load(port: int, sent: bytes, seconds: float, concurrency: int, most: int = 1 << 60) -> int:
    """Each client sends again as soon as its answer is complete."""
    count = 0
    with askers(port, sent, concurrency) as asking, select.epoll() as poll:
        waiting: dict[int, Asker] = {}

        def ask(one: Asker) -> None:
            number = one.ask().fileno()
            if waiting.get(number) is not one:
                waiting[number] = one
                poll.register(number, select.EPOLLIN)

        for one in asking:
            ask(one)
        started = time.perf_counter()
        while count < most and not is_over(started, seconds, count, concurrency):
            for number, _ in poll.poll(0.5):
                one = waiting[number]
                one.received()
                if one.is_answered():
                    count += 1
                    if one.is_closed:
                        del waiting[number]
                    ask(one)
    return count


def stream_load(port: int, sent: bytes, seconds: float, concurrency: int) -> int:
    count = 0
    with askers(port, sent, concurrency) as asking:
        for one in asking:
            one.ask()
        started = time.perf_counter()
        while not is_over(started, seconds, count, concurrency):
            time.sleep(0.0005)
            for one in asking:
                with suppress(BlockingIOError):
                    one.received()
                    if one.is_answered():
                        count += 1
                        one.ask()
    return count


def first_byte(port: int, sent: bytes, seconds: float) -> float:
    """Time until the answer to a single request."""
    taken = []
    with askers(port, sent, 1) as (one,):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            started = time.perf_counter()
            one.ask(10.0)
            one.received()
            while not one.is_answered():
                one.received()
            taken.append(time.perf_counter() - started)
    return median(taken)


def delays(port: int, sent: bytes, times: int) -> tuple[float, float]:
    """Latency of pieces from the upstream to the client: p50 and p99."""
    taken: list[float] = []
    with askers(port, sent, 1) as (one,):
        for _ in range(times):
            one.ask(10.0)
            answered = False
            while not answered:
                stamps = _STAMP.findall(one.received())
                now = time.perf_counter()
                taken.extend(now - float(stamp) for stamp in stamps)
                answered = one.is_answered()
    return median(taken), quantiles(taken, n=100)[-1]
