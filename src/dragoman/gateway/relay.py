"""Sends a client's request to the first upstream that answers, and relays the answer.

Until the first byte was sent to the client, a request may be retried at another upstream; after that, never.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from msgspec import structs

from dragoman.drivers.base import failure_in
from dragoman.drivers.remote import Call, Channel, error_of, failure_within, missing_answer, send_once
from dragoman.drivers.retries import RetryPolicy
from dragoman.drivers.transport import HttpResponse, read_whole, transport_error
from dragoman.errors import DecodeError, EncodeError, LimitExceeded, ProviderError, provider_error
from dragoman.gateway.answer_keys import KeyFilter, quotes_key, without_keys_in
from dragoman.gateway.capture import CapturedRequest
from dragoman.gateway.capturing_translator import CapturingTranslator
from dragoman.gateway.client_request import ClientRequest, UpstreamCall
from dragoman.gateway.exchange import Budget, Exchange
from dragoman.gateway.gateway_errors import encode_failure, unencodable_request
from dragoman.gateway.request_records import Record
from dragoman.gateway.routing import Candidate, Plan
from dragoman.gateway.upstream_answers import OpenAnswer, Refusal, StreamedAnswer, WholeAnswer
from dragoman.gateway.upstream_calls import prepare_call, translate_answer
from dragoman.gateway.upstream_http import Sink, UpstreamResponse, stream_to
from dragoman.gateway.upstreams import FINAL, Upstream, was_processed
from dragoman.ir import Failure, StreamFailed
from dragoman.loss import Loss
from dragoman.streams import StreamEncoder, StreamTranslator

T = TypeVar("T")

_RETRY = RetryPolicy(first_delay=0.25, longest_delay=4.0, longest_hint=10.0)
_OK, _BAD_GATEWAY = 200, 502
"""The second is for failures of an upstream without a status."""
_NO_WORDS = "the upstream reported an error without a message"
_JSON_STREAMS = frozenset({"gemini", "vertex", "ollama-chat"})
"""Formats whose streams some servers send as `application/json`."""
_OF_HTTP = frozenset({405, 408, 415, 431, 501, 502})
"""Statuses for which no format has an error type: the body has the nearest type, and the status is kept."""
# SDKs retry a 501 unless this header tells them not to.
_OF_STATUS = {401: {"www-authenticate": "Bearer"}, 501: {"x-should-retry": "false"}}
_SHOWN_LOSSES = 5
_MOST_REMEMBERED, _SHORT_WORDS = 256, 500
_loss_words: dict[tuple[Loss, ...], str] = {}
"""Losses -> their header value. Answers of one provider to clients of one format mostly have the same losses."""
_LONGEST_HEADER = 2_000
_UNPRINTABLE = re.compile(r"[^\x20-\x7e\xa0-\xff]+")
# Headers that are returned from an upstream of the client's own format.
_PASSED_BACK = frozenset(
    {"content-type", "retry-after", "retry-after-ms", "request-id", "x-request-id", "x-should-retry"}
    | {"x-amzn-errortype", "x-amzn-requestid", "openai-processing-ms"}
)
INERT = {"x-content-type-options": "nosniff", "content-security-policy": "sandbox; default-src 'none'"}
"""Headers for what a provider or another client wrote, of any content type: a browser must not run it, because the
page has the same origin."""
_LIMITS_BACK = ("x-ratelimit-", "anthropic-ratelimit-")
_MOST_LIMITS_BACK = 31
"""Headers about limits that are returned. Some clients refuse an answer with more than 100 headers."""


class Failed(Exception):
    """No upstream answered. `raw` is the upstream's error, if it is in the client's own format."""

    def __init__(self, failure: Failure, raw: Refusal | None = None) -> None:
        self.failure = failure
        self.raw = raw
        super().__init__(failure.message)


LARGE = 256 << 10
"""Bytes of a body that can be converted in a few milliseconds; a larger one would block the event loop."""


async def off_loop_if_large(size: int, work: Callable[..., T], *given: Any) -> T:
    return work(*given) if size <= LARGE else await asyncio.to_thread(work, *given)


class Relay:
    """Sends requests to upstreams and relays their answers."""

    def __init__(self, answer_limit: int = 256 << 20, answers: int = 512 << 20) -> None:
        self._answer_limit = answer_limit
        """Maximum bytes of one answer that does not stream."""
        self._answers = Budget(answers)
        """Maximum bytes of all such answers together, from their arrival to their translation."""

    # ── asking ──

    def ask(self, client_request: ClientRequest, plan: Plan, record: Record) -> Awaitable[WholeAnswer | StreamedAnswer]:
        """Return the first answer that begins. Raises `Failed`, and `DecodeError` for an invalid request."""
        return self.first_answer(plan, record, partial(self._attempt, client_request, plan, record))

    async def first_answer(self, plan: Plan, record: Record, attempt: Callable[[Candidate], Awaitable[T]]) -> T:
        """Try each candidate in turn. Raises `Failed`.

        A candidate is retried only after a failure that proves that the request was not processed: any other request
        could run, and cost, twice.
        """
        waiting = _admit_by_breaker(plan.candidates)
        again: list[Candidate] = []
        while True:
            candidate = waiting.pop(0)
            record.attempts += 1
            delay: float | None = None
            try:
                return await attempt(candidate)
            except EncodeError as error:
                problem = Failed(unencodable_request(error))
            except ProviderError as error:
                problem = as_failed(error, candidate.upstream)
                if error.kind in FINAL:
                    break
                if was_processed(error):
                    waiting = [one for one in waiting if not _is_same_target(one, candidate)]
                else:
                    again.append(candidate)
                    delay = _delay(record.attempts, error, plan)
            if waiting:
                continue
            if delay is None:
                break
            await asyncio.sleep(delay)
            waiting, again = again, []
        try:
            raise problem
        finally:
            # Break the cycle between the error and its traceback, which would keep everything in these frames, such
            # as the body of an answer, until the next garbage collection.
            del problem

    async def _attempt(
        self, client_request: ClientRequest, plan: Plan, record: Record, candidate: Candidate
    ) -> WholeAnswer | StreamedAnswer:
        upstream = candidate.upstream
        if len(client_request.body) <= LARGE:
            upstream_call = prepare_call(client_request, candidate, plan.settings)
        else:
            upstream_call = await asyncio.to_thread(prepare_call, client_request, candidate, plan.settings)
        record.upstream, record.target = upstream.name, candidate.model
        record.format, record.losses = upstream_call.channel.provider.format, upstream_call.losses
        capture = record.capture
        if capture is not None:
            capture.record_attempt(upstream_call, upstream.name, candidate.model)
        trace = record.trace
        if trace is not None:
            trace.record_attempt(record, upstream_call.channel, upstream_call.call)
        breaker = candidate.breaker
        breaker.begin()
        upstream.in_flight += 1
        try:
            started = await (
                self._stream(upstream_call, upstream, capture)
                if client_request.stream
                else self._whole(upstream_call, capture)
            )
        except ProviderError as error:
            breaker.record_failure(error)
            upstream.in_flight -= 1
            if capture is not None:
                capture.record_refusal(upstream_call, error)
            if trace is not None:
                trace.record_refusal(error.kind, error.status)
            _attach_refusal(error, upstream_call.call, upstream_call.channel, same=upstream_call.same)
            raise
        except BaseException:
            breaker.release()
            upstream.in_flight -= 1
            raise
        breaker.record_success()
        if trace is not None and isinstance(started, StreamedAnswer):
            trace.began(time.monotonic() - upstream_call.call.started)
        if isinstance(started, WholeAnswer):
            upstream.in_flight -= 1
            if trace is not None:
                trace.record_answer(started.completion)
        return started

    async def _whole(self, upstream_call: UpstreamCall, capture: CapturedRequest | None) -> WholeAnswer:
        response = await send_once(upstream_call.channel, upstream_call.call)
        body = response.whole() if isinstance(response, UpstreamResponse) else b""
        if body and len(body) <= LARGE:
            if capture is not None:
                capture.record_upstream_answer(response.status, body)
            return _read_whole_answer(upstream_call, response, body)
        with self.counting_bytes() as count:
            body = body or await read_whole(response, self._answer_limit, count=count)
            if capture is not None:
                capture.record_upstream_answer(response.status, body)
            return await off_loop_if_large(len(body), _read_whole_answer, upstream_call, response, body)

    @contextmanager
    def counting_bytes(self, most: int | None = None) -> Iterator[Callable[[int], None]]:
        """Count the bytes of an answer that is read, until the end of the block: at most `most`.

        An answer beyond a limit is a failure of its upstream ("server"): "too_large" would blame the request.
        """
        budget, limit, taken = self._answers, most or self._answer_limit, 0

        def count(size: int) -> None:
            nonlocal taken
            if taken + size > limit:
                raise transport_error("server", f"the answer is larger than {limit} bytes")
            if not budget.take(size):
                raise transport_error("server", "the gateway's memory for answers is full")
            taken += size

        try:
            yield count
        finally:
            budget.used -= taken

    async def _stream(
        self, upstream_call: UpstreamCall, upstream: Upstream, capture: CapturedRequest | None
    ) -> StreamedAnswer:
        response = await send_once(upstream_call.channel, upstream_call.call)
        if _is_whole(response, upstream_call):
            body = await read_whole(response, upstream_call.channel.limits.error, truncate=True)
            raise _invalid_answer(upstream_call, failure_within(upstream_call.channel, upstream_call.call, body))
        translator = (
            upstream_call.translator() if capture is None else capture.listening(upstream_call, response.status)
        )
        keys = KeyFilter(upstream_call.channel)
        try:
            first = await _first(response, translator, keys)
        except DecodeError as error:
            response.close()
            raise _invalid_answer(upstream_call, None, error) from error
        except BaseException:
            response.close()
            raise
        return StreamedAnswer(
            upstream_call, upstream, response, translator, first, _headers_to_pass(response, upstream_call), keys
        )

    # ── answering ──

    async def stream(
        self,
        streamed: StreamedAnswer,
        exchange: Exchange,
        publish: Callable[[bytes], None] | None,
        ending: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Forward each chunk as it arrives. When either side disconnects, the other is closed immediately.

        `ending` is awaited before the answer ends.
        """
        response, translator = streamed.response, streamed.translator
        try:
            if publish is not None:
                publish(streamed.first)
            onward = _onward(translator, exchange.write, publish, streamed.keys)
            await stream_to(response, onward, exchange.drain)
            if streamed.keys.held:
                onward(b"")
        except _BeyondLimit:
            response.close()
        except ProviderError as error:
            last = _break_off(streamed, exchange, error.failure)
            if publish is not None and last:
                publish(last)
            return
        is_cut = not translator.clean and translator.failure is None
        last = translator.close()
        if is_cut and translator.failure is not None and _passes_unchanged(streamed.upstream_call):
            return  # the bytes end within an event: cut the client's connection too, as if the upstream's had broken
        if publish is not None:
            publish(last)
        if ending is not None:
            await ending()
        exchange.finish(last)

    async def open(self, call: Call, candidate: Candidate, *, same: bool) -> OpenAnswer:
        """Return an answer that has begun; the caller reads its body. Raises `ProviderError`."""
        upstream, breaker = candidate.upstream, candidate.breaker
        breaker.begin()
        upstream.in_flight += 1
        try:
            response = await send_once(upstream.channel, call)
        except ProviderError as error:
            breaker.record_failure(error)
            upstream.in_flight -= 1
            _attach_refusal(error, call, upstream.channel, same=same)
            raise
        except BaseException:
            breaker.release()
            upstream.in_flight -= 1
            raise
        breaker.record_success()
        return OpenAnswer(upstream, response)

    async def forward(self, upstream_call: UpstreamCall, upstream: Upstream) -> Refusal:
        """Send the request and return the answer, both unchanged. Raises `Failed`."""
        try:
            response = await send_once(upstream_call.channel, upstream_call.call)
            with self.counting_bytes() as count:
                body = await read_whole(response, self._answer_limit, count=count)
        except ProviderError as error:
            _attach_refusal(error, upstream_call.call, upstream_call.channel, same=upstream_call.same)
            raise as_failed(error, upstream) from error
        return Refusal(response.status, kept_headers(response.headers, upstream_call.channel), body)


def _read_whole_answer(upstream_call: UpstreamCall, response: HttpResponse, body: bytes) -> WholeAnswer:
    """Return an answer that did not stream, in the client's format. Raises `ProviderError`."""
    channel, call, same = upstream_call.channel, upstream_call.call, upstream_call.same
    try:
        completion, encoded = translate_answer(upstream_call, body)
    except (DecodeError, EncodeError) as error:
        raise _invalid_answer(upstream_call, failure_within(channel, call, body), error) from error
    stated = failure_within(channel, call, body)
    missing = None if stated is not None else missing_answer(channel, completion, body)
    if missing is not None:
        raise _invalid_answer(upstream_call, missing)
    failure = stated or failure_in(completion)
    # An answer in the client's own format may itself state that it failed, as those of the Responses API do.
    if failure is not None and not (
        same and completion.id and completion.finish is not None and not quotes_key(channel, body)
    ):
        raise _invalid_answer(upstream_call, failure)
    if not completion.messages and completion.finish is None and not same:
        raise _invalid_answer(upstream_call, Failure("server", "the upstream's answer holds no message"))
    # A failed answer may be encoded as an error in the client's format.
    status = response.status if encoded.status == _OK else encoded.status
    return WholeAnswer(upstream_call, encoded, completion, _headers_to_pass(response, upstream_call), status)


async def _first(response: HttpResponse, translator: StreamTranslator, keys: KeyFilter) -> bytes:
    """Return the first bytes for the client. A stream that fails before its first content may be retried elsewhere."""
    first, ended = b"", False
    while not first and not ended:
        data = await response.chunk()
        ended = not data
        if not ended or keys.held:
            first = translator.feed(keys.feed(data))
        if ended:
            first += translator.close()
        if translator.failure is not None and not _has_content(translator):
            failure = translator.failure
            if failure.raw_type == LimitExceeded.__name__:  # the answer is too large, not the request
                failure = structs.replace(failure, kind="server", status=_BAD_GATEWAY)
            raise provider_error(structs.replace(failure, message=failure.message or _NO_WORDS))
    return first


class _BeyondLimit(Exception):
    """The stream failed at a limit of the translator. The rest is not read: it may have no end."""


def _onward(
    translator: StreamTranslator, write: Sink, publish: Callable[[bytes], None] | None, keys: KeyFilter
) -> Sink:
    """Return a sink that writes the translation of each read in one write."""
    feed = translator.feed

    def nothing() -> bytes:
        failure = translator.failure
        if failure is not None and failure.raw_type == LimitExceeded.__name__:
            raise _BeyondLimit
        return b""

    if publish is None and len(keys.keys) == 1:  # the usual case, with as few Python calls per chunk as possible
        key = keys.keys[0]
        return lambda data: write(
            feed(data if data[-1:] == b"\n" and data.find(key) < 0 and not keys.held else keys.feed(data)) or nothing()
        )

    def write_and_publish(data: bytes) -> bool:
        out = feed(keys.feed(data)) or nothing()
        crowded = write(out)
        if publish is not None:
            publish(out)
        return crowded

    return write_and_publish


def _has_content(translator: StreamTranslator) -> bool:
    return bool(translator.completion.messages and translator.completion.messages[0].parts)


def _admit_by_breaker(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates whose breakers are closed or due for a trial. Raises `Failed` if there are none.

    If there are several candidates and failures opened all their breakers, they are tried nevertheless: a late answer
    is better than none. A rate-limited model is not tried for as long as its provider asked.
    """
    fit = [one for one in candidates if one.breaker.admits()]
    if not fit and len(candidates) > 1:
        fit = [one for one in candidates if one.breaker.limited is None]
    if fit:
        return fit
    refusals = [one.breaker.refusal(f"{one.upstream.name}/{one.model}") for one in candidates]
    raise Failed(min(refusals, key=lambda refusal: refusal.retry_after or 0.0))


def _is_same_target(one: Candidate, other: Candidate) -> bool:
    """Whether both are the same model of the same provider, perhaps with another key: a repetition, not a fallback."""
    return (one.upstream.place, one.model) == (other.upstream.place, other.model)


def _delay(attempt: int, error: ProviderError, plan: Plan) -> float | None:
    """Return the seconds until refused candidates are retried; None if they are not."""
    return structs.replace(_RETRY, attempts=plan.settings.attempts).delay_after(attempt, error)


def as_failed(error: ProviderError, upstream: Upstream) -> Failed:
    failure = error.failure
    if failure.kind == "authentication":
        return Failed(own_key_refused(failure, upstream))
    raw = getattr(error, "raw_refusal", None)
    if failure.kind == "server" and not _is_error(failure.status):
        failure = structs.replace(failure, status=_BAD_GATEWAY)
    return Failed(failure, raw if isinstance(raw, Refusal) else None)


def _is_error(status: int | None) -> bool:
    """Whether a client can read this status as an error: a redirect would be for the gateway, not for the client."""
    return status is not None and 400 <= status <= 599  # noqa: PLR2004 - the statuses of errors


def own_key_refused(failure: Failure, upstream: Upstream) -> Failure:
    """Return an error stating that the gateway's key was refused: clients relate a 401 and its code to their key."""
    whose = f"the gateway's key for provider {upstream.name!r} was refused (not the key of the client)"
    return Failure("authentication", f"{whose}: {failure.message}", 401, request_id=failure.request_id)


def _attach_refusal(error: ProviderError, call: Call, channel: Channel, *, same: bool) -> None:
    """Attach the upstream's error body if it is in the client's own format and does not quote a key of ours."""
    if not same or call.status is None or not call.received or not _is_error(error.status):
        return
    body = call.received[0]
    try:
        channel.codec.decode_error(body, call.status, call.headers)
    except DecodeError:  # the page of a proxy in between, or other JSON than an error of this format
        return
    if not quotes_key(channel, body):
        error.raw_refusal = Refusal(call.status, kept_headers(call.headers, channel), body)  # type: ignore[attr-defined]


def _invalid_answer(
    upstream_call: UpstreamCall, failure: Failure | None, error: DecodeError | EncodeError | None = None
) -> ProviderError:
    """Return the error for an answer with a success status whose body is not a valid answer."""
    if failure is None:
        reason = "it is not a stream" if error is None else str(error)
        failure = Failure("server", f"the upstream's answer does not follow its format: {reason}")
    status = _BAD_GATEWAY if failure.kind == "server" else failure.status
    # Drop vendor-specific details: the contents of an invalid answer follow no rules.
    failure = structs.replace(failure, status=status, metadata=None, details=None)
    return error_of(upstream_call.channel, failure)


def _is_whole(response: HttpResponse, upstream_call: UpstreamCall) -> bool:
    """Whether the answer is a single document although a stream was requested."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    streams_json = upstream_call.channel.provider.format in _JSON_STREAMS
    return not streams_json and kind in {"application/json", "text/html"}


def _headers_to_pass(response: HttpResponse, upstream_call: UpstreamCall) -> dict[str, str]:
    return kept_headers(response.headers, upstream_call.channel) if upstream_call.same else {}


def kept_headers(headers: Mapping[str, str], channel: Channel) -> dict[str, str]:
    kept: dict[str, str] = {}
    limits = 0
    for name, value in headers.items():
        if name in _PASSED_BACK:
            kept[name] = value
        elif limits < _MOST_LIMITS_BACK and name.startswith(_LIMITS_BACK):
            limits += 1
            kept[name] = value
    return without_keys_in(kept, channel)


def _break_off(streamed: StreamedAnswer, exchange: Exchange, failure: Failure) -> bytes:
    """End the stream with an error in the client's format, if possible, and return it; else the connection is cut."""
    translator, upstream_call = streamed.translator, streamed.upstream_call
    protocol = upstream_call.client_request.protocol
    if _passes_unchanged(upstream_call):  # so this code must report breaks
        clean = translator.clean
        translator.fail(failure)
        if not clean or not protocol.event_end:
            return b""
        encoder = StreamEncoder(protocol.format)
        last = encoder.encode([StreamFailed(failure)]) + encoder.close()
        exchange.finish(translator.capture_last(last) if isinstance(translator, CapturingTranslator) else last)
        return last
    last = translator.fail(failure)
    exchange.finish(last)
    return last


def _passes_unchanged(upstream_call: UpstreamCall) -> bool:
    """Whether the bytes of the answer pass unchanged; also if only the request was adapted to the server."""
    return upstream_call.client_request.protocol.format == upstream_call.channel.provider.format


def loss_headers(losses: Sequence[Loss]) -> dict[str, str]:
    """Return headers with the number of losses and the first of them."""
    if not losses:
        return {}
    shown = tuple(losses[:_SHOWN_LOSSES])
    words = _loss_words.get(shown)
    if words is None:
        text = "; ".join([" ".join(str(loss).split()) for loss in shown])
        words = text if text.isascii() and text.isprintable() else _UNPRINTABLE.sub(" ", text)
        if len(_loss_words) < _MOST_REMEMBERED and len(words) <= _SHORT_WORDS:
            _loss_words[shown] = words
    more = f"; and {len(losses) - _SHOWN_LOSSES} more" if len(losses) > _SHOWN_LOSSES else ""
    return {"x-dragoman-losses": str(len(losses)), "x-dragoman-lost": (words + more)[:_LONGEST_HEADER]}


def refuse(exchange: Exchange, failure: Failure, format: str, headers: Mapping[str, str]) -> int:
    """Send an error in the client's format; return its status."""
    encoded = encode_failure(failure, format)
    if failure.status in _OF_HTTP:
        encoded = structs.replace(encoded, status=failure.status)
    with suppress(KeyError):
        headers = {**headers, **_OF_STATUS[encoded.status]}
    exchange.send(encoded.status, {"content-type": "application/json", **encoded.headers, **headers}, encoded.content)
    return encoded.status
