"""Encodes events as a Converse stream.

One block at a time, counted from zero, each with a stop: a part that starts while an earlier one is open waits for
it. Only calls have a start event. The stop reason comes first, then the usage in `metadata`; a stream that failed
ends in an exception, and leaves open blocks open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, Raw

from dragoman.codecs.bedrock_converse import foreign_signatures
from dragoman.codecs.bedrock_converse.errors import (
    STREAM_ERROR,
    STREAM_EXCEPTIONS,
    encode_error,
    kind_of_exception,
)
from dragoman.codecs.bedrock_converse.frames import (
    CALL,
    REASONING,
    TEXT,
    around,
    event_headers,
    exception_headers,
    frame_writer,
)
from dragoman.codecs.bedrock_converse.parts import PartEncoder, encode_citation, report_citation
from dragoman.codecs.bedrock_converse.profile import FAMILY
from dragoman.codecs.bedrock_converse.response import (
    FURTHER,
    encode_finish,
    encode_usage,
    matched_field,
    report_untold,
    report_usage,
)
from dragoman.codecs.bedrock_converse.wire import Metrics
from dragoman.codecs.block_encoder import Carriers
from dragoman.codecs.block_sequencer import Outgoing, SequentialEncoder
from dragoman.codecs.common_losses import NO_REFUSALS
from dragoman.codecs.failures import status_of_kind
from dragoman.codecs.framing import aws_frame
from dragoman.codecs.reading import WireValue
from dragoman.codecs.shared_settings import ANSWERED_BY_BEDROCK, tier_word
from dragoman.ir import (
    AnyPart,
    Citation,
    Completion,
    Failure,
    Finished,
    Opaque,
    PartDelta,
    Reasoning,
    Refusal,
    StreamStart,
    Text,
    ToolCall,
    Usage,
)
from dragoman.ir.notes import MODELLED, Extra, family_notes
from dragoman.ir.values import encode_json

_entries = msgspec.json.Decoder(dict[str, Raw]).decode

_MESSAGE_START = frame_writer(event_headers("messageStart"))
_BLOCK_START = frame_writer(event_headers("contentBlockStart"))
_BLOCK_DELTA = frame_writer(event_headers("contentBlockDelta"))
_BLOCK_STOP = frame_writer(event_headers("contentBlockStop"))
_MESSAGE_STOP = frame_writer(event_headers("messageStop"))
_METADATA = frame_writer(event_headers("metadata"))

_PLAIN_START = _MESSAGE_START(b'{"role":"assistant"}')
_NO_USAGE = Usage()
_NO_METRICS = Metrics()
_SIGNED_TEXT = Text("...")
_FLOWS: dict[type[AnyPart], str] = {Text: TEXT, Refusal: TEXT, Reasoning: REASONING, ToolCall: CALL}


class EventEncoder(SequentialEncoder):
    """Encodes events as frames that a strict client of this format accepts."""

    family: ClassVar[str] = FAMILY
    signatures: ClassVar[Carriers] = foreign_signatures
    refusals_as_text: ClassVar[str] = NO_REFUSALS

    def fragment(self, index: int, text: str) -> bytes:
        """Encode more text of a part."""
        if index == self._flowing:
            return _BLOCK_DELTA(self._head + encode_json(text) + self._tail)
        return b"".join(self._on_delta(PartDelta(index, text)))

    # ── the message ──

    def _part_encoder(self) -> PartEncoder:
        return PartEncoder(self._log, native=self._native)

    def _opening(self, event: StreamStart, notes: Extra | None) -> bytes:
        report_untold(event, self._log)
        return _event(_MESSAGE_START, {"role": "assistant", **_wire_keys(notes)}) if notes else _PLAIN_START

    def _ending(self, event: Finished, completion: Completion) -> list[bytes]:
        word = encode_finish(event.finish, FAMILY if self._native else None, self._log, completion)
        late = _wire_keys(family_notes(FAMILY, event.metadata))
        further = late.pop(FURTHER, matched_field(event.finish, word))
        stop: dict[str, Any] = {"stopReason": "end_turn" if word is UNSET else word}
        if further is not UNSET:
            stop[FURTHER] = further
        out = [_event(_MESSAGE_STOP, stop)]
        metadata = self._metadata(late, completion)
        return [*out, _event(_METADATA, metadata)] if metadata else out

    def _metadata(self, late: dict[str, Any], completion: Completion) -> dict[str, Any]:
        if self._native:
            return late if self._usage is None else {"usage": encode_usage(self._usage), **late}
        if self._usage is None:
            self._log.invent(completion, "usage", "usage of zero tokens", "answers of this API include usage")
        else:
            report_usage(self._usage, self._log, completion)
        self._log.note(completion, "metrics", "latency of zero", "answers of this API include latency")
        fields = {"usage": encode_usage(self._usage or _NO_USAGE), "metrics": _NO_METRICS}
        tier = tier_word(self._usage, ANSWERED_BY_BEDROCK)
        return fields if tier is None else {**fields, "serviceTier": {"type": tier}}

    def _failure(self, failure: Failure) -> bytes:
        name, body = _exception(failure)
        return aws_frame(exception_headers(name), body)

    # ── blocks ──

    def _start_flow(self, part: Outgoing) -> list[bytes]:
        content = part.part
        out = self._spell_signature(_SIGNED_TEXT, content.signature) if type(content) is Text else []
        self._start_block(part)
        return out

    def _start_block(self, part: Outgoing) -> None:
        part.block = self._number()
        part.head, part.tail = around(part.block, _FLOWS[type(part.part)])

    def _piece(self, part: Outgoing, text: str) -> bytes:
        return _BLOCK_DELTA(part.head + encode_json(text) + part.tail)

    def _cite(self, part: Outgoing, citation: Citation) -> list[bytes]:
        encoded = encode_citation(citation, to_client=True) if isinstance(part.part, Text) else None
        if "~citation" not in family_notes(FAMILY, citation.metadata):
            report_citation(self._log, part.part, citation, is_sent=encoded is not None)
        if encoded is None:
            return []
        out = [] if part.block >= 0 else self._start_flow(part)
        return [*out, _delta(part.block, citation=encoded)]

    def _start_call(self, part: Outgoing) -> bytes:
        call: ToolCall = part.part
        self._start_block(part)
        start = {"toolUseId": call.id, "name": call.name, **_wire_keys(family_notes(FAMILY, call.metadata))}
        return _event(_BLOCK_START, {"contentBlockIndex": part.block, "start": {"toolUse": start}})

    def _sign(self, part: Outgoing, whole: Reasoning) -> list[bytes]:
        out: list[bytes] = []
        for block in () if whole.signature is None else self._part_encoder().encode_part(whole, "assistant"):
            entries = _entries(_entries(encode_json(block))["reasoningContent"])
            signature = _entries(entries["reasoningText"]).get("signature") if "reasoningText" in entries else None
            out += [] if signature is None else [_delta(part.block, reasoningContent={"signature": signature})]
        return out

    def _spell_empty(self, part: Outgoing) -> list[bytes]:
        return [*self._start_flow(part), self._piece(part, ""), self._stop(part.block)]

    def _spell_all(self, part: AnyPart) -> list[bytes]:
        out: list[bytes] = []
        for block in self._part_encoder().encode_part(part, "assistant"):
            kind = next(iter(_entries(encode_json(block))), "")
            if kind in _SPELLED or isinstance(part, Opaque):
                out += self._spell(block)
            else:
                self._log.drop(part, "", kind, "a stream of this API has no field for it")
        return out

    def _spell(self, block: WireValue) -> list[bytes]:
        fields = _entries(encode_json(block))
        number = self._number()
        if not fields:
            return [_delta(number), self._stop(number)]
        kind, raw = next(iter(fields.items()))
        try:
            start, deltas = _SPELLED.get(kind, _spell_start)(kind, raw)
        except (msgspec.ValidationError, KeyError):  # a block of an undocumented shape, kept as it came
            start, deltas = None, [(kind, raw)]
        out = [] if start is None else [_event(_BLOCK_START, {"contentBlockIndex": number, "start": {kind: start}})]
        return [*out, *[_delta(number, **{name: value}) for name, value in deltas], self._stop(number)]

    def _stop(self, block: int) -> bytes:
        return _BLOCK_STOP(b'{"contentBlockIndex":%d}' % block)


# ── blocks that are known whole: their start event, and their deltas ──────────────────────────────────────────

_Spelling = tuple[Any, list[tuple[str, Any]]]


def _spell_start(kind: str, raw: Raw) -> _Spelling:  # noqa: ARG001
    return raw, []


def _spell_text(kind: str, raw: Raw) -> _Spelling:
    return None, [(kind, raw)]


def _spell_reasoning(kind: str, raw: Raw) -> _Spelling:
    entries = _entries(raw)
    if "reasoningText" not in entries:
        return None, [(kind, entries)]
    return None, [
        (kind, {name: value}) for name, value in _entries(entries["reasoningText"]).items() if value != _NO_TEXT
    ]


def _spell_citations(kind: str, raw: Raw) -> _Spelling:  # noqa: ARG001
    citations = msgspec.json.decode(raw, type=dict[str, list[Raw]])
    texts = [("text", _entries(text)["text"]) for text in citations.get("content", [])]
    return None, [*texts, *[("citation", citation) for citation in citations.get("citations", [])]]


def _spell_call(kind: str, raw: Raw) -> _Spelling:
    entries = _entries(raw)
    arguments = entries.pop("input", Raw(b"{}"))
    return entries, [(kind, {"input": bytes(arguments).decode()})]


def _spell_result(kind: str, raw: Raw) -> _Spelling:
    entries = _entries(raw)
    content = entries.pop("content", None)
    return entries, [] if content is None else [(kind, content)]


def _spell_image(kind: str, raw: Raw) -> _Spelling:
    entries = _entries(raw)
    return {"format": entries.pop("format")}, [(kind, entries)]


_NO_TEXT = Raw(b'""')
_SPELLED: dict[str, Callable[[str, Raw], _Spelling]] = {
    "text": _spell_text,
    "reasoningContent": _spell_reasoning,
    "citationsContent": _spell_citations,
    "toolUse": _spell_call,
    "toolResult": _spell_result,
    "image": _spell_image,
}


def _event(write: Callable[[bytes], bytes], payload: dict[str, Any]) -> bytes:
    return write(encode_json(payload))


def _delta(block: int, **fields: Any) -> bytes:
    return _event(_BLOCK_DELTA, {"contentBlockIndex": block, "delta": fields})


def _wire_keys(notes: dict[str, Any]) -> dict[str, Any]:
    """Return the notes without those that only concern spelling."""
    return {
        key.removeprefix(MODELLED): value
        for key, value in notes.items()
        if not key.startswith("~") or key.startswith(MODELLED)
    }


def _exception(failure: Failure) -> tuple[str, bytes]:
    """Return the name and body of an exception.

    A kind that a stream has no exception for is expressed by `originalStatusCode`.
    """
    body = encode_error(failure).content
    raw_type = failure.raw_type
    if failure.metadata is not None and FAMILY in failure.metadata and raw_type and kind_of_exception(raw_type):
        return raw_type[:1].lower() + raw_type[1:], body
    name = STREAM_EXCEPTIONS.get(failure.kind, STREAM_ERROR)
    if name == STREAM_ERROR:
        body = encode_json({**_entries(body), "originalStatusCode": status_of_kind(failure.kind)})
    return name, body
