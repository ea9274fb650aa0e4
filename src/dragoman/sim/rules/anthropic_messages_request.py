"""A Messages request as its rules see it: blocks with their places, and turns as the server merges them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TypeAlias

from dragoman.sim.rules.anthropic_messages_models import Limits
from dragoman.sim.rules.anthropic_messages_shapes import INVALID_REQUEST
from dragoman.sim.rules.common import JsonObject, Path, Violation, dotted_path, json_path, objects_at, text_at


@dataclass(frozen=True, slots=True)
class Placed:
    """A block and its place in the caller's own arrays: that is what the server's messages name."""

    path: Path
    block: JsonObject

    @property
    def kind(self) -> str:
        return text_at(self.block, "type")


@dataclass(frozen=True, slots=True)
class Turn:
    """Consecutive messages of one role: the server reads them as one."""

    role: str
    blocks: tuple[Placed, ...]
    first_message: int

    def of_kind(self, *kinds: str) -> Iterator[Placed]:
        return (placed for placed in self.blocks if placed.kind in kinds)


@dataclass(frozen=True)
class Request:
    body: JsonObject
    # Judged by the API version of 2026-10-21, not by the one before it.
    modern: bool
    limits: Limits | None

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        turns: list[Turn] = []
        messages = enumerate(objects_at(self.body, "messages"))
        for role, group in groupby(messages, key=lambda numbered: text_at(numbered[1], "role")):
            members = list(group)
            blocks = (placed for index, message in members for placed in blocks_of(message, ("messages", index)))
            turns.append(Turn(role, tuple(blocks), members[0][0]))
        return tuple(turns)

    @property
    def blocks(self) -> Iterator[tuple[str, Placed]]:
        for turn in self.turns:
            for placed in turn.blocks:
                yield turn.role, placed

    @property
    def tools(self) -> Iterator[Placed]:
        for index, tool in enumerate(objects_at(self.body, "tools")):
            yield Placed(("tools", index), tool)

    @property
    def forces_tool_use(self) -> bool:
        choice = self.body.get("tool_choice")
        return text_at(choice, "type") in ("any", "tool")

    @property
    def thinking(self) -> str:
        return text_at(self.body, "thinking", "type")

    @property
    def continues_thread(self) -> bool:
        """The server holds the history: what a result answers is not in the body."""
        return text_at(self.body, "thread", "type") == "continue"


Rule: TypeAlias = Callable[[Request], Iterator[Violation]]


def blocks_of(message: JsonObject, path: Path) -> Iterator[Placed]:
    """The blocks of a message; a string stands for one text block."""
    content = message.get("content")
    if isinstance(content, str):
        yield Placed((*path, "content"), {"type": "text", "text": content})
    for index, block in enumerate(objects_at(message, "content")):
        yield Placed((*path, "content", index), block)


def inner_blocks(placed: Placed) -> Iterator[Placed]:
    """The blocks inside a tool result."""
    for index, block in enumerate(objects_at(placed.block, "content")):
        yield Placed((*placed.path, "content", index), block)


def refuse(path: Path, message: str, *, named: Path | None = None) -> Violation:
    """`named` is the place the server names in its message; an empty one means it names none."""
    prefix = dotted_path(path if named is None else named)
    return Violation(json_path(path), f"{prefix}: {message}" if prefix else message, INVALID_REQUEST)
