"""JSON paths for losses: where in the wire body a node came from."""

from __future__ import annotations

from functools import lru_cache

from msgspec import UNSET

from dragoman.codecs.bedrock_converse.profile import FAMILY
from dragoman.codecs.bedrock_converse.request import SETTINGS
from dragoman.codecs.bedrock_converse.thinking import FIELDS, TOP_K, TYPED
from dragoman.codecs.system_text import count_leading_system
from dragoman.ir import (
    AnyPart,
    AnyTool,
    Audio,
    Completion,
    Document,
    Image,
    Message,
    ProviderTool,
    Request,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.ir.values import note
from dragoman.losses import PathsWithPieces, Tables, at, paths_by_class, running_totals

_VENDOR = SETTINGS.path("reasoning")
_OUTPUT = SETTINGS.path("output")
_WITHIN = {
    "tools": "$.toolConfig.tools",
    "output.schema": f"{_OUTPUT}.structure.jsonSchema.schema",
    "output.name": f"{_OUTPUT}.structure.jsonSchema.name",
    "output.description": f"{_OUTPUT}.structure.jsonSchema.description",
}
_TOOL_FIELDS = {
    "name": "toolSpec.name",
    "description": "toolSpec.description",
    "parameters": "toolSpec.inputSchema.json",
    "strict": "toolSpec.strict",
}
_MEDIA_FIELDS = {
    "media_type": "format",
    "data": "source.bytes",
    "url": "source.s3Location.uri",
    "text": "source.text",
    "title": "name",
    "context": "context",
    "cite": "citations",
}
_PART_FIELDS: dict[type[AnyPart], dict[str, str]] = {
    Text: {"text": "text"},
    ToolCall: {
        "id": "toolUse.toolUseId",
        "name": "toolUse.name",
        "arguments": "toolUse.input",
        "arguments_text": "toolUse.input",
    },
    ToolResult: {
        "tool_call_id": "toolResult.toolUseId",
        "value": "toolResult.content",
        "parts": "toolResult.content",
        "kind": "toolResult.status",
    },
    Image: {name: f"image.{wire}" for name, wire in _MEDIA_FIELDS.items()},
    Audio: {name: f"audio.{wire}" for name, wire in _MEDIA_FIELDS.items()},
    Document: {name: f"document.{wire}" for name, wire in _MEDIA_FIELDS.items()},
}
_ANSWER_FIELDS = {
    "finish": "stopReason",
    "finish.stop_sequence": "additionalModelResponseFields.stop_sequence",
    "message": "output.message",
    "usage.cached": "usage.cacheReadInputTokens",
    "usage.service_tier": "serviceTier.type",
    "usage.cache_written": "usage.cacheWriteInputTokens",
}


class _RequestPaths:
    """Looks up the JSON paths of a request's nodes in the wire body. Indices are counted at the first lookup."""

    _request: Request
    _tables: Tables

    def __init__(self, request: Request) -> None:
        self._request = request
        self._tables = Tables()

    def json_path(self, message_index: int | None, part_index: int | None, field: str) -> str:
        request, tables = self._request, self._tables
        if message_index is None:
            return _setting_path(request, field) if part_index is None else self._tool_path(part_index, field)
        if part_index is None:
            return at(_message_path(request.messages, tables, message_index, None), field)
        part = request.messages[message_index].parts[part_index]
        path = _message_path(request.messages, tables, message_index, part_index, behind=_is_point(field))
        return at(path, _part_field(part, field))

    def _tool_path(self, index: int, field: str) -> str:
        place = index + self._tables.of(self._request.tools, _points)[index]
        if _is_point(field):
            return at(f"$.toolConfig.tools[{place + 1}]", _point_field(field))
        head, dot, rest = field.partition(".")
        inner = _TOOL_FIELDS[head] + dot + rest if head in _TOOL_FIELDS else ""
        tool = self._request.tools[index]
        if type(tool) is ProviderTool:  # a tool of AWS: `systemTool` instead of `toolSpec`
            inner = f"{next(iter(tool.definition or {}), '')}.name" if field == "name" else ""
        return at(f"$.toolConfig.tools[{place}]", inner)


class _ResponsePaths:
    """Looks up the JSON paths of a completion's nodes in the wire body."""

    _completion: Completion
    _tables: Tables

    def __init__(self, completion: Completion) -> None:
        self._completion = completion
        self._tables = Tables()

    def json_path(self, message_index: int | None, part_index: int | None, field: str) -> str:
        if message_index is None:
            return _answer_path(field)
        if part_index is None:
            return at("$.output.message", field)
        parts = self._completion.messages[message_index].parts
        part = parts[part_index]
        is_point = _is_point(field)
        place = part_index + self._tables.of(parts, _extra_blocks)[part_index] + (is_point or _is_tagged(part))
        return at(f"$.output.message.content[{place}]", _part_field(part, field))


def _piece_path(result: ToolResult, index: int, field: str) -> str:
    inner = "" if _is_point(field) else _part_field(result.parts[index], field)
    return at(f".toolResult.content[{index}]", inner)


request_paths = PathsWithPieces(paths_by_class(_RequestPaths), _piece_path)


response_paths = paths_by_class(_ResponsePaths)


def _part_field(part: AnyPart, field: str) -> str:
    """Return the path of a field within its block; for keys that are not modelled, the block itself."""
    if _is_point(field):
        return _point_field(field)
    if type(part) is Document and (part.media_type or "").startswith("video/"):
        return _PART_FIELDS[Document].get(field, "").replace("document.", "video.")
    head, dot, rest = field.partition(".")
    known = _PART_FIELDS.get(type(part), {}).get(head)
    if known is None:
        return ""
    is_guarded = type(part) is Image and note(part.metadata, FAMILY, "guardContent") is not UNSET
    return ("guardContent." if is_guarded else "") + known + dot + rest


def _is_point(field: str) -> bool:
    """Whether the field is a cache mark: marks are separate blocks after what they mark."""
    return field.partition(".")[0] in {"cache", "cachePoint"}


def _point_field(field: str) -> str:
    _, dot, rest = field.partition(".")
    return "cachePoint" + dot + rest


def _points(tools: tuple[AnyTool, ...]) -> list[int]:
    return running_totals(getattr(tool, "cache", None) is not None for tool in tools)


def _setting_path(request: Request, field: str) -> str:
    """Return the path of a setting. Thinking and top_k have several possible places; the one used is returned."""
    head = field.partition(".")[0]
    if head == "top_k":
        nested = note(request.metadata, FAMILY, TOP_K) is not UNSET
        return f"{_VENDOR}.inferenceConfig.topK" if nested else f"{_VENDOR}.top_k"
    if head == "reasoning" and request.reasoning is not None:
        fields = note(request.reasoning.metadata, FAMILY, FIELDS)
        typed = note(request.reasoning.metadata, FAMILY, TYPED) is not UNSET
        if typed and (fields is UNSET or field == "reasoning.effort"):
            return "$.outputConfig.effort"
        keys = [] if fields is UNSET else list(fields)
        return f"{_VENDOR}.{keys[-1 if field == 'reasoning.effort' else 0]}" if keys else _VENDOR
    # Keys that are not modelled may be anywhere within.
    return _WITHIN.get(field) or SETTINGS.path(head if head in {"output", "tool_choice"} else field)


@lru_cache(maxsize=512)
def _answer_path(field: str) -> str:
    head, dot, rest = field.partition(".")
    return at("$", _ANSWER_FIELDS.get(field) or _ANSWER_FIELDS.get(head, head) + dot + rest)


def _message_path(
    messages: tuple[Message, ...], tables: Tables, message_index: int, part_index: int | None, *, behind: bool = False
) -> str:
    message = messages[message_index]
    wire_index, start = tables.of(messages, _wire_places)[message_index]
    if wire_index is None:
        if part_index is None:
            return "$.system"
        return f"$.system[{start + part_index + tables.of(message.parts, _extra_blocks)[part_index] + behind}]"
    path = f"$.messages[{wire_index}]"
    if part_index is None:
        return path
    if isinstance(message.content_held, str):
        return f"{path}.content[{start}]"
    return f"{path}.content[{_block_index(messages, tables, message_index, part_index, start) + behind}]"


def _wire_places(messages: tuple[Message, ...]) -> list[tuple[int | None, int]]:
    """For each message, return the index of its wire message (None: the system text) and of its first block."""
    places: list[tuple[int | None, int]] = []
    leading = count_leading_system(messages, FAMILY)
    before = 0
    for message in messages[:leading]:
        places.append((None, before))
        before += _block_count(message)
    wire_index, start, length, in_turn = -1, 0, 0, False
    for message in messages[leading:]:
        joined = in_turn and message.role in {"tool", "user"}
        joined = joined and "~turn" not in (message.metadata or {}).get(FAMILY, {})
        wire_index, start = (wire_index, start + length) if joined else (wire_index + 1, 0)
        length = _block_count(message)
        in_turn = message.role == "tool"
        places.append((wire_index, start))
    return places


def _block_count(message: Message) -> int:
    content = message.content_held
    return 1 if isinstance(content, str) else len(content) + _extra_blocks(content)[-1]


def _block_index(messages: tuple[Message, ...], tables: Tables, message_index: int, part_index: int, start: int) -> int:
    message = messages[message_index]
    holder = message if message.role == "tool" or message_index == 0 else messages[message_index - 1]
    of_others, of_results = tables.of(holder, _mixed_indices)
    if start + part_index < len(of_others) + len(of_results):
        return (of_results if message.role == "tool" else of_others)[part_index]
    tagged = _is_tagged(message.parts[part_index])
    return start + part_index + tables.of(message.parts, _extra_blocks)[part_index] + tagged


def _mixed_indices(holder: Message) -> tuple[list[int], list[int]]:
    """Return the indices of blocks that are not results, and of those that are, if the wire mixed them."""
    order = note(holder.metadata, FAMILY, "~order")
    order = [] if order is UNSET else order
    of_results = [place for place, is_result in enumerate(order) if is_result is True]
    return [place for place, is_result in enumerate(order) if is_result is not True], of_results


def _extra_blocks(parts: tuple[AnyPart, ...]) -> list[int]:
    """Count the blocks beside those of the parts themselves: cache points, and separately carried signatures."""
    return running_totals([(getattr(part, "cache", None) is not None) + _is_tagged(part) for part in parts])


def _is_tagged(part: AnyPart) -> bool:
    if type(part) is not ToolCall and not (type(part) is Text and part.text):
        return False
    return part.metadata is not None and "~tagged" in part.metadata.get(FAMILY, {})
