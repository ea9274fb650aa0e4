"""Realtime APIs: the vendors' own clients, through the gateway, to a real WebSocket server."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest
import websockets
from websockets.asyncio.server import ServerConnection, serve
from websockets.sync.client import connect

from tests.gateway.running import RunningGateway, configured, send
from tests.support.promises import promise

pytestmark = promise("gateway:realtime")
DONE = {"type": "response.done", "response": {"usage": {"input_tokens": 11, "output_tokens": 5}}}


class Upstream:
    """A server of WebSockets that answers as its handler says."""

    def __init__(self, answer: Callable[[dict[str, Any]], list[Any]], greeting: Any = None) -> None:
        self.heads: list[tuple[str, dict[str, str]]] = []
        self.messages: list[Any] = []
        self.url = ""
        self._answer, self._greeting = answer, greeting

    async def serve(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        self.heads.append(
            (connection.request.path, {name.lower(): value for name, value in connection.request.headers.raw_items()})
        )
        if self._greeting is not None:
            await connection.send(json.dumps(self._greeting))
        async for message in connection:
            self.messages.append(json.loads(message))
            for reply in self._answer(self.messages[-1]):
                if isinstance(reply, int):
                    await connection.close(reply, "as scripted")
                else:
                    await connection.send(reply if isinstance(reply, bytes) else json.dumps(reply))


@contextmanager
def running(upstream: Upstream) -> Iterator[Upstream]:
    ready, loop = threading.Event(), asyncio.new_event_loop()
    stop: asyncio.Future[None] = loop.create_future()

    async def work() -> None:
        async with serve(upstream.serve, "127.0.0.1", 0) as server:
            upstream.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            ready.set()
            await stop

    thread = threading.Thread(target=lambda: loop.run_until_complete(work()), daemon=True)
    thread.start()
    ready.wait()
    yield upstream
    loop.call_soon_threadsafe(stop.set_result, None)
    thread.join()
    loop.close()


def table(upstream: Upstream, kind: str = "openai") -> str:
    return f'[providers.p]\nkind = "{kind}"\nbase_url = "{upstream.url}"\napi_key = "upstream-key"\n'


@pytest.mark.filterwarnings("ignore:connect")  # the client's own, about the library it uses
def test_openais_own_client() -> None:
    def answer(event: dict[str, Any]) -> list[Any]:
        return (
            [{"type": "response.output_text.delta", "delta": "hi"}, DONE] if event["type"] == "response.create" else []
        )

    with (
        running(Upstream(answer, {"type": "session.created", "session": {}})) as upstream,
        RunningGateway(configured(f'[server]\nkeys = ["sesame"]\n{table(upstream)}')) as gateway,
    ):
        client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="sesame")
        with client.realtime.connect(model="p/gpt-realtime") as connection:
            assert connection.recv().type == "session.created"
            connection.send({"type": "response.create"})
            assert [connection.recv().type for _ in range(2)] == ["response.output_text.delta", "response.done"]
        (line,) = gateway.requests(1)
        assert (line["operation"], line["key"]) == ("realtime", "key-1")
        assert (line["tokens"]["input"], line["tokens"]["output"]) == (11, 5)
    path, headers = upstream.heads[0]
    assert path == "/realtime?model=gpt-realtime"
    assert headers["authorization"] == "Bearer upstream-key"
    assert "sesame" not in json.dumps(upstream.heads)


def test_gemini_live_names_its_model_in_the_first_message() -> None:
    """Google's client speaks TLS only, so its messages are sent here as it sends them."""

    def answer(event: dict[str, Any]) -> list[Any]:
        if "setup" in event:
            return [{"setupComplete": {}}]
        turn = {"modelTurn": {"parts": [{"text": "hello"}]}, "turnComplete": True}
        return [{"serverContent": turn, "usageMetadata": {"promptTokenCount": 3, "responseTokenCount": 2}}]

    path = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
    route = '[routes.gemini-live]\nto = "p/gemini-live"\n'
    with (
        running(Upstream(answer)) as upstream,
        RunningGateway(configured(table(upstream, "gemini") + route)) as gateway,
        connect(gateway.url.replace("http", "ws") + path, additional_headers={"x-goog-api-key": "any"}) as client,
    ):
        client.send(json.dumps({"setup": {"model": "models/gemini-live"}}))
        assert json.loads(client.recv()) == {"setupComplete": {}}
        client.send(json.dumps({"clientContent": {"turns": [], "turnComplete": True}}))
        assert json.loads(client.recv())["serverContent"]["turnComplete"]
        client.close()
        (line,) = gateway.requests(1)
        assert (line["upstream"], line["tokens"]["input"], line["tokens"]["output"]) == ("p", 3, 2)
    assert upstream.heads[0][0] == path
    assert upstream.heads[0][1]["x-goog-api-key"] == "upstream-key"


def test_bytes_sizes_and_closing() -> None:
    def answer(event: dict[str, Any]) -> list[Any]:
        return [b"\x00\xff" * 10, 4001] if event.get("end") else []

    with (
        running(Upstream(answer)) as upstream,
        RunningGateway(configured(f"[server]\nmax_body = 5000\n{table(upstream)}")) as gateway,
    ):
        address = gateway.url.replace("http", "ws") + "/v1/realtime?model=p/m"
        with connect(address, subprotocols=["realtime"]) as client:  # type: ignore[list-item]
            assert client.subprotocol == "realtime"
            client.send(json.dumps({"end": True}))
            assert client.recv() == b"\x00\xff" * 10
            with pytest.raises(websockets.ConnectionClosed) as closed:
                client.recv()
            assert closed.value.rcvd is not None
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4001, "as scripted")
        with connect(address) as client:
            client.send("x" * 9_000)
            with pytest.raises(websockets.ConnectionClosed):
                client.recv()
        assert len(upstream.messages) == 1, "what is too large does not reach the upstream"


def test_refusals_before_anything_is_connected() -> None:
    with (
        running(Upstream(lambda _: [])) as upstream,
        RunningGateway(
            configured(
                f'[server]\nkeys = ["sesame"]\n{table(upstream)}[providers.a]\nkind = "anthropic"\napi_key = "k"\n'
            )
        ) as gateway,
    ):
        upgrade = {
            "connection": "Upgrade",
            "upgrade": "websocket",
            "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
            "sec-websocket-version": "13",
        }
        keyed = {**upgrade, "authorization": "Bearer sesame"}
        assert send(gateway.url, "/v1/realtime?model=p/m", None, upgrade, "GET").status == 401
        assert send(gateway.url, "/v1/realtime", None, keyed, "GET").status == 400
        got = send(gateway.url, "/v1/realtime?model=a/claude", None, keyed, "GET")
        assert (got.status, b"openai" in got.body) == (501, True)
        assert upstream.heads == []


def test_an_upstream_that_is_away_closes_the_connection() -> None:
    text = '[providers.p]\nkind = "openai"\nbase_url = "http://127.0.0.1:1"\napi_key = "k"\n'
    with RunningGateway(configured(text)) as gateway:
        with connect(gateway.url.replace("http", "ws") + "/v1/realtime?model=p/m") as client:
            with pytest.raises(websockets.ConnectionClosed) as closed:
                client.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1011
        (line,) = gateway.requests(1)
        assert line["failure"] == "server"
