"""Messages streams: what they mean, what of them may be broken, and what a strict client is given."""

import json
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, pairwise
from typing import Any

import anthropic
import httpx2
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec import Raw, structs

import dragoman
from dragoman import ir
from dragoman.loss import Loss
from tests.strategies import ARGUMENTS, BROKEN_TEXTS, NAMES, SIGNATURES, WORDS
from tests.support import messages_streams as wire
from tests.support.calls import all_calls
from tests.support.cases import each
from tests.support.messages_streams import call, delta, ended, faults, folded, payloads, sse, start, started, stop
from tests.support.promises import promise
from tests.support.recordings import Record

FORMAT = "anthropic-messages"
FILES = ("anthropic-messages", "anthropic-bedrock", "anthropic-vertex", "anthropic-compat")
SIGNATURE = ir.Signature("google", "c2ln", "rs:1")
Json = dict[str, Any]
Recordings = Callable[[str], Iterator[Record]]


def read(body: bytes, cuts: Iterable[int] = ()) -> list[ir.AnyEvent]:
    """The events of a stream whose bytes arrive in pieces."""
    decoder = dragoman.StreamDecoder(FORMAT)
    places = [0, *sorted(cuts), len(body)]
    events = []
    for begin, end in pairwise(places):
        events += decoder.feed(body[begin:end])
    return events + decoder.close()


def completed(*events: Json | list[Json]) -> ir.Completion:
    flat = [one for event in events for one in (event if isinstance(event, list) else [event])]
    return dragoman.accumulate(read(sse(flat)))


def written(events: Iterable[ir.AnyEvent]) -> bytes:
    encoder = dragoman.StreamEncoder(FORMAT)
    return encoder.encode(events) + encoder.close()


def losses_of(events: Iterable[ir.AnyEvent]) -> tuple[Loss, ...]:
    encoder = dragoman.StreamEncoder(FORMAT)
    encoder.encode(events)
    return encoder.losses


def streams(records: Iterator[Record]) -> Iterator[tuple[Record, bytes]]:
    return ((record, "".join(record.events).encode()) for record in records if record.events)


def plain(part: ir.AnyPart) -> ir.AnyPart:
    """A call without the text of its arguments, which only a stream has."""
    return structs.replace(part, arguments_text=None) if isinstance(part, ir.ToolCall) and part.parsed else part


def plain_metadata(metadata: ir.Metadata | None) -> Any:
    """Notes by value: of usage that came in two events, the order of keys does not matter."""
    return {
        family: {key: json.loads(bytes(raw)) for key, raw in notes.items()}
        for family, notes in (metadata or {}).items()
    }


def assert_same_answer(streamed: ir.Completion, whole: ir.Completion) -> None:
    assert [plain(part) for part in streamed.messages[0].parts] == [plain(part) for part in whole.messages[0].parts]
    assert_same_ending(streamed, whole)


def assert_same_ending(streamed: ir.Completion, whole: ir.Completion) -> None:
    assert (streamed.finish, streamed.id, streamed.model) == (whole.finish, whole.id, whole.model)
    assert (streamed.usage is None) == (whole.usage is None)
    if streamed.usage is not None and whole.usage is not None:
        assert structs.replace(streamed.usage, metadata=None) == structs.replace(whole.usage, metadata=None)
        assert plain_metadata(streamed.usage.metadata) == plain_metadata(whole.usage.metadata)
    assert plain_metadata(streamed.metadata) == plain_metadata(whole.metadata)


# ── recorded streams ──────────────────────────────────────────────────────────────────────────────────────────


@promise("law:5-streams-tell-the-same-story", "report:78")
@pytest.mark.parametrize("file", FILES)
def test_a_recorded_stream_adds_up_to_the_whole_message(file: str, recordings: Recordings) -> None:
    for record, body in streams(recordings(file)):
        streamed = dragoman.accumulate(read(body))
        try:
            assert_same_answer(streamed, dragoman.decode_response(folded(payloads(body)), FORMAT))
        except AssertionError as error:
            error.add_note(record.id)
            raise


@promise("law:5-streams-tell-the-same-story")
@pytest.mark.parametrize("file", FILES)
def test_any_cut_of_the_bytes_gives_the_same_events(file: str, recordings: Recordings) -> None:
    for number, (record, body) in enumerate(streams(recordings(file))):
        events = read(body)
        chance = random.Random(record.id)  # noqa: S311
        places = range(1, len(body))
        assert read(body, chance.sample(places, len(body) // 40)) == events, record.id
        if number % 40 == 0 and len(body) < 20_000:
            assert read(body, places) == events, record.id
            assert read(body.replace(b"\n", b"\r\n"), places) == events, record.id


@promise("law:5-streams-tell-the-same-story")
@pytest.mark.parametrize("file", FILES)
def test_a_recorded_stream_written_again_means_the_same_to_a_strict_client(file: str, recordings: Recordings) -> None:
    for record, body in streams(recordings(file)):
        events = read(body)
        again = written(events)
        assert not faults(again), record.id
        original, rewritten = dragoman.accumulate(events), dragoman.accumulate(read(again))
        assert story(rewritten) == story(original), record.id
        assert_same_ending(rewritten, original)


# ── what the vendor's SDK makes of it ─────────────────────────────────────────────────────────────────────────


def read_by_the_sdk(body: bytes) -> anthropic.types.Message:
    headers = {"content-type": "text/event-stream; charset=utf-8"}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, headers=headers, content=body))
    with (
        anthropic.Anthropic(api_key="key", max_retries=0, http_client=httpx2.Client(transport=transport)) as client,
        client.messages.stream(max_tokens=9, model="m", messages=[{"role": "user", "content": "hi"}]) as stream,
    ):
        return stream.get_final_message()


def sdk_calls(message: anthropic.types.Message) -> list[tuple[str, str, Any]]:
    return [(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"]


def sdk_text(message: anthropic.types.Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def sdk_thoughts(message: anthropic.types.Message) -> str:
    return "".join(block.thinking for block in message.content if block.type == "thinking")


def calls_of(completion: ir.Completion) -> list[tuple[str, str, Any]]:
    return [(part.id, part.name, part.arguments) for part in all_calls(completion)]


@promise("report:6", "report:23", "law:5-streams-tell-the-same-story")
@pytest.mark.parametrize("file", ["openai-chat", "openai-compat-chat", "openrouter-chat", "deepseek-chat"])
def test_the_sdk_reads_the_same_from_a_translated_chat_stream(file: str, recordings: Recordings) -> None:
    seen = 0
    for record, body in islice(streams(recordings(file)), 0, None, 3):
        translator = dragoman.StreamTranslator(source="openai-chat", target=FORMAT)
        out = translator.feed(body) + translator.close()
        if translator.failure is not None or len(body) > 60_000:
            continue
        assert not faults(out), record.id
        completion = translator.completion
        if any(not part.parsed for part in all_calls(completion)):
            continue
        message = read_by_the_sdk(out)
        assert sdk_calls(message) == calls_of(completion), record.id
        assert sdk_text(message) == completion.text + (completion.refusal or ""), record.id
        assert sdk_thoughts(message) == completion.reasoning, record.id
        usage = completion.usage or ir.Usage()
        assert (message.usage.input_tokens, message.usage.output_tokens) == (
            max(usage.uncached_input, 0),
            usage.output,
        )
        if any(not part.incomplete for part in completion.tool_calls) and completion.finish_reason != "length":
            assert message.stop_reason == "tool_use", record.id
        seen += 1
    assert seen > 20


def test_the_sdk_raises_an_error_in_the_middle_of_a_stream() -> None:
    failure = ir.Failure("overloaded", "Overloaded")
    body = written(
        [ir.StreamStart("1", "m"), ir.PartStart(0, ir.Text("")), ir.PartDelta(0, "Hi"), ir.StreamFailed(failure)]
    )
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        read_by_the_sdk(body)


# ── generated answers ─────────────────────────────────────────────────────────────────────────────────────────

FINISH = ir.Finish("tool_calls", "tool_calls")
PROTOTYPES: dict[str, ir.AnyPart] = {"text": ir.Text(""), "reasoning": ir.Reasoning(""), "refusal": ir.Refusal("")}
ARGUMENT_TEXTS = st.one_of(
    ARGUMENTS.map(lambda given: bytes(given if isinstance(given, Raw) else Raw(json.dumps(given).encode())).decode()),
    BROKEN_TEXTS,
    st.sampled_from(("", " ", "null", "{}", ' {"a": 1} ', "[1]", '"x"')),
)


def fragments(draw: st.DrawFn, text: str) -> list[str]:
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    return [text[begin:end] for begin, end in zip([0, *places], [*places, len(text)], strict=True)]


@st.composite
def part_events(draw: st.DrawFn, index: int) -> list[ir.AnyEvent]:
    """One part in pieces, with its signature where it may come."""
    kind = draw(st.sampled_from(("text", "reasoning", "redacted", "refusal", "call", "call", "custom call")))
    signature = draw(st.none() | SIGNATURES)
    text = draw(st.just("") | WORDS)
    if kind == "redacted":
        whole = ir.Reasoning("", draw(SIGNATURES), redacted=True)
        return [ir.PartStart(index, whole), ir.PartEnd(index)]
    if kind.endswith("call"):
        early = draw(st.booleans())
        custom = kind == "custom call"
        text = text if custom else draw(ARGUMENT_TEXTS)
        part: ir.AnyPart = ir.ToolCall(
            f"call_{index}", draw(NAMES), custom=custom, signature=signature if early else None
        )
    else:
        part = PROTOTYPES[kind]
        signature = None if kind == "refusal" else signature
    deltas = [ir.PartDelta(index, piece) for piece in fragments(draw, text) if piece]
    return [ir.PartStart(index, part), *deltas, ir.PartEnd(index, signature)]


@st.composite
def answers(draw: st.DrawFn) -> list[ir.AnyEvent]:
    """Parts that start in order and may overlap at will."""
    parts = [draw(part_events(index)) for index in range(draw(st.integers(0, 4)))]
    events: list[ir.AnyEvent] = [ir.StreamStart("chatcmpl-1", "m", 7)]
    begun = 0
    while begun < len(parts) or any(parts[:begun]):
        choices = [number for number in range(begun) if parts[number]] + [begun] * (begun < len(parts))
        number = draw(st.sampled_from(choices))
        begun = max(begun, number + 1)
        events.append(parts[number].pop(0))
    return [*events, ir.UsageUpdate(ir.Usage(10, 5, cached=4)), ir.Finished(FINISH)]


def story(completion: ir.Completion) -> list[tuple[Any, ...]]:
    events_seen: list[tuple[Any, ...]] = []
    for part in completion.messages[0].parts:
        match part:
            case ir.Text():
                events_seen.append(("text", part.text, part.signature))
            case ir.Refusal():
                events_seen.append(("text", part.text, None))
            case ir.Reasoning():
                events_seen.append(("reasoning", part.text, part.redacted, part.signature))
            case ir.ToolCall():
                arguments = part.arguments if part.parsed else part.arguments_text
                events_seen.append(("call", part.id, part.name, arguments, part.signature, part.incomplete))
            case other:
                events_seen.append((type(other).__name__, other))
    return events_seen


def with_text(completion: ir.Completion) -> list[tuple[Any, ...]]:
    """The story without empty texts: this API refuses them in the history that a client sends."""
    return [entry for entry in story(completion) if entry != ("text", "", None)]


@promise("law:5-streams-tell-the-same-story", "law:6-owed-back", "report:5", "report:6", "report:22", "report:40")
@given(answers())
@settings(max_examples=400)
def test_what_is_written_is_strict_and_reads_as_the_same_story(events: list[ir.AnyEvent]) -> None:
    body = written(events)
    assert not faults(body)
    again = dragoman.accumulate(read(body))
    assert story(again) == with_text(dragoman.accumulate(events))
    assert again.usage is not None
    assert structs.replace(again.usage, metadata=None) == ir.Usage(10, 5, cached=4, cache_written=0)


@promise("law:6-owed-back")
@given(answers())
@settings(max_examples=100)
def test_the_history_a_client_keeps_of_a_stream_gives_everything_back(events: list[ir.AnyEvent]) -> None:
    body = written(events)
    content = folded(payloads(body))["content"]
    # A client that reads numbers as doubles keeps no such history, and none keeps an input that is not an object.
    encoded = json.dumps(content)
    assume(content and "Infinity" not in encoded and "NaN" not in encoded)
    assume(all(isinstance(block.get("input", {}), dict) for block in content))
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": content}]
    request = dragoman.decode_request({"model": "m", "max_tokens": 9, "messages": messages}, FORMAT)
    assert story(ir.Completion((request.messages[-1],))) == with_text(dragoman.accumulate(events))


@given(answers())
@settings(max_examples=100)
def test_events_one_by_one_give_the_same_bytes(events: list[ir.AnyEvent]) -> None:
    encoder = dragoman.StreamEncoder(FORMAT)
    assert b"".join(encoder.encode([event]) for event in events) + encoder.close() == written(events)


# ── reading: what each event means ────────────────────────────────────────────────────────────────────────────

DIRECT: Json = {"type": "direct"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
CITATION = {"type": "char_location", "cited_text": "x", "document_index": 0, "document_title": "T"}
TAG = "dragoman:1:"

READINGS: dict[str, list[Json]] = {
    "text": wire.text(0, "Hel", "", "lo"),
    "text that was there at the start": [start(0, type="text", text="Hel"), delta(0, "text_delta", text="lo"), stop(0)],
    "empty text": wire.text(0),
    "text with null citations": [start(0, type="text", text="", citations=None), *wire.text(0, "x")[1:]],
    "citations before their text": [
        start(0, type="text", text="", citations=[]),
        delta(0, "citations_delta", citation=CITATION),
        delta(0, "text_delta", text="cited"),
        delta(0, "citations_delta", citation=CITATION | {"cited_text": "y"}),
        stop(0),
    ],
    "could have cited": [start(0, type="text", text="", citations=[]), delta(0, "text_delta", text="x"), stop(0)],
    "thinking, then text": [*wire.thinking(0, "hm", "m"), *wire.text(1, "Hi")],
    "thinking that is not shown": wire.thinking(0),
    "thinking without a signature": wire.thinking(0, "hm", signature=None),
    "thinking without the key": [start(0, type="thinking", thinking=""), *wire.thinking(0, "hm", signature=None)[1:]],
    "redacted thinking": [start(0, type="redacted_thinking", data="ZW5j"), stop(0), *wire.text(1, "Hi")],
    "call": call(0, "toolu_1", "", '{"ci', 'ty": "Zürich", "n": 1.0}', caller=DIRECT),
    "two calls and text between them": [*call(0, "a", "{}"), *wire.text(1, "and"), *call(2, "b", '{"x":1}')],
    "call without arguments": call(0, "toolu_1", ""),
    "call without any fragment": call(0, "toolu_1"),
    "call whole at its start": call(0, "toolu_1", input={"a": [1, 2]}),
    "call of code": call(0, "toolu_1", '{"a":1}', caller={"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}),
    "search and its result": [
        start(0, **SEARCH),
        delta(0, "input_json_delta", partial_json=""),
        delta(0, "input_json_delta", partial_json='{"query": '),
        delta(0, "input_json_delta", partial_json='"x"}'),
        stop(0),
        start(1, **FOUND),
        stop(1),
        *wire.text(2, "so"),
    ],
    "search without input": [start(0, **SEARCH), delta(0, "input_json_delta", partial_json=""), stop(0)],
    "compaction": [
        start(0, type="compaction", content=None),
        delta(0, "compaction_delta", content="what was said", encrypted_content="ZW5j"),
        stop(0),
    ],
    "block of tomorrow": [start(0, type="hologram", light=[1, {"a": None}]), stop(0), *wire.text(1, "Hi")],
    "signature for the next call": [*wire.thinking(0, signature=f"{TAG}next:google::c2ln"), *call(1, "a", "{}")],
    "signature for the next text": [*wire.thinking(0, signature=f"{TAG}next:google:=rs%3A1:c2ln"), *wire.text(1, "Hi")],
    "signature for the call before": [*call(0, "a", "{}"), *wire.thinking(1, signature=f"{TAG}previous:google::c2ln")],
    "signature for the text before": [*wire.text(0, "Hi"), *wire.thinking(1, signature=f"{TAG}previous:google::c2ln")],
    "signature for nothing": [*wire.thinking(0, signature=f"{TAG}next:google::c2ln")],
    "signature for an empty text": [*wire.thinking(0, signature=f"{TAG}next:google::c2ln"), *wire.text(1)],
    "signature behind a thought": [*wire.thinking(0, "hm"), *wire.thinking(1, signature=f"{TAG}previous:google::c2ln")],
    "two signatures behind a text": [
        *wire.text(0, "Hi"),
        *wire.thinking(1, signature=f"{TAG}previous:google::c2ln"),
        *wire.thinking(2, signature=f"{TAG}previous:google::c2ln"),
    ],
    "signed empty text": wire.thinking(0, signature=f"{TAG}text:google::c2ln"),
    "foreign thinking": wire.thinking(0, "hm", signature=f"{TAG}reasoning:openai:=rs_1:c2ln"),
    "foreign redacted thinking": wire.thinking(0, signature=f"{TAG}redacted:openai:=rs_1:c2ln"),
    "unsigned foreign thinking": wire.thinking(0, "hm", signature=f"{TAG}unsigned:::"),
    "a malformed tag": [*wire.thinking(0, signature=f"{TAG}other:x"), *wire.text(1, "Hi")],
}


@promise("law:5-streams-tell-the-same-story", "report:7", "report:8", "report:15", "report:22")
@each("name", READINGS)
@each("stops", [True, False], ids=["stopped", "never stopped"])
def test_a_stream_means_what_the_whole_message_means(name: str, *, stops: bool) -> None:
    events = [event for event in READINGS[name] if stops or event["type"] != "content_block_stop"]
    whole = dragoman.decode_response(folded([started(), *events, *ended()]), FORMAT)
    assert_same_answer(completed(started(), events, ended()), whole)


@each("name", READINGS)
def test_each_of_them_written_again_is_strict_and_means_the_same(name: str) -> None:
    events = read(sse([started(), *READINGS[name], *ended()]))
    body = written(events)
    assert not faults(body)
    assert story(dragoman.accumulate(read(body))) == story(dragoman.accumulate(events))


def test_usage_is_the_last_total_and_keeps_what_is_not_repeated() -> None:
    early = {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 1, "cache_creation_input_tokens": 2}
    late = {"output_tokens": 20, "input_tokens": 5, "cache_read_input_tokens": None}
    usage = completed(started(usage=early), wire.text(0, "x"), ended(usage=late)).usage
    assert usage is not None
    assert (usage.input, usage.cached, usage.cache_written, usage.output) == (11, 4, 2, 20)


def test_several_message_deltas_are_one_ending() -> None:
    first = {"type": "message_delta", "delta": {"stop_reason": None, "container": {"id": "c1"}}}
    completion = completed(started(), wire.text(0, "x"), first, ended("stop_sequence", stop_sequence="END"))
    assert completion.finish == ir.Finish("stop", "stop_sequence", "END")
    assert plain_metadata(completion.metadata)["anthropic"]["container"] == {"id": "c1"}


def test_a_refusal_keeps_its_details() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": None}
    finish = completed(started(), ended("refusal", stop_details=details)).finish
    assert finish is not None
    assert finish.reason == "refusal"
    noted = {"~stop_details": details, "~in:stop_details": {"category": "cyber"}}
    assert plain_metadata(finish.metadata) == {"anthropic": noted}


def test_a_message_that_is_whole_at_its_start_is_read_from_there() -> None:
    block = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}
    completion = completed(started(content=[block], stop_reason="tool_use"), {"type": "message_stop"})
    assert calls_of(completion) == [("a", "f", {"x": 1})]
    assert completion.finish_reason == "tool_calls"


def test_a_thought_of_tomorrow_is_gathered_whole() -> None:
    completion = completed(
        started(),
        start(0, type="connector_text", connector_text="a"),
        delta(0, "connector_text_delta", connector_text="b"),
        delta(0, "connector_text_delta", connector_text="c"),
        delta(0, "signature_delta", signature="s1"),
        stop(0),
        ended(),
    )
    part = completion.messages[0].parts[0]
    assert isinstance(part, ir.Opaque)
    assert part.block == {"type": "connector_text", "connector_text": "abc", "signature": "s1"}


@promise("report:5")
def test_interleaved_blocks_are_distinguished_by_their_index() -> None:
    pieces = {3: ['{"a"', ":1}"], 0: ['{"b"', ":2}"], 7: ["", "{}"]}
    events = [event for index in pieces for event in call(index, f"c{index}")[:1]]
    for number in (0, 1):
        events += [delta(index, "input_json_delta", partial_json=pieces[index][number]) for index in pieces]
    events += [stop(index) for index in reversed(pieces)]
    completion = completed(started(), events, ended("tool_use"))
    assert calls_of(completion) == [("c3", "f", {"a": 1}), ("c0", "f", {"b": 2}), ("c7", "f", {})]


@promise("report:9")
def test_arguments_that_parse_early_are_not_finished_early() -> None:
    events = read(sse([started(), *call(0, "a", '{"a":1}', " ")[:-1]]))
    assert not any(isinstance(event, ir.PartEnd) and not event.incomplete for event in events)
    completion = completed(started(), call(0, "a", '{"a":1}', '{"b":2}'), ended("tool_use"))
    assert not completion.tool_calls[0].parsed
    assert completion.tool_calls[0].arguments_text == '{"a":1}{"b":2}'


@promise("report:14")
def test_a_message_starts_once() -> None:
    again = completed(started(), started(), wire.text(0, "x"), started(), ended())
    assert again.text == "x"
    events = read(sse([started(), *wire.text(0, "x"), started(id="msg_2"), *ended()]))
    assert isinstance(events[-1], ir.StreamFailed)
    assert "another message_start" in events[-1].failure.message
    assert "in the message" in events[-1].failure.message


@promise("report:17")
def test_a_call_cut_by_the_token_limit_is_kept_and_not_offered() -> None:
    completion = completed(started(), call(0, "a", "{}"), call(1, "b", '{"x": "lo'), ended("max_tokens"))
    assert completion.finish_reason == "length"
    assert [(part.id, part.incomplete) for part in all_calls(completion)] == [("a", False), ("b", True)]
    assert all_calls(completion)[1].arguments_text == '{"x": "lo'


@promise("report:32")
def test_a_thought_that_never_ended_has_no_signature() -> None:
    events = read(sse([started(), *wire.thinking(0, "hm")[:-1]]))
    with pytest.raises(dragoman.TruncatedStream) as caught:
        dragoman.accumulate(events)
    assert caught.value.partial.messages[0].parts == (ir.Reasoning("hm"),)


def test_noise_is_ignored() -> None:
    ping = {"type": "ping"}
    tomorrow = {"type": "weather_report", "index": 0, "delta": {"type": "rain"}}
    other = delta(0, "sparkle_delta", sparkle=1)
    null = delta(0, "text_delta", text=None)
    quiet = completed(started(), wire.text(0, "a", "b"), ended())
    begin, first, second, end = wire.text(0, "a", "b")
    stop_event = {"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 1}}
    noisy = sse(
        [ping, started(), ping, begin, ping, first, other, tomorrow, null, second, end, tomorrow, ended()[0], ping]
    )
    noisy += sse([stop_event, ping, *ended(), started(id="msg_9")])
    assert dragoman.accumulate(read(b": hello\n\n" + noisy + b"data: [DONE]\n\n")) == quiet


# ── reading: what may be broken ───────────────────────────────────────────────────────────────────────────────

LONG: list[Json] = [
    started(),
    {"type": "ping"},
    *wire.thinking(0, "hm", "hm"),
    *wire.text(1, "Hel", "lo"),
    *call(2, "a", '{"x":', "1}"),
    *call(3, "b", ""),
    start(4, **SEARCH),
    delta(4, "input_json_delta", partial_json="{}"),
    stop(4),
    *ended("tool_use"),
]


@promise("report:16", "law:7-no-guessing")
@each("kept", range(len(LONG)))
def test_a_stream_cut_at_any_event_is_truncated_and_its_open_calls_are_not_offered(kept: int) -> None:
    events = read(sse(LONG[:kept]))
    failed = events[-1]
    assert isinstance(failed, ir.StreamFailed)
    assert failed.failure.kind == "truncated"
    assert {event.index for event in events if isinstance(event, ir.PartStart)} == {
        event.index for event in events if isinstance(event, ir.PartEnd)
    }
    with pytest.raises(dragoman.TruncatedStream) as caught:
        dragoman.accumulate(events)
    offered = {part.id for part in all_calls(caught.value.partial) if not part.incomplete}
    assert offered == certainly_whole(LONG[:kept])


def certainly_whole(events: list[Json]) -> set[str]:
    """Calls that were stopped, and followed by something that shows that the token limit did not stop them."""
    whole = set()
    for place, event in enumerate(events):
        if event["type"] == "content_block_start" and event["content_block"]["type"] == "tool_use":
            later = events[place:]
            rest = later[later.index(stop(event["index"])) :] if stop(event["index"]) in later else []
            if any(one["type"] in {"content_block_start", "message_delta"} for one in rest):
                whole.add(event["content_block"]["id"])
    return whole


def raw(payload: bytes) -> bytes:
    return b"data: " + payload + b"\n\n"


OPEN_TEXT = sse([started(), start(0, type="text", text=""), delta(0, "text_delta", text="Hi")])
OPEN_CALL = sse([started(), *call(0, "a", '{"x"')[:-1]])
BROKEN: dict[str, tuple[bytes, str]] = {
    "JSON cut short": (OPEN_TEXT + raw(b'{"type":"content_block_delta","index":0,"del'), "expected an event"),
    "no JSON at all": (OPEN_TEXT + raw(b"<html>"), "expected an event"),
    "no object": (OPEN_TEXT + raw(b"17"), "expected an event"),
    "no type": (OPEN_TEXT + raw(b'{"index":0}'), "expected an event"),
    "bad characters": (OPEN_TEXT + raw(b'{"type":"content_block_start","index":1,"content_block":"\xff"}'), "UTF-8"),
    "too deep": (OPEN_TEXT + raw(b'{"type":"message_delta","x":' + b"[" * 99_999), "expected an event"),
    "malformed message": (sse([{"type": "message_start", "message": 3}]), "expected an event"),
    "malformed index": (OPEN_TEXT + sse([delta(0, "text_delta", text="x") | {"index": "0"}]), "expected an event"),
    "malformed text": (OPEN_TEXT + sse([delta(0, "text_delta", text=3)]), "expected an event"),
    "malformed block": (OPEN_TEXT + sse([start(1, type="tool_use", id=3, name="f")]), "expected `str`"),
    "before the start": (sse(wire.text(0, "x")), "content_block_start of block 0"),
    "after the stop reason": (
        OPEN_TEXT + sse([*ended()[:1], delta(0, "text_delta", text="x")]),
        "after the stop reason, got content_block_delta of block 0",
    ),
    "unknown block": (OPEN_TEXT + sse([delta(4, "text_delta", text="x")]), "content_block_delta of unknown block 4"),
    "stopped block": (
        OPEN_TEXT + sse([stop(0), delta(0, "text_delta", text="x")]),
        "content_block_delta of stopped block 0",
    ),
    "stop of an unknown block": (OPEN_TEXT + sse([stop(4)]), "content_block_stop of unknown block 4"),
    "text in a call": (OPEN_CALL + sse([delta(0, "text_delta", text="x")]), "in a tool_use block, got text_delta"),
    "arguments in a text": (OPEN_TEXT + sse([delta(0, "input_json_delta", partial_json="x")]), "in a text block"),
    "signature in a text": (OPEN_TEXT + sse([delta(0, "signature_delta", signature="x")]), "in a text block"),
}


@promise("law:10-bad-input-good-words", "report:8")
@each("name", BROKEN)
def test_a_broken_stream_fails_once_and_says_why(name: str) -> None:
    body, words = BROKEN[name]
    events = read(body + sse(ended()))
    failed = events[-1]
    assert isinstance(failed, ir.StreamFailed)
    assert words in failed.failure.message
    assert sum(isinstance(event, ir.StreamFailed | ir.Finished) for event in events) == 1
    ends = [event.index for event in events if isinstance(event, ir.PartEnd)]
    assert ends == [event.index for event in events if isinstance(event, ir.PartStart)]


@promise("law:10-bad-input-good-words")
@given(st.integers(0), st.integers(0, 255), st.integers(0, 3))
@settings(max_examples=500)
def test_no_damage_to_the_bytes_goes_beyond_a_failed_stream(place: int, byte: int, extra: int) -> None:
    whole = sse(LONG)
    place %= len(whole)
    events = read(whole[:place] + bytes([byte]) * extra + whole[place + 1 :])
    assert sum(isinstance(event, ir.StreamFailed | ir.Finished) for event in events) == 1
    assert isinstance(events[-1], ir.StreamFailed | ir.Finished)


@pytest.mark.parametrize("place", [number for number, event in enumerate(LONG) if "delta" not in event["type"]])
def test_a_repeated_event_changes_nothing(place: int) -> None:
    assert completed([*LONG[: place + 1], *LONG[place:]]) == completed(LONG)


@promise("report:16")
@pytest.mark.parametrize(
    ("kind", "word"),
    [("overloaded_error", "overloaded"), ("rate_limit_error", "rate_limit"), ("api_error", "server")],
)
def test_an_error_under_status_200_is_a_failure_of_its_own_kind(kind: str, word: str) -> None:
    error = {"type": "error", "error": {"type": kind, "message": "no"}, "request_id": "req_1"}
    events = read(sse([*LONG[:12], error, *LONG[12:]]))
    failed = events[-1]
    assert isinstance(failed, ir.StreamFailed)
    assert (failed.failure.kind, failed.failure.message, failed.failure.request_id) == (word, "no", "req_1")


def test_an_argument_of_ten_megabytes_passes_in_one_piece_or_in_many() -> None:
    text = json.dumps({"x": "ab" * 5_000_000})
    for size in (len(text), 4096):
        pieces = [text[place : place + size] for place in range(0, len(text), size)]
        body = sse([started(), *call(0, "a", *pieces), *ended("tool_use")])
        events = read(body, range(65536, len(body), 65536))
        assert dragoman.accumulate(events).tool_calls[0].arguments_text == text
        assert dragoman.accumulate(read(written(events))).tool_calls[0].arguments_text == text


@promise("report:5", "report:6", "report:18")
def test_a_hundred_calls_at_once_are_a_hundred_calls() -> None:
    starts = [ir.PartStart(number, ir.ToolCall(f"c{number}", "f")) for number in range(100)]
    deltas = [ir.PartDelta(number, piece) for piece in ('{"n":', "1", "}") for number in range(100)]
    ends = [ir.PartEnd(number) for number in range(99, -1, -1)]
    body = written([ir.StreamStart("1", "m"), *starts, *deltas, *ends, ir.Finished(FINISH)])
    assert not faults(body)
    assert calls_of(dragoman.accumulate(read(body))) == [(f"c{number}", "f", {"n": 1}) for number in range(100)]
    assert sdk_calls(read_by_the_sdk(body)) == [(f"c{number}", "f", {"n": 1}) for number in range(100)]


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


def chat(*deltas: Json, finish: str = "tool_calls") -> bytes:
    """A Chat stream of these deltas."""
    said_and_reason: list[tuple[Json, str | None]] = [*((delta, None) for delta in deltas), ({}, finish)]
    chunks = [
        {"id": "chatcmpl-1", "model": "gpt-4.1", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        for delta, reason in said_and_reason
    ]
    return b"".join(raw(json.dumps(chunk).encode()) for chunk in chunks) + b"data: [DONE]\n\n"


def fragment(index: int, arguments: str, **fields: Any) -> Json:
    return {"tool_calls": [{"index": index, **fields, "function": {"arguments": arguments}}]}


def opened(index: int, name: str, arguments: str = "") -> Json:
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": index, "id": f"call_{index}", "type": "function", "function": function}]}


def translated(body: bytes) -> bytes:
    translator = dragoman.StreamTranslator(source="openai-chat", target=FORMAT)
    return translator.feed(body) + translator.close()


@promise("report:5", "report:6", "report:8", "report:23")
def test_interleaved_calls_of_chat_become_blocks_one_after_the_other() -> None:
    out = translated(
        chat(
            {"role": "assistant", "content": "Let me see."},
            opened(0, "f", '{"a"'),
            opened(1, "g"),
            opened(2, "h"),
            fragment(1, '{"b"'),
            fragment(0, ":1}"),
            fragment(2, ""),
            fragment(1, ":2}"),
            {"content": "Done."},
        )
    )
    assert not faults(out)
    kinds = [event["content_block"]["type"] for event in payloads(out) if event["type"] == "content_block_start"]
    assert kinds == ["text", "tool_use", "tool_use", "tool_use", "text"]
    message = read_by_the_sdk(out)
    assert sdk_calls(message) == [("call_0", "f", {"a": 1}), ("call_1", "g", {"b": 2}), ("call_2", "h", {})]
    assert sdk_text(message) == "Let me see.Done."
    assert message.stop_reason == "tool_use"


@promise("report:7", "report:15")
def test_reasoning_first_is_a_thinking_block_first() -> None:
    out = translated(chat({"reasoning_content": "hm"}, {"reasoning_content": "m"}, {"content": "Hi"}, finish="stop"))
    assert not faults(out)
    content = folded(payloads(out))["content"]
    assert [(block["type"], block.get("thinking"), block.get("text")) for block in content] == [
        ("thinking", "hmm", None),
        ("text", None, "Hi"),
    ]


@promise("report:1")
def test_blocks_before_a_call_do_not_shift_its_index_in_chat() -> None:
    body = sse(
        [
            started(),
            *wire.thinking(0, "hm"),
            *wire.text(1, "x"),
            *call(2, "a", "{}"),
            *call(3, "b", "{}"),
            *ended("tool_use"),
        ]
    )
    translator = dragoman.StreamTranslator(source=FORMAT, target="openai-chat")
    out = translator.feed(body) + translator.close()
    lines = [line.removeprefix("data: ") for line in out.decode().split("\n\n") if line.startswith("data: {")]
    deltas = [choice["delta"] for line in lines for choice in json.loads(line)["choices"]]
    entries = [entry for delta in deltas for entry in delta.get("tool_calls", ())]
    assert [(entry["index"], entry["id"]) for entry in entries if "id" in entry] == [(0, "a"), (1, "b")]


def test_text_and_thoughts_are_sent_at_once() -> None:
    encoder = dragoman.StreamEncoder(FORMAT)
    assert b"message_start" in encoder.encode([ir.StreamStart("1", "m")])
    encoder.encode([ir.PartStart(0, ir.Reasoning(""))])
    for text in ("hm", "hmm", "ähem"):
        assert json.dumps(text, ensure_ascii=False).encode() in encoder.encode([ir.PartDelta(0, text)])
    encoder.encode([ir.PartEnd(0), ir.PartStart(1, ir.Text(""))])
    for text in ("Hi", " ", "\u2028\r\n"):
        assert len(list(payloads(encoder.encode([ir.PartDelta(1, text)])))) >= 1
    encoder.encode([ir.PartEnd(1), ir.PartStart(2, ir.ToolCall("a", "f")), ir.PartDelta(2, "{")])
    assert b"1}" in encoder.encode([ir.PartDelta(2, "1}")])


def test_what_begins_while_a_part_is_open_waits_for_its_end() -> None:
    encoder = dragoman.StreamEncoder(FORMAT)
    encoder.encode([ir.StreamStart("1", "m"), ir.PartStart(0, ir.ToolCall("a", "f")), ir.PartStart(1, ir.Text(""))])
    assert encoder.encode([ir.PartDelta(1, "later"), ir.PartStart(2, ir.ToolCall("b", "g")), ir.PartEnd(1)]) == b""
    assert encoder.encode([ir.PartDelta(2, '{"x":'), ir.PartEnd(0)]).count(b"content_block_start\n") == 2
    assert b"2}" in encoder.encode([ir.PartDelta(2, "2}")])


def ending_of(*events: ir.AnyEvent) -> tuple[Any, Json]:
    body = written([ir.StreamStart("1", "m"), *events])
    assert not faults(body)
    (event,) = [event for event in payloads(body) if event["type"] == "message_delta"]
    return event["delta"]["stop_reason"], event["usage"]


@promise("report:78")
def test_usage_at_the_end_counts_as_this_api_does() -> None:
    early, late = ir.Usage(50, 1), ir.Usage(100, 20, cached=60, cache_written=10, reasoning=5)
    _, usage = ending_of(ir.UsageUpdate(early), ir.UsageUpdate(late), ir.Finished(ir.Finish("stop")))
    assert usage == {
        "input_tokens": 30,
        "output_tokens": 20,
        "cache_creation_input_tokens": 10,
        "cache_read_input_tokens": 60,
        "output_tokens_details": {"thinking_tokens": 5},
    }


CALL: list[ir.AnyEvent] = [ir.PartStart(0, ir.ToolCall("a", "f")), ir.PartDelta(0, '{"x":'), ir.PartEnd(0)]
CUT_CALL: list[ir.AnyEvent] = [*CALL[:2], ir.PartEnd(0, incomplete=True)]
REFUSAL: list[ir.AnyEvent] = [ir.PartStart(0, ir.Refusal("")), ir.PartDelta(0, "No."), ir.PartEnd(0)]


@promise("report:23")
@pytest.mark.parametrize(
    ("events", "reason", "word"),
    [
        ([], "stop", "end_turn"),
        (CALL, "tool_calls", "tool_use"),
        (CALL, "stop", "tool_use"),
        (CUT_CALL, "length", "max_tokens"),
        (REFUSAL, "stop", "refusal"),
        (REFUSAL, "refusal", "refusal"),
        ([], "content_filter", "refusal"),
        ([], "pause", "pause_turn"),
    ],
)
def test_the_stop_reason_follows_from_the_content(
    events: list[ir.AnyEvent], reason: ir.FinishReason, word: str
) -> None:
    assert ending_of(*events, ir.Finished(ir.Finish(reason)))[0] == word


def test_a_call_cut_by_the_limit_is_written_as_far_as_it_came() -> None:
    body = written([ir.StreamStart("1", "m"), *CUT_CALL, ir.Finished(ir.Finish("length"))])
    again = dragoman.accumulate(read(body))
    assert (again.finish_reason, all_calls(again)[0].incomplete) == ("length", True)
    assert all_calls(again)[0].arguments_text == '{"x":'


@promise("report:16")
@pytest.mark.parametrize("kind", ["truncated", "overloaded", "cancelled", "server"])
def test_a_failed_stream_ends_with_an_error_and_closes_nothing(kind: ir.FailureKind) -> None:
    text: list[ir.AnyEvent] = [ir.PartStart(1, ir.Text("")), ir.PartDelta(1, "later"), ir.PartEnd(1, incomplete=True)]
    failed = ir.StreamFailed(ir.Failure(kind, "it broke"))
    events = list(payloads(written([ir.StreamStart("1", "m"), *CUT_CALL, *text, failed])))
    assert [event["type"] for event in events][-1] == "error"
    assert not any(event["type"] in {"content_block_stop", "message_delta", "message_stop"} for event in events)
    assert events[-1]["error"]["message"] == "it broke"
    again = read(sse(events))[-1]
    assert isinstance(again, ir.StreamFailed)
    assert again.failure.kind == ("server" if kind in {"truncated", "cancelled"} else kind)


@promise("report:25", "report:29", "law:6-owed-back")
def test_a_signature_sent_last_comes_back_on_its_part_through_the_sdk() -> None:
    parts: list[ir.AnyEvent] = [
        ir.PartStart(0, ir.Text("")),
        ir.PartDelta(0, "Hi"),
        ir.PartEnd(0, SIGNATURE),
        ir.PartStart(1, ir.ToolCall("a", "f", signature=SIGNATURE)),
        ir.PartEnd(1, SIGNATURE),
        ir.PartStart(2, ir.Text("")),
        ir.PartEnd(2, SIGNATURE),
    ]
    message = read_by_the_sdk(written([ir.StreamStart("1", "m"), *parts, ir.Finished(FINISH)]))
    content = [block.to_dict() for block in message.content]
    results = [{"type": "tool_result", "tool_use_id": "a", "content": "ok"}]
    turns = [{"role": "assistant", "content": content}, {"role": "user", "content": results}]
    request = dragoman.decode_request({"model": "m", "max_tokens": 9, "messages": turns}, FORMAT)
    assert story(ir.Completion(request.messages[:1])) == [
        ("text", "Hi", SIGNATURE),
        ("call", "a", "f", {}, SIGNATURE, False),
        ("text", "", SIGNATURE),
    ]
    back = dragoman.encode_request(request, FORMAT)
    assert back.body["messages"] == turns


@promise("report:40")
def test_a_signature_of_the_same_family_is_sent_before_the_stop_of_its_block() -> None:
    own = ir.Signature("anthropic", "c2ln")
    thought: list[ir.AnyEvent] = [ir.PartStart(0, ir.Reasoning("")), ir.PartDelta(0, "hm"), ir.PartEnd(0, own)]
    body = written([ir.StreamStart("1", "m"), *thought, ir.Finished(ir.Finish("stop"))])
    deltas = [event["delta"] for event in payloads(body) if event["type"] == "content_block_delta"]
    assert deltas[-1] == {"type": "signature_delta", "signature": "c2ln"}
    assert not faults(body)


def test_arguments_that_are_not_an_object_cross_in_a_wrapper() -> None:
    for text, expected in (("[1]", {"unparsed_arguments": "[1]"}), ("null", {}), ("", {}), ("  ", {})):
        call_events: list[ir.AnyEvent] = [ir.PartStart(0, ir.ToolCall("a", "f")), ir.PartDelta(0, text), ir.PartEnd(0)]
        body = written([ir.StreamStart("1", "m"), *call_events, ir.Finished(FINISH)])
        assert sdk_calls(read_by_the_sdk(body)) == [("a", "f", expected)]


def test_a_custom_tool_takes_its_text_as_one_argument() -> None:
    text = 'SELECT "é"\n\\'
    opening = ir.PartStart(0, ir.ToolCall("a", "sql", custom=True))
    pieces = [ir.PartDelta(0, text[:9]), ir.PartDelta(0, text[9:])]
    body = written([ir.StreamStart("1", "m"), opening, *pieces, ir.PartEnd(0), ir.Finished(FINISH)])
    assert sdk_calls(read_by_the_sdk(body)) == [("a", "sql", {"input": text})]


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize(
    ("part", "what"),
    [
        (ir.Image("image/png", "AAAA"), "image"),
        (ir.ServerToolCall("s", "code", "google", {"executableCode": {}}), "call run by the provider"),
        (ir.ServerToolResult("s", "code", "google", {"x": {}}), "result of a call run by the provider"),
        (ir.Opaque("openai", "item", {}), "openai block 'item'"),
        (ir.Text("x", (ir.Citation(title="T"),)), "number of the cited document"),
        (ir.Text("x", (ir.Citation(),)), "citation"),
        (ir.Text("x", (ir.Citation("https://x.example", start=0, end=1),)), "place of a citation in the text"),
        (ir.Refusal("No."), "refusal"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_this_format_cannot_express_is_reported(part: ir.AnyPart, what: str) -> None:
    events: list[ir.AnyEvent] = [ir.StreamStart("1", "m"), ir.PartStart(0, part), ir.PartEnd(0)]
    events += [ir.UsageUpdate(ir.Usage()), ir.Finished(ir.Finish("stop"))]
    assert [loss.what for loss in losses_of(events)] == [what]


def test_further_candidates_are_not_mixed_in() -> None:
    events: list[ir.AnyEvent] = [
        ir.StreamStart("1", "m"),
        ir.PartStart(0, ir.Text("")),
        ir.PartStart(1, ir.Text(""), candidate=1),
        ir.PartDelta(1, "other"),
        ir.PartDelta(0, "one"),
        ir.PartEnd(1),
        ir.PartEnd(0),
        ir.UsageUpdate(ir.Usage()),
        ir.Finished(ir.Finish("stop"), (ir.Finish("stop"),)),
    ]
    assert dragoman.accumulate(read(written(events))).text == "one"
    assert {loss.what for loss in losses_of(events)} == {"a further candidate"}
