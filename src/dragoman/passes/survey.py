"""One look over a request: does anything in it need a pass for this target? Most agent histories do not.

Conservative: True may be a false alarm, False never is. The passes themselves decide what to change.
"""

from __future__ import annotations

from dragoman.codecs.profile import Profile
from dragoman.codecs.reading import WITHIN
from dragoman.ir import Message, Metadata, Request, Text, ToolCall, ToolResult
from dragoman.ir.messages import content_held


def needs_passes(request: Request, profile: Profile) -> bool:
    family = profile.family
    if request.metadata is not None and _foreign(request.metadata, family):
        return True
    tools = request.tools
    matches_name = profile.tool_name.fullmatch
    for tool in tools:
        metadata = getattr(tool, "metadata", None)
        if matches_name(tool.name) is None or (metadata is not None and _foreign(metadata, family)):
            return True
    if not tools and (request.tool_choice is not None or request.parallel_tool_calls is not None):
        return True
    if request.stop and profile.stop_limit is not None:
        return True
    return _messages_need_passes(request.messages, profile, has_tools=bool(tools))


def _messages_need_passes(  # noqa: C901, PLR0911, PLR0912  one loop: the hot path of every translation
    messages: tuple[Message, ...], profile: Profile, *, has_tools: bool
) -> bool:
    """Turn shape, blank text, ids and names, looked at once."""
    family = profile.family
    blank_text = profile.blank_text
    matches_id = profile.call_id.fullmatch if profile.call_id is not None else None
    matches_name = profile.tool_name.fullmatch
    system_field = profile.system == "field"
    seen: set[str] = set()
    names: set[str] = set()
    waiting: list[str] = []
    previous = "system"
    for message in messages:
        role = message.role
        if message.metadata is not None and _foreign(message.metadata, family):
            return True
        content = content_held(message)
        if role == "tool":
            for part in content:
                if type(part) is not ToolResult or not waiting or part.tool_call_id != waiting.pop(0) or not part.name:
                    return True
                if part.metadata is not None and _foreign(part.metadata, family):
                    return True
            previous = role
            continue
        if waiting or (role == "system" and system_field and previous != "system"):
            return True
        if role == "assistant":
            if profile.merge_model_turns and previous == "assistant":
                return True
            if previous == "system" and profile.first_turn_user:
                return True
        previous = role
        if type(content) is str:
            if not blank_text and (not content or content.isspace()):
                return True
            continue
        if not content:
            return True
        for part in content:
            kind = type(part)
            if kind is ToolCall:
                call_id = part.id  # type: ignore[union-attr]
                if call_id in seen or (matches_id is not None and matches_id(call_id) is None):
                    return True
                seen.add(call_id)
                waiting.append(call_id)
                if part.name not in names:  # type: ignore[union-attr]
                    if matches_name(part.name) is None:  # type: ignore[union-attr]
                        return True
                    names.add(part.name)  # type: ignore[union-attr]
            elif kind is Text and not blank_text and (not part.text or part.text.isspace()):  # type: ignore[union-attr]
                return True
            metadata = getattr(part, "metadata", None)
            if metadata is not None and _foreign(metadata, family):
                return True
    if waiting or (seen and not has_tools and profile.tools_with_calls):
        return True
    return previous == "system" or (previous == "assistant" and profile.final_assistant != "any")


def _foreign(metadata: Metadata, family: str) -> bool:
    """Whether another family said something here that is more than spelling."""
    return any(
        key[:1] != "~" or key.startswith(WITHIN)
        for owner, entries in metadata.items()
        if owner != family
        for key in entries
    )
