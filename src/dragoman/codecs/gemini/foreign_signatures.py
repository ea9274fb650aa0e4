"""Things generateContent has no field for, and the slots that carry them.

Reasoning of other families, and signatures of theirs on other parts: a client of this format echoes `thoughtSignature`
untouched, so a tagged one, base64 of "dragoman:1:" and a JSON bundle, rides where Google puts its own: on the call that
follows, else on the next part that is no thought; in a stream on an empty part before the text, so that no fragment of
it is signed.
Citations: `groundingMetadata`, whose offsets count UTF-8 bytes.
"""

from __future__ import annotations

import binascii
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw, Struct, structs

from dragoman.codecs.gemini.profile import FAMILY
from dragoman.codecs.google_signatures import is_native_thought
from dragoman.codecs.text_offsets import TextOffsets
from dragoman.ir import AnyPart, Citation, Reasoning, Signature, Text
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

# ── signatures ────────────────────────────────────────────────────────────────────────────────────────────────

_TAG = b"dragoman:1:"
_TAGGED = "ZHJhZ29tYW46MTp7"
"""How every tagged signature starts, in either base64 alphabet: the tag and the brace that opens the bundle."""
_URL_SAFE = str.maketrans("-_", "+/")


class Bundle(Struct, frozen=True, omit_defaults=True):
    """What a tagged signature carries: reasoning that came before its part, and the part's own signature."""

    reasoning: tuple[Reasoning, ...] = ()
    signature: Signature | None = None
    last: bool = False
    """No part followed: the thought that shows the last piece carries it all."""
    early: int = 0
    """The reasoning stood before so many texts in front of this part."""
    hollow: bool = False
    """The part is empty: it was made for the signature alone."""
    overtaken: tuple[Reasoning, ...] = ()
    """Reasoning of a stream that ended only after later parts had been told: it stands wherever its text stands."""


_decode_bundle = msgspec.json.Decoder(Bundle).decode


def is_tagged(signature: str) -> bool:
    return signature.startswith(_TAGGED)


def pack(bundle: Bundle) -> str:
    return binascii.b2a_base64(_TAG + encode_json(bundle), newline=False).decode()


def unpack(signature: str) -> Bundle | None:
    """The bundle in a tagged signature. SDKs re-encode bytes, so either alphabet will do, padded or not."""
    text = signature.translate(_URL_SAFE).rstrip("=")
    try:
        data = binascii.a2b_base64(text + "=" * (-len(text) % 4))
        return _decode_bundle(data.removeprefix(_TAG))
    except (ValueError, msgspec.DecodeError):
        return None


HIDDEN = "~hidden"
"""On carried reasoning: the client did not echo the thought that showed it."""
_HIDDEN_NOTE = {HIDDEN: Raw(b"true")}


def unshow(parts: list[AnyPart], carried: Sequence[Reasoning], lowest: int = 0) -> list[Reasoning]:
    """Remove the plain thoughts at the end of `parts` that showed this reasoning; note which ones were not there.

    `lowest`: parts before this place are not looked at.
    """
    if not carried:
        return []
    start = len(parts)
    while start > lowest and _is_plain_thought(parts[start - 1]):
        start -= 1
    thoughts = _places_of_thoughts(parts, start)
    shown: set[int] = set()
    kept: list[Reasoning] = []
    for reasoning in carried:
        if places := thoughts.get(reasoning.text):
            shown.add(places.popleft())
        elif reasoning.text:
            metadata = {**(reasoning.metadata or {}), FAMILY: _HIDDEN_NOTE}
            reasoning = structs.replace(reasoning, metadata=metadata)  # noqa: PLW2901
        kept.append(reasoning)
    if shown:
        parts[start:] = [parts[place] for place in range(start, len(parts)) if place not in shown]
    return kept


def put_back(parts: list[AnyPart], overtaken: Sequence[Reasoning], lowest: int = 0) -> None:
    """Reasoning in the place of the plain thought that showed it; where there is none, at the end."""
    thoughts = _places_of_thoughts(parts, lowest)
    for reasoning in overtaken:
        if places := thoughts.get(reasoning.text):
            parts[places.popleft()] = reasoning
        else:
            parts.append(reasoning)


def _places_of_thoughts(parts: Sequence[AnyPart], start: int) -> dict[str, deque[int]]:
    """Where plain thoughts stand, by their text."""
    places: dict[str, deque[int]] = {}
    for place in range(start, len(parts)):
        part = parts[place]
        if isinstance(part, Reasoning) and _is_plain_thought(part):
            places.setdefault(part.text, deque()).append(place)
    return places


def _is_plain_thought(part: AnyPart) -> bool:
    return isinstance(part, Reasoning) and part.signature is None and is_native_thought(part)


def carried_form(part: Reasoning) -> Reasoning:
    """The reasoning as it stood before it travelled."""
    own = (part.metadata or {}).get(FAMILY)
    if own is None or HIDDEN not in own:
        return part
    others = {family: notes for family, notes in (part.metadata or {}).items() if family != FAMILY}
    return structs.replace(part, metadata=others or None)


# ── citations ─────────────────────────────────────────────────────────────────────────────────────────────────


class _Segment(Struct, frozen=True, rename="camel"):
    part_index: int = 0
    start_index: int = 0
    end_index: int | None = None
    text: str | None = None


class _Support(Struct, frozen=True, rename="camel"):
    segment: _Segment = _Segment()
    grounding_chunk_indices: tuple[int, ...] = ()


class _Grounding(Struct, frozen=True, rename="camel"):
    grounding_chunks: tuple[dict[str, Any], ...] = ()
    grounding_supports: tuple[_Support, ...] = ()


_decode_grounding = msgspec.json.Decoder(_Grounding).decode
_CITING = {"groundingChunks", "groundingSupports"}

Span: TypeAlias = tuple[int, int | None, int | None]
"""Index of a part, and the characters of its text."""


def read_grounding(held: Raw, parts: Sequence[AnyPart]) -> tuple[list[AnyPart], bool]:
    """The parts with their citations, and whether those say all that the metadata says."""
    try:
        grounding = _decode_grounding(held)
    except msgspec.DecodeError:
        return list(parts), False
    cited: dict[int, list[Citation]] = {}
    crossed = True
    texts = {
        index: (part.text, TextOffsets(part.text))
        for index, part in enumerate(parts if grounding.grounding_supports else ())
        if isinstance(part, Text)
    }
    for support in grounding.grounding_supports:
        span = _span(support.segment, texts)
        for index in support.grounding_chunk_indices:
            source = _source(grounding.grounding_chunks, index)
            if source is None or span is None:
                crossed = False
                continue
            url, title = source
            cited.setdefault(span[0], []).append(Citation(url, title, None, span[1], span[2]))
    signed = [
        structs.replace(part, citations=tuple(cited[index])) if index in cited else part
        for index, part in enumerate(parts)
    ]
    return signed, crossed and bool(cited) and parse_json(held).keys() <= _CITING


def _source(chunks: Sequence[Mapping[str, Any]], index: int) -> tuple[str, str | None] | None:
    """(URL, title) of a chunk: web, maps or retrievedContext."""
    if not 0 <= index < len(chunks):
        return None
    for source in chunks[index].values():
        if isinstance(source, Mapping) and isinstance(source.get("uri"), str):
            title = source.get("title")
            return source["uri"], title if isinstance(title, str) else None
    return None


_Texts: TypeAlias = Mapping[int, tuple[str, TextOffsets]]
"""The texts of an answer, by the index of their parts."""


def _span(segment: _Segment, texts: _Texts) -> Span | None:
    """Where a segment lies. `partIndex` is often left out though other parts come first: its text is the judge."""
    named = [segment.part_index] if segment.part_index in texts else []
    for index in [*named, *texts]:
        found = _characters(*texts[index], segment)
        if found is not None:
            return index, *found
    for index, (text, _) in texts.items():
        if segment.text and segment.text in text:
            start = text.index(segment.text)
            return index, start, start + len(segment.text)
    return (max(texts), None, None) if texts else None


def _characters(text: str, offsets: TextOffsets, segment: _Segment) -> tuple[int, int] | None:
    start = offsets.characters(segment.start_index)
    end = offsets.length if segment.end_index is None else offsets.characters(segment.end_index)
    if start is None or end is None or start > end:
        return None
    if segment.text is not None and text[start:end] != segment.text:
        return None
    return start, end


def write_grounding(parts: Sequence[AnyPart], places: Sequence[int], log: LossLog) -> Raw | None:
    """The citations of these parts as `groundingMetadata`; `places` tells at which wire part each of them stands."""
    chunks: dict[tuple[str, str | None], int] = {}
    supports: dict[tuple[int, int, int], list[int]] = {}
    texts: dict[int, tuple[str, TextOffsets]] = {}
    for part, place in zip(parts, places, strict=True):
        if not isinstance(part, Text):
            continue
        for citation in part.citations:
            if citation.url is None:
                log.drop(part, "citations", "citation of a document", "grounding metadata cites pages with an address")
                continue
            if citation.cited_text is not None:
                log.drop(part, "citations", "cited text", "grounding metadata quotes the answer, not the source")
            text = part.text
            start = 0 if citation.start is None else citation.start
            end = len(text) if citation.end is None else citation.end
            chunk = chunks.setdefault((citation.url, citation.title), len(chunks))
            supports.setdefault((place, start, end), []).append(chunk)
            if place not in texts:
                texts[place] = (text, TextOffsets(text))
    if not chunks:
        return None
    webs = [{"web": {"uri": url} if title is None else {"uri": url, "title": title}} for url, title in chunks]
    entries = [
        {"segment": _segment(*texts[place], place, start, end), "groundingChunkIndices": indices}
        for (place, start, end), indices in supports.items()
    ]
    return Raw(encode_json({"groundingChunks": webs, "groundingSupports": entries}))


def _segment(text: str, offsets: TextOffsets, place: int, start: int, end: int) -> dict[str, Any]:
    first, last = offsets.bytes(start), offsets.bytes(end)
    segment: dict[str, Any] = {"partIndex": place} if place else {}
    if first:
        segment["startIndex"] = first
    return {**segment, "endIndex": last, "text": text[start:end]}
