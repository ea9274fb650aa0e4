"""A real browser for tests: headless Chromium, driven over its debugging protocol."""

import asyncio
import base64
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.waiting import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

PICTURES = os.environ.get("DRAGOMAN_SCREENSHOTS")
_LISTENING = re.compile(rb"DevTools listening on (ws://\S+)")


def chromium() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class BrowserError(Exception):
    """The browser refused a command."""


class Page:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, session: str) -> None:
        self._socket = socket
        self._session = session
        self._numbers = itertools.count(1)
        self.problems: list[str] = []
        """Uncaught errors and complaints about the content policy."""

    async def command(self, method: str, **given: Any) -> Any:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": given, "sessionId": self._session})
        async for message in self._socket:
            answer = json.loads(message.data)
            self._note(answer)
            if answer.get("id") == number and answer.get("sessionId") == self._session:
                if "error" in answer:
                    raise BrowserError(answer["error"])
                return answer["result"]
        raise AssertionError("the browser is gone")

    def _note(self, message: dict[str, Any]) -> None:
        given = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.problems.append(str(given["exceptionDetails"].get("exception", {}).get("description")))
        if message.get("method") == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.problems.append(given["entry"]["text"])

    async def js(self, expression: str) -> Any:
        answer = await self.command(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, userGesture=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until a JavaScript expression is true."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not await self._is(expression):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"not true within {PATIENCE:.0f} s: {expression}; problems: {self.problems}") from None

    async def _is(self, expression: str) -> bool:
        try:
            return bool(await self.js(f"Boolean({expression})"))
        except BrowserError:  # the page is just being replaced
            return False

    async def reload(self) -> None:
        await self.js("window.isOld = true")
        await self.command("Page.reload")
        await self.until("window.isOld === undefined && document.readyState === 'complete'")

    async def open(self, address: str) -> None:
        await self.command("Page.navigate", url=address)
        await self.until(
            "document.readyState === 'complete' && document.querySelectorAll('.section h1, .login').length > 0"
        )

    async def type(self, text: str) -> None:
        await self.js("document.getElementById('text').focus()")
        await self.command("Input.insertText", text=text)

    async def press(self, key: str, code: int, **more: Any) -> None:
        for kind in ("keyDown", "keyUp"):
            await self.command("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **more)

    async def chord(self, keys: str, expression: str) -> None:
        """Press these letters until the expression is true: the page takes them as one only if they follow quickly."""
        end = time.monotonic() + PATIENCE
        while not await self._is(expression):
            assert time.monotonic() < end, f"{keys} did not lead to {expression}; problems: {self.problems}"
            for key in keys:
                await self.press(key, ord(key.upper()), text=key)
            for _ in range(20):
                if await self._is(expression):
                    return
                await asyncio.sleep(0.05)

    async def settle(self) -> None:
        """Wait until every transition has ended."""
        running = "document.getAnimations().filter((one) => one.playState === 'running'"
        await self.until(f"!{running} && one.effect.getComputedTiming().endTime !== Infinity).length")

    async def say(self, text: str) -> None:
        """Type a message and send it."""
        await self.type(text)
        await self.js("document.getElementById('composer').requestSubmit()")

    async def screenshot(self, path: Path) -> None:
        answer = await self.command("Page.captureScreenshot", format="png")
        path.write_bytes(  # noqa: ASYNC240 - one small file
            base64.b64decode(answer["data"])
        )

    async def size(self, width: int, height: int, *, phone: bool = False) -> None:
        await self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
        )


async def picture(page: Page, name: str, *, dark: bool = False) -> None:
    """Take a screenshot for the documentation if `DRAGOMAN_SCREENSHOTS` names a folder."""
    if PICTURES is None:
        return
    for theme, suffix in (("light", ""), ("dark", "-dark")) if dark else (("light", ""),):
        await page.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        await asyncio.sleep(0.3)
        await page.screenshot(Path(PICTURES) / f"{name}{suffix}.png")
    await page.command("Emulation.setEmulatedMedia", features=[])


@contextmanager
def browser() -> Iterator[str]:
    """A running browser: the address of its debugging protocol. Tests are skipped without Chromium."""
    program = chromium()
    if program is None:
        pytest.skip(
            f"no Chromium on this machine (looked for {', '.join(NAMES)}): the page was not tested in a browser"
        )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(  # noqa: S603
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            assert process.stderr is not None
            while (found := _LISTENING.search(line := process.stderr.readline())) is None:
                assert line, "the browser did not start"
            rest = threading.Thread(target=process.stderr.read)
            rest.start()
            yield found[1].decode()
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        rest.join()
        process.stderr.close()


@asynccontextmanager
async def tab(address: str) -> AsyncIterator[Page]:
    """A new tab of a running browser."""
    async with aiohttp.ClientSession() as client, client.ws_connect(address, max_msg_size=0) as socket:
        page = await new_page(socket)
        try:
            yield page
        finally:
            await page.command("Page.close")


async def new_page(socket: aiohttp.ClientWebSocketResponse) -> Page:
    root = Page(socket, "")
    root._session = None  # type: ignore[assignment]  # noqa: SLF001 - the browser itself has no session

    async def ask(method: str, **given: Any) -> Any:
        number = 900_000 + next(root._numbers)  # noqa: SLF001
        await socket.send_json({"id": number, "method": method, "params": given})
        async for message in socket:
            answer = json.loads(message.data)
            if answer.get("id") == number:
                return answer["result"]
        raise AssertionError("the browser is gone")

    target = await ask("Target.createTarget", url="about:blank")
    attached = await ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
    page = Page(socket, attached["sessionId"])
    for domain in ("Page", "Runtime", "Log"):
        await page.command(f"{domain}.enable")
    await page.size(1400, 900)
    return page
