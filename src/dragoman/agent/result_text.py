"""Results as text for people and logs, and the fixed texts that the agent itself sends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dragoman.drivers.typed_output import TOOL_NAME
from dragoman.ir import AnyPart, Audio, Document, Image, Text, ToolResult, WithheldCall
from dragoman.ir.values import compact_text

NO_ANSWER = "The model gave no answer."
NOT_RUN = "This call was not run: {reason}."
WITHHELD = "The calls of this answer were not run: {reason}."
CUT = "the call of {name} was cut off before its end and did not run; make it again"
WAITING = "Waiting for a decision about: {names}."
GIVEN_UP = "{name} has failed {count} times one after the other and is not run again in this run; go on without it"
CANCELLED = "This call was cancelled before it finished."
MAX_ITERATIONS = "[Stopped after {count} turns]"
SUMMARY_FAILED = "The task is not finished, and no summary of it could be made."
SUMMARISE = (
    "You have reached the limit of turns, and no tools are left. Summarise for the user what was done, what was found "
    "out, and what is still open."
)
CONTINUE = "Continue with the task. When it is complete, call `{done}` with the final answer."

_MARKS: Mapping[type, str] = {Image: "[image]", Document: "[document]", Audio: "[audio]"}
_SCREENSHOTS = frozenset({"image/png", "image/jpeg"})


def is_final(name: str) -> bool:
    """Return whether this is the tool that takes the answer."""
    return name == TOOL_NAME


def not_run(withheld: WithheldCall) -> str:
    """Return what the model reads about a call that must not run."""
    if withheld.reason == "cut":
        return CUT.format(name=withheld.call.name)
    return NOT_RUN.format(reason=withheld.explanation)


def parts_text(parts: Iterable[AnyPart]) -> str:
    """Return text parts joined, with marks for other parts."""
    return "".join(part.text if isinstance(part, Text) else _MARKS.get(type(part), "[other]") for part in parts)


def result_text(result: ToolResult) -> str:
    if result.parts:
        return parts_text(result.parts)
    value = result.value_held
    if isinstance(value, str):
        return value
    if result.kind in {"text", "error"} and isinstance(result.value, str):
        return str(result.value)
    return compact_text(value)


def screenshot_of(result: ToolResult) -> str | None:
    """Return the first PNG or JPEG as bare base64."""
    for part in result.parts:
        if isinstance(part, Image):
            found = part.data if part.media_type in _SCREENSHOTS else None
            if part.url and part.url.startswith(("data:image/png;base64,", "data:image/jpeg;base64,")):
                found = part.url.partition(",")[2]
            if found:
                return found
    return None
