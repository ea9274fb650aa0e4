"""Events to a Messages stream.

One block at a time, counted from zero, each of them stopped: what starts while an earlier part is open waits for it.
Usage and stop reason come in `message_delta`, then `message_stop`; a stream that failed ends with an `error` event, and
leaves open what was open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from dragoman.codecs.anthropic_messages import carriers
from dragoman.codecs.anthropic_messages.caching import FAMILY, NULL
from dragoman.codecs.anthropic_messages.errors import encode_error
from dragoman.codecs.anthropic_messages.parts import PartEncoder, own
from dragoman.codecs.anthropic_messages.response import encode_finish, encode_usage, message_id
from dragoman.codecs.anthropic_messages.wire import MessageResponse, ToolUseBlock
from dragoman.codecs.arguments import EMPTY_OBJECT, arguments_as_object, arguments_as_text, read_arguments
from dragoman.codecs.reading import WireValue, spliced
from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Citation,
    Completion,
    Finished,
    Message,
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
from dragoman.ir.values import encode_json, single_line
from dragoman.losses import LossLog

_entries = msgspec.json.Decoder(dict[str, Raw]).decode

_FRAGMENT_TAIL = b"}}\n\n"
_MESSAGE_STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
_TEXT_START = Raw(b'{"type":"text","text":""}')
_THINKING_START = Raw(b'{"type":"thinking","thinking":"","signature":""}')
_NO_COUNTS = Raw(b'{"input_tokens":0,"output_tokens":0}')
_CUSTOM_HEAD, _CUSTOM_TAIL = '{"input":"', '"}'
_FLOWS: dict[type[AnyPart], bytes] = {
    Text: b'"text_delta","text":',
    Refusal: b'"text_delta","text":',
    Reasoning: b'"thinking_delta","thinking":',
    ToolCall: b'"input_json_delta","partial_json":',
}


class _Outgoing:
    """One part on its way out."""

    __slots__ = ("block", "end", "head", "index", "odd", "part", "pieces", "waiting")

    def __init__(self, index: int, part: AnyPart) -> None:
        self.index = index
        self.part: Any = part
        self.block = -1  # until its block starts
        self.head = b""
        """The bytes before each of its fragments."""
        self.pieces: list[str] | None = []
        """Argument text that is not yet known to be an object; None once it is, and flows."""
        self.odd = False
        self.waiting: list[PartDelta] = []
        """What came while an earlier part was open."""
        self.end: PartEnd | None = None


class EventEncoder:
    """Events in, bytes out that a strict client of this format accepts."""

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
        self._head = b""

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
            return self._head + encode_json(text) + _FRAGMENT_TAIL
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
        if event.model is None:
            self._log.invent(event, "model", "empty model name", "an answer of this API names its model")
        if event.created is not None:
            self._log.drop(event, "created", "time of creation", "an answer of this API does not tell it")
        message = MessageResponse(
            [],
            event.id if self._native else message_id(event.id),
            "message",
            "assistant",
            event.model or "",
            None,
            None,
            UNSET if self._native else NULL,
            _NO_COUNTS if self._native else Raw(encode_json(encode_usage(self._usage or Usage()))),
        )
        return [_event("message_start", message=spliced(message, notes) if notes else message)]

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
        word, matched = encode_finish(event.finish, FAMILY if self._native else None, self._log, completion)
        if self._usage is None:
            self._log.invent(completion, "usage", "usage of zero tokens", "an answer of this API tells its usage")
        details, late = own(event.finish.metadata), dict(own(event.metadata))
        delta = {
            "stop_reason": word,
            "stop_sequence": matched,
            "stop_details": details.get("stop_details", details.get("~stop_details", UNSET if self._native else NULL)),
            "container": late.pop("container", UNSET),
        }
        usage = encode_usage(self._usage or Usage())
        return [*out, _event("message_delta", delta=_given(delta), usage=usage, **late), _MESSAGE_STOP]

    def _on_failed(self, event: StreamFailed) -> list[bytes]:
        """What is open stays open: nothing after this says that it was whole."""
        content = bytes(single_line(Raw(encode_error(event.failure).content)))
        return [b"event: error\ndata: " + content + b"\n\n"]

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
            self._log.degrade(content, "", "refusal", "it is sent as text: this API tells a refusal by its stop reason")
        if isinstance(content, Text):
            out = []
            for citation in content.citations:
                out += self._cite(part, citation)
            return out + self._flow(part, content.text) if content.text else out
        return self._flow(part, content.text) if isinstance(content, Reasoning | Refusal) and content.text else []

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
        self._flowing, self._head = part.index, part.head
        out.append(part.head + encode_json(text) + _FRAGMENT_TAIL)
        return out

    def _start_flow(self, part: _Outgoing) -> list[bytes]:
        """A signature that is known already travels before its text, as it does without a stream."""
        content = part.part
        out: list[bytes] = []
        block = _THINKING_START if isinstance(content, Reasoning) else _TEXT_START
        if isinstance(content, Text):
            if content.signature is not None:
                out += self._spell(carriers.tagged_signature(Text("..."), content.signature))
            notes = {key: held for key, held in own(content.metadata).items() if key != "~citations"}
            block = spliced(_TEXT_START, notes) if notes else block
        return out + self._start_block(part, block)

    def _start_block(self, part: _Outgoing, block: WireValue) -> list[bytes]:
        part.block = self._next_block
        self._next_block += 1
        number = str(part.block).encode()
        part.head = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":' + number
        part.head += b',"delta":{"type":' + _FLOWS[type(part.part)]
        return [_event("content_block_start", index=part.block, content_block=block)]

    def _cite(self, part: _Outgoing, citation: Citation) -> list[bytes]:
        held = own(citation.metadata).get("~citation")
        if held is None or not isinstance(part.part, Text):
            # A web citation needs an encrypted index, a document citation the document's number.
            why = "a citation of another provider cannot be replayed here"
            self._log.drop(part.part, "citations", "citation", why)
            return []
        out = [] if part.block >= 0 else self._start_flow(part)
        delta = {"type": "citations_delta", "citation": held}
        out.append(_event("content_block_delta", index=part.block, delta=delta))
        return out

    # ── calls ──

    def _open_call(self, part: _Outgoing) -> list[bytes]:
        call: ToolCall = part.part
        before = [] if call.signature is None else self._spell(carriers.tagged_signature(call, call.signature))
        notes = own(call.metadata)
        block: WireValue = ToolUseBlock(call.id, call.name, EMPTY_OBJECT)
        out = before + self._start_block(part, spliced(block, notes) if notes else block)
        if call.custom:
            out.append(part.head + encode_json(_CUSTOM_HEAD) + _FRAGMENT_TAIL)
        if call.parsed or call.arguments_text is not None:
            text = call.arguments_text if call.custom else arguments_as_text(call)
            return out + self._arguments(part, text) if text else out
        return out

    def _arguments(self, part: _Outgoing, text: str) -> list[bytes]:
        """Fragments of an object flow. What begins as anything else is held: `input` is an object, whatever comes."""
        if part.part.custom:
            return [part.head + encode_json(encode_json(text)[1:-1].decode()) + _FRAGMENT_TAIL]
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
            return [part.head + encode_json(_CUSTOM_TAIL) + _FRAGMENT_TAIL]
        if part.pieces is None or (part.end is not None and part.end.incomplete and not part.odd):
            return []
        text = "".join(part.pieces)
        call = replace(part.part, arguments=read_arguments(text), arguments_text=text)
        return [part.head + encode_json(bytes(arguments_as_object(call)).decode()) + _FRAGMENT_TAIL]

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
            return [*self._start_flow(part), self._stop(part.block)]
        out = []
        for block in self._parts_out.encode_part(content, "assistant"):
            out += self._spell(block)
        return out

    def _stop_signed(self, part: _Outgoing, end: PartEnd) -> list[bytes]:
        """A signature that came last travels in a block of its own, behind the one it belongs to."""
        out = [self._stop(part.block)]
        if end.signature is None or end.incomplete or end.signature == part.part.signature:
            return out
        return out + self._spell(carriers.trailing_signature(end.signature))

    def _shut_reasoning(self, part: _Outgoing, end: PartEnd) -> list[bytes]:
        content: Reasoning = part.part
        metadata = content.metadata if end.metadata is None else (content.metadata or {}) | end.metadata
        whole = replace(content, text="", signature=end.signature or content.signature, metadata=metadata)
        if part.block < 0:
            return [piece for block in self._parts_out.encode_part(whole, "assistant") for piece in self._spell(block)]
        out: list[bytes] = []
        if not end.incomplete:  # a signature over a text that was cut would be refused
            for block in self._parts_out.encode_part(whole, "assistant"):
                signature = _entries(encode_json(block)).get("signature")
                out += [] if signature is None else [self._delta(part.block, "signature_delta", signature=signature)]
        return [*out, self._stop(part.block)]

    def _spell(self, block: WireValue) -> list[bytes]:
        """A block that is known whole, told as a client of a stream expects it."""
        entries: dict[str, Any] = _entries(encode_json(block))
        deltas = _SPELLED_IN.get(msgspec.json.decode(entries["type"]), ())
        number = self._next_block
        self._next_block += 1
        out = []
        for key, empty, delta, name in deltas:
            if key in entries and bytes(entries[key]) != bytes(empty):
                held = entries[key]
                value = bytes(held).decode() if name == "partial_json" else held
                out.append(self._delta(number, delta, **{name: value}))
                entries[key] = empty
        return [_event("content_block_start", index=number, content_block=entries), *out, self._stop(number)]

    def _delta(self, block: int, kind: str, **fields: Any) -> bytes:
        return _event("content_block_delta", index=block, delta={"type": kind, **fields})

    def _stop(self, block: int) -> bytes:
        return _event("content_block_stop", index=block)


_EMPTY_STRING = Raw(b'""')
_INPUT = (("input", EMPTY_OBJECT, "input_json_delta", "partial_json"),)
_SPELLED_IN: dict[str, tuple[tuple[str, Raw, str, str], ...]] = {
    "text": (("text", _EMPTY_STRING, "text_delta", "text"),),
    "thinking": (
        ("thinking", _EMPTY_STRING, "thinking_delta", "thinking"),
        ("signature", _EMPTY_STRING, "signature_delta", "signature"),
    ),
    "server_tool_use": _INPUT,
    "mcp_tool_use": _INPUT,
}
"""Block type -> which of its keys come in deltas: the key, what stands in its place, the delta and its key."""

_HANDLERS: dict[type[AnyEvent], Callable[[EventEncoder, Any], list[bytes]]] = {
    StreamStart: EventEncoder._on_start,  # noqa: SLF001
    PartStart: EventEncoder._on_part_start,  # noqa: SLF001
    PartEnd: EventEncoder._on_part_end,  # noqa: SLF001
    UsageUpdate: EventEncoder._on_usage,  # noqa: SLF001
    Finished: EventEncoder._on_finished,  # noqa: SLF001
    StreamFailed: EventEncoder._on_failed,  # noqa: SLF001
}


def _event(kind: str, **fields: Any) -> bytes:
    body = single_line(Raw(encode_json({"type": kind, **fields})))
    return b"event: " + kind.encode() + b"\ndata: " + bytes(body) + b"\n\n"


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not UNSET}
