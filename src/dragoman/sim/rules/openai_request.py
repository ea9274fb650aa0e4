"""Shared by both request formats of OpenAI: model traits, and running the rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from dragoman.sim.rules.common import (
    Dialect,
    JsonObject,
    Path,
    Shape,
    Violation,
    bad_answer,
    json_path,
    number_at,
    object_at,
    read,
    text_at,
)


@dataclass(frozen=True, slots=True)
class Traits:
    """Parameters that a family of models does not accept."""

    reasons: bool = False
    # From GPT-5.1 on reasoning is off unless asked for, and with it the limits on sampling.
    reasons_unless_asked_not_to: bool = False
    refuses_stop: bool = False
    refuses_system: bool = False
    refuses_tools: bool = False
    hears: bool = False
    searches: bool = False
    chats: bool = True


# The first pattern that matches wins; a name that matches none (a deployment, another vendor) meets no model rule.
MODELS: tuple[tuple[str, Traits], ...] = (
    (r"text-embedding-|gpt-3\.5-turbo-instruct", Traits(chats=False)),
    (r"gpt-.*search", Traits(searches=True)),
    (r"gpt-5-chat", Traits(refuses_tools=True)),
    (r"gpt-5\.\d+-chat", Traits()),
    (r"o1-mini", Traits(reasons=True, refuses_stop=True, refuses_system=True)),
    # o3-mini took a stop sequence (recording with `stop: ["Paris"]`), the other reasoning models do not.
    (r"o3-mini|o1", Traits(reasons=True)),
    (r"o[34]", Traits(reasons=True, refuses_stop=True)),
    (r"gpt-5\.\d", Traits(reasons=True, reasons_unless_asked_not_to=True, refuses_stop=True)),
    (r"gpt-5", Traits(reasons=True, refuses_stop=True)),
    (r"gpt-.*audio", Traits(hears=True)),
    (r"gpt-[34]|chatgpt-", Traits()),
)


@dataclass(frozen=True, slots=True)
class Request:
    body: JsonObject
    model: str
    # None: a deployment or another vendor's model, which no model rule checks.
    traits: Traits | None


Rule: TypeAlias = Callable[[Request], Iterator[Violation]]


def refuse(path: Path, message: str, code: str | None = None, status: int = 400) -> Violation:
    return Violation(json_path(path), message, code, status)


def traits_of(model: str) -> Traits | None:
    return next((traits for pattern, traits in MODELS if re.match(pattern, model)), None)


def check_all(
    shape: Shape, dialect: Dialect, rules: tuple[Rule, ...], body: JsonObject, model: str | None
) -> tuple[Violation, ...]:
    """`model` is the one of the URL, where there is one (Azure deployments)."""
    _, faults = read(shape, dialect, body)
    if faults:
        return faults
    name = model or text_at(body, "model")
    request = Request(body, name, traits_of(name))
    return tuple(violation for rule in rules for violation in rule(request))


def check_totals(body: JsonObject, taken: str, made: str) -> Iterator[Violation]:
    """Usage whose total is the sum of these two, and whose details are parts of them."""
    usage = object_at(body, "usage")
    if not usage:
        return
    if number_at(usage, "total_tokens") != number_at(usage, taken) + number_at(usage, made):
        yield bad_answer(("usage", "total_tokens"), f"expected {taken} + {made}")
    for whole, part in ((taken, "cached_tokens"), (made, "reasoning_tokens")):
        if number_at(usage, f"{whole}_details", part) > number_at(usage, whole):
            yield bad_answer(("usage", f"{whole}_details", part), f"expected a part of {whole}")
