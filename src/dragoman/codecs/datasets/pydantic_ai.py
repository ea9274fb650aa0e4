"""Messages of pydantic-ai: requests and responses, each a list of parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codecs.datasets.conversation import (
    UNSTORED_MEDIA,
    UNSTORED_WORDS,
    Conversation,
    Json,
    Piece,
    arguments_value,
    drop_part,
    items,
    mappings,
    media,
    refuse,
    report_settings,
    result_value,
    text_of,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.known_keys import all_keys, keys, kinds_of
from dragoman.ir import (
    AnyPart,
    Audio,
    Document,
    Image,
    Message,
    Reasoning,
    Refusal,
    Request,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.losses import LossLog

NAME = "pydantic-ai"
_FAMILIES = {
    "anthropic": "anthropic", "openai": "openai", "google": "google", "google-gla": "google", "google-vertex": "google",
    "bedrock": "bedrock",
}  # fmt: skip
_FAILED = frozenset({"failed", "denied", "interrupted", "retried"})


def is_record(data: Json) -> bool:
    """Return whether this is a list of messages with a kind and parts with a `part_kind`."""
    messages = mappings(data)
    return bool(messages) and all(
        text_of(message.get("kind")) in {"request", "response"} and isinstance(message.get("parts"), list)
        for message in messages
    )


def read(data: Json) -> Request:
    conversation = Conversation(NAME)
    model, instructions = None, None
    messages = items(data, NAME, "$")
    for message in messages:
        instructions = text_of(message.get("instructions")) or instructions
    if instructions:  # each request repeats them, and only the last ones are sent
        conversation.add("system", [(Text(instructions), "$")], "$")
    for index, message in enumerate(messages):
        place = f"$[{index}]"
        if message.get("kind") == "request":
            _add_request(conversation, message, place)
        elif message.get("kind") == "response":
            model = text_of(message.get("model_name")) or model
            family = _FAMILIES.get(text_of(message.get("provider_name")), "")
            pieces = [
                (part, f"{place}.parts[{number}]")
                for number, one in enumerate(mappings(message.get("parts")))
                if (part := _response_part(conversation, one, family)) is not None
            ]
            conversation.add("assistant", pieces, place)
        else:
            raise refuse(NAME, f"{place}.kind", "request | response", message.get("kind"))
    return conversation.finish(model=model)


def _add_request(conversation: Conversation, message: Mapping[str, Json], place: str) -> None:
    for index, part in enumerate(mappings(message.get("parts"))):
        where, kind = f"{place}.parts[{index}]", part.get("part_kind")
        if kind == "system-prompt":
            conversation.add("system", [(Text(text_of(part.get("content"))), where)], where)
        elif kind == "user-prompt":
            conversation.add("user", _user_content(part.get("content"), where), where)
        elif kind == "tool-return":
            failed = text_of(part.get("outcome")) in _FAILED
            result = conversation.result(
                part.get("content"), call_id=part.get("tool_call_id"), name=part.get("tool_name"), is_error=failed
            )
            conversation.add("tool", [(result, where)], where)
        elif kind == "retry-prompt":
            _add_retry(conversation, part, where)
        else:
            conversation.leave_out(f"parts of the kind {kind!r}", _NOT_READ)


def _add_retry(conversation: Conversation, part: Mapping[str, Json], where: str) -> None:
    """Add a correction: as the result of the call it refers to, otherwise as text of the user."""
    content = part.get("content")
    if part.get("tool_name") is None:
        conversation.add("user", [(Text(text_of(content)), where)], where)
        return
    result = conversation.result(content, call_id=part.get("tool_call_id"), name=part.get("tool_name"), is_error=True)
    conversation.add("tool", [(result, where)], where)


def _user_content(content: Json, place: str) -> list[Piece]:
    if isinstance(content, str):
        return [(Text(content), place)] if content else []
    pieces: list[Piece] = []
    for index, item in enumerate(content if isinstance(content, list) else []):
        where = f"{place}.content[{index}]"
        if isinstance(item, str):
            pieces.append((Text(item), where))
        elif isinstance(item, dict) and item.get("kind") == "binary":
            kind = text_of(item.get("media_type"))
            pieces.append((media(kind, f"data:{kind};base64,{_standard(text_of(item.get('data')))}"), where))
        elif isinstance(item, dict) and isinstance(item.get("url"), str):
            kind = text_of(item.get("kind")).removesuffix("-url")
            pieces.append(
                (media({"image": "image/*", "audio": "audio/*"}.get(kind, "application/*"), item["url"]), where)
            )
        elif not isinstance(item, dict) or item.get("kind") != "cache-point":  # no content
            raise refuse(NAME, where, "text, a URL or bytes", item)
    return pieces


def _standard(data: str) -> str:
    """Return base64 in the standard alphabet: these messages use the URL-safe one."""
    return data.replace("-", "+").replace("_", "/")


def _response_part(conversation: Conversation, part: Mapping[str, Json], family: str) -> AnyPart | None:
    kind = part.get("part_kind")
    if kind == "text":
        return Text(text_of(part.get("content")))
    if kind == "thinking":
        signed = text_of(part.get("signature"))
        minted = _FAMILIES.get(text_of(part.get("provider_name")), family)
        signature = Signature(minted, signed, text_of(part.get("id")) or None) if signed and minted else None
        return Reasoning(text_of(part.get("content")), signature)
    if kind == "tool-call":
        return conversation.call(part.get("tool_name"), part.get("args"), part.get("tool_call_id"))
    conversation.leave_out(f"parts of the kind {kind!r}", _NOT_READ)
    return None


_NOT_READ = "content of this kind is not read"


def write(request: Request, log: LossLog) -> Json:
    report_settings(request, log)
    for tool in request.tools:
        log.drop(tool, "", f"tool {getattr(tool, 'name', '')!r}", "a list of messages has no place for tools")
    written: list[dict[str, Any]] = []
    for message in request.messages:
        kind = "response" if message.role == "assistant" else "request"
        parts = [one for part in message.parts if (one := _write_part(message, part, log)) is not None]
        if kind == "request" and written and written[-1]["kind"] == "request":
            written[-1]["parts"] += parts
        elif kind == "request":
            written.append({"kind": kind, "parts": parts})
        else:
            model = {} if request.model is None else {"model_name": request.model}
            written.append({"kind": kind, "parts": parts, **model})
    return written


def _write_part(message: Message, part: AnyPart, log: LossLog) -> Json | None:
    if isinstance(part, ToolResult):
        name = {"tool_name": part.name, "tool_call_id": part.tool_call_id}
        outcome = "failed" if part.is_error else "success"
        return {"part_kind": "tool-return", **name, "content": result_value(part, log), "outcome": outcome}
    if message.role != "assistant":
        return _write_prompt(message, part, log)
    if isinstance(part, Text | Refusal):
        return {"part_kind": "text", "content": part.text}
    if isinstance(part, Reasoning):
        signed = part.signature
        kept = {} if signed is None else {"signature": signed.data, "id": signed.id, "provider_name": signed.family}
        return {"part_kind": "thinking", "content": part.text, **kept}
    if isinstance(part, ToolCall):
        arguments = arguments_value(part, NAME, prefers_text=True)
        return {"part_kind": "tool-call", "tool_name": part.name, "args": arguments, "tool_call_id": part.id}
    drop_part(part, log)
    return None


def _write_prompt(message: Message, part: AnyPart, log: LossLog) -> Json | None:
    kind = "system-prompt" if message.role == "system" else "user-prompt"
    if isinstance(part, Text):
        return {"part_kind": kind, "content": part.text}
    if isinstance(part, Image | Audio | Document) and part.data is not None:
        return {"part_kind": kind, "content": [{"kind": "binary", "data": part.data, "media_type": part.media_type}]}
    if isinstance(part, Image | Audio | Document) and part.url is not None:
        name = {Image: "image-url", Audio: "audio-url"}.get(type(part), "document-url")
        return {"part_kind": kind, "content": [{"kind": name, "url": part.url}]}
    drop_part(part, log)
    return None


_PART_KEYS = kinds_of(
    "part_kind",
    {
        "user-prompt": keys(content=keys("kind url media_type data")),
        "system-prompt text": keys("content"),
        "tool-return": keys("content tool_name tool_call_id outcome"),
        "retry-prompt": keys("content tool_name tool_call_id"),
        "thinking": keys("content signature id provider_name"),
        "tool-call": keys("tool_name args tool_call_id"),
    },
    all_keys(),
)
_KEYS = keys("kind instructions model_name provider_name", parts=_PART_KEYS)
DATASET = Dataset(NAME, is_record, read, write, keys=_KEYS, unstored={**UNSTORED_WORDS, **UNSTORED_MEDIA})
