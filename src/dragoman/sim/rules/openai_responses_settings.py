"""The rules on everything but `input`: tools, schemas, text format, and what a model does not take."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from dragoman.sim.rules.common import (
    JsonObject,
    Path,
    Violation,
    object_at,
    objects_at,
    text_at,
    texts_at,
    types_of,
    walk_schema,
)
from dragoman.sim.rules.openai_chat import (
    LONGEST_METADATA_KEY,
    LOOK_AROUND,
    NOT_IN_STRICT,
    STRICT_DEPTH,
    STRICT_ENUM_VALUES,
    STRICT_FORMATS,
    STRICT_PROPERTIES,
    NamedSchema,
    bad_schema,
    itemless_arrays,
    stream_options_need_stream,
)
from dragoman.sim.rules.openai_request import Request, Rule, refuse
from dragoman.sim.rules.openai_responses_request import items_of, kind_of, tools_of
from dragoman.sim.rules.openai_responses_shapes import EFFORTS, with_and

# --- tools --------------------------------------------------------------------------------------------------------


def chosen_tools_exist(request: Request) -> Iterator[Violation]:
    declared = {(text_at(tool, "type"), _name(tool)) for _, tool in tools_of(request)}
    choice = object_at(request.body, "tool_choice")
    chosen: list[tuple[Path, JsonObject]] = [(("tool_choice",), choice)] if choice else []
    if choice.get("type") == "allowed_tools":
        chosen = [(("tool_choice", "tools", index), tool) for index, tool in enumerate(objects_at(choice, "tools"))]
    for path, tool in chosen:
        kind = text_at(tool, "type")
        if kind in ("function", "custom", "mcp") and (kind, _name(tool)) not in declared:
            message = f"Tool choice '{_name(tool)}' not found in 'tools' parameter."
            yield refuse(path, message)


def _name(tool: JsonObject) -> str:
    return text_at(tool, "server_label" if tool.get("type") == "mcp" else "name")


def required_choice_has_tools(request: Request) -> Iterator[Violation]:
    if request.body.get("tool_choice") == "required" and not any(tools_of(request)):
        message = "Tool choice 'required' must be specified with 'tools' parameter."
        yield refuse(("tool_choice",), message)


def deferred_tools_can_be_found(request: Request) -> Iterator[Violation]:
    tools = list(tools_of(request))
    if any(tool.get("type") == "tool_search" for _, tool in tools):
        return
    for path, tool in tools:
        # What a search has brought back is no longer deferred, whatever its definition says.
        if tool.get("defer_loading") is True and path[0] == "tools":
            message = "Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search."
            yield refuse((*path, "defer_loading"), message, "invalid_value")


def client_searches_are_described(request: Request) -> Iterator[Violation]:
    for path, tool in tools_of(request):
        if tool.get("type") != "tool_search" or tool.get("execution") != "client":
            continue
        if not tool.get("description"):
            message = "Missing required parameter: 'tools.description'. Client tool search needs a description."
            yield refuse((*path, "description"), message, "missing_required_parameter")


def mcp_servers_have_an_address(request: Request) -> Iterator[Violation]:
    ways = ("server_url", "connector_id", "tunnel_id")
    for path, tool in tools_of(request):
        if tool.get("type") == "mcp" and sum(way in tool for way in ways) != 1:
            message = f"Exactly one of {', '.join(ways)} must be provided for an MCP tool."
            yield refuse(path, message, "invalid_value")


def calls_name_their_namespace(request: Request) -> Iterator[Violation]:
    spaces = {
        text_at(member, "name")
        for tool in objects_at(request.body, "tools")
        if tool.get("type") == "namespace"
        for member in objects_at(tool, "tools")
    }
    default = {text_at(tool, "name") for tool in objects_at(request.body, "tools") if tool.get("type") != "namespace"}
    for index, item in items_of(request):
        kind = kind_of(item)
        if kind not in ("function_call", "custom_tool_call") or item.get("namespace") is not None:
            continue
        name = text_at(item, "name")
        if name in spaces - default:
            message = f"Missing namespace for {kind} '{name}'. It does not exist in the default namespace."
            yield refuse(("input", index), message)


# --- schemas ------------------------------------------------------------------------------------------------------


def schemas_of(request: Request) -> Iterator[NamedSchema]:
    for path, tool in tools_of(request):
        if tool.get("type") == "function" and isinstance(tool.get("parameters"), dict):
            title = f"function '{text_at(tool, 'name')}'"
            schema, strict = object_at(tool, "parameters"), tool.get("strict") is True
            yield NamedSchema((*path, "parameters"), title, "invalid_function_parameters", schema, strict)
    form = object_at(request.body, "text", "format")
    if form.get("type") == "json_schema":
        title = f"response_format '{text_at(form, 'name')}'"
        path = ("text", "format", "schema")
        yield NamedSchema(path, title, "invalid_json_schema", object_at(form, "schema"), form.get("strict") is True)


def schemas_describe_objects(request: Request) -> Iterator[Violation]:
    for named in schemas_of(request):
        types = types_of(named.schema)
        # An empty schema describes nothing, and passes (recorded for functions that take nothing).
        if types != {"object"} and named.schema:
            got = f'type: "{min(types)}"' if types else "type: None"
            yield bad_schema(named, named.path, f"schema must be a JSON Schema of 'type: \"object\"', got '{got}'.")


def arrays_have_items(request: Request) -> Iterator[Violation]:
    return itemless_arrays(schemas_of(request))


def _open_object(node: JsonObject) -> str | None:
    if "object" in types_of(node) and node.get("additionalProperties") is not False:
        return "'additionalProperties' is required to be supplied and to be false."
    return None


def _optional_property(node: JsonObject) -> str | None:
    missing = object_at(node, "properties").keys() - set(texts_at(node, "required"))
    if not missing:
        return None
    return (
        "'required' is required to be supplied and to be an array including every key in properties. "
        f"Missing '{min(missing)}'."
    )


def _unknown_keyword(node: JsonObject) -> str | None:
    found = next((keyword for keyword in NOT_IN_STRICT if keyword in node), None)
    return f"'{found}' is not permitted." if found else None


def _unknown_format(node: JsonObject) -> str | None:
    """Formats of numbers are not checked (`uint8`, `double`: recording 3d1698344fce)."""
    form = text_at(node, "format")
    if not form or form in STRICT_FORMATS or "string" not in types_of(node):
        return None
    return f"'{form}' is not a valid format."


def _look_around(node: JsonObject) -> str | None:
    return "'pattern' with look-around is not permitted." if LOOK_AROUND.search(text_at(node, "pattern")) else None


STRICT_COMPLAINTS: tuple[Callable[[JsonObject], str | None], ...] = (
    _open_object,
    _optional_property,
    _unknown_keyword,
    _unknown_format,
    _look_around,
)


def strict_schemas_are_strict(request: Request) -> Iterator[Violation]:
    for named in schemas_of(request):
        for path, node in walk_schema(named.schema, named.path) if named.strict else ():
            for reason in STRICT_COMPLAINTS:
                if found := reason(node):
                    yield bad_schema(named, path, found)
        if named.strict and "anyOf" in named.schema:
            yield bad_schema(named, named.path, "the root must be an object, not 'anyOf'.")


def strict_schemas_are_small(request: Request) -> Iterator[Violation]:
    for named in schemas_of(request):
        nodes = list(walk_schema(named.schema, named.path)) if named.strict else []
        enums = [node["enum"] for _, node in nodes if isinstance(node.get("enum"), list)]
        depths = [sum(step in ("properties", "items") for step in path[len(named.path) :]) for path, _ in nodes]
        for count, limit, what in (
            (sum(len(object_at(node, "properties")) for _, node in nodes), STRICT_PROPERTIES, "object properties"),
            (sum(len(enum) for enum in enums if isinstance(enum, list)), STRICT_ENUM_VALUES, "enum values"),
            (max(depths, default=0), STRICT_DEPTH, "levels of nesting"),
        ):
            if count > limit:
                yield bad_schema(named, named.path, f"{count} {what} exceed the limit of {limit}.")


# --- settings -----------------------------------------------------------------------------------------------------


def metadata_keys_are_short(request: Request) -> Iterator[Violation]:
    for key in object_at(request.body, "metadata"):
        if len(key) > LONGEST_METADATA_KEY:
            message = (
                f"Invalid 'metadata': key too long. Expected a key with maximum length {LONGEST_METADATA_KEY}, "
                f"but got a key with length {len(key)} instead."
            )
            yield refuse(("metadata", key), message, "string_above_max_length")


def json_mode_is_announced(request: Request) -> Iterator[Violation]:
    """`instructions` do not count."""
    if text_at(request.body, "text", "format", "type") != "json_object":
        return
    # Stored parts of the conversation may contain it.
    if request.body.get("previous_response_id") is not None or request.body.get("conversation") is not None:
        return
    if not any("json" in text.lower() for text in _all_texts(request)):
        message = (
            "Response input messages must contain the word 'json' in some form "
            "to use 'text.format' of type 'json_object'."
        )
        yield refuse(("input",), message)


def _all_texts(request: Request) -> Iterator[str]:
    yield text_at(request.body, "input")
    for _, item in items_of(request):
        yield text_at(item, "content")
        for part in objects_at(item, "content"):
            yield text_at(part, "text")


# --- models -------------------------------------------------------------------------------------------------------

NOT_ON_RESPONSES = re.compile(r"o1-mini|o1-preview|text-embedding-|gpt-3\.5-turbo-instruct")
DEEP_RESEARCH_TOOLS = ("web_search_preview", "code_interpreter", "mcp", "file_search")
# Setting them to their defaults is accepted, as on Chat.
SAMPLING_DEFAULTS: dict[str, object] = {"temperature": 1, "top_p": 1, "top_logprobs": None}

_CLASSIC = ("low", "medium", "high")
_SINCE_5_1 = ("none", *_CLASSIC)
# The first pattern that matches wins; a model that matches none takes every effort, as far as we know.
EFFORTS_OF_MODELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"o\d", _CLASSIC),
    (r"gpt-5(-mini|-nano)?(-\d{4}.*)?$", ("minimal", *_CLASSIC)),
    (r"gpt-5-codex", _CLASSIC),
    (r"gpt-5\.1(-\d{4}.*)?$", _SINCE_5_1),
    (r"gpt-5\.2(-\d{4}.*)?$", (*_SINCE_5_1, "xhigh")),
    (r"gpt-5\.\d", tuple(effort for effort in EFFORTS if effort != "minimal")),
)


def model_is_named(request: Request) -> Iterator[Violation]:
    # A stored prompt brings its model with it (9 recordings, e.g. 0e4c35c02d07).
    if not request.model and request.body.get("prompt") is None:
        yield refuse(("model",), "Missing required parameter: 'model'.", "missing_required_parameter")


def model_responds(request: Request) -> Iterator[Violation]:
    if NOT_ON_RESPONSES.match(request.model):
        message = f"The requested model '{request.model}' is not supported with the Responses API."
        yield refuse(("model",), message, "model_not_found")


def model_reasons(request: Request) -> Iterator[Violation]:
    if not request.traits or request.traits.reasons or "-chat" in request.model.removeprefix("gpt-5-chat"):
        return
    for name in ("effort", "summary"):
        if object_at(request.body, "reasoning").get(name) is not None:
            message = f"Unsupported parameter: 'reasoning.{name}' is not supported with this model."
            yield refuse(("reasoning", name), message, "unsupported_parameter")


def model_supports_effort(request: Request) -> Iterator[Violation]:
    effort = text_at(request.body, "reasoning", "effort")
    known = next((efforts for pattern, efforts in EFFORTS_OF_MODELS if re.match(pattern, request.model)), EFFORTS)
    if effort and effort not in known:
        values = with_and(", ".join(f"'{value}'" for value in known))
        message = (
            f"Unsupported value: '{effort}' is not supported with the '{request.model}' model. "
            f"Supported values are: {values}."
        )
        yield refuse(("reasoning", "effort"), message, "unsupported_value")


def reasoning_fixes_sampling(request: Request) -> Iterator[Violation]:
    traits = request.traits
    effort = object_at(request.body, "reasoning").get("effort")
    if not traits or not traits.reasons or effort == "none":
        return
    if traits.reasons_unless_asked_not_to and effort is None:
        return
    for name, default in SAMPLING_DEFAULTS.items():
        value = request.body.get(name)
        if value is not None and value != default:
            # Without a code, unlike on Chat.
            yield refuse((name,), f"Unsupported parameter: '{name}' is not supported with this model.")


def model_encrypts_reasoning(request: Request) -> Iterator[Violation]:
    if not request.traits or request.traits.reasons or not request.model.startswith(("gpt-4", "gpt-3")):
        return
    if "reasoning.encrypted_content" in texts_at(request.body, "include"):
        yield refuse(("include",), "Encrypted content is not supported with this model.")


def deep_research_takes_its_tools(request: Request) -> Iterator[Violation]:
    if "deep-research" not in request.model:
        return
    if any(tool.get("type") not in DEEP_RESEARCH_TOOLS for tool in objects_at(request.body, "tools")):
        names = with_and(", ".join(f"'{name}'" for name in DEEP_RESEARCH_TOOLS))
        yield refuse(("tools",), f"Deep research models only support the {names} tools.")


RULES: tuple[Rule, ...] = (
    model_is_named,
    model_responds,
    chosen_tools_exist,
    required_choice_has_tools,
    deferred_tools_can_be_found,
    client_searches_are_described,
    mcp_servers_have_an_address,
    calls_name_their_namespace,
    schemas_describe_objects,
    arrays_have_items,
    strict_schemas_are_strict,
    strict_schemas_are_small,
    stream_options_need_stream,
    metadata_keys_are_short,
    json_mode_is_announced,
    model_reasons,
    model_supports_effort,
    reasoning_fixes_sampling,
    model_encrypts_reasoning,
    deep_research_takes_its_tools,
)
