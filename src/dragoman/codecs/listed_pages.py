"""The pages that a Chat server lists beside its answer: `citations` and `search_results` of Perplexity and xAI.

Perplexity marks the places in the text, `[2]` for the second page. xAI lists the pages only. They become citations of
the text; what no citation holds (pages without a place, dates, excerpts) stays with the answer and is reported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from dragoman.ir import AnyPart, Citation, Text
from dragoman.ir.notes import MODELLED, Extra, family_notes
from dragoman.ir.values import parse_json

FAMILY = "openai"
CITATIONS, RESULTS = "citations", "search_results"
KEYS = (CITATIONS, RESULTS)
LISTED = "~listed"
"""Note: the citation comes from a list beside the answer, which is written instead of an annotation."""

_MARKER = re.compile(r"\[([1-9][0-9]{0,2})\]")
_OF_CITATIONS = frozenset({"url", "title"})


def has_sources(extra: Extra) -> bool:
    return CITATIONS in extra or RESULTS in extra


def is_listed(part: AnyPart) -> bool:
    """Whether the citations of this part come from a list beside the answer: all of them do, or none."""
    return type(part) is Text and bool(part.citations) and LISTED in family_notes(FAMILY, part.citations[0].metadata)


def cite_sources(text: str, extra: Extra) -> list[Citation]:
    """Return the citations of a text; keys of `extra` whose whole content they hold become notes."""
    results = _pages(extra.get(RESULTS))
    pages = _pages(extra.get(CITATIONS)) if CITATIONS in extra else results
    if not pages or not text:
        return []
    titles = {page["url"]: page.get("title") for page in results or ()}
    cited: list[Citation] = []
    for found in _MARKER.finditer(text):
        number = int(found[1])
        if number <= len(pages):
            cited.append(_citation(pages[number - 1], titles, found.start(), found.end()))
    if not cited:
        cited = [_citation(page, titles, None, None) for page in pages]
    urls = {citation.url for citation in cited}
    for key in KEYS:
        listed = _pages(extra.get(key))
        if listed and all(page["url"] in urls and page.keys() <= _OF_CITATIONS for page in listed):
            extra[MODELLED + key] = extra.pop(key)
    return cited


def _pages(raw: Raw | None) -> list[dict[str, Any]] | None:
    """Return the pages of a list of addresses, or of objects with an address; None for any other value."""
    listed = None if raw is None else parse_json(raw)
    if not isinstance(listed, list):
        return None
    pages = [{"url": entry} if isinstance(entry, str) else entry for entry in listed]
    return pages if all(isinstance(page, dict) and isinstance(page.get("url"), str) for page in pages) else None


def _citation(page: Mapping[str, Any], titles: Mapping[str, Any], start: int | None, end: int | None) -> Citation:
    title = page.get("title") or titles.get(page["url"])
    metadata = {FAMILY: {LISTED: Raw(b"true")}}
    return Citation(page["url"], title if isinstance(title, str) else None, None, start, end, metadata)
