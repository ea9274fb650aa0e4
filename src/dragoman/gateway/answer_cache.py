"""The response cache: whole answers, looked up by a request's meaning and not by its bytes.

The key is the request in the intermediate format, without differences of spelling, so a Chat and a Messages client
that ask the same model the same thing share an answer. It is replayed in the client's format, as a stream if the client
asked for one. Only complete answers are kept, never failed, truncated or blocked ones. Off unless configured.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct, structs

from dragoman.codecs.accumulate import Accumulator
from dragoman.codecs.registry import codec
from dragoman.gateway.client_request import ClientRequest, complete_start, signature_filter
from dragoman.gateway.config import CacheTable
from dragoman.gateway.relay import LARGE
from dragoman.gateway.request_records import Record
from dragoman.gateway.routing import Plan
from dragoman.gateway.state.answers import AnswerStore
from dragoman.gateway.state.base import Unavailable
from dragoman.gateway.upstream_calls import encode_answer
from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Completion,
    Finish,
    Finished,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
    Refusal,
    StreamStart,
    Text,
    UsageUpdate,
)
from dragoman.loss import Loss
from dragoman.passes.answers import HiddenReasoning, hides_reasoning
from dragoman.streams import StreamEncoder

Outcome: TypeAlias = Literal["hit", "miss", "bypass"]
_GOOD: frozenset[str] = frozenset({"stop", "tool_calls"})
_VERSION = 1
"""The version of the stored form: a gateway does not use what another version wrote."""
_SPELLING = frozenset({"~max_tokens", "~raw:stream_options", "~input", "~instructions", "~stream"})
"""Notes about how a body spelled something; no answer depends on them. All other notes are part of the key."""
_IGNORED = frozenset({"stream", "origin", "model", "stream_options"})
_DIRECTIVE = re.compile(r"([\w-]+)(?:=\"?(\d+)\"?)?")
_encode = msgspec.json.Encoder(order="deterministic").encode
_builtins = msgspec.json.Decoder().decode


class CachedAnswer(Struct, frozen=True, kw_only=True):
    completion: Completion
    upstream: str
    target: str
    created: float
    version: int = _VERSION

    @property
    def age(self) -> int:
        """Seconds since the answer was first given."""
        return max(0, int(time.time() - self.created))


_answer = msgspec.json.Decoder(CachedAnswer).decode


class Lookup(Struct, frozen=True):
    """The result of looking up one request."""

    outcome: Outcome
    key: str = ""
    """The key under which the answer is to be stored; empty if it must not be."""
    answer: CachedAnswer | None = None


class AnswerCache:
    def __init__(self, table: CacheTable, store: AnswerStore, problem: Callable[[str], None]) -> None:
        self._table = table
        self._store = store
        self._problem = problem
        """Called when the store cannot be reached; requests are then answered without it."""

    async def look_up(self, client_request: ClientRequest, plan: Plan, owner: str) -> Lookup:
        wanted = directives(client_request.headers.get("cache-control", ""))
        if "no-store" in wanted:
            return Lookup("bypass")
        owner = "" if self._table.shared else owner
        large = len(client_request.body) > LARGE
        key = (
            await asyncio.to_thread(cache_key, client_request, plan, owner)
            if large
            else cache_key(client_request, plan, owner)
        )
        if key is None:
            return Lookup("bypass")
        if "no-cache" in wanted:
            return Lookup("miss", key)
        found = await self._find(key)
        limit = wanted.get("max-age")
        if found is None or (limit is not None and time.time() - found.created > limit):
            return Lookup("miss", key)
        return Lookup("hit", key, found)

    async def _find(self, key: str) -> CachedAnswer | None:
        try:
            stored = await self._store.find(key)
            found = None if stored is None else _answer(stored)
        except Unavailable as error:
            self._problem(str(error))
            return None
        except msgspec.MsgspecError:  # stored by another version
            return None
        return found if found is not None and found.version == _VERSION else None

    async def keep(self, lookup: Lookup, completion: Completion | None, record: Record) -> None:
        if not lookup.key or completion is None or not is_cacheable(completion):
            return
        answer = CachedAnswer(
            completion=completion, upstream=record.upstream, target=record.target, created=time.time()
        )
        try:
            stored = msgspec.json.encode(answer)
            if len(stored) <= self._table.max_answer:
                await self._store.keep(lookup.key, stored, self._table.seconds)
        except Unavailable as error:
            self._problem(str(error))

    async def close(self) -> None:
        await self._store.close()


def is_cacheable(completion: Completion) -> bool:
    """Whether each candidate ended by itself and nothing in it is truncated."""
    finishes = completion.finishes or (completion.finish,)
    ended = all(one is not None and one.reason in _GOOD for one in finishes)
    return ended and bool(completion.messages) and not completion.withheld_calls


def directives(header: str) -> dict[str, int | None]:
    """Parse `no-store, max-age=60` to a mapping."""
    found = (_DIRECTIVE.fullmatch(one.strip()) for one in header.lower().split(","))
    return {one[1]: None if one[2] is None else int(one[2][:18]) for one in found if one is not None}


# ── keys ──


def cache_key(client_request: ClientRequest, plan: Plan, owner: str) -> str | None:
    """Return a digest of the request and its targets, or None if the request cannot be compared."""
    targets = sorted({(one.upstream.channel.base_url, one.model) for one in plan.candidates})
    try:
        content = _builtins(msgspec.json.encode(client_request.decode()))
    except (msgspec.MsgspecError, RecursionError):
        return None
    body = {name: value for name, value in content.items() if name not in _IGNORED}
    settings = msgspec.to_builtins(plan.settings)
    return hashlib.sha256(_encode([_VERSION, owner, targets, settings, _meaning(body)])).hexdigest()


def _meaning(node: dict[str, Any]) -> dict[str, Any]:
    """Return a request or message without spelling: a text becomes a list of one text, wire notes are left out."""
    if isinstance(node.get("metadata"), dict):
        node = {**node, "metadata": _kept_notes(node["metadata"])}
        if not node["metadata"]:
            del node["metadata"]
    if isinstance(node.get("parts"), str):
        node["parts"] = [{"type": "text", "text": node["parts"]}]
    if "messages" in node:
        node["messages"] = [_meaning(message) for message in node["messages"]]
    return node


def _kept_notes(metadata: Mapping[str, Any]) -> dict[str, Any]:
    kept = {
        family: {name: value for name, value in notes.items() if name not in _SPELLING}
        for family, notes in metadata.items()
    }
    return {family: notes for family, notes in kept.items() if notes}


# ── answers ──


def replay_whole(answer: CachedAnswer, client_request: ClientRequest) -> tuple[bytes, tuple[Loss, ...]]:
    encoded = encode_answer(client_request, answer.completion)[1]
    return encoded.content, encoded.losses


def replay_stream(answer: CachedAnswer, client_request: ClientRequest) -> tuple[bytes, tuple[Loss, ...]]:
    protocol, account = client_request.protocol, Accumulator()
    encoder = StreamEncoder(protocol.format, account=account, **client_request.options)
    if hides_reasoning(client_request.decode(), codec(protocol.format).profile):
        encoder.change_events(HiddenReasoning(encoder.log))
    outgoing = signature_filter(client_request)
    if outgoing is not None:
        encoder.change_events(outgoing)
    out: list[bytes] = []
    for events in stream_events(answer.completion):
        replayed = [complete_start(one, client_request) if isinstance(one, StreamStart) else one for one in events]
        account.add(replayed)
        out.append(encoder.encode(replayed))
    return b"".join([*out, encoder.close()]), encoder.losses


def stream_events(completion: Completion) -> Iterator[list[AnyEvent]]:
    """Yield the answer as stream events, each text in one delta."""
    yield [StreamStart(completion.id, completion.model, completion.created)]
    index = 0
    for candidate, message in enumerate(completion.messages):
        for part in message.parts:
            yield _part_events(index, part, candidate)
            index += 1
    if completion.usage is not None:
        yield [UsageUpdate(completion.usage)]
    yield [Finished(completion.finish or Finish("stop"), completion.finishes[1:])]


def _part_events(index: int, part: AnyPart, candidate: int) -> list[AnyEvent]:
    if not isinstance(part, Text | Reasoning | Refusal) or not part.text:
        return [PartStart(index, part, candidate), PartEnd(index)]
    signature = None if isinstance(part, Refusal) else part.signature
    empty = structs.replace(part, text="")
    citations = part.citations if isinstance(part, Text) else ()
    if isinstance(empty, Text):
        empty = structs.replace(empty, citations=(), signature=None)
    elif isinstance(empty, Reasoning):
        empty = structs.replace(empty, signature=None)
    cited: list[AnyEvent] = [PartDelta(index, "", one) for one in citations]
    return [PartStart(index, empty, candidate), PartDelta(index, part.text), *cited, PartEnd(index, signature)]
