"""Entries of a history as messages of each model's API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from dragoman.chat.payloads import as_text, call_of, parse_tool_response_payload
from dragoman.codecs.arguments import UNPARSED_KEY
from dragoman.codecs.ids import is_invented
from dragoman.codecs.records.pairing import Pairing
from dragoman.ir.values import exact_object, parse_json

Entry: TypeAlias = dict[str, Any]
Message: TypeAlias = dict[str, Any]
Formatter: TypeAlias = Callable[[Entry], Iterable[Message]]


def visible_entries(entries: Sequence[Entry], model: str) -> Iterator[Entry]:
    """Entries that one model sees: none of other models, and no results of their calls.

    Calls without an id get one; results without an id get that of the next unanswered call.
    """
    pairing = Pairing()
    owners: dict[str, str] = {}
    for index, entry in enumerate(entries):
        role = entry.get("role")
        parts = []
        for place, part in enumerate(entry["content"]):
            kind = part.get("type")
            if kind == "tool_call":
                call = call_of(part)
                seed = f"[{index}].content[{place}]"
                call_id, _ = pairing.call(_string_at(call, "tool_call_id"), _string_at(call, "name") or "", seed, {})
                owners[call_id] = str(role)
                parts.append(
                    {
                        "type": kind,
                        "name": call.get("name"),
                        "arguments": _arguments(call.get("arguments")),
                        "metadata": call.get("metadata"),
                        "tool_call_id": call_id,
                    }
                )
            elif kind == "tool_result":
                call_id, name = pairing.result(_string_at(part, "tool_call_id"), _string_at(part, "name"), {})
                if owners.get(call_id, model) == model:
                    parts.append({**part, "name": name, "tool_call_id": call_id})
            else:
                parts.append(part)
        if parts and role in {"user", "tool", "system", model} and not entry.get("invalid"):
            yield {**entry, "content": parts}


def gather_results(entries: Iterable[Entry]) -> list[Entry]:
    """Moves the results of each turn into one entry right after it, in the order of its calls.

    Gemini and Claude refuse results of one turn that are spread over several.
    """
    entries = list(entries)
    results: dict[str, list[dict[str, Any]]] = {}
    called = {part["tool_call_id"] for entry in entries for part in _parts_of_type(entry, "tool_call")}
    for entry in entries:
        for part in _parts_of_type(entry, "tool_result"):
            results.setdefault(part["tool_call_id"], []).append(part)
    gathered = []
    for entry in entries:
        remaining = [
            part for part in entry["content"] if part.get("type") != "tool_result" or part["tool_call_id"] not in called
        ]
        if remaining:
            gathered.append({**entry, "content": remaining})
        calls = [part["tool_call_id"] for part in _parts_of_type(entry, "tool_call")]
        answers = [part for call_id in dict.fromkeys(calls) for part in results.get(call_id, ())]
        if answers:
            gathered.append({"role": "tool", "content": answers})
    return gathered


def _string_at(data: Mapping[str, Any], key: str) -> str | None:
    value = data.get(key)
    return value if isinstance(value, str) else None


def _arguments(given: Any) -> dict[str, Any]:
    """Arguments as an object. Text that is not a JSON object stays text, so it can never run a tool."""
    if given is None or isinstance(given, Mapping):
        return dict(given or {})
    parsed = exact_object(given) if isinstance(given, str) else None
    return {UNPARSED_KEY: as_text(given)} if parsed is None else parse_json(parsed)


def _parts_of_type(entry: Entry, kind: str) -> list[dict[str, Any]]:
    return [part for part in entry["content"] if part.get("type") == kind]


# ── Gemini ────────────────────────────────────────────────────────────────────────────────────────────────────

# The documents of the earlier system call the role of results "function"; the API knows user and model only.
_GEMINI_ROLES = {"user": "user", "tool": "user"}


def _for_gemini(entry: Entry) -> Iterator[Message]:
    role = entry["role"]
    parts = [wire for part in entry["content"] if (wire := _gemini_part(part)) is not None]
    if role != "system" and parts:
        yield {"role": _GEMINI_ROLES.get(role, "model"), "parts": parts}


def _gemini_part(part: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = part.get("type")
    if kind == "text":
        return {"text": as_text(part.get("content", ""))}
    if kind == "tool_call":
        wire: dict[str, Any] = {"function_call": {"name": part["name"], "args": part["arguments"]}}
        metadata = part["metadata"]
        signature = metadata.get("thoughtSignature") if isinstance(metadata, Mapping) else None
        return wire if signature is None else {**wire, "thought_signature": signature}
    if kind == "tool_result":
        content = part.get("content")
        response = {"error": content} if part.get("is_error") else parse_tool_response_payload(content)
        wire = {"name": part["name"], "response": response}
        # Echo ids that the API assigned, not ids that we made.
        minted = part["tool_call_id"] and not is_invented(part["tool_call_id"])
        return {"function_response": {**wire, "id": part["tool_call_id"]} if minted else wire}
    return None


# ── ChatGPT ───────────────────────────────────────────────────────────────────────────────────────────────────


def _for_chatgpt(entry: Entry) -> Iterator[Message]:
    role = entry["role"]
    calls = [
        {
            "id": part["tool_call_id"],
            "type": "function",
            "function": {"name": part["name"], "arguments": as_text(part["arguments"])},
        }
        for part in _parts_of_type(entry, "tool_call")
    ]
    texts = [as_text(part.get("content", "")) for part in _parts_of_type(entry, "text")]
    if texts or calls:
        message = {"role": role if role in {"user", "system"} else "assistant", "content": " ".join(texts) or None}
        yield {**message, "tool_calls": calls} if calls else {**message, "content": " ".join(texts)}
    for part in _parts_of_type(entry, "tool_result"):
        content = part.get("content")
        text = as_text({"error": content}) if part.get("is_error") else as_text("" if content is None else content)
        yield {"role": "tool", "tool_call_id": part["tool_call_id"], "content": text}


# ── Claude ────────────────────────────────────────────────────────────────────────────────────────────────────


def _for_claude(entry: Entry) -> Iterator[Message]:
    blocks = [wire for part in entry["content"] if (wire := _claude_block(part)) is not None]
    role = entry["role"]
    if role != "system" and blocks:
        yield {"role": "user" if role in {"user", "tool"} else "assistant", "content": blocks}


def _claude_block(part: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = part.get("type")
    if kind == "text" and as_text(part.get("content", "")).strip():
        return {"type": "text", "text": as_text(part["content"])}
    if kind == "tool_call":
        return {"type": "tool_use", "id": part["tool_call_id"], "name": part["name"], "input": part["arguments"]}
    if kind == "tool_result":
        content = part.get("content")
        text = as_text("" if content is None else content)
        block = {"type": "tool_result", "tool_use_id": part["tool_call_id"], "content": text}
        return {**block, "is_error": True} if part.get("is_error") else block
    return None


FORMATTERS: dict[str, Formatter] = {"gemini": _for_gemini, "chatgpt": _for_chatgpt, "claude": _for_claude}
