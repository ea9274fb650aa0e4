"""Builds the call to an upstream from a client's request, and the client's answer from the upstream's.

Bytes stay unchanged if both use the same format; else they are translated.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable
from typing import Any

from msgspec import Raw, structs

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.registry import codec
from dragoman.codecs.shared_tools import FORGED
from dragoman.codecs.signature_tags import TAG
from dragoman.drivers.providers import Target
from dragoman.drivers.remote import Call, Channel
from dragoman.drivers.transport import HttpRequest
from dragoman.gateway.client_request import ClientRequest, UpstreamCall, family_of, own_id, own_time
from dragoman.gateway.model_key import with_model
from dragoman.gateway.routing import Candidate, RouteSettings
from dragoman.gateway.signature_memory import hide_foreign_signatures, restore_signatures, without_foreign_signature
from dragoman.ir import (
    Cache,
    Completion,
    CustomTool,
    Message,
    Reasoning,
    ReasoningSettings,
    Request,
)
from dragoman.ir.traits import for_model
from dragoman.ir.values import encode_json
from dragoman.translate import encode_request_for, encode_response


def prepare_call(client_request: ClientRequest, candidate: Candidate, settings: RouteSettings) -> UpstreamCall:
    """Build the call to this candidate.

    Raises `DecodeError` for an invalid request and `EncodeError` for what this upstream cannot express.
    """
    channel = candidate.upstream.channel
    # Bytes can pass unchanged if the formats match, and the server is not stricter than the format's owner.
    same = client_request.protocol.format == channel.provider.format and not channel.codec.profile.legalises_own_family
    unchanged = (
        same
        and not client_request.is_changed
        and not settings.changes_requests
        and not _has_foreign_data(client_request.body)
    )
    if unchanged:
        encoded = _forward_body(client_request, candidate.model, channel)
    else:
        encoded = _translate_body(client_request, candidate.model, settings, channel)
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


# Another family's signatures travel through this format behind such a tag, plain or in base64.
_TAG, _PACKED_TAG = TAG.encode(), b64encode(TAG.encode())[:14]
# Part of the ids of items that show tools run by another family.
_FORGED = f"_{FORGED}".encode()


def _has_foreign_data(body: bytes) -> bool:
    # Not `in`: CPython first tries the left side as a number, and formats an error that it drops.
    return body.find(_TAG) >= 0 or body.find(_PACKED_TAG) >= 0 or body.find(_FORGED) >= 0


def _without_foreign(request: Request, family: str) -> Request:
    """Drop other families' signatures: this family's own server would not understand the tags."""
    messages = []
    for message in request.messages:
        parts = tuple(without_foreign_signature(part, family) for part in message.parts)
        messages.append(structs.replace(message, parts=parts) if parts != message.parts else message)
    return structs.replace(request, messages=tuple(messages), origin=None)


# ── the same bytes ──


def _forward_body(client_request: ClientRequest, model: str, channel: Channel) -> Encoded:
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


# ── other bytes ──


def _translate_body(client_request: ClientRequest, model: str, settings: RouteSettings, channel: Channel) -> Encoded:
    request = for_model(client_request.decode(), model)
    if client_request.remembered:
        request = restore_signatures(request, client_request.remembered, channel.codec.profile.signs_as)
    if client_request.protocol.format == channel.provider.format and _has_foreign_data(client_request.body):
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
    encoded = _forward_body(client_request, candidate.model, channel)
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
    id, created = own_id(completion.id, protocol), own_time(completion.created, protocol)
    own = structs.replace(completion, id=id, created=created, model=completion.model or client_request.model)
    request = client_request.decode()
    shown = hide_foreign_signatures(own, family_of(protocol)) if client_request.hides_signatures else own
    return own, encode_response(shown, protocol.format, request=request if _needs_request(own, request) else None)


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
