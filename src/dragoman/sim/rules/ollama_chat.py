"""What Ollama's `POST /api/chat` refuses, and what a strict client of it expects to read.

A lenient server: any order of roles, any unknown key, any schema will do. What needs the model at hand (does it exist,
does it think, does it take tools) is not judged here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping

from dragoman.sim.rules.common import (
    ANSWER,
    BOOLEAN,
    COUNT,
    NUMBER,
    OBJECT,
    ROOT,
    TEXT,
    Array,
    JsonObject,
    Path,
    Text,
    Violation,
    bad_answer,
    choice,
    json_path,
    object_at,
    objects_at,
    read,
    struct,
    text_at,
)
from dragoman.sim.rules.ollama_chat_go import (
    GoAny,
    GoBool,
    GoBytes,
    GoInt,
    GoMap,
    GoReader,
    GoSlice,
    GoString,
    GoStruct,
    OrderedMap,
)

ANY, BOOL, INT, STRING = GoAny(), GoBool(), GoInt(), GoString()
STRINGS = GoSlice("[]string", STRING)


class Duration:
    """`keep_alive`: seconds, or text as Go writes durations (`5m`, `1h30m`)."""

    FORM = re.compile(r"[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)")
    BARE = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)")

    def read(self, reader: GoReader, path: Path, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            names = {bool: "bool", list: "[]interface {}"}
            reader.refuse(path, f"Unsupported type: '{names.get(type(value), 'map[string]interface {}')}'")
        elif isinstance(value, str) and not self.FORM.fullmatch(value):
            fault = "missing unit in" if self.BARE.fullmatch(value) else "invalid"
            reader.refuse(path, f"time: {fault} duration {json.dumps(value, ensure_ascii=False)}")


class Think:
    LEVELS = ("high", "medium", "low", "max")

    def read(self, reader: GoReader, path: Path, value: object) -> None:
        choices = ", ".join(f'"{level}"' for level in self.LEVELS) + ", true, or false"
        if isinstance(value, str) and value not in self.LEVELS:
            quoted = json.dumps(value, ensure_ascii=False)
            reader.refuse(path, f"invalid think value: {quoted} (must be {choices})")
        elif not isinstance(value, bool | str):
            reader.refuse(path, f"think must be a boolean or string ({choices})")


class PropertyType:
    """A type or a list of types."""

    def read(self, reader: GoReader, path: Path, value: object) -> None:
        if not isinstance(value, str):
            STRINGS.read(reader, path, value)


class Property:
    """A nested schema. Depth is not checked here: Go stops at 10000 levels itself."""

    DEEPEST = 200

    def read(self, reader: GoReader, path: Path, value: object) -> None:
        if len(path) < self.DEEPEST:
            PROPERTY_FIELDS.read(reader, path, value)


PROPERTY = Property()
PROPERTIES = OrderedMap(PROPERTY)
PROPERTY_FIELDS = GoStruct(
    "ToolProperty",
    {
        "anyOf": GoSlice("[]api.ToolProperty", PROPERTY),
        "type": PropertyType(),
        "items": ANY,
        "description": STRING,
        "enum": GoSlice("[]interface {}", ANY),
        "properties": PROPERTIES,
        "required": STRINGS,
    },
    owns_its_fields=False,
)
TOOL = GoStruct(
    "Tool",
    {
        "type": STRING,
        "items": ANY,
        "function": GoStruct(
            "ToolFunction",
            {
                "name": STRING,
                "description": STRING,
                "parameters": GoStruct(
                    "ToolFunctionParameters",
                    {"type": STRING, "$defs": ANY, "items": ANY, "required": STRINGS, "properties": PROPERTIES},
                ),
            },
        ),
    },
)
TOOL_CALL = GoStruct(
    "ToolCall",
    {
        "id": STRING,
        "function": GoStruct(
            "ToolCallFunction",
            {"index": INT, "name": STRING, "arguments": OrderedMap(ANY)},
            owns_its_fields=False,
        ),
    },
    owns_its_fields=False,
)
MESSAGE = GoStruct(
    "Alias",
    {
        "role": STRING,
        "content": STRING,
        "thinking": STRING,
        "images": GoSlice("[]api.ImageData", GoBytes("api.ImageData")),
        "tool_calls": GoSlice("[]api.ToolCall", TOOL_CALL),
        "tool_name": STRING,
        "tool_call_id": STRING,
    },
    owns_its_fields=False,
)
REQUEST = GoStruct(
    "ChatRequest",
    {
        "model": STRING,
        "messages": GoSlice("[]api.Message", MESSAGE),
        "stream": BOOL,
        "format": ANY,
        "keep_alive": Duration(),
        "tools": GoSlice("api.Tools", TOOL),
        "options": GoMap("map[string]interface {}"),
        "think": Think(),
        "truncate": BOOL,
        "shift": BOOL,
        "_debug_render_only": BOOL,
        "logprobs": BOOL,
        "top_logprobs": INT,
    },
)

# --- what the server looks at after decoding ----------------------------------------------------------------------

# Reported while the model is loaded or run, and so with a failure status.
TOLD_TOO_LATE = 500
MOST_LOGPROBS = 20

OPTION_TYPES = {
    **dict.fromkeys(("num_keep", "seed", "num_predict", "top_k", "repeat_last_n"), "integer"),
    **dict.fromkeys(("num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread", "draft_num_predict"), "integer"),
    **dict.fromkeys(("temperature", "top_p", "min_p", "typical_p"), "float32"),
    **dict.fromkeys(("repeat_penalty", "presence_penalty", "frequency_penalty"), "float32"),
    "use_mmap": "boolean",
    "stop": "array",
}


def refuse(path: Path, message: str, status: int = 400) -> Violation:
    return Violation(json_path(path), message, None, status)


def model_is_named(body: JsonObject, model: str) -> Iterator[Violation]:
    if not (model or text_at(body, "model")):
        yield refuse(("model",), "model is required")


def logprobs_are_few(body: JsonObject, _model: str) -> Iterator[Violation]:
    count = body.get("top_logprobs")
    if isinstance(count, int) and not 0 <= count <= MOST_LOGPROBS:
        yield refuse(("top_logprobs",), f"top_logprobs must be between 0 and {MOST_LOGPROBS}")


def options_have_their_type(body: JsonObject, _model: str) -> Iterator[Violation]:
    """An integer may have a fraction, which is cut off; an unknown option is ignored."""
    for name, value in object_at(body, "options").items():
        kind = OPTION_TYPES.get(name)
        if kind is None or value is None or _fits(value, kind):
            continue
        what = "an array of strings" if kind == "array" and isinstance(value, list) else f"type {kind}"
        yield refuse(("options", name), f'option "{name}" must be of {what}', TOLD_TOO_LATE)


def _fits(value: object, kind: str) -> bool:
    match kind:
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, int | float) and not isinstance(value, bool)


def format_is_json(body: JsonObject, _model: str) -> Iterator[Violation]:
    """Checked only if there are messages to answer."""
    form = body.get("format")
    if not body.get("messages") or form in (None, "", "json") or isinstance(form, Mapping):
        return
    quoted = json.dumps(json.dumps(form, ensure_ascii=False), ensure_ascii=False)
    message = f'invalid format: {quoted}; expected "json" or a valid JSON Schema object'
    yield refuse(("format",), message, TOLD_TOO_LATE)


RULES: tuple[Callable[[JsonObject, str], Iterator[Violation]], ...] = (
    model_is_named,
    logprobs_are_few,
    options_have_their_type,
    format_is_json,
)


def check_request(
    body: JsonObject,
    *,
    model: str | None = None,
    version: str | None = None,  # noqa: ARG001 - the newest server judges; the argument makes all judges callable alike
) -> tuple[Violation, ...]:
    reader = GoReader("ChatRequest")
    REQUEST.read(reader, ROOT, body)
    if reader.violations:
        return tuple(reader.violations)
    folded = {key.lower(): value for key, value in body.items()}
    return tuple(violation for rule in RULES for violation in rule(folded, model or ""))


# --- responses ----------------------------------------------------------------------------------------------------

ANSWERED_CALL = struct(
    required={"function": struct(required={"name": Text(at_least=1), "arguments": OBJECT}, nullable={"index": COUNT})},
    nullable={"id": TEXT},
)
_METRICS = (
    "total_duration",
    "load_duration",
    "prompt_eval_count",
    "prompt_eval_duration",
    "eval_count",
    "eval_duration",
)
RESPONSE = struct(
    required={
        "model": TEXT,
        "created_at": TEXT,
        "message": struct(
            required={"role": choice("assistant"), "content": TEXT},
            nullable={"thinking": TEXT, "tool_calls": Array(ANSWERED_CALL), "images": Array(TEXT)},
        ),
        "done": BOOLEAN,
    },
    nullable={
        "done_reason": TEXT,
        "logprobs": Array(struct(required={"token": TEXT, "logprob": NUMBER})),
        **dict.fromkeys(_METRICS, COUNT),
    },
)


def answer_is_done(body: JsonObject) -> Iterator[Violation]:
    if body.get("done") is not True:
        yield bad_answer(("done",), "expected true: an answer in one piece is complete")


def calls_have_their_own_ids(body: JsonObject) -> Iterator[Violation]:
    """Ids are optional: some servers send none."""
    ids = [text_at(call, "id") for call in objects_at(body, "message", "tool_calls") if text_at(call, "id")]
    if len(set(ids)) != len(ids):
        yield bad_answer(("message", "tool_calls"), "expected a different id for each call")


ANSWER_RULES: tuple[Callable[[JsonObject], Iterator[Violation]], ...] = (answer_is_done, calls_have_their_own_ids)


def check_response(body: JsonObject) -> tuple[Violation, ...]:
    if "error" in body:
        return (bad_answer(ROOT, "expected a chat response, got an error body"),)
    _, faults = read(RESPONSE, ANSWER, body)
    return faults or tuple(violation for rule in ANSWER_RULES for violation in rule(body))
