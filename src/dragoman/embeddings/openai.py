"""`POST /v1/embeddings`: OpenAI, Azure and compatible servers."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, Struct, UnsetType

from dragoman.embeddings.values import (
    EmbeddingRequest,
    EmbeddingResponse,
    Encoding,
    base64_of,
    extras_of,
    floats_of,
    read_wire,
    report_losses,
    write_wire,
)
from dragoman.errors import DecodeError

NAME = "openai"
TAKEN = frozenset({"dimensions", "user"})
PATHS = {"dimensions": "$.dimensions", "user": "$.user"}


class RequestWire(Struct):
    input: str | list[str | int | list[int]]
    model: str = ""
    dimensions: int | None = None
    encoding_format: str | None = None
    user: str | None = None


class EmbeddingWire(Struct):
    embedding: list[float] | str
    index: int | None = None
    object: str = "embedding"


class UsageWire(Struct):
    prompt_tokens: int = 0
    total_tokens: int = 0


class ResponseWire(Struct):
    data: list[EmbeddingWire]
    model: str = ""
    usage: UsageWire | None = None
    object: str = "list"
    id: str | UnsetType = UNSET


def batch_limit(model: str) -> int:  # noqa: ARG001 - the same for all
    return 2_048


def suits(body: bytes, model: str) -> bool:  # noqa: ARG001 - all bodies do
    return True


def decode_request(body: bytes, model: str) -> EmbeddingRequest:
    wire = read_wire(body, RequestWire, NAME)
    given = [wire.input] if isinstance(wire.input, str) else wire.input
    tokens = tuple(one for one in given if isinstance(one, int))
    inputs = [one if isinstance(one, str) else tuple(one) for one in given if not isinstance(one, int)]
    if tokens and inputs:
        raise DecodeError(path="$.input", expected="texts or tokens", got="both", source=NAME)
    if tokens:
        inputs = [tokens]
    if not inputs:
        raise DecodeError(path="$.input", expected="at least one text", got="none", source=NAME)
    return EmbeddingRequest(
        model=model or wire.model,
        inputs=tuple(inputs),
        dimensions=wire.dimensions,
        user=wire.user,
        base64=wire.encoding_format == "base64",
        extras=extras_of(body, RequestWire, NAME),
    )


def encode_request(request: EmbeddingRequest, paths: Mapping[str, str]) -> Encoding:
    body: dict[str, object] = {"model": request.model, "input": request.inputs, "encoding_format": "float"}
    if request.dimensions is not None:
        body["dimensions"] = request.dimensions
    if request.user is not None:
        body["user"] = request.user
    return Encoding(write_wire(body, NAME), "/embeddings", report_losses(request, TAKEN, paths, NAME))


def decode_response(body: bytes, headers: Mapping[str, str]) -> EmbeddingResponse:  # noqa: ARG001 - as in all
    wire = read_wire(body, ResponseWire, NAME)
    vectors = (one.embedding for one in _in_order(wire.data))
    return EmbeddingResponse(
        vectors=tuple(floats_of(one, NAME) if isinstance(one, str) else tuple(one) for one in vectors),
        model=wire.model or None,
        input_tokens=None if wire.usage is None else wire.usage.prompt_tokens,
        id=wire.id or None if isinstance(wire.id, str) else None,
    )


def _in_order(data: list[EmbeddingWire]) -> list[EmbeddingWire]:
    """The vectors in the order of the texts: by index, or as they come if the server gives none.

    Raises `DecodeError` for indexes that leave open which text a vector belongs to.
    """
    indexes = [one.index for one in data]
    if not any(index is not None for index in indexes):
        return data
    ordered = sorted(data, key=lambda one: -1 if one.index is None else one.index)
    for place, one in enumerate(ordered):
        if one.index != place:
            raise DecodeError(path="$.data", expected="each index once", got=f"{one.index} for {place}", source=NAME)
    return ordered


def encode_response(answer: EmbeddingResponse, request: EmbeddingRequest) -> bytes:
    tokens = answer.input_tokens or 0
    data = [
        EmbeddingWire(base64_of(vector) if request.base64 else list(vector), index)
        for index, vector in enumerate(answer.vectors)
    ]
    return write_wire(ResponseWire(data, answer.model or request.model, UsageWire(tokens, tokens)), NAME)
