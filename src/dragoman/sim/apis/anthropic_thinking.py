"""Claude's thinking: signed, possibly withheld, and on newer models bound to its conversation."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping

from dragoman.sim import signatures
from dragoman.sim.conversation_view import JsonObject, compact
from dragoman.sim.exchange import Problem, Refused
from dragoman.sim.rules.common import objects_at, text_at

_SHOWN, _WITHHELD, _REDACTED = "anthropic shown", "anthropic withheld", "anthropic redacted"
_PREFIX = 8
# Models whose thinking is valid only while system, tools and earlier messages are unchanged.
_BINDS = re.compile(r"claude-(?:fable-5-[12]|(?:opus|sonnet|haiku)-5-5)")


def _without_markers(value: object) -> object:
    """Removes `cache_control`, which thinking is not bound to."""
    if isinstance(value, Mapping):
        return {key: _without_markers(item) for key, item in value.items() if key != "cache_control"}
    return [_without_markers(item) for item in value] if isinstance(value, list) else value


def prefix_of(body: JsonObject, messages: int) -> bytes:
    """A digest of everything before a message."""
    earlier = objects_at(body, "messages")[:messages]
    prompt = compact(_without_markers([body.get("system"), body.get("tools"), list(earlier)]))
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).digest()[:_PREFIX]


def sign(nonce: str, text: str, *, shown: bool, prefix: bytes = b"") -> str:
    """Signs thinking; the signature covers the text, unless the text is withheld."""
    content = (text if shown else "") + prefix.hex()
    return base64.b64encode(signatures.make_signature(_SHOWN if shown else _WITHHELD, nonce, content) + prefix).decode()


def is_signed(text: str, signature: str) -> bool:
    return find_signed_prefix(text, signature) is not None


def find_signed_prefix(text: str, signature: str) -> bytes | None:
    """The prefix that a signature was made with; None if it does not belong to this text."""
    decoded = signatures.decode_base64(signature)
    if decoded is None:
        return None
    for prefix in (b"", decoded[-_PREFIX:]):
        bare = decoded.removesuffix(prefix)
        shown = signatures.is_signature(bare, _SHOWN, text + prefix.hex())
        if shown or signatures.is_signature(bare, _WITHHELD, prefix.hex()):
            return prefix
    return None


def is_bound(model: str) -> bool:
    return _BINDS.match(model) is not None


def check(body: JsonObject, *, new_account: bool) -> None:
    behaviour = text_at(body, "thinking", "block_binding", "prefix_mismatch_behavior")
    bound = behaviour == "error" or (new_account and behaviour != "drop_block")
    for index, message in enumerate(objects_at(body, "messages")):
        for position, block in enumerate(objects_at(message, "content")):
            problem = _problem_of(body, index, block, bound=bound)
            if problem:
                raise Refused(Problem("invalid", f"messages.{index}.content.{position}: {problem}"))


def _problem_of(body: JsonObject, message: int, block: JsonObject, *, bound: bool) -> str:
    if block.get("type") == "redacted_thinking":
        known = signatures.is_signature_text(text_at(block, "data"), _REDACTED, "")
        return "" if known else "Invalid `data` in `redacted_thinking` block"
    if block.get("type") != "thinking":
        return ""
    prefix = find_signed_prefix(text_at(block, "thinking"), text_at(block, "signature"))
    if prefix is None:
        return "Invalid `signature` in `thinking` block"
    if bound and prefix and prefix != prefix_of(body, message) and is_bound(text_at(body, "model")):
        return "Invalid `signature` in `thinking` block. The block is bound to a different conversation."
    return ""
