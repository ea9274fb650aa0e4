"""Content parts that the record formats share: text, image_url, document, and `other` for vendor-specific blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from msgspec import UNSET, Raw, UnsetType, structs

from dragoman.codecs.media import data_url, split_data_url
from dragoman.codecs.part_handlers import name_of_part
from dragoman.codecs.reading import as_json, encode_with_extra, keep, spliced
from dragoman.codecs.records.signatures import bag_of, put_signature, take_signature
from dragoman.codecs.search_results import search_text
from dragoman.codecs.shared_tools import cross_hosted
from dragoman.codecs.wire_values import Unmodelled, Wire
from dragoman.ir import (
    AnyPart,
    Audio,
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
    ToolCall,
    ToolResult,
)
from dragoman.ir.notes import MODELLED, Extra, inner_extra
from dragoman.ir.values import Metadata, parse_json
from dragoman.losses import LossLog

OURS = "dragoman"
"""The provider named in an `other` part for content that the IR models and the format does not."""


class TextPart(Wire, frozen=True, tag="text"):
    text: str


class ImageUrl(Wire, frozen=True):
    url: str
    detail: str | UnsetType = UNSET
    media_type: str | UnsetType = UNSET


class ImagePart(Wire, frozen=True, tag="image_url"):
    image_url: ImageUrl | str


class DocumentSource(Wire, frozen=True):
    data: str | UnsetType = UNSET
    media_type: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    url: str | UnsetType = UNSET
    file_id: str | UnsetType = UNSET


class DocumentPart(Wire, frozen=True, tag="document"):
    source: DocumentSource
    title: str | UnsetType = UNSET


class ReasoningPart(Wire, frozen=True, tag="reasoning"):
    text: str
    redacted: bool | UnsetType = UNSET


class RefusalPart(Wire, frozen=True, tag="refusal"):
    refusal: str


class OtherPart(Wire, frozen=True, tag="other"):
    provider: str
    kind: str
    payload: Raw | UnsetType = UNSET


ContentPart: TypeAlias = TextPart | ImagePart | DocumentPart | ReasoningPart | RefusalPart | OtherPart | Unmodelled
Content: TypeAlias = str | list[ContentPart] | None | UnsetType


class PartStyle(NamedTuple):
    """How one format writes its parts, and which parts it has."""

    family: str
    bag: str
    holds: frozenset[type[AnyPart]]


# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def decode_parts(wires: Iterable[ContentPart], style: PartStyle) -> tuple[AnyPart, ...]:
    return tuple([decode_part(wire, style) for wire in wires])


def decode_part(wire: ContentPart, style: PartStyle) -> AnyPart:
    """Decode a part. One that only other record formats have is kept whole, as an opaque part."""
    kind = _KIND_OF.get(type(wire))
    if kind is not None and kind not in style.holds:
        whole = _whole(wire)
        return Opaque(style.family, str(parse_json(whole)["type"]), whole)
    return _DECODE_PART[type(wire)](wire, style)


def _whole(wire: Wire) -> Raw:
    if isinstance(wire, DocumentPart):
        source: Any = encode_with_extra(wire.source)
        wire = structs.replace(wire, source=source)
    return encode_with_extra(wire)


def _own(wire: Wire, style: PartStyle, **within: Extra | UnsetType) -> tuple[Signature | None, Metadata | None]:
    """Return signature and metadata of a part."""
    metadata = keep(style.family, wire.extra, **within)
    if metadata is None:
        return None, None
    return take_signature(metadata[style.family], style.bag), metadata


def _decode_text(wire: TextPart, style: PartStyle) -> Text:
    signature, metadata = _own(wire, style)
    return Text(wire.text, signature=signature, metadata=metadata)


def _decode_image(wire: ImagePart, style: PartStyle) -> Image:
    given = wire.image_url
    if isinstance(given, str):
        signature, metadata = _own(wire, style)
        metadata = {style.family: {**(metadata or {}).get(style.family, {}), "~image_url": as_json("string")}}
        return _image(ImageUrl(given), signature, metadata)
    inner: Extra = {} if given.extra is UNSET else dict(given.extra)
    if given.media_type is not UNSET and split_data_url(given.url) is not None:
        inner[MODELLED + "media_type"] = as_json(given.media_type)  # the URL has it, too
    signature, metadata = _own(wire, style, image_url=inner or UNSET)
    return _image(given, signature, metadata)


def _image(given: ImageUrl, signature: Signature | None, metadata: Metadata | None) -> Image:
    detail = None if given.detail is UNSET else given.detail
    inline = split_data_url(given.url)
    if inline is not None:
        return Image(inline[0], inline[1], detail=detail, signature=signature, metadata=metadata)
    media_type = None if given.media_type is UNSET else given.media_type
    return Image(media_type, url=given.url, detail=detail, signature=signature, metadata=metadata)


def _decode_document(wire: DocumentPart, style: PartStyle) -> Document:
    source = wire.source
    signature, metadata = _own(wire, style, source=source.extra)
    return Document(
        None if source.media_type is UNSET else source.media_type,
        None if source.data is UNSET else source.data,
        None if source.url is UNSET else source.url,
        None if source.file_id is UNSET else source.file_id,
        signature=signature,
        metadata=metadata,
        text=None if source.text is UNSET else source.text,
        title=None if wire.title is UNSET else wire.title,
    )


def _decode_reasoning(wire: ReasoningPart, style: PartStyle) -> Reasoning:
    signature, metadata = _own(wire, style)
    if wire.redacted is False:
        metadata = {style.family: {**(metadata or {}).get(style.family, {}), "~raw:redacted": Raw(b"false")}}
    return Reasoning(wire.text, signature, wire.redacted is True, metadata)


def _decode_refusal(wire: RefusalPart, style: PartStyle) -> Refusal:
    return Refusal(wire.refusal, keep(style.family, wire.extra))


def _decode_other(wire: OtherPart, style: PartStyle) -> AnyPart:
    given: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    extra = dict(given)
    signature = take_signature(extra, style.bag)
    # The parts below cannot carry notes, so a block with more than we would write is kept whole, for this format only.
    is_block = wire.payload is not UNSET and bytes(wire.payload)[:1] == b"{"
    if not is_block or extra.keys() - {MODELLED + style.bag} or not _is_canonical(signature, given, style):
        return Opaque(style.family, "other", spliced(wire, given))
    if wire.provider == OURS and wire.kind == "audio":
        payload = parse_json(bytes(wire.payload or b""))
        if isinstance(payload, dict) and payload.keys() <= _OF_AUDIO and all(map(_is_text, payload.values())):
            return Audio(**payload, signature=signature)
    if wire.provider == OURS and wire.kind == "search_result" and signature is None:
        found = _read_search_result(parse_json(bytes(wire.payload or b"")))
        if found is not None:
            return found
    return Opaque(wire.provider, wire.kind, wire.payload, signature)


def _is_canonical(signature: Signature | None, extra: Extra, style: PartStyle) -> bool:
    return signature is None or parse_json(extra[style.bag]) == bag_of(signature)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _decode_unmodelled(wire: Unmodelled, style: PartStyle) -> Opaque:
    return Opaque(style.family, str(parse_json(wire.raw).get("type")), wire.raw)


_DECODE_PART: dict[type[Wire], Callable[[Any, PartStyle], AnyPart]] = {
    TextPart: _decode_text,
    ImagePart: _decode_image,
    DocumentPart: _decode_document,
    ReasoningPart: _decode_reasoning,
    RefusalPart: _decode_refusal,
    OtherPart: _decode_other,
    Unmodelled: _decode_unmodelled,
}

_KIND_OF: dict[type[Wire], type[AnyPart]] = {
    DocumentPart: Document,
    ReasoningPart: Reasoning,
    RefusalPart: Refusal,
    OtherPart: Opaque,
}

# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def encode_parts(parts: Iterable[AnyPart], style: PartStyle, log: LossLog) -> list[Raw]:
    return [wire for part in parts if (wire := encode_part(part, style, log)) is not None]


def encode_part(part: AnyPart, style: PartStyle, log: LossLog) -> Raw | None:
    """Return the part as the record stores it, or None (logged) if it cannot."""
    if isinstance(part, Opaque) and part.origin == style.family:
        return as_json(part.block_held)
    if type(part) not in style.holds:
        return _poorer(part, style, log)
    fields = _ENCODE_PART[type(part)](part, style, log)
    if fields is None:
        return None
    notes: Extra = (getattr(part, "metadata", None) or {}).get(style.family, {})
    put_signature(fields, getattr(part, "signature", None), style.bag, notes)
    report_part(part, log)
    return spliced(as_json(fields), notes)


def report_part(part: AnyPart, log: LossLog) -> None:
    """Report attributes that no record has a key for."""
    if getattr(part, "cache", None) is not None:
        log.drop(part, "cache", "cache mark", "a stored part has none")
    if isinstance(part, Text) and part.citations:
        log.drop(part, "citations", "citations", "a stored text has none")


def _poorer(part: AnyPart, style: PartStyle, log: LossLog) -> Raw | None:
    """Encode a part that the format lacks: its text as plain text, or None (logged)."""
    if isinstance(part, Refusal):
        log.degrade(part, "", "refusal", "stored as plain text")
        return as_json({"type": "text", "text": part.text})
    if isinstance(part, Document) and part.text is not None:
        log.degrade(part, "", "text document", "stored as plain text")
        return as_json({"type": "text", "text": part.text})
    if isinstance(part, SearchResult):
        if part.cache is not None:
            log.drop(part, "cache", "cache mark", "a stored text has none")
        return as_json({"type": "text", "text": search_text(part, log)})
    log.drop(part, "", name_of_part(part), f"{style.family} records cannot hold it")
    return None


def _encode_text(part: Text, style: PartStyle, log: LossLog) -> dict[str, Any] | None:  # noqa: ARG001
    return {"type": "text", "text": part.text}


def _encode_image(part: Image, style: PartStyle, log: LossLog) -> dict[str, Any] | None:
    url = part.url if part.data is None else data_url(part.media_type or "image/png", part.data)
    if url is None:
        log.drop(part, "file_id", "image by file id", "only the provider that stored the file can read it")
        return None
    notes: Extra = (part.metadata or {}).get(style.family, {})
    if "~image_url" in notes:
        return {"type": "image_url", "image_url": url}
    inner = {"url": url}
    if part.detail is not None:
        inner["detail"] = part.detail
    if part.data is None and part.media_type is not None:
        inner["media_type"] = part.media_type
    return {"type": "image_url", "image_url": spliced(as_json(inner), inner_extra(notes, "image_url") or {})}


_SOURCE = ("data", "media_type", "text", "url", "file_id")


def _encode_document(part: Document, style: PartStyle, log: LossLog) -> dict[str, Any] | None:
    notes: Extra = (part.metadata or {}).get(style.family, {})
    source = {name: getattr(part, name) for name in _SOURCE if getattr(part, name) is not None}
    fields: dict[str, Any] = {
        "type": "document",
        "source": spliced(as_json(source), inner_extra(notes, "source") or {}),
    }
    if part.title is not None:
        fields["title"] = part.title
    for name in ("context", "cite"):
        if getattr(part, name) is not None:
            log.drop(part, name, f"document {name}", "a stored document has no such key")
    return fields


_OF_AUDIO = {"media_type", "data", "url", "file_id", "transcript"}


def _encode_audio(part: Audio, style: PartStyle, log: LossLog) -> dict[str, Any] | None:  # noqa: ARG001
    payload = {name: getattr(part, name) for name in sorted(_OF_AUDIO) if getattr(part, name) is not None}
    return {"type": "other", "provider": OURS, "kind": "audio", "payload": payload}


def _encode_reasoning(part: Reasoning, style: PartStyle, log: LossLog) -> dict[str, Any] | None:  # noqa: ARG001
    fields: dict[str, Any] = {"type": "reasoning", "text": part.text}
    return {**fields, "redacted": True} if part.redacted else fields


def _encode_refusal(part: Refusal, style: PartStyle, log: LossLog) -> dict[str, Any] | None:  # noqa: ARG001
    return {"type": "refusal", "refusal": part.text}


_OF_SEARCH_RESULT = {"source", "title", "texts", "cite"}


def _encode_search_result(part: SearchResult, style: PartStyle, log: LossLog) -> dict[str, Any] | None:  # noqa: ARG001
    payload = {name: getattr(part, name) for name in sorted(_OF_SEARCH_RESULT) if getattr(part, name) is not None}
    return _other(OURS, "search_result", payload)


def _read_search_result(payload: Any) -> SearchResult | None:
    if not isinstance(payload, dict) or not payload.keys() <= _OF_SEARCH_RESULT:
        return None
    texts, cite = payload.get("texts"), payload.get("cite")
    if not isinstance(texts, list) or not isinstance(cite, bool | None):
        return None
    if not all(map(_is_text, (payload.get("source"), payload.get("title"), *texts))):
        return None
    return SearchResult(payload["source"], payload["title"], tuple(texts), cite)


def _encode_opaque(part: Opaque, style: PartStyle, log: LossLog) -> dict[str, Any] | None:  # noqa: ARG001
    return _other(part.origin, part.kind, part.block_held)


def _encode_server_call(part: ServerToolCall, style: PartStyle, log: LossLog) -> dict[str, Any] | None:
    if part.origin is None or part.block is None:
        return _encode_as_text(part, style, log)
    return _other(part.origin, "server_tool_call", part.block_held)


def _encode_server_result(part: ServerToolResult, style: PartStyle, log: LossLog) -> dict[str, Any] | None:
    if part.origin is None or part.block is None:
        return _encode_as_text(part, style, log)
    return _other(part.origin, "server_tool_result", part.block_held)


def _encode_as_text(part: ServerToolCall | ServerToolResult, style: PartStyle, log: LossLog) -> dict[str, Any] | None:
    """Encode a hosted call or result that has no provider's block: as the text that a model would read."""
    text = cross_hosted(part, log, None)
    return _encode_text(text, style, log) if type(text) is Text else None


def _other(provider: str, kind: str, payload: Any) -> dict[str, Any]:
    return {"type": "other", "provider": provider, "kind": kind, "payload": payload}


def _refuse(part: AnyPart, style: PartStyle, log: LossLog) -> dict[str, Any] | None:
    log.drop(part, "", name_of_part(part), f"{style.family} records cannot hold it")
    return None


_ENCODE_PART: dict[type[AnyPart], Callable[[Any, PartStyle, LossLog], dict[str, Any] | None]] = {
    Text: _encode_text,
    Image: _encode_image,
    Document: _encode_document,
    Audio: _encode_audio,
    Reasoning: _encode_reasoning,
    Refusal: _encode_refusal,
    SearchResult: _encode_search_result,
    Opaque: _encode_opaque,
    ServerToolCall: _encode_server_call,
    ServerToolResult: _encode_server_result,
    ToolCall: _refuse,
    ToolResult: _refuse,
}

EVERY_PART: frozenset[type[AnyPart]] = frozenset(_ENCODE_PART) - {ToolCall, ToolResult}
RESULT_PARTS: frozenset[type[AnyPart]] = frozenset({Text, Image, Document, Audio, SearchResult, Opaque})
"""Types of parts that a result may contain."""


def is_plain(part: AnyPart) -> bool:
    """Return whether this is a text without any other attribute."""
    return (
        type(part) is Text
        and part.signature is None
        and part.metadata is None
        and part.cache is None
        and not part.citations
    )
