"""Where calls, results and tools are in an Ollama request. There is no tool choice."""

from __future__ import annotations

from dragoman.codecs.layout import Envelope, Layout

LAYOUT = Layout(
    call_envelope=Envelope("function", ("function", "type")),
    result_names="needed",
    tool_envelope=Envelope("function", ("function", "type"), beside=(("type", "function"),)),
)
