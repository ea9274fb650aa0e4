"""Media types, data URLs, and transcripts in streams to clients without audio."""

from __future__ import annotations

import binascii
import re
from typing import Final

from msgspec import Raw, structs

from dragoman.codecs.part_handlers import name_of_part
from dragoman.ir import AnyPart, Audio, Document, Image, MediaDelta, Text
from dragoman.ir.notes import Extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

_AUDIO_FORMATS = {
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "flac": "audio/flac",
    "opus": "audio/opus",
    "aac": "audio/aac",
    "pcm16": "audio/L16",
}
_AUDIO_TYPES = {kind: name for name, kind in _AUDIO_FORMATS.items()} | {"audio/mp3": "mp3", "audio/x-wav": "wav"}


def split_data_url(url: str) -> tuple[str, str] | None:
    """Return (media type, base64) of a base64 data URL; None for anything else."""
    if not url.startswith("data:"):
        return None
    head, comma, data = url[5:].partition(",")
    if not comma or not head.endswith(";base64"):
        return None
    return head.removesuffix(";base64"), data


def data_url(media_type: str, data: str) -> str:
    return f"data:{media_type};base64,{data}"


_UNTYPED: Final = "~untyped"
"""Note: the data URL had no media type."""
_PARAMETERS: Final = "~parameters"
"""Note: the parameters of the media type in a data URL (`;charset=utf-8`)."""


def read_image_url(url: str, notes: Extra) -> tuple[str | None, str] | None:
    """Return (media type, base64) of a base64 data URL, None for anything else; `notes` gets the spelling."""
    inline = split_data_url(url)
    if inline is None:
        return None
    media_type, semicolon, parameters = inline[0].partition(";")
    if semicolon:
        notes[_PARAMETERS] = Raw(encode_json(semicolon + parameters))
    if media_type:
        return media_type, inline[1]
    notes[_UNTYPED] = Raw(b"true")
    return sniffed_type(inline[1]), inline[1]


def note_own_store(url: str, notes: Extra) -> None:
    """Note an address that is not of the web: only servers of this format may know it (see `web_image_url`)."""
    if not (is_fetched(url) or url.startswith("data:")):
        notes["~url"] = Raw(b"true")


def image_url(image: Image, notes: Extra) -> str | None:
    """Return the address of an image, or its data as a URL; None if it has neither."""
    if image.data is None:
        return image.url
    media_type = "" if _UNTYPED in notes else image.media_type or "image/png"
    if _PARAMETERS in notes:
        media_type += str(parse_json(notes[_PARAMETERS]))
    return data_url(media_type, image.data)


def web_image_url(image: Image, notes: Extra, family: str, log: LossLog) -> str | None:
    """Return the URL of an image for an API that takes web addresses and data; None, with a loss, if it has neither."""
    url = image_url(image, notes)
    if url is None:
        log.drop(image, "", "image by file id", "this API takes images as URL or data")
        return None
    if not (is_fetched(url) or url.startswith("data:")) and family not in (image.metadata or {}):
        log.drop(image, "", "image in a provider's own store", "this API fetches images from the web only")
        return None
    return url


def audio_type(name: str) -> str:
    """Return the media type of an audio format name (wav, mp3, …)."""
    return _AUDIO_FORMATS.get(name, f"audio/{name}")


def audio_format(media_type: str) -> str | None:
    """Return the format name of an audio media type, or None for an unknown one."""
    known = _AUDIO_TYPES.get(media_type)
    if known is None and media_type.startswith("audio/"):
        return media_type.removeprefix("audio/")
    return known


_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/opus"),
    (b"\xff\xf1", "audio/aac"),
    (b"\xff\xf9", "audio/aac"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}


def joined_base64(pieces: list[str]) -> str:
    """Join pieces that were each encoded separately as one base64 text.

    Pieces that do not end on a multiple of three bytes cannot be concatenated, so they are decoded and encoded
    together.
    """
    if not any("=" in piece or len(piece) % 4 for piece in pieces[:-1]):
        return "".join(pieces)
    try:
        whole = b"".join([binascii.a2b_base64(piece) for piece in pieces])
    except (ValueError, UnicodeError):
        return "".join(pieces)
    return binascii.b2a_base64(whole, newline=False).decode()


def sniffed_type(data: str) -> str | None:
    """Guess the media type from the first bytes of base64 data, for formats that give only the data."""
    try:
        start = binascii.a2b_base64(data[:16])
    except (ValueError, UnicodeError):
        return None
    if start.startswith(b"RIFF"):
        return _RIFF.get(start[8:12])
    return next((kind for magic, kind in _MAGIC if start.startswith(magic)), None)


_TYPES_OF_ENDINGS = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "heic": "image/heic",
    "heif": "image/heif",
    "avif": "image/avif",
    "bmp": "image/bmp",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "txt": "text/plain",
    "md": "text/markdown",
    "html": "text/html",
    "csv": "text/csv",
    "json": "application/json",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "flac": "audio/flac",
    "aac": "audio/aac",
    "ogg": "audio/ogg",
    "m4a": "audio/m4a",
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
    "mkv": "video/x-matroska",
}
_ENDING = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#]+/[^?#]*\.([A-Za-z0-9]{2,5})(?:[?#]|$)", re.IGNORECASE)

_YOUTUBE = re.compile(
    r"https?://(?:(?:www\.|m\.)?youtube\.com/(?:watch\?|shorts/|live/|embed/)|youtu\.be/\w)", re.IGNORECASE
)

WEB_IMAGES = frozenset({"image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"})
"""The image types that OpenAI and Anthropic take."""


TEXT_TYPES: Final = ("text/", "application/json", "application/xml", "application/yaml", "application/x-yaml")
"""Starts of the media types whose bytes are text."""
SVG: Final = "image/svg+xml"


def text_in(data: str) -> str | None:
    """Return the text whose bytes these are, or None if they are not base64 or not UTF-8."""
    try:
        return binascii.a2b_base64(data, strict_mode=True).decode()
    except ValueError:  # also with letters that are not ASCII
        return None


def as_text_document(part: AnyPart, log: LossLog) -> AnyPart:
    """Return a document or an SVG image whose bytes are text as a document with that text; any other part as it is."""
    if not isinstance(part, Document | Image) or part.data is None or part.media_type is None:
        return part
    is_text = part.media_type.startswith(TEXT_TYPES) or part.media_type == SVG
    text = text_in(part.data) if is_text else None
    if text is None:
        return part
    document: Document
    if isinstance(part, Image):
        document = Document(part.media_type, text=text, cache=part.cache, signature=part.signature)
        log.degrade(part, "", "SVG image", "its source is sent as text: this API takes no such images")
        if part.detail not in {None, "auto"}:
            log.drop(part, "detail", f"image detail {part.detail!r}", "the image is sent as text")
    else:
        document = structs.replace(part, data=None, text=text)
    log.replaced(document, part)
    return document


def document_text(part: Document, log: LossLog) -> str:
    """Return the text of a document that an API takes as plain text only; the rest of the document is reported."""
    log.degrade(part, "", "text document", "sent as plain text")
    _report_rest(part, ("title", "context", "cite", "cache", "signature"), log)
    return part.text or ""


def transcript(part: Audio, log: LossLog, why: str) -> str:
    """Return the transcript of audio that an API does not take; the rest of the part is reported."""
    log.degrade(part, "", "audio", f"its transcript is sent: {why}")
    _report_rest(part, ("cache", "signature"), log)
    return part.transcript or ""


def _report_rest(part: Audio | Document, fields: tuple[str, ...], log: LossLog) -> None:
    for field in fields:
        if getattr(part, field) is not None:
            log.drop(part, field, f"{name_of_part(part)} {field}", "only its text is sent")


_STORED_WITH_GOOGLE = "https://generativelanguage.googleapis.com/"


def is_fetched(url: str) -> bool:
    """Whether an API can fetch the URL from the web. A file stored with Google needs its owner's key."""
    return url.startswith(("https://", "http://")) and not url.startswith(_STORED_WITH_GOOGLE)


def type_of_address(url: str) -> str | None:
    """Return the media type implied by the file extension of a URL, if any; YouTube's addresses show videos."""
    found = _ENDING.match(url)
    if found is None:
        return "video/mp4" if _YOUTUBE.match(url) else None
    return _TYPES_OF_ENDINGS.get(found[1].lower())


def is_refused_image(media_type: str | None, url: str | None) -> bool:
    """Whether APIs that take PNG, JPEG, GIF and WebP refuse the image, by its media type or that of its URL."""
    kind = media_type or (None if url is None else type_of_address(url))
    return kind is not None and kind not in WEB_IMAGES


def as_transcript(part: AnyPart, log: LossLog) -> AnyPart:
    """Replace streamed audio by a text, whose fragments will be the transcript; complete parts stay as they are."""
    if type(part) is not Audio or part.data or part.url or part.file_id:
        return part
    log.degrade(part, "", "audio", "its transcript is sent: streams of this API have no audio")
    text = Text(part.transcript or "")
    log.replaced(text, part)
    return text


def unspoken(_encoder: object, _event: MediaDelta) -> list[bytes]:
    """Write nothing: the loss was reported when the audio began."""
    return []
