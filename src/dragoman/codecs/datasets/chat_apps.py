"""Chats that self-hosted applications export: Open WebUI and LibreChat. Read-only.

Both keep every edit and every regenerated answer in a tree. The branch that the application showed is read.
"""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.codecs.datasets.conversation import (
    OTHER_BRANCHES,
    Conversation,
    Json,
    Piece,
    items,
    mappings,
    media,
    text_of,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.frameworks import Line, add_rounds, read_blocks, role_of
from dragoman.codecs.datasets.known_keys import Keys, all_keys, keys, kinds_of
from dragoman.codecs.datasets.unread_keys import step_into
from dragoman.ir import AnyPart, Reasoning, Request, Text
from dragoman.ir.messages import Role

OPEN_WEBUI, LIBRECHAT = "open-webui", "librechat"
_FILES = "files of messages", "the export has only their names"


# ── Open WebUI ──


def _chat_of(data: Json) -> tuple[Line, str]:
    """Return the chat of an export or of a row of the database, and its path."""
    inner = data.get("chat") if isinstance(data, dict) else None
    if isinstance(inner, dict):
        return inner, "$.chat"
    return (data if isinstance(data, dict) else {}), "$"


def is_open_webui(data: Json) -> bool:
    """Return whether this is a chat whose history has messages by id, and the id of the current one."""
    history = _chat_of(data)[0].get("history")
    return isinstance(history, dict) and isinstance(history.get("messages"), dict) and "currentId" in history


def read_open_webui(data: Json) -> Request:
    chat, root = _chat_of(data)
    known: Mapping[str, Json] = chat["history"]["messages"]
    chain: dict[str, None] = {}
    key = chat["history"]["currentId"]
    while isinstance(key, str) and isinstance(known.get(key), dict) and key not in chain:
        chain[key] = None
        key = known[key].get("parentId")
    conversation, model = Conversation(OPEN_WEBUI), None
    parameters = chat.get("params")
    if isinstance(parameters, dict) and text_of(parameters.get("system")):
        place = f"{root}.params.system"
        conversation.add("system", [(Text(parameters["system"]), place)], place)
    for key in reversed(chain):
        message, place = known[key], step_into(f"{root}.history.messages", key)
        model = text_of(message.get("model")) or model
        role = role_of(message, OPEN_WEBUI, place)
        add_rounds(conversation, role, _webui_pieces(conversation, message, place), place)
    if len(chain) < len(known):
        conversation.leave_out(*OTHER_BRANCHES)
    return conversation.finish(model=model)


def _webui_pieces(conversation: Conversation, message: Line, place: str) -> list[Piece]:
    """Return the parts of a message; an answer that called tools has them as items of the Responses API."""
    if mappings(message.get("output")):
        return read_blocks(conversation, message["output"], f"{place}.output", _webui_item)
    pieces: list[Piece] = []
    for index, file in enumerate(mappings(message.get("files"))):
        if file.get("type") == "image" and text_of(file.get("url")):
            pieces.append((media("image/*", file["url"]), f"{place}.files[{index}]"))
        else:
            conversation.leave_out(*_FILES)
    content = text_of(message.get("content"))
    return [*pieces, (Text(content), f"{place}.content")] if content else pieces


def _webui_item(conversation: Conversation, item: Line) -> AnyPart | None:
    kind = text_of(item.get("type"))
    if kind == "message":
        return Text(_texts(item.get("content")))
    if kind == "reasoning":
        return Reasoning(_texts(item.get("content")) or _texts(item.get("summary")))
    if kind == "function_call":
        return conversation.call(item.get("name"), item.get("arguments"), item.get("call_id"))
    if kind == "function_call_output":
        output = item.get("output")
        blocks = mappings(output)
        if not all("text" in block for block in blocks):
            conversation.leave_out("media of tool results", "they are read as text")
        return conversation.result(_texts(output) if blocks else output, call_id=item.get("call_id"))
    return None


def _texts(content: Json) -> str:
    return text_of(content) or "".join(text_of(block.get("text")) for block in mappings(content))


# ── LibreChat ──


def is_librechat(data: Json) -> bool:
    """Return whether this is an export of one conversation, whose messages state whether the user wrote them."""
    if not isinstance(data, dict) or "conversationId" not in data:
        return False
    return any("isCreatedByUser" in message for message in mappings(data.get(_root_of(data))))


def _root_of(data: Line) -> str:
    return "messagesTree" if isinstance(data.get("messagesTree"), list) else "messages"


def read_librechat(data: Json) -> Request:
    """Read one branch: the last child of each message, which the application shows unless told otherwise."""
    conversation, options = Conversation(LIBRECHAT), data.get("options")
    given: Line = options if isinstance(options, dict) else {}
    if text_of(given.get("promptPrefix")):
        place = "$.options.promptPrefix"
        conversation.add("system", [(Text(given["promptPrefix"]), place)], place)
    model = text_of(given.get("model"))
    for message, place in _branch(conversation, data, f"$.{_root_of(data)}"):
        model = text_of(message.get("model")) or model
        role: Role = "user" if message.get("isCreatedByUser") is True else "assistant"
        pieces = read_blocks(conversation, message.get("content"), f"{place}.content", _librechat_part)
        if not pieces and text_of(message.get("text")):
            pieces = [(Text(message["text"]), f"{place}.text")]
        if mappings(message.get("files")):
            conversation.leave_out(*_FILES)
        add_rounds(conversation, role, pieces, place)
    return conversation.finish(model=model or None)


def _branch(conversation: Conversation, data: Line, root: str) -> list[tuple[Line, str]]:
    """Return the messages of one branch: along `children`, or back from the last message by its parents."""
    messages = items(data.get(_root_of(data)), LIBRECHAT, root)
    found: list[tuple[Line, str]] = []
    if any("children" in message for message in messages):
        while messages:
            if len(messages) > 1:
                conversation.leave_out(*OTHER_BRANCHES)
            root = f"{root}[{len(messages) - 1}]"
            found.append((messages[-1], root))
            root, messages = f"{root}.children", mappings(messages[-1].get("children"))
        return found
    numbers = {text_of(message.get("messageId")): index for index, message in enumerate(messages)}
    index: int | None = len(messages) - 1
    while index is not None and index >= 0:
        found.append((messages[index], f"{root}[{index}]"))
        before = numbers.get(text_of(messages[index].get("parentMessageId")))
        index = before if before is not None and before < index else None
    if len(found) < len(messages):
        conversation.leave_out(*OTHER_BRANCHES)
    return found[::-1]


def _librechat_part(conversation: Conversation, part: Line) -> list[AnyPart] | AnyPart | None:
    kind = text_of(part.get("type"))
    if kind == "text":
        return Text(_value(part.get("text")))
    if kind == "think":
        return Reasoning(_value(part.get("think")))
    if kind == "image_url":
        image = part.get("image_url")
        return media("image/*", image.get("url") if isinstance(image, dict) else image)
    call = part.get("tool_call")
    if kind != "tool_call" or not isinstance(call, dict):
        return None
    function = call.get("function")  # of the Assistants API
    inner: Line = function if isinstance(function, dict) else call
    arguments = inner.get("args", inner.get("arguments"))
    made = conversation.call(inner.get("name"), arguments if arguments != "" else None, call.get("id"))
    output = inner.get("output")
    return made if output is None else [made, conversation.result(output, call_id=made.id)]


def _value(text: Json) -> str:
    return text_of(text.get("value")) if isinstance(text, dict) else text_of(text)


_ITEM_KEYS = kinds_of(
    "type",
    {
        "message": keys("role", content=keys("type text")),
        "reasoning": keys(content=keys("type text"), summary=keys("type text")),
        "function_call": keys("call_id name arguments"),
        "function_call_output": keys("call_id", output=keys("type text")),
    },
    all_keys(),
)
_WEBUI_MESSAGE = keys("id parentId childrenIds role content model", output=_ITEM_KEYS, files=keys("type url"))
_WEBUI_CHAT = keys(history=keys("currentId", messages=Keys(None, each=_WEBUI_MESSAGE)), params=keys("system"))
_WEBUI_KEYS = Keys((_WEBUI_CHAT.names or frozenset()) | {"chat"}, (*_WEBUI_CHAT.inner, ("chat", _WEBUI_CHAT)))
_CALL_KEYS = keys("type id name args arguments output", function=keys("name args arguments output"))
_LIBRECHAT_MESSAGE = keys(
    "messageId parentMessageId isCreatedByUser model text children files",
    content=kinds_of(
        "type",
        {
            "text": keys(text=keys("value")),
            "think": keys(think=keys("value")),
            "image_url": keys(image_url=keys("url")),
            "tool_call": keys(tool_call=_CALL_KEYS),
        },
        all_keys(),
    ),
).recursive("children")
_LIBRECHAT_KEYS = keys(
    "conversationId recursive branches",
    options=keys("model promptPrefix"),
    messages=_LIBRECHAT_MESSAGE,
    messagesTree=_LIBRECHAT_MESSAGE,
)

_LACKS = "the tools"
OPEN_WEBUI_CHAT = Dataset(OPEN_WEBUI, is_open_webui, read_open_webui, keys=_WEBUI_KEYS, lacks=_LACKS)
LIBRECHAT_EXPORT = Dataset(LIBRECHAT, is_librechat, read_librechat, keys=_LIBRECHAT_KEYS, lacks=_LACKS)
