"""Tool definitions, tool choice and structured output, both ways.

A choice is REQUIRED, NONE or absent: a choice of named tools is expressed by declaring only those. `strict_tools` is
one switch for all tools of a request. A format of the answer excludes tools and documents.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple, cast

from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.cohere_chat.parts import report_keys
from dragoman.codecs.cohere_chat.profile import FAMILY, PROFILE
from dragoman.codecs.cohere_chat.wire import AnyTool, FunctionDefinition, FunctionTool, ResponseFormat
from dragoman.codecs.common_losses import drop_tool_cache_mark
from dragoman.codecs.memo import DecodedTools, ToolReader, ToolWriter
from dragoman.codecs.object_root_schemas import NOTHING, rooted_schema
from dragoman.codecs.reading import WireValue, keep, spliced
from dragoman.codecs.shared_tools import encode_provider_tool, parameters_of_custom
from dragoman.errors import DecodeError
from dragoman.ir import AnyTool as Tool
from dragoman.ir import CustomTool, ProviderTool, Request, StructuredOutput, ToolChoice, ToolDefinition
from dragoman.ir.notes import MODELLED, Extra, inner_extra
from dragoman.ir.values import encode_json, parse_json, to_raw
from dragoman.losses import LossLog
from dragoman.schema import SchemaDialect, SchemaError, adapt_schema

# ── definitions ───────────────────────────────────────────────────────────────────────────────────────────────


def _decode_tool(wire: AnyTool, *, strict: bool | None) -> Tool:
    if not isinstance(wire, FunctionTool):
        parsed = parse_json(wire.raw)
        return ProviderTool(str(parsed.get("name") or parsed.get("type") or ""), FAMILY, wire.raw)
    function = wire.function
    return ToolDefinition(
        function.name,
        None if function.description is UNSET else function.description,
        None if function.parameters is UNSET else function.parameters,
        strict,
        None,
        None if wire.extra is UNSET and function.extra is UNSET else keep(FAMILY, wire.extra, function=function.extra),
    )


_READERS = {
    strict: ToolReader(AnyTool, "cohere-chat request", partial(_decode_tool, strict=strict))
    for strict in (None, True, False)
}


def decode_tools(raw: Raw, strict: bool | UnsetType = UNSET) -> DecodedTools:  # noqa: FBT001
    """Decode the tools; `strict` is the value of `strict_tools`, which applies to all of them."""
    return _READERS[None if strict is UNSET else strict].read(raw)


def encode_tools(tools: tuple[Tool, ...], log: LossLog, *, native: bool) -> WireValue:
    """Encode the tools, or return None if none is left."""
    return _WRITERS[native].write(tools, log)


def _encode_tool(tool: Tool, tools: tuple[Tool, ...], log: LossLog, *, native: bool) -> WireValue:
    if isinstance(tool, ProviderTool):
        return encode_provider_tool(tool, FAMILY, log)
    if isinstance(tool, CustomTool):
        return _encode_custom(tool, log)
    if tool.cache is not None:
        drop_tool_cache_mark(tool, log)
    parameters = tool.parameters_held if native else _legal_parameters(tool, tools, log)
    description: Any = UNSET if tool.description is None else tool.description
    if not native and not tool.description and not _has_properties(bytes(parameters)):
        # «a tool needs a description or inputs»
        log.invent(tool, "description", "description of a tool", "its name: this API requires a description or inputs")
        description = tool.name
    function: Any = FunctionDefinition(
        tool.name,
        description,
        UNSET if parameters is None else parameters,
    )
    notes: Extra | None = None if tool.metadata is None else tool.metadata.get(FAMILY)
    if not notes:
        return FunctionTool(function)
    inner = inner_extra(notes, "function")
    return spliced(FunctionTool(function if inner is None else cast("Any", spliced(function, inner))), notes)


_WRITERS = {native: ToolWriter(partial(_encode_tool, native=native)) for native in (True, False)}


@lru_cache(maxsize=512)
def _has_properties(schema: bytes) -> bool:
    return bool(parse_json(schema).get("properties"))


def _encode_custom(tool: CustomTool, log: LossLog) -> WireValue:
    description: Any = UNSET if tool.description is None else tool.description
    return FunctionTool(FunctionDefinition(tool.name, description, parameters_of_custom(tool, log)))


def _legal_parameters(tool: ToolDefinition, tools: tuple[Tool, ...], log: LossLog) -> Raw:
    """Return parameters that the API accepts.

    «schema must be an object», «property X must have a type», «required field X not found in properties».
    """
    rooted = rooted_schema(tool, tools, log, PROFILE.name)
    if rooted is None:
        return NOTHING
    schema, untyped = _with_types(bytes(to_raw(rooted)))
    for name in untyped:
        field = f"parameters.properties.{name}"
        log.invent(tool, field, f"type of property {name!r}", "any type: this API requires one for every property")
    return schema


_ANY_TYPE = ["string", "number", "boolean", "object", "array", "null"]
_SAYS_TYPE = frozenset({"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"})


@lru_cache(maxsize=512)  # an agent declares the same tools in every request
def _with_types(raw: bytes) -> tuple[Raw, tuple[str, ...]]:
    """Return the schema, and the names of properties that got a type. A list of all types equals no type."""
    schema = parse_json(raw)
    properties = schema.get("properties")
    if properties is None:
        properties = {}
    if not isinstance(properties, dict):
        return Raw(raw), ()
    required = schema.get("required")
    missing = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    completed = {**properties, **{name: {} for name in missing if name not in properties}}
    untyped = [name for name, inner in completed.items() if _is_untyped(inner)]
    for name in untyped:
        inner = completed[name]
        completed[name] = {**(inner if isinstance(inner, dict) else {}), "type": _ANY_TYPE}
    if not untyped:
        return Raw(raw), ()
    return Raw(encode_json({**schema, "properties": completed})), tuple(untyped)


def _is_untyped(schema: Any) -> bool:
    return isinstance(schema, bool) or (isinstance(schema, dict) and _SAYS_TYPE.isdisjoint(schema))


# ── choice ────────────────────────────────────────────────────────────────────────────────────────────────────

_CHOICES = {"REQUIRED": ToolChoice("required"), "NONE": ToolChoice("none")}


def decode_tool_choice(wire: str) -> ToolChoice:
    choice = _CHOICES.get(wire)
    if choice is None:
        raise DecodeError(path="$.tool_choice", expected="REQUIRED or NONE", got=repr(wire), source="cohere-chat")
    return choice


class _Choosable(NamedTuple):
    """The tools among which the model may choose, the tool choice, and `strict_tools`."""

    tools: tuple[Tool, ...]
    word: str | UnsetType = UNSET
    strict: bool | UnsetType = UNSET


def encode_tool_choice(request: Request, log: LossLog) -> _Choosable:
    """Encode the choice: REQUIRED, NONE, or absent (the model's choice). A choice of some tools omits the others."""
    choice, tools = request.tool_choice, request.tools
    native = request.origin == FAMILY
    if request.parallel_tool_calls is False:
        log.drop(request, "parallel_tool_calls", "one call at a time", "this API has no such switch")
    word: str | UnsetType = UNSET
    if choice is not None:
        report_keys(request, choice.metadata, log, "tool_choice.")
    if choice is not None and (tools or native):
        word = {"required": "REQUIRED", "none": "NONE"}.get(choice.mode, UNSET)
        if choice.names and choice.mode != "none":
            tools = _chosen(choice, tools, log)
            if not tools:  # 400: a choice without tools
                word = UNSET
                log.drop(request, "tool_choice", "forced tool call", "the tools that it names are not there")
        if not native and PROFILE.no_forced_choice_models.search(request.model or "") is not None:
            word = UNSET
            if choice.mode == "required":
                log.drop(request, "tool_choice", "forced tool call", "this model cannot be forced to call")
            elif choice.mode == "none":
                for tool in tools:
                    log.degrade(tool, "", f"tool {tool.name!r}", "left out, so that this model calls none")
                tools = ()
    return _Choosable(tools, word, _strict(tools, log, native=native))


def _chosen(choice: ToolChoice, tools: tuple[Tool, ...], log: LossLog) -> tuple[Tool, ...]:
    names = set(choice.names)
    for tool in tools:
        if tool.name not in names:
            log.degrade(tool, "", f"tool {tool.name!r}", "left out: the choice does not name it")
    return tuple(tool for tool in tools if tool.name in names)


def _strict(tools: tuple[Tool, ...], log: LossLog, *, native: bool) -> bool | UnsetType:
    """Return the one switch for all tools: on if each of them wants it."""
    wishes = [tool.strict for tool in tools if isinstance(tool, ToolDefinition)]
    if wishes and all(wishes) and (native or len(wishes) == len(tools)):
        return True
    if native and False in wishes:
        return False
    for tool in tools:
        if isinstance(tool, ToolDefinition) and tool.strict:
            log.degrade(tool, "strict", "strict", "this API has one switch for all tools, and not all of them want it")
    return UNSET


# ── structured output ─────────────────────────────────────────────────────────────────────────────────────────

FORMAT = MODELLED + "response_format"

_DIALECT = SchemaDialect(
    name="Cohere json_schema",
    refused=frozenset(
        {"allOf", "oneOf", "not", "if", "then", "else", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
        | {"multipleOf", "minItems", "maxItems", "minLength", "maxLength", "uniqueItems", "minProperties"}
        | {"maxProperties", "patternProperties", "propertyNames", "dependentRequired", "dependentSchemas", "contains"}
    ),
    root_object=True,
    formats={"string": frozenset({"date-time", "uuid", "date", "time"})},
    plain_patterns=True,
    declared_required=True,
)


def decode_output(wire: ResponseFormat, notes: Extra) -> StructuredOutput | None:
    """Decode the output format; None for {"type": "text"}, the explicit default, which is noted."""
    if wire.type != "json_object":
        if wire.extra is UNSET:
            notes[FORMAT] = Raw(encode_json(wire))
        else:
            notes["response_format"] = spliced(wire, wire.extra)
        return None
    metadata = keep(FAMILY, wire.extra)
    if wire.json_schema is UNSET:
        return StructuredOutput("json", metadata=metadata)
    return StructuredOutput("schema", wire.json_schema, metadata=metadata)


def encode_output(output: StructuredOutput, request: Request, log: LossLog) -> WireValue:
    """Encode the output format: `json_schema` is the bare schema here, without name or switch."""
    extra: Extra = (output.metadata or {}).get(FAMILY, {})
    raw_schema = output.schema_held
    if request.origin == FAMILY:
        schema: Any = UNSET if output.kind == "json" else to_raw(raw_schema)
        return spliced(ResponseFormat("json_object", schema), extra)
    if request.tools:
        log.drop(request, "output", "format of the answer", "this API takes no format beside tools")
        return UNSET
    for field in ("name", "description"):
        if getattr(output, field) is not None:
            log.drop(request, f"output.{field}", f"{field} of the schema", "this API has no such field")
    schema = (
        UNSET if output.kind == "json" or raw_schema is None else _legal_schema(bytes(to_raw(raw_schema)), request, log)
    )
    return spliced(ResponseFormat("json_object", schema), extra)


def _legal_schema(raw: bytes, request: Request, log: LossLog) -> WireValue:
    given = parse_json(raw)
    try:
        adapted = adapt_schema(given, _DIALECT)
    except SchemaError as error:
        log.degrade(request, "output.schema", "output schema", f"sent as JSON mode: {error}")
        return UNSET
    schema = _with_required(adapted.schema)
    if schema is None:
        why = "sent as JSON mode: this API requires every object of a schema to require a property"
        log.degrade(request, "output.schema", "output schema", why)
        return UNSET
    for note in adapted.notes:
        if not note.exact:
            field = "output.schema" + note.path.removeprefix("$")
            log.degrade(request, field, f"schema keyword {note.keyword!r}", note.reason)
    if schema != adapted.schema:
        why = "this API requires every object to require a property: the first one is"
        log.degrade(request, "output.schema", "optional property", why)
    return Raw(raw) if schema == given else to_raw(schema)


def _with_required(schema: Any) -> Any:
    """Return the schema with a required property in each object; None if an object has no property at all."""
    if isinstance(schema, list):
        items = [_with_required(item) for item in schema]
        return None if any(item is None for item in items) else items
    if not isinstance(schema, dict):
        return schema
    changed: dict[str, Any] = {}
    value: Any
    for key, value in schema.items():
        if key in {"enum", "const", "default", "examples", "required"}:
            changed[key] = value
            continue
        if key in {"properties", "$defs", "definitions"} and isinstance(value, dict):
            inner: Any = {name: _with_required(one) for name, one in value.items()}
            if any(one is None for one in inner.values()):
                return None
        else:
            inner = None if value is None else _with_required(value)
            if inner is None and value is not None:
                return None
        changed[key] = inner
    if changed.get("type") == "object" and not changed.get("required"):
        properties = changed.get("properties")
        if not isinstance(properties, dict) or not properties:
            return None
        changed["required"] = [next(iter(properties))]
    return changed
