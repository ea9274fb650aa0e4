"""The batch and file APIs of OpenAI, Anthropic and Gemini, for files and batches that the gateway keeps and runs.

A batch is forwarded if one provider that has batches serves all of its models. Otherwise the gateway runs it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlencode

import msgspec
from msgspec import structs

from dragoman.gateway.access import Caller, presented_key
from dragoman.gateway.batch_formats import (
    BATCH_FORMATS,
    FAILED,
    SUCCEEDED,
    BatchAbout,
    BatchFormat,
    Created,
    FileAbout,
    about_batch,
    about_file,
    address_of,
    create_anthropic_batch,
    create_gemini_batch,
    create_openai_batch,
    models_of,
    read_gemini,
    read_openai,
    refuse,
    with_inlined,
)
from dragoman.gateway.batch_runner import KEPT_SECONDS
from dragoman.gateway.endpoints import Endpoint
from dragoman.gateway.exchange import Exchange
from dragoman.gateway.http_request import BadBody
from dragoman.gateway.model_key import with_model
from dragoman.gateway.passed_endpoints import BATCH_PROVIDERS, PROVIDER_HEADER
from dragoman.gateway.relay import INERT, off_loop_if_large
from dragoman.gateway.request_records import Record
from dragoman.gateway.routing import PLAIN, Candidate, NoSuchModel, Plan
from dragoman.gateway.state.objects import Stored
from dragoman.gateway.state_errors import UnknownResponse
from dragoman.gateway.stored_responses import Noted
from dragoman.ir import Failure
from dragoman.multipart import MultipartError, read_form

if TYPE_CHECKING:
    from dragoman.gateway.app import Gateway

THIS_GATEWAY = "dragoman"
"""The value of the provider header that asks this gateway to keep the file and run the batch."""
_JSON = {"content-type": "application/json"}
_MOST_OPEN = 100
"""Maximum number of unfinished batches of one key."""
_LONGEST_PAGE, _PAGE = 100, 20
_MOST_MODELS = 100
"""Maximum number of models in a batch that a provider may run."""
_GRANULARITY = 1 << 20
"""Each chunk of an upload but the last is a multiple of this: every chunk rewrites the stored file."""
_ANY_MODEL = "\0"
"""Stands for any model: only patterns that match every model match it."""
_LONGEST_COUNT = 15
"""Maximum digits of a number that a client sends."""
_encode = msgspec.json.encode


class PassedRequest(msgspec.Struct):
    """A client's request to an endpoint whose bytes may pass unchanged, with what is needed to answer it."""

    gateway: Gateway
    endpoint: Endpoint
    exchange: Exchange
    record: Record
    caller: Caller

    @property
    def format(self) -> str:
        return self.endpoint.format

    @property
    def shape(self) -> BatchFormat:
        return BATCH_FORMATS[self.format]

    @property
    def id(self) -> str:
        """The id as stored: Gemini's ids are prefixed with their folder."""
        row = self.endpoint.passed
        return f"{row.name}/{self.endpoint.id}" if row is not None and self.shape.names_are_paths else self.endpoint.id

    def send(self, body: object, headers: Mapping[str, str] | None = None) -> None:
        self.record.status, self.record.complete = 200, True
        self.exchange.send(200, {**_JSON, **self.record.id_headers, **(headers or {})}, _encode(body))

    async def stored(self, part: str) -> Stored | None:
        """Return the object that the path names, if it is kept here and belongs to the caller."""
        found = await self.gateway.batches.store.find(self.id, self.caller.id)
        return found if found is not None and found.kind == f"{self.format} {part}" else None

    @property
    def wants_here(self) -> bool:
        return self.exchange.head.headers.get(PROVIDER_HEADER) == THIS_GATEWAY

    @property
    def wants_other(self) -> bool:
        return PROVIDER_HEADER in self.exchange.head.headers and not self.wants_here


Handler: TypeAlias = Callable[[PassedRequest], Awaitable["bool | Plan"]]
"""Returns True if it answered, False if any upstream is to answer, or a plan that names the upstream."""


async def serve_here(
    gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record, caller: Caller
) -> bool | Plan:
    """Answer from what the gateway keeps. Returns what a `Handler` returns."""
    row = endpoint.passed
    if row is None or not row.here or not gateway.batches.is_enabled:
        return False
    return await HANDLERS[row.here](PassedRequest(gateway, endpoint, exchange, record, caller))


# ── choosing where a batch runs ──


def _destination(request: PassedRequest, models: Iterable[str], row_providers: Mapping[str, str]) -> Plan | None:
    """Return a plan for the upstream that serves all of these models and has batches, or None to run them here.

    Batches run here if the provider might spend or call what the key does not allow (`_may_run_at`).
    """
    named = list(models)
    if request.wants_here or len(named) > _MOST_MODELS:
        return None
    router = request.gateway.router
    found: dict[str, Candidate] = {}
    for model in named:
        if not request.caller.allows(model):
            return None
        try:
            first = next(iter(router.plan(model, request.format).candidates), None)
        except NoSuchModel:
            return None
        if first is None or first.upstream.channel.provider.name not in row_providers:
            return None
        if router.is_simulated(first.upstream.place):
            return None
        found[first.upstream.place] = first
    if len(found) != 1:
        return None
    ((place, candidate),) = found.items()
    if not _may_run_at(request.caller, place):
        return None
    return Plan(place, (candidate,), PLAIN)


def _may_run_at(caller: Caller, place: str) -> bool:
    """Whether the provider may run batches of this key: only if the key has no budget and may use all of its models.

    The cost of such a batch is known too late for a budget. It may also use models that were not checked here: the
    provider may read the file differently, or run a file that was uploaded for another purpose.
    """
    return not caller.has_budget and caller.allows(f"{place}/{_ANY_MODEL}")


def _with_upstream_models(request: PassedRequest, content: bytes, whole: bytes, models: Mapping[str, object]) -> bytes:
    """Return the client's body with each model renamed to its name at the upstream."""
    names = {model: next(iter(request.gateway.router.plan(model, request.format).candidates)).model for model in models}
    if all(old == new for old, new in names.items()):
        return whole
    renamed = []
    for line in content.split(b"\n"):
        for model, body in models_of(line).items():
            named = with_model(bytes(body), model, names.get(model, model))
            line = line.replace(bytes(body), named, 1)  # noqa: PLW2901 - one body at a time
        renamed.append(line)
    return whole.replace(content, b"\n".join(renamed), 1)


# ── keeping ──


async def _check_room(request: PassedRequest, size: int) -> None:
    used, open_batches = await request.gateway.batches.store.usage_of(request.caller.id)
    most = request.gateway.batches.most_bytes
    if used + size > most:
        words = f"This gateway keeps at most {most} bytes of files and batches for a key; delete some first."
        raise BadBody(Failure("invalid_request", words, 413))
    if open_batches >= _MOST_OPEN:
        words = f"A key may have at most {_MOST_OPEN} unfinished batches."
        raise BadBody(Failure("rate_limit", words, 429, retry_after=60.0))


async def _put_new(request: PassedRequest, stored: Stored, content: bytes) -> None:
    """Store a new object if there is room for it. Raises `BadBody`."""
    batches = request.gateway.batches
    async with batches.turn(stored.owner):
        await _check_room(request, len(content))
        await batches.store.put(stored, content)


def _new(request: PassedRequest, part: str, about: object, **fields: Any) -> Stored:
    shape = request.shape
    prefix = shape.file_prefix if part == "file" else shape.batch_prefix
    now = time.time()
    return Stored(
        id=prefix + secrets.token_hex(12),
        owner=request.caller.id,
        kind=f"{request.format} {part}",
        created=now,
        expires=now + KEPT_SECONDS,
        about=_encode(about),
        **fields,
    )


def _show_file(request: PassedRequest, stored: Stored) -> dict[str, Any]:
    return request.shape.show_file(stored, about_file(stored.about), request.exchange.head)


# ── files of OpenAI ──


async def _create_file(request: PassedRequest) -> bool | Plan:
    """Keep the file if it is the input of a batch; providers handle files for other purposes."""
    body, head = request.exchange.body, request.exchange.head
    try:
        form = await off_loop_if_large(len(body), read_form, body, head.headers.get("content-type", ""))
        fields = {part.name: part for part in form}
    except MultipartError:
        return False  # the upstream reports the error
    purpose, file = fields.get("purpose"), fields.get("file")
    if request.wants_other or purpose is None or purpose.content != b"batch" or file is None:
        return False
    models = await off_loop_if_large(len(body), models_of, file.content)
    plan = _destination(request, models, BATCH_PROVIDERS)
    if plan is not None:
        request.exchange.body = await off_loop_if_large(
            len(body), _with_upstream_models, request, file.content, body, models
        )
        return plan
    about = FileAbout(name=file.filename or "", purpose="batch", size=len(file.content))
    stored = _new(request, "file", about)
    await _put_new(request, stored, file.content)
    request.send(_show_file(request, stored))
    return True


async def _file(request: PassedRequest) -> bool:
    stored = await request.stored("file")
    if stored is None or about_file(stored.about).expected is not None:
        return False
    request.send(_show_file(request, stored))
    return True


async def _delete_file(request: PassedRequest) -> bool:
    stored = await request.stored("file")
    if stored is None:
        return False
    await request.gateway.batches.store.forget(stored.id, stored.owner)
    request.send({} if request.shape.names_are_paths else {"id": stored.id, "object": "file", "deleted": True})
    return True


async def _file_content(request: PassedRequest) -> bool:
    stored = await request.stored("file")
    if stored is None:
        return False
    about = about_file(stored.about)
    if about.batch:
        await _send_results(request, about.batch, about.outcomes)
        return True
    exchange, store = request.exchange, request.gateway.batches.store
    request.record.status = 200
    headers = {"content-type": "application/octet-stream", **INERT, **request.record.id_headers}
    exchange.start(200, headers)
    sent = 0
    while data := await store.piece(stored.id, sent):  # in chunks: a whole file in memory per client would be too much
        sent += len(data)
        if exchange.write(data):
            await exchange.drain()
    request.record.complete = True
    exchange.finish()
    return True


async def _send_results(request: PassedRequest, batch: str, outcomes: tuple[str, ...]) -> None:
    """Send the lines of results, a page at a time: a batch may have more than fits into memory."""
    exchange, store = request.exchange, request.gateway.batches.store
    request.record.status = 200
    exchange.start(200, {"content-type": "application/x-jsonl", **INERT, **request.record.id_headers})
    after = -1
    while lines := await store.results(batch, outcomes, after):
        after = lines[-1][0]
        if exchange.write(b"".join(line + b"\n" for _, line in lines)):
            await exchange.drain()
    request.record.complete = True
    exchange.finish()


# ── files of Gemini: an upload has a start, chunks and an end ──


async def _upload(request: PassedRequest) -> bool:
    head = request.exchange.head
    upload = head.parameters.get("upload_id", "")
    if upload.startswith("here-"):
        async with request.gateway.batches.turn(request.caller.id):
            await _continue_upload(request, f"files/{upload.removeprefix('here-')}")
        return True
    if not request.wants_here and (request.wants_other or _has_upstream(request)):
        return False
    given = _described_file(request.exchange.body)
    size = head.headers.get("x-goog-upload-header-content-length", "")
    about = FileAbout(
        name=given.display_name or given.display_name_,
        content_type=given.mime_type or given.mime_type_ or head.headers.get("x-goog-upload-header-content-type", ""),
        expected=_count(size),
    )
    stored = _new(request, "file", about)
    await _put_new(request, stored, b"")
    key = presented_key(head)  # Google's SDK sends the bytes without a key, to the URL that it received
    query = {"upload_id": f"here-{stored.id.partition('/')[2]}", "upload_protocol": "resumable"}
    url = f"{address_of(head)}{head.path}?{urlencode(query | ({'key': key} if key else {}))}"
    granularity = {"x-goog-upload-chunk-granularity": str(_GRANULARITY)}
    request.send({}, {"x-goog-upload-status": "active", "x-goog-upload-url": url, **granularity})
    return True


def _count(given: str) -> int:
    """Parse a number that a client sent; return 0 if it is not one."""
    return int(given) if given.isdecimal() and len(given) <= _LONGEST_COUNT else 0


class _GivenFile(msgspec.Struct, frozen=True, rename={"display_name": "displayName", "mime_type": "mimeType"}):
    display_name: str = ""
    display_name_: str = msgspec.field(default="", name="display_name")
    mime_type: str = ""
    mime_type_: str = msgspec.field(default="", name="mime_type")


class _GivenUpload(msgspec.Struct):
    file: _GivenFile = _GivenFile()


def _described_file(body: bytes) -> _GivenFile:
    try:
        return msgspec.json.decode(body or b"{}", type=_GivenUpload).file
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise refuse(str(error)) from None


async def _continue_upload(request: PassedRequest, id: str) -> None:
    store, head = request.gateway.batches.store, request.exchange.head
    stored = await store.find(id, request.caller.id)
    if stored is None or about_file(stored.about).expected is None:
        raise UnknownResponse(Failure("not_found", "The upload does not exist or is finished.", 404))
    about = about_file(stored.about)
    commands = {word.strip() for word in head.headers.get("x-goog-upload-command", "").split(",")}
    if head.headers.get("x-goog-upload-offset", "0") != str(about.size):
        raise refuse(f"The offset is wrong: {about.size} bytes have arrived.")
    is_final = "finalize" in commands
    if not is_final and len(request.exchange.body) % _GRANULARITY:
        raise refuse(f"Every chunk but the last must be a multiple of {_GRANULARITY} bytes.")
    if not is_final and ("upload" not in commands or not request.exchange.body):
        request.send({}, {"x-goog-upload-status": "active", "x-goog-upload-size-received": str(about.size)})
        return
    if "upload" in commands and request.exchange.body:
        await _check_room(request, len(request.exchange.body))
        content = await store.content(stored.id) + request.exchange.body
        if len(content) > request.gateway.config.server.max_body:
            raise BadBody(Failure("invalid_request", "The file is larger than a request may be.", 413))
        about.size = len(content)
    else:
        content = await store.content(stored.id)
    if is_final:
        if about.expected and about.size != about.expected:
            raise refuse(f"The file has {about.size} bytes; {about.expected} were announced.")
        about.expected = None
    stored = structs.replace(stored, about=_encode(about))
    await store.put(stored, content)
    shown = {"file": _show_file(request, stored)} if is_final else {}
    request.send(shown, {"x-goog-upload-status": "final" if is_final else "active"})


def _has_upstream(request: PassedRequest) -> bool:
    row, router = request.endpoint.passed, request.gateway.router
    assert row is not None  # noqa: S101 - see serve_here
    places = [place for place in router.available() if place.provider.name in row.providers]
    return any(not router.is_simulated(place.name) for place in places)


# ── batches ──


async def _create_batch(request: PassedRequest) -> bool | Plan:
    created = False if request.wants_other else await _CREATORS[request.format](request)
    if not isinstance(created, Created):
        place = created.route if isinstance(created, Plan) else request.exchange.head.headers.get(PROVIDER_HEADER, "")
        if not _may_run_at(request.caller, place):
            words = "Batches of a key with limits are run by this gateway, which has to keep their files."
            raise refuse(f"{words} Upload and create them with the header {PROVIDER_HEADER}: {THIS_GATEWAY}.")
        return created
    about = created.about
    runner, grant = request.gateway.batches, request.caller.grant
    now = time.time()
    about.expires_at = now + runner.window
    about.digest = "" if grant is None else grant.digest
    state = "open"
    if about.problems:
        state, about.ending, about.ended_at = "ended", "failed", now
    stored = _new(request, "batch", about, state=state)
    await _put_new(request, stored, created.content if state == "open" else b"")
    runner.wake()
    request.send(await _render_batch(request, stored))
    return True


async def _create_openai(request: PassedRequest) -> Created | bool | Plan:
    body, store = request.exchange.body, request.gateway.batches.store
    try:
        file_id = msgspec.json.decode(body, type=_Input).input_file_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise refuse(str(error)) from None
    stored = await store.find(file_id, request.caller.id)
    if stored is None:
        return await _keeper_of(request, file_id)
    given = read_openai(body)
    content = await store.content(stored.id)
    return await off_loop_if_large(len(content), create_openai_batch, given, body, content)


class _Input(msgspec.Struct):
    input_file_id: str = ""


async def _keeper_of(request: PassedRequest, file_id: str) -> bool | Plan:
    """Return a plan for the upstream that has the file: a batch must run where its file is."""
    try:
        found = await request.gateway.responses.find(f"files/{file_id.rpartition('/')[2]}", request.caller.id)
    except UnknownResponse:
        if request.caller.grant is None and _has_upstream(request):
            return False
        words = f"No such files object: {file_id}"
        raise UnknownResponse(Failure("not_found", words, 404, parameter="input_file_id")) from None
    row = request.endpoint.passed
    if row is None or not isinstance(found, Noted):
        return False
    upstreams = request.gateway.router.named_upstreams(found.upstream, request.format)
    able = [one for one in upstreams if one.channel.provider.name in row.providers]
    if not able:
        words = f"The file {file_id} is stored by {found.upstream}, which has no batch API here."
        raise refuse(words, "input_file_id")
    return Plan(found.upstream, tuple(Candidate(one, request.endpoint.model) for one in able), PLAIN)


async def _create_anthropic(request: PassedRequest) -> Created | Plan:
    body, row = request.exchange.body, request.endpoint.passed
    assert row is not None  # noqa: S101 - see serve_here
    created = await off_loop_if_large(len(body), create_anthropic_batch, body, request.exchange.head)
    models = await off_loop_if_large(len(body), models_of, created.content)
    plan = _destination(request, models, row.providers)
    if plan is None:
        return created
    request.exchange.body = await off_loop_if_large(
        len(body), _with_upstream_models_inline, request, created, body, models
    )
    return plan


def _with_upstream_models_inline(
    request: PassedRequest, created: Created, body: bytes, models: Mapping[str, object]
) -> bytes:
    renamed = _with_upstream_models(request, created.content, created.content, models)
    return body if renamed == created.content else b'{"requests":[' + renamed.replace(b"\n", b",") + b"]}"


async def _create_gemini(request: PassedRequest) -> Created | bool | Plan:
    row, model, store = request.endpoint.passed, request.endpoint.model, request.gateway.batches.store
    assert row is not None  # noqa: S101 - see serve_here
    given = await off_loop_if_large(len(request.exchange.body), read_gemini, request.exchange.body)
    stored = await store.find(given.file_name, request.caller.id) if given.file_name else None
    plan = None if stored is not None else _destination(request, [model], row.providers)
    if plan is not None:
        return plan
    if given.file_name and stored is None:
        words = f"{given.file_name} is not stored by this gateway, which runs the batches of {model}."
        raise refuse(f"{words} Upload the file with the header {PROVIDER_HEADER}: {THIS_GATEWAY}.")
    content = None if stored is None else await store.content(stored.id)
    version = request.endpoint.path.split("/")[1]
    return await off_loop_if_large(
        len(content or request.exchange.body), create_gemini_batch, given, model, version, content
    )


_CREATORS: Mapping[str, Callable[[PassedRequest], Awaitable[Created | bool | Plan]]] = {
    "openai-chat": _create_openai,
    "anthropic-messages": _create_anthropic,
    "gemini": _create_gemini,
}


async def _render_batch(request: PassedRequest, stored: Stored) -> dict[str, Any]:
    about: BatchAbout = about_batch(stored.about)
    counts = about.counts if stored.state == "ended" else await request.gateway.batches.store.counts(stored.id)
    return request.shape.show(stored, about, counts, request.exchange.head)


async def _batch(request: PassedRequest) -> bool:
    stored = await request.stored("batch")
    if stored is None:
        return False
    shown = await _render_batch(request, stored)
    if stored.state == "ended" and about_batch(stored.about).inline:
        shown = with_inlined(shown, await _all_results(request, stored.id))
    request.send(shown)
    return True


async def _all_results(request: PassedRequest, id: str) -> list[bytes]:
    found: list[bytes] = []
    after = -1
    while lines := await request.gateway.batches.store.results(id, SUCCEEDED + FAILED, after):
        after = lines[-1][0]
        found += [line for _, line in lines]
    return found


async def _cancel_batch(request: PassedRequest) -> bool:
    stored = await request.stored("batch")
    if stored is None:
        return False
    about = about_batch(stored.about)
    about.canceled_at = time.time()
    runner = request.gateway.batches
    if not await runner.store.cancel(stored.id, _encode(about)):
        stored = await request.stored("batch")
        if stored is None or stored.state == "ended":
            raise BadBody(Failure("invalid_request", f"{request.id} has already ended.", 409))
    runner.cancel(stored.id)
    runner.wake()
    now = await request.stored("batch")
    request.send({} if request.shape.names_are_paths else await _render_batch(request, now or stored))
    return True


async def _delete_batch(request: PassedRequest) -> bool:
    stored = await request.stored("batch")
    if stored is None:
        return False
    if stored.state != "ended":
        raise refuse(f"{request.id} cannot be deleted while it is in progress. Cancel it first.")
    store = request.gateway.batches.store
    for id in (stored.id, *about_batch(stored.about).files.values()):
        await store.forget(id, stored.owner)
    request.send({} if request.shape.names_are_paths else {"id": stored.id, **request.shape.deleted})
    return True


async def _batch_results(request: PassedRequest) -> bool:
    stored = await request.stored("batch")
    if stored is None:
        return False
    if stored.state != "ended":
        raise refuse(f"Batch {request.id} has no results yet: it is in progress.")
    await _send_results(request, stored.id, SUCCEEDED + FAILED)
    return True


# ── lists ──


async def list_here(request: PassedRequest) -> tuple[list[dict[str, Any]], bool]:
    """Return a page of what is kept here for the caller, and whether there is more."""
    row, parameters = request.endpoint.passed, request.exchange.head.parameters
    part = "file" if row is not None and row.here == "list_files" else "batch"
    limit = parameters.get("limit") or parameters.get("pageSize") or ""
    size = min(_count(limit), _LONGEST_PAGE) or _PAGE
    after = parameters.get("after") or parameters.get("after_id") or parameters.get("pageToken") or ""
    store = request.gateway.batches.store
    found = await store.list_objects(f"{request.format} {part}", request.caller.id, size + 1, after)
    page = found[:size]
    if part == "file":
        shown = [_show_file(request, one) for one in page if about_file(one.about).expected is None]
    else:
        shown = [await _render_batch(request, one) for one in page]
    return shown, len(found) > size


async def _list(request: PassedRequest) -> bool:
    """Answer the list here if no upstream has such a list, or if the previous page came from this gateway."""
    row, parameters = request.endpoint.passed, request.exchange.head.parameters
    assert row is not None  # noqa: S101 - see serve_here
    after = parameters.get("after") or parameters.get("after_id") or parameters.get("pageToken") or ""
    continues = bool(after) and await request.gateway.batches.store.find(after, request.caller.id) is not None
    if request.wants_other or (_has_upstream(request) and not continues and not request.wants_here):
        return False
    shown, has_more = await list_here(request)
    if request.shape.names_are_paths:
        more = {"nextPageToken": shown[-1]["name"]} if has_more and shown else {}
        request.send({row.items: shown, **more})
        return True
    first, last = (shown[0]["id"], shown[-1]["id"]) if shown else (None, None)
    request.send({"object": "list", "data": shown, "first_id": first, "last_id": last, "has_more": has_more})
    return True


HANDLERS: Mapping[str, Handler] = {
    "create_file": _create_file,
    "list_files": _list,
    "file": _file,
    "delete_file": _delete_file,
    "file_content": _file_content,
    "upload": _upload,
    "create_batch": _create_batch,
    "list_batches": _list,
    "batch": _batch,
    "cancel_batch": _cancel_batch,
    "delete_batch": _delete_batch,
    "batch_results": _batch_results,
}
