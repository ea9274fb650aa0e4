"""Names, addresses, keys and variables: from arguments, from the environment, or a clear word about what is missing."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

import dragoman
from dragoman.drivers.connect import Options, connect, connect_sync
from dragoman.drivers.providers import PROVIDERS
from dragoman.drivers.query import build_request
from dragoman.drivers.replay import Replayed, ReplayTransport
from dragoman.drivers.transport import HttpRequest
from dragoman.errors import NotConfigured, NotFound, ProviderError
from dragoman.sim import Simulator
from tests.drivers.partners import KEY, GoogleCredentials
from tests.support.promises import promise

GOOGLE: Options = {"credentials": GoogleCredentials()}

# Model, environment and options -> where the request goes.
ADDRESSES: tuple[tuple[str, dict[str, str], Options, str], ...] = (
    ("openai/gpt-5.6", {"OPENAI_API_KEY": KEY}, {}, "https://api.openai.com/v1/responses"),
    ("openai-responses/gpt-5.6", {"OPENAI_API_KEY": KEY}, {}, "https://api.openai.com/v1/responses"),
    ("openai-chat/gpt-5.6", {"OPENAI_API_KEY": KEY}, {}, "https://api.openai.com/v1/chat/completions"),
    (
        "openai-chat/m",
        {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://here:1/v1/"},
        {},
        "http://here:1/v1/chat/completions",
    ),
    ("anthropic/claude-sonnet-5", {"ANTHROPIC_API_KEY": KEY}, {}, "https://api.anthropic.com/v1/messages"),
    (
        "gemini/gemini-3.8-flash",
        {"GEMINI_API_KEY": KEY},
        {},
        "https://generativelanguage.googleapis.com/v1beta/models/gemini-3.8-flash:generateContent",
    ),
    (
        "google/gemini-3.8-flash",
        {"GOOGLE_API_KEY": KEY},
        {},
        "https://generativelanguage.googleapis.com/v1beta/models/gemini-3.8-flash:generateContent",
    ),
    (
        "vertex/gemini-3.8-flash",
        {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "europe-west1"},
        GOOGLE,
        "https://europe-west1-aiplatform.googleapis.com/v1beta1/projects/p/locations/europe-west1/publishers/google/models/gemini-3.8-flash:generateContent",
    ),
    (
        "vertex/gemini-3.8-flash",
        {},
        {**GOOGLE, "location": "eu"},
        "https://aiplatform.eu.rep.googleapis.com/v1beta1/projects/my-project/locations/eu/publishers/google/models/gemini-3.8-flash:generateContent",
    ),
    (
        "vertex/gemini-3.8-flash",
        {"GOOGLE_API_KEY": KEY},
        {},
        "https://aiplatform.googleapis.com/v1beta1/publishers/google/models/gemini-3.8-flash:generateContent",
    ),
    (
        "vertex-anthropic/claude-sonnet-5@20260101",
        {"ANTHROPIC_VERTEX_PROJECT_ID": "p", "CLOUD_ML_REGION": "us-east5"},
        GOOGLE,
        "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models/claude-sonnet-5@20260101:rawPredict",
    ),
    ("ollama/qwen3", {}, {}, "http://127.0.0.1:11434/api/chat"),
    ("ollama/qwen3", {"OLLAMA_HOST": "box:1234"}, {}, "http://box:1234/api/chat"),
    (
        "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0",
        {"AWS_BEARER_TOKEN_BEDROCK": KEY, "AWS_REGION": "eu-central-1"},
        {},
        "https://bedrock-runtime.eu-central-1.amazonaws.com/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse",
    ),
    (
        "azure/my-gpt",
        {"AZURE_OPENAI_API_KEY": KEY, "AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com"},
        {},
        "https://r.openai.azure.com/openai/v1/chat/completions",
    ),
    (
        "azure/my-gpt",
        {"AZURE_OPENAI_API_KEY": KEY, "OPENAI_API_VERSION": "2024-10-21"},
        {"base_url": "https://r.openai.azure.com/"},
        "https://r.openai.azure.com/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21",
    ),
    (
        "azure-responses/my-gpt",
        {"AZURE_OPENAI_API_KEY": KEY},
        {"base_url": "https://r.openai.azure.com"},
        "https://r.openai.azure.com/openai/v1/responses",
    ),
    ("groq/openai/gpt-oss-120b", {"GROQ_API_KEY": KEY}, {}, "https://api.groq.com/openai/v1/chat/completions"),
    ("mistral/m", {"MISTRAL_API_KEY": KEY}, {}, "https://api.mistral.ai/v1/chat/completions"),
    ("deepseek/m", {"DEEPSEEK_API_KEY": KEY}, {}, "https://api.deepseek.com/v1/chat/completions"),
    ("xai/grok-4", {"XAI_API_KEY": KEY}, {}, "https://api.x.ai/v1/chat/completions"),
    ("openrouter/a/b", {"OPENROUTER_API_KEY": KEY}, {}, "https://openrouter.ai/api/v1/chat/completions"),
    ("openai-compatible/m", {}, {"base_url": "http://box/v1"}, "http://box/v1/chat/completions"),
    ("vllm/m", {}, {}, "http://127.0.0.1:8000/v1/chat/completions"),
)


def sent(model: str, environment: dict[str, str], options: Options, **settings: Any) -> HttpRequest:
    """The one request, as it is sent; there is no answer."""
    transport = ReplayTransport([Replayed(status=418, chunks=[b"{}"])])
    stream = settings.pop("stream", False)
    given: Any = {**options, "environment": environment, "transport": transport}

    async def run() -> None:
        driver = connect(model, **given)
        with pytest.raises(ProviderError):
            await (driver.stream_query("x", **settings).result if stream else driver.query("x", **settings))

    asyncio.run(run())
    return transport.requests[0]


@pytest.mark.parametrize(("model", "environment", "options", "address"), ADDRESSES)
def test_where_requests_go(model: str, environment: dict[str, str], options: Options, address: str) -> None:
    request = sent(model, environment, options)
    assert request.url == address
    assert request.headers["user-agent"].startswith("dragoman/")
    assert KEY not in request.url


@pytest.mark.parametrize(
    ("model", "environment", "header", "value"),
    [
        ("openai/m", "OPENAI_API_KEY", "authorization", f"Bearer {KEY}"),
        ("anthropic/m", "ANTHROPIC_API_KEY", "x-api-key", KEY),
        ("gemini/m", "GEMINI_API_KEY", "x-goog-api-key", KEY),
        ("groq/m", "GROQ_API_KEY", "authorization", f"Bearer {KEY}"),
        ("ollama/m", "OLLAMA_API_KEY", "authorization", f"Bearer {KEY}"),
        ("huggingface/m", "HF_TOKEN", "authorization", f"Bearer {KEY}"),
    ],
)
def test_keys_come_from_the_usual_variables(model: str, environment: str, header: str, value: str) -> None:
    assert sent(model, {environment: KEY}, {}).headers[header] == value
    assert sent(model, {environment: "other"}, {"api_key": KEY}).headers[header] == value


def test_a_function_gives_a_fresh_token_for_each_request() -> None:
    tokens = iter(["first-token", "second-token"])

    async def fresh() -> str:
        return next(tokens)

    options: Options = {"api_key": fresh, "base_url": "https://r.openai.azure.com"}
    assert sent("azure/m", {}, options).headers["authorization"] == "Bearer first-token"
    assert sent("azure/m", {}, options).headers["authorization"] == "Bearer second-token"


@pytest.mark.parametrize(
    ("model", "environment", "words"),
    [
        ("anthropic/m", {}, "anthropic has no api_key: set ANTHROPIC_API_KEY, or pass api_key"),
        ("gemini/m", {}, "set GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("azure/m", {"AZURE_OPENAI_API_KEY": KEY}, "azure has no base_url: set AZURE_OPENAI_ENDPOINT"),
        (
            "bedrock/m",
            {"AWS_BEARER_TOKEN_BEDROCK": KEY},
            "bedrock has no region: set AWS_REGION or AWS_DEFAULT",
        ),
        ("openai-compatible/m", {}, "has no base_url"),
        ("nobody/m", {}, "unknown provider 'nobody'; known providers: openai, "),
        ("gpt-5", {}, "'gpt-5' has no provider: write openai/gpt-5"),
        ("claude-sonnet-5", {}, "write anthropic/claude-sonnet-5"),
        ("google:gemini-3.8-flash", {}, "write google/gemini-3.8-flash"),
        ("mystery", {}, "has no provider: write provider/model, such as openai/gpt-5.6"),
        ("openai/", {}, "'openai/' has no model: write provider/model"),
    ],
)
def test_an_error_names_what_is_missing(model: str, environment: dict[str, str], words: str) -> None:
    with pytest.raises(NotConfigured, match=words):
        connect(model, environment=environment)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(
        TypeError, match=r"unknown options: baseurl \(did you mean base_url\?\), x; known: base_url, api"
    ):
        connect("openai/m", x="x", baseurl="http://localhost")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="openai takes no region"):
        connect("openai/m", api_key="x", region="eu")


def test_streams_are_asked_to_count() -> None:
    counted = {"stream_options": {"include_usage": True}}
    chat = json.loads(sent("openai-chat/m", {"OPENAI_API_KEY": KEY}, {}, stream=True).body)
    assert chat.items() >= {"stream": True, **counted}.items()
    whole = json.loads(sent("openai-chat/m", {"OPENAI_API_KEY": KEY}, {}).body)
    assert "stream_options" not in whole
    mistral = json.loads(sent("mistral/m", {"MISTRAL_API_KEY": KEY}, {}, stream=True).body)
    assert "stream_options" not in mistral


def test_each_server_gets_requests_in_its_own_form() -> None:
    settings = {"max_output_tokens": 9, "seed": 3}
    openai = json.loads(sent("openai-chat/m", {"OPENAI_API_KEY": KEY}, {}, **settings).body)
    mistral = json.loads(sent("mistral/m", {"MISTRAL_API_KEY": KEY}, {}, **settings).body)
    assert (openai["max_completion_tokens"], openai["seed"]) == (9, 3)
    assert (mistral["max_tokens"], mistral["random_seed"]) == (9, 3)


@promise("report:42")
def test_reasoning_is_asked_of_the_endpoint_that_gives_it_back() -> None:
    request = sent("openai/gpt-5.6", {"OPENAI_API_KEY": KEY}, {}, reasoning="medium")
    body = json.loads(request.body)
    assert request.url == "https://api.openai.com/v1/responses"
    assert body["reasoning"]["effort"] == "medium"
    assert body["store"] is False
    assert "reasoning.encrypted_content" in body["include"]


def test_claude_on_vertex_names_the_version_in_the_body_and_the_model_in_the_address() -> None:
    request = sent("vertex-anthropic/claude-sonnet-5", {}, GOOGLE, stream=True)
    body = json.loads(request.body)
    assert body["anthropic_version"] == "vertex-2023-10-16"
    assert "model" not in body
    assert request.url.endswith("/claude-sonnet-5:streamRawPredict")


def test_own_headers_and_own_keys_of_a_wire() -> None:
    request = sent(
        "openai-chat/m",
        {"OPENAI_API_KEY": KEY},
        {"headers": {"openai-organization": "o"}},
        headers={"X-Trace": "1"},
        metadata={"openai": {"service_tier": "flex"}},
    )
    assert (request.headers["openai-organization"], request.headers["x-trace"]) == ("o", "1")
    assert json.loads(request.body)["service_tier"] == "flex"
    assert request.headers["x-client-request-id"]


def test_every_row_of_the_table_connects() -> None:
    for name, provider in PROVIDERS.items():
        variables = {variable.name: "v" for variable in provider.variables}
        options: Any = {"api_key": KEY, "base_url": "http://box/v1", **variables}
        driver = connect(f"{name}/m", environment={}, **options)
        assert driver.name == f"{name}/m"
        assert KEY not in repr(driver) + repr(driver.channel)


def test_the_front_door_stays_free_of_networks() -> None:
    script = "import sys, dragoman; dragoman.formats(); print([m for m in ('asyncio', 'aiohttp') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert ran.stdout.strip() == "[]"
    assert dragoman.connect is connect


@pytest.mark.parametrize(
    ("model", "path", "wrong"),
    [
        ("openai/gpt-5.6", "/v1", ""),
        ("openai-chat/gpt-5.6", "/v1", ""),
        ("anthropic/claude-sonnet-5", "", "/v1"),
        ("gemini/gemini-3.8-flash", "", "/v1beta"),
        ("cohere/command-a-03-2025", "", "/v2"),
        ("ollama/qwen3", "", "/v1"),
    ],
)
def test_a_version_too_few_or_too_many_in_the_base_url_is_named(model: str, path: str, wrong: str) -> None:
    with Simulator() as sim:
        with connect_sync(model, base_url=sim.url + wrong, api_key="any") as driver, pytest.raises(NotFound) as caught:
            driver.query("hello")
        assert f"try the base URL {sim.url}{path}" in str(caught.value)
        with connect_sync(model, base_url=sim.url + path, api_key="any") as driver:
            assert driver.query("hello").content


@pytest.mark.parametrize("model", [None, 5, ["openai/gpt-5.6"]])
def test_a_model_is_named_by_text(model: Any) -> None:
    with pytest.raises(dragoman.InvalidType, match="expected provider/model"):
        connect(model)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"prompt": 5}, r"\$.prompt: expected text, a message or messages, found int"),
        (
            {"tools": dragoman.ToolDefinition("f")},
            r"\$.tools: expected a list, found ToolDefinition; put it into a list",
        ),
        ({"tools": print}, r"\$.tools: expected a list, found builtin_function"),
        ({"tools": [print]}, r"\$.tools\[0\]: .*; make a tool of it with @dragoman.tool"),
        ({"settings": {"temperature": "hot"}}, r"\$.temperature: expected a number, found 'hot'"),
        ({"settings": {"top_p": True}}, r"\$.top_p: expected a number, found True"),
        ({"settings": {"output": 5}}, r"\$.output: expected a JSON Schema, found int; .* output_type"),
        ({"settings": {"temprature": 1}}, "for temprature use temperature"),
        ({"settings": {"max_tokens": 5}}, "for max_tokens use max_output_tokens"),
        ({"settings": {"stop_sequences": ["x"]}}, "for stop_sequences use stop"),
    ],
)
def test_a_bad_value_is_named_with_what_to_do(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(dragoman.InvalidType, match=words):
        build_request(**({"prompt": "Hi", "settings": {}} | asked))


@pytest.mark.parametrize(("given", "stop"), [("END", ("END",)), (["a", "b"], ("a", "b")), (None, ())])
def test_one_stop_sequence_may_be_text(given: Any, stop: tuple[str, ...]) -> None:
    """Each of its letters was one."""
    assert build_request("Hi", settings={"stop": given}).stop == stop
