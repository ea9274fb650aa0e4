"""Mistral's `POST /v1/embeddings`: like OpenAI's, with another key for dimensions and at most 256 texts."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, structs

from dragoman.embeddings import openai
from dragoman.embeddings.values import (
    EmbeddingRequest,
    EmbeddingResponse,
    Encoding,
    read_wire,
    report_losses,
    write_wire,
)

NAME = "mistral"
TAKEN = frozenset({"dimensions"})
PATHS = {"dimensions": "$.output_dimension"}


class SizeWire(Struct):
    output_dimension: int | None = None


def batch_limit(model: str) -> int:  # noqa: ARG001 - the same for all
    return 256


def suits(body: bytes, model: str) -> bool:  # noqa: ARG001 - all bodies do
    return True


def decode_request(body: bytes, model: str) -> EmbeddingRequest:
    request, size = openai.decode_request(body, model), read_wire(body, SizeWire, NAME).output_dimension
    extras = {name: value for name, value in request.extras.items() if name != "output_dimension"}
    return structs.replace(request, dimensions=size, extras=extras)


def encode_request(request: EmbeddingRequest, paths: Mapping[str, str]) -> Encoding:
    body: dict[str, object] = {"model": request.model, "input": request.inputs}
    if request.dimensions is not None:
        body["output_dimension"] = request.dimensions
    return Encoding(write_wire(body, NAME), "/embeddings", report_losses(request, TAKEN, paths, NAME))


def decode_response(body: bytes, headers: Mapping[str, str]) -> EmbeddingResponse:
    return openai.decode_response(body, headers)


def encode_response(answer: EmbeddingResponse, request: EmbeddingRequest) -> bytes:
    return openai.encode_response(answer, request)
