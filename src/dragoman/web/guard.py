"""Access control of the page. Loopback needs no login, but other sites must not act for the user.

- Requests that change something must have a header that no form and no script of another site can send, and our
  `Origin`.
- Without login, the `Host` of a request must be one that we serve: other names (DNS rebinding) are refused. With
  login, such a request has no cookie and gets the form.
- Beyond loopback, and if a gateway has keys, a password or a key is required; a cookie keeps the login.
- The page may load only its own files, and no inline scripts.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias
from urllib.parse import SplitResult, parse_qs, urlsplit

from msgspec import Struct

from dragoman.gateway.exchange import Exchange
from dragoman.gateway.http_request import Head
from dragoman.gateway.serving import is_loopback

HEADER = "x-dragoman-page"
COOKIE = "dragoman_page"
LOGIN = "/_/login"
_SAFE = frozenset({"GET", "HEAD"})
# Seconds before the next password is checked after a wrong one; doubles each time, up to the longest.
_FIRST_DELAY = 0.5
_LONGEST_DELAY = 4.0
_FORGIVEN = 60.0
"""Seconds without a wrong password after which the count is reset."""
_MOST_WAITING = 8
"""Attempts that may wait in line; more are refused unread."""
_SESSIONS = 1_000
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with a stricter policy, browsers omit the Origin of the login form
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class PageUser(Struct, frozen=True):
    """A user of the page."""

    name: str = ""
    """Name of the key used to log in."""
    id: str = ""
    """Id of that key, which owns the user's data."""
    sees_all: bool = True
    """Whether this user sees requests of others."""
    key: str = ""
    """The key itself, used for requests made through the page. Never shown."""


KeyCheck: TypeAlias = Callable[[str], Awaitable[tuple[str, str] | None]]
"""Name and id of an active key."""


class Keys(Struct, frozen=True):
    """The keys of a gateway: whether any exist (they may be created while it runs), and lookup of one."""

    required: Callable[[], bool]
    check: KeyCheck


async def _no_keys(_key: str) -> None:
    """Lookup without keys: finds none."""


NO_KEYS = Keys(required=lambda: False, check=_no_keys)
_ANYBODY = PageUser()


class TooManyAttempts(Exception):
    def __init__(self, retry_after: int) -> None:
        self.retry_after = retry_after
        super().__init__("too many login attempts")


class _Attempts:
    """Checks login attempts one at a time; after a wrong password, the next check is delayed.

    The delay is the same for right and wrong passwords, so guessing in parallel is not faster.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._wrong = 0
        self._last = 0.0

    async def check(self, recognise: Callable[[], Awaitable[PageUser | None]]) -> PageUser | None:
        """Checks one attempt, in turn. Raises `TooManyAttempts`."""
        if self._waiting >= _MOST_WAITING:
            raise TooManyAttempts(round(_LONGEST_DELAY))
        self._waiting += 1
        try:
            async with self._turn:
                await asyncio.sleep(self._delay())
                user = await recognise()
                self._wrong = 0 if user is not None else self._wrong + 1
                self._last = time.monotonic()
                return user
        finally:
            self._waiting -= 1

    def _delay(self) -> float:
        since = time.monotonic() - self._last
        if not self._wrong or since > _FORGIVEN:
            self._wrong = 0
            return 0.0
        return max(min(_FIRST_DELAY * 2.0 ** (min(self._wrong, 10) - 1), _LONGEST_DELAY) - since, 0.0)


class Guard:
    def __init__(self, host: str, password: str | None = None, keys: Keys = NO_KEYS) -> None:
        self._is_local = is_loopback(host)
        self._password = password
        self._keys = keys
        self._sessions: dict[bytes, PageUser] = {}
        self._attempts = _Attempts()

    @property
    def needs_login(self) -> bool:
        """Whether users must log in."""
        return self._password is not None or self._keys.required()

    def refusal(self, head: Head) -> str | None:
        """Why a request is refused; None if it is accepted."""
        host = head.headers.get("host", "")
        if self._is_local and not self.needs_login and not is_loopback(_address(f"//{host}").hostname or ""):
            return f"this page is served to this machine only, not to {host!r}"
        if head.method in _SAFE:
            return None
        origin = head.headers.get("origin")
        if origin is not None and _address(origin).netloc != host:
            return "a request from another site"
        if head.path != LOGIN and HEADER not in head.headers:
            return f"the header {HEADER} is missing"
        return None

    async def user(self, head: Head) -> PageUser | None:
        """The user of this request; None if there is no login."""
        if not self.needs_login:
            return _ANYBODY
        user = self._sessions.get(_digest(session_cookie(head)))
        # Checked on every request: the key may have been revoked.
        if user is None or (user.key and await self._keys.check(user.key) is None):
            return None
        return user

    async def log_in(self, exchange: Exchange) -> None:
        given = parse_qs(exchange.body.decode("utf-8", "replace")).get("password", [""])[0]
        try:
            user = await self._attempts.check(lambda: self._recognise(given))
        except TooManyAttempts as error:
            headers = {"content-type": "text/plain; charset=utf-8", "retry-after": str(error.retry_after)}
            exchange.send(429, headers, b"Too many login attempts. Try again in a few seconds.\n")
            return
        if user is None:
            exchange.send(303, {"location": f"{LOGIN}?wrong"})
            return
        token = secrets.token_urlsafe(32)
        if len(self._sessions) >= _SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        self._sessions[_digest(token)] = user
        head = exchange.head
        safe = "; Secure" if head.secure or head.headers.get("x-forwarded-proto") == "https" else ""
        cookie = f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict{safe}"
        exchange.send(303, {"location": "/", "set-cookie": cookie})

    async def _recognise(self, given: str) -> PageUser | None:
        if self._password is not None:
            return _ANYBODY if hmac.compare_digest(_digest(given), _digest(self._password)) else None
        known = await self._keys.check(given) if given else None
        return None if known is None else PageUser(known[0], known[1], sees_all=False, key=given)

    def log_out(self, head: Head) -> None:
        self._sessions.pop(_digest(session_cookie(head)), None)

    @property
    def has_password(self) -> bool:
        return self._password is not None

    @property
    def login_label(self) -> str:
        """Label of the login field."""
        return "Password" if self._password is not None else "Key of this gateway"


def _address(url: str) -> SplitResult:
    """Parsed URL; empty for invalid ones such as `http://[`."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def session_cookie(head: Head) -> str:
    """The session of a request. Read by hand: the standard library's reader takes seconds for 64 KiB of backslashes."""
    for one in head.headers.get("cookie", "").split(";"):
        name, _, value = one.partition("=")
        if name.strip() == COOKIE:
            return value.strip()
    return ""


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
