"""What the live page asks the gateway, over real sockets."""

import asyncio
import json
import shlex
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any

import aiohttp
import pytest

from dragoman.drivers.secret import HIDDEN
from dragoman.gateway.access import digest_of
from tests.support.promises import promise
from tests.support.waiting import PATIENCE
from tests.web.upstream import GEMINI, GEMINI_PATH, KEY, MESSAGES, Upstream, page_and_simulators, page_and_upstream

Work = Callable[[str, aiohttp.ClientSession, Upstream], Coroutine[Any, Any, None]]
BODY = {"max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]}
CLIENT_KEY = "sk-ant-client-secret"


def with_gateway(work: Work, server: str = "", environment: Mapping[str, str] | None = None) -> None:
    async def run() -> None:
        async with (
            asyncio.timeout(PATIENCE),
            page_and_upstream(server, environment) as (running, upstream),
            aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client,
        ):
            await work(running.url, client, upstream)

    asyncio.run(run())


async def get(client: aiohttp.ClientSession, url: str) -> Any:
    async with client.get(url) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


async def post(client: aiohttp.ClientSession, url: str, body: object, key: str = CLIENT_KEY) -> bytes:
    async with client.post(url, json=body, headers={"x-api-key": key}) as answer:
        return await answer.read()


async def events(client: aiohttp.ClientSession, url: str) -> AsyncIterator[tuple[str, Any]]:
    async with client.get(f"{url}/_/api/live/feed") as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        kind = ""
        async for line in answer.content:
            if line.startswith(b"event: "):
                kind = line[7:].decode().strip()
            elif line.startswith(b"data: "):
                yield kind, json.loads(line[6:])


async def newest(client: aiohttp.ClientSession, url: str) -> Any:
    """The last request, opened, when it has ended."""
    async for _, data in events(client, url):
        if data and data[0]["phase"] == "ended":
            return await get(client, f"{url}/_/api/live/requests/{data[0]['id']}")
    raise AssertionError


@promise("gateway:page-views", "gateway:page-losses", "gateway:page-no-secrets")
def test_one_request_is_shown_both_ways() -> None:
    async def work(url: str, client: aiohttp.ClientSession, upstream: Upstream) -> None:
        answer = await post(client, f"{url}/v1/messages?beta=true&key=sk-in-query", MESSAGES)
        opened = await newest(client, url)
        assert json.loads(opened["client"]["body"]["text"]) == MESSAGES
        assert opened["client"]["headers"]["x-api-key"] == HIDDEN
        assert opened["client"]["path"] == f"/v1/messages?beta=true&key={HIDDEN}"
        meant = json.loads(opened["meant"]["text"])
        assert meant["messages"][-1]["role"] == "user"
        (attempt,) = opened["attempts"]
        assert json.loads(attempt["body"]["text"]) == upstream.requests[0]
        assert (attempt["status"], attempt["is_same"], attempt["format"]) == (200, False, "openai-chat")
        assert {"path": "$.top_k", "severity": "dropped"}.items() <= opened["losses"][0].items()
        assert json.loads(opened["answer"]["received"]["text"])["object"] == "chat.completion"
        assert json.loads(opened["answer"]["meant"]["text"])["messages"][0]["role"] == "assistant"
        assert opened["answer"]["sent"]["text"].encode() == answer
        assert opened["summary"]["tokens"] == {"input": 9, "output": 5}
        text = json.dumps(opened)
        assert not any(key in text for key in (KEY, CLIENT_KEY, "sk-in-query"))

    with_gateway(work)


@promise("gateway:page-feed")
def test_the_feed_sends_each_step_as_it_happens() -> None:
    async def work(url: str, client: aiohttp.ClientSession, upstream: Upstream) -> None:
        upstream.may_end.clear()
        feed = events(client, url)
        assert await anext(feed) == ("snapshot", [])
        asking = asyncio.ensure_future(post(client, f"{url}/v1/messages", {**MESSAGES, "stream": True}))
        kind, data = await anext(feed)
        while data[0]["phase"] != "answering":
            assert kind == "changes"
            kind, data = await anext(feed)
        assert "duration" not in data[0]
        upstream.may_end.set()
        await asking
        kind, data = await anext(feed)
        assert (data[0]["phase"], data[0]["status"], data[0]["stream"]) == ("ended", 200, True)
        assert 0 < data[0]["first_byte"] < data[0]["duration"]
        await feed.aclose()  # type: ignore[attr-defined]
        async for _, again in events(client, url):
            assert again == data
            break

    with_gateway(work)


@promise("gateway:page-timeline")
def test_a_stream_is_shown_with_the_bytes_of_each_moment() -> None:
    async def work(url: str, client: aiohttp.ClientSession, upstream: Upstream) -> None:
        upstream.pause = 0.02
        got = await post(client, f"{url}/v1/messages", {**MESSAGES, "stream": True})
        opened = await newest(client, url)
        steps = opened["timeline"]
        assert "".join(step.get("sent", "") for step in steps).encode() == got
        assert "".join(step.get("received", "") for step in steps).endswith("data: [DONE]\n\n")
        assert [step["at"] for step in steps] == sorted(step["at"] for step in steps)
        assert steps[-1]["at"] - steps[0]["at"] > 50
        words = [step for step in steps if "upstream" in step.get("received", "")]
        assert "upstream" in words[0]["sent"]
        answer = json.loads(opened["answer"]["meant"]["text"])
        assert answer["messages"][0]["parts"] == [{"type": "text", "text": "Hello from the upstream. "}]

    with_gateway(work)


@promise("gateway:page-timeline")
@pytest.mark.parametrize(("path", "last"), [("/v1/messages", "event: error"), ("/v1/chat/completions", '"error"')])
def test_a_stream_that_breaks_off_is_shown_with_what_the_client_received(path: str, last: str) -> None:
    async def work(url: str, client: aiohttp.ClientSession, upstream: Upstream) -> None:
        upstream.breaks = True
        got = await post(client, f"{url}{path}", {"model": "stub/large", "stream": True, **BODY})
        opened = await newest(client, url)
        assert opened["summary"]["failure"] == "truncated"
        steps = opened["timeline"]
        assert "".join(step.get("sent", "") for step in steps).encode() == got
        assert last in steps[-1]["sent"]
        assert "received" not in steps[-1]

    with_gateway(work)


@promise("gateway:page-timeline")
def test_a_binary_stream_is_shown_as_text() -> None:
    async def work(url: str, client: aiohttp.ClientSession, upstream: Upstream) -> None:
        del upstream
        body = {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}
        await post(client, f"{url}/model/stub%2Flarge/converse-stream", body)
        opened = await newest(client, url)
        sent = [json.loads(line) for step in opened["timeline"] for line in step.get("sent", "").splitlines()]
        assert "messageStart" in sent[0]
        assert "Hello " in json.dumps(sent)

    with_gateway(work)


@promise("gateway:page-views", "gateway:page-no-secrets")
def test_attempts_that_failed_are_shown_without_the_key_they_quote() -> None:
    async def work(url: str, client: aiohttp.ClientSession, upstream: Upstream) -> None:
        del upstream
        await post(client, f"{url}{GEMINI_PATH.replace('stub/large', 'smart')}", GEMINI)
        opened = await newest(client, url)
        first, second = opened["attempts"]
        assert (first["upstream"], first["status"], first["failure"]) == ("broken", 503, "overloaded")
        assert HIDDEN in first["answer"]["text"]
        assert (second["upstream"], second["status"]) == ("stub", 200)
        assert KEY not in json.dumps(opened)

    with_gateway(work)


@promise("gateway:page-views")
def test_what_was_refused_is_shown_with_why() -> None:
    async def work(url: str, client: aiohttp.ClientSession, upstream: Upstream) -> None:
        del upstream
        await post(client, f"{url}/v1/messages", {**MESSAGES, "messages": "none"})
        opened = await newest(client, url)
        assert opened["summary"]["failure"] == "invalid_request"
        assert opened["meant"]["problem"]["path"] == "$.messages"
        assert opened["attempts"] == []
        assert json.loads(opened["answer"]["sent"]["text"])["type"] == "error"
        async with client.get(f"{url}/_/api/live/requests/req_nobody") as answer:
            assert answer.status == 404

    with_gateway(work)


@promise("gateway:page-views")
def test_counting_is_shown_with_the_upstream_that_counted() -> None:
    async def run() -> None:
        async with asyncio.timeout(PATIENCE), page_and_simulators() as running, aiohttp.ClientSession() as client:
            body = {"model": "claude-sonnet-5", "messages": [{"role": "user", "content": "hi"}]}
            counted = await post(client, f"{running.url}/v1/messages/count_tokens", body)
            opened = await newest(client, running.url)
            assert opened["summary"]["operation"] == "count"
            (attempt,) = opened["attempts"]
            assert attempt["url"].endswith("/v1/messages/count_tokens")
            assert opened["answer"]["received"]["text"] == opened["answer"]["sent"]["text"] == counted.decode()
            assert opened["meant"] is None

    asyncio.run(run())


def test_connected_providers_and_routes_are_named() -> None:
    async def work(url: str, client: aiohttp.ClientSession, upstream: Upstream) -> None:
        del upstream
        await post(client, f"{url}/v1/messages", MESSAGES)
        data = await get(client, f"{url}/_/api/live/connected")
        connections = {one["name"]: one for one in data["connections"]}
        assert connections["stub"]["keys"] == ["STUB_KEY"]
        assert connections["stub"]["upstreams"] == [{"name": "stub", "breaker": "closed", "in_flight": 0}]
        assert connections["stub"]["models"] == ["large"]
        assert data["routes"] == [{"name": "smart", "to": ["broken/large"], "fallback": ["stub/large"]}]
        assert KEY not in json.dumps(data)
        clients = {one["name"]: one["lines"] for one in data["clients"]}
        assert clients["claude-code"].startswith(f"export ANTHROPIC_BASE_URL={url}\n")
        _, address, _, header, _, body = shlex.split(clients["curl"])
        async with client.post(address, data=body, headers=dict([header.split(": ", 1)])) as answer:
            assert (await answer.json())["choices"][0]["message"]["content"] == "Hello from the upstream."

    with_gateway(work)


@promise("gateway:page-own")
def test_a_key_sees_its_own_requests_alone() -> None:
    async def work(url: str, client: aiohttp.ClientSession, upstream: Upstream) -> None:
        del upstream
        for key in ("key-of-ada", "key-of-bob", "key-of-nobody"):
            await post(client, f"{url}/v1/messages", MESSAGES, key)
        async with client.get(f"{url}/_/api/live/feed") as answer:
            assert answer.status == 401
        async with client.post(f"{url}/_/login", data={"password": "key-of-bob"}) as answer:
            assert answer.status in {200, 404}
        _, data = await anext(events(client, url))
        (own,) = data
        assert own["key"] == "key-2"
        await get(client, f"{url}/_/api/live/requests/{own['id']}")
        connected = await get(client, f"{url}/_/api/live/connected")
        assert all("keys" not in one for one in connected["connections"])
        await client.post(f"{url}/_/api/logout", headers={"x-dragoman-page": "1"})
        async with client.post(f"{url}/_/login", data={"password": "key-of-ada"}) as answer:
            assert answer.status in {200, 404}
        async with client.get(f"{url}/_/api/live/requests/{own['id']}") as answer:
            assert answer.status == 404

    keys = [f'"sha256:{digest_of(key)}"' for key in ("key-of-ada", "key-of-bob")]
    with_gateway(work, f"[server]\nkeys = [{', '.join(keys)}]\n")


@promise("gateway:page-own")
def test_the_password_of_the_page_shows_all() -> None:
    async def work(url: str, client: aiohttp.ClientSession, upstream: Upstream) -> None:
        del upstream
        for key in ("key-of-ada", "key-of-bob", "key-of-nobody"):
            await post(client, f"{url}/v1/messages", MESSAGES, key)
        async with client.post(f"{url}/_/login", data={"password": "open sesame"}) as answer:
            assert answer.status in {200, 404}
        _, data = await anext(events(client, url))
        assert [(one.get("key"), one["status"]) for one in data] == [(None, 401), ("key-2", 200), ("key-1", 200)]
        refused = await get(client, f"{url}/_/api/live/requests/{data[0]['id']}")
        assert refused["client"]["body"] is None  # who may not ask does not fill our memory

    keys = [f'"sha256:{digest_of(key)}"' for key in ("key-of-ada", "key-of-bob")]
    with_gateway(work, f"[server]\nkeys = [{', '.join(keys)}]\n", {"DRAGOMAN_PAGE_PASSWORD": "open sesame"})
