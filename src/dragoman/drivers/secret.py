"""Keys, kept out of everything that people read: logs, reprs, URLs, errors."""

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
# Shorter ones are words of the language, and hiding those would hide the text around them.
_LEAST = 8


class Secret:
    """A key that does not print."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value.strip()

    def reveal(self) -> str:
        return self._value

    def hide_in(self, text: str) -> str:
        """The text without the key: some servers quote it back in their errors."""
        return text.replace(self._value, HIDDEN) if len(self._value) >= _LEAST else text

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return f"Secret({HIDDEN!r})"

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a key is not written down")


def hidden_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: HIDDEN if name.lower() in _SECRET_HEADERS else value for name, value in headers.items()}


def hidden_url(url: str) -> str:
    """Without the name and password that a proxy's address may carry."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=f"{HIDDEN}@{parts.netloc.rpartition('@')[2]}"))
