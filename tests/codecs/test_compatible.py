"""Servers that speak Chat Completions in their own way: what each adds, refuses or needs."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given

import dragoman
from dragoman import ir
from dragoman.codecs.registry import folder_of
from dragoman.errors import EncodeError
from dragoman.streams import StreamTranslator
from tests import strategies
from tests.support.cases import each
from tests.support.formats import refusals
from tests.support.promises import promise
from tests.support.recordings import Record

Recordings = Callable[[str], Iterator[Record]]
SERVERS = tuple(name for name in dragoman.formats("compatible") if folder_of(name) == "openai_chat")

CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
BODY: dict[str, Any] = {
    "model": "some-model",
    "messages": [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "r"},
    ],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
    "max_completion_tokens": 5,
}


def sent(target: str, **changes: object) -> dict[str, Any]:
    return dragoman.translate_request({**BODY, **changes}, source="openai-chat", target=target).body


def lost(target: str, **changes: object) -> list[str]:
    encoded = dragoman.translate_request({**BODY, **changes}, source="openai-chat", target=target)
    return [loss.path for loss in encoded.losses]


def test_all_of_them_are_there() -> None:
    assert SERVERS == (
        "groq",
        "mistral",
        "deepseek",
        "xai",
        "openrouter",
        "gemini-openai",
        "copilot",
        "vllm",
        "llama-cpp",
        "ollama-openai",
    )
    assert not set(SERVERS) & set(dragoman.formats())


@pytest.mark.parametrize("server", SERVERS)
def test_only_openrouter_knows_developers(server: str) -> None:
    assert sent(server)["messages"][0]["role"] == ("developer" if server == "openrouter" else "system")


@pytest.mark.parametrize(
    ("server", "field"),
    [
        ("groq", "max_completion_tokens"),
        ("mistral", "max_tokens"),
        ("deepseek", "max_tokens"),
        ("llama-cpp", "max_tokens"),
        ("ollama-openai", "max_tokens"),
        ("vllm", "max_completion_tokens"),
        ("xai", "max_completion_tokens"),
    ],
)
def test_the_limit_is_where_the_server_reads_it(server: str, field: str) -> None:
    body = sent(server)
    assert body[field] == 5
    assert len({"max_tokens", "max_completion_tokens"} & body.keys()) == 1


def test_mistral_has_its_own_words_and_ids() -> None:
    body = sent("mistral", seed=7, tool_choice="required", store=True)
    assert body["random_seed"] == 7
    assert "seed" not in body
    assert body["tool_choice"] == "any"
    call = body["messages"][2]["tool_calls"][0]["id"]
    assert len(call) == 9
    assert call.isalnum()
    assert body["messages"][3]["tool_call_id"] == call
    assert "$.store" in lost("mistral", store=True)
    assert "store" not in body


def test_mistral_refuses_reasoning_it_did_not_spell() -> None:
    assert "reasoning_content" not in sent("mistral")["messages"][2]
    assert lost("mistral") == ["$.messages[2].reasoning_content"]


@promise("report:43")
def test_deepseek_gets_reasoning_back_with_the_calls() -> None:
    assert sent("deepseek")["messages"][2]["reasoning_content"] == "hm"
    request = dragoman.decode_request(
        {
            "model": "m",
            "max_tokens": 5,
            "messages": [
                {"role": "user", "content": "x"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm", "signature": ""},
                        {"type": "tool_use", "id": "t", "name": "f", "input": {}},
                    ],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]},
            ],
        },
        "anthropic-messages",
    )
    assert dragoman.encode_request(request, "deepseek").body["messages"][1]["reasoning_content"] == "hm"
    assert "reasoning_content" not in dragoman.encode_request(request, "xai").body["messages"][1]


def test_deepseek_takes_strings_only() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, picture]}]
    body = sent("deepseek", messages=messages)
    assert body["messages"] == [{"role": "user", "content": "ab"}]
    assert lost("deepseek", messages=messages) == ["$.messages[0].content[2]"]


def test_deepseek_takes_the_wish_for_json_without_a_schema() -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
    body = sent("deepseek", response_format=schema)
    assert body["response_format"] == {"type": "json_object"}
    assert "$.response_format" in lost("deepseek", response_format=schema)


@pytest.mark.parametrize("server", ["vllm", "ollama-openai"])
@pytest.mark.parametrize("text", ["{bad", "", "[1]"])
def test_arguments_must_be_json_where_the_server_parses_them(server: str, text: str) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": text}}
    messages = [
        *BODY["messages"][:2],
        {"role": "assistant", "content": None, "tool_calls": [call]},
        BODY["messages"][3],
    ]
    arguments = sent(server, messages=messages)["messages"][2]["tool_calls"][0]["function"]["arguments"]
    assert isinstance(json.loads(arguments), dict)


def test_ollama_ignores_what_we_then_do_not_send() -> None:
    body = sent("ollama-openai", tool_choice="required", n=2)
    assert not {"tool_choice", "n"} & body.keys()
    assert {"$.tool_choice", "$.n"} <= set(lost("ollama-openai", tool_choice="required", n=2))
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "a"}, picture]}]
    assert sent("ollama-openai", messages=messages)["messages"][0]["content"] == [{"type": "text", "text": "a"}]


@pytest.mark.parametrize("server", SERVERS)
def test_custom_tools_cross_as_functions(server: str) -> None:
    body = sent(server, tools=[{"type": "custom", "custom": {"name": "f"}}])
    assert body["tools"][0]["type"] == "function"


def test_gemini_gets_its_signatures_back() -> None:
    part = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2lnbmF0dXJlLW9mLWdvb2dsZQ=="}
    contents = [
        {"role": "user", "parts": [{"text": "x"}]},
        {"role": "model", "parts": [part]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"a": 1}}}]},
    ]
    encoded = dragoman.translate_request({"contents": contents}, source="gemini", target="gemini-openai", model="g")
    call = encoded.body["messages"][1]["tool_calls"][0]
    assert call["extra_content"]["google"]["thought_signature"] == "c2lnbmF0dXJlLW9mLWdvb2dsZQ=="
    elsewhere = dragoman.translate_request({"contents": contents}, source="gemini", target="groq", model="g")
    assert "extra_content" not in elsewhere.body["messages"][1]["tool_calls"][0]


@pytest.mark.parametrize(
    ("server", "key"),
    [
        ("groq", "reasoning"),
        ("vllm", "reasoning"),
        ("openrouter", "reasoning"),
        ("ollama-openai", "reasoning"),
        ("xai", "reasoning_content"),
        ("deepseek", "reasoning_content"),
        ("openai-chat", "reasoning_content"),
    ],
)
def test_answers_carry_reasoning_where_clients_look_for_it(server: str, key: str) -> None:
    completion = ir.Completion((ir.Message("assistant", (ir.Reasoning("hm"), ir.Text("yes"))),), ir.Finish("stop"))
    assert dragoman.encode_response(completion, server).body["choices"][0]["message"][key] == "hm"


@given(request=strategies.ANY_REQUESTS)
@each("server", SERVERS)
def test_any_conversation_stays_legal_chat(server: str, request: ir.Request) -> None:
    try:
        encoded = dragoman.encode_request(strategies.public(request, "openai"), server)
    except EncodeError:
        return
    # What OpenAI does not know and the server does: its own words.
    own = ("random_seed", "'any'", "reasoning_content", "reasoning_details", "extra_content", "cache_control")
    found = refusals(encoded, "openai-chat", model="some-model")
    assert [refusal for refusal in found if not any(word in str(refusal) for word in own)] == []


@pytest.mark.parametrize(
    ("file", "server"),
    [
        ("groq-chat", "groq"),
        ("mistral-chat", "mistral"),
        ("deepseek-chat", "deepseek"),
        ("xai-chat", "xai"),
        ("openrouter-chat", "openrouter"),
    ],
)
def test_what_the_servers_took_crosses_to_them_without_a_word_lost(
    file: str, server: str, recordings: Recordings
) -> None:
    """Their own recorded requests, sent to them again: nothing they took is taken away."""
    for record in recordings(file):
        if record.status != 200 or record.request is None or "messages" not in record.request:
            continue
        encoded = dragoman.translate_request(record.request, source=server, target=server)
        assert encoded.losses == ()


@pytest.mark.parametrize("server", ["groq", "vllm", "xai", "openrouter"])
def test_schemas_of_others_say_that_they_are_objects(server: str) -> None:
    tool = ir.ToolDefinition("f", None, {"properties": {"a": {"type": "string"}}}, strict=True)
    body = dragoman.encode_request(ir.Request("m", (ir.Message("user", "hi"),), (tool,)), server).body
    function = body["tools"][0]["function"]
    assert function["parameters"]["type"] == "object"
    assert function["strict"]
    own = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function"}]}
    own["tools"][0]["function"] = {"name": "f", "parameters": {"properties": {}}}  # type: ignore[index]
    assert dragoman.translate_request(own, source="openai-chat", target=server).body["tools"] == own["tools"]


@promise("law:1-identity", "law:10-bad-input-good-words")
def test_a_time_with_a_fraction_does_not_cost_the_answer() -> None:
    """Servers that write `time.time()` as it is."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
    body = {"id": "a", "object": "chat.completion", "created": 1763480000.25, "model": "m", "choices": [choice]}
    assert dragoman.decode_response(body, "openai-chat").created == 1763480000
    same = dragoman.translate_response(body, source="openai-chat", target="openai-chat")
    assert (json.loads(same.json()), same.losses) == (body, ())
    chunk = {**body, "choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]}
    translator = StreamTranslator(source="openai-chat", target="openai-responses")
    translator.feed(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())
    translator.close()
    assert (translator.failure, translator.completion.text) == (None, "hi")
    assert translator.completion.created == 1763480000


# ── a server that refuses unknown keys ────────────────────────────────────────────────────────────────────────

MARK = {"type": "ephemeral"}
DETAIL = {"type": "reasoning.text", "text": "hm", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0}


@pytest.mark.parametrize(
    ("place", "given", "lost"),
    [
        ("$.messages[1]", {"reasoning_details": [DETAIL], "reasoning": "hm"}, "$.messages[1].reasoning_details"),
        ("$.messages[1]", {"reasoning_opaque": "b3A="}, "$.messages[1].reasoning_opaque"),
        ("$.messages[1]", {"reasoning_text": "hm", "reasoning_opaque": "b3A="}, "$.messages[1].reasoning_text"),
        (
            "$.messages[1]",
            {"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}]},
            "$.messages[1].thinking_blocks",
        ),
        ("$.messages[1]", {"refusal": None, "annotations": []}, None),
        ("$.messages[1]", {"cache_control": MARK}, "$.messages[1].cache_control"),
        ("$.messages[1].tool_calls[0]", {"cache_control": MARK}, "$.messages[1].tool_calls[0].cache_control"),
        (
            "$.messages[1].tool_calls[0]",
            {"extra_content": {"google": {"thought_signature": "c2ln"}}},
            "$.messages[1].tool_calls[0].extra_content",
        ),
        ("$.messages[1].tool_calls[0]", {"more": 1}, "$.messages[1].tool_calls[0].more"),
        ("$.messages[2]", {"cache_control": MARK}, "$.messages[2].cache_control"),
        ("$.messages[0].content[0]", {"cache_control": MARK}, "$.messages[0].content[0].cache_control"),
        ("$.messages[0].content[0]", {"more": 1}, "$.messages[0].content[0].more"),
        ("$.messages[0]", {"more": 1}, "$.messages[0].more"),
        ("$.tools[0]", {"cache_control": MARK}, "$.tools[0].cache_control"),
        ("$.tools[0]", {"more": 1}, "$.tools[0].more"),
        ("$", {"cache_control": MARK}, "$.cache_control"),
        ("$", {"more": 1}, "$.more"),
    ],
)
def test_keys_that_a_strict_server_does_not_know_are_dropped_everywhere(
    place: str, given: dict[str, Any], lost: str | None
) -> None:
    call = {"id": "abcdefghi", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    parts: dict[str, dict[str, Any]] = {
        "$.messages[0].content[0]": {"type": "text", "text": "hi"},
        "$.messages[1].tool_calls[0]": call,
        "$.tools[0]": {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}},
    }
    bodies = []
    for further in ({}, given):
        filled = {path: part | (further if path == place else {}) for path, part in parts.items()}
        messages: tuple[dict[str, Any], ...] = (
            {"role": "user", "content": [filled["$.messages[0].content[0]"]]},
            {"role": "assistant", "content": "ho", "tool_calls": [filled["$.messages[1].tool_calls[0]"]]},
            {"role": "tool", "tool_call_id": "abcdefghi", "name": "f", "content": "r"},
        )
        listed = [message | (further if place == f"$.messages[{at}]" else {}) for at, message in enumerate(messages)]
        body = {"model": "m", "messages": listed, "tools": [filled["$.tools[0]"]], **(further if place == "$" else {})}
        bodies.append(dragoman.translate_request(body, source="openai-chat", target="mistral"))
    plain, fitted = bodies
    assert (fitted.body, plain.losses) == (plain.body, ())
    assert [loss.path for loss in fitted.losses] == ([] if lost is None else [lost])


# ── encrypted reasoning of Copilot ────────────────────────────────────────────────────────────────────────────

OPAQUE: dict[str, Any] = {"reasoning_text": "hm", "reasoning_opaque": "b3A="}
THOUGHT: dict[str, Any] = {
    "role": "assistant",
    "content": "ho",
    "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
CLIENTS = ("anthropic-messages", "openai-responses", "gemini", "bedrock-converse", "ollama-chat", "cohere-chat")


@pytest.mark.parametrize("keys", [("reasoning_text", "reasoning_opaque"), ("reasoning_opaque",)], ids=len)
@pytest.mark.parametrize("client", CLIENTS)
def test_encrypted_reasoning_returns_through_clients_of_other_formats(client: str, keys: tuple[str, ...]) -> None:
    """To its own server; no other one gets it."""
    given = {key: OPAQUE[key] for key in keys}
    answer = {
        "id": "1",
        "model": "m",
        "choices": [{"index": 0, "message": THOUGHT | given, "finish_reason": "tool_calls"}],
    }
    completion = dragoman.decode_response(
        dragoman.translate_response(answer, source="openai-chat", target=client).json(), client
    )
    question, result = ir.Message("user", "hi"), ir.ToolResult.text("call_1", "f", "r")
    history = (question, *completion.messages, ir.Message("tool", (result,)))
    request = ir.Request("m", history, (ir.ToolDefinition("f"),))
    sent = dragoman.encode_request(request, "copilot").body["messages"][1]
    assert {key: sent[key] for key in sent if key.startswith("reasoning")} == {"reasoning_text": "", **given}
    for other in ("openai-chat", "openrouter", "vllm"):
        elsewhere = dragoman.encode_request(request, other)
        assert "b3A=" not in elsewhere.json().decode()
        assert [loss.severity for loss in elsewhere.losses if loss.what in {"reasoning", "signature"}] == ["dropped"]


def test_encrypted_reasoning_of_a_stream_signs_what_was_thought() -> None:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return b"data: " + json.dumps({"id": "1", "model": "m", "choices": [choice]}).encode() + b"\n\n"

    deltas = [{"reasoning_text": "h"}, {"reasoning_text": "m"}, {"reasoning_opaque": "b3A="}, {"content": "ho"}]
    body = b"".join(chunk(delta) for delta in deltas) + chunk({}, "stop") + b"data: [DONE]\n\n"
    translator = StreamTranslator(source="openai-chat", target="anthropic-messages")
    translator.feed(body)
    translator.close()
    signature = ir.Signature("copilot", "b3A=")
    assert translator.completion.messages[0].parts == (ir.Reasoning("hm", signature), ir.Text("ho"))
