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
from dragoman.losses import Tables, paths_by_tables, running_totals

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


def request_json_path(
    request: Request, tables: Tables, message_index: int | None, part_index: int | None, field: str
) -> str:
    if message_index is not None:
        return _locate_message(request.messages, tables, message_index, part_index, field)
    if part_index is not None:
        return _locate_tool(request, tables, part_index, field)
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


def _locate_message(
    messages: tuple[Message, ...], tables: Tables, message_index: int, part_index: int | None, field: str
) -> str:
    message = messages[message_index]
    if message.role == "system":
        path = "$.systemInstruction"
    else:
        path = f"$.contents[{tables.of(messages, _contents)[message_index + 1] - 1}]"
    if part_index is None:
        return f"{path}.{field}" if field else path
    if _has(message, PLACES):
        place = tables.of(message, _places)[part_index]
    elif _has(message, JOINED):
        place = tables.of(messages, _places_left)[message_index][part_index]
    else:
        place = tables.of(message.parts, _wire_places)[part_index]
    return _locate_part(f"{path}.parts[{place}]", message.parts[part_index], field)


def _has(message: Message, key: str) -> bool:
    return message.metadata is not None and key in message.metadata.get(FAMILY, {})


def _contents(messages: tuple[Message, ...]) -> list[int]:
    return running_totals((other.role != "system") - _has(other, JOINED) for other in messages)


def _places(message: Message) -> list[int]:
    places: list[int] = note(message.metadata, FAMILY, PLACES)
    return places


def _places_left(messages: tuple[Message, ...]) -> dict[int, list[int]]:
    """Places of the parts of messages that share a content with the message before them: those it does not take."""
    left: dict[int, list[int]] = {}
    for index, message in enumerate(messages):
        if _has(message, JOINED):
            taken = set(_places(messages[index - 1])) if _has(messages[index - 1], PLACES) else set()
            left[index] = [place for place in range(len(taken) + len(message.parts)) if place not in taken]
    return left


def _wire_places(parts: tuple[AnyPart, ...]) -> list[int]:
    """Carried reasoning stands on the wire only as the thought that shows it."""
    return running_totals(map(_stands_alone, parts))


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


def _locate_tool(request: Request, tables: Tables, index: int, field: str) -> str:
    path = tables.of(request, _tool_paths)[index]
    head, dot, rest = field.partition(".")
    tool: Any = request.tools[index]
    if head == "parameters" and TYPED not in (tool.metadata or {}).get(FAMILY, {}):
        head = "parametersJsonSchema"
    return f"{path}.{head}{dot}{rest}" if field else path


def _tool_paths(request: Request) -> list[str]:
    groups = note(request.metadata, FAMILY, GROUPS)
    if groups is UNSET:
        functions = [place for place, tool in enumerate(request.tools) if not isinstance(tool, ProviderTool)]
        groups = [{"functions": len(functions)}] if functions else []
        groups += [{"built_in": 1}] * (len(request.tools) - len(functions))
    paths: list[str] = []
    for place, group in enumerate(groups):
        functions_here, built_in_here = group.get("functions", 0), group.get("built_in", 0)
        paths += [f"$.tools[{place}].functionDeclarations[{index}]" for index in range(functions_here)]
        paths += [f"$.tools[{place}]"] * built_in_here
    return paths + ["$.tools"] * (len(request.tools) - len(paths))


# ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────


def response_json_path(
    completion: Completion, tables: Tables, message_index: int | None, part_index: int | None, field: str
) -> str:
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
    path = f"{candidate}.content.parts[{tables.of(parts, _wire_places)[part_index]}]"
    return _locate_part(path, parts[part_index], field)


request_paths = paths_by_tables(request_json_path)
response_paths = paths_by_tables(response_json_path)
