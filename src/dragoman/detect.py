"""Which format is this body? Decided by the keys each format alone requires; ambiguity is an answer of None."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from dragoman.codecs.reading import body_bytes
from dragoman.errors import DecodeError
from dragoman.ir.values import parse_json
from dragoman.translate import Body

Kind = Literal["request", "response", "error"]


class Detected(Struct, frozen=True):
    """What a body is."""

    format: str
    kind: Kind


def detect(body: Body) -> Detected | None:
    """The format and kind of a body, or None when it could be several or is none we know."""
    data = parse_json(body_bytes(body, "detect"))
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    if not isinstance(data, Mapping):
        return None
    for rule in (_gemini, _anthropic, _openai):
        found = rule(data)
        if found is not None:
            return found
    return None


def _has(data: Mapping[str, Any], *keys: str) -> bool:
    return any(key in data for key in keys)


def _gemini(data: Mapping[str, Any]) -> Detected | None:
    if _has(data, "contents"):
        vertex = _has(data, "modelArmorConfig", "model_armor_config")
        return Detected("vertex" if vertex else "gemini", "request")
    if _has(data, "candidates", "promptFeedback", "usageMetadata"):
        return Detected("vertex" if _has(data, "createTime") else "gemini", "response")
    error = data.get("error")
    if isinstance(error, Mapping) and isinstance(error.get("status"), str) and isinstance(error.get("code"), int):
        return Detected("gemini", "error")
    return None


def _anthropic(data: Mapping[str, Any]) -> Detected | None:
    if data.get("type") == "error" and "error" in data:
        return Detected("anthropic-messages", "error")
    if data.get("type") == "message" and "content" in data:
        return Detected("anthropic-messages", "response")
    messages = data.get("messages")
    if not isinstance(messages, list):
        return None
    if _has(data, "system", "stop_sequences", "thinking", "anthropic_version", "output_config", "top_k"):
        return Detected("anthropic-messages", "request")
    if any(_anthropic_tool(tool) for tool in data.get("tools") or ()) or any(map(_anthropic_message, messages)):
        return Detected("anthropic-messages", "request")
    choice = data.get("tool_choice")
    if isinstance(choice, Mapping) and choice.get("type") in {"auto", "any", "tool", "none"}:
        return Detected("anthropic-messages", "request")
    return None


def _anthropic_tool(tool: Any) -> bool:
    if not isinstance(tool, Mapping):
        return False
    return "input_schema" in tool or ("type" in tool and tool["type"] not in {"function", "custom"})


def _anthropic_message(message: Any) -> bool:
    """Blocks that only this format has."""
    own = {"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "server_tool_use"}
    content = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(content, list):
        return False
    return any(
        isinstance(block, Mapping) and (block.get("type") in own or "cache_control" in block) for block in content
    )


def _openai(data: Mapping[str, Any]) -> Detected | None:
    if _has(data, "choices"):
        return Detected("openai-chat", "response")
    if isinstance(data.get("messages"), list):
        # max_tokens is required by Anthropic and optional here: a body with nothing else to tell reads as this one.
        return Detected("openai-chat", "request")
    if _has(data, "error"):
        return Detected("openai-chat", "error")
    return None


def detect_or_raise(body: Body) -> Detected:
    """`detect`, for callers who need an answer."""
    found = detect(body)
    if found is None:
        raise DecodeError(path="$", expected="a body of a known format", got="keys of none of them", source="detect")
    return found
