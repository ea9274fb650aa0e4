"""Every strict rule, over the socket: the illegal body goes in raw, and the API's own refusal comes back."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from dragoman.sim.server import Simulator
from dragoman.sim.service import Settings
from tests.sim import (
    test_rules_anthropic_messages,
    test_rules_bedrock_converse,
    test_rules_cohere_chat,
    test_rules_gemini,
    test_rules_ollama_chat,
    test_rules_openai_chat,
    test_rules_openai_responses,
)
from tests.sim.rule_cases import Case
from tests.sim.wire import DOORS, send
from tests.support.cases import each

TABLES: dict[str, list[Case]] = {
    "openai-chat": test_rules_openai_chat.BAD,
    "openai-responses": test_rules_openai_responses.BAD,
    "anthropic-messages": test_rules_anthropic_messages.BAD,
    "gemini": [case for case in test_rules_gemini.BAD if case.beside.get("backend") != "vertex"],
    "vertex": [case for case in test_rules_gemini.BAD if case.beside.get("backend") == "vertex"],
    "ollama-chat": test_rules_ollama_chat.BAD,
    "cohere-chat": test_rules_cohere_chat.BAD,
    "bedrock-converse": test_rules_bedrock_converse.BAD,
}
GOOD: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {
    "openai-chat": [(body, {}) for body in test_rules_openai_chat.GOOD],
    "openai-responses": [(body, {}) for body in test_rules_openai_responses.GOOD],
    "anthropic-messages": test_rules_anthropic_messages.GOOD,
    "gemini": [row for row in test_rules_gemini.GOOD if row[1].get("backend") != "vertex"],
    "vertex": [row for row in test_rules_gemini.GOOD if row[1].get("backend") == "vertex"],
    "bedrock-converse": test_rules_bedrock_converse.GOOD,
    "cohere-chat": [(body, {}) for body in test_rules_cohere_chat.GOOD],
}


# The tables speak of what is in beta, too.
BETAS = ",".join(
    f"{name}-2026-09-04"
    for name in (
        "context-management",
        "compact",
        "mcp-client",
        "server-side-fallback",
        "fallback-credit",
        "message-threads",
        "task-budgets",
        "thinking-binding-controls",
        "thinking-display-updates",
        "mid-conversation-tool-changes",
    )
)


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    """The tables speak of models and signatures that never were; what they break is something else."""
    with Simulator(Settings(any_model=True, any_signature=True)) as running:
        yield running


def address(api: str, beside: dict[str, Any]) -> tuple[str, dict[str, str]]:
    door = DOORS[api]
    if api in ("gemini", "vertex"):
        model = beside.get("model", "gemini-flash-latest")
        version = beside.get("version", "v1beta1" if api == "vertex" else "v1beta")
        owner = "/projects/p/locations/global/publishers/google" if api == "vertex" else ""
        return f"/{version}{owner}/models/{model}:generateContent", door.headers
    if api == "anthropic-messages":
        version = beside.get("version", "2026-10-21")
        return door.path, {**door.headers, "anthropic-version": version, "anthropic-beta": BETAS}
    if api == "bedrock-converse":
        model = quote(beside.get("model", "amazon.nova-lite-v1:0"), safe="")
        return f"/model/{model}/converse", door.headers
    return door.path, door.headers


def cases() -> list[Any]:
    return [
        pytest.param(api, case, id=f"{api}-{case.rule}-{number}")
        for api, table in TABLES.items()
        for number, case in enumerate(table)
    ]


@each(("api", "case"), cases())
def test_what_breaks_a_rule_is_refused_in_the_words_of_the_api(simulator: Simulator, api: str, case: Case) -> None:
    path, headers = address(api, case.beside)
    answer = send(simulator, path, case.body, headers)
    assert 400 <= answer.status <= 500, answer.body
    assert case.words in DOORS[api].message_of(answer.json)


@pytest.mark.parametrize("api", GOOD)
def test_what_breaks_none_is_answered(simulator: Simulator, api: str) -> None:
    for body, beside in GOOD[api]:
        path, headers = address(api, beside)
        answer = send(simulator, path, body, headers)
        stored = ("previous_response_id", "conversation", "item_reference")
        if api == "openai-responses" and any(key in str(body) for key in stored):
            continue  # what they refer to is stored nowhere
        assert answer.status == 200, (body, answer.body)
