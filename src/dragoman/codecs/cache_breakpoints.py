"""OpenAI's cache marks: a breakpoint on a content part, for the models that accept it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeVar

from msgspec import Raw

from dragoman.ir import Audio, Document, Image, Text
from dragoman.ir.notes import MODELLED
from dragoman.ir.values import encode_json
from dragoman.losses import LossLog

BREAKPOINT = MODELLED + "prompt_cache_breakpoint"
"""Note on a part: its breakpoint as it is written."""

# «Supported for gpt-5.6 and later models.»
_MODELS = re.compile(r"(?:openai/)?gpt-(?:5\.(?:[6-9]|\d\d)|[6-9]|\d\d)")
_LIFETIMES = ("30m", "12h")
_SHORTER = (None, "5m")
"""Lifetimes that the default of thirty minutes covers."""

M = TypeVar("M", Text, Image, Document, Audio)


@lru_cache(maxsize=256)
def takes_breakpoints(model: str) -> bool:
    return _MODELS.match(model) is not None


def part_key(field: str) -> str:
    """Return the key of a field of a part: OpenAI's APIs spell the cache mark otherwise."""
    return field.replace("cache", "prompt_cache_breakpoint", 1) if field in {"cache", "cache.ttl"} else field


def with_breakpoint(part: M, family: str, log: LossLog) -> M:
    """Return the part with its cache mark noted as a breakpoint, which its encoder writes."""
    notes = (part.metadata or {}).get(family, {})
    if part.cache is None or BREAKPOINT in notes:
        return part
    mark = {"mode": "explicit"}
    ttl = part.cache.ttl
    if ttl in _LIFETIMES:
        mark["ttl"] = str(ttl)
    elif ttl not in _SHORTER:
        log.degrade(part, "cache.ttl", f"cache lifetime {ttl!r}", "sent as 30m: this API has only 30m and 12h")
    return log.replace(part, metadata={**(part.metadata or {}), family: {**notes, BREAKPOINT: Raw(encode_json(mark))}})
