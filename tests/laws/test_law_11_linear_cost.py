"""Law 11. The cost of every public entry point grows linearly with each dimension of its input.

A table of entry points, dimensions that an outsider controls, and formats. Each row compares the CPU time of n with
that of 16n (see tests/support/costs.py); a last test checks that no public name is without its rows.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any
from urllib.parse import parse_qs

import pytest
from msgspec import Raw

import dragoman
import dragoman.ir
from dragoman.agent.compaction import summary_message
from dragoman.agent.output_tools import read_lines
from dragoman.agent.validation import problems_of
from dragoman.codecs.registry import folder_of
from dragoman.detection import detect_stream, looks_streamed
from dragoman.drivers.partial_output import PartialReader
from dragoman.drivers.typed_output import output_of
from dragoman.embeddings import DIALECTS, EmbeddingRequest, EmbeddingResponse, merge, split
from dragoman.errors import DragomanError
from dragoman.gateway.answer_cache import directives
from dragoman.gateway.body_log import redact
from dragoman.gateway.capture import without_keys
from dragoman.gateway.http_request import Head
from dragoman.inspection.bodies import describe_completion, describe_failure, describe_request
from dragoman.ir import (
    AnyEvent,
    Citation,
    Completion,
    Failure,
    Finish,
    Finished,
    Image,
    Message,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
    Request,
    Signature,
    StreamStart,
    Text,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    Usage,
    UsageUpdate,
)
from dragoman.web.guard import session_cookie
from tests.support.bodies import PIXEL
from tests.support.costs import FAR, Prepare, Work, growth
from tests.support.http_costs import HEADS, http1_head, http2_head, serve, server_rows
from tests.support.promises import promise

pytestmark = promise("law:11-linear-cost")

_ONE_OF_EACH = {folder_of(name): name for name in reversed(dragoman.formats("wire"))}
WIRE = tuple(reversed(_ONE_OF_EACH.values()))
"""Without vertex, which differs from gemini in its profile only: the code that is measured is the same."""
RECORDS = dragoman.formats("record")
SMALL, LARGEST = 64, 512
SMALL_IN_BYTES = 32
"""For streams that are fed byte by byte: a cost that grows with what came before shows in thousands of reads, and one
that grows with the parts or events shows where the same stream comes whole."""
HI = Message("user", "hi")
USER_TOOL = ToolDefinition("f", "A tool.", {"type": "object", "properties": {"a": {"type": "string"}}})


def call(number: int, id: str | None = None, name: str = "f") -> ToolCall:
    return ToolCall(f"call_{number}" if id is None else id, name, {"a": str(number)})


def result(number: int, id: str | None = None, name: str = "f") -> ToolResult:
    return ToolResult(f"call_{number}" if id is None else id, name, "text", "x")


def ask(*messages: Message, **settings: Any) -> Request:
    return Request("m", (HI, *messages), **{"tools": (USER_TOOL,), **settings})


def steps(n: int, id: str | None = None, name: str = "f") -> list[Message]:
    """n calls, one after the other, each with its result."""
    return [
        message
        for number in range(n)
        for message in (Message("assistant", (call(number, id, name),)), Message("tool", (result(number, id, name),)))
    ]


def assistants(n: int) -> list[Message]:
    return [Message("assistant", (call(number),)) for number in range(n)]


def parallel(n: int, id: str | None = None, *, reverse: bool = False) -> list[Message]:
    """One turn of n calls with n results."""
    results = [result(number, id) for number in range(n)]
    return [
        Message("assistant", tuple(call(number, id) for number in range(n))),
        Message("tool", tuple(reversed(results) if reverse else results)),
    ]


def turns(n: int, text: str = "x") -> list[Message]:
    return [Message("assistant" if number % 2 else "user", text) for number in range(n)]


def keyed(n: int) -> dict[str, dict[str, Any]]:
    """Metadata of a vendor that no format here is."""
    return {"elsewhere": {f"key_{number}": Raw(b"1") for number in range(n)}}


def tool(number: int, name: str = "tool_{}", **schema: Any) -> ToolDefinition:
    parameters = {"type": "object", "properties": {"a": {"type": "string"}}, **schema}
    return ToolDefinition(name.format(number), "A tool.", parameters)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def wide(n: int) -> dict[str, Any]:
    return {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(n)}}


def deep(n: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(n):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def referring(n: int) -> dict[str, Any]:
    """A chain of definitions, each of which refers to the next."""
    definitions: dict[str, Any] = {
        f"d{number}": {"type": "object", "properties": {"a": {"$ref": f"#/$defs/d{number + 1}"}}} for number in range(n)
    }
    definitions[f"d{n}"] = {"type": "string"}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


def referring_often(n: int) -> dict[str, Any]:
    """Many references to one definition."""
    properties = {f"p{number}": {"$ref": "#/$defs/d"} for number in range(n)}
    return {"type": "object", "properties": properties, "$defs": {"d": {"type": "string", "description": "x"}}}


def alternatives(n: int) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {"anyOf": [{"const": f"v{number}"} for number in range(n)]}}}


def options(n: int) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {"type": "string", "enum": [f"v{number}" for number in range(n)]}}}


def cited(n: int) -> Text:
    text = "cited text " * 4
    return Text(text, tuple(Citation(f"https://a.example/{number}", "t", "cited", 0, 5) for number in range(n)))


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────

REQUESTS: dict[str, Callable[[int], Request]] = {
    "messages": lambda n: ask(*turns(n)),
    "user messages in a row": lambda n: ask(*(HI for _ in range(n))),
    "assistant messages in a row": lambda n: ask(*(Message("assistant", "x") for _ in range(n)), HI),
    "system messages in between": lambda n: ask(*(Message("system" if i % 2 else "user", "x") for i in range(n))),
    "blank messages": lambda n: ask(*turns(n, " "), HI),
    "calls": lambda n: ask(*steps(n)),
    "calls in parallel": lambda n: ask(*parallel(n)),
    "results in another order": lambda n: ask(*parallel(n, reverse=True)),
    "repeated ids": lambda n: ask(*steps(n, "same")),
    "repeated ids in parallel": lambda n: ask(*parallel(n, "same")),
    "ids that no API takes": lambda n: ask(*(m for i in range(n) for m in (
        Message("assistant", (call(i, f"id {i} é"),)), Message("tool", (result(i, f"id {i} é"),))))),
    "calls without results": lambda n: ask(Message("assistant", tuple(call(i) for i in range(n)))),
    "calls in adjacent messages": lambda n: ask(*assistants(n), Message("tool", tuple(result(i) for i in range(n)))),
    "results without calls": lambda n: ask(Message("tool", tuple(result(i) for i in range(n)))),
    "results of one call": lambda n: ask(Message("assistant", (call(0),)), Message("tool", (result(0),) * n)),
    "results far from their calls": lambda n: ask(*(Message("assistant", (call(i), )) for i in range(n)), HI,
                                                  *(Message("tool", (result(i),)) for i in range(n))),
    "names that no API takes": lambda n: ask(*steps(n, name="a b"), tools=(tool(0, "a b"),)),
    "images in results": lambda n: ask(Message("assistant", (call(0),)), Message("tool", (
        ToolResult("call_0", "f", "multimodal", parts=(Image("image/png", PIXEL),) * n),))),
    "errors in results": lambda n: ask(*parallel(n)[:1], Message("tool", tuple(
        ToolResult(f"call_{i}", "f", "error", "no") for i in range(n)))),
    "tools": lambda n: ask(tools=tuple(tool(i) for i in range(n))),
    "tools with names that no API takes": lambda n: ask(tools=tuple(tool(i, "a b {}") for i in range(n))),
    "tools of one name": lambda n: ask(tools=tuple(tool(0) for _ in range(n))),
    "names to choose from": lambda n: ask(tools=tuple(tool(i) for i in range(n)), tool_choice=ToolChoice(
        "required", tuple(f"tool_{i}" for i in range(n)))),
    "tools called and not declared": lambda n: ask(*(m for i in range(n) for m in (
        Message("assistant", (call(i, name=f"t{i}"),)), Message("tool", (result(i, name=f"t{i}"),)))), tools=()),
    "properties of a schema": lambda n: ask(tools=(ToolDefinition("f", "A tool.", wide(n)),)),
    "depth of a schema": lambda n: ask(tools=(ToolDefinition("f", "A tool.", deep(n // 32)),)),
    "references that lead on": lambda n: ask(tools=(ToolDefinition("f", "A tool.", referring(n // 32)),)),
    "references to one definition": lambda n: ask(tools=(ToolDefinition("f", "A tool.", referring_often(n)),)),
    "alternatives of a schema": lambda n: ask(tools=(ToolDefinition("f", "A tool.", alternatives(n)),)),
    "options of a schema": lambda n: ask(tools=(ToolDefinition("f", "A tool.", options(n)),)),
    "one long text": lambda n: ask(Message("user", "Hello 👋, " * 2 * n)),
    "one long argument": lambda n: ask(Message("assistant", (ToolCall("c", "f", {"a": 'x"\\\n' * 4 * n}),)),
                                       Message("tool", (ToolResult("c", "f", "text", "x"),))),
    "one long result": lambda n: ask(Message("assistant", (call(0),)), Message("tool", (
        ToolResult("call_0", "f", "text", '{"output": "\\n' * 2 * n),))),
    "keys of arguments": lambda n: ask(Message("assistant", (ToolCall("c", "f", {f"k{i}": i for i in range(n)}),)),
                                       Message("tool", (ToolResult("c", "f", "data", dict.fromkeys("ab", n)),))),
    "one long id": lambda n: ask(*steps(2, "i" * 10 * n)),
    "one long name": lambda n: ask(*steps(2, name="n" * 10 * n), tools=(tool(0, "n" * 10 * n),)),
    "one long blank text": lambda n: ask(Message("user", " " * 20 * n), HI),
    "parts": lambda n: ask(Message("user", tuple(Text("x") for _ in range(n)))),
    "images": lambda n: ask(Message("user", tuple(Image("image/png", PIXEL) for _ in range(n)))),
    "reasoning": lambda n: ask(Message("assistant", (*(Reasoning("x") for _ in range(n)), Text("y"))), HI),
    "citations": lambda n: ask(Message("assistant", (cited(n),)), HI),
    "stop sequences": lambda n: ask(stop=tuple(f"s{i}" for i in range(n))),
    "keys of metadata": lambda n: ask(metadata=keyed(n)),
    "losses": lambda n: ask(*(Message("user", "x", metadata=keyed(1)) for _ in range(n))),
    "losses of calls": lambda n: ask(Message("assistant", tuple(
        ToolCall(f"call_{i}", "f", {}, metadata=keyed(1)) for i in range(n))), parallel(n)[1]),
    "losses of tools": lambda n: ask(tools=tuple(
        ToolDefinition(f"t{i}", "A tool.", metadata=keyed(1)) for i in range(n))),
    "losses after replacements": lambda n: ask(*(m for i in range(n) for m in (
        Message("assistant", (ToolCall("same", "a b", {}, metadata=keyed(1)), Text(" "))),
        Message("tool", (ToolResult("same", "a b", "text", "x", metadata=keyed(1)),)),
        Message("assistant", (Text("y", metadata=keyed(1)),))))),
}  # fmt: skip

# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────


SIGNED = Signature("google", "c2ln")


def answer(*parts: Any, **members: Any) -> Completion:
    reason: Any = "tool_calls" if any(isinstance(part, ToolCall) for part in parts) else "stop"
    return Completion((Message("assistant", parts),), Finish(reason), Usage(5, 7), "id-1", "m", 5, **members)


def candidates(n: int) -> Completion:
    finish = Finish("stop")
    messages = tuple(Message("assistant", (Text("x"),)) for _ in range(n))
    return Completion(messages, finish, Usage(1, 1), "id-1", "m", 5, (finish,) * n)


ANSWERS: dict[str, Callable[[int], Completion]] = {
    "parts": lambda n: answer(*(Text("x") for _ in range(n))),
    "calls": lambda n: answer(*(call(i) for i in range(n))),
    "repeated ids": lambda n: answer(*(call(i, "same") for i in range(n))),
    "calls between texts": lambda n: answer(*(part for i in range(n) for part in (Text("x"), call(i)))),
    "candidates": candidates,
    "citations": lambda n: answer(cited(n)),
    "reasoning": lambda n: answer(*(Reasoning("x") for _ in range(n)), Text("y")),
    "images": lambda n: answer(*(Image("image/png", PIXEL, signature=SIGNED) for _ in range(n))),
    "one long image": lambda n: answer(Image("image/png", "AAAA" * 10 * n)),
    "one long text": lambda n: answer(Text("Hello 👋, " * 2 * n)),
    "one long argument": lambda n: answer(ToolCall("c", "f", {"a": 'x"\\\n' * 4 * n})),
    "keys of arguments": lambda n: answer(ToolCall("c", "f", {f"k{i}": i for i in range(n)})),
    "keys of metadata": lambda n: answer(Text("x"), metadata=keyed(n)),
    "losses": lambda n: answer(*(Text("x", metadata=keyed(1)) for _ in range(n))),
}

# ── streams ───────────────────────────────────────────────────────────────────────────────────────────────────


def streamed(*events: AnyEvent, reason: Any = "stop") -> list[AnyEvent]:
    start = StreamStart("id-1", "m", 5)
    return [start, *events, UsageUpdate(Usage(5, 7)), Finished(Finish(reason))]


def deltas(index: int, part: Any, texts: list[str]) -> list[AnyEvent]:
    return [PartStart(index, part), *(PartDelta(index, text) for text in texts), PartEnd(index)]


def interleaved(n: int) -> list[AnyEvent]:
    starts: list[AnyEvent] = [PartStart(i, ToolCall(f"c{i}", "f")) for i in range(n)]
    return [*starts, *(PartDelta(i, "{}") for i in range(n)), *(PartEnd(i) for i in range(n))]


EVENTS: dict[str, Callable[[int], list[AnyEvent]]] = {
    "text deltas": lambda n: streamed(*deltas(0, Text(""), ["ab "] * n)),
    "argument deltas": lambda n: streamed(
        *deltas(0, ToolCall("c", "f"), ['{"a":"', *(["x"] * n), '"}']), reason="tool_calls"
    ),
    "reasoning deltas": lambda n: streamed(*deltas(0, Reasoning(""), ["ab "] * n), *deltas(1, Text(""), ["x"])),
    "calls": lambda n: streamed(
        *(event for i in range(n) for event in deltas(i, ToolCall(f"c{i}", "f"), ["{}"])), reason="tool_calls"
    ),
    "calls at the same time": lambda n: streamed(*interleaved(n), reason="tool_calls"),
    "texts between calls": lambda n: streamed(
        *(
            event
            for i in range(n)
            for event in (*deltas(2 * i, Text(""), ["x"]), *deltas(2 * i + 1, ToolCall(f"c{i}", "f"), ["{}"]))
        ),
        reason="tool_calls",
    ),
    "citations": lambda n: streamed(
        PartStart(0, Text("")),
        PartDelta(0, "text"),
        *(PartDelta(0, "", Citation(f"https://a.example/{i}", "t", "x")) for i in range(n)),
        PartEnd(0),
    ),
    "images": lambda n: streamed(
        *(event for i in range(n) for event in (PartStart(i, Image("image/png", PIXEL, signature=SIGNED)), PartEnd(i)))
    ),
    "usage updates": lambda n: streamed(*deltas(0, Text(""), ["x"]), *(UsageUpdate(Usage(5, i)) for i in range(n))),
    "one long delta": lambda n: streamed(*deltas(0, Text(""), ["Hello 👋, " * 2 * n])),
    "one long argument": lambda n: streamed(
        *deltas(0, ToolCall("c", "f"), ['{"a":"' + "x" * 20 * n + '"}']), reason="tool_calls"
    ),
}


@cache
def stream_of(name: str, dimension: str, n: int) -> bytes:
    encoder = dragoman.StreamEncoder(name)
    return encoder.encode(EVENTS[dimension](n)) + encoder.close()


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def feed(make: Callable[[], Any], parts: list[bytes]) -> Work:
    def work() -> None:
        machine = make()
        for part in parts:
            machine.feed(part)
        machine.close()
        _ = getattr(machine, "losses", ())

    return work


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────

ERRORS: dict[str, Callable[[int], dict[str, Any]]] = {
    "one long message": lambda n: {"error": {"message": "x" * 20 * n, "type": "t", "code": 400, "status": "S"}},
    "keys": lambda n: {"error": {"message": "x", **{f"k{i}": i for i in range(n)}}, **{f"k{i}": i for i in range(n)}},
    "details": lambda n: {"error": {"message": "x", "details": [{"@type": "t", "retryDelay": "1s"}] * n}},
}

# ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────────


def tolerant(work: Work) -> Work:
    """A refusal is an answer, too, and must not cost more than one."""

    def run() -> None:
        with suppress(DragomanError):
            work()

    return run


def _read_losses(encoded: Any) -> None:
    _ = encoded.losses, encoded.body


def request_rows() -> Iterator[tuple[str, str, str, Prepare]]:
    for dimension, build in REQUESTS.items():
        for name in (*WIRE, *RECORDS):

            def encode(n: int, build: Any = build, name: str = name) -> Work:
                request = build(n)
                return tolerant(lambda: _read_losses(dragoman.encode_request(request, name)))

            def decode(n: int, dimension: str = dimension, name: str = name) -> Work:
                body = request_body(dimension, name, n)
                return tolerant(lambda: dragoman.decode_request(body, name))

            def translate(n: int, dimension: str = dimension, name: str = name) -> Work:
                body = request_body(dimension, name, n)
                target = OTHER[name]
                return tolerant(
                    lambda: _read_losses(dragoman.translate_request(body, source=name, target=target, model="m"))
                )

            yield "encode_request", dimension, name, encode
            yield "decode_request", dimension, name, decode
            yield "translate_request", dimension, name, translate


OTHER = {name: (*WIRE, *RECORDS)[(place + 2) % len(WIRE)] for place, name in enumerate((*WIRE, *RECORDS))}


def body_of(request: Request, name: str) -> bytes:
    try:
        return dragoman.encode_request(request, name).json()
    except DragomanError:
        return dragoman.encode_request(ask(), name).json()


@lru_cache(maxsize=16)
def request_body(dimension: str, name: str, n: int) -> bytes:
    return body_of(REQUESTS[dimension](n), name)


@lru_cache(maxsize=16)
def answer_body(dimension: str, name: str, n: int) -> bytes:
    return answer_of(ANSWERS[dimension](n), name)


def answer_of(completion: Completion, name: str) -> bytes:
    return dragoman.encode_response(completion, name).json()


def answer_rows() -> Iterator[tuple[str, str, str, Prepare]]:
    for dimension, build in ANSWERS.items():
        for name in (*WIRE, *RECORDS):

            def encode(n: int, build: Any = build, name: str = name) -> Work:
                completion = build(n)
                request = ask(tools=tuple(tool(i, "a b {}") for i in range(n)))
                return tolerant(lambda: _read_losses(dragoman.encode_response(completion, name, request=request)))

            def decode(n: int, dimension: str = dimension, name: str = name) -> Work:
                body = answer_body(dimension, name, n)
                return tolerant(lambda: dragoman.decode_response(body, name))

            def translate(n: int, dimension: str = dimension, name: str = name) -> Work:
                body = answer_body(dimension, name, n)
                target = OTHER[name]
                return tolerant(lambda: _read_losses(dragoman.translate_response(body, source=name, target=target)))

            yield "encode_response", dimension, name, encode
            yield "decode_response", dimension, name, decode
            yield "translate_response", dimension, name, translate


def error_rows() -> Iterator[tuple[str, str, str, Prepare]]:
    for name in WIRE:
        for dimension, build in ERRORS.items():

            def decode(n: int, build: Any = build, name: str = name) -> Work:
                body = json.dumps(build(n)).encode()
                return tolerant(lambda: dragoman.decode_error(body, name, status=400))

            def translate(n: int, build: Any = build, name: str = name) -> Work:
                body = json.dumps(build(n)).encode()
                return tolerant(
                    lambda: dragoman.translate_error(body, source=name, target=OTHER[name], status=429).body
                )

            yield "decode_error", dimension, name, decode
            yield "translate_error", dimension, name, translate

        def headers(n: int, name: str = name) -> Work:
            many = {f"X-Header-{number}": "value" for number in range(n)}
            return tolerant(lambda: dragoman.decode_error(b"{}", name, status=400, headers=many))

        def encode(n: int, name: str = name) -> Work:
            failure = Failure("server", "x" * 20 * n, 500, details={f"k{i}": i for i in range(n)})
            return tolerant(lambda: dragoman.encode_error(failure, name).body)

        yield "decode_error", "headers", name, headers
        yield "encode_error", "one long message", name, encode


def stream_rows() -> Iterator[tuple[str, str, str, Prepare]]:
    for dimension, build in EVENTS.items():
        for name in WIRE:

            def encode(n: int, build: Any = build, name: str = name) -> Work:
                events = build(n)

                def work() -> None:
                    encoder = dragoman.StreamEncoder(name)
                    encoder.encode(events)
                    encoder.close()

                return work

            yield "StreamEncoder", dimension, name, encode
            for cut, size in (("whole", 1 << 30), ("in pieces", 1_000), ("byte by byte", 1)):

                def decode(n: int, d: str = dimension, name: str = name, size: int = size) -> Work:
                    return feed(lambda: dragoman.StreamDecoder(name), pieces(stream_of(name, d, scaled(n, size)), size))

                def translate(n: int, d: str = dimension, name: str = name, size: int = size) -> Work:
                    parts = pieces(stream_of(name, d, scaled(n, size)), size)
                    return feed(lambda: dragoman.StreamTranslator(source=name, target=OTHER[name]), parts)

                yield "StreamDecoder", f"{dimension}, {cut}", name, decode
                yield "StreamTranslator", f"{dimension}, {cut}", name, translate

        def gather(n: int, build: Any = build) -> Work:
            events = build(n)
            return lambda: dragoman.accumulate(events)

        def texts(n: int, d: str = dimension) -> Work:
            parts = pieces(stream_of("openai-chat", d, n), 1_000)
            return feed(lambda: dragoman.TextStream("openai-chat"), parts)

        yield "accumulate", dimension, "", gather
        yield "TextStream", dimension, "openai-chat", texts


def scaled(n: int, size: int) -> int:
    """Byte by byte, a small stream has many pieces already."""
    return max(n // 16, 2) if size == 1 else n


FRAMES: dict[str, Callable[[int], bytes]] = {
    "comments": lambda n: b": keep alive\n\n" * n,
    "blank lines": lambda n: b"\n" * 8 * n,
    "carriage returns": lambda n: b"\r" * 8 * n,
    "lines of one event": lambda n: b"data: {\n" * n,
    "an event without end": lambda n: b'data: {"a":"' + b"x" * 20 * n,
    "names without data": lambda n: b"event: ping\n\n" * n,
    "an array without end": lambda n: b"[" + b'{"a":[{"b":"]"}]},' * n,
    "nested brackets": lambda n: b"[" * n,
    "binary zeros": lambda n: b"\x00" * 8 * n,
    "empty objects": lambda n: b"data: {}\n\n" * n,
}


def frame_rows() -> Iterator[tuple[str, str, str, Prepare]]:
    for dimension, build in FRAMES.items():
        for name in WIRE:
            for cut, size in (("in pieces", 1_000), ("byte by byte", 1)):

                def decode(n: int, build: Any = build, name: str = name, size: int = size) -> Work:
                    return feed(lambda: dragoman.StreamDecoder(name), pieces(build(scaled(n, size)), size))

                yield "StreamDecoder", f"{dimension}, {cut}", name, decode

        def look(n: int, build: Any = build) -> Work:
            data = build(n)

            def work() -> None:
                looks_streamed(data)
                detect_stream(data)

            return work

        yield "detect", dimension, "", look


ODD_BODIES: dict[str, Callable[[bytes, int], bytes]] = {
    "unknown keys": lambda body, n: body[:-1] + b"".join(b',"x%d":%d' % (i, i) for i in range(n)) + b"}",
    "one key many times": lambda body, n: body[:-1] + b',"x":1' * n + b"}",
    "depth": lambda body, n: body[:-1] + b',"x":' + b"[" * (n // 32) + b"]" * (n // 32) + b"}",
    "digits": lambda body, n: body[:-1] + b',"x":' + b"9" * 40 * n + b"}",
    "escapes": lambda body, n: body[:-1] + b',"x":"' + b"\\ud83e\\udd80" * n + b'"}',
    "invalid at the end": lambda body, n: body[:-1] + b',"x":"' + b"\\\\ud83e\\n" * n + b'"',
    "half surrogates": lambda body, n: body[:-1] + b',"x":"' + b"\\\\" * n + b'\\ud83e"}',
    "bad UTF-8 at the end": lambda body, n: body[:-1] + b',"x":"' + "é".encode() * 4 * n + b'\xff"}',
    "white space": lambda body, n: body[:-1] + b" " * 20 * n + b"}",
    "a key of the format many times": lambda body, n: body[:-1] + b',"messages":[]' * n + b"}",
}


def odd_rows() -> Iterator[tuple[str, str, str, Prepare]]:
    for dimension, spoil in ODD_BODIES.items():
        for name in (*WIRE, *RECORDS):

            def read(n: int, spoil: Any = spoil, name: str = name) -> Work:
                body = spoil(dragoman.encode_request(ask(), name).json(), n)
                return tolerant(lambda: dragoman.decode_request(body, name))

            def translate(n: int, spoil: Any = spoil, name: str = name) -> Work:
                body = spoil(dragoman.encode_request(ask(), name).json(), n)
                return tolerant(
                    lambda: _read_losses(dragoman.translate_request(body, source=name, target=OTHER[name], model="m"))
                )

            def response(n: int, spoil: Any = spoil, name: str = name) -> Work:
                body = spoil(answer_of(answer(Text("x")), name), n)
                return tolerant(lambda: dragoman.decode_response(body, name))

            yield "decode_request", dimension, name, read
            yield "translate_request", dimension, name, translate
            yield "decode_response", dimension, name, response

        def look(n: int, spoil: Any = spoil) -> Work:
            body = spoil(b'{"model":"m","messages":[{"role":"user","content":"x"}]}', n)
            return tolerant(lambda: dragoman.detect(body))

        yield "detect", dimension, "", look


def served_rows() -> Iterator[tuple[str, str, str, Prepare]]:
    """Calls in an answer that its server answered itself, with ids and without."""
    for dimension, ids in (("calls that were answered", True), ("calls without ids that were answered", False)):

        def parts(n: int, ids: bool = ids) -> list[dict[str, Any]]:  # noqa: FBT001
            known = [{"name": f"t{i % 7}", **({"id": f"c{i}"} if ids else {})} for i in range(n)]
            calls = [{"functionCall": {**call, "args": {"a": i}}} for i, call in enumerate(known)]
            return [*calls, *({"functionResponse": {**call, "response": {"b": 1}}} for call in reversed(known))]

        def whole(n: int, parts: Any = parts) -> Work:
            candidate = {"content": {"role": "model", "parts": parts(n)}, "finishReason": "STOP"}
            return _later(dragoman.decode_response, json.dumps({"candidates": [candidate]}).encode(), "gemini")

        def streamed(n: int, parts: Any = parts) -> Work:
            chunks = [{"candidates": [{"content": {"role": "model", "parts": [part]}}]} for part in parts(n)]
            data = b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks)
            return lambda: dragoman.StreamDecoder("gemini").feed(data)

        yield "decode_response", dimension, "gemini", whole
        yield "StreamDecoder", dimension, "gemini", streamed


MINTED = Signature("elsewhere", "minted-by-another-vendor")

CARRIED: dict[str, Callable[[int], list[Any]]] = {
    "signed reasoning, texts and a call": lambda n: [
        *(Reasoning(f"r{i}", signature=MINTED) for i in range(n)), *(Text("x") for _ in range(n)), call(0)],
    "signed calls": lambda n: [ToolCall(f"c{i}", "f", {}, signature=MINTED) for i in range(n)],
}  # fmt: skip


def carrier_rows() -> Iterator[tuple[str, str, str, Prepare]]:
    """What another vendor signed, echoed by a client in order, in reverse, and with the carriers moved to the end."""
    orders: dict[str, Callable[[list[Any]], list[Any]]] = {
        "in order": list,
        "reversed": lambda parts: parts[::-1],
        "thinking last": lambda parts: sorted(parts, key=lambda part: "hinking" in json.dumps(part)),
    }
    for name, field in {"anthropic-messages": "content", "gemini": "parts", "bedrock-converse": "content"}.items():
        for dimension, build in CARRIED.items():

            def encode(n: int, build: Any = build, name: str = name) -> Work:
                completion = answer(*build(n))
                return lambda: _read_losses(dragoman.encode_response(completion, name))

            yield "encode_response", dimension, name, encode
            for order, arrange in orders.items():

                def decode(
                    n: int, build: Any = build, name: str = name, field: str = field, arrange: Any = arrange
                ) -> Work:
                    request = Request("m", (HI, Message("assistant", tuple(build(n))), HI))
                    body = dragoman.encode_response(answer(*build(n)), name).body
                    content = body["candidates"][0] if "candidates" in body else body.get("output", {"message": body})
                    body_sent = dragoman.encode_request(request, name).body
                    turns = body_sent["contents" if name == "gemini" else "messages"]
                    turns[1][field] = arrange(list(content.get("message", content.get("content"))[field]))
                    sent = json.dumps(body_sent).encode()
                    return lambda: dragoman.decode_request(sent, name)

                yield "decode_request", f"{dimension}, {order}", name, decode


def describe_rows() -> Iterator[tuple[str, str, str, Prepare]]:
    for dimension, build in REQUESTS.items():
        yield "inspect", dimension, "request", _prepared(describe_request, build, "openai-chat")
    for dimension, complete in ANSWERS.items():
        yield "inspect", dimension, "answer", _prepared(describe_completion, complete, "openai-chat")
    yield "inspect", "message", "error", lambda n: _later(describe_failure, Failure("server", "x" * 20 * n), "gemini")
    for dimension, build in REQUESTS.items():

        def look(n: int, build: Any = build) -> Work:
            body = body_of(build(n), "openai-chat")
            return tolerant(lambda: dragoman.detect(body))

        yield "detect", dimension, "openai-chat", look
    yield (
        "render_losses",
        "losses",
        "",
        lambda n: _later(dragoman.render_losses, [dragoman.Loss(f"$.a[{i}]", "x", "dropped", "y") for i in range(n)]),
    )


def _prepared(function: Callable[..., Any], build: Callable[[int], Any], *more: Any) -> Prepare:
    return lambda n: _later(function, build(n), *more)


def _later(function: Callable[..., Any], *given: Any) -> Work:
    return lambda: function(*given)


def value_rows() -> Iterator[tuple[str, str, str, Prepare]]:
    """One-value converters, on lists of n values and on one large value."""
    single = {
        "tool_call": lambda n: ToolCall("c", "f", {f"k{i}": "x" * 9 for i in range(n)}),
        "tool_result": lambda n: ToolResult("c", "f", "data", {f"k{i}": "x" * 9 for i in range(n)}),
        "tool_definition": lambda n: ToolDefinition("f", "A tool.", wide(n)),
        "tool_choice": lambda n: ToolChoice("required", tuple(f"t{i}" for i in range(n))),
        "message": lambda n: Message("user", tuple(Text("x") for _ in range(n))),
    }
    several: dict[str, Callable[[int], list[Any]]] = {
        "tool_calls": lambda n: [call(i) for i in range(n)],
        "tool_results": lambda n: [result(i) for i in range(n)],
        "tool_definitions": lambda n: [tool(i) for i in range(n)],
        "messages": lambda n: [HI, *steps(n)],
    }
    for name in (*WIRE, *RECORDS):
        for kind, build in {**single, **several}.items():

            def encode(n: int, build: Any = build, name: str = name, kind: str = kind) -> Work:
                value = build(n)
                return tolerant(lambda: getattr(dragoman, f"encode_{kind}")(value, name).losses)

            def decode(n: int, build: Any = build, name: str = name, kind: str = kind) -> Work:
                try:
                    wire = getattr(dragoman, f"encode_{kind}")(build(n), name).json()
                except DragomanError:
                    wire = b"{}"
                return tolerant(lambda: getattr(dragoman, f"decode_{kind}")(wire, name))

            yield f"encode_{kind}", "size", name, encode
            yield f"decode_{kind}", "size", name, decode


CHECKS: dict[str, Callable[[int], tuple[Any, Any]]] = {
    "properties": lambda n: (wide(n), {f"p{i}": 5 if i == n - 1 else "x" for i in range(n)}),
    "unknown names": lambda n: ({"additionalProperties": False}, {f"p{i}": 1 for i in range(n)}),
    "missing names": lambda n: ({"required": [f"p{i}" for i in range(n)]}, {}),
    "elements": lambda n: ({"items": {"type": "integer", "minimum": 0}}, list(range(n))),
    "options and elements": lambda n: ({"items": {"enum": [f"v{i}" for i in range(n)]}}, [f"v{i}" for i in range(n)]),
    "unique elements": lambda n: ({"uniqueItems": True}, list(range(n))),
    "alternatives": lambda n: ({"anyOf": [{"const": i} for i in range(n)]}, "x"),
    "alternatives and a large value": lambda n: ({"anyOf": [{"const": i} for i in range(n)]}, list(range(n))),
    "depth": lambda n: (deep(n // 64), json.loads('{"a":' * (n // 64) + "1" + "}" * (n // 64))),
    "depth beyond the limit": lambda n: ({"items": {"$ref": "#"}}, nested(100 + n // 16)),
    "references": lambda n: (referring(n // 64), json.loads('{"a":' * (n // 64) + "1" + "}" * (n // 64))),
    "pattern and long text": lambda n: ({"pattern": "^(a+)+$"}, "a" * n + "!"),
    "long pattern": lambda n: ({"pattern": "(a|b)*" * (n // 16) + "$"}, "c"),
    "a long name": lambda n: ({"properties": {"x" * n: {"items": {"type": "string"}}}}, {"x" * n: ["y"] * n}),
    "names and patterns": lambda n: (
        {"patternProperties": {"^a": {"type": "string"}}},
        {f"a{i}": "x" for i in range(n)},
    ),
    "digits": lambda n: ({"multipleOf": 0.01, "maximum": 5}, int("9" * min(4_000, n))),
    "one long text": lambda n: ({"maxLength": 5}, "x" * 20 * n),
}


SUMMARIES: dict[str, Callable[[int], str]] = {
    "tags that do not end": lambda n: "<retain>" * n + "<summary>" * n,
    "blocks": lambda n: "<retain>a fact</retain>" * n,
    "ends without a beginning": lambda n: "</retain></summary>" * n,
    "lines to retain": lambda n: "<retain>" + "".join(f"fact {i}\n" for i in range(n)) + "</retain>",
}


def agent_rows() -> Iterator[tuple[str, str, str, Prepare]]:
    for dimension, build in CHECKS.items():

        def check(n: int, build: Any = build) -> Work:
            schema, value = build(n)
            return lambda: problems_of(schema, value)

        yield "tool", dimension, "arguments", check

    def lines(n: int) -> Work:
        text = "line\n" * n
        return lambda: read_lines(text, 0, 10**12)

    yield "Agent", "lines of stored output", "", lines
    for dimension, text in SUMMARIES.items():
        yield "Agent", dimension, "summary", _prepared(lambda text: summary_message([], text), text)
    for dimension, text in PARTIALS.items():

        def stream(n: int, text: Callable[[int], str] = text) -> Work:
            pieces = [text(n)[place : place + 8] for place in range(0, len(text(n)), 8)]
            return lambda: [*map(PartialReader(_LISTS).feed, pieces)]

        if dimension not in {"fences", "white space", "escapes"}:
            yield "Agent", dimension, "typed output while streaming", stream
        yield "Agent", dimension, "typed output", _prepared(_read_typed, text)


_LISTS = output_of(list[str])
PARTIALS: dict[str, Callable[[int], str]] = {
    "elements": lambda n: '{"value": [' + '"word", ' * n,
    "one long text": lambda n: '{"value": ["' + "a" * 8 * n,
    "escapes": lambda n: '{"value": ["' + "\\\\" * 4 * n,
    "nesting": lambda n: "[" * n,
    "closed elements": lambda n: '{"value": ' + '[["a"], ' * n,
    "fences": lambda n: "```json\n" * n + " " * n,
    "white space": lambda n: "```json\n" + " \n" * 4 * n,
}


def _read_typed(text: str) -> None:
    with suppress(ValueError):
        _LISTS.read(text)


KEYS: dict[str, Callable[[int], bytes]] = {
    "open headers": lambda n: b'"headers":{"a' * n,
    "a long header": lambda n: b'"headers":{"' + b"auth" * n + b'" "x"}',
    "escapes": lambda n: b'"headers": {"' + b'\\"' * n + b'"}',
    "headers": lambda n: b'"headers": {' + b'"auth":"x",' * n + b"}",
    "keys": lambda n: b'"api_key": "x",' * n,
    "keys without end": lambda n: b'"api_key": "x' * n,
    "white space": lambda n: b'"headers"' + b" " * 40 * n + b'"password"' + b" " * 40 * n,
    "data URLs": lambda n: b'"data:' + b"a" * 40 * n + b'"',
    "parameters of data URLs": lambda n: b'"data:a/b' + b";a=b" * n + b'"',
    "long words": lambda n: b'"' + b"a" * 20 * n + b"!",
}


def redaction_rows() -> Iterator[tuple[str, str, str, Prepare]]:
    for dimension, build in KEYS.items():
        yield "redaction", dimension, "capture", _prepared(without_keys, build)
        yield "redaction", dimension, "log", _prepared(redact, build, 1, 1 << 30)


TEXTS: dict[str, Callable[[int], tuple[str, ...]]] = {
    "texts": lambda n: tuple(f"text {i}" for i in range(n)),
    "a long text": lambda n: ("x" * 40 * n,),
}


def embedding_rows() -> Iterator[tuple[str, str, str, Prepare]]:
    for name, dialect in DIALECTS.items():
        model = "cohere.embed-v4" if name == "bedrock" else "text-embedding-005"
        for dimension, texts in TEXTS.items():

            def embedding_work(n: int, dialect: Any = dialect, texts: Any = texts, model: str = model) -> Work:
                request = EmbeddingRequest(model=model, inputs=texts(n), dimensions=8)
                body = dialect.encode_request(request, {}).content

                def work() -> None:
                    again = dialect.decode_request(body, model)
                    for part in split(again, dialect):
                        dialect.encode_request(part, {})

                return work

            yield "embeddings", f"{name}: {dimension}", "embeddings", embedding_work
        for dimension, shape in {"vectors": (1, 4), "numbers": (4, 1)}.items():

            def answered(n: int, dialect: Any = dialect, shape: Any = shape, model: str = model) -> Work:
                count, size = (n, 4) if shape[0] == 1 else (1, 4 * n)
                request = EmbeddingRequest(model=model, inputs=("x",) * count)
                answer = EmbeddingResponse(vectors=((0.25,) * size,) * count, input_tokens=1)
                body = dialect.encode_response(answer, request)
                return lambda: dialect.encode_response(merge([dialect.decode_response(body, {})] * 2), request)

            yield "embeddings", f"{name}: {dimension}", "embeddings", answered


CONTROLS: dict[str, Callable[[int], str]] = {
    "directives": lambda n: "max-age=5," * n,
    "a long word": lambda n: "a" * 20 * n + " !",
    "blanks": lambda n: " " * 20 * n + "x",
    "digits": lambda n: "max-age=" + "9" * 20 * n,
}


FIELDS: dict[str, Callable[[int], str]] = {
    "fields": lambda n: "password=x&" * n,
    "escapes": lambda n: "password=" + "%41%ff%" * n,
    "a long password": lambda n: "password=" + "x" * 20 * n,
    "names without values": lambda n: "&" * 20 * n,
}
COOKIES: dict[str, Callable[[int], str]] = {
    "backslashes": lambda n: 'dragoman_page="' + "\\" * 20 * n,
    "cookies": lambda n: "a=b;" * n,
    "blanks": lambda n: " " * 20 * n,
    "equal signs": lambda n: "=" * 20 * n,
}


def page_rows() -> Iterator[tuple[str, str, str, Prepare]]:
    """What the page reads before a login."""
    for dimension, text in FIELDS.items():
        yield "page", f"form: {dimension}", "page", _prepared(parse_qs, text)
    for dimension, text in COOKIES.items():

        def look(n: int, text: Callable[[int], str] = text) -> Work:
            head = Head("GET", "/", "", {"cookie": text(n)})
            return lambda: session_cookie(head)

        yield "page", f"cookie: {dimension}", "page", look


def cache_rows() -> Iterator[tuple[str, str, str, Prepare]]:
    for dimension, text in CONTROLS.items():
        yield "cache", dimension, "cache-control", _prepared(directives, text)


ROWS: list[tuple[str, str, str, Prepare]] = [
    *embedding_rows(),
    *cache_rows(),
    *request_rows(),
    *answer_rows(),
    *error_rows(),
    *stream_rows(),
    *frame_rows(),
    *odd_rows(),
    *served_rows(),
    *carrier_rows(),
    *describe_rows(),
    *value_rows(),
    *agent_rows(),
    *redaction_rows(),
    *page_rows(),
    *server_rows(),
]


@pytest.mark.parametrize("format", sorted({format for _, _, format, _ in ROWS}))
def test_cost_grows_linearly(format: str) -> None:
    """Rows of one format in the order of their dimensions, which share the bodies that they read."""
    steep = []
    for entry, dimension, named, prepare in ROWS:
        if named == format:
            small = SMALL_IN_BYTES if dimension.endswith("byte by byte") else SMALL
            found = growth(prepare, small, LARGEST, leap=FAR)
            if found.is_steep:
                steep.append(f"{entry}, {dimension}: {found}")
    assert steep == []


# ── completeness ──────────────────────────────────────────────────────────────────────────────────────────────

WITHOUT_INPUT = {
    "Driver": "an interface",
    "Encoded": "a value; its losses and body are read in every row of an encoder",
    "EncodedValue": "a value; its losses are read in every row of a converter",
    "Loss": "a value",
    "QueryResult": "a value",
    "StreamResult": "a value",
    "connect": "takes names that the application chooses",
    "connect_sync": "takes names that the application chooses",
    "formats": "takes nothing",
}


def test_every_public_name_has_its_rows() -> None:
    entries = {entry for entry, _, _, _ in ROWS}
    values = {name for name in dragoman.__all__ if hasattr(dragoman.ir, name)}  # their constructors are in every row
    errors = {
        name
        for name in dragoman.__all__
        if isinstance(getattr(dragoman, name), type) and issubclass(getattr(dragoman, name), Exception)
    }
    assert set(dragoman.__all__) - entries - values - errors - set(WITHOUT_INPUT) == set()
    assert {"detect", "inspect", "page", "redaction", "server"} <= entries


@pytest.mark.parametrize("head", [http1_head, http2_head])
def test_the_rows_of_the_server_are_answered(head: Callable[[list[tuple[str, str]]], bytes]) -> None:
    """A few headers are read, too many are refused: in both cases the server has done its work."""
    for dimension, build in HEADS.items():
        few, many = serve([head(build(8))]), serve([head(build(4_000))])
        if head is http1_head:
            assert few.startswith(b"HTTP/1.1 200 "), dimension
            assert many.startswith(b"HTTP/1.1 431 "), dimension
        else:
            assert b"ok" in few, dimension
            assert b"ok" not in many, dimension
