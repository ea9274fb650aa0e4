"""What was asked and what is answered, told apart from any wire format.

The simulated model knows only these values. Each API has its own reader into them and its own writer out of them, none
of which is shared with the codecs that the simulators judge.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

JsonObject: TypeAlias = Mapping[str, object]

Role: TypeAlias = Literal["system", "user", "assistant"]
# `calls`: the answer waits for results. `refusal`: the model declined.
Finish: TypeAlias = Literal["stop", "stop_sequence", "length", "calls", "refusal"]


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    description: str = ""
    parameters: JsonObject = field(default_factory=dict)
    # Takes a text instead of a JSON object: OpenAI's custom tools.
    free_text: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    id: str
    name: str
    arguments: object = None


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    text: str
    failed: bool = False
    media: int = 0
    # The call it answers, where the format says which.
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    role: Role
    text: str = ""
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    # Kinds of what came beside the text: "image", "document", "audio", ...
    media: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """May the model call, must it, and which tools (None: all of them)."""

    may: bool = True
    must: bool = False
    names: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    model: str
    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    choice: Choice = Choice()
    parallel: bool = True
    # Structured output: a schema, or only "some JSON object".
    schema: JsonObject | None = None
    any_json: bool = False
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    seed: int = 0
    thinks: bool = False
    # Says a sentence before it calls, as Claude does.
    narrates: bool = False


@dataclass(frozen=True, slots=True)
class Thought:
    text: str


@dataclass(frozen=True, slots=True)
class Said:
    text: str


@dataclass(frozen=True, slots=True)
class Called:
    name: str
    arguments: JsonObject
    # The arguments as the model wrote them. Cut off by the token limit, they no longer parse.
    text: str
    complete: bool = True
    free_text: bool = False


Part: TypeAlias = Thought | Said | Called


@dataclass(frozen=True, slots=True)
class Counts:
    """Tokens. A cache held `read` of `input` and now holds `written` of it; `thought` is a part of `output`."""

    input: int = 0
    output: int = 0
    thought: int = 0
    read: int = 0
    written: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    parts: tuple[Part, ...]
    finish: Finish
    counts: Counts
    stop_sequence: str | None = None
    # The wire's own word for the end, where a script wants another than the usual.
    word: str | None = None

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Said))

    @property
    def thoughts(self) -> tuple[Thought, ...]:
        return tuple(part for part in self.parts if isinstance(part, Thought))

    @property
    def calls(self) -> tuple[Called, ...]:
        return tuple(part for part in self.parts if isinstance(part, Called))


def call_of(name: str, arguments: JsonObject, *, free_text: bool = False) -> Called:
    text = str(arguments.get("input", "")) if free_text else compact(arguments)
    return Called(name, arguments, text, free_text=free_text)
