"""Tool definitions, tool choice and structured output, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any, cast

from msgspec import UNSET, Raw, structs

from dragoman.codecs import cache_control
from dragoman.codecs.common_losses import drop_tool_cache_mark
from dragoman.codecs.memo import ToolReader, ToolWriter
from dragoman.codecs.object_root_schemas import rooted_schema
from dragoman.codecs.openai_chat.hosted_tools import HOSTED
from dragoman.codecs.openai_chat.profile import PROFILE, ChatProfile
from dragoman.codecs.openai_chat.wire import (
    AllowedTool,
    AllowedTools,
    AnyTool,
    ChoiceObject,
    CustomDefinition,
    FlatTool,
    FunctionDefinition,
    FunctionTool,
    JsonSchemaFormat,
    Named,
    ResponseFormat,
    UntypedTool,
    WiderTool,
)
from dragoman.codecs.openai_chat.wire import CustomTool as CustomToolWire
from dragoman.codecs.reading import WireReader, WireValue, keep, spliced
from dragoman.codecs.shared_settings import is_strict, required_name
from dragoman.codecs.shared_tools import encode_provider_tool
from dragoman.errors import DecodeError
from dragoman.ir import AnyTool as Tool
from dragoman.ir import Cache, CustomTool, Metadata, ProviderTool, Request, StructuredOutput, ToolChoice, ToolDefinition
from dragoman.ir.notes import Extra, family_notes, inner_extra
from dragoman.ir.requests import parameters_of
from dragoman.ir.values import note, parse_json, to_raw
from dragoman.losses import LossLog

FAMILY = "openai"

# ── definitions ───────────────────────────────────────────────────────────────────────────────────────────────


_untyped = WireReader(UntypedTool, "openai-chat request", path="$.tools")


SHAPE = "~shape"
"""Note of a function in the shape of another API: the object as written."""
SCHEMA_KEYS = ("parameters", "input_schema")
_BESIDE = ("name", "description", "parameters", "strict")
_FLAT_KEYS = frozenset({"type", "name", "description", "strict", *SCHEMA_KEYS})


def _decode_flat(wire: FlatTool) -> Tool:
    extra: Extra = {} if wire.extra is UNSET else wire.extra
    if wire.function is not UNSET:
        further = {key: to_raw(getattr(wire, key)) for key in _BESIDE if getattr(wire, key) is not UNSET}
        return _decode_tool(FunctionTool(wire.function, extra={**extra, **further} or UNSET))
    if wire.name is UNSET:
        got = "an object in which it is missing"
        raise DecodeError(path="$", expected="the field `function`", got=got, source="openai-chat request")
    return _decode_shape(parse_json(spliced(wire, extra)), "parameters")


def _decode_shape(definition: dict[str, Any], key: str) -> ToolDefinition:
    """Decode a function as another API writes it: Cursor sends the tools of Responses and of Messages."""
    notes: Extra = {name: to_raw(value) for name, value in definition.items() if name not in _FLAT_KEYS}
    notes[SHAPE] = to_raw(definition)
    cache = cache_control.read_mark(notes)
    strict = definition.get("strict")
    parameters = None if definition.get(key) is None else to_raw(definition[key])
    description = definition.get("description")
    return ToolDefinition(definition["name"], description, parameters, strict, cache, {FAMILY: notes})


def _is_of_messages(definition: dict[str, Any]) -> bool:
    return (
        definition.keys() >= {"name", "input_schema"}
        and "type" not in definition
        and isinstance(definition["name"], str)
        and isinstance(definition["input_schema"], dict)
        and isinstance(definition.get("description"), str | None)
        and isinstance(definition.get("strict"), bool | None)
    )


def _decode_tool(wire: AnyTool | UntypedTool | FlatTool) -> Tool:
    if isinstance(wire, FlatTool):
        return _decode_flat(wire)
    if isinstance(wire, FunctionTool):
        function = wire.function
        cache, metadata = None, None
        if wire.extra is not UNSET or function.extra is not UNSET:
            cache, metadata = _decode_keys(wire)
        return ToolDefinition(
            function.name,
            None if function.description is UNSET else function.description,
            None if function.parameters is UNSET else function.parameters,
            None if function.strict is UNSET else function.strict,
            cache,
            metadata,
        )
    if isinstance(wire, CustomToolWire):
        custom = wire.custom
        return CustomTool(
            custom.name,
            None if custom.description is UNSET else custom.description,
            None if custom.format is UNSET else custom.format,
            keep(FAMILY, wire.extra, custom=custom.extra),
        )
    if isinstance(wire, UntypedTool):
        return _decode_untyped(wire)
    definition = parse_json(wire.raw)
    if "type" not in definition and isinstance(definition.get("function"), dict):
        return _decode_untyped(_untyped.read(bytes(wire.raw)))
    if _is_of_messages(definition):
        return _decode_shape(definition, "input_schema")
    name = str(definition.get("name") or definition.get("type") or "")
    return ProviderTool(name, FAMILY, wire.raw, **HOSTED.read_tool(definition))


def _decode_keys(wire: FunctionTool) -> tuple[Cache | None, Metadata | None]:
    """Return the cache mark and the further keys of a function; LiteLLM takes the mark in the inner object too."""
    own: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    inner: Extra = {} if wire.function.extra is UNSET else dict(wire.function.extra)
    cache = cache_control.read_mark(own) or cache_control.read_mark(inner)
    return cache, keep(FAMILY, own or UNSET, function=inner or UNSET)


def _is_marked(extra: Extra) -> bool:
    return cache_control.NOTED in extra or cache_control.NOTED in (inner_extra(extra, "function") or ())


def _decode_untyped(wire: UntypedTool) -> Tool:
    tool = _decode_tool(FunctionTool(wire.function, extra=wire.extra))
    notes = (getattr(tool, "metadata", None) or {}).get(FAMILY, {})
    return structs.replace(tool, metadata={FAMILY: {**notes, "~type": Raw(b'"absent"')}})


decode_tools = ToolReader(AnyTool, "openai-chat request", _decode_tool, wider=WiderTool, untagged=UntypedTool).read


def encode_tools(
    tools: tuple[Tool, ...], log: LossLog, *, native: bool = False, profile: ChatProfile = PROFILE
) -> tuple[WireValue, Extra | None]:
    """Encode the tools, or None if none is left, and the settings that express a tool."""
    writer = _WRITERS[native, native or not profile.strict_schemas, profile.cache_control and not native]
    if writer.can_write(tools):
        return writer.write(tools, log), None
    entries = []
    for tool in tools:
        if isinstance(tool, ProviderTool) and tool.definition is None:
            entry = HOSTED.entry_for(tool, profile)
            tool = structs.replace(tool, origin=FAMILY, definition=entry)  # noqa: PLW2901
        wire = None if HOSTED.is_setting(tool) else writer.write_tool(tool, tools, log)
        if wire is not None:
            entries.append(wire)
    return entries or None, HOSTED.write_settings(tools, profile, log)


def _has_hosted(tools: tuple[Tool, ...]) -> bool:
    return any(isinstance(tool, ProviderTool) for tool in tools)


def _encode_tool(
    tool: Tool, tools: tuple[Tool, ...], log: LossLog, *, native: bool, loose: bool, marks: bool
) -> WireValue:
    if isinstance(tool, ToolDefinition):
        shape = note(tool.metadata, FAMILY, SHAPE) if native else UNSET
        if shape is not UNSET and _is_shaped(tool, shape):
            return to_raw(shape)
        mark: Extra = {}
        if tool.cache is not None and not _is_marked(family_notes(FAMILY, tool.metadata)):
            if marks:
                mark = cache_control.mark_for_relay(tool, tool.cache, log)
            else:
                drop_tool_cache_mark(tool, log)
        parameters = tool.parameters_held if native else rooted_schema(tool, tools, log, PROFILE.name)
        function: Any = FunctionDefinition(
            tool.name,
            UNSET if tool.description is None else tool.description,
            UNSET if parameters is None else parameters,
            UNSET if tool.strict is None else tool.strict if loose else _strict(tool, log),
        )
        if tool.metadata is None or FAMILY not in tool.metadata:
            return spliced(FunctionTool(function), mark) if mark else FunctionTool(function)
        extra = {**tool.metadata[FAMILY], **mark}
        inner = inner_extra(extra, "function")
        kind = UntypedTool if loose and "~type" in extra else FunctionTool
        return spliced(kind(function if inner is None else cast("Any", spliced(function, inner))), extra)
    if isinstance(tool, CustomTool):
        form = tool.format_held
        custom: Any = CustomDefinition(
            tool.name, UNSET if tool.description is None else tool.description, UNSET if form is None else form
        )
        extra = (tool.metadata or {}).get(FAMILY, {})
        inner = inner_extra(extra, "custom")
        return spliced(CustomToolWire(custom if inner is None else cast("Any", spliced(custom, inner))), extra)
    return encode_provider_tool(tool, FAMILY, log)


def _is_shaped(tool: ToolDefinition, shape: dict[str, Any]) -> bool:
    """Whether the object still says what the tool is."""
    schema = next((shape[key] for key in SCHEMA_KEYS if shape.get(key) is not None), None)
    cache = cache_control.read_mark({key: to_raw(value) for key, value in shape.items() if key == cache_control.KEY})
    written = (shape["name"], shape.get("description"), schema, shape.get("strict"), cache)
    return written == (tool.name, tool.description, tool.parameters, tool.strict, tool.cache)


_WRITERS = {
    (native, loose, marks): ToolWriter(partial(_encode_tool, native=native, loose=loose, marks=marks), _has_hosted)
    for native, loose, marks in product((True, False), repeat=3)
    if not marks or (loose and not native)  # only relays of other vendors' models take marks
}


def _strict(tool: ToolDefinition, log: LossLog) -> bool:
    """Return `strict`, off if this API would refuse the schema as strict: the schema is never changed to fit."""
    schema = parameters_of(tool)
    return bool(tool.strict) and (schema is None or is_strict(schema, tool, "strict", log))


# ── choice ────────────────────────────────────────────────────────────────────────────────────────────────────

_CUSTOM = {FAMILY: {"~type": Raw(b'"custom"')}}
_CHOICES = {
    "auto": ToolChoice("auto"),
    "none": ToolChoice("none"),
    "required": ToolChoice("required"),
    # Mistral says "any" where all others say "required".
    "any": ToolChoice("required", metadata={FAMILY: {"~mode": Raw(b'"any"')}}),
}


def decode_tool_choice(wire: str | ChoiceObject) -> ToolChoice:
    if isinstance(wire, str):
        choice = _CHOICES.get(wire)
        if choice is None:
            raise DecodeError(
                path="$.tool_choice", expected="auto, none, required or an object", got=repr(wire), source="openai-chat"
            )
        return choice
    if wire.function is not UNSET:
        metadata = keep(FAMILY, wire.extra, function=wire.function.extra)
        if wire.type is UNSET:
            metadata = {FAMILY: {**(metadata or {}).get(FAMILY, {}), "~untyped": Raw(b"true")}}
        return ToolChoice("required", (wire.function.name,), metadata)
    if wire.custom is not UNSET:
        return ToolChoice("required", (wire.custom.name,), _CUSTOM)
    if wire.allowed_tools is not UNSET:
        return _decode_allowed(wire, wire.allowed_tools)
    # xAI also takes {"type": "tool", "name": …}.
    named = UNSET if wire.extra is UNSET else parse_json(wire.extra.get("name", Raw(b"null")))
    if not isinstance(named, str):
        raise DecodeError(
            path="$.tool_choice",
            expected="function, custom or allowed_tools",
            got=repr(wire.type),
            source="openai-chat",
        )
    return ToolChoice("required", (named,), {FAMILY: {"~choice": spliced(wire, wire.extra or {})}})


def _decode_allowed(wire: ChoiceObject, allowed: AllowedTools) -> ToolChoice:
    names = []
    within = {"allowed_tools": allowed.extra}
    for index, tool in enumerate(allowed.tools):
        named = tool.function if tool.function is not UNSET else tool.custom
        if named is UNSET:
            raise DecodeError(
                path=f"$.tool_choice.allowed_tools.tools[{index}]",
                expected="function or custom",
                got=repr(tool.type),
                source="openai-chat",
            )
        names.append(named.name)
        within[f"allowed_tools.tools[{index}]"] = tool.extra
        within[f"allowed_tools.tools[{index}].{tool.type}"] = named.extra
    notes = {"~set": Raw(b"true")} | (keep(FAMILY, wire.extra, **within) or {FAMILY: {}})[FAMILY]
    return ToolChoice("required" if allowed.mode == "required" else "auto", tuple(names), {FAMILY: notes})


def encode_tool_choice(choice: ToolChoice, tools: tuple[Tool, ...], required: str = "required") -> WireValue:
    notes = (choice.metadata or {}).get(FAMILY, {})
    if "~choice" in notes:
        return notes["~choice"]
    if not choice.names:
        return "any" if "~mode" in notes else required if choice.mode == "required" else choice.mode
    custom = {tool.name for tool in tools if isinstance(tool, CustomTool)}
    entries = [
        AllowedTool("custom", custom=Named(name)) if name in custom else AllowedTool("function", Named(name))
        for name in choice.names
    ]
    if len(entries) == 1 and choice.mode == "required" and "~set" not in notes:
        function: Any = entries[0].function
        if function is not UNSET and (inner := inner_extra(notes, "function")) is not None:
            function = spliced(function, inner)
        if "~type" in notes and function is not UNSET:
            return ChoiceObject("custom", custom=function)
        single = ChoiceObject(UNSET if "~untyped" in notes else entries[0].type, function, entries[0].custom)
        return spliced(single, notes) if notes else single
    listed = [_write_allowed(entry, index, notes) for index, entry in enumerate(entries)]
    allowed: Any = AllowedTools(choice.mode, listed)
    if (inner := inner_extra(notes, "allowed_tools")) is not None:
        allowed = spliced(allowed, inner)
    return spliced(ChoiceObject("allowed_tools", allowed_tools=allowed), notes)


def _write_allowed(entry: AllowedTool, index: int, notes: Mapping[str, Any]) -> Any:
    """Return the entry with the keys it had beyond its type."""
    place = f"allowed_tools.tools[{index}]"
    outer, inner = inner_extra(notes, place), inner_extra(notes, f"{place}.{entry.type}")
    if inner is not None and entry.function is not UNSET:
        entry = AllowedTool(entry.type, cast("Any", spliced(entry.function, inner)))
    elif inner is not None and entry.custom is not UNSET:
        entry = AllowedTool(entry.type, custom=cast("Any", spliced(entry.custom, inner)))
    return entry if outer is None else spliced(entry, outer)


# ── structured output ─────────────────────────────────────────────────────────────────────────────────────────


BARE_SCHEMA = "~bare_schema"
"""Note: the type of a format with the schema itself beside it, as Together, Fireworks and llama.cpp take it."""
UNNAMED = {FAMILY: {"~name": Raw(b'"absent"')}}


def decode_output(wire: ResponseFormat) -> StructuredOutput | None:
    """Decode the output format; None for {"type": "text"}, which is the default."""
    inner = wire.json_schema
    if (
        inner is UNSET
        and wire.type in _OF_SCHEMAS
        and wire.extra is not UNSET
        and _is_mapping(wire.extra.get("schema"))
    ):
        extra = dict(wire.extra)
        schema = extra.pop("schema")
        return StructuredOutput("schema", schema, metadata={FAMILY: {**extra, BARE_SCHEMA: to_raw(wire.type)}})
    if wire.type == "json_object":
        return StructuredOutput("json", metadata=keep(FAMILY, wire.extra))
    if wire.type != "json_schema" or inner is UNSET:
        return None
    return StructuredOutput(
        "schema",
        None if inner.schema is UNSET else inner.schema,
        None if inner.name is UNSET else inner.name,
        None if inner.description is UNSET else inner.description,
        None if inner.strict is UNSET else inner.strict,
        keep(FAMILY, wire.extra, json_schema=inner.extra) or (UNNAMED if inner.name is UNSET else None),
    )


_OF_SCHEMAS = frozenset({"json_object", "json_schema"})


def _is_mapping(raw: Raw | None) -> bool:
    return raw is not None and bytes(raw)[:1] == b"{"


def encode_output(output: StructuredOutput, request: Request, log: LossLog) -> WireValue:
    extra = (output.metadata or {}).get(FAMILY, {})
    if output.kind == "json":
        return spliced(ResponseFormat("json_object"), extra)
    if BARE_SCHEMA in extra:
        return spliced(ResponseFormat(parse_json(extra[BARE_SCHEMA])), {**extra, "schema": to_raw(output.schema_held)})
    name = output.name
    if name is None and FAMILY not in (output.metadata or {}):
        name, output = required_name(output, request, log)
    if request.origin != FAMILY and not _is_object(output):
        log.drop(request, "output", "output schema", "this API requires an object at the root of the schema")
        return UNSET
    inner: Any = JsonSchemaFormat(
        UNSET if name is None else name,
        UNSET if output.schema_held is None else output.schema_held,
        UNSET if output.description is None else output.description,
        UNSET if output.strict is None else _strict_output(output, request, log),
    )
    inner_keys = inner_extra(extra, "json_schema")
    wrapped = inner if inner_keys is None else spliced(inner, inner_keys)
    return spliced(ResponseFormat("json_schema", wrapped), extra)  # type: ignore[arg-type]


def _strict_output(output: StructuredOutput, request: Request, log: LossLog) -> bool:
    """Return `strict`, off if this API would refuse the schema as strict, as with tools."""
    if not output.strict or request.origin == FAMILY:
        return bool(output.strict)
    return is_strict(output.schema, request, "output.strict", log)


def _is_object(output: StructuredOutput) -> bool:
    schema = output.schema
    return schema is None or (isinstance(schema, dict) and schema.get("type") == "object")
