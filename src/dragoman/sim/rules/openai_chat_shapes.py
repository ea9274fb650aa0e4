"""The typed objects of OpenAI Chat Completions, and the server's error messages for violations."""

from __future__ import annotations

from dragoman.sim.rules.common import (
    ANYTHING,
    BOOLEAN,
    COUNT,
    INTEGER,
    NUMBER,
    OBJECT,
    TEXT,
    Array,
    ByType,
    Dialect,
    Fault,
    Map,
    Number,
    OrNull,
    Shape,
    Struct,
    Tagged,
    Text,
    bracket_path,
    choice,
    struct,
    tagged,
    text_or_array,
)

TYPE_NAMES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a decimal",
    "boolean": "a boolean",
    "array": "an array",
    "object": "an object",
}
"""How both request formats of OpenAI name JSON types."""
WORDING = {
    Fault.UNKNOWN_KEY: ("Unknown parameter: '{where}'.", "unknown_parameter"),
    Fault.MISSING: ("Missing required parameter: '{where}'.", "missing_required_parameter"),
    Fault.WRONG_TYPE: (
        "Invalid type for '{where}': expected {expected}, but got {got_type} instead.",
        "invalid_type",
    ),
    Fault.NOT_ONE_OF: ("Invalid value: '{got}'. Supported values are: {expected}.", "invalid_value"),
    Fault.UNKNOWN_TAG: ("Invalid value: '{got}'. Supported values are: {expected}.", "invalid_value"),
    Fault.TOO_SMALL: (
        "Invalid '{where}': {expected} below minimum value. Expected a value >= {limit}, but got {got} instead.",
        "{expected}_below_min_value",
    ),
    Fault.TOO_LARGE: (
        "Invalid '{where}': {expected} above maximum value. Expected a value <= {limit}, but got {got} instead.",
        "{expected}_above_max_value",
    ),
}
"""Error messages and codes that both request formats of OpenAI have."""

DIALECT = Dialect(
    spell=bracket_path,
    type_names=TYPE_NAMES,
    wording={
        **WORDING,
        Fault.NULL: ("Invalid value for '{name}': expected {expected}, got null.", None),
        Fault.TOO_SHORT: (
            "Invalid '{where}': string too short. Expected a string with minimum length {limit}.",
            "string_below_min_length",
        ),
        Fault.TOO_LONG: (
            "Invalid '{where}': string too long. Expected maximum length {limit}, but got length {got} instead.",
            "string_above_max_length",
        ),
        Fault.TOO_FEW: (
            "Invalid '{where}': empty array. Expected an array with minimum length {limit}.",
            "empty_array",
        ),
        Fault.TOO_MANY: (
            "Invalid '{where}': array too long. Expected maximum length {limit}, but got length {got} instead.",
            "array_above_max_length",
        ),
        Fault.PATTERN: (
            "Invalid '{where}': string does not match pattern. Expected a string that matches '{expected}'.",
            "invalid_value",
        ),
    },
)

NAME_PATTERN = "^[a-zA-Z0-9_-]+$"
NAME = Text(pattern=NAME_PATTERN, at_least=1, at_most=64)
# 40 is the stricter of the two limits reported; 64 is what the Responses API says.
CALL_ID = Text(at_least=1, at_most=40)

# --- content parts ------------------------------------------------------------------------------------------------

_BREAKPOINT = struct(required={"mode": choice("explicit")}, optional={"ttl": choice("30m", "12h")})
_INPUT_PART: dict[str, Shape] = {"prompt_cache_breakpoint": _BREAKPOINT}

PART = tagged(
    "type",
    {
        "text": struct(required={"text": TEXT}, optional=_INPUT_PART),
        "image_url": struct(
            required={
                # A bare string was accepted by gpt-4-vision-preview (recording a9e8768fc032), by no model since.
                "image_url": struct(
                    required={"url": TEXT}, optional={"detail": choice("auto", "low", "high", "original")}
                )
            },
            optional=_INPUT_PART,
        ),
        "input_audio": struct(
            required={"input_audio": struct(required={"data": TEXT, "format": choice("wav", "mp3")})},
            optional=_INPUT_PART,
        ),
        "file": struct(
            required={"file": struct(optional={"file_id": TEXT, "filename": TEXT, "file_data": TEXT})},
            optional=_INPUT_PART,
        ),
        "refusal": struct(required={"refusal": TEXT}),
    },
)

_CONTENT = text_or_array(PART, at_least=1)
# An empty array beside tool calls was accepted (23 recordings, e.g. 40e25e77211c); without calls a rule refuses it.
_ASSISTANT_CONTENT = OrNull(text_or_array(PART))

# --- messages -----------------------------------------------------------------------------------------------------

_FUNCTION_CALL = struct(
    required={"name": NAME, "arguments": TEXT},
    # What the SDK's parse helper leaves behind when its message is sent back: accepted (recording 040df9fcad14).
    nullable={"parsed_arguments": ANYTHING},
)
TOOL_CALL = tagged(
    "type",
    {
        # `index` is a leftover of streams, accepted (recording 040df9fcad14).
        "function": struct(required={"id": CALL_ID, "function": _FUNCTION_CALL}, optional={"index": INTEGER}),
        "custom": struct(
            required={"id": CALL_ID, "custom": struct(required={"name": NAME, "input": TEXT})},
            optional={"index": INTEGER},
        ),
    },
)

_ASSISTANT = struct(
    optional={"content": _ASSISTANT_CONTENT, "name": NAME, "tool_calls": Array(TOOL_CALL, at_least=1)},
    nullable={
        "refusal": TEXT,
        "audio": struct(required={"id": TEXT}),
        "function_call": struct(required={"name": NAME, "arguments": TEXT}),
        # Response fields sent back as they came: accepted (103 recordings, e.g. 3ffa2202f0ba; 040df9fcad14).
        "annotations": Array(ANYTHING),
        "parsed": ANYTHING,
    },
)

MESSAGE: Tagged = tagged(
    "role",
    {
        "system": struct(required={"content": _CONTENT}, optional={"name": NAME}),
        "assistant": _ASSISTANT,
        "user": struct(required={"content": _CONTENT}, optional={"name": NAME}),
        "function": struct(required={"content": OrNull(TEXT), "name": NAME}),
        # `name` is not in the type, yet accepted (62 recordings, e.g. 7c1ed61f3814).
        "tool": struct(required={"content": _CONTENT, "tool_call_id": TEXT}, optional={"name": NAME}),
        "developer": struct(required={"content": _CONTENT}, optional={"name": NAME}),
    },
)

# --- tools --------------------------------------------------------------------------------------------------------

FUNCTION: Struct = struct(
    required={"name": NAME},
    optional={"description": TEXT},
    # `parameters: null` was accepted (recording 16e79f700550).
    nullable={"parameters": OBJECT, "strict": BOOLEAN},
)

_GRAMMAR = struct(required={"definition": TEXT, "syntax": choice("lark", "regex")})
TOOL = tagged(
    "type",
    {
        # A name beside `function` was ignored (15 recordings, e.g. e22e7f3cc066).
        "function": struct(required={"function": FUNCTION}, optional={"name": TEXT}),
        "custom": struct(
            required={
                "custom": struct(
                    required={"name": NAME},
                    optional={
                        "description": TEXT,
                        "format": tagged("type", {"text": struct(), "grammar": struct(required={"grammar": _GRAMMAR})}),
                    },
                )
            }
        ),
    },
)

_NAMED = struct(required={"name": NAME})
_CHOSEN: dict[str, Struct] = {
    "function": struct(required={"function": _NAMED}),
    "custom": struct(required={"custom": _NAMED}),
}
_ALLOWED = struct(
    required={"mode": choice("auto", "required"), "tools": Array(tagged("type", _CHOSEN), at_least=1)},
)
TOOL_CHOICE = ByType(
    {
        "string": choice("none", "auto", "required"),
        "object": tagged("type", {**_CHOSEN, "allowed_tools": struct(required={"allowed_tools": _ALLOWED})}),
    }
)

RESPONSE_FORMAT = tagged(
    "type",
    {
        "text": struct(),
        "json_object": struct(),
        "json_schema": struct(
            required={
                "json_schema": struct(
                    required={"name": NAME},
                    optional={"description": TEXT, "schema": OBJECT},
                    nullable={"strict": BOOLEAN},
                )
            }
        ),
    },
)

# --- the request --------------------------------------------------------------------------------------------------

_PENALTY = Number(at_least=-2, at_most=2)
_MODE = struct(required={"mode": choice("score", "block")})
_MODERATION = struct(
    required={"model": TEXT},
    # An empty `input` was accepted (recording 588dd1557f12).
    optional={
        "policy": struct(optional={"input": struct(optional=_MODE.fields), "output": struct(optional=_MODE.fields)})
    },
)
_LOCATION = struct(
    required={
        "type": choice("approximate"),
        "approximate": struct(nullable={"city": TEXT, "country": TEXT, "region": TEXT, "timezone": TEXT}),
    }
)

REQUEST = struct(
    required={"messages": Array(MESSAGE, at_least=1)},
    optional={
        "functions": Array(FUNCTION, at_least=1, at_most=128),
        "function_call": ByType({"string": choice("none", "auto"), "object": _NAMED}),
        "parallel_tool_calls": BOOLEAN,
        "user": TEXT,
        "prompt_cache_options": struct(optional={"mode": choice("implicit", "explicit"), "ttl": choice("30m")}),
        "web_search_options": struct(
            optional={"search_context_size": choice("low", "medium", "high")}, nullable={"user_location": _LOCATION}
        ),
    },
    nullable={
        "model": TEXT,
        "stream": BOOLEAN,
        "stream_options": struct(optional={"include_usage": BOOLEAN, "include_obfuscation": BOOLEAN}),
        "max_completion_tokens": Number(at_least=1, whole=True),
        "max_tokens": Number(at_least=1, whole=True),
        "temperature": Number(at_least=0, at_most=2),
        "top_p": Number(at_least=0, at_most=1),
        "presence_penalty": _PENALTY,
        "frequency_penalty": _PENALTY,
        "logit_bias": Map(Number(at_least=-100, at_most=100)),
        "logprobs": BOOLEAN,
        "top_logprobs": Number(at_least=0, at_most=20, whole=True),
        "n": Number(at_least=1, at_most=128, whole=True),
        # The documented minimum is 1, but `stop: []` was accepted (24 recordings, e.g. a8023530dcc6).
        "stop": ByType({"string": TEXT, "array": Array(TEXT, at_most=4)}),
        "seed": INTEGER,
        # null is not in the types of these three, yet was accepted (d88d935212b2, d006924b5b28, 60d1fc0c1fb5).
        "tools": Array(TOOL, at_least=1, at_most=128),
        "tool_choice": TOOL_CHOICE,
        "response_format": RESPONSE_FORMAT,
        "reasoning_effort": choice("none", "minimal", "low", "medium", "high", "xhigh", "max"),
        "verbosity": choice("low", "medium", "high"),
        "modalities": Array(choice("text", "audio")),
        "audio": struct(
            required={
                "format": choice("wav", "aac", "mp3", "flac", "opus", "pcm16"),
                "voice": ByType({"string": TEXT, "object": struct(required={"id": TEXT})}),
            }
        ),
        "prediction": struct(required={"type": choice("content"), "content": text_or_array(PART, at_least=1)}),
        "service_tier": choice("auto", "default", "flex", "scale", "priority", "fast"),
        "store": BOOLEAN,
        "metadata": Map(Text(at_most=512), at_most=16),
        "safety_identifier": Text(at_most=128),
        "prompt_cache_key": TEXT,
        "prompt_cache_retention": choice("in_memory", "24h"),
        "moderation": _MODERATION,
    },
)

# --- the response -------------------------------------------------------------------------------------------------

_TOKEN_LOGPROB = struct(required={"token": TEXT, "logprob": NUMBER}, nullable={"bytes": Array(INTEGER)})
_LOGPROBS = struct(nullable={"content": Array(_TOKEN_LOGPROB), "refusal": Array(_TOKEN_LOGPROB)})
_CITATION = struct(
    required={"url_citation": struct(required={"start_index": COUNT, "end_index": COUNT, "url": TEXT, "title": TEXT})}
)
ANSWERED_CALL = tagged(
    "type",
    {
        "function": struct(
            required={"id": Text(at_least=1), "function": struct(required={"name": TEXT, "arguments": TEXT})}
        ),
        "custom": struct(required={"id": Text(at_least=1), "custom": struct(required={"name": TEXT, "input": TEXT})}),
    },
)
_ANSWER = struct(
    required={"role": choice("assistant"), "content": OrNull(TEXT)},
    optional={"tool_calls": Array(ANSWERED_CALL, at_least=1)},
    nullable={
        "refusal": TEXT,
        "annotations": Array(tagged("type", {"url_citation": _CITATION})),
        "audio": struct(required={"id": TEXT, "data": TEXT, "expires_at": INTEGER, "transcript": TEXT}),
        "function_call": struct(required={"name": TEXT, "arguments": TEXT}),
    },
)
FINISH_REASONS = ("stop", "length", "tool_calls", "content_filter", "function_call")

_PROMPT_DETAILS = struct(
    nullable=dict.fromkeys(
        ("cached_tokens", "audio_tokens", "cache_write_tokens", "image_tokens", "text_tokens"), COUNT
    )
)
_COMPLETION_DETAILS = struct(
    nullable=dict.fromkeys(
        (
            "reasoning_tokens",
            "audio_tokens",
            "text_tokens",
            "accepted_prediction_tokens",
            "rejected_prediction_tokens",
        ),
        COUNT,
    )
)
USAGE = struct(
    required={"prompt_tokens": COUNT, "completion_tokens": COUNT, "total_tokens": COUNT},
    nullable={"prompt_tokens_details": _PROMPT_DETAILS, "completion_tokens_details": _COMPLETION_DETAILS},
)

RESPONSE = struct(
    required={
        "id": TEXT,
        "object": choice("chat.completion"),
        "created": INTEGER,
        "model": TEXT,
        "choices": Array(
            struct(
                required={"index": COUNT, "message": _ANSWER, "finish_reason": choice(*FINISH_REASONS)},
                nullable={"logprobs": _LOGPROBS},
            ),
            at_least=1,
        ),
    },
    nullable={"usage": USAGE, "service_tier": TEXT, "system_fingerprint": TEXT},
)
