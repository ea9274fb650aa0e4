"""Asking, again and again: how many answers a second, at which cost for the process that gives them, and how late.

Whatever asks shares the machine with what is measured, so it does as little as it can: answers are not parsed, and
streams are looked at twice in a millisecond instead of at every piece.
"""

from __future__ import annotations

import os
import re
import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Final

TICKS: Final = os.sysconf("SC_CLK_TCK")
PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_LAST: Final = b"0\r\n\r\n"
_STAMP: Final = re.compile(rb"<(\d+\.\d{6})>")


@dataclass(frozen=True)
class Result:
    rate: float
    cpu: float
    """Seconds of the process for each answer."""


def measure(port: int, pid: int, sent: bytes, seconds: float, concurrency: int, *, stream: bool) -> Result:
    ask = stream_load if stream else json_load
    ask(port, sent, seconds / 4, concurrency)
    before, started = cpu_seconds(pid), time.perf_counter()
    count = ask(port, sent, seconds, concurrency)
    return Result(count / (time.perf_counter() - started), (cpu_seconds(pid) - before) / max(count, 1))


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def megabytes(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / (1 << 20)


@contextmanager
def connections(port: int, count: int) -> Iterator[list[socket.socket]]:
    made = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
    try:
        for one in made:
            one.settimeout(0.0)
        yield made
    finally:
        for one in made:
            one.close()


def json_load(port: int, sent: bytes, seconds: float, concurrency: int, most: int = 1 << 60) -> int:
    """Each connection asks again as soon as its answer is whole."""
    count = 0
    with connections(port, concurrency) as lines, select.epoll() as poll:
        by_number = {line.fileno(): line for line in lines}
        held = dict.fromkeys(by_number, b"")
        for number, line in by_number.items():
            poll.register(number, select.EPOLLIN)
            line.send(sent)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end and count < most:
            for number, _ in poll.poll(0.5):
                line = by_number[number]
                held[number] += received(line)
                if is_whole(held[number]):
                    count += 1
                    held[number] = b""
                    line.send(sent)
    return count


def is_whole(data: bytes) -> bool:
    head, found, body = data.partition(b"\r\n\r\n")
    if not found:
        return False
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(data[:500])
    _, sized, length = head.lower().partition(b"content-length: ")
    return len(body) >= int(length.split(b"\r\n", 1)[0]) if sized else body.endswith(_LAST)


def stream_load(port: int, sent: bytes, seconds: float, concurrency: int) -> int:
    count = 0
    with connections(port, concurrency) as lines:
        last = dict.fromkeys(lines, b"")
        for line in lines:
            line.send(sent)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            time.sleep(0.0005)
            for line in lines:
                try:
                    data = received(line)
                except BlockingIOError:
                    continue
                last[line] = (last[line] + data)[-len(_LAST) :]
                if last[line] == _LAST:
                    count += 1
                    last[line] = b""
                    line.send(sent)
    return count


def received(line: socket.socket) -> bytes:
    data = line.recv(1 << 18)
    if not data:
        raise RuntimeError("the connection was closed")
    return data


def first_byte(port: int, sent: bytes, seconds: float) -> float:
    """Until the answer to a request is there, one at a time."""
    taken = []
    with connections(port, 1) as (line,):
        line.settimeout(10.0)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            started = time.perf_counter()
            line.send(sent)
            data = received(line)
            while not is_whole(data):
                data += received(line)
            taken.append(time.perf_counter() - started)
    return median(taken)


def delays(port: int, sent: bytes, times: int) -> tuple[float, float]:
    """From when the upstream sends a piece to when it is here: of half of the pieces, and of 99 % of them."""
    taken: list[float] = []
    with connections(port, 1) as (line,):
        line.settimeout(10.0)
        for _ in range(times):
            line.send(sent)
            data = b""
            while not data.endswith(_LAST):
                data = received(line)
                now = time.perf_counter()
                taken.extend(now - float(stamp) for stamp in _STAMP.findall(data))
    return median(taken), quantiles(taken, n=100)[-1]
