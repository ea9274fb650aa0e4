"""Results of benchmarks: tau-bench, BFCL, ToolBench, SWE-agent and mini-swe-agent. Read-only.

BFCL entries are tasks: a question and functions, without an answer. Pseudo-tools that end a run (`Finish`) stay calls.
"""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.codecs.datasets.conversation import (
    Conversation,
    Dataset,
    Json,
    items,
    left_over,
    read_tools,
    refuse,
    text_of,
)
from dragoman.codecs.datasets.trl import add_message
from dragoman.ir import Request

TAU_BENCH, BFCL, TOOLBENCH, SWE_AGENT = "tau-bench", "bfcl", "toolbench", "swe-agent"


def is_tau_bench(data: Json) -> bool:
    """Return whether this is a task with its trajectory."""
    return isinstance(data, Mapping) and isinstance(data.get("traj"), list) and "task_id" in data


def read_tau_bench(data: Json) -> Request:
    """Read a trajectory. Tools are not in the file; other data about the task is kept with the conversation."""
    return _chat(TAU_BENCH, data, "traj")


def is_bfcl(data: Json) -> bool:
    """Return whether this is a question in turns, and functions with Python's types."""
    return (
        isinstance(data, Mapping) and isinstance(data.get("question"), list) and isinstance(data.get("function"), list)
    )


def read_bfcl(data: Json) -> Request:
    conversation = Conversation(BFCL)
    for number, turn in enumerate(data["question"]):
        for index, message in enumerate(items(turn, BFCL, f"$.question[{number}]")):
            add_message(conversation, message, f"$.question[{number}][{index}]")
    return conversation.finish(tools=read_tools(data["function"]), metadata=left_over(data, ("question", "function")))


def is_toolbench(data: Json) -> bool:
    """Return whether this is an answer file with the messages for training."""
    inner = data.get("answer_generation") if isinstance(data, Mapping) else None
    return isinstance(inner, Mapping) and isinstance(inner.get("train_messages"), list)


def read_toolbench(data: Json) -> Request:
    """Read the last of the prefixes, which is the longest; the search tree is left out."""
    inner = data["answer_generation"]
    if not inner["train_messages"]:
        raise refuse(TOOLBENCH, "$.answer_generation.train_messages", "at least one conversation", [])
    last = len(inner["train_messages"]) - 1
    place = f"$.answer_generation.train_messages[{last}]"
    conversation = Conversation(TOOLBENCH)
    for index, message in enumerate(items(inner["train_messages"][last], TOOLBENCH, place)):
        add_message(conversation, message, f"{place}[{index}]")
    return conversation.finish(tools=read_tools(inner.get("function")))


def is_swe_agent(data: Json) -> bool:
    """Return whether this is a trajectory with its history, or messages of mini-swe-agent."""
    if not isinstance(data, Mapping):
        return False
    if text_of(data.get("trajectory_format")).startswith("mini-swe-agent"):
        return True
    return isinstance(data.get("history"), list) and ("trajectory" in data or "environment" in data)


def read_swe_agent(data: Json) -> Request:
    """Read the history without demonstrations; `tool_call_ids` link results to calls; `exit` is not a message."""
    key = "messages" if "trajectory_format" in data else "history"
    conversation = Conversation(SWE_AGENT)
    for index, message in enumerate(items(data.get(key), SWE_AGENT, f"$.{key}")):
        if message.get("is_demo") is True or message.get("role") == "exit":
            continue
        ids = message.get("tool_call_ids")
        if message.get("role") == "tool" and isinstance(ids, list) and ids:
            message = {**message, "tool_call_id": ids[0]}  # noqa: PLW2901
        add_message(conversation, message, f"$.{key}[{index}]")
    return conversation.finish()


def _chat(name: str, data: Mapping[str, Json], key: str) -> Request:
    conversation = Conversation(name)
    for index, message in enumerate(items(data.get(key), name, f"$.{key}")):
        add_message(conversation, message, f"$.{key}[{index}]")
    return conversation.finish(metadata=left_over(data, (key,)))


TAU_BENCH_RUN = Dataset(TAU_BENCH, is_tau_bench, read_tau_bench, lacks="the tools")
BFCL_TASK = Dataset(BFCL, is_bfcl, read_bfcl)
TOOLBENCH_ANSWER = Dataset(TOOLBENCH, is_toolbench, read_toolbench)
SWE_AGENT_RUN = Dataset(SWE_AGENT, is_swe_agent, read_swe_agent, lacks="the tools")
