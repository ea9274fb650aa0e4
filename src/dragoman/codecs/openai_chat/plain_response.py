"""Chat Completions responses, the short way, both directions (see codecs/plain.py)."""

from __future__ import annotations

from itertools import product
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.arguments import arguments_as_text
from dragoman.codecs.openai_chat.messages import FAMILY, NO_ANNOTATIONS, NULL, decode_assistant
from dragoman.codecs.openai_chat.plain_request import PlainCall, decode_plain_calls
from dragoman.codecs.openai_chat.profile import PROFILE, ChatProfile
from dragoman.codecs.openai_chat.response import (
    INVENTED_ID,
    OBJECT,
    OBJECT_KEY,
    decode_choice_notes,
    decode_finish,
    encode_usage,
    usage_of,
)
from dragoman.codecs.openai_chat.wire import (
    AssistantMessage,
    Call,
    ChatResponse,
    ChoiceWire,
    Function,
    UsageWire,
)
from dragoman.codecs.plain import PlainWire
from dragoman.codecs.reading import MaybeInt, MaybeStr, WireValue
from dragoman.ir import Completion, Message, Text, ToolCall
from dragoman.ir.messages import content_held
from dragoman.ir.values import Metadata, encode_json

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class PlainAnswer(PlainWire, frozen=True):
    role: Literal["assistant"]
    content: str | None
    tool_calls: list[PlainCall] | UnsetType = UNSET
    refusal: None | UnsetType = UNSET
    annotations: Raw | UnsetType = UNSET


class PlainChoice(PlainWire, frozen=True):
    message: PlainAnswer
    index: Literal[0]
    finish_reason: str
    logprobs: None | UnsetType = UNSET


class PlainResponse(PlainWire, frozen=True):
    choices: tuple[PlainChoice]
    usage: Raw
    id: MaybeStr = None
    object: Raw | UnsetType = UNSET
    created: MaybeInt = None
    model: MaybeStr = None
    service_tier: Raw | UnsetType = UNSET
    system_fingerprint: Raw | UnsetType = UNSET


_read = msgspec.json.Decoder(PlainResponse).decode
_read_usage = msgspec.json.Decoder(UsageWire).decode


def _notes(refusal: None | UnsetType, annotations: Raw | UnsetType, logprobs: Raw | UnsetType) -> Metadata | None:
    """What the long way notes of an answer that says these, or does not."""
    message = decode_assistant(AssistantMessage("", UNSET, refusal, UNSET, annotations), "")
    return decode_choice_notes(message, ChoiceWire(UNSET, 0, "stop", logprobs), 0).metadata


_NOTES = {
    said: _notes(None if said[0] else UNSET, NO_ANNOTATIONS if said[1] else UNSET, NULL if said[2] else UNSET)
    for said in product((True, False), repeat=3)
}
"""By whether refusal, annotations and logprobs were said."""


def decode_plain_response(body: bytes) -> Completion | None:
    try:
        wire = _read(body)
        counts = _read_usage(wire.usage)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    (choice,) = wire.choices
    said = choice.message
    content, calls, annotations = said.content, said.tool_calls, said.annotations
    if annotations is not UNSET and bytes(annotations) != b"[]":
        return None
    metadata = _NOTES[said.refusal is None, annotations is not UNSET, choice.logprobs is None]
    if calls is UNSET:
        if content is None:
            return None
        message = Message("assistant", content if metadata is None else (Text(content),), None, metadata)
    else:
        parts = decode_plain_calls(calls, content, {})
        if parts is None or choice.finish_reason == "length":
            return None
        message = Message("assistant", parts, None, metadata)
    extra = {} if wire.object is UNSET else {OBJECT_KEY: wire.object}
    if wire.service_tier is not UNSET:
        extra["service_tier"] = wire.service_tier
    if wire.system_fingerprint is not UNSET:
        extra["system_fingerprint"] = wire.system_fingerprint
    return Completion(
        (message,),
        decode_finish(choice.finish_reason, message),
        usage_of(counts, {FAMILY: {"~usage": wire.usage}}),
        wire.id,
        wire.model,
        wire.created,
        (),
        {FAMILY: extra},
    )


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────

_FINISHES = {"stop": "stop", "length": "length", "tool_calls": "tool_calls"}


def encode_plain_response(completion: Completion, profile: ChatProfile = PROFILE) -> bytes | None:
    messages, finish, usage = completion.messages, completion.finish, completion.usage
    if profile is not PROFILE or len(messages) != 1 or finish is None or usage is None:
        return None
    word = _FINISHES.get(finish.reason)
    if (
        word is None
        or (completion.metadata is not None and FAMILY in completion.metadata)
        or (usage.metadata is not None and FAMILY in usage.metadata)
    ):
        return None
    answer = _answer(messages[0])
    if answer is None:
        return None
    choice = ChoiceWire(answer, 0, word, NULL)
    wire = ChatResponse(
        [choice],
        completion.id or INVENTED_ID,
        OBJECT,
        completion.created or 0,
        completion.model or "",
        encode_usage(usage),
    )
    return encode_json(wire)


def _answer(message: Message) -> WireValue:
    content: Any = content_held(message)
    if message.metadata is not None or message.name is not None:
        return None
    if type(content) is str:
        return AssistantMessage(content, UNSET, None, UNSET, NO_ANNOTATIONS)
    text: str | None = None
    calls: list[WireValue] = []
    for part in content:
        if type(part) is ToolCall:
            if part.custom or part.signature is not None or (part.metadata is not None and FAMILY in part.metadata):
                return None
            calls.append(Call(part.id, Function(part.name, arguments_as_text(part)), "function"))
        elif type(part) is Text and text is None and not calls:
            if part.citations or part.signature is not None or (part.metadata is not None and FAMILY in part.metadata):
                return None
            text = part.text
        else:
            return None
    return AssistantMessage(text, calls or UNSET, None, UNSET, NO_ANNOTATIONS)
