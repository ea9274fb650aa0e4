"""Messages streams for tests: written by hand, folded into the message they stand for, and held to the protocol.

Nothing here uses the code under test: the meaning of a stream, and what a strict client accepts, is implemented a
second time.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

Json = dict[str, Any]

USAGE: Json = {"input_tokens": 9, "output_tokens": 1}


def message(**fields: Any) -> Json:
    """An empty message, as `message_start` has it."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": USAGE,
    } | fields


def started(**fields: Any) -> Json:
    return {"type": "message_start", "message": message(**fields)}


def start(index: int, **block: Any) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: Any) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> Json:
    return {"type": "content_block_stop", "index": index}


def ended(reason: str | None = "end_turn", usage: Json | None = None, **fields: Any) -> list[Json]:
    ending = {"stop_reason": reason, "stop_sequence": None} | fields
    return [
        {"type": "message_delta", "delta": ending, "usage": usage or {"output_tokens": 5}},
        {"type": "message_stop"},
    ]


def text(index: int, *fragments: str) -> list[Json]:
    pieces = [delta(index, "text_delta", text=fragment) for fragment in fragments]
    return [start(index, type="text", text=""), *pieces, stop(index)]


def thinking(index: int, *fragments: str, signature: str | None = "c2ln") -> list[Json]:
    pieces = [delta(index, "thinking_delta", thinking=fragment) for fragment in fragments]
    if signature is not None:
        pieces.append(delta(index, "signature_delta", signature=signature))
    return [start(index, type="thinking", thinking="", signature=""), *pieces, stop(index)]


def call(index: int, call_id: str, *fragments: str, name: str = "f", **fields: Any) -> list[Json]:
    pieces = [delta(index, "input_json_delta", partial_json=fragment) for fragment in fragments]
    opening = {"type": "tool_use", "id": call_id, "name": name, "input": {}} | fields
    return [start(index, **opening), *pieces, stop(index)]


def sse(events: Iterable[Json]) -> bytes:
    return b"".join(frames(events))


def frames(events: Iterable[Json]) -> list[bytes]:
    return [b"event: " + event["type"].encode() + b"\ndata: " + compact(event) + b"\n\n" for event in events]


def compact(event: Json) -> bytes:
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode()


def payloads(body: bytes) -> Iterator[Json]:
    """Read the events of a well-formed stream; the name of each must be the type in its data."""
    for frame in body.decode().replace("\r\n", "\n").split("\n\n"):
        lines = [line for line in frame.split("\n") if line and not line.startswith(":")]
        if not lines or lines[-1] == "data: [DONE]":
            continue
        fields = dict(line.split(": ", 1) for line in lines)
        assert len(lines) == len(fields), frame
        event = json.loads(fields["data"])
        assert fields.get("event", event["type"]) == event["type"], frame
        yield event


def folded(events: Iterable[Json]) -> Json:
    """The message that would have come without a stream. Input that is not JSON stays text."""
    whole: Json = {}
    inputs: dict[int, str] = {}
    blocks: dict[int, Json] = {}
    for event in events:
        match event["type"]:
            case "message_start":
                whole = json.loads(json.dumps(event["message"]))
            case "content_block_start":
                blocks[event["index"]] = json.loads(json.dumps(event["content_block"]))
            case "content_block_delta":
                _fold_delta(blocks[event["index"]], event["delta"], inputs, event["index"])
            case "message_delta":
                _fold_ending(whole, event)
    for index, buffer in inputs.items():
        if buffer:
            blocks[index]["input"] = _parsed(buffer)
    whole["content"] = whole.get("content", []) + list(blocks.values())
    return whole


def _fold_delta(block: Json, given: Json, inputs: dict[int, str], index: int) -> None:
    match given["type"]:
        case "text_delta":
            block["text"] += given["text"]
        case "thinking_delta":
            block["thinking"] += given["thinking"]
        case "signature_delta":
            block["signature"] = given["signature"]
        case "citations_delta":
            block["citations"] = [*(block.get("citations") or []), given["citation"]]
        case "input_json_delta":
            inputs[index] = inputs.get(index, "") + given["partial_json"]
        case _:
            block.update({key: value for key, value in given.items() if key != "type"})


def _fold_ending(whole: Json, event: Json) -> None:
    for key, value in event["delta"].items():
        if value is not None or key not in whole:
            whole[key] = value
    for key, value in (event.get("usage") or {}).items():
        if value is not None or key not in whole["usage"]:
            whole["usage"][key] = value
    whole.update({key: value for key, value in event.items() if key not in {"type", "delta", "usage"}})


def _parsed(buffer: str) -> Any:
    try:
        return json.loads(buffer)
    except ValueError:
        return buffer


DELTAS_OF = {
    "text": {"text_delta", "citations_delta"},
    "thinking": {"thinking_delta", "signature_delta"},
    "tool_use": {"input_json_delta"},
    "server_tool_use": {"input_json_delta"},
    "mcp_tool_use": {"input_json_delta"},
}


class StrictClient:
    """Keeps the one block that may be open, and notes what does not follow."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._open: Json | None = None
        self._signed = False
        self._count = 0

    def see(self, event: Json) -> None:
        match event["type"]:
            case "content_block_start":
                self._start(event)
            case "content_block_delta":
                self._delta(event)
            case "content_block_stop":
                self._expect_open(event)
                self._open = None
            case "message_delta" | "message_stop":
                if self._open is not None:
                    self.faults.append(f"{event['type']} while a {self._open['type']} block is open")
            case "ping" | "error":
                pass
            case other:
                self.faults.append(f"{other} in the middle")

    def _start(self, event: Json) -> None:
        if self._open is not None or event["index"] != self._count:
            self.faults.append(f"block {event['index']} starts, {self._count} is next, {self._open} is open")
        self._open, self._signed = event["content_block"], False
        self._count += 1

    def _expect_open(self, event: Json) -> Json:
        if self._open is None or event["index"] != self._count - 1:
            self.faults.append(f"{event['type']} of block {event['index']}, which is not open")
        return self._open or {"type": "?"}

    def _delta(self, event: Json) -> None:
        block, kind = self._expect_open(event)["type"], event["delta"]["type"]
        if kind not in DELTAS_OF.get(block, ()) or self._signed:
            self.faults.append(f"{kind} in a {block} block{' after its signature' if self._signed else ''}")
        self._signed = kind == "signature_delta"


def faults(body: bytes) -> list[str]:
    """What a strict client of this protocol would refuse. An `error` event may end a stream anywhere."""
    events = list(payloads(body))
    names = [event["type"] for event in events]
    client = StrictClient()
    for event in events[1:]:
        client.see(event)
    if names[-1:] == ["error"]:
        return client.faults
    if names[:1] != ["message_start"]:
        client.faults.append(f"begins with {names[:1]}")
    if names[-2:] != ["message_delta", "message_stop"]:
        client.faults.append(f"ends with {names[-2:]}")
    return client.faults
