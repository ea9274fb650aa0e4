"""Exports of chat applications: conversations of ChatGPT (a tree of messages) and of Claude (a list)."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.codecs.datasets.conversation import (
    OTHER_BRANCHES,
    Conversation,
    Json,
    Piece,
    items,
    mappings,
    refuse,
    text_of,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.known_keys import Keys, all_keys, keys, kinds_of
from dragoman.ir import Document, Reasoning, Request, Text
from dragoman.ir.messages import Role

CHATGPT, CLAUDE = "chatgpt-export", "claude-export"


def is_chatgpt(data: Json) -> bool:
    """Return whether this is one conversation: a mapping of nodes, each with a message."""
    return isinstance(data, dict) and isinstance(data.get("mapping"), dict) and "current_node" in data


def read_chatgpt(data: Json) -> Request:
    """Read the branch that ends at the current node; edits and other answers are other branches."""
    nodes: Mapping[str, Json] = data["mapping"]
    chain: list[str] = []
    seen: set[str] = set()
    key = data.get("current_node")
    while isinstance(key, str) and key in nodes and key not in seen and isinstance(nodes[key], dict):
        seen.add(key)
        chain.append(key)
        key = nodes[key].get("parent")
    conversation = Conversation(CHATGPT)
    model = None
    for key in reversed(chain):
        message = nodes[key].get("message")
        if isinstance(message, dict):
            model = _add_node(conversation, message, f"$.mapping['{key}'].message") or model
    if any(isinstance(node, dict) and node.get("message") and key not in seen for key, node in nodes.items()):
        conversation.leave_out(*OTHER_BRANCHES)
    return conversation.finish(model=model)


def _add_node(conversation: Conversation, message: Mapping[str, Json], place: str) -> str | None:
    author, metadata, content = message.get("author"), message.get("metadata"), message.get("content")
    role = text_of(author.get("role")) if isinstance(author, dict) else ""
    inner = content if isinstance(content, dict) else {}
    text = _chatgpt_text(conversation, inner)
    fields = metadata if isinstance(metadata, dict) else {}
    if not text or fields.get("is_visually_hidden_from_conversation") is True:
        return None
    recipient = text_of(message.get("recipient"))
    if role == "assistant" and recipient not in {"", "all"}:
        # A call of one of ChatGPT's own tools, as text.
        conversation.add("assistant", [(conversation.call(recipient, {"input": text}), place)], place)
    elif role == "tool":
        name = author.get("name") if isinstance(author, dict) else None
        conversation.add("tool", [(conversation.result(text, name=name), place)], place)
    elif role in {"system", "user", "assistant"}:
        known: Role = role  # type: ignore[assignment]
        piece = Reasoning(text) if inner.get("content_type") == "thoughts" else Text(text)
        conversation.add(known, [(piece, place)], place)
    return text_of(fields.get("model_slug")) or None


def _chatgpt_text(conversation: Conversation, content: Mapping[str, Json]) -> str:
    """Return the text of a message; files are in the export beside this file, and are reported as left out."""
    kind, parts = text_of(content.get("content_type")), content.get("parts")
    if kind == "thoughts":
        found = [
            text_of(one.get("content")) or text_of(one.get("summary")) for one in mappings(content.get("thoughts"))
        ]
        return "\n".join(filter(None, found))
    if not isinstance(parts, list):
        texts = [text_of(content.get(key)) for key in ("text", "result")]
        if kind not in _WITHOUT_PARTS and not any(texts):
            conversation.leave_out(f"messages of type {kind!r}", "their content is not text")
        return next(filter(None, texts), "")
    for part in mappings(parts):
        if not text_of(part.get("text")):
            what = text_of(part.get("content_type")).removesuffix("_asset_pointer").replace("_", " ") or "file"
            conversation.leave_out(f"{what} in a message", "this file only names it: its content is in another file")
    texts = [text_of(part.get("text")) if isinstance(part, dict) else text_of(part) for part in parts]
    return "\n".join(filter(None, texts))


_WITHOUT_PARTS = frozenset(
    {"", "code", "execution_output", "tether_browsing_display", "tether_quote", "system_error"}
    | {"user_editable_context", "model_editable_context", "reasoning_recap"}
)
"""Types whose content is text, or which the application displays although the model did not write them."""


def is_claude(data: Json) -> bool:
    """Return whether this is one conversation: messages with a sender."""
    return isinstance(data, dict) and any("sender" in message for message in mappings(data.get("chat_messages")))


def read_claude(data: Json) -> Request:
    """Read the branch that ends at the current or last message."""
    conversation = Conversation(CLAUDE)
    messages = items(data.get("chat_messages"), CLAUDE, "$.chat_messages")
    kept = _claude_branch(messages, data.get("current_leaf_message_uuid"))
    for index, message in enumerate(messages):
        if index not in kept:
            continue
        place = f"$.chat_messages[{index}]"
        sender = message.get("sender")
        if text_of(sender) not in {"human", "assistant"}:
            raise refuse(CLAUDE, f"{place}.sender", "human | assistant", sender)
        _add_claude(conversation, message, place)
    if len(kept) < len(messages):
        conversation.leave_out(*OTHER_BRANCHES)
    return conversation.finish(model=data.get("model"))


def _claude_branch(messages: list[Mapping[str, Json]], leaf: Json) -> set[int]:
    """Return the positions of the messages of one branch; of all if they do not name their parents."""
    known = {text_of(message.get("uuid")): index for index, message in enumerate(messages)}
    if not messages or not all("parent_message_uuid" in message for message in messages):
        return set(known.values()) | set(range(len(messages)))
    index, kept = known.get(text_of(leaf), len(messages) - 1), set[int]()
    while index not in kept:
        kept.add(index)
        index = known.get(text_of(messages[index]["parent_message_uuid"]), index)
    return kept


def _claude_files(conversation: Conversation, message: Mapping[str, Json], place: str) -> list[Piece]:
    """Return the texts that Claude was given with a message; of other files the export has only the names."""
    found: list[Piece] = []
    for index, file in enumerate(mappings(message.get("attachments"))):
        where, text, title = f"{place}.attachments[{index}]", file.get("extracted_content"), file.get("file_name")
        if text_of(text):
            found.append((Document("text/plain", text=text, title=text_of(title) or None), where))
        else:
            conversation.leave_out("attachments without text", "the export has only their names")
    if mappings(message.get("files")):
        conversation.leave_out("files of messages", "the export has only their names")
    return found


def _add_claude(conversation: Conversation, message: Mapping[str, Json], place: str) -> None:
    role: Role = "user" if message["sender"] == "human" else "assistant"
    spoken_parts = _claude_files(conversation, message, place)
    blocks = mappings(message.get("content")) or [{"type": "text", "text": message.get("text")}]
    for index, block in enumerate(blocks):
        where = f"{place}.content[{index}]" if message.get("content") else f"{place}.text"
        kind = block.get("type")
        if kind == "tool_result":
            conversation.add(role, spoken_parts, place)
            spoken_parts = []
            value = block.get("content")
            texts = [text_of(part.get("text")) for part in mappings(value)]
            for part in mappings(value):
                if not text_of(part.get("text")) and part.get("type") != "text":
                    conversation.leave_out(f"{text_of(part.get('type')) or 'parts'} in results", "they have no text")
            failed = block.get("is_error") is True
            shown = "\n".join(filter(None, texts)) if texts else value
            result = conversation.result(
                shown, call_id=block.get("tool_use_id"), name=block.get("name"), is_error=failed
            )
            conversation.add("tool", [(result, where)], where)
        elif kind == "tool_use":
            spoken_parts.append((conversation.call(block.get("name"), block.get("input"), block.get("id")), where))
        elif kind == "thinking":
            spoken_parts.append((Reasoning(text_of(block.get("thinking"))), where))
        elif text_of(block.get("text")):
            spoken_parts.append((Text(block["text"]), where))
        elif text_of(kind) not in {"text", "token_budget"}:
            conversation.leave_out(f"blocks of type {kind!r}", "their content is not text")
    conversation.add(role, spoken_parts, place)


_NODE_KEYS = keys(
    "id parent children",
    message=keys(
        "recipient",
        author=keys("role name"),
        metadata=keys("is_visually_hidden_from_conversation model_slug"),
        content=keys("content_type parts text result", thoughts=keys("content summary")),
    ),
)
_CHATGPT_KEYS = keys("current_node", mapping=Keys(None, each=_NODE_KEYS))
_BLOCK_KEYS = kinds_of(
    "type",
    {
        "text": keys("text"),
        "thinking": keys("thinking"),
        "tool_use": keys("id name input"),
        "tool_result": keys("tool_use_id name is_error", content=keys("type text")),
    },
    all_keys(),
)
_CLAUDE_KEYS = keys(
    "current_leaf_message_uuid model",
    chat_messages=keys(
        "uuid parent_message_uuid sender text files",
        content=_BLOCK_KEYS,
        attachments=keys("extracted_content file_name"),
    ),
)

_PROMPT = "the system prompt and the tools"
CHATGPT_EXPORT = Dataset(CHATGPT, is_chatgpt, read_chatgpt, keys=_CHATGPT_KEYS, lacks=_PROMPT)
CLAUDE_EXPORT = Dataset(CLAUDE, is_claude, read_claude, keys=_CLAUDE_KEYS, lacks=_PROMPT)
