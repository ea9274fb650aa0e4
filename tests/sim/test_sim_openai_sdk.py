"""The newest openai SDK as a client: whole tool loops, streamed and not, and its own exception classes."""

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AzureOpenAI, OpenAI

from dragoman.sim.server import Simulator
from tests.sim.wire import SCHEMA

QUESTION = "What is the weather in Paris and in Oslo?"
TOOL: Any = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA, "strict": True}}
FLAT_TOOL: Any = {"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": True}
WEATHER = {"Paris": '{"sky":"clear"}', "Oslo": '{"error":"no station there"}'}
ANSWER = "get_weather (Paris) says: sky clear. get_weather (Oslo) failed: no station there."


@pytest.fixture
def client(dragoman_sim: Simulator) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{dragoman_sim.url}/v1", api_key="any", max_retries=0) as sdk:
        yield sdk


def chat_results(message: Any) -> list[Any]:
    return [
        {"role": "tool", "tool_call_id": call.id, "content": WEATHER[json.loads(call.function.arguments)["city"]]}
        for call in message.tool_calls
    ]


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-5", "gpt-5.1"])
def test_a_chat_loop(client: OpenAI, model: str) -> None:
    user_turn: Any = {"role": "user", "content": QUESTION}
    first = client.chat.completions.create(model=model, messages=[user_turn], tools=[TOOL])
    message = first.choices[0].message
    assert first.choices[0].finish_reason == "tool_calls"
    assert first.usage is not None
    assert first.usage.total_tokens == first.usage.prompt_tokens + first.usage.completion_tokens
    assert first.usage.completion_tokens_details is not None
    assert bool(first.usage.completion_tokens_details.reasoning_tokens) == (model == "gpt-5")
    history: Any = [user_turn, message, *chat_results(message)]
    second = client.chat.completions.create(model=model, messages=history, tools=[TOOL])
    assert second.choices[0].message.content == ANSWER


def test_a_chat_loop_streamed(client: OpenAI) -> None:
    user_turn: Any = {"role": "user", "content": QUESTION}
    with client.chat.completions.stream(model="gpt-4o", messages=[user_turn], tools=[TOOL]) as stream:
        message = stream.get_final_completion().choices[0].message
    history: Any = [user_turn, message, *chat_results(message)]
    options: Any = {"include_usage": True}
    chunks = list(
        client.chat.completions.create(
            model="gpt-4o", messages=history, tools=[TOOL], stream=True, stream_options=options
        )
    )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == ANSWER
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_a_single_call_comes_with_the_role(client: OpenAI) -> None:
    stream = client.chat.completions.create(
        model="gpt-4o", messages=[{"role": "user", "content": "Weather in Rome?"}], tools=[TOOL], stream=True
    )
    opening = next(iter(stream)).choices[0].delta
    stream.close()
    assert opening.role == "assistant"
    assert opening.tool_calls is not None
    assert opening.tool_calls[0].function is not None
    assert opening.tool_calls[0].function.name == "get_weather"


def test_choice_is_honoured(client: OpenAI) -> None:
    history: Any = [{"role": "user", "content": "Tell me a joke"}]
    for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
        made: Any = choice
        forced = client.chat.completions.create(model="gpt-4o", messages=history, tools=[TOOL], tool_choice=made)
        assert forced.choices[0].message.tool_calls
    question: Any = [{"role": "user", "content": QUESTION}]
    silent = client.chat.completions.create(model="gpt-4o", messages=question, tools=[TOOL], tool_choice="none")
    assert silent.choices[0].message.tool_calls is None
    single = client.chat.completions.create(model="gpt-4o", messages=question, tools=[TOOL], parallel_tool_calls=False)
    assert single.choices[0].message.tool_calls is not None
    assert len(single.choices[0].message.tool_calls) == 1


def test_limits_stops_and_several_choices(client: OpenAI) -> None:
    history: Any = [{"role": "user", "content": "Count to 50"}]
    cut = client.chat.completions.create(model="gpt-4o", messages=history, max_tokens=9)
    assert cut.choices[0].finish_reason == "length"
    assert cut.usage is not None
    assert cut.usage.completion_tokens == 9
    stopped = client.chat.completions.create(model="gpt-4o", messages=history, stop=[" 5"])
    assert stopped.choices[0].message.content == "1 2 3 4"
    several = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "hi"}], n=3, seed=4)
    again = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "hi"}], n=3, seed=4)
    assert len(several.choices) == 3
    assert several == again


def test_structured_output(client: OpenAI) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA, "strict": True}}
    answered = client.chat.completions.create(
        model="gpt-4o", messages=[{"role": "user", "content": "I live in Bergen"}], response_format=form
    )
    assert json.loads(answered.choices[0].message.content or "") == {"city": "Bergen"}


def test_custom_tools_take_text(client: OpenAI) -> None:
    tool: Any = {"type": "custom", "custom": {"name": "sql", "description": "Run a query"}}
    history: Any = [{"role": "user", "content": 'Run sql with "SELECT 1"'}]
    answered = client.chat.completions.create(model="gpt-5", messages=history, tools=[tool])
    calls = answered.choices[0].message.tool_calls
    assert calls is not None
    assert calls[0].type == "custom"
    assert calls[0].custom.input == "SELECT 1"


# --- responses ----------------------------------------------------------------------------------------------------


def outputs(response: Any) -> list[Any]:
    calls = (item for item in response.output if item.type == "function_call")
    return [
        {"type": "function_call_output", "call_id": call.call_id, "output": WEATHER[json.loads(call.arguments)["city"]]}
        for call in calls
    ]


def test_a_responses_loop_chained(client: OpenAI) -> None:
    first = client.responses.create(model="gpt-5", input=QUESTION, tools=[FLAT_TOOL])
    assert [item.type for item in first.output] == ["reasoning", "function_call", "function_call"]
    second = client.responses.create(
        model="gpt-5", previous_response_id=first.id, input=outputs(first), tools=[FLAT_TOOL]
    )
    assert second.output_text == ANSWER
    assert client.responses.retrieve(first.id).id == first.id


def test_a_responses_loop_that_stores_nothing(client: OpenAI) -> None:
    settings: Any = {"store": False, "include": ["reasoning.encrypted_content"], "tools": [FLAT_TOOL]}
    first = client.responses.create(model="gpt-5", input=QUESTION, **settings)
    replayed = [item.model_dump(exclude_none=True) for item in first.output]
    history: Any = [{"role": "user", "content": QUESTION}, *replayed, *outputs(first)]
    assert client.responses.create(model="gpt-5", input=history, **settings).output_text == ANSWER
    history[1]["encrypted_content"] = history[1]["encrypted_content"][:-4] + "AAAA"
    with pytest.raises(openai.BadRequestError, match="could not be verified"):
        client.responses.create(model="gpt-5", input=history, **settings)


def test_a_responses_loop_streamed(client: OpenAI) -> None:
    reasoning: Any = {"summary": "auto"}
    with client.responses.stream(model="gpt-5", input=QUESTION, tools=[FLAT_TOOL], reasoning=reasoning) as stream:
        events = list(stream)
        first = stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    follow_up: Any = {"previous_response_id": first.id, "input": outputs(first), "tools": [FLAT_TOOL]}
    with client.responses.stream(model="gpt-5", **follow_up) as stream:
        assert stream.get_final_response().output_text == ANSWER


def test_a_conversation_is_kept(client: OpenAI) -> None:
    conversation = client.conversations.create()
    client.responses.create(model="gpt-4o", input="My name is Ada.", conversation=conversation.id)
    answered = client.responses.create(model="gpt-4o", input="What is my name?", conversation=conversation.id)
    assert answered.output_text == "Your name is Ada."


def test_an_unanswered_call_in_a_chain_is_refused(client: OpenAI) -> None:
    first = client.responses.create(model="gpt-4o", input=QUESTION, tools=[FLAT_TOOL])
    with pytest.raises(openai.BadRequestError, match="No tool output found"):
        client.responses.create(model="gpt-4o", previous_response_id=first.id, input="And?", tools=[FLAT_TOOL])
    with pytest.raises(openai.BadRequestError, match="not found"):
        client.responses.create(model="gpt-4o", previous_response_id="resp_0", input="And?")


def test_a_cut_answer_is_incomplete(client: OpenAI) -> None:
    answered = client.responses.create(model="gpt-4o", input="Count to 100", max_output_tokens=16)
    assert answered.status == "incomplete"
    assert answered.incomplete_details is not None
    assert answered.incomplete_details.reason == "max_output_tokens"


# --- errors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("status=400", openai.BadRequestError),
        ("status=401", openai.AuthenticationError),
        ("status=403", openai.PermissionDeniedError),
        ("status=404", openai.NotFoundError),
        ("status=409", openai.ConflictError),
        ("status=422", openai.UnprocessableEntityError),
        ("status=429; retry_after=1", openai.RateLimitError),
        ("error=quota", openai.RateLimitError),
        ("error=overloaded", openai.InternalServerError),
        ("error=server", openai.InternalServerError),
        ("cut=0", openai.APIConnectionError),
    ],
)
def test_errors_have_their_class(client: OpenAI, fault: str, error: type[openai.APIError]) -> None:
    with pytest.raises(error):
        client.chat.completions.create(
            model="gpt-4o", messages=[{"role": "user", "content": "hi"}], extra_headers={"x-sim-fault": fault}
        )


def test_an_error_inside_a_stream(client: OpenAI) -> None:
    stream = client.chat.completions.create(
        model="gpt-4o",
        messages=[{"role": "user", "content": "Count to 30"}],
        stream=True,
        extra_headers={"x-sim-fault": "fail=3; error=server"},
    )
    with pytest.raises(openai.APIError, match="had an error"):
        list(stream)


def test_an_unknown_model(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        client.chat.completions.create(model="gpt-nine", messages=[{"role": "user", "content": "hi"}])
    assert refused.value.code == "model_not_found"
    assert refused.value.request_id
    with pytest.raises(openai.BadRequestError):
        client.responses.create(model="gpt-nine", input="hi")


def test_a_limit_passes_and_the_sdk_tries_again(dragoman_sim: Simulator) -> None:
    dragoman_sim.play({"error": "rate_limit", "retry_after": 0.01}, {"text": "At last."})
    with OpenAI(base_url=f"{dragoman_sim.url}/v1", api_key="any", max_retries=2) as client:
        answered = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "hi"}])
    assert answered.choices[0].message.content == "At last."
    assert [request.status for request in dragoman_sim.requests] == [429, 200]


def test_models(client: OpenAI) -> None:
    assert "gpt-5" in [model.id for model in client.models.list()]
    assert client.models.retrieve("gpt-4o").id == "gpt-4o"


@pytest.mark.parametrize("streamed", [False, True])
def test_a_loop_on_azure(dragoman_sim: Simulator, *, streamed: bool) -> None:
    user_turn: Any = {"role": "user", "content": QUESTION}
    with AzureOpenAI(azure_endpoint=dragoman_sim.url, api_key="any", api_version="2026-06-01", max_retries=0) as client:

        def answer(*messages: Any) -> Any:
            if not streamed:
                return (
                    client.chat.completions.create(model="gpt-4o", messages=messages, tools=[TOOL]).choices[0].message
                )
            with client.chat.completions.stream(model="gpt-4o", messages=messages, tools=[TOOL]) as stream:
                return stream.get_final_completion().choices[0].message

        first = answer(user_turn)
        assert answer(user_turn, first, *chat_results(first)).content == ANSWER
        with pytest.raises(openai.NotFoundError, match="deployment for this resource does not exist"):
            client.chat.completions.create(model="mine", messages=[user_turn])
