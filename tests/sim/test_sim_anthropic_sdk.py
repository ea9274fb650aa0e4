"""The newest anthropic SDK as a client: whole tool loops, streamed and not, and its own exception classes."""

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic, AnthropicVertex

from dragoman.sim.server import Simulator
from dragoman.sim.service import Settings
from tests.sim.wire import SCHEMA

QUESTION = "What is the weather in Paris and in Oslo?"
TOOL: Any = {"name": "get_weather", "description": "Weather of a city", "input_schema": SCHEMA}
ANSWER = "get_weather (Paris) says: sky clear. get_weather (Oslo) failed: no station there."
USER_TURN: Any = {"role": "user", "content": QUESTION}


@pytest.fixture
def client(dragoman_sim: Simulator) -> Iterator[Anthropic]:
    with Anthropic(base_url=dragoman_sim.url, api_key="any", max_retries=0) as sdk:
        yield sdk


def results(message: Any) -> Any:
    made: dict[str, Any] = {
        "Paris": {"content": '{"sky":"clear"}'},
        "Oslo": {"content": "no station there", "is_error": True},
    }
    calls = (block for block in message.content if block.type == "tool_use")
    blocks = [{"type": "tool_result", "tool_use_id": call.id, **made[call.input["city"]]} for call in calls]
    return {"role": "user", "content": blocks}


SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("claude-sonnet-4-6", {}),
    ("claude-sonnet-4-6", {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
    ("claude-sonnet-4-6", {"thinking": {"type": "adaptive"}}),
    ("claude-sonnet-5", {}),
    ("claude-sonnet-5", {"thinking": {"type": "disabled"}}),
    ("claude-opus-5-5", {"thinking": {"type": "adaptive", "display": "summarized"}}),
]


@pytest.mark.parametrize(("model", "settings"), SETTINGS)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_loop(client: Anthropic, model: str, settings: dict[str, Any], *, streamed: bool) -> None:
    def answer(*messages: Any) -> Any:
        request: Any = {"model": model, "max_tokens": 4000, "messages": messages, "tools": [TOOL], **settings}
        if not streamed:
            return client.messages.create(**request)
        with client.messages.stream(**request) as stream:
            return stream.get_final_message()

    first = answer(USER_TURN)
    assert first.stop_reason == "tool_use"
    thinks = settings.get("thinking", {"type": "adaptive" if model == "claude-sonnet-5" else ""})["type"]
    assert (first.content[0].type == "thinking") == (thinks in ("enabled", "adaptive"))
    second = answer(USER_TURN, {"role": "assistant", "content": first.content}, results(first))
    assert second.content[-1].text == ANSWER
    assert second.stop_reason == "end_turn"


def test_the_stream_holds_what_the_whole_answer_holds(client: Anthropic) -> None:
    request: Any = {"model": "claude-sonnet-4-6", "max_tokens": 4000, "messages": [USER_TURN], "tools": [TOOL]}
    with client.messages.stream(**request) as stream:
        streamed = stream.get_final_message()
    whole = client.messages.create(**request)
    assert [block.type for block in streamed.content] == [block.type for block in whole.content]
    assert streamed.usage.output_tokens == whole.usage.output_tokens
    assert streamed.usage.input_tokens == whole.usage.input_tokens


def test_thinking_that_was_changed_is_refused(client: Anthropic) -> None:
    request: Any = {"model": "claude-sonnet-4-6", "max_tokens": 4000, "tools": [TOOL]}
    thinking: Any = {"type": "enabled", "budget_tokens": 1024}
    first = client.messages.create(**request, messages=[USER_TURN], thinking=thinking)
    content = [block.to_dict() for block in first.content]
    content[0]["thinking"] = "Something else entirely."
    changed: Any = [USER_TURN, {"role": "assistant", "content": content}, results(first)]
    with pytest.raises(anthropic.BadRequestError, match="Invalid `signature` in `thinking` block"):
        client.messages.create(**request, messages=changed, thinking=thinking)


def test_withheld_thinking_comes_back_empty(client: Anthropic) -> None:
    request: Any = {"model": "claude-sonnet-5", "max_tokens": 4000, "tools": [TOOL]}
    first = client.messages.create(**request, messages=[USER_TURN])
    assert first.content[0].type == "thinking"
    assert first.content[0].thinking == ""
    content: Any = [block.to_dict() for block in first.content]
    content[0]["signature"] = content[1].get("id", "x") + content[0]["signature"]
    with pytest.raises(anthropic.BadRequestError, match="signature"):
        client.messages.create(
            **request, messages=[USER_TURN, {"role": "assistant", "content": content}, results(first)]
        )


def test_choice_stop_and_limit(client: Anthropic) -> None:
    joke: Any = [{"role": "user", "content": "Tell me a joke"}]
    choice: Any = {"type": "tool", "name": "get_weather"}
    request: Any = {"model": "claude-sonnet-4-6", "max_tokens": 500}
    forced = client.messages.create(**request, messages=joke, tools=[TOOL], tool_choice=choice)
    assert [block.type for block in forced.content] == ["tool_use"]
    one: Any = {"type": "auto", "disable_parallel_tool_use": True}
    single = client.messages.create(**request, messages=[USER_TURN], tools=[TOOL], tool_choice=one)
    assert sum(block.type == "tool_use" for block in single.content) == 1
    count: Any = [{"role": "user", "content": "Count to 50"}]
    stopped = client.messages.create(**request, messages=count, stop_sequences=[" 5"])
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", " 5")
    cut = client.messages.create(model="claude-sonnet-4-6", max_tokens=7, messages=count)
    assert (cut.stop_reason, cut.usage.output_tokens) == ("max_tokens", 7)


def test_a_call_cut_off_leaves_broken_json(client: Anthropic) -> None:
    request: Any = {"model": "claude-sonnet-4-6", "messages": [USER_TURN], "tools": [TOOL], "max_tokens": 22}
    fragments = ""
    with client.messages.create(**request, stream=True) as stream:
        for event in stream:
            if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                fragments += event.delta.partial_json
    with pytest.raises(json.JSONDecodeError):
        json.loads(fragments)


def test_structured_output(client: Anthropic) -> None:
    form: Any = {"format": {"type": "json_schema", "schema": SCHEMA}}
    answered = client.messages.create(
        model="claude-sonnet-4-6",
        max_tokens=500,
        messages=[{"role": "user", "content": "I live in Bergen"}],
        output_config=form,
    )
    assert answered.content[0].type == "text"
    assert json.loads(answered.content[0].text) == {"city": "Bergen"}


def test_a_marked_prefix_is_written_then_read(client: Anthropic) -> None:
    system: Any = [{"type": "text", "text": "Be brief. " * 2000, "cache_control": {"type": "ephemeral"}}]
    request: Any = {"model": "claude-sonnet-4-6", "max_tokens": 50, "messages": [USER_TURN], "system": system}
    first, second = client.messages.create(**request).usage, client.messages.create(**request).usage
    assert first.cache_creation_input_tokens
    assert first.cache_creation is not None
    assert first.cache_creation.ephemeral_5m_input_tokens == first.cache_creation_input_tokens
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens
    assert second.cache_creation_input_tokens == 0
    assert first.input_tokens == second.input_tokens


def test_counting(client: Anthropic) -> None:
    counted = client.messages.count_tokens(model="claude-sonnet-5", messages=[USER_TURN], tools=[TOOL])
    answered = client.messages.create(model="claude-sonnet-5", max_tokens=500, messages=[USER_TURN], tools=[TOOL])
    assert counted.input_tokens == answered.usage.input_tokens


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("status=400", anthropic.BadRequestError),
        ("status=401", anthropic.AuthenticationError),
        ("status=403", anthropic.PermissionDeniedError),
        ("status=404", anthropic.NotFoundError),
        ("status=409", anthropic.ConflictError),
        ("status=413", anthropic.RequestTooLargeError),
        ("error=rate_limit; retry_after=1", anthropic.RateLimitError),
        ("error=overloaded", anthropic.OverloadedError),
        ("error=server", anthropic.InternalServerError),
        ("error=unavailable", anthropic.ServiceUnavailableError),
        ("cut=0", anthropic.APIConnectionError),
    ],
)
def test_errors_have_their_class(client: Anthropic, fault: str, error: type[anthropic.APIError]) -> None:
    with pytest.raises(error):
        client.messages.create(
            model="claude-sonnet-5", max_tokens=50, messages=[USER_TURN], extra_headers={"x-sim-fault": fault}
        )


def test_an_overload_inside_a_stream(client: Anthropic) -> None:
    count: Any = [{"role": "user", "content": "Count to 30"}]
    stream = client.messages.create(
        model="claude-sonnet-4-6",
        max_tokens=500,
        messages=count,
        stream=True,
        extra_headers={"x-sim-fault": "fail=4"},
    )
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        list(stream)


def test_models(client: Anthropic) -> None:
    assert "claude-sonnet-5" in [model.id for model in client.models.list()]
    assert client.models.retrieve("claude-opus-4-8").id == "claude-opus-4-8"
    with pytest.raises(anthropic.NotFoundError, match="model: claude-nine"):
        client.messages.create(model="claude-nine", max_tokens=5, messages=[USER_TURN])


# --- thinking that is bound to its conversation -------------------------------------------------------------------

BOUND: Any = {"model": "claude-opus-5-5", "max_tokens": 4000, "tools": [TOOL]}


def test_thinking_of_a_new_account_holds_only_in_its_conversation() -> None:
    with (
        Simulator(Settings(binds_thinking=True)) as simulator,
        Anthropic(base_url=simulator.url, api_key="any", max_retries=0) as client,
    ):
        first = client.messages.create(**BOUND, messages=[USER_TURN])
        answered: Any = [{"role": "assistant", "content": first.content}, results(first)]
        assert client.messages.create(**BOUND, messages=[USER_TURN, *answered]).stop_reason == "end_turn"
        marked: Any = {"role": "user", "content": QUESTION}
        system: Any = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
        with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
            client.messages.create(**BOUND, messages=[marked, *answered], system=system)


def test_an_older_account_may_ask_for_the_check(client: Anthropic) -> None:
    first = client.messages.create(**BOUND, messages=[USER_TURN])
    answered: Any = [USER_TURN, {"role": "assistant", "content": first.content}, results(first)]
    changed: Any = {**BOUND, "messages": answered, "system": "Be brief."}
    assert client.messages.create(**changed).stop_reason == "end_turn"
    for behaviour, passes in (("drop_block", True), ("error", False)):
        binding = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": behaviour}}
        beta = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
        request: Any = {**changed, "extra_body": {"thinking": binding}, "extra_headers": beta}
        if passes:
            assert client.messages.create(**request).stop_reason == "end_turn"
        else:
            with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
                client.messages.create(**request)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_loop_on_vertex(dragoman_sim: Simulator, *, streamed: bool) -> None:
    with AnthropicVertex(
        region="global", project_id="p", access_token="any", base_url=f"{dragoman_sim.url}/v1", max_retries=0
    ) as client:

        def answer(*messages: Any) -> Any:
            request: Any = {"model": "claude-opus-4-8", "max_tokens": 4000, "messages": messages, "tools": [TOOL]}
            if not streamed:
                return client.messages.create(**request)
            with client.messages.stream(**request) as stream:
                return stream.get_final_message()

        first = answer(USER_TURN)
        second = answer(USER_TURN, {"role": "assistant", "content": first.content}, results(first))
        assert second.content[-1].text == ANSWER
        assert dragoman_sim.requests[-1].api == "anthropic-vertex"
