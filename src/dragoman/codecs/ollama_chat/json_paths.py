"""Where in the wire body a node came from, for the paths of losses."""

from __future__ import annotations

from dragoman.ir import AnyPart, Audio, Completion, Image, Message, Reasoning, Request, ToolCall, ToolResult
from dragoman.losses import paths_by

_SETTINGS = {
    "max_output_tokens": "options.num_predict",
    "temperature": "options.temperature",
    "top_p": "options.top_p",
    "top_k": "options.top_k",
    "stop": "options.stop",
    "seed": "options.seed",
    "presence_penalty": "options.presence_penalty",
    "frequency_penalty": "options.frequency_penalty",
    "reasoning": "think",
    "output": "format",
}
_OF_A_TOOL = frozenset({"name", "description", "parameters"})
_OF_A_CALL = {"name": "function.name", "arguments": "function.arguments"}
_USAGE = {"input": "prompt_eval_count", "output": "eval_count"}


def request_json_path(request: Request, message_index: int | None, part_index: int | None, field: str) -> str:
    if message_index is not None:
        path = f"$.messages[{message_index}]"
        if part_index is None:
            return f"{path}.{field}" if field else path
        return path + locate_part(request.messages[message_index], part_index, field)
    if part_index is None:
        head, _, rest = field.partition(".")
        if head == "output" and rest.startswith("schema."):
            return f"$.format.{rest.removeprefix('schema.')}"
        return f"$.{_SETTINGS.get(head, field)}" if head else "$"
    path = f"$.tools[{part_index}]"
    if field.partition(".")[0] in _OF_A_TOOL:
        return f"{path}.function.{field}"
    return f"{path}.{field}" if field else path


def response_json_path(completion: Completion, message_index: int | None, part_index: int | None, field: str) -> str:
    if message_index is not None:
        if part_index is None:
            return f"$.message.{field}" if field else "$.message"
        return f"$.message{locate_part(completion.messages[message_index], part_index, field)}"
    head, _, rest = field.partition(".")
    if head == "finish":
        return f"$.{rest}" if rest and rest != "stop_sequence" else "$.done_reason"
    if head == "usage":
        return f"$.{_USAGE.get(rest, rest)}" if rest else "$"
    if head == "created":
        return "$.created_at"
    return f"$.{field}" if field else "$"


def locate_part(message: Message, part_index: int, field: str) -> str:
    """A part within its message: each kind has a field of its own there."""
    parts = message.parts
    part = parts[part_index]
    if isinstance(part, ToolCall):
        place = f".tool_calls[{_count(parts[:part_index], ToolCall)}]"
        inner = _OF_A_CALL.get(field, field)
        return f"{place}.{inner}" if inner else place
    if isinstance(part, ToolResult):
        return f".{field}" if field and field not in ToolResult.__struct_fields__ else ""
    if field == "signature":
        return ".signatures"
    if isinstance(part, Reasoning):
        return ".thinking"
    if isinstance(part, Image | Audio):
        return f".images[{_count(parts[:part_index], Image, Audio)}]"
    return ".content"


def _count(parts: tuple[AnyPart, ...], *kinds: type[AnyPart]) -> int:
    return sum(isinstance(part, kinds) for part in parts)


request_paths = paths_by(request_json_path)
response_paths = paths_by(response_json_path)
