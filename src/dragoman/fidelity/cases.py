"""Building blocks of the catalogue: features, and examples of them in requests, answers and streams.

An example is a value of the intermediate format. A fact is what a short function reads from the value about the
feature. A feature has arrived if the fact is the same after the conversion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from dragoman.ir import AnyEvent, Completion, Failure, Finish, Logprobs, Message, Request, Usage

Kind: TypeAlias = Literal["request", "response", "stream"]
KINDS: tuple[Kind, ...] = ("request", "response", "stream")

Example: TypeAlias = Request | Completion | tuple[AnyEvent, ...]


class DecodedStream(Struct, frozen=True):
    """A decoded stream: the answer so far, and its failure, if any."""

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
"""Reads from a Request, a Completion or a DecodedStream."""


class Slots(Struct, frozen=True):
    """The place of a feature in each format: a key, `key=value`, or a value of the format.

    "" means that there is a place without one certain key; None, that the format does not have the feature.
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
    """Slots by format; Vertex has those of Gemini unless given."""
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
"""A current model of each vendor, because features depend on the model too."""

THINKING_MODELS: Mapping[str, str] = {
    **MODELS,
    "openai-chat": "gpt-5.1",
    "openai-responses": "gpt-5.1",
    "ollama-chat": "gpt-oss:20b",
    "cohere-chat": "command-a-reasoning-08-2025",
}
"""Models with adjustable thinking."""

LISTENING_MODELS: Mapping[str, str] = {**MODELS, "openai-chat": "gpt-4o-audio-preview"}
"""Models that accept audio."""


class Case(Struct, frozen=True):
    """One feature in one kind of exchange."""

    feature: str
    kind: Kind
    example: Example | Mapping[str, Example]
    """One example for all formats, or one for each family that has the feature."""
    fact: Fact
    slots: Slots = EVERYWHERE
    in_next_request: bool = False
    """The fact is read from the client's next request, not from the answer: the client must return it."""
    cut: int = 0
    """Number of events missing at the end of the stream."""
    models: Mapping[str, str] = field(default_factory=lambda: MODELS)
    request: Request | None = None
    """The client's request, if the answer depends on it."""
    private: bool = False
    """Only the family that made it has a field for it; a field of another format that holds it counts as carried."""
    bare: bool = False
    """Every exchange has this feature, so the losses of a plain exchange count too."""

    def model(self, format: str) -> str:
        return self.models.get(format, "a-model")

    def example_for(self, family: str) -> Example | None:
        return self.example.get(family) if isinstance(self.example, Mapping) else self.example


class Feature(Struct, frozen=True):
    """A feature: its name and its title."""

    name: str
    group: str
    title: str
