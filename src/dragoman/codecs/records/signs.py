"""Recognises a stored history by keys that one record format has, but no API and no other record format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

Record: TypeAlias = Mapping[str, Any]
Kind: TypeAlias = Literal["request", "response"]

_MODELS = ("gemini", "chatgpt", "claude")
_KINDS = ("text", "data", "error", "multimodal")


def known_record(data: Any) -> tuple[str, Kind] | None:
    """Return (format, kind) of a parsed body, or None if it is not a stored history or could be of several formats."""
    records, kind = _records(data)
    found = [name for name, sign in _SIGNS.items() if sign(records)]
    if isinstance(data, dict):
        if isinstance(data.get("turns"), list):
            return "multi-llm-chat", "request"
        if isinstance(data.get("finishReason"), str) and isinstance(data.get("content"), str):
            return "modular-prompt", "response"
        if _is_completion(data, records):
            return "agent-sdk", "response"
    return (found[0], kind) if len(found) == 1 else None


def _records(data: Any) -> tuple[list[Record], Kind]:
    if isinstance(data, list):
        return list(_mappings(data)), "request"
    if not isinstance(data, dict):
        return [], "request"
    if "messages" in data:
        return list(_mappings(data["messages"])), "request"
    return ([data], "response") if "role" in data else ([], "request")


def _mappings(value: Any) -> Iterable[Record]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _is_completion(data: Record, records: Sequence[Record]) -> bool:
    """Return whether it is an answer: only agent-sdk's have messages and token counts side by side."""
    usage = data.get("usage")
    if "messages" not in data or not isinstance(usage, dict) or "input_tokens" not in usage:
        return False
    return bool(records) and all(record.get("role") in ("assistant", "reasoning") for record in records)


def _calls(records: Sequence[Record], key: str) -> Iterable[Record]:
    return (call for record in records for call in _mappings(record.get(key)))


def _is_universal(records: Sequence[Record]) -> bool:
    results = any("result" in record and ("tool_call_id" in record or "is_error" in record) for record in records)
    calls = _calls(records, "tool_calls")
    flat = any(isinstance(call.get("arguments"), dict) and _is_own_call(call) for call in calls)
    return results or flat or any("raw_context" in call for call in (*records, *_calls(records, "tool_calls")))


def _is_own_call(call: Record) -> bool:
    """Return whether a call is not one of tau2, which names who asked, or of Inspect, whose `function` is a name."""
    return "requestor" not in call and not isinstance(call.get("function"), str)


def _is_modular_prompt(records: Sequence[Record]) -> bool:
    if any(record.get("type") == "gemini" for record in records):  # sessions of Gemini CLI have `toolCalls` too
        return False
    return any(
        "toolCalls" in record or "toolCallId" in record or (record.get("kind") in _KINDS and "value" in record)
        for record in records
    )


def _is_agent_sdk(records: Sequence[Record]) -> bool:
    if any(record.get("role") == "reasoning" or "output_ref" in record or "trimmed" in record for record in records):
        return True
    calls = list(_calls(records, "tool_calls"))
    if any("provider_meta" in call for call in calls):
        return True
    # Ollama names the tool of a result too; its arguments are objects.
    functions = [call["function"] for call in calls if isinstance(call.get("function"), dict)]
    texts = [isinstance(function.get("arguments"), str) for function in functions]
    return (
        bool(texts)
        and all(texts)
        and any(
            "tool_name" in r and "tool_call_id" in r and "tool_args" not in r
            for r in records  # Agno has arguments beside
        )
    )


def _is_multi_llm_chat(records: Sequence[Record]) -> bool:
    return any(record.get("role") in _MODELS for record in records) or any(
        _is_chat_part(part) for record in records for part in _mappings(record.get("content"))
    )


def _is_chat_part(part: Record) -> bool:
    kind = part.get("type")
    if kind == "text":
        return "content" in part and "text" not in part
    if kind == "tool_call":
        return "tool_call" not in part  # LibreChat
    return kind == "tool_result" and "tool_use_id" not in part


_SIGNS: dict[str, Callable[[Sequence[Record]], bool]] = {
    "universal": _is_universal,
    "modular-prompt": _is_modular_prompt,
    "agent-sdk": _is_agent_sdk,
    "multi-llm-chat": _is_multi_llm_chat,
}
