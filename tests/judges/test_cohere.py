"""The cohere SDK as judge: recorded traffic of other vendors in its types, and what it sends, read by us."""

import json
from typing import Any

import cohere
import httpx
import pytest
from hypothesis import given
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.codecs.accumulate import accumulate
from dragoman.errors import EncodeError
from tests import strategies
from tests.judges.crossing import Recordings, assert_comes_back, content_of, crossed_answers, crossed_requests
from tests.support.bodies import REQUESTS, RESPONSES, Sample
from tests.support.calls import all_calls
from tests.support.cases import each
from tests.support.formats import FAMILY, MODELS
from tests.support.promises import promise
from tests.support.trees import difference

TARGET = "cohere-chat"


class Wire:
    """One exchange: `answer` is what the client gets, `body` what it sent."""

    def __init__(self, answer: bytes = b"{}", status: int = 200, kind: str = "application/json") -> None:
        self.answer, self.status, self.kind = answer, status, kind
        self.sent = b""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.sent = request.read()
        return httpx.Response(self.status, content=self.answer, headers={"content-type": self.kind})

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.sent)
        return body


def client_of(wire: Wire) -> cohere.ClientV2:
    client = httpx.Client(transport=httpx.MockTransport(wire))
    return cohere.ClientV2(api_key="k", base_url="http://test", httpx_client=client)


ANSWER = json.dumps(
    {
        "id": "x",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "hi"}]},
        "finish_reason": "COMPLETE",
    }
).encode()


def assert_sdk_sends(body: dict[str, Any]) -> None:
    """Its method takes every key of the body, and sends what we wrote."""
    wire = Wire(ANSWER)
    client_of(wire).chat(**{key: value for key, value in body.items() if key != "stream"})
    assert difference({**body, "stream": False}, wire.body) is None


@promise("law:3-legality")
def test_recorded_requests_of_others_are_requests_of_cohere(recordings: Recordings) -> None:
    for _id, encoded in crossed_requests(recordings, TARGET):
        assert_sdk_sends(encoded.body)


@promise("law:3-legality")
@given(request=strategies.ANY_REQUESTS)
def test_any_request_is_one_of_cohere(request: ir.Request) -> None:
    named = structs.replace(strategies.public(request, FAMILY[TARGET]), model=MODELS[TARGET])
    try:
        encoded = dragoman.encode_request(named, TARGET)
    except EncodeError:
        return
    assert set(encoded.body) <= {"stream", *cohere.ClientV2.chat.__code__.co_varnames, *_parameters()}


def _parameters() -> set[str]:
    import inspect  # noqa: PLC0415

    from cohere.v2.client import V2Client  # noqa: PLC0415

    return set(inspect.signature(V2Client.chat).parameters)


def seen(read: cohere.V2ChatResponse) -> tuple[Any, ...]:
    blocks = read.message.content or []
    text = "".join(block.text for block in blocks if block.type == "text") + (read.message.tool_plan or "")
    calls = [(call.function.name, call.function.arguments) for call in read.message.tool_calls or () if call.function]
    tokens = None if read.usage is None else read.usage.tokens
    return text, calls, None if tokens is None else (tokens.input_tokens, tokens.output_tokens)


@promise("law:3-legality", "law:9-usage-adds-up")
def test_recorded_answers_of_others_are_answers_of_cohere(recordings: Recordings) -> None:
    for id, completion, encoded in crossed_answers(recordings, TARGET):
        read = client_of(Wire(encoded.json(), encoded.status)).chat(model="m", messages=[])
        text, _, usage = content_of(completion)
        read_text, calls, counted = seen(read)
        # This API has no refusals: their words are text.
        assert read_text == text + (completion.refusal or ""), id
        assert [name for name, _ in calls] == [call.name for call in all_calls(completion)], id
        assert [json.loads(arguments or "{}") for _, arguments in calls] == [
            call.arguments for call in all_calls(completion)
        ], id
        image = completion.usage.image or 0 if completion.usage is not None else 0
        assert counted == (None if usage is None else (usage[0] - image, usage[1])), id


@promise("law:5-streams-tell-the-same-story")
@each("sample", [sample for sample in RESPONSES if sample.format != TARGET], ids=str)
def test_the_sdk_reads_our_streams(sample: Sample) -> None:
    completion = dragoman.decode_response(sample.body, sample.format)
    if len(completion.messages) != 1 or completion.finish is None or completion.finish.reason == "error":
        return  # a stream holds one answer
    encoder = dragoman.StreamEncoder(TARGET)
    data = encoder.encode(_events(completion)) + encoder.close()
    text = arguments = ""
    kinds = []
    for event in client_of(Wire(data, kind="text/event-stream")).chat_stream(model="m", messages=[]):
        kinds.append(event.type)
        said_now: Any = getattr(getattr(event, "delta", None), "message", None)
        if event.type == "content-delta":
            text += said_now.content.text or ""
        elif event.type == "tool-call-delta":
            arguments += said_now.tool_calls.function.arguments
    assert (kinds[0], kinds[-1]) == ("message-start", "message-end")
    assert text == completion.text + (completion.refusal or "")
    assert kinds.count("tool-call-start") == len(all_calls(completion))
    assert accumulate(dragoman.StreamDecoder(TARGET).feed(data)).text == text


def _events(completion: ir.Completion) -> list[ir.AnyEvent]:
    events: list[ir.AnyEvent] = [ir.StreamStart(completion.id, completion.model, completion.created)]
    for index, part in enumerate(completion.messages[0].parts):
        events += [ir.PartStart(index, part), ir.PartEnd(index)]
    if completion.usage is not None:
        events.append(ir.UsageUpdate(completion.usage))
    return [*events, ir.Finished(completion.finish or ir.Finish("stop"))]


@promise("law:1-identity")
@pytest.mark.parametrize("sample", [sample for sample in REQUESTS if sample.format == TARGET], ids=str)
def test_what_the_sdk_sends_comes_back(sample: Sample) -> None:
    wire = Wire(ANSWER)
    client_of(wire).chat(**{key: value for key, value in sample.body.items() if key != "stream"})
    assert_comes_back(wire.sent, wire.body, TARGET)


@pytest.mark.parametrize(
    ("kind", "status", "error"),
    [
        ("invalid_request", 400, cohere.BadRequestError),
        ("authentication", 401, cohere.UnauthorizedError),
        ("not_found", 404, cohere.NotFoundError),
        ("rate_limit", 429, cohere.TooManyRequestsError),
        ("server", 500, cohere.InternalServerError),
    ],
)
def test_the_sdk_raises_our_errors(kind: Any, status: int, error: type[Exception]) -> None:
    encoded = dragoman.encode_error(ir.Failure(kind, "what went wrong", status), TARGET)
    with pytest.raises(error, match="what went wrong"):
        client_of(Wire(encoded.json(), encoded.status)).chat(model="m", messages=[], request_options={"max_retries": 0})
