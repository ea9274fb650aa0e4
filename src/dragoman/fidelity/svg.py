"""Renders the picture as SVG, with one symbol per verdict."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from dragoman.fidelity.judging import VERDICTS, Verdict
from dragoman.fidelity.picture import CELL, COLOURS, INK, PAPER, Box, Label, Picture, letter

_FONT = "ui-sans-serif, system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"


def render(picture: Picture) -> str:
    return "\n".join(_lines(picture)) + "\n"


def _lines(picture: Picture) -> Iterator[str]:
    size = f'width="{picture.width}" height="{picture.height}" viewBox="0 0 {picture.width} {picture.height}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title description">'
    yield f'<title id="title">{escape(picture.title)}</title>'
    yield f'<desc id="description">{escape(picture.description)}</desc>'
    yield f'<rect width="100%" height="100%" fill="{PAPER}"/>'
    yield "<defs>"
    yield from map(_symbol, (*VERDICTS, None))
    yield "</defs>"
    yield f'<g font-family="{_FONT}">'
    yield from map(_shape, picture.shapes)
    yield "</g>"
    yield "</svg>"


def _name(verdict: Verdict | None) -> str:
    return verdict or "none"


def _symbol(verdict: Verdict | None) -> str:
    fill, ink = COLOURS[verdict]
    side, middle = CELL - 1, (CELL - 1) / 2
    text = f'<text x="{middle:g}" y="{middle + 3.5:g}" font-size="10" text-anchor="middle" fill="{ink}">'
    rect = f'<rect width="{side}" height="{side}" rx="2" fill="{fill}"/>'
    return f'<g id="{_name(verdict)}">{rect}{text}{letter(verdict)}</text></g>'


def _shape(shape: Label | Box) -> str:
    if isinstance(shape, Box):
        return f'<use href="#{_name(shape.verdict)}" x="{shape.x:g}" y="{shape.y:g}"/>'
    weight = ' font-weight="600"' if shape.bold else ""
    fill = "" if shape.fill == INK else f' fill="{shape.fill}"'
    anchor = "" if shape.anchor == "start" else f' text-anchor="{shape.anchor}"'
    place = f'x="{shape.x:g}" y="{shape.y:g}" font-size="{shape.size}"'
    return f"<text {place}{weight}{anchor}{fill}>{escape(shape.text)}</text>"
