"""Session files of coding agents: Claude Code, Codex, Gemini CLI. A file is one conversation; its lines are the record.

None of them has the system prompt and the tools (Codex: the instructions only). Branches, rewinds and compactions are
applied: the result is what the model saw last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec.structs import force_setattr

from dragoman.codecs.anthropic_messages.json_paths import request_paths as messages_paths
from dragoman.codecs.anthropic_messages.request import decode_request as decode_messages
from dragoman.codecs.datasets.conversation import (
    Conversation,
    Dataset,
    Json,
    Piece,
    items,
    mappings,
    media,
    paths_by_line,
    refuse,
    text_of,
)
from dragoman.codecs.openai_responses.json_paths import request_paths as responses_paths
from dragoman.codecs.openai_responses.request import decode_request as decode_responses
from dragoman.ir import AnyPart, Reasoning, Request, Text
from dragoman.ir.values import encode_json

Line = Mapping[str, Json]

CLAUDE_CODE, CODEX, GEMINI_CLI = "claude-code", "codex", "gemini-cli"


# ── Claude Code ──


def is_claude_code(data: Json) -> bool:
    """Return whether the lines form a tree by `parentUuid` and contain messages of the Messages API."""
    lines = mappings(data)
    return any("uuid" in line and "parentUuid" in line and isinstance(line.get("message"), Mapping) for line in lines)


def read_claude_code(data: Json) -> Request:
    """Read the chain from the newest leaf of the main conversation to its root, or to its compaction summary."""
    lines = items(data, CLAUDE_CODE, "$")
    numbers = {id(line): number for number, line in enumerate(lines)}
    chain = _chain(_claude_lines(lines))
    messages: list[dict[str, Json]] = []
    places: list[list[str]] = []
    model, answer = None, None
    for line in chain:
        message = line["message"]
        role, content = text_of(message.get("role")), _blocks(message.get("content"))
        place = f"$[{numbers[id(line)]}].message.content"
        is_text = isinstance(message.get("content"), str)
        where = [place if is_text else f"{place}[{block}]" for block in range(len(content))]
        if role == "assistant":
            model = text_of(message.get("model")) or model
            if answer is not None and message.get("id") == answer:
                messages[-1]["content"] += content  # one line per block: an answer is spread over several lines
                places[-1] += where
                continue
            answer = message.get("id") if content else None
        else:
            answer = None
        if role in {"user", "assistant"} and content:
            messages.append({"role": role, "content": content})
            places.append(where)
    if not messages:
        raise refuse(CLAUDE_CODE, "$", "lines of a conversation", None)
    body = {"model": model or "", "max_tokens": 1, "messages": messages}
    return _placed(decode_messages(encode_json(body)), model, places)


claude_code_paths = paths_by_line(messages_paths)


def _placed(request: Request, model: str | None, places: Sequence[str | list[str]]) -> Request:
    """Return the messages alone, with the path in the file of each block."""
    found = Request(model, request.messages, metadata=None, origin=request.origin)
    force_setattr(found, "_places", places)
    return found


def _claude_lines(lines: Iterable[Line]) -> list[Line]:
    found = []
    for line in lines:
        is_message = text_of(line.get("type")) in {"user", "assistant"} and isinstance(line.get("message"), Mapping)
        if is_message and line.get("isSidechain") is not True and line.get("isMeta") is not True:
            found.append(line)
    return found


def _chain(lines: list[Line]) -> list[Line]:
    before = {id(line): earlier for earlier, line in pairwise(lines)}
    by_id = {line["uuid"]: line for line in lines if isinstance(line.get("uuid"), str)}
    chain: list[Line] = []
    seen: set[str] = set()
    line: Line | None = lines[-1] if lines else None
    while line is not None:
        chain.append(line)
        if line.get("isCompactSummary") is True:
            break
        parent = line.get("parentUuid")
        # The parent may be a line of a kind that is left out: then the preceding line is used.
        if not isinstance(parent, str) or parent in seen:
            break
        seen.add(parent)
        line = by_id.get(parent) or before.get(id(line))
    return chain[::-1]


def _blocks(content: Json) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [dict(block) for block in mappings(content)]


# ── Codex ──


def is_codex(data: Json) -> bool:
    """Return whether these are lines of a rollout: a type and a payload."""
    kinds = {"session_meta", "response_item", "turn_context", "compacted"}
    return any(
        text_of(line.get("type")) in kinds and isinstance(line.get("payload"), Mapping) for line in mappings(data)
    )


def read_codex(data: Json) -> Request:
    """Read items of the Responses API; `event_msg` lines repeat them for display and are left out."""
    found: list[tuple[Json, str]] = []
    instructions, model = None, None
    for number, line in enumerate(items(data, CODEX, "$")):
        payload = line.get("payload")
        if not isinstance(payload, Mapping):
            continue
        kind = line.get("type")
        if kind == "session_meta":
            base = payload.get("base_instructions") or payload.get("instructions")
            instructions = base.get("text") if isinstance(base, Mapping) else base
        elif kind == "turn_context":
            model = text_of(payload.get("model")) or model
        elif kind == "response_item":
            found.append((_item(payload), f"$[{number}].payload"))
        elif kind == "compacted":
            history = payload.get("replacement_history")
            kept = [_item(one) for one in mappings(history)] if history else [_summary(payload)]
            found = [(one, f"$[{number}].payload") for one in kept]
    body: dict[str, Json] = {"model": text_of(model), "input": [item for item, _ in found]}
    if isinstance(instructions, str):
        body["instructions"] = instructions
    return _placed(decode_responses(encode_json(body)), model or None, [place for _, place in found])


codex_paths = paths_by_line(responses_paths)


def _item(payload: Line) -> Json:
    """Return an item as the API takes it: older files store outputs as objects."""
    item = dict(payload)
    output = item.get("output")
    if isinstance(output, Mapping):
        item["output"] = text_of(output.get("content")) or encode_json(output).decode()
    return item


def _summary(payload: Line) -> Json:
    text = text_of(payload.get("message"))
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


# ── Gemini CLI ──


def is_gemini_cli(data: Json) -> bool:
    """Return whether this is a session with messages of type user and gemini, or its lines."""
    return any(message.get("type") == "gemini" and "content" in message for message in _cli_messages(data))


def _cli_messages(data: Json) -> list[Line]:
    if isinstance(data, Mapping):
        return mappings(data.get("messages")) if "sessionId" in data or "projectHash" in data else []
    kept: list[Line] = []
    for line in mappings(data):
        if "$rewindTo" in line:
            ids = [message.get("id") for message in kept]
            kept = kept[: ids.index(line["$rewindTo"])] if line["$rewindTo"] in ids else kept
        elif "type" in line and "content" in line:
            kept.append(line)
    return kept


def read_gemini_cli(data: Json) -> Request:
    """Read a session. Calls and results share a record, which has no order: a turn's text is read before its calls."""
    conversation = Conversation(GEMINI_CLI)
    root = "$.messages" if isinstance(data, Mapping) else "$"
    model = None
    for index, message in enumerate(_cli_messages(data)):
        place = f"{root}[{index}]" if isinstance(data, Mapping) else "$"
        if message.get("type") == "user":
            conversation.add("user", [(part, place) for part in _cli_parts(message.get("content"))], place)
        elif message.get("type") == "gemini":
            model = text_of(message.get("model")) or model
            _add_turn(conversation, message, place)
    return conversation.finish(model=model)


def _add_turn(conversation: Conversation, message: Line, place: str) -> None:
    pieces: list[Piece] = [
        (Reasoning("\n".join(filter(None, (text_of(one.get("subject")), text_of(one.get("description")))))), place)
        for one in mappings(message.get("thoughts"))
    ]
    pieces += [(part, place) for part in _cli_parts(message.get("content"))]
    calls = mappings(message.get("toolCalls"))
    made = [conversation.call(call.get("name"), call.get("args"), call.get("id")) for call in calls]
    pieces += [(call, place) for call in made]
    conversation.add("assistant", pieces, place)
    results: list[Piece] = []
    for call, one in zip(made, calls, strict=True):
        if "result" in one or text_of(one.get("status")) in {"error", "cancelled"}:
            failed = one.get("status") is not None and one["status"] != "success"
            results.append((conversation.result(_cli_result(one), call_id=call.id, is_error=failed), place))
    conversation.add("tool", results, place)


def _cli_result(call: Line) -> Json:
    """Return the response that the model saw, if there is one; else what was displayed."""
    for part in mappings(call.get("result")):
        response = part.get("functionResponse")
        if isinstance(response, Mapping):
            value = response.get("response")
            if isinstance(value, Mapping) and value.keys() == {"output"}:
                return value["output"]
            return value
    return text_of(call.get("resultDisplay")) or text_of(call.get("status"))


def _cli_parts(content: Json) -> list[AnyPart]:
    parts: list[AnyPart] = []
    for part in [content] if isinstance(content, str | Mapping) else content if isinstance(content, list) else []:
        if isinstance(part, str):
            parts += [Text(part)] if part else []
        elif isinstance(part, Mapping) and text_of(part.get("text")):
            parts.append(Text(part["text"]))
        elif isinstance(part, Mapping) and isinstance(part.get("inlineData"), Mapping):
            data = part["inlineData"]
            parts.append(media(text_of(data.get("mimeType")), f"data:{data.get('mimeType')};base64,{data.get('data')}"))
    return parts


_PROMPT = "the system prompt and the tools"
CLAUDE_CODE_SESSION = Dataset(CLAUDE_CODE, is_claude_code, read_claude_code, is_session=True, lacks=_PROMPT)
CODEX_SESSION = Dataset(CODEX, is_codex, read_codex, is_session=True, lacks="the tools")
GEMINI_CLI_SESSION = Dataset(GEMINI_CLI, is_gemini_cli, read_gemini_cli, is_session=True, lacks=_PROMPT)
