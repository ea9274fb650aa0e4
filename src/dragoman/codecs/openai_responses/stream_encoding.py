"""Encodes events as a Responses stream.

Every item is added, streamed and done; `sequence_number` counts all events from zero. Items may overlap on this wire,
so nothing waits. Consecutive texts share a message item, which is done when something else begins. The last event
repeats the whole answer. A failed stream ends with `error` and `response.failed`, and open items stay open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from dragoman.codecs.arguments import opening_arguments
from dragoman.codecs.common_losses import note_empty_model
from dragoman.codecs.failures import failure_of, report_lost_kind
from dragoman.codecs.ids import invent_id
from dragoman.codecs.logprobs import write_tokens
from dragoman.codecs.media import as_transcript, unspoken
from dragoman.codecs.openai_client_items import client_kind
from dragoman.codecs.openai_responses import foreign_signatures
from dragoman.codecs.openai_responses.echo import DEFAULTS, Echo, answer_head, answer_json, echo_json
from dragoman.codecs.openai_responses.errors import decode_failure, encode_failure
from dragoman.codecs.openai_responses.hosted_tools import HOSTED
from dragoman.codecs.openai_responses.items import ID, named_in_space
from dragoman.codecs.openai_responses.messages import MessageEncoder
from dragoman.codecs.openai_responses.parts import CITATIONS
from dragoman.codecs.openai_responses.profile import FAMILY
from dragoman.codecs.openai_responses.response import (
    INVENTED_ID,
    encode_finish,
    encode_usage,
    report_usage,
)
from dragoman.codecs.openai_responses.server_items import encode_pair, is_outcome_of
from dragoman.codecs.reading import WireValue
from dragoman.codecs.shared_settings import ANSWERED_BY_OPENAI, tier_word
from dragoman.codecs.shared_tools import cross_hosted, goes_back
from dragoman.codecs.stream_codec import BaseEventEncoder
from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Citation,
    Completion,
    Finished,
    LogprobsDelta,
    MediaDelta,
    Message,
    Opaque,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Signature,
    StreamFailed,
    StreamStart,
    Text,
    ToolCall,
    UsageUpdate,
)
from dragoman.ir.notes import CORRECTED, Extra, family_notes, inner_extra
from dragoman.ir.values import encode_json, json_line, parse_json, to_raw, without_line_breaks
from dragoman.losses import LossLog

_TEXT_TAIL = b',"logprobs":[],"sequence_number":'
_TAIL = b',"sequence_number":'


class _Item:
    """One item being written."""

    index: int
    body: dict[str, Any]
    place: bytes
    """The JSON fields by which events name it."""
    open_parts: int = 0
    whole: bytes = b""
    """Its JSON once it is done."""

    def __init__(self, index: int, body: dict[str, Any], place: bytes) -> None:
        self.index = index
        self.body = body
        self.place = place


class _Outgoing:
    """One part while it is encoded: its item, its position there, and the bytes around each of its fragments."""

    part: Any
    item: _Item | None = None
    number: int = 0
    place: bytes = b""
    """The JSON fields by which events name it."""
    head: bytes = b""
    """The bytes before the text of a fragment; `tail`: those between the text and the event's number."""
    tail: bytes = _TAIL
    pieces: list[str]
    citations: list[WireValue]
    logprobs: list[bytes]

    def __init__(self, part: Any) -> None:
        self.part = part
        self.pieces = []
        self.citations = []
        self.logprobs = []


class EventEncoder(BaseEventEncoder):
    """Encodes events as bytes that a strict client of this format accepts.

    `echo` (see `echo_of`) repeats the request in events that carry a response; `clock` gives the time of completion.
    """

    _sequence = 0
    _answer: Completion | None = None
    _message: _Item | None = None
    """The message item that the next text may join."""
    _pair: tuple[ServerToolCall, _Item] | None = None
    _last_text: _Outgoing | None = None
    """The open text, if the last part to begin was one."""

    def __init__(self, log: LossLog, *, echo: Echo = DEFAULTS, clock: Callable[[], int] | None = None) -> None:
        self._log = log
        self._echo = echo
        self._clock = clock
        self._items: list[_Item] = []
        self._parts: dict[int, _Outgoing] = {}
        self._cut: list[tuple[_Outgoing, PartEnd]] = []
        self._seen: list[AnyPart] = []

    def encode(self, events: list[AnyEvent]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if type(event) is PartDelta:
                part = self._parts.get(event.index)
                if part is not None:
                    out += self._on_delta(part, event)
            elif type(event) is LogprobsDelta:
                self._add_logprobs(event, out)
            else:
                out += _HANDLERS[type(event)](self, event)
        return b"".join(out)

    def fragment(self, index: int, text: str) -> bytes:
        """Encode more text of a part."""
        part = self._parts.get(index)
        if part is None:
            return b""
        return self._flow(part, text) if part.head else b"".join(self._on_delta(part, PartDelta(index, text)))

    # ── the answer ──

    def _event(self, kind: bytes, fields: bytes) -> bytes:
        number = self._sequence
        self._sequence = number + 1
        return b'event: %b\ndata: {"type":"%b","sequence_number":%d,%b}\n\n' % (kind, kind, number, fields)

    def _on_start(self, event: StreamStart) -> list[bytes]:
        if self._answer is not None:
            return []
        if event.model is None:
            note_empty_model(event, self._log)
        answer_id = event.id or INVENTED_ID
        self._answer = Completion((), None, None, answer_id, event.model or "", event.created or 0)
        head = answer_head(self._answer, "in_progress", None, [])
        response = b'"response":' + without_line_breaks(answer_json(head, echo_json(self._echo), None, {}))
        return [self._event(b"response.created", response), self._event(b"response.in_progress", response)]

    def _begin(self) -> list[bytes]:
        return [] if self._answer is not None else self._on_start(StreamStart())

    def _on_finished(self, event: Finished) -> list[bytes]:
        if event.finish.reason == "error":
            return self._on_failed(StreamFailed(failure_of(event.finish)))
        out = self._begin()
        for finish in event.others:
            self._log.drop(finish or event, "", "a further candidate", "one answer is streamed")
        for part, end in self._cut:
            out += self._shut(part, end)
        self._cut = []
        for index in list(self._parts):
            out += self._shut(self._parts.pop(index), PartEnd(index))
        out += self._end_pair() + self._end_message()
        completion = Completion((Message("assistant", tuple(self._seen)),))
        status, reason = encode_finish(event.finish, None, self._log, completion)
        if self._usage is not None:
            report_usage(self._usage, completion, self._log)
        output: list[WireValue] = [Raw(item.whole) if item.whole else item.body for item in self._items]
        response = self._response(status, reason, output, family_notes(FAMILY, event.metadata))
        return [*out, self._event(b"response." + status.encode(), response)]

    def _response(
        self, status: str, reason: str | None, output: list[WireValue], notes: Extra, error: WireValue = None
    ) -> bytes:
        head = answer_head(self._answer or Completion(()), status, reason, output)
        head["error"] = error
        if self._clock is not None and status == "completed":
            head["completed_at"] = self._clock()
        further = HOSTED.write_counts(self._usage)
        if notes:
            further |= _unmodelled_keys(notes, {**head, "usage": None, **self._echo, **further})
        echo = echo_json(self._echo, tier_word(self._usage, ANSWERED_BY_OPENAI))
        usage = None if self._usage is None else encode_usage(self._usage)
        return b'"response":' + without_line_breaks(answer_json(head, echo, usage, further))

    def _on_failed(self, event: StreamFailed) -> list[bytes]:
        """Write the failure; open items stay open, so that nothing marks them as complete."""
        out = self._begin()
        failure = encode_failure(event.failure)
        report_lost_kind(event.failure, decode_failure(to_raw(failure)).kind, self._log)
        error = {"type": event.failure.raw_type or failure["code"], **failure, "param": event.failure.parameter}
        done: list[WireValue] = [item.body for item in self._items if item.body.get("status") != "in_progress"]
        return [
            *out,
            self._event(b"error", b'"error":' + json_line(error)),
            self._event(b"response.failed", self._response("failed", None, done, {}, failure)),
        ]

    # ── items ──

    def _add(self, body: dict[str, Any]) -> tuple[_Item, bytes]:
        index = len(self._items)
        item = _Item(index, body, b'"item_id":%b,"output_index":%d' % (encode_json(body.get("id")), index))
        self._items.append(item)
        fields = b'"output_index":%d,"item":%b' % (index, json_line(body))
        return item, self._event(b"response.output_item.added", fields)

    def _end_item(self, item: _Item) -> bytes:
        item.whole = json_line(item.body)
        return self._event(b"response.output_item.done", b'"output_index":%d,"item":%b' % (item.index, item.whole))

    def _item_id(self, prefix: str, part: AnyPart) -> str:
        noted = family_notes(FAMILY, getattr(part, "metadata", None)).get(ID)
        if noted is not None:
            return str(parse_json(noted))
        seed = "" if self._answer is None else self._answer.id
        return f"{prefix}_{invent_id(seed, len(self._items))}"

    def _tell_whole(self, wire: WireValue) -> list[bytes]:
        """Write the events of an item that is known in full."""
        body: dict[str, Any] = parse_json(Raw(encode_json(wire)))
        item, added = self._add(body)
        return [added, self._end_item(item)]

    def _end_message(self) -> list[bytes]:
        """Let no further text join the message; it is done as soon as its last text has ended."""
        item, self._message = self._message, None
        if item is None or item.open_parts:
            return []
        item.body = {**item.body, "status": "completed"}
        return [self._end_item(item)]

    def _end_pair(self) -> list[bytes]:
        """End the item of a call that the provider ran, whether or not its result has joined it."""
        pair, self._pair = self._pair, None
        return [] if pair is None else [self._end_item(pair[1])]

    # ── parts ──

    def _on_part_start(self, event: PartStart) -> list[bytes]:
        out = self._begin()
        part = event.part
        if event.candidate:
            self._log.drop(part, "", "a further candidate", "one answer is streamed")
            return out
        part = as_transcript(part, self._log)
        outgoing = self._parts[event.index] = _Outgoing(part)
        if self._pair is not None and not is_outcome_of(part, self._pair[0]):
            out += self._end_pair()
        if type(part) is Text or type(part) is Refusal:
            return out + self._open_text(outgoing)
        out += self._end_message()
        if type(part) is ToolCall and client_kind(part, family_notes(FAMILY, part.metadata)) is None:
            return out + self._open_call(outgoing)
        if type(part) is Reasoning:
            return out + (self._open_reasoning(outgoing, part.text) if part.text else [])
        return out + self._open_other(outgoing)

    def _open_text(self, outgoing: _Outgoing) -> list[bytes]:
        """Open a text, but write nothing before its first character: an empty signed text has no separate item."""
        part = outgoing.part
        if type(part) is Text and not part.text and not part.citations:
            return []
        return self._begin_text(outgoing)

    def _begin_text(self, outgoing: _Outgoing) -> list[bytes]:
        part = outgoing.part
        out: list[bytes] = []
        signature = part.signature if type(part) is Text else None
        if signature is not None:
            out += self._end_message()
            out += self._tell_whole(
                foreign_signatures.carrier_of(Text("..."), signature, self._item_id("rs", Refusal("")))
            )
        if self._message is None:
            out += self._begin_message(part)
        item = self._message
        assert item is not None  # noqa: S101  opened above
        item.open_parts += 1
        number = len(item.body["content"])
        empty = _content(part, b'""', [])
        item.body["content"].append(Raw(empty))
        outgoing.item, outgoing.number, outgoing.place = item, number, item.place + b',"content_index":%d' % number
        out.append(self._event(b"response.content_part.added", b'%b,"part":%b' % (outgoing.place, empty)))
        kind = _KINDS[type(part)]
        outgoing.head = _head(b"response.%b.delta" % kind, outgoing.place)
        outgoing.tail = _TEXT_TAIL if type(part) is Text else _TAIL
        self._last_text = outgoing if type(part) is Text else None
        for citation in getattr(part, "citations", ()):
            out += self._cite(outgoing, citation)
        return [*out, self._flow(outgoing, part.text)] if part.text else out

    def _begin_message(self, part: AnyPart) -> list[bytes]:
        body: dict[str, Any] = {
            "id": self._item_id("msg", part),
            "type": "message",
            "status": "in_progress",
            "role": "assistant",
            "content": [],
        }
        phase = family_notes(FAMILY, getattr(part, "metadata", None)).get("phase")
        if phase is not None:
            body["phase"] = phase
        self._message, added = self._add(body)
        return [added]

    def _flow(self, outgoing: _Outgoing, text: str) -> bytes:
        outgoing.pieces.append(text)
        number = self._sequence
        self._sequence = number + 1
        return outgoing.head + encode_json(text) + outgoing.tail + b"%d}\n\n" % number

    def _on_delta(self, outgoing: _Outgoing, event: PartDelta) -> list[bytes]:
        part, text, citation = outgoing.part, event.text, event.citation
        out: list[bytes] = []
        if not outgoing.head:
            if type(part) is Reasoning:
                return self._open_reasoning(outgoing, text) if text else out
            if type(part) is not Text or not (text or citation):
                return out
            out = self._begin_text(outgoing)
        if citation is not None:
            return out + self._cite(outgoing, citation)
        out.append(self._flow(outgoing, text))
        return out

    def _cite(self, outgoing: _Outgoing, citation: Citation) -> list[bytes]:
        length = sum(map(len, outgoing.pieces)) if citation.end is None else 0
        annotation = CITATIONS.write_reporting(outgoing.part, citation, length, self._log)
        if annotation is None:
            return []
        outgoing.citations.append(annotation)
        fields = (outgoing.place, len(outgoing.citations) - 1, json_line(annotation))
        return [
            self._event(b"response.output_text.annotation.added", b'%b,"annotation_index":%d,"annotation":%b' % fields)
        ]

    def _add_logprobs(self, event: LogprobsDelta, out: list[bytes]) -> None:
        """Add log probabilities to the fragment of their text, or to an empty one if that fragment was already sent."""
        text = self._last_text
        if event.candidate:
            return  # the text of further candidates is not sent either
        if text is None:
            self._log.drop(_THE_ANSWER, "logprobs", "log probabilities", "in this API they belong to a text")
            return
        has_text = bool(out) and out[-1].startswith(text.head)
        fragment = out.pop() if has_text else self._flow(text, "")
        encoded = json_line(write_tokens(event.tokens))
        text.logprobs.append(encoded[1:-1])
        before, _, number = fragment.rpartition(_TEXT_TAIL)
        out.append(before + b',"logprobs":' + encoded + _TAIL + number)

    def _open_call(self, outgoing: _Outgoing) -> list[bytes]:
        call: ToolCall = outgoing.part
        out: list[bytes] = []
        if call.signature is not None:
            out += self._tell_whole(
                foreign_signatures.carrier_of(call, call.signature, self._item_id("rs", Refusal("")))
            )
        kind, key, prefix = (
            ("custom_tool_call", "input", "ctc") if call.custom else ("function_call", "arguments", "fc")
        )
        body: dict[str, Any] = {
            "id": self._item_id(prefix, call),
            "type": kind,
            "status": "in_progress",
            key: "",
            "call_id": call.id,
        }
        body["name"], space = named_in_space(call, family_notes(FAMILY, call.metadata))
        body |= space
        body |= {name: value for name, value in family_notes(FAMILY, call.metadata).items() if not name.startswith("~")}
        item, added = self._add(body)
        outgoing.item, outgoing.place = item, item.place
        outgoing.head = _head(_CALL_EVENTS[call.custom] + b".delta", item.place)
        out.append(added)
        text = opening_arguments(call)
        if text:
            out.append(self._flow(outgoing, text))
        return out

    def _open_reasoning(self, outgoing: _Outgoing, text: str) -> list[bytes]:
        out = self._add_reasoning(outgoing)
        out.append(self._event(b"response.reasoning_summary_part.added", outgoing.place + b"," + _NO_SUMMARY))
        outgoing.head = _head(b"response.reasoning_summary_text.delta", outgoing.place)
        return [*out, self._flow(outgoing, text)]

    def _add_reasoning(self, outgoing: _Outgoing) -> list[bytes]:
        signature: Signature | None = outgoing.part.signature
        native = signature is not None and signature.family == FAMILY and signature.id is not None
        item_id = signature.id if native and signature is not None else self._item_id("rs", outgoing.part)
        item, added = self._add({"id": item_id, "type": "reasoning", "summary": []})
        outgoing.item, outgoing.place = item, item.place + b',"summary_index":0'
        return [added]

    def _open_other(self, outgoing: _Outgoing) -> list[bytes]:
        """Write parts that arrive complete, such as server tool calls and opaque items; own ones go back unchanged."""
        part = outgoing.part
        if self._pair is not None:
            call, item = self._pair
            item.body = parse_json(Raw(encode_json(encode_pair(call, part, LossLog()))))
            if not goes_back(part, FAMILY, to_client=True):
                cross_hosted(part, self._log, HOSTED)
            return self._end_pair()
        if isinstance(part, ServerToolCall):
            body: Any = part.block if goes_back(part, FAMILY, to_client=True) else encode_pair(part, None, self._log)
            if body is None:
                return []
            item, added = self._add(body)
            self._pair = (part, item)
            return [added]
        if isinstance(part, Opaque | ServerToolResult) and part.origin == FAMILY:
            return self._tell_whole(part.block)
        seed = "" if self._answer is None else f"{self._answer.id}:{len(self._items)}"
        encoder = MessageEncoder(self._log, to_client=True, seed=seed)
        return [
            piece for wire in encoder.encode_turn(Message("assistant", (part,))) for piece in self._tell_whole(wire)
        ]

    # ── ends ──

    def _on_part_end(self, event: PartEnd) -> list[bytes]:
        outgoing = self._parts.pop(event.index, None)
        if outgoing is None:
            return []
        if event.incomplete:
            self._cut.append((outgoing, event))  # if the stream failed, it stays open: the next event decides
            return []
        return self._shut(outgoing, event)

    def _shut(self, outgoing: _Outgoing, end: PartEnd) -> list[bytes]:
        part = outgoing.part
        cut = end.incomplete
        self._seen.append(replace(part, incomplete=True) if cut and type(part) is ToolCall else part)
        signature = None if cut else end.signature
        kind = type(part)
        notes = family_notes(FAMILY, end.metadata)
        if CORRECTED in notes and kind is not ToolCall:
            outgoing.pieces = [parse_json(notes[CORRECTED])]
        if kind is Text or kind is Refusal:
            return self._shut_text(outgoing, signature, notes)
        if notes and outgoing.item is not None:
            outgoing.item.body |= _unmodelled_keys(notes, outgoing.item.body)
        if kind is ToolCall:
            return self._shut_call(outgoing, signature, cut=cut)
        if kind is Reasoning:
            return self._shut_reasoning(outgoing, signature or (None if cut else part.signature))
        return []

    def _shut_text(self, outgoing: _Outgoing, signature: Signature | None, notes: Extra) -> list[bytes]:
        part = outgoing.part
        known = signature or getattr(part, "signature", None)
        out: list[bytes] = []
        if outgoing.item is None:
            if known is not None:
                out += self._end_message()
                return out + self._tell_whole(
                    foreign_signatures.carrier_of(Text(""), known, self._item_id("rs", Refusal("")))
                )
            out += self._begin_text(outgoing)
        item = outgoing.item
        assert item is not None  # noqa: S101  opened above
        text = encode_json("".join(outgoing.pieces))
        likely = b"[" + b",".join(outgoing.logprobs) + b"]"
        fields = b',"text":%b,"logprobs":%b' % (text, likely) if type(part) is Text else b',"refusal":' + text
        whole = _content(part, text, outgoing.citations, likely)
        if notes:
            whole = _with_unmodelled(whole, item.body, notes)
        if self._last_text is outgoing:
            self._last_text = None
        item.body["content"][outgoing.number] = Raw(whole)
        out.append(self._event(b"response.%b.done" % _KINDS[type(part)], outgoing.place + fields))
        out.append(self._event(b"response.content_part.done", b'%b,"part":%b' % (outgoing.place, whole)))
        item.open_parts -= 1
        if self._message is not item and not item.open_parts:
            item.body = {**item.body, "status": "completed"}
            out.append(self._end_item(item))
        if signature is not None and signature != getattr(part, "signature", None):
            out += self._end_message()
            out += self._tell_whole(
                foreign_signatures.trailing_carrier(part, signature, self._item_id("rs", Refusal("")))
            )
        return out

    def _shut_call(self, outgoing: _Outgoing, signature: Signature | None, *, cut: bool) -> list[bytes]:
        call, item = outgoing.part, outgoing.item
        if item is None:
            return []  # a separate item, which was written in full
        out: list[bytes] = []
        if not outgoing.pieces and not cut and not call.custom:
            out.append(self._flow(outgoing, "{}"))  # clients parse the text, and an empty text is not JSON
        text = "".join(outgoing.pieces)
        key = "input" if call.custom else "arguments"
        if not cut:
            fields = b'%b,"%b":%b' % (outgoing.place, key.encode(), encode_json(text))
            out.append(self._event(_CALL_EVENTS[call.custom] + b".done", fields))
        item.body = {**item.body, "status": "incomplete" if cut else "completed", key: text}
        out.append(self._end_item(item))
        if signature is not None and signature != call.signature:
            out += self._tell_whole(
                foreign_signatures.trailing_carrier(call, signature, self._item_id("rs", Refusal("")))
            )
        return out

    def _shut_reasoning(self, outgoing: _Outgoing, signature: Signature | None) -> list[bytes]:
        out: list[bytes] = []
        if outgoing.item is None:
            if signature is not None:
                outgoing.part = replace(outgoing.part, signature=signature)
            out += self._add_reasoning(outgoing)
        item = outgoing.item
        assert item is not None  # noqa: S101  opened above
        body = dict(item.body)
        if outgoing.pieces:
            text, place = encode_json("".join(outgoing.pieces)), outgoing.place
            part = b'{"type":"summary_text","text":%b}' % text
            out.append(self._event(b"response.reasoning_summary_text.done", b'%b,"text":%b' % (place, text)))
            out.append(self._event(b"response.reasoning_summary_part.done", b'%b,"part":%b' % (place, part)))
            body["summary"] = [Raw(part)]
        if signature is not None and signature.data:
            native = signature.family == FAMILY and signature.id in {None, body["id"]}
            # The announced id cannot change: data that belongs to another id is tagged with it.
            body["encrypted_content"] = (
                signature.data if native else foreign_signatures.tag_of_reasoning(outgoing.part, signature)
            )
        item.body = body
        return [*out, self._end_item(item)]


_THE_ANSWER = Completion(())
_KINDS: dict[type[AnyPart], bytes] = {Text: b"output_text", Refusal: b"refusal"}
_CALL_EVENTS = {False: b"response.function_call_arguments", True: b"response.custom_tool_call_input"}
_NO_SUMMARY = b'"part":{"type":"summary_text","text":""}'


def _unmodelled_keys(notes: Extra, known: Mapping[str, Any]) -> Extra:
    """Return the keys of this family that no field of an event holds, and that are not written already."""
    return {key: value for key, value in notes.items() if not key.startswith("~") and key not in known}


def _with_unmodelled(content: bytes, message: dict[str, Any], notes: Extra) -> bytes:
    """Return a content part with its further keys; add those of its message to the message."""
    message |= _unmodelled_keys(inner_extra(notes, "item") or {}, message)
    further = _unmodelled_keys(notes, parse_json(content))
    return content[:-1] + b"," + json_line(further)[1:] if further else content


def _content(part: AnyPart, text: bytes, annotations: list[WireValue], logprobs: bytes = b"[]") -> bytes:
    """Return a text or a refusal as a content part, from the JSON of its text."""
    if type(part) is not Text:
        return b'{"type":"refusal","refusal":%b}' % text
    noted = json_line(annotations) if annotations else b"[]"
    return b'{"type":"output_text","text":%b,"annotations":%b,"logprobs":%b}' % (text, noted, logprobs)


def _head(kind: bytes, place: bytes) -> bytes:
    """Return the bytes before a fragment."""
    return b'event: %b\ndata: {"type":"%b",%b,"delta":' % (kind, kind, place)


_HANDLERS: dict[type[AnyEvent], Callable[[EventEncoder, Any], list[bytes]]] = {
    StreamStart: EventEncoder._on_start,
    PartStart: EventEncoder._on_part_start,
    MediaDelta: unspoken,
    PartEnd: EventEncoder._on_part_end,
    UsageUpdate: EventEncoder._on_usage,
    Finished: EventEncoder._on_finished,
    StreamFailed: EventEncoder._on_failed,
}
