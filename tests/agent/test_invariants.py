"""What always holds, whatever a model does and whenever a run is cancelled."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.agent import Deny, Done, PermissionRequest, decode_event, done, encode_event, tool
from dragoman.agent.history_repair import is_whole
from dragoman.agent.permissions import ALLOW
from dragoman.drivers import Scripted, ScriptedDriver
from dragoman.errors import Overloaded, ProviderError
from dragoman.ir import Failure, Message, Reasoning, Refusal, Text, ToolCall
from tests.support.agents import agent_of, plain, run
from tests.support.promises import promise


@tool
def add(a: int) -> int:
    """Add one."""
    return a + 1


@tool
async def fail(how: str) -> str:
    """Fail in some way."""
    raise {"done": Done("early"), "error": ValueError("no")}.get(how, KeyError(how))


@tool
def forbidden() -> None:
    """Always denied."""


def decide(request: PermissionRequest) -> Any:
    return Deny("never", stop=bool(request.arguments)) if request.tool is forbidden else ALLOW


CALLS = st.builds(
    ToolCall,
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["add", "fail", "forbidden", "done", "unheard_of"]),
    st.sampled_from([{}, {"a": 1}, {"a": "x"}, {"how": "done"}, {"how": "error"}, {"message": "bye"}]),
    incomplete=st.booleans(),
)
BROKEN = st.builds(lambda name: ToolCall("a", name, arguments_text='{"a"'), st.sampled_from(["add", "nope"]))
PARTS = CALLS | BROKEN | st.sampled_from([Text("so"), Text(""), Reasoning("hm"), Refusal("no")])
TURNS = st.one_of(
    st.builds(lambda parts: Message("assistant", tuple(parts)), st.lists(PARTS, max_size=4)),
    st.just(Scripted()),
    st.just(Overloaded(Failure("overloaded", "busy"))),
)


@promise("agent:no-open-calls", "agent:steps", "agent:only-final", "agent:events-json", "agent:cancel-next")
@settings(max_examples=150)
@given(st.lists(TURNS, max_size=4), st.booleans(), st.booleans(), st.booleans(), st.none() | st.integers(0, 20))
def test_the_story_is_always_whole(
    turns: list[Any],
    parallel: bool,  # noqa: FBT001
    deltas: bool,  # noqa: FBT001
    require_done: bool,  # noqa: FBT001
    place: int | None,
) -> None:
    agent = agent_of(
        [*turns, *["Enough."] * 9],
        tools=[add, fail, forbidden, done],
        parallel=parallel,
        deltas=deltas,
        require_done=require_done,
        permissions=decide,
        max_iterations=4,
    )

    async def watched() -> tuple[list[Any], bool]:
        events: list[Any] = []
        try:
            async for event in agent.run_stream("Go"):
                assert decode_event(encode_event(event)) == event
                events.append(plain(event))
                if len(events) - 1 == place:
                    agent.cancel()
        except ProviderError:
            return events, True
        return events, False

    story, failed = run(watched())
    kinds = [event["type"] for event in story]
    assert is_whole(agent.history)
    starts = [event["step_id"] for event in story if event["type"] == "step_start"]
    assert [event["step_number"] for event in story if event["type"] == "step_start"] == [*range(1, len(starts) + 1)]
    assert len(set(starts)) == len(starts)
    assert sorted(event["step_id"] for event in story if event["type"] == "step_complete") == sorted(starts)
    assert "final" not in kinds[:-1]
    result = agent.last_result
    assert (kinds[-1:] == ["final"]) is (not failed and result is not None and not result.cancelled)
    assert failed is (result is None)
    agent.driver = ScriptedDriver(["Better."] * 9)
    assert run(agent.run("Again")).reason == ("max_iterations" if require_done else "answer")
    assert is_whole(agent.history)
