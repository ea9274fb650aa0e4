"""Signatures that Google mints, on parts of generateContent and on thoughts of Interactions."""

from __future__ import annotations

import binascii
from typing import Any

from msgspec import Raw, structs

from dragoman.ir import AnyPart, Message, Metadata, Reasoning, Request, Signature, Text, ToolCall
from dragoman.ir.parts import Media
from dragoman.losses import LossLog

GOOGLE = "google"
"""The family that mints and reads them."""

PLACEHOLDER = "skip_thought_signature_validator"
"""Documented placeholder for a missing signature. It happens to be valid base64, so it is sent as it is."""


def _spellings(word: str) -> set[str]:
    encoded = binascii.b2a_base64(word.encode(), newline=False).decode()
    return {word, encoded, encoded.rstrip("=")}


_DUMMIES = frozenset(_spellings(PLACEHOLDER) | _spellings("context_engineering_is_the_way_to_go"))
_LONGEST_DUMMY = max(len(word) for word in _DUMMIES)


def is_dummy(signature: str) -> bool:
    """Whether this is a placeholder for a signature that never existed."""
    return len(signature) <= _LONGEST_DUMMY and (not signature or signature in _DUMMIES)


THOUGHT = "~thought"
NATIVE_THOUGHT: Metadata = {GOOGLE: {THOUGHT: Raw(b"true")}}
"""On a thought without signature: its text alone does not show that it is Google's."""


def is_native_thought(part: Reasoning) -> bool:
    """Whether Google wrote this reasoning."""
    if part.signature is not None:
        return part.signature.family == GOOGLE
    return THOUGHT in (part.metadata or {}).get(GOOGLE, {})


def is_signed_medium(part: object) -> bool:
    """Whether Google signed this image or audio of an answer."""
    signature = part.signature if isinstance(part, Media) else None
    return signature is not None and signature.family == GOOGLE and bool(signature.data)


def with_signed_calls(request: Request, log: LossLog) -> Request:
    """Return a request of Interactions with signatures where Gemini has them: on first calls, and on images.

    On that wire, a signature comes before the whole turn, often before a text that precedes the call.
    """
    messages = [_with_signed_media(_with_signed_call(message, log), log) for message in request.messages]
    return _with_messages(request, messages, log)


def _with_messages(request: Request, messages: list[Message], log: LossLog) -> Request:
    if all(new is old for new, old in zip(messages, request.messages, strict=True)):
        return request
    return log.replace(request, messages=tuple(messages))


def _with_signed_call(message: Message, log: LossLog) -> Message:
    content = message.content_held
    if message.role != "assistant" or type(content) is str:
        return message
    place = next((place for place, part in enumerate(content) if type(part) is ToolCall), 0)
    call = content[place] if place else None
    if type(call) is not ToolCall or call.signature is not None:
        return message
    for index in range(place - 1, -1, -1):
        text = content[index]
        if type(text) is Text and text.signature is not None and text.signature.family == GOOGLE:
            signed = structs.replace(call, signature=text.signature)
            bare = structs.replace(text, signature=None)
            between = content[index + 1 : place]
            parts = (*content[:index], *([bare] if bare.text else []), *between, signed, *content[place + 1 :])
            changed = structs.replace(message, parts=parts)
            for new, old in ((signed, call), (bare, text), (changed, message)):
                log.replaced(new, old)
            return changed
    return message


def with_named_signatures(request: Request, log: LossLog) -> Request:
    """Return a request of another format with each signature that names its call on that call.

    OpenRouter gives the signature of a call apart from it, as encrypted reasoning with the id of the call.
    """
    if not _has_reasoning(request.messages):
        return request
    return _with_messages(request, [_with_named_signature(message, log) for message in request.messages], log)


def _has_reasoning(messages: tuple[Message, ...]) -> bool:
    for message in messages:
        content = message.content_held
        if type(content) is tuple:
            for part in content:
                if type(part) is Reasoning:
                    return True
    return False


def _with_named_signature(message: Message, log: LossLog) -> Message:
    content: Any = message.content_held
    if message.role != "assistant" or type(content) is str:
        return message
    named = {call_id: signature for part in content if (signature := _signature_of(part)) and (call_id := signature.id)}
    signed = {part.id for part in content if type(part) is ToolCall and part.signature is None and part.id in named}
    if not signed:
        return message
    parts: list[AnyPart] = []
    for part in content:
        if type(part) is ToolCall and part.id in signed and part.signature is None:
            call = log.replace(part, signature=structs.replace(named[part.id], id=None))
            parts.append(call)
        elif (signature := _signature_of(part)) is None or signature.id not in signed:
            parts.append(part)
    return log.replace(message, parts=tuple(parts))


def _signature_of(part: Any) -> Signature | None:
    """Return the signature of encrypted reasoning by Google, which may name a call."""
    signature: Signature | None = part.signature if type(part) is Reasoning and part.redacted else None
    return signature if signature is not None and signature.family == GOOGLE and signature.id else None


def _with_signed_media(message: Message, log: LossLog) -> Message:
    """Return the message with signatures that stand alone before an image or audio on that part."""
    content: Any = message.content_held
    if message.role != "assistant" or type(content) is str or not any(isinstance(part, Media) for part in content):
        return message
    parts: list[AnyPart] = []
    for part in content:
        before = parts[-1] if parts else None
        if isinstance(part, Media) and part.signature is None and type(before) is Text and not before.text:
            signed: Any = structs.replace(part, signature=before.signature)
            log.replaced(signed, part)
            parts[-1] = signed
        else:
            parts.append(part)
    if len(parts) == len(content):
        return message
    return log.replace(message, parts=tuple(parts))
