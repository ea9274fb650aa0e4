"""Instructions that depend on something, history as it is sent, and requests that were too long."""

from collections.abc import Sequence
from typing import Annotated, Any

from dragoman.agent import Compaction, Depends, tool
from dragoman.agent.compaction import is_context_error
from dragoman.agent.history_repair import is_whole
from dragoman.drivers import Scripted
from dragoman.errors import InvalidRequest, RequestTooLarge
from dragoman.ir import Failure, Message, Request
from tests.support.agents import agent_of, driver_of, run
from tests.support.promises import promise


@tool
def look() -> str:
    """Look."""
    return "seen"


def user() -> str:
    return "nobody"


@promise("agent:instructions")
def test_instructions_are_functions_of_dependencies_called_before_every_request() -> None:
    called: list[str] = []

    def greet(name: Annotated[str, Depends(user)]) -> str:
        called.append(name)
        return f"The user is {name}, request {len(called)}."

    async def nothing() -> None:
        return None

    agent = agent_of(
        [Scripted(calls=[("look", {})]), "Ok."],
        tools=[look],
        system_prompt="Be brief.",
        instructions=["Be kind.", greet, nothing],
        overrides={user: lambda: "Ada"},
    )
    run(agent.run("Go"))
    assert called == ["Ada", "Ada"]
    systems = [request.messages[0].text for request in driver_of(agent).requests]
    assert systems == [f"Be brief.\n\nBe kind.\n\nThe user is Ada, request {count}." for count in (1, 2)]
    assert all(message.role != "system" for message in agent.history)


@promise("agent:instructions")
def test_history_processors_change_what_is_sent_and_nothing_else() -> None:
    def last_two(messages: Sequence[Message]) -> Sequence[Message]:
        return messages[-2:]

    async def marked(messages: Sequence[Message]) -> Sequence[Message]:
        return [Message("user", "(shortened)"), *messages]

    agent = agent_of(
        [Scripted(calls=[("look", {})]), "One.", "Two."], tools=[look], history_processors=[last_two, marked]
    )
    run(agent.run("First"))
    run(agent.run("Second"))
    assert [message.role for message in agent.history] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
    sent = [[message.role for message in request.messages] for request in driver_of(agent).requests]
    assert sent == [["user", "user"], ["user", "assistant", "tool"], ["user", "assistant", "user"]]


@promise("agent:instructions")
def test_a_processor_that_splits_a_pair_is_repaired() -> None:
    agent = agent_of(
        [Scripted(calls=[("look", {})]), "Ok."],
        tools=[look],
        history_processors=lambda messages: [*messages[:1], *messages[2:]],
    )
    run(agent.run("Go"))
    assert all(is_whole(request.messages) for request in driver_of(agent).requests)


TOO_LONG = InvalidRequest(Failure("invalid_request", "prompt is too long: 210000 tokens > 200000 maximum", 400))


@promise("agent:context-error")
def test_a_request_that_is_too_long_is_compacted_and_sent_again() -> None:
    script: list[Any] = ["One.", "Two.", "Three.", TOO_LONG, "<summary>All well.</summary>", "Four."]
    agent = agent_of(script, compaction=Compaction(keep_turns=1))
    for question in ("a", "b", "c"):
        run(agent.run(question))
    result = run(agent.run("d"))
    assert result.text == "Four."
    assert "All well." in agent.history[0].text
    assert len(agent.history) == 3


@promise("agent:context-error")
def test_a_summary_that_is_too_long_itself_is_made_of_the_later_half() -> None:
    lengths: list[int] = []

    def answer(request: Request) -> Any:
        lengths.append(len(request.messages))
        if len(request.messages) > 4:
            return RequestTooLarge(Failure("too_large", "too large", 413))
        return "<summary>short</summary>"

    agent = agent_of(answer, history=[Message("user", "x"), Message("assistant", "y")] * 4, compaction=Compaction())
    assert run(agent.run("z")).text
    assert lengths[0] == 9
    assert is_whole(agent.history)


@promise("agent:context-error")
def test_which_errors_are_about_the_context() -> None:
    yes = [
        "prompt is too long: 210000 tokens > 200000 maximum",
        "Your input exceeds the context window of this model.",
        "This model's maximum context length is 128000 tokens.",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "too many tokens: size limit exceeded by 100 tokens.",
        "Input is too long for requested model.",
    ]
    no = ["Invalid value: 'foo'.", "max_tokens: must be at least 1", "messages.0: text must not be empty"]
    for words, expected in ((yes, True), (no, False)):
        for message in words:
            assert is_context_error(InvalidRequest(Failure("invalid_request", message, 400))) is expected, message
    assert is_context_error(InvalidRequest(Failure("invalid_request", "no", 400, code="context_length_exceeded")))
