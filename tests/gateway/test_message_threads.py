"""Anthropic message threads, as the vendor's own tool runner uses them, with upstreams that have none."""

from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import pytest
from anthropic import Anthropic, beta_tool

from dragoman.sim.server import Simulator
from tests.gateway.running import RunningGateway
from tests.support.promises import promise

MODELS = {
    "gemini": "as-gemini/gemini-3.6-flash",
    "openai": "as-openai-responses/gpt-5",
    "chat": "as-openai-chat/gpt-5",
    "bedrock": "as-bedrock-converse/anthropic.claude-opus-4-8",
}
BETA = {"anthropic-beta": "message-threads-2026-08-12", "anthropic-version": "2023-06-01", "x-api-key": "any"}
CREATE = {"type": "create"}

pytestmark = [promise("gateway:message-threads"), pytest.mark.usefixtures("gateway")]


@beta_tool
def get_weather(city: str) -> str:
    """Weather of a city.

    Args:
        city: its name
    """
    return f"clear sky over {city}"


@pytest.fixture(scope="module")
def client(shared_gateway: RunningGateway) -> Iterator[Anthropic]:
    with Anthropic(base_url=shared_gateway.url, api_key="any", max_retries=0) as sdk:
        yield sdk


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> str:
    return MODELS[request.param]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_tool_runner_continues_its_thread(
    client: Anthropic, gateway: RunningGateway, dragoman_sim: Simulator, model: str, *, streamed: bool
) -> None:
    dragoman_sim.play(
        {"reasoning": "Look it up.", "calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}]},
        {"calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]},
        {"text": "Clear in both."},
    )
    settings: Any = {
        "model": model,
        "max_tokens": 500,
        "system": "Be brief.",
        "tools": [get_weather],
        "messages": [{"role": "user", "content": "Weather in Paris and Oslo?"}],
    }
    runner: Any = client.beta.messages.tool_runner(**settings, stream=streamed)
    last: Any = None
    for step in runner:
        last = step.get_final_message() if streamed else step
    assert last.content[-1].text == "Clear in both."
    assert [line["status"] for line in gateway.requests(3)] == [200] * 3
    sent = dragoman_sim.requests[-1].body.decode()
    for text in ("Be brief.", "Weather in Paris and Oslo?", "clear sky over Paris", "clear sky over Oslo"):
        assert sent.count(text) == 1


def post(gateway: RunningGateway, **body: Any) -> httpx.Response:
    whole = {"model": MODELS["gemini"], "max_tokens": 100, **body}
    return httpx.post(f"{gateway.url}/v1/messages", json=whole, headers=BETA)


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def continued(id: str) -> dict[str, str]:
    return {"type": "continue", "previous_message_id": id}


def test_a_continued_thread_needs_only_new_messages(gateway: RunningGateway, dragoman_sim: Simulator) -> None:
    first = post(gateway, messages=[user("I am Ada.")], system="Be brief.", thread=CREATE).json()
    second = post(gateway, messages=[user("Who am I?")], thread=continued(first["id"])).json()
    third = post(gateway, messages=[user("And?")], thread=continued(second["id"]))
    assert third.status_code == 200, third.text
    sent: Any = dragoman_sim.requests[-1].json
    assert [content["role"] for content in sent["contents"]] == ["user", "model", "user", "model", "user"]
    assert "Be brief." in str(sent["systemInstruction"])
    resumed = post(gateway, messages=[], thread=continued(third.json()["id"]))
    assert resumed.status_code == 200, resumed.text


def test_errors_of_unknown_threads(gateway: RunningGateway, client: Anthropic) -> None:
    missing = post(gateway, messages=[user("Who am I?")], thread=continued("msg_gone"))
    assert (missing.status_code, missing.json()["error"]["details"]["error_code"]) == (404, "thread_not_found")
    repeated = post(gateway, messages=[user("a")], thread=CREATE).json()
    refused = post(gateway, messages=[user("b")], system="x", thread=continued(repeated["id"]))
    assert refused.json()["error"]["details"]["error_code"] == "thread_fingerprint_mismatch"
    with pytest.raises(anthropic.NotFoundError):
        client.beta.messages.create(
            model=MODELS["gemini"],
            max_tokens=10,
            messages=[{"role": "user", "content": "x"}],
            extra_body={"thread": continued("msg_gone")},
        )


def test_a_stored_thread_continues_at_claude_which_keeps_its_own_threads(
    gateway: RunningGateway, dragoman_sim: Simulator
) -> None:
    claude = "as-anthropic-messages/claude-sonnet-5"
    first = post(gateway, messages=[user("I am Ada.")], thread=CREATE).json()
    moved = post(gateway, model=claude, messages=[user("Who am I?")], thread=continued(first["id"]))
    assert moved.status_code == 200, moved.text
    sent: Any = dragoman_sim.requests[-1].json
    assert ("thread" in sent, len(sent["messages"])) == (False, 3)
    post(gateway, model=claude, messages=[user("Hello")], thread=CREATE)
    assert dragoman_sim.requests[-1].json["thread"] == CREATE
