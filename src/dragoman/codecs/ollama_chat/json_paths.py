"""JSON paths for losses: where in the wire body a node came from."""

from __future__ import annotations

from functools import lru_cache

from dragoman.codecs.ollama_chat.request import SETTINGS
from dragoman.ir import Audio, Completion, Image, Message, Reasoning, Request, Text, ToolCall, ToolResult
from dragoman.losses import PathsWithPieces, Tables, at, paths_by_tables

_OF_A_TOOL = frozenset({"name", "description", "parameters"})
_OF_A_CALL = {"name": "function.name", "arguments": "function.arguments"}
_USAGE = {"input": "prompt_eval_count", "output": "eval_count"}


def _request_path(
    request: Request, tables: Tables, message_index: int | None, part_index: int | None, field: str
) -> str:
    if message_index is None:
        return _setting_path(field) if part_index is None else _tool_path(part_index, field)
    path = f"$.messages[{message_index}]"
    if part_index is None:
        return at(path, field)
    return path + _part_path(request.messages[message_index], tables, part_index, field)


def _piece_path(result: ToolResult, index: int, _field: str) -> str:
    has_text = type(result.parts[0]) is Text
    return ".content" if index == 0 and has_text else f".images[{index - has_text}]"


request_paths = PathsWithPieces(paths_by_tables(_request_path), _piece_path)


@lru_cache(maxsize=512)
def _setting_path(field: str) -> str:
    if field.startswith("output.schema."):
        return f"$.format.{field.removeprefix('output.schema.')}"
    head = field.partition(".")[0]
    # The inside of one of our settings has no separate key on this wire.
    return SETTINGS.path(head if head in Request.__struct_fields__ else field)


def _tool_path(index: int, field: str) -> str:
    path = f"$.tools[{index}]"
    if field.partition(".")[0] in _OF_A_TOOL:
        return f"{path}.function.{field}"
    return at(path, field)


def _response_path(
    completion: Completion, tables: Tables, message_index: int | None, part_index: int | None, field: str
) -> str:
    if message_index is None:
        return _answer_path(field)
    if part_index is None:
        return at("$.message", field)
    return f"$.message{_part_path(completion.messages[message_index], tables, part_index, field)}"


response_paths = paths_by_tables(_response_path)


@lru_cache(maxsize=512)
def _answer_path(field: str) -> str:
    head, _, rest = field.partition(".")
    if head == "finish":
        return f"$.{rest}" if rest and rest != "stop_sequence" else "$.done_reason"
    if head == "usage":
        return f"$.{_USAGE.get(rest, rest)}" if rest else "$"
    if head == "created":
        return "$.created_at"
    return at("$", field)


def _places_of_parts(message: Message) -> list[int]:
    """For each part, return its index in the message's list for its kind: `tool_calls` or `images`."""
    places = []
    calls = media = 0
    for part in message.parts:
        if isinstance(part, ToolCall):
            places.append(calls)
            calls += 1
        else:
            places.append(media)
            media += isinstance(part, Image | Audio)
    return places


def _part_path(message: Message, tables: Tables, part_index: int, field: str) -> str:
    """Return the path of a part within its message, where each kind has a separate field."""
    part = message.parts[part_index]
    place = tables.of(message, _places_of_parts)[part_index]
    if isinstance(part, ToolCall):
        inner = _OF_A_CALL.get(field, field)
        return f".tool_calls[{place}].{inner}" if inner else f".tool_calls[{place}]"
    if isinstance(part, ToolResult):
        return f".{field}" if field and field not in ToolResult.__struct_fields__ else ""
    if field == "signature":
        return ".signatures"
    if isinstance(part, Reasoning):
        return ".thinking"
    if isinstance(part, Image | Audio):
        return f".images[{place}]"
    return ".content"
