"""UIMessages of the Vercel AI SDK. One message may hold several rounds of call, result and answer.

`step-start` begins a new round, so that a message becomes the assistant and tool messages that the model saw. Messages
of version 4 (`toolInvocations`) and ModelMessages (parts `tool-call` and `tool-result`) are read too.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from dragoman.codecs.datasets.conversation import (
    UNSTORED_MEDIA,
    UNSTORED_WORDS,
    Conversation,
    Json,
    Piece,
    add_remarks,
    arguments_value,
    drop_part,
    file_url,
    items,
    mappings,
    media,
    refuse,
    report_settings,
    result_value,
    text_of,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.known_keys import keys, kinds_of, messages_in
from dragoman.ir import (
    AnyPart,
    Audio,
    Document,
    Image,
    Reasoning,
    Refusal,
    Request,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.ir.values import parse_json, to_raw
from dragoman.losses import LossLog

NAME = "vercel-ui"
_ROLES = ("system", "user", "assistant")
_ALL_ROLES = (*_ROLES, "tool")
"""ModelMessages have results in messages of their own."""
_IDS = "~ids"
"""Note: the ids of the messages, for the same format."""
_SIGNATURES = {"google": "thoughtSignature", "anthropic": "signature", "openai": "reasoningEncryptedContent"}
"""Family -> the key of its signature in a part's provider metadata."""
_ANSWERED = frozenset({"output-available", "output-error", "output-denied"})


def _messages(data: Json) -> Json:
    return data.get("messages") if isinstance(data, dict) else data


def is_record(data: Json) -> bool:
    """Return whether these are messages with typed parts, some of which only this format has."""
    messages = mappings(_messages(data))
    if any(map(_has_sdk_parts, messages)):
        return all(text_of(message.get("role")) in _ALL_ROLES for message in messages)
    if not messages or not all(
        text_of(message.get("role")) in _ROLES and isinstance(message.get("parts"), list) for message in messages
    ):
        return False
    return all(
        isinstance(part.get("type"), str) and "content" not in part for m in messages for part in mappings(m["parts"])
    )


def _has_sdk_parts(message: Mapping[str, Json]) -> bool:
    """Return whether a message has calls of version 4, or parts of a ModelMessage."""
    content = mappings(message.get("content"))
    if isinstance(message.get("toolInvocations"), list):
        return True
    return any(text_of(part.get("type")) in {"tool-call", "tool-result"} and "toolCallId" in part for part in content)


def read(data: Json) -> Request:
    conversation = Conversation(NAME)
    root = "$.messages" if isinstance(data, dict) else "$"
    messages = items(_messages(data), NAME, root)
    for index, message in enumerate(messages):
        place, role = f"{root}[{index}]", text_of(message.get("role"))
        if role not in _ALL_ROLES:
            raise refuse(NAME, f"{place}.role", " | ".join(_ALL_ROLES), message.get("role"))
        turn = _Turn(conversation, place)
        if isinstance(message.get("parts"), list):
            for number, part in enumerate(mappings(message["parts"])):
                turn.take(part, f"{place}.parts[{number}]", role)
        else:
            _take_content(turn, message, place, role)
        turn.close(role)
    named = next((index for index, message in enumerate(messages) if message.get("id")), None)
    if named is None:
        return conversation.finish()
    request = conversation.finish(metadata={_IDS: to_raw([message.get("id") for message in messages])})
    add_remarks(
        request, NAME, [(f"{root}[{named}].id", "ids of messages", "dropped", "only the user interface uses them")]
    )
    return request


def _take_content(turn: _Turn, message: Mapping[str, Json], place: str, role: str) -> None:
    """Take the content of a message without parts: of version 4, or of a ModelMessage."""
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) and content else mappings(content)
    for number, part in enumerate(parts):
        turn.take(part, f"{place}.content" if isinstance(content, str) else f"{place}.content[{number}]", role)
    for number, call in enumerate(mappings(message.get("toolInvocations"))):
        turn.take({"type": _OLD_CALL, "toolInvocation": call}, f"{place}.toolInvocations[{number}]", role)
    for number, file in enumerate(mappings(message.get("experimental_attachments"))):
        named = {"type": "file", "mediaType": file.get("contentType"), "url": file.get("url")}
        turn.take(named, f"{place}.experimental_attachments[{number}]", role)


_OLD_CALL = "tool-invocation"
"""Part of version 4: a call, and its result if it has one."""
_UI_ONLY = ("data-", "source")
"""Parts for display; the model has not seen them."""
_APPROVALS = frozenset({"tool-approval-request", "tool-approval-response"})
"""Parts of ModelMessages: whether a call may run. (In a UIMessage, this would be a tool, and its part has a state.)"""


class _Turn:
    """One round: the model's text and calls, then the results."""

    def __init__(self, conversation: Conversation, place: str) -> None:
        self._conversation = conversation
        self._place = place
        self._pieces: list[Piece] = []
        self._results: list[Piece] = []

    def take(self, part: Mapping[str, Json], place: str, role: str) -> None:
        kind = text_of(part.get("type"))
        if kind == "step-start":
            self.close(role)
        elif kind == "text":
            if self._results:  # text after results belongs to a new round
                self.close(role)
            self._pieces.append((Text(text_of(part.get("text"))), place))
        elif kind == "reasoning":
            thought = text_of(part.get("text")) or text_of(part.get("reasoning"))
            self._pieces.append((Reasoning(thought, _reasoning_signature(part)), place))
        elif kind in {"file", "image"}:
            self._pieces.append((_file(part), place))
        elif kind == _OLD_CALL:
            call = part.get("toolInvocation")
            inner: Mapping[str, Json] = call if isinstance(call, dict) else {}
            state = "output-available" if inner.get("state") == "result" else "input-available"
            named = {**inner, "input": inner.get("args"), "output": inner.get("result"), "state": state}
            self._call(named, "dynamic-tool", place)
        elif kind == "tool-call":
            named = {**part, "input": part.get("input", part.get("args")), "state": "input-available"}
            self._call(named, "dynamic-tool", place)
        elif kind == "tool-result":
            self._results.append((self._result(part), place))
        elif kind in _APPROVALS and "state" not in part:
            return
        elif kind == "dynamic-tool" or kind.startswith("tool-"):
            self._call(part, kind, place)
        elif not kind.startswith(_UI_ONLY):
            raise refuse(NAME, f"{place}.type", "text, reasoning, file, step-start or tool-*", kind)

    def _result(self, part: Mapping[str, Json]) -> ToolResult:
        """Return the result of a ModelMessage; since version 5, its output says what kind of value it is."""
        output = part.get("output")
        kind = text_of(output.get("type")) if isinstance(output, dict) else ""
        typed = output if isinstance(output, dict) and kind else None
        value = part.get("result", output) if typed is None else typed.get("value", typed.get("reason"))
        failed = kind in {"error-text", "error-json", "execution-denied"} or part.get("isError") is True
        named = {"call_id": part.get("toolCallId"), "name": part.get("toolName")}
        if kind == "content":
            texts = [text_of(one.get("text")) for one in mappings(value)]
            if not all(one.get("type") == "text" for one in mappings(value)):
                self._conversation.leave_out("media of tool results", "they are read as text")
            value = "\n".join(filter(None, texts))
        return self._conversation.result("denied" if value is None and failed else value, is_error=failed, **named)

    def _call(self, part: Mapping[str, Json], kind: str, place: str) -> None:
        if part.get("providerExecuted") is True:
            self._conversation.leave_out("tools that the provider ran", "only that provider takes their calls back")
            return
        name = part.get("toolName") if kind == "dynamic-tool" else kind.removeprefix("tool-")
        call = self._conversation.call(name, part.get("input"), part.get("toolCallId"))
        signed = _signature(part, "callProviderMetadata")
        if signed is not None:
            call = structs.replace(call, signature=signed)
        self._pieces.append((call, place))
        state = text_of(part.get("state"))
        if state in _ANSWERED:
            failed = state != "output-available"
            value = part.get("errorText", "denied") if failed else part.get("output")
            self._results.append((self._conversation.result(value, call_id=call.id, is_error=failed), place))

    def close(self, role: str) -> None:
        known = "user" if role == "tool" else role  # a message of results has nothing else
        self._conversation.add(known, self._pieces, self._place)  # type: ignore[arg-type]
        self._conversation.add("tool", self._results, self._place)
        self._pieces, self._results = [], []


def _file(part: Mapping[str, Json]) -> AnyPart:
    kind = text_of(part.get("mediaType")) or text_of(part.get("mimeType")) or ("image/*" if "image" in part else None)
    data = text_of(part.get("url")) or text_of(part.get("data")) or text_of(part.get("image"))
    is_address = ":" in data[:12]
    return media(kind, data if is_address else f"data:{kind or 'application/octet-stream'};base64,{data}")


def _reasoning_signature(part: Mapping[str, Json]) -> Signature | None:
    """Return the signature of reasoning; version 4 has only those of Anthropic, in details."""
    for detail in mappings(part.get("details")):
        if text_of(detail.get("signature")):
            return Signature("anthropic", detail["signature"])
    return _signature(part, "providerMetadata") or _signature(part, "providerOptions")


def _signature(part: Mapping[str, Json], key: str) -> Signature | None:
    metadata = part.get(key)
    for family, name in _SIGNATURES.items():
        fields = metadata.get(family) if isinstance(metadata, dict) else None
        if isinstance(fields, dict) and text_of(fields.get(name)):
            return Signature(family, fields[name], text_of(fields.get("itemId")) or None)
    return None


def write(request: Request, log: LossLog) -> Json:
    report_settings(request, log)
    for tool in request.tools:
        log.drop(tool, "", f"tool {getattr(tool, 'name', '')!r}", "a list of messages has no place for tools")
    results = {
        part.tool_call_id: part
        for message in request.messages
        for part in message.parts
        if isinstance(part, ToolResult)
    }
    written: list[Json] = []
    for message in request.messages:
        if message.role == "tool":
            continue
        parts = [one for part in message.parts if (one := _write_part(part, results, log)) is not None]
        if message.role == "assistant":
            parts.insert(0, {"type": "step-start"})
            if written and written[-1]["role"] == "assistant":
                written[-1]["parts"] += parts
                continue
        written.append({"id": f"message-{len(written)}", "role": message.role, "parts": parts})
    _report_orphans(request, log)
    note = (request.metadata or {}).get(NAME, {}).get(_IDS)
    ids = parse_json(note) if note is not None else []
    if len(ids) != len(written):
        return written
    return [{**message, "id": given or message["id"]} for message, given in zip(written, ids, strict=True)]


def _report_orphans(request: Request, log: LossLog) -> None:
    calls = {part.id for message in request.messages for part in message.parts if isinstance(part, ToolCall)}
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolResult) and part.tool_call_id not in calls:
                log.drop(
                    part,
                    "",
                    "tool result",
                    "its call is not in the conversation, and this format keeps both in one part",
                )


def _write_part(part: AnyPart, results: Mapping[str, ToolResult], log: LossLog) -> Json | None:
    if isinstance(part, Text | Refusal):
        return {"type": "text", "text": part.text, "state": "done"}
    if isinstance(part, Reasoning):
        return {
            "type": "reasoning",
            "text": part.text,
            **_write_signature(part.signature, "providerMetadata", part, log),
        }
    if isinstance(part, ToolCall):
        call: dict[str, Json] = {
            "type": f"tool-{part.name}",
            "toolCallId": part.id,
            "input": arguments_value(part, NAME),
        }
        call |= _write_signature(part.signature, "callProviderMetadata", part, log)
        result = results.get(part.id)
        if result is None:
            return call | {"state": "input-available"}
        if result.is_error:
            return call | {"state": "output-error", "errorText": str(result_value(result, log))}
        return call | {"state": "output-available", "output": result_value(result, log)}
    if isinstance(part, Image | Audio | Document) and file_url(part) is not None:
        kind = part.media_type or {Image: "image/*", Audio: "audio/*"}.get(type(part), "application/octet-stream")
        return {"type": "file", "mediaType": kind, "url": file_url(part)}
    drop_part(part, log)
    return None


def _write_signature(signature: Signature | None, key: str, part: AnyPart, log: LossLog) -> dict[str, Json]:
    if signature is None:
        return {}
    name = _SIGNATURES.get(signature.family)
    if name is None:
        log.drop(part, "signature", "signature", "this format has no place for it")
        return {}
    return {key: {signature.family: {name: signature.data} | ({"itemId": signature.id} if signature.id else {})}}


_SIGNED = keys(
    google=keys("thoughtSignature itemId"),
    anthropic=keys("signature itemId"),
    openai=keys("reasoningEncryptedContent itemId"),
)
_CALL_KEYS = keys("state args result toolName toolCallId")
_OUTPUT_KEYS = structs.replace(
    kinds_of("type", {"content": keys(value=keys("type text")), "execution-denied": keys("reason")}, keys("value")),
    is_kept=lambda output: not isinstance(output, dict) or not text_of(output.get("type")),
)
_PART_KEYS = kinds_of(
    "type",
    {
        "text": keys("text state"),
        "reasoning": keys(
            "text reasoning state",
            details=keys("type text signature"),
            providerMetadata=_SIGNED,
            providerOptions=_SIGNED,
        ),
        "file image": keys("mediaType mimeType url data image"),
        "tool-invocation": keys(toolInvocation=_CALL_KEYS),
        "tool-call": keys("toolCallId toolName input args providerExecuted", callProviderMetadata=_SIGNED),
        "tool-result": keys("toolCallId toolName result isError", output=_OUTPUT_KEYS),
        "step-start": keys(),
    },
    keys("toolCallId toolName input output errorText state providerExecuted", callProviderMetadata=_SIGNED),
)
_KEYS = messages_in(
    keys(
        "role id",
        parts=_PART_KEYS,
        content=_PART_KEYS,
        toolInvocations=_CALL_KEYS,
        experimental_attachments=keys("contentType url"),
    )
)
DATASET = Dataset(
    NAME, is_record, read, write, keys=_KEYS, unstored={**UNSTORED_WORDS, **UNSTORED_MEDIA, ToolCall: ("cache",)}
)
