"""What `POST /v1/chat/completions` refuses, and what a strict client of it expects to read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dragoman.sim.rules.common import (
    ANSWER,
    ROOT,
    JsonObject,
    Path,
    Violation,
    bad_answer,
    bracket_path,
    number_at,
    object_at,
    objects_at,
    read,
    text_at,
    texts_at,
    types_of,
    walk_schema,
)
from dragoman.sim.rules.openai_chat_shapes import DIALECT, REQUEST, RESPONSE
from dragoman.sim.rules.openai_request import Request, Rule, check_all, check_totals, refuse

# --- messages -----------------------------------------------------------------------------------------------------

PARTS_OF_ROLE = {
    "developer": {"text"},
    "system": {"text"},
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "tool": {"text"},
}


def parts_of(message: JsonObject) -> Iterator[tuple[int, JsonObject]]:
    yield from enumerate(objects_at(message, "content"))


def messages_of(request: Request) -> Iterator[tuple[Path, JsonObject]]:
    for index, message in enumerate(objects_at(request.body, "messages")):
        yield ("messages", index), message


def parts_fit_their_role(request: Request) -> Iterator[Violation]:
    for path, message in messages_of(request):
        role = text_at(message, "role")
        for index, part in parts_of(message):
            kind = text_at(part, "type")
            if kind in PARTS_OF_ROLE.get(role, set()):
                continue
            where = (*path, "content", index)
            if kind == "image_url":
                message_text = (
                    "Image URLs are only allowed for messages with role 'user', "
                    f"but this message with role '{role}' contains an image URL."
                )
            else:
                message_text = f"Invalid value: '{kind}'. Not a content part of a message with role '{role}'."
            yield refuse(where, message_text, "invalid_value")


def refusal_stands_alone(request: Request) -> Iterator[Violation]:
    """An assistant's content is text parts, or exactly one refusal."""
    for path, message in messages_of(request):
        kinds = [text_at(part, "type") for _, part in parts_of(message)]
        if "refusal" in kinds and len(kinds) > 1:
            yield refuse((*path, "content"), "A refusal part must be the only part of its message.", "invalid_value")


def assistant_says_something(request: Request) -> Iterator[Violation]:
    for path, message in messages_of(request):
        if message.get("role") != "assistant" or any(message.get(key) for key in ("tool_calls", "function_call")):
            continue
        if message.get("refusal") is not None or message.get("audio") is not None:
            continue
        where = (*path, "content")
        if message.get("content") is None:
            yield refuse(where, "Invalid value for 'content': expected a string, got null.")
        elif message.get("content") == []:
            yield refuse(where, f"Invalid '{bracket_path(where)}': empty array.", "empty_array")


_ORPHAN = "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'."


def results_follow_their_calls(request: Request) -> Iterator[Violation]:
    """Each call is answered by the tool messages right after it, each of those answers one of its calls."""
    messages = objects_at(request.body, "messages")
    open_ids: list[str] = []
    asked_at = 0
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            answered = text_at(message, "tool_call_id")
            if answered not in open_ids:
                yield refuse(("messages", index, "role"), _ORPHAN)
            else:
                open_ids.remove(answered)
            continue
        if open_ids:
            yield _unanswered_calls(asked_at, open_ids)
        open_ids, asked_at = [text_at(call, "id") for call in objects_at(message, "tool_calls")], index
    if open_ids:
        yield _unanswered_calls(asked_at, open_ids)


def _unanswered_calls(index: int, ids: list[str]) -> Violation:
    return refuse(
        ("messages", index),
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(ids)}",
    )


def call_ids_differ(request: Request) -> Iterator[Violation]:
    """Not documented for one turn, but results of duplicate ids could not be distinguished."""
    for path, message in messages_of(request):
        seen: set[str] = set()
        for index, call in enumerate(objects_at(message, "tool_calls")):
            if text_at(call, "id") in seen:
                where = (*path, "tool_calls", index, "id")
                yield refuse(where, f"Duplicate value for '{bracket_path(where)}'.", "invalid_value")
            seen.add(text_at(call, "id"))


# --- media --------------------------------------------------------------------------------------------------------

IMAGE_URL = re.compile(r"https?://.+|data:image/(png|jpe?g|gif|webp);base64,.+", re.IGNORECASE | re.DOTALL)
# `file_data` was a PDF data URL in every accepted recording.
FILE_DATA = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,.+", re.DOTALL)


def user_parts(request: Request, kind: str) -> Iterator[tuple[Path, JsonObject]]:
    for path, message in messages_of(request):
        for index, part in parts_of(message):
            if part.get("type") == kind:
                yield (*path, "content", index, kind), object_at(part, kind)


def images_are_readable(request: Request) -> Iterator[Violation]:
    for path, image in user_parts(request, "image_url"):
        url = text_at(image, "url")
        if IMAGE_URL.match(url):
            continue
        if url.startswith("data:"):
            formats = "['png', 'jpeg', 'gif', 'webp']"
            message = f"You uploaded an unsupported image. Please use one of the following formats: {formats}."
            yield refuse((*path, "url"), message, "invalid_image_format")
        else:
            yield refuse((*path, "url"), "Expected an http(s) URL or a base64 data URL.", "invalid_image_url")


def audio_is_bare_base64(request: Request) -> Iterator[Violation]:
    for path, audio in user_parts(request, "input_audio"):
        if text_at(audio, "data").startswith("data:"):
            yield refuse((*path, "data"), "Expected base64 without a data URL prefix.", "invalid_value")


def files_come_one_way(request: Request) -> Iterator[Violation]:
    for path, file in user_parts(request, "file"):
        if ("file_id" in file) == ("file_data" in file):
            yield refuse(path, "A file needs either 'file_id' or 'file_data'.", "missing_required_parameter")
        elif "file_data" in file and not FILE_DATA.match(text_at(file, "file_data")):
            yield refuse(
                (*path, "file_data"), "Invalid file data: expected a base64-encoded data URL.", "invalid_value"
            )


# --- tools --------------------------------------------------------------------------------------------------------


def tool_settings_need_tools(request: Request) -> Iterator[Violation]:
    if not request.body.get("tools"):
        for name in ("parallel_tool_calls", "tool_choice"):
            if request.body.get(name) is not None:
                message = f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified."
                yield refuse((name,), message)
    if request.body.get("function_call") is not None and not request.body.get("functions"):
        message = "Invalid value for 'function_call': 'function_call' is only allowed when 'functions' are specified."
        yield refuse(("function_call",), message)


def names_of_tools(request: Request) -> set[tuple[str, str]]:
    return {
        (text_at(tool, "type"), text_at(tool, text_at(tool, "type"), "name"))
        for tool in objects_at(request.body, "tools")
    }


def chosen_tools_exist(request: Request) -> Iterator[Violation]:
    declared = names_of_tools(request)
    choice = object_at(request.body, "tool_choice")
    chosen = objects_at(choice, "allowed_tools", "tools") or ([choice] if choice else [])
    for tool in chosen:
        kind = text_at(tool, "type")
        name = text_at(tool, kind, "name")
        if (kind, name) not in declared and declared:
            message = f"Invalid value for 'tool_choice': tool choice '{name}' not found in 'tools' parameter."
            yield refuse(("tool_choice",), message)


def chosen_function_exists(request: Request) -> Iterator[Violation]:
    declared = {text_at(function, "name") for function in objects_at(request.body, "functions")}
    name = text_at(request.body, "function_call", "name")
    if name and declared and name not in declared:
        yield refuse(
            ("function_call",), f"Invalid value for 'function_call': no function named '{name}' was specified."
        )


# --- schemas ------------------------------------------------------------------------------------------------------

# Documented as unsupported, and `oneOf`, which every mature client rewrites to `anyOf`.
NOT_IN_STRICT = ("allOf", "oneOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else")
STRICT_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
LOOK_AROUND = re.compile(r"\(\?<?[=!]")
STRICT_PROPERTIES = 5000
STRICT_DEPTH = 10
STRICT_ENUM_VALUES = 1000


@dataclass(frozen=True, slots=True)
class NamedSchema:
    path: Path
    title: str
    code: str | None
    schema: JsonObject
    strict: bool


def schemas_of(request: Request) -> Iterator[NamedSchema]:
    for index, tool in enumerate(objects_at(request.body, "tools")):
        yield from _function_schema(("tools", index, "function", "parameters"), object_at(tool, "function"))
    for index, function in enumerate(objects_at(request.body, "functions")):
        yield from _function_schema(("functions", index, "parameters"), function)
    wrapper = object_at(request.body, "response_format", "json_schema")
    if isinstance(wrapper.get("schema"), dict):
        path = ("response_format", "json_schema", "schema")
        title = f"response_format '{text_at(wrapper, 'name')}'"
        yield NamedSchema(path, title, None, object_at(wrapper, "schema"), wrapper.get("strict") is True)


def _function_schema(path: Path, function: JsonObject) -> Iterator[NamedSchema]:
    if isinstance(function.get("parameters"), dict):
        title = f"function '{text_at(function, 'name')}'"
        schema = object_at(function, "parameters")
        yield NamedSchema(path, title, "invalid_function_parameters", schema, function.get("strict") is True)


def bad_schema(named: NamedSchema, path: Path, reason: str) -> Violation:
    context = path[len(named.path) :]
    return refuse(path, f"Invalid schema for {named.title}: In context={context!r}, {reason}", named.code)


def schemas_describe_objects(request: Request) -> Iterator[Violation]:
    for named in schemas_of(request):
        if types_of(named.schema) != {"object"}:
            reason = "schema must be a JSON Schema of 'type: \"object\"'."
            yield bad_schema(named, named.path, reason)


def arrays_have_items(request: Request) -> Iterator[Violation]:
    return itemless_arrays(schemas_of(request))


def itemless_arrays(schemas: Iterable[NamedSchema]) -> Iterator[Violation]:
    for named in schemas:
        for path, node in walk_schema(named.schema, named.path):
            if "array" in types_of(node) and not {"items", "prefixItems"} & node.keys():
                yield bad_schema(named, path, "array schema missing items.")


def strict_objects_are_closed(request: Request) -> Iterator[Violation]:
    for named in schemas_of(request):
        for path, node in walk_schema(named.schema, named.path) if named.strict else ():
            if "object" in types_of(node) and node.get("additionalProperties") is not False:
                yield bad_schema(named, path, "'additionalProperties' is required to be supplied and to be false.")


def strict_objects_require_all(request: Request) -> Iterator[Violation]:
    for named in schemas_of(request):
        for path, node in walk_schema(named.schema, named.path) if named.strict else ():
            missing = object_at(node, "properties").keys() - set(texts_at(node, "required"))
            if missing:
                reason = (
                    "'required' is required to be supplied and to be an array including every key in properties. "
                    f"Missing '{min(missing)}'."
                )
                yield bad_schema(named, path, reason)


def strict_schemas_use_known_keywords(request: Request) -> Iterator[Violation]:
    for named in schemas_of(request):
        for path, node in walk_schema(named.schema, named.path) if named.strict else ():
            for keyword in NOT_IN_STRICT:
                if keyword in node:
                    yield bad_schema(named, path, f"'{keyword}' is not permitted.")
            if isinstance(node.get("format"), str) and node["format"] not in STRICT_FORMATS:
                yield bad_schema(named, path, f"'{node['format']}' is not a valid format.")
            if LOOK_AROUND.search(text_at(node, "pattern")):
                yield bad_schema(named, path, "'pattern' with look-around is not permitted.")
        if named.strict and "anyOf" in named.schema:
            yield bad_schema(named, named.path, "the root must be an object, not 'anyOf'.")


def strict_schemas_are_small(request: Request) -> Iterator[Violation]:
    for named in schemas_of(request):
        if not named.strict:
            continue
        properties = enum_values = depth = 0
        for path, node in walk_schema(named.schema, named.path):
            properties += len(object_at(node, "properties"))
            enum = node.get("enum")
            enum_values += len(enum) if isinstance(enum, list) else 0
            depth = max(depth, sum(step in ("properties", "items") for step in path[len(named.path) :]))
        for count, limit, what in (
            (properties, STRICT_PROPERTIES, "object properties"),
            (enum_values, STRICT_ENUM_VALUES, "enum values"),
            (depth, STRICT_DEPTH, "levels of nesting"),
        ):
            if count > limit:
                yield bad_schema(named, named.path, f"{count} {what} exceed the limit of {limit}.")


# --- settings -----------------------------------------------------------------------------------------------------


LONGEST_METADATA_KEY = 64


def stream_options_need_stream(request: Request) -> Iterator[Violation]:
    if request.body.get("stream_options") is not None and request.body.get("stream") is not True:
        message = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        yield refuse(("stream_options",), message)


def one_token_limit(request: Request) -> Iterator[Violation]:
    if request.body.get("max_tokens") is not None and request.body.get("max_completion_tokens") is not None:
        message = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        yield refuse(("max_tokens",), message, "invalid_parameter_combination")


def top_logprobs_need_logprobs(request: Request) -> Iterator[Violation]:
    if request.body.get("top_logprobs") is not None and request.body.get("logprobs") is not True:
        yield refuse(("top_logprobs",), "'top_logprobs' is only allowed when 'logprobs' is true.")


def audio_answers_need_a_voice(request: Request) -> Iterator[Violation]:
    modalities = request.body.get("modalities")
    wants_audio = isinstance(modalities, list) and "audio" in modalities
    if wants_audio and request.body.get("audio") is None:
        yield refuse(("audio",), "Missing required parameter: 'audio'.", "missing_required_parameter")


def metadata_keys_are_short(request: Request) -> Iterator[Violation]:
    for key in object_at(request.body, "metadata"):
        if len(key) > LONGEST_METADATA_KEY:
            yield refuse(
                ("metadata", key), "Invalid 'metadata': key longer than 64 characters.", "string_above_max_length"
            )


def json_mode_is_announced(request: Request) -> Iterator[Violation]:
    if text_at(request.body, "response_format", "type") != "json_object":
        return
    if not any("json" in text.lower() for text in _all_texts(request)):
        message = (
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
        )
        yield refuse(("messages",), message)


def _all_texts(request: Request) -> Iterator[str]:
    for _, message in messages_of(request):
        yield text_at(message, "content")
        for _, part in parts_of(message):
            yield text_at(part, "text")


# --- models -------------------------------------------------------------------------------------------------------

# Setting them to their defaults is accepted (`temperature: 1` on gpt-5-nano: 8 recordings).
SAMPLING_DEFAULTS: dict[str, object] = {
    "temperature": 1,
    "top_p": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "logit_bias": {},
    "logprobs": False,
    "top_logprobs": None,
}


def model_is_named(request: Request) -> Iterator[Violation]:
    if not request.model:
        yield refuse(("model",), "you must provide a model parameter")


def model_chats(request: Request) -> Iterator[Violation]:
    if request.traits and not request.traits.chats:
        message = "This is not a chat model and thus not supported in the v1/chat/completions endpoint."
        yield refuse(("model",), message, status=404)


def model_takes_tools(request: Request) -> Iterator[Violation]:
    if request.traits and request.traits.refuses_tools and request.body.get("tools"):
        yield refuse(("tools",), "tools is not supported in this model.", status=404)


def model_takes_token_limit(request: Request) -> Iterator[Violation]:
    if request.traits and request.traits.reasons and request.body.get("max_tokens") is not None:
        message = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        yield refuse(("max_tokens",), message, "unsupported_parameter")


def model_takes_stop(request: Request) -> Iterator[Violation]:
    if request.traits and request.traits.refuses_stop and request.body.get("stop"):
        message = "Unsupported parameter: 'stop' is not supported with this model."
        yield refuse(("stop",), message, "unsupported_parameter")


def reasoning_fixes_sampling(request: Request) -> Iterator[Violation]:
    traits = request.traits
    effort = request.body.get("reasoning_effort")
    if not traits or not traits.reasons or effort == "none":
        return
    if traits.reasons_unless_asked_not_to and effort is None:
        return
    for name, default in SAMPLING_DEFAULTS.items():
        value = request.body.get(name)
        if value is not None and value != default:
            message = f"Unsupported parameter: '{name}' is not supported with this model."
            yield refuse((name,), message, "unsupported_parameter")


def model_takes_role(request: Request) -> Iterator[Violation]:
    if not request.traits or not request.traits.refuses_system:
        return
    for path, message in messages_of(request):
        if message.get("role") in ("system", "developer"):
            where = (*path, "role")
            text = f"Unsupported value: '{bracket_path(where)}' does not support '{message['role']}' with this model."
            yield refuse(where, text, "unsupported_value")


def model_accepts_audio(request: Request) -> Iterator[Violation]:
    if not request.traits or request.traits.hears:
        return
    for path, _ in user_parts(request, "input_audio"):
        where = path[:2]
        message = f"Invalid '{bracket_path(where)}'. Content blocks are expected to be either text or image_url type."
        yield refuse(where, message, "invalid_value")


def model_searches(request: Request) -> Iterator[Violation]:
    if request.traits and not request.traits.searches and request.body.get("web_search_options") is not None:
        yield refuse(("web_search_options",), "Web search options not supported with this model.")


RULES: tuple[Rule, ...] = (
    model_is_named,
    model_chats,
    parts_fit_their_role,
    refusal_stands_alone,
    assistant_says_something,
    results_follow_their_calls,
    call_ids_differ,
    images_are_readable,
    audio_is_bare_base64,
    files_come_one_way,
    tool_settings_need_tools,
    chosen_tools_exist,
    chosen_function_exists,
    schemas_describe_objects,
    arrays_have_items,
    strict_objects_are_closed,
    strict_objects_require_all,
    strict_schemas_use_known_keywords,
    strict_schemas_are_small,
    stream_options_need_stream,
    one_token_limit,
    top_logprobs_need_logprobs,
    audio_answers_need_a_voice,
    metadata_keys_are_short,
    json_mode_is_announced,
    model_takes_tools,
    model_takes_token_limit,
    model_takes_stop,
    reasoning_fixes_sampling,
    model_takes_role,
    model_accepts_audio,
    model_searches,
)


def check_request(
    body: JsonObject,
    *,
    model: str | None = None,
    version: str | None = None,  # noqa: ARG001 - the API has one version; the argument makes all judges callable alike
) -> tuple[Violation, ...]:
    return check_all(REQUEST, DIALECT, RULES, body, model)


# --- responses ----------------------------------------------------------------------------------------------------


def usage_adds_up(body: JsonObject) -> Iterator[Violation]:
    return check_totals(body, "prompt_tokens", "completion_tokens")


def choices_are_numbered(body: JsonObject) -> Iterator[Violation]:
    choices = objects_at(body, "choices")
    if sorted(number_at(choice, "index") for choice in choices) != list(range(len(choices))):
        yield bad_answer(("choices",), "expected indexes 0, 1, 2, ...")


def calls_have_their_own_ids(body: JsonObject) -> Iterator[Violation]:
    for index, choice in enumerate(objects_at(body, "choices")):
        ids = [text_at(call, "id") for call in objects_at(choice, "message", "tool_calls")]
        if len(set(ids)) != len(ids):
            yield bad_answer(("choices", index, "message", "tool_calls"), "expected a different id for each call")


def finish_reason_has_calls(body: JsonObject) -> Iterator[Violation]:
    """`tool_calls` needs a call; `stop` with calls is legal, because forced choices end that way."""
    for index, choice in enumerate(objects_at(body, "choices")):
        if choice.get("finish_reason") == "tool_calls" and not objects_at(choice, "message", "tool_calls"):
            yield bad_answer(("choices", index, "finish_reason"), "finish_reason is 'tool_calls', but there is no call")


ANSWER_RULES: tuple[Callable[[JsonObject], Iterator[Violation]], ...] = (
    usage_adds_up,
    choices_are_numbered,
    calls_have_their_own_ids,
    finish_reason_has_calls,
)


def check_response(body: JsonObject) -> tuple[Violation, ...]:
    if isinstance(body.get("error"), dict):
        return (bad_answer(ROOT, "expected a chat completion, got an error body"),)
    _, faults = read(RESPONSE, ANSWER, body)
    return faults or tuple(violation for rule in ANSWER_RULES for violation in rule(body))
