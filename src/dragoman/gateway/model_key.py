"""The key `model` of a client's body: there is one, and it is renamed without a change to the other bytes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import msgspec
from msgspec import Raw

from dragoman.errors import DecodeError
from dragoman.ir.values import encode_json

_object = msgspec.json.Decoder(dict[str, Raw]).decode
_entries = msgspec.json.Decoder(list[Raw]).decode
_text = msgspec.json.Decoder(str).decode
_any = msgspec.json.Decoder(Raw).decode

_MODEL_KEY = re.compile(rb'"model"\s*:\s*("[^"\\]*+(?:\\.[^"\\]*+)*+")')
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]')
_VALUE = re.compile(rb'\s*:\s*("[^"\\]*+(?:\\.[^"\\]*+)*+")')
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_TEXTS = re.compile(rb'\s*:\s*("[^"\\]*+(?:\\.[^"\\]*+)*+"|\[\s*"[^\]]*)')
_MENTIONS = re.compile(rb'(?i)"models?"|\\u00')
_LONGEST_KEY = 40
"""Bytes of the longest spelling of `"models"`: each letter as an escape."""
_COLON = re.compile(rb"\s*:")
_ESCAPED_LETTER = re.compile(rb"\\u00[4-7]")
_WANTED = "one model, under `model`"
_FURTHER = frozenset({"models", "fallbacks", "fallback_models"})
"""Keys that name models to call instead: `models` of OpenRouter, `fallbacks` of Anthropic, and those of others."""
_WITH_MODELS = frozenset({"tools", "plugins"})
"""Lists whose entries may name a model that the provider calls too, such as an advisor."""
_CHECKED = frozenset({"model"}) | _FURTHER | _WITH_MODELS
_QUOTED = tuple(f'"{name}"'.encode() for name in _CHECKED)
_MODEL_NAMES = frozenset({"model", "models"})
_NOTHING = frozenset({b"null", b"[]", b'""'})


def check_one_model(body: bytes, source: str) -> None:
    """Raise `DecodeError` if a JSON body names a second model.

    A second model may be in a repeated `model`, of which some servers read the first; in a key that differs only in
    case, which some accept (such as those in Go); or in fallbacks or a hosted tool, which the provider calls too.
    """
    for key, value in _object(body).items():
        lowered = key.lower()
        if (key != "model" and lowered == "model") or (lowered in _FURTHER and bytes(value) not in _NOTHING):
            raise DecodeError(path=f"$.{key}", expected=_WANTED, got=f"the key {key!r}", source=source)
        if lowered in _WITH_MODELS:
            _check_entries(key, value, source)
    if _ESCAPED_LETTER.search(body) or any(body.count(key) > 1 for key in _QUOTED):
        tokens = (token[0] for token in _outer_strings(body) if _COLON.match(body, token.end()))
        times = Counter(name for token in tokens if (name := _text(token)) in _CHECKED)
        for name in [name for name, count in times.items() if count > 1]:
            raise DecodeError(path=f"$.{name}", expected=_WANTED, got="the key twice", source=source)


def _check_entries(name: str, value: Raw, source: str) -> None:
    """Raise `DecodeError` if an entry of a list names a model, itself or in its parameters."""
    entries: list[Raw] = []
    with suppress(msgspec.ValidationError):  # not a list: the decoder of the format reports that
        entries = _entries(value)
    for place, entry in enumerate(entries):
        found = _members(entry)
        for key, named in [*found.items(), *_members(found.get("parameters")).items()]:
            if key.lower() in _MODEL_NAMES and bytes(named)[:1] in {b'"', b"["} and bytes(named) not in _NOTHING:
                path = f"$.{name}[{place}]"
                raise DecodeError(path=path, expected=_WANTED, got=f"the key {key!r}", source=source)


def _members(value: Raw | None) -> dict[str, Raw]:
    """Return the members of an object; none if it is not one."""
    with suppress(msgspec.ValidationError):
        return {} if value is None else _object(value)
    return {}


def named_models(body: bytes) -> Iterator[str]:
    """Yield the models that any part of a JSON text names, at any depth, as text or in a list of texts.

    Keys are compared without case, and however they are escaped. An object under `model` is a schema or the like.
    Raises `DecodeError` for a text that mentions a model and is not JSON: another parser might read it otherwise.
    """
    if not _MENTIONS.search(body):
        return
    try:
        _any(body)  # the patterns below take linear time only for JSON
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(path="$", expected="JSON", got=str(error), source="request") from None
    for token in _TOKEN.finditer(body):
        if token[0][:1] == b'"' and len(token[0]) <= _LONGEST_KEY:
            value = _TEXTS.match(body, token.end())
            if value is not None and _decoded(token[0]).lower() in _MODEL_NAMES:
                yield from map(_decoded, _STRING.findall(value[1]))


def _decoded(quoted: bytes) -> str:
    try:
        return _text(quoted)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return quoted.decode("utf-8", "replace")


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
    return _text(quoted) == text
