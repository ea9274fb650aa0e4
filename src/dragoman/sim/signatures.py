"""Opaque data that providers want back unchanged: thinking signatures, thought signatures, encrypted items.

A signature is a message authentication code over its content, so that the simulator recognises its own signatures and
detects altered, invented or moved ones.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

# Not a secret: it only makes the simulator's signatures recognisable.
_KEY = b"dragoman simulator"
_NONCE = 12
_CODE = 24


def make_signature(purpose: str, nonce: str, content: str) -> bytes:
    """`nonce` makes signatures unique; `content` is what must not change."""
    salt = hashlib.sha256(nonce.encode()).digest()[:_NONCE]
    return salt + _code(purpose, salt, content)


def is_signature(signature: bytes, purpose: str, content: str) -> bool:
    if len(signature) != _NONCE + _CODE:
        return False
    return hmac.compare_digest(signature[_NONCE:], _code(purpose, signature[:_NONCE], content))


def _code(purpose: str, salt: bytes, content: str) -> bytes:
    message = purpose.encode() + b"\0" + salt + b"\0" + content.encode("utf-8", "surrogatepass")
    return hmac.digest(_KEY, message, "sha256")[:_CODE]


def is_signature_text(signature: str, purpose: str, content: str) -> bool:
    decoded = decode_base64(signature)
    return decoded is not None and is_signature(decoded, purpose, content)


def decode_base64(text: str) -> bytes | None:
    """Accepts either alphabet, padded or not: Google's SDKs change both."""
    standard = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
