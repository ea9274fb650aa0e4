"""Tool definitions and choices in records: flat, or wrapped as {type: "function", function: …}; both are read."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.reading import as_json, encode_with_extra, keep, spliced
from dragoman.codecs.records.reading import TRUE
from dragoman.codecs.shared_tools import encode_provider_tool, parameters_of_custom
from dragoman.codecs.wire_values import Wire
from dragoman.errors import DecodeError, EncodeError
from dragoman.ir import AnyTool, CustomTool, ProviderTool, Request, ToolChoice, ToolDefinition
from dragoman.ir.notes import Extra, inner_extra
from dragoman.losses import LossLog

NESTED = "~nested"
BARE = "~bare"
MODES = ("auto", "none", "required")
NO_PARAMETERS = {"type": "object", "properties": {}}


class FunctionRecord(Wire, frozen=True):
    name: str
    description: str | UnsetType = UNSET
    parameters: Raw | UnsetType = UNSET
    strict: bool | UnsetType = UNSET


class ToolRecord(Wire, frozen=True):
    type: str | UnsetType = UNSET
    function: FunctionRecord | UnsetType = UNSET
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    parameters: Raw | UnsetType = UNSET
    strict: bool | UnsetType = UNSET


class Named(Wire, frozen=True):
    name: str


class ChoiceRecord(Wire, frozen=True):
    type: str | UnsetType = UNSET
    function: Named | UnsetType = UNSET
    name: str | UnsetType = UNSET


class ToolStyle(NamedTuple):
    """How one format writes its tools."""

    family: str
    complete: bool = False
    """Whether description and parameters are always present."""
    bare_choice: bool = False
    """Whether a forced tool is a bare string, so that no tool may be called auto, none or required."""
    choice_key: str = "tool_choice"


# ── definitions ───────────────────────────────────────────────────────────────────────────────────────────────


def decode_tools(wires: list[ToolRecord], style: ToolStyle) -> tuple[AnyTool, ...]:
    return tuple([_decode_tool(wire, style, f"$.tools[{index}]") for index, wire in enumerate(wires)])


def _decode_tool(wire: ToolRecord, style: ToolStyle, place: str) -> AnyTool:
    described = wire if wire.function is UNSET else wire.function
    name = described.name
    if name is UNSET:
        if wire.type is UNSET or wire.type == "function":
            raise DecodeError(path=place, expected="a tool with name or function", got="neither", source=style.family)
        definition = encode_with_extra(wire)
        return ProviderTool(wire.type, style.family, definition)
    _refuse_reserved_on_reading(name, style, place)
    if wire.function is UNSET:
        notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
        if wire.type is not UNSET:
            notes["~raw:type"] = as_json(wire.type)
    else:
        metadata = keep(style.family, wire.extra, function=wire.function.extra) or {style.family: {}}
        notes = {**metadata[style.family], NESTED: TRUE}
        if wire.type is UNSET:
            notes["~untyped"] = TRUE
    return ToolDefinition(
        name,
        None if described.description is UNSET else described.description,
        None if described.parameters is UNSET else described.parameters,
        None if described.strict is UNSET else described.strict,
        None,
        {style.family: notes} if notes else None,
    )


def _refuse_reserved_on_reading(name: str, style: ToolStyle, place: str) -> None:
    if style.bare_choice and name in MODES:
        expected = "a name that the tool choice does not use as a word"
        raise DecodeError(path=f"{place}.name", expected=expected, got=repr(name), source=style.family)


def encode_tools(tools: tuple[AnyTool, ...], style: ToolStyle, log: LossLog, *, native: bool) -> list[Raw]:
    written = (_encode_tool(tool, index, style, log, native=native) for index, tool in enumerate(tools))
    return [wire for wire in written if wire is not None]


def _encode_tool(tool: AnyTool, index: int, style: ToolStyle, log: LossLog, *, native: bool) -> Raw | None:
    if isinstance(tool, ProviderTool):
        wire = encode_provider_tool(tool, style.family, log)
        return None if wire is None else as_json(wire)
    if style.bare_choice and tool.name in MODES:
        reason = f"a tool named {tool.name!r} could not be told from that word of the tool choice"
        raise EncodeError(path=f"$.tools[{index}].name", reason=reason, target=style.family)
    if isinstance(tool, CustomTool):
        tool = ToolDefinition(tool.name, tool.description, parameters_of_custom(tool, log))
    elif tool.cache is not None:
        log.drop(tool, "cache", "cache mark on a tool", "a stored definition has none")
    notes: Extra = (tool.metadata or {}).get(style.family, {})
    fields = _fields(tool, log, complete=style.complete and not native)
    if NESTED not in notes:
        return spliced(as_json(fields), notes)
    function = spliced(as_json(fields), inner_extra(notes, "function") or {})
    typed = {} if "~untyped" in notes else {"type": "function"}
    return spliced(as_json({**typed, "function": function}), notes)


def _fields(tool: ToolDefinition, log: LossLog, *, complete: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": tool.name}
    parameters = tool.parameters_held
    if tool.description is not None:
        fields["description"] = tool.description
    elif complete:
        fields["description"] = ""
        log.invent(tool, "description", "empty description", "this format always has one")
    if parameters is not None:
        fields["parameters"] = parameters
    elif complete:
        fields["parameters"] = NO_PARAMETERS
        log.invent(tool, "parameters", "empty parameters", "this format always has them")
    if tool.strict is not None:
        fields["strict"] = tool.strict
    return fields


# ── choice ────────────────────────────────────────────────────────────────────────────────────────────────────


def decode_tool_choice(wire: str | ChoiceRecord, style: ToolStyle) -> ToolChoice:
    """Decode a tool choice, with all three spellings of a forced tool: the bare name, {name}, and the wrapped one."""
    family = style.family
    if isinstance(wire, str):
        if wire in MODES:
            return ToolChoice(wire)  # type: ignore[arg-type]
        return ToolChoice("required", (wire,), None if style.bare_choice else {family: {BARE: TRUE}})
    named: Any = wire if wire.function is UNSET else wire.function
    if named.name is UNSET:
        raise DecodeError(
            path=f"$.{style.choice_key}", expected="a choice with name or function", got="neither", source=family
        )
    metadata = keep(family, wire.extra, function=UNSET if wire.function is UNSET else wire.function.extra)
    notes: Extra = (metadata or {family: {}})[family]
    if wire.function is not UNSET:
        notes[NESTED] = TRUE
        if wire.type is UNSET:
            notes["~untyped"] = TRUE
    elif style.bare_choice:
        notes["~flat"] = TRUE
    if wire.function is UNSET and wire.type is not UNSET:
        notes["~raw:type"] = as_json(wire.type)
    return ToolChoice("required", (named.name,), {family: notes} if notes else None)


def encode_tool_choice(choice: ToolChoice, request: Request, style: ToolStyle, log: LossLog) -> Any:
    names = choice.names
    if not names:
        return choice.mode
    if len(names) > 1 or choice.mode != "required":
        what = f"choice among {', '.join(names)}"
        log.degrade(request, "tool_choice", what, f"stored as {choice.mode}: this format names one tool or none")
        return choice.mode
    notes: Extra = (choice.metadata or {}).get(style.family, {})
    named = {"name": names[0]}
    if NESTED in notes:
        function = spliced(as_json(named), inner_extra(notes, "function") or {})
        return spliced(as_json({**({} if "~untyped" in notes else {"type": "function"}), "function": function}), notes)
    if BARE in notes or (style.bare_choice and "~flat" not in notes):
        if names[0] in MODES:
            reason = f"a tool named {names[0]!r} cannot be forced: the bare string is a word of the choice"
            raise EncodeError(path=f"$.{style.choice_key}", reason=reason, target=style.family)
        return names[0]
    return spliced(as_json(named), notes)
