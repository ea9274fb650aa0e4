"""Messages streams, both ways; encoding is in stream_encoding.py.

`content_block_start`, `_delta` and `_stop` name their block by index. Text, thinking and calls are passed on as they
arrive; every other block is collected and emitted as one part. The end of a text or a call is delayed: the next event
may still carry its signature, and only the stop reason says whether a last call was cut. `message_stop` is the only
clean end of this wire.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from dragoman.codecs.anthropic_messages import foreign_signatures
from dragoman.codecs.anthropic_messages.caching import FAMILY, NULL
from dragoman.codecs.anthropic_messages.errors import decode_error
from dragoman.codecs.anthropic_messages.messages import decode_call, name_server_result
from dragoman.codecs.anthropic_messages.parts import decode_citation, decode_part, decode_text
from dragoman.codecs.anthropic_messages.response import decode_finish, decode_usage
from dragoman.codecs.anthropic_messages.stream_encoding import EventEncoder
from dragoman.codecs.anthropic_messages.stream_wire import (
    BlockDelta,
    BlockStart,
    BlockStop,
    CitationDelta,
    Ending,
    ErrorEvent,
    InputDelta,
    LooseEvent,
    MessageDelta,
    MessageStart,
    MessageStop,
    Opening,
    Ping,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
    WireEvent,
)
from dragoman.codecs.anthropic_messages.wire import (
    Block,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from dragoman.codecs.arguments import EMPTY_OBJECT, UNPARSED_KEY, unwrap_fragment
from dragoman.codecs.block_streams import BlockDecoder, DeferredEnd, Incoming
from dragoman.codecs.framing import ServerSentEvents
from dragoman.codecs.reading import MALFORMED, WireReader
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
    Opaque,
    PartDelta,
    PartEnd,
    Reasoning,
    Signature,
    StreamStart,
    UsageUpdate,
)
from dragoman.ir.notes import REFUSED, Extra, family_notes
from dragoman.ir.values import encode_json, exact_json, parse_json

__all__ = ["EventEncoder", "PayloadDecoder"]

SOURCE = "anthropic-messages stream"

_decode_event = msgspec.json.Decoder(WireEvent).decode
_loose = msgspec.json.Decoder(LooseEvent)
_entries = msgspec.json.Decoder(dict[str, Raw]).decode
_blocks: WireReader[Block] = WireReader(Block, SOURCE)  # type: ignore[arg-type]

_OPENING_KEYS = frozenset(Opening.__struct_encode_fields__)
_APART: frozenset[type] = frozenset({Opening})
_OVERWRITING = {"compaction_delta", "signature_delta"}
"""Deltas whose value replaces the block's; the text of any other delta is appended."""

# ── states ────────────────────────────────────────────────────────────────────────────────────────────────────

BEFORE, OPEN, ENDING, ENDED = "before message_start", "in the message", "after the stop reason", "ended"

MOVES: Moves = {
    (BEFORE, "message_start"): OPEN,
    (BEFORE, "error"): ENDED,
    (OPEN, "message_start"): OPEN,
    (OPEN, "content_block_start"): OPEN,
    (OPEN, "content_block_delta"): OPEN,
    (OPEN, "content_block_stop"): OPEN,
    (OPEN, "message_delta"): OPEN,
    (OPEN, "stop_reason"): ENDING,
    (OPEN, "message_stop"): ENDED,
    (OPEN, "error"): ENDED,
    (ENDING, "message_start"): ENDING,
    (ENDING, "content_block_stop"): ENDING,
    (ENDING, "message_delta"): ENDING,
    (ENDING, "stop_reason"): ENDING,
    (ENDING, "message_stop"): ENDED,
    (ENDING, "error"): ENDED,
}


# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class _Incoming(Incoming):
    wire: Any
    kind: type[Any]
    payload: bytes
    """The event that started the block, or the block alone."""
    signature: Any = None
    changes: dict[str, list[str] | Raw]

    def __init__(self, wire: Any, kind: type[Any], payload: bytes) -> None:
        self.pieces = []
        self.wire = wire
        self.kind = kind
        self.payload = payload
        self.changes = {}

    @property
    def raw(self) -> Raw:
        """The block as its start event gave it."""
        entries = _entries(self.payload)
        return entries.get("content_block") or Raw(self.payload)

    @property
    def begun(self) -> bool:
        started = self.part_index >= 0 and self.kind is not ToolUseBlock
        return bool(self.pieces or self.changes or self.citations or started)

    @property
    def is_whole(self) -> bool:
        """Whether the block is complete even if not stopped: it came at once, or is thinking with only a signature."""
        return self.kind not in _FLOWING or (
            self.kind is ThinkingBlock and self.part_index < 0 and bool(self.signature)
        )


class PayloadDecoder(BlockDecoder[_Incoming, ThinkingBlock]):
    """Decodes the payloads of one stream into events."""

    source: ClassVar[str] = SOURCE
    family: ClassVar[str] = FAMILY
    moves: Moves = MOVES

    _state: str = BEFORE
    _message_id: str | None = None
    _ending: Ending = Ending()
    _usage: Raw | None = None
    _flow_kind: type[Any] = Ping

    @staticmethod
    def framing(limits: Limits) -> ServerSentEvents:
        return ServerSentEvents(limits, SOURCE)

    def decode(self, payload: bytes) -> list[AnyEvent]:
        try:
            event = _decode_event(payload)
        except MALFORMED as error:
            odd = self._decode_odd(payload, error)
            if odd is None:
                return self._take()
            event = odd
        if type(event) is BlockDelta and event.index == self._flowing:
            delta: Any = event.delta
            if type(delta) is self._flow_kind:
                return [PartDelta(self._flow_part, delta.text)] if delta.text else []
        if self._state is ENDED:
            return []  # events after message_stop are ignored
        try:
            _ON_EVENT[type(event)](self, event, payload)
        except MALFORMED as error:
            raise not_an_event(error, SOURCE) from error
        events, self._events = self._events, []
        return events

    def _decode_odd(self, payload: bytes, error: Exception) -> WireEvent | None:
        """Decode an event that does not fit its type: unknown events and deltas are accepted, others are errors.

        Returns an event that fits without its unknown keys, and None if the event was handled here.
        """
        if self._state is ENDED or payload[:6] == b"[DONE]":
            return None  # gateways that speak several formats send it here too
        if has_unknown_key(error):
            try:
                payload = take_unknown_keys(payload, WireEvent, self._late, _APART)
                known: WireEvent = _decode_event(payload)
            except MALFORMED as another:
                error = another
            else:
                return known
        fault = not_an_event(error, SOURCE)
        if not isinstance(error, msgspec.ValidationError):
            raise fault from error
        try:
            event = _loose.decode(payload)
        except MALFORMED as wrong:
            raise (fault if isinstance(wrong, msgspec.ValidationError) else not_an_event(wrong, SOURCE)) from error
        try:
            is_known = self._on_loose(event, payload, fault)
        except MALFORMED as wrong:
            raise not_an_event(wrong, SOURCE) from wrong
        if not is_known and (event.type is None or event.type in _KNOWN_EVENTS):
            raise fault from error
        return None

    def _on_loose(self, event: LooseEvent, payload: bytes, fault: DecodeError) -> bool:
        """Decode an event with keys that its type does not have; return False if it is not such an event."""
        kind, index, delta = event.type, event.index, event.delta
        if kind == "content_block_delta" and index is not None and delta is not None:
            self._on_other_delta(index, delta, fault)
        elif kind == "content_block_start" and index is not None and event.content_block is not UNSET:
            self._on_block_start(BlockStart(index, _blocks.read(bytes(event.content_block))), payload)
        elif kind == "message_start" and event.message is not None:
            message, extra = _split_keys(event.message, _OPENING_KEYS)
            self._open(msgspec.json.decode(message, type=Opening), extra)
        elif kind is None and event.error is not UNSET:
            self._on_error(None, payload)
        else:
            return False
        return True

    def close(self) -> list[AnyEvent]:
        """Handle the end of bytes: only message_stop ends this wire cleanly."""
        if self._state is not ENDED:
            self._state = ENDED
            self._break_off(Failure("truncated", "the stream ended without message_stop"))
        return self._take()

    # ── the message ──

    def _on_message_start(self, event: MessageStart, payload: bytes) -> None:  # noqa: ARG002
        self._open(event.message, {})

    def _open(self, message: Opening, extra: Extra) -> None:
        again = self._state is not BEFORE
        self._move("message_start" if not again or message.id == self._message_id else "another message_start")
        if again:
            return
        self._message_id = message.id
        self._ending = Ending(message.stop_reason, message.stop_sequence, message.stop_details)
        self._events.append(StreamStart(message.id, message.model, metadata={FAMILY: extra}))
        self._count(message.usage)
        for number, block in enumerate(message.content or ()):
            self._start_block(-2 - number, _blocks.read(bytes(block)), bytes(block))
            self._end_block(-2 - number)

    def _count(self, usage: Raw | UnsetType) -> None:
        """Update the counts: they are totals, so later ones replace earlier ones, and those not repeated stay."""
        if usage is UNSET or usage == NULL:
            return
        if self._usage is not None:
            known: dict[str, Raw] = _entries(self._usage)
            counts: dict[str, Raw] = _entries(usage)
            for key, value in counts.items():
                if value != NULL or key not in known:
                    known[key] = value
            usage = Raw(encode_json(known))
        self._usage = usage
        self._events.append(UsageUpdate(decode_usage(usage)))

    def _on_message_delta(self, event: MessageDelta, payload: bytes) -> None:  # noqa: ARG002
        ending, known = event.delta, self._ending
        if ending is not None:
            self._ending = Ending(
                ending.stop_reason or known.stop_reason,
                ending.stop_sequence or known.stop_sequence,
                known.stop_details if ending.stop_details is UNSET else ending.stop_details,
            )
            if ending.container is not UNSET:
                self._late["container"] = ending.container
        if event.context_management is not UNSET:
            self._late["context_management"] = event.context_management
        if self._ending.stop_reason is None:
            self._move("message_delta")
        else:
            self._move("stop_reason")
            self._end_blocks()
        self._count(event.usage)

    def _on_message_stop(self, event: MessageStop, payload: bytes) -> None:  # noqa: ARG002
        self._move("message_stop")
        self._end_blocks()
        self._emit_finish()

    def _finish(self) -> Finish:
        ending = self._ending
        finish = decode_finish(ending.stop_reason, self._calls, ending.stop_sequence, ending.stop_details)
        if finish is None or finish.explanation is None:
            return finish or Finish("unknown")
        notes = {**family_notes(FAMILY, finish.metadata), REFUSED: Raw(encode_json(finish.explanation))}
        return replace(finish, metadata={FAMILY: notes})

    def _on_ping(self, event: Ping, payload: bytes) -> None:
        """Ignore the ping."""

    def _on_error(self, event: ErrorEvent | None, payload: bytes) -> None:  # noqa: ARG002
        self._move("error")
        self._break_off(decode_error(payload))

    # ── blocks ──

    def _on_block_start(self, event: BlockStart, payload: bytes) -> None:
        if self._state is not OPEN:
            self._move("content_block_start", about=f" of block {event.index}")
        self._start_block(event.index, event.content_block, payload)

    def _start_block(self, index: int, wire: Any, payload: bytes) -> None:
        running = self._blocks.get(index)
        if running is not None:
            if not running.begun and running.payload == payload:
                return  # the same start event again
            self._end_block(index)
        if self._blocks:
            for other in [key for key, block in self._blocks.items() if block.is_whole]:
                self._end_block(other)
        kind = type(wire)
        block = self._blocks[index] = _Incoming(wire=wire, kind=kind, payload=payload)
        if kind is ThinkingBlock:
            block.signature = wire.signature
            self._flow(index, block, ThinkingDelta(wire.thinking))
            return
        if self._deferred_end is not None:
            self._release()
        if kind is ToolUseBlock:
            self._start_part(block)
        elif kind is TextBlock:
            for citation in wire.citations or ():
                self._cite(block, citation)
            if wire.text:
                self._flow(index, block, TextDelta(wire.text))

    def _on_block_delta(self, event: BlockDelta, payload: bytes) -> None:  # noqa: ARG002
        delta = event.delta
        block = self._block_of_delta(event.index)
        if type(delta) is SignatureDelta and block.kind is ThinkingBlock:
            block.signature = delta.signature
        elif type(delta) is CitationDelta and block.kind is TextBlock:
            self._cite(block, delta.citation)
        elif block.kind not in _FLOWING:
            if type(delta) is InputDelta:
                block.pieces.append(delta.text)
            else:
                _gather(block, _entries(encode_json(delta)))
        elif type(delta) is _FLOWING[block.kind]:
            self._flow(event.index, block, delta)
        else:
            what = f"{delta.__struct_config__.tag} of block {event.index}"
            raise IllegalEvent(event=what, state=f"in a {block.kind.__struct_config__.tag} block", source=SOURCE)

    def _on_other_delta(self, index: int, delta: dict[str, Raw], fault: DecodeError) -> None:
        """Handle a delta of an unknown kind, or one whose text is null."""
        block = self._block_of_delta(index)
        kind = parse_json(delta.get("type", NULL))
        if kind is not None and not isinstance(kind, str):
            raise fault
        if kind in _TEXT_KEYS and bytes(delta.get(_TEXT_KEYS[kind], NULL)) != b"null":
            raise fault
        if block.kind not in _FLOWING:
            _gather(block, delta)

    def _block_of_delta(self, index: int) -> _Incoming:
        if self._state is not OPEN:
            self._move("content_block_delta", about=f" of block {index}")
        return self._open_block(index, "content_block_delta")

    def _on_block_stop(self, event: BlockStop, payload: bytes) -> None:  # noqa: ARG002
        if self._state is not OPEN:
            self._move("content_block_stop", about=f" of block {event.index}")
        self._stop_block(event.index, "content_block_stop")

    def _end(self, block: _Incoming) -> None:
        _END_BLOCK.get(block.kind, PayloadDecoder._end_whole)(self, block)

    # ── parts ──

    def _part_of(self, carrier: ThinkingBlock) -> AnyPart:
        return decode_part(carrier)

    def _flow(self, index: int, block: _Incoming, delta: Any) -> None:
        """Emit a fragment. The first one starts a text or thinking part, as a tagged block is neither."""
        text = delta.text
        if not text:
            return
        if block.part_index < 0:
            self._start_part(block)
        if block.kind is ToolUseBlock and not block.pieces:
            block.pieces.append(text)
            text = unwrap_fragment(text)
        self._events.append(PartDelta(block.part_index, text))
        self._flowing, self._flow_kind, self._flow_part = index, type(delta), block.part_index

    def _cite(self, block: _Incoming, raw: Raw) -> None:
        if block.part_index < 0:
            self._start_part(block)
        block.cite(decode_citation(raw))

    def _start_part(self, block: _Incoming) -> None:
        self._release()
        carrier, self._carrier = self._carrier, None
        signature = None if carrier is None else foreign_signatures.read_tagged(carrier)
        if block.kind is ThinkingBlock:
            self._carrier = carrier
            self._put_carrier_back()
            block.part_index = self._start(Reasoning(""))
        elif block.kind is TextBlock:
            block.signature = signature
            block.part_index = self._start(decode_text(replace(block.wire, text="", citations=UNSET)))
        else:
            call: Any = replace(decode_call(replace(block.wire, input=EMPTY_OBJECT)), arguments=UNSET)
            if carrier is not None and isinstance(signature, Signature):
                signed = foreign_signatures.signed(call, signature, str(carrier.signature))
                if signed is None:  # the tag names another call
                    self._whole(self._part_of(carrier))
                call = signed or call
            block.signature = call.signature
            self._calls.append(call)
            self._names[call.id] = call.name
            block.part_index = self._start(call)

    def _end_text(self, block: _Incoming) -> None:
        empty = block.part_index < 0
        if empty:
            self._put_carrier_back()
            self._start_part(block)
        self._emit_citations(block)
        citations, signature = block.wire.citations, block.signature
        is_spelled = citations is UNSET or block.citations
        notes: Extra = {} if is_spelled else {"~citations": Raw(encode_json(citations))}
        if signature is not None:
            notes |= SIGNED
        end = PartEnd(block.part_index, signature, metadata={FAMILY: notes} if notes else None)
        self._defer(DeferredEnd(end, may_sign=not empty and signature is None))

    def _end_call(self, block: _Incoming) -> None:
        if not block.pieces:
            # No fragment: the input is the one given at the start, and an empty one means no arguments.
            arguments = block.wire.input
            text = "" if arguments is UNSET else bytes(arguments).decode()
            text = "{}" if text in _PLACEHOLDERS else unwrap_fragment(text)
            self._events.append(PartDelta(block.part_index, text))
        self._defer(DeferredEnd(PartEnd(block.part_index), may_sign=block.signature is None, is_call=True))

    def _end_thinking(self, block: _Incoming) -> None:
        flowed = block.part_index >= 0
        wire = ThinkingBlock("..." if flowed else "", block.signature, extra=block.wire.extra)
        tagged = foreign_signatures.read_tagged(wire) if foreign_signatures.is_tagged(block.signature) else None
        if flowed:
            part: Any = decode_part(wire) if tagged is None else tagged
            self._events.append(PartEnd(block.part_index, part.signature, metadata=part.metadata))
        elif isinstance(tagged, Signature):
            self._keep_carrier(wire)
        elif not self._sign_deferred(foreign_signatures.read_trailing(wire)):
            self._whole(decode_part(wire) if tagged is None else tagged)

    def _end_whole(self, block: _Incoming) -> None:
        wire = block.wire
        if block.pieces or block.changes:
            wire = _blocks.read(_rebuilt(block))
        if isinstance(wire, ToolResultBlock):
            self._whole(Opaque(FAMILY, "tool_result", block.raw))
        else:
            self._whole(name_server_result(decode_part(wire), self._names))


_FLOWING: dict[type[Any], type[Any]] = {TextBlock: TextDelta, ThinkingBlock: ThinkingDelta, ToolUseBlock: InputDelta}
_END_BLOCK: dict[type[Any], Callable[[PayloadDecoder, _Incoming], None]] = {
    TextBlock: PayloadDecoder._end_text,
    ThinkingBlock: PayloadDecoder._end_thinking,
    ToolUseBlock: PayloadDecoder._end_call,
}
_ON_EVENT: dict[type[Any], Callable[[PayloadDecoder, Any, bytes], None]] = {
    BlockDelta: PayloadDecoder._on_block_delta,
    BlockStart: PayloadDecoder._on_block_start,
    BlockStop: PayloadDecoder._on_block_stop,
    MessageStart: PayloadDecoder._on_message_start,
    MessageDelta: PayloadDecoder._on_message_delta,
    MessageStop: PayloadDecoder._on_message_stop,
    Ping: PayloadDecoder._on_ping,
    ErrorEvent: PayloadDecoder._on_error,
}
_KNOWN_EVENTS = {kind.__struct_config__.tag for kind in _ON_EVENT}
_TEXT_KEYS = {
    kind.__struct_config__.tag: kind.__struct_encode_fields__[0]
    for kind in (TextDelta, InputDelta, ThinkingDelta, SignatureDelta, CitationDelta)
}
_PLACEHOLDERS = {"", "{}", '""', "null"}


def _split_keys(entries: dict[str, Raw], known: frozenset[str]) -> tuple[bytes, Extra]:
    """Split an object into JSON of the keys that its type has, and its other keys."""
    extra = {key: value for key, value in entries.items() if key not in known}
    return encode_json({key: value for key, value in entries.items() if key in known}), extra


def _gather(block: _Incoming, delta: dict[str, Raw]) -> None:
    """Apply a delta to a block that is emitted as one part: text is appended, any other value replaces."""
    kind = parse_json(delta.pop("type", NULL))
    for key, entry in delta.items():
        value = parse_json(entry)
        if not isinstance(value, str) or kind in _OVERWRITING:
            block.changes[key] = entry
            continue
        pieces = block.changes.get(key)
        if not isinstance(pieces, list):
            before = parse_json(_entries(block.raw).get(key, NULL) if pieces is None else pieces)
            pieces = block.changes[key] = [before] if isinstance(before, str) else []
        pieces.append(value)


def _rebuilt(block: _Incoming) -> bytes:
    """Return the block as it would be in an answer that is not streamed."""
    entries: dict[str, Any] = _entries(block.raw)
    for key, value in block.changes.items():
        entries[key] = "".join(value) if isinstance(value, list) else value
    text = "".join(block.pieces)
    if text:
        held_input = exact_json(text)
        entries["input"] = {UNPARSED_KEY: text} if held_input is None else held_input
    elif block.pieces:
        entries.setdefault("input", EMPTY_OBJECT)
    return encode_json(entries)
