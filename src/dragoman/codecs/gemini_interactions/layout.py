"""Where calls, results and tools are in an Interactions request: everything is a step of `input`."""

from __future__ import annotations

from dragoman.codecs.layout import Layout

LAYOUT = Layout(
    messages="input",
    calls=None,
    call_sign=("type", "function_call"),
    tool_choice=("generation_config", "tool_choice"),
    system="system_instruction",
    message_signs=("content",),
    result_names="kept",
)
