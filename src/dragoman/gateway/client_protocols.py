"""The formats over HTTP on the client side: what surrounds the bodies of requests and answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from msgspec import Struct

Options: TypeAlias = dict[str, Any]
_SSE = "text/event-stream; charset=utf-8"


def _no_options(_query: str, _body: Mapping[str, Any]) -> Options:
    return {}


def _usage_option(_query: str, body: Mapping[str, Any]) -> Options:
    return {"include_usage": body.get("include_usage") is True}


def _framing_option(query: str, _body: Mapping[str, Any]) -> Options:
    """Return the framing option: without `alt=sse` a stream of this API is one JSON array."""
    return {"array": parse_qs(query).get("alt") != ["sse"]}


class ClientProtocol(Struct, frozen=True, kw_only=True):
    format: str
    stream_type: str = _SSE
    event_end: tuple[bytes, ...] = (b"\n\n", b"\r\n\r\n")
    """How an event ends, if the last bytes show it: the gateway may then append its own event."""
    model_in_path: bool = False
    streams_by_default: bool = False
    id_prefix: str | None = None
    """Prefix of the ids that clients expect; None to keep the upstream's id."""
    dated: bool = False
    """Whether an answer has a creation time."""
    options: Callable[[str, Mapping[str, Any]], Options] = _no_options
    """Returns options of the stream encoder, from the query and the `stream_options` of the request."""
    home: str
    """The default provider for model names without one."""
    keeps_unknown_keys: bool = False
    """Whether other vendors' signatures may travel in keys that clients of this format ignore."""
    passed: tuple[str, ...] = ()
    """Headers of the client that are forwarded to an upstream of the same format."""


CLIENT_PROTOCOLS: Mapping[str, ClientProtocol] = {
    protocol.format: protocol
    for protocol in (
        ClientProtocol(
            format="openai-chat",
            id_prefix="chatcmpl-",
            dated=True,
            options=_usage_option,
            home="openai-chat",
            keeps_unknown_keys=True,
            passed=("openai-beta",),
        ),
        ClientProtocol(
            format="openai-responses", id_prefix="resp_", dated=True, home="openai", passed=("openai-beta",)
        ),
        ClientProtocol(
            format="anthropic-messages",
            id_prefix="msg_",
            home="anthropic",
            passed=("anthropic-version", "anthropic-beta"),
        ),
        ClientProtocol(format="gemini", model_in_path=True, options=_framing_option, home="gemini"),
        ClientProtocol(format="vertex", model_in_path=True, options=_framing_option, home="vertex"),
        ClientProtocol(
            format="gemini-interactions",
            id_prefix="v1_",
            dated=True,
            home="gemini-interactions",
            passed=("api-revision",),
        ),
        ClientProtocol(
            format="ollama-chat",
            stream_type="application/x-ndjson",
            event_end=(b"\n",),
            dated=True,
            streams_by_default=True,
            home="ollama",
            keeps_unknown_keys=True,
        ),
        ClientProtocol(format="cohere-chat", home="cohere"),
        ClientProtocol(
            format="bedrock-converse",
            stream_type="application/vnd.amazon.eventstream",
            event_end=(),
            model_in_path=True,
            home="bedrock",
        ),
    )
}
