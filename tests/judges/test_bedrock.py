"""boto judges: its service model validates what we send, its client reads what we answer, frames and checksums too.

It uses no network: the transport returns the prepared answer.
"""

import base64
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import boto3  # type: ignore[import-untyped]
import pytest
from botocore.awsrequest import AWSRequest, AWSResponse  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import ClientError, EventStreamError  # type: ignore[import-untyped]
from botocore.model import ListShape, MapShape, Shape, StructureShape  # type: ignore[import-untyped]
from botocore.validate import ParamValidator  # type: ignore[import-untyped]
from hypothesis import given

import dragoman
from dragoman import ir
from tests import strategies
from tests.judges.crossing import crossed_answers, crossed_requests
from tests.support import converse_streams
from tests.support.calls import all_calls
from tests.support.promises import promise
from tests.support.recordings import Record

TARGET = "bedrock-converse"
MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
Json = dict[str, Any]
Recordings = Callable[[str], Iterator[Record]]


@dataclass
class Line:
    """One exchange: `answer` is what the client gets, `sent` the body it sent, `path` where."""

    answer: bytes = b"{}"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    sent: bytes = b""
    path: str = ""

    def __call__(self, request: AWSRequest, **_: Any) -> AWSResponse:
        self.sent, self.path = request.body, request.url.partition(".com")[2]
        return AWSResponse(request.url, self.status, {"content-type": "x", **self.headers}, _Body(self.answer))


class _Body(io.BytesIO):
    def stream(self, amount: int = 1024, **_: Any) -> Iterator[bytes]:
        while chunk := self.read(amount):
            yield chunk


def client(line: Line) -> Any:
    found = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        aws_access_key_id="k",
        aws_secret_access_key="s",
        config=Config(retries={"max_attempts": 0}),
    )
    found.meta.events.register("before-send.bedrock-runtime", line)
    return found


CLIENT = client(Line())
INPUT = CLIENT.meta.service_model.operation_model("Converse").input_shape


def as_arguments(value: Any, shape: Shape) -> Any:
    """Our body as boto takes it: blobs are bytes there."""
    if isinstance(shape, StructureShape) and isinstance(value, dict) and not shape.is_document_type:
        members = shape.members
        return {key: as_arguments(member, members[key]) if key in members else member for key, member in value.items()}
    if isinstance(shape, ListShape) and isinstance(value, list):
        return [as_arguments(member, shape.member) for member in value]
    if isinstance(shape, MapShape) and isinstance(value, dict):
        return {key: as_arguments(member, shape.value) for key, member in value.items()}
    return base64.b64decode(value) if shape.type_name == "blob" else value


def arguments(body: Json) -> Json:
    return {"modelId": MODEL, **as_arguments(body, INPUT)}


def assert_valid(body: Json) -> None:
    report = ParamValidator().validate(arguments(body), INPUT)
    assert not report.has_errors(), report.generate_report()


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────


@promise("law:3-legality")
@given(request=strategies.ANY_REQUESTS)
def test_what_we_send_is_valid(request: ir.Request) -> None:
    try:
        encoded = dragoman.encode_request(strategies.public(request, "bedrock"), TARGET)
    except dragoman.EncodeError:
        return
    assert_valid(json.loads(encoded.json()))


@promise("law:3-legality")
def test_recorded_requests_of_others_are_valid_here(recordings: Recordings) -> None:
    for _, encoded in crossed_requests(recordings, TARGET):
        assert_valid(json.loads(encoded.json()))


def test_boto_sends_what_we_encode() -> None:
    document = ir.Document("application/pdf", "JVBERi0xLjQKJSVFT0YK", title="report")
    call = ir.ToolCall("t1", "f", {"a": 1})
    request = ir.Request(
        MODEL,
        (
            ir.Message("system", (ir.Text("Be brief.", cache=ir.Cache()),)),
            ir.Message("user", (document, ir.Text("Look."))),
            ir.Message("assistant", (call,)),
            ir.Message("tool", (ir.ToolResult("t1", "f", "data", {"t": 1}),)),
        ),
        (ir.ToolDefinition("f", "F", {"type": "object", "properties": {"a": {"type": "integer"}}}),),
        ir.ToolChoice("auto"),
        max_output_tokens=100,
        stop=("END",),
    )
    encoded = dragoman.encode_request(request, TARGET)
    line = Line(dragoman.encode_response(ir.Completion((ir.Message("assistant", "hi"),)), TARGET).json())
    client(line).converse(**arguments(encoded.body))
    assert json.loads(line.sent) == encoded.body
    assert unquote(line.path) == unquote(encoded.path)


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────

ANSWER = ir.Completion(
    (
        ir.Message(
            "assistant",
            (
                ir.Reasoning("hm", ir.Signature("google", "c2ln")),
                ir.Text("Let me see."),
                ir.ToolCall("t1", "f", {"city": "Zürich"}),
            ),
        ),
    ),
    ir.Finish("tool_calls"),
    ir.Usage(100, 5, 80),
)


def test_boto_talks_through_us() -> None:
    line = Line(dragoman.encode_response(ANSWER, TARGET).json())
    messages: list[Json] = [{"role": "user", "content": [{"text": "Weather?"}]}]
    tools = {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}]}
    read = client(line).converse(modelId=MODEL, messages=messages, toolConfig=tools)
    assert read["stopReason"] == "tool_use"
    assert read["usage"] == {
        "inputTokens": 20,
        "outputTokens": 5,
        "totalTokens": 105,
        "cacheReadInputTokens": 80,
    }
    message = read["output"]["message"]
    assert message["content"][2]["toolUse"] == {"toolUseId": "t1", "name": "f", "input": {"city": "Zürich"}}
    result = {"toolResult": {"toolUseId": "t1", "content": [{"text": "22"}], "status": "success"}}
    messages += [message, {"role": "user", "content": [result]}]
    client(line).converse(modelId=MODEL, messages=messages, toolConfig=tools)
    request = dragoman.decode_request(line.sent, TARGET)
    assert [each.role for each in request.messages] == ["user", "assistant", "tool"]
    thought: Any = request.messages[1].parts[0]
    assert (thought.text, thought.signature) == ("hm", ir.Signature("google", "c2ln"))
    assert dragoman.encode_request(request, TARGET).body == json.loads(line.sent)


def unknown_members(value: Any) -> bool:
    if isinstance(value, dict):
        return "SDK_UNKNOWN_MEMBER" in value or any(map(unknown_members, value.values()))
    return isinstance(value, list) and any(map(unknown_members, value))


def test_answers_of_others_are_read_whole(recordings: Recordings) -> None:
    for identity, completion, encoded in crossed_answers(recordings, TARGET):
        read = client(Line(encoded.json(), encoded.status)).converse(modelId=MODEL, messages=[])
        assert not unknown_members(read["output"]), identity
        blocks = read["output"]["message"]["content"]
        uses = [block["toolUse"] for block in blocks if "toolUse" in block]
        calls = [use["name"] for use in uses if use.get("type") != "server_tool_use"]
        assert calls == [call.name for call in all_calls(completion)], identity
        # What the provider ran is shown as Bedrock shows its own: a client sees the results and runs nothing.
        ran = [use["toolUseId"] for use in uses if use.get("type") == "server_tool_use"]
        assert ran == [block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block], identity
        hosted = [part for message in completion.messages for part in message.parts if type(part) is ir.ServerToolCall]
        assert len(ran) == sum(part.kind in {"web_search", "code_execution"} for part in hosted), identity


CLASSES = {
    "invalid_request": "ValidationException",
    "permission": "AccessDeniedException",
    "not_found": "ResourceNotFoundException",
    "rate_limit": "ThrottlingException",
    "server": "InternalServerException",
    "overloaded": "ServiceUnavailableException",
}


@pytest.mark.parametrize("kind", CLASSES)
def test_boto_raises_what_we_mean(kind: ir.FailureKind) -> None:
    encoded = dragoman.encode_error(ir.Failure(kind, "no luck", request_id="r1"), TARGET)
    with pytest.raises(ClientError, match="no luck") as raised:
        client(Line(encoded.json(), encoded.status, encoded.headers)).converse(modelId=MODEL, messages=[])
    assert raised.value.response["Error"]["Code"] == CLASSES[kind]


# ── streams ───────────────────────────────────────────────────────────────────────────────────────────────────


def streamed(data: bytes) -> list[Json]:
    answer = Line(data, headers={"content-type": "application/vnd.amazon.eventstream"})
    return list(client(answer).converse_stream(modelId=MODEL, messages=[])["stream"])


def encoded_answer(completion: ir.Completion) -> bytes:
    events: list[ir.AnyEvent] = [ir.StreamStart()]
    for index, part in enumerate(completion.messages[0].parts):
        events += [ir.PartStart(index, part), ir.PartEnd(index)]
    finish = completion.finish or ir.Finish("stop")
    encoder = dragoman.StreamEncoder(TARGET)
    return encoder.encode([*events, ir.UsageUpdate(completion.usage or ir.Usage()), ir.Finished(finish)])


@promise("law:5-streams-tell-the-same-story")
def test_boto_reads_our_frames() -> None:
    events = streamed(encoded_answer(ANSWER))
    text = "".join(
        event["contentBlockDelta"]["delta"].get("text", "") for event in events if "contentBlockDelta" in event
    )
    assert text == "Let me see."
    assert events[-2] == {"messageStop": {"stopReason": "tool_use"}}
    assert events[-1]["metadata"]["usage"]["totalTokens"] == 105
    assert not unknown_members(events)


@promise("law:5-streams-tell-the-same-story")
@given(completion=strategies.COMPLETIONS)
def test_boto_reads_any_answer_as_a_stream(completion: ir.Completion) -> None:
    events = streamed(encoded_answer(completion))
    assert "messageStart" in events[0]
    assert "metadata" in events[-1]
    starts = [event["contentBlockStart"]["start"] for event in events if "contentBlockStart" in event]
    names = [start["toolUse"]["name"] for start in starts if "toolUse" in start]
    assert names == [call.name for call in all_calls(completion)]
    assert not unknown_members(events)


def test_boto_raises_in_the_middle_of_a_stream() -> None:
    encoder = dragoman.StreamEncoder(TARGET)
    data = encoder.encode([ir.StreamStart(), ir.StreamFailed(ir.Failure("rate_limit", "slow down"))])
    with pytest.raises(EventStreamError, match="slow down") as raised:
        streamed(data)
    assert raised.value.response["Error"]["Code"] == "throttlingException"


def test_recorded_streams_written_again_read_the_same(recordings: Recordings) -> None:
    for record in recordings(TARGET):
        if not record.events or '"start":{}' in "".join(record.events):
            continue  # a start that says nothing: boto itself refuses it
        data = converse_streams.recorded(record.events)
        decoder, encoder = dragoman.StreamDecoder(TARGET), dragoman.StreamEncoder(TARGET)
        again = encoder.encode([*decoder.feed(data), *decoder.close()])
        assert _joined(streamed(again)) == _joined(streamed(data)), record.id


def _joined(events: list[Json]) -> Json:
    """All texts, thoughts and inputs of a stream, by block, and how it ended."""
    found: Json = {}
    for event in events:
        if "contentBlockDelta" in event:
            block = event["contentBlockDelta"]
            delta = block["delta"]
            thought = delta.get("reasoningContent", {}).get("text", "")
            text = delta.get("text", "") + thought + delta.get("toolUse", {}).get("input", "")
            index = block["contentBlockIndex"]
            found[index] = found.get(index, "") + text
        elif "messageStop" in event:
            found["stop"] = event["messageStop"]["stopReason"]
        elif "metadata" in event:
            found["usage"] = event["metadata"].get("usage")
    return {key: value for key, value in found.items() if value != ""}
