"""Text tables."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.terminal import columns

_GAP = "  "


def align_columns(rows: Sequence[Sequence[str]], *, widest: int = 60) -> list[str]:
    """Aligned lines, one per row. A cell wider than `widest` is not cut; it shifts only its own row."""
    widths = [min(max(map(columns, column)), widest) for column in zip(*rows, strict=True)]
    return [_GAP.join(map(_pad, row, widths)).rstrip() for row in rows]


def _pad(cell: str, width: int) -> str:
    return cell + " " * (width - columns(cell))
