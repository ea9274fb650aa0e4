"""Citations as a flat list of `url_citation` objects beside a text, as in Responses and Interactions."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from dragoman.codecs.reading import WireValue
from dragoman.codecs.text_offsets import TextOffsets
from dragoman.ir import AnyPart, Citation, Text
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

NOTE = "~annotation"
"""Note on a citation: the annotation as it was written."""

_raws = msgspec.json.Decoder(list[Raw]).decode


class AnnotationFormat:
    """How one API writes annotations. Positions count characters, or UTF-8 bytes if `TextOffsets` are given."""

    def __init__(
        self,
        family: str,
        known: frozenset[str],
        urls: tuple[str, ...],
        titles: tuple[str, ...],
        uncited: str,
        *,
        always_titled: bool = False,
    ) -> None:
        """`known` are the keys that a citation models; others are private to the family.

        `urls` and `titles` name the source; the first one present counts. `uncited` says why a citation without a web
        page is lost.
        """
        self.family = family
        self.known = known
        self.urls = urls
        self.titles = titles
        self.uncited = uncited
        self.always_titled = always_titled

    def read_all(self, raw_value: Raw, text: str | None = None) -> tuple[Citation, ...]:
        """Read annotations of all kinds; none if the list holds anything but objects."""
        if bytes(raw_value)[:1] != b"[":
            return ()
        offsets = None if text is None else TextOffsets(text)
        citations = []
        for raw in _raws(raw_value):
            citation = self.read(raw, offsets)
            if citation is None:
                return ()
            citations.append(citation)
        return tuple(citations)

    def read(self, raw: Raw, offsets: TextOffsets | None = None) -> Citation | None:
        found = parse_json(raw)
        if not isinstance(found, dict):
            return None
        start, end = _first(found, ("start_index",), int), _first(found, ("end_index",), int)
        if offsets is not None:
            start = None if end is None else offsets.characters(start or 0)
            end = None if end is None else offsets.characters(end)
            if start is None or end is None or start > end:
                start = end = None
        private = {key: Raw(encode_json(value)) for key, value in found.items() if key not in self.known}
        url, title = _first(found, self.urls, str), _first(found, self.titles, str)
        return Citation(url, title, None, start, end, {self.family: {NOTE: raw, **private}})

    def write(self, citation: Citation, length: int, offsets: TextOffsets | None = None) -> WireValue:
        """Return the annotation; None for a citation without a web page."""
        noted = (citation.metadata or {}).get(self.family, {}).get(NOTE)
        if noted is not None:
            return noted
        if citation.url is None:
            return None
        start = 0 if citation.start is None else citation.start
        end = length if citation.end is None else citation.end
        if offsets is not None:
            start, end = offsets.bytes(start), offsets.bytes(end)
        annotation = {"type": "url_citation", "start_index": start, "end_index": end, "url": citation.url}
        if citation.title is not None or self.always_titled:
            annotation["title"] = citation.title or ""
        return annotation

    def write_all(self, part: Text, log: LossLog, offsets: TextOffsets | None = None) -> list[WireValue]:
        """Return the annotations of a text; logs what they cannot express."""
        length = len(part.text)
        written = [self.write_reporting(part, citation, length, log, offsets) for citation in part.citations]
        return [annotation for annotation in written if annotation is not None]

    def write_reporting(
        self, part: AnyPart, citation: Citation, length: int, log: LossLog, offsets: TextOffsets | None = None
    ) -> WireValue:
        """Return the annotation, or None if there is none; logs what it cannot express."""
        annotation = self.write(citation, length, offsets) if isinstance(part, Text) else None
        if annotation is None:
            log.drop(part, "citations", "citation of a document", self.uncited)
        elif citation.cited_text is not None and NOTE not in (citation.metadata or {}).get(self.family, {}):
            log.degrade(part, "citations", "text of a citation", "annotations of this API name only the page")
        return annotation


def _first(found: dict[str, Any], keys: tuple[str, ...], kind: type) -> Any:
    """Return the first of these members that is of the kind and not empty."""
    for key in keys:
        value = found.get(key)
        if isinstance(value, kind) and value != "":
            return value
    return None
