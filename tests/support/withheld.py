"""Answers with calls that must not be run: every finish reason of every format that blocks or cuts, also streamed."""

import json
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

import dragoman
from dragoman import ir
from dragoman.codecs.registry import folder_of
from tests.support.converse_streams import payloads, stream

UNKNOWN = "reason_of_tomorrow"
WITHHELD = {"content_filter": "blocked", "refusal": "blocked", "error": "failed", "unknown": "unknown", "length": "cut"}
FINISH_KEYS = {
    "openai-chat": "finish_reason",
    "anthropic-messages": "stop_reason",
    "gemini": "finishReason",
    "vertex": "finishReason",
    "bedrock-converse": "stopReason",
    "ollama-chat": "done_reason",
    "cohere-chat": "finish_reason",
    "gemini-interactions": "status",
}
# The Responses API has no finish reason: a status, and the reason of an early end.
RESPONSES = {
    ("incomplete", "content_filter"): "blocked",
    ("incomplete", "max_output_tokens"): "cut",
    ("incomplete", UNKNOWN): "unknown",
    ("incomplete", None): "unknown",
    ("failed", None): "failed",
    ("cancelled", None): "failed",
    (UNKNOWN, None): "unknown",
}


class Ending(NamedTuple):
    """One way in which a format says that calls must not be run."""

    source: str
    word: str
    reason: str
    status: str = ""

    def __str__(self) -> str:
        return "-".join(filter(None, (self.source, self.status, self.word)))


def _endings() -> Iterator[Ending]:
    for source in dragoman.formats():
        if source == "openai-responses":
            for (status, word), reason in RESPONSES.items():
                yield Ending(source, word or "", reason, status)
            continue
        words: dict[str, str] = import_module(f"dragoman.codecs.{folder_of(source)}.response")._DECODE_FINISH  # noqa: SLF001
        for word, reason in {**words, UNKNOWN: "unknown"}.items():
            if reason in WITHHELD:
                yield Ending(source, word, WITHHELD[reason])


ENDINGS = tuple(_endings())
FIRST = ir.ToolCall("call_1", "look", {"p": "/home"})
LAST = ir.ToolCall("call_2", "rm", {"p": "/"})
NOTHING = ir.ToolCall("call_2", "rm", {})


def answer(*calls: ir.ToolCall) -> ir.Completion:
    message = ir.Message("assistant", (ir.Text("I will."), *calls))
    return ir.Completion((message,), ir.Finish("tool_calls"), ir.Usage(3, 4), "answer_1", "m", 1)


def events(*calls: ir.ToolCall) -> list[ir.AnyEvent]:
    made: list[ir.AnyEvent] = [ir.StreamStart("answer_1", "m", 1), ir.PartStart(0, ir.Text("I will.")), ir.PartEnd(0)]
    for index, call in enumerate(calls, 1):
        made += [
            ir.PartStart(index, ir.ToolCall(call.id, call.name)),
            ir.PartDelta(index, json.dumps(call.arguments)),
            ir.PartEnd(index),
        ]
    return [*made, ir.UsageUpdate(ir.Usage(3, 4)), ir.Finished(ir.Finish("tool_calls"))]


def whole(ending: Ending, *calls: ir.ToolCall) -> bytes:
    """The answer as a body of the format, with this finish reason instead of the ordinary one."""
    body = json.loads(dragoman.encode_response(answer(*calls), ending.source).json())
    return json.dumps(_ended(body, ending)).encode()


def streamed(ending: Ending, *calls: ir.ToolCall) -> bytes:
    encoder = dragoman.StreamEncoder(ending.source)
    data = encoder.encode(events(*calls)) + encoder.close()
    if ending.source == "bedrock-converse":
        return stream(*((name, _ended(payload, ending)) for name, payload in payloads(data)))
    return b"\n".join(_ended_line(line, ending) for line in data.split(b"\n"))


def _ended_line(line: bytes, ending: Ending) -> bytes:
    start = line.find(b"{")
    if start < 0:
        return line.replace(b"response.completed", f"response.{ending.status}".encode()) if ending.status else line
    event = _ended(json.loads(line[start:]), ending)
    if ending.status and event.get("type") == "response.completed":
        event["type"] = f"response.{ending.status}" if ending.status in {"incomplete", "failed"} else event["type"]
    return line[:start] + json.dumps(event).encode()


def _ended(found: Any, ending: Ending) -> Any:
    """The body with the finish reason replaced, wherever it is."""
    if isinstance(found, list):
        return [_ended(one, ending) for one in found]
    if not isinstance(found, dict):
        return found
    if ending.status and found.get("object") == "response" and found.get("status") == "completed":
        details = {"reason": ending.word} if ending.word else None
        return {**found, "status": ending.status, "incomplete_details": details}
    key = FINISH_KEYS.get(ending.source)
    return {
        name: ending.word if name == key and value is not None else _ended(value, ending)
        for name, value in found.items()
    }
