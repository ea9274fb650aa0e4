"""A Converse request whose shape holds: its blocks and turns, and what is known of the model behind the URL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TypeAlias

from dragoman.sim.rules.anthropic_messages_models import Limits
from dragoman.sim.rules.bedrock_converse_shapes import VALIDATION
from dragoman.sim.rules.common import (
    JsonObject,
    Path,
    Violation,
    dotted_path,
    json_path,
    object_at,
    objects_at,
    text_at,
)


@dataclass(frozen=True, slots=True)
class Family:
    """How the models of one vendor differ behind the one API. None: not known."""

    starts_with_user: bool = True
    # A turn with tool results must have no other blocks.
    results_stand_alone: bool = False
    # `toolChoice.tool`
    takes_named_choice: bool = False
    caches: bool = False
    takes_video: bool | None = None
    takes_s3: bool | None = None
    takes_result_status: bool = True


CLAUDE = Family(starts_with_user=False, takes_named_choice=True, caches=True, takes_video=False, takes_s3=False)
FAMILIES: dict[str, Family] = {
    "anthropic": CLAUDE,
    "amazon.nova": Family(takes_named_choice=True, caches=True, takes_video=True, takes_s3=True),
    "qwen": Family(starts_with_user=False),
    "meta": Family(results_stand_alone=True),
    "mistral": Family(results_stand_alone=True),
    "writer": Family(takes_result_status=False),
    **dict.fromkeys(("amazon.titan", "ai21", "cohere", "deepseek", "google", "minimax", "moonshot"), Family()),
    **dict.fromkeys(("nvidia", "openai"), Family()),
}
_FAMILY = re.compile(rf"(?:^|[./])({'|'.join(map(re.escape, FAMILIES))})[.-]")
PROMPT_ARN = re.compile(r"arn:aws(-[^:]+)?:bedrock:[a-z0-9-]{1,20}:[0-9]{12}:prompt/")


def family_of(model: str) -> Family | None:
    found = _FAMILY.search(model)
    return FAMILIES[found[1]] if found else None


@dataclass(frozen=True, slots=True)
class Block:
    """A content block with its place; `kind` is its only key."""

    path: Path
    kind: str
    value: object


@dataclass(frozen=True, slots=True)
class Turn:
    """Consecutive messages of one role: the service reads them as one."""

    role: str
    first_message: int
    blocks: tuple[Block, ...]

    def of_kind(self, *kinds: str) -> tuple[Block, ...]:
        return tuple(block for block in self.blocks if block.kind in kinds)


@dataclass(frozen=True)
class Request:
    body: JsonObject
    model: str
    family: Family | None
    limits: Limits | None

    @property
    def is_claude(self) -> bool:
        return self.family is CLAUDE

    @property
    def uses_prompt(self) -> bool:
        return PROMPT_ARN.match(self.model) is not None

    @property
    def thinking(self) -> str:
        """`reasoning_config` is taken for `thinking` as well (2 recordings)."""
        extra = object_at(self.body, "additionalModelRequestFields")
        return text_at(extra, "thinking", "type") or text_at(extra, "reasoning_config", "type")

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        turns: list[Turn] = []
        messages = enumerate(objects_at(self.body, "messages"))
        for role, group in groupby(messages, key=lambda numbered: text_at(numbered[1], "role")):
            members = list(group)
            blocks = (block for index, message in members for block in blocks_of(("messages", index), message))
            turns.append(Turn(role, members[0][0], tuple(blocks)))
        return tuple(turns)

    def blocks(self, *kinds: str) -> Iterator[Block]:
        for turn in self.turns:
            yield from turn.of_kind(*kinds)

    def media(self, *kinds: str) -> Iterator[Block]:
        """Blocks of these kinds in messages and in tool results."""
        yield from self.blocks(*kinds)
        for result in self.blocks("toolResult"):
            yield from (inner for inner in blocks_of(result.path, result.value) if inner.kind in kinds)


Rule: TypeAlias = Callable[[Request], Iterator[Violation]]


def blocks_of(path: Path, holder: object) -> Iterator[Block]:
    for index, block in enumerate(objects_at(holder, "content")):
        for kind, value in block.items():
            if value is not None:
                inner: Path = (*path, "toolResult") if path and "content" in path else path
                yield Block((*inner, "content", index), kind, value)


def refuse(path: Path, message: str, code: str = VALIDATION, status: int = 400) -> Violation:
    return Violation(json_path(path), message, code, status)


def model_refuses(path: Path, message: str) -> Violation:
    """What the vendor's own API says, passed on."""
    return refuse(path, f"The model returned the following errors: {message}")


def place(path: Path) -> str:
    return dotted_path(path)
