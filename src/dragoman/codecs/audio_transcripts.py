"""Streams to clients without audio: the transcript is written as text, the audio itself is dropped."""

from __future__ import annotations

from dragoman.ir import AnyPart, Audio, MediaDelta, Text
from dragoman.losses import LossLog


def transcribed(part: AnyPart, log: LossLog) -> AnyPart:
    """Replace streamed audio by a text, whose fragments will be the transcript; complete parts stay as they are."""
    if type(part) is not Audio or part.data or part.url or part.file_id:
        return part
    log.degrade(part, "", "audio", "its transcript is sent: a stream of this API carries no sound")
    text = Text(part.transcript or "")
    log.replaced(text, part)
    return text


def unspoken(_encoder: object, _event: MediaDelta) -> list[bytes]:
    """Write nothing: the loss was reported when the audio began."""
    return []
