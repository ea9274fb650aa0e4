"""Imports conversations: files of this program or the earlier one, and request bodies of any format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dragoman.chat.entries import Conversation, Unreadable, now, read_conversation, read_entries
from dragoman.chat.stores.earlier import read_document
from dragoman.chat.views import FORMAT, content_of
from dragoman.detection import detect
from dragoman.errors import DragomanError
from dragoman.ir import Message
from dragoman.translate import decode_request

# A body does not name the model that answered: the usual participant name for its API.
_SPEAKERS: Mapping[str, str] = {
    "openai-chat": "chatgpt",
    "openai-responses": "chatgpt",
    "anthropic-messages": "claude",
    "bedrock-converse": "claude",
    "gemini": "gemini",
    "vertex": "gemini",
    "ollama-chat": "ollama",
    "cohere-chat": "cohere",
    "gemini-interactions": "gemini",
}
_NOBODY = "assistant"


def read_file(path: Path) -> Conversation:
    """Reads a conversation from a file."""
    try:
        return import_document(read_document(path), name=path.stem)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(f"{path} is not JSON: {error}") from None


def import_document(document: Any, *, name: str = "") -> Conversation:
    """Reads a stored conversation, or a request body, whose assistant turns get the usual participant name."""
    form = _format_of(document)
    if form is None:
        return read_conversation(document, name=name)
    try:
        messages = decode_request(document, form).messages
    except DragomanError as error:
        raise Unreadable(f"it looks like {form}, and is not: {error}") from None
    speaker = _SPEAKERS.get(form, _NOBODY)
    system = "\n\n".join(message.text for message in messages if message.role == "system")
    entries = read_entries(_raw_entries(messages, speaker))
    return Conversation(name=name, system_prompt=system, entries=entries, created=now(), updated=now())


def _format_of(document: Any) -> str | None:
    """The format of a request body; None for our own entries and for input that `read_conversation` will refuse."""
    if isinstance(document, Mapping) and "turns" in document:
        return None
    try:
        found = detect(document)
    except (DragomanError, TypeError):
        return None
    return None if found is None or found.kind != "request" or found.format == FORMAT else found.format


def _raw_entries(messages: tuple[Message, ...], speaker: str) -> Iterator[dict[str, Any]]:
    for message in messages:
        if message.role == "system":
            continue
        fields: dict[str, Any] = {"content": content_of(message)}
        if message.role == "tool":
            yield {"role": "tool", "owner": speaker, **fields}
        else:
            yield {"role": speaker if message.role == "assistant" else message.role, **fields}
