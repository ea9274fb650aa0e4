"""All sections of the page in a real browser: the first minute of a newcomer, and accessibility."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dragoman.chat.stores import FileStore
from dragoman.gateway.config import read_config
from dragoman.gateway.serving import Setting, serving, simulators
from dragoman.web.conversation_hub import ConversationHub
from dragoman.web.serving import page_before, serving_page
from tests.gateway.running import Lines, on_any_port
from tests.support.browser import Page, picture, tab
from tests.support.chats import model
from tests.support.promises import promise
from tests.support.waiting import PATIENCE

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
QUESTION = "@all What is the weather in Paris?"
ANSWERED = "document.querySelectorAll('.answer:not(.busy)').length === 4"
# What the standards say, and what experience says; an opinion on how regions are named is left out.
RUN = """axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}).then(
    (told) => told.violations.flatMap((one) => one.nodes.map((node) => `${one.id}: ${one.help}: ${node.html}`)))"""
# What cannot be reached: out of sight at the right, and in nothing that scrolls sideways.
OUTSIDE = """[...document.querySelectorAll('#section :is(button, input, textarea, select, a, h1, p)')].filter((one) => {
    const box = one.getBoundingClientRect();
    if (!box.width || box.right <= 391 || getComputedStyle(one).visibility === 'hidden') return false;
    for (let outer = one.parentElement; outer; outer = outer.parentElement) {
        const scrolls = ['auto', 'scroll'].includes(getComputedStyle(outer).overflowX);
        if (scrolls && outer.clientWidth <= 390 && outer.scrollWidth > outer.clientWidth) return false;
    }
    return true; }).map((one) => one.outerHTML.slice(0, 120))"""
Work = Callable[[Page, str], Coroutine[Any, Any, None]]


def at_the_gateway(address: str, folder: Path, work: Work, config: str = "") -> None:
    """A gateway without keys of providers, as `dragoman serve` starts it."""

    async def run() -> None:
        async with asyncio.timeout(2 * PATIENCE), simulators() as simulated:
            environment = {"CHAT_HISTORY_DIR": str(folder)}
            setting = Setting(config=on_any_port(read_config(config)), simulated=simulated, environment=environment)
            async with serving(setting, log=Lines(), front=page_before) as running, tab(address) as page:
                await page.open(running.url)
                await work(page, running.url)
                assert page.problems == []

    asyncio.run(run())


@promise("web:places", "web:chat", "chat:demo")
def test_a_newcomer_sees_four_models_call_a_tool_and_the_requests_they_made(tmp_path: Path, address: str) -> None:
    async def work(page: Page, _: str) -> None:
        places = "[...document.querySelectorAll('#sections a')].map((one) => one.textContent)"
        assert await page.js(places) == ["Live", "Chat", "Playground", "Usage", "Keys"]
        assert await page.js("document.querySelector('#sections [aria-current]').textContent") == "Live"
        await page.chord("gc", "document.querySelector('.empty button')")
        await page.js("document.querySelector('.empty button').click()")
        await page.js("document.getElementById('composer').requestSubmit()")
        await page.until(ANSWERED)
        results = "[...document.querySelectorAll('.tool')].map((one) => one.textContent.includes('18 °C'))"
        assert await page.js(results) == [True] * 4
        await page.js("document.querySelectorAll('.tool').forEach((one) => (one.open = true))")
        await picture(page, "chat-columns", dark=True)
        await page.js("document.activeElement.blur()")
        await page.chord("gl", "location.hash.startsWith('#/live')")
        await page.until("document.querySelectorAll('.request').length >= 8")
        await page.chord("gp", "location.hash.startsWith('#/playground')")
        await page.size(390, 800, phone=True)
        for place in ("live", "chat", "playground", "usage", "keys"):
            await page.js(f"location.hash = '#/{place}'")
            await page.until(f"document.querySelector('.section.{place}:not([hidden])')")
            await page.settle()
            assert await page.js(OUTSIDE) == [], f"{place} is wider than a phone"
            if place == "chat":
                await picture(page, "chat-phone")

    at_the_gateway(address, tmp_path, work)


@promise("web:places")
def test_what_is_written_in_one_place_is_there_after_another_and_after_a_reload(tmp_path: Path, address: str) -> None:
    async def work(page: Page, url: str) -> None:
        await page.js("location.hash = '#/chat'")
        await page.until("document.querySelector('.empty button')")
        await page.type("@claude not sent yet")
        for place in ("playground", "chat"):
            await page.js(f"location.hash = '#/{place}'")
            await page.until(f"document.querySelector('#sections [aria-current]').href.endsWith('{place}')")
        assert await page.js("document.getElementById('text').value") == "@claude not sent yet"
        await page.reload()
        await page.until("document.getElementById('text')?.value === '@claude not sent yet'")
        await page.js("document.getElementById('theme').click()")
        chosen = await page.js("document.documentElement.dataset.theme")
        await page.open(url)
        assert await page.js("document.documentElement.dataset.theme") == chosen
        await page.js("localStorage.clear()")

    at_the_gateway(address, tmp_path, work)


async def _judged(page: Page, where: str) -> list[str]:
    """By the rules of axe-core, in both themes."""
    found = []
    for theme in ("light", "dark"):
        await page.js(f"document.documentElement.dataset.theme = '{theme}'")
        await page.settle()  # colours fade
        found += [f"{where} ({theme}): {one}" for one in await page.js(RUN)]
    return found


@promise("web:accessible", "chat:web-accessible")
def test_axe_finds_nothing_in_any_place(tmp_path: Path, address: str) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed (`npm ci` in web/): accessibility was not judged")

    async def work(page: Page, _: str) -> None:
        await page.js(AXE.read_text(encoding="utf-8"))  # by the debugger: the page itself may load nothing
        found = await _judged(page, "live, empty")
        await page.js("location.hash = '#/chat'")
        await page.until("document.querySelector('.empty button')")
        found += await _judged(page, "chat, empty")
        await page.say(QUESTION)
        await page.until(ANSWERED)
        await page.js("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        found += await _judged(page, "chat")
        await page.js("document.getElementById('models').click()")
        await page.until("document.querySelector('#dialog[open]')")
        found += await _judged(page, "chat, models")
        await page.press("Escape", 27)
        await page.js("location.hash = '#/live'")
        await page.until("document.querySelectorAll('.request').length >= 8")
        found += await _judged(page, "live")
        await page.js("document.querySelector('.request').click()")
        await page.until("document.querySelectorAll('.panes .pane').length === 4")
        found += await _judged(page, "live, opened")
        await page.js("location.hash = '#/playground'")
        await page.until("document.querySelector('.sample')")
        found += await _judged(page, "playground, empty")
        await page.js("document.querySelector('.sample').click()")
        await page.until("!document.querySelector('.trial button').disabled")
        await page.js("document.querySelector('.trial button').click()")
        await page.until("document.querySelector('.answered')")
        found += await _judged(page, "playground, answered")
        await page.js("location.hash = '#/usage'")
        await page.until("document.querySelector('.usage-page td')")
        found += await _judged(page, "usage")
        await page.js("location.hash = '#/keys'")
        await page.until("document.querySelector('.keys-page .note:not([hidden])')")
        found += await _judged(page, "keys, without a database")
        await page.size(390, 800, phone=True)
        for place in ("live", "chat", "playground", "usage", "keys"):
            await page.js(f"location.hash = '#/{place}'")
            await page.until(f"document.querySelector('.section.{place}:not([hidden])')")
            found += await _judged(page, f"{place} on a phone")
        assert found == [], "\n" + "\n".join(found)

    at_the_gateway(address, tmp_path, work)


@promise("web:keys", "web:accessible")
def test_the_administrator_makes_and_revokes_keys(tmp_path: Path, address: str) -> None:
    config = f'[server]\ndatabase = "{tmp_path / "gateway.db"}"\n'

    async def work(page: Page, url: str) -> None:
        await page.js("location.hash = '#/keys'")
        await page.until("document.querySelector('.keys-page .primary:not([disabled])')")
        await page.js("document.querySelector('.keys-page .primary').click()")
        await page.until("document.querySelector('#dialog[open] [name=name]')")
        assert "This is the first key" in await page.js("document.getElementById('dialog').textContent")
        if AXE.is_file():
            await page.js(AXE.read_text(encoding="utf-8"))
            assert await _judged(page, "keys, new") == []
        await page.js("document.querySelector('#dialog form').requestSubmit()")
        await page.until("document.querySelector('#dialog .problem[role=alert]').textContent.includes('needs a name')")
        await page.js("document.querySelector('[name=name]').value = 'alice'")
        await page.js("document.querySelector('[name=budget]').value = '20'")
        await page.js("document.querySelector('[name=models]').value = 'anthropic/*'")
        await page.js("document.querySelector('#dialog form').requestSubmit()")
        await page.until("document.querySelector('.the-key')")
        key = await page.js("document.querySelector('.the-key').textContent")
        async with aiohttp.ClientSession() as client:
            body = {"model": "anthropic/claude-sonnet-5", "messages": [{"role": "user", "content": "Hi"}]}
            shown = {"authorization": f"Bearer {key}"}
            async with client.post(f"{url}/v1/chat/completions", json=body, headers=shown) as answer:
                assert answer.status == 200
        assert key not in await page.js("JSON.stringify(localStorage) + JSON.stringify(sessionStorage)")

    at_the_gateway(address, tmp_path, work, config)


@promise("web:login", "web:accessible")
def test_a_gateway_with_keys_asks_for_one_lets_in_and_out(tmp_path: Path, address: str) -> None:
    submit = "document.querySelector('input').value = '{}'; document.querySelector('form').submit()"

    async def work(page: Page, _: str) -> None:
        assert await page.js("document.querySelector('label').textContent.trim()") == "Key of this gateway"
        await page.js(submit.format("wrong"))
        await page.until("document.querySelector('[role=alert]')")
        await picture(page, "page-login", dark=True)
        if AXE.is_file():
            await page.js(AXE.read_text(encoding="utf-8"))
            assert await _judged(page, "login") == []
        await page.js(submit.format("a-key"))
        await page.until("document.getElementById('logout')")
        await page.js("document.getElementById('logout').click()")
        await page.until("document.querySelector('.login')")
        await page.js("location.href = '/'")
        await page.until("document.readyState === 'complete' && document.querySelector('.login')")

    at_the_gateway(address, tmp_path, work, '[server]\nkeys = ["a-key"]')


@promise("web:places")
def test_a_chat_alone_offers_nothing_to_watch(tmp_path: Path, address: str) -> None:
    async def run() -> None:
        store = FileStore(tmp_path)
        hub = ConversationHub([model("gemini", [])], store, store.folder)
        async with asyncio.timeout(PATIENCE), serving_page(hub) as url, tab(address) as page:
            await page.open(url)
            await page.until("location.hash === '#/chat'")
            places = "[...document.querySelectorAll('#sections a')].map((one) => one.textContent)"
            assert await page.js(places) == ["Chat", "Playground"]

    asyncio.run(run())
