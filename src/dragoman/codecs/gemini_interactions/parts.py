"""Contents, both ways: of users, of the model's output, and of results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from msgspec import UNSET, Raw

from dragoman.codecs.base64_alphabets import read_base64, write_base64
from dragoman.codecs.block_encoder import BlockEncoder, Carriers
from dragoman.codecs.common_losses import degrade_refusal, drop_cache_mark
from dragoman.codecs.gemini_interactions import foreign_signatures
from dragoman.codecs.gemini_interactions.hosted_tools import HOSTED
from dragoman.codecs.gemini_interactions.profile import FAMILY, PROFILE, InteractionsProfile
from dragoman.codecs.gemini_interactions.steps import (
    CITATIONS,
    CONTENT,
    encode_server_step,
    encode_thought,
)
from dragoman.codecs.gemini_interactions.wire import (
    AudioContent,
    DocumentContent,
    ImageContent,
    MediaContent,
    TextContent,
    ThoughtStep,
    VideoContent,
)
from dragoman.codecs.google_media import OFFICE, fit_medium
from dragoman.codecs.google_media_keys import MediumKeys, medium_in_google_words
from dragoman.codecs.google_signatures import GOOGLE, is_signed_medium
from dragoman.codecs.media import document_text, type_of_address
from dragoman.codecs.part_handlers import PartHandlers
from dragoman.codecs.reading import WireValue, restore, spliced
from dragoman.codecs.search_results import search_as_text
from dragoman.codecs.shared_tools import SharedTools, drawn_image
from dragoman.codecs.text_offsets import TextOffsets
from dragoman.codecs.wire_values import Unmodelled
from dragoman.ir import (
    AnyPart,
    Audio,
    Citation,
    Document,
    Image,
    Opaque,
    Reasoning,
    Refusal,
    Request,
    SearchResult,
    ServerToolCall,
    ServerToolResult,
    Text,
)
from dragoman.ir.notes import MODELLED, Extra, family_notes
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

ANNOTATIONS = MODELLED + "annotations"
KIND = "~kind"
"""Note: the type of a content, if its MIME type does not imply it."""


# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def decode_part(wire: Any) -> AnyPart:
    """Decode one content."""
    if type(wire) is TextContent:
        return _decode_text(wire)
    if type(wire) is Unmodelled:
        found = parse_json(wire.raw)
        return Opaque(FAMILY, f"{CONTENT}{found.get('type', '') if isinstance(found, dict) else ''}", wire.raw)
    return _decode_media(wire)


def _decode_text(wire: TextContent) -> Text:
    notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    citations: tuple[Citation, ...] = ()
    if wire.annotations is not UNSET:
        citations = CITATIONS.read_all(wire.annotations, wire.text)
        if not citations:
            notes[ANNOTATIONS] = wire.annotations
    return Text(wire.text, citations, metadata={FAMILY: notes} if notes else None)


_FIELDS: dict[type[MediaContent], tuple[str, ...]] = {
    ImageContent: (),
    AudioContent: ("sample_rate", "channels"),
    VideoContent: ("resolution", "name", "processing"),
    DocumentContent: (),
}


def _decode_media(wire: MediaContent) -> AnyPart:
    kind = type(wire)
    notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    for field in _FIELDS[kind]:
        value = getattr(wire, field)
        if value is not UNSET:
            notes[field] = value
    mime = None if wire.mime_type is UNSET else wire.mime_type
    if (wire.data is UNSET) is (wire.uri is UNSET):
        return Opaque(FAMILY, f"{CONTENT}{kind.__struct_config__.tag}", restore(wire))
    if kind is not _type_of(mime, None if wire.uri is UNSET else wire.uri, kind):
        notes[KIND] = Raw(encode_json(kind.__struct_config__.tag))
    data = None if wire.data is UNSET else read_base64(wire.data, notes)
    url = None if wire.uri is UNSET else wire.uri
    detail = None
    if isinstance(wire, ImageContent) and wire.resolution is not UNSET:
        detail = wire.resolution if wire.resolution in _DETAIL else None
        if detail is None:
            notes["resolution"] = Raw(encode_json(wire.resolution))
    google = medium_in_google_words(notes) if notes else {}
    metadata = {FAMILY: notes} | ({GOOGLE: google} if google else {}) if notes else None
    if kind is ImageContent:
        return Image(mime, data, url, metadata=metadata, detail=detail)
    if kind is AudioContent:
        return Audio(mime, data, url, metadata=metadata)
    return Document(mime, data, url, metadata=metadata)


_DETAIL = ("low", "high")


def _type_of(mime: str | None, url: str | None, otherwise: type[MediaContent]) -> type[MediaContent]:
    """Return the content type of a MIME type; without a MIME type, `otherwise` or the address decides."""
    if mime is None and otherwise in {ImageContent, AudioContent}:
        return otherwise
    mime = mime or type_of_address(url or "") or ""
    return _NAMED.get(mime.partition("/")[0].lower(), DocumentContent)


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────

_OF_THE_STEP = frozenset({"~step", "~content", "~in:step", "~apart", "~before", "~own", "~in:thought", "~tagged"})
"""Notes on a part that concern the steps around it."""


def _content_notes(part: Any) -> Extra:
    return {key: value for key, value in family_notes(FAMILY, part.metadata).items() if key not in _OF_THE_STEP}


class PartEncoder(BlockEncoder):
    """Encodes parts: as contents, or in the model's turn as steps."""

    family: ClassVar[str] = FAMILY
    signatures: ClassVar[Carriers] = foreign_signatures
    hosted: ClassVar[SharedTools] = HOSTED

    def __init__(
        self, log: LossLog, request: Request | None = None, *, native: bool, profile: InteractionsProfile = PROFILE
    ) -> None:
        super().__init__(log, request, native=native)
        self._profile = profile
        self.keys = MediumKeys(None, log)

    # ── steps ──

    def encode_part(self, part: AnyPart, role: str) -> list[WireValue]:
        """Encode the steps of one part of the model's turn."""
        return _STEPS[type(part)](self, part, role)

    def _encode_output(self, part: AnyPart, role: str) -> list[WireValue]:
        content = self.encode_content(part, role)
        return [] if content is None else [*self.thoughts_of(part), {"type": "model_output", "content": [content]}]

    def thoughts_of(self, part: Any) -> list[WireValue]:
        """Return the thought that signs an image of an answer."""
        return [ThoughtStep(part.signature.data)] if is_signed_medium(part) else []

    def _encode_reasoning(self, part: Reasoning, role: str) -> list[WireValue]:
        step = encode_thought(part, None, self._log, to_client=self._to_client, native=self._native)
        return [] if step is None or role != "assistant" else [step]

    def _encode_server(self, part: ServerToolCall | ServerToolResult, role: str) -> list[WireValue]:
        image = drawn_image(part, self._log)
        if image is not None:
            return self._encode_output(image, role)
        step = encode_server_step(part, self._log, to_client=self._to_client or self._native)
        return [] if step is None else [step]

    def encode_opaque(self, part: Opaque, role: str) -> list[WireValue]:
        if part.origin == FAMILY and part.kind.startswith(CONTENT):
            return self._encode_output(part, role)
        return super().encode_opaque(part, role)

    # ── contents ──

    def encode_content(self, part: AnyPart, role: str) -> WireValue:
        """Encode the content of a part, or return None if this API cannot hold it there (logged)."""
        return _CONTENTS[type(part)](self, part, role)

    def _content_text(self, part: Text, role: str) -> WireValue:
        self._report_part(part, role)
        annotations: Any = UNSET
        if part.citations and (role == "assistant" or self._native):
            annotations = Raw(encode_json(CITATIONS.write_all(part, self._log, TextOffsets(part.text))))
        elif part.citations:
            self._log.drop(part, "citations", "citations", "this API has annotations on its answers only")
        notes = _content_notes(part)
        wire = TextContent(part.text, UNSET if annotations == Raw(b"[]") and not self._native else annotations)
        return spliced(wire, notes) if notes else wire

    def _report_part(self, part: Any, role: str, *fields: str) -> None:
        if part.cache is not None:
            drop_cache_mark(part, self._log)
        is_kept = role == "assistant" and (type(part) is Text or is_signed_medium(part))
        if part.signature is not None and not is_kept:
            self._log.drop(part, "signature", "signature", "this API signs thoughts and steps of its own tools only")
        for field in fields:
            if getattr(part, field) is not None:
                self._log.drop(part, field, f"{type(part).__name__.lower()} {field}", "this API has no such field")

    def _content_image(self, part: Image, role: str) -> WireValue:
        resolution: Extra = {}
        if part.detail in _DETAIL:
            resolution = {"resolution": Raw(encode_json(part.detail))}
        elif part.detail is not None and part.detail != "auto":
            self._log.drop(part, "detail", f"image detail {part.detail!r}", "this API has no such resolution")
        return self._media(part, role, ImageContent, **resolution)

    def _content_document(self, part: Document, role: str) -> WireValue:
        if part.text is not None:
            return TextContent(document_text(part, self._log))
        return self._media(part, role, DocumentContent, "title", "context", "cite")

    def _content_audio(self, part: Audio, role: str) -> WireValue:
        return self._media(part, role, AudioContent, "transcript")

    def _media(self, part: Any, role: str, kind: type[MediaContent], *fields: str, **further: Raw) -> WireValue:
        if role == "system":
            return self._refuse(part, "system instructions of this API are text")
        self._report_part(part, role, *fields)
        if not self._native and not self._to_client:
            part = fit_medium(part, self._log, OFFICE)
            if part is None or type(part) is Text:
                return None if part is None else TextContent(part.text)
        notes = _content_notes(part)
        mime: Any = UNSET if part.media_type is None else part.media_type
        data: Any = UNSET if part.data is None else write_base64(part.data, notes)
        uri: Any = UNSET
        if data is UNSET:
            if part.url is None or (not self._native and self._profile.unreachable_files.match(part.url)):
                given = "file id" if part.url is None else "URL"
                self._log.drop(part, "", f"{type(part).__name__.lower()} by {given}", "this API cannot fetch it")
                return None
            uri = part.url
        kind = _NAMED[parse_json(notes[KIND])] if KIND in notes else _type_of(part.media_type, part.url, kind)
        notes = {**notes, **further} if kind is ImageContent else notes
        if not self._native:
            notes = {**notes, **self.keys.write(part, str(kind.__struct_config__.tag), notes)}
        wire = kind(data, uri, mime)
        return spliced(wire, notes) if notes else wire

    def _content_refusal(self, part: Refusal, role: str) -> WireValue:  # noqa: ARG002
        degrade_refusal(part, self._log)
        return TextContent(part.text)

    def _content_search_result(self, part: SearchResult, role: str) -> WireValue:
        return self._content_text(search_as_text(part, self._log), role)

    def _content_opaque(self, part: Opaque, role: str) -> WireValue:  # noqa: ARG002
        if part.origin == FAMILY:
            return part.block_held
        return self._refuse(part, "it belongs to the provider that made it")

    def _refuse(self, part: AnyPart, why: str | None = None) -> None:
        self._lose(part, why or "a content of this API cannot hold it")

    def _no_content(self, part: AnyPart, role: str) -> WireValue:
        self.refuse(part, role)


_CONTENTS: dict[type[AnyPart], Callable[..., WireValue]] = PartHandlers[Callable[..., WireValue]](
    text=PartEncoder._content_text,
    reasoning=PartEncoder._no_content,
    refusal=PartEncoder._content_refusal,
    image=PartEncoder._content_image,
    document=PartEncoder._content_document,
    audio=PartEncoder._content_audio,
    tool_call=PartEncoder._no_content,
    tool_result=PartEncoder._no_content,
    server_tool_call=PartEncoder._no_content,
    server_tool_result=PartEncoder._no_content,
    search_result=PartEncoder._content_search_result,
    opaque=PartEncoder._content_opaque,
).by_type()

_STEPS: dict[type[AnyPart], Callable[..., list[WireValue]]] = PartHandlers[Callable[..., list[WireValue]]](
    text=PartEncoder._encode_output,
    reasoning=PartEncoder._encode_reasoning,
    refusal=PartEncoder._encode_output,
    image=PartEncoder._encode_output,
    document=PartEncoder._encode_output,
    audio=PartEncoder._encode_output,
    tool_call=BlockEncoder.refuse,
    tool_result=BlockEncoder.refuse,
    server_tool_call=PartEncoder._encode_server,
    server_tool_result=PartEncoder._encode_server,
    search_result=PartEncoder._encode_output,
    opaque=PartEncoder.encode_opaque,
).by_type()


_NAMED: dict[str, type[MediaContent]] = {
    "image": ImageContent,
    "audio": AudioContent,
    "video": VideoContent,
    "document": DocumentContent,
}
