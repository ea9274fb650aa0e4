"""One request in detail: the client's body, its meaning, the upstream calls, and the answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from dragoman.codecs.framing import begins_with_frame
from dragoman.gateway.capture import CapturedRequest, Phase
from dragoman.gateway.captured_values import Attempt
from dragoman.gateway.packed_pieces import Piece
from dragoman.gateway.state.base import Group, UsageRow, day_of
from dragoman.web.body_views import (
    BodyView,
    Frames,
    Interpretation,
    LossRow,
    interpret_answer,
    interpret_request,
    interpret_stream,
    loss_rows,
    text_of,
    view_body,
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
    """Format of the client."""
    format: str = ""
    """Format of the upstream."""
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
    """Result of the response cache: hit, miss or bypass; empty without a cache."""
    losses: int = 0
    """Number of losses, without notes."""
    failure: str = ""
    error: str = ""


def summary(request: CapturedRequest) -> Summary:
    record = request.record
    usage = record.usage
    return Summary(
        id=record.id,
        at=int(request.moment * _MILLI),
        phase=request.phase,
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
        duration=_milliseconds(record.seconds) if request.phase == "ended" else None,
        tokens=None if usage is None else Tokens(input=usage.input, output=usage.output, cached=usage.cached),
        cost=record.cost,
        cache=record.cache,
        losses=sum(loss.refusable for loss in record.losses),
        failure=record.failure,
        error=record.error,
    )


def usage_of(requests: Iterable[CapturedRequest], groups: Sequence[Group], since: float) -> list[UsageRow]:
    """Sums up ended requests, as the database does."""
    sums: dict[tuple[str, str, str, str], UsageRow] = {}
    for request in requests:
        record, usage = request.record, request.record.usage
        if request.phase != "ended" or request.moment < since:
            continue
        model = (record.upstream, record.target) if "model" in groups else ("", "")
        key = (record.key if "key" in groups else "", *model, day_of(request.moment) if "day" in groups else "")
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
    body: BodyView | None


class UpstreamSide(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt."""

    upstream: str
    model: str
    format: str
    is_same: bool
    method: str
    url: str
    headers: dict[str, str]
    body: BodyView | None
    began: float
    ended: float | None = None
    status: int | None = None
    failure: str = ""
    error: str = ""
    answer: BodyView | None = None


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer, from the upstream to the client."""

    received: BodyView | None = None
    meant: Interpretation | None = None
    sent: BodyView | None = None


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One read from the upstream's stream, and what was sent to the client for it."""

    at: float
    received: str = ""
    sent: str = ""
    received_size: int = 0
    sent_size: int = 0


class RequestDetail(Struct, frozen=True, kw_only=True, omit_defaults=True):
    summary: Summary
    client: ClientSide
    meant: Interpretation | None
    attempts: list[UpstreamSide]
    losses: list[LossRow]
    """Losses of the request; paths refer to the client's body."""
    losses_back: list[LossRow]
    """Losses of the answer; paths refer to the intermediate format."""
    answer: Answer
    timeline: list[Step]
    unheld: int = 0
    """Number of stream pieces that were not kept."""
    unheld_size: int = 0


def request_detail(request: CapturedRequest) -> RequestDetail:
    # Copy: the request may grow or be evicted meanwhile.
    record, attempts, pieces = request.record, list(request.attempts), list(request.pieces)
    last = attempts[-1] if attempts else None
    losses = () if last is None else last.losses
    return RequestDetail(
        summary=summary(request),
        client=ClientSide(
            method=request.method, path=request.path, headers=dict(request.headers), body=view_body(request.body)
        ),
        meant=None
        if request.body is None or _is_token_count(request)
        else interpret_request(request.body, record.client),
        attempts=[_attempt(one) for one in attempts],
        losses=loss_rows(losses),
        losses_back=loss_rows(record.losses[len(losses) :]),
        answer=_streamed_answer(pieces, last, is_cut=bool(request.unheld))
        if pieces and last
        else _whole_answer(request, last),
        timeline=_timeline(pieces),
        unheld=request.unheld,
        unheld_size=request.unheld_bytes,
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
        body=view_body(attempt.body),
        began=_milliseconds(attempt.began),
        ended=None if attempt.ended is None else _milliseconds(attempt.ended),
        status=attempt.status,
        failure=attempt.failure,
        error=attempt.error,
        answer=view_body(attempt.answer),
    )


def _is_token_count(request: CapturedRequest) -> bool:
    """Whether this was a token count request, which has no body in the intermediate format."""
    return request.record.operation == "count"


def _whole_answer(request: CapturedRequest, last: Attempt | None) -> Answer:
    received = None if last is None else last.answer
    if _is_token_count(request):
        return Answer(received=view_body(received), sent=view_body(request.answer))
    if received is None:  # no upstream answered: the body is the gateway's own
        meant = (
            None
            if request.answer is None
            else interpret_answer(request.answer, request.record.client, request.record.status)
        )
        return Answer(meant=meant, sent=view_body(request.answer))
    assert last is not None  # noqa: S101 - an upstream answered
    return Answer(
        received=view_body(received),
        meant=interpret_answer(received, last.format, last.status or 200),
        sent=view_body(request.answer),
    )


def _streamed_answer(pieces: Sequence[Piece], last: Attempt, *, is_cut: bool) -> Answer:
    received = [data for _, data, _ in pieces]
    return Answer(
        received=_join_pieces(received, is_cut=is_cut),
        meant=interpret_stream(received, last.format),
        sent=_join_pieces([left for _, _, left in pieces], is_cut=is_cut),
    )


def _join_pieces(pieces: Sequence[bytes], *, is_cut: bool) -> BodyView:
    joined = b"".join(pieces)
    return BodyView(text=text_of(joined), size=len(joined), is_cut=is_cut)


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
    """One direction of a stream; detects binary frames by the first bytes."""

    def __init__(self) -> None:
        self._frames: Frames | None = None
        self._is_open = False

    def text(self, piece: bytes) -> str:
        if piece and not self._is_open:
            self._is_open = True
            self._frames = Frames() if begins_with_frame(piece) else None
        return piece.decode("utf-8", "replace") if self._frames is None else self._frames.text(piece)


def _milliseconds(seconds: float) -> float:
    return round(seconds * _MILLI, 2)
