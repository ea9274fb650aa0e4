"""Measures `import dragoman` in fresh interpreters: time, and modules it loads."""

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Final

from benchmarks import bodies, conversations

_ROUNDS: Final = 15

# The core does no I/O, so none of these modules may be loaded.
_UNWANTED: Final = ("aiohttp", "asyncio", "http", "httpx", "requests", "socket", "ssl", "urllib.request", "urllib3")

# Only the work itself is timed; the interpreter has started by then.
_PROGRAM: Final = """
import sys, time
start = time.perf_counter_ns()
{work}
print(time.perf_counter_ns() - start)
print(*sys.modules)
"""

_NOTHING: Final = "pass"
_IMPORT_MSGSPEC: Final = "import msgspec"
_IMPORT_DRAGOMAN: Final = "import dragoman"
# A lazy import is cheap, so the first use is measured too: one request to each format.
_FIRST_USE: Final = f"""
import dragoman
body = {bodies.request(conversations.small(), "openai-chat")!r}
for target in {bodies.FIRST!r}:
    dragoman.translate_request(body, source="openai-chat", target=target)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportCost:
    """Nanoseconds, each the best of all rounds."""

    msgspec: int
    dragoman: int
    first_use: int
    unwanted: tuple[str, ...]

    @property
    def ratio(self) -> float:
        return self.dragoman / self.msgspec

    @property
    def first_use_ratio(self) -> float:
        return self.first_use / self.msgspec


def measure() -> ImportCost:
    already = _run(_NOTHING)[1]  # modules of the interpreter itself: a coverage hook, an editable install
    loaded = _run(_FIRST_USE)[1]  # also writes the bytecode for the later rounds
    rounds = [[_run(work)[0] for work in (_IMPORT_MSGSPEC, _IMPORT_DRAGOMAN, _FIRST_USE)] for _ in range(_ROUNDS)]
    msgspec, dragoman, first_use = (min(column) for column in zip(*rounds, strict=True))
    unwanted = tuple(module for module in _UNWANTED if module in loaded - already)
    return ImportCost(msgspec=msgspec, dragoman=dragoman, first_use=first_use, unwanted=unwanted)


def _run(work: str) -> tuple[int, set[str]]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    finished = subprocess.run(  # noqa: S603 - our own interpreter, our own program
        [sys.executable, "-c", _PROGRAM.format(work=work)],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    nanoseconds, modules = finished.stdout.splitlines()
    return int(nanoseconds), set(modules.split())
