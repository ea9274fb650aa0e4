"""The family of a signature. Converse signs nothing itself: what it passes on was signed by Claude.

Claude's signatures are valid on all platforms, so they belong to the Anthropic family, whichever API sent them.
Nothing beside a signature says which model made it; but Claude's have a recognisable form, and any other value in the
slot is returned to every client of this format.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode

from dragoman.codecs.bedrock_converse.profile import FAMILY
from dragoman.codecs.claude_models import FAMILY as CLAUDE
from dragoman.ir import Signature

# Base64 of a message whose first field is number two, of variable length.
_CLAUDE_FORM = re.compile(r"E[g-v][A-Za-z0-9+/]{30}")


def signature_of(data: str) -> Signature:
    return Signature(CLAUDE if _CLAUDE_FORM.match(data) else FAMILY, data)


def is_at_home(signature: Signature) -> bool:
    """Whether the wire's own slot can hold this signature so that its family is recognised again."""
    return signature.id is None and bool(signature.data) and signature_of(signature.data).family == signature.family


def redacted_signature(blob: str) -> Signature:
    """Decode the signature of redacted reasoning.

    `redactedContent` is base64 of the string that Anthropic's own API calls `data`, which looks like base64 too.
    """
    try:
        data = b64decode(blob, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return Signature(FAMILY, blob)
    if _CLAUDE_FORM.match(data) and redacted_blob(Signature(CLAUDE, data)) == blob:
        return Signature(CLAUDE, data)
    return Signature(FAMILY, blob)


def redacted_blob(signature: Signature) -> str:
    return signature.data if signature.family == FAMILY else b64encode(signature.data.encode()).decode()
