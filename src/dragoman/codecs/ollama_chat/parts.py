"""Images, audio and whatever else a message holds beside its text, both ways.

`images` is a list of bare base64: no media type, no position in the text. The server inspects the bytes, and so do
we; audio is in the same list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dragoman.codecs.common_losses import degrade_refusal, drop_cache_mark, drop_signature
from dragoman.codecs.media import as_text_document, document_text, sniffed_type, transcript
from dragoman.codecs.ollama_chat.hosted_tools import HOSTED
from dragoman.codecs.part_handlers import PartHandlers, name_of_part
from dragoman.codecs.search_results import search_text
from dragoman.codecs.shared_tools import cross_hosted
from dragoman.ir import (
    AnyPart,
    Audio,
    Document,
    Image,
    Media,
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
_NO_MEDIA = "clients of this API take no media in an answer"


class PartEncoder:
    """Gathers what one message holds: text that is joined, and media beside it.

    Reports what the message cannot hold, and an unusual order.
    """

    def __init__(self, log: LossLog, *, text_first: bool = False, media: bool = True, to_client: bool = False) -> None:
        self._log = log
        self._text_first = text_first
        self._takes_media = media
        self._to_client = to_client
        self.texts: list[str] = []
        self.images: list[str] = []

    def gather(self, parts: Iterable[AnyPart]) -> PartEncoder:
        for part in [as_text_document(part, self._log) for part in parts]:
            _ENCODERS[type(part)](self, part)
        return self

    def _add_text(self, part: Text) -> None:
        _report_text(part, self._log)
        self.texts.append(part.text)
        if self._text_first and self.images:
            self._log.degrade(part, "", "place among the media", _APART)

    def _add_refusal(self, part: Refusal) -> None:
        degrade_refusal(part, self._log)
        self.texts.append(part.text)

    def _add_document(self, part: Document) -> None:
        if part.text is None:
            self._add_media(part)
        else:
            self.texts.append(document_text(part, self._log))

    def _add_audio(self, part: Audio) -> None:
        if part.transcript and not self._takes_media:
            self.texts.append(transcript(part, self._log, _NO_MEDIA))
        else:
            self._add_media(part)

    def _add_media(self, part: Media) -> None:
        if not self._takes_media:
            # Ollama's own client fails on an answer with media.
            self._log.drop(part, "", type(part).__name__.lower(), _NO_MEDIA)
            return
        data = _encode_media(part, self._log)
        if data is not None:
            if self.texts and not self._text_first:
                self._log.degrade(part, "", "place among the texts", _APART)
            self.images.append(data)

    def _add_hosted(self, part: ServerToolCall | ServerToolResult) -> None:
        shown = cross_hosted(part, self._log, HOSTED if self._to_client else None)
        if type(shown) is Text:
            self.texts.append(f"\n{shown.text}\n")

    def _add_search_result(self, part: SearchResult) -> None:
        if part.cache is not None:
            drop_cache_mark(part, self._log)
        self.texts.append(search_text(part, self._log))

    def _refuse(self, part: AnyPart) -> None:
        self._log.drop(part, "", name_of_part(part), "this message cannot hold it")


_ENCODERS: dict[type[AnyPart], Callable[[Any, Any], None]] = PartHandlers[Callable[[Any, Any], None]](
    text=PartEncoder._add_text,
    reasoning=PartEncoder._refuse,
    refusal=PartEncoder._add_refusal,
    image=PartEncoder._add_media,
    document=PartEncoder._add_document,
    audio=PartEncoder._add_audio,
    tool_call=PartEncoder._refuse,
    tool_result=PartEncoder._refuse,
    server_tool_call=PartEncoder._add_hosted,
    server_tool_result=PartEncoder._add_hosted,
    search_result=PartEncoder._add_search_result,
    opaque=PartEncoder._refuse,
).by_type()


def _report_text(part: Text, log: LossLog) -> None:
    """Report the properties of a text that this API has no field for."""
    if part.citations:
        log.drop(part, "citations", "citations", "this API has no citations")
    if part.cache is not None:
        drop_cache_mark(part, log)


_NO_DECODER = frozenset({"image/heic", "image/heif", "image/avif", "image/svg+xml"})


def _encode_media(part: Media, log: LossLog) -> str | None:
    """Return the bare base64, or None if the list cannot hold it (logged)."""
    kind = type(part).__name__.lower()
    if isinstance(part, Document):
        log.drop(part, "", "document", "this API takes text, images and audio only")
        return None
    if part.data is None:
        log.drop(part, "", f"{kind} by reference", f"this API takes {kind} data only")
        return None
    if isinstance(part, Audio) and part.media_type is not None and part.media_type not in _SOUND:
        log.drop(part, "", part.media_type, "this API takes wav or mp3 audio only")
        return None
    if part.media_type in _NO_DECODER:
        log.drop(part, "", part.media_type, "no model server reads images of this type")
        return None
    _report_unsaid(part, log)
    return part.data


def _report_unsaid(part: Media, log: LossLog) -> None:
    if part.cache is not None:
        drop_cache_mark(part, log)
    if part.signature is not None:
        drop_signature(part, part.signature, log)
    for field in _UNSAID.get(type(part), ()):
        if getattr(part, field) is not None:
            log.drop(part, field, f"{field} of {type(part).__name__.lower()}", "this API has no such field")
