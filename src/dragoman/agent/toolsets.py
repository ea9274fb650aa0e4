"""Sets of tools: combined, prefixed, filtered, renamed, made subject to approval, or run one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, structs

from dragoman.agent.tools import Tool, check_name, tool


class Toolset(Struct, frozen=True):
    """Tools that are treated alike. Every method returns a new set; `Agent(tools=…)` takes sets and lists of tools.

    >>> def add(a: int, b: int) -> int: return a + b
    >>> [one.name for one in toolset(add).prefix("math_")]
    ['math_add']
    """

    tools: tuple[Tool, ...] = ()

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self.tools)

    def __add__(self, other: Iterable[Tool]) -> Toolset:
        return toolset(*self.tools, *other)

    def prefix(self, text: str) -> Toolset:
        return Toolset(tuple(_with_name(one, text + one.name) for one in self.tools))

    def rename(self, names: Mapping[str, str]) -> Toolset:
        """Return the set with new names for some tools; raises `ValueError` for a name that no tool has."""
        unknown = sorted(set(names) - {one.name for one in self.tools})
        if unknown:
            raise ValueError(f"no tool is named {', '.join(unknown)}")
        return toolset(*(_with_name(one, names.get(one.name, one.name)) for one in self.tools))

    def filter(self, keep: Callable[[Tool], bool]) -> Toolset:
        return Toolset(tuple(one for one in self.tools if keep(one)))

    def approve(self, which: Callable[[Tool], bool] = lambda one: not one.read_only) -> Toolset:
        """Return the same tools; those chosen, by default all that change something, need a person's approval."""
        return Toolset(tuple(structs.replace(one, needs_approval=True) if which(one) else one for one in self.tools))

    def sequential(self) -> Toolset:
        """Return the same tools, each of which runs alone."""
        return Toolset(tuple(structs.replace(one, sequential=True) for one in self.tools))


def toolset(*tools: Tool | Callable[..., Any] | Iterable[Tool]) -> Toolset:
    """Return one set of tools, functions and other sets. Duplicate names raise `ValueError`: prefix or rename them."""
    found: dict[str, Tool] = {}
    for given in tools:
        many = [given] if isinstance(given, Tool) else [tool(given)] if callable(given) else list(given)
        for one in many:
            if one.name in found:
                raise ValueError(f"two tools are named {one.name!r}; use prefix() or rename()")
            found[one.name] = one
    return Toolset(tuple(found.values()))


def _with_name(one: Tool, name: str) -> Tool:
    if name == one.name:
        return one
    check_name(name)
    return structs.replace(one, definition=structs.replace(one.definition, name=name))
