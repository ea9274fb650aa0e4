"""Ollama's `/api/embed`, and the older `/api/embeddings` for one text."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

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
from dragoman.errors import DecodeError

NAME = "ollama"
TAKEN = frozenset({"dimensions", "truncation"})
PATHS = {"dimensions": "$.dimensions", "truncation": "$.truncate"}
EMBED, OLDER = "embed", "embeddings"


class RequestWire(Struct):
    model: str = ""
    input: str | list[str] | None = None
    prompt: str | None = None
    truncate: bool | None = None
    dimensions: int | None = None


class ResponseWire(Struct, omit_defaults=True):
    model: str = ""
    embeddings: list[list[float]] | None = None
    embedding: list[float] | None = None
    prompt_eval_count: int | None = None


def batch_limit(model: str) -> int:  # noqa: ARG001 - the same for all
    return 512


def suits(body: bytes, model: str) -> bool:  # noqa: ARG001 - all bodies do
    return True


def decode_request(body: bytes, model: str) -> EmbeddingRequest:
    wire = read_wire(body, RequestWire, NAME)
    given = wire.prompt if wire.input is None else wire.input
    inputs = [given] if isinstance(given, str) else given or []
    if not inputs:
        raise DecodeError(path="$.input", expected="at least one text", got="none", source=NAME)
    return EmbeddingRequest(
        model=model or wire.model,
        inputs=tuple(inputs),
        dimensions=wire.dimensions,
        truncation=None if wire.truncate is None else "end" if wire.truncate else "none",
        shape=OLDER if wire.input is None else EMBED,
        extras=extras_of(body, RequestWire, NAME),
    )


def encode_request(request: EmbeddingRequest, paths: Mapping[str, str]) -> Encoding:
    body: dict[str, object] = {"model": request.model, "input": texts_of(request, NAME)}
    if request.dimensions is not None:
        body["dimensions"] = request.dimensions
    if request.truncation is not None:
        body["truncate"] = request.truncation != "none"
    return Encoding(write_wire(body, NAME), "/api/embed", report_losses(request, TAKEN, paths, NAME))


def decode_response(body: bytes, headers: Mapping[str, str]) -> EmbeddingResponse:  # noqa: ARG001 - as in all
    wire = read_wire(body, ResponseWire, NAME)
    found = wire.embeddings if wire.embeddings is not None else [wire.embedding] if wire.embedding else None
    if found is None:
        raise DecodeError(path="$", expected="embeddings", got="none", source=NAME)
    return EmbeddingResponse(
        vectors=tuple(tuple(one) for one in found), model=wire.model or None, input_tokens=wire.prompt_eval_count
    )


def encode_response(answer: EmbeddingResponse, request: EmbeddingRequest) -> bytes:
    if request.shape == OLDER:
        return write_wire(ResponseWire(embedding=list(answer.vectors[0])), NAME)
    return write_wire(
        ResponseWire(
            model=answer.model or request.model,
            embeddings=[list(one) for one in answer.vectors],
            prompt_eval_count=answer.input_tokens,
        ),
        NAME,
    )
