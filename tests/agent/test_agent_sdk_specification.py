"""What the specification of the agent SDK asks for: events with types of their own, display names, results, outputs."""

import asyncio
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

import dragoman
from dragoman import ir
from dragoman.agent import (
    Agent,
    AgentEvent,
    FinalEvent,
    FinalResponseEvent,
    MemoryStore,
    OutputCache,
    OutputRef,
    ToolCallEvent,
    UnknownOutput,
    decode_event,
    encode_event,
    expand_output,
    is_trimmed,
    output_ref,
    tool,
)
from dragoman.drivers import Scripted, ScriptedDriver
from tests.support.promises import promise

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "typing" / "agent_events.py"


@promise("seed:002-events")
def test_every_event_has_the_literal_type_that_its_json_has() -> None:
    for kind in get_args(AgentEvent):
        assert kind.type == kind.__struct_config__.tag
        hint = get_type_hints(kind, include_extras=True)["type"]  # ClassVar[Literal[...]]
        assert get_args(get_args(hint)[0]) == (kind.type,)
    assert FinalResponseEvent is FinalEvent
    event = FinalEvent("done")
    assert (event.type, encode_event(event)) == ("final", b'{"type":"final","content":"done"}')
    assert decode_event(encode_event(event)) == event


@promise("seed:002-events")
def test_the_sample_program_distinguishes_all_events_and_type_checks() -> None:
    lines = runpy.run_path(str(PROGRAM))["LINES"]
    assert [line.partition(":")[0] for line in lines] == [
        "text", "step_start", "tool_call", "tool_result", "step_complete", "final",
    ]  # fmt: skip
    ran = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-m", "mypy", "--no-error-summary", str(PROGRAM)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "")


def run(function: Any, **options: Any) -> tuple[list[Any], Agent]:
    agent = Agent(ScriptedDriver([Scripted(calls=[(function.name, {})]), "Done."]), tools=[function], **options)

    async def events() -> list[Any]:
        return [event async for event in agent.run_stream("go")]

    return asyncio.run(events()), agent


@promise("seed:002-tools")
def test_a_display_name_is_sent_with_the_call() -> None:
    @tool(display_name="Weather in Tokyo")
    def weather() -> str:
        """The weather."""
        return "18"

    story, _ = run(weather)
    (called,) = [event for event in story if isinstance(event, ToolCallEvent)]
    assert (called.tool, called.display_name) == ("weather", "Weather in Tokyo")
    assert next(event for event in story if event.type == "step_start").title == "weather"


@promise("seed:002-tools")
def test_a_tool_may_return_an_error_and_text_beside_a_picture() -> None:
    picture = ir.Image("image/png", data="aGk=")

    @tool
    def fails() -> ir.ToolResult:
        """Fail."""
        return dragoman.ToolResult.error("another_call", "another_tool", "timeout")

    @tool
    def shows() -> Any:
        """Show."""
        return "caption", picture

    story, agent = run(fails)
    assert next(event for event in story if event.type == "tool_result").is_error
    (result,) = [one for message in agent.history for one in message.tool_results]
    (call,) = [one for message in agent.history for one in message.tool_calls]
    assert (result.tool_call_id, result.name, result.kind, result.value) == (call.id, "fails", "error", "timeout")
    _, agent = run(shows)
    (result,) = [one for message in agent.history for one in message.tool_results]
    assert (result.kind, result.parts) == ("multimodal", (ir.Text("caption"), picture))


@promise("seed:002-tools")
@pytest.mark.parametrize("value", [("a", "b"), ["a"], [], [1, "a"]], ids=str)
def test_lists_without_parts_stay_data(value: Any) -> None:
    @tool
    def lists() -> Any:
        """List."""
        return value

    _, agent = run(lists)
    (result,) = [one for message in agent.history for one in message.tool_results]
    assert (result.kind, result.value) == ("data", list(value))


@promise("seed:002-outputs")
def test_sizes_that_a_record_does_not_state_stay_absent() -> None:
    record = {"role": "tool", "tool_call_id": "c", "tool_name": "ls", "content": "a", "output_ref": {"id": "out_1"}}
    call = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    body = {"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}, record]}
    request = dragoman.decode_request(body, "agent-sdk")
    (result,) = request.messages[1].tool_results
    assert output_ref(result) == OutputRef("out_1", None, None)
    assert dragoman.encode_request(request, "agent-sdk").body == body
    assert msgspec.json.encode(OutputRef("out_1")) == b'{"id":"out_1"}'


@promise("seed:002-outputs")
def test_a_trimmed_output_expands_through_its_reference() -> None:
    whole = "\n".join(f"line {number}" for number in range(1000))

    @tool
    def reads() -> str:
        """Read."""
        return whole

    store = MemoryStore()
    cache = OutputCache(store, limit=100)
    _, agent = run(reads, output_cache=cache)
    (trimmed,) = [one for message in agent.history for one in message.tool_results]
    assert is_trimmed(trimmed)
    assert len(trimmed.value) < len(whole)
    # Also after it was stored as a record and read again.
    body = dragoman.encode_request(ir.Request("m", agent.history), "agent-sdk").json()
    (stored,) = [one for message in dragoman.decode_request(body, "agent-sdk").messages for one in message.tool_results]
    for result in (trimmed, stored):
        expanded = expand_output(result, store)
        assert (expanded.value, expanded.kind, is_trimmed(expanded)) == (whole, "text", False)
        assert output_ref(expanded) == output_ref(trimmed)
        assert cache.expand(result) == expanded
    whole_one = cache.expand(trimmed)
    assert expand_output(whole_one, MemoryStore()) is whole_one
    with pytest.raises(UnknownOutput, match="call_1"):
        expand_output(trimmed, MemoryStore())
