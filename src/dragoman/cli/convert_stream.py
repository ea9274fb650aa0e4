"""The work behind `dragoman convert --stream`: one recorded stream in, the same stream of another format out."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing
from importlib import import_module

from dragoman.cli.convert_command import Options
from dragoman.cli.format_names import ALL, source_format, target_formats
from dragoman.cli.inputs import open_input
from dragoman.cli.output import Output
from dragoman.cli.problems import OK, REFUSED, STREAM_FAILED, CommandError, one_line
from dragoman.cli.report import Crossing, Style, report_for
from dragoman.codecs.framing import AwsEventStream
from dragoman.codecs.registry import folder_of, formats
from dragoman.codecs.stream_limits import Limits
from dragoman.errors import DragomanError, UnsupportedFormat
from dragoman.inspection.recordings import Recording, describe_end, read_recording, refuse_if_unreadable
from dragoman.streams import StreamTranslator

_ONLY_FOR_BODIES = {"kind": "auto", "model": None, "layout": "auto"}
"""Options that do not apply to streams, with their defaults."""


def convert_stream(options: Options) -> int:
    """Runs the command; returns the exit code."""
    source, target = source_format(options.source), _target(options)
    style: Style = "table" if options.strict and options.report == "none" else options.report
    with ExitStack() as stack:
        given = stack.enter_context(open_input(options.file))
        recording = read_recording(given, source)
        _refuse_binary_on_terminal(target, options.output)
        output = stack.enter_context(Output(options.output))
        report = stack.enter_context(closing(report_for(style, several=False)))
        run = _Run(recording, target)
        run.convert(output)
        report.add(run.crossing())
        if options.strict and any(loss.refusable for loss in run.translator.losses):
            report.publish()
            return REFUSED
        output.commit()
        if not (options.strict and options.report == "none"):
            report.publish()
        if run.failed and options.report != "json":  # with --report, the error is in the report
            print(one_line(f"dragoman: {run.failed}; what came before is converted"), file=sys.stderr)
        return STREAM_FAILED if run.failed else OK


def _target(options: Options) -> str:
    for name, unasked in _ONLY_FOR_BODIES.items():
        requested = getattr(options, name)
        if requested != unasked:
            option = requested if name == "layout" else name
            raise CommandError(f"--{option} is for bodies and does not work with --stream")
    if options.target == ALL:
        raise CommandError("--to all is for bodies: with --stream, name one format")
    (target,) = target_formats(options.target)
    for name in (options.source, target):
        if name in formats("record"):
            raise CommandError(str(UnsupportedFormat(name, "streams")))
    return target


def _refuse_binary_on_terminal(target: str, name: str | None) -> None:
    """Refuses to write binary frames to a terminal."""
    framing = import_module(f"dragoman.codecs.{folder_of(target)}.stream").PayloadDecoder.framing(Limits())
    if isinstance(framing, AwsEventStream) and name in {None, "-"} and sys.stdout.isatty():
        raise CommandError(f"a stream of {target} is binary; write it to a file: -o FILE")


class _Run:
    """One run of the command."""

    def __init__(self, recording: Recording, target: str) -> None:
        self._recording = recording
        self._target = target
        self.translator = StreamTranslator(source=recording.format, target=target)
        self.failed: str | None = None

    def convert(self, output: Output) -> None:
        line, translator = 1, self.translator
        try:
            for content, line in self._recording.pieces:
                output.write(translator.feed(content))
                self._look(line)
            output.write(translator.close())
            self._look(line)
        except DragomanError as error:
            raise CommandError(f"{self._recording.place(line)}: {error}", REFUSED) from error

    def _look(self, line: int) -> None:
        failure = self.translator.failure
        if failure is not None and self.failed is None:
            refuse_if_unreadable(self._recording, failure, self.translator.completion, line)
            self.failed = f"{self._recording.place(line)}: {describe_end(failure)}"

    def crossing(self) -> Crossing:
        return Crossing(
            source=self._recording.format,
            target=self._target,
            kind="stream",
            failed=self.failed,
            losses=self.translator.losses,
        )
