"""What is fuzzed: every decoder of every format, and what stands behind it.

A target takes bytes. It may answer or raise a typed error; anything else is a finding. Every input is decoded; what
comes next (describe the value, encode it, translate the bytes) depends on the input, so that one execution stays cheap
and each way is taken by a third of them. A value that cannot be written was decoded too generously.

A target returns the outcome in a few words. An input with an outcome that no input had before is worth mutating again.
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

from msgspec import Raw

import dragoman
from dragoman.agent.tools import BadArguments, schema_decoder
from dragoman.batch.batch_file_converter import converter_for
from dragoman.batch.options import ConvertOptions
from dragoman.batch.provider_files import BATCH_FILES, BatchItem, Outcome, write_line
from dragoman.batch.rejects import Reject
from dragoman.chat.entries import Unreadable
from dragoman.chat.importing import import_document
from dragoman.codecs.datasets.catalogue import dataset
from dragoman.detection import detect_stream, looks_streamed
from dragoman.embeddings import DIALECTS, EmbeddingRequest, EmbeddingResponse, split
from dragoman.errors import DecodeError, DragomanError, EncodeError
from dragoman.inspection.bodies import describe_completion, describe_failure, describe_request
from dragoman.ir import (
    AnyEvent,
    Finish,
    Finished,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
    StreamFailed,
    StreamStart,
    Text,
    ToolCall,
    Usage,
    UsageUpdate,
)
from tests.datasets.public_shapes import records_of
from tests.fuzz.mutation import mutate_events, mutate_json
from tests.support import converse_streams
from tests.support.bodies import ERRORS, REQUESTS, RESPONSES
from tests.support.recordings import load, recordings_dir

WIRE = dragoman.formats("wire")
RECORDS = dragoman.formats("record")
ANY = dragoman.formats(None)
DATASETS = dragoman.formats("dataset")
WRITTEN = (*ANY, *(name for name in DATASETS if dataset(name).write is not None))
"""Formats that a request can be encoded in."""

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
    run: Callable[[bytes], str | None]
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


def _check_error(error: DragomanError) -> str:
    """What was refused, without the contents of the input; an error that says nothing is a finding."""
    if not str(error):
        raise Finding(f"{type(error).__name__} without a message") from error
    if not isinstance(error, DecodeError | EncodeError):
        return type(error).__name__
    if not error.path.startswith("$"):
        raise Finding(f"{type(error).__name__} names no place: {error.path!r}") from error
    wanted = error.expected if isinstance(error, DecodeError) else error.reason
    return f"{type(error).__name__} {error.path.rpartition('.')[2][:20]} {wanted[:40]}"


def _holds_only_json(value: Any) -> bool:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
        elif isinstance(item, Decimal):
            return False
    return True


def _check_encoded(encoded: dragoman.Encoded) -> str:
    """What was lost; a body that is not JSON and a loss without a path are findings."""
    encoded.json().decode()
    if not _holds_only_json(encoded.body):
        raise Finding("Encoded.body holds a value that the standard library's json cannot write")
    return _check_losses(encoded.losses)


def _check_losses(losses: Iterable[dragoman.Loss]) -> str:
    for loss in losses:
        if not loss.path.startswith("$"):
            raise Finding(f"a loss names no place: {loss.path!r}")
    return " ".join(sorted({loss.why[:30] for loss in losses})[:3])


def _turn(data: bytes) -> int:
    """A number by which the inputs are spread over what can be done with them."""
    return zlib.crc32(data)


def _other(data: bytes, name: str, among: tuple[str, ...] = ANY) -> str:
    """A format to encode in: the format itself for a third of the inputs, else one that depends on the input."""
    turn = _turn(data)
    return name if turn % 3 == 0 and name in among else among[(turn >> 4) % len(among)]


def _request(name: str, data: bytes) -> str:
    way = _turn(data) // 3 % 3
    try:
        if way == 0:
            target = _other(data, name, WRITTEN)
            return _check_encoded(dragoman.translate_request(data, source=name, target=target))
        request = dragoman.decode_request(data, name)
        if way == 1:
            describe_request(request, name)
            return ""
        return _check_encoded(dragoman.encode_request(request, _other(data, name, WRITTEN)))
    except DragomanError as error:
        return _check_error(error)


def _response(name: str, data: bytes) -> str:
    way = _turn(data) // 3 % 3
    try:
        if way == 0:
            return _check_encoded(dragoman.translate_response(data, source=name, target=_other(data, name)))
        completion = dragoman.decode_response(data, name)
        if way == 1:
            describe_completion(completion, name)
            return ""
        return _check_encoded(dragoman.encode_response(completion, _other(data, name)))
    except DragomanError as error:
        return _check_error(error)


_STATUS = (None, 200, 400, 401, 404, 413, 429, 500, 529, 999)


def _error(name: str, data: bytes) -> str:
    turn = _turn(data)
    try:
        failure = dragoman.decode_error(data, name, status=_STATUS[turn % len(_STATUS)])
        if turn // 16 % 2:
            describe_failure(failure, name)
            return failure.kind
        return _check_encoded(dragoman.encode_error(failure, _other(data, name, WIRE)))
    except DragomanError as error:
        return _check_error(error)


def _pieces(data: bytes) -> Iterator[bytes]:
    """The stream whole, in a few pieces, or seldom one byte at a time (law 5 tries every cut)."""
    turn = _turn(data) >> 8
    if turn % 32 == 0 and len(data) < 1_500:
        size = (1, 7)[turn // 32 % 2]
    else:
        size = (len(data) + 1, 512, 300, 150, 64)[turn % 5 if len(data) < 1_500 else turn % 3]
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


def _stream(name: str, data: bytes) -> str:
    framed = _framed(name, data)
    way = _turn(data) // 3 % 3
    try:
        if way == 2:
            translator = dragoman.StreamTranslator(source=name, target=_other(data, name, WIRE))
            for piece in _pieces(framed):
                translator.feed(piece)
            translator.close()
            return _check_losses(translator.losses)
        decoder = dragoman.StreamDecoder(name)
        events = [event for piece in _pieces(framed) for event in decoder.feed(piece)] + decoder.close()
        failure = next((event.failure.message for event in events if isinstance(event, StreamFailed)), "")
        if way == 1:
            dragoman.encode_response(_completion(events), _other(data, name))
            if _turn(data) % 4 == 0:
                looks_streamed(framed)
                detect_stream(framed)
        return failure[:60]
    except DragomanError as error:
        return _check_error(error)


def _completion(events: list[Any]) -> Any:
    try:
        return dragoman.accumulate(events)
    except dragoman.StreamError as error:
        return error.partial


VALUE_READERS: tuple[Callable[..., Any], ...] = tuple(
    getattr(dragoman, name) for name in dragoman.__all__ if name.startswith(("decode_tool", "decode_message"))
)


def _value(name: str, data: bytes) -> str:
    """One call, result, definition, choice or message, read and written again."""
    read = VALUE_READERS[_turn(data) % len(VALUE_READERS)]
    write = getattr(dragoman, read.__name__.replace("decode_", "encode_"))
    try:
        return _check_losses(write(read(data, name), _other(data, name)).losses)
    except DragomanError as error:
        return _check_error(error)


_BATCH_TARGETS = (*BATCH_FILES, "openai-chat", "gemini-interactions", "cohere-chat", "universal")


def _batch(name: str, data: bytes) -> str:
    """A line of a provider's batch file, named by the user or found, to another one or to a bare body."""
    target = _BATCH_TARGETS[_turn(data) % len(_BATCH_TARGETS)]
    source = None if _turn(data) // 16 % 4 == 0 else name
    converter = converter_for(ConvertOptions(target=target, source=source), "fuzz", None)
    line = converter.convert(data, 1)
    if isinstance(line, Reject):
        return line.reason[:60]
    if line is not None and b"\n" in line:
        raise Finding("a converted record has more than one line")
    return _check_losses(converter.last_losses)


def _embedding(name: str, data: bytes) -> str:
    """A request for vectors, or an answer with them, to another API and back."""
    source, others = DIALECTS[name], tuple(DIALECTS.values())
    target = others[_turn(data) % len(others)]
    try:
        if _turn(data) // 8 % 2:
            answer = source.decode_response(data, {})
            if not answer.vectors:
                return "no vectors"
            again = target.encode_response(answer, EmbeddingRequest(inputs=("x",) * len(answer.vectors)))
            json.loads(again)
            return f"{len(answer.vectors)} vectors"
        request = source.decode_request(data, "cohere.embed-v4")
        encoding = target.encode_request(split(request, target)[0], source.PATHS)
        json.loads(encoding.content)
        return _check_losses(encoding.losses)
    except DragomanError as error:
        return _check_error(error)


def _embedding_seeds(name: str) -> list[bytes]:
    codec = DIALECTS[name]
    settings: dict[str, Any] = {
        "dimensions": 256,
        "purpose": "document",
        "title": "t",
        "truncation": "none",
        "user": "u",
    }
    requests = [EmbeddingRequest(model="cohere.embed-v4", inputs=("one", "two"), **settings)]
    requests.append(EmbeddingRequest(model="amazon.titan-embed-text-v2:0", inputs=("one",), base64=True))
    answer = EmbeddingResponse(vectors=((0.5, -1.0), (0.25, 2.0)), input_tokens=3, model="m", id="i")
    bodies = [codec.encode_request(one, {}).content for one in requests]
    return [*bodies, *(codec.encode_response(answer, one) for one in requests)]


def _detect(data: bytes) -> str:
    try:
        found = dragoman.detect(data)
        looks_streamed(data)
    except DragomanError as error:
        return _check_error(error)
    return "" if found is None else found.format


def _import(data: bytes) -> str:
    """A file that is opened as a conversation of the chat."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return ""
    try:
        import_document(document)
    except Unreadable as error:
        return str(error)[:40]
    return ""


def _arguments(data: bytes) -> str:
    """A tool's schema and a call's arguments, both from outside (an MCP server, a model)."""
    try:
        given = json.loads(data)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(given, dict):
        return ""
    try:
        schema_decoder(given.get("schema", {}))(given.get("value"))
    except BadArguments as error:
        if not str(error):
            raise Finding("BadArguments without a message") from error
        return str(error)[-30:]
    return ""


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


_LIKE = {"gemini-interactions": "gemini"}
"""A format without recordings -> the one whose recordings are translated to it."""
_TRANSLATE: dict[str, Callable[..., dragoman.Encoded]] = {
    "request": dragoman.translate_request,
    "response": dragoman.translate_response,
    "error": dragoman.translate_error,
}


def _bodies(name: str, kind: str) -> list[bytes]:
    own = [sample.json() for sample in _SAMPLES[kind] if sample.format == name]
    if name in _LIKE:
        return own + _translated(_TRANSLATE[kind], _LIKE[name], _recorded(_LIKE[name], kind), name)
    return own + _recorded(name, kind)


def _translated(translate: Callable[..., dragoman.Encoded], source: str, bodies: list[bytes], name: str) -> list[bytes]:
    found = []
    for body in bodies:
        try:
            found.append(translate(body, source=source, target=name).json())
        except DragomanError:
            continue
    return found


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
    if name in _LIKE:
        return [own, *(_translated_stream(stream, _LIKE[name], name) for stream in _recorded(_LIKE[name], "stream"))]
    return [own, *_recorded(name, "stream")]


def _translated_stream(stream: bytes, source: str, name: str) -> bytes:
    translator = dragoman.StreamTranslator(source=source, target=name)
    return translator.feed(stream) + translator.close()


def _histories(name: str) -> list[bytes]:
    """Stored histories: those the record encoders write from requests and answers of our own."""
    found = []
    for sample in REQUESTS:
        try:
            found.append(dragoman.translate_request(sample.json(), source=sample.format, target=name).json())
        except DragomanError:
            continue
    return _chosen(found)


def _dataset_records(name: str) -> list[bytes]:
    """Records of the format (for a session, its lines), and requests of our own written in it."""
    found = [json.dumps(record, ensure_ascii=False).encode() for record in records_of(name)]
    return found + _histories(name) if name in WRITTEN else found


_OUTCOMES: dict[str, tuple[Outcome, int | None]] = {
    "request": ("request", None),
    "response": ("succeeded", 200),
    "error": ("errored", 429),
}


def _batch_lines(name: str) -> list[bytes]:
    """Requests, answers, errors and what was not run, in this provider's lines."""
    file = BATCH_FILES[name]
    api = file.format if file.format in WIRE else "openai-chat"
    items = [BatchItem(id="r-1", outcome="expired"), BatchItem(id="r-2", outcome="canceled")]
    for kind, (outcome, status) in _OUTCOMES.items():
        items += [
            BatchItem(id=f"r-{number}", outcome=outcome, body=Raw(body), format=file.format, status=status)
            for number, body in enumerate(_bodies(api, kind)[:60])
        ]
    return [write_line(file, item) for item in items]


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
            value = waiting.pop()
            if isinstance(value, dict):
                waiting += [value[key] for key in _MEMBERS if key in value]
            elif isinstance(value, list):
                waiting += value
            found.append(json.dumps(value, ensure_ascii=False).encode())
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
    for name in DATASETS:
        yield Target(f"request:{name}", partial(_request, name), partial(_dataset_records, name))
    for name in BATCH_FILES:
        yield Target(f"batch:{name}", partial(_batch, name), partial(_batch_lines, name))
    for name in DIALECTS:
        yield Target(f"embeddings:{name}", partial(_embedding, name), partial(_embedding_seeds, name))
    yield Target("import", _import, lambda: [seed for name in WIRE for seed in _bodies(name, "request")[:20]])
    yield Target("detect", _detect, lambda: [seed for name in WIRE for seed in _bodies(name, "request")[:40]])
    yield Target("arguments", _arguments, _argument_seeds)


TARGETS: dict[str, Target] = {target.name: target for target in _all()}
