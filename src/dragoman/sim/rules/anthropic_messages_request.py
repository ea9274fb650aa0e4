"""A Messages request for the rules: blocks with their paths, and turns as the server merges them."""

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
class LocatedBlock:
    """A block and its path in the request, which the server's messages name."""

    path: Path
    block: JsonObject

    @property
    def kind(self) -> str:
        return text_at(self.block, "type")


@dataclass(frozen=True, slots=True)
class Turn:
    """Consecutive messages of one role: the server reads them as one."""

    role: str
    blocks: tuple[LocatedBlock, ...]
    first_message: int

    def of_kind(self, *kinds: str) -> Iterator[LocatedBlock]:
        return (located for located in self.blocks if located.kind in kinds)


@dataclass(frozen=True)
class Request:
    body: JsonObject
    # Checked by the API version of 2026-10-21, not by the one before it.
    modern: bool
    limits: Limits | None

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        turns: list[Turn] = []
        messages = enumerate(objects_at(self.body, "messages"))
        for role, group in groupby(messages, key=lambda numbered: text_at(numbered[1], "role")):
            members = list(group)
            blocks = (located for index, message in members for located in blocks_of(message, ("messages", index)))
            turns.append(Turn(role, tuple(blocks), members[0][0]))
        return tuple(turns)

    @property
    def blocks(self) -> Iterator[tuple[str, LocatedBlock]]:
        for turn in self.turns:
            for located in turn.blocks:
                yield turn.role, located

    @property
    def tools(self) -> Iterator[LocatedBlock]:
        for index, tool in enumerate(objects_at(self.body, "tools")):
            yield LocatedBlock(("tools", index), tool)

    @property
    def forces_tool_use(self) -> bool:
        choice = self.body.get("tool_choice")
        return text_at(choice, "type") in ("any", "tool")

    @property
    def thinking(self) -> str:
        return text_at(self.body, "thinking", "type")

    @property
    def continues_thread(self) -> bool:
        """Whether the server has the history, so that calls may be missing in the body."""
        return text_at(self.body, "thread", "type") == "continue"


Rule: TypeAlias = Callable[[Request], Iterator[Violation]]


def blocks_of(message: JsonObject, path: Path) -> Iterator[LocatedBlock]:
    """The blocks of a message; a string stands for one text block."""
    content = message.get("content")
    if isinstance(content, str):
        yield LocatedBlock((*path, "content"), {"type": "text", "text": content})
    for index, block in enumerate(objects_at(message, "content")):
        yield LocatedBlock((*path, "content", index), block)


def inner_blocks(located: LocatedBlock) -> Iterator[LocatedBlock]:
    """The blocks inside a tool result."""
    for index, block in enumerate(objects_at(located.block, "content")):
        yield LocatedBlock((*located.path, "content", index), block)


def refuse(path: Path, message: str, *, named: Path | None = None) -> Violation:
    """`named` is the place the server names in its message; an empty one means it names none."""
    prefix = dotted_path(path if named is None else named)
    return Violation(json_path(path), f"{prefix}: {message}" if prefix else message, INVALID_REQUEST)
