"""A conversation as a bare list of Chat Completions messages: `[{"role": "user", "content": "hi"}, …]`."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.codecs.datasets.conversation import (
    Conversation,
    Dataset,
    Json,
    items,
    mappings,
    report_settings,
    text_of,
)
from dragoman.codecs.datasets.trl import add_message
from dragoman.codecs.openai_chat.request import decode_request, encode_request
from dragoman.ir import Request
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

NAME = "message-list"
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def is_record(data: Json) -> bool:
    """Return whether this is a list of objects with Chat's roles, and no content blocks of another format."""
    if not isinstance(data, list) or not data or not all(isinstance(message, Mapping) for message in data):
        return False
    return all(text_of(message.get("role")) in _ROLES and _is_chat_content(message) for message in data)


def _is_chat_content(message: Mapping[str, Json]) -> bool:
    content = message.get("content")
    if (
        "parts" in message
        or "toolInvocations" in message
        or "additional_kwargs" in message
        or not ("content" in message or "tool_calls" in message or "function_call" in message)
    ):
        return False
    return not isinstance(content, list) or all(
        text_of(part.get("type")) in {"text", "image_url", "input_audio", "file", "refusal"}
        for part in mappings(content)
    )


def read(data: Json) -> Request:
    messages = items(data, NAME, "$")
    # Chat has arguments as JSON text: a list with objects as arguments is read message by message.
    if any(isinstance(call.get("function"), Mapping) and isinstance(call["function"].get("arguments"), Mapping)
           for message in messages for call in mappings(message.get("tool_calls"))):  # fmt: skip
        conversation = Conversation(NAME)
        for index, message in enumerate(messages):
            add_message(conversation, message, f"$[{index}]")
        return conversation.finish()
    return decode_request(encode_json({"messages": messages}))


def write(request: Request, log: LossLog) -> Json:
    report_settings(request, log)
    for tool in request.tools:
        log.drop(tool, "", f"tool {getattr(tool, 'name', '')!r}", "a list of messages has no place for tools")
    body = parse_json(encode_request(Request(None, request.messages, origin=request.origin), log).content)
    return body["messages"]


DATASET = Dataset(NAME, is_record, read, write, names_speakers=True)
