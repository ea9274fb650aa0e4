"""Exports conversations: as Markdown, as the stored JSON, or in any wire format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from dragoman.chat.entries import OTHERS, Conversation, Entry, Part, to_document
from dragoman.chat.payloads import as_text, call_of
from dragoman.chat.views import entries_for_model, request_of
from dragoman.codecs.registry import formats
from dragoman.loss import Loss
from dragoman.translate import encode_request


class Exported(Struct, frozen=True):
    content: str
    media_type: str
    suffix: str
    losses: tuple[Loss, ...] = ()


def kinds() -> tuple[str, ...]:
    return ("markdown", "json", *formats(), *formats("record"))


def export(conversation: Conversation, kind: str = "markdown", model: str | None = None) -> Exported:
    """In a wire format, the conversation is exported as one model sees it: its own answers, and the others quoted."""
    if kind == "markdown":
        return Exported(markdown(conversation), "text/markdown", ".md")
    if kind == "json":
        body = json.dumps(to_document(conversation), ensure_ascii=False, indent=2)
        return Exported(body, "application/json", ".json")
    speaker = model or next(iter(conversation.models), "assistant")
    seen = entries_for_model(conversation.entries, speaker, share=model is None)
    return _wire(list(seen), kind, conversation.system_prompt)


def show_as(entries: Sequence[Entry], kind: str) -> Exported:
    """Exports only these entries, such as one answer, in a wire format."""
    return _wire(list(entries), kind)


def _wire(entries: Sequence[Entry], kind: str, system_prompt: str = "") -> Exported:
    if kind not in kinds():
        raise ValueError(f"{kind!r} is not a format; choose one of {', '.join(kinds())}")
    encoded = encode_request(request_of(entries, system_prompt), kind)
    text = json.dumps(json.loads(encoded.content), ensure_ascii=False, indent=2)
    return Exported(text, "application/json", ".json", encoded.losses)


# ── Markdown ──────────────────────────────────────────────────────────────────────────────────────────────────


def markdown(conversation: Conversation) -> str:
    lines = [f"# {conversation.title}", ""]
    if conversation.created:
        lines += [f"*{conversation.created} to {conversation.updated}*", ""]
    if conversation.system_prompt:
        lines += ["## System prompt", "", conversation.system_prompt, ""]
    speaker = ""
    for entry in conversation.entries:
        if entry.replaced:
            continue
        if entry.role not in {"tool", speaker}:
            speaker = entry.role
            lines += [f"## {_title(entry)}", ""]
        lines += _entry_lines(entry)
    return "\n".join(lines).rstrip() + "\n"


def _title(entry: Entry) -> str:
    return f"{entry.role} ({entry.model})" if entry.model and entry.role not in OTHERS else entry.role.capitalize()


def _entry_lines(entry: Entry) -> Iterator[str]:
    for part in entry.content:
        render = _PARTS.get(str(part.get("type")))
        yield from render(part) if render is not None else (f"*[{part.get('type')}]*", "")
    if entry.status != "ok":
        yield from (f"> **{entry.status}**: {entry.error or entry.status}", "")


def _call(part: Part) -> list[str]:
    call = call_of(part)
    arguments = call.get("arguments")
    shown = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, indent=2)
    return [f"**Tool call** `{call.get('name')}`", "", *_fence(shown, "json")]


def _result(part: Part) -> list[str]:
    word = "Tool error" if part.get("is_error") else "Tool result"
    return [f"**{word}** `{part.get('name')}`", "", *_fence(as_text(part.get("content")), "")]


def _fence(text: str, language: str) -> list[str]:
    """A fenced block; the fence is longer than any inside the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return [f"{fence}{language}", text, fence, ""]


def _reasoning(part: Part) -> list[str]:
    body = as_text(part.get("content"))
    return ["<details><summary>Reasoning</summary>", "", body, "", "</details>", ""] if body else []


_PARTS: Mapping[str, Callable[[Part], list[str]]] = {
    "text": lambda part: [as_text(part.get("content")), ""],
    "reasoning": _reasoning,
    "tool_call": _call,
    "tool_result": _result,
    "image": lambda part: [f"*[image {part.get('title', '')}]*".replace(" ]", "]"), ""],
    "document": lambda part: [f"*[file {part.get('title', '')}]*".replace(" ]", "]"), ""],
}
