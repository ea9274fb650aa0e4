"""Where calls, results, tools and the tool choice are in a Chat Completions request."""

from __future__ import annotations

from dragoman.codecs.layout import Envelope, Layout

LAYOUT = Layout(
    call_envelope=Envelope("function", ("function", "custom", "type"), beside=(("type", "function"),)),
    tool_envelope=Envelope("function", ("function", "custom", "type"), beside=(("type", "function"),)),
)
