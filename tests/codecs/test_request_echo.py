"""What a Responses answer repeats of its request: every member of a request, alone, as OpenAI repeats it."""

import json
from typing import Any

import pytest
from msgspec import Raw

from dragoman.codecs.openai_responses.echo import DEFAULTS, echo_of, with_echo
from dragoman.ir.values import encode_json
from tests.support.cases import each

GIVEN: dict[str, Any] = {
    "background": True,
    "frequency_penalty": 0.5,
    "instructions": "Be brief.",
    "max_output_tokens": 90,
    "max_tool_calls": 3,
    "metadata": {"team": "a"},
    "parallel_tool_calls": False,
    "presence_penalty": 0.25,
    "previous_response_id": "resp_0",
    "prompt_cache_key": "key",
    "reasoning": {"effort": "low", "summary": "auto"},
    "safety_identifier": "u1",
    "store": False,
    "temperature": 0.5,
    "text": {"format": {"type": "json_object"}, "verbosity": "low"},
    "tool_choice": "required",
    "tools": [{"type": "web_search"}],
    "top_logprobs": 2,
    "top_p": 0.5,
    "truncation": "auto",
    "user": "u2",
    "conversation": {"id": "conv_1"},
    "image": {"n": 1},
    "prompt": {"id": "pmpt_1"},
    "prompt_cache_options": {"a": 1},
    "prompt_cache_retention": "24h",
}


def echoed(request: dict[str, Any]) -> Any:
    return json.loads(encode_json(echo_of({name: Raw(encode_json(value)) for name, value in request.items()})))


def test_an_answer_repeats_the_defaults_of_a_request_that_sets_nothing() -> None:
    assert echoed({"model": "m", "input": "hi"}) == {**DEFAULTS, "store": True}
    assert echoed(dict.fromkeys(GIVEN)) == {**DEFAULTS, "store": True}, "null is not set"


def test_every_default_can_be_set() -> None:
    assert DEFAULTS.keys() <= GIVEN.keys() | {"service_tier"}
    assert [
        name for name, value in GIVEN.items() if name in DEFAULTS and name != "store" and value == DEFAULTS[name]
    ] == []


@each("name", GIVEN)
def test_an_answer_repeats_what_was_set(name: str) -> None:
    assert echoed({name: GIVEN[name]}) == {**DEFAULTS, "store": True, name: GIVEN[name]}


@pytest.mark.parametrize("name", ["service_tier", "model", "input", "stream", "include"])
def test_the_tier_and_the_question_are_not_repeated(name: str) -> None:
    assert echoed({name: "flex"}) == {**DEFAULTS, "store": True}


@pytest.mark.parametrize(
    ("name", "given", "repeated"),
    [
        ("reasoning", {"effort": "low"}, {"effort": "low", "summary": None}),
        ("reasoning", "low", "low"),
        ("text", {"verbosity": "low"}, {"format": {"type": "text"}, "verbosity": "low"}),
        ("text", {"verbosity": None}, {"format": {"type": "text"}, "verbosity": "medium"}),
        ("text", {"format": "text"}, {"format": "text", "verbosity": "medium"}),
        (
            "text",
            {"format": {"type": "json_schema", "name": "n", "schema": {}}},
            {
                "format": {"description": None, "strict": False, "type": "json_schema", "name": "n", "schema": {}},
                "verbosity": "medium",
            },
        ),
        ("text", "odd", "odd"),
        ("conversation", "conv_1", {"id": "conv_1"}),
        ("conversation", 7, 7),
        ("tools", "odd", "odd"),
        ("tools", ["odd"], ["odd"]),
        (
            "tools",
            [{"type": "function", "name": "f", "strict": True}],
            [{"type": "function", "name": "f", "description": None, "parameters": None, "strict": True}],
        ),
        (
            "tools",
            [{"type": "mcp", "server_label": "s", "authorization": "secret", "headers": {"X-Key": "secret"}}],
            [{"type": "mcp", "server_label": "s", "headers": {"X-Key": "<redacted>"}}],
        ),
        ("tools", [{"type": "mcp", "headers": "odd"}], [{"type": "mcp", "headers": "odd"}]),
    ],
)
def test_what_is_left_out_is_filled_in_and_secrets_are_left_out(name: str, given: Any, repeated: Any) -> None:
    assert echoed({name: given})[name] == repeated


@pytest.mark.parametrize("own", [{}, {"service_tier": "flex"}])
def test_a_whole_answer_keeps_its_own_tier(own: dict[str, str]) -> None:
    answer = {"id": "resp_1", "status": "completed", "temperature": 9, **own}
    found = json.loads(with_echo(encode_json(answer), echo_of({"temperature": Raw(b"0.5")})))
    assert found == {**DEFAULTS, "store": True, **answer, "temperature": 0.5}
