"""ConverseStream: what it means, what of it may be broken, and what a strict client is given."""

import json
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from msgspec import structs

import dragoman
from dragoman import ir
from tests.support import converse_streams as wire
from tests.support.calls import all_calls
from tests.support.converse_streams import STARTED, delta, ended, payloads, start, stop, stream
from tests.support.promises import promise
from tests.support.recordings import Record

FORMAT = "bedrock-converse"
SIGNED = "EtkBCkgIEBABGAIqQIyk4xd3CqsRUUTwvwG0mlOurutR8E"
GOOGLE = ir.Signature("google", "c2ln", "rs:1")
Json = dict[str, Any]
Recordings = Callable[[str], Iterator[Record]]


def read(body: bytes, cuts: Iterable[int] = ()) -> list[ir.AnyEvent]:
    """The events of a stream whose bytes arrive in pieces."""
    decoder = dragoman.StreamDecoder(FORMAT)
    events = []
    for begin, end in pairwise([0, *sorted(cuts), len(body)]):
        events += decoder.feed(body[begin:end])
    return events + decoder.close()


def completed(*events: tuple[str, Json]) -> ir.Completion:
    return dragoman.accumulate(read(stream(*events)))


def failure(*events: tuple[str, Json]) -> ir.Failure:
    last = read(stream(*events))[-1]
    assert isinstance(last, ir.StreamFailed)
    return last.failure


def written(events: Iterable[ir.AnyEvent]) -> bytes:
    encoder = dragoman.StreamEncoder(FORMAT)
    return encoder.encode(events) + encoder.close()


def streams(records: Iterator[Record]) -> Iterator[tuple[Record, bytes]]:
    return ((record, wire.recorded(record.events)) for record in records if record.events)


def events_of(*parts: ir.AnyPart, reason: ir.FinishReason = "stop") -> list[ir.AnyEvent]:
    """A stream of another family with these parts, each at once."""
    events: list[ir.AnyEvent] = [ir.StreamStart()]
    for index, part in enumerate(parts):
        events += [ir.PartStart(index, part), ir.PartEnd(index)]
    return [*events, ir.UsageUpdate(ir.Usage(2, 5)), ir.Finished(ir.Finish(reason))]


def folded(events: list[tuple[str, Json]]) -> Json:
    """The answer that a stream of texts, thoughts and calls stands for, put together by hand."""
    blocks: dict[int, Json] = {}
    body: Json = {"output": {"message": {"role": "assistant"}}}
    for name, payload in events:
        index = payload.get("contentBlockIndex", -1)
        if name == "contentBlockStart":
            blocks[index] = {key: {**value, "input": ""} for key, value in payload["start"].items()}
        elif name == "contentBlockDelta":
            for key, value in payload["delta"].items():
                _fold(blocks.setdefault(index, {}), key, value)
        elif name in {"messageStop", "metadata"}:
            body |= {key: value for key, value in payload.items() if key != "p"}
    body["output"]["message"]["content"] = [_closed(blocks[index]) for index in sorted(blocks)]
    return body


def _fold(block: Json, key: str, value: Any) -> None:
    if key == "text":
        block["text"] = block.get("text", "") + value
    elif key == "toolUse":
        block["toolUse"]["input"] += value["input"]
    elif key == "reasoningContent":
        reasoning = block.setdefault(key, {}).setdefault("reasoningText", {"text": ""})
        for name, piece in value.items():
            reasoning[name] = reasoning.get(name, "") + piece


def _closed(block: Json) -> Json:
    if "toolUse" in block:
        block["toolUse"]["input"] = json.loads(block["toolUse"]["input"] or "{}")
    return block


def plain(part: ir.AnyPart) -> ir.AnyPart:
    """A call without what only a stream has: the text of its arguments, and that the answer was cut inside it."""
    if isinstance(part, ir.ToolCall) and part.parsed:
        return structs.replace(part, arguments_text=None, incomplete=False)
    return part


# ── recorded streams ──────────────────────────────────────────────────────────────────────────────────────────


@promise("law:5-streams-tell-the-same-story", "report:78")
def test_a_recorded_stream_adds_up_to_the_whole_answer(recordings: Recordings) -> None:
    seen = 0
    for record, body in streams(recordings(FORMAT)):
        text = "".join(record.events or ())
        if '"citation"' in text or '"toolResult"' in text or '"image"' in text:
            continue  # put together below, by hand
        streamed = dragoman.accumulate(read(body))
        whole = dragoman.decode_response(folded(payloads(body)), FORMAT)
        assert [*map(plain, streamed.messages[0].parts)] == [*map(plain, whole.messages[0].parts)], record.id
        assert streamed.finish == whole.finish, record.id
        assert (streamed.usage is None) == (whole.usage is None)
        if streamed.usage is not None and whole.usage is not None:
            assert structs.replace(streamed.usage, metadata=None) == structs.replace(whole.usage, metadata=None)
        seen += 1
    assert seen > 80


@promise("law:5-streams-tell-the-same-story")
def test_any_cut_of_the_bytes_gives_the_same_events(recordings: Recordings) -> None:
    for record, body in streams(recordings(FORMAT)):
        chance = random.Random(record.id)  # noqa: S311
        assert read(body, chance.sample(range(1, len(body)), min(50, len(body) - 1))) == read(body), record.id


def test_a_recorded_stream_written_again_means_the_same(recordings: Recordings) -> None:
    for record, body in streams(recordings(FORMAT)):
        events = read(body)
        encoder = dragoman.StreamEncoder(FORMAT)
        again = dragoman.accumulate(read(encoder.encode(events) + encoder.close()))
        assert again == dragoman.accumulate(events), record.id
        assert encoder.losses == (), record.id


# ── what the events mean ──────────────────────────────────────────────────────────────────────────────────────

CALL = start(0, toolUse={"toolUseId": "t", "name": "f"})


def test_texts_and_thoughts_begin_without_a_start() -> None:
    found = completed(
        STARTED,
        delta(0, reasoningContent={"text": "h"}),
        delta(0, reasoningContent={"text": "m"}),
        delta(0, reasoningContent={"signature": SIGNED}),
        stop(0),
        delta(1, text="Hel"),
        delta(1, text="lo"),
        stop(1),
        start(2, toolUse={"toolUseId": "t", "name": "f", "type": "tool_use"}),
        delta(2, toolUse={"input": '{"a":'}),
        delta(2, toolUse={"input": "1.0}"}),
        stop(2),
        *ended("tool_use"),
    )
    thought, text, call = found.messages[0].parts
    assert thought == ir.Reasoning("hm", ir.Signature("anthropic", SIGNED))
    assert text == ir.Text("Hello")
    assert isinstance(call, ir.ToolCall)
    assert (call.id, call.arguments, call.arguments_text) == ("t", {"a": 1.0}, '{"a":1.0}')
    assert found.finish == ir.Finish("tool_calls", "tool_use")
    assert found.usage is not None
    assert (found.usage.input, found.usage.output, found.usage.total) == (2, 5, 7)


@pytest.mark.parametrize("pieces", [[], [""], ["", ""]])
def test_empty_input_means_no_arguments(pieces: list[str]) -> None:
    deltas = [delta(0, toolUse={"input": piece}) for piece in pieces]
    (call,) = completed(STARTED, CALL, *deltas, stop(0), *ended("tool_use")).tool_calls
    assert call.arguments == {}


def test_an_empty_text_is_a_text() -> None:
    assert completed(STARTED, delta(0, text=""), stop(0), *ended()).messages[0].parts == (ir.Text(""),)


def test_an_empty_start_starts_nothing() -> None:
    found = completed(STARTED, start(0), delta(0, text="a"), delta(0, text="b"), stop(0), *ended())
    assert found.messages[0].parts == (ir.Text("ab"),)


def test_a_redacted_thought_is_one_delta() -> None:
    found = completed(STARTED, delta(0, reasoningContent={"redactedContent": "ZW5j"}), stop(0), *ended())
    assert found.messages[0].parts == (ir.Reasoning("", ir.Signature("bedrock", "ZW5j"), redacted=True),)


def test_a_block_that_saw_a_citation_is_cited() -> None:
    citation = {"title": "T", "sourceContent": [{"text": "s"}], "location": {"web": {"url": "https://e.org"}}}
    found = completed(STARTED, delta(0, text="It is."), delta(0, citation=citation), stop(0), *ended())
    block = {"citationsContent": {"content": [{"text": "It is."}], "citations": [citation]}}
    assert dragoman.encode_response(found, FORMAT).body["output"]["message"]["content"] == [block]


def test_hosted_calls_and_results_arrive_whole() -> None:
    server = {"toolUseId": "s", "name": "g", "type": "server_tool_use"}
    answer = {"toolUseId": "s", "type": "g_result", "status": "success"}
    events = [
        STARTED, start(0, toolUse=server), delta(0, toolUse={"input": '{"q":1}'}), stop(0),
        start(1, toolResult=answer), delta(1, toolResult=[{"json": {"r": 2}}]), stop(1), *ended(),
    ]  # fmt: skip
    content = dragoman.encode_response(completed(*events), FORMAT).body["output"]["message"]["content"]
    assert content == [
        {"toolUse": {**server, "input": {"q": 1}}},
        {"toolResult": {**answer, "content": [{"json": {"r": 2}}]}},
    ]


def test_the_answer_may_end_without_metadata() -> None:
    found = completed(STARTED, delta(0, text="a"), stop(0), ("messageStop", {"stopReason": "end_turn"}))
    assert (found.text, found.usage) == ("a", None)


def test_unknown_events_and_deltas_are_not_errors() -> None:
    found = completed(STARTED, ("newEvent", {"x": 1}), delta(0, newDelta={"y": 2}), stop(0), *ended())
    assert found.messages[0].parts == (ir.Opaque("bedrock", "newDelta", {"newDelta": {"y": 2}}),)


def test_a_call_that_was_cut_is_not_offered() -> None:
    events = [STARTED, CALL, delta(0, toolUse={"input": '{"a":'}), stop(0), *ended("max_tokens")]
    (call,) = all_calls(completed(*events))
    assert call.incomplete
    assert not call.parsed


# ── what is broken ────────────────────────────────────────────────────────────────────────────────────────────

WHOLE = [STARTED, delta(0, text="a"), stop(0), start(1, toolUse={"toolUseId": "t", "name": "f"}), stop(1)]


@promise("report:16")
def test_a_stream_that_ends_early_is_an_error() -> None:
    events = [*WHOLE, *ended("tool_use")]
    for count in range(len(WHOLE) + 1):
        assert failure(*events[:count]).kind == "truncated"
    body = stream(*events)
    for place in range(1, len(stream(*WHOLE))):
        last = read(body[:place])[-1]
        assert isinstance(last, ir.StreamFailed), place


@pytest.mark.parametrize(
    ("name", "payload", "kind"),
    [
        ("throttlingException", {"message": "m"}, "rate_limit"),
        ("validationException", {"message": "m"}, "invalid_request"),
        ("internalServerException", {"message": "m"}, "server"),
        ("serviceUnavailableException", {"message": "m"}, "overloaded"),
        ("modelStreamErrorException", {"message": "m", "originalStatusCode": 529}, "overloaded"),
        ("exceptionOfTomorrowException", {"message": "m"}, "server"),
    ],
)
def test_an_exception_ends_the_stream(name: str, payload: Json, kind: ir.FailureKind) -> None:
    events = read(stream(STARTED, delta(0, text="a"), (name, payload)))
    found = events[-1]
    assert isinstance(found, ir.StreamFailed)
    assert (found.failure.kind, found.failure.message, found.failure.raw_type) == (kind, "m", name)
    assert payloads(written(events))[-1] == (name, payload) or kind == "server"


@pytest.mark.parametrize("kind", ["invalid_request", "authentication", "rate_limit", "server", "overloaded", "timeout"])
def test_failures_of_other_formats_keep_their_kind(kind: ir.FailureKind) -> None:
    events: list[ir.AnyEvent] = [ir.StreamStart(), ir.StreamFailed(ir.Failure(kind, "no luck"))]
    last = read(written(events))[-1]
    assert isinstance(last, ir.StreamFailed)
    assert (last.failure.kind, last.failure.message) == (kind, "no luck")


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([STARTED, STARTED], "messageStart"),
        ([STARTED, delta(0, text="a"), stop(0), delta(0, text="b")], "contentBlockDelta of block 0"),
        ([STARTED, delta(0, toolUse={"input": "{"})], "before that call was started"),
        ([STARTED, CALL, delta(0, text="a")], "text delta of block 0"),
        ([STARTED, CALL, CALL], "contentBlockStart of block 0"),
        ([STARTED, ("messageStop", {"stopReason": "end_turn"}), delta(0, text="a")], "after messageStop"),
        ([STARTED, ("contentBlockDelta", {"contentBlockIndex": "0", "delta": {}})], "an event"),
    ],
)
def test_an_event_out_of_place_is_named(events: list[tuple[str, Json]], words: str) -> None:
    assert words in failure(*events).message


# ── what clients get ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_order_of_events_is_the_vendors() -> None:
    call = ir.ToolCall("t", "f", {"a": 1})
    frames = payloads(written(events_of(ir.Reasoning("hm"), ir.Text("hi"), call, reason="tool_calls")))
    assert [name for name, _ in frames] == [
        "messageStart",
        "contentBlockDelta",
        "contentBlockStop",
        "contentBlockDelta",
        "contentBlockStop",
        "contentBlockStart",
        "contentBlockDelta",
        "contentBlockStop",
        "messageStop",
        "metadata",
    ]
    assert frames[5][1] == {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t", "name": "f"}}}
    assert frames[6][1]["delta"] == {"toolUse": {"input": '{"a":1}'}}
    assert frames[8][1] == {"stopReason": "tool_use"}
    assert frames[9][1]["usage"] == {"inputTokens": 2, "outputTokens": 5, "totalTokens": 7}


@pytest.mark.parametrize(
    "part",
    [
        ir.Reasoning("hm", GOOGLE),
        ir.Reasoning("", GOOGLE, redacted=True),
        ir.Reasoning("hm", ir.Signature("anthropic", "short")),
        ir.Text("hi", signature=GOOGLE),
        ir.Text("", signature=GOOGLE),
        ir.ToolCall("t", "f", {"a": 1}, signature=GOOGLE),
    ],
)
def test_signatures_of_other_vendors_return_from_the_client(part: Any) -> None:
    (arrived,) = dragoman.accumulate(read(written(events_of(part)))).messages[0].parts
    assert getattr(arrived, "signature", None) == part.signature
    assert type(arrived).__name__ == type(part).__name__
    message = dragoman.encode_response(ir.Completion((ir.Message("assistant", (part,)),)), FORMAT).body["output"]
    body = {"messages": [{"role": "user", "content": [{"text": "a"}]}, message["message"]]}
    assert [getattr(each, "signature", None) for each in dragoman.decode_request(body, FORMAT).messages[1].parts] == [
        part.signature
    ]


def test_a_signature_that_comes_last_follows_its_part() -> None:
    events: list[ir.AnyEvent] = [
        ir.StreamStart(),
        ir.PartStart(0, ir.Text("")),
        ir.PartDelta(0, "hi"),
        ir.PartEnd(0, GOOGLE),
    ]
    arrived = dragoman.accumulate(read(written([*events, ir.Finished(ir.Finish("stop"))])))
    assert [(part.text, part.signature) for part in arrived.messages[0].parts if isinstance(part, ir.Text)] == [
        ("hi", GOOGLE)
    ]


def test_arguments_that_are_not_an_object_come_back_unchanged() -> None:
    call = ir.ToolCall("t", "f", arguments_text='{"a": ')
    (arrived,) = all_calls(dragoman.accumulate(read(written(events_of(call)))))
    assert (arrived.parsed, arrived.arguments_text) == (False, '{"a": ')


def test_a_free_text_tool_is_a_function_with_one_text() -> None:
    call = ir.ToolCall("t", "f", {"input": 'say "hi"'}, 'say "hi"', custom=True)
    (arrived,) = all_calls(dragoman.accumulate(read(written(events_of(call)))))
    assert arrived.arguments == {"input": 'say "hi"'}


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize("kind", ["reasoningContent", "citationsContent", "toolUse", "toolResult", "image", "video"])
@pytest.mark.parametrize("content", [None, "text", [], {"content": [{}]}, {"reasoningText": None}])
def test_a_block_of_an_undocumented_shape_is_streamed(kind: str, content: Any) -> None:
    """A service that adds to this API must not break the streams of clients."""
    block: Json = {kind: content}
    part = ir.Opaque("bedrock", kind, block)
    sent = payloads(written(events_of(part)))
    of_block = [payload for name, payload in sent if name.startswith("contentBlock")]
    assert json.dumps(kind) in json.dumps(of_block)
    assert of_block[-1] == {"contentBlockIndex": 0}


def test_a_block_without_content_is_an_empty_delta() -> None:
    sent = payloads(written(events_of(ir.Opaque("bedrock", "", {}))))
    assert sent[1:3] == [
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {}}),
        ("contentBlockStop", {"contentBlockIndex": 0}),
    ]
