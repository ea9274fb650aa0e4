"""The key `model` of a client's body: there is one, and it is renamed without a change to the other bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from msgspec import Raw

from dragoman.errors import DecodeError
from dragoman.ir.values import encode_json

_object = msgspec.json.Decoder(dict[str, Raw]).decode

_MODEL_KEY = re.compile(rb'"model"\s*:\s*("(?:[^"\\]|\\.)*")')
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]')
_VALUE = re.compile(rb'\s*:\s*("(?:[^"\\]|\\.)*")')
_COLON = re.compile(rb"\s*:")
_ESCAPED_LETTER = re.compile(rb"\\u00[46]")


def check_one_model(body: bytes, source: str) -> None:
    """Raise `DecodeError` if a JSON body names a second model, in other letters or under the same key.

    Some servers ignore the case of a key (such as those in Go), and of a key that is given twice some read the first.
    """
    wanted = "one model, under `model`"
    for key in _object(body):
        if key != "model" and key.lower() == "model":
            raise DecodeError(path=f"$.{key}", expected=wanted, got=f"the key {key!r}", source=source)
    if body.count(b'"model"') > 1 or _ESCAPED_LETTER.search(body):
        keys = sum(_is(token[0], "model") for token in _outer_strings(body) if _COLON.match(body, token.end()))
        if keys > 1:
            raise DecodeError(path="$.model", expected=wanted, got="the key twice", source=source)


def with_model(body: bytes, old: str, new: str) -> bytes:
    """Replace the model name in a body, and leave all other bytes unchanged."""
    name = encode_json(new)
    found = _MODEL_KEY.search(body)
    if found is not None and _is(found[1], old) and b'"model"' not in body[found.end() :]:
        return b"%b%b%b" % (body[: found.start(1)], name, body[found.end(1) :])
    out, copied = [], 0
    for token in _outer_strings(body):
        if _is(token[0], "model"):
            value = _VALUE.match(body, token.end())
            if value is not None:
                out += [body[copied : value.start(1)], name]
                copied = value.end(1)
    return b"".join([*out, body[copied:]])


def _outer_strings(body: bytes) -> Iterator[re.Match[bytes]]:
    """Return the keys and texts of the outermost object."""
    depth = 0
    for token in _TOKEN.finditer(body):
        first = token[0][:1]
        if first in b"{[":
            depth += 1
        elif first in b"}]":
            depth -= 1
        elif depth == 1:
            yield token


def _is(quoted: bytes, text: str) -> bool:
    return bool(msgspec.json.decode(quoted) == text)
