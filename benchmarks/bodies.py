"""Writes a conversation as the request or response body of each wire format, the way that vendor's own clients do.

Written by hand and not with dragoman, so that the measured code does not choose its own input.
"""

from collections.abc import Callable
from typing import Final, Literal

import orjson

from benchmarks.conversations import Assistant, Conversation, Results, Turn, User

Format = Literal["openai-chat", "anthropic-messages", "gemini", "openai-responses", "ollama-chat", "bedrock-converse"]
FIRST: Final[tuple[Format, ...]] = ("openai-chat", "anthropic-messages", "gemini")
LATER: Final[tuple[Format, ...]] = ("openai-responses", "ollama-chat", "bedrock-converse")
"""Later formats, which may cost 50 % more."""

# Models that accept `max_tokens` and `temperature`, so that the same sampling settings are legal everywhere.
MODELS: Final[dict[Format, str]] = {
    "openai-chat": "gpt-4.1",
    "anthropic-messages": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
    "openai-responses": "gpt-4.1",
    "ollama-chat": "qwen3:8b",
    "bedrock-converse": "us.amazon.nova-pro-v1:0",
}
_MAX_TOKENS: Final = 4096
_TEMPERATURE: Final = 0.2

Json = dict[str, object]


def request(conversation: Conversation, format: Format) -> bytes:
    return orjson.dumps(_REQUESTS[format](conversation))


def response(answer: Assistant, format: Format) -> bytes:
    return orjson.dumps(_RESPONSES[format](answer))


def _identifier(prefix: str, number: int, length: int) -> str:
    """A unique id of the same length as the vendor's."""
    digits = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
    state = number * 2654435761 + 97
    letters = []
    for _ in range(length):
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        letters.append(digits[(state >> 33) % len(digits)])
    return prefix + "".join(letters)


def _json_text(value: object) -> str:
    return orjson.dumps(value).decode()


class _Identifiers:
    """Ids for calls, and the same ids again, in order, for the results that answer them."""

    def __init__(self, prefix: str, length: int) -> None:
        self._prefix = prefix
        self._length = length
        self._given = 0
        self.last: list[tuple[str, str]] = []

    def give(self, turn: Assistant) -> list[str]:
        first, self._given = self._given, self._given + len(turn.calls)
        ids = [_identifier(self._prefix, number, self._length) for number in range(first, self._given)]
        self.last = [(id, call.name) for id, call in zip(ids, turn.calls, strict=True)]
        return ids


def _openai_assistant(turn: Assistant, ids: _Identifiers) -> Json:
    message: Json = {"role": "assistant", "content": turn.text}
    if turn.calls:
        message["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": call.name, "arguments": _json_text(call.arguments)}}
            for id, call in zip(ids.give(turn), turn.calls, strict=True)
        ]
    return message


def _openai_messages(turn: Turn, ids: _Identifiers) -> list[Json]:
    match turn:
        case User(text):
            return [{"role": "user", "content": text}]
        case Assistant():
            return [_openai_assistant(turn, ids)]
        case Results(values):
            return [
                {"role": "tool", "tool_call_id": id, "content": value if isinstance(value, str) else _json_text(value)}
                for (id, _), value in zip(ids.last, values, strict=True)
            ]


def _openai_request(conversation: Conversation) -> Json:
    ids = _Identifiers("call_", 24)
    messages: list[Json] = []
    if conversation.system is not None:
        messages.append({"role": "system", "content": conversation.system})
    for turn in conversation.turns:
        messages += _openai_messages(turn, ids)
    body: Json = {
        "model": MODELS["openai-chat"],
        "messages": messages,
        "max_tokens": _MAX_TOKENS,
        "temperature": _TEMPERATURE,
    }
    if conversation.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in conversation.tools
        ]
        body["tool_choice"] = "auto"
    return body


def _openai_response(answer: Assistant) -> Json:
    message = _openai_assistant(answer, _Identifiers("call_", 24))
    return {
        "id": _identifier("chatcmpl-", 1, 29),
        "object": "chat.completion",
        "created": 1794700800,
        "model": "gpt-4.1-2025-04-14",
        "choices": [
            {
                "index": 0,
                "message": {**message, "refusal": None, "annotations": []},
                "logprobs": None,
                "finish_reason": "tool_calls" if answer.calls else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 1204,
            "completion_tokens": 58,
            "total_tokens": 1262,
            "prompt_tokens_details": {"cached_tokens": 1024, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": 0,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        },
        "service_tier": "default",
        "system_fingerprint": "fp_51e1070cf2",
    }


def _anthropic_blocks(turn: Assistant, ids: _Identifiers) -> list[Json]:
    blocks: list[Json] = [] if turn.text is None else [{"type": "text", "text": turn.text}]
    for id, call in zip(ids.give(turn), turn.calls, strict=True):
        blocks.append({"type": "tool_use", "id": id, "name": call.name, "input": call.arguments})
    return blocks


def _anthropic_message(turn: Turn, ids: _Identifiers) -> Json:
    match turn:
        case User(text):
            return {"role": "user", "content": text}
        case Assistant():
            return {"role": "assistant", "content": _anthropic_blocks(turn, ids)}
        case Results(values):
            blocks = [
                {
                    "type": "tool_result",
                    "tool_use_id": id,
                    "content": value if isinstance(value, str) else _json_text(value),
                }
                for (id, _), value in zip(ids.last, values, strict=True)
            ]
            return {"role": "user", "content": blocks}


def _anthropic_request(conversation: Conversation) -> Json:
    ids = _Identifiers("toolu_01", 22)
    body: Json = {
        "model": MODELS["anthropic-messages"],
        "max_tokens": _MAX_TOKENS,
        "temperature": _TEMPERATURE,
        "messages": [_anthropic_message(turn, ids) for turn in conversation.turns],
    }
    if conversation.system is not None:
        body["system"] = [{"type": "text", "text": conversation.system}]
    if conversation.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in conversation.tools
        ]
        body["tool_choice"] = {"type": "auto"}
    return body


def _anthropic_response(answer: Assistant) -> Json:
    return {
        "id": _identifier("msg_01", 1, 22),
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": _anthropic_blocks(answer, _Identifiers("toolu_01", 22)),
        "stop_reason": "tool_use" if answer.calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 180,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 1024,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 58,
            "service_tier": "standard",
        },
    }


def _gemini_parts(turn: Assistant, ids: _Identifiers) -> list[Json]:
    parts: list[Json] = [] if turn.text is None else [{"text": turn.text}]
    for id, call in zip(ids.give(turn), turn.calls, strict=True):
        parts.append({"functionCall": {"id": id, "name": call.name, "args": call.arguments}})
    return parts


def _gemini_content(turn: Turn, ids: _Identifiers) -> Json:
    match turn:
        case User(text):
            return {"role": "user", "parts": [{"text": text}]}
        case Assistant():
            return {"role": "model", "parts": _gemini_parts(turn, ids)}
        case Results(values):
            parts = [
                {
                    "functionResponse": {
                        "id": id,
                        "name": name,
                        "response": {"output": value} if isinstance(value, str) else value,
                    }
                }
                for (id, name), value in zip(ids.last, values, strict=True)
            ]
            return {"role": "user", "parts": parts}


def _gemini_request(conversation: Conversation) -> Json:
    ids = _Identifiers("", 8)
    body: Json = {"contents": [_gemini_content(turn, ids) for turn in conversation.turns]}
    if conversation.system is not None:
        body["systemInstruction"] = {"parts": [{"text": conversation.system}]}
    if conversation.tools:
        declarations = [
            {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}
            for tool in conversation.tools
        ]
        body["tools"] = [{"functionDeclarations": declarations}]
        body["toolConfig"] = {"functionCallingConfig": {"mode": "AUTO"}}
    body["generationConfig"] = {"maxOutputTokens": _MAX_TOKENS, "temperature": _TEMPERATURE}
    return body


def _gemini_response(answer: Assistant) -> Json:
    return {
        "candidates": [
            {
                "content": {"role": "model", "parts": _gemini_parts(answer, _Identifiers("", 8))},
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 1204,
            "cachedContentTokenCount": 1024,
            "candidatesTokenCount": 58,
            "totalTokenCount": 1262,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 1204}],
            "cacheTokensDetails": [{"modality": "TEXT", "tokenCount": 1024}],
            "candidatesTokensDetails": [{"modality": "TEXT", "tokenCount": 58}],
        },
        "modelVersion": MODELS["gemini"],
        "responseId": _identifier("", 1, 22),
    }


def _responses_output(turn: Assistant, ids: _Identifiers) -> list[Json]:
    items: list[Json] = []
    if turn.text is not None:
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        identifier = _identifier("msg_", len(turn.text), 48)
        message: Json = {"id": identifier, "type": "message", "role": "assistant", "status": "completed"}
        items.append({**message, "content": content})
    for id, call in zip(ids.give(turn), turn.calls, strict=True):
        called: Json = {"id": _identifier("fc_", len(id), 48), "type": "function_call", "status": "completed"}
        items.append({**called, "call_id": id, "name": call.name, "arguments": _json_text(call.arguments)})
    return items


def _responses_items(turn: Turn, ids: _Identifiers) -> list[Json]:
    match turn:
        case User(text):
            return [{"role": "user", "content": text}]
        case Assistant():
            return _responses_output(turn, ids)
        case Results(values):
            return [
                {
                    "type": "function_call_output",
                    "call_id": id,
                    "output": value if isinstance(value, str) else _json_text(value),
                }
                for (id, _), value in zip(ids.last, values, strict=True)
            ]


def _responses_request(conversation: Conversation) -> Json:
    ids = _Identifiers("call_", 24)
    body: Json = {
        "model": MODELS["openai-responses"],
        "input": [item for turn in conversation.turns for item in _responses_items(turn, ids)],
        "max_output_tokens": _MAX_TOKENS,
        "temperature": _TEMPERATURE,
    }
    if conversation.system is not None:
        body["instructions"] = conversation.system
    if conversation.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in conversation.tools
        ]
        body["tool_choice"] = "auto"
    return body


def _responses_response(answer: Assistant) -> Json:
    return {
        "id": _identifier("resp_", 1, 48),
        "object": "response",
        "created_at": 1794700800,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "model": "gpt-4.1-2025-04-14",
        "output": _responses_output(answer, _Identifiers("call_", 24)),
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": {
            "input_tokens": 1204,
            "input_tokens_details": {"cached_tokens": 1024},
            "output_tokens": 58,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 1262,
        },
        "user": None,
        "metadata": {},
    }


def _ollama_assistant(turn: Assistant, ids: _Identifiers, *, answer: bool = False) -> Json:
    """Servers number the calls of an answer; clients send them back without the numbers."""
    message: Json = {"role": "assistant", "content": turn.text or ""}
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": id,
                "function": {**({"index": index} if answer else {}), "name": call.name, "arguments": call.arguments},
            }
            for index, (id, call) in enumerate(zip(ids.give(turn), turn.calls, strict=True))
        ]
    return message


def _ollama_messages(turn: Turn, ids: _Identifiers) -> list[Json]:
    match turn:
        case User(text):
            return [{"role": "user", "content": text}]
        case Assistant():
            return [_ollama_assistant(turn, ids)]
        case Results(values):
            return [
                {
                    "role": "tool",
                    "tool_name": name,
                    "tool_call_id": id,
                    "content": value if isinstance(value, str) else _json_text(value),
                }
                for (id, name), value in zip(ids.last, values, strict=True)
            ]


def _ollama_request(conversation: Conversation) -> Json:
    ids = _Identifiers("call_", 8)
    messages: list[Json] = []
    if conversation.system is not None:
        messages.append({"role": "system", "content": conversation.system})
    for turn in conversation.turns:
        messages += _ollama_messages(turn, ids)
    body: Json = {
        "model": MODELS["ollama-chat"],
        "messages": messages,
        "stream": False,
        "options": {"num_predict": _MAX_TOKENS, "temperature": _TEMPERATURE},
    }
    if conversation.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in conversation.tools
        ]
    return body


def _ollama_response(answer: Assistant) -> Json:
    return {
        "model": MODELS["ollama-chat"],
        "created_at": "2026-11-15T08:00:00.123456789Z",
        "message": _ollama_assistant(answer, _Identifiers("call_", 8), answer=True),
        "done": True,
        "done_reason": "stop",
        "total_duration": 4883583458,
        "load_duration": 1334875,
        "prompt_eval_count": 1204,
        "prompt_eval_duration": 342546000,
        "eval_count": 58,
        "eval_duration": 4535599000,
    }


def _converse_blocks(turn: Assistant, ids: _Identifiers) -> list[Json]:
    blocks: list[Json] = [] if turn.text is None else [{"text": turn.text}]
    for id, call in zip(ids.give(turn), turn.calls, strict=True):
        blocks.append({"toolUse": {"toolUseId": id, "name": call.name, "input": call.arguments}})
    return blocks


def _converse_message(turn: Turn, ids: _Identifiers) -> Json:
    match turn:
        case User(text):
            return {"role": "user", "content": [{"text": text}]}
        case Assistant():
            return {"role": "assistant", "content": _converse_blocks(turn, ids)}
        case Results(values):
            blocks = [
                {
                    "toolResult": {
                        "toolUseId": id,
                        "content": [{"text": value} if isinstance(value, str) else {"json": value}],
                    }
                }
                for (id, _), value in zip(ids.last, values, strict=True)
            ]
            return {"role": "user", "content": blocks}


def _converse_request(conversation: Conversation) -> Json:
    ids = _Identifiers("tooluse_", 22)
    body: Json = {
        "messages": [_converse_message(turn, ids) for turn in conversation.turns],
        "inferenceConfig": {"maxTokens": _MAX_TOKENS, "temperature": _TEMPERATURE},
    }
    if conversation.system is not None:
        body["system"] = [{"text": conversation.system}]
    if conversation.tools:
        specifications = [
            {"name": tool.name, "description": tool.description, "inputSchema": {"json": tool.parameters}}
            for tool in conversation.tools
        ]
        body["toolConfig"] = {"tools": [{"toolSpec": specification} for specification in specifications]}
    return body


def _converse_response(answer: Assistant) -> Json:
    return {
        "output": {"message": {"role": "assistant", "content": _converse_blocks(answer, _Identifiers("tooluse_", 22))}},
        "stopReason": "tool_use" if answer.calls else "end_turn",
        "usage": {
            "inputTokens": 180,
            "outputTokens": 58,
            "totalTokens": 1262,
            "cacheReadInputTokens": 1024,
            "cacheWriteInputTokens": 0,
        },
        "metrics": {"latencyMs": 1417},
    }


_REQUESTS: Final[dict[Format, Callable[[Conversation], Json]]] = {
    "openai-chat": _openai_request,
    "anthropic-messages": _anthropic_request,
    "gemini": _gemini_request,
    "openai-responses": _responses_request,
    "ollama-chat": _ollama_request,
    "bedrock-converse": _converse_request,
}
_RESPONSES: Final[dict[Format, Callable[[Assistant], Json]]] = {
    "openai-chat": _openai_response,
    "anthropic-messages": _anthropic_response,
    "gemini": _gemini_response,
    "openai-responses": _responses_response,
    "ollama-chat": _ollama_response,
    "bedrock-converse": _converse_response,
}
