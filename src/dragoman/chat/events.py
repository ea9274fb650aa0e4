"""Events of a conversation, for front ends. `Activity` wraps the agent's own events."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from dragoman.agent import AnyAgentEvent
from dragoman.chat.entries import Entry, Status


class ChatEvent(Struct, frozen=True, omit_defaults=True, tag_field="type"):
    """Base of all chat events."""


class Said(ChatEvent, frozen=True, tag="said"):
    """The user's entry, and the models it is sent to; none for a memo."""

    entry: Entry
    models: tuple[str, ...] = ()


class AnswerStarted(ChatEvent, frozen=True, tag="answer_started"):
    answer: str
    turn: str
    model: str
    replaces: str = ""
    """The answer that this one replaces."""


class Activity(ChatEvent, frozen=True, tag="activity"):
    answer: str
    model: str
    event: AnyAgentEvent


class PermissionAsked(ChatEvent, frozen=True, tag="permission_asked"):
    """Answered by `ChatService.permit`; until then the call waits."""

    id: str
    answer: str
    model: str
    tool: str
    arguments: dict[str, Any]
    tool_call_id: str = ""


class PermissionSettled(ChatEvent, frozen=True, tag="permission_settled"):
    id: str
    allowed: bool


class AnswerEnded(ChatEvent, frozen=True, tag="answer_ended"):
    """`entries` are the stored form of the answer and replace everything shown while it streamed."""

    answer: str
    turn: str
    model: str
    status: Status
    error: str = ""
    entries: tuple[Entry, ...] = ()


class TurnEnded(ChatEvent, frozen=True, tag="turn_ended"):
    turn: str


class Notice(ChatEvent, frozen=True, tag="notice"):
    text: str
    level: Literal["info", "warning"] = "info"
    model: str = ""


class Changed(ChatEvent, frozen=True, tag="changed"):
    """The name, the system prompt or a setting changed: read the conversation again."""


AnyChatEvent: TypeAlias = (
    Said | AnswerStarted | Activity | PermissionAsked | PermissionSettled | AnswerEnded | TurnEnded | Notice | Changed
)
