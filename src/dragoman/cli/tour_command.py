"""The work behind `dragoman tour`."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from dragoman.cli.problems import OK, STREAM_FAILED, not_installed, one_line
from dragoman.drivers.base import QueryResult, RawExchange
from dragoman.drivers.connect import connect
from dragoman.drivers.remote import RemoteDriver
from dragoman.errors import DragomanError
from dragoman.ir import Message, ToolCall, ToolResult
from dragoman.ir.values import compact_text, parse_json
from dragoman.terminal import Terminal, shorten, stdout, terminal_of, visible

QUESTION = "Get the weather and the time of Tokyo."
_CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_ANSWERS: Mapping[str, str] = {"get_weather": "18 degrees, light rain", "get_time": "14:05"}
_TOOLS = [{"name": name, "description": name.replace("_", " "), "parameters": _CITY} for name in _ANSWERS]


class Stop(NamedTuple):
    """A model, the path of its simulator, and options of its URL."""

    model: str
    mount: str
    place: Mapping[str, str] = {}


STOPS = (
    Stop("openai/gpt-5.6", "/openai/v1"),
    Stop("openai-chat/gpt-5.6", "/openai/v1"),
    Stop("anthropic/claude-sonnet-5", "/anthropic"),
    Stop("gemini/gemini-3.8-flash", "/gemini"),
    Stop("vertex/gemini-3.8-flash", "/vertex"),
    Stop("vertex-anthropic/claude-sonnet-5", "", {"project": "tour", "location": "global"}),
    Stop("ollama/qwen3", "/ollama"),
    Stop("bedrock/anthropic.claude-opus-4-8", "/bedrock", {"region": "eu-central-1"}),
    Stop("azure/gpt-5.6", "", {"api_version": "2025-04-01-preview"}),
)
_NEXT = """\
The same lines for all of them:

  driver = dragoman.connect("anthropic/claude-sonnet-5")
  result = await driver.query("Weather in Tokyo?", tools=[weather])

With a key in the environment they reach the real one (dragoman doctor lists them):

  dragoman ask anthropic/claude-sonnet-5 "Why is the sky blue?"
  dragoman sim                                        these simulators, for your own code and tests"""


def tour(*, streams: bool) -> int:
    try:
        from dragoman.sim.server import Simulator
    except ImportError as error:
        raise not_installed(error, "http", "sim") from None
    screen = terminal_of(stdout())
    with Simulator() as simulator:
        print(screen.paint(f"{len(STOPS)} providers, simulated at {simulator.url}", "bold"), file=stdout())
        print(f"the question: {QUESTION}", file=stdout())
        print(
            "then, each time: two calls, the answer, and how that API wrote the first call and its result\n",
            file=stdout(),
        )
        failed = asyncio.run(_run_stops(simulator.url, screen, streams=streams))
    print(_NEXT, file=stdout())
    return STREAM_FAILED if failed else OK


async def _run_stops(url: str, screen: Terminal, *, streams: bool) -> int:
    failed = 0
    for stop in STOPS:
        options: Any = {"base_url": url + stop.mount, "api_key": "tour", "environment": {}, "proxy": "", **stop.place}
        async with connect(stop.model, **options) as driver:
            try:
                await _run_stop(driver, lambda text: print(text, file=stdout(), flush=True), screen, streams=streams)
            except DragomanError as error:
                failed += 1
                print(one_line(f"dragoman: {stop.model}: {error}"), file=sys.stderr)
    return failed


async def _run_stop(driver: RemoteDriver, write: Callable[[str], None], screen: Terminal, *, streams: bool) -> None:
    started = time.perf_counter()
    write(screen.paint(driver.name, "cyan"))
    first = await _ask(driver, [], streams=streams)
    calls = first.tool_calls or ()
    for call in calls:
        write(f"  -> {call.name} {compact_text(call.arguments)}")
    sys.stdout.write("  ")
    second = await _ask(driver, [first.message, Message("tool", tuple(map(_run, calls)))], streams=streams, shown=True)
    write("")
    for line in _wire_lines(second.raw, calls):
        write(screen.paint(f"  {shorten(line, screen.width - 2)}", "dim"))
    spent = sum(one.usage.input + one.usage.output for one in (first, second) if one.usage is not None)
    milliseconds = (time.perf_counter() - started) * 1000
    write(screen.paint(f"  {second.finish_reason}, {spent} tokens, {milliseconds:.0f} ms\n", "dim"))


async def _ask(driver: RemoteDriver, messages: list[Message], *, streams: bool, shown: bool = False) -> QueryResult:
    """With `shown`, prints the text as it streams."""
    if not streams:
        result = await driver.query(QUESTION, tools=_TOOLS, messages=messages, raw=True)
        sys.stdout.write(visible(result.content) if shown else "")
        return result
    stream = driver.stream_query(QUESTION, tools=_TOOLS, messages=messages, raw=True)
    async for piece in stream:
        if shown:
            sys.stdout.write(visible(piece))
            sys.stdout.flush()
    return await stream.result


def _wire_lines(raw: RawExchange | None, calls: Sequence[ToolCall]) -> Iterator[str]:
    """The first call and its result, as this API writes them."""
    if raw is None or not calls:
        return
    call, body = calls[0], parse_json(raw.request_body)
    yield f"POST {urlsplit(raw.url).path}"
    for needles in ((call.name, *map(str, call.arguments.values())), (_ANSWERS[call.name],)):
        found = [text for text in map(compact_text, _objects(body)) if all(needle in text for needle in needles)]
        yield "  " + min(_objects_about(found, call), key=len, default="").replace(call.id, f"{call.id[:8]}..")


def _objects_about(found: list[str], call: ToolCall) -> list[str]:
    """Objects that refer to the call, by its id or its name."""
    return [text for text in found if call.id in text or call.name in text]


def _objects(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(inner)


def _run(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, call.name, "text", _ANSWERS[call.name])
