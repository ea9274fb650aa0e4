"""Events to a Messages stream.

One block at a time, counted from zero, each of them stopped: what starts while an earlier part is open waits for it.
Usage and stop reason come in `message_delta`, then `message_stop`; a stream that failed ends with an `error` event, and
leaves open what was open.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dragoman.codecs.anthropic_messages import foreign_signatures
from dragoman.codecs.anthropic_messages.caching import FAMILY, NULL
from dragoman.codecs.anthropic_messages.errors import encode_error
from dragoman.codecs.anthropic_messages.parts import PartEncoder, own
from dragoman.codecs.anthropic_messages.response import encode_finish, encode_usage, message_id
from dragoman.codecs.anthropic_messages.wire import MessageResponse, ToolUseBlock
from dragoman.codecs.arguments import EMPTY_OBJECT
from dragoman.codecs.block_sequencer import Outgoing, SequentialEncoder
from dragoman.codecs.reading import WireValue, spliced
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
    Usage,
)
from dragoman.ir.notes import Extra
from dragoman.ir.values import encode_json, single_line
from dragoman.losses import LossLog

_entries = msgspec.json.Decoder(dict[str, Raw]).decode

_FRAGMENT_TAIL = b"}}\n\n"
_MESSAGE_STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
_TEXT_START = Raw(b'{"type":"text","text":""}')
_THINKING_START = Raw(b'{"type":"thinking","thinking":"","signature":""}')
_NO_COUNTS = Raw(b'{"input_tokens":0,"output_tokens":0}')
_FLOWS: dict[type[AnyPart], bytes] = {
    Text: b'"text_delta","text":',
    Refusal: b'"text_delta","text":',
    Reasoning: b'"thinking_delta","thinking":',
    ToolCall: b'"input_json_delta","partial_json":',
}


class EventEncoder(SequentialEncoder):
    """Events in, bytes out that a strict client of this format accepts."""

    def __init__(self, log: LossLog) -> None:
        super().__init__(log, FAMILY, PartEncoder(log), foreign_signatures)

    def fragment(self, index: int, text: str) -> bytes:
        """More text of a part."""
        if index == self._flowing:
            return self._head + encode_json(text) + _FRAGMENT_TAIL
        return b"".join(self._on_delta(PartDelta(index, text)))

    # ── the message ──

    def _opening(self, event: StreamStart, notes: Extra | None) -> bytes:
        if event.model is None:
            self._log.note(event, "model", "empty model name", "an answer of this API names its model")
        if event.created is not None:
            self._log.note(event, "created", "time of creation", "an answer of this API does not tell it")
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
        return _event("message_start", message=spliced(message, notes) if notes else message)

    def _ending(self, event: Finished, completion: Completion) -> list[bytes]:
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
        return [_event("message_delta", delta=_given(delta), usage=usage, **late), _MESSAGE_STOP]

    def _failure(self, failure: Failure) -> bytes:
        content = bytes(single_line(Raw(encode_error(failure).content)))
        return b"event: error\ndata: " + content + b"\n\n"

    # ── blocks ──

    def _open(self, part: Outgoing) -> list[bytes]:
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

    def _start_flow(self, part: Outgoing) -> list[bytes]:
        content = part.part
        out: list[bytes] = []
        block = _THINKING_START if isinstance(content, Reasoning) else _TEXT_START
        if isinstance(content, Text):
            out += self._spell_signature(Text("..."), content.signature)
            notes = {key: held for key, held in own(content.metadata).items() if key != "~citations"}
            block = spliced(_TEXT_START, notes) if notes else block
        out.append(self._start_block(part, block))
        return out

    def _start_block(self, part: Outgoing, block: WireValue) -> bytes:
        part.block = self._number()
        number = str(part.block).encode()
        part.head = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":' + number
        part.head += b',"delta":{"type":' + _FLOWS[type(part.part)]
        part.tail = _FRAGMENT_TAIL
        return _event("content_block_start", index=part.block, content_block=block)

    def _piece(self, part: Outgoing, text: str) -> bytes:
        return part.head + encode_json(text) + _FRAGMENT_TAIL

    def _cite(self, part: Outgoing, citation: Citation) -> list[bytes]:
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

    def _start_call(self, part: Outgoing) -> bytes:
        call: ToolCall = part.part
        notes = own(call.metadata)
        block: WireValue = ToolUseBlock(call.id, call.name, EMPTY_OBJECT)
        return self._start_block(part, spliced(block, notes) if notes else block)

    def _sign(self, part: Outgoing, whole: Reasoning) -> list[bytes]:
        out: list[bytes] = []
        for block in self._parts_out.encode_part(whole, "assistant"):
            signature = _entries(encode_json(block)).get("signature")
            out += [] if signature is None else [self._delta(part.block, "signature_delta", signature=signature)]
        return out

    def _tell_empty(self, part: Outgoing) -> list[bytes]:
        return [*self._start_flow(part), self._stop(part.block)]

    def _spell(self, block: WireValue) -> list[bytes]:
        entries: dict[str, Any] = _entries(encode_json(block))
        deltas = _SPELLED_IN.get(msgspec.json.decode(entries["type"]), ())
        number = self._number()
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


def _event(kind: str, **fields: Any) -> bytes:
    body = single_line(Raw(encode_json({"type": kind, **fields})))
    return b"event: " + kind.encode() + b"\ndata: " + bytes(body) + b"\n\n"


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not UNSET}
