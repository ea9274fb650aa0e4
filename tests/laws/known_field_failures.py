"""Fields that vanish, or whose loss is not true, today: data for tests/laws/test_every_field.py. May only shrink."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Known:
    world: str
    kind: str
    field: str
    why: str
    targets: tuple[str, ...]


_SILENT = "the encoder neither writes nor reports it"
_UNTRUE = "the loss has the wrong severity"
_NOT_READ = "the codec's own decoder puts no metadata on this node, so its encoder does not look for any"
_STREAM_EXTRAS = "stream encoders neither write nor report cache marks and keys of a part that starts whole"
_STREAM_CITATIONS = "stream encoders write citations that come as deltas, not those of a part that starts whole"
_STREAM_AUDIO = "stream encoders expect sound as base64 that comes in deltas"

KNOWN: tuple[Known, ...] = (
    Known(
        "request", "Citation", "metadata (own)", _NOT_READ, ("openai-chat", "openai-responses", "gemini-interactions")
    ),
    Known("request", "Reasoning", "metadata (own)", _NOT_READ, ("openai-chat",)),
    Known("request", "Refusal", "metadata (own)", _NOT_READ, ("openai-chat",)),
    Known("request", "Image", "metadata (own)", _NOT_READ, ("ollama-chat",)),
    Known("request", "Audio", "metadata (own)", _NOT_READ, ("ollama-chat",)),
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
    Known("stream", "Text", "citations", _STREAM_CITATIONS, ("openai-chat", "gemini", "vertex")),
    Known(
        "stream",
        "Text",
        "cache",
        _STREAM_EXTRAS,
        ("openai-chat", "openai-responses", "anthropic-messages", "gemini", "vertex", "bedrock-converse"),
    ),
    Known(
        "stream",
        "Text",
        "metadata",
        _STREAM_EXTRAS,
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
        "metadata",
        _STREAM_EXTRAS,
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
    Known("stream", "Refusal", "metadata", _STREAM_EXTRAS, ("openai-chat", "openai-responses")),
    Known("stream", "Refusal", "metadata (own)", _NOT_READ, ("openai-chat", "openai-responses")),
    Known(
        "stream", "Image", "metadata", _STREAM_EXTRAS, ("gemini", "vertex", "bedrock-converse", "gemini-interactions")
    ),
    Known("stream", "Audio", "media_type", _STREAM_AUDIO, ("openai-chat",)),
    Known("stream", "Audio", "url", _STREAM_AUDIO, ("openai-chat",)),
    Known("stream", "Audio", "file_id", _STREAM_AUDIO, ("openai-chat",)),
    Known("stream", "Audio", "cache", _STREAM_EXTRAS, ("openai-chat",)),
    Known("stream", "Audio", "signature", _STREAM_AUDIO, ("openai-chat",)),
    Known("stream", "Audio", "metadata", _STREAM_EXTRAS, ("openai-chat", "gemini", "vertex", "gemini-interactions")),
    Known(
        "stream",
        "ToolCall",
        "cache",
        _STREAM_EXTRAS,
        ("openai-chat", "openai-responses", "anthropic-messages", "bedrock-converse", "ollama-chat"),
    ),
    Known(
        "stream",
        "ToolCall",
        "metadata",
        _STREAM_EXTRAS,
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
    Known("stream", "ToolCall", "metadata (own)", _NOT_READ, ("openai-chat", "ollama-chat")),
    Known("stream", "Citation", "url", _STREAM_CITATIONS, ("openai-chat", "gemini", "vertex")),
    Known("stream", "Citation", "title", _STREAM_CITATIONS, ("openai-chat", "gemini", "vertex")),
    Known("stream", "Citation", "cited_text", _STREAM_CITATIONS, ("openai-chat", "gemini", "vertex")),
    Known("stream", "Citation", "start", _STREAM_CITATIONS, ("openai-chat", "gemini", "vertex")),
    Known("stream", "Citation", "end", _STREAM_CITATIONS, ("openai-chat", "gemini", "vertex")),
    Known(
        "stream",
        "Citation",
        "metadata",
        _STREAM_EXTRAS,
        ("openai-chat", "openai-responses", "gemini", "vertex", "gemini-interactions"),
    ),
    Known(
        "stream",
        "Citation",
        "metadata (own)",
        _NOT_READ,
        ("openai-chat", "openai-responses", "gemini", "vertex", "gemini-interactions"),
    ),
)
