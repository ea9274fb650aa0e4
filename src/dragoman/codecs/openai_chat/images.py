"""Images that a model made: `message.images`, and `delta.images` in a stream.

OpenAI's own Chat answers have none. OpenRouter and LiteLLM send what Gemini and other models draw under this key, as a
list of `image_url` parts, so clients of such models look for it there. Gemini signs images as it signs calls; the
signature is beside the image, as Google puts it beside a call (`extra_content`).
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, structs

from dragoman.codecs.openai_chat.foreign_signatures import EXTRA_CONTENT, read_signature, write_signature
from dragoman.codecs.openai_chat.parts import FAMILY, decode_part, encode_part
from dragoman.codecs.openai_chat.wire import ContentPart
from dragoman.codecs.reading import WireReader, WireValue, spliced
from dragoman.errors import DecodeError
from dragoman.ir import AnyPart, Image, ToolCall
from dragoman.ir.notes import MODELLED, Extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

KEY = "images"
_MADE = "~images"
"""Note: the image came under this key, at this place of the list."""

_reader = WireReader(ContentPart, "openai-chat image")  # type: ignore[arg-type, var-annotated]
_entries = msgspec.json.Decoder(list[Raw]).decode


def images_in(raw: Raw) -> list[Image] | None:
    """Return the images of such a list; None if anything else is in it, so that the key is kept as it is."""
    images: list[Image] = []
    try:
        for place, entry in enumerate(_entries(raw)):
            part = decode_part(_reader.read(entry))
            if type(part) is not Image:
                return None
            notes = {**_own(part), _MADE: Raw(encode_json(place))}
            signature = read_signature(notes)
            images.append(structs.replace(part, signature=signature, metadata={FAMILY: notes}))
    except (msgspec.ValidationError, DecodeError):
        return None
    return images


def read_images(parts: list[AnyPart], extra: Extra) -> None:
    """Move the images of an answer into `parts`, before its calls."""
    images = images_in(extra[KEY]) if KEY in extra else None
    if images:  # an empty list stays what it is
        del extra[KEY]
        place = next((index for index, part in enumerate(parts) if type(part) is ToolCall), len(parts))
        parts[place:place] = images


def is_made(part: AnyPart) -> bool:
    """Whether the image came under this key, as opposed to one among the content."""
    return type(part) is Image and _MADE in _own(part)


def place_of(part: AnyPart) -> str:
    """Return the path of such an image in its message."""
    return f".{KEY}[{parse_json(_own(part)[_MADE])}]"


def write_images(images: list[Image], log: LossLog) -> list[WireValue]:
    """Encode images for a client, or for the server they came from; those that have no address are dropped."""
    written: list[WireValue] = []
    for image in images:
        signed = {} if MODELLED + EXTRA_CONTENT in _own(image) else write_signature(image)
        part = structs.replace(image, signature=None) if signed else image
        if signed:
            log.replaced(part, image)
        wire = encode_part(part, log)
        if wire is not None:
            written.append(spliced(wire, signed) if signed else wire)
    return written


def _own(part: AnyPart) -> Extra:
    return (part.metadata or {}).get(FAMILY, {})  # type: ignore[union-attr]
