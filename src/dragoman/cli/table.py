"""Columns that line up."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.terminal import columns

_GAP = "  "


def aligned(rows: Sequence[Sequence[str]], *, widest: int = 60) -> list[str]:
    """One line per row. A cell wider than `widest` stays whole and pushes only its own row."""
    widths = [min(max(map(columns, column)), widest) for column in zip(*rows, strict=True)]
    return [_GAP.join(map(_padded, row, widths)).rstrip() for row in rows]


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - columns(cell))
