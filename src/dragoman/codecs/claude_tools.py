"""Tools that Anthropic defines and the client runs: their documented parameters, for models of other vendors.

Claude was trained on them, so a definition names only type and version. For other models each is an ordinary function
of the same name; a call of it comes back as the `tool_use` block that the client expects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from dragoman.ir import ToolDefinition
from dragoman.ir.notes import MODELLED
from dragoman.ir.values import encode_json, parse_json

_TEXT, _COUNT, _NUMBER, _YES = {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}
_POINT = {"type": "array", "items": _COUNT, "minItems": 2, "maxItems": 2}
_REGION = {"type": "array", "items": _COUNT, "minItems": 4, "maxItems": 4}


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return schema | {"required": list(required)} if required else schema


def _words(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


_FILE = {
    "path": _TEXT,
    "view_range": {"type": "array", "items": _COUNT},
    "file_text": _TEXT,
    "old_str": _TEXT,
    "new_str": _TEXT,
    "insert_line": _COUNT,
    "insert_text": _TEXT,
}
_EDITS = ("view", "create", "str_replace", "insert")

_BASH = (
    "Runs a command in a shell that keeps its state between calls, and returns its output. `restart` opens a new one."
)
_EDITOR = (
    "Views and edits text files. view: `path`, perhaps `view_range` [first, last line]; create: `file_text`; "
    "str_replace: `old_str`, which must occur once, and `new_str`; insert: `insert_text` behind line `insert_line`."
)
_MEMORY = (
    "Keeps notes in files under /memories that outlast the conversation. Look there before starting a task. view: "
    "`path`; create: `file_text`; str_replace: `old_str`, `new_str`; insert: `insert_line`, `insert_text`; delete: "
    "`path`; rename: `old_path`, `new_path`."
)
_COMPUTER = (
    "Operates a computer with mouse and keyboard, and shows its screen. Coordinates are pixels [x, y] from the upper "
    "left corner. Keys are spelled as in xdotool: ctrl+s, Return."
)
_POINTING = ("left_click", "right_click", "middle_click", "double_click", "triple_click")
_ACTIONS = (
    *("key", "hold_key", "type", "cursor_position", "mouse_move", "left_mouse_down", "left_mouse_up"),
    *(*_POINTING, "left_click_drag", "scroll", "wait", "screenshot", "zoom"),
)
_SINCE_2025 = frozenset({"hold_key", "left_mouse_down", "left_mouse_up", "triple_click", "scroll", "wait"})
_SCROLLED = {"scroll_direction": _words("up", "down", "left", "right"), "scroll_amount": _COUNT}


def functions_of(definition: Mapping[str, Any]) -> tuple[ToolDefinition, ...]:
    """Return the functions that represent such a tool for other models; none if the client does not run it."""
    kind, name = str(definition.get("type")), definition.get("name")
    if kind.startswith(("computer_toolset_", "browser_toolset_")):
        return _members(definition, kind.partition("_")[0])
    if not isinstance(name, str):
        return ()
    if kind.startswith("bash_2"):
        return (ToolDefinition(name, _BASH, _object(command=_TEXT, restart=_YES)),)
    if kind.startswith("text_editor_2"):
        old = ("undo_edit",) if kind < "text_editor_20250429" else ()
        return (ToolDefinition(name, _EDITOR, _object(("command", "path"), command=_words(*_EDITS, *old), **_FILE)),)
    if kind.startswith("memory_2"):
        commands = _words(*_EDITS, "delete", "rename")
        return (ToolDefinition(name, _MEMORY, _object(("command",), command=commands, **_FILE, **_RENAMED)),)
    if kind.startswith("computer_2"):
        return (_computer(name, definition, kind),)
    return ()


_RENAMED = {"old_path": _TEXT, "new_path": _TEXT}


def _actions(kind: str, *, zooms: bool) -> list[str]:
    """Return what a client of this version can do: a model must not be offered more."""
    return [
        action
        for action in _ACTIONS
        if (zooms or action != "zoom") and not (action in _SINCE_2025 and kind < "computer_20250124")
    ]


def _computer(name: str, definition: Mapping[str, Any], kind: str) -> ToolDefinition:
    zooms = definition.get("enable_zoom") is True
    actions = _actions(kind, zooms=zooms)
    width, height = definition.get("display_width_px"), definition.get("display_height_px")
    size = f" The screen is {width} pixels wide and {height} pixels high." if width and height else ""
    schema = _object(
        ("action",),
        action=_words(*actions),
        coordinate=_POINT,
        start_coordinate=_POINT,
        text=_TEXT,
        **({"duration": _NUMBER, **_SCROLLED} if "scroll" in actions else {}),
        **({"region": _REGION} if zooms else {}),
    )
    return ToolDefinition(name, _COMPUTER + size, schema)


# ── toolsets: one function per member ─────────────────────────────────────────────────────────────────────────

SEPARATOR = "__"
"""Between toolset and member in a function name: both toolsets have a `type`, a `key` and a `screenshot`."""

_TYPED = {
    "key": _object(("text",), text=_TEXT, repeat=_COUNT),
    "hold_key": _object(("text", "duration"), text=_TEXT, duration=_NUMBER),
    "type": _object(("text",), text=_TEXT),
    "wait": _object(("duration",), duration=_NUMBER),
    "zoom": _object(("region",), region=_REGION),
    "screenshot": _object(),
}
_TARGET = {
    "type": "object",
    "description": 'Either {"type": "coordinate", "x": …, "y": …} or {"type": "ref", "ref": …}.',
    "properties": {"type": _words("coordinate", "ref"), "x": _COUNT, "y": _COUNT, "ref": _TEXT},
    "required": ["type"],
}
_CLICKED = _object(("target",), target=_TARGET, modifiers=_TEXT)
_AIMED = _object(("target",), target=_TARGET)

_MEMBERS: dict[str, dict[str, dict[str, Any]]] = {
    "computer": {
        **_TYPED,
        "mouse_move": _object(("coordinate",), coordinate=_POINT),
        **dict.fromkeys(_POINTING, _object(coordinate=_POINT, text=_TEXT)),
        "left_click_drag": _object(
            ("start_coordinate", "coordinate"), start_coordinate=_POINT, coordinate=_POINT, text=_TEXT
        ),
        "scroll": _object(("scroll_direction", "scroll_amount"), **_SCROLLED, coordinate=_POINT, text=_TEXT),
        **dict.fromkeys(("cursor_position", "left_mouse_down", "left_mouse_up"), _object()),
    },
    "browser": {
        **_TYPED,
        "navigate": _object(("url",), url=_TEXT),
        **dict.fromkeys(("list_tabs", "new_tab", "get_page_text", "read_console", "read_network"), _object()),
        **dict.fromkeys(("switch_tab", "close_tab"), _object(("tab_id",))),
        "read_page": _object(filter=_words("all", "interactive"), depth=_COUNT, ref=_TEXT),
        "find": _object(("query",), query=_TEXT),
        "form_input": _object(("target", "value"), target=_TARGET, value={"type": ["string", "number", "boolean"]}),
        "file_upload": _object(("target",), target=_TARGET, paths={"type": "array", "items": _TEXT}),
        **dict.fromkeys(("scroll_to", "hover", "left_mouse_down", "left_mouse_up", "mouse_move"), _AIMED),
        **dict.fromkeys(_POINTING, _CLICKED),
        "left_click_drag": _object(("from", "target"), **{"from": _TARGET, "target": _TARGET}),
        "scroll": _object(("target", "scroll_direction"), target=_TARGET, **_SCROLLED),
        "javascript_exec": _object(("text",), text=_TEXT),
    },
}
_WITHOUT_TAB = frozenset({"list_tabs", "new_tab"})


TOOLSET = MODELLED + "toolset_name"
"""Note on a function of a toolset, on its calls and on their results."""


def qualified_name(name: str, toolset: Raw) -> str:
    """Return the name of a member with its toolset."""
    space = parse_json(toolset)
    return f"{space}{SEPARATOR}{name}" if isinstance(space, str) else name


def member_name(name: str, notes: Mapping[str, Any]) -> str:
    """Return the name of a member within its toolset."""
    return name.removeprefix(f"{parse_json(notes[TOOLSET])}{SEPARATOR}") if TOOLSET in notes else name


def _members(definition: Mapping[str, Any], toolset: str) -> tuple[ToolDefinition, ...]:
    configs = definition.get("configs")
    off = {
        name
        for name, config in (configs.items() if isinstance(configs, dict) else ())
        if isinstance(config, dict) and config.get("enabled") is False
    }
    notes = {"anthropic": {TOOLSET: Raw(encode_json(toolset))}}
    return tuple(
        ToolDefinition(
            f"{toolset}{SEPARATOR}{name}",
            f"{name} of the {toolset} tools.",
            _with_tab(schema, name, toolset),
            metadata=notes,
        )
        for name, schema in _MEMBERS[toolset].items()
        if name not in off
    )


def _with_tab(schema: dict[str, Any], name: str, toolset: str) -> dict[str, Any]:
    if toolset != "browser" or name in _WITHOUT_TAB:
        return schema
    return schema | {"properties": schema["properties"] | {"tab_id": _TEXT}}
