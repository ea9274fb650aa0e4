"""What `generateContent` refuses, on the developer API and on Vertex AI, and what a strict client expects to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from dragoman.sim.rules import gemini_settings, gemini_turns
from dragoman.sim.rules.common import (
    ROOT,
    JsonObject,
    Struct,
    Violation,
    bad_answer,
    number_at,
    object_at,
    objects_at,
    read,
    text_at,
)
from dragoman.sim.rules.gemini_backends import BACKENDS, BackendName
from dragoman.sim.rules.gemini_request import Request, Rule, generation_of
from dragoman.sim.rules.gemini_shapes import ANSWER_DIALECT, DIALECT, PART_DATA, RESPONSE, Messages

RULES: tuple[Rule, ...] = gemini_turns.RULES + gemini_settings.RULES

SHAPES: Mapping[BackendName, Struct] = {name: Messages(backend).request() for name, backend in BACKENDS.items()}


def check_request(
    body: JsonObject, *, model: str | None = None, version: str | None = None, backend: BackendName = "gemini"
) -> tuple[Violation, ...]:
    """`model` is the one of the URL, `version` the API version of the URL (`v1beta`, `v1`, `v1beta1`)."""
    read_body, faults = read(SHAPES[backend], DIALECT, body)
    if faults or not isinstance(read_body, Mapping):
        return faults
    name = model or text_at(body, "model")
    request = Request(read_body, BACKENDS[backend], version or "", name, generation_of(name))
    return tuple(violation for rule in RULES for violation in rule(request))


# --- responses ----------------------------------------------------------------------------------------------------


def answer_or_block(body: JsonObject) -> Iterator[Violation]:
    if not objects_at(body, "candidates") and not object_at(body, "promptFeedback").get("blockReason"):
        yield bad_answer(("candidates",), "expected candidates, or a promptFeedback.blockReason")


def candidates_finish(body: JsonObject) -> Iterator[Violation]:
    for index, candidate in enumerate(objects_at(body, "candidates")):
        if "finishReason" not in candidate:
            yield bad_answer(("candidates", index, "finishReason"), "missing required key")


def parts_have_one_kind(body: JsonObject) -> Iterator[Violation]:
    for index, candidate in enumerate(objects_at(body, "candidates")):
        for position, part in enumerate(objects_at(candidate, "content", "parts")):
            found = [name for name in PART_DATA if part.get(name) is not None]
            if len(found) != 1:
                where = ("candidates", index, "content", "parts", position)
                yield bad_answer(where, f"expected one of {', '.join(PART_DATA)}, got {', '.join(found) or 'none'}")


def calls_are_named(body: JsonObject) -> Iterator[Violation]:
    for index, candidate in enumerate(objects_at(body, "candidates")):
        for position, part in enumerate(objects_at(candidate, "content", "parts")):
            if "functionCall" in part and not text_at(part, "functionCall", "name"):
                where = ("candidates", index, "content", "parts", position, "functionCall", "name")
                yield bad_answer(where, "missing required key")


def usage_adds_up(body: JsonObject) -> Iterator[Violation]:
    usage = object_at(body, "usageMetadata")
    parts = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount")
    if "totalTokenCount" in usage and number_at(usage, "totalTokenCount") != sum(
        number_at(usage, part) for part in parts
    ):
        yield bad_answer(("usageMetadata", "totalTokenCount"), f"expected the sum of {', '.join(parts)}")
    if number_at(usage, "cachedContentTokenCount") > number_at(usage, "promptTokenCount"):
        yield bad_answer(("usageMetadata", "cachedContentTokenCount"), "expected a part of promptTokenCount")


ANSWER_RULES: tuple[Callable[[JsonObject], Iterator[Violation]], ...] = (
    answer_or_block,
    candidates_finish,
    parts_have_one_kind,
    calls_are_named,
    usage_adds_up,
)


def check_response(body: JsonObject) -> tuple[Violation, ...]:
    if "error" in body:
        return (bad_answer(ROOT, "expected a generateContent response, got an error body"),)
    _, faults = read(RESPONSE, ANSWER_DIALECT, body)
    return faults or tuple(violation for rule in ANSWER_RULES for violation in rule(body))
