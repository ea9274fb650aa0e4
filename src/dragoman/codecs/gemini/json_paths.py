"""JSON paths for losses: where in the wire body a node came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Raw

from dragoman.codecs.gemini.foreign_signatures import GROUNDING, HIDDEN
from dragoman.codecs.gemini.messages import JOINED, PLACES
from dragoman.codecs.gemini.profile import FAMILY
from dragoman.codecs.gemini.request import SETTINGS
from dragoman.codecs.gemini.response import USAGE
from dragoman.codecs.gemini.schemas import TYPED
from dragoman.codecs.gemini.thinking import WHOLE_CONFIG
from dragoman.codecs.gemini.tools import DECLARATIONS, GROUPS
from dragoman.codecs.gemini.wire import snake_case
from dragoman.codecs.google_signatures import is_native_thought
from dragoman.codecs.result_media import TAGGED
from dragoman.ir import (
    AnyPart,
    Completion,
    Message,
    Metadata,
    ProviderTool,
    Reasoning,
    Request,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.ir.notes import MODELLED, RENAMED, SINGLE, WITHIN, family_notes, inner_extra
from dragoman.ir.parts import Media
from dragoman.ir.values import note, parse_json
from dragoman.losses import PathsWithPieces, Tables, at, paths_by_class, paths_by_tables, running_totals

_CONFIG = "$.generationConfig"
_THINKING = f"{_CONFIG}.thinkingConfig."
_SETTINGS = {field: SETTINGS.path(field) for field in Request.__struct_fields__ if field != "output"} | {
    "messages": "$.contents",
    "reasoning.budget_tokens": f"{_CONFIG}.thinkingConfig.thinkingBudget",
    "reasoning.effort": f"{_CONFIG}.thinkingConfig.thinkingLevel",
    "reasoning.visible": f"{_CONFIG}.thinkingConfig.includeThoughts",
    "reasoning.mode": f"{_CONFIG}.thinkingConfig",
    "tool_choice.mode": "$.toolConfig.functionCallingConfig",
    "tool_choice.names": "$.toolConfig.functionCallingConfig",
}
_ANSWER = {
    "id": "$.responseId",
    "model": "$.modelVersion",
    "created": "$.createTime",
    "finish": "$.candidates[0].finishReason",
    "usage": "$.usageMetadata",
    "logprobs": "$.candidates[0].logprobsResult",
    "usage.input": "$.usageMetadata.promptTokenCount",
    "usage.output": "$.usageMetadata.candidatesTokenCount",
    "usage.cached": "$.usageMetadata.cachedContentTokenCount",
    "usage.reasoning": "$.usageMetadata.thoughtsTokenCount",
    "usage.image": "$.usageMetadata.promptTokensDetails",
    "usage.total": "$.usageMetadata.totalTokenCount",
    "usage.service_tier": "$.usageMetadata.serviceTier",
}
_OF_A_CALL = {"name": "functionCall.name", "arguments": "functionCall.args", "id": "functionCall.id"}
_OF_A_RESULT = {
    "name": "functionResponse.name",
    "value": "functionResponse.response",
    "parts": "functionResponse.parts",
    "tool_call_id": "functionResponse.id",
}


# ── spelling ──────────────────────────────────────────────────────────────────────────────────────────────────


_RENAMED_WITHIN = RENAMED.encode()


def _spelled_key(key: str, notes: Mapping[str, Any]) -> str:
    """Return the key as the client spelled it."""
    renamed = notes.get(RENAMED + key) if notes else None
    return key if renamed is None else str(parse_json(renamed))


def _respell_path(path: str, notes: Mapping[str, Any]) -> str:
    """Return a path below a node in the client's spelling; `notes` are this family's notes on that node."""
    if not notes:
        return path
    head, dot, rest = path.partition(".")
    raw = notes.get(WITHIN + head) if rest else None
    if raw is not None and _RENAMED_WITHIN in bytes(raw):
        rest = _respell_path(rest, inner_extra(notes, head) or {})
    return _spelled_key(head, notes) + dot + rest


def _find_path(path: str, value: Any) -> str:
    """Return a path into a value that was kept whole, in the client's spelling."""
    if isinstance(value, Raw) and b"_" not in bytes(value):
        return path  # no key of it is in snake_case
    head, dot, rest = path.partition(".")
    parsed = parse_json(value) if isinstance(value, Raw) else value
    if not isinstance(parsed, dict) or (head not in parsed and snake_case(head) not in parsed):
        return path
    key = head if head in parsed else snake_case(head)
    return key + dot + (_find_path(rest, parsed[key]) if rest else "")


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────


class _RequestPaths:
    """Looks up the JSON paths of a request's nodes in the wire body."""

    _request: Request
    _tables: Tables | None = None
    _respelled: bool | None = None
    _tools: list[str] | None = None

    def __init__(self, request: Request) -> None:
        self._request = request

    def json_path(self, message_index: int | None, part_index: int | None, field: str) -> str:
        if message_index is not None:
            if self._tables is None:
                self._tables = Tables()
            return _locate_message(self._request, self._tables, message_index, part_index, field)
        if part_index is not None:
            if self._tools is None:
                self._tools = _tool_paths(self._request)
            return _locate_tool(self._request, self._tools, part_index, field)
        if self._respelled is None:
            self._respelled = _is_respelled(self._request)
        path = _SETTINGS.get(field)
        if path is None:
            head, _, rest = field.partition(".")
            path = _locate_output(self._request, rest) if head == "output" else SETTINGS.path(field)
        return _as_written(path, self._request) if self._respelled else path


def _is_respelled(request: Request) -> bool:
    """Whether a setting may have a different key in the body; only then is each path looked up in the notes."""
    for key, value in family_notes(FAMILY, request.metadata).items():
        if key.startswith(RENAMED) or (key.startswith(WITHIN) and _RENAMED_WITHIN in bytes(value)):
            return True
    config = None if request.reasoning is None else family_notes(FAMILY, request.reasoning.metadata).get(WHOLE_CONFIG)
    return config is not None and b"_" in bytes(config)


def _as_written(path: str, request: Request) -> str:
    if path == "$":
        return path
    if path.startswith(_THINKING) and request.reasoning is not None:
        config = note(request.reasoning.metadata, FAMILY, WHOLE_CONFIG)
        path = _THINKING + _find_path(path.removeprefix(_THINKING), None if config is UNSET else config)
    notes = family_notes(FAMILY, request.metadata)
    return "$." + _respell_path(path[2:], notes) if notes else path


def _locate_output(request: Request, field: str) -> str:
    output = request.output
    notes = {} if output is None else (output.metadata or {}).get(FAMILY, {})
    if "~format" in notes:
        return f"{_CONFIG}.responseFormat"
    if output is None or output.kind == "json":
        return f"{_CONFIG}.responseMimeType"
    path = f"{_CONFIG}.{'responseSchema' if TYPED in notes else 'responseJsonSchema'}"
    rest = field.removeprefix("schema").removeprefix(".")
    return at(path, rest)


def _locate_message(request: Request, tables: Tables, message_index: int, part_index: int | None, field: str) -> str:
    messages = request.messages
    message = messages[message_index]
    if message.role == "system":
        path = f"$.{_spelled_key('systemInstruction', family_notes(FAMILY, request.metadata))}"
    elif SINGLE + "contents" in family_notes(FAMILY, request.metadata):
        path = "$.contents"
    else:
        path = f"$.contents[{tables.of(messages, _contents)[message_index + 1] - 1}]"
    if part_index is None:
        return at(path, field)
    parts = message.parts
    if _has(message, PLACES):
        place = tables.of(message, _places)[part_index]
    elif _has(message, JOINED):
        place = tables.of(messages, _places_left)[message_index][part_index]
    elif part_index == 0:
        place = 0
    else:
        place = tables.of(parts, _wire_places)[part_index]
    piece = "" if _has(message, SINGLE + "parts") else f"[{place}]"
    return _locate_part(f"{path}.parts{piece}", parts[part_index], field)


def _has(message: Message, key: str) -> bool:
    return message.metadata is not None and key in message.metadata.get(FAMILY, {})


def _contents(messages: tuple[Message, ...]) -> list[int]:
    return running_totals((other.role != "system") - _has(other, JOINED) for other in messages)


def _places(message: Message) -> list[int]:
    places: list[int] = note(message.metadata, FAMILY, PLACES)
    return places


def _places_left(messages: tuple[Message, ...]) -> dict[int, list[int]]:
    """For messages that share a content with the preceding results: the part indices the results do not use."""
    left: dict[int, list[int]] = {}
    for index, message in enumerate(messages):
        if _has(message, JOINED):
            taken = set(_places(messages[index - 1])) if _has(messages[index - 1], PLACES) else set()
            left[index] = [place for place in range(len(taken) + len(message.parts)) if place not in taken]
    return left


def _wire_places(parts: tuple[AnyPart, ...]) -> list[int]:
    """Return the wire index of each part; carried reasoning has one only through the thought that shows it."""
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
        inner = _resolution_key(part) if field == "detail" else file.get(field, inner)
    metadata: Metadata | None = getattr(part, "metadata", None)
    if inner and metadata is not None and FAMILY in metadata:
        inner = _respell_path(inner, metadata[FAMILY])
    return f"{path}.{inner}" if inner else path


def _resolution_key(part: Any) -> str:
    snake = snake_case("mediaResolution")
    return snake if MODELLED + snake in family_notes(FAMILY, part.metadata) else "mediaResolution"


def _locate_tool(request: Request, paths: list[str], index: int, field: str) -> str:
    path = paths[index]
    head, dot, rest = field.partition(".")
    tool: Any = request.tools[index]
    notes = (getattr(tool, "metadata", None) or {}).get(FAMILY, {})
    if head == "parameters" and TYPED not in notes:
        head = _spelled_key("parametersJsonSchema", notes)
    return f"{path}.{head}{dot}{rest}" if field else path


def _tool_paths(request: Request) -> list[str]:
    groups = note(request.metadata, FAMILY, GROUPS)
    if groups is UNSET:
        functions = [place for place, tool in enumerate(request.tools) if not isinstance(tool, ProviderTool)]
        groups = [{"functions": len(functions)}] if functions else []
        groups += [{"built_in": 1}] * (len(request.tools) - len(functions))
    is_single = note(request.metadata, FAMILY, SINGLE + "tools") is not UNSET
    paths: list[str] = []
    for place, group in enumerate(groups):
        functions_here, built_in_here = group.get("functions", 0), group.get("built_in", 0)
        path = "$.tools" if is_single else f"$.tools[{place}]"
        spelling = group.get("spelling", {})
        key = spelling.get(RENAMED + DECLARATIONS, DECLARATIONS)
        is_lone = SINGLE + DECLARATIONS in spelling
        paths += [f"{path}.{key}" if is_lone else f"{path}.{key}[{index}]" for index in range(functions_here)]
        paths += [path] * built_in_here
    return paths + ["$.tools"] * (len(request.tools) - len(paths))


# ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────


_FEEDBACK = "promptFeedback"


def _locate_answer(completion: Completion, field: str) -> str:
    notes = family_notes(FAMILY, completion.metadata)
    head, _, rest = field.partition(".")
    if head == "finish":
        if completion.messages:
            return "$.candidates[0].finishMessage" if rest == "explanation" else _ANSWER["finish"]
        # A blocked prompt has no candidate.
        for key in (_FEEDBACK, snake_case(_FEEDBACK)):
            held = notes.get(key, notes.get(MODELLED + key))
            if held is not None:
                return f"$.{key}.{_find_path('blockReason', held)}"
        return "$"
    path = _ANSWER.get(field) or _ANSWER.get(head, f"$.{head}") + (f".{rest}" if rest else "")
    if head == "usage" and rest and completion.usage is not None:
        held = note(completion.usage.metadata, FAMILY, USAGE)
        path = f"{_ANSWER[head]}.{_find_path(path.removeprefix(_ANSWER[head] + '.'), None if held is UNSET else held)}"
    if not field or not notes:
        return path if field else "$"
    return "$." + _respell_path(path[2:], notes)


def _grounding_key(message: Message) -> str:
    entries = inner_extra(family_notes(FAMILY, message.metadata), "candidate") or {}
    snake = snake_case(GROUNDING)
    return snake if snake in entries or MODELLED + snake in entries else GROUNDING


def _response_path(
    completion: Completion, tables: Tables, message_index: int | None, part_index: int | None, field: str
) -> str:
    if message_index is None:
        return _locate_answer(completion, field)
    candidate = f"$.candidates[{message_index}]"
    if field.startswith("candidate."):
        return f"{candidate}.{field.removeprefix('candidate.')}"
    if part_index is None:
        if not field and "~content" in family_notes(FAMILY, completion.messages[message_index].metadata):
            return candidate
        return at(f"{candidate}.content", field)
    if field.startswith("citations"):
        return f"{candidate}.{tables.of(completion.messages[message_index], _grounding_key)}"
    parts = completion.messages[message_index].parts
    path = f"{candidate}.content.parts[{tables.of(parts, _wire_places)[part_index]}]"
    return _locate_part(path, parts[part_index], field)


def _piece_path(result: ToolResult, index: int, field: str) -> str:
    """Return where a part of a result was: in the response, or among the media beside it."""
    notes = family_notes(FAMILY, result.metadata)
    if TAGGED in notes:
        return ""  # the media were in a separate content
    answer = _spelled_key("functionResponse", notes)
    inner = inner_extra(notes, "functionResponse") or {}
    has_text = type(result.parts[0]) is Text
    if index == 0 and has_text:
        return f".{answer}.{_spelled_key('response', inner)}"
    path = f".{answer}.{_spelled_key('parts', inner)}[{index - has_text}]"
    return _locate_part(path, result.parts[index], field)


request_paths = PathsWithPieces(paths_by_class(_RequestPaths), _piece_path)


response_paths = paths_by_tables(_response_path)
