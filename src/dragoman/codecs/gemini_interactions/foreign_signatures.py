"""Signatures on this wire: they are on `thought` steps, before the step that they sign, and never on a call.

Google's signatures are written as they are. Data of other families, and what a stream can send only after its part,
is carried in thoughts whose signature is a tag of ours, in base64 (codecs/signature_blocks.py). A client echoes
thoughts unchanged; a tagged one is never sent to a provider, unless it came in a request of this format.
"""

from __future__ import annotations

from msgspec import UNSET

from dragoman.codecs.gemini_interactions.profile import FAMILY
from dragoman.codecs.gemini_interactions.wire import TextContent, ThoughtStep
from dragoman.codecs.google_signatures import GOOGLE
from dragoman.codecs.signature_blocks import SignatureBlocks
from dragoman.codecs.signature_tags import SIGNED, from_base64, in_base64, make_tag
from dragoman.ir import AnyPart, Metadata, Reasoning, Signature, Text
from dragoman.ir.notes import family_notes

_UNSIGNED = make_tag("unsigned", None)
_TAGGED: Metadata = {FAMILY: SIGNED}
SHOWN = "~shown"
"""Note on a signed empty text: it has a step, after the thought with its signature."""


def _thought_step(text: str, tag: str) -> ThoughtStep:
    return ThoughtStep(in_base64(tag), [TextContent(text)] if text else UNSET)


class _Thoughts(SignatureBlocks[ThoughtStep]):
    """The thoughts that carry signatures."""

    def tagged_signature(self, part: AnyPart, signature: Signature) -> ThoughtStep:
        """Return the thought that precedes a part and signs it. An empty text is represented by the thought alone."""
        if signature.family == GOOGLE and signature.data and not self.stands_alone(part):
            return ThoughtStep(signature.data)
        return super().tagged_signature(part, signature)

    def stands_alone(self, part: AnyPart) -> bool:
        return super().stands_alone(part) and SHOWN not in family_notes(FAMILY, getattr(part, "metadata", None))

    def _kind(self, kind: str, part: AnyPart) -> str:  # noqa: ARG002
        """Return the kind alone: the position says what is signed, as clients return the steps of a turn in order."""
        return kind

    def show(self, part: Reasoning) -> ThoughtStep:
        """Return a thought for unsigned or another family's reasoning, or for reasoning that Google signed itself."""
        if part.signature is None:
            return _thought_step(part.text, _UNSIGNED)
        return self.tagged_reasoning(part, part.signature)

    def read_tagged(self, text: str, tag: str) -> Reasoning | Text | Signature | None:
        return Reasoning(text, metadata=_TAGGED) if tag == _UNSIGNED else super().read_tagged(text, tag)


_blocks = _Thoughts(FAMILY, _thought_step)
tagged_signature = _blocks.tagged_signature
tagged_reasoning = _blocks.show
trailing_signature = _blocks.trailing_signature
stands_alone = _blocks.stands_alone
stands_behind = _blocks.stands_behind
sign_last = _blocks.sign_last
read_tag_of = from_base64
read_trailing = _blocks.read_trailing
read_tagged = _blocks.read_tagged
