"""Images, audio and whatever else a message holds beside its text, both ways.

`images` is a list of bare base64: no media type, no position in the text. The server inspects the bytes, and so do
we; audio is in the same list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dragoman.codecs.media import as_text_document, document_text, sniffed_type, transcript
from dragoman.codecs.ollama_chat.hosted_tools import HOSTED
from dragoman.codecs.search_results import search_text
from dragoman.codecs.shared_tools import cross_hosted
from dragoman.ir import (
    AnyPart,
    Audio,
    Document,
    Image,
    Media,
    Opaque,
    Refusal,
    SearchResult,
    ServerToolCall,
    ServerToolResult,
    Text,
)
from dragoman.losses import LossLog

_SOUND = frozenset({"audio/wav", "audio/x-wav", "audio/wave", "audio/mpeg", "audio/mp3"})
_UNSAID: dict[type[Media], tuple[str, ...]] = {
    Image: ("detail",),
    Audio: ("transcript",),
    Document: ("title", "context", "cite"),
}

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def decode_images(images: Sequence[str]) -> list[Image | Audio]:
    return [_decode_image(data) for data in images]


def _decode_image(data: str) -> Image | Audio:
    kind = sniffed_type(data)
    return Audio(kind, data) if kind is not None and kind.startswith("audio/") else Image(kind, data)


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


_APART = "this API keeps images beside the text, not in it"


class Gathered:
    """The content of one message's fields: text that is joined, and media beside it."""

    __slots__ = ("images", "texts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.images: list[str] = []


def gather(
    parts: Iterable[AnyPart],
    log: LossLog,
    *,
    text_first: bool = False,
    media: bool = True,
    to_client: bool = False,
) -> Gathered:
    """Collect text and media of these parts; report what the message cannot hold, and an unusual order."""
    gathered = Gathered()
    for part in [as_text_document(part, log) for part in parts]:
        if isinstance(part, Text):
            report_text(part, log)
            gathered.texts.append(part.text)
            if text_first and gathered.images:
                log.degrade(part, "", "place among the media", _APART)
        elif isinstance(part, Document) and part.text is not None:
            gathered.texts.append(document_text(part, log))
        elif isinstance(part, Refusal):
            log.degrade(part, "", "refusal", "this API has no refusals: it crosses as text")
            gathered.texts.append(part.text)
        elif isinstance(part, Audio) and part.transcript and not media:
            gathered.texts.append(transcript(part, log, "clients of this API take no media in an answer"))
        elif isinstance(part, Media) and not media:
            # Ollama's own client fails on an answer with media.
            log.drop(part, "", type(part).__name__.lower(), "clients of this API take no media in an answer")
        elif isinstance(part, Media):
            data = _encode_media(part, log)
            if data is not None:
                if gathered.texts and not text_first:
                    log.degrade(part, "", "place among the texts", _APART)
                gathered.images.append(data)
        elif isinstance(part, ServerToolCall | ServerToolResult):
            gathered.texts += _hosted_text(part, log, to_client=to_client)
        else:
            gathered.texts += _other_text(part, log)
    return gathered


def _other_text(part: AnyPart, log: LossLog) -> list[str]:
    if isinstance(part, SearchResult):
        if part.cache is not None:
            log.drop(part, "cache", "cache mark", "prompts are cached automatically by this API")
        return [search_text(part, log)]
    of = f"{part.origin} block" if isinstance(part, Opaque) else type(part).__name__.lower()
    log.drop(part, "", of, "this message cannot hold it")
    return []


def _hosted_text(part: ServerToolCall | ServerToolResult, log: LossLog, *, to_client: bool) -> list[str]:
    shown = cross_hosted(part, log, HOSTED if to_client else None)
    return [f"\n{shown.text}\n"] if type(shown) is Text else []


def report_text(part: Text, log: LossLog) -> None:
    """Report the properties of a text that this API has no field for."""
    if part.citations:
        log.drop(part, "citations", "citations", "this API has no citations")
    if part.cache is not None:
        log.drop(part, "cache", "cache mark", "prompts are cached automatically by this API")


_NO_DECODER = frozenset({"image/heic", "image/heif", "image/avif", "image/svg+xml"})


def _encode_media(part: Media, log: LossLog) -> str | None:
    """Return the bare base64, or None if the list cannot hold it (logged)."""
    kind = type(part).__name__.lower()
    if isinstance(part, Document):
        log.drop(part, "", "document", "this API takes text, images and sound only")
        return None
    if part.data is None:
        log.drop(part, "", f"{kind} by reference", f"this API takes {kind} data only")
        return None
    if isinstance(part, Audio) and part.media_type is not None and part.media_type not in _SOUND:
        log.drop(part, "", part.media_type, "this API takes wav or mp3 sound only")
        return None
    if part.media_type in _NO_DECODER:
        log.drop(part, "", part.media_type, "no model server reads images of this type")
        return None
    _report_unsaid(part, log)
    return part.data


def _report_unsaid(part: Media, log: LossLog) -> None:
    if part.cache is not None:
        log.drop(part, "cache", "cache mark", "prompts are cached automatically by this API")
    if part.signature is not None:
        log.drop(part, "signature", "signature", f"only {part.signature.family} can verify it")
    for field in _UNSAID.get(type(part), ()):
        if getattr(part, field) is not None:
            log.drop(part, field, f"{field} of {type(part).__name__.lower()}", "this API has no such field")
