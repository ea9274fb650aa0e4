"""Embeddings through the gateway: the vendors' SDKs as clients, and every simulated provider as upstream."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import boto3  # type: ignore[import-untyped]
import botocore.config  # type: ignore[import-untyped]
import cohere
import ollama
import openai
import pytest
from google import genai
from google.genai import types

from dragoman.gateway.config import read_config
from dragoman.sim.apis.embeddings import vector_of
from dragoman.sim.server import Simulator
from tests.gateway.running import RunningGateway, configured, send, simulated
from tests.gateway.scripted_upstream import reply, scripted
from tests.support.promises import promise

pytestmark = promise("gateway:embeddings")
TEXTS = ["The interpreter stood between two courts.", "Zwei Sprachen, ein Gespräch.", "third"]
TARGETS = {
    "openai": "openai/text-embedding-3-small",
    "gemini": "gemini/gemini-embedding-001",
    "vertex": "vertex/text-embedding-005",
    "vertex-content": "vertex/gemini-embedding-2",
    "ollama": "ollama/nomic-embed-text",
    "cohere": "cohere/embed-v4.0",
    "titan": "bedrock/amazon.titan-embed-text-v2:0",
    "bedrock-cohere": "bedrock/cohere.embed-english-v3",
}
SIZE = 256


@pytest.fixture(scope="module")
def embedder(dragoman_simulator: Simulator) -> Iterator[RunningGateway]:
    routes = "".join(f'[routes."embed-{name}"]\nto = "{to}"\n' for name, to in TARGETS.items())
    with RunningGateway(simulated(dragoman_simulator.url, read_config(routes))) as gateway:
        yield gateway


def by_openai(url: str, model: str) -> tuple[list[list[float]], int]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="any") as client:
        embedded = client.embeddings.create(model=model, input=TEXTS, dimensions=SIZE)
    assert [one.index for one in embedded.data] == [0, 1, 2]
    return [one.embedding for one in embedded.data], embedded.usage.prompt_tokens


def by_genai(url: str, model: str) -> tuple[list[list[float]], int]:
    client = genai.Client(api_key="any", http_options=types.HttpOptions(base_url=url))
    config = types.EmbedContentConfig(output_dimensionality=SIZE, task_type="RETRIEVAL_QUERY")
    embedded = client.models.embed_content(model=model, contents=TEXTS, config=config)
    return [list(one.values or ()) for one in embedded.embeddings or ()], 1


def by_ollama(url: str, model: str) -> tuple[list[list[float]], int]:
    embedded = ollama.Client(host=url).embed(model=model, input=TEXTS, dimensions=SIZE)
    return [list(one) for one in embedded.embeddings], embedded.prompt_eval_count or 0


def by_cohere(url: str, model: str) -> tuple[list[list[float]], int]:
    client = cohere.ClientV2(api_key="any", base_url=url)
    embedded = client.embed(
        model=model, input_type="search_query", texts=TEXTS, output_dimension=SIZE, embedding_types=["float"]
    )
    assert embedded.meta is not None
    assert embedded.meta.billed_units is not None
    return [list(one) for one in embedded.embeddings.float_ or ()], int(embedded.meta.billed_units.input_tokens or 0)


def by_boto3(url: str, model: str) -> tuple[list[list[float]], int]:
    plain = botocore.config.Config(retries={"max_attempts": 0})
    client = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=plain,
    )
    vectors, tokens = [], 0
    for text in TEXTS:
        embedded = json.loads(
            client.invoke_model(modelId=model, body=json.dumps({"inputText": text, "dimensions": SIZE}))["body"].read()
        )
        vectors.append(embedded["embedding"])
        tokens += embedded["inputTextTokenCount"]
    return vectors, tokens


CLIENTS: dict[str, Callable[[str, str], tuple[list[list[float]], int]]] = {
    "openai": by_openai,
    "google-genai": by_genai,
    "ollama": by_ollama,
    "cohere": by_cohere,
    "boto3": by_boto3,
}


@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_reaches_every_provider(client: str, embedder: RunningGateway) -> None:
    for name in TARGETS:
        vectors, tokens = CLIENTS[client](embedder.url, f"embed-{name}")
        assert len(vectors) == len(TEXTS)
        for text, vector in zip(TEXTS, vectors, strict=True):
            assert vector == pytest.approx(vector_of(text, SIZE), abs=1e-6), (client, name)
        assert tokens > 0, (client, name)


def test_older_endpoints_and_base64(embedder: RunningGateway) -> None:
    (text, *_), url = TEXTS, embedder.url
    one = send(url, "/api/embeddings", {"model": "embed-openai", "prompt": text}).json
    assert one["embedding"] == pytest.approx(vector_of(text, 1536), abs=1e-6)
    body = {"content": {"parts": [{"text": text}]}, "outputDimensionality": SIZE}
    embedded = send(url, "/v1beta/models/embed-cohere:embedContent", body).json
    assert embedded["embedding"]["values"] == pytest.approx(vector_of(text, SIZE))
    body = {"instances": [{"content": text, "task_type": "CLUSTERING"}], "parameters": {"outputDimensionality": SIZE}}
    path = "/v1/projects/p/locations/l/publishers/google/models/embed-openai:predict"
    embedded = send(url, path, body)
    assert embedded.json["predictions"][0]["embeddings"]["values"] == pytest.approx(vector_of(text, SIZE))
    assert embedded.headers["x-dragoman-losses"] == "1", "OpenAI has no purposes"
    body = {"texts": [text], "input_type": "search_query"}
    embedded = send(url, "/model/embed-openai/invoke", body).json
    assert (embedded["response_type"], len(embedded["embeddings"][0])) == ("embeddings_floats", 1536)
    body = {"model": "embed-gemini", "input": text, "encoding_format": "base64", "dimensions": 2}
    assert isinstance(send(url, "/v1/embeddings", body).json["data"][0]["embedding"], str)


def test_same_format_passes_byte_exact() -> None:
    vector = b'{"object":"embedding","index":0,"embedding":[1e0]}'
    usage = b'{"prompt_tokens":7,"total_tokens":7}'
    answer = b'{ "object":"list","data":[%b],"model":"m","usage":%b,"new":1}' % (vector, usage)
    sent = b'{"input" : "x",  "model":"p/m", "later_key": [1.0]}'
    with (
        scripted(reply(answer)) as upstream,
        RunningGateway(configured(upstream.table("p") + '[prices."p/m"]\ninput = 2\noutput = 0\n')) as gateway,
    ):
        got = send(gateway.url, "/v1/embeddings", sent)
        assert got.body == answer
        assert upstream.bodies == [sent.replace(b"p/m", b"m")]
        assert upstream.heads[0].startswith("POST /embeddings")
        (line,) = gateway.requests(1)
        assert (line["operation"], line["tokens"]["input"], line["cost"]) == ("embed", 7, pytest.approx(14e-6))


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/embeddings", {"model": "anthropic/claude-sonnet-5", "input": "x"}, 501),
        ("/v1/embeddings", {"model": "embed-cohere", "input": []}, 400),
        ("/v1/embeddings", {"model": "embed-cohere", "input": [1, 2]}, 400),
        ("/v1/embeddings", {"model": "embed-cohere", "input": {"a": 1}}, 400),
        ("/v1/embeddings", {"input": "x"}, 400),
        ("/v1/embeddings", {"model": "embed-titan", "input": ["x"] * 300}, 400),
        ("/v2/embed", {"model": "embed-openai", "input_type": "image", "texts": ["x"]}, 400),
        ("/v2/embed", {"model": "embed-openai", "texts": ["x"], "embedding_types": ["int8"]}, 400),
        ("/api/embed", {"model": "embed-openai"}, 400),
        ("/v1beta/models/embed-openai:batchEmbedContents", {"requests": []}, 400),
        ("/model/embed-openai/invoke", {"inputText": "x", "embeddingTypes": ["binary"]}, 400),
        ("/v1/embeddings", b"{", 400),
    ],
)
def test_embedding_errors_are_in_the_clients_format(
    path: str, body: Any, status: int, embedder: RunningGateway
) -> None:
    got = send(embedder.url, path, body)
    assert got.status == status, got.body
    assert got.json
    if status == 501:
        assert b"cohere" in got.body


def test_keys_and_limits_apply_to_embeddings() -> None:
    with RunningGateway(configured('[server]\nkeys = ["sesame"]\nmax_body = 2000\n')) as gateway:
        body = {"model": "openai/text-embedding-3-small", "input": "x" * 3000}
        for path in ("/v1/embeddings", "/api/embed", "/v2/embed", "/v1beta/models/m:embedContent"):
            assert send(gateway.url, path, body).status in {401, 403}, "the key comes before the body"
            assert send(gateway.url, path, body, {"x-api-key": "sesame"}).status == 413
        assert send(gateway.url, "/v1/embeddings", None, {"x-api-key": "sesame"}, "PUT").status == 405


def test_an_answer_with_too_few_vectors_is_a_failure_of_the_upstream() -> None:
    with (
        scripted(reply({"embeddings": [[1.0]], "model": "m"})) as upstream,
        RunningGateway(configured(upstream.table("p", "ollama"))) as gateway,
    ):
        got = send(gateway.url, "/v1/embeddings", {"model": "p/m", "input": ["a", "b"]})
    assert got.status == 502


EMBEDDED = {
    "openai": ("/v1/embeddings", {"model": "p/m", "input": "a"}),
    "cohere": ("/v2/embed", {"model": "p/m", "texts": ["a"], "input_type": "clustering"}),
}


@pytest.mark.parametrize("client", EMBEDDED)
@pytest.mark.parametrize("kind", EMBEDDED)
def test_an_answer_that_is_an_error_is_a_failure_of_the_upstream(kind: str, client: str) -> None:
    """Also between equal APIs, where bytes pass unchanged."""
    answers = ({"error": {"message": "no"}}, {"error": {"message": "no"}, "data": [], "embeddings": {}}, b"<html>", b"")
    path, body = EMBEDDED[client]
    with scripted(reply(b"")) as upstream, RunningGateway(configured(upstream.table("p", kind))) as gateway:
        for answer in answers:
            upstream.replies = [reply(answer)]
            assert send(gateway.url, path, body).status == 502, answer
