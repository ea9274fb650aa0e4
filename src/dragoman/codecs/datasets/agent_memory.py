"""Memories of agents: histories of Semantic Kernel, steps of smolagents, agent files of Letta. Read-only."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from dragoman.codecs.datasets.conversation import (
    TOOL_KEYS,
    Conversation,
    Json,
    Piece,
    items,
    left_over,
    mappings,
    media,
    read_tools,
    refuse,
    text_of,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.frameworks import Line, add_turn, messages_of, read_blocks, read_thought, role_of
from dragoman.codecs.datasets.known_keys import Keys, all_keys, keys, kinds_of, messages_in
from dragoman.codecs.media import data_url
from dragoman.ir import AnyPart, Reasoning, Request, Text, ToolResult
from dragoman.ir.messages import Role

SEMANTIC_KERNEL, SMOLAGENTS, LETTA = "semantic-kernel", "smolagents", "letta"


# ── Semantic Kernel: the same fields in the spelling of Python and in two of .NET ──


@lru_cache(maxsize=64)
def _spellings(name: str) -> tuple[str, ...]:
    pascal = "".join(word.capitalize() for word in name.split("_"))
    return name, pascal, pascal[:1].lower() + pascal[1:]


def _field(line: Line, *names: str) -> Json:
    """Return the first of these fields that is there, in any spelling."""
    return next((line[key] for name in names for key in _spellings(name) if line.get(key) is not None), None)


def _kind_of(block: Line) -> str:
    """Return the kind of an item by its Python name: `FunctionCallContent` of .NET is `function_call`."""
    named = text_of(block.get("content_type")) or text_of(block.get("$type")).removesuffix("Content")
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in named).lstrip("_")


def is_semantic_kernel(data: Json) -> bool:
    """Return whether messages have items, each with the type of its content."""
    messages, _ = messages_of(data)
    blocks = [block for message in messages for block in mappings(_field(message, "items"))]
    return (
        bool(blocks)
        and all(isinstance(_field(message, "items"), list) and _field(message, "role") for message in messages)
        and all("content_type" in block or text_of(block.get("$type")).endswith("Content") for block in blocks)
    )


def read_semantic_kernel(data: Json) -> Request:
    messages, root = messages_of(data)
    conversation, model = Conversation(SEMANTIC_KERNEL), None
    for index, message in enumerate(messages):
        place = f"{root}[{index}]"
        role = role_of({"role": _label(_field(message, "role"))}, SEMANTIC_KERNEL, place)
        model = text_of(_field(message, "ai_model_id", "model_id")) or model
        key = next(key for key in _spellings("items") if key in message)
        pieces = read_blocks(conversation, message[key], f"{place}.{key}", _kernel_part)
        add_turn(conversation, role, _without_copies(role, pieces), place)
    return conversation.finish(model=model, metadata=left_over(data, ("messages",)) if isinstance(data, dict) else None)


def _label(role: Json) -> Json:
    return _field(role, "label") if isinstance(role, dict) else role


def _without_copies(role: Role, pieces: list[Piece]) -> list[Piece]:
    """Return the parts of a message without the texts that repeat its results, as older versions wrote them."""
    values = [part.value for part, _ in pieces if isinstance(part, ToolResult)] if role == "tool" else []
    return [(part, at) for part, at in pieces if not (isinstance(part, Text) and part.text in values)]


def _kernel_part(conversation: Conversation, block: Line) -> AnyPart | None:
    kind = _kind_of(block)
    if kind == "text":
        return Text(text_of(_field(block, "text")))
    if kind == "reasoning":
        return Reasoning(text_of(_field(block, "text")))
    if kind == "function_call":
        return conversation.call(_name_of(block), _field(block, "arguments"), _field(block, "call_id", "id"))
    if kind == "function_result":
        value, answered = _field(block, "result"), _field(block, "call_id", "id")
        return conversation.result(value, call_id=answered, name=_name_of(block))
    if kind in {"image", "audio", "binary"}:
        return _binary(block, kind)
    return None


def _name_of(block: Line) -> str:
    """Return the name that the model uses: that of the plugin before that of the function."""
    names = [text_of(_field(block, "plugin_name")), text_of(_field(block, "function_name"))]
    return text_of(_field(block, "name")) or "-".join(filter(None, names))


def _binary(block: Line, kind: str) -> AnyPart | None:
    mime = text_of(_field(block, "mime_type")) or (f"{kind}/*" if kind != "binary" else "application/octet-stream")
    data, address = text_of(_field(block, "data")), text_of(_field(block, "data_uri")) or text_of(_field(block, "uri"))
    return media(mime, data_url(mime, data) if data else address) if data or address else None


# ── smolagents: a step has an answer of the model, and the results of its calls ──


def _steps_of(data: Json) -> tuple[list[Line], str]:
    if isinstance(data, dict):
        return mappings(data.get("steps")), "$.steps"
    return mappings(data), "$"


def is_smolagents(data: Json) -> bool:
    """Return whether there is a step with a number and the output of a model."""
    return any("step_number" in step and "model_output" in step for step in _steps_of(data)[0])


def read_smolagents(data: Json) -> Request:
    """Read tasks, plans and actions. The prompt is in the messages that the first step sent."""
    steps, root = _steps_of(data)
    conversation = Conversation(SMOLAGENTS)
    for text, place in _prompts(data, steps, root):
        conversation.add("system", [(Text(text), place)], place)
    for index, step in enumerate(steps):
        place = f"{root}[{index}]"
        if text_of(step.get("task")):
            conversation.add("user", [(Text(step["task"]), f"{place}.task")], f"{place}.task")
            if step.get("task_images"):
                conversation.leave_out("images of tasks", "they are stored as pixels without a format")
        elif text_of(step.get("plan")):
            conversation.add("assistant", [(Text(step["plan"]), f"{place}.plan")], f"{place}.plan")
        else:
            _add_action(conversation, step, place)
    return conversation.finish(metadata=left_over(data, ("steps", "system_prompt")) if isinstance(data, dict) else None)


def _prompts(data: Json, steps: list[Line], root: str) -> list[tuple[str, str]]:
    given = data.get("system_prompt") if isinstance(data, dict) else None
    prompt = given.get("system_prompt") if isinstance(given, dict) else given
    if text := text_of(prompt):
        return [(text, "$.system_prompt")]
    if steps and (text := text_of(steps[0].get("system_prompt"))):
        return [(text, f"{root}[0].system_prompt")]
    for index, step in enumerate(steps):
        sent = mappings(step.get("model_input_messages"))
        if sent and sent[0].get("role") == "system":
            return [(_join_texts(sent[0].get("content")), f"{root}[{index}].model_input_messages[0]")]
    return []


def _join_texts(content: Json) -> str:
    return text_of(content) or "\n".join(text_of(block.get("text")) for block in mappings(content))


def _add_action(conversation: Conversation, step: Line, place: str) -> None:
    text = _join_texts(step.get("model_output"))
    pieces: list[Piece] = [(Text(text), f"{place}.model_output")] if text else []
    if step.get("model_input_messages"):
        conversation.leave_out("messages that each step sent", "they repeat the steps before it")
    ids = list[str]()
    for index, call in enumerate(mappings(step.get("tool_calls"))):
        function = call.get("function")
        inner: Line = function if isinstance(function, dict) else call
        made = conversation.call(inner.get("name"), inner.get("arguments"), call.get("id"))
        pieces.append((made, f"{place}.tool_calls[{index}]"))
        ids.append(made.id)
    conversation.add("assistant", pieces, place)
    error = step.get("error")
    failure = text_of(error.get("message")) if isinstance(error, dict) else ""
    seen = "\n".join(filter(None, (text_of(step.get("observations")), failure)))
    where = f"{place}.error.message" if failure and seen == failure else f"{place}.observations"
    if not ids:
        pieces = [(Text(seen), where)] if seen else []
        conversation.add("user", pieces, place)
    elif seen or isinstance(step.get("observations"), str):
        if len(ids) > 1:
            conversation.leave_out("which call each result answers", "the results of a step are one text")
        result = conversation.result(seen, call_id=ids[0], is_error=bool(failure))
        conversation.add("tool", [(result, where)], place)
    if step.get("observations_images"):
        conversation.leave_out("images of observations", "they are stored as pixels without a format")


# ── Letta: a file has agents, their messages, and the tools of all ──


def _agents_of(data: Json) -> tuple[list[Line], str]:
    """Return the agents of a file; files of the first version are one agent."""
    if isinstance(data, dict) and "in_context_message_indices" in data:
        return [data], "$"
    return mappings(data.get("agents")) if isinstance(data, dict) else [], "$.agents[0]"


def is_letta(data: Json) -> bool:
    """Return whether agents have messages, and a list of those that the model sees."""
    agents, _ = _agents_of(data)
    return bool(agents) and all(
        isinstance(agent.get("messages"), list)
        and ("in_context_message_ids" in agent or "in_context_message_indices" in agent)
        for agent in agents
    )


def read_letta(data: Json) -> Request:
    agents, root = _agents_of(data)
    if len(agents) != 1:
        raise refuse(LETTA, "$.agents", "one agent; several are several conversations", data.get("agents"))
    agent = agents[0]
    conversation = Conversation(LETTA)
    messages = items(agent["messages"], LETTA, f"{root}.messages")
    seen = _in_context(agent, messages)
    if len(seen) < len(messages):
        conversation.leave_out("messages out of context", "the model does not see them any more")
    model = agent.get("model")
    for index in seen:
        model = text_of(messages[index].get("model")) or model
        _add_letta(conversation, messages[index], f"{root}.messages[{index}]")
    tools = [tool.get("json_schema") for tool in mappings(data.get("tools")) if _has_tool(agent, tool)]
    return conversation.finish(model=model, tools=read_tools(tools))


def _has_tool(agent: Line, tool: Line) -> bool:
    ids = agent.get("tool_ids")
    return not isinstance(ids, list) or tool.get("id") in ids


def _in_context(agent: Line, messages: list[Line]) -> list[int]:
    """Return the positions of the messages that the model sees, in their order."""
    numbers = {text_of(message.get("id")): index for index, message in enumerate(messages)}
    ids, given = agent.get("in_context_message_ids"), agent.get("in_context_message_indices")
    if isinstance(ids, list):
        return [numbers[key] for key in ids if isinstance(key, str) and key in numbers]
    indices: Iterable[Json] = given if isinstance(given, list) else ()
    return [index for index in indices if isinstance(index, int) and 0 <= index < len(messages)]


def _add_letta(conversation: Conversation, message: Line, place: str) -> None:
    given = text_of(message.get("role"))
    role = "assistant" if given == "approval" else role_of(message, LETTA, place)
    pieces = read_blocks(conversation, message.get("content"), f"{place}.content", _letta_part)
    if role == "tool":
        pieces = _letta_results(conversation, message, pieces, place)
    for index, call in enumerate(mappings(message.get("tool_calls"))):
        function = call.get("function")
        inner: Line = function if isinstance(function, dict) else call
        made = conversation.call(inner.get("name"), inner.get("arguments"), call.get("id"))
        pieces.append((made, f"{place}.tool_calls[{index}]"))
    add_turn(conversation, role, pieces, place)


def _letta_results(conversation: Conversation, message: Line, pieces: list[Piece], place: str) -> list[Piece]:
    """Return the results of a message: one for each call, or its text."""
    texts = "\n".join(part.text for part, _ in pieces if isinstance(part, Text))
    found: list[Piece] = [piece for piece in pieces if not isinstance(piece[0], Text)]
    returns = mappings(message.get("tool_returns"))
    for index, one in enumerate(returns):
        value = one.get("func_response")
        failed = one.get("status") == "error"
        result = conversation.result(
            texts if value is None else value, call_id=one.get("tool_call_id"), is_error=failed
        )
        found.append((result, f"{place}.tool_returns[{index}]"))
    if returns or any(isinstance(part, ToolResult) for part, _ in found):
        return found
    result = conversation.result(texts, call_id=message.get("tool_call_id"), name=message.get("name"))
    return [*found, (result, place)]


def _letta_part(conversation: Conversation, block: Line) -> AnyPart | None:
    kind = text_of(block.get("type"))
    if kind == "text":
        return Text(text_of(block.get("text")))
    if kind == "reasoning":
        return read_thought(conversation, block.get("reasoning"), block.get("signature"))
    if kind == "tool_call":
        return conversation.call(block.get("name"), block.get("input"), block.get("id"))
    if kind == "tool_return":
        failed = block.get("is_error") is True
        return conversation.result(block.get("content"), call_id=block.get("tool_call_id"), is_error=failed)
    source = block.get("source")
    if kind == "image" and isinstance(source, dict):
        mime = text_of(source.get("media_type")) or "image/*"
        data = text_of(source.get("data"))
        return media(mime, data_url(mime, data) if data else source.get("url"))
    return None


# ── what is read of a record ──


def _all_spellings(names: str) -> str:
    return " ".join(spelling for name in names.split() for spelling in _spellings(name))


_KERNEL_ITEM = keys(
    _all_spellings("text name plugin_name function_name arguments result call_id id mime_type data data_uri uri")
    + " content_type $type"
)
_KERNEL_ROLE = keys(_all_spellings("label"))
_KERNEL_MESSAGE = keys(
    _all_spellings("ai_model_id model_id") + " content_type",
    items=_KERNEL_ITEM, Items=_KERNEL_ITEM, role=_KERNEL_ROLE, Role=_KERNEL_ROLE,
)  # fmt: skip
_SMOL_CALL = keys("type id name arguments", function=keys("name arguments"))
_SMOL_STEP = keys(
    "system_prompt step_number task task_images plan model_input_messages model_output observations "
    "observations_images",
    tool_calls=_SMOL_CALL,
    error=keys("message"),
)
_SMOL_KEYS = Keys(
    frozenset({"steps", "system_prompt"}),
    (("steps", _SMOL_STEP), ("system_prompt", keys("system_prompt"))),
    items=_SMOL_STEP,
)
_LETTA_BLOCK = kinds_of(
    "type",
    {
        "text": keys("text"),
        "reasoning": keys("reasoning signature"),
        "tool_call": keys("id name input"),
        "tool_return": keys("tool_call_id content is_error"),
        "image": keys(source=keys("type media_type data url")),
    },
    all_keys(),
)
_LETTA_MESSAGE = keys(
    "id role name model tool_call_id",
    content=_LETTA_BLOCK,
    tool_calls=_SMOL_CALL,
    tool_returns=keys("tool_call_id status func_response"),
)
_LETTA_AGENT = keys("in_context_message_ids in_context_message_indices tool_ids model", messages=_LETTA_MESSAGE)
_LETTA_KEYS = Keys(
    (_LETTA_AGENT.names or frozenset()) | {"agents", "tools"},
    (*_LETTA_AGENT.inner, ("agents", _LETTA_AGENT), ("tools", keys("id", json_schema=TOOL_KEYS))),
)

SEMANTIC_KERNEL_HISTORY = Dataset(
    SEMANTIC_KERNEL, is_semantic_kernel, read_semantic_kernel, keys=messages_in(_KERNEL_MESSAGE), lacks="the tools"
)
SMOLAGENTS_STEPS = Dataset(SMOLAGENTS, is_smolagents, read_smolagents, keys=_SMOL_KEYS, lacks="the tools")
LETTA_AGENT = Dataset(LETTA, is_letta, read_letta, keys=_LETTA_KEYS)
