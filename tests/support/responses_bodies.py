"""Small Responses bodies of our own, one feature or a few each."""

from typing import Any

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PDF = "JVBERi0xLjQKJSVFT0YK"
WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "which city"}, "days": {"type": ["integer", "null"]}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "name": "get_weather", "description": "Weather", "parameters": WEATHER, "strict": True}
CALL = {
    "type": "function_call",
    "call_id": "call_1",
    "name": "get_weather",
    "arguments": '{"city": "Zürich", "days": 1.0}',
}

REQUESTS: dict[str, dict[str, Any]] = {
    "text": {"model": "gpt-5.1", "input": "Hi 👋"},
    "settings": {
        "model": "gpt-4.1",
        "instructions": "Be brief.",
        "input": [{"role": "developer", "content": "Be kind."}, {"type": "message", "role": "user", "content": "Hi"}],
        "max_output_tokens": 100,
        "temperature": 0.2,
        "top_p": 0.9,
        "user": "u-1",
        "stream": False,
        "store": True,
        "metadata": {"k": "v"},
        "service_tier": "auto",
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "truncation": None,
    },
    "reasoning without an effort": {
        "model": "claude-sonnet-4-5",
        "input": "Hi",
        "reasoning": {"summary": "auto"},
    },
    "stored state": {
        "model": "gpt-5.1",
        "previous_response_id": "resp_1",
        "input": [{"role": "user", "content": "And now?"}],
        "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
    },
    "parts": {
        "model": "gpt-5.1",
        "input": [
            {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "See."}]},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What is it?", "prompt_cache_breakpoint": {"mode": "explicit"}},
                    {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "low"},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"},
                    {"type": "input_image", "file_id": "file-1", "detail": "high"},
                    {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
                    {"type": "input_file", "file_url": "https://example.org/b.pdf"},
                    {"type": "input_file", "file_id": "file-2"},
                ],
            },
        ],
    },
    "tools": {
        "model": "gpt-5.1",
        "input": [
            {"role": "user", "content": "Weather?"},
            CALL,
            {**CALL, "call_id": "call_2"},
            {"type": "function_call_output", "call_id": "call_1", "output": "22"},
            {"type": "function_call_output", "call_id": "call_2", "output": '{"error":"no such city"}'},
            {"role": "assistant", "content": "22 degrees."},
            {"role": "user", "content": "Thanks"},
        ],
        "tools": [TOOL, {"type": "custom", "name": "sql", "description": "SQL"}],
        "tool_choice": {"type": "function", "name": "get_weather"},
        "parallel_tool_calls": False,
    },
    "reasoning and its calls": {
        "model": "gpt-5.1",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low", "summary": "auto"},
        "input": [
            {"role": "user", "content": "Weather?"},
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "two places"}],
                "encrypted_content": "gAAAAABnc2VhbGVk",
            },
            {**CALL, "id": "fc_1", "status": "completed"},
            {**CALL, "id": "fc_2", "status": "completed", "call_id": "call_2"},
            {
                "type": "function_call_output",
                "call_id": "call_1",
                "output": [
                    {"type": "input_text", "text": "see"},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"},
                ],
            },
            {"type": "function_call_output", "call_id": "call_2", "output": "20"},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "phase": "final_answer",
                "content": [{"type": "output_text", "text": "Warm.", "annotations": [], "logprobs": []}],
            },
            {"role": "user", "content": "Thanks"},
        ],
        "tools": [TOOL],
    },
    "custom tool and grammar": {
        "model": "gpt-5.1",
        "input": [
            {"role": "user", "content": "How many?"},
            {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "sql", "input": "SELECT 1"},
            {"type": "custom_tool_call_output", "call_id": "call_1", "output": "1"},
        ],
        "tools": [
            {
                "type": "custom",
                "name": "sql",
                "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
            }
        ],
        "tool_choice": {"type": "custom", "name": "sql"},
    },
    "allowed tools and schema": {
        "model": "gpt-5.1",
        "input": "Weather?",
        "tools": [TOOL],
        "tool_choice": {
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "function", "name": "get_weather"}],
        },
        "text": {"format": {"type": "json_schema", "name": "answer", "schema": WEATHER, "strict": True}},
        "stream": True,
    },
    "tools of the provider": {
        "model": "gpt-5.1",
        "input": [
            {"role": "user", "content": "Find it."},
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {"type": "search", "query": "it"},
            },
            {
                "type": "code_interpreter_call",
                "id": "ci_1",
                "status": "completed",
                "container_id": "cntr_1",
                "code": "print(1)",
                "outputs": [{"type": "logs", "logs": "1"}],
            },
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Here.", "annotations": []}],
            },
            {"role": "user", "content": "Thanks"},
        ],
        "tools": [{"type": "web_search"}, {"type": "code_interpreter", "container": {"type": "auto"}}],
    },
}


def _answer(*output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1700000000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "model": "gpt-5.1-2025-11-13",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 12,
            "input_tokens_details": {"cached_tokens": 4},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 2},
            "total_tokens": 17,
        },
        **fields,
    }


def _message(*content: dict[str, Any], **fields: Any) -> dict[str, Any]:
    base = {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant"}
    return {**base, "content": list(content), **fields}


RESPONSES: dict[str, dict[str, Any]] = {
    "text": _answer(
        _message({"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}),
        service_tier="default",
    ),
    "reasoning and calls": _answer(
        {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAAAABnc2VhbGVk"},
        {**CALL, "id": "fc_1", "status": "completed"},
        {
            "id": "ctc_1",
            "type": "custom_tool_call",
            "status": "completed",
            "call_id": "call_2",
            "name": "sql",
            "input": "SELECT 1",
        },
    ),
    "refusal": _answer(_message({"type": "refusal", "refusal": "I cannot."})),
    "search and citation": _answer(
        {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "x"}},
        _message(
            {
                "type": "output_text",
                "text": "See there.",
                "annotations": [
                    {
                        "type": "url_citation",
                        "start_index": 0,
                        "end_index": 3,
                        "url": "https://example.org",
                        "title": "Example",
                    }
                ],
            }
        ),
    ),
    "cut": _answer(
        _message({"type": "output_text", "text": "Once upon", "annotations": []}, status="incomplete"),
        status="incomplete",
        incomplete_details={"reason": "max_output_tokens"},
    ),
}

ERRORS: dict[str, tuple[int, dict[str, Any]]] = {
    "bad request": (
        400,
        {
            "error": {
                "message": "No tool output found for function call call_1.",
                "type": "invalid_request_error",
                "param": "input",
                "code": None,
            }
        },
    ),
    "unknown model": (
        400,
        {
            "error": {
                "message": "The requested model 'x' does not exist.",
                "type": "invalid_request_error",
                "param": "model",
                "code": "model_not_found",
            }
        },
    ),
}
