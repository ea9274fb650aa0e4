"""The typed objects of OpenAI Responses, and the server's error messages for violations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dragoman.sim.rules.common import (
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
    Dialect,
    Fault,
    Map,
    Number,
    OrNull,
    Path,
    Reader,
    Shape,
    Struct,
    Text,
    Violation,
    bracket_path,
    choice,
    open_tagged,
    struct,
    tagged,
    text_or_array,
)
from dragoman.sim.rules.openai_chat_shapes import TYPE_NAMES, WORDING


def with_and(values: str) -> str:
    """`'a', 'b', 'c'` as the server says it: `'a', 'b', and 'c'`."""
    *others, last = values.split(", ")
    if not others:
        return last
    return f"{others[0]} and {last}" if len(others) == 1 else f"{', '.join(others)}, and {last}"


@dataclass(frozen=True, slots=True)
class ListingDialect(Dialect):
    def violation(
        self, fault: Fault, path: Path, *, got: object = "", expected: str = "", limit: object = ""
    ) -> Violation:
        if fault in (Fault.NOT_ONE_OF, Fault.UNKNOWN_TAG):
            expected = with_and(expected)
        return Dialect.violation(self, fault, path, got=got, expected=expected, limit=limit)


DIALECT = ListingDialect(
    spell=bracket_path,
    type_names=TYPE_NAMES,
    wording={
        **WORDING,
        Fault.NULL: ("Invalid type for '{where}': expected {expected}, but got null instead.", "invalid_type"),
        Fault.TOO_SHORT: (
            (
                "Invalid '{where}': empty string. "
                "Expected a string with minimum length {limit}, but got an empty string instead."
            ),
            "empty_string",
        ),
        Fault.TOO_LONG: (
            (
                "Invalid '{where}': string too long. "
                "Expected a string with maximum length {limit}, but got a string with length {got} instead."
            ),
            "string_above_max_length",
        ),
        Fault.TOO_FEW: (
            (
                "Invalid '{where}': empty array. "
                "Expected an array with minimum length {limit}, but got an empty array instead."
            ),
            "empty_array",
        ),
        Fault.TOO_MANY: (
            (
                "Invalid '{where}': array too long. "
                "Expected an array with maximum length {limit}, but got an array with length {got} instead."
            ),
            "array_above_max_length",
        ),
        Fault.PATTERN: (
            (
                "Invalid '{where}': string does not match pattern. "
                "Expected a string that matches the pattern '{expected}'."
            ),
            "invalid_value",
        ),
    },
)

NAME_PATTERN = "^[a-zA-Z0-9_-]+$"
# The limit of a tool at top level is written nowhere; 64 is that of Chat, 128 that of a name in a namespace.
TOOL_NAME = Text(pattern=NAME_PATTERN, at_least=1, at_most=64)
NAME = Text(pattern=NAME_PATTERN, at_least=1, at_most=128)
CALL_ID = Text(at_least=1, at_most=64)
ITEM_ID = Text(at_most=64)
STATUS = choice("in_progress", "completed", "incomplete")

# --- content parts ------------------------------------------------------------------------------------------------

_BREAKPOINT = struct(required={"mode": choice("explicit")}, optional={"ttl": choice("30m", "12h")})
_CACHEABLE: dict[str, Shape] = {"prompt_cache_breakpoint": _BREAKPOINT}

_INPUT_TEXT = struct(required={"text": TEXT}, optional=_CACHEABLE)
_INPUT_IMAGE = struct(
    # `detail` is required by the type, yet 23 recorded images of users went without it.
    optional={"detail": choice("low", "high", "auto", "original"), **_CACHEABLE},
    nullable={"image_url": Text(at_most=20_971_520), "file_id": TEXT},
)
_INPUT_FILE = struct(
    optional={
        "file_url": TEXT,
        "filename": TEXT,
        "file_data": Text(at_most=73_400_320),
        "detail": choice("auto", "low", "high"),
        **_CACHEABLE,
    },
    nullable={"file_id": TEXT},
)
INPUT_PART = tagged("type", {"input_text": _INPUT_TEXT, "input_image": _INPUT_IMAGE, "input_file": _INPUT_FILE})
_INSTRUCTION_PART = tagged("type", {"input_text": _INPUT_TEXT})

_CITED = {"start_index": COUNT, "end_index": COUNT}
_ANNOTATION = open_tagged(
    "type",
    {
        "url_citation": struct(required={**_CITED, "url": TEXT, "title": TEXT}),
        "file_citation": struct(required={"file_id": TEXT, "filename": TEXT, "index": COUNT}),
        "container_file_citation": struct(required={**_CITED, "container_id": TEXT, "file_id": TEXT, "filename": TEXT}),
        "file_path": struct(required={"file_id": TEXT, "index": COUNT}),
    },
)
OUTPUT_PART = tagged(
    "type",
    {
        # `annotations` is required by the type, yet 123 recorded replays of bare text went without it.
        "output_text": struct(
            required={"text": TEXT}, optional={"annotations": Array(_ANNOTATION), "logprobs": Array(ANYTHING)}
        ),
        "refusal": struct(required={"refusal": TEXT}),
    },
)

# --- messages -----------------------------------------------------------------------------------------------------

_MESSAGE: dict[str, Shape] = {"type": choice("message"), "role": ANYTHING, "id": ITEM_ID, "status": STATUS}


def _message(content: Shape, **more: Shape) -> Struct:
    return struct(required={"content": content}, optional={**_MESSAGE, **more})


_INSTRUCTION = _message(text_or_array(_INSTRUCTION_PART, at_least=1))
MESSAGE = tagged(
    "role",
    {
        # An empty array was accepted (6 recordings, e.g. ccf4677f3f9e).
        "assistant": _message(text_or_array(OUTPUT_PART), phase=OrNull(choice("commentary", "final_answer"))),
        "system": _INSTRUCTION,
        "developer": _INSTRUCTION,
        "user": _message(text_or_array(INPUT_PART, at_least=1)),
    },
)

# --- tools --------------------------------------------------------------------------------------------------------

_CALLERS = Array(choice("direct", "programmatic"), at_least=1)


def _function(name: Text) -> Struct:
    return struct(
        required={"name": name},
        # A Chat-style `function` beside the name was ignored (124 tools recorded, e.g. a3a4a06dbe4a).
        optional={"defer_loading": BOOLEAN, "async": BOOLEAN, "function": OBJECT},
        nullable={
            "parameters": OBJECT,
            "strict": BOOLEAN,
            "description": TEXT,
            "allowed_callers": _CALLERS,
            "output_schema": OBJECT,
        },
    )


def _custom(name: Text) -> Struct:
    return struct(
        required={"name": name},
        optional={
            "description": TEXT,
            "format": tagged(
                "type",
                {
                    "text": struct(),
                    "grammar": struct(required={"definition": TEXT, "syntax": choice("lark", "regex")}),
                },
            ),
            "defer_loading": BOOLEAN,
            "async": BOOLEAN,
        },
        nullable={"allowed_callers": _CALLERS},
    )


_LOCATION = struct(
    required={"type": choice("approximate")}, nullable={"city": TEXT, "country": TEXT, "region": TEXT, "timezone": TEXT}
)
_CONTEXT_SIZE = choice("low", "medium", "high")
_WEB_SEARCH = struct(
    optional={"search_context_size": _CONTEXT_SIZE, "external_web_access": BOOLEAN},
    nullable={
        "filters": struct(nullable={"allowed_domains": TEXTS, "blocked_domains": TEXTS}),
        "user_location": _LOCATION,
    },
)
_WEB_SEARCH_PREVIEW = struct(
    optional={"search_context_size": _CONTEXT_SIZE, "search_content_types": Array(choice("text", "image"))},
    nullable={"user_location": _LOCATION},
)
_TOOL_FILTER = struct(optional={"read_only": BOOLEAN, "tool_names": TEXTS})
_MCP = struct(
    required={"server_label": TEXT},
    optional={
        "server_url": TEXT,
        "connector_id": TEXT,
        "tunnel_id": TEXT,
        "authorization": TEXT,
        "server_description": TEXT,
        "defer_loading": BOOLEAN,
    },
    nullable={
        "headers": Map(TEXT),
        "allowed_tools": ByType({"array": TEXTS, "object": _TOOL_FILTER}),
        "require_approval": ByType(
            {
                "string": choice("always", "never"),
                "object": struct(optional={"always": _TOOL_FILTER, "never": _TOOL_FILTER}),
            }
        ),
        "allowed_callers": _CALLERS,
    },
)
_CONTAINER = tagged(
    "type",
    {
        "auto": struct(
            optional={"file_ids": TEXTS, "network_policy": OBJECT},
            nullable={"memory_limit": choice("1g", "4g", "16g", "64g")},
        )
    },
)
_SHELL_ENVIRONMENT = tagged(
    "type",
    {
        "container_auto": struct(
            optional={"file_ids": TEXTS, "network_policy": OBJECT, "skills": Array(OBJECT)},
            nullable={"memory_limit": TEXT},
        ),
        "local": struct(optional={"skills": Array(OBJECT)}),
        "container_reference": struct(required={"container_id": TEXT}),
    },
)
_IMAGE_GENERATION = struct(
    optional={
        "model": TEXT,
        "action": choice("generate", "edit", "auto"),
        "background": choice("transparent", "opaque", "auto"),
        "quality": TEXT,
        "size": TEXT,
        "output_format": TEXT,
        "output_compression": Number(at_least=0, at_most=100, whole=True),
        "moderation": choice("auto", "low"),
        "input_image_mask": struct(optional={"image_url": TEXT, "file_id": TEXT}),
        "partial_images": Number(at_least=0, at_most=3, whole=True),
        "complexity": ANYTHING,
        "frame_count": INTEGER,
        "frame_duration_ms": INTEGER,
        "svg": ANYTHING,
    },
    nullable={"input_fidelity": choice("high", "low")},
)

TOOL = tagged(
    "type",
    {
        "function": _function(TOOL_NAME),
        "custom": _custom(TOOL_NAME),
        "namespace": struct(
            required={
                "name": NAME,
                "description": TEXT,
                "tools": Array(tagged("type", {"function": _function(NAME), "custom": _custom(NAME)}), at_least=1),
            }
        ),
        "tool_search": struct(
            optional={"execution": choice("server", "client")}, nullable={"description": TEXT, "parameters": OBJECT}
        ),
        **dict.fromkeys(("web_search", "web_search_2025_08_26"), _WEB_SEARCH),
        **dict.fromkeys(("web_search_preview", "web_search_preview_2025_03_11"), _WEB_SEARCH_PREVIEW),
        "file_search": struct(
            required={"vector_store_ids": TEXTS},
            optional={"max_num_results": Number(at_least=1, at_most=50, whole=True), "ranking_options": OBJECT},
            nullable={"filters": OBJECT},
        ),
        "code_interpreter": struct(
            required={"container": ByType({"string": TEXT, "object": _CONTAINER})},
            nullable={"allowed_callers": _CALLERS},
        ),
        "image_generation": _IMAGE_GENERATION,
        "mcp": _MCP,
        "computer": struct(),
        "computer_use_preview": struct(
            required={
                "display_width": INTEGER,
                "display_height": INTEGER,
                "environment": choice("windows", "mac", "linux", "ubuntu", "browser"),
            }
        ),
        "local_shell": struct(),
        "shell": struct(nullable={"environment": _SHELL_ENVIRONMENT, "allowed_callers": _CALLERS}),
        "apply_patch": struct(nullable={"allowed_callers": _CALLERS}),
        "programmatic_tool_calling": struct(),
    },
)

# `web_search` is not among them.
HOSTED_CHOICES = (
    "file_search",
    "web_search_preview",
    "web_search_preview_2025_03_11",
    "computer",
    "computer_use",
    "computer_use_preview",
    "code_interpreter",
    "image_generation",
)
_NAMED = struct(required={"name": NAME})
_CHOSEN: dict[str, Shape] = {
    "function": _NAMED,
    "custom": _NAMED,
    "mcp": struct(required={"server_label": TEXT}, nullable={"name": TEXT}),
    **{kind: struct() for kind in (*HOSTED_CHOICES, "shell", "apply_patch", "programmatic_tool_calling")},
}
_ALLOWED = struct(
    # What may be listed here is a looser set than what may be chosen: the tools themselves, by type and name.
    required={
        "mode": choice("auto", "required"),
        "tools": Array(open_tagged("type", {"function": _NAMED, "custom": _NAMED}), at_least=1),
    }
)
TOOL_CHOICE = ByType(
    {
        "string": choice("none", "auto", "required"),
        "object": tagged("type", {**_CHOSEN, "allowed_tools": _ALLOWED}),
    }
)

# --- input items --------------------------------------------------------------------------------------------------

_OUTPUT = ByType({"string": Text(at_most=10_485_760), "array": Array(INPUT_PART)})
_CALLER = tagged("type", {"direct": struct(), "program": struct(required={"caller_id": TEXT})})
_ID: dict[str, Shape] = {"id": ITEM_ID}
_SUMMARY = Array(tagged("type", {"summary_text": struct(required={"text": TEXT})}))
_REASONING_TEXT = Array(tagged("type", {"reasoning_text": struct(required={"text": TEXT})}))
_SEARCH_ACTION = tagged(
    "type",
    {
        # The server emits `sources` and refuses it (reported), except as null (4 recordings, e.g. 6a642a89d73c).
        "search": struct(optional={"query": TEXT, "queries": TEXTS}, nullable={"sources": Array(ANYTHING, at_most=0)}),
        "open_page": struct(nullable={"url": TEXT}),
        "find_in_page": struct(required={"pattern": TEXT, "url": TEXT}),
        "find": struct(required={"pattern": TEXT, "url": TEXT}),
    },
)
_CODE_OUTPUTS = Array(
    tagged("type", {"logs": struct(required={"logs": TEXT}), "image": struct(required={"url": TEXT})})
)
_SAFETY_CHECKS = Array(struct(required={"id": TEXT}, nullable={"code": TEXT, "message": TEXT}))
_SHELL_OUTPUT = Array(
    struct(
        required={
            "stdout": TEXT,
            "stderr": TEXT,
            "outcome": tagged("type", {"exit": struct(required={"exit_code": INTEGER}), "timeout": struct()}),
        }
    )
)
_PATCH = tagged(
    "type",
    {
        **dict.fromkeys(("create_file", "update_file"), struct(required={"path": TEXT, "diff": TEXT})),
        "delete_file": struct(required={"path": TEXT}),
    },
)
_CALL_STATUS: dict[str, Shape] = {"status": STATUS}

TOOL_ITEMS: dict[str, Shape] = {
    "function_call": struct(
        required={"call_id": CALL_ID, "name": NAME, "arguments": TEXT},
        optional={**_ID, "async": BOOLEAN},
        nullable={**_CALL_STATUS, "namespace": TEXT, "caller": _CALLER},
    ),
    # `call_id` is optional in the type; a rule asks for it, since nothing else ties it to a call.
    "function_call_output": struct(
        required={"output": _OUTPUT},
        nullable={**_ID, **_CALL_STATUS, "call_id": CALL_ID, "name": NAME, "namespace": TEXT, "caller": _CALLER},
    ),
    "custom_tool_call": struct(
        required={"call_id": CALL_ID, "name": NAME, "input": TEXT},
        optional={**_ID, "async": BOOLEAN},
        nullable={**_CALL_STATUS, "namespace": TEXT, "caller": _CALLER},
    ),
    "custom_tool_call_output": struct(
        required={"call_id": CALL_ID, "output": _OUTPUT}, optional=_ID, nullable={**_CALL_STATUS, "caller": _CALLER}
    ),
    "tool_search_call": struct(
        required={"arguments": OBJECT},
        nullable={**_ID, **_CALL_STATUS, "call_id": CALL_ID, "execution": choice("server", "client")},
    ),
    "tool_search_output": struct(
        required={"tools": Array(TOOL)},
        nullable={**_ID, **_CALL_STATUS, "call_id": CALL_ID, "execution": choice("server", "client")},
    ),
    "computer_call": struct(
        required={"id": ITEM_ID, "call_id": CALL_ID, "pending_safety_checks": _SAFETY_CHECKS, "status": STATUS},
        optional={"action": OBJECT, "actions": Array(OBJECT)},
    ),
    "computer_call_output": struct(
        required={
            "call_id": CALL_ID,
            "output": tagged("type", {"computer_screenshot": struct(optional={"image_url": TEXT, "file_id": TEXT})}),
        },
        nullable={**_ID, **_CALL_STATUS, "acknowledged_safety_checks": _SAFETY_CHECKS},
    ),
    "local_shell_call": struct(
        required={
            "id": ITEM_ID,
            "call_id": CALL_ID,
            "status": STATUS,
            "action": struct(
                required={"type": choice("exec"), "command": TEXTS, "env": Map(TEXT)},
                nullable={"timeout_ms": INTEGER, "user": TEXT, "working_directory": TEXT},
            ),
        }
    ),
    "local_shell_call_output": struct(required={"id": ITEM_ID, "output": TEXT}, nullable=_CALL_STATUS),
    "shell_call": struct(
        required={
            "call_id": CALL_ID,
            "action": struct(required={"commands": TEXTS}, nullable={"max_output_length": COUNT, "timeout_ms": COUNT}),
        },
        nullable={**_ID, **_CALL_STATUS, "environment": OBJECT, "caller": _CALLER},
    ),
    "shell_call_output": struct(
        required={"call_id": CALL_ID, "output": _SHELL_OUTPUT},
        nullable={**_ID, **_CALL_STATUS, "max_output_length": COUNT, "caller": _CALLER},
    ),
    "apply_patch_call": struct(
        required={"call_id": CALL_ID, "status": choice("in_progress", "completed"), "operation": _PATCH},
        nullable={**_ID, "caller": _CALLER},
    ),
    "apply_patch_call_output": struct(
        required={"call_id": CALL_ID, "status": choice("completed", "failed")},
        nullable={**_ID, "output": TEXT, "caller": _CALLER},
    ),
    "program": struct(required={"id": ITEM_ID, "call_id": CALL_ID, "code": TEXT, "fingerprint": TEXT}),
    "program_output": struct(
        required={"id": ITEM_ID, "call_id": CALL_ID, "result": TEXT, "status": choice("completed", "incomplete")}
    ),
}

HOSTED_ITEMS: dict[str, Shape] = {
    "file_search_call": struct(
        required={
            "id": ITEM_ID,
            "queries": TEXTS,
            "status": choice("in_progress", "searching", "completed", "incomplete", "failed"),
        },
        nullable={"results": Array(OBJECT)},
    ),
    "web_search_call": struct(
        required={
            "id": ITEM_ID,
            "status": choice("in_progress", "searching", "completed", "failed"),
            "action": _SEARCH_ACTION,
        }
    ),
    "code_interpreter_call": struct(
        required={
            "id": ITEM_ID,
            "container_id": TEXT,
            "code": OrNull(TEXT),
            "status": choice("in_progress", "completed", "incomplete", "interpreting", "failed"),
        },
        # Required by the type, yet left out and accepted (recording 9fecfb26f7c7).
        nullable={"outputs": _CODE_OUTPUTS},
    ),
    # Only `type` and `id` were sent and accepted (4 recordings, e.g. 7efb861dcf82).
    "image_generation_call": struct(
        required={"id": ITEM_ID},
        optional={"status": choice("in_progress", "completed", "generating", "failed")},
        nullable={
            "result": TEXT,
            **dict.fromkeys(("action", "background", "output_format", "quality", "revised_prompt", "size"), TEXT),
        },
    ),
    "mcp_list_tools": struct(
        required={
            "id": ITEM_ID,
            "server_label": TEXT,
            "tools": Array(
                struct(
                    required={"name": TEXT, "input_schema": OBJECT},
                    nullable={"description": TEXT, "annotations": OBJECT},
                )
            ),
        },
        nullable={"error": ANYTHING},
    ),
    "mcp_approval_request": struct(required={"id": ITEM_ID, "server_label": TEXT, "name": TEXT, "arguments": TEXT}),
    "mcp_approval_response": struct(
        required={"approval_request_id": TEXT, "approve": BOOLEAN}, nullable={**_ID, "reason": TEXT}
    ),
    "mcp_call": struct(
        required={"id": ITEM_ID, "server_label": TEXT, "name": TEXT, "arguments": TEXT},
        optional={"status": choice("in_progress", "completed", "incomplete", "calling", "failed")},
        nullable={"output": TEXT, "error": ANYTHING, "approval_request_id": TEXT},
    ),
}

_REFERENCE = struct(required={"id": TEXT}, optional={"type": ANYTHING})

OTHER_ITEMS: dict[str, Shape] = {
    # `id` is required by the type; 46 recorded replays under `store: false` went without it. `status`, which servers
    # other than OpenAI emit, is refused ("Unknown parameter: 'input[1].status'", reported).
    "reasoning": struct(
        required={"summary": _SUMMARY},
        optional=_ID,
        # Codex CLI says `content: null` of every thought that it gives back.
        nullable={"encrypted_content": TEXT, "content": _REASONING_TEXT},
    ),
    "additional_tools": struct(required={"role": choice("developer"), "tools": Array(TOOL)}, nullable=_ID),
    "configuration_update": struct(
        optional={
            "reasoning": struct(nullable={"effort": TEXT}),
            "text": struct(nullable={"format": OBJECT}),
        },
        nullable=_ID,
    ),
    "compaction": struct(required={"encrypted_content": Text(at_most=20_971_520)}, nullable=_ID),
    "compaction_trigger": struct(),
    "item_reference": _REFERENCE,
}

_TYPED_ITEM = tagged("type", {"message": MESSAGE, **TOOL_ITEMS, **HOSTED_ITEMS, **OTHER_ITEMS}, default="message")


@dataclass(frozen=True, slots=True)
class Item:
    """An item without a `type` is a message or, if it has an id and no role, a reference."""

    def read(self, reader: Reader, path: Path, value: object) -> object:
        if isinstance(value, Mapping) and value.get("type") is None and "role" not in value and "id" in value:
            return _REFERENCE.read(reader, path, value)
        return _TYPED_ITEM.read(reader, path, value)


ITEM = Item()

# --- the request --------------------------------------------------------------------------------------------------

INCLUDABLE = (
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
)
TEXT_FORMAT = tagged(
    "type",
    {
        "text": struct(),
        "json_object": struct(),
        "json_schema": struct(
            required={"name": TOOL_NAME, "schema": OBJECT}, optional={"description": TEXT}, nullable={"strict": BOOLEAN}
        ),
    },
)
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_SUMMARIES = choice("concise", "detailed", "auto")
_REASONING = struct(
    optional={"mode": TEXT},
    nullable={
        "effort": choice(*EFFORTS),
        "summary": _SUMMARIES,
        "generate_summary": _SUMMARIES,
        "context": choice("auto", "current_turn", "all_turns"),
    },
)
_MODE = struct(optional={"mode": choice("score", "block")})
_PROMPT = struct(
    required={"id": TEXT},
    nullable={"version": TEXT, "variables": Map(ByType({"string": TEXT, "object": INPUT_PART}))},
)

REQUEST = struct(
    optional={
        "model": TEXT,
        "input": ByType({"string": TEXT, "array": Array(ITEM)}),
        "text": struct(optional={"format": TEXT_FORMAT}, nullable={"verbosity": choice("low", "medium", "high")}),
        # An empty array was accepted (14 recordings, e.g. 542023892eb0).
        "tools": Array(TOOL, at_most=128),
        "user": TEXT,
        "image": struct(optional={"context_compression": choice("auto", "enabled", "disabled")}),
        "access_programs": OBJECT,
        "prompt_cache_options": struct(
            optional={"mode": choice("implicit", "explicit"), "ttl": choice("30m", "12h"), "prewarm": ANYTHING},
            nullable={"comparison_response_id": TEXT},
        ),
    },
    nullable={
        # null is not in its type, yet was accepted (2 recordings, e.g. ec836671c418).
        "tool_choice": TOOL_CHOICE,
        "instructions": TEXT,
        "previous_response_id": TEXT,
        "conversation": ByType({"string": TEXT, "object": struct(required={"id": TEXT})}),
        "prompt": _PROMPT,
        "store": BOOLEAN,
        "background": BOOLEAN,
        "stream": BOOLEAN,
        "stream_options": struct(optional={"include_obfuscation": BOOLEAN}),
        "include": Array(choice(*INCLUDABLE)),
        "max_output_tokens": Number(at_least=16, whole=True),
        "max_tool_calls": Number(at_least=1, whole=True),
        "parallel_tool_calls": BOOLEAN,
        "temperature": Number(at_least=0, at_most=2),
        "top_p": Number(at_least=0, at_most=1),
        "top_logprobs": Number(at_least=0, at_most=20, whole=True),
        "reasoning": _REASONING,
        "truncation": choice("auto", "disabled"),
        "context_management": Array(
            struct(
                required={"type": choice("compaction")},
                nullable={"compact_threshold": Number(at_least=1000, whole=True)},
            ),
            at_least=1,
        ),
        "service_tier": choice("auto", "default", "flex", "scale", "priority", "fast", "ultrafast"),
        "metadata": Map(Text(at_most=512), at_most=16),
        # In no document, yet every request of Codex CLI has it; one of its values is JSON of a kilobyte.
        "client_metadata": Map(TEXT),
        "safety_identifier": Text(at_most=128),
        "prompt_cache_key": TEXT,
        "prompt_cache_retention": choice("in_memory", "24h"),
        "moderation": struct(
            required={"model": TEXT}, nullable={"policy": struct(nullable={"input": _MODE, "output": _MODE})}
        ),
    },
)

# --- the response -------------------------------------------------------------------------------------------------

_ANSWERED_ID: dict[str, Shape] = {"id": Text(at_least=1)}
_ANSWER = struct(
    required={
        **_ANSWERED_ID,
        "role": choice("assistant"),
        "content": Array(
            open_tagged(
                "type",
                {
                    "output_text": struct(
                        required={"text": TEXT, "annotations": Array(_ANNOTATION)},
                        nullable={"logprobs": Array(struct(required={"token": TEXT, "logprob": NUMBER}))},
                    ),
                    "refusal": struct(required={"refusal": TEXT}),
                },
            )
        ),
        "status": STATUS,
    },
    nullable={"phase": TEXT},
)
OUTPUT_ITEM = open_tagged(
    "type",
    {
        "message": _ANSWER,
        "function_call": struct(
            required={"call_id": Text(at_least=1), "name": TEXT, "arguments": TEXT},
            optional=_ANSWERED_ID,
            nullable={"status": STATUS},
        ),
        "custom_tool_call": struct(
            required={"call_id": Text(at_least=1), "name": TEXT, "input": TEXT}, optional=_ANSWERED_ID
        ),
        "reasoning": struct(
            required={**_ANSWERED_ID, "summary": _SUMMARY},
            nullable={"content": _REASONING_TEXT, "encrypted_content": TEXT, "status": STATUS},
        ),
    },
)
USAGE = struct(
    required={"input_tokens": COUNT, "output_tokens": COUNT, "total_tokens": COUNT},
    nullable={
        "input_tokens_details": struct(nullable={"cached_tokens": COUNT, "cache_write_tokens": COUNT}),
        "output_tokens_details": struct(nullable={"reasoning_tokens": COUNT}),
    },
)
STATUSES = ("completed", "failed", "in_progress", "cancelled", "queued", "incomplete")
RESPONSE = struct(
    required={
        **_ANSWERED_ID,
        "object": choice("response"),
        "created_at": NUMBER,
        "model": TEXT,
        "output": Array(OUTPUT_ITEM),
        "status": choice(*STATUSES),
    },
    nullable={
        "error": struct(required={"code": TEXT, "message": TEXT}),
        "incomplete_details": struct(nullable={"reason": TEXT}),
        "usage": USAGE,
        "completed_at": NUMBER,
        "instructions": ByType({"string": TEXT, "array": Array(ANYTHING)}),
        "tools": Array(OBJECT),
        "metadata": OBJECT,
    },
)
