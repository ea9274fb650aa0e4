"""A real browser for tests: Chromium without a window, spoken to over its own debugging protocol."""

import asyncio
import base64
import itertools
import json
import os
import re
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 15.0
_LISTENING = re.compile(rb"DevTools listening on (ws://\S+)")


def chromium() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


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
            told = json.loads(message.data)
            self._note(told)
            if told.get("id") == number and told.get("sessionId") == self._session:
                assert "error" not in told, told["error"]
                return told["result"]
        raise AssertionError("the browser is gone")

    def _note(self, told: dict[str, Any]) -> None:
        given = told.get("params", {})
        if told.get("method") == "Runtime.exceptionThrown":
            self.problems.append(str(given["exceptionDetails"].get("exception", {}).get("description")))
        if told.get("method") == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.problems.append(given["entry"]["text"])

    async def js(self, expression: str) -> Any:
        told = await self.command(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, userGesture=True
        )
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait for something to be true."""
        async with asyncio.timeout(PATIENCE):
            while not await self.js(f"Boolean({expression})"):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)

    async def open(self, address: str) -> None:
        await self.command("Page.navigate", url=address)
        await self.until(
            "document.readyState === 'complete' && document.querySelectorAll('#gauges, .login').length > 0"
        )

    async def type(self, text: str) -> None:
        await self.js("document.getElementById('text').focus()")
        await self.command("Input.insertText", text=text)

    async def press(self, key: str, code: int, **more: Any) -> None:
        for kind in ("keyDown", "keyUp"):
            await self.command("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **more)

    async def say(self, text: str) -> None:
        """Type a message and send it."""
        await self.type(text)
        await self.js("document.getElementById('composer').requestSubmit()")

    async def screenshot(self, path: Path) -> None:
        told = await self.command("Page.captureScreenshot", format="png")
        path.write_bytes(  # noqa: ASYNC240 - one small file
            base64.b64decode(told["data"])
        )

    async def size(self, width: int, height: int, *, phone: bool = False) -> None:
        await self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
        )


@asynccontextmanager
async def browser() -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    program = chromium()
    assert program is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank",
            stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            assert process.stderr is not None
            async with asyncio.timeout(30):
                while (found := _LISTENING.search(line := await process.stderr.readline())) is None:
                    assert line, "the browser did not start"
            drain = asyncio.create_task(process.stderr.read())
            async with (
                aiohttp.ClientSession() as client,
                client.ws_connect(found[1].decode(), max_msg_size=0) as socket,
            ):
                yield socket
            drain.cancel()
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def new_page(socket: aiohttp.ClientWebSocketResponse) -> Page:
    root = Page(socket, "")
    root._session = None  # type: ignore[assignment]  # noqa: SLF001 - the browser itself is no session

    async def ask(method: str, **given: Any) -> Any:
        number = 900_000 + next(root._numbers)  # noqa: SLF001
        await socket.send_json({"id": number, "method": method, "params": given})
        async for message in socket:
            told = json.loads(message.data)
            if told.get("id") == number:
                return told["result"]
        raise AssertionError("the browser is gone")

    target = await ask("Target.createTarget", url="about:blank")
    attached = await ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
    page = Page(socket, attached["sessionId"])
    for domain in ("Page", "Runtime", "Log"):
        await page.command(f"{domain}.enable")
    await page.size(1400, 900)
    return page
