"""Messages as frameworks store them: Haystack, LlamaIndex, AutoGen, LangChain4j, Microsoft.Extensions.AI. Read-only.

A record is a list of messages, or an object with `messages`. Content of a kind that is not known here is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from msgspec import structs

from dragoman.codecs.datasets.conversation import (
    Conversation,
    Json,
    Piece,
    items,
    left_over,
    mappings,
    media,
    refuse,
    text_of,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.known_keys import keys, kinds_of, messages_in
from dragoman.codecs.datasets.trl import MESSAGE_KEYS, OTHER_KEYS, add_message
from dragoman.codecs.media import data_url
from dragoman.ir import AnyPart, Reasoning, Request, Text, ToolCall, ToolResult
from dragoman.ir.messages import Role

HAYSTACK, LLAMA_INDEX, AUTOGEN = "haystack", "llama-index", "autogen"
LANGCHAIN4J, DOTNET_AI = "langchain4j", "dotnet-ai"

Line: TypeAlias = Mapping[str, Json]
ReadPart: TypeAlias = Callable[[Conversation, Line], AnyPart | list[AnyPart] | None]
"""Returns the part that a block of content is, or the parts; None if its kind is not known."""

ROLES: dict[str, Role] = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant", "model": "assistant",
    "chatbot": "assistant", "tool": "tool", "function": "tool",
}  # fmt: skip
_UNKNOWN = "content of this kind is not known"


def messages_of(data: Json) -> tuple[list[Line], str]:
    """Return the messages of a record, and their path."""
    context = data.get("llm_context") if isinstance(data, dict) else None  # of an agent's state (AutoGen)
    if isinstance(context, dict):
        return mappings(context.get("messages")), "$.llm_context.messages"
    if isinstance(data, dict) and "chat_history" in data and "messages" not in data:  # a result of AutoGen 0.2
        return mappings(data["chat_history"]), "$.chat_history"
    if isinstance(data, dict):
        return mappings(data.get("messages")), "$.messages"
    return mappings(data), "$"


def add_turn(conversation: Conversation, role: Role, pieces: list[Piece], place: str) -> None:
    """Add a message; results in it become a message of their own, before the other content of a user message."""
    results = [piece for piece in pieces if isinstance(piece[0], ToolResult)]
    others = [piece for piece in pieces if not isinstance(piece[0], ToolResult)]
    if role == "assistant":
        conversation.add(role, others, place)
    conversation.add("tool", results, place)
    if role != "assistant":
        conversation.add("user" if role == "tool" else role, others, place)


def add_rounds(conversation: Conversation, role: Role, pieces: list[Piece], place: str) -> None:
    """Add a message that holds several rounds: text or reasoning after results begins a new answer."""
    turn: list[Piece] = []
    is_answered = False
    for piece in pieces:
        if is_answered and not isinstance(piece[0], ToolCall | ToolResult):
            add_turn(conversation, role, turn, place)
            turn, is_answered = [], False
        turn.append(piece)
        is_answered = is_answered or isinstance(piece[0], ToolResult)
    add_turn(conversation, role, turn, place)


def read_blocks(conversation: Conversation, content: Json, place: str, read_part: ReadPart) -> list[Piece]:
    """Return the parts of text or of a list of blocks; blocks that are not known are reported."""
    if isinstance(content, str):
        return [(Text(content), place)] if content else []
    pieces: list[Piece] = []
    if content is not None and not isinstance(content, list):
        conversation.leave_out(f"content of the kind {_kind(content)!r}", _UNKNOWN)
    for index, block in enumerate(content if isinstance(content, list) else []):
        part: AnyPart | list[AnyPart] | None = Text(block) if isinstance(block, str) else None
        if isinstance(block, dict):
            part = read_part(conversation, block)
        if part is not None:
            pieces += [(one, f"{place}[{index}]") for one in (part if isinstance(part, list) else [part])]
        else:
            conversation.leave_out(f"content of the kind {_kind(block)!r}", _UNKNOWN)
    return pieces


def read_thought(conversation: Conversation, text: Json, signature: Json = None) -> Reasoning:
    """Return reasoning; a signature is reported, because these files do not say reliably who made it."""
    if signature not in (None, ""):
        conversation.leave_out("signatures of reasoning", "only the provider that made them can verify them")
    return Reasoning(text_of(text))


def _kind(block: Json) -> str:
    if not isinstance(block, dict):
        return type(block).__name__
    named = next(
        (text_of(block.get(key)) for key in ("type", "$type", "block_type", "content_type") if text_of(block.get(key))),
        "",
    )
    return named or ", ".join(block)


def role_of(message: Line, name: str, place: str, key: str = "role") -> Role:
    given = message.get(key)
    if isinstance(given, dict):  # Agent Framework
        given = given.get("value")
    role = ROLES.get(text_of(given).lower())
    if role is None:
        raise refuse(name, f"{place}.{key}", " | ".join(ROLES), given)
    return role


def _inline(kind: Json, data: Json, url: Json) -> AnyPart | None:
    """Return a file that a block has as base64 data, or by its address; None without either."""
    kind, data = text_of(kind), text_of(data)
    if data:
        return media(kind or "image/*", data if data.startswith("data:") else data_url(kind or "image/png", data))
    return media(kind or "image/*", url) if text_of(url) else None


def _read(data: Json, name: str, add: Callable[[Conversation, Line, str], None]) -> Request:
    messages, root = messages_of(data)
    conversation = Conversation(name)
    for index, message in enumerate(items(messages, name, root)):
        add(conversation, message, f"{root}[{index}]")
    return conversation.finish(metadata=left_over(data, _MESSAGE_KEYS) if isinstance(data, dict) else None)


_MESSAGE_KEYS = ("messages", "llm_context", "chat_history")
"""Keys of a record under which its messages are."""


# ── Haystack ──


def is_haystack(data: Json) -> bool:
    """Return whether messages have blocks without types beside `meta` (before 2.13 with underscores)."""
    messages, _ = messages_of(data)
    return bool(messages) and all(
        ("_role" in message and "_content" in message)
        or ("role" in message and isinstance(message.get("meta"), dict) and _are_untyped(message.get("content")))
        for message in messages
    )


def _are_untyped(content: Json) -> bool:
    return isinstance(content, list) and all(isinstance(block, dict) and "type" not in block for block in content)


def _haystack_part(conversation: Conversation, block: Line) -> AnyPart | None:
    if "text" in block:
        return Text(text_of(block["text"]))
    for key, value in block.items():
        if not isinstance(value, dict):
            return None
        if key == "tool_call":
            return conversation.call(value.get("tool_name"), value.get("arguments"), value.get("id"))
        if key == "tool_call_result":
            origin = value.get("origin")
            call = origin if isinstance(origin, dict) else {}
            return conversation.result(
                value.get("result"),
                call_id=call.get("id"),
                name=call.get("tool_name"),
                is_error=value.get("error") is True,
            )
        if key == "reasoning":
            return read_thought(conversation, value.get("reasoning_text"), value.get("extra") or None)
        if key in {"image", "file"}:
            return _inline(value.get("mime_type"), value.get("base64_image") or value.get("base64_data"), None)
    return None


def _add_haystack(conversation: Conversation, message: Line, place: str) -> None:
    old = "_role" if "_role" in message else "role"
    key = "_content" if "_content" in message else "content"
    role = role_of(message, HAYSTACK, place, old)
    add_turn(conversation, role, read_blocks(conversation, message[key], f"{place}.{key}", _haystack_part), place)


# ── LlamaIndex ──


def is_llama_index(data: Json) -> bool:
    """Return whether messages have `additional_kwargs`, and blocks with a `block_type` (older ones: content)."""
    messages, _ = messages_of(data)
    return bool(messages) and all(
        "role" in message and isinstance(message.get("additional_kwargs"), dict) for message in messages
    )


def _llama_index_part(conversation: Conversation, block: Line) -> AnyPart | None:
    kind = text_of(block.get("block_type"))
    if kind == "text":
        return Text(text_of(block.get("text")))
    if kind == "thinking":
        return read_thought(conversation, block.get("content"), block.get("additional_information") or None)
    if kind == "tool_call":
        return conversation.call(block.get("tool_name"), block.get("tool_kwargs"), block.get("tool_call_id"))
    if kind == "image":
        return _inline(block.get("image_mimetype"), block.get("image"), block.get("url"))
    if kind == "document":
        return _inline(block.get("document_mimetype"), block.get("data"), block.get("url"))
    if kind == "audio":
        return _inline(f"audio/{text_of(block.get('format')) or 'wav'}", block.get("audio"), block.get("url"))
    return None


def _add_llama_index(conversation: Conversation, message: Line, place: str) -> None:
    more = message["additional_kwargs"]
    key = "blocks" if "blocks" in message else "content"
    role = role_of(message, LLAMA_INDEX, place)
    if role == "tool":
        pieces = read_blocks(conversation, message.get(key), f"{place}.{key}", _llama_index_part)
        texts = [part.text for part, _ in pieces if isinstance(part, Text)]
        result = conversation.result("\n".join(texts), call_id=more.get("tool_call_id"), name=more.get("name"))
        conversation.add("tool", [(result, place)], place)
        return
    pieces = read_blocks(conversation, message.get(key), f"{place}.{key}", _llama_index_part)
    if not any(kind.get("block_type") == "tool_call" for kind in mappings(message.get(key))):
        for index, call in enumerate(mappings(more.get("tool_calls"))):
            function = call.get("function")
            inner = function if isinstance(function, dict) else call
            made = conversation.call(inner.get("name"), inner.get("arguments"), call.get("id"))
            pieces.append((made, f"{place}.additional_kwargs.tool_calls[{index}]"))
    add_turn(conversation, role, pieces, place)


# ── AutoGen ──

_AUTOGEN_TEXTS = frozenset(
    {"TextMessage", "UserMessage", "AssistantMessage", "SystemMessage", "MultiModalMessage", "StopMessage"}
    | {"HandoffMessage", "ToolCallSummaryMessage", "StructuredMessage"}
)
_OLD_ROLES = ("system", "user", "assistant")
_AUTOGEN_CALLS = frozenset({"ToolCallRequestEvent", "ToolCallExecutionEvent", "FunctionExecutionResultMessage"})


def is_autogen(data: Json) -> bool:
    """Return whether messages have a type that AutoGen has, or results of calls in one message (before 0.4)."""
    messages, _ = messages_of(data)
    if any(map(has_tool_responses, messages)):
        return all("role" in message for message in messages)
    kinds = [text_of(message.get("type")) for message in messages]
    return (
        bool(messages)
        and all(kind.endswith(("Message", "Event")) for kind in kinds)
        and any(
            kind in _AUTOGEN_TEXTS | _AUTOGEN_CALLS and "content" in message
            for kind, message in zip(kinds, messages, strict=True)
        )
    )


def has_tool_responses(message: Line) -> bool:
    """Return whether a message has the results of all calls of a turn, as AutoGen had them before 0.4."""
    return message.get("role") == "tool" and bool(mappings(message.get("tool_responses")))


def _autogen_part(conversation: Conversation, block: Line) -> AnyPart | None:
    if "call_id" in block:
        return conversation.result(
            block.get("content"),
            call_id=block["call_id"],
            name=block.get("name"),
            is_error=block.get("is_error") is True,
        )
    if "name" in block and "arguments" in block:
        return conversation.call(block["name"], block["arguments"], block.get("id"))
    return _inline("image/png", block.get("data"), block.get("url")) if "data" in block else None


def _read_autogen(data: Json) -> Request:
    """Read the messages. A thought is an event of its own before the calls or the text of the same answer."""
    messages, root = messages_of(data)
    conversation, thoughts = Conversation(AUTOGEN), list[Piece]()
    for index, message in enumerate(items(messages, AUTOGEN, root)):
        place = f"{root}[{index}]"
        if text_of(message.get("type")) == "ThoughtEvent":
            thoughts.append((Reasoning(text_of(message.get("content"))), f"{place}.content"))
        elif _is_answer(message):
            _add_autogen(conversation, message, place, thoughts)
            thoughts = []
        else:
            conversation.add("assistant", thoughts, place)
            _add_autogen(conversation, message, place)
            thoughts = []
    conversation.add("assistant", thoughts, root)
    return conversation.finish(metadata=left_over(data, _MESSAGE_KEYS) if isinstance(data, dict) else None)


def _is_answer(message: Line) -> bool:
    return _autogen_role(message) == "assistant" and text_of(message.get("type")) in _AUTOGEN_TEXTS | _AUTOGEN_CALLS


def _autogen_role(message: Line) -> Role:
    kind = message.get("type")
    if kind == "SystemMessage":
        return "system"
    return "user" if message.get("source") == "user" or kind == "UserMessage" else "assistant"


def _add_autogen(conversation: Conversation, message: Line, place: str, thoughts: Sequence[Piece] = ()) -> None:
    if has_tool_responses(message):
        where = f"{place}.tool_responses"
        for index, answer in enumerate(items(message["tool_responses"], AUTOGEN, where)):
            add_message(conversation, {**answer, "role": "tool"}, f"{where}[{index}]")
        return
    if "role" in message:
        add_message(conversation, message, place)
        return
    kind, content = text_of(message.get("type")), message.get("content")
    if kind not in _AUTOGEN_TEXTS | _AUTOGEN_CALLS:
        conversation.leave_out(f"events of the kind {kind!r}", "they are not part of the conversation")
        return
    pieces = list(thoughts)
    if text_of(message.get("thought")):
        pieces.append((Reasoning(message["thought"]), f"{place}.thought"))
    pieces += read_blocks(conversation, content, f"{place}.content", _autogen_part)
    add_turn(conversation, _autogen_role(message), pieces, place)


# ── LangChain4j ──

_LANGCHAIN4J_ROLES: dict[str, Role] = {"SYSTEM": "system", "USER": "user", "AI": "assistant"}
_LANGCHAIN4J_RESULT = "TOOL_EXECUTION_RESULT"


def is_langchain4j(data: Json) -> bool:
    """Return whether messages have a type in capitals."""
    messages, _ = messages_of(data)
    kinds = {text_of(message.get("type")) for message in messages}
    return bool(kinds) and kinds <= {*_LANGCHAIN4J_ROLES, _LANGCHAIN4J_RESULT}


def _langchain4j_part(_conversation: Conversation, block: Line) -> AnyPart | None:
    if block.get("type") == "TEXT":
        return Text(text_of(block.get("text")))
    key = {"IMAGE": "image", "AUDIO": "audio", "PDF": "pdfFile"}.get(text_of(block.get("type")))
    inner = None if key is None else block.get(key)
    if not isinstance(inner, dict):
        return None
    kind = inner.get("mimeType") or ("application/pdf" if block["type"] == "PDF" else None)
    return _inline(kind, inner.get("base64Data"), inner.get("url"))


def _add_langchain4j(conversation: Conversation, message: Line, place: str) -> None:
    key = "contents" if "contents" in message else "text"
    if message["type"] == _LANGCHAIN4J_RESULT:
        pieces = read_blocks(conversation, message.get(key), f"{place}.{key}", _langchain4j_part)
        texts = [part.text for part, _ in pieces if isinstance(part, Text)]
        result = conversation.result(
            "\n".join(texts),
            call_id=message.get("id"),
            name=message.get("toolName"),
            is_error=message.get("isError") is True,
        )
        conversation.add("tool", [(result, place)], place)
        return
    pieces = []
    if text_of(message.get("thinking")):
        pieces.append((Reasoning(message["thinking"]), f"{place}.thinking"))
    pieces += read_blocks(conversation, message.get(key), f"{place}.{key}", _langchain4j_part)
    for index, call in enumerate(mappings(message.get("toolExecutionRequests"))):
        made = conversation.call(call.get("name"), call.get("arguments"), call.get("id"))
        pieces.append((made, f"{place}.toolExecutionRequests[{index}]"))
    conversation.add(_LANGCHAIN4J_ROLES[message["type"]], pieces, place, name=text_of(message.get("name")) or None)


# ── Microsoft.Extensions.AI and Agent Framework ──


def is_dotnet_ai(data: Json) -> bool:
    """Return whether messages have `contents` with types: `$type` in .NET, `type` in Python."""
    messages, _ = messages_of(data)
    return bool(messages) and all(
        "role" in message
        and isinstance(message.get("contents"), list)
        and all("$type" in block or "type" in block for block in mappings(message["contents"]))
        for message in messages
    )


def _dotnet_part(conversation: Conversation, block: Line) -> AnyPart | None:
    kind = (text_of(block.get("$type")) or text_of(block.get("type"))).replace("_", "").lower()
    call_id = block.get("callId", block.get("call_id"))
    if kind == "text":
        return Text(text_of(block.get("text")))
    if kind in {"reasoning", "textreasoning"}:
        return read_thought(conversation, block.get("text"), block.get("protectedData", block.get("protected_data")))
    if kind == "functioncall":
        return conversation.call(block.get("name"), block.get("arguments"), call_id)
    if kind == "functionresult":
        failed = block.get("exception")
        value = block.get("result") if failed is None else failed
        return conversation.result(value, call_id=call_id, is_error=failed is not None)
    if kind in {"data", "uri"}:
        return _inline(block.get("mediaType", block.get("media_type")), None, block.get("uri"))
    return None


def _add_dotnet(conversation: Conversation, message: Line, place: str) -> None:
    role = role_of(message, DOTNET_AI, place)
    add_turn(
        conversation, role, read_blocks(conversation, message["contents"], f"{place}.contents", _dotnet_part), place
    )


# ── what is read of a message ──

_HAYSTACK_BLOCKS = keys(
    "text",
    tool_call=keys("tool_name arguments id"),
    tool_call_result=keys("result error", origin=keys("id tool_name arguments")),
    reasoning=keys("reasoning_text extra"),
    image=keys("mime_type base64_image base64_data"),
    file=keys("mime_type base64_image base64_data"),
)
_HAYSTACK_KEYS = messages_in(keys("role _role", content=_HAYSTACK_BLOCKS, _content=_HAYSTACK_BLOCKS))
_LLAMA_INDEX_CALL = keys("type id name arguments", function=keys("name arguments"))
_LLAMA_INDEX_BLOCKS = kinds_of(
    "block_type",
    {
        "text": keys("text"),
        "thinking": keys("content additional_information"),
        "tool_call": keys("tool_name tool_kwargs tool_call_id"),
        "image": keys("image_mimetype image url"),
        "document": keys("document_mimetype data url"),
        "audio": keys("format audio url"),
    },
    keys("text"),
)
_LLAMA_INDEX_KEYS = messages_in(
    keys(
        "role",
        content=_LLAMA_INDEX_BLOCKS,
        blocks=_LLAMA_INDEX_BLOCKS,
        additional_kwargs=keys("tool_call_id name", tool_calls=_LLAMA_INDEX_CALL),
    )
)
_AUTOGEN_BLOCKS = keys("call_id content name is_error arguments id data url")
_AUTOGEN_ANSWERS = keys("role name tool_call_id content", tool_responses=keys("role tool_call_id content"))
_AUTOGEN_MESSAGE = structs.replace(
    MESSAGE_KEYS,
    names=frozenset({"role", "type", "source", "thought", "content"}),
    inner=(("content", _AUTOGEN_BLOCKS),),
    kinds={**MESSAGE_KEYS.kinds, "tool": _AUTOGEN_ANSWERS, **dict.fromkeys(_OLD_ROLES, OTHER_KEYS)},
)
_AUTOGEN_KEYS = messages_in(
    _AUTOGEN_MESSAGE, chat_history=_AUTOGEN_MESSAGE, llm_context=keys(messages=_AUTOGEN_MESSAGE)
)
_LANGCHAIN4J_FILE = keys("mimeType base64Data url")
_LANGCHAIN4J_KEYS = messages_in(
    keys(
        "type name thinking text id toolName isError",
        contents=keys("type text", image=_LANGCHAIN4J_FILE, audio=_LANGCHAIN4J_FILE, pdfFile=_LANGCHAIN4J_FILE),
        toolExecutionRequests=keys("id name arguments"),
    )
)
_DOTNET_BLOCKS = keys(
    "$type type text callId call_id protectedData protected_data name arguments exception result mediaType media_type "
    "uri"
)
_DOTNET_KEYS = messages_in(keys(role=keys("value"), contents=_DOTNET_BLOCKS))

HAYSTACK_MESSAGES = Dataset(
    HAYSTACK, is_haystack, lambda data: _read(data, HAYSTACK, _add_haystack), keys=_HAYSTACK_KEYS, lacks="the tools"
)
LLAMA_INDEX_MESSAGES = Dataset(
    LLAMA_INDEX,
    is_llama_index,
    lambda data: _read(data, LLAMA_INDEX, _add_llama_index),
    keys=_LLAMA_INDEX_KEYS,
    lacks="the tools",
)
AUTOGEN_MESSAGES = Dataset(AUTOGEN, is_autogen, _read_autogen, keys=_AUTOGEN_KEYS, lacks="the tools")
LANGCHAIN4J_MESSAGES = Dataset(
    LANGCHAIN4J,
    is_langchain4j,
    lambda data: _read(data, LANGCHAIN4J, _add_langchain4j),
    keys=_LANGCHAIN4J_KEYS,
    lacks="the tools",
)
DOTNET_AI_MESSAGES = Dataset(
    DOTNET_AI, is_dotnet_ai, lambda data: _read(data, DOTNET_AI, _add_dotnet), keys=_DOTNET_KEYS, lacks="the tools"
)
