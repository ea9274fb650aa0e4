"""Encodes events as a chat stream: `message-start`, blocks, calls and citations, `message-end`, `[DONE]`.

There is no event for an error: a stream that fails ends with `message-end`, the reason ERROR and its text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.codecs.arguments import opening_arguments
from dragoman.codecs.carried_signatures import SIGNATURE, write_signature
from dragoman.codecs.cohere_chat.foreign_signatures import PLAN
from dragoman.codecs.cohere_chat.grounding import encode_citation
from dragoman.codecs.cohere_chat.hosted_tools import HOSTED
from dragoman.codecs.cohere_chat.parts import report_keys
from dragoman.codecs.cohere_chat.profile import FAMILY
from dragoman.codecs.cohere_chat.response import INVENTED_ID, encode_finish, encode_usage
from dragoman.codecs.common_losses import degrade_refusal, drop_cache_mark
from dragoman.codecs.failures import report_lost_kind, streamed_answer
from dragoman.codecs.logprobs import skip_logprobs
from dragoman.codecs.media import as_transcript, document_text, unspoken
from dragoman.codecs.part_handlers import name_of_part
from dragoman.codecs.search_results import search_text
from dragoman.codecs.shared_tools import cross_hosted
from dragoman.codecs.stream_codec import BaseEventEncoder
from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Completion,
    Document,
    Finish,
    Finished,
    LogprobsDelta,
    MediaDelta,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
    Refusal,
    SearchResult,
    ServerToolCall,
    ServerToolResult,
    Signature,
    StreamFailed,
    StreamStart,
    Text,
    ToolCall,
    UsageUpdate,
    withholds_calls,
)
from dragoman.ir.values import encode_json, single_line, to_raw
from dragoman.losses import LossLog

_DONE = b"data: [DONE]\n\n"
_START: dict[str, Any] = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}


def _event(kind: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), encode_json({"type": kind, **fields}))


def _message(kind: str, index: int | None, **delta: Any) -> bytes:
    fields: dict[str, Any] = {} if index is None else {"index": index}
    return _event(kind, **fields, delta={"message": delta})


class EventEncoder(BaseEventEncoder):
    """Encodes events as bytes that a strict client of this format accepts."""

    def __init__(self, log: LossLog) -> None:
        self._log = log
        self._started = False
        self._parts: dict[int, _Outgoing] = {}
        self._blocks = 0
        self._calls = 0
        self._refused = False
        self._citations = 0

    def encode(self, events: list[AnyEvent]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if type(event) is PartDelta:
                if event.citation is None:
                    out.append(self.fragment(event.index, event.text))
                else:
                    out += self._citation(self._parts[event.index], event.citation)
            else:
                out += _HANDLERS[type(event)](self, event)
        return b"".join(out)

    def fragment(self, index: int, text: str) -> bytes:
        """Encode more text of a part."""
        return self._fragment(self._parts[index], text)

    def _on_start(self, event: StreamStart) -> list[bytes]:
        if self._started:
            return []
        self._started = True
        answer = Completion((), id=event.id)
        if event.model is not None:
            self._log.note(answer, "model", "name of the model", "an answer of this API does not name it")
        if event.created is not None:
            self._log.note(answer, "created", "time of the answer", "answers of this API do not include it")
        return [_event("message-start", id=event.id or INVENTED_ID, delta={"message": _START})]

    def _on_part_start(self, event: PartStart) -> list[bytes]:
        first = self._on_start(StreamStart())
        part = event.part if event.candidate else as_transcript(event.part, self._log)
        outgoing = self._parts[event.index] = _Outgoing(part)
        if event.candidate:
            self._log.drop(part, "", "a further candidate", "one answer is streamed")
            return first
        self._report_keys(part)
        if isinstance(part, ToolCall):
            return first + self._open_call(outgoing, part)
        if isinstance(part, Text) and PLAN in (part.metadata or {}).get(FAMILY, {}) and not self._calls:
            outgoing.open("tool-plan-delta", None, b'{"tool_plan":', b"}")
            return [*first, self._fragment(outgoing, part.text)]
        if isinstance(part, Text | Reasoning | Refusal):
            return first + self._open_block(outgoing, part)
        return first + self._whole(outgoing, part)

    def _report_keys(self, part: AnyPart) -> None:
        """Report the metadata of a part that starts whole, which the events of this API have no keys for."""
        metadata = getattr(part, "metadata", None)
        if metadata is not None:
            report_keys(part, metadata, self._log)
            report_keys(part, metadata, self._log, foreign=True)
        for citation in part.citations if isinstance(part, Text) else ():
            report_keys(part, citation.metadata, self._log, "citations.", foreign=True)

    def _open_block(self, outgoing: _Outgoing, part: Text | Reasoning | Refusal) -> list[bytes]:
        if self._calls:
            why = "a message keeps content, plan and calls apart"
            self._log.degrade(part, "", "place among the other parts", why)
        if isinstance(part, Refusal):
            self._refused = True
            degrade_refusal(part, self._log)
        if isinstance(part, Text) and part.cache is not None:
            drop_cache_mark(part, self._log)
        outgoing.waits = True
        out = [self._fragment(outgoing, part.text)]
        for citation in part.citations if isinstance(part, Text) else ():
            out += self._citation(outgoing, citation)
        return out

    def _start_block(self, outgoing: _Outgoing) -> bytes:
        """Start the block of a part when it has something to hold: a client returns an empty text, which is refused."""
        if not outgoing.waits:
            return b""
        outgoing.waits = False
        kind = "thinking" if isinstance(outgoing.part, Reasoning) else "text"
        index = self._blocks
        self._blocks += 1
        outgoing.open("content-delta", index, b'{"content":{"%b":' % kind.encode(), b"}}")
        return _message("content-start", index, content={"type": kind, kind: ""})

    def _open_call(self, outgoing: _Outgoing, call: ToolCall) -> list[bytes]:
        index = self._calls
        self._calls += 1
        if call.cache is not None:
            drop_cache_mark(call, self._log)
        outgoing.open("tool-call-delta", index, b'{"tool_calls":{"function":{"arguments":', b"}}}")
        opening: dict[str, Any] = {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }
        if call.signature is not None and call.signature.data:
            opening[SIGNATURE] = write_signature(call.signature)
        out = [_message("tool-call-start", index, tool_calls=opening)]
        if call.custom:
            outgoing.pieces = [call.arguments_text or ""]
        elif text := opening_arguments(call):
            out.append(self._fragment(outgoing, text))
        return out

    def _whole(self, outgoing: _Outgoing, part: AnyPart) -> list[bytes]:
        """Encode a document that is text; report anything else an answer cannot hold."""
        if isinstance(part, ServerToolCall | ServerToolResult):
            cross_hosted(part, self._log, HOSTED)
            return []
        search = search_text(part, self._log) if type(part) is SearchResult else None
        if search is not None:
            return self._open_block(outgoing, Text(search))
        if not isinstance(part, Document) or part.text is None:
            why = "a message of this API holds text, thinking and calls"
            self._log.drop(part, "", name_of_part(part), why)
            return []
        text = Text(document_text(part, self._log))
        self._log.replaced(text, part)
        return self._open_block(outgoing, text)

    def _fragment(self, outgoing: _Outgoing, text: str) -> bytes:
        if not text or not (outgoing.head or outgoing.waits):
            return b""
        outgoing.length += len(text)
        if outgoing.pieces is not None:
            outgoing.pieces.append(text)
            return b""
        start = self._start_block(outgoing) if outgoing.waits else b""
        return start + outgoing.head + encode_json(text) + outgoing.tail

    def _citation(self, outgoing: _Outgoing, citation: Any) -> list[bytes]:
        if not (outgoing.head or outgoing.waits):
            return []
        wire = encode_citation(citation, "", self._blocks if outgoing.waits else outgoing.index)
        if wire is None:
            return []
        start = self._start_block(outgoing)
        number = self._citations
        self._citations += 1
        encoded = single_line(to_raw(wire))
        return [start, _message("citation-start", number, citations=encoded), _event("citation-end", index=number)]

    def _on_part_end(self, event: PartEnd) -> list[bytes]:
        outgoing = self._parts.pop(event.index)
        part = outgoing.part
        if not (outgoing.head or outgoing.waits):
            return []
        signature = event.signature or getattr(part, "signature", None)
        if signature is not None and (event.incomplete or not signature.data):
            signature = None
        if isinstance(part, ToolCall):
            return self._end_call(outgoing, part, event)
        if outgoing.waits and signature is None:
            return []
        out = [self._start_block(outgoing)]
        if outgoing.index is None:
            return []  # a plan has no end
        if signature is not None:
            out.append(self._signature(outgoing, part, signature))
        return [*out, _event("content-end", index=outgoing.index)]

    def _signature(self, outgoing: _Outgoing, part: AnyPart, signature: Signature) -> bytes:
        redacted = isinstance(part, Reasoning) and part.redacted
        key = "thinking" if isinstance(part, Reasoning) else "text"
        content = {key: "", SIGNATURE: write_signature(signature, redacted=redacted)}
        return _message("content-delta", outgoing.index, content=content)

    def _end_call(self, outgoing: _Outgoing, call: ToolCall, event: PartEnd) -> list[bytes]:
        out: list[bytes] = []
        if outgoing.pieces is not None:
            # The tool takes free text; a function of this API takes an object.
            text = "".join(outgoing.pieces)
            outgoing.pieces = None
            out.append(self._fragment(outgoing, encode_json({"input": text}).decode()))
        elif not outgoing.length and not event.incomplete:
            out.append(self._fragment(outgoing, "{}"))  # clients parse the text, and an empty one is not JSON
        if event.incomplete:
            return out  # it was cut off
        signature = event.signature
        if signature is not None and signature.data and call.signature is None:
            delta = {"function": {"arguments": ""}, SIGNATURE: write_signature(signature)}
            out.append(_message("tool-call-delta", outgoing.index, tool_calls=delta))
        return [*out, _event("tool-call-end", index=outgoing.index)]

    def _on_finished(self, event: Finished) -> list[bytes]:
        out = self._on_start(StreamStart())
        answer = streamed_answer(calls=self._calls > 0, refused=self._refused)
        notes = (event.metadata or {}).get(FAMILY)
        native = notes is not None
        finish: Finish = event.finish
        has_calls = withholds_calls(finish) and self._calls > 0
        ending: dict[str, Any] = {
            "finish_reason": encode_finish(finish, self._log, answer, native=native, has_calls=has_calls)
        }
        if self._usage is not None:
            ending["usage"] = single_line(to_raw(encode_usage(self._usage, self._log, answer)))
        # Keys without a field in any event: the decoder keeps them with the answer, so they go with its end.
        ending |= {key: single_line(value) for key, value in (notes or {}).items() if not key.startswith("~")}
        return [*out, _event("message-end", delta=ending), _DONE]

    def _on_failed(self, event: StreamFailed) -> list[bytes]:
        out = self._on_start(StreamStart())
        failure = event.failure
        word = "TIMEOUT" if failure.kind == "timeout" else "ERROR"
        report_lost_kind(failure, "timeout" if word == "TIMEOUT" else "server", self._log)
        return [*out, _event("message-end", delta={"finish_reason": word, "error": failure.message}), _DONE]


class _Outgoing:
    """One part while it is encoded: the bytes around each of its fragments, empty if the part is not sent."""

    __slots__ = ("head", "index", "length", "part", "pieces", "tail", "waits")

    def __init__(self, part: AnyPart) -> None:
        self.part = part
        self.head = self.tail = b""
        self.index: int | None = None
        self.length = 0
        self.pieces: list[str] | None = None
        self.waits = False
        """Whether it is a block that has not been started."""

    def open(self, kind: str, index: int | None, head: bytes, tail: bytes) -> None:
        place = b"" if index is None else b'"index":%d,' % index
        name = kind.encode()
        self.index = index
        self.head = b'event: %b\ndata: {"type":"%b",%b"delta":{"message":%b' % (name, name, place, head)
        self.tail = tail + b"}}\n\n"


_HANDLERS: dict[type[AnyEvent], Callable[[EventEncoder, Any], list[bytes]]] = {
    StreamStart: EventEncoder._on_start,
    PartStart: EventEncoder._on_part_start,
    MediaDelta: unspoken,
    LogprobsDelta: skip_logprobs,
    PartEnd: EventEncoder._on_part_end,
    UsageUpdate: EventEncoder._on_usage,
    Finished: EventEncoder._on_finished,
    StreamFailed: EventEncoder._on_failed,
}
