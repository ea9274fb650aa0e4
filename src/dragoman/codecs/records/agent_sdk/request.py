"""Histories of the agent SDK as requests, both ways."""

from __future__ import annotations

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.reading import WireReader
from dragoman.codecs.records.agent_sdk.messages import FAMILY, OPEN, STYLE, MessageDecoder, MessageEncoder
from dragoman.codecs.records.history import Document, History, Places, decode_history, encode_history
from dragoman.codecs.records.reading import CONTENT
from dragoman.codecs.records.roles import place_of
from dragoman.codecs.records.tools import ToolStyle
from dragoman.ir import Message, Reasoning, Refusal, Request
from dragoman.ir.messages import content_held
from dragoman.losses import LossLog

HISTORY = History(
    FAMILY,
    ToolStyle(FAMILY, complete=True, bare_choice=True),
    WireReader(Document, FAMILY),
    MessageDecoder,
    MessageEncoder,
)


def decode_request(body: bytes) -> Request:
    return decode_history(body, HISTORY)


def encode_request(request: Request, log: LossLog) -> Encoded:
    return encode_history(request, HISTORY, log)


# ── paths of losses ───────────────────────────────────────────────────────────────────────────────────────────


def _thoughts(message: Message) -> int:
    content = content_held(message)
    if type(content) is str or message.role != "assistant":
        return 0
    return sum([type(part) is Reasoning for part in content])


def _span(message: Message) -> int:
    thoughts = _thoughts(message)
    return thoughts if thoughts and OPEN in (message.metadata or {}).get(FAMILY, {}) else thoughts + 1


def place(message: Message, part_index: int, field: str) -> tuple[int, str]:
    """Reasoning stands in records of its own, before the message."""
    part = message.parts[part_index]
    notes = (getattr(part, "metadata", None) or {}).get(FAMILY, {})
    if isinstance(part, Reasoning):
        owed = field == "signature" and "~raw:raw_item" in notes
        return part_index, ".raw_item" if owed else f".{field}" if field.partition(".")[0] == "raw_item" else ""
    before = _thoughts(message)
    if isinstance(part, Refusal):
        return before, ".refusal"
    if message.role == "system" and CONTENT in (message.metadata or {}).get(FAMILY, {}):
        return 0, ".cache" if field == "cache" else ".content"
    _, within = place_of(message, part_index, field, STYLE)
    return before, within.replace(f".content[{part_index}]", f".content[{part_index - before}]")


request_paths = Places(HISTORY, _span, place).paths
