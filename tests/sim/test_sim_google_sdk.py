"""The newest google-genai SDK as a client of both backends: tool loops, signatures, and its own exception classes."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials
from google.genai import Client, errors, types

from dragoman.sim.server import Simulator
from tests.sim.wire import SCHEMA

QUESTION = "What is the weather in Paris and in Oslo?"
ANSWER = "get_weather (Paris) says: sky clear. get_weather (Oslo) failed: no station there."
WEATHER: dict[str, Any] = {"Paris": {"output": {"sky": "clear"}}, "Oslo": {"error": "no station there"}}
MODELS = ["gemini-2.5-flash", "gemini-3-flash-preview", "gemini-3.6-flash"]


class Token(AnonymousCredentials):
    """The SDK wants credentials of Google's own kind; the simulator any bearer token."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.token = "any"


@pytest.fixture(params=["gemini", "vertex"])
def client(request: pytest.FixtureRequest, dragoman_sim: Simulator) -> Iterator[Client]:
    options = types.HttpOptions(base_url=dragoman_sim.url)
    if request.param == "vertex":
        sdk = Client(vertexai=True, project="p", location="us-central1", credentials=Token(), http_options=options)
    else:
        sdk = Client(api_key="any", http_options=options)
    with sdk:
        yield sdk


def config(**more: Any) -> types.GenerateContentConfig:
    declaration = types.FunctionDeclaration(name="get_weather", parameters_json_schema=SCHEMA)
    by_hand = types.AutomaticFunctionCallingConfig(disable=True)
    tools: Any = [types.Tool(function_declarations=[declaration])]
    return types.GenerateContentConfig(tools=tools, automatic_function_calling=by_hand, **more)


def user_turn(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def results(content: types.Content) -> types.Content:
    calls = [part.function_call for part in content.parts or [] if part.function_call]
    parts = [
        types.Part(
            function_response=types.FunctionResponse(
                id=call.id, name=call.name, response=WEATHER[(call.args or {})["city"]]
            )
        )
        for call in calls
    ]
    return types.Content(role="user", parts=parts)


def answer(client: Client, model: str, contents: Any, *, streamed: bool, **more: Any) -> types.Content:
    if not streamed:
        whole = client.models.generate_content(model=model, contents=contents, config=config(**more))
        return _content(whole)
    parts: list[types.Part] = []
    for chunk in client.models.generate_content_stream(model=model, contents=contents, config=config(**more)):
        parts.extend(_content(chunk).parts or [])
    return types.Content(role="model", parts=parts)


def _content(response: types.GenerateContentResponse) -> types.Content:
    assert response.candidates is not None
    assert response.candidates[0].content is not None
    return response.candidates[0].content


def text_of(content: types.Content) -> str:
    return "".join(part.text or "" for part in content.parts or [] if not part.thought)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_loop(client: Client, model: str, *, streamed: bool) -> None:
    first = answer(client, model, [user_turn(QUESTION)], streamed=streamed)
    second = answer(client, model, [user_turn(QUESTION), first, results(first)], streamed=streamed)
    assert text_of(second) == ANSWER
    third = answer(
        client, model, [user_turn(QUESTION), first, results(first), second, user_turn("hi")], streamed=streamed
    )
    assert text_of(third)


def test_signatures_are_minted_for_the_first_call_and_checked(client: Client) -> None:
    first = answer(client, "gemini-3.6-flash", [user_turn(QUESTION)], streamed=False)
    parts = first.parts or []
    assert [bool(part.thought_signature) for part in parts] == [True, False]
    for broken, words in (
        ([parts[0].model_copy(update={"thought_signature": None}), parts[1]], "missing a `thought_signature`"),
        ([parts[0].model_copy(update={"thought_signature": b"made up"}), parts[1]], "Corrupted thought signature"),
    ):
        model_turn = types.Content(role="model", parts=broken)
        with pytest.raises(errors.ClientError, match=words):
            answer(client, "gemini-3.6-flash", [user_turn(QUESTION), model_turn, results(first)], streamed=False)
    swapped = [
        parts[0].model_copy(update={"function_call": parts[1].function_call}),
        types.Part(function_call=parts[0].function_call),
    ]
    moved = types.Content(role="model", parts=swapped)
    with pytest.raises(errors.ClientError, match="Corrupted thought signature"):
        answer(client, "gemini-3.6-flash", [user_turn(QUESTION), moved, results(moved)], streamed=False)


def test_the_dummy_signature_passes(client: Client) -> None:
    call = types.FunctionCall(name="get_weather", args={"city": "Paris"})
    part = types.Part(function_call=call, thought_signature=b"skip_thought_signature_validator")
    injected = types.Content(role="model", parts=[part])
    answered = answer(client, "gemini-3.6-flash", [user_turn(QUESTION), injected, results(injected)], streamed=False)
    assert "Paris" in text_of(answered)


def test_thoughts_are_shown_on_request(client: Client) -> None:
    thinking = types.ThinkingConfig(include_thoughts=True)
    shown = answer(client, "gemini-3.6-flash", [user_turn("hi")], streamed=True, thinking_config=thinking)
    assert any(part.thought for part in shown.parts or [])
    # In a stream without calls, the signature comes last, on a part of its own.
    assert (shown.parts or [])[-1].thought_signature
    assert (shown.parts or [])[-1].text == ""


def test_usage_adds_up(client: Client) -> None:
    response = client.models.generate_content(model="gemini-3.6-flash", contents=QUESTION, config=config())
    usage = response.usage_metadata
    assert usage is not None
    parts = (usage.prompt_token_count, usage.candidates_token_count, usage.thoughts_token_count)
    assert usage.total_token_count == sum(part or 0 for part in parts)


def test_choice_limits_and_structure(client: Client) -> None:
    calling = types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.ANY)
    forced = answer(
        client,
        "gemini-2.5-flash",
        [user_turn("Tell me a joke")],
        streamed=False,
        tool_config=types.ToolConfig(function_calling_config=calling),
    )
    assert (forced.parts or [])[0].function_call
    plain = types.GenerateContentConfig(max_output_tokens=60, stop_sequences=[" 5"])
    stopped = client.models.generate_content(model="gemini-2.0-flash", contents="Count to 50", config=plain)
    assert stopped.text == "1 2 3 4"
    short = types.GenerateContentConfig(max_output_tokens=5)
    cut = client.models.generate_content(model="gemini-2.0-flash", contents="Count to 50", config=short)
    assert cut.candidates is not None
    assert cut.candidates[0].finish_reason == types.FinishReason.MAX_TOKENS
    form = types.GenerateContentConfig(response_mime_type="application/json", response_json_schema=SCHEMA)
    structured = client.models.generate_content(model="gemini-3.6-flash", contents="I live in Bergen", config=form)
    assert json.loads(structured.text or "") == {"city": "Bergen"}


def test_counting(client: Client) -> None:
    assert client.models.count_tokens(model="gemini-3.6-flash", contents="hello there").total_tokens


@pytest.mark.parametrize(
    ("fault", "error", "status"),
    [
        ("status=400", errors.ClientError, "INVALID_ARGUMENT"),
        ("status=403", errors.ClientError, "PERMISSION_DENIED"),
        ("status=429; retry_after=3.5", errors.ClientError, "RESOURCE_EXHAUSTED"),
        ("error=server", errors.ServerError, "INTERNAL"),
        ("error=overloaded", errors.ServerError, "UNAVAILABLE"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_errors_have_their_class(
    client: Client, fault: str, error: type[errors.APIError], status: str, *, streamed: bool
) -> None:
    options = types.HttpOptions(headers={"x-sim-fault": fault})
    with pytest.raises(error) as raised:
        answer(client, "gemini-3.6-flash", [user_turn("hi")], streamed=streamed, http_options=options)
    assert raised.value.status == status


def test_an_unknown_model(client: Client) -> None:
    with pytest.raises(errors.ClientError, match="is not found for API version"):
        client.models.generate_content(model="gemini-nine", contents="hi")
