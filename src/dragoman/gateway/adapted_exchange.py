"""Endpoints with the bodies of another endpoint in a different envelope.

An `Adapter` converts the client's body to a format that the gateway serves, and each answer back: whole, chunk by
chunk, or as an error. Everything between (keys, routing, limits, records) works as at the format's own endpoint.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

import msgspec
from msgspec import Raw

from dragoman.codecs.bedrock_converse.frames import event_headers, exception_headers, frame_writer
from dragoman.codecs.framing import Framing, Lines, ServerSentEvents
from dragoman.codecs.stream_limits import Limits
from dragoman.errors import DecodeError
from dragoman.gateway.exchange import Exchange, Tunnel
from dragoman.gateway.relay import Failed
from dragoman.ir import Failure

_decode = msgspec.json.decode
_encode = msgspec.json.encode
_FIRST_ERROR = 400
_DONE = b"[DONE]"


class UnreadableEvent(Exception):
    """An event of the upstream that its format does not allow: it passed unchanged up to here."""

    def __init__(self, before: bytes, error: DecodeError) -> None:
        self.before = before
        """What the same read contained before the event, converted."""
        self.error = error
        super().__init__(str(error))


class Adapter:
    """Converts bodies between two envelopes. The defaults pass everything unchanged.

    `answer` raises `DecodeError`, and `feed` and `close` raise `UnreadableEvent`, for what they cannot convert.
    """

    stream_type: str | None = None
    """The content type of a stream, if it differs."""

    def request(self, body: bytes) -> bytes:
        """Return the body in the gateway's format. Raises `DecodeError` for what this endpoint does not support."""
        return body

    def answer(self, body: bytes) -> bytes:
        return body

    def error(self, status: int, body: bytes) -> tuple[bytes, dict[str, str]]:  # noqa: ARG002
        return body, {}

    def feed(self, data: bytes) -> bytes:
        return data

    def close(self) -> bytes:
        return b""


class AdaptedExchange(Exchange):
    """The exchange as the gateway sees it; the client sees the other envelope."""

    def __init__(self, inner: Exchange, adapter: Adapter) -> None:
        self._inner = inner
        self._adapter = adapter
        self.head = inner.head
        self.body = b""
        self.digest = inner.digest

    @property
    def also(self) -> Mapping[str, str]:
        return self._inner.also

    @also.setter
    def also(self, headers: Mapping[str, str]) -> None:
        self._inner.also = headers

    @property
    def on_sent(self) -> Callable[[int, bytes], None] | None:  # type: ignore[override]
        return self._inner.on_sent

    @property
    def local(self) -> Any:  # type: ignore[override]
        return self._inner.local

    @property
    def started(self) -> bool:  # type: ignore[override]
        return self._inner.started

    @property
    def whole(self) -> bool:  # type: ignore[override]
        return self._inner.whole

    def close_after(self) -> None:
        self._inner.close_after()

    def open_tunnel(self) -> Tunnel | None:
        return self._inner.open_tunnel()

    async def receive(self, limit: int | None = None) -> bytes:
        self.body = self._adapter.request(await self._inner.receive(limit))
        return self.body

    def send(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        if status >= _FIRST_ERROR:
            body, more = self._adapter.error(status, body)
            headers = {**headers, **more}
        elif body:
            try:
                body = self._adapter.answer(body)
            except DecodeError as error:
                _blame_upstream(error)
        self._inner.send(status, headers, body)

    def start(self, status: int, headers: Mapping[str, str], first: bytes = b"") -> None:
        kind = self._adapter.stream_type
        sent_headers = headers if kind is None else {**headers, "content-type": kind}
        try:
            adapted = self._adapter.feed(first)
        except UnreadableEvent as bad:
            _blame_upstream(bad.error)
        self._inner.start(status, sent_headers, adapted)

    def write(self, data: bytes) -> bool:
        try:
            adapted = self._adapter.feed(data)
        except UnreadableEvent as bad:
            self._inner.write(bad.before)
            _blame_upstream(bad.error)
        return self._inner.write(adapted) if adapted else False

    async def drain(self) -> None:
        await self._inner.drain()

    def finish(self, last: bytes = b"") -> None:
        try:
            adapted = self._adapter.feed(last) + self._adapter.close()
        except UnreadableEvent as bad:
            self._inner.write(bad.before)
            _blame_upstream(bad.error)
        self._inner.finish(adapted)


def _blame_upstream(error: DecodeError) -> NoReturn:
    """Raise `Failed`: an answer in the client's own format, which passes unread, does not follow this format.

    If the answer has begun, its connection is cut.
    """
    raise Failed(Failure("server", f"the upstream's answer does not follow its format: {error}", 502)) from None


def _object(body: bytes, source: str) -> dict[str, Any]:
    try:
        value = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(path="$", expected="JSON", got=str(error), source=source) from None
    if not isinstance(value, dict):
        raise DecodeError(path="$", expected="an object", got=type(value).__name__, source=source)
    return value


class _Events(Adapter):
    """An adapter that converts a stream event by event."""

    def __init__(self, framing: Framing) -> None:
        self._framing = framing

    def feed(self, data: bytes) -> bytes:
        return self._convert(lambda: self._framing.feed(data)) if data else b""

    def close(self) -> bytes:
        return self._convert(self._framing.close)

    def _convert(self, payloads: Callable[[], Iterable[bytes]]) -> bytes:
        converted: list[bytes] = []
        try:
            converted.extend(map(self._event, payloads()))  # keeps those before one that fails
        except DecodeError as error:
            raise UnreadableEvent(b"".join(converted), error) from None
        return b"".join(converted)

    def _event(self, payload: bytes) -> bytes:
        """Raises `DecodeError`."""
        raise NotImplementedError


# ── Claude's bodies at Bedrock's InvokeModel, and on Vertex AI ────────────────────────────────────────────────

_raw_object = msgspec.json.Decoder(dict[str, Raw]).decode
_ELSEWHERE = ("anthropic_version", "anthropic_beta")
"""Keys that these clouds have in the body, and Anthropic's own API in headers."""


def _without_cloud_keys(body: bytes) -> bytes:
    if b'"anthropic_' not in body:
        return body
    try:
        fields = _raw_object(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(path="$", expected="JSON", got=str(error), source="anthropic-messages") from None
    return _encode({key: value for key, value in fields.items() if key not in _ELSEWHERE})


class ClaudeBody(Adapter):
    """Messages as Vertex AI accepts them, without the keys that belong in headers."""

    def request(self, body: bytes) -> bytes:
        return _without_cloud_keys(body)


_ERROR_TYPES = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}
_IN_STREAM = {
    "invalid_request_error": "validationException",
    "rate_limit_error": "throttlingException",
    "overloaded_error": "serviceUnavailableException",
    "timeout_error": "modelTimeoutException",
}
_chunk = frame_writer(event_headers("chunk"))


class InvokeModel(_Events):
    """Messages bodies; streams of binary frames, each with one event in base64; and Bedrock's errors."""

    stream_type = "application/vnd.amazon.eventstream"

    def __init__(self) -> None:
        super().__init__(ServerSentEvents(Limits(), "invoke-with-response-stream"))

    def request(self, body: bytes) -> bytes:
        return _without_cloud_keys(body)

    def _event(self, payload: bytes) -> bytes:
        if b'"type":"ping"' in payload:
            return b""
        if b'"error"' in payload[:40]:
            error = _object(payload, "anthropic-messages").get("error")
            if isinstance(error, dict):
                name = _IN_STREAM.get(str(error.get("type")), "internalServerException")
                return frame_writer(exception_headers(name))(_encode({"message": str(error.get("message"))}))
        return _chunk(b'{"bytes":"' + b64encode(payload) + b'","p":"abcdefgh"}')

    def error(self, status: int, body: bytes) -> tuple[bytes, dict[str, str]]:
        try:
            fields = _object(body, "anthropic-messages")
        except DecodeError:
            fields = {}
        error = fields.get("error")
        message = error.get("message") if isinstance(error, dict) else fields.get("message", "")
        kind = _ERROR_TYPES.get(status, "InternalServerException")
        return _encode({"message": message}), {"x-amzn-errortype": kind}


# ── Ollama's /api/generate ────────────────────────────────────────────────────────────────────────────────────

_GENERATE = "ollama generate"
_PASSED = ("format", "options", "think", "truncate", "shift", "keep_alive", "stream", "logprobs", "top_logprobs")


class OllamaGenerate(_Events):
    """A prompt instead of messages; the answer's text is `response`."""

    stream_type = "application/x-ndjson"

    def __init__(self) -> None:
        super().__init__(Lines(Limits(), _GENERATE))

    def request(self, body: bytes) -> bytes:
        given = _object(body, _GENERATE)
        for key in ("suffix", "context", "template", "raw"):
            if given.get(key):
                why = "only a prompt: a chat model has no counterpart for this key"
                raise DecodeError(path=f"$.{key}", expected=why, got=key, source=_GENERATE)
        prompt = given.get("prompt") or ""
        if not isinstance(prompt, str):
            raise DecodeError(path="$.prompt", expected="text", got=type(prompt).__name__, source=_GENERATE)
        message: dict[str, Any] = {"role": "user", "content": prompt}
        if given.get("images"):
            message["images"] = given["images"]
        system = [{"role": "system", "content": given["system"]}] if given.get("system") else []
        kept = {key: given[key] for key in _PASSED if given.get(key) is not None}
        return _encode({"model": given.get("model"), "messages": [*system, message], **kept})

    def answer(self, body: bytes) -> bytes:
        return _encode(_to_generate_line(_object(body, _GENERATE)))

    def _event(self, payload: bytes) -> bytes:
        return _encode(_to_generate_line(_object(payload, _GENERATE))) + b"\n"


def _to_generate_line(line: dict[str, Any]) -> dict[str, Any]:
    message = line.pop("message", None)
    if not isinstance(message, dict):
        return line  # an error
    written: dict[str, Any] = {"model": line.pop("model", ""), "created_at": line.pop("created_at", "")}
    written["response"] = message.get("content") or ""
    written |= {key: message[key] for key in ("thinking", "tool_calls") if message.get(key)}
    return written | line


# ── OpenAI's /v1/completions ──────────────────────────────────────────────────────────────────────────────────

_COMPLETION = "openai completion"
_SAME = (
    *("model", "temperature", "top_p", "n", "stream", "stream_options", "stop", "seed", "presence_penalty"),
    *("frequency_penalty", "user", "logit_bias"),
)
_USUAL_TOKENS = 16


class LegacyCompletion(_Events):
    """One prompt becomes one user message; the text of the answer is `text`."""

    def __init__(self) -> None:
        super().__init__(ServerSentEvents(Limits(), _COMPLETION))

    def request(self, body: bytes) -> bytes:
        given = _object(body, _COMPLETION)
        prompt = given.get("prompt")
        if isinstance(prompt, list) and len(prompt) == 1:
            prompt = prompt[0]
        if not isinstance(prompt, str):
            got = "several prompts, or tokens" if isinstance(prompt, list) else type(prompt).__name__
            raise DecodeError(path="$.prompt", expected="one text", got=got, source=_COMPLETION)
        for key in ("suffix", "echo", "best_of", "logprobs"):
            if given.get(key):
                why = "no such key: a chat model answers here"
                raise DecodeError(path=f"$.{key}", expected=why, got=key, source=_COMPLETION)
        kept = {key: given[key] for key in _SAME if given.get(key) is not None}
        limit = given.get("max_tokens")
        messages = [{"role": "user", "content": prompt}]
        return _encode(
            {**kept, "messages": messages, "max_completion_tokens": _USUAL_TOKENS if limit is None else limit}
        )

    def answer(self, body: bytes) -> bytes:
        completion = _object(body, _COMPLETION)
        return _encode(_to_legacy_completion(completion, _choices_of(completion)))

    def _event(self, payload: bytes) -> bytes:
        if payload.startswith(_DONE):
            return b"data: [DONE]\n\n"
        chunk = _object(payload, _COMPLETION)
        if "choices" not in chunk:
            return b"data: " + payload + b"\n\n"
        # The first chunk of a chat holds only the role.
        choices = [one for one in _choices_of(chunk) if one.get("finish_reason") or _text_of(one)]
        if not choices and not chunk.get("usage"):
            return b""
        return b"data: " + _encode(_to_legacy_completion(chunk, choices)) + b"\n\n"


def _choices_of(chat: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the choices of an answer or a chunk. Raises `DecodeError`."""
    choices = chat.get("choices", [])
    if not isinstance(choices, list):
        raise DecodeError(path="$.choices", expected="a list", got=type(choices).__name__, source=_COMPLETION)
    for place, choice in enumerate(choices):
        if not isinstance(choice, dict):
            path, got = f"$.choices[{place}]", type(choice).__name__
            raise DecodeError(path=path, expected="an object", got=got, source=_COMPLETION)
    return choices


def _text_of(choice: dict[str, Any]) -> str:
    """Return the text of a choice. Raises `DecodeError`."""
    message = choice.get("message") or choice.get("delta") or {}
    content = message.get("content") or "" if isinstance(message, dict) else message
    if not isinstance(content, str):
        raise DecodeError(path="$.choices", expected="text", got=type(content).__name__, source=_COMPLETION)
    return content


def _to_legacy_completion(chat: dict[str, Any], choices: list[dict[str, Any]]) -> dict[str, Any]:
    written = [
        {
            "text": _text_of(choice),
            "index": choice.get("index", 0),
            "logprobs": None,
            "finish_reason": choice.get("finish_reason"),
        }
        for choice in choices
    ]
    id = str(chat.get("id", "")).replace("chatcmpl-", "cmpl-", 1)
    return {**chat, "id": id, "object": "text_completion", "choices": written}


ADAPTERS: Mapping[str, Callable[[], Adapter]] = {
    "claude": ClaudeBody,
    "invoke-model": InvokeModel,
    "ollama-generate": OllamaGenerate,
    "completion": LegacyCompletion,
}
