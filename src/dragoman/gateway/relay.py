"""One request from a client to whichever upstream answers, and the answer back.

Until the first byte has gone to the client everything may be tried again elsewhere; after it, nothing is.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct, structs

from dragoman.codecs.encoded import Encoded
from dragoman.drivers.remote import send
from dragoman.drivers.retries import RetryPolicy, may_retry
from dragoman.drivers.transport import HttpResponse, read_whole
from dragoman.errors import DecodeError, EncodeError, ProviderError, provider_error
from dragoman.gateway.capture import Heard, Held
from dragoman.gateway.questions import Prepared, Question, answer, prepare
from dragoman.gateway.records import Record
from dragoman.gateway.routing import Candidate, Plan
from dragoman.gateway.server import Exchange
from dragoman.gateway.upstreams import FINAL, Upstream
from dragoman.gateway.wire import Sink, pour
from dragoman.gateway.wording import not_said, told
from dragoman.ir import Completion, Failure, StreamFailed
from dragoman.losses import Loss
from dragoman.streams import StreamEncoder, StreamTranslator

_RETRY = RetryPolicy(first_delay=0.25, longest_delay=4.0, longest_hint=10.0)
_BAD_GATEWAY = 502
"""What nobody upstream has told a status for."""
_OF_HTTP = frozenset({405, 408, 415, 431})
"""Statuses that no format has words for."""
_SHOWN_LOSSES = 5
_LONGEST_HEADER = 2_000
_UNPRINTABLE = re.compile(r"[^\x20-\x7e\xa0-\xff]+")
# Of an upstream's answer in the client's own format.
_PASSED_BACK = (
    "content-type",
    "retry-after",
    "retry-after-ms",
    "request-id",
    "x-request-id",
    "x-should-retry",
    "x-amzn-errortype",
    "x-amzn-requestid",
    "openai-processing-ms",
)
_LIMITS_BACK = ("x-ratelimit-", "anthropic-ratelimit-")


class Failed(Exception):
    """No upstream has answered. `raw` are the bytes of its refusal, where they are in the client's own format."""

    def __init__(self, failure: Failure, raw: Refusal | None = None) -> None:
        self.failure = failure
        self.raw = raw
        super().__init__(failure.message)


class Refusal(Struct, frozen=True):
    """An answer in the client's own format, as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Whole(Struct, frozen=True):
    """An answer that did not stream."""

    prepared: Prepared
    encoded: Encoded
    completion: Completion | None
    headers: dict[str, str]
    status: int = 200


class Flowing(Struct, frozen=True):
    """An answer that has begun to stream."""

    prepared: Prepared
    upstream: Upstream
    response: HttpResponse
    translator: StreamTranslator
    first: bytes
    headers: dict[str, str]

    def release(self) -> None:
        self.response.close()
        self.upstream.in_flight -= 1


class Relay:
    """What is the same for all requests of a gateway."""

    def __init__(self, answer_limit: int = 512 << 20) -> None:
        self._answer_limit = answer_limit

    # ── asking ──

    async def ask(self, question: Question, plan: Plan, record: Record) -> Whole | Flowing:
        """The first answer that begins. Raises `Failed`, and `DecodeError` for what the client sent."""
        candidates = _rested(plan.candidates)
        problem: Failed | None = None
        most = max(plan.settings.attempts, len(candidates))
        for attempt in range(1, most + 1):
            candidate = candidates[(attempt - 1) % len(candidates)]
            record.attempts = attempt
            try:
                return await self._attempt(question, candidate, plan, record)
            except EncodeError as error:
                problem = problem or Failed(not_said(error))
                if attempt >= len(candidates):
                    break
            except ProviderError as error:
                problem = _failed(error)
                delay = _delay(attempt, error, candidates, plan)
                if delay is None:
                    break
                await asyncio.sleep(delay)
        assert problem is not None  # noqa: S101 - there is at least one candidate
        raise problem

    async def _attempt(self, question: Question, candidate: Candidate, plan: Plan, record: Record) -> Whole | Flowing:
        upstream = candidate.upstream
        prepared = prepare(question, candidate, plan.settings)
        record.upstream, record.target = upstream.name, candidate.model
        record.format, record.losses = prepared.channel.provider.format, prepared.losses
        held = record.held
        if held is not None:
            held.attempted(prepared, upstream.name, candidate.model)
        trace = record.trace
        if trace is not None:
            trace.attempted(record, prepared.channel, prepared.call)
        upstream.breaker.begin()
        upstream.in_flight += 1
        try:
            begun = await (self._stream(prepared, upstream, held) if question.stream else self._whole(prepared, held))
        except ProviderError as error:
            upstream.breaker.failed(error)
            upstream.in_flight -= 1
            if held is not None:
                held.refused(prepared, error)
            if trace is not None:
                trace.refused(error.kind, error.status)
            raise _with_body(error, prepared) from error
        except BaseException:
            upstream.breaker.released()
            upstream.in_flight -= 1
            raise
        upstream.breaker.succeeded()
        if trace is not None and isinstance(begun, Flowing):
            trace.began(time.monotonic() - prepared.call.started)
        if isinstance(begun, Whole):
            upstream.in_flight -= 1
            if trace is not None:
                trace.answered(begun.completion)
        return begun

    async def _whole(self, prepared: Prepared, held: Held | None) -> Whole:
        response = await send(prepared.channel, prepared.call)
        body = await read_whole(response, self._answer_limit)
        if held is not None:
            held.received(response.status, body)
        try:
            completion, encoded = answer(prepared, body)
        except DecodeError as error:
            if prepared.same:  # not ours to judge
                return Whole(prepared, Encoded(body), None, _passed_back(response, prepared), response.status)
            raise _unreadable(error) from error
        return Whole(prepared, encoded, completion, _passed_back(response, prepared), response.status)

    async def _stream(self, prepared: Prepared, upstream: Upstream, held: Held | None) -> Flowing:
        response = await send(prepared.channel, prepared.call)
        translator = prepared.translator() if held is None else held.listening(prepared, response.status)
        try:
            first = await _first(response, translator)
        except BaseException:
            response.close()
            raise
        return Flowing(prepared, upstream, response, translator, first, _passed_back(response, prepared))

    # ── answering ──

    async def stream(
        self,
        flowing: Flowing,
        exchange: Exchange,
        heard: Callable[[bytes], None] | None,
        ending: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Each piece leaves as it comes. Whoever goes away, upstream or client, ends it for the other at once.

        `ending` is waited for before the answer ends.
        """
        response, translator = flowing.response, flowing.translator
        try:
            if heard is not None:
                heard(flowing.first)
            await pour(response, _onward(translator.feed, exchange.write, heard), exchange.drain)
        except ProviderError as error:
            _break_off(flowing, exchange, error.failure)
            return
        last = translator.close()
        if heard is not None:
            heard(last)
        if ending is not None:
            await ending()
        exchange.finish(last)

    async def forward(self, prepared: Prepared, upstream: Upstream) -> Refusal:
        """The same bytes there and back."""
        try:
            response = await send(prepared.channel, prepared.call)
            body = await read_whole(response, self._answer_limit)
        except ProviderError as error:
            upstream.breaker.failed(error)
            raise _failed(_with_body(error, prepared)) from error
        return Refusal(response.status, _kept(response.headers), body)


async def _first(response: HttpResponse, translator: StreamTranslator) -> bytes:
    """The first bytes for the client. A stream that fails before it has said anything may be asked for elsewhere."""
    first, ended = b"", False
    while not first and not ended:
        data = await response.chunk()
        ended = not data
        first = translator.close() if ended else translator.feed(data)
        if translator.failure is not None and not _said(translator):
            raise provider_error(translator.failure)
    return first


def _onward(feed: Callable[[bytes], bytes], write: Sink, heard: Callable[[bytes], None] | None) -> Sink:
    """What comes in one read leaves in one write."""
    if heard is None:
        return lambda data: write(feed(data))

    def overheard(data: bytes) -> bool:
        out = feed(data)
        crowded = write(out)
        heard(out)
        return crowded

    return overheard


def _said(translator: StreamTranslator) -> bool:
    return bool(translator.completion.messages and translator.completion.messages[0].parts)


def _rested(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Those that a request may be sent to. If none may, all are tried: an answer late is better than none."""
    fit = [one for one in candidates if one.upstream.breaker.admits()]
    if fit or len(candidates) > 1:
        return fit or candidates
    breaker = candidates[0].upstream.breaker
    wait = max(breaker.until - time.monotonic(), 0.0)
    name = candidates[0].upstream.name
    message = f"{name} has failed too often; it is asked again in {wait:.0f} s"
    raise Failed(Failure("overloaded", message, 503, retry_after=float(round(wait) or 1)))


def _delay(attempt: int, error: ProviderError, candidates: Sequence[Candidate], plan: Plan) -> float | None:
    """None: it is of no use. Another candidate is asked at once, the same one after a while."""
    if error.kind in FINAL:
        return None
    if attempt < len(candidates):
        return 0.0
    if attempt >= plan.settings.attempts or not may_retry(error):
        return None
    return structs.replace(_RETRY, attempts=plan.settings.attempts).delay_after(attempt, error)


def _failed(error: ProviderError) -> Failed:
    raw = getattr(error, "raw_refusal", None)
    failure = error.failure
    if failure.status is None and failure.kind == "server":
        failure = structs.replace(failure, status=_BAD_GATEWAY)
    return Failed(failure, raw if isinstance(raw, Refusal) else None)


def _with_body(error: ProviderError, prepared: Prepared) -> ProviderError:
    """The bytes of a refusal in the client's own format go with it, unless a key of ours is quoted in them."""
    call = prepared.call
    if not prepared.same or call.status is None or not call.received or error.status is None:
        return error
    body = call.received[0]
    secrets = [secret.reveal().encode() for secret in prepared.channel.credential.secrets]
    if not any(secret and secret in body for secret in secrets):
        error.raw_refusal = Refusal(call.status, _kept(call.headers), body)  # type: ignore[attr-defined]
    return error


def _unreadable(error: DecodeError) -> ProviderError:
    return provider_error(Failure("server", f"the upstream's answer is not what its format says: {error}", 502))


def _passed_back(response: HttpResponse, prepared: Prepared) -> dict[str, str]:
    return _kept(response.headers) if prepared.same else {}


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    kept = {name: headers[name] for name in _PASSED_BACK if name in headers}
    for name in headers:
        lowered = name.lower()
        if lowered.startswith(_LIMITS_BACK):
            kept[lowered] = headers[name]
    return kept


def _break_off(flowing: Flowing, exchange: Exchange, failure: Failure) -> None:
    """The client is told in its own format, where its stream can still say so; else the connection is cut."""
    translator, prepared = flowing.translator, flowing.prepared
    wire = prepared.question.wire
    # Also where only the request was fitted to the server: the answer passes as it is, and nobody else says it broke.
    if wire.format == prepared.channel.provider.format:
        clean = translator.clean
        translator.fail(failure)
        if not clean or not wire.event_end:
            return
        encoder = StreamEncoder(wire.format)
        last = encoder.encode([StreamFailed(failure)]) + encoder.close()
        exchange.finish(translator.told(last) if isinstance(translator, Heard) else last)
        return
    exchange.finish(translator.fail(failure))


def loss_headers(losses: Sequence[Loss]) -> dict[str, str]:
    """How many things did not cross, and the first of them."""
    if not losses:
        return {}
    shown = "; ".join(" ".join(str(loss).split()) for loss in losses[:_SHOWN_LOSSES])
    more = f"; and {len(losses) - _SHOWN_LOSSES} more" if len(losses) > _SHOWN_LOSSES else ""
    clean = _UNPRINTABLE.sub(" ", shown + more)
    return {"x-dragoman-losses": str(len(losses)), "x-dragoman-lost": clean[:_LONGEST_HEADER]}


def refuse(exchange: Exchange, failure: Failure, format: str, headers: Mapping[str, str]) -> int:
    """An error in the client's own words."""
    encoded = told(failure, format)
    if failure.status in _OF_HTTP:
        encoded = structs.replace(encoded, status=failure.status)
    with suppress(KeyError):
        headers = {**headers, "www-authenticate": {401: "Bearer"}[encoded.status]}
    exchange.send(encoded.status, {"content-type": "application/json", **encoded.headers, **headers}, encoded.content)
    return encoded.status
