"""What `import dragoman` costs and what it brings along, asked of fresh interpreters."""

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Final

_ROUNDS: Final = 15

# The core talks to nobody: a loaded module of this list means somebody reached for the network or an event loop.
_UNWANTED: Final = ("aiohttp", "asyncio", "http", "httpx", "requests", "socket", "ssl", "urllib.request", "urllib3")

# Only the import itself is timed; the interpreter has started by then.
_PROGRAM: Final = """
import sys, time
start = time.perf_counter_ns()
import {module}
print(time.perf_counter_ns() - start)
print(*sys.modules)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportCost:
    dragoman: float  # nanoseconds, the best of all rounds
    msgspec: float
    unwanted: tuple[str, ...]

    @property
    def ratio(self) -> float:
        return self.dragoman / self.msgspec


def measure() -> ImportCost:
    _run("dragoman")  # writes the bytecode, which every later import finds
    dragoman, msgspec = [], []
    loaded: set[str] = set()
    for _ in range(_ROUNDS):
        msgspec.append(_run("msgspec")[0])
        nanoseconds, modules = _run("dragoman")
        dragoman.append(nanoseconds)
        loaded |= modules
    already = _run("sys")[1]  # an interpreter may bring some along: a coverage hook, an editable install
    unwanted = tuple(module for module in _UNWANTED if module in loaded - already)
    return ImportCost(dragoman=min(dragoman), msgspec=min(msgspec), unwanted=unwanted)


def _run(module: str) -> tuple[int, set[str]]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    finished = subprocess.run(  # noqa: S603 - our own interpreter, our own program
        [sys.executable, "-c", _PROGRAM.format(module=module)],
        env=environment,
        capture_output=True,
        check=True,
        text=True,
    )
    nanoseconds, modules = finished.stdout.splitlines()
    return int(nanoseconds), set(modules.split())
