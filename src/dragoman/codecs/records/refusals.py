"""Codec functions for what a history does not have, API errors and streams: they raise an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from dragoman.errors import UnsupportedFormat

Refusal = Callable[..., NoReturn]


def no_errors(name: str, kind: str = "errors") -> tuple[Refusal, Refusal]:
    """Return `decode_error` and `encode_error` of a record format, or the two functions of another missing `kind`."""
    return _refusal(name, kind), _refusal(name, kind)


def no_streams(name: str) -> tuple[Refusal, Refusal]:
    """Return `PayloadDecoder` and `EventEncoder` of a record format."""
    return _refusal(name, "streams"), _refusal(name, "streams")


def _refusal(name: str, kind: str) -> Refusal:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise UnsupportedFormat(name, kind)

    return refuse
