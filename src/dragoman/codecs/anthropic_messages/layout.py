"""Where calls, results, tools and the tool choice are in a Messages request."""

from __future__ import annotations

from dragoman.codecs.layout import Layout

LAYOUT = Layout(system="system", calls="content", call_sign=("type", "tool_use"), results=("user", "content"))
