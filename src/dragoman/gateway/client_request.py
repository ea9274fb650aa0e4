"""A client's request: what routing reads of it, its decoded form, and the form in which it is sent to one upstream."""

from __future__ import annotations

import time
from collections.abc import Mapping
from os import urandom
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct, structs
from msgspec.structs import force_setattr

from dragoman.codecs.reading import MALFORMED, misread, unreadable
from dragoman.codecs.registry import codec
from dragoman.codecs.stream_limits import Limits
from dragoman.drivers.remote import Call, Channel
from dragoman.errors import DecodeError
from dragoman.gateway.client_protocols import ClientProtocol
from dragoman.gateway.model_key import check_one_model
from dragoman.gateway.signature_memory import UnsignedEvents
from dragoman.ir import (
    Request,
    StreamStart,
)
from dragoman.loss import Loss
from dragoman.streams import StreamTranslator

STREAM_LIMITS = Limits(stream_bytes=256 << 20)
"""Those of an upstream's stream, whose content is collected while it passes: as much as of an answer that is whole."""

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
        raise misread(error, format) from None
    except RecursionError:  # not `LimitExceeded`: a 413 would make clients shorten the conversation
        raise DecodeError(path="$", expected="JSON", got="nesting too deep to read", source=format) from None
    except MALFORMED as error:
        raise unreadable(error, body, format) from None


def check_model_key(client_request: ClientRequest) -> None:
    """Raise `DecodeError` if the body names a second model, for servers with case-insensitive keys (such as Go's).

    Such a server would answer an unchanged body with that model, even if the client's key may not use it.
    """
    if not client_request.protocol.model_in_path:
        check_one_model(client_request.body, client_request.protocol.format)


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

    def decode(self) -> Request:
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
            return kind(source=source, target=source, limits=STREAM_LIMITS)
        return kind(
            source=source,
            limits=STREAM_LIMITS,
            target=protocol.format,
            request=self.client_request.decode(),
            opening=lambda start: complete_start(start, self.client_request),
            outgoing=signature_filter(self.client_request),
            **self.client_request.options,
        )


def signature_filter(client_request: ClientRequest) -> UnsignedEvents | None:
    """Return the filter of stream events for a client that must not get other vendors' signatures, if needed."""
    return UnsignedEvents(family_of(client_request.protocol)) if client_request.hides_signatures else None


def complete_start(start: StreamStart, client_request: ClientRequest) -> StreamStart:
    """Return the start event with id, time and model as clients of this format expect; some APIs omit the model."""
    protocol = client_request.protocol
    id, created = own_id(start.id, protocol), own_time(start.created, protocol)
    return structs.replace(start, id=id, created=created, model=start.model or client_request.model)


def own_time(created: int | None, protocol: ClientProtocol) -> int | None:
    return created or (int(time.time()) if protocol.dated else None)


def own_id(id: str | None, protocol: ClientProtocol) -> str | None:
    return id if protocol.id_prefix is None else protocol.id_prefix + urandom(16).hex()


def family_of(protocol: ClientProtocol) -> str:
    return codec(protocol.format).profile.signs_as
