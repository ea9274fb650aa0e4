"""Law 10 for record formats: what is not a history is refused with a typed error that names the path."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import ir
from dragoman.errors import DecodeError, DragomanError, EncodeError, UnsupportedFormat
from tests import strategies
from tests.support.cases import each
from tests.support.formats import FORMATS
from tests.support.promises import promise
from tests.support.records import RECORDS, SAMPLES, histories
from tests.support.trees import variants

pytestmark = promise("law:10-bad-input-good-words")

NO_HISTORY = [
    pytest.param(b"", "JSON", id="nothing"),
    pytest.param(b"[{", "JSON", id="half a list"),
    pytest.param(b"\xff\xfe{}", "UTF-8", id="not UTF-8"),
    pytest.param(b'[{"role":"\\ud800"}]', "", id="half a surrogate pair"),
    pytest.param(b"[" * 100_000, "", id="nesting without end"),
    pytest.param(b'{"messages":' * 100_000, "", id="deep nesting"),
    pytest.param(b"null", "object", id="null"),
    pytest.param(b"5", "object", id="a number"),
    pytest.param(b"{}", "messages", id="an empty object"),
    pytest.param(b'{"messages":5}', "array", id="malformed messages"),
]


@each("name", RECORDS)
@each(("body", "words"), NO_HISTORY)
def test_bodies_that_are_not_histories(name: str, body: bytes, words: str) -> None:
    with pytest.raises(DecodeError) as raised:
        dragoman.decode_request(body, name)
    assert words in str(raised.value)
    assert raised.value.path.startswith("$")
    assert name in raised.value.source


ENTRY = {"role": "user", "content": "hi"}
WRONG: dict[str, list[tuple[Any, str, str]]] = {
    "universal": [
        ([ENTRY, 5], "$[1]", "a record"),
        ([{"role": "wizard", "content": "x"}], "$[0].role", "wizard"),
        ([{"role": 5}], "$[0].role", "int"),
        ([{"hello": "world"}], "$[0]", "a message (role), a call (arguments) or a result (tool_call_id)"),
        ([{"role": "user", "content": 5}], "$[0].content", "int"),
        ([{"role": "user", "content": [{"type": "text"}]}], "$[0].content[0]", "text"),
        ([{"role": "user", "tool_calls": [{"name": "f", "arguments": {}}]}], "$[0].tool_calls", "assistant"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "x"}]}]}, "$.messages[0].tool_calls[0]", "name"),
        ([{"name": "f", "arguments": 5}], "$[0].arguments", "int"),
        ([{"tool_call_id": "x", "name": "f", "is_error": "no"}], "$[0].is_error", "bool"),
        ([{"tool_call_id": "x", "name": "f"}], "$[0]", "a result"),
        ({"messages": [], "tools": [{}]}, "$.tools[0]", "name or function"),
        ({"messages": [], "tool_choice": {}}, "$.tool_choice", "name or function"),
    ],
    "modular-prompt": [
        ([{"toolCallId": "x", "name": "f", "kind": "picture", "value": 1}], "$[0].kind", "text, data, error"),
        ([{"toolCallId": "x", "name": "f", "kind": "text"}], "$[0]", "value"),
        ([{"role": "tool", "toolCallId": "x"}], "$[0]", "kind and value"),
        ([{"role": "tool", "kind": "multimodal", "value": 5}], "$[0].value", "array"),
        ([{"role": "assistant", "content": "", "toolCalls": [{}]}], "$[0].toolCalls[0]", "name or function"),
        ({"messages": [], "toolChoice": {}}, "$.toolChoice", "name or function"),
        ([{"hello": "world"}], "$[0]", "toolCallId"),
    ],
    "agent-sdk": [
        ([{"content": "x"}], "$[0]", "role"),
        ([{"role": "wizard"}], "$[0].role", "wizard"),
        ([{"role": "tool", "tool_call_id": "x", "tool_name": "f"}], "$[0].content", "text or parts"),
        ([{"role": "reasoning", "content": 5}], "$[0].content", "int"),
        ({"messages": [], "tools": [{"name": "auto"}]}, "$.tools[0].name", "auto"),
    ],
    "multi-llm-chat": [
        (["nonsense"], "$[0]", "object"),
        ([{"content": "x"}], "$[0]", "role"),
        ([{"role": "user", "content": {"text": "bad"}}], "$[0].content", "object"),
        ([{"role": "user", "content": [5]}], "$[0].content[0]", "int"),
        ([{"role": "gemini", "content": [{"type": "tool_call"}]}], "$[0].content[0]", "content or name"),
        ([{"role": "tool", "content": [{"type": "tool_result"}]}], "$[0].content[0]", "content"),
        ({"turns": [{"role": 5}]}, "$.turns[0].role", "int"),
    ],
}


@each(
    ("name", "body", "path", "words"),
    [pytest.param(name, *row, id=f"{name} {row[1]} {row[2]}") for name, rows in WRONG.items() for row in rows],
)
def test_a_history_that_breaks_its_own_format(name: str, body: Any, path: str, words: str) -> None:
    with pytest.raises(DecodeError) as raised:
        dragoman.decode_request(body, name)
    assert raised.value.path == path
    assert words in str(raised.value)


@given(data=st.data())
@each("name", RECORDS)
def test_a_damaged_history_is_read_or_refused_with_a_typed_error(name: str, data: st.DataObject) -> None:
    body = data.draw(st.sampled_from(SAMPLES[name]) | histories(name))
    damaged = list(variants(body, lambda found: data.draw(strategies.JSON_VALUES) if found else 5))
    text = json.dumps(data.draw(st.sampled_from(damaged))[1] if damaged else body).encode()
    cut = data.draw(st.integers(0, len(text)))
    for given_bytes in (text, text[:cut]):
        for read in (dragoman.decode_request, dragoman.decode_response):
            decoded = _refused_or(partial(read, given_bytes, name), DecodeError)
            if isinstance(decoded, ir.Request):
                assert dragoman.encode_request(decoded, name).json()


def _refused_or(work: Callable[[], Any], kind: type[DecodeError | EncodeError]) -> Any:
    """The decoded body; None if it was refused, with a path."""
    try:
        return work()
    except kind as error:
        path: str = error.path
    assert path.startswith("$")
    return None


@given(request=strategies.WILD_REQUESTS)
@each("name", RECORDS)
def test_a_senseless_value_is_stored_or_refused_with_a_typed_error(name: str, request: ir.Request) -> None:
    _refused_or(lambda: dragoman.encode_request(request, name), EncodeError)


@pytest.mark.parametrize("name", RECORDS)
def test_a_history_has_no_errors_and_no_streams(name: str) -> None:
    words = f"{name} is a format of stored histories: it has no "
    with pytest.raises(UnsupportedFormat, match=words + "errors"):
        dragoman.decode_error({"error": "down"}, name)
    with pytest.raises(UnsupportedFormat, match=words + "errors"):
        dragoman.translate_error({"error": "down"}, source="openai-chat", target=name)
    with pytest.raises(UnsupportedFormat, match=words + "streams"):
        dragoman.StreamDecoder(name)
    with pytest.raises(UnsupportedFormat, match=words + "streams"):
        dragoman.StreamTranslator(source="openai-chat", target=name)
    assert issubclass(UnsupportedFormat, DragomanError)


def test_api_and_record_formats_are_distinguished() -> None:
    assert set(dragoman.formats()) == set(FORMATS)
    assert dragoman.formats("wire") == dragoman.formats()
    assert dragoman.formats("record") == ("universal", "modular-prompt", "agent-sdk", "multi-llm-chat")
    assert dragoman.formats(None) == sum((dragoman.formats(kind) for kind in ("wire", "compatible", "record")), ())
