"""Encodes events as a Chat Completions stream.

The first chunk has the role; a call's first fragment has index, id and name, later ones only arguments; the index
counts calls; then the finish chunk, the usage chunk if asked for, `[DONE]`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.codecs import listed_pages
from dragoman.codecs.arguments import opening_arguments
from dragoman.codecs.failures import failed_stream, report_lost_kind, streamed_answer
from dragoman.codecs.logprobs import write_choice
from dragoman.codecs.openai_chat import audio, foreign_signatures, images
from dragoman.codecs.openai_chat.errors import decode_error, encode_error
from dragoman.codecs.openai_chat.hosted_tools import HOSTED
from dragoman.codecs.openai_chat.messages import FAMILY
from dragoman.codecs.openai_chat.profile import PROFILE, ChatProfile
from dragoman.codecs.openai_chat.response import MATCHED, encode_finish, encode_usage
from dragoman.codecs.openai_chat.wire import ReasoningDetail
from dragoman.codecs.part_handlers import name_of_part
from dragoman.codecs.search_results import search_text
from dragoman.codecs.shared_settings import ANSWERED_BY_OPENAI, named_tier
from dragoman.codecs.shared_tools import cross_hosted, drawn_image
from dragoman.codecs.stream_codec import BaseEventEncoder
from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Audio,
    Citation,
    Finished,
    Image,
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
)
from dragoman.ir.notes import MODELLED, Extra, family_notes
from dragoman.ir.values import encode_json, json_line
from dragoman.losses import LossLog


class EventEncoder(BaseEventEncoder):
    """Encodes events as bytes that a strict client of this format accepts."""

    _opening = b""
    """The members that every chunk begins with."""
    _head = b""
    _started = False
    _calls = 0
    _refused = False
    _sounds = 0
    _details = 0
    _characters = 0  # of the texts that ended

    def __init__(self, log: LossLog, *, include_usage: bool = True, profile: ChatProfile = PROFILE) -> None:
        self._log = log
        self._profile = profile
        self._include_usage = include_usage
        self._end = b',"usage":null}\n\n' if include_usage else b"}\n\n"
        self._tail = b'},"logprobs":null,"finish_reason":null}]' + self._end
        self._parts: dict[int, _Outgoing] = {}

    def encode(self, events: list[AnyEvent]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if type(event) is PartDelta:
                if event.citation is None:
                    out.append(self.fragment(event.index, event.text))
                else:
                    out += self._citation(self._parts[event.index], event.citation)
            elif type(event) is LogprobsDelta:
                self._add_logprobs(event, out)
            else:
                out += _HANDLERS[type(event)](self, event)
        return b"".join(out)

    def fragment(self, index: int, text: str) -> bytes:
        """Encode more text of a part."""
        part = self._parts[index]
        part.length += len(text)
        if part.pieces is not None:
            part.pieces.append(text)
        return part.head + encode_json(text) + part.tail if part.head else b""

    def _chunk(self, delta: bytes) -> bytes:
        return self._head + delta + self._tail

    def _on_start(self, event: StreamStart) -> list[bytes]:
        if self._started:
            return []
        self._started = True
        names = (encode_json(event.id or "chatcmpl-dragoman"), event.created or 0, encode_json(event.model or ""))
        self._opening = _OPENING % names
        self._head = self._opening + b'"choices":[{"index":0,"delta":{'
        return [self._chunk(b'"role":"assistant","content":""')]

    def _on_part_start(self, event: PartStart) -> list[bytes]:
        first = [] if self._started else self._on_start(StreamStart())
        part = event.part
        if event.candidate:
            self._log.drop(part, "", "a further candidate", "one answer is streamed")
            self._parts[event.index] = _Outgoing(b"", b"")
            return first
        return [*first, *self._open(event.index, part)]

    def _open(self, index: int, part: AnyPart) -> list[bytes]:
        tail = self._tail
        if type(part) is Text:
            if self._calls:
                self._log.degrade(part, "", "place among the other parts", "a chat message keeps text and calls apart")
            outgoing = _Outgoing(self._head + b'"content":', tail)
            outgoing.start = self._characters_so_far()
            outgoing.signature = part.signature
            self._parts[index] = outgoing
            chunks = self._plain(outgoing, part.text)
            for citation in part.citations:
                chunks += self._citation(outgoing, citation)
            return chunks
        if type(part) is ToolCall:
            return self._open_call(index, part)
        if type(part) is Refusal:
            self._refused = True
            outgoing = self._parts[index] = _Outgoing(self._head + b'"refusal":', tail)
            return self._plain(outgoing, part.text)
        if type(part) is Reasoning:
            outgoing = self._parts[index] = _Outgoing(
                self._head + b'"%b":' % self._profile.reasoning_key.encode(), tail
            )
            outgoing.reasoning = part
            if self.texts is None:
                outgoing.pieces = []
            return self._plain(outgoing, part.text) + self._reasoning_details(part, part.signature)
        if type(part) is Audio:
            return self._open_sound(index, part)
        image = part if type(part) is Image else drawn_image(part, self._log)
        if image is not None:
            return self._open_image(index, image)
        text = search_text(part, self._log) if type(part) is SearchResult else None
        if text is not None:
            return self._open(index, Text(f"\n{text}\n"))
        if isinstance(part, ServerToolCall | ServerToolResult):
            cross_hosted(part, self._log, HOSTED)
        else:
            self._log.drop(part, "", name_of_part(part), "a chat stream carries text and calls only")
        self._parts[index] = _Outgoing(b"", b"")
        return []

    def _plain(self, part: _Outgoing, text: str) -> list[bytes]:
        part.length += len(text)
        return [part.head + encode_json(text) + part.tail] if text else []

    def _characters_so_far(self) -> int:
        if not self._parts:
            return self._characters
        return self._characters + sum(part.length for part in self._parts.values() if part.start >= 0)

    def _open_call(self, index: int, call: ToolCall) -> list[bytes]:
        number = self._calls
        self._calls += 1
        key, value = ("custom", "input") if call.custom else ("function", "arguments")
        head = self._head + (_INPUT_HEAD if call.custom else _ARGUMENTS_HEAD) % number
        outgoing = self._parts[index] = _Outgoing(head, b"}}]" + self._tail)
        outgoing.number = number
        opening: dict[str, Any] = {"index": number, "id": call.id, "type": key, key: {"name": call.name, value: ""}}
        if call.signature is not None:
            opening |= foreign_signatures.write_signature(call)
        chunks = [self._chunk(b'"tool_calls":[' + encode_json(opening) + b"]")]
        text = opening_arguments(call)
        if text:
            chunks.append(self.fragment(index, text))
        return chunks

    def _open_sound(self, index: int, part: Audio) -> list[bytes]:
        """Open an audio part; an answer has one `audio`, so further parts continue it."""
        self._parts[index] = _Outgoing(self._head + b'"audio":{"transcript":', b"}" + self._tail)
        audio.report_streamed(part, self._log)
        fields: dict[str, Any] = {} if self._sounds else audio.opening_of(part)
        self._sounds += 1
        fields |= {key: value for key, value in (("data", part.data), ("transcript", part.transcript)) if value}
        return [self._chunk(b'"audio":' + encode_json(fields))] if fields else []

    def _open_image(self, index: int, part: Image) -> list[bytes]:
        """Send an image whole, in a chunk of its own; the clients of OpenRouter and LiteLLM read it there."""
        self._parts[index] = _Outgoing(b"", b"")
        if self._calls:
            self._log.degrade(part, "", "place among the other parts", "a chat message keeps images and calls apart")
        written = images.write_images([part], self._log)
        return [self._chunk(b'"images":' + encode_json(written))] if written else []

    def _on_media(self, event: MediaDelta) -> list[bytes]:
        if not self._parts[event.index].head:
            return []
        return [self._chunk(b'"audio":' + encode_json({"data": event.data}))]

    def _on_part_end(self, event: PartEnd) -> list[bytes]:
        signed = self._write_signature(event)
        part = self._parts.pop(event.index)
        self._characters += part.length if part.start >= 0 else 0
        if part.number >= 0 and not part.length and not event.incomplete:
            # A call without arguments: clients parse the text, and an empty text is not JSON.
            nothing = b'""' if part.head.endswith(b'"input":') else b'"{}"'
            return [part.head + nothing + part.tail, *signed]
        return [] if event.incomplete else signed

    def _write_signature(self, event: PartEnd) -> list[bytes]:
        part = self._parts[event.index]
        signature = event.signature or part.signature
        if signature is None or not part.head:
            return []
        if part.reasoning is not None:
            pieces = part.pieces if self.texts is None else self.texts[event.index]
            return self._reasoning_details(part.reasoning, signature, "".join(pieces or ()))
        if part.number >= 0:
            entry = {
                "index": part.number,
                **foreign_signatures.write_signature(ToolCall("", "", signature=signature)),
            }
            return [self._chunk(b'"tool_calls":[' + encode_json(entry) + b"]")]
        length = self._characters_so_far() - part.start
        return [self._detail(foreign_signatures.text_signature_detail(signature, part.start, length))]

    def _reasoning_details(self, part: Reasoning, signature: Signature | None, text: str = "") -> list[bytes]:
        if signature is None:
            return []
        whole = Reasoning(part.text + text, signature, part.redacted)
        self._details += 1
        return [self._detail(foreign_signatures.detail_for(whole, signature, self._details - 1))]

    def _detail(self, detail: ReasoningDetail) -> bytes:
        return self._chunk(b'"reasoning_details":[' + encode_json(detail) + b"]")

    def _citation(self, part: _Outgoing, citation: Citation) -> list[bytes]:
        if not part.head:
            return []  # of a further candidate
        if citation.url is None:
            self._log.drop(citation, "", "citation of a document", "chat annotations cite web pages only")
            return []
        if citation.cited_text is not None:
            self._log.degrade(citation, "", "text of a citation", "chat annotations name the page only")
        annotations = foreign_signatures.write_annotations([Text("", (citation,))], part.start, part.length)
        return [self._chunk(b'"annotations":' + encode_json(annotations))] if annotations else []

    def _add_logprobs(self, event: LogprobsDelta, out: list[bytes]) -> None:
        """Add log probabilities to the chunk of their text, or to an empty one if that chunk was already sent."""
        if event.candidate:
            return  # the text of further candidates is not sent either
        has_text = bool(out) and out[-1].endswith(self._tail)
        chunk = out.pop() if has_text else self._chunk(b"")
        encoded = b'"logprobs":' + encode_json(write_choice(event.tokens))
        out.append(chunk.removesuffix(self._tail) + self._tail.replace(b'"logprobs":null', encoded, 1))

    def _on_finished(self, event: Finished) -> list[bytes]:
        if event.finish.reason == "error":
            return self._on_failed(failed_stream(event.finish, self._log))
        out = [] if self._started else self._on_start(StreamStart())
        word = encode_finish(
            event.finish, None, self._log, streamed_answer(calls=self._calls > 0, refused=self._refused)
        )
        last = self._head + b'},"logprobs":null,"finish_reason":' + encode_json(word) + b"}]" + self._end
        notes = family_notes(FAMILY, event.metadata)
        out.append(_with_keys(last, notes) if notes else last)
        if self._include_usage and self._usage is not None:
            start = self._opening
            for tier in named_tier(self._usage, ANSWERED_BY_OPENAI).values():
                start += b'"service_tier":%b,' % encode_json(tier)
            out.append(start + b'"choices":[],"usage":' + encode_json(encode_usage(self._usage)) + b"}\n\n")
        out.append(b"data: [DONE]\n\n")
        return out

    def _on_failed(self, event: StreamFailed) -> list[bytes]:
        content = encode_error(event.failure).content
        report_lost_kind(event.failure, decode_error(content).kind, self._log)
        return [b"data: " + content + b"\n\n"]


_CHUNK_KEYS = frozenset({"id", "object", "created", "model", "choices", "usage", "service_tier", "logprobs"})
_DATA = b"data: {"


def _with_keys(chunk: bytes, notes: Extra) -> bytes:
    """Return a chunk with the keys that no other event holds: the decoder keeps them with the answer."""
    keys = {key: value for key, value in notes.items() if key[:1] != "~" and key not in _CHUNK_KEYS}
    keys |= {key: notes[MODELLED + key] for key in (*listed_pages.KEYS, *MATCHED) if MODELLED + key in notes}
    return _DATA + json_line(keys)[1:-1] + b"," + chunk.removeprefix(_DATA) if keys else chunk


class _Outgoing:
    """One part while it is encoded: the bytes around each of its fragments, empty if the part is not sent."""

    head: bytes
    tail: bytes
    number: int = -1
    """The call's index."""
    reasoning: Reasoning | None = None
    start: int = -1
    """The offset of a text in the joined content."""
    length: int = 0
    pieces: list[str] | None
    signature: Signature | None = None

    def __init__(self, head: bytes, tail: bytes) -> None:
        self.head = head
        self.tail = tail
        self.pieces = None


_OPENING = b'data: {"id":%b,"object":"chat.completion.chunk","created":%d,"model":%b,'
_ARGUMENTS_HEAD = b'"tool_calls":[{"index":%d,"function":{"arguments":'
_INPUT_HEAD = b'"tool_calls":[{"index":%d,"custom":{"input":'

_HANDLERS: dict[type[AnyEvent], Callable[[EventEncoder, Any], list[bytes]]] = {
    StreamStart: EventEncoder._on_start,
    PartStart: EventEncoder._on_part_start,
    MediaDelta: EventEncoder._on_media,
    PartEnd: EventEncoder._on_part_end,
    UsageUpdate: EventEncoder._on_usage,
    Finished: EventEncoder._on_finished,
    StreamFailed: EventEncoder._on_failed,
}
