"""Content parts of chat messages, both ways: one handler per type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from dragoman.codecs.carried_signatures import SIGNATURE, read_carried, write_signature
from dragoman.codecs.cohere_chat.grounding import decode_document, encode_document
from dragoman.codecs.cohere_chat.hosted_tools import HOSTED
from dragoman.codecs.cohere_chat.profile import FAMILY
from dragoman.codecs.cohere_chat.wire import (
    DocumentPart,
    ImagePart,
    ImageUrl,
    TextPart,
    ThinkingPart,
)
from dragoman.codecs.common_losses import degrade_refusal, drop_cache_mark, drop_signature
from dragoman.codecs.media import note_own_store, read_image_url, transcript, web_image_url
from dragoman.codecs.part_handlers import PartHandlers, name_of_part
from dragoman.codecs.reading import WireValue, keep, spliced
from dragoman.codecs.search_results import search_as_text
from dragoman.codecs.shared_tools import cross_hosted
from dragoman.codecs.wire_values import Unmodelled, Wire
from dragoman.ir import (
    AnyPart,
    Audio,
    Document,
    Image,
    Metadata,
    Opaque,
    Reasoning,
    Refusal,
    SearchResult,
    ServerToolCall,
    ServerToolResult,
    Signature,
    Text,
)
from dragoman.ir.notes import MODELLED, Extra, inner_extra
from dragoman.ir.values import Value, parse_json
from dragoman.losses import LossLog, field_of_key

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def _decode_text(wire: TextPart) -> Text:
    if wire.signature is wire.extra is UNSET:
        return Text(wire.text)
    signature, metadata, _ = _read_signature(wire, wire.signature)
    return Text(wire.text, signature=signature, metadata=metadata)


def _decode_thinking(wire: ThinkingPart) -> Reasoning:
    if wire.signature is wire.extra is UNSET:
        return Reasoning(wire.thinking)
    signature, metadata, redacted = _read_signature(wire, wire.signature)
    return Reasoning(wire.thinking, signature, redacted, metadata)


def _read_signature(wire: Wire, raw: Any) -> tuple[Signature | None, Metadata | None, bool]:
    """Return (signature, metadata, whether the reasoning is redacted)."""
    extra: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    carried = None if raw is UNSET else read_carried(raw)
    if raw is not UNSET:
        extra[MODELLED * (carried is not None) + SIGNATURE] = raw
    metadata = {FAMILY: extra} if extra else None
    if carried is None:
        return None, metadata, False
    return Signature(carried.family, carried.data, carried.id), metadata, carried.redacted


def _decode_image(wire: ImagePart) -> Image:
    inner = wire.image_url
    notes = dict((keep(FAMILY, wire.extra, image_url=inner.extra) or {}).get(FAMILY, {}))
    inline = read_image_url(inner.url, notes)
    if inline is None:
        note_own_store(inner.url, notes)
    metadata = {FAMILY: notes} if notes else None
    detail = None if inner.detail is UNSET else inner.detail
    if inline is None:
        return Image(url=inner.url, detail=detail, metadata=metadata)
    return Image(*inline, detail=detail, metadata=metadata)


def _decode_document(wire: DocumentPart) -> Document:
    within = keep(FAMILY, UNSET, part=wire.extra)
    return decode_document(wire.document, dict(within[FAMILY]) if within is not None else {})


def _decode_unmodelled(wire: Unmodelled) -> Opaque:
    return Opaque(FAMILY, str(parse_json(wire.raw).get("type")), wire.raw)


DECODE_PART: dict[type[Wire], Callable[[Any], AnyPart]] = {
    TextPart: _decode_text,
    ThinkingPart: _decode_thinking,
    ImagePart: _decode_image,
    DocumentPart: _decode_document,
    Unmodelled: _decode_unmodelled,
}
"""Wire type -> its decoder."""

# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def report_keys(
    node: Value, metadata: Metadata | None, log: LossLog, within: str = "", *, foreign: bool = False
) -> None:
    """Report keys of this family, or of the others (`foreign`), on a node that has no place for any."""
    for family, notes in (metadata or {}).items():
        if (family == FAMILY) == foreign:
            continue
        for key in notes:
            if key[:1] != "~":
                why = f"only {family} understands it" if foreign else "this API has no place for it here"
                log.drop(node, field_of_key(within, key), key, why)


def _own(part: AnyPart) -> Extra:
    metadata: Metadata | None = getattr(part, "metadata", None)
    return (metadata or {}).get(FAMILY, {})


def _encode_text(part: Text, log: LossLog, to_client: bool) -> WireValue:  # noqa: FBT001  given by position
    if part.cache is not None:
        drop_cache_mark(part, log)
    return _with_signature(TextPart(part.text), part, log, to_client=to_client)


def _encode_reasoning(part: Reasoning, log: LossLog, to_client: bool) -> WireValue:  # noqa: FBT001
    """Encode reasoning. It has no signature here, so reasoning signed by another provider is not sent."""
    if not to_client and (part.redacted or (part.signature is not None and MODELLED + SIGNATURE not in _own(part))):
        log.drop(part, "", "reasoning", "it is signed: the reasoning of another provider is not this model's own")
        return None
    return _with_signature(ThinkingPart(part.text), part, log, to_client=to_client)


def _with_signature(wire: Wire, part: Text | Reasoning, log: LossLog, *, to_client: bool) -> WireValue:
    notes, signature = _own(part), part.signature
    if signature is not None and not to_client:
        drop_signature(part, signature, log)
        notes = {key: value for key, value in notes.items() if key != MODELLED + SIGNATURE}
    elif signature is not None and signature.data and MODELLED + SIGNATURE not in notes:
        redacted = isinstance(part, Reasoning) and part.redacted
        notes = {**notes, SIGNATURE: write_signature(signature, redacted=redacted)}
    return spliced(wire, notes) if notes else wire


def _encode_refusal(part: Refusal, log: LossLog, to_client: bool) -> WireValue:  # noqa: FBT001, ARG001
    degrade_refusal(part, log)
    return spliced(TextPart(part.text), _own(part))


def _encode_image(part: Image, log: LossLog, to_client: bool) -> WireValue:  # noqa: FBT001, ARG001
    notes = _own(part)
    url = web_image_url(part, notes, FAMILY, log)
    if url is None:
        return None
    if part.cache is not None:
        drop_cache_mark(part, log)
    if part.signature is not None:
        drop_signature(part, part.signature, log)
    detail: Any = UNSET if part.detail is None else part.detail
    if part.detail == "original":
        log.degrade(part, "detail", "detail 'original'", "sent as 'high', the most that this API knows")
        detail = "high"
    inner: Any = ImageUrl(url, detail)
    inner_keys = inner_extra(notes, "image_url")
    wire = ImagePart(inner if inner_keys is None else spliced(inner, inner_keys))  # type: ignore[arg-type]
    return spliced(wire, notes) if notes else wire


def _encode_document(part: Document, log: LossLog, to_client: bool) -> WireValue:  # noqa: FBT001, ARG001
    body: Any = encode_document(part, log)
    if body is None:
        return None
    outer = inner_extra(_own(part), "part")
    return DocumentPart(body) if outer is None else spliced(DocumentPart(body), outer)


def _encode_audio(part: Audio, log: LossLog, to_client: bool) -> WireValue:  # noqa: FBT001, ARG001
    if part.transcript:
        return TextPart(transcript(part, log, "this API takes no audio"))
    log.drop(part, "", "audio", "this API takes no audio")
    return None


def _encode_opaque(part: Opaque, log: LossLog, to_client: bool) -> WireValue:  # noqa: FBT001, ARG001
    if part.origin == FAMILY:
        return part.block_held
    log.drop(part, "", f"{part.origin} block {part.kind!r}", "it belongs to the provider that made it")
    return None


def _encode_search_result(part: SearchResult, log: LossLog, to_client: bool) -> WireValue:  # noqa: FBT001
    return _encode_text(search_as_text(part, log), log, to_client)


def _encode_hosted(part: ServerToolCall | ServerToolResult, log: LossLog, to_client: bool) -> WireValue:  # noqa: FBT001
    shown = cross_hosted(part, log, HOSTED if to_client else None)
    return TextPart(shown.text) if type(shown) is Text else None


def _encode_foreign(part: AnyPart, log: LossLog, to_client: bool) -> WireValue:  # noqa: FBT001, ARG001
    log.drop(part, "", name_of_part(part), "this message cannot hold it")


ENCODE_PART = PartHandlers[Callable[[Any, LossLog, bool], WireValue]](
    text=_encode_text,
    reasoning=_encode_reasoning,
    refusal=_encode_refusal,
    image=_encode_image,
    document=_encode_document,
    audio=_encode_audio,
    tool_call=_encode_foreign,
    tool_result=_encode_foreign,
    server_tool_call=_encode_hosted,
    server_tool_result=_encode_hosted,
    search_result=_encode_search_result,
    opaque=_encode_opaque,
).by_type()
"""Part type -> its encoder; None if this API cannot hold it (logged)."""
