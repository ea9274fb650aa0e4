"""LiteLLM's `thinking_blocks`: Anthropic's own blocks of thinking, beside the content of a chat message."""

from __future__ import annotations

from msgspec import Raw

from dragoman.ir import Reasoning, Signature
from dragoman.ir.values import parse_json

BLOCKS = "thinking_blocks"


def blocks_in(raw: Raw) -> list[Reasoning] | None:
    """Return the reasoning of LiteLLM's `thinking_blocks`, or of fragments of them; None if they are not Claude's.

    For Gemini, LiteLLM puts the JSON of a whole part into the same field.
    """
    found = parse_json(raw)
    parts: list[Reasoning] = []
    for block in found if isinstance(found, list) else ():
        kind = block.get("type") if isinstance(block, dict) else None
        thinking = block.get("thinking") if kind == "thinking" else None
        data = block.get("data") if kind == "redacted_thinking" else None
        if isinstance(data, str):
            parts.append(Reasoning("", Signature("anthropic", data), redacted=True))
        elif isinstance(thinking, str) and not thinking.startswith('{"'):
            signature = block.get("signature")
            signed = Signature("anthropic", signature) if isinstance(signature, str) and signature else None
            parts.append(Reasoning(thinking, signed))
        else:
            return None
    return parts if isinstance(found, list) else None


def squeezed(text: str) -> str:
    """Remove white space for comparison: servers join the pieces of the same reasoning with different separators."""
    return "".join(text.split())
