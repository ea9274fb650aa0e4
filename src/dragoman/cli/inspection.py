"""The work behind `dragoman inspect`."""

from __future__ import annotations

from typing import Literal

from dragoman import translate
from dragoman.cli.conversion import Understood, understand
from dragoman.cli.describe import describe_completion, describe_failure, describe_request
from dragoman.cli.documents import Document, Documents, open_documents
from dragoman.cli.names import source_format
from dragoman.cli.problems import OK, CommandError
from dragoman.cli.terminal import stdout, terminal_of
from dragoman.cli.tree import Node, render
from dragoman.detection import Kind
from dragoman.errors import DragomanError


def inspect(file: str, source: str, kind: Kind | Literal["auto"], *, full: bool) -> int:
    asked = source_format(source)
    stream = stdout()
    terminal = terminal_of(stream)
    with open_documents(file) as documents:
        for number, document in enumerate(documents.items):
            tree = _tree(documents, document, asked, kind)
            if documents.several:
                tree.head = f"line {document.line}: {tree.head}"
            if number:
                print(file=stream)
            for line in render(tree, terminal, full=full):
                print(line, file=stream)
    return OK


def _tree(documents: Documents, document: Document, source: str | None, kind: Kind | Literal["auto"]) -> Node:
    try:
        return _described(document.content, understand(document.content, source, kind))
    except DragomanError as error:
        raise documents.problem(document, error) from error
    except CommandError as error:
        raise CommandError(f"{documents.name}:{document.line}: {error}", error.exit_code) from error


def _described(content: bytes, understood: Understood) -> Node:
    name = understood.format
    if understood.kind == "request":
        return describe_request(translate.decode_request(content, name), name)
    if understood.kind == "response":
        return describe_completion(translate.decode_response(content, name), name)
    return describe_failure(translate.decode_error(content, name), name)
