"""Messages responses, the short way, both directions (see codecs/plain.py)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.anthropic_messages.caching import FAMILY, NULL
from dragoman.codecs.anthropic_messages.messages import DIRECT, DIRECT_CALLER
from dragoman.codecs.anthropic_messages.plain_request import PlainText
from dragoman.codecs.anthropic_messages.response import decode_finish, encode_usage, message_id, usage_of
from dragoman.codecs.anthropic_messages.wire import MessageResponse, TextBlock, ToolUseBlock, UsageWire
from dragoman.codecs.ids import INVENTED_PREFIX
from dragoman.codecs.plain import PlainWire, is_object
from dragoman.codecs.reading import MaybeStr, WireValue
from dragoman.ir import AnyPart, Completion, Message, Text, ToolCall
from dragoman.ir.messages import content_held
from dragoman.ir.parts import arguments_held
from dragoman.ir.values import encode_json

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class PlainUse(PlainWire, frozen=True, tag="tool_use"):
    """Unlike the calls of a request, these usually tell who called."""

    id: str
    name: str
    input: Raw
    caller: Raw | UnsetType = UNSET


class PlainResponse(PlainWire, frozen=True):
    content: list[PlainText | PlainUse]
    type: Literal["message"]
    role: Literal["assistant"]
    stop_reason: Literal["end_turn", "tool_use", "max_tokens"]
    stop_sequence: None
    usage: Raw
    id: MaybeStr = None
    model: MaybeStr = None
    stop_details: Raw | UnsetType = UNSET


_read = msgspec.json.Decoder(PlainResponse).decode
_read_usage = msgspec.json.Decoder(UsageWire).decode


def decode_plain_response(body: bytes) -> Completion | None:
    try:
        wire = _read(body)
        counts = _read_usage(wire.usage)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    parts: list[AnyPart] = []
    for block in wire.content:
        if isinstance(block, PlainText):
            parts.append(Text(block.text))
            continue
        call_id, caller = block.id, block.caller
        if not is_object(bytes(block.input)) or (caller is not UNSET and bytes(caller) != DIRECT_CALLER):
            return None
        invented = call_id[:4] == INVENTED_PREFIX
        metadata = None if caller is UNSET else DIRECT
        parts.append(ToolCall(call_id, block.name, block.input, None, False, invented, metadata=metadata))  # noqa: FBT003
    if wire.stop_reason == "max_tokens" and parts and type(parts[-1]) is ToolCall:
        return None
    return Completion(
        (Message("assistant", tuple(parts)),),
        decode_finish(wire.stop_reason, parts, None, wire.stop_details),
        usage_of(counts, {FAMILY: {"~usage": wire.usage}}),
        wire.id,
        wire.model,
        metadata={FAMILY: {}},
    )


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────

_FINISHES = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "end_turn"}


def encode_plain_response(completion: Completion) -> bytes | None:
    messages, finish, usage = completion.messages, completion.finish, completion.usage
    if len(messages) != 1 or finish is None or finish.stop_sequence is not None or usage is None:
        return None
    word = _FINISHES.get(finish.reason)
    if (
        word is None
        or (completion.metadata is not None and FAMILY in completion.metadata)
        or (usage.metadata is not None and FAMILY in usage.metadata)
    ):
        return None
    blocks = _blocks(messages[0])
    if blocks is None:
        return None
    if blocks and type(blocks[-1]) is ToolUseBlock and finish.reason != "length":
        word = "tool_use"
    wire = MessageResponse(
        blocks,
        message_id(completion.id),
        "message",
        "assistant",
        completion.model or "",
        word,
        None,
        NULL,
        encode_usage(usage),
    )
    return encode_json(wire)


def _blocks(message: Message) -> list[WireValue] | None:
    """Text, then calls."""
    content: Any = content_held(message)
    if type(content) is str:
        return [TextBlock(content)] if content else []
    blocks: list[WireValue] = []
    called = False
    for part in content:
        if type(part) is Text and not called:
            if (
                part.citations
                or part.signature is not None
                or part.cache is not None
                or (part.metadata is not None and FAMILY in part.metadata)
            ):
                return None
            blocks.append(TextBlock(part.text))
        elif type(part) is ToolCall:
            held = arguments_held(part)
            if (
                type(held) is not Raw
                or part.incomplete
                or part.signature is not None
                or part.cache is not None
                or (part.metadata is not None and FAMILY in part.metadata)
            ):
                return None
            called = True
            blocks.append(ToolUseBlock(part.id, part.name, held))
        else:
            return None
    return blocks
