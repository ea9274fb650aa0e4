"""JSON paths for losses: where in the wire body a node came from."""

from __future__ import annotations

from functools import lru_cache

from dragoman.codecs.cache_breakpoints import part_key
from dragoman.codecs.openai_responses import foreign_signatures
from dragoman.codecs.openai_responses.items import EASY, ID, INSTRUCTIONS, TYPED, spelling_of
from dragoman.codecs.openai_responses.messages import item_places
from dragoman.codecs.openai_responses.parts import CONTENT, LOGPROBS
from dragoman.codecs.openai_responses.profile import ENDED_EARLY, FAMILY
from dragoman.codecs.openai_responses.request import SETTINGS
from dragoman.ir import (
    AnyPart,
    Audio,
    Completion,
    Document,
    Finish,
    Image,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    Request,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from dragoman.ir.notes import ADDED, MODELLED, family_notes
from dragoman.ir.values import parse_json
from dragoman.losses import PathsWithPieces, Tables, at, paths_by_tables

_OF_A_PART: dict[type[AnyPart], dict[str, str]] = {
    Image: {"url": "image_url", "data": "image_url", "media_type": "image_url"},
    Document: {"data": "file_data", "media_type": "file_data", "url": "file_url", "title": "filename"},
    Audio: {"data": "input_audio.data", "media_type": "input_audio.format"},
    ToolCall: {"id": "call_id", "signature": ""},
    Reasoning: {"signature": "encrypted_content", "text": "summary", "redacted": "encrypted_content"},
    Refusal: {"text": "refusal"},
}
_OF_REASONING = {"mode": "effort", "budget_tokens": "effort", "visible": "summary"}


def _request_path(
    request: Request, tables: Tables, message_index: int | None, part_index: int | None, field: str
) -> str:
    if message_index is None:
        return _setting_path(field) if part_index is None else _tool_path(request, part_index, field)
    messages = request.messages
    message = messages[message_index]
    if message_index == 0 and message.metadata == INSTRUCTIONS:
        return "$.instructions"
    if "~input" in family_notes(FAMILY, request.metadata):
        return "$.input"
    start, within = tables.of(messages, _places)[message_index]
    if part_index is None:
        path = f"$.input[{start}]"
        return at(path, field)
    if message.role == "assistant":
        item, place = within[part_index]
        return _part_path("$.input", start + item, message.parts[part_index], place, field)
    return _content_path(f"$.input[{start}]", message, part_index, field)


def _piece_path(result: ToolResult, index: int, field: str) -> str:
    part = result.parts[index]
    inner = _OF_A_PART.get(type(part), {}).get(field, part_key(field))
    return at(f".output[{index}]", inner)


request_paths = PathsWithPieces(paths_by_tables(_request_path), _piece_path)


def _places(messages: tuple[Message, ...]) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return the index of each message's first item, and the item and position of each part of a model's turn."""
    places: list[tuple[int, list[tuple[int, int]]]] = []
    start = 0
    for index, message in enumerate(messages):
        if message.role == "assistant":
            within, count = item_places(message)
        else:
            within, count = [], int(index > 0 or message.metadata != INSTRUCTIONS)
        places.append((start, within))
        start += count
    return places


def _content_path(path: str, message: Message, part_index: int, field: str) -> str:
    part = message.parts[part_index]
    if isinstance(part, ToolResult):
        return f"{path}.{field}" if field and field not in ToolResult.__struct_fields__ else path
    if isinstance(part, Opaque) and not part.kind.startswith(CONTENT):
        return path  # the part is a whole item
    if type(message.content_held) is str:
        return f"{path}.content"
    inner = _OF_A_PART.get(type(part), {}).get(field, part_key(field))
    return f"{path}.content[{part_index}]" + (f".{inner}" if inner else "")


def _part_path(items: str, item: int, part: AnyPart, place: int, field: str) -> str:
    """Return the path of a part of the model's turn, which is in this item."""
    if field == "signature" and isinstance(part, Text | Image):
        return f"{items}[{_carrier_of(part, item)}].encrypted_content"
    path = f"{items}[{item}]"
    inner = _OF_A_PART.get(type(part), {}).get(field, field)
    if isinstance(part, Text | Refusal):
        if field == "phase":
            return f"{path}.phase"
        if field.startswith("item."):
            return f"{path}.{field.removeprefix('item.')}"
        notes = family_notes(FAMILY, part.metadata)
        spelled = spelling_of(notes)
        is_string = spelled in {EASY, TYPED} or (spelled is None and ID not in notes)
        path += ".content" if is_string and not place else f".content[{place}]"
        if field.startswith("citations"):
            return f"{path}.annotations"
    elif isinstance(part, Opaque) and part.kind.startswith(CONTENT):
        path += f".content[{place}]"
    elif isinstance(part, ToolCall) and field in {"arguments", "arguments_text"}:
        inner = "input" if part.custom else "arguments"
    elif type(part) is Reasoning and field == "text" and MODELLED + "content" in family_notes(FAMILY, part.metadata):
        inner = "content"  # an open model shows its reasoning beside the summary
    return f"{path}.{inner}" if inner else path


def _carrier_of(part: Text | Image, item: int) -> int:
    """Return the index of the item that carries the signature of a part; an empty text is that item."""
    if foreign_signatures.CARRIER_BEHIND in family_notes(FAMILY, part.metadata):
        return item + 1
    return item if isinstance(part, Text) and not part.text else item - 1


@lru_cache(maxsize=512)
def _setting_path(field: str) -> str:
    if field == "messages":
        return "$.input"
    head, _, rest = field.partition(".")
    if head == "reasoning" and rest in _OF_REASONING:
        return f"$.reasoning.{_OF_REASONING[rest]}"
    if head == "tool_choice" and rest in ToolChoice.__struct_fields__:
        return "$.tool_choice"
    return SETTINGS.path(field)


def _tool_path(request: Request, index: int, field: str) -> str:
    added = family_notes(FAMILY, request.tools[index].metadata).get(ADDED)
    path = f"$.tools[{index}]" if added is None else str(parse_json(added))
    return at(path, field)


_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cached": "input_tokens_details.cached_tokens",
    "cache_written": "input_tokens_details.cache_write_tokens",
    "image": "input_tokens_details.image_tokens",
    "reasoning": "output_tokens_details.reasoning_tokens",
    "total": "total_tokens",
}


def _response_path(
    completion: Completion, tables: Tables, message_index: int | None, part_index: int | None, field: str
) -> str:
    if message_index is None:
        return _logprobs_path(completion) if field == "logprobs" else _answer_path(completion, field)
    if part_index is None:
        return at("$.output", field)
    message = completion.messages[message_index]
    item, place = tables.of(message, item_places)[0][part_index]
    return _part_path("$.output", item, message.parts[part_index], place, field)


response_paths = paths_by_tables(_response_path)


def _logprobs_path(completion: Completion) -> str:
    """Return the path of the logprobs of the first text that has any."""
    for message in completion.messages:
        for part, (item, place) in zip(message.parts, item_places(message)[0], strict=True):
            if type(part) is Text and LOGPROBS in family_notes(FAMILY, part.metadata):
                return _part_path("$.output", item, part, place, "logprobs")
    return "$.output"


def _answer_path(completion: Completion, field: str) -> str:
    head, _, rest = field.partition(".")
    if head == "finish":
        if rest == "explanation":
            return "$.error.message"
        if rest and rest not in Finish.__struct_fields__:
            return f"$.incomplete_details.{rest}"
        early = completion.finish is not None and completion.finish.raw in ENDED_EARLY
        return "$.incomplete_details.reason" if early else "$.status"
    if field == "usage.service_tier":
        return "$.service_tier"
    if head == "usage" and rest:
        return f"$.usage.{_USAGE.get(rest, rest)}"
    if head == "created":
        return "$.created_at"
    return at("$", field)
