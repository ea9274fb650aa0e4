"""Keeps keys out of logs, reprs, URLs and errors."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

HIDDEN = "[hidden]"
_SECRET_HEADERS = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "x-amz-security-token",
        "cookie",
        "set-cookie",
    }
)
# Shorter keys could be ordinary words; hiding them would garble the text.
_LEAST = 8


class Secret:
    """A key that does not print."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value.strip()

    def reveal(self) -> str:
        return self._value

    def hide_in(self, text: str) -> str:
        """The text without the key, which some servers quote in their errors."""
        return text.replace(self._value, HIDDEN) if len(self._value) >= _LEAST else text

    @property
    def searchable(self) -> bytes:
        """The key as it would stand in an answer; empty if it is too short to be hidden there."""
        return self._value.encode() if len(self._value) >= _LEAST else b""

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return f"Secret({HIDDEN!r})"

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a secret cannot be pickled")


def hide_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: HIDDEN if name.lower() in _SECRET_HEADERS else value for name, value in headers.items()}


def hide_url(url: str) -> str:
    """The URL without user name and password, as in proxy URLs."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=f"{HIDDEN}@{parts.netloc.rpartition('@')[2]}"))
