"""Errors of tools, for formats whose results are plain text: the JSON text {"error": …}, and nothing else, says one."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.ir.values import compact_text, encode_json

ERROR_START = '{"error":'


def read_error(content: str) -> Any:
    """The value in a text that is exactly our {"error": …}; UNSET for every other text."""
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
