"""The live page and the playground in a real browser."""

import asyncio
import json
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.browser import Page, tab
from tests.support.promises import promise
from tests.support.waiting import PATIENCE
from tests.web.upstream import (
    EVERY,
    GEMINI,
    GEMINI_PATH,
    MESSAGES,
    TOOL_LOOP,
    Upstream,
    page_and_simulators,
    page_and_upstream,
)

PICTURES = os.environ.get("DRAGOMAN_SCREENSHOTS")
"""A folder to put pictures into, for people to look at, and for the documentation."""
ROWS = "document.querySelectorAll('.request').length"
WATCHING = "document.querySelector('.live .nothing h2') || document.querySelector('.request')"
HARMFUL = "<img src=x onerror='window.harmed=1'><script>window.harmed=1</script>"


class Stage:
    """A page of the gateway in a tab, and a client of the gateway."""

    def __init__(self, page: Page, url: str, client: aiohttp.ClientSession, upstream: Upstream) -> None:
        self.page = page
        self.url = url
        self.upstream = upstream
        self._client = client

    async def post(self, path: str, body: object) -> None:
        async with self._client.post(f"{self.url}{path}", json=body, headers={"x-api-key": "any"}) as answer:
            await answer.read()

    async def key(self, key: str, **more: Any) -> None:
        text = key if len(key) == 1 else ""
        await self.page.press(key, ord(key[0].upper()) if text else _CODES[key], text=text, **more)

    async def text(self, selector: str) -> str:
        return str(await self.page.js(f"document.querySelector({json.dumps(selector)}).textContent"))

    async def click(self, selector: str, words: str = "") -> None:
        found = (
            f"[...document.querySelectorAll({json.dumps(selector)})].find((one) => one.textContent.includes('{words}'))"
        )
        await self.page.until(found)
        await self.page.js(f"{found}.click()")

    async def picture(self, name: str, pause: float = 0.0) -> None:
        """In light and dark, after what has just arrived is no longer marked so."""
        if PICTURES is None:
            return
        await asyncio.sleep(pause)
        for theme, suffix in (("light", ""), ("dark", "-dark")):
            await self.page.command(
                "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}]
            )
            await asyncio.sleep(0.2)
            await self.page.screenshot(Path(PICTURES) / f"{name}{suffix}.png")


_CODES = {"Enter": 13, "Escape": 27, "ArrowRight": 39, "ArrowLeft": 37}
Work = Callable[[Stage], Coroutine[Any, Any, None]]


def on_stage(address: str, work: Work, place: str = "live") -> None:
    async def run() -> None:
        async with (
            asyncio.timeout(2 * PATIENCE),
            page_and_upstream() as (running, upstream),
            aiohttp.ClientSession() as client,
            tab(address) as page,
        ):
            await page.command("Page.navigate", url=f"{running.url}/#/{place}")
            await page.until(WATCHING if place == "live" else "document.querySelector('.sample')")
            await work(Stage(page, running.url, client, upstream))
            assert [one for one in page.problems if "422" not in one] == []
            assert await page.js("window.harmed === undefined")

    asyncio.run(run())


# ── live ──


@promise("gateway:page-feed", "gateway:page-views", "gateway:page-losses")
def test_requests_appear_as_they_happen_and_one_opens_as_four_views(address: str) -> None:
    async def work(stage: Stage) -> None:
        page = stage.page
        assert "No requests yet" in await stage.text(".nothing")
        await stage.post("/v1/messages", MESSAGES)
        await page.until(f"{ROWS} === 1")
        await stage.post(GEMINI_PATH, GEMINI)
        await page.until(f"{ROWS} === 2 && !document.querySelector('.status.busy')")
        newest = await stage.text(".request[aria-posinset='1']")
        assert "200Gemini→OpenAI Chatstub/large9 → 5 tokens" in newest
        assert newest.endswith("1 lost")
        await stage.click(".request", "Anthropic Messages")
        await page.until("document.querySelectorAll('.panes .pane').length === 4")
        titles = "[...document.querySelectorAll('.panes h3')].map((one) => one.textContent)"
        assert await page.js(titles) == ["Client sent", "Intermediate format", "Upstream received", "Losses"]
        panes = await page.js("[...document.querySelectorAll('.panes .pane')].map((one) => one.textContent)")
        assert '"system": "Be brief."' in panes[0]
        assert '"role": "system"' in panes[1]
        assert '"role": "system"' in panes[2]
        assert "$.top_k" in panes[3]
        lefts = "[...document.querySelectorAll('.panes .pane')].map((one) => one.getBoundingClientRect().left)"
        assert await page.js(lefts) == sorted(await page.js(lefts))
        await stage.click(".loss", "$.top_k")
        assert await stage.text(".pane .marked") == '"top_k": 5'
        await stage.click("[role=tab]", "Answer")
        assert await page.js(titles) == ["Upstream answered", "Intermediate format", "Client received", "Losses"]
        assert "Hello from the upstream." in await stage.text(".panes .pane:nth-child(4)")

    on_stage(address, work)


@promise("gateway:page-timeline")
def test_a_stream_is_shown_while_it_flows_and_as_a_timeline(address: str) -> None:
    async def work(stage: Stage) -> None:
        page, upstream = stage.page, stage.upstream
        upstream.pause, upstream.words = 0.03, " ".join(f"word{'s' * number}" for number in range(12))
        upstream.may_end.clear()
        asking = asyncio.ensure_future(stage.post("/v1/messages", {**MESSAGES, "stream": True}))
        await page.until("document.querySelector('.status.busy')?.textContent === 'answering'")
        upstream.may_end.set()
        await asking
        await page.until("document.querySelector('.status.good')")
        await stage.click(".request")
        await stage.click("[role=tab]", "Stream")
        await page.until("document.querySelectorAll('.chart .came').length >= 12")
        assert (await stage.text(".timeline .about")).startswith("chunk 1 of ")
        assert "word " in await stage.text(".sides .pane:first-child")
        await page.js("document.querySelector('.chart').focus()")
        for _ in range(3):
            await stage.key("ArrowRight")
        assert (await stage.text(".timeline .about")).startswith("chunk 4 of ")
        described = await page.js("document.querySelector('.chart').getAttribute('aria-valuetext')")
        assert "received" in described
        assert "content_block_delta" in await stage.text(".sides .pane:last-child")
        await stage.picture("live-stream")

    on_stage(address, work)


@promise("gateway:page-inert")
def test_what_models_and_clients_say_is_text(address: str) -> None:
    async def work(stage: Stage) -> None:
        page = stage.page
        stage.upstream.words = HARMFUL
        body = {
            **MESSAGES,
            "system": HARMFUL,
            "metadata": {"user_id": HARMFUL},
            "messages": [{"role": "user", "content": HARMFUL}],
        }
        await stage.post("/v1/messages", body)
        await stage.post("/v1/messages", {**body, "model": f"stub/{HARMFUL}"})
        await page.until(f"{ROWS} === 2 && document.querySelector('.status.good')")
        await stage.click(".request", "stub/large")
        await page.until("document.querySelector('.panes')")
        await stage.click("[role=tab]", "Answer")
        await page.until("document.querySelector('.panes').textContent.includes('onerror')")
        await stage.key("o")
        await page.until("document.querySelector('.playground .json')?.textContent.includes('onerror')")
        assert await page.js("document.querySelectorAll('#section img, #section script').length") == 0

    on_stage(address, work)


@promise("gateway:page-keyboard")
def test_the_keyboard_does_everything(address: str) -> None:
    async def work(stage: Stage) -> None:
        page = stage.page
        for number in range(3):
            await stage.post("/v1/messages", {**MESSAGES, "model": f"stub/model-{number}"})
        await page.until(f"{ROWS} === 3 && !document.querySelector('.status.busy')")
        chosen = "document.querySelector('.request[aria-selected=true]')?.textContent ?? ''"
        await stage.key("j")
        await page.until(f"({chosen}).includes('model-2')")
        await stage.key("j")
        await page.until(f"({chosen}).includes('model-1')")
        await stage.key("Enter")
        await page.until("document.querySelector('.detail-head')?.textContent.includes('model-1')")
        await stage.key("k")
        await page.until("document.querySelector('.detail-head')?.textContent.includes('model-2')")
        await stage.key("2")
        await page.until("document.querySelector('[role=tab][aria-selected=true]').textContent === 'Answer'")
        await stage.key("Escape")
        await page.until("!document.querySelector('.live.opened')")
        await stage.key("/")
        await page.command("Input.insertText", text="model-0 messages")
        await page.until(f"{ROWS} === 1")
        await stage.key("Escape")
        await stage.key("p")
        await page.until("document.querySelector('.pause').getAttribute('aria-pressed') === 'true'")
        await stage.post("/v1/messages", {**MESSAGES, "model": "stub/model-0-again"})
        await page.until("document.querySelector('.pause').textContent === 'Resume (1 new)'")
        assert await page.js(ROWS) == 1
        await stage.key("p")
        await page.until(f"{ROWS} === 2")
        await stage.key("?")
        await page.until("document.querySelector('dialog[open]')")
        assert "Copy as curl" in await stage.text("dialog")
        await stage.key("Escape")
        await page.until("!document.querySelector('dialog[open]')")
        await page.chord("gp", "location.hash === '#/playground'")

    on_stage(address, work)


@promise("gateway:page-feed")
def test_only_rows_that_can_be_seen_are_in_the_document(address: str) -> None:
    async def work(stage: Stage) -> None:
        page = stage.page
        await asyncio.gather(*(stage.post("/v1/messages", {**MESSAGES, "model": f"stub/m{n}"}) for n in range(60)))
        await page.until("document.querySelector('.counts').textContent === '60 requests'")
        assert await page.js(ROWS) < 50
        await page.js("document.querySelector('.rows').scrollTop = 1e6")
        await page.until("document.querySelector('.request[aria-posinset=\"60\"]')")
        last = await page.js("document.querySelector('.request[aria-posinset=\"60\"]').dataset.id")
        await stage.post("/v1/messages", MESSAGES)
        await page.until("document.querySelector('.counts').textContent === '61 requests'")
        await page.until(f"document.querySelector('.request[aria-posinset=\"61\"]')?.dataset.id === '{last}'")

    on_stage(address, work)


@promise("gateway:page-views")
def test_attempts_can_be_looked_at_one_by_one(address: str) -> None:
    async def work(stage: Stage) -> None:
        page = stage.page
        await stage.post("/v1/messages", {**MESSAGES, "model": "smart"})
        await stage.click(".request")
        await page.until("document.querySelectorAll('.attempts li').length === 2")
        assert "503 overloaded" in await stage.text(".attempts")
        assert "/v1/chat" in await stage.text(".panes .pane:nth-child(4)")
        await stage.click(".attempts button", "broken")
        assert "/broken/chat" in await stage.text(".panes .pane:nth-child(4)")

    on_stage(address, work)


@promise("gateway:page-list")
def test_columns_sort_filters_choose_and_charts_count(address: str) -> None:
    async def work(stage: Stage) -> None:
        page = stage.page
        await stage.post("/v1/messages", MESSAGES)
        await stage.post("/v1/messages", {**MESSAGES, "model": "nobody/small"})
        await stage.post(GEMINI_PATH, GEMINI)
        await page.until(f"{ROWS} === 3 && !document.querySelector('.status.busy')")
        models = (
            "[...document.querySelectorAll('.request')].sort((one, other) => one.ariaPosInSet - other.ariaPosInSet)"
        )
        models += ".map((one) => one.querySelector('.model .name').textContent)"
        assert await page.js(models) == ["stub/large", "nobody/small", "stub/large"]
        await stage.click(".columns button", "Model")
        await page.until(f"JSON.stringify({models}) === JSON.stringify(['nobody/small', 'stub/large', 'stub/large'])")
        assert "unknown provider 'nobody'" in await stage.text(".request.has-failed .error")
        await page.js("document.querySelector('[aria-label=Outcome]').value = 'failed'")
        await page.js("document.querySelector('[aria-label=Outcome]').dispatchEvent(new Event('change'))")
        await page.until(f"{ROWS} === 1")
        await page.js("document.querySelector('[aria-label=Outcome]').value = ''")
        await page.js("document.querySelector('[aria-label=Outcome]').dispatchEvent(new Event('change'))")
        await page.until("document.querySelector('.charts .value').textContent === '3'")
        assert "33 %" in await stage.text(".charts figure:nth-child(2)")
        await page.js("document.querySelector('.charts .plot').focus()")
        await stage.key("ArrowLeft")
        assert "request" in await stage.text(".charts .tip")

    on_stage(address, work)


@promise("gateway:page-losses")
def test_a_failed_request_is_not_shown_as_one_without_losses(address: str) -> None:
    async def work(stage: Stage) -> None:
        page = stage.page
        await stage.post("/v1/messages", {**MESSAGES, "model": "nobody/small"})
        await stage.click(".request")
        await page.until("document.querySelectorAll('.panes .pane').length === 4")
        assert "No upstream was contacted" in await stage.text(".losses-pane")
        await stage.key("2")
        await page.until("document.querySelector('.tabs [aria-selected=true]').textContent === 'Answer'")
        assert "there is no answer" in await stage.text(".losses-pane")
        assert "Nothing was lost" not in await stage.text(".detail")

    on_stage(address, work)


@promise("gateway:page-feed")
def test_clients_of_every_family_are_distinguished(address: str) -> None:
    async def run() -> None:
        async with (
            asyncio.timeout(2 * PATIENCE),
            page_and_simulators() as running,
            aiohttp.ClientSession() as client,
            tab(address) as page,
        ):
            await page.command("Page.navigate", url=running.url)
            await page.until(WATCHING)
            stage = Stage(page, running.url, client, Upstream())
            await stage.picture("live-empty")
            for path, body in (*EVERY, ("/v1/messages", TOOL_LOOP)):
                await stage.post(path, body)
            await page.until(f"{ROWS} === 8 && !document.querySelector('.status.busy')")
            chips = "[...document.querySelectorAll('.request .format:first-child')].map((one) => one.textContent)"
            families = {"OpenAI Chat", "Anthropic Messages", "Gemini", "OpenAI Responses", "Ollama", "Bedrock Converse"}
            assert set(await page.js(chips)) == families
            assert await page.js("document.querySelectorAll('.status.bad').length") == 1
            await page.until("document.querySelectorAll('.upstream[data-state=closed]').length >= 3")
            are_hidden = "[...document.querySelectorAll('.sr')].every((one) => one.getBoundingClientRect().height <= 1)"
            assert await page.js(are_hidden)
            await stage.picture("live", pause=2.5)
            await stage.click(".request[aria-posinset='1']")
            await stage.click(".loss", "top_k")
            await stage.picture("live-request")
            assert page.problems == []

    asyncio.run(run())


# ── playground ──


@promise("gateway:playground", "gateway:page-losses")
def test_the_playground_shows_a_body_in_every_format(address: str) -> None:
    async def work(stage: Stage) -> None:
        page = stage.page
        assert await page.js("document.querySelector('.right .choices').hidden")
        await stage.picture("playground-empty")
        await stage.click(".sample", "Tool calls")
        await page.until("document.querySelector('.choices .choice')")
        names = await page.js("[...document.querySelectorAll('.choices .choice')].map((one) => one.dataset.name)")
        for name in ("description", "intermediate format", "gemini", "bedrock-converse", "universal", "groq"):
            assert name in names
        await stage.click(".loss", "$.seed")
        selected = "(({value, selectionStart, selectionEnd}) => value.slice(selectionStart, selectionEnd))"
        assert await page.js(f"{selected}(document.querySelector('.given'))") == '"seed": 7'
        await stage.picture("playground")
        for name in names:
            await page.js(f"document.querySelector('.choice[data-name=\"{name}\"]').click()")
            shown = await stage.text(".result")
            assert "get_weather" in shown, name
        await stage.click(".choice", "Description")
        assert "2 calls" in await stage.text(".described")
        await page.js("document.querySelector('[aria-label=Examples]').value = 3")
        await page.js("document.querySelector('[aria-label=Examples]').dispatchEvent(new Event('change'))")
        await page.until("document.querySelector('.detected').textContent.startsWith('OpenAI Chat stream')")
        await stage.click(".choice", "Anthropic Messages")
        assert "content_block_start" in await stage.text(".result")

    on_stage(address, work, "playground")


@promise("gateway:playground", "gateway:page-keyboard")
def test_mistakes_are_shown_where_they_are(address: str) -> None:
    async def work(stage: Stage) -> None:
        page = stage.page
        await stage.key("e")
        await page.js("document.querySelector('.given').select()")
        await page.command("Input.insertText", text='{"model": "m", "messages": [{"role": "user"}]}')
        await page.until("document.querySelector('.detected.problem')")
        assert not await page.js("document.querySelector('.samples').hidden")  # nothing was understood so far
        assert (await stage.text(".detected code")) == "$.messages[0]"
        await stage.click(".detected button")
        assert await page.js("document.querySelector('.given').selectionStart") == 28
        await page.js("document.querySelector('.given').select()")
        await page.command("Input.insertText", text=json.dumps(MESSAGES))
        await page.until("document.querySelector('.detected b')?.textContent === 'Anthropic Messages request'")
        await page.js("const given = document.querySelector('.given'); given.setSelectionRange(9, 9); given.focus()")
        await page.command("Input.insertText", text='"')  # in the middle of typing
        await page.until("document.querySelector('.right.is-stale')")
        assert "last readable one" in await stage.text(".stale")
        assert "get_weather" not in await stage.text(".result")
        assert "sea" in await stage.text(".result")  # the last good result stays
        await page.command("Input.dispatchKeyEvent", type="keyDown", key="Backspace", windowsVirtualKeyCode=8)
        await page.until("!document.querySelector('.right.is-stale')")
        await stage.key("Escape")
        await stage.key("j")
        await page.until("document.activeElement.matches('.choice[aria-selected=true]')")

    on_stage(address, work, "playground")


@promise("gateway:playground")
def test_a_request_is_taken_to_the_playground_and_works_on_a_phone(address: str) -> None:
    async def work(stage: Stage) -> None:
        page = stage.page
        await page.size(390, 844, phone=True)
        await stage.post(GEMINI_PATH, GEMINI)
        await page.until(f"{ROWS} === 1")
        fits = "document.documentElement.scrollWidth <= innerWidth"
        assert await page.js(fits)
        await stage.picture("live-phone")
        await stage.click(".request")
        await page.until("document.querySelectorAll('.panes .pane').length === 4")
        assert await page.js(fits)
        shown = "[...document.querySelectorAll('.panes .pane')].map((one) => one.offsetWidth > 300)"
        assert await page.js(shown) == [True, False, False, False]  # one at a time, and each as wide as the phone
        await stage.click(".pane-picks button", "Losses")
        assert await page.js(shown) == [False, False, False, True]
        await stage.click(".loss", "$.safetySettings")
        assert await page.js(shown) == [True, False, False, False]  # where the loss is
        await stage.click(".detail-actions button", "Open in playground")
        await page.until("document.querySelector('.detected b')?.textContent === 'Gemini request'")
        assert json.loads(await page.js("document.querySelector('.given').value")) == GEMINI
        assert await page.js(fits)

    on_stage(address, work)
