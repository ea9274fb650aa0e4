"""Values: exact JSON, equality, repr, the intermediate format as JSON, and the views that read it."""

import copy
import json
import pickle
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from msgspec import UNSET, Raw, structs

import dragoman
from dragoman import ir
from dragoman.errors import UnparsedArguments
from dragoman.ir.values import compact_text, exact_json, exact_object, note, parse_json, single_line, to_raw
from tests import strategies
from tests.support.cases import each
from tests.support.formats import FORMATS
from tests.support.promises import promise
from tests.support.trees import exact

# ── numbers and other hard JSON ───────────────────────────────────────────────────────────────────────────────

HARD = [
    "9007199254740993",
    "-9007199254740993",
    "123456789012345678901234567890",
    "1.0",
    "1.10",
    "-0.0",
    "1e400",
    "-1E+400",
    "1e-400",
    "0.1e1",
    '"\\u00e9\\ud83d\\ude42"',
    '"\\/"',
    '{"a":1,"a":2}',
    '{"b":1,"a":{"d":1,"c":2}}',
    "[" * 200 + "]" * 200,
    '""',
    "null",
]


@each("text", HARD)
def test_hard_json_passes_through_arguments_byte_for_byte(text: str) -> None:
    """Text on the wire stays that text; the bytes of an object on the wire stay the same JSON."""
    spelled = f'{{"x": {text}}}'
    body = json.dumps(
        {
            "model": "m",
            "messages": [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": spelled}}],
                }
            ],
        }
    )
    request = dragoman.decode_request(body, "openai-chat")
    assert request.messages[0].tool_calls[0].arguments_text == spelled
    for target in FORMATS:
        sent = dragoman.encode_request(request, target).json()
        calls = [call for message in dragoman.decode_request(sent, target).messages for call in message.tool_calls]
        assert exact(bytes(to_raw(calls[0].arguments_held))) == exact(spelled)


@each("text", HARD)
def test_hard_json_passes_through_unknown_keys(text: str) -> None:
    bodies = {
        "openai-chat": '{"model":"m","messages":[{"role":"user","content":"hi","x":%s}],"y":%s}',
        "gemini-interactions": '{"model":"m","input":[{"type":"user_input","content":"hi","x":%s}],"y":%s}',
        "anthropic-messages": '{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi","x":%s}],"y":%s}',
        "openai-responses": '{"model":"m","input":[{"role":"user","content":"hi","x":%s}],"y":%s}',
        "cohere-chat": '{"model":"m","messages":[{"role":"user","content":"hi","x":%s}],"y":%s}',
        "ollama-chat": '{"model":"m","messages":[{"role":"user","content":"hi","x":%s}],"y":%s}',
        "bedrock-converse": '{"messages":[{"role":"user","content":[{"text":"hi","x":%s}]}],"y":%s}',
        "gemini": '{"contents":[{"role":"user","parts":[{"text":"hi","x":%s}]}],"y":%s}',
    }
    for name in FORMATS:
        body = bodies["gemini" if name == "vertex" else name] % (text, text)
        again = dragoman.encode_request(dragoman.decode_request(body, name), name).json()
        found = exact(again)
        assert dict(found)["y"] == exact(text)
        assert text.encode() in again


def test_reading_hard_numbers() -> None:
    assert parse_json("9007199254740993") == 2**53 + 1
    assert parse_json("123456789012345678901234567890") == 123456789012345678901234567890
    assert parse_json("1e400") == Decimal("1e400")
    assert isinstance(parse_json("1.0"), float)
    assert isinstance(parse_json("1"), int)
    mixed = parse_json('{"big":1e400,"small":0.5,"n":1}')
    assert mixed == {"big": Decimal("1e400"), "small": 0.5, "n": 1}
    assert isinstance(mixed["small"], float)


def test_a_repeated_key_reads_as_its_last_value_and_is_kept() -> None:
    call = ir.ToolCall("c", "f", Raw(b'{"a":1,"a":2}'))
    assert call.arguments == {"a": 2}
    assert bytes(call.arguments_held) == b'{"a":1,"a":2}'


@pytest.mark.parametrize(
    "text", ["{", "", "nul", "{'a':1}", "NaN", "[1,]", '{"a":1}x', '"\\ud800"', "\x00", "[" * 100_000]
)
def test_text_that_is_not_json_gives_none(text: str) -> None:
    assert exact_json(text) is None
    assert exact_object(text) is None


@pytest.mark.parametrize("text", ["{}", '{"a":1}', '  {"a":1} '])
def test_objects_are_recognised(text: str) -> None:
    assert exact_object(text) is not None


@pytest.mark.parametrize("text", ["[]", "1", '"{}"', "null"])
def test_other_json_is_not_an_object(text: str) -> None:
    assert exact_json(text) is not None
    assert exact_object(text) is None


def test_json_text_is_compact_unescaped_and_in_order() -> None:
    assert compact_text({"b": "é🙂", "a": [1.0, None]}) == '{"b":"é🙂","a":[1.0,null]}'
    assert compact_text(Raw(b'{ "b" : 1.0 ,\n "a" : [ ] }')) == '{"b":1.0,"a":[]}'
    assert compact_text("x") == '"x"'
    assert compact_text(Decimal("1e400")) == "1E+400"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"x": [float("-inf")]}], ids=repr)
def test_values_that_json_lacks_are_refused_instead_of_becoming_null(value: Any) -> None:
    with pytest.raises(dragoman.EncodeError, match="NaN"):
        compact_text(value)
    with pytest.raises(dragoman.EncodeError, match="NaN"):
        to_raw(value)


def test_null_itself_is_accepted() -> None:
    assert compact_text({"x": [None]}) == '{"x":[null]}'


def test_json_for_framings_that_end_at_a_newline_is_one_line() -> None:
    assert bytes(single_line(Raw(b'{"a":\n1.0,\r\n"b":"x\\ny"}'))) == b'{"a":1.0,"b":"x\\ny"}'
    raw = Raw(b'{"a": 1}')
    assert single_line(raw) is raw


# ── equality, repr, copies ────────────────────────────────────────────────────────────────────────────────────


def test_values_with_the_same_meaning_are_equal() -> None:
    assert ir.ToolCall("c", "f", {"a": 1}) == ir.ToolCall("c", "f", Raw(b'{ "a" : 1 }'))
    assert ir.ToolCall("c", "f", {"a": 1}) != ir.ToolCall("c", "f", Raw(b'{"a":2}'))
    assert ir.ToolResult("c", "f", "data", [1, None]) == ir.ToolResult("c", "f", "data", Raw(b"[1, null]"))
    assert ir.Message("user", "hi") == ir.Message("user", (ir.Text("hi"),))
    assert ir.Message("user", "hi") != ir.Message("assistant", "hi")


def test_a_string_and_a_list_of_one_text_keep_their_form() -> None:
    assert ir.Message("user", "hi").content_held == "hi"
    assert ir.Message("user", (ir.Text("hi"),)).content_held == (ir.Text("hi"),)


def test_unparsed_calls_compare_and_print_without_raising() -> None:
    broken = ir.ToolCall("c", "f", UNSET, "{broken")
    assert broken == ir.ToolCall("c", "f", UNSET, "{broken")
    assert broken != ir.ToolCall("c", "f", {}, "{broken")
    assert "{broken" in repr(broken)


def test_repr_shows_fields_that_are_set_and_no_others() -> None:
    assert repr(ir.Text("hi")) == "Text(text='hi')"
    assert repr(ir.Message("user", "hi")) == "Message(role='user', parts=(Text(text='hi'),))"
    assert repr(ir.ToolCall("c", "f", Raw(b'{"a":1}'))) == "ToolCall(id='c', name='f', arguments={'a': 1})"


def test_repr_shows_metadata_as_values() -> None:
    text = ir.Text("hi", metadata={"google": {"x": Raw(b'{"a":1}')}})
    assert "object at 0x" not in repr(text)
    assert repr(text) == "Text(text='hi', metadata={'google': {'x': {'a': 1}}})"


@given(request=strategies.REQUESTS)
def test_copies_are_equal(request: ir.Request) -> None:
    assert copy.deepcopy(request) == request
    assert structs.replace(request) == request


def test_values_are_frozen() -> None:
    with pytest.raises(AttributeError):
        ir.Text("hi").text = "ho"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        ir.ToolCall("c", "f", {}).arguments = {}  # type: ignore[misc]


@pytest.mark.parametrize("target", FORMATS)
def test_encoded_bodies_can_be_compared_printed_and_pickled(target: str) -> None:
    request = ir.Request("m", (ir.Message("user", "hi"),), seed=1, top_k=2)
    first, second = dragoman.encode_request(request, target), dragoman.encode_request(request, target)
    assert first == second
    assert first != dragoman.encode_request(structs.replace(request, seed=2, model="n"), target)
    assert "lambda" not in repr(first)
    assert pickle.loads(pickle.dumps(first)) == first  # noqa: S301
    assert first.json() == first.content
    assert isinstance(first.body, dict)


# ── the intermediate format as JSON ───────────────────────────────────────────────────────────────────────────


@promise("report:30")
@given(request=strategies.ANY_REQUESTS)
def test_requests_survive_json(request: ir.Request) -> None:
    encoded = msgspec.json.encode(request)
    again = msgspec.json.decode(encoded, type=ir.Request)
    assert again == request
    assert msgspec.json.encode(again) == encoded


@promise("report:30")
@given(completion=strategies.COMPLETIONS)
def test_completions_survive_json(completion: ir.Completion) -> None:
    encoded = msgspec.json.encode(completion)
    assert msgspec.json.decode(encoded, type=ir.Completion) == completion


@promise("report:30")
@given(failure=strategies.FAILURES)
def test_failures_survive_json(failure: ir.Failure) -> None:
    assert msgspec.json.decode(msgspec.json.encode(failure), type=ir.Failure) == failure


@promise("report:30")
@given(request=strategies.REQUESTS)
@each("name", FORMATS)
def test_a_stored_request_leaves_as_the_same_bytes(name: str, request: ir.Request) -> None:
    """Decoded, stored as JSON, loaded, encoded: the same as without the detour, spelling notes included."""
    body = dragoman.encode_request(request, name).json()
    decoded = dragoman.decode_request(body, name)
    stored = msgspec.json.decode(msgspec.json.encode(decoded), type=ir.Request)
    assert dragoman.encode_request(stored, name).json() == dragoman.encode_request(decoded, name).json()


def test_json_has_the_kind_of_each_part() -> None:
    message = ir.Message("assistant", (ir.Text("hi"), ir.ToolCall("c", "f", {"a": 1})))
    assert json.loads(msgspec.json.encode(message)) == {
        "role": "assistant",
        "parts": [
            {"type": "text", "text": "hi"},
            {"type": "tool_call", "id": "c", "name": "f", "arguments": {"a": 1}},
        ],
    }
    assert json.loads(msgspec.json.encode(ir.Message("user", "hi"))) == {"role": "user", "parts": "hi"}


# ── views ─────────────────────────────────────────────────────────────────────────────────────────────────────

ANSWER = ir.Message(
    "assistant",
    (
        ir.Reasoning("hm, "),
        ir.Text("It is "),
        ir.ToolCall("c", "f", {"a": 1}),
        ir.Text("sunny."),
        ir.Reasoning("yes"),
        ir.Refusal("but no"),
    ),
)


def test_views_of_a_message() -> None:
    assert ANSWER.text == "It is sunny."
    assert ANSWER.reasoning == "hm, yes"
    assert ANSWER.refusal == "but no"
    assert [call.id for call in ANSWER.tool_calls] == ["c"]
    assert ANSWER.tool_results == ()
    assert ir.Message("user", "hi").text == "hi"
    assert ir.Message("user", "hi").refusal is None


def test_views_of_a_completion() -> None:
    completion = ir.Completion((ANSWER,), ir.Finish("tool_calls", "tool_use"))
    assert completion.text == "It is sunny."
    assert completion.reasoning == "hm, yes"
    assert completion.refusal == "but no"
    assert [call.name for call in completion.tool_calls] == ["f"]
    assert completion.finish_reason == "tool_calls"
    empty = ir.Completion(())
    assert (empty.text, empty.reasoning, empty.refusal, empty.tool_calls, empty.finish_reason) == (
        "",
        "",
        None,
        (),
        None,
    )


def test_views_of_a_call_and_a_result() -> None:
    assert ir.ToolCall("c", "f", {}).parsed
    assert not ir.ToolCall("c", "f", UNSET, "{").parsed
    with pytest.raises(UnparsedArguments, match=r"arguments of call 'c' to 'f' are not a JSON object: '\{'"):
        ir.ToolCall("c", "f", UNSET, "{").arguments  # noqa: B018
    assert ir.ToolResult("c", "f", "error", "x").is_error
    assert not ir.ToolResult("c", "f", "text", "x").is_error
    assert ir.ToolResult("c", "f", "text", "x").value_held == "x"
    assert bytes(ir.ToolResult("c", "f", "data", Raw(b"1.0")).value_held) == b"1.0"


def test_usage_has_the_count_of_uncached_tokens() -> None:
    assert ir.Usage(100, 5, cached=80, cache_written=15).uncached_input == 5
    assert ir.Usage(100, 5).uncached_input == 100


def test_notes_are_read_as_values() -> None:
    metadata: ir.Metadata = {"google": {"~x": Raw(b'{"a":1}'), "y": 2}}
    assert note(metadata, "google", "~x") == {"a": 1}
    assert note(metadata, "google", "y") == 2
    assert note(metadata, "openai", "~x") is UNSET
    assert note(None, "google", "~x") is UNSET
