"""Session files of coding agents: Claude Code, Codex, Gemini CLI. A file is one conversation; its lines are the record.

None of them has the system prompt and the tools (Codex: the instructions only). Branches, rewinds and compactions are
applied: the result is what the model saw last.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from msgspec import structs

from dragoman.codecs.anthropic_messages.json_paths import request_paths as messages_paths
from dragoman.codecs.anthropic_messages.request import decode_request as decode_messages
from dragoman.codecs.datasets.conversation import (
    Conversation,
    Json,
    Piece,
    dataset_paths,
    decode_placed,
    items,
    mappings,
    media,
    paths_by_line,
    refuse,
    text_of,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.known_keys import all_keys, keys, kinds_of, messages_in
from dragoman.codecs.gemini.json_paths import request_paths as gemini_paths
from dragoman.codecs.gemini.request import decode_request as decode_gemini
from dragoman.codecs.openai_responses.json_paths import request_paths as responses_paths
from dragoman.codecs.openai_responses.request import decode_request as decode_responses
from dragoman.ir import AnyPart, Reasoning, Request, Text
from dragoman.ir.values import encode_json
from dragoman.losses import PathLookup

Line = Mapping[str, Json]

CLAUDE_CODE, CODEX, GEMINI_CLI = "claude-code", "codex", "gemini-cli"


# ── Claude Code ──


def is_claude_code(data: Json) -> bool:
    """Return whether the lines form a tree by `parentUuid` and contain messages of the Messages API.

    Lines that Claude Code prints (`--output-format stream-json`) have `parent_tool_use_id` instead, and are no tree.
    """
    lines = mappings(data)
    return any(
        (("uuid" in line and "parentUuid" in line) or "parent_tool_use_id" in line)
        and isinstance(line.get("message"), dict)
        and "parts" not in line["message"]  # Qwen Code
        for line in lines
    )


def read_claude_code(data: Json) -> Request:
    """Read the chain from the newest leaf of the main conversation to its root, or to its compaction summary."""
    lines = items(data, CLAUDE_CODE, "$")
    numbers = {id(line): number for number, line in enumerate(lines)}
    messages: list[dict[str, Json]] = []
    places: list[list[str]] = []
    model = None
    for group in _answers(_chain(lines), lines):
        content, where = list[Json](), list[str]()
        for line in group:
            message = line["message"]
            model = text_of(message.get("model")) or model
            blocks, place = _blocks(message.get("content")), f"$[{numbers[id(line)]}].message.content"
            is_text = isinstance(message.get("content"), str)
            content += blocks
            where += [place if is_text else f"{place}[{block}]" for block in range(len(blocks))]
        if content:
            messages.append({"role": text_of(group[0]["message"].get("role")), "content": content})
            places.append(where)
    if not messages:
        raise refuse(CLAUDE_CODE, "$", "lines of a conversation", None)
    body = {"model": model or "", "max_tokens": 1, "messages": messages}
    return decode_placed(CLAUDE_CODE, decode_messages, body, places, model)


claude_code_paths = paths_by_line(messages_paths)


def _is_claude_message(line: Line) -> bool:
    """Return whether the model saw this message; the program shows failed requests as answers, and sends them never."""
    message = line.get("message")
    is_message = isinstance(message, dict) and text_of(message.get("role")) in {"user", "assistant"}
    is_main = line.get("isSidechain") is not True and line.get("parent_tool_use_id") is None
    is_sent = line.get("isMeta") is not True and line.get("isApiErrorMessage") is not True
    return is_message and is_main and is_sent


def _chain(lines: list[Line]) -> list[Line]:
    """Return the messages from the newest one back to the root; lines of other kinds only link them."""
    known = [line for line in lines if _is_claude_message(line)]
    if not any("parentUuid" in line for line in known):
        return known
    before = {id(line): earlier for earlier, line in pairwise(known)}
    by_id = {line["uuid"]: line for line in lines if isinstance(line.get("uuid"), str)}
    chain: list[Line] = []
    seen: set[str] = set()
    line: Line | None = known[-1] if known else None
    last = line
    while line is not None:
        if _is_claude_message(line):
            chain.append(line)
            last = line
        parent = line.get("parentUuid")
        if line.get("isCompactSummary") is True or not isinstance(parent, str) or parent in seen:
            break
        seen.add(parent)
        # If the file no longer has the parent, the preceding message is used.
        line = by_id.get(parent) or before.get(id(last))
    return chain[::-1]


def _answers(chain: list[Line], lines: list[Line]) -> list[list[Line]]:
    """Return the messages as groups of lines: an answer is spread over several, one line per block.

    The results of parallel calls are children of their calls, so that the chain passes only one of them. The other
    blocks of an answer, and the results of its calls, are found by the ids of the answer and of the calls.
    """
    blocks: dict[str, list[Line]] = {}
    results: dict[str, Line] = {}
    for line in filter(_is_claude_message, lines):
        message = line["message"]
        if message["role"] == "assistant" and text_of(message.get("id")):
            blocks.setdefault(message["id"], []).append(line)
        results |= dict.fromkeys(_result_ids(message), line)
    groups: list[list[Line]] = []
    used = set[int]()
    for line in chain:
        if id(line) in used:
            continue
        group = blocks.get(text_of(line["message"].get("id")), [line])
        answered = [results[key] for one in group for key in _call_ids(one["message"]) if key in results]
        found = list({id(one): one for one in answered if id(one) not in used}.values())
        groups += [group, found] if found else [group]
        used |= {id(one) for one in (*group, *found)}
    return groups


def _result_ids(message: Line) -> list[str]:
    return [text_of(block.get("tool_use_id")) for block in mappings(message.get("content")) if "tool_use_id" in block]


def _call_ids(message: Line) -> list[str]:
    blocks = mappings(message.get("content")) if message.get("role") == "assistant" else []
    return [text_of(block.get("id")) for block in blocks if block.get("type") == "tool_use"]


def _blocks(content: Json) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [dict(block) for block in mappings(content)]


# ── Codex ──


def is_codex(data: Json) -> bool:
    """Return whether these are lines of a rollout: a type and a payload, or (until 2025) bare items after a header."""
    if isinstance(data, dict):
        return isinstance(data.get("session"), dict) and isinstance(data.get("items"), list)
    kinds = {"session_meta", "response_item", "turn_context", "compacted"}
    return any(
        (text_of(line.get("type")) in kinds and isinstance(line.get("payload"), dict)) or _is_old_header(line)
        for line in mappings(data)
    )


def _is_old_header(line: Line) -> bool:
    return "type" not in line and "role" not in line and all(key in line for key in ("id", "timestamp", "instructions"))


def _payload_lines(data: Json) -> list[tuple[Line, str]]:
    """Return the lines of a rollout and the paths of their payloads; older files have payloads without an envelope."""
    if isinstance(data, dict):  # of the first version of the program, in one object
        old = items(data["items"], CODEX, "$.items")
        given = [(data["session"], "$.session"), *((line, f"$.items[{number}]") for number, line in enumerate(old))]
    else:
        given = [(line, f"$[{number}]") for number, line in enumerate(items(data, CODEX, "$"))]
    if not any(_is_old_header(line) for line, _ in given):
        return [(line, f"{place}.payload") for line, place in given]
    return [(_in_envelope(line), place) for line, place in given]


def _in_envelope(line: Line) -> Line:
    kind = "session_meta" if _is_old_header(line) else "response_item" if "type" in line else "state"
    return {"type": kind, "payload": line}


def read_codex(data: Json) -> Request:
    """Read items of the Responses API; `event_msg` lines repeat them for display and are left out."""
    found: list[tuple[Json, str]] = []
    instructions, model = None, None
    for line, place in _payload_lines(data):
        payload = line.get("payload")
        if not isinstance(payload, dict):
            continue
        kind = line.get("type")
        if kind == "session_meta":
            base = payload.get("base_instructions") or payload.get("instructions")
            instructions = base.get("text") if isinstance(base, dict) else base
        elif kind == "turn_context":
            model = text_of(payload.get("model")) or model
        elif kind == "response_item":
            found.append((_item(payload), place))
        elif kind == "compacted":
            history = payload.get("replacement_history")
            kept = [_item(one) for one in mappings(history)] if history else [_summary(payload)]
            found = [(one, place) for one in kept]
        elif kind == "event_msg" and payload.get("type") == "thread_rolled_back":
            found = _without_turns(found, payload.get("num_turns"))
    body: dict[str, Json] = {"model": text_of(model), "input": [item for item, _ in found]}
    if isinstance(instructions, str):
        body["instructions"] = instructions
    return decode_placed(CODEX, decode_responses, body, [place for _, place in found], model or None)


codex_paths = paths_by_line(responses_paths)


def _without_turns(found: list[tuple[Json, str]], count: Json) -> list[tuple[Json, str]]:
    """Return the items without the last turns, which the user undid."""
    starts = [index for index, (item, _) in enumerate(found) if _is_prompt(item)]
    if not isinstance(count, int) or count < 1 or not starts:
        return found
    return found[: starts[max(0, len(starts) - count)]]


def _is_prompt(item: Line) -> bool:
    """Return whether a person wrote this message; the program adds others, which begin with a tag or a title."""
    texts = [text_of(part.get("text")) for part in mappings(item.get("content"))]
    return item.get("role") == "user" and not any(text.lstrip().startswith(("<", "# AGENTS.md")) for text in texts)


def _item(payload: Line) -> Json:
    """Return an item as the API takes it: older files store outputs as objects."""
    item = dict(payload)
    output = item.get("output")
    if isinstance(output, dict):
        item["output"] = text_of(output.get("content")) or encode_json(output).decode()
    return item


def _summary(payload: Line) -> Json:
    text = text_of(payload.get("message"))
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


# ── Gemini CLI ──


def is_gemini_cli(data: Json) -> bool:
    """Return whether this is a session with messages of type user and gemini, its lines, or a saved checkpoint."""
    return bool(_checkpoint(data)) or any(
        message.get("type") == "gemini" and "content" in message for message in _cli_messages(data)
    )


def _checkpoint(data: Json) -> list[Line]:
    """Return the contents of Gemini's API that `/chat save` writes; empty if the record is something else."""
    found = mappings(data.get("history") if isinstance(data, dict) else data)
    is_whole = found and all(
        text_of(item.get("role")) in {"user", "model"} and mappings(item.get("parts")) for item in found
    )
    return found if is_whole and any(item["role"] == "model" for item in found) else []


def _cli_messages(data: Json) -> list[Line]:
    if isinstance(data, dict):
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
    """Read a session. A record has calls and results without their order: its text is read before its calls."""
    if contents := _checkpoint(data):
        root = "$.history" if isinstance(data, dict) else "$"
        places = [f"{root}[{index}]" for index in range(len(contents))]
        return decode_placed(GEMINI_CLI, decode_gemini, {"contents": contents}, places)
    conversation = Conversation(GEMINI_CLI)
    root = "$.messages" if isinstance(data, dict) else "$"
    model = None
    for index, message in enumerate(_cli_messages(data)):
        place = f"{root}[{index}]" if isinstance(data, dict) else "$"
        if message.get("type") == "user":
            conversation.add("user", [(part, place) for part in _cli_parts(message.get("content"))], place)
        elif message.get("type") == "gemini":
            model = text_of(message.get("model")) or model
            _add_turn(conversation, message, place)
    return conversation.finish(model=model)


def gemini_cli_paths(root: Request) -> PathLookup:
    """Return the paths in the file: of a session, or of a checkpoint, which has contents of the API."""
    places = getattr(root, "_places", [])
    is_checkpoint = bool(places) and isinstance(places[0], str)
    return paths_by_line(gemini_paths)(root) if is_checkpoint else dataset_paths(root)


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
        if isinstance(response, dict):
            value = response.get("response")
            if isinstance(value, dict) and value.keys() == {"output"}:
                return value["output"]
            return value
    return text_of(call.get("resultDisplay")) or text_of(call.get("status"))


def _cli_parts(content: Json) -> list[AnyPart]:
    parts: list[AnyPart] = []
    for part in [content] if isinstance(content, str | dict) else content if isinstance(content, list) else []:
        if isinstance(part, str):
            parts += [Text(part)] if part else []
        elif isinstance(part, dict) and text_of(part.get("text")):
            parts.append(Text(part["text"]))
        elif isinstance(part, dict) and isinstance(part.get("inlineData"), dict):
            data = part["inlineData"]
            parts.append(media(text_of(data.get("mimeType")), f"data:{data.get('mimeType')};base64,{data.get('data')}"))
    return parts


_CLAUDE_CODE_KEYS = keys(
    "type uuid parentUuid isSidechain isMeta isCompactSummary parent_tool_use_id",
    message=keys("type role model id content"),
)
_OUTPUT_KEYS = structs.replace(
    keys("content success"),
    is_kept=lambda output: not isinstance(output, dict) or not text_of(output.get("content")),
)
"""Of an output of an old file only the text was sent; `success` was for the program."""
_OLD_ITEMS = (
    "message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
    "local_shell_call", "web_search_call",
)  # fmt: skip
"""Items of the API that are lines themselves, in files of 2025."""
_CODEX_KEYS = kinds_of(
    "type",
    {
        "session_meta": keys(payload=keys("instructions", base_instructions=keys("text"))),
        "turn_context": keys(payload=keys("model")),
        "response_item": keys(payload=all_keys(output=_OUTPUT_KEYS)),
        "event_msg": keys(payload=kinds_of("type", {"thread_rolled_back": keys("num_turns")}, keys())),
        "compacted": keys(payload=keys("replacement_history message")),
        **{kind: all_keys(output=_OUTPUT_KEYS) for kind in _OLD_ITEMS},
    },
    keys("items instructions", session=keys("instructions base_instructions")),
)
_CONTENT_KEYS = keys("text", inlineData=keys("mimeType data"))
_GEMINI_CLI_KEYS = messages_in(
    kinds_of(
        "type",
        {
            "user": keys("id", content=_CONTENT_KEYS),
            "gemini": keys(
                "id model",
                content=_CONTENT_KEYS,
                thoughts=keys("subject description"),
                toolCalls=keys(
                    "id name args status resultDisplay",
                    result=keys(functionResponse=keys("id name response")),
                ),
            ),
        },
        keys("role parts $rewindTo history"),
    )
)

_PROMPT = "the system prompt and the tools"
CLAUDE_CODE_SESSION = Dataset(
    CLAUDE_CODE, is_claude_code, read_claude_code, is_session=True, keys=_CLAUDE_CODE_KEYS, lacks=_PROMPT
)
CODEX_SESSION = Dataset(CODEX, is_codex, read_codex, is_session=True, keys=_CODEX_KEYS, lacks="the tools")
GEMINI_CLI_SESSION = Dataset(
    GEMINI_CLI, is_gemini_cli, read_gemini_cli, is_session=True, keys=_GEMINI_CLI_KEYS, lacks=_PROMPT
)
