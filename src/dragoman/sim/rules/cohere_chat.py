"""What Cohere's `POST /v2/chat` refuses, and what a strict client of it expects to read.

Where the published errors and the recorded traffic disagree (system messages in the middle), the traffic decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from dragoman.sim.rules.cohere_chat_shapes import DIALECT, REQUEST, RESPONSE, UNKNOWN_FIELD_STATUS
from dragoman.sim.rules.common import (
    ANSWER,
    JsonObject,
    Path,
    Violation,
    bad_answer,
    json_path,
    number_at,
    object_at,
    objects_at,
    read,
    text_at,
    types_of,
    walk_schema,
)

MOST_IMAGES = 20
MOST_STRICT_FIELDS = 200
IMAGE_URL = re.compile(r"https?://.+|data:image/(png|jpe?g|gif|webp);base64,.+", re.IGNORECASE | re.DOTALL)
# `tool_choice` is for command-r7b and newer.
WITHOUT_CHOICE = re.compile(r"command(-light|-nightly)?|command-r(-plus)?(-\d{2}-2024)?")
REASONS = re.compile(r"command-a-(plus|reasoning)")
UNSUPPORTED = (
    *("allOf", "oneOf", "not", "minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "uniqueItems"),
)
FORMATS = frozenset({"date-time", "uuid", "date", "time"})


def refuse(path: Path, message: str, status: int = 400) -> Violation:
    return Violation(json_path(path), message, None, status)


def messages_of(body: JsonObject) -> Iterator[tuple[Path, JsonObject]]:
    for index, message in enumerate(objects_at(body, "messages")):
        yield ("messages", index), message


# --- messages -----------------------------------------------------------------------------------------------------


def turns_say_something(body: JsonObject, _model: str) -> Iterator[Violation]:
    for path, message in messages_of(body):
        role, content = message.get("role"), message.get("content")
        if role == "assistant":
            if not (content or objects_at(message, "tool_calls") or text_at(message, "tool_plan")):
                yield refuse(path, "invalid request: an assistant message must have content or tool calls")
        elif role == "user" and not _says_something(content):
            yield refuse((*path, "content"), "invalid request: message must not be empty in a turn")


def _says_something(content: object) -> bool:
    if isinstance(content, str):
        return bool(content.strip())
    parts = objects_at({"content": content}, "content")
    return bool(parts) and all(text_at(part, "text").strip() for part in parts if part.get("type") == "text")


def last_turn_is_answered(body: JsonObject, _model: str) -> Iterator[Violation]:
    """There is no prefill."""
    messages = objects_at(body, "messages")
    if messages and messages[-1].get("role") not in {"user", "tool", "system"}:
        yield refuse(
            ("messages", len(messages) - 1), "invalid request: the last message must be from the user or a tool"
        )


def results_answer_calls(body: JsonObject, _model: str) -> Iterator[Violation]:
    """A result names a call before it; ids differ; each call is answered before another message."""
    known: set[str] = set()
    waiting: set[str] = set()
    for path, message in messages_of(body):
        if message.get("role") == "tool":
            call_id = text_at(message, "tool_call_id")
            if not call_id:
                yield refuse(
                    (*path, "tool_call_id"), "invalid request: tool call id must be provided with tool message"
                )
            elif call_id not in known:
                where = (*path, "tool_call_id")
                yield refuse(where, f"invalid request: tool call id not found in previous tool calls: {call_id}")
            waiting.discard(call_id)
            continue
        if waiting:
            yield refuse(path, f"invalid request: tool calls without results: {', '.join(sorted(waiting))}")
            waiting = set()
        for index, call in enumerate(objects_at(message, "tool_calls")):
            call_id = text_at(call, "id")
            if call_id in known:
                yield refuse((*path, "tool_calls", index, "id"), "invalid request: cannot have duplicate tool ids")
            known.add(call_id)
            waiting.add(call_id)
    if waiting:
        yield refuse(("messages",), f"invalid request: tool calls without results: {', '.join(sorted(waiting))}")


def images_are_readable(body: JsonObject, _model: str) -> Iterator[Violation]:
    count = 0
    for path, message in messages_of(body):
        for index, part in enumerate(objects_at(message, "content")):
            if part.get("type") != "image_url":
                continue
            count += 1
            if not IMAGE_URL.match(text_at(part, "image_url", "url")):
                where = (*path, "content", index, "image_url", "url")
                yield refuse(where, "invalid request: image must be an http(s) URL or a base64 data URI of an image")
    if count > MOST_IMAGES:
        yield refuse(("messages",), f"invalid request: at most {MOST_IMAGES} images are allowed, got {count}")


# --- tools --------------------------------------------------------------------------------------------------------


def tools_of(body: JsonObject) -> Iterator[tuple[Path, JsonObject]]:
    for index, tool in enumerate(objects_at(body, "tools")):
        yield ("tools", index, "function"), object_at(tool, "function")


def tools_are_described(body: JsonObject, _model: str) -> Iterator[Violation]:
    names: set[str] = set()
    for path, function in tools_of(body):
        name = text_at(function, "name")
        if name in names:
            yield refuse((*path, "name"), f"invalid request: duplicate tool name: {name}")
        names.add(name)
        if not text_at(function, "description") and not object_at(function, "parameters", "properties"):
            yield refuse(path, f"invalid request: tool {name} must have a description or inputs")


def parameters_are_objects(body: JsonObject, _model: str) -> Iterator[Violation]:
    for path, function in tools_of(body):
        schema = object_at(function, "parameters")
        where = (*path, "parameters")
        if schema.get("type") != "object":
            yield refuse(where, "invalid request: schema must be an object")
            continue
        properties = object_at(schema, "properties")
        for name, inner in properties.items():
            if not isinstance(inner, Mapping) or inner.keys().isdisjoint(
                ("type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const")
            ):
                yield refuse((*where, "properties", name), f"invalid request: property {name} must have a type")
        required = schema.get("required")
        for name in required if isinstance(required, list) else ():
            if name not in properties:
                message = f"invalid request: required field {name} not found in properties"
                yield refuse((*where, "required"), message)


def choice_has_tools(body: JsonObject, model: str) -> Iterator[Violation]:
    choice = body.get("tool_choice")
    if choice == "REQUIRED" and not objects_at(body, "tools"):
        yield refuse(("tool_choice",), "invalid request: tool_choice REQUIRED needs tools")
    if choice is not None and WITHOUT_CHOICE.fullmatch(model):
        yield refuse(("tool_choice",), f"invalid request: tool_choice is not supported by model {model}")


def strict_tools_are_small(body: JsonObject, _model: str) -> Iterator[Violation]:
    if body.get("strict_tools") is not True:
        return
    fields = sum(
        len(object_at(node, "properties"))
        for path, function in tools_of(body)
        for _, node in walk_schema(function.get("parameters"), path)
    )
    if fields > MOST_STRICT_FIELDS:
        message = f"invalid request: strict_tools takes at most {MOST_STRICT_FIELDS} fields, got {fields}"
        yield refuse(("strict_tools",), message)


# --- documents, format, settings ----------------------------------------------------------------------------------


def documents_have_their_own_ids(body: JsonObject, _model: str) -> Iterator[Violation]:
    ids = [text_at(document, "id") for document in objects_at(body, "documents") if text_at(document, "id")]
    if len(ids) != len(set(ids)):
        yield refuse(("documents",), "invalid request: document ids must be unique")


def format_stands_alone(body: JsonObject, _model: str) -> Iterator[Violation]:
    if text_at(body, "response_format", "type") != "json_object":
        return
    if objects_at(body, "tools"):
        yield refuse(("response_format",), "invalid request: response_format is not supported with tools")
    if body.get("documents"):
        yield refuse(("response_format",), "invalid request: response_format is not supported with RAG")


def schema_is_supported(body: JsonObject, _model: str) -> Iterator[Violation]:
    schema = object_at(body, "response_format").get("json_schema")
    if schema is None:
        return
    root: Path = ("response_format", "json_schema")
    if object_at({"schema": schema}, "schema").get("type") != "object":
        yield refuse(root, "invalid request: the top level of a JSON schema must be of type object")
    for path, node in walk_schema(schema, root):
        for keyword in UNSUPPORTED:
            if keyword in node:
                yield refuse((*path, keyword), f"invalid request: JSON schema keyword {keyword} is not supported")
        if "format" in node and "string" in types_of(node) and node["format"] not in FORMATS:
            yield refuse((*path, "format"), f"invalid request: format {node['format']} is not supported")
        if "object" in types_of(node) and not node.get("required"):
            yield refuse(path, "invalid request: an object must have at least one required field")


def temperature_is_small(body: JsonObject, _model: str) -> Iterator[Violation]:
    if "temperature" in body and body["temperature"] is not None and not 0 <= number_at(body, "temperature") <= 1:
        yield refuse(("temperature",), "invalid request: temperature must be between 0 and 1.0 inclusive")


RULES: tuple[Callable[[JsonObject, str], Iterator[Violation]], ...] = (
    turns_say_something,
    last_turn_is_answered,
    results_answer_calls,
    images_are_readable,
    tools_are_described,
    parameters_are_objects,
    choice_has_tools,
    strict_tools_are_small,
    documents_have_their_own_ids,
    format_stands_alone,
    schema_is_supported,
    temperature_is_small,
)


def check_request(
    body: JsonObject,
    *,
    model: str | None = None,
    version: str | None = None,  # noqa: ARG001 - there is one; the argument makes all judges callable alike
) -> tuple[Violation, ...]:
    _, faults = read(REQUEST, DIALECT, body)
    if faults:
        return tuple(
            replace(fault, code=None, status=UNKNOWN_FIELD_STATUS) if fault.code == "unknown_field" else fault
            for fault in faults
        )
    name = model or text_at(body, "model")
    return tuple(violation for rule in RULES for violation in rule(body, name))


# --- responses ----------------------------------------------------------------------------------------------------


def calls_end_the_answer(body: JsonObject) -> Iterator[Violation]:
    calls = objects_at(body, "message", "tool_calls")
    if body.get("finish_reason") == "TOOL_CALL" and not calls:
        yield bad_answer(("finish_reason",), "expected calls in an answer that waits for their results")
    ids = [text_at(call, "id") for call in calls]
    if len(ids) != len(set(ids)):
        yield bad_answer(("message", "tool_calls"), "expected a different id for each call")


def citations_stand_in_the_text(body: JsonObject) -> Iterator[Violation]:
    """Ranges are of the text of the answer: of one block, or of the plan."""
    blocks = objects_at(body, "message", "content")
    first = next((index for index, block in enumerate(blocks) if block.get("type") == "text"), None)
    for index, citation in enumerate(objects_at(body, "message", "citations")):
        path: Path = ("message", "citations", index)
        place = citation.get("content_index", first)
        if citation.get("type") == "PLAN":
            text = text_at(body, "message", "tool_plan")
        elif isinstance(place, int) and place < len(blocks):
            text = text_at(blocks[place], "text") or text_at(blocks[place], "thinking")
        else:
            yield bad_answer(path, "expected the index of a content block")
            continue
        start, end = citation.get("start"), citation.get("end")
        if isinstance(start, int) and isinstance(end, int) and not start <= end <= len(text):
            yield bad_answer((*path, "end"), "expected a range of the cited text")


ANSWER_RULES: tuple[Callable[[JsonObject], Iterator[Violation]], ...] = (
    calls_end_the_answer,
    citations_stand_in_the_text,
)


def check_response(body: JsonObject) -> tuple[Violation, ...]:
    if isinstance(body.get("message"), str):
        return (bad_answer((), "expected a chat response, got an error body"),)
    _, faults = read(RESPONSE, ANSWER, body)
    return faults or tuple(violation for rule in ANSWER_RULES for violation in rule(body))
