"""All calls of an answer, also those that must not be run: `completion.tool_calls` has only the others."""

from dragoman.ir import Completion, ToolCall


def all_calls(completion: Completion) -> tuple[ToolCall, ...]:
    return completion.messages[0].tool_calls if completion.messages else ()
