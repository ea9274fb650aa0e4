"""The embeddings endpoints: any client API with any provider API.

If both are the same, bytes pass unchanged except for the name of a routed model; else the request is translated, to as
many requests as the provider needs, and its losses are reported like those of other requests.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec
from msgspec import Raw, Struct, structs

from dragoman.codecs.encoded import Encoded
from dragoman.drivers.embed import AT_A_TIME, embedding_call
from dragoman.drivers.providers import PROVIDERS, Target
from dragoman.drivers.remote import Call, error_of, failure_within
from dragoman.drivers.transport import HttpRequest, read_whole
from dragoman.embeddings import Dialect, EmbeddingResponse, dialect, merge, split
from dragoman.errors import DecodeError, EncodeError
from dragoman.gateway.endpoints import Endpoint
from dragoman.gateway.exchange import Exchange
from dragoman.gateway.expected_cost import expected_at, tokens_of_size
from dragoman.gateway.http_request import BadBody, check_content_type
from dragoman.gateway.model_key import check_one_model, with_model
from dragoman.gateway.pass_through import back_headers, model_in
from dragoman.gateway.relay import loss_headers, off_loop_if_large
from dragoman.gateway.request_records import Record
from dragoman.gateway.routing import Candidate
from dragoman.ir import Failure, Usage
from dragoman.loss import Loss

if TYPE_CHECKING:
    from dragoman.gateway.app import Gateway

_MOST_PARTS = 256
"""Maximum number of provider requests for one client request: some providers take one text per request."""
_LARGEST_ANSWER = 256 << 20
_DIGITS = 12
"""Approximate bytes of one number in an answer."""
_JSON = {"content-type": "application/json"}
_VECTORS = ("data", "embeddings", "embedding", "predictions", "embeddingsByType")
"""The keys of vectors in the answers of all APIs."""
_NONE = Raw(b"null")
_answer = msgspec.json.Decoder(dict[str, Raw] | list[Raw]).decode


class _Answered(Struct, frozen=True):
    body: bytes
    headers: dict[str, str]
    usage: Usage | None
    losses: tuple[Loss, ...] = ()


async def embed(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    caller = await gateway.admit(endpoint, exchange, record)
    check_content_type(exchange.head)
    size = len(exchange.body)
    model = endpoint.model or await off_loop_if_large(size, model_in, exchange.body, exchange.head)
    if not model:
        raise DecodeError(path="$.model", expected="the name of a model", got="none", source=endpoint.dialect)
    record.model = model
    caller.may_use(model)
    if caller.is_restricted:
        await off_loop_if_large(size, check_one_model, exchange.body, endpoint.format)
    plan = gateway.router.plan(model, endpoint.format)
    record.route = plan.route
    able = tuple(one for one in plan.candidates if one.upstream.channel.provider.embeddings)
    if not able:
        raise BadBody(_no_embeddings({one.upstream.place for one in plan.candidates}))
    expected = expected_at(able, tokens_of_size(size), 0, gateway.prices)
    await gateway.enter_charging(caller, record, expected)
    try:

        async def attempt(candidate: Candidate) -> _Answered:
            return await _ask(gateway, endpoint, exchange, record, candidate)

        answer = await gateway.relay.first_answer(structs.replace(plan, candidates=able), record, attempt)
        record.status, record.usage, record.losses = 200, answer.usage, answer.losses
        record.first_byte, record.complete = time.perf_counter() - record.started, True
        await gateway.settle(caller, record)
        exchange.send(200, {**_JSON, **answer.headers, **loss_headers(answer.losses)}, answer.body)
    finally:
        caller.leave()


def _no_embeddings(providers: set[str]) -> Failure:
    having = ", ".join(name for name, one in PROVIDERS.items() if one.embeddings)
    words = f"{', '.join(sorted(providers))} has no API for embeddings. These providers have one: {having}."
    return Failure("invalid_request", words, 501)


async def _ask(
    gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record, candidate: Candidate
) -> _Answered:
    channel = candidate.upstream.channel
    record.upstream, record.target = candidate.upstream.name, candidate.model
    record.format = channel.provider.format
    client, target = dialect(endpoint.dialect), dialect(channel.provider.embeddings)
    size = len(exchange.body)
    passes = client is target and await off_loop_if_large(
        size, _passes_unchanged, endpoint, exchange.body, record.model, candidate
    )
    if passes:
        return await _pass_on(gateway, endpoint, exchange, record, candidate)
    request = await off_loop_if_large(size, client.decode_request, exchange.body, endpoint.model)
    parts = split(structs.replace(request, model=candidate.model), target)
    if len(parts) > _MOST_PARTS:
        words = f"takes {target.batch_limit(candidate.model)} texts at a time, and these would be {len(parts)} requests"
        raise EncodeError(path="$", reason=words, target=candidate.upstream.name)
    calls = [await off_loop_if_large(size, embedding_call, channel, part, target, client.PATHS) for part in parts]
    answer = merge(await _answers(gateway, calls, candidate, target))
    if len(answer.vectors) != len(request.inputs):
        words = f"{len(answer.vectors)} vectors for {len(request.inputs)} texts"
        raise error_of(channel, Failure("server", words, 502))
    named = structs.replace(answer, model=answer.model or record.model)
    body = await off_loop_if_large(sum(map(len, answer.vectors)) * _DIGITS, client.encode_response, named, request)
    return _Answered(body, back_headers({}, record, channel), _usage(answer), calls[0].encoded.losses)


def _usage(answer: EmbeddingResponse) -> Usage | None:
    return None if answer.input_tokens is None else Usage(input=answer.input_tokens)


async def _answers(
    gateway: Gateway, calls: list[Call], candidate: Candidate, target: Dialect
) -> list[EmbeddingResponse]:
    turns = asyncio.Semaphore(AT_A_TIME)

    async def one(call: Call) -> EmbeddingResponse:
        async with turns:
            body, headers = await _send(gateway, call, candidate, same=False)
            try:
                return await off_loop_if_large(len(body), target.decode_response, body, headers)
            except DecodeError as error:
                words = f"the upstream's answer does not follow its format: {error}"
                raise error_of(candidate.upstream.channel, Failure("server", words, 502)) from error

    tasks = [asyncio.ensure_future(one(call)) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    finally:  # if one fails, cancel the others
        for task in tasks:
            task.cancel()


async def _send(gateway: Gateway, call: Call, candidate: Candidate, *, same: bool) -> tuple[bytes, dict[str, str]]:
    opened = await gateway.relay.open(call, candidate, same=same)
    try:
        with gateway.relay.counting_bytes(_LARGEST_ANSWER) as count:
            return await read_whole(opened.response, _LARGEST_ANSWER, count=count), dict(opened.response.headers)
    finally:
        opened.release()


# ── the same API on both sides ──


def _passes_unchanged(endpoint: Endpoint, body: bytes, model: str, candidate: Candidate) -> bool:
    """Whether the body can be forwarded unchanged.

    The codec must rewrite the model name if the body repeats it for each text, or if only the client's path has it.
    """
    same_place = bool(endpoint.model) == ("{model}" in endpoint.path)
    suits = dialect(endpoint.dialect).suits(body, candidate.model)
    return suits and same_place and (model == candidate.model or "batchEmbedContents" not in endpoint.path)


def _has_vectors(content: bytes) -> bool:
    """Whether this is whole JSON with vectors, also of kinds that cannot be translated."""
    try:
        found = _answer(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(found, list) or any(bytes(found.get(name, _NONE)) != b"null" for name in _VECTORS)


async def _pass_on(
    gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record, candidate: Candidate
) -> _Answered:
    channel, model = candidate.upstream.channel, candidate.model
    body = exchange.body
    if not endpoint.model:
        body = await off_loop_if_large(len(body), with_model, body, record.model, model)
    path = endpoint.path.format(model=quote(model, safe=""))
    place = Target(path, model, stream=False, place=channel.place)
    http = HttpRequest(
        url=channel.base_url + channel.provider.path(place),
        headers={**_JSON, **channel.provider.headers, "accept-encoding": "identity", **channel.headers},
        body=body,
    )
    call = structs.replace(Call.about(http, channel.timeouts), encoded=Encoded(body))
    content, headers = await _send(gateway, call, candidate, same=True)
    failure = await off_loop_if_large(len(content), failure_within, channel, call, content)
    if failure is None and not await off_loop_if_large(len(content), _has_vectors, content):
        failure = Failure("server", "the upstream's answer does not follow its format", 502)
    if failure is not None:
        raise error_of(channel, failure)
    try:
        decode = dialect(endpoint.dialect).decode_response
        usage = _usage(await off_loop_if_large(len(content), decode, content, headers))
    except DecodeError:  # an unusual answer; only its tokens are not counted
        usage = None
    return _Answered(content, back_headers(headers, record, channel), usage)
