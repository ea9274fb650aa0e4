"""generateContent streams, both ways.

Decoding. Every payload is a whole response object with the next parts; parts have no index, so they are distinguished
by their kind. Unsigned text continues the running text, an unsigned thought the running thought. A signature ends its
part: text with a signature closes the running text, and an empty text with one is a separate part, because that is
where the service put it. Calls arrive whole, and are emitted when something else follows or the answer ends: until
then the server may still answer them itself. A call without arguments waits for them; it is emitted once, at the
latest at a clean end. The answer ends with a finish reason *and* the end of bytes.

Encoding. Text and thoughts are sent as they come, calls when they are complete, in the order in which they began.
Signatures of other families are carried on the next part, as in answers that are not streamed. Finish reason and
usage are last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, Raw, UnsetType, structs

from dragoman.codecs.accumulate import TEXT, EventBook, Lane
from dragoman.codecs.arguments import EMPTY_OBJECT, read_arguments, unwrap_arguments
from dragoman.codecs.framing import SniffedJson
from dragoman.codecs.gemini import foreign_signatures
from dragoman.codecs.gemini.errors import decode_error
from dragoman.codecs.gemini.foreign_signatures import GROUNDING, Bundle
from dragoman.codecs.gemini.partial_arguments import PartialArgument, PartialArguments
from dragoman.codecs.gemini.parts import GIVEN_ID, PartDecoder
from dragoman.codecs.gemini.profile import FAMILY
from dragoman.codecs.gemini.response import (
    decode_finish,
    decode_time,
    decode_usage,
    mark_explained,
    refuses_calls,
    with_explanation,
)
from dragoman.codecs.gemini.stream_encoding import EventEncoder
from dragoman.codecs.gemini.stream_wire import (
    CallPiece,
    Chunk,
    FirstChunk,
    FullCandidate,
    PlainCandidate,
    PlainContent,
    PlainPart,
)
from dragoman.codecs.gemini.wire import (
    ALIASES,
    Candidate,
    Content,
    Enum,
    FunctionCall,
    GenerateContentResponse,
    GenerateContentResponseBody,
    Part,
    call_keys,
    camel_case,
    part_keys,
    response_keys,
)
from dragoman.codecs.google_signatures import NATIVE_THOUGHT, is_dummy
from dragoman.codecs.ids import invent_id, is_invented, seed_of_bytes
from dragoman.codecs.logprobs import GOOGLE_KEYS, read_google
from dragoman.codecs.reading import MALFORMED, WireReader, keep
from dragoman.codecs.stream_codec import EventDecoder, Moves, not_an_event
from dragoman.codecs.stream_limits import Limits
from dragoman.errors import DecodeError
from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Failure,
    Finish,
    Finished,
    LogprobsDelta,
    Metadata,
    PartDelta,
    PartEnd,
    Reasoning,
    ServerToolCall,
    Signature,
    StreamFailed,
    StreamStart,
    Text,
    TokenLogprob,
    ToolCall,
    UsageUpdate,
)
from dragoman.ir.notes import MODELLED, REFUSED, WITHIN, Extra
from dragoman.ir.values import compact_text, encode_json, parse_json

__all__ = ["MOVES", "EventEncoder", "PayloadDecoder"]

SOURCE = "gemini stream"

_read_first = msgspec.json.Decoder(FirstChunk[FullCandidate]).decode
_read_plain = msgspec.json.Decoder(Chunk[PlainCandidate]).decode
_read_full = msgspec.json.Decoder(Chunk[FullCandidate]).decode
_wide: WireReader[GenerateContentResponse] = WireReader(GenerateContentResponseBody, SOURCE, aliases=ALIASES)
_decode_items = msgspec.json.Decoder(list[Raw]).decode
_decode_leaves = msgspec.json.Decoder(list[dict[str, Raw]]).decode

_SAYS_NOTHING = frozenset({b"null", b"{}", b"[]"})
_LONGEST_NOTHING = 4

# ── states ────────────────────────────────────────────────────────────────────────────────────────────────────

BEFORE, OPEN, FINISHED, ENDED = "before the first chunk", "in the answer", "finished", "ended"

MOVES: Moves = {
    (BEFORE, "chunk"): OPEN,
    (BEFORE, "error"): ENDED,
    (OPEN, "chunk"): OPEN,
    (OPEN, "finish"): FINISHED,
    (OPEN, "error"): ENDED,
    # Older models repeat the finish reason in every chunk, and an answer continues after it following a server tool.
    (FINISHED, "chunk"): FINISHED,
    (FINISHED, "finish"): FINISHED,
    (FINISHED, "error"): ENDED,
    (FINISHED, "end"): ENDED,
}

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────

NATIVE = Reasoning("", metadata=NATIVE_THOUGHT)

WAITS, STREAMS, COMPLETE = "may still get arguments", "gets them piece by piece", "complete"


class _Call:
    """One call from its first fragment until it is emitted."""

    number: int
    place: int  # in the queue
    payload: int  # which chunk of the stream began it
    id: str = ""
    name: str = ""
    arguments: str = ""  # as text
    given: bool = False  # there were arguments, even if only {}
    leaves: PartialArguments | None = None
    signature: Signature | None = None
    signed: bool = False  # its start event included the signature
    notes: Extra
    state: str = WAITS
    part_index: int = -1
    digest: int | None = None  # of the emitted arguments

    def __init__(self, number: int, place: int = 0, payload: int = 0) -> None:
        self.number = number
        self.place = place
        self.payload = payload
        self.notes = {}

    def take(self, piece: CallPiece) -> None:
        """Add a piece: identity is set once; arguments come whole, or leaf by leaf until one does not continue."""
        self.id = self.id or piece.id or ""
        self.name = self.name or piece.name or ""
        if piece.args is not UNSET:
            self._take_arguments(piece.args)
        if piece.partial_args is not UNSET:
            if self.leaves is None:
                self.leaves = PartialArguments(self.arguments)
            for leaf in piece.partial_args:
                self.leaves.add(leaf)
        if piece.will_continue:
            self.state = STREAMS
        elif self.state is STREAMS or self.arguments or self.leaves is not None:
            self.state = COMPLETE

    def _take_arguments(self, raw: Raw) -> None:
        first = bytes(memoryview(raw)[:1])
        if first == b"{":
            self.given = True
            _, text = unwrap_arguments(raw)
            shown = compact_text(raw) if text is None else text
            self.arguments = self.arguments if shown == "{}" else shown
        elif first == b'"':
            self.arguments = parse_json(raw)
        elif bytes(raw) != b"null":
            got = bytes(raw)[:40].decode("utf-8", "replace")
            raise DecodeError(path="$..functionCall.args", expected="object", got=got, source=SOURCE)

    @property
    def runs(self) -> bool:
        """Whether the name and the arguments are known, so that the call can be run."""
        return bool(self.name) and self.state is not STREAMS and (self.leaves is None or self.leaves.sound)

    def text(self) -> str:
        return self.leaves.text() if self.leaves is not None else self.arguments or "{}"

    def part(self, seed: str) -> ToolCall:
        """Return the call without its arguments."""
        notes = self.notes
        invented = not self.id or is_invented(self.id)
        metadata: Metadata | None = GIVEN_ID if self.id else None
        if notes:
            metadata = {FAMILY: {**notes, **(metadata or {}).get(FAMILY, {})}}
        return ToolCall(
            self.id or invent_id(seed, self.number),
            self.name,
            invented_id=invented,
            signature=self.signature,
            metadata=metadata,
        )


class _Answer:
    """One candidate while its parts arrive."""

    lane: Lane
    seed: str
    number: int
    length: int = 0
    """Length of the running thought so far, by which carried reasoning is recognised."""
    pieces: list[str]
    """The running text so far, unless an accumulator keeps it: citations count its bytes."""
    shown: list[tuple[int, int]]
    """Thoughts (part index, length) that ended without a signature, which the next part may still bring."""
    queue: list[_Call | AnyPart]
    """Calls, and the server's answers to some of them, that nothing else has followed yet."""
    seen: int = 0
    unserved: dict[str, deque[_Call]]
    """Calls among the first `seen` items of the queue, by name, that no server response has answered."""
    open: list[_Call]
    """Calls whose start has been emitted, but not their end."""
    streaming: _Call | None = None
    calls: dict[str, _Call]
    count: int = 0
    called: bool = False
    grounding: Raw | None = None
    extra: Extra
    finish: Enum | UnsetType = UNSET
    held_decoder: PartDecoder | None = None

    def __init__(self, lane: Lane, seed: str, number: int) -> None:
        self.lane = lane
        self.seed = seed
        self.number = number
        self.pieces = []
        self.shown = []
        self.queue = []
        self.unserved = {}
        self.open = []
        self.calls = {}
        self.extra = {}

    @property
    def decoder(self) -> PartDecoder:
        """The decoder for parts that arrive whole."""
        if self.held_decoder is None:
            self.held_decoder = PartDecoder(self.seed, f"$.candidates[{self.number}].content", marks_ids=True)
        return self.held_decoder


class PayloadDecoder(EventDecoder):
    """Decodes the payloads of one stream into events."""

    source: ClassVar[str] = SOURCE
    moves: Moves = MOVES

    joins_calls: bool = False
    """Whether a call without arguments is the same as a later call of that name that has them.

    Nothing on the wire says so; the chunks of multi-llm-chat are defined that way.
    """
    _book: EventBook
    _state: str = BEFORE
    _seed: str = ""
    _read: Callable[[bytes], Chunk[Any]]
    _answers: dict[int, _Answer]
    _first: _Answer | None = None
    _usage: Raw | UnsetType = UNSET
    _told_usage: Raw | UnsetType = UNSET
    _blocked: Finish | None = None
    _late: Extra
    _payloads: int = 0

    def __init__(self) -> None:
        self._book = EventBook()
        self._read = _read_plain
        self._answers = {}
        self._late = {}

    @staticmethod
    def framing(limits: Limits) -> SniffedJson:
        return SniffedJson(limits, SOURCE)

    def decode(self, payload: bytes) -> list[AnyEvent]:
        try:
            if self._state is BEFORE:
                return self._decode_first(_read_first(payload), payload)
            chunk = self._read(payload)
        except MALFORMED as error:
            return self._decode_odd(payload, error)
        candidates = chunk.candidates
        if not candidates:
            return self._decode_wide(payload)
        if self._state is OPEN and len(candidates) == 1 and chunk.error is UNSET:
            # The usual chunk: more of the running text or thought.
            candidate = candidates[0]
            content = candidate.content
            parts = content.parts if content else UNSET
            if parts and len(parts) == 1 and type(candidate) is PlainCandidate:
                part = parts[0]
                text = part.text
                if text and candidate.finish_reason is part.thought_signature is part.function_call is UNSET:
                    answer = self._first
                    kind = Reasoning if part.thought else Text
                    if answer is not None and answer.lane.flow_kind is kind and not candidate.index:
                        self._usage = chunk.usage_metadata or self._usage
                        if kind is Reasoning:
                            answer.length += len(text)
                        elif self.texts is None:
                            answer.pieces.append(text)
                        return [PartDelta(answer.lane.flow_index, text)]
        return self._take(candidates, chunk.usage_metadata, chunk.error, payload)

    def _decode_first(self, chunk: FirstChunk[Any], payload: bytes) -> list[AnyEvent]:
        notes: Extra = {}
        created = None if chunk.create_time is UNSET else decode_time(chunk.create_time, notes)
        if chunk.turn_token is not UNSET and bytes(chunk.turn_token) != b"null":
            notes["turnToken"] = chunk.turn_token
        self._open(chunk.response_id, chunk.model_version, created, notes, payload)
        return self._take(chunk.candidates, chunk.usage_metadata, UNSET, payload)

    def _decode_odd(self, payload: bytes, error: Exception) -> list[AnyEvent]:
        """Decode an unusual chunk (extra keys, snake_case, a list) or raise for a payload that is not a chunk."""
        if self._state is ENDED or payload.strip() == b"[DONE]":
            return self.close()
        if isinstance(error, msgspec.ValidationError):
            if payload.lstrip()[:1] == b"[":
                return [event for item in _items(payload) for event in self.decode(item)]
            if self._state is not BEFORE and self._read is _read_plain:
                try:
                    _read_full(payload)
                except MALFORMED:
                    return self._decode_wide(payload)
                self._read = _read_full
                return self.decode(payload)
        return self._decode_wide(payload)

    def _decode_wide(self, payload: bytes) -> list[AnyEvent]:
        if self._state is ENDED:
            return []
        wire = _wide.read(payload)
        error = UNSET if wire.extra is UNSET else wire.extra.get("error", UNSET)
        candidates = wire.candidates or ()
        if not candidates and wire.prompt_feedback is not UNSET:
            self._block(wire.prompt_feedback)
        if self._state is BEFORE and (error is UNSET or not _says_something(error)):
            self._start(wire, payload)
        elif error is UNSET:
            self._note_late(wire)
        return self._take(candidates, wire.usage_metadata, error, payload)

    def _take(
        self,
        candidates: Sequence[PlainCandidate | Candidate],
        usage: Raw | UnsetType,
        error: Raw | UnsetType,
        payload: bytes,
    ) -> list[AnyEvent]:
        if self._state is ENDED:
            return []  # after [DONE] or an error
        self._payloads += 1
        if error is not UNSET and _says_something(error):
            return self._fail(payload)
        if self._state is BEFORE:
            self._move("chunk")
        if usage is not UNSET and _says_something(usage):
            if self._told_usage is UNSET:
                # The prompt's token count is known now; counts that change with every chunk are emitted at the end.
                self._book.events.append(UsageUpdate(decode_usage(usage)))
                self._told_usage = usage
            self._usage = usage
        if self._blocked is not None:
            self._move("finish")
        for position, candidate in enumerate(candidates):
            self._candidate(candidate, position)
        return self._book.take()

    def settle(self) -> list[AnyEvent] | None:
        """Return the events of complete calls that nothing has followed yet; None if there is a finish reason.

        Only for readers that show calls as they arrive: the server may still answer a call itself, and the answer may
        still be blocked.
        """
        if self._state is not OPEN:
            return None
        for answer in self._answers.values():
            if any(isinstance(item, _Call) and item.state is COMPLETE for item in answer.queue):
                self._flush(answer)
        return self._book.take()

    def close(self) -> list[AnyEvent]:
        """Handle the end of bytes. This wire has no other end signal, so the finish reason decides."""
        if self._state is ENDED:
            return []
        if self._state is not FINISHED:
            return self._end_truncated()
        for answer in self._answers.values():
            if answer.finish is UNSET and self._blocked is None:
                return self._end_truncated()
        self._tell_usage()
        self._move("end")
        numbers = sorted(self._answers) if len(self._answers) > 1 else list(self._answers)
        finishes = [self._finish(self._answers[number]) for number in numbers]
        if self._blocked is not None:
            finishes[:1] = [self._blocked]
        late = {FAMILY: self._late} if self._late else None
        self._book.events.append(Finished(finishes[0], tuple(finishes[1:]), late))
        return self._book.take()

    # ── the answer as a whole ──

    def _start(self, wire: GenerateContentResponse, payload: bytes) -> None:
        notes = _meaningful_keys(response_keys(wire))
        if wire.extra is not UNSET and any(key.startswith(_SPELLING) for key in wire.extra):
            self._read = _reject_payload
        if wire.prompt_feedback is not UNSET and self._blocked is None:
            notes["promptFeedback"] = wire.prompt_feedback
        created = None if wire.create_time is UNSET else decode_time(wire.create_time, notes)
        self._open(wire.response_id, wire.model_version, created, notes, payload)

    def _open(
        self, id: str | UnsetType, model: str | UnsetType, created: int | None, notes: Extra, payload: bytes
    ) -> None:
        # Without an answer id, the bytes of its first chunk identify it, however the chunks were split.
        self._seed = id or seed_of_bytes(payload)
        start = StreamStart(id or None, model or None, created, {FAMILY: notes} if notes else None)
        self._book.events.append(start)

    def _answer(self, number: int) -> _Answer:
        first = self._first
        if first is not None and number == 0:
            return first
        answer = self._answers.get(number)
        if answer is None:
            answer = self._answers[number] = _Answer(
                Lane(self._book, number), f"{self._seed} {number}" if number else self._seed, number
            )
            if number == 0:
                self._first = answer
        return answer

    def _note_late(self, wire: GenerateContentResponse) -> None:
        """Note keys of a later chunk that no field of the answer holds."""
        self._late |= _meaningful_keys(response_keys(wire))
        if wire.candidates and wire.prompt_feedback is not UNSET:
            self._late["promptFeedback"] = wire.prompt_feedback

    def _block(self, feedback: Raw) -> None:
        """Read the feedback of a blocked prompt, which has a reason but no candidates."""
        parsed = parse_json(feedback)
        reason = parsed.get("blockReason", parsed.get("block_reason")) if isinstance(parsed, dict) else None
        if reason and reason != "BLOCK_REASON_UNSPECIFIED":
            self._blocked = Finish("content_filter", str(reason))
            self._late[MODELLED + "promptFeedback"] = feedback

    def _tell_usage(self) -> None:
        usage, self._usage = self._usage, UNSET
        if usage is not UNSET and usage != self._told_usage and _says_something(usage):
            self._book.events.append(UsageUpdate(decode_usage(usage)))

    def _finish(self, answer: _Answer) -> Finish:
        finish = decode_finish(answer.finish, None)
        self._leave(answer)
        clean = self._blocked is None and finish is not None and finish.reason == "stop"
        self._end_calls(answer, clean=clean, refused=refuses_calls(finish))
        if finish is None:
            return Finish("unknown")
        if answer.called and finish.reason == "stop":
            finish = structs.replace(finish, reason="tool_calls")
        if not answer.extra:
            return finish
        if finish.reason == "error" and "finishMessage" in answer.extra:
            finish = with_explanation(finish, answer.extra["finishMessage"])
            if finish.explanation is not None:
                mark_explained(answer.extra)
        elif finish.raw == "SAFETY" and "finishMessage" in answer.extra:
            finish = structs.replace(finish, metadata={FAMILY: {REFUSED: answer.extra["finishMessage"]}})
        kept: Any = keep(FAMILY, UNSET, candidate=answer.extra)
        return structs.replace(finish, metadata={FAMILY: {**(finish.metadata or {}).get(FAMILY, {}), **kept[FAMILY]}})

    def _fail(self, payload: bytes) -> list[AnyEvent]:
        failure = decode_error(payload)
        self._move("error")
        return self._break_off(failure)

    def _end_truncated(self) -> list[AnyEvent]:
        self._state = ENDED
        return self._break_off(Failure("truncated", "the stream ended without a finish reason"))

    def _break_off(self, failure: Failure) -> list[AnyEvent]:
        for answer in self._answers.values():
            for index, _ in answer.shown:
                self._book.events.append(PartEnd(index, incomplete=True))
            answer.lane.end_flow(incomplete=True)
            self._end_calls(answer, clean=False, failed=True)
        for answer in self._answers.values():
            answer.lane.end_all(incomplete=True)
        with suppress(DecodeError):
            self._tell_usage()
        self._book.events.append(StreamFailed(failure))
        return self._book.take()

    # ── candidates and parts ──

    def _candidate(self, wire: PlainCandidate | Candidate, position: int) -> None:
        answer = self._answer(position if wire.index is UNSET else wire.index)
        beside = {} if _has_content_alone(wire) else _beside_content(wire)
        if beside:
            _note(answer, beside)
        content = wire.content
        if type(content) is not PlainContent and isinstance(content, Content):
            self._late |= _meaningful_keys(content.extra)
        if content is not UNSET and content.parts is not UNSET:
            for part in content.parts:
                if type(part) is PlainPart:
                    self._plain_part(answer, part)
                else:
                    self._wide_part(answer, part)  # type: ignore[arg-type]
        if beside and (tokens := _take_logprobs(answer)):
            self._book.events.append(LogprobsDelta(tokens, answer.number))
        if wire.finish_reason:  # 0 is the enum's default: no reason
            answer.finish = wire.finish_reason
            self._move("finish")

    def _plain_part(self, answer: _Answer, part: PlainPart) -> None:
        piece = part.function_call
        if piece is UNSET and part.text is not UNSET:
            flow = self._thought if part.thought else self._text
            flow(answer, part.text, part.thought_signature)
        elif piece is not UNSET and part.text is part.thought is UNSET:
            self._call(answer, piece, part.thought_signature, {})
        elif part.text is not piece or part.thought_signature is not UNSET:
            call: Any = UNSET if piece is UNSET else FunctionCall(piece.name, piece.args, piece.id)
            self._whole(answer, Part(part.text, part.thought, part.thought_signature, call))

    def _wide_part(self, answer: _Answer, wire: Part) -> None:
        notes = _meaningful_keys(part_keys(wire))
        given = [name for name in _MEMBERS if getattr(wire, name) is not UNSET]
        if given == ["text"] and not notes:
            flow = self._thought if wire.thought else self._text
            flow(answer, wire.text, wire.thought_signature)  # type: ignore[arg-type]
        elif given == ["function_call"] and not wire.thought:
            piece, inner = _piece(wire.function_call)  # type: ignore[arg-type]
            if inner:
                notes |= keep(FAMILY, UNSET, functionCall=inner)[FAMILY]  # type: ignore[index]
            self._call(answer, piece, wire.thought_signature, notes)
        elif given or notes or wire.thought_signature is not UNSET:
            self._whole(answer, wire)

    def _whole(self, answer: _Answer, wire: Part) -> None:
        """Add a part that arrives complete: media, or calls and results of the server's own tools."""
        signature, bundle = _signature(wire.thought_signature)
        if bundle is not None:
            self._restore(answer, bundle.reasoning)
            wire = structs.replace(wire, thought_signature=UNSET)
        decoder = answer.decoder
        if wire.function_response is not UNSET and answer.queue:
            self._add_server_response(answer, wire)
            return
        decoder.parts = []
        decoder.add(wire)
        part = decoder.parts[-1]
        self._leave(answer)
        self._flush(answer)
        answer.lane.whole(part if bundle is None else structs.replace(part, signature=signature))

    def _add_server_response(self, answer: _Answer, wire: Part) -> None:
        """Add a response of an MCP server: it answered the call just before, which is thus not the client's."""
        queue = answer.queue
        call = self._find_served_call(answer, wire.function_response)
        decoder = PartDecoder(answer.seed, f"$.candidates[{answer.number}].content", marks_ids=True)
        if call is not None:
            decoder.parts.append(_with_arguments(call, answer.seed))
        decoder.add(wire)
        if call is not None and isinstance(decoder.parts[0], ServerToolCall):
            queue[call.place] = decoder.parts[0]
        queue.append(decoder.parts[-1])

    def _find_served_call(self, answer: _Answer, response: Any) -> _Call | None:
        """Return the queued call that a server response answers."""
        queue = answer.queue
        if response.id is not UNSET:
            call = answer.calls.get(response.id)
            return call if call is not None and call.place < len(queue) and queue[call.place] is call else None
        for item in queue[answer.seen :]:
            if isinstance(item, _Call):
                answer.unserved.setdefault(item.name, deque()).append(item)
        answer.seen = len(queue)
        waiting = answer.unserved.get("" if response.name is UNSET else response.name, ())
        while waiting:
            call = waiting.popleft()
            if queue[call.place] is call:
                return call
        return None

    # ── text and thoughts ──

    def _text(self, answer: _Answer, text: str, spelled: str | UnsetType) -> None:
        signature, bundle = (None, None) if spelled is UNSET else _signature(spelled)
        if bundle is not None and bundle.reasoning:
            self._restore(answer, bundle.reasoning)
        lane = answer.lane
        if text:
            if lane.flow_kind is not Text:
                if lane.flow_kind is not None or answer.shown:
                    self._leave(answer)
                if answer.queue:
                    self._flush(answer)
            lane.flow(TEXT, text)
            if self.texts is None:
                answer.pieces.append(text)
        if signature is None:
            return
        if text or (bundle is not None and lane.flow_kind is Text):
            self._leave(answer, signature)
        else:
            self._leave(answer)
            self._flush(answer)
            lane.whole(Text("", signature=signature))

    def _thought(self, answer: _Answer, text: str, spelled: str | UnsetType) -> None:
        signature, bundle = _signature(spelled)
        lane = answer.lane
        if bundle is not None and not bundle.last:
            self._restore(answer, bundle.reasoning)
        if text:
            if lane.flow_kind is Text:
                self._leave(answer)
            if lane.flow_kind is None:
                self._flush(answer)
            lane.flow(NATIVE, text)
            answer.length += len(text)
        if bundle is not None and bundle.last:
            # Its text has been emitted and has ended; only the data that its vendor needs back is left to emit.
            overtaken = [structs.replace(part, text="") for part in bundle.overtaken if part.signature is not None]
            self._restore(answer, [*bundle.reasoning, *overtaken])
        elif signature is not None:
            if text or (bundle is not None and lane.flow_kind is Reasoning):
                self._leave(answer, signature)
            else:
                self._leave(answer)
                self._flush(answer)
                lane.whole(Reasoning("", signature, metadata=NATIVE_THOUGHT))
        elif not text and bundle is None and lane.flow_kind is Reasoning:
            # An empty thought separates two thoughts. The next part may bring the signatures of both.
            answer.shown.append((lane.flow_index, answer.length))
            answer.length = 0
            lane.flow_kind = None

    def _restore(self, answer: _Answer, carried: Sequence[Reasoning]) -> None:
        """Emit carried reasoning of another family: the last thoughts were its text, these are its signatures."""
        lane = answer.lane
        shown = answer.shown
        unseen = []
        for reasoning in carried:
            length = len(reasoning.text)
            if length and shown and shown[0][1] == length:
                index, _ = shown.pop(0)
            elif length and not shown and lane.flow_kind is Reasoning and answer.length == length:
                index, lane.flow_kind, answer.length = lane.flow_index, None, 0
            else:
                unseen.append(reasoning)
                continue
            self._book.events.append(PartEnd(index, reasoning.signature, metadata=reasoning.metadata))
        if unseen:
            self._leave(answer)
            self._flush(answer)
            for reasoning in unseen:
                lane.whole(reasoning)

    def _leave(self, answer: _Answer, signature: Signature | None = None) -> None:
        """End the running part because another begins."""
        lane = answer.lane
        if answer.shown:
            self._book.events += [PartEnd(index) for index, _ in answer.shown]
            answer.shown = []
        if answer.grounding is not None and lane.flow_kind is Text:
            self._cite(answer, answer.grounding)
        lane.end_flow(signature)
        answer.length = 0
        answer.pieces = []

    def _cite(self, answer: _Answer, grounding: Raw) -> None:
        """Emit citations: the service sends grounding with the last chunk, for the text before it."""
        cited, beside = foreign_signatures.read_grounding(grounding, [Text(self._running_text(answer))])
        answer.grounding = None
        if beside is not None:
            answer.extra[MODELLED + GROUNDING] = answer.extra.pop(GROUNDING)
        if beside:
            answer.extra[WITHIN + GROUNDING] = Raw(encode_json(beside))
        for citation in cited[0].citations:  # type: ignore[union-attr]
            answer.lane.cite(citation)

    def _running_text(self, answer: _Answer) -> str:
        if self.texts is None:
            return "".join(answer.pieces)
        return self._book.text_so_far(answer.lane.flow_index, self.texts)

    # ── calls ──

    def _call(self, answer: _Answer, piece: CallPiece, spelled: str | UnsetType, notes: Extra) -> None:
        signature, bundle = _signature(spelled)
        if bundle is not None and bundle.reasoning:
            self._restore(answer, bundle.reasoning)
        call = self._find_begun_call(answer, piece)
        if call is None:
            if not piece.name and piece.args is piece.partial_args is UNSET:
                return  # an end that was already emitted, or a keep-alive piece
            self._leave(answer)
            call = self._new_call(answer, piece)
        elif call.state is COMPLETE:
            if _is_repeated(call, piece):
                return
            self._leave(answer)
            call = self._new_call(answer, structs.replace(piece, id=UNSET))
        else:
            call.take(piece)
        call.signature = call.signature or signature
        call.notes |= notes
        if call.id:
            answer.calls.setdefault(call.id, call)
        if call.state is STREAMS:
            answer.streaming = call
        elif answer.streaming is call:
            answer.streaming = None
        if call.state is COMPLETE and call in answer.open:
            answer.open.remove(call)
            self._end_call(answer, call, incomplete=not call.runs)

    def _find_begun_call(self, answer: _Answer, piece: CallPiece) -> _Call | None:
        """Return the call that this piece continues, if there is one."""
        if piece.id and piece.id in answer.calls:
            return answer.calls[piece.id]
        streaming = answer.streaming
        if not piece.name:
            if streaming is not None or piece.args is piece.partial_args is UNSET:
                return streaming
            begun = [*answer.open, *answer.queue]
            return next((call for call in begun if isinstance(call, _Call) and call.state is WAITS), None)
        if self.joins_calls and not piece.id and _has_arguments(piece):
            begun = [*answer.open, *answer.queue]
            for call in begun:
                if isinstance(call, _Call) and call.state is WAITS and call.name == piece.name and not call.id:
                    return call if call.payload < self._payloads else None
        # A name repeated with every leaf does not start another call.
        goes_on = streaming is not None and piece.name == streaming.name and piece.partial_args is not UNSET
        return streaming if goes_on and not piece.id else None

    def _new_call(self, answer: _Answer, piece: CallPiece) -> _Call:
        call = _Call(answer.count, len(answer.queue), self._payloads)
        answer.count += 1
        call.take(piece)
        answer.queue.append(call)
        return call

    def _flush(self, answer: _Answer, *, refused: bool = False) -> None:
        """Emit the calls in the queue, which only calls have followed so far."""
        queue, answer.queue = answer.queue, []
        answer.seen, answer.unserved = 0, {}
        for item in queue:
            if not isinstance(item, _Call):
                answer.lane.whole(item)
                continue
            answer.called = True
            item.part_index = answer.lane.start_call(item.part(answer.seed))
            item.signed = item.signature is not None
            if item.state is COMPLETE:
                self._end_call(answer, item, incomplete=refused or not item.runs)
            else:
                answer.open.append(item)

    def _end_calls(self, answer: _Answer, *, clean: bool, failed: bool = False, refused: bool = False) -> None:
        """End the answer's calls. After a clean end, calls that still wait for arguments have none.

        Calls that the service names unexpected are `refused`: they are emitted, but must not be run.
        """
        self._flush(answer, refused=refused)
        waiting, answer.open = answer.open, []
        for call in waiting:
            known = clean or (call.given and not failed and not refused)
            self._end_call(answer, call, incomplete=not (call.runs and known))

    def _end_call(self, answer: _Answer, call: _Call, *, incomplete: bool) -> None:
        text = call.text()
        if text != "{}" or not incomplete:
            answer.lane.delta(call.part_index, text)
        answer.lane.end_call(call.part_index, None if call.signed else call.signature, incomplete=incomplete)
        # Only the hash, which identifies a repetition, is still needed.
        call.arguments, call.leaves, call.digest = "", None, hash(text)


def _says_something(held: Raw) -> bool:
    return len(held) > _LONGEST_NOTHING or bytes(held) not in _SAYS_NOTHING


_MEMBERS = ("text", "function_call", "function_response", "inline_data", "file_data")
_SPELLING = ("~as:", "~single:")


def _meaningful_keys(extra: Extra | UnsetType | None) -> Extra:
    """Return the extras without notes on spelling and without nulls, which mean nothing in this format."""
    if not extra:
        return {}
    return {key: value for key, value in extra.items() if not key.startswith(_SPELLING) and bytes(value) != b"null"}


def _reject_payload(_payload: bytes) -> Chunk[Any]:
    """Reject every payload: for streams in snake_case, whose keys only the wider reader reads."""
    raise msgspec.ValidationError("snake_case")


def _has_content_alone(wire: Any) -> bool:
    """Whether a candidate says nothing beside its content, as in most chunks."""
    if type(wire) is PlainCandidate:
        return True
    return type(wire) is FullCandidate and (
        wire.safety_ratings
        is wire.grounding_metadata
        is wire.citation_metadata
        is wire.url_context_metadata
        is wire.finish_message
        is wire.avg_logprobs
        is wire.logprobs_result
        is wire.token_count
        is wire.continuation_token
        is UNSET
    )


def _beside_content(wire: PlainCandidate | Candidate) -> Extra:
    """Return what a candidate says beside its content."""
    values = structs.astuple(wire)
    keys = _meaningful_keys(wire.extra) if isinstance(wire, Candidate) else {}
    for key, value in zip(wire.__struct_encode_fields__, values, strict=True):
        if type(value) is Raw and _says_something(value):
            keys[key] = value
    return keys


def _note(answer: _Answer, keys: Extra) -> None:
    """Record what a candidate says beside its content. The last value of each key counts."""
    if GROUNDING in keys:
        answer.grounding = keys[GROUNDING]
        answer.extra.pop(MODELLED + GROUNDING, None)
        answer.extra.pop(WITHIN + GROUNDING, None)
    answer.extra |= keys


def _take_logprobs(answer: _Answer) -> tuple[TokenLogprob, ...]:
    """Remove and return the log probabilities of this chunk: each chunk's are about its own text."""
    for key in answer.extra.keys() & GOOGLE_KEYS:
        tokens = read_google(answer.extra[key])
        if tokens:
            del answer.extra[key]
            return tokens
    return ()


def _signature(spelled: str | UnsetType) -> tuple[Signature | None, Bundle | None]:
    """Return the signature of a part, and the bundle in it if it is one of ours."""
    if spelled is UNSET or is_dummy(spelled):
        return None, None
    if foreign_signatures.is_tagged(spelled):
        bundle = foreign_signatures.unpack(spelled)
        return (Signature("dragoman", spelled), None) if bundle is None else (bundle.signature, bundle)
    return Signature(FAMILY, spelled), None


def _piece(call: FunctionCall) -> tuple[CallPiece, Extra]:
    """Convert a call from the wider reader to a piece; return it and the remaining extras."""
    keys = _meaningful_keys(call_keys(call))
    leaves = keys.pop("partialArgs", keys.pop("partial_args", None))
    continues = keys.pop("willContinue", keys.pop("will_continue", None))
    piece = CallPiece(
        call.name, call.args, call.id, will_continue=continues is not None and bytes(continues) == b"true"
    )
    if leaves is not None:
        try:
            spelled = [{camel_case(key): value for key, value in leaf.items()} for leaf in _decode_leaves(leaves)]
            piece.partial_args = msgspec.json.decode(encode_json(spelled), type=list[PartialArgument])
        except msgspec.DecodeError as error:
            raise DecodeError(path="$..partialArgs", expected="leaves", got=str(error), source=SOURCE) from error
    return piece, keys


def _has_arguments(piece: CallPiece) -> bool:
    return piece.args is not UNSET and compact_text(piece.args) not in {"{}", "null"}


def _with_arguments(call: _Call, seed: str) -> ToolCall:
    arguments = read_arguments(call.text())
    return structs.replace(call.part(seed), arguments=EMPTY_OBJECT if arguments is UNSET else arguments)


def _is_repeated(call: _Call, piece: CallPiece) -> bool:
    """Whether a complete call was repeated under the same id."""
    again = _Call(0)
    again.take(piece)
    digest = hash(call.text()) if call.digest is None else call.digest
    return not piece.name or (again.name == call.name and hash(again.text()) == digest)


def _items(payload: bytes) -> list[bytes]:
    """Return the chunks of a list that came as one event: some front ends wrap an error this way."""
    try:
        items = [bytes(item) for item in _decode_items(payload)]
    except MALFORMED as error:
        raise not_an_event(error, SOURCE, "a list of chunks") from error
    if any(item[:1] != b"{" for item in items):
        raise DecodeError(path="$[*]", expected="a chunk", got="something else", source=SOURCE)
    return items
