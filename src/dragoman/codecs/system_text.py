"""System messages at the front, for APIs that have a field for them."""

from __future__ import annotations

from dragoman.codecs.common_losses import CACHED
from dragoman.codecs.part_handlers import name_of_part
from dragoman.ir import Message, Text
from dragoman.ir.notes import family_notes
from dragoman.losses import LossLog

_PLAIN = "system instructions of this API are plain text"
_LOST = {
    "cache": ("cache mark", CACHED),
    "citations": ("citations", _PLAIN),
    "signature": ("signature", _PLAIN),
}


def count_leading_system(messages: tuple[Message, ...], family: str) -> int:
    """Return how many messages the `system` field holds; an inline system message at the start is not one of them."""
    count = 0
    for message in messages:
        if message.role != "system" or "~inline" in family_notes(family, message.metadata):
            break
        count += 1
    return count


def split_system(messages: tuple[Message, ...], log: LossLog) -> tuple[str | None, tuple[Message, ...]]:
    """Return all system text as one string, and the other messages."""
    texts: list[str] = []
    rest: list[Message] = []
    for message in messages:
        if message.role != "system":
            rest.append(message)
            continue
        if rest:
            why = "this API has one field for system text, at the front"
            log.degrade(message, "", "place of a system message", why)
        texts += _texts_of(message, log)
    if len(texts) > 1:
        first = next(message for message in messages if message.role == "system")
        log.degrade(first, "", f"{len(texts)} system texts", "joined by blank lines: this API takes one string")
    return "\n\n".join(texts) if texts else None, tuple(rest)


def _texts_of(message: Message, log: LossLog) -> list[str]:
    content = message.content_held
    if type(content) is str:
        return [content]
    texts: list[str] = []
    for part in message.parts:
        if not isinstance(part, Text):
            log.drop(part, "", name_of_part(part), _PLAIN)
            continue
        for field, (what, why) in _LOST.items():
            if getattr(part, field):
                log.drop(part, field, what, why)
        texts.append(part.text)
    return texts
