"""Reads the parts of a message. Separate from the message, which is a struct, so that it can be compiled."""

from __future__ import annotations

from typing import Any

from dragoman.ir.parts import AnyPart, Text


def read_parts(message: Any) -> tuple[AnyPart, ...]:
    """Return the parts of a message; a bare string is one text."""
    content: Any = message.content_held
    if type(content) is str:
        return (Text(content),)
    parts: tuple[AnyPart, ...] = content
    return parts
