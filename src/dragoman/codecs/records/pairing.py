"""Ids for old data without them: calls get one by their position, results get that of the call they answer."""

from __future__ import annotations

from collections import defaultdict, deque

from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.ids import invent_id, is_invented
from dragoman.ir.notes import Extra
from dragoman.ir.values import encode_json

NO_ID = "~no_id"
"""Note: the record has no key for the id. A note `~id` holds the record's value if that is not an id."""

UNKNOWN_TOOL = "unknown"
ANY = ""


class Pairing:
    """Walks a history in order, and tracks the calls that still wait for their result."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._answered: set[str] = set()
        # (only calls without an id, name of the tool) -> their ids in order; answered ones are removed from the front
        self._waiting: defaultdict[tuple[bool, str], deque[str]] = defaultdict(deque)

    def call(self, given: str | None | UnsetType, name: str, seed: str, notes: Extra) -> tuple[str, bool]:
        """Return the id of a call, and whether it was invented."""
        if isinstance(given, str) and given:
            self._wait(given, name, nameless=False)
            return given, is_invented(given)
        note_id(given, notes)
        call_id = invent_id(seed.partition("[")[2], 0)  # the same in a list and in an object
        self._wait(call_id, name, nameless=True)
        return call_id, True

    def _wait(self, call_id: str, name: str, *, nameless: bool) -> None:
        self._names[call_id] = name
        self._answered.discard(call_id)
        for kind in (False, True) if nameless else (False,):
            self._waiting[kind, name].append(call_id)
            self._waiting[kind, ANY].append(call_id)

    def result(self, given: str | None | UnsetType, name: str | None, notes: Extra) -> tuple[str, str]:
        """Return id and name of the call that a result answers: by its id, or else the next waiting call."""
        call_id = given if isinstance(given, str) and given in self._names else self._next(given, name)
        if not given or (call_id is not None and call_id != given):
            note_id(given, notes)
        if call_id is None:
            return given or "", name or ""
        self._answered.add(call_id)
        return call_id, name or self._names[call_id]

    def _next(self, given: str | None | UnsetType, name: str | None) -> str | None:
        """Return the next waiting call. Old loops answered a call without id by the tool's name, or by "unknown"."""
        nameless = isinstance(given, str) and bool(given)
        if nameless and given not in {name, UNKNOWN_TOOL}:
            return None
        queue = self._waiting[nameless, name or ANY]
        while queue and queue[0] in self._answered:
            queue.popleft()
        return queue[0] if queue else None


def note_id(given: str | None | UnsetType, notes: Extra) -> None:
    if given is UNSET:
        notes[NO_ID] = Raw(b"true")
    else:
        notes["~id"] = Raw(encode_json(given))
