"""What is fuzzed: every decoder of every format, and what stands behind it.

A target takes bytes. It may answer or raise a typed error; anything else is a finding. What it decodes it also encodes,
in its own format or another, because a value that cannot be written was decoded too generously.
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, partial
from itertools import islice
from typing import Any

import dragoman
from dragoman.agent.tools import BadArguments, checking
from dragoman.description.bodies import describe_completion, describe_failure, describe_request
from dragoman.detection import detect_stream, looks_streamed
from dragoman.errors import DecodeError, DragomanError, EncodeError
from dragoman.ir import (
    AnyEvent,
    Finish,
    Finished,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
    StreamStart,
    Text,
    ToolCall,
    Usage,
    UsageUpdate,
)
from tests.fuzz.mutation import mutate_events, mutate_json
from tests.support import converse_streams
from tests.support.bodies import ERRORS, REQUESTS, RESPONSES
from tests.support.recordings import load, recordings_dir

WIRE = dragoman.formats("wire")
RECORDS = dragoman.formats("record")
ANY = dragoman.formats(None)

FILES: dict[str, tuple[str, ...]] = {
    "openai-chat": (
        "openai-chat",
        "openai-compat-chat",
        "openrouter-chat",
        "mistral-chat",
        "deepseek-chat",
        "groq-chat",
        "xai-chat",
    ),
    "openai-responses": ("openai-responses", "responses-compat"),
    "anthropic-messages": ("anthropic-messages", "anthropic-compat"),
    "gemini": ("gemini-generate",),
    "vertex": ("vertex-generate", "gemini-generate"),
    "bedrock-converse": ("bedrock-converse",),
    "ollama-chat": ("ollama-chat",),
    "cohere-chat": ("cohere-chat",),
}
"""Format -> its recordings."""
LONGEST_SEED = 6_000
MOST_SEEDS = 240

Mutate = Callable[..., bytes]


class Finding(AssertionError):
    """An input that a decoder neither reads nor refuses with a typed error that names a place."""


@dataclass(frozen=True)
class Target:
    name: str
    run: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]
    mutate: Mutate = mutate_json
    others: list[Any] = field(default_factory=list, compare=False)
    """Values of other seeds: their parts are grafted into mutants."""

    def mutant(self, data: bytes, chance: random.Random) -> bytes:
        return self.mutate(data, chance, self.others)

    def learn(self, seeds: Iterable[bytes]) -> None:
        for seed in islice(seeds, 60):
            try:
                value = json.loads(seed)
            except ValueError:
                continue
            if isinstance(value, dict):
                self.others.append(value)


# ── checks ────────────────────────────────────────────────────────────────────────────────────────────────────


def _check_error(error: DragomanError) -> None:
    if not str(error):
        raise Finding(f"{type(error).__name__} without a message") from error
    if isinstance(error, DecodeError | EncodeError) and not error.path.startswith("$"):
        raise Finding(f"{type(error).__name__} names no place: {error.path!r}") from error


def _holds_only_json(value: Any) -> bool:
    waiting = [value]
    while waiting:
        held = waiting.pop()
        if isinstance(held, dict):
            waiting += held.values()
        elif isinstance(held, list):
            waiting += held
        elif isinstance(held, Decimal):
            return False
    return True


def _check_encoded(encoded: dragoman.Encoded, data: bytes) -> None:
    encoded.json().decode()
    if not _holds_only_json(encoded.body):
        raise Finding("Encoded.body holds a value that the standard library's json cannot write")
    if zlib.crc32(data) % 3 == 0:
        for loss in encoded.losses:
            if not loss.path.startswith("$"):
                raise Finding(f"a loss names no place: {loss.path!r}")


def _other(data: bytes, name: str, among: tuple[str, ...] = ANY) -> str:
    """A format to encode in: the format itself for a third of the inputs, else one that depends on the input."""
    turn = zlib.crc32(data)
    return name if turn % 3 == 0 else among[(turn >> 4) % len(among)]


def _request(name: str, data: bytes) -> None:
    try:
        request = dragoman.decode_request(data, name)
        describe_request(request, name)
        _check_encoded(dragoman.encode_request(request, _other(data, name)), data)
        if zlib.crc32(data) % 2:
            translated = dragoman.translate_request(data, source=name, target=_other(data, name))
            _check_encoded(translated, data)
    except DragomanError as error:
        _check_error(error)


def _response(name: str, data: bytes) -> None:
    try:
        completion = dragoman.decode_response(data, name)
        describe_completion(completion, name)
        _check_encoded(dragoman.encode_response(completion, _other(data, name)), data)
        if zlib.crc32(data) % 2:
            translated = dragoman.translate_response(data, source=name, target=_other(data, name))
            _check_encoded(translated, data)
    except DragomanError as error:
        _check_error(error)


_STATUS = (None, 200, 400, 401, 404, 413, 429, 500, 529, 999)


def _error(name: str, data: bytes) -> None:
    turn = zlib.crc32(data)
    try:
        failure = dragoman.decode_error(data, name, status=_STATUS[turn % len(_STATUS)])
        describe_failure(failure, name)
        _check_encoded(dragoman.encode_error(failure, _other(data, name, WIRE)), data)
    except DragomanError as error:
        _check_error(error)


def _pieces(data: bytes) -> Iterator[bytes]:
    """The stream whole, in a few pieces, or one byte at a time."""
    turn = zlib.crc32(data)
    size = (len(data) + 1, 512, 64, 7, 1)[turn % 5] if len(data) < 1_500 else (len(data) + 1, 700)[turn % 2]
    return (data[start : start + size] for start in range(0, len(data), size))


def _framed(name: str, data: bytes) -> bytes:
    """Bedrock's events arrive in binary frames; the fuzzer changes what they say, seldom the frames."""
    if name != "bedrock-converse" or not data.startswith(b"event: "):
        return data
    framed = b""
    for event in data.split(b"\n\n"):
        kind, _, payload = event.removeprefix(b"event: ").partition(b"\ndata: ")
        text = kind.decode("utf-8", "replace")[:60]
        framed += converse_streams.frame(text, payload, "exception" if text.endswith("Exception") else "event")
    return framed


def _stream(name: str, data: bytes) -> None:
    framed = _framed(name, data)
    try:
        decoder = dragoman.StreamDecoder(name)
        events = [event for piece in _pieces(framed) for event in decoder.feed(piece)] + decoder.close()
        dragoman.encode_response(_completion(events), _other(data, name))
        translator = dragoman.StreamTranslator(source=name, target=_other(data, name, WIRE))
        for piece in _pieces(framed):
            translator.feed(piece)
        translator.close()
        for loss in translator.losses:
            if not loss.path.startswith("$"):
                raise Finding(f"a loss names no place: {loss.path!r}")
        if zlib.crc32(data) % 4 == 0:
            looks_streamed(framed)
            detect_stream(framed)
    except DragomanError as error:
        _check_error(error)


def _completion(events: list[Any]) -> Any:
    try:
        return dragoman.accumulate(events)
    except dragoman.StreamError as error:
        return error.partial


VALUE_READERS: tuple[Callable[..., Any], ...] = tuple(
    getattr(dragoman, name) for name in dragoman.__all__ if name.startswith(("decode_tool", "decode_message"))
)


def _value(name: str, data: bytes) -> None:
    """One call, result, definition, choice or message, read and written again."""
    read = VALUE_READERS[zlib.crc32(data) % len(VALUE_READERS)]
    write = getattr(dragoman, read.__name__.replace("decode_", "encode_"))
    try:
        write(read(data, name), _other(data, name)).losses  # noqa: B018
    except DragomanError as error:
        _check_error(error)


def _detect(data: bytes) -> None:
    try:
        dragoman.detect(data)
        looks_streamed(data)
    except DragomanError as error:
        _check_error(error)


def _arguments(data: bytes) -> None:
    """A tool's schema and a call's arguments, both from outside (an MCP server, a model)."""
    try:
        given = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(given, dict):
        return
    try:
        checking(given.get("schema", {}))(given.get("value"))
    except BadArguments as error:
        if not str(error):
            raise Finding("BadArguments without a message") from error


# ── seeds ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _chosen(bodies: Iterable[bytes]) -> list[bytes]:
    """Bodies of many shapes: of those with the same keys only the shortest stay."""
    shortest: dict[int, bytes] = {}
    for body in bodies:
        if len(body) <= LONGEST_SEED:
            shape = zlib.crc32(repr(sorted(set(_words(body)))).encode())
            if shape not in shortest or len(body) < len(shortest[shape]):
                shortest[shape] = body
    kept = sorted(shortest.values(), key=zlib.crc32)
    return kept[:MOST_SEEDS]


def _words(body: bytes) -> Iterator[bytes]:
    """Keys, and short string values such as the types of blocks."""
    for piece in body.split(b'"')[1::2]:
        if len(piece) < 24 and piece.replace(b"_", b"").isalpha():
            yield piece


@cache
def _recorded(name: str, kind: str) -> list[bytes]:
    if recordings_dir() is None or name not in FILES:
        return []
    found: list[bytes] = []
    for file in FILES[name]:
        for record in load(file):
            if kind == "stream" and record.events is not None and len(record.events) <= 60:
                found.append("".join(record.events).encode())
            elif kind == "request" and record.request is not None:
                found.append(json.dumps(record.request, ensure_ascii=False).encode())
            elif isinstance(record.response, dict) and kind == ("response" if record.status < 400 else "error"):
                found.append(json.dumps(record.response, ensure_ascii=False).encode())
    return _chosen(found)


_SAMPLES = {"request": REQUESTS, "response": RESPONSES, "error": ERRORS}


def _bodies(name: str, kind: str) -> list[bytes]:
    own = [sample.json() for sample in _SAMPLES[kind] if sample.format == name]
    return own + _recorded(name, kind)


EVENTS: tuple[AnyEvent, ...] = (
    StreamStart("id-1", "m", 5),
    PartStart(0, Reasoning("")),
    PartDelta(0, "Let me think."),
    PartEnd(0),
    PartStart(1, Text("")),
    PartDelta(1, "I will look "),
    PartDelta(1, "it up."),
    PartEnd(1),
    PartStart(2, ToolCall("call_a", "f")),
    PartDelta(2, '{"city":'),
    PartDelta(2, ' "Tokyo"}'),
    PartEnd(2),
    PartStart(3, ToolCall("call_b", "g")),
    PartDelta(3, "{}"),
    PartEnd(3),
    UsageUpdate(Usage(5, 7)),
    Finished(Finish("tool_calls")),
)


def _streams(name: str) -> list[bytes]:
    """One stream of our own and the recorded ones."""
    encoder = dragoman.StreamEncoder(name)
    own = encoder.encode(EVENTS) + encoder.close()
    if name == "bedrock-converse":
        texts = [
            b"event: " + kind.encode() + b"\ndata: " + json.dumps(payload).encode() + b"\n\n"
            for kind, payload in converse_streams.payloads(own)
        ]
        return [own, b"".join(texts), *_recorded(name, "stream")]
    return [own, *_recorded(name, "stream")]


def _histories(name: str) -> list[bytes]:
    """Stored histories: those the record encoders write from requests and answers of our own."""
    found = []
    for sample in REQUESTS:
        try:
            found.append(dragoman.translate_request(sample.json(), source=sample.format, target=name).json())
        except DragomanError:
            continue
    return _chosen(found)


def _stored_answers(name: str) -> list[bytes]:
    found = []
    for sample in RESPONSES:
        try:
            found.append(dragoman.translate_response(sample.json(), source=sample.format, target=name).json())
        except DragomanError:
            continue
    return _chosen(found)


def _argument_seeds() -> list[bytes]:
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "pattern": "^[A-Z][a-z]+$", "minLength": 1},
            "days": {"type": "integer", "minimum": 0, "multipleOf": 2},
            "price": {"type": "number", "multipleOf": 0.01},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True, "contains": {"const": "a"}},
            "place": {"$ref": "#/$defs/place"},
        },
        "required": ["city"],
        "additionalProperties": False,
        "$defs": {"place": {"anyOf": [{"type": "null"}, {"oneOf": [{"const": 1}, {"not": {"type": "string"}}]}]}},
    }
    more = {
        "patternProperties": {"^x": {"type": ["string", "null"]}},
        "propertyNames": {"maxLength": 9},
        "dependentRequired": {"xa": ["xb"]},
        "if": {"required": ["xa"]},
        "then": {"minProperties": 1},
        "else": {"maxProperties": 3},
        "allOf": [{"prefixItems": [{}]}, True],
    }
    value = {"city": "Bern", "days": 2, "price": 0.3, "tags": ["a"], "place": None}
    return [
        json.dumps({"schema": schema, "value": value}).encode(),
        json.dumps({"schema": more, "value": {"xa": "1", "xb": None}}).encode(),
    ]


# ── the table ─────────────────────────────────────────────────────────────────────────────────────────────────


_MEMBERS = ("messages", "contents", "input", "tools", "tool_choice", "toolConfig", "content", "parts", "tool_calls")


def _values(name: str) -> list[bytes]:
    """Messages, calls, results, tools and choices of the format's requests, each by itself and in lists."""
    found: list[bytes] = []
    folder = name if name in WIRE or name in RECORDS else "openai-chat"
    for seed in (_bodies(folder, "request") if folder in WIRE else _histories(folder))[:80]:
        waiting: list[Any] = [json.loads(seed)]
        while waiting:
            held = waiting.pop()
            if isinstance(held, dict):
                waiting += [held[key] for key in _MEMBERS if key in held]
            elif isinstance(held, list):
                waiting += held
            found.append(json.dumps(held, ensure_ascii=False).encode())
    return _chosen(found)


def _separator(name: str) -> bytes:
    return b"\n" if name == "ollama-chat" else b"\n\n"


def _all() -> Iterator[Target]:
    for name in WIRE:
        yield Target(f"request:{name}", partial(_request, name), partial(_bodies, name, "request"))
        yield Target(f"response:{name}", partial(_response, name), partial(_bodies, name, "response"))
        yield Target(f"error:{name}", partial(_error, name), partial(_bodies, name, "error"))
        events = partial(mutate_events, separator=_separator(name))
        yield Target(f"stream:{name}", partial(_stream, name), partial(_streams, name), events)
    for name in RECORDS:
        yield Target(f"request:{name}", partial(_request, name), partial(_histories, name))
        yield Target(f"response:{name}", partial(_response, name), partial(_stored_answers, name))
    for name in ANY:
        yield Target(f"value:{name}", partial(_value, name), partial(_values, name))
    yield Target("detect", _detect, lambda: [seed for name in WIRE for seed in _bodies(name, "request")[:40]])
    yield Target("arguments", _arguments, _argument_seeds)


TARGETS: dict[str, Target] = {target.name: target for target in _all()}
