"""Records in the shapes of public datasets, logs and exports, made here: the same conversation in each of them.

The story is that of `stories.py`; the shapes are those of published files, with all their other columns.
"""
# ruff: noqa: E501 - a record per line reads better

import json
from typing import Any

from msgspec import Struct

from tests.datasets.stories import ARGUMENTS, CHAT, FUNCTION, STORIES, TEXT, TOOLS

QUESTION, RESULT, ANSWER = "Weather in Oslo?", "3C", "3 degrees."
WHOLE = (("user", QUESTION), ("call", ("weather", ARGUMENTS)), ("result", RESULT), ("assistant", ANSWER))
TALK = (("user", QUESTION), ("assistant", ANSWER))
TASK = (("user", QUESTION),)
AUTOGEN_OLD = [
    {"role": "assistant", "content": QUESTION, "name": "user_proxy"},
    {"role": "assistant", "content": None, "name": "helper", "tool_calls": [
        {"id": "c2", "type": "function", "function": {"name": "weather", "arguments": TEXT}},
        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": TEXT}},
    ]},
    {"role": "tool", "name": "user_proxy", "content": "3C\n\n4C", "tool_responses": [
        {"tool_call_id": "c1", "role": "tool", "content": "3C"},
        {"tool_call_id": "c2", "role": "tool", "content": "4C"},
    ]},
    {"role": "user", "content": ANSWER, "name": "helper"},
]  # fmt: skip
AUTOGEN_TALK = (
    ("assistant", QUESTION), ("call", ("weather", ARGUMENTS)), ("call", ("weather", ARGUMENTS)), ("result", RESULT), ("result", "4C"),
    ("user", ANSWER),
)  # fmt: skip
CALLED = WHOLE[:2]


class Shape(Struct, frozen=True):
    """One record, the format it is detected as (None: refused), and the story that is read from it."""

    record: Any
    format: str | None
    story: tuple[Any, ...] = ()


PYTHON_CALL = "<tool_call>\n{'arguments': {'city': 'Oslo'}, 'name': 'weather'}\n</tool_call>"
HERMES_PROMPT = (
    "You are a function calling AI model. You are provided with function signatures within <tools> </tools> XML tags. "
    f"Here are the available tools:\n<tools>\n{json.dumps(TOOLS)}\n</tools>\nReturn each call as\n"
    "<tool_call>\n{'arguments': <args-dict>, 'name': <function-name>}\n</tool_call>"
)
HERMES: dict[str, Shape] = {
    "hermes-function-calling-v1": Shape(
        {
            "id": "3cd9", "category": "Information", "subcategory": "Weather", "task": "Look it up",
            "conversations": [
                {"from": "system", "value": HERMES_PROMPT},
                {"from": "human", "value": QUESTION},
                {"from": "gpt", "value": PYTHON_CALL},
                {"from": "tool", "value": "<tool_response>\n{'name': 'weather', 'content': '3C'}\n</tool_response>\n"},
                {"from": "gpt", "value": ANSWER},
            ],
        },
        "hermes", WHOLE,
    ),
    "hermes-function-calling-v1 single turn": Shape(
        {
            "id": "3cd9", "tools": json.dumps(TOOLS),
            "conversations": [
                {"from": "system", "value": HERMES_PROMPT},
                {"from": "human", "value": QUESTION},
                {"from": "gpt", "value": PYTHON_CALL},
            ],
        },
        "hermes", CALLED,
    ),
    "Hermes tags in messages": Shape(
        {
            "messages": [
                {"role": "user", "content": QUESTION},
                {"role": "assistant", "content": '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'},
                {"role": "tool", "content": "<tool_response>\n3C\n</tool_response>"},
                {"role": "assistant", "content": ANSWER},
            ],
            "tools": json.dumps(TOOLS), "source": "made",
        },
        "hermes", WHOLE,
    ),
    "messages with a list of images": Shape(
        {
            "messages": [
                {"role": "user", "content": [{"type": "image", "text": None}, {"type": "text", "text": QUESTION}]},
                {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
            ],
            "images": [{"bytes": None, "path": "oslo.png"}],
        },
        "trl", TALK,
    ),
    "Qwen template in conversations": Shape(
        {
            "conversations": [
                {"role": "system", "content": HERMES_PROMPT},
                {"role": "user", "content": QUESTION},
                {"role": "assistant", "content": "<tool_call>\n<function=weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>"},
                {"role": "user", "content": "<tool_response>\n3C\n</tool_response>"},
                {"role": "assistant", "content": ANSWER},
            ],
        },
        "hermes", WHOLE,
    ),
    "an answer about tags": Shape(
        {
            "messages": [
                {"role": "user", "content": QUESTION},
                {"role": "assistant", "content": "Write <tool_call>{…}</tool_call>."},
            ],
        },
        "openai-chat", (("user", QUESTION), ("assistant", "Write <tool_call>{…}</tool_call>.")),
    ),
}  # fmt: skip
GLAIVE = (
    'USER: Weather in Oslo?\n\n\nASSISTANT: <functioncall> {"name": "weather", "arguments": \'{"city": "Oslo"}\'} <|endoftext|>'
    "\n\n\nFUNCTION RESPONSE: 3C\n\n\nASSISTANT: 3 degrees. <|endoftext|>\n\n\n"
)
XLAM_TOOL = {
    "name": "weather",
    "description": "The weather.",
    "parameters": {"city": {"description": "Where.", "type": "str, optional", "default": "Oslo"}},
}
TRAINING: dict[str, Shape] = {
    "glaive-function-calling-v2": Shape(
        {"system": f"SYSTEM: You are a helpful assistant with access to the following functions. Use them if required -\n{json.dumps(FUNCTION, indent=4)}\n\n{json.dumps({**FUNCTION, 'name': 'b'}, indent=4)}\n", "chat": GLAIVE},
        "glaive", WHOLE,
    ),
    "xlam-function-calling-60k": Shape(
        {"id": 0, "query": QUESTION, "answers": json.dumps([{"name": "weather", "arguments": ARGUMENTS}]), "tools": json.dumps([XLAM_TOOL])},
        "xlam", CALLED,
    ),
    "ToolACE": Shape(
        {
            "system": f"You are an expert in composing functions. Here is a list of functions in JSON format that you can invoke:\n{json.dumps([FUNCTION])}\nPut it in the format of [func1(params_name=params_value), func2(params)]\n",
            "conversations": [
                {"from": "user", "value": QUESTION},
                {"from": "assistant", "value": '[weather(city="Oslo")]'},
                {"from": "tool", "value": '[{"name": "weather", "results": "3C"}]'},
                {"from": "assistant", "value": ANSWER},
            ],
        },
        "toolace", WHOLE,
    ),
    "APIGen-MT-5k": Shape(
        {
            "conversations": [
                {"from": "human", "value": QUESTION},
                {"from": "function_call", "value": '{"name": "weather", "arguments": {"city": "Oslo"}}'},
                {"from": "observation", "value": RESULT},
                {"from": "gpt", "value": ANSWER},
            ],
            "tools": json.dumps([FUNCTION]), "system": "# Policy\nBe brief.",
        },
        "sharegpt", WHOLE,
    ),
    "When2Call sft": Shape(
        {"tools": [json.dumps(FUNCTION)], "messages": [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": ANSWER}]},
        "trl", TALK,
    ),
    "When2Call preferences": Shape(
        {
            "tools": [json.dumps(FUNCTION)], "messages": [{"role": "user", "content": QUESTION}],
            "chosen_response": {"role": "assistant", "content": ANSWER},
            "rejected_response": {"role": "assistant", "content": '<TOOLCALL>[{"name": "weather", "arguments": {}}]</TOOLCALL>'},
        },
        "trl", TALK,
    ),
    "When2Call test": Shape(
        {
            "uuid": "u", "source": "bfcl", "source_id": "live_1", "question": QUESTION, "correct_answer": "tool_call",
            "answers": {"direct": "Warm.", "tool_call": '<TOOLCALL>[{"name": "weather"}]</TOOLCALL>'}, "target_tool": json.dumps(FUNCTION),
            "tools": [json.dumps(FUNCTION)], "orig_question": QUESTION, "orig_tools": [json.dumps(FUNCTION)], "held_out_param": None,
        },
        None,
    ),
    "lmsys-chat-1m": Shape(
        {
            "conversation_id": "c", "model": "vicuna-33b", "turn": 1, "language": "English", "redacted": False,
            "conversation": [{"content": QUESTION, "role": "user"}, {"content": ANSWER, "role": "assistant"}],
            "openai_moderation": [{"categories": {"hate": False}, "category_scores": {"hate": 0.1}, "flagged": False}],
        },
        "trl", TALK,
    ),
    "WildChat": Shape(
        {
            "conversation_hash": "h", "model": "gpt-4-0314", "timestamp": "2023-04-09T00:02:53", "turn": 1, "toxic": False, "state": "x",
            "conversation": [
                {"content": QUESTION, "country": "x", "hashed_ip": "x", "header": {"user-agent": "x"}, "language": "English", "redacted": False, "role": "user", "state": "x", "timestamp": None, "toxic": False, "turn_identifier": 1},
                {"content": ANSWER, "country": None, "language": "English", "redacted": False, "role": "assistant", "state": None, "timestamp": "2023", "toxic": False, "turn_identifier": 1},
            ],
        },
        "trl", TALK,
    ),
    "ultrachat": Shape({"id": "0", "data": [QUESTION, ANSWER]}, None),
    "ultrachat_200k": Shape(
        {"prompt": QUESTION, "prompt_id": "p", "messages": [{"content": QUESTION, "role": "user"}, {"content": ANSWER, "role": "assistant"}]},
        "openai-chat", TALK,
    ),
    "oasst1 row": Shape(
        {"message_id": "m", "parent_id": None, "user_id": "u", "text": QUESTION, "role": "prompter", "lang": "en", "review_count": 3, "rank": None, "synthetic": False, "message_tree_id": "m", "tree_state": "ready_for_export"},
        None,
    ),
    "oasst tree": Shape(
        {
            "message_tree_id": "m", "tree_state": "ready_for_export",
            "prompt": {
                "message_id": "m", "text": QUESTION, "role": "prompter", "lang": "en",
                "replies": [
                    {"message_id": "b", "parent_id": "m", "text": "Warm.", "role": "assistant", "rank": 1, "replies": []},
                    {"message_id": "a", "parent_id": "m", "text": ANSWER, "role": "assistant", "rank": 0, "replies": []},
                ],
            },
        },
        "openassistant", TALK,
    ),
    "alpaca": Shape({"instruction": QUESTION, "input": "", "output": ANSWER}, "alpaca", TALK),
    "alpaca with input": Shape({"instruction": "Weather in", "input": "Oslo?", "output": ANSWER, "text": "…"}, "alpaca", (("user", "Weather in\nOslo?"), TALK[1])),
    "alpaca of LLaMA-Factory": Shape(
        {"instruction": QUESTION, "input": "", "output": ANSWER, "system": "Be brief.", "history": [["Hi", "Hello"]]},
        "alpaca", (("user", "Hi"), ("assistant", "Hello"), *TALK),
    ),
    "rows of input and output": Shape({"input": QUESTION, "output": ANSWER}, None),
    "rows of prompt and response": Shape({"prompt": QUESTION, "response": ANSWER}, None),
    "multiple choice": Shape({"question": QUESTION, "choices": ["3C", "9C"], "answer": 0, "subject": "weather"}, None),
    "multiple choice with labels": Shape({"id": "x", "question": QUESTION, "choices": {"text": ["3C"], "label": ["A"]}, "answerKey": "A"}, None),
    "corpus": Shape({"id": "d1", "contents": "Oslo is a city."}, None),
    "chatml text": Shape({"text": "<|im_start|>user\nWeather in Oslo?<|im_end|>\n"}, None),
    "OpenHermes-2.5": Shape(
        {"source": "airoboros", "category": "orca", "conversations": [{"from": "human", "value": QUESTION, "weight": None}, {"from": "gpt", "value": ANSWER, "weight": None}], "idx": None, "model": None, "system_prompt": None},
        "sharegpt", TALK,
    ),
    "ShareGPT raw": Shape(
        {"id": "QWJhYvA_0", "conversations": [{"from": "human", "value": QUESTION}, {"from": "gpt", "value": ANSWER}, {"from": "human", "value": "Thanks"}]},
        "sharegpt", (*TALK, ("user", "Thanks")),
    ),
    "ShareGPT with roles": Shape(
        {"id": 1, "conversations": [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": ANSWER}]},
        "trl", TALK,
    ),
    "ShareGPT with tool turns": Shape(
        {
            "conversations": [
                {"from": "system", "value": "Be brief."},
                {"from": "user", "value": QUESTION},
                {"from": "function_call", "value": '[{"name": "weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}]'},
                {"from": "tool", "value": RESULT},
                {"from": "assistant", "value": ANSWER},
            ],
            "tools": "",
        },
        "sharegpt", WHOLE,
    ),
    "Anthropic hh-rlhf": Shape({"chosen": "\n\nHuman: Weather in Oslo?\n\nAssistant: 3 degrees.", "rejected": "\n\nHuman: Weather in Oslo?\n\nAssistant: Warm."}, None),
    "UltraFeedback binarized": Shape(
        {
            "prompt": QUESTION, "prompt_id": "p", "score_chosen": 8.0, "score_rejected": 2.0,
            "chosen": [{"content": QUESTION, "role": "user"}, {"content": ANSWER, "role": "assistant"}],
            "rejected": [{"content": QUESTION, "role": "user"}, {"content": "Warm.", "role": "assistant"}],
            "messages": [{"content": QUESTION, "role": "user"}, {"content": ANSWER, "role": "assistant"}],
        },
        "trl", TALK,
    ),
    "stored completion": Shape(
        {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o", "choices": [{"index": 0, "message": {"role": "assistant", "content": ANSWER, "refusal": None}, "finish_reason": "stop", "logprobs": None}], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}, "metadata": {"k": "v"}, "request_id": "req", "tool_choice": None, "seed": 1, "input_user": None},
        "openai-chat",
    ),
}  # fmt: skip

SMITH = [
    {"role": "system", "content": "You fix bugs.", "agent": "main", "message_type": "system_prompt"},
    {"role": "user", "content": [{"type": "text", "text": QUESTION}], "agent": "main", "message_type": "observation"},
    {"role": "assistant", "content": "", "thought": "", "action": "weather Oslo", "agent": "main", "message_type": "action", "thinking_blocks": [],
     "tool_calls": [{"function": {"arguments": TEXT, "name": "weather"}, "id": "toolu_1", "type": "function"}]},
    {"role": "tool", "content": [{"type": "text", "text": RESULT, "cache_control": {"type": "ephemeral"}}], "agent": "main", "message_type": "observation", "tool_call_ids": ["toolu_1"]},
    {"role": "assistant", "content": ANSWER, "thought": ANSWER, "action": "", "agent": "main", "message_type": "action"},
]  # fmt: skip
BENCHMARKS: dict[str, Shape] = {
    "ToolBench G1 answer": Shape(
        {
            "tree": {"size": 3, "max_length": 3, "tree": {"is_terminal": False, "children": []}}, "win": True, "try_count": 1, "trys": [], "compare_candidates": [],
            "forward_args": {"max_chain_length": 12},
            "answer_generation": {
                "valid_data": True, "query_count": 2, "total_tokens": 9, "final_answer": '{"return_type": "give_answer"}', "finish_type": "give_answer", "chain": [],
                "function": [{"name": "weather", "description": "", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": [], "optional": ["city"]}}],
                "query": QUESTION,
                "train_messages": [
                    [{"role": "system", "content": "You are AutoGPT."}, {"role": "user", "content": QUESTION}, {"role": "assistant", "content": "", "function_call": {"name": "weather", "arguments": TEXT}}],
                    [
                        {"role": "system", "content": "You are AutoGPT."}, {"role": "user", "content": QUESTION},
                        {"role": "assistant", "content": "", "function_call": {"name": "weather", "arguments": TEXT}, "valid": True},
                        {"role": "function", "name": "weather", "content": RESULT},
                        {"role": "assistant", "content": ANSWER},
                    ],
                ],
            },
        },
        "toolbench", WHOLE,
    ),
    "ToolLLaMA processed": Shape(
        {"id": "Step 1: q", "conversations": [{"from": "system", "value": "You are AutoGPT."}, {"from": "user", "value": QUESTION}, {"from": "assistant", "value": ANSWER}, {"from": "function", "value": RESULT}]},
        "sharegpt",
    ),
    "BFCL v3 multi-turn": Shape(
        {
            "id": "multi_turn_miss_func_0", "question": [[{"role": "user", "content": QUESTION}], []],
            "initial_config": {"GorillaFileSystem": {"root": {}}}, "path": ["GorillaFileSystem.find"], "involved_classes": ["GorillaFileSystem"], "missed_function": {"1": ["sort"]},
        },
        "bfcl", TASK,
    ),
    "BFCL v3 live": Shape(
        {"id": "live_simple_0-0-0", "question": [[{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]], "function": [{"name": "weather.get", "description": "", "parameters": {"type": "dict", "required": ["city"], "properties": {"city": {"type": "string"}}}}]},
        "bfcl", TASK,
    ),
    "BFCL answers": Shape({"id": "simple_0", "ground_truth": [{"weather.get": {"city": ["Oslo"]}}]}, None),
    "BFCL results": Shape({"id": "simple_0", "result": '[weather.get(city="Oslo")]', "input_token_count": 1, "output_token_count": 2, "latency": 0.1}, None),
    "tau-bench result": Shape(
        {
            "task_id": 0, "reward": 1.0, "trial": 0,
            "info": {"task": {"user_id": "u", "actions": [{"name": "weather", "kwargs": ARGUMENTS}], "instruction": "…", "outputs": []}, "source": "user", "user_cost": 0.1, "reward_info": None},
            "traj": [
                {"role": "system", "content": "# Policy"}, CHAT[0],
                {"content": None, "role": "assistant", "tool_calls": [{"index": 0, "function": {"arguments": TEXT, "name": "weather"}, "id": "call_1", "type": "function"}], "function_call": None, "provider_specific_fields": None},
                {"role": "tool", "tool_call_id": "call_1", "name": "weather", "content": RESULT},
                {"content": ANSWER, "role": "assistant", "tool_calls": None, "function_call": None, "annotations": []},
            ],
        },
        "tau-bench", WHOLE,
    ),
    "tau2 simulation": Shape(
        {
            "id": "s", "task_id": "0", "timestamp": "t", "start_time": "t", "end_time": "t", "duration": 1.0, "termination_reason": "user_stop", "agent_cost": 0.1, "user_cost": 0.1, "reward_info": {"reward": 1.0}, "trial": 0, "seed": 1,
            "messages": [
                {"role": "user", "content": QUESTION, "tool_calls": None, "turn_idx": 0, "timestamp": "t", "cost": 0.0, "usage": None, "raw_data": None},
                {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "name": "weather", "arguments": ARGUMENTS, "requestor": "assistant"}], "turn_idx": 1, "raw_data": {}},
                {"id": "call_1", "role": "tool", "content": RESULT, "requestor": "assistant", "error": False, "turn_idx": 2},
                {"role": "assistant", "content": ANSWER, "tool_calls": None, "turn_idx": 3},
            ],
        },
        "tau-bench", WHOLE,
    ),
    "SWE-smith row": Shape(
        {"messages": json.dumps(SMITH), "instance_id": "x__y", "resolved": True, "model": "claude-3-7-sonnet-20250219", "traj_id": "t", "patch": "diff"},
        "swe-agent", WHOLE,
    ),
    "SWE-agent trajectory": Shape(
        {
            "trajectory": [{"action": "weather Oslo", "observation": RESULT, "response": "", "thought": "", "execution_time": 1.0, "state": {}, "query": SMITH[:2], "extra_info": {}}],
            "history": SMITH, "info": {"exit_status": "submitted", "submission": "diff", "model_stats": {}}, "replay_config": "{}", "environment": "swe_main",
        },
        "swe-agent", WHOLE,
    ),
    "mini-swe-agent": Shape(
        {
            "trajectory_format": "mini-swe-agent-1.1", "info": {"exit_status": "Submitted", "mini_version": "2"},
            "messages": [
                {"role": "system", "content": "You fix bugs."}, CHAT[0],
                {**CHAT[1], "extra": {"actions": [{"command": "weather"}], "cost": 0.1}},
                {**CHAT[2], "extra": {"returncode": 0}}, CHAT[3], {"role": "exit", "content": "diff", "extra": {}},
            ],
        },
        "swe-agent", WHOLE,
    ),
    "OpenHands classic events": Shape(
        [
            {"id": 0, "timestamp": "t", "source": "agent", "message": "Be brief.", "action": "system", "args": {"content": "Be brief.", "tools": TOOLS, "openhands_version": "0.50"}},
            {"id": 1, "timestamp": "t", "source": "user", "message": QUESTION, "action": "message", "args": {"content": QUESTION, "image_urls": [], "wait_for_response": False}},
            {"id": 2, "timestamp": "t", "source": "environment", "message": "", "observation": "agent_state_changed", "content": "", "extras": {"agent_state": "running"}},
            {
                "id": 3, "timestamp": "t", "source": "agent", "message": "Running", "action": "run", "args": {"command": "weather Oslo", "thought": "", "is_input": False},
                "tool_call_metadata": {
                    "function_name": "weather", "tool_call_id": "call_1", "total_calls_in_response": 1,
                    "model_response": {"id": "chatcmpl", "model": "m", "object": "chat.completion", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": "", "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": TEXT}}]}}]},
                },
            },
            {"id": 4, "timestamp": "t", "source": "agent", "message": "ran", "cause": 3, "observation": "run", "content": RESULT, "extras": {"command": "weather Oslo", "metadata": {"exit_code": 0}}, "tool_call_metadata": {"function_name": "weather", "tool_call_id": "call_1", "total_calls_in_response": 1}},
            {"id": 5, "timestamp": "t", "source": "agent", "message": ANSWER, "action": "message", "args": {"content": ANSWER, "image_urls": None, "wait_for_response": True}},
        ],
        "openhands", WHOLE,
    ),
}  # fmt: skip


def lc(kind: str, **fields: Any) -> dict[str, Any]:
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", kind],
        "kwargs": {**fields, "type": kind.removesuffix("Message").lower()},
    }


LC_CALL = lc(
    "AIMessage",
    content=[{"type": "tool_use", "id": "call_1", "name": "weather", "input": ARGUMENTS}],
    additional_kwargs={},
    tool_calls=[{"name": "weather", "args": ARGUMENTS, "id": "call_1", "type": "tool_call"}],
    invalid_tool_calls=[],
)
LC_INPUT = [
    lc("HumanMessage", content=QUESTION),
    LC_CALL,
    lc("ToolMessage", content=RESULT, tool_call_id="call_1", status="success"),
]
FRAMEWORKS: dict[str, Shape] = {
    "LangChain dumpd list": Shape([*LC_INPUT, lc("AIMessage", content=ANSWER)], "langchain", WHOLE),
    "LangChain dumpd prompt value": Shape({"lc": 1, "type": "constructor", "id": ["langchain", "prompts", "chat", "ChatPromptValue"], "kwargs": {"messages": [*LC_INPUT, lc("AIMessage", content=ANSWER)]}}, "langchain", WHOLE),
    "LangChain messages_to_dict": Shape(
        [
            {"type": "human", "data": {"content": QUESTION, "additional_kwargs": {}, "response_metadata": {}, "type": "human", "name": None, "id": "1", "example": False}},
            {"type": "AIMessageChunk", "data": {"content": "", "additional_kwargs": {"tool_calls": [{"index": 0, "id": "call_1", "function": {"arguments": TEXT, "name": "weather"}, "type": "function"}]}, "type": "AIMessageChunk", "tool_calls": [{"name": "weather", "args": ARGUMENTS, "id": "call_1", "type": "tool_call"}], "invalid_tool_calls": [], "usage_metadata": {}, "tool_call_chunks": []}},
            {"type": "tool", "data": {"content": RESULT, "tool_call_id": "call_1", "artifact": None, "status": "success", "type": "tool"}},
            {"type": "ai", "data": {"content": [{"type": "text", "text": ANSWER, "index": 0}], "type": "ai", "tool_calls": [], "invalid_tool_calls": []}},
        ],
        "langchain", WHOLE,
    ),
    "LangChain messages of a LangGraph server": Shape(
        [
            {"content": QUESTION, "additional_kwargs": {}, "response_metadata": {}, "type": "human", "name": None, "id": "1", "example": False},
            {"content": "", "additional_kwargs": {}, "response_metadata": {"model_name": "gpt-4o"}, "type": "ai", "name": None, "id": "2", "example": False, "tool_calls": [{"name": "weather", "args": ARGUMENTS, "id": "call_1", "type": "tool_call"}], "invalid_tool_calls": [], "usage_metadata": None},
            {"content": RESULT, "additional_kwargs": {}, "response_metadata": {}, "type": "tool", "name": "weather", "id": "3", "tool_call_id": "call_1", "artifact": None, "status": "success"},
            {"content": ANSWER, "additional_kwargs": {}, "response_metadata": {}, "type": "ai", "name": None, "id": "4", "tool_calls": [], "invalid_tool_calls": []},
        ],
        "langchain", WHOLE,
    ),
    "LangGraph thread state": Shape(
        {"values": {"messages": [{"content": QUESTION, "additional_kwargs": {}, "response_metadata": {}, "type": "human", "id": "1"}, {"content": ANSWER, "additional_kwargs": {}, "response_metadata": {}, "type": "ai", "id": "2", "tool_calls": []}]}, "next": [], "checkpoint": {"thread_id": "t"}, "metadata": {}},
        "langchain", TALK,
    ),
    "LangSmith run": Shape(
        {
            "id": "r", "name": "ChatOpenAI", "run_type": "llm", "start_time": "t", "parent_run_id": "p", "trace_id": "t", "error": None, "tags": [], "extra": {"invocation_params": {"model": "gpt-4o"}},
            "inputs": {"messages": [LC_INPUT]},
            "outputs": {"generations": [[{"text": ANSWER, "generation_info": {"finish_reason": "stop"}, "type": "ChatGeneration", "message": lc("AIMessage", content=ANSWER)}]], "llm_output": {}, "run": None},
        },
        "langsmith", WHOLE,
    ),
    "LangSmith run with tools": Shape(
        {
            "id": "r", "name": "ChatOpenAI", "run_type": "llm", "extra": {"invocation_params": {"model_name": "gpt-4o", "tools": TOOLS}},
            "inputs": {"messages": [LC_INPUT]}, "outputs": {"generations": [[{"message": lc("AIMessage", content=ANSWER)}]]},
        },
        "langsmith", WHOLE,
    ),
    "LangSmith run of Anthropic's client": Shape(
        {
            "id": "r", "name": "ChatAnthropic", "run_type": "llm",
            "inputs": {"system": "Be brief.", "messages": [{"role": "user", "content": QUESTION}], "model": "claude", "max_tokens": 5, "tools": [{"name": "weather", "input_schema": FUNCTION["parameters"]}]},
            "outputs": {"message": {"id": "m", "type": "message", "role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "weather", "input": ARGUMENTS}], "stop_reason": "tool_use"}},
        },
        "langsmith", CALLED,
    ),
    "LangSmith run of OpenAI's client": Shape(
        {
            "id": "r", "name": "ChatOpenAI", "run_type": "llm", "start_time": "t", "trace_id": "t", "error": None, "extra": {"metadata": {"ls_provider": "openai"}},
            "inputs": {"messages": CHAT[:3], "model": "gpt-4o", "tools": TOOLS},
            "outputs": {"id": "chatcmpl", "object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER, "refusal": None}}], "usage_metadata": {}},
        },
        "langsmith", WHOLE,
    ),
    "LangSmith run of a chain": Shape({"id": "r", "name": "chain", "run_type": "chain", "inputs": {"question": QUESTION}, "outputs": {"answer": ANSWER}, "parent_run_id": None}, None),
    "OpenAI Agents items": Shape(
        [
            {"content": QUESTION, "role": "user"},
            {"arguments": TEXT, "call_id": "call_1", "name": "weather", "type": "function_call", "id": "fc_1", "status": "completed"},
            {"call_id": "call_1", "output": RESULT, "type": "function_call_output"},
            {"id": "msg_1", "content": [{"annotations": [], "text": ANSWER, "type": "output_text", "logprobs": []}], "role": "assistant", "status": "completed", "type": "message"},
        ],
        "openai-agents", WHOLE,
    ),
    "pydantic-ai": Shape(
        [
            {"parts": [{"content": "Be brief.", "timestamp": "t", "dynamic_ref": None, "part_kind": "system-prompt"}, {"content": [QUESTION, {"kind": "cache-point", "ttl": "5m"}], "timestamp": "t", "part_kind": "user-prompt"}], "instructions": None, "kind": "request", "run_id": "r", "metadata": None},
            {"parts": [{"tool_name": "weather", "args": ARGUMENTS, "tool_call_id": "call_1", "id": None, "provider_details": None, "part_kind": "tool-call"}], "usage": {"input_tokens": 1, "details": {}}, "model_name": "m", "timestamp": "t", "kind": "response", "provider_name": "openai", "finish_reason": "tool_call"},
            {"parts": [{"tool_name": "weather", "content": RESULT, "tool_call_id": "call_1", "metadata": None, "timestamp": "t", "part_kind": "tool-return"}], "instructions": None, "kind": "request"},
            {"parts": [{"content": ANSWER, "id": None, "part_kind": "text"}], "usage": {}, "model_name": "m", "timestamp": "t", "kind": "response"},
        ],
        "pydantic-ai", WHOLE,
    ),
    "UIMessage v4 with parts": Shape(
        [
            {"id": "1", "createdAt": "t", "role": "user", "content": QUESTION, "parts": [{"type": "text", "text": QUESTION}]},
            {
                "id": "2", "createdAt": "t", "role": "assistant", "content": ANSWER, "revisionId": "r",
                "parts": [
                    {"type": "step-start"},
                    {"type": "tool-invocation", "toolInvocation": {"state": "result", "step": 0, "toolCallId": "call_1", "toolName": "weather", "args": ARGUMENTS, "result": RESULT}},
                    {"type": "step-start"},
                    {"type": "text", "text": ANSWER},
                ],
                "toolInvocations": [{"state": "result", "step": 0, "toolCallId": "call_1", "toolName": "weather", "args": ARGUMENTS, "result": RESULT}],
            },
        ],
        "vercel-ui", WHOLE,
    ),
    "UIMessage v4 without parts": Shape(
        [
            {"id": "1", "role": "user", "content": QUESTION},
            {"id": "2", "role": "assistant", "content": "", "toolInvocations": [{"state": "result", "toolCallId": "call_1", "toolName": "weather", "args": ARGUMENTS, "result": RESULT}]},
            {"id": "3", "role": "assistant", "content": ANSWER},
        ],
        "vercel-ui", WHOLE,
    ),
    "UIMessage v5": Shape(
        {
            "id": "chat", "messages": [
                {"id": "1", "role": "user", "metadata": {"createdAt": 1}, "parts": [{"type": "text", "text": QUESTION}]},
                {"id": "2", "role": "assistant", "parts": [
                    {"type": "step-start"}, {"type": "reasoning", "text": "", "state": "done", "providerMetadata": {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": None}}},
                    {"type": "tool-weather", "toolCallId": "call_1", "state": "output-available", "input": ARGUMENTS, "output": RESULT, "callProviderMetadata": {"openai": {"itemId": "fc_1"}}},
                    {"type": "step-start"}, {"type": "text", "text": ANSWER, "state": "done"}, {"type": "data-usage", "data": {"tokens": 1}},
                ]},
            ],
        },
        "vercel-ui", WHOLE,
    ),
    "ModelMessage": Shape(
        [
            {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
            {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "call_1", "toolName": "weather", "input": ARGUMENTS}]},
            {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "call_1", "toolName": "weather", "output": {"type": "text", "value": RESULT}}]},
            {"role": "assistant", "content": ANSWER},
        ],
        "vercel-ui", WHOLE,
    ),
    "ModelMessage v6 with an approval": Shape(
        [
            {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
            {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "call_1", "toolName": "weather", "input": ARGUMENTS}, {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "call_1"}]},
            {"role": "tool", "content": [{"type": "tool-approval-response", "approvalId": "a", "approved": True}, {"type": "tool-result", "toolCallId": "call_1", "toolName": "weather", "output": {"type": "text", "value": RESULT}}]},
            {"role": "assistant", "content": ANSWER},
        ],
        "vercel-ui", WHOLE,
    ),
    "CoreMessage v4": Shape(
        [
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "call_1", "toolName": "weather", "args": ARGUMENTS}]},
            {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "call_1", "toolName": "weather", "result": RESULT}]},
            {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
        ],
        "vercel-ui", WHOLE,
    ),
    "llm logs --json": Shape(
        {"id": "01k", "model": "gpt-4o", "resolved_model": None, "prompt": QUESTION, "system": None, "prompt_json": None, "options_json": {}, "response": ANSWER, "response_json": None, "conversation_id": "c", "duration_ms": 1, "datetime_utc": "t", "input_tokens": 1, "output_tokens": 1, "token_details": None, "conversation_name": "n", "conversation_model": "gpt-4o", "schema_json": None, "prompt_fragments": [], "system_fragments": [], "tools": [], "tool_calls": [], "tool_results": [], "attachments": []},
        None,
    ),
}  # fmt: skip
OTEL_INPUT = [
    {"role": "user", "parts": [{"type": "text", "content": QUESTION}]},
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "call_1", "name": "weather", "arguments": ARGUMENTS}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": RESULT}]},
]
OTEL_OUTPUT = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}], "finish_reason": "stop"}]
FLAT = {
    "gen_ai.system": "openai", "gen_ai.request.model": "gpt-4o", "llm.request.type": "chat",
    "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": QUESTION,
    "gen_ai.prompt.1.role": "assistant", "gen_ai.prompt.1.tool_calls.0.id": "call_1", "gen_ai.prompt.1.tool_calls.0.name": "weather", "gen_ai.prompt.1.tool_calls.0.arguments": TEXT,
    "gen_ai.prompt.2.role": "tool", "gen_ai.prompt.2.content": RESULT, "gen_ai.prompt.2.tool_call_id": "call_1",
    "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": ANSWER, "gen_ai.completion.0.finish_reason": "stop",
    "llm.request.functions.0.name": "weather", "llm.request.functions.0.description": "d", "llm.request.functions.0.parameters": json.dumps(FUNCTION["parameters"]),
}  # fmt: skip
INFERENCE = {
    "openinference.span.kind": "LLM", "llm.model_name": "gpt-4o",
    "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": QUESTION,
    "llm.input_messages.1.message.role": "assistant", "llm.input_messages.1.message.tool_calls.0.tool_call.id": "call_1",
    "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "weather", "llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments": TEXT,
    "llm.input_messages.2.message.role": "tool", "llm.input_messages.2.message.content": RESULT, "llm.input_messages.2.message.tool_call_id": "call_1",
    "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": ANSWER,
}  # fmt: skip
TRACES: dict[str, Shape] = {
    "OpenTelemetry span": Shape(
        {"name": "chat gpt-4o", "context": {"trace_id": "t"}, "kind": "SpanKind.CLIENT", "attributes": {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o", "gen_ai.input.messages": json.dumps(OTEL_INPUT), "gen_ai.output.messages": json.dumps(OTEL_OUTPUT), "gen_ai.tool.definitions": json.dumps(TOOLS)}, "events": []},
        "opentelemetry", WHOLE,
    ),
    "OpenTelemetry span as OTLP": Shape(
        {"traceId": "t", "spanId": "s", "name": "chat", "attributes": [{"key": "gen_ai.request.model", "value": {"stringValue": "gpt-4o"}}, {"key": "gen_ai.input.messages", "value": {"stringValue": json.dumps(OTEL_INPUT)}}, {"key": "gen_ai.output.messages", "value": {"stringValue": json.dumps(OTEL_OUTPUT)}}]},
        "opentelemetry", WHOLE,
    ),
    "OpenTelemetry event of an operation": Shape(
        {"name": "gen_ai.client.inference.operation.details", "attributes": {"gen_ai.input.messages": OTEL_INPUT, "gen_ai.output.messages": OTEL_OUTPUT}},
        "opentelemetry", WHOLE,
    ),
    "OpenTelemetry span of 2026": Shape(
        {"name": "chat gpt-5", "attributes": {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.input.messages": json.dumps([OTEL_INPUT[0], {"role": "assistant", "parts": [{"type": "server_tool_call", "id": "s", "name": "search", "server_tool_call": {"type": "web_search", "query": "x"}}, {"type": "server_tool_call_response", "id": "s", "server_tool_call_response": {"type": "web_search", "results": []}}, *OTEL_INPUT[1]["parts"]]}, OTEL_INPUT[2], {"role": "user", "parts": [{"type": "file", "modality": "image", "file_id": "f"}, {"type": "compaction", "content": "Before."}]}]), "gen_ai.output.messages": json.dumps(OTEL_OUTPUT)}},
        "opentelemetry", WHOLE,
    ),
    "OpenTelemetry event of a message": Shape({"event_name": "gen_ai.user.message", "attributes": {"gen_ai.system": "openai"}, "body": {"content": QUESTION}, "trace_id": "t"}, None),
    "OpenTelemetry choice": Shape({"event_name": "gen_ai.choice", "body": {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}, "trace_id": "t"}, None),
    "OpenLLMetry span": Shape({"name": "openai.chat", "attributes": FLAT}, "opentelemetry", WHOLE),
    "OpenInference span": Shape({"name": "ChatCompletion", "attributes": INFERENCE}, "opentelemetry", WHOLE),
    "Phoenix span": Shape(
        {"name": "ChatCompletion", "context": {"trace_id": "t", "span_id": "s"}, "parent_id": None, "start_time": "t", "status_code": "OK", "events": [], "attributes": {"openinference": {"span": {"kind": "LLM"}}, "llm": {"model_name": "gpt-4o", "invocation_parameters": "{}", "tools": [{"tool": {"json_schema": json.dumps(TOOLS[0])}}], "input_messages": [
            {"message": {"role": "user", "content": QUESTION}},
            {"message": {"role": "assistant", "tool_calls": [{"tool_call": {"id": "call_1", "function": {"name": "weather", "arguments": TEXT}}}]}},
            {"message": {"role": "tool", "content": RESULT, "tool_call_id": "call_1"}},
        ], "output_messages": [{"message": {"role": "assistant", "content": ANSWER}}]}}},
        "opentelemetry", WHOLE,
    ),
    "Phoenix row": Shape(
        {"name": "ChatCompletion", "span_kind": "LLM", "parent_id": None, "context.span_id": "s", "attributes.llm.model_name": "gpt-4o", "attributes.openinference.span.kind": "LLM", "attributes.llm.tools": [{"tool.json_schema": json.dumps(TOOLS[0])}], "attributes.llm.input_messages": [
            {"message.role": "user", "message.content": QUESTION},
            {"message.role": "assistant", "message.tool_calls": [{"tool_call.id": "call_1", "tool_call.function.name": "weather", "tool_call.function.arguments": TEXT}]},
            {"message.role": "tool", "message.content": RESULT, "message.tool_call_id": "call_1"},
        ], "attributes.llm.output_messages": [{"message.role": "assistant", "message.content": ANSWER}]},
        "opentelemetry", WHOLE,
    ),
    "Inspect log": Shape({"version": 2, "status": "success", "eval": {"task": "t"}, "samples": [{"id": 1, "messages": []}]}, None),
    "Langfuse trace": Shape({"id": "t", "name": "n", "input": None, "output": None, "observations": [{"id": "o", "type": "GENERATION"}]}, None),
    "MLflow trace": Shape({"info": {"trace_id": "t"}, "data": {"spans": [{"span_id": "s", "attributes": {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanInputs": "{}"}}]}}, None),
    "MLflow span": Shape({"span_id": "s", "name": "Completions", "attributes": {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanInputs": "{}"}}, None),
    "Langfuse generation": Shape(
        {"id": "o", "traceId": "t", "type": "GENERATION", "name": "chat", "startTime": "t", "endTime": "t", "model": "gpt-4o", "modelParameters": {"temperature": 0.2}, "input": CHAT[:3], "output": {"role": "assistant", "content": ANSWER}, "usageDetails": {"input": 1}, "level": "DEFAULT", "statusMessage": None, "parentObservationId": None, "metadata": {}},
        "langfuse", WHOLE,
    ),
    "Langfuse generation with tools": Shape(
        {"id": "o", "traceId": "t", "type": "GENERATION", "name": "chat", "startTime": "t", "model": "gpt-4o", "modelParameters": {}, "input": {"messages": CHAT[:3], "tools": TOOLS}, "output": {"role": "assistant", "content": ANSWER}, "usage": {"input": 1}, "level": "DEFAULT"},
        "langfuse", WHOLE,
    ),
    "Langfuse generation of a table": Shape(
        {"id": "o", "traceId": "t", "type": "GENERATION", "name": "chat", "startTime": "t", "model": "gpt-4o", "input": json.dumps(CHAT[:3]), "output": json.dumps({"role": "assistant", "content": ANSWER}), "level": "DEFAULT"},
        "langfuse", WHOLE,
    ),
    "Langfuse generation of Anthropic's client": Shape(
        {"id": "o", "traceId": "t", "type": "GENERATION", "name": "chat", "startTime": "t", "model": "claude", "input": {"system": [{"type": "text", "text": "Be brief."}], "messages": [
            {"role": "user", "content": [{"type": "text", "text": QUESTION}, {"type": "image", "source": {"type": "url", "url": "https://host/map.png"}}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, {"type": "tool_use", "id": "call_1", "name": "weather", "input": ARGUMENTS}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": RESULT}]}]},
        ], "tools": [{"name": "weather", "input_schema": FUNCTION["parameters"]}]}, "output": {"id": "msg", "type": "message", "role": "assistant", "content": [{"type": "text", "text": ANSWER}]}, "level": "DEFAULT"},
        "langfuse", WHOLE,
    ),
    "Langfuse span": Shape({"id": "o", "traceId": "t", "type": "SPAN", "name": "step", "startTime": "t", "input": {"question": QUESTION}, "output": ANSWER, "level": "DEFAULT"}, None),
}  # fmt: skip


def _claude(kind: str, uuid: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {
            "id": more.pop("answer"),
            "type": "message",
            "model": "claude-x",
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    line = {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/p",
        "sessionId": "s",
        "version": "2.1",
        "gitBranch": "main",
        "type": kind,
    }
    return line | {"message": message, "uuid": uuid, "timestamp": "t"} | more


CLAUDE_TEXT = [{"type": "text", "text": ANSWER}]
CLAUDE_USE = {"type": "tool_use", "id": "call_1", "name": "weather", "input": ARGUMENTS}
CLAUDE_RESULT = {"tool_use_id": "call_1", "type": "tool_result", "content": RESULT, "is_error": False}
SIGNED = {"type": "thinking", "thinking": "", "signature": "c2ln"}
CLAUDE_CODE = [
    {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {"messageId": "u1", "trackedFileBackups": {}, "timestamp": "t"}, "isSnapshotUpdate": False},
    _claude("user", "u0", None, "Earlier."),
    _claude("assistant", "a0", "u0", [{"type": "text", "text": "Earlier answer."}], answer="m0"),
    {"parentUuid": None, "logicalParentUuid": "a0", "isSidechain": False, "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "isMeta": False, "uuid": "b", "timestamp": "t", "level": "info", "compactMetadata": {"trigger": "auto", "preTokens": 9}},
    _claude("user", "u1", "b", QUESTION, isCompactSummary=True, isVisibleInTranscriptOnly=True),
    {"parentUuid": "u1", "isSidechain": False, "attachment": {"type": "skill_listing", "content": "…"}, "type": "attachment", "uuid": "t1", "timestamp": "t", "sessionId": "s"},
    _claude("assistant", "x1", "t1", [{"type": "text", "text": "An abandoned answer."}], answer="mx"),
    _claude("user", "s1", None, "sub-agent", isSidechain=True, agentId="g"),
    _claude("assistant", "s2", "s1", CLAUDE_TEXT, answer="ms", isSidechain=True, agentId="g"),
    _claude("assistant", "a1", "t1", [SIGNED], answer="m1", requestId="req"),
    {"parentUuid": "a1", "isSidechain": False, "type": "progress", "data": {"type": "hook_progress"}, "uuid": "p1", "timestamp": "t"},
    _claude("assistant", "a2", "p1", [CLAUDE_USE], answer="m1", requestId="req"),
    _claude("user", "r1", "a2", [CLAUDE_RESULT], toolUseResult={"stdout": RESULT, "stderr": "", "interrupted": False, "isImage": False}, sourceToolAssistantUUID="a2"),
    _claude("assistant", "a3", "r1", CLAUDE_TEXT, answer="m2"),
    {"type": "system", "subtype": "turn_duration", "parentUuid": "a3", "uuid": "d", "isSidechain": False, "isMeta": False, "durationMs": 1, "timestamp": "t"},
    {"type": "last-prompt", "lastPrompt": QUESTION, "sessionId": "s"},
    {"type": "summary", "summary": "Weather", "leafUuid": "a3"},
]  # fmt: skip
CODEX_ITEMS: list[dict[str, Any]] = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
    {"type": "function_call", "id": "fc_1", "name": "weather", "arguments": TEXT, "call_id": "call_1"},
    {"type": "function_call_output", "call_id": "call_1", "output": RESULT},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]},
]
CODEX_TURN = [{"timestamp": "t", "type": "response_item", "payload": item} for item in CODEX_ITEMS]
GEMINI_CONTENTS = [
    {"role": "user", "parts": [{"text": QUESTION}]},
    {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": ARGUMENTS}, "thoughtSignature": "c2ln"}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"output": RESULT}}}]},
    {"role": "model", "parts": [{"text": ANSWER}]},
]
SESSIONS: dict[str, Shape] = {
    "Claude Code": Shape(CLAUDE_CODE, "claude-code", WHOLE),
    "Codex": Shape(
        [
            {"timestamp": "t", "type": "session_meta", "payload": {"id": "s", "timestamp": "t", "cwd": "/p", "originator": "codex_cli_rs", "cli_version": "0.9", "instructions": None, "git": {}}},
            {"timestamp": "t", "type": "turn_context", "payload": {"cwd": "/p", "approval_policy": "never", "model": "gpt-x", "effort": "high", "summary": "auto"}},
            {"timestamp": "t", "type": "event_msg", "payload": {"type": "task_started", "model_context_window": 9}},
            {"timestamp": "t", "type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Never mind this."}]}},
            {"timestamp": "t", "type": "response_item", "payload": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Fine."}]}},
            {"timestamp": "t", "type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}},
            *CODEX_TURN[:1], {"timestamp": "t", "type": "event_msg", "payload": {"type": "user_message", "message": QUESTION, "images": []}}, *CODEX_TURN[1:],
            {"timestamp": "t", "type": "event_msg", "payload": {"type": "token_count", "info": None}},
        ],
        "codex", WHOLE,
    ),
    "Codex before 0.32": Shape(
        [{"id": "s", "timestamp": "t", "instructions": "Be brief.", "git": {"branch": "main"}}, {"record_type": "state"}, *CODEX_ITEMS[:3], {"record_type": "state"},
         {"type": "function_call_output", "call_id": "call_1", "output": json.dumps({"output": RESULT, "metadata": {"exit_code": 0, "duration_seconds": 0.1}})}, *CODEX_ITEMS[4:]],
        "codex", (*WHOLE[:2], ("result", json.dumps({"output": RESULT, "metadata": {"exit_code": 0, "duration_seconds": 0.1}})), WHOLE[3]),
    ),
    "Gemini CLI checkpoint": Shape(GEMINI_CONTENTS, "gemini-cli", WHOLE),
    "Gemini CLI checkpoint with its login": Shape({"history": GEMINI_CONTENTS, "authType": "oauth-personal"}, "gemini-cli", WHOLE),
    "Gemini CLI prompts": Shape([{"sessionId": "s", "messageId": 0, "type": "user", "message": QUESTION, "timestamp": "t"}], None),
}  # fmt: skip


def _node(key: str, parent: str | None, role: str, content: Any, **more: Any) -> dict[str, Any]:
    name = more.pop("name", None)
    message = {
        "id": key,
        "author": {"role": role, "name": name, "metadata": {}},
        "create_time": 1.0,
        "status": "finished_successfully",
        "end_turn": None,
        "weight": 1.0,
        "metadata": {},
        "recipient": "all",
        "channel": None,
        "content": content,
    }
    return {"id": key, "parent": parent, "children": [], "message": message | more}


def _content(*parts: Any) -> dict[str, Any]:
    return {"content_type": "text", "parts": list(parts)}


EXPORTS: dict[str, Shape] = {
    "ChatGPT conversation": Shape(
        {
            "title": "Weather", "create_time": 1.0, "update_time": 2.0, "moderation_results": [], "plugin_ids": None, "conversation_id": "c", "id": "c", "default_model_slug": "gpt-4o", "current_node": "g", "is_archived": False,
            "mapping": {
                "r": {"id": "r", "message": None, "parent": None, "children": ["a"]},
                "a": _node("a", "r", "system", _content(""), metadata={"is_visually_hidden_from_conversation": True}),
                "b": _node("b", "a", "user", {"content_type": "user_editable_context", "user_profile": "…", "user_instructions": "…"}, metadata={"is_visually_hidden_from_conversation": True}),
                "c": _node("c", "b", "user", _content(QUESTION)),
                "d": _node("d", "c", "assistant", {"content_type": "thoughts", "thoughts": [{"summary": "Look", "content": "I look it up.", "chunks": [], "finished": True}], "source_analysis_msg_id": "x"}),
                "e": _node("e", "d", "assistant", {"content_type": "code", "language": "json", "response_format_name": None, "text": TEXT}, recipient="weather"),
                "f": _node("f", "e", "tool", {"content_type": "execution_output", "text": RESULT}, name="weather"),
                "x": _node("x", "c", "assistant", _content("Another answer.")),
                "y": _node("y", "f", "assistant", {"content_type": "reasoning_recap", "content": "Thought for 5s"}),
                "g": _node("g", "y", "assistant", _content(ANSWER), metadata={"model_slug": "gpt-4o"}),
            },
        },
        "chatgpt-export", WHOLE,
    ),
    "Claude conversation": Shape(
        {
            "uuid": "c", "name": "Weather", "summary": "", "created_at": "t", "updated_at": "t", "account": {"uuid": "u"},
            "chat_messages": [
                {"uuid": "1", "text": QUESTION, "content": [{"start_timestamp": "t", "stop_timestamp": "t", "flags": None, "type": "text", "text": QUESTION, "citations": []}], "sender": "human", "created_at": "t", "updated_at": "t", "attachments": [], "files": [], "parent_message_uuid": "00000000-0000-4000-8000-000000000000"},
                {"uuid": "2", "text": "", "content": [{"type": "text", "text": "An abandoned answer."}], "sender": "assistant", "attachments": [], "files": [], "parent_message_uuid": "1"},
                {
                    "uuid": "3", "text": "…", "sender": "assistant", "created_at": "t", "attachments": [], "files": [], "parent_message_uuid": "1",
                    "content": [
                        {"type": "thinking", "thinking": "I look.", "summaries": [], "cut_off": False},
                        {"type": "tool_use", "id": None, "name": "weather", "input": ARGUMENTS, "message": None, "integration_name": None},
                        {"type": "tool_result", "tool_use_id": None, "name": "weather", "content": [{"type": "text", "text": RESULT, "uuid": "x"}], "is_error": False},
                        {"type": "token_budget", "remaining": None},
                        {"type": "text", "text": ANSWER, "citations": []},
                    ],
                },
            ],
        },
        "claude-export", WHOLE,
    ),
}  # fmt: skip


def _wrapped(value: Any) -> dict[str, Any]:
    return {"status": "success", "value": value}


_IDS = {"tool_name": "weather", "arguments": ARGUMENTS, "id": "call_1"}
_NO_META: dict[str, Any] = {"meta": {}, "name": None}
MESSAGES: dict[str, Shape] = {
    "Cline history": Shape(
        [
            {"role": "user", "content": [{"type": "text", "text": QUESTION}], "ts": 1},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "weather", "input": ARGUMENTS}], "ts": 2, "modelInfo": {"modelId": "m"}},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": RESULT}], "ts": 3},
            {"role": "assistant", "content": [{"type": "text", "text": ANSWER}], "ts": 4},
        ],
        "anthropic-message-list", WHOLE,
    ),
    "Strands messages": Shape(
        [
            {"role": "user", "content": [{"text": QUESTION}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "call_1", "name": "weather", "input": ARGUMENTS}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "call_1", "status": "success", "content": [{"text": RESULT}]}}]},
            {"role": "assistant", "content": [{"text": ANSWER}]},
        ],
        "bedrock-message-list", WHOLE,
    ),
    "Haystack": Shape(
        {
            "messages": [
                {"role": "user", "content": [{"text": QUESTION}], **_NO_META},
                {"role": "assistant", "content": [{"tool_call": _IDS}], "meta": {"model": "m"}, "name": None},
                {"role": "tool", "content": [{"tool_call_result": {"result": RESULT, "origin": _IDS, "error": False}}], **_NO_META},
                {"role": "assistant", "content": [{"text": ANSWER}], **_NO_META},
            ],
        },
        "haystack", WHOLE,
    ),
    "Haystack before 2.13": Shape(
        [
            {"_role": "user", "_content": [{"text": QUESTION}], "_meta": {}, "_name": None},
            {"_role": "assistant", "_content": [{"tool_call": _IDS}], "_meta": {}, "_name": None},
            {"_role": "tool", "_content": [{"tool_call_result": {"result": RESULT, "origin": _IDS, "error": False}}], "_meta": {}, "_name": None},
            {"_role": "assistant", "_content": [{"text": ANSWER}], "_meta": {}, "_name": None},
        ],
        "haystack", WHOLE,
    ),
    "LlamaIndex": Shape(
        [
            {"role": "user", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": QUESTION}]},
            {"role": "assistant", "additional_kwargs": {}, "blocks": [{"block_type": "tool_call", "tool_call_id": "call_1", "tool_name": "weather", "tool_kwargs": ARGUMENTS}]},
            {"role": "tool", "additional_kwargs": {"tool_call_id": "call_1"}, "blocks": [{"block_type": "text", "text": RESULT}]},
            {"role": "assistant", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": ANSWER}]},
        ],
        "llama-index", WHOLE,
    ),
    "LlamaIndex before 0.12": Shape(
        [
            {"role": "user", "content": QUESTION, "additional_kwargs": {}},
            {"role": "assistant", "content": None, "additional_kwargs": {"tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": TEXT}}]}},
            {"role": "tool", "content": RESULT, "additional_kwargs": {"name": "weather", "tool_call_id": "call_1"}},
            {"role": "assistant", "content": ANSWER, "additional_kwargs": {}},
        ],
        "llama-index", WHOLE,
    ),
    "AutoGen": Shape(
        {
            "messages": [
                {"source": "user", "models_usage": None, "metadata": {}, "content": QUESTION, "type": "TextMessage"},
                {"source": "helper", "models_usage": {"prompt_tokens": 1, "completion_tokens": 2}, "content": [{"id": "call_1", "arguments": TEXT, "name": "weather"}], "type": "ToolCallRequestEvent"},
                {"source": "helper", "models_usage": None, "content": [{"content": RESULT, "name": "weather", "call_id": "call_1", "is_error": False}], "type": "ToolCallExecutionEvent"},
                {"source": "helper", "models_usage": None, "content": ANSWER, "type": "TextMessage"},
            ],
            "stop_reason": None,
        },
        "autogen", WHOLE,
    ),
    "AutoGen context": Shape(
        [
            {"content": QUESTION, "source": "user", "type": "UserMessage"},
            {"content": [{"id": "call_1", "arguments": TEXT, "name": "weather"}], "thought": None, "source": "helper", "type": "AssistantMessage"},
            {"content": [{"content": RESULT, "name": "weather", "call_id": "call_1", "is_error": False}], "type": "FunctionExecutionResultMessage"},
            {"content": ANSWER, "source": "helper", "type": "AssistantMessage"},
        ],
        "autogen", WHOLE,
    ),
    "AutoGen agent state": Shape(
        {"type": "AssistantAgentState", "version": "1.0.0", "llm_context": {"messages": [
            {"content": QUESTION, "source": "user", "type": "UserMessage"},
            {"content": [{"id": "call_1", "arguments": TEXT, "name": "weather"}], "thought": None, "source": "helper", "type": "AssistantMessage"},
            {"content": [{"content": RESULT, "name": "weather", "call_id": "call_1", "is_error": False}], "type": "FunctionExecutionResultMessage"},
            {"content": ANSWER, "source": "helper", "type": "AssistantMessage"},
        ]}},
        "autogen", WHOLE,
    ),
    "AutoGen 0.2 messages": Shape(AUTOGEN_OLD, "autogen", AUTOGEN_TALK),
    "AutoGen 0.2 chat result": Shape(
        {"chat_id": 1, "chat_history": AUTOGEN_OLD, "summary": ANSWER, "cost": {}, "human_input": []},
        "autogen", AUTOGEN_TALK,
    ),
    "Agno run": Shape(
        {"run_id": "r", "model": "gpt-5", "content": ANSWER, "messages": [
            {"id": "1", "role": "user", "content": QUESTION, "from_history": False},
            {"id": "2", "role": "assistant", "tool_calls": CHAT[1]["tool_calls"]},
            {"id": "3", "role": "tool", "content": RESULT, "tool_call_id": "call_1", "tool_name": "weather", "tool_args": ARGUMENTS, "tool_call_error": False},
            {"id": "4", "role": "assistant", "content": ANSWER},
        ]},
        "openai-chat", WHOLE,
    ),
    "Agno session": Shape({"session_id": "s", "runs": []}, None),
    "state of an AutoGen team": Shape({"type": "TeamState", "agent_states": {}}, None),
    "state of a run of the OpenAI Agents SDK": Shape({"$schemaVersion": "1.21", "original_input": QUESTION}, None),
    "LangChain4j": Shape(
        [
            {"contents": [{"text": QUESTION, "type": "TEXT"}], "type": "USER"},
            {"toolExecutionRequests": [{"id": "call_1", "name": "weather", "arguments": TEXT}], "type": "AI"},
            {"id": "call_1", "toolName": "weather", "text": RESULT, "type": "TOOL_EXECUTION_RESULT"},
            {"text": ANSWER, "toolExecutionRequests": [], "type": "AI"},
        ],
        "langchain4j", WHOLE,
    ),
    "Microsoft.Extensions.AI": Shape(
        [
            {"role": "user", "contents": [{"$type": "text", "text": QUESTION}]},
            {"role": "assistant", "contents": [{"$type": "functionCall", "callId": "call_1", "name": "weather", "arguments": ARGUMENTS}], "messageId": "m"},
            {"role": "tool", "contents": [{"$type": "functionResult", "callId": "call_1", "result": RESULT}]},
            {"role": "assistant", "contents": [{"$type": "text", "text": ANSWER}]},
        ],
        "dotnet-ai", WHOLE,
    ),
    "Agent Framework": Shape(
        {
            "type": "agent_response",
            "messages": [
                {"type": "message", "role": {"type": "role", "value": "user"}, "contents": [{"type": "text", "text": QUESTION}]},
                {"type": "message", "role": "assistant", "contents": [{"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": TEXT}]},
                {"type": "message", "role": "tool", "contents": [{"type": "function_result", "call_id": "call_1", "result": RESULT}]},
                {"type": "message", "role": "assistant", "contents": [{"type": "text", "text": ANSWER}]},
            ],
        },
        "dotnet-ai", WHOLE,
    ),
    "Inspect sample": Shape(
        {
            "id": 1, "epoch": 1, "input": QUESTION, "target": "3", "scores": {}, "output": {"model": "m", "choices": []},
            "messages": [
                {"id": "a", "content": QUESTION, "source": "input", "role": "user"},
                {"id": "b", "content": "", "source": "generate", "role": "assistant", "tool_calls": [{"id": "call_1", "function": "weather", "arguments": ARGUMENTS, "type": "function"}]},
                {"id": "c", "content": RESULT, "role": "tool", "tool_call_id": "call_1", "function": "weather"},
                {"id": "d", "content": [{"type": "text", "text": ANSWER}], "role": "assistant", "model": "m"},
            ],
        },
        "inspect", WHOLE,
    ),
    "ATIF trajectory": Shape(
        {
            "schema_version": "ATIF-v1.4", "session_id": "s", "agent": {"name": "a", "version": "1", "model_name": "m"}, "final_metrics": {"total_steps": 3},
            "steps": [
                {"step_id": 1, "source": "user", "message": QUESTION},
                {"step_id": 2, "source": "agent", "message": "", "tool_calls": [{"tool_call_id": "call_1", "function_name": "weather", "arguments": ARGUMENTS}], "observation": {"results": [{"source_call_id": "call_1", "content": RESULT}]}},
                {"step_id": 3, "source": "agent", "message": ANSWER},
            ],
        },
        "atif", WHOLE,
    ),
    "ADK session": Shape(
        {"id": "s", "appName": "a", "userId": "u", "state": {}, "events": [{"id": str(index), "author": "a", "content": content, "actions": {}} for index, content in enumerate(GEMINI_CONTENTS)]},
        "adk", WHOLE,
    ),
    "Goose": Shape(
        {
            "id": "s", "working_dir": "/p",
            "conversation": [
                {"role": "user", "created": 1, "content": [{"type": "text", "text": QUESTION}]},
                {"role": "assistant", "created": 2, "content": [{"type": "toolRequest", "id": "call_1", "toolCall": _wrapped({"name": "weather", "arguments": ARGUMENTS})}]},
                {"role": "user", "created": 3, "content": [{"type": "toolResponse", "id": "call_1", "toolResult": _wrapped({"content": [{"type": "text", "text": RESULT}], "isError": False})}]},
                {"role": "assistant", "created": 4, "content": [{"type": "text", "text": ANSWER}]},
            ],
        },
        "goose", WHOLE,
    ),
    "opencode export": Shape(
        {
            "info": {"id": "s", "title": "Weather"},
            "messages": [
                {"info": {"id": "m1", "role": "user"}, "parts": [{"type": "text", "text": QUESTION}]},
                {
                    "info": {"id": "m2", "role": "assistant", "modelID": "m"},
                    "parts": [
                        {"type": "step-start"}, {"type": "tool", "callID": "call_1", "tool": "weather", "state": {"status": "completed", "input": ARGUMENTS, "output": RESULT}}, {"type": "step-finish"},
                        {"type": "step-start"}, {"type": "text", "text": ANSWER}, {"type": "step-finish"},
                    ],
                },
            ],
        },
        "opencode", WHOLE,
    ),
    "pi": Shape(
        [
            {"type": "session", "version": 3, "id": "s", "timestamp": "t", "cwd": "/p"},
            {"type": "message", "id": "1", "parentId": None, "message": {"role": "user", "content": QUESTION}},
            {"type": "message", "id": "x", "parentId": "1", "message": {"role": "assistant", "content": [{"type": "text", "text": "Taken back."}], "stopReason": "stop"}},
            {"type": "message", "id": "2", "parentId": "1", "message": {"role": "assistant", "content": [{"type": "toolCall", "id": "call_1", "name": "weather", "arguments": ARGUMENTS}], "model": "m", "stopReason": "toolUse"}},
            {"type": "message", "id": "3", "parentId": "2", "message": {"role": "toolResult", "toolCallId": "call_1", "toolName": "weather", "content": [{"type": "text", "text": RESULT}], "isError": False}},
            {"type": "model_change", "id": "4", "parentId": "3", "modelId": "n"},
            {"type": "message", "id": "5", "parentId": "4", "message": {"role": "assistant", "content": [{"type": "text", "text": ANSWER}], "stopReason": "stop"}},
        ],
        "pi", WHOLE,
    ),
    "Qwen Code": Shape(
        [
            {"uuid": str(index), "parentUuid": str(index - 1) if index else None, "sessionId": "s", "type": "user" if content["role"] == "user" else "assistant", "cwd": "/p", "model": "m", "message": content}
            for index, content in enumerate(GEMINI_CONTENTS)
        ],
        "qwen-code", WHOLE,
    ),
    "Claude Code printed": Shape(
        [
            {"type": "system", "subtype": "init", "session_id": "s", "tools": ["weather"], "model": "m"},
            {"type": "user", "message": {"role": "user", "content": QUESTION}, "parent_tool_use_id": None, "session_id": "s"},
            {"type": "assistant", "message": {"id": "m1", "type": "message", "role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "weather", "input": ARGUMENTS}]}, "parent_tool_use_id": None, "session_id": "s"},
            {"type": "assistant", "message": {"id": "m9", "role": "assistant", "content": [{"type": "text", "text": "Of a sub-agent."}]}, "parent_tool_use_id": "call_1", "session_id": "s"},
            {"type": "user", "message": {"role": "user", "content": [{"tool_use_id": "call_1", "type": "tool_result", "content": RESULT}]}, "parent_tool_use_id": None, "session_id": "s"},
            {"type": "assistant", "message": {"id": "m2", "role": "assistant", "content": [{"type": "text", "text": ANSWER}]}, "parent_tool_use_id": None, "session_id": "s"},
            {"type": "result", "subtype": "success", "result": ANSWER, "session_id": "s"},
        ],
        "claude-code", WHOLE,
    ),
    "ms-swift": Shape(
        {
            "tools": json.dumps(TOOLS),
            "messages": [
                {"role": "user", "content": QUESTION}, {"role": "tool_call", "content": json.dumps({"name": "weather", "arguments": ARGUMENTS})},
                {"role": "tool_response", "content": RESULT}, {"role": "assistant", "content": ANSWER},
            ],
        },
        "ms-swift", WHOLE,
    ),
    "Toucan": Shape(
        {
            "uuid": "u", "question": QUESTION,
            "messages": [
                {"role": "user", "content": QUESTION}, {"role": "tool_call", "content": str({"name": "weather", "arguments": TEXT})},
                {"role": "tool_response", "content": RESULT}, {"role": "assistant", "content": ANSWER},
            ],
        },
        "ms-swift", WHOLE,
    ),
    "Nemotron": Shape({"input": [{"role": "user", "content": QUESTION}], "output": ANSWER, "category": "chat", "system_prompt": ""}, "nemotron", TALK),
}  # fmt: skip

_KERNEL_META = {"metadata": {}, "ai_model_id": "gpt-x"}
_SMOL_TIMING = {"start_time": 1.0, "end_time": 2.0, "duration": 1.0}
_SMOL_PROMPT = {"role": "system", "content": [{"type": "text", "text": "Be brief."}], "tool_calls": None}
_WEBUI_CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "weather",
    "arguments": json.dumps(ARGUMENTS),
    "status": "completed",
}
_WEBUI_OUTPUT = {
    "type": "function_call_output",
    "id": "fco_1",
    "call_id": "call_1",
    "output": [{"type": "input_text", "text": RESULT}],
    "status": "completed",
}
_WEBUI_ANSWER = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": ANSWER}],
}
_WEBUI_MESSAGES: dict[str, Any] = {
    "a": {
        "id": "a",
        "parentId": None,
        "childrenIds": ["x", "b"],
        "role": "user",
        "content": QUESTION,
        "timestamp": 1,
        "models": ["gpt-x"],
    },
    "x": {
        "id": "x",
        "parentId": "a",
        "childrenIds": [],
        "role": "assistant",
        "content": "Another answer.",
        "model": "other",
        "modelName": "Other",
        "modelIdx": 0,
        "timestamp": 2,
        "done": True,
    },
    "b": {
        "id": "b",
        "parentId": "a",
        "childrenIds": [],
        "role": "assistant",
        "content": ANSWER,
        "model": "gpt-x",
        "modelName": "GPT",
        "modelIdx": 0,
        "timestamp": 3,
        "done": True,
        "usage": {"total_tokens": 9},
        "output": [_WEBUI_CALL, _WEBUI_OUTPUT, _WEBUI_ANSWER],
    },
}
_LIBRE = {
    "_id": "1",
    "__v": 0,
    "conversationId": "c",
    "createdAt": "t",
    "updatedAt": "t",
    "endpoint": "openAI",
    "error": False,
    "unfinished": False,
    "user": "u",
}
_LIBRE_QUESTION = {
    **_LIBRE,
    "messageId": "m1",
    "parentMessageId": "00000000-0000-0000-0000-000000000000",
    "sender": "User",
    "isCreatedByUser": True,
    "text": QUESTION,
    "model": None,
}
_LIBRE_ANSWER = {
    **_LIBRE, "messageId": "m2", "parentMessageId": "m1", "sender": "GPT", "isCreatedByUser": False, "text": "", "model": "gpt-x", "tokenCount": 9,
    "content": [
        {"type": "think", "think": "I look."},
        {"type": "tool_call", "tool_call": {"id": "call_1", "name": "weather", "type": "tool_call", "args": json.dumps(ARGUMENTS), "output": RESULT, "progress": 1}},
        {"type": "text", "text": {"value": ANSWER}},
    ],
}  # fmt: skip
_LIBRE_OTHER = {
    **_LIBRE,
    "messageId": "m0",
    "parentMessageId": "m1",
    "sender": "GPT",
    "isCreatedByUser": False,
    "text": "Another answer.",
    "model": "gpt-x",
}
_LIBRE_CHAT: dict[str, Any] = {
    "conversationId": "c",
    "endpoint": "openAI",
    "title": "Weather",
    "exportAt": "12:00",
    "branches": True,
    "recursive": False,
    "options": {"model": "gpt-x", "temperature": 1, "promptPrefix": "Be brief."},
}
_LETTA_NONE: dict[str, Any] = {
    "type": "message",
    "name": None,
    "otid": None,
    "agent_id": "agent-0",
    "tool_calls": None,
    "tool_call_id": None,
    "tool_returns": [],
    "created_at": "t",
    "approve": None,
}
_LETTA_MESSAGES = [
    {
        **_LETTA_NONE,
        "id": "message-0",
        "role": "system",
        "content": [{"type": "text", "text": "Be brief.", "signature": None}],
    },
    {**_LETTA_NONE, "id": "message-1", "role": "user", "content": [{"type": "text", "text": "Forgotten."}]},
    {**_LETTA_NONE, "id": "message-2", "role": "user", "content": [{"type": "text", "text": QUESTION}]},
    {
        **_LETTA_NONE,
        "id": "message-3",
        "role": "assistant",
        "model": "gpt-x",
        "content": [],
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": json.dumps(ARGUMENTS)}}
        ],
    },
    {
        **_LETTA_NONE,
        "id": "message-4",
        "role": "tool",
        "name": "weather",
        "tool_call_id": "call_1",
        "content": [{"type": "text", "text": RESULT}],
        "tool_returns": [
            {"tool_call_id": "call_1", "status": "success", "stdout": None, "stderr": None, "func_response": RESULT}
        ],
    },
    {
        **_LETTA_NONE,
        "id": "message-5",
        "role": "assistant",
        "model": "gpt-x",
        "content": [{"type": "text", "text": ANSWER}],
    },
]
_LETTA_TOOL = {
    "id": "tool-0",
    "name": "weather",
    "tool_type": "custom",
    "source_code": "def weather(): ...",
    "json_schema": FUNCTION,
}
APPLICATIONS: dict[str, Shape] = {
    "Semantic Kernel history": Shape(
        {
            "messages": [
                {**_KERNEL_META, "content_type": "message", "role": "user", "items": [{"metadata": {}, "content_type": "text", "text": QUESTION}]},
                {**_KERNEL_META, "content_type": "message", "role": "assistant", "finish_reason": "tool_calls", "items": [{"metadata": {}, "content_type": "function_call", "id": "call_1", "index": 0, "name": "weather", "function_name": "weather", "plugin_name": "", "arguments": json.dumps(ARGUMENTS)}]},
                {**_KERNEL_META, "content_type": "message", "role": "tool", "items": [{"metadata": {}, "content_type": "function_result", "id": "call_1", "result": RESULT, "name": "weather", "function_name": "weather", "plugin_name": ""}]},
                {**_KERNEL_META, "content_type": "message", "role": "assistant", "finish_reason": "stop", "items": [{"metadata": {}, "content_type": "text", "text": ANSWER}]},
            ]
        },
        "semantic-kernel", WHOLE,
    ),
    "Semantic Kernel in .NET": Shape(
        [
            {"Role": {"Label": "user"}, "Items": [{"$type": "TextContent", "Text": QUESTION}]},
            {"Role": {"Label": "assistant"}, "Items": [{"$type": "FunctionCallContent", "Id": "call_1", "PluginName": "", "FunctionName": "weather", "Arguments": ARGUMENTS}], "ModelId": "gpt-x", "Metadata": {"Id": "c"}},
            {"Role": {"Label": "tool"}, "Items": [{"$type": "TextContent", "Text": RESULT}, {"$type": "FunctionResultContent", "CallId": "call_1", "FunctionName": "weather", "Result": RESULT}]},
            {"Role": {"Label": "assistant"}, "Items": [{"$type": "TextContent", "Text": ANSWER, "ModelId": "gpt-x"}], "ModelId": "gpt-x"},
        ],
        "semantic-kernel", WHOLE,
    ),
    "smolagents full steps": Shape(
        [
            {"task": QUESTION, "task_images": None},
            {"step_number": 1, "timing": _SMOL_TIMING, "model_input_messages": [_SMOL_PROMPT], "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}], "error": None, "model_output_message": {"role": "assistant"}, "model_output": "", "code_action": None, "observations": RESULT, "observations_images": None, "action_output": RESULT, "token_usage": {"input_tokens": 1}, "is_final_answer": False},
            {"step_number": 2, "timing": _SMOL_TIMING, "model_input_messages": None, "tool_calls": [], "error": None, "model_output_message": None, "model_output": ANSWER, "code_action": None, "observations": None, "observations_images": None, "action_output": ANSWER, "token_usage": None, "is_final_answer": True},
        ],
        "smolagents", WHOLE,
    ),
    "smolagents steps with the prompt": Shape(
        [{"system_prompt": "Be brief."}, {"task": QUESTION}, {"step_number": 1, "tool_calls": [], "error": None, "model_output": ANSWER, "observations": None}],
        "smolagents", TALK,
    ),
    "smolagents memory": Shape(
        {
            "system_prompt": {"system_prompt": "Be brief."},
            "steps": [
                {"task": QUESTION},
                {"step_number": 1, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}], "error": {"type": "AgentToolExecutionError", "message": "3C"}, "model_output": "", "observations": None},
                {"step_number": 2, "tool_calls": [], "error": None, "model_output": ANSWER, "observations": None},
            ],
        },
        "smolagents", WHOLE,
    ),
    "Letta agent file": Shape(
        {"agents": [{"name": "a", "tool_ids": ["tool-0"], "system": "Be brief.", "agent_type": "letta_v1_agent", "id": "agent-0", "in_context_message_ids": ["message-0", "message-2", "message-3", "message-4", "message-5"], "messages": _LETTA_MESSAGES}], "groups": [], "blocks": [{"id": "block-0", "label": "human", "value": "…"}], "tools": [_LETTA_TOOL, {**_LETTA_TOOL, "id": "tool-1"}], "mcp_servers": []},
        "letta", WHOLE,
    ),
    "Letta agent file before 2025": Shape(
        {"agent_type": "memgpt_agent", "core_memory": [], "system": "Be brief.", "in_context_message_indices": [0, 2, 3, 4, 5], "messages": [{**message, "tool_returns": []} for message in _LETTA_MESSAGES], "tools": [_LETTA_TOOL], "version": "0.7"},
        "letta", WHOLE,
    ),
    "Open WebUI export": Shape(
        {"id": "c", "user_id": "u", "title": "Weather", "chat": {"id": "", "title": "Weather", "models": ["gpt-x"], "params": {"system": "Be brief."}, "history": {"messages": _WEBUI_MESSAGES, "currentId": "b"}, "messages": [], "tags": [], "files": []}, "updated_at": 2, "created_at": 1, "share_id": None, "archived": False, "pinned": False, "meta": {}, "folder_id": None},
        "open-webui", WHOLE,
    ),
    "Open WebUI chat": Shape(
        {"title": "Weather", "models": ["gpt-x"], "history": {"messages": {"a": _WEBUI_MESSAGES["a"], "b": {**_WEBUI_MESSAGES["b"], "output": None}}, "currentId": "b"}},
        "open-webui", TALK,
    ),
    "LibreChat export": Shape({**_LIBRE_CHAT, "messages": [_LIBRE_QUESTION, _LIBRE_OTHER, _LIBRE_ANSWER]}, "librechat", WHOLE),
    "LibreChat tree": Shape(
        {**_LIBRE_CHAT, "recursive": True, "messagesTree": [{**_LIBRE_QUESTION, "children": [{**_LIBRE_OTHER, "children": []}, {**_LIBRE_ANSWER, "children": []}]}]},
        "librechat", WHOLE,
    ),
}  # fmt: skip
SHAPES: dict[str, Shape] = {
    **HERMES,
    **TRAINING,
    **BENCHMARKS,
    **FRAMEWORKS,
    **TRACES,
    **SESSIONS,
    **EXPORTS,
    **MESSAGES,
    **APPLICATIONS,
}


def records_of(name: str) -> list[Any]:
    """Return every record of this format that the tests have: its story, and the shapes that are published."""
    story = [STORIES[name]] if name in STORIES else []
    return story + [shape.record for shape in SHAPES.values() if shape.format == name]
