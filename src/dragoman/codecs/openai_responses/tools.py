"""Tool definitions, tool choice and structured output, both ways."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import UNSET, Raw

from dragoman.codecs.common_losses import drop_tool_cache_mark
from dragoman.codecs.memo import ToolReader, ToolWriter
from dragoman.codecs.object_root_schemas import rooted_schema
from dragoman.codecs.openai_responses.hosted_tools import HOSTED
from dragoman.codecs.openai_responses.parts import NULL
from dragoman.codecs.openai_responses.profile import FAMILY, PROFILE
from dragoman.codecs.openai_responses.wire import ChoiceObject, FormatWire, ProviderToolWire, ToolWire
from dragoman.codecs.reading import WireValue, encode_with_extra, keep, spliced
from dragoman.codecs.settings import collect_keys
from dragoman.codecs.shared_settings import is_strict, required_name
from dragoman.codecs.shared_tools import encode_provider_tool
from dragoman.errors import DecodeError
from dragoman.ir import AnyTool as Tool
from dragoman.ir import CustomTool, ProviderTool, Request, StructuredOutput, ToolChoice, ToolDefinition
from dragoman.ir.notes import ADDED, Extra, family_notes
from dragoman.ir.requests import parameters_of
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

NO_PARAMETERS = Raw(b'{"type":"object","properties":{}}')

# ── definitions ───────────────────────────────────────────────────────────────────────────────────────────────


def _keys_beyond(*interpreted: str) -> dict[type[ToolWire], Callable[[ToolWire], Extra | None]]:
    """Return, by the struct a tool was read as, a function from the tool to its members other than these."""
    return {
        kind: collect_keys(kind, [name for name in kind.__struct_fields__ if name not in {*interpreted, "extra"}])
        for kind in (ToolWire, ProviderToolWire)
    }


_function_keys = _keys_beyond("type", "name", "description", "parameters", "strict", "defer_loading")
_custom_keys = _keys_beyond("type", "name", "description", "format")


def _decode_tool(wire: ToolWire) -> Tool:
    kind, name, description = wire.type, wire.name, wire.description
    if name is None or kind not in {"function", "custom"}:
        raw = encode_with_extra(wire)
        definition = parse_json(raw)
        return ProviderTool(_provider_name(definition), FAMILY, raw, **HOSTED.read_tool(definition))
    extra = (_function_keys if kind == "function" else _custom_keys)[type(wire)](wire)
    if description is None:
        extra = {**(extra or {}), "description": NULL}
    elif description is UNSET:
        description = None
    if kind == "custom" and wire.strict is not None:
        extra = {**(extra or {}), "strict": Raw(encode_json(wire.strict))}
    metadata = None if extra is None else {FAMILY: extra}
    if kind == "custom":
        return CustomTool(name, description, None if wire.format is UNSET else _nest_grammar(wire.format), metadata)
    parameters = None if wire.parameters is UNSET else wire.parameters
    deferred = None
    if wire.defer_loading is not UNSET:
        deferred = _DEFERRED.get(bytes(wire.defer_loading))
        if deferred is None:
            metadata = {FAMILY: {**(extra or {}), "defer_loading": wire.defer_loading}}
    return ToolDefinition(name, description, parameters, wire.strict, metadata=metadata, deferred=deferred)


_DEFERRED = {b"true": True, b"false": False}


decode_tools = ToolReader(ToolWire, "openai-responses request", _decode_tool, wider=ProviderToolWire).read


def _provider_name(definition: dict[str, Any]) -> str:
    for key in ("name", "server_label", "type"):
        if isinstance(definition.get(key), str) and definition[key]:
            return str(definition[key])
    return ""


def _nest_grammar(raw: Raw) -> Raw:
    """Nest a grammar, which is flat here; the intermediate format has Chat's shape, one level deeper."""
    form = parse_json(raw)
    if not isinstance(form, dict) or form.get("type") != "grammar" or "grammar" in form:
        return raw
    grammar = {key: form[key] for key in ("syntax", "definition") if key in form}
    rest = {key: value for key, value in form.items() if key not in grammar}
    return Raw(encode_json({**rest, "grammar": grammar}))


def _flat(given: Any) -> WireValue:
    form = parse_json(given) if isinstance(given, Raw) else given
    if not isinstance(form, dict) or form.get("type") != "grammar" or not isinstance(form.get("grammar"), dict):
        return given
    rest = {key: value for key, value in form.items() if key != "grammar"}
    return Raw(encode_json({**rest, **form["grammar"]}))


def encode_tools(tools: tuple[Tool, ...], log: LossLog, *, native: bool = False) -> WireValue:
    """Encode the tools, or return None if none is left."""
    return (_NATIVE_WRITER if native else _WRITER).write(tools, log)


def _encode_tool(tool: Tool, tools: tuple[Tool, ...], log: LossLog, *, native: bool) -> WireValue:
    if native and tool.metadata is not None and ADDED in family_notes(FAMILY, tool.metadata):
        return None  # the input holds it
    if isinstance(tool, ToolDefinition):
        if tool.cache is not None:
            drop_tool_cache_mark(tool, log)
        parameters = tool.parameters_held if native else rooted_schema(tool, tools, log, PROFILE.name)
        wire = ToolWire(
            "function",
            tool.name,
            UNSET if tool.description is None else tool.description,
            _parameters(parameters, native=native),
            tool.strict if native else _strict(tool, log),
            defer_loading=UNSET if tool.deferred is None else tool.deferred,  # type: ignore[arg-type]
        )
        extra = family_notes(FAMILY, tool.metadata)
        return spliced(wire, extra) if extra else wire
    if isinstance(tool, CustomTool):
        form = tool.format_held
        custom = ToolWire(
            "custom",
            tool.name,
            UNSET if tool.description is None else tool.description,
            format=UNSET if form is None else _flat(form),
        )
        extra = family_notes(FAMILY, tool.metadata)
        return spliced(custom, extra) if extra else custom
    return encode_provider_tool(tool, FAMILY, log, HOSTED.write_tool)


_WRITER = ToolWriter(partial(_encode_tool, native=False))
_NATIVE_WRITER = ToolWriter(partial(_encode_tool, native=True))


def _parameters(value: Any, *, native: bool) -> Any:
    if value is not None:
        return value
    # Required here, unlike in Chat, where a missing one means an object without properties.
    return UNSET if native else NO_PARAMETERS


def _strict(tool: ToolDefinition, log: LossLog) -> bool:
    """Return `strict`, which is always sent: without it this API tries to be strict, unlike all others.

    It is off if this API would refuse the schema as strict: the schema is never changed to fit.
    """
    schema = parameters_of(tool)
    # Without parameters the empty object is sent, and that is not a strict schema.
    return bool(tool.strict) and schema is not None and is_strict(schema, tool, "strict", log)


# ── choice ────────────────────────────────────────────────────────────────────────────────────────────────────

_CHOICES = {"auto": ToolChoice("auto"), "none": ToolChoice("none"), "required": ToolChoice("required")}


def decode_tool_choice(wire: str | ChoiceObject) -> ToolChoice:
    if isinstance(wire, str):
        choice = _CHOICES.get(wire)
        if choice is None:
            raise DecodeError(
                path="$.tool_choice",
                expected="auto, none, required or an object",
                got=repr(wire),
                source="openai-responses",
            )
        return choice
    exact = {FAMILY: {"~choice": _exact_choice(wire), **_unknown_keys(wire)}}
    if wire.type == "allowed_tools":
        names = tuple(_chosen(tool) for tool in wire.tools or ())
        return ToolChoice("required" if wire.mode == "required" else "auto", names, exact)
    if wire.type == "function" and wire.name is not UNSET and wire.extra is UNSET and wire.tools is UNSET:
        return ToolChoice("required", (wire.name,))
    return ToolChoice("required", (_chosen(wire),), exact)


def _unknown_keys(wire: ChoiceObject) -> Extra:
    """Return the further keys of the choice: also kept in the exact choice, and reported where they are lost."""
    within = {f"tools[{index}]": tool.extra for index, tool in enumerate(wire.tools or ())}
    return (keep(FAMILY, wire.extra, **within) or {FAMILY: {}})[FAMILY]


def _chosen(wire: ChoiceObject) -> str:
    """Return the name of a tool, the label of an MCP server, or the type of a hosted tool."""
    for name in (wire.server_label, wire.name):
        if name is not UNSET:
            return name
    return wire.type


def _exact_choice(wire: ChoiceObject) -> Raw:
    inner = wire if wire.tools is UNSET else ChoiceObject(wire.type, wire.name, wire.server_label, wire.mode)
    raw = spliced(inner, wire.extra or {})
    if wire.tools is UNSET:
        return raw
    return spliced(raw, {"tools": Raw(encode_json([_exact_choice(tool) for tool in wire.tools]))})


def encode_tool_choice(choice: ToolChoice, tools: tuple[Tool, ...]) -> WireValue:
    notes = family_notes(FAMILY, choice.metadata)
    if "~choice" in notes:
        return notes["~choice"]
    if not choice.names:
        return choice.mode
    by_name = {tool.name: tool for tool in reversed(tools)}  # of tools with the same name, the first counts
    entries = [_chosen_entry(name, by_name.get(name)) for name in choice.names]
    # A search can be one of several allowed tools, but not the type of a choice.
    if len(entries) == 1 and choice.mode == "required" and entries[0].type != "web_search":
        return entries[0]
    return ChoiceObject("allowed_tools", mode=choice.mode, tools=entries)


def _chosen_entry(name: str, tool: Tool | None) -> ChoiceObject:
    if isinstance(tool, ProviderTool) and tool.kind is not None:
        return ChoiceObject("mcp", server_label=name) if tool.kind == "mcp" else ChoiceObject(_CHOSEN[tool.kind])
    return ChoiceObject("custom" if isinstance(tool, CustomTool) else "function", name)


_CHOSEN = {
    "web_search": "web_search",
    "code_execution": "code_interpreter",
    "file_search": "file_search",
    "image_generation": "image_generation",
    "shell": "shell",
}


# ── structured output ─────────────────────────────────────────────────────────────────────────────────────────


def decode_output(wire: FormatWire) -> StructuredOutput | None:
    """Decode the output format; None for {"type": "text"}, which is the default."""
    if wire.type == "json_object":
        return StructuredOutput("json", metadata=keep(FAMILY, wire.extra))
    if wire.type != "json_schema":
        return None
    notes = (keep(FAMILY, wire.extra) or {FAMILY: {}})[FAMILY]
    if wire.name is UNSET:
        notes["~name"] = Raw(b'"absent"')
    return StructuredOutput(
        "schema",
        None if wire.schema is UNSET else wire.schema,
        None if wire.name is UNSET else wire.name,
        None if wire.description is UNSET else wire.description,
        None if wire.strict is UNSET else wire.strict,
        {FAMILY: notes} if notes else None,
    )


def encode_output(output: StructuredOutput, request: Request, log: LossLog) -> WireValue:
    extra = family_notes(FAMILY, output.metadata)
    if output.kind == "json":
        return spliced(FormatWire("json_object"), extra)
    native = request.origin == FAMILY
    name = output.name
    if name is None and not native:
        name, output = required_name(output, request, log)
    if not native and not _is_object(output):
        log.drop(request, "output", "output schema", "this API requires an object at the root of the schema")
        return UNSET
    strict: Any = UNSET if output.strict is None else output.strict
    if strict is True and not native:
        strict = is_strict(output.schema, request, "output.strict", log)
    wire = FormatWire(
        "json_schema",
        UNSET if name is None else name,
        UNSET if output.schema_held is None else output.schema_held,
        UNSET if output.description is None else output.description,
        strict,
    )
    return spliced(wire, extra)


def _is_object(output: StructuredOutput) -> bool:
    schema = output.schema
    return isinstance(schema, dict) and schema.get("type") == "object"
