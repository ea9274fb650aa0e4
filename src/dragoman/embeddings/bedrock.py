"""Bedrock's InvokeModel: Amazon's Titan (one text at a time) and Cohere's models, each with a body of its own."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from msgspec import Struct, structs

from dragoman.embeddings import cohere
from dragoman.embeddings.values import (
    EmbeddingRequest,
    EmbeddingResponse,
    Encoding,
    extras_of,
    read_wire,
    report_losses,
    texts_of,
    write_wire,
)
from dragoman.errors import DecodeError, EncodeError

NAME = "bedrock"
TAKEN = frozenset({"dimensions"})
PATHS = {"dimensions": "$.dimensions", "purpose": "$.input_type", "truncation": "$.truncate"}
TITAN, COHERE_BARE, COHERE_TYPED = "titan", "cohere", "cohere-typed"
_COUNT = "x-amzn-bedrock-input-token-count"
_LONGEST_COUNT = 15
"""Most digits of a token count."""


class TitanWire(Struct, rename="camel"):
    input_text: str
    dimensions: int | None = None
    normalize: bool | None = None
    embedding_types: list[str] | None = None


class TitanResponseWire(Struct, rename="camel", omit_defaults=True):
    embedding: list[float]
    embeddings_by_type: dict[str, list[float]] | None = None
    input_text_token_count: int = 0


class _Head(Struct, rename="camel"):
    input_text: str | None = None
    embedding: list[float] | None = None


def batch_limit(model: str) -> int:
    return cohere.batch_limit(model) if "cohere." in model else 1


def suits(body: bytes, model: str) -> bool:
    """Whether the body is in the format of the model's vendor."""
    return (read_wire(body, _Head, NAME).input_text is None) == ("cohere." in model)


def decode_request(body: bytes, model: str) -> EmbeddingRequest:
    if read_wire(body, _Head, NAME).input_text is None:
        wire = read_wire(body, cohere.RequestWire, NAME)
        shape = COHERE_BARE if wire.embedding_types is None else COHERE_TYPED
        return structs.replace(cohere.decode_request(body, model), shape=shape)
    titan = read_wire(body, TitanWire, NAME)
    if titan.embedding_types not in (None, ["float"]):
        path, got = "$.embeddingTypes", ", ".join(titan.embedding_types)
        raise DecodeError(path=path, expected="float, as other providers give", got=got, source=NAME)
    extras = extras_of(body, TitanWire, NAME)
    if titan.normalize is False:
        extras["normalize"] = False
    return EmbeddingRequest(
        model=model, inputs=(titan.input_text,), dimensions=titan.dimensions, shape=TITAN, extras=extras
    )


def encode_request(request: EmbeddingRequest, paths: Mapping[str, str]) -> Encoding:
    """The body for the model's vendor. Raises `EncodeError` for a model that is neither Titan nor Cohere's."""
    path = f"/model/{quote(request.model, safe='')}/invoke"
    if "cohere." in request.model:
        body, losses = cohere.fields_of(request, paths, NAME)
        return Encoding(write_wire(body, NAME), path, losses)
    if "titan-embed" not in request.model:
        raise EncodeError(path="$.model", reason="is neither a Titan nor a Cohere embedding model", target=NAME)
    titan: dict[str, object] = {"inputText": texts_of(request, NAME)[0]}
    if request.dimensions is not None:
        titan["dimensions"] = request.dimensions
    return Encoding(write_wire(titan, NAME), path, report_losses(request, TAKEN, paths, NAME))


def decode_response(body: bytes, headers: Mapping[str, str]) -> EmbeddingResponse:
    if read_wire(body, _Head, NAME).embedding is None:
        answer = cohere.decode_response(body, headers)
        counted = headers.get(_COUNT, "")
        is_count = counted.isdecimal() and len(counted) <= _LONGEST_COUNT
        return structs.replace(answer, input_tokens=int(counted)) if is_count else answer
    titan = read_wire(body, TitanResponseWire, NAME)
    return EmbeddingResponse(vectors=(tuple(titan.embedding),), input_tokens=titan.input_text_token_count)


def encode_response(answer: EmbeddingResponse, request: EmbeddingRequest) -> bytes:
    if request.shape == TITAN:
        vector = list(answer.vectors[0])
        return write_wire(TitanResponseWire(vector, {"float": vector}, answer.input_tokens or 0), NAME)
    if request.shape == COHERE_TYPED:
        return cohere.encode_response(answer, structs.replace(request, shape="float"))
    texts = [one for one in request.inputs if isinstance(one, str)]
    vectors = [list(one) for one in answer.vectors]
    bare = cohere.ResponseWire(vectors, answer.id or "", texts, None, "embeddings_floats")
    return write_wire(bare, NAME)
