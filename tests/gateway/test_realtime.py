"""Realtime APIs: the vendors' own clients, through the gateway, to a real WebSocket server."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import openai
import pytest
import websockets
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, ConnectionClosedError
from websockets.sync.client import connect

from dragoman.errors import DecodeError
from dragoman.gateway.exchange import ServerLimits
from dragoman.gateway.model_key import named_models
from tests.gateway.running import RunningGateway, configured, send
from tests.gateway.scripted_upstream import reply, scripted
from tests.gateway.test_keys import create, key
from tests.support.costs import cpu_seconds, growth
from tests.support.promises import promise
from tests.support.waiting import until

pytestmark = promise("gateway:realtime")
LIVE = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
DONE = {"type": "response.done", "response": {"usage": {"input_tokens": 11, "output_tokens": 5}}}


class Upstream:
    """A WebSocket server that answers with what its handler returns."""

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
            for given in self._answer(self.messages[-1]):
                if isinstance(given, int):
                    await connection.close(given, "as scripted")
                else:
                    await connection.send(given if isinstance(given, bytes) else json.dumps(given))


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


class Raw(Upstream):
    """Sends bytes instead of frames, and closes with a reason that quotes the key."""

    def __init__(self, data: bytes, reason: str = "") -> None:
        super().__init__(lambda _: [])
        self._data, self._reason = data, reason

    async def serve(self, connection: ServerConnection) -> None:
        connection.transport.write(self._data)
        if self._reason:
            await connection.close(1008, self._reason)
        else:
            await asyncio.sleep(0.2)


QUOTED = b'{"error":{"message":"wrong key upstream-key"}}'


@promise("gateway:no-secrets")
@pytest.mark.parametrize("opcode", [b"\x81", b"\x82"], ids=["text", "binary"])
def test_a_key_that_an_upstream_quotes_is_hidden(opcode: bytes) -> None:
    upstream = Raw(opcode + bytes([len(QUOTED)]) + QUOTED, "wrong key upstream-key")
    with (
        running(upstream),
        RunningGateway(configured(table(upstream))) as gateway,
        connect(gateway.url.replace("http", "ws") + "/v1/realtime?model=p/m", proxy=None) as client,
    ):
        assert json.loads(client.recv()) == {"error": {"message": "wrong key [hidden]"}}
        with pytest.raises(ConnectionClosedError, match=r"1008.*wrong key \[hidden\]"):
            client.recv()
        assert "upstream-key" not in str(gateway.requests(1))


CLOSED = {
    "without a code": (b"\x88\x00", 1000, None),
    "in the middle of a message": (b"\x81\x05ab", 1011, "server"),
    "after a message that is not UTF-8": (b"\x81\x01\xff", 1011, "server"),
}


@pytest.mark.parametrize("name", CLOSED)
def test_closes_that_have_no_code(name: str) -> None:
    data, code, failure = CLOSED[name]
    upstream = Raw(data)
    with (
        running(upstream),
        RunningGateway(configured(table(upstream))) as gateway,
        connect(gateway.url.replace("http", "ws") + "/v1/realtime?model=p/m", proxy=None) as client,
    ):
        with pytest.raises(ConnectionClosed):
            client.recv()
        assert client.close_code == code
        (line,) = gateway.requests(1)
        assert line.get("failure") == failure


def test_a_text_of_the_client_that_is_not_utf8_is_its_own_failure() -> None:
    upstream = Upstream(lambda _: [])
    with (
        running(upstream),
        RunningGateway(configured(table(upstream))) as gateway,
        connect(gateway.url.replace("http", "ws") + "/v1/realtime?model=p/m", proxy=None) as client,
    ):
        client.socket.sendall(b"\x81\x81\0\0\0\0\xff")
        with pytest.raises(ConnectionClosed):
            client.recv()
        assert client.close_code == 1007
        (line,) = gateway.requests(1)
        assert "failure" not in line


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
    """Google's client connects over TLS only, so the test sends the same messages itself."""

    def answer(event: dict[str, Any]) -> list[Any]:
        if "setup" in event:
            return [{"setupComplete": {}}]
        turn = {"modelTurn": {"parts": [{"text": "hello"}]}, "turnComplete": True}
        return [{"serverContent": turn, "usageMetadata": {"promptTokenCount": 3, "responseTokenCount": 2}}]

    path = LIVE
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


def test_an_upstream_that_does_not_answer_the_handshake_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the end of a session: the client may try again, and the log has a failed request."""
    monkeypatch.setattr("dragoman.gateway.realtime._CONNECTING", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        text = f'[providers.p]\nkind = "openai"\nbase_url = "{address}"\napi_key = "k"\n'
        with RunningGateway(configured(text)) as gateway:
            with connect(gateway.url.replace("http", "ws") + "/v1/realtime?model=p/m") as client:
                assert closing(client) == (1011, "the upstream failed")
            (line,) = gateway.requests(1)
            assert line["failure"] == "server"


def closing(client: Any) -> tuple[int, str]:
    """Code and reason of the close frame, which comes next."""
    with pytest.raises(websockets.ConnectionClosed) as closed:
        client.recv()
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code, closed.value.rcvd.reason


@promise("gateway:attacks")
def test_the_model_of_a_first_message_is_the_one_that_was_checked() -> None:
    route = '[routes.cheap]\nto = "p/gemini-live-cheap"\n'
    with (
        running(Upstream(lambda _: [{"setupComplete": {}}])) as upstream,
        RunningGateway(configured(table(upstream, "gemini") + route)) as gateway,
    ):
        address = gateway.url.replace("http", "ws") + LIVE
        for first in (
            '{"setup":{"model":"models/cheap","x":1e3}}',
            '{"setup":{"model":"models/dear"},"setup":{"x":1e3,"model":"models/dear","model":"cheap"}}',
        ):
            with connect(address) as client:
                client.send(first)
                assert json.loads(client.recv()) == {"setupComplete": {}}
        sent = {"setup": {"model": "models/gemini-live-cheap", "x": 1e3}}
        assert upstream.messages == [sent, sent]
        for first in (
            '{"setup":{"model":"cheap","Model":"models/dear"}}',
            '{"setup":{"model":"cheap"},"Setup":{"model":"models/dear"}}',
            '{"setup":{"model":5}}',
            '{"setup":{}}',
            "[" * 100_000,
            "nothing",
        ):
            with connect(address) as client:
                client.send(first)
                assert closing(client) == (1011, "the first message has to set up one model")
        assert len(upstream.messages) == 2


@promise("gateway:attacks")
def test_redirects_of_an_upstream_are_not_followed() -> None:
    with running(Upstream(lambda _: [])) as other:
        moved = reply(b"", "307 Temporary Redirect", {"location": other.url.replace("http", "ws") + "/secret"})
        with scripted(moved) as upstream, RunningGateway(configured(upstream.table("p", "gemini"))) as gateway:
            with connect(gateway.url.replace("http", "ws") + LIVE) as client:
                client.send('{"setup":{"model":"models/p/m"}}')
                assert closing(client) == (1011, "the upstream failed")
            assert upstream.count == 1
        assert other.heads == []


@promise("gateway:attacks")
@pytest.mark.parametrize("count", [-5, 10**30, "7", 1.5])
def test_impossible_counts_of_an_upstream_are_ignored(count: Any) -> None:
    odd = {"type": "response.done", "response": {"usage": {"input_tokens": count, "output_tokens": 1}}}
    with (
        running(Upstream(lambda _: [odd, DONE])) as upstream,
        RunningGateway(configured(table(upstream))) as gateway,
    ):
        with connect(gateway.url.replace("http", "ws") + "/v1/realtime?model=p/m") as client:
            client.send("{}")
            client.recv()
            client.recv()
        (line,) = gateway.requests(1)
        assert (line["tokens"]["input"], line["tokens"]["output"]) == (11, 5)


@promise("gateway:attacks")
@pytest.mark.parametrize("path", ["/v1/realtime?model=p/m", "/v1/responses"])
def test_incomplete_messages_are_bounded_in_memory_and_in_time(path: str) -> None:
    """In one frame or in many: they count as bodies of requests do, until they are complete or too slow."""
    limits = ServerLimits(buffered=100_000, body_window=0.5)
    with (
        running(Upstream(lambda _: [])) as upstream,
        RunningGateway(configured(table(upstream)), limits) as gateway,
        ExitStack() as stack,
    ):
        assert gateway.running is not None
        budget = gateway.running.server.budget
        clients = [stack.enter_context(connect(gateway.url.replace("http", "ws") + path)) for _ in range(3)]
        clients[0].socket.sendall(b"\x81\xff" + (90_000).to_bytes(8, "big") + bytes(60_004))  # a part of a frame
        until(lambda: budget.used >= 60_000, "the bytes of an incomplete frame are not counted")
        clients[1].socket.sendall(b"\x01\xff" + (60_000).to_bytes(8, "big") + bytes(60_004))  # a part of a message
        assert closing(clients[1])[0] == 1013
        assert closing(clients[0]) == (1008, "the message took too long")
        until(lambda: not budget.used, "what was given up is still counted")
        clients[2].send(json.dumps({"type": "x" * 50_000}))  # whole, so its bytes are free again
        clients[2].send(json.dumps({"type": "x" * 50_000}))
        until(lambda: not budget.used, "complete messages are still counted")


FURTHER = (
    '{"type":"session.update","session":{"audio":{"input":{"transcription":{"model":"dear"}}}}}',
    '{"type":"session.update","session":{"input_audio_transcription":{"m\\u006fdel":"d\\u0065ar"}}}',
    '{"type":"session.update","session":{"Model" : "dear"}}',
    '{"type":"session.update","session":{"model":"m","model":"dear"}}',
    '{"type":"response.create","response":{"models":["m", "dear"]}}',
)
SAME = (
    '{"type":"session.update","session":{"model":"m"}}',
    '{"type":"session.update","session":{"tools":[{"parameters":{"properties":{"model":{"type":"string"}}}}]}}',
    '{"type":"conversation.item.create","item":{"content":[{"text":"the \\"model\\":\\"dear\\""}]}}',
)


@promise("gateway:attacks")
@pytest.mark.parametrize("limits", [{"models": ("p/m",)}, {"budget": 1.0}, {"token_budget": 1_000}], ids=str)
def test_a_key_with_limits_uses_one_model_in_a_session(limits: dict[str, Any], tmp_path: Path) -> None:
    """Models that transcribe have other prices, and some report seconds in place of tokens."""
    address = str(tmp_path / "gateway.db")
    create(address, key("limited", **limits), key("free"))
    prices = '[prices."p/m"]\ninput = 1\noutput = 1\n'
    with (
        running(Upstream(lambda _: [{"type": "ok"}])) as upstream,
        RunningGateway(configured(f'[server]\ndatabase = "{address}"\n{table(upstream)}{prices}')) as gateway,
    ):
        url = gateway.url.replace("http", "ws") + "/v1/realtime?model=p/m"
        for name, sent in (("free", (*SAME, *FURTHER)), ("limited", SAME)):
            with connect(url, additional_headers={"authorization": f"Bearer k-{name}"}, proxy=None) as client:
                for message in sent:
                    client.send(message)
                    assert json.loads(client.recv()) == {"type": "ok"}
        arrived = len(upstream.messages)
        for message in FURTHER:
            until(lambda: gateway.running is not None and not gateway.running.gateway.metrics.in_flight, "it ends")
            with connect(url, additional_headers={"authorization": "Bearer k-limited"}, proxy=None) as client:
                client.send(message)
                assert closing(client) == (1011, "this key may not use the model 'dear' in this session")
        assert len(upstream.messages) == arrived


@promise("gateway:attacks")
@pytest.mark.parametrize("unit", [b'\\"', b'"', b'"model":', b'"model":[', b'[{"model":"'], ids=str)
def test_models_of_a_message_are_found_in_linear_time(unit: bytes) -> None:
    def prepare(count: int) -> Callable[[], None]:
        message = b'{"model":"a' + unit * count

        def read() -> None:
            with suppress(DecodeError):
                list(named_models(message))

        return read

    assert not growth(prepare, 2_000, 64_000, cpu_seconds).is_steep


def test_a_key_may_transcribe_with_another_model_that_it_may_use(tmp_path: Path) -> None:
    address = str(tmp_path / "gateway.db")
    create(address, key("both", models=("p/m", "p/dear")))
    with (
        running(Upstream(lambda _: [{"type": "ok"}])) as upstream,
        RunningGateway(configured(f'[server]\ndatabase = "{address}"\n{table(upstream)}')) as gateway,
    ):
        url = gateway.url.replace("http", "ws") + "/v1/realtime?model=p/m"
        with connect(url, additional_headers={"authorization": "Bearer k-both"}, proxy=None) as client:
            client.send(FURTHER[0])
            assert json.loads(client.recv()) == {"type": "ok"}


def test_tokens_of_transcriptions_are_counted() -> None:
    usage = {"type": "tokens", "input_tokens": 7, "output_tokens": 2, "total_tokens": 9}
    transcribed = {"type": "conversation.item.input_audio_transcription.completed", "usage": usage}
    timed = {**transcribed, "usage": {"type": "duration", "seconds": 3.0}}
    with (
        running(Upstream(lambda _: [transcribed, timed, DONE])) as upstream,
        RunningGateway(configured(table(upstream))) as gateway,
    ):
        with connect(gateway.url.replace("http", "ws") + "/v1/realtime?model=p/m", proxy=None) as client:
            client.send("{}")
            for _ in range(3):
                client.recv()
        (line,) = gateway.requests(1)
    assert (line["tokens"]["input"], line["tokens"]["output"]) == (18, 7)
