"""Results of benchmarks: tau-bench, BFCL, ToolBench, SWE-agent and mini-swe-agent. Read-only.

BFCL entries are tasks: a question and functions, without an answer. Pseudo-tools that end a run (`Finish`) stay calls.
"""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.codecs.datasets.conversation import (
    TOOL_KEYS,
    Conversation,
    Json,
    items,
    left_over,
    mappings,
    read_tools,
    refuse,
    text_of,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.known_keys import all_keys, also, keys
from dragoman.codecs.datasets.trl import MESSAGE_KEYS, add_message
from dragoman.ir import Request

TAU_BENCH, BFCL, TOOLBENCH, SWE_AGENT = "tau-bench", "bfcl", "toolbench", "swe-agent"


def is_tau_bench(data: Json) -> bool:
    """Return whether this is a task with its trajectory, or a simulation of tau2."""
    if not isinstance(data, dict) or "task_id" not in data:
        return False
    return isinstance(data.get("traj"), list) or ("reward_info" in data and bool(mappings(data.get("messages"))))


def read_tau_bench(data: Json) -> Request:
    """Read a trajectory. Tools are not in the file; other data about the task is kept with the conversation."""
    key = "traj" if "traj" in data else "messages"
    conversation = Conversation(TAU_BENCH)
    for index, message in enumerate(items(data.get(key), TAU_BENCH, f"$.{key}")):
        _add_tau_message(conversation, message, f"$.{key}[{index}]")
    return conversation.finish(metadata=left_over(data, (key,)))


def _add_tau_message(conversation: Conversation, message: Mapping[str, Json], place: str) -> None:
    role, given = message.get("role"), message
    if message.get("requestor") == "user" or (role == "user" and mappings(message.get("tool_calls"))):
        conversation.leave_out("calls of the simulated user", "the model does not see them")
        if role == "tool" or not message.get("content"):
            return
        given = {key: value for key, value in message.items() if key != "tool_calls"}
    elif role == "tool" and "requestor" in message:  # tau2: the id of a result is that of its call
        if message.get("error") is True:
            failed = conversation.result(message.get("content"), call_id=message.get("id"), is_error=True)
            conversation.add("tool", [(failed, place)], place)
            return
        given = {**message, "tool_call_id": message.get("id")}
    add_message(conversation, given, place)


def is_bfcl(data: Json) -> bool:
    """Return whether this is a question in turns, and functions with Python's types, or classes that have them."""
    if not isinstance(data, dict) or not isinstance(data.get("question"), list):
        return False
    return isinstance(data.get("function"), list) or isinstance(data.get("involved_classes"), list)


def read_bfcl(data: Json) -> Request:
    conversation = Conversation(BFCL)
    for number, turn in enumerate(data["question"]):
        for index, message in enumerate(items(turn, BFCL, f"$.question[{number}]")):
            add_message(conversation, message, f"$.question[{number}][{index}]")
    if "function" not in data:
        conversation.leave_out("the tools", "tasks of several turns name classes, whose functions are in other files")
    tools = read_tools(data.get("function"))
    return conversation.finish(tools=tools, metadata=left_over(data, ("question", "function")))


def is_toolbench(data: Json) -> bool:
    """Return whether this is an answer file with the messages for training."""
    inner = data.get("answer_generation") if isinstance(data, dict) else None
    return isinstance(inner, dict) and isinstance(inner.get("train_messages"), list)


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
    """Return whether this is a trajectory with its history, its messages in a table, or those of mini-swe-agent."""
    if not isinstance(data, dict):
        return False
    if text_of(data.get("trajectory_format")).startswith("mini-swe-agent"):
        return True
    if any("tool_call_ids" in message for message in mappings(data.get("messages"))):
        return True
    return isinstance(data.get("history"), list) and ("trajectory" in data or "environment" in data)


def read_swe_agent(data: Json) -> Request:
    """Read the history without demonstrations; `tool_call_ids` link results to calls; `exit` is not a message."""
    key = "history" if isinstance(data.get("history"), list) else "messages"
    conversation = Conversation(SWE_AGENT)
    for index, message in enumerate(items(data.get(key), SWE_AGENT, f"$.{key}")):
        if message.get("is_demo") is True or message.get("role") == "exit":
            continue
        ids = message.get("tool_call_ids")
        if message.get("role") == "tool" and isinstance(ids, list) and ids:
            message = {**message, "tool_call_id": ids[0]}  # noqa: PLW2901
        add_message(conversation, message, f"$.{key}[{index}]")
    more = left_over(data, ("messages", "model")) if key == "messages" and "trajectory_format" not in data else None
    return conversation.finish(model=data.get("model"), metadata=more)


_TAU_MESSAGE = also(MESSAGE_KEYS, "id requestor error")
_OF_TAU = all_keys(traj=_TAU_MESSAGE, messages=_TAU_MESSAGE)
_OF_BFCL = all_keys(question=MESSAGE_KEYS, function=TOOL_KEYS)
_OF_TOOLBENCH = keys(answer_generation=keys(function=TOOL_KEYS, train_messages=MESSAGE_KEYS))
_SWE_MESSAGE = also(MESSAGE_KEYS, "is_demo tool_call_ids")
_OF_SWE_AGENT = keys("trajectory_format model", history=_SWE_MESSAGE, messages=_SWE_MESSAGE)

TAU_BENCH_RUN = Dataset(TAU_BENCH, is_tau_bench, read_tau_bench, keys=_OF_TAU, lacks="the tools")
BFCL_TASK = Dataset(BFCL, is_bfcl, read_bfcl, keys=_OF_BFCL)
TOOLBENCH_ANSWER = Dataset(TOOLBENCH, is_toolbench, read_toolbench, keys=_OF_TOOLBENCH)
SWE_AGENT_RUN = Dataset(SWE_AGENT, is_swe_agent, read_swe_agent, keys=_OF_SWE_AGENT, lacks="the tools")
