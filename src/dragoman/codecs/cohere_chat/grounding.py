"""Documents and citations, both ways.

Documents belong to the request as a whole, or to the result of a tool. Citations belong to a message, and their ranges
are characters of its generated text, as in the intermediate format. One citation may have several sources; each is a
`Citation` of ours, and the first holds the wire's own object.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, structs

from dragoman.codecs.cohere_chat.profile import FAMILY
from dragoman.codecs.cohere_chat.wire import CitationHead, CitationOut, DocumentWire, SourceHead, SourceOut
from dragoman.codecs.common_losses import drop_cache_mark, drop_signature
from dragoman.codecs.reading import WireReader, WireValue, spliced
from dragoman.ir import Citation, Document, Metadata, Text
from dragoman.ir.notes import Extra, family_notes
from dragoman.ir.values import compact_text, encode_json, exact_json, parse_json
from dragoman.losses import LossLog

_document_reader = WireReader(DocumentWire, "cohere-chat request", path="$.documents")
_items = msgspec.json.Decoder(list[Raw]).decode
_entries = msgspec.json.Decoder(dict[str, Raw]).decode
_heads = msgspec.json.Decoder(CitationHead).decode

OF_THE_REQUEST = "~documents"
"""Note: this document was beside the messages."""
DATA = "~data"
"""Note: `data` as it was spelled."""
BARE = "~bare"
"""Note: the document was a string, without an object around it."""
CITATION = "~citation"
FURTHER = "~further"
"""Note: a further source of the citation before it."""
_DOCUMENT_FIELDS = frozenset({"text", "title", "context"})
_PLAN, _THINKING, _TEXT = "PLAN", "THINKING_CONTENT", "TEXT_CONTENT"

# ── documents ─────────────────────────────────────────────────────────────────────────────────────────────────


def decode_documents(raw: Raw) -> list[Document] | None:
    """Decode the documents of a request; None if it is not a list of them."""
    try:
        items = _items(raw)
    except msgspec.DecodeError:
        return None
    documents = []
    for index, item in enumerate(items):
        if bytes(item)[:1] == b'"':
            metadata: Metadata = {FAMILY: {OF_THE_REQUEST: Raw(b"true"), BARE: Raw(b"true")}}
            documents.append(Document(text=parse_json(item), metadata=metadata))
        else:
            wire = _document_reader.read(bytes(item), f"$.documents[{index}]")
            documents.append(decode_document(wire, {OF_THE_REQUEST: Raw(b"true")}))
    return documents


def decode_document(wire: DocumentWire, notes: Extra) -> Document:
    """Decode a document: the text under `text`, with title and context; other data as JSON text. The id is noted."""
    if wire.extra is not UNSET:
        notes = {**notes, **wire.extra}
    if wire.id is not UNSET:
        notes["id"] = Raw(encode_json(wire.id))
    notes[DATA] = wire.data
    data = parse_json(wire.data)
    if isinstance(data, str):
        return Document(text=data, metadata={FAMILY: notes})
    if (
        isinstance(data, dict)
        and "text" in data
        and data.keys() <= _DOCUMENT_FIELDS
        and all(isinstance(value, str) for value in data.values())
    ):
        fields = (data.get("title"), data.get("context"))
        return Document(text=data["text"], title=fields[0], context=fields[1], metadata={FAMILY: notes})
    return Document(text=compact_text(wire.data), media_type="application/json", metadata={FAMILY: notes})


def encode_document(part: Document, log: LossLog) -> WireValue:
    """Encode a document with text; None for any other (logged)."""
    if part.text is None:
        log.drop(part, "", "document", "this API takes documents as text only")
        return None
    if part.cache is not None:
        drop_cache_mark(part, log)
    if part.signature is not None:
        drop_signature(part, part.signature, log)
    notes: Extra = (part.metadata or {}).get(FAMILY, {})
    if BARE in notes:
        return Raw(encode_json(part.text))
    if part.cite is False:
        log.degrade(part, "cite", "citations turned off", "this API cites all documents or none")
    raw = notes.get(DATA)
    if raw is None:
        raw = _data_of(part)
    own = {key: value for key, value in notes.items() if key != "id"}
    document_id: Any = notes.get("id", UNSET)
    return spliced(DocumentWire(raw, document_id), own) if own else DocumentWire(raw, document_id)


def _data_of(part: Document) -> Raw:
    if part.media_type == "application/json" and part.title is None and part.context is None and part.text is not None:
        parsed = exact_json(part.text)
        if parsed is not None and bytes(parsed)[:1] == b"{":
            return parsed
    fields = {"title": part.title, "text": part.text, "context": part.context}
    return Raw(encode_json({key: value for key, value in fields.items() if value is not None}))


# ── citations ─────────────────────────────────────────────────────────────────────────────────────────────────


class Cited(NamedTuple):
    """One citation of the wire: its sources, and which text of the message it is about."""

    citations: tuple[Citation, ...]
    is_plan: bool
    is_thinking: bool
    content_index: int | None
    """Missing on older models."""


def decode_citations(raw: Raw) -> list[Cited] | None:
    """Decode the citations of a message; None if it is not a list of them."""
    try:
        return [decode_citation(item) for item in _items(raw)]
    except msgspec.DecodeError:
        return None


def decode_citation(raw: Raw) -> Cited:
    head = _heads(raw)
    entries = _entries(raw)
    raws = _items(entries["sources"]) if head.sources else [Raw(b"{}")]
    citations = [_decode_source(head, *each) for each in zip(head.sources or (SourceHead(),), raws, strict=True)]
    first, *further = citations
    for key, value in entries.items():
        if key not in CitationHead.__struct_fields__:
            first = _noted(first, key, value)
    noted = [_noted(first, CITATION, raw), *(_noted(one, FURTHER, Raw(b"true")) for one in further)]
    return Cited(tuple(noted), head.type == _PLAN, head.type == _THINKING, head.content_index)


def _noted(citation: Citation, key: str, value: Raw) -> Citation:
    return structs.replace(citation, metadata={FAMILY: {**family_notes(FAMILY, citation.metadata), key: value}})


def _decode_source(head: CitationHead, source: SourceHead, raw: Raw) -> Citation:
    """Decode what is cited: the document's text, or the output of a tool as text. Unknown keys are noted.

    A document with other members than title, URL and text is data: without a text, its members are the cited text;
    beside a text, they are noted, to be reported.
    """
    document: Any = {}
    notes: Extra = {key: value for key, value in _entries(raw).items() if key not in SourceHead.__struct_fields__}
    if source.document is not UNSET:
        document = parse_json(source.document)
    elif source.tool_output is not UNSET:
        metadata = {FAMILY: notes} if notes else None
        return Citation(None, source.id, _output_text(source.tool_output), head.start, head.end, metadata)
    if not isinstance(document, dict):
        document = {}
    named = {key: value for key in ("url", "title", "text") if isinstance(value := document.get(key), str)}
    further = {key: value for key, value in document.items() if key not in named and key != "id"}
    url, title, text = named.get("url"), named.get("title"), named.get("text")
    title = title or (None if url or text else source.id)
    if text is None and further:
        only = next(iter(further.values())) if len(further) == 1 else None
        text, further = only if isinstance(only, str) else compact_text(Raw(encode_json(further))), {}
    notes |= {key: Raw(encode_json(value)) for key, value in further.items()}
    return Citation(url, title, text, head.start, head.end, {FAMILY: notes} if notes else None)


def _output_text(raw: Raw) -> str:
    output = parse_json(raw)
    content = output.get("content") if isinstance(output, dict) and len(output) == 1 else None
    return content if isinstance(content, str) else compact_text(raw)


def encode_citations(text: Text, index: int | None, log: LossLog) -> list[WireValue]:
    """Encode the citations of one text. `index`: its position in the content of the message; None for a plan."""
    wires = []
    for given in text.citations:
        citation = given
        if FAMILY not in (given.metadata or {}) and given.end is not None and given.end > len(text.text):
            log.degrade(text, "citations", "range of a citation", "it ends behind the text: cut at the end of the text")
            start = None if given.start is None else min(given.start, len(text.text))
            citation = structs.replace(given, start=start, end=len(text.text))
        wire = encode_citation(citation, text.text, index)
        if wire is not None:
            wires.append(wire)
    return wires


def encode_citation(citation: Citation, text: str, index: int | None) -> WireValue:
    """Encode one citation, or return None for a further source of one that is written as a whole."""
    notes = (citation.metadata or {}).get(FAMILY, {})
    if FURTHER in notes:
        return None
    if CITATION in notes:
        return notes[CITATION]
    start, end = citation.start, citation.end
    fields = {"title": citation.title, "url": citation.url, "text": citation.cited_text}
    document = {key: value for key, value in fields.items() if value is not None}
    wire = CitationOut(
        start,
        end,
        text[start:end] if start is not None and end is not None and end <= len(text) else None,
        (SourceOut("document", citation.url or citation.title, document),),
        index,
        _PLAN if index is None else _TEXT,
    )
    return spliced(wire, notes) if notes else wire
