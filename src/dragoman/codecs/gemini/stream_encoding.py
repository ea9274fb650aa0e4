"""Encodes events as a generateContent stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import UNSET, Raw, structs

from dragoman.codecs.accumulate import GrowingPart
from dragoman.codecs.common_losses import degrade_refusal
from dragoman.codecs.gemini import foreign_signatures
from dragoman.codecs.gemini.errors import encode_error
from dragoman.codecs.gemini.foreign_signatures import GROUNDING, Bundle
from dragoman.codecs.gemini.parts import TRUE, PartEncoder
from dragoman.codecs.gemini.profile import FAMILY, PROFILE, GeminiProfile
from dragoman.codecs.gemini.response import add_explanation, encode_finish, encode_time, encode_usage
from dragoman.codecs.gemini.wire import Candidate, Content, GenerateContentResponse, Part, TextOut, overlaid
from dragoman.codecs.google_signatures import NATIVE_THOUGHT, THOUGHT, is_native_thought
from dragoman.codecs.logprobs import write_google
from dragoman.codecs.reading import WireValue, keep, spliced
from dragoman.codecs.stream_codec import BaseEventEncoder
from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Citation,
    Completion,
    Finish,
    Finished,
    LogprobsDelta,
    MediaDelta,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
    Refusal,
    StreamFailed,
    StreamStart,
    Text,
    ToolCall,
    UsageUpdate,
)
from dragoman.ir.notes import MODELLED, Extra, inner_extra
from dragoman.ir.values import encode_json, json_line
from dragoman.losses import LossLog

EMPTY_TEXT = TextOut("")
EMPTY_THOUGHT = Part("", True)  # noqa: FBT003
_FEEDBACK = "promptFeedback"

# Google's SDK splits lines as Python does: these three end a line, although JSON allows them in a string.
_LINE_ENDS = ((b"\xe2\x80\xa8", rb"\u2028"), (b"\xe2\x80\xa9", rb"\u2029"), (b"\xc2\x85", rb"\u0085"))


class _Run:
    """Consecutive text parts: on this wire they are one part, and citations count its bytes."""

    def __init__(self, place: int) -> None:
        self.place = place
        # Text at the start of each part, and that of its deltas. Not the parts: they refer to the answer, and so to
        # this run, and such a cycle would outlive its stream.
        self.texts: list[tuple[str, list[str]]] = []
        self.length = 0
        self.citations: list[Citation] = []

    def add(self, part: _Outgoing) -> None:
        first = part.first_text()
        length = len(first) + sum(map(len, part.pieces))
        for citation in part.citations:
            start = self.length + (citation.start or 0)
            end = self.length + (length if citation.end is None else citation.end)
            self.citations.append(structs.replace(citation, start=start, end=end))
        self.texts.append((first, part.pieces))
        self.length += length

    def part(self) -> Text:
        return Text("".join([first + "".join(pieces) for first, pieces in self.texts]), tuple(self.citations))


class _Answer:
    """One candidate while it is encoded."""

    encoder: PartEncoder
    head: bytes
    tail: bytes
    queue: deque[_Outgoing]
    """Parts that are sent whole, in the order in which they began."""
    last: type[AnyPart] | None = None
    """Text or Reasoning if the last part sent was such a part, without a signature."""
    overtaken: list[Reasoning]
    run: _Run | None = None
    cited: list[_Run]
    places: int = 0
    declined: list[_Outgoing]
    """Refusals, which the last chunk repeats."""
    last_index: int = -1

    def __init__(self, encoder: PartEncoder, head: bytes, tail: bytes) -> None:
        self.encoder = encoder
        self.head = head
        self.tail = tail
        self.queue = deque()
        self.overtaken = []
        self.cited = []
        self.declined = []

    def leave(self, kind: type[AnyPart] | None) -> None:
        """Record that a part was sent that does not continue the running text."""
        if self.run is not None and self.run.citations:
            self.cited.append(self.run)
        self.run = None
        self.last = kind
        self.places += 1


class _Outgoing:
    """One part while it is encoded: the bytes around each of its fragments, if it is streamed."""

    answer: _Answer
    start: PartStart
    place: int
    end: PartEnd
    keeps: bool
    pieces: list[str]
    """The text of its deltas. Citations count its bytes, and are sent last."""
    flows: bool = False
    head: bytes = b""
    tail: bytes = b""
    citations: list[Citation]
    data: list[MediaDelta]

    def __init__(
        self, answer: _Answer, start: PartStart, place: int, end: PartEnd, *, keeps: bool, pieces: list[str]
    ) -> None:
        self.answer = answer
        self.start = start
        self.place = place
        self.end = end
        self.keeps = keeps
        self.pieces = pieces
        self.citations = []
        self.data = []

    def first_text(self) -> str:
        """Return the text that came with its start."""
        first = self.start.part
        return first.text if type(first) is Text or type(first) is Reasoning or type(first) is Refusal else ""

    def has_any_text(self) -> bool:
        return bool(self.pieces and self.pieces[0]) or bool(self.first_text()) or any(self.pieces)

    def whole(self, pieces: Sequence[str]) -> AnyPart:
        """Return the part with this text."""
        text = "".join(pieces)
        data = [event.data for event in self.data]
        return GrowingPart(self.start.part, [text] if text else [], data=data, end=self.end).finished()


class EventEncoder(BaseEventEncoder):
    """Encodes events as bytes that a strict client of this format accepts.

    `array`: one JSON array of chunks, which is what the service sends without `alt=sse`.
    """

    _fields = b"}"
    _notes: Extra | None = None
    _started = False
    _opened = False

    def __init__(self, log: LossLog, *, array: bool = False, profile: GeminiProfile = PROFILE) -> None:
        self._log = log
        self._profile = profile
        self._array = array
        self._lead, self._stop = (b",\r\n", b"") if array else (b"data: ", b"\r\n\r\n")
        self._answers: dict[int, _Answer] = {}
        self._parts: dict[int, _Outgoing] = {}
        self._out: list[bytes] = []

    def encode(self, events: list[AnyEvent]) -> bytes:
        out = self._out
        for event in events:
            if type(event) is not PartDelta:
                _HANDLERS[type(event)](self, event)
            elif event.citation is None:
                out.append(self._piece(event.index, event.text))
            else:
                self._parts[event.index].citations.append(event.citation)
        data = b"".join(out)
        out.clear()
        return self._open_array(data) if self._array else data

    def fragment(self, index: int, text: str) -> bytes:
        """Encode more text of a part."""
        data = self._piece(index, text)
        return self._open_array(data) if self._array else data

    def _piece(self, index: int, text: str) -> bytes:
        part = self._parts[index]
        if part.keeps:
            part.pieces.append(text)
        if not part.flows or not text:
            return b""
        return part.head + _one_line(text) + part.tail if part.head else self._carry(part, text)

    def close(self) -> bytes:
        if not self._array:
            return b""
        return b"\n]" if self._opened else b"[]"

    def _open_array(self, data: bytes) -> bytes:
        if self._opened or not data:
            return data
        self._opened = True
        return b"[" + data.removeprefix(self._lead)

    def _write(self, answer: _Answer, wire: WireValue) -> None:
        self._out.append(self._frame(answer, wire))

    def _frame(self, answer: _Answer, wire: WireValue) -> bytes:
        return answer.head + _json(wire) + answer.tail

    def _on_start(self, event: StreamStart) -> None:
        if self._started:
            return
        self._started = True
        notes: Extra = dict((event.metadata or {}).get(FAMILY, {}))
        feedback = notes.pop(_FEEDBACK, None)
        fields: dict[str, Any] = {}
        if event.model is not None:
            fields["modelVersion"] = event.model
        created = encode_time(event.created, notes)
        if created is not UNSET:
            fields["createTime"] = created
        if event.id is not None:
            fields["responseId"] = event.id
        encoded = _json(spliced(Raw(encode_json(fields)), notes) if notes else fields)
        self._fields = b"}" if encoded == b"{}" else b"," + encoded[1:]
        self._notes = None if feedback is None else {_FEEDBACK: feedback}

    def _answer(self, number: int) -> _Answer:
        if not self._started:
            self._on_start(StreamStart())
        answer = self._answers.get(number)
        if answer is None:
            encoder = PartEncoder(self._log, self._profile, carries=True)
            head = self._lead + b'{"candidates":[{"content":{"parts":['
            tail = b'],"role":"model"},"index":' + str(number).encode() + b"}]" + self._fields + self._stop
            answer = self._answers[number] = _Answer(encoder, head, tail)
        return answer

    # ── parts ──

    def _on_part_start(self, event: PartStart) -> None:
        answer = self._answer(event.candidate)
        part = event.part
        keeps = self.texts is None
        pieces = [] if self.texts is None else self.texts[event.index]
        end = PartEnd(event.index, incomplete=True)
        outgoing = self._parts[event.index] = _Outgoing(answer, event, answer.places, end, keeps=keeps, pieces=pieces)
        outgoing.citations += getattr(part, "citations", ())
        answer.last_index = event.index
        if type(part) is Refusal:
            answer.declined.append(outgoing)
            degrade_refusal(part, self._log)
        elif not (type(part) is Text or type(part) is Reasoning) or _has_notes(part):
            answer.queue.append(outgoing)
            return
        outgoing.flows = True
        if type(part) is Reasoning:
            outgoing.head, outgoing.tail = answer.head + b'{"text":', b',"thought":true}' + answer.tail
            if answer.last is Reasoning:
                # Otherwise the end of the thought before it would be lost.
                self._write(answer, EMPTY_THOUGHT)
                answer.last = None
        elif not answer.encoder.carried:
            outgoing.head, outgoing.tail = answer.head + b'{"text":', b"}" + answer.tail
        if part.text:
            out = outgoing.head + _one_line(part.text) + outgoing.tail
            self._out.append(out if outgoing.head else self._carry(outgoing, part.text))

    def _carry(self, part: _Outgoing, text: str) -> bytes:
        """Send carried reasoning on an empty part before the text: clients keep a signed fragment separate."""
        answer = part.answer
        part.head, part.tail = answer.head + b'{"text":', b"}" + answer.tail
        encoded = part.head + _one_line(text) + part.tail
        carried, answer.encoder.carried = answer.encoder.carried, []
        if not carried:
            return encoded
        signature = foreign_signatures.pack(Bundle(tuple(carried), hollow=True))
        return self._frame(answer, Part("", UNSET, signature)) + encoded

    def _on_media(self, event: MediaDelta) -> None:
        self._parts[event.index].data.append(event)

    def _on_logprobs(self, event: LogprobsDelta) -> None:
        """Add log probabilities to the chunk of their text, or to an empty one if that was already sent."""
        answer = self._answer(event.candidate)
        out = self._out
        has_text = bool(out) and out[-1].endswith(answer.tail)
        chunk = out.pop() if has_text else self._frame(answer, EMPTY_TEXT)
        encoded = b',"logprobsResult":' + encode_json(write_google(event.tokens)) + b"}]"
        out.append(chunk.removesuffix(answer.tail) + answer.tail.replace(b"}]", encoded, 1))

    def _on_part_end(self, event: PartEnd) -> None:
        part = self._parts.pop(event.index)
        part.end = event
        if not part.flows:
            self._settle(part.answer)
        elif type(part.start.part) is Reasoning:
            self._end_reasoning(part)
        else:
            self._end_text(part)

    def _end_text(self, part: _Outgoing) -> None:
        answer, end, start = part.answer, part.end, part.start.part
        if part.citations or part.has_any_text():
            if answer.run is None or answer.last is not Text:
                answer.leave(Text)
                answer.run = _Run(answer.places - 1)
            answer.run.add(part)
        signature = end.signature or getattr(start, "signature", None)
        if signature is not None and not end.incomplete:
            self._write(answer, answer.encoder.encode(Text(self._take_back(part), signature=signature)))
            answer.leave(None)

    def _end_reasoning(self, part: _Outgoing) -> None:
        answer = part.answer
        known: Any = part.whole(())
        overtaken = self._is_overtaken(part)
        if part.has_any_text():
            answer.leave(Reasoning)
        if not is_native_thought(known):
            whole = foreign_signatures.carried_form(part.whole(part.pieces))  # type: ignore[arg-type]
            (answer.overtaken if overtaken else answer.encoder.carried).append(whole)
        elif known.signature is not None and not part.end.incomplete:
            signed = Reasoning(self._take_back(part), known.signature, metadata=NATIVE_THOUGHT)
            self._write(answer, answer.encoder.encode(signed))
            answer.leave(None)

    def _is_overtaken(self, part: _Outgoing) -> bool:
        """Whether anything that began later has already been sent."""
        return part.answer.places != part.place or any(
            later.answer is part.answer and later.flows and later.has_any_text()
            for later in self._parts.values()
            if later.start.index > part.start.index
        )

    def _take_back(self, part: _Outgoing) -> str:
        """Take back the last piece of a part if it was not sent yet, so that its signature can be on the same part."""
        out = self._out
        last = part.pieces[-1] if part.pieces else getattr(part.start.part, "text", "")
        if last and out and out[-1] == part.head + _one_line(last) + part.tail:
            out.pop()
            return last
        return ""

    def _settle(self, answer: _Answer, *, all_of_them: bool = False) -> None:
        """Send the complete parts, up to the first incomplete one: calls are sent in the order they began."""
        queue = answer.queue
        while queue and (all_of_them or not queue[0].end.incomplete):
            outgoing = queue.popleft()
            part = outgoing.whole(outgoing.pieces)
            if isinstance(part, ToolCall) and part.incomplete:
                part = _mark_unfinished(part)
            wire = answer.encoder.encode(part)
            if wire is not None:
                self._write(answer, wire)
                answer.leave(None)

    # ── the end ──

    def _on_finished(self, event: Finished) -> None:
        if not self._started:
            self._on_start(StreamStart())
        late: Extra = (event.metadata or {}).get(FAMILY, {})
        notes = late if self._notes is None else self._notes | late
        candidates: Any = UNSET
        if self._answers or MODELLED + _FEEDBACK not in late:
            finishes = (event.finish, *event.others)
            candidates = [self._candidate(number, finish) for number, finish in enumerate(finishes)]
        usage: Any = UNSET
        if self._usage is not None:
            usage = encode_usage(self._usage, self._log, Completion(()))
        chunk = GenerateContentResponse(candidates, usage_metadata=usage)
        body = _json(overlaid(chunk, notes) if notes else chunk)[:-1]
        fields = self._fields if body != b"{" else self._fields.removeprefix(b",")
        self._out.append(self._lead + body + fields + self._stop)

    def _candidate(self, number: int, finish: Finish | None) -> WireValue:
        """Encode the last chunk of a candidate: its finish reason, and what is only known at the end."""
        answer = self._answer(number)
        self._settle(answer, all_of_them=True)
        parts: list[WireValue] = [EMPTY_TEXT]
        if answer.encoder.carried or answer.overtaken:
            bundle = Bundle(tuple(answer.encoder.carried), last=True, overtaken=tuple(answer.overtaken))
            parts = [structs.replace(EMPTY_THOUGHT, thought_signature=foreign_signatures.pack(bundle))]
        answer.leave(None)
        notes = (finish.metadata or {}).get(FAMILY, {}) if finish is not None else {}
        extra = inner_extra(notes, "candidate") or {}
        grounding: Any = UNSET
        if answer.cited and GROUNDING not in extra and MODELLED + GROUNDING not in extra:
            runs = answer.cited
            written = foreign_signatures.write_grounding(
                [run.part() for run in runs], [run.place for run in runs], self._log
            )
            grounding = UNSET if written is None else written
        word = encode_finish(finish, self._log, Completion(()))
        wire = Candidate(Content("model", parts), word, number, grounding_metadata=grounding)
        candidate: WireValue = overlaid(wire, extra) if extra else wire
        explanation = None if finish is None else finish.explanation or self._words_of_refusal(answer, finish)
        return candidate if explanation is None else add_explanation(candidate, explanation)

    def _words_of_refusal(self, answer: _Answer, finish: Finish) -> str | None:
        """Return the text of the refusal that ends the answer, which this API can only repeat as an explanation."""
        if finish.reason != "refusal" or len(answer.declined) != 1:
            return None
        (refusal,) = answer.declined
        if refusal.start.index != answer.last_index:
            return None
        return refusal.first_text() + "".join(refusal.pieces) or None

    def _on_failed(self, event: StreamFailed) -> None:
        content = encode_error(event.failure).content.strip()
        if content[:1] == b"[":
            content = content[1:-1]
        self._out.append(self._lead + _json(Raw(content)) + self._stop)


def _json(value: WireValue) -> bytes:
    return _without_line_ends(json_line(value))


def _without_line_ends(data: bytes) -> bytes:
    if not data.isascii():
        for mark, escape in _LINE_ENDS:
            data = data.replace(mark, escape)
    return data


def _one_line(text: str) -> bytes:
    return encode_json(text) if text.isascii() else _without_line_ends(encode_json(text))


def _has_notes(part: Text | Reasoning) -> bool:
    if part.metadata is None:
        return False
    notes = part.metadata.get(FAMILY)
    return notes is not None and not notes.keys() <= {THOUGHT}


def _mark_unfinished(call: ToolCall) -> ToolCall:
    """Return a call that the answer was cut off in; `willContinue` says that more should have followed."""
    notes = {**(call.metadata or {}).get(FAMILY, {})}
    notes |= keep(FAMILY, UNSET, functionCall={"willContinue": TRUE})[FAMILY]  # type: ignore[index]
    return structs.replace(call, metadata={**(call.metadata or {}), FAMILY: notes})


_HANDLERS: dict[type[AnyEvent], Callable[[EventEncoder, Any], object]] = {
    StreamStart: EventEncoder._on_start,
    PartStart: EventEncoder._on_part_start,
    MediaDelta: EventEncoder._on_media,
    LogprobsDelta: EventEncoder._on_logprobs,
    PartEnd: EventEncoder._on_part_end,
    UsageUpdate: EventEncoder._on_usage,
    Finished: EventEncoder._on_finished,
    StreamFailed: EventEncoder._on_failed,
}
