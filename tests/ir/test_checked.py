"""Values that programs build: what is accepted, and where a mistake is reported."""

import copy
import functools
import pickle
from collections.abc import Callable
from enum import StrEnum
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw, Struct

import dragoman
from dragoman import (
    Cache,
    CustomTool,
    DragomanError,
    Image,
    InvalidType,
    InvalidValue,
    Message,
    Request,
    Signature,
    Text,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    ir,
)
from dragoman.errors import UnparsedArguments
from dragoman.ir import checked
from dragoman.ir.checks import hints_of
from tests.support.cases import each
from tests.support.promises import promise

CALL = ToolCall("call_1", "get_weather", {"city": "Tokyo"})
PNG = Image(url="https://x.example/a.png")
SIGNED: Any = {"thoughtSignature": "c2ln"}
SIGNED_BYTES: Any = {"thought_signature": b"sig"}
CLASSES: dict[str, Any] = {name: getattr(dragoman, name) for name in checked.NAMES}

# ── the same values ───────────────────────────────────────────────────────────────────────────────────────────


@promise("front:same-values")
@each("name", checked.NAMES)
def test_an_exported_class_is_treated_like_the_class_of_its_values(name: str) -> None:
    exported, internal = CLASSES[name], getattr(ir, name)
    assert issubclass(internal, exported)
    assert exported == internal
    assert {exported: 1}[internal] == 1
    assert exported.__struct_fields__ == internal.__struct_fields__
    assert exported.__doc__ == internal.__doc__
    assert exported.__name__ == name
    assert not issubclass(ir.StreamStart, exported)


@promise("front:same-values")
def test_built_and_decoded_values_are_of_one_class() -> None:
    built = ToolCall("c", "f", {"a": 1})
    decoded = msgspec.json.decode(b'{"type":"tool_call","id":"c","name":"f","arguments":{"a":1}}', type=ToolCall)
    assert type(built) is type(decoded) is ir.ToolCall
    assert built == decoded
    assert isinstance(decoded, ToolCall)
    assert not isinstance(decoded, Text)
    assert pickle.loads(pickle.dumps(built)) == copy.deepcopy(built) == built  # noqa: S301

    match decoded:
        case ToolCall(call_id, name):
            assert (call_id, name) == ("c", "f")
        case _:
            pytest.fail("no match")

    @functools.singledispatch
    def kind(value: object) -> str:
        return f"unknown {value}"

    kind.register(ToolCall, lambda _: "call")
    assert kind(decoded) == kind(built) == "call"


@promise("front:same-values")
def test_msgspec_takes_the_exported_classes_as_types_of_fields() -> None:
    class Log(Struct):
        calls: list[ToolCall]
        last: Message | None = None

    log = Log([CALL], Message.user("hi"))
    assert msgspec.json.decode(msgspec.json.encode(log), type=Log) == log
    with pytest.raises(msgspec.ValidationError, match=r"kind"):
        msgspec.json.decode(b'{"type":"tool_result","tool_call_id":"c","name":"f","kind":"bogus"}', type=ToolResult)


@promise("front:same-values")
def test_the_classes_of_ir_check_nothing() -> None:
    """Decoders use them: a body may have values that programs are not allowed to build."""
    assert ir.ToolDefinition("server.tool").name == "server.tool"
    assert ir.ToolResult("c", "", "multimodal").parts == ()


# ── results ───────────────────────────────────────────────────────────────────────────────────────────────────

RESULTS: list[tuple[Callable[..., ToolResult], Any, ToolResult]] = [
    (ToolResult.text, "18°", ToolResult("call_1", "get_weather", "text", "18°")),
    (ToolResult.data, {"temp": 18}, ToolResult("call_1", "get_weather", "data", {"temp": 18})),
    (ToolResult.data, None, ToolResult("call_1", "get_weather", "data", None)),
    (ToolResult.error, "timeout", ToolResult("call_1", "get_weather", "error", "timeout")),
    (ToolResult.multimodal, [Text("see"), PNG], ToolResult("call_1", "get_weather", "multimodal", [Text("see"), PNG])),
]


@promise("front:constructors")
@pytest.mark.parametrize(("build", "value", "expected"), RESULTS)
def test_a_result_is_built_for_a_call_or_for_an_id_and_a_name(
    build: Callable[..., ToolResult], value: Any, expected: ToolResult
) -> None:
    assert build(CALL, value) == expected
    assert build("call_1", "get_weather", value) == expected
    assert build(call=CALL, value=value) == expected
    assert build(tool_call_id="call_1", name="get_weather", value=value) == expected


@promise("front:constructors")
def test_a_multimodal_result_of_the_specification_equals_a_decoded_one() -> None:
    written = ToolResult("c", "f", "multimodal", [Text("see"), PNG])
    assert written == ir.ToolResult("c", "f", "multimodal", None, (ir.Text("see"), ir.Image(url=PNG.url)))
    assert written.parts == (Text("see"), PNG)
    assert ToolResult("c", "f", "multimodal", parts=[Text("see"), PNG]) == written
    assert ToolResult("c", "f", "multimodal", ("see", {"type": "image", "url": PNG.url})) == written
    assert ToolResult("c", "f", "error", [Text("see"), PNG]).parts == written.parts


@promise("front:constructors")
@pytest.mark.parametrize("target", ["openai-chat", "anthropic-messages", "gemini"])
def test_a_multimodal_result_reaches_every_api_with_its_picture(target: str) -> None:
    call = ToolCall("call_1", "shoot", {})
    picture = Image.from_bytes(b"picture", "image/png")
    assert picture == Image("image/png", b"picture")  # type: ignore[arg-type]
    request = Request(
        "m",
        [
            Message.user("go"),
            Message.assistant(tool_calls=[call]),
            Message.tool(ToolResult.multimodal(call, ["a", picture])),
        ],
        [ToolDefinition("shoot")],
    )
    assert picture.data is not None
    assert picture.data.encode() in dragoman.encode_request(request, target).json()


# ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────


@promise("front:constructors")
def test_messages_by_role() -> None:
    assert Message.user("hi") == Message("user", "hi")
    assert Message.user("hi").content_held == "hi"
    assert Message.system("be kind", name="s") == Message("system", "be kind", "s")
    assert Message.user("look", PNG) == Message.user(["look", PNG]) == Message("user", (Text("look"), PNG))
    assert Message.user(PNG).parts == (PNG,)
    assert Message.assistant("a", CALL, "b").parts == (Text("a"), CALL, Text("b"))
    result = ToolResult.text(CALL, "18°")
    assert Message.tool(result) == Message.tool([result]) == Message("tool", (result,))


@promise("front:constructors")
@pytest.mark.parametrize("content", [(), ("",), (None,)])
def test_an_empty_text_beside_calls_is_left_out(content: tuple[Any, ...]) -> None:
    assert Message.assistant(*content, tool_calls=[CALL]).parts == (CALL,)
    assert Message.assistant("ok", tool_calls=[CALL]).parts == (Text("ok"), CALL)


@promise("front:constructors")
def test_mappings_of_parts_and_messages_are_read() -> None:
    request = Request(
        "m",
        [
            {"role": "user", "content": "hi"},
            {"role": "user", "parts": [{"type": "image", "url": "u", "cache": {"ttl": "1h"}}]},
            {
                "role": "assistant",
                "content": [{"type": "tool_call", "id": "c", "name": "f", "arguments": {"a": 1}}],
            },
            {
                "role": "tool",
                "content": [{"type": "tool_result", "tool_call_id": "c", "name": "f", "kind": "text", "value": "x"}],
            },
        ],
        [{"name": "f"}, {"type": "function", "function": {"name": "g"}}, {"type": "custom", "name": "h"}],
        {"name": "f"},
    )
    assert request == Request(
        "m",
        (
            Message("user", "hi"),
            Message("user", (Image(url="u", cache=Cache("1h")),)),
            Message("assistant", (ToolCall("c", "f", {"a": 1}),)),
            Message("tool", (ToolResult("c", "f", "text", "x"),)),
        ),
        (ToolDefinition("f"), ToolDefinition("g"), CustomTool("h")),
        ToolChoice("required", ("f",)),
    )


# ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────


@promise("front:constructors")
def test_a_signature_of_gemini_given_as_metadata_is_the_signature_of_the_call() -> None:
    call = ToolCall("c", "f", {}, metadata=SIGNED)
    assert call == ToolCall("c", "f", {}, signature=Signature("google", "c2ln"))
    assert call == ToolCall("c", "f", {}, metadata=SIGNED_BYTES)
    assert call.plain() == {"id": "c", "name": "f", "arguments": {}, "metadata": {"thoughtSignature": "c2ln"}}
    assert ToolCall.from_plain(call.plain()) == ToolCall(**call.plain()) == call
    request = Request("m", [Message.user("go"), Message.assistant(call, ToolCall("d", "f", {}))], [ToolDefinition("f")])
    parts = dragoman.encode_request(request, "gemini").body["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == ["c2ln", None]


@promise("front:constructors")
def test_other_metadata_stays_beside_the_signature() -> None:
    call = ToolCall("c", "f", {}, metadata={**SIGNED, "openai": {"x": 1}})
    assert call.metadata == {"openai": {"x": Raw(b"1")}}
    assert Text("t", metadata=SIGNED).signature == Signature("google", "c2ln")
    with pytest.raises(InvalidValue, match=r"ToolCall\.metadata\['thoughtSignature'\]"):
        ToolCall("c", "f", {}, metadata=SIGNED, signature=Signature("google", "other"))


@promise("front:constructors")
def test_argument_text_is_kept_and_parsed() -> None:
    call = ToolCall("c", "f", arguments_text='{"a": 1.0}')
    assert call.arguments == {"a": 1.0}
    assert call.arguments_text == '{"a": 1.0}'
    assert ToolCall("c", "f", arguments_text="").arguments == {}
    assert not ToolCall("c", "f", arguments_text='{"a": ').parsed
    assert ToolCall("c", "f", {"a": 1}, arguments_text='{"a":1}').parsed
    assert ToolCall("c", "sql", arguments_text="select 1", custom=True).arguments == {"input": "select 1"}
    assert not ToolCall("c", "f", UNSET).parsed


@promise("front:constructors")
def test_a_plain_call_is_the_same_from_every_api() -> None:
    """The four fields of the specification, whatever the wire adds to them."""
    arguments = {"city": "Tokyo", "days": 2}
    text = '{"city": "Tokyo", "days": 2}'
    chat = {"id": "c", "type": "function", "function": {"name": "f", "arguments": text}}
    item = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": text}
    block = {"type": "tool_use", "id": "c", "name": "f", "input": arguments, "caller": {"type": "direct"}}
    part = {"functionCall": {"id": "c", "name": "f", "args": arguments}}
    used = {"toolUse": {"toolUseId": "c", "name": "f", "input": arguments}}
    bodies: dict[str, Any] = {
        "openai-chat": {"choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": [chat]}}]},
        "openai-responses": {"output": [item]},
        "anthropic-messages": {"role": "assistant", "content": [block], "stop_reason": "tool_use"},
        "gemini": {"candidates": [{"content": {"role": "model", "parts": [part]}}]},
        "bedrock-converse": {"output": {"message": {"role": "assistant", "content": [used]}}, "stopReason": "tool_use"},
    }
    for source, body in bodies.items():
        call = dragoman.decode_response(body, source).tool_calls[0]
        assert call.plain() == {"id": "c", "name": "f", "arguments": arguments}, source
    with pytest.raises(UnparsedArguments):
        ToolCall("c", "f", arguments_text="{").plain()


# ── choices ───────────────────────────────────────────────────────────────────────────────────────────────────


@promise("front:constructors")
@pytest.mark.parametrize(
    ("written", "mode", "names"),
    [
        ("auto", "auto", ()),
        ("none", "none", ()),
        ("required", "required", ()),
        ("get_weather", "required", ("get_weather",)),
        ({"name": "get_weather"}, "required", ("get_weather",)),
        ({"type": "function", "function": {"name": "get_weather"}}, "required", ("get_weather",)),
        ({"type": "function", "name": "get_weather"}, "required", ("get_weather",)),
        (["a", "b"], "required", ("a", "b")),
        ({"mode": "auto", "names": ["a"]}, "auto", ("a",)),
        (ToolChoice("auto"), "auto", ()),
    ],
)
def test_a_choice_is_read_in_every_form(written: Any, mode: Any, names: tuple[str, ...]) -> None:
    assert ToolChoice.of(written) == ToolChoice(mode, names)
    assert Request("m", [], tool_choice=written).tool_choice == ToolChoice(mode, names)


# ── mistakes ──────────────────────────────────────────────────────────────────────────────────────────────────


# Mistakes: (code, error, path, part of what is expected, part of what is found).
WRONG: list[tuple[str, type[InvalidValue], str, str, str]] = [
    ("ToolCall('c', 'f', '{\"a\":1}')", InvalidType, "ToolCall.arguments", "a mapping", "the string '{\"a\":1}'"),
    ("ToolCall('c', 'f', [1])", InvalidType, "ToolCall.arguments", "a mapping", "a list of 1"),
    ("ToolCall('c', 'f', None)", InvalidType, "ToolCall.arguments", "a mapping", "None"),
    ("ToolCall('c', 'f')", InvalidType, "ToolCall.arguments", "a mapping", "nothing"),
    ("ToolCall('c', 'f', {1: 2})", InvalidType, "ToolCall.arguments", "strings as keys", "1 (int)"),
    ("ToolCall('c', 'f', Raw(b'[1]'))", InvalidValue, "ToolCall.arguments", "a JSON object", "3 bytes"),
    ("ToolCall('c', 'f', {'a': object()})", InvalidType, "ToolCall.arguments", "JSON", "a dict of 1"),
    ("ToolCall('c', 'f', {'a': float('nan')})", InvalidType, "ToolCall.arguments", "JSON", "NaN"),
    ("ToolCall('c', 'f', {'a': 1}, '{}')", InvalidValue, "ToolCall.arguments_text", "JSON text of arguments", "'{}'"),
    ("ToolCall(5, 'f', {})", InvalidType, "ToolCall.id", "a string", "5 (int)"),
    ("ToolCall('', 'f', {})", InvalidValue, "ToolCall.id", "a string that is not empty", "the string ''"),
    ("ToolCall('c', '', {})", InvalidValue, "ToolCall.name", "a string that is not empty", "the string ''"),
    ("ToolCall('c', 'f', {}, metadata={'x': 1})", InvalidType, "ToolCall.metadata['x']", "a mapping", "1 (int)"),
    ("ToolCall('c', 'f', {}, metadata=[])", InvalidType, "ToolCall.metadata", "a mapping of", "an empty list"),
    (
        "ToolCall('c', 'f', {}, metadata={'thoughtSignature': 1})",
        InvalidType,
        "ToolCall.metadata['thoughtSignature']",
        "a string",
        "1",
    ),
    ("ToolCall('c', 'f', {}, custom='yes')", InvalidType, "ToolCall.custom", "True or False", "the string 'yes'"),
    ("ToolCall('c', 'f', {}, signature='abc')", InvalidType, "ToolCall.signature", "a Signature", "the string"),
    ("ToolResult('c', 'f', 'bogus', 'x')", InvalidValue, "ToolResult.kind", '"multimodal"', "'bogus'"),
    ("ToolResult('c', 'f', 'text', 5)", InvalidType, "ToolResult.value", "a string", "5 (int)"),
    ("ToolResult('c', 'f', 'text')", InvalidType, "ToolResult.value", "a string", "nothing"),
    ("ToolResult('c', 'f', 'text', Raw(b'5'))", InvalidType, "ToolResult.value", "a string", "5 (int)"),
    ("ToolResult('c', 'f', 'data')", InvalidType, "ToolResult.value", "JSON", "nothing"),
    ("ToolResult('c', 'f', 'data', b'x')", InvalidType, "ToolResult.value", "JSON", "1 byte"),
    ("ToolResult('c', 'f', 'data', [Text('a')])", InvalidType, "ToolResult.value", "'data'", "a list of 1"),
    ("ToolResult('c', 'f', 'data', {'a': {1, object()}})", InvalidType, "ToolResult.value", "JSON", "a dict of 1"),
    ("ToolResult('c', 'f', 'error')", InvalidType, "ToolResult.value", "the error as a string", "nothing"),
    ("ToolResult('c', 'f', 'multimodal')", InvalidValue, "ToolResult.value", "a list of content blocks", "empty"),
    ("ToolResult('c', 'f', 'multimodal', [])", InvalidValue, "ToolResult.value", "content blocks", "empty"),
    ("ToolResult('c', 'f', 'multimodal', 'x')", InvalidType, "ToolResult.value", "a list", "the string 'x'"),
    ("ToolResult('c', 'f', 'multimodal', [5])", InvalidType, "ToolResult.value[0]", "a Text", "5 (int)"),
    ("ToolResult('c', 'f', 'multimodal', [CALL])", InvalidType, "ToolResult.value[0]", "a Text", "a ToolCall"),
    (
        "ToolResult('c', 'f', 'multimodal', [Text('a')], [PNG])",
        InvalidValue,
        "ToolResult.parts",
        "beside value",
        "a list of 1",
    ),
    ("ToolResult('c', 'f', 'text', 'x', [PNG])", InvalidValue, "ToolResult.parts", 'kind is "text"', "a tuple of 1"),
    ("ToolResult('c', 'f', 'error', 'x', [PNG])", InvalidValue, "ToolResult.parts", "beside value", "a tuple of 1"),
    ("ToolResult('', 'f', 'text', 'x')", InvalidValue, "ToolResult.tool_call_id", "not empty", "''"),
    ("ToolResult('c', '', 'text', 'x')", InvalidValue, "ToolResult.name", "not empty", "''"),
    ("ToolResult.text(CALL, 5)", InvalidType, "ToolResult.value", "a string", "5 (int)"),
    ("ToolResult.text('c', '18°')", InvalidType, "ToolResult.text()", "(call, value)", "(str, str)"),
    ("ToolResult.data(CALL, 1, 2)", InvalidType, "ToolResult.data()", "(call, value)", "(ToolCall, int, int)"),
    ("ToolResult.error(call='c', value='x')", InvalidType, "ToolResult.error()", "(call, value)", "(call, value)"),
    ("Text(5)", InvalidType, "Text.text", "a string", "5 (int)"),
    ("Text('\\ud800')", InvalidValue, "Text.text", "text", "a lone surrogate"),
    ("Text('a', bogus=1)", InvalidType, "Text.bogus", "one of the fields text,", "an unknown field"),
    ("Text('a', text='b')", InvalidType, "Text.text", "once", "twice"),
    ("Text()", InvalidType, "Text.text", "a string", "nothing"),
    ("Text(*'abcdef')", InvalidType, "Text", "at most 5 arguments", "6 arguments"),
    ("Text('a', 'b')", InvalidType, "Text.citations", "a list", "the string 'b'"),
    ("Text('a', cache={'ttl': 5})", InvalidType, "Text.cache.ttl", "a string", "5 (int)"),
    (
        "Image('https://x.example/a.png')",
        InvalidType,
        "Image",
        "exactly one of data, url or file_id",
        "none",
    ),
    ("Image(url='u', data='AAAA')", InvalidType, "Image", "exactly one", "data and url"),
    ("Image(data='data:image/png;base64,AAAA')", InvalidValue, "Image.data", "bytes or base64", "'data:"),
    ("Audio()", InvalidType, "Audio", "exactly one", "none of them"),
    ("Document()", InvalidType, "Document", "exactly one of data, url, file_id or text", "none of them"),
    ("Reasoning(b'x')", InvalidType, "Reasoning.text", "a string", "1 byte"),
    ("Message('usr', 'hi')", InvalidValue, "Message.role", '"system", "user", "assistant" or "tool"', "'usr'"),
    ("Message('user')", InvalidType, "Message.parts", "", "nothing"),
    ("Message('user', None)", InvalidType, "Message.parts", "a list", "None"),
    ("Message('user', 5)", InvalidType, "Message.parts", "a list", "5 (int)"),
    ("Message('user', [5])", InvalidType, "Message.parts[0]", "a Text", "5 (int)"),
    ("Message('user', [Text])", InvalidType, "Message.parts[0]", "a Text", "the class Text"),
    ("Message('user', [{'text': 'hi'}])", InvalidType, "Message.parts[0].type", '"text"', "nothing"),
    ("Message('user', [{'type': 'image_url'}])", InvalidValue, "Message.parts[0].type", '"image"', "'image_url'"),
    ("Message('user', [{'type': 'image', 'source': {}}])", InvalidType, "Message.parts[0].source", "fields", "unknown"),
    ("Message('user', [{'type': 'text', 'text': 5}])", InvalidType, "Message.parts[0].text", "a string", "5 (int)"),
    ("Message.user(CALL)", InvalidType, "Message.parts[0]", "no ToolCall", "a ToolCall"),
    ("Message.assistant(ToolResult.text(CALL, 'x'))", InvalidType, "Message.parts[0]", "no ToolResult", "a ToolResult"),
    ("Message('tool', '18°')", InvalidType, "Message.parts", "ToolResult parts only", "the string '18°'"),
    ("Message.tool(Text('18°'))", InvalidType, "Message.parts", "ToolResult parts only", "a Text"),
    ("Message('user', 'hi', 5)", InvalidType, "Message.name", "a string", "5 (int)"),
    ("ToolDefinition('get.weather')", InvalidValue, "ToolDefinition.name", "1 to 64 letters", "'get.weather'"),
    ("ToolDefinition('x' * 65)", InvalidValue, "ToolDefinition.name", "1 to 64 letters", "…"),
    ("ToolDefinition('')", InvalidValue, "ToolDefinition.name", "1 to 64 letters", "''"),
    ("ToolDefinition('f', parameters='{}')", InvalidType, "ToolDefinition.parameters", "a mapping", "'{}'"),
    ("ToolDefinition('f', strict=1)", InvalidType, "ToolDefinition.strict", "True or False", "1 (int)"),
    ("CustomTool('')", InvalidValue, "CustomTool.name", "not empty", "''"),
    ("ProviderTool('x', 'google', None)", InvalidValue, "ProviderTool", "a `definition` with its `origin`", "nothing"),
    ("ProviderTool('x', definition={})", InvalidValue, "ProviderTool.origin", "the family of the definition", "None"),
    ("ProviderTool('x', 'google', [])", InvalidType, "ProviderTool.definition", "a mapping", "list"),
    ("ProviderTool('x', kind='search')", InvalidValue, "ProviderTool.kind", '"web_search"', "'search'"),
    ("ToolChoice('get_weather')", InvalidValue, "ToolChoice.mode", '"auto"', "'get_weather'"),
    ("ToolChoice('required', 'f')", InvalidType, "ToolChoice.names", "a list", "the string 'f'"),
    ("ToolChoice('none', ['f'])", InvalidValue, "ToolChoice.names", 'mode is "none"', "a tuple of 1"),
    ("ToolChoice('required', ['auto'])", InvalidValue, "ToolChoice.names[0]", "other than auto", "'auto'"),
    ("ToolChoice.of({'name': 'none'})", InvalidValue, "ToolChoice.names[0]", "other than auto", "'none'"),
    ("ToolChoice.of({'name': 5})", InvalidType, "ToolChoice.names[0]", "a string", "5 (int)"),
    ("ToolChoice.of({'type': 'any'})", InvalidValue, "ToolChoice", '"auto"', "a dict of 1"),
    ("ToolChoice.of([])", InvalidValue, "ToolChoice.names", "at least one name", "an empty tuple"),
    ("ToolChoice.of(5)", InvalidType, "ToolChoice", '"auto"', "5 (int)"),
    ("Request('m', 'hi')", InvalidType, "Request.messages", "a list", "the string 'hi'"),
    ("Request('m', Message.user('hi'))", InvalidType, "Request.messages", "a list", "a Message"),
    ("Request('m', ['hi'])", InvalidType, "Request.messages[0]", "a Message", "the string 'hi'"),
    ("Request('m', [{'role': 'usr', 'content': 'x'}])", InvalidValue, "Request.messages[0].role", '"user"', "'usr'"),
    ("Request('m', [{'role': 'user'}])", InvalidType, "Request.messages[0].parts", "", "nothing"),
    (
        "Request('m', [{'role': 'user', 'content': [{'type': 'text', 'text': 5}]}])",
        InvalidType,
        "Request.messages[0].parts[0].text",
        "a string",
        "5 (int)",
    ),
    ("Request('m', [], [{'type': 'web_search'}])", InvalidValue, "Request.tools[0].type", '"function"', "'web_search'"),
    ("Request('m', [], [{'name': 'a b'}])", InvalidValue, "Request.tools[0].name", "1 to 64", "'a b'"),
    ("Request('m', [], tool_choice={'name': 'auto'})", InvalidValue, "Request.tool_choice.names[0]", "other", "'auto'"),
    ("Request('m', [], temperature='1')", InvalidType, "Request.temperature", "a number", "the string '1'"),
    ("Request('m', [], temperature=float('inf'))", InvalidValue, "Request.temperature", "a finite number", "inf"),
    ("Request('m', [], max_output_tokens=True)", InvalidType, "Request.max_output_tokens", "an integer", "True"),
    ("Request('m', [], stop='END')", InvalidType, "Request.stop", "a list", "the string 'END'"),
    ("Request()", InvalidType, "Request.model", "a string or None", "nothing"),
    ("StructuredOutput('schema')", InvalidType, "StructuredOutput.schema", "a JSON Schema", "nothing"),
    ("Completion([5])", InvalidType, "Completion.messages[0]", "a Message", "5 (int)"),
    ("Finish('done')", InvalidValue, "Finish.reason", '"stop"', "'done'"),
    ("Usage('5')", InvalidType, "Usage.input", "an integer", "the string '5'"),
    ("Signature('google', b'x')", InvalidType, "Signature.data", "a string", "1 byte"),
]


def test_a_medium_in_the_place_of_its_type_is_reported_with_the_way_to_write_it() -> None:
    with pytest.raises(InvalidType, match=r"none of them; write Image\(url=...\) or \(data=...\)$"):
        Image("cat.png")
    with pytest.raises(InvalidType, match=r"none of them$"):
        Image()


@promise("front:checked")
@each(("code", "error", "path", "expected", "found"), WRONG)
def test_a_mistake_is_reported_where_it_is_made(
    code: str, error: type[InvalidValue], path: str, expected: str, found: str
) -> None:
    with pytest.raises(InvalidValue) as caught:
        eval(code, {**CLASSES, "CALL": CALL, "PNG": PNG, "Raw": Raw})  # noqa: S307 - the rows above
    problem = caught.value
    assert type(problem) is error
    assert problem.path == path
    assert expected in problem.expected
    assert found in problem.found
    assert str(problem).startswith(f"{path}: expected {problem.expected}, found {problem.found}")
    assert isinstance(problem, DragomanError)
    assert isinstance(problem, ValueError)
    assert isinstance(problem, TypeError) == (error is InvalidType)
    again = pickle.loads(pickle.dumps(problem))  # noqa: S301
    assert (type(again), str(again), again.field) == (type(problem), str(problem), problem.field)


@promise("front:checked")
@each("name", checked.NAMES)
def test_every_field_of_every_exported_class_refuses_a_bare_object(name: str) -> None:
    """So every field is checked: a bare object fits no type."""
    kind = CLASSES[name]
    good = GOOD[name]
    for field in kind.__struct_fields__:
        with pytest.raises(InvalidValue) as caught:
            kind(**{**good, field: object()})
        assert caught.value.path.startswith(f"{name}.{field}")
    assert set(hints_of(getattr(ir, name))) == set(kind.__struct_fields__)
    assert kind(**good) == getattr(ir, name)(**good)


GOOD: dict[str, dict[str, Any]] = {
    "Audio": {"url": "u"},
    "Cache": {},
    "Citation": {},
    "Completion": {"messages": ()},
    "CustomTool": {"name": "f"},
    "Document": {"url": "u"},
    "Failure": {"kind": "server", "message": "m"},
    "Finish": {"reason": "stop"},
    "Image": {"url": "u"},
    "Message": {"role": "user", "parts": "hi"},
    "Opaque": {"origin": "openai", "kind": "k", "block": {}},
    "SearchResult": {"source": "kb://1", "title": "t"},
    "Location": {},
    "Logprobs": {"tokens": (ir.TokenLogprob("a", -0.5),)},
    "TokenLogprob": {"token": "a", "logprob": -0.5},
    "ProviderTool": {"name": "f", "origin": "google", "definition": {}},
    "Reasoning": {},
    "ReasoningSettings": {},
    "Refusal": {"text": "no"},
    "Request": {"model": "m", "messages": ()},
    "ServerToolCall": {"id": "s", "name": "f", "origin": "anthropic", "block": {}},
    "ServerToolResult": {"tool_call_id": "s", "name": "f", "origin": "anthropic", "block": {}},
    "Signature": {"family": "google", "data": "x"},
    "StructuredOutput": {"kind": "json"},
    "Text": {"text": "t"},
    "ToolCall": {"id": "c", "name": "f", "arguments": {}},
    "ToolChoice": {"mode": "auto"},
    "ToolDefinition": {"name": "f"},
    "ToolResult": {"tool_call_id": "c", "name": "f", "kind": "data", "value": 1},
    "Usage": {},
    "WithheldCall": {"call": CALL, "reason": "blocked"},
}


@promise("front:checked")
def test_strings_of_other_classes_become_strings() -> None:
    """Codecs test for the exact type `str`."""

    class Word(StrEnum):
        HI = "hi"

    class Old(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "something else"

    for word in (Word.HI, Old("hi")):
        message = Message("user", word)
        assert type(message.content_held) is str
        assert message == Message("user", "hi")
        assert type(Text(word).text) is str


@promise("front:checked")
def test_a_number_that_python_does_not_write_is_refused() -> None:
    huge: Any = 10**5000
    mistakes: list[Callable[[], Any]] = [
        lambda: Text(huge),
        lambda: ToolCall("c", "f", {"a": huge}),
        lambda: Request("m", [], temperature=huge),
    ]
    for build in mistakes:
        with pytest.raises(InvalidValue):
            build()


@promise("front:checked")
def test_a_cycle_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    with pytest.raises(InvalidType, match=r"ToolCall\.arguments"):
        ToolCall("c", "f", loop)


_JUNK: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.just(10**400),
        st.floats(),
        st.text(max_size=4),
        st.sampled_from(["text", "data", "error", "multimodal", "auto", "user", "tool", "assistant", "\ud800"]),
        st.binary(max_size=3),
        st.sampled_from([object(), Text, ir.Text("t"), CALL, PNG, Raw(b"{}"), Raw(b"{"), UNSET, {1}, {1: 2}]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@promise("front:checked")
@given(st.data())
def test_junk_is_refused_by_a_typed_error_or_can_be_sent(data: st.DataObject) -> None:
    """No argument crashes a constructor, and no value that was built crashes an encoder."""
    name = data.draw(st.sampled_from(checked.NAMES))
    fields = CLASSES[name].__struct_fields__
    chosen = data.draw(st.lists(st.sampled_from(fields), unique=True, min_size=1, max_size=3))
    junk = {field: data.draw(_JUNK) for field in chosen}
    try:
        value = CLASSES[name](**{**GOOD[name], **junk})
        request = _asking(value)
    except InvalidValue:
        return
    for target in dragoman.formats():
        try:
            dragoman.encode_request(request, target).json()
        except DragomanError:
            continue


def _asking(value: Any) -> Request:
    """A request that holds the value."""
    if isinstance(value, Request):
        return value
    if isinstance(value, Message):
        return Request("m", [value])
    if isinstance(value, ToolCall):
        return Request("m", [Message.assistant(value)])
    if isinstance(value, ToolResult):
        return Request("m", [Message.assistant(CALL), Message.tool(value)])
    if isinstance(value, get_args(ir.AnyPart)):
        return Request("m", [Message("assistant" if isinstance(value, ir.Reasoning | ir.Refusal) else "user", [value])])
    if isinstance(value, ToolDefinition | CustomTool | ir.ProviderTool):
        return Request("m", [Message.user("hi")], [value])
    if isinstance(value, ToolChoice):
        return Request("m", [Message.user("hi")], [ToolDefinition("f")], value)
    return Request("m", [Message.user("hi")])


@promise("front:checked")
def test_lists_become_tuples() -> None:
    request = Request("m", [Message("user", [Text("a")])], [ToolDefinition("f")], stop=["x"])
    for sequence in (request.messages, request.tools, request.stop, request.messages[0].parts):
        assert type(sequence) is tuple
    assert dragoman.encode_request(request, "openai-chat").body["messages"][0]["content"] == [
        {"type": "text", "text": "a"}
    ]
