"""Streams as the chunks of multi-llm-chat: the tables of its specification, for every API."""

import json
from typing import Any

import pytest

import dragoman
from dragoman import ir
from dragoman.chat.chunks import ChunkReader
from tests.support.gemini_streams import call, chunk, sse, text
from tests.support.promises import promise


def read(source: str, body: bytes, size: int = 1 << 20) -> list[dict[str, Any]]:
    reader = ChunkReader(source)
    chunks = [one for start in range(0, len(body), size) for one in reader.feed(body[start : start + size])]
    return chunks + reader.close()


def merged(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Text in one piece, however it was cut."""
    whole: list[dict[str, Any]] = []
    for one in chunks:
        if whole and one["type"] == whole[-1]["type"] == "text":
            whole[-1] = {"type": "text", "content": whole[-1]["content"] + one["content"]}
        else:
            whole.append(one)
    return whole


SEARCH = {"type": "tool_call", "content": {"name": "search", "arguments": {"q": "東京"}}}


@promise("chat:chunks")
def test_the_table_for_gemini() -> None:
    body = sse([chunk(text("Hello")), chunk(call("search", {"q": "東京"})), chunk(finish="STOP")])
    assert read("gemini", body) == [{"type": "text", "content": "Hello"}, SEARCH]
    assert merged(read("gemini", body, size=3)) == [{"type": "text", "content": "Hello"}, SEARCH]


@promise("chat:chunks")
@pytest.mark.parametrize("first", [call("search"), call("search", {})])
def test_name_and_arguments_in_different_chunks_are_one_call_emitted_when_both_are_there(first: dict[str, Any]) -> None:
    reader = ChunkReader("gemini")
    assert reader.feed(sse([chunk(first)])) == []  # no arguments, or empty ones: real ones may follow
    chunks = reader.feed(sse([chunk(call(None, {"q": "東京"})), chunk(finish="STOP")]))
    assert chunks + reader.close() == [SEARCH]


@promise("chat:chunks")
def test_a_tool_without_arguments_is_called_at_the_end_and_only_at_a_good_one() -> None:
    called = [{"type": "tool_call", "content": {"name": "now", "arguments": {}}}]
    assert read("gemini", sse([chunk(call("now")), chunk(finish="STOP")])) == called
    for finish in ("SAFETY", "MAX_TOKENS"):
        chunks = read("gemini", sse([chunk(call("now")), chunk(finish=finish)]))
        assert [one for one in chunks if one["type"] == "tool_call"] == []
    assert [one["type"] for one in read("gemini", sse([chunk(call("now"))]))] == ["error"]


def delta(**fields: Any) -> dict[str, Any]:
    finish = fields.pop("finish", None)
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def piece(index: int, text: str, **more: Any) -> dict[str, Any]:
    function = {"arguments": text, **({"name": more.pop("name")} if "name" in more else {})}
    return {"index": index, "function": function, **more}


def openai(*chunks: dict[str, Any]) -> bytes:
    return b"".join(f"data: {json.dumps(one)}\n\n".encode() for one in chunks) + b"data: [DONE]\n\n"


@promise("chat:chunks")
def test_the_table_for_openai() -> None:
    body = openai(
        delta(role="assistant", content="Hel"),
        delta(content="lo"),
        delta(tool_calls=[piece(0, "", id="call_1", name="search", type="function")]),
        delta(tool_calls=[piece(1, "{}", id="call_2", name="now", type="function")]),
        delta(tool_calls=[piece(0, '{"q":')]),
        delta(tool_calls=[piece(0, '"東京"}')]),
        delta(finish="tool_calls"),
    )
    first = {**SEARCH["content"], "tool_call_id": "call_1"}  # type: ignore[dict-item]
    second = {"name": "now", "arguments": {}, "tool_call_id": "call_2"}
    assert merged(read("openai-chat", body)) == [
        {"type": "text", "content": "Hello"},
        {"type": "tool_call", "content": first},
        {"type": "tool_call", "content": second},
    ]


EVENTS = (
    ir.StreamStart(id="a", model="m"),
    ir.PartStart(0, ir.Text("")),
    ir.PartDelta(0, "Hel"),
    ir.PartDelta(0, "lo"),
    ir.PartEnd(0),
    ir.PartStart(1, ir.ToolCall("call_1", "search", {}, arguments_text="")),
    ir.PartDelta(1, '{"q":'),
    ir.PartDelta(1, '"東京"}'),
    ir.PartEnd(1),
    ir.Finished(ir.Finish("tool_calls")),
)


@promise("chat:chunks")
@pytest.mark.parametrize("source", dragoman.formats())
@pytest.mark.parametrize("size", [7, 1 << 20])
def test_every_api_gives_the_same_chunks(source: str, size: int) -> None:
    encoder = dragoman.StreamEncoder(source)
    body = encoder.encode(EVENTS) + encoder.close()
    text, called = merged(read(source, body, size))
    assert text == {"type": "text", "content": "Hello"}
    assert called["type"] == "tool_call"
    assert {key: called["content"][key] for key in ("name", "arguments")} == SEARCH["content"]


@promise("chat:chunks")
def test_a_broken_stream_emits_no_open_call_and_bad_arguments_stay_text() -> None:
    opened = delta(tool_calls=[piece(0, '{"q": ', id="call_1", name="search", type="function")])
    cut = openai(opened).removesuffix(b"data: [DONE]\n\n")
    assert [one["type"] for one in read("openai-chat", cut)] == ["error"]
    (bad,) = read("openai-chat", openai(opened, delta(finish="tool_calls")))
    assert bad["content"]["arguments"] == {"unparsed_arguments": '{"q": '}
