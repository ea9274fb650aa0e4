"""One request, opened: what the client said, what it means, what the upstream was told, and the way back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from dragoman.codecs.framing import begins_with_frame
from dragoman.gateway.capture import Attempt, CapturedRequest, Phase, Piece
from dragoman.gateway.state.base import Group, UsageRow, day_of
from dragoman.web.live_view import (
    Frames,
    Meant,
    Shown,
    Told,
    meant_by_answer,
    meant_by_request,
    meant_by_stream,
    shown,
    text_of,
    told,
)

_MILLI = 1000


class Tokens(Struct, frozen=True, kw_only=True, omit_defaults=True):
    input: int
    output: int
    cached: int | None = None


class Summary(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the feed. Times are in milliseconds."""

    id: str
    at: int
    """Since 1970."""
    phase: Phase
    operation: str
    client: str
    """The format that the client speaks."""
    format: str = ""
    """And the upstream."""
    model: str = ""
    route: str = ""
    upstream: str = ""
    target: str = ""
    key: str = ""
    stream: bool = False
    status: int = 0
    attempts: int = 0
    first_byte: float | None = None
    duration: float | None = None
    tokens: Tokens | None = None
    cost: float | None = None
    cache: str = ""
    """What the response cache had: hit, miss or bypass; empty where there is none."""
    losses: int = 0
    """Without what is mere bookkeeping."""
    failure: str = ""
    error: str = ""


def summary(held: CapturedRequest) -> Summary:
    record = held.record
    usage = record.usage
    return Summary(
        id=record.id,
        at=int(held.moment * _MILLI),
        phase=held.phase,
        operation=record.operation,
        client=record.client,
        format=record.format,
        model=record.model,
        route=record.route,
        upstream=record.upstream,
        target=record.target,
        key=record.key,
        stream=record.stream,
        status=record.status,
        attempts=record.attempts,
        first_byte=None if record.first_byte is None else _milliseconds(record.first_byte),
        duration=_milliseconds(record.seconds) if held.phase == "ended" else None,
        tokens=None if usage is None else Tokens(input=usage.input, output=usage.output, cached=usage.cached),
        cost=record.cost,
        cache=record.cache,
        losses=sum(loss.refusable for loss in record.losses),
        failure=record.failure,
        error=record.error,
    )


def usage_of(requests: Iterable[CapturedRequest], groups: Sequence[Group], since: float) -> list[UsageRow]:
    """Requests that have ended, added up as the database does it."""
    sums: dict[tuple[str, str, str, str], UsageRow] = {}
    for held in requests:
        record, usage = held.record, held.record.usage
        if held.phase != "ended" or held.moment < since:
            continue
        model = (record.upstream, record.target) if "model" in groups else ("", "")
        key = (record.key if "key" in groups else "", *model, day_of(held.moment) if "day" in groups else "")
        old = sums.get(key)
        sums[key] = UsageRow(
            key=key[0],
            upstream=key[1],
            model=key[2],
            day=key[3],
            requests=1 + (old.requests if old else 0),
            failed=bool(record.failure) + (old.failed if old else 0),
            input=(usage.input if usage else 0) + (old.input if old else 0),
            output=(usage.output if usage else 0) + (old.output if old else 0),
            cost=(record.cost or 0.0) + (old.cost if old else 0.0),
        )
    return list(sums.values())


class ClientSide(Struct, frozen=True, kw_only=True):
    method: str
    path: str
    headers: dict[str, str]
    body: Shown | None


class UpstreamSide(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt."""

    upstream: str
    model: str
    format: str
    is_same: bool
    method: str
    url: str
    headers: dict[str, str]
    body: Shown | None
    began: float
    ended: float | None = None
    status: int | None = None
    failure: str = ""
    error: str = ""
    answer: Shown | None = None


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The way back."""

    received: Shown | None = None
    meant: Meant | None = None
    sent: Shown | None = None


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came at one moment of a stream, and what left because of it."""

    at: float
    received: str = ""
    sent: str = ""
    received_size: int = 0
    sent_size: int = 0


class Opened(Struct, frozen=True, kw_only=True, omit_defaults=True):
    summary: Summary
    client: ClientSide
    meant: Meant | None
    attempts: list[UpstreamSide]
    losses: list[Told]
    """On the way there. Paths lead to places in the client's body."""
    losses_back: list[Told]
    """Paths lead to places in the intermediate format."""
    answer: Answer
    timeline: list[Step]
    unheld: int = 0
    """Pieces of the stream that were too many to be held."""
    unheld_size: int = 0


def opened(held: CapturedRequest) -> Opened:
    # As it is now: it may grow, or have to make room, while it is looked at.
    record, attempts, pieces = held.record, list(held.attempts), list(held.pieces)
    last = attempts[-1] if attempts else None
    there = () if last is None else last.losses
    return Opened(
        summary=summary(held),
        client=ClientSide(method=held.method, path=held.path, headers=dict(held.headers), body=shown(held.body)),
        meant=None if held.body is None or _counts(held) else meant_by_request(held.body, record.client),
        attempts=[_attempt(one) for one in attempts],
        losses=told(there),
        losses_back=told(record.losses[len(there) :]),
        answer=_streamed(pieces, last, is_cut=bool(held.unheld)) if pieces and last else _whole(held, last),
        timeline=_timeline(pieces),
        unheld=held.unheld,
        unheld_size=held.unheld_bytes,
    )


def _attempt(attempt: Attempt) -> UpstreamSide:
    return UpstreamSide(
        upstream=attempt.upstream,
        model=attempt.model,
        format=attempt.format,
        is_same=attempt.is_same,
        method=attempt.method,
        url=attempt.url,
        headers=dict(attempt.headers),
        body=shown(attempt.body),
        began=_milliseconds(attempt.began),
        ended=None if attempt.ended is None else _milliseconds(attempt.ended),
        status=attempt.status,
        failure=attempt.failure,
        error=attempt.error,
        answer=shown(attempt.answer),
    )


def _counts(held: CapturedRequest) -> bool:
    """It asked for a number, which no format has other words for."""
    return held.record.operation == "count"


def _whole(held: CapturedRequest, last: Attempt | None) -> Answer:
    received = None if last is None else last.answer
    if _counts(held):
        return Answer(received=shown(received), sent=shown(held.answer))
    if received is None:  # no upstream was asked, or none answered: the text is ours
        meant = None if held.answer is None else meant_by_answer(held.answer, held.record.client, held.record.status)
        return Answer(meant=meant, sent=shown(held.answer))
    assert last is not None  # noqa: S101 - whose answer this is
    return Answer(
        received=shown(received),
        meant=meant_by_answer(received, last.format, last.status or 200),
        sent=shown(held.answer),
    )


def _streamed(pieces: Sequence[Piece], last: Attempt, *, is_cut: bool) -> Answer:
    received = [came for _, came, _ in pieces]
    return Answer(
        received=_joined(received, is_cut=is_cut),
        meant=meant_by_stream(received, last.format),
        sent=_joined([left for _, _, left in pieces], is_cut=is_cut),
    )


def _joined(pieces: Sequence[bytes], *, is_cut: bool) -> Shown:
    whole = b"".join(pieces)
    return Shown(text=text_of(whole), size=len(whole), is_cut=is_cut)


def _timeline(pieces: Sequence[Piece]) -> list[Step]:
    received, sent = _Side(), _Side()
    return [
        Step(
            at=_milliseconds(at),
            received=received.text(came),
            sent=sent.text(left),
            received_size=len(came),
            sent_size=len(left),
        )
        for at, came, left in pieces
    ]


class _Side:
    """One direction of a stream: whether it is binary its first bytes tell."""

    def __init__(self) -> None:
        self._frames: Frames | None = None
        self._begun = False

    def text(self, piece: bytes) -> str:
        if piece and not self._begun:
            self._begun = True
            self._frames = Frames() if begins_with_frame(piece) else None
        return piece.decode("utf-8", "replace") if self._frames is None else self._frames.text(piece)


def _milliseconds(seconds: float) -> float:
    return round(seconds * _MILLI, 2)
