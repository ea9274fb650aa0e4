"""Renders the picture as PNG, with Pillow (extra `docs`) and its built-in font."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from dragoman.fidelity.picture import CELL, COLOURS, PAPER, Box, Label, Picture, letter

SCALE = 2
_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


def render(picture: Picture) -> bytes:
    from PIL import Image, ImageDraw, ImageFont  # noqa: PLC0415 - needs an extra

    image = Image.new("RGB", (picture.width * SCALE, picture.height * SCALE), PAPER)
    canvas = ImageDraw.Draw(image)
    fonts = {size: ImageFont.load_default(size * SCALE) for size in range(6, 24)}
    for shape in picture.shapes:
        if isinstance(shape, Box):
            _box(canvas, shape, fonts[10])
        else:
            _label(canvas, shape, fonts[shape.size])
    content = BytesIO()
    image.quantize(256).save(content, "PNG", optimize=True)
    return content.getvalue()


def _box(canvas: Any, box: Box, font: Any) -> None:
    fill, ink = COLOURS[box.verdict]
    left, top, side = box.x * SCALE, box.y * SCALE, (CELL - 1) * SCALE
    canvas.rounded_rectangle((left, top, left + side, top + side), 2 * SCALE, fill)
    canvas.text((left + side / 2, top + side / 2), letter(box.verdict), ink, font, "mm")


def _label(canvas: Any, label: Label, font: Any) -> None:
    place = (label.x * SCALE, label.y * SCALE)
    stroke = 0.5 * SCALE if label.bold else 0
    canvas.text(place, label.text, label.fill, font, _ANCHORS[label.anchor], stroke_width=stroke)
