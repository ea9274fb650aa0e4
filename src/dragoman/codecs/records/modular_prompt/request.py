"""Histories of modular-prompt as requests, both ways."""

from __future__ import annotations

from functools import partial

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.reading import WireReader
from dragoman.codecs.records.history import History, Places, decode_history, encode_history
from dragoman.codecs.records.modular_prompt.messages import FAMILY, STYLE, MessageDecoder, MessageEncoder
from dragoman.codecs.records.modular_prompt.wire import Prompt
from dragoman.codecs.records.roles import count_records, place_of
from dragoman.codecs.records.tools import ToolStyle
from dragoman.ir import Message, Reasoning, Request
from dragoman.losses import LossLog

HISTORY = History(
    FAMILY,
    ToolStyle(FAMILY, choice_key="toolChoice"),
    WireReader(Prompt, FAMILY, aliases={"tool_choice": "toolChoice"}),
    MessageDecoder,
    MessageEncoder,
)


def decode_request(body: bytes) -> Request:
    return decode_history(body, HISTORY)


def encode_request(request: Request, log: LossLog) -> Encoded:
    return encode_history(request, HISTORY, log)


def place(message: Message, part_index: int, field: str) -> tuple[int, str]:
    """Reasoning stands in the metadata of its message, and shifts nothing else."""
    if isinstance(message.parts[part_index], Reasoning):
        return 0, ".metadata"
    before = sum(isinstance(part, Reasoning) for part in message.parts[:part_index])
    if not before:
        return place_of(message, part_index, field, STYLE)
    offset, within = place_of(message, part_index, field, STYLE)
    return offset, within.replace(f".content[{part_index}]", f".content[{part_index - before}]")


request_paths = Places(HISTORY, partial(count_records, style=STYLE), place).paths
