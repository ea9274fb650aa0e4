"""What the catalogue is made of: a feature, and for requests, answers and streams an example that has it.

An example is a value of the intermediate format. What is looked for is a fact: what of the feature there is to say,
read from the value with one short function. A feature has arrived when the fact is the same on the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from dragoman.ir import AnyEvent, Completion, Failure, Finish, Logprobs, Message, Request, Usage

Kind: TypeAlias = Literal["request", "response", "stream"]
KINDS: tuple[Kind, ...] = ("request", "response", "stream")

Example: TypeAlias = Request | Completion | tuple[AnyEvent, ...]


class Heard(Struct, frozen=True):
    """A stream that was listened to: the answer as far as it came, and how it failed if it did."""

    completion: Completion
    failure: Failure | None = None

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.completion.messages

    @property
    def finish(self) -> Finish | None:
        return self.completion.finish

    @property
    def usage(self) -> Usage | None:
        return self.completion.usage

    @property
    def logprobs(self) -> tuple[Logprobs, ...]:
        return self.completion.logprobs


Fact: TypeAlias = Callable[[Any], object]
"""Reads from a Request, a Completion or a Heard."""


class Slots(Struct, frozen=True):
    """Where each format itself says the feature: a key, `key=value`, or a value that is a word of the format.

    "" stands for: there is a place, and no one key tells it. None: the format has no words of its own for it.
    """

    chat: str | None = None
    responses: str | None = None
    messages: str | None = None
    gemini: str | None = None
    vertex: str | None = None
    converse: str | None = None
    ollama: str | None = None
    cohere: str | None = None
    interactions: str | None = None

    def of(self, format: str) -> str | None:
        return getattr(self, _SLOT_OF[format], None) if format in _SLOT_OF else ""


_SLOT_OF: Mapping[str, str] = {
    "openai-chat": "chat",
    "openai-responses": "responses",
    "anthropic-messages": "messages",
    "gemini": "gemini",
    "vertex": "vertex",
    "bedrock-converse": "converse",
    "ollama-chat": "ollama",
    "cohere-chat": "cohere",
    "gemini-interactions": "interactions",
}

EVERYWHERE = Slots("", "", "", "", "", "", "", "", "")


def slots(**named: str) -> Slots:
    """Slots by format; Vertex is as Gemini unless it has its own."""
    return Slots(**{"vertex": named.get("gemini"), **named})


MODELS: Mapping[str, str] = {
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-4.1",
    "anthropic-messages": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
    "vertex": "gemini-2.5-flash",
    "bedrock-converse": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "ollama-chat": "qwen3",
    "cohere-chat": "command-a-03-2025",
    "gemini-interactions": "gemini-3-flash-preview",
}
"""An ordinary, current model of each vendor: what may be said depends on the model too."""

THINKING_MODELS: Mapping[str, str] = {
    **MODELS,
    "openai-chat": "gpt-5.1",
    "openai-responses": "gpt-5.1",
    "ollama-chat": "gpt-oss:20b",
    "cohere-chat": "command-a-reasoning-08-2025",
}
"""Models whose thinking can be steered."""

LISTENING_MODELS: Mapping[str, str] = {**MODELS, "openai-chat": "gpt-4o-audio-preview"}
"""Models that take sound."""


class Case(Struct, frozen=True):
    """One feature in one kind of exchange."""

    feature: str
    kind: Kind
    example: Example | Mapping[str, Example]
    """The same for every format, or one of its own for each family that has the feature."""
    fact: Fact
    slots: Slots = EVERYWHERE
    owed: bool = False
    """What comes back is asked of the client's next request, not of the answer: the client has to carry it."""
    cut: int = 0
    """How many events at the end of the stream are missing."""
    models: Mapping[str, str] = field(default_factory=lambda: MODELS)
    request: Request | None = None
    """What the client had asked, where the answer can only be understood with it."""
    private: bool = False
    """Only the family that minted it has words for it: a place elsewhere that it fits into is a hiding place."""
    bare: bool = False
    """About what every exchange has: its losses are those of all the others."""

    def model(self, format: str) -> str:
        return self.models.get(format, "a-model")

    def example_for(self, family: str) -> Example | None:
        return self.example.get(family) if isinstance(self.example, Mapping) else self.example


class Feature(Struct, frozen=True):
    """A name for machines, a title for people."""

    name: str
    group: str
    title: str
