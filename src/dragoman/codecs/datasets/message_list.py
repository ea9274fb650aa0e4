"""A conversation as a bare list of Chat Completions messages: `[{"role": "user", "content": "hi"}, …]`."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import force_setattr

from dragoman.codecs.datasets.conversation import (
    Conversation,
    Json,
    add_remarks,
    dataset_paths,
    decode_placed,
    items,
    mappings,
    paths_by_line,
    report_settings,
    text_of,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.known_keys import Keys
from dragoman.codecs.datasets.trl import add_message
from dragoman.codecs.datasets.unread_keys import severity_of, unread_keys
from dragoman.codecs.openai_chat import json_paths
from dragoman.codecs.openai_chat.request import decode_request, encode_request
from dragoman.ir import Request
from dragoman.ir.values import parse_json, to_raw
from dragoman.losses import LossLog, PathLookup

NAME, FAMILY = "message-list", "openai"
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def is_record(data: Json) -> bool:
    """Return whether this is a list of objects with Chat's roles, and no content blocks of another format."""
    if not isinstance(data, list) or not data or not all(isinstance(message, dict) for message in data):
        return False
    return all(text_of(message.get("role")) in _ROLES and _is_chat_content(message) for message in data)


def _is_chat_content(message: Mapping[str, Json]) -> bool:
    content = message.get("content")
    if (
        "parts" in message
        or "toolInvocations" in message
        or "additional_kwargs" in message
        or "tool_responses" in message  # AutoGen
        or not ("content" in message or "tool_calls" in message or "function_call" in message)
    ):
        return False
    return not isinstance(content, list) or all(
        text_of(part.get("type")) in {"text", "image_url", "input_audio", "file", "refusal"}
        for part in mappings(content)
    )


_KEYS = frozenset(
    {"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio", "annotations"}
    | {"reasoning_content", "reasoning", "reasoning_details", "thinking", "prefix", "weight", "cache_control", "images"}
)
"""Keys of messages of Chat and its compatible servers. Others are those of a log, and the API would refuse them."""
_MORE = "~keys"
"""Note: the other keys of each message, for the same format."""


def read(data: Json) -> Request:
    messages = items(data, NAME, "$")
    others = [{key: value for key, value in message.items() if key not in _KEYS} for message in messages]
    names = sorted({key for more in others for key in more})
    request = _read([{key: value for key, value in message.items() if key in _KEYS} for message in messages])
    if not names:
        return request
    lost = unread_keys(data, Keys(_KEYS))
    add_remarks(request, NAME, [(path, key, severity_of(key), "Chat messages do not have it") for path, key, _ in lost])
    force_setattr(request, "metadata", {**(request.metadata or {}), NAME: {_MORE: to_raw(others)}})
    return request


def _read(messages: list[Mapping[str, Json]]) -> Request:
    # Chat has arguments as JSON text: a list with objects as arguments is read message by message.
    if any(isinstance(call.get("function"), dict) and isinstance(call["function"].get("arguments"), dict)
           for message in messages for call in mappings(message.get("tool_calls"))):  # fmt: skip
        conversation = Conversation(NAME)
        for index, message in enumerate(messages):
            add_message(conversation, message, f"$[{index}]")
        return conversation.finish()
    return decode_placed(
        NAME, decode_request, {"messages": messages}, [f"$[{index}]" for index in range(len(messages))]
    )


def write(request: Request, log: LossLog) -> Json:
    report_settings(request, log)
    for tool in request.tools:
        log.drop(tool, "", f"tool {getattr(tool, 'name', '')!r}", "a list of messages has no place for tools")
    # Messages that Chat's codec read from a list are written as they were.
    origin = FAMILY if request.origin == NAME and _is_placed(request) else request.origin
    body = parse_json(encode_request(Request(None, request.messages, origin=origin), log).content)
    written: list[Json] = body["messages"]
    note = (request.metadata or {}).get(NAME, {}).get(_MORE)
    others = mappings(parse_json(note)) if note is not None else []
    if len(others) != len(written):
        return written
    return [{**message, **more} for message, more in zip(written, others, strict=True)]


def request_paths(root: Request) -> PathLookup:
    """Return the paths in the list: of messages that Chat's codec read, or that were read one by one."""
    return (_chat_paths if _is_placed(root) else dataset_paths)(root)


def _is_placed(request: Request) -> bool:
    places = getattr(request, "_places", [])
    return bool(places) and isinstance(places[0], str)


_chat_paths = paths_by_line(json_paths.request_paths)


DATASET = Dataset(NAME, is_record, read, write, names_speakers=True)
