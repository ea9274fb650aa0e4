"""Law 10. Bad input gives a typed error with path, expectation and finding; no crash.

What no table can list is in tests/laws/test_fuzz.py.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import ir
from dragoman.errors import DecodeError, DragomanError, EncodeError, LimitExceeded, UnknownFormat
from tests import strategies
from tests.support.cases import each
from tests.support.formats import FAMILY, FORMATS
from tests.support.promises import promise

pytestmark = promise("law:10-bad-input-good-words")

DECODERS = (dragoman.decode_request, dragoman.decode_response, dragoman.decode_error)


@each("name", FORMATS)
@each("decode", DECODERS, ids=lambda decode: decode.__name__)
@each(
    ("body", "path", "words"),
    [
        pytest.param(b"", "$", "JSON", id="nothing"),
        pytest.param(b"{", "$", "JSON", id="half an object"),
        pytest.param(b'{"a":1}x', "$", "JSON", id="something behind it"),
        pytest.param(b"\xff\xfe{}", "$", "UTF-8", id="not UTF-8"),
        pytest.param("\ud800", "$", "UTF-8", id="a str that is not text"),
        pytest.param(b'{"x":"\\ud800"}', "$", "surrogate", id="half a surrogate pair"),
        pytest.param(b"[" * 100_000, "$", "", id="nesting without end"),
        pytest.param(b'{"x":' * 100_000 + b"1" + b"}" * 100_000, "$", "", id="deep nesting"),
        pytest.param(b"NaN", "$", "JSON", id="not a number"),
        pytest.param({"x": object()}, "$", "JSON", id="a Python object"),
        pytest.param({"x": {1, 2}.__iter__()}, "$", "JSON", id="an iterator"),
    ],
)
def test_invalid_json(name: str, decode: Any, body: Any, path: str, words: str) -> None:
    with pytest.raises(DecodeError) as raised:
        decode(body, name)
    assert raised.value.path == path
    assert words in str(raised.value)
    assert name in raised.value.source


@each("name", FORMATS)
@each("decode", DECODERS, ids=lambda decode: decode.__name__)
@each("body", [b"[]", b"null", b'"text"', b"1", b"true"], ids=bytes.decode)
def test_json_that_is_not_a_body(name: str, decode: Any, body: bytes) -> None:
    with pytest.raises(DecodeError) as raised:
        decode(body, name)
    assert raised.value.path == "$"
    assert "object" in raised.value.expected


# Where a value of the wrong kind stands, and what the error has to say: (path, expected, got).
WRONG: dict[str, list[tuple[dict[str, Any], str, str, str]]] = {
    "openai-chat": [
        ({}, "$", "messages", "missing"),
        ({"messages": "hi"}, "$.messages", "array", "str"),
        ({"messages": [{"content": "hi"}]}, "$.messages[0].role", "user", "None"),
        ({"messages": [{"role": "wizard", "content": "hi"}]}, "$.messages[0].role", "user", "wizard"),
        ({"messages": [{"role": "user"}]}, "$.messages[0]", "content", "missing"),
        ({"messages": [{"role": "user", "content": 5}]}, "$.messages[0].content", "str", "int"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "$.messages[0].content[0]", "text", ""),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "$.messages[0].content[0].image_url",
            "url",
            "",
        ),
        ({"messages": [], "temperature": "hot"}, "$.temperature", "float", "str"),
        ({"messages": [], "tools": "f"}, "$.tools", "array", "str"),
        ({"messages": [], "tools": [{"type": "function"}]}, "$.tools[0]", "function", ""),
        ({"messages": [], "tool_choice": "maybe"}, "$.tool_choice", "auto", "maybe"),
        ({"messages": [], "tool_choice": {"type": "x"}}, "$.tool_choice", "function", "x"),
        ({"messages": [], "stop": 5}, "$.stop", "str", "int"),
    ],
    "anthropic-messages": [
        ({}, "$", "messages", "missing"),
        ({"messages": "hi"}, "$.messages", "array", "str"),
        ({"messages": [{"role": "wizard", "content": "hi"}]}, "$.messages[0].role", "user", "wizard"),
        ({"messages": [{"role": "user", "content": 5}]}, "$.messages[0].content", "str", "int"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "$.messages[0].content[0]", "text", ""),
        ({"messages": [], "max_tokens": "many"}, "$.max_tokens", "int", "str"),
        ({"messages": [], "tools": "f"}, "$.tools", "array", "str"),
        ({"messages": [], "tool_choice": {"type": "maybe"}}, "$.tool_choice", "auto", "maybe"),
    ],
    "bedrock-converse": [
        ({"messages": "hi"}, "$.messages", "array", "str"),
        ({"messages": [{"role": "wizard", "content": []}]}, "$.messages[0].role", "user", "wizard"),
        ({"messages": [{"role": "user", "content": "hi"}]}, "$.messages[0].content", "array", "str"),
        ({"messages": [{"role": "user", "content": [{"text": 5}]}]}, "$.messages[0].content[0].text", "str", "int"),
        ({"messages": [], "inferenceConfig": {"maxTokens": "many"}}, "$.inferenceConfig.maxTokens", "int", "str"),
        ({"messages": [], "toolConfig": {"tools": "f"}}, "$.toolConfig.tools", "array", "str"),
    ],
    "gemini": [
        ({}, "$", "contents", "missing"),
        ({"contents": "hi"}, "$.contents", "", "str"),
        ({"contents": [{"role": "wizard", "parts": []}]}, "$.contents[0].role", "user", "wizard"),
        ({"contents": [{"role": "user", "parts": [{"text": 5}]}]}, "$.contents[0].parts[0].text", "str", "int"),
        (
            {"contents": [], "generationConfig": {"temperature": "hot"}},
            "$.generationConfig.temperature",
            "number",
            "hot",
        ),
    ],
}


@each(
    ("name", "body", "path", "expected", "got"),
    [pytest.param(name, *row, id=f"{name} {row[1]} {row[3]}") for name in WRONG for row in WRONG[name]],
)
def test_a_request_that_breaks_its_own_format(
    name: str, body: dict[str, Any], path: str, expected: str, got: str
) -> None:
    with pytest.raises(DecodeError) as raised:
        dragoman.decode_request(body, name)
    assert raised.value.path == path
    assert expected in str(raised.value)
    assert got in str(raised.value)
    assert f"at {path}" in str(raised.value)


# Proto3 JSON leaves out what is empty, so any object is a Gemini answer: one that says nothing.
@pytest.mark.parametrize("name", ["openai-chat", "anthropic-messages"])
def test_an_answer_without_its_essence(name: str) -> None:
    with pytest.raises(DecodeError) as raised:
        dragoman.decode_response({"hello": "world"}, name)
    assert raised.value.path == "$"


def test_an_unknown_format() -> None:
    with pytest.raises(UnknownFormat, match="unknown format 'klingon'; known formats: openai-chat, ") as raised:
        dragoman.decode_request(b"{}", "klingon")
    assert raised.value.known == dragoman.formats(None)
    with pytest.raises(UnknownFormat):
        dragoman.encode_request(ir.Request("m", ()), "klingon")
    with pytest.raises(UnknownFormat):
        dragoman.translate_error(b'{"error":"down"}', source="openai-chat", target="klingon")


def test_a_body_beyond_all_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.codecs.reading.MAX_BODY_BYTES", 1000)
    with pytest.raises(LimitExceeded, match="at most 1000 bytes"):
        dragoman.decode_request(b" " * 1001, "openai-chat")


@given(request=strategies.WILD_REQUESTS)
@each("name", FORMATS)
def test_a_senseless_value_meets_a_typed_error_or_none(name: str, request: ir.Request) -> None:
    try:
        dragoman.encode_request(request, name).body  # noqa: B018
    except DragomanError as error:
        if not str(error):
            raise


NOT_TEXT = st.sampled_from(("\ud800", {"x": "\ud800"}, [float("nan")], {"x": float("inf")}))


@given(value=NOT_TEXT)
@each("name", FORMATS)
def test_a_value_that_is_not_json_is_refused_by_name(name: str, value: Any) -> None:
    """Lone surrogates have no UTF-8, and JSON has no infinity: better said than sent as null."""
    result = ir.ToolResult("call_1", "f", "data", value)
    call = ir.ToolCall("call_1", "f", {})
    request = ir.Request(
        "m", (ir.Message("user", "go"), ir.Message("assistant", (call,)), ir.Message("tool", (result,)))
    )
    with pytest.raises(DragomanError):
        dragoman.encode_request(request, name)


@each("status", [None, 400, 500])
@each("body", [b"", b"<html>Bad gateway</html>", b"{}", b"[]", b'"down"', b"null"], ids=bytes.decode)
@each("name", FORMATS)
def test_error_bodies_of_an_unknown_shape(name: str, body: bytes, status: int | None) -> None:
    """A proxy's page instead of the provider's error: typed refusal or a failure with the status, never a crash."""
    try:
        failure = dragoman.decode_error(body, name, status=status)
    except DecodeError as error:
        if error.path != "$":
            raise
    else:
        assert failure.status == status


def test_errors_say_whose_fault_it_is() -> None:
    error = DecodeError(path="$.a[0]", expected="str", got="int", source="gemini request")
    assert str(error) == "gemini request: expected str, got int - at $.a[0]"
    assert isinstance(error, ValueError)
    assert issubclass(LimitExceeded, DecodeError)


# ── what a target refuses: the error points into the client's body ────────────────────────────────────────────

_EMPTY: dict[str, tuple[dict[str, Any], str]] = {
    "openai-chat": ({"messages": []}, "$.messages"),
    "openai-responses": ({"input": [{"type": "odd"}]}, "$.input"),
    "anthropic-messages": ({"max_tokens": 9, "messages": []}, "$.messages"),
    "gemini": ({"contents": []}, "$.contents"),
    "bedrock-converse": ({"messages": []}, "$.messages"),
    "cohere-chat": ({"messages": []}, "$.messages"),
    "ollama-chat": ({"messages": []}, "$.messages"),
    "gemini-interactions": ({"input": []}, "$.input"),
}
_SCHEMA = {"type": "string"}
_HELLO = {"messages": [{"role": "user", "content": "hi"}]}
_TOOLS: dict[str, tuple[dict[str, Any], str]] = {
    "openai-chat": (
        {**_HELLO, "tools": [{"type": "function", "function": {"name": "f", "parameters": _SCHEMA}}]},
        "$.tools[0].function.parameters",
    ),
    "openai-responses": (
        {"input": "hi", "tools": [{"type": "function", "name": "f", "parameters": _SCHEMA}]},
        "$.tools[0].parameters",
    ),
    "gemini": (
        {
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "tools": [
                {"googleSearch": {}},
                {"function_declarations": [{"name": "f", "parameters_json_schema": _SCHEMA}]},
            ],
        },
        "$.tools[1].function_declarations[0].parameters_json_schema",
    ),
}


@each("source", list(_EMPTY))
def test_a_request_of_which_nothing_is_left(source: str) -> None:
    body, path = _EMPTY[source]
    refused: list[EncodeError] = []
    for target in FORMATS:
        if FAMILY[target] != FAMILY[source]:
            try:
                dragoman.translate_request(body, source=source, target=target)
            except EncodeError as error:
                refused.append(error)
    assert refused
    assert {error.path for error in refused} == {path}
    assert all(str(error).endswith(f"at {path}") for error in refused)


@each("source", list(_TOOLS))
def test_a_schema_that_the_target_refuses(source: str) -> None:
    body, path = _TOOLS[source]
    with pytest.raises(EncodeError) as raised:
        dragoman.translate_request(body, source=source, target="anthropic-messages")
    assert raised.value.path == path
