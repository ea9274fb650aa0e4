"""What `POST /v1/responses` refuses, and what a strict client of it expects to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dragoman.sim.rules import openai_responses_items, openai_responses_settings
from dragoman.sim.rules.common import (
    ANSWER,
    ROOT,
    JsonObject,
    Violation,
    bad_answer,
    object_at,
    objects_at,
    read,
    text_at,
)
from dragoman.sim.rules.openai_request import Rule, check_all, check_totals
from dragoman.sim.rules.openai_responses_shapes import DIALECT, REQUEST, RESPONSE

RULES: tuple[Rule, ...] = openai_responses_items.RULES + openai_responses_settings.RULES


def check_request(
    body: JsonObject,
    *,
    model: str | None = None,
    version: str | None = None,  # noqa: ARG001 - the API has one version; the argument makes all judges callable alike
) -> tuple[Violation, ...]:
    return check_all(REQUEST, DIALECT, RULES, body, model)


# --- responses ----------------------------------------------------------------------------------------------------


def usage_adds_up(body: JsonObject) -> Iterator[Violation]:
    return check_totals(body, "input_tokens", "output_tokens")


def status_is_explained(body: JsonObject) -> Iterator[Violation]:
    if body.get("status") == "incomplete" and not text_at(body, "incomplete_details", "reason"):
        yield bad_answer(("incomplete_details",), "expected a reason beside status 'incomplete'")
    if body.get("status") == "failed" and not object_at(body, "error"):
        yield bad_answer(("error",), "expected an error beside status 'failed'")
    if body.get("status") == "completed" and object_at(body, "error"):
        yield bad_answer(("error",), "expected no error beside status 'completed'")


def items_have_their_own_ids(body: JsonObject) -> Iterator[Violation]:
    for key in ("id", "call_id"):
        found = [
            (text_at(item, "type"), text_at(item, key)) for item in objects_at(body, "output") if text_at(item, key)
        ]
        if len(set(found)) != len(found):
            yield bad_answer(("output",), f"expected a different {key} for each item")


ANSWER_RULES: tuple[Callable[[JsonObject], Iterator[Violation]], ...] = (
    usage_adds_up,
    status_is_explained,
    items_have_their_own_ids,
)


def check_response(body: JsonObject) -> tuple[Violation, ...]:
    if isinstance(body.get("error"), dict) and "output" not in body:
        return (bad_answer(ROOT, "expected a response, got an error body"),)
    _, faults = read(RESPONSE, ANSWER, body)
    return faults or tuple(violation for rule in ANSWER_RULES for violation in rule(body))
