"""Paths of known formats that real clients use, each with the client that uses it if there is one."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import boto3  # type: ignore[import-untyped]
import ollama
import pytest
from anthropic import AnthropicBedrock, AnthropicVertex
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import ClientError  # type: ignore[import-untyped]
from openai import AzureOpenAI, OpenAI

from dragoman.gateway.endpoints import match_endpoint
from dragoman.gateway.http_request import Head
from dragoman.sim.server import Simulator
from tests.gateway.running import RunningGateway, configured, send
from tests.sim.test_sim_pairs import ANSWER, MODELS, QUESTION, WEATHER
from tests.sim.wire import SCHEMA
from tests.support.promises import promise

pytestmark = promise("gateway:addresses")

OTHER = "as-openai-chat/gpt-5"
TOOL: Any = {"name": "get_weather", "description": "Weather of a city", "input_schema": SCHEMA}
HOW = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
ONCE = Config(retries={"total_max_attempts": 1})


def claude_loop(client: Any, model: str, *, streamed: bool) -> str:
    history: list[Any] = [{"role": "user", "content": QUESTION}]

    def ask() -> Any:
        request_body = {"model": model, "max_tokens": 2000, "messages": history, "tools": [TOOL]}
        if not streamed:
            return client.messages.create(**request_body)
        with client.messages.stream(**request_body) as stream:
            return stream.get_final_message()

    message = ask()
    history.append({"role": "assistant", "content": message.content})
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": WEATHER[block.input["city"]]}
        for block in message.content
        if block.type == "tool_use"
    ]
    history.append({"role": "user", "content": results})
    return "".join(block.text for block in ask().content if block.type == "text")


# ── Bedrock's InvokeModel ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("target", ["openai-chat", "anthropic-messages", "gemini", "bedrock-converse"])
@HOW
def test_anthropics_client_for_bedrock(gateway: RunningGateway, target: str, *, streamed: bool) -> None:
    keys: Any = {"aws_access_key": "any", "aws_secret_key": "any", "aws_region": "us-east-1"}
    with AnthropicBedrock(base_url=gateway.url, max_retries=0, **keys) as client:
        assert claude_loop(client, f"as-{target}/{MODELS[target]}", streamed=streamed) == ANSWER


@pytest.fixture
def amazon(gateway: RunningGateway) -> Iterator[Any]:
    keys = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "region_name": "us-east-1"}
    with closing(boto3.client("bedrock-runtime", endpoint_url=gateway.url, config=ONCE, **keys)) as client:
        yield client


CLAUDE_BODY = {
    "anthropic_version": "bedrock-2023-05-31",
    "anthropic_beta": ["some-beta-2026-01-01"],
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "hi"}],
}


def test_boto3_invokes_a_model(amazon: Any) -> None:
    whole = json.loads(amazon.invoke_model(modelId=OTHER, body=json.dumps(CLAUDE_BODY))["body"].read())
    assert (whole["type"], whole["role"]) == ("message", "assistant")
    stream = amazon.invoke_model_with_response_stream(modelId=OTHER, body=json.dumps(CLAUDE_BODY))["body"]
    events = [json.loads(event["chunk"]["bytes"]) for event in stream]
    assert [events[0]["type"], events[-1]["type"]] == ["message_start", "message_stop"]
    text = "".join(event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta")
    assert text == "".join(block["text"] for block in whole["content"])


def test_errors_have_the_shape_of_bedrock(amazon: Any) -> None:
    with pytest.raises(ClientError) as unknown:
        amazon.invoke_model(modelId="no-such-provider/x", body=json.dumps(CLAUDE_BODY))
    assert unknown.value.response["Error"]["Code"] == "ResourceNotFoundException"
    with pytest.raises(ClientError) as refused:
        amazon.invoke_model(modelId=OTHER, body=json.dumps({**CLAUDE_BODY, "messages": 3}))
    assert refused.value.response["Error"]["Code"] == "ValidationException"
    assert "messages" in refused.value.response["Error"]["Message"]


def test_an_error_inside_a_stream_is_an_exception_frame(amazon: Any, dragoman_sim: Simulator) -> None:
    dragoman_sim.play({"text": "So it was once upon a time in a land far away", "fail": 3})
    stream = amazon.invoke_model_with_response_stream(modelId=OTHER, body=json.dumps(CLAUDE_BODY))["body"]
    with pytest.raises(Exception, match=r"Exception"):
        list(stream)


# ── Claude on Vertex AI ───────────────────────────────────────────────────────────────────────────────────────


def test_claude_on_vertex_counts_tokens(gateway: RunningGateway) -> None:
    places: Any = {"project_id": "p", "region": "global", "access_token": "any"}
    with AnthropicVertex(base_url=f"{gateway.url}/v1", max_retries=0, **places) as client:
        for model in (OTHER, "as-anthropic-messages/claude-sonnet-5"):
            counted = client.messages.count_tokens(model=model, messages=[{"role": "user", "content": "Hello there"}])
            assert 0 < counted.input_tokens < 100


# ── OpenAI's format at other addresses ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("base", ["/openai/v1", "/v1beta/openai", "/v1/projects/p/locations/global/endpoints/openapi"])
@HOW
def test_openais_client_at_addresses_of_azure_and_google(gateway: RunningGateway, base: str, *, streamed: bool) -> None:
    with OpenAI(base_url=gateway.url + base, api_key="any", max_retries=0) as client:
        request_body: Any = {"model": "as-gemini/gemini-3.6-flash", "messages": [{"role": "user", "content": "hi"}]}
        if streamed:
            assert "".join(
                chunk.choices[0].delta.content or ""
                for chunk in client.chat.completions.create(**request_body, stream=True)
                if chunk.choices
            )
        else:
            assert client.chat.completions.create(**request_body).choices[0].message.content
        if "projects" not in base:
            names = [model.id for model in client.models.list()]
            assert any(name.startswith("as-gemini/") for name in names)
            assert client.models.retrieve(names[0]).id == names[0]


@HOW
def test_legacy_completions(gateway: RunningGateway, *, streamed: bool) -> None:
    with OpenAI(base_url=f"{gateway.url}/v1", api_key="any", max_retries=0) as client:
        request_body: Any = {"model": "as-anthropic-messages/claude-sonnet-5", "prompt": "Say hi", "max_tokens": 500}
        if not streamed:
            answer = client.completions.create(**request_body)
            assert (answer.object, answer.choices[0].finish_reason) == ("text_completion", "stop")
            assert answer.id.startswith("cmpl-")
            assert answer.choices[0].text
            assert answer.usage
            return
        chunks = list(client.completions.create(**request_body, stream=True, stream_options={"include_usage": True}))
        assert {chunk.object for chunk in chunks} == {"text_completion"}
        assert "".join(choice.text for chunk in chunks for choice in chunk.choices)
        assert [choice.finish_reason for chunk in chunks for choice in chunk.choices][-1] == "stop"
        assert chunks[-1].usage


def test_legacy_completions_at_an_azure_deployment(gateway: RunningGateway) -> None:
    with AzureOpenAI(azure_endpoint=gateway.url, api_key="any", api_version="2024-10-21", max_retries=0) as client:
        assert client.completions.create(model="gpt-4o", prompt=["hi"]).choices[0].text


@pytest.mark.parametrize(
    ("key", "value"), [("prompt", ["a", "b"]), ("prompt", [1, 2]), ("echo", True), ("suffix", "x"), ("logprobs", 3)]
)
def test_completion_settings_without_a_chat_counterpart_are_refused(
    gateway: RunningGateway, key: str, value: Any
) -> None:
    got = send(gateway.url, "/v1/completions", {"model": OTHER, "prompt": "hi", key: value})
    assert got.status == 400
    assert f"$.{key}" in got.json["error"]["message"]


def test_completions_default_to_sixteen_tokens(gateway: RunningGateway, dragoman_sim: Simulator) -> None:
    send(gateway.url, "/v1/completions", {"model": "as-anthropic-messages/claude-sonnet-5", "prompt": "hi"})
    assert dragoman_sim.requests[-1].json["max_tokens"] == 16


# ── Ollama ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def local(gateway: RunningGateway) -> Iterator[ollama.Client]:
    client = ollama.Client(host=gateway.url)
    with closing(client._client):  # noqa: SLF001 - the client has no other way to let go of its connections
        yield client


@HOW
def test_ollama_generates(local: ollama.Client, *, streamed: bool) -> None:
    request_body: Any = {
        "model": "as-gemini/gemini-3.6-flash",
        "prompt": "hi",
        "system": "Be brief.",
        "options": {"seed": 1},
    }
    if not streamed:
        answer = local.generate(**request_body)
        assert answer.response
        assert answer.done
        return
    lines = list(local.generate(**request_body, stream=True))
    assert "".join(line.response or "" for line in lines)
    assert [line.done for line in lines] == [False] * (len(lines) - 1) + [True]
    assert lines[-1].eval_count


def test_the_context_of_ollama_is_refused(gateway: RunningGateway) -> None:
    got = send(gateway.url, "/api/generate", {"model": OTHER, "prompt": "hi", "context": [1, 2]})
    assert got.status == 400
    assert "$.context" in got.json["error"]


def test_ollama_model_details(local: ollama.Client) -> None:
    shown = local.show(OTHER)
    assert shown.capabilities
    assert {"completion", "tools"} <= set(shown.capabilities)
    assert shown.modelinfo
    assert shown.modelinfo["dragoman.context_length"] == 400_000
    assert shown.details
    running = local.ps().models
    assert {model.model for model in running} == {model.model for model in local.list().models}
    assert all(model.context_length for model in running)


def test_wildcard_routes_are_listed(dragoman_sim: Simulator) -> None:
    text = f"""
    [providers.anthropic]
    base_url = "{dragoman_sim.url}/anthropic"
    api_key = "any"

    [routes."claude-*"]
    to = "anthropic/claude-sonnet-5"
    """
    with RunningGateway(configured(text)) as gateway:
        names = [model["name"] for model in send(gateway.url, "/api/tags", b"", method="GET").json["models"]]
    assert "claude-sonnet-5" in names
    assert "claude-*" not in names


# ── curl ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("extra", [[], ["-H", "content-type:"], ["-H", "content-type: text/plain"]])
def test_curl_without_a_content_type(gateway: RunningGateway, extra: list[str]) -> None:
    body = json.dumps({"model": OTHER, "messages": [{"role": "user", "content": "hi"}]})
    completed = subprocess.run(  # noqa: S603
        ["curl", "-sS", f"{gateway.url}/v1/chat/completions", "-d", body, *extra],  # noqa: S607
        capture_output=True,
        check=True,
    )
    assert json.loads(completed.stdout)["choices"]


@pytest.mark.parametrize("header", ["sec-fetch-site", "referer", "cookie"])
def test_form_content_types_of_web_pages_are_refused(gateway: RunningGateway, header: str) -> None:
    body = json.dumps({"model": OTHER, "messages": [{"role": "user", "content": "hi"}]}).encode()
    got = send(gateway.url, "/v1/chat/completions", body, {"content-type": "text/plain", header: "cross-site"})
    assert got.status == 415


# ── the table ─────────────────────────────────────────────────────────────────────────────────────────────────

PROJECT = "projects/p/locations/us-central1"
ADDRESSES = {
    "/v1/chat/completions": "openai-chat",
    "/chat/completions": "openai-chat",
    "/openai/deployments/gpt-4o/chat/completions": "openai-chat",
    "/v1/responses": "openai-responses",
    "/openai/v1/responses": "openai-responses",
    "/v1/messages": "anthropic-messages",
    f"/v1/{PROJECT}/publishers/anthropic/models/claude-sonnet-4-5:rawPredict": "anthropic-messages",
    "/v1beta/models/gemini-2.5-flash:generateContent": "gemini",
    "/v1beta/models/gemini-2.5-flash:streamGenerateContent": "gemini",
    f"/v1/{PROJECT}/publishers/google/models/gemini-2.5-flash:generateContent": "vertex",
    "/model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/converse": "bedrock-converse",
    "/model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/converse-stream": "bedrock-converse",
    "/api/chat": "ollama-chat",
    "/v2/chat": "cohere-chat",
    "/cohere/v2/chat": "cohere-chat",
    "/openai/v1/chat/completions": "openai-chat",
    "/v1beta/openai/chat/completions": "openai-chat",
    f"/v1/{PROJECT}/endpoints/openapi/chat/completions": "openai-chat",
    "/v1/completions": "openai-chat",
    "/openai/deployments/gpt-4o/completions": "openai-chat",
    "/model/anthropic.claude-opus-4-8/invoke": "anthropic-messages",
    "/model/anthropic.claude-opus-4-8/invoke-with-response-stream": "anthropic-messages",
    "/api/generate": "ollama-chat",
}


@pytest.mark.parametrize(("path", "format"), ADDRESSES.items())
def test_paths_of_real_clients_are_endpoints(path: str, format: str) -> None:
    endpoint = match_endpoint(Head("POST", path, "", {}))
    assert (endpoint.format, endpoint.operation) == (format, "generate")
