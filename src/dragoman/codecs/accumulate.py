"""Turns a wire's fragments into part events, for all formats, and part events into a completion.

Fragments are collected by part and joined once, at the end. A part ends when the wire signals it or when the answer
ends; never because the text so far happens to parse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from msgspec import structs

from dragoman.codecs.arguments import read_arguments
from dragoman.codecs.failures import last_text_as_refusal
from dragoman.codecs.media import joined_base64
from dragoman.errors import StreamError, TruncatedStream
from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Audio,
    Citation,
    Completion,
    Finish,
    Finished,
    Logprobs,
    LogprobsDelta,
    Message,
    Metadata,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
    Refusal,
    Signature,
    StreamFailed,
    StreamStart,
    Text,
    TokenLogprob,
    ToolCall,
    Usage,
    UsageUpdate,
)
from dragoman.ir.notes import CORRECTED, REFUSED, has_note
from dragoman.ir.values import parse_json

T = TypeVar("T")

TEXT = Text("")
REASONING = Reasoning("")
REFUSAL = Refusal("")


class EventBook:
    """The events of one stream until they are taken. Each candidate has its own lane of parts; all share one book.

    Lanes refer to the book, but the book does not refer to them: a reference cycle would stay in memory until the
    garbage collector runs.
    """

    events: list[AnyEvent]
    next_index: int = 0

    def __init__(self) -> None:
        self.events = []

    def take(self) -> list[AnyEvent]:
        """Return the events since the last call."""
        events, self.events = self.events, []
        return events

    def text_so_far(self, index: int, texts: Mapping[int, list[str]]) -> str:
        """Return the text of a part: that in `texts`, and that of events not taken yet."""
        new = [event.text for event in self.events if type(event) is PartDelta and event.index == index]
        return "".join([*texts.get(index, ()), *new])


class Lane:
    """The parts of one candidate: at most one open text, and any number of open calls and audio parts."""

    book: EventBook
    _candidate: int
    flow_index: int = -1
    flow_kind: type[AnyPart] | None = None
    _open: dict[int, None]

    def __init__(self, book: EventBook, candidate: int) -> None:
        self.book = book
        self._candidate = candidate
        self._open = {}

    def flow(self, prototype: Text | Reasoning | Refusal, text: str) -> None:
        """Add a fragment of running text; a change of kind ends the part before it."""
        if self.flow_kind is not type(prototype):
            if self.flow_kind is not None:
                self.end_flow()
            self.flow_index = self._start(prototype)
            self.flow_kind = type(prototype)
        self.book.events.append(PartDelta(self.flow_index, text))

    def end_flow(self, signature: Signature | None = None, *, incomplete: bool = False) -> None:
        if self.flow_kind is not None:
            self.book.events.append(PartEnd(self.flow_index, signature, incomplete))
            self.flow_kind = None

    def cite(self, citation: Citation) -> None:
        """Add a citation to the running text; without one, to an empty text that begins here."""
        if self.flow_kind is not Text:
            self.end_flow()
            self.flow_index = self._start(TEXT)
            self.flow_kind = Text
        self.book.events.append(PartDelta(self.flow_index, "", citation))

    def whole(self, part: AnyPart) -> None:
        """Add a part that arrives complete."""
        self.end_flow()
        index = self._start(part)
        self.book.events.append(PartEnd(index))

    def start_call(self, call: ToolCall) -> int:
        self.end_flow()
        return self._start_open(call)

    def start_audio(self, audio: Audio) -> int:
        """Start an audio part, which continues beside the running text and ends with the answer."""
        return self._start_open(audio)

    def _start_open(self, part: AnyPart) -> int:
        index = self._start(part)
        self._open[index] = None
        return index

    def delta(self, index: int, text: str) -> None:
        self.book.events.append(PartDelta(index, text))

    def end_call(
        self,
        index: int,
        signature: Signature | None = None,
        *,
        incomplete: bool = False,
        metadata: Metadata | None = None,
    ) -> None:
        if index in self._open:
            del self._open[index]
            self.book.events.append(PartEnd(index, signature, incomplete, metadata))

    def end_all(self, *, incomplete: bool = False) -> None:
        """End all open parts. `incomplete`: calls are marked so, and reasoning that never ended has no signature."""
        self.end_flow(incomplete=incomplete)
        for index in list(self._open):
            self.end_call(index, incomplete=incomplete)

    def _start(self, part: AnyPart) -> int:
        book = self.book
        index = book.next_index
        book.next_index = index + 1
        book.events.append(PartStart(index, part, self._candidate))
        return index


def first_lane() -> Lane:
    """Return the lane of the first candidate, with a new book."""
    return Lane(EventBook(), 0)


class GrowingPart:
    """One part while its fragments arrive."""

    prototype: AnyPart
    pieces: list[str]
    citations: list[Citation]
    data: list[str]
    end: PartEnd | None

    def __init__(
        self,
        prototype: AnyPart,
        pieces: list[str],
        data: list[str] | None = None,
        end: PartEnd | None = None,
    ) -> None:
        self.prototype = prototype
        self.pieces = pieces
        self.citations = []
        self.data = [] if data is None else data
        self.end = end

    def finished(self) -> AnyPart:
        part = self.prototype
        end = self.end
        text = "".join(self.pieces)
        changes: dict[str, Any] = {}
        if isinstance(part, ToolCall):
            if self.pieces or (part.arguments_text is None and not part.parsed):
                changes = {"arguments": _arguments(part, text), "arguments_text": text}
            if end is None or end.incomplete:
                changes["incomplete"] = True
        elif isinstance(part, Text | Reasoning | Refusal) and self.pieces:
            changes = {"text": part.text + text}
        elif isinstance(part, Audio) and (self.pieces or self.data):
            changes = {
                "transcript": (part.transcript or "") + text,
                "data": joined_base64([part.data or "", *self.data]),
            }
        if self.citations and isinstance(part, Text):
            changes["citations"] = (*part.citations, *self.citations)
        # A reasoning part without its end event loses its signature: the vendor would refuse it on cut text.
        if end is not None and end.signature is not None and not end.incomplete:
            changes["signature"] = end.signature
        if end is not None and end.metadata is not None:
            late: Metadata | None = end.metadata
            if has_note(late, CORRECTED):
                corrected, late = _take_correction(end.metadata)
                if isinstance(part, Text | Reasoning | Refusal):
                    changes["text"] = corrected
            changes["metadata"] = _merge_metadata(getattr(part, "metadata", None), late)
        return structs.replace(part, **changes) if changes else part


def _merge_metadata(early: Metadata | None, late: Metadata | None) -> Metadata | None:
    """Merge the metadata given at the start and at the end; later values win."""
    if early is None or late is None:
        return early or late
    return early | {family: early.get(family, {}) | notes for family, notes in late.items()}


def _take_correction(metadata: Metadata) -> tuple[Any, Metadata | None]:
    """Return the text with which a provider corrected a part, and the metadata without that note."""
    corrected: Any = None
    others: dict[str, dict[str, Any]] = {}
    for family, notes in metadata.items():
        corrected = parse_json(notes[CORRECTED]) if CORRECTED in notes else corrected
        if left := {key: value for key, value in notes.items() if key != CORRECTED}:
            others[family] = left
    return corrected, others or None


def _arguments(call: ToolCall, text: str) -> Any:
    return {"input": text} if call.custom else read_arguments(text)


class Accumulator:
    """Builds the completion from events as they pass."""

    texts: dict[int, list[str]]
    """The text of each part's deltas, by its index."""
    failed: StreamFailed | None = None
    _bounds: list[Any]
    """Starts and ends of parts."""
    _start: StreamStart = StreamStart()
    _usage: Usage | None = None
    _finished: Finished | None = None
    # Most answers have none of these.
    _citations: dict[int, list[Citation]] | None = None
    _data: dict[int, list[str]] | None = None
    _logprobs: dict[int, list[TokenLogprob]] | None = None

    def __init__(self) -> None:
        self.texts = {}
        self._bounds = []

    def add(self, events: Iterable[Any]) -> None:
        """Keep the contents of the events; parts are assembled when the completion is requested."""
        for event in events:
            kind = type(event)
            if kind is PartDelta:
                if event.citation is None:
                    self.texts[event.index].append(event.text)
                else:
                    self._citations = _with(self._citations, event.index, (event.citation,))
            elif kind is PartStart:
                self._bounds.append(event)
                self.texts[event.index] = []
            elif kind is PartEnd:
                self._bounds.append(event)
            elif kind is UsageUpdate:
                self._usage = event.usage
            elif kind is StreamStart:
                self._start = event
            elif kind is Finished:
                self._finished = event
            elif kind is LogprobsDelta:
                self._logprobs = _with(self._logprobs, event.candidate, event.tokens)
            elif kind is StreamFailed:
                self.failed = event
            else:
                self._data = _with(self._data, event.index, (event.data,))

    def so_far(self) -> Completion:
        """Return the answer so far. Until it ends, its calls are marked incomplete: they may not be run yet."""
        completion = self.completion()
        if self._finished is not None or self.failed is not None:
            return completion
        return structs.replace(completion, messages=tuple(map(_with_open_calls, completion.messages)))

    def completion(self) -> Completion:
        """Return the completion that the events so far make up."""
        candidates: dict[int, list[AnyPart]] = {0: []}
        starts: dict[int, PartStart] = {}
        ends: dict[int, PartEnd] = {}
        for event in self._bounds:
            if type(event) is PartStart:
                starts[event.index] = event
            else:
                ends[event.index] = event
        for index in sorted(starts):
            start = starts[index]
            data = None if self._data is None else self._data.get(index)
            growing = GrowingPart(start.part, self.texts[index], data=data, end=ends.get(index))
            if self._citations is not None:
                growing.citations = self._citations.get(index, [])
            candidates.setdefault(start.candidate, []).append(growing.finished())
        messages = tuple(Message("assistant", tuple(candidates[number])) for number in sorted(candidates))
        finished = self._finished
        finish = None if finished is None else finished.finish
        if self.failed is not None:
            finish = Finish("error", self.failed.failure.raw_type)
        if finish is not None and finish.metadata is not None and has_note(finish.metadata, REFUSED):
            messages, finish = _with_refusal(messages, finish)
        opening = self._start
        finishes: tuple[Finish | None, ...] = ()
        if finished is not None and finished.others:
            finishes = (finish, *finished.others)
            # A stream that skips a candidate's number does not say how that candidate ended.
            finishes += (None,) * (len(messages) - len(finishes))
        return Completion(
            messages,
            finish,
            self._usage,
            opening.id,
            opening.model,
            opening.created,
            finishes,
            opening.metadata if finished is None else _merge_metadata(opening.metadata, finished.metadata),
            tuple(Logprobs(tuple(tokens), number) for number, tokens in sorted((self._logprobs or {}).items())),
        )


def _with_refusal(messages: tuple[Message, ...], finish: Finish) -> tuple[tuple[Message, ...], Finish]:
    """Return the answer with its last text as a refusal if the finish repeats it, as without streaming."""
    words: Any = None
    metadata = {family: dict(notes) for family, notes in (finish.metadata or {}).items()}
    for notes in metadata.values():
        words = parse_json(notes.pop(REFUSED)) if REFUSED in notes else words
    finish = structs.replace(finish, metadata={family: notes for family, notes in metadata.items() if notes} or None)
    parts = messages[0].parts
    last = parts[-1] if parts else None
    if type(last) is Text and isinstance(words, str) and last.text.endswith(words):
        before = last.text.removesuffix(words)  # a text that came before it, in formats that join them
        parts = (*parts[:-1], *([Text(before)] if before else []), structs.replace(last, text=words))
    reported = last_text_as_refusal(parts, words)
    if reported is None:
        return messages, finish
    refused = structs.replace(finish, reason="refusal", explanation=None)
    return (structs.replace(messages[0], parts=reported), *messages[1:]), refused


def _with(lists: dict[int, list[T]] | None, number: int, items: Iterable[T]) -> dict[int, list[T]]:
    """Return the lists by number, with items added to one of them."""
    if lists is None:
        lists = {}
    lists.setdefault(number, []).extend(items)
    return lists


def _with_open_calls(message: Message) -> Message:
    if not message.tool_calls:
        return message
    parts = (structs.replace(part, incomplete=True) if type(part) is ToolCall else part for part in message.parts)
    return structs.replace(message, parts=tuple(parts))


def accumulate(events: Iterable[AnyEvent]) -> Completion:
    """Return the answer of a finished stream; raise, with the partial answer, if it failed or ended early."""
    accumulator = Accumulator()
    accumulator.add(events)
    completion = accumulator.completion()
    if accumulator.failed is not None:
        failure = accumulator.failed.failure
        kind = TruncatedStream if failure.kind == "truncated" else StreamError
        raise kind(failure, completion)
    return completion
