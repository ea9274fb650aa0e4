"""The newest ollama client, and the openai SDK at Ollama's own `/v1`."""

from collections.abc import Iterator
from typing import Any

import ollama
import openai
import pytest

from dragoman.sim.server import Simulator
from tests.sim.wire import SCHEMA

QUESTION = "What is the weather in Paris and in Oslo?"
TOOL: Any = {"type": "function", "function": {"name": "get_weather", "description": "Weather", "parameters": SCHEMA}}
ANSWER = "get_weather (Paris) says: sky clear. get_weather (Oslo) failed: no station there."
WEATHER = {"Paris": '{"sky":"clear"}', "Oslo": '{"error":"no station there"}'}
USER_TURN: Any = {"role": "user", "content": QUESTION}


@pytest.fixture
def client(dragoman_sim: Simulator) -> Iterator[ollama.Client]:
    sdk = ollama.Client(host=dragoman_sim.url)
    yield sdk
    sdk._client.close()  # noqa: SLF001 - the client has no other way to let go of its connections


def results(calls: Any) -> list[Any]:
    return [
        {"role": "tool", "tool_name": call.function.name, "content": WEATHER[call.function.arguments["city"]]}
        for call in calls
    ]


@pytest.mark.parametrize("model", ["llama3.2", "qwen3"])
def test_a_loop(client: ollama.Client, model: str) -> None:
    first = client.chat(model=model, messages=[USER_TURN], tools=[TOOL])
    assert first.done_reason == "stop"
    assert bool(first.message.thinking) == (model == "qwen3")
    answer = client.chat(
        model=model, messages=[USER_TURN, first.message, *results(first.message.tool_calls)], tools=[TOOL]
    )
    assert answer.message.content == ANSWER


def test_a_loop_streamed(client: ollama.Client) -> None:
    calls: list[Any] = []
    lines = list(client.chat(model="qwen3", messages=[USER_TURN], tools=[TOOL], stream=True))
    for line in lines:
        calls.extend(line.message.tool_calls or [])
    assert [line.done for line in lines] == [False] * (len(lines) - 1) + [True]
    assert lines[-1].eval_count
    history = [USER_TURN, {"role": "assistant", "content": "", "tool_calls": calls}, *results(calls)]
    answer = client.chat(model="qwen3", messages=history, tools=[TOOL], stream=True)
    assert "".join(line.message.content or "" for line in answer) == ANSWER


def test_thinking_can_be_switched_off(client: ollama.Client) -> None:
    assert client.chat(model="qwen3", messages=[USER_TURN], think=False).message.thinking is None
    with pytest.raises(ollama.ResponseError, match="does not support thinking"):
        client.chat(model="llama3.2", messages=[USER_TURN], think=True)
    with pytest.raises(ollama.ResponseError, match="does not support tools"):
        client.chat(model="gemma3", messages=[USER_TURN], tools=[TOOL])


def test_options_and_format(client: ollama.Client) -> None:
    count: Any = [{"role": "user", "content": "Count to 50"}]
    assert client.chat(model="llama3.2", messages=count, options={"stop": [" 5"]}).message.content == "1 2 3 4"
    cut = client.chat(model="llama3.2", messages=count, options={"num_predict": 5})
    assert (cut.done_reason, cut.eval_count) == ("length", 5)
    here: Any = [{"role": "user", "content": "I live in Bergen"}]
    assert client.chat(model="llama3.2", messages=here, format=SCHEMA).message.content == '{"city":"Bergen"}'


def test_models(client: ollama.Client) -> None:
    assert "qwen3:latest" in [model.model for model in client.list().models]
    assert "thinking" in (client.show("qwen3").capabilities or [])
    assert client.chat(model="qwen3", messages=[]).done_reason == "load"


@pytest.mark.parametrize(("fault", "status"), [("status=400", 400), ("error=overloaded", 503), ("error=server", 500)])
def test_errors_have_their_class(dragoman_sim: Simulator, fault: str, status: int) -> None:
    client = ollama.Client(host=dragoman_sim.url, headers={"x-sim-fault": fault})
    with pytest.raises(ollama.ResponseError) as raised:
        client.chat(model="qwen3", messages=[USER_TURN])
    client._client.close()  # noqa: SLF001 - as above
    assert raised.value.status_code == status


def test_an_error_inside_a_stream(dragoman_sim: Simulator) -> None:
    client = ollama.Client(host=dragoman_sim.url, headers={"x-sim-fault": "fail=2; error=server"})
    with pytest.raises(ollama.ResponseError, match="unexpectedly stopped"):
        list(client.chat(model="qwen3", messages=[USER_TURN], stream=True))
    client._client.close()  # noqa: SLF001 - as above


def test_an_unknown_model(client: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError, match="model 'nobody' not found") as raised:
        client.chat(model="nobody", messages=[USER_TURN])
    assert raised.value.status_code == 404


@pytest.mark.parametrize("path", ["/ollama/v1", "/v1"])
@pytest.mark.parametrize("streamed", [False, True])
def test_the_compatible_api(dragoman_sim: Simulator, path: str, *, streamed: bool) -> None:
    with openai.OpenAI(base_url=dragoman_sim.url + path, api_key="ollama", max_retries=0) as client:
        if streamed:
            with client.chat.completions.stream(model="qwen3", messages=[USER_TURN], tools=[TOOL]) as stream:
                message: Any = stream.get_final_completion().choices[0].message
        else:
            message = (
                client.chat.completions.create(model="qwen3", messages=[USER_TURN], tools=[TOOL]).choices[0].message
            )
        names = [call.function.arguments for call in message.tool_calls]
    assert names == ['{"city":"Paris"}', '{"city":"Oslo"}']
    assert message.reasoning.startswith("The user asks")
