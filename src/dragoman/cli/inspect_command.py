"""The work behind `dragoman inspect`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from dragoman import translate
from dragoman.cli.convert_command import Understood, understand
from dragoman.cli.documents import Document, Documents, read_documents
from dragoman.cli.format_names import source_format
from dragoman.cli.inputs import open_input
from dragoman.cli.problems import OK, CommandError
from dragoman.detection import Kind, looks_streamed
from dragoman.errors import DragomanError
from dragoman.inspection.bodies import describe_completion, describe_failure, describe_request
from dragoman.inspection.recordings import peek, read_recording
from dragoman.inspection.rereadable_lines import Input
from dragoman.inspection.streams import describe_stream
from dragoman.inspection.tree import Node, render
from dragoman.terminal import stdout, terminal_of


def inspect(
    file: str,
    source: str,
    kind: Kind | Literal["auto"],
    *,
    full: bool,
    stream: bool = False,
    colour: bool | None = None,
) -> int:
    format = source_format(source)
    if stream and kind != "auto":
        raise CommandError("--kind is for bodies and does not work with --stream")
    screen = stdout()
    terminal = terminal_of(screen, colour=colour)
    with open_input(file) as given:
        for number, tree in enumerate(_trees(given, format, kind, stream=stream)):
            if number:
                print(file=screen)
            for line in render(tree, terminal, full=full):
                print(line, file=screen)
    return OK


def _trees(given: Input, source: str | None, kind: Kind | Literal["auto"], *, stream: bool) -> Iterator[Node]:
    if not stream and kind == "auto":
        start, given = peek(given, stream=False)
        stream = looks_streamed(start)
    if stream:
        yield describe_stream(read_recording(given, source))
        return
    documents = read_documents(given.stream, given.name)
    for document in documents.items:
        tree = _tree(documents, document, source, kind)
        if documents.several:
            tree.head = f"line {document.line}: {tree.head}"
        yield tree


def _tree(documents: Documents, document: Document, source: str | None, kind: Kind | Literal["auto"]) -> Node:
    try:
        return _describe(document.content, understand(document.content, source, kind))
    except DragomanError as error:
        raise documents.problem(document, error) from error
    except CommandError as error:
        raise CommandError(f"{documents.name}:{document.line}: {error}", error.exit_code) from error


def _describe(content: bytes, understood: Understood) -> Node:
    name = understood.format
    if understood.kind == "request":
        return describe_request(translate.decode_request(content, name), name)
    if understood.kind == "response":
        return describe_completion(translate.decode_response(content, name), name)
    return describe_failure(translate.decode_error(content, name), name)
