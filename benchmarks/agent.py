"""Measures the agent loop itself: time per step, and memory over a thousand steps. `python benchmarks/agent.py`.

The model answers at once and the tool does nothing, so only the loop is measured: its history, events, checks of
arguments, output cache, and, where named, the session on disk. Times are processor time, not wall time. Memory is what
remains allocated after the run without its history, and the peak while compaction keeps the history short.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Unpack

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from dragoman.agent import Agent, Compaction, SessionStore, tool
from dragoman.drivers.base import Choice, Prompt, QueryResult, Settings, StreamResult, Tool, result_of
from dragoman.drivers.message_dicts import MessageLike
from dragoman.ir import Completion, Finish, Message, Text, ToolCall, Usage

STEPS: Final = 1_000
LIMIT_MS: Final = 1.0
LEFT_BYTES: Final = 64 * 1024
GROWTH: Final = 1.2
_SUMMARY: Final = "<retain>a fact</retain><summary>so far so good</summary>"


@tool
async def look(place: str, depth: int = 1) -> dict[str, Any]:
    """Look somewhere."""
    return {"place": place, "depth": depth, "found": ["nothing"] * 5}


@tool(name="look")
def look_in_a_thread(place: str, depth: int = 1) -> dict[str, Any]:
    """Look somewhere, without a coroutine."""
    return {"place": place, "depth": depth, "found": ["nothing"] * 5}


class Instant:
    """A model that calls the tool a given number of times, and stores nothing."""

    name = "instant/model"

    def __init__(self, steps: int) -> None:
        self._left = steps
        self._made = 0

    async def query(
        self,
        prompt: Prompt = None,  # noqa: ARG002
        *,
        tools: Sequence[Tool] | None = None,
        tool_choice: Choice = None,  # noqa: ARG002
        messages: Sequence[MessageLike] = (),
        **settings: Unpack[Settings],  # noqa: ARG002
    ) -> QueryResult:
        tokens = 10 * len(messages)
        if not tools:
            return _answer(Message("assistant", _SUMMARY), tokens)
        if not self._left:
            return _answer(Message("assistant", "Nothing anywhere."), tokens)
        self._left -= 1
        self._made += 1
        call = ToolCall(f"call_{self._made}", "look", {"place": f"room {self._made}", "depth": 2})
        return _answer(Message("assistant", (Text("Let me see."), call)), tokens)

    def stream_query(self, *_: Any, **__: Any) -> StreamResult:
        raise NotImplementedError

    async def close(self) -> None:
        return


def _answer(message: Message, tokens: int) -> QueryResult:
    return result_of(Completion((message,), Finish("stop"), Usage(tokens, 10)))


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    value: float
    unit: str
    limit: float

    @property
    def is_kept(self) -> bool:
        return self.value <= self.limit


def measure(steps: int = STEPS) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        ways: dict[str, Callable[[Agent], Any]] = {"run": _run, "run_stream": _stream}
        rows = [Row(f"{name}, per step", _milliseconds(way, steps), "ms", LIMIT_MS) for name, way in ways.items()]
        threaded = _milliseconds(_run, steps, tools=[look_in_a_thread])
        rows.append(Row("run with a synchronous tool, per step", threaded, "ms", LIMIT_MS))
        store = SessionStore(folder)
        rows.append(
            Row("run with a session, per step", _milliseconds(_run, steps, session=store.open("s")), "ms", LIMIT_MS)
        )
        store.close()
    rows.append(Row(f"left after {steps} steps, without the history", _left(steps) / 1024, "KiB", LEFT_BYTES / 1024))
    short, long = (_peak(count) for count in (steps // 2, steps))
    rows.append(Row(f"peak of {steps} steps to {steps // 2}, history compacted", long / short, "x", GROWTH))
    return rows


def _agent(steps: int, **options: Any) -> Agent:
    chosen = {"tools": [look], "compaction": None, **options}
    return Agent(Instant(steps), max_iterations=steps + 1, **chosen)


async def _run(agent: Agent) -> None:
    await agent.run("Search the house.")


async def _stream(agent: Agent) -> None:
    async for _ in agent.run_stream("Search the house."):
        pass


def _milliseconds(way: Callable[[Agent], Any], steps: int, **options: Any) -> float:
    """The best of three, because noise only adds time."""
    best = float("inf")
    for _ in range(3):
        agent = _agent(steps, **options)
        start = time.process_time()
        asyncio.run(way(agent))
        best = min(best, time.process_time() - start)
        agent.history = ()
    return best * 1000 / steps


def _left(steps: int) -> int:
    """Bytes that a run leaves allocated, without its history."""
    asyncio.run(_run(_agent(10)))
    agent = _agent(steps, output_cache=None)
    gc.collect()
    tracemalloc.start()
    try:
        asyncio.run(_run(agent))
        agent.history = ()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def _peak(steps: int) -> int:
    agent = _agent(steps, compaction=Compaction(context_window=1_000), output_cache=None)
    gc.collect()
    tracemalloc.start()
    try:
        asyncio.run(_run(agent))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a limit is exceeded")
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    rows = measure(options.steps)
    for row in rows:
        print(f"{row.what:<55} {row.value:8.3f} {row.unit:<4} (limit {row.limit:g})")
    return 1 if options.check and not all(row.is_kept for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
