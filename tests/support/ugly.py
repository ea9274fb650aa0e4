"""Bodies that no client should send and that some do: valid JSON of each format, as malformed as it gets.

Every text that could get lost is marked, so that it is found again or missed.
"""

import json
from itertools import count
from typing import Any

Json = dict[str, Any]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_count = count(1)


def mark(before: str = "") -> str:
    """A text that is found again."""
    return f"{before}mk{next(_count)}x"


CHAT_TOOLS = [
    {
        "type": "function",
        "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}},
    },
    {"type": "function", "function": {"name": "g"}},
]


def chat_call(call_id: str, name: str = "f", arguments: str = "{}") -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat(*turns: Json, **more: Any) -> Json:
    return {"model": "gpt-4o", "messages": list(turns), **more}


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def assistant(content: Any = None, *calls: Json, **more: Any) -> Json:
    return {"role": "assistant", "content": content, **({"tool_calls": list(calls)} if calls else {}), **more}


def chat_result(call_id: str, content: Any) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


CHAT: dict[str, Json] = {
    "reasoning in one object": {**chat(user("x")), "reasoning": {"max_tokens": 2000}},
    "a call without an object around its name": chat(
        user("x"),
        assistant(None, {"id": "1", "type": "function", "name": "f", "arguments": '{"a": 1}'}),
        chat_result("1", "y"),
    ),
    "a picture whose type has parameters": chat(
        user(
            [
                {"type": "text", "text": mark()},
                {"type": "image_url", "image_url": {"url": f"data:image/png;charset=utf-8;base64,{PNG}"}},
            ]
        )
    ),
    "out of order": chat(
        user("x"),
        assistant(None, chat_call("1"), chat_call("2", "g"), chat_call("3")),
        chat_result("3", mark()),
        chat_result("1", mark()),
        chat_result("2", mark()),
        tools=CHAT_TOOLS,
    ),
    "result before call": chat(
        user("x"), chat_result("1", mark()), assistant(None, chat_call("1")), user("y"), tools=CHAT_TOOLS
    ),
    "duplicate ids": chat(
        user("x"),
        assistant(None, chat_call("1"), chat_call("1", "g")),
        chat_result("1", mark()),
        chat_result("1", mark()),
        tools=CHAT_TOOLS,
    ),
    "duplicate ids across turns": chat(
        user("x"),
        assistant(None, chat_call("1")),
        chat_result("1", mark()),
        user(mark()),
        assistant(None, chat_call("1", "g")),
        chat_result("1", mark()),
        tools=CHAT_TOOLS,
    ),
    "two results": chat(
        user("x"), assistant(None, chat_call("1")), chat_result("1", mark()), chat_result("1", mark()), tools=CHAT_TOOLS
    ),
    "user between": chat(
        user("x"),
        assistant(None, chat_call("1"), chat_call("2")),
        chat_result("1", mark()),
        user(mark()),
        chat_result("2", mark()),
        tools=CHAT_TOOLS,
    ),
    "assistant between": chat(
        user("x"),
        assistant(None, chat_call("1"), chat_call("2")),
        chat_result("1", mark()),
        assistant(mark()),
        chat_result("2", mark()),
        tools=CHAT_TOOLS,
    ),
    "orphan": chat(user("x"), assistant(mark()), chat_result("nope", mark()), tools=CHAT_TOOLS),
    "empty strings": chat(
        {"role": "system", "content": ""},
        user(""),
        assistant(""),
        user([{"type": "text", "text": ""}]),
        assistant("", chat_call("1", "f", "")),
        chat_result("1", ""),
        user("x"),
        tools=CHAT_TOOLS,
    ),
    "empty id and name": chat(
        user("x"), assistant(None, chat_call("", "f")), chat_result("", mark()), tools=CHAT_TOOLS
    ),
    "empty name": chat(user("x"), assistant(None, chat_call("1", "")), chat_result("1", mark()), tools=CHAT_TOOLS),
    "null contents": chat(user("x"), assistant(None), user("y")),
    "system in the middle": chat(
        user("x"),
        {"role": "system", "content": mark()},
        assistant(mark(), chat_call("1")),
        {"role": "system", "content": mark()},
        chat_result("1", mark()),
        {"role": "developer", "content": mark()},
        user("y"),
        tools=CHAT_TOOLS,
    ),
    "system last": chat(user("x"), assistant(mark()), {"role": "system", "content": mark()}),
    "only system": chat({"role": "system", "content": mark()}),
    "only assistant": chat(assistant(mark())),
    "huge args": chat(
        user("x"),
        assistant(None, chat_call("1", "f", json.dumps({"a": "é\u2028" * 50000}))),
        chat_result("1", "z" * 300000),
        tools=CHAT_TOOLS,
    ),
    "broken args": chat(
        user("x"),
        assistant(
            None,
            chat_call("1", "f", '{"a":'),
            chat_call("2", "f", "[1,2]"),
            chat_call("3", "f", "null"),
            chat_call("4", "f", '"s"'),
            chat_call("5", "f", '{"a":1}{"b":2}'),
        ),
        chat_result("1", mark()),
        chat_result("2", mark()),
        chat_result("3", mark()),
        chat_result("4", mark()),
        chat_result("5", mark()),
        tools=CHAT_TOOLS,
    ),
    "unicode": chat(
        user("\u0000\u0001\u001f" + mark() + "\U0001f600\u202e\u2028\u2029\ufeff\ufffe"),
        assistant("\u200b"),
        user("\u00a0"),
        assistant("\u3000\t\n"),
        user(mark()),
    ),
    "unknown parts": chat(
        user([{"type": "video_url", "video_url": {"url": mark()}}, {"type": "text", "text": mark()}]),
        assistant([{"type": "text", "text": mark()}, {"type": "x_new", "v": mark()}]),
        user("y"),
    ),
    "refusals": chat(
        user("x"),
        assistant(None, refusal=mark()),
        user("y"),
        assistant([{"type": "refusal", "refusal": mark()}]),
        user("z"),
    ),
    "image result": chat(
        user("x"),
        assistant(None, chat_call("1")),
        chat_result(
            "1",
            [
                {"type": "text", "text": mark()},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PNG}},
            ],
        ),
        user("y"),
        tools=CHAT_TOOLS,
    ),
    "media": chat(
        user(
            [
                {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}},
                {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                {"type": "file", "file": {"file_id": "file-1"}},
                {"type": "file", "file": {"filename": "a.csv", "file_data": "data:text/csv;base64,YSxi"}},
                {"type": "image_url", "image_url": {"url": "data:image/svg+xml;base64,PHN2Zz4="}},
            ]
        )
    ),
    "bad data url": chat(
        user(
            [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,@@@@"}},
                {"type": "image_url", "image_url": {"url": ""}},
                {"type": "image_url", "image_url": {"url": "data:,hello"}},
            ]
        )
    ),
    "reasoning out of place": chat(
        user("x"),
        assistant(
            mark(),
            reasoning_content=mark(),
            reasoning_details=[
                {"type": "reasoning.encrypted", "data": "zzz", "format": "anthropic-claude-v1", "id": "q"},
                {"type": "reasoning.text", "text": mark(), "signature": "sig", "format": "anthropic-claude-v1"},
            ],
        ),
        user(
            "y",
        ),
    ),
    "names": chat(
        {"role": "user", "content": "x", "name": "A B"},
        {"role": "assistant", "content": mark(), "name": "日本"},
        user("y"),
    ),
    "weird tool names": chat(
        user("x"),
        assistant(None, chat_call("1", "a.b/c d"), chat_call("2", "x" * 200), chat_call("3", "日本")),
        chat_result("1", mark()),
        chat_result("2", mark()),
        chat_result("3", mark()),
        tools=[
            {"type": "function", "function": {"name": "a.b/c d"}},
            {"type": "function", "function": {"name": "x" * 200}},
            {"type": "function", "function": {"name": "日本"}},
        ],
    ),
    "no tools declared": chat(user("x"), assistant(None, chat_call("1")), chat_result("1", mark())),
    "custom tool": chat(
        user("x"),
        assistant(None, {"id": "1", "type": "custom", "custom": {"name": "sql", "input": mark("SELECT ")}}),
        chat_result("1", mark()),
        tools=[
            {
                "type": "custom",
                "custom": {
                    "name": "sql",
                    "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /a/"}},
                },
            }
        ],
        tool_choice={"type": "custom", "custom": {"name": "sql"}},
    ),
    "legacy": chat(
        user("x"),
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": mark()},
        functions=[{"name": "f"}],
        function_call={"name": "f"},
    ),
    "settings at the edge": chat(
        user("json please"),
        temperature=2,
        top_p=0,
        n=0,
        max_tokens=0,
        stop=["", "a", "b", "c"],
        seed=-1,
        presence_penalty=-2,
        logit_bias={"1": 100},
        user="",
    ),
    "schemas": chat(
        user("x"),
        tools=[
            {
                "type": "function",
                "function": {
                    "name": "f",
                    "parameters": {
                        "$defs": {"n": {"type": "object", "properties": {"c": {"$ref": "#/$defs/n"}}}},
                        "$ref": "#/$defs/n",
                    },
                },
            }
        ],
    ),
    "schema true": chat(
        user("x"),
        tools=[
            {
                "type": "function",
                "function": {
                    "name": "f",
                    "parameters": {
                        "type": "object",
                        "properties": {
                            "a": True,
                            "b": {},
                            "c": {"enum": [1, None, "x"]},
                            "d": {"type": ["string", "null"]},
                            "e": {"not": {}},
                        },
                        "additionalProperties": False,
                    },
                },
            }
        ],
    ),
    "schema empty": chat(user("x"), tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}]),
    "deep": chat(
        user("x"),
        assistant(None, chat_call("1", "f", '{"a":' * 500 + "1" + "}" * 500)),
        chat_result("1", mark()),
        tools=CHAT_TOOLS,
    ),
    "numbers": chat(
        user("x"),
        assistant(None, chat_call("1", "f", '{"a":9007199254740993,"b":1e400,"c":-0.0,"a":1.0}')),
        chat_result("1", mark()),
        tools=CHAT_TOOLS,
    ),
}


def messages(*turns: Json, **more: Any) -> Json:
    return {"model": "claude-sonnet-4-5", "max_tokens": 4000, "messages": list(turns), **more}


MESSAGES_TOOLS = [{"name": "f", "input_schema": {"type": "object", "properties": {}}}]


def tool_use(call_id: str, name: str = "f", arguments: Json | None = None) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments or {}}


def tool_result(call_id: str, content: Any = None, **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, **({} if content is None else {"content": content}), **more}


def text(content: str) -> Json:
    return {"type": "text", "text": content}


IMAGE_BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
MESSAGES: dict[str, Json] = {
    "server tools": messages(
        user("x"),
        {
            "role": "assistant",
            "content": [
                text(mark()),
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": mark()}},
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "srvtoolu_1",
                    "content": [
                        {
                            "type": "web_search_result",
                            "url": "https://a.b",
                            "title": mark(),
                            "encrypted_content": "E",
                            "page_age": None,
                        }
                    ],
                },
                {
                    "type": "text",
                    "text": mark(),
                    "citations": [
                        {
                            "type": "web_search_result_location",
                            "url": "https://a.b",
                            "title": "t",
                            "encrypted_index": "q",
                            "cited_text": mark(),
                        }
                    ],
                },
            ],
        },
        user("y"),
        tools=[{"type": "web_search_20250305", "name": "web_search"}],
    ),
    "code exec": messages(
        user("x"),
        {
            "role": "assistant",
            "content": [
                {
                    "type": "server_tool_use",
                    "id": "srvtoolu_1",
                    "name": "bash_code_execution",
                    "input": {"command": "ls"},
                },
                {
                    "type": "bash_code_execution_tool_result",
                    "tool_use_id": "srvtoolu_1",
                    "content": {
                        "type": "bash_code_execution_result",
                        "stdout": mark(),
                        "stderr": "",
                        "return_code": 0,
                        "content": [],
                    },
                },
            ],
        },
        user("y"),
        tools=[{"type": "code_execution_20250825", "name": "code_execution"}],
    ),
    "bash tool": messages(
        user("x"),
        {"role": "assistant", "content": [tool_use("t1", "bash", {"command": "ls"})]},
        user([tool_result("t1", mark())]),
        tools=[
            {"type": "bash_20250124", "name": "bash"},
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
            {"type": "computer_20250124", "name": "computer", "display_width_px": 1, "display_height_px": 1},
        ],
    ),
    "images in result": messages(
        user("x"),
        {"role": "assistant", "content": [tool_use("t1"), tool_use("t2")]},
        user(
            [
                tool_result("t1", [text(mark()), IMAGE_BLOCK, text(mark())]),
                tool_result("t2", [IMAGE_BLOCK], is_error=True),
                text(mark()),
            ]
        ),
        tools=MESSAGES_TOOLS,
    ),
    "doc in result": messages(
        user("x"),
        {"role": "assistant", "content": [tool_use("t1")]},
        user(
            [
                tool_result(
                    "t1",
                    [
                        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": mark()}},
                        {"type": "search_result", "source": "s", "title": "t", "content": [text(mark())]},
                    ],
                )
            ]
        ),
        tools=MESSAGES_TOOLS,
    ),
    "signatures out of place": messages(
        {"role": "user", "content": [text("x")]},
        {
            "role": "assistant",
            "content": [
                text(mark()),
                {"type": "thinking", "thinking": mark(), "signature": "AAAA"},
                tool_use("t1"),
                {"type": "redacted_thinking", "data": "BBBB"},
                {"type": "thinking", "thinking": "", "signature": "CCCC"},
            ],
        },
        user([tool_result("t1", mark())]),
        tools=MESSAGES_TOOLS,
        thinking={"type": "enabled", "budget_tokens": 2000},
    ),
    "thinking only": messages(
        user("x"),
        {"role": "assistant", "content": [{"type": "thinking", "thinking": mark(), "signature": "AAAA"}]},
        user("y"),
    ),
    "misplaced": messages(
        {"role": "user", "content": [tool_use("t1"), text(mark())]},
        {"role": "assistant", "content": [tool_result("t1", mark()), text(mark())]},
        user("y"),
        tools=MESSAGES_TOOLS,
    ),
    "empty everything": messages(
        {"role": "user", "content": []},
        {"role": "assistant", "content": []},
        {"role": "user", "content": [text("")]},
        {"role": "assistant", "content": ""},
        user("x"),
        system="",
        tools=[],
    ),
    "system blocks": messages(
        user("x"),
        system=[text(mark()), {"type": "text", "text": mark(), "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    ),
    "system inline": messages(
        user("x"), {"role": "assistant", "content": mark()}, {"role": "system", "content": mark()}, user("y")
    ),
    "results scattered": messages(
        user("x"),
        {"role": "assistant", "content": [tool_use("t1"), tool_use("t2")]},
        user([text(mark()), tool_result("t2", mark()), text(mark())]),
        user([tool_result("t1", mark())]),
        tools=MESSAGES_TOOLS,
    ),
    "mcp": messages(
        user("x"),
        {
            "role": "assistant",
            "content": [
                {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "q", "server_name": "s", "input": {}},
                {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False, "content": [text(mark())]},
            ],
        },
        user("y"),
        mcp_servers=[{"type": "url", "url": "https://s", "name": "s"}],
    ),
    "container upload": messages(user([{"type": "container_upload", "file_id": "file_1"}, text(mark())])),
    "compaction": messages(
        user("x"),
        {"role": "assistant", "content": [{"type": "compaction", "content": mark()}, text(mark())]},
        user("y"),
    ),
    "tool choice": messages(
        user("x"), tools=MESSAGES_TOOLS, tool_choice={"type": "tool", "name": "nope", "disable_parallel_tool_use": True}
    ),
    "file source": messages(
        user(
            [
                {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
                {
                    "type": "document",
                    "source": {"type": "url", "url": "https://a.b/c.pdf"},
                    "title": mark(),
                    "context": mark(),
                    "citations": {"enabled": True},
                },
                {"type": "document", "source": {"type": "content", "content": [text(mark()), IMAGE_BLOCK]}},
            ]
        )
    ),
}


def gemini(*turns: Json, **more: Any) -> Json:
    return {"contents": list(turns), **more}


def gemini_user(*parts: Json) -> Json:
    return {"role": "user", "parts": list(parts)}


def gemini_model(*parts: Json) -> Json:
    return {"role": "model", "parts": list(parts)}


GEMINI_TOOLS = [
    {
        "functionDeclarations": [
            {"name": "f", "parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}}}
        ]
    }
]


def function_call(name: str = "f", **more: Any) -> Json:
    return {"functionCall": {"name": name, "args": more.pop("args", {}), **more}}


def function_response(name: str = "f", response: Json | None = None, **more: Any) -> Json:
    return {"functionResponse": {"name": name, "response": response or {}, **more}}


GEMINI: dict[str, Json] = {
    "code": gemini(
        gemini_user({"text": "x"}),
        gemini_model(
            {"executableCode": {"language": "PYTHON", "code": mark()}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": mark()}},
            {"text": mark()},
        ),
        gemini_user({"text": "y"}),
        tools=[{"codeExecution": {}}, {"googleSearch": {}}, {"urlContext": {}}],
    ),
    "tool call": gemini(
        gemini_user({"text": "x"}),
        gemini_model(
            {
                "toolCall": {"id": "1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"q": mark()}},
                "thoughtSignature": "AAAA",
            },
            {"toolResponse": {"id": "1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"r": mark()}}},
            {"text": mark()},
        ),
        gemini_user({"text": "y"}),
    ),
    "no ids": gemini(
        gemini_user({"text": "x"}),
        gemini_model(function_call(), function_call("g"), function_call()),
        gemini_user(
            function_response("g", {"output": mark()}),
            function_response("f", {"output": mark()}),
            function_response("f", {"error": mark()}),
        ),
        tools=GEMINI_TOOLS,
    ),
    "too few": gemini(
        gemini_user({"text": "x"}),
        gemini_model(function_call(), function_call("g")),
        gemini_user(function_response("g", {"output": mark()})),
        gemini_user({"text": mark()}),
        tools=GEMINI_TOOLS,
    ),
    "too many": gemini(
        gemini_user({"text": "x"}),
        gemini_model(function_call()),
        gemini_user(function_response("f", {"a": mark()}), function_response("f", {"b": mark()})),
        tools=GEMINI_TOOLS,
    ),
    "response first": gemini(
        gemini_user(function_response("f", {"a": mark()})),
        gemini_model({"text": mark()}),
        gemini_user({"text": "y"}),
        tools=GEMINI_TOOLS,
    ),
    "mixed turn": gemini(
        gemini_user({"text": "x"}),
        gemini_model({"text": mark()}, function_call(id="1"), {"text": mark()}),
        gemini_user({"text": mark()}, function_response("f", {"output": {"x": mark()}}, id="1"), {"text": mark()}),
        tools=GEMINI_TOOLS,
    ),
    "media response": gemini(
        gemini_user({"text": "x"}),
        gemini_model(function_call(id="1")),
        gemini_user(
            function_response(
                "f",
                {"output": {"$ref": "i"}},
                id="1",
                parts=[{"inlineData": {"mimeType": "image/png", "data": PNG, "displayName": "i"}}],
            )
        ),
        tools=GEMINI_TOOLS,
    ),
    "sigs": gemini(
        gemini_user({"text": "x"}),
        gemini_model(
            {"text": mark(), "thought": True},
            {"text": mark(), "thoughtSignature": "QUFB"},
            {"text": "", "thoughtSignature": "QkJC"},
            {**function_call(id="1"), "thoughtSignature": "Q0ND"},
            function_call(id="2"),
        ),
        gemini_user(function_response("f", {"o": mark()}, id="1"), function_response("f", {}, id="2")),
        tools=GEMINI_TOOLS,
    ),
    "video": gemini(
        gemini_user(
            {"fileData": {"fileUri": "gs://b/v.mp4", "mimeType": "video/mp4"}, "videoMetadata": {"fps": 1}},
            {"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}},
            {"text": mark()},
        )
    ),
    "unknown": gemini(
        gemini_user({"newThing": {"a": mark()}}, {"text": mark()}),
        gemini_model({"text": ""}),
        gemini_user({"text": "y"}),
    ),
    "system": gemini(
        gemini_user({"text": "x"}),
        systemInstruction={
            "parts": [{"text": mark()}, {"inlineData": {"mimeType": "image/png", "data": PNG}}, {"text": mark()}]
        },
    ),
    "grounded": gemini(
        gemini_user({"text": "x"}),
        tools=[{"googleSearch": {}}, *GEMINI_TOOLS],
        toolConfig={
            "functionCallingConfig": {"mode": "VALIDATED", "allowedFunctionNames": ["f"]},
            "includeServerSideToolInvocations": True,
        },
    ),
}


def responses(*items: Json, **more: Any) -> Json:
    return {"model": "gpt-5", "input": list(items), **more}


RESPONSES: dict[str, Json] = {
    "a server nearby": responses(
        user("x"),
        tools=[
            {
                "type": "mcp",
                "server_label": "local",
                "server_url": f"http://localhost:8000/{mark()}",
                "require_approval": "never",
            }
        ],
    ),
    "provider tools": responses(
        user("x"),
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": mark()}},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [
                {
                    "type": "output_text",
                    "text": mark(),
                    "annotations": [
                        {"type": "url_citation", "url": "https://a.b", "title": "t", "start_index": 0, "end_index": 2}
                    ],
                }
            ],
        },
        {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "container_id": "c",
            "code": mark(),
            "outputs": [{"type": "logs", "logs": mark()}],
            "status": "completed",
        },
        {"type": "image_generation_call", "id": "ig_1", "result": PNG, "status": "completed"},
        {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "q", "arguments": "{}", "output": mark()},
        {"type": "file_search_call", "id": "fs_1", "queries": [mark()], "results": None, "status": "completed"},
        user("y"),
        tools=[
            {"type": "web_search"},
            {"type": "code_interpreter", "container": {"type": "auto"}},
            {"type": "mcp", "server_label": "s", "server_url": "https://s"},
            {"type": "image_generation"},
            {"type": "file_search", "vector_store_ids": ["v"]},
        ],
    ),
    "computer": responses(
        user("x"),
        {
            "type": "computer_call",
            "id": "cu_1",
            "call_id": "c1",
            "action": {"type": "click", "x": 1, "y": 2, "button": "left"},
            "pending_safety_checks": [],
            "status": "completed",
        },
        {
            "type": "computer_call_output",
            "call_id": "c1",
            "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64," + PNG},
        },
        user("y"),
        tools=[{"type": "computer_use_preview", "display_width": 1, "display_height": 1, "environment": "browser"}],
    ),
    "output first": responses(
        user("x"),
        {"type": "function_call_output", "call_id": "1", "output": mark()},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        user("y"),
    ),
    "scattered": responses(
        user("x"),
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        user(mark()),
        {"type": "function_call", "call_id": "2", "name": "f", "arguments": ""},
        {"type": "function_call_output", "call_id": "2", "output": mark()},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": mark()}]},
        {
            "type": "function_call_output",
            "call_id": "1",
            "output": [
                {"type": "input_text", "text": mark()},
                {"type": "input_image", "image_url": "data:image/png;base64," + PNG},
            ],
        },
    ),
    "reasoning alone": responses(
        user("x"),
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": mark()}, {"type": "summary_text", "text": mark()}],
            "encrypted_content": "gAAAA",
            "content": [{"type": "reasoning_text", "text": mark()}],
        },
        {"type": "reasoning", "id": "rs_2", "summary": []},
        user("y"),
    ),
    "refusal": responses(
        user("x"),
        {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": mark()}]},
        user("y"),
        instructions=mark(),
    ),
    "files": responses(
        user(
            [
                {"type": "input_file", "file_url": "https://a.b/c.pdf"},
                {"type": "input_file", "file_id": "file-1"},
                {
                    "type": "input_file",
                    "filename": "a.xls",
                    "file_data": "data:application/vnd.ms-excel;base64,AAAA",
                },
                {"type": "input_image", "file_id": "file-2", "detail": "low"},
                {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
            ]
        )
    ),
    "string input": {"model": "gpt-5", "input": mark(), "instructions": mark(), "previous_response_id": "resp_1"},
    "roles": responses(
        {"role": "developer", "content": mark()},
        {"role": "system", "content": [{"type": "input_text", "text": mark()}]},
        {"role": "assistant", "content": mark()},
        {"role": "developer", "content": mark()},
        user("x"),
    ),
    "references": responses({"type": "item_reference", "id": "msg_1"}, user(mark())),
    "unknown item": responses(user("x"), {"type": "quantum_call", "id": "q", "v": mark()}, user("y")),
    "custom": responses(
        user("x"),
        {"type": "custom_tool_call", "call_id": "1", "name": "sql", "input": mark()},
        {"type": "custom_tool_call_output", "call_id": "1", "output": mark()},
        tools=[{"type": "custom", "name": "sql"}],
    ),
}


def converse(*turns: Json, **more: Any) -> Json:
    return {"messages": list(turns), **more}


def converse_user(*content: Json) -> Json:
    return {"role": "user", "content": list(content)}


def converse_assistant(*content: Json) -> Json:
    return {"role": "assistant", "content": list(content)}


CONVERSE: dict[str, Json] = {
    "kinds": converse(
        converse_user({"text": "x"}),
        converse_assistant(
            {"reasoningContent": {"reasoningText": {"text": mark(), "signature": "AAAA"}}},
            {"toolUse": {"toolUseId": "1", "name": "f", "input": {}}},
            {"toolUse": {"toolUseId": "2", "name": "f", "input": {}}},
        ),
        converse_user(
            {
                "toolResult": {
                    "toolUseId": "2",
                    "content": [
                        {"json": {"a": mark()}},
                        {"text": mark()},
                        {"image": {"format": "png", "source": {"bytes": PNG}}},
                        {"document": {"format": "txt", "name": "d", "source": {"text": mark()}}},
                        {"video": {"format": "mp4", "source": {"bytes": "AAAA"}}},
                    ],
                    "status": "error",
                }
            },
            {"toolResult": {"toolUseId": "1", "content": []}},
            {"text": mark()},
        ),
        toolConfig={
            "tools": [
                {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}},
                {"cachePoint": {"type": "default"}},
            ]
        },
    ),
    "guard": converse(
        converse_user(
            {"guardContent": {"text": {"text": mark()}}}, {"text": mark()}, {"cachePoint": {"type": "default"}}
        ),
        system=[{"text": mark()}, {"cachePoint": {"type": "default"}}],
    ),
    "server": converse(
        converse_user({"text": "x"}),
        converse_assistant(
            {"toolUse": {"toolUseId": "1", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}},
            {"toolResult": {"toolUseId": "1", "content": [{"text": mark()}], "type": "nova_grounding_result"}},
            {"text": mark()},
        ),
        converse_user({"text": "y"}),
        toolConfig={"tools": [{"systemTool": {"name": "nova_grounding"}}]},
    ),
    "s3": converse(
        converse_user(
            {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b/k"}}}},
            {"video": {"format": "mp4", "source": {"bytes": "AAAA"}}},
            {"text": mark()},
        )
    ),
    "cited": converse(
        converse_user(
            {
                "document": {
                    "format": "pdf",
                    "name": "a",
                    "source": {"bytes": "JVBERi0="},
                    "citations": {"enabled": True},
                }
            },
            {"document": {"format": "txt", "name": "b", "source": {"text": mark()}}},
            {"text": mark()},
        ),
        converse_assistant(
            {
                "citationsContent": {
                    "content": [{"text": mark()}],
                    "citations": [
                        {
                            "title": "a",
                            "location": {"documentPage": {"documentIndex": 0, "start": 1, "end": 2}},
                            "sourceContent": [{"text": mark()}],
                        }
                    ],
                }
            }
        ),
        converse_user({"text": "y"}),
    ),
}


def ollama(*turns: Json, **more: Any) -> Json:
    return {"model": "qwen3", "messages": list(turns), **more}


OLLAMA: dict[str, Json] = {
    "no ids": ollama(
        user("x"),
        {
            "role": "assistant",
            "content": mark(),
            "thinking": mark(),
            "tool_calls": [
                {"function": {"name": "f", "arguments": {"a": 1}}},
                {"function": {"name": "g", "arguments": {}}},
            ],
        },
        {"role": "tool", "tool_name": "g", "content": mark()},
        {"role": "tool", "tool_name": "f", "content": mark()},
        tools=CHAT_TOOLS,
    ),
    "orphans": ollama(
        {"role": "tool", "content": mark()},
        user(mark()),
        {"role": "tool", "tool_name": "zz", "content": mark()},
        {"role": "assistant", "content": ""},
        user("x"),
    ),
    "images": ollama(
        {"role": "user", "content": mark(), "images": [PNG, "UklGRiQAAABXQVZF", "@@@"]},
        {"role": "assistant", "content": mark(), "images": [PNG]},
        {"role": "system", "content": mark()},
        user("x"),
    ),
}


def cohere(*turns: Json, **more: Any) -> Json:
    return {"model": "command-a-03-2025", "messages": list(turns), **more}


COHERE: dict[str, Json] = {
    "plan and content": cohere(
        user("x"),
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": mark()}, {"type": "text", "text": mark()}],
            "tool_plan": mark(),
            "tool_calls": [
                {"id": "f_1", "type": "function", "function": {"name": "f", "arguments": ""}},
                {"id": "g_1", "type": "function", "function": {"name": "g", "arguments": "null"}},
            ],
        },
        {"role": "tool", "tool_call_id": "g_1", "content": mark()},
        {"role": "tool", "tool_call_id": "f_1", "content": [{"type": "document", "document": {"data": mark()}}]},
        tools=CHAT_TOOLS,
    ),
    "orphans": cohere(
        {"role": "tool", "tool_call_id": "zz", "content": mark()},
        user(mark()),
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": []},
        {"role": "system", "content": mark()},
        user("x"),
    ),
    "documents": cohere(
        {"role": "user", "content": [{"type": "text", "text": mark()}]},
        documents=[mark(), {"data": {"text": mark(), "title": mark()}}, {"id": "", "data": {}}, {"data": []}],
    ),
    "documents without a reader": cohere({"role": "system", "content": mark()}, documents=["x"]),
}


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────


def chat_answer(message: Json, finish: str | None = "stop", **more: Any) -> Json:
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
        **more,
    }


CHAT_ANSWERS: dict[str, Json] = {
    "a call in both spellings": chat_answer(
        {"content": None, "tool_calls": [chat_call("1")], "function_call": {"name": "f", "arguments": "{}"}},
        "tool_calls",
    ),
    "two calls, one in the old spelling": chat_answer(
        {
            "content": None,
            "tool_calls": [chat_call("1")],
            "function_call": {"name": "g", "arguments": f'{{"a":"{mark()}"}}'},
        },
        "tool_calls",
    ),
    "no role, and a key that nobody knows": {
        "choices": [{"message": {"content": mark(), "content_list": [{"type": "text", "text": "x"}]}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    },
    "calls without a finish": chat_answer({"content": None, "tool_calls": [chat_call("1")]}, None),
    "calls and stop": chat_answer(
        {"content": mark(), "tool_calls": [chat_call("1"), chat_call("2"), chat_call("", "g", "")]}
    ),
    "broken args": chat_answer(
        {
            "content": None,
            "tool_calls": [chat_call("1", "f", '{"a":'), chat_call("2", "f", "[]"), chat_call("3", "f", '"x"')],
        },
        "tool_calls",
    ),
    "refusal and content": chat_answer(
        {
            "content": mark(),
            "refusal": mark(),
            "annotations": [
                {
                    "type": "url_citation",
                    "url_citation": {"url": "https://a.b", "title": mark(), "start_index": 0, "end_index": 99},
                }
            ],
        }
    ),
    "no choices": {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": []},
    "null message": {
        "id": "c",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": None}, "finish_reason": None}],
    },
    "length in call": chat_answer(
        {"content": None, "tool_calls": [chat_call("1"), chat_call("2", "f", '{"a')]}, "length"
    ),
    "content filter": chat_answer({"content": ""}, "content_filter"),
    "weird finish": chat_answer({"content": mark()}, "eos"),
    "n": {
        "id": "c",
        "model": "m",
        "choices": [
            {"index": 1, "message": {"role": "assistant", "content": mark()}, "finish_reason": "stop"},
            {"index": 0, "message": {"role": "assistant", "content": mark()}, "finish_reason": "length"},
        ],
    },
    "reasoning": chat_answer(
        {
            "content": mark(),
            "reasoning": mark(),
            "reasoning_details": [
                {"type": "reasoning.encrypted", "data": "q", "format": "openai-responses-v1", "id": "rs"}
            ],
        }
    ),
    "custom": chat_answer(
        {"content": None, "tool_calls": [{"id": "1", "type": "custom", "custom": {"name": "sql", "input": mark()}}]},
        "tool_calls",
    ),
    "parts": chat_answer({"content": [{"type": "text", "text": mark()}, {"type": "x", "v": mark()}]}),
    "audio": chat_answer(
        {"content": None, "audio": {"id": "a", "data": "AAAA", "transcript": mark(), "expires_at": 1}}
    ),
    "unicode": chat_answer({"content": "\u0000\u2028\U0001f600\ufeff" + mark()}),
    "huge": chat_answer(
        {"content": None, "tool_calls": [chat_call("1", "f", json.dumps({"a": "x" * 300000}))]}, "tool_calls"
    ),
}


def messages_answer(*blocks: Json, stop: str | None = "end_turn", **more: Any) -> Json:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "content": list(blocks),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 2},
        **more,
    }


MESSAGES_ANSWERS: dict[str, Json] = {
    "server": messages_answer(
        text(mark()),
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": mark()}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
        },
        text(mark()),
        tool_use("t1"),
        stop="tool_use",
    ),
    "pause": messages_answer(
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}, stop="pause_turn"
    ),
    "thinking after": messages_answer(
        tool_use("t1"),
        {"type": "thinking", "thinking": mark(), "signature": "AAAA"},
        text(mark()),
        {"type": "redacted_thinking", "data": "BB"},
        stop="tool_use",
    ),
    "empty": messages_answer(),
    "null stop": messages_answer(text(mark()), stop=None),
    "unknown": messages_answer({"type": "hologram", "v": mark()}, text("")),
    "model context": messages_answer(text(mark()), stop="model_context_window_exceeded"),
    "cited": messages_answer(
        {
            "type": "text",
            "text": mark(),
            "citations": [
                {
                    "type": "char_location",
                    "cited_text": mark(),
                    "document_index": 0,
                    "document_title": mark(),
                    "start_char_index": 0,
                    "end_char_index": 4,
                },
                {
                    "type": "web_search_result_location",
                    "url": "https://a.b",
                    "title": mark(),
                    "encrypted_index": "e",
                    "cited_text": mark(),
                },
            ],
        }
    ),
    "container": messages_answer(
        text(mark()),
        container={"id": "c", "expires_at": "2026-01-01T00:00:00Z"},
        context_management={"applied_edits": []},
    ),
}


def gemini_answer(*parts: Json, finish: str = "STOP", **more: Any) -> Json:
    return {
        "candidates": [
            {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish, "index": 0, **more}
        ],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
        "modelVersion": "g",
    }


GEMINI_ANSWERS: dict[str, Json] = {
    "a call without a finish": {
        "candidates": [
            {"content": {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": mark()}}}]}}
        ],
    },
    "code": gemini_answer(
        {"executableCode": {"language": "PYTHON", "code": mark()}},
        {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": mark()}},
        {"inlineData": {"mimeType": "image/png", "data": PNG}},
        function_call(),
        {"text": mark()},
    ),
    "sigs": gemini_answer(
        {"text": mark(), "thought": True, "thoughtSignature": "QUFB"},
        {**function_call(), "thoughtSignature": "QkJC"},
        function_call("g"),
        {"text": "", "thoughtSignature": "Q0ND"},
    ),
    "malformed": gemini_answer(finish="MALFORMED_FUNCTION_CALL", finishMessage=mark()),
    "recitation": gemini_answer(
        {"text": mark()}, finish="RECITATION", citationMetadata={"citationSources": [{"uri": mark()}]}
    ),
    "grounding": gemini_answer(
        {"text": "héllo " + mark()},
        groundingMetadata={
            "webSearchQueries": [mark()],
            "groundingChunks": [{"web": {"uri": "https://a.b", "title": mark()}}],
            "groundingSupports": [
                {"segment": {"startIndex": 0, "endIndex": 6, "text": "héllo"}, "groundingChunkIndices": [0, 7]}
            ],
        },
    ),
    "blocked": {"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": mark()}},
    "unknown part": gemini_answer({"hologram": {"v": mark()}}, {"text": mark()}),
    "null": {"candidates": [{"content": None, "finishReason": "STOP"}]},
    "audio": gemini_answer(
        {"inlineData": {"mimeType": "audio/L16;rate=24000", "data": "AAAA"}},
        {"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}},
    ),
    "new enum": gemini_answer({"text": mark()}, finish="FUTURE_REASON"),
}


def responses_answer(*items: Json, status: str = "completed", **more: Any) -> Json:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": status,
        "output": list(items),
        "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
        **more,
    }


RESPONSES_ANSWERS: dict[str, Json] = {
    "mixed": responses_answer(
        *[i for i in RESPONSES["provider tools"]["input"] if i.get("type") and i.get("role") != "user"]
    ),
    "computer": responses_answer(
        {
            "type": "computer_call",
            "id": "cu",
            "call_id": "c",
            "action": {"type": "click", "x": 1, "y": 2, "button": "left"},
            "pending_safety_checks": [],
            "status": "completed",
        }
    ),
    "approval": responses_answer(
        {"type": "mcp_approval_request", "id": "mcpr", "arguments": mark(), "name": "n", "server_label": "s"}
    ),
    "failed": responses_answer(status="failed", error={"code": "server_error", "message": mark()}),
    "incomplete": responses_answer(
        {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": '{"a', "status": "incomplete"},
        status="incomplete",
        incomplete_details={"reason": "max_output_tokens"},
    ),
    "messages": responses_answer(
        {
            "type": "message",
            "id": "m1",
            "role": "assistant",
            "status": "completed",
            "phase": "commentary",
            "content": [
                {
                    "type": "output_text",
                    "text": mark(),
                    "annotations": [],
                    "logprobs": [{"token": "a", "logprob": 0, "bytes": [], "top_logprobs": []}],
                }
            ],
        },
        {
            "type": "message",
            "id": "m2",
            "role": "assistant",
            "status": "completed",
            "content": [
                {"type": "refusal", "refusal": mark()},
                {
                    "type": "output_text",
                    "text": mark(),
                    "annotations": [
                        {"type": "file_citation", "file_id": "f", "filename": mark(), "index": 0},
                        {
                            "type": "container_file_citation",
                            "container_id": "c",
                            "file_id": "f",
                            "filename": "x",
                            "start_index": 0,
                            "end_index": 1,
                        },
                    ],
                },
            ],
        },
    ),
    "unknown": responses_answer({"type": "quantum", "v": mark()}),
    "queued": responses_answer(status="queued"),
    "shell that was ended": responses_answer(
        *(
            {
                "type": kind,
                "id": f"{kind}_{number}",
                "call_id": f"call_{number}",
                "status": "completed",
                **(
                    {"action": {"commands": ["make"]}, "environment": {"type": "container_auto"}}
                    if kind == "shell_call"
                    else {"output": [output]}
                ),
            }
            for number, outcome in enumerate(
                ({"type": "exit", "exit_code": 0}, {"type": "exit", "exit_code": 2}, {"type": "timeout"})
            )
            for output in [{"stdout": f"out {number}", "stderr": "err", "outcome": outcome}]
            for kind in ("shell_call", "shell_call_output")
        )
    ),
}
CONVERSE_ANSWERS: dict[str, Json] = {
    "all": {
        "output": {
            "message": {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"redactedContent": "QUJD"}},
                    {"reasoningContent": {"reasoningText": {"text": mark()}}},
                    {"toolUse": {"toolUseId": "1", "name": "f", "input": {"a": mark()}}},
                    {"image": {"format": "png", "source": {"bytes": PNG}}},
                    {"text": mark()},
                ],
            }
        },
        "stopReason": "guardrail_intervened",
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
        "metrics": {"latencyMs": 1},
        "trace": {"guardrail": {"x": mark()}},
        "additionalModelResponseFields": {"y": mark()},
    },
    "empty": {
        "output": {"message": {"role": "assistant", "content": []}},
        "stopReason": "malformed_tool_use",
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
        "metrics": {"latencyMs": 1},
    },
}
OLLAMA_ANSWERS: dict[str, Json] = {
    "all": {
        "model": "q",
        "created_at": "2026-01-01T00:00:00Z",
        "message": {
            "role": "assistant",
            "content": mark(),
            "thinking": mark(),
            "images": [PNG],
            "tool_calls": [{"function": {"name": "f", "arguments": {"a": mark()}}}],
        },
        "done": True,
        "done_reason": "length",
    },
    "load": {
        "model": "q",
        "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": "load",
    },
    "not done": {"model": "q", "created_at": "x", "message": {"role": "assistant", "content": mark()}, "done": False},
}


COHERE_ANSWERS: dict[str, Json] = {
    "all at once": {
        "id": "c",
        "message": {
            "role": "assistant",
            "content": [{"type": "text", "text": mark()}, {"type": "thinking", "thinking": mark()}],
            "tool_plan": mark(),
            "tool_calls": [{"id": "f_1", "type": "function", "function": {"name": "f", "arguments": "{"}}],
            "citations": [
                {"start": 0, "end": 99, "text": "x", "content_index": 7, "sources": []},
                {"type": "THINKING_CONTENT", "content_index": 1, "sources": [{"type": "tool"}]},
                {"type": "PLAN", "start": 0, "end": 1},
            ],
        },
        "finish_reason": "TOOL_CALL",
    },
    "nothing": {"id": "c", "message": {"role": "assistant"}, "finish_reason": "COMPLETE"},
    "cited without text": {
        "id": "c",
        "message": {"role": "assistant", "citations": [{"start": 0, "end": 1}], "tool_plan": mark()},
        "finish_reason": "COMPLETE",
    },
    "counts of an early server": {
        "id": "c",
        "message": {"role": "assistant", "content": [{"type": "text", "text": mark()}]},
        "finish_reason": "MAX_TOKENS",
        "meta": {"tokens": {"input_tokens": 1.0}},
    },
}


# ── Interactions, and what came to the others later: at the end, because marks are numbered in order ──────────────


def user_step(*contents: Json) -> Json:
    return {"type": "user_input", "content": list(contents)}


def interaction(*steps: Json, **more: Any) -> Json:
    times = {"created": "2026-01-01T00:00:00Z", "updated": "2026-01-01T00:00:00Z"}
    return {
        "id": "i",
        "object": "interaction",
        "status": "completed",
        "model": "g",
        **times,
        "steps": list(steps),
        **more,
    }


def page() -> Json:
    return {"type": "url_citation", "url": "https://a.b", "title": mark(), "start_index": 0, "end_index": 2}


INTERACTIONS_TOOLS = [{"type": "function", "name": name, "parameters": {"type": "object"}} for name in "fg"]
INTERACTIONS_CALL = {"type": "function_call", "id": "1", "name": "f", "arguments": {}}

INTERACTIONS: dict[str, Json] = {
    "annotated input": {
        "model": "g",
        "input": [
            user_step({"type": "text", "text": mark(), "annotations": [page()]}),
            INTERACTIONS_CALL,
            {
                "type": "function_result",
                "call_id": "1",
                "name": "f",
                "result": [{"type": "text", "text": mark(), "annotations": [page()]}],
            },
        ],
        "tools": INTERACTIONS_TOOLS,
    },
    "summary with an image": {
        "model": "g",
        "input": [
            user_step({"type": "text", "text": mark()}),
            {
                "type": "thought",
                "signature": "QUFB",
                "summary": [
                    {"type": "text", "text": mark(), "annotations": [page()]},
                    {"type": "image", "data": "AAAA", "mime_type": "image/png"},
                    {"type": "hologram", "note": mark()},
                ],
            },
            {"type": "model_output", "content": [{"type": "text", "text": mark()}]},
            user_step({"type": "text", "text": mark()}),
        ],
    },
    "shell": {
        "model": "g",
        "input": [
            user_step({"type": "text", "text": mark()}),
            {"type": "code_execution_call", "id": "1", "arguments": {"code": mark(), "language": "bash"}},
            {"type": "code_execution_result", "call_id": "1", "result": mark(), "is_error": True},
            {"type": "model_output", "content": [{"type": "text", "text": mark()}]},
            user_step({"type": "text", "text": mark()}),
        ],
    },
    "none of one": {
        "model": "g",
        "input": mark(),
        "tools": INTERACTIONS_TOOLS,
        "generation_config": {"tool_choice": {"allowed_tools": {"mode": "none", "tools": ["f"]}}},
    },
    "unknown choice": {
        "model": "g",
        "input": mark(),
        "tools": INTERACTIONS_TOOLS,
        "generation_config": {"tool_choice": mark()},
    },
    "choice in capitals": {
        "model": "g",
        "input": mark(),
        "tools": INTERACTIONS_TOOLS,
        "generation_config": {"tool_choice": "ANY"},
    },
}
INTERACTIONS_ANSWERS: dict[str, Json] = {
    "summary with an image": interaction(
        {
            "type": "thought",
            "signature": "QUFB",
            "summary": [
                {"type": "text", "text": mark(), "annotations": [page()]},
                {"type": "image", "data": "AAAA", "mime_type": "image/png"},
            ],
        },
        {"type": "model_output", "content": [{"type": "text", "text": mark(), "annotations": [page()]}]},
    ),
    "shell": interaction(
        {"type": "code_execution_call", "id": "1", "arguments": {"code": mark(), "language": "bash"}},
        {"type": "code_execution_result", "call_id": "1", "result": mark()},
        {"type": "model_output", "content": [{"type": "text", "text": mark()}]},
    ),
    "failed output": interaction(
        {
            "type": "model_output",
            "content": [{"type": "text", "text": mark()}],
            "error": {"code": 13, "message": mark()},
        },
        status="failed",
        errors=[{"code": "internal", "message": mark()}],
    ),
}
CHAT |= {
    "signatures of LiteLLM": {
        "model": "m",
        "messages": [
            {"role": "user", "content": mark()},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "1",
                        "type": "function",
                        "function": {"name": "f", "arguments": "{}"},
                        "provider_specific_fields": {"thought_signature": mark()},
                    },
                    {
                        "id": "2",
                        "type": "function",
                        "function": {
                            "name": "f",
                            "arguments": "{}",
                            "provider_specific_fields": {"thought_signature": mark(), "note": mark()},
                        },
                    },
                    {"id": "call_3__thought__QUFB", "type": "function", "function": {"name": "g", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "1", "content": mark()},
            {"role": "tool", "tool_call_id": "2", "content": mark()},
            {"role": "tool", "tool_call_id": "call_3__thought__QUFB", "content": mark()},
        ],
        "tools": CHAT_TOOLS,
    }
}
GEMINI |= {
    "none of one": {
        "contents": [{"role": "user", "parts": [{"text": mark()}]}],
        "tools": [{"functionDeclarations": [{"name": "f"}, {"name": "g"}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "NONE", "allowedFunctionNames": ["f"]}},
    },
    "unknown mode": {
        "contents": [{"role": "user", "parts": [{"text": mark()}]}],
        "tools": [{"functionDeclarations": [{"name": "f"}]}],
        "toolConfig": {"functionCallingConfig": {"mode": mark()}},
    },
}
GEMINI_ANSWERS |= {
    "files and places": gemini_answer(
        {"text": "héllo there " + mark()},
        groundingMetadata={
            "groundingChunks": [
                {"retrievedContext": {"title": mark(), "text": mark(), "fileSearchStore": mark(), "pageNumber": 7}},
                {"maps": {"uri": "https://a.b/m", "title": mark(), "text": mark(), "placeId": mark()}},
                {"web": {"uri": "https://a.b/w", "title": mark(), "domain": mark()}},
                {"image": {"sourceUri": "https://a.b/i", "imageUri": mark(), "title": mark()}},
                {"web": {"uri": mark("https://a.b/uncited-")}},
            ],
            "groundingSupports": [
                {
                    "segment": {"startIndex": 0, "endIndex": 6, "text": "héllo"},
                    "groundingChunkIndices": [0, 1],
                    "confidenceScores": [0.25, 0.75],
                },
                {"segment": {"startIndex": 7, "endIndex": 12, "text": "there"}, "groundingChunkIndices": [2, 3, 0]},
            ],
        },
    ),
    "two kinds in one chunk": gemini_answer(
        {"text": "hello"},
        groundingMetadata={
            "groundingChunks": [{"web": {"uri": mark("https://a.b/")}, "maps": {"placeId": mark()}}, {"web": {}}],
            "groundingSupports": [{"segment": {"endIndex": 5, "text": "hello"}, "groundingChunkIndices": [0, 1]}],
        },
    ),
}
COHERE |= {
    "image in a store": {
        "model": "c",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": mark()},
                    {"type": "image_url", "image_url": {"url": mark("gs://b/"), "detail": "low"}},
                ],
            }
        ],
    }
}
COHERE_ANSWERS |= {
    "cited data": {
        "id": "c",
        "message": {
            "role": "assistant",
            "content": [{"type": "text", "text": mark("It is 22C ")}],
            "citations": [
                {
                    "start": 6,
                    "end": 9,
                    "text": "22C",
                    "type": "TEXT_CONTENT",
                    "content_index": 0,
                    "sources": [
                        {"type": "document", "id": "a", "document": {"id": "a", "snippet": mark()}},
                        {"type": "document", "id": "b", "document": {"id": "b", "region": mark(), "date": mark()}},
                        {
                            "type": "document",
                            "id": "c",
                            "document": {"id": "c", "title": mark(), "text": mark(), "author": mark(), "year": 2026},
                        },
                    ],
                }
            ],
        },
        "finish_reason": "COMPLETE",
    }
}


UGLY_REQUESTS: dict[str, dict[str, Json]] = {
    "openai-chat": CHAT,
    "anthropic-messages": MESSAGES,
    "gemini": GEMINI,
    "openai-responses": RESPONSES,
    "bedrock-converse": CONVERSE,
    "ollama-chat": OLLAMA,
    "cohere-chat": COHERE,
    "gemini-interactions": INTERACTIONS,
}
UGLY_ANSWERS: dict[str, dict[str, Json]] = {
    "openai-chat": CHAT_ANSWERS,
    "anthropic-messages": MESSAGES_ANSWERS,
    "gemini": GEMINI_ANSWERS,
    "openai-responses": RESPONSES_ANSWERS,
    "bedrock-converse": CONVERSE_ANSWERS,
    "ollama-chat": OLLAMA_ANSWERS,
    "cohere-chat": COHERE_ANSWERS,
    "gemini-interactions": INTERACTIONS_ANSWERS,
}
