"""Requests that pass byte-exact: images, audio, moderations, reranking, files, fine-tuning, cached contents.

Keys, limits, routes of models and records work as for all requests. The body is read completely, within the limits of
the server, before anything is sent, because a form may name its model after its file; the answer is forwarded as it
comes. Only the name of a routed model is replaced. Objects that a provider stores (files, jobs, cached contents) are
visible only to the key that created them, because the account behind the gateway is shared.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

import msgspec
from msgspec import Raw, Struct, structs

import dragoman
from dragoman.drivers.providers import Target
from dragoman.drivers.remote import Call, Channel
from dragoman.drivers.transport import HttpRequest, read_whole
from dragoman.errors import DecodeError, ProviderError
from dragoman.gateway.access import Caller, Denied, presented_key
from dragoman.gateway.answer_keys import without_keys_in
from dragoman.gateway.batch_endpoints import PassedRequest, list_here, serve_here
from dragoman.gateway.batch_formats import address_of
from dragoman.gateway.client_protocols import CLIENT_PROTOCOLS
from dragoman.gateway.endpoints import Endpoint
from dragoman.gateway.exchange import Exchange
from dragoman.gateway.expected_cost import (
    EXPECTED_OUTPUT,
    NOTHING_EXPECTED,
    Expected,
    expected_at,
    tokens_of_size,
    unmetered,
    with_prices,
)
from dragoman.gateway.http_request import BadBody, Head, check_content_type
from dragoman.gateway.model_key import check_one_model, with_model
from dragoman.gateway.other_endpoints import query_for_upstream
from dragoman.gateway.passed_endpoints import PROVIDER_HEADER, Passed
from dragoman.gateway.relay import INERT, as_failed, kept_headers, off_loop_if_large
from dragoman.gateway.request_records import Record
from dragoman.gateway.routing import PLAIN, Candidate, Plan
from dragoman.gateway.state_errors import UnknownResponse
from dragoman.gateway.stored_responses import Noted
from dragoman.gateway.upstream_answers import OpenAnswer
from dragoman.gateway.upstream_http import stream_to
from dragoman.ir import Failure, Usage
from dragoman.multipart import MultipartError, find_field

if TYPE_CHECKING:
    from dragoman.gateway.app import Gateway

_AGENT = f"dragoman/{dragoman.__version__}"
_NOT_IMPLEMENTED = 501
_BODILESS = frozenset({204, 304})
_MOST_LISTED = 64 << 20
_MOST_ENTRIES, _MOST_COMMAS = 20_000, 1_000_000
"""Of one page of a list. Vendors allow pages of up to 10,000 entries."""
_SENT = (
    "content-type",
    "accept",
    "range",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
    "idempotency-key",
    "openai-beta",
    "anthropic-version",
    "anthropic-beta",
)
_UPLOADING = "x-goog-upload-"
_MOST_UPLOADING = 20
"""Such headers that are returned; Google sends six. Some clients refuse an answer with more than 100 of all kinds."""
_BACK = (
    "content-disposition",
    "content-range",
    "accept-ranges",
    "etag",
    "last-modified",
    "expires",
    "openai-model",
    "openai-version",
    "x-num-tokens",
)
_CURSORS = ("after", "after_id", "before_id", "pageToken")
_RESULTS_URL = re.compile(rb'("results_url"\s*:\s*")https?://[^"]*?(/v1/messages/batches/)')
_BYTES_OF_A_TOKEN = 1_000
"""Of sound and pictures in forms: about what compressed ones have."""
_MOST_ANSWERS = 1_000
_MOST_DIGITS = 10
_TAIL = 16 << 10
_MOST_LOOKED_AT = 20
_MOST_TOKENS = 1 << 40
_USAGE = re.compile(r'"(?:usage|usageMetadata|meta)"\s*:\s*(?=\{)')
_encode = msgspec.json.encode
_decoder = json.JSONDecoder()


async def pass_through(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    row = endpoint.passed
    assert row is not None  # noqa: S101 - `match_endpoint` sets it for this operation
    caller = await gateway.admit(endpoint, exchange, record)
    _check_body(exchange.head)
    chosen: bool | Plan = False
    changes = exchange.head.method == "POST"  # a key without remaining budget may still read
    if not changes:
        chosen = await serve_here(gateway, endpoint, exchange, record, caller)
    if chosen is True:
        return
    request = PassedRequest(gateway, endpoint, exchange, record, caller)
    if row.has_model and caller.has_budget and not row.is_unmetered:
        named, plan = await _named_plan(request, row, None)
        plan, expected = await _countable_plan(request, row, plan)
        await gateway.enter_charging(caller, record, expected)
        try:
            await _pass_on(request, row, named, plan)
        finally:
            caller.leave()
        return
    await gateway.enter_at(caller, record)
    try:
        if changes:
            chosen = await serve_here(gateway, endpoint, exchange, record, caller)
        if chosen is not True:
            await _pass_on(request, row, *await _named_plan(request, row, chosen or None))
    finally:
        caller.leave()


async def _named_plan(request: PassedRequest, row: Passed, chosen: Plan | None) -> tuple[str, Plan]:
    """Return the model as the body names it, and the plan. Raises `Denied`, and what `_plan` raises."""
    head, body, caller = request.exchange.head, request.exchange.body, request.caller
    if row.is_unmetered and caller.has_budget:
        raise unmetered(f"{row.name} is charged for later")
    named = await off_loop_if_large(len(body), model_in, body, head) if row.has_model else ""
    if named and caller.is_restricted and not _is_form(head):
        await off_loop_if_large(len(body), check_one_model, body, row.format)
    model = request.endpoint.model or _bare(named)
    plan = chosen or await _plan(request.gateway, row, request.endpoint, head, caller, model)
    request.record.model, request.record.route = model, plan.route
    return named, plan


async def _countable_plan(request: PassedRequest, row: Passed, plan: Plan) -> tuple[Plan, Expected]:
    """Return the plan with the candidates whose cost a budget can count, and what the request is expected to use."""
    if all(one.upstream.channel.provider.name in row.free_at for one in plan.candidates):
        return plan, NOTHING_EXPECTED
    prices, body, head = request.gateway.prices, request.exchange.body, request.exchange.head
    priced = with_prices(request.caller, plan.candidates, prices, row.name)
    if _is_form(head):
        place = await off_loop_if_large(len(body), _form_field, body, head, "n")
        answers = body[slice(*place)][:_MOST_DIGITS] if place else b""
        tokens = 1 + len(body) // _BYTES_OF_A_TOKEN
    else:
        answers, tokens = await off_loop_if_large(len(body), _answers_in, body), tokens_of_size(len(body))
    output = EXPECTED_OUTPUT * (min(int(answers), _MOST_ANSWERS) if answers.isdigit() else 1)
    return structs.replace(plan, candidates=priced), expected_at(priced, tokens, output, prices)


def _answers_in(body: bytes) -> bytes:
    """Return the value of `n`: how many pictures or texts a request asks for."""
    try:
        return bytes(_counted(body).n)[:_MOST_DIGITS]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return b""


async def _pass_on(request: PassedRequest, row: Passed, named: str, plan: Plan) -> None:
    gateway, endpoint, exchange, record = request.gateway, request.endpoint, request.exchange, request.record
    opened = await gateway.relay.first_answer(plan, record, _attempt(gateway, endpoint, exchange, record, named))
    try:
        record.status, record.first_byte = opened.response.status, time.perf_counter() - record.started
        if row.holding in {"create", "list"} or row.mentions or opened.response.status in _BODILESS:
            await _send_whole(opened, request)
        else:
            await _send_as_it_comes(opened, request)
        record.complete = True
    finally:
        opened.release()


# ── choosing the upstream ──


async def _plan(gateway: Gateway, row: Passed, endpoint: Endpoint, head: Head, caller: Caller, model: str) -> Plan:
    """Return a plan with the upstreams that have this endpoint. Raises `Denied`, `NoSuchModel`, `BadBody` (501)."""
    router = gateway.router
    if row.holding == "one":
        noted = await _owning_upstream(gateway, row, endpoint.id, caller)
        if noted is not None:
            return Plan(noted, _upstreams_with(row, router.named_upstreams(noted, row.format), ""), PLAIN)
    named = head.headers.get(PROVIDER_HEADER, "")
    if model and not named:
        caller.may_use(model)
        plan = router.plan(model, row.format)
        able = tuple(one for one in plan.candidates if _has(row, one, gateway))
        if not able:
            raise BadBody(_no_provider(row, sorted({one.upstream.place for one in plan.candidates})))
        return structs.replace(plan, candidates=able)
    places = [named] if named else [place.name for place in router.available() if place.provider.name in row.providers]
    home = CLIENT_PROTOCOLS[row.format].home
    for place in sorted(places, key=lambda name: name != home):
        able = _upstreams_with(row, router.named_upstreams(place, row.format), model)
        able = tuple(one for one in able if _has(row, one, gateway))
        if able and caller.allows(f"{place}/{model or row.name}"):
            return Plan(place, able, PLAIN)
    if row.here and row.holding == "one" and gateway.batches.is_enabled:  # only this gateway could have stored it
        raise _unknown_object(row, endpoint.id)
    raise BadBody(_no_provider(row, [named] if named else []))


def _unknown_object(row: Passed, id: str) -> UnknownResponse:
    return UnknownResponse(Failure("not_found", f"No such {row.name} object: {id}", 404, parameter="id"))


def _upstreams_with(row: Passed, upstreams: Sequence[Any], model: str) -> tuple[Candidate, ...]:
    return tuple(Candidate(one, model) for one in upstreams if one.channel.provider.name in row.providers)


def _has(row: Passed, candidate: Candidate, gateway: Gateway) -> bool:
    """Whether the upstream serves the endpoint. The simulators serve none of them."""
    upstream = candidate.upstream
    return upstream.channel.provider.name in row.providers and not gateway.router.is_simulated(upstream.place)


def _no_provider(row: Passed, providers: Sequence[str]) -> Failure:
    """Return a 501. Clients would retry it; `refuse` adds the header that tells them not to."""
    could = ", ".join(dict.fromkeys(row.providers))
    whose = (
        f"{', '.join(providers)} has no endpoint for it" if providers else "no provider that is configured here has it"
    )
    words = (
        f"Requests for {row.name} pass through this gateway unchanged, and {whose}. "
        f"These providers have it: {could} (not their simulators)."
    )
    return Failure("invalid_request", words, _NOT_IMPLEMENTED)


async def _owning_upstream(gateway: Gateway, row: Passed, id: str, caller: Caller) -> str | None:
    """Return the upstream that stores an object. Raises `UnknownResponse` if another key created it.

    Without keys there is one owner, who may have created the object elsewhere: None then means an unknown upstream.
    """
    try:
        found = await gateway.responses.find(held_id(row, id), caller.id)
    except UnknownResponse:
        if caller.grant is None:
            return None
        raise _unknown_object(row, id) from None
    return found.upstream if isinstance(found, Noted) else None


def held_id(row: Passed, id: str) -> str:
    """Return the id under which the owner is stored: providers' ids are unique per kind of object."""
    return f"{row.name}/{id.rpartition('/')[2]}"


# ── the model ──


class _Named(Struct):
    model: str | None = None


class _Counted(Struct):
    n: Raw = Raw(b"")


_named = msgspec.json.Decoder(_Named).decode
_counted = msgspec.json.Decoder(_Counted).decode


def _check_body(head: Head) -> None:
    """Check the content type. Multipart forms are accepted: browsers send an origin, which was already checked."""
    kind = head.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        check_content_type(head)


def model_in(body: bytes, head: Head) -> str:
    """Return the model that a JSON body or a form names; empty if it names none."""
    if place := _form_field(body, head):
        return body[slice(*place)].decode("utf-8", "replace").strip()
    if _is_form(head):
        return ""
    try:
        return (_named(body).model or "") if body else ""
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(path="$", expected="JSON", got=str(error), source="request") from None


def _form_field(body: bytes, head: Head, name: str = "model") -> tuple[int, int] | None:
    """Return start and end of the value of a form field, if there is one."""
    given = head.headers.get("content-type", "")
    if not _is_form(head):
        return None
    try:
        return find_field(body, given, name)
    except MultipartError as error:
        raise DecodeError(path="$", expected="an unambiguous form", got=str(error), source="request") from None


def _is_form(head: Head) -> bool:
    return head.headers.get("content-type", "").lower().startswith("multipart/")


def _bare(name: str) -> str:
    """Return the name without Google's path, such as `models/NAME` or `projects/…/publishers/google/models/NAME`."""
    return name.rpartition("models/")[2]


def with_routed_model(body: bytes, head: Head, old: str, model: str) -> bytes:
    """Replace only the model name with its name at the upstream. `old` is the name as the body has it."""
    new = old.removesuffix(_bare(old)) + model
    if not old or not model or old == new:
        return body
    if place := _form_field(body, head):
        return body[: place[0]] + new.encode() + body[place[1] :]
    if _is_form(head):
        return body
    return with_model(body, old, new)


# ── sending ──


def _attempt(
    gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record, named: str
) -> Callable[[Candidate], Any]:
    row, head = endpoint.passed, exchange.head
    assert row is not None  # noqa: S101 - see pass_through

    async def attempt(candidate: Candidate) -> OpenAnswer:
        channel = candidate.upstream.channel
        record.upstream, record.target = candidate.upstream.name, candidate.model
        record.format = channel.provider.format
        given = (exchange.body, head, named, candidate.model)
        body = await off_loop_if_large(len(exchange.body), with_routed_model, *given)
        path = row.providers[channel.provider.name] + _path_with_model(endpoint, candidate.model)
        path = channel.provider.path(Target(path, candidate.model, stream=False, place=channel.place))
        query = query_for_upstream(head)
        call = Call.about(
            HttpRequest(
                method=head.method,
                url=channel.base_url + path + ("&" + query[1:] if query and "?" in path else query),
                headers={**_sent_headers(head), **_provider_headers(candidate, head)},
                body=body,
            ),
            channel.timeouts,
        )
        return await gateway.relay.open(call, candidate, same=True)

    return attempt


def _path_with_model(endpoint: Endpoint, model: str) -> str:
    """Return the path to forward; if it names the model, with the upstream's name for it."""
    before, found, after = endpoint.path.rpartition(":")
    folder, _, _ = before.partition("/models/")
    return f"{folder}/models/{quote(model, safe='')}:{after}" if found and "/models/" in before else endpoint.path


def _sent_headers(head: Head) -> dict[str, str]:
    given = head.headers
    kept = {name: given[name] for name in _SENT if name in given}
    return kept | {name: value for name, value in given.items() if name.startswith(_UPLOADING)}


def _provider_headers(candidate: Candidate, head: Head) -> dict[str, str]:
    channel = candidate.upstream.channel
    own = {name: value for name, value in channel.provider.headers.items() if name not in head.headers}
    return {**own, "user-agent": _AGENT, "accept-encoding": "identity", **channel.headers}


# ── answering ──


_UPLOAD_URL = "x-goog-upload-url"


def _upload_url(url: str, head: Head, base_url: str) -> str:
    """Return the URL for the bytes of an upload, pointing to this gateway. Raises `Denied` for an invalid one.

    Google's SDK sends the bytes to this URL without a key, so the client's own key is added to it.
    """
    try:
        given = urlsplit(url)
    except ValueError:
        raise Denied(Failure("server", "the upstream's answer names an upload URL that is none", 502)) from None
    base = urlsplit(base_url)
    if given.netloc != base.netloc or "host" not in head.headers:
        return url
    own_url = urlsplit(address_of(head))
    key = presented_key(head)
    query = f"{given.query}&{urlencode({'key': key})}" if key else given.query
    return urlunsplit((own_url.scheme, own_url.netloc, given.path.removeprefix(base.path), query, ""))


def back_headers(headers: Mapping[str, str], record: Record, channel: Channel) -> dict[str, str]:
    kept = {name: headers[name] for name in _BACK if name in headers}
    uploading = (name for name in headers if name.startswith(_UPLOADING))
    kept |= {name: headers[name] for name in islice(uploading, _MOST_UPLOADING)}
    kept = kept_headers(headers, channel) | without_keys_in(kept, channel)
    upstream = f"{record.upstream}/{record.target}" if record.target else record.upstream
    return {**record.id_headers, **kept, **INERT, "x-request-id": record.id, "x-dragoman-upstream": upstream}


async def _send_as_it_comes(opened: OpenAnswer, request: PassedRequest) -> None:
    exchange, record, caller = request.exchange, request.record, request.caller
    tail = UsageReader(counts=_uses_tokens(request.endpoint))
    response = opened.response
    exchange.start(response.status, back_headers(response.headers, record, opened.upstream.channel))

    def onward(data: bytes) -> bool:
        tail.feed(data)
        return exchange.write(data)

    try:
        await stream_to(response, onward, exchange.drain)
    except ProviderError as error:  # the client has half an answer: cutting the connection signals it
        raise as_failed(error, opened.upstream) from error
    record.usage = tail.usage()
    if caller.grant is not None:
        await request.gateway.settle(caller, record)
    exchange.finish()


async def _send_whole(opened: OpenAnswer, request: PassedRequest) -> None:
    """Send an answer that names objects of the provider, whose owner must be noted or looked up first."""
    with request.gateway.relay.counting_bytes(_MOST_LISTED) as count:
        try:
            body = await read_whole(opened.response, _MOST_LISTED, count=count)
        except ProviderError as error:
            raise as_failed(error, opened.upstream) from error
        await _send_noted(opened, body, request)


async def _send_noted(opened: OpenAnswer, body: bytes, request: PassedRequest) -> None:
    gateway, exchange, record, caller = request.gateway, request.exchange, request.record, request.caller
    row, response = request.endpoint.passed, opened.response
    assert row is not None  # noqa: S101 - see pass_through
    if row.holding == "create":
        for id in _ids_in(body, row):
            await gateway.responses.note(held_id(row, id), record.upstream, caller.id)
    elif row.holding == "list":
        body = await _own_entries(gateway, row, body, caller) if caller.grant is not None else body
        body = await _with_own_batches(request, row, body)
    body = await _note_mentioned_files(request, row, body)
    tail = UsageReader(counts=_uses_tokens(request.endpoint))
    tail.feed(body)
    record.usage = tail.usage()
    if caller.grant is not None:
        await gateway.settle(caller, record)
    headers = back_headers(response.headers, record, opened.upstream.channel)
    if _UPLOAD_URL in headers:
        headers[_UPLOAD_URL] = _upload_url(headers[_UPLOAD_URL], exchange.head, opened.upstream.channel.base_url)
    exchange.send(response.status, headers, body)


async def _note_mentioned_files(request: PassedRequest, row: Passed, body: bytes) -> bytes:
    """Note the client as owner of files that a job created, and make URLs of the provider point to this gateway.

    Anthropic's SDK fetches results from the URL in the batch, with the client's key for this gateway.
    """
    if "results_url" in row.mentions:
        address = address_of(request.exchange.head).encode()
        return _RESULTS_URL.sub(lambda found: found[1] + address + found[2], body)
    for path in row.mentions:
        for id in _ids_in(body, structs.replace(row, id=path)):
            await request.gateway.responses.note(
                f"files/{id.rpartition('/')[2]}", request.record.upstream, request.caller.id
            )
    return body


async def _with_own_batches(request: PassedRequest, row: Passed, body: bytes) -> bytes:
    """Add what this gateway stores itself to the start of the first page of a list."""
    parameters = request.exchange.head.parameters
    if not row.here or not request.gateway.batches.is_enabled or any(name in parameters for name in _CURSORS):
        return body
    shown, _ = await list_here(request)
    if not shown:
        return body
    page = await off_loop_if_large(len(body), _page, body, row)
    return body if page is None else _encode({**page[0], row.items: [*shown, *page[1]]})


def _page(body: bytes, row: Passed) -> tuple[dict[str, Raw], list[Raw]] | None:
    """Return the fields of a list and its entries; None if it is not a list of a usual size."""
    if body.count(b",") > _MOST_COMMAS:  # each entry takes far more memory than its bytes
        return None
    try:
        fields = msgspec.json.decode(body, type=dict[str, Raw])
        entries = msgspec.json.decode(fields.get(row.items, Raw(b"[]")), type=list[Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if len(entries) > _MOST_ENTRIES else (fields, entries)


def _ids_in(body: bytes, row: Passed) -> list[str]:
    try:
        value: Any = msgspec.json.decode(body) if body else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
    for step in row.id.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return [value] if isinstance(value, str) else []


async def _own_entries(gateway: Gateway, row: Passed, body: bytes, caller: Caller) -> bytes:
    """Remove entries that other keys created from a list."""
    page = await off_loop_if_large(len(body), _page, body, row)
    if page is None:
        raise Denied(Failure("server", "the upstream's list does not follow its format, or is too long", 502))
    fields, entries = page
    own = []
    for entry in entries:
        for id in _ids_in(bytes(entry), structs.replace(row, id=row.id.rpartition(".")[2])):
            try:
                await gateway.responses.find(held_id(row, id), caller.id)
            except UnknownResponse:
                continue
            own.append(entry)
    return body if len(own) == len(entries) else _encode({**fields, row.items: own})


def _uses_tokens(endpoint: Endpoint) -> bool:
    """Whether to count tokens: only for models, since token counts in a file are just its content."""
    return endpoint.passed is not None and endpoint.passed.has_model


class UsageReader:
    """Reads the token counts of a passed answer from its end, where every format has them."""

    __slots__ = ("_counts", "_tail")

    def __init__(self, *, counts: bool = True) -> None:
        self._counts = counts
        self._tail = b""

    def feed(self, data: bytes) -> None:
        if self._counts:
            self._tail = data[-_TAIL:] if len(data) >= _TAIL else (self._tail + data)[-_TAIL:]

    def usage(self) -> Usage | None:
        text = self._tail.decode("utf-8", "replace")
        for found in list(_USAGE.finditer(text))[: -_MOST_LOOKED_AT - 1 : -1]:
            counts = _object_at(text, found.end())
            usage = _usage(counts) if counts else None
            if usage is not None:
                return usage
        return None


def usage_in(body: bytes) -> Usage | None:
    """Return the token counts of a whole answer of any format; None if it reports none."""
    reader = UsageReader()
    reader.feed(body)
    return reader.usage()


def _object_at(text: str, place: int) -> dict[str, Any] | None:
    """Return the JSON object that begins at this place; None if it is incomplete."""
    try:
        value, _ = _decoder.raw_decode(text, place)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _usage(counts: dict[str, Any]) -> Usage | None:
    """Return token counts, under the names that OpenAI, Google or Cohere use."""
    billed = counts.get("billed_units")
    if isinstance(billed, dict):
        counts = billed

    def count(*names: str) -> int | None:
        found = (counts.get(name) for name in names)
        return next((one for one in found if type(one) is int and 0 <= one <= _MOST_TOKENS), None)

    input = count("input_tokens", "prompt_tokens", "promptTokenCount")
    output = count("output_tokens", "completion_tokens", "candidatesTokenCount")
    if input is None and output is None:
        total = count("total_tokens", "totalTokenCount")
        return None if total is None else Usage(input=total, output=0)
    return Usage(input=input or 0, output=output or 0)
