"""Encodes examples in a format, decodes bytes, and lists the keys and values in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from msgspec import structs

import dragoman
from dragoman.codecs.registry import folder_of
from dragoman.codecs.stream_limits import Limits
from dragoman.errors import DecodeError, DragomanError, StreamError
from dragoman.fidelity.cases import Case, DecodedStream, Example, Kind
from dragoman.ir import AnyEvent, Completion, Request
from dragoman.ir.values import exact_json, parse_json
from dragoman.loss import Loss


def write(example: Example | None, case: Case, format: str) -> tuple[bytes, tuple[Loss, ...]]:
    """The example in a format, with its losses."""
    if isinstance(example, Request):
        encoded = dragoman.encode_request(structs.replace(example, model=case.model(format)), format)
        return encoded.json(), encoded.losses
    if isinstance(example, Completion):
        encoded = dragoman.encode_response(example, format)
        return encoded.json(), encoded.losses
    assert example is not None  # noqa: S101 - checked by the callers
    encoder = dragoman.StreamEncoder(format)
    if case.cut:
        return encoder.encode(example[: -case.cut]), encoder.losses
    return encoder.encode(example) + encoder.close(), encoder.losses


def read(content: bytes, kind: Kind, format: str) -> Request | Completion | DecodedStream:
    """Decodes the bytes."""
    if kind == "request":
        return dragoman.decode_request(content, format)
    if kind == "response":
        return dragoman.decode_response(content, format)
    decoder = dragoman.StreamDecoder(format)
    return decode_events([*decoder.feed(content), *decoder.close()])


def decode_events(events: Iterable[AnyEvent]) -> DecodedStream:
    try:
        return DecodedStream(dragoman.accumulate(events))
    except StreamError as error:
        return DecodedStream(error.partial, error.failure)


def wire_words(content: bytes, kind: Kind, format: str) -> frozenset[str]:
    """All keys, `key=value` of all scalar values, and all short strings."""
    return frozenset(word for document in _documents(content, kind, format) for word in _words(document))


def _documents(content: bytes, kind: Kind, format: str) -> Iterator[Any]:
    payloads = _payloads(content, format) if kind == "stream" else [content]
    return (parse_json(exact) for exact in map(exact_json, payloads) if exact is not None)


def _payloads(content: bytes, format: str) -> list[bytes]:
    framing = import_module(f"dragoman.codecs.{folder_of(format)}.stream").PayloadDecoder.framing(Limits())
    try:
        return [*framing.feed(content), *framing.close()]
    except DecodeError:
        return []


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for spelled, inner in value.items():
            key = _camel(spelled) if "_" in spelled else spelled
            yield from {spelled, key}
            yield from _words(inner)
            if isinstance(inner, str | int | float | bool):
                yield from {f"{spelled}={_plain(inner)}", f"{key}={_plain(inner)}"}
    elif isinstance(value, list):
        for inner in value:
            yield from _words(inner)
    elif isinstance(value, str):
        yield value


def _camel(key: str) -> str:
    """Google accepts keys in either spelling."""
    first, *rest = key.split("_")
    return first + "".join(map(str.capitalize, rest))


def _plain(value: str | float | bool) -> str:  # noqa: FBT001
    return str(value).lower() if isinstance(value, bool) else str(value)


def fact_of(case: Case, content: bytes, format: str) -> object:
    """The fact in the bytes, or the error that they are."""
    try:
        return case.fact(read(content, case.kind, format))
    except DragomanError as error:
        return error
