"""The codecs for embeddings: each setting arrives or is a loss, numbers survive, and bad bodies are refused."""

import json
from typing import Any, get_args

import pytest
from msgspec import structs

import dragoman
from dragoman.embeddings import DIALECTS, EmbeddingRequest, EmbeddingResponse, Purpose, dialect, merge, split
from dragoman.embeddings.values import base64_of, floats_of
from dragoman.errors import DecodeError, EncodeError, UnknownFormat
from dragoman.sim.apis.embeddings import vector_of
from dragoman.sim.server import Simulator
from tests.support.cases import each
from tests.support.promises import promise

pytestmark = promise("gateway:embeddings")
MODELS = {"bedrock": "cohere.embed-english-v3", "vertex": "text-embedding-005"}
FULL = EmbeddingRequest(
    model="m", inputs=("a", "b"), dimensions=256, purpose="query", title="t", truncation="none", user="u"
)
SETTINGS = ("dimensions", "purpose", "title", "truncation", "user")


@pytest.mark.parametrize("name", DIALECTS)
def test_every_setting_arrives_or_is_a_loss(name: str) -> None:
    target = DIALECTS[name]
    model = MODELS.get(name, "m")
    bare = EmbeddingRequest(model=model, inputs=("a",))
    plain = target.encode_request(bare, {})
    for setting in SETTINGS:
        request = structs.replace(bare, **{setting: getattr(FULL, setting)})
        if setting == "title":
            request = structs.replace(request, purpose="document")
        encoding = target.encode_request(request, {setting: f"$.{setting}"})
        arrived = encoding.content != plain.content if setting != "title" else b'"t"' in encoding.content
        lost = [loss for loss in encoding.losses if loss.path == f"$.{setting}"]
        assert arrived != bool(lost), setting
    extra = target.encode_request(structs.replace(bare, extras={"odd": 1}), {})
    assert any(loss.path == "$.odd" and loss.severity == "dropped" for loss in extra.losses)


@pytest.mark.parametrize("name", DIALECTS)
def test_what_is_encoded_is_decoded_as_the_same(name: str) -> None:
    codec, model = DIALECTS[name], MODELS.get(name, "m")
    taken: dict[str, Any] = {"dimensions": 256}
    inputs = ("a",) if codec.batch_limit(model) == 1 else ("a", "b")
    request = EmbeddingRequest(model=model, inputs=inputs, **taken)
    encoding = codec.encode_request(request, {})
    again = codec.decode_request(encoding.content, model)
    assert (again.inputs, again.model, again.dimensions) == (inputs, model, 256)
    answer = EmbeddingResponse(vectors=tuple((0.5, -1.25) for _ in inputs), input_tokens=7)
    decoded = codec.decode_response(codec.encode_response(answer, again), {})
    assert decoded.vectors == answer.vectors
    assert decoded.input_tokens in {7, None}


@pytest.mark.parametrize("purpose", get_args(Purpose))
def test_purposes(purpose: Purpose) -> None:
    request = EmbeddingRequest(model="m", inputs=("a",), purpose=purpose)
    sent = json.loads(dialect("gemini").encode_request(request, {}).content)
    assert dialect("gemini").decode_request(json.dumps(sent).encode(), "m").purpose == purpose
    encoding = dialect("cohere").encode_request(request, {"purpose": "$.taskType"})
    again = dialect("cohere").decode_request(encoding.content, "m").purpose
    assert again == purpose or [loss.severity for loss in encoding.losses] == ["degraded"]


def test_numbers_as_base64() -> None:
    assert base64_of([1.0, -0.5]) == "AACAPwAAAL8="
    assert floats_of("AACAPwAAAL8=", "openai") == (1.0, -0.5)
    for bad in ("AAC", "AACAPw", "????"):
        with pytest.raises(DecodeError):
            floats_of(bad, "openai")


def test_large_requests_are_split_and_answers_merged() -> None:
    request = EmbeddingRequest(model="m", inputs=tuple(map(str, range(200))))
    parts = split(request, dialect("cohere"))
    assert [len(one.inputs) for one in parts] == [96, 96, 8]
    answers = [EmbeddingResponse(vectors=tuple((float(text),) for text in one.inputs), input_tokens=2) for one in parts]  # type: ignore[arg-type]
    merged = merge(answers)
    assert (len(merged.vectors), merged.vectors[199], merged.input_tokens) == (200, (199.0,), 6)


@each("name", DIALECTS)
@each("body", [b"", b"[]", b"{}", b'{"input": 5}', b'{"texts": [1]}', b"\xff", b"[" * 5_000])
def test_bad_bodies_are_typed_errors(name: str, body: bytes) -> None:
    with pytest.raises(DecodeError):
        DIALECTS[name].decode_request(body, "m")
    with pytest.raises(DecodeError):
        DIALECTS[name].decode_response(body or b"5", {})


def test_an_invalid_count_is_not_counted() -> None:
    body = b'{"embeddings": [[1.0]]}'
    for header, expected in {"7": 7, "9" * 5_000: None, "x": None}.items():
        answer = dialect("bedrock").decode_response(body, {"x-amzn-bedrock-input-token-count": header})
        assert answer.input_tokens == expected


def test_tokens_are_refused_where_only_texts_are_taken() -> None:
    request = dialect("openai").decode_request(b'{"model": "m", "input": [[1, 2], [3]]}', "")
    assert request.inputs == ((1, 2), (3,))
    with pytest.raises(EncodeError):
        dialect("cohere").encode_request(request, {})
    with pytest.raises(UnknownFormat):
        dialect("unheard-of")


@promise("gateway:embeddings")
@pytest.mark.parametrize(
    ("name", "mount", "more"),
    [
        ("openai/text-embedding-3-small", "/openai/v1", {}),
        ("gemini/gemini-embedding-001", "/gemini", {}),
        ("vertex/gemini-embedding-001", "/vertex", {}),
        ("ollama/nomic-embed-text", "/ollama", {}),
        ("cohere/embed-v4.0", "/cohere", {}),
        ("bedrock/amazon.titan-embed-text-v2:0", "/bedrock", {"region": "us-east-1"}),
    ],
)
def test_a_driver_embeds(name: str, mount: str, more: dict[str, Any]) -> None:
    texts = [f"text {number}" for number in range(100 if name.startswith("cohere") else 3)]
    with Simulator() as simulator:
        options: dict[str, Any] = {"base_url": simulator.url + mount, "api_key": "any", "environment": {}, **more}
        with dragoman.connect_sync(name, **options) as driver:
            result = driver.embed(texts, dimensions=256, purpose="query")
            assert [len(one) for one in result.vectors] == [256] * len(texts)
            assert result.vectors[-1] == pytest.approx(vector_of(texts[-1], 256))
            assert result.usage is not None
            assert result.usage.input > 0
            one = driver.embed("text 0", dimensions=256)
            assert one.vectors[0] == result.vectors[0]


def test_a_provider_without_embeddings() -> None:
    driver = dragoman.connect_sync("anthropic/claude-sonnet-5", api_key="any")
    with driver, pytest.raises(dragoman.NotConfigured, match="embeddings"):
        driver.embed("x")
