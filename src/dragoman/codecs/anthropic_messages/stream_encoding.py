"""Encodes events as a Messages stream.

One block at a time, counted from zero, each of them stopped: a part that starts while an earlier one is open waits for
it. Usage and stop reason come in `message_delta`, then `message_stop`; a failed stream ends with an `error` event, and
open blocks stay open.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, Raw

from dragoman.codecs.anthropic_messages import foreign_signatures
from dragoman.codecs.anthropic_messages.caching import FAMILY, NULL
from dragoman.codecs.anthropic_messages.errors import encode_error
from dragoman.codecs.anthropic_messages.parts import PartEncoder
from dragoman.codecs.anthropic_messages.response import encode_finish, encode_usage, message_id, report_usage
from dragoman.codecs.anthropic_messages.wire import MessageResponse, StopDetails, ToolUseBlock
from dragoman.codecs.arguments import EMPTY_OBJECT
from dragoman.codecs.block_encoder import Carriers
from dragoman.codecs.block_sequencer import Outgoing, SequentialEncoder
from dragoman.codecs.claude_tools import member_name
from dragoman.codecs.common_losses import note_empty_model
from dragoman.codecs.failures import failed_stream, refusal_explained
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
from dragoman.ir.notes import Extra, family_notes
from dragoman.ir.values import encode_json, json_line

_entries = msgspec.json.Decoder(dict[str, Raw]).decode

_FRAGMENT_TAIL = b"}}\n\n"
_MESSAGE_STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
_BLOCK_START = b'event: content_block_start\ndata: {"type":"content_block_start","index":%d,"content_block":%b}\n\n'
_BLOCK_STOP = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n'
_TEXT_START = b'{"type":"text","text":""}'
_THINKING_START = b'{"type":"thinking","thinking":"","signature":""}'
_SIGNED_TEXT = Text("...")
_NO_USAGE = Usage()
_NO_COUNTS = Raw(b'{"input_tokens":0,"output_tokens":0}')
_DELTA_HEAD = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":'
_DELTA_HEADS: dict[type[AnyPart], bytes] = {
    Text: _DELTA_HEAD + b'"text_delta","text":',
    Refusal: _DELTA_HEAD + b'"text_delta","text":',
    Reasoning: _DELTA_HEAD + b'"thinking_delta","thinking":',
    ToolCall: _DELTA_HEAD + b'"input_json_delta","partial_json":',
}


class EventEncoder(SequentialEncoder):
    """Encodes events as bytes that a strict client of this format accepts."""

    family: ClassVar[str] = FAMILY
    signatures: ClassVar[Carriers] = foreign_signatures
    signature_delta: ClassVar[str] = "signature_delta"
    refusals_as_text: ClassVar[str] = "it is sent as text: this API reports a refusal by its stop reason"

    def fragment(self, index: int, text: str) -> bytes:
        """Encode more text of a part."""
        if index == self._flowing:
            return self._head + encode_json(text) + _FRAGMENT_TAIL
        return b"".join(self._on_delta(PartDelta(index, text)))

    # ── the message ──

    def _part_encoder(self) -> PartEncoder:
        return PartEncoder(self._log)

    def _opening(self, event: StreamStart, notes: Extra | None) -> bytes:
        if event.model is None:
            note_empty_model(event, self._log)
        if event.created is not None:
            self._log.note(event, "created", "time of creation", "answers of this API do not include it")
        message = MessageResponse(
            [],
            event.id if self._native else message_id(event.id),
            "message",
            "assistant",
            event.model or "",
            None,
            None,
            UNSET if self._native else NULL,
            _NO_COUNTS if self._native else encode_usage(self._usage or _NO_USAGE),
        )
        body = json_line(spliced(message, notes) if notes else message)
        return b'event: message_start\ndata: {"type":"message_start","message":' + body + b"}\n\n"

    def _ending(self, event: Finished, completion: Completion) -> list[bytes]:
        if event.finish.reason == "error" and not self._native:
            return [self._failure(failed_stream(event.finish, self._log).failure)]
        word, matched = encode_finish(event.finish, FAMILY if self._native else None, self._log, completion)
        if self._usage is None or not self._native:
            report_usage(self._usage, self._log, completion)
        notes, late = family_notes(FAMILY, event.finish.metadata), family_notes(FAMILY, event.metadata)
        delta: dict[str, Any] = {"stop_reason": word, "stop_sequence": matched}
        words = None if self._native or word != "refusal" else refusal_explained(completion, event.finish)
        untold = None if self._native else NULL if words is None else StopDetails(words)
        details = notes.get("stop_details", notes.get("~stop_details", untold))
        if details is not None:
            delta["stop_details"] = details
        if "container" in late:
            delta["container"] = late["container"]
            late = {key: value for key, value in late.items() if key != "container"}
        usage = encode_usage(self._usage or _NO_USAGE)
        body = {"type": "message_delta", "delta": delta, "usage": usage, **late}
        return [b"event: message_delta\ndata: " + json_line(body) + b"\n\n", _MESSAGE_STOP]

    def _failure(self, failure: Failure) -> bytes:
        return b"event: error\ndata: " + json_line(Raw(encode_error(failure).content)) + b"\n\n"

    # ── blocks ──

    def _open(self, part: Outgoing) -> list[bytes]:
        content = part.part
        if type(content) is not Text or not content.citations:
            return super()._open(part)
        # Citations come before the text they belong to.
        out = [piece for citation in content.citations for piece in self._cite(part, citation)]
        return out + self._flow(part, content.text) if content.text else out

    def _start_flow(self, part: Outgoing) -> list[bytes]:
        content = part.part
        out: list[bytes] = []
        block = _THINKING_START if type(content) is Reasoning else _TEXT_START
        if type(content) is Text:
            if content.signature is not None:
                out += self._spell_signature(_SIGNED_TEXT, content.signature)
            if content.metadata is not None:
                known = family_notes(FAMILY, content.metadata)
                notes = {key: value for key, value in known.items() if key != "~citations"}
                block = json_line(spliced(Raw(_TEXT_START), notes)) if notes else block
        out.append(self._start_block(part, block))
        return out

    def _start_block(self, part: Outgoing, block: bytes) -> bytes:
        number = part.block = self._number()
        part.head, part.tail = _DELTA_HEADS[type(part.part)] % number, _FRAGMENT_TAIL
        return _BLOCK_START % (number, block)

    def _piece(self, part: Outgoing, text: str) -> bytes:
        return part.head + encode_json(text) + _FRAGMENT_TAIL

    def _cite(self, part: Outgoing, citation: Citation) -> list[bytes]:
        encoded = self._part_encoder().encode_citation(part.part, citation)
        if encoded is None or not isinstance(part.part, Text):
            return []
        out = [] if part.block >= 0 else self._start_flow(part)
        delta = {"type": "citations_delta", "citation": encoded}
        out.append(_event("content_block_delta", index=part.block, delta=delta))
        return out

    def _start_call(self, part: Outgoing) -> bytes:
        call: ToolCall = part.part
        notes = family_notes(FAMILY, call.metadata)
        block = ToolUseBlock(call.id, member_name(call.name, notes), EMPTY_OBJECT)
        return self._start_block(part, json_line(spliced(block, notes) if notes else block))

    def _spell(self, block: WireValue) -> list[bytes]:
        entries: dict[str, Any] = _entries(encode_json(block))
        kind = msgspec.json.decode(entries.get("type", b"null"))  # an unknown block may have none
        deltas = _SPELLED_IN.get(kind, ()) if isinstance(kind, str) else ()
        number = self._number()
        out = []
        for key, empty, delta, name in deltas:
            if key in entries and bytes(entries[key]) != bytes(empty):
                raw = entries[key]
                value = bytes(raw).decode() if name == "partial_json" else raw
                out.append(self._delta(number, delta, **{name: value}))
                entries[key] = empty
        return [_event("content_block_start", index=number, content_block=entries), *out, self._stop(number)]

    def _delta(self, block: int, kind: str, **fields: Any) -> bytes:
        return _event("content_block_delta", index=block, delta={"type": kind, **fields})

    def _stop(self, block: int) -> bytes:
        return _BLOCK_STOP % block


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
"""Block type -> the keys that come in deltas, each as: key, its placeholder at the start, delta type, delta key."""


def _event(kind: str, **fields: Any) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + json_line({"type": kind, **fields}) + b"\n\n"
