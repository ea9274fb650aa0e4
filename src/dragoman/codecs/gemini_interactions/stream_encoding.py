"""Encodes events as an Interactions stream.

One step at a time, counted from zero, each with a stop: a part that starts while an earlier one is open waits for it.
`interaction.completed` holds status and usage, then comes `[DONE]`; a stream that failed ends with an `error` event,
and leaves open steps open.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from msgspec import Raw

from dragoman.codecs.arguments import EMPTY_OBJECT
from dragoman.codecs.block_encoder import Carriers
from dragoman.codecs.block_sequencer import Outgoing, SequentialEncoder
from dragoman.codecs.common_losses import NO_REFUSALS, drop_cache_mark, note_empty_model
from dragoman.codecs.failures import failure_of
from dragoman.codecs.gemini_interactions import foreign_signatures
from dragoman.codecs.gemini_interactions.parts import PartEncoder
from dragoman.codecs.gemini_interactions.profile import FAMILY, InteractionsProfile
from dragoman.codecs.gemini_interactions.response import encode_finish, encode_usage
from dragoman.codecs.gemini_interactions.steps import CITATIONS
from dragoman.codecs.google_errors import encode_event_error
from dragoman.codecs.reading import WireValue
from dragoman.codecs.shared_settings import ANSWERED_BY_GOOGLE, named_tier
from dragoman.codecs.text_offsets import TextOffsets
from dragoman.codecs.timestamps import write_time
from dragoman.ir import (
    AnyPart,
    Citation,
    Completion,
    Failure,
    Finished,
    PartDelta,
    Reasoning,
    Refusal,
    StreamStart,
    Text,
    ToolCall,
)
from dragoman.ir.notes import Extra, family_notes
from dragoman.ir.values import encode_json, single_line
from dragoman.losses import LossLog

_entries = msgspec.json.Decoder(dict[str, Raw]).decode
_items = msgspec.json.Decoder(list[Raw]).decode

_DONE = b"event: done\ndata: [DONE]\n\n"
_TAIL = b'},"event_type":"step.delta"}\n\n'
_TEXT = (b'"text","text":', _TAIL)
_FLOWS: dict[type[AnyPart], tuple[bytes, bytes]] = {
    Text: _TEXT,
    Refusal: _TEXT,
    Reasoning: (b'"thought_summary","content":{"type":"text","text":', b"}" + _TAIL),
    ToolCall: (b'"arguments_delta","arguments":', _TAIL),
}
_OUTPUT_START = Raw(b'{"type":"model_output"}')
_THOUGHT_START = Raw(b'{"type":"thought"}')
_IN_DELTAS = frozenset({"arguments", "result", "is_error", "signature"})
"""Keys that a step of Google's own tools has in its delta; the rest is in its start."""


class EventEncoder(SequentialEncoder):
    """Encodes events as bytes that a strict client of this format accepts."""

    family: ClassVar[str] = FAMILY
    signatures: ClassVar[Carriers] = foreign_signatures
    signature_delta: ClassVar[str] = "thought_signature"
    refusals_as_text: ClassVar[str] = NO_REFUSALS

    def __init__(
        self,
        log: LossLog,
        profile: InteractionsProfile | None = None,  # noqa: ARG002
        *,
        stores: bool | None = None,
    ) -> None:
        """`stores`: whether the interaction is stored. If so, its events have ids; if not, it has no id itself."""
        super().__init__(log)
        self._stores = stores
        self._events = 0
        self._start = StreamStart()
        self._texts: dict[int, list[str]] = {}
        """The text of the parts written so far, by index, for the offsets of citations.

        Not an accumulator's: that also has the text of later events of the same read."""
        self._offsets: dict[int, TextOffsets] = {}

    def fragment(self, index: int, text: str) -> bytes:
        """Encode more text of a part."""
        self._texts.setdefault(index, []).append(text)
        if index == self._flowing:
            tail = self._number_event(self._tail) if self._stores else self._tail
            return self._head + encode_json(text) + tail
        return b"".join(self._on_delta(PartDelta(index, text)))

    def _number_event(self, tail: bytes) -> bytes:
        """Return the end of an event, with an id from which the stream can be resumed."""
        self._events += 1
        return b'%b,"event_id":"e%d"}\n\n' % (tail[:-3], self._events)

    # ── the interaction ──

    def _part_encoder(self) -> PartEncoder:
        return PartEncoder(self._log, native=False)

    def _opening(self, event: StreamStart, notes: Extra | None) -> bytes:
        self._start = event
        if event.model is None:
            note_empty_model(event, self._log)
        opening = self._interaction("in_progress", notes)
        status = {"interaction_id": "" if self._stores is False else event.id or "", "status": "in_progress"}
        return self._event("interaction.created", interaction=opening) + self._event(
            "interaction.status_update", **status
        )

    def _interaction(self, status: str, notes: Extra | None) -> dict[str, Any]:
        start = self._start
        opening = {
            "id": "" if self._stores is False else start.id or "",
            "status": status,
            "object": "interaction",
            "model": start.model or "",
        }
        return opening | {key: value for key, value in (notes or {}).items() if key[:1] != "~"}

    def _ending(self, event: Finished, completion: Completion) -> list[bytes]:
        finish = event.finish
        status = finish.raw if self._native and finish.raw else encode_finish(finish, self._log, completion)
        interaction = self._interaction(status, family_notes(FAMILY, event.metadata))
        if self._usage is not None:
            interaction["usage"] = encode_usage(self._usage, self._log, completion)
            interaction |= named_tier(self._usage, ANSWERED_BY_GOOGLE)
        if status == "failed":
            interaction["errors"] = [encode_event_error(failure_of(finish), FAMILY)]
        interaction["created"] = interaction["updated"] = write_time(self._start.created)
        return [self._event("interaction.completed", interaction=interaction), _DONE]

    def _failure(self, failure: Failure) -> bytes:
        return self._event("error", error=encode_event_error(failure, FAMILY))

    # ── steps ──

    def _open(self, part: Outgoing) -> list[bytes]:
        content = part.part
        if getattr(content, "cache", None) is not None and isinstance(content, Text | ToolCall):
            drop_cache_mark(content, self._log)
        if isinstance(content, Text | Reasoning | Refusal) and content.text:
            self._texts.setdefault(part.index, []).append(content.text)
        return super()._open(part)

    def _start_flow(self, part: Outgoing) -> list[bytes]:
        content = part.part
        out = self._spell_signature(Text("..."), content.signature) if isinstance(content, Text) else []
        out.append(self._start_step(part, _THOUGHT_START if isinstance(content, Reasoning) else _OUTPUT_START))
        return out

    def _start_step(self, part: Outgoing, step: WireValue) -> bytes:
        part.block = self._number()
        middle, part.tail = _FLOWS[type(part.part)]
        part.head = b'event: step.delta\ndata: {"index":%d,"delta":{"type":%s' % (part.block, middle)
        return self._event("step.start", index=part.block, step=step)

    def _piece(self, part: Outgoing, text: str) -> bytes:
        return part.head + encode_json(text) + (self._number_event(part.tail) if self._stores else part.tail)

    def _cite(self, part: Outgoing, citation: Citation) -> list[bytes]:
        offsets = self._offsets.setdefault(part.index, TextOffsets()).catch_up(self._texts.get(part.index, []))
        annotation = CITATIONS.write_reporting(part.part, citation, offsets.length, self._log, offsets)
        if annotation is None:
            return []
        out = [] if part.block >= 0 else self._start_flow(part)
        return [*out, self._delta(part.block, "text_annotation_delta", annotations=[annotation])]

    def _start_call(self, part: Outgoing) -> bytes:
        call: ToolCall = part.part
        further = {key: value for key, value in family_notes(FAMILY, call.metadata).items() if key[:1] != "~"}
        step = {"type": "function_call", "id": call.id, "name": call.name, "arguments": EMPTY_OBJECT, **further}
        return self._start_step(part, step)

    def _spell(self, block: WireValue) -> list[bytes]:
        """Encode a complete step as the sequence of events that a client of a stream expects."""
        entries: dict[str, Any] = _entries(encode_json(block))
        kind = msgspec.json.decode(entries.get("type", b'""'))
        number = self._number()
        deltas: list[bytes] = []
        if kind == "thought":
            summary = _items(entries.pop("summary", b"[]"))
            deltas += [self._delta(number, "thought_summary", content=content) for content in summary]
            if "signature" in entries:
                deltas.append(self._delta(number, "thought_signature", signature=entries.pop("signature")))
        elif kind == "model_output" and bytes(entries.get("content", b""))[:1] == b"[":
            contents = _items(entries.pop("content"))
            deltas += [self._event("step.delta", index=number, delta=content) for content in contents]
        elif kind.endswith(("_call", "_result")):
            in_delta = {key: value for key, value in entries.items() if key in _IN_DELTAS}
            entries = {key: value for key, value in entries.items() if key not in in_delta}
            if in_delta:
                deltas.append(self._delta(number, kind, **in_delta))
        return [self._event("step.start", index=number, step=entries), *deltas, self._stop(number)]

    def _event(self, kind: str, **fields: Any) -> bytes:
        body = bytes(single_line(Raw(encode_json({**fields, "event_type": kind}))))
        head = b"event: " + kind.encode() + b"\ndata: " + body
        return self._number_event(head + b"\n\n") if self._stores else head + b"\n\n"

    def _delta(self, block: int, kind: str, **fields: Any) -> bytes:
        return self._event("step.delta", index=block, delta={"type": kind, **fields})

    def _stop(self, block: int) -> bytes:
        return self._event("step.stop", index=block)
