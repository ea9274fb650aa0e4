"""The openai SDK as judge of Responses: its types for what we send and answer, its own reader for what we stream."""

import json
from typing import Any

import openai
import pytest
from hypothesis import given
from msgspec import structs
from openai.types.responses import Response, ResponseCustomToolCall, ResponseFunctionToolCall
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)
from pydantic import BaseModel

import dragoman
from dragoman import ir
from tests import strategies
from tests.judges.crossing import Recordings, content_of, crossed_answers, crossed_requests
from tests.judges.typed import complaints
from tests.judges.vendors import Wire, openai_client, unknown_fields
from tests.support.calls import all_calls
from tests.support.formats import FAMILY, MODELS
from tests.support.promises import promise

pytestmark = promise("law:3-legality")

TARGET = "openai-responses"


def refused(body: dict[str, Any]) -> list[str]:
    kind = ResponseCreateParamsStreaming if body.get("stream") else ResponseCreateParamsNonStreaming
    return complaints(body, kind)


@promise("report:73")
def test_recorded_requests_of_others_are_requests_of_responses(recordings: Recordings) -> None:
    found = {id: wrong for id, encoded in crossed_requests(recordings, TARGET) if (wrong := refused(encoded.body))}
    assert found == {}


@promise("law:9-usage-adds-up", "report:76")
def test_recorded_answers_of_others_are_answers_of_responses(recordings: Recordings) -> None:
    for id, completion, encoded in crossed_answers(recordings, TARGET):
        read = Response.model_validate_json(encoded.json())
        assert unknown(read) == [], id
        assert seen(read) == content_of(completion), id


def unknown(read: BaseModel) -> list[str]:
    # The service sends these (1,642 recordings, and every call of a custom tool); its types do not have them.
    sent = (".store", ".item.status", "].status", ".frequency_penalty", ".presence_penalty")
    return [name for name in unknown_fields(read) if not name.endswith(sent)]


def seen(read: Response) -> tuple[Any, ...]:
    calls = [(item.name, json.loads(item.arguments)) for item in read.output if item.type == "function_call"]
    usage = read.usage
    return read.output_text, calls, None if usage is None else (usage.input_tokens, usage.output_tokens)


@given(completion=strategies.COMPLETIONS)
def test_the_sdk_reads_our_answers(completion: ir.Completion) -> None:
    read = Response.model_validate_json(dragoman.encode_response(completion, TARGET).json())
    assert read.output_text == completion.text
    calls = [item for item in read.output if isinstance(item, ResponseFunctionToolCall | ResponseCustomToolCall)]
    assert [call.call_id for call in calls] == [call.id for call in all_calls(completion)]
    assert all(call.id != call.call_id for call in calls)


STREAM: list[ir.AnyEvent] = [
    ir.StreamStart("answer_1", "m", 1700000000),
    ir.PartStart(0, ir.Reasoning("")),
    ir.PartDelta(0, "Two places, "),
    ir.PartDelta(0, "two calls."),
    ir.PartEnd(0, ir.Signature("anthropic", "c2ln")),
    ir.PartStart(1, ir.Text("")),
    ir.PartDelta(1, "Let me "),
    ir.PartDelta(1, "look."),
    ir.PartDelta(1, "", ir.Citation("https://example.org", "Example", start=0, end=3)),
    ir.PartEnd(1),
    ir.PartStart(2, ir.ToolCall("call_a", "f", signature=ir.Signature("google", "c2lnbmF0dXJl"))),
    ir.PartStart(3, ir.ToolCall("call_b", "g")),
    ir.PartStart(4, ir.ToolCall("call_c", "sql", custom=True)),
    ir.PartDelta(2, '{"a":1,'),
    ir.PartDelta(3, '{"a":'),
    ir.PartDelta(2, '"b":[2,3]}'),
    ir.PartDelta(3, '"x"}'),
    ir.PartDelta(4, "SELECT 1"),
    ir.PartEnd(2),
    ir.PartEnd(3),
    ir.PartEnd(4),
    ir.UsageUpdate(ir.Usage(10, 5, total=15)),
    ir.Finished(ir.Finish("tool_calls")),
]


def streamed(events: list[ir.AnyEvent]) -> bytes:
    encoder = dragoman.StreamEncoder(TARGET)
    return encoder.encode(events) + encoder.close()


@promise("report:21")
def test_the_sdk_accumulates_our_streams() -> None:
    wire = Wire(streamed(STREAM), headers={"content-type": "text/event-stream"})
    with openai_client(wire).responses.stream(model="m", input="hi") as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].type == "response.created"
    assert events[-1].type == "response.completed"
    assert final.output_text == "Let me look."
    calls = [item for item in final.output if item.type in {"function_call", "custom_tool_call"}]
    assert [(call.call_id, call.name) for call in calls] == [("call_a", "f"), ("call_b", "g"), ("call_c", "sql")]
    assert final.usage is not None
    assert final.usage.total_tokens == 15


def test_every_event_is_one_that_the_sdk_knows() -> None:
    wire = Wire(streamed(STREAM), headers={"content-type": "text/event-stream"})
    with openai_client(wire).responses.create(model="m", input="hi", stream=True) as stream:
        for event in stream:
            assert unknown(event) == [], event.type


def test_the_sdk_raises_on_a_stream_that_failed() -> None:
    events: list[ir.AnyEvent] = [*STREAM[:4], ir.StreamFailed(ir.Failure("overloaded", "too busy"))]
    wire = Wire(streamed(events), headers={"content-type": "text/event-stream"})
    with (
        pytest.raises(openai.APIError, match="too busy"),
        openai_client(wire).responses.create(model="m", input="hi", stream=True) as stream,
    ):
        list(stream)


@given(request=strategies.ANY_REQUESTS)
def test_the_types_know_every_key(request: ir.Request) -> None:
    named = structs.replace(strategies.public(request, FAMILY[TARGET]), model=MODELS[TARGET])
    try:
        encoded = dragoman.encode_request(named, TARGET)
    except dragoman.EncodeError:
        return
    assert refused(encoded.body) == []
