"""No body crashes a judge: whatever JSON comes, a tuple of violations with a path and words goes out."""

import copy
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman.sim.rules import (
    Violation,
    anthropic_messages,
    bedrock_converse,
    cohere_chat,
    gemini,
    ollama_chat,
    openai_chat,
    openai_responses,
)
from tests.sim import test_rules_anthropic_messages as anthropic_cases
from tests.sim import test_rules_bedrock_converse as converse_cases
from tests.sim import test_rules_cohere_chat as cohere_cases
from tests.sim import test_rules_gemini as gemini_cases
from tests.sim import test_rules_ollama_chat as ollama_cases
from tests.sim import test_rules_openai_chat as openai_cases
from tests.sim import test_rules_openai_responses as responses_cases
from tests.support.cases import each

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)

Judge = Callable[[dict[str, Any]], tuple[Violation, ...]]


def judge_vertex(body: dict[str, Any]) -> tuple[Violation, ...]:
    return gemini.check_request(body, model="gemini-3.6-flash", version="v1", backend="vertex")


def judge_old_messages(body: dict[str, Any]) -> tuple[Violation, ...]:
    return anthropic_messages.check_request(body, version="2023-06-01")


def judge_claude_on_bedrock(body: dict[str, Any]) -> tuple[Violation, ...]:
    return bedrock_converse.check_request(body, **converse_cases.SONNET)


JUDGES: dict[str, tuple[Judge, list[dict[str, Any]]]] = {
    "openai-chat": (openai_chat.check_request, [case.body for case in openai_cases.BAD] + openai_cases.GOOD),
    "anthropic-messages": (
        judge_old_messages,
        [case.body for case in anthropic_cases.BAD if case.rule != "images_are_countable"],
    ),
    "gemini": (gemini.check_request, [case.body for case in gemini_cases.BAD]),
    "vertex": (judge_vertex, [case.body for case in gemini_cases.BAD]),
    "openai-responses": (
        openai_responses.check_request,
        [case.body for case in responses_cases.BAD] + responses_cases.GOOD,
    ),
    "ollama-chat": (ollama_chat.check_request, [case.body for case in ollama_cases.BAD] + ollama_cases.LENIENT),
    "cohere-chat": (cohere_chat.check_request, [case.body for case in cohere_cases.BAD] + cohere_cases.GOOD),
    "bedrock-converse": (judge_claude_on_bedrock, [case.body for case in converse_cases.BAD]),
    "openai-chat answer": (openai_chat.check_response, openai_cases.GOOD_ANSWERS),
    "anthropic-messages answer": (anthropic_messages.check_response, anthropic_cases.GOOD_ANSWERS),
    "gemini answer": (gemini.check_response, gemini_cases.GOOD_ANSWERS),
    "openai-responses answer": (openai_responses.check_response, responses_cases.GOOD_ANSWERS),
    "ollama-chat answer": (ollama_chat.check_response, ollama_cases.GOOD_ANSWERS),
    "cohere-chat answer": (cohere_chat.check_response, cohere_cases.GOOD_ANSWERS),
    "bedrock-converse answer": (bedrock_converse.check_response, converse_cases.GOOD_ANSWERS),
}


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a body."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        node = waiting.pop()
        keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
        found.extend((node, key) for key in keys)
        waiting.extend(node[key] for key in keys)
    return found


def holds(violations: tuple[Violation, ...]) -> None:
    for violation in violations:
        assert violation.path.startswith("$")
        assert violation.message
        assert violation.status >= 400


@given(body=st.dictionaries(st.text(max_size=8), VALUES, max_size=4))
@each("name", JUDGES)
def test_any_object_is_judged(name: str, body: dict[str, Any]) -> None:
    judge, _ = JUDGES[name]
    holds(judge(body))


@given(data=st.data())
@each("name", JUDGES)
def test_a_body_with_one_place_spoiled_is_judged(name: str, data: st.DataObject) -> None:
    judge, bodies = JUDGES[name]
    body = copy.deepcopy(data.draw(st.sampled_from(bodies)))
    spots = places(body)
    if spots:
        container, key = data.draw(st.sampled_from(spots))
        container[key] = data.draw(VALUES)
    holds(judge(body))


@given(data=st.data())
def test_nothing_that_botocore_refuses_is_missed(data: st.DataObject) -> None:
    body = copy.deepcopy(data.draw(st.sampled_from([body for body, _ in converse_cases.GOOD])))
    container, key = data.draw(st.sampled_from(places(body)))
    # Null is left out: botocore refuses it, the service reads it as absent.
    container[key] = data.draw(
        st.recursive(st.booleans() | st.integers() | st.text(max_size=4), st.lists, max_leaves=3)
    )
    if converse_cases.botocore_complaints(body):
        assert bedrock_converse.check_request(body)
