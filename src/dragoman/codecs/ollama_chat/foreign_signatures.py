"""Content that /api/chat has no field for, and the slots that carry it.

Signatures of other families: clients keep an answer's message as it is, and the server ignores keys it does not know.
So a call has its signature under `signature`, and the message has those of its thinking and text under `signatures`,
each with the range of the joined `thinking` or `content` that it signs.

Errors of tools: the JSON text {"error": …}. Anything else that a message of this API cannot hold is reported.
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
"""On reasoning that came in this format: it may be sent back to a server of this format."""

SIGNATURES = "signatures"


class SignedText(Struct, frozen=True, omit_defaults=True):
    """The family of a signature, and which characters of which field it signs."""

    field: Literal["thinking", "content"]
    start: int
    length: int
    family: str
    data: str
    id: str | None = None
    redacted: bool = False


_signed_texts = msgspec.json.Decoder(list[SignedText]).decode

# ── thinking and text ─────────────────────────────────────────────────────────────────────────────────────────


def read_signed_texts(raw: Raw) -> list[SignedText]:
    try:
        return _signed_texts(raw)
    except msgspec.DecodeError:
        return []


def read_signatures(extra: Extra) -> list[SignedText]:
    raw = extra.get(SIGNATURES)
    signed = [] if raw is None else read_signed_texts(raw)
    if signed:
        extra[MODELLED + SIGNATURES] = extra.pop(SIGNATURES)
    return signed


def reasoning_parts(thinking: str, signed: Sequence[SignedText]) -> list[AnyPart]:
    """Return the thinking, split into signed pieces and those between them."""
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
    """Split a text at the ranges of its signatures; pieces without one have None."""
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
    """Return a part's signature with the range it signs, or None."""
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
    """Encode the signatures of reasoning and text, with their positions in the joined fields."""
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
