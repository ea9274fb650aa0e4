"""Where in a document or search result a citation points: the same four kinds in Messages and in Converse.

Each codec notes the place in a common form beside its own keys, and the other one writes it in its own words. Bounds
are the same numbers in both: characters and blocks are counted from 0, pages from 1, ends are exclusive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from dragoman.ir import Citation
from dragoman.ir.notes import CITED_PLACE
from dragoman.ir.values import encode_json, parse_json

SEARCH_RESULT = "search_result_location"
# Type of a citation in Messages -> its keys of index, start and end, and the location's key in Converse.
_MESSAGES: dict[str, tuple[str, str, str, str]] = {
    "char_location": ("document_index", "start_char_index", "end_char_index", "documentChar"),
    "page_location": ("document_index", "start_page_number", "end_page_number", "documentPage"),
    "content_block_location": ("document_index", "start_block_index", "end_block_index", "documentChunk"),
    SEARCH_RESULT: ("search_result_index", "start_block_index", "end_block_index", "searchResultLocation"),
}
_CONVERSE = {location: kind for kind, (_, _, _, location) in _MESSAGES.items()}
MESSAGES_KEYS = frozenset({key for keys in _MESSAGES.values() for key in keys[:3]} | {"source"})
"""Keys of a citation in Messages that say its place."""
CONVERSE_KEYS = frozenset({"location", "source"})


def _note(kind: str, numbers: list[Any], source: object) -> dict[str, Raw]:
    if any(type(number) is not int for number in numbers):
        return {}
    if kind == SEARCH_RESULT:
        return {CITED_PLACE: Raw(encode_json([kind, *numbers, source]))} if isinstance(source, str) else {}
    return {CITED_PLACE: Raw(encode_json([kind, *numbers]))}


def place_in_messages(citation: Mapping[str, Any]) -> dict[str, Raw]:
    """Return the note for a citation of Messages; empty if it says no place."""
    kind = citation.get("type")
    if not isinstance(kind, str) or kind not in _MESSAGES:
        return {}
    return _note(kind, [citation.get(key) for key in _MESSAGES[kind][:3]], citation.get("source"))


def place_in_converse(citation: Mapping[str, Any]) -> dict[str, Raw]:
    """Return the note for a citation of Converse; empty if it says no place, or more than we know."""
    location = citation.get("location")
    if not isinstance(location, dict) or len(location) != 1:
        return {}
    ((name, place),) = location.items()
    kind = _CONVERSE.get(name)
    index = "searchResultIndex" if kind == SEARCH_RESULT else "documentIndex"
    if kind is None or not isinstance(place, dict) or not place.keys() <= {index, "start", "end"}:
        return {}
    return _note(kind, [place.get(index), place.get("start"), place.get("end")], citation.get("source"))


def _place_of(citation: Citation) -> list[Any] | None:
    for notes in (citation.metadata or {}).values():
        if CITED_PLACE in notes:
            place: list[Any] = parse_json(notes[CITED_PLACE])
            return place
    return None


def for_messages(citation: Citation) -> dict[str, Any] | None:
    """Return the citation as Messages spells it; None if it says no place in a document."""
    place = _place_of(citation)
    if place is None:
        return None
    kind, index, start, end, *source = place
    keys = _MESSAGES[kind]
    head = {"source": source[0], "title": citation.title} if source else {"document_title": citation.title}
    numbers = {keys[0]: index, keys[1]: start, keys[2]: end}
    return {"type": kind, "cited_text": citation.cited_text or "", **numbers, **head}


def for_converse(citation: Citation) -> dict[str, Any]:
    """Return the place of a citation as Converse spells it; empty if it says no place in a document."""
    place = _place_of(citation)
    if place is None:
        return {}
    kind, index, start, end, *source = place
    key = "searchResultIndex" if source else "documentIndex"
    location = {_MESSAGES[kind][3]: {key: index, "start": start, "end": end}}
    return {"source": source[0], "location": location} if source else {"location": location}
