"""The state of the Responses API, kept for upstreams that have none."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import openai
import pytest
from msgspec import structs
from openai import OpenAI

from dragoman.gateway.config import read_config
from dragoman.gateway.state.base import Kept
from dragoman.gateway.state.connect import open_store
from dragoman.sim.server import Simulator
from tests.gateway.running import RunningGateway, every_format, simulated
from tests.support.promises import promise

MODEL = "as-anthropic-messages/claude-sonnet-5"
NATIVE = "as-openai-responses/gpt-5"


@pytest.fixture(scope="module")
def client(shared_gateway: RunningGateway) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{shared_gateway.url}/v1", api_key="any", max_retries=0) as sdk:
        yield sdk


@promise("gateway:responses-state")
@pytest.mark.usefixtures("gateway")
def test_a_response_is_kept_listed_followed_and_deleted(client: OpenAI, dragoman_sim: Simulator) -> None:
    first = client.responses.create(model=MODEL, input="My name is Ada.", metadata={"a": "b"})
    second = client.responses.create(
        model=MODEL, input="Who am I?", previous_response_id=first.id, instructions="Be brief"
    )
    sent: Any = dragoman_sim.requests[-1].json
    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "user"]
    assert second.previous_response_id == first.id
    fetched = client.responses.retrieve(first.id)
    assert fetched.output_text == first.output_text
    assert (fetched.metadata, fetched.store) == ({"a": "b"}, True)  # type: ignore[attr-defined]
    items: Any = client.responses.input_items.list(second.id).data
    assert [item.content[0].text for item in items if getattr(item, "role", "") == "user"] == [
        "Who am I?",
        "My name is Ada.",
    ]
    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model=MODEL, input="x", previous_response_id=first.id)
    assert caught.value.code == "previous_response_not_found"


@promise("gateway:responses-state")
@pytest.mark.usefixtures("gateway")
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_items_may_be_referred_to(client: OpenAI, dragoman_sim: Simulator, *, streamed: bool) -> None:
    """As the Vercel AI SDK does with everything that a model has said."""
    dragoman_sim.play({"reasoning": "I see.", "text": "Hello, Ada."})
    first: Any
    if streamed:
        with client.responses.stream(model=MODEL, input="I am Ada.") as stream:
            first = stream.get_final_response()
    else:
        first = client.responses.create(model=MODEL, input="I am Ada.")
    references = [{"type": "item_reference", "id": item.id} for item in first.output]
    history: Any = [{"role": "user", "content": "I am Ada."}, *references, {"role": "user", "content": "Who am I?"}]
    second = client.responses.create(model=MODEL, input=history)
    sent: Any = dragoman_sim.requests[-1].json
    assert [block["type"] for block in sent["messages"][1]["content"]] == ["thinking", "text"]
    assert sent["messages"][1]["content"][1]["text"] == "Hello, Ada."
    listed = client.responses.input_items.list(second.id).data
    assert [item.type for item in listed] == ["message", "message", "reasoning", "message"]

    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError) as caught:
        client.responses.create(model=MODEL, input=history)
    assert f"Item with id '{references[-1]['id']}' not found." in str(caught.value)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(str(references[0]["id"]).removeprefix("rs_")[: len("dgm_") + 12])


@promise("gateway:responses-state")
@pytest.mark.usefixtures("gateway")
def test_what_should_not_be_stored_is_not(client: OpenAI) -> None:
    response = client.responses.create(model=MODEL, input="Hello", store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response.id)


@promise("gateway:responses-state")
@pytest.mark.usefixtures("gateway")
def test_a_streamed_response_is_kept(client: OpenAI) -> None:
    with client.responses.stream(model=MODEL, input="Hello") as stream:
        final = stream.get_final_response()
    assert client.responses.retrieve(final.id).output_text == final.output_text


@promise("gateway:responses-state")
@pytest.mark.usefixtures("gateway")
def test_an_upstream_with_a_state_keeps_its_own(client: OpenAI, dragoman_sim: Simulator) -> None:
    first = client.responses.create(model=NATIVE, input="My name is Ada.")
    client.responses.create(model=NATIVE, input="Who am I?", previous_response_id=first.id)
    assert dragoman_sim.requests[-1].json["previous_response_id"] == first.id
    assert client.responses.retrieve(first.id).id == first.id
    assert dragoman_sim.requests[-1].method == "GET"


@promise("gateway:responses-state")
@pytest.mark.usefixtures("gateway")
def test_a_conversation_may_move_to_another_family(client: OpenAI, dragoman_sim: Simulator) -> None:
    first = client.responses.create(model=MODEL, input="My name is Ada.")
    moved = client.responses.create(model=NATIVE, input="Who am I?", previous_response_id=first.id)
    assert "Ada" in dragoman_sim.requests[-1].body.decode()
    again = client.responses.create(model="as-gemini/gemini-3.6-flash", input="And?", previous_response_id=moved.id)
    assert again.output_text


@promise("gateway:responses-background")
@pytest.mark.usefixtures("gateway")
def test_in_the_background(client: OpenAI) -> None:
    promised = client.responses.create(model=MODEL, input="Hello", background=True)
    assert promised.status == "in_progress"
    end = time.monotonic() + 5
    while (response := client.responses.retrieve(promised.id)).status == "in_progress":
        assert time.monotonic() < end
        time.sleep(0.01)
    assert (response.status, bool(response.output_text)) == ("completed", True)


@promise("gateway:responses-background")
@pytest.mark.usefixtures("gateway")
def test_cancelled(client: OpenAI, dragoman_sim: Simulator) -> None:
    dragoman_sim.play({"text": "late", "delay": 5})
    promised = client.responses.create(model=MODEL, input="Hello", background=True)
    assert client.responses.cancel(promised.id).status == "cancelled"
    assert client.responses.retrieve(promised.id).status == "cancelled"
    other = client.responses.create(model=MODEL, input="Hello")
    with pytest.raises(openai.BadRequestError):
        client.responses.cancel(other.id)


@pytest.fixture
def pair_of_clients(dragoman_simulator: Simulator, tmp_path: Path) -> Iterator[tuple[OpenAI, OpenAI]]:
    """Of two gateways with one database."""
    text = f'[server]\ndatabase = "{tmp_path / "gateway.db"}"\n'
    config = structs.replace(every_format(dragoman_simulator.url), server=read_config(text).server)
    with ExitStack() as stack:
        gateways = [stack.enter_context(RunningGateway(simulated(dragoman_simulator.url, config))) for _ in range(2)]
        urls = [f"{gateway.url}/v1" for gateway in gateways]
        one, other = (stack.enter_context(OpenAI(base_url=url, api_key="any", max_retries=0)) for url in urls)
        yield one, other


@promise("gateway:responses-state", "gateway:many-gateways")
@pytest.mark.usefixtures("dragoman_sim")
def test_what_one_gateway_was_told_the_other_knows(pair_of_clients: tuple[OpenAI, OpenAI]) -> None:
    one, other = pair_of_clients
    for model in (MODEL, NATIVE):
        first = one.responses.create(model=model, input="My name is Ada.")
        with one.responses.stream(model=model, input="Who am I?", previous_response_id=first.id) as stream:
            second = stream.get_final_response()
        for response in (first, second):
            assert other.responses.retrieve(response.id).output_text == response.output_text
        assert other.responses.create(model=model, input="And?", previous_response_id=second.id).output_text


@promise("gateway:responses-background", "gateway:many-gateways")
def test_one_gateway_cancels_what_the_other_works_on(
    pair_of_clients: tuple[OpenAI, OpenAI], dragoman_sim: Simulator
) -> None:
    one, other = pair_of_clients
    dragoman_sim.play({"text": "late", "delay": 1.5})
    promised = one.responses.create(model=MODEL, input="Hello", background=True)
    assert other.responses.retrieve(promised.id).status == "in_progress"
    assert other.responses.cancel(promised.id).status == "cancelled"
    time.sleep(2.0)
    assert [client.responses.retrieve(promised.id).status for client in (one, other)] == ["cancelled"] * 2


@promise("gateway:responses-background", "gateway:many-gateways")
def test_what_a_dead_gateway_worked_on_has_failed(
    pair_of_clients: tuple[OpenAI, OpenAI], tmp_path: Path, dragoman_sim: Simulator
) -> None:
    dragoman_sim.play({"text": "late", "delay": 15})
    kept = {"id": "resp_orphan", "object": "response", "status": "in_progress", "background": True, "output": []}
    one, other = pair_of_clients
    promised = one.responses.create(model=MODEL, input="Hello", background=True)

    async def leave_behind() -> None:
        store, database = await open_store(str(tmp_path / "gateway.db"))
        await store.keep(Kept("resp_orphan", "", None, b"[]", json.dumps(kept).encode()))
        await database.rows("UPDATE gateway_responses SET created = created - 60")
        async with asyncio.timeout(10):
            while await store.age(promised.id) > 30:  # noqa: ASYNC110 - another process says that it works on it
                await asyncio.sleep(0.05)
        await store.close()

    asyncio.run(leave_behind())
    orphan = other.responses.retrieve("resp_orphan")
    assert (orphan.status, orphan.error and orphan.error.code) == ("failed", "server_error")
    assert other.responses.retrieve(promised.id).status == "in_progress"
