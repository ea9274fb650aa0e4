"""Blocks and parts, one by one, both ways. Messages, calls and results are in messages.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, Raw, structs

from dragoman.codecs.bedrock_converse import foreign_signatures
from dragoman.codecs.bedrock_converse.caching import CachePoints, Marked, encode_point
from dragoman.codecs.bedrock_converse.hosted_tools import HOSTED
from dragoman.codecs.bedrock_converse.media import MediaEncoder, decode_media
from dragoman.codecs.bedrock_converse.profile import FAMILY, ModelLimits, limits_of
from dragoman.codecs.bedrock_converse.signing import (
    is_at_home,
    redacted_blob,
    redacted_signature,
    signature_of,
)
from dragoman.codecs.bedrock_converse.wire import (
    Block,
    CitationHead,
    CitationsContent,
    GuardContent,
    PlainText,
    ReasoningContent,
    ReasoningText,
)
from dragoman.codecs.block_encoder import BlockEncoder, Carriers
from dragoman.codecs.claude_models import FAMILY as CLAUDE
from dragoman.codecs.common_losses import degrade_refusal
from dragoman.codecs.document_citations import for_converse, place_in_converse
from dragoman.codecs.media import transcript
from dragoman.codecs.part_handlers import PartHandlers
from dragoman.codecs.reading import WireReader, WireValue, keep, restore, spliced
from dragoman.codecs.search_results import read_search_result, search_fields
from dragoman.codecs.shared_tools import SharedTools, drawn_image, goes_back
from dragoman.errors import DecodeError
from dragoman.ir import (
    AnyPart,
    Audio,
    Citation,
    Document,
    Image,
    Opaque,
    Reasoning,
    Refusal,
    SearchResult,
    ServerToolCall,
    ServerToolResult,
    Signature,
    Text,
)
from dragoman.ir.notes import MODELLED, NAMED, WITHIN, Extra, family_notes, inner_extra
from dragoman.ir.values import compact_text, encode_json, parse_json, to_raw
from dragoman.losses import LossLog

_citation_head = msgspec.json.Decoder(CitationHead).decode
_citations = WireReader(CitationsContent, "bedrock-converse citations")
_guard = WireReader(GuardContent, "bedrock-converse guarded text")
_entries = msgspec.json.Decoder(dict[str, Raw]).decode

GUARD = "guardContent"
_GUARDED = Raw(b'"check of the block by the guardrail"')
_MEDIA = ("image", "document", "video", "audio")
_KINDS = tuple(name for name in Block.__struct_fields__ if name != "extra")

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def is_plain_text(block: Block) -> bool:
    """Whether the block is only text, as most are. One comparison is faster than checking fifteen members."""
    return block.text is not UNSET and block == Block(block.text)


def kind_of(block: Block) -> str:
    """Return the block's only key; empty for a block without a known key, or with more than one."""
    members = structs.astuple(block)[: len(_KINDS)]
    if members.count(UNSET) != len(_KINDS) - 1:
        return ""
    return next(name for name, member in zip(_KINDS, members, strict=True) if member is not UNSET)


def decode_part(block: Block) -> AnyPart:
    """Decode any block except calls, results and cache points."""
    if is_plain_text(block):
        return Text(block.text)  # type: ignore[arg-type]
    kind = kind_of(block)
    if kind == "text":
        return _decode_odd_text(block)
    if block.extra is not UNSET or kind not in _DECODE:
        return whole(block)
    return _DECODE[kind](block)


def whole(block: Block) -> Opaque:
    """Return a block that we do not model as it is."""
    exact_wire = restore(block)
    return Opaque(FAMILY, next(iter(_entries(exact_wire)), ""), exact_wire)


def _decode_odd_text(block: Block) -> Text:
    notes = dict(block.extra or {})
    if "type" in notes and bytes(notes["type"]) == b'"text"':
        notes[MODELLED + "type"] = notes.pop("type")
    return Text(block.text, metadata={FAMILY: notes})  # type: ignore[arg-type]


def decode_result_part(block: Block) -> AnyPart:
    """Decode a part of a result. JSON among other parts becomes text for all other formats."""
    if block.json is not UNSET and kind_of(block) == "json" and block.extra is UNSET:
        return Text(compact_text(block.json), metadata={FAMILY: {"~json": block.json}})
    part = decode_part(block)
    return part if isinstance(part, Text | Image | Document | Audio | SearchResult | Opaque) else whole(block)


def _decode_reasoning(block: Block) -> AnyPart:
    content: ReasoningContent = block.reasoning_content  # type: ignore[assignment]
    text, blob = content.reasoning_text, content.redacted_content
    if (text is UNSET) == (blob is UNSET):
        return whole(block)
    if blob is not UNSET:
        metadata = keep(FAMILY, UNSET, reasoningContent=content.extra)
        return Reasoning("", redacted_signature(blob), redacted=True, metadata=metadata)
    wire: ReasoningText = text  # type: ignore[assignment]
    metadata = keep(FAMILY, wire.extra, reasoningContent=content.extra)
    if wire.signature is UNSET or not wire.signature:
        notes = {} if metadata is None else metadata[FAMILY]
        if wire.signature is not UNSET:
            notes["~signature"] = Raw(b'""')
        return Reasoning(wire.text, metadata={FAMILY: notes} if notes else None)
    return Reasoning(wire.text, signature_of(wire.signature), metadata=metadata)


def _decode_citations(block: Block) -> AnyPart:
    try:
        wire = _citations.read(bytes(block.citations_content))  # type: ignore[arg-type]
    except DecodeError:
        return whole(block)
    notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    texts = [] if wire.content is UNSET else wire.content
    if len(texts) != 1 or texts[0].extra is not UNSET:
        citations = Raw(b'"absent"') if wire.content is UNSET else Raw(encode_json([restore(text) for text in texts]))
        notes["~content"] = citations
        beside = {key: value for text in texts for key, value in (text.extra or {}).items()}
        if beside:
            notes[WITHIN + "content"] = Raw(encode_json(beside))
    cited = [] if wire.citations is UNSET else wire.citations
    if not cited:
        notes["~citations"] = Raw(b'"absent"') if wire.citations is UNSET else Raw(b"[]")
    text = "".join([text.text for text in texts])
    metadata = {FAMILY: notes} if notes else None
    return Text(text, tuple([decode_citation(citations) for citations in cited]), metadata=metadata)


def decode_citation(raw: Raw) -> Citation:
    """Decode a citation; what other families cannot express (pages, characters) is noted, to be reported."""
    notes: Extra = {"~citation": raw}
    try:
        head = _citation_head(raw)
    except msgspec.ValidationError:
        return Citation(metadata={FAMILY: notes | {"citation": raw}})
    url = None if head.location is None or head.location.web is None else head.location.web.url
    cited = None if not head.source_content else "".join([text.text for text in head.source_content])
    for key, value in _entries(raw).items():
        if key == "location" and url is not None:
            web = _entries(_entries(value)["web"])
            notes.update({name: inner for name, inner in web.items() if name not in {"url", "domain"}})
        elif key not in {"title", "sourceContent"}:
            notes[key] = value
    if "location" in notes:
        notes |= place_in_converse(parse_json(raw))
    return Citation(url, head.title, cited, metadata={FAMILY: notes})


def _decode_guarded(block: Block) -> AnyPart:
    """Decode a text or an image that a guardrail checks; other formats lose only the guarding."""
    raw: Raw = block.guard_content  # type: ignore[assignment]
    try:
        wire = _guard.read(bytes(raw))
    except DecodeError:
        return whole(block)
    if (wire.text is UNSET) == (wire.image is UNSET):
        return whole(block)
    if wire.text is not UNSET:
        return Text(wire.text.text, metadata={FAMILY: {GUARD: raw, NAMED + GUARD: _GUARDED}})
    image = decode_media("image", wire.image)  # type: ignore[arg-type]
    if not isinstance(image, Image):
        return whole(block)
    return structs.replace(
        image, metadata={FAMILY: {**family_notes(FAMILY, image.metadata), GUARD: raw, NAMED + GUARD: _GUARDED}}
    )


def _decode_search_result(block: Block) -> AnyPart:
    return read_search_result(block.search_result, FAMILY) or whole(block)  # type: ignore[arg-type]


_DECODE: dict[str, Callable[[Block], AnyPart]] = {
    "search_result": _decode_search_result,
    "reasoning_content": _decode_reasoning,
    "citations_content": _decode_citations,
    "guard_content": _decode_guarded,
} | {kind: (lambda block, kind=kind: decode_media(kind, getattr(block, kind))) for kind in _MEDIA}  # type: ignore[misc]


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class PartEncoder(BlockEncoder):
    family: ClassVar[str] = FAMILY
    signatures: ClassVar[Carriers] = foreign_signatures
    hosted: ClassVar[SharedTools] = HOSTED

    _points: CachePoints | None = None
    _media_met: MediaEncoder | None = None

    @property
    def _media(self) -> MediaEncoder:
        """The media encoder, made on first use: most bodies have no media."""
        if self._media_met is None:
            self._media_met = MediaEncoder(self._log, self._limits, native=self._native)
        return self._media_met

    @property
    def _limits(self) -> ModelLimits:
        return limits_of(None if self._request is None else self._request.model)

    def write_search_result(self, part: SearchResult) -> WireValue:
        return Block(search_result=to_raw(search_fields(part, FAMILY, typed=False)))

    def encode_part(self, part: AnyPart, role: str) -> list[WireValue]:
        """Encode the blocks of one part: none if it is lost, two if it has a signature or a cache point."""
        if role == "system" and type(part) is not Text and not self._native:
            return self._lose(part, "the system field of this API holds text only")
        blocks = _ENCODERS[type(part)](self, part, role)
        if blocks and getattr(part, "cache", None) is not None and role != "tool result":
            blocks = self.with_point(part, blocks)  # type: ignore[arg-type]
        return blocks

    def point(self, node: Marked) -> WireValue:
        """Return the cache point to send after a node. Which are sent is computed on first use: most have none."""
        if self._native or self._request is None:
            return encode_point(node)
        if self._points is None:
            self._points = CachePoints(self._request, self._log)
        return self._points.of(node)

    def with_point(self, node: Marked, blocks: list[WireValue]) -> list[WireValue]:
        point = self.point(node)
        return blocks if point is UNSET else [*blocks, Block(cache_point=point)]

    def _encode_text(self, part: Text, role: str) -> list[WireValue]:
        notes = family_notes(FAMILY, part.metadata)
        if GUARD in notes and parse_json(notes[GUARD])["text"]["text"] == part.text:
            return [Block(guard_content=notes[GUARD])]
        if "~json" in notes and compact_text(notes["~json"]) == part.text:
            return [Block(json=notes["~json"])]
        if part.citations and role != "assistant" and not self._native:
            self._log.drop(part, "citations", "citations", "only assistant messages of this API have any")
            block: WireValue = Block(part.text)
        elif part.citations or "~citations" in notes:
            block = self._encode_cited(part, notes)
        else:
            block = spliced(Block(part.text), notes) if notes else Block(part.text)
        return self.with_carrier(part, block)

    def _encode_cited(self, part: Text, notes: Extra) -> WireValue:
        cited = []
        for citation in part.citations:
            encoded = encode_citation(citation, to_client=self._to_client)
            if encoded is not None:
                cited.append(encoded)
            if family_notes(FAMILY, citation.metadata).get("~citation") is None:
                report_citation(self._log, part, citation, is_sent=encoded is not None)
        if not cited and "~citations" not in notes:
            return Block(part.text)
        citations: Any = cited
        if not cited:
            citations = UNSET if parse_json(notes["~citations"]) == "absent" else []
        content: Any = [PlainText(part.text)]
        if "~content" in notes:
            content = UNSET if parse_json(notes["~content"]) == "absent" else notes["~content"]
        wire = CitationsContent(content, citations)
        return Block(citations_content=spliced(wire, notes) if notes else Raw(encode_json(wire)))

    def _encode_media(self, part: Image | Document, role: str) -> list[WireValue]:
        if role == "assistant" and not (self._native or self._to_client):
            return self._lose(part, "an assistant message of this API holds no media")
        notes = family_notes(FAMILY, part.metadata)
        if GUARD in notes and (part.data or part.url or "").encode() in bytes(notes[GUARD]):
            return [Block(guard_content=notes[GUARD])]
        block = self._media.image(part) if isinstance(part, Image) else self._media.document(part)
        return self._lose(part, self._media.why) if block is None else [block]

    def _encode_audio(self, part: Audio, role: str) -> list[WireValue]:
        if self._native or (role == "user" and (part.data or part.url)):
            block = self._media.audio(part)
            if block is not None:
                if part.transcript is not None:
                    self._log.drop(part, "transcript", "transcript", "audio of this API has none")
                return [block]
        if not (part.transcript or "").strip():
            return self._lose(part, self._media.why or "only user messages of this API hold sound")
        return [Block(transcript(part, self._log, "this API takes no audio here"))]

    def _encode_refusal(self, part: Refusal, role: str) -> list[WireValue]:  # noqa: ARG002
        degrade_refusal(part, self._log)
        return [Block(part.text)]

    def _encode_reasoning(self, part: Reasoning, role: str) -> list[WireValue]:
        notes, signature = family_notes(FAMILY, part.metadata), part.signature
        if "~tagged" in notes and signature is not None:
            return [foreign_signatures.tagged_reasoning(part, signature)]
        if role != "assistant" and not self._native:
            return self._lose(part, "only assistant messages of this API hold reasoning")
        if signature is None:
            if self._to_client or self._native:
                return [_reasoning(ReasoningText(part.text, "" if "~signature" in notes else UNSET), notes)]
            return self._lose(part, "models refuse reasoning that they did not sign")
        if is_at_home(signature) if self._to_client or self._native else self._is_needed(signature):
            if part.redacted:
                wire = ReasoningContent(redacted_content=redacted_blob(signature))
                return [_reasoning_block(wire, notes)]
            return [_reasoning(ReasoningText(part.text, signature.data), notes)]
        if self._to_client:
            return [foreign_signatures.tagged_reasoning(part, signature)]
        return self._lose(part, f"only {signature.family} can verify its signature")

    def _is_needed(self, signature: Signature) -> bool:
        """Whether the model needs this signature back.

        The model name says whether it is Claude; if it does not, only signatures in Claude's form are sent.
        """
        if signature.family == FAMILY:
            return bool(signature.data)
        if signature.family != CLAUDE or not signature.data:
            return False
        return self._limits.is_claude or (self._limits.signs and is_at_home(signature))

    def _encode_server_block(self, part: ServerToolCall | ServerToolResult, role: str) -> list[WireValue]:  # noqa: ARG002
        block = part.block_held
        if goes_back(part, FAMILY, to_client=self._to_client):
            return [block]
        image = drawn_image(part, self._log) if self._to_client else None
        return self.encode_hosted(part) if image is None else self.encode_part(image, "assistant")


_ENCODERS: dict[type[AnyPart], Callable[[Any, Any, str], list[WireValue]]] = PartHandlers[
    Callable[[Any, Any, str], list[WireValue]]
](
    text=PartEncoder._encode_text,
    reasoning=PartEncoder._encode_reasoning,
    refusal=PartEncoder._encode_refusal,
    image=PartEncoder._encode_media,
    document=PartEncoder._encode_media,
    audio=PartEncoder._encode_audio,
    tool_call=BlockEncoder.refuse,
    tool_result=BlockEncoder.refuse,
    server_tool_call=PartEncoder._encode_server_block,
    server_tool_result=PartEncoder._encode_server_block,
    search_result=BlockEncoder.encode_search_result,
    opaque=BlockEncoder.encode_opaque,
).by_type()


def encode_citation(citation: Citation, *, to_client: bool) -> WireValue:
    """Encode a citation as this family spelled it; those of other families go to clients, not to a provider."""
    raw = family_notes(FAMILY, citation.metadata).get("~citation")
    placed = {} if raw is not None else for_converse(citation)
    if raw is not None or not (to_client or placed):
        return raw
    entries: dict[str, Any] = {} if citation.title is None else {"title": citation.title}
    if citation.cited_text is not None:
        entries["sourceContent"] = [{"text": citation.cited_text}]
    if citation.url is not None:
        entries["location"] = {"web": {"url": citation.url}}
    return Raw(encode_json({**entries, **placed}))


def report_citation(log: LossLog, part: AnyPart, citation: Citation, *, is_sent: bool) -> None:
    if not is_sent:
        log.drop(part, "citations", "citation", "a citation of another provider cannot be replayed here")
    elif citation.start is not None or citation.end is not None:
        log.degrade(part, "citations", "place of a citation in the text", "this API cites whole blocks of text")


def _reasoning(text: ReasoningText, notes: Extra) -> WireValue:
    if not notes:
        return Block(reasoning_content=ReasoningContent(text))
    return _reasoning_block(ReasoningContent(spliced(text, notes)), notes)  # type: ignore[arg-type]


def _reasoning_block(content: ReasoningContent, notes: Extra) -> WireValue:
    inner = inner_extra(notes, "reasoningContent")
    return Block(reasoning_content=content if inner is None else spliced(content, inner))  # type: ignore[arg-type]
