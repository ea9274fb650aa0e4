"""Dialects by name, and splitting of large requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, cast

from msgspec import structs

from dragoman.embeddings import bedrock, cohere, gemini, mistral, ollama, openai, vertex
from dragoman.embeddings.values import EmbeddingRequest, EmbeddingResponse, Encoding
from dragoman.errors import UnknownFormat


class Dialect(Protocol):
    """One API for embeddings."""

    NAME: str
    PATHS: Mapping[str, str]
    """JSON paths of settings in a request."""
    batch_limit: Callable[[str], int]
    """Most texts of one request, by model."""
    suits: Callable[[bytes, str], bool]
    """Whether a body of this API can be sent to the model as it is. Raises `DecodeError`."""
    decode_request: Callable[[bytes, str], EmbeddingRequest]
    """(body, model if the path names it) -> the request. Raises `DecodeError`."""
    encode_request: Callable[[EmbeddingRequest, Mapping[str, str]], Encoding]
    """(request, `PATHS` of the client's dialect, for losses) -> the body. Raises `EncodeError`."""
    decode_response: Callable[[bytes, Mapping[str, str]], EmbeddingResponse]
    """(body, headers with lower-case names) -> the answer. Raises `DecodeError`."""
    encode_response: Callable[[EmbeddingResponse, EmbeddingRequest], bytes]


DIALECTS: Mapping[str, Dialect] = {
    one.NAME: cast("Dialect", one) for one in (openai, mistral, gemini, vertex, ollama, cohere, bedrock)
}


def dialect(name: str) -> Dialect:
    """The dialect of this name. Raises `UnknownFormat`."""
    found = DIALECTS.get(name)
    if found is None:
        raise UnknownFormat(name, tuple(DIALECTS))
    return found


def split(request: EmbeddingRequest, target: Dialect) -> list[EmbeddingRequest]:
    """Splits the request to the target's batch limit."""
    limit, inputs = target.batch_limit(request.model), request.inputs
    if len(inputs) <= limit:
        return [request]
    return [structs.replace(request, inputs=inputs[start : start + limit]) for start in range(0, len(inputs), limit)]


def merge(answers: Sequence[EmbeddingResponse]) -> EmbeddingResponse:
    """Merges the answers of a split request."""
    if len(answers) == 1:
        return answers[0]
    counts = [one.input_tokens for one in answers if one.input_tokens is not None]
    vectors = tuple(vector for one in answers for vector in one.vectors)
    return structs.replace(answers[0], vectors=vectors, input_tokens=sum(counts) if counts else None)
