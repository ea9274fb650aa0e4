"""Responses streams: what servers really send, what strict clients accept, and every fault we know."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dragoman
from dragoman.codecs.stream_limits import Limits
from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Citation,
    Completion,
    CustomTool,
    Finish,
    Finished,
    Message,
    Opaque,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
    Refusal,
    Request,
    ServerToolCall,
    ServerToolResult,
    Signature,
    StreamFailed,
    StreamStart,
    Text,
    ToolCall,
    Usage,
    UsageUpdate,
)
from tests.support.calls import all_calls
from tests.support.cases import each
from tests.support.formats import FORMATS
from tests.support.promises import promise

FORMAT = "openai-responses"
SEALED = "gAAAAABnc2VhbGVk"
USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **fields}


def created() -> dict[str, Any]:
    response = {"id": "resp_1", "object": "response", "created_at": 7, "model": "m", "status": "in_progress"}
    return event("created", response={**response, "output": []})


def ended(*output: dict[str, Any], status: str = "completed", **fields: Any) -> dict[str, Any]:
    response = {"id": "resp_1", "object": "response", "created_at": 7, "model": "m", "status": status}
    return event(status, response={**response, "output": list(output), "usage": USAGE, **fields})


def added(index: int, **item: Any) -> dict[str, Any]:
    return event("output_item.added", output_index=index, item=item)


def done(index: int, **item: Any) -> dict[str, Any]:
    return event("output_item.done", output_index=index, item=item)


def function(**fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "", **fields}


def message(*content: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": list(content), **fields}


def output_text(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], **fields}


def wire(*payloads: dict[str, Any]) -> bytes:
    return b"".join(
        f"event: {payload['type']}\ndata: {json.dumps({**payload, 'sequence_number': number})}\n\n".encode()
        for number, payload in enumerate(payloads)
    )


def decoded(data: bytes) -> list[AnyEvent]:
    decoder = dragoman.StreamDecoder(FORMAT)
    whole = [*decoder.feed(data), *decoder.close()]
    decoder = dragoman.StreamDecoder(FORMAT)
    cut = [found for start in range(0, len(data), 7) for found in decoder.feed(data[start : start + 7])]
    assert [*cut, *decoder.close()] == whole
    assert one_by_one(data.split(b"\n\n")) == whole
    return whole


def one_by_one(events: list[bytes]) -> list[AnyEvent]:
    """As most servers send them: each read of the network has one whole event, which framing cuts on its fast path."""
    decoder = dragoman.StreamDecoder(FORMAT)
    events_read = [found for chunk in events if chunk for found in decoder.feed(chunk + b"\n\n")]
    return [*events_read, *decoder.close()]


def byte_by_byte(events: list[bytes]) -> list[AnyEvent]:
    """So that no event arrives whole, and framing never takes its fast path."""
    decoder = dragoman.StreamDecoder(FORMAT)
    data = b"".join(chunk + b"\n\n" for chunk in events)
    events_read = [found for place in range(len(data)) for found in decoder.feed(data[place : place + 1])]
    return [*events_read, *decoder.close()]


def completion_of(*payloads: dict[str, Any]) -> Completion:
    return dragoman.accumulate(decoded(wire(*payloads)))


def failure_of(*payloads: dict[str, Any]) -> Any:
    last = decoded(wire(*payloads))[-1]
    assert isinstance(last, StreamFailed)
    return last.failure


ARGUMENTS = '{"a": 1}'
DELTAS = [
    event("function_call_arguments.delta", output_index=0, delta=ARGUMENTS[:4]),
    event("function_call_arguments.delta", output_index=0, delta=ARGUMENTS[4:]),
]

# ── odd events ────────────────────────────────────────────────────────────────────────────────────────────────

_TEXT = b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta",'
_CALL = b'event: response.function_call_arguments.delta\ndata: {"type":"response.function_call_arguments.delta",'
_SUMMARY = b'event: response.reasoning_summary_text.delta\ndata: {"type":"response.reasoning_summary_text.delta",'
_OTHER_TYPE = b'event: response.output_text.delta\ndata: {"type":"response.refusal.delta",'
ODD = {
    "another item": [_TEXT + b'"delta":"x","output_index":9}'],
    "another place": [_TEXT + b'"delta":"x","output_index":0,"content_index":1}'],
    "another type than its name": [_OTHER_TYPE + b'"delta":"x","output_index":0}'],
    "two at a time": [_TEXT + b'"delta":"x","output_index":0}\n\n' + _TEXT + b'"delta":"y","output_index":0}'],
    "a line break between tokens": [_TEXT + b'\n"delta":"x","output_index":0}'],
    "a carriage return between tokens": [_TEXT + b'\r"delta":"x","output_index":0}'],
    "two lines of data": [_TEXT + b'"delta":"x",\ndata: "output_index":0}'],
    "a line break in a string": [_TEXT + b'"delta":"x\ny","output_index":0}'],
    "cut": [_TEXT + b'"delta":"x","output_index":0'],
    "no text": [_TEXT + b'"delta":"","output_index":0}', _TEXT + b'"delta":null,"output_index":0}'],
    "no string": [_TEXT + b'"delta":{"x":1},"output_index":0}'],
    "no UTF-8": [_TEXT + b'"delta":"\xff","output_index":0}'],
    "said twice": [_TEXT + b'"delta":"x","delta":"y","output_index":1,"output_index":0}'],
    "calls in turns": [
        _CALL + b'"delta":"%d","output_index":%d,"sequence_number":%d}' % (turn, place, turn)
        for turn in range(4)
        for place in (1, 2, 1)
    ],
    "sections in turns": [
        _SUMMARY + b'"delta":"s","output_index":3,"summary_index":%d}' % place for place in (0, 0, 0, 1, 1, 0, 0, 0, 1)
    ],
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_events_that_arrive_whole_are_read_as_byte_by_byte(odd: list[bytes]) -> None:
    opening = wire(
        event("created", response={"id": "resp_1", "model": "m"}),
        added(0, **message()),
        added(1, **function()),
        added(2, **function(call_id="call_2")),
        added(3, type="reasoning", id="rs_1", summary=[]),
    )
    texts = [_TEXT + b'"delta":"t%d","output_index":0,"sequence_number":%d}' % (number, number) for number in range(4)]
    events = [*opening.removesuffix(b"\n\n").split(b"\n\n"), *texts, *odd, *texts]
    assert one_by_one(events) == byte_by_byte(events)


def test_events_that_arrive_whole_count_towards_the_limits() -> None:
    events = [_TEXT + b'"delta":"text","output_index":0,"sequence_number":%d}\n\n' % number for number in range(99)]
    decoder = dragoman.StreamDecoder(FORMAT, limits=Limits(stream_bytes=4000))
    events_read = [found for chunk in events for found in decoder.feed(chunk)]
    assert isinstance(events_read[-1], StreamFailed)
    assert events_read[-1].failure.kind == "too_large"


# ── the answer is the same, streamed or not ───────────────────────────────────────────────────────────────────

OUTPUTS: dict[str, list[dict[str, Any]]] = {
    "text": [message(output_text("Hi"), status="completed")],
    "two texts and a refusal": [
        message(output_text("a"), output_text("b"), {"type": "refusal", "refusal": "c"}),
        message(output_text("d")),
    ],
    "reasoning, encrypted": [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SEALED}],
    "reasoning, in parts": [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": text} for text in "ab"]}
    ],
    "calls": [function(arguments=ARGUMENTS), function(id="fc_2", call_id="call_2", arguments="{}", status="completed")],
    "calls with empty ids": [
        function(call_id="", arguments=ARGUMENTS),
        function(id="fc_2", call_id="", arguments="{}", status="completed"),
    ],
    "a custom call": [{"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "sql", "input": "x"}],
    "a search": [{"type": "web_search_call", "id": "ws_1", "status": "completed"}, message(output_text("found"))],
    "code and its output": [
        {"type": "code_interpreter_call", "id": "ci_1", "code": "x", "outputs": [{"type": "logs", "logs": "1"}]}
    ],
    "something new": [{"type": "something_new", "id": "x_1", "payload": [1]}],
    "a message that says nothing": [message()],
}


@promise("law:5-streams-tell-the-same-story", "report:13")
@each("announced", [True, False])
@each("output", OUTPUTS.values(), ids=OUTPUTS.keys())
def test_items_that_come_whole_are_the_answer(output: list[dict[str, Any]], *, announced: bool) -> None:
    """Without deltas and without `output_item.added`, `output_item.done` has the whole item."""
    events = [created()]
    for index, item in enumerate(output):
        events += [added(index, **{**item, "encrypted_content": "provisional"})] if announced else []
        events.append(done(index, **item))
    whole = dragoman.decode_response(json.dumps(ended(*output)["response"]), FORMAT)
    assert completion_of(*events, ended(*output)) == whole
    # The last event repeats the items; gateways leave them out, or leave out that an item is done.
    assert completion_of(*events, ended()).messages == whole.messages
    written = dragoman.encode_response(completion_of(*events, ended()), FORMAT)
    assert written.body["output"] == dragoman.encode_response(whole, FORMAT).body["output"]
    assert completion_of(events[0], *events[1:-1], ended(*output)).messages == whole.messages


def test_text_flows_as_it_comes() -> None:
    events = decoded(
        wire(
            created(),
            event("in_progress", response={}),
            added(0, **message()),
            event("content_part.added", output_index=0, content_index=0, part=output_text("")),
            event("output_text.delta", output_index=0, content_index=0, delta="Hel"),
            event("output_text.delta", output_index=0, content_index=0, delta="lo", obfuscation="x"),
            event("output_text.done", output_index=0, content_index=0, text="Hello"),
            event("content_part.done", output_index=0, content_index=0, part=output_text("Hello")),
            done(0, **message(output_text("Hello"))),
            ended(message(output_text("Hello"))),
        )
    )
    assert events[0] == StreamStart("resp_1", "m", 7)
    assert events[1:4] == [PartStart(0, Text("")), PartDelta(0, "Hel"), PartDelta(0, "lo")]
    assert [type(found) for found in events[4:]] == [PartEnd, UsageUpdate, Finished]


@promise("report:21", "report:61")
def test_overlapping_calls_are_distinguished_by_their_index() -> None:
    """Proxies make a new id for every event; the place of the item is what counts."""
    completion = completion_of(
        created(),
        added(0, **function(id="a")),
        added(1, **function(id="b", call_id="call_2", name="g")),
        event("function_call_arguments.delta", output_index=1, item_id="c", delta='{"b"'),
        event("function_call_arguments.delta", output_index=0, item_id="d", delta=ARGUMENTS),
        event("function_call_arguments.delta", output_index=1, item_id="e", delta=":2}"),
        done(1, **function(id="f", call_id="call_2", name="g", arguments='{"b":2}')),
        done(0, **function(id="g", arguments=ARGUMENTS)),
        ended(),
    )
    calls = [(call.id, call.name, call.arguments) for call in completion.tool_calls]
    assert calls == [("call_1", "f", {"a": 1}), ("call_2", "g", {"b": 2})]


@promise("report:12")
@pytest.mark.parametrize("delta", [{"a": 1}, None])
def test_arguments_that_are_an_object_are_arguments(delta: Any) -> None:
    completion = completion_of(
        created(),
        added(0, **function()),
        event("function_call_arguments.delta", output_index=0, delta=delta),
        event("function_call_arguments.done", output_index=0, arguments={"a": 1}),
        done(0, **function(arguments={"a": 1})),
        ended(),
    )
    assert completion.tool_calls[0].arguments == {"a": 1}
    assert completion.finish_reason == "tool_calls"


@promise("report:13")
def test_an_unannounced_call_starts_when_its_name_is_known() -> None:
    completion = completion_of(created(), *DELTAS, done(0, **function(arguments=ARGUMENTS)), ended())
    assert completion.tool_calls[0].arguments_text == ARGUMENTS
    only_done = event("function_call_arguments.done", output_index=0, arguments=ARGUMENTS)
    assert completion_of(created(), added(0, **function()), only_done, ended()).tool_calls[0].arguments == {"a": 1}


@promise("report:21")
def test_a_call_that_was_never_done_ends_with_the_answer() -> None:
    completion = completion_of(created(), added(0, **function()), *DELTAS, ended())
    assert completion.tool_calls[0].arguments == {"a": 1}
    assert not completion.tool_calls[0].incomplete


HELLO = message(output_text("Hello"))
CALLED = function(arguments='{"a": 1}')
SPARSE: dict[str, tuple[list[dict[str, Any]], str, list[Any], str]] = {
    "MLflow names items by id only, and announces none": (
        [
            event("output_text.delta", item_id="msg_1", delta="Hel"),
            event("output_text.delta", item_id="msg_1", delta="lo"),
            event("output_item.done", item=HELLO),
            event("output_item.done", item=CALLED),
            ended(),
        ],
        "Hello",
        [{"a": 1}],
        "tool_calls",
    ),
    "items without an index, announced": (
        [
            created(),
            event("output_item.added", item=function()),
            event("function_call_arguments.delta", item_id="fc_1", delta='{"a": '),
            event("function_call_arguments.done", item_id="fc_1", arguments='{"a": 1}'),
            event("output_item.added", item=message()),
            event("content_part.added", item_id="msg_1", part=output_text("")),
            event("output_text.delta", item_id="msg_1", delta="Hello"),
            event("output_text.annotation.added", item_id="msg_1", annotation={"type": "url_citation", "url": "u"}),
            ended(),
        ],
        "Hello",
        [{"a": 1}],
        "tool_calls",
    ),
    "an index in the first event of an item only": (
        [
            created(),
            added(3, **message()),
            event("output_text.delta", item_id="msg_1", delta="Hello"),
            event("output_item.done", item=HELLO),
            ended(),
        ],
        "Hello",
        [],
        "stop",
    ),
    "no ids either": (
        [created(), event("output_text.delta", delta="Hel"), event("output_text.delta", delta="lo"), ended()],
        "Hello",
        [],
        "stop",
    ),
    "a text only where it is complete": (
        [
            created(),
            added(0, **message()),
            event("content_part.added", output_index=0, content_index=0, part=output_text("")),
            event("output_text.done", output_index=0, content_index=0, text="Hello"),
            ended(),
        ],
        "Hello",
        [],
        "stop",
    ),
    "a complete text that goes on": (
        [
            created(),
            added(0, **message()),
            event("output_text.delta", output_index=0, content_index=0, delta="Hel"),
            event("output_text.done", output_index=0, content_index=0, text="Hello"),
            ended(),
        ],
        "Hello",
        [],
        "stop",
    ),
    "arguments only where the call is announced": (
        [created(), added(0, **CALLED), ended()],
        "",
        [{"a": 1}],
        "tool_calls",
    ),
    "arguments announced and streamed": (
        [
            created(),
            added(0, **CALLED),
            event("function_call_arguments.delta", output_index=0, delta='{"a": 1}'),
            ended(),
        ],
        "",
        [{"a": 1}],
        "tool_calls",
    ),
    "a refusal that is never done": (
        [created(), event("refusal.delta", output_index=0, content_index=0, delta="No."), ended()],
        "",
        [],
        "refusal",
    ),
    "the status of the first event again": (
        [
            created(),
            event("output_text.delta", output_index=0, delta="Hello"),
            event("completed", response=created()["response"]),
        ],
        "Hello",
        [],
        "stop",
    ),
}


@pytest.mark.parametrize("case", SPARSE)
def test_streams_of_servers_that_leave_out_what_openai_sends(case: str) -> None:
    payloads, text, arguments, reason = SPARSE[case]
    answer = completion_of(*payloads)
    assert (answer.text, [call.arguments for call in answer.tool_calls], answer.finish_reason) == (
        text,
        arguments,
        reason,
    )


def test_the_name_beside_complete_arguments_is_no_loss() -> None:
    """The specification requires it there, and vLLM sends it."""
    arguments = event("function_call_arguments.done", output_index=0, item_id="fc_1", arguments="{}", name="f")
    stream = wire(created(), added(0, **function()), arguments, done(0, **function(arguments="{}")), ended())
    translator = dragoman.StreamTranslator(source=FORMAT, target="openai-chat")
    translator.feed(stream)
    assert [loss for loss in translator.losses if loss.what == "name"] == []


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        ({"type": "error", "error": "boom"}, "server", "boom"),
        ({"type": "error", "code": 429, "message": "slow down"}, "rate_limit", "slow down"),
        ({"type": "error", "error": {"code": "401", "message": "no key"}}, "authentication", "no key"),
        (
            event("failed", response={"status": "failed", "error": {"code": 503, "message": "later"}}),
            "overloaded",
            "later",
        ),
    ],
)
def test_errors_of_compatible_servers_say_what_happened(error: dict[str, Any], kind: str, words: str) -> None:
    with pytest.raises(dragoman.StreamError) as caught:
        completion_of(created(), error)
    assert (caught.value.failure.kind, caught.value.failure.message) == (kind, words)


def test_a_call_that_ran_into_the_limit_is_incomplete() -> None:
    early: dict[str, Any] = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    for status in ("incomplete", "completed"):
        item = function(arguments='{"a', status=status)
        completion = completion_of(created(), added(0, **function()), DELTAS[0], done(0, **item), ended(item, **early))
        assert completion.finish_reason == "length"
        assert all_calls(completion)[0].incomplete


def test_reasoning_takes_its_encrypted_form_from_the_end() -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": text} for text in "ab"]}
    completion = completion_of(
        created(),
        added(0, type="reasoning", id="rs_1", summary=[], encrypted_content="provisional"),
        event("reasoning_summary_part.added", output_index=0, summary_index=0, part={}),
        event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="a"),
        event("reasoning_summary_text.delta", output_index=0, summary_index=1, delta="b"),
        done(0, **item, encrypted_content=SEALED),
        ended(),
    )
    (part,) = completion.messages[0].parts
    assert isinstance(part, Reasoning)
    assert (part.text, part.signature) == ("a\n\nb", Signature(FORMAT, SEALED, "rs_1"))


@pytest.mark.parametrize(
    ("streamed", "final", "is_run"),
    [
        ('{"a": 1}', '{"a": 1}', True),
        ('{"a": 1}', '{"a":1}', True),
        ('{"a"', '{"a": 1}', True),
        ("", '{"a": 1}', True),
        ('{"a": 1}', '{"a": 2}', False),
        ('{"a": 1}{"a": 1}', '{"a": 1}', False),
    ],
)
@pytest.mark.parametrize("said_by", ["arguments.done", "item.done", "both", "response.completed"])
def test_a_call_that_ends_with_other_arguments_than_it_streamed_is_not_run(
    streamed: str, final: str, said_by: str, *, is_run: bool
) -> None:
    """The final arguments are the true ones, but those that a client already has cannot be taken back."""
    call = function(arguments=final)
    events = [added(0, **function()), event("function_call_arguments.delta", output_index=0, delta=streamed)]
    if said_by in {"arguments.done", "both"}:
        events.append(event("function_call_arguments.done", output_index=0, arguments=final))
    if said_by in {"item.done", "both"}:
        events.append(done(0, **call))
    last = ended(*([] if said_by == "arguments.done" else [call]))
    stream = wire(created(), *events, last)
    answer = dragoman.accumulate(decoded(stream))
    assert [found.arguments for found in answer.tool_calls] == ([{"a": 1}] if is_run else [])
    for target in (name for name in FORMATS if name != FORMAT):
        translator = dragoman.StreamTranslator(source=FORMAT, target=target)
        crossed = translator.feed(stream) + translator.close()
        decoder = dragoman.StreamDecoder(target)
        there = dragoman.accumulate([*decoder.feed(crossed), *decoder.close()])
        assert bool(there.tool_calls) == is_run, target
        assert ("corrected arguments" in {loss.what for loss in translator.losses}) != is_run, target


_TEXT_DELTA = event("output_text.delta", output_index=0, content_index=0, delta="first")
_TEXT_DONE = event("output_text.done", output_index=0, content_index=0, text="second")
_ANNOUNCED_TEXT = added(0, **message(status="in_progress"))
_SUMMARY_DELTA = event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="first")
_THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "second"}]}
_FIRST, _SECOND = message(output_text("first")), message(output_text("second"))
_CORRECTED: dict[str, tuple[list[dict[str, Any]], str]] = {
    "item": ([_ANNOUNCED_TEXT, _TEXT_DELTA, done(0, **_SECOND), ended(_SECOND)], "second"),
    "both": ([_ANNOUNCED_TEXT, _TEXT_DELTA, _TEXT_DONE, done(0, **_SECOND), ended(_SECOND)], "second"),
    "only the event of the text": (
        [_ANNOUNCED_TEXT, _TEXT_DELTA, _TEXT_DONE, done(0, **_FIRST), ended(_FIRST)],
        "first",
    ),
    "an item that is never done": ([_ANNOUNCED_TEXT, _TEXT_DELTA, _TEXT_DONE, ended()], "second"),
    "the last event": ([_ANNOUNCED_TEXT, _TEXT_DELTA, done(0, **_FIRST), ended(_SECOND)], "first"),
    "reasoning": (
        [added(0, type="reasoning", id="rs_1"), _SUMMARY_DELTA, done(0, **_THOUGHT), ended(_THOUGHT)],
        "second",
    ),
}


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize("case", _CORRECTED)
def test_a_text_that_ends_otherwise_than_it_streamed_is_reported(case: str) -> None:
    """The answer has the final text; a client that already has the first one cannot get it."""
    payloads, text = _CORRECTED[case]
    stream = wire(created(), *payloads)
    answer = dragoman.accumulate(decoded(stream))
    part = answer.messages[0].parts[0]
    assert isinstance(part, Text | Reasoning)
    assert (part.text, "~corrected" in str(part.metadata)) == (text, False)
    for target in (name for name in FORMATS if name != FORMAT):
        translator = dragoman.StreamTranslator(source=FORMAT, target=target)
        assert b"second" not in translator.feed(stream) + translator.close()
        assert "corrected text" in {loss.what for loss in translator.losses}, target


@pytest.mark.parametrize("final", ["first", "first and more", ""])
def test_a_text_that_is_repeated_continued_or_left_out_is_no_correction(final: str) -> None:
    item = message(output_text(final))
    whole = event("output_text.done", output_index=0, content_index=0, text=final)
    stream = wire(created(), _ANNOUNCED_TEXT, _TEXT_DELTA, whole, done(0, **item), ended(item))
    assert dragoman.accumulate(decoded(stream)).text == (final or "first")
    translator = dragoman.StreamTranslator(source=FORMAT, target="openai-chat")
    translator.feed(stream)
    assert not [loss for loss in translator.losses if loss.what.startswith("corrected")]


@pytest.mark.parametrize("name", ["x_keyword_search", "x_semantic_search", "x_user_search", "x_thread_fetch"])
@pytest.mark.parametrize("target", FORMATS)
def test_searches_that_xai_has_run_are_no_calls_for_the_client(name: str, target: str) -> None:
    """They are custom tool calls without results, as recorded; a client would run them or fail."""
    fields = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "xs_call_1", "name": name}
    item = {**fields, "input": '{"query": "x"}', "status": "completed"}
    found = message(output_text("Found."), status="completed")
    stream = wire(
        created(),
        added(0, **{**item, "input": "", "status": "in_progress"}),
        event("custom_tool_call_input.delta", output_index=0, delta=item["input"]),
        event("custom_tool_call_input.done", output_index=0, input=item["input"]),
        done(0, **item),
        done(1, **found),
        ended(item, found),
    )
    whole = ended(item, found)["response"]
    assert (
        completion_of(*[json.loads(line[5:]) for line in stream.splitlines() if line[:5] == b"data:"]).text == "Found."
    )
    translator = dragoman.StreamTranslator(source=FORMAT, target=target)
    decoder = dragoman.StreamDecoder(target)
    streamed = dragoman.accumulate([*decoder.feed(translator.feed(stream) + translator.close()), *decoder.close()])
    crossed = dragoman.translate_response(whole, source=FORMAT, target=target)
    for answer in (streamed, dragoman.decode_response(crossed.body, target)):
        assert (answer.finish_reason, answer.tool_calls, answer.text.strip()) == ("stop", (), "Found.")
    if target == FORMAT:
        assert crossed.body == whole
    else:
        assert any(loss.path == "$.output[0]" for loss in crossed.losses)


def test_searches_that_overlap_keep_their_results() -> None:
    """xAI announces all searches of a turn before the first is done, and ends them in another order."""
    searches = [
        {
            "type": "web_search_call",
            "id": f"ws_{number}",
            "status": "completed",
            "action": {
                "type": "search",
                "query": f"q{number}",
                "sources": [{"type": "url", "url": f"https://{number}.example"}],
            },
        }
        for number in range(3)
    ]
    announced = [
        added(number, **{**item, "status": "in_progress", "action": {"type": "search", "query": ""}})
        for number, item in enumerate(searches)
    ]
    ends = [done(number, **searches[number]) for number in (2, 0, 1)]
    whole = dragoman.decode_response(ended(*searches)["response"], FORMAT)
    streamed = dragoman.accumulate(decoded(wire(created(), *announced, *ends, ended(*searches))))
    assert streamed.messages == whole.messages


def test_reasoning_that_streamed_its_summary_first_says_that_its_content_does_not_cross() -> None:
    summary, content = [{"type": "summary_text", "text": "short"}], [{"type": "reasoning_text", "text": "long"}]
    item = {"type": "reasoning", "id": "rs_1", "summary": summary, "content": content}
    delta = event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="short")
    stream = wire(created(), added(0, type="reasoning", id="rs_1", summary=[]), delta, done(0, **item), ended(item))
    translator = dragoman.StreamTranslator(source=FORMAT, target="ollama-chat")
    assert b"short" in translator.feed(stream) + translator.close()
    assert [loss.what for loss in translator.losses if loss.severity == "dropped"] == ["content"]


def test_items_keep_their_order_when_they_are_done_in_another() -> None:
    searches = [{"type": "web_search_call", "id": f"ws_{number}"} for number in range(3)]
    announced = [added(number, **item) for number, item in enumerate(searches)]
    completion = completion_of(created(), *announced, *(done(n, **searches[n]) for n in (2, 0, 1)), ended(*searches))
    assert [part.id for part in completion.messages[0].parts if isinstance(part, ServerToolCall)] == [
        "ws_0",
        "ws_1",
        "ws_2",
    ]


@pytest.mark.parametrize("name", ["output_text.annotation.added", "output_text_annotation.added"])
def test_a_citation_is_emitted_once(name: str) -> None:
    annotation = {"type": "url_citation", "url": "https://example.org", "title": "E", "start_index": 0, "end_index": 2}
    text = output_text("hi") | {"annotations": [annotation]}
    completion = completion_of(
        created(),
        added(0, **message()),
        event("output_text.delta", output_index=0, content_index=0, delta="hi"),
        event(name, output_index=0, content_index=0, annotation_index=0, annotation=annotation),
        done(0, **message(text)),
        ended(),
    )
    (part,) = completion.messages[0].parts
    assert isinstance(part, Text)
    assert [citation.url for citation in part.citations] == ["https://example.org"]


def test_unknown_events_are_not_errors_and_a_resumed_stream_has_no_beginning() -> None:
    completion = completion_of(
        event("something.new", x=1),
        {"type": "keepalive"},
        event("output_text.delta", output_index=0, content_index=0, delta="on"),
        event("apply_patch_call_operation_diff.delta", output_index=1, delta="-"),
        ended(message(output_text("on"))),
    )
    assert completion.text == "on"


# ── failures stay failures ────────────────────────────────────────────────────────────────────────────────────

ERROR = {"type": "rate_limit_error", "code": "rate_limit_exceeded", "message": "slow down", "param": None}


@promise("report:21")
@pytest.mark.parametrize(
    "last",
    [
        {"type": "error", "error": ERROR},
        {"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": None},
        ended(status="failed", error={"code": "rate_limit_exceeded", "message": "slow down"}),
    ],
    ids=["nested", "flat", "failed"],
)
def test_an_error_is_an_error_in_every_shape(last: dict[str, Any]) -> None:
    failure = failure_of(created(), added(0, **function()), DELTAS[0], last, ended(status="failed"))
    assert (failure.kind, failure.code, failure.message) == ("rate_limit", "rate_limit_exceeded", "slow down")


def test_a_used_up_plan_is_a_rate_limit() -> None:
    """The type is what Codex reads; this error has no code."""
    last = {"type": "error", "error": {"type": "usage_limit_reached", "message": "used up", "resets_in_seconds": 60}}
    assert failure_of(created(), last).kind == "rate_limit"


@promise("report:16", "report:21")
def test_a_stream_without_its_last_event_is_truncated() -> None:
    payloads = [created(), added(0, **function()), *DELTAS]
    with pytest.raises(dragoman.TruncatedStream) as caught:
        completion_of(*payloads)
    assert all_calls(caught.value.partial)[0].incomplete
    with pytest.raises(dragoman.TruncatedStream):
        dragoman.accumulate(decoded(wire(*payloads) + b"data: [DONE]\n\n"))


def test_done_after_the_last_event_is_ignored() -> None:
    assert isinstance(decoded(wire(created(), ended(message(output_text("x")))) + b"data: [DONE]\n\n")[-1], Finished)


@pytest.mark.parametrize(
    "payload",
    [
        b"nope",
        b'{"x":1}',
        b'{"type":"response.completed"}',
        b'{"type":"response.output_text.delta","output_index":"x","delta":"y"}',
    ],
)
def test_an_invalid_event_breaks_the_stream(payload: bytes) -> None:
    last = decoded(wire(created()) + b"data: " + payload + b"\n\n")[-1]
    assert isinstance(last, StreamFailed)
    assert last.failure.kind == "server"


def test_more_of_an_item_that_was_done_is_an_illegal_move() -> None:
    failure = failure_of(created(), done(0, **function(arguments="{}")), DELTAS[0], ended())
    assert "after the item was done" in failure.message
    assert "function_call_arguments.delta" in failure.message


# ── what we write ─────────────────────────────────────────────────────────────────────────────────────────────


def payloads_of(events: list[AnyEvent]) -> list[dict[str, Any]]:
    encoder = dragoman.StreamEncoder(FORMAT)
    data = (encoder.encode(events) + encoder.close()).decode()
    found = []
    for block in data.split("\n\n")[:-1]:
        name, payload = block.split("\n")
        found.append(json.loads(payload.removeprefix("data: ")))
        assert name == f"event: {found[-1]['type']}"
    assert [payload["sequence_number"] for payload in found] == list(range(len(found)))
    return found


FINISHED = Finished(Finish("stop"))


def test_a_text_has_every_event_of_its_life() -> None:
    found = payloads_of([StreamStart("r", "m", 1), PartStart(0, Text("")), PartDelta(0, "hi"), PartEnd(0), FINISHED])
    assert [payload["type"].removeprefix("response.") for payload in found] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert found[-1]["response"]["output"] == [found[-2]["item"]]
    assert found[-2]["item"]["status"] == "completed"


def test_texts_that_follow_each_other_share_an_item() -> None:
    texts: list[AnyEvent] = [PartStart(0, Text("a")), PartEnd(0), PartStart(1, Refusal("b")), PartEnd(1)]
    call: list[AnyEvent] = [PartStart(2, ToolCall("c", "f")), PartEnd(2)]
    items = payloads_of([StreamStart("r", "m", 1), *texts, *call, FINISHED])[-1]["response"]["output"]
    assert [item["type"] for item in items] == ["message", "function_call"]
    assert [part["type"] for part in items[0]["content"]] == ["output_text", "refusal"]
    assert items[1]["arguments"] == "{}"


def test_a_failure_closes_no_open_item() -> None:
    cut: list[AnyEvent] = [PartStart(0, ToolCall("c", "f")), PartDelta(0, '{"a'), PartEnd(0, incomplete=True)]
    found = payloads_of([StreamStart("r", "m", 1), *cut, StreamFailed(dragoman.ir.Failure("overloaded", "busy"))])
    assert [payload["type"] for payload in found[-2:]] == ["error", "response.failed"]
    assert found[-2]["error"]["message"] == found[-1]["response"]["error"]["message"] == "busy"
    assert "response.output_item.done" not in {payload["type"] for payload in found}
    early = payloads_of([StreamStart("r", "m", 1), *cut, Finished(Finish("length"))])
    assert early[-1]["type"] == "response.incomplete"
    assert early[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert early[-2]["item"]["status"] == "incomplete"


PARTS: dict[str, list[AnyEvent]] = {
    "reasoning of another family": [
        PartStart(0, Reasoning("")),
        PartDelta(0, "hm"),
        PartEnd(0, Signature("anthropic", "c2ln")),
    ],
    "redacted reasoning": [PartStart(0, Reasoning("", Signature("anthropic", "c2ln"), redacted=True)), PartEnd(0)],
    "reasoning of our own, under its own id": [
        PartStart(0, Reasoning("")),
        PartEnd(0, Signature(FORMAT, SEALED, "rs_9")),
    ],
    "a signature known at once": [PartStart(0, ToolCall("c", "f", signature=Signature("google", "s"))), PartEnd(0)],
    "a signature told last": [PartStart(0, Text("")), PartDelta(0, "hi"), PartEnd(0, Signature("google", "s"))],
    "a call signed last": [PartStart(0, ToolCall("c", "f")), PartEnd(0, Signature("google", "s"))],
    "an empty text that is signed": [PartStart(0, Text("")), PartEnd(0, Signature("google", "s"))],
}


@promise("law:6-owed-back")
@pytest.mark.parametrize("events", PARTS.values(), ids=PARTS.keys())
def test_signatures_come_back_on_their_own_part(events: list[AnyEvent]) -> None:
    stream = [StreamStart("r", "m", 1), *events, FINISHED]
    encoder = dragoman.StreamEncoder(FORMAT)
    again = dragoman.accumulate(decoded(encoder.encode(stream) + encoder.close())).messages[0].parts
    wanted = dragoman.accumulate(stream).messages[0].parts
    assert [(type(part), getattr(part, "signature", None)) for part in again] == [
        (type(part), getattr(part, "signature", None)) for part in wanted
    ]


def test_items_of_this_format_pass_and_those_of_others_are_reported() -> None:
    call = ServerToolCall("mcp_1", "t", FORMAT, {"type": "mcp_call", "id": "mcp_1", "name": "t"}, kind="mcp")
    result = ServerToolResult("mcp_1", "t", FORMAT, {"output": "x"}, kind="mcp", parts=(Text("x"),))
    other = Opaque("anthropic", "new", {"type": "new"})
    parts: tuple[AnyPart, ...] = (call, result, other)
    stream: list[AnyEvent] = [StreamStart("r", "m", 1)]
    for index, part in enumerate(parts):
        stream += [PartStart(index, part), PartEnd(index)]
    encoder = dragoman.StreamEncoder(FORMAT)
    completion = dragoman.accumulate(decoded(encoder.encode([*stream, FINISHED]) + encoder.close()))
    assert completion.messages[0].parts == (call, result)
    assert [loss.severity for loss in encoder.losses] == ["dropped"]


def test_citations_and_usage_arrive() -> None:
    cited = PartDelta(0, "", Citation("https://example.org", "E", start=0, end=2))
    found = payloads_of(
        [StreamStart("r", "m", 1), PartStart(0, Text("hi")), cited, PartEnd(0), UsageUpdate(Usage(3, 4, 1)), FINISHED]
    )
    response = found[-1]["response"]
    assert [annotation["url"] for annotation in response["output"][0]["content"][0]["annotations"]] == [
        "https://example.org"
    ]
    assert response["usage"]["input_tokens_details"]["cached_tokens"] == 1
    assert response["usage"]["total_tokens"] == 7


# ── custom tools ──────────────────────────────────────────────────────────────────────────────────────────────


@promise("report:20")
@pytest.mark.parametrize("source", [name for name in FORMATS if name not in {FORMAT, "openai-chat"}])
def test_a_custom_tool_that_crossed_as_a_function_streams_back_as_custom(source: str) -> None:
    call: list[AnyEvent] = [
        PartStart(0, ToolCall("call_1", "sql")),
        PartDelta(0, '{"input":'),
        PartDelta(0, '"SELECT 1"}'),
        PartEnd(0),
    ]
    encoder = dragoman.StreamEncoder(source)
    data = encoder.encode([StreamStart("r", "m", 1), *call, Finished(Finish("tool_calls"))]) + encoder.close()
    request = Request("m", (Message("user", "go"),), (CustomTool("sql"),))
    translator = dragoman.StreamTranslator(source=source, target=FORMAT, request=request)
    arrived = dragoman.accumulate(decoded(translator.feed(data) + translator.close()))
    (again,) = arrived.tool_calls
    assert (again.custom, again.name, again.arguments_text) == (True, "sql", "SELECT 1")


def test_a_custom_tool_whose_arguments_are_not_one_text_stays_a_function() -> None:
    stream: list[AnyEvent] = [
        StreamStart("r", "m", 1),
        PartStart(0, ToolCall("call_1", "sql")),
        PartDelta(0, '{"query":"x"}'),
        PartEnd(0),
        Finished(Finish("tool_calls")),
    ]
    encoder = dragoman.StreamEncoder("anthropic-messages")
    request = Request("m", (Message("user", "go"),), (CustomTool("sql"),))
    translator = dragoman.StreamTranslator(source="anthropic-messages", target=FORMAT, request=request)
    translator.feed(encoder.encode(stream) + encoder.close())
    (call,) = translator.completion.tool_calls
    assert (call.custom, call.arguments) == (False, {"query": "x"})
