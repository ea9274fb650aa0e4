"""Hermes function calling: turns with calls and results as tags in the text, and tools in the system text.

Turns have `from` and `value`, as in ShareGPT, or `role` and `content`, as trainers store what a chat template gave. The
system text is kept unchanged, with its tools, so that it is written back as it was; the tools are also parsed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dragoman.codecs.datasets.conversation import (
    TOOL_KEYS,
    UNSTORED_TOOLS,
    UNSTORED_WORDS,
    Conversation,
    Json,
    Piece,
    arguments_value,
    drop_part,
    items,
    join_tagged,
    left_over,
    own_keys,
    parse_literal,
    read_tools,
    refuse,
    report_settings,
    result_value,
    split_tagged,
    text_of,
    write_tools,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.known_keys import all_keys, keys, merge_keys
from dragoman.codecs.datasets.sharegpt import TURN_KEYS, turns_of
from dragoman.codecs.datasets.tagged_calls import ROLES, has_call_tags, read_call, tagged_column
from dragoman.codecs.reasoning_tags import between_tags
from dragoman.ir import Message, Reasoning, Refusal, Request, Text, ToolCall, ToolDefinition, ToolResult
from dragoman.ir.messages import Role
from dragoman.ir.values import compact_text, parse_json, to_raw
from dragoman.losses import LossLog

NAME = "hermes"


_MESSAGES = "~messages"
"""Note: the column of a record whose turns have `role` and `content`."""


_TOOLS = "~tools"
"""Note: the list of tools beside the turns, as it was."""


class _Turns(NamedTuple):
    """The turns of a record: their column, their keys for who speaks and for the text."""

    column: str
    speaker: str
    text: str
    turns: Json


def is_record(data: Json) -> bool:
    """Return whether these are turns, some of which hold tags of calls or results."""
    turns = turns_of(data)
    if turns is None:
        return isinstance(data, dict) and tagged_column(data) is not None
    return any(has_call_tags(text_of(turn.get("value"))) for turn in turns)


def _turns(data: Json) -> _Turns:
    turns = turns_of(data)
    if turns is not None:
        return _Turns("conversations" if "conversations" in data else "items", "from", "value", turns)
    column = tagged_column(data) if isinstance(data, dict) else None
    if column is None:
        raise refuse(NAME, "$.conversations", "turns with `from` and `value`, or with `role` and `content`", data)
    return _Turns(column, "role", "content", data[column])


def read(data: Json) -> Request:
    column, speaker, key, turns = _turns(data)
    conversation, tools = Conversation(NAME), tuple[ToolDefinition, ...]()
    for index, turn in enumerate(items(turns, NAME, f"$.{column}")):
        place = f"$.{column}[{index}]"
        role, value = ROLES.get(text_of(turn.get(speaker))), text_of(turn.get(key))
        if role is None:
            raise refuse(NAME, f"{place}.{speaker}", " | ".join(ROLES), turn.get(speaker))
        if role == "system":
            tools = tools or _prose_tools(value)
        if role == "tool" or (role == "user" and "<tool_response>" in value):
            _add_results(conversation, role, turn, place, f"{place}.{key}")
        else:
            conversation.add(role, _pieces(conversation, role, value, f"{place}.{key}"), place)
    listed = read_tools(data.get("tools"))
    is_read = bool(listed) and tools in ((), listed)  # the list may repeat the tools of the prompt
    notes = {_TOOLS: to_raw(data["tools"])} if is_read else {}
    if speaker == "role":
        notes[_MESSAGES] = to_raw(column)
    known = (column, "tools") if is_read else (column,)
    return conversation.finish(tools=tools or listed, metadata={**left_over(data, known), **notes})


def _add_results(conversation: Conversation, role: Role, turn: Mapping[str, Json], place: str, where: str) -> None:
    """Add the results in a turn, and what the user says around them. A turn of a tool without tags is one result."""
    value = text_of(turn.get("value", turn.get("content")))
    results = list[Piece]()
    texts, last = list[str](), 0
    for tagged in between_tags(value, "<tool_response>", "</tool_response>"):
        texts.append(value[last : tagged.start].strip())
        results.append((_result(conversation, tagged.inner, turn), where))
        last = tagged.end
    texts.append(value[last:].strip())
    around = "\n".join(filter(None, texts))
    if role == "tool" and not results:
        results = [(_result(conversation, value, turn), where)]
    elif role == "tool" and around:
        conversation.leave_out("text around a result", "a result of this format stands between tags")
    conversation.add("tool", results, place)
    if role == "user" and around:
        conversation.add("user", [(Text(around), where)], place)


def _prose_tools(system: str) -> tuple[ToolDefinition, ...]:
    """Return the tools between tags, as a JSON list or as objects one after the other."""
    found = next(between_tags(system, "<tools>", "</tools>"), None)
    if found is None:
        return ()
    for text in (found.inner, f"[{','.join(found.inner.splitlines())}]"):
        parsed = parse_literal(text)
        if isinstance(parsed, list):
            return read_tools(parsed)
    return ()


def _result(conversation: Conversation, text: str, turn: Mapping[str, Json]) -> ToolResult:
    parsed, call_id, name = parse_literal(text), turn.get("tool_call_id"), turn.get("name")
    if isinstance(parsed, dict) and "content" in parsed and parsed.keys() <= {"name", "content", "tool_call_id"}:
        name, call_id = parsed.get("name") or name, parsed.get("tool_call_id") or call_id
        return conversation.result(parsed["content"], name=name, call_id=call_id)
    return conversation.result(text, name=name, call_id=call_id)


def _pieces(conversation: Conversation, role: Role, value: str, place: str) -> list[Piece]:
    if role != "assistant":
        return [(Text(value), place)]
    thought, text = split_tagged(NAME, value)
    pieces: list[Piece] = [(thought, place)] if thought else []
    last = 0
    for tagged in between_tags(text, "<tool_call>", "</tool_call>"):
        between = text[last : tagged.start].strip()
        if between:
            pieces.append((Text(between), place))
        call = _call(conversation, tagged.inner)
        pieces.append((Text(text[tagged.start : tagged.end]) if call is None else call, place))
        last = tagged.end
    rest = text[last:].strip() if last else text
    return [*pieces, (Text(rest), place)] if rest else pieces


def _call(conversation: Conversation, text: str) -> ToolCall | None:
    """Return the call in a text; None if there is none: then it stays text."""
    found = read_call(text)
    if found is None:
        return None
    for key in found.keys() - _CALL_KEYS:
        conversation.leave_out(f"{key} of a call", "a call of this format has a name and arguments")
    return conversation.call(found["name"], found.get("arguments", found.get("parameters")), found.get("id"))


_CALL_KEYS = frozenset({"name", "arguments", "parameters", "id", "type"})


_PROMPT = (
    "You may call functions. Their definitions are within <tools></tools>; a call is JSON with name and arguments "
    "within <tool_call></tool_call>.\n<tools>{}</tools>"
)


def write(request: Request, log: LossLog) -> Json:
    report_settings(request, log)
    turns: list[Json] = []
    tools = write_tools(request, log)
    for message in request.messages:
        if message.role == "tool":
            results = [_write_result(part, log) for part in message.parts if isinstance(part, ToolResult)]
            turns.append({"from": "tool", "value": "\n".join(results)})
        else:
            turns.append(_write_message(message, log))
    notes = (request.metadata or {}).get(NAME, {})
    own = own_keys(request, NAME)
    if tools and _TOOLS in notes:
        own["tools"] = notes[_TOOLS]
    if (
        tools
        and "tools" not in own
        and not any(turn["from"] == "system" and "<tools>" in turn["value"] for turn in turns)
    ):
        prompt = _PROMPT.format(compact_text(tools))
        if turns and turns[0]["from"] == "system":
            turns[0]["value"] = f"{turns[0]['value']}\n\n{prompt}"
        else:
            turns.insert(0, {"from": "system", "value": prompt})
    column = notes.get(_MESSAGES)
    if column is None:
        return {"conversations": turns, **own}
    messages = [{"role": _MESSAGEROLES.get(turn["from"], turn["from"]), "content": turn["value"]} for turn in turns]
    return {parse_json(to_raw(column)): messages, **own}


_MESSAGEROLES = {"human": "user", "gpt": "assistant"}


def _write_result(result: ToolResult, log: LossLog) -> str:
    if result.is_error:
        log.degrade(result, "kind", "that the tool failed", "results have no error flag in this format")
    body = compact_text({"name": result.name, "content": result_value(result, log)})
    return f"<tool_response>\n{body}\n</tool_response>"


def _write_message(message: Message, log: LossLog) -> Json:
    speaker = {"system": "system", "user": "human"}.get(message.role, "gpt")
    texts: list[str] = []
    thoughts: list[Reasoning] = []
    for part in message.parts:
        if isinstance(part, Text | Refusal):
            texts.append(part.text)
        elif isinstance(part, Reasoning):
            thoughts.append(part)
            if part.signature is not None:
                log.drop(part, "signature", "signature", "this format does not keep signatures")
        elif isinstance(part, ToolCall):
            body = compact_text({"name": part.name, "arguments": arguments_value(part, NAME)})
            texts.append(f"<tool_call>\n{body}\n</tool_call>")
        else:
            drop_part(part, log)
    return {"from": speaker, "value": join_tagged(thoughts, "\n".join(texts))}


_EITHER_KEYS = merge_keys(TURN_KEYS, keys("role content name tool_call_id"))
_KEYS = all_keys(
    conversations=_EITHER_KEYS, items=TURN_KEYS, messages=_EITHER_KEYS, conversation=_EITHER_KEYS, tools=TOOL_KEYS
)
DATASET = Dataset(NAME, is_record, read, write, keys=_KEYS, unstored={**UNSTORED_WORDS, **UNSTORED_TOOLS})
