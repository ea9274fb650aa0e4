"""The driver of all providers. Differences between them are in the `Channel`."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Self, Unpack
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw, Struct, structs

import dragoman
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.error_bodies import holds_error
from dragoman.codecs.failures import kind_of_status
from dragoman.codecs.registry import Codec
from dragoman.codecs.stream_limits import Limits
from dragoman.drivers.base import (
    CallMetadata,
    Choice,
    Defaults,
    Prompt,
    QueryResult,
    RawExchange,
    Settings,
    StreamResult,
    Tool,
    failure_in,
    result_of,
)
from dragoman.drivers.credentials import Credential
from dragoman.drivers.message_dicts import MessageLike
from dragoman.drivers.providers import Place, Provider, Target
from dragoman.drivers.query import build_request
from dragoman.drivers.retries import RetryHook, RetryNotice, RetryPolicy, announce, seconds_until
from dragoman.drivers.secret import hide_headers, hide_url
from dragoman.drivers.transport import (
    NOTHING_LISTENS,
    HttpRequest,
    HttpResponse,
    SizeLimits,
    Timeouts,
    Transport,
    read_whole,
    transport_error,
)
from dragoman.drivers.typed_output import OutputMode, mode_for
from dragoman.drivers.typed_queries import TypedQueries
from dragoman.errors import CONNECTION, DecodeError, ProviderError, provider_error
from dragoman.ir import AnyEvent, Completion, Failure, Finished, PartEnd, Request, StreamFailed
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog
from dragoman.passes.answers import legalise_answer
from dragoman.streams import StreamDecoder
from dragoman.translate import encode_request_for

if TYPE_CHECKING:
    from dragoman.drivers.embed import EmbeddingResult, EmbeddingSettings

_FIRST_ERROR = 300
_FIRST_REFUSAL, _LAST_ERROR = 400, 599
_NOT_FOUND = 404
_VERSION = re.compile(r"/v\d+(?:alpha|beta)?\d*$")
"""The version at the end of a base URL."""
_NO_ANSWER = "HTTP {}, which is not an answer of this API (redirects are not followed: check base_url)"
"""Redirects are not followed: the key must not reach another host."""
_SHOWN = 300
_GENERAL = frozenset({"invalid_request", "server"})
"""If the body states only one of these, the status is more exact: some providers call a timeout a server error."""
_USUAL_HEADERS = {"content-type": "application/json", "user-agent": f"dragoman/{dragoman.__version__}"}
_WORDS = ("message", "code", "parameter", "request_id", "raw_type")
"""Fields of a failure whose text comes from the provider."""
# Our request ids: process and number of the call.
_PROCESS = uuid.uuid4().hex
_count = count()


class Channel(Struct, frozen=True, kw_only=True):
    """Everything needed to connect to one provider."""

    provider: Provider
    codec: Codec
    base_url: str
    place: Place
    credential: Credential
    transport: Transport
    timeouts: Timeouts
    limits: SizeLimits
    retry: RetryPolicy
    on_retry: RetryHook | None
    headers: dict[str, str]

    def __repr__(self) -> str:
        return f"Channel({self.provider.name!r}, {hide_url(self.base_url)!r})"


class Call(Struct, kw_only=True):
    """State of one call."""

    request: Request
    http: HttpRequest
    encoded: Encoded
    timeouts: Timeouts
    keeps_raw: bool
    started: float
    attempts: int = 0
    first_byte: float | None = None
    status: int | None = None
    headers: Mapping[str, str] = {}
    sent: Mapping[str, str] = {}
    received: list[bytes] = []

    @classmethod
    def about(cls, http: HttpRequest, timeouts: Timeouts) -> Self:
        """A call without a model request, such as for a list of models."""
        nothing = Request(None, ())
        return cls(
            request=nothing,
            http=http,
            encoded=Encoded(b""),
            timeouts=timeouts,
            keeps_raw=False,
            started=time.monotonic(),
        )

    @property
    def deadline(self) -> float | None:
        total = self.timeouts.total
        return None if total is None else self.started + total


class RemoteDriver(TypedQueries):
    """A model of a provider. Made by `dragoman.connect`."""

    def __init__(self, channel: Channel, model: str, defaults: Defaults) -> None:
        self.channel = channel
        self.model = model
        self.defaults = defaults

    def __repr__(self) -> str:
        return f"<driver {self.name} at {hide_url(self.channel.base_url)}>"

    @property
    def name(self) -> str:
        return f"{self.channel.provider.name}/{self.model}"

    def output_mode(self, *, beside_tools: bool) -> OutputMode:
        """The default mode of typed answers for this model."""
        return mode_for(self.channel.codec.profile, self.name, beside_tools=beside_tools)

    async def _query(
        self,
        prompt: Prompt,
        tools: Sequence[Tool] | None,
        tool_choice: Choice,
        messages: Sequence[MessageLike],
        settings: Settings,
    ) -> QueryResult:
        merged: Defaults = {**self.defaults, **settings}
        request = build_request(prompt, tools=tools, tool_choice=tool_choice, messages=messages, settings=merged)
        call = self.prepare(request, merged, stream=False)
        try:
            return self._conclude(call, await self._answer(call))
        except ProviderError as error:
            if merged.get("errors", "raise") == "raise":
                raise
            return self._conclude(call, error.partial or Completion(()), error.failure)

    def _stream_query(
        self,
        prompt: Prompt,
        tools: Sequence[Tool] | None,
        tool_choice: Choice,
        messages: Sequence[MessageLike],
        settings: Settings,
    ) -> StreamResult:
        merged: Defaults = {**self.defaults, **settings}
        request = build_request(prompt, tools=tools, tool_choice=tool_choice, messages=messages, settings=merged)
        call = self.prepare(request, merged, stream=True)

        def conclude(completion: Completion, failure: Failure | None) -> QueryResult:
            return self._conclude(call, completion, failure)

        source = RemoteSource(self.channel, call)
        return StreamResult(source, conclude, provider=self.channel.provider.name, errors=merged.get("errors", "raise"))

    async def embed(self, inputs: str | Sequence[str], **settings: Unpack[EmbeddingSettings]) -> EmbeddingResult:
        """Vectors of texts, in order. Raises `NotConfigured` if the provider has no embeddings."""
        from dragoman.drivers.embed import embed  # noqa: PLC0415 - it imports this module

        return await embed(self.channel, self.model, inputs, settings)

    async def close(self) -> None:
        await self.channel.transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    def prepare(self, request: Request, settings: Settings, *, stream: bool) -> Call:
        """Prepares the call, except for its signature."""
        channel = self.channel
        provider = channel.provider
        model = request.model or self.model
        request = structs.replace(request, model=model, stream=stream)
        encoded = encode_request_for(_with_stream_keys(request, channel) if stream else request, channel.codec)
        target = Target(encoded.path, model, stream, channel.place)
        body = provider.body(encoded.content)
        if len(body) > channel.limits.request:
            raise transport_error("too_large", f"the request has {len(body)} bytes, more than the driver's limit")
        http = HttpRequest(
            url=channel.base_url + provider.path(target),
            headers=_headers(channel, encoded, settings.get("headers", {}), stream=stream),
            body=body,
        )
        total = settings.get("timeout")
        return Call(
            request=request,
            http=http,
            encoded=encoded,
            timeouts=channel.timeouts if total is None else structs.replace(channel.timeouts, total=total),
            keeps_raw=settings.get("raw", False),
            started=time.monotonic(),
        )

    async def _answer(self, call: Call) -> Completion:
        channel = self.channel
        response = await send(channel, call)
        body = await read_whole(response, channel.limits.response)
        call.received = [body]
        try:
            completion = channel.codec.decode_response(body)
        except DecodeError as error:
            unread = Failure("server", f"the answer does not follow its format: {error}", call.status)
            raise error_of(channel, failure_within(channel, call, body) or unread) from error
        failure = failure_within(channel, call, body) or missing_answer(channel, completion, body)
        failure = failure or failure_in(completion)
        if failure is not None:
            raise provider_error(error_of(channel, failure).failure, provider=channel.provider.name, partial=completion)
        return with_own_names(completion, call.request, channel.codec)

    def _conclude(self, call: Call, completion: Completion, failure: Failure | None = None) -> QueryResult:
        provider = self.channel.provider
        metadata = CallMetadata(
            provider=provider.name,
            model=completion.model or call.request.model,
            request_id=_request_id(provider, call.headers) or (None if failure is None else failure.request_id),
            attempts=call.attempts,
            seconds=time.monotonic() - call.started,
            first_byte_seconds=call.first_byte,
        )
        raw = _raw(call) if call.keeps_raw else None
        return result_of(completion, failure=failure, losses=call.encoded.losses, metadata=metadata, raw=raw)


# ── out ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _headers(channel: Channel, encoded: Encoded, own: Mapping[str, str], *, stream: bool) -> dict[str, str]:
    provider = channel.provider
    headers = {**_USUAL_HEADERS, **provider.headers, **encoded.headers, **channel.headers}
    for name, value in own.items():
        headers[name.lower()] = value
    if stream:
        # No compression: a compressor would hold back parts of a stream.
        headers.setdefault("accept-encoding", "identity")
    if provider.client_request_id:
        headers.setdefault(provider.client_request_id, f"{_PROCESS}-{next(_count)}")
    return headers


def _with_stream_keys(request: Request, channel: Channel) -> Request:
    keys = channel.provider.stream_keys
    if not keys:
        return request
    family = channel.codec.profile.family
    metadata = request.metadata or {}
    raw = {name: Raw(encode_json(value)) for name, value in keys.items()}
    return structs.replace(request, metadata={**metadata, family: {**raw, **metadata.get(family, {})}})


async def send(channel: Channel, call: Call) -> HttpResponse:
    """Sends the request and retries refusals that may pass; returns the first other response when it begins."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        # A cancelled task stops here, before anything is sent.
        await asyncio.sleep(0)
    while True:
        call.attempts += 1
        try:
            return await send_once(channel, call)
        except ProviderError as error:
            delay = channel.retry.delay_after(call.attempts, error)
            if delay is None or (call.deadline is not None and time.monotonic() + delay >= call.deadline):
                raise
            notice = RetryNotice(provider=channel.provider.name, attempt=call.attempts, delay=delay, error=error)
            announce(notice, channel.on_retry)
        await asyncio.sleep(delay)


async def send_once(channel: Channel, call: Call) -> HttpResponse:
    """Sends the request once; returns the response when it begins."""
    timeouts = call.timeouts
    if timeouts.total is not None:
        left = call.started + timeouts.total - time.monotonic()
        if left <= 0:
            raise transport_error("timeout", "the time limit of the whole call was exceeded")
        timeouts = structs.replace(timeouts, total=left)
    signed = await channel.credential.sign(call.http)
    if call.keeps_raw:
        call.sent = hide_headers(signed.headers)
    try:
        response = await channel.transport.send(signed, timeouts=timeouts)
    except ProviderError as error:
        raise error_of(channel, error.failure) from error
    call.first_byte = time.monotonic() - call.started
    call.status, call.headers = response.status, response.headers
    if response.status >= _FIRST_ERROR:
        raise await _refusal(channel, call, response)
    return response


# ── in ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _refusal(channel: Channel, call: Call, response: HttpResponse) -> ProviderError:
    body = await read_whole(response, channel.limits.error, truncate=True)
    call.received = [body]
    if not _FIRST_REFUSAL <= response.status <= _LAST_ERROR:
        return error_of(channel, Failure("server", _NO_ANSWER.format(response.status), response.status))
    headers = response.headers
    try:
        failure = channel.codec.decode_error(body, response.status, headers)
    except DecodeError:
        failure = _unreadable_failure(body, response.status)
    changes: dict[str, Any] = {}
    exact = kind_of_status(response.status)
    if failure.kind in _GENERAL and exact not in _GENERAL:
        changes["kind"] = exact
    elif failure.kind == "rate_limit" and channel.provider.lasting(failure):
        changes["kind"] = "billing"
    if failure.request_id is None:
        changes["request_id"] = _request_id(channel.provider, headers)
    if failure.retry_after is None and "retry-after" in headers:
        changes["retry_after"] = seconds_until(headers["retry-after"])
    if not failure.message:
        changes["message"] = f"HTTP {response.status} without an error message"
    return error_of(channel, structs.replace(failure, **changes) if changes else failure)


def failure_within(channel: Channel, call: Call, body: bytes) -> Failure | None:
    """The error inside a 200 answer, as relays, late failures and MiniMax send it (`"error": null` is not an error)."""
    if body.find(b'"error"') < 0 and body.find(b'"base_resp"') < 0:  # `in` costs several times as much
        return None
    try:
        found = parse_json(body)
        if not isinstance(found, dict) or not holds_error(found):
            return None
        failure = channel.codec.decode_error(body, None, call.headers)
    except (ValueError, RecursionError):
        return None
    return structs.replace(failure, request_id=failure.request_id or _request_id(channel.provider, call.headers))


def missing_answer(channel: Channel, completion: Completion, body: bytes) -> Failure | None:
    """The failure of a JSON object that is not an answer of this API, although its decoder found nothing wrong.

    Most keys are optional, so `{"status": "ok"}` of a service that is not the API reads as an answer without content.
    """
    keys = channel.codec.profile.answer_keys
    if not keys or completion.finish_reason == "error" or any(message.parts for message in completion.messages):
        return None
    try:
        fields = _fields(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # not stricter than the decoder
        return None
    if any(bytes(fields.get(key, _NULL)) != b"null" for key in keys):
        return None
    words = " and no ".join(repr(key) for key in sorted(keys))
    return Failure("server", f"the answer does not follow its format: it has no {words}")


_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_NULL = Raw(b"null")


def _unreadable_failure(body: bytes, status: int) -> Failure:
    """A failure whose body is not of the API, such as a proxy's page or an empty body."""
    shown = " ".join(body[: 4 * _SHOWN].decode("utf-8", "replace").split())
    return Failure(kind_of_status(status), shown[:_SHOWN] or f"HTTP {status} without a body", status)


def error_of(channel: Channel, failure: Failure) -> ProviderError:
    """The exception for a failure of this provider, without secrets."""
    if failure.raw_type == CONNECTION and NOTHING_LISTENS in failure.message and _is_self_hosted(channel.provider):
        failure = structs.replace(failure, message=f"{failure.message}; is {channel.provider.title} running?")
    elif failure.status == _NOT_FOUND:
        failure = structs.replace(failure, message=failure.message + _hint_at_base_url(channel))
    secrets, everything = channel.credential.secrets, repr(failure)
    if any(secret.hide_in(everything) != everything for secret in secrets):
        words = {name: value for name in _WORDS if (value := getattr(failure, name))}
        for secret in secrets:
            words = {name: secret.hide_in(value) for name, value in words.items()}
        failure = structs.replace(failure, **words, details=None, metadata=None)
    return provider_error(failure, provider=channel.provider.name)


def _hint_at_base_url(channel: Channel) -> str:
    """Return what to try if the base URL has a version too few or too many: SDKs differ in who adds it."""
    address, used = channel.provider.base_url, channel.base_url
    if "{" in address or not address:
        return ""
    usual = urlsplit(address).path
    if usual and not urlsplit(used).path:
        return f"; try the base URL {hide_url(used + usual)}"
    version = _VERSION.search(used)
    if version and not usual:
        return f"; try the base URL {hide_url(used[: version.start()])}, without {version.group()}"
    return ""


def _is_self_hosted(provider: Provider) -> bool:
    """Whether the user runs this server, not a vendor."""
    return provider.base_url.startswith(("http://127.0.0.1", "http://localhost"))


def _request_id(provider: Provider, headers: Mapping[str, str]) -> str | None:
    for name in provider.request_id:
        if name in headers:
            return headers[name]
    return None


def with_own_names(completion: Completion, request: Request, codec: Codec) -> Completion:
    """Restores the declared names of tools that were sent under aliases."""
    calls = completion.messages[0].tool_calls if request.tools and completion.messages else ()
    if not calls:
        return completion
    names = {tool.name for tool in request.tools}
    if all(call.name in names and not call.custom for call in calls):
        return completion
    return legalise_answer(completion, codec.profile, request, LossLog())


def _raw(call: Call) -> RawExchange:
    return RawExchange(
        method=call.http.method,
        url=call.http.url,
        request_headers=dict(call.sent) or hide_headers(call.http.headers),
        request_body=call.http.body,
        status=call.status,
        response_headers=hide_headers(call.headers),
        response_body=b"".join(call.received),
    )


class RemoteSource:
    """The events of one streamed call."""

    def __init__(self, channel: Channel, call: Call) -> None:
        self._channel = channel
        self._call = call
        limits = Limits(channel.limits.event, channel.limits.response)
        self._decoder = StreamDecoder(channel.provider.format, request=call.request, limits=limits)
        self._opening: asyncio.Task[HttpResponse] | None = None
        self._response: HttpResponse | None = None
        self._aborted = False
        self._finished = False
        self._ended = False

    async def read(self) -> Sequence[AnyEvent]:
        if self._ended:
            return ()
        response = self._response or await self._open()
        if self._finished:
            self._ended = True
            await response.drain()
            return ()
        return await self._next(response)

    def abort(self) -> None:
        self._aborted = self._ended = True
        if self._opening is not None and not self._opening.done():
            self._opening.cancel()
        if self._response is not None:
            self._response.close()

    async def _open(self) -> HttpResponse:
        """Connects in a separate task, so that `abort` can cancel it from any task."""
        self._opening = asyncio.ensure_future(send(self._channel, self._call))
        try:
            response = await self._opening
        except asyncio.CancelledError:
            if self._aborted:
                raise transport_error("cancelled", "the stream was closed before its answer began") from None
            raise
        if self._aborted:
            response.close()
        self._response = response
        return response

    async def _next(self, response: HttpResponse) -> Sequence[AnyEvent]:
        feed, call = self._decoder.feed, self._call
        try:
            while data := await response.chunk():
                if call.keeps_raw:
                    call.received.append(data)
                if events := feed(data):
                    return self._note_end(events, response)
        except ProviderError as error:
            return self._end_broken_stream(error.failure)
        self._ended = True
        return self._note_end(self._decoder.close(), response)

    def _note_end(self, events: list[AnyEvent], response: HttpResponse) -> list[AnyEvent]:
        """Detects the end of the stream, and adds details from the headers to a failure."""
        last = events[-1] if events else None
        if type(last) is Finished:
            self._finished = True
        elif type(last) is StreamFailed:
            self._ended = True
            response.close()
            events[-1] = StreamFailed(self._with_header_details(last.failure))
        return events

    def _with_header_details(self, failure: Failure) -> Failure:
        known = failure.request_id or _request_id(self._channel.provider, self._call.headers)
        return error_of(self._channel, structs.replace(failure, request_id=known)).failure

    def _end_broken_stream(self, failure: Failure) -> Sequence[AnyEvent]:
        """Events for a broken connection: none if the answer was complete, otherwise a failure."""
        self._ended = True
        events = self._decoder.close()
        if any(isinstance(event, Finished) for event in events):
            return events
        ends = [event for event in events if isinstance(event, PartEnd)]
        return [*ends, StreamFailed(self._with_header_details(failure))]
