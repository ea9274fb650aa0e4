"""Shapes of single public training sets: Alpaca, Glaive, xLAM, ToolACE, OpenAssistant. Read-only.

Calls are written as text there, each set in its own way. Text that does not parse as a call stays text.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec import structs

from dragoman.codecs.datasets.conversation import (
    CALL_KEYS,
    TOOL_KEYS,
    Conversation,
    Json,
    Piece,
    items,
    left_over,
    mappings,
    read_tools,
    refuse,
    text_of,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.known_keys import all_keys, keys, kinds_of
from dragoman.codecs.datasets.sharegpt import TURN_KEYS, turns_of
from dragoman.codecs.datasets.trl import content_pieces
from dragoman.ir import Request, Text, ToolDefinition
from dragoman.ir.values import parse_json

ALPACA, GLAIVE, XLAM, TOOLACE, OPENASSISTANT = "alpaca", "glaive", "xlam", "toolace", "openassistant"


# ── Alpaca: instruction, input, output ──


def is_alpaca(data: Json) -> bool:
    """Return whether this is an instruction with its output, both as text."""
    return isinstance(data, dict) and isinstance(data.get("instruction"), str) and isinstance(data.get("output"), str)


def read_alpaca(data: Json) -> Request:
    conversation = Conversation(ALPACA)
    _say(conversation, "system", data.get("system"), "$.system")
    for index, turn in enumerate(data["history"] if isinstance(data.get("history"), list) else ()):
        if not isinstance(turn, list) or len(turn) != 2:  # noqa: PLR2004 - a pair
            raise refuse(ALPACA, f"$.history[{index}]", "a question and its answer", turn)
        _say(conversation, "user", turn[0], f"$.history[{index}][0]")
        _say(conversation, "assistant", turn[1], f"$.history[{index}][1]")
    prompt = "\n".join(filter(None, (data["instruction"], text_of(data.get("input")))))
    _say(conversation, "user", prompt, "$.instruction")
    _say(conversation, "assistant", data["output"], "$.output")
    known = ("system", "history", "instruction", "input", "output")
    return conversation.finish(metadata=left_over(data, known))


def _say(conversation: Conversation, role: str, text: Json, place: str) -> None:
    pieces = content_pieces(text, place, thinking=role == "assistant") if isinstance(text, str) else []
    conversation.add(role, pieces, place)  # type: ignore[arg-type]


# ── Glaive: the whole conversation as one text ──

_SPEAKER = re.compile(r"(?:^|\n)\s*(USER|ASSISTANT|FUNCTION RESPONSE): ?")
_GLAIVE_CALL = re.compile(
    r'\s*<functioncall>\s*\{"name": *"(?P<name>[^"]+)", *"arguments": *(?P<arguments>.*)\}\s*', re.DOTALL
)
_END = "<|endoftext|>"


def is_glaive(data: Json) -> bool:
    """Return whether this is a chat as text, with the speakers of Glaive."""
    return isinstance(data, dict) and text_of(data.get("chat")).lstrip().startswith("USER:")


def read_glaive(data: Json) -> Request:
    system = text_of(data.get("system")).removeprefix("SYSTEM: ").strip()
    conversation = Conversation(GLAIVE, _concatenated_tools(system))
    _say(conversation, "system", system, "$.system")
    pieces = _SPEAKER.split(data["chat"])
    for speaker, turn in zip(pieces[1::2], pieces[2::2], strict=True):
        text = turn.replace(_END, "").strip()
        call = _GLAIVE_CALL.fullmatch(text) if speaker == "ASSISTANT" else None
        if speaker == "FUNCTION RESPONSE":
            conversation.add("tool", [(conversation.result(text), "$.chat")], "$.chat")
        elif call is not None:
            # The arguments are JSON between single quotes, which is not JSON.
            arguments = call["arguments"].strip().removeprefix("'").removesuffix("'")
            conversation.add("assistant", [(conversation.call(call["name"], arguments), "$.chat")], "$.chat")
        else:
            _say(conversation, "user" if speaker == "USER" else "assistant", text, "$.chat")
    return conversation.finish(metadata=left_over(data, ("system", "chat")))


def _concatenated_tools(system: str) -> Sequence[ToolDefinition]:
    """Return the functions that stand in a text one after the other, without commas between them."""
    decoder, found, start = msgspec.json.Decoder(), list[Json](), system.find("\n{")
    while start >= 0:
        end = next(_object_ends(system, start + 1), 0)
        try:
            found.append(decoder.decode(system[start + 1 : end]))
        except msgspec.DecodeError:
            break
        start = system.find("\n{", end)
    return read_tools(found)


def _object_ends(text: str, start: int) -> Iterator[int]:
    """Yield the position after each closing brace that balances those since `start`; strings are skipped."""
    depth, is_string, position = 0, False, start
    while position < len(text):
        character = text[position]
        if is_string:
            position += character == "\\"
            is_string = character != '"'
        elif character == '"':
            is_string = True
        elif character in "{}":
            depth += 1 if character == "{" else -1
            if depth == 0:
                yield position + 1
        position += 1


# ── xLAM: a question and the calls that answer it ──


def is_xlam(data: Json) -> bool:
    """Return whether this is a query with its calls and tools, as JSON text."""
    return isinstance(data, dict) and all(key in data for key in ("query", "answers", "tools"))


def read_xlam(data: Json) -> Request:
    tools = [_flat_tool(tool) for tool in mappings(_parse(data["tools"], XLAM, "$.tools"))]
    conversation = Conversation(XLAM, read_tools(tools))
    _say(conversation, "user", data["query"], "$.query")
    calls = items(_parse(data["answers"], XLAM, "$.answers"), XLAM, "$.answers")
    pieces: list[Piece] = [
        (conversation.call(call.get("name"), call.get("arguments")), f"$.answers[{index}]")
        for index, call in enumerate(calls)
    ]
    conversation.add("assistant", pieces, "$.answers")
    return conversation.finish(metadata=left_over(data, ("query", "answers", "tools")))


def _parse(value: Json, name: str, place: str) -> Json:
    try:
        return parse_json(value) if isinstance(value, str) else value
    except (msgspec.DecodeError, UnicodeError) as error:
        raise refuse(name, place, "JSON", value) from error


def _flat_tool(tool: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return a tool with a schema of its parameters, which are a flat map in this set."""
    parameters = tool.get("parameters")
    if not isinstance(parameters, dict) or not all(isinstance(one, dict) for one in parameters.values()):
        return tool
    needed = [
        name for name, one in parameters.items() if "optional" not in text_of(one.get("type")) and "default" not in one
    ]
    schema = {"type": "object", "properties": parameters, **({"required": needed} if needed else {})}
    return {**tool, "parameters": schema}


# ── ToolACE: calls as Python writes them ──

_FORMAT = "[func1("
"""The system text shows the form of calls with these names."""


def is_toolace(data: Json) -> bool:
    """Return whether these are turns whose system text asks for calls in Python's syntax."""
    return turns_of(data) is not None and _FORMAT in text_of(data.get("system"))


def read_toolace(data: Json) -> Request:
    system = text_of(data.get("system"))
    conversation = Conversation(TOOLACE, _listed_tools(system))
    _say(conversation, "system", system, "$.system")
    for index, turn in enumerate(items(turns_of(data), TOOLACE, "$.conversations")):
        place, speaker, value = f"$.conversations[{index}]", text_of(turn.get("from")), text_of(turn.get("value"))
        calls = python_calls(value) if speaker in {"assistant", "gpt"} else None
        if calls is not None:
            conversation.add("assistant", [(conversation.call(*call), place) for call in calls], place)
        elif speaker in {"tool", "observation"}:
            conversation.add("tool", _named_results(conversation, value, place), place)
        elif speaker in {"user", "human", "assistant", "gpt"}:
            _say(conversation, "user" if speaker in {"user", "human"} else "assistant", value, place)
        else:
            raise refuse(TOOLACE, f"{place}.from", "user, assistant or tool", turn.get("from"))
    return conversation.finish(metadata=left_over(data, ("system", "conversations")))


def _listed_tools(system: str) -> Sequence[ToolDefinition]:
    """Return the functions of the first JSON list of objects in a text."""
    start = system.find("[{")
    if start < 0:
        return []
    try:
        _, end = json.JSONDecoder().raw_decode(system, start)
        return read_tools(parse_json(system[start:end]))
    except (ValueError, RecursionError):
        return []


def _named_results(conversation: Conversation, value: str, place: str) -> list[Piece]:
    try:
        parsed = parse_json(value)
    except (msgspec.DecodeError, UnicodeError):
        parsed = None
    results = mappings(parsed)
    if not _are_named(results):
        return [(conversation.result(value), place)]
    return [(conversation.result(result["results"], name=result["name"]), place) for result in results]


def _are_named(results: Sequence[Mapping[str, Json]]) -> bool:
    return bool(results) and all("name" in result and "results" in result for result in results)


def python_calls(text: str) -> list[tuple[str, dict[str, Json]]] | None:
    """Return the calls of a text such as `[f(a=1), g()]`; None if it is anything else.

    Names may have spaces and dots, so only the arguments are parsed as Python, and only as literals.
    """
    inner = text.strip()
    if not (inner.startswith("[") and inner.endswith(")]")):
        return None
    found, start, end = list[tuple[str, dict[str, Json]]](), 1, len(inner) - 1
    while start < end:
        opened = inner.find("(", start, end)
        name = inner[start:opened].strip()
        if opened < 0 or not name or not set("\"'=[]{}").isdisjoint(name):
            return None
        closed = _end_of_call(inner, opened + 1)
        arguments = _keywords(inner[opened + 1 : closed])
        if arguments is None:
            return None
        found.append((name, arguments))
        comma = _PAST_COMMA.match(inner, closed, end)
        if comma is None:
            return None
        start = comma.end()
    return found


_PAST_COMMA = re.compile(r"\s*(?:,\s*|$)")


def _end_of_call(text: str, start: int) -> int:
    """Return the position after the parenthesis that closes a call; brackets in strings do not count."""
    depth, quote, position = 1, "", start
    while position < len(text) and depth:
        character = text[position]
        if quote:
            position += character == "\\"
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        position += 1
    return position


def _keywords(text: str) -> dict[str, Json] | None:
    """Return the keyword arguments of `…)`, if they are literals."""
    try:
        (call,) = (node.value for node in ast.parse(f"f({text}").body if isinstance(node, ast.Expr))
        if not isinstance(call, ast.Call) or call.args or any(keyword.arg is None for keyword in call.keywords):
            return None
        return {text_of(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


# ── OpenAssistant: a tree of replies ──


def is_openassistant(data: Json) -> bool:
    """Return whether this is a tree of messages, with its root as the prompt."""
    root = data.get("prompt") if isinstance(data, dict) and "message_tree_id" in data else None
    return isinstance(root, dict) and isinstance(root.get("replies"), list)


def read_openassistant(data: Json) -> Request:
    """Read the path along the replies that were ranked best (the first one of those without a rank)."""
    conversation = Conversation(OPENASSISTANT)
    node, place = data["prompt"], "$.prompt"
    while node is not None:
        role = {"prompter": "user", "assistant": "assistant"}.get(text_of(node.get("role")))
        if role is None:
            raise refuse(OPENASSISTANT, f"{place}.role", "prompter | assistant", node.get("role"))
        conversation.add(role, [(Text(text_of(node.get("text"))), place)], place)  # type: ignore[arg-type]
        answers = node.get("replies")
        replies = [
            (index, reply)
            for index, reply in enumerate(answers if isinstance(answers, list) else ())
            if isinstance(reply, dict)
        ]
        if len(replies) > 1:
            conversation.leave_out("other replies", "a conversation is one path of the tree: the one ranked best")
        index, node = min(replies, key=_rank, default=(0, None))
        place = f"{place}.replies[{index}]"
    return conversation.finish(metadata=left_over(data, ("prompt",)))


def _rank(reply: tuple[int, Mapping[str, Json]]) -> tuple[float, int]:
    rank = reply[1].get("rank")
    return (rank if isinstance(rank, int | float) else float("inf")), reply[0]


_NODE_KEYS = keys("role text rank replies").recursive("replies")
_TREE_KEYS = all_keys(prompt=_NODE_KEYS)
_NAMED_RESULTS = structs.replace(
    keys(), items=keys("name results"), as_text=True, is_kept=lambda found: not _are_named(mappings(found))
)
_TOOLACE_TURN = kinds_of("from", {"tool observation": keys(value=_NAMED_RESULTS)}, TURN_KEYS)
_TOOLACE_KEYS = all_keys(conversations=_TOOLACE_TURN)
_XLAM_KEYS = all_keys(tools=TOOL_KEYS, answers=CALL_KEYS)

ALPACA_ROW = Dataset(ALPACA, is_alpaca, read_alpaca)
GLAIVE_CHAT = Dataset(GLAIVE, is_glaive, read_glaive)
XLAM_ROW = Dataset(XLAM, is_xlam, read_xlam, keys=_XLAM_KEYS)
TOOLACE_CHAT = Dataset(TOOLACE, is_toolace, read_toolace, keys=_TOOLACE_KEYS)
OPENASSISTANT_TREE = Dataset(OPENASSISTANT, is_openassistant, read_openassistant, keys=_TREE_KEYS)
