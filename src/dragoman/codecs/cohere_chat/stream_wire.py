"""Events of a chat stream. Unknown keys are forbidden, and kept with the answer (codecs/unknown_keys.py).

`content`, `tool_calls` and `citations` hold one object each, under the plural names that hold lists in a whole
message; only the first event has (empty) lists there.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType


class ContentDelta(Struct, gc=False, forbid_unknown_fields=True):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: Raw | UnsetType = UNSET


class FunctionDelta(Struct, gc=False, forbid_unknown_fields=True):
    name: str | None = None
    arguments: str | None = None


class CallDelta(Struct, gc=False, forbid_unknown_fields=True):
    id: str | None = None
    type: Raw | UnsetType = UNSET
    function: FunctionDelta | None = None
    signature: Raw | UnsetType = UNSET


class MessageDelta(Struct, gc=False, forbid_unknown_fields=True):
    content: ContentDelta | list[Any] | None = None
    role: Raw | UnsetType = UNSET
    tool_plan: str | None = None
    tool_calls: CallDelta | list[Any] | None = None
    citations: Raw | UnsetType = UNSET


class Delta(Struct, gc=False, forbid_unknown_fields=True):
    message: MessageDelta | None = None
    finish_reason: str | None = None
    usage: Raw | UnsetType = UNSET
    error: str | None = None


class Event(Struct, gc=False, forbid_unknown_fields=True):
    type: str | None = None
    id: str | None = None
    index: int | None = None
    delta: Delta | None = None
    # An error that came instead of an event.
    message: Raw | UnsetType = UNSET
