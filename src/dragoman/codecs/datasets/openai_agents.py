"""Items of the OpenAI Agents SDK: a list of Responses input items, as `to_input_list()` and sessions store them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import force_setattr

from dragoman.codecs.datasets.conversation import (
    Json,
    items,
    mappings,
    paths_by_line,
    report_settings,
    text_of,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.openai_responses.json_paths import request_paths as responses_paths
from dragoman.codecs.openai_responses.request import decode_request, encode_request
from dragoman.ir import Request
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

NAME = "openai-agents"
_ITEMS = frozenset(
    {"function_call", "function_call_output", "reasoning", "custom_tool_call", "custom_tool_call_output"}
    | {
        "web_search_call",
        "file_search_call",
        "computer_call",
        "computer_call_output",
        "code_interpreter_call",
        "mcp_call",
    }
)
_WRAPPERS = frozenset(
    {"message_output_item", "tool_call_item", "tool_call_output_item", "reasoning_item", "handoff_call_item"}
    | {"handoff_output_item"}
)


def is_record(data: Json) -> bool:
    """Return whether the list has items that only the Responses API has, or run items around them."""
    found = mappings(data)
    if not all("type" in item or "role" in item for item in found):  # Codex has such items after a header
        return False
    kinds = [(text_of(item.get("type")), item) for item in found]
    return any(kind in _ITEMS or (kind in _WRAPPERS and "raw_item" in item) for kind, item in kinds)


def read(data: Json) -> Request:
    given = items(data, NAME, "$")
    decoded = decode_request(encode_json({"model": "", "input": [_raw(item) for item in given]}))
    request = Request(None, decoded.messages, origin=decoded.origin)
    places = [f"$[{index}]" if _raw(item) is item else f"$[{index}].raw_item" for index, item in enumerate(given)]
    force_setattr(request, "_places", places)
    return request


request_paths = paths_by_line(responses_paths)


def _raw(item: Mapping[str, Json]) -> Json:
    raw = item.get("raw_item")
    return raw if isinstance(raw, dict) else item


def write(request: Request, log: LossLog) -> Json:
    report_settings(request, log)
    for tool in request.tools:
        log.drop(tool, "", f"tool {getattr(tool, 'name', '')!r}", "a list of items has no place for tools")
    body = parse_json(encode_request(Request("", request.messages, origin=request.origin), log).content)
    found: list[Json] = (
        [] if body.get("instructions") is None else [{"role": "system", "content": body["instructions"]}]
    )
    given = body.get("input")
    return [*found, *([{"role": "user", "content": given}] if isinstance(given, str) else given or [])]


DATASET = Dataset(NAME, is_record, read, write, lacks="the instructions and the tools")
