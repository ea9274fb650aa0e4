"""Gemini's `:embedContent` (one text) and `:batchEmbedContents` (many), of the developer API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from dragoman.embeddings.values import (
    EmbeddingRequest,
    EmbeddingResponse,
    Encoding,
    Purpose,
    extras_of,
    read_wire,
    report_losses,
    texts_of,
    write_wire,
)
from dragoman.errors import DecodeError

NAME = "gemini"
TAKEN = frozenset({"dimensions", "purpose", "title"})
PATHS = {"dimensions": "$.outputDimensionality", "purpose": "$.taskType", "title": "$.title"}
ONE, MANY = "one", "many"
PURPOSES: Mapping[str, Purpose] = {
    "RETRIEVAL_QUERY": "query",
    "RETRIEVAL_DOCUMENT": "document",
    "SEMANTIC_SIMILARITY": "similarity",
    "CLASSIFICATION": "classification",
    "CLUSTERING": "clustering",
    "QUESTION_ANSWERING": "question",
    "FACT_VERIFICATION": "fact_check",
    "CODE_RETRIEVAL_QUERY": "code_query",
}
TASKS: Mapping[Purpose, str] = {purpose: task for task, purpose in PURPOSES.items()}


class PartWire(Struct):
    text: str | None = None


class ContentWire(Struct):
    parts: list[PartWire]
    role: str | None = None


class RequestWire(Struct, rename="camel"):
    content: ContentWire | None = None
    requests: list[RequestWire] | None = None
    model: str = ""
    task_type: str | None = None
    title: str | None = None
    output_dimensionality: int | None = None


class VectorWire(Struct):
    values: list[float]


class UsageWire(Struct, rename="camel"):
    prompt_token_count: int | None = None


class ResponseWire(Struct, rename="camel", omit_defaults=True):
    embedding: VectorWire | None = None
    embeddings: list[VectorWire] | None = None
    usage_metadata: UsageWire | None = None


def batch_limit(model: str) -> int:  # noqa: ARG001 - the same for all
    return 100


def text_of(content: ContentWire | None, path: str, source: str) -> str:
    """The text of one content. Raises `DecodeError` for images and the like: only texts are translated."""
    parts = content.parts if content is not None else []
    texts = [part.text for part in parts if part.text is not None]
    if not parts or len(texts) != len(parts):
        raise DecodeError(path=path, expected="parts that are text", got="something else", source=source)
    return "".join(texts)


def purpose_of(task: str | None, path: str, source: str) -> Purpose | None:
    if task is None or task == "TASK_TYPE_UNSPECIFIED":
        return None
    found = PURPOSES.get(task.upper())
    if found is None:
        raise DecodeError(path=path, expected=f"one of {', '.join(PURPOSES)}", got=task, source=source)
    return found


def suits(body: bytes, model: str) -> bool:  # noqa: ARG001 - all bodies do
    return True


def decode_request(body: bytes, model: str) -> EmbeddingRequest:
    wire = read_wire(body, RequestWire, NAME)
    items = wire.requests if wire.requests is not None else [wire]
    if not items:
        raise DecodeError(path="$.requests", expected="at least one request", got="none", source=NAME)
    first = items[0]
    texts = tuple(text_of(one.content, f"$.requests[{place}].content", NAME) for place, one in enumerate(items))
    settings = {(one.task_type, one.title, one.output_dimensionality) for one in items}
    if len(settings) > 1:
        words = "requests that differ in nothing but their texts"
        raise DecodeError(path="$.requests", expected=words, got="different settings", source=NAME)
    return EmbeddingRequest(
        model=model or first.model.removeprefix("models/"),
        inputs=texts,
        dimensions=first.output_dimensionality,
        purpose=purpose_of(first.task_type, "$.taskType", NAME),
        title=first.title,
        shape=ONE if wire.requests is None else MANY,
        extras=extras_of(body, RequestWire, NAME),
    )


def settings_of(request: EmbeddingRequest) -> dict[str, Any]:
    given = {
        "taskType": None if request.purpose is None else TASKS[request.purpose],
        "title": request.title,
        "outputDimensionality": request.dimensions,
    }
    return {name: value for name, value in given.items() if value is not None}


def encode_request(request: EmbeddingRequest, paths: Mapping[str, str]) -> Encoding:
    name, settings = f"models/{request.model}", settings_of(request)
    items = [{"model": name, "content": {"parts": [{"text": text}]}, **settings} for text in texts_of(request, NAME)]
    path = f"/v1beta/{name}:batchEmbedContents"
    return Encoding(write_wire({"requests": items}, NAME), path, report_losses(request, TAKEN, paths, NAME))


def decode_response(body: bytes, headers: Mapping[str, str]) -> EmbeddingResponse:  # noqa: ARG001 - as in all
    wire = read_wire(body, ResponseWire, NAME)
    found = wire.embeddings if wire.embeddings is not None else [wire.embedding] if wire.embedding else None
    if found is None:
        raise DecodeError(path="$", expected="embeddings", got="none", source=NAME)
    usage = wire.usage_metadata
    return EmbeddingResponse(
        vectors=tuple(tuple(one.values) for one in found),
        input_tokens=None if usage is None else usage.prompt_token_count,
    )


def encode_response(answer: EmbeddingResponse, request: EmbeddingRequest) -> bytes:
    vectors = [VectorWire(list(one)) for one in answer.vectors]
    usage = None if answer.input_tokens is None else UsageWire(answer.input_tokens)
    if request.shape == ONE:
        return write_wire(ResponseWire(embedding=vectors[0], usage_metadata=usage), NAME)
    return write_wire(ResponseWire(embeddings=vectors, usage_metadata=usage), NAME)
