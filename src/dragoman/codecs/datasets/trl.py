"""Conversations as TRL and chat templates take them: `messages` and `tools`, arguments as objects, ids rarely.

`tools` is a list or JSON text of one, because Arrow cannot hold schemas of different shapes in one column. Other
columns: `prompt` with `completion`, `chosen` with `rejected` (the conversation is the chosen one).
"""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.codecs.datasets.conversation import (
    TOOL_KEYS,
    UNSTORED_IMAGES,
    UNSTORED_TOOLS,
    UNSTORED_WORDS,
    Conversation,
    Json,
    Piece,
    Placeholders,
    arguments_value,
    drop_part,
    file_url,
    items,
    left_over,
    mappings,
    media,
    no_tools_key,
    no_tools_note,
    noted_images,
    own_keys,
    read_tools,
    refuse,
    report_settings,
    result_text,
    split_tagged,
    tagged_as_read,
    text_of,
    write_tools,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.known_keys import all_keys, keys, kinds_of, texts_of
from dragoman.codecs.datasets.tagged_calls import tagged_column
from dragoman.ir import Image, Message, Reasoning, Refusal, Request, Text, ToolCall, ToolResult
from dragoman.ir.messages import Role
from dragoman.losses import LossLog

NAME = "trl"
_ROLES: dict[str, Role] = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant", "model": "assistant",
    "tool": "tool", "function": "tool", "ipython": "tool",
}  # fmt: skip
CALL_ROLES = frozenset({"tool_call", "function_call"})
"""Roles of messages that are calls, in rows of ms-swift."""
_COLUMNS = ("messages", "conversation", "conversations", "prompt", "chosen", "completion", "chosen_response")
"""Columns with messages, in the order of the conversation."""


def is_record(data: Json) -> bool:
    """Return whether these are Chat messages without a model, or columns of trainers.

    Calls in the messages have a type, and objects as arguments.
    """
    if not isinstance(data, dict) or tagged_column(data) is not None:  # Hermes
        return False
    if any(_is_conversation(data.get(key)) for key in ("conversation", "conversations")):  # the model is a column
        return "messages" not in data
    if "model" in data or "contents" in data:
        return False
    if _are_packed(data.get("tools")) and any(
        _is_conversation(data.get(key)) for key in ("messages", "chosen", "prompt")
    ):
        return True
    if any(_is_conversation(data.get(key)) for key in ("prompt", "completion", "chosen")):
        return True
    if isinstance(data.get("images"), list) and any(map(_has_placeholder, mappings(data.get("messages")))):
        return True
    calls = [call for message in mappings(data.get("messages")) for call in mappings(message.get("tool_calls"))]
    return any(
        (call.get("type") == "function" and isinstance(_function(call).get("arguments"), dict)) or _is_flat(call)
        for call in calls
    ) and not any(isinstance(call.get("function"), str) for call in calls)  # Inspect


def _has_placeholder(message: Mapping[str, Json]) -> bool:
    """Return whether a message has a block that stands for an image of the list beside the messages."""
    return any(
        block.get("type") == "image" and not any(block.get(key) for key in _IMAGE_KEYS)
        for block in mappings(message.get("content"))
    )


_IMAGE_KEYS = ("source", "url", "image", "image_url")


def _is_flat(call: Mapping[str, Json]) -> bool:
    """Return whether a call has its name beside its id, and its arguments as text."""
    return "function" not in call and isinstance(call.get("name"), str) and isinstance(call.get("arguments"), str)


def _are_packed(tools: Json) -> bool:
    """Return whether the tools are JSON text: of a list, or a list of such texts."""
    return isinstance(tools, str) or (isinstance(tools, list) and bool(tools) and isinstance(tools[0], str))


def _is_conversation(value: Json) -> bool:
    messages = mappings([value] if isinstance(value, dict) else value)
    return bool(messages) and all(_is_message(message) for message in messages)


def _is_message(message: Mapping[str, Json]) -> bool:
    if "parts" in message or "replies" in message:
        return False
    if any(text_of(block.get("type")) in {"toolRequest", "toolResponse"} for block in mappings(message.get("content"))):
        return False  # Goose
    return "role" in message and text_of(message["role"]) not in CALL_ROLES


def read(data: Json) -> Request:
    if not isinstance(data, dict):
        raise refuse(NAME, "$", "an object", data)
    tools, images = read_tools(data.get("tools")), Placeholders(NAME, data.get("images"))
    conversation = Conversation(NAME, tools)
    keys = [key for key in _COLUMNS if _is_conversation(data.get(key))]
    if not keys:
        raise refuse(NAME, "$.messages", "a conversation", data.get("messages"))
    repeated = [key for key in ("messages", "prompt") if key in keys and _begins(data.get("chosen"), data[key])]
    for key in (key for key in keys if key not in repeated):  # some sets repeat the prompt in both answers
        messages = [data[key]] if isinstance(data[key], dict) else data[key]
        for index, message in enumerate(items(messages, NAME, f"$.{key}")):
            place = f"$.{key}" if messages is not data[key] else f"$.{key}[{index}]"
            add_message(conversation, message, place, images)
    known = (*(key for key in keys if key not in repeated), "tools", *(("images",) if images else ()))
    notes = {**no_tools_note(data, tools), **images.note()}
    return conversation.finish(model=data.get("model"), metadata={**left_over(data, known), **notes})


def _begins(longer: Json, start: Json) -> bool:
    return isinstance(longer, list) and isinstance(start, list) and longer[: len(start)] == start


_NO_IMAGES = Placeholders(NAME, None)


def add_message(
    conversation: Conversation, message: Mapping[str, Json], place: str, images: Placeholders = _NO_IMAGES
) -> None:
    """Add one message with role and content, as in almost all of these formats."""
    role = _ROLES.get(text_of(message.get("role")))
    if role is None:
        raise refuse(NAME, f"{place}.role", " | ".join(_ROLES), message.get("role"))
    if role == "tool":
        call_id, name = message.get("tool_call_id"), message.get("name")
        result = conversation.result(_result_content(message.get("content")), call_id=call_id, name=name)
        conversation.add("tool", [(result, place)], place)
        return
    pieces = list(_thoughts(message, place)) if role == "assistant" else []
    content = message.get("content")
    pieces += content_pieces(content, f"{place}.content", thinking=role == "assistant", images=images)
    calls = mappings(message.get("tool_calls"))
    if calls and role != "assistant":
        raise refuse(NAME, f"{place}.tool_calls", "calls of the assistant only", message.get("tool_calls"))
    for index, call in enumerate(calls):
        function = _function(call)
        made = conversation.call(function.get("name"), function.get("arguments"), call.get("id"))
        pieces.append((made, f"{place}.tool_calls[{index}]"))
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        pieces.append((conversation.call(legacy.get("name"), legacy.get("arguments")), f"{place}.function_call"))
    conversation.add(role, pieces, place, name=text_of(message.get("name")) or None)


def _function(call: Mapping[str, Json]) -> Mapping[str, Json]:
    function = call.get("function")
    return function if isinstance(function, dict) else call


def _thoughts(message: Mapping[str, Json], place: str) -> list[Piece]:
    for key in ("reasoning_content", "thinking", "reasoning"):
        if text_of(message.get(key)):
            return [(Reasoning(message[key]), f"{place}.{key}")]
    return []


def content_pieces(
    content: Json, place: str, *, thinking: bool = False, images: Placeholders = _NO_IMAGES
) -> list[Piece]:
    """Return the parts of content: text, or a list of parts; `<think>` at the start of an answer is reasoning."""
    if isinstance(content, str):
        thought, text = split_tagged(NAME, content) if thinking else (None, content)
        pieces: list[Piece] = [(thought, place)] if thought else []
        return [*pieces, (Text(text), place)] if text else pieces
    pieces = []
    for index, part in enumerate(mappings(content)):
        where = f"{place}[{index}]"
        kind = text_of(part.get("type"))
        if kind in {"text", "input_text", "output_text"}:
            pieces.append((Text(text_of(part.get("text"))), where))
        elif kind == "image_url":
            image = part.get("image_url")
            pieces.append((media("image/*", image.get("url") if isinstance(image, dict) else image), where))
        elif kind == "image" and (text_of(part.get("url")) or text_of(part.get("image"))):
            pieces.append((media("image/*", part.get("url") or part.get("image")), where))
        elif kind == "image" and images and (listed := images.next()) is not None:
            pieces.append((listed, where))
        else:
            raise refuse(NAME, where, "a part of type text, image or image_url", part.get("type"))
    return pieces


def _result_content(content: Json) -> Json:
    if isinstance(content, list):
        texts = [text_of(part.get("text")) for part in mappings(content) if part.get("type") == "text"]
        return "\n".join(texts) if len(texts) == len(content) else content
    return "" if content is None else content


def write(request: Request, log: LossLog) -> Json:
    report_settings(request, log)
    images = noted_images(request, NAME)
    messages = write_messages(request, log, placeholders=images is not None)
    record: dict[str, Json] = {"messages": messages, **own_keys(request, NAME), **no_tools_key(request, NAME)}
    tools = write_tools(request, log)
    if tools:
        record["tools"] = tools
    return record if images is None else {**record, "images": images}


def write_messages(request: Request, log: LossLog, *, ids: bool = False, placeholders: bool = False) -> list[Json]:
    """Return messages with role and content, and objects as arguments; images in place, or as placeholders."""
    names = {part.id: part.name for message in request.messages for part in message.parts if isinstance(part, ToolCall)}
    messages: list[Json] = []
    for message in request.messages:
        if message.role == "tool":
            messages += [
                _write_result(part, names, log, ids=ids) for part in message.parts if isinstance(part, ToolResult)
            ]
        else:
            messages.append(_write_message(message, log, ids=ids, placeholders=placeholders))
    return messages


def _write_result(result: ToolResult, names: Mapping[str, str], log: LossLog, *, ids: bool) -> Json:
    if result.is_error:
        log.degrade(result, "kind", "that the tool failed", "results have no error flag in this format")
    found: dict[str, Json] = {"role": "tool", "name": result.name or names.get(result.tool_call_id, "")}
    if ids:
        found["tool_call_id"] = result.tool_call_id
    return {**found, "content": result_text(result, log)}


def _write_message(message: Message, log: LossLog, *, ids: bool, placeholders: bool) -> Json:
    found: dict[str, Json] = {"role": message.role}
    texts: list[str] = []
    content: list[Json] = []
    calls: list[Json] = []
    for part in message.parts:
        if isinstance(part, Text | Refusal):
            texts.append(part.text)
            content.append({"type": "text", "text": part.text})
        elif isinstance(part, Reasoning) and part.text:
            if not texts and (tagged := tagged_as_read(part)) is not None:
                texts.append(tagged)
                content.append({"type": "text", "text": tagged})
            else:
                found["reasoning_content"] = found.get("reasoning_content", "") + part.text
            if part.signature is not None:
                log.drop(part, "signature", "signature", "this format does not keep signatures")
        elif isinstance(part, ToolCall):
            call: dict[str, Json] = {"type": "function"} | ({"id": part.id} if ids else {})
            calls.append({**call, "function": {"name": part.name, "arguments": arguments_value(part, NAME)}})
        elif isinstance(part, Image) and file_url(part):
            content.append({"type": "image"} if placeholders else {"type": "image", "url": file_url(part)})
        else:
            drop_part(part, log)
    if any(part["type"] != "text" for part in content):
        found["content"] = content
    elif texts or not calls:
        found["content"] = "".join(texts)
    if calls:
        found["tool_calls"] = calls
    return found


OTHER_KEYS = keys(
    "role name tool_call_id reasoning_content thinking reasoning",
    content=keys("type text url image", image_url=keys("url")),
    tool_calls=keys("id type name arguments", function=keys("name arguments")),
    function_call=keys("name arguments"),
)
"""Of every message except results."""
_RESULT_KEYS = keys("name tool_call_id", content=texts_of())
MESSAGE_KEYS = kinds_of(
    "role",
    {"tool function ipython tool_call function_call tool_response observation": _RESULT_KEYS},
    OTHER_KEYS,
)
"""What `add_message` reads. Results may be any value."""
_COLUMN_KEYS = all_keys(**dict.fromkeys(_COLUMNS, MESSAGE_KEYS), tools=TOOL_KEYS, images=keys("path url"))

DATASET = Dataset(
    NAME, is_record, read, write, keys=_COLUMN_KEYS, unstored={**UNSTORED_WORDS, **UNSTORED_IMAGES, **UNSTORED_TOOLS}
)
