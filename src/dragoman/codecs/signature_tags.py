"""Tags: how data of one family travels in a slot that a client of another format echoes untouched.

dragoman:1:<kind>:<family>:<id>:<data>. Who carries what under which kind is the codec's own business.
"""

from __future__ import annotations

from msgspec import Raw

from dragoman.ir import Signature
from dragoman.ir.notes import Extra

TAG = "dragoman:1:"

SIGNED: Extra = {"~tagged": Raw(b"true")}
"""On a part whose signature came in a tagged block: it goes back the same way."""
SIGNED_AFTER: Extra = {"~tagged": Raw(b'"after"')}
"""The same, where the block stood behind its part."""


def is_tagged(text: object) -> bool:
    return isinstance(text, str) and text.startswith(TAG)


def tagged(kind: str, signature: Signature | None) -> str:
    if signature is None:
        return f"{TAG}{kind}:::"
    item_id = "" if signature.id is None else f"={_escape(signature.id)}"
    return f"{TAG}{kind}:{_escape(signature.family)}:{item_id}:{signature.data}"


def read_tag(text: str) -> tuple[str, Signature] | None:
    """Kind and signature; None when the text only looks like a tag."""
    kind, _, rest = text.removeprefix(TAG).partition(":")
    family, _, rest = rest.partition(":")
    item_id, _, data = rest.partition(":")
    signature = Signature(_unescape(family), data, _unescape(item_id[1:]) if item_id else None)
    return (kind, signature) if tagged(kind, signature) == text else None


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace(":", "%3A")


def _unescape(text: str) -> str:
    return text.replace("%3A", ":").replace("%25", "%")
