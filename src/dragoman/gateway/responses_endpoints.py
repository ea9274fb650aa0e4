"""Further endpoints of the Responses API: compaction, conversations, WebSocket mode."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct, structs

from dragoman.codecs.openai_responses.response import encode_usage
from dragoman.gateway.compaction_items import compaction_item
from dragoman.gateway.conversation_items import page, with_ids
from dragoman.gateway.endpoints import Endpoint, Operation
from dragoman.gateway.exchange import Exchange
from dragoman.gateway.http_request import BadBody
from dragoman.gateway.other_endpoints import JSON, Handler
from dragoman.gateway.relay import Failed
from dragoman.gateway.request_records import Record
from dragoman.gateway.state.base import Kept
from dragoman.gateway.state_errors import (
    LARGEST_HISTORY,
    invalid_items,
    no_conversation,
    no_item,
    too_long_a_history,
)
from dragoman.gateway.upstream_answers import WholeAnswer
from dragoman.ir import Failure, Usage

if TYPE_CHECKING:
    from dragoman.gateway.app import Gateway

_array = msgspec.json.Decoder(list[Raw]).decode
_object = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.encode
_MOST_ITEMS = 20
"""Items that one request may add to a conversation, OpenAI's limit."""


def _put(exchange: Exchange, record: Record, body: object) -> None:
    record.status = 200
    exchange.send(200, {**JSON, **record.id_headers}, _encode(body))


# ── WebSocket mode ──


async def _websocket(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    """Serve WebSocket mode. The key is checked before the connection leaves HTTP, and again for each turn."""
    await gateway.admit(endpoint, exchange, record)
    try:
        from dragoman.gateway.responses_websocket import ResponsesWebSocket  # noqa: PLC0415 - of the extra `gateway`
    except ImportError:
        words = "WebSocket mode needs the package websockets (extra gateway) on the gateway's side"
        raise BadBody(Failure("not_found", words, 404)) from None
    tunnel = exchange.open_tunnel()
    if tunnel is None:
        raise BadBody(Failure("invalid_request", "WebSockets need an HTTP/1.1 connection.", 400))
    record.status = 101
    gateway.metrics.in_flight -= 1  # an open connection does not count as a request; its turns do
    try:
        await ResponsesWebSocket(tunnel, exchange.head, gateway, gateway.config.server.max_body).run()
    finally:
        gateway.metrics.in_flight += 1


# ── compaction ──

_SUMMARISE = (
    "Write a summary of the conversation above that replaces it: another model will continue from the summary alone. "
    "Keep the goals and constraints of the user, decisions and their reasons, facts, names, paths, numbers and code "
    "that are still needed, results of tools, and what remains to be done. Answer with the summary and nothing else."
)
_NOT_FOR_A_SUMMARY = ("tools", "tool_choice", "text", "stream", "parallel_tool_calls", "max_output_tokens")


async def _compact(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    caller = await gateway.admit(endpoint, exchange, record)
    client_request = structs.replace(gateway.client_request(endpoint, exchange, record), stream=False)
    plan = gateway.plan_request(caller, client_request, record)
    keeping = await gateway.responses.begin(client_request, plan, caller.id)
    if keeping is not None:
        client_request = keeping.client_request
    await gateway.enter(caller, client_request, plan, record)
    try:
        if plan.candidates[0].upstream.channel.provider.format == endpoint.format:
            body = {name: value for name, value in _object(client_request.body).items() if name not in _NOT_COMPACTED}
            sent = structs.replace(client_request, body=_encode(body))
            await gateway.forward(sent, plan.candidates[0], _compact_path, exchange, record, caller)
            return
        fields: dict[str, Any] = _object(client_request.body)
        items = fields.get("input", Raw(b"[]"))
        items = _array(items) if bytes(items)[:1] == b"[" else [_message(items)]
        body = {name: value for name, value in fields.items() if name not in _NOT_FOR_A_SUMMARY}
        sent = structs.replace(
            client_request, body=_encode({**body, "input": [*items, _message(_SUMMARISE)]}), request=None
        )
        answered = await gateway.relay.ask(sent, plan, record)
        assert isinstance(answered, WholeAnswer)  # noqa: S101 - the call does not stream
        record.usage = answered.completion.usage if answered.completion else None
        await gateway.settle(caller, record)  # first: the provider is paid for an empty summary, too
        _put(exchange, record, _compaction(answered, items))
    finally:
        caller.leave()


def _compact_path(path: str) -> str:
    return f"{path}/compact"


# Keys that are useless for an upstream with its own compaction.
_NOT_COMPACTED = ("store", "include")


def _message(text: str | Raw) -> Raw:
    return Raw(_encode({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}))


def _compaction(answered: WholeAnswer, items: list[Raw]) -> dict[str, Any]:
    """Return the user messages unchanged, and a compaction item that summarises everything."""
    completion = answered.completion
    summary = completion.messages[0].text if completion is not None and completion.messages else ""
    if not summary:
        raise Failed(Failure("server", "The model gave no summary.", 502))
    user_items = [Raw(item) for _, item in with_ids([item for item in items if _item(item).role == "user"])]
    usage = (completion.usage if completion is not None else None) or Usage(0, 0)
    return {
        "id": f"resp_{secrets.token_hex(16)}",
        "object": "response.compaction",
        "created_at": int(time.time()),
        "output": [*user_items, compaction_item(f"cmp_{secrets.token_hex(16)}", summary)],
        "usage": encode_usage(structs.replace(usage, metadata=None)),
    }


class _Item(Struct):
    role: str | None = None


_item = msgspec.json.Decoder(_Item).decode


# ── conversations ──


class _Conversation(Struct):
    items: list[Raw] | None = None
    metadata: dict[str, str] | None = None


_conversation = msgspec.json.Decoder(_Conversation).decode


def _conversation_of(exchange: Exchange) -> _Conversation:
    try:
        given = _conversation(exchange.body or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadBody(Failure("invalid_request", str(error), 400)) from None
    if len(given.items or ()) > _MOST_ITEMS:
        raise invalid_items(f"At most {_MOST_ITEMS} items at a time.", "items")
    for place, item in enumerate(given.items or ()):
        if bytes(item)[:1] != b"{":
            raise invalid_items("An item is an object.", f"items[{place}]")
    return given


async def _create_conversation(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    caller = await gateway.admit(endpoint, exchange, record)
    given = _conversation_of(exchange)
    id = f"conv_{secrets.token_hex(24)}"
    made = {"id": id, "object": "conversation", "created_at": int(time.time()), "metadata": given.metadata or {}}
    store = gateway.responses.store
    await store.keep(Kept(id, caller.id, None, _encode(made), b""))
    await store.add_items(id, caller.id, with_ids(given.items or []))
    _put(exchange, record, made)


async def _find_stored(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> Kept:
    caller = await gateway.admit(endpoint, exchange, record)
    kept = await gateway.responses.store.find_response(endpoint.id, caller.id)
    if kept is None or kept.response or not kept.input:
        raise no_conversation(endpoint.id)
    return kept


async def _show_conversation(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    _put(exchange, record, Raw((await _find_stored(gateway, endpoint, exchange, record)).input))


async def _update_conversation(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    found = await _find_stored(gateway, endpoint, exchange, record)
    made = {**_object(found.input), "metadata": _conversation_of(exchange).metadata or {}}
    await gateway.responses.store.keep(structs.replace(found, input=_encode(made)))
    _put(exchange, record, made)


async def _delete_conversation(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    found = await _find_stored(gateway, endpoint, exchange, record)
    await gateway.responses.store.forget(found.id, found.owner)
    _put(exchange, record, {"id": found.id, "object": "conversation.deleted", "deleted": True})


async def _list_items(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    found = await _find_stored(gateway, endpoint, exchange, record)
    _put(exchange, record, page(await gateway.responses.store.items(found.id, found.owner), exchange.head.parameters))


async def _create_items(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    found = await _find_stored(gateway, endpoint, exchange, record)
    added = with_ids(_conversation_of(exchange).items or [])
    items_before = await gateway.responses.store.items(found.id, found.owner)
    if sum(len(item) for _, item in (*items_before, *added)) > LARGEST_HISTORY:
        raise too_long_a_history()
    await gateway.responses.store.add_items(found.id, found.owner, added)
    _put(exchange, record, page(added, {"order": "asc"}))


async def _show_item(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    found = await _find_stored(gateway, endpoint, exchange, record)
    for id, item in await gateway.responses.store.items(found.id, found.owner):
        if id == endpoint.item:
            _put(exchange, record, Raw(item))
            return
    raise no_item(endpoint.item)


async def _delete_item(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    found = await _find_stored(gateway, endpoint, exchange, record)
    if not await gateway.responses.store.forget_item(found.id, found.owner, endpoint.item):
        raise no_item(endpoint.item)
    _put(exchange, record, Raw(found.input))


RESPONSES_ENDPOINTS: Mapping[Operation, Handler] = {
    "websocket": _websocket,
    "compact": _compact,
    "create_conversation": _create_conversation,
    "conversation": _show_conversation,
    "update_conversation": _update_conversation,
    "delete_conversation": _delete_conversation,
    "conversation_items": _list_items,
    "create_items": _create_items,
    "conversation_item": _show_item,
    "delete_item": _delete_item,
}
