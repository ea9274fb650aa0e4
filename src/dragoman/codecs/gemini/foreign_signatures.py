"""Content that generateContent has no field for, and the slots that carry it.

Reasoning of other families and their signatures on other parts: a client of this format echoes `thoughtSignature`
unchanged, so a tagged signature (base64 of "dragoman:1:" and a JSON bundle) is put where Google puts its own: on the
call that follows, else on the next part that is not a thought. In a stream it is on an empty part before the text, so
that no text fragment is signed.

Citations: `groundingMetadata`, whose offsets count UTF-8 bytes.
"""

from __future__ import annotations

import binascii
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, structs

from dragoman.codecs.gemini.profile import FAMILY
from dragoman.codecs.google_signatures import is_native_thought
from dragoman.codecs.text_offsets import TextOffsets
from dragoman.ir import AnyPart, Citation, Metadata, Reasoning, Signature, Text
from dragoman.ir.notes import Extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

# ── signatures ────────────────────────────────────────────────────────────────────────────────────────────────

_TAG = b"dragoman:1:"
_TAGGED = "ZHJhZ29tYW46MTp7"
"""Prefix of every tagged signature, in either base64 alphabet: the tag and the brace that opens the bundle."""
_URL_SAFE = str.maketrans("-_", "+/")


class Bundle(Struct, frozen=True, omit_defaults=True):
    """Content of a tagged signature: reasoning that came before its part, and the part's own signature."""

    reasoning: tuple[Reasoning, ...] = ()
    signature: Signature | None = None
    last: bool = False
    """No part followed: the thought that shows the last piece carries everything."""
    early: int = 0
    """Number of texts between the reasoning and this part."""
    hollow: bool = False
    """The part is empty: it was added only to carry the signature."""
    overtaken: tuple[Reasoning, ...] = ()
    """Streamed reasoning that ended after later parts had already been sent; its position is that of its text."""


_decode_bundle = msgspec.json.Decoder(Bundle).decode


def is_tagged(signature: str) -> bool:
    return signature.startswith(_TAGGED)


def pack(bundle: Bundle) -> str:
    return binascii.b2a_base64(_TAG + encode_json(bundle), newline=False).decode()


def unpack(signature: str) -> Bundle | None:
    """Decode the bundle in a tagged signature; None if it is not one.

    SDKs re-encode bytes, so either base64 alphabet is read, padded or not.
    """
    text = signature.translate(_URL_SAFE).rstrip("=")
    try:
        data = binascii.a2b_base64(text + "=" * (-len(text) % 4))
        return _decode_bundle(data.removeprefix(_TAG))
    except (ValueError, msgspec.DecodeError):
        return None


HIDDEN = "~hidden"
"""Mark on carried reasoning: the client did not echo the thought that showed it."""
_HIDDEN_NOTE = {HIDDEN: Raw(b"true")}


def unshow(parts: list[AnyPart], carried: Sequence[Reasoning], lowest: int = 0) -> list[Reasoning]:
    """Remove the plain thoughts at the end of `parts` that showed this reasoning; mark the reasoning without one.

    Parts before index `lowest` are not examined.
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
    """Put each reasoning in the place of the plain thought that showed it; without such a thought, at the end."""
    thoughts = _places_of_thoughts(parts, lowest)
    for reasoning in overtaken:
        if places := thoughts.get(reasoning.text):
            parts[places.popleft()] = reasoning
        else:
            parts.append(reasoning)


def _places_of_thoughts(parts: Sequence[AnyPart], start: int) -> dict[str, deque[int]]:
    """Return the indices of plain thoughts, by their text."""
    places: dict[str, deque[int]] = {}
    for place in range(start, len(parts)):
        part = parts[place]
        if isinstance(part, Reasoning) and _is_plain_thought(part):
            places.setdefault(part.text, deque()).append(place)
    return places


def _is_plain_thought(part: AnyPart) -> bool:
    return isinstance(part, Reasoning) and part.signature is None and is_native_thought(part)


def carried_form(part: Reasoning) -> Reasoning:
    """Return the reasoning as it was before it was carried."""
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
    confidence_scores: Raw | UnsetType = UNSET
    rendered_parts: Raw | UnsetType = UNSET


class _Grounding(Struct, frozen=True, rename="camel"):
    grounding_chunks: tuple[Raw, ...] = ()
    grounding_supports: tuple[_Support, ...] = ()


_decode_grounding = msgspec.json.Decoder(_Grounding).decode
GROUNDING = "groundingMetadata"
_CHUNKS = "groundingChunks"
_CITING = {_CHUNKS, "groundingSupports"}
_entries = msgspec.json.Decoder(Extra).decode
_chunk_members = msgspec.json.Decoder(dict[str, Extra]).decode

Span: TypeAlias = tuple[int, int | None, int | None]
"""Index of a part, and the range of characters in its text."""


def read_grounding(raw: Raw, parts: Sequence[AnyPart]) -> tuple[list[AnyPart], Extra | None]:
    """Return the parts with their citations, and what the metadata has beside these (None: not all could be read)."""
    try:
        grounding = _decode_grounding(raw)
    except msgspec.DecodeError:
        return list(parts), None
    cited: dict[int, list[Citation]] = {}
    crossed = True
    used: set[int] = set()
    texts = {
        index: (part.text, TextOffsets(part.text))
        for index, part in enumerate(parts if grounding.grounding_supports else ())
        if isinstance(part, Text)
    }
    for support in grounding.grounding_supports:
        span = _span(support.segment, texts)
        beside = _beside_support(support)
        for index in support.grounding_chunk_indices:
            source = _source(grounding.grounding_chunks, index)
            if source is None or span is None:
                crossed = False
                continue
            notes = beside if index in used else {**source.further, **beside}
            used.add(index)
            metadata: Metadata | None = {FAMILY: notes} if notes else None
            citation = Citation(source.url, source.title, source.text, span[1], span[2], metadata)
            cited.setdefault(span[0], []).append(citation)
            beside = {}
    signed = [
        structs.replace(part, citations=tuple(cited[index])) if index in cited else part
        for index, part in enumerate(parts)
    ]
    if not (crossed and cited):
        return signed, None
    uncited = {f"{_CHUNKS}[{i}]": chunk for i, chunk in enumerate(grounding.grounding_chunks) if i not in used}
    return signed, {key: value for key, value in _entries(raw).items() if key not in _CITING} | uncited


def _beside_support(support: _Support) -> Extra:
    """Return what a support says beside its place and its sources."""
    found: Extra = {}
    if support.confidence_scores is not UNSET:
        found["confidenceScores"] = support.confidence_scores
    if support.rendered_parts is not UNSET:
        found["renderedParts"] = support.rendered_parts
    return found


class _Source(NamedTuple):
    """What a citation says of its chunk. `further` are the members that only Google understands."""

    url: str | None
    title: str | None
    text: str | None
    further: Extra


def _source(chunks: Sequence[Raw], index: int) -> _Source | None:
    """Return the source of a chunk: web, maps, image or retrievedContext. Files that were searched have no address."""
    if not 0 <= index < len(chunks):
        return None
    try:
        ((_, members),) = _chunk_members(chunks[index]).items()
    except (msgspec.DecodeError, ValueError):  # not an object, or not one with a single kind of source
        return None
    further = dict(members)
    url, title, text = (_taken(further, *names) for names in (("uri", "sourceUri"), ("title",), ("text",)))
    return None if url is None and title is None and text is None else _Source(url, title, text, further)


def _taken(members: Extra, *names: str) -> str | None:
    """Remove the first of these members that is a text and return it."""
    for name in names:
        value = parse_json(members[name]) if name in members else None
        if isinstance(value, str):
            del members[name]
            return value
    return None


_Texts: TypeAlias = Mapping[int, tuple[str, TextOffsets]]
"""The texts of an answer, by part index."""


def _span(segment: _Segment, texts: _Texts) -> Span | None:
    """Find the text range of a segment.

    `partIndex` is often omitted although other parts come first, so the segment's text decides.
    """
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
    """Encode the citations of these parts as `groundingMetadata`; `places` are their indices among the wire parts."""
    chunks: dict[_Page, int] = {}
    supports: dict[tuple[int, int, int], list[int]] = {}
    texts: dict[int, tuple[str, TextOffsets]] = {}
    for part, place in zip(parts, places, strict=True):
        if not isinstance(part, Text):
            continue
        for citation in part.citations:
            url, title, quoted = citation.url, citation.title, citation.cited_text
            if url is None and title is None and not quoted:
                log.drop(part, "citations", "citation", "it names neither a page nor a document")
                continue
            if url is not None and quoted is not None:
                log.drop(part, "citations", "cited text", "grounding metadata does not quote pages")
                quoted = None
            text = part.text
            start = 0 if citation.start is None else citation.start
            end = len(text) if citation.end is None else citation.end
            chunk = chunks.setdefault((url, title, quoted), len(chunks))
            supports.setdefault((place, start, end), []).append(chunk)
            if place not in texts:
                texts[place] = (text, TextOffsets(text))
    if not chunks:
        return None
    entries = [
        {"segment": _segment(*texts[place], place, start, end), "groundingChunkIndices": indices}
        for (place, start, end), indices in supports.items()
    ]
    return Raw(encode_json({_CHUNKS: [_chunk(page) for page in chunks], "groundingSupports": entries}))


_Page: TypeAlias = tuple[str | None, str | None, str | None]
"""URL, title and quoted text of what a citation names; a document has no URL."""


def _chunk(page: _Page) -> dict[str, dict[str, str]]:
    url, title, quoted = page
    members = {"uri": url, "title": title, "text": quoted}
    return {"retrievedContext" if url is None else "web": {key: value for key, value in members.items() if value}}


def _segment(text: str, offsets: TextOffsets, place: int, start: int, end: int) -> dict[str, Any]:
    first, last = offsets.bytes(start), offsets.bytes(end)
    segment: dict[str, Any] = {"partIndex": place} if place else {}
    if first:
        segment["startIndex"] = first
    return {**segment, "endIndex": last, "text": text[start:end]}
