"""JSON Schemas whose `items` is a list (tuples, before draft 2020-12), for APIs that refuse them."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from dragoman.ir import ToolDefinition
from dragoman.ir.values import encode_json, parse_json, to_raw
from dragoman.losses import LossLog


def without_tuples(value: Any, tool: ToolDefinition, log: LossLog) -> Any:
    """Return the parameters of a tool as a schema without tuples: each item may be any of those listed."""
    raw = to_raw(value)
    if b'"items"' not in bytes(raw):
        return value
    schema, changed = _rewritten(parse_json(raw))
    if not changed:
        return value
    log.degrade(tool, "parameters", "list of item schemas", "this API refuses tuples: each item may be any of them")
    return Raw(encode_json(schema))


def _rewritten(schema: Any) -> tuple[Any, bool]:
    if isinstance(schema, list):
        pairs = [_rewritten(item) for item in schema]
        return [item for item, _ in pairs], any(changed for _, changed in pairs)
    if not isinstance(schema, dict):
        return schema, False
    changed = False
    rewritten: dict[str, Any] = {}
    for key, value in schema.items():
        inner, inner_changed = _rewritten(value)
        changed = changed or inner_changed
        if key == "items" and isinstance(inner, list):
            changed = True
            rewritten["items"] = {"anyOf": inner} if inner else {}
            rewritten.setdefault("minItems", len(inner))
            rewritten.setdefault("maxItems", len(inner))
        else:
            rewritten[key] = inner
    return rewritten, changed
