"""Where in the wire body a node came from: JSON paths for losses."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from dragoman.codecs.gemini.foreign_signatures import HIDDEN, is_native_thought
from dragoman.codecs.gemini.messages import JOINED, PLACES
from dragoman.codecs.gemini.profile import FAMILY
from dragoman.codecs.gemini.schemas import TYPED
from dragoman.codecs.gemini.tools import GROUPS
from dragoman.ir import AnyPart, Completion, Message, ProviderTool, Reasoning, Request, ToolCall, ToolResult
from dragoman.ir.parts import Media
from dragoman.ir.values import note
from dragoman.losses import paths_by

_CONFIG = "$.generationConfig"
_SETTINGS = {
    "max_output_tokens": f"{_CONFIG}.maxOutputTokens",
    "temperature": f"{_CONFIG}.temperature",
    "top_p": f"{_CONFIG}.topP",
    "top_k": f"{_CONFIG}.topK",
    "stop": f"{_CONFIG}.stopSequences",
    "seed": f"{_CONFIG}.seed",
    "presence_penalty": f"{_CONFIG}.presencePenalty",
    "frequency_penalty": f"{_CONFIG}.frequencyPenalty",
    "candidates": f"{_CONFIG}.candidateCount",
    "reasoning.budget_tokens": f"{_CONFIG}.thinkingConfig.thinkingBudget",
    "reasoning.effort": f"{_CONFIG}.thinkingConfig.thinkingLevel",
    "reasoning.visible": f"{_CONFIG}.thinkingConfig.includeThoughts",
    "reasoning.mode": f"{_CONFIG}.thinkingConfig",
    "reasoning": f"{_CONFIG}.thinkingConfig",
    "tool_choice.mode": "$.toolConfig.functionCallingConfig",
    "tool_choice.names": "$.toolConfig.functionCallingConfig",
    "tool_choice": "$.toolConfig.functionCallingConfig",
}
_ANSWER = {
    "id": "$.responseId",
    "model": "$.modelVersion",
    "created": "$.createTime",
    "finish": "$.candidates[0].finishReason",
    "usage": "$.usageMetadata",
    "usage.input": "$.usageMetadata.promptTokenCount",
    "usage.output": "$.usageMetadata.candidatesTokenCount",
    "usage.cached": "$.usageMetadata.cachedContentTokenCount",
    "usage.reasoning": "$.usageMetadata.thoughtsTokenCount",
    "usage.image": "$.usageMetadata.promptTokensDetails",
    "usage.total": "$.usageMetadata.totalTokenCount",
}
_OF_A_CALL = {"name": "functionCall.name", "arguments": "functionCall.args", "id": "functionCall.id"}
_OF_A_RESULT = {
    "name": "functionResponse.name",
    "value": "functionResponse.response",
    "parts": "functionResponse.parts",
    "tool_call_id": "functionResponse.id",
}


def _known(table: dict[str, str], field: str) -> str:
    """The longest entry that the field starts with, and the rest of it."""
    if field in table:
        return table[field]
    head, _, rest = field.partition(".")
    return f"{table.get(head, f'$.{head}')}.{rest}" if rest else f"$.{head}" if head else "$"


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────


def request_json_path(request: Request, message_index: int | None, part_index: int | None, field: str) -> str:
    if message_index is not None:
        return _locate_message(request.messages, message_index, part_index, field)
    if part_index is not None:
        return _locate_tool(request, part_index, field)
    head, _, rest = field.partition(".")
    return _locate_output(request, rest) if head == "output" else _known(_SETTINGS, field)


def _locate_output(request: Request, field: str) -> str:
    output = request.output
    notes = {} if output is None else (output.metadata or {}).get(FAMILY, {})
    if "~format" in notes:
        return f"{_CONFIG}.responseFormat"
    if output is None or output.kind == "json":
        return f"{_CONFIG}.responseMimeType"
    path = f"{_CONFIG}.{'responseSchema' if TYPED in notes else 'responseJsonSchema'}"
    rest = field.removeprefix("schema").removeprefix(".")
    return f"{path}.{rest}" if rest else path


def _locate_message(messages: tuple[Message, ...], message_index: int, part_index: int | None, field: str) -> str:
    message = messages[message_index]
    if message.role == "system":
        path = "$.systemInstruction"
    else:
        before = messages[: message_index + 1]
        content = sum(other.role != "system" for other in before) - sum(_has(other, JOINED) for other in before) - 1
        path = f"$.contents[{content}]"
    if part_index is None:
        return f"{path}.{field}" if field else path
    place = _wire_place(message.parts, part_index)
    if _has(message, PLACES):
        place = note(message.metadata, FAMILY, PLACES)[part_index]
    elif _has(message, JOINED):
        taken = note(messages[message_index - 1].metadata, FAMILY, PLACES)
        taken = [] if taken is UNSET else taken
        place = [place for place in range(len(taken) + len(message.parts)) if place not in taken][part_index]
    return _locate_part(f"{path}.parts[{place}]", message.parts[part_index], field)


def _has(message: Message, key: str) -> bool:
    return message.metadata is not None and key in message.metadata.get(FAMILY, {})


def _wire_place(parts: tuple[AnyPart, ...], part_index: int) -> int:
    """Carried reasoning stands on the wire only as the thought that shows it."""
    return sum(_stands_alone(part) for part in parts[:part_index])


def _stands_alone(part: AnyPart) -> bool:
    if not isinstance(part, Reasoning) or is_native_thought(part):
        return True
    return bool(part.text) and HIDDEN not in (part.metadata or {}).get(FAMILY, {})


def _locate_part(path: str, part: AnyPart, field: str) -> str:
    inner = "thoughtSignature" if field == "signature" else field
    if isinstance(part, ToolCall):
        inner = _OF_A_CALL.get(field, inner)
    elif isinstance(part, ToolResult):
        inner = _OF_A_RESULT.get(field, inner)
    elif isinstance(part, Media):
        member = "fileData" if part.data is None else "inlineData"
        file = {"url": "fileData.fileUri", "data": "inlineData.data", "media_type": f"{member}.mimeType"}
        inner = file.get(field, inner)
    return f"{path}.{inner}" if inner else path


def _locate_tool(request: Request, index: int, field: str) -> str:
    path = _tool_path(request, index)
    head, dot, rest = field.partition(".")
    tool: Any = request.tools[index]
    if head == "parameters" and TYPED not in (tool.metadata or {}).get(FAMILY, {}):
        head = "parametersJsonSchema"
    return f"{path}.{head}{dot}{rest}" if field else path


def _tool_path(request: Request, index: int) -> str:
    groups = note(request.metadata, FAMILY, GROUPS)
    if groups is UNSET:
        functions = [place for place, tool in enumerate(request.tools) if not isinstance(tool, ProviderTool)]
        groups = [{"functions": len(functions)}] if functions else []
        groups += [{"built_in": 1}] * (len(request.tools) - len(functions))
    for place, group in enumerate(groups):
        functions_here, built_in_here = group.get("functions", 0), group.get("built_in", 0)
        if index < functions_here:
            return f"$.tools[{place}].functionDeclarations[{index}]"
        if index < functions_here + built_in_here:
            return f"$.tools[{place}]"
        index -= functions_here + built_in_here
    return "$.tools"


# ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────


def response_json_path(completion: Completion, message_index: int | None, part_index: int | None, field: str) -> str:
    if message_index is None:
        path = _known(_ANSWER, field)
        return _ANSWER["finish"] if path.startswith(_ANSWER["finish"]) else path
    candidate = f"$.candidates[{message_index}]"
    if field.startswith("candidate."):
        return f"{candidate}.{field.removeprefix('candidate.')}"
    if part_index is None:
        return f"{candidate}.content.{field}" if field else f"{candidate}.content"
    if field.startswith("citations"):
        return f"{candidate}.groundingMetadata"
    parts = completion.messages[message_index].parts
    path = f"{candidate}.content.parts[{_wire_place(parts, part_index)}]"
    return _locate_part(path, parts[part_index], field)


request_paths = paths_by(request_json_path)
response_paths = paths_by(response_json_path)
