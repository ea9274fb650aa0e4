"""Content parts of chat messages, both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs import cache_control
from dragoman.codecs.cache_breakpoints import BREAKPOINT
from dragoman.codecs.common_losses import drop_cache_mark, drop_signature
from dragoman.codecs.media import (
    audio_format,
    audio_type,
    data_url,
    document_text,
    note_own_store,
    read_image_url,
    split_data_url,
    web_image_url,
)
from dragoman.codecs.openai_chat.wire import (
    AudioPart,
    Breakpoint,
    ContentPart,
    DocumentUrlPart,
    File,
    FilePart,
    ImagePart,
    ImageUrl,
    InputAudio,
    RefusalPart,
    TextPart,
    ThinkingPart,
)
from dragoman.codecs.part_handlers import PartHandlers
from dragoman.codecs.reading import WireValue, encode_with_extra, keep, spliced
from dragoman.codecs.search_results import search_as_text
from dragoman.codecs.wire_values import Unmodelled, Wire
from dragoman.ir import (
    AnyPart,
    Audio,
    Cache,
    Document,
    Image,
    Metadata,
    Opaque,
    Reasoning,
    Refusal,
    SearchResult,
    Text,
)
from dragoman.ir.notes import MODELLED, Extra, inner_extra
from dragoman.ir.values import parse_json
from dragoman.losses import LossLog

FAMILY = "openai"

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def _decode_text(wire: TextPart) -> Text:
    if wire.prompt_cache_breakpoint is wire.cache_control is wire.extra is UNSET:
        return Text(wire.text)
    cache, metadata = _decode_mark(wire, wire.prompt_cache_breakpoint)
    return Text(wire.text, cache=cache, metadata=metadata)


def _decode_mark(
    wire: Wire, mark: Breakpoint | UnsetType, **within: Extra | UnsetType
) -> tuple[Cache | None, Metadata | None]:
    own: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    relayed = getattr(wire, cache_control.KEY, UNSET)
    if relayed is not UNSET:
        own[cache_control.KEY] = relayed
    cache = cache_control.read_mark(own)
    if mark is UNSET:
        return cache, keep(FAMILY, own or UNSET, **within)
    metadata = keep(FAMILY, own or UNSET, **within, prompt_cache_breakpoint=mark.extra)
    extra = (metadata or {}).get(FAMILY, {})
    extra[BREAKPOINT] = spliced(mark, mark.extra or {})
    return Cache(None if mark.ttl is UNSET else mark.ttl), {FAMILY: extra}


BY_URL = "~document_url"
"""Note: the document was a `document_url` part."""


def _decode_image(wire: ImagePart) -> Image:
    if isinstance(wire.image_url, str):
        cache, metadata = _decode_mark(wire, wire.prompt_cache_breakpoint)
        extra = {**(metadata or {}).get(FAMILY, {}), "~image_url": Raw(b'"string"')}
        return _image(wire.image_url, None, cache, {FAMILY: extra})
    inner = wire.image_url
    cache, metadata = _decode_mark(wire, wire.prompt_cache_breakpoint, image_url=inner.extra)
    return _image(inner.url, None if inner.detail is UNSET else inner.detail, cache, metadata)


def _image(url: str, detail: str | None, cache: Cache | None, metadata: Metadata | None) -> Image:
    notes: Extra = dict((metadata or {}).get(FAMILY, {}))
    inline = read_image_url(url, notes)
    if inline is None:
        note_own_store(url, notes)  # vLLM reads file paths, other servers their own stores
    metadata = {FAMILY: notes} if notes else None
    if inline is None:
        return Image(url=url, cache=cache, detail=detail, metadata=metadata)
    return Image(*inline, cache=cache, detail=detail, metadata=metadata)


def _decode_audio(wire: AudioPart) -> Audio:
    inner = wire.input_audio
    if isinstance(inner, str):
        # Mistral takes the base64 text, or a URL, without an object around it.
        cache, metadata = _decode_mark(wire, wire.prompt_cache_breakpoint)
        extra = {**(metadata or {}).get(FAMILY, {}), "~input_audio": Raw(b'"string"')}
        return Audio("audio/wav", inner, cache=cache, metadata={FAMILY: extra})
    cache, metadata = _decode_mark(wire, wire.prompt_cache_breakpoint, input_audio=inner.extra)
    return Audio(audio_type(inner.format), inner.data, cache=cache, metadata=metadata)


def _decode_file(wire: FilePart) -> Document:
    inner = wire.file
    cache, metadata = _decode_mark(wire, wire.prompt_cache_breakpoint, file=inner.extra)
    metadata = {FAMILY: {**(metadata or {}).get(FAMILY, {}), "~file": Raw(b"true")}}
    title = None if inner.filename is UNSET else inner.filename
    file_id = None if inner.file_id is UNSET else inner.file_id
    if inner.file_data is UNSET:
        return Document(file_id=file_id, title=title, cache=cache, metadata=metadata)
    inline = split_data_url(inner.file_data)
    if inline is None:
        return Document(url=inner.file_data, file_id=file_id, title=title, cache=cache, metadata=metadata)
    return Document(inline[0], inline[1], file_id=file_id, title=title, cache=cache, metadata=metadata)


def _decode_document_url(wire: DocumentUrlPart) -> Document:
    extra: Extra = {**({} if wire.extra is UNSET else wire.extra), BY_URL: Raw(b"true")}
    title = None if wire.document_name is UNSET else wire.document_name
    if wire.document_name is None:
        extra["document_name"] = Raw(b"null")
    inline = split_data_url(wire.document_url)
    if inline is None or not inline[0]:
        return Document(url=wire.document_url, title=title, metadata={FAMILY: extra})
    return Document(inline[0], inline[1], title=title, metadata={FAMILY: extra})


def _decode_refusal(wire: RefusalPart) -> Refusal:
    return Refusal(wire.refusal, keep(FAMILY, wire.extra))


def _decode_thinking(wire: ThinkingPart) -> Reasoning:
    notes: Extra = {"~thinking": encode_with_extra(wire)}
    pieces = parse_json(wire.thinking)
    if isinstance(pieces, str):
        return Reasoning(pieces, metadata={FAMILY: notes})
    given = pieces if isinstance(pieces, list) else ()
    texts = [piece.get("text") for piece in given if isinstance(piece, dict)]
    return Reasoning("".join([text for text in texts if isinstance(text, str)]), metadata={FAMILY: notes})


def _decode_unmodelled(wire: Unmodelled) -> Opaque:
    return Opaque(FAMILY, str(parse_json(wire.raw).get("type")), wire.raw)


_DECODE_PART: dict[type[Wire], Callable[[Any], AnyPart]] = {
    TextPart: _decode_text,
    ImagePart: _decode_image,
    AudioPart: _decode_audio,
    FilePart: _decode_file,
    DocumentUrlPart: _decode_document_url,
    RefusalPart: _decode_refusal,
    ThinkingPart: _decode_thinking,
    Unmodelled: _decode_unmodelled,
}


def decode_part(wire: ContentPart) -> AnyPart:
    return _DECODE_PART[type(wire)](wire)


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def _encode_text(part: Text, log: LossLog) -> WireValue:
    if part.metadata is None and part.cache is None and part.signature is None:
        return TextPart(part.text)
    return _finish(part, TextPart(part.text), log)


def _encode_image(part: Image, log: LossLog) -> WireValue:
    extra = (part.metadata or {}).get(FAMILY, {})
    url = web_image_url(part, extra, FAMILY, log)
    if url is None:
        return None
    detail = UNSET if part.detail is None else part.detail
    inner: Any = ImageUrl(url, detail)
    inner_keys = inner_extra(extra, "image_url")
    if inner_keys is not None:
        inner = spliced(inner, inner_keys)
    return _finish(part, ImagePart(url if "~image_url" in extra else inner), log)


def _encode_audio(part: Audio, log: LossLog) -> WireValue:
    spelled = audio_format(part.media_type or "")
    if part.data is None or spelled is None:
        log.drop(part, "", "audio", "this API takes audio as wav or mp3 data only")
        return None
    extra = (part.metadata or {}).get(FAMILY, {})
    if "~input_audio" in extra:
        return _finish(part, AudioPart(part.data), log)
    inner: Any = InputAudio(part.data, spelled)
    inner_keys = inner_extra(extra, "input_audio")
    return _finish(part, AudioPart(inner if inner_keys is None else spliced(inner, inner_keys)), log)  # type: ignore[arg-type]


def _encode_document(part: Document, log: LossLog) -> WireValue:
    extra = (part.metadata or {}).get(FAMILY, {})
    if part.text is not None:
        return TextPart(document_text(part, log))
    if part.url is not None and FAMILY not in (part.metadata or {}):
        log.drop(part, "", "document by URL", "this API takes files as data or file id")
        return None
    file_data: Any = UNSET
    if part.data is not None:
        file_data = data_url(part.media_type or "application/pdf", part.data)
    elif part.url is not None:
        file_data = part.url
    for field in ("context", "cite"):
        if getattr(part, field) is not None:
            log.drop(part, field, f"document {field}", "this API has no such setting on files")
    filename: Any = UNSET if part.title is None else part.title
    if BY_URL in extra and file_data is not UNSET:
        return _finish(part, DocumentUrlPart(file_data, filename), log)
    if part.data is not None and part.title is None and FAMILY not in (part.metadata or {}):
        filename = "document"
    inner: Any = File(file_data, filename, UNSET if part.file_id is None else part.file_id)
    inner_keys = inner_extra(extra, "file")
    return _finish(part, FilePart(inner if inner_keys is None else spliced(inner, inner_keys)), log)  # type: ignore[arg-type]


def _encode_refusal(part: Refusal, log: LossLog) -> WireValue:  # noqa: ARG001
    extra = (part.metadata or {}).get(FAMILY)
    return spliced(RefusalPart(part.text), extra) if extra else RefusalPart(part.text)


def _encode_reasoning(part: Reasoning, log: LossLog) -> WireValue:  # noqa: ARG001
    return (part.metadata or {}).get(FAMILY, {}).get("~thinking")


def _encode_opaque(part: Opaque, log: LossLog) -> WireValue:
    if part.origin == FAMILY:
        return part.block_held
    log.drop(part, "", f"{part.origin} block {part.kind!r}", "it belongs to the provider that made it")
    return None


def _encode_search_result(part: SearchResult, log: LossLog) -> WireValue:
    return _encode_text(search_as_text(part, log), log)


def _encode_foreign(part: AnyPart, log: LossLog) -> WireValue:
    log.drop(part, "", type(part).__name__, "this message cannot hold it")


def _finish(part: Text | Image | Audio | Document, wire: Wire, log: LossLog) -> WireValue:
    extra = (part.metadata or {}).get(FAMILY)
    if part.signature is not None and (extra is None or MODELLED + "extra_content" not in extra):
        drop_signature(part, part.signature, log)
    if part.cache is not None and not cache_control.is_written(part) and BREAKPOINT not in (extra or {}):
        drop_cache_mark(part, log)
    return wire if not extra else spliced(wire, extra)


_ENCODE_PART = PartHandlers[Callable[[Any, LossLog], WireValue]](
    text=_encode_text,
    reasoning=_encode_reasoning,
    refusal=_encode_refusal,
    image=_encode_image,
    document=_encode_document,
    audio=_encode_audio,
    tool_call=_encode_foreign,
    tool_result=_encode_foreign,
    server_tool_call=_encode_foreign,
    server_tool_result=_encode_foreign,
    search_result=_encode_search_result,
    opaque=_encode_opaque,
).by_type()


def encode_part(part: AnyPart, log: LossLog) -> WireValue:
    """Return the part on the wire, or None if this API cannot hold it (logged)."""
    return _ENCODE_PART[type(part)](part, log)
