"""The chat of `dragoman serve`: models that the gateway reaches, asked through it."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dragoman.gateway.config import Config, read_config
from dragoman.gateway.routing import Router
from dragoman.gateway.serving import Setting, serving, simulators
from dragoman.web.guard import HEADER
from dragoman.web.models import reachable_models
from dragoman.web.serving import page_before
from tests.gateway.running import Lines, on_any_port
from tests.support.promises import promise
from tests.support.waiting import PATIENCE

OURS = {HEADER: "1"}


class Client:
    def __init__(self, url: str, client: aiohttp.ClientSession) -> None:
        self.url = url
        self.client = client

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        url = f"{self.url}/_/api/chat{path}"
        async with self.client.request(method, url, json=body, headers=OURS) as answer:
            assert answer.status < 400, await answer.text()
            return await answer.json()

    async def say(self, text: str) -> list[dict[str, Any]]:
        path = f"/conversations/{(await self.ask('POST', '/conversations', {}))['id']}"
        await self.ask("POST", f"{path}/messages", {"text": text})
        while (state := await self.ask("GET", path))["running"]:  # noqa: ASYNC110 - over HTTP
            await asyncio.sleep(0.02)
        entries: list[dict[str, Any]] = state["entries"]
        return entries


@promise("web:chat", "chat:demo")
def test_without_keys_four_models_call_a_tool_through_the_gateway(tmp_path: Path) -> None:
    log = Lines()

    async def run() -> None:
        async with simulators() as simulated:
            environment = {"CHAT_HISTORY_DIR": str(tmp_path)}
            setting = Setting(config=on_any_port(Config()), simulated=simulated, environment=environment)
            async with (
                asyncio.timeout(PATIENCE),
                serving(setting, log=log, front=page_before) as running,
                aiohttp.ClientSession() as client,
            ):
                entries = await Client(running.url, client).say("@all What is the weather in Paris?")
        assert [entry["role"] for entry in entries if entry["role"] != "tool"][1::2] == NAMES
        results = [entry["content"][0] for entry in entries if entry["role"] == "tool"]
        assert [one["name"] for one in results] == ["get_weather"] * 4, entries
        assert all(entry.get("status", "ok") == "ok" for entry in entries)

    asyncio.run(run())
    pairs = {(line["client"], line["upstream"]) for line in log.lines if line.get("operation") == "generate"}
    assert pairs == {  # each in its own format, so that nothing is lost on the way
        ("gemini", "gemini"),
        ("openai-responses", "openai"),
        ("anthropic-messages", "anthropic"),
        ("ollama-chat", "ollama"),
    }


NAMES = ["gemini", "chatgpt", "claude", "ollama"]


@promise("web:chat", "web:login")
def test_a_user_with_a_key_sends_requests_with_it_and_has_separate_conversations(tmp_path: Path) -> None:
    log = Lines()
    config = read_config('[server]\nkeys = ["first", "second"]')

    async def logged_in(url: str, client: aiohttp.ClientSession, key: str) -> Client:
        async with client.post(f"{url}/_/login", data={"password": key}):
            return Client(url, client)

    def session() -> aiohttp.ClientSession:
        return aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))

    async def run() -> None:
        async with simulators() as simulated:
            environment = {"CHAT_HISTORY_DIR": str(tmp_path)}
            setting = Setting(config=on_any_port(config), simulated=simulated, environment=environment)
            async with (
                asyncio.timeout(PATIENCE),
                serving(setting, log=log, front=page_before) as running,
                session() as one,
                session() as two,
            ):
                first = await logged_in(running.url, one, "first")
                second = await logged_in(running.url, two, "second")
                assert (await first.say("@claude hello"))[-1]["role"] == "claude"
                assert [row["name"] for row in await first.ask("GET", "/conversations")] == ["hello"]
                assert await second.ask("GET", "/conversations") == []

    asyncio.run(run())
    assert {line["key"] for line in log.lines if line.get("operation") == "generate"} == {"key-1"}


@promise("web:chat", "web:login")
def test_a_user_with_the_password_sends_requests_in_the_name_of_the_page(tmp_path: Path) -> None:
    log = Lines()
    config = read_config('[server]\nkeys = ["first"]')

    async def run() -> None:
        async with simulators() as simulated:
            environment = {"CHAT_HISTORY_DIR": str(tmp_path), "DRAGOMAN_PAGE_PASSWORD": "sesame"}
            setting = Setting(
                config=on_any_port(config), simulated=simulated, environment=environment, page_key="of-the-house"
            )
            async with (
                asyncio.timeout(PATIENCE),
                serving(setting, log=log, front=page_before) as running,
                aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client,
            ):
                async with client.post(f"{running.url}/_/login", data={"password": "sesame"}):
                    pass
                assert (await Client(running.url, client).say("@claude hello"))[-1].get("status", "ok") == "ok"

    asyncio.run(run())
    assert {line["key"] for line in log.lines if line.get("operation") == "generate"} == {"page"}


@promise("web:chat")
@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        ("", {"ANTHROPIC_API_KEY": "k"}, {"claude": "anthropic/claude-sonnet-5"}),
        ("", {"OPENAI_API_KEY": "k", "CHAT_MODEL_CHATGPT": "openai/gpt-5"}, {"chatgpt": "openai/gpt-5"}),
        (
            '[providers.work]\nkind = "anthropic"\nmodels = ["claude-x"]\n[routes.quick]\nto = "work/claude-x"',
            {},
            {"work": "work/claude-x", "quick": "quick"},
        ),
    ],
)
def test_the_models_are_those_that_the_gateway_reaches(
    text: str, environment: Mapping[str, str], expected: Mapping[str, str]
) -> None:
    found = reachable_models(Router(read_config(text), environment), environment)
    assert found == expected


@promise("web:chat")
def test_without_a_reachable_provider_the_usual_models_are_listed() -> None:
    assert set(NAMES) <= set(reachable_models(Router(Config(), {}), {}))


@promise("web:chat")
def test_where_nothing_can_be_written_the_chat_works_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")

    async def run() -> None:
        async with simulators() as simulated:
            environment = {"CHAT_HISTORY_DIR": str(tmp_path / "file" / "folder")}
            setting = Setting(config=on_any_port(Config()), simulated=simulated, environment=environment)
            async with (
                asyncio.timeout(PATIENCE),
                serving(setting, log=Lines(), front=page_before) as running,
                aiohttp.ClientSession() as session,
            ):
                client = Client(running.url, session)
                assert "they are lost when the gateway stops" in (await client.ask("GET", "/state"))["warning"]
                assert (await client.say("@claude hello"))[-1].get("status", "ok") == "ok"

    asyncio.run(run())
