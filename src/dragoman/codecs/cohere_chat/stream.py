"""Chat streams, both ways; encoding is in stream_encoding.py.

Server-sent events, each with its type inside. Content blocks, calls and citations are numbered independently, each
from 0. A plan has no number, no start and no end: it ends where the first call starts. The answer ends with
`message-end`; with the reason ERROR it is a failure, and so is the end of bytes before it. `[DONE]` adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import msgspec
from msgspec import UNSET, Raw, structs

from dragoman.codecs.accumulate import REASONING, TEXT, EventBook, Lane
from dragoman.codecs.carried_signatures import read_carried, signature_in
from dragoman.codecs.cohere_chat.errors import decode_error
from dragoman.codecs.cohere_chat.foreign_signatures import ONLY_PLAN
from dragoman.codecs.cohere_chat.grounding import decode_citation
from dragoman.codecs.cohere_chat.profile import FAMILY
from dragoman.codecs.cohere_chat.response import decode_finish, decode_usage
from dragoman.codecs.cohere_chat.stream_encoding import EventEncoder
from dragoman.codecs.cohere_chat.stream_wire import CallDelta, ContentDelta, Event
from dragoman.codecs.framing import ServerSentEvents
from dragoman.codecs.ids import invent_id, is_invented
from dragoman.codecs.reading import MALFORMED, check_text
from dragoman.codecs.stream_codec import EventDecoder, Moves, not_an_event
from dragoman.codecs.stream_limits import Limits
from dragoman.codecs.unknown_keys import has_unknown_key, take_unknown_keys
from dragoman.errors import IllegalEvent
from dragoman.ir import (
    AnyEvent,
    Failure,
    Finish,
    Finished,
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

__all__ = ["MOVES", "EventEncoder", "PayloadDecoder"]

SOURCE = "cohere-chat stream"

_events = msgspec.json.Decoder(Event)

# ── states ────────────────────────────────────────────────────────────────────────────────────────────────────

BEFORE, OPEN, ENDED = "before the first event", "in the answer", "ended"

MOVES: Moves = {
    (BEFORE, "message-start"): OPEN,
    (BEFORE, "error"): ENDED,
    (OPEN, "piece"): OPEN,
    (OPEN, "error"): ENDED,
    (OPEN, "message-end"): ENDED,
}

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────

_PLAN = Text("", metadata=ONLY_PLAN)
_A_CALL = Message("assistant", (ToolCall("", ""),))
_DONE = frozenset({b"[DONE]", b'"[DONE]"'})
"""With quotes: servers of late 2024."""


class _Block:
    """A content block: its prototype, and the part that it became once it had content."""

    __slots__ = ("is_ended", "part_index", "prototype", "signature")

    def __init__(self, prototype: Text | Reasoning) -> None:
        self.prototype = prototype
        self.part_index = -1
        self.signature: Signature | None = None
        self.is_ended = False


class PayloadDecoder(EventDecoder):
    """Decodes the payloads of one stream into events."""

    source: ClassVar[str] = SOURCE
    moves: Moves = MOVES

    _state: str = BEFORE

    def __init__(self) -> None:
        self._book = EventBook()
        self._lane = Lane(self._book, 0)
        self._seed = ""
        self._blocks: dict[int, _Block] = {}
        self._flowing: _Block | None = None
        """The block whose text is the lane's running text; None if there is none, or it is a plan."""
        self._calls: dict[int, int] = {}
        """The open calls."""
        self._has_calls = False
        self._late: Extra = {}
        """Keys of the events that the intermediate format does not model."""
        self._logprobs: list[bytes] = []
        """Log probabilities of each piece of text: a list in a whole answer."""
        self._beside: list[bytes] = []
        """Citations of reasoning, which the intermediate format does not have."""

    @staticmethod
    def framing(limits: Limits) -> ServerSentEvents:
        return ServerSentEvents(limits, SOURCE)

    def decode(self, payload: bytes) -> list[AnyEvent]:
        try:
            event = _events.decode(payload)
        except MALFORMED as error:
            if self._state is ENDED or payload.strip() in _DONE:
                return self.close()
            event = self._decode_odd(payload, error)
        delta = self._delta_in(event)
        return self._decode_whole(event, payload) if delta is None else [delta]

    def _decode_odd(self, payload: bytes, error: Exception) -> Event:
        """Decode an event without its unknown keys; raise for anything else that is not an event."""
        if has_unknown_key(error):
            try:
                event = _events.decode(take_unknown_keys(payload, Event, self._late))
            except MALFORMED as another:
                error = another
            else:
                logprobs = self._late.pop("logprobs", None)
                if logprobs is not None:
                    self._logprobs.append(bytes(logprobs))
                return event
        raise not_an_event(error, SOURCE) from error

    def _delta_in(self, event: Event) -> PartDelta | None:
        """Return more of the running text, or more arguments of a call; None for every other event."""
        if self._state is not OPEN or event.delta is None or event.delta.message is None:
            return None
        message = event.delta.message
        if event.type == "content-delta":
            block, content = self._flowing, message.content
            if block is not None and type(content) is ContentDelta and content.signature is UNSET:
                text = content.text if type(block.prototype) is Text else content.thinking
                if text and self._blocks.get(event.index or 0) is block:
                    return PartDelta(block.part_index, text)
        elif event.type == "tool-call-delta":
            index, call = self._calls.get(event.index or 0), message.tool_calls
            if index is not None and type(call) is CallDelta and call.signature is UNSET:
                text = call.function.arguments if call.function is not None else None
                return PartDelta(index, text) if text else None
        return None

    def _decode_whole(self, event: Event, payload: bytes) -> list[AnyEvent]:
        if self._state is ENDED:
            return []  # nothing counts after message-end
        check_text(payload, SOURCE)
        if event.type is None and event.message is not UNSET:
            return self._fail(decode_error(payload))
        if event.type == "message-start":
            self._move("message-start")
            self._seed = event.id or ""
            self._book.events.append(StreamStart(event.id))
        elif event.type == "message-end":
            self._finish(event)
        else:
            handle = _HANDLERS.get(event.type or "")
            if handle is not None:  # Cohere's own client skips unknown events, too
                self._move("piece")
                handle(self, event)
        return self._book.take()

    def close(self) -> list[AnyEvent]:
        """Handle the end of bytes: without message-end, the answer was cut off."""
        if self._state is ENDED:
            return []
        self._state = ENDED
        self._lane.end_all(incomplete=True)
        self._book.events.append(StreamFailed(Failure("truncated", "the stream ended before message-end")))
        return self._book.take()

    def _fail(self, failure: Failure) -> list[AnyEvent]:
        self._move("error")
        self._lane.end_all(incomplete=True)
        self._book.events.append(StreamFailed(failure))
        return self._book.take()

    # ── content ──

    def _content_in(self, event: Event) -> ContentDelta:
        content = None if event.delta is None or event.delta.message is None else event.delta.message.content
        return content if isinstance(content, ContentDelta) else ContentDelta()

    def _on_content_start(self, event: Event) -> None:
        self._end_flow()
        content = self._content_in(event)
        thinks = content.type == "thinking" or (content.type is None and content.thinking is not None)
        block = self._blocks[event.index or 0] = _Block(REASONING if thinks else TEXT)
        self._say(block, content)

    def _on_content_delta(self, event: Event) -> None:
        content = self._content_in(event)
        block = self._blocks.get(event.index or 0)
        if block is None:
            block = self._blocks[event.index or 0] = _Block(TEXT if content.thinking is None else REASONING)
        self._say(block, content)

    def _say(self, block: _Block, content: ContentDelta) -> None:
        text = content.text if type(block.prototype) is Text else content.thinking
        if content.signature is not UNSET:
            carried = read_carried(content.signature)
            if carried is not None:
                block.signature = Signature(carried.family, carried.data, carried.id)
                if carried.redacted and block.part_index < 0:
                    block.prototype = Reasoning("", block.signature, redacted=True)
                    block.signature = None
        if text:
            self._flow(block, text)

    def _flow(self, block: _Block, text: str) -> None:
        if self._flowing is not block:
            self._end_flow()
            self._flowing = block
        self._lane.flow(block.prototype, text)
        block.part_index = self._lane.flow_index

    def _end_flow(self) -> None:
        block, self._flowing = self._flowing, None
        self._lane.end_flow(None if block is None else block.signature)

    def _on_content_end(self, event: Event) -> None:
        """End a block. A text stays open until something else begins: its citations may come after its end."""
        block = self._blocks.get(event.index or 0)
        if block is None or block.is_ended:
            return
        block.is_ended = True
        if block.part_index < 0:
            self._end_flow()
            if isinstance(block.prototype, Reasoning) and block.prototype.redacted:
                block.part_index = self._book.next_index
                self._lane.whole(block.prototype)
                return
            self._lane.flow(block.prototype, "")
            self._book.events.pop()  # it was empty: it starts, and ends
            block.part_index = self._lane.flow_index
            self._flowing = block
        if self._flowing is block and type(block.prototype) is Reasoning:
            self._end_flow()

    def _on_plan(self, event: Event) -> None:
        plan = None if event.delta is None or event.delta.message is None else event.delta.message.tool_plan
        if self._flowing is not None:
            self._end_flow()
        if plan:
            self._lane.flow(_PLAN, plan)

    # ── citations ──

    def _on_citation(self, event: Event) -> None:
        citations = UNSET if event.delta is None or event.delta.message is None else event.delta.message.citations
        if citations is UNSET or bytes(citations)[:1] != b"{":
            return
        cited = decode_citation(Raw(bytes(citations)))
        if cited.is_thinking:
            self._beside.append(bytes(citations))
            return
        block = None if cited.content_index is None else self._blocks.get(cited.content_index)
        if block is None or type(block.prototype) is not Text:
            block = next((one for one in self._blocks.values() if type(one.prototype) is Text), None)
        for citation in cited.citations:
            if block is None or block is self._flowing or block.part_index < 0:
                self._lane.cite(citation)  # of the running text, plans included
            else:  # its text has ended: keep the source, but not its position in that text
                self._lane.cite(structs.replace(citation, start=None, end=None))

    # ── calls ──

    def _call_in(self, event: Event) -> CallDelta:
        call = None if event.delta is None or event.delta.message is None else event.delta.message.tool_calls
        return call if isinstance(call, CallDelta) else CallDelta()

    def _on_call_start(self, event: Event) -> None:
        self._end_flow()
        wire = self._call_in(event)
        number = event.index or 0
        call_id = wire.id or invent_id(self._seed, number)
        name = "" if wire.function is None else wire.function.name or ""
        signature = None if wire.signature is UNSET else signature_in(wire.signature)
        call = ToolCall(call_id, name, invented_id=is_invented(call_id), signature=signature)
        index = self._calls[number] = self._lane.start_call(call)
        self._has_calls = True
        if wire.function is not None and wire.function.arguments:
            self._lane.delta(index, wire.function.arguments)

    def _on_call_delta(self, event: Event) -> None:
        wire = self._call_in(event)
        index = self._calls.get(event.index or 0)
        if index is None:
            raise IllegalEvent(event="tool-call-delta", state="without an open call", source=SOURCE)
        if wire.function is not None and wire.function.arguments:
            self._lane.delta(index, wire.function.arguments)
        if wire.signature is not UNSET:
            del self._calls[event.index or 0]
            self._lane.end_call(index, signature_in(wire.signature))

    def _on_call_end(self, event: Event) -> None:
        index = self._calls.pop(event.index or 0, None)
        if index is not None:
            self._lane.end_call(index)

    # ── the end ──

    def _finish(self, event: Event) -> None:
        delta = event.delta
        word = None if delta is None else delta.finish_reason
        finish = decode_finish(word, _A_CALL if self._has_calls else None) or Finish("unknown")
        if delta is not None and delta.error is not None and finish.reason == "error":
            kind = "timeout" if word == "TIMEOUT" else "server"
            failure = Failure(kind, delta.error, raw_type=word, metadata={FAMILY: {}})  # type: ignore[arg-type]
            self._book.events = [*self._fail(failure), *self._book.events]
            return
        self._move("message-end")
        cut = finish.reason in {"length", "error", "unknown", "content_filter"}
        self._lane.end_flow(None if self._flowing is None else self._flowing.signature)
        self._lane.end_all(incomplete=cut)
        if delta is not None and delta.usage is not UNSET and bytes(delta.usage) != b"null":
            self._book.events.append(UsageUpdate(decode_usage(Raw(bytes(delta.usage)))))
        if self._logprobs:
            self._late["logprobs"] = Raw(b"[%b]" % b",".join(self._logprobs))
        if self._beside:
            self._late["citations"] = Raw(b"[%b]" % b",".join(self._beside))
        self._book.events.append(Finished(finish, metadata={FAMILY: self._late}))


_HANDLERS: dict[str, Callable[[PayloadDecoder, Event], None]] = {
    "content-start": PayloadDecoder._on_content_start,
    "content-delta": PayloadDecoder._on_content_delta,
    "content-end": PayloadDecoder._on_content_end,
    "tool-plan-delta": PayloadDecoder._on_plan,
    "tool-call-start": PayloadDecoder._on_call_start,
    "tool-call-delta": PayloadDecoder._on_call_delta,
    "tool-call-end": PayloadDecoder._on_call_end,
    "citation-start": PayloadDecoder._on_citation,
}
