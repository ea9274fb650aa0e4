"""Histories of multi-llm-chat as Python values. The examples of its specification stand here to the letter."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.chat.history import (
    content_to_text,
    format_history,
    normalize_history_turns,
    parse_tool_response_payload,
    validate_history_entry,
)
from dragoman.sim.rules import anthropic_messages, openai_chat
from tests import strategies
from tests.support.promises import promise

HELLO: dict[str, Any] = {"role": "user", "content": [{"type": "text", "content": "Hello, how are you?"}]}
QUESTION: dict[str, Any] = {
    "role": "gemini",
    "content": [
        {"type": "text", "content": "Let me check the weather for you."},
        {
            "type": "tool_call",
            "content": {
                "name": "get_weather",
                "arguments": {"location": "Tokyo"},
                "tool_call_id": "call_abc123",
            },
        },
    ],
}
ANSWERED: dict[str, Any] = {
    "role": "tool",
    "content": [
        {
            "type": "tool_result",
            "name": "get_weather",
            "content": '{"temperature": "25°C", "condition": "sunny"}',
            "tool_call_id": "call_abc123",
        }
    ],
}
SEARCH = [
    {"type": "text", "content": "Let me search."},
    {"type": "tool_call", "content": {"name": "search", "arguments": {"query": "python"}}},
    {"type": "text", "content": "Here are the results."},
]

# ── normalize_history_turns ───────────────────────────────────────────────────────────────────────────────────


@promise("chat:format-repair")
def test_strings_become_parts() -> None:
    legacy_history = [{"role": "user", "content": "Hello"}, {"role": "gemini", "content": "Hi there"}]
    assert normalize_history_turns(legacy_history) == [
        {"role": "user", "content": [{"type": "text", "content": "Hello"}]},
        {"role": "gemini", "content": [{"type": "text", "content": "Hi there"}]},
    ]


@promise("chat:format-repair")
def test_a_string_of_a_tool_is_its_result_under_the_name_of_the_entry() -> None:
    (entry,) = normalize_history_turns([{"role": "tool", "name": "f", "content": "22", "tool_call_id": "c1"}])
    assert entry["content"] == [{"type": "tool_result", "name": "f", "content": "22", "tool_call_id": "c1"}]
    (entry,) = normalize_history_turns([{"role": "tool", "name": "f", "content": "22"}])
    assert entry["content"] == [{"type": "tool_result", "name": "f", "content": "22"}]


@promise("chat:format-repair")
@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (None, []),
        ([], []),
        (["a", {"type": "text", "content": "b"}], [{"type": "text", "content": t} for t in "ab"]),
        (5, [{"type": "text", "content": "5"}]),
        ([5], [{"type": "text", "content": "5"}]),
        ({"text": "bad"}, [{"type": "text", "content": '{"text":"bad"}'}]),
    ],
)
def test_other_content_is_repaired(content: Any, parts: list[Any]) -> None:
    assert normalize_history_turns([{"role": "user", "content": content}])[0]["content"] == parts


@promise("chat:format-repair")
def test_further_keys_stay() -> None:
    (entry,) = normalize_history_turns([{"role": "user", "content": "x", "timestamp": 1, "tags": ["a"]}])
    assert entry["timestamp"] == 1
    assert entry["tags"] == ["a"]


@promise("chat:format-repair")
def test_an_invalid_entry_keeps_its_place() -> None:
    normalized = normalize_history_turns([HELLO, "nonsense", None, 7, QUESTION])
    assert len(normalized) == 5
    assert normalized[0] == HELLO
    assert normalized[4] == QUESTION
    for placeholder in normalized[1:4]:
        assert placeholder["role"] == "system"
        assert placeholder["invalid"] is True
        assert content_to_text(placeholder["content"])


@promise("chat:format-repair")
def test_no_history_is_an_empty_one() -> None:
    assert normalize_history_turns(None) == []
    assert normalize_history_turns([]) == []


ENTRIES = st.lists(
    strategies.JSON_VALUES
    | st.builds(
        lambda role, content, name: {"role": role, "content": content, "name": name},
        st.sampled_from(("user", "gemini", "tool", "claude")),
        strategies.JSON_VALUES | st.sampled_from(([*SEARCH], [*ANSWERED["content"]], "text")),
        strategies.NAMES,
    ),
    max_size=4,
)


@promise("chat:format-repair")
@given(ENTRIES)
def test_the_input_is_never_changed(history: list[Any]) -> None:
    before = deepcopy(history)
    once = normalize_history_turns(history)
    assert history == before
    assert len(once) == len(history)
    kept = deepcopy(once)
    assert normalize_history_turns(once) == kept
    for entry in once:
        content_to_text(entry["content"], include_tool_data=True)
        entry["content"].append("changed")
    assert history == before


@promise("chat:format-repair")
@given(ENTRIES, st.sampled_from(("gemini", "chatgpt", "claude")))
def test_what_is_repaired_can_be_shown_to_every_model(history: list[Any], provider: str) -> None:
    repaired = normalize_history_turns(history)
    before = deepcopy(repaired)
    format_history(repaired, provider)
    assert repaired == before


# ── validate_history_entry ────────────────────────────────────────────────────────────────────────────────────


@promise("chat:format-check")
@pytest.mark.parametrize(
    "entry",
    [
        HELLO,
        QUESTION,
        ANSWERED,
        {"role": "user", "content": "old"},
        {"role": "tool", "content": "old"},
        {"role": "chatgpt", "content": []},
        {"role": "claude", "content": "x"},
        {"role": "system", "content": "x", "invalid": True},
    ],
)
def test_entries_that_may_be_stored(entry: dict[str, Any]) -> None:
    validate_history_entry(entry)


@promise("chat:format-check")
@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("text", "must be a mapping \\(actual type: str\\)"),
        ({"role": "nobody", "content": "x"}, "unknown role 'nobody'"),
        ({"content": "x"}, "unknown role None"),
        ({"role": ["user"], "content": "x"}, "unknown role"),
        ({"role": "user"}, "no content"),
        ({"role": "user", "content": {"text": "bad"}}, "must be a list or string \\(actual type: dict\\)"),
        ({"role": "tool", "content": []}, "holds no result"),
        ({"role": "tool", "content": ["x"]}, "results only"),
        ({"role": "tool", "content": [{"type": "text", "content": "x"}]}, "results only"),
        ({"role": "tool", "content": [{"type": "tool_result", "name": "f", "content": "x"}]}, "no tool_call_id"),
        ({"role": "tool", "content": [{"type": "tool_result", "tool_call_id": ""}]}, "no tool_call_id"),
    ],
)
def test_entries_that_may_not(entry: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        validate_history_entry(entry)


@promise("chat:format-check")
def test_models_may_have_other_names() -> None:
    validate_history_entry({"role": "mistral", "content": "x"}, models=["mistral"])


# ── content_to_text ───────────────────────────────────────────────────────────────────────────────────────────


@promise("chat:format-text")
def test_the_example_without_tool_data() -> None:
    assert content_to_text(SEARCH, include_tool_data=False) == "Let me search. Here are the results."
    assert content_to_text(SEARCH) == "Let me search. Here are the results."


@promise("chat:format-text")
def test_the_example_with_tool_data() -> None:
    text = content_to_text(SEARCH, include_tool_data=True)
    assert text == 'Let me search. search {"query":"python"} Here are the results.'


@promise("chat:format-text")
@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("old", "old"),
        ([], ""),
        (7, "7"),
        ([{"type": "text", "content": ""}, {"type": "text", "content": "a"}], "a"),
        ([{"type": "tool_call", "name": "f", "arguments": {"都市": "東京"}}], 'f {"都市":"東京"}'),
        ([{"type": "tool_result", "name": "f", "content": {"b": 1, "a": [2]}}], 'f {"b":1,"a":[2]}'),
        ([{"type": "tool_result", "name": "f", "content": "plain"}], "f plain"),
        (["bare", {"type": "image", "content": "no text"}, 5], "bare"),
    ],
)
def test_all_content_reads_as_text(content: Any, text: str) -> None:
    assert content_to_text(content, include_tool_data=True) == text


# ── parse_tool_response_payload ───────────────────────────────────────────────────────────────────────────────


@promise("chat:format-payload")
@pytest.mark.parametrize(
    ("payload", "parsed"),
    [
        (None, {}),
        ({"a": 1}, {"a": 1}),
        ('{"temperature": "25°C", "condition": "sunny"}', {"temperature": "25°C", "condition": "sunny"}),
        ("sunny", {"result": "sunny"}),
        ("", {"result": ""}),
        ("[1, 2]", {"result": [1, 2]}),
        ("22", {"result": 22}),
        ("null", {"result": None}),
        ("NaN", {"result": "NaN"}),
        ("[" * 100_000, {"result": "[" * 100_000}),
        ([1, 2], {"result": [1, 2]}),
        (22, {"result": 22}),
        (False, {"result": False}),
    ],
)
def test_payloads_become_objects(payload: Any, parsed: dict[str, Any]) -> None:
    assert parse_tool_response_payload(payload) == parsed


@promise("chat:format-payload")
def test_a_mapping_is_taken_as_it_is() -> None:
    payload = {"a": 1}
    assert parse_tool_response_payload(payload) is payload


# ── format_history ────────────────────────────────────────────────────────────────────────────────────────────


@promise("chat:format-history")
@pytest.mark.parametrize("provider", ["gemini", "chatgpt", "claude"])
def test_the_example_of_invalid_content(provider: str) -> None:
    history = [{"role": "user", "content": {"text": "bad"}}]
    with pytest.raises(ValueError, match=r"^History content must be a list or string \(actual type: dict\)$"):
        format_history(history, provider)
    with pytest.raises(ValueError, match=r"\(actual type: NoneType\)$"):
        format_history([{"role": "user", "content": None}], provider)
    with pytest.raises(ValueError, match=r"\(actual type: str\)$"):
        format_history(["x"], provider)


@promise("chat:format-history")
def test_an_unknown_provider_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="known: gemini, chatgpt, claude"):
        format_history([HELLO], "nobody")


@promise("chat:format-history")
def test_for_gemini() -> None:
    assert format_history([HELLO, QUESTION, ANSWERED], "gemini") == [
        {"role": "user", "parts": [{"text": "Hello, how are you?"}]},
        {
            "role": "model",
            "parts": [
                {"text": "Let me check the weather for you."},
                {"function_call": {"name": "get_weather", "args": {"location": "Tokyo"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "function_response": {
                        "name": "get_weather",
                        "response": {"temperature": "25°C", "condition": "sunny"},
                        "id": "call_abc123",
                    }
                }
            ],
        },
    ]


@promise("chat:format-history")
def test_for_chatgpt() -> None:
    assert format_history([HELLO, {**QUESTION, "role": "chatgpt"}, ANSWERED], "chatgpt") == [
        {"role": "user", "content": "Hello, how are you?"},
        {
            "role": "assistant",
            "content": "Let me check the weather for you.",
            "tool_calls": [
                {
                    "id": "call_abc123",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": '{"location":"Tokyo"}'},
                }
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "call_abc123",
            "content": '{"temperature": "25°C", "condition": "sunny"}',
        },
    ]


@promise("chat:format-history")
def test_calls_alone_have_no_content() -> None:
    entry = {"role": "chatgpt", "content": [QUESTION["content"][1]]}
    assert format_history([entry], "chatgpt")[0]["content"] is None


FLAT = {"type": "tool_call", "name": "f", "arguments": {"n": 1}}


@promise("chat:format-history")
@pytest.mark.parametrize("call", [FLAT, {"type": "tool_call", "content": {"name": "f", "arguments": {"n": 1}}}])
def test_nested_and_flat_calls_read_alike_and_pair_without_ids(call: dict[str, Any]) -> None:
    history: list[dict[str, Any]] = [
        {"role": "user", "content": "go"},
        {"role": "chatgpt", "content": [call, call]},
        {"role": "tool", "content": [{"type": "tool_result", "name": "f", "content": {"n": n}} for n in (1, 2)]},
    ]
    messages = format_history(history, "chatgpt")
    calls = messages[1]["tool_calls"]
    assert [call["function"] for call in calls] == [{"name": "f", "arguments": '{"n":1}'}] * 2
    assert [message["tool_call_id"] for message in messages[2:]] == [call["id"] for call in calls]
    assert [message["content"] for message in messages[2:]] == ['{"n":1}', '{"n":2}']
    assert openai_chat.check_request({"model": "gpt-4.1", "messages": messages}) == ()
    (_, _, result) = format_history([history[0], {**history[1], "role": "gemini"}, history[2]], "gemini")
    assert all("id" not in part["function_response"] for part in result["parts"])


@promise("chat:format-history")
def test_no_model_sees_the_calls_or_results_of_another() -> None:
    history = [HELLO, QUESTION, ANSWERED, {"role": "gemini", "content": "25°C"}, {"role": "user", "content": "Thanks"}]
    assert format_history(history, "chatgpt") == [
        {"role": "user", "content": "Hello, how are you?"},
        {"role": "user", "content": "Thanks"},
    ]
    assert len(format_history(history, "gemini")) == 5


@promise("chat:format-history")
def test_errors_stay_errors() -> None:
    failed = {**ANSWERED["content"][0], "content": "no such city", "is_error": True}
    history: list[Any] = [HELLO, QUESTION, {"role": "tool", "content": [failed]}]
    (response,) = format_history(history, "gemini")[2]["parts"]
    assert response["function_response"]["response"] == {"error": "no such city"}
    history[1] = {**QUESTION, "role": "chatgpt"}
    assert format_history(history, "chatgpt")[2]["content"] == '{"error":"no such city"}'
    history[1] = {**QUESTION, "role": "claude"}
    messages = format_history(history, "claude")
    assert messages[2]["content"][0]["is_error"] is True
    assert (
        anthropic_messages.check_request(
            {
                "model": "claude-sonnet-4-5",
                "max_tokens": 10,
                "messages": messages,
                "tools": [{"name": "get_weather", "input_schema": {"type": "object"}}],
            }
        )
        == ()
    )


@promise("chat:format-history")
def test_arguments_that_are_not_an_object_stay_text() -> None:
    call = {"type": "tool_call", "name": "f", "arguments": '{"n": '}
    (message,) = format_history([{"role": "claude", "content": [call]}], "claude")
    assert message["content"][0]["input"] == {"unparsed_arguments": '{"n": '}


@promise("chat:format-history")
def test_placeholders_are_not_shown() -> None:
    repaired = normalize_history_turns(["nonsense", HELLO])
    assert format_history(repaired, "chatgpt") == [{"role": "user", "content": "Hello, how are you?"}]


@promise("chat:format-history")
def test_the_codec_reads_what_was_repaired() -> None:
    repaired = normalize_history_turns(["nonsense", {"role": "tool", "name": "f", "content": "x"}, HELLO])
    assert len(dragoman.decode_request(repaired, "multi-llm-chat").messages) == 3
