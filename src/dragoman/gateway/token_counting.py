"""Counts the tokens of a request: the upstream does if it uses the client's format, else they are estimated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from dragoman.errors import DecodeError
from dragoman.ir.values import parse_json

_CHARACTERS_PER_TOKEN = 4
_PICTURE = 1_000
_BINARY = 2_000
"""A text of this length without a space is data rather than prose."""
_PER_OBJECT = 3


class Counter(Struct, frozen=True):
    path: Callable[[str], str]
    """Maps the path that generates to the one that counts."""
    encode: Callable[[int], Mapping[str, object]]


COUNTERS: Mapping[str, Counter] = {
    "anthropic-messages": Counter(lambda path: f"{path}/count_tokens", lambda count: {"input_tokens": count}),
    "openai-responses": Counter(
        lambda path: f"{path}/input_tokens",
        lambda count: {"object": "response.input_tokens", "input_tokens": count},
    ),
    "gemini": Counter(
        lambda path: path.replace(":generateContent", ":countTokens"), lambda count: {"totalTokens": count}
    ),
    "vertex": Counter(
        lambda path: path.replace(":generateContent", ":countTokens"), lambda count: {"totalTokens": count}
    ),
    "bedrock-converse": Counter(
        lambda path: path.replace("/converse", "/count-tokens"), lambda count: {"inputTokens": count}
    ),
}


def estimate(body: bytes) -> int:
    """Estimate tokens, within about 20 % for English prose; too coarse for billing. Raises `DecodeError`."""
    try:
        parsed = parse_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(path="$", expected="JSON", got=str(error), source="request") from None
    characters, others = 0, 0
    for text in _texts(parsed):
        if len(text) > _BINARY and " " not in text:
            others += _PICTURE
        else:
            characters += len(text)
    return max(1, characters // _CHARACTERS_PER_TOKEN + others)


def _texts(root: Any) -> Iterator[str]:
    waiting = [root]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += value.values()
            yield " " * _PER_OBJECT
        elif isinstance(value, list):
            waiting += value
