"""Where calls, results, tools and the tool choice are in a Converse request."""

from __future__ import annotations

from dragoman.codecs.layout import Envelope, Layout

LAYOUT = Layout(
    tools=("toolConfig", "tools"),
    tool_choice=("toolConfig", "toolChoice"),
    system="system",
    calls="content",
    call_sign=("toolUse", None),
    call_envelope=Envelope("toolUse", ("toolUse",)),
    results=("user", "content"),
    result_envelope=Envelope("toolResult", ("toolResult",), inner="toolUseId"),
    tool_envelope=Envelope("toolSpec", ("toolSpec", "systemTool", "cachePoint")),
)
