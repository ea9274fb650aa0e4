"""The state of the Responses API, for upstreams without state: answers are stored, and others may continue them."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Protocol

import msgspec
from msgspec import Raw, Struct, structs

from dragoman.codecs.framing import ServerSentEvents
from dragoman.codecs.ids import INVENTED_PREFIX
from dragoman.codecs.openai_responses.echo import echo_of, with_echo
from dragoman.codecs.openai_responses.profile import REASONING_MODELS
from dragoman.codecs.stream_limits import Limits
from dragoman.gateway.client_request import ClientRequest, Peek
from dragoman.gateway.compaction_items import expand_compaction, has_own_compaction
from dragoman.gateway.conversation_items import check_results, conversation_id, page, with_ids
from dragoman.gateway.routing import Plan
from dragoman.gateway.state.base import LONGEST_CHAIN, Kept, Store, Unavailable
from dragoman.gateway.state_errors import (
    LARGEST_HISTORY,
    no_conversation,
    no_item,
    no_previous,
    not_cancellable,
    not_found,
    too_long_a_history,
    too_many_responses,
    two_histories,
)
from dragoman.ir import Failure, Finish, Finished, StreamStart, Usage, UsageUpdate
from dragoman.streams import StreamEncoder

FORMAT = "openai-responses"
_object = msgspec.json.Decoder(dict[str, Raw]).decode
_array = msgspec.json.Decoder(list[Raw]).decode
_encode = msgspec.json.encode
# Keys that concern the state, which the gateway handles.
_OURS = ("previous_response_id", "store", "background", "conversation", "generate")
# Keys of a response that concern the state: a stateful upstream does not know the gateway's state.
_STATE = ("previous_response_id", "store", "background", "conversation")
_COMPLETED, _INCOMPLETE = b'"response.completed"', b'"response.incomplete"'
_TYPE_WITHIN = 100
"""The type of an event is within this many bytes."""
_ENDED = frozenset({"completed", "incomplete"})
# Ids of the items of a translated answer: all items of one answer share the middle part.
_ITEM_IDS = re.compile(rf"[a-z]+_({INVENTED_PREFIX}[0-9a-f]+)_[0-9]+")
_ANY_ITEM_ID = re.compile(rb'"id":\s*"' + _ITEM_IDS.pattern.encode() + b'"')
_REFERENCE = "item_reference"
_ENCRYPTED = "reasoning.encrypted_content"
_THOUGHT = "rs_"
_MOST_NOTED = 10_000
_ORPHANED_SECONDS = 30.0
"""Seconds without progress after which a response counts as failed."""
_CHECK_SECONDS = 1.0
"""Seconds between checks whether another gateway was asked to cancel a response of this one."""
_MOST_LOCAL = 16
"""Maximum number of unstored responses that one WebSocket connection remembers."""


class LocalResponses:
    """Responses of one WebSocket connection that are not stored: only this connection can continue them."""

    def __init__(self) -> None:
        self._chains: OrderedDict[str, list[Kept]] = OrderedDict()

    def chain(self, id: str) -> list[Kept]:
        """Return a response and all before it, the latest first."""
        return self._chains.get(id, [])

    def remember(self, chain: list[Kept]) -> None:
        self._chains[chain[0].id] = chain
        if len(self._chains) > _MOST_LOCAL:
            self._chains.popitem(last=False)

    def forget(self, id: str) -> None:
        self._chains.pop(id, None)


class Followed(Struct, frozen=True):
    """What a request continues: stored responses, or the items of a conversation."""

    chain: list[Kept] = []
    conversation: str | None = None
    items: list[Raw] = []
    elsewhere: dict[str, Any] = {}
    """Keys of the request that name what the upstream stores."""

    @property
    def is_here(self) -> bool:
        return bool(self.chain) or self.conversation is not None


class Keeping:
    """One request whose answer may be stored."""

    def __init__(
        self,
        responses: Responses,
        client_request: ClientRequest,
        owner: str,
        own_input: list[Raw],
        followed: Followed,
        local: LocalResponses | None,
    ) -> None:
        self.client_request = client_request
        self.echo: Mapping[str, Any] = {}
        """Keys of the response that repeat the request."""
        self._responses = responses
        self._owner = owner
        self._own_input = own_input
        self._followed = followed
        self._local = local
        self._events = ServerSentEvents(Limits(), FORMAT)
        self._last = b""

    @property
    def stores(self) -> bool:
        return self.client_request.known.store is not False

    def publish(self, out: bytes) -> None:
        """Remember the last event of a stream, which contains the whole answer."""
        for payload in self._events.feed(out):
            if payload.find(_COMPLETED, 0, _TYPE_WITHIN) >= 0 or payload.find(_INCOMPLETE, 0, _TYPE_WITHIN) >= 0:
                self._last = payload

    def completed(self) -> bytes | None:
        return bytes(_object(self._last)["response"]) if self._last else None

    async def keep(self, response: bytes, *, surely: bool = False) -> bytes:
        """Store the answer, and return it as a client without streaming gets it.

        Unless `surely` is set, it is returned even if the database is unreachable.
        """
        whole = with_echo(response, self.echo)
        fields = _object(whole)
        id = str(msgspec.json.decode(fields["id"]))
        kept = Kept(id, self._owner, self.client_request.known.previous_response_id, _encode(self._own_input), whole)
        if self._local is not None and not self.stores:
            self._local.remember([kept, *self._followed.chain])
        if self._followed.conversation is not None and msgspec.json.decode(fields["status"]) in _ENDED:
            items = with_ids([*self._own_input, *_array(bytes(fields["output"]))])
            with suppress(Unavailable):
                await self._responses.store.add_items(self._followed.conversation, self._owner, items)
        if self.stores:
            try:
                await self._responses.store.keep(kept)
                if item := _ANY_ITEM_ID.search(whole):
                    # For references to one of its items: maps the middle part of item ids to the response.
                    await self._responses.store.keep(Kept(item[1].decode(), self._owner, id, b"", b""))
            except Unavailable:
                if surely:
                    raise
        return whole

    def empty_stream(self, model: str) -> bytes:
        """Return the stream of a response without output."""
        encoder = StreamEncoder(FORMAT, **self.client_request.options)
        start = StreamStart(f"resp_{secrets.token_hex(16)}", model, _now())
        return encoder.encode([start, UsageUpdate(Usage(0, 0)), Finished(Finish("stop"))]) + encoder.close()

    async def keep_streamed(self) -> None:
        """Store the streamed response, unless its stream broke off."""
        response = self.completed()
        self._last = b""
        if response is not None:
            await self.keep(response)

    async def still_kept(self, id: str) -> Kept | None:
        await self._responses.store.touch(id)
        return await self._responses.store.find_response(id, self._owner)

    def background(self, model: str) -> Background:
        return Background(self, model)

    @property
    def in_background(self) -> bool:
        return self.client_request.known.background is True and not self.client_request.stream and self.stores


class Noted(Struct, frozen=True):
    """A note that a stateful upstream created this response; requests for it are forwarded there."""

    upstream: str
    owner: str


class ResponseKeeper(Protocol):
    """What a background answer needs of its request."""

    async def keep(self, response: bytes, *, surely: bool = False) -> bytes: ...

    async def still_kept(self, id: str) -> Kept | None: ...


class Background:
    """A response whose id the client gets before the answer exists."""

    def __init__(self, keeping: ResponseKeeper, model: str) -> None:
        self.id = f"resp_{secrets.token_hex(16)}"
        self._keeping = keeping
        self._promised: dict[str, object] = {
            "id": self.id,
            "object": "response",
            "created_at": int(time.time()),
            "model": model,
        }

    async def queue(self) -> bytes:
        return await self._store_status("in_progress", surely=True)

    async def _store_status(
        self, status: str, error: Mapping[str, str] | None = None, *, surely: bool = False
    ) -> bytes:
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
        await self._store_status("failed", {"code": failure.code or "server_error", "message": failure.message})

    async def cancelled(self) -> None:
        await self._store_status("cancelled")

    async def was_cancelled(self) -> bool:
        """Return whether another gateway cancelled the response, and renew the lease that marks it as in progress."""
        with suppress(Unavailable):
            kept = await self._keeping.still_kept(self.id)
            return kept is not None and _status(kept) == "cancelled"
        return False


class Responses:
    format: ClassVar[str] = FORMAT

    def __init__(self, store: Store) -> None:
        self.store = store
        self._noted: OrderedDict[str, Noted] = OrderedDict()
        self._working: dict[str, asyncio.Task[None]] = {}

    def start(self, background: Background, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._working[background.id] = task
        watching = asyncio.ensure_future(_cancel_when_requested(background, task)) if self.store.shared else None

        def ended(_: object) -> None:
            self._working.pop(background.id, None)
            if watching is not None:
                watching.cancel()

        task.add_done_callback(ended)

    async def cancel(self, kept: Kept) -> Kept:
        """Cancel a background response and return its new state. Others cannot be cancelled."""
        task = self._working.get(kept.id)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
            return await self.store.find_response(kept.id, kept.owner) or kept
        if msgspec.json.decode(kept.response).get("background") is not True:
            raise not_cancellable()
        if _status(kept) == "in_progress":  # the worker that runs it will notice
            cancelled = _encode({**_object(kept.response), "status": "cancelled"})
            kept = structs.replace(kept, response=cancelled)
            await self.store.keep(kept)
        return kept

    async def close(self) -> None:
        tasks = list(self._working.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def begin(
        self, client_request: ClientRequest, plan: Plan, owner: str, local: LocalResponses | None = None
    ) -> Keeping | None:
        """Return the state of a request; None if the upstream keeps it and nothing stored here is referred to."""
        known = client_request.known
        candidate = plan.candidates[0]
        native = candidate.upstream.channel.provider.format == FORMAT
        followed = await self._find_followed(known, owner, local, native=native)
        refers = followed.is_here or has_own_compaction(client_request.body)
        if native and not refers and not (local is not None and _is_local(known) and not followed.elsewhere):
            return None
        fields = _object(client_request.body)
        own = _items(fields.get("input"))
        if _REFERENCE.encode() in client_request.body:
            own = await self._resolve_references(own, owner, native=native)
            fields["input"] = Raw(_encode(own))
        sent: dict[str, Any] = {name: value for name, value in fields.items() if name not in _OURS}
        if refers:
            before = [*_context(followed.chain), *followed.items]
            if followed.is_here:
                check_results(before, own)
            sent["input"] = [expand_compaction(item) for item in (*before, *own)]
        if followed.elsewhere:
            sent |= followed.elsewhere
            if "store" in fields:
                sent["store"] = fields["store"]
        elif native:
            # The upstream need not store what is stored here; unstored reasoning must then be returned encrypted.
            sent |= _stateless(fields, candidate.model)
        keeping = Keeping(self, client_request, owner, own, followed, local)
        echo = echo_of(fields)
        keeping.echo = {name: echo[name] for name in _STATE if name in echo} if native else echo
        options = {"echo": echo, "clock": _now} if client_request.stream else {}
        keeping.client_request = structs.replace(
            client_request, body=_encode(sent), rewritten=True, options=options, request=None
        )
        return keeping

    async def _find_followed(self, known: Peek, owner: str, local: LocalResponses | None, *, native: bool) -> Followed:
        previous, conversation = known.previous_response_id, conversation_id(known.conversation)
        if previous is not None and conversation is not None:
            raise two_histories()
        if conversation is not None:
            if await self.store.find_response(conversation, owner) is None:
                if native:  # the upstream's own
                    return Followed(elsewhere={"conversation": known.conversation})
                raise no_conversation(conversation)
            await self.store.touch(conversation)
            return Followed([], conversation, [Raw(item) for _, item in await self.store.items(conversation, owner)])
        if previous is None:
            return Followed()
        chain = ([] if local is None else local.chain(previous)) or await self._chain(previous, owner)
        missing = chain[-1].previous if chain else previous
        if missing is None:
            return Followed(chain)
        if not native:
            # Without its beginning it would be a different conversation.
            raise too_many_responses(LONGEST_CHAIN) if len(chain) > LONGEST_CHAIN else no_previous(missing)
        return Followed(chain, elsewhere={"previous_response_id": missing})

    async def _chain(self, id: str, owner: str) -> list[Kept]:
        """Return the stored responses of a chain; an upstream follows those that it stores itself."""
        chain = [kept for kept in await self.store.chain(id, owner) if kept.response]
        if sum(len(kept.input) + len(kept.response) for kept in chain) > LARGEST_HISTORY:
            raise too_long_a_history()  # bounds its growth and the memory that it takes
        return chain

    async def _resolve_references(self, items: list[Raw], owner: str, *, native: bool) -> list[Raw]:
        """Replace references by the items that they name, if they are stored here.

        Only reasoning may be missing, a reported loss. A stateful upstream resolves other references itself.
        """
        answers: dict[str, dict[str, Raw]] = {}  # each is read once, however many references name its items
        resolved = []
        for place, item in enumerate(items):
            fields = _object(item)
            if fields.get("type") != Raw(_encode(_REFERENCE)):
                resolved.append(item)
                continue
            id = str(msgspec.json.decode(fields.get("id", b'""')))
            known = _ITEM_IDS.fullmatch(id)
            if known and known[1] not in answers:
                if len(answers) > LONGEST_CHAIN:
                    raise too_many_responses(LONGEST_CHAIN)
                answers[known[1]] = await self._items_of_answer(known[1], owner)
            made = answers[known[1]].get(id) if known else None
            if made is None and not native and not id.startswith(_THOUGHT):
                raise no_item(id, place)
            resolved.append(item if made is None else made)
        return resolved

    async def _items_of_answer(self, shared: str, owner: str) -> dict[str, Raw]:
        """Return the items of the answer whose item ids share this part, by id. See `Keeping.keep`."""
        pointer = await self.store.find_response(shared, owner)
        if pointer is None or pointer.previous is None:
            return {}
        kept = await self.store.find_response(pointer.previous, owner)
        if kept is None or not kept.response:
            return {}
        items = _array(bytes(_object(kept.response)["output"]))
        return {str(msgspec.json.decode(_object(item).get("id", b'""'))): item for item in items}

    async def _fail_if_orphaned(self, kept: Kept) -> Kept:
        """Mark a response as failed if the gateway that worked on it has died."""
        if (
            kept.id in self._working
            or _status(kept) != "in_progress"
            or await self.store.age(kept.id) < _ORPHANED_SECONDS
        ):
            return kept
        failed = _as_failed(kept)
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
        kept = await self.store.find_response(id, owner)
        if kept is not None and (kept.upstream or kept.response):
            return Noted(kept.upstream, owner) if kept.upstream else await self._fail_if_orphaned(kept)
        noted = self._noted.get(id)
        if noted is None or noted.owner != owner:
            raise not_found(id)
        return noted


def _is_local(known: Peek) -> bool:
    """Whether the upstream need not store it: only this connection can continue it, or nothing is generated."""
    return known.store is False or known.generate is False


def _stateless(fields: Mapping[str, Raw], model: str) -> dict[str, Any]:
    include = msgspec.json.decode(fields.get("include", b"null")) or []
    if REASONING_MODELS.match(model) is None or _ENCRYPTED in include:
        return {"store": False}
    return {"store": False, "include": [*include, _ENCRYPTED]}


def _now() -> int:
    return int(time.time())


def _as_failed(kept: Kept) -> Kept:
    error = {"code": "server_error", "message": "The gateway process that worked on this response has ended."}
    return structs.replace(kept, response=_encode({**_object(kept.response), "status": "failed", "error": error}))


async def _cancel_when_requested(background: Background, task: asyncio.Task[None]) -> None:
    while not await background.was_cancelled():  # noqa: ASYNC110 - another process changes it
        await asyncio.sleep(_CHECK_SECONDS)
    task.cancel()


def _status(kept: Kept) -> object:
    return msgspec.json.decode(kept.response).get("status")


def _items(given: Raw | None) -> list[Raw]:
    """Return the input as items; a bare text becomes one message of the user."""
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


def input_items(chain: list[Kept], parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return a page of the input items."""
    whole = [*_context(chain[1:]), *_array(chain[0].input)]
    return page(with_ids(whole, chain[0].id.removeprefix("resp_")), parameters)
