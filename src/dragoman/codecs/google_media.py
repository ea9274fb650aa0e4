"""Media types that Google's models take: what is refused is respelled, sent as text, or reported.

The images are those of Google's SDK for the Interactions API, whose models are the same. `image/jpg`, SVG, JSON and
office documents are answered with "Unsupported MIME type" by generateContent.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from dragoman.codecs.media import SVG, text_in, type_of_address
from dragoman.ir import Audio, Document, Image, Text
from dragoman.losses import LossLog

Medium: TypeAlias = Image | Audio | Document

IMAGES: Final = frozenset(
    f"image/{name}" for name in ("png", "jpeg", "webp", "heic", "heif", "gif", "bmp", "tiff")
)  # fmt: skip
_RESPELLED: Final = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-ms-bmp": "image/bmp"}
TEXTS: Final = frozenset(
    {
        SVG,
        *(f"application/{name}" for name in ("json", "xml", "yaml", "x-yaml", "toml", "sql", "jsonl", "x-ndjson")),
        *(f"application/{name}" for name in ("javascript", "x-javascript", "typescript", "x-python", "x-sh")),
    }
)
"""Types whose bytes are text: they are sent as text."""
PDF: Final = "application/pdf"
_OPEN, _MICROSOFT = "application/vnd.oasis.opendocument.", "application/vnd.openxmlformats-officedocument."
OFFICE: Final = frozenset(
    {
        *(f"{_OPEN}{name}" for name in ("presentation", "text", "spreadsheet")),
        *(f"{_MICROSOFT}{name}" for name in ("presentationml.presentation", "spreadsheetml.sheet")),
        *(f"{_MICROSOFT}wordprocessingml.{name}" for name in ("document", "template")),
        *(f"application/{name}" for name in ("msword", "vnd.ms-excel", "vnd.ms-powerpoint")),
    }
)
"""Documents that the Interactions API takes beside PDF, and generateContent does not."""


def fit_medium(part: Medium, log: LossLog, documents: frozenset[str] = frozenset()) -> Medium | Text | None:
    """Return the part as Google's models take it, or None, with what changed reported.

    `documents` are the types that the API takes beside PDF, text, audio and video.
    """
    media_type = part.media_type or (None if part.url is None else type_of_address(part.url))
    kind = "" if media_type is None else media_type.partition(";")[0].strip().lower()
    if kind in _RESPELLED:
        return log.replace(part, media_type=_RESPELLED[kind])
    if kind in TEXTS and part.data is not None:
        text = text_in(part.data)
        if text is not None:
            log.degrade(part, "media_type", f"media type {kind}", "sent as text: models of this API refuse it")
            return Text(text)
    refused = kind not in IMAGES if kind.startswith("image/") else _is_refused_document(kind, documents)
    if refused:
        log.drop(part, "", f"{type(part).__name__.lower()} of type {kind}", "models of this API refuse it")
        return None
    return part


def _is_refused_document(kind: str, documents: frozenset[str]) -> bool:
    return kind.startswith("application/") and kind != PDF and kind not in documents
