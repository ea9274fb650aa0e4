"""Rows of training sets with messages in roles or columns of their own: ms-swift and Toucan, Nemotron. Read-only."""

from __future__ import annotations

from itertools import groupby

from msgspec import structs

from dragoman.codecs.datasets.conversation import (
    TOOL_KEYS,
    Conversation,
    Json,
    Piece,
    items,
    left_over,
    mappings,
    parse_literal,
    read_tools,
    refuse,
    text_of,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.known_keys import all_keys, keys
from dragoman.codecs.datasets.trl import CALL_ROLES, MESSAGE_KEYS, add_message, content_pieces
from dragoman.ir import Request, Text

SWIFT, NEMOTRON = "ms-swift", "nemotron"
_RESULT_ROLES = frozenset({"tool_response", "tool", "observation"})


# ── ms-swift: calls are messages of a role of their own ──


def is_swift(data: Json) -> bool:
    """Return whether messages have a role for calls."""
    return isinstance(data, dict) and any(
        text_of(message.get("role")) in CALL_ROLES for message in mappings(data.get("messages"))
    )


def read_swift(data: Json) -> Request:
    """Read a row. Calls that follow each other were made in parallel."""
    tools = read_tools(data.get("tools"))
    conversation = Conversation(SWIFT, tools)
    numbered = list(enumerate(items(data.get("messages"), SWIFT, "$.messages")))
    for is_call, group in groupby(numbered, lambda one: text_of(one[1].get("role")) in CALL_ROLES):
        if is_call:
            pieces: list[Piece] = []
            for index, message in group:
                pieces += _calls(conversation, message.get("content"), f"$.messages[{index}].content")
            conversation.add("assistant", pieces, pieces[0][1])
            continue
        for index, message in group:
            place = f"$.messages[{index}]"
            if text_of(message.get("role")) in _RESULT_ROLES:
                result = conversation.result(message.get("content"), call_id=message.get("tool_call_id"))
                conversation.add("tool", [(result, place)], place)
            else:
                add_message(conversation, message, place)
    return conversation.finish(tools=tools, metadata=left_over(data, ("messages", "tools")))


def _calls(conversation: Conversation, content: Json, place: str) -> list[Piece]:
    """Return the calls in a message: JSON of one or several, or the text of a Python dict."""
    parsed = parse_literal(content) if isinstance(content, str) else content
    found = parsed if isinstance(parsed, list) else [parsed]
    if not found or not all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in found):
        raise refuse(SWIFT, place, "JSON of a call or of a list of calls", content)
    return [(conversation.call(call["name"], call.get("arguments"), call.get("id")), place) for call in found]


# ── Nemotron: the prompt as messages, the answer as text ──


def is_nemotron(data: Json) -> bool:
    """Return whether `input` are messages, and `output` is the text that answers them."""
    given = data.get("input") if isinstance(data, dict) else None
    return (
        isinstance(data, dict)
        and isinstance(data.get("output"), str)
        and isinstance(given, list)
        and bool(given)
        and all(isinstance(message, dict) and "role" in message for message in given)
        and not any(key in data for key in ("messages", "traceId", "model"))
    )


def read_nemotron(data: Json) -> Request:
    conversation = Conversation(NEMOTRON)
    if text_of(data.get("system_prompt")):
        conversation.add("system", [(Text(data["system_prompt"]), "$.system_prompt")], "$.system_prompt")
    for index, message in enumerate(data["input"]):
        add_message(conversation, message, f"$.input[{index}]")
    conversation.add("assistant", content_pieces(data["output"], "$.output", thinking=True), "$.output")
    return conversation.finish(metadata=left_over(data, ("input", "output", "system_prompt")))


_CALL_MESSAGE = keys("role", content=structs.replace(keys("id name arguments"), as_text=True))
_SWIFT_MESSAGE = structs.replace(MESSAGE_KEYS, kinds={**MESSAGE_KEYS.kinds, **dict.fromkeys(CALL_ROLES, _CALL_MESSAGE)})
_SWIFT_KEYS = all_keys(messages=_SWIFT_MESSAGE, tools=TOOL_KEYS)
_NEMOTRON_KEYS = all_keys(input=MESSAGE_KEYS)

SWIFT_ROW = Dataset(SWIFT, is_swift, read_swift, keys=_SWIFT_KEYS)
NEMOTRON_ROW = Dataset(NEMOTRON, is_nemotron, read_nemotron, keys=_NEMOTRON_KEYS)
