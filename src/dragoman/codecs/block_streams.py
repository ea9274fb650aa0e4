"""Decodes streams of numbered blocks, each with its own deltas and stop.

The end of a text or a call is delayed: the next block may still carry its signature, and only the stop reason says
whether a last call was cut. A tagged block before a part is held back too, until that part begins.
"""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from msgspec.structs import replace

from dragoman.codecs.signature_tags import SIGNED_AFTER
from dragoman.codecs.stream_codec import EventDecoder
from dragoman.errors import IllegalEvent
from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Citation,
    Failure,
    Finish,
    Finished,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
    Signature,
    StreamFailed,
    Text,
)
from dragoman.ir.notes import Extra


class Incoming:
    """One block while its fragments arrive."""

    part_index: int = -1  # until its part starts
    pieces: list[str]
    citations: list[Citation] | None = None
    """Citations of its text, held until its end."""

    def __init__(self) -> None:
        self.pieces = []

    def cite(self, citation: Citation) -> None:
        if self.citations is None:
            self.citations = []
        self.citations.append(citation)


class DeferredEnd:
    """The end of a text or a call, held until it is known whether it is signed or cut."""

    def __init__(self, end: PartEnd, *, may_sign: bool, is_call: bool = False) -> None:
        self.end = end
        self.may_sign = may_sign
        self.is_call = is_call


Block = TypeVar("Block", bound=Incoming)
Carrier = TypeVar("Carrier")


class BlockDecoder(EventDecoder, Generic[Block, Carrier]):
    """Tracks the blocks and parts of one stream; the codec interprets the events."""

    family: ClassVar[str]

    _events: list[AnyEvent]
    _next_index: int = 0
    _late: Extra
    _blocks: dict[int, Block]
    _stopped: set[int]
    _calls: list[AnyPart]
    _names: dict[str, str]
    _deferred_end: DeferredEnd | None = None
    _carrier: Carrier | None = None  # a tagged block with the signature of the part that follows it
    # Fast path: the next fragment of this block is passed on without further checks.
    _flowing: int | None = None
    _flow_part: int = -1

    def __init__(self) -> None:
        self._events = []
        self._late = {}
        self._blocks = {}
        self._stopped = set()
        self._calls = []
        self._names = {}

    # ── how the codec reads it ──

    def _finish(self) -> Finish:
        """Return how the answer ends, as far as it is known."""
        raise NotImplementedError

    def _end(self, block: Block) -> None:
        """Emit what remains of a complete block."""
        raise NotImplementedError

    def _part_of(self, carrier: Carrier) -> AnyPart:
        """Return the tagged block as an ordinary part."""
        raise NotImplementedError

    # ── the message ──

    def _take(self) -> list[AnyEvent]:
        events, self._events = self._events, []
        return events

    def _emit_finish(self) -> None:
        self._events.append(Finished(self._finish(), metadata={self.family: self._late} if self._late else None))

    def _end_blocks(self) -> None:
        """End blocks that were never stopped, as the answer is complete; a last call under `max_tokens` was cut."""
        for index in list(self._blocks):
            self._end_block(index)
        if self._carrier is not None:
            self._put_carrier_back()
        deferred = self._deferred_end
        if deferred is not None:
            cut = deferred.is_call and deferred.end.index == self._next_index - 1
            self._release(incomplete=cut and self._finish().reason == "length")

    def _break_off(self, failure: Failure) -> None:
        self._flowing = None
        # Only the stop reason would say whether a held call was cut, so that call is incomplete too.
        self._release(incomplete=self._deferred_end is not None and self._deferred_end.is_call)
        for block in self._blocks.values():
            if block.part_index >= 0:
                self._emit_citations(block)
                self._events.append(PartEnd(block.part_index, incomplete=True))
        self._blocks.clear()
        self._events.append(StreamFailed(failure))

    # ── blocks and their parts ──

    def _end_block(self, index: int) -> None:
        if self._flowing == index:
            self._flowing = None
        self._stopped.add(index)
        self._end(self._blocks.pop(index))

    def _open_block(self, index: int, event: str, noun: str = "block") -> Block:
        """Return the block that an event refers to, which must be open."""
        block = self._blocks.get(index)
        if block is None:
            which = "stopped" if index in self._stopped else "unknown"
            raise IllegalEvent(event=f"{event} of {which} {noun} {index}", state=self._state, source=self.source)
        return block

    def _stop_block(self, index: int, event: str, noun: str = "block") -> None:
        """End a block; one that was stopped already may be stopped again."""
        if index not in self._stopped or index in self._blocks:
            self._open_block(index, event, noun)
            self._end_block(index)

    def _emit_citations(self, block: Block) -> None:
        """Emit the citations of a text behind it: they cite the block, whose length is known only now.

        Claude sends them before their text.
        """
        for citation in block.citations or ():
            self._events.append(PartDelta(block.part_index, "", citation))

    def _start(self, part: AnyPart) -> int:
        index = self._next_index
        self._next_index = index + 1
        self._events.append(PartStart(index, part))
        return index

    def _whole(self, part: AnyPart) -> None:
        """Emit a complete part. The end carries the signature of text and readable reasoning."""
        self._release()
        self._put_carrier_back()
        if type(part) is Text or (type(part) is Reasoning and not part.redacted):
            index = self._start(replace(part, signature=None))
            self._events.append(PartEnd(index, part.signature))
        else:
            self._events.append(PartEnd(self._start(part)))

    # ── held until the next event ──

    def _defer(self, deferred: DeferredEnd) -> None:
        if self._deferred_end is not None:
            self._release()
        self._deferred_end = deferred

    def _release(self, *, incomplete: bool = False) -> None:
        deferred, self._deferred_end = self._deferred_end, None
        if deferred is not None:
            self._events.append(replace(deferred.end, incomplete=True) if incomplete else deferred.end)

    def _sign_deferred(self, signature: Signature | None) -> bool:
        """Sign the held part with the signature of a tagged block after it; return whether that was possible."""
        deferred = self._deferred_end
        if signature is None or deferred is None or not deferred.may_sign or self._carrier is not None:
            return False
        notes = (deferred.end.metadata or {}).get(self.family, {}) | SIGNED_AFTER
        self._events.append(replace(deferred.end, signature=signature, metadata={self.family: notes}))
        self._deferred_end = None
        return True

    def _keep_carrier(self, carrier: Carrier) -> None:
        self._release()
        self._put_carrier_back()
        self._carrier = carrier

    def _put_carrier_back(self) -> None:
        """Emit the held tagged block as an ordinary part: no part followed that could be signed."""
        carrier, self._carrier = self._carrier, None
        if carrier is not None:
            self._whole(self._part_of(carrier))
