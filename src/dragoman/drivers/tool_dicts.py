"""Tools given as mappings: functions in every usual form, and vendors' own entries, which stay hosted tools.

The codec of its format reads a vendor's entry, so `web_search_20250305` is a hosted tool of Anthropic and never a
function with an empty schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.errors import DecodeError
from dragoman.ir import AnyTool, ToolDefinition
from dragoman.single_values import decode_tool_definitions

_DEFINED = frozenset({"name", "description", "parameters", "strict"})
_DATED = re.compile(r"[a-z_]+_20\d{6}")
_GOOGLE = re.compile(
    r"function_?declarations|google_?search(_?retrieval)?|enterprise_?web_?search|code_?execution|url_?context|google_?maps"
    r"|retrieval|computer_?use|file_?search|mcp_?servers",
    re.IGNORECASE,
)
_BEDROCK = frozenset({"toolSpec", "systemTool", "cachePoint"})
_RESPONSES = frozenset(
    {"web_search", "web_search_preview", "web_search_preview_2025_03_11", "web_search_2025_08_26", "file_search", "mcp"}
    | {"code_interpreter", "image_generation", "computer", "computer_use_preview", "local_shell", "shell", "custom"}
    | {"apply_patch", "tool_search", "namespace", "programmatic_tool_calling"}
)
_EXPECTED = "a function with a name, or the entry of a vendor that is known"


def read_mapping(tool: Mapping[str, Any], place: str) -> Sequence[AnyTool]:
    """The tools that one mapping declares: one, or the declarations of a Gemini entry."""
    if isinstance(tool.get("function"), Mapping):
        return (_function(tool["function"], f"{place}.function"),)
    format = _format_of(tool, place)
    if format is None:
        return (_function({key: one for key, one in tool.items() if key != "type"}, place),)
    try:
        return decode_tool_definitions(msgspec.json.encode(tool), format)
    except DecodeError as error:
        raise DecodeError(path=place, expected=error.expected, got=error.got, source=error.source) from None


def _format_of(tool: Mapping[str, Any], place: str) -> str | None:
    """The format with this form of tool; None for a plain function."""
    kind = tool.get("type")
    if kind is None:
        if "input_schema" in tool:
            return "anthropic-messages"
        if not _BEDROCK.isdisjoint(tool):
            return "bedrock-converse"
        return "gemini" if tool and all(_GOOGLE.fullmatch(key) for key in tool) else None
    if not isinstance(kind, str):
        raise _unknown(place, f"type {kind!r}")
    if kind == "function":
        return None
    if kind == "mcp_toolset" or "input_schema" in tool or _DATED.fullmatch(kind):
        return "anthropic-messages"
    if kind == "custom" and isinstance(tool.get("custom"), Mapping):
        return "openai-chat"
    if kind in _RESPONSES:
        return "openai-responses"
    raise _unknown(place, f"the unknown type {kind!r}; build a ProviderTool to declare it as it is")


def _function(given: Mapping[str, Any], place: str) -> ToolDefinition:
    extra = sorted(map(str, given.keys() - _DEFINED))
    if extra:
        raise _unknown(place, f"the unknown keys {', '.join(extra)}")
    name, parameters = given.get("name"), given.get("parameters")
    if not isinstance(name, str) or not name:
        raise _unknown(place, "no name" if name is None else f"name {name!r}")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise DecodeError(path=f"{place}.parameters", expected="a JSON Schema", got=repr(parameters), source="tools")
    return ToolDefinition(**{**given, "parameters": None if parameters is None else dict(parameters)})


def _unknown(place: str, got: str) -> DecodeError:
    return DecodeError(path=place, expected=_EXPECTED, got=got, source="tools")
