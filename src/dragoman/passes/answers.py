"""What makes an answer fit the client that asked: names and kinds of tools as that client declared them."""

from __future__ import annotations

from msgspec import UNSET, structs

from dragoman.ir import AnyEvent, AnyPart, Completion, CustomTool, Message, PartStart, Request, ToolCall
from dragoman.ir.parts import arguments_held
from dragoman.losses import LossLog
from dragoman.passes.names import name_alias
from dragoman.passes.private import report_private_answer
from dragoman.profile import STRICTEST_NAMES, Profile


def legalise_answer(completion: Completion, profile: Profile, request: Request | None, log: LossLog) -> Completion:
    """Reports what only the answering family understands; restores the client's tools where its request is known."""
    report_private_answer(completion, profile, log)
    if request is None or not request.tools or not any(message.tool_calls for message in completion.messages):
        return completion
    messages = tuple(_restored(message, request, log) for message in completion.messages)
    return structs.replace(completion, messages=messages)


def _restored(message: Message, request: Request, log: LossLog) -> Message:
    names = {tool.name for tool in request.tools}
    custom = {tool.name for tool in request.tools if isinstance(tool, CustomTool)}
    parts: list[AnyPart] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            name = part.name if part.name in names else _original_name(part.name, names)
            kept = _as_declared(part, name, custom=name in custom)
            if kept is not part:
                log.replaced(kept, part)
            parts.append(kept)
        else:
            parts.append(part)
    restored = structs.replace(message, parts=tuple(parts))
    log.replaced(restored, message)
    return restored


def _original_name(name: str, names: set[str]) -> str:
    return next((known for known in sorted(names) if name_alias(known, STRICTEST_NAMES) == name), name)


def _as_declared(call: ToolCall, name: str, *, custom: bool) -> ToolCall:
    """A custom tool that crossed as a function with one text argument is a custom tool again."""
    if custom and not call.custom and arguments_held(call) is not UNSET:
        text = call.arguments.get("input")
        if isinstance(text, str) and len(call.arguments) == 1:
            return structs.replace(call, name=name, custom=True, arguments_text=text)
    return call if name == call.name else structs.replace(call, name=name)


def restored_events(events: list[AnyEvent], request: Request) -> list[AnyEvent]:
    """The same for a stream: names return at the start of a call."""
    names = {tool.name for tool in request.tools}
    return [
        structs.replace(event, part=structs.replace(event.part, name=_original_name(event.part.name, names)))
        if isinstance(event, PartStart) and isinstance(event.part, ToolCall) and event.part.name not in names
        else event
        for event in events
    ]
