"""Remembers vendors' signatures for clients that lose them.

Gemini 3 refuses a call without its thought signature, Claude needs its thinking back within a tool loop. Clients of
other formats have no field for either: some drop unknown fields, others move or merge them. So the gateway stores the
signed message of an answer under its first call id (or a digest of its text), per key, for a while, and restores what
is missing when the message returns. Clients then need not get other vendors' signatures at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import msgspec
from msgspec import structs

from dragoman.gateway.state.base import Store, Unavailable
from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Completion,
    Message,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
    Refusal,
    Request,
    Signature,
    Text,
    ToolCall,
)
from dragoman.ir.values import encode_json

_MOST_LOOKED_UP = 100
"""How many messages of a request, the newest ones, have their signatures looked up."""
_LARGEST = 256 << 10
"""Maximum bytes of one remembered message."""
_SIGNED = (Reasoning, Text, ToolCall)
_parts = msgspec.json.Decoder(tuple[Reasoning | Text | ToolCall, ...]).decode


def key_of(message: Message) -> str | None:
    """Return the key under which a message is stored: the id of its first call, or a digest of its text."""
    calls = message.tool_calls
    if calls:
        return f"call:{calls[0].id}"
    words = _words(message.parts)
    return f"text:{hashlib.blake2s(words.encode(), digest_size=16).hexdigest()}" if words else None


def _words(parts: Iterable[AnyPart]) -> str:
    """Return the text without white space, because clients join and trim texts differently."""
    return "".join("".join(part.text.split()) for part in parts if isinstance(part, Text | Refusal))


class SignatureMemory:
    """The remembered signatures in a gateway's store. `seconds` is the lifetime; 0 remembers nothing."""

    def __init__(self, store: Store, seconds: float) -> None:
        self._store = store
        self.seconds = seconds

    async def remember(self, completion: Completion, owner: str) -> None:
        """Store the signed message of an answer; nothing is stored for answers without signatures."""
        if not self.seconds or completion.finish is None or not is_signed(completion.messages[:1]):
            return
        message = completion.messages[0]
        if not any(_signature(part) for part in message.parts):
            return
        key = key_of(message)
        skeleton = [_bare(part) for part in message.parts if isinstance(part, _SIGNED)]
        encoded = encode_json(skeleton)
        if key is not None and len(encoded) <= _LARGEST:
            with suppress(Unavailable):
                await self._store.remember(owner, key, encoded)

    def may_know(self, request: Request) -> bool:
        """Whether anything of this request can be remembered: it continues an earlier answer."""
        if self.seconds:
            for message in request.messages:
                if message.role == "assistant":
                    return True
        return False

    async def recall(self, request: Request, owner: str) -> Mapping[str, bytes]:
        """Return what is remembered of the messages of a request, by their keys."""
        answers = [message for message in request.messages if message.role == "assistant"][-_MOST_LOOKED_UP:]
        keys = {key for message in answers if (key := key_of(message)) is not None}
        if not keys:
            return {}
        with suppress(Unavailable):
            return await self._store.recall(owner, sorted(keys), self.seconds)
        return {}


def _signature(part: AnyPart) -> Signature | None:
    signature: Signature | None = getattr(part, "signature", None)
    return signature if signature is not None and signature.data else None


def is_signed(messages: Iterable[Message]) -> bool:
    """Whether a vendor signed any part."""
    for message in messages:
        for part in message.parts:
            if getattr(part, "signature", None) is not None:
                return True
    return False


def _bare(part: Reasoning | Text | ToolCall) -> Reasoning | Text | ToolCall:
    """Return only what is needed to recognise a part and to restore its signature."""
    if isinstance(part, ToolCall):
        return ToolCall(part.id, part.name, {}, signature=part.signature)
    if isinstance(part, Text):
        return Text(part.text, signature=part.signature)
    return structs.replace(part, metadata=None)


def restore_signatures(request: Request, remembered: Mapping[str, bytes], family: str) -> Request:
    """Return the request with this family's signatures restored."""
    messages = tuple(_restore_message(message, remembered, family) for message in request.messages)
    return structs.replace(request, messages=messages) if messages != request.messages else request


def _restore_message(message: Message, remembered: Mapping[str, bytes], family: str) -> Message:
    if message.role != "assistant":
        return message
    stored = remembered.get(key_of(message) or "")
    if stored is None:
        return message
    skeleton = [part for part in _parts(stored) if not isinstance(part, Reasoning) or _is_of(part, family)]
    if _signatures_of(skeleton, family) == _signatures_of(message.parts, family):
        return message
    return structs.replace(message, parts=tuple(_rebuilt(message.parts, skeleton, family)))


def _is_of(part: AnyPart, family: str) -> bool:
    signature = _signature(part)
    return signature is not None and signature.family == family


def _signatures_of(parts: Sequence[AnyPart], family: str) -> list[tuple[str, str]]:
    return [
        (part.id if isinstance(part, ToolCall) else type(part).__name__, signature.data)
        for part in parts
        if (signature := _signature(part)) is not None and signature.family == family
    ]


def _rebuilt(parts: Sequence[AnyPart], skeleton: Sequence[AnyPart], family: str) -> list[AnyPart]:
    """Return the parts in their original order, each with its signature.

    Calls are the client's. Texts are too, unless they have the same words: then the signed parts are restored.
    """
    calls = {part.id: part for part in parts if isinstance(part, ToolCall)}
    thoughts = {part.text for part in skeleton if isinstance(part, Reasoning)}
    same_words = _words(parts) == _words(skeleton)
    others = [part for part in parts if not _replaces(part, thoughts, family, same_words=same_words)]
    texts = [part for part in others if isinstance(part, Text | Refusal)]
    rebuilt: list[AnyPart] = []
    for part in skeleton:
        if isinstance(part, Reasoning):
            rebuilt.append(part)
        elif isinstance(part, ToolCall):
            call = calls.pop(part.id, None)
            if call is not None and call.name == part.name:
                rebuilt.append(structs.replace(call, signature=part.signature) if _is_of(part, family) else call)
            elif call is not None:
                rebuilt.append(call)
        elif same_words:
            rebuilt.append(part if _is_of(part, family) else structs.replace(part, signature=None))
        else:
            rebuilt += texts
            texts = []
    placed = {id(part) for part in rebuilt}
    calls_left = set(calls)
    rest = [
        part for part in others if id(part) not in placed and (not isinstance(part, ToolCall) or part.id in calls_left)
    ]
    return [*rebuilt, *rest]


def _replaces(part: AnyPart, thoughts: set[str], family: str, *, same_words: bool) -> bool:
    """Whether the skeleton already contains this part."""
    if isinstance(part, Reasoning):
        return _is_of(part, family) or part.text in thoughts or not part.text
    return isinstance(part, Text | Refusal) and same_words


# ── what clients get ──


def hide_foreign_signatures(completion: Completion, family: str) -> Completion:
    """Return the answer without other families' signatures, which the gateway remembers."""
    if not is_signed(completion.messages):
        return completion
    messages = tuple(
        structs.replace(
            message,
            parts=tuple(without_foreign_signature(part, family) for part in message.parts if _shows(part, family)),
        )
        if any(_is_foreign(part, family) for part in message.parts)
        else message
        for message in completion.messages
    )
    return structs.replace(completion, messages=messages)


def _is_foreign(part: AnyPart, family: str) -> bool:
    signature = getattr(part, "signature", None)
    return signature is not None and signature.family != family


def _shows(part: AnyPart, family: str) -> bool:
    """Whether a part has more than a foreign signature to show."""
    return not _is_foreign(part, family) or isinstance(part, ToolCall) or bool(getattr(part, "text", ""))


def without_foreign_signature(part: AnyPart, family: str) -> AnyPart:
    return structs.replace(part, signature=None) if _is_foreign(part, family) else part


class UnsignedEvents:
    """Removes other families' signatures from stream events. Reasoning starts with its first text, if it has any."""

    def __init__(self, family: str) -> None:
        self._family = family
        self.held: dict[int, PartStart] = {}
        """Starts of reasoning parts without text so far; text of all other parts passes unchanged."""

    def __call__(self, events: Iterable[AnyEvent]) -> list[AnyEvent]:
        kept: list[AnyEvent] = []
        for event in events:
            if isinstance(event, PartStart):
                start = structs.replace(event, part=without_foreign_signature(event.part, self._family))
                if isinstance(start.part, Reasoning) and start.part.signature is None and not start.part.text:
                    self.held[event.index] = start
                else:
                    kept.append(start)
            elif isinstance(event, PartDelta):
                start_of_it = self.held.pop(event.index, None)
                kept += [event] if start_of_it is None else [start_of_it, event]
            elif isinstance(event, PartEnd):
                kept += self._on_end(event)
            else:
                kept.append(event)
        return kept

    def _on_end(self, event: PartEnd) -> list[AnyEvent]:
        start = self.held.pop(event.index, None)
        is_foreign = event.signature is not None and event.signature.family != self._family
        end = structs.replace(event, signature=None) if is_foreign else event
        if start is None:
            return [end]
        return [] if end.signature is None else [start, end]
