"""The page before a gateway: who is shown what."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import aiohttp

from dragoman.gateway.serving import serving
from dragoman.web.guard import HEADER
from dragoman.web.serving import page_before
from tests.gateway.running import Lines, configured
from tests.support.promises import promise

BROWSER = {"accept": "text/html,application/xhtml+xml"}
Work = Callable[[str, aiohttp.ClientSession], Coroutine[Any, Any, None]]


def with_site(work: Work, text: str = "", environment: Mapping[str, str] | None = None) -> None:
    async def run() -> None:
        async with (
            asyncio.timeout(20),
            serving(configured(text, environment), log=Lines(), front=page_before) as running,
            aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client,
        ):
            await work(running.url, client)

    asyncio.run(run())


async def status(client: aiohttp.ClientSession, method: str, url: str, **more: Any) -> int:
    async with client.request(method, url, allow_redirects=False, **more) as answer:
        return answer.status


@promise("web:front")
def test_browsers_get_the_page_and_clients_the_gateway() -> None:
    async def work(url: str, client: aiohttp.ClientSession) -> None:
        async with client.get(url, headers=BROWSER) as answer:
            page = await answer.text()
            policy = answer.headers["content-security-policy"]
        assert "<main" in page
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        async with client.get(url) as answer:
            assert await answer.text() == "dragoman is running\n"
        for path in ("app.js", "style.css", "icon.svg"):
            async with client.get(f"{url}/_/static/{path}") as answer:
                assert answer.status == 200
                tag = answer.headers["etag"]
            again = {"if-none-match": tag}
            assert await status(client, "GET", f"{url}/_/static/{path}", headers=again) == 304
        assert await status(client, "GET", f"{url}/_/static/..%2fguard.py") == 404
        assert await status(client, "GET", f"{url}/_/nothing") == 404
        assert await status(client, "GET", f"{url}/health") == 200
        async with client.get(f"{url}/_/api/site") as answer:
            told = await answer.json()
        assert told["places"][0] == "live"
        assert told["login"] is False

    with_site(work)


@promise("web:front")
def test_strangers_are_refused() -> None:
    async def work(url: str, client: aiohttp.ClientSession) -> None:
        out = f"{url}/_/api/logout"
        ours = {HEADER: "1"}
        assert await status(client, "POST", out, headers=ours) == 200
        for headers in ({}, {**ours, "origin": "https://evil.example"}, {**ours, "host": "evil.example"}):
            assert await status(client, "POST", out, headers=headers) == 403, headers
        assert await status(client, "GET", f"{url}/_/api/site", headers={"host": "evil.example:80"}) == 403
        assert await status(client, "PUT", out, headers=ours) == 405

    with_site(work)


@promise("web:login", "gateway:keys")
def test_a_key_of_the_gateway_opens_the_page() -> None:
    async def work(url: str, client: aiohttp.ClientSession) -> None:
        assert await status(client, "GET", url, headers=BROWSER) == 303
        assert await status(client, "GET", f"{url}/_/api/site") == 401
        for key, known in (("wrong", False), ("a-key", True)):
            async with client.post(f"{url}/_/login", data={"password": key}, headers=BROWSER) as answer:
                assert (answer.url.path == "/") == known
        async with client.get(f"{url}/_/api/site") as answer:
            assert (await answer.json())["person"] == "key-1"
        await client.post(f"{url}/_/api/logout", headers={HEADER: "1"})
        assert await status(client, "GET", f"{url}/_/api/site") == 401

    with_site(work, '[server]\nkeys = ["a-key"]')


@promise("web:login")
def test_a_password_of_the_page_comes_before_keys() -> None:
    async def work(url: str, client: aiohttp.ClientSession) -> None:
        for word, known in (("a-key", False), ("open sesame", True)):
            async with client.post(f"{url}/_/login", data={"password": word}, headers=BROWSER) as answer:
                assert (answer.url.path == "/") == known

    with_site(work, '[server]\nkeys = ["a-key"]', {"DRAGOMAN_PAGE_PASSWORD": "open sesame"})
