"""One conversation in every format of stored conversations: a question, a call, its result, an answer."""
# ruff: noqa: E501 - a record per line reads better

import json
from typing import Any

FUNCTION = {
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
TOOLS = [{"type": "function", "function": FUNCTION}]
ARGUMENTS = {"city": "Oslo"}
TEXT = '{"city":"Oslo"}'

CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "Weather in Oslo?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": TEXT}}],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "3C"},
    {"role": "assistant", "content": "3 degrees."},
]


def _with_objects(*, ids: bool) -> list[dict[str, Any]]:
    call: dict[str, Any] = {"type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}
    return [
        CHAT[0],
        {"role": "assistant", "tool_calls": [call | ({"id": "call_1"} if ids else {})]},
        {"role": "tool", "name": "weather", "content": "3C"},
        CHAT[3],
    ]


CLAUDE_LINES: list[dict[str, Any]] = [
    {"type": "summary", "summary": "Weather"},
    {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "isSidechain": False,
        "message": {"role": "user", "content": "Weather in Oslo?"},
    },
    # An abandoned branch, and the notes of a sub-agent.
    {
        "type": "assistant",
        "uuid": "x1",
        "parentUuid": "u1",
        "message": {
            "id": "m0",
            "role": "assistant",
            "model": "claude-x",
            "content": [{"type": "text", "text": "Never mind."}],
        },
    },
    {
        "type": "user",
        "uuid": "s1",
        "parentUuid": "u1",
        "isSidechain": True,
        "message": {"role": "user", "content": "sub-agent"},
    },
    {
        "type": "assistant",
        "uuid": "u2",
        "parentUuid": "u1",
        "message": {
            "id": "m1",
            "role": "assistant",
            "model": "claude-x",
            "content": [{"type": "text", "text": "I look."}],
        },
    },
    {
        "type": "assistant",
        "uuid": "u3",
        "parentUuid": "u2",
        "message": {
            "id": "m1",
            "role": "assistant",
            "model": "claude-x",
            "content": [{"type": "tool_use", "id": "call_1", "name": "weather", "input": ARGUMENTS}],
        },
    },
    {
        "type": "user",
        "uuid": "u4",
        "parentUuid": "u3",
        "toolUseResult": {"stdout": "3C"},
        "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "3C"}]},
    },
    {
        "type": "assistant",
        "uuid": "u5",
        "parentUuid": "u4",
        "message": {
            "id": "m2",
            "role": "assistant",
            "model": "claude-x",
            "content": [{"type": "text", "text": "3 degrees."}],
        },
    },
]

CODEX_LINES: list[dict[str, Any]] = [
    {"type": "session_meta", "payload": {"id": "s", "base_instructions": {"text": "Be brief."}}},
    {"type": "turn_context", "payload": {"model": "gpt-x"}},
    {
        "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather in Oslo?"}]},
    },
    {"type": "event_msg", "payload": {"type": "user_message", "message": "Weather in Oslo?"}},
    {
        "type": "response_item",
        "payload": {"type": "function_call", "name": "weather", "arguments": TEXT, "call_id": "call_1"},
    },
    {
        "type": "response_item",
        "payload": {"type": "function_call_output", "call_id": "call_1", "output": {"content": "3C", "success": True}},
    },
    {
        "type": "response_item",
        "payload": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "3 degrees."}]},
    },
]

STORIES: dict[str, Any] = {
    "openai-finetuning": {
        "messages": [*CHAT[:3], {**CHAT[3], "weight": 1}],
        "tools": TOOLS,
        "parallel_tool_calls": False,
    },
    "trl": {"messages": _with_objects(ids=False), "tools": json.dumps(TOOLS)},
    "message-list": CHAT,
    "sharegpt": {
        "conversations": [
            {"from": "human", "value": "Weather in Oslo?"},
            {"from": "function_call", "value": '{"name":"weather","arguments":{"city":"Oslo"}}'},
            {"from": "observation", "value": "3C"},
            {"from": "gpt", "value": "3 degrees."},
        ],
        "tools": json.dumps([FUNCTION]),
    },
    "hermes": {
        "conversations": [
            {"from": "system", "value": f"Call these: <tools>{json.dumps(TOOLS)}</tools>"},
            {"from": "human", "value": "Weather in Oslo?"},
            {"from": "gpt", "value": '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'},
            {"from": "tool", "value": '<tool_response>\n{"name": "weather", "content": "3C"}\n</tool_response>'},
            {"from": "gpt", "value": "3 degrees."},
        ]
    },
    "gemini-tuning": {
        "contents": [
            {"role": "user", "parts": [{"text": "Weather in Oslo?"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": ARGUMENTS}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"output": "3C"}}}]},
        ],
        "completions": [
            {"score": 0, "completion": {"role": "model", "parts": [{"text": "Warm."}]}},
            {"score": 1, "completion": {"role": "model", "parts": [{"text": "3 degrees."}]}},
        ],
    },
    "bedrock-tuning": {
        "schemaVersion": "bedrock-conversation-2024",
        "messages": [
            {"role": "user", "content": [{"text": "Weather in Oslo?"}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "call_1", "name": "weather", "input": ARGUMENTS}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "call_1", "content": [{"text": "3C"}]}}]},
            {"role": "assistant", "content": [{"text": "3 degrees."}]},
        ],
        "toolConfig": {"tools": [{"toolSpec": {"name": "weather", "inputSchema": {"json": {"type": "object"}}}}]},
    },
    "claude-code": CLAUDE_LINES,
    "codex": CODEX_LINES,
    "gemini-cli": {
        "sessionId": "s",
        "projectHash": "p",
        "messages": [
            {"id": "1", "type": "user", "content": "Weather in Oslo?"},
            {"id": "2", "type": "info", "content": "a note of the program"},
            {
                "id": "3",
                "type": "gemini",
                "content": "",
                "model": "gemini-x",
                "thoughts": [{"subject": "Look", "description": "it up"}],
                "toolCalls": [
                    {
                        "id": "call_1",
                        "name": "weather",
                        "args": ARGUMENTS,
                        "status": "success",
                        "result": [{"functionResponse": {"id": "call_1", "name": "weather", "response": {"output": "3C"}}}],
                    }
                ],
            },
            {"id": "4", "type": "gemini", "content": "3 degrees.", "model": "gemini-x"},
        ],
    },
    "langchain": [
        {"type": "human", "data": {"content": "Weather in Oslo?"}},
        {
            "type": "ai",
            "data": {
                "content": "",
                "tool_calls": [{"name": "weather", "args": ARGUMENTS, "id": "call_1", "type": "tool_call"}],
                "invalid_tool_calls": [],
                "additional_kwargs": {"tool_calls": [{"id": "call_1", "function": {"name": "weather", "arguments": TEXT}}]},
                "response_metadata": {"model_name": "gpt-x"},
            },
        },
        {"type": "tool", "data": {"content": "3C", "tool_call_id": "call_1", "status": "success"}},
        {"type": "ai", "data": {"content": "3 degrees.", "tool_calls": [], "invalid_tool_calls": []}},
    ],
    "openai-agents": [
        {"role": "user", "content": "Weather in Oslo?"},
        {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": TEXT},
        {"type": "function_call_output", "call_id": "call_1", "output": "3C"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "3 degrees.", "annotations": []}]},
    ],
    "pydantic-ai": [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Weather in Oslo?"}]},
        {
            "kind": "response",
            "parts": [{"part_kind": "tool-call", "tool_name": "weather", "args": TEXT, "tool_call_id": "call_1"}],
            "model_name": "gpt-x",
        },
        {
            "kind": "request",
            "parts": [{"part_kind": "tool-return", "tool_name": "weather", "content": "3C", "tool_call_id": "call_1", "outcome": "success"}],
        },
        {"kind": "response", "parts": [{"part_kind": "text", "content": "3 degrees."}], "model_name": "gpt-x"},
    ],
    "vercel-ui": [
        {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Weather in Oslo?"}]},
        {
            "id": "m2",
            "role": "assistant",
            "parts": [
                {"type": "step-start"},
                {"type": "tool-weather", "toolCallId": "call_1", "state": "output-available", "input": ARGUMENTS, "output": "3C"},
                {"type": "step-start"},
                {"type": "text", "text": "3 degrees.", "state": "done"},
            ],
        },
    ],
    "opentelemetry": [
        {"role": "user", "parts": [{"type": "text", "content": "Weather in Oslo?"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "call_1", "name": "weather", "arguments": ARGUMENTS}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": "3C"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "3 degrees."}], "finish_reason": "stop"},
    ],
    "tau-bench": {"task_id": 7, "reward": 1.0, "info": {}, "traj": [*CHAT[:2], {**CHAT[2], "name": "weather"}, CHAT[3]]},
    "bfcl": {
        "id": "simple_0",
        "question": [[{"role": "user", "content": "Weather in Oslo?"}]],
        "function": [{**FUNCTION, "name": "weather.get", "parameters": {"type": "dict", "properties": {"city": {"type": "str"}}}}],
    },
    "toolbench": {
        "win": True,
        "answer_generation": {
            "function": [FUNCTION],
            "query": "Weather in Oslo?",
            "train_messages": [
                [CHAT[0]],
                [
                    CHAT[0],
                    {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": TEXT}},
                    {"role": "function", "name": "weather", "content": "3C"},
                    CHAT[3],
                ],
            ],
        },
    },
    "swe-agent": {
        "environment": "e",
        "trajectory": [],
        "history": [
            {"role": "user", "content": "A demonstration.", "is_demo": True},
            *CHAT[:2],
            {"role": "tool", "tool_call_ids": ["call_1"], "content": "3C", "message_type": "observation"},
            CHAT[3],
        ],
    },
    "openhands": [
        {"kind": "SystemPromptEvent", "id": "e0", "system_prompt": {"text": "Be brief."}, "tools": [FUNCTION]},
        {"kind": "MessageEvent", "id": "e1", "llm_message": {"role": "user", "content": [{"type": "text", "text": "Weather in Oslo?"}]}},
        {"kind": "MessageEvent", "id": "gone", "llm_message": {"role": "user", "content": [{"type": "text", "text": "forgotten"}]}},
        {"kind": "ActionEvent", "id": "e2", "llm_response_id": "r1", "thought": [], "tool_name": "weather", "tool_call_id": "call_1", "tool_call": {"id": "call_1", "name": "weather", "arguments": TEXT}},
        {"kind": "ObservationEvent", "id": "e3", "tool_name": "weather", "tool_call_id": "call_1", "observation": {"content": [{"type": "text", "text": "3C"}]}},
        {"kind": "CondensationEvent", "id": "e4", "forgotten_event_ids": ["gone"]},
        {"kind": "MessageEvent", "id": "e5", "llm_message": {"role": "assistant", "content": [{"type": "text", "text": "3 degrees."}]}},
    ],
    "chatgpt-export": {
        "title": "Weather",
        "current_node": "d",
        "mapping": {
            "root": {"id": "root", "parent": None, "message": None},
            "a": {"parent": "root", "message": {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Weather in Oslo?"]}}},
            "b": {"parent": "a", "message": {"author": {"role": "assistant"}, "recipient": "weather", "content": {"content_type": "code", "text": TEXT}}},
            "c": {"parent": "b", "message": {"author": {"role": "tool", "name": "weather"}, "content": {"content_type": "text", "parts": ["3C"]}}},
            "d": {"parent": "c", "message": {"author": {"role": "assistant"}, "recipient": "all", "metadata": {"model_slug": "gpt-x"}, "content": {"content_type": "text", "parts": ["3 degrees."]}}},
            "other": {"parent": "a", "message": {"author": {"role": "assistant"}, "content": {"content_type": "text", "parts": ["Never mind."]}}},
        },
    },
    "llm": {
        "conversation": "01k",
        "answered_by": "gpt-5.4",
        "tools": [FUNCTION],
        "chain": [
            {"role": "user", "parts": [{"type": "text", "text": "Weather in Oslo?"}]},
            {"role": "assistant", "parts": [{"type": "tool_call", "name": "weather", "arguments": ARGUMENTS, "tool_call_id": "call_1"}]},
            {"role": "tool", "parts": [{"type": "tool_result", "name": "weather", "output": "3C", "tool_call_id": "call_1"}]},
            {"role": "assistant", "parts": [{"type": "text", "text": "3 degrees."}]},
        ],
    },
    "claude-export": {
        "uuid": "c",
        "chat_messages": [
            {"uuid": "1", "sender": "human", "text": "Weather in Oslo?", "content": [{"type": "text", "text": "Weather in Oslo?"}]},
            {
                "uuid": "2",
                "sender": "assistant",
                "text": "3 degrees.",
                "content": [
                    {"type": "tool_use", "id": "call_1", "name": "weather", "input": ARGUMENTS},
                    {"type": "tool_result", "tool_use_id": "call_1", "name": "weather", "content": [{"type": "text", "text": "3C"}]},
                    {"type": "text", "text": "3 degrees."},
                ],
            },
        ],
    },
}  # fmt: skip
