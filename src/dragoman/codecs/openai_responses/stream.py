"""Responses streams, both ways; encoding is in stream_encoding.py.

Events name their item by `output_index`; ids cannot be trusted, as proxies make new ones for every event. Text,
reasoning and arguments are passed on as they arrive; every other item is emitted as a whole when it is done. An `added`
event is provisional: name and id of a call are taken from it, everything else from `output_item.done`, or from the
output of the last event if an item was never done. The end of a text or a call is delayed: the next item may still
carry its signature, and only the last event says whether a last call was cut. Only `response.completed`, `.incomplete`
and `.failed` end this wire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from dragoman.codecs.framing import ServerSentEvents
from dragoman.codecs.logprobs import convert_tokens, read_tokens, with_logprobs_noted
from dragoman.codecs.openai_responses import foreign_signatures
from dragoman.codecs.openai_responses.errors import decode_failure
from dragoman.codecs.openai_responses.hosted_tools import HOSTED
from dragoman.codecs.openai_responses.items import (
    INCOMPLETE,
    STATUS,
    SUMMARY_BREAK,
    qualified_name,
    with_content_left_out,
)
from dragoman.codecs.openai_responses.messages import MessageDecoder, read_item
from dragoman.codecs.openai_responses.parts import CITATIONS, NULL
from dragoman.codecs.openai_responses.profile import FAMILY
from dragoman.codecs.openai_responses.response import NO_OUTPUT, decode_finish, decode_usage, metadata_of
from dragoman.codecs.openai_responses.server_items import OUTCOME, read_head
from dragoman.codecs.openai_responses.stream_encoding import EventEncoder
from dragoman.codecs.openai_responses.stream_wire import (
    DELTA_KINDS,
    SILENT,
    ArgumentsDelta,
    ArgumentsDone,
    Completed,
    Created,
    Delta,
    Incomplete,
    InProgress,
    InputDelta,
    ItemAdded,
    ItemDone,
    OtherEvent,
    PartAdded,
    PartHead,
    ReasoningDelta,
    SummaryDelta,
    TextDelta,
    TextDone,
    WireEvent,
)
from dragoman.codecs.openai_responses.wire import Item, ResponsesAnswer
from dragoman.codecs.reading import MALFORMED, WireReader
from dragoman.codecs.shared_settings import OPENAI_TIERS_READ, take_tier
from dragoman.codecs.stream_codec import EventDecoder, Moves, not_an_event
from dragoman.codecs.stream_limits import Limits
from dragoman.codecs.unknown_keys import has_unknown_key, take_unknown_keys
from dragoman.errors import DecodeError, IllegalEvent
from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Citation,
    Failure,
    Finished,
    LogprobsDelta,
    Metadata,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
    Refusal,
    StreamFailed,
    StreamStart,
    Text,
    ToolCall,
    UsageUpdate,
)
from dragoman.ir.notes import CLIENT_ITEM, CORRECTED, WITHIN, Extra, family_notes, inner_extra, with_notes
from dragoman.ir.values import encode_json, exact_object, parse_json

__all__ = ["EventEncoder", "PayloadDecoder"]

SOURCE = "openai-responses stream"

_decode_event = msgspec.json.Decoder(WireEvent).decode
_others = msgspec.json.Decoder(OtherEvent)
_part_heads = msgspec.json.Decoder(PartHead)
_answers = WireReader(ResponsesAnswer, SOURCE)

# ── states ────────────────────────────────────────────────────────────────────────────────────────────────────

BEFORE, OPEN, ENDED = "before the first event", "in the answer", "ended"

MOVES: Moves = {
    (BEFORE, "response.created"): OPEN,
    # A resumed stream begins in the middle.
    (BEFORE, "item event"): OPEN,
    (BEFORE, "end"): ENDED,
    (BEFORE, "error"): ENDED,
    (OPEN, "response.created"): OPEN,
    (OPEN, "item event"): OPEN,
    (OPEN, "end"): ENDED,
    (OPEN, "error"): ENDED,
}


# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


_Key: TypeAlias = tuple[type[Any], int, int]
"""Kind of event, item, and position in the item."""


class _Flow:
    """One part while its fragments arrive."""

    part_index: int
    kind: type[AnyPart]
    pieces: list[str]
    cited: int = 0
    told_logprobs: bool = False
    metadata: Metadata | None = None
    """What the end of the part notes, where its item is never done."""
    section: tuple[type[Any], int] = (SummaryDelta, 0)
    """Reasoning: the list its text comes from (summary or reasoning), and the entry in that list."""

    def __init__(self, part_index: int, kind: type[AnyPart]) -> None:
        self.part_index = part_index
        self.kind = kind
        self.pieces = []


class _Slot:
    """One item while its events arrive."""

    index: int
    """The index of its first part, reserved when the item is first seen: items may be done in another order."""
    spare: int = -1
    """The index reserved for its second part, for items that hold a call and its result."""
    kind: str = ""
    call: ToolCall | None = None
    flows: dict[int, _Flow]
    waiting: list[str]
    """Arguments of a call whose name is not known yet."""
    announced: str = ""
    """Arguments with which a call was announced; they count if no others come."""
    final: dict[int, Raw] | None = None
    """The complete texts, by position; they count if the item is never done."""
    done: bool = False
    differs: bool = False
    """The complete arguments of a call are others than those that were streamed."""
    whole: Raw = NULL
    """The item when it was done: the last event repeats it."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.flows = {}
        self.waiting = []


class _DeferredEnd:
    """The end of a part that the next event may still change."""

    end: PartEnd
    part: AnyPart
    call_text: str | None

    def __init__(self, end: PartEnd, part: AnyPart, call_text: str | None) -> None:
        self.end = end
        self.part = part
        self.call_text = call_text


def _item_decoder(seed: str = "") -> MessageDecoder:
    return MessageDecoder(seed=seed, answering=True)


class PayloadDecoder(EventDecoder):
    """Decodes the payloads of one stream into events."""

    source: ClassVar[str] = SOURCE
    moves: Moves = MOVES

    _events: list[AnyEvent]
    _next_index: int = 0
    _state: str = BEFORE
    _seed: str = ""
    _items: MessageDecoder
    _slots: dict[int, _Slot]
    _finished_parts: list[AnyPart]
    _deferred_end: _DeferredEnd | None = None
    _flows: dict[_Key, _Flow]
    """Fast path: parts whose next fragments are passed on directly, until another kind of event comes."""
    _late: Extra
    """Keys of the events that the intermediate format does not model."""
    _indices: dict[str, int]
    """The index of each item by its id, for events that do not have it (MLflow)."""
    _opening: Raw = NULL
    """The answer in the first event: the second one repeats it."""

    def __init__(self) -> None:
        self._late = {}
        self._events = []
        self._items = _item_decoder()
        self._slots = {}
        self._finished_parts = []
        self._flows = {}
        self._indices = {}

    @staticmethod
    def framing(limits: Limits) -> ServerSentEvents:
        return ServerSentEvents(limits, SOURCE)

    def decode(self, payload: bytes) -> list[AnyEvent]:
        try:
            event: Any = _decode_event(payload)
        except MALFORMED as error:
            event = self._decode_odd(payload, error)
            if event is None:
                return self._take()
        kind = type(event)
        handler = _HANDLERS.get(kind)
        if handler is None:
            text = event.delta
            flow = self._flows.get((kind, event.output_index, event.place))
            if flow is not None:
                if not text:
                    return []
                flow.pieces.append(text)
                if event.logprobs:
                    return [PartDelta(flow.part_index, text), *self._tell_logprobs(flow, event.logprobs)]
                return [PartDelta(flow.part_index, text)]
            if self._state is not ENDED and text:
                self._on_delta(event, text)
            return self._take()
        self._flows.clear()
        if self._state is ENDED:
            return []  # events after the last one are ignored
        try:
            handler(self, event)
        except MALFORMED as fault:
            raise not_an_event(fault, SOURCE) from fault
        return self._take()

    def close(self) -> list[AnyEvent]:
        """Handle the end of bytes: only a last event ends this wire cleanly."""
        self._flows.clear()
        if self._state is not ENDED:
            self._break_off(Failure("truncated", "the stream ended without response.completed"))
        return self._take()

    def _take(self) -> list[AnyEvent]:
        events, self._events = self._events, []
        return events

    def _move(self, event: str, *, about: str = "") -> None:
        before = self._state
        super()._move(event, about=about)
        if before is BEFORE and event == "item event":
            self._events.append(StreamStart())

    def _decode_odd(self, payload: bytes, error: Exception) -> Any:
        """Return an event that fits its type without its unknown keys; decode any other, and return None."""
        if has_unknown_key(error) and self._state is not ENDED:
            try:
                return _decode_event(take_unknown_keys(payload, WireEvent, self._late))
            except MALFORMED as another:
                error = another
        self._flows.clear()
        self._decode_other(payload, error)
        return None

    def _decode_other(self, payload: bytes, error: Exception) -> None:
        if self._state is ENDED:
            return  # events after the last one are ignored
        if payload.startswith(b"[DONE]"):
            self._break_off(Failure("truncated", "the stream ended without response.completed"))
            return
        try:
            event = self._read_other(payload)
            handler = _ON_OTHER.get(event.type or "")
            if handler is not None:
                handler(self, event)
            elif event.type == "error" or (event.type is None and event.error is not UNSET):
                self._on_error(event, payload)
            elif event.type is None:
                raise not_an_event(error, SOURCE) from error
        except MALFORMED as fault:
            raise not_an_event(fault, SOURCE) from fault

    def _read_other(self, payload: bytes) -> OtherEvent:
        try:
            return _others.decode(payload)
        except msgspec.ValidationError as error:
            if not has_unknown_key(error):
                raise
        return _others.decode(take_unknown_keys(payload, OtherEvent, self._late))

    # ── the answer ──

    def _on_created(self, event: Created | OtherEvent) -> None:
        if event.response is UNSET:
            self._move("response.created")
            return
        self._opening = event.response
        self._open(_answers.read(event.response))

    def _on_in_progress(self, event: InProgress) -> None:
        """Note what the first event did not say; nearly always, this is nothing."""
        if event.response is UNSET or event.response == self._opening:
            return
        try:
            self._note(_answers.read(event.response).extra)
        except DecodeError:
            return  # nothing else in it is read

    def _on_silent(self, event: Any) -> None:
        """Ignore an event that adds nothing."""

    def _open(self, answer: ResponsesAnswer) -> None:
        again = self._state is not BEFORE
        self._move("response.created")
        self._note(answer.extra)
        if again:
            return
        self._seed = answer.id or ""
        self._items = _item_decoder(self._seed)
        created = None if answer.created_at is UNSET else parse_json(answer.created_at)
        whole = int(created) if isinstance(created, int | float) else None
        self._events.append(StreamStart(answer.id, answer.model, whole))

    def _note(self, extra: Extra | UnsetType) -> None:
        """Keep keys that the intermediate format does not model."""
        if extra is not UNSET:
            self._late |= {key: value for key, value in extra.items() if bytes(value) != b"null"}

    def _on_completed(self, event: Completed) -> None:
        self._close(event.response, "completed")

    def _on_incomplete(self, event: Incomplete) -> None:
        self._close(event.response, "incomplete")

    def _on_other_end(self, event: OtherEvent) -> None:
        self._close(event.response, str(event.type).removeprefix("response."))

    def _close(self, response: Raw | UnsetType, ended: str) -> None:
        if response is UNSET:
            raise DecodeError(path="$.response", expected="the response", got="nothing", source=SOURCE)
        wire = _answers.read(response)
        if self._state is BEFORE:
            self._open(wire)
        status = wire.status or ended
        if status in _NOT_ENDED:  # some gateways repeat the response of the first event
            status = ended
        failed = ended == "failed" or status in {"failed", "cancelled"}
        if not failed:
            self._backfill(wire.output or [])
        cut = status == "incomplete"
        self._end_slots(incomplete=failed or cut)
        finish = decode_finish(status, wire.incomplete_details, tuple(self._finished_parts))
        self._flush(cut=finish.reason == "length")
        self._note_repeated(wire.output or [])
        notes = self._notes(wire)
        if wire.usage is not UNSET and bytes(wire.usage) != b"null":
            usage = HOSTED.count_searches(decode_usage(wire.usage), wire.tool_usage)
            self._events.append(UsageUpdate(take_tier(usage, notes, "service_tier", OPENAI_TIERS_READ)))
        self._move("end")
        if failed:
            error = wire.error
            known = error is not UNSET and bytes(error) != b"null"
            failure = decode_failure(error) if known else Failure("server", f"the response {status}")  # type: ignore[arg-type]
            self._events.append(StreamFailed(failure))
        else:
            self._events.append(Finished(finish, metadata={FAMILY: notes}))

    def _note_repeated(self, output: list[Raw]) -> None:
        """Note what the items of the last event say beyond themselves when they were done."""
        for index, raw in enumerate(output):
            slot = self._slots.get(index)
            if slot is None or slot.whole != raw:
                item = read_item(raw)
                self._note_item(item)
                if slot is not None and item is not None and _differs(item, slot.whole):
                    self._late[CORRECTED] = Raw(b"true")

    def _note_item(self, item: Item | None) -> None:
        if item is None:
            return
        self._note(item.extra)
        for parts in (item.content, item.summary):
            for part in parts if isinstance(parts, list) else ():
                self._note(part.extra)

    def _notes(self, wire: ResponsesAnswer) -> Extra:
        """Return the answer's keys, and those of events that neither the answer nor any of its parts repeats."""
        notes = metadata_of(wire)
        if self._finished_parts:
            notes.pop(NO_OUTPUT, None)  # the ChatGPT backend streams its items and leaves the last output empty
        if self._late:
            finished = [family_notes(FAMILY, getattr(part, "metadata", None)) for part in self._finished_parts]
            repeated = {key for notes_of_part in finished for key in _keys_within(notes_of_part)}
            notes = {**{key: value for key, value in self._late.items() if key not in repeated}, **notes}
        return notes

    def _on_error(self, event: OtherEvent, payload: bytes) -> None:
        """Handle an error, nested on the wire, flat in the specification; `response.failed` after it adds nothing."""
        nested = event.error is not UNSET and bytes(event.error)[:1] in {b"{", b'"'}
        self._break_off(decode_failure(event.error if nested else Raw(payload)))  # type: ignore[arg-type]

    def _break_off(self, failure: Failure) -> None:
        """End open parts as incomplete, then fail."""
        self._flush()
        self._end_slots(incomplete=True)
        self._flush()
        self._move("error")
        self._events.append(StreamFailed(failure))

    def _backfill(self, output: list[Raw]) -> None:
        """Finish items that were never done: the last event has them all, unless a gateway left them out."""
        if sum(slot.done for slot in self._slots.values()) >= len(output):
            return
        call_ids = {part.id for part in self._finished_parts if isinstance(part, ToolCall)}
        for index, raw in enumerate(output):
            slot = self._slots.get(index)
            if slot is not None and slot.done:
                continue
            item = read_item(raw)
            if slot is None and item is not None and item.call_id in call_ids:
                continue
            self._item_done(self._slot(index), raw, index)

    # ── items ──

    def _slot(self, index: int) -> _Slot:
        slot = self._slots.get(index)
        if slot is None:
            slot = self._slots[index] = _Slot(self._next_index)
            self._next_index += 1
        return slot

    def _index_of(self, event: ItemAdded | ItemDone | OtherEvent) -> int:
        """Return the index of the item of an event; without one, its id finds the item, or it is a new one."""
        if event.output_index is not None:
            return event.output_index
        named = event.item_id if type(event) is OtherEvent else UNSET
        if named is UNSET and event.item is not UNSET:
            named = Raw(encode_json(read_head(event.item).id))
        key = "" if named is UNSET else bytes(named).decode()
        index = self._indices.get(key)
        if index is None:
            index = self._indices[key] = max(self._slots, default=-1) + 1
        return index

    def _on_added(self, event: ItemAdded | OtherEvent) -> None:
        self._move("item event")
        if event.item is UNSET or bytes(event.item) == b"null":
            return  # gateways announce items that never come
        item = read_item(event.item)
        if item is None or item.type != "reasoning":
            self._flush()
        index = self._index_of(event)
        slot = self._slot(index)
        if item is not None and item.id is not UNSET:
            self._indices.setdefault(encode_json(item.id).decode(), index)
        self._note_item(item)
        if item is None:
            self._keep_place(slot, event.item)
        if item is None or slot.done:
            return
        slot.kind = str(item.type)
        if slot.kind in _CALLS and item.call_id and item.name:
            slot.announced = _announced_text(item)
            self._start_call(slot, item)

    def _keep_place(self, slot: _Slot, raw: Raw) -> None:
        if slot.spare < 0 and read_head(raw).type in _TWO_PARTS:
            slot.spare = self._next_index
            self._next_index += 1

    def _start_call(self, slot: _Slot, item: Item) -> None:
        """Start a call with name and id, all that counts until it is done: arguments come in deltas, or at the end."""
        if slot.call is not None or not item.call_id or item.name is UNSET:
            return  # without an id, it starts with the done item, which gets an invented one
        slot.call = ToolCall(item.call_id, qualified_name(item), custom=slot.kind == "custom_tool_call")
        flow = self._start(slot, 0, slot.call)
        for text in slot.waiting:
            self._more(flow, text)

    def _start(self, slot: _Slot, place: int, prototype: AnyPart) -> _Flow:
        index = slot.index
        if slot.flows:
            index, slot.spare = slot.spare, -1
        if index < 0:
            index = self._next_index
            self._next_index += 1
        flow = slot.flows[place] = _Flow(index, type(prototype))
        self._events.append(PartStart(index, prototype))
        return flow

    def _more(self, flow: _Flow, text: str) -> None:
        if text:
            flow.pieces.append(text)
            self._events.append(PartDelta(flow.part_index, text))

    def _on_item_done(self, event: ItemDone | OtherEvent) -> None:
        self._move("item event")
        if event.item is UNSET or bytes(event.item) == b"null":
            return
        index = self._index_of(event)
        slot = self._slot(index)
        if not slot.done:
            self._item_done(slot, event.item, index)

    def _item_done(self, slot: _Slot, raw: Raw, index: int) -> None:
        slot.done = True
        slot.whole = raw
        self._flows.clear()
        item = read_item(raw)
        carried = foreign_signatures.read_carrier(item) if item is not None and item.type == "reasoning" else None
        if carried is not None and foreign_signatures.is_behind(carried[0]) and self._deferred_end is not None:
            deferred = self._deferred_end
            notes = {**family_notes(FAMILY, deferred.end.metadata), foreign_signatures.CARRIER_BEHIND: raw}
            deferred.end = replace(deferred.end, signature=carried[1], metadata={FAMILY: notes})
            return
        self._flush()
        if item is not None and item.type in _CALLS:
            slot.kind = str(item.type)
            self._start_call(slot, item)
        parts = [_mark_incomplete(part, slot) for part in self._items.parts_of(raw if item is None else item, index)]
        self._finished_parts += parts
        flows = dict(sorted(slot.flows.items()))
        if any(place >= len(parts) for place in flows):
            slot.flows = flows = dict(enumerate(flows.values()))  # some servers number content parts across items
        for place, part in enumerate(parts):
            self._finish_part(slot, place, part)
        for place, flow in flows.items():
            if place >= len(parts):
                self._events.append(PartEnd(flow.part_index))

    def _finish_part(self, slot: _Slot, place: int, part: AnyPart) -> None:
        """Emit what the done item adds: the rest of the text, citations not yet streamed, signature and metadata."""
        flow = slot.flows.get(place)
        metadata: Metadata | None = getattr(part, "metadata", None)
        prototype = _PROTOTYPES.get(type(part))
        if prototype is None and (not isinstance(part, ToolCall) or CLIENT_ITEM in family_notes(FAMILY, part.metadata)):
            if flow is not None:
                self._events.append(PartEnd(flow.part_index))
            self._whole(slot, place, part)
            return
        if flow is None:
            start = (
                replace(part, arguments=UNSET, arguments_text=None, metadata=None, signature=None)
                if (isinstance(part, ToolCall))
                else prototype
            )
            if isinstance(part, Reasoning) and part.redacted:
                start = Reasoning("", redacted=True)
            flow = self._start(slot, place, start)  # type: ignore[arg-type]
        text = _text_of(part)
        streamed = "".join(flow.pieces)
        if isinstance(part, Reasoning) and flow.section[0] is SummaryDelta and not text.startswith(streamed):
            left_out = with_content_left_out(metadata)
            metadata = _note_correction(metadata, text) if text and left_out is metadata else left_out
        elif _is_corrected(slot, place, part, text, streamed):
            metadata = _note_correction(metadata, text)
        if text.startswith(streamed):
            self._more(flow, text[len(streamed) :])
        if isinstance(part, Text):
            for citation in part.citations[flow.cited :]:
                self._events.append(PartDelta(flow.part_index, "", citation))
            metadata = self._finish_logprobs(flow, metadata)
        signature = getattr(part, "signature", None)
        incomplete = isinstance(part, ToolCall) and part.incomplete
        end = PartEnd(flow.part_index, signature, incomplete, metadata)
        self._flush()
        if isinstance(part, Text | ToolCall):
            self._deferred_end = _DeferredEnd(
                end, part, _text_of(part) if isinstance(part, ToolCall) and not part.custom else None
            )
        else:
            self._events.append(end)

    def _finish_logprobs(self, flow: _Flow, metadata: Metadata | None) -> Metadata | None:
        """Emit the item's log probabilities if its deltas had none: some servers send them only here."""
        tokens = read_tokens(family_notes(FAMILY, metadata).get("logprobs"))
        if not tokens:
            return metadata
        if not flow.told_logprobs:
            self._events.append(LogprobsDelta(tokens))
        return with_logprobs_noted(metadata, FAMILY)

    def _whole(self, slot: _Slot, place: int, part: AnyPart) -> None:
        flow = self._start(slot, place, part)
        self._events.append(PartEnd(flow.part_index))

    def _flush(self, *, cut: bool = False) -> None:
        """Emit the delayed end. `cut`: the answer reached its limit, and a call may have broken off."""
        deferred = self._deferred_end
        if deferred is None:
            return
        self._deferred_end = None
        end = deferred.end
        if cut and deferred.call_text and exact_object(deferred.call_text) is None:
            end = replace(end, incomplete=True)
        self._events.append(end)

    def _end_slots(self, *, incomplete: bool) -> None:
        """End the items that were never done: complete if the answer is, otherwise incomplete."""
        self._flows.clear()
        for slot in self._slots.values():
            if slot.done:
                continue
            slot.done = True
            if not incomplete:
                self._add_rest(slot)
            if slot.flows:
                self._flush()
            for flow in slot.flows.values():
                if slot.call is not None:
                    self._finished_parts.append(replace(slot.call, incomplete=slot.differs))
                elif flow.kind is Refusal:
                    self._finished_parts.append(_NEW_PARTS["refusal"])
                self._events.append(PartEnd(flow.part_index, None, incomplete or slot.differs, flow.metadata))

    def _add_rest(self, slot: _Slot) -> None:
        """Add what only other events said of an item that was never done."""
        if slot.call is not None:
            flow = slot.flows[0]
            if not flow.pieces:
                self._more(flow, slot.announced)
            if slot.differs:
                flow.metadata = _note_correction(None, "")
            return
        for place, raw in (slot.final or {}).items():
            text = parse_json(raw)
            if not isinstance(text, str):
                continue
            flow = slot.flows.get(place) or self._start(slot, place, Text(""))
            streamed = "".join(flow.pieces)
            if text.startswith(streamed):
                self._more(flow, text[len(streamed) :])
            elif text:
                flow.metadata = _note_correction(None, text)

    # ── fragments ──

    def _on_delta(self, event: Delta, text: str) -> None:
        self._move("item event")
        self._flush()
        slot = self._slot(event.output_index)
        if slot.done:
            raise IllegalEvent(
                event=str(type(event).__struct_config__.tag), state="after the item was done", source=SOURCE
            )
        kind = type(event)
        flow: _Flow | None
        if kind is ArgumentsDelta or kind is InputDelta:
            slot.kind = slot.kind or ("custom_tool_call" if kind is InputDelta else "function_call")
            flow = slot.flows.get(0)
            if flow is None:
                slot.waiting.append(text)
                return
        elif kind is SummaryDelta or kind is ReasoningDelta:
            self._flows.clear()  # another section of reasoning begins with a break
            flow = self._reasoning_flow(slot, kind, event.place)
            if flow is None:
                return
        else:
            place = event.place
            flow = slot.flows.get(place) or self._start(slot, place, Text("") if kind is TextDelta else Refusal(""))
        self._more(flow, text)
        if event.logprobs:
            self._events += self._tell_logprobs(flow, event.logprobs)
        self._flows[type(event), event.output_index, event.place] = flow

    def _tell_logprobs(self, flow: _Flow, value: Any) -> list[AnyEvent]:
        tokens = convert_tokens(value)
        if not tokens:
            return []
        flow.told_logprobs = True
        return [LogprobsDelta(tokens)]

    def _reasoning_flow(self, slot: _Slot, kind: type[Any], place: int) -> _Flow | None:
        """Return the part for summary or reasoning text, whichever comes first; the sections of either are one text."""
        flow = slot.flows.get(0)
        if flow is None:
            flow = self._start(slot, 0, Reasoning(""))
            flow.section = (kind, place)
            return flow
        section_kind, number = flow.section
        if section_kind is not kind:
            return None
        if place != number:
            flow.section = (kind, place)
            if kind is SummaryDelta and flow.pieces:
                self._more(flow, SUMMARY_BREAK)
        return flow

    def _on_odd_delta(self, event: OtherEvent) -> None:
        """Handle a fragment that is not text: gateways send arguments as an object, and null for an empty one."""
        text = _as_text(event.delta)
        if not text:
            return
        kinds: dict[str, type[Any]] = {str(kind.__struct_config__.tag): kind for kind in DELTA_KINDS}
        kind = kinds[str(event.type)]
        place = event.summary_index if kind is SummaryDelta else event.content_index
        fields = {} if kind in {ArgumentsDelta, InputDelta} else {"place": place or 0}
        self._on_delta(kind(output_index=self._index_of(event), delta=text, **fields), text)

    def _on_arguments_done(self, event: ArgumentsDone) -> None:
        self._all_arguments(event.output_index, event.arguments)

    def _on_other_arguments(self, event: OtherEvent) -> None:
        self._all_arguments(self._index_of(event), _as_text(event.arguments) or _as_text(event.input))

    def _on_text_done(self, event: TextDone) -> None:
        """Keep the complete text, for an item that is never done."""
        slot = self._slots.get(event.output_index)
        if slot is not None and event.text is not UNSET:
            slot.final = {**(slot.final or {}), event.content_index: event.text}

    def _all_arguments(self, index: int, text: str) -> None:
        """Handle the complete arguments, sent again after the deltas; some servers send only these."""
        self._move("item event")
        slot = self._slot(index)
        flow = slot.flows.get(0)
        if slot.done or not text:
            return
        if flow is None:
            slot.waiting = [text]
            return
        streamed = "".join(flow.pieces)
        slot.differs = slot.call is not None and not _repeats(slot.call, text, streamed)
        if text.startswith(streamed):
            self._more(flow, text[len(streamed) :])

    def _on_part_added(self, event: PartAdded) -> None:
        """Start a text, which may stay empty."""
        self._move("item event")
        self._flush()
        slot = self._slot(event.output_index)
        place = event.content_index
        prototype = _NEW_PARTS.get(event.part.type or "")
        if prototype is not None and not slot.done and place not in slot.flows:
            self._start(slot, place, prototype)

    def _on_other_part(self, event: OtherEvent) -> None:
        if event.part is UNSET:
            self._move("item event")
            return
        part = _part_heads.decode(take_unknown_keys(bytes(event.part), PartHead, self._late))
        index = self._index_of(event)
        self._on_part_added(PartAdded(output_index=index, part=part, content_index=event.content_index or 0))

    def _on_annotation(self, event: OtherEvent) -> None:
        self._move("item event")
        slot = self._slots.get(self._index_of(event))
        flow = None if slot is None or slot.done else slot.flows.get(event.content_index or 0)
        if flow is None or flow.kind is not Text or event.annotation is UNSET:
            return
        citation: Citation | None = CITATIONS.read(event.annotation)
        if citation is not None:
            flow.cited += 1
            self._events.append(PartDelta(flow.part_index, "", citation))


_CALLS = frozenset({"function_call", "custom_tool_call"})
_NOT_ENDED = frozenset({"in_progress", "queued"})
_TWO_PARTS = frozenset({*OUTCOME, "web_search_call"})
"""Items that hold a call and its result."""
_PROTOTYPES: dict[type[AnyPart], AnyPart] = {Text: Text(""), Refusal: Refusal(""), Reasoning: Reasoning("")}
_NEW_PARTS: dict[str, AnyPart] = {"output_text": Text(""), "refusal": Refusal("")}
_HANDLERS: Mapping[type[Any], Callable[[PayloadDecoder, Any], None]] = {
    Created: PayloadDecoder._on_created,
    InProgress: PayloadDecoder._on_in_progress,
    Completed: PayloadDecoder._on_completed,
    Incomplete: PayloadDecoder._on_incomplete,
    ItemAdded: PayloadDecoder._on_added,
    ItemDone: PayloadDecoder._on_item_done,
    PartAdded: PayloadDecoder._on_part_added,
    ArgumentsDone: PayloadDecoder._on_arguments_done,
    TextDone: PayloadDecoder._on_text_done,
    **dict.fromkeys(SILENT, PayloadDecoder._on_silent),
}
_ON_OTHER: Mapping[str, Callable[[PayloadDecoder, OtherEvent], None]] = {
    "response.created": PayloadDecoder._on_created,
    "response.completed": PayloadDecoder._on_other_end,
    "response.incomplete": PayloadDecoder._on_other_end,
    "response.failed": PayloadDecoder._on_other_end,
    "response.cancelled": PayloadDecoder._on_other_end,
    "response.output_item.added": PayloadDecoder._on_added,
    "response.output_item.done": PayloadDecoder._on_item_done,
    "response.content_part.added": PayloadDecoder._on_other_part,
    "response.output_text.annotation.added": PayloadDecoder._on_annotation,
    "response.output_text_annotation.added": PayloadDecoder._on_annotation,
    "response.function_call_arguments.done": PayloadDecoder._on_other_arguments,
    "response.custom_tool_call_input.done": PayloadDecoder._on_other_arguments,
} | {str(kind.__struct_config__.tag): PayloadDecoder._on_odd_delta for kind in DELTA_KINDS}
"""Other events hold nothing of the answer, or what their item repeats when it is done."""


def _keys_within(notes: Extra) -> set[str]:
    """Return the keys of a part, and those of the wire objects within it."""
    inner = (inner_extra(notes, key.removeprefix(WITHIN)) for key in notes if key.startswith(WITHIN))
    return {*notes, *(key for extra in inner for key in extra or ())}


def _announced_text(item: Item) -> str:
    """Return the arguments with which a call was announced, usually none."""
    if item.type == "custom_tool_call":
        return "" if item.input is UNSET else item.input
    return item.arguments if type(item.arguments) is str else ""


def _text_of(part: Any) -> str:
    if isinstance(part, ToolCall):
        if part.arguments_text is not None:
            return part.arguments_text
        is_noted = "~arguments" in family_notes(FAMILY, part.metadata)
        return encode_json(part.arguments).decode() if is_noted and part.arguments else ""
    return str(part.text)


def _differs(item: Item, done: Raw) -> bool:
    """Whether an item of the last event says something else than when it was done."""
    before = None if done == NULL else read_item(done)
    return before is not None and before.type == item.type and _words_of(before) != _words_of(item)


def _words_of(item: Item) -> Any:
    contents = item.content if isinstance(item.content, list) else ()
    words = [getattr(part, "text", None) or getattr(part, "refusal", None) for part in contents]
    arguments = exact_object(item.arguments) if type(item.arguments) is str else None
    return words, item.arguments if arguments is None else parse_json(arguments), item.input


def _note_correction(metadata: Metadata | None, text: str) -> Metadata | None:
    return with_notes(FAMILY, metadata, {CORRECTED: Raw(encode_json(text))})


def _is_corrected(slot: _Slot, place: int, part: AnyPart, text: str, streamed: str) -> bool:
    """Whether the item, or the event with the whole text before it, has another text than the one that was streamed.

    An empty text is no correction: some gateways leave the texts of finished items out.
    """
    if isinstance(part, ToolCall):
        return slot.differs or not _repeats(part, text, streamed)
    final = None if slot.final is None or not streamed else slot.final.get(place)
    is_other = not text.startswith(streamed) or (final is not None and parse_json(final) not in (text, "", None))
    return bool(text) and is_other


def _mark_incomplete(part: AnyPart, slot: _Slot) -> AnyPart:
    """Mark a call that must not be run: arguments that were passed on cannot be corrected if others end the call."""
    if type(part) is not ToolCall or part.incomplete:
        return part
    flow = slot.flows.get(0)
    repeats = flow is None or _repeats(part, _text_of(part), "".join(flow.pieces))
    return replace(part, incomplete=True) if is_cut(part) or not repeats else part


def _repeats(call: ToolCall, text: str, streamed: str) -> bool:
    """Whether the complete arguments continue those that were streamed, or are the same in another spelling."""
    if text.startswith(streamed):
        return True
    if call.custom:
        return False
    final, passed_on = exact_object(text), exact_object(streamed)
    return final is not None and passed_on is not None and parse_json(final) == parse_json(passed_on)


def _as_text(value: Any) -> str:
    """Return a text as it is, and an object as its JSON."""
    if value is UNSET or bytes(value) == b"null":
        return ""
    return str(parse_json(value)) if bytes(value)[:1] == b'"' else bytes(value).decode()


def is_cut(call: ToolCall) -> bool:
    return bytes(family_notes(FAMILY, call.metadata).get(STATUS, NULL)) == bytes(INCOMPLETE)
