"""Realtime APIs over WebSockets: messages pass unchanged between a client and an upstream that has the same API.

OpenAI names the model in the URL; Gemini's Live API names it in the first message, which is therefore read before an
upstream is connected, and sent with the upstream's name of the model. Keys, permissions, routes and limits work as for
all requests; tokens are counted if the upstream reports them. Frames are read and written by `websockets`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import msgspec
from msgspec import Meta, Raw, Struct

from dragoman.drivers.providers import PROVIDERS
from dragoman.drivers.remote import Channel
from dragoman.drivers.transport import HttpRequest
from dragoman.errors import DecodeError
from dragoman.gateway.access import Caller
from dragoman.gateway.answer_keys import without_keys
from dragoman.gateway.endpoints import Endpoint
from dragoman.gateway.exchange import Exchange, Gone
from dragoman.gateway.expected_cost import everything_left, with_prices
from dragoman.gateway.http_request import BadBody, Head
from dragoman.gateway.model_key import named_models
from dragoman.gateway.relay import off_loop_if_large
from dragoman.gateway.request_records import Record
from dragoman.gateway.routing import Candidate
from dragoman.ir import Failure, Usage

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

    from dragoman.gateway.app import Gateway

LONGEST_CONNECTION = 3600.0
_FIRST_MESSAGE = 30.0
"""Seconds for a client to send the message that names the model."""
_CONNECTING = 20.0
_SUBPROTOCOL = "realtime"
_SWITCHED = 101
_NO_CODE = 1005
_BROKEN = frozenset({1006, 1015})
"""Codes that stand for a broken connection, and for a close without a code, are never sent (RFC 6455, 7.4.1)."""
_NAMES = 2
"""How many keys named `setup` or `model`, in any case, the first message has. With more it would be ambiguous."""
_LONGEST_NAME = 80
_PASSED = ("openai-beta", "openai-safety-identifier")


_Count = Annotated[int, Meta(ge=0, le=1 << 40)]
"""A plausible token count; an event with another value is not counted."""


class _Tokens(Struct, rename="camel"):
    prompt_token_count: _Count = 0
    response_token_count: _Count = 0


class _Counts(Struct):
    input_tokens: _Count = 0
    output_tokens: _Count = 0


class _Response(Struct):
    usage: _Counts | None = None


_TRANSCRIBED = "conversation.item.input_audio_transcription.completed"


class _Event(Struct):
    """The keys of an upstream's messages that the gateway reads: token counts."""

    type: str = ""
    response: _Response | None = None
    usage: _Counts | None = None
    """Of a transcription, which is not part of a response."""
    usage_metadata: _Tokens | None = msgspec.field(name="usageMetadata", default=None)


_event = msgspec.json.Decoder(_Event).decode
_object = msgspec.json.Decoder(dict[str, Raw]).decode
_text = msgspec.json.Decoder(str).decode


async def realtime(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    caller = await gateway.admit(endpoint, exchange, record)
    try:
        from dragoman.gateway.client_websocket import ClientWebSocket  # noqa: PLC0415 - of the extra `gateway`
    except ImportError:
        words = "WebSockets need the package websockets (extra gateway) on the gateway's side"
        raise BadBody(Failure("not_found", words, 404)) from None
    model = endpoint.model or exchange.head.parameters.get("model", "")
    candidate = _candidate(gateway, endpoint, caller, model, record) if model else None
    if candidate is None and not endpoint.path:
        raise BadBody(Failure("invalid_request", "model is missing in the address", 400, parameter="model"))
    await gateway.enter_at(caller, record, everything_left(caller))
    try:
        tunnel = exchange.open_tunnel()
        if tunnel is None:
            raise BadBody(Failure("invalid_request", "WebSockets need an HTTP/1.1 connection.", 400))
        record.status, record.stream = _SWITCHED, True
        client = ClientWebSocket(tunnel, exchange.head, gateway.config.server.max_body, (_SUBPROTOCOL,))
        await _Session(gateway, endpoint, caller, record, client).run(exchange.head, candidate)
        await gateway.settle(caller, record)
    finally:
        caller.leave()


def _candidate(gateway: Gateway, endpoint: Endpoint, caller: Caller, model: str, record: Record) -> Candidate:
    """Return the first candidate that has the API. Raises `Denied`, `NoSuchModel`, and `BadBody` (501) if none has."""
    record.model = model = model.removeprefix("models/")
    caller.may_use(model)
    plan = gateway.router.plan(model, endpoint.format)
    record.route = plan.route
    able = [
        one
        for one in plan.candidates
        if one.upstream.channel.provider.realtime == endpoint.dialect
        and not gateway.router.is_simulated(one.upstream.place)
    ]
    if able:
        chosen = with_prices(caller, able, gateway.prices, "use of the realtime API")[0]
        record.upstream, record.target = chosen.upstream.name, chosen.model
        record.format = chosen.upstream.channel.provider.format
        return chosen
    having = ", ".join(name for name, row in PROVIDERS.items() if row.realtime == endpoint.dialect)
    names = ", ".join(sorted({one.upstream.place for one in plan.candidates}))
    words = f"{names} has no realtime API of this kind. These providers have it: {having}."
    raise BadBody(Failure("invalid_request", words, 501))


class _Session:
    """A connection to the client and one to the upstream."""

    def __init__(self, gateway: Gateway, endpoint: Endpoint, caller: Caller, record: Record, client: Any) -> None:
        self._gateway = gateway
        self._endpoint = endpoint
        self._caller = caller
        self._record = record
        self._client = client
        self._input = self._output = 0

    async def run(self, head: Head, candidate: Candidate | None) -> None:
        if not self._client.accept():
            return
        messages = self._client.messages()
        limit = asyncio.timeout(LONGEST_CONNECTION)
        try:
            async with limit:
                first = None
                if candidate is None:
                    candidate, first = self._set_up(await asyncio.wait_for(anext(messages), _FIRST_MESSAGE))
                async with await self._connect(head, candidate) as upstream:
                    if first is not None:
                        self._check_models(first, candidate)
                        await upstream.send(first)
                    await self._pump(messages, upstream, candidate)
        except (TimeoutError, StopAsyncIteration):  # the latter if the client closes before its first message
            over = "the session has reached its time limit"
            self._client.close(1001, over if limit.expired() else "the first message did not arrive in time")
        except Gone:
            pass
        except Exception as error:  # noqa: BLE001 - no longer HTTP: the close frame has the reason
            self._record.failure = "server"
            words = str(getattr(error, "failure", error)) or type(error).__name__
            self._record.error = words if candidate is None else without_keys(words, candidate.upstream.channel)
            failure = getattr(error, "failure", None)
            self._client.close(1011, failure.message if isinstance(failure, Failure) else "the upstream failed")

    def _set_up(self, first: str | bytes) -> tuple[Candidate, str]:
        """Return the upstream of the first message's model, and the message with the upstream's name of it.

        The message is encoded again so that it names one model, the one that was checked. Raises `BadBody`.
        """
        invalid = BadBody(Failure("invalid_request", "the first message has to set up one model", 400))
        try:
            fields = _object(first)
            setup = _object(fields["setup"])
            model = _text(setup["model"])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
            raise invalid from None
        if not model or sum(key.lower() in {"setup", "model"} for key in (*fields, *setup)) != _NAMES:
            raise invalid
        candidate = _candidate(self._gateway, self._endpoint, self._caller, model, self._record)
        if model.removeprefix("models/") != candidate.model:
            model = f"models/{candidate.model}"
        return candidate, msgspec.json.encode({**fields, "setup": {**setup, "model": model}}).decode()

    async def _connect(self, head: Head, candidate: Candidate) -> ClientConnection:
        from dragoman.gateway.client_websocket import ConnectDirectly  # noqa: PLC0415 - of the extra `gateway`

        channel = candidate.upstream.channel
        path = self._endpoint.path or f"/realtime?model={quote(candidate.model, safe='')}"
        passed = {name: head.headers[name] for name in _PASSED if name in head.headers}
        headers = {**passed, **channel.headers}
        request = HttpRequest(method="GET", url=channel.base_url + path, headers=headers, body=b"")
        signed = await channel.credential.sign(request)
        url = signed.url.replace("http", "ws", 1)
        subprotocols: Any = [_SUBPROTOCOL] if self._client.subprotocol else None
        try:
            return await ConnectDirectly(
                url,
                additional_headers=dict(signed.headers),
                subprotocols=subprotocols,
                max_size=self._gateway.config.server.max_body,
                open_timeout=_CONNECTING,
                user_agent_header=None,
            )
        except TimeoutError:  # the time limit of the session is reported differently
            raise ConnectionError(f"no WebSocket connection to {channel.base_url} in {_CONNECTING:g} s") from None

    def _check_models(self, message: str | bytes, candidate: Candidate) -> None:
        """Refuse further models to keys with limits, such as one that transcribes. Raises `BadBody`."""
        caller = self._caller
        if not caller.is_restricted:
            return
        place = candidate.upstream.place
        try:
            named = list(named_models(message.encode() if isinstance(message, str) else message))
        except DecodeError as error:
            raise BadBody(Failure("invalid_request", str(error), 400)) from None
        for model in named:
            name = model.removeprefix("models/")
            if name in {"", candidate.model}:
                continue
            if caller.has_budget or not (caller.allows(name) or caller.allows(f"{place}/{name}")):
                words = f"this key may not use the model {name[:_LONGEST_NAME]!r} in this session"
                raise BadBody(Failure("permission", words, 403))

    async def _pump(
        self, messages: AsyncIterator[str | bytes], upstream: ClientConnection, candidate: Candidate
    ) -> None:
        """Relay messages until either side closes; then close the other one too."""
        channel: Channel = candidate.upstream.channel

        async def onward() -> None:
            async for message in messages:
                await off_loop_if_large(len(message), self._check_models, message, candidate)
                await upstream.send(message)

        async def back() -> None:
            async for message in upstream:
                self._count(message)
                await self._client.send(without_keys(message, channel))

        tasks = [asyncio.ensure_future(onward()), asyncio.ensure_future(back())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[1] in done and upstream.close_code not in _BROKEN:
                code = 1000 if upstream.close_code in {None, _NO_CODE} else upstream.close_code
                self._client.close(code, without_keys(upstream.close_reason or "", channel))
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _count(self, message: str | bytes) -> None:
        text = message if isinstance(message, str) else message.decode("utf-8", "replace")
        if "response.done" not in text and "usageMetadata" not in text and _TRANSCRIBED not in text:
            return
        try:
            event = _event(message)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        if event.response is not None and event.response.usage is not None:
            self._input += event.response.usage.input_tokens
            self._output += event.response.usage.output_tokens
        elif event.usage is not None and event.type == _TRANSCRIBED:
            self._input += event.usage.input_tokens
            self._output += event.usage.output_tokens
        elif event.usage_metadata is not None:
            self._input += event.usage_metadata.prompt_token_count
            self._output += event.usage_metadata.response_token_count
        self._record.usage = Usage(input=self._input, output=self._output)
