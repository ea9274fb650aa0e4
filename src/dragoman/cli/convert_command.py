"""The work behind `dragoman convert`: bodies in, bodies out, losses reported."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing
from typing import Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from dragoman import translate
from dragoman.batch.options import ConvertOptions
from dragoman.batch.record_converter import RecordConverter
from dragoman.cli.documents import Document, Documents, open_documents
from dragoman.cli.format_names import source_format, target_formats
from dragoman.cli.output import Output
from dragoman.cli.problems import OK, REFUSED, CommandError
from dragoman.cli.report import Crossing, Report, Style, count_losses, report_for
from dragoman.codecs.datasets.unread import what_is_read_instead
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.reading import body_bytes
from dragoman.detection import Detected, Kind, detect, looks_streamed
from dragoman.errors import DragomanError, EncodeError
from dragoman.ir.values import encode_json, parse_json, single_line

Layout: TypeAlias = Literal["auto", "pretty", "compact"]


class Options(NamedTuple):
    """Options of the command line."""

    file: str
    source: str
    target: str
    kind: Kind | Literal["auto"] = "auto"
    model: str | None = None
    strict: bool = False
    report: Style = "none"
    layout: Layout = "auto"
    output: str | None = None


class Understood(NamedTuple):
    """Format and kind of a body."""

    format: str
    kind: Kind


def understand(content: bytes, source: str | None, kind: Kind | Literal["auto"]) -> Understood:
    """Format and kind as given by the user; the rest is detected from the body."""
    if source is not None and kind != "auto":
        return Understood(source, kind)
    found = detect(content)
    if found is None:
        missing = "--from" if source is None else "--kind"
        data = parse_json(body_bytes(content, "body"))
        if isinstance(data, list) and len(data) > 1 and detect(encode_json(data[0])) is not None:
            message = "this is an array of records: dragoman batch convert converts each of them"
            raise CommandError(message)
        if (instead := what_is_read_instead(data)) is not None:
            raise CommandError(f"cannot read this record. Expected: {instead}")
        raise CommandError(f"cannot detect what this body is; name it with {missing} (see: dragoman formats)")
    return Understood(source or found.format, found.kind if kind == "auto" else kind)


def convert(options: Options) -> int:
    """Runs the command; returns the exit code."""
    source, targets = source_format(options.source), target_formats(options.target)
    style: Style = "table" if options.strict and options.report == "none" else options.report
    with ExitStack() as stack:
        output = stack.enter_context(Output(options.output))
        documents = stack.enter_context(open_documents(options.file))
        report = stack.enter_context(closing(report_for(style, several=documents.several)))
        run = _Run(options, source, targets, documents, report)
        for document in documents.items:
            output.write(run.convert(document))
        if options.strict and (run.lossy or run.refusals):
            report.publish()
            return REFUSED
        output.commit()
        if not (options.strict and options.report == "none"):  # strict mode got this far, so nothing was lost
            report.publish()
        return REFUSED if run.refusals else OK


def _hint(document: Document) -> str:
    return "; if it is a recorded stream, add --stream" if looks_streamed(document.content) else ""


class _Run:
    """One run of the command over all documents."""

    def __init__(
        self, options: Options, source: str | None, targets: tuple[str, ...], documents: Documents, report: Report
    ) -> None:
        self._options = options
        self._source = source
        self._targets = targets
        self._documents = documents
        self._report = report
        self._side_by_side = len(targets) > 1
        self._converter: RecordConverter | None = None
        self.lossy = False
        self.refusals = 0

    def convert(self, document: Document) -> bytes:
        try:
            if self._documents.several and not self._side_by_side:
                return self._line({self._targets[0]: self._cross_line(document)})
            understood = understand(document.content, self._source, self._options.kind)
            crossed = {target: self._cross(document, understood, target) for target in self._targets}
        except DragomanError as error:
            problem = self._documents.problem(document, error)
            raise CommandError(f"{problem}{_hint(document)}", problem.exit_code) from error
        except CommandError as error:
            place = f"{self._documents.name}:{document.line}"
            raise CommandError(f"{place}: {error}{_hint(document)}", error.exit_code) from error
        if self._documents.several:
            return self._line(crossed)
        return self._sections(crossed) if self._side_by_side else self._single(crossed)

    def _cross_line(self, document: Document) -> Encoded:
        """Converts one of many lines: the format is detected from the first, and the others must have it too."""
        if self._converter is None:
            expected = understand(document.content, self._source, self._options.kind)
            options = ConvertOptions(
                target=self._targets[0], source=self._source, kind=self._options.kind, model=self._options.model
            )
            self._converter = RecordConverter(options, self._documents.name, Detected(*expected))
        found, encoded = self._converter.translate(document.content)
        self.lossy = self.lossy or any(loss.refusable for loss in encoded.losses)
        crossing = Crossing(
            line=document.line, source=found.format, target=self._targets[0], kind=found.kind, losses=encoded.losses,
            path=encoded.path, headers=encoded.headers,
        )  # fmt: skip
        self._report.add(crossing)
        return encoded

    def _cross(self, document: Document, understood: Understood, target: str) -> Encoded | EncodeError:
        crossing = Crossing(
            line=document.line if self._documents.several else None,
            source=understood.format,
            target=target,
            kind=understood.kind,
            losses=(),
        )
        try:
            encoded = self._translate(document.content, understood, target)
        except EncodeError as error:
            if self._documents.several or not self._side_by_side:
                raise
            self.refusals += 1
            self._report.add(msgspec.structs.replace(crossing, refused=str(error)))
            return error
        self.lossy = self.lossy or any(loss.refusable for loss in encoded.losses)
        self._report.add(
            msgspec.structs.replace(crossing, losses=encoded.losses, path=encoded.path, headers=encoded.headers)
        )
        return encoded

    def _translate(self, content: bytes, understood: Understood, target: str) -> Encoded:
        # Never strict here: losses of all documents are collected first and reported together.
        if understood.kind == "request":
            model = self._options.model
            return translate.translate_request(content, source=understood.format, target=target, model=model)
        if understood.kind == "response":
            return translate.translate_response(content, source=understood.format, target=target)
        return translate.translate_error(content, source=understood.format, target=target)

    def _line(self, crossed: dict[str, Encoded | EncodeError]) -> bytes:
        bodies = {target: Raw(encoded.json()) for target, encoded in crossed.items() if isinstance(encoded, Encoded)}
        raw = Raw(encode_json(bodies)) if self._side_by_side else next(iter(bodies.values()))
        return bytes(single_line(raw)) + b"\n"

    def _single(self, crossed: dict[str, Encoded | EncodeError]) -> bytes:
        shown = self._options.output in {None, "-"} and sys.stdout.isatty()
        return b"".join(
            self._lay_out(encoded.json(), pretty=shown) + b"\n"
            for encoded in crossed.values()
            if isinstance(encoded, Encoded)
        )

    def _sections(self, crossed: dict[str, Encoded | EncodeError]) -> bytes:
        sections = []
        for target, encoded in crossed.items():
            if isinstance(encoded, EncodeError):
                sections.append(f"== {target} == refused: {encoded}\n".encode())
                continue
            title = f"== {target} == {count_losses(encoded.losses)}\n".encode()
            sections.append(title + self._lay_out(encoded.json(), pretty=True) + b"\n")
        return b"\n".join(sections)

    def _lay_out(self, body: bytes, *, pretty: bool) -> bytes:
        layout = self._options.layout
        if layout == "pretty" or (layout == "auto" and pretty):
            return msgspec.json.format(body, indent=2)
        return bytes(single_line(Raw(body)))
