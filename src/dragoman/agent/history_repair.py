"""Repairs histories so that any provider accepts them: every call answered, every result with its call (law 8)."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.ir import Message, Request
from dragoman.losses import LossLog
from dragoman.passes.pairing import pair_results
from dragoman.profile import Profile

_ANYTHING = Profile(name="history", family="")


def is_whole(messages: Sequence[Message]) -> bool:
    """Whether each turn of calls is followed by exactly its results."""
    expected: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if message.role == "tool":
            if [result.tool_call_id for result in message.tool_results] != expected or not expected:
                return False
            expected = []
            continue
        if expected:
            return False
        expected = [call.id for call in message.tool_calls]
        if len(seen) + len(expected) != len(seen.union(expected)):
            return False
        seen.update(expected)
    return not expected


def heal(messages: Sequence[Message]) -> list[Message]:
    """Return the history with dangling calls answered by errors and orphaned results left out."""
    if is_whole(messages):
        return list(messages)
    return list(pair_results(Request(None, tuple(messages)), _ANYTHING, LossLog()).messages)
