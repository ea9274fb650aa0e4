"""Conversations of the command `llm`, as its Python API writes messages: a role and a list of typed parts.

`llm` stores them in a SQLite file of several tables; `dragoman.batch.llm_database` assembles each conversation.
"""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.codecs.datasets.conversation import (
    TOOL_KEYS,
    Conversation,
    Json,
    Piece,
    items,
    left_over,
    mappings,
    media,
    read_tools,
    refuse,
    text_of,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.known_keys import all_keys, keys
from dragoman.ir import Reasoning, Request, Text
from dragoman.ir.messages import Role

NAME = "llm"
_ROLES = ("system", "user", "assistant", "tool")
_KNOWN = ("chain", "answered_by", "tools")


def is_record(data: Json) -> bool:
    """Return whether this is one conversation: its chain of messages, each with parts."""
    chain = mappings(data.get("chain")) if isinstance(data, dict) else []
    return bool(chain) and all(isinstance(message.get("parts"), list) for message in chain)


def read(data: Json) -> Request:
    conversation = Conversation(NAME)
    for index, message in enumerate(items(data.get("chain"), NAME, "$.chain")):
        place, role = f"$.chain[{index}]", text_of(message.get("role"))
        if role not in _ROLES:
            raise refuse(NAME, f"{place}.role", " | ".join(_ROLES), message.get("role"))
        _add_message(conversation, role, mappings(message.get("parts")), place)  # type: ignore[arg-type]
    more = left_over(data, _KNOWN)
    return conversation.finish(model=data.get("answered_by"), tools=read_tools(data.get("tools")), metadata=more)


def _add_message(conversation: Conversation, role: Role, parts: list[Mapping[str, Json]], place: str) -> None:
    content: list[Piece] = []
    results: list[Piece] = []
    for number, part in enumerate(parts):
        where, kind = f"{place}.parts[{number}]", text_of(part.get("type"))
        if part.get("server_executed") is True:
            conversation.leave_out("tools that the provider ran", "only that provider takes their calls back")
        elif kind == "tool_result":
            results.append((_result(conversation, part), where))
        elif kind == "tool_call":
            call = conversation.call(part.get("name"), part.get("arguments"), part.get("tool_call_id"))
            content.append((call, where))
        elif kind == "text":
            content.append((Text(text_of(part.get("text"))), where))
        elif kind == "reasoning":
            content += [(Reasoning(part["text"]), where)] if text_of(part.get("text")) else []
        elif kind == "attachment" and isinstance(part.get("attachment"), dict):
            content.append((_attachment(part["attachment"]), where))
        else:
            conversation.leave_out(f"content of the kind {kind!r}", "content of this kind is not known")
    conversation.add("tool", results, place)
    conversation.add("user" if role == "tool" else role, content, place)


def _result(conversation: Conversation, part: Mapping[str, Json]) -> Json:
    failure = text_of(part.get("exception"))
    return conversation.result(
        part.get("output") or failure,
        call_id=part.get("tool_call_id"),
        name=part.get("name"),
        is_error=bool(failure),
    )


def _attachment(given: Mapping[str, Json]) -> Json:
    """Return a file part with the attachment's bytes as base64, its URL, or its path on the machine of `llm`."""
    kind = text_of(given.get("type")) or None
    if content := text_of(given.get("content")):
        return media(kind, f"data:{kind or 'application/octet-stream'};base64,{content}")
    return media(kind, text_of(given.get("url")) or text_of(given.get("path")))


_PART_KEYS = keys(
    "type text name arguments tool_call_id server_executed output exception", attachment=keys("type content url path")
)
_KEYS = all_keys(chain=keys("role", parts=_PART_KEYS), tools=TOOL_KEYS)
DATASET = Dataset(NAME, is_record, read, keys=_KEYS)
