"""Hermes function calling: ShareGPT turns with calls and results as tags in the text, and tools in the system text.

The system text is kept unchanged, with its tools, so that it is written back as it was; the tools are also parsed.
"""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.codecs.datasets.conversation import (
    UNSTORED_TOOLS,
    UNSTORED_WORDS,
    Conversation,
    Dataset,
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
from dragoman.codecs.datasets.known_keys import all_keys
from dragoman.codecs.datasets.sharegpt import TURN_KEYS, has_call_tags, turns_of
from dragoman.codecs.reasoning_tags import between_tags
from dragoman.ir import Message, Reasoning, Refusal, Request, Text, ToolCall, ToolDefinition, ToolResult
from dragoman.ir.values import compact_text
from dragoman.losses import LossLog

NAME = "hermes"
_ROLES = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "tool": "tool",
}


def is_record(data: Json) -> bool:
    """Return whether these are ShareGPT turns, some of which hold tags of calls or results."""
    turns = turns_of(data)
    return turns is not None and any(has_call_tags(text_of(turn.get("value"))) for turn in turns)


def read(data: Json) -> Request:
    turns = turns_of(data)
    if turns is None:
        raise refuse(NAME, "$.conversations", "turns with `from` and `value`", data)
    key = "conversations" if "conversations" in data else "items"
    conversation, tools = Conversation(NAME), list[ToolDefinition]()
    for index, turn in enumerate(items(turns, NAME, f"$.{key}")):
        place = f"$.{key}[{index}]"
        role, value = _ROLES.get(text_of(turn.get("from"))), text_of(turn.get("value"))
        if role is None:
            raise refuse(NAME, f"{place}.from", " | ".join(_ROLES), turn.get("from"))
        if role == "system":
            tools = tools or _prose_tools(value)
        answers = between_tags(value, "<tool_response>", "</tool_response>") if role in {"tool", "user"} else ()
        results = [tagged.inner for tagged in answers]
        if results:
            conversation.add("tool", [(_result(conversation, text), f"{place}.value") for text in results], place)
        else:
            conversation.add(role, _pieces(conversation, role, value, f"{place}.value"), place)  # type: ignore[arg-type]
    return conversation.finish(tools=tools or read_tools(data.get("tools")), metadata=left_over(data, (key,)))


def _prose_tools(system: str) -> list[ToolDefinition]:
    """Return the tools between tags, as a JSON list or as objects one after the other."""
    found = next(between_tags(system, "<tools>", "</tools>"), None)
    if found is None:
        return []
    for text in (found.inner, f"[{','.join(found.inner.splitlines())}]"):
        parsed = parse_literal(text)
        if isinstance(parsed, list):
            return read_tools(parsed)
    return []


def _result(conversation: Conversation, text: str) -> ToolResult:
    parsed = parse_literal(text)
    if isinstance(parsed, Mapping) and "content" in parsed and parsed.keys() <= {"name", "content", "tool_call_id"}:
        return conversation.result(parsed["content"], name=parsed.get("name"), call_id=parsed.get("tool_call_id"))
    return conversation.result(text)


def _pieces(conversation: Conversation, role: str, value: str, place: str) -> list[Piece]:
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
    """Return a call from JSON, or from the tags of Qwen's coder models; None if it is neither: then it stays text."""
    parsed = parse_literal(text)
    if isinstance(parsed, Mapping) and isinstance(parsed.get("name"), str):
        return conversation.call(parsed["name"], parsed.get("arguments"))
    tagged = next(between_tags(text, "<function=", "</function>"), None)
    if tagged is None:
        return None
    name, _, body = tagged.inner.partition(">")
    found = (inner.inner.partition(">") for inner in between_tags(body, "<parameter=", "</parameter>"))
    return conversation.call(name.strip(), {key.strip(): value.strip("\n") for key, _, value in found})


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
    if tools and not any(turn["from"] == "system" and "<tools>" in turn["value"] for turn in turns):
        prompt = _PROMPT.format(compact_text(tools))
        if turns and turns[0]["from"] == "system":
            turns[0]["value"] = f"{turns[0]['value']}\n\n{prompt}"
        else:
            turns.insert(0, {"from": "system", "value": prompt})
    return {"conversations": turns, **own_keys(request, NAME)}


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


_KEYS = all_keys(conversations=TURN_KEYS, items=TURN_KEYS)
DATASET = Dataset(NAME, is_record, read, write, keys=_KEYS, unstored={**UNSTORED_WORDS, **UNSTORED_TOOLS})
