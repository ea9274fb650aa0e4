"""Where in the wire body a node came from: JSON paths for losses."""

from __future__ import annotations

from dragoman.codecs.openai_responses.items import INSTRUCTIONS
from dragoman.codecs.openai_responses.messages import message_items
from dragoman.codecs.openai_responses.parts import own
from dragoman.codecs.openai_responses.profile import ENDED_EARLY, FAMILY
from dragoman.ir import (
    AnyPart,
    Completion,
    Document,
    Finish,
    Image,
    Message,
    Reasoning,
    Refusal,
    Request,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from dragoman.ir.messages import content_held
from dragoman.losses import Tables, paths_by_tables, running_totals

_OF_A_SCHEMA = frozenset({"name", "schema", "description", "strict"})
_OF_A_PART: dict[type[AnyPart], dict[str, str]] = {
    Image: {"url": "image_url", "data": "image_url", "media_type": "image_url"},
    Document: {"data": "file_data", "media_type": "file_data", "url": "file_url", "title": "filename"},
    ToolCall: {"id": "call_id", "signature": ""},
    Reasoning: {"signature": "encrypted_content", "text": "summary", "redacted": "encrypted_content"},
    Refusal: {"text": "refusal"},
}


def request_json_path(
    request: Request, tables: Tables, message_index: int | None, part_index: int | None, field: str
) -> str:
    """Where in the wire body a node of the request came from."""
    if message_index is None:
        return _locate_setting(field) if part_index is None else _locate_tool(part_index, field)
    messages = request.messages
    if message_index == 0 and own(messages[0].metadata) == INSTRUCTIONS[FAMILY]:
        return "$.instructions"
    if "~input" in own(request.metadata):
        return "$.input"
    start = tables.of(messages, _item_counts)[message_index]
    message = messages[message_index]
    if part_index is None:
        path = f"$.input[{start}]"
        return f"{path}.{field}" if field else path
    if message.role == "assistant":
        item, place = tables.of(message, _items)[part_index]
        return locate_part(f"$.input[{start + item}]", message.parts[part_index], place, field)
    return _locate_in_message(f"$.input[{start}]", message, part_index, field)


def _item_counts(messages: tuple[Message, ...]) -> list[int]:
    return running_totals(map(_item_count, messages))


def _items(message: Message) -> list[tuple[int, int]]:
    return list(message_items(message))


def _item_count(message: Message) -> int:
    if message.role == "assistant":
        return max((item for item, _ in message_items(message)), default=0) + 1
    return 0 if own(message.metadata) == INSTRUCTIONS[FAMILY] else 1


def _locate_in_message(path: str, message: Message, part_index: int, field: str) -> str:
    part = message.parts[part_index]
    if isinstance(part, ToolResult):
        return f"{path}.{field}" if field and field not in ToolResult.__struct_fields__ else path
    if type(content_held(message)) is str:
        return f"{path}.content"
    inner = _OF_A_PART.get(type(part), {}).get(field, "prompt_cache_breakpoint" if field == "cache" else field)
    return f"{path}.content[{part_index}]" + (f".{inner}" if inner else "")


def locate_part(path: str, part: AnyPart, place: int, field: str) -> str:
    """A part of the model's turn, within its item."""
    inner = _OF_A_PART.get(type(part), {}).get(field, field)
    if isinstance(part, Text | Refusal):
        if field == "phase":
            return f"{path}.phase"
        if field.startswith("item."):
            return f"{path}.{field.removeprefix('item.')}"
        if field.startswith("citations"):
            return f"{path}.content[{place}].annotations"
        notes = own(part.metadata)
        easy = "~item" not in notes and "~id" not in notes
        path += ".content" if easy and not place else f".content[{place}]"
    return f"{path}.{inner}" if inner else path


def _locate_setting(field: str) -> str:
    head, _, rest = field.partition(".")
    if head == "output":
        inner = f".{rest}" if rest.partition(".")[0] in _OF_A_SCHEMA or rest else ""
        return f"$.text.format{inner}"
    if head == "tool_choice" and rest in ToolChoice.__struct_fields__:
        return "$.tool_choice"
    if head == "reasoning" and rest == "visible":
        return "$.reasoning.summary"
    if head == "reasoning" and rest in {"mode", "budget_tokens"}:
        return "$.reasoning.effort"
    return f"$.{field}" if head else "$"


def _locate_tool(index: int, field: str) -> str:
    return f"$.tools[{index}].{field}" if field else f"$.tools[{index}]"


_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cached": "input_tokens_details.cached_tokens",
    "cache_written": "input_tokens_details.cache_write_tokens",
    "image": "input_tokens_details.image_tokens",
    "reasoning": "output_tokens_details.reasoning_tokens",
    "total": "total_tokens",
}


def response_json_path(
    completion: Completion, tables: Tables, message_index: int | None, part_index: int | None, field: str
) -> str:
    """Where in the wire body a node of the completion came from."""
    if message_index is None:
        head, _, rest = field.partition(".")
        if head == "finish":
            if rest and rest not in Finish.__struct_fields__:
                return f"$.incomplete_details.{rest}"
            early = completion.finish is not None and completion.finish.raw in ENDED_EARLY
            return "$.incomplete_details.reason" if early else "$.status"
        if head == "usage" and rest:
            return f"$.usage.{_USAGE.get(rest, rest)}"
        if head == "created":
            return "$.created_at"
        return f"$.{field}" if field else "$"
    if part_index is None:
        return f"$.output.{field}" if field else "$.output"
    message = completion.messages[message_index]
    item, place = tables.of(message, _items)[part_index]
    return locate_part(f"$.output[{item}]", message.parts[part_index], place, field)


request_paths = paths_by_tables(request_json_path)
response_paths = paths_by_tables(response_json_path)
