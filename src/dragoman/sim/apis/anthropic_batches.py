"""Anthropic's Message Batches: `/v1/messages/batches`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import msgspec

from dragoman.sim.apis import anthropic_messages
from dragoman.sim.batches import Batch, Inner, Item, Result, advance, cancel, counts, page
from dragoman.sim.conversation_view import JsonObject
from dragoman.sim.exchange import Answered, Problem, Refused, Reply, json_reply, route
from dragoman.sim.request_context import RequestContext

MAX_BODY = 256 << 20
MOST_REQUESTS = 100_000
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LONGEST_ID = 64
_DAY = 86_400
_INNER = Inner("anthropic-messages", "/v1/messages", anthropic_messages.create, anthropic_messages.refusal)
_OUTCOMES = ("succeeded", "errored", "canceled", "expired")


def _invalid(message: str) -> Refused:
    return Refused(Problem("invalid", message))


def _reply(context: RequestContext, body: object) -> Reply:
    return json_reply(body, headers=anthropic_messages.headers_of(context.exchange))


def _check_version(context: RequestContext) -> None:
    if not context.exchange.headers.get("anthropic-version"):
        raise _invalid("anthropic-version: header is required")


def create(context: RequestContext) -> Answered:
    _check_version(context)
    body = context.exchange.json()
    if unknown := sorted(body.keys() - {"requests"}):
        raise _invalid(f"{unknown[0]}: Extra inputs are not permitted")
    requests = body.get("requests")
    if not isinstance(requests, list):
        raise _invalid("requests: Field required" if requests is None else "requests: Input should be a valid array")
    if not 1 <= len(requests) <= MOST_REQUESTS:
        raise _invalid(f"requests: List should have 1 to {MOST_REQUESTS} items")
    seen: set[str] = set()
    items = [_item(index, one, seen) for index, one in enumerate(requests)]
    shelf = context.memory.shelf
    batch = Batch(f"msgbatch_01{context.exchange.mark(shelf.number())[:22]}", shelf.script, items, {})
    return _reply(context, _batch(shelf.add_batch(batch), context))


def _item(index: int, given: Any, seen: set[str]) -> Item:
    """The parameters themselves are checked when the batch runs."""
    place = f"requests.{index}"
    if not isinstance(given, dict):
        raise _invalid(f"{place}: Input should be a valid dictionary")
    for name, kind in (("custom_id", str), ("params", dict)):
        if name not in given:
            raise _invalid(f"{place}.{name}: Field required")
        if not isinstance(given[name], kind):
            raise _invalid(f"{place}.{name}: Input should be a valid {'string' if kind is str else 'dictionary'}")
    if unknown := sorted(given.keys() - {"custom_id", "params"}):
        raise _invalid(f"{place}.{unknown[0]}: Extra inputs are not permitted")
    identifier = given["custom_id"]
    if len(identifier) > _LONGEST_ID:
        raise _invalid(f"{place}.custom_id: String should have at most {_LONGEST_ID} characters")
    if not _ID.fullmatch(identifier):
        raise _invalid(f"{place}.custom_id: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
    if identifier in seen:
        raise _invalid(f"{place}.custom_id: custom_ids must be unique, found duplicate '{identifier}'")
    seen.add(identifier)
    return Item(identifier, given["params"])


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _batch(batch: Batch, context: RequestContext) -> JsonObject:
    ended, done = batch.ending is not None, counts(batch)
    waiting = batch.cancelled_at_poll is not None
    state = "ended" if ended else "canceling" if waiting else batch.scripted_state or "in_progress"
    # All requests count as `processing` until the whole batch has ended.
    numbers = {name: done.get(name, 0) if ended else 0 for name in _OUTCOMES}  # type: ignore[call-overload]
    host = context.exchange.headers.get("host", "api.anthropic.com")
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": state,
        "request_counts": {"processing": 0 if ended else len(batch.items), **numbers},
        "ended_at": _time(context.now) if ended else None,
        "created_at": _time(context.now),
        "expires_at": _time(context.now + _DAY),
        "archived_at": _time(context.now) if ended and batch.script.gone else None,
        "cancel_initiated_at": _time(context.now) if waiting else None,
        "results_url": f"http://{host}/v1/messages/batches/{batch.id}/results"
        if ended and not batch.script.gone
        else None,
    }


def _find_batch(context: RequestContext) -> Batch:
    _check_version(context)
    identifier = context.exchange.params["id"]
    return context.memory.shelf.batch(identifier, f"Message Batch {identifier} not found.")


def retrieve(context: RequestContext) -> Answered:
    batch = _find_batch(context)
    advance(batch, context, _INNER)
    return _reply(context, _batch(batch, context))


def cancel_batch(context: RequestContext) -> Answered:
    batch = _find_batch(context)
    if batch.ending is not None:
        raise _invalid(f"Batch {batch.id} cannot be canceled because it has already ended.")
    cancel(batch)
    return _reply(context, _batch(batch, context))


def delete(context: RequestContext) -> Answered:
    batch = _find_batch(context)
    if batch.ending is None:
        raise _invalid(f"Batch {batch.id} cannot be deleted while it is in progress. Cancel it first.")
    del context.memory.shelf.batches[batch.id]
    return _reply(context, {"id": batch.id, "type": "message_batch_deleted"})


def _result(result: Result) -> JsonObject:
    if result.outcome == "succeeded":
        return {"type": "succeeded", "message": msgspec.Raw(result.body)}
    if result.outcome == "errored":
        return {"type": "errored", "error": msgspec.Raw(result.body)}
    # There is a line for every request: one without a result has expired.
    return {"type": "expired" if result.outcome == "missing" else result.outcome}


def results(context: RequestContext) -> Answered:
    batch = _find_batch(context)
    if batch.ending is None:
        raise _invalid(f"Batch {batch.id} has no results yet: it is in progress.")
    if batch.script.gone:
        raise Refused(Problem("no_model", f"The results of batch {batch.id} are no longer available.", 404))
    lines = [
        msgspec.json.encode({"custom_id": result.item.id, "result": _result(result)}) + b"\n"
        for result in reversed(batch.results or ())
    ]
    return Reply(200, b"".join(lines), "application/x-jsonl", anthropic_messages.headers_of(context.exchange))


def list_batches(context: RequestContext) -> Answered:
    batches = context.memory.shelf.batches
    ids = [id for id in batches if id.startswith("msgbatch_")]
    chosen, more = page(context, ids, limit="limit", after="after_id", usual=20)
    first, last = (chosen[0], chosen[-1]) if chosen else (None, None)
    data = [_batch(batches[id], context) for id in chosen]
    return _reply(context, {"data": data, "has_more": more, "first_id": first, "last_id": last})


_ONE = r"/v1/messages/batches/(?P<id>\w+)"
ROUTES = (
    route("POST", r"/v1/messages/batches", create, MAX_BODY),
    route("GET", r"/v1/messages/batches", list_batches),
    route("GET", _ONE, retrieve),
    route("DELETE", _ONE, delete),
    route("POST", rf"{_ONE}/cancel", cancel_batch),
    route("GET", rf"{_ONE}/results", results),
)
