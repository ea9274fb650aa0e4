"""Where calls, results, tools and their choice stand in a Responses request: everything is an item of `input`."""

from __future__ import annotations

from dragoman.codecs.layout import Layout

LAYOUT = Layout(messages="input", calls=None, call_sign=("call_id", None))
