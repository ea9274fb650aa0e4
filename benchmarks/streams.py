"""Writes an answer as the stream of each wire format, one chunk per event, and reads such a stream back.

Written by hand and not with dragoman, as in bodies.py. Formats differ: OpenAI interleaves the fragments of parallel
calls, Anthropic sends one block after the other, Gemini whole calls within the text. Some formats pad their events.
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, zip_longest
from typing import Any, Final

import orjson

from benchmarks.bodies import MODELS, Format
from benchmarks.conversations import Assistant, Call

Json = dict[str, Any]
Chunks = tuple[bytes, ...]

_CHUNKS: Final = 1000


def chunks(answer: Assistant, format: Format, count: int = _CHUNKS) -> Chunks:
    """The events of a stream, each as its bytes. `count` of them carry JSON."""
    return tuple(_WRITERS[format](answer, count))


def payloads(stream: bytes, format: Format) -> Chunks:
    """The JSON of each event."""
    return tuple(_PAYLOADS.get(format, _data_lines)(stream))


def _data_lines(stream: bytes) -> Iterator[bytes]:
    for line in stream.splitlines():
        if line.startswith(b"data: ") and line != b"data: [DONE]":
            yield line.removeprefix(b"data: ")


def answer(stream: bytes, format: Format) -> Assistant:
    """The answer that a simple client collects from a stream."""
    return _READERS[format]([orjson.loads(payload) for payload in payloads(stream, format)])


def _pieces(text: str, count: int) -> list[str]:
    """Splits the text into `count` pieces of about the same length."""
    return [text[len(text) * index // count : len(text) * (index + 1) // count] for index in range(count)]


def _arguments(call: Call) -> str:
    return orjson.dumps(call.arguments).decode()


def _shared(calls: tuple[Call, ...], count: int) -> list[int]:
    """How many fragments each call gets."""
    return [count * (index + 1) // len(calls) - count * index // len(calls) for index in range(len(calls))]


# ── openai-chat ───────────────────────────────────────────────────────────────────────────────────────────────


def _openai(answer: Assistant, count: int) -> Iterator[bytes]:
    head = {
        "id": "chatcmpl-CkSq1fVhWZrH5bJ2n8TtLx0eYdUaP",
        "object": "chat.completion.chunk",
        "created": 1794700800,
        "model": "gpt-4.1-2025-04-14",
        "service_tier": "default",
        "system_fingerprint": "fp_51e1070cf2",
    }

    def chunk(delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _event({**head, "choices": [choice], "usage": None})

    left = count - 3 - len(answer.calls)
    texts = left // 2 if answer.calls else left
    yield chunk({"role": "assistant", "content": "", "refusal": None})
    for piece in _pieces(answer.text or "", texts):
        yield chunk({"content": piece})
    for index, call in enumerate(answer.calls):
        identity: Json = {"index": index, "id": f"call_{index:024}", "type": "function"}
        yield chunk({"tool_calls": [{**identity, "function": {"name": call.name, "arguments": ""}}]})
    fragments = [
        [(index, piece) for piece in _pieces(_arguments(call), share)]
        for index, (call, share) in enumerate(zip(answer.calls, _shared(answer.calls, left - texts), strict=True))
    ]
    for index, piece in (fragment for turn in zip_longest(*fragments) for fragment in turn if fragment is not None):
        yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls" if answer.calls else "stop")
    usage = {"prompt_tokens": 1204, "completion_tokens": 998, "total_tokens": 2202}
    yield _event({**head, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _event(payload: Json) -> bytes:
    return b"data: " + orjson.dumps(payload) + b"\n\n"


def _read_openai(events: list[Json]) -> Assistant:
    text: list[str] = []
    calls: dict[int, list[str]] = {}
    for choice in chain.from_iterable(event["choices"] for event in events):
        delta = choice["delta"]
        text.append(delta.get("content") or "")
        for fragment in delta.get("tool_calls") or ():
            function = fragment["function"]
            name = function.get("name")
            gathered = calls.setdefault(fragment["index"], [name or ""])
            gathered.append(function.get("arguments") or "")
    return _gathered(text, calls.values())


def _gathered(text: Iterable[str], calls: Iterable[list[str]]) -> Assistant:
    return Assistant("".join(text), tuple(Call(name, _object("".join(pieces))) for name, *pieces in calls))


def _object(text: str) -> Json:
    """Arguments of a call; fragments of other calls make invalid JSON, so the comparison fails."""
    try:
        parsed: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {"not JSON": text}
    return parsed


# ── anthropic-messages ────────────────────────────────────────────────────────────────────────────────────────


def _anthropic(answer: Assistant, count: int) -> Iterator[bytes]:
    left = count - 3 - 2 * (1 + len(answer.calls))
    texts = left // 2 if answer.calls else left
    message: Json = {
        "id": "msg_01Xk3dFvQ8mYpT5rWb2nHcJz",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1204, "output_tokens": 1},
    }
    yield _named({"type": "message_start", "message": message})
    yield from _block(0, {"type": "text", "text": ""}, "text_delta", "text", _pieces(answer.text or "", texts))
    shares = _shared(answer.calls, left - texts)
    for index, (call, share) in enumerate(zip(answer.calls, shares, strict=True), 1):
        start: Json = {"type": "tool_use", "id": f"toolu_{index:024}", "name": call.name, "input": {}}
        yield from _block(index, start, "input_json_delta", "partial_json", _pieces(_arguments(call), share))
    stop = "tool_use" if answer.calls else "end_turn"
    usage = {"output_tokens": 998}
    yield _named({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage})
    yield _named({"type": "message_stop"})


def _block(index: int, start: Json, kind: str, key: str, pieces: list[str]) -> Iterator[bytes]:
    yield _named({"type": "content_block_start", "index": index, "content_block": start})
    for piece in pieces:
        yield _named({"type": "content_block_delta", "index": index, "delta": {"type": kind, key: piece}})
    yield _named({"type": "content_block_stop", "index": index})


def _named(payload: Json) -> bytes:
    return f"event: {payload['type']}\n".encode() + _event(payload)


def _read_anthropic(events: list[Json]) -> Assistant:
    text: list[str] = []
    calls: dict[int, list[str]] = {}
    for event in events:
        if event["type"] == "content_block_start" and event["content_block"]["type"] == "tool_use":
            calls[event["index"]] = [event["content_block"]["name"]]
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            if delta["type"] == "text_delta":
                text.append(delta["text"])
            elif delta["type"] == "input_json_delta":
                calls[event["index"]].append(delta["partial_json"])
    return _gathered(text, calls.values())


# ── gemini ────────────────────────────────────────────────────────────────────────────────────────────────────


def _gemini(answer: Assistant, count: int) -> Iterator[bytes]:
    parts: list[Json] = [{"text": piece} for piece in _pieces(answer.text or "", count - len(answer.calls))]
    for index, call in enumerate(answer.calls):
        place = count * (index + 1) // (len(answer.calls) + 1)
        parts.insert(place, {"functionCall": {"id": f"call{index:04}", "name": call.name, "args": call.arguments}})
    for number, part in enumerate(parts, 1):
        candidate: Json = {"content": {"parts": [part], "role": "model"}, "index": 0}
        if number == len(parts):
            candidate["finishReason"] = "STOP"
        payload = {
            "candidates": [candidate],
            "usageMetadata": {
                "promptTokenCount": 1204,
                "candidatesTokenCount": number,
                "totalTokenCount": 1204 + number,
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 1204}],
            },
            "modelVersion": MODELS["gemini"],
            "responseId": "q1kXaZ7vFc2rnsEPx9WbgAo",
        }
        yield b"data: " + orjson.dumps(payload) + b"\r\n\r\n"


def _read_gemini(events: list[Json]) -> Assistant:
    contents = (candidate.get("content", {}) for event in events for candidate in event.get("candidates", ()))
    parts = [part for content in contents for part in content.get("parts", ())]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    return Assistant(
        "".join(part.get("text", "") for part in parts),
        tuple(Call(call["name"], call.get("args", {})) for call in calls),
    )


# ── openai-responses ──────────────────────────────────────────────────────────────────────────────────────────


class _Responses:
    """Numbers and pads the events, as the server does."""

    def __init__(self) -> None:
        self._number = 0

    def event(self, kind: str, **fields: Any) -> bytes:
        payload = {"type": f"response.{kind}", **fields, "sequence_number": self._number}
        self._number += 1
        return _named(payload)

    def fragment(self, kind: str, piece: str, item: str, **fields: Any) -> bytes:
        padding = _PADDING[self._number * 7 % 16 :][: 16 - len(piece) % 16]
        return self.event(f"{kind}.delta", delta=piece, item_id=item, obfuscation=padding, **fields)


def _responses(answer: Assistant, count: int) -> Iterator[bytes]:
    wire = _Responses()
    response: Json = {
        "id": "resp_04541b2f7e2fe47a0069689dd09ce081979fa443640dd593dc",
        "object": "response",
        "created_at": 1794700800,
        "status": "in_progress",
        "model": "gpt-4.1-2025-04-14",
        "output": [],
        "usage": None,
    }
    left = count - 3 - 5 - 3 * len(answer.calls)
    texts = left // 2 if answer.calls else left
    yield wire.event("created", response=response)
    yield wire.event("in_progress", response=response)
    place: Json = {"output_index": 0, "content_index": 0}
    content: Json = {"type": "output_text", "annotations": [], "logprobs": [], "text": answer.text}
    message: Json = {"id": "msg_04541b2f7e2fe47a0069689dd11b9c81978315ade5df8d941f", "type": "message"}
    message |= {"status": "completed", "role": "assistant", "content": [content]}
    item = message["id"]
    opened = {**message, "status": "in_progress", "content": []}
    yield wire.event("output_item.added", item=opened, output_index=0)
    yield wire.event("content_part.added", **place, item_id=item, part={**content, "text": ""})
    for piece in _pieces(answer.text or "", texts):
        yield wire.fragment("output_text", piece, item, **place, logprobs=[])
    yield wire.event("output_text.done", **place, item_id=item, logprobs=[], text=answer.text)
    yield wire.event("content_part.done", **place, item_id=item, part=content)
    yield wire.event("output_item.done", item=message, output_index=0)
    items = [message]
    for index, (call, share) in enumerate(zip(answer.calls, _shared(answer.calls, left - texts), strict=True), 1):
        called: Json = {"id": f"fc_{index:050}", "type": "function_call", "status": "completed"}
        called |= {"arguments": _arguments(call), "call_id": f"call_{index:024}", "name": call.name}
        items.append(called)
        opened = {**called, "status": "in_progress", "arguments": ""}
        yield wire.event("output_item.added", item=opened, output_index=index)
        for piece in _pieces(_arguments(call), share):
            yield wire.fragment("function_call_arguments", piece, called["id"], output_index=index)
        whole = {"arguments": called["arguments"], "item_id": called["id"], "output_index": index}
        yield wire.event("function_call_arguments.done", **whole)
        yield wire.event("output_item.done", item=called, output_index=index)
    usage: Json = {"input_tokens": 1204, "input_tokens_details": {"cached_tokens": 0}}
    usage |= {"output_tokens": 998, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2202}
    yield wire.event("completed", response={**response, "status": "completed", "output": items, "usage": usage})


def _read_responses(events: list[Json]) -> Assistant:
    text: list[str] = []
    calls: dict[str, list[str]] = {}
    for event in events:
        if event["type"] == "response.output_text.delta":
            text.append(event["delta"])
        elif event["type"] == "response.output_item.added" and event["item"]["type"] == "function_call":
            calls[event["item"]["id"]] = [event["item"]["name"]]
        elif event["type"] == "response.function_call_arguments.delta":
            calls[event["item_id"]].append(event["delta"])
    return _gathered(text, calls.values())


# ── ollama-chat ───────────────────────────────────────────────────────────────────────────────────────────────


def _ollama(answer: Assistant, count: int) -> Iterator[bytes]:
    """One JSON line per event. Calls come whole, one line each, after the text."""

    def line(number: int, message: Json, **further: Any) -> bytes:
        moment = f"2026-11-15T08:00:{number // 100:02}.{number % 100:02}4512Z"
        head = {"model": MODELS["ollama-chat"], "created_at": moment}
        body: Json = {**head, "message": {"role": "assistant", **message}, "done": False, **further}
        return orjson.dumps(body) + b"\n"

    texts = count - 1 - len(answer.calls)
    for number, piece in enumerate(_pieces(answer.text or "", texts)):
        yield line(number, {"content": piece})
    for index, call in enumerate(answer.calls):
        function = {"index": index, "name": call.name, "arguments": call.arguments}
        yield line(texts + index, {"content": "", "tool_calls": [{"id": f"call_{index:08}", "function": function}]})
    counts = {
        "prompt_eval_count": 1204,
        "prompt_eval_duration": 710671250,
        "eval_count": 998,
        "eval_duration": 4466025455,
    }
    times = {"total_duration": 5645304708, "load_duration": 55095250}
    yield line(count - 1, {"content": ""}, done=True, done_reason="stop", **times, **counts)


def _lines(stream: bytes) -> list[bytes]:
    return stream.splitlines()


def _read_ollama(events: list[Json]) -> Assistant:
    messages = [event["message"] for event in events]
    functions = [call["function"] for message in messages for call in message.get("tool_calls") or ()]
    text = "".join(message.get("content") or "" for message in messages)
    return Assistant(text, tuple(Call(function["name"], function["arguments"]) for function in functions))


# ── bedrock-converse ──────────────────────────────────────────────────────────────────────────────────────────

_PADDING: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def _converse(answer: Assistant, count: int) -> Iterator[bytes]:
    left = count - 4 - 2 * len(answer.calls)
    texts = left // 2 if answer.calls else left
    numbers = iter(range(count))

    def padded(kind: str, **fields: Any) -> bytes:
        # Padding that hides the length of a text.
        padding = _PADDING[: next(numbers) * 37 % len(_PADDING)]
        return frame(kind, orjson.dumps({**fields, "p": padding}))

    yield padded("messageStart", role="assistant")
    for piece in _pieces(answer.text or "", texts):
        yield padded("contentBlockDelta", contentBlockIndex=0, delta={"text": piece})
    yield padded("contentBlockStop", contentBlockIndex=0)
    for index, (call, share) in enumerate(zip(answer.calls, _shared(answer.calls, left - texts), strict=True), 1):
        start = {"toolUse": {"name": call.name, "toolUseId": f"tooluse_{index:022}"}}
        yield padded("contentBlockStart", contentBlockIndex=index, start=start)
        for piece in _pieces(_arguments(call), share):
            yield padded("contentBlockDelta", contentBlockIndex=index, delta={"toolUse": {"input": piece}})
        yield padded("contentBlockStop", contentBlockIndex=index)
    yield padded("messageStop", stopReason="tool_use" if answer.calls else "end_turn")
    usage = {"inputTokens": 1204, "outputTokens": 998, "totalTokens": 2202}
    yield padded("metadata", metrics={"latencyMs": 1417}, usage=usage)


def frame(kind: str, payload: bytes) -> bytes:
    """Lengths and their CRC, headers, payload, the CRC of it all."""
    entries = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\7" + struct.pack(">H", len(value)) + value.encode()
        for name, value in entries.items()
    )
    lengths = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = lengths + struct.pack(">I", zlib.crc32(lengths)) + headers + payload
    return message + struct.pack(">I", zlib.crc32(message))


def _frames(stream: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(stream):
        length, headers = struct.unpack_from(">II", stream, start)
        yield stream[start + 12 + headers : start + length - 4]
        start += length


def _read_converse(events: list[Json]) -> Assistant:
    """Recognises events by the shape of their payload."""
    text: list[str] = []
    calls: dict[int, list[str]] = {}
    for event in events:
        if "start" in event:
            calls[event["contentBlockIndex"]] = [event["start"]["toolUse"]["name"]]
        delta = event.get("delta", {})
        text.append(delta.get("text", ""))
        if "toolUse" in delta:
            calls[event["contentBlockIndex"]].append(delta["toolUse"]["input"])
    return _gathered(text, calls.values())


_WRITERS: Final[dict[Format, Callable[[Assistant, int], Iterator[bytes]]]] = {
    "openai-chat": _openai,
    "anthropic-messages": _anthropic,
    "gemini": _gemini,
    "openai-responses": _responses,
    "ollama-chat": _ollama,
    "bedrock-converse": _converse,
}
_READERS: Final[dict[Format, Callable[[list[Json]], Assistant]]] = {
    "openai-chat": _read_openai,
    "anthropic-messages": _read_anthropic,
    "gemini": _read_gemini,
    "openai-responses": _read_responses,
    "ollama-chat": _read_ollama,
    "bedrock-converse": _read_converse,
}
_PAYLOADS: Final[dict[Format, Callable[[bytes], Iterable[bytes]]]] = {
    "ollama-chat": _lines,
    "bedrock-converse": _frames,
}
