"""Images and files in entries: the stored format has no parts for them, so we add parts of our own.

`{"type": "image", "media_type", "data"}` and `{"type": "document", "media_type", "data" or "text", "title"}`;
media of a result are under its key `media`. The codec of multi-llm-chat keeps both untouched.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw, structs

from dragoman.codecs.records.multi_llm_chat import FAMILY
from dragoman.ir import AnyPart, Audio, Document, Image, Message, Opaque, Refusal, Text, ToolResult
from dragoman.ir.values import encode_json

Part: TypeAlias = dict[str, Any]
MEDIA = "media"
_KINDS: Mapping[str, type[Image | Document | Audio]] = {"image": Image, "document": Document, "audio": Audio}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_FIELDS = ("media_type", "data", "url", "file_id", "text", "title", "transcript")
_TEXTUAL = ("text/", "application/json", "application/xml", "application/x-yaml", "application/toml")


def attachment(name: str, media_type: str, data: bytes) -> Part:
    """A file added by the user: an image, a text document, or a document with base64 data."""
    if media_type.startswith("image/"):
        return {"type": "image", "media_type": media_type, "data": base64.b64encode(data).decode(), "title": name}
    text = _text_of(data) if media_type.startswith(_TEXTUAL) or not media_type else None
    if text is not None:
        return {"type": "document", "media_type": "text/plain", "text": text, "title": name}
    return {"type": "document", "media_type": media_type, "data": base64.b64encode(data).decode(), "title": name}


def _text_of(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


# ── entries -> messages ───────────────────────────────────────────────────────────────────────────────────────


def restore_media(message: Message) -> Message:
    """Turns stored media parts back into images and documents, for sending."""
    parts = tuple(_restore(part) for part in message.parts)
    return message if parts == message.parts else structs.replace(message, parts=parts)


def _restore(part: AnyPart) -> AnyPart:
    if isinstance(part, Opaque) and part.origin == FAMILY and part.kind in _KINDS:
        return _read_block(part.block) or part
    if isinstance(part, ToolResult):
        stored = (part.metadata or {}).get(FAMILY, {}).get(MEDIA)
        if stored is not None:
            return _restore_result(part, msgspec.json.decode(stored) if isinstance(stored, Raw) else stored)
    return part


def _read_block(block: Any) -> Image | Document | Audio | None:
    kind = _KINDS.get(str(block.get("type")))
    if kind is None:
        return None
    known = {name: block[name] for name in _FIELDS if name in block and name in kind.__struct_fields__}
    return kind(**known)


def _restore_result(result: ToolResult, media: Any) -> ToolResult:
    if not isinstance(media, list):
        return result
    found = tuple(_read_block(one) or Text(str(one.get("content", ""))) for one in media if isinstance(one, Mapping))
    kind = "error" if result.is_error else "multimodal"
    return structs.replace(result, kind=kind, value=None, parts=found, metadata=None)


# ── messages -> entries ───────────────────────────────────────────────────────────────────────────────────────


def store_media(message: Message) -> Message:
    """Turns images and documents into media parts that the stored format can hold."""
    return structs.replace(message, parts=tuple(_storable(part) for part in message.parts))


def _storable(part: AnyPart) -> AnyPart:
    if isinstance(part, Refusal):
        return Text(part.text)
    if isinstance(part, Image | Document | Audio):
        return Opaque(FAMILY, _NAMES[type(part)], Raw(encode_json(_write_block(part))))
    if isinstance(part, ToolResult) and any(not isinstance(one, Text) for one in part.parts):
        blocks = [_write_block(one) for one in part.parts if isinstance(one, Text | Image | Document | Audio)]
        notes = {**(part.metadata or {}).get(FAMILY, {}), MEDIA: Raw(encode_json(blocks))}
        return structs.replace(part, metadata={FAMILY: notes})
    return part


def _write_block(part: Text | Image | Document | Audio) -> Part:
    if isinstance(part, Text):
        return {"type": "text", "content": part.text}
    fields = {name: getattr(part, name, None) for name in _FIELDS}
    return {"type": _NAMES[type(part)], **{name: value for name, value in fields.items() if value is not None}}
