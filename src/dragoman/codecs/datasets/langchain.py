"""LangChain messages: `messages_to_dict`, `dumpd` with constructors (read as JSON, never loaded), and bare fields.

`tool_calls` takes precedence over the copies in `additional_kwargs` and in provider blocks; if a copy has the exact
text of the arguments, that text is kept. Calls that could not be parsed (`invalid_tool_calls`) stay calls with their
text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from dragoman.codecs.datasets.conversation import (
    UNSTORED_MEDIA,
    UNSTORED_WORDS,
    Conversation,
    Json,
    Piece,
    drop_part,
    file_url,
    mappings,
    media,
    refuse,
    report_settings,
    result_text,
    text_of,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.known_keys import keys, kinds_of, merge_keys, messages_in
from dragoman.ir import Audio, Document, Image, Message, Reasoning, Refusal, Request, Text, ToolCall, ToolResult
from dragoman.ir.messages import Role
from dragoman.losses import LossLog

NAME = "langchain"
_ROLES: dict[str, Role] = {
    "human": "user", "user": "user", "ai": "assistant", "assistant": "assistant", "system": "system", "tool": "tool",
    "function": "tool", "humanmessage": "user", "aimessage": "assistant", "systemmessage": "system",
    "toolmessage": "tool", "functionmessage": "tool", "developer": "system",
}  # fmt: skip
_OWN = frozenset({"additional_kwargs", "response_metadata"})
"""Fields of every message, which no other format has."""
_OURS = {"user": "human", "assistant": "ai", "system": "system", "tool": "tool"}


def _messages(data: Json) -> tuple[Json, str]:
    """Return the messages of a record, and their path: of a list, a prompt value, or a state of LangGraph."""
    root = "$"
    if isinstance(data, dict):
        holder = "kwargs" if data.get("lc") == 1 else "values" if "messages" not in data else ""
        inner = data.get(holder) if holder else data
        data, root = inner.get("messages") if isinstance(inner, dict) else None, "$.messages"
        root = f"$.{holder}.messages" if holder else root
    nested = isinstance(data, list) and bool(data) and isinstance(data[0], list)
    return (data[0], f"{root}[0]") if nested else (data, root)


def is_record(data: Json) -> bool:
    """Return whether these are messages with a type and data, or constructors of LangChain's message classes."""
    messages, _ = _messages(data)
    return bool(mappings(messages)) and all(map(is_message, mappings(messages)))


def is_message(message: Mapping[str, Json]) -> bool:
    """Return whether this is one message, in one of the encodings."""
    return _fields(message) is not None


def _fields(message: Mapping[str, Json]) -> tuple[Role, Mapping[str, Json]] | None:
    """Return (role, fields) of a message in one of the encodings."""
    if message.get("lc") == 1 and isinstance(message.get("kwargs"), dict):
        path = message.get("id")
        kind = text_of(path[-1]) if isinstance(path, list) and path else ""
        fields = message["kwargs"]
    elif isinstance(message.get("data"), dict) and isinstance(message.get("type"), str):
        kind, fields = message["type"], message["data"]
    elif "content" in message and "role" not in message and not message.keys().isdisjoint(_OWN):  # `model_dump()`
        kind, fields = text_of(message.get("type")), message
    else:
        return None
    role = _ROLES.get(kind.removesuffix("Chunk").lower())
    return None if role is None else (role, fields)


def read(data: Json) -> Request:
    messages, root = _messages(data)
    conversation = Conversation(NAME)
    model = None
    for index, message in enumerate(mappings(messages)):
        model = add_message(conversation, message, f"{root}[{index}]") or model
    return conversation.finish(model=model)


def add_message(conversation: Conversation, message: Mapping[str, Json], place: str) -> str | None:
    """Add one message; return the model that it names."""
    found = _fields(message)
    if found is None:
        raise refuse(NAME, place, "a message of LangChain", message.get("type"))
    role, fields = found
    holder = "" if fields is message else ".kwargs" if "kwargs" in message else ".data"
    _add(conversation, role, fields, place + holder)
    metadata = fields.get("response_metadata")
    return text_of(metadata.get("model_name", metadata.get("model"))) or None if isinstance(metadata, dict) else None


def _add(conversation: Conversation, role: Role, fields: Mapping[str, Json], place: str) -> None:
    if role == "tool":
        failed = fields.get("status") == "error"
        content = fields.get("content")
        parts = [part for part, _ in _content(content, place)] if isinstance(content, list) else []
        shown = [part for part in parts if isinstance(part, Text | Image | Audio | Document)]
        if not all(isinstance(part, Text) for part in shown):
            result = conversation.parts_result(shown, call_id=fields.get("tool_call_id"), name=fields.get("name"))
        else:
            value = "".join(part.text for part in parts if isinstance(part, Text)) if parts else text_of(content)
            result = conversation.result(
                value, call_id=fields.get("tool_call_id"), name=fields.get("name"), is_error=failed
            )
        conversation.add("tool", [(result, place)], place)
        return
    pieces = _content(fields.get("content"), f"{place}.content")
    texts: Mapping[str, Json] = _argument_texts(fields)
    for index, call in enumerate(mappings(fields.get("tool_calls"))):
        arguments = texts.get(text_of(call.get("id")), call.get("args"))
        pieces.append((conversation.call(call.get("name"), arguments, call.get("id")), f"{place}.tool_calls[{index}]"))
    for index, call in enumerate(mappings(fields.get("invalid_tool_calls"))):
        made = conversation.call(call.get("name"), text_of(call.get("args")), call.get("id"))
        pieces.append((made, f"{place}.invalid_tool_calls[{index}]"))
    for index, call in _calls_in_content(fields):
        made = conversation.call(call.get("name"), call.get("input", call.get("args")), call.get("id"))
        pieces.append((made, f"{place}.content[{index}]"))
    conversation.add(role, pieces, place, name=text_of(fields.get("name")) or None)


def _calls_in_content(fields: Mapping[str, Json]) -> list[tuple[int, Mapping[str, Json]]]:
    """Return the blocks with calls, and their positions; most often they repeat the lists of calls."""
    listed = [*mappings(fields.get("tool_calls")), *mappings(fields.get("invalid_tool_calls"))]
    known = {text_of(call.get("id")) for call in listed}
    content = fields.get("content")
    return [
        (index, block)
        for index, block in enumerate(content if isinstance(content, list) else [])
        if isinstance(block, dict)
        and block.get("type") in _CALLS
        and (text_of(block.get("id")) not in known if text_of(block.get("id")) else not listed)
    ]


_CALLS = ("tool_use", "tool_call")


def _argument_texts(fields: Mapping[str, Json]) -> dict[str, str]:
    """Return call id -> the exact text of its arguments, for calls with a copy of OpenAI's own entry."""
    kept = fields.get("additional_kwargs")
    calls = mappings(kept.get("tool_calls")) if isinstance(kept, dict) else []
    found = {}
    for call in calls:
        function = call.get("function")
        if isinstance(function, dict) and isinstance(function.get("arguments"), str):
            found[text_of(call.get("id"))] = function["arguments"]
    return found


def _content(content: Json, place: str) -> list[Piece]:
    if isinstance(content, str):
        return [(Text(content), place)] if content else []
    pieces: list[Piece] = []
    for index, block in enumerate(content if isinstance(content, list) else []):
        where = f"{place}[{index}]"
        if isinstance(block, str):
            pieces.append((Text(block), where))
        elif isinstance(block, dict):
            pieces += [(part, where) for part in _block(block)]
    return pieces


def _block(block: Mapping[str, Json]) -> list[Text | Reasoning | Image | Audio | Document | Json]:
    kind = text_of(block.get("type"))
    if kind == "text":
        return [Text(text_of(block.get("text")))]
    if kind in {"reasoning", "thinking"}:
        return [Reasoning(text_of(block.get("reasoning")) or text_of(block.get("thinking")))]
    if kind == "image_url":
        image = block.get("image_url")
        return [media("image/*", image.get("url") if isinstance(image, dict) else image)]
    if kind in {"image", "audio", "file"}:
        address = text_of(block.get("url"))
        if text_of(block.get("base64")) or text_of(block.get("data")):
            address = f"data:{block.get('mime_type')};base64,{block.get('base64') or block.get('data')}"
        return [media(text_of(block.get("mime_type")) or f"{kind}/*", address)]
    return []


def write(request: Request, log: LossLog) -> Json:
    report_settings(request, log)
    for tool in request.tools:
        log.drop(tool, "", f"tool {getattr(tool, 'name', '')!r}", "a list of messages has no place for tools")
    written: list[Json] = []
    for message in request.messages:
        if message.role == "tool":
            written += [_write_result(part, log) for part in message.parts if isinstance(part, ToolResult)]
        else:
            written.append(_write_message(message, log))
    return written


def _write_result(result: ToolResult, log: LossLog) -> Json:
    data = {"content": result_text(result, log), "tool_call_id": result.tool_call_id, "name": result.name}
    return {"type": "tool", "data": {**data, "status": "error" if result.is_error else "success"}}


def _write_message(message: Message, log: LossLog) -> Json:
    blocks: list[Json] = []
    calls: list[Json] = []
    invalid: list[Json] = []
    for part in message.parts:
        if isinstance(part, Text | Refusal):
            blocks.append({"type": "text", "text": part.text})
        elif isinstance(part, Reasoning) and part.text:
            blocks.append({"type": "reasoning", "reasoning": part.text})
            if part.signature is not None:
                log.drop(part, "signature", "signature", "this format does not keep signatures")
        elif isinstance(part, ToolCall):
            if part.arguments_held is UNSET:
                invalid.append({"name": part.name, "args": part.arguments_text, "id": part.id, "error": None})
            else:
                held: Any = part  # arguments that were read may be any JSON
                calls.append({"name": part.name, "args": held.arguments, "id": part.id, "type": "tool_call"})
        elif isinstance(part, Image | Audio | Document) and file_url(part) is not None:
            blocks.append(_write_file(part))
        else:
            drop_part(part, log)
    plain = len(blocks) == 1 and blocks[0]["type"] == "text"
    content = blocks[0]["text"] if plain else blocks or ""
    data: dict[str, Json] = {"content": content}
    if message.role == "assistant":
        data |= {"tool_calls": calls, "invalid_tool_calls": invalid}
    return {"type": _OURS[message.role], "data": data | ({"name": message.name} if message.name else {})}


def _write_file(part: Image | Audio | Document) -> Json:
    kind = {Image: "image", Audio: "audio"}.get(type(part), "file")
    if part.data is not None:
        return {"type": kind, "base64": part.data, "mime_type": part.media_type}
    return {"type": kind, "url": part.url} | ({"mime_type": part.media_type} if part.media_type else {})


_BLOCK_KEYS = kinds_of(
    "type",
    {"tool_use tool_call invalid_tool_call": keys("id name input args partial_json index error")},
    keys("text reasoning thinking base64 data url mime_type", image_url=keys("url")),
)
_FIELD_KEYS = keys(
    "type name tool_call_id status",
    content=_BLOCK_KEYS,
    tool_calls=keys("type id name args"),
    invalid_tool_calls=keys("type id name args"),
    additional_kwargs=keys(tool_calls=keys("type id", function=keys("name arguments"))),
    response_metadata=keys("model_name model"),
)
MESSAGE_KEYS = merge_keys(keys("type lc id", data=_FIELD_KEYS, kwargs=_FIELD_KEYS), _FIELD_KEYS)
_KEYS = messages_in(MESSAGE_KEYS, values=keys(messages=MESSAGE_KEYS))
DATASET = Dataset(
    NAME, is_record, read, write, keys=_KEYS, unstored={**UNSTORED_WORDS, **UNSTORED_MEDIA}, names_speakers=True
)
