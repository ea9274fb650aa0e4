"""Signatures in formats whose clients echo reasoning blocks untouched: tagged blocks carry what has no field.

The kinds: the block is reasoning of another family, readable or redacted; it is the signature of the block that follows
it, or, where a stream told it last, of the block before it; it is a text without any characters, signed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec.structs import replace

from dragoman.codecs.signature_tags import SIGNED, SIGNED_AFTER, read_tag, tagged
from dragoman.ir import AnyPart, Metadata, Reasoning, Signature, Text, ToolCall

_READABLE = "reasoning"
_REDACTED = "redacted"
_NEXT = "next"
_PREVIOUS = "previous"
_EMPTY_TEXT = "text"

Block = TypeVar("Block")


class SignatureBlocks(Generic[Block]):
    """The tagged blocks of one family, made of the text and the signature of a reasoning block."""

    def __init__(self, family: str, block: Callable[[str, str], Block]) -> None:
        self._family = family
        self._block = block
        self._before: Metadata = {family: SIGNED}
        self._after: Metadata = {family: SIGNED_AFTER}

    def tagged_reasoning(self, part: Reasoning, signature: Signature) -> Block:
        """Reasoning of another family."""
        return self._block(part.text, tagged(_REDACTED if part.redacted else _READABLE, signature))

    def tagged_signature(self, part: AnyPart, signature: Signature) -> Block:
        """The signature of a part that has no slot for one. An empty text is told by it alone: clients drop it."""
        empty = type(part) is Text and not part.text
        return self._block("", tagged(_EMPTY_TEXT if empty else _NEXT, signature))

    def trailing_signature(self, signature: Signature) -> Block:
        """The signature of the part before it, for streams: there it may be known only when the part has been told."""
        return self._block("", tagged(_PREVIOUS, signature))

    def stands_behind(self, part: Text | ToolCall) -> bool:
        """Whether the tagged block of this part came behind it."""
        notes = {} if part.metadata is None else part.metadata.get(self._family, {})
        return notes.get("~tagged") == SIGNED_AFTER["~tagged"]

    def read_trailing(self, text: str, tag: str) -> Signature | None:
        """The signature that a tagged block behind its part carries; None for any other block."""
        found = None if text else read_tag(tag)
        return found[1] if found is not None and found[0] == _PREVIOUS else None

    def read_tagged(self, text: str, tag: str) -> Reasoning | Text | Signature | None:
        """What a tagged block stands for; a bare `Signature` is the next part's. None: not one of ours after all."""
        found = read_tag(tag)
        if found is None:
            return None
        kind, signature = found
        if kind in {_READABLE, _REDACTED}:
            return Reasoning(text, signature, redacted=kind == _REDACTED, metadata=self._before)
        if text:
            return None
        if kind == _EMPTY_TEXT:
            return Text("", signature=signature, metadata=self._before)
        return signature if kind == _NEXT else None

    def signed(self, part: AnyPart, signature: Signature) -> AnyPart | None:
        """The part with its signature back; None when it cannot have had one."""
        return self._signed(part, signature, self._before)

    def sign_last(self, parts: list[AnyPart], signature: Signature | None) -> bool:
        """Whether it is the signature of the last of these parts, which then has it back."""
        signed = None if signature is None or not parts else self._signed(parts[-1], signature, self._after)
        if signed is None:
            return False
        parts[-1] = signed
        return True

    def _signed(self, part: AnyPart, signature: Signature, how: Metadata) -> AnyPart | None:
        if not isinstance(part, Text | ToolCall) or part.signature is not None:
            return None
        if type(part) is Text and not part.text:
            return None
        known = part.metadata or {}
        notes = {**known.get(self._family, {}), **how[self._family]}
        return replace(part, signature=signature, metadata={**known, self._family: notes})
