"""Embeddings through a driver: texts out, vectors in, in as many requests as the provider needs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TypedDict

from msgspec import Struct, structs

import dragoman
from dragoman.codecs.encoded import Encoded
from dragoman.drivers.base import CallMetadata
from dragoman.drivers.providers import Target
from dragoman.drivers.remote import Call, Channel, error_of, send
from dragoman.drivers.transport import HttpRequest, read_whole
from dragoman.embeddings import Dialect, EmbeddingRequest, EmbeddingResponse, Purpose, Truncation, dialect, merge, split
from dragoman.errors import DecodeError, NotConfigured
from dragoman.ir import Failure, Request, Usage
from dragoman.loss import Loss

AT_A_TIME = 8
"""Parallel requests of one call, for providers that take few texts per request."""


class EmbeddingResult(Struct, frozen=True, kw_only=True):
    """One vector for each text, in the order of the texts."""

    vectors: tuple[tuple[float, ...], ...]
    usage: Usage | None = None
    losses: tuple[Loss, ...] = ()
    metadata: CallMetadata = CallMetadata()


def embedding_call(
    channel: Channel, request: EmbeddingRequest, target: Dialect, paths: Mapping[str, str], **headers: str
) -> Call:
    """The HTTP request. Raises `EncodeError` for what the provider's API cannot express."""
    provider = channel.provider
    encoding = target.encode_request(request, paths)
    place = Target(encoding.path, request.model, stream=False, place=channel.place)
    usual = {"content-type": "application/json", "user-agent": f"dragoman/{dragoman.__version__}"}
    http = HttpRequest(
        url=channel.base_url + provider.path(place),
        headers={**usual, **provider.headers, **headers, **channel.headers},
        body=encoding.content,
    )
    return Call(
        request=Request(request.model, ()),
        http=http,
        encoded=Encoded(encoding.content, encoding.losses),
        timeouts=channel.timeouts,
        keeps_raw=False,
        started=time.monotonic(),
    )


class EmbeddingSettings(TypedDict, total=False):
    """Settings of one call."""

    dimensions: int | None
    purpose: Purpose | None
    title: str | None
    """Title of the document."""
    truncation: Truncation | None
    user: str | None
    timeout: float | None
    """Seconds for the whole call."""


async def embed(
    channel: Channel, model: str, inputs: str | Sequence[str], settings: EmbeddingSettings
) -> EmbeddingResult:
    """Vectors of texts, in order. Raises `ProviderError`, and `NotConfigured` for a provider without embeddings."""
    provider = channel.provider
    if not provider.embeddings:
        raise NotConfigured(f"{provider.title} has no API for embeddings", missing="embeddings")
    timeout = settings.get("timeout")
    if timeout is not None:
        channel = structs.replace(channel, timeouts=structs.replace(channel.timeouts, total=timeout))
    target = dialect(provider.embeddings)
    request = EmbeddingRequest(
        model=model,
        inputs=(inputs,) if isinstance(inputs, str) else tuple(inputs),
        dimensions=settings.get("dimensions"),
        purpose=settings.get("purpose"),
        title=settings.get("title"),
        truncation=settings.get("truncation"),
        user=settings.get("user"),
    )
    started, turns = time.monotonic(), asyncio.Semaphore(AT_A_TIME)
    calls = [embedding_call(channel, part, target, _PATHS) for part in split(request, target)]

    async def send_embedding_call(call: Call) -> EmbeddingResponse:
        async with turns:
            response = await send(channel, call)
            return _read(channel, target, await read_whole(response, channel.limits.response), call)

    answer = merge(await asyncio.gather(*map(send_embedding_call, calls)))
    tokens = answer.input_tokens
    seconds, attempts = time.monotonic() - started, sum(call.attempts for call in calls)
    return EmbeddingResult(
        vectors=answer.vectors,
        usage=None if tokens is None else Usage(input=tokens),
        losses=calls[0].encoded.losses,
        metadata=CallMetadata(provider=provider.name, model=answer.model or model, attempts=attempts, seconds=seconds),
    )


_PATHS = {name: f"$.{name}" for name in ("dimensions", "purpose", "title", "truncation", "user")}


def _read(channel: Channel, target: Dialect, body: bytes, call: Call) -> EmbeddingResponse:
    try:
        return target.decode_response(body, call.headers)
    except DecodeError as error:
        words = f"the answer does not follow its format: {error}"
        raise error_of(channel, Failure("server", words, call.status)) from error
