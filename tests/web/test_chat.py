"""The page's server: hub, events, and who may speak to it."""

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from msgspec import structs

from dragoman.chat.drafts import Draft
from dragoman.chat.entries import Conversation, read_entries
from dragoman.chat.mentions import resolve_mentions
from dragoman.chat.participants import Participant
from dragoman.chat.stores import FileStore
from dragoman.drivers import Scripted
from dragoman.ir import Failure
from dragoman.web.conversation_hub import ConversationHub, HubSettings
from dragoman.web.guard import HEADER
from dragoman.web.serving import serving_page
from tests.support.chats import model, note, weather
from tests.support.promises import promise
from tests.support.waiting import PATIENCE

OURS = {HEADER: "1"}


class Web:
    """The page as a program sees it."""

    def __init__(self, hub: ConversationHub, url: str, client: aiohttp.ClientSession) -> None:
        self.hub = hub
        self.url = url
        self.client = client

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        headers = {**OURS, **more.pop("headers", {})}
        async with self.client.request(method, self.url + path, json=body, headers=headers, **more) as answer:
            kind = answer.content_type
            return answer.status, await answer.json() if kind == "application/json" else await answer.text()

    async def new(self) -> str:
        status, state = await self.ask("POST", "/_/api/chat/conversations", {})
        assert status == 201
        return f"/_/api/chat/conversations/{state['id']}"

    async def settled(self, path: str) -> Any:
        async with asyncio.timeout(PATIENCE):
            while (state := (await self.ask("GET", path))[1])["running"]:  # noqa: ASYNC110 - over HTTP
                await asyncio.sleep(0.01)
        return state

    @asynccontextmanager
    async def events(self, path: str) -> AsyncIterator[AsyncIterator[tuple[str, Any]]]:
        async with self.client.get(f"{self.url}{path}/events") as answer:
            yield _events(answer)


async def _events(answer: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, Any]]:
    kind = ""
    async for line in answer.content:
        if line.startswith(b"event: "):
            kind = line[7:].decode().strip()
        elif line.startswith(b"data: "):
            yield kind, json.loads(line[6:])


def with_page(
    work: Callable[[Web], Coroutine[Any, Any, None]], folder: Path, *models: Participant, **options: Any
) -> None:
    async def run() -> None:
        store = FileStore(folder)
        hub = ConversationHub(models, store, store.folder, settings=HubSettings(tools=(weather, note)))
        hub.recover()
        async with (
            asyncio.timeout(PATIENCE),
            serving_page(hub, **options) as url,
            aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client,
        ):
            await work(Web(hub, url, client))

    asyncio.run(run())


@promise("chat:web")
def test_a_conversation_is_held_saved_listed_and_sent_as_events(tmp_path: Path) -> None:
    async def work(web: Web) -> None:
        path = await web.new()
        async with web.events(path) as events:
            assert (await anext(events))[0] == "snapshot"
            status, _ = await web.ask("POST", f"{path}/messages", {"text": "@all hello"})
            assert status == 202
            kinds = []
            async for kind, _ in events:
                kinds.append(kind)
                if kind == "gauges":
                    break
        assert kinds[:2] == ["said", "answer_started"]
        assert kinds.count("answer_ended") == 2
        assert "activity" in kinds
        _, rows = await web.ask("GET", "/_/api/chat/conversations?q=hello")
        assert [(row["name"], row["entries"]) for row in rows] == [("hello", 3)]
        _, state = await web.ask("GET", path)
        assert [entry["role"] for entry in state["entries"]] == ["user", "gemini", "claude"]

    with_page(work, tmp_path, model("gemini", ["one"]), model("claude", ["two"]))
    assert FileStore(tmp_path).load("hello").entries[1].text == "one"


@promise("chat:web")
def test_everything_the_page_offers_is_there(tmp_path: Path) -> None:
    async def work(web: Web) -> None:
        path = await web.new()
        data = base64.b64encode(b"\x89PNG").decode()
        files = [{"name": "a.png", "media_type": "image/png", "data": data}]
        await web.ask("POST", f"{path}/messages", {"text": "@gemini first", "attachments": files})
        state = await web.settled(path)
        answer = state["entries"][1]
        assert state["entries"][0]["content"][1]["type"] == "image"
        assert (await web.ask("POST", f"{path}/retry", {"answer": answer["answer"]}))[0] == 202
        assert [entry["content"][0]["content"] for entry in (await web.settled(path))["entries"][1:]] == ["one", "two"]
        assert (await web.ask("PATCH", path, {"name": "Renamed", "system_prompt": "Brief."}))[0] == 200
        assert (await web.ask("GET", f"{path}/export"))[1].startswith("# Renamed")
        shown = (await web.ask("GET", f"{path}/show?part={answer['answer']}&format=gemini"))[1]
        assert "contents" in shown["content"]
        assert len((await web.ask("POST", f"{path}/gauges", {"text": "more"}))[1]) == 1
        body = {"branch": state["id"], "entry": state["entries"][0]["id"], "before": True}
        branch = (await web.ask("POST", "/_/api/chat/conversations", body))[1]
        assert (await web.ask("GET", f"/_/api/chat/conversations/{branch['id']}"))[1]["entries"] == []
        assert (await web.ask("DELETE", path))[0] == 200
        assert (await web.ask("GET", path))[0] == 404
        assert [row["name"] for row in (await web.ask("GET", "/_/api/chat/conversations"))[1]] == ["Renamed (branch)"]

    with_page(work, tmp_path, model("gemini", ["one", "two"]))


@promise("chat:web")
def test_options_models_and_state(tmp_path: Path) -> None:
    async def work(web: Web) -> None:
        _, state = await web.ask("PATCH", "/_/api/chat/options", {"share": True, "default": ["gemini"]})
        assert (state["share"], state["default"]) == (True, ["gemini"])
        assert [tool["name"] for tool in state["tools"]] == ["weather", "note"]
        _, state = await web.ask("PATCH", "/_/api/chat/models/gemini", {"model": "gemini/gemini-3.8-pro"})
        assert state["models"][0]["model"] == "gemini/gemini-3.8-pro"
        _, state = await web.ask("PATCH", "/_/api/chat/models/GEMINI", {"model": "gemini/other"})
        assert [(one["name"], one["model"]) for one in state["models"]] == [("gemini", "gemini/other")]
        status, state = await web.ask("PATCH", "/_/api/chat/models/all", {"model": "gemini/other"})
        assert (status, "is not a valid name for a model" in state["error"]) == (400, True)
        assert (await web.ask("GET", "/_/api/chat/models"))[1] == ["gemini/other"]

    with_page(work, tmp_path, model("gemini", []))


@promise("chat:web", "chat:legacy")
def test_an_old_file_is_imported_with_its_tool_calls(tmp_path: Path) -> None:
    old = [
        {"role": "user", "content": "weather?"},
        {"role": "gemini", "content": [{"type": "tool_call", "name": "weather", "arguments": {"city": "Oslo"}}]},
        {"role": "tool", "name": "weather", "content": "snow"},
    ]

    async def work(web: Web) -> None:
        status, state = await web.ask("POST", "/_/api/chat/conversations", {"document": old, "name": "Old"})
        assert status == 201
        _, found = await web.ask("GET", f"/_/api/chat/conversations/{state['id']}")
        assert found["entries"][1]["content"][0]["content"]["name"] == "weather"
        assert found["entries"][2]["owner"] == "gemini"
        assert (await web.ask("POST", "/_/api/chat/conversations", {"document": 3}))[0] == 422
        body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "From an API"}]}
        status, state = await web.ask("POST", "/_/api/chat/conversations", {"document": body, "name": "Body"})
        assert status == 201
        _, found = await web.ask("GET", f"/_/api/chat/conversations/{state['id']}")
        assert found["entries"][0]["content"][0]["content"] == "From an API"

    with_page(work, tmp_path, model("gemini", []))


@promise("chat:web", "chat:permissions")
def test_permissions_are_asked_in_the_page(tmp_path: Path) -> None:
    async def work(web: Web) -> None:
        path = await web.new()
        await web.ask("POST", f"{path}/messages", {"text": "@gemini note"})
        while not (questions := (await web.ask("GET", path))[1]["questions"]):  # noqa: ASYNC110 - over HTTP
            await asyncio.sleep(0.01)
        status, state = await web.ask("POST", f"{path}/permissions/{questions[0]['id']}", {"allow": True})
        assert (status, state) == (200, {"known": True})
        entries = (await web.settled(path))["entries"]
        assert entries[2]["content"][0]["content"] == "noted: x"

    with_page(work, tmp_path, model("gemini", [Scripted(calls=[("note", {"text": "x"})]), "Done."]))


@promise("chat:web-resume")
def test_a_reader_that_reconnects_gets_what_it_missed_and_the_rest(tmp_path: Path) -> None:
    call = Scripted(text="First.", calls=[("note", {"text": "x"})])

    async def work(web: Web) -> None:
        path = await web.new()
        await web.ask("POST", f"{path}/messages", {"text": "@gemini go"})
        service = web.hub.get(path.rpartition("/")[2]).service
        while not service.open_questions:  # noqa: ASYNC110 - the page would look, too
            await asyncio.sleep(0.01)
        async with web.events(path) as events:
            _, snapshot = await anext(events)
            (running,) = snapshot["running"]
            assert [part["type"] for part in running["entries"][0]["content"]] == ["text", "tool_call"]
            await web.ask("POST", f"{path}/permissions/{snapshot['questions'][0]['id']}", {"allow": False})
            ended = [state async for kind, state in _until(events, "turn_ended") if kind == "answer_ended"]
        assert ended[0]["entries"][-1]["content"][0]["content"] == "Then."

    with_page(work, tmp_path, model("gemini", [call, "Then."]))


async def _until(events: AsyncIterator[tuple[str, Any]], last: str) -> AsyncIterator[tuple[str, Any]]:
    async for kind, state in events:
        yield kind, state
        if kind == last:
            return


@promise("chat:web-tabs")
def test_two_tabs_share_a_conversation_and_cannot_send_at_once(tmp_path: Path) -> None:
    async def work(web: Web) -> None:
        path = await web.new()
        async with web.events(path) as one, web.events(path) as two:
            await anext(one)
            await anext(two)
            first, _ = await web.ask("POST", f"{path}/messages", {"text": "@gemini one"})
            second, state = await web.ask("POST", f"{path}/messages", {"text": "@gemini two"})
            assert (first, second) == (202, 409)
            assert "still answer" in state["error"]
            received = [[kind async for kind, _ in _until(events, "turn_ended")] for events in (one, two)]
        assert received[0] == received[1]

    with_page(work, tmp_path, model("gemini", [Scripted(text="slow", delay=0.2)]))


@promise("chat:web-tabs", "chat:two-writers")
def test_what_another_program_saved_is_kept_beside_ours(tmp_path: Path) -> None:
    async def work(web: Web) -> None:
        path = await web.new()
        await web.ask("POST", f"{path}/messages", {"text": "@gemini one"})
        await web.settled(path)
        other = FileStore(tmp_path)
        other.save(structs.replace(other.load("one"), system_prompt="theirs"))
        await web.ask("POST", f"{path}/messages", {"text": "@gemini two"})
        names: dict[str, Any] = {}
        async with asyncio.timeout(PATIENCE):
            while "one (copy)" not in names or names["one (copy)"].entries < 4:
                await asyncio.sleep(0.02)
                names = {row.name: row for row in FileStore(tmp_path).list()}
        assert set(names) == {"one", "one (copy)"}
        assert FileStore(tmp_path).load("one").system_prompt == "theirs"
        assert names["one (copy)"].entries == 4
        assert names["one"].id != names["one (copy)"].id

    with_page(work, tmp_path, model("gemini", ["a", "b"]))


@promise("chat:web", "chat:draft")
def test_what_a_dead_program_left_is_in_the_list_again(tmp_path: Path) -> None:
    draft = Draft(FileStore(tmp_path).folder)
    entries = read_entries([{"role": "user", "content": "@gemini lost words"}])
    draft.snapshot(Conversation(entries=entries), running=False)
    draft.leave()

    async def work(web: Web) -> None:
        _, rows = await web.ask("GET", "/_/api/chat/conversations")
        assert [row["name"] for row in rows] == ["lost words (recovered)"]

    with_page(work, tmp_path, model("gemini", []))


KILLED = """
import asyncio, os, signal, sys
from dragoman.agent import TextDeltaEvent
from dragoman.chat.events import Activity
from dragoman.chat.stores import FileStore
from dragoman.web.conversation_hub import ConversationHub
from tests.support.chats import model

async def main():
    store = FileStore(sys.argv[1])
    room = ConversationHub([model("gemini", ["one two three four"])], store, store.folder).new()
    def show(event):
        if isinstance(event, Activity) and isinstance(event.event, TextDeltaEvent) and "three" in event.event.content:
            os.kill(os.getpid(), signal.SIGKILL)
    with room.service.watch(show):
        await room.service.send("@gemini count")
asyncio.run(main())
"""


@promise("chat:crash", "chat:web")
def test_a_server_that_is_killed_in_mid_answer_has_all_that_was_shown_when_it_comes_back(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    killed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert killed.returncode == -signal.SIGKILL, killed.stderr

    async def work(web: Web) -> None:
        _, rows = await web.ask("GET", "/_/api/chat/conversations")
        assert [row["name"] for row in rows] == ["count"]
        _, state = await web.ask("GET", f"/_/api/chat/conversations/{rows[0]['id']}")
        last = state["entries"][-1]
        assert (last["status"], last["content"][0]["content"]) == ("interrupted", "one two three")

    with_page(work, tmp_path, model("gemini", []))


@promise("chat:web")
def test_problems_are_reported_in_sentences(tmp_path: Path) -> None:
    async def work(web: Web) -> None:
        path = await web.new()
        small = {"text": "@small " + "long " * 200}
        assert (await web.ask("POST", f"{path}/messages", small))[0] == 413
        assert (await web.ask("POST", f"{path}/messages", {"text": ""}))[0] == 400
        assert (await web.ask("POST", f"{path}/messages", [1]))[0] == 400
        assert (await web.ask("POST", f"{path}/retry", {"answer": "x"}))[0] == 404
        bad = {"text": "x", "attachments": [{"data": "!"}]}
        assert "base64" in (await web.ask("POST", f"{path}/messages", bad))[1]["error"]
        assert (await web.ask("GET", f"{path}/export?format=nonsense"))[0] == 400
        await web.ask("POST", f"{path}/messages", {"text": "@gemini hi"})
        entry = (await web.settled(path))["entries"][-1]
        assert (entry["status"], entry["content"][0]["content"]) == ("error", "Half")

    broken = Scripted(text="Half", failure=Failure("server", "it broke"))
    with_page(work, tmp_path, model("gemini", [broken]), model("small", [], window=100))


@promise("chat:web-safe")
def test_strangers_are_refused(tmp_path: Path) -> None:
    async def work(web: Web) -> None:
        url = f"{web.url}/_/api/chat/conversations"
        for headers in ({}, {**OURS, "origin": "https://evil.example"}, {**OURS, "host": "evil.example"}):
            async with web.client.post(url, json={}, headers=headers) as answer:
                assert answer.status == 403, headers
        async with web.client.get(url, headers={"host": "evil.example:80"}) as answer:
            assert answer.status == 403
        async with web.client.get(web.url + "/") as answer:
            policy = answer.headers["content-security-policy"]
            text = await answer.text()
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "access-control-allow-origin" not in answer.headers
        assert "http://" not in text
        assert "https://" not in text
        for name in ("..%2fguard.py", "nothing.js"):
            async with web.client.get(f"{web.url}/_/static/{name}") as answer:
                assert answer.status == 404

    with_page(work, tmp_path, model("gemini", []))


@promise("chat:web-keys")
def test_beyond_this_machine_a_password_is_needed(tmp_path: Path) -> None:
    async def nothing(_: Web) -> None: ...

    with pytest.raises(ValueError, match="needs a password"):
        with_page(nothing, tmp_path, model("gemini", []), host="0.0.0.0")  # noqa: S104 - that is what is refused

    async def work(web: Web) -> None:
        assert (await web.ask("GET", "/_/api/chat/state"))[0] == 401
        for password, known in (("wrong", False), ("open sesame", True)):
            async with web.client.post(f"{web.url}/_/login", data={"password": password}) as answer:
                assert (answer.url.path == "/") == known
        assert (await web.ask("GET", "/_/api/chat/state"))[0] == 200

    with_page(work, tmp_path, model("gemini", []), password="open sesame")


@promise("chat:mention")
def test_the_page_and_the_server_agree_on_mentions() -> None:
    """The same table is put to the page's own reader (web/tests/chat.test.ts)."""
    table = json.loads((Path(__file__).parents[2] / "web" / "tests" / "mentions.json").read_text(encoding="utf-8"))
    for text, expected in table["cases"]:
        assert list(resolve_mentions(text, table["models"])) == expected, text
