"""The typed objects of Cohere's chat v2, and the server's error messages for violations.

From the vendor's OpenAPI description, its published list of errors, and recorded traffic. Explicit null was accepted in
every optional place where it was recorded; unknown keys are 422.
"""

from __future__ import annotations

from dragoman.sim.rules.common import (
    ANYTHING,
    BOOLEAN,
    NON_EMPTY,
    NUMBER,
    OBJECT,
    TEXT,
    Array,
    ByType,
    Dialect,
    Fault,
    Number,
    Shape,
    Text,
    bracket_path,
    choice,
    struct,
    tagged,
    text_or_array,
)

DIALECT = Dialect(
    spell=bracket_path,
    type_names={},
    null_is_absent=True,
    status=400,
    wording={
        Fault.UNKNOWN_KEY: ("unknown field: parameter '{name}' is not a valid field - at {where}", "unknown_field"),
        Fault.MISSING: ("invalid request: {where} is required", None),
        Fault.NULL: ("invalid request: {where} must be of type {expected}, got null", None),
        Fault.WRONG_TYPE: (
            "invalid type: parameter {where} is of type {got_type} but should be of type {expected}",
            None,
        ),
        Fault.NOT_ONE_OF: ("invalid request: {where} must be one of {expected}, got '{got}'", None),
        Fault.UNKNOWN_TAG: ("invalid request: {where} must be one of {expected}, got '{got}'", None),
        Fault.TOO_SMALL: ("invalid request: {where} must be greater than or equal to {limit}, got {got}", None),
        Fault.TOO_LARGE: ("invalid request: {where} must be less than or equal to {limit}, got {got}", None),
        Fault.TOO_SHORT: ("invalid request: {where} must not be empty", None),
        Fault.TOO_LONG: ("invalid request: {where} must have at most {limit} characters, got {got}", None),
        Fault.TOO_FEW: ("invalid request: {where} must have at least {limit} items, got {got}", None),
        Fault.TOO_MANY: ("invalid request: {where} must have at most {limit} items, got {got}", None),
        Fault.PATTERN: ("invalid request: {where} must match {expected}, got '{got}'", None),
    },
)

UNKNOWN_FIELD_STATUS = 422

# --- content ------------------------------------------------------------------------------------------------------

_TEXT = struct(required={"text": TEXT})
_THINKING = struct(required={"thinking": TEXT})
_IMAGE = struct(
    required={
        "image_url": struct(required={"url": NON_EMPTY}, optional={"detail": choice("auto", "low", "high")}),
    }
)
# The schema says an object; the documentation shows a string too.
_DATA = ByType({"object": OBJECT, "string": TEXT})
_DOCUMENT = struct(required={"document": struct(required={"data": _DATA}, optional={"id": TEXT})})

SYSTEM_PART = tagged("type", {"text": _TEXT})
USER_PART = tagged("type", {"text": _TEXT, "image_url": _IMAGE})
ASSISTANT_PART = tagged("type", {"text": _TEXT, "thinking": _THINKING})
TOOL_PART = tagged("type", {"text": _TEXT, "document": _DOCUMENT})

# --- messages -----------------------------------------------------------------------------------------------------

_CALL = struct(
    required={
        "id": NON_EMPTY,
        "type": choice("function"),
        "function": struct(required={"name": TEXT}, optional={"arguments": TEXT}),
    }
)
_SOURCE = tagged(
    "type",
    {
        "tool": struct(optional={"id": TEXT, "tool_output": OBJECT}),
        "document": struct(optional={"id": TEXT, "document": OBJECT}),
    },
)
CITATION_TYPES = ("TEXT_CONTENT", "THINKING_CONTENT", "PLAN")
_CITATION_FIELDS: dict[str, Shape] = {
    "start": Number(at_least=0, whole=True),
    "end": Number(at_least=0, whole=True),
    "text": TEXT,
    "sources": Array(_SOURCE),
    "content_index": Number(at_least=0, whole=True),
    "type": choice(*CITATION_TYPES),
}
CITATION = struct(optional=_CITATION_FIELDS)
MESSAGE = tagged(
    "role",
    {
        "system": struct(required={"content": text_or_array(SYSTEM_PART)}),
        "user": struct(required={"content": text_or_array(USER_PART)}),
        "assistant": struct(
            optional={
                "content": text_or_array(ASSISTANT_PART),
                "tool_plan": TEXT,
                "tool_calls": Array(_CALL),
                "citations": Array(CITATION),
            }
        ),
        "tool": struct(required={"tool_call_id": TEXT, "content": text_or_array(TOOL_PART)}),
    },
)

# --- the request --------------------------------------------------------------------------------------------------

# Not a letter, a digit or an underscore, or a digit at the front: refused.
TOOL_NAME = Text(pattern=r"[A-Za-z_][A-Za-z0-9_]*", at_least=1)
_TOOL = tagged(
    "type",
    {
        "function": struct(
            required={
                "function": struct(required={"name": TOOL_NAME, "parameters": OBJECT}, optional={"description": TEXT}),
            }
        )
    },
)
MOST_SEED = 2**64 - 1
REQUEST = struct(
    required={"model": NON_EMPTY, "messages": Array(MESSAGE, at_least=1)},
    optional={
        "stream": BOOLEAN,
        "tools": Array(_TOOL),
        "tool_choice": choice("REQUIRED", "NONE"),
        "strict_tools": BOOLEAN,
        "documents": Array(ByType({"string": TEXT, "object": struct(required={"data": _DATA}, optional={"id": TEXT})})),
        "citation_options": struct(
            optional={
                "mode": choice(
                    *("ENABLED", "DISABLED", "FAST", "ACCURATE", "OFF"),
                    *("enabled", "disabled", "fast", "accurate", "off"),
                )
            }
        ),
        "response_format": tagged("type", {"text": struct(), "json_object": struct(optional={"json_schema": OBJECT})}),
        "safety_mode": choice("CONTEXTUAL", "STRICT", "OFF"),
        "max_tokens": Number(at_least=0, whole=True),
        "stop_sequences": Array(TEXT, at_most=5),
        "temperature": NUMBER,
        "p": Number(at_least=0, at_most=1),
        "k": Number(at_least=0, at_most=500),
        "frequency_penalty": Number(at_least=0, at_most=1),
        "presence_penalty": Number(at_least=0, at_most=1),
        "seed": Number(at_least=0, at_most=MOST_SEED, whole=True),
        "logprobs": BOOLEAN,
        "thinking": struct(
            required={"type": choice("enabled", "disabled")}, optional={"token_budget": Number(at_least=1, whole=True)}
        ),
        "priority": Number(at_least=0, at_most=999, whole=True),
    },
)

# --- the response -------------------------------------------------------------------------------------------------

# All counts are numbers: the vendor's client reads them as decimals.
_COUNT = Number(at_least=0)
_ANSWERED_CALL = struct(
    required={
        "id": NON_EMPTY,
        "type": choice("function"),
        "function": struct(required={"name": NON_EMPTY, "arguments": TEXT}),
    }
)
RESPONSE = struct(
    required={
        "id": TEXT,
        "finish_reason": choice("COMPLETE", "STOP_SEQUENCE", "MAX_TOKENS", "TOOL_CALL", "ERROR", "TIMEOUT"),
        "message": struct(
            required={"role": choice("assistant")},
            nullable={
                # A list, never a string.
                "content": Array(tagged("type", {"text": _TEXT, "thinking": _THINKING})),
                "tool_plan": TEXT,
                "tool_calls": Array(_ANSWERED_CALL),
                "citations": Array(CITATION),
            },
        ),
    },
    nullable={
        "usage": struct(
            nullable={
                "billed_units": struct(nullable={"input_tokens": _COUNT, "output_tokens": _COUNT}),
                "tokens": struct(
                    nullable={
                        "input_tokens": _COUNT,
                        "output_tokens": _COUNT,
                        "reasoning_tokens": _COUNT,
                        "image_tokens": _COUNT,
                    }
                ),
                "cached_tokens": _COUNT,
            }
        ),
        "logprobs": Array(ANYTHING),
    },
)
