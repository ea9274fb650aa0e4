"""Where calls, results, tools and the tool choice are in a Responses request: calls and results are `input` items."""

from __future__ import annotations

from dragoman.codecs.layout import Layout

LAYOUT = Layout(messages="input", calls=None, call_sign=("call_id", None))
