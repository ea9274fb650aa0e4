"""What one model sees of a conversation: entries to messages, and its answers back to entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import structs

from dragoman.chat.entries import OTHERS, Entry, Part
from dragoman.chat.history import text_part
from dragoman.chat.media import restore_media, store_media
from dragoman.chat.payloads import call_of
from dragoman.codecs.records.multi_llm_chat import MessageEncoder
from dragoman.codecs.registry import codec
from dragoman.ir import Message, Request
from dragoman.ir.values import encode_json
from dragoman.losses import LossLog

FORMAT = "multi-llm-chat"
_UNFINISHED = {
    "error": "[this answer broke off: {error}]",
    "stopped": "[the user stopped this answer here]",
    "interrupted": "[this answer broke off here]",
    "cut": "[this answer was cut at its token limit]",
}


def entries_for_model(entries: Sequence[Entry], model: str, *, share: bool = False) -> Iterator[Entry]:
    """User entries and the model's own, in order. With `share` also other models' answers, quoted in user turns."""
    own: set[str] = set()
    for entry in entries:
        if entry.replaced or entry.extra.get("invalid"):
            continue
        if entry.role == model:
            own.update(str(call_of(part).get("tool_call_id")) for part in entry.content if part["type"] == "tool_call")
            yield from _own_answer(entry)
        elif entry.role == "tool":
            yield from _own_results(entry, model, own)
        elif entry.role == "user" and entry.content:
            content = _without_reasoning(entry)
            yield entry if len(content) == len(entry.content) else structs.replace(entry, content=content)
        elif share and entry.role not in OTHERS and entry.text:
            yield Entry(role="user", content=[text_part(f"[{entry.role} said]\n{entry.text}")], turn=entry.turn)


def _without_reasoning(entry: Entry) -> list[Part]:
    return [part for part in entry.content if part.get("type") != "reasoning"]


def _own_answer(entry: Entry) -> Iterator[Entry]:
    """Marks an answer that broke off; drops its unfinished reasoning."""
    if entry.status not in _UNFINISHED:
        if entry.content:
            yield entry
        return
    content = _without_reasoning(entry)
    if content:
        mark = _UNFINISHED[entry.status].format(error=entry.error)
        has_calls = any(part.get("type") == "tool_call" for part in content)
        yield structs.replace(entry, content=content if has_calls else [*content, text_part(f"\n{mark}")])


def _own_results(entry: Entry, model: str, own: set[str]) -> Iterator[Entry]:
    if entry.owner == model:
        results = [part for part in entry.content if part.get("tool_call_id") in own]
        if results:
            yield entry if len(results) == len(entry.content) else structs.replace(entry, content=results)


# ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────


def messages_of(entries: Iterable[Entry]) -> tuple[Message, ...]:
    """Entries as messages, without the speaker's name: every model sees itself as the assistant."""
    turns = [{"role": entry.role, "content": entry.content} for entry in entries]
    request = codec(FORMAT).decode_request(encode_json(turns))
    return tuple(restore_media(structs.replace(message, name=None)) for message in request.messages)


def content_of(message: Message) -> list[Part]:
    """The parts of a message in the stored form."""
    stored = store_media(message)
    raw = MessageEncoder(LossLog()).encode_entry(stored, stored.parts)
    entry: dict[str, Any] = msgspec.json.decode(raw)
    content = entry.get("content")
    return [text_part(content)] if isinstance(content, str) else list(content or ())


def request_of(entries: Iterable[Entry], system_prompt: str = "", model: str | None = None) -> Request:
    system = (Message("system", system_prompt),) if system_prompt else ()
    return Request(model, (*system, *messages_of(entries)))
