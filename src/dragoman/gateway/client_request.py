"""A client's request, and the upstream call made from it: unchanged if both use the same format, else translated."""

from __future__ import annotations

import re
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from os import urandom
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct, structs
from msgspec.structs import force_setattr

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.registry import codec
from dragoman.codecs.shared_tools import FORGED
from dragoman.codecs.signature_tags import TAG
from dragoman.drivers.providers import Target
from dragoman.drivers.remote import Call, Channel
from dragoman.drivers.transport import HttpRequest
from dragoman.errors import DecodeError
from dragoman.gateway.client_protocols import ClientProtocol
from dragoman.gateway.routing import Candidate, RouteSettings
from dragoman.gateway.signature_memory import UnsignedEvents, restored, unsigned
from dragoman.ir import (
    AnyPart,
    Cache,
    Completion,
    CustomTool,
    Message,
    Reasoning,
    ReasoningSettings,
    Request,
    StreamStart,
)
from dragoman.ir.traits import for_model
from dragoman.ir.values import encode_json
from dragoman.loss import Loss
from dragoman.streams import StreamTranslator
from dragoman.translate import encode_request_for, encode_response

Translator = TypeVar("Translator", bound=StreamTranslator)


class Peek(Struct, frozen=True):
    """The keys of a body that are needed before the request is routed."""

    model: str | None = None
    stream: bool | None = None
    previous_response_id: str | None = None
    previous_interaction_id: str | None = None
    store: bool | None = None
    background: bool | None = None
    conversation: str | dict[str, Any] | None = None
    generate: bool | None = None
    thread: dict[str, Any] | None = None
    stream_options: dict[str, Any] | None = None


_peek = msgspec.json.Decoder(Peek).decode
_object = msgspec.json.Decoder(dict[str, Raw]).decode


def with_model_in_body(body: bytes, model: str, *, stream: bool) -> bytes:
    """Add model and mode to the body, for paths that name them in place of the body."""
    fields = _object(body)
    fields.pop("anthropic_version", None)
    return msgspec.json.encode({"model": model, **fields, **({"stream": True} if stream else {})})


def peek(body: bytes, format: str) -> Peek:
    """Decode the keys that routing needs. Raises `DecodeError`, which names the key."""
    try:
        return _peek(body)
    except msgspec.ValidationError as error:
        words, _, where = str(error).partition(" - at `")
        raise DecodeError(
            path=where.rstrip("`") or "$", expected="a request of this API", got=words, source=format
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(path="$", expected="JSON", got=str(error), source=format) from None


def check_model_key(client_request: ClientRequest) -> None:
    """Raise `DecodeError` if the body names a second model, for servers with case-insensitive keys (such as Go's).

    Such a server would answer an unchanged body with that model, even if the client's key may not use it.
    """
    if not client_request.protocol.model_in_path:
        check_one_model(client_request.body, client_request.protocol.format)


def check_one_model(body: bytes, source: str) -> None:
    """The same for any JSON body. A key that is given twice is refused, too: some servers read the first of them."""
    wanted = "one model, under `model`"
    for key in _object(body):
        if key != "model" and key.lower() == "model":
            raise DecodeError(path=f"$.{key}", expected=wanted, got=f"the key {key!r}", source=source)
    if body.count(b'"model"') > 1 or _ESCAPED_LETTER.search(body):
        keys = sum(_is(token[0], "model") for token in _outer_strings(body) if _COLON.match(body, token.end()))
        if keys > 1:
            raise DecodeError(path="$.model", expected=wanted, got="the key twice", source=source)


class ClientRequest(Struct, kw_only=True):
    """One request of a client."""

    protocol: ClientProtocol
    body: bytes
    model: str
    stream: bool
    headers: Mapping[str, str]
    options: dict[str, Any] = {}
    """Options of the stream encoder."""
    rewritten: bool = False
    """The body is no longer the client's own: stored items that it refers to were inserted."""
    request: Request | None = None
    is_changed: bool = False
    """`request` no longer equals the decoded body."""
    known: Peek = Peek()
    remembered: Mapping[str, bytes] = {}
    """What vendors signed in answers of this conversation (see `SignatureMemory`)."""
    hides_signatures: bool = False
    """Other vendors' signatures are not sent to the client but remembered here."""

    def decoded(self) -> Request:
        if self.request is None:
            request = codec(self.protocol.format).decode_request(self.body)
            if request.stream is not None or self.stream:
                force_setattr(request, "stream", self.stream)  # in place: it is new, and a copy would lose its traits
            self.request = request
        return self.request


class UpstreamCall(Struct, frozen=True, kw_only=True):
    """A client's request as it is sent to one upstream."""

    client_request: ClientRequest
    channel: Channel
    call: Call
    same: bool
    """Bytes pass unchanged in both directions."""
    losses: tuple[Loss, ...] = ()

    def translator(self, kind: type[Translator] = StreamTranslator) -> Translator:  # type: ignore[assignment]
        protocol = self.client_request.protocol
        source = self.channel.provider.format
        if self.same:
            return kind(source=source, target=source)
        return kind(
            source=source,
            target=protocol.format,
            request=self.client_request.decoded(),
            opening=lambda start: opened(start, self.client_request),
            outgoing=outgoing_of(self.client_request),
            **self.client_request.options,
        )


def outgoing_of(client_request: ClientRequest) -> UnsignedEvents | None:
    """Return the filter of stream events for a client that must not get other vendors' signatures, if needed."""
    return UnsignedEvents(_family(client_request.protocol)) if client_request.hides_signatures else None


def opened(start: StreamStart, client_request: ClientRequest) -> StreamStart:
    """Return the start event with id, time and model as clients of this format expect; some APIs omit the model."""
    protocol = client_request.protocol
    id, created = _own_id(start.id, protocol), _own_time(start.created, protocol)
    return structs.replace(start, id=id, created=created, model=start.model or client_request.model)


def _own_time(created: int | None, protocol: ClientProtocol) -> int | None:
    return created or (int(time.time()) if protocol.dated else None)


def _own_id(id: str | None, protocol: ClientProtocol) -> str | None:
    return id if protocol.id_prefix is None else protocol.id_prefix + urandom(16).hex()


def prepare_call(client_request: ClientRequest, candidate: Candidate, settings: RouteSettings) -> UpstreamCall:
    """Build the call to this candidate.

    Raises `DecodeError` for an invalid request and `EncodeError` for what this upstream cannot express.
    """
    channel = candidate.upstream.channel
    same = _is_same(client_request, channel)
    unchanged = (
        same and not client_request.is_changed and not settings.changes_requests and not _carries(client_request.body)
    )
    if unchanged:
        encoded = _unchanged(client_request, candidate.model, channel)
    else:
        encoded = _translated(client_request, candidate.model, settings, channel)
    call = Call(
        request=_NOTHING,
        http=_http(client_request, candidate, encoded),
        encoded=encoded,
        timeouts=channel.timeouts,
        keeps_raw=False,
        started=time.monotonic(),
    )
    losses = () if unchanged else encoded.losses
    return UpstreamCall(client_request=client_request, channel=channel, call=call, same=same, losses=losses)


_NOTHING = Request(None, ())


def _is_same(client_request: ClientRequest, channel: Channel) -> bool:
    """Whether bytes can pass unchanged: the formats match, and the server is not stricter than the format's owner."""
    return client_request.protocol.format == channel.provider.format and not channel.codec.profile.legalises_own_family


# Another family's signatures travel through this format behind such a tag, plain or in base64.
_TAG, _PACKED_TAG = TAG.encode(), b64encode(TAG.encode())[:14]
# Part of the ids of items that show tools run by another family.
_FORGED = f"_{FORGED}".encode()


def _carries(body: bytes) -> bool:
    return _TAG in body or _PACKED_TAG in body or _FORGED in body


def _without_foreign(request: Request, family: str) -> Request:
    """Drop other families' signatures: this family's own server would not understand the tags."""
    messages = []
    for message in request.messages:
        parts = tuple(_unsigned(part, family) for part in message.parts)
        messages.append(structs.replace(message, parts=parts) if parts != message.parts else message)
    return structs.replace(request, messages=tuple(messages), origin=None)


def _unsigned(part: AnyPart, family: str) -> AnyPart:
    signature = getattr(part, "signature", None)
    return part if signature is None or signature.family == family else structs.replace(part, signature=None)


# ── the same bytes ──


def _unchanged(client_request: ClientRequest, model: str, channel: Channel) -> Encoded:
    body = client_request.body
    named = client_request.known.model
    if not client_request.protocol.model_in_path and named is not None and named != model:
        body = with_model(body, named, model)
    return Encoded(body, (), upstream_path(channel, model, stream=client_request.stream))


def upstream_path(channel: Channel, model: str, *, stream: bool) -> str:
    """Return the path for a model, which only the codec knows: it encodes a minimal request."""
    key = (channel.codec.name, model, stream)
    path = _paths.get(key)
    if path is None:
        path = encode_request_for(Request(model, _HELLO, stream=stream), channel.codec).path
        if len(_paths) < _MOST_PATHS:
            _paths[key] = path
    return path


_HELLO = (Message("user", "hi"),)
_paths: dict[tuple[str, str, bool], str] = {}
_MOST_PATHS = 1_000

_MODEL_KEY = re.compile(rb'"model"\s*:\s*("(?:[^"\\]|\\.)*")')
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]')
_VALUE = re.compile(rb'\s*:\s*("(?:[^"\\]|\\.)*")')
_COLON = re.compile(rb"\s*:")
_ESCAPED_LETTER = re.compile(rb"\\u00[46]")


def with_model(body: bytes, old: str, new: str) -> bytes:
    """Replace the model name in a body, and leave all other bytes unchanged."""
    name = encode_json(new)
    found = _MODEL_KEY.search(body)
    if found is not None and _is(found[1], old) and b'"model"' not in body[found.end() :]:
        return b"%b%b%b" % (body[: found.start(1)], name, body[found.end(1) :])
    out, copied = [], 0
    for token in _outer_strings(body):
        if _is(token[0], "model"):
            value = _VALUE.match(body, token.end())
            if value is not None:
                out += [body[copied : value.start(1)], name]
                copied = value.end(1)
    return b"".join([*out, body[copied:]])


def _outer_strings(body: bytes) -> Iterator[re.Match[bytes]]:
    """Return the keys and texts of the outermost object."""
    depth = 0
    for token in _TOKEN.finditer(body):
        first = token[0][:1]
        if first in b"{[":
            depth += 1
        elif first in b"}]":
            depth -= 1
        elif depth == 1:
            yield token


def _is(quoted: bytes, text: str) -> bool:
    return bool(msgspec.json.decode(quoted) == text)


# ── other bytes ──


def _translated(client_request: ClientRequest, model: str, settings: RouteSettings, channel: Channel) -> Encoded:
    request = for_model(client_request.decoded(), model)
    if client_request.remembered:
        request = restored(request, client_request.remembered, channel.codec.profile.signs_as)
    if client_request.protocol.format == channel.provider.format and _carries(client_request.body):
        request = _without_foreign(request, channel.codec.profile.signs_as)
    if settings.changes_requests:
        request = _with_settings(request, settings, marks=bool(channel.codec.profile.cache_marks))
    if client_request.stream and channel.provider.stream_keys:
        request = _with_stream_keys(request, channel)
    paths = codec(client_request.protocol.format).request_paths
    return encode_request_for(request, channel.codec, paths=paths, strict=settings.strict)


def _with_settings(request: Request, settings: RouteSettings, *, marks: bool) -> Request:
    """Apply the route's settings. `marks`: the upstream supports cache marks."""
    changes: dict[str, Any] = {}
    if settings.cache is not None and marks and not _is_marked(request):
        changes["cache"] = Cache(None if settings.cache == "5m" else settings.cache)
    most = settings.max_output_tokens
    if most is not None:
        changes["max_output_tokens"] = min(most, request.max_output_tokens or most)
    if settings.reasoning is not None and request.reasoning is None:
        off = settings.reasoning == "off"
        changes["reasoning"] = ReasoningSettings("off") if off else ReasoningSettings(effort=settings.reasoning)
    for name in settings.drop:
        changes[name] = () if name == "stop" else None
    return structs.replace(request, **changes)


def _is_marked(request: Request) -> bool:
    """Whether the client sets cache marks itself."""
    if request.cache is not None or any(getattr(tool, "cache", None) is not None for tool in request.tools):
        return True
    return any(getattr(part, "cache", None) is not None for message in request.messages for part in message.parts)


def _with_stream_keys(request: Request, channel: Channel) -> Request:
    """Add the keys without which some servers report no token counts in a stream."""
    family = channel.codec.profile.family
    metadata = request.metadata or {}
    raw = {name: Raw(encode_json(value)) for name, value in channel.provider.stream_keys.items()}
    return structs.replace(request, metadata={**metadata, family: {**raw, **metadata.get(family, {})}})


def _http(client_request: ClientRequest, candidate: Candidate, encoded: Encoded) -> HttpRequest:
    upstream, protocol = candidate.upstream, client_request.protocol
    channel, headers = upstream.channel, upstream.headers
    provider = channel.provider
    own = encoded.headers
    if protocol.format == provider.format:
        given = client_request.headers
        own = {**own, **{name: given[name] for name in protocol.passed if name in given}}
    if own:
        headers = {**headers, **own, **channel.headers}
    target = Target(encoded.path, candidate.model, client_request.stream, channel.place)
    return HttpRequest(
        url=channel.base_url + provider.path(target), headers=headers, body=provider.body(encoded.content)
    )


def prepare_count(client_request: ClientRequest, candidate: Candidate, path: Callable[[str], str]) -> UpstreamCall:
    """Build a call that sends the same bytes to the upstream's token counting endpoint."""
    channel = candidate.upstream.channel
    encoded = _unchanged(client_request, candidate.model, channel)
    encoded = structs.replace(encoded, path=path(encoded.path))
    http = _http(client_request, candidate, encoded)
    started = time.monotonic()
    call = Call(
        request=_NOTHING, http=http, encoded=encoded, timeouts=channel.timeouts, keeps_raw=False, started=started
    )
    return UpstreamCall(client_request=client_request, channel=channel, call=call, same=True)


# ── whole answers ──


def translate_answer(upstream_call: UpstreamCall, body: bytes) -> tuple[Completion, Encoded]:
    """Return the upstream's answer, decoded and in the client's format. Raises `DecodeError`."""
    client_request = upstream_call.client_request
    completion = upstream_call.channel.codec.decode_response(body)
    if upstream_call.same:
        return completion, Encoded(body)
    return encode_answer(client_request, completion)


def encode_answer(client_request: ClientRequest, completion: Completion) -> tuple[Completion, Encoded]:
    """Encode an answer in the client's format, with a new id and a time if the format requires them."""
    protocol = client_request.protocol
    id, created = _own_id(completion.id, protocol), _own_time(completion.created, protocol)
    own = structs.replace(completion, id=id, created=created, model=completion.model or client_request.model)
    request = client_request.decoded()
    shown = unsigned(own, _family(protocol)) if client_request.hides_signatures else own
    return own, encode_response(shown, protocol.format, request=request if _needs_request(own, request) else None)


def _family(protocol: ClientProtocol) -> str:
    return codec(protocol.format).profile.signs_as


def _needs_request(completion: Completion, request: Request) -> bool:
    """Whether the encoder needs the request, for names and kinds of tools and whether reasoning was requested."""
    for message in completion.messages:
        for part in message.parts:
            if isinstance(part, Reasoning):
                return True
    calls = completion.messages[0].tool_calls if completion.messages else ()
    if not calls:
        return False
    plain = {tool.name for tool in request.tools if not isinstance(tool, CustomTool)}
    return any(call.custom or call.name not in plain for call in calls)
