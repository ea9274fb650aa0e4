"""One tool call, result, definition, choice or message at a time, between any format and the intermediate format.

Every function wraps its value in a small request, uses the format's own codec, and extracts the value again, so there
is no second implementation of a format.
"""

from __future__ import annotations

from dragoman.single_values.decoding import (
    decode_message,
    decode_messages,
    decode_tool_call,
    decode_tool_calls,
    decode_tool_choice,
    decode_tool_definition,
    decode_tool_definitions,
    decode_tool_result,
    decode_tool_results,
)
from dragoman.single_values.encoding import (
    encode_message,
    encode_messages,
    encode_tool_call,
    encode_tool_calls,
    encode_tool_choice,
    encode_tool_definition,
    encode_tool_definitions,
    encode_tool_result,
    encode_tool_results,
)
from dragoman.single_values.values import EncodedValue

__all__ = [
    "EncodedValue",
    "decode_message",
    "decode_messages",
    "decode_tool_call",
    "decode_tool_calls",
    "decode_tool_choice",
    "decode_tool_definition",
    "decode_tool_definitions",
    "decode_tool_result",
    "decode_tool_results",
    "encode_message",
    "encode_messages",
    "encode_tool_call",
    "encode_tool_calls",
    "encode_tool_choice",
    "encode_tool_definition",
    "encode_tool_definitions",
    "encode_tool_result",
    "encode_tool_results",
]
