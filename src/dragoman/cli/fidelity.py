"""`dragoman fidelity`: the fidelity matrix of all format pairs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dragoman.cli.problems import OK, REFUSED, CommandError, unknown

if TYPE_CHECKING:
    from dragoman.fidelity.cases import Case
    from dragoman.fidelity.matrix import Cell, Matrix

SUMMARY = "show how faithful conversions are, feature by feature"
DESCRIPTION = """\
Converts a catalogue of small examples from every format to every other, as
requests, responses and streams, and shows what becomes of each feature:

  exact     the target has its own field for it, nothing is lost
  carried   the target has no equal field; converted back, it is intact
  degraded  it does not come back, and a loss is reported
  refused   the conversion is refused, with a reason
  silent    lost without a report: always a bug (exit code 3)
"""
EXAMPLES = """\
examples:
  dragoman fidelity
  dragoman fidelity --from openai-chat --to gemini
  dragoman fidelity --feature image-results
  dragoman fidelity --json > fidelity.json
  dragoman fidelity --svg fidelity.svg --png fidelity.png
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="source", metavar="FORMAT", help="only from this format")
    parser.add_argument("--to", dest="target", metavar="FORMAT", help="only to this format")
    parser.add_argument("--feature", metavar="NAME", help="only this feature")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print the matrix as JSON")
    shape.add_argument("--markdown", action="store_true", help="print the matrix as tables in Markdown")
    parser.add_argument("--svg", metavar="FILE", help="draw the matrix as a heat map")
    parser.add_argument("--png", metavar="FILE", help="the same as PNG (needs Pillow)")


def run(arguments: argparse.Namespace) -> int:
    from dragoman.cli.output import Output
    from dragoman.fidelity.interpreters import Dragoman
    from dragoman.fidelity.matrix import cells, matrix_of

    sources, targets = _formats_named(arguments.source), _formats_named(arguments.target)
    interpreter = Dragoman()
    judged = list(cells(interpreter, sources, targets, _cases(arguments.feature)))
    matrix = matrix_of(interpreter, judged, None if sources is targets is None else _formats_shown(sources, targets))
    detailed = arguments.feature is not None or (sources is not None and targets is not None)
    pictures = _pictures(matrix, arguments.svg, arguments.png)
    for name, content in pictures.items():
        with Output(name) as output:
            output.write(content)
            output.commit()
    if arguments.json or arguments.markdown or not pictures:
        with Output(None) as output:
            output.write(_encode(matrix, arguments) or _table(matrix, judged if detailed else None))
            output.commit()
    return REFUSED if any(cell.judgement.verdict == "silent" for cell in judged) else OK


def _formats_named(name: str | None) -> tuple[str, ...] | None:
    from dragoman.cli.format_names import known_format
    from dragoman.codecs.registry import formats

    return None if name is None else (known_format(name, formats()),)


def _formats_shown(sources: tuple[str, ...] | None, targets: tuple[str, ...] | None) -> tuple[str, ...]:
    from dragoman.codecs.registry import formats

    if sources is None or targets is None:
        return formats()
    return tuple(name for name in formats() if name in (*sources, *targets))


def _cases(feature: str | None) -> tuple[Case, ...]:
    from dragoman.fidelity.catalogue import CASES, FEATURES

    known = [known.name for known in FEATURES]
    if feature is not None and feature not in known:
        raise CommandError(unknown("feature", feature, known, "docs/fidelity.md lists them"))
    return tuple(case for case in CASES if feature in {None, case.feature})


def _pictures(matrix: Matrix, svg: str | None, png: str | None) -> dict[str, bytes]:
    from dragoman.fidelity import png as png_rendering
    from dragoman.fidelity import svg as svg_rendering
    from dragoman.fidelity.picture import draw

    pictures = {} if svg is None else {svg: svg_rendering.render(draw(matrix)).encode()}
    if png is not None:
        try:
            pictures[png] = png_rendering.render(draw(matrix))
        except ImportError as error:
            from dragoman.installation import install_command

            raise CommandError(f"a PNG needs Pillow: {install_command('docs')}") from error
    return pictures


def _encode(matrix: Matrix, arguments: argparse.Namespace) -> bytes | None:
    from dragoman.fidelity.matrix import to_json
    from dragoman.fidelity.tables import markdown

    if arguments.json:
        return to_json(matrix)
    return f"{markdown(matrix)}\n".encode() if arguments.markdown else None


def _table(matrix: Matrix, judged: list[Cell] | None) -> bytes:
    from dragoman.fidelity.tables import detail_rows, overview_rows
    from dragoman.terminal import align_columns

    rows = overview_rows(matrix) if judged is None else detail_rows(judged)
    return ("\n".join(align_columns(rows)) + "\n").encode()
