"""Converse streams, both ways; encoding is in stream_encoding.py.

Texts and thoughts have no start event: a block opens with its first delta. Usage follows the stop reason, so the
answer ends with `metadata`, or without it at the end of bytes.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, Raw

from dragoman.codecs.arguments import UNPARSED_KEY, unwrap_fragment
from dragoman.codecs.bedrock_converse import foreign_signatures
from dragoman.codecs.bedrock_converse.errors import ERROR_TYPE, decode_error
from dragoman.codecs.bedrock_converse.frames import CALL, REASONING, TEXT
from dragoman.codecs.bedrock_converse.messages import SERVER_CALL, TYPED, decode_blocks
from dragoman.codecs.bedrock_converse.parts import decode_citation, decode_part
from dragoman.codecs.bedrock_converse.profile import FAMILY
from dragoman.codecs.bedrock_converse.response import FURTHER, decode_finish, decode_usage, is_modelled
from dragoman.codecs.bedrock_converse.stream_encoding import EventEncoder
from dragoman.codecs.bedrock_converse.stream_wire import (
    BlockDelta,
    BlockStart,
    BlockStop,
    Delta,
    LooseEvent,
    MessageStop,
    WireEvent,
)
from dragoman.codecs.bedrock_converse.wire import Block, ReasoningContent, ReasoningText
from dragoman.codecs.block_streams import BlockDecoder, DeferredEnd, Incoming
from dragoman.codecs.framing import AwsEventStream
from dragoman.codecs.ids import is_invented
from dragoman.codecs.reading import MALFORMED, WireReader
from dragoman.codecs.shared_settings import BEDROCK_TIERS_READ, take_tier
from dragoman.codecs.signature_tags import SIGNED
from dragoman.codecs.stream_codec import Moves, not_an_event
from dragoman.codecs.stream_limits import Limits
from dragoman.codecs.unknown_keys import has_unknown_key, take_unknown_keys
from dragoman.errors import DecodeError, IllegalEvent
from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Failure,
    Finish,
    PartDelta,
    PartEnd,
    Reasoning,
    Signature,
    StreamStart,
    Text,
    ToolCall,
    UsageUpdate,
)
from dragoman.ir.notes import MODELLED, Extra
from dragoman.ir.traits import TraitNotes
from dragoman.ir.values import encode_json, exact_json, parse_json

__all__ = ["MOVES", "EventEncoder", "PayloadDecoder"]

SOURCE = "bedrock-converse stream"

_decode_event = msgspec.json.Decoder(WireEvent).decode
_decode_loose = msgspec.json.Decoder(LooseEvent).decode
_entries = msgspec.json.Decoder(dict[str, Raw]).decode
_blocks = WireReader(Block, SOURCE)

BEFORE, OPEN, STOPPED, ENDED = "before messageStart", "in the message", "after messageStop", "after the end"

MOVES: Moves = {
    (BEFORE, "messageStart"): OPEN,
    # Some recorded streams have no messageStart.
    (BEFORE, "contentBlockStart"): OPEN,
    (BEFORE, "contentBlockDelta"): OPEN,
    (BEFORE, "contentBlockStop"): OPEN,
    (BEFORE, "messageStop"): STOPPED,
    (BEFORE, "metadata"): OPEN,
    (BEFORE, "exception"): ENDED,
    (OPEN, "contentBlockStart"): OPEN,
    (OPEN, "contentBlockDelta"): OPEN,
    (OPEN, "contentBlockStop"): OPEN,
    (OPEN, "messageStop"): STOPPED,
    (OPEN, "metadata"): OPEN,
    (OPEN, "exception"): ENDED,
    (STOPPED, "metadata"): ENDED,
    (STOPPED, "exception"): ENDED,
}
"""(state, event) -> next state. After the end everything is ignored."""

_PADDING = "p"
_NOT_KEPT = frozenset({"role", _PADDING})
_FAULTS = ("exception", "error", "failure", "fault")
_WHOLE = "whole"


class _Incoming(Incoming):
    kind: str
    entries: dict[str, Any]
    """For a block that is emitted whole: the keys of its start, and what its deltas added."""
    signature: str = ""
    has_content: bool = False
    """Whether it has text."""

    def __init__(self, kind: str) -> None:
        self.pieces = []
        self.kind = kind
        self.entries = {}


class PayloadDecoder(BlockDecoder[_Incoming, Block]):
    """Decodes the payloads of one stream into events."""

    source: ClassVar[str] = SOURCE
    family: ClassVar[str] = FAMILY
    moves: Moves = MOVES

    _state: str = BEFORE
    _begun: bool = False
    _stop: MessageStop = MessageStop()
    _flow_kind: str = ""

    @staticmethod
    def framing(limits: Limits) -> AwsEventStream:
        return AwsEventStream(limits, SOURCE)

    def decode(self, payload: bytes) -> list[AnyEvent]:
        if self._state is ENDED:
            return []
        try:
            try:
                event = _decode_event(payload)
            except msgspec.ValidationError as error:
                if not has_unknown_key(error):
                    raise
                event = _decode_event(take_unknown_keys(payload, WireEvent, self._late))
            found = event.content_block_delta
            if found is not None:
                if found.content_block_index == self._flowing:
                    delta = found.delta
                    plain = self._flow_kind is TEXT and delta.citation is UNSET
                    text = delta.text if plain else self._fragment(delta)
                    if text is not None:
                        return [PartDelta(self._flow_part, text)] if text else []
                self._on_delta(found, payload)
            else:
                self._handle(event, payload)
        except MALFORMED as error:
            raise not_an_event(error, SOURCE) from error
        events, self._events = self._events, []
        return events

    def _fragment(self, delta: Delta) -> str | None:
        """Return more arguments or reasoning of the running block; None for every other delta."""
        kind, thought = self._flow_kind, delta.reasoning_content
        if kind is TEXT:
            return None
        if kind is CALL:
            return None if delta.tool_use is None else delta.tool_use.input
        return None if thought is None or not thought.signature is thought.redacted_content is None else thought.text

    def _handle(self, event: WireEvent, payload: bytes) -> None:
        if event.content_block_stop is not None:
            self._on_block_stop(event.content_block_stop)
        elif event.content_block_start is not None:
            self._on_block_start(event.content_block_start)
        elif event.message_start is not None:
            self._move("messageStart")
            self._begin(event.message_start)
        elif event.message_stop is not None:
            self._on_message_stop(event.message_stop)
        elif event.metadata is not None:
            self._on_metadata(event.metadata)
        else:
            self._on_other(payload)

    def close(self) -> list[AnyEvent]:
        """Handle the end of bytes. With a stop reason the answer is complete, even if its metadata is missing."""
        if self._state is STOPPED:
            self._emit_finish()
        elif self._state is not ENDED:
            self._break_off(Failure("truncated", "the stream ended without messageStop"))
        self._state = ENDED
        return self._take()

    # ── the message ──

    def _begin(self, entries: Extra | None = None) -> None:
        if not self._begun:
            self._begun = True
            notes = {key: value for key, value in (entries or {}).items() if key not in _NOT_KEPT}
            self._events.append(StreamStart(metadata={FAMILY: notes}))

    def _on_message_stop(self, event: MessageStop) -> None:
        self._move("messageStop")
        self._begin()
        self._stop = event
        further = event.additional_model_response_fields
        if further is not UNSET:
            self._late[(MODELLED if is_modelled(further) else "") + FURTHER] = further
        self._end_blocks()

    def _on_metadata(self, entries: Extra) -> None:
        self._move("metadata")
        self._begin()
        self._late.update({key: value for key, value in entries.items() if key not in {"usage", _PADDING}})
        if "usage" in entries and bytes(entries["usage"]) != b"null":
            usage = take_tier(decode_usage(entries["usage"]), self._late, "serviceTier", BEDROCK_TIERS_READ)
            self._events.append(UsageUpdate(usage))
        if self._state is ENDED:
            self._emit_finish()

    def _finish(self) -> Finish:
        stop = self._stop
        finish = decode_finish(stop.stop_reason, tuple(self._calls), stop.additional_model_response_fields)
        return finish or Finish("unknown")

    def _on_other(self, payload: bytes) -> None:
        """Handle an exception, or ignore an unknown future event."""
        for name, value in _entries(payload).items():
            known = name.lower().endswith(_FAULTS)
            if known or (bytes(value)[:1] == b"{" and "message" in _entries(value)):
                self._move("exception")
                self._break_off(decode_error(bytes(value), None, {ERROR_TYPE: name}))

    # ── blocks ──

    def _move_to_block(self, event: str, index: int) -> None:
        self._move(event, about=f" of block {index}")
        self._begin()

    def _on_block_start(self, event: BlockStart) -> None:
        index = event.content_block_index
        if self._state is not OPEN:
            self._move_to_block("contentBlockStart", index)
        if index in self._blocks or index in self._stopped:
            what = f"contentBlockStart of block {index}"
            raise IllegalEvent(event=what, state="after that block has begun", source=SOURCE)
        if event.start:  # empty ones are recorded: then the first delta shows the kind
            self._start_block(index, event.start)

    def _start_block(self, index: int, start: dict[str, Raw]) -> None:
        if self._deferred_end is not None:
            self._release()
        head = _entries(start["toolUse"]) if "toolUse" in start else None
        if head is None or bytes(head.get("type", b"")) == encode_json(SERVER_CALL):
            block = self._blocks[index] = _Incoming(kind=_WHOLE)
            block.entries = dict(start)
            return
        self._late |= {key: value for key, value in start.items() if key != "toolUse"}
        block = self._blocks[index] = _Incoming(kind=CALL)
        call_id, name = _text_of(head, "toolUseId"), _text_of(head, "name")
        metadata = None
        if head:
            typed = bytes(head.get("type", b"")) == b'"tool_use"'
            metadata = TYPED if typed and len(head) == 1 else {FAMILY: dict(head)}
        self._start_call(block, ToolCall(call_id, name, invented_id=is_invented(call_id), metadata=metadata))

    def _start_call(self, block: _Incoming, call: ToolCall) -> None:
        carrier, self._carrier = self._carrier, None
        signature = None if carrier is None else _read_tagged(carrier)
        signed: Any = foreign_signatures.signed(call, signature) if isinstance(signature, Signature) else call
        if signature is not None:
            block.signature = "carried"
        self._calls.append(signed)
        self._names[call.id] = call.name
        block.part_index = self._start(signed)

    def _on_delta(self, event: BlockDelta, payload: bytes) -> None:
        index, delta = event.content_block_index, event.delta
        if self._state is not OPEN:
            self._move_to_block("contentBlockDelta", index)
        block = self._blocks.get(index)
        kind = _kind_of(delta)
        if block is None:
            if index in self._stopped:
                what = f"contentBlockDelta of block {index}"
                raise IllegalEvent(event=what, state="after that block was stopped", source=SOURCE)
            if kind == CALL:
                what = f"input of block {index}"
                raise IllegalEvent(event=what, state="before that call was started", source=SOURCE)
            block = self._blocks[index] = _Incoming(kind=kind)
        if block.kind == _WHOLE:
            self._gather(block, payload)
        elif block.kind == kind:
            _DELTAS[kind](self, index, block, delta)
        elif kind != _WHOLE:
            what = f"{kind} delta of block {index}"
            raise IllegalEvent(event=what, state=f"in a {block.kind} block", source=SOURCE)

    def _gather(self, block: _Incoming, payload: bytes) -> None:
        """Add a delta to a block that is emitted whole: text is joined, lists are joined, anything else replaces."""
        loose = _decode_loose(payload).content_block_delta
        for key, entry in (loose.delta if loose is not None else {}).items():
            value = parse_json(entry)
            if key == "toolUse" and isinstance(value, dict) and isinstance(value.get("input"), str):
                block.pieces.append(value["input"])
            elif isinstance(value, list):
                block.entries.setdefault("~" + key, []).extend(_items(entry))
            elif isinstance(value, dict):
                before = block.entries.get(key)
                known = {} if before is None else _entries(before)
                block.entries[key] = Raw(encode_json(known | _entries(entry)))
            else:
                block.entries[key] = entry

    def _on_text(self, index: int, block: _Incoming, delta: Delta) -> None:
        if delta.citation is not UNSET:
            if block.part_index < 0:
                self._start_text(block)
            block.cite(decode_citation(delta.citation))
        if not delta.text:
            block.has_content = block.has_content or delta.text is not None
            return
        if block.part_index < 0:
            self._start_text(block)
        block.has_content = True
        self._flow(index, block, delta.text)

    def _on_reasoning(self, index: int, block: _Incoming, delta: Delta) -> None:
        reasoning: Any = delta.reasoning_content
        if reasoning.signature is not None:
            block.signature += reasoning.signature
        if reasoning.redacted_content is not None:
            block.pieces.append(reasoning.redacted_content)
        if reasoning.text:
            if block.part_index < 0:
                self._release()
                self._put_carrier_back()
                block.part_index = self._start(Reasoning(""))
            block.has_content = True
            self._flow(index, block, reasoning.text)

    def _on_input(self, index: int, block: _Incoming, delta: Delta) -> None:
        text = "" if delta.tool_use is None else delta.tool_use.input
        if not text:
            return
        if not block.has_content:
            block.has_content = True
            text = unwrap_fragment(text)
        self._flow(index, block, text)

    def _flow(self, index: int, block: _Incoming, text: str) -> None:
        self._events.append(PartDelta(block.part_index, text))
        self._flowing, self._flow_kind, self._flow_part = index, block.kind, block.part_index

    def _on_block_stop(self, event: BlockStop) -> None:
        index = event.content_block_index
        if self._state is not OPEN:
            self._move_to_block("contentBlockStop", index)
        if index in self._blocks:
            self._end_block(index)

    def _end(self, block: _Incoming) -> None:
        _ENDS[block.kind](self, block)

    # ── parts ──

    def _part_of(self, carrier: Block) -> AnyPart:
        return decode_part(carrier)

    def _start_text(self, block: _Incoming) -> None:
        if self._deferred_end is not None:
            self._release()
        carrier, self._carrier = self._carrier, None
        if carrier is not None:
            signature: Any = _read_tagged(carrier)
            block.pieces.append(signature.family)
            block.entries["signature"] = signature
        block.part_index = self._start(Text(""))

    def _end_text(self, block: _Incoming) -> None:
        empty = not block.has_content and not block.citations
        if block.part_index < 0:
            self._put_carrier_back()
            self._start_text(block)
        self._emit_citations(block)
        signature = block.entries.get("signature")
        notes: Extra = {} if signature is None else dict(SIGNED)
        if block.citations and not block.has_content:
            notes["~content"] = Raw(b'"absent"')
        end = PartEnd(block.part_index, signature, metadata={FAMILY: notes} if notes else None)
        self._defer(DeferredEnd(end, may_sign=not empty and signature is None))

    def _end_call(self, block: _Incoming) -> None:
        if not block.has_content:
            # Empty input streams as nothing or "": it means no arguments.
            self._events.append(PartDelta(block.part_index, "{}"))
        self._defer(DeferredEnd(PartEnd(block.part_index), may_sign=not block.signature, is_call=True))

    def _end_reasoning(self, block: _Incoming) -> None:
        flowed = block.part_index >= 0
        wire = ReasoningContent(ReasoningText("..." if flowed else "", block.signature or UNSET))
        if block.pieces and not flowed and not block.signature:
            wire = ReasoningContent(redacted_content="".join(block.pieces))
        whole = Block(reasoning_content=wire)
        tagged = _read_tagged(whole)
        if flowed:
            part: Any = decode_part(whole) if not isinstance(tagged, Reasoning) else tagged
            self._events.append(PartEnd(block.part_index, part.signature, metadata=part.metadata))
        elif isinstance(tagged, Signature):
            self._keep_carrier(whole)
        elif not self._sign_deferred(_trailing(whole)):
            self._whole(decode_part(whole) if tagged is None else tagged)

    def _end_whole(self, block: _Incoming) -> None:
        notes = TraitNotes()
        notes.call_names = self._names
        parts = decode_blocks([_blocks.read(_rebuilt(block))], notes, self._names, "assistant")
        for part in parts:
            self._whole(part)


_items = msgspec.json.Decoder(list[Raw]).decode
_DELTAS: dict[str, Any] = {
    TEXT: PayloadDecoder._on_text,
    REASONING: PayloadDecoder._on_reasoning,
    CALL: PayloadDecoder._on_input,
}
_ENDS: dict[str, Any] = {
    TEXT: PayloadDecoder._end_text,
    REASONING: PayloadDecoder._end_reasoning,
    CALL: PayloadDecoder._end_call,
    _WHOLE: PayloadDecoder._end_whole,
}


def _text_of(head: dict[str, Raw], key: str) -> str:
    """Remove and return a required member of a call from its start."""
    raw = head.pop(key, None)
    value = None if raw is None else parse_json(raw)
    if isinstance(value, str):
        return value
    got = "nothing" if raw is None else type(value).__name__
    raise DecodeError(path=f"$.start.toolUse.{key}", expected="str", got=got, source=SOURCE)


def _kind_of(delta: Delta) -> str:
    if delta.text is not None or delta.citation is not UNSET:
        return TEXT
    if delta.tool_use is not None:
        return CALL
    return _WHOLE if delta.reasoning_content is None else REASONING


def _read_tagged(block: Block) -> Reasoning | Text | Signature | None:
    content = block.reasoning_content
    if content is UNSET or content.reasoning_text is UNSET:
        return None
    return foreign_signatures.read_tagged(content.reasoning_text)


def _trailing(block: Block) -> Signature | None:
    content: Any = block.reasoning_content
    return None if content.reasoning_text is UNSET else foreign_signatures.read_trailing(content.reasoning_text)


def _rebuilt(block: _Incoming) -> bytes:
    """Return the block as it would be in an answer that is not streamed."""
    entries: dict[str, Any] = {key: value for key, value in block.entries.items() if key[:1] != "~"}
    for key, value in entries.items():
        gathered = block.entries.get("~" + key)
        if gathered is not None:
            # Parts of a result come as lists; they are its content.
            entries[key] = _entries(value) | {"content": gathered}
    text = "".join(block.pieces)
    if "toolUse" in entries:
        held_input = exact_json(text or "{}")
        entries["toolUse"] = _entries(entries["toolUse"]) | {
            "input": Raw(encode_json({UNPARSED_KEY: text})) if held_input is None else held_input
        }
    return encode_json(entries)
