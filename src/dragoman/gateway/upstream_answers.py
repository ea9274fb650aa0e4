"""Answers of upstreams, whole, streamed or unread: values apart from the code that makes them, which is compiled."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from dragoman.codecs.encoded import Encoded
from dragoman.drivers.transport import HttpResponse
from dragoman.gateway.answer_keys import KeyFilter
from dragoman.gateway.client_request import UpstreamCall
from dragoman.gateway.upstreams import Upstream
from dragoman.ir import Completion
from dragoman.streams import StreamTranslator


class Refusal(Struct, frozen=True):
    """An answer in the client's own format, unchanged."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class WholeAnswer(Struct, frozen=True):
    """An answer that did not stream."""

    upstream_call: UpstreamCall
    encoded: Encoded
    completion: Completion | None
    headers: dict[str, str]
    status: int = 200


class StreamedAnswer(Struct, frozen=True):
    """An answer that has begun to stream."""

    upstream_call: UpstreamCall
    upstream: Upstream
    response: HttpResponse
    translator: StreamTranslator
    first: bytes
    headers: dict[str, str]
    keys: KeyFilter

    def release(self) -> None:
        self.response.close()
        self.upstream.in_flight -= 1


class OpenAnswer(Struct, frozen=True):
    """An answer whose body has not been read yet."""

    upstream: Upstream
    response: HttpResponse

    def release(self) -> None:
        self.response.close()
        self.upstream.in_flight -= 1
