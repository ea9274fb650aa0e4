"""Events to a ConverseStream.

One block at a time, counted from zero, each of them stopped: what starts while an earlier part is open waits for it.
Only calls have a start event. The stop reason comes first, then the usage in `metadata`; a stream that failed ends in
an exception, and leaves open what was open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from dragoman.codecs.arguments import arguments_as_object, arguments_as_text, read_arguments
from dragoman.codecs.bedrock_converse import carriers
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
from dragoman.codecs.bedrock_converse.parts import PartEncoder, encode_citation, own, report_citation
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
from dragoman.codecs.failures import status_of_kind
from dragoman.codecs.framing import aws_frame
from dragoman.codecs.reading import WireValue
from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Citation,
    Completion,
    Failure,
    Finished,
    Message,
    Opaque,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
    Refusal,
    StreamFailed,
    StreamStart,
    Text,
    ToolCall,
    Usage,
    UsageUpdate,
)
from dragoman.ir.notes import MODELLED
from dragoman.ir.values import encode_json
from dragoman.losses import LossLog

_entries = msgspec.json.Decoder(dict[str, Raw]).decode

_MESSAGE_START = frame_writer(event_headers("messageStart"))
_BLOCK_START = frame_writer(event_headers("contentBlockStart"))
_BLOCK_DELTA = frame_writer(event_headers("contentBlockDelta"))
_BLOCK_STOP = frame_writer(event_headers("contentBlockStop"))
_MESSAGE_STOP = frame_writer(event_headers("messageStop"))
_METADATA = frame_writer(event_headers("metadata"))

_CUSTOM_HEAD, _CUSTOM_TAIL = '{"input":"', '"}'
_FLOWS: dict[type[AnyPart], str] = {Text: TEXT, Refusal: TEXT, Reasoning: REASONING, ToolCall: CALL}


class _Outgoing:
    """One part on its way out."""

    __slots__ = ("block", "end", "head", "index", "odd", "part", "pieces", "tail", "waiting")

    def __init__(self, index: int, part: AnyPart) -> None:
        self.index = index
        self.part: Any = part
        self.block = -1  # until its block starts
        self.head = self.tail = b""
        self.pieces: list[str] | None = []
        """Argument text that is not yet known to be an object; None once it is, and flows."""
        self.odd = False
        self.waiting: list[PartDelta] = []
        """What came while an earlier part was open."""
        self.end: PartEnd | None = None

    def fragment(self, text: str) -> bytes:
        return _BLOCK_DELTA(self.head + encode_json(text) + self.tail)


class EventEncoder:
    """Events in, frames out that a strict client of this format accepts."""

    def __init__(self, log: LossLog) -> None:
        self._log = log
        self._parts_out = PartEncoder(log)
        self._begun = False
        self._native = False
        self._usage: Usage | None = None
        self._parts: dict[int, _Outgoing] = {}
        self._queue: deque[_Outgoing] = deque()
        self._next_block = 0
        self._seen: list[AnyPart] = []
        self._closing = False
        # The part that flows: its next fragment needs no second look.
        self._flowing = -1
        self._head = self._tail = b""

    def encode(self, events: Iterable[AnyEvent]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if type(event) is PartDelta:
                if event.citation is None:
                    out.append(self.fragment(event.index, event.text))
                else:
                    out += self._on_delta(event)
            else:
                out += _HANDLERS[type(event)](self, event)
        return b"".join(out)

    def fragment(self, index: int, text: str) -> bytes:
        """More text of a part."""
        if index == self._flowing:
            return _BLOCK_DELTA(self._head + encode_json(text) + self._tail)
        return b"".join(self._on_delta(PartDelta(index, text)))

    def close(self) -> bytes:
        return b""

    # ── the message ──

    def _on_start(self, event: StreamStart) -> list[bytes]:
        if self._begun:
            return []
        self._begun = True
        notes = None if event.metadata is None else event.metadata.get(FAMILY)
        self._native = notes is not None
        self._parts_out = PartEncoder(self._log, native=self._native)
        report_untold(event, self._log)
        return [_event(_MESSAGE_START, {"role": "assistant", **_wire_keys(notes or {})})]

    def _begin(self) -> list[bytes]:
        return [] if self._begun else self._on_start(StreamStart())

    def _on_usage(self, event: UsageUpdate) -> list[bytes]:
        self._usage = event.usage
        return []

    def _on_finished(self, event: Finished) -> list[bytes]:
        out = self._begin()
        for finish in event.others:
            self._log.drop(finish or event, "", "a further candidate", "one answer is streamed")
        self._closing = True
        for part in self._queue:
            part.end = part.end or PartEnd(part.index)
        out += self._advance()
        completion = Completion((Message("assistant", tuple(self._seen)),))
        word = encode_finish(event.finish, FAMILY if self._native else None, self._log, completion)
        late = _wire_keys(own(event.metadata))
        further = late.pop(FURTHER, matched_field(event.finish, word))
        stop = _given({"stopReason": "end_turn" if word is UNSET else word, FURTHER: further})
        out.append(_event(_MESSAGE_STOP, stop))
        metadata = self._metadata(late, completion)
        return [*out, _event(_METADATA, metadata)] if metadata else out

    def _metadata(self, late: dict[str, Any], completion: Completion) -> dict[str, Any]:
        if self._native:
            return late if self._usage is None else {"usage": encode_usage(self._usage), **late}
        if self._usage is None:
            self._log.invent(completion, "usage", "usage of zero tokens", "an answer of this API tells its usage")
        else:
            report_usage(self._usage, self._log, completion)
        self._log.invent(completion, "metrics", "latency of zero", "an answer of this API tells its latency")
        return {"usage": encode_usage(self._usage or Usage()), "metrics": Metrics()}

    def _on_failed(self, event: StreamFailed) -> list[bytes]:
        """What is open stays open: nothing after this says that it was whole."""
        name, body = _exception(event.failure)
        return [aws_frame(exception_headers(name), body)]

    # ── one block after the other ──

    def _on_part_start(self, event: PartStart) -> list[bytes]:
        out = self._begin()
        if event.candidate:
            self._log.drop(event.part, "", "a further candidate", "one answer is streamed")
            return out
        part = self._parts[event.index] = _Outgoing(event.index, event.part)
        self._queue.append(part)
        return out + self._open(part) if len(self._queue) == 1 else out

    def _on_delta(self, event: PartDelta) -> list[bytes]:
        part = self._parts.get(event.index)
        if part is None:
            return []
        if part is not self._queue[0]:
            part.waiting.append(event)
            return []
        return self._deliver(part, event)

    def _on_part_end(self, event: PartEnd) -> list[bytes]:
        part = self._parts.pop(event.index, None)
        if part is None:
            return []
        part.end = event
        return self._advance()

    def _advance(self) -> list[bytes]:
        """Closes what has ended, as far as order allows, and opens the next."""
        out: list[bytes] = []
        while self._queue:
            part = self._queue[0]
            # Cut: if the stream failed, its block is left open, so the next event decides.
            if part.end is None or (part.end.incomplete and not self._closing):
                break
            out += self._shut(part, part.end)
            self._queue.popleft()
            self._flowing = -1
            if self._queue:
                out += self._open_waiting(self._queue[0])
        return out

    def _open_waiting(self, part: _Outgoing) -> list[bytes]:
        if part.end is not None and part.end.signature is not None and isinstance(part.part, Text | ToolCall):
            part.part = replace(part.part, signature=part.end.signature)
        out = self._open(part)
        text = "".join([delta.text for delta in part.waiting])
        for delta in part.waiting:
            if delta.citation is not None:
                out += self._deliver(part, delta)
        return out + self._deliver(part, PartDelta(part.index, text)) if text else out

    def _open(self, part: _Outgoing) -> list[bytes]:
        """A call starts at once. Text and thoughts start with their first fragment: they may be empty and signed."""
        content = part.part
        if isinstance(content, ToolCall):
            return self._open_call(part)
        if isinstance(content, Refusal):
            self._log.degrade(content, "", "refusal", "it is sent as text: this API knows no refusals")
        out: list[bytes] = []
        if isinstance(content, Text | Reasoning | Refusal) and content.text:
            out += self._flow(part, content.text)
        for citation in content.citations if isinstance(content, Text) else ():
            out += self._cite(part, citation)
        return out

    def _deliver(self, part: _Outgoing, delta: PartDelta) -> list[bytes]:
        if delta.citation is not None:
            return self._cite(part, delta.citation)
        if not delta.text:
            return []
        if isinstance(part.part, ToolCall):
            return self._arguments(part, delta.text)
        return self._flow(part, delta.text) if type(part.part) in _FLOWS else []

    def _flow(self, part: _Outgoing, text: str) -> list[bytes]:
        out = [] if part.block >= 0 else self._start_flow(part)
        self._flowing, self._head, self._tail = part.index, part.head, part.tail
        out.append(part.fragment(text))
        return out

    def _start_flow(self, part: _Outgoing) -> list[bytes]:
        """A signature that is known already travels before its text, as it does without a stream."""
        content = part.part
        out: list[bytes] = []
        if isinstance(content, Text) and content.signature is not None:
            out += self._spell(carriers.tagged_signature(Text("..."), content.signature))
        self._number(part)
        return out

    def _number(self, part: _Outgoing) -> None:
        part.block = self._next_block
        self._next_block += 1
        part.head, part.tail = around(part.block, _FLOWS[type(part.part)])

    def _cite(self, part: _Outgoing, citation: Citation) -> list[bytes]:
        held = encode_citation(citation, to_client=True) if isinstance(part.part, Text) else None
        if "~citation" not in own(citation.metadata):
            report_citation(self._log, part.part, citation, told=held is not None)
        if held is None:
            return []
        out = [] if part.block >= 0 else self._start_flow(part)
        return [*out, _delta(part.block, citation=held)]

    # ── calls ──

    def _open_call(self, part: _Outgoing) -> list[bytes]:
        call: ToolCall = part.part
        out = [] if call.signature is None else self._spell(carriers.tagged_signature(call, call.signature))
        self._number(part)
        start = {"toolUseId": call.id, "name": call.name, **_wire_keys(own(call.metadata))}
        out.append(_event(_BLOCK_START, {"contentBlockIndex": part.block, "start": {"toolUse": start}}))
        if call.custom:
            out.append(part.fragment(_CUSTOM_HEAD))
        if call.parsed or call.arguments_text is not None:
            text = call.arguments_text if call.custom else arguments_as_text(call)
            return out + self._arguments(part, text) if text else out
        return out

    def _arguments(self, part: _Outgoing, text: str) -> list[bytes]:
        """Fragments of an object flow. What begins as anything else is held: `input` is an object, whatever comes."""
        if part.part.custom:
            return [part.fragment(encode_json(text)[1:-1].decode())]
        if part.pieces is None:
            return self._flow(part, text)
        part.pieces.append(text)
        if part.odd:
            return []
        start = text.lstrip()
        if start[:1] == "{":
            text, part.pieces = "".join(part.pieces), None
            return self._flow(part, text)
        part.odd = bool(start)
        return []

    def _end_arguments(self, part: _Outgoing) -> list[bytes]:
        if part.part.custom:
            return [part.fragment(_CUSTOM_TAIL)]
        if part.pieces is None or (part.end is not None and part.end.incomplete and not part.odd):
            return []
        text = "".join(part.pieces)
        call = replace(part.part, arguments=read_arguments(text), arguments_text=text)
        return [part.fragment(bytes(arguments_as_object(call)).decode())]

    # ── ends ──

    def _shut(self, part: _Outgoing, end: PartEnd) -> list[bytes]:
        content = part.part
        self._seen.append(
            replace(content, incomplete=True) if end.incomplete and type(content) is ToolCall else content
        )
        if isinstance(content, Reasoning):
            return self._shut_reasoning(part, end)
        if isinstance(content, ToolCall):
            return self._end_arguments(part) + self._stop_signed(part, end)
        if isinstance(content, Text | Refusal):
            signature = end.signature or getattr(content, "signature", None)
            if part.block >= 0:
                return self._stop_signed(part, end)
            if signature is not None:
                return self._spell(carriers.tagged_signature(Text(""), signature))
            return [*self._start_flow(part), part.fragment(""), _stop(part.block)]
        return self._spell_all(content)

    def _stop_signed(self, part: _Outgoing, end: PartEnd) -> list[bytes]:
        """A signature that came last travels in a block of its own, behind the one it belongs to."""
        out = [_stop(part.block)]
        if end.signature is None or end.incomplete or end.signature == part.part.signature:
            return out
        return out + self._spell(carriers.trailing_signature(end.signature))

    def _shut_reasoning(self, part: _Outgoing, end: PartEnd) -> list[bytes]:
        content: Reasoning = part.part
        metadata = content.metadata if end.metadata is None else (content.metadata or {}) | end.metadata
        whole = replace(content, text="", signature=end.signature or content.signature, metadata=metadata)
        if part.block < 0:
            return self._spell_all(whole)
        out: list[bytes] = []
        if not end.incomplete and whole.signature is not None:  # over a text that was cut it would be refused
            for block in self._parts_out.encode_part(whole, "assistant"):
                said = _entries(_entries(encode_json(block))["reasoningContent"])
                signature = _entries(said["reasoningText"]).get("signature") if "reasoningText" in said else None
                out += [] if signature is None else [_delta(part.block, reasoningContent={"signature": signature})]
        return [*out, _stop(part.block)]

    def _spell_all(self, part: AnyPart) -> list[bytes]:
        out: list[bytes] = []
        for block in self._parts_out.encode_part(part, "assistant"):
            kind = next(iter(_entries(encode_json(block))), "")
            if kind in _SPELLED or isinstance(part, Opaque):
                out += self._spell(block)
            else:
                self._log.drop(part, "", kind, "a stream of this API cannot tell it")
        return out

    def _spell(self, block: WireValue) -> list[bytes]:
        """A block that is known whole, told as a client of a stream expects it."""
        kind, held = next(iter(_entries(encode_json(block)).items()))
        number = self._next_block
        self._next_block += 1
        start, deltas = _SPELLED.get(kind, _spell_start)(kind, held)
        out = [] if start is None else [_event(_BLOCK_START, {"contentBlockIndex": number, "start": {kind: start}})]
        return [*out, *[_delta(number, **{name: value}) for name, value in deltas], _stop(number)]


# ── blocks that are known whole: their start event, and their deltas ──────────────────────────────────────────

_Spelling = tuple[Any, list[tuple[str, Any]]]


def _spell_start(kind: str, held: Raw) -> _Spelling:  # noqa: ARG001
    return held, []


def _spell_text(kind: str, held: Raw) -> _Spelling:
    return None, [(kind, held)]


def _spell_reasoning(kind: str, held: Raw) -> _Spelling:
    said = _entries(held)
    if "reasoningText" not in said:
        return None, [(kind, said)]
    return None, [(kind, {name: value}) for name, value in _entries(said["reasoningText"]).items() if value != _NO_TEXT]


def _spell_citations(kind: str, held: Raw) -> _Spelling:  # noqa: ARG001
    said = msgspec.json.decode(held, type=dict[str, list[Raw]])
    texts = [("text", _entries(text)["text"]) for text in said.get("content", [])]
    return None, [*texts, *[("citation", citation) for citation in said.get("citations", [])]]


def _spell_call(kind: str, held: Raw) -> _Spelling:
    said = _entries(held)
    arguments = said.pop("input", Raw(b"{}"))
    return said, [(kind, {"input": bytes(arguments).decode()})]


def _spell_result(kind: str, held: Raw) -> _Spelling:
    said = _entries(held)
    content = said.pop("content", None)
    return said, [] if content is None else [(kind, content)]


def _spell_image(kind: str, held: Raw) -> _Spelling:
    said = _entries(held)
    return {"format": said.pop("format")}, [(kind, said)]


_NO_TEXT = Raw(b'""')
_SPELLED: dict[str, Callable[[str, Raw], _Spelling]] = {
    "text": _spell_text,
    "reasoningContent": _spell_reasoning,
    "citationsContent": _spell_citations,
    "toolUse": _spell_call,
    "toolResult": _spell_result,
    "image": _spell_image,
}

_HANDLERS: dict[type[AnyEvent], Callable[[EventEncoder, Any], list[bytes]]] = {
    StreamStart: EventEncoder._on_start,  # noqa: SLF001
    PartStart: EventEncoder._on_part_start,  # noqa: SLF001
    PartEnd: EventEncoder._on_part_end,  # noqa: SLF001
    UsageUpdate: EventEncoder._on_usage,  # noqa: SLF001
    Finished: EventEncoder._on_finished,  # noqa: SLF001
    StreamFailed: EventEncoder._on_failed,  # noqa: SLF001
}


def _event(write: Callable[[bytes], bytes], payload: dict[str, Any]) -> bytes:
    return write(encode_json(payload))


def _delta(block: int, **said: Any) -> bytes:
    return _event(_BLOCK_DELTA, {"contentBlockIndex": block, "delta": said})


def _stop(block: int) -> bytes:
    return _event(_BLOCK_STOP, {"contentBlockIndex": block})


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not UNSET}


def _wire_keys(notes: dict[str, Any]) -> dict[str, Any]:
    """Notes without those that are only about spelling."""
    return {
        key.removeprefix(MODELLED): held
        for key, held in notes.items()
        if not key.startswith("~") or key.startswith(MODELLED)
    }


def _exception(failure: Failure) -> tuple[str, bytes]:
    """Its name, and its body. Kinds that a stream cannot name are told by the status the model answered with."""
    body = encode_error(failure).content
    raw_type = failure.raw_type
    if failure.metadata is not None and FAMILY in failure.metadata and raw_type and kind_of_exception(raw_type):
        return raw_type[:1].lower() + raw_type[1:], body
    name = STREAM_EXCEPTIONS.get(failure.kind, STREAM_ERROR)
    if name == STREAM_ERROR:
        body = encode_json({**_entries(body), "originalStatusCode": status_of_kind(failure.kind)})
    return name, body
