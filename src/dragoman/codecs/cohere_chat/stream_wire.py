"""Events of a chat stream. Unknown keys are skipped: nothing here is written back.

`content`, `tool_calls` and `citations` hold one object each, under the plural names that hold lists in a whole
message; only the first event has (empty) lists there.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType


class ContentDelta(Struct, gc=False):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: Raw | UnsetType = UNSET


class FunctionDelta(Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class CallDelta(Struct, gc=False):
    id: str | None = None
    function: FunctionDelta | None = None
    signature: Raw | UnsetType = UNSET


class MessageDelta(Struct, gc=False):
    content: ContentDelta | list[Any] | None = None
    tool_plan: str | None = None
    tool_calls: CallDelta | list[Any] | None = None
    citations: Raw | UnsetType = UNSET


class Delta(Struct, gc=False):
    message: MessageDelta | None = None
    finish_reason: str | None = None
    usage: Raw | UnsetType = UNSET
    error: str | None = None


class Event(Struct, gc=False):
    type: str | None = None
    id: str | None = None
    index: int | None = None
    delta: Delta | None = None
    # An error that came instead of an event.
    message: Raw | UnsetType = UNSET
