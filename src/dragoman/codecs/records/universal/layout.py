"""Where calls, results, tools and their choice stand in a universal history."""

from __future__ import annotations

from dragoman.codecs.layout import Layout

LAYOUT = Layout(result_names="kept")
