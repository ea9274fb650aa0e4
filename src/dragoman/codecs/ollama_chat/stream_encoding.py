"""Encodes events as a chat stream: one JSON object per line.

Calls wait for the end of the answer, which decides whether they may be run. What follows a call waits with it, so
that everything is sent in the order in which it started.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dragoman.codecs.arguments import EMPTY_OBJECT, UNPARSED_KEY, arguments_as_object
from dragoman.codecs.carried_signatures import SIGNATURE, write_signature
from dragoman.codecs.failures import failed_stream, report_lost_kind, streamed_answer
from dragoman.codecs.logprobs import write_tokens
from dragoman.codecs.media import as_transcript, unspoken
from dragoman.codecs.ollama_chat import foreign_signatures
from dragoman.codecs.ollama_chat.errors import decode_error, encode_error
from dragoman.codecs.ollama_chat.parts import PartEncoder
from dragoman.codecs.ollama_chat.profile import FAMILY
from dragoman.codecs.ollama_chat.response import (
    CALL_WITHHELD,
    CANNOT_SAY,
    UNSAID,
    encode_finish,
    encode_usage,
)
from dragoman.codecs.ollama_chat.wire import DURATIONS, Call, Function
from dragoman.codecs.reading import spliced
from dragoman.codecs.stream_codec import BaseEventEncoder
from dragoman.codecs.timestamps import write_time
from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Finish,
    Finished,
    LogprobsDelta,
    MediaDelta,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
    Refusal,
    Signature,
    StreamFailed,
    StreamStart,
    Text,
    ToolCall,
    UsageUpdate,
    withholds_calls,
)
from dragoman.ir.notes import MODELLED, Extra
from dragoman.ir.values import encode_json, exact_object, single_line, to_raw
from dragoman.losses import LossLog

_MESSAGE = b',"message":{"role":"assistant",'
_NOTHING = b'"content":""'
_TAIL = b'},"done":false}\n'


class EventEncoder(BaseEventEncoder):
    """Encodes events as lines that a strict client of this format accepts."""

    def __init__(self, log: LossLog) -> None:
        self._log = log
        self._head = b""
        self._fields: dict[str, Any] = {}
        self._parts: dict[int, _Outgoing] = {}
        self._queue: list[_Outgoing | bytes] = []
        """From the first call on: the calls, and the lines between and after them."""
        self._calls = 0
        self._refused = False
        self._lengths = {"content": 0, "thinking": 0}

    def encode(self, events: list[AnyEvent]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if type(event) is LogprobsDelta:
                self._add_logprobs(event, self._queue or out)
                continue
            if type(event) is PartDelta:
                if event.citation is None:
                    out.append(self.fragment(event.index, event.text))
                else:
                    part = self._parts[event.index].part
                    self._log.drop(part, "citations", "citation", "this API has no citations")
                    (self._queue or out).append(b"")
                continue
            lines = _HANDLERS[type(event)](self, event)
            if self._queue and type(event) not in _ENDS:
                self._queue += lines
            else:
                out += lines
        return b"".join(out)

    def fragment(self, index: int, text: str) -> bytes:
        """Encode more text of a part."""
        line = self._fragment(self._parts[index], text)
        if self._queue:
            self._queue.append(line)
            return b""
        return line

    def _on_start(self, event: StreamStart) -> list[bytes]:
        if not self._head:
            self._fields = {"model": event.model or "", "created_at": write_time(event.created)}
            if event.id is not None:
                self._fields["id"] = event.id
            self._head = encode_json(self._fields)[:-1] + _MESSAGE
        return []

    def _line(self, fragment: bytes) -> bytes:
        return self._head + fragment + _TAIL

    def _on_part_start(self, event: PartStart) -> list[bytes]:
        self._on_start(StreamStart())
        part = event.part if event.candidate else as_transcript(event.part, self._log)
        outgoing = self._parts[event.index] = _Outgoing(part)
        if event.candidate:
            self._log.drop(part, "", "a further candidate", "one answer is streamed")
            return []
        if type(part) is ToolCall:
            self._queue.append(outgoing)
            return []
        if type(part) is Reasoning:
            outgoing.field, outgoing.head = "thinking", self._head + _NOTHING + b',"thinking":'
        elif type(part) is Text or type(part) is Refusal:
            outgoing.field, outgoing.head = "content", self._head + b'"content":'
            self._refused = self._refused or type(part) is Refusal
            PartEncoder(self._log).gather([part])  # only to report its losses
        else:
            return self._whole(part)
        outgoing.start = self._lengths[outgoing.field]
        return [self._fragment(outgoing, part.text)] if part.text else []

    def _whole(self, part: AnyPart) -> list[bytes]:
        """Encode a document that is text; report anything else an answer cannot hold."""
        gathered = PartEncoder(self._log, media=False, to_client=True).gather([part])
        return [self._line(b'"content":' + encode_json(text)) for text in gathered.texts]

    def _fragment(self, outgoing: _Outgoing, text: str) -> bytes:
        if not outgoing.head:
            outgoing.pieces.append(text)
            return b""
        self._lengths[outgoing.field] += len(text)
        return outgoing.head + encode_json(text) + _TAIL if text else b""

    def _on_part_end(self, event: PartEnd) -> list[bytes]:
        outgoing = self._parts.pop(event.index)
        part = outgoing.part
        if isinstance(part, ToolCall):
            outgoing.ended, outgoing.incomplete = True, event.incomplete
            outgoing.signature = event.signature or part.signature
            return []
        signature = event.signature or getattr(part, "signature", None)
        if signature is None or event.incomplete or not isinstance(part, Text | Reasoning) or not outgoing.head:
            return []
        signed = msgspec.structs.replace(part, signature=signature)
        mark = foreign_signatures.signed_text(signed, outgoing.start, self._lengths[outgoing.field] - outgoing.start)
        return [] if mark is None else [self._line(_NOTHING + b',"signatures":' + encode_json([mark]))]

    def _held_lines(self, finish: Finish, *, native: bool) -> list[bytes]:
        """Encode the calls and what followed them: only at the end is it known whether a call may be run (law 7)."""
        lines: list[bytes] = []
        for outgoing in self._queue:
            if isinstance(outgoing, bytes):
                lines.append(outgoing)
            elif withholds_calls(finish) and not native:
                self._log.drop(outgoing.part, "", CALL_WITHHELD, CANNOT_SAY)
            else:
                lines.append(self._line(_NOTHING + b',"tool_calls":[' + encode_json(self._call(outgoing)) + b"]"))
        return lines

    def _call(self, outgoing: _Outgoing) -> Any:
        call: Any = outgoing.part
        if outgoing.incomplete:
            self._log.degrade(call, "", "call that was cut", "its arguments travel as text: this API sends whole calls")
        arguments = _arguments(call, "".join(outgoing.pieces), cut=outgoing.incomplete)
        body = Call(Function(call.name, single_line(arguments), self._calls), call.id)
        self._calls += 1
        signature = outgoing.signature
        if signature is None or not signature.data or outgoing.incomplete:
            return body
        return spliced(body, {SIGNATURE: write_signature(signature)})

    def _add_logprobs(self, event: LogprobsDelta, out: list[Any]) -> None:
        """Add log probabilities to the line of their text, or to an empty one if that line was already sent."""
        if event.candidate:
            return  # its text is not sent either
        has_text = bool(out) and type(out[-1]) is bytes and out[-1].endswith(_TAIL)
        line = out.pop() if has_text else self._line(_NOTHING)
        encoded = b'},"logprobs":' + encode_json(write_tokens(event.tokens))
        out.append(line.removesuffix(_TAIL) + encoded + _TAIL.removeprefix(b"}"))

    def _on_finished(self, event: Finished) -> list[bytes]:
        reason = event.finish.reason
        if reason in UNSAID and not (reason == "refusal" and self._refused):
            return self._on_failed(failed_stream(event.finish, self._log))
        self._on_start(StreamStart())
        for outgoing in self._queue:
            if isinstance(outgoing, _Outgoing) and not outgoing.ended:
                outgoing.ended = outgoing.incomplete = True
        notes: Extra | None = (event.metadata or {}).get(FAMILY)
        lines = self._held_lines(event.finish, native=notes is not None)
        answer = streamed_answer(calls=self._calls > 0, refused=self._refused)
        prompt, written = encode_usage(self._usage, self._log, answer)
        fields = {
            **self._fields,
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": encode_finish(event.finish, self._log, answer, native=notes is not None),
            **({} if notes is not None else dict.fromkeys(DURATIONS, 1)),
            "prompt_eval_count": prompt,
            "eval_count": written,
            **{key.removeprefix(MODELLED): entry for key, entry in (notes or {}).items()},
        }
        last = {key: value for key, value in fields.items() if value is not None and value is not UNSET}
        return [*lines, encode_json(last) + b"\n"]

    def _on_failed(self, event: StreamFailed) -> list[bytes]:
        content = encode_error(event.failure).content
        report_lost_kind(event.failure, decode_error(content).kind, self._log)
        lines = [line for line in self._queue if isinstance(line, bytes)]
        return [*lines, bytes(single_line(Raw(content))) + b"\n"]


def _arguments(call: ToolCall, text: str, *, cut: bool) -> Raw:
    if call.custom and text:
        return Raw(encode_json({"input": text}))
    if cut:
        return Raw(encode_json({UNPARSED_KEY: text}))
    if not text:
        return arguments_as_object(call) if call.parsed or call.arguments_text else EMPTY_OBJECT
    parsed = exact_object(text)
    return to_raw({UNPARSED_KEY: text}) if parsed is None else parsed


class _Outgoing:
    """One part while it is encoded: the bytes before each of its fragments, or the fragments of a call."""

    __slots__ = ("ended", "field", "head", "incomplete", "part", "pieces", "signature", "start")

    def __init__(self, part: AnyPart) -> None:
        self.part = part
        self.head = b""
        self.field = "content"
        self.pieces: list[str] = []
        self.signature: Signature | None = None
        self.start = 0
        self.ended = False
        self.incomplete = False


_ENDS = frozenset({Finished, StreamFailed})

_HANDLERS: dict[type[AnyEvent], Callable[[EventEncoder, Any], list[bytes]]] = {
    StreamStart: EventEncoder._on_start,
    PartStart: EventEncoder._on_part_start,
    MediaDelta: unspoken,
    PartEnd: EventEncoder._on_part_end,
    UsageUpdate: EventEncoder._on_usage,
    Finished: EventEncoder._on_finished,
    StreamFailed: EventEncoder._on_failed,
}
