"""Opaque data that a provider mints and wants back unchanged: thinking signatures, thought signatures, encrypted items.

A seal is a message authentication code over what it belongs to, so that the simulator knows its own seals again, and
notices one that was altered, invented, or moved to another place.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

# Protects nothing: anyone who reads this can forge the simulator's signatures.
_KEY = b"dragoman simulator"
_NONCE = 12
_CODE = 24


def seal(purpose: str, nonce: str, content: str) -> bytes:
    """`nonce` makes seals differ from one another; `content` is what has to stay as it is."""
    salt = hashlib.sha256(nonce.encode()).digest()[:_NONCE]
    return salt + _code(purpose, salt, content)


def is_seal(sealed: bytes, purpose: str, content: str) -> bool:
    if len(sealed) != _NONCE + _CODE:
        return False
    return hmac.compare_digest(sealed[_NONCE:], _code(purpose, sealed[:_NONCE], content))


def _code(purpose: str, salt: bytes, content: str) -> bytes:
    message = purpose.encode() + b"\0" + salt + b"\0" + content.encode("utf-8", "surrogatepass")
    return hmac.digest(_KEY, message, "sha256")[:_CODE]


def seal_text(purpose: str, nonce: str, content: str) -> str:
    return base64.b64encode(seal(purpose, nonce, content)).decode()


def is_seal_text(sealed: str, purpose: str, content: str) -> bool:
    decoded = decoded_base64(sealed)
    return decoded is not None and is_seal(decoded, purpose, content)


def decoded_base64(text: str) -> bytes | None:
    """Either alphabet, padded or not: Google's SDKs change both on the way."""
    standard = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
