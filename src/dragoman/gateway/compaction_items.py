"""Compaction items that this gateway makes for upstreams that cannot compact: a tag, then a summary in base64.

The item is opaque to clients, like OpenAI's. When a client sends it back, it becomes a message that any model can read.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec
from msgspec import Raw, Struct

_TAG = "dgm-compaction.1:"
_TAG_BYTES = _TAG.encode()
_encode = msgspec.json.encode
_INTRODUCTION = (
    "The conversation before this point was replaced by a summary. Continue from it as if you had seen the whole "
    "conversation.\n\n"
)


class _Item(Struct):
    type: str | None = None
    encrypted_content: str | None = None


_read = msgspec.json.Decoder(_Item).decode


def compaction_item(id: str, summary: str) -> dict[str, str]:
    return {"id": id, "type": "compaction", "encrypted_content": _TAG + urlsafe_b64encode(summary.encode()).decode()}


def has_own_compaction(body: bytes) -> bool:
    return _TAG_BYTES in body


def expand_compaction(item: Raw) -> Raw:
    """Turn a compaction item of this gateway into a message with the summary; return other items unchanged."""
    if _TAG_BYTES not in bytes(item):
        return item
    read = _read(item)
    if read.type != "compaction" or read.encrypted_content is None or not read.encrypted_content.startswith(_TAG):
        return item
    try:
        summary = urlsafe_b64decode(read.encrypted_content[len(_TAG) :]).decode()
    except ValueError:  # also raised for bytes that are not UTF-8
        return item
    content = [{"type": "input_text", "text": _INTRODUCTION + summary}]
    return Raw(_encode({"type": "message", "role": "user", "content": content}))
