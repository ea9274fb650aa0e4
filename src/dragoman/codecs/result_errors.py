"""Errors of tools, for formats whose results are plain text: only the exact JSON text {"error": …} is an error."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.ir import Metadata, ToolResult
from dragoman.ir.notes import MODELLED
from dragoman.ir.values import compact_text, encode_json
from dragoman.losses import LossLog

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


def write_words(words: list[str], result: ToolResult, log: LossLog) -> str:
    """Return the error in these words, each of which is one part of the result."""
    if len(words) > 1:
        log.degrade(result, "parts", f"borders between {len(words)} texts", BORDERS)
    return write_error("\n".join(words))


BORDERS = "joined by line breaks: an error is one text"
