"""Things /api/chat has no field for, and the slots that carry them.

Signatures of other families: clients keep an answer's message as it is, and the server ignores keys that it does not
know. So a call holds its own under `signature`, and the message holds those of its thinking and text under
`signatures`, each with the characters of the joined `thinking` or `content` that it signs.
Errors of tools: the JSON text {"error": …}. Everything else a message of this API has no place for is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import Raw, Struct

from dragoman.codecs.ollama_chat.profile import FAMILY
from dragoman.ir import AnyPart, Metadata, Reasoning, Signature, Text
from dragoman.ir.notes import MODELLED, Extra
from dragoman.ir.values import encode_json

THINKING: Metadata = {FAMILY: {"~thinking": Raw(b"true")}}
"""On reasoning that was spelled in this format: it may go back to a server of this format."""

SIGNATURES = "signatures"


class SignedText(Struct, frozen=True, omit_defaults=True):
    """Whose signature it is, and which characters of which field it signs."""

    field: Literal["thinking", "content"]
    start: int
    length: int
    family: str
    data: str
    id: str | None = None
    redacted: bool = False


_signed_texts = msgspec.json.Decoder(list[SignedText]).decode

# ── thinking and text ─────────────────────────────────────────────────────────────────────────────────────────


def signed_in(held: Raw) -> list[SignedText]:
    try:
        return _signed_texts(held)
    except msgspec.DecodeError:
        return []


def read_signatures(extra: Extra) -> list[SignedText]:
    held = extra.get(SIGNATURES)
    signed = [] if held is None else signed_in(held)
    if signed:
        extra[MODELLED + SIGNATURES] = extra.pop(SIGNATURES)
    return signed


def reasoning_parts(thinking: str, signed: Sequence[SignedText]) -> list[AnyPart]:
    """The thinking, cut into what was signed and what stands between."""
    return [
        Reasoning(text, metadata=THINKING)
        if mark is None
        else Reasoning(text, Signature(mark.family, mark.data, mark.id), mark.redacted, THINKING)
        for text, mark in _cut(thinking, [mark for mark in signed if mark.field == "thinking"])
    ]


def text_parts(content: str, signed: Sequence[SignedText]) -> list[AnyPart]:
    return [
        Text(text) if mark is None else Text(text, signature=Signature(mark.family, mark.data, mark.id))
        for text, mark in _cut(content, [mark for mark in signed if mark.field == "content"])
    ]


def _cut(text: str, marks: Sequence[SignedText]) -> list[tuple[str, SignedText | None]]:
    pieces: list[tuple[str, SignedText | None]] = []
    place = 0
    for mark in sorted(marks, key=lambda mark: mark.start):
        start = max(mark.start, place)
        if text[place:start]:
            pieces.append((text[place:start], None))
        place = max(start, mark.start + mark.length)
        pieces.append((text[start:place], mark))
    if text[place:]:
        pieces.append((text[place:], None))
    return pieces


def signed_text(part: Text | Reasoning, start: int, length: int) -> SignedText | None:
    """What a part's signature becomes, if it has one."""
    signature = part.signature
    if signature is None or not signature.data:
        return None
    thinks = isinstance(part, Reasoning)
    return SignedText(
        "thinking" if thinks else "content",
        start,
        length,
        signature.family,
        signature.data,
        signature.id,
        isinstance(part, Reasoning) and part.redacted,
    )


def write_signatures(parts: Sequence[AnyPart]) -> Raw | None:
    """The signatures of reasoning and text, with their places in the joined fields."""
    signed: list[SignedText] = []
    places = {Reasoning: 0, Text: 0}
    for part in parts:
        if isinstance(part, Reasoning | Text):
            start = places[type(part)]
            mark = signed_text(part, start, len(part.text))
            if mark is not None:
                signed.append(mark)
            places[type(part)] = start + len(part.text)
    return Raw(encode_json(signed)) if signed else None
