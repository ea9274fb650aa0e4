"""The result of an encoder: the body, its destination, and the losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast

from msgspec import Struct

from dragoman.ir.values import Held, parse_plain_json
from dragoman.loss import Loss
from dragoman.losses import LossLog, read_losses

if TYPE_CHECKING:

    class Losses:
        def __get__(self, instance: object, owner: type | None = None, /) -> tuple[Loss, ...]: ...
        def __set__(self, instance: object, value: tuple[Loss, ...], /) -> None: ...

else:
    Losses: TypeAlias = Any


class Encoded(Struct, frozen=True, gc=False):
    """A body ready to send. `json()` is its exact bytes; `body` the same as Python values, for the vendors' SDKs.

    Losses are recorded while encoding; their JSON paths are resolved when they are read.
    """

    content: bytes
    losses: Losses = ()  # type: ignore[assignment]
    path: str = ""
    headers: dict[str, str] = {}
    status: int = 200

    losses_held: ClassVar[Held[tuple[Loss, ...] | LossLog]]
    """The losses as they are held: resolved, or as the log that resolves them."""

    def json(self) -> bytes:
        return self.content

    @property
    def body(self) -> dict[str, Any]:
        """The body as Python values; raises `EncodeError` for a number that no Python int or float holds (1e9999)."""
        return cast("dict[str, Any]", parse_plain_json(self.content))


hold_log: Callable[[Encoded, LossLog], None] = Encoded.__dict__["losses"].__set__
"""Attach the log of a new body, after `LossLog.keep_for`; its losses are resolved when they are read."""


def _values(encoded: Encoded) -> tuple[Any, ...]:
    return encoded.content, encoded.losses, encoded.path, encoded.headers, encoded.status


def _same(encoded: Encoded, other: object) -> bool:
    return _values(encoded) == _values(other) if isinstance(other, Encoded) else NotImplemented


def _show(encoded: Encoded) -> str:
    shown = zip(Encoded.__struct_fields__, _values(encoded), strict=True)
    return f"Encoded({', '.join(f'{name}={value!r}' for name, value in shown)})"


_encoded: Any = Encoded
_encoded.losses_held = Encoded.__dict__["losses"]
_encoded.losses = property(read_losses)
# However the losses are stored, bodies are compared, printed and pickled by their resolved values.
_encoded.__eq__ = _same
_encoded.__hash__ = None
_encoded.__repr__ = _show
_encoded.__reduce__ = lambda encoded: (Encoded, _values(encoded))
