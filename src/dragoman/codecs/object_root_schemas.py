"""Schemas for APIs that require an object at the root. Claude's also refuse alternatives there, OpenAI's bare lists."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from dragoman.errors import EncodeError
from dragoman.ir import AnyTool, Request, ToolDefinition
from dragoman.ir.values import encode_json, parse_json, to_raw
from dragoman.losses import LossLog

if TYPE_CHECKING:
    from dragoman.schema import SchemaDialect, SchemaNote

NOTHING = Raw(b'{"type":"object","properties":{}}')
"""The schema of a tool without arguments: the field is required."""


def is_plain_object(schema: bytes) -> bool:
    """Whether the root is certainly an object schema without alternatives; False means that it must be examined."""
    return schema.startswith(b'{"type":"object"') and b'Of"' not in schema


class Adapted:
    """A schema adapted to a dialect, with notes of what was changed; `refusal` says why it cannot be adapted."""

    def __init__(self, schema: Raw, notes: tuple[SchemaNote, ...] = (), refusal: str = "") -> None:
        self.schema = schema
        self.notes = notes
        self.refusal = refusal


@lru_cache(maxsize=512)
def adapt(schema: bytes, dialect_name: str) -> Adapted:
    """Adapt a schema to a dialect. Cached, because an agent sends the same schemas on every turn."""
    schemas = _schemas()
    dialect: SchemaDialect = getattr(schemas.dialects, dialect_name)
    if not schemas.needs_adaptation(schema, dialect):
        return Adapted(Raw(schema))
    try:
        found = schemas.adapt_schema(parse_json(schema), dialect)
    except schemas.SchemaError as error:
        return Adapted(Raw(schema), (), str(error))
    for note in found.notes:
        if note.action != "kept":
            return Adapted(Raw(encode_json(found.schema)), found.notes)
    return Adapted(Raw(schema), found.notes)


@cache
def _schemas() -> ModuleType:
    """Return the package, which is not imported before a schema has to be examined."""
    from dragoman import schema  # noqa: PLC0415

    return schema


@lru_cache(maxsize=512)
def _declares_object(schema: bytes) -> bool:
    root = parse_json(Raw(schema))
    return isinstance(root, dict) and root.get("type") == "object"


def rooted_schema(tool: ToolDefinition, tools: Sequence[AnyTool], log: LossLog, target: str) -> Any:
    """Return the tool's parameters with an object at the root and items in every array; None if there are none.

    Parameters that have both are returned unchanged.
    """
    parameters: Any = tool.parameters_held
    if parameters is None:
        return None
    schema = bytes(to_raw(parameters))
    if not (schema.startswith(b'{"type":"object"') or _declares_object(schema)):
        parameters = object_schema(tool, tools, log, target)
        schema = bytes(parameters)
    if b'"array"' not in schema:
        return parameters
    found = adapt(schema, "OPENAI_FUNCTION")
    _report_notes(found, tool, log)
    return found.schema if found.notes else parameters


def _report_notes(found: Adapted, tool: ToolDefinition, log: LossLog) -> None:
    for note in found.notes:
        field = "parameters" + note.path.removeprefix("$")
        if note.exact:
            log.invent(tool, field, f"schema keyword {note.keyword!r}", note.reason)
        else:
            log.degrade(tool, field, f"schema keyword {note.keyword!r}", note.reason)


def object_schema(tool: ToolDefinition, tools: Sequence[AnyTool], log: LossLog, target: str) -> Raw:
    """Return the tool's parameters as an object schema; `tools` are all of the request's."""
    parameters = tool.parameters_held
    if parameters is None or bytes(to_raw(parameters)) == b"null":
        return NOTHING
    found = adapt(bytes(to_raw(parameters)), "ANTHROPIC_INPUT")
    if found.refusal:
        place = next((index for index, other in enumerate(tools) if other is tool), 0)
        raise EncodeError(path=f"$.tools[{place}].parameters", reason=found.refusal, target=target)
    _report_notes(found, tool, log)
    return found.schema


def answer_schema(request: Request, schema: Raw, log: LossLog) -> Raw | None:
    """Return the schema of the answer in the form that Claude takes, for any API that serves it.

    None if Claude does not take such a schema (a recursive one, a property without a type): then the system text asks
    for it, so that the request need not be refused.
    """
    found = adapt(bytes(schema), "ANTHROPIC_FORMAT")
    refusals = [f"{note.keyword}: {note.reason}" for note in found.notes if note.action == "kept"]
    if found.refusal or refusals:
        why = f"asked for in the system text: {found.refusal or refusals[0]}"
        log.degrade(request, "output.schema", "schema of the answer", why)
        return None
    for note in found.notes:
        if not note.exact:
            field = "output.schema" + note.path.removeprefix("$")
            log.degrade(request, field, f"schema keyword {note.keyword!r}", note.reason)
    return found.schema
