"""Logs of agents and evaluations: Inspect, ATIF, Google ADK, Goose, pi, opencode, Qwen Code. Read-only.

Logs of ADK and Qwen Code have contents of Gemini's API, which its codec reads. The others have messages of their own.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from dragoman.codecs.datasets.conversation import (
    Conversation,
    Json,
    Piece,
    dataset_paths,
    decode_placed,
    items,
    left_over,
    mappings,
    media,
    paths_by_line,
    read_tools,
    refuse,
    text_of,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.frameworks import Line, add_turn, messages_of, read_blocks, read_thought, role_of
from dragoman.codecs.datasets.known_keys import all_keys, keys, kinds_of, messages_in, texts_of
from dragoman.codecs.gemini.json_paths import request_paths as gemini_paths
from dragoman.codecs.gemini.request import decode_request as decode_gemini
from dragoman.codecs.media import data_url
from dragoman.ir import AnyPart, Audio, Document, Image, Reasoning, Request, Text
from dragoman.ir.messages import Role

INSPECT, ATIF, ADK, GOOSE = "inspect", "atif", "adk", "goose"
PI, OPENCODE, QWEN_CODE = "pi", "opencode", "qwen-code"


def _texts(pieces: list[Piece]) -> str:
    return "\n".join(part.text for part, _ in pieces if isinstance(part, Text))


def _image(block: Line) -> AnyPart | None:
    data, kind = text_of(block.get("data")), text_of(block.get("mimeType")) or "image/png"
    return media(kind, data_url(kind, data)) if data else None


# ── Inspect ──


def is_inspect(data: Json) -> bool:
    """Return whether this is a sample of a log, or its messages: calls have their tool's name as `function`."""
    messages, _ = messages_of(data)
    calls = [call for message in messages for call in mappings(message.get("tool_calls"))]
    if any(isinstance(call.get("function"), str) and isinstance(call.get("arguments"), dict) for call in calls):
        return True
    return isinstance(data, dict) and bool(messages) and all(key in data for key in ("epoch", "target", "input"))


def read_inspect(data: Json) -> Request:
    """Read a sample. Long texts are among its attachments; its events repeat the messages of each call."""
    messages, root = messages_of(data)
    conversation = Conversation(INSPECT)
    attached = data.get("attachments") if isinstance(data, dict) else None
    for index, message in enumerate(items(messages, INSPECT, root)):
        whole = _with_attachments(message, attached) if isinstance(attached, dict) and attached else message
        _add_inspect(conversation, whole, f"{root}[{index}]")
    if not isinstance(data, dict):
        return conversation.finish()
    if data.get("events") or data.get("transcript"):
        conversation.leave_out("events", "they record how the messages were made")
    return conversation.finish(metadata=left_over(data, ("messages", "events", "transcript", "attachments")))


_ATTACHMENT = "attachment://"


def _with_attachments(value: Json, attached: Mapping[str, Json], depth: int = 0) -> Json:
    """Return a message in which references to attachments are replaced by their texts."""
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attached.get(value.removeprefix(_ATTACHMENT), value)
    if depth < _DEEPEST and isinstance(value, dict):
        return {key: _with_attachments(inner, attached, depth + 1) for key, inner in value.items()}
    if depth < _DEEPEST and isinstance(value, list):
        return [_with_attachments(inner, attached, depth + 1) for inner in value]
    return value


_DEEPEST = 50
"""Levels of arguments in which attachments are looked for."""


def _add_inspect(conversation: Conversation, message: Line, place: str) -> None:
    role = role_of(message, INSPECT, place)
    pieces = read_blocks(conversation, message.get("content"), f"{place}.content", _inspect_part)
    if role == "tool":
        error = message.get("error")
        failed = isinstance(error, dict)
        value = text_of(error.get("message")) if isinstance(error, dict) else _texts(pieces)
        result = conversation.result(
            value, call_id=message.get("tool_call_id"), name=message.get("function"), is_error=failed
        )
        conversation.add("tool", [(result, place)], place)
        return
    for index, call in enumerate(mappings(message.get("tool_calls"))):
        made = conversation.call(call.get("function"), call.get("arguments"), call.get("id"))
        pieces.append((made, f"{place}.tool_calls[{index}]"))
    conversation.add(role, pieces, place)


def _inspect_part(conversation: Conversation, block: Line) -> AnyPart | None:
    kind = text_of(block.get("type"))
    if kind == "text":
        return Text(text_of(block.get("text")))
    if kind == "reasoning":
        return read_thought(conversation, block.get("reasoning"), block.get("signature"))
    if kind in {"image", "audio", "document"}:
        return media(f"{kind}/*" if kind != "document" else text_of(block.get("mime_type")), block.get(kind))
    return None


# ── ATIF: trajectories of Harbor and Terminal-Bench ──


def is_atif(data: Json) -> bool:
    return isinstance(data, dict) and text_of(data.get("schema_version")).startswith("ATIF")


def read_atif(data: Json) -> Request:
    """Read the steps: an observation has the results of the calls beside it."""
    conversation = Conversation(ATIF)
    for index, step in enumerate(items(data.get("steps"), ATIF, "$.steps")):
        place = f"$.steps[{index}]"
        source = text_of(step.get("source"))
        if source not in {"system", "user", "agent"}:
            raise refuse(ATIF, f"{place}.source", "system | user | agent", step.get("source"))
        pieces: list[Piece] = []
        if text_of(step.get("reasoning_content")):
            pieces.append((Reasoning(step["reasoning_content"]), f"{place}.reasoning_content"))
        pieces += read_blocks(conversation, step.get("message"), f"{place}.message", _atif_part)
        for number, call in enumerate(mappings(step.get("tool_calls"))):
            made = conversation.call(call.get("function_name"), call.get("arguments"), call.get("tool_call_id"))
            pieces.append((made, f"{place}.tool_calls[{number}]"))
        role: Role = "assistant" if source == "agent" else "system" if source == "system" else "user"
        conversation.add(role, pieces, place)
        _add_observation(conversation, step.get("observation"), f"{place}.observation")
    found = data.get("agent")
    agent: Line = found if isinstance(found, dict) else {}
    tools = read_tools(agent.get("tool_definitions"))  # since 1.5
    return conversation.finish(model=agent.get("model_name"), tools=tools, metadata=left_over(data, ("steps",)))


def _atif_part(_conversation: Conversation, block: Line) -> AnyPart | None:
    if block.get("type") == "text":
        return Text(text_of(block.get("text")))
    source = block.get("source")
    if block.get("type") == "image" and isinstance(source, dict) and text_of(source.get("path")):
        return media(text_of(source.get("media_type")) or "image/*", source["path"])
    return None


def _add_observation(conversation: Conversation, observation: Json, place: str) -> None:
    """Add what the agent saw: results of its calls, or text that answers no call."""
    for index, one in enumerate(mappings(observation.get("results") if isinstance(observation, dict) else None)):
        where = f"{place}.results[{index}]"
        pieces = read_blocks(conversation, one.get("content"), f"{where}.content", _atif_part)
        if text_of(one.get("source_call_id")):
            shown = [part for part, _ in pieces if isinstance(part, Text | Image | Audio | Document)]
            if all(isinstance(part, Text) for part in shown):
                result = conversation.result(_texts(pieces), call_id=one["source_call_id"])
            else:
                result = conversation.parts_result(shown, call_id=one["source_call_id"])
            conversation.add("tool", [(result, where)], where)
        else:
            conversation.add("user", pieces, where)


# ── contents of Gemini's API: Google ADK, Qwen Code ──


def is_adk(data: Json) -> bool:
    """Return whether this is a session: events with an author, and contents of Gemini's API."""
    events = mappings(data.get("events")) if isinstance(data, dict) else mappings(data)
    return any("author" in event and isinstance(event.get("content"), dict) for event in events)


def read_adk(data: Json) -> Request:
    root = "$.events" if isinstance(data, dict) else "$"
    found = data.get("events") if isinstance(data, dict) else data
    contents = [
        (event["content"], f"{root}[{index}].content")
        for index, event in enumerate(items(found, ADK, root))
        if isinstance(event.get("content"), dict) and event.get("partial") is not True
    ]
    return _of_contents(contents, None, ADK)


def is_qwen_code(data: Json) -> bool:
    """Return whether the lines form a tree, like those of Claude Code, but have contents of Gemini's API."""
    messages = [line["message"] for line in mappings(data) if "uuid" in line and isinstance(line.get("message"), dict)]
    return any(isinstance(message.get("parts"), list) for message in messages)


def read_qwen_code(data: Json) -> Request:
    """Read the chain from the newest line to its root; lines of other kinds only link them."""
    lines = items(data, QWEN_CODE, "$")
    numbers = {text_of(line.get("uuid")): number for number, line in enumerate(lines)}
    chain: list[int] = []
    number: int | None = len(lines) - 1 if lines else None
    while number is not None:
        chain.append(number)
        before = numbers.get(text_of(lines[number].get("parentUuid")))
        number = before if before is not None and before < number else None  # a parent precedes its children
    model = next((text_of(lines[one].get("model")) for one in chain if text_of(lines[one].get("model"))), None)
    contents = [
        (lines[one]["message"], f"$[{one}].message")
        for one in reversed(chain)
        if isinstance(lines[one].get("message"), dict) and lines[one].get("type") != "system"
    ]
    return _of_contents(contents, model, QWEN_CODE)


def _of_contents(contents: list[tuple[Line, str]], model: str | None, name: str) -> Request:
    if not contents:
        raise refuse(name, "$", "contents of a conversation", None)
    body = {"contents": [{"role": content.get("role"), "parts": content.get("parts")} for content, _ in contents]}
    return decode_placed(name, decode_gemini, body, [place for _, place in contents], model)


adk_paths = qwen_code_paths = paths_by_line(gemini_paths)


# ── Goose ──


def is_goose(data: Json) -> bool:
    """Return whether blocks are requests and responses of tools."""
    return any(
        text_of(block.get("type")) in {"toolRequest", "toolResponse", "frontendToolRequest"}
        for message in _goose_messages(data)[0]
        for block in mappings(message.get("content"))
    )


def _goose_messages(data: Json) -> tuple[list[Line], str]:
    """Return the messages: of a list, an export (`conversation`) or a recorded call (`messages`)."""
    if isinstance(data, dict) and isinstance(data.get("conversation"), list):
        return mappings(data["conversation"]), "$.conversation"
    return messages_of(data)


def read_goose(data: Json) -> Request:
    messages, root = _goose_messages(data)
    conversation = Conversation(GOOSE)
    known = [root[2:], "system", "tools"]
    if isinstance(data, dict) and text_of(data.get("system")):
        conversation.add("system", [(Text(data["system"]), "$.system")], "$.system")
    for index, message in enumerate(messages):
        place = f"{root}[{index}]"
        shown = message.get("metadata")
        if isinstance(shown, dict) and shown.get("agentVisible") is False:
            conversation.leave_out("messages that only the user saw", "a compaction took them from the model")
            continue
        pieces = read_blocks(conversation, message.get("content"), f"{place}.content", _goose_part)
        add_turn(conversation, role_of(message, GOOSE, place), pieces, place)
    if not isinstance(data, dict):
        return conversation.finish()
    tools = [{**tool, "parameters": tool.get("inputSchema")} for tool in mappings(data.get("tools"))]
    return conversation.finish(tools=read_tools(tools), metadata=left_over(data, known))


def _goose_part(conversation: Conversation, block: Line) -> AnyPart | None:
    kind = text_of(block.get("type"))
    if kind == "text":
        return Text(text_of(block.get("text")))
    if kind == "thinking":
        return read_thought(conversation, block.get("thinking"), block.get("signature"))
    if kind == "image":
        return _image(block)
    if kind in {"toolRequest", "frontendToolRequest"}:
        call = _unwrap_outcome(block.get("toolCall"))
        return conversation.call(call.get("name"), call.get("arguments"), block.get("id"))
    if kind == "toolResponse":
        return _goose_result(conversation, block)
    return None


def _goose_result(conversation: Conversation, block: Line) -> AnyPart:
    given = block.get("toolResult")
    outcome = given if isinstance(given, dict) else {}
    if outcome.get("status") == "error":
        return conversation.result(text_of(outcome.get("error")), call_id=block.get("id"), is_error=True)
    value = outcome.get("value")
    inner = value if isinstance(value, dict) else {"content": value}  # before 1.9 a list
    blocks = mappings(inner.get("content"))
    if all(one.get("type") == "text" for one in blocks):
        text = "\n".join(text_of(one.get("text")) for one in blocks)
        return conversation.result(text, call_id=block.get("id"), is_error=inner.get("isError") is True)
    return conversation.result(list(blocks), call_id=block.get("id"))


def _unwrap_outcome(outcome: Json) -> Line:
    value = outcome.get("value", outcome) if isinstance(outcome, dict) else None
    return value if isinstance(value, dict) else {}


# ── pi ──


def is_pi(data: Json) -> bool:
    """Return whether lines are messages with `toolCall` blocks, or results of the role `toolResult`, after a header."""
    lines = mappings(data)
    return any(line.get("type") == "session" and "cwd" in line for line in lines) or any(
        line.get("type") == "message" and _is_pi_message(line.get("message")) for line in lines
    )


def _is_pi_message(message: Json) -> bool:
    return isinstance(message, dict) and (message.get("role") == "toolResult" or "stopReason" in message)


def read_pi(data: Json) -> Request:
    """Read the branch that ends with the newest message; in older files, which have no branches, all messages."""
    conversation = Conversation(PI)
    lines, model = items(data, PI, "$"), None
    for number in _pi_branch(lines):
        line, place = lines[number], f"$[{number}].message"
        if text_of(line.get("type")) in {"compaction", "branch_summary"}:
            place = f"$[{number}].summary"
            conversation.add("user", [(Text(text_of(line.get("summary"))), place)], place)
        message = line.get("message")
        if line.get("type") != "message" or not isinstance(message, dict):
            continue
        model = text_of(message.get("model")) or model
        pieces = read_blocks(conversation, message.get("content"), f"{place}.content", _pi_part)
        if message.get("role") == "toolResult":
            result = conversation.result(
                _texts(pieces),
                call_id=message.get("toolCallId"),
                name=message.get("toolName"),
                is_error=message.get("isError") is True,
            )
            images = [piece for piece in pieces if not isinstance(piece[0], Text)]
            conversation.add("tool", [(result, place)], place)
            conversation.add("user", images, place)
        elif text_of(message.get("role")) in {"user", "assistant"}:
            conversation.add(message["role"], pieces, place)
        else:
            conversation.leave_out(f"messages of the role {text_of(message.get('role'))!r}", "no model has this role")
    return conversation.finish(model=model)


def _pi_branch(lines: list[Line]) -> list[int]:
    """Return the numbers of the lines that the model saw, in order; a compaction replaces what precedes it."""
    numbers = {text_of(line["id"]): number for number, line in enumerate(lines) if "parentId" in line and "id" in line}
    if not numbers:
        return list(range(len(lines)))
    chain: list[int] = []
    number: int | None = max(numbers.values())
    kept: str | None = None
    while number is not None:
        line = lines[number]
        chain.append(number)
        if line.get("type") == "compaction":
            kept = kept or text_of(line.get("firstKeptEntryId")) or "-"
        if kept is not None and line.get("id") == kept:
            break
        before = numbers.get(text_of(line.get("parentId")))
        number = before if before is not None and before < number else None
    first = next((one for one in chain if lines[one].get("type") == "compaction"), None)
    rest = [one for one in reversed(chain) if one != first]
    if first is None:
        return rest
    start = next((index for index, one in enumerate(rest) if lines[one].get("id") == kept), None)
    after = rest[start:] if start is not None else [one for one in rest if one > first]
    return [first, *after]


def _pi_part(conversation: Conversation, block: Line) -> AnyPart | None:
    kind = text_of(block.get("type"))
    if kind == "text":
        return Text(text_of(block.get("text")))
    if kind == "thinking":
        return read_thought(conversation, block.get("thinking"), block.get("thinkingSignature"))
    if kind == "toolCall":
        return conversation.call(block.get("name"), block.get("arguments"), block.get("id"))
    return _image(block) if kind == "image" else None


# ── opencode ──


def is_opencode(data: Json) -> bool:
    """Return whether this is an exported session: messages of `info` and `parts`."""
    messages, _ = messages_of(data)
    return bool(messages) and all(
        isinstance(message.get("info"), dict) and isinstance(message.get("parts"), list) for message in messages
    )


def read_opencode(data: Json) -> Request:
    """Read an exported session. A tool part has the call and its result; a new step begins a new answer."""
    messages, root = messages_of(data)
    conversation, model = Conversation(OPENCODE), None
    for index, message in enumerate(messages):
        place, info = f"{root}[{index}]", message["info"]
        model = text_of(info.get("modelID")) or model
        role, pieces = role_of(info, OPENCODE, f"{place}.info"), list[Piece]()
        for number, part in enumerate(mappings(message["parts"])):
            if part.get("type") == "step-start":
                add_turn(conversation, role, pieces, place)
                pieces = []
            pieces += [(found, f"{place}.parts[{number}]") for found in _opencode_parts(conversation, part)]
        add_turn(conversation, role, pieces, place)
    return conversation.finish(model=model, metadata=left_over(data, ("messages",)) if isinstance(data, dict) else None)


_OPENCODE_MARKS = frozenset({"step-start", "step-finish", "snapshot", "patch", "agent", "retry", "compaction"})
"""Parts that record what the program did; the model does not see them."""


def _opencode_parts(conversation: Conversation, part: Line) -> list[AnyPart]:
    kind = text_of(part.get("type"))
    if kind in {"text", "reasoning"}:
        text = text_of(part.get("text"))
        return [Text(text) if kind == "text" else Reasoning(text)] if text else []
    if kind == "file":
        return [media(text_of(part.get("mime")), part.get("url"))]
    state = part.get("state")
    if kind == "tool" and isinstance(state, dict):
        call = conversation.call(part.get("tool"), state.get("input"), part.get("callID"))
        failed = state.get("status") == "error"
        if not failed and "output" not in state:
            return [call]
        return [call, conversation.result(state.get("error" if failed else "output"), call_id=call.id, is_error=failed)]
    if kind not in _OPENCODE_MARKS:
        conversation.leave_out(f"parts of the kind {kind!r}", "content of this kind is not known")
    return []


inspect_paths = atif_paths = goose_paths = pi_paths = opencode_paths = dataset_paths

# ── what is read of a record ──

_INSPECT_KEYS = messages_in(
    keys(
        "role function tool_call_id",
        error=keys("message"),
        content=kinds_of(
            "type",
            {"text": keys("text"), "reasoning": keys("reasoning signature"), "image": keys("image")},
            keys("mime_type audio document"),
        ),
        tool_calls=keys("type id function arguments"),
    ),
    "events transcript attachments",
)
_ATIF_BLOCKS = keys("type text", source=keys("path media_type"))
_ATIF_KEYS = all_keys(
    steps=keys(
        "source reasoning_content",
        message=_ATIF_BLOCKS,
        tool_calls=keys("tool_call_id function_name arguments"),
        observation=keys(results=keys("source_call_id", content=_ATIF_BLOCKS)),
    )
)
_EVENT_KEYS = keys("partial", content=keys("role parts"))
_ADK_KEYS = keys("partial", content=keys("role parts"), events=_EVENT_KEYS)
_GOOSE_CALL = keys("status name arguments", value=keys("name arguments"))
_TEXTS = texts_of()
_GOOSE_VALUE = structs.replace(keys("isError", content=_TEXTS), items=_TEXTS, is_kept=_TEXTS.is_kept)
_GOOSE_RESULT = keys("status error", value=_GOOSE_VALUE)
_GOOSE_MESSAGE = keys(
    "role",
    metadata=keys("agentVisible"),
    content=kinds_of(
        "type",
        {
            "text": keys("text"),
            "thinking": keys("thinking signature"),
            "image": keys("data mimeType"),
            "toolRequest frontendToolRequest": keys("id", toolCall=_GOOSE_CALL),
            "toolResponse": keys("id", toolResult=_GOOSE_RESULT),
        },
        all_keys(),
    ),
)
_GOOSE_TOOL = keys("name description inputSchema")
_GOOSE_KEYS = messages_in(_GOOSE_MESSAGE, "system", conversation=_GOOSE_MESSAGE, tools=_GOOSE_TOOL)
_PI_KEYS = keys(
    "type id parentId firstKeptEntryId summary",
    message=keys(
        "role model toolCallId toolName isError",
        content=kinds_of(
            "type",
            {
                "text": keys("text"),
                "thinking": keys("thinking thinkingSignature"),
                "image": keys("data mimeType"),
                "toolCall": keys("id name arguments"),
            },
            all_keys(),
        ),
    ),
)
_OPENCODE_PART = kinds_of(
    "type",
    {
        "text reasoning": keys("text"),
        "file": keys("mime url"),
        "tool": keys("tool callID", state=keys("status input output error")),
    },
    keys(),
)
_OPENCODE_KEYS = messages_in(keys(info=keys("role modelID"), parts=_OPENCODE_PART))
_QWEN_CODE_KEYS = keys("type uuid parentUuid model", message=keys("role parts"))

_LACKS, _TOOLS = "the system prompt and the tools", "the tools"
INSPECT_SAMPLE = Dataset(INSPECT, is_inspect, read_inspect, keys=_INSPECT_KEYS, lacks=_TOOLS)
ATIF_TRAJECTORY = Dataset(ATIF, is_atif, read_atif, keys=_ATIF_KEYS, lacks=_TOOLS)
ADK_SESSION = Dataset(ADK, is_adk, read_adk, keys=_ADK_KEYS, lacks=_LACKS)
GOOSE_SESSION = Dataset(GOOSE, is_goose, read_goose, keys=_GOOSE_KEYS, lacks=_LACKS)
PI_SESSION = Dataset(PI, is_pi, read_pi, keys=_PI_KEYS, is_session=True, lacks=_LACKS)
OPENCODE_SESSION = Dataset(OPENCODE, is_opencode, read_opencode, keys=_OPENCODE_KEYS, lacks=_LACKS)
QWEN_CODE_SESSION = Dataset(
    QWEN_CODE, is_qwen_code, read_qwen_code, keys=_QWEN_CODE_KEYS, is_session=True, lacks=_LACKS
)
