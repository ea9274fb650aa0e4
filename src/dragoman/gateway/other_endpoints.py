"""Endpoints that do not generate: model lists, health, metrics, and stored responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import parse_qsl, urlencode

import msgspec
from msgspec import Raw, Struct

from dragoman.chat.tokens import window_of
from dragoman.drivers.remote import Call
from dragoman.drivers.transport import HttpRequest, read_whole
from dragoman.errors import ProviderError
from dragoman.gateway.access import presented_key
from dragoman.gateway.answer_keys import KeyFilter
from dragoman.gateway.endpoints import Endpoint, Operation
from dragoman.gateway.exchange import Application, Exchange
from dragoman.gateway.http_request import BadBody, Head
from dragoman.gateway.merged_metrics import merge_health, merge_metrics, upstream_health
from dragoman.gateway.model_catalogue import ONE, SHAPES, Listed, allowed_models
from dragoman.gateway.openapi import description
from dragoman.gateway.relay import INERT, as_failed, kept_headers
from dragoman.gateway.request_records import Record
from dragoman.gateway.routing import Candidate
from dragoman.gateway.state.base import Kept
from dragoman.gateway.state_errors import not_found, not_streamable
from dragoman.gateway.stored_responses import Noted, Responses, input_items
from dragoman.gateway.upstream_http import stream_to
from dragoman.gateway.upstreams import Upstream
from dragoman.ir import Failure

if TYPE_CHECKING:
    from dragoman.gateway.app import Gateway

JSON = {"content-type": "application/json"}
_KEY_PARAMETERS = frozenset({"key", "api_key", "api-key", "access_token"})
_TEXT = {"content-type": "text/plain; version=0.0.4; charset=utf-8"}
_OLLAMA_VERSION = "0.12.0"
_NEVER = "2318-01-01T00:00:00Z"
_ABILITIES = ("completion", "tools", "thinking", "vision")
_encode = msgspec.json.encode

Handler: TypeAlias = Callable[["Gateway", Endpoint, Exchange, Record], Awaitable[None]]


def _put(exchange: Exchange, record: Record, body: object) -> None:
    record.status = 200
    exchange.send(200, {**JSON, **record.id_headers}, _encode(body))


# ── models ──


async def _models(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    caller = await gateway.admit(endpoint, exchange, record)
    _put(
        exchange,
        record,
        SHAPES[endpoint.format](allowed_models(await gateway.catalogue.models(), caller, gateway.router)),
    )


async def _model(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    caller = await gateway.admit(endpoint, exchange, record)
    caller.may_use(endpoint.model)
    gateway.router.plan(endpoint.model, endpoint.format)
    _put(exchange, record, ONE[endpoint.format](Listed(endpoint.model, "dragoman")))


class _Shown(Struct):
    model: str | None = None
    name: str | None = None


_shown = msgspec.json.Decoder(_Shown).decode


async def _show(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    caller = await gateway.admit(endpoint, exchange, record)
    try:
        given = _shown(exchange.body or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadBody(Failure("invalid_request", str(error), 400)) from None
    name = given.model or given.name
    if not name:
        raise BadBody(Failure("invalid_request", "model is required", 400))
    caller.may_use(name)
    _put(exchange, record, _describe_model(name, _window(gateway, name, endpoint.format)))


def _window(gateway: Gateway, name: str, format: str) -> int:
    """Return the context window of the model that a request with this name is sent to first.

    The lookup uses the provider's own name, not the one that the configuration gives it.
    """
    first = next(iter(gateway.router.plan(name, format).candidates), None)
    model = name if first is None else f"{first.upstream.channel.provider.name}/{first.model}"
    return window_of("", model, {})


def _describe_model(name: str, window: int) -> dict[str, object]:
    """Return what clients check when they choose a local model: its capabilities and its context window."""
    architecture = "dragoman"
    described = ONE["ollama-chat"](Listed(name, architecture))
    return {
        **described,
        "license": "",
        "modelfile": f"FROM {name}\n",
        "parameters": f"num_ctx {window}",
        "template": "{{ .Prompt }}",
        "model_info": {
            "general.architecture": architecture,
            "general.basename": name,
            f"{architecture}.context_length": window,
        },
        "capabilities": _ABILITIES,
    }


async def _running(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    """List the loaded models: all available ones, since none is ever unloaded."""
    caller = await gateway.admit(endpoint, exchange, record)
    listed = allowed_models(await gateway.catalogue.models(), caller, gateway.router)
    loaded = {"expires_at": _NEVER, "size_vram": 0}
    models = [
        {**ONE["ollama-chat"](model), **loaded, "context_length": _window(gateway, model.id, endpoint.format)}
        for model in listed
    ]
    _put(exchange, record, {"models": models})


async def _version(_gateway: Gateway, _endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    _put(exchange, record, {"version": _OLLAMA_VERSION})


# ── status ──


async def _front(_gateway: Gateway, _endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    record.status = 200
    exchange.send(200, _TEXT, b"dragoman is running\n")


async def _health(gateway: Gateway, _endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    own = _own_health(gateway, asking=1)
    others = [] if gateway.other_workers is None else await gateway.other_workers.ask("/health")
    _put(exchange, record, merge_health([own, *others]) if others else Raw(own))


async def _ready(gateway: Gateway, _endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    """Answer whether a load balancer should send requests here: 503 while the database of keys is unreachable."""
    problem = gateway.access.problem
    record.status = 503 if problem else 200
    answer = {"status": "unhealthy", "problem": problem} if problem else {"status": "healthy"}
    exchange.send(record.status, {**JSON, **record.id_headers}, _encode(answer))


async def _openapi(_gateway: Gateway, _endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    _put(exchange, record, Raw(_encoded_description()))


@lru_cache(1)
def _encoded_description() -> bytes:
    """Return the description as bytes. Cached, because encoding takes a millisecond and the endpoint needs no key."""
    return _encode(description())


async def _metrics(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    await gateway.admit(endpoint, exchange, record)
    own = _own_metrics(gateway)
    others = [] if gateway.other_workers is None else await gateway.other_workers.ask("/metrics")
    record.status = 200
    whole = merge_metrics([text.decode() for text in (own, *others)]).encode() if others else own
    exchange.send(200, _TEXT, whole)


def _own_health(gateway: Gateway, asking: int = 0) -> bytes:
    working = gateway.metrics.in_flight - asking
    unrecorded = {name: count for name, count in _unrecorded_counts(gateway).items() if count}
    more: dict[str, object] = {"unrecorded": unrecorded} if unrecorded else {}
    if problem := gateway.access.problem:
        more["problem"] = problem
    upstreams = {name: upstream_health(breaker) for name, breaker in _breakers(gateway).items()}
    status = "unhealthy" if problem else "healthy"
    return _encode({"status": status, "in_flight": working, "upstreams": upstreams, **more})


def _unrecorded_counts(gateway: Gateway) -> dict[str, int]:
    """Return how much could not be recorded although requests were answered."""
    return {**gateway.access.unrecorded, "log_lines_lost": gateway.log.lost}


def _own_metrics(gateway: Gateway) -> bytes:
    not_closed = {
        (upstream.name, model): state
        for upstream in gateway.router.upstreams_in_use()
        for model, state in upstream.breakers.states().items()
        if state != "closed"
    }
    return gateway.metrics.text(_breakers(gateway), not_closed, _unrecorded_counts(gateway)).encode()


def _breakers(gateway: Gateway) -> dict[str, str]:
    return {upstream.name: upstream.breakers.worst for upstream in gateway.router.upstreams_in_use()}


def worker_endpoints(gateway: Gateway) -> dict[str, Application]:
    """Return the handlers for other workers, by path: each worker reports only about itself."""

    async def health(exchange: Exchange) -> None:
        exchange.send(200, JSON, _own_health(gateway))

    async def metrics(exchange: Exchange) -> None:
        exchange.send(200, _TEXT, _own_metrics(gateway))

    return {"/health": health, "/metrics": metrics}


# ── stored responses ──


async def _find_stored(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> Kept | None:
    """Return the stored response; None if the upstream keeps it and its answer was passed on."""
    caller = await gateway.admit(endpoint, exchange, record)
    found = await gateway.responses.find(endpoint.id, caller.id)
    if isinstance(found, Noted):
        await _elsewhere(gateway, found, exchange, record)
        return None
    return found


async def _response(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    if found := await _find_stored(gateway, endpoint, exchange, record):
        if exchange.head.parameters.get("stream") == "true":
            raise not_streamable(found.id)
        _put(exchange, record, Raw(found.response))


async def _delete_response(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    if found := await _find_stored(gateway, endpoint, exchange, record):
        await gateway.responses.store.forget(found.id, found.owner)
        _put(exchange, record, {"id": found.id, "object": "response", "deleted": True})


async def _input_items(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    if found := await _find_stored(gateway, endpoint, exchange, record):
        chain = await gateway.responses.store.chain(found.id, found.owner)
        _put(exchange, record, input_items(chain, exchange.head.parameters))


async def _cancel_response(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    if found := await _find_stored(gateway, endpoint, exchange, record):
        _put(exchange, record, Raw((await gateway.responses.cancel(found)).response))


async def _elsewhere(gateway: Gateway, noted: Noted, exchange: Exchange, record: Record) -> None:
    upstream = gateway.router.upstream(noted.upstream, Responses.format)
    path = exchange.head.path.partition("/responses/")[2]
    if upstream is None:  # it is no longer configured
        raise not_found(path)
    url = f"{upstream.channel.base_url}/responses/{path}{query_for_upstream(exchange.head)}"
    await pass_to_owner(gateway, upstream, url, exchange, record)


async def pass_to_owner(gateway: Gateway, upstream: Upstream, url: str, exchange: Exchange, record: Record) -> None:
    """Send a request about what the upstream stores, and pass its answer on. Raises `Failed`."""
    channel = upstream.channel
    request = HttpRequest(method=exchange.head.method, url=url, headers=upstream.headers, body=exchange.body)
    try:
        opened = await gateway.relay.open(Call.about(request, channel.timeouts), Candidate(upstream, ""), same=True)
    except ProviderError as error:
        raise as_failed(error, upstream) from error
    response = opened.response
    headers = {**JSON, **kept_headers(response.headers, channel), **record.id_headers, **INERT}
    record.status = response.status
    try:
        if headers["content-type"].startswith("text/event-stream"):
            keys = KeyFilter(channel)
            exchange.start(response.status, headers)
            await stream_to(response, lambda data: exchange.write(keys.feed(data)), exchange.drain)
            exchange.finish(keys.held)
        else:
            with gateway.relay.counting_bytes() as count:
                exchange.send(
                    response.status, headers, await read_whole(response, channel.limits.response, count=count)
                )
    except ProviderError as error:  # if a stream has begun, its connection is cut
        raise as_failed(error, upstream) from error
    finally:
        opened.release()


def query_for_upstream(head: Head) -> str:
    """Return the client's query without its key for the gateway, under whichever name it was sent."""
    key = presented_key(head)
    kept = [
        (name, value)
        for name, value in parse_qsl(head.query, keep_blank_values=True)
        if name.lower() not in _KEY_PARAMETERS and (not key or key not in value)
    ]
    return f"?{urlencode(kept)}" if kept else ""


OTHER_ENDPOINTS: Mapping[Operation, Handler] = {
    "models": _models,
    "tags": _models,
    "model": _model,
    "show": _show,
    "running": _running,
    "version": _version,
    "front": _front,
    "health": _health,
    "ready": _ready,
    "openapi": _openapi,
    "metrics": _metrics,
    "response": _response,
    "delete_response": _delete_response,
    "input_items": _input_items,
    "cancel_response": _cancel_response,
}
