"""Encodes streams of one block at a time: a part that starts while an earlier one is open waits for it.

The codec writes each block, and what comes before and after all of them. Which block is open, which parts wait, and
where a signature without a field goes is the same for all such formats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from dragoman.codecs.arguments import arguments_as_object, opening_arguments, read_arguments, report_unparsed
from dragoman.codecs.block_encoder import Carriers
from dragoman.codecs.logprobs import skip_logprobs
from dragoman.codecs.media import as_transcript, unspoken
from dragoman.codecs.reading import WireValue
from dragoman.codecs.stream_codec import BaseEventEncoder
from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Citation,
    Completion,
    Failure,
    Finished,
    LogprobsDelta,
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
    UsageUpdate,
)
from dragoman.ir.notes import Extra
from dragoman.ir.values import encode_json
from dragoman.losses import LossLog

_CUSTOM_HEAD, _CUSTOM_TAIL = '{"input":"', '"}'
_RUNNING: frozenset[type[AnyPart]] = frozenset({Text, Refusal, Reasoning})


class Parts(Protocol):
    """The codec's encoder of complete parts."""

    def encode_part(self, part: AnyPart, role: str) -> list[WireValue]: ...


_entries = msgspec.json.Decoder(dict[str, Raw]).decode


class Outgoing:
    """One part being written."""

    index: int
    part: Any
    block: int = -1  # until its block starts
    head: bytes = b""
    tail: bytes = b""
    """The bytes around each of its fragments."""
    pieces: list[str] | None
    """Argument text not yet known to be an object; None once it is, and fragments are passed on."""
    odd: bool = False
    waiting: list[PartDelta] | None = None
    """Deltas that came while an earlier part was open."""
    end: PartEnd | None = None

    def __init__(self, index: int, part: Any) -> None:
        self.index = index
        self.part = part
        self.pieces = []


class SequentialEncoder(BaseEventEncoder, ABC):
    """Encodes events as bytes that a strict client of such a format accepts."""

    family: ClassVar[str]
    signatures: ClassVar[Carriers]

    _begun = False
    _native = False
    _next_block = 0
    _closing = False
    # Fast path: the next fragment of this part is written between these bytes without further checks.
    _flowing = -1
    _head = b""
    _tail = b""

    def __init__(self, log: LossLog) -> None:
        self._log = log
        self._parts: dict[int, Outgoing] = {}
        self._queue: deque[Outgoing] = deque()
        self._seen: list[AnyPart] = []
        self._declined: list[str] = []

    def encode(self, events: list[AnyEvent]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if type(event) is PartDelta:
                if event.citation is None:
                    out.append(self.fragment(event.index, event.text))
                else:
                    out += self._on_delta(event)
            else:
                out += _HANDLERS[type(event)](self, event)
        return b"".join(out)

    @abstractmethod
    def fragment(self, index: int, text: str) -> bytes:
        """Encode more text of a part: between `_head` and `_tail` if it is `_flowing`, otherwise by `_on_delta`."""

    # ── what the codec writes ──

    @abstractmethod
    def _part_encoder(self) -> Parts:
        """Return the encoder of complete parts."""

    @abstractmethod
    def _opening(self, event: StreamStart, notes: Extra | None) -> bytes:
        """Return what comes before all blocks. `notes` are this family's, None if the answer is of another family."""

    @abstractmethod
    def _ending(self, event: Finished, completion: Completion) -> list[bytes]:
        """Return what comes after all blocks. The completion holds the parts that were sent, for the log."""

    @abstractmethod
    def _failure(self, failure: Failure) -> bytes: ...

    refusals_as_text: ClassVar[str]
    """Why a refusal is sent as text."""

    def _open(self, part: Outgoing) -> list[bytes]:
        """Open a part: a call at once, text and reasoning at their first fragment, as they may be empty and signed."""
        content, kind = part.part, type(part.part)
        if kind is ToolCall:
            return self._open_call(part)
        if kind is Refusal:
            self._log.degrade(content, "", "refusal", self.refusals_as_text)
        out = self._flow(part, content.text) if kind in _RUNNING and content.text else []
        if kind is Text and content.citations:
            for citation in content.citations:
                out += self._cite(part, citation)
        return out

    @abstractmethod
    def _start_call(self, part: Outgoing) -> bytes: ...

    @abstractmethod
    def _start_flow(self, part: Outgoing) -> list[bytes]: ...

    @abstractmethod
    def _piece(self, part: Outgoing, text: str) -> bytes:
        """Return a fragment in the block of this part."""

    @abstractmethod
    def _cite(self, part: Outgoing, citation: Citation) -> list[bytes]: ...

    signature_delta: ClassVar[str] = ""
    """The type of a delta with a signature."""

    def _sign(self, part: Outgoing, whole: Reasoning) -> list[bytes]:
        """Return the signature of reasoning, in the block of its text."""
        out: list[bytes] = []
        for block in self._part_encoder().encode_part(whole, "assistant"):
            signature = _entries(encode_json(block)).get("signature")
            out += [] if signature is None else [self._delta(part.block, self.signature_delta, signature=signature)]
        return out

    def _delta(self, block: int, kind: str, **fields: Any) -> bytes:
        raise NotImplementedError

    def _spell_empty(self, part: Outgoing) -> list[bytes]:
        """Return all events of a block without text."""
        return [*self._start_flow(part), self._stop(part.block)]

    @abstractmethod
    def _spell(self, block: WireValue) -> list[bytes]:
        """Return a complete block as the sequence of events that a client of a stream expects."""

    @abstractmethod
    def _stop(self, block: int) -> bytes: ...

    # ── the message ──

    def _on_start(self, event: StreamStart) -> list[bytes]:
        if self._begun:
            return []
        self._begun = True
        notes = None if event.metadata is None else event.metadata.get(self.family)
        self._native = notes is not None
        return [self._opening(event, notes)]

    def _begin(self) -> list[bytes]:
        return [] if self._begun else self._on_start(StreamStart())

    def _on_finished(self, event: Finished) -> list[bytes]:
        out = [] if self._begun else self._begin()
        for finish in event.others:
            self._log.drop(finish or event, "", "a further candidate", "one answer is streamed")
        self._closing = True
        if self._queue:
            for part in self._queue:
                part.end = part.end or PartEnd(part.index)
            out += self._advance()
        return out + self._ending(event, Completion((Message("assistant", tuple(self._seen)),)))

    def _on_failed(self, event: StreamFailed) -> list[bytes]:
        """Write the failure; open blocks stay open, so that nothing marks them as complete."""
        return [self._failure(event.failure)]

    # ── one block after the other ──

    def _on_part_start(self, event: PartStart) -> list[bytes]:
        out = [] if self._begun else self._begin()
        if event.candidate:
            self._log.drop(event.part, "", "a further candidate", "one answer is streamed")
            return out
        part = self._parts[event.index] = Outgoing(event.index, as_transcript(event.part, self._log))
        self._queue.append(part)
        if len(self._queue) == 1:
            out += self._open(part)
        return out

    def _on_delta(self, event: PartDelta) -> list[bytes]:
        part = self._parts.get(event.index)
        if part is None:
            return []
        if part is not self._queue[0]:
            if part.waiting is None:
                part.waiting = []
            part.waiting.append(event)
            return []
        return self._deliver(part, event)

    def _on_part_end(self, event: PartEnd) -> list[bytes]:
        part = self._parts.pop(event.index, None)
        if part is None:
            return []
        part.end = event
        return self._advance()

    def _advance(self) -> list[bytes]:
        """Close parts that have ended, as far as the order allows, and open the next."""
        out: list[bytes] = []
        while self._queue:
            part = self._queue[0]
            # Incomplete: if the stream failed, its block is left open, so the next event decides.
            if part.end is None or (part.end.incomplete and not self._closing):
                break
            out += self._shut(part, part.end)
            self._queue.popleft()
            self._flowing = -1
            if self._queue:
                out += self._open_waiting(self._queue[0])
        return out

    def _open_waiting(self, part: Outgoing) -> list[bytes]:
        if part.end is not None and part.end.signature is not None and isinstance(part.part, Text | ToolCall):
            part.part = replace(part.part, signature=part.end.signature)
        out = self._open(part)
        waiting = part.waiting or ()
        text = "".join([delta.text for delta in waiting])
        for delta in waiting:
            if delta.citation is not None:
                out += self._deliver(part, delta)
        return out + self._deliver(part, PartDelta(part.index, text)) if text else out

    def _deliver(self, part: Outgoing, delta: PartDelta) -> list[bytes]:
        if delta.citation is not None:
            return self._cite(part, delta.citation)
        if not delta.text:
            return []
        if type(part.part) is ToolCall:
            return self._arguments(part, delta.text)
        return self._flow(part, delta.text) if type(part.part) in _RUNNING else []

    def _flow(self, part: Outgoing, text: str) -> list[bytes]:
        out = [] if part.block >= 0 else self._start_flow(part)
        if type(part.part) is Refusal:
            self._declined.append(text)  # some formats repeat it at the end, so every fragment passes here
        else:
            self._flowing, self._head, self._tail = part.index, part.head, part.tail
        out.append(self._piece(part, text))
        return out

    def _number(self) -> int:
        """Return the number of a block that starts now."""
        number = self._next_block
        self._next_block += 1
        return number

    # ── calls ──

    def _open_call(self, part: Outgoing) -> list[bytes]:
        call: ToolCall = part.part
        out = self._spell_signature(call, call.signature)
        out.append(self._start_call(part))
        if call.custom:
            out.append(self._piece(part, _CUSTOM_HEAD))
        text = opening_arguments(call)
        return out + self._arguments(part, text) if text else out

    def _arguments(self, part: Outgoing, text: str) -> list[bytes]:
        """Write fragments of an object; hold any other text until the end, to wrap it: `input` is always an object."""
        if part.part.custom:
            return [self._piece(part, encode_json(text)[1:-1].decode())]
        if part.pieces is None:
            return self._flow(part, text)
        part.pieces.append(text)
        if part.odd:
            return []
        start = text.lstrip()
        if start[:1] == "{":
            text, part.pieces = "".join(part.pieces), None
            return self._flow(part, text)
        part.odd = bool(start)
        return []

    def _end_arguments(self, part: Outgoing) -> list[bytes]:
        if part.part.custom:
            return [self._piece(part, _CUSTOM_TAIL)]
        if part.pieces is None or (part.end is not None and part.end.incomplete and not part.odd):
            return []
        text = "".join(part.pieces)
        call = replace(part.part, arguments=read_arguments(text), arguments_text=text)
        if not call.parsed:
            report_unparsed(part.part, self._log)
        return [self._piece(part, bytes(arguments_as_object(call)).decode())]

    # ── ends ──

    def _shut(self, part: Outgoing, end: PartEnd) -> list[bytes]:
        content = part.part
        if type(content) is Refusal:
            content, self._declined = replace(content, text="".join(self._declined)), []
        self._seen.append(
            replace(content, incomplete=True) if end.incomplete and type(content) is ToolCall else content
        )
        kind = type(content)
        if kind is Text or kind is Refusal:
            if part.block >= 0:
                return self._stop_signed(part, end)
            signature = end.signature or getattr(content, "signature", None)
            if signature is not None:
                return self._spell_signature(Text(""), signature)
            # A client would return the empty text of another family's answer, and its API may refuse it.
            return self._spell_empty(part) if self._native else []
        if kind is ToolCall:
            return self._end_arguments(part) + self._stop_signed(part, end)
        if kind is Reasoning:
            return self._shut_reasoning(part, end)
        return self._spell_all(content)

    def _stop_signed(self, part: Outgoing, end: PartEnd) -> list[bytes]:
        """Stop the block; a signature that came last travels in a separate block after it."""
        out = [self._stop(part.block)]
        if end.signature is None or end.incomplete or end.signature == part.part.signature:
            return out
        return out + self._spell(self.signatures.trailing_signature(part.part, end.signature))

    def _shut_reasoning(self, part: Outgoing, end: PartEnd) -> list[bytes]:
        content: Reasoning = part.part
        metadata = content.metadata if end.metadata is None else (content.metadata or {}) | end.metadata
        whole = replace(content, text="", signature=end.signature or content.signature, metadata=metadata)
        if part.block < 0:
            return self._spell_all(whole)
        # A signature on a text that was cut would be refused.
        return [*([] if end.incomplete else self._sign(part, whole)), self._stop(part.block)]

    def _spell_signature(self, part: AnyPart, signature: Signature | None) -> list[bytes]:
        """Write a signature that is already known before its part, as without streaming."""
        return [] if signature is None else self._spell(self.signatures.tagged_signature(part, signature))

    def _spell_all(self, part: AnyPart) -> list[bytes]:
        return [piece for block in self._part_encoder().encode_part(part, "assistant") for piece in self._spell(block)]


_HANDLERS: dict[type[AnyEvent], Callable[[SequentialEncoder, Any], list[bytes]]] = {
    StreamStart: SequentialEncoder._on_start,
    PartStart: SequentialEncoder._on_part_start,
    MediaDelta: unspoken,
    LogprobsDelta: skip_logprobs,
    PartEnd: SequentialEncoder._on_part_end,
    UsageUpdate: SequentialEncoder._on_usage,
    Finished: SequentialEncoder._on_finished,
    StreamFailed: SequentialEncoder._on_failed,
}
