"""Errors of tools, for formats whose results are plain text: only the exact JSON text {"error": …} is an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.ir import AnyPart, Metadata, Text
from dragoman.ir.notes import MODELLED
from dragoman.ir.values import compact_text, encode_json

NOT_AN_ERROR = "~is_error"
"""Note: the result stated `is_error: false`, which is the default."""


def states_success(metadata: Metadata | None) -> bool:
    """Whether the source of a result stated, in whatever format, that it is not an error."""
    if metadata is None:
        return False
    return any(NOT_AN_ERROR in notes or MODELLED + "is_error" in notes for notes in metadata.values())


ERROR_START = '{"error":'


def read_error(content: str) -> Any:
    """Return the value in a text that is exactly our {"error": …}; UNSET for every other text."""
    if not content.startswith(ERROR_START) or not content.endswith("}"):
        return UNSET
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return UNSET
    if isinstance(value, dict) and len(value) == 1 and encode_json(value).decode() == content:
        return value["error"]
    return UNSET


def write_error(value: Any) -> str:
    return compact_text({"error": value})


def write_words(words: list[str], parts: Sequence[AnyPart]) -> str:
    """Return the error in these words of its parts. Texts are joined; beside other parts, each is a line of its own."""
    return write_error(("" if all(isinstance(part, Text) for part in parts) else "\n").join(words))
