"""Tags: data of one family in a field that clients of another format return unchanged.

dragoman:1:<kind>:<family>:<id>:<data>. Each codec defines its kinds; `kind=<call id>` is about that call, wherever the
client put the tag.
"""

from __future__ import annotations

import binascii

from msgspec import Raw

from dragoman.ir import AnyPart, Signature, ToolCall
from dragoman.ir.notes import Extra

TAG = "dragoman:1:"

SIGNED: Extra = {"~tagged": Raw(b"true")}
"""On a part whose signature came in a tagged block: it is sent back the same way."""
SIGNED_AFTER: Extra = {"~tagged": Raw(b'"after"')}
"""The same, if the block came after its part."""
BOUND: Extra = {"~tagged": Raw(b'"bound"')}
BOUND_AFTER: Extra = {"~tagged": Raw(b'"bound after"')}
"""The same two, if the tag names its call."""


def is_tagged(text: object) -> bool:
    return isinstance(text, str) and text.startswith(TAG)


def make_tag(kind: str, signature: Signature | None) -> str:
    if signature is None:
        return f"{TAG}{kind}:::"
    item_id = "" if signature.id is None else f"={_escape(signature.id)}"
    return f"{TAG}{kind}:{_escape(signature.family)}:{item_id}:{signature.data}"


def read_tag(text: str) -> tuple[str, Signature] | None:
    """Return kind and signature; None if the text only looks like a tag."""
    kind, _, rest = text.removeprefix(TAG).partition(":")
    family, _, rest = rest.partition(":")
    item_id, _, data = rest.partition(":")
    signature = Signature(_unescape(family), data, _unescape(item_id[1:]) if item_id else None)
    return (kind, signature) if make_tag(kind, signature) == text else None


_IN_BASE64 = "ZHJhZ29tYW46MT"
"""Prefix of every tag in base64."""


def in_base64(tag: str) -> str:
    """Encode a tag for a field that must hold base64."""
    return binascii.b2a_base64(tag.encode(), newline=False).decode()


def from_base64(text: str) -> str | None:
    """Decode the tag; None for a provider's own value."""
    if not text.startswith(_IN_BASE64):
        return None
    try:
        tag = binascii.a2b_base64(text + "=" * (-len(text) % 4)).decode()
    except ValueError:
        return None
    return tag if tag.startswith(TAG) else None


def bind_to_call(kind: str, call_id: str) -> str:
    """Return a kind that names the call it is about: clients may move blocks, but keep ids."""
    return f"{kind}={_escape(call_id)}"


def bound_call(tag: object) -> str | None:
    """Return the id of the call that a tag is about; None for other tags and other texts."""
    if not isinstance(tag, str) or not tag.startswith(TAG):
        return None
    _, is_bound, call_id = tag[len(TAG) :].partition(":")[0].partition("=")
    return _unescape(call_id) if is_bound else None


def is_about(tag: str, part: AnyPart) -> bool:
    """Whether a tag may be about a part: one that names a call is about that call only."""
    call_id = bound_call(tag)
    return call_id is None or (isinstance(part, ToolCall) and part.id == call_id)


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace(":", "%3A")


def _unescape(text: str) -> str:
    return text.replace("%3A", ":").replace("%25", "%")
