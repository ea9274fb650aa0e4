"""The state of the Responses API, for upstreams that have none: answers are kept, and others may follow them."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Raw, Struct, structs

from dragoman.codecs.ids import INVENTED_PREFIX
from dragoman.codecs.openai_responses.echo import echo_of, with_echo
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.routing import Plan
from dragoman.gateway.state.base import Kept, Store, Unavailable
from dragoman.ir import Failure

FORMAT = "openai-responses"
_object = msgspec.json.Decoder(dict[str, Raw]).decode
_array = msgspec.json.Decoder(list[Raw]).decode
_encode = msgspec.json.encode
# What concerns the state, which is ours here.
_OURS = ("previous_response_id", "store", "background")
# The members of a response that concern the state: an upstream with a state of its own does not know ours.
_STATE = ("previous_response_id", "store", "background")
_COMPLETED = (b"event: response.completed\ndata: ", b"event: response.incomplete\ndata: ")
# Ids of the items of an answer that we have translated: all of one answer have this in the middle.
_ITEM_IDS = re.compile(rf"[a-z]+_({INVENTED_PREFIX}[0-9a-f]+)_[0-9]+")
_ANY_ITEM_ID = re.compile(rb'"id":\s*"' + _ITEM_IDS.pattern.encode() + b'"')
_REFERENCE = "item_reference"
_THOUGHT = "rs_"
_MOST_NOTED = 10_000
_GONE = 30.0
"""Seconds after which a response that nobody has worked on is given up."""
_LOOKED_AFTER = 1.0
"""Seconds between two looks at whether another gateway was asked to cancel what we work on."""


class UnknownResponse(Exception):
    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.message)


def not_found(id: str) -> UnknownResponse:
    message = f"Response with id '{id}' not found."
    return UnknownResponse(Failure("not_found", message, 404, raw_type="invalid_request_error"))


def _no_item(id: str, place: int) -> UnknownResponse:
    message = f"Item with id '{id}' not found."
    parameter = f"input[{place}].id"
    return UnknownResponse(Failure("not_found", message, 404, parameter=parameter, raw_type="invalid_request_error"))


def _no_previous(id: str) -> UnknownResponse:
    return UnknownResponse(
        Failure(
            "invalid_request",
            f"Previous response with id '{id}' not found.",
            400,
            code="previous_response_not_found",
            parameter="previous_response_id",
            raw_type="invalid_request_error",
        )
    )


class Keeping:
    """One request whose answer may be kept."""

    def __init__(
        self,
        responses: Responses,
        client_request: ClientRequest,
        owner: str,
        own_input: list[Raw],
        echo: Mapping[str, Any],
    ) -> None:
        self.client_request = client_request
        self._responses = responses
        self._owner = owner
        self._own_input = own_input
        self._echo = echo
        self._last = b""

    @property
    def stores(self) -> bool:
        return self.client_request.known.store is not False

    def heard(self, out: bytes) -> None:
        """Of a stream, the event that tells the whole answer is its last."""
        if any(mark in out for mark in _COMPLETED):
            self._last = out

    def completed(self) -> bytes | None:
        for mark in _COMPLETED:
            _, found, rest = self._last.partition(mark)
            if found:
                return bytes(_object(rest.partition(b"\n")[0])["response"])
        return None

    async def keep(self, response: bytes, *, surely: bool = False) -> bytes:
        """The answer as it is kept, and as it is told where it is not streamed.

        One that is there already is told also when the database is away.
        """
        whole = with_echo(response, self._echo)
        if self.stores:
            id = str(msgspec.json.decode(_object(whole)["id"]))
            previous = self.client_request.known.previous_response_id
            try:
                await self._responses.store.keep(Kept(id, self._owner, previous, _encode(self._own_input), whole))
                if items := _ANY_ITEM_ID.search(whole):
                    # Who refers to one of its items finds the response behind this.
                    await self._responses.store.keep(Kept(items[1].decode(), self._owner, id, b"", b""))
            except Unavailable:
                if surely:
                    raise
        return whole

    async def keep_streamed(self) -> None:
        """A stream that broke off leaves nothing to follow."""
        response = self.completed()
        self._last = b""
        if response is not None:
            await self.keep(response)

    async def still_kept(self, id: str) -> Kept | None:
        await self._responses.store.touch(id)
        return await self._responses.store.kept(id, self._owner)

    @property
    def in_background(self) -> bool:
        return self.client_request.known.background is True and not self.client_request.stream and self.stores


class Noted(Struct, frozen=True):
    """An upstream with a state of its own made this response: who asks for it is sent there."""

    upstream: str
    owner: str


class Background:
    """A response that is promised before it is there."""

    def __init__(self, keeping: Keeping, model: str) -> None:
        self.id = f"resp_{secrets.token_hex(16)}"
        self._keeping = keeping
        self._promised = {"id": self.id, "object": "response", "created_at": int(time.time()), "model": model}

    async def promised(self) -> bytes:
        return await self._told("in_progress", surely=True)

    async def _told(self, status: str, error: Mapping[str, str] | None = None, *, surely: bool = False) -> bytes:
        more: dict[str, object] = {
            "status": status,
            "completed_at": None,
            "error": error,
            "incomplete_details": None,
            "output": [],
            "usage": None,
        }
        return await self._keeping.keep(_encode({**self._promised, **more}), surely=surely)

    async def completed(self, response: bytes) -> None:
        if not await self.was_cancelled():
            await self._keeping.keep(_encode({**_object(response), "id": self.id}))

    async def failed(self, failure: Failure) -> None:
        await self._told("failed", {"code": failure.code or "server_error", "message": failure.message})

    async def cancelled(self) -> None:
        await self._told("cancelled")

    async def was_cancelled(self) -> bool:
        """Another gateway may have been asked to; all of them are told that we still work on it."""
        with suppress(Unavailable):
            kept = await self._keeping.still_kept(self.id)
            return kept is not None and _status(kept) == "cancelled"
        return False


class Responses:
    format = FORMAT

    def __init__(self, store: Store) -> None:
        self.store = store
        self._noted: OrderedDict[str, Noted] = OrderedDict()
        self._working: dict[str, asyncio.Task[None]] = {}

    def start(self, background: Background, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._working[background.id] = task
        watching = asyncio.ensure_future(_watched(background, task)) if self.store.shared else None

        def ended(_: object) -> None:
            self._working.pop(background.id, None)
            if watching is not None:
                watching.cancel()

        task.add_done_callback(ended)

    async def cancel(self, kept: Kept) -> Kept:
        """As the response is afterwards. Only what works in the background can be cancelled so."""
        task = self._working.get(kept.id)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
            return await self.store.kept(kept.id, kept.owner) or kept
        if msgspec.json.decode(kept.response).get("background") is not True:
            words = "Cannot cancel a synchronous response."
            raise UnknownResponse(Failure("invalid_request", words, 400, raw_type="invalid_request_error"))
        if _status(kept) == "in_progress":  # whoever works on it will notice
            told = _encode({**_object(kept.response), "status": "cancelled"})
            kept = structs.replace(kept, response=told)
            await self.store.keep(kept)
        return kept

    async def close(self) -> None:
        tasks = list(self._working.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def begin(self, client_request: ClientRequest, plan: Plan, owner: str) -> Keeping | None:
        """None: the upstream keeps its own state, and the request does not follow an answer that we keep."""
        previous = client_request.known.previous_response_id
        native = plan.candidates[0].upstream.channel.provider.format == FORMAT
        chain = [] if previous is None else await self._chain(previous, owner)
        if native and not chain:
            return None
        if previous is not None and not chain:
            raise _no_previous(previous)
        fields = _object(client_request.body)
        own = _items(fields.get("input"))
        if _REFERENCE.encode() in client_request.body:
            own = [await self._referred(item, place, owner) for place, item in enumerate(own)]
            fields["input"] = Raw(_encode(own))
        sent: dict[str, Any] = {name: value for name, value in fields.items() if name not in _OURS}
        if chain:
            sent["input"] = [*_context(chain), *own]
        echo = echo_of(fields)
        if native:
            echo = {name: echo[name] for name in _STATE}
        options = {"echo": echo, "clock": _now} if client_request.stream else {}
        rewritten = structs.replace(client_request, body=_encode(sent), rewritten=True, options=options)
        return Keeping(self, rewritten, owner, own, echo)

    async def _chain(self, id: str, owner: str) -> list[Kept]:
        """Those that are here; what an upstream keeps, it follows by itself."""
        return [kept for kept in await self.store.chain(id, owner) if kept.response]

    async def _referred(self, item: Raw, place: int, owner: str) -> Raw:
        """What an item refers to, as we kept it. A thought may be lost, and is told as such; nothing else may."""
        fields = _object(item)
        if fields.get("type") != Raw(_encode(_REFERENCE)):
            return item
        id = str(msgspec.json.decode(fields.get("id", b'""')))
        known = _ITEM_IDS.fullmatch(id)
        for kept in await self._chain(known[1], owner) if known else ():
            for made in _array(bytes(_object(kept.response)["output"])):
                if _object(made).get("id") == fields["id"]:
                    return made
        if id.startswith(_THOUGHT):
            return item
        raise _no_item(id, place)

    async def _whatever_became_of(self, kept: Kept) -> Kept:
        """A gateway that died in the middle cannot tell it; somebody else does."""
        if kept.id in self._working or _status(kept) != "in_progress" or await self.store.age(kept.id) < _GONE:
            return kept
        failed = _orphaned(kept)
        await self.store.keep(failed)
        return failed

    async def note(self, id: str | None, upstream: str, owner: str) -> None:
        if not id or id in self._noted:
            return
        self._noted[id] = Noted(upstream, owner)
        if len(self._noted) > _MOST_NOTED:
            self._noted.popitem(last=False)
        if self.store.shared:
            with suppress(Unavailable):
                await self.store.keep(Kept(id, owner, None, b"", b"", upstream))

    async def find(self, id: str, owner: str) -> Kept | Noted:
        kept = await self.store.kept(id, owner)
        if kept is not None and (kept.upstream or kept.response):
            return Noted(kept.upstream, owner) if kept.upstream else await self._whatever_became_of(kept)
        noted = self._noted.get(id)
        if noted is None or noted.owner != owner:
            raise not_found(id)
        return noted


def _now() -> int:
    return int(time.time())


def _orphaned(kept: Kept) -> Kept:
    error = {"code": "server_error", "message": "The gateway that worked on this response is gone."}
    return structs.replace(kept, response=_encode({**_object(kept.response), "status": "failed", "error": error}))


async def _watched(background: Background, task: asyncio.Task[None]) -> None:
    while not await background.was_cancelled():  # noqa: ASYNC110 - it happens elsewhere
        await asyncio.sleep(_LOOKED_AFTER)
    task.cancel()


def _status(kept: Kept) -> object:
    return msgspec.json.decode(kept.response).get("status")


def _items(given: Raw | None) -> list[Raw]:
    """A bare text is one message of the user."""
    if given is None:
        return []
    value = bytes(given)
    if value[:1] == b"[":
        return _array(value)
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": given}]}
    return [Raw(_encode(message))]


def _context(chain: list[Kept]) -> list[Raw]:
    items: list[Raw] = []
    for kept in reversed(chain):
        items += _array(kept.input)
        items += _array(bytes(_object(kept.response)["output"]))
    return items


def input_items(chain: list[Kept]) -> dict[str, Any]:
    """Newest first, as the API lists them."""
    whole = [*_context(chain[1:]), *_array(chain[0].input)]
    items: list[dict[str, Any]] = []
    for place, raw in enumerate(whole):
        item = msgspec.json.decode(raw)
        items.append({"id": f"msg_{chain[0].id.removeprefix('resp_')}_{place}", "type": "message", **item})
    items.reverse()
    ends = {"first_id": items[0]["id"], "last_id": items[-1]["id"]} if items else {"first_id": None, "last_id": None}
    return {"object": "list", "data": items, **ends, "has_more": False}
