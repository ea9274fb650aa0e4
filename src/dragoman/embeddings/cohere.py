"""Cohere's `POST /v2/embed`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from dragoman.embeddings.values import (
    EmbeddingRequest,
    EmbeddingResponse,
    Encoding,
    Purpose,
    Truncation,
    base64_of,
    extras_of,
    floats_of,
    read_wire,
    report_losses,
    texts_of,
    write_wire,
)
from dragoman.errors import DecodeError
from dragoman.loss import Loss

NAME = "cohere"
TAKEN = frozenset({"dimensions", "purpose", "truncation"})
PATHS = {"dimensions": "$.output_dimension", "purpose": "$.input_type", "truncation": "$.truncate"}
PURPOSES: Mapping[str, Purpose] = {
    "search_document": "document",
    "search_query": "query",
    "classification": "classification",
    "clustering": "clustering",
}
# The closest input type of Cohere; a loss if it is not the same.
TYPES: Mapping[Purpose, str] = {
    **{purpose: kind for kind, purpose in PURPOSES.items()},
    "similarity": "clustering",
    "question": "search_query",
    "fact_check": "search_query",
    "code_query": "search_query",
}
CUTS: Mapping[str, Truncation] = {"NONE": "none", "START": "start", "END": "end", "LEFT": "start", "RIGHT": "end"}
_NUMBERS = ("float", "base64")
USUAL = "search_document"
"""Input type if the client's API has none: Cohere requires one."""


class ContentWire(Struct):
    type: str
    text: str | None = None


class InputWire(Struct):
    content: list[ContentWire]


class RequestWire(Struct):
    model: str = ""
    input_type: str | None = None
    texts: list[str] | None = None
    inputs: list[InputWire] | None = None
    embedding_types: list[str] | None = None
    output_dimension: int | None = None
    truncate: str | None = None


class UnitsWire(Struct, omit_defaults=True):
    input_tokens: float = 0


class MetaWire(Struct, omit_defaults=True):
    api_version: dict[str, str] | None = None
    billed_units: UnitsWire | None = None


class VectorsWire(Struct, omit_defaults=True):
    float_: list[list[float]] | None = msgspec.field(name="float", default=None)
    base64: list[str] | None = None


class ResponseWire(Struct, omit_defaults=True):
    embeddings: VectorsWire | list[list[float]]
    id: str = ""
    texts: list[str] | None = None
    meta: MetaWire | None = None
    response_type: str = ""


def batch_limit(model: str) -> int:  # noqa: ARG001 - the same for all
    return 96


def suits(body: bytes, model: str) -> bool:  # noqa: ARG001 - all bodies do
    return True


def decode_request(body: bytes, model: str) -> EmbeddingRequest:
    wire = read_wire(body, RequestWire, NAME)
    types = wire.embedding_types or ["float"]
    if unknown := [one for one in types if one not in _NUMBERS]:
        words = "float or base64, as other providers give"
        raise DecodeError(path="$.embedding_types", expected=words, got=", ".join(unknown), source=NAME)
    if wire.input_type is not None and wire.input_type not in PURPOSES:
        words = f"one of {', '.join(PURPOSES)}"
        raise DecodeError(path="$.input_type", expected=words, got=wire.input_type, source=NAME)
    texts = _texts(wire)
    return EmbeddingRequest(
        model=model or wire.model,
        inputs=tuple(texts),
        dimensions=wire.output_dimension,
        purpose=None if wire.input_type is None else PURPOSES[wire.input_type],
        truncation=None if wire.truncate is None else CUTS.get(wire.truncate, "end"),
        base64="base64" in types,
        shape=",".join(types) if wire.embedding_types is not None else "",
        extras=extras_of(body, RequestWire, NAME),
    )


def _texts(wire: RequestWire) -> list[str]:
    if wire.texts:
        return wire.texts
    texts: list[str] = []
    for place, one in enumerate(wire.inputs or ()):
        if any(part.text is None for part in one.content):
            path = f"$.inputs[{place}].content"
            raise DecodeError(path=path, expected="texts", got="images, which are not translated", source=NAME)
        texts.append("".join(part.text or "" for part in one.content))
    if not texts:
        raise DecodeError(path="$.texts", expected="at least one text", got="none", source=NAME)
    return texts


def fields_of(
    request: EmbeddingRequest, paths: Mapping[str, str], target: str
) -> tuple[dict[str, Any], tuple[Loss, ...]]:
    """The body without the model, which Bedrock has in the path."""
    losses = list(report_losses(request, TAKEN, paths, target))
    if request.purpose is None:
        losses.append(Loss("$", "input_type", "invented", f"{target} demands one"))
    elif PURPOSES[TYPES[request.purpose]] != request.purpose:
        why = f"{target} has no such purpose; {TYPES[request.purpose]} is the nearest"
        losses.append(Loss(paths.get("purpose", "$"), request.purpose, "degraded", why))
    body: dict[str, Any] = {
        "texts": texts_of(request, target),
        "input_type": USUAL if request.purpose is None else TYPES[request.purpose],
        "embedding_types": ["float"],
    }
    if request.dimensions is not None:
        body["output_dimension"] = request.dimensions
    if request.truncation is not None:
        body["truncate"] = request.truncation.upper()
    return body, tuple(losses)


def encode_request(request: EmbeddingRequest, paths: Mapping[str, str]) -> Encoding:
    body, losses = fields_of(request, paths, NAME)
    return Encoding(write_wire({"model": request.model, **body}, NAME), "/v2/embed", losses)


def decode_response(body: bytes, headers: Mapping[str, str]) -> EmbeddingResponse:  # noqa: ARG001 - as in all
    wire = read_wire(body, ResponseWire, NAME)
    found = wire.embeddings
    if not isinstance(found, VectorsWire):
        numbers = found
    elif found.float_ is not None:
        numbers = found.float_
    else:
        numbers = [list(floats_of(one, NAME)) for one in found.base64 or ()]
    units = wire.meta.billed_units if wire.meta is not None else None
    return EmbeddingResponse(
        vectors=tuple(tuple(one) for one in numbers),
        input_tokens=None if units is None else int(units.input_tokens),
        id=wire.id or None,
    )


def encode_response(answer: EmbeddingResponse, request: EmbeddingRequest) -> bytes:
    types = request.shape.split(",") if request.shape else ["float"]
    vectors = VectorsWire(
        float_=[list(one) for one in answer.vectors] if "float" in types else None,
        base64=[base64_of(one) for one in answer.vectors] if "base64" in types else None,
    )
    tokens = answer.input_tokens
    meta = MetaWire({"version": "2"}, None if tokens is None else UnitsWire(tokens))
    texts = [one for one in request.inputs if isinstance(one, str)]
    return write_wire(ResponseWire(vectors, answer.id or "", texts, meta, "embeddings_by_type"), NAME)
