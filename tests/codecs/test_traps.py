"""Traps of the wires that no other test steps into on purpose; what happens to those who do is said beside each."""

import json
from typing import Any

import pytest

import dragoman
from dragoman import ir
from dragoman.sim.rules import anthropic_messages as messages_judge
from dragoman.sim.rules import bedrock_converse as converse_judge
from dragoman.sim.rules import gemini as gemini_judge
from dragoman.sim.rules import ollama_chat as ollama_judge
from dragoman.sim.rules import openai_chat as chat_judge
from dragoman.sim.rules import openai_responses as responses_judge
from tests.support.calls import all_calls

Json = dict[str, Any]
HI = ir.Message("user", "hi")
TOOLS = (ir.ToolDefinition("f"),)
CLAUDE = "claude-sonnet-4-5"
CONVERSE_CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0"


def answered(*ids: str) -> tuple[ir.Message, ir.Message]:
    calls = tuple(ir.ToolCall(each, "f", {}) for each in ids)
    return ir.Message("assistant", calls), ir.Message(
        "tool", tuple(ir.ToolResult(each, "f", "text", f"result of {each}") for each in ids)
    )


def loss_pairs(encoded: dragoman.Encoded) -> list[tuple[str, str]]:
    return [(loss.severity, loss.path) for loss in encoded.losses if loss.refusable]


def streamed(source: str, *events: Json | str) -> ir.Completion:
    """The answer in these events, as server-sent events."""
    bodies = [event if isinstance(event, str) else json.dumps(event) for event in events]
    decoder = dragoman.StreamDecoder(source)
    return dragoman.accumulate(
        [*decoder.feed("".join(f"data: {body}\n\n" for body in bodies).encode()), *decoder.close()]
    )


# ── Chat Completions ──────────────────────────────────────────────────────────────────────────────────────────


def chunk(delta: Json | None = None, finish: str | None = None, **more: Any) -> Json:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 7,
        "model": "m",
        "choices": choices,
        **more,
    }


def test_usage_is_not_the_last_word_of_a_stream() -> None:
    counts = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    moderated = chunk(moderation={"input": {}}, usage=None)
    answer = streamed(
        "openai-chat", chunk({"content": "a"}), chunk({}, "stop"), chunk(usage=counts), moderated, "[DONE]"
    )
    assert answer.usage == ir.Usage(3, 2, total=5)


def test_a_prompt_that_was_judged_does_not_name_the_answer() -> None:
    """Azure's first chunk has no choices, and neither id nor model."""
    judged = {"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": [{}]}
    answer = streamed("openai-chat", judged, chunk({"role": "assistant", "content": "a"}), chunk({}, "stop"), "[DONE]")
    assert (answer.id, answer.model, answer.created, answer.text) == ("chatcmpl-1", "m", 7, "a")


def test_stop_does_not_mean_that_nothing_is_called_or_refused() -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    finish = streamed("openai-chat", chunk({"tool_calls": [call]}), chunk({}, "stop"), "[DONE]").finish
    assert finish == ir.Finish("tool_calls", "stop")
    finish = streamed("openai-chat", chunk({"refusal": "No."}), chunk({}, "stop"), "[DONE]").finish
    assert finish == ir.Finish("refusal", "stop")


@pytest.mark.parametrize("name", ["Ann Lee", "日本", "x" * 80, "a.b"])
def test_a_speaker_with_a_name_that_chat_refuses(name: str) -> None:
    encoded = dragoman.encode_request(ir.Request("gpt-4o", (ir.Message("user", "hi", name),)), "openai-chat")
    assert chat_judge.check_request(encoded.body) == ()
    assert loss_pairs(encoded) == [("degraded", "$.messages[0].name")]


def test_a_speaker_whom_chat_named_itself_keeps_the_name() -> None:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi", "name": "Ann Lee"}]}
    assert dragoman.translate_request(body, source="openai-chat", target="openai-chat").body == body


@pytest.mark.parametrize(
    "target", ["anthropic-messages", "gemini", "bedrock-converse", "openai-responses", "ollama-chat"]
)
def test_a_call_of_a_wrapper_that_the_model_made_up_is_a_call(target: str) -> None:
    call = {"name": "multi_tool_use.parallel", "arguments": '{"tool_uses":[]}'}
    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": call}]}
    body = {"id": "a", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    encoded = dragoman.translate_response(body, source="openai-chat", target=target)
    (found,) = dragoman.decode_response(encoded.json(), target).tool_calls
    assert (found.name, found.arguments) == ("multi_tool_use.parallel", {"tool_uses": []})


def test_reasoning_beside_the_completion_tokens_is_counted_once() -> None:
    """xAI and Gemini: 10 + 5 + 20 are 35, and the total may not be recomputed as 15."""
    counts = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 35}
    details = {"completion_tokens_details": {"reasoning_tokens": 20}}
    choice = {"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}
    body = {"id": "a", "model": "grok-4", "choices": [choice], "usage": counts | details}
    usage = dragoman.translate_response(body, source="openai-chat", target="anthropic-messages").body["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (10, 25)


def test_an_id_of_a_stored_item_is_too_long_for_a_call() -> None:
    encoded = dragoman.encode_request(ir.Request("gpt-4o", (HI, *answered("fc_" + "a" * 50))), "openai-chat")
    _, assistant, result = encoded.body["messages"]
    assert assistant["tool_calls"][0]["id"] == result["tool_call_id"]
    assert len(result["tool_call_id"]) <= 40


# ── Messages ──────────────────────────────────────────────────────────────────────────────────────────────────


def to_messages(*messages: ir.Message, **fields: Any) -> dragoman.Encoded:
    request = ir.Request(fields.pop("model", CLAUDE), messages, max_output_tokens=4000, **fields)
    encoded = dragoman.encode_request(request, "anthropic-messages")
    version = encoded.headers["anthropic-version"]
    assert messages_judge.check_request(encoded.body, version=version) == ()
    return encoded


def test_no_turn_is_put_before_or_between() -> None:
    """Turns of ours would break the binding of thinking, and the cache."""
    encoded = to_messages(ir.Message("assistant", "Hello."), HI, ir.Message("user", "again"))
    assert [turn["role"] for turn in encoded.body["messages"]] == ["assistant", "user", "user"]
    assert encoded.losses == ()


def test_thinking_without_words_is_not_blank_text() -> None:
    thought = ir.Reasoning("", ir.Signature("anthropic", "EqQB"))
    redacted = ir.Reasoning("", ir.Signature("anthropic", "cmVk"), redacted=True)
    assistant = ir.Message("assistant", (thought, redacted, ir.Text(" \n"), ir.Text("Hello.")))
    encoded = to_messages(HI, assistant, HI)
    assert [block["type"] for block in encoded.body["messages"][1]["content"]] == [
        "thinking",
        "redacted_thinking",
        "text",
    ]


def test_ids_that_become_alike_stay_apart() -> None:
    encoded = to_messages(HI, *answered("a.b", "a:b", "a b"), tools=TOOLS)
    _, assistant, results = encoded.body["messages"]
    ids = [block["id"] for block in assistant["content"]]
    assert len(set(ids)) == 3
    assert [block["tool_use_id"] for block in results["content"]] == ids


@pytest.mark.parametrize(("kind", "value"), [("error", ""), ("text", ""), ("multimodal", None)])
def test_results_that_say_nothing(kind: ir.ResultKind, value: object) -> None:
    assistant, _ = answered("a")
    to_messages(HI, assistant, ir.Message("tool", (ir.ToolResult("a", "f", kind, value),)), tools=TOOLS)


@pytest.mark.parametrize("model", [CLAUDE, "claude-opus-5-5", "claude-fable-5-1", "claude-opus-4-7", "claude-sonnet-5"])
@pytest.mark.parametrize("settings", [ir.ReasoningSettings("off"), ir.ReasoningSettings(effort="none")])
def test_thinking_is_switched_off_where_it_can_be(model: str, settings: ir.ReasoningSettings) -> None:
    encoded = to_messages(HI, model=model, reasoning=settings)
    silenced = "thinking" in encoded.body or loss_pairs(encoded) == [("dropped", "$.reasoning")]
    assert silenced


def test_text_that_becomes_a_users_loses_its_citations() -> None:
    cited = ir.Text("x", (ir.Citation("https://a.example", "t"),))
    encoded = to_messages(ir.Message("user", (cited,)))
    assert encoded.body["messages"][0]["content"] == [{"type": "text", "text": "x"}]
    assert loss_pairs(encoded) == [("dropped", "$.messages[0].parts[0].citations")]


def test_a_container_is_its_bare_id() -> None:
    body = {
        "model": CLAUDE,
        "max_tokens": 5,
        "container": "container_1",
        "messages": [{"role": "user", "content": "x"}],
    }
    assert dragoman.translate_request(body, source="anthropic-messages", target="anthropic-messages").body == body


# ── generateContent ───────────────────────────────────────────────────────────────────────────────────────────


def candidate(*parts: Json, finish: str | None = None) -> Json:
    content = {"role": "model", "parts": list(parts)}
    return {"candidates": [{"content": content, "index": 0} | ({} if finish is None else {"finishReason": finish})]}


UNEXPECTED = candidate({"functionCall": {"name": "f", "args": {"a": 1}}}, finish="UNEXPECTED_TOOL_CALL")


@pytest.mark.parametrize("answer", [dragoman.decode_response(UNEXPECTED, "gemini"), streamed("gemini", UNEXPECTED)])
def test_a_call_that_the_service_did_not_expect_is_not_run(answer: ir.Completion) -> None:
    (call,) = all_calls(answer)
    assert call.incomplete
    assert answer.finish == ir.Finish("error", "UNEXPECTED_TOOL_CALL")
    assert dragoman.encode_response(dragoman.decode_response(UNEXPECTED, "gemini"), "gemini").body == UNEXPECTED


def test_zero_is_written_where_it_has_a_meaning() -> None:
    request = ir.Request("gemini-3-pro", (HI,), temperature=0.0, max_output_tokens=0, candidates=0)
    encoded = dragoman.encode_request(request, "gemini")
    assert gemini_judge.check_request(encoded.body) == ()
    assert encoded.body["generationConfig"] == {"temperature": 0.0}
    assert loss_pairs(encoded) == [("dropped", "$.candidates"), ("dropped", "$.max_output_tokens")]


def test_a_user_message_after_results_is_its_own_turn() -> None:
    request = ir.Request("gemini-3-pro", (HI, *answered("a"), ir.Message("user", "and then?")), TOOLS)
    encoded = dragoman.encode_request(request, "gemini")
    assert [len(turn["parts"]) for turn in encoded.body["contents"]] == [1, 1, 1, 1]
    assert gemini_judge.check_request(encoded.body, model="gemini-3-pro") == ()


@pytest.mark.parametrize("target", ["openai-chat", "anthropic-messages", "openai-responses", "bedrock-converse"])
def test_an_answer_that_goes_on_is_not_taken_for_its_end(target: str) -> None:
    encoded = dragoman.translate_response(
        candidate({"text": "a"}, finish="CONTINUATION"), source="gemini", target=target
    )
    finish = dragoman.decode_response(encoded.json(), target).finish
    assert finish is not None
    assert finish.reason == "pause" or "degraded" in {loss.severity for loss in encoded.losses}


def test_cache_settings_are_reported_where_there_is_no_cache() -> None:
    body = {"contents": [{"role": "user", "parts": [{"text": "x"}]}], "cachedContent": "cachedContents/1"}
    encoded = dragoman.translate_request(body, source="gemini", target="openai-chat", model="gpt-4o")
    assert loss_pairs(encoded) == [("dropped", "$.cachedContent")]


# ── Responses ─────────────────────────────────────────────────────────────────────────────────────────────────

SIGNED = ir.Reasoning("so", ir.Signature("openai-responses", "gAAAAABo", "rs_1"))
OUTPUT_TEXT = {"type": "output_text", "text": "hey", "annotations": []}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "completed",
    "output": [
        {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "x", "tools": []},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [OUTPUT_TEXT]},
    ],
}
CREATED = {"type": "response.created", "sequence_number": 0, "response": RESPONSE | {"status": "queued", "output": []}}


def test_items_that_were_never_done_come_from_the_last_event() -> None:
    added = {"type": "response.output_item.added", "output_index": 0, "item": RESPONSE["output"][0]}  # type: ignore[index]
    queued = CREATED | {"type": "response.queued"}
    answer = streamed("openai-responses", CREATED, queued, added, {"type": "response.completed", "response": RESPONSE})
    kinds = [type(part) for part in answer.messages[0].parts]
    assert kinds == [ir.ServerToolCall, ir.ServerToolResult, ir.Text]


def test_a_last_event_that_repeats_nothing_loses_nothing() -> None:
    done = {"type": "response.output_item.done", "output_index": 0, "item": RESPONSE["output"][1]}  # type: ignore[index]
    ended = {"type": "response.completed", "response": RESPONSE | {"output": None}}
    assert streamed("openai-responses", CREATED, done, ended).text == "hey"


def test_parallel_calls_stay_behind_their_reasoning_and_before_their_results() -> None:
    assistant, results = answered("c1", "c2")
    assistant = ir.Message("assistant", (SIGNED, *assistant.parts))
    turned = ir.Message("tool", results.parts[::-1])
    encoded = dragoman.encode_request(ir.Request("gpt-5", (HI, assistant, turned), TOOLS), "openai-responses")
    assert responses_judge.check_request(encoded.body) == ()
    told_items = [(item.get("type"), item.get("call_id")) for item in encoded.body["input"]]
    assert told_items[1:] == [
        ("reasoning", None),
        ("function_call", "c1"),
        ("function_call", "c2"),
        ("function_call_output", "c1"),
        ("function_call_output", "c2"),
    ]


def test_reasoning_has_a_summary_even_if_it_is_empty() -> None:
    thought = ir.Message("assistant", (ir.Reasoning("", SIGNED.signature), ir.Text("x")))
    encoded = dragoman.encode_request(ir.Request("gpt-5", (HI, thought, HI)), "openai-responses")
    assert encoded.body["input"][1]["summary"] == []
    assert "status" not in encoded.body["input"][1]


ODD_ITEMS: list[Json] = [
    {"role": "user", "content": "x"},
    {"type": "function_call", "call_id": "c", "name": "f", "namespace": "ns", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "y"},
    {"type": "message", "role": "assistant", "phase": "commentary", "content": [{"type": "output_text", "text": "a"}]},
    {"type": "tool_search_call", "call_id": "d", "execution": "client", "arguments": {"q": 1}, "status": "completed"},
    {"type": "local_shell_call_output", "id": "e", "output": "x"},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"},
]


def test_namespace_phase_and_items_of_one_api_return_and_are_reported_elsewhere() -> None:
    body = {"model": "gpt-5", "input": ODD_ITEMS}
    assert dragoman.translate_request(body, source="openai-responses", target="openai-responses").body == body
    encoded = dragoman.translate_request(body, source="openai-responses", target="openai-chat")
    assert chat_judge.check_request(encoded.body) == ()
    assert [path for _, path in loss_pairs(encoded)] == [
        "$.input[3].phase",
        "$.input[4]",  # the search was not answered
        "$.input[5]",  # the result of a call that is not there
        "$.input[6]",  # an opaque item is named as a whole
    ]
    assert encoded.body["messages"][1]["tool_calls"][0]["function"]["name"] == "ns__f"


def test_encrypted_reasoning_never_reaches_another_vendor() -> None:
    assistant = ir.Message("assistant", (SIGNED, ir.Text("x")))
    encoded = to_messages(HI, assistant, HI)
    assert b"gAAAAABo" not in encoded.json()
    assert loss_pairs(encoded) == [("dropped", "$.messages[1].parts[0]")]


# ── Converse ──────────────────────────────────────────────────────────────────────────────────────────────────


def to_converse(*messages: ir.Message, model: str = CONVERSE_CLAUDE, **fields: Any) -> dragoman.Encoded:
    encoded = dragoman.encode_request(ir.Request(model, messages, **fields), "bedrock-converse")
    assert converse_judge.check_request(encoded.body, model=model) == ()
    return encoded


def test_names_and_ids_have_a_length() -> None:
    long = "f" * 70
    call = ir.Message("assistant", (ir.ToolCall("x" * 80, long, {}),))
    result = ir.Message("tool", (ir.ToolResult("x" * 80, long, "text", "y"),))
    to_converse(HI, call, result, tools=(ir.ToolDefinition(long),))


def test_a_call_that_was_cut_is_replayed_as_an_object() -> None:
    cut = ir.Message("assistant", (ir.ToolCall("a", "f", arguments_text='{"a":', incomplete=True),))
    encoded = to_converse(HI, cut, answered("a")[1], tools=TOOLS)
    assert encoded.body["messages"][1]["content"][0]["toolUse"]["input"] == {"unparsed_arguments": '{"a":'}


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_json_cannot_say_are_refused(number: float) -> None:
    call = ir.Message("assistant", (ir.ToolCall("a", "f", {"x": number}),))
    with pytest.raises(dragoman.EncodeError, match="NaN and infinity"):
        to_converse(HI, call, answered("a")[1], tools=TOOLS)


@pytest.mark.parametrize(
    "fields",
    [{"outputConfig": {"effort": "low"}}, {"additionalModelRequestFields": {"output_config": {"effort": "low"}}}],
)
def test_effort_is_read_in_either_place_and_stays_there(fields: Json) -> None:
    body = {"messages": [{"role": "user", "content": [{"text": "x"}]}], **fields}
    settings = dragoman.decode_request(body, "bedrock-converse").reasoning
    assert settings is not None
    assert settings.effort == "low"
    assert dragoman.translate_request(body, source="bedrock-converse", target="bedrock-converse").body == body


# ── Ollama ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_results_stand_in_the_order_of_their_calls() -> None:
    assistant, results = answered("a", "b")
    turned = ir.Message("tool", results.parts[::-1])
    encoded = dragoman.encode_request(ir.Request("qwen3", (HI, assistant, turned), TOOLS), "ollama-chat")
    assert ollama_judge.check_request(encoded.body) == ()
    answers = encoded.body["messages"][2:]
    assert [(found["tool_call_id"], found["tool_name"]) for found in answers] == [("a", "f"), ("b", "f")]


@pytest.mark.parametrize("target", ["openai-chat", "anthropic-messages", "gemini", "bedrock-converse"])
def test_loading_a_model_is_not_a_conversation(target: str) -> None:
    with pytest.raises(dragoman.EncodeError, match="at least one message"):
        dragoman.translate_request({"model": CLAUDE, "messages": []}, source="ollama-chat", target=target)
