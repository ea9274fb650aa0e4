"""Keys, usage, trials of the playground and messages in foreign formats, as the page asks for them."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp

from dragoman.chat.stores import FileStore
from dragoman.gateway.config import read_config
from dragoman.gateway.serving import Setting, serving, simulators
from dragoman.web.serving import page_before
from tests.gateway.running import Lines, on_any_port
from tests.support.promises import promise
from tests.support.waiting import PATIENCE

HEADERS = {"x-dragoman-page": "1"}
CHAT = {"messages": [{"role": "user", "content": "6 * 7"}], "seed": 7}


class Visitor:
    """A page without a browser."""

    def __init__(self, client: aiohttp.ClientSession, url: str) -> None:
        self.client = client
        self.url = url

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        given: Any = {} if body is None else {"json": body}
        async with self.client.request(method, f"{self.url}/_/api{path}", headers=HEADERS, **given) as answer:
            return answer.status, await answer.json()

    async def post(self, path: str, body: object, key: str = "") -> int:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        async with self.client.post(f"{self.url}{path}", json=body, headers=headers) as answer:
            await answer.read()
            return answer.status

    async def log_in(self, secret: str) -> None:
        async with self.client.post(
            f"{self.url}/_/login", data={"password": secret}, headers={"origin": self.url}
        ) as it:
            assert it.status == 200


def visit(folder: Path, work: Callable[[Visitor], Awaitable[None]], config: str = "", **environment: str) -> None:
    async def run() -> None:
        async with asyncio.timeout(2 * PATIENCE), simulators() as simulated:
            known = {"CHAT_HISTORY_DIR": str(folder / "chat"), "CHAT_HISTORY_USER_ID": "me", **environment}
            setting = Setting(
                config=on_any_port(read_config(config)), simulated=simulated, environment=known, page_key="page"
            )
            jar = aiohttp.CookieJar(unsafe=True)
            async with (
                serving(setting, log=Lines(), front=page_before) as running,
                aiohttp.ClientSession(cookie_jar=jar) as client,
            ):
                await work(Visitor(client, running.url))

    asyncio.run(run())


def database(folder: Path) -> str:
    return f'[server]\ndatabase = "{folder / "gateway.db"}"\n'


@promise("web:keys", "web:usage")
def test_keys_are_managed_by_the_administrator_alone_and_each_sees_its_own_usage(tmp_path: Path) -> None:
    async def work(page: Visitor) -> None:
        await page.log_in("secret")
        wanted = {"name": "alice", "models": ["anthropic/*"], "requests_per_minute": 100, "budget": 5}
        status, alice = await page.ask("POST", "/keys", wanted)
        assert (status, alice["key"].startswith("dgm-")) == (201, True)
        assert (await page.ask("POST", "/keys", {"name": "alice"}))[0] == 409
        _, bob = await page.ask("POST", "/keys", {"name": "bob"})
        _, data = await page.ask("GET", "/keys")
        assert [(row["name"], row["state"], row["budget"]) for row in data["keys"]] == [
            ("alice", "good", 5),
            ("bob", "good", None),
        ]
        assert alice["key"] not in str(data)
        for body in (
            {"name": ""},
            {"name": "x", "budget": -1},
            {"name": "x", "models": [" "]},
            {"name": "x", "who": 1},
        ):
            assert (await page.ask("POST", "/keys", body))[0] == 400
        await _used(page, alice["key"], bob["key"])
        replaced = (await page.ask("POST", "/keys/alice/rotate"))[1]["key"]
        assert replaced != alice["key"]
        assert (await page.ask("POST", "/keys/bob/revoke"))[0] == 200
        assert (await page.ask("POST", "/keys/bob/revoke"))[0] == 404
        await page.ask("POST", "/logout")
        await page.log_in(replaced)
        # With the password set, a key does not open the page; only the administrator manages keys.
        assert (await page.ask("GET", "/keys"))[0] == 401

    visit(tmp_path, work, database(tmp_path), DRAGOMAN_PAGE_PASSWORD="secret")


async def _used(page: Visitor, alice: str, bob: str) -> None:
    body = {**CHAT, "model": "anthropic/claude-sonnet-5"}
    for key in (alice, alice, bob):
        assert await page.post("/v1/chat/completions", body, key) == 200
    usage: Any = {}
    async with asyncio.timeout(PATIENCE):
        while sum(row["requests"] for row in usage.get("rows", ())) < 3:
            _, usage = await page.ask("GET", "/live/usage?by=key,model,day&days=1")
            await asyncio.sleep(0.02)
    assert usage["kept"]
    assert {row["key"]: row["requests"] for row in usage["rows"]} == {"alice": 2, "bob": 1}
    assert all(row["cost"] > 0 for row in usage["rows"])


@promise("web:keys")
def test_a_user_with_a_key_cannot_manage_keys(tmp_path: Path) -> None:
    async def work(page: Visitor) -> None:
        await page.log_in("a-key")
        _, data = await page.ask("GET", "/keys")
        assert "administrator" in data["refusal"]
        assert data["keys"] == []
        for path in ("/keys", "/keys/alice/rotate", "/keys/alice/revoke"):
            assert (await page.ask("POST", path, {"name": "mine"}))[0] == 403

    visit(tmp_path, work, database(tmp_path) + 'keys = ["a-key"]\n')


@promise("web:usage", "web:keys")
def test_without_a_database_usage_is_what_is_held_and_keys_are_not_made(tmp_path: Path) -> None:
    async def work(page: Visitor) -> None:
        await page.post("/v1/chat/completions", {**CHAT, "model": "anthropic/claude-sonnet-5"})
        await page.post("/v1/chat/completions", {**CHAT, "model": "nobody/none"})
        _, usage = await page.ask("GET", "/live/usage?by=model&days=1")
        assert not usage["kept"]
        found = {row["model"]: (row["requests"], row["failed"]) for row in usage["rows"]}
        assert found == {"claude-sonnet-5": (1, 0), "": (1, 1)}
        _, data = await page.ask("GET", "/keys")
        assert "database" in data["refusal"]
        assert (await page.ask("POST", "/keys", {"name": "x"}))[0] == 403

    visit(tmp_path, work)


@promise("gateway:playground-run")
def test_the_playground_sends_a_request_to_any_model(tmp_path: Path) -> None:
    async def work(page: Visitor) -> None:
        _, models = await page.ask("GET", "/playground/models")
        assert "anthropic/claude-sonnet-5" in models
        text = '{"model": "gpt-5.6", "seed": 7, "messages": [{"role": "user", "content": "6 * 7"}]}'
        status, tried = await page.ask("POST", "/playground/run", {"text": text, "model": "anthropic/claude-sonnet-5"})
        assert (status, "42" in tried["text"], tried["is_simulated"]) == (200, True, True)
        assert (tried["source"], tried["format"]) == ("openai-chat", "anthropic-messages")
        assert [loss["path"] for loss in tried["losses"]] == ["$.seed", "$.max_completion_tokens"]
        assert tried["cost"] > 0
        _, opened = await page.ask("GET", f"/live/requests/{tried['request']}")
        assert opened["summary"]["model"] == "anthropic/claude-sonnet-5"
        _, failed = await page.ask("POST", "/playground/run", {"text": text, "model": "nobody/none"})
        assert "nobody" in str(failed)
        status, refused = await page.ask(
            "POST", "/playground/run", {"text": '{"type": "error"}', "model": "anthropic/claude-sonnet-5"}
        )
        assert (status, "only a request" in refused["error"]) == (422, True)

    visit(tmp_path, work)


@promise("chat:memo", "chat:unknown-name", "chat:simulated", "chat:foreign-format")
def test_messages_go_to_the_default_model_as_memos_or_in_a_foreign_format(tmp_path: Path) -> None:
    async def work(page: Visitor) -> None:
        _, state = await page.ask("GET", "/chat/state")
        assert state["default"] == [state["models"][0]["name"]]
        assert all(one["simulated"] for one in state["models"] if one["name"] != "local")
        _, room = await page.ask("POST", "/chat/conversations", {})
        path = f"/chat/conversations/{room['id']}"
        status, refused = await page.ask("POST", f"{path}/messages", {"text": "@claud 6 * 7"})
        assert (status, "did you mean @claude?" in refused["error"]) == (400, True)
        await page.ask("POST", f"{path}/messages", {"text": "Tea at five", "memo": True})
        await page.ask("POST", f"{path}/messages", {"text": "6 * 7"})
        entries = await _answered(page, path, 3)
        assert [entry["role"] for entry in entries] == ["user", "user", state["default"][0]]
        sent = {"text": "@claude 6 * 7", "format": "openai-chat"}
        _, data = await page.ask("POST", f"{path}/messages", sent)
        (translation,) = data["translations"]
        assert (translation["source"], translation["target"]) == ("openai-chat", "anthropic-messages")
        assert "$.max_completion_tokens" in [loss["path"] for loss in translation["losses"]]
        await _answered(page, path, 5)
        _, usage = await page.ask("GET", "/live/usage?by=model&days=1")
        assert {row["upstream"] for row in usage["rows"]} == {"gemini", "anthropic"}
        assert (await page.ask("POST", f"{path}/messages", {"text": "x", "format": "gemini"}))[0] == 400

    visit(tmp_path, work)
    assert FileStore(tmp_path / "chat", "me").list() == []
    assert len(FileStore(tmp_path / "chat", "me (demo)").list()) == 1


async def _answered(page: Visitor, path: str, count: int) -> list[Any]:
    async with asyncio.timeout(PATIENCE):
        while True:
            _, found = await page.ask("GET", path)
            if len(found["entries"]) >= count and not found["running"]:
                return list(found["entries"])
            await asyncio.sleep(0.02)
