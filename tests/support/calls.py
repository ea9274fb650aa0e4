"""All calls of an answer, including those that must not be run, which `completion.tool_calls` leaves out."""

from dragoman.ir import Completion, ToolCall


def all_calls(completion: Completion) -> tuple[ToolCall, ...]:
    return completion.messages[0].tool_calls if completion.messages else ()
