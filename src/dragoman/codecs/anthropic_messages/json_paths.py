"""Where in the wire body a node came from: JSON paths for losses."""

from __future__ import annotations

from msgspec import UNSET

from dragoman.codecs.anthropic_messages.caching import FAMILY
from dragoman.ir import AnyPart, Completion, Message, Request, Text, ToolCall
from dragoman.ir.messages import content_held
from dragoman.ir.values import note
from dragoman.losses import paths_by

_FIELDS = {
    "max_output_tokens": "max_tokens",
    "stop": "stop_sequences",
    "user": "metadata.user_id",
    "cache": "cache_control",
    "cache.ttl": "cache_control.ttl",
    "parallel_tool_calls": "tool_choice.disable_parallel_tool_use",
    "reasoning": "thinking",
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


def request_json_path(request: Request, message_index: int | None, part_index: int | None, field: str) -> str:
    """Where in the wire body a node of the request came from."""
    tail = _wire_field(request, field)
    if message_index is None:
        head = "$" if part_index is None else f"$.tools[{part_index}]"
        return f"{head}.{tail}" if tail else head
    path = _message_path(request.messages, message_index, part_index)
    return f"{path}.{tail}" if tail else path


def _wire_field(request: Request, field: str) -> str:
    if field in _FIELDS:
        return _FIELDS[field]
    head, dot, rest = field.partition(".")
    if head == "output":
        place = (
            "output_format" if note(request.metadata, FAMILY, "~output_format") is not UNSET else "output_config.format"
        )
        return place + dot + rest
    return _FIELDS.get(head, head) + dot + rest


def _message_path(messages: tuple[Message, ...], message_index: int, part_index: int | None) -> str:
    message = messages[message_index]
    leading = leading_system(messages)
    if message_index < leading:
        place = "$.system"
        return place if part_index is None or isinstance(content_held(message), str) else f"{place}[{part_index}]"
    wire_index, start = _wire_place(messages[leading : message_index + 1])
    path = f"$.messages[{wire_index}]"
    if part_index is None:
        return path
    if isinstance(content_held(message), str):
        return f"{path}.content"
    return f"{path}.content[{_block_index(messages, message_index, part_index, start)}]"


def _wire_place(messages: tuple[Message, ...]) -> tuple[int, int]:
    """Index of the wire message that holds the last of these, and of its first block there."""
    wire_index, start, length, in_turn = -1, 0, 0, False
    for message in messages:
        joined = (
            in_turn and message.role in {"tool", "user"} and "~turn" not in (message.metadata or {}).get(FAMILY, {})
        )
        wire_index, start = (wire_index, start + length) if joined else (wire_index + 1, 0)
        length = len(message.parts)
        in_turn = message.role == "tool"
    return wire_index, start


def _block_index(messages: tuple[Message, ...], message_index: int, part_index: int, start: int) -> int:
    message = messages[message_index]
    holder = message if message.role == "tool" or message_index == 0 else messages[message_index - 1]
    order = note(holder.metadata, FAMILY, "~order")
    if order is not UNSET and start + part_index < len(order):
        wanted = message.role == "tool"
        return [place for place, is_result in enumerate(order) if is_result is wanted][part_index]
    carriers = sum(_travels_behind_signature(part) for part in message.parts[: part_index + 1])
    return start + part_index + carriers


def _travels_behind_signature(part: AnyPart) -> bool:
    """Whether a block of its own, before it, carried the part's signature."""
    if not isinstance(part, ToolCall) and not (isinstance(part, Text) and part.text):
        return False
    return "~tagged" in (part.metadata or {}).get(FAMILY, {})


_OF_AN_ANSWER = {
    "finish": "stop_reason",
    "finish.stop_sequence": "stop_sequence",
    "arguments": "input",
    "usage.cache_written": "usage.cache_creation_input_tokens",
    "usage.cached": "usage.cache_read_input_tokens",
    "usage.reasoning": "usage.output_tokens_details.thinking_tokens",
}


def response_json_path(completion: Completion, message_index: int | None, part_index: int | None, field: str) -> str:
    """Where in the wire body a node of the completion came from."""
    held = None if message_index is None else content_held(completion.messages[message_index])
    path = "$" if part_index is None or isinstance(held, str) else f"$.content[{part_index}]"
    return f"{path}.{_OF_AN_ANSWER.get(field, field)}" if field else path


def leading_system(messages: tuple[Message, ...]) -> int:
    """How many messages the `system` field holds. One that stood inline at the very start stays there."""
    count = 0
    for message in messages:
        if message.role != "system" or "~inline" in (message.metadata or {}).get(FAMILY, {}):
            break
        count += 1
    return count


request_paths = paths_by(request_json_path)
response_paths = paths_by(response_json_path)
