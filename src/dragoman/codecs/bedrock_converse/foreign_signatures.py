"""Content that Converse has no field for, and the tagged reasoning blocks that carry it.

The `signature` of a reasoning block carries data of other families (codecs/signature_blocks.py). Such a block is
never sent to a provider unless it came in a request of this format.
"""

from __future__ import annotations

from msgspec import UNSET

from dragoman.codecs.bedrock_converse.profile import FAMILY
from dragoman.codecs.bedrock_converse.wire import Block, ReasoningContent, ReasoningText
from dragoman.codecs.signature_blocks import SignatureBlocks
from dragoman.codecs.signature_tags import is_tagged
from dragoman.ir import Reasoning, Signature, Text


def _reasoning_block(text: str, signature: str) -> Block:
    return Block(reasoning_content=ReasoningContent(ReasoningText(text, signature)))


_blocks = SignatureBlocks(FAMILY, _reasoning_block)
tagged_reasoning = _blocks.tagged_reasoning
tagged_signature = _blocks.tagged_signature
trailing_signature = _blocks.trailing_signature
stands_behind = _blocks.stands_behind
signed = _blocks.signed
sign_last = _blocks.sign_last


def is_carrier(wire: ReasoningText) -> bool:
    return wire.signature is not UNSET and is_tagged(wire.signature) and wire.extra is UNSET


def read_trailing(wire: ReasoningText) -> Signature | None:
    return _blocks.read_trailing(wire.text, str(wire.signature)) if is_carrier(wire) else None


def read_tagged(wire: ReasoningText) -> Reasoning | Text | Signature | None:
    return _blocks.read_tagged(wire.text, str(wire.signature)) if is_carrier(wire) else None
