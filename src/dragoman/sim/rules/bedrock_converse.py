"""What Bedrock's `Converse` and `ConverseStream` refuse, and what a strict client of them expects to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from dragoman.sim.rules import bedrock_converse_settings, bedrock_converse_turns
from dragoman.sim.rules.anthropic_messages_models import limits_of
from dragoman.sim.rules.bedrock_converse_request import Request, Rule, family_of
from dragoman.sim.rules.bedrock_converse_shapes import DIALECT, REQUEST, RESPONSE
from dragoman.sim.rules.common import (
    ANSWER,
    ROOT,
    JsonObject,
    Violation,
    bad_answer,
    number_at,
    object_at,
    objects_at,
    read,
    text_at,
)

RULES: tuple[Rule, ...] = bedrock_converse_settings.RULES + bedrock_converse_turns.RULES


def check_request(
    body: JsonObject,
    *,
    model: str | None = None,
    version: str | None = None,  # noqa: ARG001 - the API has one version; the argument makes all judges callable alike
) -> tuple[Violation, ...]:
    """`model` is the id of the URL, percent signs decoded; without one no rule of a model judges."""
    read_body, faults = read(REQUEST, DIALECT, body)
    if faults or not isinstance(read_body, Mapping):
        return faults
    name = model or ""
    request = Request(read_body, name, family_of(name), limits_of(name))
    return tuple(violation for rule in RULES for violation in rule(request))


# --- responses ----------------------------------------------------------------------------------------------------


def usage_adds_up(body: JsonObject) -> Iterator[Violation]:
    usage = object_at(body, "usage")
    parts = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheWriteInputTokens")
    if number_at(usage, "totalTokens") != sum(number_at(usage, part) for part in parts):
        yield bad_answer(("usage", "totalTokens"), f"expected the sum of {', '.join(parts)}")
    details = objects_at(usage, "cacheDetails")
    written = sum(number_at(detail, "inputTokens") for detail in details)
    if details and written != number_at(usage, "cacheWriteInputTokens"):
        yield bad_answer(("usage", "cacheDetails"), "expected parts of cacheWriteInputTokens")


def stop_reason_has_a_call(body: JsonObject) -> Iterator[Violation]:
    blocks = objects_at(body, "output", "message", "content")
    if body.get("stopReason") == "tool_use" and not any("toolUse" in block for block in blocks):
        yield bad_answer(("stopReason",), "stopReason is 'tool_use', but there is no call")


def calls_hold_objects(body: JsonObject) -> Iterator[Violation]:
    # A call cut off by the limit holds what there was of it.
    if body.get("stopReason") != "tool_use":
        return
    for index, block in enumerate(objects_at(body, "output", "message", "content")):
        if "toolUse" in block and not isinstance(object_at(block, "toolUse").get("input"), Mapping):
            where = ("output", "message", "content", index, "toolUse", "input")
            yield bad_answer(where, "expected an object")


def calls_have_their_own_ids(body: JsonObject) -> Iterator[Violation]:
    blocks = objects_at(body, "output", "message", "content")
    ids = [text_at(block, "toolUse", "toolUseId") for block in blocks if "toolUse" in block]
    if len(set(ids)) != len(ids):
        yield bad_answer(("output", "message", "content"), "expected a different toolUseId for each call")


ANSWER_RULES: tuple[Callable[[JsonObject], Iterator[Violation]], ...] = (
    usage_adds_up,
    stop_reason_has_a_call,
    calls_hold_objects,
    calls_have_their_own_ids,
)


def check_response(body: JsonObject) -> tuple[Violation, ...]:
    if "output" not in body and ("message" in body or "__type" in body):
        return (bad_answer(ROOT, "expected a Converse response, got an error body"),)
    _, faults = read(RESPONSE, ANSWER, body)
    return faults or tuple(violation for rule in ANSWER_RULES for violation in rule(body))
