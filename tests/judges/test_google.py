"""The google-genai SDK as judge: recorded traffic of other vendors in its types, and what it sends, read by us."""

from base64 import b64decode
from typing import Any, Literal

import httpx2
import pytest
from google import genai
from google.genai import types
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
from tests.judges.vendors import Wire, forecast, genai_client, google_answer
from tests.support.bodies import PDF, PIXEL, WEATHER
from tests.support.promises import promise

BACKENDS = ("gemini", "vertex")

# ── what we encode ────────────────────────────────────────────────────────────────────────────────────────────


@promise("law:3-legality")
@pytest.mark.parametrize("target", BACKENDS)
def test_recorded_requests_of_others_are_requests_of_google(target: str, recordings: Recordings) -> None:
    for _id, encoded in crossed_requests(recordings, target):
        body = encoded.body
        for content in body["contents"]:
            types.Content.model_validate(content)
        # The SDK spells the rest as one flat configuration. Its types refuse keys they do not know.
        rest = {key: value for key, value in body.items() if key not in {"contents", "generationConfig"}}
        types.GenerateContentConfig.model_validate(rest | body.get("generationConfig", {}))


@promise("law:3-legality", "law:9-usage-adds-up")
@pytest.mark.parametrize("target", BACKENDS)
def test_recorded_answers_of_others_are_answers_of_google(target: str, recordings: Recordings) -> None:
    for id, completion, encoded in crossed_answers(recordings, target):
        read = google_answer(encoded.json())
        text, calls, usage = content_of(completion)
        # This API has no refusals: their words are text.
        assert seen(read) == (text + (completion.refusal or ""), calls, usage), id
        thoughts = "".join(part.text or "" for part in parts_of(read) if part.thought)
        assert thoughts == completion.reasoning, id


def parts_of(read: types.GenerateContentResponse) -> list[types.Part]:
    assert read.candidates
    content = read.candidates[0].content
    return [] if content is None else content.parts or []


def seen(read: types.GenerateContentResponse) -> tuple[Any, ...]:
    text = "".join(part.text or "" for part in parts_of(read) if not part.thought)
    calls = [(call.name, call.args) for call in read.function_calls or ()]
    counts = read.usage_metadata
    if counts is None:
        return text, calls, None
    written = (counts.candidates_token_count or 0) + (counts.thoughts_token_count or 0)
    return text, calls, (counts.prompt_token_count or 0, written)


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
                ir.Text("Let me see."),
                ir.ToolCall("abc1", "get_weather", {"city": "Zürich"}, signature=ir.Signature("google", "+/+/c2ln")),
                ir.ToolCall("abc2", "get_weather", {"city": "Uri", "days": 2}),
            ),
        ),
    ),
    ir.Finish("tool_calls"),
    ir.Usage(10, 5),
    "answer_1",
    "gemini-3-pro-preview",
    1,
)
FORECAST = forecast("gemini-3-pro-preview")
DECLARED = types.FunctionDeclaration(name="get_weather", description="Weather", parameters_json_schema=WEATHER)
OPENING = [
    types.Part(text="Is it like here?"),
    types.Part.from_bytes(data=b64decode(PIXEL), mime_type="image/png"),
    types.Part.from_bytes(data=b64decode(PDF), mime_type="application/pdf"),
]


def client_of(backend: str, wire: Wire) -> genai.Client:
    if backend == "gemini":
        return genai_client(wire)
    http = httpx2.Client(transport=httpx2.MockTransport(wire))
    options = types.HttpOptions(base_url="http://test", httpx_client=http)
    return genai.Client(vertexai=True, api_key="k", http_options=options)


def conversation(backend: str) -> Wire:
    """A chat of two turns: the SDK keeps our calls in its history, answers them, and parses our structured answer."""
    wire = Wire(dragoman.encode_response(CALLS, backend).json())
    config = types.GenerateContentConfig(
        system_instruction="Be brief.",
        tools=[types.Tool(function_declarations=[DECLARED])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        response_mime_type="application/json",
        response_schema=Forecast,
        max_output_tokens=500,
        thinking_config=types.ThinkingConfig(include_thoughts=True),
        temperature=0.2,
        seed=7,
    )
    chat = client_of(backend, wire).chats.create(model="gemini-3-pro-preview", config=config)
    calls = chat.send_message(OPENING).function_calls or []
    assert [call.args for call in calls] == [{"city": "Zürich"}, {"city": "Uri", "days": 2}]
    answers: list[dict[str, Any]] = [{"output": "22"}, {"error": "no such city"}]
    results = [
        types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response=answer))
        for call, answer in zip(calls, answers, strict=True)
    ]
    wire.answer = dragoman.encode_response(FORECAST, backend).json()
    assert chat.send_message(results).parsed == Forecast(city="Zürich", degrees=22.5, sky="rain")
    return wire


@promise("law:1-identity", "report:29")
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_the_sdk_sends_comes_back_as_it_was(backend: str) -> None:
    wire = conversation(backend)
    assert_comes_back(wire.sent, wire.body, backend)


_SIGNATURE = ("dropped", "$.contents[1].parts[1].thoughtSignature")
LOSSES: dict[str, LossPairs] = {
    "openai-chat": {
        _SIGNATURE,
        ("dropped", "$.generationConfig.thinkingConfig"),  # the model does not reason
    },
    "openai-responses": {
        _SIGNATURE,
        ("dropped", "$.generationConfig.seed"),
        ("dropped", "$.generationConfig.temperature"),
    },
    "bedrock-converse": {
        _SIGNATURE,
        ("dropped", "$.generationConfig.seed"),
        ("dropped", "$.generationConfig.thinkingConfig"),  # the calls that are answered came without thinking
        ("degraded", "$.generationConfig.responseSchema"),  # every object of it is closed
        ("invented", "$.contents[0].parts[2].title"),  # a document has a name there
    },
    "anthropic-messages": {
        _SIGNATURE,
        ("dropped", "$.generationConfig.seed"),
        ("dropped", "$.generationConfig.thinkingConfig"),  # the calls that are answered came without thinking
        ("degraded", "$.generationConfig.responseSchema"),  # every object of it is closed
    },
    "gemini": set(),
    "vertex": set(),
    "ollama-chat": {
        _SIGNATURE,
        ("degraded", "$.contents[0].parts[1]"),  # an image among texts
        ("dropped", "$.contents[0].parts[2]"),  # a PDF
        # Words that the server does not read; the SDK spells this key its own way.
        ("degraded", "$.tools[0].functionDeclarations[0].parameters_json_schema"),
    },
    "cohere-chat": {
        _SIGNATURE,
        ("dropped", "$.contents[0].parts[2]"),  # a PDF
        ("dropped", "$.generationConfig.responseSchema"),  # it takes either functions or a schema
        ("dropped", "$.generationConfig.thinkingConfig"),  # the model does not reason
    },
    "gemini-interactions": set(),
}


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_the_sdk_sends_crosses_except_for_reported_losses(backend: str) -> None:
    found = losses_elsewhere(conversation(backend).sent, backend)
    assert found == {target: LOSSES[target] for target in found}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("target", ["openai-chat", "anthropic-messages", "gemini", "vertex"])
def test_what_the_sdk_sends_is_understood_elsewhere(backend: str, target: str) -> None:
    wire = conversation(backend)
    sent = dragoman.translate_request(wire.sent, source=backend, target=target).json()
    assert turns_of(dragoman.decode_request(sent, target)) == turns_of(dragoman.decode_request(wire.sent, backend))


@pytest.mark.parametrize("target", ["openai-chat", "anthropic-messages"])
def test_bytes_that_the_sdk_spells_its_own_way_are_read_by_others(target: str) -> None:
    """It sends the URL-safe alphabet of base64; the other APIs read only the standard one."""
    wire = conversation("gemini")
    assert "+" in PIXEL
    assert PIXEL.replace("+", "-") in wire.sent.decode()
    assert PIXEL in dragoman.translate_request(wire.sent, source="gemini", target=target).json().decode()


@promise("law:1-identity", "law:3-legality")
@pytest.mark.parametrize(
    ("spelled", "standard"),
    [
        ("-_-_", "+/+/"),
        ("-_-_YQ==", "+/+/YQ=="),
        ("-_-_YQ", "+/+/YQ=="),
        ("YWI", "YWI="),
        ("+/+/", "+/+/"),
        ("-/-/", "-/-/"),  # no alphabet has both: not ours to repair
        ("YWJjZ", "YWJjZ"),  # no bytes are that long
    ],
)
def test_bytes_have_one_spelling_abroad_and_their_own_at_home(spelled: str, standard: str) -> None:
    body = {"contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": spelled}}]}]}
    request = dragoman.decode_request(body, "gemini")
    assert [part.data for part in request.messages[0].parts if isinstance(part, ir.Image)] == [standard]
    assert dragoman.encode_request(request, "gemini").body == body
    sent = dragoman.encode_request(request, "openai-chat").body
    assert sent["messages"][0]["content"][0]["image_url"]["url"] == f"data:image/png;base64,{standard}"
