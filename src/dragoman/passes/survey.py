"""The traits of a request that no decoder noted: one walk over everything it holds."""

from __future__ import annotations

from dragoman.ir import AnyPart, Message, Request, Text, ToolCall, ToolResult
from dragoman.ir.messages import content_held
from dragoman.ir.traits import (
    ADJACENT_ASSISTANT,
    BLANK_TEXT,
    EMPTY_MESSAGE,
    FIRST_ASSISTANT,
    LAST_ASSISTANT,
    LATE_SYSTEM,
    MISPLACED_PART,
    NO_MESSAGES,
    ONLY_SYSTEM,
    PRIVATE_CONTENT,
    PRIVATE_SETTING,
    UNPAIRED,
    Traits,
    has_private,
)


def survey(request: Request) -> Traits:
    """The same traits that decoders note while they read."""
    messages = _MessageSurvey()
    messages.walk(request.messages)
    bits = messages.bits
    if _has_private_setting(request):
        bits |= PRIVATE_SETTING
    return Traits(bits, messages.call_names, {tool.name for tool in request.tools})


def _has_private_setting(request: Request) -> bool:
    if request.metadata is not None and has_private(request.metadata):
        return True
    for settings in (request.tool_choice, request.reasoning, request.output):
        if settings is not None and settings.metadata is not None and has_private(settings.metadata):
            return True
    for tool in request.tools:
        metadata = getattr(tool, "metadata", None)
        if metadata is not None and has_private(metadata):
            return True
    return False


class _MessageSurvey:
    def __init__(self) -> None:
        self.bits = 0
        self.call_names: dict[str, str] = {}
        self._waiting: list[str] = []
        """Ids of calls whose results must come next; `_answered` of them have come."""
        self._answered = 0

    def walk(self, messages: tuple[Message, ...]) -> None:
        previous = ""
        for message in messages:
            role = message.role
            if message.metadata is not None and has_private(message.metadata):
                self.bits |= PRIVATE_CONTENT
            content = content_held(message)
            if role == "tool":
                self._results(() if type(content) is str else content)  # type: ignore[arg-type]
                if type(content) is str:
                    self.bits |= MISPLACED_PART
            else:
                self._turn(role, previous)
                if type(content) is str:
                    if not content or content.isspace():
                        self.bits |= BLANK_TEXT
                else:
                    self._parts(role, content)  # type: ignore[arg-type]
            if previous or role != "system":
                previous = role
        self._end(messages, previous)

    def _turn(self, role: str, previous: str) -> None:
        """`previous` is empty while there has been nothing but system text."""
        if self._answered < len(self._waiting):
            self.bits |= UNPAIRED
        self._waiting.clear()
        self._answered = 0
        if role == "assistant":
            if previous == "assistant":
                self.bits |= ADJACENT_ASSISTANT
            elif not previous:
                self.bits |= FIRST_ASSISTANT
        elif role == "system" and previous:
            self.bits |= LATE_SYSTEM

    def _end(self, messages: tuple[Message, ...], previous: str) -> None:
        if self._answered < len(self._waiting):
            self.bits |= UNPAIRED
        if not messages:
            self.bits |= NO_MESSAGES
        elif not previous:
            self.bits |= ONLY_SYSTEM
        elif previous == "assistant":
            self.bits |= LAST_ASSISTANT

    def _results(self, parts: tuple[AnyPart, ...]) -> None:
        if not parts:
            self.bits |= EMPTY_MESSAGE
        for part in parts:
            if type(part) is not ToolResult:
                self.bits |= MISPLACED_PART
                continue
            index = self._answered
            self._answered = index + 1
            if (
                index >= len(self._waiting)
                or part.tool_call_id != self._waiting[index]
                or part.name != self.call_names[part.tool_call_id]
            ):
                self.bits |= UNPAIRED
            if part.metadata is not None and has_private(part.metadata):
                self.bits |= PRIVATE_CONTENT
            for inner in part.parts:
                self._metadata(inner)

    def _parts(self, role: str, parts: tuple[AnyPart, ...]) -> None:
        if not parts:
            self.bits |= EMPTY_MESSAGE
        for part in parts:
            if type(part) is Text:
                if not part.text or part.text.isspace():
                    self.bits |= BLANK_TEXT
            elif type(part) is ToolCall:
                self._call(role, part)
            elif type(part) is ToolResult:
                self.bits |= MISPLACED_PART
            self._metadata(part)

    def _call(self, role: str, call: ToolCall) -> None:
        if role != "assistant":
            self.bits |= MISPLACED_PART
        if call.id in self.call_names:
            self.bits |= UNPAIRED
        self.call_names[call.id] = call.name
        self._waiting.append(call.id)

    def _metadata(self, part: AnyPart) -> None:
        metadata = getattr(part, "metadata", None)
        if metadata is not None and has_private(metadata):
            self.bits |= PRIVATE_CONTENT
        if type(part) is Text:
            for citation in part.citations:
                if citation.metadata is not None and has_private(citation.metadata):
                    self.bits |= PRIVATE_CONTENT
