"""Vertex AI: `:predict` for the text models and gemini-embedding-001, `:embedContent` for the newer ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from dragoman.embeddings import gemini
from dragoman.embeddings.gemini import ContentWire, UsageWire, VectorWire, purpose_of, settings_of, text_of
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

NAME = "vertex"
TAKEN = frozenset({"dimensions", "purpose", "title", "truncation"})
PATHS = {
    "dimensions": "$.parameters.outputDimensionality",
    "purpose": "$.instances[0].task_type",
    "title": "$.instances[0].title",
    "truncation": "$.parameters.autoTruncate",
}
PREDICT, CONTENT = "predict", "content"
_PREDICTED = re.compile(r"text-?embedding|text-multilingual|gemini-embedding-001")


class InstanceWire(Struct):
    content: str
    task_type: str | None = None
    title: str | None = None


class ParametersWire(Struct, rename="camel"):
    output_dimensionality: int | None = None
    auto_truncate: bool | None = None


class ConfigWire(Struct, rename="camel"):
    task_type: str | None = None
    title: str | None = None
    output_dimensionality: int | None = None
    auto_truncate: bool | None = None


class RequestWire(Struct, rename="camel"):
    instances: list[InstanceWire] | None = None
    parameters: ParametersWire | None = None
    content: ContentWire | None = None
    embed_content_config: ConfigWire | None = None


class StatisticsWire(Struct):
    token_count: float = 0
    truncated: bool = False


class PredictedWire(Struct):
    values: list[float]
    statistics: StatisticsWire = field(default_factory=StatisticsWire)


class PredictionWire(Struct):
    embeddings: PredictedWire


class ResponseWire(Struct, rename="camel", omit_defaults=True):
    predictions: list[PredictionWire] | None = None
    embedding: VectorWire | None = None
    usage_metadata: UsageWire | None = None


def batch_limit(model: str) -> int:
    """Gemini models accept one text per request on Vertex."""
    return 250 if _PREDICTED.match(model) and not model.startswith("gemini") else 1


def suits(body: bytes, model: str) -> bool:
    """Whether the model has the method that the body is for."""
    return (read_wire(body, RequestWire, NAME).instances is not None) == bool(_PREDICTED.match(model))


def decode_request(body: bytes, model: str) -> EmbeddingRequest:
    wire = read_wire(body, RequestWire, NAME)
    extras = extras_of(body, RequestWire, NAME)
    if wire.instances is None:
        config = wire.embed_content_config or ConfigWire()
        return EmbeddingRequest(
            model=model,
            inputs=(text_of(wire.content, "$.content", NAME),),
            dimensions=config.output_dimensionality,
            purpose=purpose_of(config.task_type, "$.embedContentConfig.taskType", NAME),
            title=config.title,
            truncation="none" if config.auto_truncate is False else None,
            shape=CONTENT,
            extras=extras,
        )
    settings = {(one.task_type, one.title) for one in wire.instances}
    if len(settings) != 1:
        words = "instances that differ in nothing but their texts"
        raise DecodeError(path="$.instances", expected=words, got=f"{len(settings)} kinds", source=NAME)
    ((task, title),) = settings
    parameters = wire.parameters or ParametersWire()
    return EmbeddingRequest(
        model=model,
        inputs=tuple(one.content for one in wire.instances),
        dimensions=parameters.output_dimensionality,
        purpose=purpose_of(task, "$.instances[0].task_type", NAME),
        title=title,
        truncation="none" if parameters.auto_truncate is False else None,
        shape=PREDICT,
        extras=extras,
    )


def encode_request(request: EmbeddingRequest, paths: Mapping[str, str]) -> Encoding:
    texts, losses = texts_of(request, NAME), report_losses(request, TAKEN, paths, NAME)
    path = f"/v1/publishers/google/models/{request.model}"
    # Vertex cuts long texts by default.
    cut: dict[str, Any] = {} if request.truncation is None else {"autoTruncate": request.truncation != "none"}
    settings = settings_of(request)
    if not _PREDICTED.match(request.model):
        content = {"content": {"parts": [{"text": texts[0]}]}}
        config = {"embedContentConfig": {**settings, **cut}} if settings or cut else {}
        return Encoding(write_wire({**content, **config}, NAME), f"{path}:embedContent", losses)
    size = {"outputDimensionality": request.dimensions} if request.dimensions is not None else {}
    own = {"task_type": settings.get("taskType"), "title": request.title}
    given = {name: value for name, value in own.items() if value is not None}
    body: dict[str, Any] = {"instances": [{"content": text, **given} for text in texts]}
    if size or cut:
        body["parameters"] = {**size, **cut}
    return Encoding(write_wire(body, NAME), f"{path}:predict", losses)


def decode_response(body: bytes, headers: Mapping[str, str]) -> EmbeddingResponse:
    wire = read_wire(body, ResponseWire, NAME)
    if wire.predictions is None:
        return gemini.decode_response(body, headers)
    found = [one.embeddings for one in wire.predictions]
    return EmbeddingResponse(
        vectors=tuple(tuple(one.values) for one in found),
        input_tokens=int(sum(one.statistics.token_count for one in found)) or None,
    )


def encode_response(answer: EmbeddingResponse, request: EmbeddingRequest) -> bytes:
    if request.shape == CONTENT:
        usage = None if answer.input_tokens is None else UsageWire(answer.input_tokens)
        return write_wire(ResponseWire(embedding=VectorWire(list(answer.vectors[0])), usage_metadata=usage), NAME)
    # Other APIs report one count for all texts: the first text gets it.
    counts = [answer.input_tokens or 0, *(0 for _ in answer.vectors)]
    predictions = [
        PredictionWire(PredictedWire(list(vector), StatisticsWire(count)))
        for vector, count in zip(answer.vectors, counts, strict=False)
    ]
    return write_wire(ResponseWire(predictions=predictions), NAME)
