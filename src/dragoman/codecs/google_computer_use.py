"""The predefined functions of Google's computer use, in both of its APIs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from dragoman.ir import ToolDefinition

_PLACE = {"type": "integer", "minimum": 0, "maximum": 999}
_AT = {"x": _PLACE, "y": _PLACE}
_TEXT = {"type": "string"}
_DIRECTION = {"type": "string", "enum": ["up", "down", "left", "right"]}
_SCREEN: dict[str, dict[str, Any]] = {
    "open_web_browser": {},
    "wait_5_seconds": {},
    "go_back": {},
    "go_forward": {},
    "search": {},
    "navigate": {"url": _TEXT},
    "click_at": _AT,
    "hover_at": _AT,
    "type_text_at": _AT
    | {"text": _TEXT, "press_enter": {"type": "boolean"}, "clear_before_typing": {"type": "boolean"}},
    "key_combination": {"keys": _TEXT},
    "scroll_document": {"direction": _DIRECTION},
    "scroll_at": _AT | {"direction": _DIRECTION, "magnitude": _PLACE},
    "drag_and_drop": _AT | {"destination_x": _PLACE, "destination_y": _PLACE},
}
_OPTIONAL = frozenset({"press_enter", "clear_before_typing", "magnitude"})


def screen_functions(excluded: Collection[str]) -> tuple[ToolDefinition, ...]:
    """Return the predefined functions. The client runs them, so their calls are ordinary tool calls."""
    return tuple(
        ToolDefinition(
            name,
            f"{name.replace('_', ' ')} in the browser. Coordinates run from 0 to 999 over the screen.",
            {"type": "object", "properties": fields, "required": [key for key in fields if key not in _OPTIONAL]},
        )
        for name, fields in _SCREEN.items()
        if name not in excluded
    )
