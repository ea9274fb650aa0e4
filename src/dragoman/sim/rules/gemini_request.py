"""A generateContent request as its rules see it: canonical keys, one backend, one model generation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TypeAlias

from dragoman.sim.rules.common import JsonObject, Path, Violation, json_path, object_at, objects_at, text_at
from dragoman.sim.rules.gemini_backends import Backend
from dragoman.sim.rules.gemini_shapes import INVALID_ARGUMENT, google_path

Generation: TypeAlias = tuple[int, int]

# Keys of a Tool that the service runs itself.
NOT_BUILT_IN = frozenset({"functionDeclarations", "computerUse"})


def generation_of(model: str) -> Generation | None:
    """(3, 6) for gemini-3.6-flash. Aliases such as gemini-flash-latest have none; rules that need one skip them."""
    match = re.search(r"gemini-(\d+)(?:\.(\d+))?(?:-|$)", model)
    return (int(match[1]), int(match[2] or 0)) if match else None


@dataclass(frozen=True, slots=True)
class Step:
    """Adjacent contents of one role. The service counts calls across them (4 recordings of model, model, user)."""

    role: str
    contents: tuple[tuple[Path, JsonObject], ...]

    @property
    def parts(self) -> Iterator[tuple[Path, JsonObject]]:
        for path, content in self.contents:
            for index, part in enumerate(objects_at(content, "parts")):
                yield (*path, "parts", index), part

    def holding(self, member: str) -> list[tuple[Path, JsonObject]]:
        return [(path, part) for path, part in self.parts if member in part]


@dataclass(frozen=True)
class Request:
    body: JsonObject
    backend: Backend
    version: str
    model: str
    generation: Generation | None

    @cached_property
    def contents(self) -> tuple[tuple[Path, JsonObject], ...]:
        return tuple((("contents", index), content) for index, content in enumerate(objects_at(self.body, "contents")))

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        groups = groupby(self.contents, key=lambda located: role_of(located[1]))
        return tuple(Step(role, tuple(contents)) for role, contents in groups)

    @property
    def parts(self) -> Iterator[tuple[Path, JsonObject]]:
        for step in self.steps:
            yield from step.parts

    @property
    def declarations(self) -> Iterator[tuple[Path, JsonObject]]:
        for tool_index, tool in enumerate(objects_at(self.body, "tools")):
            for index, declaration in enumerate(objects_at(tool, "functionDeclarations")):
                yield ("tools", tool_index, "functionDeclarations", index), declaration

    @property
    def built_in_tools(self) -> Sequence[str]:
        return sorted({key for tool in objects_at(self.body, "tools") for key in tool if key not in NOT_BUILT_IN})

    @property
    def settings(self) -> JsonObject:
        return object_at(self.body, "generationConfig")

    def at_least(self, major: int, minor: int = 0) -> bool:
        return self.generation is not None and self.generation >= (major, minor)

    def below(self, major: int, minor: int = 0) -> bool:
        return self.generation is not None and self.generation < (major, minor)


Rule: TypeAlias = Callable[[Request], Iterator[Violation]]


def role_of(content: JsonObject) -> str:
    """Google's own samples spell roles in upper case; a missing one means the user."""
    return text_at(content, "role").lower() or "user"


def refuse(path: Path, message: str) -> Violation:
    """`{where}` in the message is replaced by the path as the service spells it."""
    return Violation(json_path(path), message.replace("{where}", google_path(path)), INVALID_ARGUMENT)
