"""Tagged thinking blocks, which carry what Messages has no field for.

Data of other families travels in the `signature` of a thinking block (codecs/signature_blocks.py); this format adds
one more kind: unsigned reasoning. Such a block is never sent to a provider unless it came in a request of this same
format.
"""

from __future__ import annotations

from msgspec import UNSET

from dragoman.codecs.anthropic_messages.wire import ThinkingBlock
from dragoman.codecs.signature_blocks import SignatureBlocks
from dragoman.codecs.signature_tags import SIGNED, is_tagged, make_tag
from dragoman.ir import Metadata, Reasoning, Signature, Text

__all__ = [
    "FAMILY",
    "is_tagged",
    "read_tagged",
    "read_trailing",
    "sign_last",
    "signed",
    "stands_behind",
    "tagged_reasoning",
    "tagged_signature",
    "trailing_signature",
]

FAMILY = "anthropic"

_TAGGED: Metadata = {FAMILY: SIGNED}
_UNSIGNED = make_tag("unsigned", None)

_blocks: SignatureBlocks[ThinkingBlock] = SignatureBlocks(FAMILY, ThinkingBlock)
tagged_signature = _blocks.tagged_signature
trailing_signature = _blocks.trailing_signature
stands_behind = _blocks.stands_behind
signed = _blocks.signed
sign_last = _blocks.sign_last


def tagged_reasoning(part: Reasoning) -> ThinkingBlock:
    """Return the block for reasoning of another family, or of a server that signs nothing."""
    if part.signature is None:
        return ThinkingBlock(part.text, _UNSIGNED)
    return _blocks.tagged_reasoning(part, part.signature)


def read_trailing(block: ThinkingBlock) -> Signature | None:
    return None if block.extra is not UNSET else _blocks.read_trailing(block.thinking, str(block.signature))


def read_tagged(block: ThinkingBlock) -> Reasoning | Text | Signature | None:
    if block.extra is not UNSET:
        return None
    if block.signature == _UNSIGNED:
        return Reasoning(block.thinking, metadata=_TAGGED)
    return _blocks.read_tagged(block.thinking, str(block.signature))
