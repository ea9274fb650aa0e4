"""A conversation as a bare list of messages of Anthropic's or Bedrock's API, as Cline and Strands keep it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dragoman.codecs.anthropic_messages.json_paths import request_paths as messages_paths
from dragoman.codecs.anthropic_messages.request import decode_request as decode_messages
from dragoman.codecs.bedrock_converse.json_paths import request_paths as converse_paths
from dragoman.codecs.bedrock_converse.request import decode_request as decode_converse
from dragoman.codecs.datasets.conversation import (
    Json,
    decode_placed,
    mappings,
    paths_by_line,
    text_of,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.known_keys import keys
from dragoman.ir import Request

ANTHROPIC, BEDROCK = "anthropic-message-list", "bedrock-message-list"
_ROLES = frozenset({"user", "assistant"})
_READ = keys("role content")
_BLOCKS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "web_search_tool_result"}
)
"""Types of blocks that no other API has."""
_BEDROCK_BLOCKS = frozenset(
    {"text", "toolUse", "toolResult", "reasoningContent", "image", "document", "video", "audio", "cachePoint"}
    | {"guardContent", "citationsContent", "searchResult"}
)


def _are_messages(data: Json) -> bool:
    return (
        isinstance(data, list)
        and bool(data)
        and all(
            isinstance(message, dict)
            and text_of(message.get("role")) in _ROLES
            and "tool_calls" not in message
            and "meta" not in message
            for message in data
        )
    )


def is_anthropic_list(data: Json) -> bool:
    """Return whether blocks have types, and one of them a type that only Anthropic has."""
    if not _are_messages(data):
        return False
    blocks = [block for message in data for block in mappings(message.get("content"))]
    return all("type" in block for block in blocks) and any(_is_own(block) for block in blocks)


def _is_own(block: Mapping[str, Json]) -> bool:
    kind = text_of(block.get("type"))
    if kind == "tool_result":
        return "tool_use_id" in block
    return kind in _BLOCKS or (kind in {"image", "document"} and isinstance(block.get("source"), dict))


def is_bedrock_list(data: Json) -> bool:
    """Return whether blocks have no types: their only key is their kind."""
    return _are_messages(data) and all(
        isinstance(message.get("content"), list)
        and bool(message["content"])
        and all(isinstance(block, dict) and len(block) == 1 and block.keys() <= _BEDROCK_BLOCKS
                for block in message["content"])
        for message in data
    )  # fmt: skip


def read_anthropic_list(data: Json) -> Request:
    return _read(data, ANTHROPIC, decode_messages, {"model": "", "max_tokens": 1})


def read_bedrock_list(data: Json) -> Request:
    return _read(data, BEDROCK, decode_converse, {})


def _read(data: Json, name: str, decode: Callable[[bytes], Request], more: Mapping[str, Json]) -> Request:
    """Read a list, without the times and ids that programs keep with messages: the API refuses them."""
    messages = [{key: value for key, value in message.items() if key in ("role", "content")} for message in data]
    places = [f"$[{index}]" for index in range(len(data))]
    return decode_placed(name, decode, {**more, "messages": messages}, places)


anthropic_message_list_paths = paths_by_line(messages_paths)
bedrock_message_list_paths = paths_by_line(converse_paths)

_LACKS = "the system prompt and the tools"
ANTHROPIC_LIST = Dataset(ANTHROPIC, is_anthropic_list, read_anthropic_list, keys=_READ, lacks=_LACKS)
BEDROCK_LIST = Dataset(BEDROCK, is_bedrock_list, read_bedrock_list, keys=_READ, lacks=_LACKS)
