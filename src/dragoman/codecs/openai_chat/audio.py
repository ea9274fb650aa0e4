"""A model's spoken answer: `message.audio`, whole or (in a stream) in fragments.

An answer holds data and transcript; a history holds only the id, by which the API finds the audio again.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from dragoman.codecs.common_losses import drop_signature
from dragoman.codecs.ids import invent_id
from dragoman.codecs.media import sniffed_type
from dragoman.ir import AnyPart, Audio, ToolCall
from dragoman.ir.notes import Extra
from dragoman.ir.values import encode_json
from dragoman.losses import LossLog

FAMILY = "openai"
KEY = "audio"
HEADERLESS = "audio/L16"
"""pcm16 is the only format of this API without a file header, and the only one it streams."""

_object = msgspec.json.Decoder(dict[str, Raw]).decode


def read_sound(parts: list[AnyPart], extra: Extra) -> None:
    """Move audio with data and transcript into `parts`; an id alone stays: only this API understands it."""
    raw = extra.get(KEY)
    if raw is None or bytes(raw)[:1] != b"{":
        return
    fields = _object(raw)
    data, transcript = _text(fields.pop("data", None)), _text(fields.pop("transcript", None))
    if not data or transcript is None or "id" not in fields:
        return  # Snowflake sends every optional member, even when empty
    del extra[KEY]
    kind = sniffed_type(data) or HEADERLESS
    place = next((index for index, part in enumerate(parts) if type(part) is ToolCall), len(parts))
    parts.insert(place, Audio(kind, data, transcript=transcript, metadata={FAMILY: fields}))


def is_spoken(part: AnyPart) -> bool:
    """Whether the model produced this audio, as opposed to audio among the input content."""
    return type(part) is Audio and "id" in _own(part)


def _text(raw: Raw | None) -> str | None:
    return msgspec.json.decode(raw, type=str) if raw is not None and bytes(raw)[:1] == b'"' else None


def write_sound(part: Audio, log: LossLog) -> Raw:
    """Encode audio in full: for a client, or for the API it came from."""
    own = _own(part)
    if not own:
        _report_foreign(part, log)
        own = opening_of(part)
    return Raw(encode_json({**own, "data": part.data, "transcript": part.transcript or ""}))


def handle_of(part: Audio) -> Raw:
    """Return the reference by which a history names audio that this API produced."""
    return Raw(encode_json({"id": _own(part)["id"]}))


def opening_of(part: Audio) -> dict[str, Any]:
    """Return the fields beside data and transcript: the API's own, or invented ones for audio of another API."""
    return _own(part) or {"id": f"audio_{invent_id(KEY, 0)}", "expires_at": 0}


def report_streamed(part: Audio, log: LossLog) -> None:
    """Report what a stream cannot express about audio: it carries fragments of pcm16 and nothing else."""
    if part.media_type not in {None, HEADERLESS}:
        why = "sound is streamed without its type: clients expect pcm16"
        log.drop(part, "media_type", f"media type {part.media_type}", why)
    for field, what in (("url", "address of the sound"), ("file_id", "file of the sound")):
        if getattr(part, field) is not None:
            log.drop(part, field, what, "a stream of this API has the audio itself")
    if part.signature is not None:
        drop_signature(part, part.signature, log)


def _own(part: Audio) -> dict[str, Any]:
    return dict((part.metadata or {}).get(FAMILY, {}))


def _report_foreign(part: Audio, log: LossLog) -> None:
    if part.media_type not in {None, sniffed_type(part.data or "") or HEADERLESS}:
        why = "this API names none: its clients expect the one that they asked for"
        log.degrade(part, "media_type", f"media type {part.media_type}", why)
    log.note(part, "", "id of the audio", "audio of this API has one")
    for field, what in (("cache", "cache mark"), ("signature", "signature")):
        if getattr(part, field) is not None:
            log.drop(part, field, what, "audio of this API has none")
