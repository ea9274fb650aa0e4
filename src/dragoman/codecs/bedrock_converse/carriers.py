"""Things Converse has no field for, and the tagged reasoning blocks that carry them.

A client of this format echoes reasoning blocks untouched, so the `signature` of one is where data of other families
travels. The kinds: the block is reasoning of that family, readable or redacted; it is the signature of the block that
follows it, or, where a stream told it last, of the block before it; it is a text without any characters, signed. Such a
block is never sent to a provider unless it came in a request of this very format.
"""

from __future__ import annotations

from msgspec import UNSET, Raw
from msgspec.structs import replace

from dragoman.codecs.bedrock_converse.profile import FAMILY
from dragoman.codecs.bedrock_converse.wire import Block, ReasoningContent, ReasoningText
from dragoman.codecs.tags import is_tagged, read_tag, tagged
from dragoman.ir import AnyPart, Metadata, Reasoning, Signature, Text, ToolCall

TAGGED: Metadata = {FAMILY: {"~tagged": Raw(b"true")}}
"""On a part whose signature came in a tagged block: it goes back the same way."""
TAGGED_AFTER: Metadata = {FAMILY: {"~tagged": Raw(b'"after"')}}
"""The same, where the block stood behind its part."""

_READABLE = "reasoning"
_REDACTED = "redacted"
_NEXT = "next"
_PREVIOUS = "previous"
_EMPTY_TEXT = "text"


def reasoning_block(text: str, signature: str) -> Block:
    return Block(reasoning_content=ReasoningContent(ReasoningText(text, signature)))


def tagged_reasoning(part: Reasoning, signature: Signature) -> Block:
    """Reasoning of another family."""
    return reasoning_block(part.text, tagged(_REDACTED if part.redacted else _READABLE, signature))


def tagged_signature(part: AnyPart, signature: Signature) -> Block:
    """The signature of a part that has no slot for one. An empty text is told by it alone: clients drop it."""
    empty = type(part) is Text and not part.text
    return reasoning_block("", tagged(_EMPTY_TEXT if empty else _NEXT, signature))


def trailing_signature(signature: Signature) -> Block:
    """The signature of the part before it, for streams: there it may be known only when the part has been told."""
    return reasoning_block("", tagged(_PREVIOUS, signature))


def stands_behind(part: Text | ToolCall) -> bool:
    """Whether the tagged block of this part came behind it."""
    return part.metadata is not None and part.metadata.get(FAMILY, {}).get("~tagged") == TAGGED_AFTER[FAMILY]["~tagged"]


def carried(wire: ReasoningText) -> bool:
    return wire.signature is not UNSET and is_tagged(wire.signature) and wire.extra is UNSET


def read_trailing(wire: ReasoningText) -> Signature | None:
    """The signature that a tagged block behind its part carries; None for any other block."""
    found = read_tag(str(wire.signature)) if carried(wire) and not wire.text else None
    return found[1] if found is not None and found[0] == _PREVIOUS else None


def read_tagged(wire: ReasoningText) -> Reasoning | Text | Signature | None:
    """What a tagged block stands for; a bare `Signature` belongs to the next part. None: not one of ours after all."""
    found = read_tag(str(wire.signature)) if carried(wire) else None
    if found is None:
        return None
    kind, signature = found
    if kind in {_READABLE, _REDACTED}:
        return Reasoning(wire.text, signature, redacted=kind == _REDACTED, metadata=TAGGED)
    if wire.text:
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
