"""Who may use the page. Loopback needs no login, but strangers' pages must not speak for the user.

- Whatever changes something has to carry a header that no form and no foreign script can send, and an `Origin` of ours.
- Where no login is asked for, the `Host` of a request has to be one that we serve: a name that was made to point here
  (DNS rebinding) is refused. With a login it would come without the cookie, and sees the form.
- Beyond loopback, and where a gateway has keys, a password or a key is asked for, and a cookie remembers it.
- The page may load nothing but itself, and no script that stands in its text.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Awaitable, Callable
from http.cookies import CookieError, SimpleCookie
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
# The next password after a wrong one is looked at no sooner than this; the delay doubles with each, up to the longest.
_FIRST_DELAY = 0.5
_LONGEST_DELAY = 4.0
_FORGIVEN = 60.0
"""Seconds without a wrong password after which the count starts again."""
_MOST_WAITING = 8
"""Attempts that may wait for their turn; more are refused unread."""
_SESSIONS = 1_000
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with less, a browser does not say whose form it is that logs in
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Person(Struct, frozen=True):
    """A user of the page."""

    name: str = ""
    """Of the key that was shown."""
    id: str = ""
    """Of that key: what belongs to it is found by this."""
    sees_all: bool = True
    """Whether requests of others are shown, too."""
    key: str = ""
    """The key itself: requests made through the page use it. It is never shown."""


KeyCheck: TypeAlias = Callable[[str], Awaitable[tuple[str, str] | None]]
"""Name and id of a key that is active."""


class Keys(Struct, frozen=True):
    """The keys of a gateway: whether there are any (some may be made while it runs), and whose one is."""

    required: Callable[[], bool]
    check: KeyCheck


async def _nobody(_key: str) -> None:
    """There are no keys."""


NO_KEYS = Keys(required=lambda: False, check=_nobody)
_ANYBODY = Person()


class TooManyAttempts(Exception):
    def __init__(self, retry_after: int) -> None:
        self.retry_after = retry_after
        super().__init__("too many login attempts")


class _Attempts:
    """Login attempts, one at a time. After a wrong one the next waits before its password is looked at.

    The wait is the same for a right and a wrong password, so guessing in parallel is no faster.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._wrong = 0
        self._last = 0.0

    async def check(self, recognise: Callable[[], Awaitable[Person | None]]) -> Person | None:
        """Raises `TooManyAttempts`."""
        if self._waiting >= _MOST_WAITING:
            raise TooManyAttempts(round(_LONGEST_DELAY))
        self._waiting += 1
        try:
            async with self._turn:
                await asyncio.sleep(self._delay())
                person = await recognise()
                self._wrong = 0 if person is not None else self._wrong + 1
                self._last = time.monotonic()
                return person
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
        self._sessions: dict[bytes, Person] = {}
        self._attempts = _Attempts()

    @property
    def asks(self) -> bool:
        """Whether one has to log in."""
        return self._password is not None or self._keys.required()

    def refusal(self, head: Head) -> str | None:
        """Why a request is not ours to answer."""
        host = head.headers.get("host", "")
        if self._is_local and not self.asks and not is_loopback(_address(f"//{host}").hostname or ""):
            return f"this page is served to this machine only, not to {host!r}"
        if head.method in _SAFE:
            return None
        origin = head.headers.get("origin")
        if origin is not None and _address(origin).netloc != host:
            return "a request from another site"
        if head.path != LOGIN and HEADER not in head.headers:
            return f"the header {HEADER} is missing"
        return None

    async def person(self, head: Head) -> Person | None:
        """The user of this request; None if there is no login."""
        if not self.asks:
            return _ANYBODY
        person = self._sessions.get(_sum(_cookie(head)))
        # Asked about again each time: a key may have been revoked.
        if person is None or (person.key and await self._keys.check(person.key) is None):
            return None
        return person

    async def log_in(self, exchange: Exchange) -> None:
        given = parse_qs(exchange.body.decode("utf-8", "replace")).get("password", [""])[0]
        try:
            person = await self._attempts.check(lambda: self._recognised(given))
        except TooManyAttempts as error:
            headers = {"content-type": "text/plain; charset=utf-8", "retry-after": str(error.retry_after)}
            exchange.send(429, headers, b"Too many login attempts. Try again in a few seconds.\n")
            return
        if person is None:
            exchange.send(303, {"location": f"{LOGIN}?wrong"})
            return
        token = secrets.token_urlsafe(32)
        if len(self._sessions) >= _SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        self._sessions[_sum(token)] = person
        head = exchange.head
        safe = "; Secure" if head.secure or head.headers.get("x-forwarded-proto") == "https" else ""
        cookie = f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict{safe}"
        exchange.send(303, {"location": "/", "set-cookie": cookie})

    async def _recognised(self, given: str) -> Person | None:
        if self._password is not None:
            return _ANYBODY if hmac.compare_digest(_sum(given), _sum(self._password)) else None
        known = await self._keys.check(given) if given else None
        return None if known is None else Person(known[0], known[1], sees_all=False, key=given)

    def log_out(self, head: Head) -> None:
        self._sessions.pop(_sum(_cookie(head)), None)

    @property
    def has_password(self) -> bool:
        return self._password is not None

    @property
    def wanted(self) -> str:
        """What one logs in with."""
        return "Password" if self._password is not None else "Key of this gateway"


def _address(url: str) -> SplitResult:
    """Empty for what is not an address, such as `http://[`."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def _cookie(head: Head) -> str:
    try:
        found = SimpleCookie(head.headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _sum(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
