"""generateContent responses, the short way, both directions (see codecs/plain.py)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.gemini.foreign_signatures import is_dummy, is_tagged
from dragoman.codecs.gemini.parts import GIVEN_ID
from dragoman.codecs.gemini.profile import FAMILY, PROFILE, GeminiProfile
from dragoman.codecs.gemini.response import decode_finish, decode_usage, encode_time
from dragoman.codecs.gemini.wire import (
    CallOut,
    CandidateOut,
    ContentOut,
    FunctionCallOut,
    GenerateContentResponse,
    TextOut,
    UsageMetadata,
)
from dragoman.codecs.ids import INVENTED_PREFIX, invent_id
from dragoman.codecs.plain import Given, PlainWire, is_object
from dragoman.codecs.reading import WireValue
from dragoman.ir import AnyPart, Completion, Message, Signature, Text, ToolCall, Usage
from dragoman.ir.messages import content_held
from dragoman.ir.parts import arguments_held
from dragoman.ir.values import encode_json

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class PlainCall(PlainWire, frozen=True, rename="camel"):
    name: str
    args: Raw
    id: Given[str] = None


class PlainPart(PlainWire, frozen=True, rename="camel"):
    text: Given[str] = None
    function_call: Given[PlainCall] = None
    thought_signature: Given[str] = None


class PlainContent(PlainWire, frozen=True, rename="camel"):
    parts: list[PlainPart]
    role: Given[Literal["user", "model"]] = None


class PlainCandidate(PlainWire, frozen=True, rename="camel"):
    content: PlainContent
    finish_reason: Literal["STOP", "MAX_TOKENS"]
    index: Literal[0]


class PlainResponse(PlainWire, frozen=True, rename="camel"):
    candidates: tuple[PlainCandidate]
    usage_metadata: Raw
    response_id: str
    model_version: str


_read = msgspec.json.Decoder(PlainResponse).decode


def decode_plain_response(body: bytes) -> Completion | None:
    try:
        wire = _read(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    (candidate,) = wire.candidates
    content, usage = candidate.content, wire.usage_metadata
    if content.role != "model" or not content.parts or usage == _NULL:
        return None
    parts = _parts(content, wire.response_id)
    if parts is None:
        return None
    first = parts[0]
    message = Message("assistant", first.text if len(parts) == 1 and isinstance(first, Text) else tuple(parts))
    finish = decode_finish(candidate.finish_reason, message)
    return Completion((message,), finish, decode_usage(usage), wire.response_id, wire.model_version)


_NULL = Raw(b"null")


def _parts(content: PlainContent, seed: str) -> list[AnyPart] | None:
    parts: list[AnyPart] = []
    calls = 0
    for part in content.parts:
        call, text, spelled = part.function_call, part.text, part.thought_signature
        if call is None:
            if text is None or spelled is not None:
                return None
            parts.append(Text(text))
            continue
        if text is not None or not is_object(bytes(call.args)):
            return None
        signature = None
        if spelled is not None:
            if is_dummy(spelled) or is_tagged(spelled):
                return None
            signature = Signature(FAMILY, spelled)
        call_id, invented = call.id, False
        if call_id is None:
            call_id, invented = invent_id(seed, calls), True
        elif not call_id or call_id[:4] == INVENTED_PREFIX:
            return None
        metadata = None if invented else GIVEN_ID
        parts.append(ToolCall(call_id, call.name, call.args, None, False, invented, False, signature, None, metadata))  # noqa: FBT003
        calls += 1
    return parts


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────

_FINISHES = {"stop": "STOP", "length": "MAX_TOKENS", "tool_calls": "STOP"}


def encode_plain_response(completion: Completion, profile: GeminiProfile = PROFILE) -> bytes | None:  # noqa: ARG001
    messages, finish, usage = completion.messages, completion.finish, completion.usage
    if (
        len(messages) != 1
        or finish is None
        or usage is None
        or (completion.metadata is not None and FAMILY in completion.metadata)
    ):
        return None
    word = _FINISHES.get(finish.reason)
    counts = _usage(usage)
    if word is None or counts is None or (finish.metadata is not None and FAMILY in finish.metadata):
        return None
    parts = _wire_parts(messages[0])
    if not parts:
        return None
    candidates: Any = [CandidateOut(ContentOut("model", parts), word, 0)]
    wire = GenerateContentResponse(
        candidates,
        UNSET,
        counts,
        UNSET if completion.model is None else completion.model,
        encode_time(completion.created, None),
        UNSET if completion.id is None else completion.id,
    )
    return encode_json(wire)


def _usage(usage: Usage) -> WireValue:
    thoughts, cached, read, written = usage.reasoning, usage.cached, usage.input, usage.output
    if (
        usage.image
        or (usage.metadata is not None and FAMILY in usage.metadata)
        or (thoughts or 0) > written
        or (cached or 0) > read
    ):
        return None
    return UsageMetadata(
        read,
        written - (thoughts or 0),
        read + written,
        UNSET if cached is None else cached,
        UNSET if thoughts is None else thoughts,
    )


def _wire_parts(message: Message) -> list[WireValue] | None:
    content: Any = content_held(message)
    if message.name is not None or (message.metadata is not None and FAMILY in message.metadata):
        return None
    if type(content) is str:
        return [TextOut(content)]
    wires: list[WireValue] = []
    for part in content:
        if type(part) is Text:
            if (
                part.citations
                or part.signature is not None
                or part.cache is not None
                or (part.metadata is not None and FAMILY in part.metadata)
            ):
                return None
            wires.append(TextOut(part.text))
        elif type(part) is ToolCall:
            held, call_id = arguments_held(part), part.id
            if (
                type(held) is not Raw
                or part.signature is not None
                or part.cache is not None
                or (part.metadata is not None and FAMILY in part.metadata)
            ):
                return None
            sent: str | UnsetType = UNSET if part.invented_id or call_id[:4] == INVENTED_PREFIX else call_id
            wires.append(CallOut(FunctionCallOut(part.name, held, sent)))
        else:
            return None
    return wires
