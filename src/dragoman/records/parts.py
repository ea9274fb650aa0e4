"""Content parts that the formats of stored histories share."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class TextPart(TypedDict):
    type: Literal["text"]
    text: str
    provider_meta: NotRequired[Any]
    raw_context: NotRequired[Any]
    metadata: NotRequired[Any]


class ImageUrl(TypedDict):
    """`url` is a data URL or an address."""

    url: str
    detail: NotRequired[str]
    media_type: NotRequired[str]


class ImagePart(TypedDict):
    type: Literal["image_url"]
    image_url: ImageUrl
    provider_meta: NotRequired[Any]
    raw_context: NotRequired[Any]
    metadata: NotRequired[Any]


class DocumentSource(TypedDict):
    """Exactly one of base64 `data`, `text`, `url` and `file_id`."""

    data: NotRequired[str]
    media_type: NotRequired[str]
    text: NotRequired[str]
    url: NotRequired[str]
    file_id: NotRequired[str]


class DocumentPart(TypedDict):
    type: Literal["document"]
    source: DocumentSource
    title: NotRequired[str]
    provider_meta: NotRequired[Any]
    raw_context: NotRequired[Any]
    metadata: NotRequired[Any]


class ReasoningPart(TypedDict):
    type: Literal["reasoning"]
    text: str
    redacted: NotRequired[bool]
    raw_context: NotRequired[Any]


class RefusalPart(TypedDict):
    type: Literal["refusal"]
    refusal: str
    raw_context: NotRequired[Any]


class OtherPart(TypedDict):
    """A block of one provider, or of dragoman, that the format has no part for."""

    type: Literal["other"]
    provider: str
    kind: str
    payload: NotRequired[Any]
    provider_meta: NotRequired[Any]
    raw_context: NotRequired[Any]
    metadata: NotRequired[Any]
