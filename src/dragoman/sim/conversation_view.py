"""Prompts and answers, independent of any wire format.

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
    # Takes text instead of a JSON object: OpenAI's custom tools.
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
    # Id of the call it answers, if the format has it.
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    role: Role
    text: str = ""
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    # Kinds of media beside the text: "image", "document", "audio", ...
    media: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """Whether the model may or must call, and which tools (None: all)."""

    may: bool = True
    must: bool = False
    names: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    model: str
    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    choice: Choice = Choice()
    parallel: bool = True
    # Structured output: a schema, or any JSON object.
    schema: JsonObject | None = None
    any_json: bool = False
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    seed: int = 0
    thinks: bool = False
    # Writes a sentence before calls, as Claude does.
    narrates: bool = False


@dataclass(frozen=True, slots=True)
class ThoughtPart:
    text: str


@dataclass(frozen=True, slots=True)
class TextPart:
    text: str


@dataclass(frozen=True, slots=True)
class CallPart:
    name: str
    arguments: JsonObject
    # Arguments as text; if cut off by the token limit, they do not parse.
    text: str
    complete: bool = True
    free_text: bool = False


Part: TypeAlias = ThoughtPart | TextPart | CallPart


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
    # Wire value of the finish reason, if a script sets one.
    word: str | None = None

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def thoughts(self) -> tuple[ThoughtPart, ...]:
        return tuple(part for part in self.parts if isinstance(part, ThoughtPart))

    @property
    def calls(self) -> tuple[CallPart, ...]:
        return tuple(part for part in self.parts if isinstance(part, CallPart))


def call_of(name: str, arguments: JsonObject, *, free_text: bool = False) -> CallPart:
    text = str(arguments.get("input", "")) if free_text else compact(arguments)
    return CallPart(name, arguments, text, free_text=free_text)
