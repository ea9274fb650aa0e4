"""Exports of chat applications: conversations of ChatGPT (a tree of messages) and of Claude (a list)."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.codecs.datasets.conversation import Conversation, Dataset, Json, Piece, items, mappings, refuse, text_of
from dragoman.ir import Reasoning, Request, Text
from dragoman.ir.messages import Role

CHATGPT, CLAUDE = "chatgpt-export", "claude-export"


def is_chatgpt(data: Json) -> bool:
    """Return whether this is one conversation: a mapping of nodes, each with a message."""
    return isinstance(data, Mapping) and isinstance(data.get("mapping"), Mapping) and "current_node" in data


def read_chatgpt(data: Json) -> Request:
    """Read the branch that ends at the current node; edits and other answers are other branches."""
    nodes: Mapping[str, Json] = data["mapping"]
    chain: list[str] = []
    seen: set[str] = set()
    key = data.get("current_node")
    while isinstance(key, str) and key in nodes and key not in seen and isinstance(nodes[key], Mapping):
        seen.add(key)
        chain.append(key)
        key = nodes[key].get("parent")
    conversation = Conversation(CHATGPT)
    model = None
    for key in reversed(chain):
        message = nodes[key].get("message")
        if isinstance(message, Mapping):
            model = _add_node(conversation, message, f"$.mapping['{key}'].message") or model
    return conversation.finish(model=model)


def _add_node(conversation: Conversation, message: Mapping[str, Json], place: str) -> str | None:
    author, metadata, content = message.get("author"), message.get("metadata"), message.get("content")
    role = text_of(author.get("role")) if isinstance(author, Mapping) else ""
    inner = content if isinstance(content, Mapping) else {}
    parts = inner.get("parts")
    texts = (
        [part for part in parts if isinstance(part, str)] if isinstance(parts, list) else [text_of(inner.get("text"))]
    )
    text = "\n".join(filter(None, texts))
    fields = metadata if isinstance(metadata, Mapping) else {}
    if not text or fields.get("is_visually_hidden_from_conversation") is True:
        return None
    recipient = text_of(message.get("recipient"))
    if role == "assistant" and recipient not in {"", "all"}:
        # A call of one of ChatGPT's own tools, as text.
        conversation.add("assistant", [(conversation.call(recipient, {"input": text}), place)], place)
    elif role == "tool":
        name = author.get("name") if isinstance(author, Mapping) else None
        conversation.add("tool", [(conversation.result(text, name=name), place)], place)
    elif role in {"system", "user", "assistant"}:
        known: Role = role  # type: ignore[assignment]
        piece = Reasoning(text) if text_of(inner.get("content_type")) in {"thoughts", "reasoning_recap"} else Text(text)
        conversation.add(known, [(piece, place)], place)
    return text_of(fields.get("model_slug")) or None


def is_claude(data: Json) -> bool:
    """Return whether this is one conversation: messages with a sender."""
    return isinstance(data, Mapping) and any("sender" in message for message in mappings(data.get("chat_messages")))


def read_claude(data: Json) -> Request:
    conversation = Conversation(CLAUDE)
    for index, message in enumerate(items(data.get("chat_messages"), CLAUDE, "$.chat_messages")):
        place = f"$.chat_messages[{index}]"
        sender = message.get("sender")
        if text_of(sender) not in {"human", "assistant"}:
            raise refuse(CLAUDE, f"{place}.sender", "human | assistant", sender)
        _add_claude(conversation, message, place)
    return conversation.finish(model=data.get("model"))


def _add_claude(conversation: Conversation, message: Mapping[str, Json], place: str) -> None:
    role: Role = "user" if message["sender"] == "human" else "assistant"
    spoken_parts: list[Piece] = []
    blocks = mappings(message.get("content")) or [{"type": "text", "text": message.get("text")}]
    for index, block in enumerate(blocks):
        where = f"{place}.content[{index}]" if message.get("content") else f"{place}.text"
        kind = block.get("type")
        if kind == "tool_result":
            conversation.add(role, spoken_parts, place)
            spoken_parts = []
            value = block.get("content")
            texts = [text_of(part.get("text")) for part in mappings(value)]
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
    conversation.add(role, spoken_parts, place)


_PROMPT = "the system prompt and the tools"
CHATGPT_EXPORT = Dataset(CHATGPT, is_chatgpt, read_chatgpt, lacks=_PROMPT)
CLAUDE_EXPORT = Dataset(CLAUDE, is_claude, read_claude, lacks=_PROMPT)
