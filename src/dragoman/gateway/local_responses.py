"""The unstored responses that one WebSocket connection remembers."""

from __future__ import annotations

from collections import OrderedDict

from dragoman.gateway.state.base import Kept

_MOST_LOCAL = 16
"""Maximum number of responses that one connection remembers."""


class LocalResponses:
    """Responses of one WebSocket connection that are not stored: only this connection can continue them."""

    def __init__(self) -> None:
        self._chains: OrderedDict[str, list[Kept]] = OrderedDict()

    def chain(self, id: str) -> list[Kept]:
        """Return a response and all before it, the latest first."""
        return self._chains.get(id, [])

    def remember(self, chain: list[Kept]) -> None:
        self._chains[chain[0].id] = chain
        if len(self._chains) > _MOST_LOCAL:
            self._chains.popitem(last=False)

    def forget(self, id: str) -> None:
        self._chains.pop(id, None)
