"""Rules about tools, typed schemas, structured output, thinking and the other settings of a request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dragoman.sim.rules.common import (
    JsonObject,
    Path,
    Violation,
    number_at,
    object_at,
    objects_at,
    text_at,
    texts_at,
)
from dragoman.sim.rules.gemini_request import Request, Rule, refuse
from dragoman.sim.rules.gemini_shapes import camel

# --- tools --------------------------------------------------------------------------------------------------------


def tools_are_not_empty(request: Request) -> Iterator[Violation]:
    for index, tool in enumerate(objects_at(request.body, "tools")):
        if not tool and request.backend.empty_tool_refused:
            yield refuse(("tools", index), "* GenerateContentRequest.{where}: one of tool types must be specified.")


def declarations_differ(request: Request) -> Iterator[Violation]:
    seen: set[str] = set()
    for path, declaration in request.declarations:
        name = text_at(declaration, "name")
        if name in seen:
            yield refuse((*path, "name"), f"Duplicate function declaration found: {name}")
        seen.add(name)


def one_schema_per_purpose(request: Request) -> Iterator[Violation]:
    twins = (("parameters", "parametersJsonSchema"), ("response", "responseJsonSchema"))
    for path, declaration in request.declarations:
        for typed, free in twins:
            if typed in declaration and free in declaration:
                yield refuse((*path, free), f"Only one of `{typed}` and `{free}` may be set at '{{where}}'.")
    if "responseSchema" in request.settings and "responseJsonSchema" in request.settings:
        where = ("generationConfig", "responseJsonSchema")
        yield refuse(where, "Only one of `response_schema` and `response_json_schema` may be set.")


def calling_config_needs_functions(request: Request) -> Iterator[Violation]:
    """Built-in tools count (recordings eedd2c29bda3, 513671101049)."""
    configured = object_at(request.body, "toolConfig", "functionCallingConfig")
    if configured and not any(request.declarations) and not request.built_in_tools:
        where = ("toolConfig", "functionCallingConfig")
        yield refuse(where, "Function calling config is set without function_declarations.")


def allowed_names_fit(request: Request) -> Iterator[Violation]:
    config = object_at(request.body, "toolConfig", "functionCallingConfig")
    allowed = texts_at(config, "allowedFunctionNames")
    where = ("toolConfig", "functionCallingConfig", "allowedFunctionNames")
    if allowed and config.get("mode", "AUTO") in ("AUTO", "NONE", "MODE_UNSPECIFIED"):
        yield refuse(where, "Allowed function names should only be set when function calling mode is ANY or VALIDATED.")
    declared = {text_at(declaration, "name") for _, declaration in request.declarations}
    for name in allowed:
        if declared and name not in declared:
            yield refuse(where, f"Allowed function name '{name}' is not among the function_declarations.")


def built_in_tools_mix(request: Request) -> Iterator[Violation]:
    if not request.built_in_tools or not any(request.declarations):
        return
    is_enabled = object_at(request.body, "toolConfig").get("includeServerSideToolInvocations") is True
    if request.below(3):
        yield refuse(("tools",), "Built-in tools and function calling cannot be combined in the same request.")
    elif request.at_least(3) and request.backend.mixing_needs_flag and not is_enabled:
        message = "Please enable tool_config.include_server_side_tool_invocations to use built-in tools with functions."
        yield refuse(("toolConfig",), message)


def server_invocations_are_supported(request: Request) -> Iterator[Violation]:
    where = ("toolConfig", "includeServerSideToolInvocations")
    if object_at(request.body, "toolConfig").get("includeServerSideToolInvocations") is True and request.below(3):
        yield refuse(where, "Tool call context circulation is not enabled for this model.")


# --- typed schemas ------------------------------------------------------------------------------------------------

SCHEMA_TYPES = {"TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}
TEXT_KEYWORDS = ("format", "title", "description", "pattern")
LIST_KEYWORDS = ("enum", "required", "propertyOrdering", "anyOf")
OBJECT_KEYWORDS = ("items", "properties", "defs")
COUNT_KEYWORDS = ("minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength")


def typed_schemas(request: Request) -> Iterator[tuple[Path, object]]:
    for path, declaration in request.declarations:
        for name in ("parameters", "response"):
            if name in declaration:
                yield (*path, name), declaration[name]
    if "responseSchema" in request.settings:
        yield ("generationConfig", "responseSchema"), request.settings["responseSchema"]


def schema_nodes(request: Request) -> Iterator[tuple[Path, JsonObject]]:
    """Every node of every typed schema, keys in canonical spelling, nulls gone."""
    waiting = list(typed_schemas(request))
    while waiting:
        path, raw = waiting.pop()
        if not isinstance(raw, Mapping):
            continue
        node = {camel(key): value for key, value in raw.items() if value is not None}
        yield path, node
        for keyword in ("properties", "defs"):
            waiting.extend(((*path, keyword, name), child) for name, child in object_at(node, keyword).items())
        waiting.extend(((*path, "anyOf", index), child) for index, child in enumerate(objects_at(node, "anyOf")))
        waiting.extend(
            ((*path, keyword), node[keyword]) for keyword in ("items", "additionalProperties") if keyword in node
        )


def type_of(node: JsonObject) -> str:
    return text_at(node, "type").upper()


def schemas_use_known_keywords(request: Request) -> Iterator[Violation]:
    for path, node in schema_nodes(request):
        for keyword in node:
            if keyword not in request.backend.schema_keywords:
                message = (
                    f"Invalid JSON payload received. Unknown name \"{keyword}\" at '{{where}}': Cannot find field."
                )
                yield refuse(path, message)


def schema_types_are_single(request: Request) -> Iterator[Violation]:
    for path, node in schema_nodes(request):
        declared = node.get("type")
        if isinstance(declared, list):
            yield refuse((*path, "type"), "Proto field is not repeating, cannot start list at '{where}'.")
        elif isinstance(declared, str) and declared.upper() not in SCHEMA_TYPES:
            yield refuse((*path, "type"), f"Invalid value at '{{where}}' (TYPE_ENUM), \"{declared[:40]}\"")


def schema_keywords_are_typed(request: Request) -> Iterator[Violation]:
    kinds: tuple[tuple[tuple[str, ...], tuple[type, ...]], ...] = (
        (TEXT_KEYWORDS, (str,)),
        (LIST_KEYWORDS, (list,)),
        (OBJECT_KEYWORDS, (dict,)),
        (COUNT_KEYWORDS, (int, float, str)),
        (("minimum", "maximum"), (int, float)),
        (("nullable",), (bool,)),
    )
    for path, node in schema_nodes(request):
        for keywords, types in kinds:
            for keyword in keywords:
                value = node.get(keyword)
                wrong_boolean = isinstance(value, bool) and bool not in types
                if keyword in node and (wrong_boolean or not isinstance(value, types)):
                    yield refuse((*path, keyword), "Invalid value at '{where}'.")


def arrays_have_items(request: Request) -> Iterator[Violation]:
    for path, node in schema_nodes(request):
        if type_of(node) == "ARRAY" and "items" not in node:
            yield refuse((*path, "items"), "* GenerateContentRequest.{where}: missing field.")


def required_properties_exist(request: Request) -> Iterator[Violation]:
    for path, node in schema_nodes(request):
        properties = object_at(node, "properties")
        for index, name in enumerate(texts_at(node, "required")):
            if name not in properties:
                message = "* GenerateContentRequest.{where}: property is not defined"
                yield refuse((*path, "required", index), message)


def enums_are_strings(request: Request) -> Iterator[Violation]:
    for path, node in schema_nodes(request):
        enum = node.get("enum")
        if not isinstance(enum, list):
            continue
        if not all(isinstance(value, str) for value in enum):
            yield refuse((*path, "enum"), "Invalid value at '{where}' (TYPE_STRING).")
        elif request.backend.name == "gemini" and type_of(node) not in ("STRING", ""):
            yield refuse((*path, "enum"), "* GenerateContentRequest.{where}: only allowed for STRING type")


def any_of_stands_alone(request: Request) -> Iterator[Violation]:
    if not request.backend.any_of_stands_alone:
        return
    for path, node in schema_nodes(request):
        if "anyOf" in node and len(node) > 1:
            message = (
                "Unable to submit request because a schema specified other fields alongside any_of. "
                "When using any_of, it must be the only field set."
            )
            yield refuse(path, message)


def open_objects_are_expressible(request: Request) -> Iterator[Violation]:
    """The developer API has no `additionalProperties`; `false`, its meaning anyway, passes."""
    for path, node in schema_nodes(request):
        if request.backend.name == "gemini" and node.get("additionalProperties") not in (None, False):
            message = (
                "Invalid JSON payload received. Unknown name \"additional_properties\" at '{where}': Cannot find field."
            )
            yield refuse(path, message)


# --- output -------------------------------------------------------------------------------------------------------

JSON = "application/json"


def wants_schema(request: Request) -> bool:
    return "responseSchema" in request.settings or "responseJsonSchema" in request.settings


def schemas_need_json(request: Request) -> Iterator[Violation]:
    mime = text_at(request.settings, "responseMimeType") or "text/plain"
    if wants_schema(request) and mime == "text/plain":
        where = ("generationConfig", "responseMimeType")
        yield refuse(
            where, "Response schema is only supported with response mime type application/json or text/x.enum."
        )


def json_excludes_tools(request: Request) -> Iterator[Violation]:
    """Before Gemini 3, tools and JSON answers exclude each other."""
    if text_at(request.settings, "responseMimeType") != JSON or not request.below(3):
        return
    where = ("generationConfig", "responseMimeType")
    if any(request.declarations):
        yield refuse(where, f"Function calling with a response mime type: '{JSON}' is unsupported")
    elif request.built_in_tools:
        yield refuse(where, f"Tool use with a response mime type: '{JSON}' is unsupported")


def image_models_write_no_json(request: Request) -> Iterator[Violation]:
    if text_at(request.settings, "responseMimeType") == JSON and request.below(3) and "image" in request.model:
        where = ("generationConfig", "responseMimeType")
        yield refuse(where, f"JSON mode is not enabled for models/{request.model}")


def speech_models_speak(request: Request) -> Iterator[Violation]:
    modalities = [modality.upper() for modality in texts_at(request.settings, "responseModalities")] or ["TEXT"]
    if request.model.endswith("-tts") and modalities != ["AUDIO"]:
        where = ("generationConfig", "responseModalities")
        requested = ", ".join(modalities)
        yield refuse(
            where, f"The requested combination of response modalities ({requested}) is not supported by the model."
        )


def logprobs_are_asked_for(request: Request) -> Iterator[Violation]:
    if "logprobs" in request.settings and request.settings.get("responseLogprobs") is not True:
        yield refuse(("generationConfig", "logprobs"), "logprobs requires response_logprobs to be true.")


def one_candidate(request: Request) -> Iterator[Violation]:
    if number_at(request.settings, "candidateCount") > 1 and request.at_least(3):
        yield refuse(("generationConfig", "candidateCount"), "Multiple candidates is not enabled for this model")


# --- thinking -----------------------------------------------------------------------------------------------------

NEVER_THINKING = re.compile(r"^gemma-[123]|gemini-2\.5-flash(-preview)?-(image|tts)|gemini-2\.5-pro-preview-tts")
# Models whose thinking cannot go down to MINIMAL.
NEVER_MINIMAL = re.compile(r"gemini-3(\.1)?-pro|gemini-3\.[78]-flash|gemini-4")
LEAST_PRO_BUDGET = 128


def thinking_is_supported(request: Request) -> Iterator[Violation]:
    config = object_at(request.settings, "thinkingConfig")
    asks = number_at(config, "thinkingBudget") > 0 or config.get("includeThoughts") is True or "thinkingLevel" in config
    thinks_never = NEVER_THINKING.search(request.model) or (request.below(2, 5) and "thinking" not in request.model)
    if asks and thinks_never:
        yield refuse(("generationConfig", "thinkingConfig"), "Thinking is not enabled for this model.")


def level_or_budget(request: Request) -> Iterator[Violation]:
    config = object_at(request.settings, "thinkingConfig")
    if "thinkingLevel" in config and "thinkingBudget" in config:
        where = ("generationConfig", "thinkingConfig")
        yield refuse(where, "You can only set only one of thinking budget and thinking level.")


def level_is_supported(request: Request) -> Iterator[Violation]:
    level = text_at(request.settings, "thinkingConfig", "thinkingLevel")
    where = ("generationConfig", "thinkingConfig", "thinkingLevel")
    if level and request.below(3):
        yield refuse(where, "Thinking level is not supported for this model.")
    elif level == "MINIMAL" and NEVER_MINIMAL.search(request.model):
        yield refuse(where, "Thinking level MINIMAL is not supported for this model.")


def budget_fits(request: Request) -> Iterator[Violation]:
    config = object_at(request.settings, "thinkingConfig")
    budget = number_at(config, "thinkingBudget")
    if "thinkingBudget" not in config or budget == -1 or not re.search(r"gemini-2\.5-pro", request.model):
        return
    if budget < LEAST_PRO_BUDGET:
        where = ("generationConfig", "thinkingConfig", "thinkingBudget")
        yield refuse(
            where, f"The thinking budget {budget:g} is invalid. Please choose a value of at least {LEAST_PRO_BUDGET}."
        )


# --- the rest -----------------------------------------------------------------------------------------------------


def cached_content_excludes_settings(request: Request) -> Iterator[Violation]:
    if not request.body.get("cachedContent"):
        return
    for name in ("systemInstruction", "tools", "toolConfig"):
        if request.body.get(name):
            message = (
                "CachedContent can not be used with GenerateContent request setting system_instruction, tools or "
                "tool_config."
            )
            yield refuse((name,), message)


def cached_content_is_supported(request: Request) -> Iterator[Violation]:
    if request.body.get("cachedContent") and request.at_least(4) and "argon" in request.model:
        yield refuse(("cachedContent",), "Explicit caching is not supported for this model.")


def model_accepts_instructions(request: Request) -> Iterator[Violation]:
    if request.body.get("systemInstruction") is not None and re.match(r"gemma-[123]", request.model):
        yield refuse(("systemInstruction",), f"Developer instruction is not enabled for models/{request.model}")


def model_armor_replaces_safety(request: Request) -> Iterator[Violation]:
    if request.body.get("modelArmorConfig") is not None and request.body.get("safetySettings"):
        yield refuse(("safetySettings",), "safety_settings must not be set together with model_armor_config.")


def labels_start_with_a_letter(request: Request) -> Iterator[Violation]:
    for key in object_at(request.body, "labels"):
        if not re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", key):
            yield refuse(("labels",), "Label keys start with a lower-case letter and have at most 63 characters.")


RULES: tuple[Rule, ...] = (
    tools_are_not_empty,
    declarations_differ,
    one_schema_per_purpose,
    calling_config_needs_functions,
    allowed_names_fit,
    built_in_tools_mix,
    server_invocations_are_supported,
    schemas_use_known_keywords,
    schema_types_are_single,
    schema_keywords_are_typed,
    arrays_have_items,
    required_properties_exist,
    enums_are_strings,
    any_of_stands_alone,
    open_objects_are_expressible,
    schemas_need_json,
    json_excludes_tools,
    image_models_write_no_json,
    speech_models_speak,
    logprobs_are_asked_for,
    one_candidate,
    thinking_is_supported,
    level_or_budget,
    level_is_supported,
    budget_fits,
    cached_content_excludes_settings,
    cached_content_is_supported,
    model_accepts_instructions,
    model_armor_replaces_safety,
    labels_start_with_a_letter,
)
