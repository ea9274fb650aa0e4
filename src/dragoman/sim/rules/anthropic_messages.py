"""What `POST /v1/messages` refuses, and what a strict client of it expects to read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from dragoman.sim.rules import anthropic_messages_settings, anthropic_messages_turns
from dragoman.sim.rules.anthropic_messages_models import limits_of
from dragoman.sim.rules.anthropic_messages_request import Request, Rule
from dragoman.sim.rules.anthropic_messages_shapes import CODE_CALLERS, DIALECT, REQUEST, RESPONSE
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

MODERN_VERSION = "2026-10-21"

RULES: tuple[Rule, ...] = anthropic_messages_turns.RULES + anthropic_messages_settings.RULES


def is_modern(version: str | None) -> bool:
    dates: list[str] = re.findall(r"\d{4}-\d{2}-\d{2}", version or MODERN_VERSION)
    return not dates or dates[-1] >= MODERN_VERSION


def check_request(body: JsonObject, *, model: str | None = None, version: str | None = None) -> tuple[Violation, ...]:
    """`version` is the `anthropic-version` (`2023-06-01`, `bedrock-2023-05-31`, ...); without one the newest judges.

    `model`, when given, is looked up in the table of models instead of the body's.
    """
    _, faults = read(REQUEST, DIALECT, body)
    if faults:
        return faults
    request = Request(body, is_modern(version), limits_of(model or text_at(body, "model")))
    return tuple(violation for rule in RULES for violation in rule(request))


# --- responses ----------------------------------------------------------------------------------------------------


def cache_writes_add_up(body: JsonObject) -> Iterator[Violation]:
    # With a server tool, the total covers several requests, the parts do not (7 recordings, e.g. 518e09884be0).
    if any(block.get("type") == "server_tool_use" for block in objects_at(body, "content")):
        return
    usage = object_at(body, "usage")
    written = object_at(usage, "cache_creation")
    parts = number_at(written, "ephemeral_5m_input_tokens") + number_at(written, "ephemeral_1h_input_tokens")
    total = usage.get("cache_creation_input_tokens")
    if written and total is not None and parts != total:
        yield bad_answer(("usage", "cache_creation"), "expected parts of cache_creation_input_tokens")


def thinking_is_output(body: JsonObject) -> Iterator[Violation]:
    thought = number_at(body, "usage", "output_tokens_details", "thinking_tokens")
    if thought > number_at(body, "usage", "output_tokens"):
        yield bad_answer(("usage", "output_tokens_details", "thinking_tokens"), "expected a part of output_tokens")


def stop_reason_has_a_call(body: JsonObject) -> Iterator[Violation]:
    calls = [block for block in objects_at(body, "content") if block.get("type") == "tool_use"]
    # Calls made by code may have been answered within the turn (recording 1af5f6e080e6).
    answered = any(text_at(block, "caller", "type") in CODE_CALLERS for block in calls)
    if body.get("stop_reason") == "tool_use" and not calls:
        yield bad_answer(("stop_reason",), "stop_reason is 'tool_use', but there is no call")
    if body.get("stop_reason") == "end_turn" and calls and not answered:
        yield bad_answer(("stop_reason",), "stop_reason is 'end_turn', but there is an open call")


def stop_sequence_is_reported(body: JsonObject) -> Iterator[Violation]:
    if (body.get("stop_reason") == "stop_sequence") != (body.get("stop_sequence") is not None):
        yield bad_answer(("stop_sequence",), "expected the matched sequence, and only with stop_reason 'stop_sequence'")


def calls_have_their_own_ids(body: JsonObject) -> Iterator[Violation]:
    ids = [text_at(block, "id") for block in objects_at(body, "content") if "id" in block]
    if len(set(ids)) != len(ids):
        yield bad_answer(("content",), "expected a different id for each call")


ANSWER_RULES: tuple[Callable[[JsonObject], Iterator[Violation]], ...] = (
    cache_writes_add_up,
    thinking_is_output,
    stop_reason_has_a_call,
    stop_sequence_is_reported,
    calls_have_their_own_ids,
)


def check_response(body: JsonObject) -> tuple[Violation, ...]:
    if body.get("type") == "error":
        return (bad_answer(ROOT, "expected a message, got an error body"),)
    _, faults = read(RESPONSE, ANSWER, body)
    return faults or tuple(violation for rule in ANSWER_RULES for violation in rule(body))
