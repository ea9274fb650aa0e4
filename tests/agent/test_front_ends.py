"""Agents behind HTTP: as a model in every wire format, and for front ends, with the real clients of each."""

import asyncio
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import msgspec
import ollama
import openai
import pytest
from google import genai
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from dragoman.agent import Agent, agent_tool, decode_event, encode_event, tool
from dragoman.agent.front_ends import AgUi, JsonLines, UiMessages, stream_bytes
from dragoman.drivers import Scripted, ScriptedDriver
from dragoman.errors import Overloaded
from dragoman.ir import Failure, Usage
from tests.cli.command import run as command
from tests.gateway.installing import front_end_packages, installed
from tests.gateway.served import Served, served
from tests.support.agents import run
from tests.support.promises import promise
from tests.support.waiting import PATIENCE

HERE = Path(__file__).parent / "clients"
APP = '''
from dragoman.agent import Agent, tool
from dragoman.drivers import Scripted, ScriptedDriver
from dragoman.ir import Usage


@tool
def get_weather(city: str) -> str:
    """Tell the weather."""
    return f"18 degrees in {city}"


def answer(request):
    said = [message.text for message in request.messages if message.role == "user"]
    if request.messages[-1].role == "tool":
        results = [one.value for one in request.messages[-1].tool_results]
        return Scripted(text=f"It is {results[-1]} ({len(said)} questions).", usage=Usage(20, 5))
    return Scripted(
        text="Let me see.", reasoning="Weather?", calls=[("get_weather", {"city": said[-1]})], usage=Usage(10, 5)
    )


agent = Agent(ScriptedDriver(answer), tools=[get_weather], name="weather", deltas=True)
plain = Agent(ScriptedDriver(answer), tools=[get_weather], name="plain")
'''


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("app")
    (folder / "app.py").write_text(APP, encoding="utf-8")
    with served(folder, "", "--agent", "app:agent", "--agent", "app:plain", "--quiet") as running:
        yield running


def test_the_greeting_names_the_agents(gateway: Served) -> None:
    deadline = time.monotonic() + 20
    while not any("agents" in line for line in gateway.lines) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "  agents, served as models: weather, plain\n" in gateway.lines


# ── as a model ────────────────────────────────────────────────────────────────────────────────────────────────

EXPECTED = "It is 18 degrees in Rome (1 questions)."


def by_openai_chat(url: str, model: str) -> str:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)
    found = client.chat.completions.create(model=model, messages=[{"role": "user", "content": "Rome"}])
    return found.choices[0].message.content or ""


def by_openai_chat_streamed(url: str, model: str) -> str:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)
    stream = client.chat.completions.create(model=model, messages=[{"role": "user", "content": "Rome"}], stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


def by_openai_responses(url: str, model: str) -> str:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)
    found = client.responses.create(model=model, input="Rome")
    assert "reasoning" in [one.type for one in found.output]
    return found.output_text


def by_anthropic(url: str, model: str) -> str:
    client = anthropic.Anthropic(base_url=url, api_key="any", max_retries=0)
    thinking: Any = {"type": "enabled", "budget_tokens": 1024}
    with client.messages.stream(
        model=model, max_tokens=2048, thinking=thinking, messages=[{"role": "user", "content": "Rome"}]
    ) as stream:
        message = stream.get_final_message()
    shown = "".join(block.thinking for block in message.content if block.type == "thinking")
    assert 'get_weather {"city":"Rome"}' in shown
    assert "returned: 18 degrees in Rome" in shown
    return "".join(block.text for block in message.content if block.type == "text")


def by_gemini(url: str, model: str) -> str:
    client = genai.Client(api_key="any", http_options={"base_url": url})
    return client.models.generate_content(model=model, contents="Rome").text or ""


def by_ollama(url: str, model: str) -> str:
    found = ollama.Client(host=url).chat(model=model, messages=[{"role": "user", "content": "Rome"}])
    return found.message.content or ""


CLIENTS = {
    "openai-chat": by_openai_chat,
    "openai-chat-streamed": by_openai_chat_streamed,
    "openai-responses": by_openai_responses,
    "anthropic": by_anthropic,
    "gemini": by_gemini,
    "ollama": by_ollama,
}


@promise("agent:as-model")
@pytest.mark.parametrize("model", ["weather", "plain"])
@pytest.mark.parametrize("client", CLIENTS)
def test_an_agent_is_a_model_for_every_sdk(gateway: Served, client: str, model: str) -> None:
    text = CLIENTS[client](gateway.url, model)
    # With deltas, what it says on the way has been sent as text before it is known that a call follows.
    assert text.removeprefix("Let me see.") == EXPECTED


@promise("agent:as-model")
def test_the_conversation_of_the_client_is_the_history(gateway: Served) -> None:
    client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="any", max_retries=0)
    messages: list[Any] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Oslo"},
        {"role": "assistant", "content": "Cold."},
        {"role": "user", "content": "Rome"},
    ]
    found = client.chat.completions.create(model="plain", messages=messages)
    assert found.choices[0].message.content == "It is 18 degrees in Rome (2 questions)."
    assert found.usage is not None
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (30, 10)
    assert "weather" in [one.id for one in client.models.list()]


@promise("agent:as-model")
def test_an_agent_that_cannot_be_loaded_ends_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "import dragoman\ndragoman.connect('anthropic/claude-sonnet-5', environment={})\n"
    )
    for place, words in (
        ("nothing:agent", "No module named"),
        ("json:loads", "making the agent failed"),
        ("json:__doc__", "expected an Agent"),
        ("broken:agent", "broken cannot be imported: NotConfigured: anthropic has no api_key"),
    ):
        ended = command("serve", "--port", "0", "--agent", place, cwd=tmp_path)
        assert ended.returncode == 2
        assert words in ended.stderr.decode()
        assert "Traceback" not in ended.stderr.decode()


# ── front ends ────────────────────────────────────────────────────────────────────────────────────────────────


@promise("agent:front-ends")
@pytest.mark.parametrize("model", ["weather", "plain"])
def test_real_clients_of_ag_ui_and_vercels_ui_messages(gateway: Served, model: str) -> None:
    package = installed("front ends", front_end_packages, "ai/package.json")
    given = json.dumps({"url": f"{gateway.url}/agents/{model}", "questions": ["Rome", "Oslo"]})
    ended = subprocess.run(  # noqa: S603
        ["node", str(HERE / "front_ends.mjs"), given],  # noqa: S607
        cwd=package.parents[2], capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-3000:]
    found = json.loads(ended.stdout.splitlines()[-1])
    messages = found["agUi"]["messages"]
    answered = [one["content"] for one in messages if one["role"] == "assistant" and one.get("content")]
    assert answered == ["Let me see.", EXPECTED, "Let me see.", "It is 18 degrees in Oslo (2 questions)."]
    assert [one["content"] for one in messages if one["role"] == "tool"] == ["18 degrees in Rome", "18 degrees in Oslo"]
    assert {"RUN_STARTED", "TOOL_CALL_RESULT", "REASONING_MESSAGE_CONTENT", "RUN_FINISHED"} <= set(
        found["agUi"]["seen"]
    )
    answers = [one["parts"] for one in found["ui"] if one["role"] == "assistant"]
    texts = [[part["text"] for part in parts if part["type"] == "text"] for parts in answers]
    assert texts == [["Let me see.", EXPECTED], ["Let me see.", "It is 18 degrees in Oslo (2 questions)."]]
    tools = [part for part in answers[0] if part["type"] == "dynamic-tool"]
    assert [(one["toolName"], one["state"], one["output"]) for one in tools] == [
        ("get_weather", "output-available", "18 degrees in Rome")
    ]


@promise("agent:front-ends")
def test_json_lines_over_http_and_bad_requests(gateway: Served) -> None:
    def post(path: str, body: bytes) -> tuple[int, bytes]:
        request = urllib.request.Request(f"{gateway.url}{path}", body, {"content-type": "application/json"})  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    status, lines = post("/agents/plain/json-lines", b'{"messages": [{"role": "user", "content": "Rome"}]}')
    events = [decode_event(line) for line in lines.splitlines()]
    assert (status, events[-1].type) == (200, "final")
    assert post("/agents/plain/nothing", b"{}")[0] == 404
    assert post("/agents/nobody/ag-ui", b"{}")[0] == 404
    for body in (
        b"",
        b"[]",
        b"{}",
        b'{"messages": []}',
        b'{"messages": [5]}',
        b'{"messages": [{"role": "tool"}]}',
        b"{",
    ):
        for protocol in ("ag-ui", "ui-messages", "json-lines"):
            assert post(f"/agents/plain/{protocol}", body)[0] in {200, 400}


async def payloads(agent: Agent[Any], front_end: AgUi | UiMessages) -> list[dict[str, Any]]:
    data = b"".join([piece async for piece in stream_bytes(agent, "Go", front_end)])
    lines = [line.removeprefix(b"data: ") for line in data.split(b"\n\n") if line]
    return [json.loads(line) for line in lines if line != b"[DONE]"]


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@promise("agent:front-ends")
def test_waiting_calls_failures_and_nested_events() -> None:
    def waiting() -> Agent:
        return Agent(ScriptedDriver([Scripted(calls=[("pay", {"amount": 5})])]), tools=[pay])

    def failing() -> Agent:
        return Agent(ScriptedDriver([Overloaded(Failure("overloaded", "busy"))]))

    def nested() -> Agent:
        inner = Agent(ScriptedDriver(lambda _: "Deep."), name="inner")
        return Agent(
            ScriptedDriver([Scripted(calls=[("inner", {"task": "x"})]), "Ok."]),
            tools=[agent_tool(inner, description="Inner.")],
        )

    async def session() -> None:
        last = (await payloads(waiting(), AgUi()))[-1]
        assert last["outcome"]["interrupts"][0]["toolCallId"] == "call_1"
        kinds = [one["type"] for one in await payloads(waiting(), UiMessages())]
        assert "tool-approval-request" in kinds
        assert (await payloads(failing(), AgUi()))[-1]["type"] == "RUN_ERROR"
        assert (await payloads(failing(), UiMessages()))[-1]["type"] == "error"
        custom = [one for one in await payloads(nested(), AgUi()) if one["type"] == "CUSTOM"]
        assert custom[0]["value"]["path"] == ["inner"]
        data = [one["type"] for one in await payloads(nested(), UiMessages())]
        assert "data-nested" in data
        lines = [piece async for piece in stream_bytes(failing(), "Go", JsonLines())]
        assert json.loads(lines[-1])["type"] == "error"

    run(session())


# ── spans ─────────────────────────────────────────────────────────────────────────────────────────────────────


@promise("agent:spans")
def test_spans_for_agent_model_and_tool() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    @tool
    def fail() -> str:
        """Fail."""
        raise ValueError("no")

    script = [Scripted(calls=[("fail", {})], usage=Usage(10, 2)), Scripted(text="Ok.", usage=Usage(20, 3))]
    agent = Agent(
        ScriptedDriver(script, name="openai/gpt-5.1"), tools=[fail], name="tester", tracer=provider.get_tracer("t"),
        settings={"temperature": 0.5, "max_output_tokens": 100},
    )  # fmt: skip
    asyncio.run(agent.run("Go"))
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert set(spans) == {"chat gpt-5.1", "execute_tool fail", "invoke_agent tester"}
    whole = spans["invoke_agent tester"]
    assert whole.attributes is not None
    assert whole.attributes["gen_ai.usage.input_tokens"] == 30
    assert whole.attributes["gen_ai.operation.name"] == "invoke_agent"
    for name in ("chat gpt-5.1", "execute_tool fail"):
        inner = spans[name]
        assert inner.parent is not None
        assert inner.parent.span_id == whole.context.span_id
    chat, failed = spans["chat gpt-5.1"].attributes, spans["execute_tool fail"].attributes
    assert chat is not None
    assert failed is not None
    assert (chat["gen_ai.provider.name"], chat["gen_ai.request.model"]) == ("openai", "gpt-5.1")
    assert (chat["gen_ai.request.temperature"], chat["gen_ai.request.max_tokens"]) == (0.5, 100)
    assert (failed["gen_ai.tool.name"], failed["error.type"]) == ("fail", "tool_error")


def test_events_of_front_ends_are_what_was_encoded() -> None:
    agent = Agent(ScriptedDriver(["Hi."]))

    async def session() -> None:
        lines = [piece async for piece in stream_bytes(agent, "Go", JsonLines()) if piece]
        assert all(msgspec.json.decode(line) for line in lines)
        assert encode_event(decode_event(lines[-1])) + b"\n" == lines[-1]

    run(session())
