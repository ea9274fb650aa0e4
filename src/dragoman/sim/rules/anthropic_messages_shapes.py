"""The typed objects of Anthropic Messages, and the server's error messages for violations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dragoman.sim.rules.common import (
    ANYTHING,
    BOOLEAN,
    COUNT,
    INTEGER,
    NON_EMPTY,
    OBJECT,
    TEXT,
    TEXTS,
    Array,
    ByType,
    Dialect,
    Fault,
    Later,
    Map,
    Number,
    OrNull,
    Path,
    Reader,
    Shape,
    Struct,
    Tagged,
    Text,
    choice,
    dotted_path,
    open_tagged,
    struct,
    tagged,
    text_or_array,
)

INVALID_REQUEST = "invalid_request_error"

DIALECT = Dialect(
    spell=dotted_path,
    type_names={"object": "dictionary", "array": "list"},
    wording={
        fault: (template, INVALID_REQUEST)
        for fault, template in {
            Fault.UNKNOWN_KEY: "{where}: Extra inputs are not permitted",
            Fault.MISSING: "{where}: Field required",
            Fault.NULL: "{where}: Input should be a valid {expected}",
            Fault.WRONG_TYPE: "{where}: Input should be a valid {expected}",
            Fault.NOT_ONE_OF: "{where}: Input should be {expected}",
            Fault.UNKNOWN_TAG: (
                "{parent}: Input tag '{got}' found using '{name}' does not match any of the expected tags: {expected}"
            ),
            Fault.TOO_SMALL: "{where}: Input should be greater than or equal to {limit}",
            Fault.TOO_LARGE: "{where}: Input should be less than or equal to {limit}",
            Fault.TOO_SHORT: "{where}: String should have at least {limit} character",
            Fault.TOO_LONG: "{where}: String should have at most {limit} characters",
            Fault.TOO_FEW: "{where}: List should have at least {limit} item after validation, not {got}",
            Fault.TOO_MANY: "{where}: List should have at most {limit} items after validation, not {got}",
            Fault.PATTERN: "{where}: String should match pattern '{expected}'",
        }.items()
    },
)

# The documentation says 64, the server's own complaint 128.
TOOL_NAME = Text(pattern="^[a-zA-Z0-9_-]{1,128}$")
TOOL_USE_ID = Text(pattern="^[a-zA-Z0-9_-]+$")
SERVER_TOOL_USE_ID = Text(pattern="^srvtoolu_[a-zA-Z0-9_]+$")
MCP_TOOL_USE_ID = Text(pattern="^mcptoolu_[a-zA-Z0-9_]+$")

CACHE_CONTROL = struct(required={"type": choice("ephemeral")}, optional={"ttl": choice("5m", "1h")})
_CACHED: dict[str, Shape] = {"cache_control": CACHE_CONTROL}
_CITATIONS_SWITCH = struct(optional={"enabled": BOOLEAN})

# --- content blocks -----------------------------------------------------------------------------------------------


def _location(first: str, last: str) -> Struct:
    return struct(
        required={"cited_text": TEXT, "document_index": COUNT, first: COUNT, last: COUNT},
        # `file_id` is response-only in the types; clients send it back as it came.
        nullable={"document_title": TEXT, "file_id": TEXT},
    )


CITATION = tagged(
    "type",
    {
        "char_location": _location("start_char_index", "end_char_index"),
        "page_location": _location("start_page_number", "end_page_number"),
        "content_block_location": _location("start_block_index", "end_block_index"),
        "search_result_location": struct(
            required={
                "cited_text": TEXT,
                "search_result_index": COUNT,
                "source": TEXT,
                "start_block_index": COUNT,
                "end_block_index": COUNT,
            },
            nullable={"title": TEXT},
        ),
        "web_search_result_location": struct(
            required={"cited_text": TEXT, "url": TEXT, "encrypted_index": TEXT}, nullable={"title": TEXT}
        ),
    },
)

_URL_SOURCE = struct(required={"url": TEXT})
_FILE_SOURCE = struct(required={"file_id": TEXT})
IMAGE_MEDIA_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")

TEXT_BLOCK = struct(required={"text": TEXT}, nullable={**_CACHED, "citations": Array(CITATION)})
IMAGE_BLOCK = struct(
    required={
        "source": tagged(
            "type",
            {
                "base64": struct(required={"media_type": choice(*IMAGE_MEDIA_TYPES), "data": TEXT}),
                "url": _URL_SOURCE,
                "file": _FILE_SOURCE,
            },
        )
    },
    nullable={**_CACHED, "transformations": struct(optional={"oversized_image": choice("downsize", "error")})},
)
DOCUMENT_BLOCK = struct(
    required={
        "source": tagged(
            "type",
            {
                "base64": struct(required={"media_type": choice("application/pdf"), "data": TEXT}),
                "text": struct(required={"media_type": choice("text/plain"), "data": TEXT}),
                "content": struct(
                    required={"content": text_or_array(tagged("type", {"text": TEXT_BLOCK, "image": IMAGE_BLOCK}))}
                ),
                "url": _URL_SOURCE,
                "file": _FILE_SOURCE,
            },
        )
    },
    nullable={**_CACHED, "title": TEXT, "context": TEXT, "citations": _CITATIONS_SWITCH},
)
SEARCH_RESULT_BLOCK = struct(
    required={"source": TEXT, "title": TEXT, "content": Array(tagged("type", {"text": TEXT_BLOCK}), at_least=1)},
    nullable={**_CACHED, "citations": _CITATIONS_SWITCH},
)

RESULT_BLOCK = tagged(
    "type",
    {
        "text": TEXT_BLOCK,
        "image": IMAGE_BLOCK,
        "document": DOCUMENT_BLOCK,
        "search_result": SEARCH_RESULT_BLOCK,
        "tool_reference": struct(required={"tool_name": TEXT}, nullable=_CACHED),
        "browser_state": OBJECT,
    },
)

CODE_CALLERS = ("code_execution_20250825", "code_execution_20260120", "code_execution_20260521")
_CALLER = tagged("type", {"direct": struct(), **{name: struct(required={"tool_id": TEXT}) for name in CODE_CALLERS}})

SERVER_TOOLS = (
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search_tool_regex",
    "tool_search_tool_bm25",
    "advisor",
)


def _error(*, explained: bool = False) -> Struct:
    return struct(required={"error_code": TEXT}, nullable={"error_message": TEXT} if explained else {})


def _server_result(contents: Mapping[str, Shape], *, array: Shape | None = None) -> Struct:
    content: Shape = tagged("type", contents)
    if array is not None:
        content = ByType({"array": Array(array), "object": content})
    return struct(
        required={"tool_use_id": SERVER_TOOL_USE_ID, "content": content}, optional={"caller": _CALLER}, nullable=_CACHED
    )


def _execution(output: str) -> Struct:
    return struct(
        required={
            "stdout": TEXT,
            "stderr": TEXT,
            "return_code": INTEGER,
            "content": Array(tagged("type", {output: struct(required={"file_id": TEXT})})),
        },
        # Sent back as it came (recording 18f8484455d4).
        nullable={"abort_reason": TEXT},
    )


_WEB_SEARCH_RESULT = struct(
    required={"url": TEXT, "title": TEXT, "encrypted_content": TEXT}, nullable={"page_age": TEXT}
)
_TOOL_SEARCH_RESULT = struct(
    required={"tool_references": Array(tagged("type", {"tool_reference": struct(required={"tool_name": TEXT})}))}
)
_EDITOR_VIEW = struct(
    required={"file_type": TEXT, "content": TEXT},
    nullable={"num_lines": COUNT, "start_line": COUNT, "total_lines": COUNT},
)
_EDITOR_REPLACE = struct(
    nullable={"old_start": COUNT, "old_lines": COUNT, "new_start": COUNT, "new_lines": COUNT, "lines": TEXTS}
)
_ADVISOR_STOP: dict[str, Shape] = {"stop_reason": TEXT}

SERVER_RESULTS: dict[str, Struct] = {
    "web_search_tool_result": _server_result(
        {"web_search_tool_result_error": _error()}, array=tagged("type", {"web_search_result": _WEB_SEARCH_RESULT})
    ),
    "web_fetch_tool_result": _server_result(
        {
            "web_fetch_result": struct(
                required={"url": TEXT, "content": tagged("type", {"document": DOCUMENT_BLOCK})},
                nullable={"retrieved_at": TEXT},
            ),
            "web_fetch_tool_result_error": _error(),
        }
    ),
    "code_execution_tool_result": _server_result(
        {
            "code_execution_result": _execution("code_execution_output"),
            "encrypted_code_execution_result": struct(
                required={
                    "encrypted_stdout": TEXT,
                    "stderr": TEXT,
                    "return_code": INTEGER,
                    "content": Array(ANYTHING),
                },
                nullable={"abort_reason": TEXT},
            ),
            "code_execution_tool_result_error": _error(),
        }
    ),
    "bash_code_execution_tool_result": _server_result(
        {
            "bash_code_execution_result": _execution("bash_code_execution_output"),
            "bash_code_execution_tool_result_error": _error(),
        }
    ),
    "text_editor_code_execution_tool_result": _server_result(
        {
            "text_editor_code_execution_view_result": _EDITOR_VIEW,
            "text_editor_code_execution_create_result": struct(required={"is_file_update": BOOLEAN}),
            "text_editor_code_execution_str_replace_result": _EDITOR_REPLACE,
            "text_editor_code_execution_tool_result_error": _error(explained=True),
        }
    ),
    "tool_search_tool_result": _server_result(
        {
            "tool_search_tool_search_result": _TOOL_SEARCH_RESULT,
            "tool_search_tool_result_error": _error(explained=True),
        }
    ),
    "advisor_tool_result": _server_result(
        {
            "advisor_result": struct(required={"text": TEXT}, nullable=_ADVISOR_STOP),
            "advisor_redacted_result": struct(required={"encrypted_content": TEXT}, nullable=_ADVISOR_STOP),
            "advisor_tool_result_error": _error(),
        }
    ),
}

_MCP_TOOL = struct(required={"name": TEXT, "input_schema": OBJECT}, nullable={"description": TEXT})
_CHANGED_TOOL: dict[str, Shape] = {
    "tool_reference": struct(required={"name": TEXT}),
    "mcp_tool_reference": struct(required={"server_name": TEXT, "name": TEXT}),
    "mcp_toolset_reference": struct(required={"server_name": TEXT}),
}
_ADDED_TOOL = {**_CHANGED_TOOL, "tool_definition": struct(required={"definition": Later(lambda: TOOL)})}
_MODEL = struct(required={"model": TEXT})

BLOCK = tagged(
    "type",
    {
        "text": TEXT_BLOCK,
        "image": IMAGE_BLOCK,
        "document": DOCUMENT_BLOCK,
        "search_result": SEARCH_RESULT_BLOCK,
        "container_upload": struct(required={"file_id": TEXT}, nullable=_CACHED),
        "tool_use": struct(
            required={"id": TOOL_USE_ID, "name": TOOL_NAME, "input": OBJECT},
            optional={"caller": _CALLER},
            nullable={**_CACHED, "toolset_name": TEXT},
        ),
        "tool_result": struct(
            required={"tool_use_id": TOOL_USE_ID},
            optional={"content": text_or_array(RESULT_BLOCK), "is_error": BOOLEAN},
            nullable={**_CACHED, "toolset_name": TEXT},
        ),
        # No cache_control here: thinking cannot carry one.
        "thinking": struct(required={"thinking": TEXT, "signature": NON_EMPTY}),
        "redacted_thinking": struct(required={"data": NON_EMPTY}),
        "server_tool_use": struct(
            required={"id": SERVER_TOOL_USE_ID, "name": choice(*SERVER_TOOLS), "input": OBJECT},
            optional={"caller": _CALLER},
            nullable=_CACHED,
        ),
        **SERVER_RESULTS,
        "mcp_tool_use": struct(
            required={"id": MCP_TOOL_USE_ID, "name": TEXT, "server_name": TEXT, "input": OBJECT}, nullable=_CACHED
        ),
        "mcp_tool_result": struct(
            required={"tool_use_id": MCP_TOOL_USE_ID},
            optional={"is_error": BOOLEAN, "content": text_or_array(tagged("type", {"text": TEXT_BLOCK}))},
            nullable=_CACHED,
        ),
        "mcp_tool_listing": struct(required={"mcp_server_name": TEXT, "tools": Array(_MCP_TOOL)}, nullable=_CACHED),
        "compaction": struct(
            required={"content": OrNull(NON_EMPTY)},
            nullable={
                **_CACHED,
                "encrypted_content": TEXT,
                "signature": TEXT,
                "tool_changes": Array(ANYTHING),
            },
        ),
        "fallback": struct(required={"from": _MODEL, "to": _MODEL}, nullable={"trigger": OBJECT}),
        "tool_addition": struct(required={"tool": tagged("type", _ADDED_TOOL)}, nullable=_CACHED),
        "tool_removal": struct(required={"tool": tagged("type", _CHANGED_TOOL)}, nullable=_CACHED),
        # Named in the documentation, typed nowhere.
        "connector_text": OBJECT,
    },
)

# --- tools --------------------------------------------------------------------------------------------------------

_CALLERS = Array(choice("direct", *CODE_CALLERS))
_TOOL_FIELDS: dict[str, Shape] = {"defer_loading": BOOLEAN, "strict": BOOLEAN, "allowed_callers": _CALLERS}
_EXAMPLES: dict[str, Shape] = {"input_examples": Array(OBJECT)}


_OBJECT_TYPE = struct(required={"type": choice("object")})


@dataclass(frozen=True, slots=True)
class _ObjectSchema:
    """`input_schema`: any keyword, but `type` has to be there and to say `object`."""

    def read(self, reader: Reader, path: Path, value: object) -> object:
        if isinstance(value, Mapping):
            _OBJECT_TYPE.read(reader, path, {key: value[key] for key in value if key == "type"})
        else:
            reader.wrong_type(path, value, "object")
        return value


INPUT_SCHEMA = _ObjectSchema()


def _built_in(
    name: str, extra: Mapping[str, Shape] | None = None, required: Mapping[str, Shape] | None = None
) -> Struct:
    return struct(
        required={"name": choice(name), **(required or {})},
        optional=_TOOL_FIELDS,
        nullable={**_CACHED, **(extra or {})},
    )


_LOCATION = struct(
    required={"type": choice("approximate")}, nullable={"city": TEXT, "region": TEXT, "country": TEXT, "timezone": TEXT}
)
_DOMAINS: dict[str, Shape] = {"allowed_domains": TEXTS, "blocked_domains": TEXTS, "max_uses": COUNT}
_SEARCH = {**_DOMAINS, "user_location": _LOCATION}
_FETCH = {**_DOMAINS, "citations": _CITATIONS_SWITCH, "max_content_tokens": COUNT, "url_sources": Array(ANYTHING)}
_INCLUSION: dict[str, Shape] = {"response_inclusion": choice("full", "excluded")}
_CACHE_SWITCH: dict[str, Shape] = {"use_cache": BOOLEAN}
_SCREEN: dict[str, Shape] = {"display_width_px": COUNT, "display_height_px": COUNT}
_DISPLAY: dict[str, Shape] = {**_EXAMPLES, "display_number": COUNT}
_TOOLSET = struct(optional={"configs": Map(OBJECT), "allowed_callers": Array(choice("direct"))}, nullable=_CACHED)
_EDITOR = "str_replace_based_edit_tool"

_POINTER = (
    "screenshot zoom left_click right_click middle_click double_click triple_click left_click_drag left_mouse_down "
    "left_mouse_up mouse_move scroll type key hold_key wait"
)
_BROWSER = (
    "navigate list_tabs new_tab switch_tab close_tab read_page get_page_text read_console read_network find form_input "
    "file_upload scroll_to hover javascript_exec"
)
TOOLSETS = {"computer_toolset_20260801": "computer", "browser_toolset_20260801": "browser"}
TOOLSET_MEMBERS: Mapping[str, frozenset[str]] = {
    "computer_toolset_20260801": frozenset(f"{_POINTER} cursor_position".split()),
    "browser_toolset_20260801": frozenset(f"{_POINTER} {_BROWSER}".split()),
}

TOOL: Tagged = tagged(
    "type",
    {
        "custom": struct(
            required={"name": TOOL_NAME, "input_schema": INPUT_SCHEMA},
            optional={"description": TEXT, **_TOOL_FIELDS, **_EXAMPLES},
            nullable={**_CACHED, "eager_input_streaming": BOOLEAN},
        ),
        **{f"bash_{date}": _built_in("bash", _EXAMPLES) for date in ("20241022", "20250124")},
        **{f"text_editor_{date}": _built_in("str_replace_editor", _EXAMPLES) for date in ("20241022", "20250124")},
        "text_editor_20250429": _built_in(_EDITOR, _EXAMPLES),
        "text_editor_20250728": _built_in(_EDITOR, {**_EXAMPLES, "max_characters": COUNT}),
        "memory_20250818": _built_in("memory", _EXAMPLES),
        **{f"computer_{date}": _built_in("computer", _DISPLAY, _SCREEN) for date in ("20241022", "20250124")},
        "computer_20251124": _built_in("computer", {**_DISPLAY, "enable_zoom": BOOLEAN}, _SCREEN),
        **dict.fromkeys(TOOLSETS, _TOOLSET),
        **{f"web_search_{date}": _built_in("web_search", _SEARCH) for date in ("20250305", "20260209")},
        "web_search_20260318": _built_in("web_search", {**_SEARCH, **_INCLUSION}),
        **{f"web_fetch_{date}": _built_in("web_fetch", _FETCH) for date in ("20250910", "20260209")},
        "web_fetch_20260309": _built_in("web_fetch", {**_FETCH, **_CACHE_SWITCH}),
        "web_fetch_20260318": _built_in("web_fetch", {**_FETCH, **_CACHE_SWITCH, **_INCLUSION}),
        **{
            f"code_execution_{date}": _built_in("code_execution")
            for date in ("20250522", "20250825", "20260120", "20260521")
        },
        **{f"{name}{date}": _built_in(name) for name in SERVER_TOOLS[5:7] for date in ("", "_20251119")},
        "advisor_20260301": _built_in(
            "advisor", {"max_tokens": COUNT, "max_uses": COUNT, "caching": OBJECT}, _MODEL.fields
        ),
        "mcp_toolset": struct(
            required={"mcp_server_name": TEXT},
            nullable={
                **_CACHED,
                "default_config": struct(optional={"enabled": BOOLEAN, "defer_loading": BOOLEAN}),
                "configs": Map(OBJECT),
                "tools": Array(_MCP_TOOL),
            },
        ),
    },
    default="custom",
)

_PARALLEL: dict[str, Shape] = {"disable_parallel_tool_use": BOOLEAN}
TOOL_CHOICE = tagged(
    "type",
    {
        "auto": struct(optional=_PARALLEL),
        "any": struct(optional=_PARALLEL),
        "tool": struct(required={"name": TEXT}, optional=_PARALLEL),
        "none": struct(),
    },
)

# --- settings -----------------------------------------------------------------------------------------------------

_BINDING = struct(optional={"prefix_mismatch_behavior": choice("error", "drop_block")})
_DISPLAY_MODES = choice("summarized", "omitted", "updates")
THINKING = tagged(
    "type",
    {
        "enabled": struct(
            required={"budget_tokens": Number(at_least=1024, whole=True)},
            nullable={"display": _DISPLAY_MODES, "block_binding": _BINDING},
        ),
        "adaptive": struct(nullable={"display": _DISPLAY_MODES, "block_binding": _BINDING}),
        "disabled": struct(),
        "between_tools": struct(),
    },
)

EFFORT = choice("low", "medium", "high", "xhigh", "max")
_FORMAT = tagged("type", {"json_schema": struct(required={"schema": OBJECT})})
OUTPUT_CONFIG = struct(
    nullable={
        "effort": EFFORT,
        "format": _FORMAT,
        "task_budget": struct(required={"type": choice("tokens"), "total": COUNT}, nullable={"remaining": COUNT}),
    }
)


def _amount(*kinds: str, at_least: int = 0) -> Struct:
    return struct(required={"type": choice(*kinds), "value": Number(at_least=at_least, whole=True)})


_KEEP_THINKING = ByType(
    {
        "string": choice("all"),
        "object": tagged(
            "type", {"all": struct(), "thinking_turns": struct(required={"value": Number(at_least=1, whole=True)})}
        ),
    }
)
EDIT = tagged(
    "type",
    {
        "clear_thinking_20251015": struct(optional={"keep": _KEEP_THINKING}),
        "clear_tool_uses_20250919": struct(
            nullable={
                "trigger": _amount("input_tokens", "tool_uses"),
                "keep": _amount("tool_uses"),
                "clear_at_least": _amount("input_tokens"),
                "exclude_tools": TEXTS,
                "clear_tool_inputs": ByType({"boolean": BOOLEAN, "array": TEXTS}),
            }
        ),
        "compact_20260112": struct(
            nullable={
                "trigger": _amount("input_tokens", at_least=50_000),
                "instructions": TEXT,
                "pause_after_compaction": BOOLEAN,
            }
        ),
    },
)

_SKILL = struct(required={"type": choice("anthropic", "custom"), "skill_id": TEXT}, nullable={"version": TEXT})
_FALLBACK = struct(
    required={"model": TEXT},
    nullable={
        "max_tokens": COUNT,
        "thinking": THINKING,
        "output_config": OUTPUT_CONFIG,
        "speed": choice("standard", "fast"),
    },
)
_SERVER = struct(
    required={"type": choice("url"), "url": Text(pattern="^https://.+$"), "name": TEXT},
    nullable={
        "authorization_token": TEXT,
        "tool_configuration": struct(nullable={"enabled": BOOLEAN, "allowed_tools": TEXTS}),
    },
)

MESSAGE = struct(
    required={"role": choice("user", "assistant", "system"), "content": text_or_array(BLOCK)},
    optional={
        "clear_at": choice("next_user_message", "never"),
        "output_config": struct(nullable={"effort": EFFORT}),
    },
)

_UNIT = Number(at_least=0, at_most=1)
REQUEST = struct(
    required={"model": NON_EMPTY, "max_tokens": COUNT, "messages": Array(MESSAGE, at_least=1, at_most=100_000)},
    optional={
        "system": text_or_array(tagged("type", {"text": TEXT_BLOCK})),
        "tools": Array(TOOL),
        "tool_choice": TOOL_CHOICE,
        "thinking": THINKING,
        "output_config": OUTPUT_CONFIG,
        "stop_sequences": TEXTS,
        "stream": BOOLEAN,
        "temperature": _UNIT,
        "top_p": _UNIT,
        "top_k": COUNT,
        "metadata": struct(nullable={"user_id": TEXT}),
        "service_tier": choice("auto", "standard_only"),
    },
    nullable={
        "output_format": _FORMAT,
        "cache_control": CACHE_CONTROL,
        "container": ByType({"string": TEXT, "object": struct(nullable={"id": TEXT, "skills": Array(_SKILL)})}),
        "billing_policy": struct(
            required={"type": choice("billing_policy")}, nullable={"bill_to": choice("self", "user_profile")}
        ),
        "inference_geo": TEXT,
        "speed": choice("standard", "fast"),
        "diagnostics": struct(nullable={"previous_message_id": TEXT}),
        "context_management": struct(nullable={"edits": Array(EDIT)}),
        "compaction": struct(required={"type": choice("summarize")}, nullable={"instructions": TEXT}),
        "mcp_servers": Array(_SERVER),
        "fallbacks": ByType({"string": choice("default"), "array": Array(_FALLBACK, at_most=3)}),
        "fallback_credit_token": ByType(
            {
                "string": TEXT,
                "object": struct(required={"token": TEXT}, nullable={"mode": choice("strict", "best_effort")}),
            }
        ),
        "thread": tagged("type", {"create": struct(), "continue": struct(required={"previous_message_id": TEXT})}),
    },
)

# --- the response -------------------------------------------------------------------------------------------------

STOP_REASONS = (
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
    "compaction",
)

ANSWER_BLOCK = open_tagged(
    "type",
    {
        "text": struct(required={"text": TEXT}, nullable={"citations": Array(CITATION)}),
        "thinking": struct(required={"thinking": TEXT, "signature": TEXT}),
        "redacted_thinking": struct(required={"data": TEXT}),
        "tool_use": struct(required={"id": NON_EMPTY, "name": NON_EMPTY, "input": OBJECT}, nullable={"caller": OBJECT}),
        "server_tool_use": struct(required={"id": NON_EMPTY, "name": NON_EMPTY, "input": OBJECT}),
        "mcp_tool_use": struct(required={"id": NON_EMPTY, "name": TEXT, "server_name": TEXT, "input": OBJECT}),
        **{name: struct(required={"tool_use_id": TEXT, "content": ANYTHING}) for name in SERVER_RESULTS},
        "mcp_tool_result": struct(required={"tool_use_id": TEXT, "is_error": BOOLEAN, "content": ANYTHING}),
        "container_upload": struct(required={"file_id": TEXT}),
        "compaction": struct(required={"content": OrNull(TEXT)}),
    },
)
USAGE = struct(
    required={"input_tokens": COUNT, "output_tokens": COUNT},
    nullable={
        "cache_creation_input_tokens": COUNT,
        "cache_read_input_tokens": COUNT,
        "cache_creation": struct(required={"ephemeral_5m_input_tokens": COUNT, "ephemeral_1h_input_tokens": COUNT}),
        "output_tokens_details": struct(nullable={"thinking_tokens": COUNT}),
        "server_tool_use": struct(nullable={"web_search_requests": COUNT, "web_fetch_requests": COUNT}),
        "service_tier": choice("standard", "priority", "batch"),
    },
)
RESPONSE = struct(
    required={
        "id": NON_EMPTY,
        "type": choice("message"),
        "role": choice("assistant"),
        "model": TEXT,
        "content": Array(ANSWER_BLOCK),
        "stop_reason": choice(*STOP_REASONS),
        "stop_sequence": OrNull(TEXT),
        "usage": USAGE,
    },
    nullable={"stop_details": OBJECT, "container": OBJECT},
)
