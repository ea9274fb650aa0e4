"""Bodies in the log, if configured: without keys and binary data, truncated."""

from __future__ import annotations

import re

from dragoman.gateway.capture import Capture, CapturedRequest, without_keys
from dragoman.gateway.captured_values import CaptureLimits

_DATA_URL = re.compile(r"(data:[\w.+-]*+/?+[\w.+-]*+(?:;[\w.=+-]+)*;base64,)([\w+/=-]*)")
_LONG = re.compile(r'(?<=")[\w+/-]{256,}={0,2}(?=["\\]|$)')
"""Base64 images and documents that fill a whole field, and vendors' signatures."""


def capture_for_log(most_requests: int) -> Capture:
    """Return a capture that holds more than is logged, so that an image before the text does not push it out."""
    return Capture(CaptureLimits(requests=most_requests))


def logged_bodies(request: CapturedRequest, most: int) -> dict[str, str]:
    """Return what the client sent and received; empty if the request was released to free memory."""
    bodies: dict[str, str] = {}
    if request.body is not None:
        bodies["request"] = redact(request.body.content, request.body.size, most)
    sent = request.answer.content if request.answer is not None else b"".join(out for _, _, out in request.pieces)
    if sent:
        size = request.answer.size if request.answer is not None else len(sent) + request.unheld_bytes
        bodies["answer"] = redact(sent, size, most)
    return bodies


def redact(content: bytes, size: int, most: int) -> str:
    text = without_keys(content).decode("utf-8", "replace")
    text = _DATA_URL.sub(lambda found: f"{found[1]}[{len(found[2])} characters]", text)
    text = _LONG.sub(lambda found: f"[{len(found[0])} characters]", text)
    if len(text) <= most and size <= len(content):
        return text
    return f"{text[:most]}… [of {size} bytes]"
