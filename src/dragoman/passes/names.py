"""Tool names that the target refuses get an alias, the same on definition, choice, call and result.

The alias depends on the name alone, so the client's request is enough to restore the name in an answer.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from msgspec import structs

from dragoman.ir import AnyPart, Message, Request, Text, ToolCall, ToolResult
from dragoman.ir.notes import TOOL_REFERENCE, has_note
from dragoman.losses import LossLog
from dragoman.profile import Profile

_UNSAFE = re.compile(r"[^a-zA-Z0-9_]")
_KEPT = 48


def name_alias(name: str, profile: Profile) -> str:
    """The name itself if the target takes it, else a readable alias with a short hash of the whole name."""
    if profile.tool_name.fullmatch(name) is not None:
        return name
    digest = hashlib.blake2s(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    readable = _UNSAFE.sub("_", name)[:_KEPT]
    return f"{readable}_{digest}" if name[:1].isalpha() else f"t_{readable}_{digest}"


def alias_names(request: Request, profile: Profile, log: LossLog) -> Request:
    def alias(name: str) -> str:
        return name_alias(name, profile)

    tools = []
    for tool in request.tools:
        if alias(tool.name) == tool.name or type(tool).__name__ == "ProviderTool":
            tools.append(tool)
            continue
        renamed = log.replace(tool, name=alias(tool.name))
        log.degrade(tool, "name", f"tool name {tool.name!r}", f"sent as {renamed.name!r}: this API refuses the name")
        tools.append(renamed)
    choice = request.tool_choice
    if choice is not None and any(alias(name) != name for name in choice.names):
        choice = structs.replace(choice, names=tuple(alias(name) for name in choice.names))
    messages = tuple(_alias_message(message, profile, log) for message in request.messages)
    return structs.replace(request, tools=tuple(tools), tool_choice=choice, messages=messages)


def _alias_part(part: AnyPart, profile: Profile, log: LossLog) -> AnyPart:
    """Return the part with the alias of the tool that it names; the same object if there is none."""
    renamed: AnyPart = part
    if isinstance(part, ToolCall | ToolResult) and (alias := name_alias(part.name, profile)) != part.name:
        renamed = structs.replace(part, name=alias)
    elif type(part) is Text and has_note(part.metadata, TOOL_REFERENCE):
        alias = name_alias(part.text, profile)
        renamed = part if alias == part.text else structs.replace(part, text=alias)
    if type(renamed) is ToolResult and renamed.parts:
        pieces: Any = tuple([_alias_part(piece, profile, log) for piece in renamed.parts])
        if any(new is not old for new, old in zip(pieces, renamed.parts, strict=True)):
            renamed = structs.replace(renamed, parts=pieces)
    if renamed is not part:
        log.replaced(renamed, part)
    return renamed


def _alias_message(message: Message, profile: Profile, log: LossLog) -> Message:
    changed = False
    parts: list[AnyPart] = []
    for part in message.parts:
        renamed = _alias_part(part, profile, log)
        changed = changed or renamed is not part
        parts.append(renamed)
    if not changed:
        return message
    return log.replace(message, parts=tuple(parts))
