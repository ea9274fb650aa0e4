"""Chat streams, both ways: one JSON object per line.

Decoding. Each line has more of the thinking, more of the text, or whole calls; several of these may share a line. Calls
never come in fragments. Some servers send each in a line of its own, some all of them in the last line. The answer ends
with `done: true`; an `error` line ends it badly, and so does the end of bytes before either.

Encoding. Calls wait until they are whole, and leave in the order in which they started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.codecs.arguments import EMPTY_OBJECT, UNPARSED_KEY, arguments_as_object, unwrap_arguments
from dragoman.codecs.assembly import TEXT, Assembler, Lane
from dragoman.codecs.failures import tell_of_kind
from dragoman.codecs.framing import Limits, Lines
from dragoman.codecs.ids import invent_id, is_invented
from dragoman.codecs.ollama_chat import carriers
from dragoman.codecs.ollama_chat.errors import decode_error, encode_error
from dragoman.codecs.ollama_chat.parts import decode_images, gather
from dragoman.codecs.ollama_chat.profile import FAMILY
from dragoman.codecs.ollama_chat.response import (
    CREATED,
    decode_finish,
    decode_time,
    decode_usage,
    encode_finish,
    encode_time,
    encode_usage,
    seed_of,
)
from dragoman.codecs.ollama_chat.wire import DURATIONS, Call, Function
from dragoman.codecs.reading import check_text, spliced
from dragoman.codecs.templates import Ring, Templates
from dragoman.codecs.transcripts import transcribed, unspoken
from dragoman.errors import DecodeError, IllegalEvent
from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Completion,
    Failure,
    Finished,
    MediaDelta,
    Message,
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
    Usage,
    UsageUpdate,
)
from dragoman.ir.notes import MODELLED, Extra
from dragoman.ir.values import encode_json, exact_object, parse_json, single_line, to_raw
from dragoman.losses import LossLog

SOURCE = "ollama-chat stream"

# ── the wire ──────────────────────────────────────────────────────────────────────────────────────────────────


class WholeFunction(Struct, gc=False):
    name: str = ""
    arguments: Raw | UnsetType = UNSET


class WholeCall(Struct, gc=False):
    function: WholeFunction
    id: str | None = None
    signature: Raw | UnsetType = UNSET


class Delta(Struct, gc=False):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[WholeCall] | None = None
    images: list[str] | None = None
    signatures: Raw | UnsetType = UNSET


class Chunk(Struct, gc=False):
    message: Delta | None = None
    done: bool | None = None
    error: Raw | UnsetType = UNSET


class Opening(Struct, gc=False):
    """What the first line says of the whole answer."""

    model: str | None = None
    created_at: Raw | UnsetType = UNSET
    id: str | None = None


class Closing(Struct, gc=False):
    """What the last line says of the whole answer."""

    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    created_at: Raw | UnsetType = UNSET
    total_duration: Raw | UnsetType = UNSET
    load_duration: Raw | UnsetType = UNSET
    prompt_eval_duration: Raw | UnsetType = UNSET
    eval_duration: Raw | UnsetType = UNSET


_chunks = msgspec.json.Decoder(Chunk)
_openings = msgspec.json.Decoder(Opening)
_closings = msgspec.json.Decoder(Closing)

# ── states ────────────────────────────────────────────────────────────────────────────────────────────────────

BEFORE, OPEN, ENDED = "before the first line", "in the answer", "ended"

MOVES: dict[tuple[str, str], str] = {
    (BEFORE, "line"): OPEN,
    (BEFORE, "error"): ENDED,
    (OPEN, "line"): OPEN,
    (OPEN, "error"): ENDED,
    (OPEN, "done"): ENDED,
}

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────

_THINKING = Reasoning("", metadata=carriers.THINKING)
_A_CALL = Message("assistant", (ToolCall("", ""),))


_Fragment: TypeAlias = tuple[int, str]
"""Index of a part, and more of its text."""


class _Fragments(Ring):
    """Lines that say more of what flows, and nothing else. The time in each of them makes it differ from the others."""

    def __init__(self, look: Callable[[bytes], _Fragment | None]) -> None:
        super().__init__()
        self._look: Callable[[bytes], _Fragment | None] | None = look

    def clear(self) -> None:
        self._look = None

    def read(self, data: bytes) -> str | None:
        size = len(data)
        look = self._look
        if look is None or data.find(b"\n") != size - 1 or self.passed + size > self.room:
            return None
        try:
            fragment = look(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if fragment is None:
            return None
        self.passed += size
        self.last.index, text = fragment
        return text


class PayloadDecoder:
    """Lines of one stream in, events out."""

    def __init__(self) -> None:
        self._book = Assembler()
        self._lane: Lane = self._book.lane()
        self._state = BEFORE
        self._seed = ""
        self._calls = 0
        self.templates = Templates()
        self.templates.framed = _Fragments(self._look)

    @staticmethod
    def framing(limits: Limits) -> Lines:
        return Lines(limits, SOURCE)

    def decode(self, payload: bytes) -> list[AnyEvent]:
        chunk = _read(_chunks, payload)
        fragment = self._fragment(chunk)
        return self._decode_whole(chunk, payload) if fragment is None else [PartDelta(*fragment)]

    def _look(self, line: bytes) -> _Fragment | None:
        return self._fragment(_chunks.decode(line))

    def _fragment(self, chunk: Chunk) -> _Fragment | None:
        """More of what flows; None for every other line."""
        delta = chunk.message
        if self._state is OPEN and delta is not None and not chunk.done and chunk.error is UNSET:
            lane = self._lane
            if delta.tool_calls is None and delta.images is None and delta.signatures is UNSET:
                if delta.content:
                    if lane.flow_kind is Text and not delta.thinking:
                        return lane.flow_index, delta.content
                elif delta.thinking and lane.flow_kind is Reasoning:
                    return lane.flow_index, delta.thinking
        return None

    def _decode_whole(self, chunk: Chunk, payload: bytes) -> list[AnyEvent]:
        if self._state is ENDED:
            return []  # whatever comes after the end is nobody's business
        check_text(payload, SOURCE)
        if chunk.error is not UNSET and bytes(chunk.error) not in {b"null", b'""'}:
            return self._fail(payload)
        first = self._state is BEFORE
        self._move("line")
        if first:
            self._start(payload)
        if chunk.message is not None:
            self._delta(chunk.message)
        if chunk.done:
            self._finish(payload)
        return self._book.take()

    def close(self) -> list[AnyEvent]:
        """End of bytes: without the line that says done, the answer was cut."""
        if self._state is ENDED:
            return []
        self._state = ENDED
        self._book.end_all(incomplete=True)
        self._book.events.append(StreamFailed(Failure("truncated", "the stream ended before it was done")))
        return self._book.take()

    def _move(self, event: str) -> None:
        state = MOVES.get((self._state, event))
        if state is None:
            raise IllegalEvent(event=event, state=self._state, source=SOURCE)
        self._state = state

    def _start(self, payload: bytes) -> None:
        opening = _read(_openings, payload)
        self._seed = seed_of(opening.id, opening.created_at)
        created = None if opening.created_at is UNSET else decode_time(opening.created_at)
        self._book.events.append(StreamStart(opening.id, opening.model, created))

    def _fail(self, payload: bytes) -> list[AnyEvent]:
        self._move("error")
        self._book.end_all(incomplete=True)
        self._book.events.append(StreamFailed(decode_error(payload)))
        return self._book.take()

    def _delta(self, delta: Delta) -> None:
        """A line may hold several kinds at once: thinking, then images, then text, then calls."""
        lane = self._lane
        if delta.thinking:
            lane.flow(_THINKING, delta.thinking)
        for image in decode_images(delta.images or ()):
            lane.whole(image)
        if delta.content:
            lane.flow(TEXT, delta.content)
        if delta.signatures is not UNSET:
            for mark in carriers.signed_in(delta.signatures):
                _sign(lane, mark)
        for call in delta.tool_calls or ():
            self._call(call)

    def _call(self, wire: WholeCall) -> None:
        call_id = wire.id or invent_id(self._seed, self._calls)
        self._calls += 1
        signature = None if wire.signature is UNSET else carriers.call_signature_in(wire.signature)
        index = self._lane.start_call(
            ToolCall(call_id, wire.function.name, invented_id=is_invented(call_id), signature=signature)
        )
        self._lane.delta(index, _argument_text(wire.function.arguments, self._calls - 1))
        # The line that brought the call brought all of it.
        self._lane.end_call(index, incomplete=not wire.function.name)

    def _finish(self, payload: bytes) -> None:
        self._move("done")
        closing = _read(_closings, payload)
        self._book.end_all()
        events = self._book.events
        usage = decode_usage(closing.prompt_eval_count, closing.eval_count)
        if usage is not None:
            events.append(UsageUpdate(usage))
        word = UNSET if closing.done_reason is None else closing.done_reason
        notes: Extra = {} if closing.created_at is UNSET else {CREATED: closing.created_at}
        for name in DURATIONS:
            held = getattr(closing, name)
            if held is not UNSET:
                notes[MODELLED + name] = held
        finish = decode_finish(word, _A_CALL if self._calls else None)
        events.append(Finished(finish, metadata={FAMILY: notes}))


def _read(reader: msgspec.json.Decoder[Any], payload: bytes) -> Any:
    try:
        return reader.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(path="$", expected="a line of an answer", got=str(error), source=SOURCE) from error


def _sign(lane: Lane, mark: carriers.SignedText) -> None:
    """A signature ends the part that it signs; one that signs no characters is a part of its own."""
    signature = Signature(mark.family, mark.data, mark.id)
    thinks = mark.field == "thinking"
    if mark.length and lane.flow_kind is (Reasoning if thinks else Text):
        lane.end_flow(signature)
    elif thinks:
        lane.whole(Reasoning("", signature, mark.redacted, carriers.THINKING))
    else:
        lane.whole(Text("", signature=signature))


def _argument_text(given: Raw | UnsetType, number: int) -> str:
    if given is UNSET or bytes(given) == b"null":
        return "{}"
    first = bytes(memoryview(given)[:1])
    if first == b'"':
        return str(parse_json(given))
    if first != b"{":
        path = f"$.message.tool_calls[{number}].function.arguments"
        raise DecodeError(path=path, expected="object", got=type(parse_json(given)).__name__, source=SOURCE)
    held, text = unwrap_arguments(given)
    return text if held is UNSET and text is not None else str(given, "utf-8")


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────

_MESSAGE = b',"message":{"role":"assistant",'
_NOTHING = b'"content":""'
_TAIL = b'},"done":false}\n'


class EventEncoder:
    """Events in, lines out that a strict client of this format accepts."""

    def __init__(self, log: LossLog) -> None:
        self._log = log
        self._head = b""
        self._fields: dict[str, Any] = {}
        self._parts: dict[int, _Outgoing] = {}
        self._queue: list[_Outgoing] = []
        self._calls = 0
        self._lengths = {"content": 0, "thinking": 0}
        self._usage: Usage | None = None

    def encode(self, events: Iterable[AnyEvent]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if type(event) is PartDelta:
                out.append(self._delta(event))
            else:
                out += _HANDLERS[type(event)](self, event)
        return b"".join(out)

    def close(self) -> bytes:
        return b""

    def _on_start(self, event: StreamStart) -> list[bytes]:
        if not self._head:
            self._fields = {"model": event.model or "", "created_at": encode_time(event.created)}
            if event.id is not None:
                self._fields["id"] = event.id
            self._head = encode_json(self._fields)[:-1] + _MESSAGE
        return []

    def _line(self, said: bytes) -> bytes:
        return self._head + said + _TAIL

    def _on_part_start(self, event: PartStart) -> list[bytes]:
        self._on_start(StreamStart())
        part = event.part if event.candidate else transcribed(event.part, self._log)
        outgoing = self._parts[event.index] = _Outgoing(part)
        if event.candidate:
            self._log.drop(part, "", "a further candidate", "one answer is streamed")
            return []
        if isinstance(part, ToolCall):
            self._queue.append(outgoing)
            return []
        if isinstance(part, Reasoning):
            outgoing.field, outgoing.head = "thinking", self._head + _NOTHING + b',"thinking":'
        elif isinstance(part, Text | Refusal):
            outgoing.field, outgoing.head = "content", self._head + b'"content":'
        else:
            return self._whole(part)
        if isinstance(part, Text | Refusal):
            gather([part], self._log)  # for what it reports
        outgoing.start = self._lengths[outgoing.field]
        return [self._fragment(outgoing, part.text)] if part.text else []

    def _whole(self, part: AnyPart) -> list[bytes]:
        """Documents that are text; whatever else an answer cannot hold is told."""
        held = gather([part], self._log, media=False)
        return [self._line(b'"content":' + encode_json(text)) for text in held.texts]

    def _delta(self, event: PartDelta) -> bytes:
        outgoing = self._parts[event.index]
        if event.citation is not None:
            self._log.drop(outgoing.part, "citations", "citation", "this API has no citations")
            return b""
        return self._fragment(outgoing, event.text)

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
            return self._ready_calls()
        signature = event.signature or getattr(part, "signature", None)
        if signature is None or event.incomplete or not isinstance(part, Text | Reasoning) or not outgoing.head:
            return []
        signed = msgspec.structs.replace(part, signature=signature)
        mark = carriers.signed_text(signed, outgoing.start, self._lengths[outgoing.field] - outgoing.start)
        return [] if mark is None else [self._line(_NOTHING + b',"signatures":' + encode_json([mark]))]

    def _ready_calls(self, *, at_the_end: bool = False) -> list[bytes]:
        """The calls that are whole, up to the first that is not. One that was cut waits: the stream may have failed."""
        lines: list[bytes] = []
        while self._queue and self._queue[0].ended and (at_the_end or not self._queue[0].incomplete):
            call = self._call(self._queue.pop(0))
            lines.append(self._line(_NOTHING + b',"tool_calls":[' + encode_json(call) + b"]"))
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
        return spliced(body, {carriers.SIGNATURE: carriers.write_call_signature(signature)})

    def _on_usage(self, event: UsageUpdate) -> list[bytes]:
        self._usage = event.usage
        return []

    def _on_finished(self, event: Finished) -> list[bytes]:
        self._on_start(StreamStart())
        for outgoing in self._queue:
            if not outgoing.ended:
                outgoing.ended = outgoing.incomplete = True
        lines = self._ready_calls(at_the_end=True)
        notes: Extra | None = (event.metadata or {}).get(FAMILY)
        answer = Completion(())
        prompt, written = encode_usage(self._usage, self._log, answer)
        said = {
            **self._fields,
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": encode_finish(event.finish, self._log, answer, native=notes is not None),
            "prompt_eval_count": prompt,
            "eval_count": written,
            **{key.removeprefix(MODELLED): held for key, held in (notes or {}).items()},
        }
        last = {key: value for key, value in said.items() if value is not None and value is not UNSET}
        return [*lines, encode_json(last) + b"\n"]

    def _on_failed(self, event: StreamFailed) -> list[bytes]:
        content = encode_error(event.failure).content
        tell_of_kind(event.failure, decode_error(content).kind, self._log)
        return [bytes(single_line(Raw(content))) + b"\n"]


def _arguments(call: ToolCall, text: str, *, cut: bool) -> Raw:
    if call.custom and text:
        return Raw(encode_json({"input": text}))
    if cut:
        return Raw(encode_json({UNPARSED_KEY: text}))
    if not text:
        return arguments_as_object(call) if call.parsed or call.arguments_text else EMPTY_OBJECT
    held = exact_object(text)
    return to_raw({UNPARSED_KEY: text}) if held is None else held


class _Outgoing:
    """One part on its way out: the bytes before each of its fragments, or the fragments of a call."""

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


_HANDLERS: dict[type[AnyEvent], Callable[[EventEncoder, Any], list[bytes]]] = {
    StreamStart: EventEncoder._on_start,  # noqa: SLF001
    PartStart: EventEncoder._on_part_start,  # noqa: SLF001
    MediaDelta: unspoken,
    PartEnd: EventEncoder._on_part_end,  # noqa: SLF001
    UsageUpdate: EventEncoder._on_usage,  # noqa: SLF001
    Finished: EventEncoder._on_finished,  # noqa: SLF001
    StreamFailed: EventEncoder._on_failed,  # noqa: SLF001
}
