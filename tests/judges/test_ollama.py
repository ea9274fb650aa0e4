"""The ollama SDK as judge: recorded traffic of other vendors in its types, and what it sends, read by us.

It keeps less than the wire says: ids of calls, the ids of results and empty contents are gone when it sends a history.
"""

import json
from base64 import b64decode
from typing import Any

import httpx
import ollama
import pytest
from hypothesis import assume, given
from msgspec import structs
from pydantic import BaseModel

import dragoman
from dragoman import ir
from dragoman.errors import EncodeError
from dragoman.ir.completions import withholds_calls
from tests import strategies
from tests.judges.crossing import (
    Recordings,
    assert_comes_back,
    content_of,
    crossed_answers,
    crossed_requests,
    losses_elsewhere,
    turns_of,
)
from tests.support.bodies import PIXEL, RESPONSES, WEATHER, Sample
from tests.support.calls import all_calls
from tests.support.cases import each
from tests.support.endings import failure_expected, failure_of, is_error, is_success, succeeded
from tests.support.formats import FAMILY, MODELS
from tests.support.promises import promise
from tests.support.trees import difference

TARGET = "ollama-chat"


class Wire:
    """One exchange: `answer` is what the client gets, `sent` the body it sent, `path` where."""

    def __init__(self, answer: bytes = b"{}", status: int = 200) -> None:
        self.answer, self.status = answer, status
        self.sent, self.path = b"", ""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.sent, self.path = request.read(), request.url.path
        return httpx.Response(self.status, content=self.answer)

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.sent)
        return body


def client_of(wire: Wire) -> ollama.Client:
    return ollama.Client("http://test", transport=httpx.MockTransport(wire))


# ── what we encode ────────────────────────────────────────────────────────────────────────────────────────────


def assert_sdk_takes(body: dict[str, Any]) -> None:
    """Its own types for a request, and what they keep of each message is what we wrote."""
    request = ollama._types.ChatRequest.model_validate(body)  # noqa: SLF001
    assert request.model == body["model"]
    for wire in body["messages"]:
        # Its client wraps each image itself, and checks there that it is base64.
        images = [ollama.Image(value=data) for data in wire.get("images", ())]
        message = ollama.Message.model_validate({**wire, "images": images})
        assert message.model_dump().get("images", []) == wire.get("images", [])
        assert message.role == wire["role"]
        assert (message.content or "") == (wire.get("content") or "")
        calls = [(call.function.name, dict(call.function.arguments)) for call in message.tool_calls or ()]
        assert calls == [
            (call["function"]["name"], call["function"]["arguments"]) for call in wire.get("tool_calls", ())
        ]
        assert message.tool_name == wire.get("tool_name")


@promise("law:3-legality")
def test_recorded_requests_of_others_are_requests_of_ollama(recordings: Recordings) -> None:
    for _id, encoded in crossed_requests(recordings, TARGET):
        assert_sdk_takes(encoded.body)


@promise("law:3-legality")
@given(request=strategies.ANY_REQUESTS)
def test_any_request_is_one_of_ollama(request: ir.Request) -> None:
    named = structs.replace(strategies.public(request, FAMILY[TARGET]), model=MODELS[TARGET])
    try:
        encoded = dragoman.encode_request(named, TARGET)
    except EncodeError:
        return
    assert_sdk_takes(encoded.body)


def seen(read: ollama.ChatResponse) -> tuple[Any, ...]:
    calls = [(call.function.name, dict(call.function.arguments)) for call in read.message.tool_calls or ()]
    counted = read.prompt_eval_count is not None
    return read.message.content or "", calls, (read.prompt_eval_count, read.eval_count) if counted else None


@promise("law:3-legality", "law:9-usage-adds-up")
def test_recorded_answers_of_others_are_answers_of_ollama(recordings: Recordings) -> None:
    for id, completion, encoded in crossed_answers(recordings, TARGET):
        if is_error(encoded):
            wire = Wire(encoded.json(), encoded.status)
            with pytest.raises(ollama.ResponseError) as raised:
                client_of(wire).chat("m", [])
            expected = failure_expected(completion)
            assert expected is not None, id
            assert raised.value.error == expected.message, id
            continue
        assert succeeded(completion) or not is_success(encoded.body, TARGET), id
        read = ollama.ChatResponse.model_validate_json(encoded.json())
        text, calls, usage = content_of(completion)
        # This API has no refusals: their words are text.
        assert seen(read) == (text + (completion.refusal or ""), calls, usage), id
        assert (read.message.thinking or "") == completion.reasoning, id
        assert read.done is True
        assert read.done_reason in {"stop", "length"}


@promise("law:3-legality")
@given(completion=strategies.COMPLETIONS)
def test_the_sdk_reads_our_answers(completion: ir.Completion) -> None:
    wire = Wire(dragoman.encode_response(completion, TARGET).json())
    text, calls, usage = seen(client_of(wire).chat("m", []))
    assert text == completion.text + (completion.refusal or "")
    assume(b"e400" not in wire.answer.lower().replace(b"+", b""))  # the SDK reads such a number as infinity
    # This API cannot say that an answer was blocked, so calls of one do not cross.
    written = () if withholds_calls(completion.finish) else all_calls(completion)
    assert calls == [
        (call.name, call.arguments if call.parsed else {"unparsed_arguments": call.arguments_text}) for call in written
    ]
    assert completion.usage is not None
    assert usage == (completion.usage.input, completion.usage.output)


@promise("law:5-streams-tell-the-same-story")
@each("sample", [sample for sample in RESPONSES if sample.format != TARGET], ids=str)
def test_the_sdk_reads_our_streams(sample: Sample) -> None:
    completion = dragoman.decode_response(sample.body, sample.format)
    if len(completion.messages) != 1:
        return  # a stream holds one answer
    encoder = dragoman.StreamEncoder(TARGET)
    data = encoder.encode(_events(completion)) + encoder.close()
    chunks, failed = _read_by_sdk(data)
    text = "".join(chunk.message.content or "" for chunk in chunks)
    thinking = "".join(chunk.message.thinking or "" for chunk in chunks)
    calls = [call.function.name for chunk in chunks for call in chunk.message.tool_calls or ()]
    assert text == completion.text + (completion.refusal or "")
    assert thinking == completion.reasoning
    assert calls == [call.name for call in all_calls(completion)]
    assert (failed is None) is succeeded(completion)
    assert failed is None or failed.error == failure_of(completion).message
    whole = failed is None
    assert [chunk.done for chunk in chunks] == [False] * (len(chunks) - whole) + [True] * whole


def _read_by_sdk(data: bytes) -> tuple[list[ollama.ChatResponse], ollama.ResponseError | None]:
    """What the SDK reads of a stream, and the error that ends it, if one does."""
    chunks = []
    try:
        for chunk in client_of(Wire(data)).chat("m", [], stream=True):
            chunks.append(chunk)  # noqa: PERF402
    except ollama.ResponseError as failed:
        return chunks, failed
    return chunks, None


def _events(completion: ir.Completion) -> list[ir.AnyEvent]:
    events: list[ir.AnyEvent] = [ir.StreamStart(completion.id, completion.model, completion.created)]
    for index, part in enumerate(completion.messages[0].parts):
        events += [ir.PartStart(index, part), ir.PartEnd(index)]
    return [*events, ir.Finished(completion.finish or ir.Finish("stop"))]


@promise("law:10-bad-input-good-words")
@given(failure=strategies.FAILURES)
def test_the_sdk_reads_our_errors(failure: ir.Failure) -> None:
    encoded = dragoman.encode_error(failure, TARGET)
    with pytest.raises(ollama.ResponseError) as raised:
        client_of(Wire(encoded.json(), encoded.status)).chat("m", [])
    assert raised.value.error == failure.message
    assert raised.value.status_code == encoded.status


def test_the_sdk_reads_our_error_lines() -> None:
    encoder = dragoman.StreamEncoder(TARGET)
    data = encoder.encode([ir.StreamStart(), ir.StreamFailed(ir.Failure("overloaded", "no more room"))])
    with pytest.raises(ollama.ResponseError, match="no more room"):
        list(client_of(Wire(data)).chat("m", [], stream=True))


# ── what the SDK sends ────────────────────────────────────────────────────────────────────────────────────────


class Forecast(BaseModel):
    city: str
    degrees: float


CALLS = ir.Completion(
    (
        ir.Message(
            "assistant",
            (
                ir.Reasoning("Two cities."),
                ir.ToolCall("call_k3x9a1b2", "get_weather", {"city": "Zürich"}),
                ir.ToolCall("call_k3x9a1b3", "get_weather", {"city": "Uri", "days": 2}),
            ),
        ),
    ),
    ir.Finish("tool_calls"),
    ir.Usage(10, 5),
    None,
    "qwen3",
    1,
)
FORECAST = ir.Completion(
    (ir.Message("assistant", '{"city":"Zürich","degrees":22.5}'),), ir.Finish("stop"), ir.Usage(20, 9), None, "qwen3", 2
)
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Weather", "parameters": WEATHER}}


def conversation() -> Wire:
    """Two turns: the SDK keeps our calls in its history, answers them, and parses our structured answer."""
    wire = Wire(dragoman.encode_response(CALLS, TARGET).json())
    client = client_of(wire)
    history: list[Any] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Is it like here?", "images": [b64decode(PIXEL)]},
    ]
    first = client.chat("qwen3", history, tools=[TOOL], think=True, options={"num_ctx": 4096, "temperature": 0.2})
    calls = first.message.tool_calls or []
    assert [call.function.arguments for call in calls] == [{"city": "Zürich"}, {"city": "Uri", "days": 2}]
    results = [
        {"role": "tool", "tool_name": call.function.name, "content": content}
        for call, content in zip(calls, ["22", '{"error":"no such city"}'], strict=True)
    ]
    wire.answer = dragoman.encode_response(FORECAST, TARGET).json()
    answered = client.chat(
        "qwen3",
        [*history, first.message, *results],
        tools=[TOOL],
        think="low",
        format=Forecast.model_json_schema(),
        keep_alive="10m",
        options=ollama.Options(num_predict=100, seed=7, stop=["END"]),
    )
    assert Forecast.model_validate_json(answered.message.content or "") == Forecast(city="Zürich", degrees=22.5)
    return wire


@promise("law:1-identity")
def test_what_the_sdk_sends_comes_back_as_it_was() -> None:
    wire = conversation()
    assert wire.path == "/api/chat" == dragoman.encode_request(dragoman.decode_request(wire.sent, TARGET), TARGET).path
    assert_comes_back(wire.sent, wire.body, TARGET)
    detected = dragoman.detect(wire.sent)
    assert detected is not None
    assert (detected.format, detected.kind) == (TARGET, "request")


@promise("report:63", "law:8-pairs-hold")
def test_results_find_their_calls_although_the_sdk_drops_ids() -> None:
    request = dragoman.decode_request(conversation().sent, TARGET)
    calls = [call for message in request.messages for call in message.tool_calls]
    results = [result for message in request.messages for result in message.tool_results]
    assert [result.tool_call_id for result in results] == [call.id for call in calls]
    assert [result.kind for result in results] == ["text", "error"]


_EVERYWHERE = {("dropped", "$.keep_alive"), ("dropped", "$.messages[2].thinking")}


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize("target", ["openai-chat", "gemini", "anthropic-messages"])
def test_what_the_sdk_sends_crosses_except_for_reported_losses(target: str) -> None:
    losses = losses_elsewhere(conversation().sent, TARGET)[target]
    assert losses >= _EVERYWHERE
    settings = {"$.think", "$.format", "$.format.name", "$.options.seed", "$.options.num_predict", "$.tools[0]"}
    assert {path for _, path in losses - _EVERYWHERE} <= settings


@pytest.mark.parametrize("target", ["openai-chat", "anthropic-messages", "gemini", "vertex"])
def test_what_the_sdk_sends_is_understood_elsewhere(target: str) -> None:
    wire = conversation()
    there = dragoman.decode_request(dragoman.translate_request(wire.sent, source=TARGET, target=target).json(), target)
    assert turns_of(there) == turns_of(dragoman.decode_request(wire.sent, TARGET))


@promise("law:1-identity")
@pytest.mark.parametrize("sample", [sample for sample in RESPONSES if sample.format == TARGET], ids=str)
def test_what_the_sdk_reads_in_an_answer_is_what_we_read(sample: Sample) -> None:
    read = ollama.ChatResponse.model_validate_json(sample.json())
    completion = dragoman.decode_response(sample.body, TARGET)
    text, calls, usage = content_of(completion)
    assert (read.message.content or "", (read.message.thinking or "")) == (text, completion.reasoning)
    assert [(call.function.name, dict(call.function.arguments)) for call in read.message.tool_calls or ()] == calls
    assert usage is None or usage == (read.prompt_eval_count or 0, read.eval_count or 0)
    assert difference(sample.body, dragoman.encode_response(completion, TARGET).body) is None
