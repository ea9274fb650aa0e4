"""A body, in every format."""

from __future__ import annotations

from dragoman.web.site import Place


def playground() -> Place:
    return Place("playground")
