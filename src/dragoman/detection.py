"""Detects the format of a body or stream by keys that only one format has; None if ambiguous.

The module is not named `detect`: as an attribute of the package it would hide the function once imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from dragoman.codecs.datasets.catalogue import known_dataset
from dragoman.codecs.framing import BOM, AwsEventStream, Framing, SniffedJson, begins_with_frame
from dragoman.codecs.reading import Body, body_bytes, check_text
from dragoman.codecs.records.signs import known_record
from dragoman.codecs.stream_limits import Limits
from dragoman.errors import DecodeError, LimitExceeded
from dragoman.ir.values import parse_json

Kind = Literal["request", "response", "error"]


class Detected(Struct, frozen=True):
    """Format and kind of a body."""

    format: str
    kind: Kind


def detect(body: Body) -> Detected | None:
    """The format and kind of a body; None if it is ambiguous or unknown."""
    data = _parse(body_bytes(body, "body"))
    record = known_record(data)
    if record is not None:
        return Detected(*record)
    if isinstance(data, list) or (isinstance(data, dict) and not _names_model(data)):
        stored = known_dataset(data)
        if stored is not None:
            return Detected(stored, "request")
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    if not isinstance(data, dict) or _is_chunk(data) or _is_line(data) or _is_responses_event(data):
        return None
    if _is_interactions_event(data):
        return None
    for rule in (_gemini, _interactions, _responses, _converse, _ollama, _cohere, _answer, _request):
        found = rule(data)
        if found is not None:
            return found
    return None


def _parse(body: bytes) -> Any:
    check_text(body, "body")
    try:
        return parse_json(body)
    except RecursionError as error:
        raise LimitExceeded(path="$", expected="JSON", got="nesting too deep to read", source="body") from error
    except msgspec.DecodeError as error:
        raise DecodeError(path="$", expected="JSON", got=str(error), source="body") from error


def _names_model(data: Mapping[str, Any]) -> bool:
    """Whether this is a request of an API: it names a model, and is neither a trace nor a row of a data set."""
    if not isinstance(data.get("model"), str) or "traceId" in data or not _has(data, "messages", "input", "contents"):
        return False
    return not any("tool_call_ids" in message for message in _mappings(data.get("messages")))


def _has(data: Mapping[str, Any], *keys: str) -> bool:
    return any(key in data for key in keys)


def _mappings(value: Any) -> Iterable[Mapping[str, Any]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _gemini(data: Mapping[str, Any]) -> Detected | None:
    if _is_contents(data):
        vertex = _has(data, "modelArmorConfig", "model_armor_config")
        return Detected("vertex" if vertex else "gemini", "request")
    if _is_gemini_answer(data):
        return Detected("vertex" if _has(data, "createTime") else "gemini", "response")
    error = data.get("error")
    if isinstance(error, dict) and isinstance(error.get("status"), str) and isinstance(error.get("code"), int):
        return Detected("gemini", "error")
    return None


_GEMINI_KEYS = frozenset({"generationConfig", "systemInstruction", "safetySettings", "cachedContent", "toolConfig"})
_GEMINI_KEYS |= {"generation_config", "system_instruction", "safety_settings", "cached_content", "tool_config"}
_GEMINI_COUNTS = frozenset({"usageMetadata", "modelVersion", "responseId", "createTime", "modelStatus", "trafficType"})
"""Keys of an answer, or of the last event of a stream, that has only counts."""


def _is_contents(data: Mapping[str, Any]) -> bool:
    """Whether `contents` are Gemini's: messages of other libraries, and listings of files, have that key too."""
    contents = data.get("contents")
    if isinstance(contents, dict):
        return "parts" in contents
    return isinstance(contents, list) and (
        any("parts" in content for content in _mappings(contents)) or not _GEMINI_KEYS.isdisjoint(data)
    )


def _is_gemini_answer(data: Mapping[str, Any]) -> bool:
    if isinstance(data.get("candidates"), list):
        return all(isinstance(candidate, dict) for candidate in data["candidates"])
    return "promptFeedback" in data or ("usageMetadata" in data and data.keys() <= _GEMINI_COUNTS)


_INTERACTIONS_KEYS = frozenset(
    {"generation_config", "previous_interaction_id", "system_instruction", "agent", "agent_config"}
    | {"response_format", "safety_settings", "webhook_config", "continuation_token"}
)
"""Keys beside `input` in a request."""
_INTERACTIONS_ITEMS = frozenset(
    {"user_input", "model_output", "thought", "function_result", "text", "image", "audio", "video", "document"}
)
_GOOGLE_MODEL = re.compile(r"(?:models/)?(?:gemini|gemma|lyria|veo|imagen)-")


def _interactions(data: Mapping[str, Any]) -> Detected | None:
    """Requests and responses. Its errors have the form of generateContent's."""
    if data.get("object") == "interaction" or (isinstance(data.get("steps"), list) and "status" in data):
        return Detected("gemini-interactions", "response")
    if "input" not in data or _has(data, "messages", "traceId") or _is_other_endpoint(data):
        return None
    given = data["input"]
    items = [given] if isinstance(given, dict) else list(_mappings(given))
    if (
        _has(data, *_INTERACTIONS_KEYS)
        or any(_word(item.get("type")) in _INTERACTIONS_ITEMS for item in items)
        or any(_word(item.get("type")) == "function_call" and "call_id" not in item for item in items)
        or _GOOGLE_MODEL.match(_word(data.get("model")))
    ):
        return Detected("gemini-interactions", "request")
    return None


_RESPONSES_KEYS = frozenset(
    {
        "prompt",
        "instructions",
        "previous_response_id",
        "conversation",
        "max_output_tokens",
        "reasoning",
        "text",
        "tools",
    }
    | {"include", "store", "background", "truncation"}
)
"""Keys beside `input` in a request without a model."""


_OTHER_ENDPOINTS = frozenset({"voice", "encoding_format", "dimensions", "input_type"})
_OTHER_MODELS = re.compile(r"embed|moderation|(?:^|[-/])tts(?:-|$)", re.IGNORECASE)


def _is_other_endpoint(data: Mapping[str, Any]) -> bool:
    """Whether `input` is text to embed, to speak or to classify."""
    given = data.get("input")
    if isinstance(given, list):
        return any(not isinstance(item, dict) for item in given)
    return not _OTHER_ENDPOINTS.isdisjoint(data) or _OTHER_MODELS.search(_word(data.get("model"))) is not None


def _responses(data: Mapping[str, Any]) -> Detected | None:
    """Requests and responses. Its errors have the form of Chat's."""
    if data.get("object") == "response" and not _has(data, "choices"):
        return Detected("openai-responses", "response")
    if _has(data, "messages") or _is_other_endpoint(data):
        return None
    if _has(data, "output", "traceId") or not _has(data, "model", *_RESPONSES_KEYS):
        return None  # many data sets have rows with `input`, and with `output` beside it
    if isinstance(data.get("input"), str | list) or (_has(data, "input") and isinstance(data.get("prompt"), dict)):
        return Detected("openai-responses", "request")
    return None


_CONVERSE_KEYS = frozenset(
    {"inferenceConfig", "toolConfig", "guardrailConfig", "additionalModelRequestFields", "outputConfig"}
    | {"additionalModelResponseFieldPaths", "performanceConfig", "serviceTier", "requestMetadata", "promptVariables"}
)


_CONVERSE_BLOCKS = (
    "text", "toolUse", "toolResult", "reasoningContent", "image", "document", "video", "audio", "cachePoint",
    "guardContent", "citationsContent", "searchResult",
)  # fmt: skip


def _converse(data: Mapping[str, Any]) -> Detected | None:
    """An error is detected only if it names its class: the others are a bare message, as in other formats."""
    output = data.get("output")
    if isinstance(output, dict) and isinstance(output.get("message"), dict) and "input" not in data:
        return Detected("bedrock-converse", "response")
    if isinstance(data.get("message"), str) and _word(data.get("__type")).endswith("Exception"):
        return Detected("bedrock-converse", "error")
    messages = data.get("messages")
    if isinstance(messages, list) and (_has(data, *_CONVERSE_KEYS) or any(map(_untyped_blocks, _mappings(messages)))):
        return Detected("bedrock-converse", "request")
    return None


_OLLAMA_KEYS = frozenset({"options", "keep_alive", "think", "format"})
"""Keys beside `messages` in a request; other formats have them elsewhere."""
_OLLAMA_ERROR = frozenset({"error", "signin_url"})


def _ollama(data: Mapping[str, Any]) -> Detected | None:
    if isinstance(data.get("message"), dict) and isinstance(data.get("done"), bool):
        return Detected("ollama-chat", "response")
    if isinstance(data.get("error"), str) and data.keys() <= _OLLAMA_ERROR:
        return Detected("ollama-chat", "error")
    messages = data.get("messages")
    if isinstance(messages, list) and (
        not _OLLAMA_KEYS.isdisjoint(data) or any(map(_is_ollama_message, _mappings(messages)))
    ):
        return Detected("ollama-chat", "request")
    return None


def _is_ollama_message(message: Mapping[str, Any]) -> bool:
    """Whether a message has images beside the text, results by tool name, or arguments as objects."""
    functions = (call.get("function") for call in _mappings(message.get("tool_calls")))
    # Agno's logs name the tool of a result too, beside the arguments of its call.
    is_named = "tool_name" in message and "tool_args" not in message
    return (
        is_named
        or "images" in message
        or any(isinstance(function.get("arguments"), dict) for function in functions if isinstance(function, dict))
    )


_COHERE_KEYS = frozenset({"citation_options", "strict_tools", "safety_mode", "p", "k"})
_COHERE_ERROR = frozenset({"id", "message", "error_type"})
_COHERE_MODEL = re.compile(r"command-[a-z0-9-]+-\d{2}-\d{4}|c4ai-[a-z0-9-]+")
_COHERE_FINISHES = frozenset({"COMPLETE", "STOP_SEQUENCE", "MAX_TOKENS", "TOOL_CALL", "ERROR", "TIMEOUT"})


def _cohere(data: Mapping[str, Any]) -> Detected | None:
    """Version 2 of the API; version 1 has `message` instead of `messages`."""
    if isinstance(data.get("message"), dict) and _word(data.get("finish_reason")) in _COHERE_FINISHES:
        return Detected("cohere-chat", "response")
    if isinstance(data.get("message"), str) and _has(data, "id", "error_type") and data.keys() <= _COHERE_ERROR:
        return Detected("cohere-chat", "error")
    messages = data.get("messages")
    if isinstance(messages, list) and (
        not _COHERE_KEYS.isdisjoint(data)
        or _COHERE_MODEL.fullmatch(_word(data.get("model"))) is not None
        or _word(data.get("tool_choice")) in {"REQUIRED", "NONE"}
        or any("data" in document for document in _mappings(data.get("documents")))
        or any(map(_is_cohere_message, _mappings(messages)))
    ):
        return Detected("cohere-chat", "request")
    return None


def _is_cohere_message(message: Mapping[str, Any]) -> bool:
    return "tool_plan" in message or any(
        isinstance(part.get("document"), dict) and "type" in part for part in _mappings(message.get("content"))
    )


def _answer(data: Mapping[str, Any]) -> Detected | None:
    """Responses and errors of the two formats whose requests have `messages`."""
    if data.get("type") == "error" and "error" in data:
        return Detected("anthropic-messages", "error")
    if data.get("type") == "message" and isinstance(data.get("content"), list):
        blocks = {_word(block.get("type")) for block in _mappings(data["content"])}
        return None if blocks & _RESPONSES_PARTS else Detected("anthropic-messages", "response")
    choices = data.get("choices")
    if isinstance(choices, list) and all(
        isinstance(choice, dict) and _has(choice, *_CHOICE_KEYS) for choice in choices
    ):
        return Detected("openai-chat", "response")
    if _is_chat_error(data):
        return Detected("openai-chat", "error")
    return None


_RESPONSES_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file", "input_audio"})
"""Parts of items of the Responses API, whose type is `message` too."""
_CHOICE_KEYS = ("message", "finish_reason", "delta", "text", "index")
_ERROR_KEYS = frozenset({"message", "type", "code", "param", "status", "msg", "detail"})
_BESIDE_ERROR = frozenset({"request_id", "id", "object", "provider", "user_id", "event_id", "timestamp", "model"})
_BESIDE_ERROR |= _ERROR_KEYS | {"error", "error_type", "status_code", "statusCode", "details", "success", "innererror"}


def _is_chat_error(data: Mapping[str, Any]) -> bool:
    """Whether this is an error and nothing else: records of logs and tools have a key `error` too."""
    error = data.get("error")
    if not data.keys() <= _BESIDE_ERROR:
        return False
    return isinstance(error, str) or (isinstance(error, dict) and not _ERROR_KEYS.isdisjoint(error))


# ── requests with `messages` ──────────────────────────────────────────────────────────────────────────────────
# Both formats have them, and servers of one format accept keys of the other. So signs are counted; shapes that only one
# format has count twice. A body without signs is read as the format whose simplest request is model and messages.

_ANTHROPIC_KEYS = frozenset(
    {"system", "stop_sequences", "anthropic_version", "anthropic_beta", "output_config", "top_k"}
    | {"mcp_servers", "container", "context_management"}
)
_OPENAI_KEYS = frozenset(
    {"max_completion_tokens", "n", "seed", "stop", "logprobs", "top_logprobs", "logit_bias", "response_format"}
    | {"frequency_penalty", "presence_penalty", "parallel_tool_calls", "reasoning_effort", "stream_options"}
    | {"functions", "function_call", "modalities", "prediction", "user", "store"}
)
_ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "redacted_thinking", "image", "document", "server_tool_use"})
_OPENAI_PARTS = frozenset({"image_url", "input_audio", "file", "refusal"})
_OPENAI_ROLES = frozenset({"developer", "tool", "function"})
_ANTHROPIC_MODEL = re.compile(r"(?:[a-z]+\.)?(?:anthropic\.)?claude-")
_DATED_TOOL = re.compile(r"[a-z_]+_20\d{6}")


def _request(data: Mapping[str, Any]) -> Detected | None:
    messages = data.get("messages")
    if not isinstance(messages, list):
        return None
    roles = ["role" in message for message in _mappings(messages)]
    if roles and not any(roles):  # messages of another library
        return None
    anthropic = sum(_anthropic_signs(data, messages))
    openai = sum(_openai_signs(data, messages))
    return Detected("anthropic-messages" if anthropic > openai else "openai-chat", "request")


def _untyped_blocks(message: Mapping[str, Any]) -> bool:
    """Whether a message has blocks of Bedrock Converse, whose only key is their kind."""
    return any("type" not in block and _has(block, *_CONVERSE_BLOCKS) for block in _mappings(message.get("content")))


def _anthropic_signs(data: Mapping[str, Any], messages: list[Any]) -> Iterable[int]:
    model, choice = data.get("model"), data.get("tool_choice")
    tools = list(_mappings(data.get("tools")))
    yield from (key in _ANTHROPIC_KEYS for key in data)
    yield _is_anthropic_thinking(data.get("thinking"))
    yield isinstance(model, str) and _ANTHROPIC_MODEL.match(model) is not None
    yield isinstance(choice, dict) and _word(choice.get("type")) in {"auto", "any", "tool", "none"}
    yield 2 * any("input_schema" in tool for tool in tools)
    yield 2 * any(_DATED_TOOL.fullmatch(_word(tool.get("type"))) for tool in tools)
    yield 2 * any(_word(block.get("type")) in _ANTHROPIC_BLOCKS for block in _blocks(messages))
    yield any("cache_control" in block or block.get("type") == "thinking" for block in _blocks(messages))


def _is_anthropic_thinking(thinking: Any) -> bool:
    """Whether `thinking` is Anthropic's: servers of Chat's format have it too, but only switch it on or off."""
    return isinstance(thinking, dict) and (
        _has(thinking, "budget_tokens", "display") or "adaptive" in thinking.values()
    )


def _openai_signs(data: Mapping[str, Any], messages: list[Any]) -> Iterable[int]:
    yield from (key in _OPENAI_KEYS for key in data)
    yield "max_tokens" not in data  # Anthropic requires it
    choice = data.get("tool_choice")
    yield isinstance(choice, str) or (isinstance(choice, dict) and "function" in choice)
    yield 2 * any("function" in tool for tool in _mappings(data.get("tools")))
    roles = [_word(message.get("role")) for message in _mappings(messages)]
    yield roles[:1] == ["system"] or any(role in _OPENAI_ROLES for role in roles)  # Anthropic: not the first
    yield 2 * any(_has(message, "tool_calls", "tool_call_id", "function_call") for message in _mappings(messages))
    yield 2 * any(_word(block.get("type")) in _OPENAI_PARTS for block in _blocks(messages))


def _blocks(messages: list[Any]) -> Iterable[Mapping[str, Any]]:
    return (block for message in _mappings(messages) for block in _mappings(message.get("content")))


def _word(value: Any) -> str:
    """The value if it is a string, else empty; the body is unchecked."""
    return value if isinstance(value, str) else ""


# ── streams ───────────────────────────────────────────────────────────────────────────────────────────────────

_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
"""Starts of lines in server-sent events; no JSON text starts with one of them."""
_MESSAGES_EVENTS = frozenset({"message_start", "message_delta", "message_stop", "ping"}) | {
    f"content_block_{step}" for step in ("start", "delta", "stop")
}


_CONVERSE_EVENTS = frozenset({"messageStart", "messageStop", "metadata"}) | {
    f"contentBlock{step}" for step in ("Start", "Delta", "Stop")
}
"""Event types of binary frames."""
_COHERE_EVENTS = frozenset({"message-start", "message-end", "tool-plan-delta"}) | {
    f"{what}-{step}" for what in ("content", "tool-call") for step in ("start", "delta", "end")
}


def is_event_stream(start: bytes) -> bool:
    """Whether these are the first bytes of server-sent events."""
    return start.removeprefix(BOM).lstrip().startswith(_FIELDS)


def looks_streamed(start: bytes) -> bool:
    """Whether these are the first bytes of a stream, not of a body."""
    return is_event_stream(start) or begins_with_frame(start) or detect_stream(start, certain=True) is not None


def detect_stream(start: bytes, *, certain: bool = False) -> str | None:
    """The format of a stream by its first event; None if it is unknown or incomplete.

    Events may come as server-sent events, as lines, as a JSON array or in frames. `certain` excludes what could also be
    whole bodies: chunks and answers of Gemini, one per line, look the same.
    """
    data = first_event(start)
    found = None if data is None else _event(data)
    if data is None or found is None or (certain and not _only_streamed(start, data, found)):
        return None
    return found.format


def first_event(start: bytes) -> Mapping[str, Any] | None:
    """The first non-empty object, once it is complete."""
    for payload in _first_payloads(start):
        try:
            data = parse_json(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue  # the last one may be cut, and `[DONE]` is not JSON
        if isinstance(data, dict) and data:
            return data
    return None


def _first_payloads(start: bytes) -> Iterable[bytes]:
    framing: Framing = SniffedJson(Limits(), "stream")
    if begins_with_frame(start):
        framing = AwsEventStream(Limits(), "stream")
    try:
        yield from framing.feed(start)
        yield from framing.close()
    except DecodeError:
        return


def _event(data: Mapping[str, Any]) -> Detected | None:
    if _is_responses_event(data):
        return Detected("openai-responses", "response")
    if _is_interactions_event(data):
        return Detected("gemini-interactions", "response")
    if _word(data.get("type")) in _MESSAGES_EVENTS:
        return Detected("anthropic-messages", "response")
    if _word(data.get("type")) in _COHERE_EVENTS:
        return Detected("cohere-chat", "response")
    if _is_chunk(data):
        return Detected("openai-chat", "response")
    if len(data) == 1 and _is_converse_event(*next(iter(data.items()))):
        return Detected("bedrock-converse", "response")
    found = _gemini(data) or _responses(data) or _converse(data) or _ollama(data) or _cohere(data) or _answer(data)
    return None if found is None or found.kind == "request" or data.get("type") == "message" else found


def _is_converse_event(name: str, payload: object) -> bool:
    return name in _CONVERSE_EVENTS or (
        name.endswith("Exception") and isinstance(payload, dict) and "message" in payload
    )


def _is_chunk(data: Mapping[str, Any]) -> bool:
    """Whether this is a Chat chunk: by its `object`, or by deltas in its choices."""
    if _word(data.get("object")) == "chat.completion.chunk":
        return True
    return any("delta" in choice and "message" not in choice for choice in _mappings(data.get("choices")))


def _is_responses_event(data: Mapping[str, Any]) -> bool:
    """Whether this is an event of Responses. Its errors are recognised by their number."""
    kind = _word(data.get("type"))
    return kind.startswith("response.") or (kind == "error" and _has(data, "sequence_number"))


def _is_interactions_event(data: Mapping[str, Any]) -> bool:
    """Whether this is an event of Interactions, whose type is under the key `event_type`."""
    kind = _word(data.get("event_type"))
    return kind.startswith(("interaction.", "step.")) or (kind == "error" and _has(data, "error"))


def _is_line(data: Mapping[str, Any]) -> bool:
    """Whether this is a line of an Ollama stream, not its last one."""
    return isinstance(data.get("message"), dict) and data.get("done") is False


def _only_streamed(start: bytes, data: Mapping[str, Any], found: Detected) -> bool:
    return (
        is_event_stream(start)
        or _word(data.get("type")) in _MESSAGES_EVENTS | _COHERE_EVENTS
        or _is_chunk(data)
        or _is_line(data)
        or _is_responses_event(data)
        or _is_interactions_event(data)
        or begins_with_frame(start)
        or (found.kind == "response" and start.removeprefix(BOM).lstrip().startswith(b"["))
    )
