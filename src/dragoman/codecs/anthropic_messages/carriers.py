"""Things Messages has no field for, and the tagged thinking blocks that carry them.

A client of this format echoes thinking blocks untouched, so the `signature` of one is where data of other families
travels: dragoman:1:<kind>:<family>:<id>:<data>. The kinds: the block is reasoning of that family, readable or redacted;
it is reasoning that nobody signed; it is the signature of the block that follows it, or, where a stream told it last,
of the block before it; it is a text without any characters, signed. Such a block is never sent to a provider unless it
came in a request of this very format.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw
from msgspec.structs import replace

from dragoman.codecs.anthropic_messages.wire import ThinkingBlock
from dragoman.ir import AnyPart, Metadata, Reasoning, Signature, Text, ToolCall

FAMILY = "anthropic"

TAG = "dragoman:1:"
TAGGED: Metadata = {FAMILY: {"~tagged": Raw(b"true")}}
"""On a part whose signature came in a tagged block: it goes back the same way."""
TAGGED_AFTER: Metadata = {FAMILY: {"~tagged": Raw(b'"after"')}}
"""The same, where the block stood behind its part."""

_READABLE = "reasoning"
_REDACTED = "redacted"
_UNSIGNED = "unsigned"
_NEXT = "next"
_PREVIOUS = "previous"
_EMPTY_TEXT = "text"


def is_tagged(signature: Any) -> bool:
    return isinstance(signature, str) and signature.startswith(TAG)


def _tag(kind: str, signature: Signature | None) -> str:
    if signature is None:
        return f"{TAG}{kind}:::"
    item_id = "" if signature.id is None else f"={_escape(signature.id)}"
    return f"{TAG}{kind}:{_escape(signature.family)}:{item_id}:{signature.data}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace(":", "%3A")


def _unescape(text: str) -> str:
    return text.replace("%3A", ":").replace("%25", "%")


def tagged_reasoning(part: Reasoning) -> ThinkingBlock:
    """Reasoning of another family, or of a server that signs nothing."""
    kind = _UNSIGNED if part.signature is None else _REDACTED if part.redacted else _READABLE
    return ThinkingBlock(part.text, _tag(kind, part.signature))


def tagged_signature(part: AnyPart, signature: Signature) -> ThinkingBlock:
    """The signature of a part that has no slot for one. An empty text is told by it alone: clients drop it."""
    empty = type(part) is Text and not part.text
    return ThinkingBlock("", _tag(_EMPTY_TEXT if empty else _NEXT, signature))


def trailing_signature(signature: Signature) -> ThinkingBlock:
    """The signature of the part before it, for streams: there it may be known only when the part has been told."""
    return ThinkingBlock("", _tag(_PREVIOUS, signature))


def stands_behind(part: Text | ToolCall) -> bool:
    """Whether the tagged block of this part came behind it."""
    return part.metadata is not None and part.metadata.get(FAMILY, {}).get("~tagged") == TAGGED_AFTER[FAMILY]["~tagged"]


def _read_tag(block: ThinkingBlock) -> tuple[str, Signature]:
    """Kind and signature; an empty kind when it is not one of ours after all."""
    kind, _, rest = str(block.signature).removeprefix(TAG).partition(":")
    family, _, rest = rest.partition(":")
    item_id, _, data = rest.partition(":")
    signature = Signature(_unescape(family), data, _unescape(item_id[1:]) if item_id else None)
    ours = block.extra is UNSET and _tag(kind, None if kind == _UNSIGNED else signature) == block.signature
    return kind if ours else "", signature


def read_trailing(block: ThinkingBlock) -> Signature | None:
    """The signature that a tagged block behind its part carries; None for any other block."""
    if block.thinking or not is_tagged(block.signature):
        return None
    kind, signature = _read_tag(block)
    return signature if kind == _PREVIOUS else None


def read_tagged(block: ThinkingBlock) -> Reasoning | Text | Signature | None:
    """What a tagged block stands for; a bare `Signature` belongs to the next part. None: not one of ours after all."""
    kind, signature = _read_tag(block)
    if kind == _UNSIGNED:
        return Reasoning(block.thinking, metadata=TAGGED)
    if kind in {_READABLE, _REDACTED}:
        return Reasoning(block.thinking, signature, redacted=kind == _REDACTED, metadata=TAGGED)
    if block.thinking:
        return None
    if kind == _EMPTY_TEXT:
        return Text("", signature=signature, metadata=TAGGED)
    return signature if kind == _NEXT else None


def signed(part: AnyPart, signature: Signature, how: Metadata = TAGGED) -> AnyPart | None:
    """The part with its signature back; None when it cannot have had one."""
    if not isinstance(part, Text | ToolCall) or part.signature is not None or (type(part) is Text and not part.text):
        return None
    notes = (part.metadata or {}).get(FAMILY, {})
    return replace(part, signature=signature, metadata={**(part.metadata or {}), FAMILY: {**notes, **how[FAMILY]}})
