"""One value at a time: the same bytes as in a whole request, both ways, for every format."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.codecs.arguments import UNPARSED_KEY
from dragoman.codecs.registry import layout
from dragoman.errors import DecodeError, DragomanError, EncodeError, LossRefused
from dragoman.ir.values import encode_json
from tests import strategies
from tests.support.bodies import REQUESTS, RESPONSES, Sample
from tests.support.cases import each
from tests.support.formats import FORMATS, MODELS, refusals
from tests.support.promises import promise
from tests.test_specification_tables import RECEIVED

EVERY = dragoman.formats(None)
DRAWN = (*FORMATS, *dragoman.formats("record"), "mistral", "gemini-openai")
"""Formats that generated values go to: all that have a codec of their own, and two servers with restrictions."""
TEXT_TOO = st.sampled_from((encode_json, lambda value: encode_json(value).decode(), lambda value: value))

# ── the same as in a whole body ───────────────────────────────────────────────────────────────────────────────


def without_gaps(request: ir.Request) -> bool:
    """Whether the messages are a valid request: they start with the user and do not end with the assistant."""
    roles = [message.role for message in request.messages if message.role != "system"]
    return roles[:1] == ["user"] and roles[-1:] != ["assistant"]


@promise("value:same-code")
@given(request=strategies.ANY_REQUESTS)
@each("target", DRAWN)
def test_messages_are_those_of_a_whole_request(target: str, request: ir.Request) -> None:
    bare = ir.Request(request.model, request.messages)
    if not without_gaps(bare):
        return
    try:
        whole = dragoman.encode_request(bare, target).body[layout(target).messages]
    except EncodeError:
        return
    alone = dragoman.encode_messages(bare.messages, target, model=bare.model)
    if layout(target).system is None and bare.messages[0].role == "system":
        return  # Responses has a field for system text at the front, and accepts it in the list too
    assert alone.value == whole


@promise("value:same-code", "law:3-legality")
@given(request=strategies.REQUESTS)
@each("target", FORMATS)
def test_a_body_put_together_from_single_values_is_legal(target: str, request: ir.Request) -> None:
    model = MODELS[target]
    body = dragoman.encode_request(ir.Request(model, (ir.Message("user", "hi"),)), target).body
    where = layout(target)
    pieces: list[Any] = []
    try:
        for message in request.messages:
            if message.role != "system":
                pieces += dragoman.encode_message(message, target, model=model).value
    except EncodeError:
        return
    if not without_gaps(request):
        return
    called = dict.fromkeys(call.name for message in request.messages for call in message.tool_calls)
    tools = dragoman.encode_tool_definitions([ir.ToolDefinition(name) for name in called], target, model=model).value
    body[where.messages] = pieces
    if tools:
        holder = body
        for key in where.tools[:-1]:
            holder = holder.setdefault(key, {})
        holder[where.tools[-1]] = tools
    encoded = dragoman.encode_request(ir.Request(model, (ir.Message("user", "hi"),)), target)
    made = dragoman.Encoded(encode_json(body), (), encoded.path, encoded.headers)
    judged = refusals(made, target, model=model)
    assert judged == () or refusals(dragoman.encode_request(structs.replace(request, model=model), target), target)


# ── there and back ────────────────────────────────────────────────────────────────────────────────────────────


@promise("value:round-trip")
@given(call=strategies.CALLS, form=TEXT_TOO)
@each("name", DRAWN)
def test_a_call_there_and_back(name: str, call: ir.ToolCall, form: Callable[[Any], Any]) -> None:
    call = structs.replace(call, id="call_1")
    encoded = dragoman.encode_tool_call(call, name)
    again = dragoman.decode_tool_call(form(encoded.value), name)
    assert again.name == call.name
    if call.parsed:
        assert again.arguments == call.arguments
    else:  # some compatible servers refuse text that is not JSON: it is wrapped, with a loss
        assert call.arguments_text in (again.arguments_text, again.parsed and again.arguments.get(UNPARSED_KEY))
    assert again.signature == call.signature or any(loss.path == "$.signature" for loss in encoded.losses)
    # As it came, it goes again.
    assert dragoman.encode_tool_call(again, name).value == encoded.value


@promise("value:round-trip")
@given(results=st.lists(strategies.RESULTS, min_size=1, max_size=3))
@each("name", DRAWN)
def test_results_there_and_back(name: str, results: list[ir.ToolResult]) -> None:
    calls = [ir.ToolCall(f"call_{index}", "f", {}) for index in range(len(results))]
    results = [
        structs.replace(result, tool_call_id=call.id, name=call.name)
        for result, call in zip(results, calls, strict=True)
    ]
    encoded = dragoman.encode_tool_results(results, name)
    again = dragoman.decode_tool_results(encoded.json(), name, calls=calls)
    assert [(one.tool_call_id, one.name) for one in again] == [(call.id, call.name) for call in calls]
    for one, given_ in zip(again, results, strict=True):
        assert one.is_error == given_.is_error
        media = sum(not isinstance(part, ir.Text) for part in given_.parts)
        kept = sum(not isinstance(part, ir.Text) for part in one.parts)
        assert kept == media or encoded.losses
        if given_.kind == "data" and not encoded.losses:
            assert one.value == given_.value or json.loads(str(one.value)) == given_.value


@promise("value:round-trip")
@given(tools=st.lists(strategies.TOOL_DEFINITIONS, min_size=1, max_size=3, unique_by=lambda tool: tool.name))
@each("name", DRAWN)
def test_definitions_there_and_back(name: str, tools: list[ir.ToolDefinition]) -> None:
    encoded = dragoman.encode_tool_definitions(tools, name)
    again = dragoman.decode_tool_definitions(encoded.json(), name)
    assert [tool.name for tool in again] == [tool.name for tool in tools]
    alone = dragoman.encode_tool_definition(tools[0], name)
    assert dragoman.decode_tool_definition(alone.value, name) == again[0] or alone.losses


@promise("value:round-trip")
@each("name", EVERY)
@each("mode", ["auto", "none", "required"])
@each("names", [(), ("f",), ("f", "g")])
def test_a_choice_there_and_back_or_a_loss(name: str, mode: Any, names: tuple[str, ...]) -> None:
    choice = ir.ToolChoice(mode, names)
    encoded = dragoman.encode_tool_choice(choice, name)
    if encoded.value is None:
        assert encoded.losses or choice == ir.ToolChoice("auto")
        return
    again = dragoman.decode_tool_choice(encoded.value, name)
    assert (again.mode, again.names) == (mode, names) or (encoded.losses and encoded.losses[0].path == "$")


@promise("value:round-trip")
@each("name", EVERY)
def test_a_message_there_and_back(name: str) -> None:
    call = ir.ToolCall("call_1", "f", {"x": 1})
    for message in (ir.Message("user", "hi"), ir.Message("assistant", (ir.Text("well "), call))):
        encoded = dragoman.encode_message(message, name)
        if len(encoded.value) == 1:
            (again,) = (dragoman.decode_message(encoded.value[0], name),)
        else:
            (again,) = dragoman.decode_messages(encoded.value, name)
        assert (again.role, again.text) == (message.role, message.text)
        assert [(one.name, one.arguments) for one in again.tool_calls] == [
            (one.name, one.arguments) for one in message.tool_calls
        ]


@promise("value:round-trip")
@each("name", EVERY)
def test_the_plain_record_of_a_call_is_the_same_from_every_provider(name: str) -> None:
    call = dragoman.decode_tool_call(RECEIVED[name], name)
    plain = {"id": "call_1", "name": "get_weather", "arguments": {"city": "東京", "days": 3}}
    assert call.plain() == {**plain, "id": call.id}
    assert call.id == "call_1" or call.invented_id
    sent = dragoman.encode_tool_call(ir.ToolCall.from_plain(plain), name).value  # type: ignore[arg-type]
    again = dragoman.decode_tool_call(sent, name)
    assert {**again.plain(), "id": "call_1"} == plain


@promise("value:round-trip")
def test_a_signature_is_in_the_metadata_of_a_plain_record() -> None:
    signed = {"functionCall": {"name": "f", "args": {}, "id": "c"}, "thoughtSignature": "c2ln"}
    plain = dragoman.decode_tool_call(signed, "gemini").plain()
    assert plain == {"id": "c", "name": "f", "arguments": {}, "metadata": {"thoughtSignature": "c2ln"}}
    assert dragoman.encode_tool_call(ir.ToolCall.from_plain(plain), "gemini").value == signed


# ── acceptance ────────────────────────────────────────────────────────────────────────────────────────────────

INNER: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "gemini": lambda value: value["functionCall"],
    "vertex": lambda value: value["functionCall"],
    "bedrock-converse": lambda value: value["toolUse"],
    "ollama-chat": lambda value: value["function"],
    "multi-llm-chat": lambda value: value["content"],
    "openai-chat": lambda value: value["function"],
}


@promise("value:acceptance")
@each("name", EVERY)
def test_a_call_is_read_from_every_shape_it_comes_in(name: str) -> None:
    value = RECEIVED[name]
    call = dragoman.decode_tool_call(value, name)
    shapes: list[Any] = [json.dumps(value), json.dumps(value).encode(), bytearray(json.dumps(value).encode())]
    where = layout(name)
    if where.calls is not None:
        shapes.append({"role": where.assistant, where.calls: [value]})
    for shape in shapes:
        assert dragoman.decode_tool_call(shape, name) == call
    if name in INNER:
        inner = dragoman.decode_tool_call(INNER[name](value), name)
        assert (inner.name, inner.arguments) == (call.name, call.arguments)
    assert dragoman.decode_tool_calls([value], name) == (call,)


@promise("value:acceptance")
def test_calls_are_read_from_objects_of_the_vendors_sdks() -> None:
    anthropic = pytest.importorskip("anthropic.types")
    genai = pytest.importorskip("google.genai.types")
    openai = pytest.importorskip("openai.types.chat")
    block = anthropic.ToolUseBlock(type="tool_use", id="call_1", name="f", input={"x": 1})
    part = genai.Part(function_call=genai.FunctionCall(name="f", args={"x": 1}, id="call_1"))
    message = openai.ChatCompletionMessage.model_validate(
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
            ],
        }
    )
    for value, source in ((block, "anthropic-messages"), (part, "gemini"), (message, "openai-chat")):
        call = dragoman.decode_tool_call(value, source)
        assert (call.id, call.name, call.arguments) == ("call_1", "f", {"x": 1})
    assert len(dragoman.decode_tool_calls([part, part], "gemini")) == 2


@promise("value:acceptance")
@each(
    ("name", "value"),
    [
        ("anthropic-messages", {"type": "tool_result", "tool_use_id": "c", "content": "18°"}),
        (
            "anthropic-messages",
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "18°"}]},
        ),
        ("gemini", {"functionResponse": {"id": "c", "name": "f", "response": {"output": "18°"}}}),
        ("gemini", {"function_response": {"id": "c", "name": "f", "response": {"output": "18°"}}}),
        ("gemini", {"id": "c", "name": "f", "response": {"output": "18°"}}),
        ("gemini", {"parts": [{"functionResponse": {"id": "c", "name": "f", "response": {"output": "18°"}}}]}),
        ("bedrock-converse", {"toolResult": {"toolUseId": "c", "content": [{"text": "18°"}]}}),
        ("bedrock-converse", {"toolUseId": "c", "content": [{"text": "18°"}]}),
        ("openai-chat", {"role": "tool", "tool_call_id": "c", "content": "18°"}),
        ("openai-responses", {"type": "function_call_output", "call_id": "c", "output": "18°"}),
        ("ollama-chat", {"role": "tool", "tool_call_id": "c", "tool_name": "f", "content": "18°"}),
        ("universal", {"tool_call_id": "c", "name": "f", "result": "18°", "is_error": False}),
        ("modular-prompt", {"toolCallId": "c", "name": "f", "kind": "text", "value": "18°"}),
        ("agent-sdk", {"role": "tool", "tool_call_id": "c", "tool_name": "f", "content": "18°"}),
        ("multi-llm-chat", {"type": "tool_result", "name": "f", "content": "18°", "tool_call_id": "c"}),
        ("multi-llm-chat", {"role": "tool", "content": "18°", "name": "f", "tool_call_id": "c"}),
    ],
)
def test_a_result_is_read_from_every_shape_it_comes_in(name: str, value: dict[str, Any]) -> None:
    call = ir.ToolCall("c", "f", {})
    result = dragoman.decode_tool_result(value, name, call=call)
    assert (result.tool_call_id, result.name, result.kind, result.value) == ("c", "f", "text", "18°")
    for shape in (json.dumps(value), [value]):
        assert dragoman.decode_tool_results(shape, name, calls=[call]) == (result,)
    assert dragoman.decode_tool_result(value, name).tool_call_id == "c"


# ── ids ───────────────────────────────────────────────────────────────────────────────────────────────────────


@promise("value:ids")
@pytest.mark.parametrize("name", ["gemini", "vertex", "ollama-chat"])
def test_calls_without_ids_differ_by_position(name: str) -> None:
    calls = dragoman.decode_tool_calls([RECEIVED[name]] * 3, name)
    assert len({call.id for call in calls}) == 3
    assert [dragoman.decode_tool_call(RECEIVED[name], name, position=index) for index in range(3)] == list(calls)
    assert dragoman.decode_tool_calls([RECEIVED[name]] * 2, name, position=1) == calls[1:]


@promise("value:ids")
@pytest.mark.parametrize("name", ["gemini", "vertex"])
def test_results_without_ids_find_their_calls(name: str) -> None:
    calls = dragoman.decode_tool_calls([{"functionCall": {"name": tool, "args": {}}} for tool in ("f", "g", "f")], name)
    results = [ir.ToolResult(call.id, call.name, "text", str(index)) for index, call in enumerate(calls)]
    encoded = dragoman.encode_tool_results(results, name)
    assert b'"id"' not in encoded.json()
    assert dragoman.decode_tool_results(encoded.value, name, calls=calls) == tuple(results)
    # Without the calls, results are paired by position.
    alone = dragoman.decode_tool_results(encoded.value, name)
    assert [result.tool_call_id for result in alone] == [call.id for call in calls]


@promise("value:ids", "law:8-pairs-hold")
@each("target", EVERY)
def test_with_the_calls_results_are_sent_in_call_order_under_their_names(target: str) -> None:
    """Tools that run at the same time finish in any order; here the results even have no name."""
    calls = [ir.ToolCall(f"call_{name}", name, {}) for name in "abc"]
    results = [ir.ToolResult(f"call_{name}", "", "text", f"of {name}") for name in "ca"]
    encoded = dragoman.encode_tool_results(results, target, calls=calls)
    again = dragoman.decode_tool_results(encoded.value, target, calls=[calls[0], calls[2]])
    assert [(one.name, one.value) for one in again] == [("a", "of a"), ("c", "of c")]
    assert encoded.losses == ()
    alone = dragoman.encode_tool_result(results[0], target, call=calls[2])
    assert dragoman.decode_tool_result(alone.value[0], target, call=calls[2]).name == "c"


@promise("value:ids")
def test_the_name_of_a_result_that_is_spelled_otherwise_is_reported_on_that_result() -> None:
    calls = [ir.ToolCall("c1", "f", {}), ir.ToolCall("c2", "a b", {})]
    results = [ir.ToolResult("c2", "a b", "text", "2"), ir.ToolResult("c1", "f", "text", "1")]
    (loss,) = dragoman.encode_tool_results(results, "gemini", calls=calls).losses
    assert loss.path == "$[0].name"


@promise("value:ids")
def test_an_id_of_ours_that_a_client_echoes_is_kept() -> None:
    made = dragoman.decode_tool_call(RECEIVED["gemini"], "gemini", position=7)
    echoed = dragoman.encode_tool_call(made, "openai-chat").value
    again = dragoman.decode_tool_call(echoed, "openai-chat")
    assert again.id == made.id
    assert "id" not in dragoman.encode_tool_call(again, "gemini").value["functionCall"]


# ── losses ────────────────────────────────────────────────────────────────────────────────────────────────────


@promise("value:losses")
def test_a_loss_inside_a_result_has_the_path_of_the_part() -> None:
    result = ir.ToolResult("c1", "f", "multimodal", None, (ir.Text("a"), ir.Image(file_id="file_1")))
    assert "$.parts[1]" in {loss.path for loss in dragoman.encode_tool_result(result, "cohere-chat").losses}
    assert "$[1].parts[1]" in {
        loss.path
        for loss in dragoman.encode_tool_results([ir.ToolResult("c0", "f", "text", "a"), result], "cohere-chat").losses
    }
    turn = [ir.Message("assistant", (ir.ToolCall("c1", "f", {}),)), ir.Message("tool", (result,))]
    assert "$[1].parts[0].parts[1]" in {loss.path for loss in dragoman.encode_messages(turn, "cohere-chat").losses}


@promise("value:losses", "law:2-nothing-vanishes")
@given(request=strategies.REQUESTS)
@each("target", DRAWN)
def test_losses_of_messages_are_those_of_a_whole_request(target: str, request: ir.Request) -> None:
    bare = ir.Request(request.model, request.messages)
    if not without_gaps(bare) or bare.messages[0].role == "system":
        return
    try:
        whole = dragoman.encode_request(bare, target).losses
    except EncodeError:
        return
    alone = dragoman.encode_messages(bare.messages, target, model=bare.model).losses
    expected = sorted(
        ("$" + loss.path.removeprefix("$.messages"), loss.what) for loss in whole if loss.path.startswith("$.messages[")
    )
    assert sorted((loss.path, loss.what) for loss in alone) == expected


@promise("value:losses")
def test_a_loss_starts_at_the_value() -> None:
    signed = ir.ToolCall("c", "f", {}, signature=ir.Signature("google", "c2ln"))
    (loss,) = dragoman.encode_tool_call(signed, "anthropic-messages").losses
    assert (loss.path, loss.severity) == ("$.signature", "dropped")
    plain = ir.ToolCall("d", "f", {})
    (loss,) = dragoman.encode_tool_calls([plain, signed], "openai-chat").losses
    assert loss.path == "$[1].signature"
    (loss,) = dragoman.encode_tool_call(ir.ToolCall("c", "a b", {}), "openai-chat").losses
    assert (loss.path, loss.severity) == ("$.name", "degraded")
    marked = ir.ToolResult("c", "f", "text", "x", cache=ir.Cache())
    assert [loss.path for loss in dragoman.encode_tool_result(marked, "openai-chat").losses] == ["$.cache"]
    (loss,) = dragoman.encode_messages(
        [ir.Message("user", "u"), ir.Message("assistant", (signed,))], "ollama-chat"
    ).losses
    assert loss.path == "$[1].parts[0].signature"
    (loss,) = dragoman.encode_tool_definition(ir.ToolDefinition("f", "", {}, strict=True), "ollama-chat").losses
    assert loss.path == "$.strict"


@promise("value:losses")
@pytest.mark.parametrize(
    "encode",
    [
        lambda: dragoman.encode_tool_choice("required", "ollama-chat", strict=True),
        lambda: dragoman.encode_tool_call(ir.ToolCall("c", "a b", {}), "openai-chat", strict=True),
        lambda: dragoman.encode_message(ir.Message("system", "s"), "gemini", strict=True),
        lambda: dragoman.encode_tool_definition(ir.ToolDefinition("f", cache=ir.Cache()), "gemini", strict=True),
    ],
)
def test_strict_refuses(encode: Callable[[], Any]) -> None:
    with pytest.raises(LossRefused):
        encode()


@promise("value:losses")
@each("target", EVERY)
def test_the_request_made_around_a_value_reports_no_losses(target: str) -> None:
    call = ir.ToolCall("call_1", "f", {"x": 1})
    result = ir.ToolResult("call_1", "f", "text", "x")
    assert dragoman.encode_tool_call(call, target).losses == ()
    assert dragoman.encode_tool_result(result, target).losses == ()
    for message in (ir.Message("user", "u"), ir.Message("assistant", "a "), ir.Message("assistant", (call,))):
        assert dragoman.encode_message(message, target).losses == ()
    assert dragoman.encode_message(ir.Message("tool", (result,)), target).losses == ()
    assert dragoman.encode_tool_definition(ir.ToolDefinition("f", "d", {"type": "object"}), target).losses == ()


@promise("value:losses")
def test_a_provider_tool_that_the_target_lacks_has_no_value() -> None:
    search = ir.ProviderTool("web_search", "anthropic", {"type": "web_search_20250305", "name": "web_search"})
    encoded = dragoman.encode_tool_definition(search, "gemini")
    assert encoded.value is None
    assert [loss.severity for loss in encoded.losses] == ["dropped"]
    assert dragoman.encode_tool_definition(search, "anthropic-messages").value["type"] == "web_search_20250305"


# ── bad input ─────────────────────────────────────────────────────────────────────────────────────────────────

DECODERS: tuple[Callable[[Any, str], Any], ...] = (
    dragoman.decode_tool_call,
    dragoman.decode_tool_calls,
    dragoman.decode_tool_result,
    dragoman.decode_tool_results,
    dragoman.decode_tool_definition,
    dragoman.decode_tool_definitions,
    dragoman.decode_tool_choice,
    dragoman.decode_message,
    dragoman.decode_messages,
)
_KEYS = st.sampled_from(
    ("role", "parts", "content", "functionCall", "name", "args", "type", "id", "function", "toolUse", "input")
)
_NEARLY = st.recursive(
    st.sampled_from((None, 5, "f", "tool_use", "tool", "assistant", "model", "user", True)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=8,
)


@promise("value:bad-input", "law:10-bad-input-good-words")
@given(
    value=_NEARLY | strategies.JSON_VALUES | st.binary(max_size=6) | st.text(max_size=6),
    decode=st.sampled_from(DECODERS),
)
@each("name", DRAWN)
def test_only_typed_errors(name: str, value: Any, decode: Callable[[Any, str], Any]) -> None:
    try:
        decode(value, name)
    except DragomanError:
        return


@promise("value:bad-input")
@pytest.mark.parametrize(
    ("value", "source", "path"),
    [
        ({"functionCall": {"name": "f", "args": 5}}, "gemini", "$.functionCall.args"),
        ({"name": "f", "args": 5}, "gemini", "$.args"),
        ([{"functionCall": {"name": "f"}}, {"functionCall": {"name": 5}}], "gemini", "$[1].functionCall.name"),
        ({"role": "model", "parts": [{"functionCall": {"name": 5}}]}, "gemini", "$.parts[0].functionCall.name"),
        ({"type": "tool_use", "id": 5, "name": "f"}, "anthropic-messages", "$.id"),
        ({"id": "c", "function": {"name": "f", "arguments": 5}}, "openai-chat", "$.function.arguments"),
        ({"toolUse": {"name": 5}}, "bedrock-converse", "$.toolUse.name"),
        ({"type": "function_call", "call_id": 5}, "openai-responses", "$.call_id"),
        ({"id": 5, "name": "f"}, "modular-prompt", "$.id"),
        ("nonsense", "gemini", "$"),
        ([[]], "gemini", "$[0]"),
    ],
)
def test_the_path_of_an_error_starts_at_the_given_value(value: Any, source: str, path: str) -> None:
    with pytest.raises(DecodeError) as caught:
        dragoman.decode_tool_calls(value, source)
    assert caught.value.path == path


@promise("value:bad-input")
def test_values_beside_the_one_asked_for_are_refused_and_not_ignored() -> None:
    call = RECEIVED["anthropic-messages"]
    with pytest.raises(DecodeError, match="one tool call, got 2"):
        dragoman.decode_tool_call(
            {"role": "assistant", "content": [call, {**call, "id": "call_2"}]}, "anthropic-messages"
        )
    with pytest.raises(DecodeError, match="one tool call, got no tool call"):
        dragoman.decode_tool_call({"role": "assistant", "content": "hi"}, "anthropic-messages")
    with pytest.raises(DecodeError, match="tool call and nothing else, got Text"):
        dragoman.decode_tool_call({"type": "text", "text": "hi"}, "anthropic-messages")
    mixed = [{"type": "tool_result", "tool_use_id": "c", "content": "x"}, {"type": "text", "text": "and now?"}]
    with pytest.raises(DecodeError, match="tool results and nothing else, got Text"):
        dragoman.decode_tool_results({"role": "user", "content": mixed}, "anthropic-messages")
    assert len(dragoman.decode_messages({"role": "user", "content": mixed}, "anthropic-messages")) == 2
    with pytest.raises(DecodeError, match="one message, got 2"):
        dragoman.decode_message({"role": "user", "content": mixed}, "anthropic-messages")
    with pytest.raises(DecodeError, match="name of its tool"):
        dragoman.decode_tool_call({"functionCall": {"args": {}}}, "gemini")


OF_OTHERS: dict[str, tuple[Callable[[Any, str], Any], Callable[[Any, str], Any], tuple[Any, ...]]] = {
    "calls": (
        dragoman.encode_tool_calls,
        dragoman.decode_tool_calls,
        (ir.ToolCall("call_1", "get_weather", {"city": "Rome"}),),
    ),
    "calls in a message": (
        dragoman.encode_messages,
        dragoman.decode_tool_calls,
        (ir.Message("assistant", (ir.ToolCall("call_1", "get_weather", {"city": "Rome"}),)),),
    ),
    "results": (
        dragoman.encode_tool_results,
        dragoman.decode_tool_results,
        (ir.ToolResult.text("call_1", "get_weather", "18 degrees"),),
    ),
    "definitions": (
        dragoman.encode_tool_definitions,
        dragoman.decode_tool_definitions,
        (ir.ToolDefinition("get_weather", "Weather", {"type": "object", "properties": {"city": {"type": "string"}}}),),
    ),
}


def contents_of(values: Sequence[object]) -> list[Any]:
    found: list[Any] = []
    for one in values:
        match one:
            case ir.ToolCall():
                found.append(one.arguments)
            case ir.ToolResult():
                found.append(one.value)
            case ir.ToolDefinition():
                found.append(one.parameters)
    return found


@promise("value:bad-input")
@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("kind", OF_OTHERS)
def test_a_value_of_another_format_is_refused_or_read_in_full(kind: str, source: str) -> None:
    encode, decode, values = OF_OTHERS[kind]
    written = encode(values, source).value
    expected = contents_of(decode(written, source))
    for other in set(FORMATS) - {source}:
        try:
            read = decode(written, other)
        except DecodeError:
            continue
        assert contents_of(read) == expected, other


@promise("value:bad-input")
def test_the_error_for_a_value_of_another_format_names_that_format() -> None:
    block = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Rome"}}
    for source in ("openai-chat", "gemini"):
        with pytest.raises(DecodeError, match=r"expected a tool call .*, got a value of anthropic-messages"):
            dragoman.decode_tool_call(block, source)
    with pytest.raises(DecodeError, match="expected a message, got a value of openai-chat"):
        dragoman.decode_message({"role": "user", "content": "hi"}, "gemini")
    # Nothing is missing here: calls and functions without arguments, and tools that are not functions.
    assert dragoman.decode_tool_call({**block, "input": {}}, "openai-chat").arguments == {}
    now = {"type": "function", "function": {"name": "now"}}
    assert dragoman.decode_tool_definition(now, "openai-chat") == ir.ToolDefinition("now")
    future = {"type": "shell_2030", "name": "shell", "parameters": {"type": "object"}}
    assert isinstance(dragoman.decode_tool_definition(future, "anthropic-messages"), ir.ProviderTool)


LISTS: dict[str, Callable[..., Any]] = {
    "calls": dragoman.encode_tool_calls,
    "results": dragoman.encode_tool_results,
    "definitions": dragoman.encode_tool_definitions,
    "messages": dragoman.encode_messages,
}
ONE: dict[str, Any] = {
    "calls": ir.ToolCall("c", "f", {}),
    "results": ir.ToolResult("c", "f", "text", "x"),
    "definitions": ir.ToolDefinition("f"),
    "messages": ir.Message("user", "hi"),
}


@promise("value:bad-input")
@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("kind", LISTS)
def test_a_single_value_in_place_of_a_list_is_refused_with_a_hint(kind: str, target: str) -> None:
    """A single value in place of a list raised a bare TypeError."""
    with pytest.raises(
        EncodeError, match=r"expected a list of .*: put it in a list, or call the function for a single"
    ):
        LISTS[kind](ONE[kind], target)
    for value in (5, "", "x", b"", {}, {"a": 1}, object()):
        with pytest.raises(EncodeError, match=r"expected a list of .*, got"):
            LISTS[kind](value, target)
    assert LISTS[kind]([], target).value == []
    assert LISTS[kind](iter([ONE[kind]]), target).json() == LISTS[kind]([ONE[kind]], target).json()


def bodies_of(samples: tuple[Sample, ...], format: str) -> list[dict[str, Any]]:
    return [sample.body for sample in samples if sample.format == format]


class Dumped:
    """An object of a vendor's SDK, which writes itself as JSON values."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self, *, mode: str, by_alias: bool, exclude_none: bool, warnings: bool) -> dict[str, Any]:
        assert (mode, by_alias, exclude_none, warnings) == ("json", True, True, False)
        return self.fields


@promise("value:bad-input")
@pytest.mark.parametrize("source", FORMATS)
def test_bodies_may_be_or_contain_objects_of_the_vendors_sdk(source: str) -> None:
    """A response of an SDK was refused, and so was its message in the next request."""
    for body in bodies_of(RESPONSES, source):
        assert dragoman.decode_response(Dumped(**body), source) == dragoman.decode_response(body, source)
    for body in bodies_of(REQUESTS, source):
        held = {key: [*map(_as_object, value)] if isinstance(value, list) else value for key, value in body.items()}
        assert dragoman.decode_request(held, source) == dragoman.decode_request(body, source)


@promise("value:bad-input")
@pytest.mark.parametrize("source", [name for name in FORMATS if name != "anthropic-messages"])
def test_a_whole_response_is_refused_with_the_name_of_the_right_function(source: str) -> None:
    """Only a response of Anthropic is a message as well."""
    answered = [body for body in bodies_of(RESPONSES, source) if dragoman.decode_response(body, source).tool_calls]
    hints = []
    for body in answered:
        with pytest.raises(DecodeError) as caught:
            dragoman.decode_tool_calls(body, source)
        hints.append(f"decode_response(body, {source!r}).tool_calls" in str(caught.value))
    assert any(hints)


@promise("value:bad-input")
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("openai", "'openai-chat' or 'openai-responses'"),
        ("anthropic", "'anthropic-messages'"),
        ("bedrock", "'bedrock-converse'"),
        ("Gemini_Interactions", "'gemini-interactions'"),
        ("openai-chats", "'openai-chat'"),
        ("claude", "'anthropic-messages'"),
        ("Google", "'gemini'"),
    ],
)
def test_the_error_for_an_unknown_format_suggests_a_known_one(name: str, meant: str) -> None:
    with pytest.raises(dragoman.UnknownFormat, match=re.escape(f"; did you mean {meant}?") + "$") as raised:
        dragoman.decode_tool_call({}, name)
    assert raised.value.known == dragoman.formats(None)


@promise("value:bad-input")
def test_streams_refuse_text_and_name_bytes() -> None:
    """Text raised "must be str, not bytes" from within."""
    wrong: Any
    for wrong in ("data: {}\n\n", None, {"a": 1}, 5):
        translator = dragoman.StreamTranslator(source="openai-chat", target="gemini")
        for feed in (translator.feed, dragoman.StreamDecoder("gemini").feed, dragoman.TextStream("gemini").feed):
            with pytest.raises(dragoman.InvalidType, match=f"the bytes of a stream, found {type(wrong).__name__}"):
                feed(wrong)
    chunk = b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
    chunks: list[Any] = [chunk, bytearray(chunk), memoryview(chunk)]
    for same in chunks:
        assert dragoman.TextStream("openai-chat").feed(same) == "hi"


def _as_object(value: Any) -> Any:
    return Dumped(**value) if isinstance(value, dict) else value


@promise("value:bad-input")
def test_values_of_the_wrong_type_are_refused_by_name() -> None:
    wrong: Any = {"id": "c"}
    for encode in (dragoman.encode_tool_call, dragoman.encode_tool_result, dragoman.encode_message):
        with pytest.raises(EncodeError, match="got dict"):
            encode(wrong, "gemini")
    with pytest.raises(EncodeError, match="got dict"):
        dragoman.encode_tool_definitions([wrong], "gemini")
    with pytest.raises(EncodeError, match="ToolChoice"):
        dragoman.encode_tool_choice(wrong, "gemini")
    whole: tuple[tuple[Any, str], ...] = (
        (dragoman.encode_request, "expected Request, got dict: decode_request makes one of a body"),
        (dragoman.encode_response, "expected Completion, got dict: decode_response"),
        (dragoman.encode_error, "expected Failure, got dict: decode_error"),
    )
    for encode, words in whole:
        with pytest.raises(EncodeError, match=words):
            encode(wrong, "gemini")
    with pytest.raises(dragoman.UnknownFormat):
        dragoman.encode_tool_call(ir.ToolCall("c", "f", {}), "nonsense")
    with pytest.raises(dragoman.UnknownFormat):
        dragoman.decode_tool_call({}, "nonsense")


@promise("value:bad-input")
@pytest.mark.parametrize("target", ["gemini", "vertex", "ollama-chat"])
def test_a_result_without_the_name_of_its_tool_is_refused_where_the_name_is_sent(target: str) -> None:
    nameless = dragoman.decode_tool_result({"role": "tool", "tool_call_id": "c", "content": "x"}, "openai-chat")
    assert nameless.name == ""
    with pytest.raises(EncodeError, match="name of its tool") as caught:
        dragoman.encode_tool_result(nameless, target)
    assert caught.value.path == "$[0].name"
    assert dragoman.encode_tool_result(nameless, "anthropic-messages").losses == ()


# ── as documented ─────────────────────────────────────────────────────────────────────────────────────────────


@promise("value:documented")
def test_the_example_of_the_page_runs() -> None:
    page = (Path(__file__).parents[1] / "docs" / "intermediate-format.md").read_text(encoding="utf-8")
    section = page.partition("## One value at a time")[2].partition("\n## ")[0]
    (program,) = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    exec(compile(program, "intermediate-format.md", "exec"), {})  # noqa: S102 - our own page
    named = set(re.findall(r"`((?:de|en)code_(?:tool_|message)\w*)`", section))
    assert named == {name for name in dragoman.__all__ if name in dir(dragoman.single_values)} - {"EncodedValue"}
