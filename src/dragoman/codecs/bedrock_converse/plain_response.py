"""Converse responses, the short way, both directions (see codecs/plain.py)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.bedrock_converse.plain_request import PlainUse
from dragoman.codecs.bedrock_converse.profile import FAMILY
from dragoman.codecs.bedrock_converse.response import encode_usage, usage_of
from dragoman.codecs.bedrock_converse.wire import (
    AnswerOut,
    MessageOut,
    ResponseOut,
    TextOut,
    ToolUseOut,
    UsageWire,
    UseOut,
)
from dragoman.codecs.ids import INVENTED_PREFIX
from dragoman.codecs.plain import PlainWire, is_object
from dragoman.codecs.reading import WireValue
from dragoman.ir import AnyPart, Completion, Finish, Message, Text, ToolCall
from dragoman.ir.messages import content_held
from dragoman.ir.parts import arguments_held
from dragoman.ir.values import encode_json

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class PlainBlock(PlainWire, frozen=True, rename="camel"):
    text: str | UnsetType = UNSET
    tool_use: PlainUse | UnsetType = UNSET


class PlainAnswer(PlainWire, frozen=True):
    role: Literal["assistant"]
    content: list[PlainBlock]


class PlainOutput(PlainWire, frozen=True):
    message: PlainAnswer


class PlainResponse(PlainWire, frozen=True, rename="camel"):
    output: PlainOutput
    stop_reason: Literal["end_turn", "tool_use", "max_tokens"]
    usage: Raw
    metrics: Raw


_read = msgspec.json.Decoder(PlainResponse).decode
_read_usage = msgspec.json.Decoder(UsageWire).decode
_STOP, _LENGTH, _CALLS = Finish("stop", "end_turn"), Finish("length", "max_tokens"), Finish("tool_calls", "tool_use")
_CALLS_AT_A_STOP = Finish("tool_calls", "end_turn")
_DECODE_FINISH = {"end_turn": _STOP, "max_tokens": _LENGTH, "tool_use": _CALLS}


def decode_plain_response(body: bytes) -> Completion | None:
    try:
        wire = _read(body)
        counts = _read_usage(wire.usage)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    blocks, metrics = wire.output.message.content, wire.metrics
    finish = _DECODE_FINISH[wire.stop_reason]
    if not blocks or not (body.isascii() or (bytes(wire.usage) + bytes(metrics)).isascii()):
        return None
    content: Any = blocks[0].text
    if len(blocks) > 1 or content is UNSET:
        content, called = _parts(blocks)
        if content is None or (called and finish is _LENGTH):
            return None
        if called and finish is _STOP:
            finish = _CALLS_AT_A_STOP
    elif blocks[0].tool_use is not UNSET:
        return None
    usage = usage_of(counts, wire.usage)
    metadata = {FAMILY: {"metrics": metrics}}
    return Completion((Message("assistant", content),), finish, usage, None, None, None, (), metadata)


def _parts(blocks: list[PlainBlock]) -> tuple[tuple[AnyPart, ...] | None, bool]:
    """The parts, and whether there are calls among them."""
    parts: list[AnyPart] = []
    called = False
    for block in blocks:
        text, use = block.text, block.tool_use
        if (text is UNSET) is (use is UNSET):
            return None, False
        if use is UNSET:
            parts.append(Text(text))  # type: ignore[arg-type]
            continue
        call_id, arguments = use.tool_use_id, use.input
        if not is_object(bytes(arguments)):
            return None, False
        called = True
        parts.append(ToolCall(call_id, use.name, arguments, None, False, call_id[:4] == INVENTED_PREFIX))  # noqa: FBT003
    return tuple(parts), called


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────

_FINISHES = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "end_turn"}
_NO_LATENCY = Raw(b'{"latencyMs":0}')


def encode_plain_response(completion: Completion) -> bytes | None:
    messages, finish, usage = completion.messages, completion.finish, completion.usage
    if len(messages) != 1 or finish is None or finish.stop_sequence is not None or usage is None:
        return None
    word = _FINISHES.get(finish.reason)
    if word is None or (completion.metadata is not None and FAMILY in completion.metadata):
        return None
    content: Any = content_held(messages[0])
    if type(content) is str:
        blocks: list[WireValue] | None = [TextOut(content)]
    else:
        blocks, called = _blocks(content)
        if blocks is None:
            return None
        if called and word == "end_turn":
            word = "tool_use"
    return encode_json(ResponseOut(AnswerOut(MessageOut("assistant", blocks)), word, encode_usage(usage), _NO_LATENCY))


def _blocks(parts: tuple[AnyPart, ...]) -> tuple[list[WireValue] | None, bool]:
    """The blocks, and whether there are calls among them."""
    blocks: list[WireValue] = []
    called = False
    for part in parts:
        if type(part) is Text:
            if (
                part.citations
                or part.signature is not None
                or part.cache is not None
                or (part.metadata is not None and FAMILY in part.metadata)
            ):
                return None, False
            blocks.append(TextOut(part.text))
        elif type(part) is ToolCall:
            held = arguments_held(part)
            if (
                type(held) is not Raw
                or part.signature is not None
                or part.cache is not None
                or part.custom
                or part.incomplete
                or (part.metadata is not None and FAMILY in part.metadata)
            ):
                return None, False
            called = True
            blocks.append(UseOut(ToolUseOut(part.id, part.name, held)))
        else:
            return None, False
    return blocks, called
