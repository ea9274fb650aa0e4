"""The anthropic SDK as judge: recorded traffic of other vendors in its types, and what it sends, read by us."""

from typing import Any, Literal

import anthropic
import pytest
from anthropic.types import Message
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from pydantic import BaseModel

import dragoman
from dragoman import ir
from tests.judges.crossing import (
    LossPairs,
    Recordings,
    assert_comes_back,
    content_of,
    crossed_answers,
    crossed_requests,
    losses_elsewhere,
    turns_of,
)
from tests.judges.typed import complaints
from tests.judges.vendors import Wire, anthropic_client, forecast, unknown_fields
from tests.support.bodies import PDF, PIXEL, WEATHER
from tests.support.endings import failure_expected, is_error, is_success, succeeded
from tests.support.promises import promise

TARGET = "anthropic-messages"

# ── what we encode ────────────────────────────────────────────────────────────────────────────────────────────

# Taken under the older version of the API, which our header then names; the SDK leaves them to `extra_body`.
OLD_SETTINGS = {"temperature", "top_p", "top_k"}


@promise("law:3-legality")
def test_recorded_requests_of_others_are_requests_of_anthropic(recordings: Recordings) -> None:
    found = {id: wrong for id, encoded in crossed_requests(recordings, TARGET) if (wrong := refused(encoded))}
    assert found == {}


def refused(encoded: dragoman.Encoded) -> list[str]:
    body = encoded.body
    if encoded.headers["anthropic-version"] == "2023-06-01":
        body = {key: value for key, value in body.items() if key not in OLD_SETTINGS}
    return complaints(body, MessageCreateParamsStreaming if body.get("stream") else MessageCreateParamsNonStreaming)


# Its service counts more cached tokens than it counts read ones, and here read ones are a sum.
ODD_COUNTS = {"726c41b91ac8"}


@promise("law:3-legality", "law:9-usage-adds-up")
def test_recorded_answers_of_others_are_answers_of_anthropic(recordings: Recordings) -> None:
    for id, completion, encoded in crossed_answers(recordings, TARGET):
        if is_error(encoded):
            wire = Wire(encoded.json(), encoded.status)
            with pytest.raises(anthropic.InternalServerError) as raised:
                anthropic_client(wire).messages.create(model="m", max_tokens=1, messages=[])
            body: Any = raised.value.body
            expected = failure_expected(completion)
            assert expected is not None, id
            assert body["error"]["message"] == expected.message, id
            continue
        assert succeeded(completion) or not is_success(encoded.body, TARGET), id
        read = Message.model_validate_json(encoded.json())
        assert list(unknown_fields(read)) == [], id
        text, calls, usage = content_of(completion)
        # A refusal's words are text here, and the stop reason says what they are.
        assert seen(read)[:2] == (text + (completion.refusal or ""), calls), id
        assert id in ODD_COUNTS or seen(read)[2] == (usage or (0, 0)), id
        thoughts = "".join(block.thinking for block in read.content if block.type == "thinking")
        assert thoughts == completion.reasoning, id


def seen(read: Message) -> tuple[Any, ...]:
    text = "".join(block.text for block in read.content if block.type == "text")
    calls = [(block.name, block.input) for block in read.content if block.type == "tool_use"]
    usage = read.usage
    cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    return text, calls, (usage.input_tokens + cached, usage.output_tokens)


# ── what the SDK sends ────────────────────────────────────────────────────────────────────────────────────────


class Forecast(BaseModel):
    city: str
    degrees: float
    sky: Literal["clear", "rain"]


CALLS = ir.Completion(
    (
        ir.Message(
            "assistant",
            (
                ir.Reasoning("They ask for two.", ir.Signature("anthropic", "c2lnbmVk")),
                ir.Text("Let me see."),
                ir.ToolCall("toolu_1", "get_weather", {"city": "Zürich"}),
                ir.ToolCall("toolu_2", "get_weather", {"city": "Uri", "days": 2}),
            ),
        ),
    ),
    ir.Finish("tool_calls"),
    ir.Usage(10, 5),
    "answer_1",
    "claude-sonnet-5",
    1,
)
FORECAST = forecast("claude-sonnet-5")
_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
OPENING: dict[str, Any] = {
    "role": "user",
    "content": [
        {"type": "text", "text": "Is it like here?", "cache_control": {"type": "ephemeral"}},
        _IMAGE,
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
            "title": "a.pdf",
        },
    ],
}
SETTINGS: dict[str, Any] = {
    "model": "claude-sonnet-5",
    "max_tokens": 4000,
    "system": "Be brief.",
    "thinking": {"type": "adaptive"},
    "tools": [{"name": "get_weather", "description": "Weather", "input_schema": WEATHER}],
}


def conversation() -> Wire:
    """Two turns: the SDK reads our calls, answers them, and parses our structured answer. The last request is kept."""
    wire = Wire(dragoman.encode_response(CALLS, TARGET).json())
    client = anthropic_client(wire)
    first_answer = client.messages.create(messages=[OPENING], **SETTINGS)  # type: ignore[list-item]
    ids = [block.id for block in first_answer.content if block.type == "tool_use"]
    results = [
        {"type": "tool_result", "tool_use_id": ids[0], "content": [{"type": "text", "text": "22"}, _IMAGE]},
        {"type": "tool_result", "tool_use_id": ids[1], "content": "no such city", "is_error": True},
    ]
    turns: list[Any] = [
        OPENING,
        {"role": "assistant", "content": first_answer.content},
        {"role": "user", "content": results},
    ]
    wire.answer = dragoman.encode_response(FORECAST, TARGET).json()
    answered = client.messages.parse(messages=turns, output_format=Forecast, **SETTINGS)
    assert answered.parsed_output == Forecast(city="Zürich", degrees=22.5, sky="rain")
    return wire


@promise("law:1-identity", "report:36")
def test_what_the_sdk_sends_comes_back_as_it_was() -> None:
    wire = conversation()
    assert_comes_back(wire.sent, wire.body, TARGET)
    detected = dragoman.detect(wire.sent)
    assert detected is not None
    assert (detected.format, detected.kind) == (TARGET, "request")


_EVERYWHERE: LossPairs = {
    ("dropped", "$.messages[0].content[0].cache_control"),
    ("dropped", "$.messages[1].content[0]"),  # the signed thinking
    ("degraded", "$.messages[2].content[0]"),  # the image of a result follows it
}
_GOOGLE: LossPairs = {
    ("dropped", "$.messages[0].content[2].title"),
    ("dropped", "$.output_config.format"),  # an ordinary Gemini 2 has either functions or a schema
}
LOSSES: dict[str, LossPairs] = {
    # The title of the schema is its name.
    "openai-chat": _EVERYWHERE | {("dropped", "$.thinking")},
    "openai-responses": (_EVERYWHERE - {("degraded", "$.messages[2].content[0]")}) | {("degraded", "$.thinking.type")},
    "bedrock-converse": {
        ("degraded", "$.messages[0].content[2].title"),  # names of documents have an alphabet there
        ("degraded", "$.thinking"),  # as an effort
    },
    "gemini": _EVERYWHERE | _GOOGLE,
    "vertex": _EVERYWHERE | _GOOGLE,
    "ollama-chat": (_EVERYWHERE - {("degraded", "$.messages[2].content[0]")})
    | {
        ("degraded", "$.messages[0].content[1]"),  # an image among texts
        ("dropped", "$.messages[0].content[2]"),  # a PDF
        ("degraded", "$.thinking.type"),
        ("degraded", "$.tools[0].input_schema"),  # words that the server does not read
    },
    "cohere-chat": _EVERYWHERE
    | {
        ("dropped", "$.messages[0].content[2]"),  # a PDF
        ("dropped", "$.output_config.format"),  # it takes either functions or a schema
        ("dropped", "$.thinking"),  # the model does not reason
    },
    "gemini-interactions": (_EVERYWHERE - {("degraded", "$.messages[2].content[0]")})
    | {("dropped", "$.messages[0].content[2].title")},
}


@promise("law:2-nothing-vanishes")
def test_what_the_sdk_sends_crosses_except_for_reported_losses() -> None:
    assert losses_elsewhere(conversation().sent, TARGET) == LOSSES


@pytest.mark.parametrize("target", ["openai-chat", "gemini", "vertex"])
def test_what_the_sdk_sends_is_understood_elsewhere(target: str) -> None:
    wire = conversation()
    there = dragoman.decode_request(dragoman.translate_request(wire.sent, source=TARGET, target=target).json(), target)
    assert turns_of(there) == turns_of(dragoman.decode_request(wire.sent, TARGET))
