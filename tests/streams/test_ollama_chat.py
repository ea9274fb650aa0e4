"""Ollama's NDJSON streams: what old and new servers send, what strict clients accept, and every fault we know."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dragoman
from dragoman.codecs.ids import is_invented
from dragoman.ir import (
    AnyEvent,
    Citation,
    Completion,
    Failure,
    Finish,
    Finished,
    Image,
    Opaque,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
    Refusal,
    Signature,
    StreamFailed,
    StreamStart,
    Text,
    ToolCall,
    Usage,
    UsageUpdate,
)
from tests.support.calls import all_calls
from tests.support.promises import promise

FORMAT = "ollama-chat"
PIXEL = "iVBORw0KGgo="


def line(*, done: bool = False, **message: Any) -> dict[str, Any]:
    full = {"role": "assistant", "content": "", **message}
    return {"model": "m", "created_at": "2026-08-21T10:00:00.5Z", "message": full, "done": done}


def call(name: str, arguments: Any = None, **more: Any) -> dict[str, Any]:
    return {**more, "function": {"name": name, "arguments": {} if arguments is None else arguments}}


def last(reason: str | None = "stop", **more: Any) -> dict[str, Any]:
    counts = {"total_duration": 9, "prompt_eval_count": 10, "eval_count": 5, "eval_duration": 7}
    return {**line(done=True, **more), **({} if reason is None else {"done_reason": reason}), **counts}


def ndjson(*lines: dict[str, Any] | str) -> bytes:
    return "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in lines).encode()


def events_of(data: bytes) -> list[AnyEvent]:
    decoder = dragoman.StreamDecoder(FORMAT)
    return [*decoder.feed(data), *decoder.close()]


def read(*lines: dict[str, Any] | str) -> Completion:
    return dragoman.accumulate(events_of(ndjson(*lines)))


def calls_of(completion: Completion) -> list[tuple[str, object]]:
    return [(found.name, found.arguments) for found in completion.tool_calls]


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

TWO = [("f", {"a": 1}), ("g", {"b": 2})]
CALLS: dict[str, tuple[dict[str, Any], ...]] = {
    "each in a line of its own": (
        line(tool_calls=[call("f", {"a": 1}, id="x")]),
        line(tool_calls=[call("g", {"b": 2}, id="y")]),
        last(),
    ),
    "all in one line": (line(tool_calls=[call("f", {"a": 1}, id="x"), call("g", {"b": 2}, id="y")]), last()),
    "all in the last line": (
        line(content="Let me see."),
        last(tool_calls=[call("f", {"a": 1}, id="x"), call("g", {"b": 2}, id="y")]),
    ),
    "one before and one in the last line": (
        line(tool_calls=[call("f", {"a": 1}, id="x")]),
        last(tool_calls=[call("g", {"b": 2}, id="y")]),
    ),
    "without ids": (line(tool_calls=[call("f", {"a": 1})]), line(tool_calls=[call("g", {"b": 2})]), last()),
    "beside thinking and text": (
        line(thinking="hm", content="so", tool_calls=[call("f", {"a": 1}, id="x")]),
        line(content="and", tool_calls=[call("g", {"b": 2}, id="y")]),
        last(),
    ),
    "from a server that says no reason": (
        line(tool_calls=[call("f", {"a": 1}), call("g", {"b": 2})]),
        last(None),
    ),
    "as text": (line(tool_calls=[call("f", '{"a":1}'), call("g", '{"b":2}')]), last()),
}


@promise("report:3", "report:4")
@pytest.mark.parametrize("lines", CALLS.values(), ids=CALLS.keys())
def test_calls_wherever_they_come(lines: tuple[dict[str, Any], ...]) -> None:
    completion = read(*lines)
    assert calls_of(completion) == TWO
    assert completion.finish_reason == "tool_calls"
    assert len({found.id for found in completion.tool_calls}) == 2
    assert all(not found.incomplete for found in completion.tool_calls)


@promise("report:3", "report:4", "report:1", "report:11")
def test_calls_in_their_own_lines_stay_apart_in_chat() -> None:
    data = ndjson(*(line(tool_calls=[call("read", {"path": path})]) for path in "abc"), last())
    translator = dragoman.StreamTranslator(source=FORMAT, target="openai-chat")
    sent = (translator.feed(data) + translator.close()).decode()
    chunks = [json.loads(text) for text in sent.split("data: ") if text.startswith("{")]
    fragments = [
        fragment
        for chunk in chunks
        for choice in chunk["choices"]
        for fragment in choice["delta"].get("tool_calls", ())
    ]
    ids = {fragment["index"]: fragment["id"] for fragment in fragments if "id" in fragment}
    assert sorted(ids) == [0, 1, 2]
    assert len(set(ids.values())) == 3
    texts = dict.fromkeys(ids, "")
    for fragment in fragments:
        texts[fragment["index"]] += fragment["function"].get("arguments", "")
    assert [json.loads(texts[index]) for index in sorted(texts)] == [{"path": path} for path in "abc"]
    finishes = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"] if choice["finish_reason"]]
    assert finishes == ["tool_calls"]


@promise("report:24")
@pytest.mark.parametrize("target", ["openai-chat", "anthropic-messages", "gemini"])
def test_all_thinking_arrives_as_reasoning(target: str) -> None:
    words = [f"word {number} " for number in range(20)]
    data = ndjson(*(line(thinking=word) for word in words), line(content="done"), last())
    completion = dragoman.accumulate(events_of(data))
    assert (completion.reasoning, completion.text) == ("".join(words), "done")
    assert len([event for event in events_of(data) if isinstance(event, PartDelta)]) == 21
    translator = dragoman.StreamTranslator(source=FORMAT, target=target)
    decoder = dragoman.StreamDecoder(target)
    events = [*decoder.feed(translator.feed(data) + translator.close()), *decoder.close()]
    assert dragoman.accumulate(events).reasoning == "".join(words)


def test_invented_ids_of_a_stream_are_those_of_the_whole_answer() -> None:
    calls = [call("f"), call("f")]
    streamed = read(*(line(tool_calls=[each]) for each in calls), last())
    whole = dragoman.decode_response(last(tool_calls=calls), FORMAT)
    assert [found.id for found in streamed.tool_calls] == [found.id for found in whole.tool_calls]
    assert all(found.invented_id and is_invented(found.id) for found in streamed.tool_calls)


def test_a_stream_holds_what_the_whole_answer_holds() -> None:
    message: dict[str, Any] = {"thinking": "hm", "content": "so", "tool_calls": [call("f", {"a": 1}, id="x")]}
    streamed = read(line(thinking="h"), line(thinking="m"), line(content="so"), last(tool_calls=message["tool_calls"]))
    whole = dragoman.decode_response(last("stop", **message), FORMAT)
    assert streamed.finish == whole.finish
    assert streamed.usage == whole.usage == Usage(10, 5)
    assert (streamed.model, streamed.created, streamed.id) == (whole.model, whole.created, None)
    assert streamed.metadata == whole.metadata
    assert (streamed.text, streamed.reasoning, calls_of(streamed)) == (whole.text, whole.reasoning, calls_of(whole))


def test_a_line_may_hold_several_kinds_in_order() -> None:
    events = events_of(ndjson(line(thinking="hm", content="so", images=[PIXEL], tool_calls=[call("f")]), last()))
    kinds = [type(event.part).__name__ for event in events if isinstance(event, PartStart)]
    assert kinds == ["Reasoning", "Image", "Text", "ToolCall"]


def test_one_part_is_one_part_however_many_lines() -> None:
    events = events_of(ndjson(*(line(content=word) for word in "abc"), line(), line(content="d"), last()))
    assert sum(isinstance(event, PartStart) for event in events) == 1
    assert dragoman.accumulate(events).text == "abcd"


@pytest.mark.parametrize("arguments", [None, ...])
def test_a_call_without_arguments_has_none(arguments: Any) -> None:
    function = {"name": "f"} if arguments is ... else {"name": "f", "arguments": None}
    assert calls_of(read(line(tool_calls=[{"function": function}]), last())) == [("f", {})]


def test_arguments_that_were_no_json_come_back_as_text() -> None:
    (found,) = read(line(tool_calls=[call("f", {"unparsed_arguments": "{a"})]), last()).tool_calls
    assert not found.parsed
    assert found.arguments_text == "{a"


def test_numbers_keep_their_spelling() -> None:
    text = '{"n":1.0,"m":9007199254740993}'
    data = f'{{"message":{{"tool_calls":[{{"function":{{"name":"f","arguments":{text}}}}}]}},"done":true}}\n'
    (found,) = dragoman.accumulate(events_of(data.encode())).tool_calls
    assert found.arguments_text == text


@pytest.mark.parametrize("end", ["", "\n", "\r\n\r\n", " \n"])
def test_the_last_line_needs_no_line_end(end: str) -> None:
    data = ndjson(line(content="hi"), last()).rstrip(b"\n") + end.encode()
    assert dragoman.accumulate(events_of(data)).text == "hi"


# ── bad endings ───────────────────────────────────────────────────────────────────────────────────────────────


@promise("report:16")
@pytest.mark.parametrize("lines", [(), (line(content="hi"),), (line(tool_calls=[call("f")]),), (line(thinking="h"),)])
def test_an_early_end_is_an_error(lines: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(dragoman.TruncatedStream) as raised:
        read(*lines)
    assert all(not found.incomplete for found in all_calls(raised.value.partial))


def test_half_a_line_is_an_error_and_no_half_call() -> None:
    data = ndjson(line(content="hi"), line(tool_calls=[call("f", {"a": 1})]))
    events = events_of(data[:-20])
    assert isinstance(events[-1], StreamFailed)
    assert events[-1].failure.kind == "truncated"
    assert not any(isinstance(event, PartStart) and isinstance(event.part, ToolCall) for event in events)


ERROR_LINES = [
    ('{"error":"llama runner process has terminated"}', "llama runner process has terminated"),
    ('{"error":{"message":"from a proxy"}}', "from a proxy"),
]


@pytest.mark.parametrize(("text", "message"), ERROR_LINES)
@pytest.mark.parametrize("before", [(), (line(content="hi"),)], ids=["first", "later"])
def test_an_error_line_ends_the_stream(before: tuple[dict[str, Any], ...], text: str, message: str) -> None:
    events = events_of(ndjson(*before, text))
    assert isinstance(events[-1], StreamFailed)
    assert events[-1].failure.message == message
    assert sum(isinstance(event, StreamFailed | Finished) for event in events) == 1
    ends = [event for event in events if isinstance(event, PartEnd)]
    assert all(end.incomplete for end in ends)


def test_what_comes_after_the_end_is_ignored() -> None:
    assert read(line(content="hi"), last(), line(content="more"), '{"error":"late"}').text == "hi"


BAD_LINES = [
    "nonsense",
    "[1]",
    '{"message":3}',
    '{"message":{"content":["a"]}}',
    '{"message":{"tool_calls":[{"function":{"name":"f","arguments":[1]}}]}}',
    '{"message":{"tool_calls":[{"id":"x"}]}}',
    '{"done":"yes"}',
]


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize("text", BAD_LINES)
def test_a_line_of_another_shape_is_reported(text: str) -> None:
    events = events_of(ndjson(line(content="hi"), text, last()))
    assert isinstance(events[-1], StreamFailed)
    assert "ollama-chat stream" in events[-1].failure.message
    assert not any(isinstance(event, Finished) for event in events)


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


def written(*events: AnyEvent) -> tuple[list[dict[str, Any]], list[str]]:
    encoder = dragoman.StreamEncoder(FORMAT)
    data = encoder.encode(events) + encoder.close()
    assert data.endswith(b"\n")
    return [json.loads(text) for text in data.splitlines()], [loss.what for loss in encoder.losses]


START = StreamStart("r", "m", 1787306400)
END = Finished(Finish("stop"))


def test_text_and_thinking_in_lines() -> None:
    lines, losses = written(
        START,
        PartStart(0, Reasoning("")),
        PartDelta(0, "hm"),
        PartEnd(0),
        PartStart(1, Text("")),
        PartDelta(1, "h\ni"),
        PartEnd(1),
        UsageUpdate(Usage(10, 5)),
        END,
    )
    head = {"model": "m", "created_at": "2026-08-21T10:00:00Z", "id": "r"}
    assert lines == [
        {**head, "message": {"role": "assistant", "content": "", "thinking": "hm"}, "done": False},
        {**head, "message": {"role": "assistant", "content": "h\ni"}, "done": False},
        {
            **head,
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 10,
            "eval_count": 5,
            **dict.fromkeys(("total_duration", "load_duration", "prompt_eval_duration", "eval_duration"), 1),
        },
    ]
    assert losses == []


@promise("report:5", "report:9")
def test_calls_are_sent_whole_and_in_the_order_of_their_start() -> None:
    lines, _ = written(
        START,
        PartStart(0, ToolCall("a", "f")),
        PartStart(1, ToolCall("b", "g")),
        PartDelta(0, '{"x":\n1}'),
        PartDelta(1, "{}"),
        PartEnd(1),
        PartDelta(0, ""),
        PartEnd(0, Signature("google", "c2ln")),
        Finished(Finish("tool_calls")),
    )
    assert [line["message"].get("tool_calls") for line in lines] == [
        [
            {
                "id": "a",
                "function": {"name": "f", "arguments": {"x": 1}, "index": 0},
                "signature": {"family": "google", "data": "c2ln"},
            }
        ],
        [{"id": "b", "function": {"name": "g", "arguments": {}, "index": 1}}],
        None,
    ]
    assert lines[-1]["done_reason"] == "stop"


CUT = (START, PartStart(0, ToolCall("a", "f")), PartDelta(0, '{"x":'), PartEnd(0, incomplete=True))


@promise("law:7-no-guessing", "report:17")
def test_a_call_that_was_cut_is_never_one_to_run() -> None:
    lines, losses = written(*CUT, Finished(Finish("length")))
    assert lines[0]["message"]["tool_calls"][0]["function"]["arguments"] == {"unparsed_arguments": '{"x":'}
    assert lines[-1]["done_reason"] == "length"
    assert losses == ["call that was cut"]
    failed, _ = written(*CUT, StreamFailed(Failure("truncated", "cut")))
    assert failed == [{"error": "cut"}]


def test_a_custom_call_is_a_function_of_one_text() -> None:
    lines, _ = written(
        START, PartStart(0, ToolCall("a", "sql", custom=True)), PartDelta(0, "select 1"), PartEnd(0), END
    )
    assert lines[0]["message"]["tool_calls"][0]["function"]["arguments"] == {"input": "select 1"}


def test_a_call_that_starts_whole() -> None:
    lines, _ = written(START, PartStart(0, ToolCall("a", "f", {"n": 0})), PartEnd(0), END)
    assert lines[0]["message"]["tool_calls"][0]["function"]["arguments"] == {"n": 0}


@promise("report:40", "report:32")
def test_signatures_follow_the_parts_that_they_sign() -> None:
    encoder = dragoman.StreamEncoder(FORMAT)
    data = encoder.encode(
        [
            START,
            PartStart(0, Reasoning("")),
            PartDelta(0, "one"),
            PartEnd(0, Signature("anthropic", "sig-1")),
            PartStart(1, Reasoning("", Signature("anthropic", "hidden"), redacted=True)),
            PartEnd(1),
            PartStart(2, Text("")),
            PartDelta(2, "ho"),
            PartEnd(2, Signature("google", "sig-2")),
            PartStart(3, Text("", signature=Signature("google", "sig-3"))),
            PartEnd(3),
            PartStart(4, Reasoning("")),
            PartDelta(4, "cut"),
            PartEnd(4, Signature("anthropic", "sig-4"), incomplete=True),
            END,
        ]
    )
    arrived = dragoman.accumulate(events_of(data)).messages[0].parts
    assert [(type(part).__name__, part.text, part.signature and part.signature.data) for part in arrived] == [  # type: ignore[union-attr]
        ("Reasoning", "one", "sig-1"),
        ("Reasoning", "", "hidden"),
        ("Text", "ho", "sig-2"),
        ("Text", "", "sig-3"),
        ("Reasoning", "cut", None),
    ]


def test_what_a_line_cannot_hold_is_reported() -> None:
    lines, losses = written(
        START,
        PartStart(0, Refusal("")),
        PartDelta(0, "no"),
        PartEnd(0),
        PartStart(1, Image("image/png", PIXEL)),
        PartEnd(1),
        PartStart(2, Opaque("anthropic", "x", {"type": "x"})),
        PartEnd(2),
        PartStart(3, Text("")),
        PartDelta(3, "", Citation("https://example.org")),
        PartEnd(3),
        PartStart(4, Text("other"), 1),
        PartDelta(4, "more"),
        PartEnd(4),
        UsageUpdate(Usage(3, 2, cached=1)),
        Finished(Finish("refusal")),
    )
    assert [line["message"] for line in lines] == [
        {"role": "assistant", "content": "no"},
        {"role": "assistant", "content": ""},
    ]
    assert losses == [
        "refusal",
        "image",
        "anthropic block 'x'",
        "citation",
        "a further candidate",
        "cached tokens",
        "finish reason 'refusal'",
    ]


def test_an_empty_answer_is_done() -> None:
    lines, _ = written(END)
    assert [(line["done"], line["model"]) for line in lines] == [(True, "")]


def test_bookkeeping_of_this_server_returns_to_it() -> None:
    events = events_of(ndjson(line(content="hi"), last()))
    lines, losses = written(*events)
    assert lines[-1] == last()
    assert losses == []


def test_a_failure_is_one_line() -> None:
    failure = Failure("server", "a\nb", metadata={"ollama": {}})
    lines, _ = written(START, StreamFailed(failure))
    assert lines == [{"error": "a\nb"}]
