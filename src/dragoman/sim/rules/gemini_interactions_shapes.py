"""The messages of the Interactions API, and the service's error messages for violations.

JSON is snake_case here, with enums in lower case: a body in the spelling of generateContent is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dragoman.sim.rules.common import (
    ANSWER,
    ANYTHING,
    BOOLEAN,
    COUNT,
    INTEGER,
    NUMBER,
    OBJECT,
    TEXT,
    TEXTS,
    Array,
    ByType,
    Map,
    Number,
    Path,
    Reader,
    Shape,
    Struct,
    Text,
    bracket_path,
    choice,
    open_tagged,
    same,
    struct,
    tagged,
)
from dragoman.sim.rules.gemini_shapes import DIALECT as PROTO

DIALECT = replace(
    PROTO,
    spell=lambda path: bracket_path(path) or "request",
    known_as=same,
    enum_known_as=same,
    null_is_absent=False,
    lone_item_is_array=False,
    enum_may_be_number=False,
)

# --- contents -----------------------------------------------------------------------------------------------------

RESOLUTION = choice("low", "medium", "high", "ultra_high")
MEDIUM: Mapping[str, Shape] = {"data": TEXT, "uri": TEXT, "mime_type": TEXT}
CONTENTS: Mapping[str, Shape] = {
    "text": struct(required={"text": TEXT}, optional={"annotations": Array(OBJECT)}),
    "image": struct(optional={**MEDIUM, "resolution": RESOLUTION}),
    "audio": struct(optional={**MEDIUM, "sample_rate": COUNT, "channels": COUNT}),
    "video": struct(optional={**MEDIUM, "resolution": RESOLUTION, "name": TEXT, "processing": ANYTHING}),
    "document": struct(optional=dict(MEDIUM)),
}
CONTENT = tagged("type", CONTENTS)

# --- steps --------------------------------------------------------------------------------------------------------

SIGNED: Mapping[str, Shape] = {"signature": TEXT}
FUNCTION_RESULT = ByType({"string": TEXT, "object": OBJECT, "array": Array(CONTENT)})


def _call(arguments: Shape | None, **more: Shape) -> Shape:
    return struct(required={"id": TEXT}, optional={**SIGNED, **more, **({"arguments": arguments} if arguments else {})})


def _result(result: Shape | None, **more: Shape) -> Shape:
    optional = {**SIGNED, **more, **({"result": result} if result else {})}
    return struct(required={"call_id": TEXT}, optional=optional)


QUERIES = struct(optional={"queries": TEXTS})
STEPS: Mapping[str, Shape] = {
    "user_input": struct(optional={"content": Array(CONTENT)}),
    "model_output": struct(optional={"content": Array(CONTENT), "error": OBJECT}),
    "thought": struct(
        optional={
            "signature": TEXT,
            "summary": Array(tagged("type", {"text": CONTENTS["text"], "image": CONTENTS["image"]})),
        }
    ),
    # A signature on a call is in no type; captures have it, and the service takes it.
    "function_call": struct(required={"id": TEXT, "name": TEXT, "arguments": OBJECT}, optional=dict(SIGNED)),
    "function_result": struct(
        required={"call_id": TEXT, "result": FUNCTION_RESULT}, optional={"name": TEXT, "is_error": BOOLEAN}
    ),
    "code_execution_call": _call(struct(optional={"code": TEXT, "language": choice("python", "bash")})),
    "code_execution_result": _result(ByType({"string": TEXT, "array": Array(CONTENT)}), is_error=BOOLEAN),
    "google_search_call": _call(QUERIES, search_type=TEXT),
    "google_search_result": _result(Array(OBJECT), is_error=BOOLEAN),
    "url_context_call": _call(struct(optional={"urls": TEXTS})),
    "url_context_result": _result(Array(OBJECT), is_error=BOOLEAN),
    "google_maps_call": _call(QUERIES),
    "google_maps_result": _result(Array(OBJECT)),
    "file_search_call": _call(None),
    "file_search_result": _result(Array(OBJECT)),
    "retrieval_call": _call(QUERIES, retrieval_type=TEXT),
    "retrieval_result": _result(None, is_error=BOOLEAN),
    "mcp_server_tool_call": struct(required={"id": TEXT, "name": TEXT, "server_name": TEXT, "arguments": OBJECT}),
    "mcp_server_tool_result": struct(
        required={"call_id": TEXT, "result": FUNCTION_RESULT}, optional={"name": TEXT, "server_name": TEXT}
    ),
    "processing_call": _call(None),
    "processing_result": _result(None),
}
STEP = tagged("type", STEPS)


@dataclass(frozen=True, slots=True)
class Input:
    """A string, one content, a list of contents, or a list of steps. Google's cookbook also sends one bare step."""

    def read(self, reader: Reader, path: Path, value: object) -> object:
        if isinstance(value, Mapping):
            shape = CONTENT if value.get("type") in CONTENTS else STEP
            return shape.read(reader, path, value)
        if not isinstance(value, list):
            if not isinstance(value, str):
                reader.wrong_type(path, value, "string")
            return value
        first = value[0] if value else None
        contents = isinstance(first, Mapping) and first.get("type") in CONTENTS
        return Array(CONTENT if contents else STEP).read(reader, path, value)


# --- tools and settings -------------------------------------------------------------------------------------------

ALLOWED = struct(optional={"mode": choice("auto", "any", "none", "validated"), "tools": TEXTS})
TOOLS: Mapping[str, Shape] = {
    "function": struct(required={"name": TEXT}, optional={"description": TEXT, "parameters": OBJECT}),
    "google_search": struct(
        optional={"search_types": Array(choice("web_search", "image_search", "enterprise_web_search"))}
    ),
    "code_execution": struct(),
    "url_context": struct(),
    "file_search": struct(optional={"file_search_store_names": TEXTS, "top_k": COUNT, "metadata_filter": TEXT}),
    "google_maps": struct(optional={"latitude": NUMBER, "longitude": NUMBER, "enable_widget": BOOLEAN}),
    "computer_use": struct(
        optional={
            "environment": choice("browser", "mobile", "desktop"),
            "excluded_predefined_functions": TEXTS,
            "disabled_safety_policies": TEXTS,
            "enable_prompt_injection_detection": BOOLEAN,
        }
    ),
    "mcp_server": struct(optional={"name": TEXT, "url": TEXT, "headers": Map(TEXT), "allowed_tools": Array(ALLOWED)}),
    "retrieval": struct(
        optional={
            "retrieval_types": TEXTS,
            "vertex_ai_search_config": OBJECT,
            "rag_store_config": OBJECT,
            "exa_ai_search_config": OBJECT,
            "parallel_ai_search_config": OBJECT,
        }
    ),
}
CHOICE_WORDS = ("auto", "any", "none", "validated")
TOOL_CHOICE = ByType({"string": choice(*CHOICE_WORDS), "object": struct(required={"allowed_tools": ALLOWED})})
GENERATION_CONFIG = struct(
    optional={
        "max_output_tokens": Number(at_least=1, whole=True),
        "stop_sequences": Array(TEXT, at_most=5),
        "seed": INTEGER,
        "thinking_level": choice("minimal", "low", "medium", "high", "xhigh"),
        "thinking_summaries": choice("auto", "none"),
        "tool_choice": TOOL_CHOICE,
        "speech_config": ANYTHING,
        "transcription_config": OBJECT,
        "video_config": OBJECT,
        "temperature": Number(at_least=0, at_most=2),
        "top_p": Number(at_least=0, at_most=1),
        "image_config": OBJECT,
    }
)
SAFETY = struct(
    required={"type": Text(r"[a-z_]+"), "threshold": Text(r"block_[a-z_]+|off")},
    optional={"method": choice("severity", "probability")},
)
REQUEST = struct(
    optional={
        "model": TEXT,
        "agent": TEXT,
        "input": Input(),
        "system_instruction": TEXT,
        "tools": Array(tagged("type", TOOLS)),
        "generation_config": GENERATION_CONFIG,
        "agent_config": OBJECT,
        "response_format": ByType({"object": OBJECT, "array": Array(OBJECT)}),
        "previous_interaction_id": TEXT,
        "store": BOOLEAN,
        "stream": BOOLEAN,
        "background": BOOLEAN,
        "environment": ByType({"string": TEXT, "object": OBJECT}),
        "safety_settings": Array(SAFETY),
        "service_tier": choice("flex", "standard", "priority", "deferred"),
        "labels": Map(TEXT),
        "webhook_config": OBJECT,
        "continuation_token": TEXT,
        "cached_content": TEXT,
        "response_mime_type": TEXT,
        "response_modalities": Array(choice("text", "image", "audio", "video", "document")),
    }
)

# --- answers ------------------------------------------------------------------------------------------------------

STATUSES = (
    *("completed", "requires_action", "incomplete", "budget_exceeded", "failed", "cancelled"),
    *("requires_continuation", "queued", "in_progress"),
)
_COUNTS = ("input", "output", "thought", "tool_use", "cached")
USAGE = struct(optional={"total_tokens": COUNT, **{f"total_{name}_tokens": COUNT for name in _COUNTS}})
RESPONSE: Struct = struct(
    required={"status": choice(*STATUSES)},
    optional={
        "id": TEXT,
        "object": choice("interaction"),
        "model": TEXT,
        "agent": TEXT,
        "created": TEXT,
        "updated": TEXT,
        "service_tier": TEXT,
        "steps": Array(open_tagged("type", STEPS)),
        "usage": USAGE,
        "previous_interaction_id": TEXT,
        "environment_id": TEXT,
        "continuation_token": TEXT,
        "errors": Array(OBJECT),
    },
)
ANSWER_DIALECT = ANSWER
