"""Values of results in records: text, an object, or JSON text with a marker beside it.

The earlier systems store `str | object`. Text that represents data (a list, a number, a quoted string) gets the marker
`kind: "data"`, so that it is read as data again.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, UnsetType

from dragoman.ir import ResultKind, ToolResult
from dragoman.ir.notes import Extra
from dragoman.ir.values import compact_text, exact_json, parse_json, to_raw
from dragoman.losses import LossLog

DATA = "data"
VALUE = "~value"
MARKER = "~kind"
PARTS = "~parts"
"""Note: the value of the error was an empty list of parts."""


def read_value(
    given: Raw, marker: str | UnsetType, notes: Extra, *, is_error: bool, objects: bool = True
) -> tuple[ResultKind, Any]:
    """Return kind and value. Notes the original where it would be written differently."""
    value: Any = given
    kind: ResultKind = "data"
    if bytes(given)[:1] == b'"':
        text = parse_json(given)
        parsed = exact_json(text) if marker == DATA else None
        kind, value = ("text", text) if parsed is None else ("data", parsed)
    kind = "error" if is_error else kind
    written, mark = write_value(ToolResult("", "", kind, value), objects=objects)
    if bytes(to_raw(written)) != bytes(given) and parse_json(to_raw(written)) != parse_json(given):
        notes[VALUE] = given
    if mark != marker:
        notes[MARKER] = to_raw(None if marker is UNSET else marker)
    return kind, value


def write_value(result: ToolResult, *, objects: bool = True) -> tuple[Any, str | UnsetType]:
    """Return the value and its marker. `objects`: whether the format takes an object unchanged."""
    value = result.value_held
    if type(value) is str and result.kind != "data":
        return value, UNSET
    raw = to_raw(value)
    first = bytes(raw)[:1]
    if first == b'"' and result.kind != "data":
        return parse_json(raw), UNSET
    if first == b"{" and objects:
        return raw, UNSET
    return compact_text(raw), DATA


def spelled_value(result: ToolResult, notes: Extra, *, objects: bool = True) -> tuple[Any, str | None | UnsetType]:
    written, marker = write_value(result, objects=objects)
    marked: Any = marker
    if MARKER in notes:
        marked = parse_json(notes[MARKER])
        marked = UNSET if marked is None else marked
    return notes.get(VALUE, written), marked


def in_parts(result: ToolResult, notes: Extra) -> bool:
    """Return whether the result is a list of parts, possibly an empty one."""
    return bool(result.parts) or result.kind == "multimodal" or PARTS in notes


def report_result(result: ToolResult, log: LossLog) -> None:
    if result.cache is not None:
        log.drop(result, "cache", "cache mark", "a stored result has none")
