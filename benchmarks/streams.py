"""Writes an answer as the stream of each wire format, one chunk per event, and reads such a stream back.

Written here by hand and not with dragoman, as in bodies.py. What one wire interleaves, another one cannot: OpenAI sends
the fragments of parallel calls in turns, Anthropic one block after the other, Gemini whole calls amid the text.
"""

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


def payloads(stream: Iterable[bytes]) -> Chunks:
    """The JSON of each event."""
    lines = (line for chunk in stream for line in chunk.splitlines())
    found = (line.removeprefix(b"data: ") for line in lines if line.startswith(b"data: "))
    return tuple(payload for payload in found if payload != b"[DONE]")


def answer(stream: bytes, format: Format) -> Assistant:
    """What a client gathers from a stream, in the plainest way."""
    return _READERS[format]([orjson.loads(payload) for payload in payloads([stream])])


def _pieces(text: str, count: int) -> list[str]:
    """The text in so many pieces of about the same length."""
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
    """Fragments that went to the wrong call do not add up to JSON; the call then equals no other."""
    try:
        held: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {"not JSON": text}
    return held


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


_WRITERS: Final[dict[Format, Callable[[Assistant, int], Iterator[bytes]]]] = {
    "openai-chat": _openai,
    "anthropic-messages": _anthropic,
    "gemini": _gemini,
}
_READERS: Final[dict[Format, Callable[[list[Json]], Assistant]]] = {
    "openai-chat": _read_openai,
    "anthropic-messages": _read_anthropic,
    "gemini": _read_gemini,
}
