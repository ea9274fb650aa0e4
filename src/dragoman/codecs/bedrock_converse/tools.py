"""Tool definitions, tool choice and structured output, both ways."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.bedrock_converse.caching import mark_node
from dragoman.codecs.bedrock_converse.hosted_tools import HOSTED
from dragoman.codecs.bedrock_converse.parts import PartEncoder
from dragoman.codecs.bedrock_converse.profile import FAMILY, PROFILE, limits_of
from dragoman.codecs.bedrock_converse.wire import (
    FormatStructure,
    InputSchema,
    JsonSchema,
    NamedTool,
    TextFormat,
    ToolChoiceWire,
    ToolSpec,
    ToolWire,
)
from dragoman.codecs.memo import DecodedTools, ToolLists, ToolWriter
from dragoman.codecs.object_root_schemas import NOTHING, adapt, answer_schema, is_plain_object, object_schema
from dragoman.codecs.reading import WireReader, WireValue, restore, spliced
from dragoman.codecs.shared_settings import report_json_instruction
from dragoman.codecs.shared_tools import encode_provider_tool, offered_tools, parameters_of_custom
from dragoman.errors import DecodeError
from dragoman.ir import AnyTool as Tool
from dragoman.ir import CustomTool, ProviderTool, Request, StructuredOutput, ToolChoice, ToolDefinition
from dragoman.ir.notes import Extra, family_notes, inner_extra
from dragoman.ir.values import compact_text, encode_json, exact_json, parse_json, to_raw
from dragoman.losses import LossLog

_formats = WireReader(TextFormat, "bedrock-converse output format")
_entries = msgspec.json.Decoder(dict[str, Raw]).decode

# ── definitions ───────────────────────────────────────────────────────────────────────────────────────────────


_INNER = ("toolSpec", "inputSchema")


_reader: WireReader[list[ToolWire]] = WireReader(list[ToolWire], "bedrock-converse request", path="$.toolConfig.tools")


def _decode_held(raw: Raw) -> DecodedTools:
    return DecodedTools(_decode_list(_reader.read(bytes(raw))))


decode_tools = ToolLists(_decode_held).read


def _decode_list(wires: list[ToolWire]) -> tuple[Tool, ...]:
    """Decode the tools. A cache point among them marks the one before it."""
    tools: list[Tool] = []
    for wire in wires:
        point = wire.cache_point
        if point is not UNSET and wire.tool_spec is wire.system_tool is wire.extra is UNSET:
            before = mark_node(tools[-1], point) if tools else None
            if before is not None:
                tools[-1] = before
                continue
        tools.append(_decode_tool(wire))
    return tuple(tools)


def _decode_tool(wire: ToolWire) -> Tool:
    spec = wire.tool_spec
    if spec is UNSET or not (wire.cache_point is wire.system_tool is UNSET):
        return _decode_provider_tool(wire)
    schema = spec.input_schema
    if schema is UNSET or schema.json is UNSET:
        return _decode_provider_tool(wire)
    description = None if spec.description is UNSET else spec.description
    strict = None if spec.strict is UNSET else spec.strict
    if wire.extra is spec.extra is schema.extra is UNSET:
        return ToolDefinition(spec.name, description, schema.json, strict)
    notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    for name, extra in zip(_INNER, (spec.extra, schema.extra), strict=True):
        if extra is not UNSET:
            notes["~in:" + name] = Raw(encode_json(extra))
    return ToolDefinition(spec.name, description, schema.json, strict, None, {FAMILY: notes})


def _decode_provider_tool(wire: ToolWire) -> ProviderTool:
    exact_wire = restore(wire)
    entries = parse_json(exact_wire)
    kind = next(iter(entries), "")
    inner = entries.get(kind)
    name = inner.get("name") if isinstance(inner, dict) else None
    return ProviderTool(name if isinstance(name, str) else kind, FAMILY, exact_wire, **HOSTED.read_tool(entries))


def encode_tools(request: Request, encoder: PartEncoder, log: LossLog) -> WireValue:
    """Encode the tools, or return None if none is left."""
    native = request.origin == FAMILY
    choice = request.tool_choice
    tools = request.tools
    if choice is not None and choice.names:
        tools = offered_tools(request, choice, log, can_name=limits_of(request.model).named_choice)
    writer = _NATIVE_WRITER if native else _writer_of(request.model)
    if writer.can_write(tools):
        return writer.write(tools, log)
    wires: list[WireValue] = []
    for tool in tools:
        wire = writer.write_tool(tool, request.tools, log)
        if wire is not None:
            wires.append(wire)
            point = UNSET if type(tool) is CustomTool or tool.cache is None else encoder.point(tool)  # type: ignore[union-attr, arg-type]
            wires += [] if point is UNSET else [ToolWire(cache_point=point)]
    return wires or None


def _has_marks(tools: tuple[Tool, ...]) -> bool:
    """Whether a tool has a cache mark: marks are separate elements, and are counted over the whole request."""
    return any(type(tool) is not CustomTool and tool.cache is not None for tool in tools)  # type: ignore[union-attr]


def _encode_tool(
    tool: Tool, tools: tuple[Tool, ...], log: LossLog, *, native: bool = False, enforces: bool = False
) -> WireValue:
    """Encode one tool without its mark; `enforces`: whether the model can follow a schema strictly."""
    if isinstance(tool, ToolDefinition):
        if native:
            strict: Any = UNSET if tool.strict is None else tool.strict
            return _encode_function(tool, tool.parameters_held, tool.description, strict)
        schema: Any = tool.parameters_held
        if not (type(schema) is Raw and is_plain_object(bytes(schema))):
            schema = object_schema(tool, tools, log, PROFILE.name)
        # An empty description is refused: at least one character, or no key at all.
        strict = UNSET if tool.strict is None else _encode_strict(tool, log, enforces=enforces)
        return _encode_function(tool, schema, tool.description or None, strict)
    if isinstance(tool, CustomTool):
        return ToolWire(ToolSpec(tool.name, tool.description or UNSET, InputSchema(parameters_of_custom(tool, log))))
    return encode_provider_tool(tool, FAMILY, log, HOSTED.write_tool)


_NATIVE_WRITER = ToolWriter(partial(_encode_tool, native=True), _has_marks)
_WRITER = ToolWriter(_encode_tool, _has_marks)
_CLAUDE_WRITER = ToolWriter(partial(_encode_tool, enforces=True), _has_marks)


def _writer_of(model: str | None) -> ToolWriter:
    return _CLAUDE_WRITER if limits_of(model).thinking == "claude" else _WRITER


def _encode_function(tool: ToolDefinition, schema: WireValue, text: str | None, strict: WireValue) -> WireValue:
    description: Any = UNSET if text is None else text
    notes = family_notes(FAMILY, tool.metadata)
    if not notes:
        return ToolWire(ToolSpec(tool.name, description, InputSchema(schema), strict))
    input_schema: Any = InputSchema(schema)
    inner = inner_extra(notes, "inputSchema")
    if inner is not None:
        input_schema = spliced(input_schema, inner)
    spec: Any = ToolSpec(tool.name, description, input_schema, strict)
    inner = inner_extra(notes, "toolSpec")
    spec = spec if inner is None else spliced(spec, inner)
    return spliced(ToolWire(spec), notes)


def _encode_strict(tool: ToolDefinition, log: LossLog, *, enforces: bool) -> WireValue:
    """Return `strict`. Omitting it when the schema cannot be enforced keeps the schema whole."""
    if not tool.strict:
        return False
    parameters = tool.parameters_held
    schema = NOTHING if parameters is None else to_raw(parameters)
    found = adapt(bytes(schema), "ANTHROPIC_STRICT")
    why = found.refusal or (f"{found.notes[0].keyword}: {found.notes[0].reason}" if found.notes else "")
    if not enforces:
        why = "this model follows no schema strictly"
    if not why:
        return True
    log.degrade(tool, "strict", "strict", f"the schema cannot be enforced ({why})")
    return UNSET


# ── choice ────────────────────────────────────────────────────────────────────────────────────────────────────

_EMPTY = Raw(b"{}")
AUTO = ToolChoiceWire(_EMPTY)
ANY = ToolChoiceWire(UNSET, _EMPTY)
_PLAIN_AUTO, _PLAIN_ANY = ToolChoice("auto"), ToolChoice("required")

NO_CALLS = "Answer in text. Do not call any tool now."
"""Sent if no tool may be called: this API has no such choice, and refuses calls in the history without tools."""


def decode_tool_choice(wire: ToolChoiceWire) -> ToolChoice | None:
    """Decode the tool choice; None for one of an unknown kind."""
    auto, anything, tool = wire.auto, wire.any, wire.tool
    if [auto, anything, tool].count(UNSET) != len(("auto", "any", "tool")) - 1:
        return None
    if wire.extra is UNSET and auto is not UNSET and bytes(auto) == b"{}":
        return _PLAIN_AUTO
    if wire.extra is UNSET and anything is not UNSET and bytes(anything) == b"{}":
        return _PLAIN_ANY
    mode: Any = "auto" if auto is not UNSET else "required"
    if tool is not UNSET and wire.extra is tool.extra is UNSET:
        return ToolChoice(mode, (tool.name,))
    notes: Extra = {"~choice": restore(wire)}
    # Reported to other formats key by key; this format gets the whole back.
    for extra in (wire.extra, UNSET if tool is UNSET else tool.extra, _read_entries(auto), _read_entries(anything)):
        notes.update({} if extra is UNSET else extra)
    return ToolChoice(mode, () if tool is UNSET else (tool.name,), {FAMILY: notes})


def _read_entries(raw: Raw | UnsetType) -> Extra:
    try:
        return {} if raw is UNSET else _entries(raw)
    except msgspec.ValidationError:
        return {}


def has_calls(request: Request) -> bool:
    return any(message.role == "tool" or message.tool_calls for message in request.messages)


def called_tools(request: Request) -> list[WireValue]:
    """Define the tools that the history calls, for a request whose own tools cannot be sent."""
    names = dict.fromkeys(call.name for message in request.messages for call in message.tool_calls)
    return [ToolWire(ToolSpec(name, UNSET, InputSchema(NOTHING))) for name in names]


def forbids_calls(request: Request) -> bool:
    return request.tool_choice is not None and request.tool_choice.mode == "none"


def encode_tool_choice(request: Request, log: LossLog) -> WireValue:
    choice = request.tool_choice
    if choice is None:
        return UNSET
    notes = family_notes(FAMILY, choice.metadata)
    if "~choice" in notes:
        return notes["~choice"]
    if choice.mode == "none":
        log.invent(request, "tool_choice", "an instruction to call no tool", "this API has no such choice")
        return UNSET
    if choice.mode == "auto":
        return AUTO
    if request.origin != FAMILY and PROFILE.no_forced_choice_models.search(request.model or "") is not None:
        log.degrade(request, "tool_choice", "forced tool choice", "sent as auto: this model refuses to be forced")
        return AUTO
    if len(choice.names) == 1 and (request.origin == FAMILY or limits_of(request.model).named_choice):
        return ToolChoiceWire(tool=NamedTool(choice.names[0]))
    return ANY


# ── structured output ─────────────────────────────────────────────────────────────────────────────────────────


def decode_output(raw: Raw) -> StructuredOutput | None:
    """Decode the output format; None for one of an unknown kind."""
    try:
        wire = _formats.read(bytes(raw))
    except DecodeError:
        return None
    structure = wire.structure.json_schema
    # JSON in a string; kept as written.
    schema = exact_json(structure.schema)
    if wire.type != "json_schema" or schema is None or bytes(schema).decode() != structure.schema:
        return None
    notes: Extra = {}
    for extra in (wire.extra, wire.structure.extra, structure.extra):
        notes.update({} if extra is UNSET else extra)
    if notes:
        notes["~format"] = raw
    name = None if structure.name is UNSET else structure.name
    description = None if structure.description is UNSET else structure.description
    return StructuredOutput("schema", schema, name, description, metadata={FAMILY: notes} if notes else None)


def encode_output(output: StructuredOutput, request: Request, log: LossLog) -> WireValue:
    notes, schema = family_notes(FAMILY, output.metadata), output.schema_held
    if "~format" in notes:
        return notes["~format"]
    if output.kind == "json":
        report_json_instruction(request, log)
        return UNSET
    if schema is None:
        report_json_instruction(request, log)
        return UNSET
    if request.origin == FAMILY and type(schema) is Raw:
        text = bytes(schema).decode()
    else:
        taken = answer_schema(request, to_raw(schema), log)
        if taken is None:
            return UNSET
        text = compact_text(taken)
    name = UNSET if output.name is None else output.name
    given = output.description
    description = UNSET if given is None or (not given and request.origin != FAMILY) else given
    return TextFormat("json_schema", FormatStructure(JsonSchema(text, name, description)))
