"""State that outlives a request."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from dragoman.sim.batches import BatchStore
from dragoman.sim.conversation_view import JsonObject

# Bounds the memory of a simulator that runs for weeks.
MOST = 10_000


@dataclass(slots=True)
class Memory:
    """Stored responses and conversations by id, and the names of the prefixes that a cache holds."""

    responses: OrderedDict[str, JsonObject] = field(default_factory=OrderedDict)
    cached: set[str] = field(default_factory=set)
    # Files and batch jobs.
    shelf: BatchStore = field(default_factory=BatchStore)

    def store(self, identifier: str, stored: JsonObject) -> None:
        self.responses[identifier] = stored
        self.responses.move_to_end(identifier)
        if len(self.responses) > MOST:
            self.responses.popitem(last=False)
        if len(self.cached) > MOST:
            self.cached.clear()
