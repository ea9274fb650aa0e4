"""Bodies of the Interactions API, one feature or a few each."""

from typing import Any

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "which city"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "name": "get_weather", "description": "Weather", "parameters": WEATHER}
USAGE = {
    "total_input_tokens": 22,
    "input_tokens_by_modality": [{"modality": "text", "tokens": 22}],
    "total_cached_tokens": 4,
    "total_output_tokens": 973,
    "total_tool_use_tokens": 129,
    "total_thought_tokens": 249,
    "total_tokens": 1373,
}


def _user_input(text: str) -> dict[str, Any]:
    return {"type": "user_input", "content": [{"type": "text", "text": text}]}


REQUESTS: dict[str, dict[str, Any]] = {
    "text": {"model": "gemini-3-flash-preview", "input": "Hi 👋"},
    "one content": {"model": "gemini-3-flash-preview", "input": {"type": "text", "text": "Hi"}},
    "contents": {
        "model": "gemini-3-flash-preview",
        "input": [
            {"type": "text", "text": "What is it?"},
            {"type": "image", "data": PIXEL, "mime_type": "image/png", "resolution": "high"},
            {"type": "image", "uri": "https://example.org/a.png", "mime_type": "image/png", "resolution": "ultra_high"},
            {"type": "document", "uri": "https://example.org/a.pdf", "mime_type": "application/pdf"},
            {"type": "audio", "data": "UklGRg==", "mime_type": "audio/wav", "sample_rate": 16000},
            {"type": "video", "uri": "https://youtu.be/x", "processing": {"type": "static", "fps": 2}},
        ],
    },
    "settings": {
        "model": "gemini-3-flash-preview",
        "input": [_user_input("Hi")],
        "system_instruction": "Be brief.",
        "generation_config": {
            "max_output_tokens": 100,
            "stop_sequences": ["END", "STOP"],
            "seed": 7,
            "thinking_level": "low",
            "thinking_summaries": "auto",
            "temperature": 0.2,
            "top_p": 0.9,
            "speech_config": [{"voice": "Kore", "language": "en"}],
        },
        "response_format": {"type": "text", "mime_type": "application/json", "schema": WEATHER},
        "stream": False,
        "store": False,
        "safety_settings": [{"type": "hate_speech", "threshold": "block_only_high"}],
        "service_tier": "flex",
        "labels": {"team": "a"},
    },
    "state": {
        "model": "gemini-3-flash-preview",
        "input": [
            {"type": "function_result", "call_id": "zggxzq8r", "name": "get_weather", "result": "22"},
            _user_input("And tomorrow?"),
        ],
        "previous_interaction_id": "v1_abc",
        "store": True,
        "background": False,
    },
    "an agent": {
        "agent": "deep-research-preview-04-2026",
        "input": "The history of dragomans",
        "background": True,
        "agent_config": {"type": "deep-research", "thinking_summaries": "auto"},
        "environment": "remote",
    },
    "tools": {
        "model": "gemini-3-flash-preview",
        "input": [
            _user_input("Weather?"),
            {"type": "thought", "signature": "CtkBAdHt", "summary": [{"type": "text", "text": "Two cities."}]},
            {
                "type": "function_call",
                "id": "zggxzq8r",
                "name": "get_weather",
                "arguments": {"city": "Zürich", "days": 1},
            },
            {"type": "function_call", "id": "aaaazq8r", "name": "get_weather", "arguments": {}},
            {"type": "function_result", "call_id": "zggxzq8r", "name": "get_weather", "result": {"degrees": 22}},
            {
                "type": "function_result",
                "call_id": "aaaazq8r",
                "name": "get_weather",
                "result": [{"type": "text", "text": "which city?"}],
                "is_error": True,
            },
            {"type": "thought", "signature": "EtkBAdHt"},
            {"type": "model_output", "content": [{"type": "text", "text": "22 degrees."}]},
            _user_input("Thanks"),
        ],
        "tools": [TOOL, {"type": "google_search"}, {"type": "mcp_server", "name": "m", "url": "https://example.org"}],
        "generation_config": {"tool_choice": {"allowed_tools": {"mode": "any", "tools": ["get_weather"]}}},
        "store": False,
    },
    "tools that Google ran": {
        "model": "gemini-3-flash-preview",
        "input": [
            _user_input("Six times seven?"),
            {"type": "thought", "signature": "CtkBAdHt"},
            {
                "type": "code_execution_call",
                "id": "c1",
                "arguments": {"code": "print(6*7)", "language": "python"},
                "signature": "FtkBAdHt",
            },
            {"type": "code_execution_result", "call_id": "c1", "result": "42\n", "is_error": False},
            {"type": "google_search_call", "id": "s1", "arguments": {"queries": ["a"]}, "signature": "GtkB"},
            {"type": "google_search_result", "call_id": "s1", "result": [{"search_suggestions": "<b>"}]},
            {"type": "model_output", "content": [{"type": "text", "text": "42"}, {"type": "text", "text": "!"}]},
            {"type": "model_output", "content": [{"type": "text", "text": "Really."}]},
            _user_input("Thanks"),
        ],
        "generation_config": {"tool_choice": "validated"},
        "tools": [{"type": "code_execution"}, {"type": "google_search", "search_types": ["web_search"]}, TOOL],
    },
}

RESPONSES: dict[str, dict[str, Any]] = {
    "text": {
        "id": "v1_Chd",
        "object": "interaction",
        "status": "completed",
        "model": "gemini-2.5-flash",
        "created": "2026-05-15T18:51:55Z",
        "updated": "2026-05-15T18:51:57Z",
        "service_tier": "standard",
        "steps": [
            {"type": "thought", "signature": "CtkBAdHt"},
            {"type": "model_output", "content": [{"type": "text", "text": "Hi 👋"}]},
        ],
        "usage": USAGE,
    },
    "calls": {
        "id": "v1_Che",
        "object": "interaction",
        "status": "requires_action",
        "model": "gemini-2.5-flash",
        "created": "2026-05-15T18:51:55Z",
        "updated": "2026-05-15T18:51:55Z",
        "steps": [
            {"type": "thought", "signature": "CtkBAdHt", "summary": [{"type": "text", "text": "Two cities."}]},
            {"type": "function_call", "id": "zggxzq8r", "name": "get_weather", "arguments": {"city": "Zürich"}},
            {"type": "function_call", "id": "aaaazq8r", "name": "get_weather", "arguments": {}},
        ],
        "usage": USAGE,
    },
    "grounded, not stored": {
        "object": "interaction",
        "status": "completed",
        "model": "gemini-2.5-flash",
        "steps": [
            {"type": "thought", "signature": "CtkBAdHt"},
            {
                "type": "model_output",
                "content": [
                    {
                        "type": "text",
                        "text": "Zürich is fine.",
                        "annotations": [
                            {
                                "type": "url_citation",
                                "url": "https://example.org",
                                "title": "Z",
                                "start_index": 0,
                                "end_index": 7,
                            }
                        ],
                    }
                ],
            },
            {"type": "google_search_call", "id": "s1", "arguments": {"queries": ["z"]}, "signature": "GtkB"},
            {"type": "google_search_result", "call_id": "s1", "result": [{"search_suggestions": "<b>"}]},
        ],
        "usage": USAGE,
    },
    "cut off": {
        "id": "v1_Chf",
        "object": "interaction",
        "status": "incomplete",
        "model": "gemini-2.5-flash",
        "steps": [{"type": "model_output", "content": [{"type": "text", "text": "Once upon"}]}],
        "usage": {"total_input_tokens": 8, "total_output_tokens": 2, "total_tokens": 10},
    },
}

ERRORS: dict[str, tuple[int, dict[str, Any]]] = {
    "bad request": (400, {"error": {"code": 400, "message": "Unknown name", "status": "INVALID_ARGUMENT"}}),
    "slow down": (429, {"error": {"code": 429, "message": "Quota exceeded", "status": "RESOURCE_EXHAUSTED"}}),
}
