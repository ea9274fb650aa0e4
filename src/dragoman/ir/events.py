"""Stream events: an answer piece by piece.

`StreamStart`, then for each part `PartStart`, its `PartDelta`s and `PartEnd` (audio also has `MediaDelta`s, and its
`PartDelta`s are the transcript); `LogprobsDelta` after the text it is about; `UsageUpdate` whenever counts are known
(the last one counts, nothing is summed); at the end exactly one of `Finished` and `StreamFailed`. Parts may overlap:
fragments of parallel calls are interleaved in some formats; the index identifies the part.
"""

from __future__ import annotations

from typing import TypeAlias

from dragoman.ir.completions import Failure, Finish, TokenLogprob, Usage
from dragoman.ir.parts import AnyPart, Citation, Signature
from dragoman.ir.values import Metadata, Value


class Event(Value, frozen=True, tag_field="type"):
    """Base of all events."""


class StreamStart(Event, frozen=True, tag="stream_start"):
    """The answer begins."""

    id: str | None = None
    model: str | None = None
    created: int | None = None
    metadata: Metadata | None = None


class PartStart(Event, frozen=True, tag="part_start"):
    """A part begins. `part` is what is known of it: an empty text, a call with id and name, or a whole block."""

    index: int
    part: AnyPart
    candidate: int = 0


class PartDelta(Event, frozen=True, tag="part_delta"):
    """More of a part: text, argument text of a call, a citation, or the transcript of audio."""

    index: int
    text: str = ""
    citation: Citation | None = None


class MediaDelta(Event, frozen=True, tag="media_delta"):
    """More audio: base64 that can be decoded on its own."""

    index: int
    data: str


class LogprobsDelta(Event, frozen=True, tag="logprobs_delta"):
    """Log probabilities of further tokens of a candidate's text. They follow the text they belong to."""

    tokens: tuple[TokenLogprob, ...]
    candidate: int = 0


class PartEnd(Event, frozen=True, tag="part_end"):
    """The part is complete on the wire; `incomplete` if the answer was cut inside it.

    `metadata` is what the wire adds about the part at its end; it is merged with that of its start.
    """

    index: int
    signature: Signature | None = None
    incomplete: bool = False
    metadata: Metadata | None = None


class UsageUpdate(Event, frozen=True, tag="usage"):
    """Token counts so far. A later update replaces an earlier one."""

    usage: Usage


class Finished(Event, frozen=True, tag="finished"):
    """The clean end of the answer. `others` are the finishes of further candidates.

    `metadata` is what the wire adds about the answer at its end; it is merged with that of its start.
    """

    finish: Finish
    others: tuple[Finish | None, ...] = ()
    metadata: Metadata | None = None


class StreamFailed(Event, frozen=True, tag="stream_failed"):
    """The stream ended in an error, or ended before its end signal (`failure.kind` is "truncated")."""

    failure: Failure


AnyEvent: TypeAlias = (
    StreamStart | PartStart | PartDelta | MediaDelta | LogprobsDelta | PartEnd | UsageUpdate | Finished | StreamFailed
)
