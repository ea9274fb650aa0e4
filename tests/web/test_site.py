"""The page in front of a gateway: what each visitor sees."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import aiohttp

from dragoman.gateway.config import read_config
from dragoman.gateway.exchange import Exchange
from dragoman.gateway.http_server import Server
from dragoman.gateway.serving import Setting, listening_socket, serving
from dragoman.web.guard import HEADER, Guard
from dragoman.web.serving import page_before
from dragoman.web.site import PageSection, Route, Site
from dragoman.web.streams import Streams
from tests.gateway.running import Lines, configured
from tests.support.promises import promise
from tests.support.waiting import PATIENCE

BROWSER = {"accept": "text/html,application/xhtml+xml"}
Work = Callable[[str, aiohttp.ClientSession], Coroutine[Any, Any, None]]


def with_site(work: Work, text: str = "", environment: Mapping[str, str] | None = None) -> None:
    async def run() -> None:
        async with (
            asyncio.timeout(PATIENCE),
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
            about = await answer.json()
        assert about["sections"][0] == "live"
        assert about["login"] is False

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


@promise("web:login-throttled")
def test_attempts_wait_before_the_password_is_looked_at() -> None:
    """Also the right password waits: otherwise many guesses at once would find out which one is answered first."""

    async def work(url: str, client: aiohttp.ClientSession) -> None:
        async def attempt(word: str) -> tuple[int, float]:
            started = time.monotonic()
            async with client.post(
                f"{url}/_/login", data={"password": word}, headers=BROWSER, allow_redirects=False
            ) as answer:
                found = "set-cookie" in answer.headers
                return (200 if found else answer.status), time.monotonic() - started

        assert (await attempt("open sesame"))[0] == 200, "without wrong attempts there is no wait"
        attempts = []
        for word in ("one", "two", "three", "open sesame"):
            attempts.append(asyncio.ensure_future(attempt(word)))
            await asyncio.sleep(0.1)  # they arrive in this order
        statuses, seconds = zip(*[await one for one in attempts], strict=True)
        assert statuses == (303, 303, 303, 200)
        assert seconds[-1] > 0.5 + 1.0 + 2.0 - 0.4
        assert (await attempt("open sesame"))[1] < 2.0, "the right password ends the waiting"
        flood = [asyncio.ensure_future(attempt(f"guess {number}")) for number in range(40)]
        refused = 0
        for one in asyncio.as_completed(flood):
            refused += (await one)[0] == 429
            if refused == 30:
                break  # unread, and before the others, which wait
        for task in flood:
            task.cancel()

    with_site(work, "", {"DRAGOMAN_PAGE_PASSWORD": "open sesame"})


@promise("web:front", "gateway:shutdown")
def test_an_open_page_does_not_hold_up_the_end(tmp_path: Path) -> None:
    async def run() -> None:
        text = "[server]\ndrain_seconds = 600\nport = 0"
        setting = Setting(config=read_config(text), environment={"CHAT_HISTORY_DIR": str(tmp_path)})
        async with asyncio.timeout(PATIENCE), aiohttp.ClientSession() as client:
            async with serving(setting, log=Lines(), front=page_before) as running:
                api = f"{running.url}/_/api/chat/conversations"
                async with client.post(api, json={}, headers={HEADER: "1"}) as answer:
                    conversation = (await answer.json())["id"]
                stream = await client.get(f"{api}/{conversation}/events")
                assert (await stream.content.readline()) == b"event: snapshot\n"
                started = asyncio.get_running_loop().time()
            assert asyncio.get_running_loop().time() - started < 5
            await stream.read()  # it ended as streams end, and was not cut

    asyncio.run(run())


@promise("web:front")
def test_an_internal_error_is_one_answer_and_is_logged_for_the_operator() -> None:
    async def broken(_: Exchange, __: Mapping[str, str]) -> None:
        raise ZeroDivisionError("a secret")

    async def run() -> None:
        logged: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))
        site = Site(Guard("127.0.0.1"), [PageSection("odd", (Route("GET", "/_/api/odd/{name}", broken),))])
        server = Server(site)
        with listening_socket("127.0.0.1", 0) as listening:
            await server.listen(listening)
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            async with aiohttp.ClientSession() as client:
                async with client.get(f"{url}/_/api/odd/a%2Fb") as answer:
                    assert answer.status == 500
                    assert "secret" not in await answer.text()
                assert await status(client, "GET", f"{url}/_/api/site") == 200
                assert await status(client, "GET", f"{url}/elsewhere") == 404
            await server.close(1.0)
        assert [str(one["exception"]) for one in logged] == ["a secret"]

    asyncio.run(run())


@promise("web:front")
def test_a_page_that_falls_behind_is_sent_back_to_the_beginning_and_misses_nothing_unnoticed() -> None:
    streams = Streams()

    async def flood(exchange: Exchange, _: Mapping[str, str]) -> None:
        stream = streams.stream()
        for number in range(20_000):
            stream.put("number", number)
        await stream.run(exchange)

    async def run() -> None:
        server = Server(Site(Guard("127.0.0.1"), [PageSection("flood", (Route("GET", "/_/api/flood", flood),))]))
        with listening_socket("127.0.0.1", 0) as listening:
            await server.listen(listening)
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            async with aiohttp.ClientSession() as client, client.get(f"{url}/_/api/flood") as answer:
                assert b"data: 19999" not in await answer.read()  # it ended, whole, and did not jump over anything
            await server.close(1.0)

    asyncio.run(run())
