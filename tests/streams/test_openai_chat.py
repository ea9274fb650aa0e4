"""Chat Completions streams: what servers really send, what strict clients accept, and every fault we know."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

import httpx2
import openai
import pytest

import dragoman
from dragoman.ir import (
    AnyEvent,
    Audio,
    Citation,
    Completion,
    Finish,
    Finished,
    MediaDelta,
    Message,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
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

FORMAT = "openai-chat"


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 7,
        "model": "m",
        "choices": choices,
        **more,
    }


def call(
    index: int | None,
    text: str | None = None,
    *,
    name: str | None = None,
    id: str | None = None,
) -> dict[str, Any]:
    fragment: dict[str, Any] = {} if index is None else {"index": index}
    if id is not None:
        fragment["id"] = id
    function = {key: value for key, value in (("name", name), ("arguments", text)) if value is not None}
    return {"tool_calls": [{**fragment, "function": function}]}


def sse(*payloads: dict[str, Any] | str) -> bytes:
    texts = (payload if isinstance(payload, str) else json.dumps(payload) for payload in payloads)
    return "".join(f"data: {text}\n\n" for text in texts).encode()


def events_of(data: bytes) -> list[AnyEvent]:
    decoder = dragoman.StreamDecoder(FORMAT)
    return [*decoder.feed(data), *decoder.close()]


def read(*payloads: dict[str, Any] | str) -> Completion:
    return dragoman.accumulate(events_of(sse(*payloads)))


def calls_of(completion: Completion) -> list[tuple[str, object]]:
    return [(found.name, found.arguments) for found in completion.tool_calls]


DONE = "[DONE]"
END: tuple[dict[str, Any] | str, ...] = (chunk({}, "tool_calls"), DONE)

# ── tool fragments ────────────────────────────────────────────────────────────────────────────────────────────

TWO = [("f", {"a": 1}), ("g", {"b": 2})]
FRAGMENTS: dict[str, tuple[dict[str, Any], ...]] = {
    "as the specification says": (
        chunk(call(0, "", name="f", id="x")),
        chunk(call(0, '{"a":1}')),
        chunk(call(1, "", name="g", id="y")),
        chunk(call(1, '{"b":2}')),
    ),
    "interleaved": (
        chunk(call(0, '{"a"', name="f", id="x")),
        chunk(call(1, '{"b"', name="g", id="y")),
        chunk(call(0, ":1}")),
        chunk(call(1, ":2}")),
    ),
    "indexes from one": (
        chunk(call(1, '{"a":1}', name="f", id="x")),
        chunk(call(2, '{"b":2}', name="g", id="y")),
    ),
    "index zero for all, told apart by id": (
        chunk(call(0, '{"a":1}', name="f", id="x")),
        chunk(call(0, '{"b":2}', name="g", id="y")),
    ),
    "no index, whole calls": (
        chunk(call(None, '{"a":1}', name="f", id="x")),
        chunk(call(None, '{"b":2}', name="g", id="y")),
    ),
    "no index and blank ids": (
        chunk(call(None, '{"a":1}', name="f", id="")),
        chunk(call(None, '{"b":2}', name="g", id="")),
    ),
    "index zero for all, no ids, another name": (
        chunk(call(0, '{"a":1}', name="f")),
        chunk(call(0, '{"b":2}', name="g")),
    ),
    "identity repeated in every fragment": (
        chunk(call(0, '{"a"', name="f", id="x")),
        chunk(call(0, ":1}", name="f", id="x")),
        chunk(call(1, '{"b"', name="g", id="y")),
        chunk(call(1, ":2}", name="g", id="y")),
    ),
    "identity blank in later fragments": (
        chunk(call(0, '{"a"', name="f", id="x")),
        chunk(call(0, ":1}", name="", id="")),
        chunk(call(1, '{"b":2}', name="g", id="y")),
    ),
    "name after the first arguments": (
        chunk(call(0, '{"a"', id="x")),
        chunk(call(0, ":1}", name="f")),
        chunk(call(1, '{"b":2}', name="g", id="y")),
    ),
    "id after the name": (
        chunk(call(0, '{"a"', name="f")),
        chunk(call(0, ":1}", id="x")),
        chunk(call(1, '{"b":2}', name="g", id="y")),
    ),
}


@promise("report:4", "report:5", "report:10")
@pytest.mark.parametrize("case", FRAGMENTS)
def test_fragments_reach_their_own_call(case: str) -> None:
    completion = read(chunk({"role": "assistant", "content": None}), *FRAGMENTS[case], *END)
    assert calls_of(completion) == TWO
    assert len({found.id for found in completion.tool_calls}) == len(TWO)
    assert all(found.id for found in completion.tool_calls)


ARGUMENTS: dict[str, tuple[object, dict[str, Any]]] = {
    "nothing": ("", {}),
    "null text": ("null", {}),
    "null": (None, {}),
    "an object": ({"a": 1}, {"a": 1}),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments_of_every_spelling(case: str) -> None:
    given, expected = ARGUMENTS[case]
    delta = {"tool_calls": [{"index": 0, "id": "x", "function": {"name": "f", "arguments": given}}]}
    assert calls_of(read(chunk(delta), *END)) == [("f", expected)]


@promise("report:9")
def test_a_prefix_that_parses_does_not_finish_a_call() -> None:
    decoder = dragoman.StreamDecoder(FORMAT)
    early = decoder.feed(sse(chunk(call(0, '{"a":1}', name="f", id="x"))))
    assert not any(isinstance(event, PartEnd) for event in early)
    late = decoder.feed(sse(chunk(call(0, " ")), *END))
    assert [event for event in late if isinstance(event, PartEnd)]


@promise("report:17")
def test_a_call_cut_by_the_token_limit_is_kept_and_marked() -> None:
    completion = read(chunk(call(0, '{"a":', name="f", id="x")), chunk({}, "length"), DONE)
    assert completion.finish_reason == "length"
    assert [(found.incomplete, found.parsed, found.arguments_text) for found in all_calls(completion)] == [
        (True, False, '{"a":')
    ]


@promise("report:2")
@pytest.mark.parametrize("empty", [[], None])
def test_empty_tool_calls_are_absent(empty: object) -> None:
    completion = read(chunk({"content": "hi", "tool_calls": empty}), chunk({}, "stop"), DONE)
    assert (completion.text, completion.tool_calls) == ("hi", ())
    assert completion.finish_reason == "stop"


def test_custom_tools_are_known_by_their_first_fragment() -> None:
    first = {"tool_calls": [{"index": 0, "id": "x", "type": "custom", "custom": {"name": "sql", "input": "SEL"}}]}
    later = {"tool_calls": [{"index": 0, "id": None, "type": None, "function": None, "custom": {"input": "ECT"}}]}
    completion = read(chunk(first), chunk(later), *END)
    assert completion.tool_calls[0].custom
    assert completion.tool_calls[0].arguments == {"input": "SELECT"}


# ── text, reasoning, signatures ───────────────────────────────────────────────────────────────────────────────


@promise("report:15", "report:22")
def test_reasoning_first_and_mixed_chunks_are_split_in_order() -> None:
    completion = read(
        chunk({"role": "assistant", "reasoning_content": "hm, ", "content": None}),
        chunk({"reasoning_content": "yes.", "content": "Hello"}),
        chunk({"content": " you", "reasoning_content": None}),
        chunk({}, "stop"),
        DONE,
    )
    kinds = [type(part).__name__ for part in completion.messages[0].parts]
    assert kinds == ["Reasoning", "Text"]
    assert (completion.reasoning, completion.text) == ("hm, yes.", "Hello you")


@promise("report:25", "report:40")
def test_signatures_come_from_the_slots_clients_echo() -> None:
    completion = read(
        chunk({"reasoning": "why", "reasoning_details": [{"type": "reasoning.text", "text": "why", "index": 0}]}),
        chunk({"reasoning_details": [_signature("c2ln")]}),
        chunk({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "f", "arguments": "{}"}}]}),
        chunk({"tool_calls": [{"index": 0, "extra_content": {"google": {"thought_signature": "Z29v"}}}]}),
        *END,
    )
    thought = completion.messages[0].parts[0]
    assert isinstance(thought, Reasoning)
    assert (thought.text, thought.signature) == ("why", Signature("anthropic", "c2ln"))
    assert completion.tool_calls[0].signature == Signature("google", "Z29v")


def _signature(data: str) -> dict[str, Any]:
    return {"type": "reasoning.text", "signature": data, "format": "anthropic-claude-v1", "index": 0}


@promise("report:32")
def test_reasoning_that_breaks_off_keeps_no_signature() -> None:
    signed = chunk({"reasoning_details": [{**_signature("c2ln"), "text": "half a"}]})
    with pytest.raises(dragoman.TruncatedStream) as caught:
        dragoman.accumulate(events_of(sse(chunk({"reasoning_content": "half a"})) + sse(signed)[:60]))
    (part,) = caught.value.partial.messages[0].parts
    assert isinstance(part, Reasoning)
    assert part.signature is None


@promise("report:82")
def test_annotations_become_citations() -> None:
    cited = {
        "type": "url_citation",
        "url_citation": {"url": "https://a.example", "title": "A", "start_index": 0, "end_index": 2},
    }
    completion = read(chunk({"content": "So"}), chunk({"annotations": [cited]}), chunk({}, "stop"), DONE)
    (part,) = completion.messages[0].parts
    assert isinstance(part, Text)
    assert part.citations[0].url == "https://a.example"


def test_several_candidates_stay_apart() -> None:
    def of(index: int, text: str, finish: str | None = None) -> dict[str, Any]:
        return {**chunk(None), "choices": [{"index": index, "delta": {"content": text}, "finish_reason": finish}]}

    completion = read(of(0, "a"), of(1, "x"), of(0, "b", "stop"), of(1, "y", "length"), DONE)
    assert [message.text for message in completion.messages] == ["ab", "xy"]
    assert [finish.reason for finish in completion.finishes if finish is not None] == ["stop", "length"]


# ── usage and the end ─────────────────────────────────────────────────────────────────────────────────────────


@promise("report:78", "report:77")
def test_late_usage_replaces_early_usage_and_nothing_is_summed() -> None:
    def usage(count: int) -> dict[str, int]:
        return {"prompt_tokens": 5, "completion_tokens": count, "total_tokens": 5 + count}

    completion = read(
        chunk({"content": "a"}, usage=usage(1)),
        chunk({"content": "b"}, "stop", usage=usage(2)),
        chunk(usage=usage(3)),
        chunk(usage=None, moderation={"input": {}}),
        DONE,
    )
    assert completion.usage is not None
    assert (completion.usage.input, completion.usage.output, completion.usage.total) == (5, 3, 8)


def test_a_repeated_finish_reason_without_done_ends_the_stream() -> None:
    data = sse(chunk({"content": "a"}), chunk({}, "stop"), chunk({"content": ""}, "stop"))
    assert dragoman.accumulate(events_of(data)).text == "a"


FAULTS: dict[str, tuple[bytes, str]] = {
    "nothing at all": (b"", "truncated"),
    "no finish reason": (sse(chunk({"content": "a"})), "truncated"),
    "[DONE] without a finish reason": (sse(chunk({"content": "a"}), DONE), "truncated"),
    "bytes end inside an event": (sse(chunk({"content": "a"}))[:-20], "truncated"),
    "not JSON": (sse(chunk({"content": "a"}), "{oops", *END), "server"),
    "not an object": (sse("[1, 2]", *END), "server"),
    "a field of another type": (sse(chunk({"content": 5}), *END), "server"),
    "an error object": (sse(chunk({"content": "a"}), {"error": {"message": "no", "code": 503}}, DONE), "overloaded"),
    "an error beside choices": (sse(chunk({}, error={"message": "no", "code": 400}), DONE), "invalid_request"),
}


@promise("report:16")
@pytest.mark.parametrize("case", FAULTS)
def test_faults_are_errors_with_what_came_before(case: str) -> None:
    data, kind = FAULTS[case]
    for cut in (len(data) or 1, 1, 7):
        decoder = dragoman.StreamDecoder(FORMAT)
        events = [event for start in range(0, len(data), cut) for event in decoder.feed(data[start : start + cut])]
        events += decoder.close()
        assert isinstance(events[-1], StreamFailed)
        assert events[-1].failure.kind == kind
        with pytest.raises(dragoman.StreamError) as caught:
            dragoman.accumulate(events)
        assert (kind == "truncated") == isinstance(caught.value, dragoman.TruncatedStream)


def test_a_ten_megabyte_argument_and_a_hundred_parallel_calls() -> None:
    big = json.dumps({"data": "x" * (10 << 20)})
    pieces = [chunk(call(0, big[start : start + 65536])) for start in range(0, len(big), 65536)]
    completion = read(chunk(call(0, "", name="f", id="x")), *pieces, *END)
    assert completion.tool_calls[0].arguments_text == big
    starts = [chunk(call(index, "", name=f"t{index}", id=f"c{index}")) for index in range(100)]
    fragments = [chunk(call(index, piece)) for piece in ('{"n":', "1}") for index in reversed(range(100))]
    assert calls_of(read(*starts, *fragments, *END)) == [(f"t{index}", {"n": 1}) for index in range(100)]


def test_limits_on_events_and_streams_are_typed_failures() -> None:
    from dragoman.codecs.stream_limits import Limits  # noqa: PLC0415

    for limits in (Limits(event_bytes=200), Limits(stream_bytes=300)):
        decoder = dragoman.StreamDecoder(FORMAT, limits=limits)
        events = decoder.feed(sse(chunk({"content": "y" * 400})))
        assert isinstance(events[-1], StreamFailed)
        assert events[-1].failure.kind == "too_large"
        assert decoder.feed(b"data: {}\n\n") == decoder.close() == []


# ── audio ─────────────────────────────────────────────────────────────────────────────────────────────────────

SAMPLES = [b"\x01\x00\x02", b"\x00\x03\x00\x04"]
PIECES = [base64.b64encode(piece).decode() for piece in SAMPLES]
SOUND = (
    chunk({"role": "assistant", "content": None, "refusal": None, "audio": {"id": "audio_1", "transcript": "Hel"}}),
    chunk({"audio": {"data": PIECES[0]}}),
    chunk({"audio": {"transcript": "lo"}}),
    chunk({"audio": {"data": PIECES[1]}}),
    chunk({"audio": {"expires_at": 99}}),
    chunk({}, "stop"),
    DONE,
)
AUDIO_CHUNKS = {
    "id": "audio_1",
    "data": base64.b64encode(b"".join(SAMPLES)).decode(),
    "transcript": "Hello",
    "expires_at": 99,
}


def test_audio_is_streamed_in_chunks_and_returned_whole() -> None:
    events = events_of(sse(*SOUND))
    assert [event.text for event in events if isinstance(event, PartDelta)] == ["Hel", "lo"]
    assert [event.data for event in events if isinstance(event, MediaDelta)] == PIECES
    message = {"role": "assistant", "content": None, "audio": AUDIO_CHUNKS}
    answer = {"id": "chatcmpl-1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    (whole,) = dragoman.decode_response(answer, FORMAT).messages
    (part,) = dragoman.accumulate(events).messages[0].parts
    assert (part,) == whole.parts
    assert isinstance(part, Audio)
    assert part.media_type == "audio/L16"


def test_pieces_that_end_within_three_bytes_are_not_glued() -> None:
    (part,) = read(*SOUND).messages[0].parts
    assert isinstance(part, Audio)
    assert part.data is not None
    assert base64.b64decode(part.data) == b"".join(SAMPLES)


def test_audio_that_breaks_off_is_a_failure_with_what_came() -> None:
    with pytest.raises(dragoman.TruncatedStream) as cut:
        read(*SOUND[:3])
    (part,) = cut.value.partial.messages[0].parts
    assert isinstance(part, Audio)
    assert (part.transcript, part.data) == ("Hello", PIECES[0])


@pytest.mark.parametrize("target", ["anthropic-messages", "bedrock-converse", "ollama-chat", "openai-responses"])
def test_clients_without_audio_get_the_transcript_as_it_comes(target: str) -> None:
    translator = dragoman.StreamTranslator(source=FORMAT, target=target)
    early = translator.feed(sse(*SOUND[:1]))
    assert b"Hel" in early
    out = early + translator.feed(sse(*SOUND[1:])) + translator.close()
    assert PIECES[0].encode() not in out
    decoder = dragoman.StreamDecoder(target)
    answer = dragoman.accumulate([*decoder.feed(out), *decoder.close()])
    assert answer.text == "Hello"
    assert [loss.what for loss in translator.losses if loss.severity == "degraded"] == ["audio"]


@pytest.mark.parametrize("target", ["gemini", "vertex"])
def test_audio_crosses_between_formats_with_audio(target: str) -> None:
    translator = dragoman.StreamTranslator(source=FORMAT, target=target)
    out = translator.feed(sse(*SOUND)) + translator.close()
    decoder = dragoman.StreamDecoder(target)
    (part,) = dragoman.accumulate([*decoder.feed(out), *decoder.close()]).messages[0].parts
    assert isinstance(part, Audio)
    assert part.data == AUDIO_CHUNKS["data"]
    assert [loss.what for loss in translator.losses if loss.refusable] == ["audio transcript"]


def test_audio_of_another_api_is_sent() -> None:
    events: list[AnyEvent] = [
        StreamStart("a", "m", 1),
        PartStart(0, Audio("audio/L16", PIECES[0])),
        PartEnd(0),
        PartStart(1, Audio("audio/L16", "", transcript="")),
        MediaDelta(1, PIECES[1]),
        PartDelta(1, "Hi"),
        PartEnd(1),
        Finished(Finish("stop")),
    ]
    deltas = [found["choices"][0]["delta"] for found in written(events) if found["choices"]]
    assert [delta["audio"] for delta in deltas if "audio" in delta] == [
        {"id": "audio_dgm_" + deltas[1]["audio"]["id"][-14:], "expires_at": 0, "data": PIECES[0]},
        {"data": PIECES[1]},
        {"transcript": "Hi"},
    ]
    (part,) = dragoman.accumulate(events_of(sse(*written(events), DONE))).messages[0].parts
    assert isinstance(part, Audio)
    assert part.transcript == "Hi"


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


def written(events: Iterable[AnyEvent], **options: Any) -> list[dict[str, Any]]:
    encoder = dragoman.StreamEncoder(FORMAT, **options)
    data = (encoder.encode(events) + encoder.close()).decode()
    lines = [line.removeprefix("data: ") for line in data.split("\n\n") if line]
    assert lines[-1] == DONE
    return [json.loads(line) for line in lines[:-1]]


AUDIO_EVENTS: list[AnyEvent] = [
    StreamStart("id-1", "model-1", 3),
    PartStart(0, Text("")),
    PartDelta(0, "Hi"),
    PartEnd(0),
    PartStart(1, ToolCall("call_a", "f")),
    PartStart(2, ToolCall("call_b", "g")),
    PartDelta(1, '{"a":'),
    PartDelta(2, "{}"),
    PartDelta(1, "1}"),
    PartEnd(1),
    PartEnd(2),
    UsageUpdate(Usage(3, 4, cached=2, reasoning=1, total=7)),
    Finished(Finish("tool_calls")),
]


@promise("report:1", "report:11", "report:19", "report:23")
def test_chunks_have_the_role_first_each_name_once_and_calls_from_zero() -> None:
    chunks = written(AUDIO_EVENTS)
    deltas = [found["choices"][0]["delta"] for found in chunks if found["choices"]]
    assert deltas[0]["role"] == "assistant"
    assert all("role" not in delta for delta in deltas[1:])
    fragments = [fragment for delta in deltas for fragment in delta.get("tool_calls", ())]
    assert [fragment["index"] for fragment in fragments] == [0, 1, 0, 1, 0]
    assert [fragment["function"].get("name") for fragment in fragments] == ["f", "g", None, None, None]
    assert all("id" not in fragment for fragment in fragments[2:])
    assert {found["id"] for found in chunks} == {"id-1"}
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[-1]["usage"] == {
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "total_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 1},
    }


def test_usage_comes_only_when_asked_for() -> None:
    chunks = written(AUDIO_EVENTS, include_usage=False)
    assert all("usage" not in found for found in chunks)
    assert all(found["choices"] for found in chunks)


@pytest.mark.parametrize(
    ("server", "key"), [("openai-chat", "reasoning_content"), ("groq", "reasoning"), ("deepseek", "reasoning_content")]
)
def test_clients_of_a_server_get_reasoning_under_its_key(server: str, key: str) -> None:
    thought: list[AnyEvent] = [StreamStart("a", "m", 1), PartStart(0, Reasoning()), PartDelta(0, "hm"), PartEnd(0)]
    encoder = dragoman.StreamEncoder(server)
    data = encoder.encode([*thought, Finished(Finish("stop"))]) + encoder.close()
    chunks = [json.loads(line.removeprefix("data: ")) for line in data.decode().split("\n\n") if "{" in line]
    deltas = [delta for found in chunks for delta in [found["choices"][0]["delta"]] if delta and "role" not in delta]
    assert deltas == [{key: "hm"}]
    whole = dragoman.encode_response(Completion((Message("assistant", (Reasoning("hm"),)),), Finish("stop")), server)
    assert whole.body["choices"][0]["message"][key] == "hm"


def test_what_a_chat_stream_cannot_express_is_reported() -> None:
    encoder = dragoman.StreamEncoder(FORMAT)
    encoder.encode([StreamStart(), PartStart(0, Text("")), PartDelta(0, "", Citation(title="a book")), PartEnd(0)])
    assert [loss.what for loss in encoder.losses] == ["citation of a document"]


def test_a_failed_stream_ends_with_an_error_and_never_with_done() -> None:
    translator = dragoman.StreamTranslator(source="anthropic-messages", target=FORMAT)
    out = translator.feed(
        b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'
    )
    out += translator.close()
    assert b'"error"' in out
    assert b"[DONE]" not in out
    assert translator.failure is not None
    assert translator.failure.kind == "overloaded"


# ── the vendor's own client as judge ──────────────────────────────────────────────────────────────────────────


def client_reading(data: bytes) -> openai.OpenAI:
    def answer(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=data)

    transport = httpx2.Client(transport=httpx2.MockTransport(answer))
    return openai.OpenAI(api_key="none", base_url="http://judge.invalid/v1", http_client=transport)


def test_the_openai_client_reads_the_same_calls() -> None:
    encoder = dragoman.StreamEncoder(FORMAT)
    client = client_reading(encoder.encode(AUDIO_EVENTS) + encoder.close())
    with client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "hi"}]) as stream:
        for _event in stream:
            pass
        final = stream.get_final_completion()
    message = final.choices[0].message
    assert message.content == "Hi"
    assert [(found.function.name, found.function.arguments) for found in message.tool_calls or ()] == [
        ("f", '{"a":1}'),
        ("g", "{}"),
    ]
    assert final.choices[0].finish_reason == "tool_calls"
