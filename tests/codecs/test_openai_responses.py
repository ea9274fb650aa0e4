"""The openai-responses codec: items and turns, the two ids, state, tools, and what crosses to and from it."""

import json
from typing import Any

import pytest

import dragoman
from dragoman import ir
from dragoman.errors import DecodeError
from tests.support.calls import all_calls
from tests.support.cases import each
from tests.support.formats import FORMATS, MODELS
from tests.support.promises import promise
from tests.support.trees import difference

NAME = "openai-responses"
FAMILY = "openai-responses"
PIXEL = "data:image/png;base64,iVBORw0KGgo="
SEALED = "gAAAAABnc2VhbGVk"

USER: dict[str, Any] = {"role": "user", "content": "go"}
CALL = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": '{"a": 1}'}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SEALED}
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False}


def request_body(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "gpt-5.1", "input": list(items), **fields}


def read(*items: dict[str, Any], **fields: Any) -> ir.Request:
    return dragoman.decode_request(request_body(*items, **fields), NAME)


def written(*messages: ir.Message, **fields: Any) -> dict[str, Any]:
    """A conversation that came from nowhere, as this API gets it."""
    return dragoman.encode_request(ir.Request("gpt-5.1", messages, **fields), NAME).body


def returns(body: dict[str, Any]) -> str | None:
    again = dragoman.encode_request(dragoman.decode_request(body, NAME), NAME)
    return difference(body, json.loads(again.json()))


def paths(encoded: dragoman.Encoded) -> set[str]:
    return {loss.path for loss in encoded.losses}


# ── identity of what is spelled in more than one way ──────────────────────────────────────────────────────────

SPELLINGS: dict[str, dict[str, Any]] = {
    "a text": {"model": "m", "input": "hi"},
    "no input at all": {"model": "m", "prompt": {"id": "pmpt_1"}},
    "an input that is null": {"model": "m", "input": None, "prompt": {"id": "pmpt_1"}},
    "an empty list": {"model": "m", "input": []},
    "instructions and a system message": request_body({"role": "system", "content": "b"}, USER, instructions="a"),
    "empty instructions": request_body(USER, instructions=""),
    "typed and untyped messages": request_body({"type": "message", **USER}, USER),
    "assistants one after the other": request_body(
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "c"}, {"type": "refusal", "refusal": "d"}]},
        {"type": "message", "role": "assistant", "content": "e"},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "f"}]},
        {"role": "assistant", "content": "g", "phase": "commentary"},
    ),
    "an assistant that says nothing": request_body({"role": "assistant", "content": []}, USER),
    "parts where they do not belong": request_body(
        {"role": "user", "content": [{"type": "output_text", "text": "a", "annotations": []}]},
        {"role": "assistant", "content": [{"type": "input_text", "text": "b"}]},
    ),
    "reasoning of every kind": request_body(
        USER,
        REASONING,
        {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "a"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": t} for t in "ab"], "content": []},
        {
            "type": "reasoning",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "raw"}],
            "status": "completed",
        },
        {"type": "reasoning", "id": "rs_3", "summary": [], "encrypted_content": None},
    ),
    "calls of every kind": request_body(
        CALL,
        {**CALL, "id": "fc_1", "status": "completed", "namespace": "n", "caller": {"type": "direct"}},
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "sql", "input": "x"},
        {"type": "function_call", "name": "f", "arguments": {"a": 1.0}, "call_id": "d"},
        {"type": "function_call", "name": "f", "arguments": ""},
    ),
    "outputs of every kind": request_body(
        CALL,
        {**OUTPUT, "status": "completed", "name": "f", "id": "fco_1"},
        {"type": "function_call_output", "output": "no id"},
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "x"}]},
        {"type": "function_call_output", "call_id": "call_1", "output": []},
    ),
    "items of the provider": request_body(
        {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "t", "arguments": "{}", "output": "x"},
        {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
        {"type": "image_generation_call", "id": "ig_1"},
        {"type": "tool_search_call", "arguments": {"q": 1}, "call_id": None, "execution": "server"},
        {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": [TOOL]},
        {"type": "computer_call", "id": "cu_1", "call_id": "c", "pending_safety_checks": [], "status": "completed"},
        {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot"}},
        {"type": "local_shell_call_output", "id": "call_2", "output": "{}"},
        {"type": "program", "id": "cm_1", "call_id": "p", "code": "x", "fingerprint": "y"},
        {"type": "program_output", "id": "cmo_1", "call_id": "p", "result": "z", "status": "completed"},
        {"type": "additional_tools", "role": "developer", "tools": [TOOL]},
        {"type": "item_reference", "id": "msg_9"},
        {"id": "msg_10"},
        {"type": "something_new", "x": {"y": [1.0]}},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": SEALED},
        {"type": "compaction_trigger"},
    ),
    "every choice": request_body(USER, tool_choice={"type": "mcp", "server_label": "s", "name": "t"}),
    "a hosted tool chosen": request_body(USER, tool_choice={"type": "web_search_preview"}),
    "several allowed": request_body(
        USER,
        tool_choice={"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]},
    ),
    "settings that are null": request_body(
        USER, store=None, reasoning={"effort": None, "summary": None}, text=None, tools=[]
    ),
    "a format and its verbosity": request_body(USER, text={"format": {"type": "text"}, "verbosity": "low"}),
    "a schema without a name": request_body(
        USER, text={"format": {"type": "json_schema", "schema": {"type": "object"}}}
    ),
}


@promise("law:1-identity")
@each("body", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_a_body_comes_back_as_it_was(body: dict[str, Any]) -> None:
    assert returns(body) is None


# ── turns ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_items_of_one_turn_are_one_message_in_order() -> None:
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}
    request = read(USER, REASONING, message, CALL, {**CALL, "call_id": "call_2"}, OUTPUT, USER)
    assert [turn.role for turn in request.messages] == ["user", "assistant", "tool", "user"]
    kinds = [type(part) for part in request.messages[1].parts]
    assert kinds == [ir.Reasoning, ir.Text, ir.ToolCall, ir.ToolCall]


def test_instructions_are_the_first_system_message() -> None:
    request = read({"role": "system", "content": "second"}, USER, instructions="first")
    assert [(message.role, message.text) for message in request.messages[:2]] == [
        ("system", "first"),
        ("system", "second"),
    ]


def test_a_result_takes_the_name_of_its_call_and_errors_are_errors() -> None:
    request = read(USER, CALL, {**OUTPUT, "output": '{"error":"no"}'})
    assert request.messages[2].tool_results[0] == ir.ToolResult("call_1", "f", "error", "no")


@promise("report:56")
def test_images_and_files_stay_in_the_output() -> None:
    parts = [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": PIXEL, "detail": "auto"}]
    (result,) = read(USER, CALL, {**OUTPUT, "output": parts}).messages[2].tool_results
    assert [type(part) for part in result.parts] == [ir.Text, ir.Image]
    there = dragoman.translate_request(
        request_body(USER, CALL, {**OUTPUT, "output": parts}, tools=[TOOL]), source=NAME, target="anthropic-messages"
    ).body
    assert [block["type"] for block in there["messages"][2]["content"][0]["content"]] == ["text", "image"]


# ── the two ids ───────────────────────────────────────────────────────────────────────────────────────────────


@promise("report:61")
@pytest.mark.parametrize("target", [name for name in FORMATS if name != NAME])
def test_the_id_of_an_item_is_never_the_id_of_a_call(target: str) -> None:
    body = request_body(USER, {**CALL, "id": "fc_1"}, OUTPUT, tools=[TOOL])
    there = dragoman.translate_request(body, source=NAME, target=target, model=MODELS[target])
    assert "fc_1" not in there.json().decode()
    request = dragoman.decode_request(body, NAME)
    assert request.messages[1].tool_calls[0].id == request.messages[2].tool_results[0].tool_call_id == "call_1"


@promise("report:61")
def test_a_client_gets_both_ids_with_the_prefix_of_their_kind() -> None:
    parts = (ir.Reasoning("hm"), ir.Text("hi"), ir.ToolCall("toolu_1", "f", {}), ir.ToolCall("toolu_2", "g", {}))
    completion = ir.Completion((ir.Message("assistant", parts),), ir.Finish("tool_calls"), None, "answer_1", "m", 1)
    items = dragoman.encode_response(completion, NAME).body["output"]
    assert [item["id"].partition("_")[0] for item in items] == ["rs", "msg", "fc", "fc"]
    assert len({item["id"] for item in items}) == 4
    assert [item["call_id"] for item in items[2:]] == ["toolu_1", "toolu_2"]


@promise("report:84")
def test_without_stored_state_ids_are_left_out_and_encrypted_reasoning_stays() -> None:
    answer = {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "model": "m",
        "output": [
            REASONING,
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "phase": "commentary",
                "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}],
            },
            {**CALL, "id": "fc_1", "status": "completed", "namespace": "n"},
        ],
    }
    answered = dragoman.decode_response(answer, NAME).messages[0]
    result = ir.Message("tool", (ir.ToolResult("call_1", "f", "text", "ok"),))
    body = written(ir.Message("user", "go"), answered, result)
    assert body["store"] is False
    assert body["include"] == ["reasoning.encrypted_content"]
    reasoning, message, call, _ = body["input"][1:]
    assert reasoning == REASONING
    assert "id" not in message
    assert message["phase"] == "commentary"
    assert call == {**CALL, "namespace": "n"}


def test_reasoning_that_nothing_follows_is_not_sent() -> None:
    thought = ir.Reasoning("", ir.Signature(FAMILY, SEALED, "rs_1"))
    request = ir.Request("gpt-5.1", (ir.Message("user", "go"), ir.Message("assistant", (ir.Text("a"), thought))))
    encoded = dragoman.encode_request(request, NAME)
    assert [item.get("type") for item in encoded.body["input"]] == [None, None]
    assert "$.messages[1].parts[1]" in paths(encoded)


# ── state and defaults ────────────────────────────────────────────────────────────────────────────────────────


@each("target", [name for name in FORMATS if name != NAME])
@each("state", [{"previous_response_id": "resp_1"}, {"conversation": {"id": "c"}}, {"store": True}])
def test_state_that_the_target_does_not_keep_is_reported(target: str, state: dict[str, Any]) -> None:
    if "store" in state and target in {"openai-chat", "gemini", "gemini-interactions"}:
        encoded = dragoman.translate_request({"model": "gpt-4.1", "input": "go", **state}, source=NAME, target=target)
        assert encoded.body["store"] is True
        return
    encoded = dragoman.translate_request(request_body(USER, **state), source=NAME, target=target, model=MODELS[target])
    assert f"$.{next(iter(state))}" in paths(encoded)


def test_not_storing_is_not_a_loss() -> None:
    body = request_body(USER, store=False, include=["reasoning.encrypted_content"])
    encoded = dragoman.translate_request(body, source=NAME, target="openai-chat", model="gpt-4.1")
    assert encoded.losses == ()


def test_defaults_that_differ_from_chat_are_written() -> None:
    chat = {
        "model": "gpt-4.1",
        "messages": [{"role": "user", "content": "go"}],
        "tools": [{"type": "function", "function": {"name": "f"}}],
    }
    body = dragoman.translate_request(chat, source="openai-chat", target=NAME).body
    assert body["store"] is False
    assert body["tools"] == [
        {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False}
    ]
    assert "include" not in body  # a model that does not reason refuses to be asked for it


@promise("report:73")
@pytest.mark.parametrize("source", [name for name in FORMATS if name != NAME])
def test_the_name_of_a_tool_is_beside_its_type(source: str) -> None:
    request = ir.Request(MODELS[source], (ir.Message("user", "go"),), (ir.ToolDefinition("f", "does f"),))
    body = dragoman.encode_request(request, source).json()
    (tool,) = dragoman.translate_request(body, source=source, target=NAME).body["tools"]
    assert (tool["type"], tool["name"], tool["description"]) == ("function", "f", "does f")
    assert "function" not in tool


@promise("report:85")
def test_stop_sequences_and_other_missing_settings_are_reported() -> None:
    request = ir.Request(
        "gpt-4.1", (ir.Message("user", "go"),), stop=("END",), seed=1, top_k=2, presence_penalty=0.1, candidates=2
    )
    encoded = dragoman.encode_request(request, NAME)
    assert {"$.stop", "$.seed", "$.top_k", "$.presence_penalty", "$.candidates"} <= paths(encoded)


@promise("report:42")
def test_a_client_that_asks_for_thinking_gets_it() -> None:
    claude = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 4000,
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "messages": [{"role": "user", "content": "go"}],
    }
    body = dragoman.translate_request(claude, source="anthropic-messages", target=NAME, model="gpt-5.1").body
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}


@pytest.mark.parametrize(
    ("model", "effort", "sent"),
    [("gpt-5", "none", "minimal"), ("gpt-5.1", "max", "high"), ("o3", "minimal", "low"), ("some-model", "max", "max")],
)
def test_an_effort_that_the_model_lacks_becomes_the_nearest(model: str, effort: str, sent: str) -> None:
    settings = ir.ReasoningSettings(effort=effort)
    encoded = dragoman.encode_request(ir.Request(model, (ir.Message("user", "go"),), reasoning=settings), NAME)
    assert encoded.body["reasoning"] == {"effort": sent}
    assert ("$.reasoning.effort" in paths(encoded)) == (sent != effort)


def test_json_mode_needs_the_word_in_a_message_not_in_the_instructions() -> None:
    output = ir.StructuredOutput("json")
    body = written(ir.Message("system", "Speak JSON."), ir.Message("user", "go"), output=output)
    assert "instructions" not in body
    assert body["input"][0] == {"role": "system", "content": "Speak JSON."}
    assert written(ir.Message("user", "go"), output=output)["input"][0]["content"] == "Answer in JSON."


# ── custom tools ──────────────────────────────────────────────────────────────────────────────────────────────

CUSTOM = {
    "type": "custom",
    "name": "sql",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
}


def test_a_grammar_is_flat_here_and_nested_in_chat() -> None:
    chat = dragoman.translate_request(request_body(USER, tools=[CUSTOM]), source=NAME, target="openai-chat").body
    grammar = {"syntax": "lark", "definition": "start: /.+/"}
    assert chat["tools"][0]["custom"]["format"] == {"type": "grammar", "grammar": grammar}
    assert dragoman.translate_request(chat, source="openai-chat", target=NAME).body["tools"][0] == CUSTOM


@promise("report:20")
@pytest.mark.parametrize("target", [name for name in FORMATS if name != NAME])
def test_a_custom_tool_crosses_and_comes_back_as_one(target: str) -> None:
    request = read(USER, tools=[CUSTOM])
    call = ir.ToolCall("call_1", "sql", {"input": "SELECT 1"})
    custom = ir.ToolCall("call_1", "sql", {"input": "SELECT 1"}, "SELECT 1", custom=True)
    expected = custom if target == "openai-chat" else call
    completion = ir.Completion(
        (ir.Message("assistant", (expected,)),), ir.Finish("tool_calls"), ir.Usage(), "r", "m", 1
    )
    answer = dragoman.encode_response(completion, target).json()
    (item,) = dragoman.translate_response(answer, source=target, target=NAME, request=request).body["output"]
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "sql", "SELECT 1")
    history = request_body(USER, item, {"type": "custom_tool_call_output", "call_id": item["call_id"], "output": "1"})
    there = dragoman.translate_request(
        {**history, "tools": [CUSTOM]}, source=NAME, target=target, model=MODELS[target]
    ).json()
    back = dragoman.translate_request(there, source=target, target=NAME, model="gpt-5.1").body
    kinds = [item["type"] for item in back["input"][1:]]
    assert kinds in (
        ["custom_tool_call", "custom_tool_call_output"],
        ["function_call", "function_call_output"],
    )


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────


def response_body(*output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": list(output), **fields}


def answered(*output: dict[str, Any], **fields: Any) -> ir.Completion:
    return dragoman.decode_response(response_body(*output, **fields), NAME)


TEXT = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
REFUSED = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}


@promise("report:79")
@pytest.mark.parametrize(
    ("output", "fields", "reason"),
    [
        ([TEXT], {}, "stop"),
        ([TEXT, CALL], {}, "tool_calls"),
        ([{"type": "computer_call", "id": "cu_1", "call_id": "c"}], {}, "pause"),
        ([{"type": "web_search_call", "id": "ws_1"}, TEXT], {}, "stop"),
        ([REFUSED], {}, "refusal"),
        ([TEXT], {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ([TEXT], {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
        ([TEXT], {"status": "incomplete", "incomplete_details": {"reason": "new"}}, "unknown"),
        ([], {"status": "failed", "error": {"code": "server_error", "message": "no"}}, "error"),
        ([], {"status": "queued"}, "error"),
    ],
)
def test_the_finish_reason_follows_from_status_and_items(
    output: list[dict[str, Any]], fields: dict[str, Any], reason: str | None
) -> None:
    assert answered(*output, **fields).finish_reason == reason


def test_a_call_that_was_cut_is_incomplete() -> None:
    early = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    (call,) = all_calls(answered({**CALL, "arguments": '{"a', "status": "incomplete"}, **early))
    assert call.incomplete


@pytest.mark.parametrize("target", [name for name in FORMATS if name != NAME])
def test_a_call_that_was_cut_is_run_by_no_client(target: str) -> None:
    """Its arguments may parse, and only the finish reason of other formats says that the call was cut."""
    body = response_body({**CALL, "status": "incomplete"})
    crossed = dragoman.translate_response(body, source=NAME, target=target)
    assert dragoman.decode_response(crossed.body, target).finish_reason == "length"
    assert not dragoman.decode_response(crossed.body, target).tool_calls


def test_a_call_that_a_program_made_waits_for_its_result() -> None:
    """In a completed answer it stays `in_progress`, as recorded; in another one, it was cut."""
    call = {**CALL, "status": "in_progress", "caller": {"type": "program", "caller_id": "prog_1"}}
    completion = answered(call)
    assert completion.finish_reason == "tool_calls"
    assert len(completion.tool_calls) == 1
    early = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    assert not answered(call, **early).tool_calls


def test_a_tool_of_the_provider_is_a_call_and_its_result() -> None:
    item = {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "t", "arguments": "{}", "output": "x"}
    call, result = answered(item).messages[0].parts
    assert isinstance(call, ir.ServerToolCall)
    assert isinstance(result, ir.ServerToolResult)
    assert (call.id, call.name, result.tool_call_id, result.block) == ("mcp_1", "t", "mcp_1", {"output": "x"})


@promise("report:82")
def test_citations_keep_their_places() -> None:
    annotation = {"type": "url_citation", "start_index": 0, "end_index": 2, "url": "https://example.org", "title": "E"}
    text = {"type": "output_text", "text": "hi there", "annotations": [annotation]}
    completion = answered({**TEXT, "content": [text]})
    (part,) = completion.messages[0].parts
    assert isinstance(part, ir.Text)
    (citation,) = part.citations
    assert (citation.url, citation.title, citation.start, citation.end) == ("https://example.org", "E", 0, 2)
    foreign = ir.Text("hi there", (ir.Citation("https://example.org", "E", start=0, end=2),))
    body = dragoman.encode_response(
        ir.Completion((ir.Message("assistant", (foreign,)),), ir.Finish("stop"), None, "r", "m", 1), NAME
    ).body
    assert body["output"][0]["content"][0]["annotations"] == [annotation]


@promise("law:6-owed-back", "report:38")
@pytest.mark.parametrize(
    "part",
    [
        ir.Reasoning("hm", ir.Signature("anthropic", "a:b%3A")),
        ir.Reasoning("", ir.Signature("anthropic", "c2ln"), redacted=True),
        ir.ToolCall("call_1", "f", {}, signature=ir.Signature("google", "c2ln")),
        ir.Text("hi", signature=ir.Signature("google", "c2ln")),
        ir.Text("", signature=ir.Signature("google", "c2ln")),
    ],
    ids=repr,
)
def test_data_of_others_is_carried_by_the_client(part: Any) -> None:
    message = ir.Message("assistant", (ir.Text("before"), part, ir.Text("after")))
    completion = ir.Completion((message,), ir.Finish("stop"), None, "r", "m", 1)
    items = dragoman.encode_response(completion, NAME).body["output"]
    again: Any = dragoman.decode_request(request_body(USER, *items, USER), NAME).messages[1].parts[1]
    assert type(again) is type(part)
    assert again.signature == part.signature
    assert getattr(again, "redacted", False) == getattr(part, "redacted", False)
    assert returns(request_body(USER, *items, USER)) is None


# ── what is wrong ─────────────────────────────────────────────────────────────────────────────────────────────


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize(
    ("body", "path"),
    [
        (request_body({"role": "tool", "content": "x"}), "$.input[0].role"),
        (request_body(USER, {"role": "user"}), "$.input[1].content"),
        (request_body({"type": "function_call_output", "call_id": "c"}), "$.input[0].output"),
        (request_body(USER, {**CALL, "name": 3}), "$.input[1].name"),
        (request_body({}), "$.input[0]"),
        (request_body(3), "$.input[0]"),  # type: ignore[arg-type]
        (request_body(USER, tool_choice="any"), "$.tool_choice"),
        ({"model": 3, "input": "x"}, "$.model"),
    ],
)
def test_an_error_names_the_place(body: dict[str, Any], path: str) -> None:
    with pytest.raises(DecodeError) as raised:
        dragoman.decode_request(body, NAME)
    assert raised.value.path == path


def test_losses_name_the_path_of_the_lost_value() -> None:
    body = request_body(
        {"type": "message", "role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]},
        REASONING,
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {**CALL, "namespace": "n"},
        OUTPUT,
        USER,
        instructions="a",
        tools=[TOOL, {"type": "web_search"}],
    )
    encoded = dragoman.translate_request(body, source=NAME, target="gemini", model="gemini-2.5-flash")
    expected = {"$.input[0].content[0]", "$.input[1]", "$.input[2]", "$.tools[1]"}
    assert expected <= {path.partition(".file")[0] for path in paths(encoded)}


def test_errors_are_those_of_chat() -> None:
    body = {
        "error": {
            "message": "No such model",
            "type": "invalid_request_error",
            "param": "model",
            "code": "model_not_found",
        }
    }
    failure = dragoman.decode_error(body, NAME, status=400)
    assert (failure.kind, failure.parameter) == ("not_found", "model")
    assert dragoman.encode_error(failure, NAME).body == body
    assert dragoman.translate_error(body, source=NAME, target="openai-chat", status=400).body == body


def test_exact_json_stays_exact() -> None:
    tool = b'{"type":"function","name":"f","parameters":{"type":"object","x":1e400,"y":[1.0]},"strict":null}'
    body = b'{"model":"m","input":[{"role":"user","content":"hi"}],"tools":[' + tool + b"]}"
    again = dragoman.encode_request(dragoman.decode_request(body, NAME), NAME).json()
    assert b'{"type":"object","x":1e400,"y":[1.0]}' in again


# ── keys and items that are only passed on ────────────────────────────────────────────────────────────────────

STRAY: dict[str, dict[str, Any]] = {
    "a message with a name": {**USER, "name": "ann"},
    "a message with a call's id": {**USER, "call_id": "call_9"},
    "a text of the assistant with a name": {"role": "assistant", "content": "yes", "name": "bot"},
    "a call with content": {**CALL, "content": [{"type": "input_text", "text": "x", "mark": 1}]},
    "a call with a caller": {**CALL, "caller": {"type": "program", "caller_id": "c"}, "async": True},
    "reasoning with a phase": {**REASONING, "phase": "analysis"},
}


@pytest.mark.parametrize("item", STRAY.values(), ids=STRAY)
def test_members_that_an_items_type_has_no_use_for_are_kept(item: dict[str, Any]) -> None:
    assert returns(request_body(USER, item, USER)) is None


@pytest.mark.parametrize("item", [STRAY["a message with a name"], STRAY["a message with a call's id"]])
def test_members_that_an_items_type_has_no_use_for_are_losses_elsewhere(item: dict[str, Any]) -> None:
    encoded = dragoman.translate_request(request_body(item), source=NAME, target="openai-chat")
    assert paths(encoded) == {f"$.input[0].{key}" for key in item.keys() - USER.keys()}


PROGRAM = {"type": "program", "caller_id": "prog_1"}
ENDED = {"type": "exit", "exit_code": 0}
PAIRS_OF_CLIENT_TOOLS: dict[str, tuple[dict[str, Any], dict[str, Any], set[str]]] = {
    "shell": (
        {
            "type": "shell_call",
            "call_id": "c1",
            "status": "completed",
            "action": {"commands": ["ls"]},
            "environment": {"type": "local", "skills": [{"name": "s", "description": "d", "path": "/s"}]},
            "caller": PROGRAM,
        },
        {
            "type": "shell_call_output",
            "call_id": "c1",
            "output": [{"stdout": "a", "stderr": "", "outcome": ENDED}],
            "max_output_length": 99,
            "caller": PROGRAM,
        },
        {"$.input[1].environment", "$.input[1].caller", "$.input[2].max_output_length", "$.input[2].caller"},
    ),
    "shell, nothing further": (
        {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}, "environment": {"type": "local"}},
        {"type": "shell_call_output", "call_id": "c1", "output": [], "max_output_length": None, "caller": None},
        set(),
    ),
    "patch": (
        {
            "type": "apply_patch_call",
            "call_id": "c1",
            "status": "completed",
            "operation": {"type": "delete_file", "path": "a"},
            "caller": PROGRAM,
        },
        {"type": "apply_patch_call_output", "call_id": "c1", "status": "completed", "output": "", "caller": PROGRAM},
        {"$.input[1].caller", "$.input[2].caller"},
    ),
    "screen": (
        {
            "type": "computer_call",
            "id": "cu_1",
            "call_id": "c1",
            "status": "completed",
            "actions": [{"type": "screenshot"}],
            "pending_safety_checks": [{"id": "sc_1", "code": "malicious", "message": "careful"}],
        },
        {
            "type": "computer_call_output",
            "call_id": "c1",
            "output": {"type": "computer_screenshot", "image_url": PIXEL},
            "acknowledged_safety_checks": [{"id": "sc_1", "code": "malicious", "message": "careful"}],
        },
        {"$.input[1].pending_safety_checks", "$.input[2].acknowledged_safety_checks"},
    ),
    "approval": (
        {
            "type": "mcp_approval_request",
            "id": "mcpr_1",
            "server_label": "s",
            "name": "go",
            "arguments": "{}",
            "agent": {"agent_name": "a"},
        },
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True, "agent": {"name": "a"}},
        {"$.input[1].agent", "$.input[2].agent"},
    ),
}


@pytest.mark.parametrize("target", ["openai-chat", "anthropic-messages", "gemini", "ollama-chat", "cohere-chat"])
@pytest.mark.parametrize("case", PAIRS_OF_CLIENT_TOOLS)
def test_members_of_items_that_the_client_answers_are_losses_elsewhere(case: str, target: str) -> None:
    call, output, lost = PAIRS_OF_CLIENT_TOOLS[case]
    body = request_body(USER, call, output)
    assert returns(body) is None
    encoded = dragoman.translate_request(body, source=NAME, target=target)
    found = {path for path in paths(encoded) if path.startswith(("$.input[1].", "$.input[2]."))}
    assert found - {"$.input[2].output.image_url"} == lost


def test_reasoning_with_a_summary_and_content_says_which_of_them_does_not_cross() -> None:
    summary = [{"type": "summary_text", "text": "in short"}]
    for text, lost in (("because", 1), ("in short", 0)):
        content = [{"type": "reasoning_text", "text": text}]
        body = response_body({**REASONING, "summary": summary, "content": content})
        assert dragoman.translate_response(body, source=NAME, target=NAME).body == body
        losses = dragoman.translate_response(body, source=NAME, target="ollama-chat").losses
        assert len([loss for loss in losses if loss.path == "$.output[0].summary"]) == lost


def test_a_message_that_is_kept_whole_keeps_unknown_keys_of_its_parts() -> None:
    image = {"type": "input_image", "image_url": PIXEL, "mark": {"a": [1]}}
    assert returns(request_body(USER, {"role": "assistant", "content": [image]}, USER)) is None


def test_losses_of_whole_items_name_the_item() -> None:
    tools = {"type": "additional_tools", "role": "developer", "tools": [TOOL]}
    screen = {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot"}}
    body = request_body({"role": "system", "content": "s"}, USER, tools, {**USER, "content": "on"}, screen)
    for target in ("openai-chat", "anthropic-messages", "gemini"):
        found = paths(dragoman.translate_request(body, source=NAME, target=target))
        assert {"$.input[2].tools[0]", "$.input[4]"} <= found


def test_losses_of_text_name_the_content_as_it_was_spelled() -> None:
    cited = {"type": "file_citation", "file_id": "file-1", "filename": "a.txt", "index": 0}
    content = [{"type": "output_text", "text": "a"}, {"type": "output_text", "text": "b", "annotations": [cited]}]
    body = request_body(USER, CALL, OUTPUT, {"type": "message", "role": "assistant", "content": content}, USER)
    encoded = dragoman.translate_request(body, source=NAME, target="openai-chat")
    assert any(path.startswith("$.input[3].content[1].annotations") for path in paths(encoded))


KEYS = {
    "conversation": {"id": "conv_1"},
    "prompt_cache_key": "k",
    "service_tier": "flex",
    "text": {"verbosity": "low"},
    "reasoning": {"effort": "low", "context": "auto", "mode": "pro"},
    "truncation": "auto",
}


@pytest.mark.parametrize("key", KEYS)
def test_settings_of_this_family_return_and_are_losses_elsewhere(key: str) -> None:
    body = request_body({"type": "message", **USER}, CALL, OUTPUT, **{key: KEYS[key]})
    assert returns(body) is None
    encoded = dragoman.translate_request(body, source=NAME, target="anthropic-messages")
    assert any(path.startswith(f"$.{key}") for path in paths(encoded))


TOOLS = (
    {"type": "web_search", "user_location": {"type": "approximate", "country": "DE"}},
    {"type": "mcp", "server_label": "docs", "server_url": "https://x", "require_approval": "never"},
    {"type": "function", "name": "g", "description": None, "parameters": {"type": "object"}, "defer_loading": True},
    {"type": "custom", "name": "c", "format": {"type": "text"}, "async": True},
    {"type": "function", "function": {"name": "nested"}},
    {"type": "of_tomorrow", "any": [1]},
)


def test_tools_of_every_type_return() -> None:
    assert returns(request_body(USER, tools=list(TOOLS))) is None
    assert [tool.name for tool in read(USER, tools=list(TOOLS)).tools] == [
        "web_search", "docs", "g", "c", "function", "of_tomorrow"
    ]  # fmt: skip
