"""Tool definitions, tool choice and structured output, both ways.

The API has no tool choice: the model decides. A choice of no tool, or of some, is expressed by declaring only those.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, cast

from msgspec import UNSET, Raw

from dragoman.codecs.common_losses import drop_tool_cache_mark
from dragoman.codecs.memo import ToolReader, ToolWriter
from dragoman.codecs.ollama_chat.profile import DECORATION, FAMILY, READ_KEYWORDS
from dragoman.codecs.ollama_chat.wire import ALIASES, FunctionDefinition
from dragoman.codecs.ollama_chat.wire import Tool as ToolWire
from dragoman.codecs.reading import WireValue, encode_with_extra, keep, spliced
from dragoman.codecs.shared_tools import encode_provider_tool, parameters_of_custom
from dragoman.errors import DecodeError
from dragoman.ir import AnyTool as Tool
from dragoman.ir import CustomTool, ProviderTool, Request, StructuredOutput, ToolChoice, ToolDefinition
from dragoman.ir.notes import MODELLED, Extra, inner_extra
from dragoman.ir.values import encode_json, parse_json, to_raw
from dragoman.losses import LossLog
from dragoman.schema import SchemaDialect, SchemaError, adapt_schema

# ── definitions ───────────────────────────────────────────────────────────────────────────────────────────────

TYPE = "~type"


def _decode_tool(wire: ToolWire) -> Tool:
    function = wire.function
    if function is UNSET:
        definition = encode_with_extra(wire)
        parsed = parse_json(definition)
        return ProviderTool(str(parsed.get("name") or parsed.get("type") or ""), FAMILY, definition)
    metadata = None
    if wire.type != "function" or wire.extra is not UNSET or function.extra is not UNSET:
        notes = (keep(FAMILY, wire.extra, function=function.extra) or {FAMILY: {}})[FAMILY]
        if wire.type != "function":
            notes[TYPE] = Raw(b"null") if wire.type is UNSET else Raw(encode_json(wire.type))
        metadata = {FAMILY: notes}
    return ToolDefinition(
        function.name,
        None if function.description is UNSET else function.description,
        None if function.parameters is UNSET else function.parameters,
        None,
        None,
        metadata,
    )


decode_tools = ToolReader(ToolWire, "ollama-chat request", _decode_tool, aliases=ALIASES).read


def encode_tools(tools: tuple[Tool, ...], log: LossLog, *, native: bool) -> WireValue:
    """Encode the tools, or return None if none is left."""
    return _WRITERS[native].write(tools, log)


def _encode_tool(tool: Tool, _tools: tuple[Tool, ...], log: LossLog, *, native: bool) -> WireValue:
    if isinstance(tool, ProviderTool):
        return encode_provider_tool(tool, FAMILY, log)
    if isinstance(tool, CustomTool):
        return _encode_custom(tool, log)
    if tool.cache is not None:
        drop_tool_cache_mark(tool, log)
    if tool.strict:
        log.drop(tool, "strict", "strict", "this API does not check arguments against the schema")
    parameters = tool.parameters_held
    if parameters is not None and not native:
        parameters = _readable(tool, log)
    function: Any = FunctionDefinition(
        tool.name,
        UNSET if tool.description is None else tool.description,
        UNSET if parameters is None else parameters,
    )
    notes = None if tool.metadata is None else tool.metadata.get(FAMILY)
    if not notes:
        return ToolWire("function", function)
    inner = inner_extra(notes, "function")
    noted = notes.get(TYPE)
    kind: Any = "function" if noted is None else UNSET if bytes(noted) == b"null" else noted
    return spliced(ToolWire(kind, function if inner is None else cast("Any", spliced(function, inner))), notes)


_WRITERS = {native: ToolWriter(partial(_encode_tool, native=native)) for native in (True, False)}


def _encode_custom(tool: CustomTool, log: LossLog) -> WireValue:
    description: Any = UNSET if tool.description is None else tool.description
    return ToolWire("function", FunctionDefinition(tool.name, description, parameters_of_custom(tool, log)))


# ── schemas ───────────────────────────────────────────────────────────────────────────────────────────────────

_DIALECT = SchemaDialect(
    name="Ollama tool",
    refused=frozenset({"oneOf", "allOf", "const"}),
    inlined_references=("$ref",),
    recursion=False,
)
"""What the server would drop, but can be expressed in keywords that it reads."""

_SUBSCHEMAS = frozenset({"items", "additionalProperties", "not", "contains", "propertyNames"})
_LISTS_OF_SCHEMAS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_MAPS_OF_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions"})


def _readable(tool: ToolDefinition, log: LossLog) -> WireValue:
    """Return the schema in keywords that the server reads, as far as possible; the others stay, and are reported."""
    schema, unread = _adapt(bytes(to_raw(tool.parameters_held)))
    if unread:
        log.degrade(tool, "parameters", f"schema keywords {unread}", "this server does not show them to the model")
    return schema


@lru_cache(maxsize=256)  # an agent declares the same tools in every request
def _adapt(raw: bytes) -> tuple[Raw, str]:
    """Return the adapted schema, and the keywords in it that the server does not read."""
    schema = parse_json(raw)
    try:
        adapted = adapt_schema(schema, _DIALECT).schema
    except SchemaError:
        adapted = schema  # it refers to itself: no finite schema is equal, and the server ignores what it cannot read
    unread = sorted(_keywords(adapted) - READ_KEYWORDS - DECORATION)
    typed = _typed_root(_objects(adapted))
    return Raw(raw) if typed == schema else to_raw(typed), ", ".join(unread)


def _typed_root(schema: Any) -> Any:
    """Return the schema with the root type "object": parameters have one type, and are known to be an object.

    The server refuses a list of types: «cannot unmarshal array … of type string».
    """
    if isinstance(schema, dict) and isinstance(schema.get("type"), list):
        return {**schema, "type": "object"}
    return schema


def _objects(schema: Any) -> Any:
    """Replace boolean schemas by {}: `true`, and `false` too, which no argument satisfies.

    The server refuses them: «cannot unmarshal bool».
    """
    if not isinstance(schema, dict):
        return {} if isinstance(schema, bool) else schema
    changed = dict(schema)
    for key, value in schema.items():
        if key in _MAPS_OF_SCHEMAS and isinstance(value, dict):
            changed[key] = {name: _objects(inner) for name, inner in value.items()}
        elif key in _LISTS_OF_SCHEMAS and isinstance(value, list):
            changed[key] = [_objects(inner) for inner in value]
    return changed


def _keywords(schema: Any) -> set[str]:
    found: set[str] = set()
    pending = [schema]
    while pending:
        node = pending.pop()
        if not isinstance(node, dict):
            continue
        found.update(node)
        for key, value in node.items():
            if key in _SUBSCHEMAS:
                pending.append(value)
            elif key in _LISTS_OF_SCHEMAS and isinstance(value, list):
                pending += value
            elif key in _MAPS_OF_SCHEMAS and isinstance(value, dict):
                pending += value.values()
    return found


# ── choice ────────────────────────────────────────────────────────────────────────────────────────────────────


def decode_tool_choice(wire: Raw) -> ToolChoice | None:  # noqa: ARG001
    """Return None in any case: the server ignores the key, so the model chooses."""
    return None


def encode_tool_choice(request: Request, log: LossLog) -> tuple[Tool, ...]:
    """Return the tools among which the model may choose."""
    if request.parallel_tool_calls is False:
        log.drop(request, "parallel_tool_calls", "one call at a time", "this API has no such switch")
    choice = request.tool_choice
    if choice is None:
        return request.tools
    if choice.mode == "none":
        for tool in request.tools:
            log.degrade(tool, "", f"tool {tool.name!r}", "left out, so that the model calls none")
        return ()
    if choice.mode == "required" and request.tools:
        log.drop(request, "tool_choice", "forced tool call", "models of this API cannot be forced to call")
    if not choice.names:
        return request.tools
    chosen = []
    names = set(choice.names)
    for tool in request.tools:
        if tool.name in names or isinstance(tool, ProviderTool):
            chosen.append(tool)
        else:
            log.degrade(tool, "", f"tool {tool.name!r}", "left out: the choice does not name it")
    return tuple(chosen)


# ── structured output ─────────────────────────────────────────────────────────────────────────────────────────

FORMAT = MODELLED + "format"
_SAYS_NOTHING = frozenset({b'""', b"null"})
_JSON = Raw(b'"json"')


def decode_output(raw: Raw, notes: Extra) -> StructuredOutput | None:
    """Decode "json" or a schema; an empty text and null mean nothing, and are noted."""
    content = bytes(raw)
    if content == b'"json"':
        return StructuredOutput("json")
    if content in _SAYS_NOTHING:
        notes[FORMAT] = raw
        return None
    if content[:1] != b"{":
        got = repr(parse_json(raw))
        raise DecodeError(path="$.format", expected='"json" or a schema', got=got, source="ollama-chat request")
    return StructuredOutput("schema", raw)


def encode_output(output: StructuredOutput, request: Request, log: LossLog) -> WireValue:
    for field in ("name", "description"):
        if getattr(output, field) is not None:
            log.drop(request, f"output.{field}", f"{field} of the schema", "this API has no such field")
    raw_schema = output.schema_held
    if output.kind == "json" or raw_schema is None:
        return _JSON
    schema = to_raw(raw_schema)
    if bytes(schema)[:1] != b"{":
        log.degrade(request, "output", "output schema", "sent as JSON mode: this API requires an object as schema")
        return _JSON
    return schema
