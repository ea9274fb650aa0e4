"""Chat Completions streams, both ways; encoding is in stream_encoding.py.

`data:` payloads are chunks; every chunk's delta is split by kind and goes to the running text, to reasoning, to the
refusal or to a call. Nothing on this wire says that a call is complete except the end of the answer, so all parts end
there. The answer ends with a finish reason *and* the end of the stream: `[DONE]`, or the end of bytes. Without a finish
reason it is complete if token counts came, every call can be read, and `[DONE]` ends it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, Raw

from dragoman.codecs import listed_pages, thinking_blocks
from dragoman.codecs.accumulate import REASONING, REFUSAL, TEXT, EventBook, Lane, first_lane
from dragoman.codecs.error_bodies import base_resp_code
from dragoman.codecs.framing import ServerSentEvents
from dragoman.codecs.ids import invent_id, is_invented
from dragoman.codecs.logprobs import convert_tokens
from dragoman.codecs.openai_chat import audio, foreign_signatures, images
from dragoman.codecs.openai_chat.errors import decode_error
from dragoman.codecs.openai_chat.messages import FAMILY, NULL
from dragoman.codecs.openai_chat.parts import decode_part
from dragoman.codecs.openai_chat.response import add_explanation, decode_finish, decode_usage, usage_of
from dragoman.codecs.openai_chat.stream_encoding import EventEncoder
from dragoman.codecs.openai_chat.stream_wire import (
    CallFragment,
    Chunk,
    FunctionFragment,
    OpenChunk,
    OpenDelta,
    Opening,
    PlainDelta,
    SoundFragment,
    VendorDelta,
)
from dragoman.codecs.openai_chat.wire import CACHE_COUNTS, ContentPart, UsageWire
from dragoman.codecs.reading import MALFORMED, WireReader
from dragoman.codecs.shared_settings import OPENAI_TIERS_READ, take_tier
from dragoman.codecs.stream_codec import EventDecoder, Moves, not_an_event
from dragoman.codecs.stream_limits import Limits
from dragoman.codecs.timestamps import whole_seconds
from dragoman.codecs.unknown_keys import has_unknown_key, take_unknown_keys
from dragoman.errors import DecodeError
from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Audio,
    Failure,
    Finish,
    Finished,
    LogprobsDelta,
    MediaDelta,
    Message,
    Opaque,
    PartDelta,
    Reasoning,
    Signature,
    StreamFailed,
    StreamStart,
    Text,
    ToolCall,
    UsageUpdate,
)
from dragoman.ir.notes import MODELLED, Extra
from dragoman.ir.values import encode_json, exact_object, parse_json

__all__ = ["MOVES", "EventEncoder", "PayloadDecoder"]

SOURCE = "openai-chat stream"
_BRACKET = ord("[")

_openings = msgspec.json.Decoder(Opening)
_entries: Callable[[bytes], Extra] = msgspec.json.Decoder(dict[str, Raw]).decode
_choices: Callable[[Raw], list[Extra] | None] = msgspec.json.Decoder(list[dict[str, Raw]] | None).decode
_PADDING = frozenset({"obfuscation", "p"})
_OF_CHUNKS = frozenset({"id", "object", "created", "model", "choices", "usage", "error"}) | _PADDING
# `message` and `text` repeat the answer so far; without any delta, the first `message` is the answer.
_OF_CHOICES = frozenset({"index", "delta", "logprobs", "finish_reason", "usage", "message", "text"})
_OF_DELTAS = frozenset(VendorDelta.__struct_fields__)
_OF_USAGE = frozenset(UsageWire.__struct_fields__) - CACHE_COUNTS
_read_plain: Callable[[bytes], Chunk[Any]] = msgspec.json.Decoder(Chunk[PlainDelta]).decode
_read_vendor: Callable[[bytes], Chunk[Any]] = msgspec.json.Decoder(Chunk[VendorDelta]).decode
_read_open: Callable[[bytes], Chunk[Any]] = msgspec.json.Decoder(OpenChunk).decode
_read_loose: Callable[[bytes], Chunk[Any]] = msgspec.json.Decoder(OpenChunk, strict=False).decode
"""The same for odd chunks: counts may be 12.0 or "12"."""
_read_message: Callable[[Raw], OpenDelta | None] = msgspec.json.Decoder(OpenDelta | None).decode
_WIDER = {_read_plain: _read_vendor, _read_vendor: _read_open}

# ── states ────────────────────────────────────────────────────────────────────────────────────────────────────

BEFORE, OPEN, FINISHED, ENDED = "before the first chunk", "in the answer", "finished", "ended"

MOVES: Moves = {
    (BEFORE, "chunk"): OPEN,
    (BEFORE, "error"): ENDED,
    (OPEN, "chunk"): OPEN,
    (OPEN, "finish"): FINISHED,
    (OPEN, "error"): ENDED,
    # Several servers repeat the finish reason, or send usage, moderation or empty deltas after it.
    (FINISHED, "chunk"): FINISHED,
    (FINISHED, "finish"): FINISHED,
    (FINISHED, "error"): ENDED,
    (FINISHED, "end"): ENDED,
}


# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class _Call:
    """One call while its fragments arrive. Its part starts when id and name are both known."""

    id: str = ""
    name: str = ""
    custom: bool = False
    part_index: int = -1
    pieces: list[str]
    signature: Signature | None = None
    checks: int = 0
    """How often it was checked whether the arguments are whole, before the end."""

    def __init__(self) -> None:
        self.pieces = []


class PayloadDecoder(EventDecoder):
    """Decodes the payloads of one stream into events."""

    source: ClassVar[str] = SOURCE
    moves: Moves = MOVES

    _read: Callable[[bytes], Chunk[Any]]
    _state: str = BEFORE
    _seed: str = ""
    _calls: dict[int, list[_Call]]
    _by_index: dict[tuple[int, int], _Call]
    _finishes: dict[int, str]
    _refused: set[int]
    _sounds: dict[int, tuple[int, dict[str, Raw]]]
    """For each candidate: the index of its audio part, and its fields other than data and transcript."""
    _thought: list[str]
    _counted: bool = False
    _cited: bool = False
    _pieces: dict[int, list[str]]
    """The texts of parts, if no accumulator keeps them."""
    _notes: Extra
    """Keys of the chunks that the intermediate format does not model."""
    _lane: Lane
    _further_lanes: dict[int, Lane]
    """Those of all candidates but the first."""

    def __init__(self) -> None:
        self._read = _read_plain
        self._calls = {}
        self._by_index = {}
        self._finishes = {}
        self._refused = set()
        self._sounds = {}
        self._thought = []
        self._notes = {}
        self._pieces = {}
        self._lane = first_lane()
        self._further_lanes = {}

    @property
    def _book(self) -> EventBook:
        return self._lane.book

    def _lane_of(self, candidate: int) -> Lane:
        if candidate == 0:
            return self._lane
        lane = self._further_lanes.get(candidate)
        if lane is None:
            lane = self._further_lanes[candidate] = Lane(self._book, candidate)
        return lane

    def _end_all(self, *, incomplete: bool = False) -> None:
        """End the open parts of all candidates."""
        self._lane.end_all(incomplete=incomplete)
        for lane in self._further_lanes.values():
            lane.end_all(incomplete=incomplete)

    @staticmethod
    def framing(limits: Limits) -> ServerSentEvents:
        return ServerSentEvents(limits, SOURCE)

    def decode(self, payload: bytes) -> list[AnyEvent]:
        if payload[0] == _BRACKET and payload.startswith(b"[DONE]"):
            if self._state is OPEN and self._is_whole():
                # Some servers never send a finish reason; token counts and `[DONE]` show that the answer has ended.
                self._finishes[0] = ""
                self._move("finish")
            return self.close()
        try:
            read = self._read
            chunk = read(payload)
        except MALFORMED as error:
            chunk = self._read_wider(payload, error)
        delta = self._delta_in(chunk)
        return self._decode_whole(chunk, payload) if delta is None else [delta]

    def _delta_in(self, chunk: Chunk[Any]) -> PartDelta | None:
        """Decode the usual chunk: more of the running text or of one call's arguments; return None for any other."""
        choices = chunk.choices
        if self._state is not OPEN or not choices or len(choices) != 1:
            return None
        choice = choices[0]
        delta = choice.delta
        if (
            type(delta) is not PlainDelta
            or choice.finish_reason is not None
            or choice.index
            or choice.logprobs is not None
            or chunk.usage is not None
            or chunk.error is not UNSET
            or chunk.base_resp is not UNSET
            or chunk.citations is not UNSET
            or chunk.search_results is not UNSET
        ):
            return None
        calls = delta.tool_calls
        content = delta.content
        if calls is None:
            if content and self._lane.flow_kind is Text and delta.refusal is None:
                if self.texts is None:
                    self._pieces.setdefault(self._lane.flow_index, []).append(content)
                return PartDelta(self._lane.flow_index, content)
            return None
        return self._arguments_in(calls[0]) if len(calls) == 1 and not content and not delta.refusal else None

    def _arguments_in(self, fragment: CallFragment) -> PartDelta | None:
        function = fragment.function
        call = self._by_index.get((0, fragment.index))  # type: ignore[arg-type]
        if (
            call is None
            or call.part_index < 0
            or fragment.id is not None
            or function is None
            or function.name is not None
            or type(function.arguments) is not str
            or not function.arguments
            or fragment.extra_content is not UNSET
        ):
            return None
        call.pieces.append(function.arguments)
        return PartDelta(call.part_index, function.arguments)

    def _decode_whole(self, chunk: Chunk[Any], payload: bytes) -> list[AnyEvent]:
        if _is_error(chunk, payload):
            return self._fail(payload)
        opens = self._state is BEFORE
        if self._state is not OPEN and not self._enter(chunk, payload):
            return []
        if self._state is FINISHED or not chunk.choices:
            self._note_keys(payload)
        self._note_sources(chunk)
        for choice in chunk.choices or ():
            candidate = choice.index or 0
            if opens and choice.delta is None and choice.message is not UNSET:
                choice.delta = self._whole_message(choice.message)
            if choice.delta is not None:
                if type(choice.delta) is OpenDelta:
                    self._note_delta(payload)
                self._delta(self._lane_of(candidate), candidate, choice.delta)
            if choice.logprobs:
                self._likely(choice.logprobs, candidate)
            if choice.finish_reason:
                self._finishes[candidate] = choice.finish_reason
                self._move("finish")
                self._note_keys(payload, candidate)
        if chunk.usage is not None:
            self._counted = True
            held = _entries(payload)["usage"]
            # The object is kept only if it says more than the counts.
            usage = usage_of(chunk.usage) if _entries(held).keys() <= _OF_USAGE else decode_usage(held)
            self._book.events.append(UsageUpdate(take_tier(usage, self._notes, "service_tier", OPENAI_TIERS_READ)))
        elif not self._counted:
            self._count_elsewhere(chunk)
        return self._book.take()

    def _count_elsewhere(self, chunk: Chunk[Any]) -> None:
        """Read usage where only Kimi and Groq put it; no other count may have come before."""
        held = next((choice.usage for choice in chunk.choices or () if choice.usage is not UNSET), UNSET)
        if held is UNSET and chunk.x_groq is not UNSET and bytes(chunk.x_groq)[:1] == b"{":
            held = _entries(chunk.x_groq).get("usage", UNSET)
        if held is UNSET or held == NULL:
            return
        try:
            usage = decode_usage(held)
        except DecodeError:
            return
        self._counted = True
        self._book.events.append(UsageUpdate(take_tier(usage, self._notes, "service_tier", OPENAI_TIERS_READ)))

    def _enter(self, chunk: Chunk[Any], payload: bytes) -> bool:
        """Begin the answer with its first chunk; return whether the chunk belongs to the answer."""
        if self._state is ENDED:
            return False  # chunks after [DONE] are ignored
        if self._state is BEFORE and not chunk.choices and not _openings.decode(payload).id:
            self._note_keys(payload)  # Azure sends its content filter results for the prompt before the answer
            return False
        self._move("chunk")
        if self._state is OPEN:
            self._start(payload)
        return True

    def _likely(self, logprobs: Any, candidate: int) -> None:
        tokens = convert_tokens(logprobs.get("content")) if isinstance(logprobs, dict) else ()
        if tokens:
            self._book.events.append(LogprobsDelta(tokens, candidate))
        if isinstance(logprobs, dict) and (logprobs.get("refusal") or logprobs.get("reasoning_content")):
            others = {key: logprobs[key] for key in ("refusal", "reasoning_content") if logprobs.get(key)}
            self._notes["logprobs"] = Raw(encode_json(others))  # of the last fragment

    def _note_keys(self, payload: bytes, candidate: int = 0) -> None:
        """Note keys of a chunk, and of its choice, that say more of the answer. Later values replace earlier ones."""
        notes = self._notes
        entries = _entries(payload)
        if "service_tier" in entries:
            notes.pop(MODELLED + "service_tier", None)
        notes |= {key: value for key, value in entries.items() if key not in _OF_CHUNKS}
        choices = _choices(entries["choices"]) if "choices" in entries and not candidate else None
        for choice in choices or ():
            notes |= {key: value for key, value in choice.items() if key not in _OF_CHOICES}

    def _note_delta(self, payload: bytes) -> None:
        """Note keys of a delta that no other format has, such as the tools that Groq ran itself."""
        for choice in _choices(_entries(payload)["choices"]) or ():
            delta = choice.get("delta")
            if delta is not None and delta != NULL:
                self._notes |= {key: held for key, held in _entries(delta).items() if key not in _OF_DELTAS}

    def _whole_message(self, raw: Raw) -> OpenDelta | None:
        """Decode the message of an answer that a server sends whole, in the first chunk and without a delta."""
        try:
            delta = _read_message(raw)
        except MALFORMED as error:
            raise not_an_event(error, SOURCE, "a message") from error
        if delta is not None:
            self._notes |= {key: held for key, held in _entries(raw).items() if key not in _OF_DELTAS}
        return delta

    def _is_whole(self) -> bool:
        """Whether an answer without a finish reason is complete: token counts came, and every call can be read."""
        return self._counted and all(call.name and _whole(call) for calls in self._calls.values() for call in calls)

    def _delta(self, lane: Lane, candidate: int, delta: PlainDelta | VendorDelta) -> None:
        if type(delta) is PlainDelta:
            if delta.content:
                self._text(lane, delta.content)
        elif isinstance(delta, VendorDelta):
            self._vendor_delta(lane, candidate, delta)
        if delta.tool_calls:
            if len(delta.tool_calls) > 1:
                self._number_fragments(candidate, delta.tool_calls)
            for fragment in delta.tool_calls:
                self._fragment(lane, candidate, fragment)
        if delta.refusal:
            lane.flow(REFUSAL, delta.refusal)
            self._refused.add(candidate)

    def _text(self, lane: Lane, text: str) -> None:
        lane.flow(TEXT, text)
        if self.texts is None:
            self._pieces.setdefault(lane.flow_index, []).append(text)

    def _note_sources(self, chunk: Chunk[Any]) -> None:
        """Note the pages that any chunk may list. Later lists replace earlier ones."""
        if chunk.citations is not UNSET:
            self._notes[listed_pages.CITATIONS] = Raw(bytes(chunk.citations))
        if chunk.search_results is not UNSET:
            self._notes[listed_pages.RESULTS] = Raw(bytes(chunk.search_results))

    def _cite_sources(self) -> None:
        """Cite the pages that were listed beside the answer, now that the text is whole."""
        lane = self._lane
        if lane.flow_kind is not Text or not listed_pages.has_sources(self._notes) or self._cited:
            return
        if self.texts is None:
            text = "".join(self._pieces.get(lane.flow_index, ()))
        else:
            text = self._book.text_so_far(lane.flow_index, self.texts)
        for citation in listed_pages.cite_sources(text, self._notes):
            lane.cite(citation)

    def _read_wider(self, payload: bytes, error: Exception) -> Chunk[Any]:
        """Read this and all later chunks with a wider type: the server sends more than the specification has."""
        wider = _WIDER.get(self._read)
        if not isinstance(error, msgspec.ValidationError):
            raise not_an_event(error, SOURCE, "a chunk") from error
        if wider is None:
            return self._read_odd(payload, error)
        self._read = wider
        try:
            return wider(payload)
        except MALFORMED as another:
            return self._read_wider(payload, another)

    def _read_odd(self, payload: bytes, error: Exception) -> Chunk[Any]:
        """Read a chunk that fits no type: without its unknown keys, and with counts in other spellings."""
        try:
            if not has_unknown_key(error):
                try:
                    return _read_loose(payload)
                except msgspec.ValidationError as another:
                    if not has_unknown_key(another):
                        raise
            return _read_loose(take_unknown_keys(payload, OpenChunk, self._notes))
        except MALFORMED as another:
            raise not_an_event(another, SOURCE, "a chunk") from another

    def _vendor_delta(self, lane: Lane, candidate: int, delta: VendorDelta) -> None:
        """Decode a delta that may hold several kinds at once: reasoning, then text, then calls."""
        content = delta.content
        blocks = [] if delta.thinking_blocks is UNSET else self._thinking_blocks(delta.thinking_blocks)
        if delta.reasoning_content or delta.reasoning or delta.reasoning_text or delta.reasoning_details or blocks:
            self._reasoning(lane, delta, blocks)
        if delta.reasoning_opaque:
            signature = Signature(foreign_signatures.COPILOT, delta.reasoning_opaque)
            self._reasoning_part(lane, Reasoning("", signature, redacted=lane.flow_kind is not Reasoning), None)
        if content:
            if isinstance(content, str):
                self._text(lane, content)
            else:
                _content_list(lane, content)
        if delta.audio is not None:
            self._sound(lane, candidate, delta.audio)
        if delta.images is not UNSET:
            self._images(lane, delta.images)
        if _has_legacy_call(delta):
            self._fragment(lane, candidate, CallFragment(-1, function=delta.function_call))
        if delta.annotations is not UNSET:
            citations, others = foreign_signatures.citations_in(delta.annotations)
            for citation in citations:
                self._cited = True
                lane.cite(citation)
            if others:
                self._notes["annotations"] = Raw(encode_json(list(others.values())))
        if delta.extra_content is not UNSET:
            self._sign_text(lane, self._signature(delta.extra_content))

    def close(self) -> list[AnyEvent]:
        """Handle the end of bytes: several servers never send [DONE], so the finish reason decides."""
        return [] if self._state is ENDED else self._end()

    def _start(self, payload: bytes) -> None:
        opening = _openings.decode(payload)
        self._seed = opening.id or ""
        self._note_keys(payload)
        created = whole_seconds(opening.created)
        self._book.events.append(StreamStart(opening.id or None, opening.model or None, created))

    def _fail(self, payload: bytes) -> list[AnyEvent]:
        self._move("error")
        self._start_waiting_calls()
        self._end_all(incomplete=True)
        self._book.events.append(StreamFailed(decode_error(payload)))
        return self._book.take()

    def _end(self) -> list[AnyEvent]:
        if self._state is not FINISHED:
            return self._end_truncated()
        self._move("end")
        self._cite_sources()
        self._start_waiting_calls()
        self._end_sounds()
        cut = {candidate for candidate, word in self._finishes.items() if word == "length"}
        for candidate, calls in self._calls.items():
            lane = self._lane_of(candidate)
            lane.end_flow()
            for number, call in enumerate(calls):
                last = number == len(calls) - 1
                lane.end_call(
                    call.part_index, call.signature, incomplete=_is_cut(call, last=last, cut=candidate in cut)
                )
        self._end_all()
        finishes = [self._finish(candidate) for candidate in sorted(self._finishes)]
        notes = {FAMILY: self._notes} if self._notes else None
        self._book.events.append(Finished(finishes[0], tuple(finishes[1:]), notes))
        return self._book.take()

    def _end_truncated(self) -> list[AnyEvent]:
        self._state = ENDED
        self._start_waiting_calls()
        self._end_all(incomplete=True)
        failure = Failure("truncated", "the stream ended without a finish reason")
        self._book.events.append(StreamFailed(failure))
        return self._book.take()

    def _finish(self, candidate: int) -> Finish:
        seen: tuple[AnyPart, ...] = (ToolCall("", ""),) if self._calls.get(candidate) else ()
        if not seen and candidate in self._refused:
            seen = (REFUSAL,)
        finish = decode_finish(self._finishes[candidate], Message("assistant", seen))
        notes = self._notes
        # Other keys of choices are noted for the first candidate only.
        keys = {key: notes[key] for key in ("error",) if key in notes} if candidate else notes
        return add_explanation(finish, keys) or Finish("unknown")

    # ── reasoning and signatures ──

    def _thinking_blocks(self, raw: Raw) -> list[Reasoning]:
        """Return the fragments of LiteLLM's blocks; blocks of another vendor are noted."""
        blocks = thinking_blocks.blocks_in(raw)
        if blocks is None and raw != NULL:
            self._notes[thinking_blocks.BLOCKS] = Raw(bytes(raw))
        return blocks or []

    def _reasoning(self, lane: Lane, delta: VendorDelta, blocks: list[Reasoning]) -> None:
        text = delta.reasoning_content or delta.reasoning or delta.reasoning_text
        if text:
            self._think(lane, text)
        for detail in delta.reasoning_details or ():
            if isinstance(detail.id, str) and detail.id.startswith(foreign_signatures.TEXT_AT):
                if detail.id.endswith("+0"):
                    lane.end_flow()
                self._sign_text(lane, foreign_signatures.reasoning_of(detail).signature)
                continue
            self._reasoning_part(lane, foreign_signatures.reasoning_of(detail), text)
        for block in () if delta.reasoning_details else blocks:
            self._reasoning_part(lane, block, text)

    def _reasoning_part(self, lane: Lane, part: Reasoning, beside: str | None) -> None:
        """Add a part of the reasoning, or a fragment of one; `beside` is the plain text that came with it."""
        if part.redacted:
            lane.whole(part)
            return
        # The text may come in fragments, beside plain `reasoning`, or again in full at the end.
        repeats = beside and thinking_blocks.squeezed(part.text) in thinking_blocks.squeezed(beside)
        if part.text and not repeats and not (lane.flow_kind is Reasoning and part.text == self._thought_so_far(lane)):
            self._think(lane, part.text)
        if part.signature is not None:
            if lane.flow_kind is Reasoning:
                lane.end_flow(part.signature)
            else:
                lane.whole(part)

    def _think(self, lane: Lane, text: str) -> None:
        if lane.flow_kind is not Reasoning:
            self._thought = []
        if self.texts is None:
            self._thought.append(text)
        lane.flow(REASONING, text)

    def _thought_so_far(self, lane: Lane) -> str:
        if self.texts is None:
            return "".join(self._thought)
        return self._book.text_so_far(lane.flow_index, self.texts)

    def _signature(self, content: Raw) -> Signature | None:
        """Return the signature in an `extra_content`; what is beside it is noted."""
        signature, beside = foreign_signatures.signature_in(content)
        if beside:
            self._notes[foreign_signatures.EXTRA_CONTENT] = Raw(encode_json(beside))
        return signature

    def _sign_text(self, lane: Lane, signature: Signature | None) -> None:
        if signature is not None:
            if lane.flow_kind is Text:
                lane.end_flow(signature)
            else:
                lane.whole(Text("", signature=signature))

    # ── images and audio ──

    def _images(self, lane: Lane, raw: Raw) -> None:
        found = images.images_in(raw) if raw != NULL else []
        if found is None:
            self._notes[images.KEY] = Raw(bytes(raw))
            return
        for image in found:
            lane.whole(image)

    def _sound(self, lane: Lane, candidate: int, fragment: SoundFragment) -> None:
        if candidate not in self._sounds:
            self._sounds[candidate] = lane.start_audio(Audio(audio.HEADERLESS, "", transcript="")), {}
        index, notes = self._sounds[candidate]
        if fragment.id is not None:
            notes["id"] = Raw(encode_json(fragment.id))
        if fragment.expires_at is not None:
            notes["expires_at"] = Raw(encode_json(fragment.expires_at))
        if fragment.transcript:
            lane.delta(index, fragment.transcript)
        if fragment.data:
            self._book.events.append(MediaDelta(index, fragment.data))

    def _end_sounds(self) -> None:
        """End the audio parts with their notes: the id comes first and the expiry last, so both are attached here."""
        for candidate, (index, notes) in self._sounds.items():
            self._lane_of(candidate).end_call(index, metadata={audio.FAMILY: notes} if notes else None)

    # ── calls ──

    def _fragment(self, lane: Lane, candidate: int, fragment: CallFragment) -> None:
        index = fragment.index
        if fragment.function is None and (fragment.name is not None or fragment.arguments is not None):
            fragment.function = FunctionFragment(fragment.name, fragment.arguments)
        function = fragment.function
        call = self._by_index.get((candidate, index)) if index is not None else None
        if call is None or fragment.id or function is None or function.name:
            call = self._call_for(candidate, fragment, call)
        elif call.part_index >= 0 and type(function.arguments) is str and fragment.extra_content is UNSET:
            if function.arguments:
                lane.delta(call.part_index, function.arguments)
                call.pieces.append(function.arguments)
            return
        if fragment.extra_content is not UNSET:
            call.signature = self._signature(fragment.extra_content) or call.signature
        text = _fragment_text(fragment)
        if call.part_index >= 0:
            if text:
                lane.delta(call.part_index, text)
                call.pieces.append(text)
            return
        if text:
            call.pieces.append(text)
        if call.id and call.name:
            self._start_call(lane, call)

    def _number_fragments(self, candidate: int, fragments: list[CallFragment]) -> None:
        """Number bare fragments, one for each call so far: they continue the calls in their order."""
        calls = self._calls.get(candidate, [])
        if len(calls) != len(fragments):
            return
        if any(one.index is not None or one.id or one.name or _fragment_name(one) for one in fragments):
            return
        for position, call in enumerate(calls):
            fragments[position].index = position
            self._by_index[(candidate, position)] = call

    def _call_for(self, candidate: int, fragment: CallFragment, call: _Call | None) -> _Call:
        """Return the call a fragment belongs to. The index is a key only: it may be missing, repeated or 1-based."""
        name = _fragment_name(fragment)
        calls = self._calls.setdefault(candidate, [])
        if call is None and fragment.index is None:
            call = self._find_unindexed(calls, fragment, name)
        if call is not None and _starts_another(call, fragment, name):
            call = None
        if call is None:
            call = _Call()
            calls.append(call)
            if fragment.index is not None:
                self._by_index[(candidate, fragment.index)] = call
        # Identity is set once; later fragments repeat it, or send "" or null.
        call.id = call.id or fragment.id or ""
        call.name = call.name or name
        is_custom = fragment.custom is not None and fragment.function is None
        call.custom = call.custom or fragment.type == "custom" or is_custom
        return call

    def _find_unindexed(self, calls: list[_Call], fragment: CallFragment, name: str) -> _Call | None:
        if fragment.id:
            return next((call for call in calls if call.id == fragment.id), None)
        # A fragment without index, id and name continues the last call.
        return None if name or not calls else calls[-1]

    def _start_call(self, lane: Lane, call: _Call) -> None:
        prototype = ToolCall(
            call.id, call.name, custom=call.custom, invented_id=is_invented(call.id), signature=call.signature
        )
        call.part_index = lane.start_call(prototype)
        if call.pieces:
            lane.delta(call.part_index, "".join(call.pieces))

    def _start_waiting_calls(self) -> None:
        """At the end, start calls whose id never came, with an invented one; calls without a name cannot be run."""
        for candidate, calls in self._calls.items():
            for number, call in enumerate(calls):
                if call.part_index < 0:
                    seed = f"{self._seed} {candidate}" if candidate else self._seed
                    call.id = call.id or invent_id(seed, number)
                    self._start_call(self._lane_of(candidate), call)


def _is_error(chunk: Chunk[Any], payload: bytes) -> bool:
    if chunk.error is not UNSET and bytes(chunk.error) not in {b"null", b"{}"}:
        return True
    if chunk.base_resp is not UNSET and base_resp_code(parse_json(chunk.base_resp)):
        return True
    return not chunk.choices and chunk.usage is None and _is_bare_error(_entries(payload))


def _is_bare_error(entries: Extra) -> bool:
    """Whether this is an error without `error` around it, as older vLLM, Qwen and FastAPI send it."""
    return ("message" in entries or "detail" in entries) and "id" not in entries and "choices" not in entries


def _is_cut(call: _Call, *, last: bool, cut: bool) -> bool:
    """Whether a call is incomplete: it has no name, or `length` cut the last call in the middle of its arguments."""
    return not call.name or (cut and last and not _whole(call))


def _whole(call: _Call) -> bool:
    return call.custom or exact_object("".join(call.pieces)) is not None


def _starts_another(call: _Call, fragment: CallFragment, name: str) -> bool:
    if fragment.id and call.id:
        if fragment.id == call.id:
            return False
        # Older versions of vLLM give every fragment of a call an id of its own; only the first has a name.
        return bool(name) or not call.name or _begins_object(call, fragment)
    if not name or not call.name:
        return False
    # The same index and no id: another name, or a new object after a complete one, starts another call.
    return name != call.name or _begins_object(call, fragment)


_MOST_CHECKS = 16
"""Each check reads all arguments so far, so their number is limited: the cost stays linear."""


def _begins_object(call: _Call, fragment: CallFragment) -> bool:
    """Whether the fragment begins a new object after the arguments of this call, which are complete."""
    if not call.pieces or call.checks >= _MOST_CHECKS or not _fragment_text(fragment).startswith("{"):
        return False
    call.checks += 1
    return _whole(call)


def _has_legacy_call(delta: VendorDelta) -> bool:
    """Whether `function_call` is a call of its own, and not empty or the one in `tool_calls` again, for old clients."""
    legacy = delta.function_call
    if legacy is None or not (legacy.name or legacy.arguments):
        return False
    functions = [fragment.function for fragment in delta.tool_calls or () if fragment.function is not None]
    return not any(
        (one.name or "") == (legacy.name or "") and (one.arguments or "") == (legacy.arguments or "")
        for one in functions
    )


def _fragment_name(fragment: CallFragment) -> str:
    if fragment.function is not None and fragment.function.name:
        return fragment.function.name
    return (fragment.custom.name or "") if fragment.custom is not None else ""


def _fragment_text(fragment: CallFragment) -> str:
    function = fragment.function
    if function is not None:
        arguments = function.arguments
        if isinstance(arguments, str):
            return arguments
        if arguments is not None:
            return encode_json(arguments).decode()
    return (fragment.custom.input or "") if fragment.custom is not None else ""


def _content_list(lane: Lane, parts: list[dict[str, Any]]) -> None:
    """Decode content given as parts, as Mistral streams it while it thinks."""
    for part in parts:
        if part.get("type") == "thinking":
            thinking = part.get("thinking")
            pieces = thinking if isinstance(thinking, list) else [{"text": thinking}]
            for piece in pieces:
                if isinstance(piece, dict) and isinstance(piece.get("text"), str) and piece["text"]:
                    lane.flow(REASONING, piece["text"])
        elif part.get("type", "text") != "text":
            lane.whole(_content_part(part))
        elif isinstance(part.get("text"), str) and part["text"]:
            lane.flow(TEXT, part["text"])


_part_reader = WireReader(ContentPart, SOURCE)  # type: ignore[arg-type, var-annotated]


def _content_part(part: dict[str, Any]) -> AnyPart:
    """Decode a part that arrives whole: an image, or what only this family understands."""
    raw = Raw(encode_json(part))
    try:
        return decode_part(_part_reader.read(raw))
    except DecodeError:
        return Opaque(FAMILY, str(part.get("type")), raw)
