"""Docstrings, comments, messages and names of tests do not use words that make readers stumble."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.promises import promise

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "dragoman"
TESTS = ROOT / "tests"

# Pattern -> what is wrong with it, and what to write instead.
STUMBLING = {
    r"nobody|somebody|whoever": "a riddle: name the client, the caller, the user, the process",
    r"anew|in vain|thought better of": "archaic: again, without success, declined",
    r"is no (?:agent|command|key|object|text|list|number|string)": "say: is not a …, or: Unknown command: …",
    r"(?:is|are|was|were) told (?:as|by|of|so)": "losses and errors are reported; kinds are recognised or named",
    r"a room of|short way|long way": "invented terms: buffer, fast path, full path",
    r"everybody|anybody": "a riddle: name the client, the caller, the user",
    r"(?:hears?|heard)": "functions receive values, subscribers get events",
    r"told (?:apart|as|back|by|in|of|so|to)": "distinguished, reported, sent: name the action",
    r"tells? (?:how|that|what|when|where|whether|which|who|why)": "a value says or shows; a message states",
    r"(?:that|what|which) (?:are|is) no (?!longer|such)\w+": "say: that is not a …",
    r"hal(?:f|ves) (?:a|of) surrogates?": "the field's term is a lone surrogate",
}

# Names that say nothing about a value -> what to write instead. Whole names: `told`, `_told`, `TOLD`, not `is_told`.
EMPTY_NAMES = {
    "told": "name the value: text, losses, headers; a callback is named after its event",
    "said": "name the value: text, message, parsed, fields",
    "heard": "received, publish, on_sent",
    "owed": "signatures, pending_signature",
    "spoken": "messages, turns, format",
}
# `said` is the name of an event of the chat's page.
ALLOWED_NAMES = frozenset({"Said"})

# Sentences that are data, not our own prose.
ALLOWED = frozenset(
    {
        "a river carries words between two towns that share no language and nobody loses one",
        "let me my need now of on or please should so some tell that",
        "arguments that are no JSON, as they are",  # a title that is drawn in docs/fidelity.png
    }
)


PATTERNS = {re.compile(rf"\b(?:{words})\b", re.IGNORECASE): why for words, why in STUMBLING.items()}
ANY = re.compile(rf"\b(?:{'|'.join(STUMBLING)})\b", re.IGNORECASE)


def _prose(path: Path) -> Iterator[tuple[int, str]]:
    """Comments and strings with their lines."""
    text = path.read_text(encoding="utf-8")
    if ANY.search(text.replace("_", " ")):  # cutting all files into tokens takes many seconds
        yield from _prose_of_tests(text) if TESTS in path.parents else _prose_of_sources(text)


def _prose_of_sources(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in {tokenize.COMMENT, tokenize.STRING}:
            yield token.start[0], token.string


def _prose_of_tests(text: str) -> Iterator[tuple[int, str]]:
    """Comments, docstrings and names of functions: other strings may be data."""
    for number, line in enumerate(text.splitlines(), 1):
        if "#" in line:
            yield number, line.partition("#")[2]
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name.replace("_", " ")
            case ast.Expr(value=ast.Constant(value=str(docstring))):
                yield node.lineno, docstring


def _findings(path: Path) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line}: {found[0]!r} ({why})"
        for line, text in _prose(path)
        if not any(allowed in text for allowed in ALLOWED)
        for pattern, why in PATTERNS.items()
        if (found := pattern.search(text))
    ]


@promise("core:plain-words")
def test_sentences_are_plain() -> None:
    folders = (SOURCES, TESTS, ROOT / "scripts", ROOT / "examples")
    paths = {path for folder in folders for path in folder.rglob("*.py")} - {Path(__file__)}
    assert [finding for path in sorted(paths) for finding in _findings(path)] == []


def _names(text: str) -> Iterator[tuple[int, str]]:
    """Names that a module binds, with their lines: functions, classes, parameters, variables and attributes."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name


@promise("core:plain-words")
def test_names_say_what_a_value_is() -> None:
    names = re.compile(rf"\b_*(?:{'|'.join(EMPTY_NAMES)})\b", re.IGNORECASE)
    found = []
    for path in sorted({*SOURCES.rglob("*.py"), *TESTS.rglob("*.py")} - {Path(__file__)}):
        text = path.read_text(encoding="utf-8")
        if names.search(text):  # parsing all files takes many seconds
            found += [
                f"{path.relative_to(ROOT)}:{line}: {name} ({EMPTY_NAMES[name.strip('_').lower()]})"
                for line, name in _names(text)
                if name.strip("_").lower() in EMPTY_NAMES and name not in ALLOWED_NAMES
            ]
    assert found == []


def test_a_name_without_meaning_is_found() -> None:
    program = "def told(said, /):\n    self._heard = [owed for owed in said]\n"
    assert [(line, name) for line, name in sorted(_names(program))] == [
        (1, "said"), (1, "told"), (2, "_heard"), (2, "owed"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "sentence",
    ["# Whoever asks", '"""It is no command."""', 'raise X("this is told as text")', "# what is no JSON", "# it heard"],
)
def test_a_stumbling_sentence_is_found(sentence: str) -> None:
    assert any(pattern.search(sentence) for pattern in PATTERNS)


def test_a_stumbling_name_of_a_test_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.test_words.TESTS", tmp_path)
    file = tmp_path / "test_x.py"
    file.write_text('def test_what_nobody_knows() -> None:\n    """Plain."""\n    assert "nobody"\n')
    assert [line for line, text in _prose(file) if any(pattern.search(text) for pattern in PATTERNS)] == [1]
