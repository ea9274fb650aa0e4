"""Faults on request: each of them at each API, streamed and not."""

import asyncio
import json
import time
from http.client import HTTPException, IncompleteRead
from typing import Any

import aiohttp
import pytest

from dragoman.sim.faults import Fault, parse_fault
from dragoman.sim.server import Simulator, serving
from dragoman.sim.service import Service
from tests.sim.wire import DOORS, ask
from tests.support.waiting import PATIENCE

LONG = "Count to 200"
BOTH = pytest.mark.parametrize("streamed", [False, True])
EVERY = pytest.mark.parametrize("api", DOORS)

OVERLOADED = {"anthropic-messages": 529, "anthropic-vertex": 529}


@EVERY
@BOTH
def test_a_refusal_has_the_status_of_the_api(dragoman_sim: Simulator, api: str, *, streamed: bool) -> None:
    door = DOORS[api]
    answer = ask(dragoman_sim, door, door.ask(LONG), stream=streamed, x_sim_fault="error=overloaded; retry_after=7")
    assert answer.status == OVERLOADED.get(api, 503)
    assert door.message_of(answer.json)
    assert answer.headers["retry-after"] == "7"
    worded = ask(dragoman_sim, door, door.ask(LONG), stream=streamed, x_sim_fault="status=418; message=short and stout")
    assert worded.status == 418
    assert door.message_of(worded.json) == "short and stout"


@EVERY
@BOTH
def test_a_connection_is_cut(dragoman_sim: Simulator, api: str, *, streamed: bool) -> None:
    door = DOORS[api]
    with pytest.raises((HTTPException, ConnectionError)):
        ask(dragoman_sim, door, door.ask(LONG), stream=streamed, x_sim_fault="cut=0")
    with pytest.raises(IncompleteRead) as broken:
        ask(dragoman_sim, door, door.ask(LONG), stream=streamed, x_sim_fault="cut=2")
    assert broken.value.partial


@EVERY
@BOTH
def test_garbage_arrives(dragoman_sim: Simulator, api: str, *, streamed: bool) -> None:
    door = DOORS[api]
    whole = ask(dragoman_sim, door, door.ask(LONG), stream=streamed)
    broken = ask(dragoman_sim, door, door.ask(LONG), stream=streamed, x_sim_fault="garbage=1")
    assert broken.status == 200
    assert broken.body != whole.body
    if not streamed:
        with pytest.raises(json.JSONDecodeError):
            broken.json  # noqa: B018 - reading it is the test


@EVERY
def test_drips_add_up_to_the_whole(dragoman_sim: Simulator, api: str) -> None:
    door = DOORS[api]
    for streamed in (False, True):
        whole = ask(dragoman_sim, door, door.ask("hi"), stream=streamed)
        assert ask(dragoman_sim, door, door.ask("hi"), stream=streamed, x_sim_fault="drip=0.0001").body == whole.body


# How each API reports an error once a stream has begun.
IN_STREAM = {
    "openai-chat": b'data: {"error":',
    "openai-responses": b"event: response.failed",
    "azure-openai": b'data: {"error":',
    "anthropic-messages": b"event: error\n",
    "anthropic-vertex": b"event: error\n",
    "gemini": b'data: {"error":',
    "vertex": b'data: {"error":',
    "ollama-chat": b'{"error":',
    "cohere-chat": b'"finish_reason":"ERROR","error":',
    "gemini-interactions": b"event: error\n",
    "vertex-interactions": b"event: error\n",
    "bedrock-converse": b":exception-type\x07\x00\x1bserviceUnavailableException",
}


@EVERY
def test_an_error_inside_a_stream(dragoman_sim: Simulator, api: str) -> None:
    door = DOORS[api]
    whole = ask(dragoman_sim, door, door.ask(LONG), stream=True)
    answer = ask(dragoman_sim, door, door.ask(LONG), stream=True, x_sim_fault="fail=3")
    assert answer.status == 200
    assert IN_STREAM[api] in answer.body
    assert len(answer.body) < len(whole.body)
    # Without a stream there is only one place to say it.
    assert ask(dragoman_sim, door, door.ask(LONG), x_sim_fault="fail=3").status == OVERLOADED.get(api, 503)


def test_a_delay_comes_before_the_first_byte(dragoman_sim: Simulator) -> None:
    door = DOORS["openai-chat"]
    started = time.monotonic()
    assert ask(dragoman_sim, door, door.ask("hi"), x_sim_fault="delay=0.2").status == 200
    assert time.monotonic() - started >= 0.2


def test_a_mistaken_fault_is_explained(dragoman_sim: Simulator) -> None:
    door = DOORS["anthropic-messages"]
    refused = ask(dragoman_sim, door, door.ask("hi"), x_sim_fault="explode=1")
    assert refused.status == 400
    assert "explode" in door.message_of(refused.json)


def test_the_header_is_read() -> None:
    assert parse_fault("status=529; retry_after=2.5;fail=3") == Fault(status=529, retry_after=2.5, fail=3)
    assert parse_fault("") == Fault()


# --- with aiohttp: what only shows when many talk at once, or one goes away ---------------------------------------


async def _stall(url: str) -> None:
    door = DOORS["openai-chat"]
    headers = {**door.headers, "x-sim-fault": "stall=2"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(url + door.path, json={**door.ask(LONG), "stream": True}, headers=headers) as response,
    ):
        assert await response.content.readline()
        with pytest.raises(asyncio.TimeoutError):
            async with asyncio.timeout(0.3):
                await response.read()


def test_a_stalled_answer_ends_with_its_client() -> None:
    async def scene() -> None:
        async with serving(Service()) as url:
            before = len(asyncio.all_tasks())
            await _stall(url)
            async with asyncio.timeout(PATIENCE):
                while len(asyncio.all_tasks()) > before:  # noqa: ASYNC110 - tasks of the server
                    await asyncio.sleep(0.01)

    asyncio.run(scene())


def test_two_hundred_streams_at_once() -> None:
    door = DOORS["anthropic-messages"]

    async def one(session: aiohttp.ClientSession, url: str, number: int) -> str:
        body = {**door.ask(f"Say: stream number {number}"), "stream": True}
        async with session.post(url + door.path, json=body, headers=door.headers) as response:
            lines = [line async for line in response.content]
        events = [json.loads(line[6:]) for line in lines if line.startswith(b"data: ")]
        return "".join(event.get("delta", {}).get("text", "") for event in events)

    async def scene() -> list[str]:
        connector = aiohttp.TCPConnector(limit=0)
        async with serving(Service()) as url, aiohttp.ClientSession(connector=connector) as session:
            return list(await asyncio.gather(*(one(session, url, number) for number in range(200))))

    texts: Any = asyncio.run(scene())
    assert texts == [f"stream number {number}" for number in range(200)]
