"""The rules of each API against the tables of its test module: what breaks one is refused for it, the rest passes."""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from dragoman.sim.rules import (
    anthropic_messages,
    bedrock_converse,
    cohere_chat,
    gemini,
    ollama_chat,
    openai_chat,
    openai_responses,
)
from tests.sim import (
    test_rules_anthropic_messages,
    test_rules_bedrock_converse,
    test_rules_cohere_chat,
    test_rules_gemini,
    test_rules_ollama_chat,
    test_rules_openai_chat,
    test_rules_openai_responses,
)
from tests.sim.rule_cases import Case, breaks_one_rule, rules_without_case
from tests.support.cases import Check, each

Api = tuple[ModuleType, ModuleType]
"""Its rules, and the module with its cases."""
ANSWERS: dict[str, Api] = {
    "openai-chat": (openai_chat, test_rules_openai_chat),
    "openai-responses": (openai_responses, test_rules_openai_responses),
    "anthropic-messages": (anthropic_messages, test_rules_anthropic_messages),
    "gemini": (gemini, test_rules_gemini),
    "bedrock-converse": (bedrock_converse, test_rules_bedrock_converse),
    "ollama-chat": (ollama_chat, test_rules_ollama_chat),
}
REQUESTS: dict[str, Api] = {**ANSWERS, "cohere-chat": (cohere_chat, test_rules_cohere_chat)}
Row = tuple[ModuleType, Any]


def rows(apis: dict[str, Api], *tables: str) -> Iterator[tuple[str, Row]]:
    """(id, (rules, row)) for each row of the tables that the modules have by these names."""
    for name, (rules, cases) in apis.items():
        found = [row for table in tables for row in getattr(cases, table, ())]
        assert found, name
        yield from ((f"{name}-{getattr(row, 'rule', '')}-{number}", (rules, row)) for number, row in enumerate(found))


def each_row(apis: dict[str, Api], *tables: str) -> Callable[[Check], Check]:
    named = list(rows(apis, *tables))
    return each(("rules", "row"), [row for _, row in named], ids=[id for id, _ in named])


@each_row(REQUESTS, "BAD")
def test_a_body_that_breaks_a_rule_is_refused_for_it(rules: ModuleType, row: Case) -> None:
    breaks_one_rule(row, rules.check_request)


@each_row(REQUESTS, "GOOD", "GOOD_BUT_UNTYPED")
def test_a_legal_body_passes(rules: ModuleType, row: Any) -> None:
    body, beside = row if isinstance(row, tuple) else (row, {})
    assert rules.check_request(body, **beside) == ()


@each(("rules", "cases"), REQUESTS.values(), ids=REQUESTS)
def test_every_rule_has_a_case(rules: ModuleType, cases: ModuleType) -> None:
    assert not rules_without_case(rules.RULES, cases.BAD)


@each_row(ANSWERS, "BAD_ANSWERS")
def test_an_answer_that_a_strict_client_refuses_breaks_a_rule(rules: ModuleType, row: Case) -> None:
    breaks_one_rule(row, rules.check_response)


@each_row(ANSWERS, "GOOD_ANSWERS")
def test_an_answer_that_a_strict_client_reads_passes(rules: ModuleType, row: Any) -> None:
    assert rules.check_response(row) == ()


@each(("rules", "cases"), ANSWERS.values(), ids=ANSWERS)
def test_every_answer_rule_has_a_case(rules: ModuleType, cases: ModuleType) -> None:
    assert not rules_without_case(rules.ANSWER_RULES, cases.BAD_ANSWERS)


@each(("rules", "cases"), ANSWERS.values(), ids=ANSWERS)
def test_an_error_body_is_not_an_answer(rules: ModuleType, cases: ModuleType) -> None:
    assert rules.check_response(cases.ERROR)[0].path == "$"
