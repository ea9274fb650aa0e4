"""Interactions streams, both ways; encoding is in stream_encoding.py.

`step.start`, `.delta` and `.stop` identify their step by index, and no event has a whole step. Output, thoughts and
calls are emitted while they arrive; every other step is collected and emitted whole. A thought's signature waits for
the part that follows. `interaction.completed` ends an answer, whatever its status; some servers send the last status
and `[DONE]`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from dragoman.codecs.arguments import unwrap_fragment
from dragoman.codecs.block_streams import BlockDecoder, DeferredEnd, Incoming
from dragoman.codecs.framing import ServerSentEvents
from dragoman.codecs.gemini_interactions import foreign_signatures
from dragoman.codecs.gemini_interactions.messages import MessageDecoder
from dragoman.codecs.gemini_interactions.parts import decode_part
from dragoman.codecs.gemini_interactions.profile import FAMILY, STATUSES
from dragoman.codecs.gemini_interactions.response import decode_finish, decode_usage
from dragoman.codecs.gemini_interactions.steps import CITATIONS, ON_CALL, decode_call, decode_other
from dragoman.codecs.gemini_interactions.stream_encoding import EventEncoder
from dragoman.codecs.gemini_interactions.stream_wire import (
    AnnotationDelta,
    ArgumentsDelta,
    Completed,
    Created,
    ErrorEvent,
    LooseEvent,
    Opening,
    SignatureDelta,
    StatusUpdate,
    StepDelta,
    StepSeed,
    StepStart,
    StepStop,
    SummaryContent,
    SummaryDelta,
    TextDelta,
    WireEvent,
)
from dragoman.codecs.gemini_interactions.wire import Content, FunctionCallStep, Step, TextContent
from dragoman.codecs.google_errors import decode_event_error
from dragoman.codecs.google_signatures import GOOGLE, NATIVE_THOUGHT, is_dummy
from dragoman.codecs.reading import MALFORMED, WireReader
from dragoman.codecs.shared_settings import GOOGLE_TIERS_READ, take_tier
from dragoman.codecs.signature_tags import SIGNED
from dragoman.codecs.stream_codec import Moves, not_an_event
from dragoman.codecs.stream_limits import Limits
from dragoman.codecs.text_offsets import TextOffsets
from dragoman.codecs.timestamps import read_time
from dragoman.codecs.unknown_keys import has_unknown_key, take_unknown_keys
from dragoman.codecs.wire_values import Unmodelled
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
    UsageUpdate,
)
from dragoman.ir.values import encode_json, parse_json

__all__ = ["EventEncoder", "PayloadDecoder"]

SOURCE = "gemini-interactions stream"

_decode_event = msgspec.json.Decoder(WireEvent).decode
_loose = msgspec.json.Decoder(LooseEvent)
_entries = msgspec.json.Decoder(dict[str, Raw]).decode
_openings = msgspec.json.Decoder(Opening)
_seeds = msgspec.json.Decoder(StepSeed)
_calls: WireReader[FunctionCallStep] = WireReader(FunctionCallStep, SOURCE)
_contents: WireReader[Any] = WireReader(Content | Unmodelled, SOURCE)  # type: ignore[arg-type]
_steps: WireReader[Any] = WireReader(Step, SOURCE)  # type: ignore[arg-type]

_STEP_KEYS = {
    "model_output": frozenset({"type", "content"}),
    "thought": frozenset({"type", "signature", "summary"}),
}
"""Steps without a node: their parts begin with their first content, so further keys are kept with the answer."""
_OPENING_FIELDS = frozenset({"id", "model", "status", "created", "updated", "usage", "steps", "object"})

# ── states ────────────────────────────────────────────────────────────────────────────────────────────────────

BEFORE, OPEN, ENDED = "before interaction.created", "in the interaction", "ended"

MOVES: Moves = {
    (BEFORE, "interaction.created"): OPEN,
    (BEFORE, "interaction.status_update"): BEFORE,
    (BEFORE, "step.start"): OPEN,  # a resumed stream
    (BEFORE, "interaction.completed"): ENDED,
    (BEFORE, "error"): ENDED,
    (OPEN, "interaction.created"): OPEN,  # another round of a long answer
    (OPEN, "interaction.status_update"): OPEN,
    (OPEN, "step.start"): OPEN,
    (OPEN, "step.delta"): OPEN,
    (OPEN, "step.stop"): OPEN,
    (OPEN, "interaction.completed"): ENDED,
    (OPEN, "error"): ENDED,
}

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class _Incoming(Incoming):
    signature: Any = ""
    has_spoken: bool = False
    offsets: TextOffsets | None = None

    def __init__(self, kind: str, raw: Raw) -> None:
        super().__init__()
        self.kind = kind
        self.raw = raw
        self.changes: dict[str, Raw] = {}


class PayloadDecoder(BlockDecoder[_Incoming, Signature]):
    """Decodes the payloads of one stream into events."""

    source: ClassVar[str] = SOURCE
    family: ClassVar[str] = FAMILY
    moves: Moves = MOVES

    _state: str = BEFORE
    _id: str = ""
    _status: str | None = None
    _errors: Raw | UnsetType = UNSET
    _flow_kind: type[Any] = StepStop

    def __init__(self) -> None:
        super().__init__()
        self._seen: list[AnyPart] = []

    @staticmethod
    def framing(limits: Limits) -> ServerSentEvents:
        return ServerSentEvents(limits, SOURCE)

    def decode(self, payload: bytes) -> list[AnyEvent]:
        try:
            event = _decode_event(payload)
        except MALFORMED as error:
            self._decode_odd(payload, error)
            return self._take()
        if type(event) is StepDelta and event.index == self._flowing:
            delta: Any = event.delta
            if type(delta) is self._flow_kind:
                block = self._blocks[event.index]
                if block.kind == "model_output":
                    block.pieces.append(delta.text)
                return [PartDelta(self._flow_part, delta.text)] if delta.text else []
        if self._state is not ENDED:
            self._handle(event, payload)
        return self._take()

    def _handle(self, event: WireEvent, payload: bytes) -> None:
        try:
            if not payload.isascii():
                payload.decode()  # exact pieces are carried unparsed
            _ON_EVENT[type(event)](self, event)
        except MALFORMED as error:
            raise not_an_event(error, SOURCE) from error

    def _decode_odd(self, payload: bytes, error: Exception) -> None:
        """Ignore future events and deltas. Raise for anything else that does not fit."""
        if self._state is ENDED:
            return
        if payload[:6] == b"[DONE]":
            if self._status in STATUSES:
                self._end_answer()
            return
        fault = not_an_event(error, SOURCE)
        if not isinstance(error, msgspec.ValidationError):
            raise fault from error
        if has_unknown_key(error):
            with suppress(*MALFORMED):
                self._handle(_decode_event(take_unknown_keys(payload, WireEvent, self._late)), payload)
                return
        try:
            event = _loose.decode(payload)
        except MALFORMED:
            raise fault from error
        kind = event.event_type or ""
        if kind == "step.delta" and event.index is not None and event.delta is not None:
            self._on_other_delta(event.index, event.delta, fault)
        elif event.error is not UNSET:
            self._on_error(ErrorEvent(event.error))
        elif kind.startswith("interaction.") and kind not in _KNOWN_EVENTS:
            # Earlier versions had an event for each status: interaction.requires_action, and so on.
            self._on_status(StatusUpdate(event.status or kind.removeprefix("interaction.")))
        elif not kind or kind in _KNOWN_EVENTS:
            raise fault from error

    def close(self) -> list[AnyEvent]:
        """Handle the end of bytes."""
        if self._state is not ENDED:
            if self._status in STATUSES and not self._blocks:
                self._end_answer()
            else:
                self._state = ENDED
                self._break_off(Failure("truncated", "the stream ended without interaction.completed"))
        return self._take()

    # ── the interaction ──

    def _on_created(self, event: Created) -> None:
        is_first = self._state is BEFORE
        self._move("interaction.created")
        if is_first:
            self._open_answer(_openings.decode(event.interaction), event.interaction)

    def _open_answer(self, opening: Opening, raw: Raw) -> None:
        self._id = opening.id or ""
        extra = {key: value for key, value in _entries(raw).items() if key not in _OPENING_FIELDS}
        if "service_tier" in extra:
            self._late["service_tier"] = extra.pop("service_tier")  # the last event may name another one
        created = None if opening.created is UNSET else read_time(opening.created)
        self._events.append(StreamStart(opening.id or None, opening.model, created, {FAMILY: extra}))

    def _on_status(self, event: StatusUpdate) -> None:
        self._move("interaction.status_update")
        self._status = event.status or self._status
        self._count(event.usage)
        if event.continuation_token is not UNSET:
            self._late["continuation_token"] = event.continuation_token

    def _count(self, value: Any) -> None:
        if value is not UNSET and bytes(value) != b"null":
            usage = take_tier(decode_usage(value), self._late, "service_tier", GOOGLE_TIERS_READ)
            self._events.append(UsageUpdate(usage))

    def _on_completed(self, event: Completed) -> None:
        opening = _openings.decode(event.interaction)
        if self._state is BEFORE:
            self._open_answer(opening, event.interaction)
        self._status = opening.status or self._status
        late = {key: value for key, value in _entries(event.interaction).items() if key not in _OPENING_FIELDS}
        self._errors = late.pop("errors", UNSET)
        self._late |= late
        self._count(opening.usage)
        if opening.steps and not self._next_index and not self._blocks:
            self._tell_steps(opening.steps)
        self._end_answer()

    def _tell_steps(self, steps: list[Raw]) -> None:
        """Emit an answer that comes whole, in its last event."""
        decoder = MessageDecoder(seed=self._id, answering=True)
        decoder.add_steps([_steps.read(bytes(raw)) for raw in steps])
        for part in decoder.answer():
            self._seen.append(part)
            self._whole(part)

    def _end_answer(self) -> None:
        if self._state is not ENDED:
            self._state = ENDED
            self._end_blocks()
            self._emit_finish()

    def _finish(self) -> Finish:
        errors = self._late.get("error", UNSET) if self._errors is UNSET else self._errors  # `error` is of an output
        return decode_finish(self._status or "completed", self._seen, errors)

    def _on_error(self, event: ErrorEvent) -> None:
        self._move("error")
        error = Raw(b"{}") if event.error is UNSET else event.error
        self._break_off(decode_event_error(error, FAMILY))

    # ── steps ──

    def _on_start(self, event: StepStart) -> None:
        if self._state is BEFORE:
            self._events.append(StreamStart(metadata={FAMILY: {}}))
        self._move("step.start", about=f" of step {event.index}")
        for other in list(self._blocks):  # steps do not overlap on this wire
            self._end_block(other)
        seed = _seeds.decode(event.step)
        block = self._blocks[event.index] = _Incoming(kind=seed.type, raw=event.step)
        if (known := _STEP_KEYS.get(seed.type)) is not None:
            self._late |= {key: value for key, value in _entries(event.step).items() if key not in known}
        if seed.type == "function_call":
            self._start_call(block)
        elif seed.type == "model_output":
            contents = seed.content or ()
            for raw in [Raw(encode_json(TextContent(contents)))] if isinstance(contents, str) else contents:
                self._add_content(event.index, block, raw)
        elif seed.type == "thought":
            block.signature = seed.signature or ""
            for raw in seed.summary or ():
                found = parse_json(raw)
                if isinstance(found, dict) and isinstance(found.get("text"), str):
                    self._flow(event.index, block, SummaryDelta(SummaryContent(found["text"])))
                if not isinstance(found, dict) or not found.keys() <= {"type", "text"}:
                    self._late["summary"] = Raw(encode_json(seed.summary))

    def _on_delta(self, event: StepDelta) -> None:
        delta: Any = event.delta
        index, block = self._open_step(event.index, is_call=type(delta) is ArgumentsDelta)
        if type(delta) is SignatureDelta:
            if block.kind == "thought":
                block.signature += delta.signature
            else:
                block.changes["signature"] = Raw(encode_json(delta.signature))
        elif type(delta) is AnnotationDelta:
            for raw in delta.annotations:
                self._cite(block, raw)
        elif _FLOWING.get(block.kind) is type(delta):
            self._flow(index, block, delta)
        elif block.kind in _FLOWING:
            what = f"{delta.__struct_config__.tag} of step {index}"
            raise IllegalEvent(event=what, state=f"in a {block.kind} step", source=SOURCE)
        else:
            _gather(block, _entries(encode_json(delta)))

    def _on_other_delta(self, index: int, delta: dict[str, Raw], fault: DecodeError) -> None:
        """Handle a delta of a kind that has no struct: media, steps of Google's tools, future kinds."""
        kind = parse_json(delta.get("type", Raw(b"null")))
        if not isinstance(kind, str):
            raise fault
        if kind == "arguments" and "partial_arguments" in delta:  # as on one page of the documentation
            text = parse_json(delta["partial_arguments"])
            self._on_delta(StepDelta(index, ArgumentsDelta(text if isinstance(text, str) else "")))
            return
        if kind in _STRICT_DELTAS:
            if kind != "thought_summary":
                raise fault
            return  # an image of a summary: its keys are reported as unknown ones
        index, block = self._open_step(index)
        if block.kind == "model_output":
            if kind in _MEDIA:
                self._add_content(index, block, Raw(encode_json(delta)))
        elif block.kind not in _FLOWING:
            _gather(block, delta)

    def _open_step(self, index: int, *, is_call: bool = False) -> tuple[int, _Incoming]:
        self._move("step.delta", about=f" of step {index}")
        block = self._blocks.get(index)
        if is_call and (block is None or block.kind != "function_call"):
            # One recording has the index of the thought here.
            open_calls = [key for key, other in self._blocks.items() if other.kind == "function_call"]
            if open_calls:
                return open_calls[-1], self._blocks[open_calls[-1]]
        return index, self._open_block(index, "step.delta", "step")

    def _on_stop(self, event: StepStop) -> None:
        self._move("step.stop", about=f" of step {event.index}")
        self._stop_block(event.index, "step.stop", "step")

    def _end(self, block: _Incoming) -> None:
        _END_STEP.get(block.kind, PayloadDecoder._end_whole)(self, block)

    # ── parts ──

    def _part_of(self, carrier: Signature) -> AnyPart:
        return Text("", signature=carrier)

    def _whole(self, part: AnyPart) -> None:
        self._flowing = None
        super()._whole(part)

    def _flow(self, index: int, block: _Incoming, delta: Any) -> None:
        text = delta.text
        if not text:
            return
        if block.part_index < 0:
            self._start_part(block)
        if block.kind == "function_call" and not block.pieces:
            text = unwrap_fragment(text)
        if block.kind != "thought":
            block.pieces.append(text)
        self._events.append(PartDelta(block.part_index, text))
        self._flowing, self._flow_kind, self._flow_part = index, type(delta), block.part_index

    def _start_part(self, block: _Incoming) -> None:
        self._release()
        if block.kind == "thought":
            self._put_carrier_back()
            block.part_index = self._start(Reasoning(""))
            return
        carrier, self._carrier = self._carrier, None
        block.signature = carrier
        block.pieces, block.offsets = [], None
        block.part_index = self._start(Text(""))
        self._seen.append(Text(""))

    def _add_content(self, index: int, block: _Incoming, raw: Raw) -> None:
        wire = _contents.read(bytes(raw))
        if type(wire) is TextContent:
            self._flow(index, block, TextDelta(wire.text))
            if wire.annotations is not UNSET:
                for annotation in msgspec.json.decode(wire.annotations, type=list[Raw]):
                    self._cite(block, annotation)
            return
        if block.part_index >= 0:
            self._end_output(block)
            block.part_index = -1
        block.has_spoken = True  # the step had content
        self._whole(decode_part(wire))

    def _cite(self, block: _Incoming, raw: Raw) -> None:
        if block.kind != "model_output":
            return
        if block.part_index < 0:
            self._start_part(block)
        block.offsets = (block.offsets or TextOffsets()).catch_up(block.pieces)
        citation = CITATIONS.read(raw, block.offsets)
        if citation is not None:
            self._events.append(PartDelta(block.part_index, "", citation))

    def _start_call(self, block: _Incoming) -> None:
        self._release()
        entries = _entries(block.raw)
        entries.pop("arguments", None)
        call = decode_call(_calls.read(encode_json(entries)), self._id, len(self._seen), "$.step")
        if call.metadata is not None:
            notes = {key: value for key, value in call.metadata[FAMILY].items() if key[:1] != "~" or key == ON_CALL}
            call = replace(call, metadata={FAMILY: notes} if notes else None)
        if call.signature is None and self._carrier is not None:
            call = replace(call, signature=self._carrier)
            self._carrier = None
        self._put_carrier_back()
        call = replace(call, arguments=UNSET)
        block.signature = "signed" if call.signature is not None else ""
        self._seen.append(call)
        self._calls.append(call)
        block.part_index = self._start(call)

    def _end_output(self, block: _Incoming) -> None:
        if block.part_index < 0:
            if block.has_spoken:
                return
            self._put_carrier_back()
            if "error" in _entries(block.raw):
                self._whole(_decode_step(block))
                return
            self._start_part(block)
        signature: Any = block.signature or None
        self._flowing = None
        may_sign = bool(block.pieces) and signature is None
        self._defer(DeferredEnd(PartEnd(block.part_index, signature), may_sign=may_sign))

    def _end_call(self, block: _Incoming) -> None:
        if not block.pieces:
            arguments = _seeds.decode(block.raw).arguments
            text = "" if arguments is UNSET else bytes(arguments).decode()
            text = "{}" if text in {"", "{}", "null"} else unwrap_fragment(text)
            self._events.append(PartDelta(block.part_index, text))
        self._defer(DeferredEnd(PartEnd(block.part_index), may_sign=not block.signature, is_call=True))

    def _end_thought(self, block: _Incoming) -> None:
        flowed = block.part_index >= 0
        signature = block.signature
        tag = foreign_signatures.read_tag_of(signature) if signature else None
        if flowed:
            found = None if tag is None else foreign_signatures.read_tagged("...", tag)
            if isinstance(found, Reasoning):
                self._events.append(PartEnd(block.part_index, found.signature, metadata={FAMILY: SIGNED}))
                return
            self._events.append(PartEnd(block.part_index, metadata=NATIVE_THOUGHT))
        elif tag is not None:
            self._end_tagged(tag)
            return
        if signature and not is_dummy(signature):
            self._keep_carrier(Signature(GOOGLE if tag is None else "dragoman", signature))

    def _end_tagged(self, tag: str) -> None:
        if self._sign_deferred(foreign_signatures.read_trailing("", tag)):
            return
        found = foreign_signatures.read_tagged("", tag)
        if isinstance(found, Signature):
            self._keep_carrier(found)
        elif found is not None:
            self._whole(found)

    def _end_whole(self, block: _Incoming) -> None:
        part = _decode_step(block)
        self._seen.append(part)
        self._whole(part)


def _gather(block: _Incoming, delta: dict[str, Raw]) -> None:
    """Collect a delta of a step that is emitted whole; its values replace those of the step."""
    block.changes.update({key: value for key, value in delta.items() if key != "type"})


def _decode_step(block: _Incoming) -> AnyPart:
    """Decode a step that is emitted whole, including its deltas."""
    return decode_other(Raw(encode_json(_entries(block.raw) | block.changes)))


_FLOWING: dict[str, type[Any]] = {"model_output": TextDelta, "thought": SummaryDelta, "function_call": ArgumentsDelta}
_MEDIA = frozenset({"image", "audio", "video", "document"})
_END_STEP: dict[str, Callable[[PayloadDecoder, _Incoming], None]] = {
    "model_output": PayloadDecoder._end_output,
    "thought": PayloadDecoder._end_thought,
    "function_call": PayloadDecoder._end_call,
}
_ON_EVENT: dict[type[Any], Callable[[PayloadDecoder, Any], None]] = {
    StepDelta: PayloadDecoder._on_delta,
    StepStart: PayloadDecoder._on_start,
    StepStop: PayloadDecoder._on_stop,
    Created: PayloadDecoder._on_created,
    StatusUpdate: PayloadDecoder._on_status,
    Completed: PayloadDecoder._on_completed,
    ErrorEvent: PayloadDecoder._on_error,
}
_KNOWN_EVENTS = {kind.__struct_config__.tag for kind in _ON_EVENT}
_STRICT_DELTAS = {
    kind.__struct_config__.tag for kind in (TextDelta, ArgumentsDelta, SummaryDelta, SignatureDelta, AnnotationDelta)
}
