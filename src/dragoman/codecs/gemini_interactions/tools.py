"""Tool definitions, tool choice and structured output, both ways."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec import UNSET, Raw

from dragoman.codecs.common_losses import drop_tool_cache_mark
from dragoman.codecs.gemini_interactions.hosted_tools import HOSTED
from dragoman.codecs.gemini_interactions.profile import FAMILY
from dragoman.codecs.gemini_interactions.wire import AllowedTools, ChoiceObject, ProviderToolWire, ToolWire
from dragoman.codecs.google_settings import (
    JSON,
    note_other_formats,
    read_formats,
    read_json_format,
    take_place,
    write_place,
)
from dragoman.codecs.google_signatures import GOOGLE
from dragoman.codecs.google_vocabulary import member_as_tool, tool_as_member, write_member
from dragoman.codecs.memo import ToolReader, ToolWriter
from dragoman.codecs.reading import WireValue, encode_with_extra, restore, spliced
from dragoman.codecs.settings import collect_keys
from dragoman.codecs.shared_tools import parameters_of_custom, report_provider_tool
from dragoman.codecs.tuple_schemas import without_tuples
from dragoman.ir import AnyTool as Tool
from dragoman.ir import CustomTool, ProviderTool, Request, StructuredOutput, ToolChoice, ToolDefinition
from dragoman.ir.notes import MODELLED, Extra, family_notes
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

# ── definitions ───────────────────────────────────────────────────────────────────────────────────────────────

_INTERPRETED = {"type", "name", "description", "parameters", "extra"}
_keys = {
    kind: collect_keys(kind, [name for name in kind.__struct_fields__ if name not in _INTERPRETED])
    for kind in (ToolWire, ProviderToolWire)
}


def _decode_tool(wire: ToolWire) -> Tool:
    if wire.type == "function" and wire.name is not None:
        extra = _keys[type(wire)](wire)
        parameters = None if wire.parameters is UNSET else wire.parameters
        return ToolDefinition(
            wire.name, wire.description, parameters, metadata=None if extra is None else {FAMILY: extra}
        )
    raw = encode_with_extra(wire)
    definition = parse_json(raw)
    place = take_place(definition)
    member = tool_as_member(definition)
    fields: dict[str, Any] = {"name": wire.name or (wire.type if isinstance(wire.type, str) else "")}
    fields |= HOSTED.read_tool(definition)
    if member is not None and member_as_tool(member) == (definition, ()):
        fields |= {"origin": GOOGLE, "definition": Raw(encode_json(member))}
        return ProviderTool(**fields | ({"metadata": {FAMILY: place}} if place else {}))
    return ProviderTool(**fields, origin=FAMILY, definition=raw)


decode_tools = ToolReader(ToolWire, "gemini-interactions request", _decode_tool, wider=ProviderToolWire).read


def encode_tools(tools: tuple[Tool, ...], log: LossLog, *, native: bool = False) -> WireValue:
    """Encode the tools, or return None if none is left."""
    return _WRITERS[native].write(tools, log)


def _encode_tool(tool: Tool, _tools: tuple[Tool, ...], log: LossLog, *, native: bool) -> WireValue:
    if isinstance(tool, CustomTool):
        return ToolWire("function", tool.name, tool.description, parameters_of_custom(tool, log))
    if tool.cache is not None:
        drop_tool_cache_mark(tool, log)
    if isinstance(tool, ProviderTool):
        return _encode_provider_tool(tool, log)
    parameters = tool.parameters_held
    if parameters is not None and not native:
        parameters = without_tuples(parameters, tool, log)
    if parameters is None or (type(parameters) is Raw and bytes(parameters) == b"null" and not native):
        parameters = UNSET
    wire = ToolWire("function", tool.name, tool.description, parameters)
    extra = family_notes(FAMILY, tool.metadata)
    return spliced(wire, extra) if extra else wire


def _encode_provider_tool(tool: ProviderTool, log: LossLog) -> WireValue:
    if tool.origin == FAMILY:
        return tool.definition_held
    if tool.definition is None or tool.origin != GOOGLE:
        written = HOSTED.write_tool(tool) if tool.definition is None else None
        return report_provider_tool(tool, log) if written is None else written
    return write_place(tool, write_member(tool, log))


_WRITERS = {native: ToolWriter(partial(_encode_tool, native=native)) for native in (True, False)}

# ── choice ────────────────────────────────────────────────────────────────────────────────────────────────────

_MODES: dict[str, Any] = {"auto": "auto", "any": "required", "none": "none"}
_WORDS = {"auto": "auto", "required": "any", "none": "none"}
_CHOICES = {word: ToolChoice(mode) for word, mode in _MODES.items()}
VALIDATED = "validated"
_GOOGLE_VALIDATED: Extra = {"mode": Raw(b'"VALIDATED"')}


def decode_tool_choice(wire: str | ChoiceObject) -> ToolChoice:
    """Decode the tool choice. `validated` (calls are checked) and unknown words are auto, and kept as a note."""
    notes: Extra = {}
    names: tuple[str, ...] = ()
    if isinstance(wire, str):
        if (known := _CHOICES.get(wire)) is not None:
            return known
        word, notes["~choice"] = wire.lower(), Raw(encode_json(wire))
    else:
        word = "auto" if wire.allowed_tools.mode is UNSET else wire.allowed_tools.mode.lower()
        names, notes["~choice"] = tuple(wire.allowed_tools.tools or ()), restore(wire)
        for extra in (wire.extra, wire.allowed_tools.extra):
            notes.update({} if extra is UNSET else extra)
    if word not in _MODES and word != VALIDATED:
        notes["mode"] = Raw(encode_json(word))
    google = {GOOGLE: _GOOGLE_VALIDATED} if word == VALIDATED else {}
    return ToolChoice(_MODES.get(word, "auto"), names, {FAMILY: notes} | google)


def encode_tool_choice(request: Request, choice: ToolChoice, log: LossLog) -> WireValue:
    """Encode the tool choice. A single tool has no form of its own: it is a set of one."""
    tools, native = request.tools, request.origin == FAMILY
    notes = family_notes(FAMILY, choice.metadata)
    if "~choice" in notes and native:
        return notes["~choice"]
    word = _WORDS[choice.mode]
    mode = (choice.metadata or {}).get(GOOGLE, {}).get("mode")
    is_validated = mode is not None and str(parse_json(mode)).lower() == VALIDATED
    if mode is not None and not is_validated:
        log.drop(request, "tool_choice.mode", "mode", "this API has no such choice")
    is_strict = any(isinstance(tool, ToolDefinition) and tool.strict for tool in tools)
    if choice.mode == "auto" and (is_validated or is_strict):
        word = VALIDATED
    return ChoiceObject(AllowedTools(word, list(choice.names))) if choice.names else word


# ── structured output ─────────────────────────────────────────────────────────────────────────────────────────


def decode_output(raw: Raw, notes: Extra) -> StructuredOutput | None:
    """Decode the text format of an answer. Other formats are a loss in other APIs, each named by its type."""
    texts, others, is_known = read_formats(raw)
    output = read_json_format(texts[0], raw) if len(texts) == 1 else None
    if output is None:
        notes[MODELLED + "response_format" if is_known else "response_format"] = raw
    if output is not None or is_known:
        note_other_formats(others, notes, has_text=bool(texts))
    return output


def encode_output(request: Request, log: LossLog) -> WireValue:
    """Return the `response_format`, or UNSET."""
    output = request.output
    if output is None:
        return UNSET
    notes = family_notes(FAMILY, output.metadata)
    if "~format" in notes:
        return notes["~format"]
    for field in ("name", "description"):
        if getattr(output, field) is not None:
            log.drop(request, f"output.{field}", f"{field} of the schema", "this API has no such field")
    schema: Any = output.schema_held
    form: dict[str, Any] = {"type": "text", "mime_type": JSON}
    return form if output.kind == "json" or schema is None else {**form, "schema": schema}
