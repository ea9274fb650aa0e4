"""JSON paths for losses: where in the wire body a node came from."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.codecs.gemini_interactions import foreign_signatures
from dragoman.codecs.gemini_interactions.messages import INSIDE, JOINED
from dragoman.codecs.gemini_interactions.profile import FAMILY
from dragoman.codecs.gemini_interactions.request import INPUT, SETTINGS
from dragoman.codecs.gemini_interactions.response import FAILED_STEP
from dragoman.codecs.gemini_interactions.steps import (
    BEFORE,
    CONTENT,
    ON_CALL,
    SPELLED,
    begins_step,
    is_output,
    shares_thought,
)
from dragoman.codecs.google_settings import path_of_shared
from dragoman.ir import (
    AnyPart,
    Audio,
    Completion,
    Document,
    Image,
    Message,
    Opaque,
    Reasoning,
    Request,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.ir.notes import family_notes
from dragoman.ir.values import parse_json
from dragoman.losses import PathsWithPieces, Tables, at, paths_by_tables

_MEDIA = {"url": "uri", "media_type": "mime_type", "detail": "resolution"}
_VIDEO = {"mediaResolution": "resolution", "mediaProcessing": "processing", "videoMetadata": "processing"}
_OF_A_PART: dict[type[AnyPart], dict[str, str]] = {
    Image: _MEDIA | _VIDEO,
    Document: _MEDIA | _VIDEO,
    Audio: _MEDIA,
    Reasoning: {"text": "summary", "redacted": "signature"},
    ToolResult: {"tool_call_id": "call_id", "value": "result", "parts": "result", "kind": "is_error"},
    ToolCall: {"arguments_text": "arguments"},
}
_KEYS = {
    "messages": "input",
    "generationConfig.responseModalities": "response_modalities",
    "reasoning.visible": "generation_config.thinking_summaries",
    "reasoning.thinking_summaries": "generation_config.thinking_summaries",
}

_Place = tuple[int, int, int]
"""Indices of a part: its step, its position in that step's contents, the step with its signature; all in one turn."""


def _turn_places(parts: Sequence[AnyPart]) -> tuple[list[_Place], int]:
    """Return the indices of each part of the model's turn, and the number of steps in the turn."""
    places: list[_Place] = []
    step, place = -1, 0
    previous: AnyPart | None = None
    for part in parts:
        notes = family_notes(FAMILY, getattr(part, "metadata", None))
        behind = bytes(notes.get("~tagged", b"")) == b'"after"'
        if begins_step(part, previous):
            place = 0
            signature = step
            if BEFORE in notes:
                step += 1
            signed = isinstance(part, Text | ToolCall) and part.signature is not None and ON_CALL not in notes
            if signed and not behind and not shares_thought(previous, part):
                step += 1
                signature = step
            step += not (signed and foreign_signatures.stands_alone(part))
            places.append((max(step, 0), place, step if isinstance(part, Reasoning) or not signed else signature))
        else:
            place += 1
            places.append((step, place, step))
        step += behind
        previous = part
    return places, step + 1


def _starts(messages: tuple[Message, ...]) -> list[int]:
    """Return the index of the first step of each message."""
    starts: list[int] = []
    step = 0
    for message in messages:
        notes = family_notes(FAMILY, message.metadata)
        joined = JOINED in notes
        starts.append(step - joined)
        if message.role == "assistant":
            step += _turn_places(message.parts)[1]
        elif message.role == "tool" and INSIDE not in notes:
            step += len(message.parts)
        elif message.role != "system" and not joined:
            step += 1
    return starts


def _turn(parts: tuple[AnyPart, ...]) -> list[_Place]:
    return _turn_places(parts)[0]


def _request_path(request: Request, tables: Tables, index: int | None, part_index: int | None, field: str) -> str:
    if index is None:
        return _setting_path(request, field) if part_index is None else at(f"$.tools[{part_index}]", field)
    message = request.messages[index]
    if message.role == "system":
        return "$.system_instruction"
    notes = family_notes(FAMILY, request.metadata)
    spelled = parse_json(notes[INPUT]) if INPUT in notes else None
    if spelled == "string":
        return "$.input"
    start = tables.of(request.messages, _starts)[index]
    root = "$.input" if spelled == "step" else f"$.input[{start}]"
    if message.role == "assistant":
        if part_index is None:
            return at(root, field)
        places = tables.of(message.parts, _turn)
        base = "$.input" if spelled == "step" else ""
        return _part_path("$.input", places[part_index], message.parts[part_index], field, start, base)
    if message.role == "tool":
        return _result_path(root, message, part_index, field, start)
    if part_index is None:
        return at(root, field)
    return _content_path(root, message, part_index, field, spelled)


def _result_path(root: str, message: Message, part_index: int | None, field: str, start: int) -> str:
    notes = family_notes(FAMILY, message.metadata)
    place = part_index or 0
    if INSIDE in notes:
        path = f"{root}.content[{parse_json(notes[INSIDE])[place]}]" if part_index is not None else root
    else:
        path = root if root == "$.input" else f"$.input[{start + place}]"
    inner = _OF_A_PART[ToolResult].get(field, field)
    return f"{path}.{inner}" if inner and inner != "cache" else path


def _content_path(root: str, message: Message, part_index: int, field: str, spelled: str | None) -> str:
    notes = family_notes(FAMILY, message.metadata)
    if spelled == "contents":
        path = f"$.input[{part_index}]"
    elif spelled == "content":
        path = "$.input"
    elif SPELLED in notes:
        return f"{root}.content"
    else:
        path = f"{root}.content[{part_index}]"
    part = message.parts[part_index]
    if type(message.content_held) is str:
        return path
    return _within_content(path, part, field)


def _within_content(path: str, part: AnyPart, field: str) -> str:
    if field.startswith("citations"):
        return f"{path}.annotations"
    if field in {"cache", "signature"}:
        return path
    inner = _OF_A_PART.get(type(part), {}).get(field, field)
    return f"{path}.{inner}" if inner else path


def _part_path(root: str, places: _Place, part: AnyPart, field: str, start: int = 0, alone: str = "") -> str:
    """Return the path of a part of the model's turn."""
    step, place, signature = places
    path = alone or f"{root}[{start + step}]"
    if field.startswith("step."):
        return f"{path}.{field.removeprefix('step.')}"
    if field == "signature":
        return f"{alone or f'{root}[{start + signature}]'}.signature"
    if isinstance(part, Opaque) and not part.kind.startswith(CONTENT):
        return path
    if is_output(part):
        spelled = SPELLED in family_notes(FAMILY, getattr(part, "metadata", None))
        if isinstance(part, Text) and part.signature is not None and foreign_signatures.stands_alone(part):
            return path
        return f"{path}.content" if spelled else _within_content(f"{path}.content[{place}]", part, field)
    inner = _OF_A_PART.get(type(part), {}).get(field, field)
    return f"{path}.{inner}" if inner and inner != "cache" else path


def _setting_path(request: Request, field: str) -> str:
    reasoning = request.reasoning
    if field.startswith("reasoning") and reasoning is not None and reasoning.effort is None:
        return f"$.{_KEYS['reasoning.visible']}"
    path = path_of_shared(field, request) or _KEYS.get(field)
    if path is not None:
        return f"$.{path}"
    head = field.partition(".")[0]
    if head in {"tool_choice", "reasoning", "output", "response_format"}:
        return SETTINGS.path(head)
    return SETTINGS.path(field)


def _piece_path(result: ToolResult, index: int, field: str) -> str:
    return _within_content(f".result[{index}]", result.parts[index], field)


request_paths = PathsWithPieces(paths_by_tables(_request_path), _piece_path)

_ANSWER = {
    "finish": "status",
    "finish.explanation": "errors[0].message",
    "usage.input": "usage.total_input_tokens",
    "usage.output": "usage.total_output_tokens",
    "usage.cached": "usage.total_cached_tokens",
    "usage.reasoning": "usage.total_thought_tokens",
    "usage.total": "usage.total_tokens",
    "usage.service_tier": "service_tier",
}


def _response_path(
    completion: Completion, tables: Tables, index: int | None, part_index: int | None, field: str
) -> str:
    if index is None:
        failed = family_notes(FAMILY, completion.metadata).get(FAILED_STEP) if field == "finish.explanation" else None
        if failed is not None:
            return f"$.steps[{parse_json(failed)}].error.message"
        return _answer_path(field)
    outputs = "~outputs" in family_notes(FAMILY, completion.metadata)
    root = "$.outputs" if outputs else "$.steps"
    if part_index is None:
        return at(root, field)
    message = completion.messages[index]
    part = message.parts[part_index]
    if outputs:
        return _within_content(f"$.outputs[{part_index}]", part, field)
    return _part_path("$.steps", tables.of(message.parts, _turn)[part_index], part, field)


def _answer_path(field: str) -> str:
    path = _ANSWER.get(field) or _ANSWER.get(field.partition(".")[0], field)
    return f"$.{path}" if path else "$"


response_paths = paths_by_tables(_response_path)
