"""Tool definitions, tool choice and structured output, both ways.

There are two schema languages here: `parametersJsonSchema` and `responseJsonSchema` are JSON Schema and are converted
unchanged; `parameters` and `responseSchema` are typed (see schemas.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw

from dragoman.codecs.common_losses import drop_tool_cache_mark
from dragoman.codecs.gemini.hosted_tools import HOSTED
from dragoman.codecs.gemini.profile import FAMILY, GeminiProfile
from dragoman.codecs.gemini.schemas import TYPED, json_schema_of, read_typed, restore_typed
from dragoman.codecs.gemini.wire import (
    ALIASES,
    FunctionCallingConfig,
    FunctionDeclaration,
    GenerationConfig,
    ToolConfig,
    ToolObject,
    choice_keys,
    declaration_keys,
    keep_whole,
    snake_case,
    tool_keys,
)
from dragoman.codecs.google_services import is_any_unknown
from dragoman.codecs.memo import BoundedMemo, DecodedTools, ToolLists, ToolWriter, fingerprint, size_of_tools
from dragoman.codecs.reading import WireReader, WireValue, spliced
from dragoman.codecs.shared_tools import parameters_of_custom, report_provider_tool
from dragoman.ir import AnyTool as Tool
from dragoman.ir import CustomTool, Metadata, ProviderTool, Request, StructuredOutput, ToolChoice, ToolDefinition
from dragoman.ir.notes import MODELLED, RENAMED, SINGLE, Extra, inner_extra
from dragoman.ir.values import encode_json, parse_json, to_raw
from dragoman.losses import LossLog

NULL = Raw(b"null")

# ── definitions ───────────────────────────────────────────────────────────────────────────────────────────────

GROUPS = "~tools"
"""Note on a request: how its tools were distributed over Tool objects."""


class _DeclaredTools(DecodedTools):
    """The tools of a request, and notes on how they were written."""

    __slots__ = ("notes",)

    def __init__(self, tools: tuple[Tool, ...], notes: Extra | None = None) -> None:
        super().__init__(tools)
        self.notes = notes


_Tools: TypeAlias = list[ToolObject] | ToolObject | None
_reader: WireReader[_Tools] = WireReader(
    list[ToolObject] | ToolObject | None,  # type: ignore[arg-type]
    "gemini/vertex request",
    aliases=ALIASES,
    path="$.tools",
)


def _decode_held(raw: Raw) -> _DeclaredTools:
    return _decode_objects(_reader.read(bytes(raw)))


decode_tools = ToolLists(_decode_held).read


def _decode_objects(wires: _Tools) -> _DeclaredTools:
    if wires is None:
        return _DeclaredTools((), {MODELLED + "tools": NULL})
    if isinstance(wires, ToolObject):
        # proto3 JSON allows a repeated field to be given as its single element.
        tools = _decode_objects([wires])
        return _DeclaredTools(tools.tools, {SINGLE + "tools": Raw(b"true"), **(tools.notes or {})})
    return _decode_groups(wires)


def _decode_groups(wires: list[ToolObject]) -> _DeclaredTools:
    """Decode Tool objects; notes keep any arrangement other than one list of functions, then each built-in alone."""
    tools: list[Tool] = []
    groups: list[dict[str, Any]] = []
    for wire in wires:
        group: dict[str, Any] = {}
        if wire.function_declarations is not UNSET:
            group["functions"] = len(wire.function_declarations)
            tools.extend([_decode_tool(declaration) for declaration in wire.function_declarations])
        extra = tool_keys(wire)
        if extra is not None:
            built_in = [key for key, value in extra.items() if not key.startswith("~") and bytes(value) != b"null"]
            tools.extend([_decode_built_in(key, extra[key]) for key in built_in])
            spelling = {key: value for key, value in extra.items() if key not in built_in}
            if built_in:
                group["built_in"] = len(built_in)
            if spelling:
                group["spelling"] = spelling
        groups.append(group)
    is_unusual = not wires or groups != _usual_groups(tools)
    return _DeclaredTools(tuple(tools), {GROUPS: Raw(encode_json(groups))} if is_unusual else None)


def _decode_built_in(key: str, raw: Raw) -> ProviderTool:
    fields: dict[str, Any] = {"name": key} | HOSTED.read_tool({key: parse_json(raw)})
    return ProviderTool(origin=FAMILY, definition=Raw(encode_json({key: raw})), **fields)


def _usual_groups(tools: Sequence[Tool]) -> list[dict[str, int]]:
    built_in = sum(isinstance(tool, ProviderTool) for tool in tools)
    functions = [{"functions": len(tools) - built_in}] if len(tools) > built_in else []
    return [*functions, *({"built_in": 1} for _ in range(built_in))]


def _decode_tool(wire: FunctionDeclaration) -> ToolDefinition:
    description = None if wire.description is UNSET else wire.description
    parameters, typed = wire.parameters_json_schema, wire.parameters
    notes = declaration_keys(wire)
    if notes is None and typed is wire.snake_parameters is UNSET and parameters != NULL:
        return ToolDefinition(wire.name, description, None if parameters is UNSET else parameters)
    notes = notes or {}
    schema: Any = None
    if wire.snake_parameters is not UNSET:
        if parameters is UNSET:
            parameters, notes[RENAMED + PARAMETERS] = wire.snake_parameters, _SNAKE_PARAMETERS
        else:
            notes[snake_case(PARAMETERS)] = wire.snake_parameters
    if parameters == NULL:
        keep_whole(notes, PARAMETERS, NULL, MODELLED)
        parameters = UNSET
    if parameters is not UNSET:
        schema = parameters
        if typed is not UNSET:
            keep_whole(notes, "parameters", typed)
    elif typed is not UNSET:
        if bytes(typed) == b"null":
            keep_whole(notes, "parameters", typed)
        else:
            schema, notes[TYPED] = read_typed(typed)
    return ToolDefinition(wire.name, description, schema, metadata={FAMILY: notes} if notes else None)


PARAMETERS = "parametersJsonSchema"
_SNAKE_PARAMETERS = Raw(encode_json(snake_case(PARAMETERS)))


def encode_tools(request: Request, profile: GeminiProfile, log: LossLog) -> list[WireValue]:
    """Encode the Tool objects. A free choice among some tools is possible only by declaring just those."""
    tools, choice = request.tools, request.tool_choice
    native = request.origin == FAMILY
    notes = None if request.metadata is None else request.metadata.get(FAMILY)
    is_grouped = notes is not None and GROUPS in notes
    chosen = frozenset(choice.names) if choice is not None and choice.mode == "auto" and not native else ()
    if not (is_grouped or chosen) and _writer.can_write(tools):
        written = _writer.write(tools, log)
        return [] if written is None else [{DECLARATIONS: written}]
    functions: list[WireValue] = []
    built_in: list[ProviderTool] = []
    for tool in tools:
        if chosen and tool.name not in chosen and not isinstance(tool, ProviderTool):
            log.degrade(tool, "", f"tool {tool.name!r}", "left out: the choice does not name it")
        elif _is_built_in(tool):
            reason = _why_unknown(tool, profile)  # type: ignore[arg-type]
            if reason is None:
                built_in.append(tool)  # type: ignore[arg-type]
            else:
                log.drop(tool, "", f"tool {tool.name!r}", reason)
        elif (wire := _writer.write_tool(tool, tools, log)) is not None:
            functions.append(wire)
    if built_in and functions and not native and profile.older_models.search(request.model or ""):
        for tool in built_in:
            log.drop(tool, "", f"tool {tool.name!r}", "this model takes no built-in tool beside functions")
        built_in = []
    return _regroup_tools(functions, built_in, parse_json(notes[GROUPS]) if notes is not None and is_grouped else None)


def _why_unknown(tool: ProviderTool, profile: GeminiProfile) -> str | None:
    """Return why this service refuses a tool that Google's other service has."""
    if is_any_unknown(profile.unknown_keys, "Tool", (tool.name,)) or (
        tool.kind is not None and tool.kind not in profile.hosted
    ):
        return "this service has no such tool"
    if tool.blocked_domains and tool.kind == "web_search":
        rule = profile.hosted["web_search"]
        if "blocked_domains" not in rule.options:
            return "this service cannot leave sites out of a search"
    return None


DECLARATIONS = "functionDeclarations"

_entries = msgspec.json.Decoder(dict[str, Raw]).decode


def _regroup_tools(
    functions: list[WireValue], built_in: list[ProviderTool], groups: list[dict[str, Any]] | None
) -> list[WireValue]:
    definitions = [to_raw(tool.definition_held or HOSTED.write_tool(tool)) for tool in built_in]
    if groups is None or not _fits(groups, len(functions), len(definitions)):
        first: list[WireValue] = [{DECLARATIONS: functions}] if functions else []
        return [*first, *definitions]
    objects: list[WireValue] = []
    for group in groups:
        count = group.get("functions", 0)
        body: Any = ToolObject(functions[:count] if "functions" in group else UNSET)
        functions = functions[count:]
        keys: Extra = {key: Raw(encode_json(value)) for key, value in group.get("spelling", {}).items()}
        count = group.get("built_in", 0)
        for definition in definitions[:count]:
            keys |= _entries(definition)
        definitions = definitions[count:]
        objects.append(spliced(body, keys))
    return objects


def _fits(groups: list[dict[str, Any]], functions: int, built_in: int) -> bool:
    counts = [(group.get("functions", 0), group.get("built_in", 0)) for group in groups]
    return (sum(count for count, _ in counts), sum(count for _, count in counts)) == (functions, built_in)


def _encode_tool(tool: Tool, _tools: tuple[Tool, ...], log: LossLog) -> WireValue:
    """Encode a function; None for a tool that another provider runs."""
    if isinstance(tool, ProviderTool):
        return report_provider_tool(tool, log)
    description: Any = UNSET if tool.description is None else tool.description
    if isinstance(tool, CustomTool):
        return FunctionDeclaration(tool.name, description, parameters_of_custom(tool, log))
    if tool.cache is not None:
        drop_tool_cache_mark(tool, log)
    schema = tool.parameters_held
    parameters: Any = UNSET if schema is None or (type(schema) is Raw and bytes(schema) == b"null") else schema
    notes = None if tool.metadata is None else tool.metadata.get(FAMILY)
    if not notes:
        return FunctionDeclaration(tool.name, description, parameters)
    if TYPED not in notes:
        return spliced(FunctionDeclaration(tool.name, description, parameters), notes)
    noted = notes[TYPED]
    typed = noted if parameters is UNSET else restore_typed(schema, noted)
    if typed is UNSET:
        return spliced(FunctionDeclaration(tool.name, description, parameters), notes)
    return spliced(FunctionDeclaration(tool.name, description, UNSET, typed), notes)


def _is_built_in(tool: Tool) -> bool:
    return isinstance(tool, ProviderTool) and (tool.origin == FAMILY or HOSTED.write_tool(tool) is not None)


def _has_built_in(tools: tuple[Tool, ...]) -> bool:
    return any(map(_is_built_in, tools))


_writer = ToolWriter(_encode_tool, _has_built_in)


# ── choice ────────────────────────────────────────────────────────────────────────────────────────────────────

_MODES = ("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")
_DECODE_MODE: dict[str, Any] = {"AUTO": "auto", "ANY": "required", "NONE": "none"}
_ENCODE_MODE = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
_CHOICES: dict[Any, ToolChoice] = {spelled: ToolChoice(mode) for spelled, mode in _DECODE_MODE.items()}


def decode_tool_choice(wire: FunctionCallingConfig) -> ToolChoice:
    """Decode the tool choice. VALIDATED is a free choice with checked calls: auto, and the rest is kept as a note.

    So is every word that is not known.
    """
    extra, spelled = choice_keys(wire), wire.mode
    if extra is None and wire.allowed_function_names is UNSET and (known := _CHOICES.get(spelled)) is not None:
        return known
    word = _MODES[spelled] if isinstance(spelled, int) and 0 <= spelled < len(_MODES) else str(spelled).upper()
    if spelled is UNSET:
        word = _MODES[0]
    mode = _DECODE_MODE.get(word, "auto")
    names = () if wire.allowed_function_names is UNSET else tuple(wire.allowed_function_names)
    notes: Extra = extra or {}
    if spelled != _ENCODE_MODE[mode]:
        key = "~mode" if word in _DECODE_MODE or word == _MODES[0] else "mode"
        notes[key] = NULL if spelled is UNSET else Raw(encode_json(spelled))
    if wire.allowed_function_names == []:
        notes["~names"] = Raw(b"[]")
    return ToolChoice(mode, names, {FAMILY: notes} if notes else None)


def encode_tool_config(request: Request, profile: GeminiProfile, log: LossLog) -> WireValue:
    """Return the toolConfig, or UNSET."""
    if request.parallel_tool_calls is False:
        log.drop(request, "parallel_tool_calls", "one call at a time", "this API has no such switch")
    functions, built_in, strict = _kinds(request.tools) if request.tools else (False, False, False)
    notes = None if request.metadata is None else request.metadata.get(FAMILY)
    if notes is None and not request.tools and request.tool_choice is None:
        return UNSET
    native = request.origin == FAMILY
    config = encode_tool_choice(request, log, functions=functions, strict=strict)
    inner = None if notes is None else inner_extra(notes, "toolConfig")
    if functions and built_in and not native and _needs_flag(request.model, profile):
        log.invent(request, "tools", "includeServerSideToolInvocations", "built-in tools beside functions need it")
        inner = {**(inner or {}), "includeServerSideToolInvocations": Raw(b"true")}
    if inner is not None:
        return spliced(ToolConfig(config), inner)
    return UNSET if config is UNSET else ToolConfig(config)


def _kinds(tools: tuple[Tool, ...]) -> tuple[bool, bool, bool]:
    """Return whether there are functions, tools that Google runs, and functions with checked arguments."""
    known = _known_kinds.get(id(tools))
    if known is not None and known[0][0] is tools:
        return known[0][1]
    functions = [tool for tool in tools if not isinstance(tool, ProviderTool)]
    is_strict = any(type(tool) is ToolDefinition and tool.strict is True for tool in functions)
    kinds = (bool(functions), _has_built_in(tools), is_strict)
    if tools and _known_kinds.admits(fingerprint(tools)):
        _known_kinds.put(id(tools), (tools, kinds), size_of_tools(tools))
    return kinds


_known_kinds: BoundedMemo[int, tuple[tuple[Tool, ...], tuple[bool, bool, bool]]] = BoundedMemo()


def _needs_flag(model: str | None, profile: GeminiProfile) -> bool:
    return profile.server_calls_flag and model is not None and profile.older_models.search(model) is None


def encode_tool_choice(request: Request, log: LossLog, *, functions: bool, strict: bool) -> WireValue:
    """Return the functionCallingConfig, or UNSET; only for requests that declare functions or came with one."""
    choice = request.tool_choice
    if choice is None:
        return _VALIDATED if strict else UNSET
    native = request.origin == FAMILY
    if not functions and not native:
        if choice.mode == "required" or choice.names:
            log.drop(request, "tool_choice", "tool choice", "there are no functions to choose from")
        return UNSET
    notes = None if choice.metadata is None else choice.metadata.get(FAMILY)
    if notes:
        return _encode_noted_choice(choice, notes)
    mode = _ENCODE_MODE[choice.mode]
    if choice.mode == "auto" and not native:
        # VALIDATED would let a forced choice answer in text; a set of names means fewer declarations, see
        # encode_tools.
        return _VALIDATED if strict else FunctionCallingConfig(mode)
    return FunctionCallingConfig(mode, list(choice.names) if choice.names else UNSET)


_VALIDATED = FunctionCallingConfig("VALIDATED")


def _encode_noted_choice(choice: ToolChoice, notes: Extra) -> WireValue:
    mode: Any = _ENCODE_MODE[choice.mode]
    noted = notes.get("mode", notes.get("~mode"))
    if noted is not None:
        spelled = parse_json(noted)
        mode = UNSET if spelled is None else spelled
    names: Any = list(choice.names) if choice.names or "~names" in notes else UNSET
    # A null mode is kept: the struct omits it.
    further = {key: note for key, note in notes.items() if key != "mode" or bytes(note) == b"null"}
    return spliced(FunctionCallingConfig(mode, names), further)


# ── structured output ─────────────────────────────────────────────────────────────────────────────────────────

JSON = "application/json"


def decode_output(config: GenerationConfig, notes: Extra) -> StructuredOutput | None:
    """Decode the output format in the settings; one that is not JSON is kept in `notes`, unchanged."""
    if (
        config.response_mime_type
        is config.response_json_schema
        is config.response_schema
        is config.response_format
        is UNSET
    ):
        return None
    if config.response_format is not UNSET:
        output = _read_format(config.response_format)
        is_alone = config.response_mime_type is config.response_json_schema is config.response_schema is UNSET
        if output is not None and is_alone:
            return output
        keep_whole(notes, "responseFormat", config.response_format)
    mime, schema, typed = config.response_mime_type, config.response_json_schema, config.response_schema
    given = typed if schema is UNSET else schema
    if mime == JSON and given is UNSET:
        return StructuredOutput("json")
    if mime not in {JSON, UNSET} or given is UNSET or bytes(given) == b"null":
        _keep_unread(config, notes)
        return None
    own: Extra = {"~mime": NULL} if mime is UNSET else {}
    if schema is UNSET:
        parsed, own[TYPED] = read_typed(given)
        return StructuredOutput("schema", parsed, metadata={FAMILY: own})
    if typed is not UNSET:
        keep_whole(notes, "responseSchema", typed)
    return StructuredOutput("schema", schema, metadata={FAMILY: own} if own else None)


def _keep_unread(config: GenerationConfig, notes: Extra) -> None:
    mime = config.response_mime_type
    if mime is not UNSET:
        # text/plain is the default, stated explicitly.
        keep_whole(notes, "responseMimeType", Raw(encode_json(mime)), MODELLED if mime == "text/plain" else "")
    if config.response_json_schema is not UNSET:
        keep_whole(notes, "responseJsonSchema", config.response_json_schema)
    if config.response_schema is not UNSET:
        keep_whole(notes, "responseSchema", config.response_schema)


def _read_format(raw: Raw) -> StructuredOutput | None:
    """Read the Vertex v1 form: [{"text": {"mimeType": "APPLICATION_JSON", "schema": …}}]."""
    parsed = parse_json(raw)
    entries = parsed if isinstance(parsed, list) else [parsed]
    text = entries[0].get("text") if len(entries) == 1 and isinstance(entries[0], dict) else None
    if not isinstance(text, dict) or text.get("mimeType", text.get("mime_type")) != "APPLICATION_JSON":
        return None
    metadata: Metadata = {FAMILY: {"~format": raw}}
    if "schema" not in text:
        return StructuredOutput("json", metadata=metadata)
    return StructuredOutput("schema", json_schema_of(text["schema"]), metadata=metadata)


_ANNOTATIONS = {"name": "title", "description": "description"}


def _annotate_schema(output: StructuredOutput, request: Request, log: LossLog) -> WireValue:
    """Return the schema with its name and description as annotations of its root, where the model reads them."""
    schema = output.schema
    added = {}
    for field, key in _ANNOTATIONS.items():
        value = getattr(output, field)
        if value is None or (isinstance(schema, dict) and schema.get(key) == value):
            continue
        if isinstance(schema, dict) and key not in schema:
            added[key] = value
        else:
            log.drop(request, f"output.{field}", f"{field} of the schema", f"the schema has no room for its {key}")
    return {**schema, **added} if added else output.schema_held


OutputFields: TypeAlias = tuple[WireValue, WireValue, WireValue, WireValue]
"""responseMimeType, responseJsonSchema, responseSchema, responseFormat."""


def encode_output(request: Request, profile: GeminiProfile, log: LossLog) -> OutputFields:
    output = request.output
    if output is None:
        return UNSET, UNSET, UNSET, UNSET
    if request.origin != FAMILY and request.tools and profile.older_models.search(request.model or ""):
        log.drop(request, "output", "structured output", "this model gives no JSON answer beside tools")
        return UNSET, UNSET, UNSET, UNSET
    notes: Extra = (output.metadata or {}).get(FAMILY, {})
    is_known = not is_any_unknown(profile.unknown_keys, "GenerationConfig", ("responseFormat",))
    if "~format" in notes and is_known and _read_format(notes["~format"]) == output:
        return UNSET, UNSET, UNSET, notes["~format"]
    mime: Any = UNSET if "~mime" in notes else JSON
    schema = output.schema_held
    if output.kind == "json" or schema is None:
        for field in ("name", "description"):
            if getattr(output, field) is not None:
                log.drop(request, f"output.{field}", f"{field} of the schema", "this API has no such field")
        return mime, UNSET, UNSET, UNSET
    if not output.name is output.description is None:
        return mime, _annotate_schema(output, request, log), UNSET, UNSET
    typed = restore_typed(schema, notes[TYPED]) if TYPED in notes else UNSET
    return (mime, schema, UNSET, UNSET) if typed is UNSET else (mime, UNSET, typed, UNSET)
