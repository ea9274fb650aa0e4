"""A body in every format."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.codecs.registry import formats
from dragoman.web.all_formats import LONGEST, PlaygroundInput, UnreadableInput, convert_to_all
from dragoman.web.guard import HEADER
from tests.support.promises import promise
from tests.support.waiting import PATIENCE
from tests.web.upstream import GEMINI, MESSAGES, page_and_upstream

STREAM = (
    'data: {"id":"x","object":"chat.completion.chunk","model":"m",'
    '"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"}}]}\n\n'
    'data: {"id":"x","object":"chat.completion.chunk","model":"m",'
    '"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    "data: [DONE]\n\n"
)
ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-5",
    "content": [{"type": "text", "text": "Hello"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 2},
}
HISTORY = [{"role": "user", "content": [{"type": "text", "content": "What is the weather?"}]}]


@promise("gateway:playground")
@pytest.mark.parametrize(
    ("body", "format", "kind", "groups"),
    [
        (MESSAGES, "anthropic-messages", "request", {"wire", "record", "compatible"}),
        (GEMINI, "gemini", "request", {"wire", "record", "compatible"}),
        (ANSWER, "anthropic-messages", "response", {"wire", "record", "compatible"}),
        (HISTORY, "multi-llm-chat", "request", {"wire", "record", "compatible"}),
        ({"type": "error", "error": {"type": "api_error", "message": "x"}}, "anthropic-messages", "error", {"wire"}),
        (STREAM, "openai-chat", "stream", {"wire"}),
    ],
)
def test_everything_is_recognised_and_shown_in_every_format(
    body: object, format: str, kind: str, groups: set[str]
) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    understood = convert_to_all(PlaygroundInput(text))
    assert (understood.format, understood.kind, understood.is_detected) == (format, kind, True)
    shown = {one.format for one in understood.crossed if one.problem is None and one.text}
    assert shown >= set(formats("wire"))
    assert {one.group for one in understood.crossed} == groups
    assert format in understood.description.head
    assert json.loads(understood.meant.text)
    own = next(one for one in understood.crossed if one.format == format)
    assert own.losses == []


@promise("gateway:playground")
def test_losses_lead_to_places_in_the_body() -> None:
    understood = convert_to_all(PlaygroundInput(json.dumps(MESSAGES)))
    chat = next(one for one in understood.crossed if one.format == "openai-chat")
    assert [(loss.path, loss.severity) for loss in chat.losses] == [("$.top_k", "dropped")]


@promise("gateway:playground")
@pytest.mark.parametrize(
    ("text", "format", "kind", "type", "path", "at"),
    [
        ('{"a": ', "auto", "auto", "DecodeError", "$", ""),
        ('{"model": "m", "messages": [{"role": "user"}]}', "auto", "auto", "DecodeError", "$.messages[0]", '{"role"'),
        ('{"a": 1}', "auto", "auto", "Undetected", "", None),
        ('{"a": 1}', "gemini", "request", "DecodeError", "$", '{"a"'),
        ("data: {}\n\n", "auto", "auto", "Undetected", "", None),
        ("data: {}\n\n", "universal", "stream", "UnsupportedFormat", "", None),
        ("   ", "auto", "auto", "Empty", "", None),
        ("{}", "nothing", "request", "UnknownFormat", "", None),
        ("x" * (LONGEST + 1), "auto", "auto", "LimitExceeded", "", None),
    ],
)
def test_errors_name_their_type_and_position(
    text: str, format: str, kind: Any, type: str, path: str, at: str | None
) -> None:
    with pytest.raises(UnreadableInput) as raised:
        convert_to_all(PlaygroundInput(text, format, kind))
    assert (raised.value.problem.type, raised.value.problem.path) == (type, path)
    if at is not None:
        assert raised.value.place is not None
        assert text[raised.value.place :].startswith(at)


@given(st.text(max_size=40) | st.from_regex(r'[\[{"data: 01}\]\n]{0,40}', fullmatch=True))
def test_whatever_is_pasted_meets_an_answer_or_a_typed_refusal(text: str) -> None:
    unclear = refused(text)
    assert unclear is None or unclear.problem.message
    assert unclear is None or unclear.place is None or 0 <= unclear.place <= len(text)


def refused(text: str) -> UnreadableInput | None:
    try:
        convert_to_all(PlaygroundInput(text))
    except UnreadableInput as unclear:
        return unclear
    return None


@promise("gateway:playground")
def test_the_page_converts_without_calling_a_provider() -> None:
    async def run() -> None:
        async with (
            asyncio.timeout(PATIENCE),
            page_and_upstream() as (running, upstream),
            aiohttp.ClientSession() as client,
        ):
            url = f"{running.url}/_/api/playground"
            async with client.get(f"{url}/formats") as answer:
                assert "gemini" in (await answer.json())["wire"]
            body = {"text": json.dumps(MESSAGES)}
            async with client.post(f"{url}/crossings", json=body) as answer:
                assert answer.status == 403
            async with client.post(f"{url}/crossings", json=body, headers={HEADER: "1"}) as answer:
                assert (await answer.json())["format"] == "anthropic-messages"
            async with client.post(f"{url}/crossings", json={"text": "{"}, headers={HEADER: "1"}) as answer:
                assert answer.status == 422
                assert (await answer.json())["problem"]["type"] == "DecodeError"
            async with client.post(f"{url}/crossings", json={"text": 3}, headers={HEADER: "1"}) as answer:
                assert answer.status == 400
            assert upstream.requests == []
            assert running.gateway.capture is not None
            assert len(running.gateway.capture) == 0

    asyncio.run(run())
