"""Content parts of messages and of tool outputs, both ways."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.annotations import AnnotationFormat
from dragoman.codecs.cache_breakpoints import with_breakpoint
from dragoman.codecs.common_losses import drop_cache_mark, drop_signature
from dragoman.codecs.media import (
    audio_format,
    audio_type,
    data_url,
    document_text,
    image_url,
    is_fetched,
    is_refused_image,
    read_image_url,
    split_data_url,
    transcript,
    type_of_address,
)
from dragoman.codecs.openai_responses.profile import FAMILY
from dragoman.codecs.openai_responses.wire import (
    AudioData,
    Breakpoint,
    ContentPart,
    InputAudio,
    InputFile,
    InputImage,
    InputText,
    OutputText,
    ReasoningText,
    RefusalPart,
    SummaryText,
)
from dragoman.codecs.part_handlers import PartHandlers, name_of_part
from dragoman.codecs.reading import WireValue, as_json, keep, restore, spliced
from dragoman.codecs.search_results import search_as_text
from dragoman.codecs.wire_values import Unmodelled, Wire
from dragoman.ir import (
    AnyPart,
    Audio,
    Cache,
    Citation,
    Document,
    Image,
    Opaque,
    Refusal,
    SearchResult,
    Text,
)
from dragoman.ir.notes import MODELLED, Extra, family_notes, inner_extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

SPELLED = "~part"
"""Note: the type of a text part if it is not the usual one at its position."""
CONTENT = "part:"
"""Prefix of the kind of an opaque content part; without it, an opaque part of a message is a whole item."""
ANNOTATIONS = MODELLED + "annotations"
LOGPROBS = MODELLED + "logprobs"
NOTHING = Raw(b"[]")
NULL = Raw(b"null")
TRUE = Raw(b"true")


# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def _decode_input_text(wire: InputText, *, assistant: bool) -> Text:
    if wire.prompt_cache_breakpoint is UNSET and wire.extra is UNSET and not assistant:
        return Text(wire.text)
    cache, notes = _decode_mark(wire, wire.prompt_cache_breakpoint)
    if assistant:
        notes[SPELLED] = Raw(b'"input_text"')
    return Text(wire.text, cache=cache, metadata={FAMILY: notes} if notes else None)


def _decode_mark(wire: Wire, mark: Breakpoint | UnsetType) -> tuple[Cache | None, Extra]:
    notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    if mark is UNSET:
        return None, notes
    if mark.extra is not UNSET:
        notes.update((keep(FAMILY, UNSET, prompt_cache_breakpoint=mark.extra) or {})[FAMILY])
    notes[MODELLED + "prompt_cache_breakpoint"] = spliced(mark, mark.extra or {})
    return Cache(None if mark.ttl is UNSET else mark.ttl), notes


def _decode_output_text(wire: OutputText, *, assistant: bool) -> Text:
    if assistant and wire.annotations is UNSET and wire.logprobs is UNSET and wire.extra is UNSET:
        return Text(wire.text)
    notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    citations: tuple[Citation, ...] = ()
    if wire.annotations is not UNSET:
        citations = CITATIONS.read_all(wire.annotations)
        if not citations:
            notes[ANNOTATIONS] = wire.annotations
    if wire.logprobs is not UNSET:
        says_nothing = bytes(wire.logprobs) in {b"[]", b"null"}
        notes[LOGPROBS if says_nothing else "logprobs"] = wire.logprobs
    if not assistant:
        notes[SPELLED] = Raw(b'"output_text"')
    return Text(wire.text, citations, metadata={FAMILY: notes} if notes else None)


def _decode_plain_text(wire: ReasoningText | SummaryText, *, assistant: bool) -> Opaque:  # noqa: ARG001
    """Keep misplaced reasoning unchanged, for the API itself to refuse."""
    return Opaque(FAMILY, CONTENT + "misplaced", restore(wire))


def _decode_image(wire: InputImage, *, assistant: bool) -> Image:  # noqa: ARG001
    cache, notes = _decode_mark(wire, wire.prompt_cache_breakpoint)
    inline = None if wire.image_url is UNSET else read_image_url(wire.image_url, notes)
    metadata = {FAMILY: notes} if notes else None
    detail = None if wire.detail is UNSET else wire.detail
    file_id = None if wire.file_id is UNSET else wire.file_id
    if inline is None:
        url = None if wire.image_url is UNSET else wire.image_url
        return Image(url=url, file_id=file_id, cache=cache, detail=detail, metadata=metadata)
    return Image(*inline, file_id=file_id, cache=cache, detail=detail, metadata=metadata)


def _decode_file(wire: InputFile, *, assistant: bool) -> Document:  # noqa: ARG001
    cache, notes = _decode_mark(wire, wire.prompt_cache_breakpoint)
    if wire.detail is not UNSET:
        notes["detail"] = wire.detail
    title = None if wire.filename is UNSET else wire.filename
    file_id = None if wire.file_id is UNSET else wire.file_id
    url = None if wire.file_url is UNSET else wire.file_url
    media_type = data = None
    if wire.file_data is not UNSET:
        inline = split_data_url(wire.file_data)
        if inline is None:
            notes["file_data"] = as_json(wire.file_data)  # not a data URL: other formats cannot read it
        else:
            media_type, data = inline
    metadata = {FAMILY: notes} if notes else None
    return Document(media_type, data, url=url, file_id=file_id, title=title, cache=cache, metadata=metadata)


def _decode_audio(wire: InputAudio, *, assistant: bool) -> Audio:  # noqa: ARG001
    inner = wire.input_audio
    return Audio(audio_type(inner.format), inner.data, metadata=keep(FAMILY, wire.extra, input_audio=inner.extra))


def _decode_refusal(wire: RefusalPart, *, assistant: bool) -> Refusal:  # noqa: ARG001
    return Refusal(wire.refusal, keep(FAMILY, wire.extra))


def _decode_unmodelled(wire: Unmodelled, *, assistant: bool) -> Opaque:  # noqa: ARG001
    found = parse_json(wire.raw)
    kind = found.get("type") if isinstance(found, dict) else None
    return Opaque(FAMILY, f"{CONTENT}{kind or ''}", wire.raw)


_DECODE: dict[type[Wire], Callable[..., AnyPart]] = {
    InputText: _decode_input_text,
    OutputText: _decode_output_text,
    InputImage: _decode_image,
    InputFile: _decode_file,
    InputAudio: _decode_audio,
    RefusalPart: _decode_refusal,
    ReasoningText: _decode_plain_text,
    SummaryText: _decode_plain_text,
    Unmodelled: _decode_unmodelled,
}


def decode_part(wire: ContentPart, *, assistant: bool = False) -> AnyPart:
    return _DECODE[type(wire)](wire, assistant=assistant)


# ── citations ─────────────────────────────────────────────────────────────────────────────────────────────────

CITATIONS = AnnotationFormat(
    FAMILY,
    frozenset({"type", "url", "title", "filename", "start_index", "end_index", "index"}),
    ("url",),
    ("title", "filename"),
    "annotations of this API cite its own files only",
    always_titled=True,
)


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────

_NOT_FILES = ("audio/", "video/", "application/octet-stream")
_FILM = re.compile(r"[^?#]*\.(mp3|wav|ogg|flac|aac|m4a|mp4|mov|webm|mkv|avi)([?#]|$)", re.IGNORECASE)
_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"})


_MARKED = frozenset({Text, Image, Document})


class PartEncoder:
    """Encodes content parts. A part that this API cannot hold is logged, and encoded as None."""

    _log: LossLog
    _native: bool
    """The body came from this family: all of it may be sent again exactly as it was."""
    _marks: bool
    """The model accepts cache marks."""

    def encode_part(self, part: AnyPart, role: str) -> WireValue:
        """Encode one part, or return None if this API cannot hold it there (logged)."""
        if self._marks and type(part) in _MARKED and role != "assistant" and part.cache is not None:  # type: ignore[union-attr]
            part = with_breakpoint(part, FAMILY, self._log)  # type: ignore[type-var]
        return _ENCODERS[type(part)](self, part, role)

    def _encode_text(self, part: Text, role: str) -> WireValue:
        notes = family_notes(FAMILY, part.metadata)
        if not notes and part.cache is None and part.signature is None and role != "assistant" and not part.citations:
            return InputText(part.text)
        spelled = parse_json(notes[SPELLED]) if SPELLED in notes else None
        if part.cache is not None and MODELLED + "prompt_cache_breakpoint" not in notes:
            drop_cache_mark(part, self._log)
        if spelled == "output_text" or (role == "assistant" and spelled is None):
            return self._encode_output_text(part, notes)
        if role != "assistant" and part.signature is not None:
            drop_signature(part, part.signature, self._log)
        if part.citations:
            self._log.drop(part, "citations", "citations", "only the model's text has annotations in this API")
        return spliced(InputText(part.text), notes)

    def _encode_output_text(self, part: Text, notes: Extra) -> WireValue:
        annotations: Any = CITATIONS.write_all(part, self._log) if part.citations else UNSET
        wire = OutputText(part.text, UNSET if annotations is UNSET else Raw(encode_json(annotations)))
        return spliced(wire, notes) if notes else wire

    def _encode_image(self, part: Image, role: str) -> WireValue:
        if role in {"assistant", "system"} and not self._native:
            return self._lose(part, f"a message of the {role} holds no images here")
        self._withhold_signature(part)
        url = image_url(part, family_notes(FAMILY, part.metadata))
        if part.data is not None and not self._native and (part.media_type or "image/png") not in _IMAGE_TYPES:
            return self._lose(part, f"this API takes PNG, JPEG, GIF and WebP, not {part.media_type}")
        if url is not None and not self._native and not (is_fetched(url) or url.startswith("data:")):
            return self._lose(part, "this API fetches images from the web only")
        if part.data is None and not self._native and is_refused_image(part.media_type, part.url):
            return self._lose(part, "this API takes PNG, JPEG, GIF and WebP")
        if url is None and not self._knows_file(part):
            return self._lose(part, "its file id belongs to another provider")
        # `detail` is required in messages; elsewhere, a missing one means "auto".
        detail: Any = part.detail if part.detail is not None else UNSET if self._native else "auto"
        file_id: Any = UNSET if part.file_id is None else part.file_id
        return self._drop_mark(part, InputImage(UNSET if url is None else url, file_id, detail))

    def _encode_document(self, part: Document, role: str) -> WireValue:
        if role in {"assistant", "system"} and not self._native and part.text is None:
            return self._lose(part, f"a message of the {role} holds no files here")
        if part.text is not None:
            return self._encode_text(Text(document_text(part, self._log)), role)
        self._withhold_signature(part)
        for field in ("context", "cite"):
            if getattr(part, field) is not None:
                self._log.drop(part, field, f"document {field}", "this API has no such setting on files")
        if not self._native and (part.media_type or "").startswith("image/"):
            return self._encode_image(Image(part.media_type, part.data, part.url, part.file_id), role)
        kind = part.media_type or type_of_address(part.url or "") or ""
        if not self._native and (kind.startswith(_NOT_FILES) or _FILM.match(part.url or "")):
            return self._lose(part, f"this API takes no {kind or 'sound or film'} files")
        if part.url is not None and not self._native and not is_fetched(part.url):
            return self._lose(part, "this API fetches http and https addresses only")
        if part.file_id is not None and not self._knows_file(part):
            return self._lose(part, "its file id belongs to another provider")
        data: Any = UNSET if part.data is None else data_url(part.media_type or "application/pdf", part.data)
        name: Any = UNSET if part.title is None else part.title
        if part.data is not None and part.title is None and not self._native:
            name = _file_name(part.media_type)
        if part.title is not None and part.data is None and not self._native:
            self._log.drop(part, "title", "name of the file", "this API names only files that it is sent as data")
        wire = InputFile(
            data,
            UNSET if part.url is None else part.url,
            UNSET if part.file_id is None else part.file_id,
            # A file given by URL or id has its own name.
            name if self._native or part.data is not None else UNSET,
        )
        return self._drop_mark(part, wire)

    def _encode_audio(self, part: Audio, role: str) -> WireValue:
        if self._native and part.data is not None:
            notes = family_notes(FAMILY, part.metadata)
            inner: Any = AudioData(part.data, audio_format(part.media_type or "") or "wav")
            inner_keys = inner_extra(notes, "input_audio")
            return spliced(InputAudio(inner if inner_keys is None else cast("Any", spliced(inner, inner_keys))), notes)
        if not (part.transcript or "").strip():
            return self._lose(part, "this API has no audio")
        return self._encode_text(Text(transcript(part, self._log, "this API has no audio")), role)

    def _encode_refusal(self, part: Refusal, role: str) -> WireValue:
        if role != "assistant" and not self._native:
            return self._lose(part, "only the assistant refuses")
        notes = family_notes(FAMILY, part.metadata)
        return spliced(RefusalPart(part.text), notes) if notes else RefusalPart(part.text)

    def _encode_search_result(self, part: SearchResult, role: str) -> WireValue:
        return self._encode_text(search_as_text(part, self._log), role)

    def _encode_opaque(self, part: Opaque, role: str) -> WireValue:  # noqa: ARG002
        if part.origin == FAMILY:
            return part.block_held
        return self._lose(part, "it belongs to the provider that made it")

    def _refuse(self, part: AnyPart, role: str) -> WireValue:
        return self._lose(part, f"a message of the {role} cannot hold it here")

    def _lose(self, part: AnyPart, why: str) -> None:
        self._log.drop(part, "", name_of_part(part), why)

    def _knows_file(self, part: Image | Document) -> bool:
        # Ids of this vendor's store; other vendors' ids start with the same word, followed by another character.
        return self._native or (part.file_id is not None and part.file_id.startswith(("file-", "assistant-")))

    def _withhold_signature(self, part: Image | Document) -> None:
        if part.signature is not None:
            drop_signature(part, part.signature, self._log)

    def _drop_mark(self, part: Image | Document, wire: Wire) -> WireValue:
        notes = family_notes(FAMILY, part.metadata)
        if part.cache is not None and MODELLED + "prompt_cache_breakpoint" not in notes:
            drop_cache_mark(part, self._log)
        return spliced(wire, notes) if notes else wire

    def __init__(self, log: LossLog, native: bool, marks: bool) -> None:  # noqa: FBT001
        self._log = log
        self._native = native
        self._marks = marks


_ENCODERS: dict[type[AnyPart], Callable[[Any, Any, str], WireValue]] = PartHandlers[
    Callable[[Any, Any, str], WireValue]
](
    text=PartEncoder._encode_text,
    reasoning=PartEncoder._refuse,
    refusal=PartEncoder._encode_refusal,
    image=PartEncoder._encode_image,
    document=PartEncoder._encode_document,
    audio=PartEncoder._encode_audio,
    tool_call=PartEncoder._refuse,
    tool_result=PartEncoder._refuse,
    server_tool_call=PartEncoder._refuse,
    server_tool_result=PartEncoder._refuse,
    search_result=PartEncoder._encode_search_result,
    opaque=PartEncoder._encode_opaque,
).by_type()


_EXTENSIONS = {"application/pdf": "pdf", "text/plain": "txt", "text/csv": "csv", "text/html": "html"}


def _file_name(media_type: str | None) -> str:
    """Return a name for file data: the API refuses data without one."""
    return f"document.{_EXTENSIONS.get(media_type or 'application/pdf', 'bin')}"
