"""Where in a wire body a node came from."""

from __future__ import annotations

from msgspec import UNSET

from dragoman.codecs.bedrock_converse.profile import FAMILY
from dragoman.ir import AnyPart, AnyTool, Completion, Message, Request, Text, ToolCall
from dragoman.ir.messages import content_held
from dragoman.ir.values import note

_FIELDS = {
    "model": "modelId",
    "max_output_tokens": "inferenceConfig.maxTokens",
    "temperature": "inferenceConfig.temperature",
    "top_p": "inferenceConfig.topP",
    "stop": "inferenceConfig.stopSequences",
    "top_k": "additionalModelRequestFields.top_k",
    "tools": "toolConfig.tools",
    "tool_choice": "toolConfig.toolChoice",
    "reasoning": "additionalModelRequestFields.thinking",
    "reasoning.mode": "additionalModelRequestFields.thinking.type",
    "reasoning.budget_tokens": "additionalModelRequestFields.thinking.budget_tokens",
    "reasoning.visible": "additionalModelRequestFields.thinking.display",
    "reasoning.effort": "outputConfig.effort",
    "output": "outputConfig.textFormat",
    "output.schema": "outputConfig.textFormat.structure.jsonSchema.schema",
    "output.name": "outputConfig.textFormat.structure.jsonSchema.name",
    "output.description": "outputConfig.textFormat.structure.jsonSchema.description",
}
_PART_FIELDS = {
    "arguments": "toolUse.input",
    "arguments_text": "toolUse.input",
    "tool_call_id": "toolResult.toolUseId",
    "value": "toolResult.content",
    "parts": "toolResult.content",
    "kind": "toolResult.status",
    "parameters": "toolSpec.inputSchema.json",
    "strict": "toolSpec.strict",
    "description": "toolSpec.description",
    "citations": "citationsContent.citations",
}
_ANSWER_FIELDS = {
    "finish": "stopReason",
    "finish.stop_sequence": "additionalModelResponseFields.stop_sequence",
    "usage.cached": "usage.cacheReadInputTokens",
    "usage.cache_written": "usage.cacheWriteInputTokens",
}


def locate_request(request: Request, message_index: int | None, part_index: int | None, field: str) -> str:
    """Where in the wire body a node of the request came from."""
    if message_index is None:
        if part_index is None:
            return _joined("$", _wire_field(field, _FIELDS))
        place = _tool_place(request.tools, part_index)
        return _joined(f"$.toolConfig.tools[{place}]", _wire_field(field, _PART_FIELDS))
    return _joined(_message_path(request.messages, message_index, part_index), _wire_field(field, _PART_FIELDS))


def locate_response(completion: Completion, message_index: int | None, part_index: int | None, field: str) -> str:
    """Where in the wire body a node of the completion came from."""
    if message_index is None:
        return _joined("$", _wire_field(field, _ANSWER_FIELDS))
    message = completion.messages[message_index]
    path = "$.output.message"
    if part_index is not None:
        path += f".content[{part_index + _extra_blocks(message.parts[:part_index])}]"
    return _joined(path, _wire_field(field, _PART_FIELDS))


def _joined(path: str, field: str) -> str:
    return f"{path}.{field}" if field else path


def _wire_field(field: str, names: dict[str, str]) -> str:
    if field in names:
        return names[field]
    head, dot, rest = field.partition(".")
    return names.get(head, head) + dot + rest


def _tool_place(tools: tuple[AnyTool, ...], index: int) -> int:
    """Cache points stand among the tools, so the ones behind them are further back than they seem."""
    return index + sum(getattr(tool, "cache", None) is not None for tool in tools[:index])


def _message_path(messages: tuple[Message, ...], message_index: int, part_index: int | None) -> str:
    message = messages[message_index]
    leading = next((index for index, each in enumerate(messages) if not _is_leading(each)), len(messages))
    if message_index < leading:
        return (
            "$.system" if part_index is None else f"$.system[{part_index + _extra_blocks(message.parts[:part_index])}]"
        )
    wire_index, start = _wire_place(messages[leading : message_index + 1])
    path = f"$.messages[{wire_index}]"
    if part_index is None:
        return path
    if isinstance(content_held(message), str):
        return f"{path}.content[{start}]"
    return f"{path}.content[{_block_index(messages, message_index, part_index, start)}]"


def _is_leading(message: Message) -> bool:
    return message.role == "system" and note(message.metadata, FAMILY, "~inline") is UNSET


def _wire_place(messages: tuple[Message, ...]) -> tuple[int, int]:
    """Index of the wire message that holds the last of these, and of its first block there."""
    wire_index, start, length, in_turn = -1, 0, 0, False
    for message in messages:
        apart = note(message.metadata, FAMILY, "~turn") is not UNSET
        joined = in_turn and message.role in {"tool", "user"} and not apart
        wire_index, start = (wire_index, start + length) if joined else (wire_index + 1, 0)
        length = len(message.parts) + _extra_blocks(message.parts)
        in_turn = message.role == "tool"
    return wire_index, start


def _block_index(messages: tuple[Message, ...], message_index: int, part_index: int, start: int) -> int:
    message = messages[message_index]
    holder = message if message.role == "tool" or message_index == 0 else messages[message_index - 1]
    order = note(holder.metadata, FAMILY, "~order")
    if order is not UNSET and start + part_index < len(order):
        wanted = message.role == "tool"
        return [place for place, is_result in enumerate(order) if is_result is wanted][part_index]
    tagged = _is_tagged(message.parts[part_index])
    return start + part_index + _extra_blocks(message.parts[:part_index]) + tagged


def _extra_blocks(parts: tuple[AnyPart, ...]) -> int:
    """Blocks beside those of the parts themselves: cache points, and signatures that travelled on their own."""
    return sum((getattr(part, "cache", None) is not None) + _is_tagged(part) for part in parts)


def _is_tagged(part: AnyPart) -> bool:
    if not isinstance(part, ToolCall) and not (isinstance(part, Text) and part.text):
        return False
    return note(part.metadata, FAMILY, "~tagged") is not UNSET
