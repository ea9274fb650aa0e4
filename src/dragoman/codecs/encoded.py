"""What an encoder gives back: the body, where it goes, and what did not cross."""

from __future__ import annotations

from typing import Any, cast

from msgspec import Struct

from dragoman.ir.values import parse_json
from dragoman.losses import Loss


class Encoded(Struct, frozen=True):
    """A body ready to send. `json()` is its exact bytes; `body` the same as Python values, for the vendors' SDKs."""

    content: bytes
    losses: tuple[Loss, ...] = ()
    path: str = ""
    headers: dict[str, str] = {}
    status: int = 200

    def json(self) -> bytes:
        return self.content

    @property
    def body(self) -> dict[str, Any]:
        return cast("dict[str, Any]", parse_json(self.content))
