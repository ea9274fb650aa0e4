"""JSON paths for losses: where in the wire body a node came from."""

from __future__ import annotations

from msgspec import UNSET

from dragoman.codecs.anthropic_messages.caching import FAMILY
from dragoman.codecs.anthropic_messages.hosted_tools import SERVER
from dragoman.codecs.system_text import count_leading_system
from dragoman.ir import AnyPart, Completion, Message, ReasoningSettings, Request, Text, ToolCall, ToolResult
from dragoman.ir.notes import TOOL_REFERENCE, family_notes
from dragoman.ir.values import note, parse_json
from dragoman.losses import PathsWithPieces, Tables, at, paths_by_class, paths_by_tables

_FIELDS = {
    "max_output_tokens": "max_tokens",
    "stop": "stop_sequences",
    "safety_identifier": "metadata.user_id",
    "user": "metadata.user_id",
    "cache": "cache_control",
    "cache.ttl": "cache_control.ttl",
    "parallel_tool_calls": "tool_choice.disable_parallel_tool_use",
    "reasoning.mode": "thinking.type",
    "reasoning.effort": "output_config.effort",
    "reasoning.budget_tokens": "thinking.budget_tokens",
    "reasoning.visible": "thinking.display",
    "parameters": "input_schema",
    "arguments": "input",
    "arguments_text": "input",
    "tool_call_id": "tool_use_id",
    "value": "content",
    "parts": "content",
    "data": "source.data",
    "url": "source.url",
    "file_id": "source.file_id",
    "media_type": "source.media_type",
    "cite": "citations",
}


_SETTINGS = {"": "$"} | {
    field: f"$.{_FIELDS.get(field, field)}"
    for field in (*Request.__struct_fields__, *_FIELDS)
    if field not in {"reasoning", "output"}
}
"""Paths of settings that do not depend on the request."""

_CITATION = "citations."


def _is_text(message: Message, part_index: int | None) -> bool:
    """Whether a part is a text: its citations are a list, and those of a document are a switch."""
    return part_index is not None and type(message.parts[part_index]) is Text


class _RequestPaths:
    """Looks up the JSON paths of a request's nodes in the wire body."""

    _request: Request
    _places: _Places | None = None

    def __init__(self, request: Request) -> None:
        self._request = request

    def json_path(self, message_index: int | None, part_index: int | None, field: str) -> str:
        if message_index is None and part_index is None:
            return _SETTINGS.get(field) or f"$.{_wire_field(self._request, field)}"
        tail = (_FIELDS.get(field) or _wire_field(self._request, field)) if field and field != TOOL_REFERENCE else ""
        if message_index is None:
            server = family_notes(FAMILY, self._request.tools[part_index].metadata).get(SERVER)  # type: ignore[index]
            head = f"$.tools[{part_index}]" if server is None else f"$.mcp_servers[{parse_json(server)}]"
        else:
            if self._places is None:
                self._places = _Places(self._request.messages)
            head = self._places.path(message_index, part_index)
            if field.startswith(_CITATION) and _is_text(self._request.messages[message_index], part_index):
                tail = "citations"
        return f"{head}.{tail}" if tail else head


def _piece_path(result: ToolResult, index: int, field: str) -> str:
    if field.startswith(_CITATION) and type(result.parts[index]) is Text:
        field = "citations"
    return at(f".content[{index}]", "" if field == TOOL_REFERENCE else _FIELDS.get(field, field))


request_paths = PathsWithPieces(paths_by_class(_RequestPaths), _piece_path)


def _wire_field(request: Request, field: str) -> str:
    head, dot, rest = field.partition(".")
    if field == "reasoning":
        return "thinking" if _has_thinking(request.reasoning) else "output_config.effort"
    if head == "output":
        place = (
            "output_format" if note(request.metadata, FAMILY, "~output_format") is not UNSET else "output_config.format"
        )
        return place + dot + rest
    return ("thinking" if head == "reasoning" else _FIELDS.get(head, head)) + dot + rest


def _has_thinking(settings: ReasoningSettings | None) -> bool:
    """Whether `thinking` was written: an effort alone is in `output_config`."""
    return settings is None or settings.effort is None or settings != ReasoningSettings(effort=settings.effort)


class _Places:
    """The wire message and first block that hold each message, computed at the first lookup."""

    def __init__(self, messages: tuple[Message, ...]) -> None:
        self._messages = messages
        self._leading = count_leading_system(messages, FAMILY)
        self._starts: list[tuple[int, int]] = []
        self._blocks: dict[int, list[int]] = {}

    def path(self, message_index: int, part_index: int | None) -> str:
        content = self._messages[message_index].content_held
        if message_index < self._leading:
            is_whole = part_index is None or isinstance(content, str)
            return "$.system" if is_whole else f"$.system[{part_index}]"
        if not self._starts:
            self._starts = self._walk()
        path = f"$.messages[{self._starts[message_index][0]}]"
        if part_index is None:
            return path
        if isinstance(content, str):
            return f"{path}.content"
        blocks = self._blocks.get(message_index)
        if blocks is None:
            blocks = self._blocks[message_index] = self._block_indices(message_index)
        return f"{path}.content[{blocks[part_index]}]"

    def _walk(self) -> list[tuple[int, int]]:
        """Return, for each message, the index of its wire message and of its first block there."""
        starts = [(-1, 0)] * self._leading
        wire_index, start, length, in_turn = -1, 0, 0, False
        for message in self._messages[self._leading :]:
            joined = (
                in_turn and message.role in {"tool", "user"} and "~turn" not in (message.metadata or {}).get(FAMILY, {})
            )
            wire_index, start = (wire_index, start + length) if joined else (wire_index + 1, 0)
            content = message.content_held
            length = len(content) if type(content) is tuple else 1
            in_turn = message.role == "tool"
            starts.append((wire_index, start))
        return starts

    def _block_indices(self, message_index: int) -> list[int]:
        """Return, for each part of a message, the index of its block."""
        message, start = self._messages[message_index], self._starts[message_index][1]
        holder = message if message.role == "tool" or message_index == 0 else self._messages[message_index - 1]
        order = note(holder.metadata, FAMILY, "~order")
        parts = message.parts
        if order is not UNSET and start + len(parts) <= len(order):
            wanted = message.role == "tool"
            return [place for place, is_result in enumerate(order) if is_result is wanted]
        return [start + index + before for index, before in enumerate(_signatures_before(parts))]


def _signatures_before(parts: tuple[AnyPart, ...]) -> list[int]:
    """Return, for each part, how many separate blocks up to it carry signatures."""
    before, blocks = [], 0
    for part in parts:
        blocks += _travels_behind_signature(part)
        before.append(blocks)
    return before


def _travels_behind_signature(part: AnyPart) -> bool:
    """Whether a separate block before the part carried its signature."""
    if type(part) is ToolCall or (type(part) is Text and part.text):
        return part.metadata is not None and "~tagged" in part.metadata.get(FAMILY, {})
    return False


_OF_AN_ANSWER = {
    "finish": "stop_reason",
    "finish.reason": "stop_reason",
    "finish.raw": "stop_reason",
    "finish.stop_sequence": "stop_sequence",
    "finish.explanation": "stop_details.explanation",
    "arguments": "input",
    "usage.cache_written": "usage.cache_creation_input_tokens",
    "usage.cached": "usage.cache_read_input_tokens",
    "usage.reasoning": "usage.output_tokens_details.thinking_tokens",
}


def _response_path(
    completion: Completion, tables: Tables, message_index: int | None, part_index: int | None, field: str
) -> str:
    content = None if message_index is None else completion.messages[message_index].content_held
    path = "$"
    if part_index is not None and type(content) is tuple:
        path = f"$.content[{part_index + tables.of(content, _signatures_before)[part_index]}]"
        if field.startswith(_CITATION) and type(content[part_index]) is Text:
            return f"{path}.citations"
    return f"{path}.{_OF_AN_ANSWER.get(field) or field.removeprefix('finish.')}" if field else path


response_paths = paths_by_tables(_response_path)
