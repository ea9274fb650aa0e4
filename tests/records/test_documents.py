"""The examples and tables of the earlier systems' documents, to the letter."""

from typing import Any

import pytest

import dragoman
from dragoman import ir
from dragoman.errors import DecodeError, EncodeError
from tests.support.cases import each
from tests.support.trees import plain
from tests.test_worked_example import ANSWERS, CONVERSATION, TEXT

# ── universal: the weather example ────────────────────────────────────────────────────────────────────────────

CALL = {"id": "call_123", "name": "get_weather", "arguments": {"location": "Tokyo"}}
RESULT = {
    "tool_call_id": "call_123",
    "name": "get_weather",
    "result": {"temp": 22, "condition": "sunny"},
    "is_error": False,
}
WEATHER: list[dict[str, Any]] = [
    {"role": "user", "content": "Weather in Tokyo?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    RESULT,
]


@pytest.mark.parametrize("vendor", ["openai-chat", "anthropic-messages", "gemini"])
def test_phase_1_the_answer_becomes_a_universal_call(vendor: str) -> None:
    stored = dragoman.translate_response(ANSWERS[vendor], source=vendor, target="universal").body
    assert stored["tool_calls"] == [CALL]
    assert stored["role"] == "assistant"


def test_phase_2_the_application_packs_its_result() -> None:
    assert dragoman.encode_request(CONVERSATION, "universal").body["messages"] == WEATHER
    request = dragoman.decode_request(WEATHER, "universal")
    (call,), (result,) = request.messages[1].tool_calls, request.messages[2].tool_results
    assert (call.id, call.name, call.arguments) == ("call_123", "get_weather", {"location": "Tokyo"})
    assert (result.kind, result.value) == ("data", {"temp": 22, "condition": "sunny"})


def test_phase_3_the_result_goes_back_to_openai() -> None:
    messages = dragoman.translate_request(WEATHER, source="universal", target="openai-chat").body["messages"]
    assert messages[2] == {"role": "tool", "tool_call_id": "call_123", "content": TEXT}


def test_phase_3_the_result_goes_back_to_gemini() -> None:
    contents = dragoman.translate_request(WEATHER, source="universal", target="gemini").body["contents"]
    (part,) = contents[2]["parts"]
    part["functionResponse"].pop("id", None)
    assert part == {"functionResponse": {"name": "get_weather", "response": {"temp": 22, "condition": "sunny"}}}


def test_phase_3_the_result_goes_back_to_anthropic() -> None:
    body = dragoman.translate_request(WEATHER, source="universal", target="anthropic-messages").body
    (block,) = body["messages"][2]["content"]
    assert block.pop("is_error", False) is False
    assert body["messages"][2]["role"] == "user"
    assert block == {"type": "tool_result", "tool_use_id": "call_123", "content": TEXT}


def test_the_bare_records_alone_are_a_history() -> None:
    request = dragoman.decode_request([CALL, RESULT], "universal")
    assert [message.role for message in request.messages] == ["assistant", "tool"]
    assert plain(dragoman.encode_request(request, "universal").json()) == [CALL, RESULT]


def test_raw_context_returns_to_gemini_on_the_same_call_only() -> None:
    signed = {**CALL, "raw_context": {"thoughtSignature": "c2lnbmF0dXJl"}}
    body = [WEATHER[0], {**WEATHER[1], "tool_calls": [signed, {**CALL, "id": "call_124"}]}, RESULT]
    parts = dragoman.translate_request(body, source="universal", target="gemini").body["contents"][1]["parts"]
    assert parts[0]["thoughtSignature"] == "c2lnbmF0dXJl"
    assert "thoughtSignature" not in parts[1]
    for stranger in ("openai-chat", "anthropic-messages"):
        sent = dragoman.translate_request(body, source="universal", target=stranger)
        assert b"c2lnbmF0dXJl" not in sent.json()
        assert any(loss.path == "$[1].tool_calls[0].raw_context" for loss in sent.losses)


def test_errors_of_universal_records() -> None:
    failed = [*WEATHER[:2], {**RESULT, "result": "no such city", "is_error": True}]
    chat = dragoman.translate_request(failed, source="universal", target="openai-chat").body
    assert chat["messages"][2]["content"] == '{"error":"no such city"}'
    claude = dragoman.translate_request(failed, source="universal", target="anthropic-messages").body
    assert claude["messages"][2]["content"][0]["is_error"] is True
    gemini = dragoman.translate_request(failed, source="universal", target="gemini").body
    assert gemini["contents"][2]["parts"][0]["functionResponse"]["response"] == {"error": "no such city"}


# ── modular-prompt: kinds, definitions, choices ───────────────────────────────────────────────────────────────


def flat(kind: str, value: Any) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "toolCalls": [{"id": "call_1", "name": "f", "arguments": {}}]},
        {"role": "tool", "toolCallId": "call_1", "name": "f", "kind": kind, "value": value},
    ]


KINDS = [
    # kind, value, OpenAI content, Anthropic (content, is_error), Gemini response
    ("text", "sunny", "sunny", ("sunny", False), {"output": "sunny"}),
    ("text", '{"a":1}', '{"a":1}', ('{"a":1}', False), {"output": '{"a":1}'}),
    ("data", {"a": 1}, '{"a":1}', ('{"a":1}', False), {"a": 1}),
    ("data", [1, 2], "[1,2]", ("[1,2]", False), {"output": [1, 2]}),
    ("data", 22, "22", ("22", False), {"output": 22}),
    ("data", True, "true", ("true", False), {"output": True}),
    ("data", None, "null", ("null", False), {"output": None}),
    ("data", "x", '"x"', ('"x"', False), {"output": "x"}),
    ("error", "down", '{"error":"down"}', ("down", True), {"error": "down"}),
]


@pytest.mark.parametrize(("kind", "value", "chat", "claude", "gemini"), KINDS)
def test_the_table_of_kinds(kind: str, value: Any, chat: str, claude: tuple[str, bool], gemini: Any) -> None:
    body = flat(kind, value)
    (result,) = dragoman.decode_request(body, "modular-prompt").messages[2].tool_results
    assert (result.kind, result.value) == (kind, value)
    sent = dragoman.translate_request(body, source="modular-prompt", target="openai-chat").body
    assert sent["messages"][2]["content"] == chat
    sent = dragoman.translate_request(body, source="modular-prompt", target="anthropic-messages").body
    (block,) = sent["messages"][2]["content"]
    assert (block["content"], block.get("is_error", False)) == claude
    sent = dragoman.translate_request(body, source="modular-prompt", target="gemini").body
    assert sent["contents"][2]["parts"][0]["functionResponse"]["response"] == gemini


@each(("kind", "value", "chat", "claude", "gemini"), KINDS)
@each("store", dragoman.formats("record"))
def test_every_kind_survives_every_store(
    store: str, kind: str, value: Any, chat: str, claude: Any, gemini: Any
) -> None:
    del chat, claude, gemini
    stored = dragoman.translate_request(flat(kind, value), source="modular-prompt", target=store)
    assert stored.losses == ()
    (result,) = (
        result for message in dragoman.decode_request(stored.json(), store).messages for result in message.tool_results
    )
    assert (result.kind, result.value, result.name) == (kind, value, "f")


# The example of the older specification: parallel calls, nested, arguments as text.
NESTED_CALLS = [
    {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"tokyo"}'}},
    {"id": "call_2", "type": "function", "function": {"name": "get_time", "arguments": '{"timezone":"JST"}'}},
]
NESTED_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "指定都市の天気を取得",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
OLD: dict[str, Any] = {
    "messages": [
        {"role": "assistant", "content": "", "toolCalls": NESTED_CALLS},
        {"role": "tool", "content": '{"temp":22}', "toolCallId": "call_1", "name": "get_weather"},
        {"role": "tool", "content": "12:00", "toolCallId": "call_2"},
    ],
    "tools": [NESTED_TOOL],
    "toolChoice": {"type": "function", "function": {"name": "get_weather"}},
}


def test_the_older_records_are_read_and_go_back_as_they_came() -> None:
    request = dragoman.decode_request(OLD, "modular-prompt")
    assert [(call.name, call.arguments) for call in request.messages[0].tool_calls] == [
        ("get_weather", {"city": "tokyo"}),
        ("get_time", {"timezone": "JST"}),
    ]
    assert [message.tool_results[0].name for message in request.messages[1:]] == ["get_weather", "get_time"]
    assert [message.tool_results[0].kind for message in request.messages[1:]] == ["text", "text"]
    assert request.tool_choice == ir.ToolChoice("required", ("get_weather",), request.tool_choice.metadata)  # type: ignore[union-attr]
    assert dragoman.encode_request(request, "modular-prompt").body == OLD


def test_the_older_records_become_the_newer_ones_after_another_format() -> None:
    chat = dragoman.translate_request(OLD, source="modular-prompt", target="openai-chat", model="m").json()
    new = dragoman.translate_request(chat, source="openai-chat", target="modular-prompt").body
    assert new["messages"][0]["toolCalls"] == [
        {"id": "call_1", "name": "get_weather", "arguments": {"city": "tokyo"}},
        {"id": "call_2", "name": "get_time", "arguments": {"timezone": "JST"}},
    ]
    assert new["messages"][1] == {
        "role": "tool",
        "toolCallId": "call_1",
        "name": "get_weather",
        "kind": "text",
        "value": '{"temp":22}',
    }
    assert new["tools"] == [NESTED_TOOL["function"]]
    assert new["toolChoice"] == {"name": "get_weather"}


CHOICES: list[tuple[Any, Any, Any, Any]] = [
    # stored, OpenAI, Anthropic, Gemini
    ("auto", "auto", {"type": "auto"}, {"mode": "AUTO"}),
    ("none", "none", {"type": "none"}, {"mode": "NONE"}),
    ("required", "required", {"type": "any"}, {"mode": "ANY"}),
    (
        {"name": "f"},
        {"type": "function", "function": {"name": "f"}},
        {"type": "tool", "name": "f"},
        {"mode": "ANY", "allowedFunctionNames": ["f"]},
    ),
]


@pytest.mark.parametrize(("stored", "chat", "claude", "gemini"), CHOICES)
def test_the_table_of_choices(stored: Any, chat: Any, claude: Any, gemini: Any) -> None:
    body = {"messages": flat("text", "x"), "tools": [{"name": "f"}], "toolChoice": stored}

    def sent(target: str) -> dict[str, Any]:
        return dragoman.translate_request(body, source="modular-prompt", target=target).body

    assert sent("openai-chat")["tool_choice"] == chat
    assert sent("anthropic-messages")["tool_choice"] == claude
    assert sent("gemini")["toolConfig"]["functionCallingConfig"] == gemini


@pytest.mark.parametrize("name", dragoman.formats("record"))
@pytest.mark.parametrize("spelled", ["f", {"name": "f"}, {"type": "function", "function": {"name": "f"}}])
def test_a_forced_tool_is_read_in_all_three_spellings(name: str, spelled: Any) -> None:
    key = "toolChoice" if name == "modular-prompt" else "tool_choice"
    body = {"messages": [{"role": "user", "content": "go"}], "tools": [{"name": "f"}], key: spelled}
    request = dragoman.decode_request(body, name)
    assert request.tool_choice is not None
    assert (request.tool_choice.mode, request.tool_choice.names) == ("required", ("f",))
    assert dragoman.encode_request(request, name).body == body


def test_the_result_of_a_query() -> None:
    result = {
        "content": "",
        "toolCalls": [{"id": "call_1", "name": "f", "arguments": {"n": 1}}],
        "finishReason": "tool_calls",
        "usage": {"promptTokens": 5, "completionTokens": 2, "totalTokens": 7},
    }
    completion = dragoman.decode_response(result, "modular-prompt")
    assert completion.finish_reason == "tool_calls"
    assert completion.usage is not None
    assert (completion.usage.input, completion.usage.output, completion.usage.total) == (5, 2, 7)
    assert dragoman.encode_response(completion, "modular-prompt").body == result
    plain_answer = dragoman.translate_response(ANSWERS["openai-chat"], source="openai-chat", target="modular-prompt")
    assert plain_answer.body == {
        "content": "",
        "toolCalls": [CALL],
        "finishReason": "tool_calls",
    }


# ── agent-sdk ─────────────────────────────────────────────────────────────────────────────────────────────────

AGENT: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "Be brief.", "cache": True},
        {"role": "user", "content": "go"},
        {"role": "reasoning", "content": "hm", "raw_item": {"type": "thinking", "thinking": "hm", "signature": "c2ln"}},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "f", "arguments": '{ "n": 1.0 }'},
                    "provider_meta": {"thoughtSignature": "Z29vZ2xl"},
                }
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "call_1",
            "tool_name": "f",
            "content": "line 1\n[trimmed]",
            "is_error": True,
            "output_ref": {"id": "out_1", "byte_size": 2048, "line_count": 99},
            "trimmed": True,
        },
    ],
    "tools": [{"name": "f", "description": "", "parameters": {"type": "object", "properties": {}}, "strict": True}],
    "tool_choice": "f",
}


def test_agent_sdk_messages_keep_all_their_content() -> None:
    request = dragoman.decode_request(AGENT, "agent-sdk")
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool"]
    thought, call = request.messages[2].parts
    assert isinstance(thought, ir.Reasoning)
    assert thought.signature == ir.Signature("anthropic", "c2ln")
    assert isinstance(call, ir.ToolCall)
    assert call.arguments_text == '{ "n": 1.0 }'
    assert call.signature == ir.Signature("google", "Z29vZ2xl")
    (result,) = request.messages[3].tool_results
    assert (result.kind, result.value) == ("error", "line 1\n[trimmed]")
    assert result.metadata is not None
    assert {"output_ref", "trimmed"} <= result.metadata["agent-sdk"].keys()
    assert dragoman.encode_request(request, "agent-sdk").body == AGENT


def test_references_to_whole_outputs_are_reported_and_signatures_return() -> None:
    claude = dragoman.translate_request(
        AGENT, source="agent-sdk", target="anthropic-messages", model="claude-sonnet-4-5"
    )
    assert claude.body["messages"][1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    assert claude.body["system"][0]["cache_control"] == {"type": "ephemeral"}
    paths = {loss.path for loss in claude.losses}
    assert {"$.messages[4].output_ref", "$.messages[4].trimmed", "$.messages[3].tool_calls[0].provider_meta"} <= paths
    gemini = dragoman.translate_request(AGENT, source="agent-sdk", target="gemini").body
    assert gemini["contents"][1]["parts"][0]["thoughtSignature"] == "Z29vZ2xl"


@pytest.mark.parametrize("word", ["auto", "none", "required"])
def test_a_tool_named_like_a_word_of_the_choice_is_refused(word: str) -> None:
    body = {**AGENT, "tools": [{**AGENT["tools"][0], "name": word}]}
    with pytest.raises(DecodeError, match=rf"got '{word}' - at \$\.tools\[0\]\.name"):
        dragoman.decode_request(body, "agent-sdk")
    declared = ir.Request("m", (ir.Message("user", "go"),), (ir.ToolDefinition(word),))
    with pytest.raises(EncodeError, match=f"a tool named '{word}'"):
        dragoman.encode_request(declared, "agent-sdk")
    forced = ir.Request("m", (ir.Message("user", "go"),), (ir.ToolDefinition("f"),), ir.ToolChoice("required", (word,)))
    written = dragoman.encode_request(forced, "agent-sdk")
    assert "tool_choice" not in written.body
    assert "$.tool_choice" in {loss.path for loss in written.losses}  # no tool of this name is declared
    assert dragoman.encode_request(declared, "universal").body["tools"] == [{"name": word}]


COMPLETION: dict[str, Any] = {
    "messages": [
        {"role": "reasoning", "content": "hm"},
        {"role": "assistant", "content": "Let me see."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
    ],
    "usage": {
        "model": "claude-sonnet-4-5",
        "input_tokens": 100,
        "input_cached_tokens": 40,
        "input_cache_creation_tokens": 10,
        "input_image_tokens": None,
        "output_tokens": 20,
        "total_tokens": 120,
    },
    "stop_reason": "tool_use",
    "provider_meta": {"id": "msg_1"},
}


def test_an_answer_of_the_agent_sdk_is_one_message_however_it_was_split() -> None:
    completion = dragoman.decode_response(COMPLETION, "agent-sdk")
    assert (completion.reasoning, completion.text, completion.finish_reason) == ("hm", "Let me see.", "tool_calls")
    assert [call.name for call in completion.tool_calls] == ["f"]
    usage = completion.usage
    assert usage is not None
    assert (usage.input, usage.cached, usage.cache_written, usage.output, usage.total) == (100, 40, 10, 20, 120)
    assert usage.uncached_input == 50
    assert completion.model == "claude-sonnet-4-5"
    assert dragoman.encode_response(completion, "agent-sdk").body == COMPLETION


def test_usage_adds_up_across_the_agent_sdk() -> None:
    sent = dragoman.translate_response(COMPLETION, source="agent-sdk", target="anthropic-messages").body["usage"]
    assert sent["input_tokens"] == 50
    assert sent["cache_read_input_tokens"] == 40
    assert sent["cache_creation_input_tokens"] == 10
    answer = {**ANSWERS["anthropic-messages"], "usage": sent}
    back = dragoman.translate_response(answer, source="anthropic-messages", target="agent-sdk").body["usage"]
    assert back == {
        "model": "m",
        "input_tokens": 100,
        "input_cached_tokens": 40,
        "input_cache_creation_tokens": 10,
        "output_tokens": 20,
        "total_tokens": 120,
    }


@pytest.mark.parametrize("role", ["user", "system", "tool"])
def test_only_the_assistant_answers(role: str) -> None:
    record = {"role": role, "content": "x", **({"tool_call_id": "c", "tool_name": "f"} if role == "tool" else {})}
    with pytest.raises(DecodeError, match="assistant's messages only"):
        dragoman.decode_response({"messages": [record]}, "agent-sdk")


# ── multi-llm-chat ────────────────────────────────────────────────────────────────────────────────────────────

CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "content": "Hello, how are you?"}]},
    {
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
    },
    {
        "role": "tool",
        "content": [
            {
                "type": "tool_result",
                "name": "get_weather",
                "content": '{"temperature": "25°C", "condition": "sunny"}',
                "tool_call_id": "call_abc123",
            }
        ],
    },
]


def test_the_entries_of_the_specification() -> None:
    request = dragoman.decode_request(CHAT, "multi-llm-chat")
    assert [(message.role, message.name) for message in request.messages] == [
        ("user", None),
        ("assistant", "gemini"),
        ("tool", None),
    ]
    (call,), (result,) = request.messages[1].tool_calls, request.messages[2].tool_results
    assert (call.id, call.name, call.arguments) == ("call_abc123", "get_weather", {"location": "Tokyo"})
    assert (result.kind, result.value) == ("text", '{"temperature": "25°C", "condition": "sunny"}')
    assert plain(dragoman.encode_request(request, "multi-llm-chat").json()) == CHAT


@pytest.mark.parametrize("speaker", ["gemini", "chatgpt", "claude", "some-new-model"])
def test_the_name_of_the_speaking_model_is_kept(speaker: str) -> None:
    stored = [CHAT[0], {"role": speaker, "content": "Hi"}]
    chat = dragoman.translate_request(stored, source="multi-llm-chat", target="openai-chat", model="m")
    assert chat.body["messages"][1] == {"role": "assistant", "content": "Hi", "name": speaker}
    back = dragoman.translate_request(chat.json(), source="openai-chat", target="multi-llm-chat").body
    assert back["messages"][1] == {"role": speaker, "content": [{"type": "text", "content": "Hi"}]}
    answer = dragoman.decode_response(stored[1], "multi-llm-chat")
    assert answer.messages[0].name == speaker


def test_a_name_that_is_also_a_role_does_not_change_the_role() -> None:
    request = ir.Request(None, (ir.Message("assistant", "Hi", name="user"),))
    (entry,) = dragoman.encode_request(request, "multi-llm-chat").body["messages"]
    assert entry == {"role": "assistant", "name": "user", "content": [{"type": "text", "content": "Hi"}]}
    there = dragoman.decode_request([entry], "multi-llm-chat")
    assert (there.messages[0].role, there.messages[0].name) == ("assistant", "user")


def test_errors_keep_a_marker_and_survive() -> None:
    failed = ir.ToolResult("c1", "f", "error", "down")
    request = ir.Request(
        None,
        (
            ir.Message("user", "go"),
            ir.Message("assistant", (ir.ToolCall("c1", "f", {}),)),
            ir.Message("tool", (failed,)),
        ),
    )
    stored = dragoman.encode_request(request, "multi-llm-chat")
    (part,) = stored.body["messages"][2]["content"]
    assert part == {
        "type": "tool_result",
        "name": "f",
        "content": "down",
        "tool_call_id": "c1",
        "is_error": True,
    }
    (result,) = dragoman.decode_request(stored.json(), "multi-llm-chat").messages[2].tool_results
    assert result.is_error


def test_results_among_other_parts_become_messages_of_their_own_and_one_entry_again() -> None:
    body = [
        {
            "role": "chatgpt",
            "content": [
                {"type": "tool_call", "name": "f", "arguments": {}},
                {"type": "tool_result", "name": "f", "content": {"n": 1}},
                {"type": "text", "content": "One."},
            ],
        }
    ]
    request = dragoman.decode_request(body, "multi-llm-chat")
    assert [message.role for message in request.messages] == ["assistant", "tool", "assistant"]
    assert plain(dragoman.encode_request(request, "multi-llm-chat").json()) == body


def test_a_saved_conversation_is_read_with_its_system_prompt() -> None:
    saved = {
        "display_name": "first",
        "system_prompt": "Be brief.",
        "turns": [{"role": "user", "content": "Hello"}],
        "metadata": {"schema_version": 2},
    }
    sent = dragoman.translate_request(saved, source="multi-llm-chat", target="openai-chat", model="m")
    assert sent.body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
    ]
    assert {loss.path for loss in sent.losses} == {"$.display_name", "$.metadata"}
    assert dragoman.encode_request(dragoman.decode_request(saved, "multi-llm-chat"), "multi-llm-chat").body == saved
