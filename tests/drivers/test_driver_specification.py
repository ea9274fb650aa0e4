"""The drivers of the first specification: its usage example line by line, its message shapes, guards and streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.drivers import Scripted, ScriptedDriver
from dragoman.drivers.replay import Replayed, ReplayTransport
from dragoman.drivers.scripted import Line
from dragoman.errors import DecodeError, ProviderError, UnknownFormat
from dragoman.ir import has_tool_calls, is_tool_result
from dragoman.sim.server import Simulator
from tests.drivers.partners import EACH, EACH_FORMAT, STREAMED, Partner, talking
from tests.support.promises import promise

CALL = ir.ToolCall("call_1", "get_weather", {"city": "Tokyo"})
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
NAMED = {"name": "get_weather", "description": "指定都市の天気を取得"}
FUNCTION: dict[str, Any] = {**NAMED, "parameters": SCHEMA}
WEATHER = {"type": "function", "function": FUNCTION}


# ── the usage example ─────────────────────────────────────────────────────────────────────────────────────────


@promise("seed:001-example")
@EACH
@STREAMED
def test_the_usage_example_runs_on_every_provider(partner: Partner, streamed: bool, dragoman_sim: Simulator) -> None:  # noqa: FBT001
    async def execute_function(name: str, args: Mapping[str, Any]) -> Any:
        assert (name, args) == ("get_weather", {"city": "Tokyo"})
        return {"temperature": 18, "sky": "曇り"}

    async def run() -> Any:
        prompt = "Get the weather of Tokyo."
        my_tools = [WEATHER]
        async with talking(partner, dragoman_sim) as driver:

            async def query(**options: Any) -> Any:
                if streamed:
                    return await driver.stream_query(prompt, **options).result
                return await driver.query(prompt, **options)

            # 1. 初回クエリ: ツール定義付き
            result1 = await query(tools=my_tools)

            # 2. tool callsがあれば実行
            assert result1.tool_calls
            tool_results = await asyncio.gather(*map(answer, result1.tool_calls))

            # 3. tool結果を含めて再クエリ
            return await query(
                tools=my_tools,
                messages=[
                    {"role": "assistant", "content": result1.content, "toolCalls": result1.tool_calls},
                    *tool_results,
                ],
            )

    async def answer(tc: ir.ToolCall) -> dict[str, Any]:
        result = await execute_function(tc.name, tc.arguments)
        return {"role": "tool", "content": json.dumps(result), "toolCallId": tc.id, "name": tc.name}

    result2 = asyncio.run(run())
    assert (result2.finish_reason, result2.tool_calls) == ("stop", None)
    assert result2.content
    assert [recorded.status for recorded in dragoman_sim.requests] == [200, 200]
    assert b"temperature" in dragoman_sim.requests[1].body


# ── messages as mappings ──────────────────────────────────────────────────────────────────────────────────────

HISTORY = (
    ir.Message("user", "Weather in Tokyo?"),
    ir.Message("assistant", (ir.Text("One moment."), CALL)),
    ir.Message("tool", (ir.ToolResult("call_1", "get_weather", "text", "18 degrees"),)),
)
EVERY_FORMAT = (*dragoman.formats(), *dragoman.formats("record"))


def written(format: str) -> list[Any]:
    body: Any = dragoman.encode_request(ir.Request("m", HISTORY, max_output_tokens=9), format).body
    if isinstance(body, list):
        return body
    return list(next(body[key] for key in ("messages", "contents", "input") if key in body))


def request_of(*, prompt: Any = None, **options: Any) -> ir.Request:
    driver = ScriptedDriver(["fine"])
    asyncio.run(driver.query(prompt, **options))
    return driver.requests[0]


def story(messages: Sequence[ir.Message]) -> list[Any]:
    return [
        (
            message.role,
            message.text,
            [(call.name, call.arguments) for call in message.tool_calls],
            [(result.name, result.kind, result.value) for result in message.tool_results],
        )
        for message in messages
    ]


@promise("seed:001-messages")
@pytest.mark.parametrize("named", [False, True], ids=["detected", "named"])
@pytest.mark.parametrize("format", EVERY_FORMAT)
def test_messages_may_be_mappings_of_any_format(format: str, named: bool) -> None:  # noqa: FBT001
    options: dict[str, Any] = {"message_format": format} if named else {}
    request = request_of(messages=written(format), **options)
    (user, assistant, tool), expected = story(request.messages), story(HISTORY)
    assert [user, assistant] == expected[:2]
    assert tool[3][0][:1] == ("get_weather",)
    assert "18 degrees" in json.dumps(tool[3])
    assert request.messages[2].tool_results[0].tool_call_id == request.messages[1].tool_calls[0].id
    assert story(request_of(prompt=written(format), **options).messages) == story(request.messages)


@promise("seed:001-messages")
def test_the_seeds_own_shape_and_values_may_be_mixed() -> None:
    signed = ir.ToolCall("call_1", "f", {"a": 1}, signature=ir.Signature("google", "c2ln"))
    request = request_of(
        prompt="go",
        messages=[
            {"role": "assistant", "content": "", "toolCalls": [signed]},
            {"role": "tool", "content": "1", "toolCallId": "call_1"},
            ir.Message("assistant", (ir.ToolCall("call_2", "g", {}),)),
            {"role": "tool", "content": "2", "tool_call_id": "call_2"},
        ],
    )
    assert request.messages[1].tool_calls == (signed,)  # the very call, signature and all
    assert [result.name for message in request.messages for result in message.tool_results] == ["f", "g"]
    nested = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1.0}'}}
    (call,) = request_of(messages=[{"role": "assistant", "content": "", "toolCalls": [nested]}]).messages[0].tool_calls
    assert (call.id, call.name, call.arguments_text) == ("a", "f", '{"x": 1.0}')


@promise("seed:001-messages")
@pytest.mark.parametrize(
    ("messages", "path", "words"),
    [
        ([{"role": "assistant", "tool_call": []}], "$.messages[0]", "unknown keys tool_call"),
        ([{"role": "robot", "content": "x"}], "$.messages[0]", "role 'robot'"),
        ([{"role": "user", "content": "x"}, {"content": "y"}], "$.messages[1]", "role None"),
        ([{"role": "user", "content": 5}], "$.messages[0].content", "int"),
        ([5], "$.messages[0]", "a Message or a mapping"),
        (
            [{"role": "assistant", "content": "", "toolCalls": []}, {"role": "user", "parts": [{"text": "x"}]}],
            "$.messages[1]",
            "gemini, after modular-prompt at $.messages[0]",
        ),
        (
            [ir.Message("user", "x"), {"role": "assistant", "content": "", "toolCalls": [{"id": "a"}]}],
            "$.messages[1].toolCalls[0]",
            "a call with name or function",
        ),
        ("hi", "$.messages", "expected a list of messages, got text: it is the prompt"),
        ({"role": "user", "content": "hi"}, "$.messages", "got a single one: put it into a list"),
        (ir.Message("user", "hi"), "$.messages", "got a single one: put it into a list"),
    ],
)
def test_what_no_format_explains_is_an_error_with_its_path_and_nothing_is_sent(
    messages: Any, path: str, words: str
) -> None:
    transport = ReplayTransport([Replayed(chunks=[b"{}"])])
    driver = dragoman.connect("openai/gpt-5.1", api_key="sk-test", transport=transport, environment={})
    with pytest.raises(DecodeError) as caught:
        asyncio.run(driver.query(messages=messages))
    assert caught.value.path == path
    assert words in str(caught.value)
    assert transport.requests == []


def document(**source: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "document", "source": source}]}]


AMBIGUOUS = {
    "anthropic-messages": ir.Document("text/plain", text="aGk="),
    "agent-sdk": ir.Document("text/plain", "aGk="),
}


@promise("seed:001-messages")
def test_what_two_formats_read_differently_must_be_named() -> None:
    text = document(type="text", data="aGk=", media_type="text/plain")
    transport = ReplayTransport([Replayed(chunks=[b"{}"])])
    driver = dragoman.connect("openai/gpt-5.1", api_key="sk-test", transport=transport, environment={})
    with pytest.raises(DecodeError) as caught:
        asyncio.run(driver.query(messages=[ir.Message("user", "hi"), *text]))
    assert caught.value.path == "$.messages[1].parts[0]"
    message = str(caught.value)
    assert 'what anthropic-messages reads as {"text":"aGk="} and agent-sdk as {"data":"aGk="}' in message
    assert 'message_format="anthropic-messages"' in message
    assert transport.requests == []
    for name, expected in AMBIGUOUS.items():
        (read,) = request_of(messages=text, message_format=name).messages[0].parts
        assert structs.replace(read, metadata=None) == expected
    with pytest.raises(UnknownFormat):
        request_of(messages=text, message_format="klingon")


@promise("seed:001-messages")
def test_what_another_message_decides_is_not_ambiguous() -> None:
    nested = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    calls = {"role": "assistant", "content": None, "tool_calls": [nested]}
    pdf = document(data="QQ==", media_type="application/pdf")
    assert request_of(messages=[calls, *pdf]).messages[1].parts[0] == ir.Document("application/pdf", "QQ==")


@promise("seed:001-messages")
@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": "x", "tool_calls": []},
        {"role": "user", "content": [{"type": "text", "text": "x"}], "name": "bob"},
        {"role": "tool", "tool_name": "f", "tool_call_id": "a", "content": "x"},
        {"role": "developer", "content": "x"},
    ],
    ids=" ".join,
)
def test_what_several_formats_read_alike_needs_no_name(message: dict[str, Any]) -> None:
    (read,) = request_of(messages=[message]).messages
    assert (read.text or read.tool_results[0].value, read.name) == ("x", message.get("name"))


# ── tools as mappings ─────────────────────────────────────────────────────────────────────────────────────────


@promise("seed:001-tools")
@pytest.mark.parametrize(
    ("tool", "name", "origin"),
    [
        ({"type": "web_search_20250305", "name": "web_search", "max_uses": 3}, "web_search", "anthropic"),
        ({"type": "bash_20250124", "name": "bash"}, "bash", "anthropic"),
        ({"type": "web_search"}, "web_search", "openai-responses"),
        ({"type": "code_interpreter", "container": {"type": "auto"}}, "code_interpreter", "openai-responses"),
        ({"googleSearch": {}}, "googleSearch", "google"),
        ({"systemTool": {"name": "nova_grounding"}}, "nova_grounding", "bedrock"),
    ],
    ids=str,
)
def test_the_entry_of_a_vendor_is_a_hosted_tool(tool: dict[str, Any], name: str, origin: str) -> None:
    (found,) = request_of(prompt="go", tools=[tool]).tools
    assert isinstance(found, ir.ProviderTool)
    assert (found.name, found.origin, found.definition) == (name, origin, tool)


@promise("seed:001-tools")
def test_a_hosted_tool_arrives_at_its_vendor_as_it_was_given() -> None:
    tool = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    transport = ReplayTransport([Replayed(status=418)])
    driver = dragoman.connect("anthropic/claude-sonnet-4-6", api_key="sk-test", transport=transport, environment={})
    with pytest.raises(ProviderError):
        asyncio.run(driver.query("go", tools=[tool]))
    assert json.loads(transport.requests[0].body)["tools"] == [tool]


@promise("seed:001-tools")
@pytest.mark.parametrize(
    "tool",
    [
        WEATHER,
        FUNCTION,
        {"type": "function", **FUNCTION},
        {**NAMED, "input_schema": SCHEMA},
        {"functionDeclarations": [FUNCTION]},
        {"toolSpec": {**NAMED, "inputSchema": {"json": SCHEMA}}},
    ],
    ids=["chat", "flat", "responses", "anthropic", "gemini", "bedrock"],
)
def test_a_function_is_a_function_in_every_spelling(tool: dict[str, Any]) -> None:
    (found,) = request_of(prompt="go", tools=[tool]).tools
    assert isinstance(found, ir.ToolDefinition)
    assert {"name": found.name, "description": found.description, "parameters": found.parameters} == FUNCTION


@promise("seed:001-tools")
@pytest.mark.parametrize(
    ("tool", "path", "words"),
    [
        ({"type": "crystal_ball", "name": "x"}, "$.tools[0]", "unknown type 'crystal_ball'"),
        ({"nme": "x"}, "$.tools[0]", "unknown keys nme"),
        ({"type": "function"}, "$.tools[0]", "no name"),
        ({"type": "function", "function": {"name": "f", "schema": {}}}, "$.tools[0].function", "unknown keys schema"),
        ({"name": "f", "parameters": "object"}, "$.tools[0].parameters", "a JSON Schema"),
        ({"type": 5}, "$.tools[0]", "type 5"),
    ],
    ids=str,
)
def test_a_tool_of_an_unknown_shape_is_an_error_with_its_path(tool: dict[str, Any], path: str, words: str) -> None:
    driver = ScriptedDriver(["fine"])
    with pytest.raises(DecodeError) as caught:
        asyncio.run(driver.query("go", tools=[tool]))
    assert caught.value.path == path
    assert words in str(caught.value)
    assert driver.requests == []


# ── guards ────────────────────────────────────────────────────────────────────────────────────────────────────


@promise("seed:001-guards")
def test_the_guards_know_values_and_mappings_and_no_empty_list() -> None:
    assert dragoman.has_tool_calls is has_tool_calls
    assert dragoman.is_tool_result is is_tool_result
    assert [has_tool_calls(one) for one in HISTORY] == [False, True, False]
    assert [is_tool_result(one) for one in HISTORY] == [False, False, True]
    assert has_tool_calls({"role": "assistant", "content": "", "toolCalls": [{"id": "a"}]})
    assert not has_tool_calls({"role": "assistant", "content": "", "toolCalls": []})
    assert not has_tool_calls({"role": "assistant", "content": ""})
    assert not has_tool_calls(ir.Message("assistant", ()))
    assert is_tool_result({"role": "tool", "content": "x", "toolCallId": "a"})
    assert not is_tool_result({"role": "user", "content": "x"})
    assert not is_tool_result(ir.Message("tool", ()))


# ── streams ───────────────────────────────────────────────────────────────────────────────────────────────────


@promise("seed:001-streams")
@EACH_FORMAT
def test_the_result_needs_no_reading_of_the_stream_and_the_stream_none_of_the_result(
    partner: Partner, dragoman_sim: Simulator
) -> None:
    async def run() -> None:
        async with talking(partner, dragoman_sim) as driver:
            answer = driver.stream_query("Say hello.")
            result = await answer.result
            assert "".join([text async for text in answer.stream]) == result.content
            assert "".join([text async for text in answer.stream]) == result.content
            other = driver.stream_query("Say hello.")
            texts = "".join([text async for text in other.stream])
            assert texts == (await other.result).content

    asyncio.run(run())


@promise("seed:004-chunks")
@EACH_FORMAT
def test_chunks_are_the_unified_dicts_on_every_format(partner: Partner, dragoman_sim: Simulator) -> None:
    async def run() -> None:
        async with talking(partner, dragoman_sim) as driver:
            answer = driver.stream_query("Get the weather of Tokyo.", tools=[WEATHER])
            chunks = [chunk async for chunk in answer.chunks()]
            result = await answer.result
            assert "".join(chunk["content"] for chunk in chunks if chunk["type"] == "text") == result.content
            (called,) = [chunk["content"] for chunk in chunks if chunk["type"] == "tool_call"]
            assert (called["name"], called["arguments"]) == ("get_weather", {"city": "Tokyo"})

    asyncio.run(run())


@promise("seed:004-chunks")
def test_a_script_takes_the_seeds_mock_chunks_and_gives_them_back() -> None:
    scripted: list[Any] = [
        {"type": "text", "content": "Hello"},
        {"type": "tool_call", "content": {"name": "search", "arguments": {"q": "test"}, "tool_call_id": "call_9"}},
    ]
    driver = ScriptedDriver(scripted)

    async def read() -> tuple[list[Any], Any]:
        answer = driver.stream_query("go")
        return [chunk async for chunk in answer.chunks()], await answer.result

    chunks, result = asyncio.run(read())
    assert chunks == scripted
    assert (result.content, result.finish_reason) == ("Hello", "tool_calls")
    assert driver.left == 0


@promise("seed:004-chunks")
def test_lists_of_chunks_are_answers_and_a_failure_is_a_last_chunk() -> None:
    script: list[Line] = [[{"type": "text", "content": "one"}], "two", [{"type": "error", "content": "broken"}]]
    driver = ScriptedDriver(script)

    async def read() -> list[Any]:
        first, second = await driver.query("a"), await driver.query("b")
        third = driver.stream_query("c")
        return [first.content, second.content, [chunk async for chunk in third.chunks()]]

    assert asyncio.run(read()) == ["one", "two", [{"type": "error", "content": "broken"}]]


@promise("seed:004-chunks")
@pytest.mark.parametrize(
    ("chunk", "path"),
    [
        ({"type": "text", "content": 5}, "$[0]"),
        ({"type": "song", "content": "la"}, "$[0]"),
        ({"type": "tool_call", "content": {"arguments": {}}}, "$[0].content"),
        ({"type": "tool_call", "content": {"name": "f", "arguments": "{}"}}, "$[0].content.arguments"),
    ],
    ids=str,
)
def test_a_chunk_of_another_shape_is_an_error_where_the_script_is_made(chunk: dict[str, Any], path: str) -> None:
    with pytest.raises(DecodeError) as caught:
        ScriptedDriver([chunk])
    assert caught.value.path == path


@promise("seed:004-chunks")
def test_a_blocked_call_is_not_a_chunk() -> None:
    blocked = ir.Completion((ir.Message("assistant", (ir.Text("I"), CALL)),), ir.Finish("content_filter"))

    async def read() -> list[Any]:
        return [chunk async for chunk in ScriptedDriver([blocked, Scripted(text="x")]).stream_query("go").chunks()]

    assert asyncio.run(read()) == [{"type": "text", "content": "I"}]
