"""Tools that OpenAI defines and the client runs, as functions for models of other vendors.

Their calls are items of their own (`shell_call`, `apply_patch_call`, …). In the intermediate format each is an ordinary
call of a function with the same name, whose arguments are what the item asks for; `CALLS` says where.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.ir import ToolDefinition

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


def functions_of(definition: Mapping[str, Any]) -> tuple[ToolDefinition, ...]:
    """The function that such a tool is elsewhere; none for a tool that the client does not run."""
    kind = definition.get("type")
    environment = definition.get("environment")
    if kind == "shell":
        is_hosted = isinstance(environment, dict) and str(environment.get("type")).startswith("container")
        return () if is_hosted else (_SHELL,)
    if kind in {"computer", "computer_use_preview"}:
        return (_computer(definition, str(kind)),)
    return {"local_shell": (_LOCAL_SHELL,), "apply_patch": (_APPLY_PATCH,)}.get(str(kind), ())


def _computer(definition: Mapping[str, Any], kind: str) -> ToolDefinition:
    width, height = definition.get("display_width"), definition.get("display_height")
    size = f" The screen is {width} pixels wide and {height} pixels high." if width and height else ""
    if kind == "computer":
        fields, required = {"actions": {"type": "array", "items": _ACTION}}, "actions"
    else:
        fields, required = {"action": _ACTION}, "action"
    return ToolDefinition(kind, _COMPUTER + size, {"type": "object", "properties": fields, "required": [required]})
