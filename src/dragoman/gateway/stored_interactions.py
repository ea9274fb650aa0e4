"""The state of the Interactions API, for upstreams without state: interactions are stored and can be continued.

A streamed interaction is stored with its events, so that a client whose connection broke can resume after the last
event that it saw (`GET …?stream=true&last_event_id=…`), even while the interaction is running. Background interactions
are always streamed from the upstream, so that they can be watched; they continue when the client disconnects.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

import msgspec
from msgspec import Raw, Struct, structs

from dragoman.codecs.accumulate import Accumulator
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.routing import Plan
from dragoman.gateway.running_events import EventMemory, RunningEvents
from dragoman.gateway.state.base import Kept, Store, Unavailable
from dragoman.gateway.state_errors import UnknownResponse
from dragoman.gateway.stored_responses import Background, Noted, Responses
from dragoman.ir import Failure
from dragoman.streams import StreamDecoder
from dragoman.translate import encode_response

FORMAT = "gemini-interactions"
_object = msgspec.json.Decoder(dict[str, Raw]).decode
_array = msgspec.json.Decoder(list[Raw]).decode
_encode = msgspec.json.encode
# Keys that concern the state, which the gateway handles.
_OURS = ("previous_interaction_id", "store", "background")
_CONTENTS = frozenset({"text", "image", "audio", "video", "document"})
_STREAM = ".stream"
"""Suffix of an interaction's id under which its events are stored."""
_NOT_FOUND = 404
_BAD_REQUEST = 400
_IN_PROGRESS = frozenset({"in_progress", "queued"})
_LOOKED_AFTER = 0.5
"""Seconds between checks of an interaction that another process runs."""


def no_interaction(id: str) -> UnknownResponse:
    return UnknownResponse(Failure("not_found", f"Interaction {id} was not found.", _NOT_FOUND))


def unknown_event(last_event_id: str) -> UnknownResponse:
    words = f"last_event_id {last_event_id!r} is unknown, or so old that it is no longer held."
    return UnknownResponse(Failure("invalid_request", words, _BAD_REQUEST))


class KeptInteraction:
    """One request whose answer may be stored."""

    def __init__(self, interactions: Interactions, client_request: ClientRequest, owner: str, own: list[Raw]) -> None:
        self.client_request = client_request
        self._interactions = interactions
        self._owner = owner
        self._own_input = own
        self._account = Accumulator()
        self._decoder = StreamDecoder(FORMAT, account=self._account)
        self.running: Running | None = None
        """The events so far, if the interaction is stored."""

    @property
    def stores(self) -> bool:
        return self.client_request.known.store is not False

    @property
    def in_background(self) -> bool:
        return self.client_request.known.background is True and self.stores

    def background(self, model: str) -> Background:
        background = _BackgroundInteraction(self, model)
        self.running = self._interactions.run(self._owner, self._own_input, background.id)
        return background

    def publish(self, out: bytes) -> None:
        self._decoder.feed(out)
        if not self.stores:
            return
        if self.running is None:
            self.running = self._interactions.run(self._owner, self._own_input)
        self.running.events.feed(out)
        self._interactions.show(self.running)

    async def keep(self, response: bytes, *, surely: bool = False) -> bytes:
        """Store the interaction; return what a client without streaming gets, which has no id if it is not stored."""
        fields: dict[str, Any] = _object(response)
        previous = self.client_request.known.previous_interaction_id
        if previous is not None:
            fields["previous_interaction_id"] = previous
        if not self.stores:
            fields.pop("id", None)
            return _encode(fields)
        whole = _encode(fields)
        id = str(msgspec.json.decode(fields["id"]))
        try:
            await self._interactions.store.keep(Kept(id, self._owner, previous, _encode(self._own_input), whole))
        except Unavailable:
            if surely:
                raise
        return whole

    async def keep_streamed(self) -> None:
        """Store the streamed interaction, unless its stream broke off."""
        if self.running is None:
            return
        events, completion = self.running.events, self._account.so_far()
        try:
            if completion.finish is not None and events.id:
                answer = _object(encode_response(completion, FORMAT).content)
                await self.keep(_encode({"object": "interaction", **answer, "id": events.id}))
                await self._keep_events(events)
        finally:
            self.end("cancelled")

    def end(self, status: str) -> None:
        """End the interaction for watching clients, with this status unless its stream had a final event."""
        if self.running is not None:
            self._interactions.end(self.running, status)
            self.running = None

    async def _keep_events(self, events: RunningEvents) -> None:
        """Store the events, unless the first ones were dropped; then the ended stream cannot be resumed."""
        whole = events.whole()
        if whole is not None:
            with suppress(Unavailable):
                await self._interactions.store.keep(Kept(events.id + _STREAM, self._owner, None, b"", whole))

    async def still_kept(self, id: str) -> Kept | None:
        await self._interactions.store.touch(id)
        return await self._interactions.store.find_response(id, self._owner)


class _BackgroundInteraction(Background):
    """An interaction whose id the client gets before the answer exists."""

    def __init__(self, keeping: KeptInteraction, model: str) -> None:
        super().__init__(keeping, model)
        self._interaction = keeping
        self.id = f"v1_{secrets.token_hex(16)}"
        self._promised = {"id": self.id, "object": "interaction", "model": model}

    async def _store_status(
        self, status: str, error: Mapping[str, str] | None = None, *, surely: bool = False
    ) -> bytes:
        more: dict[str, object] = {"status": status} if error is None else {"status": status, "errors": [error]}
        return await self._keeping.keep(_encode({**self._promised, **more}), surely=surely)

    async def completed(self, response: bytes) -> None:  # noqa: ARG002 - the streamed events are stored
        if await self.was_cancelled():
            self._interaction.end("cancelled")
        else:
            await self._interaction.keep_streamed()

    async def failed(self, failure: Failure) -> None:
        await super().failed(failure)
        self._interaction.end("failed")

    async def cancelled(self) -> None:
        await super().cancelled()
        self._interaction.end("cancelled")


class Running(Struct, eq=False):
    """An interaction that runs in this process."""

    owner: str
    input: list[Raw]
    events: RunningEvents

    def so_far(self) -> Kept:
        interaction = {"id": self.events.id, "object": "interaction", "status": "in_progress"}
        return Kept(self.events.id, self.owner, None, _encode(self.input), _encode(interaction))


class Interactions(Responses):
    format: ClassVar[str] = FORMAT

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._running: dict[str, Running] = {}
        self.memory = EventMemory()

    # ── running interactions ──

    def run(self, owner: str, own: list[Raw], id: str = "") -> Running:
        """Register a new interaction; with an id, it can be watched immediately."""
        running = Running(owner, own, RunningEvents(self.memory, id))
        self.show(running)
        return running

    def show(self, running: Running) -> None:
        """Make the interaction available to other requests, once it has an id."""
        if running.events.id:
            self._running[running.events.id] = running

    def end(self, running: Running, status: str) -> None:
        running.events.end(status)
        running.events.release()
        self._running.pop(running.events.id, None)

    def watch(self, kept: Kept) -> RunningEvents | None:
        """Return the events of an interaction, if it runs in this process."""
        running = self._running.get(kept.id)
        return running.events if running is not None and running.owner == kept.owner else None

    async def wait_for_end(self, kept: Kept) -> Kept:
        """Wait until an interaction of another process has ended, and return it."""
        while msgspec.json.decode(kept.response).get("status") in _IN_PROGRESS:
            await asyncio.sleep(_LOOKED_AFTER)
            found = await self.find(kept.id, kept.owner)
            if not isinstance(found, Kept):
                break
            kept = found
        return kept

    # ── stored interactions ──

    async def begin_interaction(self, client_request: ClientRequest, plan: Plan, owner: str) -> KeptInteraction | None:
        """Return the state of a request; None if the upstream keeps it and nothing stored here is continued."""
        known = client_request.known
        native = plan.candidates[0].upstream.channel.provider.format == FORMAT
        previous = known.previous_interaction_id
        chain = [] if previous is None else await self._chain(previous, owner)
        if native and not chain:
            return None
        if previous is not None and not chain:
            raise no_interaction(previous)
        if known.background is True and known.store is False:
            raise UnknownResponse(
                Failure(
                    "invalid_request", "background requires store to be true.", _BAD_REQUEST, parameter="background"
                )
            )
        fields = _object(client_request.body)
        own = _steps(fields.get("input"))
        keeping = KeptInteraction(self, client_request, owner, own)
        # An upstream that is stateful stores what it gets as it would without the gateway.
        left_out = _OURS[:1] if native and not keeping.in_background else _OURS
        sent: dict[str, Any] = {name: value for name, value in fields.items() if name not in left_out}
        if chain:
            sent["input"] = [*_context(chain), *own]
        stream = client_request.stream or keeping.in_background
        if stream:
            sent["stream"] = True
        keeping.client_request = structs.replace(
            client_request,
            body=_encode(sent),
            rewritten=True,
            stream=stream,
            options={"stores": keeping.stores} if stream else {},
            request=None,
        )
        return keeping

    async def find(self, id: str, owner: str) -> Kept | Noted:
        running = self._running.get(id)
        if running is not None and running.owner == owner and id not in self._working:
            return running.so_far()
        try:
            return await super().find(id, owner)
        except UnknownResponse:
            raise no_interaction(id) from None

    async def cancel(self, kept: Kept) -> Kept:
        """Cancel the interaction and return its new state; one that has ended is unchanged."""
        if kept.id in self._running and kept.id not in self._working:
            words = "Only an interaction in the background can be cancelled; this one ends with its connection."
            raise UnknownResponse(Failure("invalid_request", words, _BAD_REQUEST))
        status = msgspec.json.decode(kept.response).get("status")
        return await super().cancel(_as_background(kept)) if status in _IN_PROGRESS else kept

    async def timeline(self, kept: Kept, *, include_input: bool) -> bytes:
        """Return the answer to GET: all steps so far, including those of the user."""
        steps = _context(await self._chain(kept.id, kept.owner) or [kept])
        fields = _object(kept.response)
        if not include_input:
            return _encode({**fields, "steps": steps})
        return _encode({**fields, "steps": steps, "input": Raw(kept.input)})

    async def events_after(self, kept: Kept, last_event_id: str) -> bytes:
        """Return the events of the stream after this one; all of them if no id is given."""
        stored = await self.store.find_response(kept.id + _STREAM, kept.owner)
        events = _whole_stream(kept) if stored is None else stored.response
        if not last_event_id:
            return events
        mark = b'"event_id":' + _encode(last_event_id)
        _, found, rest = events.partition(mark)
        if not found:
            raise unknown_event(last_event_id)
        return rest.partition(b"\n\n")[2]

    async def forget(self, kept: Kept) -> None:
        if kept.id in self._working:
            await self.cancel(kept)
        await self.store.forget(kept.id, kept.owner)
        await self.store.forget(kept.id + _STREAM, kept.owner)


def _as_background(kept: Kept) -> Kept:
    """Mark an unfinished stored interaction as a background one, since only those are stored unfinished."""
    return structs.replace(kept, response=_encode({**_object(kept.response), "background": True}))


def _steps(given: Raw | None) -> list[Raw]:
    """Return the input as steps: a text, a content or a list of contents becomes one step of the user."""
    if given is None:
        return []
    value = bytes(given)
    if value[:1] == b'"':
        return [_user_step([{"type": "text", "text": given}])]
    items = _array(value) if value[:1] == b"[" else [given]
    first = msgspec.json.decode(items[0]) if items else {}
    is_content = isinstance(first, dict) and first.get("type") in _CONTENTS
    return [_user_step(items)] if is_content else items


def _user_step(contents: list[Any]) -> Raw:
    return Raw(_encode({"type": "user_input", "content": contents}))


def _context(chain: list[Kept]) -> list[Raw]:
    steps: list[Raw] = []
    for kept in reversed(chain):
        steps += _array(kept.input)
        answered = _object(kept.response).get("steps")
        steps += [] if answered is None else _array(bytes(answered))
    return steps


def _whole_stream(kept: Kept) -> bytes:
    """Return events for an interaction that was not streamed, with each step complete in its start event."""
    fields: dict[str, Any] = _object(kept.response)
    steps = _array(bytes(fields.pop("steps", b"[]")))
    opening = {name: fields[name] for name in ("id", "object", "model") if name in fields}
    events: list[tuple[str, dict[str, Any]]] = [
        ("interaction.created", {"interaction": {**opening, "status": "in_progress"}})
    ]
    for index, step in enumerate(steps):
        events += [("step.start", {"index": index, "step": step}), ("step.stop", {"index": index})]
    events.append(("interaction.completed", {"interaction": fields}))
    lines = [
        b"event: %b\ndata: %b\n\n" % (name.encode(), _encode({**data, "event_type": name, "event_id": f"e{number}"}))
        for number, (name, data) in enumerate(events, 1)
    ]
    return b"".join(lines) + b"event: done\ndata: [DONE]\n\n"
