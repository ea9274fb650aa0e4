"""One answer as a record: only the assistant's message, without what an API adds to it."""

from __future__ import annotations

from dragoman.ir import Completion, Finish, Message, split_calls
from dragoman.losses import LossLog

_OF_AN_ANSWER = {"id": "id of the answer", "model": "model name", "created": "date", "usage": "token counts"}
_TOLD_BY_THE_PARTS = frozenset({"stop", "tool_calls"})


def only_message(completion: Completion, log: LossLog, *, holds: frozenset[str] = frozenset()) -> Message:
    """Return the message of the first candidate; other data of the answer is reported unless the format `holds` it."""
    why = "a stored answer is the message alone"
    for name, what in _OF_AN_ANSWER.items():
        if name not in holds and getattr(completion, name) is not None:
            log.note(completion, name, what, why)
    for message in completion.messages[1:]:
        log.drop(message, "", "another candidate", "a history holds one answer")
    finish = completion.finish
    if finish is not None and "finish" not in holds:
        if finish.reason not in _TOLD_BY_THE_PARTS:
            log.drop(completion, "finish", f"finish reason {finish.reason!r}", why)
        if finish.stop_sequence is not None:
            log.drop(completion, "finish.stop_sequence", "matched stop sequence", why)
    message = completion.messages[0] if completion.messages else Message("assistant", ())
    return message if "finish" in holds else _without_withheld(message, finish, log)


def _without_withheld(message: Message, finish: Finish | None, log: LossLog) -> Message:
    """Drop calls that must not be run: a record without a finish reason cannot distinguish them."""
    withheld = {id(one.call) for one in split_calls(message, finish)[1]}
    if not withheld:
        return message
    for call in message.tool_calls:
        if id(call) in withheld:
            log.drop(call, "", "call that must not be run", "a stored answer does not say that it was blocked or cut")
    return log.replace(message, parts=tuple(part for part in message.parts if id(part) not in withheld))


def finish_with(message: Message, finish: Finish | None = None) -> Finish | None:
    """Return finish reason `tool_calls` for a message with calls, if the record has no reason or the usual one.

    With an unknown reason, calls do not prove that the answer is complete: the reason stays unknown (law 7).
    """
    if message.tool_calls and (finish is None or finish.reason == "stop"):
        return Finish("tool_calls", None if finish is None else finish.raw)
    return finish
