"""Who may use the page. Loopback needs no password, but strangers' pages must not speak for the user.

- The `Host` of a request has to be one that we serve: a name that was made to point here (DNS rebinding) is refused.
- Whatever changes something has to carry a header that no form and no foreign script can send, and an `Origin` of ours.
- Beyond loopback a password is asked for, and a cookie remembers it.
- The page may load nothing but itself, and no script that stands in its text.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable
from typing import TypeAlias
from urllib.parse import urlsplit

from aiohttp import web

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
HEADER = "x-dragoman-chat"
COOKIE = "dragoman_chat"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_SAFE = frozenset({"GET", "HEAD"})
_OPEN = frozenset({"/login", "/static/style.css"})
_DELAY = 0.5  # seconds that a wrong password costs
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def is_loopback(host: str) -> bool:
    return host in _LOOPBACK


class Guard:
    def __init__(self, host: str, password: str | None = None) -> None:
        self._any_host = not is_loopback(host)
        self._password = password
        self._token = secrets.token_urlsafe(32)

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = self._refusal(request)
        if refusal is None:
            response = await handler(request)
        else:
            response = web.json_response({"error": refusal}, status=403)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    def _refusal(self, request: web.Request) -> str | None:
        host = urlsplit(f"//{request.host}").hostname or ""
        if not self._any_host and host not in _LOOPBACK:
            return f"this page is served to this machine only, not to {host!r}"
        if request.method in _SAFE:
            return None
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != request.host:
            return "a request from another site"
        if request.path not in _OPEN and HEADER not in request.headers:
            return f"the header {HEADER} is missing"
        return None

    @web.middleware
    async def login(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._password is None or request.path in _OPEN or self._is_known(request):
            return await handler(request)
        if request.path.startswith("/api/"):
            return web.json_response({"error": "log in first"}, status=401)
        raise web.HTTPSeeOther("/login")

    def _is_known(self, request: web.Request) -> bool:
        return hmac.compare_digest(request.cookies.get(COOKIE, ""), self._token)

    async def ask(self, _: web.Request) -> web.Response:
        return web.Response(text=_LOGIN, content_type="text/html")

    async def answer(self, request: web.Request) -> web.StreamResponse:
        given = str((await request.post()).get("password", ""))
        if self._password is None or not hmac.compare_digest(_sum(given), _sum(self._password)):
            await asyncio.sleep(_DELAY)
            raise web.HTTPSeeOther("/login")
        response = web.HTTPSeeOther("/")
        response.set_cookie(COOKIE, self._token, httponly=True, samesite="Strict", secure=request.secure)
        raise response


def _sum(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


_LOGIN = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>dragoman chat: log in</title><link rel="stylesheet" href="/static/style.css">
<body class="login"><form method="post" action="/login"><h1>dragoman chat</h1>
<label>Password <input type="password" name="password" autofocus required autocomplete="current-password"></label>
<button>Log in</button></form></body></html>
"""
