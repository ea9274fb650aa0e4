"""JSON paths for losses: where in the wire body a node came from."""

from __future__ import annotations

from functools import partial

from dragoman.codecs.cohere_chat.foreign_signatures import PLAN
from dragoman.codecs.cohere_chat.grounding import OF_THE_REQUEST
from dragoman.codecs.cohere_chat.messages import CONTENT
from dragoman.codecs.cohere_chat.profile import FAMILY
from dragoman.codecs.cohere_chat.request import SETTINGS
from dragoman.codecs.result_media import TAGGED, media_turns_before
from dragoman.ir import (
    AnyPart,
    Completion,
    Document,
    Image,
    Message,
    Metadata,
    Reasoning,
    Request,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.losses import KEY, PathsWithPieces, Tables, at, paths_by_tables

_OF_A_TOOL = frozenset({"name", "description", "parameters"})
_OF_A_CALL = {"name": "function.name", "arguments": "function.arguments", "arguments_text": "function.arguments"}
_OF_AN_IMAGE = {
    "url": "image_url.url",
    "data": "image_url.url",
    "media_type": "image_url.url",
    "detail": "image_url.detail",
}
_OF_A_DOCUMENT = {"text": "data", "title": "data.title", "context": "data.context"}
_WITHIN_DOCUMENTS = frozenset({"id", "data", "data.title", "data.context"})
_USAGE = {
    "input": "tokens.input_tokens",
    "output": "tokens.output_tokens",
    "cached": "cached_tokens",
    "reasoning": "tokens.reasoning_tokens",
    "image": "tokens.image_tokens",
}
_media_turns = partial(media_turns_before, family=FAMILY)  # one object: `Tables` remembers results by function
_INSIDE = {"reasoning.budget_tokens": "$.thinking.token_budget"}


def _own(metadata: Metadata | None) -> frozenset[str]:
    return frozenset((metadata or {}).get(FAMILY, ()))


def _request_path(
    request: Request, tables: Tables, message_index: int | None, part_index: int | None, field: str
) -> str:
    if message_index is None:
        return _setting_path(field) if part_index is None else _tool_path(part_index, field)
    turns = tables.of(request.messages, _media_turns)
    message = request.messages[message_index]
    path = f"$.messages[{message_index + turns[message_index]}]"
    return _message_path(message, tables, path, part_index, field)


def _setting_path(field: str) -> str:
    if field in _INSIDE:
        return _INSIDE[field]
    if field.startswith("output.schema"):
        return f"$.response_format.json_schema{field.removeprefix('output.schema')}"
    head = field.partition(".")[0]
    # The inside of one of our settings has no separate key on this wire.
    return SETTINGS.path(head if head in Request.__struct_fields__ else field)


def _tool_path(index: int, field: str) -> str:
    path = f"$.tools[{index}]"
    if field == "strict":
        return "$.strict_tools"
    if field.partition(".")[0] in _OF_A_TOOL:
        return f"{path}.function.{field}"
    return at(path, field)


def _places(parts: tuple[AnyPart, ...]) -> list[int]:
    """For each part, return its index in the list for its kind: documents, calls, or content."""
    places = []
    counts = {"documents": 0, "calls": 0, "content": 0}
    for part in parts:
        key = "content"
        if type(part) is ToolCall:
            key = "calls"
        elif type(part) is Document and OF_THE_REQUEST in _own(part.metadata):
            key = "documents"
        places.append(counts[key])
        counts[key] += 1
    return places


def _message_path(message: Message, tables: Tables, path: str, part_index: int | None, field: str) -> str:
    if part_index is None:
        return at(path, field)
    part = message.parts[part_index]
    if isinstance(part, ToolResult):
        if field.startswith("document."):
            return f"{path}.content[0].{field}"
        return f"{path}.{field}" if field and field not in ToolResult.__struct_fields__ else path
    content = message.content_held
    place = 0 if type(content) is str else tables.of(content, _places)[part_index]  # type: ignore[arg-type]
    if isinstance(part, ToolCall):
        inner = _OF_A_CALL.get(field, field)
        return f"{path}.tool_calls[{place}].{inner}" if inner else f"{path}.tool_calls[{place}]"
    if isinstance(part, Document):
        if OF_THE_REQUEST in _own(part.metadata):
            return at(f"$.documents[{place}]", _within_document(field))
        return _document_path(f"{path}.content[{place}]", field)
    return path + _content_path(message, part, place, field)


def _within_document(field: str) -> str:
    inner = _OF_A_DOCUMENT.get(field, field.removeprefix(KEY))
    return inner if inner in _WITHIN_DOCUMENTS else ""


def _document_path(path: str, field: str) -> str:
    """Return the path of a field of a content part with a document; `part.` is for keys beside the document."""
    beside = field.removeprefix(KEY)
    if beside.startswith("part."):
        return f"{path}.{beside.removeprefix('part.')}"
    return at(f"{path}.document", _within_document(field))


def _content_path(message: Message, part: AnyPart, place: int, field: str) -> str:
    if isinstance(part, Text) and PLAN in _own(part.metadata):
        return ".citations" if field.startswith("citations") else ".tool_plan"
    if isinstance(part, Text) and field.startswith("citations"):
        return ".citations"
    is_string = type(message.content_held) is str or CONTENT in _own(message.metadata)
    content_path = ".content" if is_string else f".content[{place}]"
    if isinstance(part, Image):
        field = _OF_AN_IMAGE.get(field, field)
    elif isinstance(part, Reasoning) and field == "text":
        field = "thinking"
    return content_path if is_string or not field or field in {"cache", "redacted"} else f"{content_path}.{field}"


def _response_path(
    completion: Completion, tables: Tables, message_index: int | None, part_index: int | None, field: str
) -> str:
    if message_index is not None:
        return _message_path(completion.messages[message_index], tables, "$.message", part_index, field)
    head, _, rest = field.partition(".")
    if head == "finish":
        return "$.finish_reason"
    if head == "usage":
        counts = "$.meta" if "~meta" in _own(completion.metadata) else "$.usage"
        return f"{counts}.{_USAGE.get(rest, rest)}" if rest else counts
    return at("$", field)


def _piece_path(result: ToolResult, index: int, field: str) -> str:
    if TAGGED in _own(result.metadata):
        return ""  # the media were in a separate turn
    part, path = result.parts[index], f".content[{index}]"
    if isinstance(part, Document):
        return _document_path(path, field)
    return path if field == "cache" else at(path, _OF_AN_IMAGE.get(field, field) if isinstance(part, Image) else field)


request_paths = PathsWithPieces(paths_by_tables(_request_path), _piece_path)
response_paths = paths_by_tables(_response_path)
