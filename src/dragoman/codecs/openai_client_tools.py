"""Tools that OpenAI defines and the client runs, as functions for models of other vendors.

Their calls are separate item types (`shell_call`, `apply_patch_call`, …). In the intermediate format each is an
ordinary call of a function with the same name, whose arguments are the requested action. The functions of a namespace
are called `<namespace>__<function>` in other formats; notes on them record how to convert their calls back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Raw, structs

from dragoman.ir import ToolDefinition
from dragoman.ir.notes import CLIENT_ITEM, FREE_TEXT
from dragoman.ir.values import encode_json

_TEXT, _COUNT = {"type": "string"}, {"type": "integer"}
_TEXTS = {"type": "array", "items": _TEXT}
_POINT = {"type": "object", "properties": {"x": _COUNT, "y": _COUNT}, "required": ["x", "y"]}

_SHELL = ToolDefinition(
    "shell",
    "Runs the commands one after the other in a shell, and returns what each of them wrote and its exit code.",
    {
        "type": "object",
        "properties": {"commands": _TEXTS, "timeout_ms": _COUNT, "max_output_length": _COUNT},
        "required": ["commands"],
    },
)
_LOCAL_SHELL = ToolDefinition(
    "local_shell",
    "Runs one command, given as its words, and returns what it wrote.",
    {
        "type": "object",
        "properties": {
            "command": _TEXTS,
            "env": {"type": "object", "additionalProperties": _TEXT},
            "timeout_ms": _COUNT,
            "user": _TEXT,
            "working_directory": _TEXT,
        },
        "required": ["command"],
    },
)
_APPLY_PATCH = ToolDefinition(
    "apply_patch",
    "Creates, changes or deletes one file. `diff` has context lines, lines that begin with + or -, and @@ before each "
    "place; no line numbers and no file header. For create_file every line begins with +. delete_file has no diff.",
    {
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
            "path": _TEXT,
            "diff": _TEXT,
        },
        "required": ["type", "path"],
    },
)
_ACTION = {
    "type": "object",
    "description": "click: button, x, y; double_click, move: x, y; drag: path; keypress: keys; scroll: x, y, scroll_x, "
    "scroll_y; type: text; screenshot and wait: nothing more.",
    "properties": {
        "type": {
            "type": "string",
            "enum": ["click", "double_click", "drag", "keypress", "move", "screenshot", "scroll", "type", "wait"],
        },
        "button": {"type": "string", "enum": ["left", "right", "wheel", "back", "forward"]},
        "x": _COUNT,
        "y": _COUNT,
        "scroll_x": _COUNT,
        "scroll_y": _COUNT,
        "path": {"type": "array", "items": _POINT},
        "keys": _TEXTS,
        "text": _TEXT,
    },
    "required": ["type"],
}
_COMPUTER = "Operates a computer with mouse and keyboard; the result is a picture of its screen."


NAMESPACE = "~namespace"
"""Note on a function of a namespace, and on its calls."""
SEPARATOR = "__"
_ANY_TEXT = {"type": "object", "properties": {"input": _TEXT}, "required": ["input"]}


def functions_of(definition: Mapping[str, Any], family: str) -> tuple[ToolDefinition, ...]:
    """Return the functions for such a tool in other formats; none for a tool that the client does not run."""
    kind = str(definition.get("type"))
    if kind == "namespace":
        return tuple(_members(definition, family))
    if kind == "tool_search":
        return _search(definition, family)
    environment = definition.get("environment")
    if isinstance(environment, dict) and str(environment.get("type")).startswith("container"):
        return ()  # a shell that the provider runs
    function = _FUNCTIONS.get(kind) or (_computer(definition, kind) if kind in _SCREENS else None)
    if function is None:
        return ()
    notes = {CLIENT_ITEM: Raw(encode_json(_SCREENS.get(kind, f"{kind}_call")))}
    return (structs.replace(function, metadata={family: notes}),)


def _search(definition: Mapping[str, Any], family: str) -> tuple[ToolDefinition, ...]:
    """Return the function for a search that the client runs; none for the provider's own."""
    if definition.get("execution") != "client":
        return ()
    given, description = definition.get("parameters"), definition.get("description")
    parameters = given if isinstance(given, dict) else {"type": "object", "properties": {"query": _TEXT}}
    notes = {CLIENT_ITEM: Raw(encode_json("tool_search_call"))}
    return (ToolDefinition("tool_search", description or _SEARCH, parameters, metadata={family: notes}),)


_SEARCH = "Looks for further tools, and returns the names of those it found: from then on they can be called."
_FUNCTIONS = {"shell": _SHELL, "local_shell": _LOCAL_SHELL, "apply_patch": _APPLY_PATCH}
_SCREENS = {"computer": "computer_call", "computer_use_preview": "computer_call"}


def _members(definition: Mapping[str, Any], family: str) -> Iterator[ToolDefinition]:
    space, tools = str(definition.get("name")), definition.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            continue
        notes = {NAMESPACE: Raw(encode_json(space)), **_further(tool)}
        parameters, strict = tool.get("parameters"), tool.get("strict")
        if tool.get("type") == "custom":
            parameters, strict, notes[FREE_TEXT] = _ANY_TEXT, None, Raw(b"true")
        yield ToolDefinition(
            f"{space}{SEPARATOR}{tool['name']}",
            tool.get("description") or definition.get("description"),
            parameters if isinstance(parameters, dict) else None,
            strict if isinstance(strict, bool) else None,
            metadata={family: notes},
            deferred=True if tool.get("defer_loading") is True else None,
        )


_MEMBER_KEYS = frozenset({"type", "name", "description", "parameters", "strict", "defer_loading"})


def _further(member: Mapping[str, Any]) -> dict[str, Raw]:
    """Return the keys of a member of a namespace that functions of other formats do not have."""
    further = {key: value for key, value in member.items() if key not in _MEMBER_KEYS and value is not None}
    if further.get("format") == {"type": "text"}:
        del further["format"]
    return {key: Raw(encode_json(value)) for key, value in further.items()}


def _computer(definition: Mapping[str, Any], kind: str) -> ToolDefinition:
    width, height = definition.get("display_width"), definition.get("display_height")
    size = f" The screen is {width} pixels wide and {height} pixels high." if width and height else ""
    if kind == "computer":
        fields, required = {"actions": {"type": "array", "items": _ACTION}}, "actions"
    else:
        fields, required = {"action": _ACTION}, "action"
    return ToolDefinition(kind, _COMPUTER + size, {"type": "object", "properties": fields, "required": [required]})
