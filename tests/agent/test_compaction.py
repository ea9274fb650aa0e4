"""Histories that are summed up."""

from typing import Any

import pytest

from dragoman import ir
from dragoman.agent import Agent, Compaction, tool
from dragoman.agent.compaction import summary_message, window_of
from dragoman.agent.history_repair import is_whole
from dragoman.drivers import Scripted, ScriptedDriver
from dragoman.errors import Overloaded
from dragoman.ir import Failure, Request, Usage
from tests.support.agents import CLOCK, agent_of, driver_of, final, result, run, run_events, step
from tests.support.promises import promise


@tool
def look(place: str) -> str:
    """Look."""
    return f"nothing in {place}"


LOOK = ("look", {"place": "the attic"})
BIG = Usage(70, 15)
SMALL = Usage(10, 5)
SUMMARY = "<retain>\nkey: 4711\n</retain>\n<summary>We looked around.</summary>"
OPTIONS = Compaction(context_window=100, keep_turns=1)


def texts_of(request: Request) -> list[str]:
    return [f"{message.role}: {message.text}" for message in request.messages]


@promise("agent:compaction", "agent:event-order")
def test_at_its_share_of_the_window_the_history_is_summed_up() -> None:
    agent = agent_of(
        [
            Scripted(calls=[LOOK], usage=SMALL),
            Scripted(calls=[LOOK], usage=BIG),
            Scripted(text=SUMMARY, usage=SMALL),
            "Nothing there.",
        ],
        tools=[look],
        system_prompt="Be brief.",
        compaction=OPTIONS,
    )
    usage = {"type": "usage", "model": "scripted/test"}
    assert run_events(agent, "Look around") == [
        {**usage, "usage": {"input": 10, "output": 5}},
        *step(1, "call_1", "look", LOOK[1]),
        *result("call_1", "look", "nothing in the attic"),
        {**usage, "usage": {"input": 70, "output": 15}},
        *step(2, "call_2", "look", LOOK[1]),
        *result("call_2", "look", "nothing in the attic"),
        {"type": "compaction_start", "messages": 5, "tokens": 90},
        {**usage, "usage": {"input": 10, "output": 5}},
        {"type": "compaction_complete", "compacted": True, "messages": 3},
        *final("Nothing there."),
    ]
    summarising, after = driver_of(agent).requests[2:]
    assert summarising.tools == ()
    assert texts_of(summarising)[:2] == ["system: Be brief.", "user: Look around"]
    assert [message.role for message in after.messages] == ["system", "user", "assistant", "tool"]
    assert "key: 4711" in after.messages[1].text
    assert "We looked around." in after.messages[1].text
    assert after.messages[2].tool_calls[0].id == after.messages[3].tool_results[0].tool_call_id == "call_2"
    assert is_whole(agent.history)


@promise("agent:compaction")
@pytest.mark.parametrize("keep", [0, 1, 2, 3, 4])
def test_pairs_are_never_split(keep: int) -> None:
    script: list[Any] = [Scripted(calls=[LOOK, LOOK]), "a", Scripted(calls=[LOOK]), "b", SUMMARY]
    agent = agent_of(script, tools=[look], compaction=Compaction(keep_turns=keep))
    agent.run_sync("one")
    agent.run_sync("two")
    before = agent.history
    assert run(agent.compact()) is True
    assert is_whole(agent.history)
    assert agent.history[0].role == "user"
    kept = agent.history[1:]
    assert kept == before[len(before) - len(kept) :]
    assert sum(message.role != "tool" for message in kept) == keep


@promise("agent:compaction")
def test_below_its_share_nothing_happens() -> None:
    agent = agent_of([Scripted(calls=[LOOK], usage=Usage(65, 9)), "."], tools=[look], compaction=OPTIONS)
    assert "compaction_start" not in str(run_events(agent))


@promise("agent:compaction")
def test_what_has_come_in_since_the_last_count_fills_the_window_too() -> None:
    @tool
    def look_far() -> str:
        """Look far."""
        return "x" * 400

    script: list[Any] = [Scripted(calls=[("look_far", {})], usage=SMALL), SUMMARY, "."]
    story = run_events(agent_of(script, tools=[look_far], compaction=OPTIONS))
    assert [event["tokens"] for event in story if event["type"] == "compaction_start"] == [115]


@promise("agent:compaction-window")
def test_an_unknown_context_window_turns_it_off_unless_the_driver_knows() -> None:
    script: list[Any] = [Scripted(calls=[LOOK], usage=Usage(10**9, 1)), SUMMARY, "."]
    assert "compaction_start" not in str(
        run_events(agent_of(script, tools=[look], compaction=Compaction(keep_turns=1)))
    )

    class Knowing(ScriptedDriver):
        context_window = 1000

    knowing = Agent(Knowing(script), tools=[look], clock=CLOCK, compaction=Compaction(keep_turns=1))
    assert "compaction_start" in str(run_events(knowing))
    assert "compaction_start" not in str(run_events(Agent(Knowing(script), tools=[look], compaction=None)))


@promise("agent:compaction-window")
@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("anthropic/claude-sonnet-5", 1_000_000),
        ("bedrock/eu.anthropic.claude-opus-4-8", 1_000_000),
        ("gemini/gemini-3-flash-preview", 1_048_576),
        ("openai/gpt-5.6", 1_050_000),
        ("openai-chat/gpt-4o-mini", 128_000),
        ("openai/o3", 200_000),
        ("ollama/gpt-oss-20b", None),
        ("openai-compatible/gpt-5", None),
        ("openai/some-new-model", None),
        ("scripted/test", None),
    ],
)
def test_windows_come_from_the_catalogue(name: str, tokens: int | None) -> None:
    assert window_of(name) == tokens
    script: list[Any] = [Scripted(calls=[LOOK], usage=Usage(tokens or 10**9, 0)), SUMMARY, "."]
    driver = ScriptedDriver(script, name=name)
    story = run_events(Agent(driver, tools=[look], clock=CLOCK, compaction=Compaction(keep_turns=1)))
    assert ("compaction_start" in str(story)) is (tokens is not None)


@promise("agent:compaction-window")
def test_compaction_can_be_requested_at_any_time() -> None:
    agent = agent_of(["one", "two", "All in short."], compaction=None)
    agent.run_sync("a")
    agent.run_sync("b")
    assert run(agent.compact()) is True
    assert "All in short." in agent.history[0].text  # no tags: the whole answer is the summary
    assert [message.text for message in agent.history[1:]] == ["b", "two"]
    assert len(driver_of(agent).requests) == 3
    assert run(agent_of([]).compact()) is False  # nothing to sum up, so no model is called


@promise("agent:compaction-failure")
@pytest.mark.parametrize("failing", ["", "  ", Overloaded(Failure("overloaded", "busy"))])
def test_a_summary_that_is_empty_or_fails_leaves_the_history_as_it_was(failing: Any) -> None:
    agent = agent_of(
        [Scripted(calls=[LOOK], usage=BIG), failing, Scripted(calls=[LOOK], usage=BIG), "Fine."],
        tools=[look],
        compaction=OPTIONS,
    )
    story = run_events(agent)
    complete = [event for event in story if event["type"] == "compaction_complete"]
    assert [(event["compacted"], event["messages"]) for event in complete] == [(False, 3)]  # not tried again at once
    assert complete[0]["reason"]
    assert story[-1]["content"] == "Fine."
    assert [message.role for message in agent.history] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]


@promise("agent:compaction-retained")
def test_what_was_retained_once_is_retained_for_ever() -> None:
    second = "<retain>door: green</retain><summary>Short.</summary>"  # forgets the key
    agent = agent_of(["1", SUMMARY, "2", second, "3", "No tags at all.", "4"], compaction=Compaction(keep_turns=1))
    for words in "abc":
        agent.run_sync(words)
        assert run(agent.compact()) is True
    agent.run_sync("d")
    opening = driver_of(agent).requests[-1].messages[0].text
    assert opening.count("key: 4711") == 1
    assert opening.count("door: green") == 1
    assert "No tags at all." in opening
    assert "We looked around." not in opening


@pytest.mark.parametrize(
    ("text", "retained", "summary"),
    [
        ("<retain>a</retain><summary>s</summary>", "a", "s"),
        ("<RETAIN>a\n a \n</Retain> x <retain>b</retain>", "a\nb", "x"),
        ("<retain>a<retain>b</retain></retain> x", "a<retain>b", "</retain> x"),
        ("<retain>a", "", "<retain>a"),
        ("</retain>a<retain>", "", "</retain>a<retain>"),
        ("<summary>s<summary>t</summary>u</summary>", "", "s<summary>t"),
        ("all of it", "", "all of it"),
    ],
)
def test_tags_without_their_pair_are_text(text: str, retained: str, summary: str) -> None:
    message = summary_message([], text)
    parts = [part.text.partition("\n")[2] for part in message.parts if isinstance(part, ir.Text)]
    assert parts == [part for part in (retained, summary) if part]
