"""JSON paths for losses: where in the wire body a node came from."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from msgspec import UNSET

from dragoman.codecs import cache_control
from dragoman.codecs.cache_breakpoints import part_key
from dragoman.codecs.listed_pages import CITATIONS, RESULTS, is_listed
from dragoman.codecs.openai_chat import audio, images
from dragoman.codecs.openai_chat.foreign_signatures import OPAQUE, SIGNED_AT
from dragoman.codecs.openai_chat.hosted_tools import HOSTED
from dragoman.codecs.openai_chat.messages import BESIDE, FAMILY, FLAT
from dragoman.codecs.openai_chat.parts import BY_URL
from dragoman.codecs.openai_chat.request import SETTINGS
from dragoman.codecs.openai_chat.response import MATCHED
from dragoman.codecs.openai_chat.thinking import (
    IN_TEMPLATE,
    SHOWN,
    TEMPLATE,
    WHOLE_FLAGS,
    WHOLE_OBJECT,
    WHOLE_SWITCH,
)
from dragoman.codecs.openai_chat.tools import BARE_SCHEMA, SCHEMA_KEYS, SHAPE
from dragoman.codecs.result_media import TAGGED, media_turns_before
from dragoman.ir import (
    AnyPart,
    Audio,
    Completion,
    CustomTool,
    Document,
    Image,
    Message,
    Metadata,
    Reasoning,
    Refusal,
    Request,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
)
from dragoman.ir.notes import MODELLED, RENAMED, Extra, family_notes, inner_extra
from dragoman.ir.traits import traits_of
from dragoman.ir.values import note, parse_json
from dragoman.losses import KEY, PathsWithPieces, at, paths_by_class

_OF_A_SCHEMA = frozenset({"name", "schema", "description", "strict"})
_OF_A_TOOL = {
    ToolDefinition: ("function", frozenset({"name", "description", "parameters", "strict"})),
    CustomTool: ("custom", frozenset({"name", "description", "format"})),
}
_OF_A_PART: dict[type[AnyPart], dict[str, str]] = {
    Image: {
        "url": "image_url.url",
        "data": "image_url.url",
        "media_type": "image_url.url",
        "detail": "image_url.detail",
        "signature": "extra_content",
    },
    Audio: {"data": "input_audio.data", "media_type": "input_audio.format"},
    Document: {"data": "file.file_data", "url": "file.file_data", "file_id": "file.file_id", "title": "file.filename"},
    ToolCall: {
        "name": "function.name",
        "arguments": "function.arguments",
        "arguments_text": "function.arguments",
        "signature": "extra_content",
    },
}
_OF_A_CUSTOM_CALL = {"name": "custom.name", "arguments": "custom.input", "arguments_text": "custom.input"}


class _RequestPaths:
    """Looks up the JSON paths of a request's nodes in the wire body."""

    _request: Request
    _turns: list[int] | None = None
    _places: dict[int, list[int]]

    def __init__(self, request: Request) -> None:
        self._request = request
        self._places = {}

    def json_path(self, message_index: int | None, part_index: int | None, field: str) -> str:
        if message_index is None:
            if part_index is not None:
                return _tool_path(self._request, part_index, field)
            path = _SETTINGS.get(field)
            return _setting_path(self._request, field) if path is None else path
        turns = self._turns
        if turns is None:
            # A request with traits has no message that moved (`decode_request`).
            has_moved = traits_of(self._request) is None
            turns = self._turns = media_turns_before(self._request.messages, FAMILY) if has_moved else []
        path = f"$.messages[{message_index + turns[message_index] if turns else message_index}]"
        if part_index is None:
            return at(path, field)
        message = self._request.messages[message_index]
        places = self._places.get(message_index)
        if places is None:
            places = self._places[message_index] = _places(message)
        return path + _part_path(message, part_index, field, places)


def _piece_path(result: ToolResult, index: int, field: str) -> str:
    if TAGGED in (result.metadata or {}).get(FAMILY, {}):
        return ""  # the media were in a separate turn
    part = result.parts[index]
    inner = _OF_A_PART.get(type(part), {}).get(field) or cache_control.path_key(part, field) or part_key(field)
    return at(f".content[{index}]", inner)


request_paths = PathsWithPieces(paths_by_class(_RequestPaths), _piece_path)


def _places(message: Message) -> list[int]:
    """Return the index of each part: of a call in the list of calls, of any other part in the list of contents."""
    held = message.content_held
    if isinstance(held, str):
        return [0]
    places, calls, contents = [], 0, 0
    for part in held:
        places.append(calls if type(part) is ToolCall else contents)
        if type(part) is ToolCall:
            calls += "~legacy" not in _own(part)
        else:
            contents += _is_content(message, part)
    return places


def _is_content(message: Message, part: AnyPart) -> bool:
    """Whether the part is in the list of contents. An assistant message has separate fields beside it."""
    if message.role != "assistant":
        return True
    if isinstance(part, Reasoning):
        return "~thinking" in _own(part)
    beside = type(part) is Refusal and BESIDE in _own(part)
    return not (beside or images.is_made(part) or audio.is_spoken(part))


def _own(part: AnyPart) -> Extra:
    return (part.metadata or {}).get(FAMILY, {})  # type: ignore[union-attr]


_SETTINGS = {
    name: SETTINGS.path(name)
    for name in Request.__struct_fields__
    if name not in {"max_output_tokens", "output", "reasoning", "seed", "repetition_penalty"}
}


def _setting_path(request: Request, field: str) -> str:
    notes = {} if request.metadata is None else request.metadata.get(FAMILY, {})
    if field == "max_output_tokens":
        return "$.max_tokens" if "~max_tokens" in notes else "$.max_completion_tokens"
    if field == "seed":
        return "$.random_seed" if "~raw:random_seed" in notes else "$.seed"
    if RENAMED + field in notes:
        return f"$.{parse_json(notes[RENAMED + field])}"
    head, _, rest = field.partition(".")
    if head == "reasoning" and request.reasoning is None and head in notes:
        return f"$.{field}"  # OpenRouter's own key, not the setting
    if head == "reasoning" and request.reasoning is not None:
        return _reasoning_path(request.reasoning.metadata, rest)
    if head == "output":
        return _output_path(request, rest)
    if head == "tool_choice" and rest in ToolChoice.__struct_fields__:
        return "$.tool_choice"
    return SETTINGS.path(head if head == "reasoning" else field)


def _output_path(request: Request, field: str) -> str:
    if not field:
        return "$.response_format"
    notes = None if request.output is None else request.output.metadata
    is_within = field.partition(".")[0] in _OF_A_SCHEMA and note(notes, FAMILY, BARE_SCHEMA) is UNSET
    return f"$.response_format.{'json_schema.' if is_within else ''}{field}"


def _reasoning_path(metadata: Metadata | None, field: str) -> str:
    if (written := note(metadata, FAMILY, WHOLE_OBJECT)) is not UNSET:
        return _path_in_object(field, written)
    if (written := note(metadata, FAMILY, WHOLE_SWITCH)) is not UNSET:
        return _path_in_switch(field, written)
    if (written := note(metadata, FAMILY, WHOLE_FLAGS)) is not UNSET:
        return _path_of_flag(field, written)
    return "$.reasoning_effort"


_OF_REASONING = {"budget_tokens": "max_tokens", "visible": "exclude", "mode": "enabled"}


def _path_in_object(field: str, written: dict[str, Any]) -> str:
    key = _OF_REASONING.get(field, field)
    if key in written:
        return f"$.reasoning.{key}"
    return "$.reasoning_effort" if key in {"effort", "reasoning_effort"} else "$.reasoning"


def _path_in_switch(field: str, written: dict[str, Any]) -> str:
    if field in written:
        return f"$.thinking.{field}"
    return {"effort": "$.reasoning_effort", "mode": "$.thinking.type"}.get(field, "$.thinking")


def _path_of_flag(field: str, written: dict[str, Any]) -> str:
    if field.startswith(TEMPLATE):
        return f"$.{field}"
    template = written.get(TEMPLATE, {})
    switches = [f"{TEMPLATE}.{name}" for name in IN_TEMPLATE if name in template]
    if "enable_thinking" in written:
        switches = ["enable_thinking"]
    keys = {
        "mode": switches,
        "budget_tokens": ["thinking_budget"] if "thinking_budget" in written else [],
        "visible": [SHOWN] if SHOWN in written else [],
        "effort": ["reasoning_effort"],
    }
    return f"$.{next(iter(keys.get(field) or switches or written))}"


def _tool_path(request: Request, index: int, field: str) -> str:
    tool = request.tools[index]
    if HOSTED.is_setting(tool):
        return f"$.{next(iter(tool.definition))}"  # type: ignore[union-attr, arg-type]
    path = f"$.tools[{index}]"
    shape = note(getattr(tool, "metadata", None), FAMILY, SHAPE)
    if shape is not UNSET and field[:5] != "cache":
        head, dot, rest = field.partition(".")
        key = next((key for key in SCHEMA_KEYS if key in shape), head) if head == "parameters" else head
        return f"{path}.{key}{dot}{rest}" if field else path
    if field[:5] == "cache" and isinstance(tool, ToolDefinition):
        inside = cache_control.NOTED in (inner_extra(family_notes(FAMILY, tool.metadata), "function") or ())
        return f"{path}.{'function.' if inside else ''}{cache_control.KEY}{field[5:]}"
    inner, fields = _OF_A_TOOL.get(type(tool), ("", frozenset()))
    if field.partition(".")[0] in fields:
        return f"{path}.{inner}.{field}"
    return at(path, field)


_BY_URL = {"data": "document_url", "url": "document_url", "title": "document_name"}
"""Fields of a document that came as a `document_url` part."""


def _part_path(message: Message, part_index: int, field: str, places: list[int]) -> str:
    """Return the path of a part within its message, where calls, reasoning and citations have separate fields."""
    parts = message.parts
    part = parts[part_index]
    if field[:5] == "cache" and cache_control.OF_THE_MESSAGE in _own(part):
        return f".{cache_control.KEY}{field[5:]}"
    if isinstance(part, ToolCall):
        return _call_path(part, f".tool_calls[{places[part_index]}]", field)
    inner = _OF_A_PART.get(type(part), {}).get(field) or cache_control.path_key(part, field) or part_key(field)
    if inner[:5] == "file." and note(part.metadata, FAMILY, BY_URL) is not UNSET:  # type: ignore[union-attr]
        inner = _BY_URL.get(field, inner)
    if images.is_made(part):
        return at(images.place_of(part), inner)
    if message.role == "tool":
        marked = cache_control.path_key(part, field)
        if marked is not None:
            return f".{marked}"
        return f".{field}" if field and field not in ToolResult.__struct_fields__ else ""
    if message.role == "assistant":
        listed = note(message.metadata, FAMILY, "~content") == "parts" and _is_content(message, part)
        if not listed:
            return _assistant_field_path(message, part, field)
    is_text = type(message.content_held) is str or cache_control.is_text(parts, family_notes(FAMILY, message.metadata))
    return at(".content" if is_text else f".content[{places[part_index]}]", inner)


def _call_path(call: ToolCall, place: str, field: str) -> str:
    notes = _own(call)
    if "~legacy" in notes:
        return ".function_call"
    if FLAT in notes:
        return at(place, "arguments" if field == "arguments_text" else field)
    if field == "signature" and SIGNED_AT in notes:
        return at(place, parse_json(notes[SIGNED_AT]))
    marked = cache_control.path_key(call, field)
    if marked is not None:
        return at(place, marked)
    known = _OF_A_PART[ToolCall]
    return at(place, (_OF_A_CUSTOM_CALL if call.custom and field in _OF_A_CUSTOM_CALL else known).get(field, field))


def _assistant_field_path(message: Message, part: AnyPart, field: str) -> str:
    """Return the path of reasoning, text or refusal: fields of the assistant message itself."""
    notes = (message.metadata or {}).get(FAMILY, {})
    if isinstance(part, Reasoning):
        if "~opaque" in _own(part) or (field == "signature" and MODELLED + OPAQUE in notes):
            return f".{OPAQUE}"
        if "~block" in _own(part):
            return ".thinking_blocks"
        spelled = note(part.metadata, FAMILY, "~key")
        return ".reasoning_details" if spelled is UNSET else f".{spelled}"
    if isinstance(part, Refusal):
        return ".refusal"
    if isinstance(part, Audio):
        return f".audio.{field}" if field in {"data", "transcript", *_own(part)} else ".audio"
    if field == "signature":
        return ".extra_content" if "~raw:extra_content" in notes else ".reasoning_details"
    return ".annotations" if field.startswith("citations") else ".content"


_USAGE = {
    "input": "prompt_tokens",
    "output": "completion_tokens",
    "cached": "prompt_tokens_details.cached_tokens",
    "cache_written": "prompt_tokens_details.cache_write_tokens",
    "image": "prompt_tokens_details.image_tokens",
    "reasoning": "completion_tokens_details.reasoning_tokens",
    "total": "total_tokens",
}


class _ResponsePaths:
    """Looks up the JSON paths of a completion's nodes in the wire body."""

    _completion: Completion
    _places: dict[int, list[int]]

    def __init__(self, completion: Completion) -> None:
        self._completion = completion
        self._places = {}

    def json_path(self, message_index: int | None, part_index: int | None, field: str) -> str:
        if message_index is None:
            if field.startswith("finish"):
                return self._finish_path(field)
            return _answer_path(field)
        path = f"$.choices[{message_index}]"
        if part_index is None:
            notes = (self._completion.messages[message_index].metadata or {}).get(FAMILY, {})
            if not field and "~message" in notes:
                return path
            of_the_choice = field.removeprefix(KEY).startswith(("choice.", "logprobs"))
            path = f"{path}.{field.removeprefix('choice.')}" if of_the_choice else f"{path}.message"
            return path if of_the_choice or not field else f"{path}.{field}"
        message = self._completion.messages[message_index]
        if field.startswith("citations") and is_listed(message.parts[part_index]):
            extra = (self._completion.metadata or {}).get(FAMILY, {})
            listed = CITATIONS in extra or MODELLED + CITATIONS in extra
            return f"$.{CITATIONS if listed else RESULTS}"
        places = self._places.get(message_index)
        if places is None:
            places = self._places[message_index] = _places(message)
        return f"{path}.message{_part_path(message, part_index, field, places)}"

    def _finish_path(self, field: str) -> str:
        messages = self._completion.messages
        if not messages:
            return "$.choices"
        is_matched = field == "finish.stop_sequence"
        keys = (inner_extra(family_notes(FAMILY, messages[0].metadata), "choice") or ()) if is_matched else ()
        return f"$.choices[0].{next((key for key in MATCHED if MODELLED + key in keys), 'finish_reason')}"


response_paths = paths_by_class(_ResponsePaths)


@lru_cache(maxsize=512)
def _answer_path(field: str) -> str:
    head, _, rest = field.partition(".")
    if head == "logprobs":
        return "$.choices[0].logprobs"
    if field == "usage.service_tier":
        return "$.service_tier"
    if head == "usage" and rest:
        return f"$.usage.{_USAGE.get(rest, rest)}"
    return at("$", field)
