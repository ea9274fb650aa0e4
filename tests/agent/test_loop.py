"""The loop, by scripted answers and the exact events they lead to."""

import asyncio
from typing import Any

import pytest

from dragoman.agent import (
    Agent,
    AlreadyRunning,
    Clock,
    Done,
    FinalEvent,
    Output,
    StepStartEvent,
    ToolContext,
    done,
    tool,
)
from dragoman.agent.history_repair import is_whole
from dragoman.agent.result_text import NO_ANSWER, SUMMARY_FAILED
from dragoman.drivers import Scripted, ScriptedDriver
from dragoman.errors import Overloaded
from dragoman.ir import (
    Completion,
    Failure,
    Finish,
    Image,
    Message,
    Reasoning,
    Refusal,
    Request,
    ServerToolCall,
    Signature,
    Text,
    ToolCall,
    ToolChoice,
    Usage,
)
from tests.support.agents import (
    agent_of,
    driver_of,
    final,
    result,
    results_in,
    run,
    run_events,
    step,
    story_of,
    text,
    types,
)
from tests.support.promises import promise


@tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@tool
async def shout(words: str) -> str:
    """Say it louder."""
    return words.upper()


ADD = ("add", {"a": 2, "b": 3})
SHOUT = ("shout", {"words": "hey"})


@promise("agent:run", "agent:only-final")
def test_an_answer_without_calls_gives_only_final() -> None:
    assert run_events(agent_of(["Hello."]), "Hi") == final("Hello.")


@promise("agent:event-order", "agent:steps")
def test_the_events_of_a_run_with_tools_in_exact_order() -> None:
    agent = agent_of(
        [
            Scripted(text="Let me see.", reasoning="Numbers.", calls=[ADD], usage=Usage(10, 5)),
            Scripted(calls=[SHOUT]),
            Scripted(text="Five.", reasoning="Done.", usage=Usage(20, 2)),
        ],
        tools=[add, shout],
    )
    assert run_events(agent) == [
        {"type": "reasoning", "content": "Numbers.", "timestamp": 1000.0},
        *text("Let me see."),
        {"type": "usage", "model": "scripted/test", "usage": {"input": 10, "output": 5}},
        *step(1, "call_1", "add", {"a": 2, "b": 3}),
        *result("call_1", "add", "5"),
        *step(2, "call_2", "shout", {"words": "hey"}),
        *result("call_2", "shout", "HEY"),
        {"type": "reasoning", "content": "Done.", "timestamp": 1000.0},
        {"type": "usage", "model": "scripted/test", "usage": {"input": 20, "output": 2}},
        *final("Five."),
    ]


@promise("agent:run")
def test_a_run_takes_text_parts_and_messages_with_and_without_an_event_loop() -> None:
    picture = Image("image/png", data="aGk=")
    agent = agent_of(["1", "2", "3", "4", "5"], output_cache=None)
    assert str(run(agent.run("one"))) == "1"
    assert run(agent.run([Text("two"), picture])).text == "2"
    assert agent.run_sync(Message("user", "three")).text == "3"
    assert [*agent.run_stream_sync([Text("four"), picture])] == [FinalEvent("4")]
    user_turns = [message for message in agent.history if message.role == "user"]
    assert [message.parts for message in user_turns] == [
        (Text("one"),),
        (Text("two"), picture),
        (Text("three"),),
        (Text("four"), picture),
    ]
    with pytest.raises(TypeError, match=r"opening: expected a text, a message, or texts.*, found ToolCall"):
        run(agent.run([ToolCall("c", "add", {})]))
    with pytest.raises(TypeError, match=r"found dict; earlier messages go into Agent\(history=...\)"):
        run(agent.run([{"role": "user", "content": "five"}]))  # type: ignore[list-item]
    with pytest.raises(ValueError, match="found nothing, and there is no history"):
        agent_of(["never"]).run_sync()
    assert run(agent.run()).text == "5"  # goes on with the history as it is
    assert driver_of(agent).requests[-1].messages[-1].text == "4"


@promise("agent:run")
def test_the_result_describes_the_run() -> None:
    agent = agent_of([Scripted(calls=[ADD, SHOUT]), "Done."], tools=[add, shout])
    ended = agent.run_sync("Go")
    assert (ended.text, ended.reason, ended.turns, ended.steps, ended.cancelled) == ("Done.", "answer", 2, 2, False)


@promise("agent:history")
def test_the_history_is_kept_between_runs_and_has_the_system_prompt_once() -> None:
    agent = agent_of([Scripted(calls=[ADD]), "Five.", "Still five."], tools=[add], system_prompt="Be brief.")
    agent.run_sync("2+3?")
    agent.run_sync("And now?")
    roles = [message.role for message in driver_of(agent).requests[-1].messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert [message.role for message in agent.history] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]


@promise("agent:history")
def test_one_run_at_a_time() -> None:
    async def twice() -> None:
        agent = agent_of([Scripted(text="slow", delay=5), "quick"])
        first = asyncio.create_task(agent.run("a"))
        while not driver_of(agent).requests:  # noqa: ASYNC110 - a script cannot wait for a test
            await asyncio.sleep(0.001)
        with pytest.raises(AlreadyRunning):
            await agent.run("b")
        agent.cancel()
        assert (await first).cancelled
        assert (await agent.run("c")).text == "quick"

    run(twice())


@promise("agent:switch-model")
def test_the_model_is_switched_between_runs_and_between_calls_with_everything_intact() -> None:
    signed = Message(
        "assistant",
        (
            Reasoning("thinking", Signature("anthropic", "sig")),
            ToolCall("toolu_1", "look", {}, signature=Signature("gemini", "thought")),
        ),
    )

    @tool
    def look(context: ToolContext) -> Image:
        """Look."""
        agent.driver = second
        assert context.call.id == "toolu_1"
        return Image("image/png", data="aGk=")

    first, second, third = (ScriptedDriver(script) for script in ([signed], ["A cat."], ["Still a cat."]))
    agent = Agent(first, tools=[look], output_cache=None)
    assert agent.run_sync("What is there?").text == "A cat."
    agent.driver = third
    assert agent.run_sync("Sure?").text == "Still a cat."
    for driver in (second, third):
        _, answer, results = driver.requests[0].messages[:3]
        assert answer == signed
        assert results.tool_results[0].tool_call_id == "toolu_1"
        assert results.tool_results[0].parts == (Image("image/png", data="aGk="),)


@promise("agent:calls-decide")
def test_the_calls_decide_not_the_stop_reason() -> None:
    with_calls = Completion((Message("assistant", (ToolCall("c1", "add", {"a": 1}),)),), Finish("stop"))
    without = Completion((Message("assistant", "Two."),), Finish("tool_calls"))
    assert types(run_events(agent_of([with_calls, without], tools=[add]))) == [
        "step_start",
        "tool_call",
        "tool_result",
        "step_complete",
        "final",
    ]


@promise("agent:calls-decide")
def test_a_call_that_was_cut_off_is_not_run() -> None:
    cut = Message("assistant", (ToolCall("c1", "add", arguments_text='{"a": 1', incomplete=True),))
    agent = agent_of([Completion((cut,), Finish("length")), "Sorry."], tools=[add])
    story = run_events(agent)
    assert story[1]["args"] == {"raw": '{"a": 1'}
    assert "was cut off before its end" in story[2]["result"]
    assert story[-1]["content"] == "Sorry."


@promise("agent:calls-decide")
def test_a_pause_of_the_provider_does_not_end_the_run() -> None:
    searching = Message(
        "assistant", (Text("Searching."), ServerToolCall("s1", "web_search", "anthropic", {"type": "server_tool_use"}))
    )
    agent = agent_of([Completion((searching,), Finish("pause")), "Found."])
    hosted = {"type": "hosted_call", "tool": "web_search", "tool_call_id": "s1"}
    assert run_events(agent) == [*text("Searching."), hosted, *final("Found.")]
    assert driver_of(agent).requests[1].messages[-1] == searching


@promise("agent:refusal")
def test_a_refusal_is_a_final_answer() -> None:
    refused = Completion((Message("assistant", (Refusal("I will not."),)),), Finish("refusal"))
    assert run_events(agent_of([refused])) == final("I will not.")


@promise("agent:empty-answer")
def test_an_empty_answer_gets_a_text_in_its_place_and_no_place_in_the_history() -> None:
    agent = agent_of([Scripted(), "Here."])
    assert run_events(agent) == final(NO_ANSWER)
    assert [message.role for message in agent.history] == ["user"]
    assert run_events(agent, "Hello?") == final("Here.")


@promise("agent:forced-choice")
@pytest.mark.parametrize("choice", ["required", "add", {"name": "add"}, ToolChoice("required", ("add", "shout"))])
def test_a_forced_choice_falls_back_to_auto_after_the_first_turn(choice: Any) -> None:
    agent = agent_of([Scripted(calls=[ADD]), "5", Scripted(calls=[ADD]), "5"], tools=[add, shout], tool_choice=choice)
    for _ in range(2):
        agent.run_sync("Go")
    modes = [request.tool_choice.mode for request in driver_of(agent).requests if request.tool_choice]
    assert modes == ["required", "auto", "required", "auto"]


@promise("agent:forced-choice")
def test_a_free_choice_stays() -> None:
    agent = agent_of([Scripted(calls=[ADD]), "5"], tools=[add], tool_choice="none")
    agent.run_sync("Go")
    assert [request.tool_choice for request in driver_of(agent).requests] == [ToolChoice("none")] * 2


# ── done ──────────────────────────────────────────────────────────────────────────────────────────────────────


@promise("agent:done", "agent:steps", "agent:no-open-calls")
def test_done_ends_the_run_with_its_message_and_what_came_after_it_is_answered_as_not_run() -> None:
    agent = agent_of([Scripted(calls=[ADD, ("done", {"message": "Five."}), SHOUT])], tools=[add, shout, done])
    assert run_events(agent) == [
        *step(1, "call_1", "add", {"a": 2, "b": 3}),
        *result("call_1", "add", "5"),
        *step(2, "call_2", "done", {"message": "Five."}),
        *result("call_2", "done", "Five."),
        *final("Five."),
    ]
    assert results_in(agent.history) == [
        ("call_1", "data", 5),
        ("call_2", "text", "Five."),
        ("call_3", "error", "This call was not run: the run was finished."),
    ]


@promise("agent:done")
def test_any_tool_may_say_that_the_run_is_done() -> None:
    @tool
    def submit(answer: str) -> None:
        """Submit."""
        raise Done(f"submitted {answer}")

    @tool(ends_run=True)
    def leave() -> Output:
        """Leave."""
        return Output("text", "left")

    agent = agent_of([Scripted(calls=[("submit", {"answer": "5"})])], tools=[submit])
    assert run_events(agent)[-1] == {"type": "final", "content": "submitted 5"}
    assert agent_of([Scripted(calls=[("leave", {})])], tools=[leave]).run_sync("Go").reason == "done"


@promise("agent:done")
def test_done_with_bad_arguments_does_not_end_the_run() -> None:
    agent = agent_of([Scripted(calls=[("done", {}), ADD]), "Five."], tools=[add, done])
    story = run_events(agent)
    assert types(story).count("step_start") == 2
    assert story[-1] == {"type": "final", "content": "Five."}


@promise("agent:require-done", "agent:hidden-message")
def test_where_done_is_required_words_alone_do_not_end_the_run() -> None:
    agent = agent_of(["Working.", Scripted(), Scripted(calls=[("done", {"message": "Ready."})])], require_done=True)
    wish = "Continue with the task. When it is complete, call `done` with the final answer."
    hidden = {"type": "hidden_user_message", "content": wish}
    assert run_events(agent) == [
        *text("Working."),
        hidden,
        hidden,
        *step(1, "call_1", "done", {"message": "Ready."}),
        *result("call_1", "done", "Ready."),
        *final("Ready."),
    ]


@promise("agent:hidden-message")
def test_a_hook_goes_on_in_the_users_name_unseen() -> None:
    wishes = iter(["You forgot the second point.", None])
    agent = agent_of(["First point.", "Second point."], on_stop=lambda _: next(wishes))
    assert run_events(agent) == [
        *text("First point."),
        {"type": "hidden_user_message", "content": "You forgot the second point."},
        *final("Second point."),
    ]
    assert driver_of(agent).requests[1].messages[-1].text == "You forgot the second point."
    assert [message.role for message in agent.history] == ["user", "assistant", "user", "assistant"]


@promise("agent:hidden-message")
def test_the_hook_may_be_async_and_sees_the_answer() -> None:
    seen = []

    async def check(answer: str) -> None:
        seen.append(answer)

    assert agent_of(["Fine."], on_stop=check).run_sync("Go").text == "Fine."
    assert seen == ["Fine."]


# ── the last turn ─────────────────────────────────────────────────────────────────────────────────────────────


@promise("agent:max-iterations")
def test_after_the_last_turn_comes_one_call_without_tools() -> None:
    agent = agent_of(
        [Scripted(calls=[ADD]), Scripted(calls=[ADD]), "Half done.", "Next."], tools=[add], max_iterations=2
    )
    story = run_events(agent)
    assert types(story)[-1] == "final"
    assert story[-1]["content"] == "[Stopped after 2 turns]\n\nHalf done."
    last = driver_of(agent).requests[2]
    assert last.tools == ()
    assert last.messages[-1].role == "user"
    assert is_whole(agent.history)
    assert agent.history[-1] == Message("assistant", story[-1]["content"])
    assert agent.run_sync("More").text == "Next."


@promise("agent:max-iterations")
@pytest.mark.parametrize("failing", [Overloaded(Failure("overloaded", "busy")), Scripted(), Scripted(calls=[ADD])])
def test_a_summary_that_fails_gives_a_fixed_text(failing: Any) -> None:
    agent = agent_of([Scripted(calls=[ADD]), failing], tools=[add], max_iterations=1)
    assert run_events(agent)[-1]["content"] == f"[Stopped after 1 turns]\n\n{SUMMARY_FAILED}"
    assert is_whole(agent.history)


@promise("agent:max-iterations")
def test_two_hundred_turns_are_the_usual_limit() -> None:
    agent = agent_of(lambda request: Scripted(calls=[ADD]) if request.tools else "Tired.", tools=[add])
    ended = agent.run_sync("Go")
    assert (ended.turns, ended.reason) == (200, "max_iterations")
    with pytest.raises(ValueError, match="at least 1"):
        agent_of([], max_iterations=0)


# ── calls of one turn ─────────────────────────────────────────────────────────────────────────────────────────


def _sleeper(log: list[str]) -> Any:
    @tool
    async def wait(name: str, seconds: float) -> str:
        """Wait."""
        log.append(f"{name} starts")
        await asyncio.sleep(seconds)
        log.append(f"{name} ends")
        return name

    return wait


WAITS = [("wait", {"name": "slow", "seconds": 0.3}), ("wait", {"name": "quick", "seconds": 0.0})]


@promise("agent:parallel-calls")
def test_calls_of_a_turn_run_together_and_results_keep_their_order() -> None:
    log: list[str] = []
    agent = agent_of([Scripted(calls=WAITS), "Done."], tools=[_sleeper(log)])
    assert run_events(agent) == [
        *step(1, "call_1", "wait", WAITS[0][1]),
        *step(2, "call_2", "wait", WAITS[1][1]),
        *result("call_1", "wait", "slow"),
        *result("call_2", "wait", "quick"),
        *final("Done."),
    ]
    assert log == ["slow starts", "quick starts", "quick ends", "slow ends"]
    assert [row[0] for row in results_in(agent.history)] == ["call_1", "call_2"]


@promise("agent:parallel-calls")
def test_one_after_the_other_where_asked_for() -> None:
    log: list[str] = []
    agent = agent_of([Scripted(calls=WAITS), "Done."], tools=[_sleeper(log)], parallel=False)
    assert run_events(agent) == [
        *step(1, "call_1", "wait", WAITS[0][1]),
        *result("call_1", "wait", "slow"),
        *step(2, "call_2", "wait", WAITS[1][1]),
        *result("call_2", "wait", "quick"),
        *final("Done."),
    ]
    assert log == ["slow starts", "slow ends", "quick starts", "quick ends"]


@promise("agent:parallel-calls")
def test_no_more_at_once_than_asked_for() -> None:
    running, most = 0, 0

    @tool
    async def work() -> None:
        """Work."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1

    agent_of([Scripted(calls=[("work", {})] * 7), "Done."], tools=[work], parallel=3).run_sync("Go")
    assert most == 3


@promise("agent:no-open-calls", "agent:steps")
def test_duplicate_ids_are_made_unique() -> None:
    def ask(request: Request) -> Message | str:
        count = sum(message.role == "assistant" for message in request.messages)
        call = ToolCall("call_0", "add", {"a": count}, invented_id=True)
        return Message("assistant", (call, call)) if count < 2 else "Done."

    agent = agent_of(ask, tools=[add])
    story = run_events(agent)
    assert [event["step_id"] for event in story if event["type"] == "step_start"] == [
        "call_0",
        "call_0_2",
        "call_0_3",
        "call_0_4",
    ]
    assert [event["step_number"] for event in story if event["type"] == "step_start"] == [1, 2, 3, 4]
    assert is_whole(agent.history)


@promise("agent:no-open-calls")
def test_a_driver_that_fails_leaves_a_valid_history() -> None:
    agent = agent_of([Scripted(calls=[ADD]), Overloaded(Failure("overloaded", "busy")), "Better."], tools=[add])
    with pytest.raises(Overloaded):
        agent.run_sync("Go")
    assert is_whole(agent.history)
    assert agent.run_sync().text == "Better."


@promise("agent:steps")
def test_titles_are_for_people() -> None:
    @tool(title="Weather report")
    def weather(city: str) -> str:
        """Weather."""
        return city

    start, call = run_events(agent_of([Scripted(calls=[("weather", {"city": "Rome"})]), "."], tools=[weather]))[:2]
    assert (start["title"], call["tool"], call["display_name"]) == ("Weather report", "weather", "Weather report")


@promise("agent:durations")
def test_durations_come_from_the_monotonic_clock_and_count_the_call_not_the_reader() -> None:
    ticks = iter([10.0, 10.25])
    agent = agent_of([Scripted(calls=[ADD]), "."], tools=[add], clock=Clock(lambda: 0.0, lambda: next(ticks)))
    assert [event["duration_ms"] for event in run_events(agent) if event["type"] == "step_complete"] == [250.0]


@promise("agent:deltas")
def test_deltas_are_emitted_as_they_come() -> None:
    agent = agent_of(
        [Scripted(text="One moment.", reasoning="So be it", calls=[ADD]), "It is five."], tools=[add], deltas=True
    )
    deltas = [(event["type"], event["content"]) for event in run_events(agent) if "content" in event]
    assert deltas == [
        ("reasoning_delta", "So"),
        ("reasoning_delta", " be"),
        ("reasoning_delta", " it"),
        ("text_delta", "One"),
        ("text_delta", " moment."),
        ("reasoning", "So be it"),
        ("text", "One moment."),
        ("text_delta", "It"),
        ("text_delta", " is"),
        ("text_delta", " five."),
        ("final", "It is five."),
    ]


@promise("agent:usage")
def test_tokens_are_added_up_per_model_and_calls_without_usage_do_not_count() -> None:
    agent = agent_of(
        [Scripted(calls=[ADD], usage=Usage(10, 5, cached=4)), Scripted(text="5", usage=Usage(20, 1)), "6"], tools=[add]
    )
    agent.run_sync("Go")
    agent.run_sync("Go")
    agent.driver = ScriptedDriver([Scripted(text=".", usage=Usage(1, 1, total=3))], name="other/model")
    agent.run_sync("Go")
    assert {name: (one.calls, one.usage) for name, one in agent.usage.items()} == {
        "scripted/test": (2, Usage(30, 6, cached=4)),
        "other/model": (1, Usage(1, 1, total=3)),
    }


@promise("agent:cancel", "agent:cancel-next")
def test_leaving_the_iteration_ends_the_run() -> None:
    async def leave() -> None:
        agent = agent_of([Scripted(calls=[ADD, SHOUT]), "Again."], tools=[add, shout])
        async for event in agent.run_stream("Go"):
            if isinstance(event, StepStartEvent):
                break
        assert await story_of(agent.run_stream("Once more")) == final("Again.")
        assert is_whole(agent.history)

    run(leave())
