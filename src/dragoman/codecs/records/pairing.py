"""Ids of old data. Records may lack them: calls get one by their position, results the one of the call they answer."""

from __future__ import annotations

from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.ids import invent_id, is_invented
from dragoman.ir.notes import Extra
from dragoman.ir.values import encode_json

NO_ID = "~no_id"
"""Note: the record has no key for the id. A note `~id` holds what it says instead of an id."""

UNKNOWN_TOOL = "unknown"


class Pairing:
    """Walks a history in order, and remembers the calls that still wait for their result."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._waiting: list[str] = []
        self._nameless: set[str] = set()

    def call(self, given: str | None | UnsetType, name: str, seed: str, notes: Extra) -> tuple[str, bool]:
        """The id of a call, and whether we made it."""
        call_id, invented = given, False
        if given is UNSET or not given:
            note_id(given, notes)
            call_id, invented = invent_id(seed.partition("[")[2], 0), True  # the same in a list and in an object
            self._nameless.add(call_id)
        assert isinstance(call_id, str)  # noqa: S101  narrowing for type checkers
        self._names[call_id] = name
        self._waiting.append(call_id)
        return call_id, invented or is_invented(call_id)

    def result(self, given: str | None | UnsetType, name: str | None, notes: Extra) -> tuple[str, str]:
        """Id and name of the call that a result answers: by id where it has one, else the next one that waits."""
        call_id = given if isinstance(given, str) and given in self._names else self._next(given, name)
        if call_id is None:
            if given is UNSET or not given:
                note_id(given, notes)
            return given or "", name or ""
        if call_id != given:
            note_id(given, notes)
        if call_id in self._waiting:
            self._waiting.remove(call_id)
        return call_id, name or self._names[call_id]

    def _next(self, given: str | None | UnsetType, name: str | None) -> str | None:
        """Old loops answered a call without id by the tool's name, or by "unknown"."""
        waiting = self._waiting
        if isinstance(given, str) and given:
            if given not in {name, UNKNOWN_TOOL}:
                return None
            waiting = [call_id for call_id in waiting if call_id in self._nameless]
        same = [call_id for call_id in waiting if name is None or self._names[call_id] == name]
        candidates = same or (waiting if not name else [])
        return candidates[0] if candidates else None


def note_id(given: str | None | UnsetType, notes: Extra) -> None:
    if given is UNSET:
        notes[NO_ID] = Raw(b"true")
    else:
        notes["~id"] = Raw(encode_json(given))
