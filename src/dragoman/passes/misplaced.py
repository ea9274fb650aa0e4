"""Refuses calls outside assistant messages, and results outside tool messages."""

from __future__ import annotations

from dragoman.errors import EncodeError
from dragoman.ir import Request, ToolCall, ToolResult
from dragoman.losses import LossLog
from dragoman.profile import Profile


def check_places(request: Request, profile: Profile, log: LossLog) -> Request:
    del log
    if not request.messages:
        raise EncodeError(path="$.messages", reason="a request needs at least one message", target=profile.name)
    for index, message in enumerate(request.messages):
        for place, part in enumerate(message.parts):
            if isinstance(part, ToolResult) != (message.role == "tool"):
                raise _placement_error(index, place, "tool messages hold tool results and nothing else", profile)
            if isinstance(part, ToolCall) and message.role != "assistant":
                raise _placement_error(index, place, f"a message of role {message.role} makes no calls", profile)
    return request


def _placement_error(message_index: int, part_index: int, reason: str, profile: Profile) -> EncodeError:
    return EncodeError(path=f"$.messages[{message_index}].parts[{part_index}]", reason=reason, target=profile.name)
