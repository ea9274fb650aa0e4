"""Chat streams, both ways: one JSON object per line; encoding is in stream_encoding.py.

Each line has more of the thinking, more of the text, or whole calls; several of these may share a line. Calls never
come in fragments. Some servers send each in a separate line, some all of them in the last line. The answer ends with
`done: true`; an `error` line ends it with a failure, and so does the end of bytes before either.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.accumulate import TEXT, EventBook, Lane, first_lane
from dragoman.codecs.arguments import unwrap_arguments
from dragoman.codecs.carried_signatures import signature_in
from dragoman.codecs.framing import Lines
from dragoman.codecs.ids import invent_id, is_invented
from dragoman.codecs.logprobs import convert_tokens
from dragoman.codecs.ollama_chat import foreign_signatures
from dragoman.codecs.ollama_chat.errors import decode_error
from dragoman.codecs.ollama_chat.parts import decode_images
from dragoman.codecs.ollama_chat.profile import FAMILY
from dragoman.codecs.ollama_chat.response import (
    CREATED,
    decode_finish,
    decode_usage,
    seed_of,
)
from dragoman.codecs.ollama_chat.stream_encoding import EventEncoder
from dragoman.codecs.ollama_chat.stream_wire import (
    Chunk,
    Delta,
    WholeCall,
)
from dragoman.codecs.ollama_chat.wire import DURATIONS
from dragoman.codecs.reading import MALFORMED, check_text
from dragoman.codecs.stream_codec import EventDecoder, Moves, not_an_event
from dragoman.codecs.stream_limits import Limits
from dragoman.codecs.timestamps import read_time
from dragoman.codecs.unknown_keys import has_unknown_key, take_unknown_keys
from dragoman.errors import DecodeError
from dragoman.ir import (
    AnyEvent,
    Failure,
    Finished,
    LogprobsDelta,
    Message,
    PartDelta,
    Reasoning,
    Signature,
    StreamFailed,
    StreamStart,
    Text,
    ToolCall,
    UsageUpdate,
)
from dragoman.ir.notes import Extra
from dragoman.ir.values import parse_json

__all__ = ["MOVES", "EventEncoder", "PayloadDecoder"]

SOURCE = "ollama-chat stream"

_decode_chunk = msgspec.json.Decoder(Chunk).decode

# ── states ────────────────────────────────────────────────────────────────────────────────────────────────────

BEFORE, OPEN, ENDED = "before the first line", "in the answer", "ended"

MOVES: Moves = {
    (BEFORE, "line"): OPEN,
    (BEFORE, "error"): ENDED,
    (OPEN, "line"): OPEN,
    (OPEN, "error"): ENDED,
    (OPEN, "done"): ENDED,
}

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────

_THINKING = Reasoning("", metadata=foreign_signatures.THINKING)
_A_CALL = Message("assistant", (ToolCall("", ""),))


class PayloadDecoder(EventDecoder):
    """Decodes the lines of one stream into events."""

    source: ClassVar[str] = SOURCE
    moves: Moves = MOVES

    _state: str = BEFORE
    _seed: str = ""
    _calls: int = 0
    _lane: Lane
    _late: Extra
    """Keys of the lines that the intermediate format does not model."""

    def __init__(self) -> None:
        self._lane = first_lane()
        self._late = {}

    @property
    def _book(self) -> EventBook:
        return self._lane.book

    @staticmethod
    def framing(limits: Limits) -> Lines:
        return Lines(limits, SOURCE)

    def decode(self, payload: bytes) -> list[AnyEvent]:
        try:
            chunk = _decode_chunk(payload)
        except MALFORMED as error:
            chunk = self._decode_odd(payload, error)
        delta = self._delta_in(chunk)
        return self._decode_whole(chunk, payload) if delta is None else [delta]

    def _decode_odd(self, payload: bytes, error: Exception) -> Chunk:
        """Decode a line without its unknown keys; raise for anything else that is not a line."""
        if has_unknown_key(error):
            try:
                return _decode_chunk(take_unknown_keys(payload, Chunk, {} if self._state is ENDED else self._late))
            except MALFORMED as another:
                error = another
        raise not_an_event(error, SOURCE, "a line of an answer") from error

    def _delta_in(self, chunk: Chunk) -> PartDelta | None:
        """Return more of the running part; None for every other line."""
        delta = chunk.message
        if self._state is OPEN and delta is not None and not chunk.done and chunk.error is UNSET:
            lane = self._lane
            if not (delta.tool_calls or delta.images or chunk.logprobs) and delta.signatures is UNSET:
                if delta.content:
                    if lane.flow_kind is Text and not delta.thinking:
                        return PartDelta(lane.flow_index, delta.content)
                elif delta.thinking and lane.flow_kind is Reasoning:
                    return PartDelta(lane.flow_index, delta.thinking)
        return None

    def _decode_whole(self, chunk: Chunk, payload: bytes) -> list[AnyEvent]:
        if self._state is ENDED:
            return []  # everything after the end is ignored
        check_text(payload, SOURCE)
        if chunk.error is not UNSET and bytes(chunk.error) not in {b"null", b'""'}:
            return self._fail(payload)
        first = self._state is BEFORE
        self._move("line")
        if first:
            self._start(chunk)
        if chunk.message is not None:
            self._delta(chunk.message)
        if chunk.logprobs and (tokens := convert_tokens(chunk.logprobs)):
            self._book.events.append(LogprobsDelta(tokens))
        if chunk.done:
            self._finish(chunk)
        return self._book.take()

    def close(self) -> list[AnyEvent]:
        """Handle the end of bytes: without a line with `done`, the answer was cut off."""
        if self._state is ENDED:
            return []
        self._state = ENDED
        self._lane.end_all(incomplete=True)
        self._book.events.append(StreamFailed(Failure("truncated", "the stream ended before it was done")))
        return self._book.take()

    def _start(self, chunk: Chunk) -> None:
        self._seed = seed_of(chunk.id, chunk.created_at)
        created = None if chunk.created_at is UNSET else read_time(chunk.created_at)
        self._book.events.append(StreamStart(chunk.id, chunk.model, created))

    def _fail(self, payload: bytes) -> list[AnyEvent]:
        self._move("error")
        self._lane.end_all(incomplete=True)
        self._book.events.append(StreamFailed(decode_error(payload)))
        return self._book.take()

    def _delta(self, delta: Delta) -> None:
        """Decode a line, which may hold several kinds at once: thinking, then images, then text, then calls."""
        lane = self._lane
        if delta.thinking:
            lane.flow(_THINKING, delta.thinking)
        for image in decode_images(delta.images or ()):
            lane.whole(image)
        if delta.content:
            lane.flow(TEXT, delta.content)
        if delta.signatures is not UNSET:
            for mark in foreign_signatures.read_signed_texts(delta.signatures):
                _sign(lane, mark)
        for call in delta.tool_calls or ():
            self._call(call)

    def _call(self, wire: WholeCall) -> None:
        call_id = wire.id or invent_id(self._seed, self._calls)
        self._calls += 1
        signature = None if wire.signature is UNSET else signature_in(wire.signature)
        index = self._lane.start_call(
            ToolCall(call_id, wire.function.name, invented_id=is_invented(call_id), signature=signature)
        )
        self._lane.delta(index, _argument_text(wire.function.arguments, self._calls - 1))
        # The line that started the call contained all of it.
        self._lane.end_call(index, incomplete=not wire.function.name)

    def _finish(self, chunk: Chunk) -> None:
        self._move("done")
        self._lane.end_all()
        events = self._book.events
        usage = decode_usage(chunk.prompt_eval_count, chunk.eval_count)
        if usage is not None:
            events.append(UsageUpdate(usage))
        word = UNSET if chunk.done_reason is None else chunk.done_reason
        notes = self._late if chunk.created_at is UNSET else {**self._late, CREATED: chunk.created_at}
        for name in DURATIONS:
            value = getattr(chunk, name)
            if value is not UNSET:
                notes[name] = value
        finish = decode_finish(word, _A_CALL if self._calls else None)
        events.append(Finished(finish, metadata={FAMILY: notes}))


def _sign(lane: Lane, mark: foreign_signatures.SignedText) -> None:
    """End the part that a signature signs; a signature without characters is a separate part."""
    signature = Signature(mark.family, mark.data, mark.id)
    thinks = mark.field == "thinking"
    if mark.length and lane.flow_kind is (Reasoning if thinks else Text):
        lane.end_flow(signature)
    elif thinks:
        lane.whole(Reasoning("", signature, mark.redacted, foreign_signatures.THINKING))
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
    _, text = unwrap_arguments(given)
    return str(given, "utf-8") if text is None else text
