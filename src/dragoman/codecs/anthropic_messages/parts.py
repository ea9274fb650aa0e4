"""Blocks and parts, one by one, both ways. Messages, calls and results are in messages.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, get_args

import msgspec
from msgspec import UNSET, Raw, UnsetType, structs

from dragoman.codecs.anthropic_messages import foreign_signatures
from dragoman.codecs.anthropic_messages.caching import FAMILY, CacheMarks, Marked, decode_mark, encode_mark
from dragoman.codecs.anthropic_messages.hosted_tools import HOSTED, NOT_ENCRYPTED
from dragoman.codecs.anthropic_messages.wire import (
    Base64Source,
    Block,
    BlockHead,
    CacheControl,
    CitationHead,
    CitationsSwitch,
    ContentSource,
    DocumentBlock,
    FileSource,
    ImageBlock,
    RedactedThinkingBlock,
    SearchResultBlock,
    TextBlock,
    TextSource,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UrlSource,
    WholeBlock,
)
from dragoman.codecs.block_encoder import BlockEncoder, Carriers
from dragoman.codecs.common_losses import drop_signature
from dragoman.codecs.document_citations import for_messages, place_in_messages
from dragoman.codecs.media import (
    TEXT_TYPES,
    as_text_document,
    is_fetched,
    is_refused_image,
    text_in,
    transcript,
    type_of_address,
)
from dragoman.codecs.part_handlers import PartHandlers
from dragoman.codecs.reading import WireReader, WireValue, encode_with_extra, keep, restore, spliced
from dragoman.codecs.search_results import read_search_result, search_fields
from dragoman.codecs.shared_tools import SharedTools, goes_back
from dragoman.codecs.wire_values import Unmodelled, Wire
from dragoman.errors import DecodeError
from dragoman.ir import (
    AnyPart,
    Audio,
    Cache,
    Citation,
    Document,
    Image,
    Metadata,
    Opaque,
    Reasoning,
    Refusal,
    Request,
    SearchResult,
    ServerToolCall,
    ServerToolResult,
    Signature,
    Text,
    ToolResult,
)
from dragoman.ir.notes import MODELLED, TOOL_REFERENCE, WITHIN, Extra, family_notes, inner_extra
from dragoman.ir.values import encode_json, parse_json, to_raw

_block_head = msgspec.json.Decoder(BlockHead).decode
_citation_head = msgspec.json.Decoder(CitationHead).decode
_marks = WireReader(CacheControl, "anthropic-messages cache mark")
_cache_head = msgspec.json.Decoder(Cache | None).decode
_entries = msgspec.json.Decoder(dict[str, Raw]).decode
_CITED = frozenset({"type", "cited_text", "url", "title", "document_title"})
"""Keys that a citation models; others are private to the family."""

"""Key of the metadata of a text that is the name of a found tool: the block itself."""
NO_CITATIONS: Metadata = {FAMILY: {"~citations": Raw(b"null")}}
"""On a text of a model that could have cited but did not."""

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def decode_text(wire: TextBlock) -> Text:
    citations, mark = wire.citations, wire.cache_control
    if mark is UNSET and wire.extra is UNSET:
        if citations is UNSET:
            return Text(wire.text)
        if citations is None:
            return Text(wire.text, metadata=NO_CITATIONS)
    notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    if citations is None or citations == []:
        notes["~citations"] = Raw(encode_json(citations))
    cited = tuple([decode_citation(citation) for citation in citations]) if citations else ()
    cache = decode_mark(mark, notes)
    return Text(wire.text, cited, cache, metadata={FAMILY: notes} if notes else None)


_SHOWN: Metadata = {FAMILY: {"~shown": Raw(b"true")}}
"""Note on a citation of a document of another provider: its number is a placeholder, which was reported before."""


def decode_citation(raw: Raw) -> Citation:
    notes = {"~citation": raw}
    try:
        head = _citation_head(raw)
    except msgspec.ValidationError:
        return Citation(metadata={FAMILY: notes})
    title = head.title if head.document_title is None else head.document_title
    if NOT_ENCRYPTED in (head.encrypted_index, head.file_id):  # another provider's, as we showed it to the client
        return Citation(head.url, title, head.cited_text or None, metadata=None if head.url else _SHOWN)
    # Sent back within "~citation"; also noted separately, so that other targets report them as losses.
    notes |= {key: value for key, value in _entries(raw).items() if key not in _CITED and key[:1] != "~"}
    if head.url is None:
        notes |= place_in_messages(parse_json(raw))
    return Citation(head.url, title, head.cited_text, metadata={FAMILY: notes})


def _decode_image(wire: ImageBlock) -> Image | Opaque:
    source = wire.source
    if isinstance(source, Unmodelled):
        return _whole_block("image", wire, source)
    notes = _notes(wire, source=source.extra)
    if wire.transformations is not UNSET:
        notes["transformations"] = wire.transformations
    cache = decode_mark(wire.cache_control, notes)
    metadata = {FAMILY: notes} if notes else None
    if isinstance(source, Base64Source):
        return Image(source.media_type, source.data, cache=cache, metadata=metadata)
    if isinstance(source, UrlSource):
        return Image(url=source.url, cache=cache, metadata=metadata)
    return Image(file_id=source.file_id, cache=cache, metadata=metadata)


def _decode_document(wire: DocumentBlock) -> Document | Opaque:
    source = wire.source
    if isinstance(source, Unmodelled):
        return _whole_block("document", wire, source)
    switch = wire.citations
    notes = _notes(wire, source=source.extra, citations=UNSET if switch is UNSET else switch.extra)
    if switch is not UNSET and switch.enabled is UNSET:
        notes["~citations"] = Raw(b"{}")
    document, cache = _document_of(source, notes), decode_mark(wire.cache_control, notes)
    return structs.replace(
        document,
        cache=cache,
        title=None if wire.title is UNSET else wire.title,
        context=None if wire.context is UNSET else wire.context,
        cite=None if switch is UNSET or switch.enabled is UNSET else switch.enabled,
        metadata={FAMILY: notes} if notes else None,
    )


def _document_of(source: Base64Source | TextSource | ContentSource | UrlSource | FileSource, notes: Extra) -> Document:
    if isinstance(source, Base64Source):
        return Document(source.media_type, source.data)
    if isinstance(source, TextSource):
        return Document(source.media_type, text=source.data)
    if isinstance(source, UrlSource):
        return Document(url=source.url)
    if isinstance(source, FileSource):
        return Document(file_id=source.file_id)
    text, further = _content_text(source.content)
    extra: Extra = {} if source.extra is UNSET else source.extra
    notes[MODELLED + "source"] = spliced(source, extra)
    if further:
        notes[WITHIN + "source"] = Raw(encode_json({**extra, **further}))
    return Document(text=text)


def _content_text(content: Raw) -> tuple[str, dict[str, Any]]:
    """Return the text of a document given in blocks, and by its path in the source what else there is."""
    value = parse_json(content)
    if isinstance(value, str):
        return value, {}
    texts: list[str] = []
    further: dict[str, Any] = {}
    for index, block in enumerate(value if isinstance(value, list) else [value]):
        path = f"content[{index}]" if isinstance(value, list) else "content"
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
            texts.append(block["text"])
            further |= {f"{path}.{key}": inner for key, inner in block.items() if key not in {"type", "text"}}
        else:
            further[path] = block
    return "\n\n".join(texts), further


def _whole_block(kind: str, wire: ImageBlock | DocumentBlock, source: Unmodelled) -> Opaque:
    """Return a block whose source is of an unknown kind as it is."""
    fields = {
        name: value
        for name in wire.__struct_fields__
        if name not in {"source", "extra"} and (value := getattr(wire, name)) is not UNSET
    }
    further = {} if wire.extra is UNSET else wire.extra
    return Opaque(FAMILY, kind, Raw(encode_json({"type": kind, "source": source.raw, **fields, **further})))


def _decode_thinking(wire: ThinkingBlock) -> Reasoning:
    signature = wire.signature
    notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    if signature is UNSET or not signature:
        notes["~signature"] = Raw(b'"absent"') if signature is UNSET else Raw(b'""')
        return Reasoning(wire.thinking, metadata={FAMILY: notes})
    return Reasoning(wire.thinking, Signature(FAMILY, signature), metadata={FAMILY: notes} if notes else None)


def _decode_redacted(wire: RedactedThinkingBlock) -> Reasoning:
    return Reasoning("", Signature(FAMILY, wire.data), redacted=True, metadata=keep(FAMILY, wire.extra))


def _decode_unmodelled(wire: Unmodelled) -> Opaque | ServerToolCall | ServerToolResult | Text:
    try:
        head = _block_head(wire.raw)
    except msgspec.ValidationError:
        return Opaque(FAMILY, "", wire.raw)
    kind = head.type or ""
    if kind == TOOL_REFERENCE:
        return _decode_reference(wire.raw)
    if kind in {"server_tool_use", "mcp_tool_use"} and head.id is not None and head.name is not None:
        fields = HOSTED.read_call(parse_json(wire.raw))
        return ServerToolCall(head.id, head.name, FAMILY, wire.raw, cache=_whole_mark(head.cache_control), **fields)
    if kind.endswith("_tool_result") and head.tool_use_id is not None:
        name, call_id, mark = kind.removesuffix("_tool_result"), head.tool_use_id, _whole_mark(head.cache_control)
        fields = HOSTED.read_result(parse_json(wire.raw))
        return ServerToolResult(call_id, name, FAMILY, wire.raw, cache=mark, **fields)
    return Opaque(FAMILY, kind, wire.raw)


def _decode_reference(raw: Raw) -> Opaque | Text:
    """Decode a tool that a search of the client found: its name is text for other models, which see all tools."""
    name = parse_json(raw).get("tool_name")
    if not isinstance(name, str) or not name:
        return Opaque(FAMILY, TOOL_REFERENCE, raw)
    return Text(name, metadata={FAMILY: {TOOL_REFERENCE: raw}})


def _decode_search_result(wire: SearchResultBlock) -> AnyPart:
    raw = encode_with_extra(wire)
    part = read_search_result(raw, FAMILY)
    if part is None:
        return _decode_unmodelled(Unmodelled(raw))
    if wire.cache_control is UNSET:
        return part
    try:
        mark = None if bytes(wire.cache_control) == b"null" else _marks.read(bytes(wire.cache_control))
    except DecodeError:
        return _decode_unmodelled(Unmodelled(raw))
    notes = dict(family_notes(FAMILY, part.metadata))
    cache = decode_mark(mark, notes)
    return structs.replace(part, cache=cache, metadata={FAMILY: notes} if notes else None)


def _decode_whole(wire: WholeBlock) -> Opaque | ServerToolCall | ServerToolResult | Text:
    raw = encode_with_extra(wire)
    return _decode_unmodelled(Unmodelled(raw))


def _whole_mark(raw: Raw | UnsetType) -> Cache | None:
    try:
        return None if raw is UNSET else _cache_head(raw)
    except msgspec.ValidationError:
        return Cache()


def _notes(wire: Wire, **within: Extra | UnsetType) -> Extra:
    return (keep(FAMILY, wire.extra, **within) or {FAMILY: {}})[FAMILY]


def _decode_misplaced(wire: ToolResultBlock | ToolUseBlock) -> Opaque:
    """Keep a misplaced call or result unchanged, for the API itself to refuse."""
    return Opaque(FAMILY, "tool_use" if isinstance(wire, ToolUseBlock) else "tool_result", restore(wire))


_DECODE: dict[type[Wire], Callable[[Any], AnyPart]] = {
    TextBlock: decode_text,
    ImageBlock: _decode_image,
    DocumentBlock: _decode_document,
    ThinkingBlock: _decode_thinking,
    RedactedThinkingBlock: _decode_redacted,
    Unmodelled: _decode_unmodelled,
    ToolResultBlock: _decode_misplaced,
    ToolUseBlock: _decode_misplaced,
    **{kind: _decode_whole for kind in get_args(Block) if issubclass(kind, WholeBlock)},
    SearchResultBlock: _decode_search_result,
}


def decode_part(wire: Wire) -> AnyPart:
    """Decode any block except calls and results."""
    return _DECODE[type(wire)](wire)


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def _documents(request: Request) -> Iterator[Document]:
    for message in request.messages:
        for part in message.parts:
            inner = part.parts if isinstance(part, ToolResult) else (part,)
            yield from (piece for piece in inner if isinstance(piece, Document))


_IMAGE_TYPES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
_PDF = "application/pdf"


class PartEncoder(BlockEncoder):
    family: ClassVar[str] = FAMILY
    signatures: ClassVar[Carriers] = foreign_signatures
    hosted: ClassVar[SharedTools] = HOSTED

    needs_old_version: bool = False
    """2026-10-21 refuses documents in assistant messages and citations in user messages; 2023-06-01 accepts them."""
    _marks: CacheMarks | None = None
    _citing: bool | None = None
    """Whether any document of the request is to be cited; None until the first document is encoded."""

    def write_search_result(self, part: SearchResult) -> WireValue:
        mark = self.mark(part)
        marked = {} if mark is UNSET else {"cache_control": mark}
        return to_raw({"type": "search_result", **search_fields(part, FAMILY, typed=True), **marked})

    def encode_part(self, part: AnyPart, role: str) -> list[WireValue]:
        """Encode the blocks of one part: none if it is lost, two if a signature is sent before it."""
        if role == "system" and type(part) is not Text and not self._native:
            return self.refuse(part, role)
        return _ENCODERS[type(part)](self, part, role)

    def mark(self, node: Marked) -> WireValue:
        """Return the cache mark to send on a node. Most requests have none, so the plan is made at the first one."""
        if node.cache is None or self._native or self._request is None:
            return encode_mark(node)
        if self._marks is None:
            self._marks = CacheMarks(self._request, self._log)
        return self._marks.of(node)

    def _encode_text(self, part: Text, role: str) -> list[WireValue]:
        notes = family_notes(FAMILY, part.metadata)
        if TOOL_REFERENCE in notes and parse_json(notes[TOOL_REFERENCE])["tool_name"] == part.text:
            return [notes[TOOL_REFERENCE]]
        citations = self._encode_citations(part, notes)
        if citations and role == "user":
            self.needs_old_version = True
        block = TextBlock(part.text, citations, self.mark(part))
        return self.with_carrier(part, spliced(block, notes) if notes else block)

    def _encode_citations(self, part: Text, notes: Extra) -> WireValue:
        cited = []
        for citation in part.citations:
            encoded = self.encode_citation(part, citation)
            if encoded is not None:
                cited.append(encoded)
        if cited:
            return cited
        return parse_json(notes["~citations"]) if "~citations" in notes and not part.citations else UNSET

    def encode_citation(self, part: Text, citation: Citation) -> WireValue:
        """Return the citation, or None if it cannot be sent: pages need the index that this API gave them."""
        raw = family_notes(FAMILY, citation.metadata).get("~citation")
        if raw is not None:
            return raw
        placed = for_messages(citation)
        if placed is not None:
            self._report_source(part, citation)
            return placed
        if not self._to_client:
            self._log.drop(part, "citations", "citation", "a citation of another provider cannot be replayed here")
            return None
        shown = HOSTED.write_citation(citation)
        if shown is None:
            self._log.drop(part, "citations", "citation", "it says neither a title nor a text")
            return None
        if citation.start is not None:
            self._log.degrade(part, "citations", "place of a citation in the text", "this API cites whole blocks")
        if citation.url is None and "~shown" not in family_notes(FAMILY, citation.metadata):
            why = "sent as 0: the provider does not say which of the client's documents it is"
            self._log.degrade(part, "citations", "number of the cited document", why)
        return shown

    def _report_source(self, part: Text, citation: Citation) -> None:
        """Report what Converse says about the source of a citation in a document; that of a search result crosses."""
        for notes in (citation.metadata or {}).values():
            if "source" in notes and b"searchResultLocation" not in bytes(notes.get("location", b"")):
                why = "citations of documents have none in this API"
                self._log.drop(part, "citations", "source of a citation", why)

    def _encode_image(self, part: Image, role: str) -> list[WireValue]:
        if role == "assistant" and not self._native:
            return self._lose(part, "an assistant message of this API holds no images")
        document = part if self._native else as_text_document(part, self._log)
        if isinstance(document, Document):
            return self._encode_document(document, role)
        if part.detail not in {None, "auto"}:
            self._log.drop(part, "detail", f"image detail {part.detail!r}", "this API has no such setting")
        if part.data is not None:
            media_type = part.media_type or "image/png"
            if media_type == "image/jpg":
                media_type = "image/jpeg"  # a frequent spelling, which the API refuses
            if media_type not in _IMAGE_TYPES and not self._native:
                return self._lose(part, f"this API takes JPEG, PNG, GIF and WebP, not {media_type}")
            return self._image_block(part, Base64Source(media_type, part.data))
        if not self._native and is_refused_image(part.media_type, part.url):
            return self._lose(part, "this API takes JPEG, PNG, GIF and WebP")
        source = self._reference(part)
        return [] if source is None else self._image_block(part, source)

    def _reference(self, part: Image | Document) -> UrlSource | FileSource | None:
        if part.file_id is not None:
            if self._native or part.file_id.startswith("file_"):
                return FileSource(part.file_id)
            self._lose(part, "its file id belongs to another provider")
        elif part.url is None or not (self._native or is_fetched(part.url)):
            self._lose(part, "this API fetches http and https addresses only")
        else:
            return UrlSource(part.url)
        return None

    def _encode_document(self, part: Document, role: str) -> list[WireValue]:
        if role == "assistant":
            self.needs_old_version = True
        self._withhold_signature(part)
        notes = family_notes(FAMILY, part.metadata)
        source: Any = UNSET
        if "source" not in notes and MODELLED + "source" not in notes:
            source = self._document_source(part)
            if source is None:
                return []
            if isinstance(source, ImageBlock):
                return [source]
        cite = part.cite if self._native or self._request is None else self._cites(part, self._request)
        switch: Any = UNSET if cite is None else CitationsSwitch(cite)
        if "~citations" in notes:
            switch = CitationsSwitch()
        inner = inner_extra(notes, "citations")
        block = DocumentBlock(
            source,
            UNSET if part.title is None else part.title,
            UNSET if part.context is None else part.context,
            switch if inner is None else spliced(switch, inner),  # type: ignore[arg-type]
            self.mark(part),
        )
        return [_splice_source(block, notes)]

    def _cites(self, part: Document, request: Request) -> bool | None:
        """Return the citations switch of a document: all or none may have it, and none if the answer has a format."""
        if self._citing is None:
            self._citing = any(document.cite for document in _documents(request))
        if not self._citing:
            return part.cite
        if request.output is not None and request.output.schema_held is not None:
            if part.cite:
                self._log.drop(part, "cite", "citations", "this API cites nothing in an answer with a format")
            return None
        if not part.cite:
            why = "this API cites all documents or none, and others are to be cited"
            self._log.invent(part, "cite", "citations of this document", why)
        return True

    def _document_source(self, part: Document) -> WireValue:
        """Return the source, or None; a document that is a picture becomes an image block."""
        if part.text is not None:
            return TextSource(part.media_type if self._native and part.media_type else "text/plain", part.text)
        media_type = part.media_type or _PDF
        if part.data is None:
            fetched = part.media_type or type_of_address(part.url or "") or _PDF
            if part.url is not None and fetched != _PDF and not self._native:
                self._lose(part, f"this API fetches PDF only, not {fetched}")
                return None
            return self._reference(part)
        if media_type == _PDF or self._native:
            return Base64Source(media_type, part.data)
        if media_type in _IMAGE_TYPES:
            return ImageBlock(Base64Source(media_type, part.data), self.mark(part))
        text = text_in(part.data) if media_type.startswith(TEXT_TYPES) else None
        if text is None:
            self._lose(part, f"this API takes PDF and text, not {media_type}")
            return None
        if media_type != "text/plain":
            self._log.degrade(part, "media_type", f"media type {media_type}", "this API has plain text only")
        return TextSource("text/plain", text)

    def _image_block(self, part: Image, source: Base64Source | UrlSource | FileSource) -> list[WireValue]:
        self._withhold_signature(part)
        return [_splice_source(ImageBlock(source, self.mark(part)), family_notes(FAMILY, part.metadata))]

    def _withhold_signature(self, part: Image | Document) -> None:
        if part.signature is not None:
            drop_signature(part, part.signature, self._log)

    def _encode_audio(self, part: Audio, role: str) -> list[WireValue]:
        if not (part.transcript or "").strip():
            return self._lose(part, "this API has no audio")
        return self._encode_text(Text(transcript(part, self._log, "this API has no audio")), role)

    def _encode_refusal(self, part: Refusal, role: str) -> list[WireValue]:  # noqa: ARG002
        if not self._native:
            self._log.degrade(part, "", "refusal", "it is sent as text: this API reports a refusal by its stop reason")
        # 400: text content blocks must be non-empty
        return [TextBlock(part.text)] if part.text.strip() or self._native else []

    def _encode_reasoning(self, part: Reasoning, role: str) -> list[WireValue]:
        notes, signature = family_notes(FAMILY, part.metadata), part.signature
        if "~tagged" in notes:
            return [foreign_signatures.tagged_reasoning(part)]
        if role != "assistant" and not self._native:
            return self._lose(part, "only assistant messages of this API hold reasoning")
        if signature is not None and signature.family == FAMILY and signature.data:
            data = signature.data
            block = RedactedThinkingBlock(data) if part.redacted else ThinkingBlock(part.text, data)
            return [spliced(block, notes) if notes else block]
        if "~signature" in notes and (self._to_client or parse_json(notes["~signature"])):
            # Reasoning that a compatible server sent unsigned goes back unsigned.
            spelled = parse_json(notes["~signature"])
            return [spliced(ThinkingBlock(part.text, UNSET if spelled else ""), notes)]
        if self._to_client:
            return [foreign_signatures.tagged_reasoning(part)]
        if signature is not None and signature.family != FAMILY:
            return self._lose(part, f"only {signature.family} can verify its signature")
        return self._lose(part, "this API refuses reasoning that it did not sign")

    def _encode_server_block(self, part: ServerToolCall | ServerToolResult, role: str) -> list[WireValue]:  # noqa: ARG002
        block = part.block_held
        if not goes_back(part, FAMILY, to_client=self._to_client):
            return self.encode_hosted(part)
        if part.cache is not None and not self._native:
            return [replace_mark(block, self.mark(part))]
        return [block]


_ENCODERS: dict[type[AnyPart], Callable[[Any, Any, str], list[WireValue]]] = PartHandlers[
    Callable[[Any, Any, str], list[WireValue]]
](
    text=PartEncoder._encode_text,
    reasoning=PartEncoder._encode_reasoning,
    refusal=PartEncoder._encode_refusal,
    image=PartEncoder._encode_image,
    document=PartEncoder._encode_document,
    audio=PartEncoder._encode_audio,
    tool_call=BlockEncoder.refuse,
    tool_result=BlockEncoder.refuse,
    server_tool_call=PartEncoder._encode_server_block,
    server_tool_result=PartEncoder._encode_server_block,
    search_result=BlockEncoder.encode_search_result,
    opaque=BlockEncoder.encode_opaque,
).by_type()


def replace_mark(block: Any, mark: WireValue) -> WireValue:
    """Return a block that is carried as it is, with the mark that may be sent."""
    entries: dict[str, Any] = _entries(encode_json(block))
    if mark is UNSET:
        entries.pop("cache_control", None)
    elif isinstance(mark, Wire):
        entries["cache_control"] = mark
    return Raw(encode_json(entries))


def _splice_source(block: ImageBlock | DocumentBlock, notes: Extra) -> WireValue:
    inner = inner_extra(notes, "source")
    source: Any = block.source  # UNSET for a source in blocks, which is noted whole
    if inner is not None and source is not UNSET:
        block = structs.replace(block, source=spliced(source, inner))
    return spliced(block, notes) if notes else block
