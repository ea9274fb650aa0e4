"""The response cache: one answer for equal requests, in every client's format, and never a failed or truncated one."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from msgspec import structs

import dragoman
from dragoman.gateway.answer_cache import directives
from dragoman.gateway.config import Config, ConfigError, read_config
from dragoman.gateway.state.answers import AnswerStore, MemoryAnswers, SqlAnswers
from dragoman.gateway.state.connect import open_answers, open_store
from dragoman.sim.server import Simulator
from tests.gateway.running import Got, RunningGateway, configured, every_format, send, simulated
from tests.gateway.scripted_upstream import completion, reply, scripted
from tests.gateway.test_failures import chat
from tests.gateway.test_pairs import COUNTED, path_of
from tests.sim.test_sim_pairs import FORMATS, MODELS, first
from tests.sim.wire import DOORS
from tests.support.databases import Redis
from tests.support.promises import promise
from tests.support.waiting import until

pytestmark = promise("gateway:cache")
CACHE = "[cache]\nseconds = 60\n"
STORED = {"openai-responses": {"store": False}, "gemini-interactions": {"store": False}}


def cached(text: str = CACHE) -> RunningGateway:
    return RunningGateway(configured(text))


def outcome(got: Got) -> str:
    assert got.status == 200, got.body
    return got.headers["x-dragoman-cache"]


# ── every format ──


@pytest.mark.parametrize("format", FORMATS)
def test_an_answer_is_replayed_whole_and_streamed(format: str, dragoman_simulator: Simulator) -> None:
    """The conversation has parallel calls and signed reasoning, and the answer comes from a model of another vendor."""
    model = f"as-anthropic-messages/{MODELS['anthropic-messages']}"
    body = {**first(format), **STORED.get(format, {})}
    door = DOORS[format]

    def ask(gateway: RunningGateway, *, streamed: bool) -> Got:
        sent = {**body, "model": model} if "model" in body else body
        more = {**door.streams, **COUNTED.get(format, {})} if streamed else {}
        return send(gateway.url, path_of(format, model, streamed=streamed), {**sent, **more}, door.headers)

    def meaning(got: Got, *, streamed: bool) -> Any:
        if not streamed:
            completion = dragoman.decode_response(got.body, format)
        else:
            decoder = dragoman.StreamDecoder(format)
            completion = dragoman.accumulate([*decoder.feed(got.body), *decoder.close()])
        calls = [(call.id, call.name, call.arguments) for call in completion.tool_calls]
        return completion.text, completion.reasoning, calls, completion.finish_reason

    config = structs.replace(every_format(dragoman_simulator.url), cache=read_config(CACHE).cache)
    for first_way in (False, True):
        with RunningGateway(simulated(dragoman_simulator.url, config)) as gateway:
            given = ask(gateway, streamed=first_way)
            assert outcome(given) == "miss"
            again = [(way, ask(gateway, streamed=way)) for way in (False, True)]
            assert [outcome(got) for _, got in again] == ["hit", "hit"]
            expected = meaning(given, streamed=first_way)
            assert all(meaning(got, streamed=way) == expected for way, got in again)
            lines = gateway.requests(3)
        assert [line["cache"] for line in lines] == ["miss", "hit", "hit"]
        assert "tokens" not in lines[1], "a hit uses none"
        assert lines[1]["cost"] == 0


def test_clients_of_different_formats_share_an_answer() -> None:
    with (
        scripted(reply(completion("one")), reply(completion("two"))) as upstream,
        cached(CACHE + upstream.table("p")) as gateway,
    ):
        with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="any") as chat_client:
            answer = chat_client.chat.completions.create(
                model="p/m",
                max_tokens=9,
                temperature=0.5,
                messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
            )
            assert answer.choices[0].message.content == "one"
            response = chat_client.responses.create(
                model="p/m", input="hi", instructions="Be brief.", max_output_tokens=9, temperature=0.5, store=False
            )
            assert response.output_text == "one"
        with (
            anthropic.Anthropic(base_url=gateway.url, api_key="any") as client,
            client.messages.stream(
                model="p/m",
                max_tokens=9,
                extra_body={"temperature": 0.5},
                system="Be brief.",
                messages=[{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
            ) as stream,
        ):
            assert stream.get_final_text() == "one"
        body = {"model": "p/m", "options": {"num_predict": 9, "temperature": 0.5}, "stream": False}
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
        assert send(gateway.url, "/api/chat", {**body, "messages": messages}).json["message"]["content"] == "one"
        assert upstream.count == 1


# ── what keeps requests apart ──


@pytest.mark.parametrize(
    "other",
    [
        {"temperature": 0.1},
        {"seed": 5},
        {"messages": [{"role": "user", "content": "Hello "}]},
        {"messages": [{"role": "user", "content": "Hello", "name": "ada"}]},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"metadata": "a"}}}]},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"metadata": {}}}}]},
        {"unheard_of": 1},
    ],
    ids=str,
)
def test_a_different_request_is_not_a_hit(other: dict[str, Any]) -> None:
    plain = {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]} if "tools" in other else {}
    with scripted(reply(completion())) as upstream, cached(CACHE + upstream.table("p")) as gateway:
        assert outcome(send(gateway.url, "/v1/chat/completions", chat("p/m", **plain))) == "miss"
        assert outcome(send(gateway.url, "/v1/chat/completions", chat("p/m", **other))) == "miss"
        assert outcome(send(gateway.url, "/v1/chat/completions", chat("p/n", **plain))) == "miss"
        assert outcome(send(gateway.url, "/v1/chat/completions", chat("p/m", **plain))) == "hit"


def test_keys_do_not_share_answers_unless_configured() -> None:
    with scripted(reply(completion())) as upstream:
        text = f'[server]\nkeys = ["a-key", "b-key"]\n{upstream.table("p")}'

        def asked(gateway: RunningGateway, key: str) -> str:
            return outcome(send(gateway.url, "/v1/chat/completions", chat("p/m"), {"x-api-key": key}))

        with cached(text + CACHE) as gateway:
            assert [asked(gateway, key) for key in ("a-key", "b-key", "a-key")] == ["miss", "miss", "hit"]
        with cached(text + CACHE + "shared = true\n") as gateway:
            assert [asked(gateway, key) for key in ("a-key", "b-key")] == ["miss", "hit"]


# ── what is not cached ──


def test_failures_and_truncated_answers_are_not_cached() -> None:
    cut, blocked = completion(), completion()
    cut["choices"][0]["finish_reason"] = "length"
    blocked["choices"][0]["finish_reason"] = "content_filter"
    broken = reply({"error": {"message": "no"}}, "500 Internal Server Error")
    with (
        scripted(broken, reply(cut), reply(blocked), reply(completion("good"))) as upstream,
        cached(CACHE + upstream.table("p")) as gateway,
    ):
        answers = [send(gateway.url, "/v1/chat/completions", chat("p/m")) for _ in range(5)]
    assert [got.status for got in answers] == [500, 200, 200, 200, 200]
    assert [got.headers.get("x-dragoman-cache") for got in answers] == ["miss", "miss", "miss", "miss", "hit"]


def test_a_stream_that_breaks_off_is_not_cached() -> None:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    started = {**chunk, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "half"}}]}
    half = reply(f"data: {json.dumps(started)}\n\n".encode(), headers={"content-type": "text/event-stream"})
    with scripted(half) as upstream, cached(CACHE + upstream.table("p")) as gateway:
        for _ in range(2):
            send(gateway.url, "/v1/chat/completions", chat("p/m", stream=True))
        assert upstream.count == 2


def test_the_clients_cache_control_is_followed() -> None:
    with (
        scripted(*(reply(completion(str(n))) for n in range(9))) as upstream,
        cached(CACHE + upstream.table("p")) as gateway,
    ):

        def asked(control: str) -> tuple[str, str]:
            got = send(gateway.url, "/v1/chat/completions", chat("p/m"), {"cache-control": control})
            return outcome(got), got.json["choices"][0]["message"]["content"]

        assert asked("no-store") == ("bypass", "0")
        assert asked("") == ("miss", "1")
        assert asked("max-age=60") == ("hit", "1")
        assert asked("no-cache") == ("miss", "2")
        assert asked("") == ("hit", "2"), "refreshed"
        time.sleep(0.01)
        assert asked("max-age=0") == ("miss", "3")
        got = send(gateway.url, "/v1/chat/completions", chat("p/m"))
        assert got.headers["age"] == "0"
        metrics = send(gateway.url, "/metrics", method="GET").body.decode()
        assert 'dragoman_cache_total{client="openai-chat",result="hit"} 3' in metrics


def test_cache_directives_of_a_client() -> None:
    assert directives('No-Store, max-age="5" ,private') == {"no-store": None, "max-age": 5, "private": None}
    assert directives("") == {}
    assert directives("max-age=" + "9" * 5_000)["max-age"]


def test_each_stored_response_has_its_own_id() -> None:
    with scripted(reply(completion())) as upstream, cached(CACHE + upstream.table("p")) as gateway:
        body = {"model": "p/m", "input": "hi", "metadata": {"a": "b"}}
        responses = [send(gateway.url, "/v1/responses", body).json for _ in range(2)]
        streamed = send(gateway.url, "/v1/responses", {**body, "stream": True})
        assert upstream.count == 1
        assert len({one["id"] for one in responses}) == 2
        assert all(one["metadata"] == {"a": "b"} for one in responses), "what was asked is echoed"
        assert outcome(streamed) == "hit"
        for one in responses:
            assert send(gateway.url, f"/v1/responses/{one['id']}", method="GET").json["output"] == one["output"]


def test_answers_that_an_upstream_stores_are_never_cached() -> None:
    answer = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m", "output": []}
    with scripted(reply(answer)) as upstream, cached(CACHE + upstream.table("p", "openai")) as gateway:
        for _ in range(2):
            assert outcome(send(gateway.url, "/v1/responses", {"model": "p/m", "input": "hi"})) == "bypass"


def test_without_configuration_there_is_no_cache() -> None:
    with scripted(reply(completion())) as upstream, cached(upstream.table("p")) as gateway:
        got = [send(gateway.url, "/v1/chat/completions", chat("p/m")) for _ in range(2)]
        assert upstream.count == 2
        assert all("x-dragoman-cache" not in one.headers for one in got)


# ── stores ──


@pytest.fixture(params=["memory", "sqlite", "redis"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "redis":
        server: Redis = request.getfixturevalue("redis_server")
        return f'[cache]\nseconds = 0.8\nstore = "{server.fresh()}"\n'
    where = f'[server]\ndatabase = "{tmp_path / "gateway.db"}"\n' if request.param == "sqlite" else ""
    return f'{where}[cache]\nseconds = 0.8\nstore = "{"database" if where else "memory"}"\n'


def test_answers_expire_in_every_store(stores: str) -> None:
    with scripted(reply(completion())) as upstream, cached(stores + upstream.table("p")) as gateway:

        def asked() -> str:
            return outcome(send(gateway.url, "/v1/chat/completions", chat("p/m")))

        assert asked() == "miss"
        until(lambda: asked() == "hit", pause=0)
        until(lambda: asked() != "hit")


def test_an_unreachable_cache_does_not_delay_requests() -> None:
    with (
        scripted(reply(completion())) as upstream,
        cached(f'[cache]\nseconds = 9\nstore = "redis://127.0.0.1:1/0"\n{upstream.table("p")}') as gateway,
    ):
        assert outcome(send(gateway.url, "/v1/chat/completions", chat("p/m"))) == "miss"
        assert any(line["event"] == "cache_away" for line in gateway.log.lines)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_stores_are_bounded(kind: str, tmp_path: Path) -> None:
    async def run() -> None:
        opened, database = await open_store(str(tmp_path / "gateway.db"))
        store: AnswerStore = MemoryAnswers(10_000) if kind == "memory" else SqlAnswers(database, 10_000)
        for number in range(200):
            await store.keep(f"key-{number}", bytes(1_000), 60.0 + number)
        found = [number for number in range(200) if await store.find(f"key-{number}") is not None]
        assert 5 < len(found) <= 10
        assert found[-1] == 199, "the newest stay"
        await store.close()
        await opened.close()

    asyncio.run(run())


def test_mistakes_of_the_configuration() -> None:
    with pytest.raises(ConfigError, match=r"cache\.store: there is no server\.database"):
        read_config('[cache]\nseconds = 5\nstore = "database"\n')
    with pytest.raises(ConfigError, match=r"cache\.store"):
        open_answers(read_config('[cache]\nstore = "elsewhere"\n').cache, {}, None)  # type: ignore[arg-type]
    assert Config().cache.seconds == 0
