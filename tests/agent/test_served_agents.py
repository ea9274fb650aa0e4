"""Agents behind the gateway: every wire format as the client, every provider as the agent's model."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

import dragoman
from dragoman.agent import Agent, agent_tool, decode_event, tool
from dragoman.sim.server import Simulator
from tests.drivers.partners import FORMATS as PARTNERS
from tests.drivers.partners import driver_of
from tests.gateway.running import RunningGateway, send, simulated
from tests.gateway.test_pairs import ask
from tests.sim.test_sim_pairs import FORMATS, NEXT, first
from tests.sim.wire import DOORS
from tests.support.cases import each
from tests.support.promises import promise

MODELS = [partner.name for partner in PARTNERS]


@tool
def look(place: str) -> str:
    """Look at a place."""
    return f"a tree in the {place}"


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@pytest.fixture(scope="module")
def gateway(dragoman_simulator: Simulator) -> Iterator[RunningGateway]:
    agents = {}
    for partner in PARTNERS:
        driver = driver_of(partner, dragoman_simulator)
        clerk = agent_tool(Agent(driver, tools=[pay]), name="clerk", description="Pays.")
        agents[partner.name] = Agent(driver, tools=[look, pay, clerk], name=partner.name, deltas=True)
    with RunningGateway(simulated(dragoman_simulator.url), agents=agents) as running:
        yield running


def calls_of(source: str, answer: Any) -> list[tuple[str, dict[str, Any]]]:
    completion = dragoman.decode_response(json.dumps(answer).encode(), source)
    return [(call.name, dict(call.arguments)) for call in completion.tool_calls]


# ── as a model ────────────────────────────────────────────────────────────────────────────────────────────────


@promise("agent:as-model", "agent:client-tools")
@each("streamed", [False, True])
@each("model", MODELS)
@each("source", FORMATS)
def test_a_client_runs_its_own_tools_in_the_middle_of_the_agents_run(
    gateway: RunningGateway, dragoman_sim: Simulator, source: str, model: str, *, streamed: bool
) -> None:
    """The agent's own calls are reasoning for the client, and are in the history when the run goes on."""
    dragoman_sim.reset()
    dragoman_sim.play(
        {"text": "Let me see.", "calls": [{"name": "look", "arguments": {"place": "garden"}}]},
        {
            "calls": [
                {"name": "look", "arguments": {"place": "yard"}},
                {"name": "get_weather", "arguments": {"city": "Paris"}},
            ]
        },
        {"text": "Take a coat."},
    )
    body = first(source)
    called = ask(gateway, body, source, model, streamed=streamed)
    assert calls_of(source, called) == [("get_weather", {"city": "Paris"})]
    answer = ask(gateway, NEXT[source](body, called), source, model, streamed=streamed)
    assert DOORS[source].text_of(answer) == "Take a coat."
    assert [recorded.status for recorded in dragoman_sim.requests] == [200] * 3
    sent = [recorded.body.decode() for recorded in dragoman_sim.requests]
    for words in ("a tree in the garden", "a tree in the yard", "clear sky"):
        assert words in sent[-1]
    assert "get_weather" in sent[0]


@promise("agent:as-model")
@each("streamed", [False, True])
@each("model", MODELS)
@each("source", FORMATS)
def test_without_tools_of_the_client_the_agent_answers_by_itself(
    gateway: RunningGateway, dragoman_sim: Simulator, source: str, model: str, *, streamed: bool
) -> None:
    dragoman_sim.reset()
    dragoman_sim.play({"calls": [{"name": "look", "arguments": {"place": "garden"}}]}, {"text": "A tree."})
    answer = ask(gateway, DOORS[source].ask("What is there?"), source, model, streamed=streamed)
    assert DOORS[source].text_of(answer) == "A tree."
    assert "a tree in the garden" in dragoman_sim.requests[-1].body.decode()


@promise("agent:as-model")
@each("model", MODELS)
@each("source", FORMATS)
def test_a_failure_of_the_agents_model_is_an_error_of_the_clients_api(
    gateway: RunningGateway, dragoman_sim: Simulator, source: str, model: str
) -> None:
    dragoman_sim.reset()
    dragoman_sim.play({"error": "invalid", "times": 0})
    body = DOORS[source].ask("hi")
    path = DOORS[source].path
    for known in ("gemini-3.6-flash", "amazon.nova-lite-v1%3A0"):
        path = path.replace(known, model)
    request = {**body, "model": model} if "model" in body else body
    got = send(gateway.url, path, request, DOORS[source].headers)
    assert got.status == 400
    assert DOORS[source].message_of(got.json)


# ── front ends ────────────────────────────────────────────────────────────────────────────────────────────────


def post(gateway: RunningGateway, model: str, protocol: str, body: Any, status: int = 200) -> bytes:
    got = send(gateway.url, f"/agents/{model}/{protocol}", body)
    assert got.status == status, got.body
    return got.body


def payloads(data: bytes) -> list[dict[str, Any]]:
    lines = [line.removeprefix(b"data: ") for line in data.split(b"\n\n") if line]
    return [json.loads(line) for line in lines if line != b"[DONE]"]


MESSAGES = [{"role": "user", "id": "m1", "content": "Go", "parts": [{"type": "text", "text": "Go"}]}]
NAMES = [{"name": "get_weather", "description": "Weather.", "parameters": {"type": "object"}}]


def play_all_kinds(simulator: Simulator) -> None:
    """An own call, one that needs approval, one of the client's, and one that a sub-agent wants to make."""
    simulator.reset()
    simulator.play(
        {"text": "Let me see.", "calls": [{"name": "look", "arguments": {"place": "garden"}}]},
        {
            "calls": [
                {"name": "pay", "arguments": {"amount": 5}},
                {"name": "get_weather", "arguments": {"city": "Paris"}},
                {"name": "clerk", "arguments": {"task": "Pay 7."}},
            ]
        },
        {"calls": [{"name": "pay", "arguments": {"amount": 7}}]},
        {"text": "I paid 7."},
        {"text": "All done."},
    )


def check_what_was_sent(simulator: Simulator) -> None:
    assert [recorded.status for recorded in simulator.requests] == [200] * 5
    last = simulator.requests[-1].body.decode()
    for words in ("a tree in the garden", "paid 5", "clear sky", "I paid 7."):
        assert words in last


@promise("agent:front-ends", "agent:approvals")
@each("model", MODELS)
def test_ag_ui_there_and_back(gateway: RunningGateway, dragoman_sim: Simulator, model: str) -> None:
    play_all_kinds(dragoman_sim)
    body = {"threadId": f"t-{model}", "runId": "r1", "messages": MESSAGES, "tools": NAMES, "context": []}
    first_run = payloads(post(gateway, model, "ag-ui", body))
    outcome = first_run[-1]["outcome"]
    assert (first_run[-1]["type"], outcome["type"]) == ("RUN_FINISHED", "interrupt")
    interrupts = {one["metadata"]["arguments"]["amount"]: one for one in outcome["interrupts"]}
    assert set(interrupts) == {5, 7}
    assert interrupts[7]["metadata"]["path"] == ["clerk"]
    assert "toolCallId" not in interrupts[7]
    called = {one["toolCallName"]: one["toolCallId"] for one in first_run if one["type"] == "TOOL_CALL_START"}
    resume = [
        {"interruptId": one["id"], "status": "resolved", "payload": {"approved": True}} for one in interrupts.values()
    ]
    result = {"id": "m9", "role": "tool", "toolCallId": called["get_weather"], "content": "clear sky"}
    body = {**body, "runId": "r2", "messages": [*MESSAGES, result], "resume": resume}
    second_run = payloads(post(gateway, model, "ag-ui", body))
    assert "outcome" not in second_run[-1]
    assert "TOOL_CALL_START" not in [one["type"] for one in second_run]
    results = {one["toolCallId"]: one["content"] for one in second_run if one["type"] == "TOOL_CALL_RESULT"}
    assert (results[called["pay"]], results[called["clerk"]]) == ("paid 5", "I paid 7.")
    text = "".join(one["delta"] for one in second_run if one["type"] == "TEXT_MESSAGE_CONTENT")
    assert text == "All done."
    check_what_was_sent(dragoman_sim)


@promise("agent:front-ends", "agent:approvals")
@each("model", MODELS)
def test_ui_messages_there_and_back(gateway: RunningGateway, dragoman_sim: Simulator, model: str) -> None:
    play_all_kinds(dragoman_sim)
    body: dict[str, Any] = {"id": f"c-{model}", "messages": MESSAGES, "tools": {"get_weather": NAMES[0]}}
    first_run = payloads(post(gateway, model, "ui-messages", body))
    inputs = {one["toolCallId"]: one for one in first_run if one["type"] == "tool-input-available"}
    approvals = [one["approvalId"] for one in first_run if one["type"] == "tool-approval-request"]
    assert [inputs[one]["input"]["amount"] for one in approvals] == [5, 7]
    parts: list[dict[str, Any]] = []
    for call_id, given in inputs.items():
        part = {"type": "dynamic-tool", "toolCallId": call_id, "toolName": given["toolName"], "input": given["input"]}
        if "providerMetadata" in given:
            part["callProviderMetadata"] = given["providerMetadata"]
        if call_id in approvals:
            part |= {"state": "approval-responded", "approval": {"id": call_id, "approved": True}}
        elif given["toolName"] == "get_weather":
            part |= {"state": "output-available", "output": "clear sky"}
        elif given["toolName"] == "look":
            part |= {"state": "output-available", "output": "a tree in the garden"}
        parts.append(part | {"state": part.get("state", "input-available")})
    answered = {"id": "a1", "role": "assistant", "parts": parts}
    second_run = payloads(post(gateway, model, "ui-messages", {**body, "messages": [*MESSAGES, answered]}))
    assert second_run[0] == {"type": "start", "messageId": "a1"}
    outputs = {one["toolCallId"]: one["output"] for one in second_run if one["type"] == "tool-output-available"}
    assert [outputs[one] for one in approvals] == ["paid 5", "paid 7"]
    text = "".join(one["delta"] for one in second_run if one["type"] == "text-delta")
    assert text == "All done."
    assert second_run[-1]["type"] == "finish"
    check_what_was_sent(dragoman_sim)


@promise("agent:front-ends", "agent:approvals")
@each("model", MODELS)
def test_json_lines_there_and_back(gateway: RunningGateway, dragoman_sim: Simulator, model: str) -> None:
    play_all_kinds(dragoman_sim)
    body: dict[str, Any] = {"thread": f"j-{model}", "messages": [{"role": "user", "content": "Go"}], "tools": NAMES}
    events = [decode_event(line) for line in post(gateway, model, "json-lines", body).splitlines()]
    assert events[-1].type == "pending"
    decisions = {
        one.call_id: {"approved": True} if one.kind == "approval" else {"result": "clear sky"}
        for one in events[-1].calls
    }
    body = {"thread": f"j-{model}", "messages": [], "tools": NAMES, "decisions": decisions}
    events = [decode_event(line) for line in post(gateway, model, "json-lines", body).splitlines()]
    assert events[-1].type == "final"
    assert events[-1].content == "All done."
    check_what_was_sent(dragoman_sim)
    # A decision counts once.
    assert b"expected a message" in post(gateway, model, "json-lines", body, 400)
