"""What did not cross (law 2): one value per thing the target could not say, with its JSON path in the source."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

from msgspec import Struct

from dragoman.ir import Message, Request, ToolResult
from dragoman.ir.messages import content_held
from dragoman.ir.values import Value

Severity = Literal["dropped", "degraded", "invented", "noted"]
SEVERITIES: tuple[Severity, ...] = ("dropped", "degraded", "invented", "noted")
"""Worst first."""


class Loss(Struct, frozen=True, order=True):
    """One thing that did not cross unchanged.

    `dropped`: the target never sees it. `degraded`: it arrives in a poorer form. `invented`: the target
    demands something the source did not say, so we said it. `noted`: a provider's bookkeeping about its answer (ids,
    times, tiers, counts that the target does not keep apart) is not the same there; what the answer says is.
    """

    path: str
    what: str
    severity: Severity
    why: str

    @property
    def refusable(self) -> bool:
        """Whether `strict` refuses it: it is more than bookkeeping."""
        return self.severity != "noted"

    def __str__(self) -> str:
        return f"{self.severity:9} {self.path}: {self.what} ({self.why})"


def render_losses(losses: Iterable[Loss]) -> str:
    """A table for people: one line per loss, worst first, columns aligned."""
    rows = sorted(losses, key=lambda loss: (SEVERITIES.index(loss.severity), loss.path))
    if not rows:
        return "nothing was lost"
    path_width = min(max(len(row.path) for row in rows), 60)
    what_width = min(max(len(row.what) for row in rows), 40)
    return "\n".join(f"{row.severity:9} {row.path:{path_width}}  {row.what:{what_width}}  {row.why}" for row in rows)


Locator: TypeAlias = Callable[[Request, int | None, int | None, str], str]
"""(request, message index, part index, field) -> JSON path in the wire body the request was decoded from."""


class LossLog:
    """Collects losses while passes and encoders work, by the node they concern; paths are worked out at the end.

    A pass that replaces a node says so (`replaced`), so that the path still leads to where it came from.
    """

    __slots__ = ("_origins", "entries")

    def __init__(self) -> None:
        self.entries: list[tuple[Value, str, str, Severity, str]] = []
        self._origins: dict[int, tuple[Value, Value]] | None = None

    def __bool__(self) -> bool:
        return bool(self.entries)

    def drop(self, node: Value, field: str, what: str, why: str) -> None:
        self.entries.append((node, field, what, "dropped", why))

    def degrade(self, node: Value, field: str, what: str, why: str) -> None:
        self.entries.append((node, field, what, "degraded", why))

    def invent(self, node: Value, field: str, what: str, why: str) -> None:
        self.entries.append((node, field, what, "invented", why))

    def note(self, node: Value, field: str, what: str, why: str) -> None:
        self.entries.append((node, field, what, "noted", why))

    def replaced(self, new: Value, old: Value) -> None:
        if self._origins is None:
            self._origins = {}
        self._origins[id(new)] = (old, new)

    def resolve(self, root: Value, locate: Locator) -> tuple[Loss, ...]:
        if not self.entries:
            return ()
        places, within = _places(root)
        origins = self._origins or {}
        losses = []
        for node, field, what, severity, why in self.entries:
            origin = node
            while id(origin) in origins and id(origin) not in places:
                origin = origins[id(origin)][0]
            message_index, part_index = places.get(id(origin), (None, None))
            if id(origin) in within:
                # A piece of a result has no place of its own in the intermediate format's coordinates.
                message_index, part_index = within[id(origin)]
                field = ""  # noqa: PLW2901
            path = locate(root, message_index, part_index, field)  # type: ignore[arg-type]
            losses.append(Loss(path, what, severity, why))
        return tuple(losses)


Places: TypeAlias = dict[int, tuple[int | None, int | None]]


def _places(root: Value) -> tuple[Places, Places]:
    """Where each node stands, and for each piece of a result, where that result stands."""
    places: Places = {}
    within: Places = {}
    messages: tuple[Message, ...] = getattr(root, "messages", ())
    for message_index, message in enumerate(messages):
        places[id(message)] = (message_index, None)
        content = content_held(message)
        if type(content) is tuple:
            for part_index, part in enumerate(content):
                places[id(part)] = (message_index, part_index)
                if type(part) is ToolResult:
                    within.update((id(inner), (message_index, part_index)) for inner in part.parts)
    for index, tool in enumerate(getattr(root, "tools", ())):
        places[id(tool)] = (None, index)
    return places, within


def intermediate_path(_root: Value, message_index: int | None, part_index: int | None, field: str) -> str:
    """The path of a node in the intermediate format itself, for values that came from no wire."""
    path = "$"
    if message_index is not None:
        path += f".messages[{message_index}]"
        if part_index is not None:
            path += f".parts[{part_index}]"
    elif part_index is not None:
        path += f".tools[{part_index}]"
    return f"{path}.{field}" if field else path
