"""Embeddings: texts in, vectors out, between the APIs of OpenAI, Mistral, Gemini, Vertex, Ollama, Cohere and Bedrock.

One module for each API, with the same functions in each:

    decode_request(body, model)      what a client of the API asks
    encode_request(request, paths)   the same as the API takes it, with losses
    decode_response(body, headers)   vectors and tokens
    encode_response(answer, request) the same as a client of the API expects it
"""

from __future__ import annotations

from dragoman.embeddings.registry import DIALECTS, Dialect, dialect, merge, split
from dragoman.embeddings.values import EmbeddingRequest, EmbeddingResponse, Encoding, Purpose, Truncation

__all__ = [
    "DIALECTS",
    "Dialect",
    "EmbeddingRequest",
    "EmbeddingResponse",
    "Encoding",
    "Purpose",
    "Truncation",
    "dialect",
    "merge",
    "split",
]
