"""Where calls, results, tools and their choice stand in a history of modular-prompt."""

from __future__ import annotations

from dragoman.codecs.layout import Layout

LAYOUT = Layout(calls="toolCalls", tool_choice=("toolChoice",), result_names="kept")
