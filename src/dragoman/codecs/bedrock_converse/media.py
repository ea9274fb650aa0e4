"""Images, documents, videos and audio, both ways. Bytes are base64 text; the server fetches only S3 URLs."""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Any

from msgspec import UNSET, Raw
from msgspec.structs import replace

from dragoman.codecs.bedrock_converse.profile import FAMILY, ModelLimits
from dragoman.codecs.bedrock_converse.wire import (
    Block,
    CitationsSwitch,
    MediaSource,
    MediaWire,
    S3Location,
)
from dragoman.codecs.common_losses import drop_signature
from dragoman.codecs.media import TEXT_TYPES, audio_format, audio_type
from dragoman.codecs.reading import WireReader, WireValue, keep, restore, spliced
from dragoman.errors import DecodeError
from dragoman.ir import Audio, Document, Image, Opaque
from dragoman.ir.notes import MODELLED, Extra, family_notes, inner_extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

_reader = WireReader(MediaWire, "bedrock-converse media")

PDF = "application/pdf"
_OFFICE = "application/vnd.openxmlformats-officedocument."
_DOCUMENTS = {
    "pdf": PDF,
    "csv": "text/csv",
    "doc": "application/msword",
    "docx": _OFFICE + "wordprocessingml.document",
    "xls": "application/vnd.ms-excel",
    "xlsx": _OFFICE + "spreadsheetml.sheet",
    "html": "text/html",
    "txt": "text/plain",
    "md": "text/markdown",
}
_VIDEOS = {
    "mkv": "video/x-matroska",
    "mov": "video/quicktime",
    "mp4": "video/mp4",
    "webm": "video/webm",
    "flv": "video/x-flv",
    "mpeg": "video/mpeg",
    "mpg": "video/mpg",
    "wmv": "video/x-ms-wmv",
    "three_gp": "video/3gpp",
}
_IMAGES = {"image/png": "png", "image/jpeg": "jpeg", "image/jpg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
_DOCUMENT_FORMATS = {kind: name for name, kind in _DOCUMENTS.items()} | {"text/x-markdown": "md"}
_VIDEO_FORMATS = {kind: name for name, kind in _VIDEOS.items()} | {"video/mov": "mov", "video/3gp": "three_gp"}
_AUDIO_FORMATS = {"mp3", "opus", "wav", "aac", "flac", "mp4", "ogg", "mkv", "mka", "x-aac", "m4a", "mpeg", "mpga"}
_AUDIO_FORMATS |= {"pcm", "webm"}
S3 = "s3://"

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def decode_media(kind: str, raw: Raw) -> Image | Document | Audio | Opaque:
    """Decode a media block; one of unknown form is carried whole."""
    try:
        wire = _reader.read(bytes(raw))
    except DecodeError:
        return whole_media(kind, raw)
    source = wire.source
    sources = [source.bytes, source.s3_location, source.text, source.content]
    if len([item for item in sources if item is not UNSET]) != 1 or (kind != "document" and _says_document(wire)):
        return whole_media(kind, raw)
    part: Image | Document | Audio | Opaque = _DECODE[kind](wire, _notes(wire), raw)
    return part


def whole_media(kind: str, raw: Raw) -> Opaque:
    return Opaque(FAMILY, kind, Raw(encode_json({kind: raw})))


def _says_document(wire: MediaWire) -> bool:
    source = wire.source
    only = (wire.name, wire.context, wire.citations, source.text, source.content)
    return wire.format is UNSET or any(item is not UNSET for item in only)


def _notes(wire: MediaWire) -> Extra:
    place = wire.source.s3_location
    within = {"s3Location": UNSET if place is UNSET else place.extra}
    if wire.citations is not UNSET:
        within["citations"] = wire.citations.extra
    return (keep(FAMILY, wire.extra, source=wire.source.extra, **within) or {FAMILY: {}})[FAMILY]


def _data_and_url(source: MediaSource) -> tuple[str | None, str | None]:
    """Return (data, URL) of a source; at most one is given."""
    if source.s3_location is not UNSET:
        return None, source.s3_location.uri
    return None if source.bytes is UNSET else source.bytes, None


def _decode_image(wire: MediaWire, notes: Extra, raw: Raw) -> Image:  # noqa: ARG001
    data, url = _data_and_url(wire.source)
    return Image(f"image/{wire.format}", data, url, metadata={FAMILY: notes} if notes else None)


def _decode_video(wire: MediaWire, notes: Extra, raw: Raw) -> Document:  # noqa: ARG001
    data, url = _data_and_url(wire.source)
    media_type = _VIDEOS.get(str(wire.format), f"video/{wire.format}")
    return Document(media_type, data, url, metadata={FAMILY: notes} if notes else None)


_SPELLED = "~format"
"""Note: the format of audio that has two names (mpeg, mp3)."""


def _decode_audio(wire: MediaWire, notes: Extra, raw: Raw) -> Audio:  # noqa: ARG001
    data, url = _data_and_url(wire.source)
    media_type = audio_type(str(wire.format))
    if audio_format(media_type) != wire.format:
        media_type, notes[_SPELLED] = f"audio/{wire.format}", Raw(encode_json(wire.format))
    return Audio(media_type, data, url, metadata={FAMILY: notes} if notes else None)


def _decode_document(wire: MediaWire, notes: Extra, raw: Raw) -> Document | Opaque:
    source, switch = wire.source, wire.citations
    media_type = None
    if wire.format is not UNSET:
        media_type = _DOCUMENTS.get(wire.format)
        if media_type is None:
            return whole_media("document", raw)
    if switch is not UNSET and (switch.enabled is UNSET or switch.extra is not UNSET):
        notes["~citations"] = restore(switch)
    data, url = _data_and_url(source)
    text = None if source.text is UNSET else source.text
    if source.content is not UNSET:
        text, complete = _content_text(source.content)
        # If the text is incomplete, the key is not marked as modelled: for other formats it is a loss.
        notes[(MODELLED if complete else "") + "source"] = restore(source)
    return Document(
        media_type,
        data,
        url,
        text=text,
        title=None if wire.name is UNSET else wire.name,
        context=None if wire.context is UNSET else wire.context,
        cite=None if switch is UNSET or switch.enabled is UNSET else switch.enabled,
        metadata={FAMILY: notes} if notes else None,
    )


def _content_text(content: Raw) -> tuple[str, bool]:
    """Return the text of a document given in blocks, and whether that is all of it."""
    value = parse_json(content)
    blocks = value if isinstance(value, list) else [value]
    texts = [block["text"] for block in blocks if isinstance(block, dict) and set(block) == {"text"}]
    return "\n\n".join(text for text in texts if isinstance(text, str)), len(texts) == len(blocks)


_DECODE: dict[str, Any] = {
    "image": _decode_image,
    "video": _decode_video,
    "audio": _decode_audio,
    "document": _decode_document,
}

# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────

# AWS's documentation omits the underscore; the server accepts it (recorded).
_UNSPEAKABLE = re.compile(r"[^a-zA-Z0-9_\s()\[\]-]+")
_SPACES = re.compile(r"\s+")
_LONGEST_NAME = 200
_MOST = {"image": 20, "document": 5}


class MediaEncoder:
    """Encodes the media of one body. Returns None for media that cannot be sent, and puts the reason in `why`."""

    def __init__(self, log: LossLog, limits: ModelLimits, *, native: bool) -> None:
        self._log = log
        self._limits = limits
        self._native = native
        self._names: set[str] = set()
        self._counts: dict[str, int] = {}
        self.why = ""

    def next_message(self) -> None:
        """Reset the counts: the server's limits are per message."""
        if self._counts:
            self._counts = {}

    def _has_room(self, kind: str) -> bool:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        self.why = f"this API takes {_MOST[kind]} of them in one message"
        return self._native or self._counts[kind] <= _MOST[kind]

    def image(self, part: Image) -> Block | None:
        known = _IMAGES.get(part.media_type or "image/png")
        if self._native and part.media_type is not None:
            known = part.media_type.removeprefix("image/")
        if known is None:
            self.why = f"this API takes PNG, JPEG, GIF and WebP, not {part.media_type}"
            return None
        source = self._source(part)
        if source is None or not self._has_room("image"):
            return None
        if part.detail not in {None, "auto"}:
            self._log.drop(part, "detail", f"image detail {part.detail!r}", "this API has no such setting")
        return Block(image=_splice_source(MediaWire(source, known), part))

    def audio(self, part: Audio) -> Block | None:
        known = audio_format(part.media_type or "")
        if not (self._native or self._limits.plays):
            self.why = "this model takes no audio"
            return None
        if known is None or not (self._native or known in _AUDIO_FORMATS):
            self.why = f"this API takes no audio of type {part.media_type}"
            return None
        source = self._source(part)
        notes = family_notes(FAMILY, part.metadata)
        known = parse_json(notes[_SPELLED]) if _SPELLED in notes else known
        return None if source is None else Block(audio=_splice_source(MediaWire(source, known), part))

    def document(self, part: Document) -> Block | None:
        media_type = part.media_type or ""
        if media_type.startswith("video/"):
            return self._video(part)
        if media_type.startswith("image/"):
            block = self.image(Image(media_type, part.data, part.url, part.file_id))
            if block is not None:
                self._log.degrade(part, "", "document that is a picture", "sent as an image")
            return block
        notes = family_notes(FAMILY, part.metadata)
        noted = "source" in notes or MODELLED + "source" in notes
        known = self._format(part)
        source: Any = UNSET if noted else self._document_source(part)
        if source is None or known is None or not self._has_room("document"):
            return None
        switch: Any = UNSET if part.cite is None else CitationsSwitch(part.cite)
        wire = MediaWire(
            source,
            known,
            self._name(part),
            UNSET if part.context is None else part.context,
            notes.get("~citations", switch),
        )
        return Block(document=_splice_source(wire, part))

    def _video(self, part: Document) -> Block | None:
        media_type = part.media_type or ""
        if not (self._native or self._limits.plays):
            self.why = "this model takes no video"
            return None
        known = _VIDEO_FORMATS.get(media_type)
        if known is None and self._native:
            known = media_type.removeprefix("video/")
        if known is None:
            self.why = f"this API takes no video of type {media_type}"
            return None
        source = self._source(part)
        if source is not None and part.title is not None:
            self._log.drop(part, "title", "name of the video", "this API has no such field")
        return None if source is None else Block(video=_splice_source(MediaWire(source, known), part))

    def _format(self, part: Document) -> WireValue:
        """Return the format's name, UNSET if none was given, None if this API has none for the type."""
        media_type = part.media_type
        if media_type is None:
            return UNSET if self._native else "txt" if part.text is not None else "pdf"
        known = _DOCUMENT_FORMATS.get(media_type.partition(";")[0])
        if known is not None:
            return known
        if part.text is None and not (part.data is not None and media_type.startswith(TEXT_TYPES)):
            self.why = f"this API takes no document of type {media_type}"
            return None
        self._log.degrade(part, "media_type", f"media type {media_type}", "sent as plain text")
        return "txt"

    def _document_source(self, part: Document) -> MediaSource | None:
        media_type = part.media_type or PDF
        if part.data is not None and not self._native and media_type.startswith("text/") and not _is_text(part.data):
            self.why = "its content is not text"
            return None
        return self._source(part)

    def _source(self, part: Image | Document | Audio) -> MediaSource | None:
        if part.signature is not None:
            drop_signature(part, part.signature, self._log)
        if isinstance(part, Document) and part.text is not None:
            return MediaSource(text=part.text)
        if part.data is not None:
            return MediaSource(part.data)
        if part.url is not None and part.url.startswith(S3) and not (self._native or self._limits.fetches):
            self.why = "this model takes nothing from S3"
            return None
        if part.url is not None and (self._native or part.url.startswith(S3)):
            place: Any = S3Location(part.url)
            inner = inner_extra(family_notes(FAMILY, part.metadata), "s3Location")
            return MediaSource(s3_location=place if inner is None else spliced(place, inner))  # type: ignore[arg-type]
        if part.file_id is not None:
            self.why = "its file id belongs to another provider"
            return None
        self.why = "this API fetches nothing but s3:// addresses"
        return None

    def _name(self, part: Document) -> WireValue:
        """Return a name the server accepts: letters, digits, single spaces, hyphens, brackets; and no name twice."""
        title = part.title
        if self._native:
            return UNSET if title is None else title
        name = _SPACES.sub(" ", _UNSPEAKABLE.sub("-", title or "")).strip(" -")[:_LONGEST_NAME].strip()
        base = name = name or "document"
        count = 1
        while name in self._names:
            count += 1
            name = f"{base[: _LONGEST_NAME - 8]}-{count}"
        self._names.add(name)
        if title is None:
            self._log.invent(part, "title", f"document name {name!r}", "this API requires one")
        elif name != title:
            self._log.degrade(part, "title", f"document name {title!r}", f"sent as {name!r}: this API refuses it")
        return name


def _splice_source(wire: MediaWire, part: Image | Document | Audio) -> Raw:
    notes = family_notes(FAMILY, part.metadata)
    inner = inner_extra(notes, "source") if notes else None
    if inner is not None and isinstance(wire.source, MediaSource):
        wire = replace(wire, source=spliced(wire.source, inner))
    return spliced(wire, notes)


def _is_text(data: str) -> bool:
    try:
        b64decode(data, validate=True).decode()
    except ValueError:  # not base64, non-ASCII letters in it, or bytes that are not text
        return False
    return True
