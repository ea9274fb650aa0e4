"""Failures that users of other libraries reported, tested as properties of all formats."""

from typing import Any, get_args

import pytest
from hypothesis import given
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.codecs.registry import codec
from dragoman.errors import EncodeError
from tests import strategies
from tests.support.bodies import WEATHER
from tests.support.cases import each
from tests.support.formats import CROSSINGS, FAMILY, FORMATS, PAIRS, refusals
from tests.support.promises import promise
from tests.support.trees import strings

USER = ir.Message("user", "go")
TOOLS = tuple(ir.ToolDefinition(name, parameters=WEATHER) for name in ("f", "g", "h"))


def request_of(**fields: Any) -> ir.Request:
    return ir.Request("some-model", (USER,), **fields)


def spoken_text(request: ir.Request) -> list[str]:
    """The assistant's text, part by part; some formats have refusals as text."""
    return [
        part.text
        for message in request.messages
        if message.role == "assistant"
        for part in message.parts
        if isinstance(part, ir.Text | ir.Refusal)
    ]


# ── calls and reasoning ───────────────────────────────────────────────────────────────────────────────────────


@promise("report:18")
@each(("source", "target"), PAIRS)
@each("count", [1, 2, 7])
def test_no_call_is_lost_or_added(source: str, target: str, count: int) -> None:
    calls = tuple(ir.ToolCall(f"call_{number}", "fgh"[number % 3], {"n": number}) for number in range(count))
    answer = ir.Completion((ir.Message("assistant", calls),), ir.Finish("tool_calls"), ir.Usage(), "r", "m", 1)
    there = dragoman.translate_response(
        dragoman.encode_response(answer, source).json(), source=source, target=target
    ).json()
    found = dragoman.decode_response(there, target)
    assert [(call.name, call.arguments) for call in found.tool_calls] == [(call.name, call.arguments) for call in calls]
    assert found.finish_reason == "tool_calls"


@promise("report:31", "report:28")
@given(request=strategies.REQUESTS)
@each("target", FORMATS)
def test_neither_reasoning_nor_calls_turn_into_words(target: str, request: ir.Request) -> None:
    sent = dragoman.decode_request(dragoman.encode_request(request, target).json(), target)
    assert "".join(spoken_text(sent)) == "".join(spoken_text(request))
    assert sum(len(message.tool_calls) for message in sent.messages) == sum(
        len(message.tool_calls) for message in request.messages
    )


@promise("report:49")
@pytest.mark.parametrize("target", FORMATS)
def test_results_out_of_order_find_name_and_id_of_their_calls(target: str) -> None:
    calls = (ir.ToolCall("call_1", "f", {}), ir.ToolCall("call_2", "g", {}), ir.ToolCall("call_3", "f", {}))
    results = tuple(ir.ToolResult(call.id, "unknown", "text", f"of {call.id}") for call in calls)
    request = ir.Request(
        "some-model",
        (USER, ir.Message("assistant", calls), ir.Message("tool", (results[2], results[0], results[1]))),
        TOOLS,
    )
    sent = dragoman.decode_request(dragoman.encode_request(request, target).json(), target)
    asked_for = [(call.id, call.name) for message in sent.messages for call in message.tool_calls]
    given_back = [(result.tool_call_id, result.name) for message in sent.messages for result in message.tool_results]
    assert given_back == asked_for
    values = [result.value for message in sent.messages for result in message.tool_results]
    assert values == ["of call_1", "of call_2", "of call_3"]


@promise("report:54")
@given(pair=strategies.SERVER_PAIRS)
@each("target", FORMATS)
def test_a_call_that_a_provider_ran_is_neither_run_nor_answered_elsewhere(target: str, pair: tuple[Any, ...]) -> None:
    request = ir.Request("some-model", (USER, ir.Message("assistant", (*pair, ir.Text("done"))), USER))
    encoded = dragoman.encode_request(request, target)
    sent = dragoman.decode_request(encoded.json(), target)
    assert all(not message.tool_calls and not message.tool_results for message in sent.messages)
    served = [
        part
        for message in sent.messages
        for part in message.parts
        if isinstance(part, ir.ServerToolCall | ir.ServerToolResult)
    ]
    translated = pair[0].origin in codec(target).profile.translates  # another API of the same vendor
    assert len(served) == (2 if pair[0].origin == FAMILY[target] or translated else 0)
    if not served:
        assert {"$.messages[1].parts[0]", "$.messages[1].parts[1]"} <= {loss.path for loss in encoded.losses}


@promise("report:55")
@pytest.mark.parametrize("target", FORMATS)
def test_results_mixed_with_text_all_cross_and_are_joined_again(target: str) -> None:
    turn = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "22"},
            {"type": "text", "text": "and now?"},
        ],
    }
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}]},
            turn,
        ],
        "tools": [{"name": "f", "input_schema": WEATHER}],
    }
    there = dragoman.translate_request(body, source="anthropic-messages", target=target).json()
    sent = dragoman.decode_request(there, target)
    assert [message.role for message in sent.messages] == ["user", "assistant", "tool", "user"]
    assert sent.messages[3].text == "and now?"
    back = dragoman.translate_request(there, source=target, target="anthropic-messages").body
    assert [block["type"] for block in back["messages"][2]["content"]] == ["tool_result", "text"]


# ── choice and tools ──────────────────────────────────────────────────────────────────────────────────────────


# Here the model is always free to choose: a request can only limit the tools.
WITHOUT_CHOICE = {"ollama-chat"}
ASKS_IN_WORDS = {"bedrock-converse"}


@promise("report:68")
@each(("source", "target"), PAIRS)
@each("mode", ["auto", "required"])
def test_a_choice_among_several_tools_stays_one_among_these(source: str, target: str, mode: Any) -> None:
    """They are named in the choice, or, if the format has no such choice, the only tools that are sent."""
    request = request_of(tools=TOOLS, tool_choice=ir.ToolChoice(mode, ("f", "g")))
    body = dragoman.encode_request(request, source).json()
    sent = dragoman.decode_request(dragoman.translate_request(body, source=source, target=target).json(), target)
    named = sent.tool_choice.names if sent.tool_choice is not None else ()
    assert set(named or [tool.name for tool in sent.tools]) == {"f", "g"}
    if mode == "required" and not WITHOUT_CHOICE & {source, target}:
        assert sent.tool_choice is not None
        assert sent.tool_choice.mode == "required"


@promise("report:69")
@each("target", FORMATS)
@each("with_calls", [False, True])
def test_choosing_no_tool_works_everywhere(target: str, *, with_calls: bool) -> None:
    call, result = ir.ToolCall("call_1", "f", {}), ir.ToolResult("call_1", "f", "text", "ok")
    history = (ir.Message("assistant", (call,)), ir.Message("tool", (result,))) if with_calls else ()
    request = ir.Request("some-model", (USER, *history), TOOLS, ir.ToolChoice("none"))
    encoded = dragoman.encode_request(request, target)
    assert refusals(encoded, target) == ()
    sent = dragoman.decode_request(encoded.json(), target)
    chosen_none = sent.tool_choice is not None and sent.tool_choice.mode == "none"
    # Converse has no such choice and requires the tools of a history: the model is asked in words, which is reported.
    is_asked_in_words = (
        with_calls and target in ASKS_IN_WORDS and "$.tool_choice" in {loss.path for loss in encoded.losses}
    )
    assert is_asked_in_words or chosen_none or (not sent.tools and (not with_calls or target in WITHOUT_CHOICE))


@promise("report:70")
@pytest.mark.parametrize("target", FORMATS)
def test_the_parallel_switch_forces_nothing(target: str) -> None:
    encoded = dragoman.encode_request(request_of(tools=TOOLS, parallel_tool_calls=False), target)
    sent = dragoman.decode_request(encoded.json(), target)
    assert sent.tool_choice is None or sent.tool_choice.mode == "auto"
    assert sent.parallel_tool_calls is False or "$.parallel_tool_calls" in {loss.path for loss in encoded.losses}
    alone = dragoman.encode_request(request_of(tool_choice=ir.ToolChoice("required"), parallel_tool_calls=True), target)
    assert refusals(alone, target) == ()


@promise("report:71")
@given(tool=strategies.PROVIDER_TOOLS)
@each("target", FORMATS)
def test_a_providers_own_tool_is_passed_on_mapped_or_reported(target: str, tool: ir.ProviderTool) -> None:
    encoded = dragoman.encode_request(request_of(tools=(tool,)), target)
    if tool.origin == FAMILY[target]:
        assert encoded.body["tools"] == [tool.definition]
    elif tool.origin in codec(target).profile.translates and "tools" in encoded.body:
        (sent,) = dragoman.decode_request(encoded.json(), target).tools
        assert sent.definition == tool.definition  # type: ignore[union-attr]
    else:
        reported = [loss for loss in encoded.losses if loss.path.startswith("$.tools[0]")]
        assert reported
        assert refusals(encoded, target) == ()


# These ignore references and limits: schemas are rewritten without them if possible, and the rest is reported.
READS_PART_OF_A_SCHEMA = {"ollama-chat"}


@promise("report:64", "report:65")
@pytest.mark.parametrize("target", sorted(set(FORMATS) - READS_PART_OF_A_SCHEMA))
def test_a_schema_that_the_target_takes_is_not_weakened(target: str) -> None:
    schema = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/node"}, "kind": {"enum": [1, "two", None]}},
        "required": ["tree"],
        "$defs": {"node": {"type": "object", "properties": {"label": {"type": "string", "minLength": 1}}}},
    }
    encoded = dragoman.encode_request(request_of(tools=(ir.ToolDefinition("f", parameters=schema),)), target)
    sent = dragoman.decode_request(encoded.json(), target)
    assert isinstance(sent.tools[0], ir.ToolDefinition)
    assert sent.tools[0].parameters == schema
    assert [loss for loss in encoded.losses if loss.path.startswith("$.tools")] == []


# ── structured output, stop reasons, caching ──────────────────────────────────────────────────────────────────


@promise("report:74")
@pytest.mark.parametrize("target", FORMATS)
def test_structured_output_is_never_a_tool_in_disguise(target: str) -> None:
    """No tool is smuggled in for it, so none can leak: the answer is text with an ordinary stop reason."""
    request = request_of(output=ir.StructuredOutput("schema", WEATHER, "weather", strict=True))
    encoded = dragoman.encode_request(request, target)
    assert "tools" not in encoded.body
    assert "tool_choice" not in encoded.body
    assert "toolConfig" not in encoded.body
    answer = ir.Completion((ir.Message("assistant", '{"city":"Oslo"}'),), ir.Finish("stop"), ir.Usage(), "r", "m", 1)
    for source in FORMATS:
        there = dragoman.translate_response(
            dragoman.encode_response(answer, source).json(), source=source, target=target, request=request
        ).json()
        found = dragoman.decode_response(there, target)
        assert (found.text, found.finish_reason, found.tool_calls) == ('{"city":"Oslo"}', "stop", ())


@promise("report:74")
@each(("source", "target"), CROSSINGS)
def test_structured_output_crosses_with_its_schema(source: str, target: str) -> None:
    request = request_of(output=ir.StructuredOutput("schema", WEATHER, "weather"))
    body = dragoman.encode_request(request, source).json()
    sent = dragoman.decode_request(dragoman.translate_request(body, source=source, target=target).json(), target)
    assert sent.output is not None
    assert sent.output.kind == "schema"
    # Gemini has no field for the name of a schema except its title.
    assert {key: value for key, value in sent.output.schema.items() if key != "title"} == WEATHER


REASONS: tuple[ir.FinishReason, ...] = get_args(ir.FinishReason)


@promise("report:79", "report:83")
@each(("source", "target"), PAIRS)
@each("reason", REASONS)
def test_every_finish_reason_crosses_or_is_reported(source: str, target: str, reason: ir.FinishReason) -> None:
    parts: dict[ir.FinishReason, Any] = {
        "tool_calls": (ir.ToolCall("call_1", "f", {}),),
        "refusal": (ir.Refusal("no"),),
    }
    message = ir.Message("assistant", parts.get(reason, (ir.Text("hi"),)))
    answer = ir.Completion((message,), ir.Finish(reason), ir.Usage(), "r", "m", 1)
    first = dragoman.encode_response(answer, source)
    known = dragoman.decode_response(first.json(), source)
    second = dragoman.translate_response(first.json(), source=source, target=target)
    found = dragoman.decode_response(second.json(), target)
    assert known.finish is not None
    assert found.finish is not None
    assert found.finish.raw
    reported = [
        loss
        for loss in (*first.losses, *second.losses)
        if loss.path == "$.status" or "finish" in loss.path or "reason" in loss.path.lower()
    ]
    assert found.finish_reason == reason or reported


@promise("report:79")
@pytest.mark.parametrize("source", FORMATS)
def test_an_answer_with_calls_finishes_with_tool_calls_whatever_it_states(source: str) -> None:
    answer = ir.Completion(
        (ir.Message("assistant", (ir.ToolCall("call_1", "f", {}),)),), ir.Finish("stop"), ir.Usage(), "r", "m", 1
    )
    for target in FORMATS:
        body = dragoman.encode_response(answer, source).json()
        there = dragoman.translate_response(body, source=source, target=target).json()
        assert dragoman.decode_response(there, target).finish_reason == "tool_calls"


@promise("report:81")
def test_cache_marks_cross_with_their_lifetime_four_at_most() -> None:
    parts = tuple(ir.Text(f"part {number}", cache=ir.Cache("1h" if number < 3 else None)) for number in range(5))
    encoded = dragoman.encode_request(
        ir.Request("some-model", (ir.Message("user", parts),), max_output_tokens=10), "anthropic-messages"
    )
    marks = [block.get("cache_control") for block in encoded.body["messages"][0]["content"]]
    assert len([mark for mark in marks if mark]) == 4
    assert {"type": "ephemeral", "ttl": "1h"} in marks
    assert len([loss for loss in encoded.losses if loss.path.endswith(".cache")]) == 1


@promise("report:62")
@pytest.mark.parametrize("client", ["openai-chat", "anthropic-messages"])
def test_an_id_gemini_gave_returns_and_one_we_made_up_does_not_reach_vertex(client: str) -> None:
    parts = [
        {"functionCall": {"id": "abc12345", "name": "f", "args": {}}},
        {"functionCall": {"name": "g", "args": {}}},
    ]
    answer = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
    completion = dragoman.decode_response(answer, "gemini")
    given, invented = completion.tool_calls
    assert (given.id, given.invented_id) == ("abc12345", False)
    assert invented.invented_id
    message = dragoman.decode_response(dragoman.encode_response(completion, client).json(), client).messages[0]
    results = tuple(ir.ToolResult(call.id, call.name, "text", "ok") for call in message.tool_calls)
    history = ir.Request(
        "gemini-2.5-flash", (USER, structs.replace(message, metadata=None), ir.Message("tool", results)), TOOLS
    )
    stored = dragoman.decode_request(dragoman.encode_request(history, client).json(), client)
    sent = dragoman.encode_request(stored, "vertex").body["contents"]
    assert "dgm_" not in "".join(strings(sent))


@promise("report:35", "report:45")
@pytest.mark.parametrize("target", FORMATS)
def test_strict_mode_names_the_first_thing_it_refuses(target: str) -> None:
    request = ir.Request(
        "some-model", (USER,), top_k=5, seed=7, frequency_penalty=0.5, candidates=3, user="u", cache=ir.Cache("1h")
    )
    with pytest.raises(EncodeError, match=r"^[a-z-]+: strict: .+ - at \$"):
        dragoman.encode_request(request, target, strict=True)
