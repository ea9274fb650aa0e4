"""Routes of the page on a gateway's server: `/` for browsers and all of `/_/`. Other paths go to the gateway."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any, TypeAlias, TypeVar
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from dragoman import __version__
from dragoman.errors import DragomanError
from dragoman.gateway.exchange import Application, Exchange, Gone
from dragoman.gateway.http_request import ADMITTED, BadRequest, Head
from dragoman.web.guard import HEADERS, LOGIN, Guard

API = "/_/api"
_OURS = "/_/"
_OPEN = frozenset({LOGIN, "/_/static/style.css", "/_/static/icon.svg"})
_OPEN_BODY = 4 << 10
"""Most bytes that are read before login."""
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_FRESH = {"cache-control": "no-store"}
_JSON = {"content-type": "application/json", **_FRESH}
_HTML = {"content-type": "text/html; charset=utf-8", **_FRESH}
_NAME = re.compile(r"\{(\w+)\}")
T = TypeVar("T")

Handler: TypeAlias = Callable[[Exchange, Mapping[str, str]], Awaitable[None]]
Problems: TypeAlias = tuple[tuple[type[Exception], int], ...]
"""Status of each error type; the first match counts."""
_PROBLEMS: Problems = (
    (LookupError, 404),
    (msgspec.DecodeError, 400),
    (DragomanError, 422),
    (ValueError, 400),
    (TypeError, 400),
)


class Route(Struct, frozen=True):
    method: str
    pattern: str
    """Path pattern; `{name}` matches one segment, which the handler gets under that name."""
    handler: Handler


class PageSection(Struct, frozen=True):
    """One section of the page, with its endpoints."""

    name: str
    routes: Sequence[Route] = ()
    problems: Problems = ()


def send_json(exchange: Exchange, body: object, status: int = 200) -> None:
    exchange.send(status, _JSON, msgspec.json.encode(body))


def read_body(exchange: Exchange, type: type[T]) -> T:
    """The JSON body of the request as a value of this type."""
    try:
        return msgspec.json.decode(exchange.body, type=type)
    except RecursionError:
        raise ValueError("the body is nested too deeply") from None


def json_body(exchange: Exchange) -> dict[str, Any]:
    """The JSON object of the request; an empty body means an empty object."""
    given = read_body(exchange, object) if exchange.body else {}
    if not isinstance(given, dict):
        raise ValueError("expected an object")  # noqa: TRY004 - the content is wrong, not the call
    return given


class Site:
    """An application for the gateway's server. Paths that are not ours go to `next`."""

    def __init__(self, guard: Guard, sections: Sequence[PageSection], *, next: Application | None = None) -> None:  # noqa: A002
        self._guard = guard
        self._sections = sections
        self._is_alone = next is None
        self._next = next or _no_gateway
        self._static = _static_files()
        self._page = self._static["index.html"]
        self._etag = f'"{self._static["digest.txt"].decode().strip()}"'
        own = PageSection(
            "",
            (
                Route("GET", LOGIN, self._login_form),
                Route("POST", LOGIN, self._log_in),
                Route("POST", f"{API}/logout", self._log_out),
                Route("GET", f"{API}/site", self._about),
                Route("GET", "/_/static/{name}", self._asset),
            ),
        )
        self._routes = [
            (
                route.method,
                re.compile(_NAME.sub(r"(?P<\1>[^/]+)", route.pattern)),
                route.handler,
                section.problems + _PROBLEMS,
            )
            for section in (own, *sections)
            for route in section.routes
        ]

    def __call__(self, exchange: Exchange) -> Awaitable[None]:
        head = exchange.head
        if head.path.startswith(_OURS):
            return self._serve(exchange)
        if head.path == "/" and head.method == "GET":
            is_browser = "text/html" in head.headers.get("accept", "")
            if is_browser or self._is_alone:
                return self._serve(exchange)
        return self._next(exchange)

    async def _serve(self, exchange: Exchange) -> None:
        head = exchange.head
        if not await self._admit(exchange, head):
            return
        if head.path == "/":
            exchange.send(200, _HTML, self._page)
            return
        try:
            await exchange.receive(_OPEN_BODY if head.path in _OPEN else None)
        except BadRequest as bad:
            send_json(exchange, {"error": str(bad)}, bad.status)
        else:
            await self._dispatch(exchange)

    async def _admit(self, exchange: Exchange, head: Head) -> bool:
        """Check the request before any of its body is read; return whether it is admitted. If not, it is answered."""
        exchange.also = HEADERS
        refusal = self._guard.refusal(head)
        if refusal is not None:
            send_json(exchange, {"error": refusal}, 403)
        elif head.path in _OPEN or await self._guard.user(head) is not None:
            return True
        elif head.path.startswith(API):
            send_json(exchange, {"error": "log in first"}, 401)
        else:
            exchange.send(303, {"location": LOGIN})
        return False

    async def own_admission(self, exchange: Exchange) -> None:
        """Tell another worker how much of the body of a request for the page it may read, or refuse the request."""
        asked = exchange.head.parameters
        head = Head(asked["method"], asked["path"], "", exchange.head.headers)
        if await self._admit(exchange, head):
            exchange.send(200, {ADMITTED: str(_OPEN_BODY if head.path in _OPEN else sys.maxsize)})

    async def _dispatch(self, exchange: Exchange) -> None:
        head = exchange.head
        other = False
        for method, pattern, handler, problems in self._routes:
            found = pattern.fullmatch(head.path)
            if found is None:
                continue
            if method == head.method:
                names = {name: unquote(value) for name, value in found.groupdict().items()}
                await self._handle(handler, exchange, names, problems)
                return
            other = True
        send_json(
            exchange, {"error": "method not allowed" if other else "there is no such page"}, 405 if other else 404
        )

    async def _handle(self, handler: Handler, exchange: Exchange, names: Mapping[str, str], problems: Problems) -> None:
        """Runs a handler and turns errors into a message with a status."""
        try:
            await handler(exchange, names)
        except (Gone, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001 - a bug must fail only this request
            status = next((number for kind, number in problems if isinstance(error, kind)), None)
            if status is None:
                context = {"message": f"the handler of {exchange.head.path} failed", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)
                exchange.close_after()
            if not exchange.started:
                words = str(error) if status else "internal error; see the server's log"
                send_json(exchange, {"error": words}, status or 500)

    # ── what every page has ──

    async def _about(self, exchange: Exchange, _: Mapping[str, str]) -> None:
        user = await self._guard.user(exchange.head)
        about = {
            "version": __version__,
            "sections": [section.name for section in self._sections],
            "login": self._guard.needs_login,
            "person": user and user.name,
        }
        send_json(exchange, about)

    async def _asset(self, exchange: Exchange, names: Mapping[str, str]) -> None:
        body = self._static.get(names["name"])
        if body is None:
            raise LookupError("there is no such file")
        headers = {"cache-control": "no-cache", "etag": self._etag}
        if exchange.head.headers.get("if-none-match") == self._etag:
            exchange.send(304, headers)
            return
        suffix = names["name"][names["name"].rfind(".") :]
        kind = _TYPES.get(suffix, "text/plain")
        exchange.send(200, {**headers, "content-type": f"{kind}; charset=utf-8"}, body)

    async def _login_form(self, exchange: Exchange, _: Mapping[str, str]) -> None:
        words = "<p class='problem' role='alert'>Wrong password or key.</p>" if exchange.head.query == "wrong" else ""
        text = _LOGIN.format(label=escape(self._guard.login_label), words=words)
        exchange.send(200, _HTML, text.encode())

    async def _log_in(self, exchange: Exchange, _: Mapping[str, str]) -> None:
        await self._guard.log_in(exchange)

    async def _log_out(self, exchange: Exchange, _: Mapping[str, str]) -> None:
        self._guard.log_out(exchange.head)
        send_json(exchange, {})


async def _no_gateway(exchange: Exchange) -> None:
    send_json(exchange, {"error": "there is no gateway here, only the page at /"}, 404)


def _static_files() -> dict[str, bytes]:
    """Files of the page, read once: no path can reach any other file."""
    folder = files("dragoman.web") / "static"
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}


_LOGIN = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>dragoman: log in</title><link rel="icon" href="/_/static/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/_/static/style.css">
<body class="login"><main><form method="post" action="/_/login"><h1>dragoman</h1>{words}
<label>{label} <input type="password" name="password" autofocus required autocomplete="current-password"></label>
<button class="primary">Log in</button></form></main></body></html>
"""
