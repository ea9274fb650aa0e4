"""Small bodies of our own, one feature or a few each, in every format: seeds for fuzzing and rows for the laws."""

import json
from dataclasses import dataclass
from typing import Any

from tests.support import interactions_bodies, responses_bodies
from tests.support.formats import FORMATS


@dataclass(frozen=True, slots=True)
class Sample:
    format: str
    name: str
    body: dict[str, Any]
    status: int = 200

    def __str__(self) -> str:
        return f"{self.format}: {self.name}"

    def json(self) -> bytes:
        return json.dumps(self.body, ensure_ascii=False).encode()


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PDF = "JVBERi0xLjQKJSVFT0YK"
WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "which city"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}

# ── openai-chat ───────────────────────────────────────────────────────────────────────────────────────────────

_CHAT_CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Zürich", "days": 1.0}'},
}
_CHAT_TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "description": "Weather", "parameters": WEATHER, "strict": True},
}

_CHAT_IMAGES = [
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}, "index": 0},
    {
        "type": "image_url",
        "image_url": {"url": "https://example.org/a.png"},
        "index": 1,
        "extra_content": {"google": {"thought_signature": "c2ln"}},
    },
]
"""As LiteLLM and OpenRouter send them."""

_CHAT_REQUESTS: dict[str, dict[str, Any]] = {
    "text": {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hi 👋"}]},
    "settings": {
        "model": "gpt-4.1",
        "messages": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi", "name": "ann"}],
        "max_completion_tokens": 100,
        "temperature": 0.2,
        "top_p": 0.9,
        "presence_penalty": 0.1,
        "frequency_penalty": -0.1,
        "n": 2,
        "stop": ["END", "STOP"],
        "seed": 7,
        "user": "u-1",
        "stream": False,
        "logit_bias": {"1": -100},
        "metadata": {"k": "v"},
        "service_tier": "auto",
    },
    "parts": {
        "model": "gpt-4.1",
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "See."}]},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is it?", "prompt_cache_breakpoint": {"mode": "explicit"}},
                    {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
                    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                    {
                        "type": "file",
                        "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
                    },
                    {"type": "file", "file": {"file_id": "file-1"}},
                ],
            },
        ],
    },
    "tools": {
        "model": "gpt-4.1",
        "messages": [
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": None, "tool_calls": [_CHAT_CALL, {**_CHAT_CALL, "id": "call_2"}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "22"},
            {"role": "tool", "tool_call_id": "call_2", "content": '{"error":"no such city"}'},
            {"role": "assistant", "content": "22 degrees."},
            {"role": "user", "content": "Thanks"},
        ],
        "tools": [_CHAT_TOOL, {"type": "custom", "custom": {"name": "sql", "description": "SQL"}}],
        "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
        "parallel_tool_calls": False,
    },
    "allowed tools and schema": {
        "model": "gpt-4.1",
        "messages": [{"role": "user", "content": "Weather?"}],
        "tools": [_CHAT_TOOL],
        "tool_choice": {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "auto",
                "tools": [{"type": "function", "function": {"name": "get_weather"}}],
            },
        },
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": WEATHER, "strict": True},
        },
        "reasoning_effort": "low",
        "stream": True,
        "stream_options": {"include_usage": True},
    },
    "vendor reasoning": {
        "model": "some/model",
        "messages": [
            {"role": "user", "content": "Hi"},
            {
                "role": "assistant",
                "content": "Hello",
                "reasoning_details": [
                    {"type": "reasoning.text", "text": "hm", "signature": "c2ln", "format": "anthropic-claude-v1"},
                    {"type": "reasoning.encrypted", "data": "gAAAAABn", "format": "openai-responses-v1", "id": "rs_1"},
                ],
                "refusal": None,
            },
            {"role": "user", "content": "And?"},
        ],
    },
    "drawn": {
        "model": "some/model",
        "modalities": ["image", "text"],
        "messages": [
            {"role": "user", "content": "Draw"},
            {"role": "assistant", "content": "There:", "images": _CHAT_IMAGES},
            {"role": "user", "content": "Now in red"},
        ],
    },
}

_CHAT_RESPONSES: dict[str, dict[str, Any]] = {
    "text": {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "gpt-4.1-2025-04-14",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hi", "refusal": None, "annotations": []},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 12,
            "completion_tokens": 5,
            "total_tokens": 17,
            "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 2, "audio_tokens": 0},
        },
        "service_tier": "default",
        "system_fingerprint": None,
    },
    "calls": {
        "id": "chatcmpl-2",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "gpt-4.1",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        _CHAT_CALL,
                        {"id": "call_2", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}},
                    ],
                    "refusal": None,
                },
                "finish_reason": "tool_calls",
            }
        ],
    },
    "refusal and citation": {
        "id": "chatcmpl-3",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4.1",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": None, "refusal": "I cannot."},
                "finish_reason": "stop",
            },
            {
                "index": 1,
                "message": {
                    "role": "assistant",
                    "content": "See there.",
                    "annotations": [
                        {
                            "type": "url_citation",
                            "url_citation": {
                                "start_index": 0,
                                "end_index": 3,
                                "url": "https://example.org",
                                "title": "Example",
                            },
                        }
                    ],
                },
                "finish_reason": "length",
            },
        ],
    },
    "drawn": {
        "id": "gen-1",
        "object": "chat.completion",
        "created": 1,
        "model": "some/model",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "There:", "refusal": None, "images": _CHAT_IMAGES},
                "logprobs": None,
                "finish_reason": "stop",
                "native_finish_reason": "STOP",
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1290, "total_tokens": 1293},
    },
}

_CHAT_ERRORS: dict[str, tuple[int, dict[str, Any]]] = {
    "bad request": (
        400,
        {
            "error": {
                "message": "Unknown parameter: 'x'.",
                "type": "invalid_request_error",
                "param": "x",
                "code": "unknown_parameter",
            }
        },
    ),
    "numeric code": (429, {"error": {"message": "Slow down", "code": 429}, "user_id": "u"}),
    "text only": (500, {"error": "overloaded"}),
}

# ── anthropic-messages ────────────────────────────────────────────────────────────────────────────────────────

_CLAUDE_TOOL = {"name": "get_weather", "description": "Weather", "input_schema": WEATHER}

_CLAUDE_REQUESTS: dict[str, dict[str, Any]] = {
    "text": {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Hi 👋"}],
    },
    "settings": {
        "model": "claude-sonnet-4-5",
        "max_tokens": 2000,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        "temperature": 0.2,
        "top_k": 5,
        "stop_sequences": ["END"],
        "stream": False,
        "metadata": {"user_id": "u-1"},
        "service_tier": "auto",
    },
    "parts": {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "system": "See.",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                    {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
                    {
                        "type": "document",
                        "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
                        "title": "a.pdf",
                        "citations": {"enabled": True},
                    },
                    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "plain"}},
                    {"type": "text", "text": "What is it?", "cache_control": {"type": "ephemeral"}},
                ],
            }
        ],
    },
    "tools": {
        "model": "claude-sonnet-4-5",
        "max_tokens": 4000,
        "messages": [
            {"role": "user", "content": "Weather?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                    {"type": "redacted_thinking", "data": "ZW5j"},
                    {"type": "text", "text": "Let me see."},
                    {
                        "type": "tool_use",
                        "id": "toolu_1",
                        "name": "get_weather",
                        "input": {"city": "Zürich", "days": 1},
                    },
                    {"type": "tool_use", "id": "toolu_2", "name": "get_weather", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "22", "is_error": False},
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_2",
                        "content": [
                            {"type": "text", "text": "no such city"},
                            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                        ],
                        "is_error": True,
                    },
                    {"type": "text", "text": "Go on"},
                ],
            },
        ],
        "tools": [_CLAUDE_TOOL, {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "thinking": {"type": "enabled", "budget_tokens": 2000},
    },
    "thinking as it likes": {
        "model": "claude-sonnet-4-5",
        "max_tokens": 4000,
        "messages": [{"role": "user", "content": "Hi"}],
        "thinking": {"type": "adaptive"},
        "billing_policy": {"type": "billing_policy", "bill_to": "self"},
    },
    "server tool": {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": "Search"},
            {
                "role": "assistant",
                "content": [
                    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
                    {
                        "type": "web_search_tool_result",
                        "tool_use_id": "srvtoolu_1",
                        "content": [
                            {
                                "type": "web_search_result",
                                "url": "https://example.org",
                                "title": "E",
                                "encrypted_content": "ZW5j",
                            }
                        ],
                    },
                    {
                        "type": "text",
                        "text": "Found.",
                        "citations": [
                            {
                                "type": "web_search_result_location",
                                "url": "https://example.org",
                                "title": "E",
                                "encrypted_index": "aWR4",
                                "cited_text": "found",
                            }
                        ],
                    },
                ],
            },
            {"role": "user", "content": "Thanks"},
        ],
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
    },
}

_CLAUDE_RESPONSES: dict[str, dict[str, Any]] = {
    "text": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": [{"type": "text", "text": "Hi", "citations": None}],
        "stop_reason": "stop_sequence",
        "stop_sequence": "END",
        "usage": {
            "input_tokens": 8,
            "cache_creation_input_tokens": 3,
            "cache_read_input_tokens": 4,
            "output_tokens": 5,
            "service_tier": "standard",
        },
    },
    "thinking and calls": {
        "id": "msg_2",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [
            {"type": "thinking", "thinking": "", "signature": "c2ln"},
            {"type": "text", "text": "First"},
            {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Zürich"}},
            {"type": "text", "text": "then"},
            {"type": "tool_use", "id": "toolu_2", "name": "get_weather", "input": {}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 8, "output_tokens": 5},
    },
    "refusal": {
        "id": "msg_3",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [],
        "stop_reason": "refusal",
        "stop_sequence": None,
        "usage": {"input_tokens": 8, "output_tokens": 0},
    },
}

_CLAUDE_ERRORS: dict[str, tuple[int, dict[str, Any]]] = {
    "bad request": (
        400,
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "max_tokens: Field required"},
            "request_id": "req_1",
        },
    ),
    "overloaded": (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
}

# ── gemini and vertex ─────────────────────────────────────────────────────────────────────────────────────────

_GEMINI_REQUESTS: dict[str, dict[str, Any]] = {
    "text": {"contents": [{"role": "user", "parts": [{"text": "Hi 👋"}]}]},
    "settings": {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "generationConfig": {
            "temperature": 0.2,
            "topP": 0.9,
            "topK": 5,
            "candidateCount": 1,
            "maxOutputTokens": 100,
            "stopSequences": ["END"],
            "seed": 7,
            "presencePenalty": 0.1,
            "frequencyPenalty": -0.1,
            "responseMimeType": "application/json",
            "responseJsonSchema": WEATHER,
            "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 1024},
        },
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
    },
    "parts": {
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
                    {"fileData": {"mimeType": "application/pdf", "fileUri": "https://example.org/files/1"}},
                    {"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}, "videoMetadata": {"fps": 2}},
                    {"text": "What is it?"},
                ],
            }
        ]
    },
    "tools": {
        "contents": [
            {"role": "user", "parts": [{"text": "Weather?"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True},
                    {"functionCall": {"name": "get_weather", "args": {"city": "Zürich"}}, "thoughtSignature": "c2ln"},
                    {"functionCall": {"id": "abc12345", "name": "get_weather", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "get_weather", "response": {"output": "22"}}},
                    {"functionResponse": {"id": "abc12345", "name": "get_weather", "response": {"error": "no city"}}},
                ],
            },
        ],
        "tools": [{"functionDeclarations": [{"name": "get_weather", "parametersJsonSchema": WEATHER}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["get_weather"]}},
    },
    "snake case and typed schema": {
        "system_instruction": {"parts": {"text": "Be brief."}},
        "contents": {"role": "USER", "parts": {"text": "Hi"}},
        "tools": [
            {
                "function_declarations": [
                    {
                        "name": "f",
                        "description": "F",
                        "parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}},
                    }
                ]
            }
        ],
        "generation_config": {"max_output_tokens": 10},
    },
    "built-in tools": {
        "contents": [
            {"role": "user", "parts": [{"text": "Compute"}]},
            {
                "role": "model",
                "parts": [
                    {"executableCode": {"language": "PYTHON", "code": "print(1)"}, "thoughtSignature": "c2ln"},
                    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
                    {"text": "One."},
                ],
            },
            {"role": "user", "parts": [{"text": "Thanks"}]},
        ],
        "tools": [{"codeExecution": {}}, {"googleSearch": {}}],
    },
}

_GEMINI_RESPONSES: dict[str, dict[str, Any]] = {
    "text": {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": "Hi"}, {"text": "", "thoughtSignature": "c2ln"}]},
                "finishReason": "STOP",
                "index": 0,
                "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"}],
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 12,
            "candidatesTokenCount": 3,
            "thoughtsTokenCount": 2,
            "cachedContentTokenCount": 4,
            "totalTokenCount": 17,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 12}],
        },
        "modelVersion": "gemini-2.5-flash",
        "responseId": "r1",
    },
    "calls": {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "hm", "thought": True},
                        {
                            "functionCall": {"name": "get_weather", "args": {"city": "Zürich", "days": 1}},
                            "thoughtSignature": "c2ln",
                        },
                        {"functionCall": {"name": "get_weather", "args": {}}},
                    ],
                },
                "finishReason": "STOP",
                "finishMessage": "Model generated function call(s).",
            }
        ],
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12},
        "modelVersion": "gemini-2.5-flash",
        "responseId": "r2",
    },
    "blocked prompt": {
        "promptFeedback": {"blockReason": "SAFETY"},
        "usageMetadata": {"promptTokenCount": 5, "totalTokenCount": 5},
        "modelVersion": "gemini-2.5-flash",
    },
}

_GEMINI_ERRORS: dict[str, tuple[int, dict[str, Any]]] = {
    "quota": (
        429,
        {
            "error": {
                "code": 429,
                "message": "Quota exceeded",
                "status": "RESOURCE_EXHAUSTED",
                "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"}],
            }
        },
    ),
    "bad request": (400, {"error": {"code": 400, "message": "Unknown name", "status": "INVALID_ARGUMENT"}}),
}

# ── ollama-chat ───────────────────────────────────────────────────────────────────────────────────────────────

_OLLAMA_TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "description": "Weather", "parameters": WEATHER},
}
_OLLAMA_METRICS = {
    "total_duration": 4883583458,
    "load_duration": 1334875,
    "prompt_eval_count": 26,
    "prompt_eval_duration": 342546000,
    "eval_count": 282,
    "eval_duration": 4535599000,
}

_OLLAMA_REQUESTS: dict[str, dict[str, Any]] = {
    "text": {"model": "qwen3", "messages": [{"role": "user", "content": "Hi 👋"}]},
    "settings": {
        "model": "qwen3",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "stream": False,
        "think": "high",
        "format": WEATHER,
        "keep_alive": "5m",
        "truncate": False,
        "options": {
            "num_ctx": 8192,
            "num_predict": 100,
            "temperature": 0.2,
            "top_p": 0.9,
            "top_k": 40,
            "min_p": 0.05,
            "stop": ["END"],
            "seed": 7,
            "presence_penalty": 0.1,
            "frequency_penalty": -0.1,
        },
    },
    "unlimited, in JSON, without thought": {
        "model": "qwen3",
        "messages": [{"role": "user", "content": "Hi, in JSON"}],
        "stream": True,
        "think": False,
        "format": "json",
        "options": {"num_predict": -1, "seed": -1},
    },
    "images": {
        "model": "gemma3",
        "messages": [{"role": "user", "content": "What is it?", "images": [PIXEL, PIXEL]}],
    },
    "tools": {
        "model": "qwen3",
        "messages": [
            {"role": "user", "content": "Weather?"},
            {
                "role": "assistant",
                "content": "",
                "thinking": "Two cities.",
                "tool_calls": [
                    {
                        "id": "call_k3x9a1b2",
                        "function": {"index": 0, "name": "get_weather", "arguments": {"city": "Zürich", "days": 1}},
                    },
                    {"id": "call_k3x9a1b3", "function": {"index": 1, "name": "get_weather", "arguments": {}}},
                ],
            },
            {"role": "tool", "tool_name": "get_weather", "tool_call_id": "call_k3x9a1b2", "content": "22"},
            {
                "role": "tool",
                "tool_name": "get_weather",
                "tool_call_id": "call_k3x9a1b3",
                "content": '{"error":"which city?"}',
            },
            {"role": "assistant", "content": "22 degrees."},
            {"role": "user", "content": "Thanks"},
        ],
        "tools": [_OLLAMA_TOOL],
        "think": True,
    },
    "calls without ids": {
        "model": "llama3.1",
        "messages": [
            {"role": "user", "content": "Weather?"},
            {
                "role": "assistant",
                "tool_calls": [
                    {"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Bern"}}},
                    {"type": "function", "function": {"name": "get_time", "arguments": {"city": "Bern"}}},
                ],
            },
            {"role": "tool", "tool_name": "get_time", "content": "noon"},
            {"role": "tool", "tool_name": "get_weather", "content": "22"},
        ],
        "tools": [_OLLAMA_TOOL],
    },
}

_OLLAMA_RESPONSES: dict[str, dict[str, Any]] = {
    "text": {
        "model": "qwen3",
        "created_at": "2026-08-21T10:00:00.123456789Z",
        "message": {"role": "assistant", "content": "Hello"},
        "done": True,
        "done_reason": "stop",
        **_OLLAMA_METRICS,
    },
    "calls": {
        "model": "qwen3",
        "created_at": "2026-08-21T10:00:00.1Z",
        "message": {
            "role": "assistant",
            "content": "Let me see.",
            "thinking": "Which city?",
            "tool_calls": [
                {"id": "call_k3x9a1b2", "function": {"index": 0, "name": "f", "arguments": {"a": 1}}},
                {"id": "call_k3x9a1b3", "function": {"index": 1, "name": "g", "arguments": {}}},
            ],
        },
        "done": True,
        "done_reason": "stop",
        **_OLLAMA_METRICS,
    },
    "calls of an old server": {
        "model": "llama3.1",
        "created_at": "2024-08-21T10:00:00Z",
        "message": {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}],
        },
        "done": True,
        "eval_count": 3,
    },
    "cut": {
        "model": "qwen3",
        "created_at": "2026-08-21T10:00:00Z",
        "message": {"role": "assistant", "content": "Once upon"},
        "done": True,
        "done_reason": "length",
        **_OLLAMA_METRICS,
    },
    "nothing but a loaded model": {
        "model": "qwen3",
        "created_at": "2026-08-21T10:00:00Z",
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": "load",
    },
}

_OLLAMA_ERRORS: dict[str, tuple[int, dict[str, Any]]] = {
    "no such model": (404, {"error": "model 'qwen9' not found"}),
    "not signed in": (401, {"error": "unauthorized", "signin_url": "https://example.org/connect"}),
}

# ── bedrock-converse ──────────────────────────────────────────────────────────────────────────────────────────

_CONVERSE_TOOL = {"toolSpec": {"name": "get_weather", "description": "Weather", "inputSchema": {"json": WEATHER}}}
_CONVERSE_POINT = {"cachePoint": {"type": "default"}}

_CONVERSE_REQUESTS: dict[str, dict[str, Any]] = {
    "text": {"messages": [{"role": "user", "content": [{"text": "Hi 👋"}]}]},
    "settings": {
        "modelId": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "messages": [{"role": "user", "content": [{"text": "Hi"}, {"cachePoint": {"type": "default", "ttl": "1h"}}]}],
        "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default", "ttl": "1h"}}],
        "inferenceConfig": {"maxTokens": 2000, "temperature": 0.2, "topP": 0.9, "stopSequences": ["END"]},
        "additionalModelRequestFields": {"top_k": 5, "anthropic_beta": ["x"]},
        "additionalModelResponseFieldPaths": ["/stop_sequence"],
        "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1", "trace": "enabled"},
        "requestMetadata": {"team": "a"},
        "performanceConfig": {"latency": "standard"},
        "serviceTier": {"type": "default"},
    },
    "thinking and a schema": {
        "messages": [{"role": "user", "content": [{"text": "Hi"}]}],
        "system": [],
        "inferenceConfig": {},
        "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        "outputConfig": {
            "effort": "high",
            "textFormat": {
                "type": "json_schema",
                "structure": {"jsonSchema": {"name": "answer", "description": "It", "schema": json.dumps(WEATHER)}},
            },
        },
    },
    "parts": {
        "system": [{"text": "See."}, {"guardContent": {"text": {"text": "Guarded", "qualifiers": ["query"]}}}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"image": {"format": "png", "source": {"bytes": PIXEL}}},
                    {
                        "image": {
                            "format": "jpeg",
                            "source": {"s3Location": {"uri": "s3://b/a.jpg", "bucketOwner": "1"}},
                        }
                    },
                    {
                        "document": {
                            "format": "pdf",
                            "name": "report",
                            "source": {"bytes": PDF},
                            "citations": {"enabled": True},
                            "context": "last year",
                        }
                    },
                    {
                        "document": {
                            "format": "txt",
                            "name": "plain",
                            "source": {"text": "plain"},
                            "citations": {"enabled": True},
                        }
                    },
                    {
                        "document": {
                            "name": "pieces",
                            "source": {"content": [{"text": "a"}, {"text": "b"}]},
                            "citations": {"enabled": True},
                        }
                    },
                    {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://b/v.mp4"}}}},
                    {"text": "What is it?"},
                    _CONVERSE_POINT,
                ],
            }
        ],
    },
    "tools": {
        "messages": [
            {"role": "user", "content": [{"text": "Weather?"}]},
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
                    {"reasoningContent": {"redactedContent": "ZW5j"}},
                    {"text": "Let me see."},
                    {"toolUse": {"toolUseId": "tooluse_1", "name": "get_weather", "input": {"city": "Zürich"}}},
                    {"toolUse": {"toolUseId": "t.2:x", "name": "get_weather", "input": {}, "type": "tool_use"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": "tooluse_1", "content": [{"json": {"t": 1.0}}], "status": "success"}},
                    {
                        "toolResult": {
                            "toolUseId": "t.2:x",
                            "content": [{"text": "see"}, {"image": {"format": "png", "source": {"bytes": PIXEL}}}],
                            "status": "error",
                        }
                    },
                    {"text": "And now?"},
                ],
            },
        ],
        "toolConfig": {"tools": [_CONVERSE_TOOL, _CONVERSE_POINT], "toolChoice": {"tool": {"name": "get_weather"}}},
    },
    "tools of the provider": {
        "messages": [
            {"role": "user", "content": [{"text": "Compute"}]},
            {
                "role": "assistant",
                "content": [
                    {"toolUse": {"toolUseId": "s1", "name": "nova_x", "input": {"q": 1}, "type": "server_tool_use"}},
                    {"toolResult": {"toolUseId": "s1", "content": [{"json": {"r": 2}}], "type": "nova_x_result"}},
                    {
                        "citationsContent": {
                            "content": [{"text": "It is 2."}],
                            "citations": [
                                {"title": "T", "location": {"web": {"url": "https://e.org", "domain": "e.org"}}}
                            ],
                        }
                    },
                ],
            },
            {"role": "user", "content": [{"text": "Sure?"}]},
        ],
        "toolConfig": {"tools": [{"systemTool": {"name": "nova_x"}}, _CONVERSE_TOOL], "toolChoice": {"any": {}}},
    },
}

_CONVERSE_USAGE = {"inputTokens": 8, "outputTokens": 5, "totalTokens": 13}

_CONVERSE_RESPONSES: dict[str, dict[str, Any]] = {
    "text": {
        "output": {"message": {"role": "assistant", "content": [{"text": "Hi"}]}},
        "stopReason": "stop_sequence",
        "usage": {
            "inputTokens": 2,
            "outputTokens": 5,
            "totalTokens": 1332,
            "cacheReadInputTokens": 1322,
            "cacheWriteInputTokens": 3,
            "cacheDetails": [{"ttl": "5m", "inputTokens": 3}],
            "serverToolUsage": {},
        },
        "metrics": {"latencyMs": 381},
        "additionalModelResponseFields": {"stop_sequence": "END"},
        "trace": {"guardrail": {"x": 1}},
    },
    "thinking and calls": {
        "output": {
            "message": {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
                    {"text": "First"},
                    {"toolUse": {"toolUseId": "tooluse_1", "name": "get_weather", "input": {"city": "Zürich"}}},
                    {"text": "then"},
                    {"toolUse": {"toolUseId": "tooluse_2", "name": "get_weather", "input": {}, "type": "tool_use"}},
                ],
            }
        },
        "stopReason": "tool_use",
        "usage": _CONVERSE_USAGE,
        "metrics": {"latencyMs": 1},
    },
    "stopped by a guardrail": {
        "output": {"message": {"role": "assistant", "content": []}},
        "stopReason": "guardrail_intervened",
        "usage": {"inputTokens": 8, "outputTokens": 0, "totalTokens": 8},
        "metrics": {"latencyMs": 1},
    },
}

_CONVERSE_ERRORS: dict[str, tuple[int, dict[str, Any]]] = {
    "bad request": (400, {"message": "The model returned the following errors: messages.0: empty"}),
    "with its class": (429, {"__type": "com.amazon.x#ThrottlingException", "message": "Slow down"}),
}

# ── cohere-chat ───────────────────────────────────────────────────────────────────────────────────────────────

_COHERE_TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "description": "Weather", "parameters": WEATHER},
}
_COHERE_USAGE = {
    "billed_units": {"input_tokens": 51, "output_tokens": 66},
    "tokens": {"input_tokens": 267, "output_tokens": 91, "reasoning_tokens": 58},
    "cached_tokens": 144,
}
_COHERE_DOCUMENTS: list[Any] = [
    "just text",
    {"id": "doc-1", "data": {"title": "Facts", "text": "Ruby is by Matz."}},
    {"id": "doc-2", "data": {"text": "North.", "region": "north", "rank": 1.0}},
    {"data": "plain string"},
]

_COHERE_REQUESTS: dict[str, dict[str, Any]] = {
    "text": {"model": "command-a-03-2025", "messages": [{"role": "user", "content": "Hi 👋"}]},
    "settings": {
        "model": "command-a-reasoning-08-2025",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "stream": False,
        "max_tokens": 100,
        "temperature": 0.2,
        "p": 0.9,
        "k": 40,
        "stop_sequences": ["END"],
        "seed": 18446744073709551615,
        "frequency_penalty": 0.1,
        "presence_penalty": 0.2,
        "thinking": {"type": "enabled", "token_budget": 512},
        "response_format": {"type": "json_object", "json_schema": WEATHER},
        "safety_mode": "STRICT",
        "logprobs": True,
        "priority": 3,
        "citation_options": {"mode": "FAST"},
    },
    "parts": {
        "model": "command-a-vision-07-2025",
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "See."}]},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is it?"},
                    {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
                ],
            },
        ],
        "stop_sequences": [],
        "thinking": {"type": "disabled"},
        "response_format": {"type": "text"},
    },
    "documents": {
        "model": "command-a-03-2025",
        "messages": [
            {"role": "user", "content": "Who made Ruby?"},
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "Matz."}],
                "citations": [
                    {
                        "start": 0,
                        "end": 4,
                        "text": "Matz",
                        "type": "TEXT_CONTENT",
                        "content_index": 0,
                        "sources": [
                            {
                                "type": "document",
                                "id": "doc-1",
                                "document": {"id": "doc-1", "title": "Facts", "text": "Ruby is by Matz."},
                            },
                            {"type": "tool", "id": "f_1:0", "tool_output": {"content": "Matz"}},
                        ],
                    }
                ],
            },
            {"role": "user", "content": "And where?"},
        ],
        "documents": _COHERE_DOCUMENTS,
    },
    "tools": {
        "model": "command-a-03-2025",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
            {
                "role": "assistant",
                "tool_plan": "I will look at two cities.",
                "tool_calls": [
                    {
                        "id": "get_weather_9gpb31r7h7mj",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": '{"city": "Zürich", "days": 1.0}'},
                    },
                    {
                        "id": "get_weather_9gpb31r7h7mk",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": "null"},
                    },
                ],
            },
            {
                "role": "tool",
                "tool_call_id": "get_weather_9gpb31r7h7mj",
                "content": [{"type": "document", "document": {"id": "w1", "data": {"temp": "22C"}}}],
            },
            {"role": "tool", "tool_call_id": "get_weather_9gpb31r7h7mk", "content": '{"error":"which city?"}'},
            {"role": "assistant", "content": "22 degrees.", "tool_calls": [], "tool_plan": None, "citations": []},
            {"role": "user", "content": "Thanks"},
        ],
        "tools": [_COHERE_TOOL],
        "tool_choice": "REQUIRED",
        "strict_tools": True,
    },
    "thinking": {
        "model": "command-a-reasoning-08-2025",
        "messages": [
            {"role": "user", "content": "2+2?"},
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "Four."}],
                "tool_calls": [
                    {"id": "f_1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
                ],
            },
            {
                "role": "tool",
                "tool_call_id": "f_1",
                "content": [
                    {"type": "text", "text": "one"},
                    {"type": "document", "document": {"data": {"text": "two", "title": "T"}}},
                ],
            },
        ],
        "tools": [_COHERE_TOOL],
        "tool_choice": "NONE",
    },
}

_COHERE_RESPONSES: dict[str, dict[str, Any]] = {
    "text": {
        "id": "6a25b227-ab2f-4049-95cb-15e8fb05d116",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "Hello"}]},
        "finish_reason": "COMPLETE",
        "usage": {**_COHERE_USAGE, "cached_tokens": 16.0},
    },
    "plan": {
        "id": "6a25b227-ab2f-4049-95cb-15e8fb05d117",
        "message": {
            "role": "assistant",
            "tool_plan": "I will call f.",
            "tool_calls": [
                {"id": "f_vpfcagczdkae", "type": "function", "function": {"name": "f", "arguments": '{"q":"Ruby"}'}},
                {"id": "g_vpfcagczdkaf", "type": "function", "function": {"name": "g", "arguments": "null"}},
            ],
            "citations": [{"start": 0, "end": 1, "text": "I", "type": "PLAN", "sources": []}],
        },
        "finish_reason": "TOOL_CALL",
        "usage": _COHERE_USAGE,
    },
    "thinking": {
        "id": "6a25b227-ab2f-4049-95cb-15e8fb05d118",
        "message": {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Yes 🌍."}],
            "citations": [
                {
                    "start": 0,
                    "end": 3,
                    "text": "Yes",
                    "type": "TEXT_CONTENT",
                    "content_index": 1,
                    "sources": [{"type": "tool", "id": "f_vpfcagczdkae:0", "tool_output": {"roll": "1"}}],
                }
            ],
        },
        "finish_reason": "STOP_SEQUENCE",
        "usage": {"tokens": {"input_tokens": 34, "output_tokens": 5, "image_tokens": 259}},
        "logprobs": [{"text": "Yes", "token_ids": [1, 2], "logprobs": [-0.1, -0.2]}],
    },
    "cut": {
        "id": "6a25b227-ab2f-4049-95cb-15e8fb05d119",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "The ocean,"}]},
        "finish_reason": "MAX_TOKENS",
    },
}

_COHERE_ERRORS: dict[str, tuple[int, dict[str, Any]]] = {
    "no model": (404, {"id": "2da0d1db-941a-4db3-ba16-436533566b78", "message": "model 'x' not found"}),
    "too long": (400, {"id": "c1", "message": "too many tokens: size limit exceeded", "error_type": "TOO_MANY_TOKENS"}),
    "without id": (422, {"message": "unknown field: parameter 'n' is not a valid field"}),
    "deny list": (498, {"message": "invalid token"}),
}

_ALL: dict[str, tuple[Any, Any, Any]] = {
    "openai-chat": (_CHAT_REQUESTS, _CHAT_RESPONSES, _CHAT_ERRORS),
    "openai-responses": (responses_bodies.REQUESTS, responses_bodies.RESPONSES, responses_bodies.ERRORS),
    "anthropic-messages": (_CLAUDE_REQUESTS, _CLAUDE_RESPONSES, _CLAUDE_ERRORS),
    "gemini": (_GEMINI_REQUESTS, _GEMINI_RESPONSES, _GEMINI_ERRORS),
    "vertex": (_GEMINI_REQUESTS, _GEMINI_RESPONSES, _GEMINI_ERRORS),
    "bedrock-converse": (_CONVERSE_REQUESTS, _CONVERSE_RESPONSES, _CONVERSE_ERRORS),
    "ollama-chat": (_OLLAMA_REQUESTS, _OLLAMA_RESPONSES, _OLLAMA_ERRORS),
    "cohere-chat": (_COHERE_REQUESTS, _COHERE_RESPONSES, _COHERE_ERRORS),
    "gemini-interactions": (interactions_bodies.REQUESTS, interactions_bodies.RESPONSES, interactions_bodies.ERRORS),
}

REQUESTS: tuple[Sample, ...] = tuple(
    Sample(format_name, name, body) for format_name in FORMATS for name, body in _ALL[format_name][0].items()
)
RESPONSES: tuple[Sample, ...] = tuple(
    Sample(format_name, name, body) for format_name in FORMATS for name, body in _ALL[format_name][1].items()
)
ERRORS: tuple[Sample, ...] = tuple(
    Sample(format_name, name, body, status)
    for format_name in FORMATS
    for name, (status, body) in _ALL[format_name][2].items()
)
