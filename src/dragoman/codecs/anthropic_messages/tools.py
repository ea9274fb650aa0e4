"""Tool definitions, tool choice and structured output, both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Raw, structs

from dragoman.codecs.anthropic_messages.caching import FAMILY, Marked, decode_mark, encode_mark
from dragoman.codecs.anthropic_messages.hosted_tools import HOSTED, SERVER
from dragoman.codecs.anthropic_messages.parts import replace_mark
from dragoman.codecs.anthropic_messages.profile import PROFILE
from dragoman.codecs.anthropic_messages.wire import FormatWire, ProviderToolWire, ToolChoiceWire, ToolWire
from dragoman.codecs.claude_settings import forces_call
from dragoman.codecs.memo import ToolReader, ToolWriter
from dragoman.codecs.object_root_schemas import NOTHING, adapt, answer_schema, is_plain_object, object_schema
from dragoman.codecs.reading import WireValue, keep, spliced
from dragoman.codecs.settings import collect_keys
from dragoman.codecs.shared_settings import report_json_instruction
from dragoman.codecs.shared_tools import encode_provider_tool, offered_tools, parameters_of_custom
from dragoman.errors import DecodeError
from dragoman.ir import AnyTool as Tool
from dragoman.ir import CustomTool, ProviderTool, Request, StructuredOutput, ToolChoice, ToolDefinition
from dragoman.ir.notes import Extra, family_notes
from dragoman.ir.values import encode_json, parse_json, to_raw
from dragoman.losses import LossLog

# ── definitions ───────────────────────────────────────────────────────────────────────────────────────────────


MOST_STRICT_TOOLS = 20


_tool_keys = collect_keys(
    ProviderToolWire,
    tuple(
        name
        for name in ProviderToolWire.__struct_fields__
        if name
        not in {"name", "description", "input_schema", "type", "strict", "cache_control", "defer_loading", "extra"}
    ),
)


def _decode_tool(wire: ProviderToolWire) -> Tool:
    schema, kind, name = wire.input_schema, wire.type, wire.name
    if schema is UNSET or name is UNSET or (kind is not UNSET and kind is not None and kind != "custom"):
        return _decode_provider_tool(wire)
    description = None if wire.description is UNSET else wire.description
    strict = None if wire.strict is UNSET else wire.strict
    notes: Extra = _tool_keys(wire) or {}
    if kind is not UNSET:
        notes["~type"] = Raw(encode_json(kind))
    cache = decode_mark(wire.cache_control, notes)
    deferred = _DEFERRED.get(bytes(wire.defer_loading)) if wire.defer_loading is not UNSET else None
    if deferred is None and wire.defer_loading is not UNSET:
        notes["defer_loading"] = wire.defer_loading
    return ToolDefinition(name, description, schema, strict, cache, {FAMILY: notes} if notes else None, deferred)


_DEFERRED = {b"true": True, b"false": False}


def _decode_provider_tool(wire: ProviderToolWire) -> ProviderTool:
    extra: Extra = {} if wire.extra is UNSET else wire.extra
    name, server = wire.name, wire.mcp_server_name
    if name is UNSET and server is not UNSET:
        name = parse_json(server)
    if not isinstance(name, str):
        name = wire.type if isinstance(wire.type, str) else ""
    mark = wire.cache_control
    if mark is not UNSET and mark is not None and mark.extra is not UNSET:
        wire = structs.replace(wire, cache_control=spliced(mark, mark.extra))
    definition = spliced(wire, extra)
    return ProviderTool(name, FAMILY, definition, decode_mark(mark, {}), **HOSTED.read_tool(parse_json(definition)))


decode_tools = ToolReader(ProviderToolWire, "anthropic-messages request", _decode_tool).read


def encode_tools(request: Request, mark: Callable[[Marked], WireValue], log: LossLog) -> tuple[WireValue, Extra | None]:
    """Encode the tools, or None if none is left, and the key with the addresses of their MCP servers."""
    native = request.origin == FAMILY
    choice = request.tool_choice
    tools = request.tools if choice is None or not choice.names else offered_tools(request, choice, log, can_name=True)
    writer = _NATIVE_WRITER if native else _WRITER
    if writer.can_write(tools):
        return writer.write(tools, log), None
    wires: list[WireValue] = []
    strict = 0
    for tool in tools:
        enforced = None if type(tool) is not ToolDefinition else tool.strict
        if enforced:
            enforced = _can_enforce(tool, strict, log)  # type: ignore[arg-type]
            strict += enforced is True
        wire = _encode_tool(tool, request.tools, log, mark, strict=enforced)
        if wire is not None:
            wires.append(wire)
    return wires or None, None if native else HOSTED.write_servers(tools)


def _depends(tools: tuple[Tool, ...]) -> bool:
    """Whether a tool depends on the others: cache marks and strict tools are counted, MCP servers share a key."""
    return any(_stands_out(tool) for tool in tools) or (
        sum([type(tool) is ToolDefinition and tool.strict is True for tool in tools]) > MOST_STRICT_TOOLS
    )


def _stands_out(tool: Tool) -> bool:
    if type(tool) is ProviderTool and tool.kind == "mcp" and tool.definition is None:
        return True
    return type(tool) is not CustomTool and tool.cache is not None  # type: ignore[union-attr]


def _write_alone(tool: Tool, tools: tuple[Tool, ...], log: LossLog) -> WireValue:
    enforced = None if type(tool) is not ToolDefinition else tool.strict
    if enforced:
        enforced = _can_enforce(tool, 0, log)  # type: ignore[arg-type]
    return _encode_tool(tool, tools, log, encode_mark, strict=enforced)


def _write_native(tool: Tool, tools: tuple[Tool, ...], log: LossLog) -> WireValue:
    if type(tool) is ToolDefinition:
        return _encode_function(tool, tool.parameters_held, encode_mark, strict=tool.strict)
    return _encode_tool(tool, tools, log, encode_mark, strict=None)


def _encode_tool(
    tool: Tool, tools: tuple[Tool, ...], log: LossLog, mark: Callable[[Marked], WireValue], *, strict: bool | None
) -> WireValue:
    if isinstance(tool, ToolDefinition):
        schema = tool.parameters_held
        if not (type(schema) is Raw and is_plain_object(bytes(schema))):
            schema = object_schema(tool, tools, log, PROFILE.name)
        return _encode_function(tool, schema, mark, strict=strict)
    if isinstance(tool, CustomTool):
        description = UNSET if tool.description is None else tool.description
        return ToolWire(tool.name, description, parameters_of_custom(tool, log))
    if tool.origin == FAMILY and SERVER in family_notes(FAMILY, tool.metadata):
        return None  # its only place is among the servers
    wire = encode_provider_tool(tool, FAMILY, log, HOSTED.write_tool)
    return wire if wire is None or tool.cache is None else replace_mark(wire, mark(tool))


def _encode_function(
    tool: ToolDefinition, schema: WireValue, mark: Callable[[Marked], WireValue], *, strict: bool | None
) -> WireValue:
    notes = family_notes(FAMILY, tool.metadata)
    wire = ToolWire(
        tool.name,
        UNSET if tool.description is None else tool.description,
        schema,
        parse_json(notes["~type"]) if "~type" in notes else UNSET,
        UNSET if strict is None else strict,
        mark(tool),
        defer_loading=UNSET if tool.deferred is None else tool.deferred,  # type: ignore[arg-type]
    )
    return spliced(wire, notes) if notes else wire


def _can_enforce(tool: ToolDefinition, before: int, log: LossLog) -> bool | None:
    """Return True, or None if this API cannot enforce the schema: without `strict`, the schema is sent unchanged."""
    parameters = tool.parameters_held
    schema = NOTHING if parameters is None else to_raw(parameters)
    found = adapt(bytes(schema), "ANTHROPIC_STRICT")
    if found.refusal or found.notes:
        why = found.refusal or f"{found.notes[0].keyword}: {found.notes[0].reason}"
        log.degrade(tool, "strict", "strict", f"this API cannot enforce the schema ({why})")
    elif before == MOST_STRICT_TOOLS:
        log.degrade(tool, "strict", "strict", f"this API takes {MOST_STRICT_TOOLS} strict tools in one request")
    else:
        return True
    return None


_WRITER = ToolWriter(_write_alone, _depends)
_NATIVE_WRITER = ToolWriter(_write_native)


# ── choice ────────────────────────────────────────────────────────────────────────────────────────────────────

AUTO = ToolChoiceWire("auto")
_DECODE_MODE = {"auto": "auto", "any": "required", "tool": "required", "none": "none"}
_PLAIN_CHOICES = {"auto": ToolChoice("auto"), "any": ToolChoice("required"), "none": ToolChoice("none")}


def decode_tool_choice(wire: ToolChoiceWire) -> ToolChoice:
    kind, name, disabled = wire.type, wire.name, wire.disable_parallel_tool_use
    if name is disabled is wire.extra is UNSET and kind in _PLAIN_CHOICES:
        return _PLAIN_CHOICES[kind]
    mode: Any = _DECODE_MODE.get(kind)
    if mode is None or (kind == "tool") != (name is not UNSET):
        expected, got = "auto, any or none, or tool with a name", repr(kind)
        raise DecodeError(path="$.tool_choice", expected=expected, got=got, source=PROFILE.name)
    notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    if disabled is not UNSET and (mode == "none" or not disabled):
        # Given although it changes nothing.
        notes["~parallel"] = Raw(encode_json(disabled))
    return ToolChoice(mode, () if name is UNSET else (name,), {FAMILY: notes} if notes else None)


def encode_tool_choice(request: Request, log: LossLog) -> WireValue:
    """Encode choice and parallel switch, which share one object here; neither may be sent without tools."""
    choice, parallel = request.tool_choice, request.parallel_tool_calls
    if choice is None and parallel is None:
        return UNSET
    if parallel is None and choice is not None and choice.mode == "auto" and choice.metadata is None:
        return AUTO
    notes = {} if choice is None else family_notes(FAMILY, choice.metadata)
    disable: Any = True if parallel is False else parse_json(notes["~parallel"]) if "~parallel" in notes else UNSET
    if choice is None:
        return ToolChoiceWire("auto", UNSET, disable) if disable is True else UNSET
    if choice.mode == "none":
        wire = ToolChoiceWire("none", UNSET, disable if "~parallel" in notes else UNSET)
    elif choice.mode == "auto" or _cannot_force(request, log):
        wire = ToolChoiceWire("auto", UNSET, disable)
    elif len(choice.names) == 1:
        wire = ToolChoiceWire("tool", choice.names[0], disable)
    else:
        wire = ToolChoiceWire("any", UNSET, disable)
    return spliced(wire, notes) if notes else wire


def _cannot_force(request: Request, log: LossLog) -> bool:
    if request.origin == FAMILY or forces_call(request):
        return False
    log.degrade(request, "tool_choice", "forced tool choice", "sent as auto: this model refuses to be forced")
    return True


# ── structured output ─────────────────────────────────────────────────────────────────────────────────────────


def decode_output(wire: FormatWire) -> StructuredOutput | None:
    """Decode the output format; None for one of an unknown kind."""
    if wire.type != "json_schema":
        return None
    return StructuredOutput("schema", None if wire.schema is UNSET else wire.schema, metadata=keep(FAMILY, wire.extra))


def encode_output(output: StructuredOutput, request: Request, log: LossLog) -> WireValue:
    if output.kind == "json":
        report_json_instruction(request, log)
        return UNSET
    for field in ("name", "description"):
        if getattr(output, field) is not None:
            log.drop(request, f"output.{field}", f"{field} of the schema", "this API has no such field")
    notes, schema = family_notes(FAMILY, output.metadata), output.schema_held
    if schema is None:
        if request.origin != FAMILY:
            report_json_instruction(request, log)
            return UNSET
        schema = UNSET
    elif request.origin != FAMILY:
        schema = answer_schema(request, to_raw(schema), log)
        if schema is None:
            return UNSET
    wire = FormatWire("json_schema", schema)
    return spliced(wire, notes) if notes else wire
