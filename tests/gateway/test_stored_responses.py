"""The state of the Responses API, stored by the gateway for upstreams without any."""

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
from tests.support.waiting import PATIENCE, until

MODEL = "as-anthropic-messages/claude-sonnet-5"
NATIVE = "as-openai-responses/gpt-5"


@pytest.fixture(scope="module")
def client(shared_gateway: RunningGateway) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{shared_gateway.url}/v1", api_key="any", max_retries=0) as sdk:
        yield sdk


@promise("gateway:responses-state")
@pytest.mark.usefixtures("gateway")
def test_a_response_is_stored_listed_continued_and_deleted(client: OpenAI, dragoman_sim: Simulator) -> None:
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
def test_a_chain_with_a_deleted_response_is_not_continued(client: OpenAI) -> None:
    """Otherwise the model would silently forget all that came before the deleted response."""
    first = client.responses.create(model=MODEL, input="My name is Ada.")
    second = client.responses.create(model=MODEL, input="Go on.", previous_response_id=first.id)
    third = client.responses.create(model=MODEL, input="And?", previous_response_id=second.id)
    branch = client.responses.create(model=MODEL, input="Or?", previous_response_id=first.id)
    client.responses.delete(second.id)
    with pytest.raises(openai.BadRequestError, match=second.id) as caught:
        client.responses.create(model=MODEL, input="Who am I?", previous_response_id=third.id)
    assert (caught.value.code, caught.value.param) == ("previous_response_not_found", "previous_response_id")
    assert client.responses.create(model=MODEL, input="Who am I?", previous_response_id=branch.id).output_text
    assert client.responses.retrieve(third.id).output_text == third.output_text
    history: Any = [{"type": "item_reference", "id": third.output[-1].id}, {"role": "user", "content": "What?"}]
    assert client.responses.create(model=MODEL, input=history).output_text


@promise("gateway:responses-state")
@pytest.mark.usefixtures("gateway")
def test_a_chain_that_is_too_long_is_refused(client: OpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("stored_responses", "state.sql"):
        monkeypatch.setattr(f"dragoman.gateway.{module}.LONGEST_CHAIN", 2)
    last = client.responses.create(model=MODEL, input="Go on.").id
    for _ in range(3):
        last = client.responses.create(model=MODEL, input="Go on.", previous_response_id=last).id
    with pytest.raises(openai.APIStatusError) as caught:
        client.responses.create(model=MODEL, input="Go on.", previous_response_id=last)
    assert caught.value.status_code == 413


@promise("gateway:responses-state")
@pytest.mark.usefixtures("gateway")
def test_input_items_are_paged_and_have_the_ids_of_their_kind(client: OpenAI) -> None:
    call: Any = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    output: Any = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
    given: Any = [{"role": "user", "content": f"{number}"} for number in range(25)]
    made = client.responses.create(model=MODEL, input=[*given, call, output])
    first = client.responses.input_items.list(made.id)
    listed: Any = list(first)  # the SDK asks for the next pages
    assert (len(first.data), len(listed), first.has_more) == (20, 27, True)
    assert [item.type for item in listed[:2]] == ["function_call_output", "function_call"]
    assert [item.id[:4] for item in listed[:3]] == ["fco_", "fc_" + made.id[5], "msg_"]
    assert [item.content[0].text for item in listed[2:]] == [str(number) for number in range(24, -1, -1)]
    forwards: Any = list(client.responses.input_items.list(made.id, order="asc", limit=7))
    assert [item.id for item in forwards] == [item.id for item in reversed(listed)]
    with pytest.raises(openai.NotFoundError):
        client.responses.input_items.list(made.id, after="msg_unknown")


@promise("gateway:responses-state")
@pytest.mark.usefixtures("gateway")
def test_a_stored_response_is_not_streamed_again(client: OpenAI) -> None:
    """The SDK once got an empty stream, which looked like a response without events."""
    made = client.responses.create(model=MODEL, input="Hello")
    with pytest.raises(openai.BadRequestError, match="without stream=true") as caught:
        client.responses.retrieve(made.id, stream=True)
    assert caught.value.param == "stream"


@promise("gateway:responses-state", "gateway:conversations")
@pytest.mark.usefixtures("gateway")
@pytest.mark.parametrize("continued", [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}])
def test_references_to_upstream_state_are_kept_beside_an_expanded_compaction(
    client: OpenAI, dragoman_sim: Simulator, continued: Any
) -> None:
    dragoman_sim.play({"text": "The word is slate."})
    compacted = client.responses.with_raw_response.compact(model=MODEL, input="Remember a word.")
    dragoman_sim.play()
    items: Any = [*json.loads(compacted.text)["output"], {"role": "user", "content": "x"}]
    with pytest.raises(openai.APIStatusError):  # the simulator knows neither
        client.responses.create(model=NATIVE, input=items, store=False, **continued)
    sent: Any = dragoman_sim.requests[-1].json
    assert {key: sent.get(key) for key in (*continued, "store")} == {**continued, "store": False}
    assert "The word is slate." in json.dumps(sent["input"])


@promise("gateway:responses-state")
@pytest.mark.usefixtures("gateway")
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_item_references_are_resolved(client: OpenAI, dragoman_sim: Simulator, *, streamed: bool) -> None:
    """The Vercel AI SDK refers to all earlier items of the model by id."""
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
    assert [item.type for item in listed] == ["message"] * 3  # reasoning without a summary is stored, not listed

    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError) as caught:
        client.responses.create(model=MODEL, input=history)
    assert f"Item with id '{references[-1]['id']}' not found." in str(caught.value)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(str(references[0]["id"]).partition("_")[2][: len("dgm_") + 12])


@promise("gateway:responses-state", "gateway:attacks")
def test_references_are_looked_up_once_for_each_response(
    client: OpenAI, gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not once per reference, of which a request may have a million, and without the earlier responses."""
    last = client.responses.create(model=MODEL, input="Go on.")
    for _ in range(3):
        last = client.responses.create(model=MODEL, input="Go on.", previous_response_id=last.id)
    assert gateway.running is not None
    store, looked = gateway.running.gateway.responses.store, []

    def counting(name: str) -> None:
        found = getattr(store, name)

        async def count(id: str, owner: str) -> Any:
            looked.append(name)
            return await found(id, owner)

        monkeypatch.setattr(store, name, count)

    counting("find_response")
    counting("chain")
    references: Any = [{"type": "item_reference", "id": last.output[-1].id}] * 500
    assert client.responses.create(model=MODEL, input=[*references, {"role": "user", "content": "What?"}]).output_text
    assert looked == ["find_response"] * 2
    monkeypatch.setattr("dragoman.gateway.stored_responses.LONGEST_CHAIN", 20)
    unknown: Any = [{"type": "item_reference", "id": f"rs_dgm_{number:012x}_0"} for number in range(100)]
    with pytest.raises(openai.APIStatusError) as caught:
        client.responses.create(model=MODEL, input=unknown)
    assert caught.value.status_code == 413
    assert len(looked) < 30


@promise("gateway:responses-state")
@pytest.mark.usefixtures("gateway")
def test_store_false_stores_nothing(client: OpenAI) -> None:
    response = client.responses.create(model=MODEL, input="Hello", store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response.id)


@promise("gateway:responses-state")
@pytest.mark.usefixtures("gateway")
def test_a_streamed_response_is_stored(client: OpenAI) -> None:
    with client.responses.stream(model=MODEL, input="Hello") as stream:
        final = stream.get_final_response()
    assert client.responses.retrieve(final.id).output_text == final.output_text


@promise("gateway:responses-state")
@pytest.mark.usefixtures("gateway")
def test_a_stateful_upstream_stores_its_own_responses(client: OpenAI, dragoman_sim: Simulator) -> None:
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
def test_background_responses(client: OpenAI) -> None:
    promised = client.responses.create(model=MODEL, input="Hello", background=True)
    assert promised.status == "in_progress"
    until(lambda: client.responses.retrieve(promised.id).status != "in_progress")
    response = client.responses.retrieve(promised.id)
    assert (response.status, bool(response.output_text)) == ("completed", True)


@promise("gateway:responses-background")
@pytest.mark.usefixtures("gateway")
def test_background_responses_can_be_cancelled(client: OpenAI, dragoman_sim: Simulator) -> None:
    dragoman_sim.play({"text": "late", "delay": 5})
    promised = client.responses.create(model=MODEL, input="Hello", background=True)
    assert client.responses.cancel(promised.id).status == "cancelled"
    assert client.responses.retrieve(promised.id).status == "cancelled"
    other = client.responses.create(model=MODEL, input="Hello")
    with pytest.raises(openai.BadRequestError):
        client.responses.cancel(other.id)


@pytest.fixture
def pair_of_clients(dragoman_simulator: Simulator, tmp_path: Path) -> Iterator[tuple[OpenAI, OpenAI]]:
    """The clients of two gateways with one database."""
    text = f'[server]\ndatabase = "{tmp_path / "gateway.db"}"\n'
    config = structs.replace(every_format(dragoman_simulator.url), server=read_config(text).server)
    with ExitStack() as stack:
        gateways = [stack.enter_context(RunningGateway(simulated(dragoman_simulator.url, config))) for _ in range(2)]
        urls = [f"{gateway.url}/v1" for gateway in gateways]
        one, other = (stack.enter_context(OpenAI(base_url=url, api_key="any", max_retries=0)) for url in urls)
        yield one, other


@promise("gateway:responses-state", "gateway:many-gateways")
@pytest.mark.usefixtures("dragoman_sim")
def test_responses_stored_by_one_gateway_are_found_by_the_other(pair_of_clients: tuple[OpenAI, OpenAI]) -> None:
    one, other = pair_of_clients
    for model in (MODEL, NATIVE):
        first = one.responses.create(model=model, input="My name is Ada.")
        with one.responses.stream(model=model, input="Who am I?", previous_response_id=first.id) as stream:
            second = stream.get_final_response()
        for response in (first, second):
            assert other.responses.retrieve(response.id).output_text == response.output_text
        assert other.responses.create(model=model, input="And?", previous_response_id=second.id).output_text


@promise("gateway:responses-background", "gateway:many-gateways")
def test_one_gateway_cancels_responses_of_another(
    pair_of_clients: tuple[OpenAI, OpenAI], dragoman_sim: Simulator
) -> None:
    one, other = pair_of_clients
    dragoman_sim.play({"text": "late", "delay": 3})
    promised = one.responses.create(model=MODEL, input="Hello", background=True)
    assert other.responses.retrieve(promised.id).status == "in_progress"
    assert other.responses.cancel(promised.id).status == "cancelled"
    time.sleep(3.3)
    assert [client.responses.retrieve(promised.id).status for client in (one, other)] == ["cancelled"] * 2


@promise("gateway:responses-background", "gateway:many-gateways")
def test_background_responses_of_a_dead_gateway_fail(
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
        async with asyncio.timeout(PATIENCE):
            while await store.age(promised.id) > 30:  # noqa: ASYNC110 - another process renews it
                await asyncio.sleep(0.05)
        await store.close()

    asyncio.run(leave_behind())
    orphan = other.responses.retrieve("resp_orphan")
    assert (orphan.status, orphan.error and orphan.error.code) == ("failed", "server_error")
    assert other.responses.retrieve(promised.id).status == "in_progress"


# ── conversations ──


@promise("gateway:conversations")
@pytest.mark.usefixtures("gateway")
@pytest.mark.parametrize("model", [MODEL, NATIVE])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_conversation_grows_with_each_response(
    client: OpenAI, dragoman_sim: Simulator, model: str, *, streamed: bool
) -> None:
    conversation = client.conversations.create(
        items=[{"type": "message", "role": "user", "content": "My name is Ada."}], metadata={"a": "b"}
    )
    response: Any = None
    sent = ""
    for question in ("Who am I?", "And now?"):
        if streamed:
            with client.responses.stream(model=model, input=question, conversation=conversation.id) as stream:
                response = stream.get_final_response()
        else:
            response = client.responses.create(model=model, input=question, conversation={"id": conversation.id})
            assert response.conversation.id == conversation.id
        sent = dragoman_sim.requests[-1].body.decode()
        assert "My name is Ada." in sent
        assert conversation.id not in sent
    items = client.conversations.items.list(conversation.id, order="asc").data
    assert [(item.type, item.role) for item in items if item.type == "message"] == [
        ("message", "user"),
        *[("message", "user"), ("message", "assistant")] * 2,
    ]
    assert "And now?" in sent
    assert response.output_text in str(items[-1])


@promise("gateway:conversations")
@pytest.mark.usefixtures("gateway")
def test_conversations_are_listed_changed_and_deleted(client: OpenAI) -> None:
    made = client.conversations.create()
    assert client.conversations.update(made.id, metadata={"topic": "x"}).metadata == {"topic": "x"}
    assert client.conversations.retrieve(made.id).metadata == {"topic": "x"}
    texts = [f"text {number}" for number in range(5)]
    added = client.conversations.items.create(made.id, items=[{"role": "user", "content": text} for text in texts])
    assert len({item.id for item in added.data}) == 5
    pages: Any = client.conversations.items.list(made.id, limit=2)
    assert pages.has_more
    assert [item.content[0].text for item in pages] == texts[::-1]
    one = added.data[1]
    assert client.conversations.items.retrieve(str(one.id), conversation_id=made.id).id == one.id
    client.conversations.items.delete(str(one.id), conversation_id=made.id)
    assert len(list(client.conversations.items.list(made.id))) == 4
    with pytest.raises(openai.NotFoundError):
        client.conversations.items.retrieve(str(one.id), conversation_id=made.id)
    assert client.conversations.delete(made.id).deleted
    for ask in (
        lambda: client.conversations.retrieve(made.id),
        lambda: client.conversations.items.list(made.id),
        lambda: client.responses.create(model=MODEL, input="x", conversation=made.id),
    ):
        with pytest.raises(openai.NotFoundError):
            ask()


@promise("gateway:conversations")
@pytest.mark.usefixtures("gateway")
def test_conversations_of_an_upstream_are_forwarded(client: OpenAI, dragoman_sim: Simulator) -> None:
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model=NATIVE, input="Hello", conversation="conv_of_the_upstream")
    assert dragoman_sim.requests[-1].json["conversation"] == "conv_of_the_upstream"


@promise("gateway:conversations")
@pytest.mark.usefixtures("gateway")
def test_a_request_continues_a_response_or_a_conversation_not_both(client: OpenAI) -> None:
    made = client.conversations.create()
    first = client.responses.create(model=MODEL, input="Hello")
    with pytest.raises(openai.BadRequestError):
        client.responses.create(model=MODEL, input="x", conversation=made.id, previous_response_id=first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)
    with pytest.raises(openai.BadRequestError):
        client.responses.create(model=MODEL, input="x", previous_response_id=made.id)


@promise("gateway:conversations")
@pytest.mark.usefixtures("gateway")
def test_a_tool_result_needs_a_call_in_the_continued_history(client: OpenAI, dragoman_sim: Simulator) -> None:
    dragoman_sim.play({"calls": [{"name": "look", "arguments": {}}]}, {"text": "Seen."})
    tools: Any = [{"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}]
    first: Any = client.responses.create(model=MODEL, input="Look.", tools=tools)
    call = next(item for item in first.output if item.type == "function_call")
    for call_id, is_good in ((call.call_id, True), ("call_other", False)):
        result: Any = [{"type": "function_call_output", "call_id": call_id, "output": "a tree"}]
        body = {"model": MODEL, "input": result, "previous_response_id": first.id, "tools": tools}
        if is_good:
            assert client.responses.create(**body).output_text == "Seen."
        else:
            with pytest.raises(openai.BadRequestError, match="No tool call found"):
                client.responses.create(**body)


@promise("gateway:conversations", "gateway:many-gateways")
@pytest.mark.usefixtures("dragoman_sim")
def test_gateways_share_conversations(pair_of_clients: tuple[OpenAI, OpenAI]) -> None:
    one, other = pair_of_clients
    made = one.conversations.create(items=[{"role": "user", "content": "My name is Ada."}])
    other.responses.create(model=MODEL, input="Who am I?", conversation=made.id)
    assert [item.type for item in one.conversations.items.list(made.id)].count("message") == 3


@promise("gateway:responses-state")
@pytest.mark.usefixtures("gateway")
def test_responses_stored_here_are_not_stored_by_the_upstream(client: OpenAI, dragoman_sim: Simulator) -> None:
    first = client.responses.create(model=MODEL, input="My name is Ada.")
    moved = client.responses.create(model=NATIVE, input="Who am I?", previous_response_id=first.id)
    sent: Any = dragoman_sim.requests[-1].json
    assert (sent["store"], "previous_response_id" in sent) == (False, False)
    assert "reasoning.encrypted_content" in sent["include"]
    assert (moved.previous_response_id, client.responses.retrieve(moved.id).id) == (first.id, moved.id)
