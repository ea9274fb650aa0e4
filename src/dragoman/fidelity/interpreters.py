"""Libraries under test. dragoman is one; benchmarks/fidelity_peers.py adds others, with the same judge."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

import dragoman
from dragoman.errors import DragomanError
from dragoman.fidelity.cases import Kind
from dragoman.ir import Request
from dragoman.loss import Loss


class Refused(Exception):
    """The translation was refused, with a reason."""


class Translation(Struct, frozen=True):
    """The output, and the losses reported on the way."""

    content: bytes
    losses: tuple[Loss, ...] = ()


class Crossing(Struct, frozen=True):
    """Source and target. `request` is the request of the target's client, for answers that depend on it."""

    kind: Kind
    source: str
    target: str
    model: str
    request: Request | None = None


class Interpreter(Protocol):
    """A library that can be judged."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def __hash__(self) -> int: ...

    def offers(self, kind: Kind, source: str, target: str) -> bool: ...

    def translate(self, content: bytes, crossing: Crossing) -> Translation:
        """Translates a body or stream. Raises `Refused` if the library refuses it."""
        ...


class Dragoman:
    """dragoman, through its public API."""

    name = "dragoman"
    version = dragoman.__version__

    def offers(self, kind: Kind, source: str, target: str) -> bool:  # noqa: ARG002
        return True

    def translate(self, content: bytes, crossing: Crossing) -> Translation:
        try:
            return _TRANSLATE[crossing.kind](content, crossing)
        except DragomanError as error:
            raise Refused(str(error)) from error


def _request(content: bytes, crossing: Crossing) -> Translation:
    encoded = dragoman.translate_request(content, source=crossing.source, target=crossing.target, model=crossing.model)
    return Translation(encoded.json(), encoded.losses)


def _response(content: bytes, crossing: Crossing) -> Translation:
    encoded = dragoman.translate_response(
        content, source=crossing.source, target=crossing.target, request=crossing.request
    )
    return Translation(encoded.json(), encoded.losses)


def _stream(content: bytes, crossing: Crossing) -> Translation:
    translator = dragoman.StreamTranslator(source=crossing.source, target=crossing.target, request=crossing.request)
    return Translation(translator.feed(content) + translator.close(), translator.losses)


_TRANSLATE = {"request": _request, "response": _response, "stream": _stream}
