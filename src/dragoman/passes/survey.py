"""One look over a request: does anything in it need a pass for this target? Most agent histories do not.

Conservative: True may be a false alarm, False never is. The passes themselves decide what to change.
"""

from __future__ import annotations

from dragoman.ir import AnyPart, AnyTool, Message, Request, Text, ToolCall, ToolResult
from dragoman.ir.messages import content_held
from dragoman.passes.private import says_more
from dragoman.profile import NEVER, Profile

_MEMORY = 8192


class Surveyor:
    """The look for one target. Ids and names found good are remembered: an agent sends its history again and again."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._good_names: set[str] = set()
        self._good_ids: set[str] = set()

    def needs_passes(self, request: Request) -> bool:
        profile = self.profile
        tools = request.tools
        if request.metadata is not None and says_more(request.metadata, profile.family):
            return True
        if self._tools_need_passes(tools) or (request.tool_choice is not None and request.tool_choice.names):
            return True
        if not tools and (request.tool_choice is not None or request.parallel_tool_calls is not None):
            return True
        if request.stop and profile.stop_limit is not None:
            return True
        if request.candidates is not None and request.candidates < 1:
            return True
        for settings in (request.tool_choice, request.reasoning, request.output):
            if settings is not None and settings.metadata is not None and says_more(settings.metadata, profile.family):
                return True
        return self._messages_need_passes(request.messages, has_tools=bool(tools))

    def _tools_need_passes(self, tools: tuple[AnyTool, ...]) -> bool:
        for tool in tools:
            if tool.name not in self._good_names and not self._is_good_name(tool.name):
                return True
            metadata = getattr(tool, "metadata", None)
            if metadata is not None and says_more(metadata, self.profile.family):
                return True
        return len(tools) > 1 and len({tool.name for tool in tools}) < len(tools)

    def _messages_need_passes(self, messages: tuple[Message, ...], *, has_tools: bool) -> bool:
        """Turn shape, blank text, ids and names, looked at once."""
        profile = self.profile
        family = profile.family
        seen: set[str] = set()
        waiting: list[str] = []
        previous = "system"
        for message in messages:
            role = message.role
            if message.metadata is not None and says_more(message.metadata, family):
                return True
            content = content_held(message)
            if role == "tool":
                if self._results_need_passes(content, waiting):  # type: ignore[arg-type]
                    return True
            elif waiting or (role != "user" and self._is_odd_turn(role, previous)):
                return True
            elif type(content) is str:
                if not profile.blank_text and (not content or content.isspace()):
                    return True
            elif self._parts_need_passes(role, content, waiting, seen):  # type: ignore[arg-type]
                return True
            previous = role
        if waiting or (seen and not has_tools and profile.tools_with_calls):
            return True
        if previous == "assistant":
            return profile.final_assistant != "any" or profile.no_prefill_models is not NEVER
        return previous == "system"

    def _results_need_passes(self, parts: tuple[AnyPart, ...], waiting: list[str]) -> bool:
        """Results that answer the waiting calls, in their order, and say no more than a value need none."""
        for part in parts:
            if (
                type(part) is not ToolResult
                or not waiting
                or part.tool_call_id != waiting.pop(0)
                or not part.name
                or part.parts
                or (part.metadata is not None and says_more(part.metadata, self.profile.family))
            ):
                return True
        return not parts

    def _parts_need_passes(self, role: str, parts: tuple[AnyPart, ...], waiting: list[str], seen: set[str]) -> bool:
        """Whether one of these parts does; calls join those that wait for results."""
        blank_text, family = self.profile.blank_text, self.profile.family
        for part in parts:
            kind = type(part)
            if kind is ToolCall:
                call_id: str = part.id  # type: ignore[union-attr]
                if role != "assistant" or call_id in seen or not self._takes_call(call_id, part.name):  # type: ignore[union-attr]
                    return True
                seen.add(call_id)
                waiting.append(call_id)
            elif kind is Text:
                if part.citations or (not blank_text and (not part.text or part.text.isspace())):  # type: ignore[union-attr]
                    return True
            elif kind is ToolResult:
                return True
            metadata = getattr(part, "metadata", None)
            if metadata is not None and says_more(metadata, family):
                return True
        return not parts

    def _takes_call(self, call_id: str, name: str) -> bool:
        return (call_id in self._good_ids or self._is_good_id(call_id)) and (
            name in self._good_names or self._is_good_name(name)
        )

    def _is_odd_turn(self, role: str, previous: str) -> bool:
        profile = self.profile
        if role == "system":
            return profile.system == "field" and previous != "system"
        if previous == "assistant":
            return profile.merge_model_turns
        return previous == "system" and profile.first_turn_user

    def _is_good_name(self, name: str) -> bool:
        return _remember(self._good_names, name, good=self.profile.tool_name.fullmatch(name) is not None)

    def _is_good_id(self, call_id: str) -> bool:
        pattern = self.profile.call_id
        return _remember(self._good_ids, call_id, good=pattern is None or pattern.fullmatch(call_id) is not None)


def _remember(memory: set[str], text: str, *, good: bool) -> bool:
    if good:
        if len(memory) >= _MEMORY:
            memory.clear()
        memory.add(text)
    return good


_SURVEYORS: dict[str, Surveyor] = {}


def needs_passes(request: Request, profile: Profile) -> bool:
    surveyor = _SURVEYORS.get(profile.name)
    if surveyor is None or surveyor.profile is not profile:
        surveyor = _SURVEYORS[profile.name] = Surveyor(profile)
    return surveyor.needs_passes(request)
