"""dragoman: the interpreter between LLM APIs.

>>> import dragoman
>>> body = {"model": "m", "messages": [{"role": "user", "content": "Weather in Tokyo?"}]}
>>> dragoman.translate_request(body, source="openai-chat", target="gemini").body
{'contents': [{'role': 'user', 'parts': [{'text': 'Weather in Tokyo?'}]}]}

Names below are loaded when first used: importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.agent import Agent, tool
    from dragoman.codecs.accumulate import accumulate
    from dragoman.codecs.encoded import Encoded
    from dragoman.codecs.registry import formats
    from dragoman.detection import detect
    from dragoman.drivers.base import Driver, QueryResult, StreamResult
    from dragoman.drivers.connecting import connect, connect_sync
    from dragoman.errors import (
        DecodeError,
        DragomanError,
        EncodeError,
        IllegalEvent,
        LimitExceeded,
        LossRefused,
        NotConfigured,
        ProviderError,
        StreamError,
        TruncatedStream,
        UnknownFormat,
        UnparsedArguments,
        UnsupportedFormat,
    )
    from dragoman.losses import Loss, render_losses
    from dragoman.single_values import (
        EncodedValue,
        decode_message,
        decode_messages,
        decode_tool_call,
        decode_tool_calls,
        decode_tool_choice,
        decode_tool_definition,
        decode_tool_definitions,
        decode_tool_result,
        decode_tool_results,
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
    from dragoman.streams import StreamDecoder, StreamEncoder, StreamTranslator, TextStream
    from dragoman.translate import (
        decode_error,
        decode_request,
        decode_response,
        encode_error,
        encode_request,
        encode_response,
        translate_error,
        translate_request,
        translate_response,
    )

__version__ = "0.1.0"

_HOMES = {
    "dragoman.agent": ("Agent", "tool"),
    "dragoman.codecs.accumulate": ("accumulate",),
    "dragoman.codecs.encoded": ("Encoded",),
    "dragoman.codecs.registry": ("formats",),
    "dragoman.detection": ("detect",),
    "dragoman.drivers.base": ("Driver", "QueryResult", "StreamResult"),
    "dragoman.drivers.connecting": ("connect", "connect_sync"),
    "dragoman.errors": (
        "DecodeError",
        "DragomanError",
        "EncodeError",
        "IllegalEvent",
        "LimitExceeded",
        "LossRefused",
        "NotConfigured",
        "ProviderError",
        "StreamError",
        "TruncatedStream",
        "UnknownFormat",
        "UnparsedArguments",
        "UnsupportedFormat",
    ),
    "dragoman.losses": ("Loss", "render_losses"),
    "dragoman.single_values": (
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
    ),
    "dragoman.streams": ("StreamDecoder", "StreamEncoder", "StreamTranslator", "TextStream"),
    "dragoman.translate": (
        "decode_error",
        "decode_request",
        "decode_response",
        "encode_error",
        "encode_request",
        "encode_response",
        "translate_error",
        "translate_request",
        "translate_response",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Agent",
    "DecodeError",
    "DragomanError",
    "Driver",
    "EncodeError",
    "Encoded",
    "EncodedValue",
    "IllegalEvent",
    "LimitExceeded",
    "Loss",
    "LossRefused",
    "NotConfigured",
    "ProviderError",
    "QueryResult",
    "StreamDecoder",
    "StreamEncoder",
    "StreamError",
    "StreamResult",
    "StreamTranslator",
    "TextStream",
    "TruncatedStream",
    "UnknownFormat",
    "UnparsedArguments",
    "UnsupportedFormat",
    "accumulate",
    "connect",
    "connect_sync",
    "decode_error",
    "decode_message",
    "decode_messages",
    "decode_request",
    "decode_response",
    "decode_tool_call",
    "decode_tool_calls",
    "decode_tool_choice",
    "decode_tool_definition",
    "decode_tool_definitions",
    "decode_tool_result",
    "decode_tool_results",
    "detect",
    "encode_error",
    "encode_message",
    "encode_messages",
    "encode_request",
    "encode_response",
    "encode_tool_call",
    "encode_tool_calls",
    "encode_tool_choice",
    "encode_tool_definition",
    "encode_tool_definitions",
    "encode_tool_result",
    "encode_tool_results",
    "formats",
    "render_losses",
    "tool",
    "translate_error",
    "translate_request",
    "translate_response",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        message = f"module 'dragoman' has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
