"""Fields that vanish, or whose loss is not true, today: data for tests/laws/test_every_field.py. May only shrink."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Known:
    world: str
    kind: str
    field: str
    why: str
    targets: tuple[str, ...]


_UNTRUE = "the loss has the wrong severity"
_NOT_READ = "the codec's own decoder puts no metadata on this node, so its encoder does not look for any"

KNOWN: tuple[Known, ...] = (
    Known(
        "request", "Citation", "metadata (own)", _NOT_READ, ("openai-chat", "openai-responses", "gemini-interactions")
    ),
    Known("request", "Reasoning", "metadata (own)", _NOT_READ, ("openai-chat",)),
    Known("request", "Refusal", "metadata (own)", _NOT_READ, ("openai-chat",)),
    Known("request", "Image", "metadata (own)", _NOT_READ, ("ollama-chat",)),
    Known("request", "Audio", "metadata (own)", _NOT_READ, ("ollama-chat",)),
    Known("result", "Image", "metadata (own)", _NOT_READ, ("ollama-chat",)),
    Known("result", "Audio", "metadata (own)", _NOT_READ, ("ollama-chat",)),
    Known("request", "ToolResult", "metadata (own)", _NOT_READ, ("openai-responses",)),
    Known(
        "request",
        "ToolChoice",
        "metadata (own)",
        _NOT_READ,
        ("openai-chat", "openai-responses", "bedrock-converse", "ollama-chat", "gemini-interactions"),
    ),
    Known(
        "request",
        "ReasoningSettings",
        "metadata (own)",
        _NOT_READ,
        (
            "openai-chat",
            "openai-responses",
            "anthropic-messages",
            "gemini",
            "vertex",
            "bedrock-converse",
            "ollama-chat",
            "gemini-interactions",
        ),
    ),
    Known(
        "request",
        "StructuredOutput",
        "metadata (own)",
        _NOT_READ,
        ("gemini", "vertex", "bedrock-converse", "ollama-chat", "gemini-interactions"),
    ),
    Known(
        "answer",
        "Citation",
        "metadata (own)",
        _NOT_READ,
        ("openai-chat", "openai-responses", "gemini", "vertex", "gemini-interactions"),
    ),
    Known(
        "system message",
        "Message",
        "metadata (own)",
        _NOT_READ,
        ("openai-responses", "anthropic-messages", "bedrock-converse", "gemini-interactions"),
    ),
    Known("user message", "Image", "metadata (own)", _NOT_READ, ("ollama-chat",)),
    Known("user message", "Audio", "metadata (own)", _NOT_READ, ("ollama-chat",)),
    Known("assistant message", "Text", "metadata (own)", _NOT_READ, ("openai-chat", "ollama-chat")),
    Known("assistant message", "Image", "metadata (own)", _NOT_READ, ("ollama-chat",)),
    Known("assistant message", "Audio", "metadata (own)", _NOT_READ, ("ollama-chat",)),
    Known("answer", "Text", "metadata (own)", _NOT_READ, ("openai-chat", "ollama-chat")),
    Known(
        "answer",
        "Reasoning",
        "metadata (own)",
        _NOT_READ,
        ("openai-chat", "openai-responses", "anthropic-messages", "gemini", "vertex", "ollama-chat"),
    ),
    Known("answer", "Refusal", "metadata (own)", _NOT_READ, ("openai-chat",)),
    Known("answer", "Audio", "media_type", _UNTRUE, ("openai-chat",)),
    Known("answer", "Message", "metadata (own)", _NOT_READ, ("anthropic-messages", "bedrock-converse")),
    Known(
        "answer",
        "Usage",
        "metadata (own)",
        _NOT_READ,
        (
            "openai-chat",
            "openai-responses",
            "anthropic-messages",
            "gemini",
            "vertex",
            "bedrock-converse",
            "ollama-chat",
            "gemini-interactions",
        ),
    ),
    Known(
        "answer",
        "Finish",
        "metadata (own)",
        _NOT_READ,
        (
            "openai-chat",
            "openai-responses",
            "anthropic-messages",
            "gemini",
            "vertex",
            "bedrock-converse",
            "ollama-chat",
            "gemini-interactions",
        ),
    ),
    Known(
        "stream",
        "Text",
        "metadata (own)",
        _NOT_READ,
        ("openai-chat", "openai-responses", "bedrock-converse", "ollama-chat", "gemini-interactions"),
    ),
    Known(
        "stream",
        "Reasoning",
        "metadata (own)",
        _NOT_READ,
        (
            "openai-chat",
            "openai-responses",
            "anthropic-messages",
            "gemini",
            "vertex",
            "bedrock-converse",
            "ollama-chat",
            "gemini-interactions",
        ),
    ),
    Known("stream", "Refusal", "metadata (own)", _NOT_READ, ("openai-chat", "openai-responses")),
    Known("stream", "ToolCall", "metadata (own)", _NOT_READ, ("openai-chat", "ollama-chat")),
    Known(
        "stream",
        "Citation",
        "metadata (own)",
        _NOT_READ,
        ("openai-chat", "openai-responses", "gemini", "vertex", "gemini-interactions"),
    ),
)
