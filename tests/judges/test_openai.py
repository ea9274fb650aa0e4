"""The openai SDK as judge: recorded traffic of other vendors in its types, and what it sends, read by us."""

import json
from typing import Any, Literal

import openai
import pytest
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionMessage,
    ChatCompletionMessageFunctionToolCall,
)
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)
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
from tests.judges.vendors import Wire, forecast, openai_client, unknown_fields
from tests.support.bodies import PDF, PIXEL
from tests.support.endings import failure_expected, is_error, is_success, succeeded
from tests.support.promises import promise

TARGET = "openai-chat"

# ── what we encode ────────────────────────────────────────────────────────────────────────────────────────────


@promise("law:3-legality")
def test_recorded_requests_of_others_are_requests_of_openai(recordings: Recordings) -> None:
    found = {id: wrong for id, encoded in crossed_requests(recordings, TARGET) if (wrong := refused(encoded.body))}
    assert found == {}


def refused(body: dict[str, Any]) -> list[str]:
    kind = CompletionCreateParamsStreaming if body.get("stream") else CompletionCreateParamsNonStreaming
    # The types do not name it, but the service takes its own annotations back (103 recordings, e.g. 3ffa2202f0ba).
    return [found for found in complaints(body, kind) if not found.endswith(".annotations: unknown")]


@promise("law:3-legality", "law:9-usage-adds-up", "report:44")
def test_recorded_answers_of_others_are_answers_of_openai(recordings: Recordings) -> None:
    for id, completion, encoded in crossed_answers(recordings, TARGET):
        if is_error(encoded):
            wire = Wire(encoded.json(), encoded.status)
            with pytest.raises(openai.InternalServerError) as raised:
                openai_client(wire).chat.completions.create(model="m", messages=[])
            body: Any = raised.value.body
            expected = failure_expected(completion)
            assert expected is not None, id
            assert body["message"] == expected.message, id
            continue
        assert succeeded(completion) or not is_success(encoded.body, TARGET), id
        read = ChatCompletion.model_validate_json(encoded.json())
        # Clients echo these slots although the types do not name them.
        slots = ("reasoning_content", "reasoning_details", "extra_content", "images")
        assert [name for name in unknown_fields(read) if not name.endswith(slots)] == [], id
        assert seen(read) == content_of(completion), id
        assert reasoning_of(read.choices[0].message) == completion.reasoning, id


def seen(read: ChatCompletion) -> tuple[Any, ...]:
    message, usage = read.choices[0].message, read.usage
    calls = []
    for call in message.tool_calls or ():
        assert isinstance(call, ChatCompletionMessageFunctionToolCall)
        calls.append((call.function.name, json.loads(call.function.arguments)))
    return message.content or "", calls, None if usage is None else (usage.prompt_tokens, usage.completion_tokens)


def reasoning_of(message: ChatCompletionMessage) -> str:
    return (message.model_extra or {}).get("reasoning_content") or ""


# ── what the SDK sends ────────────────────────────────────────────────────────────────────────────────────────


class Forecast(BaseModel):
    city: str
    degrees: float
    sky: Literal["clear", "rain"]


class GetWeather(BaseModel):
    """Weather of one city."""

    city: str
    days: int | None = None


CALLS = ir.Completion(
    (
        ir.Message(
            "assistant",
            (
                ir.Text("Let me see."),
                ir.ToolCall("call_1", "get_weather", {"city": "Zürich", "days": None}),
                ir.ToolCall("call_2", "get_weather", {"city": "Uri", "days": 2}),
            ),
        ),
    ),
    ir.Finish("tool_calls"),
    ir.Usage(10, 5),
    "answer_1",
    "gpt-4.1",
    1,
)
FORECAST = forecast("gpt-4.1")
OPENING: list[Any] = [
    {"role": "developer", "content": "Be brief."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "Is it like here?"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "low"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}},
        ],
    },
]


def conversation() -> Wire:
    """Two turns: the SDK reads our calls, answers them, and parses our structured answer. The last request is kept."""
    wire = Wire(dragoman.encode_response(CALLS, TARGET).json())
    client = openai_client(wire)
    tools = [openai.pydantic_function_tool(GetWeather, name="get_weather")]
    first_answer = client.chat.completions.parse(model="gpt-4.1", messages=OPENING, tools=tools, tool_choice="required")
    message = first_answer.choices[0].message
    parsed = [call.function.parsed_arguments for call in message.tool_calls or ()]
    assert parsed == [GetWeather(city="Zürich"), GetWeather(city="Uri", days=2)]
    ids = [call.id for call in message.tool_calls or ()]
    results = [{"role": "tool", "tool_call_id": id, "content": text} for id, text in zip(ids, ("22", ""), strict=True)]
    messages: list[Any] = [*OPENING, message, *results]
    wire.answer = dragoman.encode_response(FORECAST, TARGET).json()
    answered = client.chat.completions.parse(
        model="gpt-4.1",
        messages=messages,
        tools=tools,
        response_format=Forecast,
        parallel_tool_calls=False,
        max_completion_tokens=500,
        temperature=0.2,
        seed=7,
    )
    assert answered.choices[0].message.parsed == Forecast(city="Zürich", degrees=22.5, sky="rain")
    return wire


@promise("law:1-identity")
def test_what_the_sdk_sends_comes_back_as_it_was() -> None:
    wire = conversation()
    assert_comes_back(wire.sent, wire.body, TARGET)
    detected = dragoman.detect(wire.sent)
    assert detected is not None
    assert (detected.format, detected.kind) == (TARGET, "request")


# The SDK echoes the arguments it parsed beside the text it parsed them from.
_EVERYWHERE: LossPairs = {
    ("dropped", "$.messages[1].content[1].image_url.detail"),
    ("dropped", "$.messages[2].tool_calls[0].function.parsed_arguments"),
    ("dropped", "$.messages[2].tool_calls[1].function.parsed_arguments"),
}
_GOOGLE: LossPairs = {
    ("dropped", "$.messages[1].content[2].file.filename"),
    ("dropped", "$.parallel_tool_calls"),
    ("dropped", "$.response_format"),  # an ordinary Gemini 2 has either functions or a schema
}
LOSSES: dict[str, LossPairs] = {
    "anthropic-messages": _EVERYWHERE | {("dropped", "$.response_format.json_schema.name"), ("dropped", "$.seed")},
    "openai-responses": {
        ("dropped", "$.messages[2].tool_calls[0].function.parsed_arguments"),
        ("dropped", "$.messages[2].tool_calls[1].function.parsed_arguments"),
        ("dropped", "$.seed"),
        ("dropped", "$.temperature"),
    },
    "bedrock-converse": {
        ("degraded", "$.messages[1].content[2].file.filename"),  # names of documents have an alphabet there
        ("dropped", "$.messages[1].content[1].image_url.detail"),
        ("dropped", "$.messages[2].tool_calls[0].function.parsed_arguments"),
        ("dropped", "$.messages[2].tool_calls[1].function.parsed_arguments"),
        ("dropped", "$.parallel_tool_calls"),
        ("dropped", "$.seed"),
    },
    "gemini": _EVERYWHERE | _GOOGLE,
    "vertex": _EVERYWHERE | _GOOGLE,
    "ollama-chat": _EVERYWHERE
    | {
        ("degraded", "$.messages[1].content[1]"),  # an image among texts
        ("dropped", "$.messages[1].content[2]"),  # a PDF
        ("degraded", "$.tools[0].function.parameters"),  # words that the server does not read
        ("dropped", "$.tools[0].function.strict"),
        ("dropped", "$.parallel_tool_calls"),
        ("dropped", "$.response_format.json_schema.name"),
    },
    "cohere-chat": {
        ("dropped", "$.messages[1].content[2]"),  # a PDF
        ("dropped", "$.messages[2].tool_calls[0].function.parsed_arguments"),
        ("dropped", "$.messages[2].tool_calls[1].function.parsed_arguments"),
        ("dropped", "$.parallel_tool_calls"),
        ("dropped", "$.response_format"),  # it takes either functions or a schema
    },
    "gemini-interactions": {
        ("dropped", "$.messages[1].content[2].file.filename"),
        ("dropped", "$.messages[2].tool_calls[0].function.parsed_arguments"),
        ("dropped", "$.messages[2].tool_calls[1].function.parsed_arguments"),
        ("dropped", "$.parallel_tool_calls"),
        ("dropped", "$.response_format.json_schema.name"),
        ("dropped", "$.temperature"),  # deprecated there
    },
}


@promise("law:2-nothing-vanishes")
def test_what_the_sdk_sends_crosses_except_for_reported_losses() -> None:
    assert losses_elsewhere(conversation().sent, TARGET) == LOSSES


@pytest.mark.parametrize("target", ["anthropic-messages", "gemini", "vertex"])
def test_what_the_sdk_sends_is_understood_elsewhere(target: str) -> None:
    wire = conversation()
    there = dragoman.decode_request(dragoman.translate_request(wire.sent, source=TARGET, target=target).json(), target)
    here = dragoman.decode_request(wire.sent, TARGET)
    assert turns_of(there) == turns_of(here)
