"""Where calls, results, tools and their choice stand in a history of multi-llm-chat."""

from __future__ import annotations

from dragoman.codecs.layout import Envelope, Layout

LAYOUT = Layout(
    calls="content",
    call_sign=("type", "tool_call"),
    call_envelope=Envelope("content", ("type",), beside=(("type", "tool_call"),)),
    results=("tool", "content"),
    result_names="kept",
)
